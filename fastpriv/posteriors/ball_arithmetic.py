"""Ball arithmetic: numbers with a radius, so that every formula written with them bounds its own rounding.

Notation: a ball has a midpoint m and a radius r >= 0; the number that it stands for lies in [m - r, m + r]. u = 2^-53.
Sums, products and quotients of doubles are right to u; exp, expm1, log and log1p are those of ``special``, right to
8 u. A radius is itself a sum of few rounded terms, covered by the factor 1 + 2^-40.
"""

# bounds: proved - roundings of each operation, counted beside it; series by their next term

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import special
from ..base.numerics import LOG_2, UNIT_ROUNDOFF, two_sum

# bound: proved - relative error of exp, expm1, log and log1p of ``special``: at most 2.51 ulps, by tools/proofs
_LIBRARY = 8 * UNIT_ROUNDOFF
# bound: proved - rounding of a radius, a sum of fewer than 2^12 terms
_RADIUS_ROUNDING = 1.0 + 2.0**-40
# bound: proved - underflow of one operation: two subnormal units
_UNDERFLOW = 1e-323
_FSUM_LIMIT = 2**16  # terms; up to here math.fsum, which rounds once, is fast enough
_EXPM1_SERIES = [1.0 / math.factorial(k) for k in range(2, 18)]  # (e^x - 1 - x) / x^2 in powers of x, for |x| <= 1/2
# phi(tanh(y / 2)) / y^2 in powers of y^2; the next term is below 2^-56 of the first on |y| <= 1/2
_DEFICIT_SERIES = [
    1 / 8, -1 / 64, 1 / 576, -17 / 92160, 31 / 1612800, -691 / 348364800, 5461 / 26824089600,
    -929569 / 44635285094400, 3202291 / 1506440871936000, -2.1664872983109939e-10, 2.205613494954526e-11,
]


class Ball:
    """Midpoints and radii of one shape; scalars are arrays without axes.

    Examples
    --------
    >>> from fastpriv.posteriors.ball_arithmetic import Ball
    >>> third = Ball(1.0) / Ball(3.0)
    >>> bool(third.lower < 1 / 3 < third.upper), bool(third.rad < 1e-16)
    (True, True)
    """

    __slots__ = ("mid", "rad")

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        self.mid: Any = np.asarray(mid, dtype=np.float64)
        radius = np.asarray(rad, dtype=np.float64)
        self.rad: Any = radius if radius.shape == self.mid.shape else np.broadcast_to(radius, self.mid.shape)

    @property
    def lower(self) -> Any:
        """Lower end of the ball, rounded down."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid - self.rad, -np.inf))

    @property
    def upper(self) -> Any:
        """Upper end of the ball, rounded up."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid + self.rad, np.inf))

    def __getitem__(self, index: Any) -> Ball:
        return Ball(self.mid[index], self.rad[index])

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Ball) -> Ball:
        total, error = two_sum(self.mid, other.mid)
        return Ball(total, (self.rad + other.rad) * _RADIUS_ROUNDING + np.abs(error))

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        product = self.mid * other.mid
        spread = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        exact = (self.mid == 0) | (other.mid == 0) | (np.abs(self.mid) == 1) | (np.abs(other.mid) == 1)
        rounding = np.where(exact, 0.0, UNIT_ROUNDOFF * np.abs(product) + _UNDERFLOW)
        return Ball(product, spread * _RADIUS_ROUNDING + rounding)

    def __truediv__(self, other: Ball) -> Ball:
        """Quotient by a ball that does not contain 0."""
        ratio = self.mid / other.mid
        least = np.abs(other.mid) - other.rad
        spread = (self.rad + np.abs(ratio) * other.rad) / np.where(least > 0, least, 0.0)
        return Ball(ratio, spread * _RADIUS_ROUNDING + UNIT_ROUNDOFF * np.abs(ratio) + _UNDERFLOW)

    def times(self, factor: float) -> Ball:
        """Product with an exact number."""
        return self * Ball(factor)

    def broadcast_like(self, other: Ball) -> Ball:
        """Repeat a scalar ball over the shape of another."""
        shape = other.mid.shape
        return Ball(np.full(shape, float(self.mid)), np.full(shape, float(self.rad)))

    def sum(self) -> Ball:
        """Sum of all entries; up to ``_FSUM_LIMIT`` of them are rounded once."""
        if self.mid.size <= _FSUM_LIMIT and np.isfinite(self.mid).all():
            total = math.fsum(self.mid.ravel().tolist())
            return Ball(total, (math.fsum(self.rad.ravel().tolist()) + UNIT_ROUNDOFF * abs(total)) * _RADIUS_ROUNDING)
        flat = np.ascontiguousarray(self.mid.ravel())
        # NumPy adds runs of 128 in 8 lanes, then the runs in pairs
        error = (24 + math.log2(flat.size)) * UNIT_ROUNDOFF * float(np.sum(np.abs(flat)))
        return Ball(np.sum(flat), (float(np.sum(self.rad)) + error) * (1.0 + 2.0**-30))

    def exp(self) -> Ball:
        """exp(x)."""
        value = special.exp(self.mid)
        relative = np.expm1(self.rad) * _RADIUS_ROUNDING + np.where(self.mid == 0, 0, _LIBRARY)
        return Ball(value, value * relative + _underflow(value))

    def expm1(self) -> Ball:
        """exp(x) - 1."""
        value = special.expm1(self.mid)
        spread = (value + 1) * np.expm1(self.rad)
        return Ball(value, spread * _RADIUS_ROUNDING + _LIBRARY * np.abs(value) + _underflow(value))

    def log1p(self) -> Ball:
        """log(1 + x); the radius is infinite where the ball reaches -1."""
        value = special.log1p(np.maximum(self.mid, -1 + UNIT_ROUNDOFF))
        least = 1 + self.mid - self.rad
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(self.rad == 0, 0.0, np.where(least > 2.0**-50, self.rad / least, np.inf))
        return Ball(value, spread * _RADIUS_ROUNDING + _LIBRARY * np.abs(value) + _underflow(value))

    def log(self) -> Ball:
        """Natural logarithm; the radius is infinite where the ball reaches 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = special.log(self.mid)
            inside = np.where(self.rad < self.mid, self.rad / (self.mid - self.rad), np.inf)
            spread = np.where(self.rad == 0, 0.0, inside)
        return Ball(value, spread * _RADIUS_ROUNDING + _LIBRARY * np.abs(value))

    def expm1_minus_x(self) -> Ball:
        """exp(x) - 1 - x for |x| <= 1/2, to relative precision."""
        x = self.mid
        value = x * x * np.polynomial.polynomial.polyval(x, _EXPM1_SERIES)
        slope = (np.abs(x) + self.rad) * 1.7 * self.rad
        return Ball(value, slope * _RADIUS_ROUNDING + 8 * UNIT_ROUNDOFF * value + _underflow(value))

    def entropy_deficit(self) -> Ball:
        """log 2 minus the entropy of the odds e^y in nats, for |y| <= 1/2, to relative precision."""
        z = self.mid * self.mid
        value = z * np.polynomial.polynomial.polyval(z, _DEFICIT_SERIES)
        slope = (np.abs(self.mid) + self.rad) * 0.25 * self.rad
        return Ball(value, slope * _RADIUS_ROUNDING + 8 * UNIT_ROUNDOFF * value + _underflow(value))


def quotient(top: int, bottom: int) -> Ball:
    """Ratio of two natural numbers of any size."""
    value = top / bottom
    return Ball(value, 0.0 if value in (0.0, 1.0) and top in (0, bottom) else UNIT_ROUNDOFF * value + _UNDERFLOW)


def log_of_count(count: int) -> Ball:
    """Logarithm of a natural number of any size, at least 1."""
    shift = max(0, count.bit_length() - 64)
    value = math.log(count >> shift) + shift * LOG_2
    return Ball(value, 0.0 if count == 1 else _LIBRARY * value + (2.0**-63 if shift else 0.0))


def stack(balls: list[Ball]) -> Ball:
    """Scalar balls as one vector."""
    return Ball(np.array([float(b.mid) for b in balls]), np.array([float(b.rad) for b in balls]))


def select(condition: Any, chosen: Ball, otherwise: Ball) -> Ball:
    """Entry by entry, ``chosen`` where the condition holds and ``otherwise`` elsewhere."""
    return Ball(np.where(condition, chosen.mid, otherwise.mid), np.where(condition, chosen.rad, otherwise.rad))


def _underflow(value: Any) -> Any:
    """Error of a function value that may have become subnormal."""
    return np.where(np.abs(value) < 1e-290, _UNDERFLOW, 0.0)
