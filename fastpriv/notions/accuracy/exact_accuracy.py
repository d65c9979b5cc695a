"""Probability of missing a target under Gaussian noise, in closed form.

Notation: Z is standard normal in k dimensions, s a shift, l = |s|_2^2 / 2, a a radius, x = a^2 / 2.
|s + Z|_2 > a has the probability sum_j Poisson(j; l) Q(k/2 + j, x), Q the regularised upper incomplete gamma function:
a sum of positive terms. The maximum norm exceeds a unless no coordinate does. Both fall in a and rise in every |s_i|.
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding of shifts, radii and norms; underflow

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import special
from ...base.binomial import log_poisson_pmf
from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...kernels import _channel_blocks, _gaussian_ball

Bounds = tuple[FloatArray, FloatArray, FloatArray]  # value, lower and upper

# bound: proved - docs/proofs/notions.md, 14.13: relative error of the Poisson sum, incomplete gamma functions and Phi
_RELATIVE_ERROR = 2e-11
# bound: proved - docs/proofs/roundings.md, 13.14: shifts, radii, norms, and half their squares, relative to the number
_ROUNDING = 16 * UNIT_ROUNDOFF
_MOST_TERMS = 2**17  # of the Poisson sum: a millisecond or so
_CLOSED_START = 5000.0  # e^-x is an extended double, and Stirling's series holds for orders near what is larger
_DEVIATIONS = 42.0  # standard deviations beyond which no mass counts, since e^(-42^2 / 2) < 1e-383


def has_gaussian_form(gap: FloatArray, sigma: float, alpha: FloatArray, norm: float) -> bool:
    """Whether ``gaussian_misses`` applies: not to the sum norm, nor to shifts whose Poisson sum is too long."""
    if gap.size == 1 or norm == math.inf or (norm == 2 and not gap.any()):
        return True
    largest = max(_length(gap), float(alpha.max(initial=0.0))) / sigma
    return norm == 2 and 2 * _DEVIATIONS * largest + _DEVIATIONS**2 < _MOST_TERMS


def gaussian_misses(gap: FloatArray, sigma: float, alpha: FloatArray, norm: float) -> Bounds:
    """P(||gap + sigma Z|| > alpha), for alpha of shape (A,)."""
    if gap.size > 1 and norm == 2 and not gap.any():
        out = np.empty((3, alpha.size))
        if _gaussian_ball.outside_ball(gap.size, sigma, alpha, out):
            far = np.isnan(out[0])
            out[:, far] = _by_sums(gap, sigma, alpha[far], norm)
        return out[0], out[1], out[2]
    return _by_sums(gap, sigma, alpha, norm)


def _by_sums(gap: FloatArray, sigma: float, alpha: FloatArray, norm: float) -> Bounds:
    shift, radius = np.abs(gap) / sigma, alpha / sigma
    value, low, high = (
        _beyond(shift * (1 + sign * _ROUNDING), radius * (1 - sign * _ROUNDING), norm) for sign in (0.0, -1.0, 1.0)
    )
    lower = np.clip(low * (1 - _RELATIVE_ERROR), 0.0, value)
    upper = np.clip(high * (1 + _RELATIVE_ERROR) + 1e-300, value, 1.0)
    return value, lower, upper


def _beyond(shift: FloatArray, radius: FloatArray, norm: float) -> FloatArray:
    """P(||shift + Z|| > radius)."""
    if shift.size == 1 or norm == math.inf:
        each = special.ndtr(shift - radius[:, None]) + special.ndtr(-shift - radius[:, None])
        if shift.size == 1:
            return np.asarray(np.minimum(each[:, 0], 1.0))
        with np.errstate(divide="ignore"):
            return np.asarray(-np.expm1(np.log1p(-np.minimum(each, 1.0)).sum(axis=1)))
    length = _length(shift)
    return np.array([_beyond_ball(shift.size, length, float(a)) for a in radius])


def _length(x: FloatArray) -> float:
    """The Euclidean norm."""
    with np.errstate(over="ignore"):
        return math.sqrt(_channel_blocks.accurate_sum(x * x))


def _beyond_ball(k: int, length: float, radius: float) -> float:
    """The Poisson sum; its terms peak between j = l, where the weights do, and j = length radius / 2."""
    half = 0.5 * length * length
    low = 0.5 * max(0.0, length - _DEVIATIONS) ** 2 - 1.0
    top = 0.5 * max(length, min(radius, length + _DEVIATIONS)) * length
    high = 0.5 * (math.sqrt(2.0 * max(top, half)) + _DEVIATIONS) ** 2 + 1.0
    j: Any = np.arange(max(0.0, math.floor(low)), math.ceil(high) + 1.0)
    return min(1.0, float(np.sum(np.exp(log_poisson_pmf(j, half)) * _gamma_tails(0.5 * k + j, radius))))


def _gamma_tails(order: FloatArray, radius: float) -> FloatArray:
    """Q(a, radius^2 / 2) for orders a in steps of 1 from a multiple of 1/2.

    It is erfc or 0, and the terms x^b e^-x / Gamma(b + 1) for b < a, whose quotients are x / b.
    """
    x, first = 0.5 * radius * radius, float(order[0] % 1.0)
    is_small = x <= _CLOSED_START
    low = first if is_small else first + float(np.floor(0.5 * (radius - _DEVIATIONS) * (radius - _DEVIATIONS)))
    top = min(float(order[-1]), 0.5 * (radius + _DEVIATIONS) * (radius + _DEVIATIONS) + 2.0)
    if low >= top:
        return np.zeros(order.size)
    b: Any = np.arange(low, top).astype(np.longdouble)
    centre = 0 if is_small else min(int(x - low), b.size - 1)
    falling = np.multiply.accumulate(b[centre:0:-1] / x)[::-1]
    terms = np.concatenate([falling, [1.0], np.multiply.accumulate(x / b[centre + 1 :])])
    smallest = np.exp(-np.longdouble(x)) * (2.0 * math.sqrt(x / math.pi) if first else 1.0)
    terms *= smallest if is_small else math.exp(log_poisson_pmf(float(b[centre]), x))
    sums = np.cumsum(np.append(special.erfc(math.sqrt(x)) if first and is_small else 0.0, terms))
    return np.asarray(sums[np.clip(order - low, 0, b.size).astype(np.intp)], dtype=np.float64)
