"""Bounds of any composition by tilted transforms of privacy losses on one grid, with a bound of every rounding.

Notation: step i has masses p_{i,k} at the losses k h and m_i at infinity (``discretised_losses``), T_i times; S the sum
of all T = sum T_i losses; x = e^epsilon. The composition has mass 1 - prod (1 - m_i)^T_i at infinity, and with p(s) the
mass of S at s h,

    delta = 1 - prod (1 - m_i)^T_i + sum over s > epsilon/h of p(s) (1 - e^(epsilon - s h)),
    tail = e^epsilon Q(S > epsilon) = sum over s > epsilon/h of p(s) e^(epsilon - s h).

Tilting. For theta, centres c_i and M_i > 0 let q_{i,k} = p_{i,k} e^(theta (k - c_i) h) / M_i and c = sum T_i c_i. Then
p(s) = prod M_i^T_i e^(-theta (s - c) h) q(s), q the mass of the composed tilted losses, and the sum is

    prod M_i^T_i e^(-theta (epsilon - c h)) sum over s of q(s) w(s),
    w(s) = e^(-theta y) (1 - e^-y) or e^(-(theta + 1) y),  y = s h - epsilon,

w <= 1 for theta >= 0 (of the tail: theta >= -1). With theta at the saddle point the sum over s has an ordinary size
whatever delta is, and an absolute error of q becomes a relative one of delta: a transform of a few thousand points then
serves delta = e^-1000 as well as 0.1. Beyond y = 40 / theta the weights count no more.

Transform. Each q_i is added up modulo n, and q modulo n is the inverse transform of the product of their transforms'
powers.
* Rounding of a transform of y in log2 n levels: each output is off by at most c u log2(n) |y|_1, because each level
  errs by at most c u times the sizes of the numbers it handles, which add up to at most |y|_1 for each output (Higham,
  Accuracy and Stability, 2nd edition, theorem 24.2, in the norm of single outputs; there c < 10).
* Power: |(F + e)^T - F^T| <= T (|F| + |e|)^(T-1) |e|, and 2 T complex products.
* Inverse: as the first, of a vector with norm sum prod |F_i|^T_i, divided by n.
* Mass beyond the n points, above and below, is folded onto them: at most P(S > ..) + P(S < ..), by Chernoff's bound
  for q: P(S - c >= j) <= e^(-eta j h) prod (sum q_{i,k} e^(eta (k - c_i) h))^T_i.
The arithmetic of the transforms is that of long doubles, whose u is 2^-64 on x86-64.
"""

# bounds: proved - numbers of roundings in units of _U, where no other reason stands beside them

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray, LongDoubleArray, next_above, next_below
from .discretised_losses import PrivacyLoss

Quantity = Literal["delta", "tail"]
# Masses, losses beside the largest, and how often they are drawn
_CountedMasses: TypeAlias = tuple[FloatArray, FloatArray, int]

# bound: proved - unit roundoff of long doubles, twice as large as need be
_U = float(np.finfo(np.longdouble).eps)
# bound: proved - error of one level of a transform of long doubles in units of _U: theorem 11.8 of
#    docs/proofs/sampled_tables.md has 8, twiddle factors included
_LEVEL_ERROR = 16.0
# bound: proved - roundings of a complex product and of long exponentials, in units of _U: theorem 11.8
_PRODUCT_ERROR, _EXPONENTIAL_ERROR = 6.0, 8.0
# bound: proved - roundings of a weight, times 1 + its exponent, and of the sum: theorem 11.8 has 13
_WEIGHT_ERROR = 16.0 * UNIT_ROUNDOFF
# bound: proved - allowance for the rounding of the bounds themselves, which are sums of positive numbers in doubles
_OUTWARD = 1.0 + 1e-12
# bound: proved - relative rounding of a moment: a sum of at most 2^22 positive doubles
_MOMENT_ERROR = 1e-9
# bound: proved - added to every sum of tilted masses: far more than all that can underflow
_UNDERFLOW = 1e-290
# bound: proved - weights below e^-40 are left out, and added to the upper bound
_TAIL_EXPONENT = 40.0  # the points are chosen so that e^-40 of the tilted mass lies beyond them on either side
_LEAST_EXPONENT = -700.0  # exponentials are no smaller, as subnormal numbers are slow; moments only grow by it
_LARGEST_EXPONENT = 600.0  # exponents of tilts stay below it: e^600 is no overflow
_MAX_POINTS = 2**22  # of a transform: 64 MiB of long doubles and as much for their transform
# bound: none - groups of neighbouring masses by which a tilt is searched, and how far they may move the mean of the
#    sum, in its deviations
_MOST_GROUPS, _GROUP_SHIFT = 2**12, 0.1
# bound: none - width of the bracket of a logarithm up to which a tilt serves another epsilon
_ACCEPTED_WIDTH = 1e-11
# bound: none - points of the compositions that are kept, for searches that ask for levels near each other: 64 MiB
_KEPT_POINTS = 2**23
_CHERNOFF_SCALES = np.array([1.0, 3.0, 7.0, 11.0, 16.0, 30.0])  # orders of Chernoff's bound, times the deviation
_RARE_EXPONENT = 20.0  # the least order, times the largest loss: for losses that are rare and very large

_sums_cache: dict[tuple[Any, ...], tuple[Sequence[tuple[PrivacyLoss, int]], _TiltedSums]] = {}
_sums_cache_lock = Lock()  # of what changes the cache: a reader needs none


def composed_log_bounds(
    losses: Sequence[tuple[PrivacyLoss, int]], epsilon: FloatArray, quantity: Quantity = "delta", start: float = 0.0
) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Lower and upper bounds of the logarithms for losses on one grid, each with its count; and the cost.

    The search for a tilt begins at ``start``.
    """
    lower, upper = np.full((2, epsilon.size), -math.inf)
    cost = {"transforms": 0, "points": 0}
    masses = [_Masses.of(loss, count) for loss, count in losses if count > 0]
    pending: list[int] = []
    if all(item.masses.size for item in masses):
        top, parts = _top(masses), [(mass.masses, mass.offsets, mass.count) for mass in masses]
        rounding = math.fsum(entry.count * abs(float(entry.places[-1])) * entry.interval for entry in masses)
        last = top + 4 * UNIT_ROUNDOFF * rounding
        pending = [int(i) for i in np.argsort(-epsilon, kind="stable") if epsilon[i] < last]
    sums, theta = None, start
    least = 0.0 if quantity == "delta" else -1.0
    first = True
    while pending:  # from the smallest epsilon on; a tilt serves until a bracket is too wide
        index = pending[-1]
        level = float(epsilon[index])
        if sums is None:
            theta, variance, _ = saddle_point(parts, level - top, theta, least, _LARGEST_EXPONENT)
            sums, first = _kept_sums(losses, masses, _rounded_tilt(parts, theta, variance, least)), True
            cost = {"transforms": cost["transforms"] + 1, "points": max(cost["points"], len(sums.values))}
        low, high = sums.logarithm(level, quantity)
        if first or high - low <= _ACCEPTED_WIDTH:
            lower[index], upper[index], first = low, high, False
            pending.pop()
        else:
            sums = None
    if quantity == "delta":
        infinite = log_mass_at_infinity([(loss.infinity_mass, count) for loss, count in losses])
        with np.errstate(invalid="ignore"):
            if infinite[0] > -math.inf:
                lower = next_below(np.logaddexp(lower, infinite[0]) - 6 * UNIT_ROUNDOFF * np.isfinite(lower), 4)
            if infinite[1] > -math.inf:
                upper = next_above(np.logaddexp(upper, infinite[1]) + 6 * UNIT_ROUNDOFF * np.isfinite(upper), 4)
    return np.minimum(lower, 0.0), np.minimum(upper, 0.0), cost


def log_mass_at_infinity(masses: Sequence[tuple[float, int]]) -> tuple[float, float]:
    """Bounds of the logarithm of 1 - prod (1 - mass)^count; both -inf for 0."""
    if any(mass >= 1.0 and count > 0 for mass, count in masses):
        return 0.0, 0.0
    finite = math.fsum(count * math.log1p(-mass) for mass, count in masses)
    if finite == 0.0:
        return -math.inf, -math.inf
    value = math.log(-math.expm1(finite))
    error = UNIT_ROUNDOFF * (16.0 + 2.0 * abs(value))
    return value - error, min(value + error, 0.0)


def tilted_moments(losses: Sequence[tuple[PrivacyLoss, int]], level: float, start: float) -> tuple[float, float, float]:
    """Theta at a level, the standard deviation of S under it, and about log delta, not rigorous."""
    masses = [_Masses.of(loss, count) for loss, count in losses if count > 0]
    infinite = log_mass_at_infinity([(loss.infinity_mass, count) for loss, count in losses])[1]
    if not all(mass.masses.size for mass in masses):
        return 0.0, 0.0, infinite
    parts = [(item.masses, item.offsets, item.count) for item in masses]
    gap = level - _top(masses)
    theta, variance, log_moment = saddle_point(parts, gap, start, 0.0, _LARGEST_EXPONENT)
    deviation = math.sqrt(variance)
    moment = log_moment - theta * gap - math.log1p(math.sqrt(2.0 * math.pi) * deviation * theta * (1.0 + theta))
    return theta, deviation, min(0.0, float(np.logaddexp(moment, infinite)))


def _rounded_tilt(parts: Sequence[_CountedMasses], theta: float, variance: float, least: float) -> float:
    """A tilt with few bits, within half a deviation, that levels near each other share."""
    if not variance > 0.0 or theta <= 0.0:
        return theta
    step = 2.0 ** math.floor(-0.5 * math.log2(variance))
    widest = max(-float(offsets.min()) for _, offsets, _ in parts)
    rounded = round(theta / step) * step
    return rounded if least <= rounded and rounded * widest <= _LARGEST_EXPONENT else theta


def _kept_sums(losses: Sequence[tuple[PrivacyLoss, int]], masses: Sequence[_Masses], theta: float) -> _TiltedSums:
    """The composition under a tilt, of which the last ones are kept, with their losses."""
    key = theta, *((id(loss), count) for loss, count in losses)
    known = _sums_cache.get(key)
    if known is not None:
        return known[1]
    sums = _tilted_sums(masses, theta)
    with _sums_cache_lock:
        _sums_cache[key] = losses, sums
        while len(_sums_cache) > 1 and sum(item.values.size for _, item in _sums_cache.values()) > _KEPT_POINTS:
            del _sums_cache[next(iter(_sums_cache))]
    return sums


@dataclass(frozen=True)
class _Masses:
    """Positive masses at the losses ``places`` times ``interval``, ``count`` times."""

    masses: FloatArray
    places: Any
    interval: float
    count: int

    @staticmethod
    def of(loss: PrivacyLoss, count: int) -> _Masses:
        selected = np.flatnonzero(loss.masses)
        return _Masses(loss.masses[selected], selected + loss.first, loss.interval, count)

    @property
    def offsets(self) -> FloatArray:
        """Losses beside the largest."""
        return np.asarray((self.places - self.places[-1]) * self.interval, dtype=np.float64)


class _TiltedSums(NamedTuple):
    """``values[j]`` is q at ``first + j`` relative to c, within ``error``, folded mass included."""

    values: FloatArray
    first: int
    theta: float
    interval: float
    log_mass: Any  # log prod M_i^T_i, a long double
    centre: int  # c
    error: float
    outside: float  # mass beyond the points
    relative_error: float  # of every q(s), from the rounding of the tilt
    largest_exponent: float

    def logarithm(self, level: float, quantity: Quantity) -> tuple[float, float]:
        """Bounds of the logarithm of the part of the curve at ``level`` that finite losses make."""
        epsilon, h = np.longdouble(level), np.longdouble(self.interval)
        start = int(np.clip(np.ceil(epsilon / h) - self.centre - self.first - 1, 0, len(self.values)))
        fall = self.theta + (quantity == "tail")
        end = len(self.values)
        if fall > 0.0:
            end = min(end, start + 4 + math.ceil(min(_TAIL_EXPONENT / (fall * self.interval), 2.0**40)))
        s = np.arange(self.first + start, self.first + end) + self.centre
        y = (s * h - epsilon).astype(np.float64)
        # y is off by the rounding of s h, each weight by its fall and by one times that
        shift = 4 * _U * (float(abs(epsilon)) + float(np.abs(s).max(initial=0)) * self.interval)
        values, above = self.values[start:end], np.maximum(y, 0.0)
        with np.errstate(under="ignore"):
            tilt = np.exp(-fall * above)
            weights = tilt * (-np.expm1(-above) if quantity == "delta" else (y > -shift))
            terms = weights * values
            ambiguous = 0.0 if quantity == "delta" else float((terms * (np.abs(y) <= shift)).sum())
            size = np.abs(terms)
            error = (
                self.error * float(weights.sum()) + self.outside + 2.0 * math.exp(-_TAIL_EXPONENT)
                + (1.0 + fall) * shift * float((tilt * (np.abs(values) + self.error)).sum()) + _UNDERFLOW
                + float(size @ (1.0 + fall * above)) * _WEIGHT_ERROR
            ) * _OUTWARD
        total = float(terms.sum(dtype=np.longdouble))
        exponent = self.log_mass - self.theta * (epsilon - self.centre * h)
        slack = (8 * (self.largest_exponent + abs(self.theta) * float(abs(epsilon))) + 16) * _U + self.relative_error
        slack += 4 * UNIT_ROUNDOFF
        bounds = []
        for value, sign in ((total - ambiguous - error, -1.0), (total + error, 1.0)):
            log = math.log(value) if value > 0.0 else -math.inf
            if value > 0.0:
                log = float(exponent + log + sign * (slack + 2 * UNIT_ROUNDOFF * abs(log)))
            bounds.append(math.nextafter(log, sign * math.inf) if value > 0.0 else log)
        return bounds[0], bounds[1]


def _tilted_sums(masses: Sequence[_Masses], theta: float) -> _TiltedSums:
    """The composition under a tilt."""
    interval = masses[0].interval
    h = np.longdouble(interval)
    tilted: list[tuple[LongDoubleArray, Any, int]] = []
    log_mass, centre, farthest, relative, largest, variance = np.longdouble(0), 0, 0.0, 0.0, 0.0, 0.0
    for mass in masses:
        with np.errstate(under="ignore"):
            exponents = theta * mass.offsets
            weights = mass.masses * np.exp(np.maximum(exponents - max(0.0, float(exponents.max())), _LEAST_EXPONENT))
            mean = float(weights @ mass.offsets) / float(weights.sum())
            middle = int(mass.places[-1]) + round(mean / interval)
            k = mass.places - middle
            exponent = np.longdouble(theta) * k * h
            top = exponent.max()
            raw = mass.masses * np.exp(exponent - top)
            total = raw.sum()
        q = raw / total
        tilted.append((q, k, mass.count))
        log_mass += mass.count * (np.log(total) + top)
        centre += mass.count * middle
        farthest = float(np.abs(exponent).max()) + abs(float(top))
        relative += mass.count * (4 * farthest + _EXPONENTIAL_ERROR + 4) * _U
        largest += mass.count * (farthest + abs(float(np.log(total))))
        variance += mass.count * float(q.astype(np.float64) @ (k * interval) ** 2)
    deviation = max(interval, math.sqrt(variance))
    low_end = sum(count * int(k[0]) for _, k, count in tilted)
    high_end = sum(count * int(k[-1]) for _, k, count in tilted)
    above, below = (_chernoff(tilted, sign * interval, deviation) for sign in (1, -1))
    first = max(low_end, -_points_beyond(below, interval))
    last = min(high_end, _points_beyond(above, interval))
    levels = max(1, (last - first).bit_length())
    points = min(2**levels, _MAX_POINTS)
    spare = points - (last - first + 1)
    first -= spare // 2
    last = first + points - 1
    outside = 0.0
    if last < high_end:
        outside += _tail(above, (last + 1) * interval)
    if first > low_end:
        outside += _tail(below, (1 - first) * interval)
    shared: dict[str, Any] = {
        "theta": theta, "interval": interval, "log_mass": log_mass, "centre": centre,
        "relative_error": math.expm1(relative * _OUTWARD),
        "largest_exponent": (largest + abs(theta) * abs(centre) * interval) * (1.0 + len(masses) / 8),
    }
    if len(tilted) == 1 and tilted[0][2] == 1:
        q, k, _ = tilted[0]
        exact = np.zeros(int(k[-1] - k[0]) + 1)
        exact[k - k[0]] = q
        return _TiltedSums(values=exact, first=int(k[0]), error=0.0, outside=0.0, **shared)
    level_error = _LEVEL_ERROR * _U * max(1, points.bit_length() - 1)
    product: Any = None
    logs, relative_errors = np.zeros((2, points // 2 + 1))
    for q, k, count in tilted:
        folded = np.zeros(points, dtype=np.longdouble)
        np.add.at(folded, k % points, q)
        transform = np.fft.rfft(folded)
        forward_error = level_error * _OUTWARD + (len(k) / points + 1) * _U
        size = np.abs(transform).astype(np.float64) * _OUTWARD + forward_error
        logs += count * np.log(size)
        relative_errors += count * (forward_error / size + 2 * _PRODUCT_ERROR * _U)
        raised = _power(transform, count)
        product = raised if product is None else product * raised
    with np.errstate(under="ignore"):
        power = np.exp(logs + (4 + len(tilted)) * UNIT_ROUNDOFF * np.abs(logs)) * _OUTWARD
        mean_power = 2.0 / points * float(power.sum())
        power_error = 2.0 / points * float((power * relative_errors).sum())
        values = np.roll(np.fft.irfft(product, points), -(first % points)).astype(np.float64)
    error = (power_error + (level_error + len(tilted) * _PRODUCT_ERROR * _U + UNIT_ROUNDOFF) * mean_power) * _OUTWARD
    return _TiltedSums(values=values, first=first, error=error + _UNDERFLOW, outside=min(outside, 1.0), **shared)


def saddle_point(
    parts: Sequence[_CountedMasses], level: float, start: float, least: float, largest_exponent: float
) -> tuple[float, float, float]:
    """The theta under which the mean of S is ``level`` below its largest value, to a fraction of its deviation, the
    variance there, and log E e^(theta S) beside the largest value; by groups of neighbours where these are narrow.

    It is at least ``least``, and so small that no exponent is beyond ``largest_exponent``.
    """
    groups, spreads = [], []
    for masses, offsets, count in parts:
        starts = np.arange(0, masses.size, math.ceil(masses.size / _MOST_GROUPS))
        last = np.append(starts[1:], masses.size)
        total = np.add.reduceat(masses, starts)
        with np.errstate(under="ignore"):
            means = np.clip(np.add.reduceat(masses * offsets, starts) / total, offsets[starts], offsets[last - 1])
            distances = offsets - np.repeat(means, last - starts)
            spreads.append(np.add.reduceat(masses * distances**2, starts) / total)
        groups.append((total, means, count))
    if any(spread.any() for spread in spreads):
        start, variance, log_moment = _newton(groups, level, start, least, largest_exponent)
        tilted = (_tilted(masses, offsets, start)[0] for masses, offsets, _ in groups)
        within = math.fsum(count * float(weights @ spread) / max(float(weights.sum()), 1e-300)
                           for weights, spread, (*_, count) in zip(tilted, spreads, groups, strict=True))
        if within * (1.0 + abs(start)) <= _GROUP_SHIFT * min(variance, math.sqrt(variance)):
            return start, variance, log_moment
    return _newton(parts, level, start, least, largest_exponent)


def _newton(
    parts: Sequence[_CountedMasses], level: float, start: float, least: float, largest_exponent: float
) -> tuple[float, float, float]:
    widest = max(-float(offsets.min()) for _, offsets, _ in parts)
    low, high = least, max(least, largest_exponent / max(widest, 1e-290) if widest > 0.0 else least)
    theta = min(max(start, low), high)
    for _ in range(100):
        mean, variance, log_moment = _moments(parts, theta)
        gap = mean - level
        if gap * gap <= 0.01 * variance or high - low <= 1e-3 * high:
            break
        low, high = (theta, high) if gap < 0.0 else (low, theta)
        if low == high:
            break
        newton = theta - gap / variance if variance > 0.0 else math.inf
        theta = newton if low < newton < high else least if newton <= least else 0.5 * (low + high)
    return theta, variance, log_moment


def _moments(parts: Sequence[_CountedMasses], theta: float) -> tuple[float, float, float]:
    """Mean of S beside its largest value, and variance, under a tilt; and the logarithm of what it multiplies P by."""
    below, variance, log_moment = 0.0, 0.0, 0.0
    for masses, offsets, count in parts:
        weights, top = _tilted(masses, offsets, theta)
        total = float(weights.sum())
        if total > 0.0:
            mean = float(weights @ offsets) / total
            below += count * mean
            squares = offsets - mean
            squares *= squares
            variance += count * float(weights @ squares) / total
            log_moment += count * (math.log(total) + top)
    return below, variance, log_moment


def _tilted(masses: FloatArray, offsets: FloatArray, theta: float) -> tuple[FloatArray, float]:
    """The masses times e^(theta offset - top), and top >= 0."""
    top = max(0.0, theta * float(offsets.min()))
    with np.errstate(under="ignore"):
        weights = theta * offsets  # in place, as large arrays cost more than their arithmetic
        weights -= top
        np.maximum(weights, _LEAST_EXPONENT, out=weights)
        np.exp(weights, out=weights)
        weights *= masses
    return weights, top


def _top(masses: Sequence[_Masses]) -> float:
    """The largest value of S."""
    return math.fsum(mass.count * float(mass.places[-1]) * mass.interval for mass in masses)


def _chernoff(
    tilted: Sequence[tuple[LongDoubleArray, Any, int]], interval: float, deviation: float
) -> tuple[FloatArray, FloatArray]:
    """Orders eta, and the logarithms of E e^(eta S) under q, rounded up; a negative interval mirrors S."""
    widest = max(float(np.abs(k).max()) * abs(interval) for _, k, _ in tilted)
    widest = max(widest, 1e-300)
    orders = np.minimum(np.append(_CHERNOFF_SCALES / deviation, _RARE_EXPONENT / widest), _LARGEST_EXPONENT / widest)
    logs = np.zeros(orders.size)
    for q, k, count in tilted:
        double, offsets = q.astype(np.float64), k * interval
        with np.errstate(under="ignore"):
            exponents = (np.maximum(order * offsets, _LEAST_EXPONENT) for order in orders)
            moments = np.array([float(double @ np.exp(exponent)) for exponent in exponents])
        logs += count * (np.log(moments) + _MOMENT_ERROR)
    return orders, logs


def _points_beyond(moments: tuple[FloatArray, FloatArray], interval: float) -> int:
    """Points beyond the centre at which the tail is e^-40."""
    orders, logs = moments
    return math.ceil(float(((logs + _TAIL_EXPONENT) / orders).min()) / interval)


def _tail(moments: tuple[FloatArray, FloatArray], distance: float) -> float:
    """Bound of the mass at least ``distance`` from the centre."""
    orders, logs = moments
    return math.exp(min(0.0, float((logs - orders * distance).min()))) * _OUTWARD


def _power(base: Any, exponent: int) -> Any:
    """The power by squaring, from the leading bit on: at most 2 log2 T products, errors adding up to those of 2 T."""
    result = base.copy()
    with np.errstate(under="ignore"):
        for bit in bin(exponent)[3:]:
            result = result * result
            if bit == "1":
                result = result * base
    return result
