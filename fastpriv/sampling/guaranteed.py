"""The run whose bounds hold for every number of samples and at every moment, proved from the range of the integrand.

Observations are points of small independent batches, stratified by component, and the means of these. Bets against
every candidate mean (``confidence_sequences``) bound the true mean whenever the run is stopped. An integrand without an
upper end is truncated; what the truncation can take away, bounded by an exponential moment, is added to the upper
bound.

Truncation (docs/proofs/betting.md, theorem 9.3). Notation: f = log(p/q) under P, or the balanced integrand F = 2 s(l)
(l + e^-l - 1) under M = (P + Q)/2, which is at most 2 l^+ + 2; order s > 0.

log E_P e^(s l) is the logarithm of the integral of p^(1+s) q^(-s), which the proposals for Renyi divergences bound. For
T >= 2, (F - 2 T)^+ <= 2 (p/m) (l - T)^+ since p/m >= 1 where l > 0, so that E_M (F - 2 T)^+ <= 2 E_P (l - T)^+.

log E e^(-s log p) for a mixture p: p >= w_c n_c on the samples of component c, and E e^(s |z|^2 / 2) = (1 - s)^(-d/2).
"""

# bounds: proved - docs/proofs/betting.md, 9.6: rounding of a log moment; 1e-12 is a share of the target

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence

from ..base.executors import ordered
from ..base.numerics import BoolArray, FloatArray
from ..distributions import GaussianMixture
from ..distributions.packed import Packed
from .estimand import Estimand, ValueAndBounds
from .options import Request
from .problem import SamplingProblem
from .proposals.renyi_proposals import renyi_proposal
from .replicates import SEGMENT_COST, batch_values, log_ratio_sums, tile_size
from .statistics.confidence_sequences import BoundedMean, tail_excess
from .statistics.normalisation import LogRatioSums
from .stopping import RunOutcome, compare_normalisation, measured_pace

BATCH = 16  # points of a batch: two a component of 8, and a range that still matters little
FIRST_TASKS = 4  # of the first round; every later round doubles the number of tasks so far
MAX_TASK_BATCHES = 2**14  # batches of a task
MAX_TASK_VALUES = 2**23  # values of a task: 64 MB
MAX_HALVINGS = 40  # of the order of the exponential moment, from 1
TRUNCATION_SHARE = 1e-3  # share of the target that truncation may use up
MOMENT_TIME = 0.5  # share of the time that the search for a moment may take


class Truncation(NamedTuple):
    """The threshold at which an integrand is truncated, and a bound of what its means lose by that."""

    threshold: float = math.inf
    loss: FloatArray | float = 0.0


@dataclass(frozen=True)
class _BatchTask:
    """For task i: the state after its batches, where a value was infinite, and statistics of the log ratios."""

    problem: SamplingProblem
    truncation: Truncation
    root: SeedSequence
    batches: int

    def __call__(self, i: int) -> tuple[BoundedMean, BoolArray, LogRatioSums | None]:
        state = _initial_state(self.problem, self.truncation)
        log_ratios = log_ratio_sums(self.problem)
        threshold = self.truncation.threshold
        values = batch_values(self.problem, self.root, (4, i), self.batches, BATCH, threshold, log_ratios)
        state.update_batches(np.minimum(values, np.finfo(float).max))
        return state, np.asarray(np.isposinf(values).any(axis=(1, 2))), log_ratios


def run_guaranteed(
    problems: Sequence[SamplingProblem], request: Request, estimand: Estimand, truncation: Truncation | None = None
) -> RunOutcome:
    """Bound the means of the integrand of the first problem."""
    problem, truncation = problems[0], truncation or Truncation()
    state = _initial_state(problem, truncation)
    size = _limited_by_time(_task_batches(problem, request), problem, request)
    log_ratios = log_ratio_sums(problem)
    samples, done, stopped = 0, 0, ""
    infinite = np.zeros(problem.integrand.size, dtype=bool)
    estimates = estimand.estimates(_interval(state, infinite, False, truncation, request))
    while not stopped:
        left = (request.sample_budget - samples) // (BATCH * size)
        tasks = min(max(done, FIRST_TASKS), left)
        if tasks < 1:
            stopped = "max_samples"
            break
        task = _BatchTask(problem, truncation, request.root, size)
        results = ordered(
            task, range(done, done + tasks), executor=request.executor, n_jobs=request.n_jobs,
            progress=request.progress,
        )
        try:
            for block_state, seen, new in results:
                state.merge(block_state)
                infinite |= seen
                if log_ratios is not None and new is not None:
                    log_ratios.merge(new)
                samples, done = samples + BATCH * size, done + 1
                if request.time_budget.expired():
                    stopped = "max_seconds"
                    break
        except KeyboardInterrupt:
            if not done:
                raise
            stopped = "interrupted"
        finally:
            results.close()
        infinite_ratio = log_ratios is not None and log_ratios.infinite_ratio
        estimates = estimand.estimates(_interval(state, infinite, infinite_ratio, truncation, request))
        if not stopped and estimand.target_ratio(estimates, request) <= 1.0:
            stopped = "target"
    try:
        integrals = None if stopped == "interrupted" else compare_normalisation(problem, log_ratios, request)
    except KeyboardInterrupt:
        integrals, stopped = None, "interrupted"
    repeatable = not request.time_budget.affected and stopped != "interrupted"
    return RunOutcome(
        estimates, problem.distribution, "random batches", stopped, samples, state.count // BATCH, 1, None, repeatable,
        replicates_equal=log_ratios is not None and log_ratios.ratios_equal, integrals=integrals,
    )


def _task_batches(problem: SamplingProblem, request: Request) -> int:
    """Batches of a task: a fixed amount of work, at most what fills a few tasks."""
    most = min(MAX_TASK_BATCHES, max(1, request.sample_budget // (BATCH * FIRST_TASKS)))
    tiles = max(1, round(SEGMENT_COST / 4 / (problem.cost + 20 * problem.dimension) / tile_size(problem.dimension)))
    most = min(most, MAX_TASK_VALUES // (BATCH * problem.integrand.size))
    return max(1, min(most, tiles * tile_size(problem.dimension) // BATCH))


def _limited_by_time(batches: int, problem: SamplingProblem, request: Request) -> int:
    """Fewer batches where a task would take a large part of the time."""
    cost, seconds = measured_pace(problem, request)
    if not cost:
        return batches
    able = request.time_budget.remaining * cost / seconds / problem.cost / (2 * FIRST_TASKS * BATCH)
    return max(1, int(request.time_budget.limited(batches, able)))


def _initial_state(problem: SamplingProblem, truncation: Truncation) -> BoundedMean:
    integrand = problem.integrand
    return BoundedMean(integrand.size, low=integrand.low, high=min(integrand.high, truncation.threshold), batch=BATCH)


def _interval(
    state: BoundedMean, infinite: BoolArray, infinite_ratio: bool, truncation: Truncation, request: Request
) -> ValueAndBounds:
    """Value and bounds of the means. A value that is infinite with positive probability makes the mean infinite, and to
    see one proves it, unless all log ratios are finite: then it is beyond the largest double."""
    interval = state.interval(request.confidence, request.side)
    upper = np.where(infinite, math.inf, np.maximum(interval.upper + truncation.loss, interval.value))
    lower = np.where(infinite & infinite_ratio, math.inf, interval.lower)
    return np.where(infinite, math.inf, interval.value), lower, upper


def kl_truncation(p: GaussianMixture, q: GaussianMixture, request: Request, *, both: bool) -> Truncation:
    """For the balanced integrand of KL(P||Q), and of KL(Q||P) when ``both``."""
    pairs = [(p, q), (q, p)][: 1 + both]
    moments = [_log_ratio_moment(*pair, lambda: request.time_budget.expired(MOMENT_TIME)) for pair in pairs]
    if any(math.isinf(log_moment) for log_moment, _ in moments):
        return Truncation()
    t = max(_threshold(log_moment, s, 0.5 * _allowed_loss(log_moment / s, request)) for log_moment, s in moments)
    return Truncation(2.0 * t, np.array([2.0 * tail_excess(log_moment, s, t) for log_moment, s in moments]))


def entropy_truncation(packed: Packed, request: Request) -> Truncation:
    """For -log p under P, in the coordinates of the pack."""
    s = 0.5
    logs = packed.log_weights - s * packed.constants
    top = float(logs.max())
    log_moment = top + math.log(float(np.exp(logs - top).sum())) - 0.5 * packed.dimension * math.log1p(-s)
    log_moment += 2.0**-46 * (1.0 + np.abs([*packed.log_weights, *packed.constants]).max() + packed.dimension)
    threshold = _threshold(log_moment, s, _allowed_loss(1.0, request))
    return Truncation(threshold, np.array([tail_excess(log_moment, s, threshold)]))


def _log_ratio_moment(p: GaussianMixture, q: GaussianMixture, expired: Callable[[], bool]) -> tuple[float, float]:
    """A bound of log E_P e^(s l), and the largest order s = 2^-k that has one."""
    for k in range(MAX_HALVINGS):
        s = 0.5**k
        if expired():
            break
        proposal = renyi_proposal(p, q, 1.0 + s, expired=expired)
        if proposal.bounded and math.isfinite(proposal.log_scale):
            return max(proposal.log_scale, 0.0), s
    return math.inf, 1.0


def _allowed_loss(size: float, request: Request) -> float:
    """The loss by truncation allowed for a mean of about this size."""
    return TRUNCATION_SHARE * max(request.atol, request.rtol * size, 1e-12 * max(size, 1e-12))


def _threshold(log_moment: float, s: float, loss: float) -> float:
    """The threshold at which the loss by truncation is ``loss``."""
    return max((log_moment - 1.0 - math.log(s * loss)) / s, 2.0)
