"""Pairs by their two certified privacy curves: of which nothing else is known, or whatever object describes them.

Notation: delta_{P||Q}(x) = sup_E P(E) - x Q(E) for x = e^epsilon, epsilon >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray
from ..base.values import ValueObject
from ..channels import AnyChannel
from ..distributions import Density, GaussianMixture, Pmf
from ..divergences import hockey_stick_divergence
from ..divergences.outcomes import probabilities_of_outcomes
from ..mechanisms.gaussian import GaussianMechanism
from ..notions.local import ldp_delta
from .discrete_pairs import DiscretePair
from .log_bounds import Curve, certified
from .protocol import BoundingPairs, DominatingPair, FrozenRecord

# P(L > epsilon), Q(L > epsilon), P(L <= epsilon) and Q(L <= epsilon), L = log dP/dQ: lower and upper bounds
Tails = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True, eq=False)
class CurvePair(DominatingPair):
    """Nothing is known but ``forward``, the curve of P against Q, and ``backward``, that of Q against P."""

    forward: Curve
    backward: Curve
    count: int

    def curve(self, epsilon: FloatArray) -> Estimate:
        """The curve of P against Q."""
        return self.forward(epsilon)

    def reversed(self) -> CurvePair:
        """Q against P."""
        return CurvePair(self.backward, self.forward, self.count)


@dataclass(frozen=True)
class PrivacyCurves:
    """The curves of P against Q and of Q against P at epsilon >= 0.

    ``of_one_pair`` is False for the worst curve over the rows of a channel. ``gaussian`` holds the distance of the
    means and the common standard deviation of two normal distributions, ``squared_distance`` the exact square of their
    quotient where the distance is rounded, to half a unit of extended precision; ``discrete`` the probabilities of two
    discrete ones, ``tails`` those of large and of other losses for both curves, at epsilon >= 0. ``ordered`` is False
    where either of two neighbours may be P: ``worst`` makes of it the larger curve, with both ``orders``. ``group``
    makes the pair of several records that change at once, where every release is a mechanism with a sensitivity.
    """

    forward: Curve
    backward: Curve
    of_one_pair: bool = True
    gaussian: tuple[Any, float] | None = None
    discrete: DiscretePair | None = None
    tails: tuple[Tails, Tails] | None = None
    squared_distance: Fraction | None = None
    ordered: bool = True
    orders: tuple[PrivacyCurves, PrivacyCurves] | None = None
    group: Callable[[int], PrivacyCurves] | None = None

    def both(self, epsilon: FloatArray) -> tuple[Estimate, Estimate]:
        """Forward and backward at these levels; an error where their bounds are not proved."""
        return certified(self.forward, epsilon), certified(self.backward, epsilon)

    def worst(self) -> PrivacyCurves:
        """What holds for both orders of the pair, if it has none of its own."""
        if self.ordered:
            return self
        item = replace(self, ordered=True)

        def larger(epsilon: FloatArray) -> Estimate:
            first, second = item.both(epsilon)
            rows = (np.maximum(a, b) for a, b in zip(first.arrays(), second.arrays(), strict=True))
            return Estimate(*rows, kind="certified", unit="probability", method=f"{first.method}, in the worse order")

        return PrivacyCurves(larger, larger, self.of_one_pair, orders=(item, item.swapped()))

    def swapped(self) -> PrivacyCurves:
        """The pair of Q and P."""
        discrete = None if self.discrete is None else self.discrete.reversed()
        tails = None if self.tails is None else (self.tails[1], self.tails[0])
        group = None if self.group is None else lambda records, of_group=self.group: of_group(records).swapped()
        return replace(self, forward=self.backward, backward=self.forward, discrete=discrete, tails=tails, group=group)


class NamedFields(ValueObject):
    """A value object with a text that names its fields."""

    __slots__ = ()

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self._fields)
        shown = (f"{name}={x.tolist() if isinstance(x, np.ndarray) else x!r}" for name, x in fields if x is not None)
        return f"{type(self).__name__}({', '.join(shown)})"


class PairObject(NamedFields):
    """An object that is a pair by itself."""

    __slots__ = ()

    def _privacy_curves(self) -> PrivacyCurves:
        raise NotImplementedError

    def _bounding_pairs(self) -> BoundingPairs:
        """The pairs of the removal of a record."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False)
class WorstPairCurve(FrozenRecord):
    """The larger curve of any two secrets of a channel, at each epsilon."""

    channel: AnyChannel

    def __call__(self, epsilon: FloatArray) -> Estimate:
        """Evaluate the curve at an array of epsilons."""
        return ldp_delta(None, self.channel, epsilon)


def pair_of_curves(p: Any, q: Any) -> PrivacyCurves:
    """Two distributions, vectors or functions, or one object with curves of its own, as a pair."""
    if isinstance(p, PairObject):
        refuse_second(f"a {type(p).__name__}", q)
        return p._privacy_curves()
    if isinstance(p, GaussianMechanism):
        refuse_second("a GaussianMechanism", q)
        sigma, span = normal_noise(p)
        return PrivacyCurves(p.delta, p.delta, gaussian=(span, sigma))
    if isinstance(p, AnyChannel):
        refuse_second("a channel", q)
        worst = WorstPairCurve(p)
        return PrivacyCurves(worst, worst, of_one_pair=False)
    on_line = [isinstance(side, (GaussianMixture, Density)) for side in (p, q)]
    if any(on_line):
        if not all(on_line):
            wrong, name, other = (q, "q", "p") if on_line[0] else (p, "p", "q")
            raise DomainError(
                f"{name} must be a GaussianMixture or a Density, as {other} is; got {validate.shown(wrong)}. Pass two "
                "distributions on the same line."
            )
        curves = partial(hockey_stick_divergence, p, q), partial(hockey_stick_divergence, q, p)
        return PrivacyCurves(*curves, gaussian=_equal_normal_distributions(p, q))
    discrete = _discrete_pair(p, q)
    if discrete is not None:
        return PrivacyCurves(discrete.curve, discrete.reversed().curve, discrete=discrete)
    if not callable(p):
        raise DomainError(
            "p must be a GaussianMixture, a Pmf, a vector of probabilities, a GaussianMechanism, a channel or a "
            f"function of epsilon; got {validate.shown(p)}. Build one of these."
        )
    if q is not None and not callable(q):
        raise DomainError(
            f"q must be a function of epsilon, the curve of Q against P, or None; got {validate.shown(q)}. Leave it "
            "out where both curves are the same."
        )
    forward = _CurveOfCaller("p", p)
    return PrivacyCurves(forward, forward if q is None else _CurveOfCaller("q", q))


def normal_noise(mechanism: GaussianMechanism, prefix: str = "") -> tuple[float, float]:
    """Standard deviation and sensitivity of a mechanism, each a single number."""
    sigma = validate.scalar(f"{prefix}sigma", mechanism.sigma)
    if mechanism.sensitivity is None:
        mechanism.delta(0.0)  # raises
    return sigma, validate.scalar(f"{prefix}sensitivity", mechanism.sensitivity)


def _equal_normal_distributions(p: Any, q: Any) -> tuple[float, float] | None:
    """Distance of the means and standard deviation, of two single Gaussians on the line that have the same one."""
    for side in (p, q):
        if not isinstance(side, GaussianMixture) or side.dimension != 1 or len(side) != 1 or side.weights[0] != 1.0:
            return None
    difference = abs(float(p.means[0]) - float(q.means[0]))
    exact = np.longdouble(difference) == abs(np.longdouble(p.means[0]) - np.longdouble(q.means[0]))
    return (difference, float(p.sigmas[0])) if exact and p.sigmas[0] == q.sigmas[0] else None


def _discrete_pair(p: Any, q: Any) -> DiscretePair | None:
    """Probabilities of two Pmfs on the union of their points, or of two vectors."""
    one_is_pmf = isinstance(p, Pmf) or isinstance(q, Pmf)
    if not one_is_pmf and any(
        item is None or callable(item) or isinstance(item, (str, bytes, Estimate)) for item in (p, q)
    ):
        return None
    rows = probabilities_of_outcomes(p, q)
    return DiscretePair(rows[0], rows[1], 1, *(validate.sum_gap(row) for row in rows))


def refuse_second(noun: str, q: Any) -> None:
    """Raise an error if a second object comes with one that is a pair already."""
    if q is not None:
        raise DomainError(f"q must be left out with {noun}, which is a pair already; got {validate.shown(q)}. Drop it.")


@dataclass(frozen=True, slots=True, eq=False)
class _CurveOfCaller(FrozenRecord):
    """A function that a caller passes as a curve, with a check of what it returns."""

    name: str
    function: Callable[[FloatArray], Any]

    def __call__(self, epsilon: FloatArray) -> Estimate:
        answer = self.function(epsilon)
        if not isinstance(answer, Estimate) or answer.shape != epsilon.shape:
            raise DomainError(
                f"{self.name} must return an Estimate of the shape of epsilon, {epsilon.shape}; got "
                f"{validate.shown(answer)}. Return Estimate(value, lower, upper, kind='certified', "
                "unit='probability', method='...')."
            )
        if answer.unit not in ("probability", "log probability"):
            raise DomainError(
                f"{self.name} must return probabilities or their logarithms; got an Estimate in {answer.unit!r}. Pass "
                "the function of epsilon that gives delta."
            )
        return answer.to("probability")
