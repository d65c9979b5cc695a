"""Closed bounds of hockey-stick divergences, for pairs that the monotone pieces leave undecided.

Notation: P = sum_i w_i N(m_i, s_i^2), Q = sum_j v_j N(n_j, t_j^2), a = e^epsilon, H = H_a(P||Q).

* Separated scales. When the components fall into groups, c, with P = sum_c P_c and Q = sum_c Q_c, H differs from
  sum_c H_a(P_c||Q_c) by at most the integrals of min(w_i N_i, a v_j N_j) over pairs i, j of different groups: both
  are sums of positive parts, and (f + g)^+ >= f^+ + g^+ - min(f^+, g^-) - min(f^-, g^+). Each group is computed in its
  own unit of length, so that lengths of 1e-300 and 1e300 meet without leaving the doubles.
* Tails. q >= v_j N_j for each j, so H <= sum_i w_i min_j P_i(log(N_i / N_j) > epsilon + log v_j).
* Relative entropy. H <= TV <= sqrt(KL / 2) (Pinsker) and TV <= sqrt(1 - e^-KL) (Bretagnolle and Huber 1979, lemma 2.1).
"""

# bounds: tested by enclosures/test_hockey_stick_extremes - rounding of overlaps, tails and of the sum over groups

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...distributions import GaussianMixture
from ...errors import NotConvergedError
from .kl import kl_divergence

__all__ = ["by_relative_entropy", "by_separated_scales", "by_tails"]

FloatArray = NDArray[np.float64]
Components = tuple[FloatArray, FloatArray, FloatArray]  # weights, means, sigmas

# bound: tested by enclosures/test_hockey_stick_extremes - rounding of the closed bounds, as a logarithm
_OUTWARD = 1e-9  # of a logarithm, and 1e-12 of its size: the rounding of the closed bounds
_MOST_PAIRS = 4_000_000  # of components, times the number of epsilons
_NEGLIGIBLE = (1e-25, 1e-16, 1e-9, 1e-3)  # overlaps that do not join two components, relative to the smaller one
# bound: proved - a window of a normal law leaves out at most e^-70 of it, which is added
_SURE = 70.0  # a window of a normal law leaves out at most e^-70 of it


def by_separated_scales(
    p: Components, q: Components, epsilon: FloatArray, curve: Callable[[Components, Components, FloatArray], FloatArray]
) -> Iterator[FloatArray]:
    """Rows (value, lower, upper and their logarithms) for each level at which components count as separated.

    ``curve`` gives such rows for the components of one group.
    """
    if len(p[0]) * len(q[0]) * epsilon.size > _MOST_PAIRS:
        return
    overlaps = [_log_overlaps(p, q, float(e)) for e in epsilon]
    smaller = [np.minimum(np.log(p[0])[:, None], np.log(q[0])[None, :] + e) for e in epsilon]
    for negligible in _NEGLIGIBLE:
        limits = [size + math.log(negligible) for size in smaller]
        labels, slack = zip(*map(_groups, overlaps, limits), strict=True)
        rows = np.tile([0.5, 0.0, 1.0, -math.log(2.0), -np.inf, 0.0], (epsilon.size, 1))
        for label in set(labels):
            group = np.array(label)
            if group.max() == 0:
                continue
            here = [k for k in range(epsilon.size) if labels[k] == label]
            own, other = group[: len(p[0])], group[len(p[0]) :]
            parts = [
                _of_group([x[own == c] for x in p], [x[other == c] for x in q], epsilon[here], curve)
                for c in range(group.max() + 1)
                if np.any(own == c)
            ]
            rows[here] = _joined(np.array(parts), np.array([slack[k] for k in here]))
        yield rows


def by_tails(p: Components, q: Components, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log H."""
    best = np.zeros(epsilon.size)
    if len(p[0]) * len(q[0]) * epsilon.size > _MOST_PAIRS:
        return best
    (w, m, s), (v, n, t) = p, q
    for k, e in enumerate(epsilon):
        found = _log_tails(m[:, None], s[:, None], n[None, :], t[None, :], e + np.log(v)[None, :]).min(axis=1)
        best[k] = min(0.0, float(np.logaddexp.reduce(np.log(w) + found)) + _OUTWARD)
    return best


def by_relative_entropy(p: GaussianMixture, q: GaussianMixture, deadline: float = math.inf) -> float:
    """Upper bound of the total variation, hence of every H with epsilon >= 0."""
    best = 1.0
    for first, second in ((p, q), (q, p)):
        try:
            kl = float(kl_divergence(first, second, certified=True, deadline=deadline).upper)
        except NotConvergedError:
            continue
        kl = max(kl, 1e-300)  # what underflows
        best = min(best, math.sqrt(kl / 2), math.sqrt(-math.expm1(-kl)))
    return min(1.0, best * (1 + 1e-15) + 2.0**-52 * (len(p) + len(q)))


def _log_overlaps(p: Components, q: Components, epsilon: float) -> FloatArray:
    """Upper bounds of log of the integral of min(w_i N_i, a v_j N_j), shape (len(p), len(q))."""
    (w, m, s), (v, n, t) = p, q
    a, b = np.log(w)[:, None], np.log(v)[None, :] + epsilon
    least, most = np.minimum(a, b), np.maximum(s[:, None], t[None, :])
    narrow = s[:, None] < t[None, :]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        ratio = np.minimum(s[:, None], t[None, :]) / most
        log_ratio = -np.abs(np.log(s)[:, None] - np.log(t)[None, :])  # the ratio itself may underflow
        away = np.abs(m[:, None] - n[None, :]) / most  # in units of the wider sigma
        affinity = 0.5 * (a + b) - away**2 / (4 * (1 + ratio**2)) + 0.5 * (log_ratio + np.log(2 / (1 + ratio**2)))
        needle, wide = np.where(narrow, a, b), np.where(narrow, b, a)
        sigmas = math.sqrt(2) * np.sqrt(np.maximum(needle - wide, 0.0) + _SURE)  # half the window, in narrow sigmas
        height = -0.5 * np.maximum(away - sigmas * ratio, 0.0) ** 2
        inside = wide + np.minimum(np.log(sigmas) + log_ratio - 0.2257 + height, 0.0)  # 0.2257 < log(sqrt(pi / 2))
        inside = np.maximum(np.where(np.isnan(inside), wide, inside), least - 2000.0)
        by_window = np.logaddexp(inside, least - _SURE)
    found = np.fmin(np.fmin(affinity, by_window), least)
    found += _OUTWARD + 1e-12 * np.abs(np.where(np.isinf(found), 0.0, found))
    return np.asarray(np.minimum(found, least + 1e-15 * np.abs(least)))


def _groups(overlaps: FloatArray, limit: FloatArray) -> tuple[tuple[int, ...], float]:
    """The group of each component of P, then of Q, and the log of the sum of all overlaps between groups."""
    i, j = np.nonzero(overlaps > limit)
    k, n = overlaps.shape
    graph = coo_array((np.ones(i.size, dtype=np.int8), (i, k + j)), shape=(k + n, k + n))
    labels = connected_components(graph, directed=False)[1]
    cross = labels[:k, None] != labels[None, k:]
    return tuple(labels.tolist()), float(np.logaddexp.reduce(overlaps[cross], initial=-np.inf))


def _of_group(p: Any, q: Any, epsilon: FloatArray, curve: Callable[..., FloatArray]) -> FloatArray:
    if q[0].size:
        return curve(tuple(p), tuple(q), epsilon)
    mass = math.fsum(p[0])
    row = np.array([mass, np.nextafter(mass, 0.0), np.nextafter(mass, np.inf)])
    row = np.append(row, np.log(row) + np.array([0.0, -1.0, 1.0]) * 1e-15 * (1.0 + np.abs(np.log(row))))
    rows = np.tile(row, (epsilon.size, 1))
    rows[epsilon == np.inf] = [0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf]
    return rows


def _joined(parts: FloatArray, log_slack: FloatArray) -> FloatArray:
    """Sums over the groups, widened by the overlaps between them."""
    rows = np.empty(parts.shape[1:])
    rows[:, :3], rows[:, 3:] = parts[:, :, :3].sum(axis=0), np.logaddexp.reduce(parts[:, :, 3:], axis=0)
    grain = 2.0**-52 * (len(parts) + 2)
    slack = np.exp(log_slack)
    rows[:, 1] = np.maximum(rows[:, 1] * (1 - grain) - slack, 0.0)
    rows[:, 2] = np.minimum(rows[:, 2] * (1 + grain) + slack, 1.0)
    rows[:, 5] = np.logaddexp(rows[:, 5], log_slack)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows[:, 4] += np.log1p(-np.minimum(np.exp(log_slack - rows[:, 4]), 1.0))
        rows[:, 4] = np.where(np.isnan(rows[:, 4]), -np.inf, rows[:, 4])
        rows[:, 4] -= grain * (1.0 + np.abs(np.where(np.isinf(rows[:, 4]), 0.0, rows[:, 4])))
    rows[:, 5] += grain * (1.0 + np.abs(np.where(np.isinf(rows[:, 5]), 0.0, rows[:, 5])))
    rows[:, 5] = np.minimum(rows[:, 5], 0.0)
    for value in (0, 3):
        rows[:, value] = np.clip(rows[:, value], rows[:, value + 1], rows[:, value + 2])
    return rows


def _log_tails(m: FloatArray, s: FloatArray, n: FloatArray, t: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log P(log(N(m, s^2) / N(n, t^2)) > epsilon) under N(m, s^2); with z = (x - m) / s the log ratio
    is c + r d z - (1 - r^2) z^2 / 2, c = d^2 / 2 - log r, r = s / t, d = (m - n) / t."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        r, d = s / t, np.abs(m - n) / t
        log_r = np.log(s) - np.log(t)
        bend = (t - s) / t * ((t + s) / t)  # 1 - r^2
        over = epsilon - (0.5 * d * d - log_r)
        # r < 1: the log ratio has a maximum, and exceeds epsilon between two roots at most
        top = 0.5 * d * d / bend - log_r
        none = (bend > 0) & (epsilon * (1 - 1e-12) > top * (1 + 1e-12) + 1e-12)
        # r >= 1: beyond the root of r d z + (r^2 - 1) z^2 / 2 = over; r < 1: r d z > over at least
        root = np.hypot(r * d, np.sqrt(2 * np.maximum(-bend, 0.0)) * np.sqrt(np.maximum(over, 0.0)))
        inner = np.where(over > 0, over / (0.5 * (r * d + root)), 0.0)
        outer = np.maximum(np.where(over > 0, inner, 0.0) * (1 - 1e-9), 0.0)
        found = -0.5 * outer * outer
        shaky = np.isnan(found) | ~(over > 1e-6 * (0.5 * d * d + np.abs(log_r)))
    none |= (s == t) & (m == n) & (epsilon >= 0)
    found = np.maximum(found, -1e308)  # what is left is positive
    return np.asarray(np.where(none, -np.inf, np.where(shaky, 0.0, found + 0.6931471806)))
