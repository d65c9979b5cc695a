"""Replicates: independent, randomised, stratified estimates from n points each, cut into segments and tiles.

Point k of a source with n points stands at (k + U) / n on the unit interval, which names its component; its other
coordinates are point k of a scrambled Sobol sequence, or pseudo-random. Components thus come in runs, each gets its
share of the points to within one, and the mean of f over the points is unbiased.

A segment is what one thread does at a time: a part of a replicate, or several small ones side by side, since a call of
a kernel costs as much as a hundred points. A tile is what fits into its cache. Neither depends on the number of
threads, nor does a stream.

Allocation. Notation: w the weights of the components, s_c and m_c the standard deviation and the mean of f within
component c. With n_c = n pi_c samples of component c the variance of the estimate is sum_c w_c^2 s_c^2 / (n pi_c),
smallest for pi_c in proportion to w_c s_c (Neyman 1934). A component that gets less than one sample a replicate also
adds its distance from the mean.
"""

# bounds: none - keeps squares from overflowing

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from ..base import random_streams
from ..base.numerics import FloatArray, WordArray
from ..base.parallel import blocks
from ..distributions.packed import Packed
from ..kernels import _draw, _matrix_product
from .problem import LogDensities, SampleSource, SamplingProblem
from .sobol import scrambled
from .statistics.normalisation import LogRatioSums
from .statistics.tail_index import LargestValues, PointMoments

__all__ = [
    "SEGMENT_COST", "Segment", "SegmentSum", "Segments", "add_q_samples", "batch_values", "empty_sums",
    "log_ratio_sums", "max_probes", "min_useful_probes", "segment_sum", "segments", "tile_size",
    "with_neyman_allocation",
]  # fmt: skip

ComponentArray = NDArray[np.int32]
Tile = tuple[SampleSource, LogDensities, FloatArray | None]  # a source, densities at its points, their weights

TILE_DOUBLES = 2**16  # doubles of one array of samples: half a megabyte stays in the second cache
TILE_MOST, TILE_LEAST = 2**14, 64  # samples of a tile: at most, at least
SEGMENT_COST = 2.0**28  # components times coordinates times samples: some 40 ms
SIDE_BY_SIDE = 64  # a segment of whole replicates is smaller by this factor, so that threads share them out
LARGEST_KEPT = 256  # largest values that are kept of a stream
MOMENT_STEP = 16  # every 16th point enters the moments: they are needed to a few per cent only
MAX_MOMENT_VALUES = 2**18  # values of a tile that enter the moments, at most

PROBES = 8, 256  # samples of each component in a probe: at least, at most
PROBED = 2**14  # samples of all components in a probe, unless PROBES[0] of each are more
MAX_PROBE_COST = 2.0**33  # components times coordinates times probes, about a second; beyond, weights decide
BETWEEN = 0.05  # share of the squared distance from the mean that counts as spread
POOLED_SPREAD = 0.25  # share of the mean square spread that every component is taken to have: probes miss rare values
WEIGHT_SHARE = 0.3  # share of the samples that follow the weights in any case: no sample counts for more than 3.4
NEARLY_EQUAL = 0.1  # relative distance of the weights from equal ones that does not matter
VARIANCE_GAIN = 0.9  # factor on the variance below which another allocation is worth its cost
STARVED = 2.0  # times its weight: a component that should get more may be left without samples by its weight


@dataclass(frozen=True)
class Segment:
    """Points ``first`` to ``last`` of replicate ``begin``, or ``count`` whole replicates from ``begin`` on."""

    problem: SamplingProblem
    points: str
    root: SeedSequence
    key: tuple[int, ...]
    begin: int
    count: int
    n: int
    first: int
    last: int
    collects_moments: bool


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
        if self.side_by_side > 1:
            return -(-self.replicates // self.side_by_side)
        return self.replicates * -(-self.n // self.size)

    def __getitem__(self, index: Any) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        begin, count, first, last = index, 1, 0, self.n
        if self.side_by_side > 1:
            begin = index * self.side_by_side
            count = min(self.side_by_side, self.replicates - begin)
        else:
            begin, piece = divmod(index, -(-self.n // self.size))
            first, last = piece * self.size, min((piece + 1) * self.size, self.n)
        return Segment(
            self.problem, self.points, self.root, self.key, begin, count, self.n, first, last, self.collects_moments
        )

    def summed(self, index: int) -> SegmentSum:
        """The sums of one of them."""
        return segment_sum(self[index])


@dataclass(frozen=True)
class SegmentSum:
    """Sums over a segment.

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


def tile_size(dimension: int) -> int:
    """Samples in a tile."""
    size = TILE_DOUBLES // dimension
    return min(max(size - size % 8, TILE_LEAST), TILE_MOST)


def segments(
    problem: SamplingProblem, points: str, root: SeedSequence, key: tuple[int, ...], replicates: int, n: int, *,
    collects_moments: bool = True,
) -> Segments:  # fmt: skip
    """So many replicates, cut by a fixed amount of work."""
    tile, cost = tile_size(problem.dimension), _point_cost(problem)
    side_by_side = min(tile // n, int(SEGMENT_COST / SIDE_BY_SIDE / (cost * n)))
    size = int(SEGMENT_COST / cost)
    least = tile if size >= tile else TILE_LEAST
    size = max(size // least, 1) * least
    return Segments(problem, points, root, key, replicates, n, side_by_side, size, collects_moments)


def segment_sum(segment: Segment) -> SegmentSum:
    """Sums of f over the points of every replicate of a segment, tile by tile."""
    problem, sums = segment.problem, empty_sums(segment)
    total, moments, largest, log_ratios = sums.sums, sums.moments, sums.largest_values, sums.log_ratios
    for source, densities, weights in _tiles(segment) if segment.count == 1 else _side_by_side_tiles(segment):
        total += problem.sums(densities, weights, segment.count)
        if log_ratios is not None:
            log_ratios.update(densities.lp, densities.lq, source.distribution is problem.p, weights)
        if moments is None:
            continue
        step = _moment_step(problem, len(densities.lp))
        few = densities if step == 1 else LogDensities(*(np.ascontiguousarray(logs[::step]) for logs in densities))
        values = problem.values(few, None if weights is None else weights[::step]).T
        moments.update(values)
        if largest is not None:
            largest.update(values)
    return sums


def empty_sums(segment: Segment) -> SegmentSum:
    """The sums of a segment before its first point."""
    problem, size = segment.problem, segment.problem.integrand.size
    moments = PointMoments(size) if segment.collects_moments else None
    largest = LargestValues(LARGEST_KEPT, size) if segment.collects_moments and problem.monitors_tail else None
    return SegmentSum(np.zeros((segment.count, size)), moments, largest, log_ratio_sums(problem))


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
) -> FloatArray:  # fmt: skip
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


def _moment_step(problem: SamplingProblem, n: int) -> int:
    """One point in so many enters the moments: all of them where few hits carry the answer."""
    least = -(-problem.integrand.size * n // MAX_MOMENT_VALUES)
    return max(least, 1 if problem.distribution == "tilted" else MOMENT_STEP)


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
) -> Iterator[FloatArray]:  # fmt: skip
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


def _tiles(segment: Segment) -> Iterator[Tile]:
    """Tiles of a segment of one replicate. No tile reaches over the end of a source."""
    problem, key, root, n = segment.problem, (*segment.key, segment.begin), segment.root, segment.n
    start = np.empty(1)
    _draw.uniforms(random_streams.stream_words(root, (*key, 0), _draw.SEED_WORDS), start)
    net = scrambled(problem.dimension, root, (*key, 1)) if segment.points == "sobol" else None
    size = tile_size(problem.dimension)
    largest = min(size, segment.last - segment.first)  # a small replicate need not touch the memory of a whole tile
    normals, logs = np.empty(problem.dimension * largest), np.empty((3, largest))
    components = np.empty(largest, dtype=np.int32)
    for source, first, last in problem.source_ranges(n):
        begins = range(max(first, segment.first), min(last, segment.last), size)
        if not begins:
            continue
        mixture = isinstance(source.distribution, Packed)
        streams = _streams(root, (*key, 2, begins[0]), 0 if net is not None and mixture else len(begins))
        runs = _ComponentRuns(source, last - first, start, segment.points)
        for index, begin in enumerate(begins):
            count = min(begin + size, begins.stop) - begin
            if not isinstance(source.distribution, Packed):
                x = source.distribution.draw(streams[index], count)
                yield source, problem.densities(x, source.distribution), None
                continue
            z = normals[: problem.dimension * count].reshape(problem.dimension, count)
            component = components[:count]
            if net is not None:
                _draw.sobol_normals(*net, begin, z)
                _draw.component_runs(runs.ends, begin - first, component)
            else:
                _draw.normals(streams[index], segment.points == "antithetic" and count % 2 == 0, z)
                runs.fill(begin - first, streams[index], component)
            yield source, *_densities_at(problem, source, component, z, logs[:, :count])


def _side_by_side_tiles(segment: Segment) -> Iterator[Tile]:
    """Tiles of several replicates, one behind the other; a tile is a whole source."""
    problem, root, count = segment.problem, segment.root, segment.count
    key, points, d = (*segment.key, segment.begin), segment.points, problem.dimension
    start = np.empty(count)
    _draw.uniforms(random_streams.stream_words(root, (*key, 0), _draw.SEED_WORDS), start)
    net = scrambled(d, root, (*key, 1), count) if points == "sobol" else None
    for source, first, last in problem.source_ranges(segment.n):
        n = last - first
        if not n:
            continue
        if not isinstance(source.distribution, Packed):
            words = random_streams.stream_words(root, (*key, 2, first), _draw.SEED_WORDS)
            x = source.distribution.draw(words, count * n)
            yield source, problem.densities(x, source.distribution), None
            continue
        runs, z = _ComponentRuns(source, n, start, points), np.empty((d, count * n))
        if net is not None:
            _draw.sobol_normals(*net, first, z.reshape(d * count, n))
            words = np.empty(0, dtype=np.uint64)
        else:
            words = random_streams.stream_words(root, (*key, 2, first), _draw.SEED_WORDS)
            _draw.normals(words, runs.in_pairs, z)
        component = np.empty(count * n, dtype=np.int32)
        runs.fill(0, words, component)
        yield source, *_densities_at(problem, source, component, z)


def _streams(root: SeedSequence, key: tuple[int, ...], count: int) -> WordArray:
    """Words of ``count`` streams, one a tile: a SeedSequence of its own for each would cost 13 us a tile."""
    if not count:
        return np.empty((0, _draw.SEED_WORDS), dtype=np.uint64)
    return random_streams.stream_words(root, key, count * _draw.SEED_WORDS).reshape(count, _draw.SEED_WORDS)


def _densities_at(
    problem: SamplingProblem, source: SampleSource, component: ComponentArray, z: FloatArray,
    workspace: FloatArray | None = None,
) -> tuple[LogDensities, FloatArray | None]:  # fmt: skip
    """Log densities at the points that components and standard normals z make, and the weights of the points."""
    mixture = source.distribution
    assert isinstance(mixture, Packed)
    _draw.affine_map(mixture.form, mixture.means, mixture.spreads, component, z, z)
    weights = source.importance_weights
    return problem.densities(z, mixture, workspace), None if weights is None else weights[component]


class _ComponentRuns:
    """Which component each of the n points of a source belongs to, in each of several replicates."""

    def __init__(self, source: SampleSource, n: int, start: FloatArray, points: str) -> None:
        self.in_pairs = points == "antithetic" and n % 2 == 0  # an antithetic pair stands where one point would
        self.cumulative = np.cumsum(source.allocation)[:-1] if points == "plain" else None
        self.components, self.n = len(source.allocation), n
        ends = source.component_ends(n // 2, start) * 2 if self.in_pairs else source.component_ends(n, start)
        ends[:, -1] = n
        self.ends = (ends + n * np.arange(len(start))[:, np.newaxis]).ravel()

    def fill(self, first: int, words: WordArray, out: ComponentArray) -> None:
        """The components of samples ``first`` and on."""
        if self.cumulative is None:
            _draw.component_runs(self.ends, first, out)
            if len(self.ends) > self.components:
                out %= self.components
        else:
            positions = np.random.default_rng(words[::-1]).random((-(-len(out) // self.n), min(self.n, len(out))))
            positions.sort(axis=1)
            out[:] = np.searchsorted(self.cumulative, positions.ravel(), side="right")


def with_neyman_allocation(
    problem: SamplingProblem, root: SeedSequence, key: tuple[int, ...], most: int
) -> tuple[SamplingProblem, int]:
    """The problem with the best allocation to its components found with ``most`` probes, and the probes spent.

    A tilted proposal keeps its weights: they are near the best already, and few probes cannot judge what is rarely hit.
    """
    if problem.distribution == "tilted":
        return problem, 0
    sources, spent = [], 0
    for index, source in enumerate(problem.sources):
        count = len(source.weights)
        allowed = min(most - spent, MAX_PROBE_COST / problem.cost) / count
        if not isinstance(source.distribution, Packed) or count == 1 or allowed < PROBES[0]:
            unbounded = isinstance(source.distribution, Packed) and count > 1 and math.isinf(problem.integrand.high)
            sources.append(_half_equal(source) if unbounded else source)
            continue
        each = 2 ** int(math.log2(max(PROBES[0], min(PROBES[1], PROBED / count, allowed))))
        mean, spread = _component_moments(problem, source, root, (*key, index), each)
        spent += each * count
        sources.append(_reallocated(source, mean, spread))
    if all(new is old for new, old in zip(sources, problem.sources, strict=True)):
        return problem, spent
    return replace(problem, sources=tuple(sources)), spent


def max_probes(problem: SamplingProblem) -> int:
    """Probes that ``with_neyman_allocation`` spends at most."""
    return sum(max(PROBED, PROBES[0] * count) for count in _component_counts(problem))


def min_useful_probes(problem: SamplingProblem) -> int:
    """Probes that are worth their cost in a short run too."""
    counts = _component_counts(problem)
    return sum(max(min(PROBED, PROBES[1] // 8 * count), PROBES[0] * count) for count in counts)


def _component_counts(problem: SamplingProblem) -> list[int]:
    """Numbers of components of the sources that have several."""
    counts = [len(source.weights) for source in problem.sources if isinstance(source.distribution, Packed)]
    return [count for count in counts if count > 1]


def _component_moments(
    problem: SamplingProblem, source: SampleSource, root: SeedSequence, key: tuple[int, ...], each: int
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of f, shape (e, k), within every component."""
    assert isinstance(source.distribution, Packed)
    mixture = source.distribution
    component = np.repeat(np.arange(len(source.weights), dtype=np.int32), each)
    tile_values = []
    for tile in blocks(component.size, tile_size(problem.dimension)):
        z = np.empty((problem.dimension, tile.stop - tile.start))
        _draw.normals(random_streams.stream_words(root, (*key, tile.start), _draw.SEED_WORDS), True, z)
        _draw.affine_map(mixture.form, mixture.means, mixture.spreads, component[tile], z, z)
        tile_values.append(problem.values(problem.densities(z, mixture), None))
    values = np.concatenate(tile_values, axis=1).reshape(len(tile_values[0]), -1, each)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.mean(axis=2), values.std(axis=2, ddof=1)


def _half_equal(source: SampleSource) -> SampleSource:
    """Give half of the samples to all components equally. Where f has no bound, a component of any weight may dominate
    its mean, and the interval does not account for a component from which no sample is drawn."""
    allocation = 0.5 * (source.weights + 1.0 / len(source.weights))
    near = (np.abs(allocation - source.weights) <= NEARLY_EQUAL * source.weights).all()
    return source if near else replace(source, allocation=allocation)


def _reallocated(source: SampleSource, mean: FloatArray, spread: FloatArray) -> SampleSource:
    """The source with samples in proportion to weight times spread, as far as that pays."""
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        return source
    w = source.weights
    total = _matrix_product.matrix_vector(mean, w)
    largest = np.maximum(spread.max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    pooled = np.sqrt(_matrix_product.matrix_vector(POOLED_SPREAD * (spread / largest) ** 2, w)) * largest[:, 0]
    need = np.hypot(np.hypot(spread, pooled[:, np.newaxis]), math.sqrt(BETWEEN) * (mean - total[:, np.newaxis])) * w
    scale = need.sum(axis=1)
    if not (scale > 0).all():
        return source
    fraction = need / scale[:, np.newaxis]
    allocation = (1 - WEIGHT_SHARE) * fraction.mean(axis=0) + WEIGHT_SHARE * w
    allocation /= allocation.sum()
    before, after = ((fraction**2 / share).sum(axis=1) for share in (w, allocation))
    pays = np.exp(np.log(after / before).mean()) < VARIANCE_GAIN or (allocation > STARVED * w).any()
    return replace(source, allocation=allocation) if pays else source
