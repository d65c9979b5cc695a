"""A posterior over a domain that is too large to look at, from a sample of it.

Notation: the uniform law over N secrets, r = e^l / Z; R replicates, each of n secrets, one from each of n ranges of the
domain (sizes differ by one secret at most). With A_i the mean of e^(l - c) in replicate i and A that of all of them,
Z = e^c E A_i; for the others, to first order in e_i = A_i / A - 1,

    KL: mean of (r log r - r + 1) - KL e_i,
    JS: mean of phi(r) / 2 - D e_i,  D = E r log(2 r / (1 + r)) / 2,

so that the spread of the evidence is part of theirs. Replicates are independent, and give Student's intervals. What no
sample can tell is how large the largest likelihood is: its bounds are what was seen on one side, and what cannot be
surpassed on the other (no posterior exceeds 1).
"""

# bounds: none - keeps a quotient by 0 away where chances of draws are made

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence
from numpy.typing import NDArray

from ... import _random
from ..._parallel import Progress, ordered_map
from ..._values import FloatArray
from ...channels.likelihoods.kinds import IndexLikelihood
from ...errors import warned
from ...sampling.statistics.intervals import Interval, replicate_interval
from ...sampling.statistics.tails import PointMoments, TopValues, tail_verdict
from .branching import half_phi, surprise
from .functions import evaluator

__all__ = ["CONFIDENCE", "Drawn", "drawn"]

CONFIDENCE = 0.95
_REPLICATES, _FEWEST = 32, 4
_SHARE, _SHARE_OF_LONG = 2**8, 2**14  # of the budget that is drawn; of indices beyond 64 bits
_PLAIN = 2**63
_BLOCK = 2**16


class Drawn(NamedTuple):
    """Intervals, and what was seen of the likelihood."""

    log_evidence: Interval
    kl: Interval
    js: Interval
    most: float
    least: float
    best: list[tuple[float, int]]
    draws: int
    interrupted: bool = False


def drawn(likelihood: IndexLikelihood, keep: int, rng: Any, n_jobs: int | None, progress: Progress) -> Drawn:
    """Estimates from draws in fixed ranges; the same bits for any number of threads.

    An interruption ends it with the replicates that are complete, if they are enough for an interval.
    """
    size, at, root = likelihood.size, evaluator(likelihood), _random.root(rng)
    share = _SHARE if size <= _PLAIN else _SHARE_OF_LONG
    ranges = min(max(4, likelihood.budget // share // _REPLICATES), size)
    tiles = [(i, start) for i in range(_REPLICATES) for start in range(0, ranges, _BLOCK)]

    def sampled(tile: tuple[int, int]) -> tuple[NDArray[Any], FloatArray, FloatArray]:
        first, last = tile[1], min(tile[1] + _BLOCK, ranges)
        indices, weights = _indices(size, ranges, first, last, root, tile)
        return indices, at(indices), weights

    logs, weights = np.empty((_REPLICATES, ranges)), np.empty((_REPLICATES, ranges))
    best: dict[int, float] = {}
    results = ordered_map(sampled, tiles, n_jobs=n_jobs, progress=progress)
    complete = 0
    try:
        for (i, start), (indices, found, weight) in zip(tiles, results, strict=True):
            logs[i, start : start + len(found)], weights[i, start : start + len(found)] = found, weight
            for j in np.argsort(-found, kind="stable")[:keep]:
                best[int(indices[j])] = float(found[j])
            complete = i + (start + len(found) == ranges)
    except KeyboardInterrupt:
        if complete < _FEWEST:
            raise
        logs, weights = logs[:complete], weights[:complete]
    finally:
        results.close()
    return _summarised(logs, weights, size, best, keep)._replace(interrupted=complete < _REPLICATES)


def _summarised(logs: FloatArray, weights: FloatArray, size: int, best: dict[int, float], keep: int) -> Drawn:
    ordered = sorted((-log, index) for index, log in best.items() if log > -math.inf)[:keep]
    if not ordered:
        warned(f"all of {logs.size} draws are impossible secrets: nothing is known but bounds that hold for any law.")
        return Drawn(Interval(-math.inf, -math.inf, math.inf), *_nothing(size), -math.inf, -math.inf, [], logs.size)
    return _estimated(logs, weights, size, [(-log, index) for log, index in ordered])


def _indices(
    size: int, ranges: int, first: int, last: int, root: SeedSequence, key: tuple[int, int]
) -> tuple[NDArray[Any], FloatArray]:
    """One secret from each of these ranges, and the size of each relative to the mean."""
    stream = SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *key), pool_size=root.pool_size)
    generator = Generator(Philox(stream))
    step, longer = divmod(size, ranges)  # the first ranges are longer by one
    count = last - first
    long = np.arange(first, last) < longer
    weights = np.where(long, (step + 1) * ranges / size, step * ranges / size)
    if size <= _PLAIN:
        ranks = np.arange(first, last, dtype=np.int64)
        starts = ranks * step + np.minimum(ranks, longer)
        return starts + generator.integers(0, np.where(long, step + 1, step)), weights
    width = size.bit_length() // 8 + 17  # 128 bits more than needed: no value is likelier by more than 2^-128
    words = generator.bytes(count * width)
    found = np.empty(count, dtype=object)
    for i in range(count):
        rank = first + i
        part = step + (rank < longer)
        number = int.from_bytes(words[i * width : (i + 1) * width], "little")
        found[i] = rank * step + min(rank, longer) + (number * part >> 8 * width)
    return found, weights


def _estimated(logs: FloatArray, weights: FloatArray, size: int, best: list[tuple[float, int]]) -> Drawn:
    top, draws = float(logs.max()), logs.shape[1]
    means, moments = np.empty(len(logs)), PointMoments()
    for i, (row, weight) in enumerate(zip(logs, weights, strict=True)):
        scaled = np.exp(row - top)
        means[i] = np.mean(weight * scaled)
        moments.update(scaled)
    level = _interval(means, moments, 0, draws, math.inf)
    log_z = top + math.log(level.value)
    tails, sums = TopValues(quantities=2), np.empty((len(logs), 3))
    for i, (row, weight) in enumerate(zip(logs, weights, strict=True)):
        ratio, excess, apart = _terms(row - log_z)
        tails.update(np.stack([ratio, excess], axis=1))
        lean = np.log(2.0 / (1.0 + 1.0 / np.maximum(ratio, 1e-300)))  # log 2 r / (1 + r)
        sums[i] = np.mean(weight * excess), np.mean(weight * apart), np.mean(weight * ratio * lean)
    verdict = "holds" if np.ptp(logs) < 1 else tail_verdict(tails.index())
    _warned(verdict, size, logs.size)
    upper = math.inf if verdict == "unknown" else _log(level.upper, top)
    evidence, least = Interval(log_z, _log(level.lower, top), upper), float(logs.min())
    kl, js, slope = sums.mean(axis=0).tolist()
    if verdict == "unknown":
        return Drawn(evidence, *_nothing(size, kl, js), top, least, best, logs.size)
    moments = PointMoments(quantities=2)
    for row in logs:
        ratio, excess, apart = _terms(row - log_z)
        off = ratio - 1.0
        moments.update(np.stack([excess - kl * off, apart - 0.5 * slope * off], axis=1))
    off = means / level.value - 1.0
    return Drawn(
        evidence, _interval(sums[:, 0] - kl * off, moments, 0, draws, math.log(size)),
        _interval(sums[:, 1] - 0.5 * slope * off, moments, 1, draws, math.log(2.0)), top, least, best, logs.size,
    )  # fmt: skip


def _terms(y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """r, and what a draw adds to KL and to JS."""
    return np.exp(y), surprise(y), half_phi(y)


def _interval(means: FloatArray, moments: PointMoments, which: int, points: int, high: float) -> Interval:
    """Student's, widened for the skewness that single draws show."""
    return replicate_interval(
        means, CONFIDENCE, low=0.0, high=high, points=points, skewness=float(moments.skewness[which]),
        deviation=math.sqrt(float(moments.variance[which])),
    )  # fmt: skip


def _warned(verdict: str, size: int, draws: int) -> None:
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


def _nothing(size: int, kl: float = 0.0, js: float = 0.0) -> tuple[Interval, Interval]:
    """KL and JS of which nothing is proved."""
    entropy, bit = math.log(size), math.log(2.0)
    return Interval(min(kl, entropy), 0.0, entropy), Interval(min(js, bit), 0.0, bit)


def _log(mean: float, top: float) -> float:
    return -math.inf if mean <= 0 else top + math.log(mean)
