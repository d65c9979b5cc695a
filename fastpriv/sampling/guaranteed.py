"""The run whose bounds hold for every number of samples and at every moment, proved from the range of the integrand.

Observations are points of small independent batches, stratified by component, and the means of these. Bets against
every candidate mean (``sequences``) bound theirs whenever the run is stopped. Where the integrand has no upper end it
is cut, and what the cut can take away, bounded by an exponential moment, is added to the upper bound.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from .._parallel import ordered_map
from .answers import Goal
from .engine import Outcome, compared, joined, pace
from .options import Request
from .problem import Problem
from .replicates import SEGMENT_COST, batch_values, ratio_sums, tile_size
from .statistics.normalisation import RatioSums
from .statistics.sequences import BoundedMean

__all__ = ["Cut", "run_guaranteed"]

FloatArray = NDArray[np.float64]

BATCH = 16  # points of a batch: two a component of 8, and a range that still matters little
FIRST = 4  # pieces of the first round; every later one doubles what there is
LARGEST_PIECE = 2**14  # batches
HELD = 2**23  # values of a piece


@dataclasses.dataclass(frozen=True, eq=False)
class Cut:
    """Where an integrand is cut, and the most that this can take off its mean; infinite where nothing is known."""

    at: float = math.inf
    excess: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(1))


@dataclasses.dataclass(frozen=True)
class _Pieces:
    """Of number i: the state after its batches, where a value was infinite, and what the log ratios tell."""

    problem: Problem
    cut: Cut
    root: SeedSequence
    batches: int

    def __call__(self, i: int) -> tuple[BoundedMean, NDArray[np.bool_], RatioSums | None]:
        state = _state(self.problem, self.cut)
        ratios = ratio_sums(self.problem)
        values = batch_values(self.problem, self.root, (4, i), self.batches, BATCH, self.cut.at, ratios)
        state.update_batches(np.minimum(values, np.finfo(float).max))
        return state, np.asarray(np.isposinf(values).any(axis=(1, 2))), ratios


def run_guaranteed(problems: Sequence[Problem], request: Request, goal: Goal, cut: Cut | None = None) -> Outcome:
    """Bound the means of the integrand of the first problem."""
    problem, cut = problems[0], cut or Cut()
    state = _state(problem, cut)
    size = _timed(_batches(problem, request), problem, request)
    ratios: RatioSums | None = None
    spent, done, stopped = 0, 0, ""
    infinite = np.zeros(problem.integrand.size, dtype=bool)
    answers = _answers(goal, state, infinite, False, cut, request)
    while not stopped:
        left = (request.sample_budget - spent) // (BATCH * size)
        pieces = min(max(done, FIRST), left)
        if pieces < 1:
            stopped = "max_samples"
            break
        bounded = _Pieces(problem, cut, request.root, size)
        results = ordered_map(bounded, range(done, done + pieces), n_jobs=request.n_jobs, progress=request.progress)
        try:
            for found, seen, new in results:
                state.merge(found)
                infinite |= seen
                ratios = joined(ratios, new)
                spent, done = spent + BATCH * size, done + 1
                if request.deadline.expired():
                    stopped = "max_seconds"
                    break
        except KeyboardInterrupt:
            if not done:
                raise
            stopped = "interrupted"
        finally:
            results.close()
        answers = _answers(goal, state, infinite, ratios is not None and ratios.endless, cut, request)
        if not stopped and goal.excess(answers, request) <= 1.0:
            stopped = "target"
    try:
        integrals = None if stopped == "interrupted" else compared(problem, ratios, request)
    except KeyboardInterrupt:
        integrals, stopped = None, "interrupted"
    repeatable = not request.deadline.affected and stopped != "interrupted"
    return Outcome(
        answers, problem.law, "random batches", stopped, spent, state.count // BATCH, 1, None, repeatable,
        equal=ratios is not None and ratios.alike, integrals=integrals,
    )  # fmt: skip


def _batches(problem: Problem, request: Request) -> int:
    """Batches of a piece: a fixed amount of work, and no more than a few pieces need."""
    most = min(LARGEST_PIECE, max(1, request.sample_budget // (BATCH * FIRST)))
    tiles = max(1, round(SEGMENT_COST / 4 / (problem.cost + 20 * problem.dimension) / tile_size(problem.dimension)))
    most = min(most, HELD // (BATCH * problem.integrand.size))
    return max(1, min(most, tiles * tile_size(problem.dimension) // BATCH))


def _timed(size: int, problem: Problem, request: Request) -> int:
    """Fewer batches where a piece would take a large part of the time."""
    cost, seconds = pace(problem, request)
    if not cost:
        return size
    able = request.deadline.remaining * cost / seconds / problem.cost / (2 * FIRST * BATCH)
    if able >= size:
        return size
    request.deadline.mark_affected()
    return max(1, int(able))


def _state(problem: Problem, cut: Cut) -> BoundedMean:
    integrand = problem.integrand
    return BoundedMean(integrand.size, low=integrand.low, high=min(integrand.high, cut.at), batch=BATCH)


def _answers(
    goal: Goal, state: BoundedMean, infinite: NDArray[np.bool_], endless: bool, cut: Cut, request: Request
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A value that is infinite with positive probability makes the mean infinite, and to see one proves it, unless all
    log ratios are finite: then it is beyond the largest double."""
    found = state.interval(request.confidence, request.side)
    upper = np.where(infinite, math.inf, np.maximum(found.upper + cut.excess, found.value))
    lower = np.where(infinite & endless, math.inf, found.lower)
    return goal.answers((np.where(infinite, math.inf, found.value), lower, upper))
