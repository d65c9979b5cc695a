"""Jensen-Shannon divergence of products, by one integral over the Chernoff coefficients of their factors.

Notation: R = prod R_i the prior, P = prod P_i the posterior, S = log dP/dR = sum y_i, z = 1/2 + i t, and
c_i(t) = E_{R_i} e^(z y_i) the Chernoff coefficient of factor i at the complex order z; B = c(0) is the Bhattacharyya
coefficient.

docs/proofs/posteriors.md, theorem 10.5: JS = log 2 - E_M h(S) with M = (P + R)/2 and h the entropy of the odds e^S.
Under the tilted dT = e^(S/2) dR / B, E_M h = B E_T k(S) with k(s) = cosh(s/2) h(s) = cosh(s/2) log(2 cosh(s/2)) - (s/2)
sinh(s/2), which satisfies k'' = k/4 - 1/(4 cosh(s/2)); its Fourier transform is (pi/2) sech(pi t) / (t^2 + 1/4). Hence

    JS = integral over the line of w(t) (1 - Re prod_i c_i(t)) dt,   w(t) = sech(pi t) / (1 + 4 t^2),

with a product under the integral, whatever the number of secrets. The trapezoidal rule with step 2 pi / L gives, by
Poisson's formula, JS + sum_{n != 0} [k(n L) - B E_T k(S + n L)]. With k(s) <= min(log 2, (1 + |s|) e^(-|s|/2)), and
B T(|S| > x) <= 2 e^(-x/2) since E_R e^S = E_R 1 = 1, its error is at most
    2.01 (1 + L) e^(-L/2) upward,   (2.01 (1 + L/2) + 1.5) e^(-L/4) downward,
for every distribution; the terms left out are not negative and below 8 step e^(-pi t) / (1 - e^(-pi step)) beyond t.

No digits cancel in small divergences: the posterior sums to 1, so c - 1 = sum m (e^(z y) - 1 - z (e^y - 1)) +
(z - 1) m_0 with m_0 the prior mass of secrets that are ruled out, and, with b = m e^(y/2), v = m e^y,
    Re (c - 1) = -2 sum b sin^2(t y / 2) - (sum m (e^(y/2) - 1)^2 + m_0) / 2,
    Im c = sum b (sin(t y) - t y) - t (sum b (2 sinh(y/2) - y) - m_0)   where |y| <= 1,
           sum b sin(t y) - t sum (v - m)                                elsewhere.
"""

# bounds: proved - docs/proofs/roundings.md, 13.22: rounding of the integrand and its sum; truncation is proved at the
#    head

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray
from .ball_arithmetic import Ball, select

_SINH_SERIES = [6 / math.factorial(2 * k + 1) for k in range(1, 8)]  # 6 (sinh(h) - h) / h^3 in powers of h^2
_SIN_SERIES = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, 10)]  # (sin(x) - x) / x in powers of x^2
_BLOCK_ENTRIES = 2**14  # matrix entries computed at a time: 128 KiB of doubles stay in the cache
_NEGLIGIBLE = 44.0  # nats; a relative truncation of e^-44 is far below the unit roundoff e^-36.7


class PosteriorMasses(NamedTuple):
    """Groups of secrets with their masses under prior and posterior."""

    ratio: Ball  # log of posterior over prior
    mass: Ball  # prior mass
    log_mass: Ball
    posterior_mass: Ball
    ruled_out_mass: Ball  # prior mass of secrets that are ruled out


def product_jensen_shannon(parts: Sequence[tuple[PosteriorMasses, int]]) -> Ball:
    """JS of posterior and prior of a product, whose factors are given with their multiplicities."""
    return product_type_jensen_shannon([part for part, _ in parts], np.array([[times for _, times in parts]]))[0]


def product_type_jensen_shannon(parts: Sequence[PosteriorMasses], counts: IntArray) -> Ball:
    """JS of several products; ``counts``, of shape (products, parts), has the multiplicity of each part in each."""
    start, error_of_product = _one_minus_product(_log_coefficients(parts, np.zeros(1)), counts)
    scale = np.maximum(np.maximum(start, error_of_product), 1e-300)[:, 0]
    nonzero = ~((start <= 0) & (error_of_product == 0))[:, 0]
    result = Ball(np.zeros(len(counts)), np.zeros(len(counts)))
    if not nonzero.any():
        return result
    log_accuracy = _NEGLIGIBLE - math.log(float(scale[nonzero].min()))
    period = 4 * (log_accuracy + math.log(4 * log_accuracy))
    step = 2 * math.pi / period
    nodes = step * np.arange(1 + math.ceil(log_accuracy / math.pi / step))
    with np.errstate(over="ignore"):
        weight = 2 * step / np.cosh(np.pi * nodes) / (1 + 4 * nodes**2)
    weight[0] /= 2
    tail = 8 * step * math.exp(-math.pi * (nodes[-1] + step)) / -math.expm1(-math.pi * step)
    above = (2.01 * (1 + period / 2) + 1.5) * math.exp(-period / 4) + tail
    below = 2.01 * (1 + period) * math.exp(-period / 2)
    truncation = max(above, below) * (1 + 1e-9) + 1e-323
    value, rad = np.zeros(len(counts)), np.zeros(len(counts))
    coefficients = _log_coefficients(parts, nodes)
    rows = max(1, _BLOCK_ENTRIES // len(nodes))
    for first in range(0, len(counts), rows):
        change, error = _one_minus_product(coefficients, counts[first : first + rows])
        uncertainty = weight * (error + 16 * UNIT_ROUNDOFF * (1 + np.pi * nodes) * np.abs(change))
        for i in range(len(change)):
            value[first + i] = math.fsum((weight * change[i]).tolist())
            rad[first + i] = math.fsum(uncertainty[i].tolist()) * (1 + 1e-9) + truncation
    return Ball(np.where(nonzero, value, 0.0), np.where(nonzero, rad, 0.0))


def _log_coefficients(parts: Sequence[PosteriorMasses], t: NDArray[Any]) -> list[tuple[Any, ...]]:
    """For each part: log c, log of a bound of |c|, log of 1 - error / that bound, and the rounding of log c."""
    terms = []
    for part in parts:
        change, error = _coefficient_minus_one(part, t)
        log = _complex_log1p(change)
        with np.errstate(divide="ignore", invalid="ignore"):
            modulus = np.abs(1 + change)
            share = np.where(error > 0, error / (modulus + error), 0.0)
            rounding = 16 * UNIT_ROUNDOFF * (np.where(np.isfinite(log), np.abs(log), 0.0) + np.abs(change))
            terms.append((log, np.log(modulus + error), np.log1p(-share), rounding))
    return terms


def _one_minus_product(coefficients: list[tuple[Any, ...]], counts: IntArray) -> tuple[FloatArray, FloatArray]:
    """1 - Re prod c_i(t) of each product, and a bound on its error."""
    shape = len(counts), len(coefficients[0][0])
    logs, size, fall, rounding = np.zeros(shape, dtype=complex), np.zeros(shape), np.zeros(shape), np.zeros(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        for (log, largest, certain, rounded), times in zip(coefficients, counts.T[:, :, None], strict=True):
            present = times > 0
            logs += np.where(present, times * log, 0.0)
            size += np.where(present, times * largest, 0.0)
            fall += np.where(present, times * certain, 0.0)
            rounding += times * rounded
    with np.errstate(over="ignore", invalid="ignore"):
        rounding *= 1 + 0.1 * len(coefficients)
        difference = -np.expm1(logs).real
        error_of_product = np.exp(size) * (-np.expm1(fall) + np.expm1(rounding))
        error_of_product += 64 * UNIT_ROUNDOFF * np.abs(difference)
    return difference, error_of_product


def _complex_log1p(x: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """log(1 + x), to the relative precision of x."""
    a, b = x.real, x.imag
    near = np.abs(x) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        modulus = np.where(near, 0.5 * np.log1p(np.where(near, 2 * a + (a * a + b * b), 0.0)), np.log(np.abs(1 + x)))
    return np.asarray(modulus + 1j * np.arctan2(b, 1 + a))


def _coefficient_minus_one(part: PosteriorMasses, t: FloatArray) -> tuple[NDArray[np.complex128], FloatArray]:
    """c(t) - 1 and a bound on its error."""
    y, m, v = part.ratio, part.mass, part.posterior_mass
    b = (part.log_mass + y.times(0.5)).exp()
    near = np.abs(y.mid) <= 1
    clipped = Ball(np.where(near, y.mid, 0.0), y.rad)
    growth = clipped.times(0.5).expm1()
    # m (e^(y/2) - 1)^2 is expanded where that does not cancel much
    squared_distance = select(near, m * growth * growth, v - b.times(2.0) + m).sum() + part.ruled_out_mass
    imaginary_slope = select(near, b * _sinh_excess(clipped), v - m).sum() - part.ruled_out_mass
    rounding_of_sums = (30 + math.log2(len(y.mid))) * UNIT_ROUNDOFF
    change, error = np.empty(len(t), dtype=complex), np.empty(len(t))
    rows = max(1, _BLOCK_ENTRIES // len(y.mid))
    for start in range(0, len(t), rows):
        row = slice(start, start + rows)
        t_column = t[row, None]
        x = t_column * y.mid
        half = np.sin(0.5 * x)
        sine_squares = 2 * b.mid * half * half
        sine_terms = np.where(near, _sin_deficit(x), np.sin(x))
        waves = b.mid * sine_terms
        imaginary = waves.sum(axis=1) - t[row] * imaginary_slope.mid
        change[row] = (-sine_squares.sum(axis=1) - 0.5 * squared_distance.mid) + 1j * imaginary
        # Relative errors of the masses times the sizes of the terms; then the uncertainty of y and of the phase t y.
        slope = np.where(near, np.minimum(np.abs(x) + t_column * y.rad, 2.0), 2.0)
        uncertainty = t_column * y.rad + 2 * UNIT_ROUNDOFF * np.abs(x)
        size = np.abs(x)
        rounding = UNIT_ROUNDOFF * np.where(near & (size >= 1), 16 * (size + 1), 32 * np.abs(sine_terms))
        slack = (2 * half * half + np.abs(sine_terms)) * b.rad + (b.mid + b.rad) * (
            2 * slope * uncertainty + 64 * UNIT_ROUNDOFF * half * half + rounding
        )
        error[row] = (
            slack.sum(axis=1)
            + rounding_of_sums * (sine_squares.sum(axis=1) + np.abs(waves).sum(axis=1))
            + squared_distance.rad
            + t[row] * (imaginary_slope.rad + 4 * UNIT_ROUNDOFF * abs(imaginary_slope.mid))
            + 4 * UNIT_ROUNDOFF * np.abs(change[row])
        ) * (1 + 1e-9)
    return change, error


def _sinh_excess(y: Ball) -> Ball:
    """2 sinh(y/2) - y for |y| <= 1."""
    h = 0.5 * y.mid
    z = h * h
    excess = h * z / 3 * np.polynomial.polynomial.polyval(z, _SINH_SERIES)
    return Ball(excess, y.rad * (np.abs(y.mid) + y.rad) ** 2 / 4 + 12 * UNIT_ROUNDOFF * np.abs(excess) + 1e-323)


def _sin_deficit(x: FloatArray) -> FloatArray:
    """sin(x) - x."""
    z = np.where(np.abs(x) < 1, x * x, 0.0)
    series = np.full(z.shape, _SIN_SERIES[-1])
    for coefficient in _SIN_SERIES[-2::-1]:
        series *= z
        series += coefficient
    return np.where(np.abs(x) < 1, x * z * series, np.sin(x) - x)
