"""From replicates to answers: the interval of a mean, what holds where nothing varies, and the target.

Notation: f the integrand, whose e means stand in rows of replicates; a = 1 - level.

How large a stage has to be: from half widths of what was seen to points of what is next.

The spread of R replicates is known to a relative 1 / sqrt(2 (R - 1)), that of a stage and that of what it is planned
from. A stage is planned so that it meets its target in spite of both nine times in ten: one that fails has spent its
part of the level, and the next look asks for half as many points again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..distributions.packed import Packed
from ..numerics import BoolArray, FloatArray
from .options import Request
from .problem import Problem
from .statistics.intervals import look_confidence, stage_interval, student_factor
from .statistics.normalisation import ALIKE, RatioSums
from .statistics.tail_index import PointMoments

__all__ = [
    "GROWTH", "PILOT_SHARE", "RATES", "REPLICATES", "SECOND_REPLICATES", "Answers", "Goal", "Reference", "Stage",
    "confidence_at", "constant", "equal", "interval", "net", "planned", "refining", "shared",
]  # fmt: skip

Answers = tuple[FloatArray, FloatArray, FloatArray]

# bound: tested by intervals/test_constant - values so near are one: their mean is rounded
SAME = 1e-15  # relative distance of equal values: their mean is rounded
# bound: tested by intervals/test_constant - the same of means of equal values
ROUNDED = 1e-13  # that of means of equal values


@dataclass(frozen=True)
class Goal:
    """How means of f become the answer.

    Attributes
    ----------
    value : callable
        A monotone map of means, shape (e,), to answers.
    floor, ceiling : float or ndarray
        What the answer can never leave.
    scale : callable
        What ``rtol`` is relative to, given the answers: their size, or 1 for logarithms.
    """

    value: Callable[[FloatArray], FloatArray]
    floor: FloatArray | float = -math.inf
    ceiling: FloatArray | float = math.inf
    scale: Callable[[FloatArray], FloatArray] = np.abs

    def answers(self, interval: Answers) -> Answers:
        """Value, lower and upper of the answer from those of the mean."""
        value, one, other = (self.value(x) for x in interval)
        lower, upper = np.minimum(one, other), np.maximum(one, other)
        with np.errstate(invalid="ignore"):
            width = np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, 0.0)
        # an interval beyond the range keeps its width: that it has no point in common with the range is no proof
        lower = np.where(lower > self.ceiling, self.ceiling - width, lower)
        upper = np.where(upper < self.floor, self.floor + width, upper)
        value, lower, upper = (np.clip(x, self.floor, self.ceiling) for x in (value, lower, upper))
        return np.clip(value, lower, upper), lower, upper

    def excess(self, answers: Answers, request: Request) -> float:
        """Largest half width over what was asked; at most 1 once the target is met."""
        value, lower, upper = answers
        if request.side == "lower":
            half = value - lower
        elif request.side == "upper":
            half = upper - value
        else:
            with np.errstate(invalid="ignore"):
                half = np.where(lower == upper, 0.0, 0.5 * (upper - lower))
        with np.errstate(invalid="ignore"):
            asked = np.maximum(request.atol, request.rtol * self.scale(value))
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(half == 0.0, 0.0, half / asked)
        return float(np.max(np.where(np.isnan(excess), math.inf, excess)))  # an infinite end is no end


@dataclass
class Stage:
    """Means of f, shape (replicates, e), each over n points."""

    means: FloatArray
    n: int
    independent: bool = False  # its points, and not its replicates alone
    ratios: RatioSums | None = None  # what the log ratios tell where a density is unknown

    @property
    def endless(self) -> bool:
        """Whether a log ratio of an unknown density is infinite."""
        return self.ratios is not None and self.ratios.endless

    @property
    def alike(self) -> bool:
        """Whether a density is unknown and all log ratios are equal but for rounding."""
        return self.ratios is not None and self.ratios.alike


def interval(
    problem: Problem, stages: list[Stage], level: float, request: Request, moments: PointMoments | None
) -> Answers:
    """Value, lower and upper of the means: Student's interval, widened for the skewness that the points show, and for
    what they cannot have seen.

    Where some components get fewer samples than their weights ask for, a replicate's mean may leave the range of f.
    Under a tilted law the integrand of a Renyi divergence is often flat but for a corner of small probability, where
    several components meet and it is many times larger. If no point falls there the replicates agree and their spread
    says nothing. A set of more than log(1/a) / N of
    the law escapes N points with probability below a: what it could add is added.

    Where nothing varies, independent points prove more than replicates do. Log ratios of an unknown density that differ
    by their rounding alone do not vary: a component of small weight may be what no sample fell into.
    """
    integrand, most = problem.integrand, problem.largest_ratio
    low, high = min(integrand.low, integrand.low * most), max(integrand.high, integrand.high * most)
    skewness: FloatArray | float = 0.0
    deviation: FloatArray | float = 0.0
    if moments is not None and np.isfinite(moments.variance).all():
        skewness, deviation = moments.skewness, np.sqrt(moments.variance)
    found = stage_interval(
        [(stage.n, stage.means) for stage in stages], level, request.side, low=low, high=high, skewness=skewness,
        deviation=deviation,
    )  # fmt: skip
    lower, upper = found.lower, found.upper
    if not any(stage.endless for stage in stages):  # no density is 0
        lower = np.where(np.isfinite(found.value), lower, low)  # of sums that overflowed
    if most == 1.0 and math.isfinite(low) and math.isfinite(high) and all(stage.independent for stage in stages):
        lower, upper = _flat(problem, stages, moments, level, request, (lower, upper))
    if all(stage.alike for stage in stages):
        lower, upper = _alike(problem, stages, level, request, found.value)
    if equal(stages).any() and integrand.rows[0].name == "kl_forward" and moments is not None:
        lower = np.maximum(lower, _least(problem, stages, moments, level, request))
    if problem.law == "tilted" and integrand.rows[0].name == "renyi_proposal":
        unseen = -math.log1p(-level) / sum(stage.n * len(stage.means) for stage in stages)
        lower, upper = lower - unseen * (found.value - low), upper + unseen * (high - found.value)
    value, lower, upper = (np.clip(x, integrand.low, integrand.high) for x in (found.value, lower, upper))
    return value, lower, upper


def constant(stages: list[Stage]) -> bool:
    """Whether all means are the same, but for the rounding of their sums."""
    if all(stage.alike for stage in stages):
        return True
    means = np.concatenate([stage.means for stage in stages])
    with np.errstate(invalid="ignore"):
        return bool((np.ptp(means, axis=0) <= ROUNDED * np.abs(means[0])).all())


def equal(stages: list[Stage]) -> BoolArray:
    """Where the replicates of a stage are all equal, so that they do not know their spread; also where nothing but the
    rounding of log ratios that are alike makes them differ."""
    found: BoolArray = np.any(
        [(stage.means == stage.means[0]).all(axis=0) | stage.alike for stage in stages], axis=0
    )
    return found


def _flat(
    problem: Problem, stages: list[Stage], moments: PointMoments | None, level: float, request: Request,
    found: tuple[FloatArray, FloatArray],
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """What N independent points of which none differs prove of the mean of f: bounds of order 1 / N.

    With m = 1 - a^(1 / N), a set of a mass of at most 1 - m holds N points with probability at most a, also where
    fixed numbers of them come from several parts, by the inequality of the means: masses of 1 - m_i, averaged over the
    points. If all means are within t of an end of the range, all n points of a replicate are within n t of it. Of
    values elsewhere, here from one part, those that were looked at are within s = SAME |c| sqrt(N) of their mean c; the
    set is then that of the values within 2 s of the first one, which leaves N - 1.
    """
    integrand = problem.integrand
    low, high = integrand.low, integrand.high
    lower, upper = found
    error = (1.0 - level) / (2.0 if request.side == "both" else 1.0)
    means = np.concatenate([stage.means for stage in stages])
    count = sum(stage.n * len(stage.means) for stage in stages)
    mass = -math.expm1(math.log(error) / count)
    near = [max(stage.n for stage in stages) * ROUNDED * abs(end) for end in (low, high)]
    at_low = (means <= low + ROUNDED * abs(low)).all(axis=0)
    at_high = (means >= high - ROUNDED * abs(high)).all(axis=0)
    below = np.where(at_high, high - near[1] - mass * (high - low), np.where(at_low, low, lower))
    above = np.where(at_low, low + near[0] + mass * (high - low), np.where(at_high, high, upper))
    if moments is not None and moments.count > 1 and len(problem.parts) == 1:
        center = moments.mean
        alike = (np.sqrt(moments.variance) <= SAME * np.abs(center)) & ~at_low & ~at_high
        around = 3.0 * SAME * np.abs(center) * math.sqrt(moments.count)
        mass = -math.expm1(math.log(error) / (moments.count - 1))
        below = np.where(alike, center - around - mass * np.maximum(center - low, 0.0), below)
        above = np.where(alike, center + around + mass * np.maximum(high - center, 0.0), above)
    return (lower if request.side == "upper" else below), (upper if request.side == "lower" else above)


def _alike(
    problem: Problem, stages: list[Stage], level: float, request: Request, center: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What N points prove whose log ratios are equal but for rounding: as in ``_flat``, with the values within what the
    rounding of log ratios can do to them. Where points of a replicate depend on each other, N counts the replicates.

    No number of points gives an end that the range does not have.
    """
    integrand, most = problem.integrand, problem.largest_ratio
    low, high = min(integrand.low, integrand.low * most), max(integrand.high, integrand.high * most)
    count = sum(len(stage.means) * (stage.n if stage.independent else 1) for stage in stages)
    error = (1.0 - level) / (2.0 if request.side == "both" else 1.0)
    mass = -math.expm1(math.log(error) / max(count - 1, 1))
    steep = 1.0 + max(np.abs(row.parameters).max() if row.name.startswith("renyi") else 0.0 for row in integrand.rows)
    rounding = 4.0 * ALIKE * max(stage.ratios.size for stage in stages if stage.ratios is not None)
    around = most * steep * rounding * (1.0 + np.abs(center))
    below = np.full_like(center, -math.inf) if math.isinf(low) else center - around - mass * np.maximum(center - low, 0)
    above = np.full_like(center, math.inf)
    if math.isfinite(high):
        above = center + around + mass * np.maximum(high - center, 0)
    if request.side == "upper":
        below = np.full_like(center, low)
    return below, (np.full_like(center, high) if request.side == "lower" else above)


def _least(
    problem: Problem, stages: list[Stage], moments: PointMoments, level: float, request: Request
) -> float:  # fmt: skip
    """What a log ratio that is c at N independent draws of P proves of KL(P||Q).

    If all draws give one value, that value has a mass of less than 1 - m, m = 1 - a^(1 / (N - 1)), with probability
    below a. Where the ratio is c, Q has (1 - m) e^-c; what is left of both adds m log(m / (1 - (1 - m) e^-c)) at least,
    by the log-sum inequality, and the total falls with m.
    """
    c = float(moments.mean[0])
    alike = all(stage.alike for stage in stages) or bool(np.sqrt(moments.variance[0]) <= SAME * abs(c))
    if moments.count < 2 or not alike or any(isinstance(part.source, Packed) for part in problem.parts):
        return -math.inf
    error = (1.0 - level) / (2.0 if request.side == "both" else 1.0)
    mass = -math.expm1(math.log(error) / (moments.count - 1))
    rest = 1.0 - (1.0 - mass) * math.exp(-max(c, 0.0))
    rounding = 4.0 * ALIKE * max((stage.ratios.size for stage in stages if stage.ratios is not None), default=0.0)
    return (1.0 - mass) * c + mass * math.log(mass / rest) - rounding



REPLICATES = 32
FEW = 24  # at least, where a power of two is near: from 16 on intervals hold
LARGE_NETS, LARGE = 16, 4096  # replicates of a fixed budget, at least, where each has so many points or more
SECOND_REPLICATES = 64  # of a pilot that refines the plan of a large run
PILOT_SHARE = 16  # of max_samples
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
FALL = RATES | {"sobol": 2.0}  # what it rises like towards fewer points: of a range of rates the cautious end
FLAT = 2.0  # where nothing varies, bounds close in like 1 / n
SURE = 1.28  # standard errors of a predicted half width that a stage is planned to bear: it then fails once in ten
FEWEST_MORE = 0.5  # of what there is, in a further stage: every look costs some of the level
GROWTH = 4096.0  # of n between stages, at most

factor, confidence_at = lru_cache(256)(student_factor), lru_cache(256)(look_confidence)


@dataclass(frozen=True)
class Reference:
    """What the next stage is planned from: half width over what was asked, at a level, from replicates of n points."""

    n: float
    excess: float
    level: float
    replicates: int
    flat: bool = False

    def points(self, request: Request, points: str, look: int, replicates: int) -> float:
        """Points of each of so many replicates, all stages together, that should meet the target at this look."""
        level = confidence_at(request.confidence, look)
        wider = factor(level, replicates, request.side) / factor(self.level, self.replicates, request.side)
        error = math.sqrt(0.5 / (self.replicates - 1) + 0.5 / (replicates - 1))  # of log(spread / spread)
        rise = self.excess * wider * math.exp(SURE * error) * math.sqrt(self.replicates / replicates)
        rate = FLAT if self.flat else RATES[points] if rise > 1.0 else FALL[points]
        return self.n * float(min(rise, 1e9) ** (2 / rate))

    def wanted(self, request: Request, points: str, look: int, replicates: int) -> float:
        """Those of the next stage: of independent points only what lacks, and no less than is worth a look."""
        done = self.n * self.replicates / replicates
        wanted = self.points(request, points, look, replicates)
        if look > 1:
            wanted = max(wanted - (0.0 if points == "sobol" else done), FEWEST_MORE * done)
        return min(wanted, GROWTH * max(done, 1.0))


def planned(goal: Goal, problem: Problem, pilot: Stage, request: Request) -> Reference:
    """What to plan from, as far as a pilot knows."""
    excess = goal.excess(goal.answers(_plain(problem, pilot, request)), request)
    return Reference(pilot.n, excess, request.confidence, len(pilot.means))


def _plain(problem: Problem, pilot: Stage, request: Request) -> Answers:
    """Student's interval: what skewness adds to one side of a small one is gone in a large one."""
    integrand, count = problem.integrand, len(pilot.means)
    with np.errstate(invalid="ignore", over="ignore"):
        spread = pilot.means.std(axis=0, ddof=1)
    if not np.isfinite(spread).all() or not spread.all():
        return interval(problem, [pilot], request.confidence, request, None)
    half = factor(request.confidence, count, request.side) / math.sqrt(count) * spread
    value = pilot.means.mean(axis=0)
    half = np.minimum(half, np.maximum(np.minimum(value - integrand.low, integrand.high - value), 0.0))
    return value, value - half, value + half


def refining(reference: Reference, points: str, request: Request) -> int:
    """Points of a second pilot's replicate: a sixteenth of what the first one asks for."""
    if not math.isfinite(reference.excess):
        return 0
    wanted = reference.points(request, points, 1, SECOND_REPLICATES)
    n = min(wanted / PILOT_SHARE, GROWTH * reference.n)
    return 2 ** int(math.log2(n)) if n >= 1.0 else 0


def net(reference: Reference, request: Request, look: int) -> tuple[int, float]:
    """Replicates, and points of each, a power of two, that should meet the target with the fewest points in all."""
    found = []
    for replicates in range(FEW, SECOND_REPLICATES + 1, 4):
        n = 2.0 ** math.ceil(math.log2(max(reference.wanted(request, "sobol", look, replicates), 2.0)))
        found.append((replicates * n, -replicates, n))
    _, replicates, n = min(found)
    return -replicates, n


def shared(total: float, least: int) -> tuple[int, int]:
    """Replicates, and points of each, a power of two, that spend so many points: few where they are large, as nets of
    twice the points err less than half of them do together."""
    replicates = LARGE_NETS if total >= LARGE_NETS * LARGE else REPLICATES
    n = max(2 ** int(math.log2(max(total / replicates, 1.0))), least)
    return min(2 * replicates - 1, max(replicates, int(total) // n)), n
