"""Quantities of a channel from two passes through its rows: LDP, MBP, vulnerability, maximal leakage, information.

Notation: Q (n, m), prior pi, q = pi Q, centre c, delta = sum pi (Q - c), q = c + delta, r = Q/q; u = 2^-53. The first
pass finds the extremes of each column and q, the second the divergence of each row from q. If a column is too small for
doubles, or if cells are logarithms, it is scaled: x = Q e^-scale takes the place of Q.

Cells made from logarithms have a relative error of u (4 + log(top / x)) and the error of the logarithms, which grows
with their size. D takes in that of cells of at most 3 q; larger cells have psi(r) of the order of r log r, so that K is
moved by at most 4 times their relative error (docs/proofs/finite_capacity.md, 7.16).

Errors: delta is right to 12 u sum pi |x - c|, and sum pi |x - c| <= D = min(top - low, q + c); hence x - q is right to
16 u (D + |x - c|), q to 16 u (D + q). For K = KL(Q_d || q) = sum q psi(r) the error of t = r - 1 enters by at most
1.3 min(|t|, 1), and sum q min(|t|, 1)^2 <= 3 K, so that by Cauchy and Schwarz it is below
200 u K + 64 u sqrt(K S), S = sum D^2 / q.

Cells that are known to a factor 1 + g, |g| at most the mass gap, move a log ratio of two cells by at most 2.1 g, and a
prior that misses 1 moves ln q by its own gap.
"""

# bounds: proved - docs/proofs/finite_capacity.md, 7.15 and 7.16: rounding of logs of cells, of scaled cells and of rows

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...base import parallel
from ...base.estimate import Kind
from ...base.numerics import LOG_2, BoolArray, FloatArray, IndexArray, IntArray, RealArray, two_sum
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...channels import Channel, DefaultChannel, SparseChannel
from ...kernels import _channel_blocks, _channel_quantities
from ...posteriors.blocks import BlockTree, Node
from .channel_with_prior import Bracket, ChannelWithPrior, QuantityRequest, rows_are_enumerable, with_distinct_rows

Task = TypeVar("Task")
State = tuple[Any, ...]  # sums and extremes of some blocks, which a merger of two of them takes
Sums = tuple[float, float, float]  # a sum in two parts, and the largest term

_BLOCK_CELLS = 2**21  # cells in one task: 16 MiB of doubles
_LEAST_ROWS = 16  # rows in one task, at least
_SAMPLE_ROWS = 64  # rows from which the first centre is taken
# bound: none - columns in which q is smaller are scaled, well above the smallest normal double
_TINY_COLUMN = 1e-300
NAMES: tuple[str, ...] = _channel_quantities.NAMES  # of the quantities, in the order of the kernel
_OF_ROWS = ("cd_lmip", "pointwise_lmip")  # quantities for which the rows are gone through again
_BIT = {name: 1 << index for index, name in enumerate(NAMES)}  # what asks the kernel for a quantity
_EXTREME: tuple[Kind, str] = ("exact", "largest and smallest cell of each column")  # of quantities of extreme cells
# Kind of the bounds and ``method`` of each quantity.
KINDS: dict[str, tuple[Kind, str]] = {
    **dict.fromkeys(NAMES, _EXTREME), **dict.fromkeys(_OF_ROWS, ("certified", "divergence of each row")),
    **dict.fromkeys(("bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage"),
                    ("exact", "largest joint probability of each column")),
}


class RowBlocks:
    """The rows of a channel in fixed blocks of doubles or singles, scaled by column if that is needed."""

    def __init__(self, model: ChannelWithPrior, n_jobs: int | None = None, progress: Progress = None) -> None:
        self.n_jobs, self.progress = n_jobs, progress
        self.channel: Any = model.channel
        self.prior = np.ascontiguousarray(model.weights)
        self.gap = model.gap
        n, m = self.channel.shape
        self.slices = parallel.blocks(n, max(_LEAST_ROWS, _BLOCK_CELLS // m))
        stored = isinstance(self.channel, (Channel, SparseChannel))
        self.log = not stored or getattr(self.channel, "log", False)  # whether logarithms of cells are read
        self.log_scale: FloatArray | None = None  # natural logarithms; of powers of 2 where cells are plain
        self.largest_log = 0.0  # size of the largest finite logarithm of a cell that was read

    @functools.cached_property
    def total(self) -> float:
        """Sum of the prior."""
        sums = [np.sum(self.prior[part], dtype=np.longdouble) for part in self.slices]
        high, low, _ = _merged_sums([(float(total), float(total - float(total)), 0.0) for total in sums])
        return high + low

    @functools.cached_property
    def columns(self) -> ColumnStatistics:
        """Statistics of the columns, by the first pass."""
        return _column_statistics(self)

    def map(self, task: Callable[[slice], Task], *, silent: bool = False) -> Iterator[Task]:
        """Results of a task for each block, in order, with the threads and (unless ``silent``) the progress reports."""
        progress = None if silent else self.progress
        return parallel.ordered_map(task, self.slices, n_jobs=self.n_jobs, progress=progress, shared=True)

    @property
    def log_error(self) -> float:
        """Bound on the error of the logs of cells that are made from parameters; 0 for cells that are stored."""
        return float(self._error_of_logs(self.largest_log))

    @property
    def mass_error(self) -> float:
        """The same, as a mean over the cells of a row, or over those of the largest joint probabilities."""
        largest = 0.0 if self.log_scale is None else float(np.abs(self.log_scale).max(initial=0.0))
        return float(self._error_of_logs(largest + math.log(self.channel.outputs)))

    def _error_of_logs(self, size: Any) -> Any:
        if isinstance(self.channel, Channel) or not self.log:
            return 0.0
        return self.channel._log_error(size + math.log(self.channel.outputs))

    @property
    def unscaled(self) -> bool:
        """Whether blocks hold the cells as the channel stores them."""
        return not self.log and self.log_scale is None

    def block(self, part: slice) -> RealArray:
        """Rows of a block, scaled."""
        return self.scaled(self.read(part))

    def read(self, part: slice) -> RealArray:
        """Rows of a block: natural logarithms, or cells as they are stored."""
        start, stop = part.start, part.stop
        cells: RealArray = self.channel._log_rows(start, stop) if self.log else self.channel._rows(start, stop, False)
        return cells

    def scaled(self, cells: RealArray) -> RealArray:
        """The scaled cells of rows that were read."""
        if self.log_scale is None:
            return cells
        if not self.log:
            return np.ldexp(cells.astype(np.float64), -self.exponents)
        with np.errstate(over="ignore"):
            return np.exp(cells - self.log_scale)

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
    relative_error: float  # of the cells above 3 q
    sums: Sums  # sum of prior times divergence in two parts, and the largest divergence


def _column_statistics(rows: RowBlocks) -> ColumnStatistics:
    """The first pass; repeated if columns have to be scaled, or if the sample rows gave a bad centre."""
    extremes: FloatArray | None = None
    if rows.log:
        each = rows.map(lambda part: _extreme_logs(rows.read(part), rows.prior[part] > 0), silent=True)
        blocks = np.stack(list(each))
        high, low = blocks.max(axis=0), blocks.min(axis=0)
        extremes = np.stack([high[0], low[1], high[2], low[3]])
        rows.log_scale = np.where(np.isfinite(extremes[0]), extremes[0], 0.0)
        rows.largest_log = float(high[4].max())
    begin = int(np.argmax(rows.prior > 0))
    sample = slice(begin, min(begin + _SAMPLE_ROWS, rows.prior.size))
    centre = rows.block(sample)[rows.prior[sample] > 0].min(axis=0).astype(np.float64)

    def statistics(part: slice) -> State:
        return tuple(_channel_blocks.column_statistics(rows.block(part), rows.prior[part], centre, part.start))

    while True:
        numbers, map_secret = _merged_blocks(rows.map(statistics), _merge_columns)
        top, low, best, high, remainder, other_top, other_low = numbers
        if extremes is None:
            extremes = np.stack([top, low, other_top, other_low])
        delta = (high + remainder) / rows.total
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
    spread, relative_error = np.minimum(span, q + centre), 0.0
    if rows.log and rows.log_scale is not None:  # 16 u D also has to cover the rounding of cells and of q
        with np.errstate(divide="ignore", invalid="ignore"):
            drop = np.where(q > 0, np.log(np.maximum(top, q) / q), 0.0)
        slope = (rows._error_of_logs(1.0) - rows._error_of_logs(0.0)) / U  # of the error of a log in its size
        units = 0.5 + 0.2 * rows._error_of_logs(np.abs(rows.log_scale)) / U + 0.1 * slope
        covered = 3.0 * (1.0 + drop) * q
        spread, span = spread + units * np.minimum(top, covered), span + units * top
        if (top > covered).any():
            relative_error = rows.mass_error + U * (3.0 + (1.0 + slope) * float(drop.max(initial=0.0)))
    return ColumnStatistics(top, low, best, map_secret, centre, delta, q, spread, span, relative_error, extremes)


def row_statistics(
    rows: RowBlocks, *, change: FloatArray | None = None, posteriors: Any = None, divergences: bool = True
) -> RowStatistics:
    """The second pass.

    ``change`` is P - q for the distribution P of the release under which the mean of r - 1 is taken. ``posteriors``
    takes f(d|w): an array of shape (n, m), or a function of a slice and its block. Without ``divergences``, which cost
    most of the pass, they are 0.
    """
    first = rows.columns
    inverse, release = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs), rows.rescaled(first.q)
    energy = _channel_blocks.accurate_sum(release * (first.spread * inverse) ** 2)

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
    each = np.maximum(each, 0.0)
    sums = _merged_sums([_row_sums(rows.prior[part], each[part]) for part in rows.slices])
    return RowStatistics(each, mean_changes, energy, first.relative_error, sums)


def _row_sums(prior: FloatArray, divergences: FloatArray) -> Sums:
    """Of a block: sum of prior times divergence in two parts, and the largest divergence."""
    return _channel_blocks.accurate_sum(prior * divergences), 0.0, float(divergences.max())


def _merged_sums(sums: Iterable[Sums]) -> Sums:
    """The same of all blocks, from those of each."""
    high, low, largest = _merged_blocks(sums, _merge_sums)
    return high, low, largest


def _merge_sums(first: Sums, second: Sums) -> Sums:
    (a, low, most), (b, remainder, largest) = first, second
    high, error = two_sum(a, b)
    return high, low + remainder + error, max(most, largest)


def _merged_blocks(states: Iterable[State], merge: Callable[[State, State], State]) -> State:
    """States of all blocks as one, merged in pairs, pairs of pairs and so on."""
    return BlockTree(merge, (Node(0, number, state) for number, state in enumerate(states))).total()


def _merge_columns(first: State, second: State) -> State:
    _channel_blocks.merge_column_statistics(*first, *second)
    return first


def _extreme_logs(logs: RealArray, positive: BoolArray) -> FloatArray:
    """Largest and smallest log of each column, for the secrets of positive prior probability and the others, and the
    size of the largest finite one."""
    return np.stack([
        extreme for some in (logs[positive], logs[~positive])
        for extreme in (some.max(axis=0, initial=-np.inf), some.min(axis=0, initial=np.inf))
    ] + [np.max(np.abs(logs), axis=0, where=np.isfinite(logs), initial=0.0)])


def wanted(names: Iterable[str]) -> int:
    """What asks the kernel for these quantities."""
    return functools.reduce(operator.or_, map(_BIT.__getitem__, names), 0)


def is_plain(model: ChannelWithPrior) -> bool:
    """Whether the channel is a matrix of probabilities in memory that one call of the kernel goes through."""
    channel = model.channel
    return type(channel) is Channel and channel._plain and is_one_block(channel.cells.size)


def is_one_block(cells: int) -> bool:
    """Whether a channel of this many cells is taken by one call of the kernel."""
    return cells <= _BLOCK_CELLS


def plain_brackets(request: QuantityRequest) -> dict[str, Bracket]:
    """The named quantities of a written channel whose cells are one block, by one call of the kernel.

    None of them where a column is so small that it has to be scaled.
    """
    (channel, prior), names, _, progress, _ = request
    cells = channel.cells  # type: ignore[attr-defined]
    # the prior was checked: infinity is no limit of its gap
    numbers = _channel_quantities.of_channel(cells, prior, channel.mass_gap, math.inf, wanted(names))
    if numbers is None:
        return {}
    if progress:
        report, close = parallel.progress_reporter(progress, 1)
        report(1)
        close()
    return {name: _bracket(name, *numbers[(start := 3 * NAMES.index(name)) : start + 3]) for name in names}


def brackets_from_rows(request: QuantityRequest) -> dict[str, Bracket]:
    """The named quantities from passes through the rows; none if they are too many and may be omitted."""
    model = request.model
    must = not request.omit_unavailable or isinstance(model.channel, DefaultChannel)
    if not must and not rows_are_enumerable(model.channel):
        return {}
    rows = RowBlocks(with_distinct_rows(model), request.n_jobs, request.progress)
    result = column_brackets(rows, request.names)
    if not set(request.names).isdisjoint(_OF_ROWS):  # a second pass
        result |= row_brackets(rows, row_statistics(rows))
    return result


def column_brackets(rows: RowBlocks, names: Collection[str]) -> dict[str, Bracket]:
    """Those of the named quantities that depend on the columns: all but the information of rows."""
    first = rows.columns
    of_columns = [name for name in names if name not in _OF_ROWS]
    guess = int(np.argmax(rows.prior))  # the first secret of the largest prior probability
    scale, factor, scaling = rows.log_scale, None, 2 * rows.mass_error
    if scale is not None:
        factor = np.exp(scale) if rows.log else np.ldexp(1.0, rows.exponents)
        scaling += 4 * U * (8 + float(np.abs(scale).max()))
    stored = rows.channel._rows(guess, guess + 1, rows.log)
    columns = first.top, first.low, first.best, first.centre, first.delta, first.q, first.spread
    numbers = _channel_quantities.of_columns(
        columns, first.extremes, scale if rows.log else None, factor,
        *(np.ascontiguousarray(row[0], dtype=np.float64) for row in (rows.block(slice(guess, guess + 1)), stored)),
        float(rows.prior[guess]), (rows.channel.mass_gap, rows.gap, rows.log_error, scaling, 1.1 * rows.mass_error),
        wanted(of_columns),
    )
    sides = [NAMES.index("xi_plus"), NAMES.index("xi_minus")]  # with logs of cells that are far from q
    numbers[sides] = np.maximum(numbers[sides] + (0.0, -rows.log_error, rows.log_error), 0.0)
    return {name: _bracket(name, *numbers[NAMES.index(name)].tolist()) for name in of_columns}


def row_brackets(rows: RowBlocks, second: RowStatistics) -> dict[str, Bracket]:
    """Mutual information, and the largest divergence of a row from the distribution of the release."""
    high, low, largest = second.sums

    def of_rows(prior: list[float], divergences: list[float]) -> FloatArray:
        sums = rows.total, second.spread_energy, rows.channel.mass_gap, rows.gap, second.relative_error
        return np.asarray(_channel_quantities.of_rows(np.array(prior), np.array(divergences), *sums))

    numbers = of_rows([1.0, 1.0], [high, low])[0], of_rows([1.0], [largest])[1]  # the sum in its two parts
    return {name: _bracket(name, *row.tolist()) for name, row in zip(_OF_ROWS, numbers, strict=True)}


def _bracket(name: str, value: float, lower: float, upper: float) -> Bracket:
    return Bracket(value, lower, upper, *KINDS[name])
