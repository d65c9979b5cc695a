"""Truth for few steps of noise correlated by a banded matrix, pattern by pattern, and values of R by sampling."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
from scipy import special


def separated_patterns(steps: int, rate: float, separation: int) -> dict[tuple[int, ...], Fraction]:
    """Probabilities of all patterns of a record whose samples are at least ``separation`` steps apart.

    The record waits: before the first step 0 .. separation - 1 more steps, by the stationary law.
    """
    q = Fraction(rate)
    p = q / (1 + (separation - 1) * q)
    states = {((), wait): p if wait else p / q for wait in range(separation)}
    for step in range(steps):
        following: dict[tuple[tuple[int, ...], int], Fraction] = {}
        for (pattern, wait), mass in states.items():
            if wait:
                options = [(pattern, wait - 1, mass)]
            else:
                options = [((*pattern, step), separation - 1, mass * q), (pattern, 0, mass * (1 - q))]
            for item, left, part in options:
                following[item, left] = following.get((item, left), Fraction(0)) + part
        states = following
    result: dict[tuple[int, ...], Fraction] = {}
    for (pattern, _), mass in states.items():
        result[pattern] = result.get(pattern, Fraction(0)) + mass
    return {pattern: mass for pattern, mass in result.items() if mass}


def cyclic_patterns(steps: int, rate: float, separation: int, subset: int) -> dict[tuple[int, ...], Fraction]:
    """Probabilities of all patterns of a record of one subset."""
    turns, q, result = range(subset, steps, separation), Fraction(rate), {}
    for chosen in itertools.product((False, True), repeat=len(turns)):
        pattern = tuple(step for step, takes_part in zip(turns, chosen, strict=True) if takes_part)
        result[pattern] = q ** len(pattern) * (1 - q) ** (len(turns) - len(pattern))
    return result


def log_moment(patterns: dict[tuple[int, ...], Fraction], column: list[float], order: int) -> float:
    """log E_Q R^order, from all tuples of patterns; all columns are complete."""
    with mpmath.workdps(30):
        exact = [mpmath.mpf(c) for c in column]
        lags = [sum(a * b for a, b in zip(exact, exact[d:], strict=False)) for d in range(len(column))]

        def covariance(u, v):
            return sum(lags[abs(s - t)] for s in u for t in v if abs(s - t) < len(lags))

        items = [(u, mpmath.mpf(w.numerator) / w.denominator) for u, w in patterns.items()]
        table = {(u, v): covariance(u, v) for u, _ in items for v, _ in items}
        total = mpmath.mpf(0)
        for chosen in itertools.product(items, repeat=order):
            exponent = sum(table[a[0], b[0]] for a, b in itertools.combinations(chosen, 2))
            total += mpmath.fprod(w for _, w in chosen) * mpmath.exp(exponent)
        return float(mpmath.log(total))


def delta(
    patterns: dict[tuple[int, ...], Fraction], column: list[float], rows: int, epsilon: float, adds: bool,
    step: float = 0.1, reach: float = 10.0,
) -> float:
    """delta of the release of the first rows, by the trapezoid rule over all rows but the last.

    In the last row R is a sum of rising exponentials, so that its integral ends at one root.
    """
    means = np.zeros((len(patterns), rows + len(column)))
    for i, pattern in enumerate(patterns):
        for start in pattern:
            means[i, start : start + len(column)] += column
    means = means[:, :rows]
    logs = np.log([float(w) for w in patterns.values()]) - 0.5 * (means[:, :-1] ** 2).sum(axis=1)
    grid = step * np.arange(-round(reach / step), round(reach / step) + 1)
    z = np.array(list(itertools.product(grid, repeat=rows - 1))).reshape(-1, rows - 1)
    masses = np.exp(z @ means[:, :-1].T + logs)
    v = means[:, -1]
    x = math.exp(-epsilon if adds else epsilon)
    low, high = np.full(len(z), -60.0), np.full(len(z), 60.0)
    for _ in range(40):  # to 1e-10: the integrand is 0 at the root, so that its integral is off by the square
        middle = 0.5 * (low + high)
        above = (masses * np.exp(np.minimum(v * middle[:, None] - 0.5 * v**2, 700.0))).sum(axis=1) > x
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    if adds:
        inner = special.ndtr(low) - (masses * special.ndtr(low[:, None] - v)).sum(axis=1) / x
    else:
        inner = (masses * special.ndtr(v - low[:, None])).sum(axis=1) - x * special.ndtr(-low)
    weights = np.exp(-0.5 * (z**2).sum(axis=1)) * (step / math.sqrt(2 * math.pi)) ** (rows - 1)
    return float(weights @ np.maximum(inner, 0.0))


def replaced_twice(scale: float, rate: float, epsilon: float) -> float:
    """delta of two Poisson samples where a contribution of +scale becomes -scale, by sums over a grid."""
    x = np.linspace(-12.0 - scale, 12.0 + scale, 4001)
    p, q = (
        (1 - rate) * np.exp(-(x**2) / 2) + rate * np.exp(-((x - mean) ** 2) / 2) for mean in (scale, -scale)
    )
    unit = (x[1] - x[0]) ** 2 / (2 * math.pi)
    return float(np.maximum(np.outer(p, p) - math.exp(epsilon) * np.outer(q, q), 0.0).sum() * unit)


def sampled_ratios(
    column: list[float], steps: int, rate: float, separation: int, present: bool, samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Values of R under P or Q, each by the sum over all patterns from step to step."""
    p = rate / (1 + (separation - 1) * rate)
    z = rng.standard_normal((samples, steps))
    if present:
        wait = rng.choice(separation, samples, p=[p / rate, *[p] * (separation - 1)])
        for step in range(steps):
            takes_part = (wait == 0) & (rng.random(samples) < rate)
            for lag, c in enumerate(column):
                if step + lag < steps:
                    z[takes_part, step + lag] += c
            wait = np.where(takes_part, separation - 1, np.maximum(wait - 1, 0))
    state = np.full((separation, samples), p)  # by the steps to wait, times the ratio of the steps so far
    state[0] = p / rate
    for step in range(steps):
        later, exponent = np.zeros_like(state), np.zeros(samples)
        for lag, c in enumerate(column):
            if step + lag < steps:
                exponent += c * z[:, step + lag] - 0.5 * c * c
        later[:-1] = state[1:]
        later[0] += (1 - rate) * state[0]
        later[separation - 1] += rate * state[0] * np.exp(exponent)
        state = later
    return state.sum(axis=0)
