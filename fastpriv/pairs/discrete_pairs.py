"""Pairs of distributions on the same outcomes: channels, randomised response, vectors of probabilities.

Notation: probabilities p_i and q_i, x = e^epsilon, delta = sum (p_i - x q_i)^+. Vectors that miss the sum 1 by a
relative error a and b have (1 + a) delta_{P||Q}(x (1 + b) / (1 + a)) when they are divided by their sums: the bounds of
``curve`` hold for both.
"""

# bounds: proved - 1.1 times a shift of epsilon covers its second order

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, LongDoubleArray, enclosure, next_above, next_below
from ..conversions import gdp_from_ldp
from ..kernels import _type_sums
from .discretised_losses import PrivacyLoss, discretised, moved_to_grid
from .protocol import BoundingPairs, Bounds, DominatingPair, GaussianFit, renyi_of_sum

# bound: proved - a term (p - x q)^+ in extended precision, e^epsilon to 16 units of it, relative to p + x q
_TERM_ROUNDING = 24 * float(np.finfo(np.longdouble).eps)
# bound: proved - of a sum in any order, for each of its terms
_SUM_ROUNDING = float(np.finfo(np.longdouble).eps)
# bound: proved - the least probability of a finite loss that keeps a relative accuracy of one rounding as a double
_LEAST_PROBABILITY = 2.0**-1021
_MANY_LOSSES = 16  # from which on a grid is made of their curve


@dataclass(frozen=True, slots=True, eq=False)
class DiscretePair(DominatingPair):
    """Probabilities of the same outcomes, and by how much their sums miss 1. Where q = 0 < p the loss is infinite."""

    has_moments = True

    p: FloatArray
    q: FloatArray
    count: int
    p_relative_error: float = 0.0
    q_relative_error: float = 0.0

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray]:
        """The probabilities under P and Q."""
        return self.p, self.q

    @property
    def is_trivial(self) -> bool:
        """Whether the probabilities are equal."""
        return bool(np.array_equal(self.p, self.q))

    def curve(self, epsilon: FloatArray) -> Estimate:
        """sum (p_i - e^epsilon q_i)^+ with its rounding, for the vectors as passed and divided by their sums."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel().astype(np.longdouble)  # a shift may be far below 1e-16
        shift = 1.1 * (self.p_relative_error + self.q_relative_error)
        value, error = self._positive_parts(levels)
        low, low_error = (value, error) if shift == 0.0 else self._positive_parts(levels + shift)
        high, high_error = (value, error) if shift == 0.0 else self._positive_parts(levels - shift)
        value = np.clip(value, 0.0, 1.0)
        lower = enclosure(np.minimum(low * (1 - self.p_relative_error), value), low_error, 0.0, 1.0)[1]
        upper = enclosure(np.maximum(high * (1 + self.p_relative_error), value), high_error, 0.0, 1.0)[2]
        numbers = (np.reshape(x, np.shape(epsilon)) for x in (np.clip(value, lower, upper), lower, upper))
        return Estimate(*numbers, kind="exact", unit="probability", method="sum over outcomes")

    def _positive_parts(self, levels: LongDoubleArray) -> tuple[FloatArray, FloatArray]:
        """The sums and their absolute errors, rounded to doubles: over the outcomes whose losses exceed a level."""
        losses, above_p, above_q, relative = _sums_by_loss(self.repeated(1))
        count = np.searchsorted(losses, -levels, side="right")
        with np.errstate(over="ignore", invalid="ignore"):
            product = np.where(above_q[count] == 0.0, 0.0, np.exp(levels) * above_q[count])
        value = np.maximum(above_p[count] - product, 0.0)
        error = relative * (above_p[count] + product) + UNIT_ROUNDOFF * value
        return value.astype(np.float64), error.astype(np.float64)

    def reversed(self) -> DiscretePair:
        """Q against P."""
        return DiscretePair(self.q, self.p, self.count, self.q_relative_error, self.p_relative_error)

    def infinite_mass(self) -> Bounds:
        """The outcomes that Q does not have."""
        mass = math.fsum(self.p[self.q == 0.0].tolist())
        error = self.p_relative_error + 4 * UNIT_ROUNDOFF
        return mass * (1.0 - error), min(1.0, mass * (1.0 + error))

    def without_infinite_losses(self) -> Self | None:
        """The outcomes that Q has."""
        selected = self.q > 0.0
        return replace(self, p=self.p[selected], q=self.q[selected]) if self.p[selected].any() else None

    def largest_loss(self) -> Bounds:
        """The largest ratio of probabilities."""
        used = self.p > 0.0
        if (self.q[used] == 0.0).any():
            return math.inf, math.inf
        ratios = np.log(self.p[used].astype(np.longdouble)) - np.log(self.q[used].astype(np.longdouble))
        top = float(ratios.max(initial=-np.inf))
        return next_below(top, 4), next_above(top, 4)

    def renyi_divergence(self, order: float) -> Bounds:
        """Sum over outcomes."""
        used = self.p > 0.0
        p, q = self.p[used].astype(np.longdouble), self.q[used].astype(np.longdouble)
        if (q == 0.0).any():
            return math.inf, math.inf
        if not p.size:  # a dominated pair that has lost all its outcomes
            return 0.0, math.inf
        return renyi_of_sum(p, np.log(p) - np.log(q), np.abs(np.log(p)) + np.abs(np.log(q)), order)

    def gaussian_fit(self) -> GaussianFit:
        """That of randomised response with the largest loss."""
        if ((self.p > 0.0) != (self.q > 0.0)).any():
            return GaussianFit(impossible="infinite losses: some outcomes prove which of both it was")
        some = self.p > 0.0
        loss = float(np.abs(np.log(self.p[some]) - np.log(self.q[some])).max())
        loss += self.p_relative_error + self.q_relative_error + 1e-12
        return GaussianFit(float(gdp_from_ldp(loss).upper) ** 2)

    def privacy_loss(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """Every loss moved to the grid; from below the curve of many losses, if none is infinite, is closer."""
        selected = (self.p > 0.0) & (self.q > 0.0)
        if not dominating and selected.all() and selected.size >= _MANY_LOSSES:
            return discretised(self.curve, self.reversed().curve, interval, tail, dominating)
        leading, trailing = _type_sums.losses(self.p[selected], self.q[selected])
        mass = math.fsum(self.p[self.q == 0.0].tolist())
        losses = leading.astype(np.longdouble) + trailing
        return moved_to_grid(losses, self.p[selected], interval, mass, dominating)

    def add_to_contour(self, sums: Any) -> bool:
        """The atoms, if all losses are finite."""
        selected = self.p > 0.0
        p, q = np.ascontiguousarray(self.p[selected]), np.ascontiguousarray(self.q[selected])
        return bool(q.all()) and bool(sums.add_atoms(self.count, p, q, math.fsum([*p.tolist(), -1.0])))


@lru_cache(maxsize=16)
def _sums_by_loss(pair: DiscretePair) -> tuple[LongDoubleArray, LongDoubleArray, LongDoubleArray, float]:
    """Losses, from the largest, with the other sign; sums of p and q up to each; their error relative to p + x q."""
    p, q = pair.p.astype(np.longdouble), pair.q.astype(np.longdouble)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Any = np.log(p), np.log(q)
        order = np.argsort(logs[1] - logs[0])
        losses = (logs[1] - logs[0])[order]
    above_p, above_q = (np.append(np.longdouble(0), np.cumsum(x[order])) for x in (p, q))
    # Losses are raised by their rounding, so that none beyond a level is left out; one that is taken for such counts as
    # less than 0, at most by its rounding.
    rounding = 4 * _SUM_ROUNDING * sum(float(np.abs(x[np.isfinite(x)]).max(initial=1.0)) for x in logs)
    return losses - rounding, above_p, above_q, _TERM_ROUNDING + p.size * _SUM_ROUNDING + rounding


def bounding_atoms(p: Any, q: Any, finite: BoolArray, p_error: float, q_error: float) -> BoundingPairs:
    """Atoms of probabilities in extended precision, with relative errors, to which the rounding to doubles is added.

    ``finite`` marks finite losses of both signs, also where a probability underflows to 0.

    Where p or q is no double, the dominating pair has two outcomes for one, with all of p and all of q, so that it
    dominates in both orders. More mass on either changes nothing else: such sums are of outcomes that the other side
    does not have. In the dominated pair such an outcome is left out.
    """
    p, q = np.asarray(p), np.asarray(q)
    lost = finite & ((p < _LEAST_PROBABILITY) | (q < _LEAST_PROBABILITY))
    selected = ~lost & ((p > 0.0) | (q > 0.0))
    p_error, q_error = p_error + _rounding(p[selected]), q_error + _rounding(q[selected])
    inside = DiscretePair(p[selected].astype(np.float64), q[selected].astype(np.float64), 1, p_error, q_error)
    if not lost.any():
        return BoundingPairs((inside,))
    scale = 1.0 + lost.sum() * _SUM_ROUNDING
    infinite = (next_above(float(np.maximum(x[lost], _LEAST_PROBABILITY).sum() * scale)) for x in (p, q))
    more_p, more_q = (np.append(x, y) for x, y in zip((inside.p, inside.q), np.diag([*infinite]), strict=True))
    return BoundingPairs((DiscretePair(more_p, more_q, 1, p_error, q_error),), ((inside,),))


def _rounding(x: Any) -> float:
    """The largest relative error of numbers in extended precision as doubles, rounded up; 0 if there is none."""
    used = x[x > 0]
    error = float(np.abs(used.astype(np.float64) / used - 1).max(initial=0.0))
    return error * (1 + 2.0**-10) if error else 0.0
