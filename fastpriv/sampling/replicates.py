"""Replicates: independent, randomised, stratified estimates from n points each, cut into segments and tiles.

Point k of a source with n points stands at (k + U) / n on the unit interval, which names its component; its other
coordinates are point k of a scrambled Sobol sequence, or pseudo-random. Components thus come in runs, each gets its
share of the points to within one, and the mean of f over the points is unbiased.

A segment is what one thread does at a time: a part of a replicate, or several small ones side by side, since a call of
a kernel costs as much as a hundred points. A tile is what fits into its cache. Neither depends on the number of
threads, nor does a stream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ..base import random_streams
from ..base.numerics import FloatArray, WordArray
from ..base.parallel import blocks
from ..distributions.packed import Packed
from ..kernels import _draw
from .problem import LogDensities, SampleSource, SamplingProblem
from .sobol import scrambled
from .statistics.normalisation import LogRatioSums
from .statistics.tail_index import LargestValues, PointMoments

ComponentArray = NDArray[np.int32]
Tile = tuple[SampleSource, LogDensities, FloatArray | None]  # a source, densities at its points, their weights

TILE_DOUBLES = 2**16  # doubles of one array of samples: half a megabyte stays in the second cache
TILE_MOST, TILE_LEAST = 2**14, 64  # samples of a tile: at most, at least
SEGMENT_COST = 2.0**28  # components times coordinates times samples: some 40 ms
SIDE_BY_SIDE = 64  # a segment of whole replicates is smaller by this factor, so that threads share them out
LARGEST_KEPT = 256  # largest values that are kept of a stream
MOMENT_STEP = 16  # every 16th point enters the moments: they are needed to a few per cent only
MAX_MOMENT_VALUES = 2**18  # values of a tile that enter the moments, at most


class Segment(NamedTuple):
    """Points ``first`` to ``last`` of replicate ``begin``, or ``length`` whole replicates from ``begin`` on."""

    begin: int
    length: int
    first: int
    last: int


@dataclass(frozen=True)
class Segments(Sequence[Segment]):
    """Replicates of ``n`` points each, cut by a fixed amount of work: ``side_by_side`` whole ones in a segment, or one
    in segments of ``size`` points. A segment is made when it is asked for: a large budget has billions of them."""

    problem: SamplingProblem
    points: str
    root: SeedSequence
    key: tuple[int, ...]
    replicates: int
    n: int
    side_by_side: int
    size: int
    collects_moments: bool

    @property
    def cost(self) -> float:
        """In the unit of SEGMENT_COST."""
        return _point_cost(self.problem) * self.n * self.replicates

    def __len__(self) -> int:
        return -(-self.replicates // self.side_by_side) * -(-self.n // self.size)

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        group, piece = divmod(index, -(-self.n // self.size))
        begin, first = group * self.side_by_side, piece * self.size
        length = min(self.side_by_side, self.replicates - begin)
        return Segment(begin, length, first, min(first + self.size, self.n))

    def summed(self, index: int) -> SegmentSum:
        """Sums of f over the points of every replicate of one of them, tile by tile."""
        problem, segment = self.problem, self[index]
        sums = empty_sums(problem, collects_moments=self.collects_moments, count=segment.length)
        for source, densities, weights in _tiles(self, segment):
            sums.sums += problem.sums(densities, weights, segment.length)
            if sums.log_ratios is not None:
                sums.log_ratios.update(densities.lp, densities.lq, source.distribution is problem.p, weights)
            if sums.moments is None:
                continue
            least = -(-problem.integrand.size * len(densities.lp) // MAX_MOMENT_VALUES)
            step = max(least, 1 if problem.distribution == "tilted" else MOMENT_STEP)  # all where few carry the answer
            few = densities if step == 1 else LogDensities(*(np.ascontiguousarray(logs[::step]) for logs in densities))
            values = problem.values(few, None if weights is None else weights[::step]).T
            sums.moments.update(values)
            if sums.largest_values is not None:
                sums.largest_values.update(values)
        return sums


@dataclass
class SegmentSum:
    """Sums over a segment, or over many of them.

    Attributes
    ----------
    sums : ndarray, shape (replicates, e)
        Of f.
    moments, largest_values : PointMoments and LargestValues, or None
        Of some of the points; None in a pilot, and where the tail is not monitored.
    log_ratios : LogRatioSums or None
        Of all points, where a density is known to its owner alone.
    """

    sums: FloatArray
    moments: PointMoments | None
    largest_values: LargestValues | None
    log_ratios: LogRatioSums | None

    def merge_statistics(self, other: SegmentSum) -> None:
        """Take in the statistics of another segment, all but its sums."""
        for name in ("moments", "largest_values", "log_ratios"):
            mine, new = getattr(self, name), getattr(other, name)
            if mine is not None and new is not None:
                mine.merge(new)


def tile_size(dimension: int) -> int:
    """Samples in a tile."""
    size = TILE_DOUBLES // dimension
    return min(max(size - size % 8, TILE_LEAST), TILE_MOST)


def additions(problem: SamplingProblem, n: int) -> float:
    """The most roundings of a value in the mean of n: in a block and in a tile, of tiles, segments and sources."""
    least = min(tile_size(problem.dimension), max(SEGMENT_COST / _point_cost(problem) // 2.0, TILE_LEAST))
    return 128.0 + 4.0 * len(problem.sources) + 4.0 * n / least


def segments(
    problem: SamplingProblem, points: str, root: SeedSequence, key: tuple[int, ...], replicates: int, n: int, *,
    collects_moments: bool = True,
) -> Segments:
    """So many replicates, cut by a fixed amount of work."""
    tile, size = tile_size(problem.dimension), int(SEGMENT_COST / _point_cost(problem))
    least = tile if size >= tile else TILE_LEAST
    side_by_side = max(min(tile, size // SIDE_BY_SIDE) // n, 1)
    size = max(size // least, 1) * least
    return Segments(problem, points, root, key, replicates, n, side_by_side, size, collects_moments)


def empty_sums(problem: SamplingProblem, *, collects_moments: bool, count: int = 1) -> SegmentSum:
    """The sums of a segment of ``count`` replicates before its first point."""
    size = problem.integrand.size
    moments = PointMoments(size) if collects_moments else None
    largest = LargestValues(LARGEST_KEPT, size) if collects_moments and problem.monitors_tail else None
    return SegmentSum(np.zeros((count, size)), moments, largest, log_ratio_sums(problem))


def log_ratio_sums(problem: SamplingProblem) -> LogRatioSums | None:
    """An empty collector of log ratios where a density is known to its owner alone."""
    if not problem.user_density:
        return None
    sides = {source.distribution is problem.p for source in (*problem.sources, *problem.q_sources)}
    return LogRatioSums(one_sided=len(sides) == 1)


def add_q_samples(
    problem: SamplingProblem, root: SeedSequence, key: tuple[int, ...], n: int, log_ratios: LogRatioSums
) -> None:
    """Add the log ratios at ``n`` samples of each of the sources of Q."""
    for index, source in enumerate(problem.q_sources):
        component = _component_at(source, (np.arange(n) + 0.5) / n)
        for tile in blocks(n, tile_size(problem.dimension)):
            words = random_streams.stream_words(root, (*key, index, tile.start), _draw.SEED_WORDS)
            densities, _ = _drawn(problem, source, component[tile], words)
            log_ratios.update(densities.lp, densities.lq, source.distribution is problem.p)


def batch_values(
    problem: SamplingProblem, root: SeedSequence, key: tuple[int, ...], batches: int, size: int,
    threshold: float = math.inf, log_ratios: LogRatioSums | None = None,
) -> FloatArray:
    """min(f, threshold), shape (e, size, batches), at the points of independent stratified batches of ``size`` each.

    Point k of a batch stands at (k + U) / n among the n of its source, with a U of its own: points are independent, and
    their means average to the mean of f. Points are ordered by their place in the batch first, so that components come
    in long runs. ``log_ratios`` collects the log ratios.
    """
    values = np.empty((problem.integrand.size, size, batches))
    low, high = problem.integrand.low, min(problem.integrand.high, threshold)
    for index, (source, first, last) in enumerate(problem.source_ranges(size)):
        if first == last:
            continue
        tiles = _batch_tiles(problem, source, root, (*key, index), batches, last - first, log_ratios)
        clipped = [np.clip(tile, low, high) for tile in tiles]  # f is proved to keep to its range: the rest is rounding
        values[:, first:last] = np.concatenate(clipped, axis=1).reshape(len(values), last - first, batches)
    return values


def _point_cost(problem: SamplingProblem) -> float:
    """Cost of a point in the unit of SEGMENT_COST, with 20 for each coordinate that is drawn."""
    return problem.cost + 20 * problem.dimension


def _component_at(source: SampleSource, positions: FloatArray) -> ComponentArray:
    """The component whose part of the unit interval each position lies in."""
    return np.searchsorted(np.cumsum(source.allocation)[:-1], positions, side="right").astype(np.int32)


def _drawn(
    problem: SamplingProblem, source: SampleSource, component: ComponentArray, words: WordArray
) -> tuple[LogDensities, FloatArray | None]:
    """Log densities at pseudo-random samples of these components of a source, and the weights of the samples."""
    if not isinstance(source.distribution, Packed):
        x = source.distribution.draw(words, len(component))
        return problem.densities(x, source.distribution), None
    z = np.empty((problem.dimension, len(component)))
    _draw.normals(words, False, z)
    return _densities_at(problem, source, component, z)


def _batch_tiles(
    problem: SamplingProblem, source: SampleSource, root: SeedSequence, key: tuple[int, ...], batches: int, count: int,
    log_ratios: LogRatioSums | None,
) -> Iterator[FloatArray]:
    """f of ``count`` points of a source in every batch, a tile at a time."""
    uniforms = np.empty(count * batches)
    _draw.uniforms(random_streams.stream_words(root, (*key, 0), _draw.SEED_WORDS), uniforms)
    positions = ((np.arange(count)[:, np.newaxis] + uniforms.reshape(count, batches)) / count).ravel()
    component = _component_at(source, positions)
    for tile in blocks(positions.size, tile_size(problem.dimension)):
        words = random_streams.stream_words(root, (*key, 1, tile.start), _draw.SEED_WORDS)
        densities, weights = _drawn(problem, source, component[tile], words)
        if log_ratios is not None:
            log_ratios.update(densities.lp, densities.lq, source.distribution is problem.p, weights)
        yield problem.values(densities, weights)


def _tiles(whole: Segments, segment: Segment) -> Iterator[Tile]:
    """Tiles of a segment, replicate behind replicate. No tile reaches over the end of a source; a tile of several
    replicates is a whole source."""
    problem, root, replicates, d = whole.problem, whole.root, segment.length, whole.problem.dimension
    key, start = (*whole.key, segment.begin), np.empty(replicates)
    _draw.uniforms(random_streams.stream_words(root, (*key, 0), _draw.SEED_WORDS), start)
    net = scrambled(d, root, (*key, 1), replicates) if whole.points == "sobol" else None
    size = tile_size(d)
    largest = replicates * min(size, segment.last - segment.first)  # memory of a whole tile only where it is needed
    normals, logs = np.empty(d * largest), np.empty((3, largest))
    components = np.empty(largest, dtype=np.int32)
    for source, first, last in problem.source_ranges(whole.n):
        begins = range(max(first, segment.first), min(last, segment.last), size)
        if not begins:
            continue
        mixture = isinstance(source.distribution, Packed)
        streams = _streams(root, (*key, 2, begins[0]), 0 if net is not None and mixture else len(begins))
        runs = _ComponentRuns(source, last - first, start, whole.points)
        for index, begin in enumerate(begins):
            n = min(begin + size, begins.stop) - begin
            count = replicates * n
            if not isinstance(source.distribution, Packed):
                x = source.distribution.draw(streams[index], count)
                yield source, problem.densities(x, source.distribution), None
                continue
            z = normals[: d * count].reshape(d, count)
            component = components[:count]
            if net is not None:
                _draw.sobol_normals(*net, begin, z.reshape(d * replicates, n))
                runs.fill(begin - first, None, component)
            else:
                _draw.normals(streams[index], whole.points == "antithetic" and n % 2 == 0, z)
                runs.fill(begin - first, streams[index], component)
            yield source, *_densities_at(problem, source, component, z, logs[:, :count])


def _streams(root: SeedSequence, key: tuple[int, ...], count: int) -> WordArray:
    """Words of ``count`` streams, one a tile: a SeedSequence of its own for each would cost 13 us a tile."""
    if not count:
        return np.empty((0, _draw.SEED_WORDS), dtype=np.uint64)
    return random_streams.stream_words(root, key, count * _draw.SEED_WORDS).reshape(count, _draw.SEED_WORDS)


def _densities_at(
    problem: SamplingProblem, source: SampleSource, component: ComponentArray, z: FloatArray,
    workspace: FloatArray | None = None,
) -> tuple[LogDensities, FloatArray | None]:
    """Log densities at the points that components and standard normals z make, and the weights of the points."""
    mixture = source.distribution
    assert isinstance(mixture, Packed)
    _draw.affine_map(mixture.form, mixture.means, mixture.spreads, component, z, z)
    weights = source.importance_weights
    return problem.densities(z, mixture, workspace), None if weights is None else weights[component]


class _ComponentRuns:
    """Which component each of the n points of a source belongs to, in replicates that begin at ``start``."""

    def __init__(self, source: SampleSource, n: int, start: FloatArray, points: str) -> None:
        in_pairs = points == "antithetic" and n % 2 == 0  # an antithetic pair stands where one point would
        self.cumulative = np.cumsum(source.allocation)[:-1] if points == "plain" else None
        self.replicates, self.components = len(start), len(source.allocation)
        ends = source.component_ends(n // 2, start) * 2 if in_pairs else source.component_ends(n, start)
        self.ends = (ends + n * np.arange(len(start))[:, np.newaxis]).ravel()

    def fill(self, first: int, words: WordArray | None, out: ComponentArray) -> None:
        """The components of samples ``first`` and on; where they are drawn, by these words."""
        if self.cumulative is None or words is None:
            _draw.component_runs(self.ends, first, out)
            if self.replicates > 1:
                out %= self.components
        else:
            positions = np.random.default_rng(words[::-1]).random((self.replicates, len(out) // self.replicates))
            positions.sort(axis=1)
            out[:] = np.searchsorted(self.cumulative, positions.ravel(), side="right")
