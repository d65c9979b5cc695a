"""Misses of a target under Gaussian noise, in closed form.

Notation: Z is standard normal in k dimensions, s a shift, l = |s|_2^2 / 2, a a radius, x = a^2 / 2. |s + Z|_2 > a has
the probability sum_j Poisson(j; l) Q(k/2 + j, x), Q the regularised upper incomplete gamma function: a sum of positive
terms. The maximum norm exceeds a unless no coordinate does. Both fall in a and rise in every |s_i|.
"""

# bounds: tested by enclosures/test_pac - rounding of a Euclidean norm; underflow

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

from ..._values import FloatArray
from ...channels.families.binomials import log_poisson
from ...kernels import _table

__all__ = ["closed_form", "misses"]

# bound: tested by enclosures/test_pac - relative error of the sum and of SciPy's functions in it
_RELATIVE = 1e-11  # of the sum and of the functions in it
# bound: proved - four roundings of (secret - target) / sigma and of alpha / sigma
_ROUNDING = 4 * 2.0**-53  # of (secret - target) / sigma and of alpha / sigma, relative
_TERMS = 2**17
_FAR = 42.0  # standard deviations beyond which nothing counts, since e^(-42^2 / 2) < 1e-383


def closed_form(gap: FloatArray, sigma: float, alpha: FloatArray, norm: float) -> bool:
    """Whether there is one: for the sum norm on the line alone, and for a shift that needs no endless sum."""
    if gap.size == 1 or norm == math.inf:
        return True
    reach = max(_length(gap), float(alpha.max(initial=0.0))) / sigma
    return norm == 2 and 2 * _FAR * reach + _FAR**2 < _TERMS


def misses(gap: FloatArray, sigma: float, alpha: FloatArray, norm: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, lower and upper of P(||gap + sigma Z|| > alpha), for alpha of shape (A,)."""
    shift = np.abs(gap) / sigma
    radius = alpha / sigma
    slack = _ROUNDING + 2.0**-53 * math.sqrt(gap.size)
    found = [
        _beyond(shift * (1 + sign * slack), radius * (1 - sign * slack), norm) for sign in (0.0, -1.0, 1.0)
    ]  # fmt: skip
    value, low, high = found
    lower = np.clip(low * (1 - _RELATIVE), 0.0, value)
    upper = np.clip(high * (1 + _RELATIVE) + 1e-300, value, 1.0)
    return value, lower, upper


def _beyond(shift: FloatArray, radius: FloatArray, norm: float) -> FloatArray:
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
        return math.sqrt(_table.accurate_sum(x * x))


def _beyond_ball(k: int, length: float, radius: float) -> float:
    """The sum; its terms peak between j = l, where the weights do, and j = length radius / 2."""
    half, x = 0.5 * length * length, 0.5 * radius * radius
    low = 0.5 * max(0.0, length - _FAR) ** 2 - 1.0
    top = 0.5 * max(length, min(radius, length + _FAR)) * length
    high = 0.5 * (math.sqrt(2.0 * max(top, half)) + _FAR) ** 2 + 1.0
    j: Any = np.arange(max(0.0, math.floor(low)), math.ceil(high) + 1.0)
    return min(1.0, float(np.sum(np.exp(log_poisson(j, half)) * special.gammaincc(0.5 * k + j, x))))
