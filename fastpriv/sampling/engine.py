"""The run: a pilot picks the way, stages of replicates follow until target or budget, and every stop is honest.

A stage is R independent replicates of n points each. The interval of a look spends its own part of the level, so that
stopping at the first look that meets the target keeps the level. Stages are combined with weights fixed by their
numbers of points. The same request gives the same bits for any number of threads, unless ``max_seconds`` or an
interruption ends the run.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._parallel import ordered_map
from ..errors import SamplingWarning
from .allocation import allocated
from .intervals import look_confidence, stage_interval
from .problem import Problem
from .replicates import TOP, segment_sum, segments
from .request import Request

__all__ = ["Goal", "Outcome", "run"]

FloatArray = NDArray[np.float64]

REPLICATES = 32
PILOT_REPLICATES = 16
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
    relative_to : {"value", "1"}
        What ``rtol`` is relative to; "1" for logarithms.
    """

    value: Callable[[FloatArray], FloatArray]
    floor: FloatArray | float = -math.inf
    ceiling: FloatArray | float = math.inf
    relative_to: str = "value"

    def answers(self, interval: tuple[FloatArray, FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, lower and upper of the answer from those of the mean."""
        value, one, other = (np.clip(self.value(x), self.floor, self.ceiling) for x in interval)
        lower, upper = np.minimum(one, other), np.maximum(one, other)
        return np.clip(value, lower, upper), lower, upper

    def excess(self, answers: tuple[FloatArray, FloatArray, FloatArray], request: Request) -> float:
        """Largest half width over what was asked; at most 1 once the target is met."""
        value, lower, upper = answers
        if request.side == "lower":
            half = value - lower
        elif request.side == "upper":
            half = upper - value
        else:
            with np.errstate(invalid="ignore"):
                half = np.where(lower == upper, 0.0, 0.5 * (upper - lower))
        scale = np.abs(value) if self.relative_to == "value" else np.ones_like(value)
        asked = np.maximum(request.atol, request.rtol * scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(half == 0.0, 0.0, half / asked)))


@dataclass
class Outcome:
    """What a run ended with, and how."""

    answers: tuple[FloatArray, FloatArray, FloatArray]
    law: str
    points: str
    stopped: str
    samples: int
    replicates: int
    stages: int
    top: FloatArray

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
    top: list[FloatArray] = field(default_factory=list)

    @property
    def left(self) -> int:
        return self.request.max_samples - self.samples

    @property
    def seconds_left(self) -> float:
        return self.request.max_seconds - (time.monotonic() - self.began)

    def stage(self, problem: Problem, points: str, key: tuple[int, ...], replicates: int, n: int) -> _Stage:
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
                    if found.top is not None:
                        self.top = [_joined(self.top, found.top)]
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
        return _Stage(np.array(sums[:complete]).reshape(complete, -1) / n, n)

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
    candidates = [(problem, points) for problem in problems for points in _points(problem, request)]
    (problem, points), pilot = _picked(work, candidates)
    if points != "plain" and not work.interrupted:
        problem, spent = allocated(problem, request.root, (2,), work.left // PILOT_SHARE)
        work.samples += spent
    stages: list[_Stage] = []
    stopped = "interrupted" if work.interrupted else ""
    confidence = request.confidence
    answers = None
    while not stopped:
        replicates, n = _size(work, problem, points, stages, goal, answers)
        if n == 0:
            stopped = "max_samples"
            break
        found = work.stage(problem, points, (3, len(stages)), replicates, n)
        if len(found.means) >= min(FEWEST, replicates):
            stages.append(found)
            if not request.spends_everything:
                confidence = look_confidence(request.confidence, len(stages) - 1)
            answers = _answers(goal, stages, confidence, request)
        if work.interrupted:
            stopped = "interrupted"
        elif answers is not None and goal.excess(answers, request) <= 1.0:
            stopped = "target"
        elif work.seconds_left <= 0 or (answers is not None and work.affordable(problem) < 2 * FEWEST):
            stopped = "max_seconds"
    if answers is None:
        if pilot is None or len(pilot.means) < 2:
            raise KeyboardInterrupt
        stages = [pilot]
        answers = _answers(goal, stages, request.confidence, request)
    count = sum(len(stage.means) for stage in stages)
    top = work.top[0] if work.top else np.zeros((1, 0))
    return Outcome(answers, problem.law, points, stopped, work.samples, count, len(stages), top)


def _answers(
    goal: Goal, stages: list[_Stage], confidence: float, request: Request
) -> tuple[FloatArray, FloatArray, FloatArray]:
    interval = stage_interval([(stage.means, stage.n) for stage in stages], confidence, request.side)
    return goal.answers(interval)


def _points(problem: Problem, request: Request) -> tuple[str, ...]:
    """The point sets to choose from."""
    if problem.is_user_sampled:
        return ("random",)
    if request.points is not None:
        return (request.points,)
    return ("sobol", "antithetic")


def _picked(work: _Run, candidates: list[tuple[Problem, str]]) -> tuple[tuple[Problem, str], _Stage | None]:
    """The candidate with the smallest variance times cost, by a pilot, whose points count for nothing else."""
    request = work.request
    if len(candidates) == 1:
        return candidates[0], None
    best, kept, lowest = candidates[0], None, math.inf
    for index, (problem, points) in enumerate(candidates):
        n = int(PILOT_COST / problem.cost)
        n = 2 ** max(5, min(10, n.bit_length()))
        n = min(n, request.max_samples // (PILOT_SHARE * len(candidates) * PILOT_REPLICATES) // 2 * 2)
        if n < 16:
            return candidates[0], None
        stage = work.stage(problem, points, (1, index), PILOT_REPLICATES, n)
        score = _score(stage, problem)
        if kept is None or score < lowest:
            best, kept, lowest = (problem, points), stage, score
        if work.interrupted or work.seconds_left <= 0:
            break
    return best, kept


def _score(stage: _Stage, problem: Problem) -> float:
    """Log of variance times cost, averaged over the answers; infinite where nothing was seen."""
    if len(stage.means) < 2 or not np.isfinite(stage.means).all() or not stage.means.any(axis=0).all():
        return math.inf
    variance = np.maximum(stage.means.var(axis=0, ddof=1), 1e-300)
    return float(np.log(variance).mean()) + math.log(problem.cost)


def _size(
    work: _Run, problem: Problem, points: str, stages: list[_Stage], goal: Goal,
    answers: tuple[FloatArray, FloatArray, FloatArray] | None,
) -> tuple[int, int]:  # fmt: skip
    """Replicates and points of each for the next stage; no points when the budget is spent."""
    request, left = work.request, work.left
    if request.spends_everything and (stages or math.isinf(request.max_seconds)):
        wanted: float = left / REPLICATES
    elif answers is None:
        wanted = min(FIRST_POINTS, max(64.0, PILOT_COST / problem.cost))
        wanted = min(wanted, max(left / (4 * REPLICATES), 1.0)) if not request.spends_everything else wanted
    else:
        factor = (MARGIN * goal.excess(answers, request)) ** (2 / RATES[points])
        wanted = stages[-1].n * min(max(factor, 2.0), GROWTH)
    wanted = min(wanted, work.affordable(problem) / REPLICATES)
    most = left // REPLICATES
    if most < 1:  # fewer samples than replicates
        return (left, 1) if not stages and left >= 2 else (0, 0)
    n = int(min(max(wanted, 1.0), most))
    if points == "sobol":  # a power of two, and as many replicates as fit
        n = 2 ** (n.bit_length() - (1 if wanted >= most or n & (n - 1) == 0 else 0))
        while n > most:
            n //= 2
        replicates = min(2 * REPLICATES - 1, left // n) if wanted >= most else REPLICATES
        return replicates, n
    return REPLICATES, n - n % 2 if n > 1 else n


def _joined(kept: list[FloatArray], top: FloatArray) -> FloatArray:
    """The TOP largest of both."""
    both = np.concatenate([*kept, top], axis=1)
    return both if both.shape[1] <= TOP else np.partition(both, both.shape[1] - TOP, axis=1)[:, -TOP:]
