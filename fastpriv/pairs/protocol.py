"""``DominatingPair``: the members that every kind of pair has, and lists of pairs that bound a composition.

Notation: a dominating pair is ``count`` independent releases of P, Q with the loss L = log dP/dQ; its curve is that of
P against Q. All fields are checked by whoever makes a pair.

A pair with relative errors g, h stands for all measures whose densities lie within 1 +- g and 1 +- h of those of P and
Q, the exact or normalised ones among them. ``engines`` widens the bounds for it: the members of a pair, and the engines
themselves, take the numbers as they are, unless they say otherwise.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from ..base.estimate import Estimate
from ..base.numerics import FloatArray
from ..base.values import ValueObject
from ..distributions import GaussianMixture
from ..divergences.reductions.gaussian_spectra import GaussianSpectrum
from .discretised_losses import PrivacyLoss, discretised
from .log_bounds import LogBounds, certified

# bound: none - distance of means, in standard deviations, from which moments are not tried: its square is no double
LARGEST_DISTANCE = 1e154
# bound: none - relative width of a composition on a grid that is aimed at
USUAL_WIDTH = 1e-7
_END_LEVELS = np.concatenate([[0.0], np.geomspace(2.0**-30, 2.0**40, 281)])  # where the end of a curve is looked for

# bound: proved - logarithms, exponentials and products in extended precision, for each unit of an exponent
EXTENDED_ROUNDING = 16 * float(np.finfo(np.longdouble).eps)

Bounds = tuple[float, float]  # a lower and an upper bound


class GaussianFit(NamedTuple):
    """Squares of the mu for which one release is mu-GDP: ``sufficient`` from above; ``p_necessary`` where P is one
    normal distribution and ``q_necessary`` where Q is, else 0. ``impossible`` says why no mu is large enough.
    """

    sufficient: Any = math.inf
    p_necessary: Any = 0.0
    q_necessary: Any = 0.0
    impossible: str = ""


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A Gaussian mechanism of one record that is sampled with a rate.

    ``ratio`` is the distance of the means over sigma, between two doubles, ``sigma`` its inverse likewise, from the
    largest, ``rate`` between two as well. The pair is the mixture against the noise (``remove``), the noise against the
    mixture (``add``), or has the curve of the first in both orders (``symmetric``).
    """

    ratio: Bounds
    sigma: Bounds
    rate: Bounds
    order: Literal["remove", "add", "symmetric"]

    @property
    def exact(self) -> bool:
        """Whether ratio, sigma and rate are doubles."""
        return all(low == high for low, high in (self.ratio, self.sigma, self.rate))


class FrozenRecord(ValueObject):
    """Base of frozen dataclasses that are equal and hashable by all of their fields, arrays among them."""

    __slots__ = ()

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]


class DominatingPair(FrozenRecord):
    """Independent releases of one pair of distributions. Members are those of one release.

    A subclass is a frozen dataclass. It has ``curve``, ``log_delta`` or ``grid_losses``, and ``reversed``; everything
    else here is what can be said by curves alone.
    """

    __slots__ = ()

    count: int
    p_relative_error: float = 0.0
    q_relative_error: float = 0.0
    # whether no loss is known to be infinite: then the curve falls to 0
    losses_are_finite: bool = False
    # whether the curve is bounded from below, by more than 0
    has_lower_bounds: bool = True
    # whether E_P e^(z L) is computed in closed form, by ``add_to_contour``; where losses have a density, the terms of a
    # sum along a contour fall, and it is tried
    has_moments: bool = False

    # Capabilities: forms of the pair that an engine asks for, None where it has another form.

    @property
    def mixtures(self) -> tuple[GaussianMixture, GaussianMixture] | None:
        """P and Q as mixtures on the line."""
        return None

    @property
    def atoms(self) -> tuple[FloatArray, FloatArray] | None:
        """Probabilities of the same outcomes under P and Q. Where q = 0 < p the loss is infinite."""
        return None

    @property
    def laplace(self) -> tuple[float, float] | None:
        """Scale and shift of P = Laplace(0, scale) and Q = Laplace(shift, scale)."""
        return None

    @property
    def grid_losses(self) -> PrivacyLoss | None:
        """The loss itself, where it is one on a grid."""
        return None

    @property
    def sampled_gaussian(self) -> SampledPair | None:
        """The parameters of a Gaussian mechanism of one sampled record, with weights of exactly 1 - rate and rate."""
        return None

    @property
    def squared_gaussian_distance(self) -> Fraction | None:
        """The exact square of the distance of P and Q in their common sigma, where both are normal distributions."""
        return None

    @property
    def spectrum(self) -> GaussianSpectrum | None:
        """The independent coordinates of two normal distributions."""
        return None

    @property
    def coordinates(self) -> tuple[DominatingPair, ...]:
        """Independent pairs that make this one and that have more forms than it has, or this one alone."""
        return (self,)

    @property
    def labels(self) -> tuple[tuple[Bounds, DominatingPair], ...] | None:
        """Logarithms of probabilities, and pairs, of which one is taken and told."""
        return None

    @property
    def curve_width(self) -> float:
        """Relative width of a composition that its grid may add, where the bounds of the curve are not close."""
        return 0.0

    @property
    def aimed_width(self) -> float:
        """Relative width of a composition on a grid: below the usual one where very many points are cheap."""
        return USUAL_WIDTH

    @property
    def least_loss(self) -> float:
        """At most the least loss, and close to it; 0 where it is not known or vast."""
        return 0.0

    @property
    def is_discrete(self) -> bool:
        """Whether losses have atoms that are all known."""
        return self.atoms is not None or self.grid_losses is not None

    @property
    def is_known_by_curves(self) -> bool:
        """Whether nothing but curves is known."""
        return not self.has_moments and self.grid_losses is None

    @property
    def is_trivial(self) -> bool:
        """Whether P and Q are known to be the same."""
        return False

    def repeated(self, count: int) -> Self:
        """The same pair, ``count`` times; equal ones are equal, so that a dictionary joins them."""
        return self if count == self.count else replace(self, count=count)  # type: ignore[type-var]

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Certified delta at epsilon >= 0; none of pairs with ``grid_losses``."""
        if self.grid_losses is not None:
            raise NotImplementedError
        logs = self.log_delta(np.ravel(epsilon))
        numbers = (row.reshape(np.shape(epsilon)) for row in logs.numbers)
        return Estimate(*numbers, kind="certified", unit="log probability", method=logs.method).to("probability")

    def reversed(self) -> DominatingPair:
        """The pair of Q against P, as often."""
        raise NotImplementedError

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Bounds of log delta at epsilon >= 0, far below the smallest double where that is known."""
        return LogBounds.of_estimate(certified(self.curve, epsilon))

    def infinite_mass(self) -> Bounds:
        """Bounds of P(L = inf), relative errors included."""
        if self.losses_are_finite:
            return 0.0, 0.0
        end = certified(self.curve, np.array([np.inf]))
        return float(np.asarray(end.lower)[0]), float(np.asarray(end.upper)[0])

    def without_infinite_losses(self) -> Self | None:
        """The outcomes with finite losses, which need not have the mass 1; None where P has no such."""
        return self

    def largest_loss(self) -> Bounds:
        """Bounds of the largest loss: here where the curve becomes 0, between two levels."""
        def zero_from(side: str) -> int:
            def is_zero(index: int) -> bool:
                return not float(np.asarray(getattr(certified(self.curve, _END_LEVELS[[index]]), side))[0])

            last = _END_LEVELS.size - 1
            return bisect_left(range(last), True, key=is_zero) if is_zero(last) else last + 1

        low, high = zero_from("lower"), zero_from("upper")
        return (float(_END_LEVELS[low - 1]) if low else 0.0,
                float(_END_LEVELS[high]) if high < _END_LEVELS.size else math.inf)

    def renyi_divergence(self, order: float) -> Bounds:
        """Bounds of the divergence of a finite order of at least 1."""
        return 0.0, math.inf

    def gaussian_fit(self) -> GaussianFit:
        """What the largest losses say of the mu for which the pair is mu-GDP."""
        return GaussianFit()

    def privacy_loss(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """A loss on the multiples of an interval that dominates that of the pair, or is dominated by it.

        ``tail`` is the delta that may lie beyond the grid.
        """
        return discretised(self.curve, self.reversed().curve, interval, tail, dominating)

    def losses_from_least(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """The same of the excess over ``least_loss``: where a loss is so with some probability, it keeps its place."""
        if self.least_loss == 0.0:
            return self.privacy_loss(interval, tail, dominating)
        return discretised(self.curve, self.reversed().curve, interval, tail, dominating, self.least_loss)

    def add_to_contour(self, sums: Any) -> bool:
        """Add all releases to the kernel's sums along a contour; False where they have no such moments."""
        return False


@dataclass(frozen=True, slots=True, eq=False)
class BoundingPairs(FrozenRecord):
    """Pairs whose composition dominates what is meant, and alternatives that are dominated by it.

    Each of ``dominated`` is a list of pairs by itself. Where it is empty, ``dominating`` is what is meant, exactly.
    """

    dominating: tuple[DominatingPair, ...]
    dominated: tuple[tuple[DominatingPair, ...], ...] = ()

    @property
    def alternatives(self) -> tuple[tuple[DominatingPair, ...], ...]:
        """Lists of pairs of which each is certainly dominated by what is meant."""
        return self.dominated or (self.dominating,)

    def reversed(self) -> BoundingPairs:
        """The same of Q against P: a pair that dominates does so in both orders."""
        first, *others = (tuple(pair.reversed() for pair in pairs) for pairs in (self.dominating, *self.dominated))
        return BoundingPairs(first, tuple(others))

    def bounds(self, evaluate: Callable[[Sequence[DominatingPair]], Bounds]) -> Bounds:
        """Best lower and upper bound of a number that a dominating pair has at least as large."""
        low, high = evaluate(self.dominating)
        if self.dominated:
            low = max(evaluate(pairs)[0] for pairs in self.dominated)
        return low, high


class SymmetricBounds(BoundingPairs):
    """The same bounds in both orders, as neighbours are: the alternatives hold for either."""

    __slots__ = ()

    def reversed(self) -> BoundingPairs:
        """The pairs themselves."""
        return self


def rounded_outward(value: Any, error: Any) -> Bounds:
    """A divergence in extended precision with its absolute error, as doubles."""
    if not math.isfinite(float(value)):
        return (math.inf, math.inf) if value > 0 else (0.0, math.inf)
    low, high = (float(value + sign * error) for sign in (-1, 1))
    return max(0.0, math.nextafter(low, -math.inf)), max(0.0, math.nextafter(high, math.inf))


def renyi_of_sum(p: Any, losses: Any, sizes: Any, order: float) -> Bounds:
    """Renyi divergence from probabilities and losses whose rounding is relative to ``sizes``; log M relative to 1."""
    terms = len(p) * float(np.finfo(np.longdouble).eps)
    if order == 1.0:
        return rounded_outward((p * losses).sum(), (EXTENDED_ROUNDING + terms) * (p * sizes).sum())
    exponents = np.log(p) + (order - 1.0) * losses
    top = exponents.max()
    value = top + np.log(np.exp(exponents - top).sum())
    error = terms + EXTENDED_ROUNDING * (1 + abs(top) + np.max(np.abs(np.log(p)) + abs(order - 1.0) * sizes))
    return rounded_outward(value / (order - 1.0), error / (order - 1.0))
