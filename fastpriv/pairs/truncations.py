"""The size of a Poisson sample against a cap: how often it overflows, and the rate of a record then.

Notation: c ~ Bin(n, q) others are drawn of n = N - 1; b_j = P(c = j); B the cap; tau = P(c >= B); q2 = E[q B / (c + 1)
| c >= B] = B / N (P(c > B) + q b_B) / tau, as P(Bin(N, q) > B) = P(c > B) + q P(c = B).

One b_j is computed by Stirling's series in 60 decimal digits, those around it by their quotients (n - j) / (j + 1) q /
(1 - q) in extended precision. The tail on the side of the cap that does not hold the mode is summed, until what is
left, at most a geometric series, is far below a rounding; the other tail is the rest of 1.
"""

# bounds: proved - roundings of products, and the rest of a series

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any, NamedTuple

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray

__all__ = ["Overflow", "overflow"]

Ends = tuple[float, float]

_DIGITS = 60  # of decimal numbers
_EXACT_FACTORIAL = 200  # factorials up to this one are exact
# bound: proved - log(2 pi), in more digits than are used
_LOG_2PI = Decimal("1.8378770664093454835606594728112352797227949472755668256343")
# bound: proved - B_2i / (2 i (2 i - 1)), i = 1 .. 8; for n >= 200 the next is below 1e-39
_STIRLING = ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156), (-3617, 122400))
_BLOCK = 2**16  # terms that are summed at once
# bound: proved - relative rounding of each quotient, and of a term of the sums
_QUOTIENT_ERROR = 8 * float(np.finfo(np.longdouble).eps)
_MOST_SIZES = 30  # caps whose sizes of samples are all told
# bound: proved - part of a sum that is left out; its error contains it
_NEGLIGIBLE = 1e-26


class Overflow(NamedTuple):
    """Logarithms of tau and of 1 - tau, and q2, each between two doubles; probabilities of 0 .. cap - 1 others, with
    their relative error, or none of them where one is below the smallest normal double.
    """

    log_tau: Ends
    log_rest: Ends
    rate: Ends
    sizes: FloatArray
    error: float


def _log_factorial(n: int) -> Decimal:
    if n <= _EXACT_FACTORIAL:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    series = sum((Decimal(a) / b / x ** (2 * i + 1) for i, (a, b) in enumerate(_STIRLING)), Decimal(0))
    return (x + Decimal("0.5")) * x.ln() - x + _LOG_2PI / 2 + series


def _log_probability(n: int, rate: float, j: int) -> float:
    """log b_j, within 2 roundings of its size."""
    with localcontext() as context:
        context.prec = _DIGITS
        q = Decimal(rate)
        choices = _log_factorial(n) - _log_factorial(j) - _log_factorial(n - j)
        return float(choices + j * q.ln() + (n - j) * (1 - q).ln())


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
    error = relative + 8 * UNIT_ROUNDOFF * (1.0 + abs(log))
    return log - error, min(log + error, 0.0)


def overflow(size: int, rate: float, cap: int) -> Overflow | None:
    """What a cap of at least 1 does to samples of ``size`` - 1 others at a rate; None where there is none beyond it."""
    n = size - 1
    if cap > n or rate == 0.0:
        return None
    share = cap / size
    if rate == 1.0:
        one = share * (1 - 2 * UNIT_ROUNDOFF), min(share * (1 + 2 * UNIT_ROUNDOFF), 1.0)
        return Overflow((0.0, 0.0), (-math.inf, -math.inf), one, np.zeros(0), 0.0)
    log_at = _log_probability(n, rate, cap)
    if cap > math.floor((n + 1) * rate):
        more, error = _quotient_sum(n, rate, cap, up=True)
        error += 4 * UNIT_ROUNDOFF
        log_tau = _outward(log_at + float(np.log1p(more)), error)
        log_rest = _log_of_rest(log_tau)
        taken = float((more + rate) / (1 + more))
    else:
        less, error = _quotient_sum(n, rate, cap - 1, up=False)
        error += 4 * UNIT_ROUNDOFF
        log_rest = _outward(_log_probability(n, rate, cap - 1) + float(np.log1p(less)), error)
        log_tau = _log_of_rest(log_rest)
        taken = 1.0 - (1.0 - rate) * math.exp(log_at - log_tau[0])
        error = (error + 16 * UNIT_ROUNDOFF * (1.0 + abs(log_at))) / max(taken, 2.0**-60)
    value = share * taken
    error += 16 * UNIT_ROUNDOFF
    ends = max(value * (1 - error), 0.0), min(value * (1 + error), 1.0)
    return Overflow(log_tau, log_rest, ends, *_sizes(n, rate, cap))


def _log_of_rest(log: Ends) -> Ends:
    """Of log(1 - x), by the ends of log x < 0."""
    low, high = (math.log(-math.expm1(one)) if one < 0.0 else -math.inf for one in reversed(log))
    return _outward(low, 0.0)[0], _outward(high, 0.0)[1]


def _sizes(n: int, rate: float, cap: int) -> tuple[FloatArray, float]:
    """b_0 .. b_(cap - 1) of a small cap."""
    if cap > _MOST_SIZES:
        return np.zeros(0), 0.0
    logs = np.array([_log_probability(n, rate, j) for j in range(cap)])
    found = np.exp(logs) if logs.min() > -600.0 else np.zeros(0)
    return found, 8 * UNIT_ROUNDOFF * (1.0 + float(-logs.min()))
