"""Jensen-Shannon divergence of products, by one integral over the overlaps of their parts.

Notation: R = prod R_i the prior, P = prod P_i the posterior, S = log dP/dR = sum y_i, z = 1/2 + i t, and
c_i(t) = E_{R_i} e^(z y_i) the overlap of part i at the complex order z; B = c(0) is the Bhattacharyya coefficient.

JS = log 2 - E_M h(S) with M = (P + R)/2 and h the entropy of the odds e^S. Under the tilted law dT = e^(S/2) dR / B,
E_M h = B E_T k(S) with k(s) = cosh(s/2) h(s) = cosh(s/2) log(2 cosh(s/2)) - (s/2) sinh(s/2), which satisfies
k'' = k/4 - 1/(4 cosh(s/2)): its Fourier transform is (pi/2) sech(pi t) / (t^2 + 1/4). Hence

    JS = integral over the line of w(t) (1 - Re prod_i c_i(t)) dt,   w(t) = sech(pi t) / (1 + 4 t^2),

a product under the integral, whatever the number of secrets. The trapezoidal rule with step 2 pi / L is, by Poisson's
formula, JS + sum_{n != 0} [k(n L) - B E_T k(S + n L)]. With k(s) <= min(log 2, (1 + |s|) e^(-|s|/2)), and
B T(|S| > x) <= 2 e^(-x/2) since E_R e^S = E_R 1 = 1, it is off by at most
    2.01 (1 + L) e^(-L/2) upward,   (2.01 (1 + L/2) + 1.5) e^(-L/4) downward,
for every law; the terms left out are not negative and below 8 step e^(-pi t) / (1 - e^(-pi step)) beyond t.

c_i - 1 = sum m (e^(z y) - 1 - z (e^y - 1)) + (z - 1) (mass ruled out), since the posterior sums to 1: small divergences
keep their digits.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._values import FloatArray
from .balls import Ball
from .laws import Beliefs

__all__ = ["jensen_shannon"]

_U = 2.0**-53
_SERIES = 20  # terms of e^(z y) for |z y| <= 1/2
_CELLS = 2**20
_DIGITS = 44.0  # e^-44 of the answer is left out


def jensen_shannon(parts: list[tuple[Beliefs, int]]) -> Ball:
    """JS of posterior and prior of the product of these parts, each so many times."""
    start, lost = _product(parts, np.zeros(1))
    scale = max(float(start[0]), float(lost[0]), 1e-300)
    if start[0] <= 0 and lost[0] == 0:
        return Ball(0.0)
    depth = _DIGITS - math.log(scale)
    period = 4 * (depth + math.log(4 * depth))
    step = 2 * math.pi / period
    nodes = step * np.arange(1 + math.ceil(depth / math.pi / step))
    change, error = _product(parts, nodes)
    with np.errstate(over="ignore"):
        weight = 2 * step / np.cosh(np.pi * nodes) / (1 + 4 * nodes**2)
    weight[0] /= 2
    value = math.fsum((weight * change).tolist())
    rounding = math.fsum((weight * (error + 8 * _U * (1 + np.pi * nodes) * np.abs(change))).tolist()) * (1 + 1e-9)
    beyond = 8 * step * math.exp(-math.pi * (nodes[-1] + step)) / -math.expm1(-math.pi * step)
    above = (2.01 * (1 + period / 2) + 1.5) * math.exp(-period / 4) + beyond
    below = 2.01 * (1 + period) * math.exp(-period / 2)
    return Ball(value, rounding + max(above, below) * (1 + 1e-9) + 1e-323)


def _product(parts: list[tuple[Beliefs, int]], t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """1 - Re prod c_i(t), and a bound on its error."""
    logs, size, fall = np.zeros(len(t), dtype=complex), np.zeros(len(t)), np.zeros(len(t))
    rounding = np.zeros(len(t))
    for part, times in parts:
        change, error = _overlap(part, t)
        log = _log1p(change)
        logs += times * log
        with np.errstate(divide="ignore", invalid="ignore"):
            modulus = np.abs(1 + change)
            share = np.where(error > 0, error / (modulus + error), 0.0)
            size += times * np.log(modulus + error)
            fall += times * np.log1p(-share)
            rounding += times * 16 * _U * (np.where(np.isfinite(log), np.abs(log), 0.0) + np.abs(change))
    with np.errstate(over="ignore", invalid="ignore"):
        rounding *= 1 + 0.1 * len(parts)
        found = -np.expm1(logs).real
        held = np.minimum(np.exp(size), 1.01)  # at most 1, being an overlap, but for rounding
        lost = held * (-np.expm1(fall) + np.expm1(rounding)) + 8 * _U * np.abs(found)
    return found, lost


def _log1p(x: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + x) to the precision of x."""
    a, b = x.real, x.imag
    near = np.abs(x) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        modulus = np.where(near, 0.5 * np.log1p(np.where(near, 2 * a + (a * a + b * b), 0.0)), np.log(np.abs(1 + x)))
    return np.asarray(modulus + 1j * np.arctan2(b, 1 + a))


def _overlap(part: Beliefs, t: FloatArray) -> tuple[NDArray[np.complex128], FloatArray]:
    """c(t) - 1 and a bound on its error."""
    y, m, v = part.ratio, part.mass, part.post
    half = (part.log_mass + y.times(0.5)).exp()
    change, error = np.empty(len(t), dtype=complex), np.empty(len(t))
    rows = max(1, _CELLS // len(y.mid))
    for start in range(0, len(t), rows):
        z = (0.5 + 1j * t[start : start + rows])[:, None]
        size = np.abs(z)
        near = np.abs(y.mid) * size < 0.5
        series, power = np.zeros(near.shape, dtype=complex), z * z
        x = np.where(near, y.mid, 0.0)
        factor = x
        for k in range(2, _SERIES):
            factor = factor * x / k
            series += (power - z) * factor
            power = power * z
        terms = np.where(near, m.mid * series, half.mid * np.exp(1j * z.imag * y.mid) - m.mid - z * (v.mid - m.mid))
        own = np.abs(terms)
        slope = 3 * size * size * (np.abs(y.mid) + y.rad)  # of the series: |z - 1| = |z|
        slack = np.where(
            near, 100 * _U * own + m.rad * np.abs(series) + (m.mid + m.rad) * slope * y.rad,
            half.rad + half.mid * (size * (y.rad + _U * np.abs(y.mid)) + 8 * _U)
            + (m.rad + m.mid * 4 * _U) * (1 + size) + (v.rad + v.mid * 4 * _U) * size,
        )  # fmt: skip
        many = (24 + math.log2(len(y.mid))) * _U
        row = slice(start, start + len(z))
        dead = (z[:, 0] - 1) * float(part.dead.mid)
        change[row] = terms.sum(axis=1) + dead
        error[row] = (
            slack.sum(axis=1) + many * own.sum(axis=1) + np.abs(dead) * 4 * _U
            + (size[:, 0] + 1) * (float(part.dead.rad) + 2 * part.groups.gap)
        ) * (1 + 1e-9)  # fmt: skip
    return change, error
