"""delta(epsilon) of a few Poisson-subsampled Gaussians by integrals over one loss after another; no Fourier transform.

Notation: step i has P = (1 - q) N(0, 1) + q N(m, 1), Q = N(0, 1) and l = log(p/q) > log(1 - q); b_j is the sum of
log(1 - q) over the first j steps, and delta_j the curve of the sum of their losses. With p and l of step j + 1

    delta_(j+1)(e) = integral of p(x) delta_j(e - l(x)) dx,    delta_j(e) = 1 - e^e for e <= b_j,

whose terms are all positive. delta_j is held as its logarithm at Chebyshev points of panels in xi, e = b_(j-1) + l(xi).
The last step may have q = 1: a Gaussian mechanism. Sums are in double precision and true to about 1e-12.
``python tests/oracles/jumps.py`` prints the truths of tests/enclosures/test_rare_losses.py.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np

DEGREE, PANEL, LOW = 18, 0.25, -9.0
POINTS = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)

CASES = [  # epsilon, and (q, sigma, count) of the steps
    (0.5, [(0.01, 2.0, 2)]),
    (0.5, [(0.01, 2.0, 3)]),
    (0.5, [(0.01, 2.0, 10)]),
    (10.0, [(1e-4, 0.5, 10)]),
    (0.01, [(1e-4, 2.0, 10)]),
    (0.001, [(1e-4, 1.0, 10)]),
    (3.0, [(0.5, 0.3, 2)]),
    (30.0, [(0.5, 0.3, 2)]),
    (30.0, [(1e-4, 0.5, 10)]),
    (1.0, [(0.01, 0.5, 3)]),
    (0.5, [(1e-4, 0.5, 10)]),
    (2.0, [(1e-6, 1.0, 5)]),
    (0.0, [(1e-4, 1.0, 5)]),
    (2.0, [(1e-3, 1.0, 3), (1e-5, 0.5, 2)]),
    (5.0, [(1e-4, 0.5, 3), (1.0, 2.0, 1)]),
]


def loss(x: np.ndarray, q: float, m: float) -> np.ndarray:
    y = m * (x - 0.5 * m)
    if q == 1.0:
        return y
    large = np.logaddexp(math.log1p(-q), y + math.log(q))
    return np.where(y > 30.0, large, np.log1p(q * np.expm1(np.minimum(y, 30.0))))


def place(e: float | np.ndarray, q: float, m: float) -> np.ndarray:
    """x with loss e > log(1 - q)"""
    e = np.asarray(e)
    small, large = np.minimum(e, 1.0), np.maximum(e, 1.0)
    grown = np.where(e > 1.0, large + np.log1p(-(1.0 - q) * np.exp(-large)), np.log(np.expm1(small) + q))
    return 0.5 * m + (grown - math.log(q)) / m


def single(e: float, q: float, m: float) -> float:
    """log delta_1(e), e > log(1 - q)"""
    with mp.workdps(60):
        x = mp.mpf(m) / 2 + mp.log((mp.exp(mp.mpf(e)) - 1 + q) / q) / m
        tail = lambda u: mp.erfc(u / mp.sqrt(2)) / 2
        value = (1 - mp.mpf(q)) * tail(x) + q * tail(x - m) - mp.exp(mp.mpf(e)) * tail(x)
        return float(mp.log(value))


class Curve:
    """log delta_j on panels of xi from LOW on, and 1 - e^e below; ``base`` is b_(j-1)."""

    def __init__(self, base: float, q: float, m: float, values: np.ndarray) -> None:
        self.base, self.q, self.m = base, q, m
        self.coefficients = np.polynomial.chebyshev.chebfit(POINTS, values.T, DEGREE)

    def __call__(self, e: np.ndarray) -> np.ndarray:
        below = e <= self.base + loss(np.array(LOW), self.q, self.m)
        xi = place(np.where(below, 1.0, e - self.base), self.q, self.m)
        index = np.clip(((xi - LOW) / PANEL).astype(int), 0, self.coefficients.shape[1] - 1)
        u = 2.0 * ((xi - LOW) / PANEL - index) - 1.0
        b1 = b2 = np.zeros_like(u)
        for row in self.coefficients[:0:-1]:
            b1, b2 = row[index] + 2.0 * u * b1 - b2, b1
        inner = self.coefficients[0][index] + u * b1 - b2
        return np.where(below, np.log(-np.expm1(np.where(below, e, -1.0))), inner)


def log_delta(epsilon: float, steps: list[tuple[float, float]]) -> float:
    """log delta(epsilon) of two or more steps (q, m), m = 1 / sigma."""
    floors = [math.log1p(-q) if q < 1.0 else 0.0 for q, _ in steps]
    curve = None
    for j, (q, m) in enumerate(steps[:-1]):
        base = sum(floors[:j])
        highest = epsilon - base - sum(floors[j + 1 :]) + (60.0 * steps[-1][1] if steps[-1][0] == 1.0 else 0.0)
        panels = math.ceil((float(place(highest, q, m)) + 0.5 - LOW) / PANEL)
        xi = LOW + PANEL * (np.arange(panels)[:, None] + 0.5 * (POINTS + 1.0))
        at = base + loss(xi, q, m)
        values = [single(e, q, m) if curve is None else step(curve, e, q, m) for e in at.ravel()]
        curve = Curve(base, q, m, np.array(values).reshape(xi.shape))
    return step(curve, epsilon, *steps[-1])


def step(curve: Curve, e: float, q: float, m: float) -> float:
    """log delta_(j+1)(e) for the next step (q, m)"""
    gap = e - curve.base - math.log1p(-curve.q)
    turn = float(place(gap, q, m)) if q == 1.0 or gap > math.log1p(-q) else -40.0
    edges = [-12.0, max(turn, -12.0)]
    for side in (1.0, -1.0):
        reach = 2.0**-40
        while reach < 80.0:
            edges.append(turn + side * reach)
            reach += min(reach, 0.4)
    edges = sorted(edge for edge in set(edges) if -12.0 <= edge <= max(turn, m) + 12.0)
    half = 0.5 * np.diff(edges)[:, None]
    x, w = (edges[:-1] + half[:, 0])[:, None] + half * NODES, half * WEIGHTS
    terms = -0.5 * x * x + loss(x, q, m) + curve(e - loss(x, q, m))
    top = terms.max()
    return float(top + math.log(math.fsum((w * np.exp(terms - top)).ravel())) - 0.5 * math.log(2.0 * math.pi))


if __name__ == "__main__":
    for epsilon, parts in CASES:
        steps = [(q, 1.0 / sigma) for q, sigma, count in parts for _ in range(count)]
        print((epsilon, parts, log_delta(epsilon, steps)), flush=True)
