"""Binomial probabilities with their errors, and the size of a Poisson sample against a cap.

Single probabilities: Stirling's series with its remainder, and the divergence of x / n from p in extended precision.

Overflow: how often a cap is exceeded, and the rate of a record then. c ~ Bin(n, q) others are drawn of n = N - 1; b_j =
P(c = j); B the cap; tau = P(c >= B); q2 = E[q B / (c + 1) | c >= B] = B / N (P(c > B) + q b_B) / tau, as P(Bin(N, q) >
B) = P(c > B) + q P(c = B). From one b_j those around it follow by their quotients (n - j) / (j + 1) q / (1 - q). The
tail on the side of the cap that does not hold the mode is summed, until what is left, at most a geometric series, is
far below a rounding; the other tail is the rest of 1.
"""

# bounds: proved - roundings of products, and the rest of a series

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray

Ends = tuple[float, float]

# bound: proved - unit roundoff of long doubles, twice as large as need be
EXTENDED_ROUNDOFF = float(np.finfo(np.longdouble).eps)
# bound: proved - relative error of probabilities in extended precision, and of their logarithms: at most 16 operations
#    of 2 units each
BINOMIAL_ERROR = 64 * EXTENDED_ROUNDOFF
_BLOCK = 2**16  # terms that are summed at once
# bound: proved - relative rounding of each quotient, and of a term of the sums
_QUOTIENT_ERROR = 8 * EXTENDED_ROUNDOFF
_MOST_SIZES = 30  # caps whose sizes of samples are all told
# bound: proved - part of a sum that is left out; its error contains it
_NEGLIGIBLE = 1e-26


def binomial_log_probabilities(x: Any, n: Any, p: Any, complement: Any) -> tuple[Any, Any]:
    """Logarithms of Bin(n, p)(x) and their errors in extended precision; p and its ``complement`` right to 64 units."""
    x, n = np.broadcast_arrays(np.asarray(x, dtype=np.longdouble), np.asarray(n, dtype=np.longdouble))
    difference = x - n * p
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(x > 0, x * np.log1p(difference / (n * p)), 0)
        second = np.where(x < n, (n - x) * np.log1p(-difference / (n * complement)), 0)
        root = 0.5 * np.log(n / (2 * np.pi * np.longdouble(1) * x * (n - x))) + 0.5 * _TWO_PI_CORRECTION
        value = root + _stirling(n) - _stirling(x) - _stirling(n - x) - first - second
        log_p, log_rest = (np.log(p), np.log1p(-p)) if p < 0.5 else (np.log1p(-complement), np.log(complement))
        ends = np.where(x == 0, np.where(n > 0, n * log_rest, 0), n * log_p)
    end = (x == 0) | (x == n)
    sizes = np.where(end, np.abs(ends), np.abs(first) + np.abs(second) + np.abs(difference) + np.abs(root))
    return np.where(end, ends, value), (2 + sizes) * 4 * BINOMIAL_ERROR + 1e-17


# log(2 pi) with pi as a double, beside log(2 pi) itself
_TWO_PI_CORRECTION = np.log(2 * np.longdouble(np.pi)) - np.longdouble("1.8378770664093454835606594728112353")
_FIRST = np.arange(1, 16, dtype=np.longdouble)  # n of the table below
# log n! - (n + 1/2) log n + n - log(2 pi) / 2, from the factorials.
_FIRST_STIRLING = np.array([np.log(np.longdouble(math.factorial(int(i)))) for i in _FIRST]) - (
    (_FIRST + 0.5) * np.log(_FIRST) - _FIRST + np.longdouble("1.8378770664093454835606594728112353") / 2
)


def _stirling(n: Any) -> Any:
    """The remainder of Stirling's formula for integers n >= 0, 0 at 0; the series errs by its next term, 2e-18."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = 1 / np.maximum(n, 16)
        x = y * y
        series = np.longdouble(0)
        for numerator, denominator in ((-691, 360360), (1, 1188), (-1, 1680), (1, 1260), (-1, 360), (1, 12)):
            series = np.longdouble(numerator) / denominator + x * series
    small = np.concatenate([[np.longdouble(0)], _FIRST_STIRLING])
    return np.where(n < 16, small[np.minimum(n, 15).astype(np.int64)], y * series)


class Overflow(NamedTuple):
    """Logarithms of tau and of 1 - tau, and q2, each between two doubles; probabilities of 0 .. cap - 1 others, with
    their relative error, or none of them where one is below the smallest normal double.
    """

    log_tau: Ends
    log_rest: Ends
    rate: Ends
    sizes: FloatArray
    error: float


def _quotient_sum(n: int, rate: float, start: int, up: bool) -> tuple[Any, float]:
    """Sum of b_j / b_start over j beyond start, away from the mode, and its relative error."""
    odds = np.longdouble(rate) / (1 - np.longdouble(rate))
    total, last, done = np.longdouble(0), np.longdouble(1), 0
    limit = n - start if up else start
    while done < limit:
        steps = np.arange(done, min(done + _BLOCK, limit))
        j = (start + steps if up else start - steps).astype(np.longdouble)
        ratios = (n - j) / (j + 1) * odds if up else j / (n - j + 1) / odds
        terms = last * np.cumprod(ratios)
        total += terms.sum()
        last, done = terms[-1], done + steps.size
        if ratios[-1] < 1 and last * ratios[-1] / (1 - ratios[-1]) <= _NEGLIGIBLE * total:
            break
    return total, (done + 2) * _QUOTIENT_ERROR + 2 * _NEGLIGIBLE


def _outward(log: float, relative: float) -> Ends:
    error = float(relative) + 8 * UNIT_ROUNDOFF * (1.0 + abs(float(log)))
    return float(log) - error, min(float(log) + error, 0.0)


def overflow(size: int, rate: float, cap: int) -> Overflow | None:
    """What a cap of at least 1 does to samples of ``size`` - 1 others at a rate; None where there is none beyond it."""
    n = size - 1
    if cap > n or rate == 0.0:
        return None
    share = cap / size
    if rate == 1.0:
        item = share * (1 - 2 * UNIT_ROUNDOFF), min(share * (1 + 2 * UNIT_ROUNDOFF), 1.0)
        return Overflow((0.0, 0.0), (-math.inf, -math.inf), item, np.zeros(0), 0.0)
    log_at, rounding = _log_probability(n, rate, cap)
    if cap > math.floor((n + 1) * rate):
        more, error = _quotient_sum(n, rate, cap, up=True)
        error += rounding + 4 * UNIT_ROUNDOFF
        log_tau = _outward(log_at + float(np.log1p(more)), error)
        log_rest = _log_of_rest(log_tau)
        taken = float((more + rate) / (1 + more))
    else:
        less, error = _quotient_sum(n, rate, cap - 1, up=False)
        log_below, below_rounding = _log_probability(n, rate, cap - 1)
        error += below_rounding + 4 * UNIT_ROUNDOFF
        log_rest = _outward(log_below + float(np.log1p(less)), error)
        log_tau = _log_of_rest(log_rest)
        taken = 1.0 - (1.0 - rate) * math.exp(log_at - log_tau[0])
        error = (error + rounding + 16 * UNIT_ROUNDOFF * (1.0 + abs(log_at))) / max(taken, 2.0**-60)
    value = share * taken
    error += 16 * UNIT_ROUNDOFF
    ends = max(value * float(1 - error), 0.0), min(value * float(1 + error), 1.0)
    return Overflow(log_tau, log_rest, ends, *_sizes(n, rate, cap))


def _log_of_rest(log: Ends) -> Ends:
    """Of log(1 - x), by the ends of log x < 0."""
    low, high = (math.log(-math.expm1(item)) if item < 0.0 else -math.inf for item in reversed(log))
    return _outward(low, 0.0)[0], _outward(high, 0.0)[1]


def _sizes(n: int, rate: float, cap: int) -> tuple[FloatArray, float]:
    """b_0 .. b_(cap - 1) of a small cap."""
    if cap > _MOST_SIZES:
        return np.zeros(0), 0.0
    logs, errors = _log_probability(n, rate, np.arange(cap))
    result = np.exp(logs).astype(np.float64) if logs.min() > -600.0 else np.zeros(0)
    return result, float(errors.max()) + 8 * UNIT_ROUNDOFF * (1.0 + float(-logs.min()))


def _log_probability(n: int, rate: float, j: Any) -> tuple[Any, Any]:
    """log b_j in extended precision, with its error."""
    q = np.longdouble(rate)
    return binomial_log_probabilities(j, n, q, 1 - q)
