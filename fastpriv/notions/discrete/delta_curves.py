"""Privacy curves delta(epsilon) of a channel: LDP over ordered pairs of rows, LIP over rows and their mixture.

Notation: H_e(P || R) = sum (P - e^e R)^+, formed as (P - R) - (e^e - 1) R where positive. Errors: 6 u of the total
variation, which LDP bounds by tanh(epsilon_LDP / 2), and 70 u of the sum; of LIP, besides, 16 u sum (D + |x - c|) of
``dense_quantities``, with both sums at most 2. Cells made from logs p are right to 8 u (1 + |log p|), those that are
stored as logs to 2 u; what they move H by is at most twice what they move P by, and sum P |log P| <= log m. Beyond
epsilon = 709 only cells next to 0 count: the lower bound is 0 if some are positive and below e^-709, unless the curve
has ended before.

Rows P (1 + a) and R (1 + b) have H_e' = (1 + a) H_(e + log((1 + b)/(1 + a))): an error of the row sums is a factor and
a shift of epsilon, and so are the roundings of each cell of stored rows, at most 8 u of P and of e^e R besides what
subnormal products lose. Both are bounded by the curve at e - h and e + h: of a small delta they are a small part.
"""

# bounds: tested by enclosures/test_channel_notions - roundings, by the notes at the head

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ... import _parallel, _validate
from ..._parallel import Progress
from ...capacity import structured
from ...channels import AnyChannel, Channel, RowPair, SparseChannel, TypeClasses
from ...estimate import Estimate
from ...kernels import _channel_blocks
from ...numerics import LOG_2, BoolArray, FloatArray, IndexArray, next_above, next_below
from ...numerics import UNIT_ROUNDOFF as U
from . import product_channels
from .channel_with_prior import ChannelWithPrior, with_distinct_rows
from .dense_quantities import ColumnStatistics, RowBlocks, column_statistics
from .quantities import brackets
from .type_class_quantities import type_classes

__all__ = ["ldp_delta", "lip_delta"]

Curve: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # values and their errors at levels of epsilon

_BLOCK_CELLS = 2**18  # cells of the rows that are compared in one task: 2 MiB of doubles
_BATCH_TERMS = 2**22  # levels times releases that are held at a time: 32 MiB of doubles
_LARGEST_EXPONENT = 709.0  # e^709 is a double, e^710 is not
_LARGEST_DOUBLE = float(np.finfo(np.float64).max)  # in place of infinity, since infinity times a cell of 0 is NaN
# bound: tested by enclosures/test_channel_notions - absolute error of a cell where products are subnormal
_UNDERFLOW_ERROR = 4e-323


def ldp_delta(
    model: ChannelWithPrior, epsilon: ArrayLike, on_support: bool, n_jobs: int | None, progress: Progress
) -> Estimate:
    """sup over ordered pairs of rows of H_epsilon, for all secrets or those of positive prior probability."""
    levels = _validated_levels(epsilon)
    if levels.size == 0:
        return _curve_estimate(levels, levels, levels, epsilon, "no epsilon", np.ones(0, dtype=bool))
    name = "ldp_on_support" if on_support else "ldp_epsilon"
    end = brackets(model, (name,), n_jobs=n_jobs)[name].upper
    ended = (levels >= end) & (end < math.inf)
    gap, lower_known = model.channel.mass_gap, True
    value, lower, upper = np.zeros((3, levels.size))
    all_secrets = not on_support or structured.is_symmetric(model.channel) or _has_full_support(model.prior)
    pairs = model.channel.dominating_pairs() if all_secrets else None
    if pairs is not None:
        method = "worst pair of rows"
        value, error = _curve_of_pairs(pairs, levels)
        lower, upper = value - error, value + error
        if gap:
            lower, upper = _bounds_under_row_gap(functools.partial(_curve_of_pairs, pairs), levels, gap)
    else:
        method = "all ordered pairs of rows"
        dense = with_distinct_rows(model)
        channel = dense.channel
        secrets = np.flatnonzero(dense.weights > 0) if on_support else np.arange(channel.inputs)
        below_end = ~ended
        if below_end.any() and secrets.size > 1:
            some = levels[below_end]
            n = some.size
            shifted = np.concatenate([some, *_shifted(some, gap)])
            values = _curve_of_all_rows(channel, secrets, shifted, n_jobs, progress)
            middle, outer = values[:n], values[n:]
            error = 6 * U * math.tanh(0.5 * min(end, 100.0)) + 70 * U * middle + _cell_rounding(channel, some)
            error = error + 2.1 * gap
            value[below_end], lower[below_end], upper[below_end] = middle, middle - error, middle + error
            if isinstance(channel, (Channel, SparseChannel)):  # the channel stores each cell
                outer_error = 70 * U * outer + _UNDERFLOW_ERROR * channel.outputs
                low, high = _bounds_from_shifted(outer, outer_error, some, gap)
                lower[below_end] = np.maximum(lower[below_end], low)
                upper[below_end] = np.minimum(upper[below_end], high)
            lower_known = not (some > _LARGEST_EXPONENT).any() or not _has_tiny_cells(channel, secrets, n_jobs)
    lower_holds = ended | (levels <= _LARGEST_EXPONENT) | lower_known
    value, lower, upper = (np.where(ended, 0.0, x) for x in (value, lower, upper))
    return _curve_estimate(value, lower, upper, epsilon, method, lower_holds)


def lip_delta(model: ChannelWithPrior, epsilon: ArrayLike, n_jobs: int | None, progress: Progress) -> Estimate:
    """sup over secrets of positive prior probability of max{H(q || Q_d), e^-epsilon H(Q_d || q)}."""
    levels = _validated_levels(epsilon)
    if levels.size == 0:
        return _curve_estimate(levels, levels, levels, epsilon, "no epsilon", np.ones(0, dtype=bool))
    classes = type_classes(model) if model.prior is None and structured.is_symmetric(model.channel) else None
    gap, lower_known = model.channel.mass_gap, True
    curve: Curve
    if classes is not None:
        curve, method = functools.partial(_curve_of_type_classes, classes), "classes of like releases"
    elif (pairs := product_channels.release_pairs(model)) is not None:
        curve, method = functools.partial(_curve_against_release, pairs), "worst types of secrets against the release"
        gap += 2.2 * product_channels.product_prior_gap(model)
    else:
        rows = RowBlocks(with_distinct_rows(model), n_jobs, progress)
        curve = functools.partial(_curve_against_mixture, rows, column_statistics(rows))
        method, gap = "every row against the distribution of the release", gap + 2.2 * rows.gap
        support = np.flatnonzero(rows.prior > 0)
        lower_known = not (levels > _LARGEST_EXPONENT).any() or not _has_tiny_cells(rows.channel, support, n_jobs)
    sides = brackets(model, ("xi_plus", "xi_minus"), n_jobs=n_jobs)
    end = max(side.upper for side in sides.values())
    ended = (levels >= end) & (end < math.inf)
    value, error = curve(levels)
    lower, upper = _bounds_under_row_gap(curve, levels, gap) if gap else (value - error, value + error)
    lower_holds = ended | (levels <= _LARGEST_EXPONENT) | lower_known
    value, lower, upper = (np.where(ended, 0.0, x) for x in (value, lower, upper))
    return _curve_estimate(value, lower, upper, epsilon, method, lower_holds)


def _validated_levels(epsilon: ArrayLike) -> FloatArray:
    return _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0).reshape(-1)


def _curve_estimate(
    value: FloatArray, lower: FloatArray, upper: FloatArray, epsilon: ArrayLike, method: str, lower_holds: BoolArray
) -> Estimate:
    value, lower, upper = np.minimum(value, 1.0), np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    lower = np.where(lower_holds, lower, 0.0)
    shape = np.shape(epsilon)
    numbers = (number.reshape(shape) for number in (value, np.minimum(lower, value), np.maximum(upper, value)))
    return Estimate(*numbers, kind="certified", unit="probability", method=method)


def _has_full_support(prior: Any) -> bool:
    """Whether every secret has positive prior probability."""
    if isinstance(prior, tuple):
        return all(_has_full_support(factor) for factor in prior)
    return prior is None or bool((np.asarray(prior) > 0).all())


def _cell_rounding(channel: AnyChannel, levels: FloatArray) -> FloatArray:
    """Rounding error of a hockey-stick divergence of two rows whose cells are computed."""
    if isinstance(channel, (Channel, SparseChannel)):
        return np.full(levels.size, 4 * U if getattr(channel, "log", False) else 0.0)
    return 16 * U * (2 + LOG_2 * channel._log2_shape()[1] + np.minimum(levels, 750.0))


def _has_tiny_cells(channel: AnyChannel, secrets: IndexArray, n_jobs: int | None) -> bool:
    """Whether some positive cell of these secrets is below e^-709."""
    chosen = np.zeros(channel.inputs, dtype=bool)
    chosen[secrets] = True

    def in_block(part: slice) -> bool:
        logs = channel._log_rows(part.start, part.stop)[chosen[part]]
        return bool(((logs > -np.inf) & (logs < -_LARGEST_EXPONENT)).any())

    parts = _parallel.blocks(channel.inputs, max(1, _BLOCK_CELLS // channel.outputs))
    return any(_parallel.ordered_map(in_block, parts, n_jobs=n_jobs, shared=True))


def _level_shift(gap: float) -> float:
    return 2.1 * gap + 32 * U


def _shifted(levels: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Levels above and below these, by what wrong row sums and roundings of cells can shift them."""
    shift = _level_shift(gap)
    return next_above(levels + shift), np.maximum(next_below(levels - shift), 0.0)


def _bounds_from_shifted(
    values: FloatArray, errors: FloatArray, levels: FloatArray, gap: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds at these levels from a curve at the levels above them, then at those below."""
    n, shift = levels.size, _level_shift(gap)
    low, high = (values - errors)[:n] * (1 - 1.1 * gap), (values + errors)[n:] * (1 + 1.1 * gap)
    return low, high + np.where(levels < 1.1 * shift, 2 * shift, 0.0)  # the curve is not evaluated below 0


def _bounds_under_row_gap(curve: Curve, levels: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of a curve both for the rows as they are and for the rows divided by their sums."""
    return _bounds_from_shifted(*curve(np.concatenate(_shifted(levels, gap))), levels, gap)


def _capped_expm1(levels: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.minimum(np.expm1(levels), _LARGEST_DOUBLE)


def _curve_of_pairs(pairs: tuple[RowPair, ...], levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Term by term, p (1 - e^(epsilon - L)) where the log ratio L is above epsilon.

    An error of log p is one of the term, relative; one of L - epsilon moves it by as much of p e^(epsilon - L).
    """
    best, error = np.zeros(levels.size), np.zeros(levels.size)
    for pair in pairs:
        possible = pair.log_p > -np.inf
        logs, ratio = pair.log_p[possible], pair.log_ratio[possible]
        log_error, ratio_error = pair.log_error[possible], pair.ratio_error[possible]
        p, finite = np.exp(logs), np.isfinite(ratio)
        size = np.abs(np.where(finite, ratio, 0.0))
        step = max(1, _BATCH_TERMS // max(1, logs.size))
        for start in range(0, levels.size, step):
            e = levels[start : start + step, None]
            with np.errstate(invalid="ignore"):
                below = np.where(np.isposinf(ratio), -np.inf, e - ratio)
                terms = np.where(below < 0, p * -np.expm1(np.minimum(below, 0.0)), 0.0)
                shift = np.where(finite & np.isfinite(e), ratio_error + 2 * U * (size + e), 0.0)
                near = below < shift
            value = terms.sum(axis=1)
            term_error = 1.01 * (terms * log_error).sum(axis=1)
            term_error += 1.01 * np.where(near, p * np.exp(np.minimum(below, 0.0)) * shift, 0.0).sum(axis=1)
            term_error += value * U * (16 + math.log2(logs.size + 1) * 2) + _UNDERFLOW_ERROR * logs.size
            part = slice(start, start + step)
            error[part] = np.maximum(error[part], term_error)
            best[part] = np.maximum(best[part], value)
    return best, error


def _curve_of_all_rows(
    channel: AnyChannel, secrets: IndexArray, levels: FloatArray, n_jobs: int | None, progress: Progress
) -> FloatArray:
    """The largest hockey-stick divergence of an ordered pair of rows at each level."""
    distinct, inverse = np.unique(levels, return_inverse=True)
    excess = _capped_expm1(distinct)
    parts = _parallel.blocks(secrets.size, max(1, _BLOCK_CELLS // channel.outputs))

    def of_blocks(task: tuple[slice, slice]) -> FloatArray:
        rows, others = (_rows_as_doubles(channel, secrets[part]) for part in task)
        forward, backward = np.zeros(excess.size), np.zeros(excess.size)
        for index, row in enumerate(others):
            count = index if task[0] == task[1] else len(rows)
            if count:
                _channel_blocks.raise_hockey_sticks(rows[:count], row, excess, forward, backward)
        return np.maximum(forward, backward)

    tasks = [(parts[i], parts[j]) for j in range(len(parts)) for i in range(j + 1)]
    largest = np.zeros(excess.size)
    for divergence in _parallel.ordered_map(of_blocks, tasks, n_jobs=n_jobs, progress=progress, shared=True):
        largest = np.maximum(largest, divergence)
    return np.asarray(largest[inverse])


def _rows_as_doubles(channel: AnyChannel, secrets: IndexArray) -> FloatArray:
    """Rows of these secrets, which are in increasing order."""
    start, stop = int(secrets[0]), int(secrets[-1]) + 1
    if stop - start == secrets.size:
        return np.ascontiguousarray(channel._rows(start, stop, False), dtype=np.float64)
    rows = (channel._rows(d, d + 1, False) for d in secrets.tolist())
    return np.concatenate([np.asarray(row, dtype=np.float64) for row in rows])


def _curve_against_mixture(
    blocks: RowBlocks, first: ColumnStatistics, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Rows of positive prior probability against q, in both directions."""
    excess = _capped_expm1(levels)
    q = blocks.rescaled(first.q)
    centre, delta = (first.centre, first.delta) if blocks.unscaled else (None, None)

    def of_block(part: slice) -> FloatArray:
        rows = np.ascontiguousarray(blocks.channel._rows(part.start, part.stop, False), dtype=np.float64)
        rows = rows[blocks.prior[part] > 0]
        over, under = np.zeros(levels.size), np.zeros(levels.size)
        if len(rows):
            _channel_blocks.raise_hockey_sticks(rows, q, excess, over, under, centre, delta)
        return np.stack([over, under])

    largest = np.zeros((2, levels.size))
    for both in blocks.map(of_block):
        largest = np.maximum(largest, both)
    value = np.maximum(largest[1], np.exp(-levels) * largest[0])
    span = min(2.0, float(blocks.rescaled(first.span).sum()))
    if blocks.unscaled:
        error = 16 * U * (float(first.spread.sum()) + span) + 6 * U * min(1.0, span)
    else:
        error = 100 * U + 4 * blocks.log_error
    return value, np.full(levels.size, error) + 74 * U * value


def _curve_against_release(pairs: tuple[RowPair, ...], levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows against the distribution of the release, in both directions; the latter is second in each pair."""
    swapped = (RowPair(pair.log_q, pair.log_p, -pair.log_ratio, pair.log_error, pair.ratio_error) for pair in pairs)
    under, under_error = _curve_of_pairs(tuple(swapped), levels)
    over, over_error = _curve_of_pairs(pairs, levels)
    scale = np.exp(-levels)
    return np.maximum(under, scale * over), np.maximum(under_error, scale * (over_error + 4 * U * over))


def _curve_of_type_classes(classes: TypeClasses, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For a channel symmetric in its secrets under the uniform prior: each secret has the mean over secrets."""
    y = classes.log_ratio
    joint = classes.log_mass + classes.log_weight[classes.classes]
    positive = joint > -np.inf
    joint, y = joint[positive], y[positive]
    mass, size = np.exp(joint), np.abs(joint)
    value, error = np.zeros(levels.size), np.zeros(levels.size)
    missing = abs(math.fsum(mass) - 1.0) if classes.omitted_mass == 0 else classes.omitted_mass
    step = max(1, _BATCH_TERMS // y.size)
    for start in range(0, levels.size, step):
        e = levels[start : start + step, None]
        with np.errstate(invalid="ignore", over="ignore"):
            low = np.where(y == -np.inf, -np.inf, e + y)  # impossible under the secret, whatever epsilon is
            under = np.where(low < 0, -np.expm1(np.minimum(low, 0.0)), 0.0)
            over = np.where(y > e, np.expm1(np.maximum(y - e, 0.0)), 0.0)
            shift = np.where(np.isfinite(y) & np.isfinite(e), 4e-14 * (np.abs(y) + e), 0.0)
        sides = (under, low < 1e-9), (over, y - e > -1e-9)
        errors = [
            (mass * (terms * 32 * U * (8 + size) + np.where(near, shift * (1 + terms), 0.0))).sum(axis=1)
            for terms, near in sides
        ]
        part = slice(start, start + step)
        value[part] = np.maximum(*((mass * terms).sum(axis=1) for terms, _ in sides))
        error[part] = np.maximum(*errors) + 2 * missing * value[part] + classes.omitted_mass
    return value, error
