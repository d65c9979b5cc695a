"""Curves of mechanisms on samples, by those of the mechanism on all records, in logarithms.

Notation: a = e^epsilon >= 1; q the rate; H_j(w) = sup_E P_j(E) - w Q_j(E) the curve of a base, at a level w = e^lambda.

* ``SampledCurve``: sum_j v_j H_j(w), w = a c + (a - 1) (1 - q) / q c'. With one base and v = q this is
    - c = c' = 1: (1 - q) Q + q P against Q, as w = 1 + (a - 1) / q (Li, Qardaji and Su 2012; Balle, Barthe and
      Gaboardi 2018);
    - Laplace noise Z_m around m, in units of its scale, s >= 0: P - a Q is q (Z_s - w Z_0) beyond the middle of two
      mixtures whose denominator of the likelihood ratio is one exponential there. ((1 - q) Z_0 + q Z_s, (1 - q) Z_0 + q
      Z_-s): c = e^-s, c' = 1. ((1 - q) Z_-s + q Z_s, (1 - q) Z_-s + q Z_0): c = 1, c' = e^-s. There H = 1 -
      e^((lambda - s) / 2) for lambda in [-s, s].
* ``AddedCurve``: Q against (1 - q) Q + q P: f H'(a q / f), f = 1 - a (1 - q), with H' the curve of Q against P; 0 where
  f <= 0. It follows from 1 - a + a H(1 / a), without its cancellation.

The curve of a label that is revealed is the first one at the rate 1, with a base for each label.

All of them rise with the rate, and fall with epsilon, as the bounds use: a curve at a level with an error is bounded at
the ends of the error, and a rate between two doubles by its ends.
"""

# bounds: proved - numbers of roundings

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.exact_linear_algebra import square_root_enclosure
from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from .log_bounds import LogBounds
from .protocol import USUAL_WIDTH, Bounds, DominatingPair, FrozenRecord, SampledPair

Bracket = tuple[FloatArray, FloatArray]  # logarithms, from below and from above
LogCurve = Callable[[FloatArray], Bracket]
Ends = tuple[float, float]

# bound: proved - of a level, in units of the sizes that it is made of: at most 6 roundings of each, and functions of 2
_LEVEL_ERROR = 16 * UNIT_ROUNDOFF
# bound: none - relative widths of compositions of closed forms, smooth ones and others, that a grid aims at
_SMALL_WIDTH, _LEAST_WIDTH = 1e-8, 1e-13
_HALVINGS = 64  # of the bracket of the end of a curve
_MOST_CLOSED = 4  # closed forms of a curve that may be evaluated at very many levels
# bound: proved - the least rate of an upper bound: curves rise with the rate
_LEAST_RATE = 1e-300
# bound: none - ratios of distance and sigma, and rates, outside of which symmetric pairs are like other curves
_RATIOS, _RATES = (1e-3, 4e3), (1e-30, 1.0 - 1e-9)


def log_ends(x: Ends) -> Ends:
    """Of the logarithm of numbers between two."""
    low, high = (math.log(item) if item > 0.0 else -math.inf for item in x)
    return next_below(low, 2), min(next_above(high, 2), 0.0) if x[1] < 1.0 else (0.0 if x[1] == 1.0 else high)


def _rounded_outward(lower: Any, upper: Any, roundings: float) -> Bracket:
    """Logarithms moved outward by so many roundings of 1 + their sizes."""
    ends = []
    for row, sign in ((lower, -1.0), (upper, 1.0)):
        with np.errstate(invalid="ignore"):
            shifted = row + sign * roundings * UNIT_ROUNDOFF * (1.0 + np.abs(row))
        ends.append(np.minimum(np.where(np.isfinite(row), shifted, row), 0.0))
    return ends[0], ends[1]


@dataclass(frozen=True, slots=True, eq=False)
class LogCurvePair(DominatingPair):
    """A pair by the curves of P against Q and of Q against P, bounds of logarithms at epsilon >= 0."""

    forward: LogCurve
    backward: LogCurve
    count: int

    @property
    def aimed_width(self) -> float:
        """Less where both curves are sums of few closed forms; curves with kinks take all points that there may be."""
        curves = self.forward, self.backward
        bases = [base for curve in curves for base in getattr(curve, "bases", (getattr(curve, "base", None),))]
        if len(bases) > _MOST_CLOSED or not all(getattr(item, "is_closed_form", False) for item in bases):
            return USUAL_WIDTH
        return _LEAST_WIDTH if any(isinstance(entry, LaplaceBase) for entry in bases) else _SMALL_WIDTH

    @property
    def sampled_gaussian(self) -> SampledPair | None:
        """The parameters where both curves are that of a sample with normal noise."""
        curve = self.forward
        if not isinstance(curve, SampledCurve) or curve != self.backward or curve.weights != (log_ends(curve.rate),):
            return None
        square = getattr(curve.bases[0], "pair", self).squared_gaussian_distance
        if square is None or curve.first or curve.second:
            return None
        low, high = square_root_enclosure((square, square))
        if not (_RATIOS[0] <= low and high <= _RATIOS[1] and _RATES[0] <= curve.rate[0] and curve.rate[1] <= _RATES[1]):
            return None
        return SampledPair((low, high), (next_above(1.0 / low), next_below(1.0 / high)), curve.rate, "symmetric")

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Bounds of the logarithm."""
        return _log_bounds(self.forward, epsilon)

    def largest_loss(self) -> Bounds:
        """Where the bounds become 0."""
        return _largest_loss(self.repeated(1))

    @property
    def least_loss(self) -> float:
        """That of Q against P."""
        most = self.reversed().largest_loss()[1]
        return -most if most < math.inf else 0.0

    def reversed(self) -> LogCurvePair:
        """Q against P."""
        return self if self.forward == self.backward else LogCurvePair(self.backward, self.forward, self.count)


@lru_cache(maxsize=64)
def _largest_loss(pair: LogCurvePair) -> Bounds:
    low, high = DominatingPair.largest_loss(pair)
    if high < math.inf:
        high = bisect(lambda x: pair.forward(np.array([x]))[1][0] == -np.inf, low, high, _HALVINGS)[1]
        low = bisect(lambda x: pair.forward(np.array([x]))[0][0] == -np.inf, low, high, _HALVINGS)[0]
    return low, high


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPair(DominatingPair):
    """One of several pairs, each with a probability that is the same on both sides; which one it is, is told.

    ``weights`` are logarithms, each between two doubles.
    """

    weights: tuple[Ends, ...]
    pairs: tuple[DominatingPair, ...]
    count: int

    @property
    def labels(self) -> tuple[tuple[Ends, DominatingPair], ...]:
        """Weights and pairs."""
        return tuple(zip(self.weights, self.pairs, strict=True))

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """The sum of all curves."""
        return _log_bounds(SampledCurve(self.weights, tuple(map(PairBase, self.pairs)), (1.0, 1.0)), epsilon)

    def reversed(self) -> LabelledPair:
        """Every pair in its other order."""
        return LabelledPair(self.weights, tuple(pair.reversed() for pair in self.pairs), self.count)


def _log_bounds(curve: LogCurve, epsilon: FloatArray) -> LogBounds:
    lower, upper = curve(np.asarray(epsilon, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        value = np.where(np.isfinite(lower), 0.5 * lower + 0.5 * upper, upper)
    return LogBounds(np.clip(value, lower, upper), lower, upper, {}, "curve of a sample")


@dataclass(frozen=True, slots=True, eq=False)
class LaplaceBase(FrozenRecord):
    """Laplace noise: the largest loss s, between two doubles."""

    is_closed_form = True

    loss: Ends

    def __call__(self, low: FloatArray, high: FloatArray) -> Bracket:
        """Bounds at levels between two; what is meant is at least -s."""
        rows = []
        for level, s, sign in ((high, self.loss[0], 1.0), (low, self.loss[1], -1.0)):
            gap = np.minimum(np.maximum(level, -s) - s, 0.0)
            gap = np.minimum(gap + sign * 2 * UNIT_ROUNDOFF * np.abs(gap), 0.0)
            with np.errstate(divide="ignore"):
                rows.append(np.log(-np.expm1(0.5 * gap)))
        return _rounded_outward(rows[0], rows[1], 8)


@dataclass(frozen=True, slots=True, eq=False)
class PairBase(FrozenRecord):
    """Another pair, with its relative errors; its curve at levels of at least 0."""

    pair: DominatingPair

    @property
    def is_closed_form(self) -> bool:
        """Whether both are normal distributions of one sigma."""
        return self.pair.squared_gaussian_distance is not None

    def __call__(self, low: FloatArray, high: FloatArray) -> Bracket:
        """Bounds at levels between two."""
        g, h = self._errors()
        lower = self.pair.log_delta(high + next_above(1.01 * (g + h)) if g + h else high).lower - 1.01 * g
        return _rounded_outward(lower, lower, 8)[0] if g + h else lower, self.upper(low)

    def upper(self, levels: FloatArray) -> FloatArray:
        """The upper bound alone."""
        g, h = self._errors()
        if g == h == 0.0:
            return self.pair.log_delta(levels).upper
        shifted = levels - next_above(1.01 * (g + h))
        upper = self.pair.log_delta(np.maximum(shifted, 0.0)).upper
        with np.errstate(divide="ignore"):
            beyond = np.log(-np.expm1(np.minimum(shifted, 0.0)))
        upper = np.logaddexp(upper, beyond) + 1.01 * g
        return _rounded_outward(upper, upper, 8)[1]

    def largest_loss(self) -> float:
        """No less than the level from which on the upper bound is 0."""
        return float(next_above(self.pair.largest_loss()[1] + 1.1 * sum(self._errors())))

    def _errors(self) -> Ends:
        """Those of both sides; 0 where the curve holds for them too."""
        pair = self.pair
        return (pair.p_relative_error, pair.q_relative_error) if pair.mixtures is not None else (0.0, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class CompositionBase(FrozenRecord):
    """The releases of a composition, in one direction, or another object with such a curve."""

    composition: Any
    direction: str

    def __call__(self, low: FloatArray, high: FloatArray) -> Bracket:
        """Bounds at levels between two."""
        lower = upper = self.composition.log_delta(high, direction=self.direction)
        if (high != low).any():
            upper = self.composition.log_delta(low, direction=self.direction)
        return np.asarray(lower.lower), np.asarray(upper.upper)

    def upper(self, levels: FloatArray) -> FloatArray:
        """The upper bound alone."""
        return self(levels, levels)[1]

    def largest_loss(self) -> float:
        """No less than the level from which on the upper bound is 0."""
        return float(self.composition.epsilon(0.0, direction=self.direction).upper)


def whole(base: Any) -> SampledCurve:
    """The curve of a base itself."""
    return SampledCurve(((0.0, 0.0),), (base,), (1.0, 1.0))


@dataclass(frozen=True, slots=True, eq=False)
class SampledCurve(FrozenRecord):
    """The first curve of the text at the head: logarithms of the v_j, the bases, the rate, and log c, log c'."""

    weights: tuple[Ends, ...]
    bases: tuple[Any, ...]
    rate: Ends
    first: float = 0.0
    second: float = 0.0

    def __call__(self, epsilon: FloatArray) -> Bracket:
        """Bounds at epsilon >= 0."""
        low, high = self._level(epsilon, self.rate[1], -1.0), self._level(epsilon, self.rate[0], 1.0)
        result = [base(low, high) for base in self.bases]
        rows = [
            np.logaddexp.reduce([w[i] + item[i] for w, item in zip(self.weights, result, strict=True)]) for i in (0, 1)
        ]
        return _rounded_outward(rows[0], rows[1], 8 + 4 * len(result))

    def _level(self, epsilon: FloatArray, rate: float, outward: float) -> FloatArray:
        """lambda, moved outward by its error."""
        odds = (1.0 - rate) / max(rate, _LEAST_RATE)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            remainder = odds * math.exp(self.second) * -np.expm1(-epsilon)
            if self.first == 0.0:
                more, size = np.log1p(remainder), -self.second * remainder / (1.0 + remainder)
            else:
                more, size = np.logaddexp(self.first, np.log(remainder)), 1.0 - self.first + np.abs(np.log(remainder))
            level = epsilon + more
            shifted = level + outward * _LEVEL_ERROR * (epsilon + 2.0 * np.abs(more) + np.nan_to_num(size, posinf=0.0))
        shifted = np.where(np.isfinite(level) & (remainder > 0.0), shifted, level)
        return np.asarray(np.maximum(shifted, 0.0) if self.first == 0.0 else shifted)


@dataclass(frozen=True, slots=True, eq=False)
class AddedCurve(FrozenRecord):
    """The second curve of the text at the head; the base is Q against P."""

    base: Any
    rate: Ends

    def __call__(self, epsilon: FloatArray) -> Bracket:
        """Bounds at epsilon >= 0."""
        rows = []
        for i, (rate, sign) in enumerate(zip(self.rate, (1.0, -1.0), strict=True)):
            selected = math.log1p(-rate) if rate < 1.0 else -math.inf
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                x = epsilon + selected if rate < 1.0 else np.full(epsilon.shape, -np.inf)
                shifted = np.where(np.isfinite(x), x + sign * _LEVEL_ERROR * (epsilon + abs(selected)), x)
                inside = shifted < 0.0
                f = -np.expm1(np.where(inside, shifted, -np.inf))
                level = np.log1p(np.expm1(epsilon) / f) if rate < 1.0 else epsilon  # a q / f = 1 + (a - 1) / f
                error = _LEVEL_ERROR * 2.0 * level if rate < 1.0 else np.zeros(epsilon.shape)
                error, level = (np.where(inside, row, 0.0) for row in (error, level))
            result = self.base(np.maximum(level - error, 0.0), level + error)[i]
            log_f = np.log(f)
            rows.append(np.where(inside, log_f + result, -np.inf))
        return _rounded_outward(rows[0], rows[1], 12)
