"""Laplace transforms of S under the reference, of independent bits and of sets of one size.

Notation: ``bits``; x = t D, W = sum of pi_j over the set, S = b + D W, E_0 W = q; L(t) = log E_0 e^(-tS).

Two forms, by the size of log M = L + t. Where it is above 1, E_0 e^(-tS) itself: logs of numbers below 1, all of one
sign; f(x) = -log E e^(-x W) is concave with f(0) = 0, so that x f' <= f: relative errors of q and D enter by at most
their multiple of |L|. Elsewhere M - 1 from positive terms, kappa(z) = e^z - 1 - z: of a bit
    m_j - 1 = q kappa(-(1 - q) x pi_j) + (1 - q) kappa(q x pi_j);
of sets, with G_nr + 1 the mean of e^(-x sum (pi_j - mu_n)) over the sets of r among the first n secrets, in increasing
order of pi, mu_n the mean of their pi, y = x (pi_n - mu_(n-1)), z = r / n:
    G_nr = (1 - z) kappa(z y) + z kappa(-(1 - z) y) + (1 - z) e^(z y) G_(n-1)r + z e^(-(1 - z) y) G_(n-1)(r-1).
"""

# bounds: tested by enclosures/test_sets_notions - rounding of transforms, by the notes at the head

from __future__ import annotations

import math

import numpy as np

from ...._values import FloatArray
from ..arguments import UNIT
from .bits import Bits

__all__ = ["centred", "logs", "variance"]

_BLOCK = 2**18
_SERIES = [1.0 / math.factorial(n) for n in range(2, 20)]


def variance(bits: Bits) -> float:
    """Of S under the reference."""
    own = bits.rise**2 * bits.inside * bits.outside
    if bits.size is None:
        return own * bits.energy
    gaps = np.array(_above_the_mean(_each(bits))) / bits.total
    n = np.arange(bits.secrets)
    spread = float(np.sum(n / (n + 1.0) * gaps**2))  # of the prior about its mean, secret by secret
    return own * spread * bits.secrets / (bits.secrets - 1)


def centred(bits: Bits, t: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """F(t) = e^-t (M - 1) / t^2, its relative error, and e^-t M at the last t rounded up."""
    log, error = logs(bits, t)
    room = log + t
    with np.errstate(under="ignore", over="ignore"):
        found = np.exp(log) * -np.expm1(-np.maximum(room, 1.0)) / t / t
        relative = 2 * error + 4 * UNIT * t * np.exp(-np.maximum(room, 1.0)) + 16 * UNIT
        relative += 16 * UNIT * (1 + np.abs(np.log(t))) * (1 + np.abs(np.where(np.isfinite(log), log, 0.0)))
        near = room <= 1.0
        if near.any():
            some = t[near]
            change, more = (_bits_less_1 if bits.size is None else _sets_less_1)(bits, some)
            found[near] = np.exp(-some) * change / some / some
            relative[near] = more + 16 * UNIT * (2 + np.abs(np.log(some))) * (1 + some)
    return found, relative, math.exp(min(0.0, float(log[-1] + error[-1])))


def logs(bits: Bits, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """L(t) and its absolute error."""
    if bits.size is not None:
        return _logs_of_sets(bits, t)
    found = np.empty(t.size)
    rows = max(1, _BLOCK // bits.value.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * bits.rise, bits.value)
        away = bits.inside * -np.expm1(-x)
        parts = np.where(away < 0.5, np.log1p(-np.minimum(away, 0.5)),
                         np.log(bits.outside + bits.inside * np.exp(-x)))  # fmt: skip
        found[start : start + rows] = (bits.counts * parts).sum(axis=1)
    found -= t * bits.low
    return found, np.abs(found) * (6 * bits.blur + (40 + math.log2(bits.value.size)) * UNIT)


def _bits_less_1(bits: Bits, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M - 1 and its relative error, for M <= e."""
    log, reach = np.empty(t.size), np.empty(t.size)
    rows = max(1, _BLOCK // bits.value.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * bits.rise, bits.value)
        parts = bits.inside * _kappa(-bits.outside * x) + bits.outside * _kappa(bits.inside * x)
        log[start : start + rows] = (bits.counts * np.log1p(parts)).sum(axis=1)
        reach[start : start + rows] = bits.inside * x.max(axis=1)
    rounding = (16 * UNIT + 4 * bits.blur) * (2 + reach) + (24 + math.log2(bits.value.size)) * UNIT
    return np.expm1(log), 2 * rounding


def _logs_of_sets(bits: Bits, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    assert bits.size is not None
    x = t * (bits.rise / bits.total)
    means = np.zeros((bits.size + 1, t.size))
    means[0] = 1.0
    with np.errstate(under="ignore", divide="ignore"):
        for n, value in enumerate(_each(bits), 1):
            low, top = max(1, bits.size - bits.secrets + n), min(bits.size, n) + 1
            share = np.arange(low, top)[:, None] / n
            means[low:top] = (1 - share) * means[low:top] + share * (np.exp(-x * value) * means[low - 1 : top - 1])
        found = np.log(means[-1]) - t * bits.low
    size = np.where(np.isfinite(found), np.abs(found), 0.0)
    return found, size * (6 * bits.blur + 40 * UNIT) + 8 * UNIT * bits.secrets


def _sets_less_1(bits: Bits, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    assert bits.size is not None
    x = t * (bits.rise / bits.total)
    change, reach = np.zeros((bits.size + 1, t.size)), np.zeros(t.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for n, gap in enumerate(_above_the_mean(_each(bits)), 1):
            y = x * gap
            reach += np.abs(y)
            low, top = max(1, bits.size - bits.secrets + n), min(bits.size, n) + 1
            share = np.arange(low, top)[:, None] / n
            up, down = share * y, (share - 1) * y
            new = (1 - share) * (_kappa(up) + np.exp(up) * change[low:top])
            change[low:top] = new + share * (_kappa(down) + np.exp(down) * change[low - 1 : top - 1])
    lost = ~np.isfinite(change[-1])  # on the way beyond doubles: then no more than 0 <= M - 1 <= e - 1
    rounding = (32 * UNIT + 4 * bits.blur) * (bits.secrets + 2 + 2 * reach)
    return np.where(lost, 1.0, change[-1]), np.where(lost, 1.8, rounding)


def _each(bits: Bits) -> list[float]:
    """The prior of every secret, in increasing order."""
    held: list[float] = np.repeat(bits.value, bits.counts.astype(np.int64))[::-1].tolist()
    return [0.0] * (bits.secrets - len(held)) + held


def _above_the_mean(values: list[float]) -> list[float]:
    """Each of them less the mean of those before, rounded once."""
    found, total = [0.0], 0
    for n, value in enumerate(values):
        mantissa, exponent = math.frexp(value)
        whole = int(math.ldexp(mantissa, 53)) << (exponent + 1100)
        if n:
            found.append((n * whole - total) / (n << 1153))
        total += whole
    return found


def _kappa(z: FloatArray) -> FloatArray:
    """e^z - 1 - z, right to 8 u."""
    most = float(np.max(np.abs(z), initial=0.0))
    inner = z if most < 0.5 else np.where(np.abs(z) < 0.5, z, 0.0)
    terms, reach = 2, min(most, 0.5)
    while terms < len(_SERIES) and reach ** (terms - 1) * _SERIES[terms - 1] > 1e-18:
        terms += 1
    found = np.full_like(inner, _SERIES[terms - 1])
    for coefficient in _SERIES[terms - 2 :: -1]:
        found *= inner
        found += coefficient
    found *= inner * inner
    return found if most < 0.5 else np.where(np.abs(z) < 0.5, found, np.expm1(z) - z)
