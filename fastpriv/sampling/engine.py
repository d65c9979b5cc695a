"""The run: a pilot picks the way, stages of replicates follow until target or budget, and every stop is honest.

A stage is R independent replicates of n points each. The interval of a look spends its own part of the level, so that
stopping at the first look that meets the target keeps the level. Stages are combined with weights fixed by their
numbers of points. The same request gives the same bits for any number of threads, unless ``max_seconds`` or an
interruption ends the run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._parallel import ordered_map
from .allocation import allocated
from .intervals import look_confidence, stage_interval
from .problem import Problem
from .replicates import segment_sum, segments
from .request import Request
from .tails import TopValues

__all__ = ["Goal", "Outcome", "run"]

FloatArray = NDArray[np.float64]
Answers = tuple[FloatArray, FloatArray, FloatArray]

REPLICATES = 32
PILOT_REPLICATES = 16
PILOT_POINTS = 2**10
LOOSE_POINTS = 2**8  # of one where rtol is at least LOOSE: less than this would mistake what pays in long runs
LOOSE = 3e-3
PILOT_COST = 2.0**22  # components times coordinates times points of a pilot's replicate
PILOT_SHARE = 16  # of max_samples
FEWEST = 4  # replicates that make an interval when a stage is cut short
FIRST_POINTS = 1024
GROWTH = 4096  # of n between stages, at most
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
MARGIN = 1.2  # on predicted half-widths


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

    @property
    def method(self) -> str:
        """A line for ``Estimate.method``."""
        return f"{self.law} {self.points} sampling"

    @property
    def cost(self) -> dict[str, object]:
        """For ``Estimate.cost``."""
        return {
            "samples": self.samples, "replicates": self.replicates, "stages": self.stages, "stopped": self.stopped,
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
    began: float = field(default_factory=time.monotonic)
    samples: int = 0
    sampled_for: float = 0.0
    cost_done: float = 0.0
    interrupted: bool = False
    top: TopValues | None = None

    @property
    def left(self) -> int:
        return self.request.max_samples - self.samples

    @property
    def seconds_left(self) -> float:
        return self.request.max_seconds - (time.monotonic() - self.began)

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
                    if not pilot:
                        self._watch(found.top)
                else:
                    sums[r] = sums[r] + found.sums
                self.samples += flat[place].last - flat[place].first
                if flat[place].last == n:
                    complete = r + 1
                    if complete >= FEWEST and self.seconds_left <= 0:
                        break
        except KeyboardInterrupt:
            self.interrupted = True
        self.sampled_for += time.monotonic() - began
        self.cost_done += complete * n * problem.cost
        return _Stage(np.array(sums[:complete]).reshape(complete, problem.integrand.size) / n, n)

    def _watch(self, top: TopValues | None) -> None:
        if top is not None and self.top is not None:
            self.top.merge(top)
        elif top is not None:
            self.top = top

    def affordable(self, problem: Problem) -> float:
        """Points that the rest of the time should allow, by the pace so far."""
        if not self.cost_done or math.isinf(self.request.max_seconds):
            return math.inf
        return max(0.0, 0.8 * self.seconds_left) * self.cost_done / self.sampled_for / problem.cost


def run(problems: Sequence[Problem], request: Request, goal: Goal) -> Outcome:
    """Estimate the means of the integrands of one of the problems, all of which have the same answer.

    Raises ``KeyboardInterrupt`` only when interrupted before anything could be said.
    """
    work = _Run(request)
    problem, points, pilot = _picked(work, [(x, points) for x in problems for points in _points(x, request)])
    if points != "plain" and not work.interrupted:
        problem, spent = allocated(problem, request.root, (2,), work.left // PILOT_SHARE)
        work.samples += spent
    stages: list[_Stage] = []
    answers = None if pilot is None else _answers(goal, problem, [pilot], request.confidence, request)
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
            answers = _answers(goal, problem, stages, level, request)
            reference = (n, goal.excess(answers, request))
        if work.interrupted:
            stopped = "interrupted"
        elif reference is not None and stages and reference[1] <= 1.0:
            stopped = "target"
        elif work.seconds_left <= 0 or work.affordable(problem) < FEWEST:
            stopped = "max_seconds"
    if answers is None:
        raise KeyboardInterrupt
    count = sum(len(stage.means) for stage in stages)
    return Outcome(answers, problem.law, points, stopped, work.samples, count, len(stages), work.top)


def _answers(goal: Goal, problem: Problem, stages: list[_Stage], level: float, request: Request) -> Answers:
    integrand = problem.integrand
    found = stage_interval(
        [(stage.n, stage.means) for stage in stages], level, request.side, low=integrand.low, high=integrand.high
    )
    return goal.answers((found.value, found.lower, found.upper))


def _points(problem: Problem, request: Request) -> tuple[str, ...]:
    """The point sets to choose from."""
    if not problem.has_components:
        return ("random",)
    return ("sobol", "antithetic") if request.points is None else (request.points,)


def _picked(work: _Run, candidates: list[tuple[Problem, str]]) -> tuple[Problem, str, _Stage | None]:
    """The candidate with the smallest variance times cost, by a pilot whose points count for nothing else."""
    request = work.request
    problem, points = candidates[0]
    if len(candidates) == 1:
        return problem, points, None
    kept, lowest = None, math.inf
    for index, (rival, net) in enumerate(candidates):
        most = LOOSE_POINTS if request.rtol >= LOOSE else PILOT_POINTS
        n = min(most, 2 ** max(5, int(PILOT_COST / rival.cost).bit_length()))
        n = min(n, request.max_samples // (PILOT_SHARE * len(candidates) * PILOT_REPLICATES) // 4 * 4)
        if n < 16:
            break
        stage = work.stage(rival, net, (1, index), PILOT_REPLICATES, n, pilot=True)
        score = _score(stage, rival)
        if len(stage.means) >= FEWEST and (kept is None or score < lowest):
            problem, points, kept, lowest = rival, net, stage, score
        if work.interrupted or work.seconds_left <= 0:
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
    wanted = max(min(wanted, work.affordable(problem) / REPLICATES), 1.0)
    if points != "sobol":
        n = int(min(wanted, most))
        return REPLICATES, n - n % 4 if n > 4 else n  # even halves: pairs stay together
    n = 2 ** math.ceil(math.log2(min(wanted, most)))
    if n > most:  # the rest of the budget: a power of two, and as many replicates as fit
        n //= 2
        return min(2 * REPLICATES - 1, left // n), n
    return REPLICATES, n
