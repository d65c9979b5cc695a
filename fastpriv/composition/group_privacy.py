"""Group privacy: what a guarantee for one record says about several.

Notation: P_0, .., P_g are the distributions of the release as the records of a group change one after the other, each
neighbouring two a pair with the curve D(x) = sup_E P(E) - x Q(E), x = e^epsilon, and the largest power F(alpha) of a
test at level alpha. D is the conjugate of F: D(x) = sup over alpha of F(alpha) - x alpha.

Mechanisms with a sensitivity. Records may all contribute in the same direction, so that data sets attain g times the
sensitivity, and the pair at that distance dominates all others: its curve is exact. g records of a Poisson sample that
are removed (or added) together are a binomial mixture of distances, by ``PoissonSampledGaussian.group_size``.

Other pairs. A test of P_0 against P_g has at most the power F(F(..F(alpha))), g times (Dong, Roth and Su 2022, theorem
2.14). Its conjugate is, since P_0(E) <= y P_1(E) + D(y) and so on for every event E,

    D_g(x) <= D(y_1) + y_1 D(y_2) + y_1 y_2 D(y_3) + ..,   for all y_1 y_2 .. y_g <= x,

with equality for the best y. A table of D gives the slopes y of F at the levels alpha, F(alpha), F(F(alpha)), .. for
many alpha, and so the y whose product is just below x; the last y is moved to meet x. Equal y are tried too (Vadhan
2017, section 2.1). From below only D itself is known: a group may have the neighbours of one record.
"""

# bounds: proved - sums and products of non-negative terms

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below, reconcile_bounds
from ..conversions import group_dp_delta_from_dp
from ..mechanisms.gaussian import GaussianMechanism
from ..pairs.curve_pairs import PrivacyCurves
from ..pairs.log_bounds import Curve, certified
from .engines import gaussian_bounds

_MOST_RECORDS = 1024  # of a group: times the distance of two means, exact in extended precision
_NODES, _PARTS = 24, 16  # epsilons at which the curve is evaluated for the table, and parts of each interval
_MOST_KINKS = 256  # losses of a discrete pair that are added to them
_MOST_EVALUATIONS, _GRID = 256, 1024  # slopes that are taken as they are, and the grid to which more are rounded
# bound: none - where the table of D has its nodes, and the levels at which slopes are taken
_LEAST_PART, _FIRST_END, _LARGEST_EPSILON, _LEAST_DELTA, _NEGLIGIBLE = 1e-3, 2.0**-10, 600.0, 1e-320, 1e-12
_ROUNDS, _FEW_ROUNDS = 14, 1  # of the search for the largest loss
# The false positive rates: equal steps of the logarithm from 1e-290 on, even ones in the middle, and near 1 by its
# complement.
_LEVELS = np.concatenate([np.geomspace(1e-290, 0.1, 700), np.linspace(0.1, 0.9, 200)[1:-1],
                          1.0 - np.geomspace(0.1, 1e-15, 120)])
# bound: proved - an exponential, a product and a sum, relative to a term, beside the rounding of the exponent
_TERM_ERROR = 8 * UNIT_ROUNDOFF


def group_size(group: ArrayLike) -> int:
    """The number of records, checked."""
    return validate.count("group", group, 1, _MOST_RECORDS)


def exact_group_pair(pair: PrivacyCurves, group: int) -> PrivacyCurves | None:
    """The pair of a group of a mechanism whose sensitivity is known, and of two normal distributions; else None."""
    if group == 1:
        return pair
    if pair.gaussian is not None:
        distance, sigma = pair.gaussian
        if pair.squared_distance is not None:
            square = group**2 * pair.squared_distance
            curve = partial(_gaussian_curve, square)
            gaussian = np.longdouble(distance) * group, sigma
            return replace(pair, forward=curve, backward=curve, gaussian=gaussian, squared_distance=square)
        wide = np.longdouble(distance) * group
        mechanism = GaussianMechanism(sigma, float(wide))
        return replace(pair, forward=mechanism.delta, backward=mechanism.delta, gaussian=(wide, sigma))
    if pair.group is None:
        return None
    try:
        return pair.group(group)
    except DomainError:  # a group of a sample whose least probability underflows, or an infinite sensitivity
        return None


def group_pair(pair: PrivacyCurves, group: int) -> PrivacyCurves:
    """The pair of a group, by its curves: exact for mechanisms with a sensitivity, between two bounds otherwise."""
    known = exact_group_pair(pair, group)
    if known is not None:
        return known.worst()
    item = pair.worst()
    return PrivacyCurves(_group_curve(item, group), _group_curve(item.swapped(), group), of_one_pair=False)


def _gaussian_curve(square: Fraction, epsilon: FloatArray) -> Estimate:
    levels = np.asarray(epsilon, dtype=np.float64)
    result = gaussian_bounds(square, levels.ravel())
    rows = (row.reshape(levels.shape) for row in result.numbers)
    return Estimate(*rows, kind="certified", unit="log probability", method=result.method).to("probability")


def _group_curve(pair: PrivacyCurves, group: int) -> Curve:
    def of_group(epsilon: FloatArray) -> Estimate:
        levels = np.asarray(epsilon, dtype=np.float64)
        item = certified(pair.forward, levels)
        each = np.maximum(next_below(levels / group), 0.0)
        equal = np.asarray(group_dp_delta_from_dp(each, certified(pair.forward, each), group).upper)
        best = _best_sum(pair, levels.ravel(), group).reshape(levels.shape)
        bounds = np.asarray(item.lower), np.ones(levels.shape)
        lower, upper, disagree = reconcile_bounds(bounds, (np.zeros(levels.shape), np.minimum(equal, best)))
        method = "between one record and the iterated trade-off curve"
        if disagree.any():
            method += ", which disagree: widened"
        value = lower + 0.5 * (upper - lower)
        return Estimate(value, lower, upper, kind="certified", unit="probability", method=method)

    return of_group


def _best_sum(pair: PrivacyCurves, epsilon: FloatArray, group: int) -> FloatArray:
    """The least sum D(y_1) + y_1 D(y_2) + .. that a table finds, rounded up, for each epsilon."""
    finite = np.where(np.isfinite(epsilon), epsilon, 0.0)
    nodes, approximate = _table(pair, float(finite.max(initial=0.0)))
    # F at each level is the least of the lines D(y) + y alpha, which meet their neighbours at these levels
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        meet = np.nan_to_num(-np.diff(approximate) / np.diff(np.exp(nodes)), nan=0.0)
        meet = np.maximum.accumulate(np.minimum(meet, 1.0)[::-1])[::-1]
        level, chosen = _LEVELS, np.empty((group, _LEVELS.size), dtype=np.intp)
        for i in range(group - 1, -1, -1):  # the last of the group is tested at the lowest level
            chosen[i] = np.searchsorted(-meet, -level)
            level = np.minimum(approximate[chosen[i]] + np.exp(nodes[chosen[i]]) * level, 1.0)
    slopes = nodes[chosen]
    totals = slopes.sum(axis=0)  # fall with the level
    after = np.clip(np.searchsorted(-totals, -finite), 1, totals.size - 1)
    left, right = totals[after - 1], totals[after]
    part = np.clip((left - finite) / np.where(left > right, left - right, 1.0), 0.0, 1.0)
    y = slopes[:-1, after - 1] * (1.0 - part) + slopes[:-1, after] * part  # between them at a kink of F
    if y.size > _MOST_EVALUATIONS:
        y = np.round(y * (_GRID / nodes[-1])) * (nodes[-1] / _GRID)
    before = np.concatenate([np.zeros((1, finite.size)), np.cumsum(y, axis=0)])
    slack = 4 * group * UNIT_ROUNDOFF * (np.abs(before).max(axis=0) + np.abs(finite))
    last = next_below(finite - before[-1] - slack)
    used, row = np.unique(y, return_inverse=True)
    logs = _log_upper(pair, np.concatenate([used, last]))
    logs = np.concatenate([logs[: used.size][row.reshape(y.shape)], logs[None, used.size :]])
    with np.errstate(over="ignore", under="ignore"):
        size = 4 * group + np.abs(before).max(axis=0) + np.where(np.isfinite(logs), np.abs(logs), 0.0).max(axis=0)
        total = np.exp(before + logs).sum(axis=0) * (1.0 + _TERM_ERROR * size)
    total = np.where(np.isfinite(epsilon), next_above(total, 2), 1.0)
    return np.clip(np.where(np.isnan(total), 1.0, total), 0.0, 1.0)


def _table(pair: PrivacyCurves, largest: float) -> tuple[FloatArray, FloatArray]:
    """Epsilons, and D there approximately: at some by the curve, between them by interpolation. It bounds nothing."""
    from scipy.interpolate import PchipInterpolator

    end = _end_of_losses(pair, max(largest, 0.0))
    ahead = np.concatenate([[0.0], np.geomspace(_LEAST_PART * end, end, _NODES)])
    if pair.discrete is not None:
        with np.errstate(divide="ignore"):
            losses = np.abs(np.log(pair.discrete.p) - np.log(pair.discrete.q))
        losses = np.unique(losses[np.isfinite(losses)])  # kinks of the curves
        ahead = np.union1d(ahead, losses) if losses.size <= _MOST_KINKS else ahead
    curves = (pair.forward, pair.backward)
    deltas = [np.asarray(certified(item, ahead).value) for item in curves]
    between = (ahead[:-1, None] + np.diff(ahead)[:, None] * np.arange(_PARTS) / _PARTS).ravel()
    between = np.append(between, end)

    def interpolated(delta: FloatArray) -> FloatArray:
        curve = np.exp(PchipInterpolator(ahead, np.log(np.maximum(delta, _LEAST_DELTA)))(between))
        after = np.minimum(np.searchsorted(ahead, between, side="right"), ahead.size - 1)
        with np.errstate(over="ignore"):
            chords = np.interp(np.minimum(np.exp(between), 1e300), np.minimum(np.exp(ahead), 1e300), delta)
        return np.where(delta[after] == 0.0, chords, curve)

    forward, backward = map(interpolated, deltas)
    behind = between[:0:-1]
    with np.errstate(under="ignore"):
        reversed_delta = -np.expm1(-behind) + np.exp(-behind) * backward[:0:-1]
    return np.concatenate([-behind, between]), np.concatenate([reversed_delta, forward])


def _end_of_losses(pair: PrivacyCurves, largest: float) -> float:
    """An epsilon beyond which the curves are 0, or negligible beside their value at ``largest``."""

    def worse(levels: FloatArray) -> FloatArray:
        first, second = (np.asarray(certified(curve, levels).upper) for curve in (pair.forward, pair.backward))
        return np.asarray(np.maximum(first, second))

    least = _NEGLIGIBLE * float(worse(np.array([largest]))[0])
    low, high = 0.0, _FIRST_END
    while high < _LARGEST_EPSILON and worse(np.array([high]))[0] > least:
        low, high = high, 2.0 * high
    quick = pair.discrete is not None or not pair.of_one_pair
    for _ in range(_ROUNDS if quick else _FEW_ROUNDS):  # other curves may take longer near their end
        grid = np.linspace(low, high, 17)[1:]
        k = min(int(np.count_nonzero(worse(grid) > least)), grid.size - 1)
        low, high = float(grid[k - 1]) if k else low, float(grid[k])
        if high - low < 1e-15 * high:
            break
    return high


def _log_upper(pair: PrivacyCurves, epsilon: FloatArray) -> FloatArray:
    """Upper bounds of log D at any real epsilon: D(x) = 1 - x + x D'(1 / x), D' the curve of the reversed pair."""
    delta = np.ones(epsilon.size)
    ahead = epsilon >= 0.0
    if ahead.any():
        delta[ahead] = certified(pair.forward, epsilon[ahead]).upper
    if not ahead.all():
        level = epsilon[~ahead]
        with np.errstate(under="ignore"):
            remainder, part = -np.expm1(level), np.exp(level) * np.asarray(certified(pair.backward, -level).upper)
        delta[~ahead] = np.minimum(next_above((remainder + part) * (1.0 + _TERM_ERROR), 2), 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(delta > 0.0, next_above(np.log(delta), 4), -np.inf))
