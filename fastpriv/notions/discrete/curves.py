"""Curves of a channel: (epsilon, delta) of LDP over ordered pairs of rows, and of LIP over rows and their mixture.

Notation: H_e(P || R) = sum (P - e^e R)^+, formed as (P - R) - (e^e - 1) R where positive. Errors: 6 u of the total
variation, which LDP bounds by tanh(epsilon_LDP / 2), and 70 u of the sum; of LIP, besides, 16 u sum (D + |x - c|) of
``table``, with both sums at most 2. Cells made from logs p are right to 8 u (1 + |log p|), those that are given as
logs to 2 u; what they move H is at most twice what they move P by, and sum P |log P| <= log m. Beyond epsilon = 709
only cells next to 0 count: the lower bound is 0 if some are positive and below e^-709, unless LDP ends before.

Rows P (1 + a) and R (1 + b) have H_e' = (1 + a) H_(e + log((1 + b)/(1 + a))): a slip of the sums is a factor and a
shift of epsilon, and so are the roundings of each cell of rows that are given, at most 8 u of P and of e^e R besides
what subnormal products lose. Both are bounded by the curve at e - h and e + h: of a small delta they are a small part.
"""

# bounds: tested by enclosures/test_channel_notions - roundings, by the notes at the head

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _parallel, _validate
from ..._values import FloatArray
from ...capacity import structured
from ...channels import AnyChannel, Channel, RowPair, SparseChannel
from ...estimate import Estimate
from ...kernels import _table
from . import classes, product_types
from .arguments import UNIT, Setting, written
from .leakage import readings
from .table import Columns, Table
from .table import columns as first_pass

__all__ = ["ldp_delta", "lip_delta"]

_BLOCK = 2**18  # cells of the rows that are compared in one task
_TERMS = 2**22
_LARGEST = 709.0
_MOST = float(np.finfo(np.float64).max)
# bound: tested by enclosures/test_channel_notions - of a cell, where products are subnormal
_LOST = 4e-323  # of a cell, where products are subnormal


def ldp_delta(given: Setting, epsilon: ArrayLike, support: bool, n_jobs: Any, progress: Any) -> Estimate:
    """sup over ordered pairs of rows of H_epsilon, for all secrets or those with prior."""
    grid = _levels(epsilon)
    if grid.size == 0:
        return _estimate(grid, grid, grid, epsilon, "no epsilon", np.ones(0, dtype=bool))
    level = readings(given, ("support" if support else "ldp",), n_jobs=n_jobs)["support" if support else "ldp"]
    ended = (grid >= level.upper) & (level.upper < math.inf)
    pairs = None
    exact = True
    gap = given.channel.mass_gap
    value, lower, upper = np.zeros((3, grid.size))
    if not support or structured.alike(given.channel) or _all_held(given.prior):
        pairs = given.channel.pairs()
    if pairs is not None:
        method = "worst pair of rows"
        value, error = _of_pairs(pairs, grid)
        lower, upper = value - error, value + error
        if gap:
            lower, upper = _slipped(lambda levels: _of_pairs(pairs, levels), grid, gap)
    else:
        whole = written(given)
        held = np.flatnonzero(whole.weights > 0) if support else np.arange(whole.channel.inputs)
        reached = math.tanh(0.5 * min(level.upper, 100.0))
        left = ~ended
        method = "all ordered pairs of rows"
        if left.any() and held.size > 1:

            def curve(levels: FloatArray) -> tuple[FloatArray, FloatArray]:
                found = _of_rows(whole.channel, held, np.unique(levels, return_inverse=True), n_jobs, progress)
                return found, 70 * UNIT * found + _LOST * whole.channel.outputs

            some = grid[left]
            three = curve(np.concatenate([some, *_shifted(some, gap)]))
            value[left] = three[0][: some.size]
            error = 6 * UNIT * reached + 70 * UNIT * value[left] + _rounding(whole.channel, some) + 2.1 * gap
            lower[left], upper[left] = value[left] - error, value[left] + error
            if isinstance(whole.channel, (Channel, SparseChannel)):  # each cell as it was given
                low, high = _ends(three[0][some.size :], three[1][some.size :], some, gap)
                lower[left], upper[left] = np.maximum(lower[left], low), np.minimum(upper[left], high)
            exact = not (some > _LARGEST).any() or not _faint(whole.channel, held, n_jobs)
    certain = ended | (grid <= _LARGEST) | exact
    value, lower, upper = (np.where(ended, 0.0, x) for x in (value, lower, upper))
    return _estimate(value, lower, upper, epsilon, method, certain)


def lip_delta(given: Setting, epsilon: ArrayLike, n_jobs: Any, progress: Any) -> Estimate:
    """sup over secrets with prior of max{H(q || Q_d), e^-epsilon H(Q_d || q)}."""
    grid = _levels(epsilon)
    if grid.size == 0:
        return _estimate(grid, grid, grid, epsilon, "no epsilon", np.ones(0, dtype=bool))
    profiles = classes.grouped(given) if given.prior is None and structured.alike(given.channel) else None
    gap, exact = given.channel.mass_gap, True
    curve: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    if profiles is not None:
        curve, method = (lambda levels: _of_classes(profiles, levels)), "classes of like releases"
    elif (pairs := product_types.release_pairs(given)) is not None:
        curve, method = functools.partial(_of_release, pairs), "worst types of secrets against the law of the release"
        gap += 2.2 * product_types.product_prior_gap(given)
    else:
        table = Table(written(given))
        first = first_pass(table, n_jobs=n_jobs, progress=progress)
        curve = functools.partial(_of_mixture, table, first, n_jobs=n_jobs, progress=progress)
        method, gap = "every row against the law of the release", gap + 2.2 * table.gap
        exact = not (grid > _LARGEST).any() or not _faint(table.channel, np.flatnonzero(table.prior > 0), n_jobs)
    sides = readings(given, ("plus", "minus"), n_jobs=n_jobs)
    level = max(sides["plus"].upper, sides["minus"].upper)
    ended = (grid >= level) & (level < math.inf)
    value, error = curve(grid)
    lower, upper = _slipped(curve, grid, gap) if gap else (value - error, value + error)
    certain = ended | (grid <= _LARGEST) | exact
    value, lower, upper = (np.where(ended, 0.0, x) for x in (value, lower, upper))
    return _estimate(value, lower, upper, epsilon, method, certain)


def _all_held(prior: Any) -> bool:
    """Whether every secret has prior."""
    if isinstance(prior, tuple):
        return all(_all_held(one) for one in prior)
    return prior is None or bool((np.asarray(prior) > 0).all())


def _rounding(channel: AnyChannel, grid: FloatArray) -> FloatArray:
    """What rounding moves a hockey-stick of two rows by, where cells are made from others."""
    if isinstance(channel, (Channel, SparseChannel)):
        return np.full(grid.size, 4 * UNIT if getattr(channel, "log", False) else 0.0)
    return 16 * UNIT * (2 + math.log(2.0) * channel._log2_shape()[1] + np.minimum(grid, 750.0))


def _faint(channel: AnyChannel, held: NDArray[np.intp], n_jobs: Any) -> bool:
    """Whether some positive cell of these secrets is below e^-709."""
    counts = np.zeros(channel.inputs, dtype=bool)
    counts[held] = True

    def one(part: slice) -> bool:
        logs = channel._log_rows(part.start, part.stop)[counts[part]]
        return bool(((logs > -np.inf) & (logs < -_LARGEST)).any())

    parts = _parallel.blocks(channel.inputs, max(1, _BLOCK // channel.outputs))
    return any(_parallel.ordered_map(one, parts, n_jobs=n_jobs, shared=True))


def _levels(epsilon: ArrayLike) -> FloatArray:
    return _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0).reshape(-1)


def _shifted(grid: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Levels above and below these, by what rows that miss 1 and roundings of their cells can shift them."""
    shift = _shift(gap)
    return np.nextafter(grid + shift, np.inf), np.maximum(np.nextafter(grid - shift, -np.inf), 0.0)


def _shift(gap: float) -> float:
    return 2.1 * gap + 32 * UNIT


def _ends(values: FloatArray, errors: FloatArray, grid: FloatArray, gap: float) -> tuple[FloatArray, FloatArray]:
    """Bounds at the levels of a grid from a curve at those above them, then at those below."""
    above, below = slice(grid.size), slice(grid.size, None)
    low, high = (values - errors)[above] * (1 - 1.1 * gap), (values + errors)[below] * (1 + 1.1 * gap)
    return low, high + np.where(grid < 1.1 * _shift(gap), 2 * _shift(gap), 0.0)  # the curve is not asked below 0


def _slipped(
    curve: Callable[[FloatArray], tuple[FloatArray, FloatArray]], grid: FloatArray, gap: float
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Bounds of a curve for rows as they are and for rows over their sums."""
    return _ends(*curve(np.concatenate(_shifted(grid, gap))), grid, gap)


def _estimate(
    value: FloatArray, lower: FloatArray, upper: FloatArray, epsilon: ArrayLike, method: str,
    certain: NDArray[np.bool_],
) -> Estimate:  # fmt: skip
    value, lower, upper = np.minimum(value, 1.0), np.maximum(lower, 0.0), np.minimum(upper, 1.0)
    lower = np.where(certain, lower, 0.0)
    shape = np.shape(epsilon)
    numbers = (number.reshape(shape) for number in (value, np.minimum(lower, value), np.maximum(upper, value)))
    return Estimate(*numbers, kind="certified", unit="probability", method=method)


def _excess(levels: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.minimum(np.expm1(levels), _MOST)


def _of_pairs(pairs: tuple[RowPair, ...], grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Term by term, p (1 - e^(epsilon - L)) where the log ratio L is above epsilon.

    An error of log p is one of the term, relative; one of L - epsilon moves it by as much of p e^(epsilon - L).
    """
    best, error = np.zeros(grid.size), np.zeros(grid.size)
    for pair in pairs:
        real = pair.log_p > -np.inf
        logs, ratio = pair.log_p[real], pair.log_ratio[real]
        log_error, ratio_error = pair.log_error[real], pair.ratio_error[real]
        p, finite = np.exp(logs), np.isfinite(ratio)
        reach = np.abs(np.where(finite, ratio, 0.0))
        step = max(1, _TERMS // max(1, logs.size))
        for start in range(0, grid.size, step):
            e = grid[start : start + step, None]
            with np.errstate(invalid="ignore"):
                below = np.where(np.isposinf(ratio), -np.inf, e - ratio)
                terms = np.where(below < 0, p * -np.expm1(np.minimum(below, 0.0)), 0.0)
                moved = np.where(finite & np.isfinite(e), ratio_error + 2 * UNIT * (reach + e), 0.0)
                near = below < moved
            value = terms.sum(axis=1)
            loose = 1.01 * (terms * log_error).sum(axis=1)
            loose += 1.01 * np.where(near, p * np.exp(np.minimum(below, 0.0)) * moved, 0.0).sum(axis=1)
            loose += value * UNIT * (16 + math.log2(logs.size + 1) * 2) + _LOST * logs.size
            part = slice(start, start + step)
            error[part] = np.maximum(error[part], loose)
            best[part] = np.maximum(best[part], value)
    return best, error


def _of_rows(channel: AnyChannel, held: NDArray[np.intp], levels: Any, n_jobs: Any, progress: Any) -> FloatArray:
    """The largest hockey-stick of an ordered pair of rows at each level."""
    different, places = levels
    excess = _excess(different)
    step = max(1, _BLOCK // channel.outputs)
    parts = _parallel.blocks(held.size, step)

    def one(task: tuple[slice, slice]) -> FloatArray:
        some, others = (_rows(channel, held[part]) for part in task)
        forward, backward = np.zeros(excess.size), np.zeros(excess.size)
        for place, row in enumerate(others):
            first = place if task[0] == task[1] else len(some)
            if first:
                _table.sticks(some[:first], row, excess, forward, backward)
        return np.maximum(forward, backward)

    tasks = [(parts[i], parts[j]) for j in range(len(parts)) for i in range(j + 1)]
    found = np.zeros(excess.size)
    for result in _parallel.ordered_map(one, tasks, n_jobs=n_jobs, progress=progress, shared=True):
        found = np.maximum(found, result)
    return np.asarray(found[places])


def _rows(channel: AnyChannel, secrets: NDArray[np.intp]) -> FloatArray:
    """Rows of these secrets, which are in order, as doubles."""
    start, stop = int(secrets[0]), int(secrets[-1]) + 1
    if stop - start == secrets.size:
        return np.ascontiguousarray(channel._rows(start, stop, False), dtype=np.float64)
    return np.concatenate([
        np.asarray(channel._rows(int(d), int(d) + 1, False), dtype=np.float64) for d in secrets.tolist()
    ])  # fmt: skip


def _of_mixture(
    table: Table, first: Columns, grid: FloatArray, *, n_jobs: Any, progress: Any
) -> tuple[FloatArray, FloatArray]:
    """Rows with prior against q, both ways."""
    excess = _excess(grid)
    q = table.scaled(first.q)
    centre, delta = (first.centre, first.delta) if table.direct else (None, None)

    def one(part: slice) -> FloatArray:
        rows = np.ascontiguousarray(table.channel._rows(part.start, part.stop, False), dtype=np.float64)
        rows = rows[table.prior[part] > 0]
        over, under = np.zeros(grid.size), np.zeros(grid.size)
        if len(rows):
            _table.sticks(rows, q, excess, over, under, centre, delta)
        return np.stack([over, under])

    found = np.zeros((2, grid.size))
    for result in _parallel.ordered_map(one, table.parts, n_jobs=n_jobs, progress=progress, shared=True):
        found = np.maximum(found, result)
    value = np.maximum(found[1], np.exp(-grid) * found[0])
    known = min(2.0, float(table.scaled(first.reach).sum()))
    if table.direct:
        error = 16 * UNIT * (float(first.spread.sum()) + known) + 6 * UNIT * min(1.0, known)
    else:
        error = 100 * UNIT + 4 * table.noise
    return value, np.full(grid.size, error) + 74 * UNIT * value


def _of_release(pairs: tuple[RowPair, ...], grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows against the law of the release, both ways."""
    turned = tuple(RowPair(one.log_q, one.log_p, -one.log_ratio, one.log_error, one.ratio_error) for one in pairs)
    under, unsure = _of_pairs(turned, grid)
    over, blurred = _of_pairs(pairs, grid)
    scale = np.exp(-grid)
    return np.maximum(under, scale * over), np.maximum(unsure, scale * (blurred + 4 * UNIT * over))


def _of_classes(profiles: Any, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All secrets alike under the uniform prior: the mean over secrets is each of them."""
    log_weight, y = profiles.log_weight, profiles.log_ratio
    joint = profiles.log_mass + log_weight[profiles.classes]
    held = joint > -np.inf
    joint, y = joint[held], y[held]
    mass, size = np.exp(joint), np.abs(joint)
    value, error = np.zeros(grid.size), np.zeros(grid.size)
    missed = abs(math.fsum(mass) - 1.0) if profiles.missing == 0 else profiles.missing
    step = max(1, _TERMS // y.size)
    for start in range(0, grid.size, step):
        e = grid[start : start + step, None]
        with np.errstate(invalid="ignore", over="ignore"):
            low = np.where(y == -np.inf, -np.inf, e + y)  # impossible under the secret, whatever epsilon is
            under = np.where(low < 0, -np.expm1(np.minimum(low, 0.0)), 0.0)
            over = np.where(y > e, np.expm1(np.maximum(y - e, 0.0)), 0.0)
            moved = np.where(np.isfinite(y) & np.isfinite(e), 4e-14 * (np.abs(y) + e), 0.0)
        pair = [(mass * terms).sum(axis=1) for terms in (under, over)]
        loose = [
            (mass * (terms * 32 * UNIT * (8 + size) + np.where(near, moved * (1 + terms), 0.0))).sum(axis=1)
            for terms, near in ((under, low < 1e-9), (over, y - e > -1e-9))
        ]  # fmt: skip
        part = slice(start, start + step)
        value[part] = np.maximum(*pair)
        error[part] = np.maximum(*loose) + 2 * missed * value[part] + profiles.missing
    return value, error
