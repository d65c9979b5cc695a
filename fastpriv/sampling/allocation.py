"""How many samples each component of a mixture gets.

Notation: w the weights, s_c and m_c the standard deviation and the mean of f within component c. With n_c = n pi_c
samples of component c the variance of the estimate is sum_c w_c^2 s_c^2 / (n pi_c), smallest for pi_c in proportion to
w_c s_c (Neyman 1934). A component that gets less than one sample a replicate also adds its distance from the mean.
"""

# bounds: none - keeps squares from overflowing

from __future__ import annotations

import math

import numpy as np
from numpy.random import SeedSequence
from numpy.typing import NDArray

from .. import _random
from .._parallel import blocks
from ..distributions.packed import Packed
from ..kernels import _draw, _product
from .problem import Part, Problem
from .replicates import tile_size

__all__ = ["allocated", "probes_needed", "probes_wanted"]

FloatArray = NDArray[np.float64]

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
