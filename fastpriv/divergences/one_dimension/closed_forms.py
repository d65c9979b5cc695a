"""Closed forms of one-dimensional Gaussians.

Notation: P = N(m, s^2) and Q = N(n, t^2): x = s^2/t^2 - 1 and z = (m - n)/t; a is the order and b = a - 1. These
are formed in rational arithmetic, so that only the last steps round. ``excess(x) = x - log(1 + x) >= 0`` keeps its
relative accuracy near 0.
"""

from __future__ import annotations

import math
from fractions import Fraction

from ...base.estimate import Estimate
from ...base.numerics import LARGEST_DOUBLE, SMALLEST_NORMAL, next_above
from ...distributions import GaussianMixture

LOG_2_PI_E = 2.8378770664093454836  # log(2 pi e), in nats
_MAX_SERIES_ARGUMENT = 0.25  # |x| up to which logarithms of 1 + x are taken by log1p
_SERIES_RANGE = -0.5, 2.0  # of x whose excess is summed as a series


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
    if not _SERIES_RANGE[0] <= x <= _SERIES_RANGE[1]:
        return to_float(x) - _log(1 + x)
    # y = x / (2 + x), at most 1/2: log(1 + x) = 2 (y + y^3/3 + ...) and x - 2 y = x y
    y = float(x / (2 + x))
    square = y * y
    tail = 0.0
    for k in range(61, 1, -2):
        tail = tail * square + 2.0 / k
    return float(x) * y - y * square * tail


def variance_term(x: Fraction, b: Fraction) -> float:
    """The part of the Renyi divergence of order 1 + b >= 1/2 that equal means leave, to 32 ulp."""
    if _SERIES_RANGE[0] <= x <= _SERIES_RANGE[1]:  # and so is -b x where the terms have different signs
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
