"""delta(epsilon) of a few Poisson-subsampled Gaussians by integrals over one loss after another; no Fourier transform.

Notation: P = (1 - q) N(0, 1) + q N(m, 1), Q = N(0, 1), l = log(p/q) > l_0 = log(1 - q), and delta_j(e) the curve of the
sum of j losses and, where given, of one Gaussian mechanism. Then

    delta_(j+1)(e) = integral of p(x) delta_j(e - l(x)) dx,    delta_j(e) = 1 - e^e for e <= j l_0 (without the Gaussian),

and all terms are positive. delta_j is held as the logarithm at Chebyshev points of panels in xi, e = (j - 1) l_0 + l(xi).
The sums are in double precision and true to about 1e-12; delta_1 is computed by mpmath.
``python tests/oracles/jumps.py`` prints the truths of tests/enclosures/test_rare_losses.py.
"""

from __future__ import annotations

import math
from itertools import pairwise

import mpmath as mp
import numpy as np

DEGREE, PANEL = 18, 0.25
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


def loss(x: np.ndarray, q: float, m: float) -> np.ndarray:
    y = m * (x - 0.5 * m)
    return np.where(y > 30.0, np.logaddexp(math.log1p(-q), y + math.log(q)), np.log1p(q * np.expm1(np.minimum(y, 30.0))))


def place(e: np.ndarray, q: float, m: float) -> np.ndarray:
    """x with loss e > log(1 - q)"""
    grown = np.where(e > 1.0, e + np.log1p(-(1.0 - q) * np.exp(-np.maximum(e, 1.0))), np.log(np.expm1(np.minimum(e, 1.0)) + q))
    return 0.5 * m + (grown - math.log(q)) / m


def single(e: float, q: float, m: float) -> float:
    """log delta_1(e), e > log(1 - q)"""
    with mp.workdps(60):
        x = mp.mpf(m) / 2 + mp.log((mp.exp(mp.mpf(e)) - 1 + q) / q) / m
        tail = lambda u: mp.erfc(u / mp.sqrt(2)) / 2  # noqa: E731
        value = (1 - mp.mpf(q)) * tail(x) + q * tail(x - m) - mp.exp(mp.mpf(e)) * tail(x)
        return float(mp.log(value))


class Curve:
    """log delta_j on panels of xi from ``low`` to ``high``, and its continuation below."""

    def __init__(self, j: int, q: float, m: float, values, points, low: float) -> None:
        self.j, self.q, self.m, self.low = j, q, m, low
        self.coefficients = np.polynomial.chebyshev.chebfit(points, values.T, DEGREE)

    def __call__(self, e: np.ndarray) -> np.ndarray:
        """log delta_j"""
        base = (self.j - 1) * math.log1p(-self.q)
        below = e <= base + loss(np.array(self.low), self.q, self.m)
        xi = place(np.where(below, base + 1.0, e) - base, self.q, self.m)
        index = np.clip(((xi - self.low) / PANEL).astype(int), 0, self.coefficients.shape[1] - 1)
        u = 2.0 * ((xi - self.low) / PANEL - index) - 1.0
        b1 = b2 = np.zeros_like(u)
        for row in self.coefficients[:0:-1]:
            b1, b2 = row[index] + 2.0 * u * b1 - b2, b1
        inner = self.coefficients[0][index] + u * b1 - b2
        with np.errstate(divide="ignore"):
            return np.where(below, np.log(-np.expm1(np.minimum(e, -1e-300))), inner)


def log_delta(epsilon: float, q: float, m: float, k: int) -> float:
    """log delta(epsilon) of k >= 2 steps; m is 1 / sigma."""
    low, floor = -9.0, math.log1p(-q)
    points = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    high = float(place(np.array(epsilon - (k - 1) * floor), q, m)) + 0.5
    panels = math.ceil((high - low) / PANEL)
    xi = low + PANEL * (np.arange(panels)[:, None] + 0.5 * (points + 1.0))
    values = np.array([[single(e, q, m) for e in row] for row in loss(xi, q, m)])
    curve = Curve(1, q, m, values, points, low)
    for j in range(1, k):
        at = (j * floor + loss(xi, q, m)).ravel() if j < k - 1 else np.array([epsilon])
        values = np.array([step(curve, e) for e in at])
        if j == k - 1:
            return float(values[0])
        curve = Curve(j + 1, q, m, values.reshape(xi.shape), points, low)
    raise ValueError


def step(curve: Curve, e: float) -> float:
    """log delta_(j+1)(e)"""
    q, m = curve.q, curve.m
    gap = e - curve.j * math.log1p(-q)
    turn = float(place(np.array(gap), q, m)) if gap > math.log1p(-q) else -40.0
    edges = [max(turn, -12.0)]
    for side in (1.0, -1.0):
        reach = 2.0**-40
        while reach < 60.0:
            edges.append(turn + side * reach)
            reach += min(reach, 0.4)
    edges = sorted({edge for edge in edges if -12.0 <= edge <= max(turn, m) + 12.0} | {-12.0})
    x, w = [], []
    for left, right in pairwise(edges):
        half = 0.5 * (right - left)
        x.append(left + half * (NODES + 1.0)), w.append(half * WEIGHTS)
    x, w = np.concatenate(x), np.concatenate(w)
    terms = -0.5 * x * x + loss(x, q, m) + curve(e - loss(x, q, m))
    top = terms.max()
    return float(top + math.log(math.fsum(w * np.exp(terms - top))) - 0.5 * math.log(2.0 * math.pi))


if __name__ == "__main__":
    for row in [(0.5, 0.01, 2.0, 2), (0.5, 0.01, 2.0, 3), (0.5, 0.01, 2.0, 10), (10.0, 1e-4, 0.5, 10), (0.01, 1e-4, 2.0, 10), (3.0, 0.5, 0.3, 2),
                (30.0, 0.5, 0.3, 2), (30.0, 1e-4, 0.5, 10), (1.0, 0.01, 0.5, 3), (0.5, 1e-4, 0.5, 10), (2.0, 1e-6, 1.0, 5)]:
        epsilon, q, sigma, k = row
        print((*row, log_delta(epsilon, q, 1.0 / sigma, k)), flush=True)
