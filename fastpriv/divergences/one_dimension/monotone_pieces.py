"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: p, q the densities of P and Q, L = log(p/q), H_a(P||Q) = sup_E P(E) - a Q(E) = integral of (p - a q)^+ with
a = e^epsilon (Ngo, Ostman and Graell i Amat 2024, section I); P = sum_i w_i N(m_i, s_i^2), Q = sum_j v_j N(n_j, t_j^2).

Monotone pieces. The real line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs
with a Cauchy bound of the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences
of normal distribution functions between them. What the enclosure of a crossing leaves open is of second order in its
width and goes into the upper bound, as does every rounding. Where doubles cancel, the sums are formed again in
double-double arithmetic. Intervals that stay undecided when their budget is spent widen the upper bound; then the
following bounds in closed form are intersected with it.

* Separated scales. When the components fall into groups, c, with P = sum_c P_c and Q = sum_c Q_c, H differs from
  sum_c H_a(P_c||Q_c) by at most the integrals of min(w_i N_i, a v_j N_j) over pairs i, j of different groups: both
  are sums of positive parts, and (f + g)^+ >= f^+ + g^+ - min(f^+, g^-) - min(f^-, g^+). Each group is computed in its
  own unit of length, so that lengths of 1e-300 and 1e300 meet within the range of doubles.
* Tails. q >= v_j N_j for each j, so H <= sum_i w_i min_j P_i(log(N_i / N_j) > epsilon + log v_j).
* Relative entropy. H <= TV <= sqrt(KL / 2) (Pinsker) and TV <= sqrt(1 - e^-KL) (Bretagnolle and Huber 1979, lemma 2.1).

Brackets of many epsilons are rows of six numbers: value, lower, upper, and the logarithms of these three.
"""

# bounds: tested by enclosures/test_hockey_stick, enclosures/test_hockey_stick_extremes - outward roundings where mass
#    gaps are taken as factor and shift; rounding of overlaps, tails and of the sum over groups

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import _parallel
from ...distributions import GaussianMixture
from ...estimate import Estimate, Unit
from ...kernels import _hockey_stick_curves
from ...numerics import LOG_2, MACHINE_EPSILON, BoolArray, FloatArray, IndexArray, next_above, next_below
from . import closed_forms
from .integrals import kl_divergence
from .quadrature import NO_DEADLINE, STOPPED, TIME_SPENT, Deadline, all_single_gaussians, identical

__all__ = [
    "COST_FIELDS", "MAX_DOUBLE_WIDTH", "curve_estimate", "curve_method", "epsilons_for_gaps",
    "hockey_stick_divergence", "hockey_stick_rows", "is_wide", "max_divergence", "named_costs",
    "rows_for_gaps", "with_mass_gaps",
]  # fmt: skip

Components = tuple[FloatArray, FloatArray, FloatArray]  # weights, means, standard deviations
# bound: none - relative width of a bracket above which sums in doubles are formed again in double-doubles
MAX_DOUBLE_WIDTH = 5e-13
_CLOSED_FORM = "closed form, two points with one sigma"  # method of a curve that took no pieces
COST_FIELDS = ("evaluations", "double_double", "pieces", "undecided")  # what the kernel counts
# bound: none - relative width of a bracket from which on closed bounds are tried
_WIDE_BRACKET = 1e-9
_WIDE_AFTER_BOUNDS = 1e-2  # the same, from which on the bound by relative entropy is tried too
_MAX_SIGMA_RATIO, _MAX_KL_COMPONENTS = 1e6, 200  # ratio of scales, and components, up to which that bound is cheap
# bound: tested by enclosures/test_hockey_stick_extremes - rounding of the logarithms of the closed bounds, with 1e-12
#    of their size
_OUTWARD = 1e-9
# bound: none - relative width at which the search for the max-divergence ends
_MAX_DIVERGENCE_WIDTH = 1e-12
_BLOCK_EPSILONS = 512  # of a block of a long grid: half a millisecond to some tens of them, the analysis not included
_MAX_CLOSED_FORM_COMPONENTS = 2  # of mixtures whose pair the kernel may compute in closed form
_COST_OF_ANALYSIS = (False, False, True, True, False)  # counts that belong to the analysis, not to its epsilons
_LEAST_EXPONENT = -104  # 2^-104 is the least epsilon, but 0, that the search for the max-divergence tries first
_GRID_POINTS = 66  # of epsilon in each round of that search
_MAX_PAIRS = 4_000_000  # of components, times the number of epsilons, for which closed bounds are computed
# Overlaps below these, relative to the smaller component, do not join two components to one group.
_NEGLIGIBLE_OVERLAPS = (1e-25, 1e-16, 1e-9, 1e-3)
# bound: proved - a window of a normal distribution leaves out at most e^-70 of it, which is added
_WINDOW_LOG_MASS = 70.0


def hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool = False, deadline: Deadline = NO_DEADLINE,
    n_jobs: int | None = None,
) -> Estimate:  # fmt: skip
    """H_{e^epsilon}(P||Q) or its natural logarithm, all of ``epsilon`` from one analysis of the pair."""
    grid = np.asarray(epsilon, dtype=np.float64)
    flat = np.ascontiguousarray(grid).reshape(-1)
    rows, cost, closed = hockey_stick_rows(p, q, flat, MAX_DOUBLE_WIDTH, logs=logs, deadline=deadline, n_jobs=n_jobs)
    method = curve_method(cost, closed=closed) if flat.size else _CLOSED_FORM
    if logs:
        return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def curve_method(cost: Mapping[str, Any], *, closed: bool) -> str:
    """What computed a curve: by its cost, and whether closed bounds were needed."""
    stopped, undecided = "stopped" in cost, cost["undecided"]
    if not (cost["pieces"] or undecided or stopped):
        method = _CLOSED_FORM
    else:
        method = "monotone pieces, double-double sums" if cost["double_double"] else "monotone pieces, double sums"
    if closed:
        method += ", closed bounds"
    if stopped:
        return method + TIME_SPENT
    return method + ", budget spent" if undecided else method


def named_costs(counts: Sequence[int]) -> dict[str, Any]:
    """The counts of the kernel as an entry ``cost``; the last is that of epsilons that were not done in time."""
    cost: dict[str, Any] = dict(zip(COST_FIELDS, counts[:-1], strict=True))
    return cost | STOPPED if counts[-1] else cost


def max_divergence(p: GaussianMixture, q: GaussianMixture, *, deadline: Deadline = NO_DEADLINE) -> Estimate:
    """The Renyi divergence of order infinity, log sup p/q, in nats: the least epsilon at which H is 0."""
    if not _has_bounded_ratio(p, q):
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
    if identical(p, q):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal distributions")
    if all_single_gaussians(p, q):
        return closed_forms.gaussian_max_divergence(p, q)
    lower, upper = 0.0, math.inf
    cost: dict[str, Any] = {}
    grid = np.ldexp(1.0, np.arange(_LEAST_EXPONENT, 1024, 8))
    while not deadline.expired:
        rows, cost, _ = hockey_stick_rows(p, q, grid, MAX_DOUBLE_WIDTH, logs=True, deadline=deadline)
        positive, zero = rows[:, 4] > -np.inf, rows[:, 5] == -np.inf
        before = lower, upper
        lower = max(lower, float(grid[positive].max(initial=0.0)))
        upper = min(upper, float(grid[zero].min(initial=math.inf)))
        if (lower, upper) == before or upper - lower <= _MAX_DIVERGENCE_WIDTH * upper or not math.isfinite(upper):
            break
        grid = np.linspace(lower, upper, _GRID_POINTS)[1:-1]
    value = lower + 0.5 * (upper - lower) if math.isfinite(upper) else lower
    method = "monotone pieces, least order of a zero hockey-stick divergence" + (TIME_SPENT if deadline.expired else "")
    return Estimate(value, lower, upper, kind="certified", unit="nats", method=method, cost=cost)


def _has_bounded_ratio(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether p/q is bounded: the widest components of Q are wider than those of P, or reach out as far on both sides.

    Of components of equal width the outermost means decide, since their log ratio is linear.
    """
    s, t = p.sigmas.max(), q.sigmas.max()
    inner, outer = p.means[p.sigmas == s], q.means[q.sigmas == t]
    return bool(s < t or (s == t and outer.min() <= inner.min() and inner.max() <= outer.max()))


def curve_estimate(rows: FloatArray, grid: FloatArray, unit: Unit, method: str, cost: Any) -> Estimate:
    """Rows of value, lower and upper as one estimate of the shape of the grid."""
    value, lower, upper = (rows[:, column].reshape(grid.shape) for column in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)


def hockey_stick_rows(
    p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, *, logs: bool,
    deadline: Deadline = NO_DEADLINE, n_jobs: int | None = None,
) -> tuple[FloatArray, dict[str, Any], bool]:  # fmt: skip
    """A row for each epsilon; the cost; whether closed bounds were needed.

    The blocks of a long grid share one analysis and are done by threads. At the ``deadline`` the brackets are those that were proved by then.
    """
    closed = False

    def rows_of(grid: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        nonlocal closed
        long = grid.size > _BLOCK_EPSILONS and max(len(p), len(q)) > _MAX_CLOSED_FORM_COMPONENTS
        function = partial(_rows_in_blocks, n_jobs=n_jobs) if long else _hockey_stick_curves.pair_curve
        components = p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas
        rows, counts = function(*components, grid, width, logs, deadline.expiry)
        closed = _tighten_with_closed_bounds(rows, p, q, grid, width, logs, deadline)
        return rows, named_costs(counts)

    rows, cost = with_mass_gaps(rows_of, epsilon, p.mass_gap, q.mass_gap)
    return rows, cost, closed


def _rows_in_blocks(*arguments: Any, n_jobs: int | None) -> tuple[FloatArray, list[int]]:
    """``pair_curve``, its epsilons in blocks on threads."""
    *components, grid, width, logs, expiry = arguments
    analysis = _hockey_stick_curves.PairAnalysis(*components, expiry)
    rows, counts = np.empty((grid.size, 6)), [analysis.evaluations, 0, 0, 0, 0]
    blocks = _parallel.blocks(grid.size, _BLOCK_EPSILONS)

    def block_rows(block: slice) -> tuple[int, ...]:
        rows[block], cost = analysis.curve(grid[block], width, logs, expiry)
        return tuple(cost)

    for cost in _parallel.ordered_map(block_rows, blocks, n_jobs=n_jobs, shared=True):
        for field in range(len(counts)):
            shared = _COST_OF_ANALYSIS[field]
            counts[field] = cost[field] if shared else counts[field] + cost[field]
    return rows, counts


def with_mass_gaps(
    rows_of: Callable[[FloatArray], tuple[FloatArray, dict[str, Any]]], epsilon: FloatArray, gap_p: float, gap_q: float
) -> tuple[FloatArray, dict[str, Any]]:
    """The rows when weights miss the sum 1 by these gaps.

    The bounds hold for all measures whose densities are within 1 +- gap of those given, the normalised ones among them.
    (1 + g) p - a (1 - h) q = (1 + g) (p - a' q), so H changes by at most a factor 1 +- g and a shift of epsilon by
    log((1 + g) / (1 - h)): a relative change of p and q over the set itself, however small H is.
    """
    if not (gap_p or gap_q):
        return rows_of(epsilon)
    all_rows, cost = rows_of(epsilons_for_gaps(epsilon, gap_p, gap_q))
    return rows_for_gaps(all_rows, gap_p), cost


def epsilons_for_gaps(epsilon: FloatArray, gap_p: float | FloatArray, gap_q: float | FloatArray) -> FloatArray:
    """The epsilons, and after them on the last axis those shifted down and up, by the text of ``with_mass_gaps``."""
    down = (_log1p(gap_p) - _log1p(-gap_q)) * (1 + 1e-15)
    up = (_log1p(gap_q) - _log1p(-gap_p)) * (1 + 1e-15)
    return np.concatenate([epsilon, next_below(epsilon - down), next_above(epsilon + up)], axis=-1)


def rows_for_gaps(all_rows: FloatArray, gap_p: float | FloatArray) -> FloatArray:
    """The rows of the epsilons, widened by those of the shifted ones; axis -2 holds all of ``epsilons_for_gaps``."""
    rows, above, below = np.split(all_rows, 3, axis=-2)
    rows = rows.copy()
    rows[..., 1] = np.minimum(rows[..., 1], below[..., 1] * (1 - gap_p) * (1 - 1e-15))
    rows[..., 2] = np.minimum(np.maximum(rows[..., 2], above[..., 2] * (1 + gap_p) * (1 + 1e-15)), 1.0)
    rows[..., 4] = np.minimum(rows[..., 4], below[..., 4] + _log1p(-gap_p) * (1 + 1e-15))
    rows[..., 5] = np.minimum(np.maximum(rows[..., 5], above[..., 5] + _log1p(gap_p) * (1 + 1e-15)), 0.0)
    for column, direction in ((4, -1.0), (5, 1.0)):
        logs = rows[..., column]
        finite = np.isfinite(logs)
        logs[finite] += direction * MACHINE_EPSILON * np.abs(logs[finite])
    rows[..., 5] = np.minimum(rows[..., 5], 0.0)
    return rows


def _log1p(x: float | FloatArray) -> Any:
    """log(1 + x), the same double for a number and for an entry of an array."""
    return np.reshape([math.log1p(each) for each in x.ravel()], x.shape) if isinstance(x, np.ndarray) else math.log1p(x)


def _tighten_with_closed_bounds(
    rows: FloatArray, p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, logs: bool,
    deadline: Deadline,
) -> bool:  # fmt: skip
    """Intersect wide brackets with closed bounds, in place, while there is time; whether there were any."""
    wide = np.flatnonzero(is_wide(rows))
    if not wide.size:
        return False
    first, second = (p.weights, p.means, p.sigmas), (q.weights, q.means, q.sigmas)

    def rows_of(p: Components, q: Components, grid: FloatArray) -> FloatArray:
        arrays = [np.ascontiguousarray(x) for x in (*p, *q)]
        return np.asarray(
            _hockey_stick_curves.pair_curve(*arrays, np.ascontiguousarray(grid), width, logs, deadline.expiry)[0]
        )

    for separated in () if deadline.expired else _separated_scale_rows(first, second, epsilon[wide], rows_of):
        _intersect(rows, wide, separated)
        if not is_wide(rows[wide]).any() or deadline.expired:
            break
    remaining = wide[is_wide(rows[wide])]
    in_time = not deadline.expired
    if remaining.size and in_time:
        tails = _log_tail_bounds(first, second, epsilon[remaining])
        upper = np.minimum(next_above(np.exp(tails)), 1.0)
        _lower_the_upper_bounds(rows, remaining, np.where(np.isneginf(tails), 0.0, upper), tails)
    order = np.argsort(epsilon, kind="stable")  # H falls with epsilon
    for column in (2, 5):
        rows[order, column] = np.minimum.accumulate(rows[order, column])
    for column in (1, 4):
        rows[order[::-1], column] = np.maximum.accumulate(rows[order[::-1], column])
    remaining = wide[is_wide(rows[wide], _WIDE_AFTER_BOUNDS) & (epsilon[wide] >= 0.0)]
    lengths = np.concatenate([p.sigmas, q.sigmas])
    cheap = lengths.max() < _MAX_SIGMA_RATIO * lengths.min() and len(p) + len(q) <= _MAX_KL_COMPONENTS
    if remaining.size and in_time and cheap:
        most = _total_variation_bound(p, q, deadline)
        log_most = math.log(most) + 1e-15 if most else -np.inf
        _lower_the_upper_bounds(rows, remaining, np.full(remaining.size, most), np.full(remaining.size, log_most))
    for k in (0, 3):
        rows[:, k] = np.clip(rows[:, k], rows[:, k + 1], rows[:, k + 2])
    for k in wide[is_wide(rows[wide], _WIDE_AFTER_BOUNDS)]:  # where the value is an end, the middle is the better one
        if rows[k, 2] > 1e-300 and rows[k, 0] in (rows[k, 1], rows[k, 2]):
            rows[k, 0] = (rows[k, 1] + rows[k, 2]) / 2
            rows[k, 3] = np.clip(math.log(rows[k, 0]) if rows[k, 0] > 0 else -math.inf, rows[k, 4], rows[k, 5])
    return in_time


def is_wide(rows: FloatArray, width: float = _WIDE_BRACKET) -> BoolArray:
    """Whether a bracket is far wider than rounding explains; for tiny divergences, whether it is trivial."""
    lower, upper, tiny = rows[..., 1], rows[..., 2], rows[..., 2] <= 1e-300
    unknown = (rows[..., 5] > -np.inf) & (rows[..., 4] == -np.inf)
    return np.asarray(np.where(tiny, unknown, upper - lower > width * upper), dtype=np.bool_)


def _intersect(rows: FloatArray, index: IndexArray, other: FloatArray) -> None:
    """Both brackets hold: replace rows by their intersection, with the value of the narrower one."""
    for k in (0, 3):
        old, new = rows[index, k : k + 3], other[:, k : k + 3]
        better = new[:, 2] - new[:, 1] < old[:, 2] - old[:, 1]
        value = np.where(better | ~np.isfinite(old[:, 0]), new[:, 0], old[:, 0])
        lower, upper = np.maximum(old[:, 1], new[:, 1]), np.minimum(old[:, 2], new[:, 2])
        rows[index, k], rows[index, k + 1], rows[index, k + 2] = np.clip(value, lower, upper), lower, upper


def _lower_the_upper_bounds(rows: FloatArray, index: IndexArray, upper: FloatArray, log_upper: FloatArray) -> None:
    rows[index, 2], rows[index, 5] = np.minimum(rows[index, 2], upper), np.minimum(rows[index, 5], log_upper)


def _separated_scale_rows(
    p: Components, q: Components, epsilon: FloatArray,
    rows_of: Callable[[Components, Components, FloatArray], FloatArray],
) -> Iterator[FloatArray]:  # fmt: skip
    """Rows for each level at which components count as separated; ``rows_of`` gives those of one group."""
    if len(p[0]) * len(q[0]) * epsilon.size > _MAX_PAIRS:
        return
    overlaps = [_log_overlaps(p, q, float(e)) for e in epsilon]
    smaller = [np.minimum(np.log(p[0])[:, None], np.log(q[0])[None, :] + e) for e in epsilon]
    for negligible in _NEGLIGIBLE_OVERLAPS:
        limits = [size + math.log(negligible) for size in smaller]
        labels, omitted = zip(*map(_overlap_groups, overlaps, limits), strict=True)
        rows = np.tile([0.5, 0.0, 1.0, -LOG_2, -np.inf, 0.0], (epsilon.size, 1))
        for label in set(labels):
            group = np.array(label)
            if group.max() == 0:
                continue
            index = [k for k in range(epsilon.size) if labels[k] == label]
            groups_p, groups_q = group[: len(p[0])], group[len(p[0]) :]
            parts = [
                _group_rows([x[groups_p == c] for x in p], [x[groups_q == c] for x in q], epsilon[index], rows_of)
                for c in range(group.max() + 1)
                if np.any(groups_p == c)
            ]
            rows[index] = _sum_of_groups(np.array(parts), np.array([omitted[k] for k in index]))
        yield rows


def _log_overlaps(p: Components, q: Components, epsilon: float) -> FloatArray:
    """Upper bounds of log of the integral of min(w_i N_i, a v_j N_j), shape (len(p), len(q)).

    They are the least of three: the smaller mass, the affinity (integral of the root of the product, in closed form),
    and a window around the mean of the narrow component, in which the wide one is at most ``height``.
    """
    (w, m, s), (v, n, t) = p, q
    a, b = np.log(w)[:, None], np.log(v)[None, :] + epsilon
    least, most = np.minimum(a, b), np.maximum(s[:, None], t[None, :])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        ratio = np.minimum(s[:, None], t[None, :]) / most
        log_ratio = -np.abs(np.log(s)[:, None] - np.log(t)[None, :])  # the ratio itself may underflow
        distance = np.abs(m[:, None] - n[None, :]) / most  # in units of the wider sigma
        affinity = 0.5 * (a + b) - distance**2 / (4 * (1 + ratio**2)) + 0.5 * (log_ratio + np.log(2 / (1 + ratio**2)))
        p_is_narrow = s[:, None] < t[None, :]
        narrow, wide = np.where(p_is_narrow, a, b), np.where(p_is_narrow, b, a)
        half_window = math.sqrt(2) * np.sqrt(np.maximum(narrow - wide, 0.0) + _WINDOW_LOG_MASS)  # in narrow sigmas
        height = -0.5 * np.maximum(distance - half_window * ratio, 0.0) ** 2
        inside = wide + np.minimum(np.log(half_window) + log_ratio - 0.2257 + height, 0.0)  # 0.2257 < log(sqrt(pi / 2))
        inside = np.maximum(np.where(np.isnan(inside), wide, inside), least - 2000.0)
        by_window = np.logaddexp(inside, least - _WINDOW_LOG_MASS)
    bound = np.fmin(np.fmin(affinity, by_window), least)
    bound += _OUTWARD + 1e-12 * np.abs(np.where(np.isinf(bound), 0.0, bound))
    return np.asarray(np.minimum(bound, least + 1e-15 * np.abs(least)))


def _overlap_groups(overlaps: FloatArray, limit: FloatArray) -> tuple[tuple[int, ...], float]:
    """The group of each component of P, then of Q, and the log of the sum of all overlaps between groups."""
    joined = overlaps > limit
    k, n = joined.shape
    labels = np.full(k + n, -1)
    for start in range(k + n):
        if labels[start] >= 0:
            continue
        label, reached = labels.max() + 1, np.arange(k + n) == start
        while reached.any():  # what the components that were reached last are joined to
            labels[reached] = label
            joined_to = joined[reached[:k]].any(axis=0), joined[:, reached[k:]].any(axis=1)
            reached = np.concatenate(joined_to[::-1]) & (labels < 0)
    across = labels[:k, None] != labels[None, k:]
    return tuple(labels.tolist()), float(np.logaddexp.reduce(overlaps[across], initial=-np.inf))


def _group_rows(p: Any, q: Any, epsilon: FloatArray, rows_of: Callable[..., FloatArray]) -> FloatArray:
    """Rows of one group; its mass where it has no component of Q."""
    if q[0].size:
        return rows_of(tuple(p), tuple(q), epsilon)
    mass = math.fsum(p[0])
    row = np.array([mass, np.nextafter(mass, 0.0), np.nextafter(mass, np.inf)])
    row = np.append(row, np.log(row) + np.array([0.0, -1.0, 1.0]) * 1e-15 * (1.0 + np.abs(np.log(row))))
    rows = np.tile(row, (epsilon.size, 1))
    rows[epsilon == np.inf] = [0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf]
    return rows


def _sum_of_groups(parts: FloatArray, log_omitted: FloatArray) -> FloatArray:
    """Sums over the groups, widened by the overlaps between them."""
    rows = np.empty(parts.shape[1:])
    rows[:, :3], rows[:, 3:] = parts[:, :, :3].sum(axis=0), np.logaddexp.reduce(parts[:, :, 3:], axis=0)
    rounding = MACHINE_EPSILON * (len(parts) + 2)
    omitted = np.exp(log_omitted)
    rows[:, 1] = np.maximum(rows[:, 1] * (1 - rounding) - omitted, 0.0)
    rows[:, 2] = np.minimum(rows[:, 2] * (1 + rounding) + omitted, 1.0)
    rows[:, 5] = np.logaddexp(rows[:, 5], log_omitted)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows[:, 4] += np.log1p(-np.minimum(np.exp(log_omitted - rows[:, 4]), 1.0))
        rows[:, 4] = np.where(np.isnan(rows[:, 4]), -np.inf, rows[:, 4])
        rows[:, 4] -= rounding * (1.0 + np.abs(np.where(np.isinf(rows[:, 4]), 0.0, rows[:, 4])))
    rows[:, 5] += rounding * (1.0 + np.abs(np.where(np.isinf(rows[:, 5]), 0.0, rows[:, 5])))
    rows[:, 5] = np.minimum(rows[:, 5], 0.0)
    for value in (0, 3):
        rows[:, value] = np.clip(rows[:, value], rows[:, value + 1], rows[:, value + 2])
    return rows


def _log_tail_bounds(p: Components, q: Components, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log H by tails."""
    best = np.zeros(epsilon.size)
    if len(p[0]) * len(q[0]) * epsilon.size > _MAX_PAIRS:
        return best
    (w, m, s), (v, n, t) = p, q
    for k, e in enumerate(epsilon):
        tails = _log_tails(m[:, None], s[:, None], n[None, :], t[None, :], e + np.log(v)[None, :]).min(axis=1)
        best[k] = min(0.0, float(np.logaddexp.reduce(np.log(w) + tails)) + _OUTWARD)
    return best


def _log_tails(m: FloatArray, s: FloatArray, n: FloatArray, t: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log P(log(N(m, s^2) / N(n, t^2)) > epsilon) under N(m, s^2).

    With z = (x - m) / s the log ratio is c + r d z - (1 - r^2) z^2 / 2, c = d^2 / 2 - log r, r = s / t and
    d = (m - n) / t.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        r, d = s / t, np.abs(m - n) / t
        log_r = np.log(s) - np.log(t)
        curvature = (t - s) / t * ((t + s) / t)  # 1 - r^2
        excess = epsilon - (0.5 * d * d - log_r)  # over the log ratio at z = 0
        # r < 1: the log ratio has a maximum, and exceeds epsilon between two roots at most
        maximum = 0.5 * d * d / curvature - log_r
        never = (curvature > 0) & (epsilon * (1 - 1e-12) > maximum * (1 + 1e-12) + 1e-12)
        # r >= 1: beyond the root of r d z + (r^2 - 1) z^2 / 2 = excess; r < 1: r d z > excess at least
        root = np.hypot(r * d, np.sqrt(2 * np.maximum(-curvature, 0.0)) * np.sqrt(np.maximum(excess, 0.0)))
        inner = np.where(excess > 0, excess / (0.5 * (r * d + root)), 0.0)
        outer = np.maximum(np.where(excess > 0, inner, 0.0) * (1 - 1e-9), 0.0)
        bound = -0.5 * outer * outer
        uncertain = np.isnan(bound) | ~(excess > 1e-6 * (0.5 * d * d + np.abs(log_r)))
    never |= (s == t) & (m == n) & (epsilon >= 0)
    bound = np.maximum(bound, -1e308)  # the probability is positive
    bound += 0.6931471806  # log 2, rounded up: there are two tails
    return np.asarray(np.where(never, -np.inf, np.where(uncertain, 0.0, bound)))


def _total_variation_bound(p: GaussianMixture, q: GaussianMixture, deadline: Deadline) -> float:
    """Upper bound of the total variation by relative entropy, hence of every H with epsilon >= 0."""
    best = 1.0
    for first, second in ((p, q), (q, p)):
        kl = max(float(kl_divergence(first, second, certified=True, deadline=deadline).upper), 1e-300)
        best = min(best, math.sqrt(kl / 2), math.sqrt(-math.expm1(-kl)))
    return min(1.0, best * (1 + 1e-15) + MACHINE_EPSILON * (len(p) + len(q)))
