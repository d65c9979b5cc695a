"""Certified laws of sums of log-normal variables with few bands of covariances, on a grid of the noise itself.

Notation: b bins, w loadings c_l >= 0, c_0 > 0; xi_j independent and standard normal, j = 0 .. b + w - 2; R is the
average over i of Y_i = prod over l of e^(c_l xi_(i+l) - c_l^2 / 2), x = e^epsilon:

    delta_remove = E (R - x)^+,        delta_add = E (1 - x R)^+.

Cells. Each xi_j is made discrete, one after the other, all others being given. R is affine in the numbers
e^(c_l xi_j), so that both functions are convex in them.

* From below, for both: each cell of xi_j becomes the means of all e^(c_l xi_j - c_l^2/2) over it (Jensen).
* From above, for removal: with v = e^(c xi_j) and the least positive c of all c_l, R is a constant plus powers v^p,
  p >= 1, with coefficients >= 0: R is convex in v, and so is (R - x)^+, which rises in R. The mass of a cell is divided
  between both ends so that the mean of v is kept. What lies beyond the last end is added as the mean of R there.
* From above, for addition: the same with the largest c. R is concave in v, and (1 - x R)^+ is convex, as it falls in R.
  Beyond the last end it is at most what it is there.

The discrete law of R follows from bin to bin: the state is the last w - 1 of the xi, and the partial sum, which is
gathered in cells after each bin, in the same two ways. A function (R - x)^+ is linear beyond x, so that one cell serves
all larger sums: the law is made for x up to a number.

More loadings, or larger ones, raise both deltas (Kahane 1986, all covariances being at least 0), so that roundings of
loadings go outward. The laws below and above may have different loadings and bins.

Source: Kahane, Comptes rendus de l'Academie des sciences 303, 1986; ``log_normal_sums`` for the order of laws.
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .. import special
from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, reconcile_bounds
from ..kernels import _banded_sums
from .allocations import AllocationPair
from .log_normal_sums import AtomicLaw, LawsOfSum, SumBounds, log_normal_cells
from .protocol import DominatingPair

_MAX_BANDS = 4  # states are points^(bands - 1)
# bound: none - loadings and their ratios for which the points of the noise serve
_LEAST_LOADING, _LARGEST_LOADING, _LEAST_RATIO = 1e-3, 8.0, 1e-2
_WORK, _CURVE_WORK = (1.2e8, 1.5e8, 1.5e8), 1e7  # sums of an atom and a term of one law, by bands: 3 ns each
_SUM_CELLS = 1000, 300, 150  # of the partial sums up to the level, by bands
# of the noise: the first that is not too much work
_SPACINGS = (1 / 16, 1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2, 2 / 3, 1.0)
_FEW_LEVELS = 4  # beyond which coarser laws serve
_LARGEST_LEVEL = 300.0  # epsilon beyond which nothing is improved
# bound: none - log delta below which nothing is improved
_DEEPEST = -500.0
_CORE = 3.0  # standard deviations left of the mean, up to which the points are evenly spaced
_BEYOND = 7.0  # nats below delta that the mean beyond the last point is to lie
_LARGEST_DEPTH, _LARGEST_Z = 30.0, 37.5  # beyond it lies less than 1e-307 of a normal law
# bound: proved - masses that are left out: each less than FP_BANDED_LEAST, as many as _WORK allows
_LOST = 1e-280
# bound: none - of atoms that are kept from below
_LEAST_SUM = 1e-280


def banded_pair(
    below: tuple[float, ...], bins_below: int, above: tuple[float, ...], bins_above: int, dominating: AllocationPair,
    dominated: AllocationPair,
) -> BandedPair | None:
    """The pair of the removal of a record; None for loadings out of range."""
    used = [c for c in (*below, *above) if c > 0.0]
    wide = not used or min(used) < max(_LEAST_LOADING, _LEAST_RATIO * max(used)) or max(used) > _LARGEST_LOADING
    if wide or len(below) > _MAX_BANDS:
        return None
    return BandedPair(below, bins_below, above, bins_above, False, dominating, dominated, dominating.count)


@dataclass(frozen=True, slots=True, eq=False)
class BandedPair(DominatingPair):
    """One direction, ``adds`` for Q against P: loadings and bins of a law from below, and of one from above.

    The curves of ``dominating`` and ``dominated`` bound it as well.
    """

    _fields = ("below", "bins_below", "above", "bins_above", "adds", "dominating", "dominated", "count")

    below: tuple[float, ...]
    bins_below: int
    above: tuple[float, ...]
    bins_above: int
    adds: bool
    dominating: AllocationPair
    dominated: AllocationPair
    count: int

    @property
    def curve_width(self) -> float:
        """The intervals of a grid follow the width of the bounds."""
        return self.dominating.curve_width

    def reversed(self) -> BandedPair:
        """Addition for removal."""
        reversed_pairs = self.dominating.reversed(), self.dominated.reversed()
        return replace(self, adds=not self.adds, dominating=reversed_pairs[0], dominated=reversed_pairs[1])

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        lower = np.asarray(self.dominated.curve(levels).lower)
        upper = np.asarray(self.dominating.curve(levels).upper)
        rows = np.stack([0.5 * (lower + upper), lower, upper])
        few = levels.size <= _FEW_LEVELS
        smallest, largest = self.dominating.deltas
        used = (levels <= _LARGEST_LEVEL) & (upper > max(math.exp(_DEEPEST), smallest)) & (lower < largest)
        groups = np.ceil(2.0 * levels[used]).astype(np.int64)
        for group in np.unique(groups):
            at = np.flatnonzero(used)[groups == group]
            least = float(np.maximum(lower[at].min(), 1e-6 * upper[at].min()))
            depth = 10.0 * math.ceil(-math.log(max(least, math.exp(_DEEPEST - 14.0))) / 10.0)
            size = self.bins_below, self.bins_above, len(self.below)
            result = _bounds(self, 0.5 * float(max(group, 1)), depth, few, size)
            if result is not None:
                x = np.exp(levels[at])
                ends = result.excesses(1.0 / x, True) * x if self.adds else result.excesses(x, False)
                ends[1] *= 1.0 - 8 * UNIT_ROUNDOFF
                ends[2] = ends[2] * (1.0 + 8 * UNIT_ROUNDOFF) + _LOST
                rows[1, at], rows[2, at], _ = reconcile_bounds((lower[at], upper[at]), (ends[1], ends[2]))
                rows[0, at] = ends[0]
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(
            value, lower, upper, kind="certified", unit="probability", method="law of a sum on a grid of the noise"
        )


@functools.lru_cache(maxsize=32)
def _bounds(pair: BandedPair, level: float, depth: float, few: bool, size: tuple[int, int, int]) -> SumBounds | None:
    """Laws for epsilon up to a level, and deltas down to e^-depth; None if these are too much work."""
    kind = min(max(size[2], 2), _MAX_BANDS) - 2
    cells, work = _SUM_CELLS[kind], _WORK[kind] if few else _CURVE_WORK
    for spacing in _SPACINGS:
        points = _points(max(pair.above), depth, spacing, pair.adds).size + 1
        if max(size[:2]) * float(points) ** size[2] * cells <= work:
            break
    else:
        return None
    c = max(pair.above) if pair.adds else min(c for c in pair.above if c > 0.0)
    x = math.exp(-level + 0.5 if pair.adds else level)
    noise = _lower_noise(pair.below, depth, spacing, pair.adds)
    below = _bounded_sum(pair.bins_below, noise, x, cells, False)
    noise = _upper_noise(pair.above, pair.bins_above, c, depth, spacing, pair.adds)
    above = _bounded_sum(pair.bins_above, noise, x, cells, True)
    zero = AtomicLaw(np.zeros(1), np.ones(1))
    first = LawsOfSum(below.atoms, above.atoms, max(below.mass_error, above.mass_error), max(below.error, above.error))
    return SumBounds(first, LawsOfSum(zero, zero, 0.0, 0.0), 1)


class _NoiseGrid(NamedTuple):
    """Factors e^(c_l xi - c_l^2/2), shape (points, bands), weights, their relative errors, and the mean beyond."""

    factors: FloatArray
    weights: FloatArray
    mass_error: float
    error: float
    beyond: float = 0.0


class _BoundedSum(NamedTuple):
    """The law of R and its relative errors."""

    atoms: AtomicLaw
    mass_error: float
    error: float


def _points(largest: float, depth: float, spacing: float, adds: bool) -> FloatArray:
    """Ends of cells of xi, wider and wider where delta does not depend on them."""
    deep = min(math.sqrt(2.0 * depth), _LARGEST_DEPTH)
    low, high = (-deep, _CORE + largest) if adds else (-_CORE, deep + largest)
    last = high + 5.0 if adds else min(largest + math.sqrt(2.0 * (depth + _BEYOND)) + 1.0, _LARGEST_Z)
    core = spacing * np.arange(math.floor(low / spacing), math.ceil(high / spacing) + 1)
    widths = spacing * 1.5 ** np.arange(1, 30)
    left, right = core[0] - np.cumsum(widths), core[-1] + np.cumsum(widths)
    return np.unique(np.concatenate([left[left > low - 6.0], core[core < last], right[right < last], [last]]))


def _lower_noise(loadings: tuple[float, ...], depth: float, spacing: float, adds: bool) -> _NoiseGrid:
    """The means of cells."""
    ends = np.concatenate([[-np.inf], _points(max(loadings), depth, spacing, adds), [np.inf]])
    mass = special.ndtr_difference(ends[:-1], ends[1:])
    means = np.stack([special.ndtr_difference(ends[:-1] - c, ends[1:] - c) / mass for c in loadings], axis=1)
    # an end is off by a rounding: as in ``log_normal_sums``
    size = np.max(np.abs(ends[1:-1])) + max(loadings)
    width = float(np.diff(ends[1:-1]).min())
    error = 64 * UNIT_ROUNDOFF + 4 * UNIT_ROUNDOFF * size * max(1.0 / width, size) * math.exp(3.0)
    return _NoiseGrid(means, mass, 32 * UNIT_ROUNDOFF, len(loadings) * error)


def _upper_noise(
    loadings: tuple[float, ...], bins: int, c: float, depth: float, spacing: float, adds: bool
) -> _NoiseGrid:
    """The ends of cells, with the mean of e^(c xi) kept."""
    ends = np.concatenate([np.zeros(1), np.exp(c * _points(max(loadings), depth, spacing, adds) - 0.5 * c**2)])
    single = log_normal_cells(c, ends)
    distribution = single.above
    with np.errstate(divide="ignore"):
        xi = (np.log(distribution.atoms) + 0.5 * c**2) / c
    factors = np.stack([np.exp(k * xi - 0.5 * k**2) if k > 0.0 else np.ones(xi.size) for k in loadings], axis=1)
    last = float(xi[-1])
    # the mean of R where some xi is beyond: one of those of Y_i, or any other
    beyond = float(sum(special.ndtr(k - last) for k in loadings) + bins * special.ndtr(-last)) * (1.0 + 1e-9)
    # positions of e^(c xi) are off by this, those of another power by the ratio of both times it, and by its exponent
    size = max(loadings) / c * single.position_error
    size += 16 * UNIT_ROUNDOFF * (1.0 + max(loadings) * (abs(last) + 12.0) + max(loadings) ** 2)
    return _NoiseGrid(factors, distribution.masses, single.mass_error, len(loadings) * size, beyond)


def _bounded_sum(bins: int, noise: _NoiseGrid, level: float, cells: int, above: bool) -> _BoundedSum:
    """The law of R from that of each xi."""
    n, w = noise.factors.shape
    value = noise.factors[:, 0]
    for band in range(1, w):
        value = np.multiply.outer(value, noise.factors[:, band])
    value = np.ascontiguousarray(value.reshape(n ** (w - 1), n) / bins if w > 1 else value.reshape(1, n) / bins)
    start = np.ones(1)
    for _ in range(w - 1):
        start = np.multiply.outer(start, noise.weights).ravel()
    top = float(value.max()) * bins * (1.0 + 1e-6) + 2.0 * level
    edges = np.concatenate([np.linspace(0.0, level * (1.0 + 1e-9), cells + 1), [top]])
    mass, at = np.zeros((2, start.size, edges.size))
    mass[:, 0] = start
    lost = _banded_sums.banded_sum(
        value, np.ascontiguousarray(noise.weights), bins, edges, above, mass, at, np.empty(2 * mass.size)
    )
    total = mass.sum(axis=0)
    selected = total > (0.0 if above else _LEAST_SUM)
    rounding = bins * (n * edges.size + 16) * UNIT_ROUNDOFF + start.size * UNIT_ROUNDOFF
    mass_error = (bins + w) * (noise.mass_error + 4 * UNIT_ROUNDOFF) + rounding
    if above:
        infinite = noise.beyond + lost * top * (1.0 + 1e-6)
        return _BoundedSum(
            AtomicLaw(edges[selected], total[selected], infinite), mass_error, noise.error + 2 * rounding
        )
    atoms = (mass * at).sum(axis=0)[selected] / total[selected]
    return _BoundedSum(AtomicLaw(atoms, total[selected]), mass_error, noise.error + 2 * rounding)
