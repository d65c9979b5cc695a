"""Elementary bounds that every answer of a composition has to meet, by reasoning that the engines do not share.

Notation: delta(epsilon) = sup over events E of P(E) - e^epsilon Q(E) for P, Q the product of all releases, with curves
delta_i of the single releases; chi^2 + 1 = E_P dP/dQ = M, the product of the M_i^k_i: log M is the Renyi divergence of
order 2.

* Data processing: one release tells no more than all, delta >= delta_i. The curves of single releases that are closed
  forms, of mixtures, Laplace noise and outcomes, are evaluated at many epsilons once for a composition.
* (1 - e^(epsilon - S))^+ <= e^(S - epsilon) / 4, so that delta <= M e^-epsilon / 4 (Markov); and delta <= delta(0), the
  total variation distance, <= sqrt(M - 1) / 2 (Cauchy and Schwarz), in either order of P and Q.
* delta falls with epsilon.
* At epsilon = 0 both orders have one delta.

Each is a second enclosure of the same number: where it meets the first, the answer is their intersection; where it does
not, one of both is false, and the answer is the hull of both, of which ``method`` says so (``reconcile_bounds``).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..base.numerics import LARGEST_DOUBLE, FloatArray, reconcile_bounds
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import BoundingPairs
from ..pairs.sampled_curves import PairBase
from .joint_bounds import sum_of_divergences

WIDENED = "widened: elementary bounds disagree with it"  # in ``method``

# bound: none - epsilons at which single releases are looked at; delta falls between them
_LEVELS = np.concatenate([[0.0], np.geomspace(1e-6, 700.0, 191)])
_MOST_TERMS = 512  # components or outcomes of a pair whose single release is looked at
# bound: proved - rounding of sums of logarithms, relative to 1 + their sizes
_ROUNDING = 1e-12


class _Elementary(NamedTuple):
    """Bounds of log delta: from below at each of ``_LEVELS``; from above ``log_moment`` - epsilon, and the logarithm of
    the total variation distance."""

    lower: FloatArray
    log_moment: float
    log_distance: float


def checked(pairs: BoundingPairs, epsilon: FloatArray, bounds: LogBounds) -> LogBounds:
    """The bounds of log delta at epsilon >= 0, reconciled with the elementary ones."""
    table = _elementary(pairs)
    lower = table.lower[np.searchsorted(_LEVELS, epsilon)]  # delta is at least that at the next level
    upper = np.minimum(table.log_moment - np.minimum(epsilon, LARGEST_DOUBLE), table.log_distance)
    if not ((lower <= bounds.lower) & (bounds.lower <= bounds.upper) & (bounds.upper <= upper)).all():
        bounds = reconciled(bounds, lower, upper)
    order = slice(None) if (epsilon[1:] >= epsilon[:-1]).all() else np.argsort(epsilon, kind="stable")
    below, above = bounds.lower[order], bounds.upper[order]
    if (below[:-1] >= below[1:]).all() and (above[:-1] >= above[1:]).all():
        return bounds
    lower[order] = np.append(np.maximum.accumulate(below[:0:-1])[::-1], -np.inf)  # of all larger epsilons
    upper[order] = np.append(0.0, np.minimum.accumulate(above[:-1]))  # and of all smaller ones
    return reconciled(bounds, lower, upper)


def reconciled(bounds: LogBounds, lower: FloatArray, upper: FloatArray) -> LogBounds:
    """``bounds`` reconciled with another enclosure of the same numbers."""
    low, high, disagree = reconcile_bounds((bounds.lower, bounds.upper), (lower, upper))
    method = f"{bounds.method}, {WIDENED}" if disagree.any() else bounds.method
    return LogBounds(np.clip(bounds.value, low, high), low, high, bounds.cost, method)


@lru_cache(maxsize=256)
def _elementary(pairs: BoundingPairs) -> _Elementary:
    lower = np.full(_LEVELS.size + 1, -np.inf)
    for pair in {pair.repeated(1) for part in pairs.alternatives for pair in part if pair.count and pair.has_moments}:
        if sum(map(len, pair.mixtures or pair.atoms or ())) <= _MOST_TERMS:
            lower[:-1] = np.maximum(lower[:-1], PairBase(pair)(_LEVELS, _LEVELS)[0])
    used = [pair for pair in pairs.dominating if pair.count]
    forward, backward = (sum_of_divergences(order, 2.0)[1] for order in (used, [pair.reversed() for pair in used]))
    least = min(forward, backward)
    distance = 0.5 * _log_expm1(least) - math.log(2.0)
    return _Elementary(
        lower, forward - math.log(4.0) + _ROUNDING * (1.0 + abs(forward)),
        min(0.0, distance + _ROUNDING * (1.0 + abs(distance))) if distance > -math.inf else 0.0,
    )


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x)) if 0.0 < x < math.inf else (-math.inf if x == 0.0 else x)
