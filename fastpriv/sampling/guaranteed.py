"""The run whose bounds hold for every number of samples and at every moment, proved from the range of the integrand.

Observations are points of small independent batches, stratified by component, and the means of these. Bets against
every candidate mean (``sequences``) bound theirs whenever the run is stopped. Where the integrand has no upper end it
is cut, and what the cut can take away, bounded by an exponential moment, is added to the upper bound.

Where integrands without an upper end may be cut, and what that can take off their mean, by exponential moments.

Notation: f = log(p/q) under P, or the balanced integrand F = 2 s(l) (l + e^-l - 1) under M = (P + Q)/2, which is at
most 2 l^+ + 2; order s > 0.

log E_P e^(s l) is the logarithm of the integral of p^(1+s) q^(-s), which the proposals for Renyi divergences bound. For
T >= 2, (F - 2 T)^+ <= 2 (p/m) (l - T)^+ since p/m >= 1 where l > 0, so that E_M (F - 2 T)^+ <= 2 E_P (l - T)^+.

log E e^(-s log p) for a mixture p: p >= w_c n_c on the samples of component c, and E e^(s |z|^2 / 2) = (1 - s)^(-d/2).
"""

# bounds: tested by properties/test_tilting - rounding of a log moment (1e-12); the rest is a share of the target

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.random import SeedSequence

from .._parallel import ordered_map
from ..distributions import GaussianMixture
from ..distributions.packed import Packed
from ..numerics import BoolArray, FloatArray
from .engine import Outcome, compared, joined, pace
from .options import Request
from .problem import Problem
from .proposals.renyi_proposals import renyi_proposal
from .replicates import SEGMENT_COST, batch_values, ratio_sums, tile_size
from .stages import Goal
from .statistics.confidence_sequences import BoundedMean, tail_excess
from .statistics.normalisation import RatioSums

__all__ = ["Cut", "entropy_cut", "kl_cut", "run_guaranteed"]


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

    def __call__(self, i: int) -> tuple[BoundedMean, BoolArray, RatioSums | None]:
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
    goal: Goal, state: BoundedMean, infinite: BoolArray, endless: bool, cut: Cut, request: Request
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A value that is infinite with positive probability makes the mean infinite, and to see one proves it, unless all
    log ratios are finite: then it is beyond the largest double."""
    found = state.interval(request.confidence, request.side)
    upper = np.where(infinite, math.inf, np.maximum(found.upper + cut.excess, found.value))
    lower = np.where(infinite & endless, math.inf, found.lower)
    return goal.answers((np.where(infinite, math.inf, found.value), lower, upper))


_HALVINGS = 40
_SHARE = 1e-3  # of the target that the cut may use up
_SEARCH = 0.5  # of the time that the search for a moment may take


def kl_cut(p: GaussianMixture, q: GaussianMixture, request: Request, *, both: bool) -> Cut:
    """For the balanced integrand of KL(P||Q), and of KL(Q||P) when ``both``."""
    pairs = [(p, q), (q, p)][: 1 + both]
    moments = [_moment(*pair, lambda: request.deadline.expired(_SEARCH)) for pair in pairs]
    if any(math.isinf(log_moment) for log_moment, _ in moments):
        return Cut()
    at = max(_place(log_moment, s, 0.5 * _room(log_moment / s, request)) for log_moment, s in moments)
    return Cut(2.0 * at, np.array([2.0 * tail_excess(log_moment, s, at) for log_moment, s in moments]))


def entropy_cut(packed: Packed, request: Request) -> Cut:
    """For -log p under P, in the coordinates of the pack."""
    s = 0.5
    logs = packed.log_weights - s * packed.constants
    top = float(logs.max())
    log_moment = top + math.log(float(np.exp(logs - top).sum())) - 0.5 * packed.dimension * math.log1p(-s) + 1e-12
    at = _place(log_moment, s, _room(1.0, request))
    return Cut(at, np.array([tail_excess(log_moment, s, at)]))


def _moment(p: GaussianMixture, q: GaussianMixture, expired: Callable[[], bool]) -> tuple[float, float]:
    """A bound of log E_P e^(s l), and the largest order s = 2^-k that has one."""
    for k in range(_HALVINGS):
        s = 0.5**k
        if expired():
            break
        proposal = renyi_proposal(p, q, 1.0 + s, expired=expired)
        if proposal.bounded and math.isfinite(proposal.log_scale):
            return max(proposal.log_scale, 0.0), s
    return math.inf, 1.0


def _room(size: float, request: Request) -> float:
    return _SHARE * max(request.atol, request.rtol * size, 1e-12 * max(size, 1e-12))


def _place(log_moment: float, s: float, room: float) -> float:
    """Where the excess is ``room``."""
    return max((log_moment - 1.0 - math.log(s * room)) / s, 2.0)
