"""The privacy curve of a composed privacy loss, with a bound of every rounding.

Notation: masses p_k at the losses k h and m at infinity (``discretised_losses``); T the number of steps, S the sum of T
losses; x = e^epsilon. The composition has mass 1 - (1 - m)^T at infinity, and

    delta = 1 - (1 - m)^T + sum over s > epsilon/h of p^{*T}(s) (1 - e^(epsilon - s h)).

Tilting. For theta >= 0, a centre c and M > 0 let q_k = p_k e^(theta (k - c) h) / M. Then p^{*T}(s) = M^T
e^(-theta (s - T c) h) q^{*T}(s), and the sum is

    M^T e^(-theta (epsilon - T c h)) sum over s of q^{*T}(s) w(s),
    w(s) = e^(-theta y) (1 - e^-y) <= 1, y = s h - epsilon.

With theta at the saddle point the sum over s has an ordinary size whatever delta is, and an absolute error of q^{*T}
becomes a relative one of delta: a transform of a few thousand points then serves delta = 1e-30 as well as 0.1.

Transform. q is added up modulo n, and q^{*T} modulo n is the inverse transform of the T-th power of its transform.
* Rounding of a transform of y in log2 n levels: each output is off by at most c u log2(n) |y|_1, because each level
  errs by at most c u times the sizes of the numbers it handles, which add up to at most |y|_1 for each output (Higham,
  Accuracy and Stability, 2nd edition, theorem 24.2, in the norm of single outputs; there c < 10).
* Power: |(F + e)^T - F^T| <= T (|F| + |e|)^(T-1) |e|, and 2 T complex products.
* Inverse: as the first, of a vector with norm sum |F|^T, divided by n.
* Mass beyond the n points, above and below, is folded onto them: at most P(S > ..) + P(S < ..), by Chernoff's bound
  for q: P(S - T c >= j) <= e^(-eta j h) (sum q_k e^(eta (k - c) h))^T.
The arithmetic is that of long doubles, whose u is 2^-64 on x86-64.
"""

# bounds: proved - numbers of roundings in units of _U, where no other reason stands beside them

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..numerics import FloatArray, LongDoubleArray, next_above, next_below
from .discretised_losses import PrivacyLoss

__all__ = ["composed_bounds"]

# bound: proved - unit roundoff of long doubles, twice as large as need be
_U = float(np.finfo(np.longdouble).eps)
# bound: tested by enclosures/test_composition - error of one level of a transform of long doubles in units of _U: at
#    most 10 by the theorem, and twiddle factors that are off by several units
_LEVEL_ERROR = 16.0
# bound: tested by enclosures/test_composition - roundings of a complex product, of long exponentials and of pairwise
#    sums, in units of _U
_PRODUCT_ERROR, _EXPONENTIAL_ERROR, _SUM_ERROR = 6.0, 8.0, 512.0
# bound: proved - allowance for the rounding of the bounds themselves, which are sums of positive numbers in doubles
_OUTWARD = 1.0 + 1e-12
# bound: proved - relative rounding of a moment: a sum of at most 2^22 positive doubles
_MOMENT_ERROR = 1e-9
# bound: proved - added to every sum of tilted masses: far more than all that can underflow
_UNDERFLOW = 1e-290
_TAIL_EXPONENT = 60.0  # the points are chosen so that e^-60 of the tilted mass lies beyond them on either side
_LARGEST_EXPONENT = 600.0  # exponents of tilts stay below it: e^600 is no overflow
_MAX_POINTS = 2**22  # of a transform: 64 MiB of long doubles and as much for their transform
# bound: none - relative width of a bracket up to which a tilt serves another epsilon
_ACCEPTED_WIDTH = 1e-11
_CHERNOFF_SCALES = np.geomspace(0.5, 40.0, 18)  # orders of Chernoff's bound, in units of 1 / standard deviation


def composed_bounds(
    loss: PrivacyLoss, epsilon: FloatArray, steps: int
) -> tuple[FloatArray, FloatArray, dict[str, Any]]:
    """Lower and upper bounds of delta of ``steps`` compositions at each epsilon, any sign; and the cost."""
    lower, upper = np.zeros(epsilon.size), np.zeros(epsilon.size)
    infinite = -np.expm1(steps * np.log1p(-np.longdouble(loss.infinity_mass)))
    error = infinite * (steps + 4) * _U
    cost = {"transforms": 0, "points": 0}
    kept = np.flatnonzero(loss.masses)
    masses, places = loss.masses[kept], kept + loss.first
    last = next_above(steps * float(places[-1]) * loss.interval, 2) if kept.size else -math.inf
    finite = epsilon < last
    pending = [int(i) for i in np.argsort(-epsilon, kind="stable") if finite[i]]
    sums, first = None, True
    while pending:  # from the smallest epsilon on; a tilt serves until a bracket is too wide
        index = pending[-1]
        if sums is None:
            sums, first = _tilted_sums(masses, places, loss.interval, steps, float(epsilon[index])), True
            cost = {"transforms": cost["transforms"] + 1, "points": max(cost["points"], len(sums.values))}
        low, high = sums.delta(float(epsilon[index]))
        if first or high - low <= _ACCEPTED_WIDTH * high:
            lower[index], upper[index], first = low, high, False
            pending.pop()
        else:
            sums = None
    with np.errstate(under="ignore"):
        lower = next_below((lower.astype(np.longdouble) + max(infinite - error, np.longdouble(0))).astype(np.float64))
        upper = next_above((upper.astype(np.longdouble) + (infinite + error)).astype(np.float64))
    zero = ~finite & (infinite == 0.0)
    return np.clip(lower, 0.0, 1.0), np.where(zero, 0.0, np.clip(upper, 0.0, 1.0)), cost


@dataclass(frozen=True)
class _TiltedSums:
    """``values[j]`` is q^{*T} at ``first + j`` relative to T c, within ``error``, folded mass included."""

    values: LongDoubleArray
    first: int
    theta: float
    interval: float
    log_mass: Any  # log M^T, a long double
    centre: int  # T c
    error: float
    outside: float  # mass beyond the points
    relative_error: float  # of every q^{*T}(s), from the rounding of the tilt
    largest_exponent: float

    def delta(self, level: float) -> tuple[float, float]:
        """Lower and upper bound of the part of delta(``level``) that finite losses make."""
        epsilon, h = np.longdouble(level), np.longdouble(self.interval)
        start = int(np.clip(np.ceil(epsilon / h) - self.centre - self.first - 1, 0, len(self.values)))
        s = np.arange(self.first + start, self.first + len(self.values)) + self.centre
        y = s * h - epsilon
        values = self.values[start:]
        with np.errstate(under="ignore"):
            tilt = np.exp(-self.theta * np.maximum(y, 0))
            weights = tilt * -np.expm1(-np.maximum(y, 0))
            terms = weights * values
        total, size = terms.sum(), np.abs(terms).sum()
        # y is off by the rounding of s h, each weight by theta and by one times that
        shift = 4 * _U * (float(abs(epsilon)) + float(np.abs(s).max(initial=0)) * self.interval) * (1 + self.theta)
        error = (
            self.error * float(weights.sum()) + self.outside + shift * float((tilt * np.abs(values)).sum())
            + shift * self.error * float(tilt.sum()) + _UNDERFLOW
            + float(size) * (_SUM_ERROR + 2 * _EXPONENTIAL_ERROR) * _U
        ) * _OUTWARD  # fmt: skip
        exponent = self.log_mass - self.theta * (epsilon - self.centre * h)
        slack = (8 * (self.largest_exponent + self.theta * float(abs(epsilon))) + 16) * _U + self.relative_error
        with np.errstate(under="ignore", over="ignore"):
            scale = np.exp(exponent)
            low = np.maximum(total - error, 0) * scale * (1 - slack)
            high = np.maximum(total + error, 0) * scale * (1 + slack)
            return float(next_below(float(low))), float(next_above(float(high)))


def _tilted_sums(masses: FloatArray, places: Any, interval: float, steps: int, epsilon: float) -> _TiltedSums:
    """The composition under the tilt whose mean is ``epsilon``, or none if its mean is larger already."""
    losses = places * interval
    theta = _saddle_point(masses, losses, epsilon / steps)
    exponents = theta * (losses - losses[-1])
    weights = masses * np.exp(exponents)
    mean = float(weights @ losses / weights.sum())
    centre = round(mean / interval)
    k = places - centre
    h = np.longdouble(interval)
    with np.errstate(under="ignore"):
        exponent = np.longdouble(theta) * k * h
        top = exponent.max()
        raw = masses * np.exp(exponent - top)
        total = raw.sum()
        q = raw / total
    log_mass = steps * (np.log(total) + top)
    farthest = float(np.abs(exponent).max()) + abs(float(top))
    single = (4 * farthest + _EXPONENTIAL_ERROR + 4) * _U
    q_double = q.astype(np.float64)
    deviation = max(interval, math.sqrt(steps * float(q_double @ ((k * interval) ** 2))))
    low_end, high_end = steps * int(k[0]), steps * int(k[-1])
    above, below = (_chernoff(q_double, sign * k * interval, steps, deviation) for sign in (1, -1))
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
    shared = {"theta": theta, "interval": interval, "log_mass": log_mass, "centre": steps * centre,
              "relative_error": math.expm1(steps * single * _OUTWARD),
              "largest_exponent": abs(float(log_mass)) + theta * abs(steps * centre) * interval + steps * farthest}
    if steps == 1:
        exact = np.zeros(int(k[-1] - k[0]) + 1, dtype=np.longdouble)
        exact[k - k[0]] = q
        return _TiltedSums(values=exact, first=int(k[0]), error=0.0, outside=0.0, **shared)
    folded = np.zeros(points, dtype=np.longdouble)
    np.add.at(folded, k % points, q)
    transform = np.fft.rfft(folded)
    level_error = _LEVEL_ERROR * _U * max(1, points.bit_length() - 1)
    forward_error = level_error * _OUTWARD + (len(k) / points + 1) * _U
    size = np.abs(transform).astype(np.float64) * _OUTWARD + forward_error
    with np.errstate(under="ignore"):
        below_power = np.exp((steps - 1) * np.log(size))
        mean_power = 2.0 / points * float((below_power * size).sum())
        power_error = steps * (forward_error + 2 * _PRODUCT_ERROR * _U) * 2.0 / points * float(below_power.sum())
        values: Any = np.roll(np.fft.irfft(_power(transform, steps), points), -(first % points))
    error = (power_error + level_error * mean_power) * _OUTWARD + _UNDERFLOW
    return _TiltedSums(values=values, first=first, error=error, outside=min(outside, 1.0), **shared)


def _saddle_point(masses: FloatArray, losses: FloatArray, mean: float) -> float:
    """The theta >= 0 under which the mean loss is ``mean``; 0 where it is larger without a tilt."""

    def tilted_mean(theta: float) -> float:
        with np.errstate(under="ignore"):
            weights = masses * np.exp(theta * (losses - losses[-1]))
        total = float(weights.sum())
        return float(weights @ losses) / total if total > 0.0 else float(losses[-1])

    low, high = 0.0, _LARGEST_EXPONENT / max(float(losses[-1] - losses[0]), 1e-300)
    if len(losses) == 1 or tilted_mean(0.0) >= mean:
        return 0.0
    if tilted_mean(high) <= mean:
        return high
    start = 1.0  # from a theta of ordinary size: doubled until it is too large
    while start < high and tilted_mean(start) < mean:
        low, start = start, 2 * start
    high = min(high, start)
    for _ in range(12):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if tilted_mean(middle) < mean else (low, middle)
    return 0.5 * (low + high)


def _chernoff(q: FloatArray, offsets: FloatArray, steps: int, deviation: float) -> tuple[FloatArray, FloatArray]:
    """Orders eta, and the logarithms of E e^(eta S) under q^{*T} in units of the interval, rounded up."""
    widest = max(float(np.abs(offsets).max()), 1e-300)
    orders = np.minimum(_CHERNOFF_SCALES / deviation, _LARGEST_EXPONENT / widest)
    with np.errstate(under="ignore"):
        moments = np.array([float(q @ np.exp(order * offsets)) for order in orders])
    return orders, steps * (np.log(moments) + _MOMENT_ERROR)


def _points_beyond(moments: tuple[FloatArray, FloatArray], interval: float) -> int:
    """Points beyond the centre at which the tail is e^-60."""
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
