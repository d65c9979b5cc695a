"""Bounds of any composition: every pair as a loss on one grid, from above and from below, and their tilted transforms.

Notation: pair i occurs T_i times; h the interval of the grid; theta the tilt at epsilon (``tilted_transforms``), D the
standard deviation of the sum under it. Pairs with curves are discretised as ``pairs/discretised_losses.py`` says, which
moves log delta by about sum T_i h^2 (theta (theta + 1) + 1 / D^2) / 8. Losses on a grid of their own keep their places
where the grid is refined by a whole number; other losses, and atoms, are moved.

The interval is a fraction of what keeps the bracket at the width that is aimed at, unless the points would be too many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ..pairs.discretised_losses import PrivacyLoss, refinement
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import USUAL_WIDTH, DominatingPair
from ..pairs.tilted_transforms import Quantity, composed_log_bounds, tilted_moments

# ``method`` of the results
_METHOD = "tilted transforms"
_COARSEST, _VAST = 0.25, 2.0  # interval, the first that is tried, and from which on a coarser one is enough
_COARSER = 64.0  # times an interval whose grid does not reach the losses
# bound: none - the finest interval
_FINEST = 2.0**-100
# bound: none - the same as a share of the farthest loss: places are whole numbers below 2^63, and doubles
_FINEST_SHARE = 2.0**-52
_MOST_POINTS = 2**14  # of the grid of one pair: each is a value of its curve
_MOST_TRANSFORMED = 2**17  # of the transform, 24 deviations wide
_MOST_CHEAP = 2**17, 2**19  # the same two of pairs whose curves are all cheap
_LARGEST_INTERVAL = 64.0  # beyond it no bounds are given
# bound: none - deltas of a pair beyond its grid, which count as infinite losses
_FIRST_TAIL, _LEAST_TAIL, _LARGEST_TAIL = 1e-12, 1e-290, 1e-6
# bound: none - part of delta that may lie beyond the grids of all pairs
_TAIL_SHARE = 1e-14
# bound: proved - relative error of the places of losses whose interval is divided by a whole number, and of the sum of
#    all least losses
_PLACE_ERROR = 4 * UNIT_ROUNDOFF


def grid_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds | None:
    """Bounds of the logarithms at each epsilon >= 0; None for the tail, but of exact losses on one grid."""
    pairs = [pair for pair in pairs if pair.count > 0]
    exact = [(pair.grid_losses, pair.count) for pair in pairs if pair.grid_losses is not None]
    if len(exact) == len(pairs) and len({losses.interval for losses, _ in exact}) == 1:
        lower, upper, cost = composed_log_bounds(exact, epsilon, quantity)
        return LogBounds.of_bounds(lower, upper, cost, _METHOD)
    if quantity == "tail":
        return None
    lower, upper = np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)
    interval, tail, theta = _interval_and_tail(pairs, epsilon)
    if interval is None:
        return LogBounds.of_bounds(lower, upper, {"points": 0}, _METHOD)
    least = [pair.count * pair.least_loss for pair in pairs]
    error, shifted = _loss_error(pairs, interval) - _PLACE_ERROR * math.fsum(least), epsilon - math.fsum(least)
    above = [(_on_grid(pair, interval, tail, True), pair.count) for pair in pairs]
    _, upper, cost = composed_log_bounds(above, next_below(shifted - error) if error > 0.0 else shifted, start=theta)
    if all(pair.has_lower_bounds for pair in pairs):
        below = [(_on_grid(pair, interval, tail, False), pair.count) for pair in pairs]
        lower, _, _ = composed_log_bounds(below, next_above(shifted + error) if error > 0.0 else shifted, start=theta)
    return LogBounds.of_bounds(np.minimum(lower, upper), upper, {**cost, "interval": interval}, _METHOD)


def _interval_and_tail(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> tuple[float | None, float, float]:
    """The interval of the grid, None if no grid reaches the losses, the delta beyond the grid of a pair, and a tilt."""
    interval, tail, least_tail, theta = _COARSEST, _FIRST_TAIL, _LEAST_TAIL, 0.0
    count = float(sum(pair.count for pair in pairs))
    aim = max(pair.aimed_width for pair in pairs)
    cheap, width = aim < USUAL_WIDTH, max(aim, *(pair.curve_width for pair in pairs))
    least_slope = 0.1 / width if cheap else 1e-3 / USUAL_WIDTH
    points, transformed = _MOST_CHEAP if cheap else (_MOST_POINTS, _MOST_TRANSFORMED)
    grid_intervals = [pair.grid_losses.interval for pair in pairs if pair.grid_losses is not None]
    if len(grid_intervals) == len(pairs) and all(refinement(x, min(grid_intervals)) for x in grid_intervals):
        return min(grid_intervals), tail, theta
    largest = float(epsilon.max(initial=0.0)) - math.fsum(pair.count * pair.least_loss for pair in pairs)
    for last in (*(False,) * 15, True):
        try:
            losses = [(_on_grid(pair, interval, tail, True), pair.count) for pair in pairs]
        except DomainError:  # the interval is too fine for the losses, or the curve stays above the tail
            if interval < _COARSEST:
                interval = min(_COARSER * interval, _COARSEST)
            else:
                tail = least_tail = min(1e3 * tail, _LARGEST_TAIL)
                interval = 2.0 * interval if tail == _LARGEST_TAIL else interval
            if last or interval > _LARGEST_INTERVAL:
                return None, tail, theta
            continue
        theta, deviation, lowest = tilted_moments(losses, largest, theta)
        wanted = max(math.exp(max(lowest, -600.0)) * _TAIL_SHARE / count, least_tail)
        wanted = max(10.0 ** (4 * math.floor(math.log10(wanted) / 4)), least_tail)  # as for epsilons near this one
        bend = theta * (theta + 1.0) + (deviation**-2 if deviation > _FINEST else 0.0)
        finest = math.sqrt(8.0 / (count * (bend / width + least_slope)))
        longest = max(len(loss.masses) for loss, _ in losses) * interval
        farthest = max(abs(float(loss.first)) for loss, _ in losses) * interval + longest
        finest = max(finest, longest / points, 24.0 * deviation / transformed, _FINEST, _FINEST_SHARE * farthest)
        vast = longest > 16.0 * points * interval or (interval == _COARSEST and finest >= _VAST)
        if last or (finest >= 0.5 * interval and wanted >= tail and not vast):
            break
        most = _LARGEST_INTERVAL if vast else interval
        interval, tail = min(most, 2.0 ** math.floor(math.log2(finest))), min(tail, wanted)
    if cheap and len(pairs) == 1 and pairs[0].least_loss < 0.0 and pairs[0].largest_loss()[0] < math.inf:
        span = pairs[0].largest_loss()[0] - pairs[0].least_loss
        intervals = max(2, math.ceil(span / interval))  # a point hardly below the largest loss, which may be probable
        interval = span / intervals * (1.0 - 2.0 / intervals**2)
    if grid_intervals and min(grid_intervals) > 0.0:
        interval = min(grid_intervals) / max(1, math.ceil(min(grid_intervals) / interval))
    return interval, tail, theta


def _loss_error(pairs: Sequence[DominatingPair], interval: float) -> float:
    """Bound of the error of the sum of losses, from places that are multiples of a rounded interval."""
    total = 0.0
    for pair in pairs:
        loss = pair.grid_losses
        if loss is not None and refinement(loss.interval, interval) > 1:
            ends = abs(loss.first), abs(loss.first + len(loss.masses))
            total += pair.count * max(ends) * loss.interval * _PLACE_ERROR
    return total


@lru_cache(maxsize=16)  # searches ask again
def _on_grid(pair: DominatingPair, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
    return pair.losses_from_least(interval, tail, dominating)
