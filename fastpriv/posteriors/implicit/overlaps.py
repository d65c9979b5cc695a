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

Small divergences keep their digits: the posterior sums to 1, so c - 1 = sum m (e^(z y) - 1 - z (e^y - 1)) + (z - 1) m_0
with m_0 the mass that is ruled out, and, with b = m e^(y/2), v = m e^y,
    Re (c - 1) = -2 sum b sin^2(t y / 2) - (sum m (e^(y/2) - 1)^2 + m_0) / 2,
    Im c = sum b (sin(t y) - t y) - t (sum b (2 sinh(y/2) - y) - m_0)   where |y| <= 1,
           sum b sin(t y) - t sum (v - m)                                elsewhere.
"""

# bounds: tested by enclosures/test_product_posteriors - rounding of the integrand and its sum; truncation is
#    proved at the head

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._values import FloatArray
from .balls import Ball

__all__ = ["TwoLaws", "jensen_shannon", "jensen_shannon_of_types"]

# bound: proved - half a unit in the last place of a double, IEEE 754
_U = 2.0**-53
_ARCH = [6 / math.factorial(2 * k + 1) for k in range(1, 8)]  # 3 (sinh(h) - h) / h^3 / (1/2) in powers of h^2
_SINE = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 10)]
_CELLS = 2**14
_DIGITS = 44.0  # e^-44 of the answer is left out


class TwoLaws(Protocol):
    """A law beside its prior, by groups of secrets: log ratios, masses under both, and the mass that is ruled out."""

    @property
    def ratio(self) -> Ball: ...  # noqa: D102
    @property
    def mass(self) -> Ball: ...  # noqa: D102
    @property
    def log_mass(self) -> Ball: ...  # noqa: D102
    @property
    def post(self) -> Ball: ...  # noqa: D102
    @property
    def dead(self) -> Ball: ...  # noqa: D102


def jensen_shannon(parts: Sequence[tuple[TwoLaws, int]]) -> Ball:
    """JS of posterior and prior of the product of these parts, each so many times."""
    return jensen_shannon_of_types([part for part, _ in parts], np.array([[times for _, times in parts]]))[0]


def jensen_shannon_of_types(parts: Sequence[TwoLaws], counts: NDArray[np.int64]) -> Ball:
    """The same of several products, of which ``counts`` (products, parts) says how often they hold each part."""
    start, lost = _products(parts, counts, np.zeros(1))
    scale = np.maximum(np.maximum(start, lost), 1e-300)[:, 0]
    differ = ~((start <= 0) & (lost == 0))[:, 0]
    found = Ball(np.zeros(len(counts)), np.zeros(len(counts)))
    if not differ.any():
        return found
    depth = _DIGITS - math.log(float(scale[differ].min()))
    period = 4 * (depth + math.log(4 * depth))
    step = 2 * math.pi / period
    nodes = step * np.arange(1 + math.ceil(depth / math.pi / step))
    with np.errstate(over="ignore"):
        weight = 2 * step / np.cosh(np.pi * nodes) / (1 + 4 * nodes**2)
    weight[0] /= 2
    beyond = 8 * step * math.exp(-math.pi * (nodes[-1] + step)) / -math.expm1(-math.pi * step)
    above = (2.01 * (1 + period / 2) + 1.5) * math.exp(-period / 4) + beyond
    below = 2.01 * (1 + period) * math.exp(-period / 2)
    left_out = max(above, below) * (1 + 1e-9) + 1e-323
    value, rad = np.zeros(len(counts)), np.zeros(len(counts))
    known = _parts_at(parts, nodes)
    rows = max(1, _CELLS // len(nodes))
    for first in range(0, len(counts), rows):
        change, error = _joined(known, counts[first : first + rows])
        unsure = weight * (error + 8 * _U * (1 + np.pi * nodes) * np.abs(change))
        for i in range(len(change)):
            value[first + i] = math.fsum((weight * change[i]).tolist())
            rad[first + i] = math.fsum(unsure[i].tolist()) * (1 + 1e-9) + left_out
    return Ball(np.where(differ, value, 0.0), np.where(differ, rad, 0.0))


def _products(parts: Sequence[TwoLaws], counts: NDArray[np.int64], t: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """1 - Re prod c_i(t) of each product, and a bound on its error."""
    return _joined(_parts_at(parts, t), counts)


def _parts_at(parts: Sequence[TwoLaws], t: NDArray[Any]) -> list[tuple[Any, ...]]:
    """Of each part log c, the log of the largest that |c| can be, what of it is certain, and relative roundings."""
    found = []
    for part in parts:
        change, error = _overlap(part, t)
        log = _log1p(change)
        with np.errstate(divide="ignore", invalid="ignore"):
            modulus = np.abs(1 + change)
            share = np.where(error > 0, error / (modulus + error), 0.0)
            rounding = 16 * _U * (np.where(np.isfinite(log), np.abs(log), 0.0) + np.abs(change))
            found.append((log, np.log(modulus + error), np.log1p(-share), rounding))
    return found


def _joined(known: list[tuple[Any, ...]], counts: NDArray[np.int64]) -> tuple[FloatArray, FloatArray]:
    shape = len(counts), len(known[0][0])
    logs, size, fall, rounding = np.zeros(shape, dtype=complex), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for (log, largest, certain, rounded), times in zip(known, counts.T[:, :, None], strict=True):
            present = times > 0
            logs += np.where(present, times * log, 0.0)
            size += np.where(present, times * largest, 0.0)
            fall += np.where(present, times * certain, 0.0)
            rounding += times * rounded
    with np.errstate(over="ignore", invalid="ignore"):
        rounding *= 1 + 0.1 * len(known)
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


def _overlap(part: TwoLaws, t: FloatArray) -> tuple[NDArray[np.complex128], FloatArray]:
    """c(t) - 1 and a bound on its error."""
    y, m, v = part.ratio, part.mass, part.post
    b = (part.log_mass + y.times(0.5)).exp()
    small = np.abs(y.mid) <= 1
    tame = Ball(np.where(small, y.mid, 0.0), y.rad)
    rise = tame.times(0.5).expm1()
    squares = Ball(np.where(small, (m * rise * rise).mid, 0.0), np.where(small, (m * rise * rise).rad, 0.0))
    apart = v - b.times(2.0) + m  # m (e^(y/2) - 1)^2, where that does not cancel much
    distance = Ball(np.where(small, squares.mid, apart.mid), np.where(small, squares.rad, apart.rad)).sum() + part.dead
    arch = b * _arch(tame)
    lift = Ball(np.where(small, arch.mid, (v - m).mid), np.where(small, arch.rad, (v - m).rad)).sum() - part.dead
    many = (30 + math.log2(len(y.mid))) * _U
    change, error = np.empty(len(t), dtype=complex), np.empty(len(t))
    rows = max(1, _CELLS // len(y.mid))
    for start in range(0, len(t), rows):
        row = slice(start, start + rows)
        here = t[row, None]
        x = here * y.mid
        half = np.sin(0.5 * x)
        halves = 2 * b.mid * half * half
        cubes = np.where(small, _sin_less(x), np.sin(x))
        waves = b.mid * cubes
        change[row] = (-halves.sum(axis=1) - 0.5 * distance.mid) + 1j * (waves.sum(axis=1) - t[row] * lift.mid)
        # sizes of the terms times relative errors; then what y is unsure of, and the phase t y that is rounded
        slope = np.where(small, np.minimum(np.abs(x) + here * y.rad, 2.0), 2.0)
        unsure = here * y.rad + 2 * _U * np.abs(x)
        plain = np.where(small & (np.abs(x) >= 1), 4 * _U * (np.abs(x) + 1), 8 * _U * np.abs(cubes))
        slack = (2 * half * half + np.abs(cubes)) * b.rad + (b.mid + b.rad) * (
            2 * slope * unsure + 16 * _U * half * half + plain)
        error[row] = (
            slack.sum(axis=1) + many * (halves.sum(axis=1) + np.abs(waves).sum(axis=1))
            + distance.rad + t[row] * (lift.rad + 4 * _U * abs(lift.mid))
            + 4 * _U * np.abs(change[row])
        ) * (1 + 1e-9)  # fmt: skip
    return change, error


def _arch(y: Ball) -> Ball:
    """2 sinh(y/2) - y for |y| <= 1."""
    h = 0.5 * y.mid
    z = h * h
    found = h * z / 3 * np.polynomial.polynomial.polyval(z, _ARCH)
    return Ball(found, y.rad * (np.abs(y.mid) + y.rad) ** 2 / 4 + 12 * _U * np.abs(found) + 1e-323)


def _sin_less(x: FloatArray) -> FloatArray:
    """sin(x) - x."""
    z = np.where(np.abs(x) < 1, x * x, 0.0)
    series = np.full(z.shape, _SINE[-1])
    for coefficient in _SINE[-2::-1]:
        series *= z
        series += coefficient
    return np.where(np.abs(x) < 1, x * z * series, np.sin(x) - x)
