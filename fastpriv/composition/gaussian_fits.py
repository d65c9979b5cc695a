"""The least mu for which a pair is mu-GDP: no easier to tell apart than N(0, 1) and N(mu, 1).

Notation: x = e^epsilon, D(x) = sup_E P(E) - x Q(E) and D_mu that of the two normal distributions; the pair is mu-GDP if
D <= D_mu for all x > 0, which for x < 1 says the same of the other direction: two curves over x >= 1. As in
``neyman_pearson`` a line T - A x in x stands for the point (A, T) of levels and powers.

* A point: mu is at least the m with D_m(x) = D(x).
* Between two points the convex D lies below its chord T - A x, which lies below D_m where the point (A, T) lies below
  the trade-off curve of m: m = z(T) - z(A) with normal quantiles z. This proves all of the interval at once; intervals
  that ask for more than the best point are halved.
* Beyond the last point: mixtures of one sigma are mixtures of normal pairs, so that the farthest two components bound m
  from above by joint convexity; where one side is a single normal distribution, D(x) >= w D_m(x / w) with the weight w
  of its farthest component, whose m is the limit for x to infinity. Losses of at most e have the m of randomised
  response. Of independent releases m^2 adds up (Dong, Roth and Su 2022, theorem 3.5). Components of different largest
  sigma have losses with exponential tails, infinite losses have D(infinity) > 0: no mu is large enough.
"""

# bounds: proved - units of rounding of chords in extended precision, and of sums of squares

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray, next_above, next_below
from ..conversions._closed_forms import normal_quantile
from ..pairs.log_bounds import Curve, certified
from ..pairs.protocol import DominatingPair
from . import Composition, compose
from .compositions import certified_curves

_FIRST_POINTS = 65  # of each curve, evenly from 0 to where it ends
_LARGEST_EPSILON = 700.0  # nats: e^epsilon is a double
# bound: none - which points are inverted
_LEAST_DELTA = 1e-290  # delta below it has too few digits to be inverted
_ROUNDS = 48  # of halvings at most
_MOST_HALVED = 64  # intervals that are halved in one round: those that ask for most
# bound: none - how far the two sides of mu may be apart, relative to it
_TARGET = 1e-9
# bound: proved - relative error of the inverse of the Gaussian curve (special.gaussian_noise), and of its reciprocal
_INVERSE_ERROR = 2e-13
# bound: proved - a chord in extended precision and its value as a double
_ROUNDING = 2.0**-50
# bound: proved - a distance over sigma, a square, a product and a sum of at most 2^10 of them in extended precision
_SQUARES_ROUNDING = 2.0**-49
# bound: proved - relative error of gaussian_delta: theorem 1.2 of docs/proofs/gaussian.md
_CURVE_ERROR = 4e-15
# bound: proved - relative error of Phi(-y), for each unit of 1 + y^2, with that of its argument y
_TAIL_ERROR = 1e-14


def gaussian_dp_fit(p: Any, q: Any = None, *, least_delta: ArrayLike = 0.0) -> Estimate:
    """The least mu for which a pair or a composition is mu-GDP, Gaussian differentially private.

    Parameters
    ----------
    p, q
        As ``trade_off_curve``. Both orders of the pair count, as the curve of Gaussian privacy is symmetric.
    least_delta : float, default 0
        Between 0 and 1. The curve delta(epsilon) has to be below that of mu only where it is at least this large, at
        positive epsilon, in both orders: tails that no one will ever see may ask for a large or infinite mu.

    Returns
    -------
    Estimate
        A pure number. Tests prove ``lower``: no smaller mu holds; the pair is ``upper``-GDP, in the range asked for.
        Infinite where no mu holds, and ``upper`` infinite where nothing is known of the tails; ``method`` says why.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for a least delta out of range.

    Notes
    -----
    **Accuracy** the two sides are 1e-9 relative apart, and 1e-13 absolute, where the curve is that sharp and some test
    at a finite epsilon asks for most; ``tests/enclosures/test_gaussian_fits.py``.

    Source: Dong, Roth and Su 2022, definition 2.6; the head of fastpriv/composition/gaussian_fits.py.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, PoissonSampledGaussian, compose, risk
    >>> round(risk.gaussian_dp_fit(compose(GaussianMechanism(4.0, 1.0), 16)).value, 12)
    1.0
    >>> training = compose(PoissonSampledGaussian(sigma=2.0, rate=0.01), 100)
    >>> round(risk.gaussian_dp_fit(training).value, 9)  # as all records might be sampled each time
    5.0
    >>> risk.gaussian_dp_fit([0.75, 0.25], [0.25, 0.75]).value
    1.34897950...
    """
    pair = certified_curves(p, q)
    least = validate.scalar("least_delta", least_delta, "between 0 and 1", lambda x: (x >= 0) & (x < 1))
    if pair.gaussian is not None:
        exact = float(np.longdouble(pair.gaussian[0]) / np.longdouble(pair.gaussian[1]))
        lower, upper = (0.0, 0.0) if exact == 0.0 else (next_below(exact), next_above(exact))
        return _estimate(lower, exact, upper, "exact", "distance / sigma")
    tail = _tail_of(p, q) if least == 0.0 else _Tail(0.0, math.inf, "")
    if tail.least == math.inf or 0.0 < tail.most <= tail.least * (1.0 + 16 * _SQUARES_ROUNDING):
        return _estimate(tail.least, tail.least, tail.most, "certified", tail.reason)
    searches = [_CurveIntervals(curve, least, last)
                for curve, last in zip((pair.forward, pair.backward), tail.largest_loss, strict=True)]
    ends = [search.infinite_mass() for search in searches] if least == 0.0 else [0.0]
    if max(ends) > 0.0:
        return _estimate(math.inf, math.inf, math.inf, "certified", "infinite losses: delta never falls below "
                         f"{max(ends):.6g}")
    lower = tail.least
    for _ in range(_ROUNDS):
        lower = max(lower, *(search.lower for search in searches))
        goal = lower * (1.0 + _TARGET) + 1e-13
        halved = [search.halve(goal) for search in searches]
        if not any(halved):
            break
    upper = max(lower, *(search.upper for search in searches))
    method = "chords of the privacy curve"
    if any(search.open_end for search in searches):
        upper, method = math.inf, "nothing is known of delta at larger epsilons: give a least_delta"
    if tail.most < upper:
        upper, method = max(lower, tail.most), tail.reason
    value = lower if math.isinf(upper) else lower + 0.5 * (upper - lower)
    return _estimate(lower, value, upper, "certified", method)


def _estimate(lower: float, value: float, upper: float, kind: Any, method: str) -> Estimate:
    return Estimate(value, lower, upper, kind=kind, unit="1", method=method)


class _Tail(NamedTuple):
    """Bounds of mu from the structure of the pair, what they rest on, and upper bounds of the losses in both orders."""

    least: float
    most: float
    reason: str
    largest_loss: tuple[float, float] = (math.inf, math.inf)


def _tail_of(p: Any, q: Any) -> _Tail:
    """What is known of the largest losses of a pair that ``compose`` takes."""
    try:
        whole = p if isinstance(p, Composition) else compose(p if q is None else (p, q))
    except DomainError:  # a pair of densities
        return _Tail(0.0, math.inf, "")
    exact = not whole.forward_pairs.dominated
    result = _tail_of_pairs(whole.forward_pairs.dominating)
    forward, backward = (float(whole.epsilon(0.0, direction=side).upper) for side in ("forward", "backward"))
    return result._replace(least=result.least if exact else 0.0, largest_loss=(forward, backward))


def _tail_of_pairs(pairs: Iterable[DominatingPair]) -> _Tail:
    most: Any
    most, single_p, single_q = np.zeros(3, dtype=np.longdouble)
    for pair in pairs:
        fit = pair.gaussian_fit()
        if fit.impossible:
            return _Tail(math.inf, math.inf, fit.impossible)
        single_p += pair.count * fit.p_necessary
        single_q += pair.count * fit.q_necessary
        most += pair.count * fit.sufficient
    least = float(np.sqrt(max(single_p, single_q)))
    reason = "the farthest components, or the largest losses, of each release"
    return _Tail(least * (1 - _SQUARES_ROUNDING), float(np.sqrt(most)) * (1 + _SQUARES_ROUNDING), reason)


class _CurveIntervals:
    """One curve over epsilon >= 0: points, and the mu that each point and each interval asks for."""

    def __init__(self, curve: Curve, least: float, last: float) -> None:
        self.curve, self.least, self.last = curve, least, last
        self.epsilon: FloatArray = np.empty(0)
        self.low, self.high = np.empty((2, 0))
        self.lower = 0.0
        end = self._end()
        self._add(np.linspace(0.0, end, _FIRST_POINTS))
        self._add(end * np.array([1e-9, 1e-6, 1e-4, 1e-3]))
        self.open_end = bool(self.high[-1] > self.least)

    def infinite_mass(self) -> float:
        return float(np.asarray(certified(self.curve, np.asarray(np.inf)).lower))

    def _end(self) -> float:
        """An epsilon from which on the range asked for has ended, or delta is 0 or too small to be used."""

        def ended(epsilon: float) -> bool:
            high = float(np.asarray(certified(self.curve, np.array([epsilon])).upper)[0])
            return high <= max(self.least, _LEAST_DELTA)

        if self.last < _LARGEST_EPSILON:
            return max(self.last, 1e-18)
        epsilon = 1.0
        if ended(epsilon):
            while epsilon > 1e-18 and ended(0.5 * epsilon):
                epsilon *= 0.5
            return epsilon
        while epsilon < _LARGEST_EPSILON and not ended(epsilon):
            epsilon = min(2.0 * epsilon, _LARGEST_EPSILON)
        return epsilon

    def _add(self, epsilon: FloatArray) -> None:
        delta = certified(self.curve, epsilon)
        low, high = np.asarray(delta.lower), np.where(epsilon >= self.last, 0.0, np.asarray(delta.upper))
        usable = (low > max(self.least, _LEAST_DELTA)) & (low < 1.0)
        if usable.any():
            sigma = np.asarray(special.gaussian_noise(epsilon[usable], low[usable]))
            self.lower = max(self.lower, float((1.0 / sigma).max()) * (1.0 - _INVERSE_ERROR))
        order = np.argsort(np.concatenate([self.epsilon, epsilon]), kind="stable")
        self.epsilon, self.low, self.high = (
            np.concatenate(two)[order] for two in ((self.epsilon, epsilon), (self.low, low), (self.high, high))
        )
        self.high = np.minimum.accumulate(self.high)
        self._measure()

    def _measure(self) -> None:
        """The point (A, T) of each interval, and the mu it asks for; 0 outside of the range."""
        x = np.exp(self.epsilon.astype(np.longdouble))
        high = self.high.astype(np.longdouble)
        width = x[:-1] * np.expm1(np.diff(self.epsilon.astype(np.longdouble)))
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.where(width > 0, (high[:-1] - high[1:]) / width, 0.0).astype(np.float64)
        power = np.maximum(high[:-1] + x[:-1] * level, high[1:] + x[1:] * level).astype(np.float64) * (1 + _ROUNDING)
        power = np.clip(next_above(power), 0.0, 1.0)
        used = (self.high[:-1] > self.least) & (np.diff(self.epsilon) > 0)
        self.mu = np.where(used, _separation(level, power), 0.0)
        self.upper = float(self.mu.max(initial=0.0))

    def halve(self, goal: float) -> bool:
        """Halve the intervals that ask for more than ``goal``; False if none does, or can be halved."""
        wide = np.flatnonzero(self.mu > goal)
        if wide.size:
            self.mu[wide[self._is_below(wide, goal)]] = goal
            self.upper = float(self.mu.max(initial=0.0))
            wide = np.flatnonzero(self.mu > goal)
        middle = 0.5 * (self.epsilon[:-1] + self.epsilon[1:])
        wide = wide[(middle[wide] > self.epsilon[:-1][wide]) & (middle[wide] < self.epsilon[1:][wide])]
        if wide.size == 0:
            return False
        wide = wide[np.argsort(-self.mu[wide], kind="stable")[:_MOST_HALVED]]
        self._add(middle[np.sort(wide)])
        return True

    def _is_below(self, index: Any, mu: float) -> Any:
        """Whether the chords of these intervals are below the tangents of the curve of mu at their ends."""
        ends = np.stack([self.epsilon[index], self.epsilon[index + 1]])
        high = np.stack([self.high[index], self.high[index + 1]]).astype(np.longdouble)
        argument = 0.5 * mu + ends / mu
        error = _TAIL_ERROR * (1.0 + argument**2)
        tail = special.ndtr(-argument)
        over = np.asarray(special.gaussian_delta(0.5 * mu, ends)) * (1.0 - _CURVE_ERROR) - high
        x = np.exp(ends.astype(np.longdouble))
        width = x[0] * np.expm1(np.diff(ends.astype(np.longdouble), axis=0)[0])
        fall = (high[0] - high[1]) / width
        first, second = tail[0] * (1.0 + error[0]) - fall, fall - tail[1] * (1.0 - error[1])
        crossing = over[0] * second + over[1] * first - first * second * width
        terms = np.abs(over[0] * second) + np.abs(over[1] * first) + np.abs(first * second * width)
        inside = (first > 0.0) & (second > 0.0)
        return (over > 0.0).all(axis=0) & (~inside | (crossing > 2.0**-58 * terms))


def _separation(level: FloatArray, power: FloatArray) -> FloatArray:
    """Upper bounds of z(T) - z(A)."""
    (first, item), (second, other) = normal_quantile(level), normal_quantile(power)
    with np.errstate(invalid="ignore"):
        value = first - second
        error = item + other + 2.0**-60 * (np.abs(first) + np.abs(second))
        value = np.asarray(value + error, dtype=np.float64)
    trivial = (power <= level) | np.isnan(value)
    value = np.where((power >= 1.0) & (level < 1.0), np.inf, value)
    return np.where(trivial & ~((power >= 1.0) & (level < 1.0)), 0.0, np.maximum(value, 0.0))
