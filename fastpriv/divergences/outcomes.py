"""Divergences of two distributions on finitely many outcomes: two vectors of probabilities, or two Pmfs.

Both are divided by their sums. With t = p / q and u = t - 1, sum q u = 0, so that

    KL = sum q phi(u),   phi(u) = (1 + u) log(1 + u) - u >= 0,   JS = (KL(P||M) + KL(Q||M)) / 2,   M = (P + Q) / 2,

which loses no digits where P is nearly Q: for |u| <= 1/8 phi is the series of (-u)^k / (k (k - 1)) from k = 2. All is
summed in extended precision, of spacing r at 1. A vector divided by its sum errs by (n + 3) r relative to each entry;
phi itself errs by 128 r: for |u| > 1/8 it is above 0.0075 t, and t, log t and u err by r each. Hence the error of KL
is at most (256 + 2 n) r KL + (16 + 4 n) r sum p |log t| + ((8 + 2 n) r)^2: |u| <= t |log t| + phi, and the second
derivatives by relative changes of p and q are at most p. A Renyi divergence of another order is a logarithm of sum p
t^(order - 1), whose exponents err by (16 + 4 n) r (1 + |log p| + |order - 1| (1 + |log t| + |log p|)) at most; it
rises with the order, and is KL at 1. Where P has no outcome that Q lacks, with L = log t and y = (a - 1) L,

    D_a = log(1 + (a - 1) S) / (a - 1),   S = sum q G,   G = (t^a - 1 - a u) / (a - 1) = t L expm1(y) / y - u >= 0,

keeps its digits where P is nearly Q: for |u| max(8, a) <= 1, G is the series of a C(a - 2, k - 2) u^k (k - 2)! / k!,
whose terms fall by 1 / 4 at least, right to 64 r; else it errs by (8 + |y|) r (t |L| expm1(y) / y + |u|) at most. As
dG / du = a L expm1(y) / y, entries that err by (n + 3) r add (n + 3) r (S + 2 a sum p |L| expm1(y) / y), and their
squares a (1 + |a - 1| S) times the square of that. An entry of a hockey-stick sum errs by (8 + 2 n) r (p + e^epsilon
q).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import ShapeError
from ..base.estimate import Estimate, Unit
from ..base.numerics import LOG_2_ABOVE, FloatArray, LongDoubleArray, doubles_around, next_above, next_below
from ..distributions import Pmf

_ROUNDOFF = np.finfo(np.longdouble).eps  # r of the text above
_SERIES = 24  # terms of phi: beyond them is less than 2^-69 of the first
_LARGEST_EXPONENT = 4096.0  # of t^(a - 1) in sums of G, far below the largest number
_Bounds = tuple[float, float]


def are_outcomes(p: Any, q: Any) -> bool:
    """Whether both are Pmfs or arrays of numbers."""
    return all(isinstance(side, (Pmf, list, tuple, np.ndarray)) for side in (p, q))


def probabilities_of_outcomes(p: Any, q: Any) -> FloatArray:
    """Two rows: the probabilities of two Pmfs on the union of their points, or two vectors; no column is zero."""
    if isinstance(p, Pmf) or isinstance(q, Pmf):
        for name, side in (("p", p), ("q", q)):
            validate.instance(name, side, Pmf)
        points = np.union1d(p.values, q.values)
        rows = np.zeros((2, points.size))
        for row, side in zip(rows, (p, q), strict=True):
            row[np.searchsorted(points, side.values)] = side.probabilities
    else:
        vectors = [validate.probabilities(name, entry) for name, entry in (("p", p), ("q", q))]
        if vectors[0].shape != vectors[1].shape:
            raise ShapeError(
                f"q must have one probability for each of p, {vectors[0].size}; got {vectors[1].size}. Both must be on "
                "the same outcomes."
            )
        rows = np.stack(vectors)
    return rows[:, (rows > 0.0).any(axis=0)]


def renyi_divergence(p: Any, q: Any, order: float = 1.0, **_: Any) -> Estimate:
    """D_order(P||Q) in nats, KL(P||Q) for order 1, the largest loss for infinity."""
    first, second = _normalized(p, q)
    lower, upper = _kl(first, second)
    if order != 1.0:
        near = _near_renyi(first, second, order) if 0.0 < order < math.inf else None
        least, most = near or _renyi(first, second, order)
        lower, upper = (max(least, lower), most) if order > 1.0 else (least, min(most, upper))
    return _estimate(max(lower, 0.0), max(upper, 0.0))


def jensen_shannon(p: Any, q: Any, **_: Any) -> Estimate:
    """JS(P, Q) in nats."""
    first, second = _normalized(p, q)
    middle = ((first + second) / 2).astype(np.longdouble)
    sides = [_kl(side, middle) for side in (first, second)]
    (least, most), (other_least, other_most) = sides
    if first is second:
        return _estimate(0.0, 0.0)
    lower, upper = next_below((least + other_least) / 2), next_above((most + other_most) / 2)
    return _estimate(max(lower, 0.0), min(upper, LOG_2_ABOVE))


def hockey_stick_divergence(p: Any, q: Any, epsilon: Any, *, logs: bool = False, **_: Any) -> Estimate:
    """The curve, or its logarithm."""
    first, second = _normalized(p, q)
    grid = np.asarray(epsilon, dtype=np.float64)
    rows = np.array([_hockey_stick(first, second, level, logs) for level in grid.ravel().tolist()])
    lower, upper = rows.reshape(*grid.shape, 2)[..., 0], rows.reshape(*grid.shape, 2)[..., 1]
    with np.errstate(invalid="ignore"):
        value = np.where(lower == upper, lower, np.where(lower == -np.inf, upper, lower + (upper - lower) / 2))
    unit: Unit = "log probability" if logs else "probability"
    return Estimate(value, lower, upper, kind="certified", unit=unit, method="sum over outcomes")


def _normalized(p: Any, q: Any) -> tuple[LongDoubleArray, LongDoubleArray]:
    """Both vectors, divided by their sums; the same array twice if they are equal."""
    rows = probabilities_of_outcomes(p, q).astype(np.longdouble)
    first, second = rows / rows.sum(axis=1, keepdims=True)
    return first, second if (rows[0] != rows[1]).any() else first


def _kl(p: LongDoubleArray, q: LongDoubleArray) -> _Bounds:
    if p is q:
        return 0.0, 0.0
    if ((q == 0.0) & (p > 0.0)).any():
        return math.inf, math.inf
    p, q = p[q > 0.0], q[q > 0.0]
    t, u = p / q, (p - q) / q
    near = np.abs(u) <= 0.125
    log_t = np.log1p(np.where(near, u, 0.0))
    np.log(t, out=log_t, where=~near & (t > 0.0))
    phi = t * log_t - u
    powers = np.zeros_like(u[near])
    for k in range(_SERIES + 1, 1, -1):  # Horner's scheme for the sum of (-u)^(k - 2) / (k (k - 1))
        powers = 1 / np.longdouble(k * (k - 1)) - u[near] * powers
    phi[near] = u[near] ** 2 * powers
    value, terms = (q * phi).sum(), p.size
    error = _ROUNDOFF * ((256 + 2 * terms) * value + (16 + 4 * terms) * (p * np.abs(log_t)).sum())
    error += (_ROUNDOFF * (8 + 2 * terms)) ** 2
    return doubles_around(value - error)[0], doubles_around(value + error)[1]


def _renyi(p: LongDoubleArray, q: LongDoubleArray, order: float) -> _Bounds:
    both = (p > 0.0) & (q > 0.0)
    if not both.any() or (order > 1.0 and (p[q == 0.0] > 0.0).any()):
        return math.inf, math.inf
    weights, losses = np.log(p[both]), np.log(p[both]) - np.log(q[both])
    terms = _ROUNDOFF * (16 + 4 * p.size)
    if order == math.inf:
        value = losses.max()
        error = terms * (1 + np.abs(weights).max() + np.abs(losses).max())
    else:
        factor = np.longdouble(order) - 1
        exponents = weights + factor * losses
        top = exponents.max()
        value = (top + np.log(np.exp(exponents - top).sum())) / factor
        sizes = np.abs(weights) + np.abs(factor) * (1 + np.abs(losses) + np.abs(weights))
        error = terms * (1 + sizes.max()) / np.abs(factor)
    return doubles_around(value - error)[0], doubles_around(value + error)[1]


def _near_renyi(p: LongDoubleArray, q: LongDoubleArray, order: float) -> _Bounds | None:
    """Bounds by the sum of G; None where P has outcomes that Q lacks, or powers are too large."""
    if (p[q == 0.0] > 0.0).any():
        return None
    p, q = p[q > 0.0], q[q > 0.0]
    a, factor, u = np.longdouble(order), np.longdouble(order) - 1, (p - q) / q
    log_t = np.log1p(np.maximum(u, -0.5))
    np.log(p / q, out=log_t, where=(u < -0.5) & (p > 0.0))
    y = factor * log_t
    if not (np.abs(y) <= _LARGEST_EXPONENT).all():
        return None
    slopes = log_t * np.where(y == 0.0, 1.0, np.expm1(y) / np.where(y == 0.0, 1.0, y))  # (t^(a - 1) - 1) / (a - 1)
    slopes[p == 0.0] = 0.0
    near = np.abs(u) * max(8.0, order) <= 1.0
    gains = p / q * slopes - u
    power = a * u[near] ** 2 / 2
    gains[near] = power
    for k in range(2, _SERIES):
        power = power * u[near] * ((a - k) / (k + 1))
        gains[near] += power
    value, terms, n = (q * gains).sum(), (p * np.abs(slopes)).sum(), p.size
    error = _ROUNDOFF * ((64 + 4 * n) * value + (16 + 4 * n) * a * terms)
    far = (8 + np.abs(y[~near])) * (p[~near] * np.abs(slopes[~near]) + q[~near] * np.abs(u[~near]))
    error += _ROUNDOFF * 2 * far.sum() + (_ROUNDOFF * (8 + 2 * n)) ** 2 * a * (1 + np.abs(factor) * value)
    low, high = (np.log1p(factor * max(end, 0.0)) / factor for end in (value - error, value + error))
    return doubles_around(low * (1 - 8 * _ROUNDOFF))[0], doubles_around(high * (1 + 8 * _ROUNDOFF))[1]


def _hockey_stick(p: LongDoubleArray, q: LongDoubleArray, epsilon: float, logs: bool) -> _Bounds:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        scaled = np.where(q > 0.0, np.exp(np.longdouble(epsilon)) * q, 0.0)
        gaps = np.where(scaled < np.inf, p - scaled, -np.inf)
        terms = _ROUNDOFF * (8 + 2 * p.size)
        errors = np.where(scaled < np.inf, terms * (p + scaled), 0.0)
        if p is q and epsilon == 0.0:
            errors = np.zeros_like(p)
        least, most = np.maximum(gaps - errors, 0).sum(), np.maximum(gaps + errors, 0).sum()
        least, most = least * (1 - terms), min(most * (1 + terms), np.longdouble(1))
        if logs:
            least, most = np.log(least), np.log(most)
            least -= 8 * _ROUNDOFF * (1 + np.abs(least)) if least > -np.inf else 0
            most += 8 * _ROUNDOFF * (1 + np.abs(most)) if most > -np.inf else 0
    ends = doubles_around(least)[0], doubles_around(most)[1]
    return (ends[0], min(ends[1], 0.0)) if logs else ends


def _estimate(lower: float, upper: float) -> Estimate:
    value = lower if lower == upper else lower + (upper - lower) / 2
    return Estimate(value, lower, upper, kind="certified", unit="nats", method="sum over outcomes")
