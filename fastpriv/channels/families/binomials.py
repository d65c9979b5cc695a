"""Binomial and Poisson laws by Loader's saddle-point form, and binomial coefficients.

Source: Loader 2000, "Fast and accurate computation of binomial probabilities".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._values import FloatArray

__all__ = ["log_choose", "log_comb", "log_pmf", "log_poisson", "unranked"]

_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
_SMALL = np.array([
    0.0, *(math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - _HALF_LOG_2PI for n in range(1, 16))
])  # fmt: skip
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_pmf(x: Any, n: int, log_q: float, log_other: float) -> FloatArray:
    """Log probability of x successes in n trials, each of probability e^log_q = 1 - e^log_other, in (0, 1)."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = n - x
        mean = n * math.exp(log_q)
        found = (_stirling(np.full_like(x, n)) - _stirling(x) - _stirling(y) - _deviance(x, mean)
                 - _deviance(y, n * math.exp(log_other))
                 + 0.5 * np.log(n / x / y) - _HALF_LOG_2PI)  # fmt: skip
    found = np.where(x == 0, n * log_other, np.where(y == 0, n * log_q, found))
    return np.where((x < 0) | (y < 0), -np.inf, found)


def log_poisson(x: Any, mean: float) -> FloatArray:
    """Log probability of x events where ``mean``, at least 0, are expected."""
    x = np.asarray(x, dtype=np.float64)
    if mean == 0.0:
        return np.where(x == 0, 0.0, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = -_stirling(x) - _deviance(x, mean) - 0.5 * np.log(x) - _HALF_LOG_2PI
    return np.where(x == 0, -mean, found)


def log_choose(n: int, x: Any) -> FloatArray:
    """Log of the number of x-subsets of n."""
    x = np.asarray(x, dtype=np.float64)
    return log_pmf(x, n, -math.log(2), -math.log(2)) + n * math.log(2) if n else np.zeros_like(x)


def log_comb(n: int, x: int) -> float:
    """The same for one pair of integers: exact before the log where that is quick."""
    if min(x, n - x) <= 1000:
        return math.log(math.comb(n, x))
    return float(log_choose(n, x))


def unranked(rank: int, size: int, k: int) -> Any:
    """The set with this colexicographic rank."""
    found = []
    for place in range(size, 0, -1):
        low, high = place - 1, k - 1  # the largest c with comb(c, place) <= rank
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if math.comb(middle, place) <= rank else (low, middle - 1)
        found.append(low)
        rank -= math.comb(low, place)
        k = low
    return np.array(found[::-1], dtype=np.int64)


def _stirling(n: FloatArray) -> FloatArray:
    """log n! - log(sqrt(2 pi n) (n / e)^n)."""
    small = n <= 15
    inverse = 1.0 / np.where(small, 16.0, n)
    series = inverse * np.polynomial.polynomial.polyval(inverse * inverse, _SERIES)
    return np.where(small, _SMALL[np.where(small, np.maximum(n, 0), 0).astype(np.int64)], series)


def _deviance(x: FloatArray, mean: float) -> FloatArray:
    """x log(x / mean) + mean - x, by its series where they are close."""
    v = (x - mean) / (x + mean)
    total, power = np.zeros_like(v), np.ones_like(v)
    near = np.abs(v) < 0.1
    small = np.where(near, v, 0.0)
    for i in range(1, 10):
        power = power * small * small
        total += power / (2 * i + 1)
    return np.where(near, (x - mean) * v + 2 * x * v * total, x * np.log(x / mean) + mean - x)
