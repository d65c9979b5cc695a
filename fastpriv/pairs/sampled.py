"""Mechanisms on a random sample of the records: Poisson samples, samples of fixed size, and Poisson samples with a cap.

Notation: s the largest size of one contribution, Z_m the law of the noise around m, q the rate: that of a Poisson
sample, or n / N where n of N records are drawn. "A || B, k steps" is the k-fold composition. ``remove`` is P against Q
with P the data set that has the record, ``add`` the other order.

Neighbours. ``add_or_remove``: a record is there, or not; N is the size of the larger data set. ``replace_one``: one of
N records has another value. ``zero_out``: a record becomes one that contributes 0 and keeps its place.

Log-concave noise on the line (normal, also in several dimensions, Laplace, geometric): a half-line of mass v around one
mean gains the most and loses the most of all events of this mass by a shift, so that the worst data sets are collinear
with the largest distances.

Poisson samples
* add_or_remove, zero_out: ((1 - q) Q + q P, Q), for every pair (P, Q) of a record that takes part; exact.
* replace_one: ((1 - q) Z_0 + q Z_s, (1 - q) Z_0 + q Z_-s); exact.

Samples of fixed size, without replacement. The record takes the place of another one, which may be opposite.
* add_or_remove: A = (1 - q) Z_0 + q Z_2s against B = Z_0; exact.
* replace_one: A || B at epsilon >= 0, in both orders: exact for one step. For k steps the symmetric pair of this curve
  dominates; from below A, B in either order and the pair of Poisson samples.
* zero_out: at epsilon >= 0 ((1 - q) Z_-s + q Z_s || (1 - q) Z_-s + q Z_0) and, in the other order, ((1 - q) Z_s + q Z_0
  || Z_s), exact for one step; k steps as before.
With replacement, w_j = Bin(n, 1 / N)(j).
* add_or_remove: (sum_j w_j Z_2js, Z_0); exact.
* replace_one: at most sum_{j >= 1} w_j H(Z_2js || Z_0) at 1 + (a - 1) / (1 - w_0) (Balle, Barthe and Gaboardi 2018);
  from below the means j (x - y) against j (x' - y) with x, x' = +-s and some y.
* zero_out: a null record is one of the values of replace_one, so that this bound holds; from below the same means with
  x' = 0. Which data sets are the worst is not known.
* Laplace noise, add_or_remove: telling j as well can only help, ((1 - r) Q + r P, Q), r = 1 - w_0, with the pairs Z_2js
  against Z_0 and weights w_j / r, told. From below, in all relations: a record that is drawn again counts once, as all
  ratios of likelihoods are monotone, so that half-lines are best and lose mass where means come closer.

Poisson samples with a cap B: c others drawn, c ~ Bin(N - 1, q); tau = P(c >= B), q2 = E[q B / (c + 1) | c >= B] = B
P(Bin(N, q) > B) / (N tau). Given the batch without the record, the record is added to it with the probability q if c <
B; if not, that batch is uniform whatever c is, and the record takes the place of one of its members with the
probability q2. With probability 1 - tau the pair of Poisson samples, with probability tau that of fixed size with q2,
and the label revealed, dominates. From below: others that are all 0, or all -s.

Source: Balle, Barthe and Gaboardi 2018; Zhu, Dong and Wang 2022; Lebeda, Regehr, Kamath and Steinke 2024 (for k steps
the worst data sets of fixed size are not those of one step).
"""

# bounds: proved - roundings of weights, rates and tails

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.exact_linear_algebra import square_root_enclosure
from ..base.numerics import doubles_around, next_above
from ..channels import AnyChannel
from ..distributions import GaussianMixture
from ..mechanisms.gaussian import GaussianMechanism
from ..mechanisms.geometric import DiscreteLaplace, GeometricMechanism
from ..mechanisms.laplace import LaplaceMechanism
from .binomials import Overflow, overflow
from .curve_pairs import CurvePair, PairObject, normal_noise
from .discrete_pairs import DiscretePair, bounding_atoms
from .laplace_pairs import LaplacePair
from .mixture_pairs import MixturePair
from .protocol import BoundingPairs, DominatingPair, SymmetricBounds
from .readers import hashable_pair, read_pair
from .sampled_curves import (
    AddedCurve,
    CompositionBase,
    LabelledPair,
    LaplaceBase,
    LogCurvePair,
    PairBase,
    SampledCurve,
    log_ends,
    whole,
)

Relation: TypeAlias = Literal["add_or_remove", "replace_one", "zero_out"]
Shifts: TypeAlias = Mapping[int, Fraction]  # weights of multiples of s
Ends: TypeAlias = tuple[float, float]

# What neighbouring data sets may differ by
_RELATIONS = ("add_or_remove", "replace_one", "zero_out")
_MAX_SIZE = 10**12  # records
_MAX_DRAWS = 1000  # with replacement: weights are exact fractions of as many factors
_MAX_POSITIONS = 2**20  # integers between the means of geometric noise
_MAX_PRODUCT = 2**12  # outcomes of discrete releases on one sample that are listed
# bound: none - weights of rarer draws are joined
_LEAST_WEIGHT = 1e-290
# bound: none - rates below which one that is no double lies between two, as the rounding of 1 - q would be felt
_SMALL_RATE = 1e-6
_SHORT_BITS = 40  # of a sensitivity whose multiples are means: up to 2^13 of them are doubles
_MOST_COMPONENTS = 64  # of two mixtures that are sampled as a mixture
# bound: none - logarithms of weights, and relative errors of them, beyond which data sets are left out
_LEAST_LOG, _LARGEST_ERROR = -600.0, 1e-9
# bound: proved - of functions in extended precision, for each unit of an exponent
_EXTENDED = 32 * float(np.finfo(np.longdouble).eps)
# The pair of a record that is never used
_NOTHING = BoundingPairs((DiscretePair(np.ones(1), np.ones(1), 1),))


def _weights(exact: Sequence[Fraction]) -> tuple[Any, float]:
    """Weights as doubles, and the largest relative error of their rounding, rounded up."""
    rounded = [float(w) for w in exact]
    gap = max((abs(Fraction(r) / w - 1) for r, w in zip(rounded, exact, strict=True) if w), default=Fraction(0))
    return np.array(rounded), float(next_above(float(gap))) if gap else 0.0


def _bracketed(larger: BoundingPairs, smaller: BoundingPairs) -> BoundingPairs:
    """Bounds of what lies between two."""
    if larger == smaller:
        return larger
    return BoundingPairs(larger.dominating, smaller.alternatives)


class _Normal:
    """Normal noise of standard deviation sigma; s between two doubles."""

    def __init__(self, sigma: float, span: Ends) -> None:
        validate.scalar("twice the sensitivity", 2.0 * span[1], "finite", np.isfinite)
        self.sigma, self.span = sigma, span

    def pair(self, p: Shifts, q: Shifts, rate: float = 0.0) -> BoundingPairs:
        """Two mixtures of shifts; larger distances dominate."""
        low, high = self.span
        if max(map(abs, (*p, *q))) > 2:  # multiples of fewer bits are exact
            low, high = _shorter(low, -1), _shorter(high, 1)
        made = [self._pair(s, p, q, rate) for s in dict.fromkeys((high, low))]
        return BoundingPairs((made[0],), tuple((item,) for item in made[1:]))

    def _pair(self, span: float, p: Shifts, q: Shifts, rate: float) -> MixturePair:
        sides, gaps = [], []
        for side in (p, q):
            used = {m: w for m, w in side.items() if w > 0}
            weights, gap = _weights(list(used.values()))
            sides.append(GaussianMixture(weights, np.array([m * span for m in used]), self.sigma))
            gaps.append(gap)
        return MixturePair(sides[0], sides[1], 1, gaps[0], gaps[1], rate)


def _shorter(x: float, sign: int) -> float:
    """A double with few bits, at most x or at least x."""
    mantissa, exponent = math.frexp(x)
    scaled = mantissa * 2.0**_SHORT_BITS
    return math.ldexp(float(math.floor(scaled) if sign < 0 else math.ceil(scaled)), exponent - _SHORT_BITS)


class _Geometric:
    """Geometric noise on the integers, of ratio e^-epsilon; s an integer."""

    def __init__(self, mechanism: GeometricMechanism) -> None:
        self.span = mechanism.n - 1
        scale = mechanism.scale if isinstance(mechanism, DiscreteLaplace) else None
        self.epsilon = np.longdouble(mechanism.epsilon) if scale is None else 1 / np.longdouble(scale)
        if not np.isfinite(self.epsilon):
            raise DomainError(f"base must have noise; got {mechanism!r}. Pass a finite epsilon.")

    def pair(self, p: Shifts, q: Shifts, rate: float = 0.0) -> BoundingPairs:
        """Two mixtures of shifts; what lies beyond the outermost means has one likelihood ratio."""
        ends = [m * self.span for m in (*p, *q)]
        first, last = min(ends), max(ends)
        if first == last or self.epsilon == 0.0:
            return _NOTHING
        if last - first > _MAX_POSITIONS:
            raise DomainError(
                f"base must have means at most {_MAX_POSITIONS} apart; got {last - first}. Use LaplaceMechanism."
            )
        x = np.arange(first, last + 1)
        inner = -np.expm1(-self.epsilon)
        sides = []
        for side in (p, q):
            mass = np.zeros(x.size, dtype=np.longdouble)
            for m, w in side.items():
                near = np.exp(-self.epsilon * np.abs(x - m * self.span))
                near[1:-1] *= inner
                mass += (np.longdouble(float(w)) + np.longdouble(float(w - Fraction(float(w))))) * near
            sides.append(mass / (1 + np.exp(-self.epsilon)))
        error = _EXTENDED * (2.0 + float((last - first) * self.epsilon))
        return bounding_atoms(sides[0], sides[1], np.ones(x.size, bool), error, error)  # also where e^-20000 is 0


_Noise: TypeAlias = _Normal | _Geometric | LaplaceMechanism


def _base(noise: _Noise, units: int) -> LaplaceBase | PairBase:
    """The curve of the distance ``units`` s, from above."""
    if isinstance(noise, LaplaceMechanism):
        low, high = noise._loss_bounds()
        return LaplaceBase((units * low, units * high))
    return PairBase(noise.pair({units: Fraction(1)}, {0: Fraction(1)}).dominating[0])


def _curve(base: Any, rate: Fraction, first: float = 0.0, second: float = 0.0) -> SampledCurve:
    """That of (1 - q) Q + q P against Q, where the base is that of P against Q and the constants are 0."""
    ends = doubles_around(rate)
    return SampledCurve((log_ends(ends),), (base,), ends, first, second)


def _pair_of_curves(base: Any, reversed_base: Any, rate: Fraction) -> LogCurvePair:
    """(1 - q) Q + q P against Q, of the curves of P against Q and of Q against P."""
    return LogCurvePair(_curve(base, rate), AddedCurve(reversed_base, doubles_around(rate)), 1)


def _removal(noise: _Noise, rate: Fraction, units: int) -> BoundingPairs:
    """(1 - q) Z_0 + q Z_(units s) against Z_0."""
    if isinstance(noise, LaplaceMechanism):
        return BoundingPairs((_pair_of_curves(_base(noise, units), _base(noise, units), rate),))
    ends = doubles_around(rate)
    if ends[0] != ends[1] and ends[1] < _SMALL_RATE and isinstance(noise, _Normal):
        return _bracketed(*(_removal(noise, Fraction(end), units) for end in reversed(ends)))
    double = ends[0] if ends[0] == ends[1] else 0.0
    return noise.pair({0: 1 - rate, units: rate}, {0: Fraction(1)}, double)


def _replacement(noise: _Noise, rate: Fraction) -> BoundingPairs:
    """(1 - q) Z_0 + q Z_s against (1 - q) Z_0 + q Z_-s."""
    if isinstance(noise, LaplaceMechanism):
        curve = _curve(_base(noise, 1), rate, -noise._loss_bounds()[1])
        return BoundingPairs((LogCurvePair(curve, curve, 1),))
    return noise.pair({0: 1 - rate, 1: rate}, {0: 1 - rate, -1: rate})


def _drawn(noise: _Noise, rate: Fraction, relation: str) -> BoundingPairs:
    """A sample of fixed size, without replacement."""
    if relation == "add_or_remove" or rate == 1:  # a record of which all are drawn is shifted by one distance
        return _removal(noise, rate, 1 if relation == "zero_out" else 2)
    if relation == "replace_one":
        curve, placed = _curve(_base(noise, 2), rate), _removal(noise, rate, 2).alternatives[0]
        reversed_pairs = tuple(pair.reversed() for pair in placed)
        return SymmetricBounds(
            (LogCurvePair(curve, curve, 1),), (placed, reversed_pairs, _replacement(noise, rate).alternatives[0])
        )
    if isinstance(noise, LaplaceMechanism):
        forward = _curve(_base(noise, 1), rate, 0.0, -noise._loss_bounds()[0])
        above = -math.inf, log_ends(doubles_around(rate))[1]  # no more is known of the other order
        limit = SampledCurve((above,), (_base(noise, 1),), (1.0, 1.0))
        first: tuple[DominatingPair, ...] = (LogCurvePair(forward, limit, 1),)
        second: tuple[DominatingPair, ...] = tuple(pair.reversed() for pair in _removal(noise, rate, 1).dominating)
    else:
        worst = noise.pair({-1: 1 - rate, 1: rate}, {-1: 1 - rate, 0: rate})
        first = worst.alternatives[0]
        second = noise.pair({1: Fraction(1)}, {1: 1 - rate, 0: rate}).alternatives[0]
        forward = whole(PairBase(worst.dominating[0]))
    return BoundingPairs((LogCurvePair(forward, _curve(_base(noise, 1), rate), 1),), (first, second))


def _drawn_again(noise: _Noise, size: int, sample: int, relation: str) -> BoundingPairs:
    """A sample of fixed size, with replacement; rare numbers of draws count as all draws, or as none from below."""
    item = Fraction(1, size)
    exact = [math.comb(sample, j) * item**j * (1 - item) ** (sample - j) for j in range(sample + 1)]
    weights = {j: w for j, w in enumerate(exact) if w >= _LEAST_WEIGHT}
    lost = 1 - sum(weights.values(), Fraction(0))
    rare = {sample: Fraction(max(next_above(float(lost)), _LEAST_WEIGHT))} if lost else {}
    larger, smaller = {**weights, **rare}, {**weights, 0: weights.get(0, Fraction(0)) + lost}
    if relation == "add_or_remove" and not isinstance(noise, LaplaceMechanism):
        return _bracketed(*(noise.pair(_multiples(some, 2), {0: Fraction(1)}) for some in (larger, smaller)))
    drawn, rate = [j for j in larger if j], 1 - exact[0]
    logs = tuple(log_ends(doubles_around(larger[j])) for j in drawn)
    bases = tuple(_base(noise, 2 * j) for j in drawn)
    curve = SampledCurve(logs, bases, doubles_around(rate))
    bounds = SymmetricBounds if relation == "replace_one" else BoundingPairs
    if isinstance(noise, LaplaceMechanism):
        once = _removal(noise, rate, 1 if relation == "zero_out" else 2)
        if relation != "add_or_remove":
            return bounds((LogCurvePair(curve, curve, 1),), (once.dominating, once.reversed().dominating))
        labelled = LabelledPair(tuple(log_ends(doubles_around(larger[j] / rate)) for j in drawn),
                                tuple(LogCurvePair(whole(base), whole(base), 1) for base in bases), 1)
        return BoundingPairs((_pair_of_curves(PairBase(labelled), PairBase(labelled), rate),), (once.dominating,))
    other = -1 if relation == "replace_one" else 0  # of the record on the other side
    alternatives = tuple(noise.pair(_multiples(smaller, 1 - y), _multiples(smaller, other - y)).alternatives[0]
                         for y in (-1, 1, 0))
    return bounds((LogCurvePair(curve, curve, 1),), alternatives)


def _multiples(weights: Shifts, step: int) -> Shifts:
    """The weights at ``step`` times their places."""
    return {step * j: w for j, w in weights.items()} if step else {0: Fraction(1)}


def _line(base: Any, scheme: str) -> _Noise:
    """Noise on the line of a mechanism with a sensitivity."""
    if isinstance(base, GaussianMechanism):
        sigma, span = normal_noise(base)
        return _Normal(sigma, (span, span))
    if isinstance(base, LaplaceMechanism):
        return base
    if isinstance(base, GeometricMechanism):
        return _Geometric(base)
    result = _joined_normal(base)
    if result is not None:
        return result
    raise DomainError(
        f"base must have noise on the line and a sensitivity for {scheme}; got {validate.shown(base)}. Pass a "
        "GaussianMechanism, a LaplaceMechanism or a GeometricMechanism."
    )


def _joined_normal(base: Any) -> _Normal | None:
    """Several releases with normal noise on one sample, as one of the distance sqrt(sum of squares)."""
    pairs: Any = getattr(base, "forward_pairs", None)
    if pairs is None or pairs.dominated:
        return None
    squares = [pair.squared_gaussian_distance for pair in pairs.dominating]
    if None in squares:
        return None
    square = sum((n * pair.count for n, pair in zip(squares, pairs.dominating, strict=True)), Fraction(0))
    return _Normal(1.0, square_root_enclosure((square, square)))


def _poisson(base: Any, rate: Fraction) -> BoundingPairs:
    """The pair of a record that takes part with this rate, of any base with a pair."""
    if isinstance(base, (GaussianMechanism, LaplaceMechanism, GeometricMechanism)):
        return _removal(_line(base, ""), rate, 1)
    if hasattr(base, "forward_pairs"):
        normal, product = _joined_normal(base), _product(base.forward_pairs)
        if normal is not None:
            return _removal(normal, rate, 1)
        if product:
            return _poisson_of_pair(product, rate)
        if isinstance(base, _OneSample):
            raise DomainError(
                f"base must be releases of one kind in a list; got {validate.shown(list(base))}. Pass compose of the "
                "list."
            )
        return _poisson_of_composition(base, rate)
    read = read_pair("base", base)
    if isinstance(base, AnyChannel) and read.forward != read.backward:
        raise DomainError(
            f"base must tell which secret has the record; got {validate.shown(base)}. Pass a tuple (p, q), p with it."
        )
    pairs = read.forward.dominating
    if len(pairs) != 1 or not isinstance(pairs[0], (DiscretePair, CurvePair, LaplacePair, LogCurvePair, MixturePair)):
        raise DomainError(
            "base must be a pair of distributions or curves, or a Composition; got "
            f"{validate.shown(base)}. Pass compose(base), of which the privacy curve is sampled."
        )
    made = [_poisson_of_pair(pairs, rate) for pairs in (read.forward.dominating, *read.forward.dominated)]
    return BoundingPairs(made[0].dominating, tuple(item.alternatives[0] for item in made[1:]) or made[0].dominated)


def _poisson_of_pair(pairs: tuple[DominatingPair, ...], rate: Fraction) -> BoundingPairs:
    pair, q = pairs[0], np.longdouble(float(rate))
    if isinstance(pair, DiscretePair):
        with_record, without = (x.astype(np.longdouble) for x in (pair.p, pair.q))
        mixed = (1 - q) * without + q * with_record
        error = max(pair.p_relative_error, pair.q_relative_error) + _EXTENDED
        return bounding_atoms(mixed, without, (mixed > 0.0) & (without > 0.0), error, pair.q_relative_error)
    if isinstance(pair, MixturePair) and len(pair.p) + len(pair.q) <= _MOST_COMPONENTS:
        return BoundingPairs((_mixed(pair, rate),))
    return BoundingPairs((_pair_of_curves(PairBase(pair), PairBase(pair.reversed()), rate),))


def _mixed(pair: MixturePair, rate: Fraction) -> MixturePair:
    """(1 - q) Q + q P of mixtures, and Q."""
    sides = ((pair.q, 1 - rate), (pair.p, rate))
    exact = [share * Fraction(w) for side, share in sides for w in side.weights.tolist()]
    weights, gap = _weights(exact)
    means = np.concatenate([side.means.reshape(-1) for side, _ in sides])
    sigmas = np.concatenate([side.sigmas.reshape(-1) for side, _ in sides])
    error = max(pair.p_relative_error, pair.q_relative_error) + gap
    return MixturePair(GaussianMixture(weights, means, sigmas), pair.q, 1, error, pair.q_relative_error)


def _poisson_of_composition(base: Any, rate: Fraction) -> BoundingPairs:
    def pair(bounds: BoundingPairs, reversed_bounds: BoundingPairs) -> tuple[DominatingPair, ...]:
        item = type(base)(bounds, reversed_bounds, base.count, True)
        return (_pair_of_curves(CompositionBase(item, "forward"), CompositionBase(item, "backward"), rate),)

    pairs, other = base.forward_pairs, base.backward_pairs
    alternatives = [(BoundingPairs(a), BoundingPairs(b)) for a, b in zip(pairs.dominated, other.dominated, strict=True)]
    above = BoundingPairs(pairs.dominating), BoundingPairs(other.dominating)
    return BoundingPairs(pair(*above), tuple(pair(*alternative) for alternative in alternatives))


def _product(bounding: BoundingPairs) -> tuple[DominatingPair, ...]:
    """Discrete releases on one sample as one pair, where their outcomes are few; else none."""
    pairs = [pair for pair in bounding.dominating for _ in range(min(pair.count, 2 + _MAX_PRODUCT))]
    discrete = [pair for pair in pairs if isinstance(pair, DiscretePair)]
    sizes = math.prod(pair.p.size for pair in discrete)
    if bounding.dominated or not pairs or len(discrete) < len(pairs) or sizes > _MAX_PRODUCT:
        return ()
    p, q = (np.ones(1, dtype=np.longdouble) for _ in range(2))
    for pair in discrete:
        p, q = np.multiply.outer(p, pair.p).ravel(), np.multiply.outer(q, pair.q).ravel()
    errors = [1.01 * sum(getattr(pair, name) for pair in pairs) + len(pairs) * _EXTENDED
              for name in ("p_relative_error", "q_relative_error")]
    result = bounding_atoms(p, q, (p > 0.0) & (q > 0.0), *errors)
    return () if result.dominated else result.dominating


class _OneSample(tuple[Any, ...]):
    """Several releases on one sample."""

    __slots__ = ()

    @property
    def forward_pairs(self) -> BoundingPairs:
        """The pairs of all releases."""
        read = [read_pair(f"base[{i}]", element).forward for i, element in enumerate(self)]
        exact = tuple(pair for bounding in read for pair in bounding.alternatives[0])
        above = tuple(pair for bounding in read for pair in bounding.dominating)
        return BoundingPairs(above, (exact,) if any(bounding.dominated for bounding in read) else ())

    def __repr__(self) -> str:
        return repr(list(self))


def _checked_base(base: Any) -> Any:
    """A base that can be hashed: a list as releases on one sample, vectors of probabilities as tuples."""
    if isinstance(base, list):
        if not base:
            raise DomainError("base must have at least one release; got an empty list. Pass a mechanism.")
        return _OneSample(_checked_base(item) for item in base)
    return base if isinstance(base, _OneSample) else hashable_pair(base)


def _checked_rate(rate: ArrayLike) -> float:
    return validate.scalar("rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))


class PoissonSampled(PairObject):
    """A mechanism on a Poisson sample: every record takes part with probability ``rate``, independently.

    Parameters
    ----------
    base : mechanism, pair, Composition or list
        What is released of the sample: GaussianMechanism, LaplaceMechanism, GeometricMechanism, a tuple ``(p, q)`` of
        distributions or vectors of probabilities with p where the record takes part, a channel whose secrets are alike,
        a Composition; or a list of mechanisms of one kind that all see one and the same sample.
    rate : float
        Probability that a record is in the sample, between 0 and 1.
    relation : {"add_or_remove", "replace_one", "zero_out"}, default "add_or_remove"
        How neighbouring data sets differ. The sensitivity of a mechanism is that of one contribution: two values of one
        record are up to twice that apart.

    Raises
    ------
    DomainError
        For numbers out of range, another relation, or ``replace_one`` of a base without noise on the line.

    Notes
    -----
    ``compose`` takes it as a pair, whose forward direction is the removal of a record. Removing is not always the worse
    one: the default of its answers is the worst. All relations are exact here.

    **Accuracy** as the certified bounds say, against high-precision arithmetic by ``tests/enclosures/test_sampled.py``.

    Source: Li, Qardaji and Su 2012; Zhu, Dong and Wang 2022, theorem 11; the head of ``fastpriv/pairs/sampled.py``.

    Examples
    --------
    >>> from fastpriv import LaplaceMechanism, compose
    >>> from fastpriv.pairs import PoissonSampled
    >>> steps = compose(PoissonSampled(LaplaceMechanism(scale=2.0), rate=0.25), 2)
    >>> print(f"{steps.delta(0.0625, direction='forward'):.4f}; {steps.delta(0.0625, direction='backward'):.4f}")
    0.0388 [0.0388, 0.0389]; 0.0452 [0.0452, 0.0453]
    """

    __slots__ = _fields = ("base", "rate", "relation")

    base: Any
    rate: float
    relation: Relation

    def __init__(self, base: Any, rate: ArrayLike, relation: Relation = "add_or_remove") -> None:
        self._set(
            base=_checked_base(base), rate=_checked_rate(rate),
            relation=validate.choice("relation", relation, _RELATIONS),
        )
        if self.relation == "replace_one":
            _line(self.base, 'relation="replace_one"')
        else:
            _poisson(self.base, Fraction(self.rate or 0.5))  # raises

    def _bounding_pairs(self) -> BoundingPairs:
        if self.rate == 0.0:
            return _NOTHING
        if self.relation == "replace_one":
            return _replacement(_line(self.base, 'relation="replace_one"'), Fraction(self.rate))
        return _poisson(self.base, Fraction(self.rate))


class FixedSizeSampled(PairObject):
    """A mechanism on a sample of fixed size, drawn uniformly.

    Parameters
    ----------
    base : GaussianMechanism, LaplaceMechanism, GeometricMechanism, or a list of GaussianMechanisms
        Noise on the sum over the sample. Its sensitivity is that of one contribution: of a GeometricMechanism, n - 1. A
        list is released of one sample.
    size : int
        Records of the data set, of the larger one where a record is added or removed.
    sample : int
        Records that are drawn, at most ``size``, and fewer where the smaller data set has fewer.
    replacement : bool, default False
        Whether a record may be drawn several times; then ``sample`` is at most 1000.
    relation : {"add_or_remove", "replace_one", "zero_out"}, default "add_or_remove"
        How neighbouring data sets differ.

    Raises
    ------
    DomainError
        For numbers out of range, another relation, or a base without noise on the line.

    Notes
    -----
    The record takes the place of another one, so that the sum moves by up to two sensitivities: the guarantee is weaker
    than that of a Poisson sample at the rate sample / size.

    Exact for ``add_or_remove``, for one step without replacement, and where all records are drawn. Several steps of the
    other relations, these with replacement, and Laplace noise with replacement have an upper bound that is proved and a
    lower one of concrete data sets.

    **Accuracy** against all data sets of 3 to 5 records and high-precision arithmetic by
    ``tests/enclosures/test_sampled.py``. Where a record is replaced and noise is normal, the upper bound is the
    composition of the curve of one step: of two steps within 5e-13 (1 + |log delta|), of more within 1e-8 where rates
    are above about 0.005 (``test_fixed_size_samples.py``), else on a grid, within 1e-4 (``test_common_grids.py``).

    Source: Balle, Barthe and Gaboardi 2018; Zhu, Dong and Wang 2022; Lebeda, Regehr, Kamath and Steinke 2024; the head
    of ``fastpriv/pairs/sampled.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, compose
    >>> from fastpriv.pairs import FixedSizeSampled, PoissonSampled
    >>> noise = GaussianMechanism(sigma=2.0, sensitivity=1.0)
    >>> print(f"{compose(FixedSizeSampled(noise, size=64, sample=8)).delta(1.0).upper:.1e}")
    4.7e-04
    >>> print(f"{compose(PoissonSampled(noise, rate=0.125)).delta(1.0).upper:.1e}")
    1.5e-09
    """

    __slots__ = _fields = ("base", "size", "sample", "replacement", "relation")

    base: Any
    size: int
    sample: int
    replacement: bool
    relation: Relation

    def __init__(
        self, base: Any, size: int, sample: int, replacement: bool = False, relation: Relation = "add_or_remove"
    ) -> None:
        records = validate.count("size", size, 1, _MAX_SIZE)
        again = validate.flag("replacement", replacement)
        neighbours = validate.choice("relation", relation, _RELATIONS)
        most = _MAX_DRAWS if again else records
        if not again and neighbours == "add_or_remove":
            most -= 1
        if records == 1 and neighbours == "add_or_remove":
            raise DomainError("size must be at least 2 for a smaller data set with records; got 1. Pass the larger.")
        self._set(base=_checked_base(base), size=records, sample=validate.count("sample", sample, 0, most),
                  replacement=again, relation=neighbours)
        _line(self.base, "a sample of fixed size")

    def _bounding_pairs(self) -> BoundingPairs:
        if self.sample == 0:
            return _NOTHING
        noise = _line(self.base, "a sample of fixed size")
        if self.replacement:
            return _drawn_again(noise, self.size, self.sample, self.relation)
        return _drawn(noise, Fraction(self.sample, self.size), self.relation)


class TruncatedPoissonSampled(PairObject):
    """A mechanism on a Poisson sample of which a uniform subset of ``cap`` records is kept where there are more.

    Parameters
    ----------
    base : GaussianMechanism, LaplaceMechanism, GeometricMechanism, or a list of GaussianMechanisms
        Noise on the sum over the sample, with the sensitivity of one contribution. A list is released of one sample.
    size : int
        Records of the data set, of the larger one where a record is added or removed.
    rate : float
        Probability that a record is drawn, between 0 and 1.
    cap : int
        Most records of a sample, at most ``size``.
    relation : {"add_or_remove", "replace_one", "zero_out"}, default "add_or_remove"
        How neighbouring data sets differ.

    Raises
    ------
    DomainError
        For numbers out of range, another relation, or a base without noise on the line.

    Notes
    -----
    The upper bound is proved; whether it is attained is not known. The lower one is that of concrete data sets.

    It covers a uniform subset of the records that were drawn, and no other rule: neither the first ``cap`` of a fixed
    order, nor samples that are drawn again.

    **Accuracy** against high-precision arithmetic by ``tests/enclosures/test_sampled.py``.

    Source: the head of ``fastpriv/pairs/sampled.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, compose
    >>> from fastpriv.pairs import TruncatedPoissonSampled
    >>> step = TruncatedPoissonSampled(GaussianMechanism(2.0, 1.0), size=64, rate=0.125, cap=10)
    >>> print(f"{compose(step).delta(0.5).upper:.2e}")
    5.77e-04
    """

    __slots__ = _fields = ("base", "size", "rate", "cap", "relation")

    base: Any
    size: int
    rate: float
    cap: int
    relation: Relation

    def __init__(self, base: Any, size: int, rate: ArrayLike, cap: int, relation: Relation = "add_or_remove") -> None:
        records = validate.count("size", size, 1, _MAX_SIZE)
        self._set(
            base=_checked_base(base), size=records, rate=_checked_rate(rate),
            cap=validate.count("cap", cap, 1, records), relation=validate.choice("relation", relation, _RELATIONS),
        )
        _line(self.base, "a truncated sample")

    def _bounding_pairs(self) -> BoundingPairs:
        noise = _line(self.base, "a truncated sample")
        return _NOTHING if self.rate == 0.0 else _truncated(noise, self.size, self.rate, self.cap, self.relation)


def _truncated(noise: _Noise, size: int, rate: float, cap: int, relation: str) -> BoundingPairs:
    """A Poisson sample with a cap: the sum of the curves of the two labels, between concrete data sets."""
    if rate == 1.0 and cap < size:  # all are drawn, and the record takes the place of another one
        return _drawn(noise, Fraction(cap, size), relation)
    result = overflow(size, rate, cap)
    small = _taking_part(noise, Fraction(rate), relation)
    if result is None:
        return small
    full = _drawn(noise, Fraction(result.rate[1]), relation).dominating
    pair = LabelledPair((result.log_rest, result.log_tau), (*small.dominating, *full), 1)
    least = math.exp(result.log_rest[0]) * rate + math.exp(result.log_tau[0]) * result.rate[0]
    null = _taking_part(noise, Fraction(least * (1 - 2.0**-40)), relation).alternatives[0]
    return BoundingPairs((pair,), (null, *_opposite_others(noise, result, Fraction(rate), cap, relation)))


def _taking_part(noise: _Noise, rate: Fraction, relation: str) -> BoundingPairs:
    """The record is there with this rate, and all others contribute 0."""
    return _replacement(noise, rate) if relation == "replace_one" else _removal(noise, rate, 1)


def _opposite_others(
    noise: _Noise, overflow: Overflow, rate: Fraction, cap: int, relation: str
) -> tuple[tuple[DominatingPair, ...], ...]:
    """Concrete data sets: all others contribute -s, the record s; none where a weight may underflow."""
    least = min(overflow.log_tau[0], overflow.log_rest[0])
    if not overflow.sizes.size or least < _LEAST_LOG or isinstance(noise, LaplaceMechanism):
        return ()
    tau, full = Fraction(math.exp(overflow.log_tau[1])), Fraction(overflow.rate[1])
    joins, moves = {"add_or_remove": (0, 0), "replace_one": (-1, 0), "zero_out": (0, 1)}[relation]
    sides: list[dict[int, Fraction]] = [{}, {}]
    for side, step, swap in zip(sides, (1, joins), (2, moves), strict=True):
        for j, b in enumerate(overflow.sizes.tolist()):
            for shift, w in ((-j, 1 - rate), (step - j, rate)):
                side[shift] = side.get(shift, Fraction(0)) + w * Fraction(b)
        for shift, w in ((-cap, 1 - full), (swap - cap, full)):
            side[shift] = side.get(shift, Fraction(0)) + w * tau
    error = overflow.error + 8 * (overflow.log_tau[1] - overflow.log_tau[0]) + 2.0**-48
    error += (overflow.rate[1] - overflow.rate[0]) / min(
        overflow.rate[0], 1.0 - overflow.rate[1], key=lambda x: x or 1.0
    )
    used = [{shift: w for shift, w in side.items() if w} for side in sides]
    if error > _LARGEST_ERROR or min(min(side.values()) for side in used) < _LEAST_WEIGHT:
        return ()
    item, *_ = noise.pair(used[0], used[1]).alternatives[0]
    errors = {name: getattr(item, name) + error for name in ("p_relative_error", "q_relative_error")}
    return ((replace(item, **errors),),)  # type: ignore[type-var]
