"""The run: a pilot picks the way, stages of replicates follow until target or budget, and every stop is honest.

A stage is R independent replicates of n points each. The interval of a look spends its own part of the level, so that
stopping at the first look that meets the target keeps the level. Stages are combined with weights fixed by their
numbers of points. The same request gives the same bits for any number of threads, unless the clock or an interruption
had a say: ``cost["repeatable"]``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._parallel import ordered_map
from .allocation import allocated, probes_wanted
from .problem import Problem
from .replicates import SegmentSum, batch_means, segment_sum, segments
from .request import Request
from .statistics.intervals import look_confidence, stage_interval, student_factor
from .statistics.tails import PointMoments, TopValues

__all__ = ["Goal", "Outcome", "pace", "run"]

FloatArray = NDArray[np.float64]
Answers = tuple[FloatArray, FloatArray, FloatArray]

REPLICATES = 32
PILOT_REPLICATES = 16
MANY, MANY_FROM = 64, 4096  # replicates where there are points enough and nothing is lost: a better known spread
SECOND_REPLICATES = 64  # of a pilot that refines the plan of a large run
PILOT_POINTS = 2**10
LOOSE_POINTS = 2**8  # of one where rtol is at least LOOSE: less than this would mistake what pays in long runs
LOOSE = 3e-3
PILOT_COST = 2.0**22  # components times coordinates times points of a pilot's replicate
PILOT_SHARE = 16  # of max_samples
PROBE_SHARE = 4  # of what is left; a component that no probe looks at may carry the answer
PILOT_TIME, ALLOCATION = 0.5, 0.25  # of the time
POINTS_TRIED = ("sobol", "antithetic")
FEWEST = 4  # replicates that make an interval when a stage is cut short
FIRST_POINTS = 1024
GROWTH = 4096.0  # of n between stages, at most
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
MARGIN = 1.2  # on predicted half-widths
PROBE, BRIEF = 8, 0.005  # points that are timed before the pilot; seconds that say too little
FEWEST_MORE = 0.5  # of what there is, in a further stage: every look costs some of the level


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
        value, one, other = (np.clip(self.value(x), self.floor, self.ceiling) for x in interval)
        lower, upper = np.minimum(one, other), np.maximum(one, other)
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
            return float(np.max(np.where(half == 0.0, 0.0, half / asked)))


@dataclass
class Outcome:
    """What a run ended with, and how."""

    answers: Answers
    law: str
    points: str
    stopped: str
    samples: int
    replicates: int
    stages: int
    top: TopValues | None
    repeatable: bool = True

    @property
    def method(self) -> str:
        """A line for ``Estimate.method``."""
        return f"{self.law} {self.points} sampling"

    @property
    def cost(self) -> dict[str, object]:
        """For ``Estimate.cost``."""
        return {
            "samples": self.samples, "replicates": self.replicates, "stages": self.stages, "stopped": self.stopped,
            "repeatable": self.repeatable,
        }  # fmt: skip


@dataclass
class _Stage:
    """Means of f, shape (replicates, e), each over n points."""

    means: FloatArray
    n: int


@dataclass(frozen=True)
class _Reference:
    """What the next stage is planned from: half width over what was asked, at a level, from replicates of n points."""

    n: float
    excess: float
    level: float
    replicates: int

    def points(self, request: Request, points: str, look: int, replicates: int) -> float:
        """Points of each of so many replicates, all stages together, that should meet the target at this look."""
        level = look_confidence(request.confidence, look)
        wider = student_factor(level, replicates, request.side) / student_factor(
            self.level, self.replicates, request.side
        )
        rise = self.excess * wider * MARGIN * math.sqrt(self.replicates / replicates)
        return self.n * float(min(rise, 1e9) ** (2 / RATES[points]))


@dataclass
class _Run:
    """Budget, clock and what was collected so far."""

    request: Request
    samples: int = 0
    sampled_for: float = 0.0
    cost_done: float = 0.0
    interrupted: bool = False
    moments: PointMoments | None = None
    top: TopValues | None = None

    @property
    def left(self) -> int:
        return self.request.max_samples - self.samples

    def stage(
        self, problem: Problem, points: str, key: tuple[int, ...], replicates: int, n: int, *, pilot: bool = False
    ) -> _Stage:
        """As many of the replicates as time allows, FEWEST at least; fewer when interrupted."""
        pieces = [segments(problem, points, self.request.root, (*key, r), n) for r in range(replicates)]
        owner = [r for r, piece in enumerate(pieces) for _ in piece]
        sums: list[FloatArray] = [np.zeros(0)] * replicates
        complete, began = 0, time.monotonic()
        flat = [segment for piece in pieces for segment in piece]
        results = ordered_map(segment_sum, flat, n_jobs=self.request.n_jobs, progress=self.request.progress)
        try:
            for place, found in enumerate(results):
                r = owner[place]
                if flat[place].first == 0:
                    sums[r] = found.sums
                else:
                    sums[r] = sums[r] + found.sums
                if not pilot:
                    self._watch(found)
                self.samples += flat[place].last - flat[place].first
                if flat[place].last == n:
                    complete = r + 1
                    if complete >= FEWEST and self.request.clock.late():
                        break
        except KeyboardInterrupt:
            self.interrupted = True
        self.sampled_for += time.monotonic() - began
        self.cost_done += complete * n * problem.cost
        return _Stage(np.array(sums[:complete]).reshape(complete, problem.integrand.size) / n, n)

    def _watch(self, found: SegmentSum) -> None:
        if self.moments is None:
            self.moments, self.top = found.moments, found.top
            return
        self.moments.merge(found.moments)
        if self.top is not None and found.top is not None:
            self.top.merge(found.top)

    def affordable(self, problem: Problem) -> float:
        """Points that the rest of the time should allow, by the pace so far."""
        if not self.cost_done:
            return math.inf
        return 0.8 * self.request.clock.left * self.cost_done / self.sampled_for / problem.cost

    def limited(self, problem: Problem, points: float, share: float = 1.0) -> float:
        """``points``, or what this share of the time allows, at least 1."""
        able = share * self.affordable(problem)
        if able >= points:
            return points
        self.request.clock.feel()
        return max(able, 1.0)


def run(problems: Sequence[Problem], request: Request, goal: Goal) -> Outcome:
    """Estimate the means of the integrands of one of the problems, all of which have the same answer.

    Raises ``KeyboardInterrupt`` only when interrupted before anything could be said.
    """
    work = _Run(request)
    work.cost_done, work.sampled_for = pace(max(problems, key=lambda problem: problem.cost), request)
    problem, points, pilot = _picked(work, goal, [(x, points) for x in problems for points in _points(x, request)])
    if points != "plain" and not work.interrupted:
        most = int(work.limited(problem, min(work.left // PROBE_SHARE, probes_wanted(problem)), ALLOCATION))
        try:
            problem, spent = allocated(problem, request.root, (2,), most)
            work.samples += spent
        except KeyboardInterrupt:
            work.interrupted = True
    stages: list[_Stage] = []
    answers = reference = None
    if pilot is not None:
        answers, reference = _planned(goal, problem, pilot, request)
        n = 0 if request.spends_everything else _refining(reference, points, request)
        many = n * SECOND_REPLICATES * PILOT_SHARE
        if n > pilot.n and many <= work.left and work.limited(problem, many) >= many:
            second = work.stage(problem, points, (5,), SECOND_REPLICATES, n, pilot=True)
            if len(second.means) >= FEWEST:
                answers, reference = _planned(goal, problem, second, request)
    stopped = "interrupted" if work.interrupted else ""
    while not stopped:
        replicates, n = _size(work, problem, points, reference, len(stages) + 1)
        if n == 0:
            stopped = "max_samples"
            break
        found = work.stage(problem, points, (3, len(stages)), replicates, n)
        if len(found.means) >= min(FEWEST, replicates):
            stages.append(found)
            level = request.confidence
            if not request.spends_everything:
                level = look_confidence(level, len(stages))
            answers = goal.answers(_interval(problem, stages, level, request, work.moments))
            count = max(len(stage.means) for stage in stages)
            every = sum(stage.n * len(stage.means) for stage in stages)
            reference = _Reference(every / count, goal.excess(answers, request), level, count)
        if work.interrupted:
            stopped = "interrupted"
        elif reference is not None and stages and reference.excess <= 1.0:
            stopped = "target"
        elif work.affordable(problem) < FEWEST or request.clock.late():
            stopped = "max_seconds"
            request.clock.feel()
    if answers is None:
        raise KeyboardInterrupt
    count = sum(len(stage.means) for stage in stages)
    repeatable = not (request.clock.felt or work.interrupted)
    return Outcome(answers, problem.law, points, stopped, work.samples, count, len(stages), work.top, repeatable)


def pace(problem: Problem, request: Request) -> tuple[float, float]:
    """Cost and seconds of a few points that count for nothing, so that no stage is begun that can't be ended."""
    if math.isinf(request.max_seconds):
        return 0.0, 0.0
    for count in (PROBE, 32 * PROBE):
        began = time.monotonic()
        batch_means(problem, request.root, (8,), 1, count)
        seconds = time.monotonic() - began
        if seconds > BRIEF:  # else it is mostly what a call costs
            break
    return count * problem.cost, max(seconds, 1e-9)


def _planned(goal: Goal, problem: Problem, pilot: _Stage, request: Request) -> tuple[Answers, _Reference]:
    """What a pilot says, and what to plan from it."""
    means = _interval(problem, [pilot], request.confidence, request, None)
    excess = goal.excess(goal.answers(_unwidened(means)), request)
    return goal.answers(means), _Reference(pilot.n, excess, request.confidence, len(pilot.means))


def _refining(reference: _Reference, points: str, request: Request) -> int:
    """Points of a second pilot's replicate: a sixteenth of what the first one asks for."""
    if not math.isfinite(reference.excess):
        return 0
    wanted = reference.points(request, points, 1, SECOND_REPLICATES)
    n = min(wanted / PILOT_SHARE, GROWTH * reference.n)
    return 2 ** int(math.log2(n)) if n >= 1.0 else 0


def _interval(
    problem: Problem, stages: list[_Stage], level: float, request: Request, moments: PointMoments | None
) -> Answers:
    """Value, lower and upper of the means: Student's interval, widened for the skewness that the points show, and for
    what they cannot have seen.

    Where some components get fewer samples than their weights ask for, a replicate's mean may leave the range of f.
    Under a tilted law the integrand of a Renyi divergence is often flat but for a corner of small probability, where
    several components meet and it is many times larger. If no point falls there the replicates agree and their spread
    says nothing. A set of more than log(1/a) / N of
    the law escapes N points with probability below a: what it could add is added.
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
    if problem.law == "tilted" and integrand.rows[0].name == "renyi_proposal":
        unseen = -math.log1p(-level) / sum(stage.n * len(stage.means) for stage in stages)
        lower, upper = lower - unseen * (found.value - low), upper + unseen * (high - found.value)
    value, lower, upper = (np.clip(x, integrand.low, integrand.high) for x in (found.value, lower, upper))
    return value, lower, upper


def _unwidened(means: Answers) -> Answers:
    """What skewness adds to one side of a small interval is gone in a large one: plans leave it out."""
    value, lower, upper = means
    with np.errstate(invalid="ignore"):
        half = np.minimum(value - lower, upper - value)
        return (value, value - half, value + half) if np.isfinite(half).all() else means


def _points(problem: Problem, request: Request) -> tuple[str, ...]:
    """The point sets to choose from."""
    if not problem.has_components:
        return ("random",)
    return POINTS_TRIED if request.points is None else (request.points,)


def _picked(
    work: _Run, goal: Goal, candidates: list[tuple[Problem, str]]
) -> tuple[Problem, str, _Stage | None]:  # fmt: skip
    """The candidate with the smallest variance times cost, by a pilot whose points count for nothing else."""
    request = work.request
    problem, points = candidates[0]
    if len(candidates) == 1 and request.spends_everything:
        return problem, points, None
    kept, lowest = None, math.inf
    for index, (rival, net) in enumerate(candidates):
        most = LOOSE_POINTS if request.rtol >= LOOSE else PILOT_POINTS
        n = min(most, 2 ** max(5, int(PILOT_COST / rival.cost).bit_length()))
        n = min(n, request.max_samples // (PILOT_SHARE * len(candidates) * PILOT_REPLICATES) // 4 * 4)
        if n < 16:
            break
        affordable = work.limited(rival, PILOT_REPLICATES * n, PILOT_TIME / len(candidates))
        n = max(4, int(affordable) // PILOT_REPLICATES // 4 * 4)
        stage = work.stage(rival, net, (1, index), PILOT_REPLICATES, n, pilot=True)
        score = _score(stage, rival, net, goal, request) if len(stage.means) >= FEWEST else math.inf
        if len(stage.means) >= FEWEST and (kept is None or score < lowest):
            problem, points, kept, lowest = rival, net, stage, score
        if work.interrupted or request.clock.late(PILOT_TIME):
            break
    return problem, points, kept


def _score(stage: _Stage, problem: Problem, points: str, goal: Goal, request: Request) -> float:
    """Log of variance times cost at the end of the run, averaged over the answers; infinite where nothing was seen."""
    if not np.isfinite(stage.means).all() or not stage.means.any(axis=0).all():
        return math.inf
    variance = np.maximum(stage.means.var(axis=0, ddof=1), 1e-300)
    growth = request.max_samples / (REPLICATES * stage.n)
    if not request.spends_everything:
        reference = _planned(goal, problem, stage, request)[1]
        growth = min(growth, reference.points(request, points, 1, REPLICATES) / stage.n)
    gain = (RATES[points] - 1.0) * math.log(max(growth, 1.0))  # over points whose variance falls like 1 / n
    return float(np.log(variance).mean()) + math.log(problem.effort) - gain


def _size(
    work: _Run, problem: Problem, points: str, reference: _Reference | None, look: int
) -> tuple[int, int]:
    """Replicates and points of each for the next stage; no points when the budget is spent."""
    request, left = work.request, work.left
    least = problem.unit * (2 if points == "antithetic" else 1)
    most = left // REPLICATES // least * least
    if most < 1:  # fewer samples than replicates need
        return (left // least, least) if look == 1 and left >= 2 * least else (0, 0)
    wanted, replicates = float(min(FIRST_POINTS, max(64, most // 4))), REPLICATES
    if request.spends_everything and (reference is not None or math.isinf(request.max_seconds)):
        wanted = math.inf
    elif reference is not None and reference.excess < math.inf:
        wanted = reference.points(request, points, look, REPLICATES)
        done = reference.n * reference.replicates / REPLICATES
        if points != "sobol":
            if min(wanted, most) >= MANY_FROM:
                replicates, wanted, done = MANY, reference.points(request, points, look, MANY), done * REPLICATES / MANY
            wanted -= done if look > 1 else 0.0  # more points of the same kind: only what lacks
        if look > 1:
            wanted = max(wanted, FEWEST_MORE * done)
        wanted = min(wanted, GROWTH * max(done, 1.0))
    elif reference is not None:
        wanted = 4.0 * reference.n
    most = left // replicates // least * least
    wanted = max(work.limited(problem, replicates * min(wanted, most)) / replicates, float(least))
    if points != "sobol":
        n = int(min(wanted, most))
        step = 4 if n >= 4 and 4 % least == 0 else least  # even halves: pairs stay together
        return replicates, n // step * step
    n = 2 ** math.ceil(math.log2(min(wanted, most)))
    if n > most:  # the rest of the budget: a power of two, and as many replicates as fit
        n //= 2
        return min(2 * REPLICATES - 1, left // n), n
    return REPLICATES, n
