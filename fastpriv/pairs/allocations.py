"""Pairs of random allocations: one record takes part in one random step of t.

Normal noise. Notation: as in ``composition/random_allocation.py``, R = dP/dQ is under Q the average of t independent
log-normal variables with mean 1 and log standard deviation a, so that with the bounds of ``log_normal_sums``

    delta_remove = E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+.

Neither exceeds the delta of the Gaussian mechanism with the same noise, by the joint convexity of delta. Neither is
below that with sqrt(t) times the noise: given the mean of all coordinates, R is on average the likelihood ratio of that
mean. With d that of the same noise, and Phi(c)^(t - 1) the probability that no other step exceeds the threshold c = a /
2 - epsilon / a of one step,

    delta_remove >= d(epsilon + log t),        delta_add >= Phi(c)^(t - 1) d(epsilon).

Any mechanism. P1 is the law of a step in which the record takes part, Q1 that of any other step. In a step R_i =
dP1/dQ1, under Q1; R is the average of R_1 .. R_t, independent, and m = P1(Q1 = 0):

    delta_remove = m + E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+,

by the laws of sums with another law of one term. As a function of one step, all others given, both are means of H(x)
of (P1, Q1), or of (Q1, P1), at levels x >= 0 that do not depend on it, or totals of both: a pair of measures whose
curve is nowhere below, and whose totals are at least 1, gives upper bounds, and likewise below. These are the outcomes
themselves for discrete laws, else losses on a grid. Neither delta exceeds that of one step (joint convexity).

Sums of discrete laws whose values meet again and again are kept one by one, where they are not too many.

Source: Feldman and Shenfeld 2025; Zhu, Dong and Wang 2022 (measures in place of laws).
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np

from .. import special
from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray, next_above, next_below
from .discrete_pairs import DiscretePair, bounding_atoms
from .log_bounds import certified
from .log_normal_sums import AtomicLaw, LawsOfSum, SumBounds, SumTerm, log_normal_sum, log_normal_sum_near
from .protocol import DominatingPair

_DEPTHS = 45.0, 150.0, 660.0  # of laws, in nats; each serves values down to a share of the depth
_DEPTH_SHARE = 0.75  # of the depth of a law down to which it is used
_CELLS = 600, 1200, 2400, 4800  # of laws near a level, the next where the bounds are not close enough
# bound: proved - the least upper bound that is claimed: sums of subnormal numbers lose their relative accuracy
_LEAST_KNOWN = 1e-300
_WORTHWHILE = 0.7  # the width that more cells leave, where still more follow: roundings grow with cells
_BREAK = 2.0  # nats of delta between two breaks
_FEW_LEVELS = 8  # that are evaluated by laws near them; of a whole curve one law serves all
# bound: none - relative width of a composition that the grid may add to that of the law: its intervals follow
_CURVE_WIDTH = 3e-5
_MOST_BREAKS = 25  # near which that law is good
# bound: none - of what is evaluated by laws near a level: smaller deltas have wider and wider bounds
_LEAST_IMPROVED = 1e-250
IMPROVED_DELTAS: tuple[float, float] = (_LEAST_IMPROVED, 1.0)  # of curves of which nothing else is known
# bound: none - a below which the atoms of a law are not told apart: the two Gaussian mechanisms at the head remain
_LEAST_SCALE = 1e-10
_LARGEST_SCALE = 25.0  # beyond it, where sigma is less than 0.04 sensitivities, laws of sums are not used
# bound: none - width of epsilon, from that of delta and its slope, that is not improved
_ACCEPTED_EPSILON = 2e-4
# bound: none - least and largest relative widths of delta that are not improved
_ACCEPTED_WIDTHS = 1e-4, 2e-3
_LARGEST_EPSILON = 680.0  # beyond it laws of sums are not used: steps e^epsilon would overflow
# bound: proved - relative error of gaussian_delta: theorem 1.2 of docs/proofs/gaussian.md
_GAUSSIAN_ERROR = 4e-15
_LOSS_CELLS = 3000  # of the losses of a base with a density
# bound: none - delta beyond which losses of a base are not told apart
_BASE_TAIL = 1e-80
_LEVELS = 2.0 ** np.arange(-20.0, 12.0)  # where the losses of a base become rare
_MOST_SUMS = 4000  # that are kept one by one
_MOST_LISTED = 256  # outcomes of all steps together that are listed as fractions
_MERGED = 40  # bits to which they agree
_LARGEST_VALUE = 1e150  # of R_i that is an atom: larger ones are at infinity from above and left out from below
# bound: proved - masses below it are left out from below, where products that underflow have no relative error
_LEAST_MASS = 1e-290


class SumOfRatios(DominatingPair):
    """Base of pairs whose R is an average of ``steps`` independent terms; ``adds`` tells addition from removal.

    Bounds of deltas between the two numbers ``deltas`` are evaluated again: by laws that are close near them, or, where
    levels are many, by one law that is close everywhere.
    """

    __slots__ = ()

    steps: int
    adds: bool
    deltas: tuple[float, float]

    def bounds(self, epsilon: FloatArray, used: BoolArray) -> FloatArray:
        """Rows of values, lower and upper bounds at epsilon; laws of sums serve those ``used``."""
        raise NotImplementedError

    def reversed(self) -> Self:
        """Addition for removal."""
        return replace(self, adds=not self.adds)  # type: ignore[type-var]

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        rows = self.bounds(levels, levels <= _LARGEST_EPSILON)
        positive = rows[2] > 0.0
        rows[1, rows[1] < _LEAST_KNOWN] = 0.0
        rows[2] = np.where(positive, np.clip(rows[2], _LEAST_KNOWN, 1.0), 0.0)
        rows[1] = np.minimum(rows[1], rows[2])
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(value, lower, upper, kind="certified", unit="probability", method="law of a sum of ratios")

    def improve(self, term: float | SumTerm, epsilon: FloatArray, rows: FloatArray, at: IndexArray) -> None:
        """Narrow some rows of values, lower and upper bounds by the laws of sums, as deep as the values ask for."""
        depths = _DEPTHS if epsilon.size <= _FEW_LEVELS else _DEPTHS[:-1]
        for depth in depths:
            least = math.exp(-_DEPTH_SHARE * depth) if depth < depths[-1] else 0.0
            if self.deltas[1] < least or not at.size:
                continue
            self.narrow(rows, at, epsilon, log_normal_sum(term, self.steps, depth))
            values, lower, upper = rows[:, at]
            within = (upper > max(self.deltas[0], _LEAST_IMPROVED)) & (lower < self.deltas[1])
            deep = within & (values < least) & (self.deltas[0] < least)
            if epsilon.size <= _FEW_LEVELS:
                self._improve_near(term, rows, at[within & ~deep], epsilon, depth)
            elif (within & ~deep).any():
                self.narrow(rows, at[within & ~deep], epsilon, _everywhere(term, self.steps, depth))
            at = at[deep]

    def _improve_near(
        self, term: float | SumTerm, rows: FloatArray, at: IndexArray, epsilon: FloatArray, depth: float
    ) -> None:
        """Narrow some rows by laws whose cells are chosen for their levels."""
        if not at.size:
            return
        breaks = _breaks(term, self.steps, depth, self.adds)
        part = np.clip(np.searchsorted(breaks, self._levels(epsilon[at])) - 1, 0, breaks.size - 2)
        with np.errstate(over="ignore", divide="ignore"):
            ratios = np.log(breaks[part + 1] / breaks[part])
            accepted = np.clip(_ACCEPTED_EPSILON * _BREAK / ratios, *_ACCEPTED_WIDTHS)
        for item in np.unique(part):
            inside = part == item
            cells, before = _CELLS[0], math.inf
            while True:
                distribution = log_normal_sum_near(
                    term, self.steps, depth, cells, tuple(breaks[item : item + 2].tolist())
                )
                self.narrow(rows, at[inside], epsilon, distribution)
                _, lower, upper = rows[:, at[inside]]
                excess = float(((upper - lower) / (accepted[inside] * upper)).max())
                if excess <= 1.0 or excess > _WORTHWHILE * before or cells == _CELLS[-1]:
                    break
                before = excess
                cells = next((n for n in _CELLS if n >= cells * math.sqrt(excess)), _CELLS[-1])

    def _levels(self, epsilon: FloatArray) -> FloatArray:
        """x of the sum of all log-normal variables."""
        return np.asarray(self.steps * np.exp(-epsilon if self.adds else epsilon))

    def narrow(self, rows: FloatArray, at: IndexArray, epsilon: FloatArray, sum_bounds: SumBounds) -> None:
        """Replace some rows by those of ``sum_bounds``, within the bounds that are known."""
        x = self._levels(epsilon[at])
        value, lower, upper = sum_bounds.excesses(x, self.adds) / (x if self.adds else self.steps)
        lower = np.maximum(rows[1, at], lower * (1.0 - 8 * UNIT_ROUNDOFF))
        upper = np.minimum(rows[2, at], upper * (1.0 + 8 * UNIT_ROUNDOFF))
        rows[:, at] = np.clip(value, lower, upper), lower, upper


@dataclass(frozen=True, slots=True, eq=False)
class AllocationPair(SumOfRatios):
    """One epoch with normal noise: ``scale`` is a, ``steps`` is t."""

    _fields = ("scale", "steps", "adds", "deltas", "count")
    scale: float
    steps: int
    adds: bool
    deltas: tuple[float, float]
    count: int

    @property
    def curve_width(self) -> float:
        """The intervals of a grid follow the width of the bounds."""
        return _CURVE_WIDTH

    def bounds(self, epsilon: FloatArray, used: BoolArray) -> FloatArray:
        """By one step and by all, or by the law of the sum."""
        if self.scale == 0.0:
            return np.zeros((3, epsilon.size))
        most = self._of_one_step(epsilon, 1.0)
        rows = np.stack([most, np.zeros(epsilon.size), np.maximum(most, _LEAST_KNOWN)])
        if self.steps == 1:
            rows[1] = self._of_one_step(epsilon, -1.0)
        elif self.scale < _LEAST_SCALE:
            rows[1] = self._of_one_step(epsilon, -1.0, math.sqrt(self.steps))
        elif not self.adds:  # (a + b - x)^+ >= (a - x)^+ + (b - x)^+ for positive numbers
            rows[1] = self._of_one_step(next_above(epsilon + next_above(math.log(self.steps))), -1.0)
        elif self.scale > _LARGEST_SCALE:  # the event that every step is below the threshold of one
            threshold = next_below(0.5 * self.scale - next_above(epsilon / self.scale, 4), 2)
            others = np.exp((self.steps - 1) * special.log_ndtr(threshold) * (1.0 + 4 * _GAUSSIAN_ERROR))
            rows[1] = self._of_one_step(epsilon, -1.0) * others * (1.0 - 1e-12)
        if self.steps > 1 and _LEAST_SCALE <= self.scale <= _LARGEST_SCALE:
            self.improve(self.scale, epsilon, rows, np.flatnonzero(used))
            rows[2] = np.maximum(rows[2], _LEAST_KNOWN)
        return rows

    def _of_one_step(self, epsilon: FloatArray, side: float, noise: float = 1.0) -> FloatArray:
        """A bound of delta of the Gaussian mechanism with ``noise`` times the noise, from above (1) or below (-1)."""
        half = 0.5 * self.scale / noise * (1.0 + side * 4 * UNIT_ROUNDOFF)
        return np.asarray(special.gaussian_delta(half, epsilon) * (1.0 + side * _GAUSSIAN_ERROR))


@dataclass(frozen=True, slots=True, eq=False)
class AllocationOfPair(SumOfRatios):
    """One epoch of any mechanism: a base pair from above and one from below, each P1 against Q1."""

    _fields = ("dominating", "dominated", "steps", "adds", "deltas", "count")

    dominating: DominatingPair
    dominated: DominatingPair
    steps: int
    adds: bool = False
    deltas: tuple[float, float] = IMPROVED_DELTAS
    count: int = 1

    def bounds(self, epsilon: FloatArray, used: BoolArray) -> FloatArray:
        """By one step, and by the law of the sum."""
        base = self.dominating.reversed() if self.adds else self.dominating
        most = np.minimum(np.asarray(certified(base.curve, epsilon).upper), 1.0)
        rows = np.stack([0.5 * most, np.zeros(epsilon.size), most])
        term, low, high = _term(self.dominating, self.dominated, self.adds)
        sums = _sums_one_by_one(term, self.steps)
        at = np.flatnonzero((most > 0.0) & used)
        if sums is not None:
            self.narrow(rows, at, epsilon, sums)
        else:
            self.improve(term, epsilon, rows, at)
        if not self.adds:
            rows += np.array([[0.5 * (low + high)], [low], [high * (1.0 + 4 * UNIT_ROUNDOFF)]])
            rows[1] *= 1.0 - 4 * UNIT_ROUNDOFF
            rows[2] = np.minimum(rows[2] * (1.0 + 4 * UNIT_ROUNDOFF), most)
        return np.where(most > 0.0, np.maximum(rows, [[0.0], [0.0], [_LEAST_KNOWN]]), 0.0)


@lru_cache(maxsize=64)
def listed_allocation(pair: DominatingPair, steps: int) -> DiscretePair | None:
    """The exact pair of a few discrete laws: how often each outcome occurs in all steps; else None."""
    if pair.atoms is None:
        return None
    p, q = ([Fraction(x) for x in side.tolist()] for side in pair.atoms)
    used = [i for i, x in enumerate(q) if x > 0]
    if math.comb(steps + len(used) - 1, steps) > _MOST_LISTED or steps > _MOST_LISTED:
        return None
    rows = [(sum((x for x, y in zip(p, q, strict=True) if not y), Fraction(0)), Fraction(0))]
    for chosen in itertools.combinations_with_replacement(used, steps):
        numbers = [chosen.count(i) for i in used]
        weight = math.factorial(steps) / Fraction(math.prod(map(math.factorial, numbers)))
        weight *= math.prod(q[i] ** n for i, n in zip(used, numbers, strict=True))
        rows.append((weight * sum(n * p[i] / q[i] for i, n in zip(used, numbers, strict=True)) / steps, weight))
    if any(0 < x < _LEAST_MASS for row in rows for x in row):
        return None
    p_mass, q_mass = (np.array([np.longdouble(float(x)) + np.longdouble(float(x - Fraction(float(x)))) for x in column])
                      for column in zip(*rows, strict=True))
    g, h = pair.p_relative_error, pair.q_relative_error
    errors = 1.01 * (g + (steps - 1) * h) + 2.0**-60, 1.01 * steps * h + 2.0**-60
    item = bounding_atoms(p_mass, q_mass, (p_mass > 0.0) & (q_mass > 0.0), *errors).dominating[0]
    return item if isinstance(item, DiscretePair) else None


@lru_cache(maxsize=16)
def _breaks(term: float | SumTerm, steps: int, depth: float, adds: bool) -> FloatArray:
    """Rising x at which delta is about 1, e^-_BREAK, ... to the depth."""
    logs = -np.arange(0.0, depth + _BREAK, _BREAK)
    return np.unique(log_normal_sum(term, steps, depth).levels(logs, adds))


def _everywhere(term: float | SumTerm, steps: int, depth: float) -> SumBounds:
    """A law that is good at all breaks of both directions."""
    breaks = np.unique(np.concatenate([_breaks(term, steps, depth, adds) for adds in (False, True)]))
    chosen = breaks[np.linspace(0, breaks.size - 1, _MOST_BREAKS).astype(np.int64)]
    return log_normal_sum_near(term, steps, depth, _CELLS[-1], tuple(chosen.tolist()))


@lru_cache(maxsize=16)
def _term(dominating: DominatingPair, dominated: DominatingPair, adds: bool) -> tuple[SumTerm, float, float]:
    """The law of R_i for one direction, from above and from below, and m from below and from above."""
    above, error_above, high = _term_distribution(dominating, adds, True)
    exact = dominated == dominating and dominating.atoms is not None
    below, error_below, low = _term_distribution(dominated, adds, False)
    errors = (max(item) for item in zip(error_above, error_below, strict=True))
    return SumTerm(LawsOfSum(above if exact else below, above, *errors)), low, high


def _term_distribution(
    pair: DominatingPair, adds: bool, dominating: bool
) -> tuple[AtomicLaw, tuple[float, float], float]:
    """Values of R_i with masses under Q1, relative errors of masses and values, and m."""
    if pair.atoms is not None:
        p, q = (x.astype(np.longdouble) for x in pair.atoms)
        p, q = p[q > 0.0], q[q > 0.0]
        values, masses, size = p / q, q, 0.0
        errors = pair.q_relative_error, pair.p_relative_error + 2.0 * pair.q_relative_error
        infinite_mass = pair.infinite_mass()[int(dominating)]
    else:
        item = pair.reversed() if adds else pair
        interval = _interval(item)
        loss = item.privacy_loss(interval, _BASE_TAIL, dominating)
        infinite_mass = loss.infinity_mass * (1.0 + (1.0 if dominating else -1.0) * item.p_relative_error)
        losses = (loss.first + np.arange(loss.masses.size)) * np.longdouble(loss.interval)
        size = float(np.abs(losses).max(initial=0.0))
        masses = loss.masses.astype(np.longdouble)
        values = np.exp(-losses if adds else losses)
        if not adds:
            masses = masses / values
            if not dominating:  # roundings of masses under P1 may be vast under Q1, whose total must not exceed 1
                above = 1 - 2.0**-50 - (np.cumsum(masses[::-1])[::-1] - masses)  # what larger values leave
                masses = np.clip(masses, 0.0, np.maximum(above, 0.0))
        remainder = np.longdouble(loss.infinity_mass) if adds else max(1 - masses.sum(), np.longdouble(0.0))
        if (dominating or adds) and remainder > 0.0:
            raised = remainder * (1 + 4 * UNIT_ROUNDOFF) + (4 * UNIT_ROUNDOFF if dominating and not adds else 0.0)
            values, masses = np.append(values, 0.0), np.append(masses, raised)
        errors = item.p_relative_error + item.q_relative_error, 2.0 * (item.p_relative_error + item.q_relative_error)
    rounding = 8 * UNIT_ROUNDOFF + (8.0 + 2.0 * size) * float(np.finfo(np.longdouble).eps)
    selected = (masses > (0.0 if dominating else _LEAST_MASS)) & (values <= _LARGEST_VALUE)
    # in sums of up to 1e9 terms: where one is larger, the others add next to nothing to their mean
    infinite = 0.0 if adds else float((values * masses)[values > _LARGEST_VALUE].sum()) * (1.0 + 1e-9)
    distribution = _merged(values[selected].astype(np.float64), masses[selected].astype(np.float64))[0]
    distribution = replace(distribution, infinite=infinite)
    return distribution, (1.01 * errors[0] + rounding, 1.01 * errors[1] + rounding), infinite_mass


def _interval(pair: DominatingPair) -> float:
    """Of a grid of losses: a small part of the largest, or of where delta is small."""
    ends = [pair.largest_loss()[1], pair.reversed().largest_loss()[1]]
    if not math.isfinite(max(ends)):
        for i, side in enumerate((pair, pair.reversed())):
            upper = np.asarray(certified(side.curve, _LEVELS).upper)
            rare = np.flatnonzero(upper <= side.infinite_mass()[1] * (1.0 + 1e-9) + _BASE_TAIL)
            ends[i] = min(ends[i], float(_LEVELS[rare[0]]) if rare.size else float(_LEVELS[-1]))
    return max(max(ends), 1e-12) / _LOSS_CELLS


def _merged(values: FloatArray, masses: FloatArray) -> tuple[AtomicLaw, int]:
    """Rising values, each once: those that agree in their leading bits are one."""
    mantissas, exponents = np.frexp(values)
    rounded = np.ldexp(np.round(np.ldexp(mantissas, _MERGED)), exponents - _MERGED)
    positions, at, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    values = np.ascontiguousarray(
        values[np.unique(at, return_index=True)[1]] if positions.size == values.size else positions
    )
    total = np.zeros(positions.size)
    np.add.at(total, at, masses)
    return AtomicLaw(values, total), int(counts.max())


@lru_cache(maxsize=16)
def _sums_one_by_one(term: SumTerm, steps: int) -> SumBounds | None:
    """All sums of two halves of the steps; None where these are too many, or laws from above and below differ."""
    if term.laws.below is not term.laws.above:
        return None
    powers: dict[int, LawsOfSum | None] = {}

    def sum_of(count: int) -> LawsOfSum | None:
        if count not in powers:
            item, other = (term.laws, None) if count == 1 else (sum_of(count // 2), sum_of(count - count // 2))
            powers[count] = item if count == 1 or item is None or other is None else _added(item, other)
        return powers[count]

    halves = sum_of(steps // 2), sum_of(steps - steps // 2)
    return None if halves[0] is None or halves[1] is None else SumBounds(halves[0], halves[1], steps)


def _added(first: LawsOfSum, second: LawsOfSum) -> LawsOfSum | None:
    """The sum of two independent variables, value by value."""
    a, b = first.below, second.below
    if a.atoms.size * b.atoms.size > _MOST_SUMS * 256:
        return None
    distribution, most = _merged(np.add.outer(a.atoms, b.atoms).ravel(), np.outer(a.masses, b.masses).ravel())
    if (
        distribution.atoms.size > _MOST_SUMS
        or distribution.masses.min() < _LEAST_MASS
        or first.above.infinite
        or second.above.infinite
    ):
        return None
    mass_error = first.mass_error + second.mass_error + (most + 8) * UNIT_ROUNDOFF
    error = max(first.position_error, second.position_error) + 2.0**-_MERGED + 4 * UNIT_ROUNDOFF
    return LawsOfSum(distribution, distribution, mass_error, error)
