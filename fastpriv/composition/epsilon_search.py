"""The least epsilon at which a privacy curve meets a delta, between two epsilons that certified bounds prove.

Notation: d the logarithm of delta, f(epsilon) = log delta(epsilon), falling; y = sqrt(-f), nearly straight in epsilon
for a sum of many losses. All targets d share the evaluations of the curve: every evaluated epsilon with an upper bound
of f at most d proves an end above, every one with a lower bound at least d an end below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..base.inverse import RootSearch
from ..base.numerics import FloatArray
from ..pairs.log_bounds import LogBounds

_METHOD = "root search; both bounds are proved"  # ``method`` of what is found
# bound: none - epsilons that are searched
_LEAST, _MOST = 1e-300, 1e300
_FIRST_FACTOR = 8.0  # by which epsilon grows while the curve is above all targets, twice as much each time
_LAST_GUESSED = 16.0  # factor up to which it grows less, where a straight y meets all targets
_MARGIN = 1.5  # of the distance to there
# bound: none - where the search stops or starts
_NEAR_FLOOR = 1e-9  # distance of log delta from its floor at which a larger epsilon has no smaller delta


class FoundEpsilon(NamedTuple):
    """Rows of values, lower and upper bounds."""

    rows: FloatArray
    method: str
    cost: dict[str, Any]


def least_epsilon(
    curve: Callable[[FloatArray], LogBounds], targets: FloatArray, rounding: FloatArray, floor: FloatArray,
    end: Callable[[], tuple[float, float]],
) -> FoundEpsilon:
    """The search for each of ``targets``, which are right within ``rounding``.

    ``floor`` brackets the logarithm of the probability of an infinite loss, ``end`` the largest sum of losses,
    where it is needed.
    """
    low, high = np.zeros(targets.size), np.full(targets.size, np.inf)
    value = np.zeros(targets.size)
    if targets.size == 0:
        return FoundEpsilon(np.stack([value, low, high]), _METHOD, {"evaluations": 0})
    at_zero = curve(np.zeros(1))
    # log sqrt(-f) is nearly straight in log epsilon where sqrt(-f) is so in epsilon.
    search = RootSearch(lambda epsilon: curve(epsilon).numbers, lambda logs: 0.5 * np.log(np.maximum(-logs, 0.0)))
    below, above = targets - rounding, targets + rounding  # an end above is proved at `below`, one below at `above`
    hopeless = above < floor[0]
    zero = np.isneginf(targets)
    low[hopeless], value[hopeless] = np.inf, np.inf
    if (zero & ~hopeless).any():
        least, most = end()
        low[zero & ~hopeless], high[zero & ~hopeless] = least, most
        value[zero & ~hopeless] = least if math.isinf(most) else 0.5 * (least + most)
    active = ~hopeless & ~zero
    met = active & (below >= at_zero.upper[0])
    high[met], active = 0.0, active & ~met
    if active.any():
        _bracket_targets(search, below[active], floor[1], end, math.sqrt(-at_zero.upper[0]))
        low[active], value[active], high[active] = search.solve(below[active], above[active])
        high[active] = np.maximum(np.minimum(high[active], end()[1]), low[active])
    reasons = []
    if np.isinf(high[zero & ~hopeless]).any():
        reasons.append("inf where delta = 0: the losses are unbounded")
    if np.isinf(high[~zero | hopeless]).any():
        reasons.append("inf where delta is below the probability of an infinite loss, or not proved to be above it")
    value = np.clip(value, low, high)
    cost = {"evaluations": search.x.size + 1}
    return FoundEpsilon(np.stack([value, low, high]), "; ".join([_METHOD, *reasons]), cost)


def _bracket_targets(
    search: RootSearch, targets: FloatArray, floor: float, end: Callable[[], tuple[float, float]], start: float
) -> None:
    """Larger and larger epsilons, until the curve is proved to be below all targets, or is at its end; then smaller and
    smaller ones, until it is above all of them. ``start`` is y at 0.
    """
    level, factor = 1.0, _FIRST_FACTOR
    while level < _MOST:
        search.add(np.array([level]))
        _, lower, upper = search.rows[:, -1]
        if upper <= targets.min() or upper <= floor + _NEAR_FLOOR:
            break
        if np.isneginf(lower) and end()[1] <= level:  # nothing is beyond, and the bounds tell nothing
            search.x, search.rows = search.x[:-1], search.rows[:, :-1]
            search.add(np.array([max(end()[1], _LEAST)]))
            search.rows[:, -1] = np.minimum(search.rows[:, -1], floor)
            break
        height, target = math.sqrt(-upper) - start, math.sqrt(-targets.min()) - start
        ahead = target / height if height > 0.0 and factor <= _LAST_GUESSED else math.inf  # where y is straight
        level, factor = level * min(factor, 1.0 + _MARGIN * (ahead - 1.0)), 2.0 * factor
    level, factor = float(search.x[0]), _FIRST_FACTOR
    while level > _LEAST and (search.x.size == 1 or search.rows[0, 0] < targets.max()):
        level, factor = max(level / factor, _LEAST), 2.0 * factor
        search.add(np.array([level]))
