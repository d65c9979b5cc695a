"""Probability of missing a target, from counted samples.

A pilot plans the first interim analysis; each further one doubles the number of samples. Given the pilot, the analyses
lie at fixed numbers, and each spends its part of the level on an exact interval of its count: the interval holds
whichever analysis the run stops at. The samples come in blocks, each from its own stream, so that the count depends on
the seed alone, unless the time_budget or an interruption affected it. Secrets, several for robust accuracy, advance
together.
"""

# bounds: none - keeps a quotient by 0 away

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence

from ...base import random_streams
from ...base.numerics import FloatArray, IntArray
from ...base.parallel import ordered_map
from ...distributions.user_functions import Sampler
from ...sampling.options import Request
from ...sampling.statistics.intervals import Interval, analysis_confidence, binomial_interval, student_factor

_BLOCK_SAMPLES, _BLOCK_ENTRIES = 2**14, 2**20  # samples of a block, and their coordinates in all, at most
_BLOCKS_AT_ONCE = 2**10  # blocks of a secret that are handed out together
_FEW_ALPHAS = 16  # alphas up to which they are compared one by one
_PILOT_SAMPLES = 2**12  # samples of a pilot, at most: it plans the first analysis and enters no result
_PILOT_SHARE = 8  # the pilot takes at most the eighth part of the budget
_RELIABLE_MISSES = 100  # misses of a pilot that plans the first analysis; after fewer it is a quarter as long
_MAIN, _PILOT = 0, 1  # keys of random streams


@dataclass
class MissCounts:
    """Samples of one secret: misses of each alpha, number of samples, the analyses, and why the run stopped."""

    misses: IntArray
    samples: int = 0
    analyses: list[int] = field(default_factory=list)  # numbers of samples at the interim analyses
    analysis: int = 1
    stopped: str = ""

    def interval(self, request: Request, simultaneous: int = 1) -> Interval:
        """Exact interval at the level of this analysis, or at that of one of several intervals that all hold."""
        level = 1.0 - (1.0 - request.confidence) / simultaneous
        if not request.spends_everything:
            level = analysis_confidence(level, self.analysis)
        return binomial_interval(self.misses, self.samples, level, request.side)


class _SampleBlock(NamedTuple):
    """A task: so many samples of one secret from stream ``number`` of its kind."""

    number: int
    secret: int
    samples: int
    stream: int


@dataclass(frozen=True)
class _BlockMisses:
    """How many samples of a block lie beyond each alpha (in increasing order)."""

    samplers: Sequence[Sampler]
    target: FloatArray
    alpha: FloatArray
    norm: float
    root: SeedSequence

    def __call__(self, block: _SampleBlock) -> IntArray:
        words = random_streams.stream_words(self.root, (block.secret, block.stream, block.number), 4)
        points = self.samplers[block.secret](words, block.samples).T
        distance = _distances(points, self.target, self.norm)
        if self.alpha.size <= _FEW_ALPHAS:
            return np.array([np.count_nonzero(distance > a) for a in self.alpha.tolist()])
        index = np.searchsorted(self.alpha, distance, side="left")
        counts = np.bincount(index, minlength=self.alpha.size + 1)
        return np.cumsum(counts[::-1])[::-1][1:]


def count_misses(
    samplers: Sequence[Sampler], target: FloatArray, alpha: FloatArray, norm: float, request: Request
) -> tuple[list[MissCounts], bool]:
    """Counts for each sampler, and whether a run with this seed gives them again.

    ``alpha`` increases. Raises ``KeyboardInterrupt`` only if some secret has no samples yet.
    """
    size = max(64, min(_BLOCK_SAMPLES, _BLOCK_ENTRIES // target.size))
    block_misses = _BlockMisses(samplers, target, alpha, norm, request.root)
    counts = [MissCounts(np.zeros(alpha.size, dtype=np.int64)) for _ in samplers]
    if request.spends_everything:
        for count in counts:
            count.analyses = [request.sample_budget]
    else:
        n = min(_PILOT_SAMPLES, size, request.sample_budget // _PILOT_SHARE)
        pilots = [_SampleBlock(0, secret, n, _PILOT) for secret in range(len(counts))]
        for count, misses in zip(counts, _misses_of_blocks(block_misses, pilots, request), strict=True):
            count.analyses = _schedule(misses, n, size, request)
    interrupted = expired = False
    while not (interrupted or expired) and (active := [i for i, count in enumerate(counts) if not count.stopped]):
        blocks = []
        for i in active:
            begin, end = counts[i].samples, counts[i].analyses[counts[i].analysis - 1]
            starts = range(begin, min(end, begin + _BLOCKS_AT_ONCE * size), size)
            blocks += [_SampleBlock(start // size, i, min(size, end - start), _MAIN) for start in starts]
        blocks.sort()
        results = _misses_of_blocks(block_misses, blocks, request)
        try:
            for block, misses in zip(blocks, results, strict=True):
                counts[block.secret].misses += misses
                counts[block.secret].samples += block.samples
                if min(count.samples for count in counts) and request.time_budget.expired():
                    expired = True
                    break
        except KeyboardInterrupt:
            if not min(count.samples for count in counts):
                raise
            interrupted = True
        finally:
            results.close()
        for count in (counts[i] for i in active):  # those at an interim analysis: whether to stop
            if count.samples == count.analyses[count.analysis - 1]:
                if not request.spends_everything and _excess(count.interval(request), request) <= 1.0:
                    count.stopped = "target"
                elif count.analysis == len(count.analyses):
                    count.stopped = "max_samples"
                else:
                    count.analysis += 1
    for count in counts:
        count.stopped = count.stopped or ("interrupted" if interrupted else "max_seconds")
    return counts, not (request.time_budget.affected or interrupted)


def _misses_of_blocks(
    block_misses: _BlockMisses, blocks: Sequence[_SampleBlock], request: Request
) -> Generator[IntArray, None, None]:
    return ordered_map(block_misses, blocks, n_jobs=request.n_jobs, progress=request.progress)


def _schedule(misses: IntArray, n: int, size: int, request: Request) -> list[int]:
    """Numbers of samples at the analyses: those that the pilot requires, in whole blocks, then doubled each time."""
    share = np.maximum(misses, 1) / n
    half_width = np.maximum(request.atol, request.rtol * share)
    quantile = student_factor(analysis_confidence(request.confidence, 1), 2**20, request.side)
    needed = 1.1 * (quantile / half_width) ** 2 * share * np.maximum(1.0 - share, 1.0 / n) + 4.0 / half_width
    most = request.sample_budget - n
    wanted = float(np.max(needed))
    first = min(wanted if misses.min() >= min(_RELIABLE_MISSES, n) else 0.25 * wanted, float(most))
    analyses = [min(most, max(1, math.ceil(first / size)) * size)]
    while analyses[-1] < most:
        analyses.append(min(most, 2 * analyses[-1]))
    return analyses


def _excess(interval: Interval, request: Request) -> float:
    """Largest half width over the requested one."""
    if request.side == "both":
        width = 0.5 * (interval.upper - interval.lower)
    else:
        width = interval.value - interval.lower if request.side == "lower" else interval.upper - interval.value
    requested = np.maximum(request.atol, request.rtol * interval.value)
    return float(np.max(width / np.maximum(requested, 1e-300)))


def _distances(points: FloatArray, target: FloatArray, norm: float) -> FloatArray:
    """||x - target|| of points of shape (n, k)."""
    gaps = np.abs(points - target)
    if gaps.shape[1] == 1:
        return gaps[:, 0]
    if norm == math.inf:
        return np.asarray(gaps.max(axis=1))
    return np.asarray(gaps.sum(axis=1) if norm == 1 else np.sqrt(np.einsum("ij,ij->i", gaps, gaps)))
