"""Bounds of any composition: every step as a loss on one grid, from above and from below, and their tilted transforms.

Notation: step i occurs T_i times; h the interval of the grid; theta the tilt at epsilon (``tilted_transforms``). Steps
with curves are discretised as ``discretised_losses`` says, which moves log delta by about sum T_i h^2 theta (theta + 1)
/ 8. Losses on a grid of their own keep their places where the grid is refined by a whole number; other losses, and
atoms, are moved:

* from above, a mass p at l is split between the neighbours a < l < b so that p_a + p_b = p and p_a e^-a + p_b e^-b =
  p e^-l: (1 - x y)^+ is convex in y, so that the two together have at least the curve of one;
* from below it moves to a.

The interval is a fraction of what keeps the bracket at the width that is aimed at, unless the points would be too many.
"""

# bounds: proved - whether an interval divides another up to the rounding that ``_PLACE_ERROR`` covers

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, LongDoubleArray, next_above, next_below
from ..divergences import hockey_stick_divergence
from ..kernels import _type_sums
from ..mechanisms.laplace import LaplaceMechanism
from .discretised_losses import PrivacyLoss, discretised
from .log_bounds import LogBounds
from .pairs import Curve
from .steps import AtomStep, CurveStep, LaplaceStep, LossStep, MixtureStep, Step
from .tilted_transforms import composed_log_bounds, tilted_moments

__all__ = ["grid_bounds"]

Quantity = Literal["delta", "tail"]

# bound: none - width of the bracket of log delta that is aimed at
_WIDTH = 1e-7
_COARSEST = 0.25  # interval, the first that is tried
# bound: none - the finest interval
_FINEST = 2.0**-40
_MOST_POINTS = 2**14  # of the grid of one step: each is a value of its curve
_MOST_TRANSFORMED = 2**17  # of the transform, 24 deviations wide
_LARGEST_INTERVAL = 64.0  # beyond it no bounds are given
# bound: none - deltas of a step beyond its grid, which count as infinite losses
_FIRST_TAIL, _LEAST_TAIL, _LARGEST_TAIL = 1e-12, 1e-290, 1e-6
# bound: none - part of delta that may lie beyond the grids of all steps
_TAIL_SHARE = 1e-14
_KEPT = 16  # discretised steps that are kept, for searches that ask again
# bound: proved - relative error of the places of losses whose interval is divided by a whole number
_PLACE_ERROR = 4 * UNIT_ROUNDOFF
# bound: proved - relative error of a loss, and of a split mass in extended precision, rounded to doubles
_SPLIT_ERROR = 2.0**-50

_kept: OrderedDict[tuple[int, float, float, bool], tuple[Step, PrivacyLoss]] = OrderedDict()


def grid_bounds(steps: Sequence[Step], epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds | None:
    """Bounds of the logarithms at each epsilon >= 0; None for the tail, but of exact losses on one grid."""
    steps = [step for step in steps if step.count > 0]
    exact = [step for step in steps if isinstance(step, LossStep) and step.side == "exact"]
    if len(exact) == len(steps) and len({step.losses.interval for step in exact}) == 1:
        lower, upper, cost = composed_log_bounds([(step.losses, step.count) for step in exact], epsilon, quantity)
        return _log_bounds(lower, upper, cost)
    if quantity == "tail":
        return None
    lower, upper = np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)
    interval, tail = _interval_and_tail(steps, epsilon)
    if interval is None:
        return _log_bounds(lower, upper, {"points": 0})
    cost = {}
    error = _loss_error(steps, interval)
    if not any(isinstance(step, LossStep) and step.side == "lower" for step in steps):
        above = [(_on_grid(step, interval, tail, True), step.count) for step in steps]
        _, upper, cost = composed_log_bounds(above, next_below(epsilon - error) if error > 0.0 else epsilon)
    if not any(isinstance(step, LossStep) and step.side == "upper" for step in steps):
        below = [(_on_grid(step, interval, tail, False), step.count) for step in steps]
        lower, _, below_cost = composed_log_bounds(below, next_above(epsilon + error) if error > 0.0 else epsilon)
        cost = cost or below_cost
    return _log_bounds(np.minimum(lower, upper), upper, {**cost, "interval": interval})


def _log_bounds(lower: FloatArray, upper: FloatArray, cost: dict[str, float]) -> LogBounds:
    with np.errstate(invalid="ignore"):
        value = np.where(lower > -math.inf, 0.5 * (lower + upper), upper)
    return LogBounds(np.clip(value, lower, upper), lower, upper, cost, "tilted transforms")


def _curves(step: Step) -> tuple[Curve, Curve]:
    """Of P against Q and of Q against P, of a step that is no loss on a grid."""
    if isinstance(step, MixtureStep):
        p, q = step.p, step.q
        return (lambda e: hockey_stick_divergence(p, q, e)), (lambda e: hockey_stick_divergence(q, p, e))
    if isinstance(step, CurveStep):
        return step.forward, step.backward
    assert isinstance(step, LaplaceStep)
    mechanism = LaplaceMechanism(step.scale, step.shift)
    return mechanism.delta, mechanism.delta


def _interval_and_tail(steps: Sequence[Step], epsilon: FloatArray) -> tuple[float | None, float]:
    """The interval of the grid, None if no grid reaches the losses, and the delta beyond the grid of a step."""
    interval, tail, least_tail = _COARSEST, _FIRST_TAIL, _LEAST_TAIL
    count = float(sum(step.count for step in steps))
    width = max(getattr(step.forward, "own_width", 0.0) if isinstance(step, CurveStep) else 0.0 for step in steps)
    own = [step.losses.interval for step in steps if isinstance(step, LossStep)]
    if len(own) == len(steps) and all(_refinement(x, min(own)) for x in own):
        return min(own), tail
    largest = float(epsilon.max(initial=0.0))
    for last in (*(False,) * 15, True):
        try:
            losses = [(_on_grid(step, interval, tail, True), step.count) for step in steps]
        except DomainError:  # the curve stays above the tail, or its losses are vast
            tail = least_tail = min(1e3 * tail, _LARGEST_TAIL)
            interval = 2.0 * interval if tail == _LARGEST_TAIL else interval
            if last or interval > _LARGEST_INTERVAL:
                return None, tail
            continue
        lowest = max(float(composed_log_bounds(losses, np.array([largest]))[1][0]), -600.0)
        wanted = max(math.exp(lowest) * _TAIL_SHARE / count, least_tail)
        wanted = max(10.0 ** math.floor(math.log10(wanted)), least_tail)
        theta, deviation = tilted_moments(losses, largest)
        finest = math.sqrt(8.0 / (count * (theta * (theta + 1.0) / max(width, _WIDTH) + 1e-3 / _WIDTH)))
        longest = max(len(loss.masses) for loss, _ in losses) * interval
        finest = max(finest, longest / _MOST_POINTS, 24.0 * deviation / _MOST_TRANSFORMED, _FINEST)
        if last or (finest >= 0.5 * interval and wanted >= tail):
            break
        interval, tail = min(interval, 2.0 ** math.floor(math.log2(finest))), min(tail, wanted)
    if own and min(own) > 0.0:
        interval = min(own) / max(1, math.ceil(min(own) / interval))
    return interval, tail


def _loss_error(steps: Sequence[Step], interval: float) -> float:
    """Bound of the error of the sum of losses, from places that are multiples of a rounded interval."""
    total = 0.0
    for step in steps:
        if isinstance(step, LossStep) and _refinement(step.losses.interval, interval) > 1:
            ends = abs(step.losses.first), abs(step.losses.first + len(step.losses.masses))
            total += step.count * max(ends) * step.losses.interval * _PLACE_ERROR
    return total


def _refinement(own: float, interval: float) -> int:
    """The whole number by which an interval is divided, 0 if there is none."""
    times = round(own / interval)
    return times if times >= 1 and abs(own - times * interval) <= 2 * UNIT_ROUNDOFF * own else 0


def _on_grid(step: Step, interval: float, tail: float, pessimistic: bool) -> PrivacyLoss:
    key = id(step), interval, tail, pessimistic
    if key in _kept:
        return _kept[key][1]
    if isinstance(step, LossStep):
        loss = _regridded(step.losses, interval, pessimistic)
    elif isinstance(step, AtomStep):
        kept = (step.p > 0.0) & (step.q > 0.0)
        leading, trailing = _type_sums.losses(step.p[kept], step.q[kept])
        mass = math.fsum(step.p[step.q == 0.0].tolist())
        loss = _moved(leading.astype(np.longdouble) + trailing, step.p[kept], interval, mass, pessimistic)
    else:
        loss = discretised(*_curves(step), interval, tail, pessimistic)
    _kept[key] = step, loss  # the step is kept alive, so that no other gets its identity
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return loss


def _regridded(loss: PrivacyLoss, interval: float, pessimistic: bool) -> PrivacyLoss:
    """A loss on another grid."""
    kept = np.flatnonzero(loss.masses > 0.0)
    places, masses = kept + loss.first, loss.masses[kept]
    times = _refinement(loss.interval, interval)
    if not times:
        losses = places * np.longdouble(loss.interval)
        return _moved(losses, masses, interval, loss.infinity_mass, pessimistic)
    found = np.zeros((len(loss.masses) - 1) * times + 1)
    found[kept * times] = masses
    return PrivacyLoss(loss.first * times, interval, found, loss.infinity_mass)


def _moved(
    losses: LongDoubleArray, masses: FloatArray, interval: float, infinity_mass: float, pessimistic: bool
) -> PrivacyLoss:
    """Masses at any losses moved to the grid, by the text at the head."""
    if not masses.size:
        return PrivacyLoss(0, interval, np.zeros(1), infinity_mass)
    h = np.longdouble(interval)
    left = np.floor((losses - np.abs(losses) * _SPLIT_ERROR) / h).astype(np.int64)
    targets = [(left, masses)]
    if pessimistic:
        right = np.maximum(np.ceil((losses + np.abs(losses) * _SPLIT_ERROR) / h).astype(np.int64), left + 1)
        share = np.clip(np.expm1(left * h - losses) / np.expm1((left - right) * h), 0, 1)  # of the neighbour above
        targets = [(at, np.asarray(masses * part * (1 + _SPLIT_ERROR), dtype=np.float64))
                   for at, part in ((left, 1 - share), (right, share))]  # fmt: skip
    first = min(int(at.min()) for at, _ in targets)
    total = np.zeros(max(int(at.max()) for at, _ in targets) - first + 1)
    for at, mass in targets:
        np.add.at(total, at - first, mass)
    total *= 1 + _SPLIT_ERROR if pessimistic else 1 - _SPLIT_ERROR
    return PrivacyLoss(first, interval, total, infinity_mass)
