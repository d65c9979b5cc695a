"""Gaussian information by exact rational determinants, and the average-power capacity."""

from __future__ import annotations

from fractions import Fraction

from mpmath import mp, mpf

__all__ = ["average_power", "information"]

_DIGITS = 60


def information(signal, noise):
    """1/2 log det(K_Y + K_X) / det K_Y for nested lists of doubles, taken as exact; K_Y regular."""
    x, y = ([[Fraction(float(v)) for v in row] for row in k] for k in (signal, noise))
    together = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(x, y, strict=True)]
    excess = _determinant(together) / _determinant(y) - 1
    with mp.workdps(_DIGITS):
        return mp.log1p(mpf(excess.numerator) / excess.denominator) / 2


def average_power(dimension, amplitude, sigma):
    """d/2 log(1 + A^2 / (d sigma^2))."""
    with mp.workdps(_DIGITS):
        ratio = (mpf(float(amplitude)) / mpf(float(sigma))) ** 2 / mpf(float(dimension))
        return mpf(float(dimension)) * mp.log1p(ratio) / 2


def _determinant(k):
    """Of a positive definite matrix, by elimination."""
    rows, product = [list(row) for row in k], Fraction(1)
    for i, pivot in enumerate(rows):
        product *= pivot[i]
        for row in rows[i + 1 :]:
            factor = row[i] / pivot[i]
            row[i:] = [a - factor * b for a, b in zip(row[i:], pivot[i:], strict=True)]
    return product
