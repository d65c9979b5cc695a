"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: p, q the densities of P and Q, L = log(p/q), H_a(P||Q) = sup_E P(E) - a Q(E) = integral of (p - a q)^+ with
a = e^epsilon (Ngo, Ostman and Graell i Amat 2024, section I); P = sum_i w_i N(m_i, s_i^2), Q = sum_j v_j N(n_j, t_j^2).

Closed forms. Two points against two with one sigma, among them the subsampled Gaussian mechanism, are a weight times
the curve of the Gaussian mechanism at another epsilon (csrc/gauss/fp_two_points.h). The log ratio of two Gaussians is a
quadratic (csrc/line/fp_single_gaussians_solver.h). What these do not resolve is taken from monotone pieces.

Monotone pieces. The real line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs
with a Cauchy bound of the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences
of normal distribution functions between them. What the enclosure of a crossing leaves open is of second order in its
width and goes into the upper bound, as does every rounding. Where doubles cancel, the sums are formed again in
double-double arithmetic. Intervals that stay undecided when their budget is spent widen the upper bound; then the
following bounds in closed form are intersected with it.

* Parts. Components in different places or of different scales are computed apart (separated_scales.py).
* Tails. q >= v_j N_j for each j, so H <= sum_i w_i min_j P_i(log(N_i / N_j) > epsilon + log v_j).
* Relative entropy. H <= TV <= sqrt(KL / 2) (Pinsker) and TV <= sqrt(1 - e^-KL) (Bretagnolle and Huber 1979, lemma 2.1).

Brackets of many epsilons are rows of six numbers: value, lower, upper, and the logarithms of these three.
"""

# bounds: proved - docs/proofs/roundings.md, 13.17: outward roundings where mass gaps are taken as factor and shift;
#    rounding of tails and of the bound by relative entropy

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel
from ...base.estimate import Estimate, Unit
from ...base.numerics import MACHINE_EPSILON, FloatArray, IndexArray, log_sum_exp, next_above, next_below
from ...distributions import GaussianMixture
from ...kernels import _hockey_stick_curves
from . import closed_forms, integrals
from .quadrature import DISAGREE, NO_DEADLINE, STOPPED, TIME_SPENT, Deadline, all_single_gaussians, identical
from .separated_scales import MAX_PAIRS, WIDE_BRACKET, Components, is_wide, narrow_by_parts

# bound: none - relative width of a bracket above which sums in doubles are formed again in double-doubles
MAX_DOUBLE_WIDTH = 5e-13
COST_FIELDS = ("evaluations", "double_double", "pieces", "undecided")  # what the kernel counts
# bound: none - relative width of a bracket from which on the bound by relative entropy is tried
_WIDE_AFTER_BOUNDS = 1e-2
_MAX_SIGMA_RATIO, _MAX_KL_COMPONENTS = 1e6, 200  # ratio of scales, and components, up to which that bound is cheap
# bound: proved - docs/proofs/roundings.md, 13.17: rounding of a logarithm of a sum of weighted tails
_OUTWARD = 1e-9
# bound: none - relative width at which the search for the max-divergence ends
_MAX_DIVERGENCE_WIDTH = 1e-12
_BLOCK_EPSILONS = 512  # of a block of a long grid: half a millisecond to some tens of them, the analysis not included
_MAX_CLOSED_FORM_COMPONENTS = 2  # of mixtures whose pair the kernel may compute in closed form
_MAX_ONE_SIDED_COMPONENTS = 64  # the same, of a mixture to one side of a single Gaussian of its sigma
_COST_OF_ANALYSIS = (False, False, True, True, False, False)  # counts that belong to the analysis, not to its epsilons
_LEAST_EXPONENT = -104  # 2^-104 is the least epsilon, but 0, that the search for the max-divergence tries first
_GRID_POINTS = 66  # of epsilon in each round of that search


def hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool = False, deadline: Deadline = NO_DEADLINE,
    n_jobs: int | None = None,
) -> Estimate:
    """H_{e^epsilon}(P||Q) or its natural logarithm, all of ``epsilon`` from one analysis of the pair."""
    grid = np.asarray(epsilon, dtype=np.float64)
    flat = np.ascontiguousarray(grid).reshape(-1)
    rows, cost, closed = hockey_stick_rows(p, q, flat, MAX_DOUBLE_WIDTH, logs=logs, deadline=deadline, n_jobs=n_jobs)
    method = curve_method(cost, closed=closed)
    if logs:
        return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def curve_method(cost: Mapping[str, Any], *, closed: bool) -> str:
    """What computed a curve: by its cost, and whether closed bounds were needed."""
    stopped, undecided = "stopped" in cost, cost["undecided"]
    if not (cost["pieces"] or undecided or stopped):
        method = "closed form, double-double sums" if cost["double_double"] else "closed form"
    else:
        method = "monotone pieces, double-double sums" if cost["double_double"] else "monotone pieces, double sums"
    if closed:
        method += ", closed bounds"
    if "contradicted" in cost:
        method += DISAGREE
    if stopped:
        return method + TIME_SPENT
    return method + ", budget spent" if undecided else method


def named_costs(counts: Sequence[int]) -> dict[str, Any]:
    """The counts of the kernel as an entry ``cost``.

    The last two are those of epsilons that were not done in time, and of brackets that other bounds contradicted.
    """
    *fields, late, contradicted = counts
    cost: dict[str, Any] = dict(zip(COST_FIELDS, fields, strict=True))
    if contradicted:
        cost["contradicted"] = contradicted
    return cost | STOPPED if late else cost


def renyi_divergence(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """D_order(P||Q) in nats, for order infinity too."""
    if math.isinf(order):
        return max_divergence(p, q, deadline=deadline)
    return integrals.renyi_divergence(p, q, order, certified=certified, deadline=deadline)


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
    value, lower, upper = rows[0].tolist() if grid.ndim == 0 else (rows[:, i].reshape(grid.shape) for i in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)


def hockey_stick_rows(
    p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, *, logs: bool,
    deadline: Deadline = NO_DEADLINE, n_jobs: int | None = None,
) -> tuple[FloatArray, dict[str, Any], bool]:
    """A row for each epsilon; the cost; whether closed bounds were needed.

    Blocks of a long grid share one analysis and are done by threads. At the ``deadline`` the brackets are those that
    were proved by then.
    """
    if (epsilon >= 0.0).all() and identical(p, q):
        return np.tile([0.0] * 3 + [-np.inf] * 3, (epsilon.size, 1)), dict.fromkeys(COST_FIELDS, 0), False
    closed = False

    def rows_of(grid: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        nonlocal closed
        long = grid.size > _BLOCK_EPSILONS and not _may_be_closed_form(p, q)
        function = partial(_rows_in_blocks, n_jobs=n_jobs) if long else _hockey_stick_curves.pair_curve
        components = p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas
        rows, (*counts, contradicted) = function(*components, grid, width, logs, deadline.expiry)
        closed, disagree = _tighten_with_closed_bounds(rows, p, q, grid, width, logs, deadline)
        return rows, named_costs((*counts, contradicted + disagree))

    rows, cost = with_mass_gaps(rows_of, epsilon, p.mass_gap, q.mass_gap)
    if rows_that_rise := _widen_rows_that_rise(rows, epsilon):
        cost["contradicted"] = cost.get("contradicted", 0) + rows_that_rise
    return rows, cost, closed


def _widen_rows_that_rise(rows: FloatArray, epsilon: FloatArray) -> int:
    """Widen brackets of which one says that H rises with epsilon, in place; their number.

    One of the two is false at least: below and above each of them only what the other one allows is left out.
    """
    if not _hockey_stick_curves.may_rise(rows, epsilon):
        return 0
    order = np.argsort(epsilon, kind="stable")
    widened = 0
    for lower, upper, least, most in ((1, 2, 0.0, 1.0), (4, 5, -np.inf, 0.0)):
        low, high = rows[order, lower], rows[order, upper]
        too_high = low > np.minimum.accumulate(high)
        if too_high.any():
            too_low = high < np.maximum.accumulate(low[::-1])[::-1]
            rows[order, lower], rows[order, upper] = np.where(too_high, least, low), np.where(too_low, most, high)
            widened = max(widened, int((too_high | too_low).sum()))
    return widened


def _may_be_closed_form(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether the kernel may compute a pair in closed form, which needs no threads."""
    single, mixture = (p, q) if len(p) == 1 else (q, p)
    if len(mixture) <= _MAX_CLOSED_FORM_COMPONENTS:
        return True
    if len(single) > 1 or len(mixture) > _MAX_ONE_SIDED_COMPONENTS or (mixture.sigmas != single.sigmas[0]).any():
        return False
    return bool((mixture.means >= single.means[0]).all() or (mixture.means <= single.means[0]).all())


def _rows_in_blocks(*arguments: Any, n_jobs: int | None) -> tuple[FloatArray, list[int]]:
    """``pair_curve``, its epsilons in blocks on threads."""
    *components, grid, width, logs, expiry = arguments
    analysis = _hockey_stick_curves.PairAnalysis(*components, expiry)
    rows, counts = np.empty((grid.size, 6)), [analysis.evaluations, 0, 0, 0, 0, 0]
    blocks = parallel.blocks(grid.size, _BLOCK_EPSILONS)

    def block_rows(block: slice) -> tuple[int, ...]:
        rows[block], cost = analysis.curve(grid[block], width, logs, expiry)
        return tuple(cost)

    for cost in parallel.ordered_map(block_rows, blocks, n_jobs=n_jobs, shared=True):
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
    down = (_log1p(gap_p) - _log1p(-gap_q)) * (1 + 2e-15)
    up = (_log1p(gap_q) - _log1p(-gap_p)) * (1 + 2e-15)
    return np.concatenate([epsilon, next_below(epsilon - down), next_above(epsilon + up)], axis=-1)


def rows_for_gaps(all_rows: FloatArray, gap_p: float | FloatArray) -> FloatArray:
    """The rows of the epsilons, widened by those of the shifted ones; axis -2 holds all of ``epsilons_for_gaps``."""
    rows, above, below = np.split(all_rows, 3, axis=-2)
    rows = rows.copy()
    rows[..., 1] = np.minimum(rows[..., 1], below[..., 1] * (1 - gap_p) * (1 - 1e-15))
    rows[..., 2] = np.minimum(np.maximum(rows[..., 2], above[..., 2] * (1 + gap_p) * (1 + 1e-15)), 1.0)
    rows[..., 4] = np.minimum(rows[..., 4], below[..., 4] + _log1p(-gap_p) * (1 + 2e-15))
    rows[..., 5] = np.minimum(np.maximum(rows[..., 5], above[..., 5] + _log1p(gap_p) * (1 + 2e-15)), 0.0)
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
) -> tuple[bool, bool]:
    """Intersect wide brackets with closed bounds, in place, while there is time.

    Returns whether there were any, and whether some contradicted the bracket.
    """
    marks = _hockey_stick_curves.wide_brackets(rows, WIDE_BRACKET)
    if marks is None:
        return False, False
    wide = np.flatnonzero(marks)
    first, second = (p.weights, p.means, p.sigmas), (q.weights, q.means, q.sigmas)

    def rows_of(p: Components, q: Components, grid: FloatArray) -> FloatArray:
        arrays = [np.ascontiguousarray(x) for x in (*p, *q)]
        return np.asarray(
            _hockey_stick_curves.pair_curve(*arrays, np.ascontiguousarray(grid), width, logs, deadline.expiry)[0]
        )

    narrowed = np.ascontiguousarray(rows[wide])
    disagree = narrow_by_parts(narrowed, first, second, epsilon[wide], rows_of, lambda: deadline.expired)
    rows[wide] = narrowed
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
        log_most = math.log(most) * (1 - 1e-15) + 1e-15 if most else -np.inf
        _lower_the_upper_bounds(rows, remaining, np.full(remaining.size, most), np.full(remaining.size, log_most))
    for k in (0, 3):
        rows[:, k] = np.clip(rows[:, k], rows[:, k + 1], rows[:, k + 2])
    for k in wide[is_wide(rows[wide], _WIDE_AFTER_BOUNDS)]:  # where the value is an end, the middle is the better one
        if rows[k, 2] > 1e-300 and rows[k, 0] in (rows[k, 1], rows[k, 2]):
            rows[k, 0] = (rows[k, 1] + rows[k, 2]) / 2
            rows[k, 3] = np.clip(math.log(rows[k, 0]) if rows[k, 0] > 0 else -math.inf, rows[k, 4], rows[k, 5])
    return in_time, disagree


def _lower_the_upper_bounds(rows: FloatArray, index: IndexArray, upper: FloatArray, log_upper: FloatArray) -> None:
    rows[index, 2], rows[index, 5] = np.minimum(rows[index, 2], upper), np.minimum(rows[index, 5], log_upper)


def _log_tail_bounds(p: Components, q: Components, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log H by tails."""
    best = np.zeros(epsilon.size)
    if len(p[0]) * len(q[0]) * epsilon.size > MAX_PAIRS:
        return best
    (w, m, s), (v, n, t) = p, q
    for k, e in enumerate(epsilon):
        level = e + np.log(v)[None, :] - 1e-14 * (abs(e) + np.abs(np.log(v))[None, :])
        tails = _log_tails(m[:, None], s[:, None], n[None, :], t[None, :], level).min(axis=1)
        best[k] = min(0.0, float(log_sum_exp(np.log(w) + tails)) + _OUTWARD)
    return best


def _log_tails(m: FloatArray, s: FloatArray, n: FloatArray, t: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log P(log(N(m, s^2) / N(n, t^2)) > epsilon) under N(m, s^2).

    With z = (x - m) / s the log ratio is c + r d z - (1 - r^2) z^2 / 2, c = d^2 / 2 - log r, r = s / t and
    d = (m - n) / t.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        r, d = s / t, np.abs(m - n) / t
        slope = (r + 5e-324) * (d + 5e-324) + 5e-324  # r d, rounded up where it or a factor is subnormal
        log_r = np.where((r > 1e-290) & (r < 1e290), np.log(r), np.log(s) - np.log(t))
        log_r = np.where(np.abs(s - t) < 0.5 * t, np.log1p((s - t) / t), log_r)  # right to some units of itself
        curvature = (t - s) / t * ((t + s) / t)  # 1 - r^2
        excess = epsilon - (0.5 * d * d - log_r)  # over the log ratio at z = 0
        # r < 1: the log ratio has a maximum, and exceeds epsilon between two roots at most
        maximum = 0.5 * d * d / curvature - log_r
        never = (curvature > 0) & (epsilon * (1 - 1e-12) > maximum * (1 + 1e-12) + 1e-12)
        # r >= 1: beyond the root of r d z + (r^2 - 1) z^2 / 2 = excess; r < 1: r d z > excess at least
        root = np.hypot(slope, np.sqrt(2 * np.maximum(-curvature, 0.0)) * np.sqrt(np.maximum(excess, 0.0)))
        inner = np.where(excess > 0, excess / (0.5 * (slope + root)), 0.0)
        outer = np.maximum(np.where(excess > 0, inner, 0.0) * (1 - 1e-9), 0.0)
        bound = -0.5 * outer * outer
        uncertain = np.isnan(bound) | ~(excess > 1e-5 * (0.5 * d * d + np.abs(log_r)))
    never |= (s == t) & (m == n) & (epsilon >= 0)
    bound = np.maximum(bound, -1e308)  # the probability is positive
    bound += 0.6931471806  # log 2, rounded up: there are two tails
    return np.asarray(np.where(never, -np.inf, np.where(uncertain, 0.0, bound)))


def _total_variation_bound(p: GaussianMixture, q: GaussianMixture, deadline: Deadline) -> float:
    """Upper bound of the total variation by relative entropy, hence of every H with epsilon >= 0."""
    best = 1.0
    for first, second in ((p, q), (q, p)):
        kl = max(float(integrals.kl_divergence(first, second, certified=True, deadline=deadline).upper), 1e-300)
        best = min(best, math.sqrt(kl / 2), math.sqrt(-math.expm1(-kl)))
    return min(1.0, best * (1 + 1e-15) + MACHINE_EPSILON * (len(p) + len(q)))
