"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: ``p``, ``q`` the densities of P and Q, ``L = log(p/q)``, ``H_a(P||Q) = sup_E P(E) - a Q(E)
= integral of (p - a q)^+`` with ``a = e^epsilon`` (Ngo, Ostman and Graell i Amat 2024, section I).

The line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs with a Cauchy bound of
the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences of normal
distribution functions between them. What a crossing's enclosure may hide is of second order in its width and goes into
the upper bound, as does every rounding. Where doubles cancel, the sums are done again in double-double arithmetic.
Stretches that stay undecided when their budget is spent widen the upper bound; then ``closed_bounds`` are met with it.

CLOSED BOUNDS
Notation: P = sum_i w_i N(m_i, s_i^2), Q = sum_j v_j N(n_j, t_j^2), a = e^epsilon, H = H_a(P||Q).

* Separated scales. When the components fall into groups, c, with P = sum_c P_c and Q = sum_c Q_c, H differs from
  sum_c H_a(P_c||Q_c) by at most the integrals of min(w_i N_i, a v_j N_j) over pairs i, j of different groups: both
  are sums of positive parts, and (f + g)^+ >= f^+ + g^+ - min(f^+, g^-) - min(f^-, g^+). Each group is computed in its
  own unit of length, so that lengths of 1e-300 and 1e300 meet without leaving the doubles.
* Tails. q >= v_j N_j for each j, so H <= sum_i w_i min_j P_i(log(N_i / N_j) > epsilon + log v_j).
* Relative entropy. H <= TV <= sqrt(KL / 2) (Pinsker) and TV <= sqrt(1 - e^-KL) (Bretagnolle and Huber 1979, lemma 2.1).
"""

# bounds: tested by enclosures/test_hockey_stick, enclosures/test_hockey_stick_extremes - outward roundings where gaps
#    of sums are taken as factor and shift; rounding of overlaps, tails and of the sum over groups

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ...distributions import GaussianMixture
from ...errors import NotConvergedError
from ...estimate import Estimate, Unit
from ...kernels import _hockey
from .integrals import kl_divergence
from .quadrature import NO_DEADLINE, STOPPED, TIME_SPENT, Deadline

__all__ = ["hockey_stick_divergence", "log_hockey_stick_divergence", "total_variation"]

FloatArray = NDArray[np.float64]
# sums in doubles are accepted below this relative width; double-doubles otherwise
# bound: none - when double-doubles take the place of doubles
MAX_DOUBLE_WIDTH = 5e-13
COST_FIELDS = ("evaluations", "double_double", "pieces", "undecided")  # what the kernel counts
_MAX_SIGMA_RATIO, _MAX_KL_COMPONENTS = 1e6, 200  # sigmas, and components, for which an integral costs little
# bound: none - when closed bounds are tried
_WIDE_BRACKET = 1e-9  # relative width from which on closed bounds are tried
Components = tuple[FloatArray, FloatArray, FloatArray]  # weights, means, sigmas

# bound: tested by enclosures/test_hockey_stick_extremes - rounding of the closed bounds, as a logarithm
_OUTWARD = 1e-9  # of a logarithm, and 1e-12 of its size: the rounding of the closed bounds
_MAX_PAIRS = 4_000_000  # of components, times the number of epsilons
_NEGLIGIBLE_OVERLAPS = (1e-25, 1e-16, 1e-9, 1e-3)  # overlaps that do not join two components, relative to the smaller one
# bound: proved - a window of a normal law leaves out at most e^-70 of it, which is added
_WINDOW_LOG_MASS = 70.0  # a window of a normal law leaves out at most e^-70 of it


def hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """H_{e^epsilon}(P||Q), all of ``epsilon`` from one analysis of the pair."""
    rows, grid, method, cost = _hockey_stick_rows(p, q, epsilon, logs=False, deadline=deadline)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def log_hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300."""
    rows, grid, method, cost = _hockey_stick_rows(p, q, epsilon, logs=True, deadline=deadline)
    return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)


def total_variation(p: GaussianMixture, q: GaussianMixture, *, deadline: Deadline = NO_DEADLINE) -> Estimate:
    """sup_E |P(E) - Q(E)| = H_1(P||Q)."""
    return hockey_stick_divergence(p, q, 0.0, deadline=deadline)


def _hockey_stick_rows(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool, deadline: Deadline
) -> tuple[FloatArray, FloatArray, str, Any]:
    grid = np.asarray(epsilon, dtype=np.float64)
    flat = np.ascontiguousarray(grid).reshape(-1)
    rows, cost, closed = hockey_stick_rows(p, q, flat, MAX_DOUBLE_WIDTH, logs=logs, deadline=deadline)
    method = "monotone pieces, double-double sums" if cost["double_double"] else "monotone pieces, double sums"
    if closed:
        method += ", closed bounds"
    if "stopped" in cost:
        method += TIME_SPENT
    elif cost["undecided"]:
        method += ", budget spent"
    return rows, grid, method, cost


def hockey_stick_rows(
    p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, *, logs: bool,
    deadline: Deadline = NO_DEADLINE,
) -> tuple[FloatArray, dict[str, Any], bool]:  # fmt: skip
    """Value, lower and upper and their logarithms for each epsilon; the cost; whether closed bounds were needed.

    At the ``deadline``, by ``time.monotonic``, what is left gets brackets that are true, and wide.
    """
    closed = False

    def rows(grid: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        nonlocal closed
        found, counts = _hockey.pair_curve(
            p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas, grid, width, logs, deadline.at
        )
        closed = _tighten_with_closed_bounds(found, p, q, grid, width, logs, deadline)
        cost: dict[str, Any] = dict(zip(COST_FIELDS, counts[:-1], strict=True))
        return found, cost | STOPPED if counts[-1] else cost

    found, cost = with_mass_gaps(rows, epsilon, p.mass_gap, q.mass_gap)
    return found, cost, closed


def with_mass_gaps(
    rows: Callable[[FloatArray], tuple[FloatArray, dict[str, Any]]], epsilon: FloatArray, gap_p: float, gap_q: float
) -> tuple[FloatArray, dict[str, Any]]:
    """The rows when weights miss the sum 1 by these gaps: the bounds hold for all measures whose densities are within
    1 +- gap of those given, the normalised ones among them.

    (1 + g) p - a (1 - h) q = (1 + g) (p - a' q), so H moves by at most a factor 1 +- g and a shift of epsilon by
    log((1 + g) / (1 - h)): a relative change of p and q over the set itself, however small H is.
    """
    if not (gap_p or gap_q):
        return rows(epsilon)
    down = (math.log1p(gap_p) - math.log1p(-gap_q)) * (1 + 1e-15)
    up = (math.log1p(gap_q) - math.log1p(-gap_p)) * (1 + 1e-15)
    shifted = np.nextafter(epsilon - down, -np.inf), np.nextafter(epsilon + up, np.inf)
    all_rows, cost = rows(np.concatenate([epsilon, *shifted]))
    found, above, below = np.split(all_rows, 3)
    found = found.copy()
    found[:, 1] = np.minimum(found[:, 1], below[:, 1] * (1 - gap_p) * (1 - 1e-15))
    found[:, 2] = np.minimum(np.maximum(found[:, 2], above[:, 2] * (1 + gap_p) * (1 + 1e-15)), 1.0)
    found[:, 4] = np.minimum(found[:, 4], below[:, 4] + math.log1p(-gap_p) * (1 + 1e-15))
    found[:, 5] = np.minimum(np.maximum(found[:, 5], above[:, 5] + math.log1p(gap_p) * (1 + 1e-15)), 0.0)
    for column, out in ((4, -1.0), (5, 1.0)):
        finite = np.isfinite(found[:, column])
        found[finite, column] += out * 2.0**-52 * np.abs(found[finite, column])
    found[:, 5] = np.minimum(found[:, 5], 0.0)
    return found, cost


def _tighten_with_closed_bounds(
    rows: FloatArray, p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, logs: bool,
    deadline: Deadline,
) -> bool:  # fmt: skip
    """Meets wide brackets with closed bounds, in place, while there is time; whether there were any."""
    wide = np.flatnonzero(_is_wide(rows))
    if not wide.size:
        return False
    first, second = (p.weights, p.means, p.sigmas), (q.weights, q.means, q.sigmas)

    def curve(own: Any, other: Any, grid: FloatArray) -> FloatArray:
        arrays = [np.ascontiguousarray(x) for x in (*own, *other)]
        return np.asarray(_hockey.pair_curve(*arrays, np.ascontiguousarray(grid), width, logs, deadline.at)[0])

    scales = () if deadline.expired else _separated_scale_rows(first, second, epsilon[wide], curve)
    for found in scales:
        _intersect(rows, wide, found)
        if not _is_wide(rows[wide]).any() or deadline.expired:
            break
    left = wide[_is_wide(rows[wide])]
    closed = not deadline.expired
    if left.size and closed:
        tails = _log_tail_bounds(first, second, epsilon[left])
        upper = np.minimum(np.nextafter(np.exp(tails), np.inf), 1.0)
        _apply_upper_bounds(rows, left, np.where(np.isneginf(tails), 0.0, upper), tails)
    order = np.argsort(epsilon, kind="stable")  # H falls with epsilon
    for column in (2, 5):
        rows[order, column] = np.minimum.accumulate(rows[order, column])
    for column in (1, 4):
        rows[order[::-1], column] = np.maximum.accumulate(rows[order[::-1], column])
    left = wide[_is_wide(rows[wide], 1e-2) & (epsilon[wide] >= 0.0)]
    lengths = np.concatenate([p.sigmas, q.sigmas])
    if left.size and closed and lengths.max() < _MAX_SIGMA_RATIO * lengths.min() and len(p) + len(q) <= _MAX_KL_COMPONENTS:
        most = _total_variation_bound(p, q, deadline)
        _apply_upper_bounds(rows, left, np.full(left.size, most), np.full(left.size, math.log(most) + 1e-15 if most else -np.inf))
    for k in (0, 3):
        rows[:, k] = np.clip(rows[:, k], rows[:, k + 1], rows[:, k + 2])
    for k in wide[_is_wide(rows[wide], 1e-2)]:  # no better estimate than the middle where the value is an end
        if rows[k, 2] > 1e-300 and rows[k, 0] in (rows[k, 1], rows[k, 2]):
            rows[k, 0] = (rows[k, 1] + rows[k, 2]) / 2
            rows[k, 3] = np.clip(_log(rows[k, 0]), rows[k, 4], rows[k, 5])
    return closed


def _is_wide(rows: FloatArray, width: float = _WIDE_BRACKET) -> NDArray[np.bool_]:
    """Whether a bracket is far wider than what rounding explains."""
    lower, upper, tiny = rows[:, 1], rows[:, 2], rows[:, 2] <= 1e-300
    unknown = (rows[:, 5] > -np.inf) & (rows[:, 4] == -np.inf)
    return np.asarray(np.where(tiny, unknown, upper - lower > width * upper), dtype=np.bool_)


def _intersect(rows: FloatArray, at: NDArray[np.intp], found: FloatArray) -> None:
    """Both brackets hold: their intersection, with the value of the narrower one."""
    for k in (0, 3):
        old, new = rows[at, k : k + 3], found[:, k : k + 3]
        better = new[:, 2] - new[:, 1] < old[:, 2] - old[:, 1]
        value = np.where(better | ~np.isfinite(old[:, 0]), new[:, 0], old[:, 0])
        lower, upper = np.maximum(old[:, 1], new[:, 1]), np.minimum(old[:, 2], new[:, 2])
        rows[at, k], rows[at, k + 1], rows[at, k + 2] = np.clip(value, lower, upper), lower, upper


def _apply_upper_bounds(rows: FloatArray, at: NDArray[np.intp], upper: FloatArray, log_upper: FloatArray) -> None:
    """Meets upper bounds; both columns of a row tell the same."""
    rows[at, 2], rows[at, 5] = np.minimum(rows[at, 2], upper), np.minimum(rows[at, 5], log_upper)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def curve_estimate(rows: FloatArray, grid: FloatArray, unit: Unit, method: str, cost: Any) -> Estimate:
    value, lower, upper = (rows[:, column].reshape(grid.shape) for column in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)


def _separated_scale_rows(
    p: Components, q: Components, epsilon: FloatArray, curve: Callable[[Components, Components, FloatArray], FloatArray]
) -> Iterator[FloatArray]:
    """Rows (value, lower, upper and their logarithms) for each level at which components count as separated.

    ``curve`` gives such rows for the components of one group.
    """
    if len(p[0]) * len(q[0]) * epsilon.size > _MAX_PAIRS:
        return
    overlaps = [_log_overlaps(p, q, float(e)) for e in epsilon]
    smaller = [np.minimum(np.log(p[0])[:, None], np.log(q[0])[None, :] + e) for e in epsilon]
    for negligible in _NEGLIGIBLE_OVERLAPS:
        limits = [size + math.log(negligible) for size in smaller]
        labels, slack = zip(*map(_overlap_groups, overlaps, limits), strict=True)
        rows = np.tile([0.5, 0.0, 1.0, -math.log(2.0), -np.inf, 0.0], (epsilon.size, 1))
        for label in set(labels):
            group = np.array(label)
            if group.max() == 0:
                continue
            here = [k for k in range(epsilon.size) if labels[k] == label]
            own, other = group[: len(p[0])], group[len(p[0]) :]
            parts = [
                _group_rows([x[own == c] for x in p], [x[other == c] for x in q], epsilon[here], curve)
                for c in range(group.max() + 1)
                if np.any(own == c)
            ]
            rows[here] = _sum_of_groups(np.array(parts), np.array([slack[k] for k in here]))
        yield rows


def _log_tail_bounds(p: Components, q: Components, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log H."""
    best = np.zeros(epsilon.size)
    if len(p[0]) * len(q[0]) * epsilon.size > _MAX_PAIRS:
        return best
    (w, m, s), (v, n, t) = p, q
    for k, e in enumerate(epsilon):
        found = _log_tails(m[:, None], s[:, None], n[None, :], t[None, :], e + np.log(v)[None, :]).min(axis=1)
        best[k] = min(0.0, float(np.logaddexp.reduce(np.log(w) + found)) + _OUTWARD)
    return best


def _total_variation_bound(p: GaussianMixture, q: GaussianMixture, deadline: Deadline = NO_DEADLINE) -> float:
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
        sigmas = math.sqrt(2) * np.sqrt(np.maximum(needle - wide, 0.0) + _WINDOW_LOG_MASS)  # half the window, in narrow sigmas
        height = -0.5 * np.maximum(away - sigmas * ratio, 0.0) ** 2
        inside = wide + np.minimum(np.log(sigmas) + log_ratio - 0.2257 + height, 0.0)  # 0.2257 < log(sqrt(pi / 2))
        inside = np.maximum(np.where(np.isnan(inside), wide, inside), least - 2000.0)
        by_window = np.logaddexp(inside, least - _WINDOW_LOG_MASS)
    found = np.fmin(np.fmin(affinity, by_window), least)
    found += _OUTWARD + 1e-12 * np.abs(np.where(np.isinf(found), 0.0, found))
    return np.asarray(np.minimum(found, least + 1e-15 * np.abs(least)))


def _overlap_groups(overlaps: FloatArray, limit: FloatArray) -> tuple[tuple[int, ...], float]:
    """The group of each component of P, then of Q, and the log of the sum of all overlaps between groups."""
    i, j = np.nonzero(overlaps > limit)
    k, n = overlaps.shape
    graph = coo_array((np.ones(i.size, dtype=np.int8), (i, k + j)), shape=(k + n, k + n))
    labels = connected_components(graph, directed=False)[1]
    cross = labels[:k, None] != labels[None, k:]
    return tuple(labels.tolist()), float(np.logaddexp.reduce(overlaps[cross], initial=-np.inf))


def _group_rows(p: Any, q: Any, epsilon: FloatArray, curve: Callable[..., FloatArray]) -> FloatArray:
    if q[0].size:
        return curve(tuple(p), tuple(q), epsilon)
    mass = math.fsum(p[0])
    row = np.array([mass, np.nextafter(mass, 0.0), np.nextafter(mass, np.inf)])
    row = np.append(row, np.log(row) + np.array([0.0, -1.0, 1.0]) * 1e-15 * (1.0 + np.abs(np.log(row))))
    rows = np.tile(row, (epsilon.size, 1))
    rows[epsilon == np.inf] = [0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf]
    return rows


def _sum_of_groups(parts: FloatArray, log_slack: FloatArray) -> FloatArray:
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
