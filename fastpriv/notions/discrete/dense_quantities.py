"""Quantities of a channel from two passes through its rows: LDP, MBP, vulnerability, maximal leakage, information.

Notation: Q (n, m), prior pi, q = pi Q, centre c, delta = sum pi (Q - c), q = c + delta, r = Q/q; u = 2^-53. The first
pass finds the extremes of each column and q, the second the divergence of each row from q. If a column is too small for
doubles, or if cells are logarithms, it is scaled: x = Q e^-scale takes the place of Q.

Cells made from logarithms have a relative error of u (3 + log(top / x)) and the error of the logarithms. D takes in
that of cells of at most 3 q, which are moved by at most 3 (1 + log(top / q)) q units; larger cells have psi(r) of the
order of r log r, so that K is moved by at most 4 times their relative error.

Errors: delta is right to 12 u sum pi |x - c|, and sum pi |x - c| <= D = min(top - low, q + c); hence x - q is right to
16 u (D + |x - c|), q to 16 u (D + q). For K = KL(Q_d || q) = sum q psi(r) the error of t = r - 1 enters by at most
1.3 min(|t|, 1), and sum q min(|t|, 1)^2 <= 3 K, so that by Cauchy and Schwarz it is below
200 u K + 64 u sqrt(K S), S = sum D^2 / q.

Cells that are known to a factor 1 + g, |g| at most the mass gap, move a log ratio of two cells by at most 2.1 g, and a
prior that misses 1 moves ln q by its own gap.
"""

# bounds: tested by enclosures/test_channel_notions - rounding of sums of rows, of log ratios and of cells given as
#    logarithms, by the notes at the head

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ... import _parallel
from ..._parallel import Progress
from ...channels import AnyChannel, Channel, SparseChannel
from ...estimate import Kind
from ...kernels import _channel_blocks, _channel_quantities
from ...numerics import LOG_2, MACHINE_EPSILON, BoolArray, FloatArray, IndexArray, IntArray, RealArray
from ...numerics import UNIT_ROUNDOFF as U
from .channel_with_prior import Bracket, ChannelWithPrior

__all__ = [
    "KINDS", "NAMES", "ColumnStatistics", "RowBlocks", "RowStatistics", "column_brackets", "column_statistics",
    "is_one_block", "is_plain", "plain_brackets", "row_brackets", "row_statistics", "wanted",
]  # fmt: skip

Task = TypeVar("Task")

_BLOCK_CELLS = 2**21  # cells in one task: 16 MiB of doubles
_LEAST_ROWS = 16  # rows in one task, at least
_SAMPLE_ROWS = 64  # rows from which the first centre is taken
# bound: none - columns in which q is smaller are scaled, well above the smallest normal double
_TINY_COLUMN = 1e-300
NAMES: tuple[str, ...] = _channel_quantities.NAMES  # of the quantities, in the order of the kernel
_OF_ROWS = ("cd_lmip", "pointwise_lmip")  # quantities for which the rows are gone through again
_BIT = {name: 1 << index for index, name in enumerate(NAMES)}  # what asks the kernel for a quantity
# Kind of the bounds and ``method``: of quantities of extreme cells, but for those below.
_EXTREME: tuple[Kind, str] = ("exact", "largest and smallest cell of each column")
KINDS: dict[str, tuple[Kind, str]] = {
    **dict.fromkeys(NAMES, _EXTREME), **dict.fromkeys(_OF_ROWS, ("certified", "divergence of each row")),
    **dict.fromkeys(("bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage"),
                    ("exact", "largest joint probability of each column")),
}  # fmt: skip


class RowBlocks:
    """The rows of a channel in fixed blocks of doubles or singles, scaled by column if that is needed."""

    def __init__(
        self, model: ChannelWithPrior, n_jobs: int | None = None, progress: Progress = None
    ) -> None:
        self.n_jobs, self.progress = n_jobs, progress
        self.channel: AnyChannel = model.channel
        self.prior = np.ascontiguousarray(model.weights)
        self.gap = model.gap
        n, m = self.channel.shape
        self.slices = _parallel.blocks(n, max(_LEAST_ROWS, _BLOCK_CELLS // m))
        self.log = not isinstance(self.channel, (Channel, SparseChannel)) or getattr(self.channel, "log", False)
        self.log_scale: FloatArray | None = None  # natural logarithms; of powers of 2 where cells are plain

    def map(self, task: Callable[[slice], Task], *, silent: bool = False) -> Iterator[Task]:
        """Results of a task for each block, in order, with the threads and (unless ``silent``) the progress reports."""
        progress = None if silent else self.progress
        return _parallel.ordered_map(task, self.slices, n_jobs=self.n_jobs, progress=progress, shared=True)

    @property
    def log_error(self) -> float:
        """Bound on the error of the logs of cells that are made from parameters; 0 for cells that are stored."""
        if isinstance(self.channel, Channel) or not self.log:
            return 0.0
        return 2.0**-50 * self._largest_log

    @property
    def row_sum_error(self) -> float:
        """What a row sum can miss 1 by where cells are made from parameters; 0 for cells that are stored."""
        if isinstance(self.channel, Channel) or not self.log:
            return 0.0
        return MACHINE_EPSILON * self._largest_log + self.log_error

    @property
    def _largest_log(self) -> float:
        return 1.0 + (0.0 if self.log_scale is None else float(np.abs(self.log_scale).max(initial=0.0)))

    @property
    def unscaled(self) -> bool:
        """Whether blocks hold the cells as the channel stores them."""
        return not self.log and self.log_scale is None

    def block(self, part: slice) -> RealArray:
        """Rows of a block, scaled."""
        if not self.log:
            cells = self.channel._rows(part.start, part.stop, False)
            if self.log_scale is None:
                return cells
            return np.ldexp(cells.astype(np.float64), -self.exponents)
        assert self.log_scale is not None
        with np.errstate(over="ignore"):
            return np.exp(self.channel._log_rows(part.start, part.stop) - self.log_scale)

    @property
    def exponents(self) -> IntArray:
        """Powers of 2 by which plain columns are scaled."""
        assert self.log_scale is not None
        return np.rint(self.log_scale / LOG_2).astype(np.int64)

    def rescaled(self, columns: FloatArray) -> FloatArray:
        """Scaled numbers, one for each column, without the scale."""
        if self.log_scale is None:
            return columns
        return columns * np.exp(self.log_scale) if self.log else np.ldexp(columns, self.exponents)

    @property
    def root_scale(self) -> FloatArray | float:
        """Square root of the factors that scaled columns lack."""
        return 1.0 if self.log_scale is None else np.exp(0.5 * self.log_scale)


class ColumnStatistics(NamedTuple):
    """Results of the first pass, of shape (m,); scaled, but for ``extremes``."""

    top: FloatArray  # largest cell, among secrets of positive prior probability
    low: FloatArray  # smallest cell, among the same
    best: FloatArray  # largest joint probability
    map_secret: IndexArray  # secret of the largest joint probability
    centre: FloatArray  # c
    delta: FloatArray
    q: FloatArray
    spread: FloatArray  # D, and more where cells are made from logarithms
    span: FloatArray  # top - low, and more likewise
    relative_error: float  # of the cells above 3 q
    extremes: FloatArray  # (4, m): top and low on the support, then off it; logarithms where cells are logarithms

    @property
    def occurs(self) -> BoolArray:
        """Which releases have positive probability."""
        return self.q > 0


class RowStatistics(NamedTuple):
    """Results of the second pass."""

    divergences: FloatArray  # (n,)
    mean_changes: FloatArray  # (n,), mean of r - 1 under a given distribution of the release
    spread_energy: float  # S
    row_gap: float  # what row sums miss 1 by
    relative_error: float  # of the cells above 3 q


def column_statistics(rows: RowBlocks, *, silent: bool = False) -> ColumnStatistics:
    """The first pass; repeated if columns have to be scaled, or if the sample rows gave a bad centre."""
    extremes = _extreme_logs(rows) if rows.log else None
    if extremes is not None:
        rows.log_scale = np.where(np.isfinite(extremes[0]), extremes[0], 0.0)
    begin = int(np.argmax(rows.prior > 0))
    sample = slice(begin, min(begin + _SAMPLE_ROWS, rows.prior.size))
    centre = rows.block(sample)[rows.prior[sample] > 0].min(axis=0).astype(np.float64)
    total = float(np.sum(rows.prior, dtype=np.longdouble))
    while True:
        numbers, map_secret = _column_pass(rows, centre, silent)
        top, low, best, high, rest, other_top, other_low = numbers
        if extremes is None:
            extremes = np.stack([top, low, other_top, other_low])
        delta = (high + rest) / total
        q = np.maximum(centre + delta, 0.0)
        if ((top > 0) & (q < _TINY_COLUMN)).any() and rows.log_scale is None:
            # columns are never scaled down: a cell far below its column may be subnormal already
            rows.log_scale = np.where(top > 0, np.minimum(np.frexp(top)[1], 0), 0) * LOG_2
            centre = np.ldexp(low, -rows.exponents)
        elif (centre > 2 * q).any():
            centre = np.ascontiguousarray(low)
        else:
            break
    span = top - low
    spread = np.minimum(span, q + centre)
    relative_error = 0.0
    if rows.log:  # 16 u D also has to cover the rounding of cells and of q
        with np.errstate(divide="ignore", invalid="ignore"):
            drop = np.where(q > 0, np.log(np.maximum(top, q) / q), 0.0)
        units = 0.5 + 0.2 * rows.log_error / U
        covered = 3.0 * (1.0 + drop) * q
        spread, span = spread + units * np.minimum(top, covered), span + units * top
        if (top > covered).any():
            relative_error = rows.log_error + U * (3.0 + float(drop.max(initial=0.0)))
    return ColumnStatistics(top, low, best, map_secret, centre, delta, q, spread, span, relative_error, extremes)


def row_statistics(
    rows: RowBlocks, first: ColumnStatistics, *, change: FloatArray | None = None, posteriors: Any = None,
    divergences: bool = True,
) -> RowStatistics:  # fmt: skip
    """The second pass.

    ``change`` is P - q for the distribution P of the release under which the mean of r - 1 is taken. ``posteriors``
    takes f(d|w): an array of shape (n, m), or a function of a slice and its block. Without ``divergences``, which cost
    most of the pass, they are 0.
    """
    inverse = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs)
    release = rows.rescaled(first.q)

    def block_statistics(part: slice) -> FloatArray:
        block, prior = rows.block(part), rows.prior[part]
        out = np.empty(block.shape) if callable(posteriors) else None if posteriors is None else posteriors[part]
        weight = release if divergences else None
        result = _channel_blocks.row_statistics(block, prior, first.centre, first.delta, inverse, weight, change, out)
        result[:, prior == 0] = np.array([[0.0], [1.0], [0.0]])
        if callable(posteriors):
            posteriors(part, out)
        return np.asarray(result)

    each, _, mean_changes = np.concatenate(list(rows.map(block_statistics)), axis=1)
    energy = _channel_blocks.accurate_sum(release * (first.spread * inverse) ** 2)
    return RowStatistics(np.maximum(each, 0.0), mean_changes, energy, rows.channel.mass_gap, first.relative_error)


def _column_pass(rows: RowBlocks, centre: FloatArray, silent: bool) -> Any:
    def block_columns(part: slice) -> Any:
        return _channel_blocks.column_statistics(rows.block(part), rows.prior[part], centre, part.start)

    result = None
    for numbers, map_secret in rows.map(block_columns, silent=silent):
        if result is None:
            result = numbers, map_secret
        else:
            _channel_blocks.merge_column_statistics(result[0], result[1], numbers, map_secret)
    return result


def _extreme_logs(rows: RowBlocks) -> FloatArray:
    """Largest and smallest logarithm of each column, for the secrets of positive prior probability and the others."""
    def of_block(part: slice) -> FloatArray:
        logs, positive = rows.channel._log_rows(part.start, part.stop), rows.prior[part] > 0
        return np.stack([
            extreme for some in (logs[positive], logs[~positive])
            for extreme in (some.max(axis=0, initial=-np.inf), some.min(axis=0, initial=np.inf))
        ])  # fmt: skip

    result: FloatArray | None = None
    for extremes in rows.map(of_block, silent=True):
        if result is None:
            result = extremes
        else:
            result[::2] = np.maximum(result[::2], extremes[::2])
            result[1::2] = np.minimum(result[1::2], extremes[1::2])
    assert result is not None
    return result


def wanted(names: Iterable[str]) -> int:
    """What asks the kernel for these quantities."""
    return functools.reduce(operator.or_, map(_BIT.__getitem__, names), 0)


def is_plain(channel: AnyChannel) -> bool:
    """Whether it is a matrix of probabilities in memory that one call of the kernel goes through."""
    return type(channel) is Channel and channel._plain and is_one_block(channel.cells.size)


def is_one_block(cells: int) -> bool:
    """Whether a channel of this many cells is taken by one call of the kernel."""
    return cells <= _BLOCK_CELLS


def plain_brackets(model: ChannelWithPrior, names: Collection[str], progress: Progress) -> dict[str, Bracket] | None:
    """The named quantities of a written channel whose cells are one block, by one call of the kernel.

    None for any other channel, and where a column is so small that it has to be scaled.
    """
    channel: Any = model.channel
    if not is_plain(channel):
        return None
    # the prior was checked: infinity is no limit of its gap
    numbers = _channel_quantities.of_channel(channel.cells, model.prior, channel.mass_gap, math.inf, wanted(names))
    if numbers is None:
        return None
    if progress:
        report, close = _parallel.progress_reporter(progress, 1)
        report(1)
        close()
    return {name: _bracket(name, *numbers[(start := 3 * NAMES.index(name)) : start + 3]) for name in names}


def column_brackets(rows: RowBlocks, first: ColumnStatistics, names: Collection[str]) -> dict[str, Bracket]:
    """Those of the named quantities that depend on the columns: all but the information of rows."""
    of_columns = [name for name in names if name not in _OF_ROWS]
    guess = int(np.argmax(rows.prior))
    scale, factor, scaling = rows.log_scale, None, 2 * rows.log_error
    if scale is not None:
        factor = np.exp(scale) if rows.log else np.ldexp(1.0, rows.exponents)
        scaling += 4 * U * (8 + float(np.abs(scale).max()))
    stored = rows.channel._rows(guess, guess + 1, rows.log)[0]
    columns = first.top, first.low, first.best, first.centre, first.delta, first.q, first.spread
    numbers = _channel_quantities.of_columns(
        columns, first.extremes, scale if rows.log else None, factor,
        *(np.ascontiguousarray(row, dtype=np.float64) for row in (rows.block(slice(guess, guess + 1))[0], stored)),
        float(rows.prior[guess]), (rows.channel.mass_gap, rows.gap, rows.log_error, scaling, rows.row_sum_error),
        wanted(of_columns),
    )  # fmt: skip
    return {name: _bracket(name, *numbers[NAMES.index(name)].tolist()) for name in of_columns}


def row_brackets(rows: RowBlocks, second: RowStatistics) -> dict[str, Bracket]:
    """Mutual information, and the largest divergence of a row from the distribution of the release."""
    total = float(np.sum(rows.prior, dtype=np.longdouble))
    numbers = _channel_quantities.of_rows(
        rows.prior, second.divergences, total, second.spread_energy, second.row_gap, rows.gap, second.relative_error
    )
    return {name: _bracket(name, *row) for name, row in zip(_OF_ROWS, numbers.tolist(), strict=True)}


def _bracket(name: str, value: float, lower: float, upper: float) -> Bracket:
    return Bracket(value, lower, upper, *KINDS[name])
