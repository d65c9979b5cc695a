"""Mechanisms that are known by a guarantee alone, and noise on the integers, as pairs of a composition.

(epsilon, delta). With points (e^epsilon_i, delta_i) of one mechanism, and by exchanging data sets (e^-epsilon_i, 1 -
e^-epsilon_i (1 - delta_i)), its curve is at most the greatest convex function below these points, (0, 1), and constant
beyond them. That function is the curve of a pair: its kinks are the outcomes. For one point these are the four outcomes
of Kairouz, Oh and Viswanath 2017 and of Murtagh and Vadhan 2018, which compose exactly. Slopes are formed with so many
decimal digits that no difference of doubles loses its own.

Bounded range e: losses lie in [t - e, t] for some t. The pair of a t has the losses t and t - e, with the Q-masses

    a = (e^-t - e^-e) / (1 - e^-e),    1 - a.

Of several mechanisms that are fixed in advance the curve is the largest over one common t (Dong, Durfee and Rogers
2020): no single pair has it. The pair of randomised response, losses e and -e, dominates all of them, also adaptively.

Permute-and-flip e releases the largest of scores with exponential noise of rate r = e / 2 (Ding, Kifer, Sayed, Steinke,
Wang, Xiao and Zhang 2021). Let E be candidates, A the largest noisy score in E, B that of the others. A change of all
scores by at most 1 moves A - B by at most 2. The hazard rate of A is at most r: that exactly one of independent
exponential variables exceeds a number is less probable than that any does. So the density f of D = A - B satisfies f <=
r (1 - F), and f <= r F by exchanging A and B. Laplace noise of scale 1 / r attains min(F, 1 - F) r, so that a shift of
it by 2 changes probabilities of half-lines by at least as much: the Laplace pair with the largest loss e dominates.

Discrete Gaussian noise, e^(-x^2 / (2 sigma^2)) / Z on the integers, shifted by d: the loss of x is d (2 x - d) / (2
sigma^2), a lattice. Masses below 2^-1021 lie beyond it: above they count as infinite losses, below as the least loss,
and in the pair from below they are left out.

Renyi. A guarantee K(t) >= log E_P e^(t L) for both orders of the data sets is no pair: ``joint_bounds`` of
``composition`` makes an upper bound of it. K is convex with K(0) = 0, so that chords between known orders bound it.
"""

# bounds: proved - roundings in extended precision, and digits of decimals

from __future__ import annotations

import decimal
import itertools
import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray, next_above
from ..distributions import GaussianMixture
from .curve_pairs import PairObject
from .discrete_pairs import DiscretePair, bounding_atoms
from .discretised_losses import PrivacyLoss
from .laplace_pairs import LaplacePair
from .measured_losses import LossPair
from .mixture_pairs import MixturePair
from .protocol import EXTENDED_ROUNDING, BoundingPairs, Bounds, DominatingPair

_DIGITS = 400  # of decimals: e^epsilon - 1 keeps 70 of them for the smallest double
# bound: proved - e^-epsilon beyond it has no double, and counts as 0; times any double it is a long double
_LARGEST_EPSILON = 9000.0
# bound: none - guarantees of larger epsilons are bounded from below by those of this one, whose masses are doubles
_LARGEST_TOLD = 690.0
# bound: none - the least square of sigma, beyond which losses of the discrete Gaussian are no doubles
_LEAST_VARIANCE = 2.0**-800
# bound: proved - the least mass of a lattice that keeps its relative accuracy as a double
_LEAST_MASS = 2.0**-1021
_LOG_LEAST_MASS = 1021 * math.log(2.0)  # of its inverse
_MOST_POINTS = 2**18  # of either side of the noise on the integers
_MOST_LEAVES = 2**62  # steps of a tree
_MOST_RANGES = 1024  # mechanisms of bounded range that are counted where they are fixed in advance
_SHARES = (0.5, 0.25, 0.75)  # of t in e whose pairs bound adaptive mechanisms of bounded range from below


def _positive(name: str, value: Any) -> float:
    return validate.scalar(name, value, "positive and finite", lambda x: (x > 0) & (x < np.inf))


def _at_least_0(name: str, value: Any) -> float:
    return validate.scalar(name, value, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))


class ApproximateDP(PairObject):
    """A mechanism of which only (epsilon, delta) is known, or several such pairs of numbers that hold at once.

    Parameters
    ----------
    epsilon : float or array_like, shape (n,)
        In nats, at least 0 and finite.
    delta : float or array_like, shape (n,)
        From 0 to 1, one for each epsilon. The mechanism meets all of them, for either order of neighbouring data sets.

    Raises
    ------
    DomainError
        For numbers out of range.
    ShapeError
        For another number of deltas than of epsilons.

    Notes
    -----
    ``compose`` takes it as a pair of outcomes, four for one epsilon; its composition is the optimal one, also of
    different guarantees and for mechanisms that are chosen adaptively. Neighbours are those of the guarantee.

    **Accuracy** exact up to rounding, as that of discrete pairs; ``tests/enclosures/test_events.py``.

    Source: Kairouz, Oh and Viswanath 2017, theorem 3.3; Murtagh and Vadhan 2018, theorem 1.5; the head of
    ``fastpriv/pairs/events.py``.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import ApproximateDP
    >>> print(f"{compose(ApproximateDP(0.5, 2.0**-10), 2).delta(0.25):.6f}")
    0.205988 [0.205987, 0.205988]
    >>> print(f"{compose(ApproximateDP([0.5, 1.0], [0.125, 0.0]), 2).delta(0.75):.6f}")
    0.217406 [0.217405, 0.217406]
    """

    __slots__ = _fields = ("epsilon", "delta")

    epsilon: FloatArray
    delta: FloatArray

    def __init__(self, epsilon: ArrayLike, delta: ArrayLike) -> None:
        levels = validate.vector("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        deltas = validate.vector("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        if levels.shape != deltas.shape:
            raise ShapeError(f"delta must have one entry for each of the {levels.size} epsilons; got {deltas.size}. "
                             "Pass one each.")
        self._set(epsilon=levels.copy(), delta=deltas.copy())

    def _bounding_pairs(self) -> BoundingPairs:
        above, deltas = _pair_of_points(self.epsilon.tolist(), self.delta.tolist()), self.delta.tolist()
        if not above.dominated:
            return above
        below = _pair_of_points(np.minimum(self.epsilon, _LARGEST_TOLD).tolist(), deltas)
        return BoundingPairs(above.dominating, below.alternatives)


def _pair_of_points(epsilons: list[float], deltas: list[float]) -> BoundingPairs:
    """The outcomes of the greatest convex curve through the points, by the head of this module."""
    with decimal.localcontext() as context:
        context.prec = _DIGITS
        heights = {Decimal(0): Decimal(1)}
        for epsilon, delta in zip(epsilons, deltas, strict=True):
            x, level = Decimal(min(epsilon, _LARGEST_EPSILON)).exp(), Decimal(delta)
            for position, height in ((x, level), (1 / x, 1 - (1 - level) / x)):
                heights[position] = min(height, heights.get(position, Decimal(1)))
        hull = _convex_minorant(list(heights.items()))
        lowest = min(range(len(hull)), key=lambda index: hull[index][1])  # the curve does not rise
        hull = hull[: lowest + 1]
        slopes = [(a[1] - b[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(hull)]
        falls = [a - b for a, b in zip(slopes, [*slopes[1:], Decimal(0)], strict=False)]
        q = [Decimal(0), *falls, 1 - (slopes[0] if slopes else 0)]
        p = [hull[-1][1], *(x * fall for (x, _), fall in zip(hull[1:], falls, strict=True)), Decimal(0)]
        rows = [np.array([np.longdouble(f"{number:.30e}") for number in side]) for side in (p, q)]
    finite = np.array([0 < index < len(p) - 1 for index in range(len(p))])
    return bounding_atoms(rows[0], rows[1], finite, EXTENDED_ROUNDING, EXTENDED_ROUNDING)


def _convex_minorant(points: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The points of the greatest convex function at or below all of them, from the left."""
    hull: list[tuple[Any, Any]] = []
    for x, y in sorted(points):
        while len(hull) > 1 and ((y - hull[-2][1]) * (hull[-1][0] - hull[-2][0])
                                 <= (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0])):
            hull.pop()
        if not hull or x > hull[-1][0]:
            hull.append((x, y))
    return hull


@dataclass(frozen=True, slots=True, eq=False)
class BoundedRangePair(DiscretePair):
    """Mechanisms of bounded range: up to ``most_counted`` of them alone have a curve of their own, in
    ``composition/joint_bounds.py``; others count as the randomised response that these probabilities are.
    """

    width: float = 0.0
    most_counted: int = 1

    def reversed(self) -> BoundedRangePair:
        """Q against P, whose losses have the range too."""
        p, q = self.q, self.p
        return BoundedRangePair(p, q, self.count, self.q_relative_error, self.p_relative_error, self.width,
                                self.most_counted)


class BoundedRange(PairObject):
    """A mechanism whose losses lie in an interval of length epsilon: the exponential mechanism.

    Parameters
    ----------
    epsilon : float
        Length of the interval in nats, at least 0 and finite; the mechanism is epsilon-DP. An exponential mechanism
        with probabilities proportional to exp(epsilon u / (2 s)), s the sensitivity of the score u, has this range.
    adaptive : bool, default True
        Whether later mechanisms may be chosen by what earlier ones released, which can lose more: two of epsilon = 1
        have delta(1/4) = 0.216055 fixed in advance and 0.220924 chosen adaptively.

    Raises
    ------
    DomainError
        For numbers out of range, or another kind of ``adaptive``.

    Notes
    -----
    One mechanism has its exact curve. Fixed in advance, equal mechanisms compose exactly, up to 1024 of them; more of
    them, or with other mechanisms, and adaptively, they count as epsilon-DP ones from above and as concrete mechanisms
    from below.

    **Accuracy** of one, or in advance, the exact curve up to rounding; ``tests/enclosures/test_events.py``.

    Source: Dong, Durfee and Rogers 2020, theorem 1.2; the head of ``fastpriv/pairs/events.py``.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import BoundedRange
    >>> print(f"{compose(BoundedRange(1.0, adaptive=False), 3).delta(0.5):.6f}")
    0.206468 [0.206467, 0.206468]
    >>> compose(BoundedRange(1.0), 3).delta(0.5).upper < compose(BoundedRange(1.0), 3).delta(0.25).upper
    True
    """

    __slots__ = _fields = ("epsilon", "adaptive")

    epsilon: float
    adaptive: bool

    def __init__(self, epsilon: ArrayLike, adaptive: bool = True) -> None:
        self._set(epsilon=_at_least_0("epsilon", epsilon), adaptive=validate.flag("adaptive", adaptive))

    def _bounding_pairs(self) -> BoundingPairs:
        above = _pair_of_points([self.epsilon], [0.0])
        if self.epsilon == 0.0:
            return above
        range_told = min(self.epsilon, _LARGEST_TOLD)
        below = tuple(_pair_of_range(range_told, share * range_told) for share in _SHARES)
        pair = above.dominating[0]
        assert isinstance(pair, DiscretePair)
        item = BoundedRangePair(pair.p, pair.q, 1, pair.p_relative_error, pair.q_relative_error, self.epsilon,
                                1 if self.adaptive else _MOST_RANGES)
        return BoundingPairs((item,), below)


def _pair_of_range(width: float, largest: float) -> tuple[DominatingPair, ...]:
    """The pair with the losses t and t - e, from below where it has no doubles."""
    e, t = np.longdouble(width), np.longdouble(largest)
    with np.errstate(under="ignore"):
        p = np.array([np.expm1(t - e), np.exp(t - e) * np.expm1(-t)]) / np.expm1(-e)
        q = np.array([np.exp(-t) * np.expm1(t - e), np.expm1(-t)]) / np.expm1(-e)
    result = bounding_atoms(p, q, np.array([True, True]), EXTENDED_ROUNDING * (1 + width),
                           EXTENDED_ROUNDING * (1 + width))
    return result.alternatives[0]


class PermuteAndFlip(PairObject):
    """Permute-and-flip, or the largest of scores with exponential noise.

    Parameters
    ----------
    epsilon : float
        The mechanism is epsilon-DP, in nats, at least 0 and finite: noise of rate epsilon / (2 s) on scores of
        sensitivity s.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    From above it is Laplace noise whose largest loss is epsilon, as the head of ``fastpriv/pairs/events.py`` proves;
    from below the scores (0, 0) against (-1, 1): with epsilon = 1 at 1/2 these have 0.19673, Laplace noise 0.22120.

    **Accuracy** ``tests/enclosures/test_events.py``.

    Source: McKenna and Sheldon 2020; Ding, Kifer, Sayed, Steinke, Wang, Xiao and Zhang 2021.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import PermuteAndFlip
    >>> found = compose(PermuteAndFlip(1.0)).delta(0.5)
    >>> print(f"{found.lower:.5f} {found.upper:.5f}")
    0.19673 0.22120
    """

    __slots__ = _fields = ("epsilon",)

    epsilon: float

    def __init__(self, epsilon: ArrayLike) -> None:
        self._set(epsilon=_at_least_0("epsilon", epsilon))

    def _bounding_pairs(self) -> BoundingPairs:
        half = np.longdouble(0.5)
        e = np.longdouble(min(self.epsilon, _LARGEST_TOLD))
        p, q = np.array([half, half]), np.array([np.exp(-e), 1 - np.expm1(-e)]) * half
        item = bounding_atoms(p, q, np.array([True, True]), EXTENDED_ROUNDING, EXTENDED_ROUNDING * (1 + float(e)))
        below = item.alternatives[0]
        alternatives = (below, tuple(pair.reversed() for pair in below))
        return BoundingPairs((LaplacePair(1.0, self.epsilon, 1),), alternatives)


class DiscreteGaussianMechanism(PairObject):
    """Discrete Gaussian noise on an integer: probabilities proportional to exp(-x^2 / (2 sigma^2)).

    Parameters
    ----------
    sigma : float, optional
        Parameter of the noise, positive and finite.
    sensitivity : int, default 1
        Largest change of the integer by one contribution, at least 0. Where neighbours replace a record, pass twice the
        largest contribution.
    sigma_squared : float, optional
        The square of sigma instead, which keeps rational parameters exact.

    Raises
    ------
    DomainError
        For numbers out of range, both or neither of sigma and sigma_squared, or so much noise that the lattice has more
        than 2^21 points.

    Notes
    -----
    The loss lies on a lattice and its curve is not that of continuous noise. Vectors with several coordinates are
    products of this where the coordinates' changes are known; else ``ZeroConcentratedDP(d^2 / (2 sigma^2))`` holds.

    **Accuracy** exact up to rounding and masses below 2^-1021; ``tests/enclosures/test_events.py``.

    Source: Canonne, Kamath and Steinke 2020, definition 1 and theorem 7.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import DiscreteGaussianMechanism
    >>> print(f"{compose(DiscreteGaussianMechanism(sigma_squared=2.0)).delta([0.25, 1.0]):.6f}")
    [0.180143, 0.042812], lower=[0.180143, 0.042812], upper=[0.180144, 0.042813]
    """

    __slots__ = _fields = ("sigma", "sensitivity", "sigma_squared")

    sigma: float | None
    sensitivity: int
    sigma_squared: float | None

    def __init__(
        self, sigma: ArrayLike | None = None, sensitivity: int = 1, sigma_squared: ArrayLike | None = None
    ) -> None:
        if (sigma is None) == (sigma_squared is None):
            both = "neither" if sigma is None else "both"
            raise DomainError(f"sigma or sigma_squared must be given, and not both; got {both}. Pass one of them.")
        noise = None if sigma is None else _positive("sigma", sigma)
        square = None if sigma_squared is None else _positive("sigma_squared", sigma_squared)
        self._set(sigma=noise, sensitivity=validate.count("sensitivity", sensitivity, 0, 2**31), sigma_squared=square)
        if self._variance() < _LEAST_VARIANCE:
            raise DomainError(f"the square of sigma must be at least {_LEAST_VARIANCE:.4g}; got {noise or square!r} as "
                              f"{'sigma' if square is None else 'sigma_squared'}. Without noise delta is 1.")
        if 2 * self._variance() * Fraction(_LOG_LEAST_MASS) >= _MOST_POINTS**2:
            most = _MOST_POINTS / math.sqrt(2.0 * _LOG_LEAST_MASS)
            name, limit, value = ("sigma", most, noise) if square is None else ("sigma_squared", most**2, square)
            raise DomainError(
                f"{name} must be below {limit:.4g}, so that the lattice of losses has at most {4 * _MOST_POINTS} "
                f"points; got {value!r}. Divide sigma and the sensitivity by a common unit, or pass "
                "ZeroConcentratedDP(sensitivity**2 / (2 * sigma**2))."
            )

    def _variance(self) -> Fraction:
        return Fraction(self.sigma) ** 2 if self.sigma is not None else Fraction(self.sigma_squared or 0.0)

    def _bounding_pairs(self) -> BoundingPairs:
        d, variance = self.sensitivity, self._variance()
        if d == 0:
            return BoundingPairs(())
        wide = math.isqrt(math.floor(2 * variance * Fraction(_LOG_LEAST_MASS))) + 2
        x: IntArray = np.arange(-wide, wide + 1)
        scale = extended(2 * variance)
        weights = np.exp(-(x.astype(np.longdouble) ** 2) / scale)
        masses = weights / (weights.sum() + 2 * weights[0] / -np.expm1(-(2 * wide + 1) / scale))
        error = EXTENDED_ROUNDING * (0.25 * _LOG_LEAST_MASS + 8) + x.size * float(np.finfo(np.longdouble).eps)
        selected = np.flatnonzero(masses >= _LEAST_MASS)
        beyond = next_above(float(2 * masses[0] / -np.expm1(-(2 * wide + 1) / scale))
                            + float(masses[masses < _LEAST_MASS].sum()) + _LEAST_MASS, 4)
        step = 1 + d % 2  # losses are multiples of d / sigma^2, or odd ones of half of it
        exact = Fraction(d) / (step * variance)
        interval = float(exact)
        positions = step * x[selected] + step * d // 2  # x is the noise: the release is x + d under P
        table = np.zeros(positions[-1] - positions[0] + 1)
        table[positions - positions[0]] = masses[selected].astype(np.float64)
        p_error = error + 2 * UNIT_ROUNDOFF
        largest = float(max(abs(int(positions[0])), abs(int(positions[-1])))) * interval
        q_error = p_error + (0.0 if Fraction(interval) == exact else 1.01 * largest * UNIT_ROUNDOFF)
        remainder = p_error, q_error, next_above(float(Fraction(d) ** 2 / (2 * variance)))
        below = LossPair(PrivacyLoss(int(positions[0]), interval, table, 0.0), 1, *remainder)
        more = table.copy()
        more[0] += beyond
        above = LossPair(PrivacyLoss(int(positions[0]), interval, more, beyond), 1, *remainder)
        return BoundingPairs((above,), ((below,),))


def extended(x: Fraction) -> Any:
    """A fraction in extended precision, within a unit of it."""
    leading = float(x)
    return np.longdouble(leading) + np.longdouble(float(x - Fraction(leading)))


class TreeAggregation(PairObject):
    """Sums of all nodes of a binary tree over the steps, with normal noise in each.

    Parameters
    ----------
    leaves : int or list of int
        Steps of the tree, at least 1 each. Of several trees every record is in one leaf of one tree: compose one object
        for each tree where records come again.
    sigma : float
        Standard deviation of the noise of a node, positive and finite.
    sensitivity : float, default 1
        Largest length of the contribution of one record, at least 0 and finite. Where neighbours replace a record in
        its leaf, pass twice as much.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    A record changes a node on each of floor(log2(leaves)) + 1 levels: the release of all nodes is as many Gaussian
    mechanisms, and that of the largest tree where there are several.

    **Accuracy** the closed curve of Gaussian mechanisms; ``tests/enclosures/test_events.py``.

    Source: Kairouz, McMahan, Song, Thakkar, Thakurta and Xu 2021, appendix D.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, compose
    >>> from fastpriv.pairs import TreeAggregation
    >>> tree = compose(TreeAggregation(8, sigma=4.0))
    >>> tree.delta(1.0).value == compose(GaussianMechanism(4.0, 2.0)).delta(1.0).value
    True
    """

    __slots__ = _fields = ("leaves", "sigma", "sensitivity")

    leaves: int | tuple[int, ...]
    sigma: float
    sensitivity: float

    def __init__(self, leaves: int | list[int], sigma: ArrayLike, sensitivity: ArrayLike = 1.0) -> None:
        several = isinstance(leaves, (list, tuple))
        trees: Any = leaves if several else [leaves]
        sizes = tuple(validate.count("leaves", tree, 1, _MOST_LEAVES) for tree in trees)
        if not sizes:
            raise DomainError("leaves must have at least one tree; got none. Pass the steps of each tree.")
        self._set(leaves=sizes if several else sizes[0], sigma=_positive("sigma", sigma),
                  sensitivity=_at_least_0("sensitivity", sensitivity))

    def _bounding_pairs(self) -> BoundingPairs:
        largest = max(self.leaves) if isinstance(self.leaves, tuple) else self.leaves
        p, q = (GaussianMixture.single(mean, self.sigma) for mean in (self.sensitivity, 0.0))
        return BoundingPairs((MixturePair(p, q, largest.bit_length()),))


@dataclass(frozen=True, slots=True, eq=False)
class RenyiPair(DominatingPair):
    """A guarantee of which only bounds of Renyi divergences are known, in both orders of the data sets.

    log E_P e^(t L) is at most t (xi + rho (1 + t)) and, where there are ``tilts``, at most their ``moments``, between
    them at most the chord, and without bound beyond them.
    """

    rho: float
    xi: float
    tilts: FloatArray
    moments: FloatArray
    count: int

    def curve(self, epsilon: FloatArray) -> Estimate:
        """What nothing more than the moments is known of lies between 0 and 1."""
        shape = np.shape(epsilon)
        return Estimate(np.ones(shape), np.zeros(shape), np.ones(shape), kind="certified", unit="probability",
                        method="Renyi divergences")

    def reversed(self) -> RenyiPair:
        """The guarantee holds for it too."""
        return self

    def infinite_mass(self) -> Bounds:
        """Divergences are finite."""
        return 0.0, 0.0

    def largest_loss(self) -> Bounds:
        """Nothing is known of it."""
        return 0.0, math.inf

    def moment(self, t: float) -> float:
        """Upper bound of log E_P e^(t L), t > 0."""
        if not self.tilts.size:
            return t * (self.xi + self.rho * (1.0 + t)) * (1 + 8 * UNIT_ROUNDOFF)
        if t > self.tilts[-1]:
            return math.inf
        return float(np.interp(t, self.tilts, self.moments)) * (1 + 32 * UNIT_ROUNDOFF)

    def renyi_divergence(self, order: float) -> Bounds:
        """Between 0 and what is known."""
        if order == 1.0:  # it rises with the order
            order = 1.0 + (float(self.tilts[1]) if self.tilts.size else 1e-9)
        return 0.0, next_above(self.moment(order - 1.0) / (order - 1.0), 2)


class ZeroConcentratedDP(PairObject):
    """A mechanism of which only (xi, rho)-zCDP is known: Renyi divergences of every order a > 1 at most xi + rho a.

    Parameters
    ----------
    rho : float
        At least 0 and finite, in nats.
    xi : float, default 0
        At least 0 and finite, in nats.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    It is no pair. ``compose`` gives upper bounds alone, as ``method`` says: with K_i(t) >= log E_P e^(t L_i) of every
    other pair, delta(epsilon) <= t^t / (1 + t)^(1 + t) exp(sum k_i K_i(t) + t (xi + rho (1 + t)) - t epsilon) for every
    t > 0, of which the least is taken. Lower bounds are those of the other pairs.

    **Accuracy** ``tests/enclosures/test_events.py``.

    Source: Bun and Steinke 2016, definition 1.1; Canonne, Kamath and Steinke 2020, proposition 12.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import ZeroConcentratedDP
    >>> found = compose(ZeroConcentratedDP(0.01), 5).delta(1.0)
    >>> print(found.lower, f"{found.upper:.3e}")
    0.0 3.857e-04
    """

    __slots__ = _fields = ("rho", "xi")

    rho: float
    xi: float

    def __init__(self, rho: ArrayLike, xi: ArrayLike = 0.0) -> None:
        self._set(rho=_at_least_0("rho", rho), xi=_at_least_0("xi", xi))

    def _bounding_pairs(self) -> BoundingPairs:
        return BoundingPairs((RenyiPair(self.rho, self.xi, np.empty(0), np.empty(0), 1),), ((),))


class RenyiDP(PairObject):
    """A mechanism of which only Renyi divergences of some orders are known.

    Parameters
    ----------
    orders : float or array_like, shape (n,)
        Above 1 and finite.
    epsilons : float or array_like, shape (n,)
        Upper bounds of the divergences of these orders, in nats, at least 0 and finite, for either order of the data
        sets.

    Raises
    ------
    DomainError
        For numbers out of range.
    ShapeError
        For another number of epsilons than of orders.

    Notes
    -----
    As ``ZeroConcentratedDP``, with what is known at these orders and by convexity between them.

    **Accuracy** ``tests/enclosures/test_events.py``.

    Source: Mironov 2017; Canonne, Kamath and Steinke 2020, proposition 12.

    Examples
    --------
    >>> from fastpriv import compose
    >>> from fastpriv.pairs import RenyiDP
    >>> print(f"{compose(RenyiDP([2.0, 8.0, 32.0], [0.1, 0.4, 1.6])).delta(2.0).upper:.3e}")
    4.810e-08
    """

    __slots__ = _fields = ("orders", "epsilons")

    orders: FloatArray
    epsilons: FloatArray

    def __init__(self, orders: ArrayLike, epsilons: ArrayLike) -> None:
        above = validate.vector("orders", orders, "above 1 and finite", lambda x: (x > 1) & (x < np.inf))
        bounds = validate.vector("epsilons", epsilons, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
        if above.shape != bounds.shape:
            raise ShapeError(f"epsilons must have one entry for each of the {above.size} orders; got {bounds.size}. "
                             "Pass one each.")
        self._set(orders=above.copy(), epsilons=bounds.copy())

    def _bounding_pairs(self) -> BoundingPairs:
        tilts = self.orders - 1.0
        hull = _convex_minorant([(0.0, 0.0), *zip(tilts.tolist(), (tilts * self.epsilons).tolist(), strict=True)])
        tilts, moments = (np.array(column) for column in zip(*hull, strict=True))
        return BoundingPairs((RenyiPair(0.0, 0.0, tilts, moments, 1),), ((),))
