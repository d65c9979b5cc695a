"""Privacy losses on a grid, made from certified privacy curves or from other losses so that they provably dominate, or
are dominated.

Notation: P, Q a pair of distributions; delta(x) = sup_E P(E) - x Q(E) for x = e^epsilon >= 0, a convex function that
falls from delta(0) = 1; h the interval of the grid, x_i = e^(i h). A privacy loss on the grid has mass p_i at the loss
i h and mass m at infinity; its curve, m + sum_i p_i (1 - x / x_i)^+, is linear between the x_i. One measure dominates
another if its curve is nowhere below; so do then their compositions (Zhu, Dong and Wang 2022, theorem 10).

From above (connect-the-dots: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, algorithm 1). Let U_i >= delta(x_i).
The greatest convex function v with v(x_i) <= U_i, v(0) <= 1 is at least delta at every x_i, because delta is one of
these convex functions; between the x_i, v is a chord and delta is convex; beyond the last, v is constant and delta
falls. So v is nowhere below delta, and the kinks of v are the masses.

From below. Let L_i <= delta(x_i) <= U_i. The line through (x_j, L_j) and (x_{j+1}, U_{j+1}), j = i + 1, lies below
delta left of x_j, by convexity. If v_i is at most L_i and its height at x_i, and v_j <= L_j, then between x_i and x_j
the chord of v lies below this line, hence below delta. So it does if v_j is at most the height at x_j of the line
through (x_{i-1}, U_{i-1}) and (x_i, L_i), which lies below delta right of x_i, and v_i <= L_i. Each interval takes what
lowers v less: where delta has a kink at a point, its intervals lower their other ends. The greatest convex function
below all v_i is below delta, too. Left of the first point, delta(x) >= 1 - x: with v(0) = 1 and v at most 1 - x at the
first point, the chord lies below. v is 0 from the last point of the grid on.

For epsilon < 0, delta(x) = 1 - x + x delta'(1/x), with delta' the curve of Q and P.

Losses at other places are moved to the grid:

* from above, a mass p at l is split between the neighbours a < l < b so that p_a + p_b = p and p_a e^-a + p_b e^-b =
  p e^-l: (1 - x y)^+ is convex in y, so that the two together have at least the curve of one;
* from below it moves to a.

Rounding. The masses are formed in extended precision from differences of the v_i, whose error moves the curve by a few
roundings of its own size: the U_i are raised by ``_SLACK`` beforehand, the L_i lowered. A larger mass anywhere raises
the curve everywhere: each mass is then rounded outward to a double.
"""

# bounds: proved - whether an interval divides another up to the rounding that ``common_grids`` covers

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, LongDoubleArray, next_above, next_below
from ..base.values import ValueObject
from ..kernels import _positive_sums
from .log_bounds import Curve, certified

# bound: proved - relative change of the curve that makes up for the roundings in extended precision: two differences,
#    two quotients and two sums for each mass, on machines where long doubles are doubles too
_SLACK = 2.0**-50 + 32 * float(np.finfo(np.longdouble).eps)
# bound: proved - relative error of a loss, and of a split mass in extended precision, rounded to doubles
_SPLIT_ERROR = 2.0**-50
_MAX_POINTS = 2**22  # points of a grid: 32 MiB for each array of doubles
_SEARCH_POINTS = 64  # epsilons in each round of the search for the ends of the grid


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyLoss(ValueObject):
    """Masses ``masses[j]`` at the losses ``(first + j) interval``, in nats, and ``infinity_mass`` at infinity."""

    _fields = ("first", "interval", "masses", "infinity_mass")

    first: int
    interval: float
    masses: FloatArray
    infinity_mass: float


def discretised(
    forward: Curve, backward: Curve, interval: float, tail_mass: float, dominating: bool, origin: float = 0.0
) -> PrivacyLoss:
    """The privacy loss of P against Q on the grid, from above or from below, less the ``origin`` <= 0 of the grid."""
    first, start, heights = _curve_on_grid(forward, backward, interval, tail_mass, dominating, origin)
    return PrivacyLoss(first, interval, _masses(start, heights, interval, up=dominating), float(heights[-1]))


def _curve_on_grid(
    forward: Curve, backward: Curve, interval: float, tail_mass: float, dominating: bool, origin: float
) -> tuple[int, Any, LongDoubleArray]:
    """The first point, and the heights at x = 0 and at every point of a curve nowhere below delta, or nowhere above.

    The curve is linear between the points and constant beyond the last.
    """
    shift = math.ceil(-origin / interval)
    last = _end_of_grid(forward, interval, tail_mass) + shift
    first = max(shift - _end_of_grid(backward, interval, tail_mass), 0 if origin < 0.0 else -_MAX_POINTS)
    losses = origin + np.arange(first, last + 1) * np.longdouble(interval)
    if dominating:
        upper = _bounds_on_grid(forward, backward, losses, ("upper",))[0]
        item = np.longdouble(1)
        return first, item, np.asarray(np.minimum(upper * (1 + np.longdouble(_SLACK)), item))
    if last - first < 2:
        first, last = first - 1, last + 1
        losses = origin + np.arange(first, last + 1) * np.longdouble(interval)
    lower, upper = _bounds_on_grid(forward, backward, losses, ("lower", "upper"))
    scale = 1 - np.longdouble(_SLACK)
    return first, scale, np.asarray(_heights_below(losses[0], lower, upper, interval) * scale)


def _end_of_grid(curve: Curve, interval: float, tail_mass: float) -> int:
    """An i with delta(i h) at most ``tail_mass`` above what it is at the end of the longest grid: nearly the least."""
    low, high, floor = 0, _MAX_POINTS, math.nan
    while high - low > 1 + high // _SEARCH_POINTS:
        grid = np.unique(np.round(np.geomspace(low + 1, high, _SEARCH_POINTS)).astype(np.int64) if low == 0
                         else np.linspace(low + 1, high, _SEARCH_POINTS).astype(np.int64))
        heights = certified(curve, np.asarray(grid * interval, dtype=np.float64))
        floor = float(np.asarray(heights.lower)[-1]) if math.isnan(floor) else floor
        small = np.flatnonzero(heights.upper <= floor * (1 + _SLACK) + tail_mass)
        if not small.size:
            break
        high = int(grid[small[0]])
        low = int(grid[small[0] - 1]) if small[0] else low
        if grid.size == high - low:
            break
    if high >= _MAX_POINTS:
        raise DomainError(
            f"interval must be so large that {_MAX_POINTS} points reach the losses of the pair; got {interval!r}. Pass "
            "a larger interval, or a larger tail_mass."
        )
    return high


def _bounds_on_grid(
    forward: Curve, backward: Curve, losses: LongDoubleArray, sides: tuple[str, ...]
) -> list[LongDoubleArray]:
    """Bounds of delta at the points of the grid, of which doubles are within half a step.

    Delta falls in epsilon: an upper bound is taken at the next double below, a lower bound at the next above.
    """
    ahead = losses >= 0.0

    def bounds(curve: Curve, exact: LongDoubleArray) -> list[FloatArray]:
        levels = exact.astype(np.float64)
        shifted = [np.maximum(next_below(levels), 0.0) if side == "upper" else next_above(levels) for side in sides]
        result = certified(curve, np.concatenate([np.where(exact == 0.0, 0.0, row) for row in shifted]))
        return [np.clip(np.split(getattr(result, side), len(sides))[i], 0.0, 1.0) for i, side in enumerate(sides)]

    right, left = bounds(forward, losses[ahead]), bounds(backward, -losses[~ahead][::-1])
    x = np.exp(losses[~ahead])
    return [np.concatenate([-np.expm1(losses[~ahead]) + x * b[::-1], a.astype(np.longdouble)])
            for a, b in zip(right, left, strict=True)]


def _heights_below(first: Any, lower: LongDoubleArray, upper: LongDoubleArray, interval: float) -> LongDoubleArray:
    """The value at each point of the grid, from the loss ``first`` on, of the function below delta that is 1 at 0."""
    heights, step = lower.copy(), np.longdouble(interval)
    heights[-1] = 0.0
    fall = np.maximum(lower[:-1] - upper[1:], 0.0)  # of delta over each interval, at least
    before = np.append(lower[1:-1] + fall[1:] * np.exp(-step), lower[-1])
    fall = np.maximum(upper[:-2] - lower[1:-1], 0.0) * np.exp(step)  # over the next interval, at most
    after = lower[1:-1] - fall - _SLACK * (lower[1:-1] + fall)
    loss = np.where(after >= 0.0, np.append(lower[2:-1], 0.0) - np.append(after[:-1], 0.0), np.inf)
    chosen = np.append(False, loss < (lower[:-1] - before)[1:])  # intervals whose right end is lowered
    heights[:-1] = np.where(chosen, lower[:-1], np.minimum(lower[:-1], before))
    right = np.flatnonzero(chosen) + 1
    heights[right] = np.minimum(heights[right], after[right - 2])
    heights[0] = min(heights[0], -np.expm1(first))
    return heights


def _masses(start: Any, heights: LongDoubleArray, interval: float, *, up: bool) -> FloatArray:
    """Kinks of the greatest convex function below ``start`` at x = 0 and ``heights`` at x_i, times x_i, outward."""
    with np.errstate(over="ignore"):  # of intervals without end, over which the curve falls by nothing
        selected = _positive_sums.convex_points(start, np.ascontiguousarray(heights), interval)
    masses = _line_masses(start, heights, selected, interval)
    rounded = np.maximum(masses, 0.0).astype(np.float64)
    outward = next_above(rounded) if up else np.maximum(next_below(rounded), 0.0)
    result = np.zeros(len(heights))
    result[selected] = np.where(masses > 0.0, outward, 0.0)
    return result


def _line_masses(start: Any, heights: LongDoubleArray, positions: Any, interval: float) -> LongDoubleArray:
    """x_i times the change of slope at each kept point between the lines to those on both sides."""
    v, gaps = heights[positions], np.diff(positions)
    with np.errstate(over="ignore"):
        growth = np.expm1(np.arange(gaps.max(initial=1) + 1) * np.longdouble(interval))[gaps]
        fall = v[:-1] - v[1:]
        into = np.concatenate([[start - v[0]], fall * (1 + 1 / growth)])  # x = 0 lies left of all points
        return np.asarray(into - np.concatenate([fall / growth, [0]]))


def refinement(loss_interval: float, interval: float) -> int:
    """The whole number by which an interval is divided, 0 if there is none."""
    times = round(loss_interval / interval)
    return times if times >= 1 and abs(loss_interval - times * interval) <= 2 * UNIT_ROUNDOFF * loss_interval else 0


def on_another_grid(loss: PrivacyLoss, interval: float, dominating: bool) -> PrivacyLoss:
    """A loss on another grid, of which it keeps its places if the interval divides its own."""
    selected = np.flatnonzero(loss.masses > 0.0)
    positions, masses = selected + loss.first, loss.masses[selected]
    times = refinement(loss.interval, interval)
    if not times:
        losses = positions * np.longdouble(loss.interval)
        return moved_to_grid(losses, masses, interval, loss.infinity_mass, dominating)
    result = np.zeros((len(loss.masses) - 1) * times + 1)
    result[selected * times] = masses
    return PrivacyLoss(loss.first * times, interval, result, loss.infinity_mass)


def moved_to_grid(
    losses: LongDoubleArray, masses: FloatArray, interval: float, infinity_mass: float, dominating: bool
) -> PrivacyLoss:
    """Masses at any losses moved to the grid, by the text at the head."""
    if not masses.size:
        return PrivacyLoss(0, interval, np.zeros(1), infinity_mass)
    h = np.longdouble(interval)
    left = np.floor((losses - np.abs(losses) * _SPLIT_ERROR) / h).astype(np.int64)
    targets = [(left, masses)]
    if dominating:
        right = np.maximum(np.ceil((losses + np.abs(losses) * _SPLIT_ERROR) / h).astype(np.int64), left + 1)
        share = np.clip(np.expm1(left * h - losses) / np.expm1((left - right) * h), 0, 1)  # of the neighbour above
        targets = [(at, np.asarray(masses * part * (1 + _SPLIT_ERROR), dtype=np.float64))
                   for at, part in ((left, 1 - share), (right, share))]
    first = min(int(at.min()) for at, _ in targets)
    total = np.zeros(max(int(at.max()) for at, _ in targets) - first + 1)
    for at, mass in targets:
        np.add.at(total, at - first, mass)
    total *= 1 + _SPLIT_ERROR if dominating else 1 - _SPLIT_ERROR
    return PrivacyLoss(first, interval, total, infinity_mass)
