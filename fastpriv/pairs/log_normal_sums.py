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

Choice of cells. It decides how close the laws are, never whether they are right. In a cell of width w at s both laws
err in C(x) or D(x) by about w^2 times the density of the term at s and that of the other terms of the sum at x - s.
Rough laws of both, for the terms and for what is left of the sum beside each, tell where this product is large: there
the cells lie, for x between two levels. With errors of w^2 the cube root of the product would be best; a smaller power
forgives rough laws. The first rough laws have cells that follow the tails of each term alone; the second ones are
chosen by the first, for x at all depths.

The last cell of Y has no right end. Its mass beyond its left edge e is put at e, and E (Y - e)^+ is added to C for
each of the n terms.

Rounding. All masses are sums of products of positive numbers, so that their relative errors are bounded, add up over
the factors of a product, and are carried as one number, ``mass_error``. Errors of positions are relative too, and do
not grow with the number of terms, since all positions are positive: ``position_error`` moves x in the end.
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF, and allowances far above what they cover

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import special
from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..kernels import _positive_sums

# bound: proved - relative error of ndtr_difference, 24 units (docs/proofs/gaussian.md, theorem 1.5), a product and a
#    sum
_NORMAL_ERROR = 26 * UNIT_ROUNDOFF
_LARGEST_Z = 37.5  # beyond it lies less than 1e-307 of a normal law
_FINE_STEPS = 40_000  # points of Y on which its cells are chosen
_FEW_ATOMS = 100  # atoms of either term of a sum, on whose sums the cells are chosen
# The first cells are shared out to these parts of a law. The first four are evenly spaced in the logarithm between two
# quantiles, left by mass and right by the share of the mean. The others follow logarithms of the mass at and left of a
# point and of the share of the mean right of it, down to the depth that is asked for and to the last double.
_QUANTILES = (0.25, 1e-2, 1e-4, 1e-8)
_QUANTILE_SHARES = (0.05, 0.05, 0.1, 0.1)  # of the cells, for each of these quantiles
_DEEPEST = 690.0  # nats: e^-690 is a normal double
_TAIL_SHARE, _DEEP_SHARE = 0.6, 0.1  # of the cells, for the depth that is asked for and for the deepest
_FIRST_CELLS, _WIDE_CELLS = 400, 600  # of the two rough laws: 0.3 s for 1e5 terms
_WIDE_LEVELS = 12  # on either side of the mean, for which the cells of the second are chosen
_BISECTIONS = 60  # of nearly 1400 nats: to 1e-15
_MANY_LEVELS = 1500  # where it costs less to gather all sums between them than to go through both terms for each
_RANK_SHARE = 0.2  # of the cells, evenly among the atoms of the rough law
_POWER = 0.25  # of the density of a term beside the others, to which the density of cells is proportional
_NEIGHBOURS = 3  # atoms on either side of one that make its density
_LARGEST_POSITION = 1e150  # of an atom of Y; what lies beyond is ``infinite``
# bound: proved - masses of at least this are sums whose terms lose less than 1e-16 of it by underflow
_LEAST_MASS = 1e-290  # cells with less are left out below, where masses that underflow have no relative error
# bound: proved - what a product of two masses can lose by underflow
_LEAST_DOUBLE = 5e-324


@dataclass(frozen=True, eq=False)
class AtomicLaw:
    """Atoms and masses; ``infinite`` is the mean of what an atom at infinity without mass adds."""

    atoms: FloatArray
    masses: FloatArray
    infinite: float = 0.0


@dataclass(frozen=True, eq=False)
class LawsOfSum:
    """The laws below and above, and bounds of the relative errors of their masses and positions."""

    below: AtomicLaw
    above: AtomicLaw
    mass_error: float
    position_error: float


@dataclass(frozen=True, eq=False)
class SumTerm:
    """A law of one term that is not log-normal: atoms at least 0, from below and from above, that are not chosen."""

    laws: LawsOfSum


class _Laws(NamedTuple):
    """Laws of S_1, ..., S_(count // 2), each the sum of the one before and of that again or of S_1.

    Beside each stands in ``rests`` the law of all other terms of S_count; of the last alone where no cells are chosen
    from these laws.
    """

    laws: tuple[LawsOfSum, ...]
    rests: tuple[LawsOfSum, ...]

    def bounds(self, count: int) -> SumBounds:
        return SumBounds(self.laws[-1], self.rests[-1], count)


@dataclass(frozen=True, eq=False)
class SumBounds:
    """C and D of the sum of ``count`` log-normal variables, from the laws of two terms."""

    first: LawsOfSum
    second: LawsOfSum
    count: int

    def excesses(self, level: FloatArray, deficit: bool) -> FloatArray:
        """Rows of best estimates, lower and upper bounds of C, or of D if ``deficit``, at levels x >= 0."""
        shift = self.first.position_error + self.second.position_error
        shift = shift / (1.0 - 2.0 * shift) + 8 * UNIT_ROUNDOFF  # so that 1 + shift is at least 1 / (1 - e)
        atoms = max(_size(self.first), 1) + 3.0 * _size(self.second)  # positive sums, over all levels where many are
        mass = 4.0 * (atoms + level.size + 16) * UNIT_ROUNDOFF
        mass += math.expm1(1.01 * (self.first.mass_error + self.second.mass_error))
        rows = np.zeros((3, level.size))
        for side, sign, share in (("below", 1.0, 2.0 / 3.0), ("above", -1.0, 1.0 / 3.0)):
            item, other = getattr(self.first, side), getattr(self.second, side)
            both, error = np.empty((2, level.size)), np.zeros(level.size)
            # E (S - x)^+ with S off by a factor 1 + e is that of x / (1 + e), times 1 + e; likewise (x - S)^+
            x = level * (1.0 - sign * shift if deficit else 1.0 + sign * shift)
            if level.size > _MANY_LEVELS:
                both, error = _excesses_at_many(item, other, x)
            else:
                _positive_sums.sum_excesses(item.atoms, item.masses, other.atoms, _tails(other), x, both)
            result = both[int(deficit)]
            rows[0] += share * result
            rows[1 if side == "below" else 2] = result * (1.0 - sign * (mass + 2.0 * shift)) - sign * error * deficit
        value, lower, upper = rows
        if deficit:
            upper += level * _LEAST_MASS  # masses that underflowed
        else:
            upper += (self.first.above.infinite + self.second.above.infinite) * (1.0 + mass)
        lower, upper = np.nextafter(np.maximum(lower, 0.0), 0.0), np.nextafter(upper, math.inf)
        wide = upper > 1.5 * lower
        value[wide] = np.sqrt(lower[wide]) * np.sqrt(upper[wide])
        return np.stack([np.clip(value, lower, upper), lower, upper])

    def levels(self, logs: FloatArray, deficit: bool) -> FloatArray:
        """About the x at which log(C / count), or log(D / x) if ``deficit``, is as given; not bounds."""
        low = np.full(logs.size, math.log(self.count) - _DEEPEST)
        high = np.full(logs.size, math.log(self.first.above.atoms[-1] + self.second.above.atoms[-1]))

        def beyond(log_x: FloatArray) -> Any:  # D / x rises, C falls
            x = np.exp(log_x)
            with np.errstate(divide="ignore"):
                log_excess = np.log(self.excesses(x, deficit)[0] / (x if deficit else self.count))
            return (log_excess < logs) != deficit

        low, high = bisect(beyond, low, high, _BISECTIONS)
        return np.asarray(np.exp(0.5 * (low + high)))


@functools.lru_cache(maxsize=16)
def log_normal_sum(term: float | SumTerm, count: int, depth: float) -> SumBounds:
    """Bounds of the sum of ``count`` >= 2 variables: log-normal with mean 1, by the log standard deviation, or others.

    They are rough; C / count and D / x are mostly within a tenth where they are between e^-depth and 1.
    """
    return _wide_chain(term, count, depth).bounds(count)


@functools.lru_cache(maxsize=32)
def log_normal_sum_near(
    term: float | SumTerm, count: int, depth: float, cells: int, levels: tuple[float, ...]
) -> SumBounds:
    """Bounds that are close for x between the first and the last of some rising ``levels``.

    As many cells serve the x between two levels next to one another as between any other two; depth as above.
    """
    return _chain_near(term, count, _wide_chain(term, count, depth), levels, cells, False).bounds(count)


@functools.lru_cache(maxsize=16)
def _wide_chain(term: float | SumTerm, count: int, depth: float) -> _Laws:
    """The laws from which cells are chosen: such themselves, from laws whose cells are chosen by their tails."""
    single = term.laws if isinstance(term, SumTerm) else log_normal_cells(term, _edges_of_single(term, depth))
    first = _chain(single, count, lambda item, other: _edges(*_coarse_sums(item.below, other.below), depth), True)
    rough = first.bounds(count)
    logs = -np.linspace(0.0, depth, _WIDE_LEVELS)
    levels = np.unique(np.concatenate([rough.levels(logs, adds) for adds in (False, True)]))
    return _chain_near(term, count, first, tuple(levels.tolist()), _WIDE_CELLS, True)


def _chain_near(
    term: float | SumTerm, count: int, chain: _Laws, levels: tuple[float, ...], cells: int, full: bool
) -> _Laws:
    """The chain with cells that are chosen for levels from the laws of another."""
    pairs = list(zip(chain.laws, chain.rests, strict=True))
    edges = [_edges_near(item.above, remainder.above, levels, cells) for item, remainder in pairs]
    if count % 2:
        edges.append(_edges_near(chain.rests[-1].above, chain.laws[-1].above, levels, cells))
    if full:
        edges += [_edges_near(remaining.above, entry.above, levels, cells) for entry, remaining in pairs[-2::-1]]
    result = iter(edges)
    cells_of_one = next(result)
    single = term.laws if isinstance(term, SumTerm) else log_normal_cells(term, cells_of_one)
    return _chain(single, count, lambda element, other: next(result), full)


def _chain(single: LawsOfSum, count: int, edges: Callable[[LawsOfSum, LawsOfSum], FloatArray], full: bool) -> _Laws:
    """The chain by the binary digits of half the count; ``edges`` chooses the cells of a sum of two laws."""

    def add(first: LawsOfSum, second: LawsOfSum) -> LawsOfSum:
        return _sum(first, second, edges(first, second))

    distributions, partners = [single], []
    for digit in bin(count // 2)[3:]:
        for again in (True, False) if digit == "1" else (True,):
            partners.append(distributions[-1] if again else single)
            distributions.append(add(distributions[-1], partners[-1]))
    rests = [add(distributions[-1], single) if count % 2 else distributions[-1]]
    if full:
        for partner in reversed(partners):
            rests.append(add(rests[-1], partner))
    return _Laws(tuple(distributions), tuple(reversed(rests)))


def _edges_of_single(scale: float, depth: float) -> FloatArray:
    """Cells of Y."""
    last = min(_LARGEST_Z + scale, (math.log(_LARGEST_POSITION) + 0.5 * scale**2) / scale)
    fine = np.linspace(-_LARGEST_Z, last, _FINE_STEPS + 1)
    masses = special.ndtr_difference(fine[:-1], fine[1:])
    middles = 0.5 * (fine[:-1] + fine[1:])
    atoms = np.exp(scale * middles - 0.5 * scale**2)
    return _edges(atoms, masses, atoms, depth)


def _edges_near(distribution: AtomicLaw, other_terms: AtomicLaw, levels: tuple[float, ...], cells: int) -> FloatArray:
    """0 and about ``cells`` edges for a term with this distribution, beside the sum of all other terms."""
    atoms = distribution.atoms
    knots = np.unique(np.concatenate([atoms, *(level - other_terms.atoms for level in levels)]))
    knots = knots[(knots >= atoms[0]) & (knots <= atoms[-1])]
    widths, density = np.diff(knots), _log_density(distribution, knots)
    others = _masses_between(other_terms, levels, knots)
    measure = _RANK_SHARE * np.interp(knots, atoms, np.linspace(0.0, 1.0, atoms.size))
    for masses in others:
        with np.errstate(divide="ignore"):
            logs = density + np.log(np.maximum(masses, 0.0))
        if logs.max() == -math.inf:  # no sum of the rough laws lies there
            continue
        weights = np.exp(_POWER * (logs - logs.max()))
        cumulated = np.cumsum((weights[1:] + weights[:-1]) * widths)
        measure[1:] += (1.0 - _RANK_SHARE) / len(others) * cumulated / cumulated[-1]
    return _distinct_positions(np.interp(np.linspace(0.0, measure[-1], cells), measure, knots))


def _distinct_positions(positions: FloatArray) -> FloatArray:
    """0 and the positions that differ from the one before."""
    positions = np.concatenate([np.zeros(1), positions])
    return np.ascontiguousarray(positions[np.diff(positions, prepend=-1.0) > 1e-12 * positions])


def _log_density(distribution: AtomicLaw, at: FloatArray) -> FloatArray:
    """Logarithm of a density: the masses around each atom, over their extent."""
    ranks = np.arange(distribution.atoms.size)
    low, high = np.maximum(ranks - _NEIGHBOURS, 0), np.minimum(ranks + _NEIGHBOURS, ranks[-1])
    ends = 0.5 * (distribution.masses[low] + distribution.masses[high])
    padded = np.pad(distribution.masses, _NEIGHBOURS)
    sums = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEIGHBOURS + 1).sum(axis=1)
    logs = np.log(np.maximum(sums - ends, _LEAST_MASS)) - np.log(distribution.atoms[high] - distribution.atoms[low])
    return np.asarray(np.interp(at, distribution.atoms, logs))


def _masses_between(distribution: AtomicLaw, levels: tuple[float, ...], knots: FloatArray) -> list[FloatArray]:
    """For each two levels next to one another the masses between them, less each knot; each atom spread around it."""
    positions = np.concatenate(
        [distribution.atoms[:1], 0.5 * (distribution.atoms[1:] + distribution.atoms[:-1]), distribution.atoms[-1:]]
    )
    below, above = np.zeros((2, positions.size))
    np.cumsum(distribution.masses, out=below[1:])
    np.cumsum(distribution.masses[::-1], out=above[-2::-1])
    ends = [[np.interp(level - knots, positions, sums) for sums in (below, above)] for level in levels]
    return [np.where(high[0] < 0.5, high[0] - low[0], low[1] - high[1]) for low, high in itertools.pairwise(ends)]


def log_normal_cells(scale: float, edges: FloatArray) -> LawsOfSum:
    """Y: the masses of cells and their means are differences of normal distribution functions."""
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


def _sum(first: LawsOfSum, second: LawsOfSum, edges: FloatArray) -> LawsOfSum:
    """The sum of two independent variables, in new cells."""
    result: list[Any] = []
    errors: list[float] = []
    for side in ("below", "above"):
        a, b = getattr(first, side), getattr(second, side)
        top = a.atoms[-1] + b.atoms[-1]
        bounds = np.concatenate([edges[edges < top], [top]])
        mass, moment = np.zeros((2, bounds.size - 1))
        _positive_sums.sums_in_cells(a.atoms, a.masses, b.atoms, b.masses, a is b, bounds, mass, moment)
        error = (a.atoms.size + b.atoms.size + 16) * UNIT_ROUNDOFF
        errors.append(error)
        # products of masses that underflow: at most at the largest sum
        underflow = a.atoms.size * b.atoms.size * _LEAST_DOUBLE * top
        infinite = (a.infinite * b.masses.sum() + b.infinite * a.masses.sum()) * (1.0 + 1e-9) + underflow
        result.append((bounds, mass, moment, error, infinite))
    bounds, mass, moment, error, infinite = result[1]
    below = _lower_law(*result[0][:3])
    above = _upper_law(bounds, mass, moment, 2 * error * moment, 2 * error * mass, infinite)
    error = max(errors)
    return LawsOfSum(
        below, above, first.mass_error + second.mass_error + 4 * error,
        max(first.position_error, second.position_error) + 4 * error,
    )


def _from_cells(
    edges: FloatArray, mass: FloatArray, moment: FloatArray, error: FloatArray, mass_error: float, position_error: float
) -> LawsOfSum:
    """Both laws of Y; the last cell has no right end."""
    excess = max(float(moment[-1] + error[-1]), 0.0)
    above = _upper_law(edges, mass[:-1], moment[:-1], error[:-1], mass_error * mass[:-1], excess, last=float(mass[-1]))
    # below, the first cell is left out as well: it begins at 0, and its mean has no digits
    below = _lower_law(edges[1:], mass[1:-1], moment[1:-1])
    selected = mass[1:-1] > _LEAST_MASS
    shifted = np.minimum(error[1:-1][selected] / mass[1:-1][selected], np.diff(edges)[1:][selected]) / below.atoms
    return LawsOfSum(below, above, mass_error, position_error + float(shifted.max(initial=0.0)))


def _lower_law(edges: FloatArray, mass: FloatArray, moment: FloatArray) -> AtomicLaw:
    """Each cell as an atom at its mean; without those of hardly any mass."""
    selected = mass > _LEAST_MASS
    width = np.diff(edges)
    atoms = edges[:-1][selected] + np.clip(moment[selected] / mass[selected], 0.0, width[selected])
    return AtomicLaw(np.ascontiguousarray(atoms), np.ascontiguousarray(mass[selected]))


def _upper_law(
    edges: FloatArray, mass: FloatArray, moment: FloatArray, moment_error: FloatArray, mass_error: FloatArray,
    infinite: float, last: float = 0.0,
) -> AtomicLaw:
    """Each cell divided between its ends, either of them raised by what the errors allow."""
    width = np.diff(edges)
    right, slack = np.clip(moment / width, 0.0, mass), moment_error / width
    masses = np.zeros(edges.size)
    masses[:-1] += np.minimum(mass - right + slack + mass_error, mass)
    masses[1:] += np.minimum(right + slack, mass)
    masses[-1] += last
    selected = masses > 0.0
    return AtomicLaw(np.ascontiguousarray(edges[selected]), np.ascontiguousarray(masses[selected]), infinite)


def _coarse_sums(a: AtomicLaw, b: AtomicLaw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Sums of groups of atoms, in order, with their masses; and positions between them: for the choice of cells.

    Where one term makes the sum, the sums of groups stand in clusters, one for each group of that term: the positions
    are the ends of the groups of one term, moved by the mean of the other. Where both terms are far below their means,
    the positions are sums of ends of equal rank.
    """
    groups, ends = [], []
    for distribution in (a, b):
        starts = np.unique(np.linspace(0, distribution.atoms.size, _FEW_ATOMS, endpoint=False).astype(np.int64))
        masses = np.add.reduceat(distribution.masses, starts)
        groups.append((np.add.reduceat(distribution.masses * distribution.atoms, starts) / masses, masses))
        ends.append(np.concatenate([distribution.atoms[starts], distribution.atoms[-1:]]))
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


def _edges(atoms: FloatArray, masses: FloatArray, knots: FloatArray, depth: float) -> FloatArray:
    """0 and edges where the tails of a law with these atoms, in order, need them; by a line between knots."""
    selected = (masses > 0.0) & (atoms > 0.0)
    atoms, masses = atoms[selected], masses[selected]
    left = np.cumsum(masses) / masses.sum()
    weights = masses * atoms
    right = np.cumsum(weights[::-1])[::-1] / weights.sum()  # share of the mean at an atom and above
    measure, logs = np.zeros(atoms.size), np.log(atoms)
    for quantile, share in zip(_QUANTILES, _QUANTILE_SHARES, strict=True):
        low, high = logs[np.searchsorted(left, quantile)], logs[np.flatnonzero(right >= quantile)[-1]]
        if low < high:
            measure += share * np.clip((logs - low) / (high - low), 0.0, 1.0)
    tails = np.log(left), np.log(np.maximum(right, np.finfo(float).tiny))
    for deepest, share in ((depth, _TAIL_SHARE), (_DEEPEST, _DEEP_SHARE)):
        tail = np.maximum(tails[0], -deepest) - np.maximum(tails[1], -deepest)
        if tail[-1] > tail[0]:
            measure += share * (tail - tail[0]) / (tail[-1] - tail[0])
    measure = np.interp(knots, atoms, measure)
    return _distinct_positions(np.interp(np.linspace(measure[0], measure[-1], _FIRST_CELLS), measure, knots))


def _tails(distribution: AtomicLaw) -> FloatArray:
    """Mass above, excess, mass below and deficit at each atom: sums of positive numbers."""
    gaps = np.diff(distribution.atoms)
    above = np.cumsum(distribution.masses[::-1])[::-1]
    below = np.cumsum(distribution.masses)
    excess = np.concatenate([np.cumsum((above[1:] * gaps)[::-1])[::-1], [0.0]])
    deficit = np.concatenate([[0.0], np.cumsum(below[:-1] * gaps)])
    return np.ascontiguousarray(np.stack([above, excess, below, deficit]))


def _excesses_at_many(first: AtomicLaw, second: AtomicLaw, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both rows as the kernel has them, by cells between the levels; and absolute errors of the second.

    C adds positive numbers from the right. D adds the masses times the distances of the sums from the right edge of
    their cell, which is a difference: its rounding is that of the masses times the widths.
    """
    levels, at = np.unique(x, return_inverse=True)
    edges = np.concatenate([np.zeros(1), levels, np.full(1, math.inf)])
    mass, moment = np.zeros((2, levels.size + 1))
    _positive_sums.sums_in_cells(
        first.atoms, first.masses, second.atoms, second.masses, first is second, edges, mass, moment
    )
    gaps = np.diff(edges[:-1])  # cell k ends at level k; the last has no end
    above = np.cumsum(mass[:0:-1])[::-1]  # beyond each level
    # C at a level: the moment of the cell beyond it, and for all later cells the gap that their masses lie beyond
    rises = np.append(gaps[1:] * above[1:], 0.0) + moment[1:]
    over = np.cumsum(rises[::-1])[::-1]
    below = np.concatenate([np.zeros(1), np.cumsum(mass[:-2])])  # at and below the level before
    under = np.cumsum(gaps * below + np.maximum(mass[:-1] * gaps - moment[:-1], 0.0))
    size = 4.0 * (first.atoms.size + second.atoms.size + 16) * UNIT_ROUNDOFF
    return np.stack([over[at], under[at]]), size * np.cumsum(mass[:-1] * gaps)[at]


def _size(laws: LawsOfSum) -> int:
    return max(laws.below.atoms.size, laws.above.atoms.size)
