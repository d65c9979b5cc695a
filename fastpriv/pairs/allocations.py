"""Pairs of random allocations: one record takes part in one random step of t.

Notation: as in ``composition/random_allocation.py``, R = dP/dQ is under Q the average of t independent log-normal
variables with mean 1 and log standard deviation a, so that with the bounds of ``log_normal_sums``

    delta_remove = E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+.

Neither exceeds the delta of the Gaussian mechanism with the same noise, by the joint convexity of delta. Neither is
below that with sqrt(t) times the noise: given the mean of all coordinates, R is on average the likelihood ratio of that
mean.
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from .. import special
from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray, next_above
from .log_normal_sums import SumBounds, log_normal_sum, log_normal_sum_near
from .protocol import DominatingPair

__all__ = ["IMPROVED_DELTAS", "AllocationPair"]

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
_LARGEST_SCALE = 25.0  # beyond it, where sigma is less than 0.04 sensitivities, other steps are left out of account
# bound: none - width of epsilon, from that of delta and its slope, that is not improved
_ACCEPTED_EPSILON = 2e-4
# bound: none - least and largest relative widths of delta that are not improved
_ACCEPTED_WIDTHS = 1e-4, 2e-3
_LARGEST_EPSILON = 680.0  # beyond it the bounds are those at it, and 0: steps e^epsilon would overflow
# bound: tested by kernels/test_gaussian_mechanism - relative error of gaussian_delta
_GAUSSIAN_ERROR = 4e-15


@dataclass(frozen=True, slots=True, eq=False)
class AllocationPair(DominatingPair):
    """One epoch: ``scale`` is a, ``steps`` is t; ``adds`` tells addition, Q against P, from removal.

    Bounds of deltas between the two numbers ``deltas`` are evaluated again: by laws that are close near them, or, where
    levels are many, by one law that is close everywhere.
    """

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

    def reversed(self) -> AllocationPair:
        """Addition for removal."""
        return replace(self, adds=not self.adds)

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        inside = np.minimum(levels, _LARGEST_EPSILON)
        most = self._of_one_step(inside, 1.0) if self.scale > 0.0 else np.zeros(levels.size)
        rows = np.stack([most, np.zeros(levels.size), most])
        if self.steps == 1 and self.scale > 0.0:
            rows[1] = self._of_one_step(inside, -1.0)
        elif self.scale > _LARGEST_SCALE:
            if not self.adds:  # R is at least one of its t terms
                rows[1] = self._of_one_step(next_above(inside + next_above(math.log(self.steps))), -1.0)
        elif 0.0 < self.scale < _LEAST_SCALE:
            rows[1] = self._of_one_step(inside, -1.0, math.sqrt(self.steps))
        elif self.scale > 0.0:
            self.improve(inside, rows, np.flatnonzero(levels == inside))
        rows[1, (levels > inside) | (rows[1] < _LEAST_KNOWN)] = 0.0
        rows[2] = np.clip(rows[2], _LEAST_KNOWN if self.scale > 0.0 else 0.0, 1.0)
        rows[1] = np.minimum(rows[1], rows[2])
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(
            value, lower, upper, kind="certified", unit="probability", method="law of a sum of log-normal variables"
        )

    def improve(self, epsilon: FloatArray, rows: FloatArray, at: IndexArray) -> None:
        """Narrow some rows of values, lower and upper bounds by the laws of sums, as deep as the values ask for."""
        depths = _DEPTHS if epsilon.size <= _FEW_LEVELS else _DEPTHS[:-1]
        for depth in depths:
            least = math.exp(-_DEPTH_SHARE * depth) if depth < depths[-1] else 0.0
            if self.deltas[1] < least or not at.size:
                continue
            self.narrow(rows, at, epsilon, log_normal_sum(self.scale, self.steps, depth))
            values, lower, upper = rows[:, at]
            within = (upper > max(self.deltas[0], _LEAST_IMPROVED)) & (lower < self.deltas[1])
            deep = within & (values < least) & (self.deltas[0] < least)
            if epsilon.size <= _FEW_LEVELS:
                self._improve_near(rows, at[within & ~deep], epsilon, depth)
            elif (within & ~deep).any():
                self.narrow(rows, at[within & ~deep], epsilon, _everywhere(self.scale, self.steps, depth))
            at = at[deep]

    def _improve_near(self, rows: FloatArray, at: IndexArray, epsilon: FloatArray, depth: float) -> None:
        """Narrow some rows by laws whose cells are chosen for their levels."""
        if not at.size:
            return
        breaks = _breaks(self.scale, self.steps, depth, self.adds)
        part = np.clip(np.searchsorted(breaks, self._levels(epsilon[at])) - 1, 0, breaks.size - 2)
        with np.errstate(over="ignore", divide="ignore"):
            ratios = np.log(breaks[part + 1] / breaks[part])
            accepted = np.clip(_ACCEPTED_EPSILON * _BREAK / ratios, *_ACCEPTED_WIDTHS)
        for one in np.unique(part):
            inside = part == one
            cells, before = _CELLS[0], math.inf
            while True:
                law = log_normal_sum_near(self.scale, self.steps, depth, cells, tuple(breaks[one : one + 2].tolist()))
                self.narrow(rows, at[inside], epsilon, law)
                _, lower, upper = rows[:, at[inside]]
                excess = float(((upper - lower) / (accepted[inside] * upper)).max())
                if excess <= 1.0 or excess > _WORTHWHILE * before or cells == _CELLS[-1]:
                    break
                before = excess
                cells = next((n for n in _CELLS if n >= cells * math.sqrt(excess)), _CELLS[-1])

    def _levels(self, epsilon: FloatArray) -> FloatArray:
        """x of the sum of all log-normal variables."""
        return np.asarray(self.steps * np.exp(-epsilon if self.adds else epsilon))

    def narrow(self, rows: FloatArray, at: IndexArray, epsilon: FloatArray, law: SumBounds) -> None:
        """Replace some rows by what a law tells, within the bounds that are known."""
        x = self._levels(epsilon[at])
        value, lower, upper = law.excesses(x, self.adds) / (x if self.adds else self.steps)
        lower = np.maximum(rows[1, at], lower * (1.0 - 8 * UNIT_ROUNDOFF))
        upper = np.minimum(rows[2, at], upper * (1.0 + 8 * UNIT_ROUNDOFF))
        rows[:, at] = np.clip(value, lower, upper), lower, upper

    def _of_one_step(self, epsilon: FloatArray, side: float, noise: float = 1.0) -> FloatArray:
        """A bound of delta of the Gaussian mechanism with ``noise`` times the noise, from above (1) or below (-1)."""
        half = 0.5 * self.scale / noise * (1.0 + side * 4 * UNIT_ROUNDOFF)
        return np.asarray(special.gaussian_delta(half, epsilon) * (1.0 + side * _GAUSSIAN_ERROR))


@lru_cache(maxsize=16)
def _breaks(scale: float, steps: int, depth: float, adds: bool) -> FloatArray:
    """Rising x at which delta is about 1, e^-_BREAK, ... to the depth."""
    logs = -np.arange(0.0, depth + _BREAK, _BREAK)
    return np.unique(log_normal_sum(scale, steps, depth).levels(logs, adds))


def _everywhere(scale: float, steps: int, depth: float) -> SumBounds:
    """A law that is good at all breaks of both directions."""
    breaks = np.unique(np.concatenate([_breaks(scale, steps, depth, adds) for adds in (False, True)]))
    chosen = breaks[np.linspace(0, breaks.size - 1, _MOST_BREAKS).astype(np.int64)]
    return log_normal_sum_near(scale, steps, depth, _CELLS[-1], tuple(chosen.tolist()))
