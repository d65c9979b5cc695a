"""Integrals over epsilon of a curve that can be asked anywhere: a sharp value, and bounds between the points asked.

The value comes from Gauss-Legendre panels, halved until the halves agree with the whole; the bounds come from the same
points and more, by ``sandwich``: pieces are cut where that narrows the bounds most. The gap of a piece falls with the
cube of its length, so m pieces in place of one of gap g leave g / m^2, and the fewest points for a total gap T have
m = g^(1/3) (sum g^(1/3) / T)^(1/2).
"""

# bounds: tested by enclosures/test_information_from_curves - rounding of tails in closed form; the rest steers
#    the search for an end

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...errors import DomainError
from ...estimate import Estimate
from .sandwich import ROUNDING, Bracket, Weight, bend, rounding_seen, sandwich, tail_below

__all__ = ["Asked", "of_function", "of_samples"]

FloatArray = NDArray[np.float64]
_MANY, _FEW = 200_000, 4_000  # points for a vectorised and for a scalar curve
# bound: none - when a panel is halved; answers without bounds are called heuristic
_AGREED = 1e-14  # of the integral, for a panel
_ROUNDS = 12
_FARTHEST = 2.0**1023
_LARGEST = float(np.finfo(np.float64).max) / 2  # leaves room for a change of unit
# bound: none - the smallest end that is looked at
_LEAST = 5e-324
# bound: tested by enclosures/test_information_from_curves - relative noise of a curve without bounds, in answers
#    called heuristic
_NOISE = 1e-8  # relative, in the values of a curve without bounds
# bound: tested by enclosures/test_information_from_curves - absolute noise of such a curve
_NOISE_FLOOR = 1e-15
_FIRST = np.concatenate([[0.0], np.exp2(np.arange(-30.0, 6.0, 5.0))])
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(13)


class Asked:
    """A curve, asked and checked: value, lower and upper at every epsilon, however it was written."""

    def __init__(self, name: str, curve: Callable[[Any], Any], decay: float | None) -> None:
        self.name, self.curve, self.decay = name, curve, decay
        self.scalar = False
        self.proved = True
        self.bounded = True
        self.evaluations = 0

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Three arrays of the shape of a flat array of epsilons."""
        self.evaluations += epsilon.size
        if not self.scalar:
            try:
                answer = self._numbers(self.curve(epsilon.copy()))  # the curve may write to it
            except (TypeError, ValueError):
                answer = None
            if answer is not None and all(np.shape(x) == epsilon.shape for x in answer):
                return self._checked(epsilon, answer)
            self.scalar = True
        rows = [self._numbers(self._single_answer(float(e))) for e in epsilon]
        columns = zip(*(tuple(float(self._single(x)) for x in row) for row in rows), strict=True)
        return self._checked(epsilon, tuple(np.array(column) for column in columns))

    def _single_answer(self, epsilon: float) -> Any:
        try:
            return self.curve(epsilon)
        except TypeError as fault:
            raise DomainError(
                f"curve must be a function of one epsilon; got TypeError: {fault}. Define it with one argument, as "
                "in lambda epsilon: delta(epsilon, sigma)."
            ) from fault

    def tail(self, epsilon: float, rate: int) -> float | None:
        """Upper bound of the integral of e^(rate e) delta(e) beyond ``epsilon``; None where nothing is known."""
        if self.decay is not None:
            if self.decay <= rate:
                return math.inf
            _, _, upper = self(np.array([epsilon]))
            return _times(float(upper[0]), rate * epsilon) / (self.decay - rate) * (1 + 1e-12)
        own = getattr(self.curve, "tail", None)
        if not callable(own):
            return None
        bound = own(epsilon, rate)
        if not (isinstance(bound, (int, float, np.floating, np.integer)) and bound >= 0):
            raise DomainError(
                f"{self.name}.tail must be an upper bound of at least 0; got {bound!r:.60} beyond epsilon {epsilon!r}. "
                "Return inf where nothing is known."
            )
        return float(bound)

    def _numbers(self, answer: Any) -> tuple[Any, Any, Any]:
        if not isinstance(answer, Estimate):
            self.proved = self.bounded = False
            value = _validate.array(self.name, answer)
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
        return answer.value, answer.lower, answer.upper

    def _single(self, number: Any) -> Any:
        if np.size(number) != 1:
            raise DomainError(
                f"{self.name} must be a function with one delta for every epsilon; got an answer of shape "
                f"{np.shape(number)} for one epsilon. Return a number, or an array of the shape of epsilon."
            )
        return np.asarray(number).reshape(())

    def _checked(self, epsilon: FloatArray, answer: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        value, lower, upper = (np.asarray(x, dtype=np.float64) for x in answer)
        wrong = np.flatnonzero(~((value >= 0) & (value <= 1)))
        if wrong.size:
            raise DomainError(
                f"{self.name} must be between 0 and 1 at every epsilon; got {float(value[wrong[0]])!r} at epsilon "
                f"{float(epsilon[wrong[0]])!r} ({wrong.size} of {value.size} entries). Return the smallest delta of "
                "the mechanism there, computed without cancellation or overflow."
            )
        return value, np.maximum(lower, 0.0), np.minimum(upper, 1.0)


def of_samples(
    epsilon: FloatArray, value: FloatArray, low: FloatArray, high: FloatArray, weight: Weight, decay: float | None
) -> Bracket:
    """The integral of a curve known at increasing points only; below the first it is at most 1."""
    with np.errstate(all="ignore"):
        last, top = float(epsilon[-1]), high[-1:]
        beyond = _beyond(last, float(top[0]), weight, decay)
        if epsilon[0] > 0.0:
            epsilon = np.concatenate([[0.0], epsilon])
            low, high = np.concatenate([low[:1], low]), np.concatenate([[1.0], high])
            value = np.concatenate([value[:1], value])
        noise = bend(epsilon, low, high)
        convex = noise <= _NOISE
        if convex:  # rounding of the samples by as much as they contradict each other
            low, high = low * (1 - noise), np.minimum(high * (1 + noise), 1.0)
        below, above = sandwich(epsilon, low, high, weight, convex)
        lower, upper = float(np.sum(below)), float(np.sum(above))
        least = tail_below(epsilon, low, high, weight) if convex else 0.0
        likely = tail_below(epsilon, value, value, weight) if convex else 0.0
        if value.size == 1 and value[0] > 0.0 and weight.growth >= 0:
            likely = math.inf
        # a smooth convex curve lies a third of the gap below the chord; across a wide gap take the geometric mean
        apart = np.where(below > 0.0, np.sqrt(np.maximum(below, 0.0)) * np.sqrt(above), 0.0)
        likeliest = np.where(2 * below > above, above * (2 / 3) + below / 3, apart)
        middle = float(np.sum(likeliest))
        method = "convex in e^epsilon" if convex else "monotone: the samples are not convex in e^epsilon"
        return _outward(middle + min(likely, beyond), lower + least, upper + beyond, last, weight)._replace(
            proved=True, method="bounds between samples, " + method, evaluations=int(epsilon.size)
        )


def of_function(curve: Asked, weight: Weight, rtol: float, limit: int | None) -> Bracket:
    """The integral of a curve over all epsilon; it stops short of ``rtol`` where ``limit`` points do not reach it."""
    with np.errstate(all="ignore"):
        _, low, high = curve(_FIRST)
        if high[0] == 0.0:
            _never_rising(curve, _FIRST, low, high, 0.0, 0.0 if curve.bounded else _NOISE_FLOOR)
            return Bracket(0.0, 0.0, 0.0, curve.proved, "the curve is 0", curve.evaluations)
        horizon, tail = _horizon(curve, weight, rtol)
        if horizon == math.inf:
            method = "beyond the range of doubles"
            return Bracket(math.inf, _LARGEST, math.inf, curve.proved, method, curve.evaluations)
        if horizon == _FARTHEST:
            octaves = np.exp2(np.arange(0.0, 1024.0))
            _, low, high = curve(octaves)
            floor, _ = sandwich(octaves, low, high, weight, False)
            finite = min(float(np.sum(floor)), _LARGEST)
            return Bracket(math.inf, finite, math.inf, curve.proved, "the curve does not vanish", curve.evaluations)
        budget = limit or (_FEW if curve.scalar else _MANY)
        middle, points, (value, low, high) = _panels(curve, weight, horizon, budget)
        relative, absolute = (1e-13, 0.0) if curve.bounded else (_NOISE, _NOISE_FLOOR)
        before = math.inf
        convex = True
        for _ in range(_ROUNDS):
            _never_rising(curve, points, low, high, relative, absolute)
            convex = convex and bend(points, low, high, absolute) <= relative
            error = rounding_seen(points, value) if convex and not curve.bounded else 0.0
            below, above = sandwich(points, low - error, np.minimum(high + error, 1.0), weight, convex)
            lower, upper = float(np.sum(below)), float(np.sum(above))
            gap, target, room = upper - lower, rtol * lower, budget - points.size
            if not target < gap < math.inf or room <= 0 or gap > 0.9 * before:
                break
            before = gap if convex else math.inf
            new = _cuts(points, above - below, target / 2, room, 3 if convex else 2)
            if not new.size:
                break
            found = curve(new)
            points, order = np.unique(np.concatenate([points, new]), return_index=True)
            value, low, high = (
                np.concatenate(pair)[order] for pair in zip((value, low, high), found, strict=True)
            )  # fmt: skip
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
        return weight.scale * _times(top, weight.growth * last) / (decay - weight.growth) * (1 + 1e-12)
    return _times(top, -last) * (1 + 1e-12) if weight.growth < 0 else math.inf


def _horizon(curve: Asked, weight: Weight, rtol: float) -> tuple[float, float]:
    """Where to stop, and an upper bound of what lies beyond; (2^1023, inf) for a curve that does not vanish.

    The first number is infinite where the integral exceeds the largest double.
    """
    inside = 0.0

    def enough(end: float) -> float | None:
        """An upper bound of what lies beyond, if that is negligible."""
        nonlocal inside
        at = np.array([end / 2, end])
        value, low, high = curve(at)
        inside = max(inside, float(weight.times(at[:1], low[:1])[0]) * end / 2)
        own = 0.0 if curve.bounded and high[1] == 0.0 else curve.tail(end, weight.growth)
        tail = _beyond(end, float(high[1]), weight, None)
        if own is not None:
            tail = min(tail, weight.scale * own)
        if math.isinf(inside):
            return math.inf
        allowed = min(1e-3 * rtol, 1e-14) * inside
        if own is None and weight.growth >= 0:
            tail, allowed = weight.scale * _extrapolated(end, value, weight.growth), 1e-6 * allowed
            guessed = True
        else:
            guessed = False
        if tail <= allowed or (tail < 1e-290 and value[1] == 0.0):
            curve.proved = curve.proved and not guessed
            return tail
        return None

    end = 1.0
    tail = enough(end)
    while tail is None and end < _FARTHEST:
        end *= 2
        tail = enough(end)
    if tail is None:
        return _FARTHEST, math.inf
    if math.isinf(inside):
        return math.inf, math.inf
    while end > 1e-300:  # a narrow curve: come back to its scale
        closer = enough(end / 2)
        if closer is None:
            break
        end, tail = end / 2, closer
    for share in (0.5625, 0.625, 0.6875, 0.75, 0.875):
        closer = enough(share * end)
        if closer is not None:
            return share * end, closer
    return end, tail


def _extrapolated(end: float, value: FloatArray, growth: int) -> float:
    """What lies beyond ``end`` if the curve goes on falling as from end/2 to end; a value of 0 may be an underflow."""
    before, last = (max(float(v), _LEAST) for v in value)
    if value[0] == 0.0:
        return _times(_LEAST, growth * end / 2) * end
    rate = (math.log(before) - math.log(last)) / (end / 2)
    return _times(last, growth * end) / (rate - growth) if rate > growth else math.inf


def _panels(
    curve: Asked, weight: Weight, horizon: float, budget: int
) -> tuple[float, FloatArray, tuple[FloatArray, FloatArray, FloatArray]]:
    """The integral over [0, horizon] by Gauss-Legendre, and the points asked on the way, sorted."""
    edges = horizon * np.exp2(-np.arange(12.0, -1.0, -1.0))
    edges = np.concatenate([[0.0], edges[edges > 0.0]])
    asked, found = [edges], [curve(edges)]
    used = 0

    def integrals(start: FloatArray, end: FloatArray) -> FloatArray:
        nonlocal used
        half = (end - start) / 2
        points = np.clip((start + half)[:, None] + half[:, None] * _NODES, start[:, None], end[:, None])
        asked.append(points.reshape(-1))
        found.append(curve(asked[-1]))
        used += points.size
        return np.asarray(half * (weight.times(asked[-1], found[-1][0]).reshape(points.shape) @ _NODE_WEIGHTS))

    start, end = edges[:-1], edges[1:]
    whole = integrals(start, end)
    total = 0.0
    while start.size:
        centre = start + (end - start) / 2
        start, end = np.stack([start, centre], axis=1), np.stack([centre, end], axis=1)
        parts = integrals(start.reshape(-1), end.reshape(-1)).reshape(-1, 2)
        scale = total + float(np.sum(parts))
        apart = np.abs(whole - parts.sum(axis=1)) > _AGREED * scale
        apart &= (start[:, 0] < centre) & (centre < end[:, 1]) & (used < budget / 2) & math.isfinite(scale)
        total += float(np.sum(parts[~apart]))
        start, end, whole = start[apart].reshape(-1), end[apart].reshape(-1), parts[apart].reshape(-1)
    points, order = np.unique(np.concatenate(asked), return_index=True)
    value, low, high = (np.concatenate(column)[order] for column in zip(*found, strict=True))
    return total, points, (value, low, high)


def _cuts(points: FloatArray, gap: FloatArray, target: float, room: int, power: int) -> FloatArray:
    """New points, so placed that the sum of the gaps falls to ``target``, or as far as ``room`` points allow."""
    share = np.maximum(gap, 0.0) ** (1.0 / power)
    wanted = share * (np.sum(share) / target) ** (1.0 / (power - 1))
    pieces = np.ceil(np.clip(wanted, 1.0, 64.0))
    excess = float(np.sum(pieces - 1.0))
    if excess > room:
        pieces = np.floor(1.0 + (pieces - 1.0) * (room / excess))
    cut = np.flatnonzero(pieces > 1)
    count = pieces[cut].astype(np.intp)
    owner = np.repeat(cut, count - 1)
    first = np.repeat(np.cumsum(count - 1) - (count - 1), count - 1)
    step = (np.arange(owner.size) - first + 1) / np.repeat(count, count - 1)
    new = points[owner] + step * (points[owner + 1] - points[owner])
    return new[(new > points[owner]) & (new < points[owner + 1])]


def _never_rising(
    curve: Asked, epsilon: FloatArray, low: FloatArray, high: FloatArray, relative: float, absolute: float
) -> None:
    rises = np.flatnonzero(low[1:] > high[:-1] * (1.0 + relative) + absolute)
    if rises.size:
        i = int(rises[0])
        raise DomainError(
            f"{curve.name} must be non-increasing in epsilon; got {float(low[i + 1])!r} at epsilon "
            f"{float(epsilon[i + 1])!r} after {float(high[i])!r} at {float(epsilon[i])!r}. More epsilon cannot need "
            "more delta: check the curve, and the order of its arguments."
        )


def _outward(value: float, lower: float, upper: float, last: float, weight: Weight) -> Bracket:
    slack = ROUNDING + 4e-16 * (last if weight.growth > 0 else 0.0)
    lower, upper = max(0.0, min(lower, upper, _LARGEST) * (1 - slack)), upper * (1 + slack)
    return Bracket(min(max(value, lower), upper), lower, upper, True, "", 0)


def _times(value: float, exponent: float) -> float:
    """value e^exponent of a non-negative value, infinite where it overflows."""
    if value == 0.0:
        return 0.0
    logarithm = math.log(value) + exponent
    return math.exp(logarithm) if logarithm < 709.0 else math.inf
