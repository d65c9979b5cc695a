"""Pairs of allocations of any mechanism: a record takes part in one random step of t, by a pair (P1, Q1) there.

Notation: P1 is the law of a step in which the record takes part, Q1 that of any other step. In a step R_i = dP1/dQ1,
under Q1; R is the average of R_1 .. R_t, independent, and m = P1(Q1 = 0):

    delta_remove = m + E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+,

by the laws of sums of ``log_normal_sums`` with another law of one term. As a function of one step, all others given,
both are means of H(x) of (P1, Q1), or of (Q1, P1), at levels x >= 0 that do not depend on it, or totals of both: a pair
of measures whose curve is nowhere below, and whose totals are at least 1, gives upper bounds, and likewise below. These
are the outcomes themselves for discrete laws, else losses on a grid. Neither delta exceeds that of one step (joint
convexity).

Sums of discrete laws whose values meet again and again are kept one by one, where they are not too many.

Source: Feldman and Shenfeld 2025; Zhu, Dong and Wang 2022 (measures in place of laws).
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from .allocations import IMPROVED_DELTAS, AllocationPair
from .log_bounds import certified
from .log_normal_sums import AtomicLaw, LawsOfSum, SumBounds, SumTerm
from .protocol import DominatingPair

__all__ = ["AllocationOfPair"]

_CELLS = 3000  # of the losses of a base with a density
# bound: none - delta beyond which losses of a base are not told apart
_BASE_TAIL = 1e-80
_LEVELS = 2.0 ** np.arange(-20.0, 12.0)  # where the losses of a base become rare
_MOST_SUMS = 4000  # that are kept one by one
_MERGED = 40  # bits to which they agree
_LARGEST_EPSILON = 680.0  # beyond it the bounds are those at it, and 0: steps e^epsilon would overflow
# bound: proved - the least upper bound that is claimed: sums of subnormal numbers lose their relative accuracy
_LEAST_KNOWN = 1e-300
_LARGEST_VALUE = 1e150  # of R_i that is an atom: larger ones are at infinity from above and left out from below
# bound: proved - masses below it are left out from below, where products that underflow have no relative error
_LEAST_MASS = 1e-290


@dataclass(frozen=True, slots=True, eq=False)
class AllocationOfPair(DominatingPair):
    """One epoch: a base pair from above and one from below, each P1 against Q1; ``adds`` for Q against P."""

    _fields = ("dominating", "dominated", "steps", "adds", "deltas", "count")

    dominating: DominatingPair
    dominated: DominatingPair
    steps: int
    adds: bool = False
    deltas: tuple[float, float] = IMPROVED_DELTAS
    count: int = 1

    def reversed(self) -> AllocationOfPair:
        """Addition for removal."""
        return replace(self, adds=not self.adds)

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        inside = np.minimum(levels, _LARGEST_EPSILON)
        base = self.dominating.reversed() if self.adds else self.dominating
        most = np.minimum(np.asarray(certified(base.curve, inside).upper), 1.0)
        rows = np.stack([0.5 * most, np.zeros(levels.size), most])
        term, low, high = _term(self.dominating, self.dominated, self.adds)
        sums = _sums_one_by_one(term, self.steps)
        law = AllocationPair(term, self.steps, self.adds, self.deltas, 1)  # type: ignore[arg-type]
        at = np.flatnonzero(most > 0.0)
        if sums is not None:
            law.narrow(rows, at, inside, sums)
        else:
            law.improve(inside, rows, at)
        if not self.adds:
            rows += np.array([[0.5 * (low + high)], [low], [high * (1.0 + 4 * UNIT_ROUNDOFF)]])
            rows[1] *= 1.0 - 4 * UNIT_ROUNDOFF
            rows[2] = np.minimum(rows[2] * (1.0 + 4 * UNIT_ROUNDOFF), most)
        rows[1, (levels > inside) | (rows[1] < _LEAST_KNOWN)] = 0.0
        rows[2] = np.where(most > 0.0, np.clip(rows[2], _LEAST_KNOWN, 1.0), 0.0)
        rows[1] = np.minimum(rows[1], rows[2])
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(value, lower, upper, kind="certified", unit="probability", method="law of a sum of ratios")


@functools.lru_cache(maxsize=16)
def _term(dominating: DominatingPair, dominated: DominatingPair, adds: bool) -> tuple[SumTerm, float, float]:
    """The law of R_i for one direction, from above and from below, and m from below and from above."""
    above, error_above, high = _law(dominating, adds, True)
    exact = dominated == dominating and dominating.atoms is not None
    below, error_below, low = _law(dominated, adds, False)
    errors = (max(one) for one in zip(error_above, error_below, strict=True))
    return SumTerm(LawsOfSum(above if exact else below, above, *errors)), low, high


def _law(pair: DominatingPair, adds: bool, dominating: bool) -> tuple[AtomicLaw, tuple[float, float], float]:
    """Values of R_i with masses under Q1, relative errors of masses and values, and m."""
    if pair.atoms is not None:
        p, q = (x.astype(np.longdouble) for x in pair.atoms)
        p, q = p[q > 0.0], q[q > 0.0]
        values, masses, size = p / q, q, 0.0
        errors = pair.q_relative_error, pair.p_relative_error + 2.0 * pair.q_relative_error
        infinite_mass = pair.infinite_mass()[int(dominating)]
    else:
        one = pair.reversed() if adds else pair
        interval = _interval(one)
        loss = one.privacy_loss(interval, _BASE_TAIL, dominating)
        infinite_mass = loss.infinity_mass * (1.0 + (1.0 if dominating else -1.0) * one.p_relative_error)
        losses = (loss.first + np.arange(loss.masses.size)) * np.longdouble(loss.interval)
        size = float(np.abs(losses).max(initial=0.0))
        masses = loss.masses.astype(np.longdouble)
        values = np.exp(-losses if adds else losses)
        if not adds:
            masses = masses / values
            if not dominating:  # roundings of masses under P1 may be vast under Q1, whose total must not exceed 1
                above = 1 - 2.0**-50 - (np.cumsum(masses[::-1])[::-1] - masses)  # what larger values leave
                masses = np.clip(masses, 0.0, np.maximum(above, 0.0))
        rest = np.longdouble(loss.infinity_mass) if adds else max(1 - masses.sum(), np.longdouble(0.0))
        if (dominating or adds) and rest > 0.0:
            raised = rest * (1 + 4 * UNIT_ROUNDOFF) + (4 * UNIT_ROUNDOFF if dominating and not adds else 0.0)
            values, masses = np.append(values, 0.0), np.append(masses, raised)
        errors = one.p_relative_error + one.q_relative_error, 2.0 * (one.p_relative_error + one.q_relative_error)
    rounding = 8 * UNIT_ROUNDOFF + (8.0 + 2.0 * size) * float(np.finfo(np.longdouble).eps)
    kept = (masses > (0.0 if dominating else _LEAST_MASS)) & (values <= _LARGEST_VALUE)
    # in sums of up to 1e9 terms: where one is larger, the others add next to nothing to their mean
    infinite = 0.0 if adds else float((values * masses)[values > _LARGEST_VALUE].sum()) * (1.0 + 1e-9)
    law = _merged(values[kept].astype(np.float64), masses[kept].astype(np.float64))[0]
    law = replace(law, infinite=infinite)
    return law, (1.01 * errors[0] + rounding, 1.01 * errors[1] + rounding), infinite_mass


def _interval(pair: DominatingPair) -> float:
    """Of a grid of losses: a small part of the largest, or of where delta is small."""
    ends = [pair.largest_loss()[1], pair.reversed().largest_loss()[1]]
    if not math.isfinite(max(ends)):
        for i, one in enumerate((pair, pair.reversed())):
            upper = np.asarray(certified(one.curve, _LEVELS).upper)
            rare = np.flatnonzero(upper <= one.infinite_mass()[1] * (1.0 + 1e-9) + _BASE_TAIL)
            ends[i] = min(ends[i], float(_LEVELS[rare[0]]) if rare.size else float(_LEVELS[-1]))
    return max(max(ends), 1e-12) / _CELLS


def _merged(values: FloatArray, masses: FloatArray) -> tuple[AtomicLaw, int]:
    """Rising values, each once: those that agree in their leading bits are one."""
    mantissas, exponents = np.frexp(values)
    rounded = np.ldexp(np.round(np.ldexp(mantissas, _MERGED)), exponents - _MERGED)
    places, at, counts = np.unique(rounded, return_inverse=True, return_counts=True)
    values = np.ascontiguousarray(values[np.unique(at, return_index=True)[1]] if places.size == values.size else places)
    total = np.zeros(places.size)
    np.add.at(total, at, masses)
    return AtomicLaw(values, total), int(counts.max())


@functools.lru_cache(maxsize=16)
def _sums_one_by_one(term: SumTerm, steps: int) -> SumBounds | None:
    """All sums of two halves of the steps; None where these are too many, or laws from above and below differ."""
    if term.laws.below is not term.laws.above:
        return None
    powers: dict[int, LawsOfSum | None] = {}

    def sum_of(count: int) -> LawsOfSum | None:
        if count not in powers:
            one, other = (term.laws, None) if count == 1 else (sum_of(count // 2), sum_of(count - count // 2))
            powers[count] = one if count == 1 or one is None or other is None else _added(one, other)
        return powers[count]

    halves = sum_of(steps // 2), sum_of(steps - steps // 2)
    return None if halves[0] is None or halves[1] is None else SumBounds(halves[0], halves[1], steps)


def _added(one: LawsOfSum, other: LawsOfSum) -> LawsOfSum | None:
    """The sum of two independent variables, value by value."""
    a, b = one.below, other.below
    if a.atoms.size * b.atoms.size > _MOST_SUMS * 256:
        return None
    law, most = _merged(np.add.outer(a.atoms, b.atoms).ravel(), np.outer(a.masses, b.masses).ravel())
    if law.atoms.size > _MOST_SUMS or law.masses.min() < _LEAST_MASS or one.above.infinite or other.above.infinite:
        return None
    mass_error = one.mass_error + other.mass_error + (most + 8) * UNIT_ROUNDOFF
    error = max(one.position_error, other.position_error) + 2.0**-_MERGED + 4 * UNIT_ROUNDOFF
    return LawsOfSum(law, law, mass_error, error)
