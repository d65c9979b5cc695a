"""Pairs of Laplace distributions: the Laplace mechanism.

Notation: d = shift / scale, the largest loss; h(x) = e^x - 1 - x.
"""

# bounds: proved - rounding of d = shift / scale as a double, and of what follows from it

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ..conversions import gdp_from_ldp
from ..mechanisms.laplace import LaplaceMechanism
from .protocol import EXTENDED_ROUNDING, Bounds, DominatingPair, GaussianFit, rounded_outward

_SERIES_TERMS = 24  # bound: proved - of h(x) for |x| < 1/2: the next one is below 2^-24 / 26!
# bound: proved - relative rounding of d
_RATIO_ROUNDING = 2.0**-50


@dataclass(frozen=True, slots=True, eq=False)
class LaplacePair(DominatingPair):
    """P = Laplace(0, scale) and Q = Laplace(shift, scale); scale > 0, shift >= 0. Both orders have one curve."""

    has_moments = losses_are_finite = True

    scale: float
    shift: float
    count: int

    @property
    def laplace(self) -> tuple[float, float]:
        """Scale and shift."""
        return self.scale, self.shift

    @property
    def is_trivial(self) -> bool:
        """Whether the shift is 0."""
        return self.shift == 0.0

    def curve(self, epsilon: FloatArray) -> Estimate:
        """That of the Laplace mechanism."""
        delta: Estimate = LaplaceMechanism(self.scale, self.shift).delta(epsilon)
        return delta

    def reversed(self) -> LaplacePair:
        """The pair itself."""
        return self

    def largest_loss(self) -> Bounds:
        """d."""
        ratio = self.shift / self.scale
        return next_below(ratio), next_above(ratio)

    def renyi_divergence(self, order: float) -> Bounds:
        """K = h(-d) and M - 1 = (a h((a - 1) d) + (a - 1) h(-a d)) / (2 a - 1), by the orders 1 and a > 1.

        Both terms are positive: a small divergence keeps its digits.
        """
        d, a = np.longdouble(self.shift / self.scale), np.longdouble(order)
        if order == 1.0:
            value = _second_remainder(-d)
        elif (a - 1) * d < 1:
            value = np.log1p((a * _second_remainder((a - 1) * d) + (a - 1) * _second_remainder(-a * d)) / (2 * a - 1))
            value /= a - 1
        else:
            value = d + (np.log(a / (2 * a - 1)) + np.log1p((a - 1) / a * np.exp(-(2 * a - 1) * d))) / (a - 1)
        relative = 4 * UNIT_ROUNDOFF + 8 * EXTENDED_ROUNDING  # of d = shift / scale, of which K has at most the square
        return rounded_outward(value, relative * value)

    def gaussian_fit(self) -> GaussianFit:
        """That of randomised response with the largest loss."""
        return GaussianFit(float(gdp_from_ldp(self.shift / self.scale * (1 + _RATIO_ROUNDING)).upper) ** 2)

    def add_to_contour(self, sums: Any) -> bool:
        """Nothing where the shift is 0."""
        return self.shift == 0.0 or bool(sums.add_laplace(self.count, self.scale, self.shift))


def _second_remainder(x: Any) -> Any:
    """e^x - 1 - x in extended precision, to a few units of rounding."""
    if abs(x) >= 0.5:
        return np.expm1(x) - x
    total = np.longdouble(1)
    for n in range(_SERIES_TERMS + 2, 2, -1):
        total = 1 + total * x / n
    return 0.5 * x * x * total
