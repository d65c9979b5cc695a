"""The least (epsilon, delta) that a Renyi divergence of one order gives, by tangents to its moment.

Notation: a the order, n = a - 1, r the divergence, K = e^(n r), g = e^epsilon; p and q the probabilities of an event
under two distributions, delta = p - g q; c(z) = ln((1 - e^-z) / z).

By data processing p^a q^-n + (1-p)^a (1-q)^-n <= K, and no more follows: distributions on two points may meet it.
The function f(p, q) = p^a q^-n is convex and homogeneous, so f(p, q) >= a x^n p - n x^a q for every x > 0. With x for
the event and y = e^-m < x for the other,

    a (x^n - y^n) p - n (x^a - y^a) q <= K - y^n (a - n y).

Let L = ln(x/y), v = 1 - y and w = n m - ln(1 + n v) >= 0, so that y^n (a - n y) = e^-w. Where n (x^a - y^a) is
g a (x^n - y^n), that is epsilon = L - m + c(a L) - c(n L), it says

    delta <= (1 + n v) (e^(n r + w) - 1) / (a (e^(n L) - 1)),

for every L > 0 with m >= 0 (no more is needed), and solved for L, at a given delta, for every m > 0. The best of them
is the answer, by the duality of convex programmes; y = 0 is proposition 12 of Canonne, Kamath and Steinke
(2020), and epsilon = 0 the largest total variation. n = 0 is Kullback-Leibler: delta <= (r + m - v) / L, epsilon =
L - m + c(L). Since the tangents hold for every x and y, the search cannot make the answer untrue.

Where a g / n <= e^r, or delta a >= 1, the best event has p = 1: the tangent with y = 0 and x = e^r, and p <= 1, give
delta <= 1 - e^(epsilon - r), which p = 1, q = e^-r attains.

Proofs: docs/proofs/conversions.md, theorem 12.9.
"""

# bounds: none - keeps a logarithm of 0 and subnormal products away: of smaller divergences y = 0 is taken

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.numerics import FloatArray, exp_excess
from ._closed_forms import minus_log1pmx

# (divergence, order, epsilon or delta) -> (delta or epsilon, its rounding error)
TangentBound = Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
# bound: proved - docs/proofs/conversions.md, 12.11: rounding of each term of the exponent, 18 units
TERM_ERROR = 2e-15  # relative, some units in the last place
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)  # the golden section
_NEGLIGIBLE_FROM = 20.0  # (a - 1) r beyond which the tangents gain less than a relative e^-20 = 2e-9
# bound: none - when the search for an order ends: any order gives a bound. The longest interval of logarithms, 600
#    ln(10), shrinks to 1e-8, of which the answer loses the square. One number for all, so that an entry of an array
#    does not depend on the others.
_SECTIONS = 54


def smaller_by_tangents(
    tangent_bound: TangentBound, value: FloatArray, error: FloatArray, renyi: FloatArray, order: FloatArray,
    target: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """``value``, of the tangent with y = 0, and its error, or what the tangents give where that promises more.

    The tangent with y = 0 leaves out what K exceeds by 1 at most: a relative e^(-n r), not looked for below 2e-9.
    """
    renyi, order, target, value, error = np.broadcast_arrays(renyi, order, target, value, error)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        certain = renyi - target >= -np.log1p(-1.0 / order)
        if tangent_bound is epsilon_by_tangents:
            certain = target * order >= 1.0
        chosen = ((order - 1.0) * renyi < _NEGLIGIBLE_FROM) | certain
        chosen &= (renyi > 1e-270) & np.isfinite(renyi) & np.isfinite(order) & np.isfinite(target)
        chosen &= (value > 0.0) & ((target > 0.0) | (tangent_bound is delta_by_tangents))
    if not chosen.any():
        return value, error
    candidate, slack = tangent_bound(renyi[chosen], order[chosen], target[chosen])
    with np.errstate(invalid="ignore", over="ignore"):  # where both are infinite, neither is better
        better, least_value = candidate + slack < value[chosen] + error[chosen], np.maximum(candidate, 0.0)
        slack = np.maximum(candidate + slack, 0.0) - least_value
    value, error = value.copy(), error.copy()
    value[chosen] = np.where(better, least_value, value[chosen])
    error[chosen] = np.where(better, slack, error[chosen])
    return value, error


def delta_by_tangents(renyi: FloatArray, order: FloatArray, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Delta at ``epsilon`` and its rounding error; inf where nothing is promised."""
    renyi, order, epsilon = np.broadcast_arrays(renyi, order, epsilon)
    n = order - 1.0

    def bound(log_part: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        gap = start + np.exp(log_part)  # L of the notation
        m = 0.5 * gap - epsilon + _log_ratio_difference(order * gap, n * gap, gap)
        v, w = _tangent_terms(np.maximum(m, 0.0), n)
        total = n * renyi + w
        log_total, log_span = _log_expm1(total), _log_expm1(n * gap)
        log_delta = np.where(
            n == 0.0, np.log((renyi + w) / gap), np.log1p(n * v) + log_total - np.log(order) - log_span
        )
        size = np.where(n == 0.0, np.abs(log_delta), np.abs(log_total) + np.abs(log_span) + np.log(order))
        size = 0.3 * size + total + n * gap + gap + epsilon + 8.0  # six units of the logarithms, 18 of the rest
        return np.where((m >= 0.0) & ~np.isnan(log_delta), log_delta, np.inf), size, gap

    with np.errstate(all="ignore"):
        start, scale = _log_ratio_at_one(epsilon, order, n), 8.0 * renyi / order
        least = scale / (np.sqrt(scale + 4.0 * epsilon * epsilon) + 2.0 * epsilon + n / order)  # about the best one
        slope = np.clip(n, 1e-6, np.inf)
        most = epsilon + 30.0 / slope + 2.0 * np.log1p(1.0 / slope)
        exponent, size, gap = bound(_minimize_log(lambda s: bound(s)[0], 1e-2 * least, most))
        value = np.exp(exponent)
        # the equation of epsilon holds but for rounding, which moves g by that much, and g q <= min(1, K g^-n)
        shifted = (gap + epsilon + np.minimum(order * gap, 2.0) ** 2) * np.exp(np.minimum(n * (renyi - epsilon), 0.0))
        error = TERM_ERROR * (size * value + shifted)
        certain = renyi - epsilon >= np.log(order / n) + TERM_ERROR * (1.0 + renyi + epsilon)  # beyond rounding
        value = np.where(certain, -np.expm1(epsilon - renyi), value)
        error = np.where(certain, TERM_ERROR * (1.0 + (renyi + epsilon) * np.exp(epsilon - renyi)) * value, error)
    return value, np.where(np.isfinite(error), error, np.inf)


def epsilon_by_tangents(renyi: FloatArray, order: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilon at ``delta``, also below 0, and its rounding error; inf where nothing is promised."""
    renyi, order, delta = np.broadcast_arrays(renyi, order, delta)
    n = order - 1.0

    def bound(log_m: FloatArray) -> tuple[FloatArray, FloatArray]:
        m = np.exp(log_m)
        v, w = _tangent_terms(m, n)
        total = n * renyi + w
        log_total, log_order = _log_expm1(total), np.log(order)
        log_ratio = np.log1p(n * v) + log_total - log_order - np.log(delta)
        gap = np.where(n == 0.0, (renyi + w) / delta, np.logaddexp(0.0, log_ratio) / n)
        epsilon = 0.5 * gap - m + _log_ratio_difference(order * gap, n * gap, gap)
        exponents = total + np.abs(log_total) + log_order + np.abs(np.log(delta)) + 8.0
        size = m + gap + exponents * np.minimum(gap, 1.0 / n) + 1.0
        return np.where(np.isnan(epsilon), np.inf, epsilon), np.where(n == 0.0, 8.0 * (m + gap) + 1.0, size)

    with np.errstate(all="ignore"):
        most = 30.0 / np.clip(n, 1e-6, np.inf)  # beyond it y^n is nothing
        value, size = bound(_minimize_log(lambda s: bound(s)[0], 0.25 * delta, most))  # 2 delta where all is small
        certain = delta * order >= 1.0 + TERM_ERROR
        value = np.where(certain, renyi + np.log1p(-delta), value)
        error = TERM_ERROR * np.where(certain, renyi - np.log1p(-delta) + delta / (1.0 - delta), size)
    return value, np.where(np.isfinite(error), error, np.inf)


def _log_ratio_at_one(epsilon: FloatArray, order: FloatArray, n: FloatArray) -> FloatArray:
    """L at y = 1: L + c(a L) - c(n L) = epsilon, by the secant; between epsilon and 2 epsilon."""

    def excess(gap: FloatArray) -> FloatArray:
        return 0.5 * gap - epsilon + _log_ratio_difference(order * gap, n * gap, gap)

    first, second = 1.0 * epsilon, 2.0 * epsilon
    at_first, at_second = excess(first), excess(second)
    for _ in range(8):
        step = at_second * (second - first) / (at_second - at_first)
        fresh = np.clip(np.where(np.isfinite(step), second - step, second), epsilon, 2.0 * epsilon)
        first, at_first, second, at_second = second, at_second, fresh, excess(fresh)
    return np.asarray(np.where(epsilon > 0.0, second, 0.0))


def _tangent_terms(m: FloatArray, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """v = 1 - e^-m, and w = n (m - v) + (n v - ln(1 + n v)); m - v for n = 0, as that is its slope in n."""
    v, beyond = -np.expm1(-m), exp_excess(-m)
    return v, np.where(n == 0.0, beyond, n * beyond + minus_log1pmx(n * v))


def _log_expm1(x: FloatArray) -> FloatArray:
    """ln(e^x - 1) for x >= 0."""
    return np.asarray(np.where(x < 30.0, np.log(np.expm1(np.minimum(x, 30.0))), x + np.log1p(-np.exp(-x))))


def _log_ratio_difference(first: FloatArray, second: FloatArray, gap: FloatArray) -> FloatArray:
    """c(first) - c(second) + gap/2, where first - second = gap: of the even parts e(z) = ln(sinh(z/2) / (z/2))."""
    far = second > 2.0
    beyond = 0.5 * gap + np.log(second / first) + np.log1p(-np.exp(-first)) - np.log1p(-np.exp(-second))
    near = _log_sinhc(np.where(far, 1.0, first)) - _log_sinhc(np.where(far, 1.0, second))
    return np.where(far, beyond, near)


def _log_sinhc(z: FloatArray) -> FloatArray:
    u = 0.25 * np.minimum(z, 2.0) ** 2
    series = np.ones_like(u)
    for k in range(8, 1, -1):
        series = 1.0 + series * u / ((2 * k) * (2 * k + 1))
    wide = np.maximum(z, 2.0)
    return np.where(z <= 2.0, np.log1p(series * u / 6.0), 0.5 * wide - np.log(wide) + np.log1p(-np.exp(-wide)))


def _minimize_log(function: Callable[[FloatArray], FloatArray], least: FloatArray, most: FloatArray) -> FloatArray:
    """Golden section of a function of a logarithm, which falls and then rises."""
    low, high = (np.log(np.clip(np.where(np.isnan(end), 1.0, end), 1e-300, 1e300)) for end in (least, most))
    high = np.maximum(low, high)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_SECTIONS):
        down = at_left < at_right - 4.0 * np.spacing(np.abs(np.where(np.isfinite(at_right), at_right, 0.0)))
        low, high = np.where(down, low, left), np.where(down, right, high)
        fresh = np.where(down, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_fresh = function(fresh)
        left, right = np.where(down, fresh, right), np.where(down, left, fresh)
        at_left, at_right = np.where(down, at_fresh, at_right), np.where(down, at_left, at_fresh)
    return np.asarray(np.where(at_left <= at_right, left, right))
