"""Gaussian information by exact rational determinants, and both players' best responses by bisection."""

from __future__ import annotations

from fractions import Fraction

from mpmath import mp, mpf

__all__ = ["average_power", "information", "least_information", "water_filling"]

_DIGITS = 60
_WIDE = 900  # digits that hold sums of numbers from 1e-300 to 1e300
_CLOSE = mpf(10) ** -50


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


def water_filling(noise, power):
    """Capacity and allocation by bisection on the height of the water above the least noise."""
    with mp.workdps(_WIDE):
        p, least = mpf(float(power)), mpf(min(noise))
        steps = [mpf(v) - least for v in noise]
        height = _solve(lambda h: sum(max(h - v, mpf(0)) for v in steps), p, mpf(0), p)
        signal = [max(height - v, mpf(0)) for v in steps]
    with mp.workdps(_DIGITS):
        return sum(mp.log1p(s / mpf(v)) for s, v in zip(signal, noise, strict=True)) / 2, signal


def least_information(signal, power):
    """Least information and allocation by bisection on the logarithm of the multiplier."""
    with mp.workdps(_DIGITS):
        x, p = [mpf(v) for v in signal if v > 0], mpf(float(power))

        def noise(y):
            t = mp.exp(y)
            return [2 * t / (1 + mp.sqrt(1 + 4 * t / v)) for v in x]

        n = noise(_solve(lambda y: sum(noise(y)), p, mpf(-2000), mpf(5000)))
        return sum(mp.log1p(v / m) for v, m in zip(x, n, strict=True)) / 2, n


def _solve(increasing, goal, low, high):
    while high - low > _CLOSE * abs(high):
        middle = (low + high) / 2
        if increasing(middle) < goal:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _determinant(k):
    """Of a positive definite matrix, by elimination."""
    rows, product = [list(row) for row in k], Fraction(1)
    for i, pivot in enumerate(rows):
        product *= pivot[i]
        for row in rows[i + 1 :]:
            factor = row[i] / pivot[i]
            row[i:] = [a - factor * b for a, b in zip(row[i:], pivot[i:], strict=True)]
    return product
