"""Stratified sampling of a posterior over a domain too large to enumerate.

Notation: the uniform prior over N secrets, r = e^l / Z; R replicates, each of n secrets, one from each of n ranges of
the domain (their sizes differ by one secret at most). With A_i the mean of e^(l - c) in replicate i and A the mean over
all of them, Z = e^c E A_i; for the other quantities, to first order in e_i = A_i / A - 1,

    KL: mean of (r log r - r + 1) - KL e_i,
    JS: mean of phi(r) / 2 - D e_i,  D = E r log(2 r / (1 + r)) / 2,

so that their intervals include the spread of the evidence. Replicates are independent, and give Student's intervals. No
sample shows how large the largest likelihood is: its bounds are the largest one drawn on one side, and on the other
what cannot be exceeded (no posterior exceeds 1).
"""

# bounds: none - 1e-300 avoids a division by 0 in a term that is then multiplied by 0

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from ..base import random_streams
from ..base.errors import warned
from ..base.numerics import LOG_2, FloatArray
from ..base.parallel import Progress, ordered_map
from ..channels.likelihoods import IndexLikelihood
from ..sampling.statistics.intervals import Interval, replicate_interval
from ..sampling.statistics.tail_index import LargestValues, PointMoments, tail_verdict
from .branch_and_bound import convex_js, convex_kl
from .index_evaluation import checked_function
from .result import INT64_LIMIT

__all__ = ["CONFIDENCE", "DomainSample", "sample_domain"]

CONFIDENCE = 0.95  # of every interval
_REPLICATES = 32  # independent replicates; their spread gives the interval
_MIN_REPLICATES = 4  # complete replicates, after an interruption, that still give an interval
_BUDGET_PER_DRAW = 2**8  # a 256th of the budget is drawn: 2^22 draws by default, some seconds
_BUDGET_PER_LONG_DRAW = 2**14  # the same for indices beyond 64 bits, which are Python integers: 2^16 draws
_BLOCK = 2**16  # draws in one task


class DomainSample(NamedTuple):
    """Intervals of the quantities, and the extremes of the log likelihoods that were drawn."""

    log_evidence: Interval
    kl: Interval
    js: Interval
    most: float
    least: float
    best: list[tuple[float, int]]
    draws: int
    interrupted: bool = False


def sample_domain(
    likelihood: IndexLikelihood, keep: int, rng: Any, n_jobs: int | None, progress: Progress
) -> DomainSample:
    """Estimates from draws in fixed ranges; the same bits for any number of threads.

    An interruption ends the run with the replicates that are complete, if they are enough for an interval.
    """
    size, function, root = likelihood.size, checked_function(likelihood), random_streams.root(rng)
    per_draw = _BUDGET_PER_DRAW if size <= INT64_LIMIT else _BUDGET_PER_LONG_DRAW
    ranges = min(max(4, likelihood.budget // per_draw // _REPLICATES), size)
    tasks = [(i, start) for i in range(_REPLICATES) for start in range(0, ranges, _BLOCK)]

    def draw(task: tuple[int, int]) -> tuple[NDArray[Any], FloatArray, FloatArray]:
        first, last = task[1], min(task[1] + _BLOCK, ranges)
        indices, weights = _draw_indices(size, ranges, first, last, root, task)
        return indices, function(indices), weights

    logs, weights = np.empty((_REPLICATES, ranges)), np.empty((_REPLICATES, ranges))
    best: dict[int, float] = {}
    results = ordered_map(draw, tasks, n_jobs=n_jobs, progress=progress)
    complete = 0
    try:
        for (i, start), (indices, draws, weight) in zip(tasks, results, strict=True):
            logs[i, start : start + len(draws)], weights[i, start : start + len(draws)] = draws, weight
            for j in np.argsort(-draws, kind="stable")[:keep]:
                best[int(indices[j])] = float(draws[j])
            complete = i + (start + len(draws) == ranges)
    except KeyboardInterrupt:
        if complete < _MIN_REPLICATES:
            raise
        logs, weights = logs[:complete], weights[:complete]
    finally:
        results.close()
    ranked = sorted((-log, index) for index, log in best.items() if log > -math.inf)[:keep]
    if ranked:
        sample = _estimated(logs, weights, size, [(-log, index) for log, index in ranked])
    else:
        warned(f"all {logs.size} sampled secrets are impossible: the bounds are those that hold for every posterior.")
        unknown = Interval(-math.inf, -math.inf, math.inf)
        sample = DomainSample(unknown, *_trivial_bounds(size), -math.inf, -math.inf, [], logs.size)
    return sample._replace(interrupted=complete < _REPLICATES)


def _draw_indices(
    size: int, ranges: int, first: int, last: int, root: SeedSequence, key: tuple[int, int]
) -> tuple[NDArray[Any], FloatArray]:
    """One secret from each of these ranges, and the size of each range relative to the mean."""
    stream = SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)
    generator = Generator(Philox(stream))
    step, longer = divmod(size, ranges)  # the first ``longer`` ranges have one more secret
    count = last - first
    is_longer = np.arange(first, last) < longer
    weights = np.where(is_longer, (step + 1) * ranges / size, step * ranges / size)
    if size <= INT64_LIMIT:
        ranks = np.arange(first, last, dtype=np.int64)
        starts = ranks * step + np.minimum(ranks, longer)
        return starts + generator.integers(0, np.where(is_longer, step + 1, step)), weights
    width = size.bit_length() // 8 + 17  # 128 extra bits: probabilities of values differ by at most 2^-128
    words = generator.bytes(count * width)
    indices = np.empty(count, dtype=object)
    for i in range(count):
        rank = first + i
        number = int.from_bytes(words[i * width : (i + 1) * width], "little")
        offset = number * (step + (rank < longer)) >> 8 * width
        indices[i] = rank * step + min(rank, longer) + offset
    return indices, weights


def _estimated(logs: FloatArray, weights: FloatArray, size: int, best: list[tuple[float, int]]) -> DomainSample:
    top, draws = float(logs.max()), logs.shape[1]
    means, moments = np.empty(len(logs)), PointMoments()
    for i, (row, weight) in enumerate(zip(logs, weights, strict=True)):
        scaled = np.exp(row - top)
        means[i] = np.mean(weight * scaled)
        moments.update(scaled)
    level = _interval(means, moments, 0, draws, math.inf)
    log_z = top + math.log(level.value)
    tails, sums = LargestValues(quantities=2), np.empty((len(logs), 3))
    for i, (row, weight) in enumerate(zip(logs, weights, strict=True)):
        ratio, kl_terms, js_terms = (function(row - log_z) for function in (np.exp, convex_kl, convex_js))
        tails.update(np.stack([ratio, kl_terms], axis=1))
        derivative = np.log(2.0 / (1.0 + 1.0 / np.maximum(ratio, 1e-300)))  # log(2 r / (1 + r))
        sums[i] = np.mean(weight * kl_terms), np.mean(weight * js_terms), np.mean(weight * ratio * derivative)
    verdict = "holds" if np.ptp(logs) < 1 else tail_verdict(tails.index())
    _warn_of_limits(verdict, size, logs.size)
    low, high = (-math.inf if end <= 0 else top + math.log(end) for end in (level.lower, level.upper))
    evidence, least = Interval(log_z, low, math.inf if verdict == "unknown" else high), float(logs.min())
    kl, js, slope = sums.mean(axis=0).tolist()
    if verdict == "unknown":
        return DomainSample(evidence, *_trivial_bounds(size, kl, js), top, least, best, logs.size)
    moments = PointMoments(quantities=2)
    for row in logs:
        ratio, kl_terms, js_terms = (function(row - log_z) for function in (np.exp, convex_kl, convex_js))
        change = ratio - 1.0
        moments.update(np.stack([kl_terms - kl * change, js_terms - 0.5 * slope * change], axis=1))
    change = means / level.value - 1.0  # e_i
    return DomainSample(
        evidence, _interval(sums[:, 0] - kl * change, moments, 0, draws, math.log(size)),
        _interval(sums[:, 1] - 0.5 * slope * change, moments, 1, draws, LOG_2), top, least, best, logs.size,
    )  # fmt: skip


def _interval(means: FloatArray, moments: PointMoments, which: int, points: int, high: float) -> Interval:
    """Student's interval, widened for the skewness of single draws."""
    return replicate_interval(
        means, CONFIDENCE, low=0.0, high=high, points=points, skewness=float(moments.skewness[which]),
        deviation=math.sqrt(float(moments.variance[which])),
    )  # fmt: skip


def _warn_of_limits(verdict: str, size: int, draws: int) -> None:
    warned(
        f"the largest and the smallest log likelihood of {size} secrets are not known from {draws} draws: bounds of "
        "the log ratios and of the vulnerability say what was seen, and what cannot be surpassed. Pass bound= for a "
        "search."
    )
    if verdict != "holds":
        warned(
            "few of the draws carry most of the evidence, and rarer secrets may carry more: "
            + ("intervals may miss too often. " if verdict == "warn" else "there is no upper end. ")
            + "Pass bound= for a search, or raise the budget."
        )


def _trivial_bounds(size: int, kl: float = 0.0, js: float = 0.0) -> tuple[Interval, Interval]:
    """KL and JS with the bounds that hold for any likelihood."""
    log_size, ln2 = math.log(size), LOG_2
    return Interval(min(kl, log_size), 0.0, log_size), Interval(min(js, ln2), 0.0, ln2)

