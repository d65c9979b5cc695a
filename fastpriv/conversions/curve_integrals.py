"""Integrals over epsilon of privacy curves: a sharp value, and bounds between the points that are known.

Notation: delta the curve, a = e^epsilon, h the length of a piece [epsilon, epsilon + h]. A privacy curve
sup_E P(E) - a Q(E) is convex and non-increasing in a, so between two points it lies below their chord and above the
continuations of the neighbouring chords, all straight lines in a. The weights are sums of e^(k epsilon), k = -1, 0, 1,
against which a straight line integrates in closed form, or 1/(1 + a), for which Gauss-Legendre on short pieces leaves
less than 1e-19. Every term is positive, so that rounding is a few units in the last place of the sum. Where the points
contradict convexity only monotonicity is used.

Of a curve that can be evaluated anywhere the value comes from Gauss-Legendre panels, halved until the halves agree with
the whole; the bounds come from the same points and more: pieces are cut where that narrows the bounds most. The gap of
a piece falls with the cube of its length, so m pieces in place of one of gap g leave g / m^2, and the fewest points for
a total gap T have m = g^(1/3) (sum g^(1/3) / T)^(1/2).
"""

# bounds: proved - docs/proofs/roundings.md, 13.12: tails in closed form, and positions in exponents; the rest steers
#    the search for an end

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import LARGEST_DOUBLE, SMALLEST_SUBNORMAL, FloatArray, exp_excess, scaled_exponential

# bound: proved - docs/proofs/roundings.md, 13.12: relative rounding of any sum of pieces, and of the end of a chord
#    that is continued
_SUM_ERROR = 2e-14
# bound: proved - the pole of 1/(1 + e^epsilon) is pi away, so that 6 nodes leave below 1e-19
_SHORT_PIECE = 0.25  # longest piece for Gauss-Legendre with 6 nodes
_PIECE_NODES, _PIECE_WEIGHTS = np.polynomial.legendre.leggauss(6)
_UNDERFLOW = 745.0  # from here on e^-epsilon is below the smallest double
_MAX_EVALUATIONS = 200_000  # epsilons to ask a curve for, if no limit is given
# bound: none - when a panel is halved; answers without bounds are called heuristic
_PANEL_AGREEMENT = 1e-14  # of the integral, for a panel
_MAX_REFINEMENTS = 12  # rounds of cutting pieces
_FARTHEST = 2.0**1023  # largest epsilon at which a tail is looked for
_LARGEST = LARGEST_DOUBLE / 2  # leaves room for a change of unit
# bound: none - which noise is looked for in a curve without bounds, whose answers are called heuristic
_NOISE = 1e-8  # relative, in the values of a curve without bounds
# bound: none - the same, absolute
_NOISE_FLOOR = 1e-15  # some units in the last place of 1
_FIRST_POINTS = np.concatenate([[0.0], np.exp2(np.arange(-30.0, 6.0, 5.0))])  # where a curve is evaluated first
_PANEL_NODES, _PANEL_WEIGHTS = np.polynomial.legendre.leggauss(13)


class IntegralBracket(NamedTuple):
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
        rising, falling = exp_excess(h), exp_excess(-h)
        stretch = np.where(h == 0.0, 1.0, np.expm1(h))
        shrink = np.where(h == 0.0, 1.0, -np.expm1(-h))
        # (e^h - 1 - h) / (e^h - 1) and (h + e^-h - 1) / (e^h - 1), in forms that neither cancel nor overflow
        right_share = np.where(h > 30.0, 1.0 - h * np.exp(-h) / shrink, rising / stretch)
        for rate in self.rates:
            if rate == 1:
                total += _scaled((left + right) * (-np.expm1(-h) / 2), epsilon + h)
            elif rate == 0:
                total += right_share * right + falling / shrink * left
            else:
                total += _scaled(right_share * left + falling / stretch * right, -epsilon)
        return total


def _piecewise_bounds(
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
    at_cut = low[:-1] - drop - _SUM_ERROR * (low[:-1] + drop)
    unusable = ~(at_cut > 0.0)
    cut, at_cut = np.where(unusable, start, cut), np.where(unusable, 0.0, at_cut)
    before = weight.line(start, cut - start, low[:-1], at_cut)
    after = weight.line(cut, end - cut, low[1:] - shallow * np.expm1(cut - end), low[1:])
    return before + after, upper


def _tail_lower_bound(epsilon: FloatArray, low: FloatArray, high: FloatArray, weight: Weight) -> float:
    """Integral of the last chord continued down to 0: a lower bound of what lies beyond the last point."""
    if low.size < 2 or low[-1] <= 0.0:
        return 0.0
    slope = max(high[-2] - low[-1], 0.0) / -np.expm1(epsilon[-2] - epsilon[-1])
    length = np.log1p(low[-1] / np.float64(slope))
    if np.isinf(length):
        return np.inf if weight.growth >= 0 else float(weight.times(epsilon[-1:], low[-1:])[0])
    piece = weight.line(epsilon[-1:], np.array([length]), low[-1:], np.zeros(1))
    return float(piece[0])


def _convexity_violation(epsilon: FloatArray, low: FloatArray, high: FloatArray, absolute: float = 0.0) -> float:
    """How far, relatively, some point lies above the chord of its neighbours; 0 for what may be convex in a."""
    above, chord = _above_chords(epsilon, low, high, absolute)
    return float(np.max(np.divide(above, chord, out=np.zeros_like(above), where=above > 0.0), initial=0.0))


def _apparent_rounding(epsilon: FloatArray, value: FloatArray) -> FloatArray:
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


def _logistic(epsilon: FloatArray, h: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    total = np.zeros_like(h)
    short = (h <= _SHORT_PIECE) | (epsilon > _UNDERFLOW)
    if not short.all():
        e, length, first, last = (x[~short] for x in (epsilon, h, left, right))
        middle = first + (last - first) / (np.exp(length / 2) + 1.0)
        total[~short] = _logistic(e, length / 2, first, middle) + _logistic(
            e + length / 2, length - length / 2, middle, last
        )
    e, length, first, last = (x[short] for x in (epsilon, h, left, right))
    usual = e <= _UNDERFLOW
    e, length = np.where(usual, e, _UNDERFLOW), np.where(usual, length, 0.0)
    stretch = np.where(length == 0.0, 1.0, np.expm1(length))
    integral = np.zeros_like(length)
    for node, share in zip((1.0 + _PIECE_NODES) / 2, _PIECE_WEIGHTS / 2, strict=True):
        step = np.expm1(node * length)
        along = step / stretch
        integral += share * (first * (1.0 - along) + last * along) / (1.0 + np.exp(e) * (1.0 + step))
    total[short] = integral * length
    return total


class CheckedCurve:
    """A curve whose answers are checked: value, lower and upper at every epsilon."""

    def __init__(self, name: str, curve: Callable[[Any], Any], decay: float | None) -> None:
        self.name, self.curve, self.decay = name, curve, decay
        self.proved = True
        self.bounded = True
        self.evaluations = 0

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Three arrays of the shape of a flat array of epsilons."""
        self.evaluations += epsilon.size
        try:
            answer = self.curve(epsilon.copy())  # the curve may write to it
        except DomainError:
            raise
        except (TypeError, ValueError) as fault:
            raise DomainError(
                f"{self.name} must be a function of an array of epsilons; got {type(fault).__name__}: {fault}. "
                "numpy.vectorize makes one of a function of a number."
            ) from fault
        value, lower, upper = self._numbers(answer)
        if np.shape(value) != epsilon.shape:
            raise DomainError(
                f"{self.name} must be a function with one delta for every epsilon; got an answer of shape "
                f"{np.shape(value)} for epsilons of shape {epsilon.shape}. numpy.vectorize makes one of a function of "
                "a number."
            )
        wrong = np.flatnonzero(~((value >= 0) & (value <= 1)))
        if wrong.size:
            raise DomainError(
                f"{self.name} must be between 0 and 1 at every epsilon; got {float(value[wrong[0]])!r} at epsilon "
                f"{float(epsilon[wrong[0]])!r} ({wrong.size} of {value.size} entries). Return the smallest delta of "
                "the mechanism there, computed without cancellation or overflow."
            )
        return value, np.maximum(lower, 0.0), np.minimum(upper, 1.0)

    def tail(self, epsilon: float, rate: int) -> float | None:
        """Upper bound of the integral of e^(rate e) delta(e) beyond ``epsilon``; None where nothing is known."""
        if self.decay is not None:
            if self.decay <= rate:
                return math.inf
            _, _, upper = self(np.array([epsilon]))
            return scaled_exponential(float(upper[0]), rate * epsilon) / (self.decay - rate) * (1 + 1e-12)
        tail_bound = getattr(self.curve, "tail", None)
        if not callable(tail_bound):
            return None
        bound = tail_bound(epsilon, rate)
        if not (isinstance(bound, (int, float, np.floating, np.integer)) and bound >= 0):
            raise DomainError(
                f"{self.name}.tail must be an upper bound of at least 0; got {bound!r:.60} beyond epsilon {epsilon!r}. "
                "Return inf where nothing is known."
            )
        return float(bound)

    def _numbers(self, answer: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, lower and upper bound of an answer: all equal where it is no Estimate."""
        if not isinstance(answer, Estimate):
            self.proved = self.bounded = False
            value = validate.array(self.name, answer)
            try:
                if answer is None or value.dtype.kind == "c":
                    raise TypeError
                value = value.astype(np.float64)
            except (TypeError, ValueError):
                raise DomainError(
                    f"{self.name} must be a function that returns numbers; got {answer!r:.60}. Return deltas."
                ) from None
            return value, value, value
        if answer.unit != "probability":
            raise DomainError(
                f"{self.name} must be a probability; got an Estimate in {answer.unit!r}. Return deltas, not logarithms."
            )
        self.proved = self.proved and answer.kind in ("exact", "certified")
        return answer.arrays()


def integral_of_samples(
    epsilon: FloatArray, value: FloatArray, low: FloatArray, high: FloatArray, weight: Weight, decay: float | None
) -> IntegralBracket:
    """The integral of a curve known at increasing points only; below the first it is at most 1."""
    with np.errstate(all="ignore"):
        last, top = float(epsilon[-1]), high[-1:]
        beyond = _beyond(last, float(top[0]), weight, decay)
        if epsilon[0] > 0.0:
            epsilon = np.concatenate([[0.0], epsilon])
            low, high = np.concatenate([low[:1], low]), np.concatenate([[1.0], high])
            value = np.concatenate([value[:1], value])
        noise = _convexity_violation(epsilon, low, high)
        convex = noise <= _NOISE
        if convex:  # rounding of the samples by as much as they contradict each other
            low, high = low * (1 - noise), np.minimum(high * (1 + noise), 1.0)
        below, above = _piecewise_bounds(epsilon, low, high, weight, convex)
        lower, upper = float(np.sum(below)), float(np.sum(above))
        least = _tail_lower_bound(epsilon, low, high, weight) if convex else 0.0
        likely = _tail_lower_bound(epsilon, value, value, weight) if convex else 0.0
        if value.size == 1 and value[0] > 0.0 and weight.growth >= 0:
            likely = math.inf
        # a smooth convex curve lies a third of the gap below the chord; across a wide gap take the geometric mean
        geometric_mean = np.where(below > 0.0, np.sqrt(np.maximum(below, 0.0)) * np.sqrt(above), 0.0)
        likeliest = np.where(2 * below > above, above * (2 / 3) + below / 3, geometric_mean)
        middle = float(np.sum(likeliest))
        method = "convex in e^epsilon" if convex else "monotone: the samples are not convex in e^epsilon"
        return _outward(middle + min(likely, beyond), lower + least, upper + beyond, last, weight)._replace(
            proved=True, method="bounds between samples, " + method, evaluations=int(epsilon.size)
        )


def integral_of_function(curve: CheckedCurve, weight: Weight, rtol: float, limit: int | None) -> IntegralBracket:
    """The integral of a curve over all epsilon; it stops short of ``rtol`` where ``limit`` points do not reach it."""
    with np.errstate(all="ignore"):
        _, low, high = curve(_FIRST_POINTS)
        if high[0] == 0.0:
            _check_never_rising(curve, _FIRST_POINTS, low, high, 0.0, 0.0 if curve.bounded else _NOISE_FLOOR)
            return IntegralBracket(0.0, 0.0, 0.0, curve.proved, "the curve is 0", curve.evaluations)
        horizon, tail = _horizon(curve, weight, rtol)
        if horizon == math.inf:
            method = "beyond the range of doubles"
            return IntegralBracket(math.inf, _LARGEST, math.inf, curve.proved, method, curve.evaluations)
        if horizon == _FARTHEST:
            octaves = np.exp2(np.arange(0.0, 1024.0))
            _, low, high = curve(octaves)
            floor, _ = _piecewise_bounds(octaves, low, high, weight, False)
            finite = min(float(np.sum(floor)), _LARGEST)
            method = "the curve does not vanish"
            return IntegralBracket(math.inf, finite, math.inf, curve.proved, method, curve.evaluations)
        budget = limit or _MAX_EVALUATIONS
        middle, points, (value, low, high) = _panels(curve, weight, horizon, budget)
        relative, absolute = (1e-13, 0.0) if curve.bounded else (_NOISE, _NOISE_FLOOR)
        before = math.inf
        convex = True
        for _ in range(_MAX_REFINEMENTS):
            _check_never_rising(curve, points, low, high, relative, absolute)
            convex = convex and _convexity_violation(points, low, high, absolute) <= relative
            error = _apparent_rounding(points, value) if convex and not curve.bounded else 0.0
            below, above = _piecewise_bounds(points, low - error, np.minimum(high + error, 1.0), weight, convex)
            lower, upper = float(np.sum(below)), float(np.sum(above))
            gap, target, remaining = upper - lower, rtol * lower, budget - points.size
            if not target < gap < math.inf or remaining <= 0 or gap > 0.9 * before:
                break
            before = gap if convex else math.inf
            new = _refinement(points, above - below, target / 2, remaining, 3 if convex else 2)
            if not new.size:
                break
            answers = curve(new)
            points, order = np.unique(np.concatenate([points, new]), return_index=True)
            value, low, high = (np.concatenate(pair)[order] for pair in zip((value, low, high), answers, strict=True))
        shape = "convex in e^epsilon" if convex else "monotone: the curve is not convex in e^epsilon"
        if math.isinf(upper):
            middle = math.inf
        return _outward(middle, lower, upper + tail, horizon, weight)._replace(
            proved=curve.proved, method="Gauss-Legendre, bounds from points, " + shape, evaluations=curve.evaluations
        )


def _beyond(last: float, top: float, weight: Weight, decay: float | None) -> float:
    """Upper bound of what lies beyond the last point, where the curve is at most ``top``."""
    if top == 0.0:
        return 0.0
    if decay is not None and decay > weight.growth:
        return weight.scale * scaled_exponential(top, weight.growth * last) / (decay - weight.growth) * (1 + 1e-12)
    return scaled_exponential(top, -last) * (1 + 1e-12) if weight.growth < 0 else math.inf


def _horizon(curve: CheckedCurve, weight: Weight, rtol: float) -> tuple[float, float]:
    """Where to stop, and an upper bound of what lies beyond; (2^1023, inf) for a curve that does not vanish.

    The first number is infinite where the integral exceeds the largest double.
    """
    inside = 0.0

    def negligible_tail(end: float) -> float | None:
        """An upper bound of what lies beyond, if that is negligible."""
        nonlocal inside
        halves = np.array([end / 2, end])
        value, low, high = curve(halves)
        inside = max(inside, float(weight.times(halves[:1], low[:1])[0]) * end / 2)
        curve_tail = 0.0 if curve.bounded and high[1] == 0.0 else curve.tail(end, weight.growth)
        tail = _beyond(end, float(high[1]), weight, None)
        if curve_tail is not None:
            tail = min(tail, weight.scale * curve_tail)
        if math.isinf(inside):
            return math.inf
        allowed = min(1e-3 * rtol, 1e-14) * inside
        if curve_tail is None and weight.growth >= 0:
            tail, allowed = weight.scale * _extrapolated(end, value, weight.growth), 1e-6 * allowed
            guessed = True
        else:
            guessed = False
        if tail <= allowed or (tail < 1e-290 and value[1] == 0.0):
            curve.proved = curve.proved and not guessed
            return tail
        return None

    end = 1.0
    tail = negligible_tail(end)
    while tail is None and end < _FARTHEST:
        end *= 2
        tail = negligible_tail(end)
    if tail is None:
        return _FARTHEST, math.inf
    if math.isinf(inside):
        return math.inf, math.inf
    while end > 1e-300:  # a narrow curve: come back to its scale
        closer = negligible_tail(end / 2)
        if closer is None:
            break
        end, tail = end / 2, closer
    for share in (0.5625, 0.625, 0.6875, 0.75, 0.875):
        closer = negligible_tail(share * end)
        if closer is not None:
            return share * end, closer
    return end, tail


def _extrapolated(end: float, value: FloatArray, growth: int) -> float:
    """What lies beyond ``end`` if the curve goes on falling as from end/2 to end; a value of 0 may be an underflow."""
    before, last = (max(float(v), SMALLEST_SUBNORMAL) for v in value)
    if value[0] == 0.0:
        return scaled_exponential(SMALLEST_SUBNORMAL, growth * end / 2) * end
    rate = (math.log(before) - math.log(last)) / (end / 2)
    return scaled_exponential(last, growth * end) / (rate - growth) if rate > growth else math.inf


def _panels(
    curve: CheckedCurve, weight: Weight, horizon: float, budget: int
) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """The integral over [0, horizon] by Gauss-Legendre, and the points that it evaluates, sorted."""
    edges = horizon * np.exp2(-np.arange(12.0, -1.0, -1.0))
    edges = np.concatenate([[0.0], edges[edges > 0.0]])
    points, answers = [edges], [curve(edges)]
    used = 0

    def integrals(start: FloatArray, end: FloatArray) -> FloatArray:
        nonlocal used
        half = (end - start) / 2
        nodes = np.clip((start + half)[:, None] + half[:, None] * _PANEL_NODES, start[:, None], end[:, None])
        points.append(nodes.reshape(-1))
        answers.append(curve(points[-1]))
        used += nodes.size
        return np.asarray(half * (weight.times(points[-1], answers[-1][0]).reshape(nodes.shape) @ _PANEL_WEIGHTS))

    start, end = edges[:-1], edges[1:]
    whole = integrals(start, end)
    total = 0.0
    while start.size:
        centre = start + (end - start) / 2
        start, end = np.stack([start, centre], axis=1), np.stack([centre, end], axis=1)
        parts = integrals(start.reshape(-1), end.reshape(-1)).reshape(-1, 2)
        scale = total + float(np.sum(parts))
        unconverged = np.abs(whole - parts.sum(axis=1)) > _PANEL_AGREEMENT * scale
        unconverged &= (start[:, 0] < centre) & (centre < end[:, 1]) & (used < budget / 2) & math.isfinite(scale)
        total += float(np.sum(parts[~unconverged]))
        start, end, whole = start[unconverged].reshape(-1), end[unconverged].reshape(-1), parts[unconverged].reshape(-1)
    grid, order = np.unique(np.concatenate(points), return_index=True)
    value, low, high = (np.concatenate(column)[order] for column in zip(*answers, strict=True))
    return total, grid, (value, low, high)


def _refinement(points: FloatArray, gap: FloatArray, target: float, limit: int, power: int) -> FloatArray:
    """New points, so placed that the sum of the gaps falls to ``target``, or as far as ``limit`` points allow."""
    share = np.maximum(gap, 0.0) ** (1.0 / power)
    wanted = share * (np.sum(share) / target) ** (1.0 / (power - 1))
    pieces = np.ceil(np.clip(wanted, 1.0, 64.0))
    excess = float(np.sum(pieces - 1.0))
    if excess > limit:
        pieces = np.floor(1.0 + (pieces - 1.0) * (limit / excess))
    cut = np.flatnonzero(pieces > 1)
    count = pieces[cut].astype(np.intp)
    owner = np.repeat(cut, count - 1)
    first = np.repeat(np.cumsum(count - 1) - (count - 1), count - 1)
    step = (np.arange(owner.size) - first + 1) / np.repeat(count, count - 1)
    new = points[owner] + step * (points[owner + 1] - points[owner])
    return new[(new > points[owner]) & (new < points[owner + 1])]


def _check_never_rising(
    curve: CheckedCurve, epsilon: FloatArray, low: FloatArray, high: FloatArray, relative: float, absolute: float
) -> None:
    rises = np.flatnonzero(low[1:] > high[:-1] * (1.0 + relative) + absolute)
    if rises.size:
        i = int(rises[0])
        raise DomainError(
            f"{curve.name} must be non-increasing in epsilon; got {float(low[i + 1])!r} at epsilon "
            f"{float(epsilon[i + 1])!r} after {float(high[i])!r} at {float(epsilon[i])!r}. More epsilon cannot need "
            "more delta: check the curve, and the order of its arguments."
        )


def _outward(value: float, lower: float, upper: float, last: float, weight: Weight) -> IntegralBracket:
    slack = _SUM_ERROR + 4e-16 * (last if weight.growth > 0 else 0.0)
    lower, upper = max(0.0, min(lower, upper, _LARGEST) * (1 - slack)), upper * (1 + slack)
    return IntegralBracket(min(max(value, lower), upper), lower, upper, True, "", 0)
