"""How many samples: of each component of a distribution, in each replicate, and in the next stage.

Components. Notation: w the weights of the components, s_c and m_c the standard deviation and the mean of f within
component c. With n_c = n pi_c samples of component c the variance of the estimate is sum_c w_c^2 s_c^2 / (n pi_c),
smallest for pi_c in proportion to w_c s_c (Neyman 1934). A component that gets less than one sample a replicate also
adds its distance from the mean.

Stages. The spread of R replicates is known to a relative 1 / sqrt(2 (R - 1)), that of a stage and that of what it is
planned from. A stage is planned so that it meets its target in spite of both nine times in ten: one that fails has
spent its part of the level, and the next interim analysis asks for half as many points again.
"""

# bounds: none - how many samples are planned; keeps squares from overflowing

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import SeedSequence

from ..base import random_streams
from ..base.numerics import FloatArray
from ..base.parallel import blocks
from ..distributions.packed import Packed
from ..kernels import _draw, _matrix_product
from .estimand import Estimand, Stage, interval
from .options import Request
from .problem import SampleSource, SamplingProblem
from .replicates import tile_size
from .statistics.intervals import analysis_confidence, student_factor

REPLICATES = 32  # of a stage: Student's factor is then 4 % above the normal quantile
PILOT_SHARE = 16  # a pilot takes at most one part in so many of the samples
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
FALL = RATES | {"sobol": 2.0}  # what it rises like towards fewer points: the cautious end of a range of rates
PROBES = 32  # samples of each component

cached_student_factor, interim_confidence = lru_cache(256)(student_factor), lru_cache(256)(analysis_confidence)


def probes_wanted(problem: SamplingProblem) -> int:
    """Probes that ``with_neyman_allocation`` spends where they are allowed."""
    counts = [len(source.weights) for source in problem.sources if isinstance(source.distribution, Packed)]
    return sum(PROBES * count for count in counts if count > 1)


def with_neyman_allocation(
    problem: SamplingProblem, root: SeedSequence, key: tuple[int, ...], most: int
) -> tuple[SamplingProblem, int]:
    """The problem with the allocation to its components that PROBES of each suggest, where ``most`` allows them, and
    the probes spent.

    A tilted proposal keeps its weights: they are near the best already, and few probes cannot judge what is rarely hit.
    """
    if problem.distribution == "tilted":
        return problem, 0
    sources, spent = [], 0
    for index, source in enumerate(problem.sources):
        probes = PROBES * len(source.weights)
        if not isinstance(source.distribution, Packed) or len(source.weights) == 1:
            sources.append(source)
        elif spent + probes > most or probes > 2.0**33 / problem.cost:  # about a second
            sources.append(_half_equal(source) if math.isinf(problem.integrand.high) else source)
        else:
            sources.append(_reallocated(source, *_component_moments(problem, source, root, (*key, index))))
            spent += probes
    if all(new is old for new, old in zip(sources, problem.sources, strict=True)):
        return problem, spent
    return replace(problem, sources=tuple(sources)), spent


def _component_moments(
    problem: SamplingProblem, source: SampleSource, root: SeedSequence, key: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of f, shape (e, k), within every component."""
    assert isinstance(source.distribution, Packed)
    mixture = source.distribution
    component = np.repeat(np.arange(len(source.weights), dtype=np.int32), PROBES)
    tile_values = []
    for tile in blocks(component.size, tile_size(problem.dimension)):
        z = np.empty((problem.dimension, tile.stop - tile.start))
        _draw.normals(random_streams.stream_words(root, (*key, tile.start), _draw.SEED_WORDS), True, z)
        _draw.affine_map(mixture.form, mixture.means, mixture.spreads, component[tile], z, z)
        tile_values.append(problem.values(problem.densities(z, mixture), None))
    values = np.concatenate(tile_values, axis=1).reshape(len(tile_values[0]), -1, PROBES)
    with np.errstate(over="ignore", invalid="ignore"):
        return values.mean(axis=2), values.std(axis=2, ddof=1)


def _half_equal(source: SampleSource) -> SampleSource:
    """Give half of the samples to all components equally. Where f has no bound, a component of any weight may dominate
    its mean, and the interval does not account for a component from which no sample is drawn."""
    allocation = 0.5 * (source.weights + 1.0 / len(source.weights))
    near = (np.abs(allocation - source.weights) <= 0.1 * source.weights).all()
    return source if near else replace(source, allocation=allocation)


def _reallocated(source: SampleSource, mean: FloatArray, spread: FloatArray) -> SampleSource:
    """The source with samples in proportion to weight times spread, as far as that pays."""
    if not (np.isfinite(mean).all() and np.isfinite(spread).all()):
        return source
    w = source.weights
    total = _matrix_product.matrix_vector(mean, w)
    largest = np.maximum(spread.max(axis=1, keepdims=True), 1e-300)  # so that squares do not overflow
    # every component is taken to have a part of the mean square spread, since probes miss rare values, and a part of
    # its squared distance from the mean counts as spread
    pooled = np.sqrt(_matrix_product.matrix_vector(0.25 * (spread / largest) ** 2, w)) * largest[:, 0]
    need = np.hypot(np.hypot(spread, pooled[:, np.newaxis]), math.sqrt(0.05) * (mean - total[:, np.newaxis])) * w
    scale = need.sum(axis=1)
    if not (scale > 0).all():
        return source
    fraction = need / scale[:, np.newaxis]
    allocation = 0.7 * fraction.mean(axis=0) + 0.3 * w  # no sample counts for more than 3.4
    allocation /= allocation.sum()
    before, after = ((fraction**2 / share).sum(axis=1) for share in (w, allocation))
    pays = np.exp(np.log(after / before).mean()) < 0.9 or (allocation > 2.0 * w).any()
    return replace(source, allocation=allocation) if pays else source


class PlanningReference(NamedTuple):
    """What the next stage is planned from: the ratio of half width to target, at a level, from ``replicates`` of n
    points; ``constant`` where nothing varied."""

    n: float
    target_ratio: float
    level: float
    replicates: int
    constant: bool = False

    def total_points(self, request: Request, points: str, analysis: int, replicates: int) -> float:
        """Points of each of so many replicates, all stages together, that should meet the target at this analysis."""
        level = interim_confidence(request.confidence, analysis)
        factors = [(level, replicates), (self.level, self.replicates)]
        wider, former = (cached_student_factor(*factor, request.side) for factor in factors)
        error = math.sqrt(0.5 / (self.replicates - 1) + 0.5 / (replicates - 1))  # of log(spread / spread)
        rise = self.target_ratio * (wider / former) * math.exp(1.28 * error)  # it then fails once in ten
        rise *= math.sqrt(self.replicates / replicates)
        # where nothing varies, bounds close in like 1 / n
        rate = 2.0 if self.constant else RATES[points] if rise > 1.0 else FALL[points]
        return self.n * float(min(rise, 1e9) ** (2 / rate))

    def next_points(self, request: Request, points: str, analysis: int, replicates: int) -> float:
        """Those of the next stage: of independent points only what lacks, and no less than is worth an analysis."""
        done = self.n * self.replicates / replicates
        wanted = self.total_points(request, points, analysis, replicates)
        if analysis > 1:
            wanted = max(wanted - (0.0 if points == "sobol" else done), 0.5 * done)
        return min(wanted, 4096.0 * max(done, 1.0))


def planning_reference(
    estimand: Estimand, problem: SamplingProblem, pilot: Stage, request: Request
) -> PlanningReference:
    """The reference for planning, as far as a pilot determines it."""
    estimates = estimand.estimates(interval(problem, [pilot], request.confidence, request, None))
    return PlanningReference(pilot.n, estimand.target_ratio(estimates, request), request.confidence, len(pilot.means))


def net_size(reference: PlanningReference, request: Request, analysis: int) -> tuple[int, float]:
    """Replicates, and points of each, a power of two, that should meet the target with the fewest points in all."""
    plans = []
    for replicates in range(24, 65, 4):  # from 16 on intervals hold
        wanted = reference.next_points(request, "sobol", analysis, replicates)
        n = 2.0 ** math.ceil(math.log2(max(wanted, 2.0)))
        plans.append((replicates * n, -replicates, n))
    _, replicates, n = min(plans)
    return -replicates, n


def split_budget(total: float, least: int) -> tuple[int, int]:
    """Replicates, and points of each, a power of two, that spend so many points: few replicates where they are large,
    as nets of twice the points err less than half of them do together."""
    replicates = 16 if total >= 16 * 4096 else REPLICATES
    n = max(2 ** int(math.log2(max(total / replicates, 1.0))), least)
    return min(2 * replicates - 1, max(replicates, int(total) // n)), n
