"""Compositions of a pair with two labels that are told: a sum over the number of releases with the second one.

Notation: with probability tau a release is of pair 2, else of pair 1, independently; k releases. Then delta = sum_j
b_j delta_j with b_j = Bin(k, tau)(j) and delta_j that of k - j releases of pair 1, j of pair 2, and all other pairs.
What is left out is between 0 and the sum of its b_j.
"""

# bounds: proved - roundings of sums of logarithms

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair

# bound: none - numbers of releases with the second label that are taken; beyond it nothing is said
_MOST_TERMS = 400
# bound: none - log of the part of the largest term that is left out
_LEFT_OUT = -34.0
_LARGEST_COUNT = 10**7  # releases whose binomial weights are listed
# bound: proved - roundings of log b_j, a sum of so many logarithms in extended precision
_TERM_ERROR = 8 * float(np.finfo(np.longdouble).eps)


def labelled_bounds(
    pairs: Sequence[DominatingPair],
    epsilon: FloatArray,
    bounds_of: Callable[[Sequence[DominatingPair], FloatArray], LogBounds],
) -> LogBounds | None:
    """Bounds of log delta; None of other compositions, or where too many terms count."""
    labelled = [pair for pair in pairs if pair.labels is not None]
    if len(labelled) != 1 or labelled[0].count > _LARGEST_COUNT:
        return None
    pair, others = labelled[0], [item for item in pairs if item.labels is None]
    assert pair.labels is not None
    (remainder, first), (tau, second) = pair.labels
    lower_b, upper_b = _log_binomials(pair.count, remainder, tau)
    lower, upper, largest = np.full((3, epsilon.size), -np.inf)
    order = np.argsort(-upper_b, kind="stable")
    if np.count_nonzero(upper_b > upper_b.max() + _LEFT_OUT) > _MOST_TERMS:
        return None
    taken = 0
    for j in order[:_MOST_TERMS].tolist():
        rest_of_terms = upper_b[j] + math.log(order.size - taken)
        if upper_b[j] == -np.inf or (taken and (rest_of_terms < largest + _LEFT_OUT).all()):
            break
        counts = ((first, pair.count - j), (second, j))
        result = bounds_of([*(entry.repeated(n) for entry, n in counts if n), *others], epsilon)
        lower, upper = np.logaddexp(lower, lower_b[j] + result.lower), np.logaddexp(upper, upper_b[j] + result.upper)
        largest, taken = np.maximum(largest, upper_b[j] + result.upper), taken + 1
    if taken < order.size:
        beyond = upper_b[order[taken:]]
        upper = np.logaddexp(upper, float(np.logaddexp.reduce(beyond)))
    rounding = 4 * UNIT_ROUNDOFF * (taken + 4)
    with np.errstate(invalid="ignore"):
        lower = np.where(np.isfinite(lower), lower - rounding * (1.0 + np.abs(lower)), lower)
        upper = np.where(np.isfinite(upper), np.minimum(upper + rounding * (1.0 + np.abs(upper)), 0.0), upper)
    return LogBounds.of_bounds(lower, upper, {"labels": taken}, "sum over labels")


def _log_binomials(
    count: int, log_complement: tuple[float, float], tau: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """Bounds of log b_j, j = 0 .. count."""
    j = np.arange(1, count + 1, dtype=np.longdouble)
    choices = np.concatenate([[0], np.cumsum(np.log((count + 1 - j) / j))])
    number = np.arange(count + 1, dtype=np.longdouble)
    error = (count + 4) * _TERM_ERROR * (1.0 + math.log(count + 1)) if count > 1 else 4 * _TERM_ERROR
    rows = []
    for i, sign in ((0, -1.0), (1, 1.0)):
        with np.errstate(invalid="ignore"):
            parts = (count - number, log_complement[i]), (number, tau[i])
            sides = [np.where(n == 0, 0, n * np.longdouble(end)) for n, end in parts]
            logs = (choices + sides[0] + sides[1]).astype(np.float64)
            logs += sign * (error + 4 * UNIT_ROUNDOFF * (1.0 + np.abs(np.where(np.isfinite(logs), logs, 0.0))))
        rows.append(logs)
    return rows[0], rows[1]
