"""Binomial and Poisson probabilities by Loader's saddle-point form, and binomial coefficients.

Notation: log n! = log(sqrt(2 pi n) (n / e)^n) + s(n) with the Stirling remainder s, and D(x, m) = x log(x / m) + m - x
is the deviance. The binomial probability of x in n is sqrt(n / (2 pi x y)) exp(s(n) - s(x) - s(y) - D(x, n q) -
D(y, n (1 - q))), y = n - x: no large terms cancel.

Source: Loader 2000, "Fast and accurate computation of binomial probabilities".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .numerics import LOG_2, FloatArray

__all__ = ["HALF_LOG_2PI", "log_binomial_coefficients", "log_binomial_pmf", "log_comb", "log_poisson_pmf"]

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)  # log normaliser of the standard normal density
_REMAINDERS = np.array(
    [0.0, *(math.lgamma(n + 1) - (n + 0.5) * math.log(n) + n - HALF_LOG_2PI for n in range(1, 16))]
)  # s(0) .. s(15), of which s(0) is a placeholder
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # of n s(n) in powers of 1 / n^2


def log_binomial_pmf(x: Any, n: int, log_q: float, log_other: float) -> FloatArray:
    """Log probability of x successes in n trials, each of probability e^log_q = 1 - e^log_other, in (0, 1)."""
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        y = n - x
        logs = (_stirling_remainder(np.full_like(x, n)) - _stirling_remainder(x) - _stirling_remainder(y)
                - _deviance(x, n * math.exp(log_q)) - _deviance(y, n * math.exp(log_other))
                + 0.5 * np.log(n / x / y) - HALF_LOG_2PI)
    logs = np.where(x == 0, n * log_other, np.where(y == 0, n * log_q, logs))
    return np.where((x < 0) | (y < 0), -np.inf, logs)


def log_poisson_pmf(x: Any, mean: float) -> FloatArray:
    """Log probability of x events where ``mean``, at least 0, are expected."""
    x = np.asarray(x, dtype=np.float64)
    if mean == 0.0:
        return np.where(x == 0, 0.0, -np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = -_stirling_remainder(x) - _deviance(x, mean) - 0.5 * np.log(x) - HALF_LOG_2PI
    return np.where(x == 0, -mean, logs)


def log_binomial_coefficients(n: int, x: Any) -> FloatArray:
    """Logs of the numbers of subsets of n with x members: binomial probabilities at 1/2, times 2^n."""
    x = np.asarray(x, dtype=np.float64)
    return log_binomial_pmf(x, n, -LOG_2, -LOG_2) + n * LOG_2 if n else np.zeros_like(x)


def log_comb(n: int, x: int) -> float:
    """Log of one binomial coefficient: exact before the log where that is quick."""
    if min(x, n - x) <= 1000:
        return math.log(math.comb(n, x))
    return float(log_binomial_coefficients(n, x))


def _stirling_remainder(n: FloatArray) -> FloatArray:
    small = n <= 15
    inverse = 1.0 / np.where(small, 16.0, n)
    series = inverse * np.polynomial.polynomial.polyval(inverse * inverse, _SERIES)
    return np.where(small, _REMAINDERS[np.where(small, np.maximum(n, 0), 0).astype(np.int64)], series)


def _deviance(x: FloatArray, mean: float) -> FloatArray:
    """x log(x / mean) + mean - x, by its series in v = (x - mean) / (x + mean) where they are close."""
    v = (x - mean) / (x + mean)
    total, power = np.zeros_like(v), np.ones_like(v)
    near = np.abs(v) < 0.1
    small = np.where(near, v, 0.0)
    for i in range(1, 10):
        power = power * small * small
        total += power / (2 * i + 1)
    return np.where(near, (x - mean) * v + 2 * x * v * total, x * np.log(x / mean) + mean - x)
