"""Numbers with a radius: every formula that is written with them carries a bound on its own rounding.

Notation: a ball is a midpoint m and a radius r >= 0; what it stands for lies in [m - r, m + r]. u = 2^-53: sums and
products of doubles are right to u, quotients too; exp, expm1, log and log1p are taken to be right to 8 u, which is more
than the libraries in use are off. A radius is itself a sum of few rounded terms: the factor 1 + 2^-40 covers it.
"""

# bounds: proved - roundings of each operation, counted beside it; series by their next term

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["Ball", "log_of_count", "quotient", "stacked"]

# bound: proved - half a unit in the last place of a double, IEEE 754
_U = 2.0**-53
# bound: tested by kernels/test_bound_constants - error of NumPy's exp, expm1, log, log1p, which no standard bounds
_LIBRARY = 8 * _U  # relative error of exp, expm1, log, log1p
# bound: proved - rounding of a radius, a sum of fewer than 2^12 terms
_WIDER = 1.0 + 2.0**-40
# bound: proved - underflow of one operation: two subnormal units
_TINY = 1e-323
_FEW = 2**16  # terms up to which a sum is rounded once
_NEAR = 0.5
_LOG2 = math.log(2.0)
_KAPPA = [1.0 / math.factorial(k) for k in range(2, 18)]
# phi(tanh(y / 2)) / y^2 in powers of y^2; the next term is below 2^-56 of the first on |y| <= 1/2
_PHI = [
    1 / 8, -1 / 64, 1 / 576, -17 / 92160, 31 / 1612800, -691 / 348364800, 5461 / 26824089600,
    -929569 / 44635285094400, 3202291 / 1506440871936000, -2.1664872983109939e-10, 2.205613494954526e-11,
]  # fmt: skip


class Ball:
    """Midpoints and radii of one shape; scalars are arrays without axes.

    Examples
    --------
    >>> from fastpriv.posteriors.implicit.balls import Ball
    >>> third = Ball(1.0) / Ball(3.0)
    >>> bool(third.lower < 1 / 3 < third.upper), bool(third.rad < 1e-16)
    (True, True)
    """

    __slots__ = ("mid", "rad")

    def __init__(self, mid: Any, rad: Any = 0.0) -> None:
        self.mid: Any = np.asarray(mid, dtype=np.float64)
        given = np.asarray(rad, dtype=np.float64)
        self.rad: Any = given if given.shape == self.mid.shape else np.broadcast_to(given, self.mid.shape)

    @property
    def lower(self) -> Any:
        """At most what the ball stands for."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid - self.rad, -np.inf))

    @property
    def upper(self) -> Any:
        """At least what the ball stands for."""
        return np.where(self.rad == 0, self.mid, np.nextafter(self.mid + self.rad, np.inf))

    def __getitem__(self, index: Any) -> Ball:
        return Ball(self.mid[index], self.rad[index])

    def __neg__(self) -> Ball:
        return Ball(-self.mid, self.rad)

    def __add__(self, other: Ball) -> Ball:
        total = self.mid + other.mid
        part = total - self.mid
        lost = np.abs((self.mid - (total - part)) + (other.mid - part))  # exactly what rounding took
        return Ball(total, (self.rad + other.rad) * _WIDER + lost)

    def __sub__(self, other: Ball) -> Ball:
        return self + -other

    def __mul__(self, other: Ball) -> Ball:
        product = self.mid * other.mid
        spread = np.abs(self.mid) * other.rad + self.rad * (np.abs(other.mid) + other.rad)
        exact = (self.mid == 0) | (other.mid == 0) | (np.abs(self.mid) == 1) | (np.abs(other.mid) == 1)
        return Ball(product, spread * _WIDER + np.where(exact, 0.0, _U * np.abs(product) + _TINY))

    def __truediv__(self, other: Ball) -> Ball:
        """By a ball that keeps away from 0."""
        ratio = self.mid / other.mid
        least = np.abs(other.mid) - other.rad
        spread = (self.rad + np.abs(ratio) * other.rad) / np.where(least > 0, least, 0.0)
        return Ball(ratio, spread * _WIDER + _U * np.abs(ratio) + _TINY)

    def times(self, factor: float) -> Ball:
        """By a number that is exact."""
        return self * Ball(factor)

    def like(self, other: Ball) -> Ball:
        """This scalar once for every entry of another."""
        shape = other.mid.shape
        return Ball(np.full(shape, float(self.mid)), np.full(shape, float(self.rad)))

    def sum(self) -> Ball:
        """Of all entries, rounded once where they are few."""
        if self.mid.size <= _FEW and np.isfinite(self.mid).all():
            found = math.fsum(self.mid.ravel().tolist())
            return Ball(found, (math.fsum(self.rad.ravel().tolist()) + _U * abs(found)) * _WIDER)
        flat = np.ascontiguousarray(self.mid.ravel())
        lost = (24 + math.log2(flat.size)) * _U * float(np.sum(np.abs(flat)))  # pairs of runs of 128 in 8 lanes
        return Ball(np.sum(flat), (float(np.sum(self.rad)) + lost) * (1.0 + 2.0**-30))

    def exp(self) -> Ball:
        """e to this power."""
        found = np.exp(self.mid)
        return Ball(found, found * (np.expm1(self.rad) * _WIDER + np.where(self.mid == 0, 0, _LIBRARY)) + _tiny(found))

    def expm1(self) -> Ball:
        """exp(x) - 1."""
        found = np.expm1(self.mid)
        return Ball(found, (found + 1) * np.expm1(self.rad) * _WIDER + _LIBRARY * np.abs(found) + _tiny(found))

    def log1p(self) -> Ball:
        """log(1 + x); an infinite radius where the ball reaches -1."""
        found = np.log1p(np.maximum(self.mid, -1 + _U))
        least = 1 + self.mid - self.rad
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(self.rad == 0, 0.0, np.where(least > 2.0**-50, self.rad / least, np.inf))
        return Ball(found, spread * _WIDER + _LIBRARY * np.abs(found) + _tiny(found))

    def log(self) -> Ball:
        """Natural logarithm; an infinite radius where the ball reaches 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.log(self.mid)
            inside = np.where(self.rad < self.mid, self.rad / (self.mid - self.rad), np.inf)
            spread = np.where(self.rad == 0, 0.0, inside)
        return Ball(found, spread * _WIDER + _LIBRARY * np.abs(found))

    def kappa(self) -> Ball:
        """exp(x) - 1 - x for |x| <= 1/2, to its leading order."""
        x = self.mid
        found = x * x * np.polynomial.polynomial.polyval(x, _KAPPA)
        slope = (np.abs(x) + self.rad) * 1.7 * self.rad
        return Ball(found, slope * _WIDER + 8 * _U * found + _tiny(found))

    def phi(self) -> Ball:
        """log 2 less the entropy of the odds e^y, for |y| <= 1/2, to its leading order y^2 / 8."""
        z = self.mid * self.mid
        found = z * np.polynomial.polynomial.polyval(z, _PHI)
        slope = (np.abs(self.mid) + self.rad) * 0.25 * self.rad
        return Ball(found, slope * _WIDER + 8 * _U * found + _tiny(found))

    def __repr__(self) -> str:
        return f"<Ball {self.mid} +- {self.rad}>"


def _tiny(found: Any) -> Any:
    return np.where(found == 0, _TINY, np.where(np.abs(found) < 1e-290, _TINY, 0.0))


def quotient(top: int, bottom: int) -> Ball:
    """A ratio of natural numbers of any size."""
    found = top / bottom
    return Ball(found, 0.0 if found in (0.0, 1.0) and top in (0, bottom) else _U * found + _TINY)


def log_of_count(count: int) -> Ball:
    """Logarithm of a natural number of any size, at least 1."""
    shift = max(0, count.bit_length() - 64)
    found = math.log(count >> shift) + shift * _LOG2
    return Ball(found, 0.0 if count == 1 else _LIBRARY * found + (2.0**-63 if shift else 0.0))


def stacked(balls: list[Ball]) -> Ball:
    """Scalars side by side."""
    return Ball(np.array([float(b.mid) for b in balls]), np.array([float(b.rad) for b in balls]))
