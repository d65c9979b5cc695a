"""The number that is estimated: its interval from stages of replicates, and the distance to the target.

Notation: f the integrand, whose e means stand in rows of replicates; a = 1 - level.
"""

# bounds: proved - docs/proofs/betting.md, 9.6: rounding of a mean of values

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from .options import Request
from .problem import SamplingProblem
from .replicates import additions
from .statistics.intervals import stage_interval
from .statistics.normalisation import RATIO_ROUNDING, LogRatioSums
from .statistics.tail_index import PointMoments

ValueAndBounds = tuple[FloatArray, FloatArray, FloatArray]  # value, lower and upper, each of shape (e,)

# bound: proved - docs/proofs/betting.md, 9.6: relative deviation of values that count as equal: their mean is rounded
SAME = 1e-15
# bound: proved - docs/proofs/betting.md, 9.6: relative distance of means of equal values, and rounding of such a value
ROUNDED = 1e-13
_SPREAD = 20.0  # times SAME sqrt(N): how far values may be from their mean that are within a spread of the first of N
# bound: proved - docs/proofs/betting.md, 9.6: least mean that values may equal: squares of SAME of it are normal
_LEAST_CENTER = 1e-140


class Estimand(NamedTuple):
    """How means of f become the number that is estimated.

    Attributes
    ----------
    value : callable
        A monotone map of means, shape (e,), to the numbers.
    floor, ceiling : float or ndarray
        A range that the numbers never leave.
    scale : callable
        What ``rtol`` is relative to, given the values: their size, or 1 for logarithms.
    """

    value: Callable[[FloatArray], FloatArray]
    floor: FloatArray | float = -math.inf
    ceiling: FloatArray | float = math.inf
    scale: Callable[[FloatArray], FloatArray] = np.abs

    def estimates(self, interval: ValueAndBounds) -> ValueAndBounds:
        """Value, lower and upper of the number from those of the mean."""
        value, first_end, second_end = (self.value(x) for x in interval)
        lower, upper = np.minimum(first_end, second_end), np.maximum(first_end, second_end)
        with np.errstate(invalid="ignore"):
            width = np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, 0.0)
        # an interval beyond the range keeps its width: that it has no point in common with the range is no proof
        lower = np.where(lower > self.ceiling, self.ceiling - width, lower)
        upper = np.where(upper < self.floor, self.floor + width, upper)
        value, lower, upper = (np.clip(x, self.floor, self.ceiling) for x in (value, lower, upper))
        return np.clip(value, lower, upper), lower, upper

    def target_ratio(self, estimates: ValueAndBounds, request: Request) -> float:
        """Largest half width over the half width of the target; at most 1 once the target is met."""
        value, lower, upper = estimates
        with np.errstate(divide="ignore", invalid="ignore"):
            if request.side == "both":
                half = np.where(lower == upper, 0.0, 0.5 * (upper - lower))
            else:
                half = value - lower if request.side == "lower" else upper - value
            target = np.maximum(request.atol, request.rtol * self.scale(value))
            ratio = np.where(half == 0.0, 0.0, half / target)
        return float(np.max(np.where(np.isnan(ratio), math.inf, ratio)))  # an infinite end is no end


@dataclass
class Stage:
    """Means of f, shape (replicates, e), each over n points.

    ``independent`` says that the points of a replicate are independent too; ``log_ratios`` holds what the log ratios
    tell where a density is known to its owner alone.
    """

    means: FloatArray
    n: int
    independent: bool = False
    log_ratios: LogRatioSums | None = None

    @property
    def infinite_ratio(self) -> bool:
        """Whether a log ratio of a density known to its owner alone is infinite."""
        return self.log_ratios is not None and self.log_ratios.infinite_ratio

    @property
    def ratios_equal(self) -> bool:
        """Whether a density is known to its owner alone and all log ratios are equal but for rounding."""
        return self.log_ratios is not None and self.log_ratios.ratios_equal


def interval(
    problem: SamplingProblem, stages: list[Stage], level: float, request: Request, moments: PointMoments | None
) -> ValueAndBounds:
    """Value, lower and upper of the means: Student's interval, widened for the skewness that the points show, and for
    what they cannot have seen.

    Where some components get fewer samples than their weights ask for, a replicate's mean may leave the range of f.
    Under a tilted proposal the integrand of a Renyi divergence is often constant except in a region of small
    probability, where several components meet and it is many times larger. If no point falls there the replicates agree
    and their spread says nothing. A set of more than log(1/a) / N of the distribution escapes N points with probability
    below a, so the most that it could add is added.

    Where nothing varies, independent points prove more than replicates do. Log ratios of a density known to its owner
    alone that differ by their rounding do not vary: a component of small weight may have got no sample.
    """
    integrand = problem.integrand
    low, high = _weighted_range(problem)
    skewness: FloatArray | float = 0.0
    deviation: FloatArray | float = 0.0
    if moments is not None and np.isfinite(moments.variance).all():
        skewness, deviation = moments.skewness, np.sqrt(moments.variance)
    stage_bounds = stage_interval(
        [(stage.n, stage.means) for stage in stages], level, request.side, low=low, high=high, skewness=skewness,
        deviation=deviation,
    )
    lower, upper = stage_bounds.lower, stage_bounds.upper
    if not any(stage.infinite_ratio for stage in stages):  # no density is 0, so an infinite mean is one that overflowed
        lower = np.where(np.isfinite(stage_bounds.value), lower, low)
    bounded = math.isfinite(low) and math.isfinite(high)
    if problem.largest_weight == 1.0 and bounded and all(stage.independent for stage in stages):
        lower, upper = _bounds_of_constant(problem, stages, moments, level, request, (lower, upper))
    if all(stage.ratios_equal for stage in stages):
        lower, upper = _bounds_of_equal_ratios(problem, stages, level, request, stage_bounds.value)
    if replicates_equal(stages).any() and integrand.terms[0].name == "kl_forward" and moments is not None:
        lower = np.maximum(lower, _kl_lower_bound_of_constant(problem, stages, moments, level, request))
    if problem.distribution == "tilted" and integrand.terms[0].name == "renyi_proposal":
        unseen = -math.log1p(-level) / sum(stage.n * len(stage.means) for stage in stages)
        lower, upper = lower - unseen * (stage_bounds.value - low), upper + unseen * (high - stage_bounds.value)
    value, lower, upper = (np.clip(x, integrand.low, integrand.high) for x in (stage_bounds.value, lower, upper))
    return value, lower, upper


def all_means_constant(stages: list[Stage]) -> bool:
    """Whether all means are the same, but for the rounding of their sums."""
    if all(stage.ratios_equal for stage in stages):
        return True
    means = np.concatenate([stage.means for stage in stages])
    with np.errstate(invalid="ignore"):
        return bool((np.ptp(means, axis=0) <= ROUNDED * np.abs(means[0])).all())


def replicates_equal(stages: list[Stage]) -> BoolArray:
    """Where the replicates of a stage are all equal, so that they give no estimate of their spread; also where they
    differ only by the rounding of equal log ratios."""
    equal = [(stage.means == stage.means[0]).all(axis=0) | stage.ratios_equal for stage in stages]
    return np.asarray(np.any(equal, axis=0))


def _weighted_range(problem: SamplingProblem) -> tuple[float, float]:
    """The range of f times the weight of a sample."""
    integrand, most = problem.integrand, problem.largest_weight
    return min(integrand.low, integrand.low * most), max(integrand.high, integrand.high * most)


def _unseen_mass(level: float, request: Request, count: int) -> float:
    """m = 1 - a^(1 / N): a set of mass at most 1 - m holds N independent points with probability at most a."""
    error = (1.0 - level) / (2.0 if request.side == "both" else 1.0)
    return -math.expm1(math.log(error) / count)


def _log_ratio_rounding(stages: list[Stage]) -> float:
    """A bound of what rounding may do to a log ratio, from the size of the log densities."""
    sizes = (stage.log_ratios.size for stage in stages if stage.log_ratios is not None)
    return 4.0 * RATIO_ROUNDING * max(sizes, default=0.0)


def _bounds_of_constant(
    problem: SamplingProblem, stages: list[Stage], moments: PointMoments | None, level: float, request: Request,
    bounds: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Bounds of the mean of f, of order 1 / N, proved by N independent points with equal values.

    With m = 1 - a^(1 / N), a set of a mass of at most 1 - m holds N points with probability at most a, also where
    fixed numbers of them come from several sources, by the inequality of the means: masses of 1 - m_i, averaged over
    the points. If all means are within t of an end of the range, all n points of a replicate are within n t of it. Of
    values elsewhere, here from one source, those that entered the moments are near their mean, and the set is that of
    the values as near the first one, which leaves N - 1: docs/proofs/betting.md, theorem 9.6.
    """
    low, high = problem.integrand.low, problem.integrand.high
    lower, upper = bounds
    means = np.concatenate([stage.means for stage in stages])
    mass = _unseen_mass(level, request, sum(stage.n * len(stage.means) for stage in stages))
    n = max(stage.n for stage in stages)
    near = [n * (2.0 * ROUNDED + additions(problem, n) * UNIT_ROUNDOFF) * abs(end) for end in (low, high)]
    at_low = (means <= low + ROUNDED * abs(low)).all(axis=0)
    at_high = (means >= high - ROUNDED * abs(high)).all(axis=0)
    below = np.where(at_high, high - near[1] - mass * (high - low), np.where(at_low, low, lower))
    above = np.where(at_low, low + near[0] + mass * (high - low), np.where(at_high, high, upper))
    if moments is not None and moments.count > 1 and len(problem.sources) == 1:
        center = moments.mean
        constant = (np.sqrt(moments.variance) <= SAME * np.abs(center)) & ~at_low & ~at_high
        constant &= (np.abs(center) > _LEAST_CENTER) | (center == 0.0)  # values have one sign
        around = _SPREAD * SAME * np.abs(center) * math.sqrt(moments.count)
        mass = _unseen_mass(level, request, moments.count - 1)
        below = np.where(constant, center - around - mass * np.maximum(center - low, 0.0), below)
        above = np.where(constant, center + around + mass * np.maximum(high - center, 0.0), above)
    return (lower if request.side == "upper" else below), (upper if request.side == "lower" else above)


def _bounds_of_equal_ratios(
    problem: SamplingProblem, stages: list[Stage], level: float, request: Request, center: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What N points prove whose log ratios are equal but for rounding: as in ``_bounds_of_constant``, with the values
    within what the rounding of log ratios can do to them. Where the points of a replicate depend on each other, N
    counts the replicates.

    No number of points gives an end that the range does not have.
    """
    low, high = _weighted_range(problem)
    count = sum(len(stage.means) * (stage.n if stage.independent else 1) for stage in stages)
    mass = _unseen_mass(level, request, max(count - 1, 1))
    orders = [np.abs(term.parameters).max() for term in problem.integrand.terms if term.name.startswith("renyi")]
    steepness = 1.0 + max(orders, default=0.0)  # of f as a function of the log ratio, relative to 1 + |f|
    around = problem.largest_weight * steepness * _log_ratio_rounding(stages) * (1.0 + np.abs(center))
    below = np.full_like(center, -math.inf) if math.isinf(low) else center - around - mass * np.maximum(center - low, 0)
    above = np.full_like(center, math.inf)
    if math.isfinite(high):
        above = center + around + mass * np.maximum(high - center, 0)
    if request.side == "upper":
        below = np.full_like(center, low)
    return below, (np.full_like(center, high) if request.side == "lower" else above)


def _kl_lower_bound_of_constant(
    problem: SamplingProblem, stages: list[Stage], moments: PointMoments, level: float, request: Request
) -> float:
    """Lower bound of KL(P||Q) proved by a log ratio that is c at N independent draws of P.

    If all draws give one value, that value has a mass of less than 1 - m, m = 1 - a^(1 / (N - 1)), with probability
    below a. Where the ratio is c, Q has (1 - m) e^-c; what is left of both adds m log(m / (1 - (1 - m) e^-c)) at least,
    by the log-sum inequality, and the total falls with m.
    """
    c = float(moments.mean[0])
    constant = all(stage.ratios_equal for stage in stages) or bool(np.sqrt(moments.variance[0]) <= SAME * abs(c))
    if moments.count < 2 or not constant or problem.has_components:
        return -math.inf
    mass = _unseen_mass(level, request, moments.count - 1)
    remainder = 1.0 - (1.0 - mass) * math.exp(-max(c, 0.0))
    around = 2.0 * _SPREAD * SAME * abs(c) * math.sqrt(moments.count)
    return (1.0 - mass) * c + mass * math.log(mass / remainder) - _log_ratio_rounding(stages) - around
