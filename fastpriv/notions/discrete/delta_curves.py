"""Privacy curves delta(epsilon) of a channel: LDP over ordered pairs of rows, LIP over rows and their mixture.

Notation: H_e(P || R) = sum (P - e^e R)^+, formed as (P - R) - (e^e - 1) R where positive. Errors: 6 u of the total
variation, which LDP bounds by tanh(epsilon_LDP / 2), and 70 u of the sum; of LIP, besides, 16 u sum (D + |x - c|) of
``dense_quantities``, with both sums at most 2, and 32 u of the total variation, as e^e - 1 multiplies an error of q of
24 u. Cells made from logs are right to 4 u and what these are (theorem 7.15 of docs/proofs/finite_capacity.md), those
that are stored as logs to 4 u; theorem 7.18 says what they move H by. Beyond epsilon = 709 only cells next to 0 count:
the lower bound is 0 if some are positive and below e^-709, unless the curve has ended before.

Rows P (1 + a) and R (1 + b) have H_e' = (1 + a) H_(e + log((1 + b)/(1 + a))): an error of the row sums is a factor and
a shift of epsilon, and so are the roundings of each cell of stored rows, at most 8 u of P and of e^e R besides what
subnormal products lose. Both are bounded by the curve at e - h and e + h: of a small delta they are a small part.
"""

# bounds: proved - docs/proofs/notions.md, 14.4 and 14.5: roundings of rows, pairs, levels and sums

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ...base import parallel, validate
from ...base.estimate import Estimate
from ...base.numerics import LOG_2, BoolArray, FloatArray, IndexArray, next_above, next_below
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...base.remedies import LIP_LEVELS
from ...capacity import structured
from ...channels import AnyChannel, Channel, ChannelStack, RowPair, SparseChannel
from ...kernels import _channel_blocks, _channel_pairs, _channel_quantities
from . import product_channels
from . import stack_quantities as stacks
from .channel_with_prior import ChannelWithPrior, Prior, with_distinct_rows
from .dense_quantities import RowBlocks, is_one_block, is_plain
from .quantities import brackets
from .type_class_quantities import type_classes

Curve: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]  # values and their errors at levels of epsilon

_BLOCK_CELLS = 2**18  # cells of the rows that are compared in one task: 2 MiB of doubles
_SCREENED_WORK = 2**24  # cells of all pairs of rows, times levels, from which a screen saves time: milliseconds
_SCREENED_TERMS = 2**28  # terms of the screens of one task: some 20 milliseconds
_SAME_SCREEN = 1e-6  # levels nearer than this share a screen, which is then no less sharp than single precision
_MOST_CELLS_IN_ORDER = 2**27  # cells of the rows that are put in order, a copy of 1 GiB; more are taken as they come
_MOST_FIRST_ROWS = 512  # rows whose pairs are taken first
_MOST_STACKED = 2**29  # cells of pairs of rows of one channel, times levels, that one call compares: 0.1 s
_BATCH_TERMS = 2**22  # levels times releases that are held at a time: 32 MiB of doubles
_LARGEST_EXPONENT = 709.0  # e^709 is a double, e^710 is not
# bound: proved - the largest double below which a cell may be below e^-709, whatever the rounding of the exponential
_TINY_CELL = math.exp(-_LARGEST_EXPONENT) * (1 + 1e-9)
# ``method`` of LIP curves that go through the rows.
_LIP_METHOD = "every row against the distribution of the release"
_LARGEST_DOUBLE = float(np.finfo(np.float64).max)  # in place of infinity, since infinity times a cell of 0 is NaN
# bound: proved - docs/proofs/roundings.md, 13.22: absolute error of a cell that is subnormal, or whose product is
_UNDERFLOW_ERROR = 4e-323


def ldp_delta(
    model: ChannelWithPrior, epsilon: ArrayLike, on_support: bool, n_jobs: int | None, progress: Progress
) -> Estimate:
    """sup over ordered pairs of rows of H_epsilon, for all secrets or those of positive prior probability."""
    levels = _validated_levels(epsilon).reshape(-1)
    name = "ldp_on_support" if on_support else "ldp_epsilon"
    end, gap = brackets(model, (name,), n_jobs=n_jobs)[name].upper, model.channel.mass_gap
    all_secrets = not on_support or structured.is_symmetric(model.channel) or _has_full_support(model.prior)
    pairs = model.channel.dominating_pairs() if all_secrets else None
    if pairs is not None:
        value, error = _curve_of_pairs(pairs, levels)
        lower, upper = value - error, value + error
        if gap:
            lower, upper = _bounds_under_row_gap(functools.partial(_curve_of_pairs, pairs), levels, gap)
        return _curve_estimate(value, lower, upper, levels, end, True, epsilon, "worst pair of rows")
    dense = with_distinct_rows(model)
    channel = dense.channel
    secrets = np.flatnonzero(dense.weights > 0) if on_support else np.arange(channel.inputs)
    value, lower, upper = np.zeros((3, levels.size))
    below_end, lower_known = ~((levels >= end) & (end < math.inf)), True
    if below_end.any() and secrets.size > 1:
        some = levels[below_end]
        values = _curve_of_all_rows(channel, secrets, _with_shifted(some, gap), n_jobs, progress)
        stored = isinstance(channel, (Channel, SparseChannel))  # the channel stores each cell
        bounds = _ldp_bounds(values, some, gap, end, channel.outputs, _cell_rounding(channel, some), stored)
        value[below_end], lower[below_end], upper[below_end] = bounds
        lower_known = not (some > _LARGEST_EXPONENT).any() or not _has_tiny_cells(channel, secrets, n_jobs)
    return _curve_estimate(value, lower, upper, levels, end, lower_known, epsilon, "all ordered pairs of rows")


def _ldp_bounds(
    values: FloatArray, levels: FloatArray, gap: Any, end: Any, outputs: int, cell_rounding: Any, stored: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value, lower and upper bound at levels (..., e), from the curve at these and at those beside them (..., 3 e)."""
    n = levels.shape[-1]
    middle, outer = values[..., :n], values[..., n:]
    error = 6 * U * np.tanh(0.5 * np.minimum(end, 100.0)) + 70 * U * middle + cell_rounding
    error = error + 2.1 * gap
    lower, upper = middle - error, middle + error
    if stored:
        low, high = _bounds_from_shifted(outer, 70 * U * outer + _UNDERFLOW_ERROR * outputs, levels, gap)
        lower, upper = np.maximum(lower, low), np.minimum(upper, high)
    return middle, lower, upper


def lip_delta(model: ChannelWithPrior, epsilon: ArrayLike, n_jobs: int | None, progress: Progress) -> Estimate:
    """sup over secrets of positive prior probability of max{H(q || Q_d), e^-epsilon H(Q_d || q)}."""
    levels, sides = _validated_levels(epsilon).reshape(-1), brackets(model, ("xi_plus", "xi_minus"), n_jobs=n_jobs)
    end = max(side.upper for side in sides.values())
    if is_plain(model):
        numbers, tiny, scaled = _plain_lip_curves(stacks.StackWithPriors.of_one(model), levels[None], 1, progress)
        if not scaled.any():
            value, lower, upper = numbers[:, 0]
            return _curve_estimate(value, lower, upper, levels, end, not tiny[0], epsilon, _LIP_METHOD)
    classes = type_classes(model) if model.prior is None and structured.is_symmetric(model.channel) else None
    gap, lower_known = model.channel.mass_gap, True
    curve: Curve
    if classes is not None:  # every secret has the mean over secrets
        pair = product_channels.pair_if_symmetric(classes)
        uncertain = classes.omitted_mass + structured.shared_error(model.channel)
        curve = functools.partial(_curve_against_release, (pair,), uncertain_mass=uncertain)
        method = "classes of like releases"
    elif (pairs := product_channels.release_pairs(model)) is not None:
        uncertain = sum(power * structured.shared_error(factor) for factor, power, _ in model.factors or ())
        curve = functools.partial(_curve_against_release, pairs, uncertain_mass=uncertain)
        method = "worst types of secrets against the release"
        gap += 2.2 * model.gap
    else:
        rows = RowBlocks(with_distinct_rows(model), n_jobs, progress)
        curve, method = functools.partial(_curve_against_mixture, rows), _LIP_METHOD
        gap += 2.2 * rows.gap
        support = np.flatnonzero(rows.prior > 0)
        lower_known = not (levels > _LARGEST_EXPONENT).any() or not _has_tiny_cells(rows.channel, support, n_jobs)
    value, error = curve(levels)
    lower, upper = _bounds_under_row_gap(curve, levels, gap) if gap else (value - error, value + error)
    return _curve_estimate(value, lower, upper, levels, end, lower_known, epsilon, method)


def ldp_delta_of_stack(
    prior: Prior, stack: ChannelStack, epsilon: ArrayLike, on_support: bool, n_jobs: int | None, progress: Progress
) -> Estimate:
    """``ldp_delta`` of each channel of a stack, at its own row of ``epsilon``."""
    pairs, levels = stacks.pairs_with_levels(stacks.stack_with_priors(prior, stack), _validated_levels(epsilon))
    if 3 * levels.shape[1] * stack.inputs**2 * stack.outputs > _MOST_STACKED:
        return stacks.estimates_of_pairs(
            pairs, levels, lambda model, e: ldp_delta(model, e, on_support, n_jobs, None), epsilon, 1, progress
        )
    name = "ldp_on_support" if on_support else "ldp_epsilon"
    end = stacks.stack_quantities(prior, stack, (name,), n_jobs, None)[name]
    on, gap = pairs if on_support else pairs._replace(priors=None), pairs.gaps[pairs.channel, None]
    n = stack.inputs

    def of_block(part: slice) -> FloatArray:
        excess = _capped_expm1(_with_shifted(levels[part], gap[part]))
        curves, _, _ = _channel_quantities.curves_of_channels(
            on.cells, on.priors, on.channel[part], on.prior[part], excess, False
        )
        return np.asarray(curves[0])

    tasks = pairs.blocks(max(1, 3 * n * levels.shape[1] // 8))
    parts = parallel.ordered_map(of_block, tasks, n_jobs=n_jobs, progress=progress, shared=True)
    values, ends = np.concatenate([np.empty((0, 3 * levels.shape[1])), *parts]), _flat_upper(end, pairs, levels)
    numbers = np.stack(_ldp_bounds(values, levels, gap, ends, stack.outputs, 0.0, True))
    return _stack_curve(pairs, levels, numbers, ends, _tiny_cells(on, levels), epsilon, "all ordered pairs of rows")


def lip_delta_of_stack(
    prior: Prior, stack: ChannelStack, epsilon: ArrayLike, n_jobs: int | None, progress: Progress
) -> Estimate:
    """``lip_delta`` of each channel of a stack, at its own row of ``epsilon``."""
    pairs, levels = stacks.pairs_with_levels(stacks.stack_with_priors(prior, stack), _validated_levels(epsilon))
    if not is_one_block(stack.inputs * stack.outputs):
        return stacks.estimates_of_pairs(
            pairs, levels, lambda model, e: lip_delta(model, e, n_jobs, None), epsilon, 1, progress
        )
    sides = stacks.stack_quantities(prior, stack, ("xi_plus", "xi_minus"), n_jobs, None).values()
    ends = np.maximum(*(_flat_upper(side, pairs, levels) for side in sides))
    numbers, tiny, scaled = _plain_lip_curves(pairs, levels, n_jobs, progress)
    for index in np.flatnonzero(scaled).tolist():
        item = lip_delta(pairs.pair(index), levels[index], 1, None)
        numbers[:, index] = item.arrays()
    tiny = tiny & ~scaled  # those numbers are final
    return _stack_curve(pairs, levels, numbers, ends, tiny, epsilon, _LIP_METHOD)


def _flat_upper(ends: Estimate, pairs: stacks.StackWithPriors, levels: FloatArray) -> FloatArray:
    """The upper bound of each pair, (s, 1); 0 for pairs that are invalid."""
    upper = np.broadcast_to(np.asarray(ends.upper), pairs.shape).reshape(-1, 1)
    return np.asarray(np.nan_to_num(upper, nan=0.0, posinf=np.inf))


def _tiny_cells(pairs: stacks.StackWithPriors, levels: FloatArray) -> BoolArray:
    """Which pairs have a level beyond e^709 and a positive cell below e^-709 on the support."""
    result: BoolArray = np.asarray((levels > _LARGEST_EXPONENT).any(axis=1))
    for index in np.flatnonzero(result).tolist():
        rows = pairs.cells[pairs.channel[index]]
        if pairs.priors is not None:
            rows = rows[pairs.priors[pairs.prior[index]] > 0]
        result[index] = bool(((rows > 0) & (rows < _TINY_CELL)).any())
    return result


def _plain_lip_curves(
    pairs: stacks.StackWithPriors, levels: FloatArray, n_jobs: int | None, progress: Progress
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Value, lower and upper bound (3, s, e); where tiny cells leave no lower bound, and where columns need a scale."""
    gap, n = pairs.gaps[pairs.channel, None] + 2.2 * pairs.prior_gaps[:, None], levels.shape[1]

    def of_block(part: slice) -> FloatArray:
        shifted = _with_shifted(levels[part], gap[part])
        curves, sums, scaled = _channel_quantities.curves_of_channels(
            pairs.cells, pairs.priors, pairs.channel[part], pairs.prior[part], _capped_expm1(shifted), True
        )
        value, span = np.maximum(curves[1], np.exp(-shifted) * curves[0]), np.minimum(2.0, sums[:, 1:])
        error = 16 * U * (sums[:, :1] + span) + 32 * U * np.minimum(1.0, span) + 74 * U * value
        low, high = _bounds_from_shifted(value[:, n:], error[:, n:], levels[part], gap[part])
        value, error = value[:, :n], error[:, :n]
        plain = gap[part] == 0
        lower, upper = np.where(plain, value - error, low), np.where(plain, value + error, high)
        return np.stack([value, lower, upper, np.broadcast_to(scaled[:, None], value.shape)])

    tasks = pairs.blocks(max(1, n // 2))
    parts = list(parallel.ordered_map(of_block, tasks, n_jobs=n_jobs, progress=progress, shared=True))
    numbers = np.concatenate([np.empty((4, 0, n)), *parts], axis=1)
    return numbers[:3], _tiny_cells(pairs, levels), (numbers[3] > 0).any(axis=1)


def _stack_curve(
    pairs: stacks.StackWithPriors, levels: FloatArray, numbers: FloatArray, ends: FloatArray, tiny: BoolArray,
    epsilon: ArrayLike, method: str,
) -> Estimate:
    """The estimate of a curve of each pair, which is 0 from its end on."""
    value, lower, upper = numbers
    result = np.stack(_ended_curve(value, lower, upper, levels, ends, ~tiny[:, None]))
    result = result if np.ndim(epsilon) else result[..., 0]
    return stacks.stack_estimate(pairs, result, "certified", method, "probability")


def _curve_estimate(
    value: FloatArray, lower: FloatArray, upper: FloatArray, levels: FloatArray, end: float, lower_known: bool,
    epsilon: ArrayLike, method: str,
) -> Estimate:
    """The estimate of a curve that is 0 from the level ``end`` on."""
    curve = _ended_curve(value, lower, upper, levels, end, lower_known)
    numbers = (number.reshape(np.shape(epsilon)) for number in curve)
    return Estimate(*numbers, kind="certified", unit="probability", method=method)


def _ended_curve(
    value: FloatArray, lower: FloatArray, upper: FloatArray, levels: FloatArray, end: Any, lower_known: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values in [0, 1] between their bounds, 0 from the level ``end`` on.

    Beyond e^709 there is no lower bound unless ``lower_known``.
    """
    ended = (levels >= end) & (end < math.inf)
    lower_holds = ended | (levels <= _LARGEST_EXPONENT) | lower_known
    value, lower, upper = (np.where(ended, 0.0, number) for number in (value, lower, upper))
    value, lower, upper = np.minimum(value, 1.0), np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    return value, np.minimum(np.where(lower_holds, lower, 0.0), value), np.maximum(upper, value)


def _validated_levels(epsilon: ArrayLike) -> FloatArray:
    numbers = validate.real("epsilon", epsilon, "at least 0", lambda e: e == e)
    return validate.real("epsilon", numbers, "at least 0", lambda e: e >= 0, remedy=LIP_LEVELS)


def _has_full_support(prior: Any) -> bool:
    """Whether every secret has positive prior probability."""
    if isinstance(prior, tuple):
        return all(_has_full_support(factor) for factor in prior)
    return prior is None or bool((np.asarray(prior) > 0).all())


def _cell_rounding(channel: AnyChannel, levels: FloatArray) -> FloatArray:
    """Rounding error of a hockey-stick divergence of two rows whose cells are computed."""
    if isinstance(channel, (Channel, SparseChannel)):
        return np.full(levels.size, 8 * U if getattr(channel, "log", False) else 0.0)
    size = 2 * LOG_2 * channel._log2_shape()[1]  # of the logs of cells, as a mean over a row, and of the releases
    return np.asarray(channel._log_error(size) + channel._log_error(size + 1 + np.minimum(levels, 750.0)) + 8 * U)


def _has_tiny_cells(channel: AnyChannel, secrets: IndexArray, n_jobs: int | None) -> bool:
    """Whether some positive cell of these secrets is below e^-709."""
    chosen = np.zeros(channel.inputs, dtype=bool)
    chosen[secrets] = True

    def in_block(part: slice) -> bool:
        logs = channel._log_rows(part.start, part.stop)[chosen[part]]
        return bool(((logs > -np.inf) & (logs < -_LARGEST_EXPONENT)).any())

    parts = parallel.blocks(channel.inputs, max(1, _BLOCK_CELLS // channel.outputs))
    return any(parallel.ordered_map(in_block, parts, n_jobs=n_jobs, shared=True))


def _level_shift(gap: Any) -> Any:
    return 2.1 * gap + 32 * U


def _with_shifted(levels: FloatArray, gap: Any) -> FloatArray:
    """Levels (..., e), then those above and below by what wrong row sums and roundings of cells shift, (..., 3 e)."""
    shift = _level_shift(gap)
    return np.concatenate([levels, next_above(levels + shift), np.maximum(next_below(levels - shift), 0.0)], axis=-1)


def _bounds_from_shifted(
    values: FloatArray, errors: FloatArray, levels: FloatArray, gap: Any
) -> tuple[FloatArray, FloatArray]:
    """Bounds at these levels (..., e) from a curve at the levels above them, then at those below, (..., 2 e)."""
    n, shift = levels.shape[-1], _level_shift(gap)
    low, high = (values - errors)[..., :n] * (1 - 1.1 * gap), (values + errors)[..., n:] * (1 + 1.1 * gap)
    return low, high + np.where(levels < 1.1 * shift, 2 * shift, 0.0)  # the curve is not evaluated below 0


def _bounds_under_row_gap(curve: Curve, levels: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Bounds of a curve both for the rows as they are and for the rows divided by their sums."""
    return _bounds_from_shifted(*curve(_with_shifted(levels, gap)[levels.size :]), levels, gap)


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
        size, step = np.abs(np.where(finite, ratio, 0.0)), max(1, _BATCH_TERMS // max(1, logs.size))
        for start in range(0, levels.size, step):
            e = levels[start : start + step, None]
            with np.errstate(invalid="ignore"):
                below = np.where(np.isposinf(ratio), -np.inf, e - ratio)
                terms = np.where(below < 0, p * -np.expm1(np.minimum(below, 0.0)), 0.0)
                shift = np.where(finite & np.isfinite(e), ratio_error + 2 * U * (size + e), 0.0)
                near = below < shift
            value, term_error = terms.sum(axis=1), 1.01 * (terms * log_error).sum(axis=1)
            term_error += 1.01 * np.where(near, p * np.exp(np.minimum(below, 0.0)) * shift, 0.0).sum(axis=1)
            term_error += value * U * (36 + math.log2(logs.size + 1)) + _UNDERFLOW_ERROR * logs.size
            part = slice(start, start + step)
            error[part] = np.maximum(error[part], term_error)
            best[part] = np.maximum(best[part], value)
    return best, error


def _curve_of_all_rows(
    channel: AnyChannel, secrets: IndexArray, levels: FloatArray, n_jobs: int | None, progress: Progress
) -> FloatArray:
    """The largest hockey-stick divergence of an ordered pair of rows at each level.

    Of many pairs, those are evaluated that a screen in single precision does not prove to be no larger than the largest
    so far (csrc/channel/fp_channel_pairs.h): the answer has the bits of that from all pairs.
    """
    distinct, inverse = np.unique(levels, return_inverse=True)
    excess = _capped_expm1(distinct)
    n, m = secrets.size, channel.outputs
    screened = n * n * m * distinct.size > _SCREENED_WORK and m <= _channel_pairs.MOST_OUTPUTS
    curve = _screened_curve if screened else _full_curve
    return np.asarray(curve(channel, secrets, distinct, excess, n_jobs, progress)[inverse])


def _full_curve(
    channel: AnyChannel, secrets: IndexArray, levels: FloatArray, excess: FloatArray, n_jobs: int | None,
    progress: Progress,
) -> FloatArray:
    """The maximum over all pairs, each of which is evaluated."""
    parts = parallel.blocks(secrets.size, max(1, _BLOCK_CELLS // channel.outputs))

    def of_blocks(task: tuple[slice, slice]) -> FloatArray:
        rows, others = (_rows_as_doubles(channel, secrets[part]) for part in task)
        forward, backward = np.zeros(excess.size), np.zeros(excess.size)
        for index, row in enumerate(others):
            count = index if task[0] == task[1] else len(rows)
            if count:
                _channel_blocks.raise_hockey_sticks(rows[:count], row, excess, forward, backward)
        return np.maximum(forward, backward)

    tasks, largest = [(parts[i], parts[j]) for j in range(len(parts)) for i in range(j + 1)], np.zeros(excess.size)
    for divergence in parallel.ordered_map(of_blocks, tasks, n_jobs=n_jobs, progress=progress, shared=True):
        largest = np.maximum(largest, divergence)
    return largest


def _screened_curve(
    channel: AnyChannel, secrets: IndexArray, levels: FloatArray, excess: FloatArray, n_jobs: int | None,
    progress: Progress,
) -> FloatArray:
    """The same maximum over all pairs, of which few are evaluated."""
    n, m = secrets.size, channel.outputs
    with np.errstate(invalid="ignore"):
        begins = np.append(True, np.diff(levels) > _SAME_SCREEN * (1 + levels[:-1]))
    first = np.append(np.flatnonzero(begins), levels.size).astype(np.intp)
    rows: FloatArray | None = None
    if n * m <= _MOST_CELLS_IN_ORDER:
        rows = _rows_as_doubles(channel, secrets)
        rows = np.ascontiguousarray(rows[_clustered_order(rows)])
    step = math.isqrt(_SCREENED_TERMS // (m * (first.size - 1)))
    parts, largest = parallel.blocks(n, min(max(step // 16, 1), 64) * 16), np.zeros(excess.size)

    def block(part: slice) -> FloatArray:
        return _rows_as_doubles(channel, secrets[part]) if rows is None else rows[part]

    def of_blocks(task: tuple[slice, slice]) -> FloatArray:
        result = largest.copy()  # of the blocks that are done; which these are changes no maximum
        other = None if task[0] == task[1] else block(task[1])
        _channel_pairs.raise_to_pairs(block(task[0]), other, excess, first, result)
        return result

    if rows is not None:  # pairs of rows that have the extremes of columns are likely to be the worst
        extreme = np.concatenate([rows.argmax(axis=0), rows.argmin(axis=0)])
        _channel_pairs.raise_to_pairs(rows[np.unique(extreme)[:_MOST_FIRST_ROWS]], None, excess, first, largest)
    tasks = [(parts[i], parts[j]) for j in range(len(parts)) for i in range(j + 1)]
    for answer in parallel.ordered_map(of_blocks, tasks, n_jobs=n_jobs, progress=progress, shared=True):
        np.maximum(largest, answer, out=largest)
    return largest


def _clustered_order(rows: FloatArray) -> IndexArray:
    """An order in which rows near each other are close: halves by the column of the largest spread, and so on."""
    order, parts = np.arange(len(rows)), [(0, len(rows))]
    while parts:
        start, stop = parts.pop()
        middle = start + (stop - start + 31) // 32 * 16
        if stop - start <= 16 or middle >= stop:
            continue
        inside = rows[order[start:stop]]
        column = inside[:, int(np.argmax(inside.max(axis=0) - inside.min(axis=0)))]
        order[start:stop] = order[start:stop][np.argpartition(column, middle - start)]
        parts += [(start, middle), (middle, stop)]
    return order


def _rows_as_doubles(channel: AnyChannel, secrets: IndexArray) -> FloatArray:
    """Rows of these secrets, which are in increasing order."""
    start, stop = int(secrets[0]), int(secrets[-1]) + 1
    if stop - start == secrets.size:
        return np.ascontiguousarray(channel._rows(start, stop, False), dtype=np.float64)
    rows = (channel._rows(d, d + 1, False) for d in secrets.tolist())
    return np.concatenate([np.asarray(row, dtype=np.float64) for row in rows])


def _curve_against_mixture(blocks: RowBlocks, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows of positive prior probability against q, in both directions."""
    first, excess = blocks.columns, _capped_expm1(levels)
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
        error = 74 * U * value + 16 * U * (float(first.spread.sum()) + span) + 32 * U * min(1.0, span)
    else:
        error = 74 * U * value + 100 * U + 4 * blocks.mass_error + _cell_rounding(blocks.channel, levels)
    return value, error


def _curve_against_release(
    pairs: tuple[RowPair, ...], levels: FloatArray, uncertain_mass: float
) -> tuple[FloatArray, FloatArray]:
    """Rows against the distribution of the release, in both directions; the latter is second in each pair.

    ``uncertain_mass`` bounds the mass that no class covers, and the distance of the classes from the true ones.
    """
    swapped = (RowPair(pair.log_q, pair.log_p, -pair.log_ratio, pair.log_error, pair.ratio_error) for pair in pairs)
    under, under_error = _curve_of_pairs(tuple(swapped), levels)
    over, over_error = _curve_of_pairs(pairs, levels)
    scale = np.exp(-levels)
    value, error = np.maximum(under, scale * over), np.maximum(under_error, scale * (over_error + 8 * U * over))
    return value, error + (1 + 2 * value) * uncertain_mass
