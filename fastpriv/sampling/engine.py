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
from .allocation import allocated
from .intervals import look_confidence, stage_interval
from .problem import Problem
from .replicates import SegmentSum, batch_means, segment_sum, segments
from .request import Request
from .tails import PointMoments, TopValues

__all__ = ["Goal", "Outcome", "pace", "run"]

FloatArray = NDArray[np.float64]
Answers = tuple[FloatArray, FloatArray, FloatArray]

REPLICATES = 32
PILOT_REPLICATES = 16
PILOT_COST = 2.0**22  # components times coordinates times points of a pilot's replicate
PILOT_SHARE = 16  # of max_samples
PROBE_SHARE = 4  # of what is left; a component that no probe looks at may carry the answer
PILOT_TIME, ALLOCATION = 0.5, 0.25  # of the time
POINTS_TRIED = ("sobol", "antithetic")
FEWEST = 4  # replicates that make an interval when a stage is cut short
FIRST_POINTS = 1024
GROWTH = 4096  # of n between stages, at most
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
MARGIN = 1.2  # on predicted half-widths
PROBE, BRIEF = 8, 0.005  # points that are timed before the pilot; seconds that say too little


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
    problem, points, pilot = _picked(work, [(x, points) for x in problems for points in _points(x, request)])
    if points != "plain" and not work.interrupted:
        most = int(work.limited(problem, work.left // PROBE_SHARE, ALLOCATION))
        try:
            problem, spent = allocated(problem, request.root, (2,), most)
            work.samples += spent
        except KeyboardInterrupt:
            work.interrupted = True
    stages: list[_Stage] = []
    answers = None
    if pilot is not None:  # what is said if nothing follows; the pilot chose the narrowest of several
        level = 1.0 - (1.0 - request.confidence) / (len(problems) * len(POINTS_TRIED))
        answers = _answers(goal, problem, [pilot], level, request, None)
    reference = None if pilot is None or answers is None else (pilot.n, goal.excess(answers, request))
    stopped = "interrupted" if work.interrupted else ""
    while not stopped:
        replicates, n = _size(work, problem, points, reference, first=not stages)
        if n == 0:
            stopped = "max_samples"
            break
        found = work.stage(problem, points, (3, len(stages)), replicates, n)
        if len(found.means) >= min(FEWEST, replicates):
            stages.append(found)
            level = request.confidence
            if not request.spends_everything:
                level = look_confidence(level, len(stages))
            answers = _answers(goal, problem, stages, level, request, work.moments)
            reference = (n, goal.excess(answers, request))
        if work.interrupted:
            stopped = "interrupted"
        elif reference is not None and stages and reference[1] <= 1.0:
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


def _answers(
    goal: Goal, problem: Problem, stages: list[_Stage], level: float, request: Request, moments: PointMoments | None
) -> Answers:
    """Student's interval, widened for the skewness that the points show, and for what they cannot have seen.

    Under a tilted law the integrand may be many times larger in a corner of small probability, where several components
    meet. If no point falls there the replicates agree and their spread says nothing. A set of more than log(1/a) / N of
    the law escapes N points with probability below a: what it could add is added.
    """
    integrand = problem.integrand
    ratios = [1.0, *(float(r) for part in problem.parts if part.ratio is not None for r in part.ratio)]
    low = integrand.low * (max(ratios) if integrand.low < 0 else min(ratios))
    high = integrand.high * (max(ratios) if integrand.high > 0 else min(ratios))
    skewness: FloatArray | float = 0.0
    deviation: FloatArray | float = 0.0
    if moments is not None and np.isfinite(moments.variance).all():
        skewness, deviation = moments.skewness, np.sqrt(moments.variance)
    found = stage_interval(
        [(stage.n, stage.means) for stage in stages], level, request.side, low=low, high=high, skewness=skewness,
        deviation=deviation,
    )  # fmt: skip
    lower, upper = found.lower, found.upper
    if problem.law == "tilted":
        unseen = -math.log1p(-level) / sum(stage.n * len(stage.means) for stage in stages)
        lower, upper = lower - unseen * (found.value - low), upper + unseen * (high - found.value)
    value, lower, upper = (np.clip(x, integrand.low, integrand.high) for x in (found.value, lower, upper))
    return goal.answers((value, lower, upper))


def _points(problem: Problem, request: Request) -> tuple[str, ...]:
    """The point sets to choose from."""
    if not problem.has_components:
        return ("random",)
    return POINTS_TRIED if request.points is None else (request.points,)


def _picked(work: _Run, candidates: list[tuple[Problem, str]]) -> tuple[Problem, str, _Stage | None]:
    """The candidate with the smallest variance times cost, by a pilot whose points count for nothing else."""
    request = work.request
    problem, points = candidates[0]
    if len(candidates) == 1:
        return problem, points, None
    kept, lowest = None, math.inf
    for index, (rival, net) in enumerate(candidates):
        n = 2 ** max(5, min(10, int(PILOT_COST / rival.cost).bit_length()))
        n = min(n, request.max_samples // (PILOT_SHARE * len(candidates) * PILOT_REPLICATES) // 4 * 4)
        if n < 16:
            break
        affordable = work.limited(rival, PILOT_REPLICATES * n, PILOT_TIME / len(candidates))
        n = max(4, int(affordable) // PILOT_REPLICATES // 4 * 4)
        stage = work.stage(rival, net, (1, index), PILOT_REPLICATES, n, pilot=True)
        score = _score(stage, rival)
        if len(stage.means) >= FEWEST and (kept is None or score < lowest):
            problem, points, kept, lowest = rival, net, stage, score
        if work.interrupted or request.clock.late(PILOT_TIME):
            break
    return problem, points, kept


def _score(stage: _Stage, problem: Problem) -> float:
    """Log of variance times cost, averaged over the answers; infinite where nothing was seen."""
    if not np.isfinite(stage.means).all() or not stage.means.any(axis=0).all():
        return math.inf
    variance = np.maximum(stage.means.var(axis=0, ddof=1), 1e-300)
    return float(np.log(variance).mean()) + math.log(problem.cost)


def _size(
    work: _Run, problem: Problem, points: str, reference: tuple[int, float] | None, *, first: bool
) -> tuple[int, int]:
    """Replicates and points of each for the next stage; no points when the budget is spent."""
    request, left = work.request, work.left
    most = left // REPLICATES
    if most < 1:  # fewer samples than replicates
        return (left, 1) if first and left >= 2 else (0, 0)
    wanted = float(min(FIRST_POINTS, max(64, most // 4)))
    if request.spends_everything and (reference is not None or math.isinf(request.max_seconds)):
        wanted = math.inf
    elif reference is not None:
        n, excess = reference
        wanted = n * min(max((MARGIN * excess) ** (2 / RATES[points]), 2.0), GROWTH) if excess < math.inf else n * 4.0
    wanted = max(work.limited(problem, REPLICATES * min(wanted, most)) / REPLICATES, 1.0)
    if points != "sobol":
        n = int(min(wanted, most))
        return REPLICATES, n - n % 4 if n > 4 else n  # even halves: pairs stay together
    n = 2 ** math.ceil(math.log2(min(wanted, most)))
    if n > most:  # the rest of the budget: a power of two, and as many replicates as fit
        n //= 2
        return min(2 * REPLICATES - 1, left // n), n
    return REPLICATES, n
