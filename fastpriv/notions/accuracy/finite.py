"""Misses of a target behind a finite channel, by summing one row of it.

Notation: release w is read as the point x_w; the sum goes over the w with ||x_w - target|| > alpha. Whether a release
on the edge misses is decided in exact arithmetic.
"""

# bounds: tested by enclosures/test_pac - rounding of geometric tails; underflow

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._values import FloatArray, distinct_rows
from ...channels import AnyChannel, DiscreteLaplace

__all__ = ["discrete_laplace_misses", "distances", "misses"]

# bound: tested by enclosures/test_pac - relative error of the entries of a row and of their sums
_RELATIVE = 1e-12  # of the entries of a row and of sums of them
# bound: tested by enclosures/test_pac - alphas so near a distance are compared in whole numbers
_EDGE = 1e-12


def distances(points: FloatArray, target: FloatArray, norm: float) -> FloatArray:
    """||x - target|| of points of shape (n, k)."""
    gaps = np.abs(points - target)
    if gaps.shape[1] == 1:
        return gaps[:, 0]
    if norm == math.inf:
        return np.asarray(gaps.max(axis=1))
    return np.asarray(gaps.sum(axis=1) if norm == 1 else np.sqrt(np.einsum("ij,ij->i", gaps, gaps)))


def misses(
    channel: AnyChannel, secret: int, points: FloatArray, target: FloatArray, alpha: FloatArray, norm: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, lower and upper of the mass of the row of ``secret`` that misses, for alpha of shape (A,)."""
    row = np.asarray(channel.rows(secret, secret + 1)[0], dtype=np.longdouble)
    far = distances(points, target, norm)
    order = np.argsort(far, kind="stable")
    sorted_far = far[order]
    tail = np.concatenate([np.cumsum(row[order][::-1])[::-1], [0.0]])
    found = np.empty(alpha.shape)
    for i, edge in enumerate(alpha.tolist()):
        begin = np.searchsorted(sorted_far, edge * (1 - _EDGE), side="left")
        end = np.searchsorted(sorted_far, edge * (1 + _EDGE), side="right")
        near = order[begin:end]
        found[i] = tail[end] + row[near[_outside(points[near], target, edge, norm)]].sum()
    value = np.minimum(found, 1.0)
    error = 1e-300 * (value > 0) + _RELATIVE * value
    error += 1.1 * channel.mass_gap * value
    return value, np.clip(value - error, 0.0, 1.0), np.clip(value + error, 0.0, 1.0)


def discrete_laplace_misses(
    channel: DiscreteLaplace, secret: int, target: float, alpha: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same for releases among all integers: two geometric tails, P(Z >= t) = e^(-t / scale) / (1 + e^(-1 / scale))
    for t >= 1."""
    value = np.empty(alpha.shape)
    for i, edge in enumerate(alpha.tolist()):
        middle, reach = Fraction(target) - secret, Fraction(edge)
        above = math.floor(middle + reach) + 1
        below = math.floor(reach - middle) + 1
        value[i] = min(1.0, sum(_geometric_tail(t, channel.epsilon) for t in (above, below)))
    return value, np.clip(value * (1 - 2e-13), 0.0, 1.0), np.clip(value * (1 + 2e-13) + 1e-300, 0.0, 1.0)


def _geometric_tail(t: int, epsilon: float) -> float:
    norm = 1.0 + math.exp(-epsilon)
    if t >= 1:
        return math.exp(-min(epsilon * float(t), 800.0)) / norm if t < 2**1000 else 0.0
    return 1.0 - math.exp(-min(epsilon * float(1 - t), 800.0)) / norm if t > -(2**1000) else 1.0


def _outside(points: FloatArray, target: FloatArray, edge: float, norm: float) -> NDArray[np.bool_]:
    """Whether points next to the edge lie beyond it; equal points are looked at once."""
    if len(points) == 0:
        return np.zeros(0, dtype=bool)
    distinct, which = distinct_rows(points)
    centre = [Fraction(x) for x in target.tolist()]
    beyond = []
    for point in distinct.tolist():
        gaps = [abs(Fraction(x) - c) for x, c in zip(point, centre, strict=True)]
        if norm == math.inf or len(gaps) == 1:
            beyond.append(max(gaps) > Fraction(edge))
        elif norm == 1:
            beyond.append(sum(gaps) > Fraction(edge))
        else:
            beyond.append(sum(gap * gap for gap in gaps) > Fraction(edge) ** 2)
    return np.array(beyond, dtype=bool)[which]
