"""Two normal laws: closed forms without cancellation.

Notation: P = N(m, s^2), Q = N(n, t^2), x = s^2/t^2 - 1 and z = (m - n)/t; a the order, b = a - 1. These are formed in
rational arithmetic, so that only the last steps round. ``excess(x) = x - log(1 + x) >= 0`` keeps its relative
accuracy near 0.
"""

# bounds: tested by enclosures/test_integrals - rounding of closed forms of two normal laws

from __future__ import annotations

import math
import sys
from fractions import Fraction

from ...distributions import GaussianMixture
from ...estimate import Estimate

__all__ = ["entropy", "excess", "kl", "renyi", "root", "spread", "to_float"]

_LOG_2_PI_E = 2.8378770664093454836
_SERIES = 0.25


def kl(p: GaussianMixture, q: GaussianMixture) -> Estimate:
    """KL(P||Q) = (excess(x) + z^2) / 2."""
    x, square = _pair(p, q)
    return _exact((excess(x) + to_float(square)) / 2, 16)


def renyi(p: GaussianMixture, q: GaussianMixture, order: float) -> Estimate:
    """Renyi divergence of a finite order a for which it is finite; Gil, Alajaji and Linder 2013, table 2.

    D_a(P||Q) = a z^2 / (2 (1 - b x)) + (excess(x) + excess(-b x) / b) / 2, whose second part is also
    -(log(1 + x) + log(1 - b x) / b) / 2; for a < 1/2 it is a / (1 - a) times that of Q and P at order 1 - a.
    """
    a = Fraction(order)
    x, square = _pair(p, q)
    centre = to_float(a * square / (2 * (1 - (a - 1) * x)))
    if 2 * a < 1:
        x, _ = _pair(q, p)
        return _exact(centre + to_float(a / (1 - a)) * spread(x, -a), 64)
    return _exact(centre + spread(x, a - 1), 64)


def entropy(p: GaussianMixture) -> Estimate:
    """log(2 pi e s^2) / 2."""
    log_sigma = math.log(float(p.sigmas[0]))
    value = _LOG_2_PI_E / 2 + log_sigma
    error = 2.0**-52 * (2.0 + abs(log_sigma) + abs(value))
    return Estimate(value, value - error, value + error, kind="exact", unit="nats", method="closed form")


def excess(x: Fraction) -> float:
    """The excess x - log(1 + x) of an exact x > -1, 8 ulp."""
    if abs(x) > _SERIES:
        return to_float(x) - _log(1 + x)
    # y = x / (2 + x): log(1 + x) = 2 (y + y^3/3 + ...) and x - 2 y = x y
    y = float(x / (2 + x))
    square = y * y
    tail = 0.0
    for k in range(25, 1, -2):
        tail = tail * square + 2.0 / k
    return float(x) * y - y * square * tail


def spread(x: Fraction, b: Fraction) -> float:
    """The part of the Renyi divergence of order 1 + b >= 1/2 that equal means leave; 32 ulp."""
    if max(abs(x), abs(b * x)) <= _SERIES or (b > 0 and abs(x) <= _SERIES):
        return (excess(x) + excess(-b * x) / float(b)) / 2
    return -(_log(1 + x) + _log(1 - b * x) / float(b)) / 2


def _pair(p: GaussianMixture, q: GaussianMixture) -> tuple[Fraction, Fraction]:
    (m, s), (n, t) = ((Fraction(float(law.means[0])), Fraction(float(law.sigmas[0]))) for law in (p, q))
    return (s / t) ** 2 - 1, ((m - n) / t) ** 2


def _log(x: Fraction) -> float:
    """Logarithm of an exact positive number of any size, 2 ulp."""
    if abs(x - 1) <= _SERIES:
        return math.log1p(float(x - 1))
    if sys.float_info.min < x < sys.float_info.max:
        return math.log(x)
    return math.log(x.numerator) - math.log(x.denominator)


def root(x: Fraction) -> float:
    """The square root of an exact number, rounded up; infinite beyond the doubles."""
    e = (x.numerator.bit_length() - x.denominator.bit_length()) // 2 if x else 0
    mantissa = math.nextafter(math.sqrt(math.nextafter(float(x / Fraction(4) ** e), math.inf)), math.inf)
    return math.ldexp(mantissa, e) if e < 1020 else math.inf


def to_float(x: Fraction) -> float:
    """The nearest double, infinite beyond them."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _exact(value: float, ulps: int) -> Estimate:
    if math.isinf(value):  # beyond the range of doubles, not infinite
        return Estimate(value, sys.float_info.max, value, kind="exact", unit="nats", method="closed form")
    margin = ulps * math.ulp(value) if value else 0.0
    return Estimate(value, max(0.0, value - margin), value + margin, kind="exact", unit="nats", method="closed form")
