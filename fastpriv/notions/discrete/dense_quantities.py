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
from numpy.typing import NDArray

from ...base import parallel
from ...base.estimate import Kind
from ...base.numerics import LOG_2, MACHINE_EPSILON, BoolArray, FloatArray, IndexArray, IntArray, RealArray
from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.parallel import Progress
from ...channels import AnyChannel, Channel, DefaultChannel, ShardedChannel, SparseChannel
from ...kernels import _channel_blocks, _channel_quantities
from ...posteriors.block_tree import BlockTree, Node
from .channel_with_prior import Bracket, ChannelWithPrior, QuantityRequest, rows_are_enumerable, with_distinct_rows

__all__ = [
    "KINDS", "NAMES", "SAMPLE_ROWS", "ColumnStatistics", "PriorFacts", "RowBlocks", "RowStatistics", "State",
    "brackets_from_passes", "brackets_from_rows", "column_brackets", "column_statistics", "has_logs",
    "is_one_block", "is_plain", "merged_facts", "merged_row_statistics", "plain_brackets", "prior_facts",
    "row_brackets", "row_statistics", "rows_of_block", "wanted",
]  # fmt: skip

Task = TypeVar("Task")
State = tuple[NDArray[Any], ...]  # sums and extremes of some blocks, which a merger of two of them takes

_BLOCK_CELLS = 2**21  # cells in one task: 16 MiB of doubles
_LEAST_ROWS = 16  # rows in one task, at least
SAMPLE_ROWS = 64  # rows from which the first centre is taken
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
        self.channel: Any = model.channel
        self.prior = np.ascontiguousarray(model.weights)
        self.gap = model.gap
        n, m = self.channel.shape
        self.slices = parallel.blocks(n, rows_of_block(m))
        self.log = has_logs(self.channel)
        self.log_scale: FloatArray | None = None  # natural logarithms; of powers of 2 where cells are plain

    def weights(self, part: slice) -> FloatArray:
        """Prior probabilities of the secrets of a block."""
        return self.prior[part]

    @functools.cached_property
    def facts(self) -> PriorFacts:
        """What the passes use of the prior and of the sums of rows."""
        parts = (prior_facts(self.prior[part], part.start, 0.0) for part in self.slices)
        tree = BlockTree(merged_facts, (Node(0, number, (facts,)) for number, facts in enumerate(parts)))
        return PriorFacts.of(tree.total()[0], self.gap, self.channel.mass_gap)

    @property
    def sample(self) -> slice:
        """Rows from which the first centre is taken: some from the first one of positive prior probability on."""
        begin = int(np.argmax(self.prior > 0))
        return slice(begin, min(begin + SAMPLE_ROWS, self.prior.size))

    def map(self, task: Callable[[slice], Task], *, silent: bool = False) -> Iterator[Task]:
        """Results of a task for each block, in order, with the threads and (unless ``silent``) the progress reports."""
        progress = None if silent else self.progress
        return parallel.ordered_map(task, self.slices, n_jobs=self.n_jobs, progress=progress, shared=True)

    def merged(
        self, task: Callable[[RowBlocks, slice, RealArray], State], merge: Callable[[State, State], State],
        silent: bool = False,
    ) -> State:  # fmt: skip
        """The states of all blocks, merged by the tree of ``block_tree``; a task takes a block and its cells."""
        states = self.map(lambda part: task(self, part, self.read(part)), silent=silent)
        return BlockTree(merge, (Node(0, number, state) for number, state in enumerate(states))).total()

    @property
    def log_error(self) -> float:
        """Bound on the error of the logs of cells that are made from parameters; 0 for cells that are stored."""
        if isinstance(self.channel, (Channel, ShardedChannel)) or not self.log:
            return 0.0
        return 2.0**-50 * self._largest_log

    @property
    def row_sum_error(self) -> float:
        """What a row sum can miss 1 by where cells are made from parameters; 0 for cells that are stored."""
        if isinstance(self.channel, (Channel, ShardedChannel)) or not self.log:
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
    row_gap: float  # what row sums miss 1 by
    relative_error: float  # of the cells above 3 q
    sums: FloatArray  # sum of prior times divergence in two parts, and the largest divergence


class PriorFacts(NamedTuple):
    """What the passes use of a prior and of the sums of rows."""

    total: float  # sum of the prior
    before: float  # its largest entry
    likeliest: int  # the first secret that has it
    gap: float  # what the sum of the prior misses 1 by
    row_gap: float  # what sums of rows miss 1 by, at most

    @classmethod
    def of(cls, facts: FloatArray, gap: float, row_gap: float) -> PriorFacts:
        """From the merged facts of all blocks."""
        return cls(float(facts[0] + facts[1]), float(facts[2]), int(facts[3]), gap, row_gap)


def column_statistics(rows: RowBlocks, *, silent: bool = False) -> ColumnStatistics:
    """The first pass; repeated if columns have to be scaled, or if the sample rows gave a bad centre."""
    extremes = rows.merged(_extreme_logs, _merged_extremes, True)[0] if rows.log else None
    if extremes is not None:
        rows.log_scale = np.where(np.isfinite(extremes[0]), extremes[0], 0.0)
    sample = rows.sample
    centre = rows.block(sample)[rows.weights(sample) > 0].min(axis=0).astype(np.float64)
    while True:
        numbers, map_secret = rows.merged(functools.partial(_column_state, centre), _merged_columns, silent)
        top, low, best, high, rest, other_top, other_low = numbers
        if extremes is None:
            extremes = np.stack([top, low, other_top, other_low])
        delta = (high + rest) / rows.facts.total
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
    inverse, release, energy = output_distribution(rows, first)

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
    states = ((row_sums(rows.prior[part], each[part]),) for part in rows.slices)
    sums = BlockTree(merged_row_sums, (Node(0, number, state) for number, state in enumerate(states))).total()[0]
    return RowStatistics(each, mean_changes, energy, rows.facts.row_gap, first.relative_error, sums)


def merged_row_statistics(rows: RowBlocks, first: ColumnStatistics) -> RowStatistics:
    """The second pass without the divergences of single rows."""
    inverse, release, energy = output_distribution(rows, first)
    task = functools.partial(_row_state, first.centre, first.delta, inverse, release)
    sums, none = rows.merged(task, merged_row_sums)[0], np.empty(0)
    return RowStatistics(none, none, energy, rows.facts.row_gap, first.relative_error, sums)


def output_distribution(rows: RowBlocks, first: ColumnStatistics) -> tuple[FloatArray, FloatArray, float]:
    """1/q of the scaled columns, 0 for those that never occur; q; and S."""
    inverse = np.divide(1.0, first.q, out=np.zeros_like(first.q), where=first.occurs)
    release = rows.rescaled(first.q)
    return inverse, release, _channel_blocks.accurate_sum(release * (first.spread * inverse) ** 2)


def _row_state(
    centre: FloatArray, delta: FloatArray, inverse: FloatArray, release: FloatArray, rows: RowBlocks, part: slice,
    cells: RealArray,
) -> State:  # fmt: skip
    prior = rows.weights(part)
    each = _channel_blocks.row_statistics(rows.scaled(cells), prior, centre, delta, inverse, release, None, None)[0]
    return (row_sums(prior, np.where(prior > 0, np.maximum(each, 0.0), 0.0)),)


def row_sums(prior: FloatArray, divergences: FloatArray) -> FloatArray:
    """Of a block: sum of prior times divergence in two parts, and the largest divergence."""
    return np.array([_channel_blocks.accurate_sum(prior * divergences), 0.0, divergences.max()])


def merged_row_sums(one: State, other: State) -> State:
    """The same of two runs of blocks."""
    (a, low, most), (b, rest, largest) = one[0], other[0]
    high, error = _two_sum(a, b)
    return (np.array([high, low + rest + error, max(most, largest)]),)


def prior_facts(prior: FloatArray, start: int, row_gap: float) -> FloatArray:
    """Of a block: sum of the prior in two parts, its largest entry, the first secret that has it, gap of row sums."""
    total = np.sum(prior, dtype=np.longdouble)
    high, likeliest = float(total), int(np.argmax(prior))
    return np.array([high, float(total - high), prior[likeliest], start + likeliest, row_gap])


def merged_facts(one: State, other: State) -> State:
    """The same of two runs of blocks."""
    (a, low, most, first, gap), (b, rest, largest, second, other_gap) = one[0], other[0]
    high, error = _two_sum(a, b)
    likeliest = second if largest > most else first
    return (np.array([high, low + rest + error, max(most, largest), likeliest, max(gap, other_gap)]),)


def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum and its rounding error."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def _column_state(centre: FloatArray, rows: RowBlocks, part: slice, cells: RealArray) -> State:
    """Statistics of the columns of a block, and the secrets of the largest joint probabilities."""
    state = _channel_blocks.column_statistics(rows.scaled(cells), rows.weights(part), centre, part.start)
    return tuple(state)


def _merged_columns(one: State, other: State) -> State:
    _channel_blocks.merge_column_statistics(*one, *other)
    return one


def _extreme_logs(rows: RowBlocks, part: slice, logs: RealArray) -> State:
    """Largest and smallest logarithm of each column, for the secrets of positive prior probability and the others."""
    positive = rows.weights(part) > 0
    return (np.stack([
        extreme for some in (logs[positive], logs[~positive])
        for extreme in (some.max(axis=0, initial=-np.inf), some.min(axis=0, initial=np.inf))
    ]),)  # fmt: skip


def _merged_extremes(one: State, other: State) -> State:
    (a,), (b,) = one, other
    a[::2], a[1::2] = np.maximum(a[::2], b[::2]), np.minimum(a[1::2], b[1::2])
    return one


def rows_of_block(outputs: int) -> int:
    """Rows in one task."""
    return max(_LEAST_ROWS, _BLOCK_CELLS // outputs)


def has_logs(channel: AnyChannel | ShardedChannel) -> bool:
    """Whether the logarithms of cells are read."""
    stored = isinstance(channel, (Channel, ShardedChannel, SparseChannel))
    return not stored or getattr(channel, "log", False)


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
    """The named quantities from passes through the rows; none if there are too many and what is unavailable is omitted.
    """
    model = request.model
    must = not request.omit_unavailable or isinstance(model.channel, DefaultChannel)
    if not must and not rows_are_enumerable(model.channel):
        return {}
    return brackets_from_passes(RowBlocks(with_distinct_rows(model), request.n_jobs, request.progress), request.names)


def brackets_from_passes(rows: RowBlocks, names: Collection[str]) -> dict[str, Bracket]:
    """The named quantities from one pass through the rows, or from two for the information of rows."""
    first = column_statistics(rows)
    result = column_brackets(rows, first, names)
    if not set(names).isdisjoint(_OF_ROWS):
        result |= row_brackets(rows, merged_row_statistics(rows, first))
    return result


def column_brackets(rows: RowBlocks, first: ColumnStatistics, names: Collection[str]) -> dict[str, Bracket]:
    """Those of the named quantities that depend on the columns: all but the information of rows."""
    of_columns = [name for name in names if name not in _OF_ROWS]
    guess = rows.facts.likeliest
    scale, factor, scaling = rows.log_scale, None, 2 * rows.log_error
    if scale is not None:
        factor = np.exp(scale) if rows.log else np.ldexp(1.0, rows.exponents)
        scaling += 4 * U * (8 + float(np.abs(scale).max()))
    stored = rows.channel._rows(guess, guess + 1, rows.log)
    columns = first.top, first.low, first.best, first.centre, first.delta, first.q, first.spread
    numbers = _channel_quantities.of_columns(
        columns, first.extremes, scale if rows.log else None, factor,
        *(np.ascontiguousarray(row[0], dtype=np.float64) for row in (rows.block(slice(guess, guess + 1)), stored)),
        rows.facts.before, (rows.facts.row_gap, rows.facts.gap, rows.log_error, scaling, rows.row_sum_error),
        wanted(of_columns),
    )  # fmt: skip
    return {name: _bracket(name, *numbers[NAMES.index(name)].tolist()) for name in of_columns}


def row_brackets(rows: RowBlocks, second: RowStatistics) -> dict[str, Bracket]:
    """Mutual information, and the largest divergence of a row from the distribution of the release."""
    facts, (high, low, largest) = rows.facts, second.sums

    def of_rows(prior: list[float], divergences: list[float]) -> FloatArray:
        sums = facts.total, second.spread_energy, second.row_gap, facts.gap, second.relative_error
        return np.asarray(_channel_quantities.of_rows(np.array(prior), np.array(divergences), *sums))

    numbers = of_rows([1.0, 1.0], [high, low])[0], of_rows([1.0], [largest])[1]  # the sum in its two parts
    return {name: _bracket(name, *row.tolist()) for name, row in zip(_OF_ROWS, numbers, strict=True)}


def _bracket(name: str, value: float, lower: float, upper: float) -> Bracket:
    return Bracket(value, lower, upper, *KINDS[name])
