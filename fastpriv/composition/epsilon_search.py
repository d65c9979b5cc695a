"""The least epsilon at which a privacy curve meets a delta, between two epsilons that certified bounds prove.

Notation: d the logarithm of delta, f(epsilon) = log delta(epsilon), falling; y = sqrt(-f), nearly straight in epsilon
for a sum of many losses. All targets d share the evaluations of the curve: every evaluated epsilon with an upper bound
of f at most d proves an end above, every one with a lower bound at least d an end below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..base.numerics import LARGEST_DOUBLE, UNIT_ROUNDOFF, FloatArray
from ..pairs.log_bounds import LogBounds

__all__ = ["FoundEpsilon", "least_epsilon"]

_METHOD = "safeguarded secants between two proofs"  # ``method`` of what is found
_MOST_ROUNDS = 80  # rounds of evaluations: bisection of all doubles takes 64 of them
# bound: none - relative widths of a bracket at which a search ends
_NARROW = 4 * UNIT_ROUNDOFF
_MARGIN = 1.5  # by how much more than expected the ends lie outside of the root
_FIRST_FACTOR = 8.0  # by which epsilon grows while the curve is above all targets, twice as much each time
# bound: none - where the search stops or starts
_NEAR_FLOOR = 1e-9  # distance of log delta from its floor at which a larger epsilon has no smaller delta
# bound: none - where the search starts
_LEAST_SHARE = 1e-8  # of the upper end of a bracket, that counts as its lower end where that is 0
_MOST_HALVINGS = 24  # of the gap between the root and an end
# bound: none - relative width of a bracket whose ends are searched on, and the share of it that is left to them
_WIDE, _SETTLED = 1e-7, 0.05


class FoundEpsilon(NamedTuple):
    """Rows of values, lower and upper bounds."""

    rows: FloatArray
    method: str
    cost: dict[str, Any]


def least_epsilon(
    curve: Callable[[FloatArray], LogBounds], targets: FloatArray, rounding: FloatArray, floor: FloatArray,
    end: Callable[[], tuple[float, float]],
) -> FoundEpsilon:  # fmt: skip
    """The search for each of ``targets``, which are right within ``rounding``.

    ``floor`` brackets the logarithm of the probability of an infinite loss, ``end`` the largest sum of losses,
    where it is needed.
    """
    low, high = np.zeros(targets.size), np.full(targets.size, np.inf)
    value = np.zeros(targets.size)
    if targets.size == 0:
        return FoundEpsilon(np.stack([value, low, high]), _METHOD, {"evaluations": 0})
    search = _Search(curve, end)
    search.evaluate(np.zeros(1))
    below, above = targets - rounding, targets + rounding  # an end above is proved at `below`, one below at `above`
    hopeless = above < floor[0]
    zero = np.isneginf(targets)
    low[hopeless], value[hopeless] = np.inf, np.inf
    if (zero & ~hopeless).any():
        least, most = search.end
        low[zero & ~hopeless], high[zero & ~hopeless] = least, most
        value[zero & ~hopeless] = least if math.isinf(most) else 0.5 * (least + most)
    active = ~hopeless & ~zero
    met = active & (below >= search.logs[0][2])
    high[met], active = 0.0, active & ~met
    if active.any():
        search.solve(below[active], above[active], floor[1])
        search.tighten(below[active], above[active])
        low[active], value[active], high[active] = search.ends(below[active], above[active])
    reasons = []
    if np.isinf(high[zero & ~hopeless]).any():
        reasons.append("inf where delta = 0: the losses are unbounded")
    if np.isinf(high[~zero | hopeless]).any():
        reasons.append("inf where delta is below the probability of an infinite loss, or not proved to be above it")
    value = np.clip(value, low, high)
    cost = {"evaluations": len(search.logs)}
    return FoundEpsilon(np.stack([value, low, high]), "; ".join([_METHOD, *reasons]), cost)


class _Search:
    """The evaluated epsilons in order, with value, lower and upper bound of f at each."""

    def __init__(self, curve: Callable[[FloatArray], LogBounds], end: Callable[[], tuple[float, float]]) -> None:
        self.curve, self.make_end = curve, end
        self.epsilon = np.empty(0)
        self.logs = np.empty((0, 3))

    @cached_property
    def end(self) -> tuple[float, float]:
        """Bounds of the largest sum of losses, beyond which the curve is at its floor."""
        return self.make_end()

    def evaluate(self, epsilon: FloatArray) -> bool:
        """Evaluate what is new; whether there was any."""
        new = np.setdiff1d(np.unique(epsilon), self.epsilon)
        if new.size == 0:
            return False
        found = self.curve(new)
        at = np.searchsorted(self.epsilon, new)
        self.epsilon = np.insert(self.epsilon, at, new)
        self.logs = np.insert(self.logs, at, np.stack(found[:3], axis=1), axis=0)
        return True

    def proved(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each target the largest epsilon that is proved to be too small, and the least that is enough."""
        least = np.minimum.accumulate(self.logs[:, 2])  # falling: the true curve is
        most = np.maximum.accumulate(self.logs[::-1, 1])[::-1]
        enough = np.searchsorted(-least, -below)
        small = np.searchsorted(-most, -above, side="right") - 1
        ends = np.append(self.epsilon, np.inf)
        return np.where(small >= 0, self.epsilon[np.maximum(small, 0)], 0.0), ends[enough]

    def solve(self, below: FloatArray, above: FloatArray, floor: float) -> None:
        """Evaluate until both ends are as near the root as the bounds of the curve allow."""
        target = 0.5 * (below + above)
        self._bracket_target(float(below.min()), floor)
        failures, before = np.zeros(target.size), np.full(target.size, np.inf)
        for _ in range(_MOST_ROUNDS):
            low, high = self.proved(below, above)
            top = np.where(np.isfinite(high), high, self.epsilon[-1])
            root, spread, slope, apart = self._roots(target)
            width = _MARGIN * self._half_widths(root) / slope + _NARROW * root
            open_ends = (high - low > 3.0 * width * 4.0**failures) & (top > low)
            failures[open_ends & (apart <= 2.5 * width * 4.0**failures)] += 1.0  # the root is known, but not proved
            margin = np.maximum(width * 4.0**failures, 0.05 * spread)
            sides = [np.where((end > low) & (end < top), end, np.nan) for end in (root - margin, root + margin)]
            slow = (top - low > 0.5 * before) | (np.isnan(sides[0]) & np.isnan(sides[1]))
            before = top - low
            middle = np.where(top > 16.0 * low, _geometric_mean(low, top), low + 0.5 * (top - low))
            points = np.concatenate([side[open_ends] for side in (*sides, np.where(slow, middle, np.nan))])
            if not open_ends.any() or not self.evaluate(points[~np.isnan(points)]):
                return

    def tighten(self, below: FloatArray, above: FloatArray) -> None:
        """Halve the gaps between the root and either end, where the curve is wider at some epsilons than at others."""
        low, high = self.proved(below, above)
        top = np.where(np.isfinite(high), high, self.epsilon[-1])
        root = np.clip(self._roots(0.5 * (below + above))[0], low, top)
        short, far = root.copy(), root.copy()  # nearer the root than these, no proof is looked for
        for _ in range(_MOST_HALVINGS):
            low, high = self.proved(below, above)
            limit = np.maximum(_SETTLED * (high - low), _NARROW * root)
            wide = (high - low > _WIDE * root) & np.isfinite(high)
            sides = [(low, short, wide & (short - low > limit)), (high, far, wide & (high - far > limit))]
            points = [0.5 * (end + inner) for end, inner, _ in sides]
            used = np.concatenate([point[mask] for point, (_, _, mask) in zip(points, sides, strict=True)])
            if not used.size or not self.evaluate(used):
                return
            new_low, new_high = self.proved(below, above)
            short = np.where(sides[0][2] & (new_low < points[0]), np.minimum(short, points[0]), short)
            far = np.where(sides[1][2] & (new_high > points[1]), np.maximum(far, points[1]), far)

    def _bracket_target(self, target: float, floor: float) -> None:
        """Larger and larger epsilons, until the curve is proved to be below all targets, or is at its end."""
        level, factor = 1.0, _FIRST_FACTOR
        while level < LARGEST_DOUBLE:
            self.evaluate(np.array([level]))
            if self.logs[-1, 2] <= target or self.logs[-1, 2] <= floor + _NEAR_FLOOR:
                return
            if np.isneginf(self.logs[-1, 1]) and self.end[1] <= level:  # nothing is beyond, and the bounds tell nothing
                self.epsilon, self.logs = self.epsilon[:-1], self.logs[:-1]
                self.evaluate(np.array([self.end[1]]))
                self.logs[-1, 2] = self.logs[-1, 0] = min(floor, self.logs[-1, 2])
                self.logs[-1, 1] = min(self.logs[-1, 1], floor)
                return
            level, factor = level * factor, 2.0 * factor

    def _half_widths(self, root: FloatArray) -> FloatArray:
        """Distance of the bounds of f from its value at the evaluated epsilon next to the root."""
        right = np.clip(np.searchsorted(self.epsilon, root), 1, self.epsilon.size - 1)
        nearest = right - (root - self.epsilon[right - 1] < self.epsilon[right] - root)
        value, lower, upper = self.logs[nearest].T
        with np.errstate(invalid="ignore"):
            sides = [np.where(np.isfinite(side), side, 0.0) for side in (upper - value, value - lower)]
        return np.maximum(*sides)

    def _roots(self, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Where inverse interpolation through the nearest evaluated epsilons meets the target; how far the secant is
        off; -df / depsilon there; and the distance of the two nearest.
        """
        values = np.minimum.accumulate(self.logs[:, 0])
        with np.errstate(invalid="ignore", divide="ignore"):
            y, wanted = np.sqrt(np.maximum(-values, 0.0)), np.sqrt(-target)
            right = np.clip(np.searchsorted(y, wanted), 1, self.epsilon.size - 1)
            left = right - 1
            a, b = self.epsilon[left], self.epsilon[right]
            rise = y[right] - y[left]
            share = (wanted - y[left]) / rise
            usable = np.isfinite(rise) & (rise > 0.0) & (share >= 0.0) & (share <= 1.0)
            secant = np.where(usable, a + share * (b - a), _geometric_mean(a, b))
            root, spread = secant, b - a
            for third in (left - 1, right + 1):  # a parabola through a third point, where it stays between the two
                at = np.clip(third, 0, self.epsilon.size - 1)
                bend = ((self.epsilon[at] - b) / (y[at] - y[right]) - (b - a) / rise) / (y[at] - y[left])
                curved = secant + (wanted - y[left]) * (wanted - y[right]) * bend
                good = usable & (at == third) & np.isfinite(curved) & (curved > a) & (curved < b)
                spread = np.where(good, np.abs(curved - root), spread)
                root = np.where(good, curved, root)
            slope = np.where(usable, 2.0 * wanted * rise / (b - a), np.nan)
        return root, spread, np.where(slope > 0.0, slope, 1.0), b - a

    def ends(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Proved lower ends, values and proved upper ends."""
        low, high = self.proved(below, above)
        high = np.maximum(np.minimum(high, self.end[1]), low)
        return low, np.clip(self._roots(0.5 * (below + above))[0], low, high), high


def _geometric_mean(low: FloatArray, high: FloatArray) -> FloatArray:
    return np.sqrt(np.maximum(low, _LEAST_SHARE * high)) * np.sqrt(high)
