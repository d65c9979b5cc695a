"""Truth for one step, and for few steps or bins by integrals of smooth functions of normal variables."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
from scipy import special


def one_step(scale: float, epsilon: float) -> float:
    """delta of one step: that of the Gaussian mechanism, in 40 digits."""
    with mpmath.workdps(40):
        a, e = mpmath.mpf(scale), mpmath.mpf(epsilon)
        return float(mpmath.ncdf(a / 2 - e / a) - mpmath.exp(e) * mpmath.ncdf(-a / 2 - e / a))


def toeplitz(coefficients: list[float], sigma: float, bins: int, epochs: int = 1) -> list[list[mpmath.mpf]]:
    """Inner products of the sums of a record's columns in units of the noise, from the columns themselves.

    Each column is complete: the columns of epoch e begin at the step e * bins + bin.
    """
    columns = []
    for bin_ in range(bins):
        column = [mpmath.mpf(0)] * (bins * epochs + len(coefficients))
        for epoch in range(epochs):
            for j, c in enumerate(coefficients):
                column[epoch * bins + bin_ + j] += mpmath.mpf(c)
        columns.append(column)
    return [[sum(x * y for x, y in zip(u, v, strict=True)) / mpmath.mpf(sigma) ** 2 for v in columns] for u in columns]


def bins_log_delta(gram: list[list[mpmath.mpf]], epsilon: float, adds: bool, step: float, reach: float) -> float:
    """log delta of few bins, in 40 digits, by the trapezoid rule over all directions but one.

    That one is a weighted mean of the log ratios, with weights that are not equal, on which all of them depend with
    slopes v_i > 0: R rises along it, and beyond its root the integral is a closed form. ``bins_delta`` is the same in
    double precision.
    """
    with mpmath.workdps(40):
        b = len(gram)
        g, p = mpmath.matrix(gram), mpmath.matrix([mpmath.mpf(i + 2) for i in range(b)])
        v = g * p / mpmath.sqrt((p.T * g * p)[0])
        values, vectors = mpmath.eigsy(g - v * v.T)
        b_rows = [[vectors[i, j] * mpmath.sqrt(max(values[j], 0)) for j in range(1, b)] for i in range(b)]
        target = mpmath.log(b) + (-epsilon if adds else epsilon)
        total, h = mpmath.mpf(0), mpmath.mpf(step)
        numbers = range(-math.ceil(reach / step), math.ceil(reach / step) + 1)
        for point in itertools.product(numbers, repeat=b - 1):
            z = [h * n for n in point]
            if sum(x**2 for x in z) > reach**2:
                continue
            w = [sum(x * y for x, y in zip(row, z, strict=True)) - gram[i][i] / 2 for i, row in enumerate(b_rows)]
            root = min((target - w[i]) / v[i] for i in range(b))
            for _ in range(200):  # Newton on a convex function, from its right
                terms = [mpmath.exp(v[i] * root + w[i] - target) for i in range(b)]
                moved = mpmath.log(sum(terms)) * sum(terms) / sum(x * y for x, y in zip(v, terms, strict=True))
                root -= moved
                if abs(moved) < mpmath.mpf(10) ** -35:
                    break
            masses = [mpmath.exp(w[i] + v[i] ** 2 / 2) / b for i in range(b)]
            if adds:
                parts = [m * mpmath.ncdf(root - x) for m, x in zip(masses, v, strict=True)]
                value = mpmath.ncdf(root) - mpmath.exp(epsilon) * sum(parts)
            else:
                parts = [m * mpmath.ncdf(x - root) for m, x in zip(masses, v, strict=True)]
                value = sum(parts) - mpmath.exp(epsilon) * mpmath.ncdf(-root)
            total += value * mpmath.exp(-sum(x**2 for x in z) / 2)
        return float(mpmath.log(total) + (b - 1) * mpmath.log(h / mpmath.sqrt(2 * mpmath.pi)))


def bins_delta(gram: list[list[mpmath.mpf]], epsilon: float, adds: bool, step: float, reach: float) -> float:
    """delta by ``bins_log_delta`` in double precision, of moderate deltas."""
    g = np.array([[float(x) for x in row] for row in gram])
    b = len(g)
    p = np.arange(2.0, b + 2.0)
    v = g @ p / np.sqrt(p @ g @ p)
    values, vectors = np.linalg.eigh(g - np.outer(v, v))
    axis = np.arange(-math.ceil(reach / step), math.ceil(reach / step) + 1) * step
    z = np.stack([x.ravel() for x in np.meshgrid(*[axis] * (b - 1), indexing="ij")])
    w = (vectors[:, 1:] * np.sqrt(values[1:])) @ z - 0.5 * np.diagonal(g)[:, None]
    target, v = np.log(b) + (-epsilon if adds else epsilon), v[:, None]
    root = ((target - w) / v).min(axis=0)
    for _ in range(60):
        terms = np.exp(v * root + w - target)
        root -= np.log(terms.sum(axis=0)) * terms.sum(axis=0) / (v * terms).sum(axis=0)
    masses, sign = np.exp(w + v**2 / 2) / b, -1.0 if adds else 1.0
    c = np.exp(epsilon)
    values = sign * ((c if adds else 1.0) * (masses * special.ndtr(sign * (v - root))).sum(axis=0)
                     - (1.0 if adds else c) * special.ndtr(-sign * root))
    return float(values @ np.exp(-(z**2).sum(axis=0) / 2) * (step / np.sqrt(2 * np.pi)) ** (b - 1))


def allocation_of_atoms(
    p: list[Fraction], q: list[Fraction], steps: int, times: int, x: Fraction, adds: bool
) -> Fraction:
    """delta of a record that takes part in ``times`` of ``steps``, by all outcomes of all steps, at e^epsilon = x."""
    masses = outcomes_of_allocation(tuple(p), tuple(q), steps, times)
    return sum((max(Fraction(0), other - x * own if adds else own - x * other) for own, other in masses), Fraction(0))


@cache
def outcomes_of_allocation(
    p: tuple[Fraction, ...], q: tuple[Fraction, ...], steps: int, times: int
) -> list[tuple[Fraction, Fraction]]:
    """Masses of all outcomes with and without the record, those that differ in the order of the steps as one."""
    chosen = list(itertools.combinations(range(steps), times))
    found = []
    for outcome in itertools.combinations_with_replacement(range(len(p)), steps):
        orders = math.factorial(steps)
        for i in set(outcome):
            orders //= math.factorial(outcome.count(i))
        other = orders * math.prod((q[i] for i in outcome), start=Fraction(1))
        own = Fraction(0)
        for places in chosen:
            laws = (p[i] if n in places else q[i] for n, i in enumerate(outcome))
            own += orders * math.prod(laws, start=Fraction(1)) / len(chosen)
        found.append((own, other))
    return found
