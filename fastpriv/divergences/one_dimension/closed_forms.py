"""Closed forms of one-dimensional Gaussians, and closed-form bounds of mixtures from their components.

Notation: P = sum w_i N(m_i, s_i^2), Q = sum v_j N(n_j, t_j^2), h the differential entropy, H(w) = -sum w_i log w_i.

Two Gaussians P = N(m, s^2) and Q = N(n, t^2): x = s^2/t^2 - 1 and z = (m - n)/t; a is the order and b = a - 1. These
are formed in rational arithmetic, so that only the last steps round. ``excess(x) = x - log(1 + x) >= 0`` keeps its
relative accuracy near 0.

Bounds from components serve pairs for which quadrature leaves the range of doubles. They are computed in extended
precision, whose range holds every square of a distance in standard deviations. Where the extended type is a double,
what overflows becomes infinite on the side on which that is a true bound.
"""

# bounds: tested by enclosures/test_integrals, enclosures/test_far_components - rounding of closed forms of two
#    Gaussians and of the nearest component's logarithm

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from ...base.estimate import Estimate
from ...base.numerics import LARGEST_DOUBLE, SMALLEST_NORMAL, LongDoubleArray, next_above
from ...distributions import GaussianMixture
from .quadrature import NO_DEADLINE, Deadline

__all__ = [
    "LOG_2_PI_E", "excess", "gaussian_kl", "gaussian_max_divergence", "gaussian_renyi",
    "kl_bounds", "renyi_lower_bound",
    "square_root_above", "to_float", "variance_term",
]  # fmt: skip

LOG_2_PI_E = 2.8378770664093454836  # log(2 pi e), in nats
_LOG_2_PI = 1.8378770664093454836  # log(2 pi), in nats
_MAX_SERIES_ARGUMENT = 0.25  # |x| up to which logarithms of 1 + x are summed as a series, or taken by log1p
_MAX_BLOCK_ROWS = 256  # components of P at a time
_MAX_BLOCK_PAIRS = 2**18  # pairs of components at a time, where there is more than one row of them
# bound: tested by enclosures/test_far_components - rounding in extended precision, relative to all sizes that enter
_OUTWARD = 1e-12


def gaussian_kl(p: GaussianMixture, q: GaussianMixture) -> Estimate:
    """KL(P||Q) = (excess(x) + z^2) / 2 of two Gaussians, in nats."""
    x, square = _variance_and_mean_terms(p, q)
    return _closed_form_estimate((excess(x) + to_float(square)) / 2, 16)


def gaussian_renyi(p: GaussianMixture, q: GaussianMixture, order: float) -> Estimate:
    """Renyi divergence of a finite order a for which it is finite; Gil, Alajaji and Linder 2013, table 2.

    D_a(P||Q) = a z^2 / (2 (1 - b x)) + (excess(x) + excess(-b x) / b) / 2, whose second part is also
    -(log(1 + x) + log(1 - b x) / b) / 2; for a < 1/2 it is a / (1 - a) times that of Q and P at order 1 - a.
    """
    a = Fraction(order)
    x, square = _variance_and_mean_terms(p, q)
    centre = to_float(a * square / (2 * (1 - (a - 1) * x)))
    if 2 * a < 1:
        x, _ = _variance_and_mean_terms(q, p)
        return _closed_form_estimate(centre + to_float(a / (1 - a)) * variance_term(x, -a), 64)
    return _closed_form_estimate(centre + variance_term(x, a - 1), 64)


def gaussian_max_divergence(p: GaussianMixture, q: GaussianMixture) -> Estimate:
    """Renyi divergence of order infinity, log sup p/q = z^2 / (-2 x) - log(1 + x) / 2, where s < t and so x < 0."""
    x, square = _variance_and_mean_terms(p, q)
    return _closed_form_estimate(to_float(square / (-2 * x)) - _log(1 + x) / 2, 16)


def excess(x: Fraction) -> float:
    """The excess x - log(1 + x) of an exact x > -1, to 8 ulp."""
    if abs(x) > _MAX_SERIES_ARGUMENT:
        return to_float(x) - _log(1 + x)
    # y = x / (2 + x): log(1 + x) = 2 (y + y^3/3 + ...) and x - 2 y = x y
    y = float(x / (2 + x))
    square = y * y
    tail = 0.0
    for k in range(25, 1, -2):
        tail = tail * square + 2.0 / k
    return float(x) * y - y * square * tail


def variance_term(x: Fraction, b: Fraction) -> float:
    """The part of the Renyi divergence of order 1 + b >= 1/2 that equal means leave, to 32 ulp."""
    if max(abs(x), abs(b * x)) <= _MAX_SERIES_ARGUMENT or (b > 0 and abs(x) <= _MAX_SERIES_ARGUMENT):
        return (excess(x) + excess(-b * x) / float(b)) / 2
    return -(_log(1 + x) + _log(1 - b * x) / float(b)) / 2


def _variance_and_mean_terms(p: GaussianMixture, q: GaussianMixture) -> tuple[Fraction, Fraction]:
    (m, s), (n, t) = ((Fraction(float(mixture.means[0])), Fraction(float(mixture.sigmas[0]))) for mixture in (p, q))
    return (s / t) ** 2 - 1, ((m - n) / t) ** 2


def _log(x: Fraction) -> float:
    """Logarithm of an exact positive number of any size, to 2 ulp."""
    if abs(x - 1) <= _MAX_SERIES_ARGUMENT:
        return math.log1p(float(x - 1))
    if SMALLEST_NORMAL < x < LARGEST_DOUBLE:
        return math.log(x)
    return math.log(x.numerator) - math.log(x.denominator)


def square_root_above(x: Fraction) -> float:
    """The square root of an exact number, rounded up; infinite beyond the doubles."""
    e = (x.numerator.bit_length() - x.denominator.bit_length()) // 2 if x else 0
    mantissa = next_above(math.sqrt(next_above(float(x / Fraction(4) ** e))))
    return math.ldexp(mantissa, e) if e < 1020 else math.inf


def to_float(x: Fraction) -> float:
    """The nearest double, infinite beyond them."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _closed_form_estimate(value: float, ulps: int) -> Estimate:
    if math.isinf(value):  # beyond the range of doubles, not infinite
        return Estimate(value, LARGEST_DOUBLE, value, kind="exact", unit="nats", method="closed form")
    margin = ulps * math.ulp(value) if value else 0.0
    return Estimate(value, max(0.0, value - margin), value + margin, kind="exact", unit="nats", method="closed form")


def kl_bounds(p: GaussianMixture, q: GaussianMixture, *, deadline: Deadline = NO_DEADLINE) -> tuple[float, float]:
    """Bounds of KL(P||Q) in nats; 0 and infinity where the ``deadline`` comes first.

    Upper bound: sum w_i min_j (KL(N_i||M_j) - log v_j), since h(P) >= sum w_i h(N_i) and q >= v_j M_j.

    Lower bound: -sum w_i h(N_i) - H(w) - sum w_i E_i log q, with the larger of two bounds of -E_i log q. The first is
    sharp for a wide N_i: q is at most e^(-d^2 / 2 T^2) / (t sqrt(2 pi)), t and T the least and the largest t_j and d
    the distance from the means of Q, which lie within r of their centre c, and
    E_i d^2 >= (sqrt(s_i^2 + (m_i - c)^2) - r)^2 where that root exceeds r. The second is sharp for a narrow N_i: all
    but 2e-15 of it lies within 8 s_i of m_i, and there q <= l max_j v_j M_j, l the number of components of Q.
    """
    (w, m, s), (v, n, t) = _extended_parameters(p), _extended_parameters(q)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        upper, size = np.longdouble(0.0), np.longdouble(0.0)
        near = np.empty_like(w)  # a lower bound of -log q around m_i
        tops = -np.log(v) + np.log(t) + _LOG_2_PI / 2 - np.log(np.longdouble(v.size))
        nearest_cost = np.empty_like(w)  # min_j (KL(N_i||M_j) - log v_j)
        for rows in _row_blocks(w.size, v.size):
            if deadline.expired:
                return 0.0, math.inf
            ratio = s[rows, None] / t
            cost = (ratio**2 - 1 + ((m[rows, None] - n) / t) ** 2) / 2 - np.log(ratio) - np.log(v)
            nearest_cost[rows] = np.min(np.where(np.isnan(cost), np.inf, cost), axis=1)
            gap = np.maximum(np.abs(m[rows, None] - n) * (1 - _OUTWARD) - 8 * s[rows, None], 0) / t
            near[rows] = np.min(tops + gap**2 / 2, axis=1)
        for start in range(0, w.size, _MAX_BLOCK_ROWS):
            rows = slice(start, start + _MAX_BLOCK_ROWS)
            best = nearest_cost[rows]
            upper += np.sum(w[rows] * best)
            size += np.sum(w[rows] * (np.abs(best) + np.abs(np.log(w[rows])) + np.abs(np.log(s[rows])) + 3))
        centre, radius = (n.max() + n.min()) / 2, (n.max() - n.min()) / 2
        apart = np.maximum(np.hypot(s, m - centre) * (1 - _OUTWARD) - radius * (1 + _OUTWARD), 0)
        wide = np.log(t.min()) + _LOG_2_PI / 2 + (apart / t.max()) ** 2 / 2
        narrow = near - 2e-15 * (np.abs(near) + np.abs(np.log(t.min())) + 2)
        cross = np.sum(w * np.maximum(wide, narrow))
        noise = np.sum(w * (np.log(s) + (1 + _LOG_2_PI) / 2 - np.log(w)))
        size += np.sum(w * (np.abs(wide) + np.abs(near))) + abs(np.log(t.min())) + np.max(np.abs(np.log(v)))
        slack = _OUTWARD * size if np.isfinite(size) else np.longdouble(0.0)
        return _nonnegative_and_finite(cross - noise - slack), float(upper + slack)


def renyi_lower_bound(
    p: GaussianMixture, q: GaussianMixture, order: float, *, deadline: Deadline = NO_DEADLINE
) -> float:
    """A lower bound of D_a(P||Q), 0 where the ``deadline`` comes first.

    For a > 1 it is that of KL(P||Q). For a < 1, with b = 1 - a, p^a q^b <= sum (w_i N_i)^a (v_j M_j)^b, whose integrals
    have closed forms (Gil, Alajaji and Linder 2013).
    """
    if order > 1.0:
        return kl_bounds(p, q, deadline=deadline)[0]
    (w, m, s), (v, n, t) = _extended_parameters(p), _extended_parameters(q)
    a, b = np.longdouble(order), np.longdouble(1.0 - order)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        least = np.longdouble(np.inf)
        for rows in _row_blocks(w.size, v.size):
            if deadline.expired:
                return 0.0
            log_s, log_t = np.log(s[rows, None]), np.log(t)
            top = np.maximum(s[rows, None], t)  # b s^2 + a t^2 in its units
            spread = b * (s[rows, None] / top) ** 2 + a * (t / top) ** 2
            cost = a * b * ((m[rows, None] - n) / top) ** 2 / (2 * spread) + np.log(spread) / 2
            cost += np.log(top) - b * log_s - a * log_t - a * np.log(w[rows, None]) - b * np.log(v)
            size = np.abs(cost) + np.abs(log_s) + np.abs(log_t) + np.abs(np.log(w[rows, None])) + np.abs(np.log(v))
            cost = np.where(np.isfinite(cost), cost - _OUTWARD * (size + 10), cost)
            least = np.minimum(least, np.min(np.where(np.isnan(cost), -np.inf, cost)))
        return _nonnegative_and_finite((least - np.log(np.longdouble(w.size) * v.size)) / b)


def _row_blocks(rows: int, columns: int) -> Iterator[slice]:
    """Rows of a table of pairs, so many at a time that a step over them is short."""
    step = max(1, min(_MAX_BLOCK_ROWS, _MAX_BLOCK_PAIRS // columns))
    return (slice(start, start + step) for start in range(0, rows, step))


def _extended_parameters(p: GaussianMixture) -> tuple[LongDoubleArray, LongDoubleArray, LongDoubleArray]:
    """Weights scaled to sum 1, means and standard deviations in extended precision."""
    w = p.weights.astype(np.longdouble)
    return w / w.sum(), p.means.astype(np.longdouble), p.sigmas.astype(np.longdouble)


def _nonnegative_and_finite(bound: np.longdouble) -> float:
    """A lower bound as a double, at least 0 and finite; NaN becomes 0."""
    if np.isnan(bound):
        return 0.0
    return min(max(0.0, float(bound)), LARGEST_DOUBLE)
