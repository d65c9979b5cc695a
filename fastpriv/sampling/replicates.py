"""Replicates: independent, randomised, stratified estimates from n points each, cut into segments and tiles.

Point k of a part with n points stands at (k + U) / n on the unit interval, which names its component; its other
coordinates are point k of a scrambled Sobol sequence, or pseudo-random. Components thus come in runs, each gets its
share of the points to within one, and the mean of f over the points is unbiased.

A segment is what one thread does in one go, a part of a replicate or several small ones side by side: a call of a
kernel costs as much as a hundred points. A tile is what fits into its cache. Neither depends on the number of threads,
nor does a stream.

How many samples each component of a mixture gets.

Notation: w the weights, s_c and m_c the standard deviation and the mean of f within component c. With n_c = n pi_c
samples of component c the variance of the estimate is sum_c w_c^2 s_c^2 / (n pi_c), smallest for pi_c in proportion to
w_c s_c (Neyman 1934). A component that gets less than one sample a replicate also adds its distance from the mean.
"""

# bounds: none - keeps squares from overflowing

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from .. import _random
from .._parallel import blocks
from ..distributions.packed import Packed
from ..kernels import _draw, _product
from ..numerics import FloatArray, WordArray
from .problem import Densities, Part, Problem
from .sobol import scrambled
from .statistics.normalisation import RatioSums
from .statistics.tail_index import PointMoments, TopValues

__all__ = [
    "Segment", "SegmentSum", "Segments", "allocated", "batch_values", "others_drawn", "probes_needed",
    "probes_wanted", "ratio_sums", "segment_sum", "segments",
]  # fmt: skip


TILE_DOUBLES = 2**16  # of one array of samples: half a megabyte stays in the second cache
TILE_MOST = 2**14
TILE_LEAST = 64
SEGMENT_COST = 2.0**28  # components times coordinates times samples: some 40 ms
BESIDE = 64  # a segment of whole replicates is smaller by this: threads share them out
TOP = 256  # largest values kept
STEP = 16  # one point in so many is looked at for its moments
LOOKED_AT = 2**18  # values looked at in a tile, at most


@dataclass(frozen=True)
class Segment:
    """Points ``first`` to ``last`` of the replicate ``begin`` of ``n`` points, or all of several from ``begin`` on."""

    problem: Problem
    points: str
    root: SeedSequence
    key: tuple[int, ...]
    begin: int
    count: int
    n: int
    first: int
    last: int
    looks: bool


@dataclass(frozen=True)
class Segments(Sequence[Segment]):
    """Replicates of ``n`` points each, cut by a fixed amount of work: ``beside`` whole ones in a segment, or one in
    segments of ``size`` points. They are made when they are asked for: a large budget has billions of them.
    """

    problem: Problem
    points: str
    root: SeedSequence
    key: tuple[int, ...]
    replicates: int
    n: int
    beside: int
    size: int
    looks: bool

    @property
    def cost(self) -> float:
        """In the unit of SEGMENT_COST."""
        return (self.problem.cost + 20.0 * self.problem.dimension) * self.n * self.replicates

    def __len__(self) -> int:
        return -(-self.replicates // self.beside) if self.beside > 1 else self.replicates * -(-self.n // self.size)

    def __getitem__(self, place: Any) -> Any:
        if not 0 <= place < len(self):
            raise IndexError(place)
        begin, count, first, last = place, 1, 0, self.n
        if self.beside > 1:
            begin = place * self.beside
            count = min(self.beside, self.replicates - begin)
        else:
            begin, part = divmod(place, -(-self.n // self.size))
            first, last = part * self.size, min((part + 1) * self.size, self.n)
        return Segment(
            self.problem, self.points, self.root, self.key, begin, count, self.n, first, last, self.looks
        )

    def summed(self, place: int) -> SegmentSum:
        """The sums of one of them."""
        return segment_sum(self[place])


@dataclass(frozen=True)
class SegmentSum:
    """Sums of f, shape (replicates, e); moments, and where they are watched the largest |f|, of some points, unless it
    was a pilot that looks at nothing else; what the log ratios tell where a density is unknown."""

    sums: FloatArray
    moments: PointMoments | None
    top: TopValues | None
    ratios: RatioSums | None


def tile_size(dimension: int) -> int:
    """Samples in a tile."""
    size = TILE_DOUBLES // dimension
    return min(max(size - size % 8, TILE_LEAST), TILE_MOST)


def segments(
    problem: Problem, points: str, root: SeedSequence, key: tuple[int, ...], replicates: int, n: int, *,
    looks: bool = True,
) -> Segments:  # fmt: skip
    """So many replicates, cut by a fixed amount of work; ``looks`` at some points for their moments."""
    tile, cost = tile_size(problem.dimension), problem.cost + 20 * problem.dimension
    beside = min(tile // n, int(SEGMENT_COST / BESIDE / (cost * n)))
    size = int(SEGMENT_COST / cost)
    least = tile if size >= tile else TILE_LEAST
    size = max(size // least, 1) * least
    return Segments(problem, points, root, key, replicates, n, beside, size, looks)


def segment_sum(segment: Segment) -> SegmentSum:
    """Sums of f over the points of every replicate of a segment, tile by tile."""
    problem, size = segment.problem, segment.problem.integrand.size
    total = np.zeros((segment.count, size))
    moments = PointMoments(size) if segment.looks else None
    top = TopValues(TOP, size) if segment.looks and problem.watched else None
    ratios = ratio_sums(problem)
    for part, at, ratio in _tiles(segment) if segment.count == 1 else _beside(segment):
        total += problem.sums(at, ratio, segment.count)
        if ratios is not None:
            ratios.update(at.lp, at.lq, part.source is problem.p, ratio)
        if moments is None:
            continue
        step = _step(problem, len(at.lp))
        few = at if step == 1 else Densities(*(np.ascontiguousarray(logs[::step]) for logs in at))
        values = problem.values(few, None if ratio is None else ratio[::step]).T
        moments.update(values)
        if top is not None:
            top.update(values)
    return SegmentSum(total, moments, top, ratios)


def ratio_sums(problem: Problem) -> RatioSums | None:
    """An empty collector of log ratios where a density is unknown."""
    if not problem.unknown:
        return None
    return RatioSums(one_sided=len({part.source is problem.p for part in (*problem.parts, *problem.others)}) == 1)


def others_drawn(problem: Problem, root: SeedSequence, key: tuple[int, ...], n: int, ratios: RatioSums) -> None:
    """Add the log ratios of ``n`` samples of each of the others."""
    for place, part in enumerate(problem.others):
        at = (np.arange(n) + 0.5) / n
        component = np.searchsorted(np.cumsum(part.chances)[:-1], at, side="right").astype(np.int32)
        for tile in blocks(n, tile_size(problem.dimension)):
            words = _random.words(root, (*key, place, tile.start), _draw.WORDS)
            found, _ = _drawn(problem, part, component[tile], words)
            ratios.update(found.lp, found.lq, part.source is problem.p)


def _drawn(
    problem: Problem, part: Part, component: NDArray[np.int32], words: WordArray
) -> tuple[Densities, FloatArray | None]:
    """Log densities at pseudo-random samples of these components of a part, and what each counts."""
    if not isinstance(part.source, Packed):
        return problem.densities(part.source.draw(words, len(component)), part.source), None
    z = np.empty((problem.dimension, len(component)))
    _draw.normals(words, False, z)
    return _placed(problem, part, component, z)


def _step(problem: Problem, n: int) -> int:
    """One point in so many is looked at for moments: all of them where few hits carry the answer."""
    most = -(-problem.integrand.size * n // LOOKED_AT)
    return max(most, 1 if problem.law == "tilted" else STEP)


def batch_values(
    problem: Problem, root: SeedSequence, key: tuple[int, ...], batches: int, size: int, cut: float = math.inf,
    ratios: RatioSums | None = None,
) -> FloatArray:  # fmt: skip
    """min(f, cut), shape (e, size, batches), at the points of independent stratified batches of ``size`` each.

    Point k of a batch stands at (k + U) / n among the n of its part, every U for itself: points are independent, and
    their means average to the mean of f. Points are ordered by their place in the batch first: components then come in
    long runs. ``ratios`` takes in the log ratios.
    """
    values = np.empty((problem.integrand.size, size, batches))
    low, high = problem.integrand.low, min(problem.integrand.high, cut)
    for place, (part, first, last) in enumerate(problem.pieces(size)):
        if first == last:
            continue
        tiles = _batched(problem, part, root, (*key, place), batches, last - first, ratios)
        found = [np.clip(tile, low, high) for tile in tiles]  # proved: what leaves the range is rounding
        values[:, first:last] = np.concatenate(found, axis=1).reshape(len(values), last - first, batches)
    return values


def _batched(
    problem: Problem, part: Part, root: SeedSequence, key: tuple[int, ...], batches: int, count: int,
    ratios: RatioSums | None,
) -> Iterator[FloatArray]:  # fmt: skip
    """f of ``count`` points of a part in every batch, a tile at a time."""
    at = np.empty(count * batches)
    _draw.uniforms(_random.words(root, (*key, 0), _draw.WORDS), at)
    at = ((np.arange(count)[:, np.newaxis] + at.reshape(count, batches)) / count).ravel()
    component = np.searchsorted(np.cumsum(part.chances)[:-1], at, side="right").astype(np.int32)
    for tile in blocks(at.size, tile_size(problem.dimension)):
        words = _random.words(root, (*key, 1, tile.start), _draw.WORDS)
        densities, weight = _drawn(problem, part, component[tile], words)
        if ratios is not None:
            ratios.update(densities.lp, densities.lq, part.source is problem.p, weight)
        yield problem.values(densities, weight)


def _tiles(segment: Segment) -> Iterator[tuple[Part, Densities, FloatArray | None]]:
    """Parts, log densities at the points of a segment, and what each point counts, a tile at a time; no tile reaches
    over the edge of a part."""
    problem, key, root, n = segment.problem, (*segment.key, segment.begin), segment.root, segment.n
    start = np.empty(1)
    _draw.uniforms(_random.words(root, (*key, 0), _draw.WORDS), start)
    net = scrambled(problem.dimension, root, (*key, 1)) if segment.points == "sobol" else None
    size = tile_size(problem.dimension)
    room = min(size, segment.last - segment.first)  # a small replicate need not touch the memory of a whole tile
    normals, logs = np.empty(problem.dimension * room), np.empty((3, room))
    components = np.empty(room, dtype=np.int32)
    for part, first, last in problem.pieces(n):
        begins = range(max(first, segment.first), min(last, segment.last), size)
        if not begins:
            continue
        source = part.source if isinstance(part.source, Packed) else None
        streams = _streams(root, (*key, 2, begins[0]), len(begins) if net is None or source is None else 0)
        runs = _Runs(part, last - first, start, segment.points)
        for place, begin in enumerate(begins):
            count = min(begin + size, begins.stop) - begin
            if source is None:
                assert not isinstance(part.source, Packed)
                yield part, problem.densities(part.source.draw(streams[place], count), part.source), None
                continue
            z = normals[: problem.dimension * count].reshape(problem.dimension, count)
            component = components[:count]
            if net is not None:
                _draw.sobol_normals(*net, begin, z)
                _draw.runs(runs.bounds, begin - first, component)
            else:
                _draw.normals(streams[place], segment.points == "antithetic" and count % 2 == 0, z)
                runs.fill(begin - first, streams[place], component)
            yield part, *_placed(problem, part, component, z, logs[:, :count])


def _beside(segment: Segment) -> Iterator[tuple[Part, Densities, FloatArray | None]]:
    """Parts, log densities at the points of several replicates, one behind the other, and what each point counts; a
    part at a time."""
    problem, root, count = segment.problem, segment.root, segment.count
    key, points, d = (*segment.key, segment.begin), segment.points, problem.dimension
    start = np.empty(count)
    _draw.uniforms(_random.words(root, (*key, 0), _draw.WORDS), start)
    net = scrambled(d, root, (*key, 1), count) if points == "sobol" else None
    for part, first, last in problem.pieces(segment.n):
        n = last - first
        if not n:
            continue
        if not isinstance(part.source, Packed):
            x = part.source.draw(_random.words(root, (*key, 2, first), _draw.WORDS), count * n)
            yield part, problem.densities(x, part.source), None
            continue
        runs, z = _Runs(part, n, start, points), np.empty((d, count * n))
        if net is not None:
            _draw.sobol_normals(*net, first, z.reshape(d * count, n))
            words = np.empty(0, dtype=np.uint64)
        else:
            words = _random.words(root, (*key, 2, first), _draw.WORDS)
            _draw.normals(words, runs.twice, z)
        component = np.empty(count * n, dtype=np.int32)
        runs.fill(0, words, component)
        yield part, *_placed(problem, part, component, z)


def _streams(root: SeedSequence, key: tuple[int, ...], count: int) -> WordArray:
    """Words of ``count`` streams, one a tile: a SeedSequence of its own for each would cost 13 us a tile."""
    if not count:
        return np.empty((0, _draw.WORDS), dtype=np.uint64)
    return _random.words(root, key, count * _draw.WORDS).reshape(count, _draw.WORDS)


def _placed(
    problem: Problem, part: Part, component: NDArray[np.int32], z: FloatArray, room: FloatArray | None = None
) -> tuple[Densities, FloatArray | None]:
    """Log densities at the points that components and normals make, and what each point counts."""
    assert isinstance(part.source, Packed)
    _draw.place(part.source.form, part.source.means, part.source.spreads, component, z, z)
    ratio = part.ratio
    return problem.densities(z, part.source, room), None if ratio is None else ratio[component]


class _Runs:
    """Which component each of the n points of a part belongs to, in each of several replicates."""

    def __init__(self, part: Part, n: int, start: FloatArray, points: str) -> None:
        self.twice = points == "antithetic" and n % 2 == 0  # a pair stands where one point would
        self.cumulative = np.cumsum(part.chances)[:-1] if points == "plain" else None
        self.components, self.n = len(part.chances), n
        ends = part.bounds(n // 2, start) * 2 if self.twice else part.bounds(n, start)
        ends[:, -1] = n
        self.bounds = (ends + n * np.arange(len(start))[:, np.newaxis]).ravel()

    def fill(self, first: int, words: WordArray, out: NDArray[np.int32]) -> None:
        """The components of samples ``first`` and on."""
        if self.cumulative is None:
            _draw.runs(self.bounds, first, out)
            if len(self.bounds) > self.components:
                out %= self.components
        else:
            at = np.random.default_rng(words[::-1]).random((-(-len(out) // self.n), min(self.n, len(out))))
            at.sort(axis=1)
            out[:] = np.searchsorted(self.cumulative, at.ravel(), side="right")



PROBES = 8, 256  # samples of each component: at least, at most
PROBED = 2**14  # samples of all of them, unless the fewest are more
MOST_COST = 2.0**33  # components times coordinates times probes; beyond, weights decide
BETWEEN = 0.05  # share of the squared distance from the mean that counts as spread
SHARED = 0.25  # part of the mean square spread that every component is taken to have: few probes miss rare values
KEPT = 0.3  # share of the samples that follow the weights whatever the probes say: no sample counts for more than 3.4
NEAR = 0.1  # relative distance of the weights from equal ones that does not matter
GAIN = 0.9  # predicted variance below which other chances are worth their cost
LACKING = 2.0  # times the weight: a component that should get more is one that its weight may leave without samples


def allocated(problem: Problem, root: SeedSequence, key: tuple[int, ...], most: int) -> tuple[Problem, int]:
    """The problem with the best chances for its components as far as ``most`` probes tell, and the probes spent.

    A tilted law keeps its weights: they are near the best already, and few probes can not judge what is rarely hit.
    """
    if problem.law == "tilted":
        return problem, 0
    parts, spent = [], 0
    for index, part in enumerate(problem.parts):
        count = len(part.weights)
        allowed = min(most - spent, MOST_COST / problem.cost) / count
        if not isinstance(part.source, Packed) or count == 1 or allowed < PROBES[0]:
            unbounded = isinstance(part.source, Packed) and count > 1 and math.isinf(problem.integrand.high)
            parts.append(_spread_out(part) if unbounded else part)
            continue
        each = 2 ** int(math.log2(max(PROBES[0], min(PROBES[1], PROBED / count, allowed))))
        mean, spread = _moments(problem, part, part.source, root, (*key, index), each)
        spent += each * count
        parts.append(_reallocated(part, mean, spread))
    if all(new is old for new, old in zip(parts, problem.parts, strict=True)):
        return problem, spent
    return problem.with_parts(tuple(parts)), spent


def probes_wanted(problem: Problem) -> int:
    """Probes that ``allocated`` spends at most."""
    return sum(max(PROBED, PROBES[0] * count) for count in _counts(problem))


def probes_needed(problem: Problem) -> int:
    """Probes that are worth their cost in a short run too."""
    return sum(max(min(PROBED, PROBES[1] // 8 * count), PROBES[0] * count) for count in _counts(problem))


def _counts(problem: Problem) -> list[int]:
    """Components of the parts that have several."""
    counts = [len(part.weights) for part in problem.parts if isinstance(part.source, Packed)]
    return [count for count in counts if count > 1]


def _moments(
    problem: Problem, part: Part, source: Packed, root: SeedSequence, key: tuple[int, ...], each: int
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of f, shape (e, k), within every component."""
    component = np.repeat(np.arange(len(part.weights), dtype=np.int32), each)
    found = []
    for tile in blocks(component.size, tile_size(problem.dimension)):
        z = np.empty((problem.dimension, tile.stop - tile.start))
        _draw.normals(_random.words(root, (*key, tile.start), _draw.WORDS), True, z)
        _draw.place(source.form, source.means, source.spreads, component[tile], z, z)
        found.append(problem.values(problem.densities(z, source), None))
    values = np.concatenate(found, axis=1).reshape(len(found[0]), -1, each)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.mean(axis=2), values.std(axis=2, ddof=1)


def _spread_out(part: Part) -> Part:
    """Half of the samples to all components alike: where f has no bound a component of any weight may rule its mean,
    and one that no sample comes from is one that the interval does not know of."""
    chances = 0.5 * (part.weights + 1.0 / len(part.weights))
    near = (np.abs(chances - part.weights) <= NEAR * part.weights).all()
    return part if near else part.reallocated(chances)


def _reallocated(part: Part, mean: FloatArray, spread: FloatArray) -> Part:
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        return part
    w = part.weights
    total = _product.times(mean, w)
    largest = np.maximum(spread.max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    pooled = np.sqrt(_product.times(SHARED * (spread / largest) ** 2, w)) * largest[:, 0]
    need = np.hypot(np.hypot(spread, pooled[:, np.newaxis]), math.sqrt(BETWEEN) * (mean - total[:, np.newaxis])) * w
    scale = need.sum(axis=1)
    if not (scale > 0).all():
        return part
    chances = (1 - KEPT) * (need / scale[:, np.newaxis]).mean(axis=0) + KEPT * w
    chances /= chances.sum()
    part_of = need / scale[:, np.newaxis]
    before, after = ((part_of**2 / share).sum(axis=1) for share in (w, chances))
    pays = np.exp(np.log(after / before).mean()) < GAIN or (chances > LACKING * w).any()
    return part.reallocated(chances) if pays else part
