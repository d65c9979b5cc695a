"""Sums of independent log-normal variables with mean 1, between two laws with atoms that bound every convex function.

Notation: Y = e^(a Z - a^2/2) with Z standard normal, so that E Y = 1; S_n a sum of n independent copies; C(x) =
E (S - x)^+ and D(x) = E (x - S)^+. A law lies below another in convex order if E g is at most that of the other for all
convex g; a sum of independent variables then keeps this order in each of them (Shaked and Shanthikumar, Stochastic
Orders, theorem 3.A.12). Both C and D are means of convex functions.

Cells. The line is cut into cells, and for each cell the mass m of a law and its moment about the left edge are known.
Below: an atom of mass m at the mean of the cell (Jensen). Above: m divided between both ends so that the mean is kept
(the chord of a convex function lies above it). S_{2n} = S_n + S_n' doubles a law with n atoms by n^2 sums, which are
gathered into new cells; the last sum is never gathered, and C and D are taken from its two terms. What the cells add to
or take from the variance is 1/6 and 1/12 of the square of their widths: the best estimate lies a third of the way.

The last cell of Y has no right end. Its mass beyond its left edge e is put at e, and E (Y - e)^+ is added to C for
each of the n terms.

Rounding. All masses are sums of products of positive numbers, so that their relative errors are bounded, add up over
the factors of a product, and are carried as one number, ``mass_error``. Errors of positions are relative too, and do
not grow with the number of terms, since all positions are positive: ``position_error`` moves x in the end.
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF, and allowances far above what they cover

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import special
from ..kernels import _positive_sums
from ..numerics import UNIT_ROUNDOFF, FloatArray

__all__ = ["SumBounds", "log_normal_sum"]

# bound: tested by kernels/test_special_accuracy - relative error of ndtr_difference: 6 ulps, and room
_NORMAL_ERROR = 16 * UNIT_ROUNDOFF
_LARGEST_Z = 37.5  # beyond it lies less than 1e-307 of a normal law
_FINE_STEPS = 40_000  # points of Y on which its cells are chosen
_FEW_ATOMS = 280  # atoms of either term of a sum, on whose sums the cells are chosen
# Cells are shared out to these parts of a law. The first four are evenly spaced between two quantiles, left by mass and
# right by the share of the mean, for the sums of many. The others follow logarithms: of the mass at and left of a point
# and the share of the mean right of it, down to the depth that is asked for and to the last double; and likewise of the
# mass right of it and the share of the mean left of it, which differ where few large terms make the mean.
_QUANTILES = (0.25, 1e-2, 1e-4, 1e-8)
_QUANTILE_SHARES = (0.05, 0.05, 0.1, 0.1)  # of the cells, for each of these quantiles
_DEEPEST = 690.0  # nats: e^-690 is a normal double
_TAIL_SHARE, _DEEP_SHARE, _MIDDLE_SHARE = 0.45, 0.07, 0.18
_LARGEST_POSITION = 1e150  # of an atom of Y; what lies beyond is ``infinite``
# bound: proved - masses of at least this are sums whose terms lose less than 1e-16 of it by underflow
_LEAST_MASS = 1e-290  # cells with less are left out below, where masses that underflow have no relative error
# bound: proved - what a product of two masses can lose by underflow
_LEAST_DOUBLE = 5e-324


@dataclass(frozen=True, eq=False)
class _AtomicLaw:
    """Atoms and masses; ``infinite`` is the mean of what an atom at infinity without mass adds."""

    atoms: FloatArray
    masses: FloatArray
    infinite: float = 0.0


@dataclass(frozen=True, eq=False)
class _LawsOfSum:
    """The laws below and above, and bounds of the relative errors of their masses and positions."""

    below: _AtomicLaw
    above: _AtomicLaw
    mass_error: float
    position_error: float


class _CellChoice(NamedTuple):
    """How many cells a law is cut into, and the depths that most of them cover, in nats.

    ``depth`` is that of the tails, ``middle`` that of what lies between most of the mass and most of the mean of Y.
    """

    number: int
    depth: float
    middle: float


@dataclass(frozen=True, eq=False)
class SumBounds:
    """C and D of the sum of ``count`` log-normal variables, from the laws of two terms."""

    first: _LawsOfSum
    second: _LawsOfSum
    count: int

    def excesses(self, level: FloatArray, deficit: bool) -> FloatArray:
        """Rows of best estimates, lower and upper bounds of C, or of D if ``deficit``, at levels x >= 0."""
        shift = self.first.position_error + self.second.position_error + 8 * UNIT_ROUNDOFF
        mass = math.expm1(1.01 * (self.first.mass_error + self.second.mass_error)) + _evaluation_error(self)
        rows = np.zeros((3, level.size))
        for side, sign, share in (("below", 1.0, 2.0 / 3.0), ("above", -1.0, 1.0 / 3.0)):
            one, other = getattr(self.first, side), getattr(self.second, side)
            both = np.empty((2, level.size))
            # E (S - x)^+ with S off by a factor 1 + e is that of x / (1 + e), times 1 + e; likewise (x - S)^+
            x = level * (1.0 - sign * shift if deficit else 1.0 + sign * shift)
            _positive_sums.sum_excesses(one.atoms, one.masses, other.atoms, _tails(other), x, both)
            found = both[int(deficit)]
            rows[0] += share * found
            rows[1 if side == "below" else 2] = found * (1.0 - sign * (mass + 2.0 * shift))
        value, lower, upper = rows
        if deficit:
            upper += level * _LEAST_MASS  # masses that underflowed
        else:
            upper += (self.first.above.infinite + self.second.above.infinite) * (1.0 + mass)
        lower, upper = np.nextafter(np.maximum(lower, 0.0), 0.0), np.nextafter(upper, math.inf)
        wide = upper > 1.5 * lower
        value[wide] = np.sqrt(lower[wide]) * np.sqrt(upper[wide])
        return np.stack([np.clip(value, lower, upper), lower, upper])


@functools.lru_cache(maxsize=16)
def log_normal_sum(scale: float, count: int, cells: int, depth: float) -> SumBounds:
    """Bounds of the sum of ``count`` log-normal variables with mean 1 and log standard deviation ``scale``.

    They are close where C / count and D / count are between e^-depth and 1.
    """
    grid = _CellChoice(cells, depth, min(10.0 + 0.6 * scale**2, _DEEPEST))
    single = _single(scale, grid)
    if count == 1:
        zero = _AtomicLaw(np.zeros(1), np.ones(1))
        return SumBounds(single, _LawsOfSum(zero, zero, 0.0, 0.0), 1)
    half = _multiple(single, count // 2, grid)
    if count % 2 == 0:
        return SumBounds(half, half, count)
    return SumBounds(half, _sum(half, single, grid), count)


def _multiple(single: _LawsOfSum, count: int, cells: _CellChoice) -> _LawsOfSum:
    """The sum of ``count`` copies, by the binary digits of count."""
    total = single
    for digit in bin(count)[3:]:
        total = _sum(total, total, cells)
        if digit == "1":
            total = _sum(total, single, cells)
    return total


def _single(scale: float, cells: _CellChoice) -> _LawsOfSum:
    """Y: the masses of cells and their means are differences of normal distribution functions."""
    last = min(_LARGEST_Z + scale, (math.log(_LARGEST_POSITION) + 0.5 * scale**2) / scale)
    fine = np.linspace(-_LARGEST_Z, last, _FINE_STEPS + 1)
    masses = special.ndtr_difference(fine[:-1], fine[1:])
    middles = 0.5 * (fine[:-1] + fine[1:])
    atoms = np.exp(scale * middles - 0.5 * scale**2)
    edges = _edges(atoms, masses, atoms, cells)
    with np.errstate(divide="ignore"):
        z = (np.log(edges) + 0.5 * scale**2) / scale
    z = np.concatenate([z, [math.inf]])
    mass = special.ndtr_difference(z[:-1], z[1:])
    mean = special.ndtr_difference(z[:-1] - scale, z[1:] - scale)  # E [Y; cell]
    moment = mean - edges * mass
    # z - scale is off by a rounding, which moves a difference over a cell by at most the rounding times the density;
    # the density times the width is at most e^(|z| width) times the difference
    width, size = z[1:-1] - z[:-2], np.abs(z[:-1]) + scale
    width[0] = 1.0 / _LARGEST_Z  # the cell from 0 on: its mean is nearly all at its right end
    shift = 4 * UNIT_ROUNDOFF * size[1:] * np.maximum(1.0 / width, size[1:]) * np.exp(np.minimum(width * size[1:], 3.0))
    shift = np.concatenate([shift, [4 * UNIT_ROUNDOFF * size[-1] * (1.0 + size[-1])]])
    error = (_NORMAL_ERROR + shift) * mean + 2 * _NORMAL_ERROR * edges * mass
    # edges are exact, their z and the scale are not: a relative error of the position
    position = 16 * UNIT_ROUNDOFF * (2.0 + scale * (_LARGEST_Z + scale) + scale**2)
    return _from_cells(edges, mass, moment, error, _NORMAL_ERROR, position)


def _sum(one: _LawsOfSum, other: _LawsOfSum, cells: _CellChoice) -> _LawsOfSum:
    """The sum of two independent variables, in new cells."""
    found: list[Any] = []
    errors: list[float] = []
    for side in ("below", "above"):
        a, b = getattr(one, side), getattr(other, side)
        if not found:
            edges = _edges(*_coarse_sums(a, b), cells)
        top = a.atoms[-1] + b.atoms[-1]
        bounds = np.concatenate([edges[edges < top], [top]])
        mass, moment = np.zeros((2, bounds.size - 1))
        _positive_sums.sums_in_cells(a.atoms, a.masses, b.atoms, b.masses, a is b, bounds, mass, moment)
        error = (a.atoms.size + b.atoms.size + 16) * UNIT_ROUNDOFF
        errors.append(error)
        # products of masses that underflow: at most at the largest sum
        underflow = a.atoms.size * b.atoms.size * _LEAST_DOUBLE * top
        infinite = (a.infinite * b.masses.sum() + b.infinite * a.masses.sum()) * (1.0 + 1e-9) + underflow
        found.append((bounds, mass, moment, error, infinite))
    edges, mass, moment, error, infinite = found[1]
    below = _lower_law(*found[0][:3])
    above = _upper_law(edges, mass, moment, 2 * error * moment, 2 * error * mass, infinite)
    error = max(errors)
    return _LawsOfSum(
        below, above, one.mass_error + other.mass_error + 4 * error,
        max(one.position_error, other.position_error) + 4 * error,
    )  # fmt: skip


def _from_cells(
    edges: FloatArray, mass: FloatArray, moment: FloatArray, error: FloatArray, mass_error: float, position_error: float
) -> _LawsOfSum:
    """Both laws of Y; the last cell has no right end."""
    excess = max(float(moment[-1] + error[-1]), 0.0)
    above = _upper_law(edges, mass[:-1], moment[:-1], error[:-1], mass_error * mass[:-1], excess, last=float(mass[-1]))
    # below, the first cell is left out as well: it begins at 0, and its mean has no digits
    below = _lower_law(edges[1:], mass[1:-1], moment[1:-1])
    kept = mass[1:-1] > _LEAST_MASS
    moved = np.minimum(error[1:-1][kept] / mass[1:-1][kept], np.diff(edges)[1:][kept]) / edges[1:-1][kept]
    return _LawsOfSum(below, above, mass_error, position_error + float(moved.max(initial=0.0)))


def _lower_law(edges: FloatArray, mass: FloatArray, moment: FloatArray) -> _AtomicLaw:
    """Each cell as an atom at its mean; without those of hardly any mass."""
    kept = mass > _LEAST_MASS
    width = np.diff(edges)
    atoms = edges[:-1][kept] + np.clip(moment[kept] / mass[kept], 0.0, width[kept])
    return _AtomicLaw(np.ascontiguousarray(atoms), np.ascontiguousarray(mass[kept]))


def _upper_law(
    edges: FloatArray, mass: FloatArray, moment: FloatArray, moment_error: FloatArray, mass_error: FloatArray,
    infinite: float, last: float = 0.0,
) -> _AtomicLaw:  # fmt: skip
    """Each cell divided between its ends, either of them raised by what the errors allow."""
    width = np.diff(edges)
    right, slack = np.clip(moment / width, 0.0, mass), moment_error / width
    masses = np.zeros(edges.size)
    masses[:-1] += np.minimum(mass - right + slack + mass_error, mass)
    masses[1:] += np.minimum(right + slack, mass)
    masses[-1] += last
    kept = masses > 0.0
    return _AtomicLaw(np.ascontiguousarray(edges[kept]), np.ascontiguousarray(masses[kept]), infinite)


def _coarse_sums(a: _AtomicLaw, b: _AtomicLaw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of groups of atoms, in order, with their masses; and positions between them: for the choice of cells.

    Where one term makes the sum, the sums of groups stand in clusters, one for each group of that term: the positions
    are the ends of the groups of one term, moved by the mean of the other. Where both terms are far below their means,
    the positions are sums of ends of equal rank.
    """
    groups, ends = [], []
    for law in (a, b):
        starts = np.unique(np.linspace(0, law.atoms.size, _FEW_ATOMS, endpoint=False).astype(np.int64))
        masses = np.add.reduceat(law.masses, starts)
        groups.append((np.add.reduceat(law.masses * law.atoms, starts) / masses, masses))
        ends.append(np.concatenate([law.atoms[starts], law.atoms[-1:]]))
    means = [float(atoms @ masses) for atoms, masses in groups]
    sums = np.add.outer(groups[0][0], groups[1][0]).ravel()
    masses = np.multiply.outer(groups[0][1], groups[1][1]).ravel()
    order = np.argsort(sums, kind="stable")
    knots = np.concatenate([ends[0] + means[1], ends[1] + means[0]])
    ranks = np.linspace(0.0, 1.0, _FEW_ATOMS)
    low, other = (np.interp(ranks, np.linspace(0.0, 1.0, x.size), x) for x in ends)
    low = (low + other)[low + other < 2.0 * knots.min()]
    lowest, highest = (a.atoms[i] + b.atoms[i] for i in (0, -1))
    knots = np.unique(np.concatenate([[lowest], low, knots, [highest]]))
    return sums[order], masses[order], knots


def _edges(atoms: FloatArray, masses: FloatArray, knots: FloatArray, cells: _CellChoice) -> FloatArray:
    """0 and about ``cells`` edges, where a law with these atoms, in order, needs them; by a line between knots."""
    kept = masses > 0.0
    atoms, masses = atoms[kept], masses[kept]
    left = np.cumsum(masses) / masses.sum()
    weights = masses * atoms
    right = np.cumsum(weights[::-1])[::-1] / weights.sum()  # share of the mean at an atom and above
    measure = np.zeros(atoms.size)
    for quantile, share in zip(_QUANTILES, _QUANTILE_SHARES, strict=True):
        low, high = atoms[np.searchsorted(left, quantile)], atoms[np.flatnonzero(right >= quantile)[-1]]
        if low < high:
            measure += share * np.clip((atoms - low) / (high - low), 0.0, 1.0)
    least = np.finfo(float).tiny
    tails = np.log(left), np.log(np.maximum(right, least))
    middle = [np.log(np.maximum(np.cumsum(x) / x.sum(), least)) for x in (weights, masses[::-1])]
    parts = [
        (tails, cells.depth, _TAIL_SHARE), (tails, _DEEPEST, _DEEP_SHARE),
        ((middle[0], middle[1][::-1]), cells.middle, _MIDDLE_SHARE),
    ]  # fmt: skip
    for (low_tail, high_tail), depth, share in parts:
        tail = np.maximum(low_tail, -depth) - np.maximum(high_tail, -depth)
        if tail[-1] > tail[0]:
            measure += share * (tail - tail[0]) / (tail[-1] - tail[0])
    measure = np.interp(knots, atoms, measure)
    positions = np.interp(np.linspace(measure[0], measure[-1], cells.number), measure, knots)
    positions = np.concatenate([[0.0], positions])
    apart = np.diff(positions, prepend=-1.0) > 1e-12 * positions
    return np.ascontiguousarray(positions[apart])


def _tails(law: _AtomicLaw) -> FloatArray:
    """Mass above, excess, mass below and deficit at each atom: sums of positive numbers."""
    gaps = np.diff(law.atoms)
    above = np.cumsum(law.masses[::-1])[::-1]
    below = np.cumsum(law.masses)
    excess = np.concatenate([np.cumsum((above[1:] * gaps)[::-1])[::-1], [0.0]])
    deficit = np.concatenate([[0.0], np.cumsum(below[:-1] * gaps)])
    return np.ascontiguousarray(np.stack([above, excess, below, deficit]))


def _evaluation_error(bounds: SumBounds) -> float:
    """Relative rounding of C and D: positive sums over the atoms of both terms."""
    return 4.0 * (max(_size(bounds.first), 1) + 3.0 * _size(bounds.second) + 16) * UNIT_ROUNDOFF


def _size(laws: _LawsOfSum) -> int:
    return max(laws.below.atoms.size, laws.above.atoms.size)
