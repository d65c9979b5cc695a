"""Sibson's mutual information of a channel.

Notation: order a, I_a = a/(a-1) log sum_w (sum_d pi_d Q[d, w]^a)^(1/a). With M_w the largest cell of column w over the
support, s = Q/M in [0, 1] and p_w = sum_d pi_d (s^a - 1), the sum is sum_w M_w (1 + p_w)^(1/a).

Errors: log Q is right to 2 u (1 + |log Q|), s^a to 4 u (4 + a |log s|) at most e^-1 of which remains in the product;
p_w, a sum of terms of one sign, to u (64 + 2 N), N additions in a row; the error of each term enters by its weight.

Next to order 1, with h = a - 1, r = Q/q and L = log r, the sum is 1 + sum_w q_w ((1 + e_w)^(1/a) - 1), where
e_w = sum_d pi_d r (r^h - 1) is of order h, as is its error: I_a loses nothing to the factor a/h. If |h L| <= 1/2, that
error is at most 1.7 |h| times that of L, and 4 u (N + 70) |h L|, in the mean, 4 times that after what follows.
Rows need sum 1, since others have no limit at order 1: what they miss 1 by moves L.

The sum is homogeneous in Q: rows whose sums miss 1 by more than doubles round are divided by their mean sum s.
"""

# bounds: tested by enclosures/test_channel_notions - roundings, by the notes at the head

from __future__ import annotations

import math

import numpy as np

from ...base.numerics import LOG_2, FloatArray
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...capacity import structured
from ...channels import TypeClasses
from .channel_with_prior import Bracket, ChannelWithPrior, with_distinct_rows
from .dense_quantities import RowBlocks, column_statistics
from .type_class_quantities import type_classes

__all__ = ["sibson_information"]

_NEAR_ONE = 0.05  # distance from order 1 below which the expansion about order 1 is used
# bound: tested by enclosures/test_channel_notions - rows of doubles that were divided by their sums miss 1 by less
_ROUNDED_GAP = 1e-12


def sibson_information(model: ChannelWithPrior, order: float, n_jobs: int | None, progress: Progress) -> Bracket:
    """Sibson's mutual information for a finite order other than 1; of a product, the sum over its factors."""
    if model.factors is not None:
        parts = [
            (power, sibson_information(ChannelWithPrior(factor, prior), order, n_jobs, progress))
            for factor, power, prior in model.factors
        ]
        value, lower, upper = (
            math.fsum(power * float(getattr(bracket, end)) for power, bracket in parts)
            for end in ("value", "lower", "upper")
        )
        rounding = 4 * U * upper
        return Bracket(value, lower - rounding, upper + rounding, "certified", "sum over factors")
    classes, row_gap = type_classes(model), model.channel.mass_gap
    near_one = abs(order - 1.0) <= _NEAR_ONE
    if classes is not None:
        near = _near_one_from_classes(classes, order, row_gap) if near_one else None
        return near or _from_classes(classes, order, row_gap)
    rows = RowBlocks(with_distinct_rows(model), n_jobs, progress)
    near = _near_one_from_rows(rows, order) if near_one else None
    return near or _from_rows(rows, order)


def _near_one_from_classes(classes: TypeClasses, order: float, gap: float) -> Bracket | None:
    positive = (classes.log_mass > -np.inf) & (classes.log_weight > -np.inf)[classes.classes]
    ratio = np.where(positive, classes.log_ratio, -np.inf)
    finite = ratio > -np.inf
    if not finite.any() or abs(order - 1.0) * float(np.max(np.abs(ratio[finite]))) > 0.5:
        return None
    log_ratio = np.where(finite, ratio, 0.0)
    posterior = np.where(finite, np.exp(classes.log_mass + ratio), 0.0)
    weight = np.exp(classes.log_weight)
    change, mean_log_ratio = (
        np.add.reduceat(posterior * term, classes.starts[:-1])
        for term in (np.expm1((order - 1.0) * log_ratio), np.abs(log_ratio))
    )
    size = np.abs(np.where(finite, classes.log_mass, 0.0))
    size = size + np.abs(np.where(classes.log_weight > -np.inf, classes.log_weight, 0.0))[classes.classes]
    log_error = np.add.reduceat(posterior * np.abs(log_ratio) * (U * 16 * (10 + size) + 8e-14), classes.starts[:-1])
    missing_mass = abs(math.fsum(weight) - 1.0) if classes.omitted_mass == 0 else classes.omitted_mass
    size_of_ratio = math.fsum(weight * mean_log_ratio)
    error = 8 * math.fsum(weight * (log_error + 4 * classes.error)) + 16 * missing_mass * size_of_ratio
    error += U * 32 * int(np.diff(classes.starts).max()) * size_of_ratio
    error += 8 * (gap + classes.gap) * (1 + size_of_ratio)
    if classes.omitted_mass:
        spread = float(np.max(classes.log_relative.max() - classes.log_relative, initial=0.0))
        error += classes.omitted_mass * (1.0 + spread)
    return _bracket_near_one(weight, change, order, error)


def _near_one_from_rows(rows: RowBlocks, order: float) -> Bracket | None:
    first = column_statistics(rows, silent=True)
    occurs = first.occurs
    with np.errstate(divide="ignore"):
        log_q = np.log(first.q[occurs]) + (0.0 if rows.log_scale is None else _log_scale(rows)[occurs])
    prior = rows.prior / float(np.sum(rows.prior, dtype=np.longdouble))

    def sums(part: slice) -> tuple[FloatArray, float]:
        positive = rows.prior[part] > 0
        logs = rows.channel._log_rows(part.start, part.stop)[positive][:, occurs]
        finite = logs > -np.inf
        log_ratio = np.where(finite, logs - log_q, 0.0)
        posterior = np.where(finite, prior[part][positive, None] * np.exp(log_ratio), 0.0)
        terms = np.expm1((order - 1.0) * log_ratio), np.abs(log_ratio), np.where(finite, -logs, 0.0)
        largest = float(np.max(np.abs(log_ratio), initial=0.0))
        return np.stack([(posterior * term).sum(axis=0) for term in terms]), largest

    result, largest = np.zeros((3, log_q.size)), 0.0
    for block, most in rows.map(sums):
        result, largest = result + block, max(largest, most)
    if abs(order - 1.0) * largest > 0.5:
        return None
    change, mean_log_ratio, size = result
    weight = np.exp(log_q)
    longest = max(part.stop - part.start for part in rows.slices) + len(rows.slices)
    summation = 1 + math.fsum(weight * mean_log_ratio)
    error = 16 * U * math.fsum(weight * (4 + size + np.abs(log_q) + mean_log_ratio))
    error += 8 * U * (longest + 70) * summation
    error += 8 * (rows.channel.mass_gap + rows.gap + rows.row_sum_error) * summation
    return _bracket_near_one(weight, change, order, error)


def _log_scale(rows: RowBlocks) -> FloatArray:
    """Logarithms of the factors by which columns are scaled."""
    assert rows.log_scale is not None
    return np.asarray(rows.log_scale if rows.log else rows.exponents * LOG_2, dtype=np.float64)


def _bracket_near_one(weight: FloatArray, change: FloatArray, order: float, error: float) -> Bracket:
    """a/(a-1) log(1 + sum q ((1 + e)^(1/a) - 1))."""
    excess = math.fsum(weight * np.expm1(np.log1p(change) / order))
    value = max(0.0, order / (order - 1.0) * math.log1p(excess))
    return Bracket(value, max(0.0, value - error), value + error, "certified", "Sibson's sum next to order 1")


def _from_classes(classes: TypeClasses, order: float, gap: float) -> Bracket:
    positive = classes.log_mass > -np.inf
    top = np.maximum.reduceat(np.where(positive, classes.log_relative, -np.inf), classes.starts[:-1])
    with np.errstate(invalid="ignore", over="ignore"):
        log_relative = np.where(positive, classes.log_relative - top[classes.classes], -np.inf)
        powered = np.where(positive, np.exp(classes.log_mass + order * log_relative), 0.0)
        change = np.where(positive, np.exp(classes.log_mass) * np.expm1(order * log_relative), 0.0)
    sums, changes = (np.add.reduceat(x, classes.starts[:-1]) for x in (powered, change))
    with np.errstate(divide="ignore"):
        logs = np.where(changes > -0.5, np.log1p(np.maximum(changes, -0.5)), np.log(sums))
    finite = classes.log_total > -np.inf
    largest_class = int(np.diff(classes.starts).max())
    return _bracket_of_sum(
        classes.log_total[finite] + top[finite], logs[finite], order, largest_class, gap, classes.gap,
        classes.omitted_mass,
    )  # fmt: skip


def _from_rows(rows: RowBlocks, order: float) -> Bracket:
    positive = rows.prior > 0
    channel = rows.channel

    def tops(part: slice) -> FloatArray:
        logs = channel._rows(part.start, part.stop, True)[positive[part]]
        return np.asarray(np.max(logs, axis=0, initial=-np.inf), dtype=np.float64)

    def sums(part: slice) -> FloatArray:
        chosen = positive[part]
        logs = np.asarray(channel._rows(part.start, part.stop, True)[chosen], dtype=np.float64)
        with np.errstate(over="ignore"):
            powers = order * (logs - base)
        terms = [np.expm1(powers), np.exp(powers), *([np.exp(logs)] if inexact else [])]
        return np.stack([(rows.prior[part][chosen][:, None] * term).sum(axis=0) for term in terms])

    top = np.full(channel.outputs, -np.inf)
    for block in rows.map(tops, silent=True):
        top = np.maximum(top, block)
    base = np.where(top > -np.inf, top, 0.0)
    inexact = channel.mass_gap > _ROUNDED_GAP
    result = np.zeros((2 + inexact, channel.outputs))
    for block in rows.map(sums):
        result += block
    finite = top > -np.inf
    change, top_cells, *sums_of_rows = result[:, finite] / float(np.sum(rows.prior, dtype=np.longdouble))
    row_excess = math.fsum([*sums_of_rows[0].tolist(), -1.0]) if inexact else 0.0
    logs = np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), np.log(top_cells))
    longest = max(part.stop - part.start for part in rows.slices) + len(rows.slices)
    return _bracket_of_sum(top[finite], logs, order, longest, channel.mass_gap, rows.gap, 0.0, row_excess)


def _sum(terms: FloatArray) -> float:
    """The sum of terms of any sign: exact, or of many terms right to 64 units of the sum of their sizes."""
    return math.fsum(terms.tolist()) if terms.size <= structured.FSUM_LIMIT else float(np.sum(terms))


def _bracket_of_sum(
    top: FloatArray, logs: FloatArray, order: float, n: int, gap: float, prior_gap: float, missing: float,
    row_excess: float = 0.0,
) -> Bracket:  # fmt: skip
    """a/(a-1) log(sum e^(top + logs/a) / (1 + row_excess)), where the largest cells sum to at least 1."""
    min_order = min(order, 1.0)  # below order 1 logarithms are taken times the order, so that nothing overflows
    joint = min_order * top + logs * (min_order / order)
    peak = float(np.max(joint))
    top_cells = np.exp(top)
    with np.errstate(over="ignore"):
        direct = np.exp(joint / min_order)
        corrections = top_cells * np.expm1(logs / order)
        excess = (_sum(top_cells) - 1.0) + _sum(corrections)
        each = direct if -0.9 < excess < 1e200 else np.exp((joint - peak) / min_order)
    total = _sum(each)
    size = _sum(each * (8 * min_order + np.abs(min_order * top) + np.abs(logs) * (min_order / order)))
    summation = (min_order + min_order / order) * total
    many_terms = top_cells.size > structured.FSUM_LIMIT  # sums of many terms are right to 64 units
    if many_terms:
        summation += min_order * total
        size += 8 * size
    if -0.9 < excess < 1e200:  # from the excess of the sum over 1
        value = min_order * math.log1p((excess - row_excess) / (1.0 + row_excess))
        summation += min_order * _sum(top_cells)
        if many_terms:
            summation += min_order * (_sum(top_cells) + float(np.sum(np.abs(corrections))))
    else:
        value = peak + min_order * (math.log(total) - math.log1p(row_excess))
        size += abs(peak) * total
    error = U * ((64 + 4 * n) * summation + 8 * size) / total
    error += 2.2 * (min_order * gap + prior_gap * (min_order / order)) + min_order * (missing + 1.1 * abs(row_excess))
    factor = (order / (order - 1.0)) if order >= 1.0 else 1.0 / (order - 1.0)
    value, error = max(0.0, factor * value), abs(factor) * error
    return Bracket(value, max(0.0, value - error), value + error, "certified", "Sibson's sum over releases")
