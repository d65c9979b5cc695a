"""Inverses of monotone functions: where a condition turns true, and roots between two points that prove them.

Notation of ``RootSearch``: f falls with x > 0; t = log(x / scale); y a function of f that rises with x and is nearly
straight in t. Every evaluated x with an upper bound of f at most the target proves an end above the root, every one
with a lower bound at least the target an end below.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .numerics import UNIT_ROUNDOFF, BoolArray, FloatArray

__all__ = ["RootSearch", "bisect"]

# bound: none - the x that are searched
_LEAST, _MOST = 1e-300, 1e300
_MOST_ROUNDS = 80  # of evaluations: bisection of all doubles takes 64 of them
# bound: none - relative width of a bracket at which a search ends
_NARROW = 4 * UNIT_ROUNDOFF
_MARGIN = 1.5  # by how much more than expected the ends lie outside of the root
_LARGEST_MARGIN = 4.0  # in log x: no proof is looked for farther away from the root
_MOST_HALVINGS = 24  # evaluations beside an end
_MOST_BLIND = 8  # halvings of a gap at one end of which f has no value, before its ends are searched on their own
# bound: none - relative width of a bracket whose ends are searched on, the share of it that is left to them, the same
# where a bound has no value on one side, and how far beside a secant an end is tried, as a share of its gap
_WIDE, _SETTLED, _ROUGH, _ASIDE = 1e-7, 1e-3, 0.25, 0.02

Number = TypeVar("Number", float, FloatArray)


def bisect(
    beyond: Callable[[Number], Any], low: Number, high: Number, halvings: int,
    middle: Callable[[Number, Number], Number] | None = None, rtol: float = 0.0,
) -> tuple[Number, Number]:
    """Halve brackets [low, high] of the points from which on ``beyond`` is true; numbers, or arrays of one shape.

    ``beyond`` was false at every ``low`` that moved and true at every ``high`` that moved. ``middle`` says where a
    bracket is cut, ``rtol`` how narrow all may end, relative to ``high``. ``high`` may be the smaller end.
    """
    for _ in range(halvings):
        centre: Any = 0.5 * (low + high) if middle is None else middle(low, high)
        past: Any = beyond(centre)
        if np.ndim(past):
            low, high = np.where(past, low, centre), np.where(past, centre, high)  # type: ignore[assignment]
        else:
            low, high = (low, centre) if past else (centre, high)
        if rtol and np.all(high - low <= rtol * high):
            break
    return low, high


class RootSearch:
    """The evaluated x in order, with value, lower and upper bound of f at each; several targets share them.

    ``evaluate`` takes an array of x and returns these three rows, ``straighten`` takes f to y, ``rtol`` is the relative
    width of a bracket that is narrow enough. Before ``solve`` there must be a point on either side of every root.
    """

    def __init__(
        self, evaluate: Callable[[FloatArray], Any], straighten: Callable[[FloatArray], FloatArray],
        scale: float = 1.0, rtol: float = _NARROW,
    ) -> None:
        self.evaluate, self.straighten, self.scale, self.rtol = evaluate, straighten, scale, rtol
        self.x = np.empty(0)
        self.rows = np.empty((3, 0))

    def add(self, x: Any) -> bool:
        """Evaluate what is new; whether there was any."""
        new = np.array(sorted(set(np.ravel(x).tolist()).difference(self.x.tolist())))
        if new.size:
            both = np.concatenate([self.x, new])
            order = np.argsort(both)
            self.x, self.rows = both[order], np.concatenate([self.rows, self.evaluate(new)], axis=1)[:, order]
        return bool(new.size)

    def proved(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray]:
        """For each target the largest x that is proved to be too small, or 0, and the least that is enough, or inf.

        An end above is proved at f <= ``below``, an end below at f >= ``above``.
        """
        least = np.minimum.accumulate(self.rows[2])  # the true f falls
        most = np.maximum.accumulate(self.rows[1, ::-1])[::-1]
        enough = np.searchsorted(-least, -below)
        small = np.searchsorted(-most, -above, side="right")
        return np.insert(self.x, 0, 0.0)[small], np.append(self.x, np.inf)[enough]

    def solve(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Proved lower ends, roots and proved upper ends, as near each other as the bounds of f allow."""
        failures, before, halvings = np.zeros(below.size), np.full(below.size, np.inf), np.zeros(below.size)
        for _ in range(_MOST_ROUNDS):
            low, high = (self._log(end) for end in self.proved(below, above))
            inner = np.minimum(high, self._log(self.x[-1])) - np.maximum(low, self._log(self.x[0]))
            root, spread, width, gap = self._roots(below, above)
            blind = np.isinf(width) & (halvings < _MOST_BLIND) & (high - low > self.rtol)
            halvings[blind] += 1.0
            unproved = (high - low > np.maximum(3.0 * width * 4.0**failures, self.rtol)) & (width < _LARGEST_MARGIN)
            failures[unproved & (gap <= 2.5 * width * 4.0**failures)] += 1.0  # the root is known, but not proved
            unproved &= width * 4.0**failures < _LARGEST_MARGIN
            margin = np.maximum(width * 4.0**failures, 0.05 * spread)
            points = [np.where((side > low) & (side < high), side, np.nan) for side in (root - margin, root + margin)]
            slow = (inner > 0.5 * before) | (np.isnan(points[0]) & np.isnan(points[1]))
            before = inner
            middle = 0.5 * (np.maximum(low, self._log(self.x[0])) + np.minimum(high, self._log(self.x[-1])))
            points.append(np.where(slow, middle, np.nan))
            used = np.concatenate([*(point[unproved] for point in points), root[blind]])
            if not self.add(self._x(used[~np.isnan(used)])):
                break
        return self._narrow_ends(below, above)

    def _narrow_ends(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Search on where a bound itself meets the target, for each end: bounds may be far apart, or wide at some x."""
        for round_ in range(_MOST_HALVINGS):
            low, high = (self._log(end) for end in self.proved(below, above))
            wide = high - low > max(_WIDE, self.rtol)
            ends = (
                self._at_end(np.minimum.accumulate(self.rows[2]), below, 1.0, round_, wide, high - low),
                self._at_end(np.maximum.accumulate(self.rows[1, ::-1])[::-1], above, -1.0, round_, wide, high - low),
            )
            if not self.add(self._x(np.concatenate(ends))):
                break
        low, high = self.proved(below, above)
        high = np.maximum(high, low)
        return low, np.clip(self._x(self._roots(below, above)[0]), low, high), high

    def _at_end(
        self, bound: FloatArray, target: FloatArray, sign: float, round_: int, wide: BoolArray, gap: FloatArray
    ) -> FloatArray:
        """The t at which one falling bound is evaluated next, between the last proof and the next point without it:
        beyond and before the secant, in turn, and in the middle where the bound has no finite value.
        """
        with np.errstate(all="ignore"):
            t, y, aim = self._log(self.x), self.straighten(bound), self.straighten(target)
            right = np.searchsorted(-bound, -target, side="left" if sign > 0 else "right")
            usable = wide & (right > 0) & (right < t.size)
            right = np.clip(right, 1, t.size - 1)
            a, b, rise = t[right - 1], t[right], y[right] - y[right - 1]
            share = (aim - y[right - 1]) / rise
            smooth = np.isfinite(rise) & (share >= 0.0) & (share <= 1.0) & (round_ % 3 != 2)
            share = np.where(smooth, share + sign * (_ASIDE if round_ % 3 == 0 else -_ASIDE), 0.5)
            valued = np.isfinite(self.rows[0, right - 1]) & np.isfinite(self.rows[0, right])
            usable &= b - a > np.maximum(np.where(valued, _SETTLED, _ROUGH) * np.minimum(gap, 1.0), self.rtol)
        return np.asarray((a + np.clip(share, _ASIDE, 1.0 - _ASIDE) * (b - a))[usable])

    def _roots(self, below: FloatArray, above: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """The t where inverse interpolation through the nearest points meets the target; how far the secant is off;
        how far from it the bounds of f meet the target, by the sharper ones; and how far the two points are apart.

        Between points of which one has no value: the middle, which is off by an infinite width.
        """
        with np.errstate(all="ignore"):
            bounds = self.straighten(self.rows)
            t, y, target = self._log(self.x), np.maximum.accumulate(bounds[0]), self.straighten(0.5 * (below + above))
            errors = np.abs(bounds[1:] - bounds[0])
            error = np.where(np.isfinite(errors), errors, 0.0).max(axis=0)
            right = np.clip(np.searchsorted(y, target), 1, t.size - 1)
            left = right - 1
            a, b, rise = t[left], t[right], y[right] - y[left]
            share = (target - y[left]) / rise
            valued = np.isfinite(bounds[0]) | (bounds[1] == bounds[2])
            both_valued = valued[left] & valued[right]
            usable = np.isfinite(rise) & (rise > 0.0) & (share >= 0.0) & (share <= 1.0)
            secant = np.where(usable, a + share * (b - a), 0.5 * (a + b))
            root, spread = secant, b - a
            for third in (left - 1, right + 1):  # a parabola through a third point, where it stays between the two
                index = np.clip(third, 0, t.size - 1)
                bend = ((t[index] - b) / (y[index] - y[right]) - (b - a) / rise) / (y[index] - y[left])
                curved = secant + (target - y[left]) * (target - y[right]) * bend
                good = usable & (index == third) & np.isfinite(curved) & (curved > a) & (curved < b)
                spread = np.where(good, np.abs(curved - root), spread)
                root = np.where(good, curved, root)
            width = np.where(both_valued, np.minimum(error[left], error[right]), np.inf)
            width /= np.where(usable, rise / (b - a), 1.0)
        return root, spread, np.maximum(_MARGIN * width + _NARROW, 0.3 * self.rtol), b - a

    def _log(self, x: Any) -> FloatArray:
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.asarray(x / self.scale)
            ordinary = (ratio > 0.0) & (ratio < np.inf)
            return np.asarray(np.where(ordinary, np.log(ratio), np.log(x) - math.log(self.scale)))

    def _x(self, t: FloatArray) -> FloatArray:
        half = np.exp(0.5 * t)  # its square may be no double
        return np.asarray(np.clip(self.scale * half * half, _LEAST, _MOST))
