"""Delta of a composition of discrete pairs, by sums over how often each outcome occurs.

Notation: a step draws k times from atoms with probabilities p_j > 0 under P, q_j under Q and losses l_j = log(p_j /
q_j); S is the sum of all losses under P. Outcomes of one ratio are one atom; those with q_j = 0 have mass m and an
infinite loss. With A the event that some loss is infinite,

    delta(epsilon) = P(A) + sum over types with S > epsilon of P(type) (1 - e^(epsilon - S)),  P(A) = 1 - prod (1-m)^k,
    tail(epsilon) = e^epsilon Q(S > epsilon) = sum over types with S > epsilon of P(type) e^(epsilon - S).

Tilting. The tilted distribution of a step has probabilities p_j e^(theta l_j) / M, M the sum of the numerators, and a
type counts P(type) = prod M^k e^(-theta S) tilted(type). With theta >= 0 (for the tail: theta >= -1) where the tilted
mean of S is epsilon, the types that matter have an ordinary probability whatever delta is: counts outside of windows
have a tilted probability below e^-75, by Chernoff's bound k KL(n/k || .) for each count, and what is left out adds at
most prod M^k e^(-theta epsilon) times that.

Weights of counts are exponentials of double-doubles (``csrc/composition/fp_type_sums.h``), up to constants that are
exact fractions here. Up to four atoms of one step are summed as they are, in two sides of two: given how many draws
fall into each side, the losses of a side rise by equal steps. Other sets of steps are divided into two independent
sums, whose types are listed; equal losses are merged.

Losses that are c + j h for whole numbers j, up to rounding e, make a lattice: its masses are composed by tilted
transforms (``tilted_transforms``), and sum k e moves epsilon. That serves any number of atoms and of draws whose sums
lie on few points.
"""

# bounds: proved - roundings of sums over types, of lattices and of what is left out: theorem 11.9 of
#    docs/proofs/sampled_tables.md

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ..base.numerics import LOG_2, UNIT_ROUNDOFF, FloatArray, IntArray, LongDoubleArray, next_above, next_below
from ..kernels import _type_sums
from ..pairs.discretised_losses import PrivacyLoss
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair
from ..pairs.tilted_transforms import Quantity, composed_log_bounds, log_mass_at_infinity, saddle_point
from .type_weights import WEIGHT_ERROR, count_weights, count_windows, exact, logarithm, pair, sum_above, sum_below

# bound: proved - relative error of a double-double after a few operations
_DD_ERROR = 2.0**-96
# bound: proved - relative error of an operation in extended precision, twice as large as need be
_LONG_ERROR = float(np.finfo(np.longdouble).eps)
_MOST_WORK = 5.0e6  # points visited by one call: about a second
_MOST_TYPES = 1_000_000  # types of one of two sums that are listed: 24 MiB
# bound: proved - one draw: probabilities are multiplied by 2 to this number, so that no term underflows; and, upwards,
#    the largest exponent of a term of the tail
_DRAW_SHIFT, _LARGEST_FALL = 400, 700.0
_MOST_ATOMS = 4096  # of a step that is drawn more than once: a second to weigh
_SLICE_WORK = 2.0e6  # points visited by one call of the kernel: 0.1 s
# bound: none - width of the bracket of a logarithm up to which a tilt serves another epsilon
_SAME_WIDTH = 1e-11
_LARGEST_EXPONENT = 4000.0  # theta times the range of the losses of a step stays below it
# bound: proved - tilted probability of all that underflows: each count has a weight of about 1 at its mode, all types
#    together of at least 1e-12, and 1e12 products or exponentials below e^-700 make less than e^-600 of it
_UNDERFLOW = math.exp(-600.0)
# bound: none - differences of losses are multiples of one number up to this part of the largest loss; errors count
_LATTICE_ERROR = 1e-12
_LEAST_INTERVAL = 1e-4  # of a lattice, beside the largest difference of losses: finer ones need long transforms
_LONGEST_TRANSFORM = 2**20  # points of a lattice


class _Atoms(NamedTuple):
    """The atoms of a step with finite losses, the largest loss first; ``logs`` are those of the probabilities."""

    losses: list[Fraction]
    logs: list[Fraction]
    p: FloatArray
    values: FloatArray  # of the losses
    draws: int
    symmetric: bool  # the losses are a number, its opposite and perhaps 0


class _WeightedCounts(NamedTuple):
    """Weights of the counts ``first[j] + i`` of each atom in ``draws`` draws, e^``log_scale`` times tilted ones."""

    losses: list[Fraction]
    first: list[int]
    weights: list[FloatArray]
    draws: int
    log_scale: Fraction
    left_out: float  # tilted probability of all other counts


class _WeightedLosses(NamedTuple):
    """Weights of the values of a sum of losses, which rise; the relative error of one, the absolute of the other."""

    losses: LongDoubleArray
    weights: FloatArray
    weight_error: float
    loss_error: float


class _CurveSums(NamedTuple):
    """Delta and the tail at a level in tilted weights, each with its error."""

    delta: float
    delta_error: float
    tail: float
    tail_error: float


@dataclass
class _TiltedTable:
    """A sum under one tilt. ``left_out`` is the logarithm of prod M^k times the tilted probability of what it lacks."""

    theta: float
    sums: Callable[[Fraction], _CurveSums]
    log_scale: Fraction
    left_out: float
    weight_error: float
    loss_error: float
    size: int
    zero_is_exact: bool = False  # a sum of losses that is 0 is computed as 0
    width: float = 0.0

    def bounds(self, level: float, quantity: Quantity) -> tuple[float, float]:
        """Lower and upper bound of the logarithm."""
        e = 0.0 if level == 0.0 and self.zero_is_exact else self.loss_error
        near = Fraction(level) - Fraction(e)
        result = self.sums(near)
        if quantity == "delta":  # from epsilon - e to epsilon + e it falls by less than 2 e e^(2 e) tail(epsilon - e)
            low = result.delta - result.delta_error - 2.0 * e * (1.0 + 4.0 * e) * (result.tail + result.tail_error)
            high, far = result.delta + result.delta_error, near
        else:
            far = Fraction(level) + Fraction(e)
            beyond = result if e == 0.0 else self.sums(far)
            low = (beyond.tail - beyond.tail_error) * (1.0 - 4.0 * e)
            high = (result.tail + result.tail_error) * (1.0 + 8.0 * e)
        wide = math.log1p(2.0 * self.weight_error) + abs(self.theta) * self.loss_error  # weights have e^(theta loss)
        lower = upper = -math.inf
        if low > 0.0:
            lower = sum_below(math.log(low) - wide, self.log_scale - Fraction(self.theta) * far)
        if high > 0.0:
            upper = sum_above(math.log(high) + wide, self.log_scale - Fraction(self.theta) * near)
        fall = self.theta * float(near)
        upper = next_above(float(np.logaddexp(upper, self.left_out - fall + 1e-15 * abs(fall))) + 6 * UNIT_ROUNDOFF, 4)
        return lower, upper


def atom_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds | None:
    """Bounds of the logarithms at each epsilon >= 0; None where a pair has no atoms or the types are too many."""
    draws = [(*pair.atoms, pair.count) for pair in pairs if pair.atoms is not None]
    if len(draws) < len(pairs):
        return None
    infinite = (-math.inf, -math.inf)
    if quantity == "delta":
        infinite = log_mass_at_infinity([(math.fsum(p[q == 0.0]), count) for p, q, count in draws])
    if len(draws) == 1 and draws[0][2] == 1:
        p, q, _ = draws[0]
        return _log_bounds(_one_draw(p, q, epsilon, quantity), infinite, p.size, "sum over outcomes")
    if any(p.size > _MOST_ATOMS for p, _, _ in draws):
        return None
    atoms = [_atoms(p, q, count) for p, q, count in draws if count > 0]
    bounds, size = np.full((2, epsilon.size), -math.inf), 0
    if any(not atom.losses for atom in atoms):  # no type has a finite loss
        return _log_bounds(bounds, infinite, size)
    top = sum((item.draws * item.losses[0] for item in atoms), Fraction(0))
    top += Fraction(_DD_ERROR) * sum((entry.draws * abs(entry.losses[0]) for entry in atoms), Fraction(0))
    budget, table = _MOST_WORK / max(1, epsilon.size), None
    for index in np.argsort(epsilon, kind="stable"):
        level = float(epsilon[index])
        if level >= top:
            break
        if table is not None:
            bounds[:, index] = table.bounds(level, quantity)
            if _width(bounds[:, index]) <= max(_SAME_WIDTH, table.width):
                continue
        theta = _saddle_point(atoms, level, 0.0 if quantity == "delta" else -1.0)
        if table is None or theta != table.theta:
            table = _table(atoms, theta, budget)
            if table is None:
                return _lattice_bounds(atoms, epsilon, quantity, infinite)
            size += table.size
            bounds[:, index] = table.bounds(level, quantity)
        table.width = 2.0 * _width(bounds[:, index])
    return _log_bounds(bounds, infinite, size)


def _one_draw(p: FloatArray, q: FloatArray, epsilon: FloatArray, quantity: Quantity) -> FloatArray:
    """Bounds of the logarithms for one draw, shape (2, n): with y = l - epsilon > 0 an outcome adds p (1 - e^-y), or
    p e^-y to the tail; y is right to a few units in the last place where it is above ``_DD_ERROR`` of l.
    """
    selected = (p > 0.0) & (q > 0.0)
    leading, trailing = _type_sums.losses(p[selected], q[selected])
    p, vague = np.ldexp(p[selected], _DRAW_SHIFT), _DD_ERROR * np.abs(leading)
    bounds = np.full((2, epsilon.size), -math.inf)
    for index, level in enumerate(epsilon.tolist()):
        y = (leading - level) + trailing
        for side, (sign, near) in enumerate(((-1.0, y - vague), (1.0, y + vague))):
            rows = near > 0.0
            if quantity == "delta":
                total, size = math.fsum((p[rows] * -np.expm1(-near[rows])).tolist()), 1.0
            else:
                falls = np.clip((y - sign * vague)[rows], 0.0, _LARGEST_FALL if side else np.inf)
                size = 1.0 + float(falls.max(initial=0.0))
                with np.errstate(under="ignore"):
                    total = math.fsum((p[rows] * np.exp(-falls)).tolist())
            if total > 0.0:
                mantissa, exponent = math.frexp(total)
                exponent -= _DRAW_SHIFT
                slack = UNIT_ROUNDOFF * (16.0 * min(size, 800.0) + 2.0 * abs(exponent))
                value = math.log(mantissa) + exponent * LOG_2 + sign * slack
                bounds[side, index] = next_above(value, 2) if side else next_below(value, 2)
    return bounds


def _lattice_bounds(
    atoms: Sequence[_Atoms], epsilon: FloatArray, quantity: Quantity, infinite: tuple[float, float]
) -> LogBounds | None:
    """By transforms, where the losses of all steps lie on one lattice, each step's with an offset of its own."""
    interval = _lattice_interval(atoms)
    if interval is None or 20.0 * _deviation(atoms) > _LONGEST_TRANSFORM * interval:
        return None
    losses, offset, error, slack = [], Fraction(0), 0.0, 0.0
    for atom in atoms:
        base = atom.losses[-1]
        multiples = [(loss - base) / Fraction(interval) for loss in atom.losses]
        positions = np.array([round(x) for x in multiples], dtype=np.int64)
        errors = [abs(float(x - int(position))) * interval for x, position in zip(multiples, positions, strict=True)]
        masses = np.zeros(int(positions[0]) + 1)
        np.add.at(masses, positions, atom.p)
        losses.append((PrivacyLoss(0, interval, masses, 0.0), atom.draws))
        offset += atom.draws * base
        error += atom.draws * (max(errors) + _DD_ERROR * float(max(abs(loss) for loss in atom.losses)))
        # each probability is rounded once, and again with each that is added to it
        slack += UNIT_ROUNDOFF * atom.draws * (2.0 + len(positions) - np.count_nonzero(masses))
    levels = np.array([float(Fraction(x) - offset) for x in epsilon.tolist()])
    move = error * (1.0 + 1e-9) + 4 * UNIT_ROUNDOFF * np.abs(levels)
    upper = composed_log_bounds(losses, next_below(levels - move), quantity)[1]
    lower, _, cost = composed_log_bounds(losses, next_above(levels + move), quantity)
    if quantity == "tail":  # the factor e^epsilon is not that of the moved level
        lower, upper = lower - 4.0 * move, upper + 4.0 * move
    return _log_bounds(np.stack([lower - slack, upper + slack]), infinite, cost["points"], "transform of a lattice")


def _deviation(atoms: Sequence[_Atoms]) -> float:
    """The standard deviation of S."""
    means = [float(atom.p @ atom.values) / float(atom.p.sum()) for atom in atoms]
    return math.sqrt(math.fsum(item.draws * float(item.p @ (item.values - mean) ** 2)
                               for item, mean in zip(atoms, means, strict=True)))


def _lattice_interval(atoms: Sequence[_Atoms]) -> float | None:
    """The largest number of which all differences of the losses of each step are nearly multiples."""
    gaps = np.concatenate([atom.values[:-1] - atom.values[-1] for atom in atoms])
    size = max(float(np.abs(item.values).max()) for item in atoms)
    if not gaps.size or size == 0.0:
        return None
    near = _LATTICE_ERROR * size
    interval = 0.0
    for gap in gaps[gaps > near]:  # Euclid's algorithm
        a, b = float(gap), interval
        while b > near:
            a, b = b, abs(a - round(a / b) * b)
        interval = a
        if interval < _LEAST_INTERVAL * float(gaps.max()):
            return None
    if interval == 0.0:
        return None
    multiples = np.round(gaps / interval)
    interval = float(gaps @ multiples / (multiples @ multiples))
    return interval if float(np.abs(gaps - multiples * interval).max()) <= near else None


def _width(bounds: FloatArray) -> float:
    return float(bounds[1] - bounds[0]) if bounds[1] > -math.inf else 0.0


def _log_bounds(
    bounds: FloatArray, infinite: tuple[float, float], size: int, method: str = "sum over types"
) -> LogBounds:
    lower, upper = bounds
    if infinite[1] > -math.inf:
        lower = next_below(np.logaddexp(lower, infinite[0]) - 6 * UNIT_ROUNDOFF * np.isfinite(lower), 4)
        upper = next_above(np.logaddexp(upper, infinite[1]) + 6 * UNIT_ROUNDOFF * np.isfinite(upper), 4)
    lower, upper = np.minimum(lower, 0.0), np.minimum(upper, 0.0)
    return LogBounds.of_bounds(lower, upper, {"types": size}, method)


def _atoms(p: FloatArray, q: FloatArray, count: int) -> _Atoms:
    """Outcomes of one ratio joined; their order is that of their losses."""
    selected = (p > 0.0) & (q > 0.0)
    p, q = p[selected], q[selected]
    leading, trailing = _type_sums.losses(p, q)
    joined: dict[tuple[float, float], Fraction] = {}
    for x, key in zip(p, zip(leading.tolist(), trailing.tolist(), strict=True), strict=True):
        joined[key] = joined.get(key, Fraction(0)) + Fraction(x)
    keys = sorted(joined, reverse=True)
    masses = [joined[key] for key in keys]
    symmetric = False
    if len(keys) == 2 or (len(keys) == 3 and keys[1] == (0.0, 0.0)):
        i, j = int(leading.argmax()), int(leading.argmin())
        symmetric = Fraction(p[i]) * Fraction(p[j]) == Fraction(q[i]) * Fraction(q[j])
    return _Atoms([exact(key) for key in keys], [logarithm(x) for x in masses], np.array([float(x) for x in masses]),
                  np.array([key[0] for key in keys]), count, symmetric)


def _saddle_point(atoms: Sequence[_Atoms], level: float, least: float) -> float:
    """The theta of the level, of few bits: products with it are short fractions."""
    parts = [(atom.p, atom.values - atom.values[0], atom.draws) for atom in atoms]
    top = math.fsum(item.draws * item.values[0] for item in atoms)
    return float(np.float32(saddle_point(parts, level - top, 0.0, least, _LARGEST_EXPONENT)[0]))


def _table(atoms: Sequence[_Atoms], theta: float, budget: float) -> _TiltedTable | None:
    """The sums under a tilt, if they visit no more points than ``budget``."""
    logs = [_log_tilted_mass(atom, theta) for atom in atoms]
    log_mass = math.fsum(atom.draws * log for atom, log in zip(atoms, logs, strict=True))
    slack = 1e-14 * (1.0 + math.fsum(
        item.draws * (1.0 + abs(theta) * float(np.abs(item.values).max()) + 0.02 * item.values.size + abs(log))
        for item, log in zip(atoms, logs, strict=True)))
    if len(atoms) == 1 and 2 <= len(atoms[0].losses) <= 4:
        result = _two_sides(atoms[0], theta, budget)
        if result is not None:
            return _finished(result, log_mass + slack)
    result = _two_lists(atoms, theta, budget)
    return None if result is None else _finished(result, log_mass + slack)


def _finished(table: _TiltedTable, log_mass: float) -> _TiltedTable:
    """``left_out`` as a logarithm, where it was a tilted probability."""
    table.left_out = math.log(table.left_out + _UNDERFLOW) + log_mass
    return table


def _log_tilted_mass(atoms: _Atoms, theta: float) -> float:
    top = theta * float(atoms.values[0])
    with np.errstate(under="ignore"):
        return top + math.log(float(atoms.p @ np.exp(theta * (atoms.values - atoms.values[0]))))


def _tilted(atoms: _Atoms, theta: float) -> FloatArray:
    with np.errstate(under="ignore"):
        weights = atoms.p * np.exp(theta * (atoms.values - atoms.values[0]))
    return np.asarray(weights / weights.sum())


def _counts(atoms: _Atoms, theta: float, draws: int, first: IntArray, last: IntArray) -> _WeightedCounts:
    """The weights of windows of counts."""
    centre = Fraction(math.log(draws) - _log_tilted_mass(atoms, theta))  # any number near this one would do
    slopes = [log + Fraction(theta) * loss + centre for log, loss in zip(atoms.logs, atoms.losses, strict=True)]
    weights, log_scale, left_out = count_weights(slopes, _tilted(atoms, theta), draws, first, last)
    return _WeightedCounts(atoms.losses, [int(n) for n in first], weights, draws, log_scale - draws * centre, left_out)


def _two_sides(atoms: _Atoms, theta: float, budget: float) -> _TiltedTable | None:
    """Two to four atoms of one step: given how many draws fall into each side, one pass over both."""
    draws, number = atoms.draws, len(atoms.losses)
    least, most = count_windows(_tilted(atoms, theta), draws)

    def planned(two: tuple[int, int]) -> tuple[float, int, int, list[list[int]]]:
        """Work, numbers of draws of the first side, and both sides."""
        sides = [list(two), [j for j in range(number) if j not in two]]
        first = max(int(least[sides[0]].sum()), draws - int(most[sides[1]].sum()))
        last = min(int(most[sides[0]].sum()), draws - int(least[sides[1]].sum()))
        inner = sum(float((most - least)[side].min()) + 1.0 for side in sides if len(side) == 2)
        return max(0, last - first + 1) * inner, first, last, sides

    pairs = [(0, j) for j in range(1, number)] + ([(1, 2)] if number == 3 else [])
    work, first, last, sides = min(map(planned, pairs), key=lambda plan: plan[0])
    if work > budget or float((most - least).max()) > budget:
        return None
    counts = _counts(atoms, theta, draws, least, most)
    rows = max(1, int(_SLICE_WORK * (last - first + 1) / max(work, 1.0)))
    lists = [[(pair(atoms.losses[j]), float(least[j]), counts.weights[j]) for j in side] for side in sides]

    def sums(level: Fraction) -> _CurveSums:
        parts = [_type_sums.splits(*lists, float(draws), float(start), min(rows, last - start + 1), pair(level), theta)
                 for start in range(first, last + 1, rows)]
        return _CurveSums(*(math.fsum(column) for column in zip(*parts, strict=True)))

    size = float(max(abs(loss) for loss in atoms.losses)) * draws
    weight_error = number * (WEIGHT_ERROR + UNIT_ROUNDOFF) + 1e-15
    return _TiltedTable(
        theta, sums, counts.log_scale, counts.left_out, weight_error, _DD_ERROR * size, int(work), atoms.symmetric
    )


def _two_lists(atoms: Sequence[_Atoms], theta: float, budget: float) -> _TiltedTable | None:
    """Any steps: two independent sums, whose types are listed."""
    wholes = [(entry, entry.draws) for entry in atoms]
    halves = [[(atom, atom.draws // 2) for atom in atoms], [(entry, (entry.draws + 1) // 2) for entry in atoms]]
    wide = sorted(wholes, key=lambda part: -_number_of_types(*part))
    plans = [halves, _balanced(wide), _balanced([(wide[0][0], wide[0][1] // 2),
             (wide[0][0], wide[0][1] - wide[0][1] // 2), *wide[1:]])]
    plan = min(plans, key=lambda lists: max(map(_product_of_types, lists)))
    if max(map(_product_of_types, plan)) > min(_MOST_TYPES, budget):
        return None
    distributions, log_scale, left_out = [], Fraction(0), 0.0
    for parts in plan:
        distribution = _WeightedLosses(np.zeros(1, dtype=np.longdouble), np.ones(1), 0.0, 0.0)
        for item, draws in parts:
            if draws > 0:
                counts = _counts(item, theta, draws, *count_windows(_tilted(item, theta), draws))
                distribution = _sum_of(distribution, _listed(counts))
                log_scale += counts.log_scale
                left_out += counts.left_out
        distributions.append(distribution)
    arrays = [array for distribution in distributions for array in (*_parts(distribution.losses), distribution.weights)]
    sums = lambda level: _CurveSums(*_type_sums.pairs(*arrays, pair(level), theta))
    weight_error = sum(distribution.weight_error for distribution in distributions) + 1e-15
    loss_error = sum(distribution.loss_error for distribution in distributions)
    size = sum(distribution.weights.size for distribution in distributions)
    table = _TiltedTable(theta, sums, log_scale, left_out, weight_error, loss_error, size)
    return table if loss_error <= 0.5 else None  # theorem 11.9 needs no more


def _balanced(parts: Sequence[tuple[_Atoms, int]]) -> list[list[tuple[_Atoms, int]]]:
    """Each part in turn to the list with fewer types."""
    lists: list[list[tuple[_Atoms, int]]] = [[], []]
    for part in parts:
        min(lists, key=_product_of_types).append(part)
    return lists


def _number_of_types(atoms: _Atoms, draws: int) -> float:
    """An estimate from above of the types that are listed, at the tilt 0."""
    number = len(atoms.losses)
    if number == 1 or draws == 0:
        return 1.0
    first, last = count_windows(atoms.p / atoms.p.sum(), draws)
    logs = np.sort(np.log(last - first + 1.0))[:-1]
    every = math.lgamma(draws + number) - math.lgamma(number) - math.lgamma(draws + 1.0)
    return math.exp(min(600.0, every, float(logs.sum())))


def _product_of_types(parts: Sequence[tuple[_Atoms, int]]) -> float:
    return math.prod(min(_number_of_types(*part), 1e12) for part in parts)


def _listed(counts: _WeightedCounts) -> _WeightedLosses:
    """All types of a step."""
    order = np.argsort([len(weights) for weights in counts.weights], kind="stable")  # the last count is what is left
    used, losses, weights = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.longdouble), np.ones(1)
    least = sum(counts.first)
    most = sum(first + len(weights) - 1 for first, weights in zip(counts.first, counts.weights, strict=True))
    for step, j in enumerate(order):
        first, size = counts.first[j], len(counts.weights[j])
        least, most = least - first, most - (first + size - 1)
        loss = _long(counts.losses[j])
        if step == len(order) - 1:
            n = counts.draws - used
            losses, weights = losses + n * loss, weights * counts.weights[j][n - first]
            break
        n = np.arange(first, first + size)
        total = np.add.outer(used, n).ravel()
        selected = (total <= counts.draws - least) & (total >= counts.draws - most)
        with np.errstate(under="ignore"):
            losses = np.add.outer(losses, n * loss).ravel()[selected]
            weights = np.multiply.outer(weights, counts.weights[j]).ravel()[selected]
        used = total[selected]
    number = len(order)
    size_of_loss = counts.draws * max(abs(float(loss)) for loss in counts.losses)
    return _merged(losses, weights, number * (WEIGHT_ERROR + UNIT_ROUNDOFF),
                   (2 * number + 2) * _LONG_ERROR * size_of_loss)


def _sum_of(a: _WeightedLosses, b: _WeightedLosses) -> _WeightedLosses:
    with np.errstate(under="ignore"):
        losses, weights = np.add.outer(a.losses, b.losses).ravel(), np.multiply.outer(a.weights, b.weights).ravel()
    rounding = _LONG_ERROR * float(np.abs(losses).max())
    error = a.weight_error + b.weight_error + UNIT_ROUNDOFF
    return _merged(losses, weights, error, a.loss_error + b.loss_error + rounding)


def _merged(losses: LongDoubleArray, weights: FloatArray, weight_error: float, loss_error: float) -> _WeightedLosses:
    """In order of the losses; those that differ by no more than their errors become one."""
    order = np.argsort(losses, kind="stable")
    losses, weights = losses[order], weights[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(losses) > 2.0 * loss_error]))
    if starts.size == losses.size:
        return _WeightedLosses(losses, weights, weight_error, loss_error)
    ends = np.append(starts[1:], losses.size) - 1
    widest = float((losses[ends] - losses[starts]).max())
    several = int((ends - starts).max())
    return _WeightedLosses(losses[starts], np.add.reduceat(weights, starts), weight_error + several * UNIT_ROUNDOFF,
                loss_error + widest * (1.0 + 1e-9))


def _long(x: Fraction) -> Any:
    leading, trailing = pair(x)
    return np.longdouble(leading) + np.longdouble(trailing)


def _parts(x: LongDoubleArray) -> tuple[FloatArray, FloatArray]:
    leading = x.astype(np.float64)
    return leading, (x - leading).astype(np.float64)
