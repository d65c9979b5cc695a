"""Two-sided bounds of the integral of a privacy curve that is known at some points.

Notation: delta the curve, a = e^epsilon, h the length of a piece [epsilon, epsilon + h]. A privacy curve
sup_E P(E) - a Q(E) is convex and non-increasing in a, so between two points it lies below their chord and above the
continuations of the neighbouring chords, all straight lines in a. The weights are sums of e^(k epsilon), k = -1, 0, 1,
against which a straight line integrates in closed form, or 1/(1 + a), for which Gauss-Legendre on short pieces leaves
less than 1e-19. Every term is positive, so that rounding is a few units in the last place of the sum.

Where the points contradict convexity only monotonicity is used.
"""

# bounds: tested by enclosures/test_information_from_curves - rounding of a chord's difference

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDING", "Bracket", "Weight", "bend", "rounding_seen", "sandwich", "tail_below"]

FloatArray = NDArray[np.float64]
# bound: tested by enclosures/test_information_from_curves - relative rounding of any sum of pieces
ROUNDING = 2e-14  # relative, of any sum of pieces
# bound: tested by enclosures/test_information_from_curves - relative rounding of the end of a continued chord
_CHORD = 2e-15  # relative, of the end of a continued chord
# bound: proved - the pole of 1/(1 + e^epsilon) is pi away, so that 6 nodes leave below 1e-19
_SHORT = 0.25  # pieces for Gauss-Legendre: the pole of 1/(1 + e^epsilon) is pi away, so 6 nodes leave below 1e-19
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(6)
_GONE = 745.0  # e^-epsilon is below the smallest double


class Bracket(NamedTuple):
    """An integral in nats with its bounds; ``proved`` says whether the bounds are more than an error estimate."""

    value: float
    lower: float
    upper: float
    proved: bool
    method: str
    evaluations: int


@dataclass(frozen=True)
class Weight:
    """The sum of e^(rate epsilon) over ``rates``, or 1/(1 + e^epsilon) when there are none."""

    rates: tuple[int, ...]

    @property
    def growth(self) -> int:
        """The largest rate; the weight is at most ``scale`` times e^(growth epsilon)."""
        return max(self.rates, default=-1)

    @property
    def scale(self) -> int:
        """Number of exponentials."""
        return max(1, len(self.rates))

    def times(self, epsilon: FloatArray, value: FloatArray) -> FloatArray:
        """weight(epsilon) value, also where the exponential alone overflows."""
        if not self.rates:
            return np.asarray(value / (1.0 + np.exp(epsilon)))
        return np.asarray(sum(_scaled(value, rate * epsilon) for rate in self.rates))

    def line(self, epsilon: FloatArray, h: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
        """Integral over [epsilon, epsilon + h] of weight times the straight line in a with these end values."""
        if not self.rates:
            return _logistic(epsilon, h, left, right)
        total = np.zeros_like(h)
        rising, falling = _excess(h), _excess(-h)
        stretch = np.where(h == 0.0, 1.0, np.expm1(h))
        shrink = np.where(h == 0.0, 1.0, -np.expm1(-h))
        # (e^h - 1 - h) / (e^h - 1) and (h + e^-h - 1) / (e^h - 1), in forms that neither cancel nor overflow
        late = np.where(h > 30.0, 1.0 - h * np.exp(-h) / shrink, rising / stretch)
        for rate in self.rates:
            if rate == 1:
                total += _scaled((left + right) * (-np.expm1(-h) / 2), epsilon + h)
            elif rate == 0:
                total += late * right + falling / shrink * left
            else:
                total += _scaled(late * left + falling / stretch * right, -epsilon)
        return total


def sandwich(
    epsilon: FloatArray, low: FloatArray, high: FloatArray, weight: Weight, convex: bool
) -> tuple[FloatArray, FloatArray]:
    """Bounds of the integral over every piece of a non-increasing curve with low <= delta <= high at the points."""
    start, end, h = epsilon[:-1], epsilon[1:], np.diff(epsilon)
    if not convex:
        return weight.line(start, h, low[1:], low[1:]), weight.line(start, h, high[:-1], high[:-1])
    upper = weight.line(start, h, high[:-1], high[1:])
    fall, rise = -np.expm1(-h), np.expm1(h)
    steep, shallow = np.zeros_like(h), np.zeros_like(h)
    steep[1:] = np.maximum(high[:-2] - low[1:-1], 0.0) / fall[:-1]  # -d delta / d(a / a_start) before the piece
    shallow[:-1] = np.maximum(low[1:-1] - high[2:], 0.0) / rise[1:]  # -d delta / d(a / a_end) after it
    # the two lines meet where a / a_start = 1 + y; any other point on the piece would be as true, and less sharp
    slope = steep - shallow * (1.0 - fall)
    y = (low[:-1] - low[1:] - shallow * fall) / np.where(slope > 0.0, slope, 1.0)
    meet = np.where((slope > 0.0) & (steep > 0.0), np.log1p(np.maximum(y, 0.0)), 0.0)
    cut = np.clip(start + np.minimum(meet, h), start, end)
    drop = steep * np.expm1(cut - start)
    at_cut = low[:-1] - drop - _CHORD * (low[:-1] + drop)
    unusable = ~(at_cut > 0.0)
    cut, at_cut = np.where(unusable, start, cut), np.where(unusable, 0.0, at_cut)
    before = weight.line(start, cut - start, low[:-1], at_cut)
    after = weight.line(cut, end - cut, low[1:] - shallow * np.expm1(cut - end), low[1:])
    return before + after, upper


def tail_below(epsilon: FloatArray, low: FloatArray, high: FloatArray, weight: Weight) -> float:
    """Integral of the last chord continued down to 0: a lower bound of what lies beyond the last point."""
    if low.size < 2 or low[-1] <= 0.0:
        return 0.0
    slope = max(high[-2] - low[-1], 0.0) / -np.expm1(epsilon[-2] - epsilon[-1])
    length = np.log1p(low[-1] / np.float64(slope))
    if np.isinf(length):
        return np.inf if weight.growth >= 0 else float(weight.times(epsilon[-1:], low[-1:])[0])
    piece = weight.line(epsilon[-1:], np.array([length]), low[-1:], np.zeros(1))
    return float(piece[0])


def bend(epsilon: FloatArray, low: FloatArray, high: FloatArray, absolute: float = 0.0) -> float:
    """How far, relatively, some point lies above the chord of its neighbours; 0 for what may be convex in a."""
    above, chord = _above_chords(epsilon, low, high, absolute)
    return float(np.max(np.divide(above, chord, out=np.zeros_like(above), where=above > 0.0), initial=0.0))


def rounding_seen(epsilon: FloatArray, value: FloatArray) -> FloatArray:
    """How far plain values of a curve that is convex in a may be off, judged by how far they miss convexity.

    The larger of what is seen relatively and absolutely explains both; four times the smaller is taken, at most the
    value itself.
    """
    above, chord = _above_chords(epsilon, value, value, 0.0)
    share = np.divide(above, chord, out=np.zeros_like(above), where=above > 0.0)
    most, widest = np.max(above, initial=0.0), np.max(share, initial=0.0)
    return np.asarray(np.minimum(np.minimum(4.0 * most, 4.0 * widest * value), value))


def _above_chords(
    epsilon: FloatArray, low: FloatArray, high: FloatArray, absolute: float
) -> tuple[FloatArray, FloatArray]:
    """By how much each inner point lies above the chord of its neighbours, and the chord there."""
    h = np.diff(epsilon)
    share = np.exp(-h[1:]) * np.expm1(-h[:-1]) / np.expm1(-(h[:-1] + h[1:]))
    chord = high[:-2] + (high[2:] - high[:-2]) * share
    return np.maximum(low[1:-1] - chord - 4e-16 * high[:-2] - absolute, 0.0), chord


def _scaled(value: FloatArray, exponent: FloatArray) -> FloatArray:
    """value e^exponent, through the root, for large exponents of small values."""
    root = np.exp(exponent / 2)
    return np.asarray(np.where(value == 0.0, 0.0, value * root * root))


def _excess(x: FloatArray) -> FloatArray:
    """e^x - 1 - x without cancellation."""
    size = np.abs(x)
    large = np.flatnonzero(size >= 0.5)
    inner = x
    if large.size:
        inner = np.where(size < 0.5, x, 0.0)
        size = np.abs(inner)
    widest = float(np.max(size, initial=0.0))
    terms = 20 if widest > 0.02 else 10 if widest > 1e-3 else 7
    series = np.ones_like(x)
    for k in range(terms, 2, -1):
        series *= inner
        series *= 1.0 / k
        series += 1.0
    series *= inner
    series *= inner
    series *= 0.5
    series[large] = np.expm1(x[large]) - x[large]
    return series


def _logistic(epsilon: FloatArray, h: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    total = np.zeros_like(h)
    short = (h <= _SHORT) | (epsilon > _GONE)
    if not short.all():
        e, length, first, last = (x[~short] for x in (epsilon, h, left, right))
        middle = first + (last - first) / (np.exp(length / 2) + 1.0)
        total[~short] = _logistic(e, length / 2, first, middle) + _logistic(
            e + length / 2, length - length / 2, middle, last
        )
    e, length, first, last = (x[short] for x in (epsilon, h, left, right))
    usual = e <= _GONE
    e, length = np.where(usual, e, _GONE), np.where(usual, length, 0.0)
    stretch = np.where(length == 0.0, 1.0, np.expm1(length))
    found = np.zeros_like(length)
    for node, share in zip((1.0 + _NODES) / 2, _NODE_WEIGHTS / 2, strict=True):
        step = np.expm1(node * length)
        along = step / stretch
        found += share * (first * (1.0 - along) + last * along) / (1.0 + np.exp(e) * (1.0 + step))
    total[short] = found * length
    return total
