"""Quantities of stacks of mixtures: one validation, blocks of rows on threads, one Estimate.

Notation: the leading axes of all stacks, and those of ``epsilon`` or ``order`` but its last one, are broadcast to the
leading axes of the answer; a row is one position of them, and its points are the last axis of the parameter.

Hockey-stick curves in one dimension come from a loop over rows in the kernel. Rows whose brackets are wide are redone
one by one as single calls are, so that every row has the bits of its single call. Integrals in one dimension
come from a loop over rows in their kernel in the same way. Other quantities are computed row by row with the functions
for single mixtures. Blocks of rows do not depend on the number of threads, and samples of a row
come from streams of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import KINDS, Estimate, Kind, Unit, combined_costs
from ..base.numerics import LOG_2, BoolArray, FloatArray, IndexArray
from ..base.values import broadcast_positions, errors_at, with_position
from ..distributions import GaussianMixture, MixtureStack
from ..kernels import _hockey_stick_curves, _quadrature
from ..sampling.options import Request, Sampling
from .one_dimension import monotone_pieces
from .one_dimension.quadrature import MAX_EXPONENTIALS, STOPPED, TIME_SPENT, Deadline, kind_and_method
from .one_dimension.separated_scales import is_wide

_BLOCK_WORK = 50_000  # of a block of rows, in pairs of components and crossings: some milliseconds, up to 0.1 s
_MAX_BLOCK_ROWS = 2048  # rows whose brackets stand in memory beside the answer
_ROWS_AT_ONCE = 16  # rows of a block of quantities that are computed one by one, 0.1 to some milliseconds each
_BITS = 1 << np.arange(6)  # one for each count of the kernel
# bound: none - delta up to which equal laws may have an upper bound above 0
_ROUNDING = 1e-12
_ROW_STREAM = 8  # key of the random streams of rows below the root of the call

Row = tuple[GaussianMixture, ...]


class Stacks(NamedTuple):
    """Stacks that were broadcast against each other."""

    stacks: tuple[MixtureStack, ...]
    singles: tuple[GaussianMixture | None, ...]  # the mixtures that were given in place of stacks
    shape: tuple[int, ...]
    invalid: IndexArray  # rows that have no answer, counted along the flattened shape
    errors: Mapping[tuple[int, ...], str]  # their texts
    records: bool  # whether a row that fails is noted instead of raising

    @property
    def size(self) -> int:
        """The number of rows."""
        return math.prod(self.shape)

    @property
    def valid(self) -> IndexArray:
        """The rows that have an answer."""
        good = np.ones(self.size, dtype=bool)
        good[self.invalid] = False
        return np.flatnonzero(good)

    def in_one_dimension(self, request: Request) -> bool:
        """Whether the rows have a method in one dimension, and no samples are forced."""
        return self.stacks[0].dimension == 1 and not request.forced

    def position(self, row: int) -> tuple[int, ...]:
        """The position of a row."""
        return tuple(int(i) for i in np.unravel_index(row, self.shape)) if self.shape else ()

    def mixtures(self, row: int) -> Row:
        """The mixtures of a row."""
        index = self.position(row)
        result = []
        for stack, single in zip(self.stacks, self.singles, strict=True):
            trailing_index = index[len(index) - len(stack.shape) :]
            location = tuple(0 if n == 1 else i for i, n in zip(trailing_index, stack.shape, strict=True))
            result.append(stack._item(location) if single is None else single)
        return tuple(result)

    def fields(self, which: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights, means and standard deviations of one stack in one dimension, broadcast to all rows."""
        stack = self.stacks[which]
        w, m, s = (
            np.broadcast_to(field, self.shape + field.shape[len(stack.shape) :])
            for field in (stack.weights, stack.means, stack.sigmas) if field is not None
        )
        return w, m, s


def stacks_of(distributions: Mapping[str, Any], axes: tuple[int, ...] = (), parameter: str = "") -> Stacks:
    """Check and broadcast stacks and mixtures, by the names of arguments, with the leading axes of a parameter."""
    stacks: list[MixtureStack] = []
    singles: list[GaussianMixture | None] = []
    for name, item in distributions.items():
        singles.append(item if isinstance(item, GaussianMixture) else None)
        if isinstance(item, GaussianMixture):
            item = MixtureStack._of_one(item)
        if not isinstance(item, MixtureStack):
            raise DomainError(
                f"{name} must be a GaussianMixture or a MixtureStack beside a stack; got {validate.shown(item)}. Build "
                "one of these."
            )
        if stacks and item.dimension != stacks[0].dimension:
            raise ShapeError(
                f"{name} must have the dimension of p, {stacks[0].dimension}; got {item.dimension}. Both must be on "
                "one space."
            )
        stacks.append(item)
    shapes = [stack.shape for stack in stacks]
    try:
        shape = np.broadcast_shapes(*shapes, axes)
    except ValueError:
        more = f" and leading axes {axes} of {parameter}" if axes else ""
        raise ShapeError(
            f"{' and '.join(distributions)} must have leading axes that broadcast; got "
            f"{' and '.join(map(str, shapes))}{more}. Add axes of length 1 for a grid."
        ) from None
    validate.grid("stacks", shape)
    texts: dict[tuple[int, ...], str] = {}
    for stack in stacks:
        if stack.errors:
            texts = errors_at(stack, broadcast_positions(stack.shape, shape)) | texts
    texts = dict(sorted(texts.items()))
    invalid = np.array([int(np.ravel_multi_index(at, shape)) if at else 0 for at in texts], dtype=np.intp)
    return Stacks(tuple(stacks), tuple(singles), shape, invalid, texts, any(stack.records for stack in stacks))


def hockey_stick(
    p: Any, q: Any, epsilon: FloatArray, request: Request, *, logs: bool, function: Callable[..., Estimate]
) -> Estimate:
    """H_{e^epsilon}(P||Q) of stacks or its logarithm; ``function`` is that of single mixtures, of p, q and epsilon."""
    both = stacks_of({"p": p, "q": q}, epsilon.shape[:-1], "epsilon")
    points = epsilon.shape[-1:]
    unit: Unit = "log probability" if logs else "probability"
    validate.grid("epsilon with stacks", both.shape + points)
    grid = np.array(np.broadcast_to(epsilon, both.shape + points), order="C")
    trivial = (-LOG_2, -math.inf, 0.0) if logs else (0.5, 0.0, 1.0)
    if not both.in_one_dimension(request):
        return _row_by_row(both, grid, points, request, function, unit=unit, trivial=trivial)
    deadline = Deadline(time.monotonic() + request.time_budget.remaining)

    def answer(*arguments: Any, sampling: Sampling | None) -> Estimate:
        return monotone_pieces.hockey_stick_divergence(*arguments, logs=logs, deadline=deadline)

    kernel = functools.partial(_settle_curves, both, grid.reshape(both.size, math.prod(points)), logs, deadline)
    k = sum(stack.components for stack in both.stacks)
    return _row_by_row(both, grid, points, request, answer, unit=unit, trivial=trivial, kernel=kernel,
                       work=k * k + k * math.prod(points))


def quantity(
    distributions: Mapping[str, Any], request: Request, exact: Callable[..., Estimate] | None,
    function: Callable[..., Estimate], *, parameter: FloatArray | None = None, integral: str = "",
    trivial: tuple[float, float, float] = (0.0, 0.0, math.inf), **options: Any,
) -> Estimate:
    """A quantity in nats of stacks, row by row.

    ``exact`` is its method in one dimension, and ``function`` that of the public interface, both of mixtures, of the
    row's points of ``parameter`` if there is one, and of ``options``; ``integral`` is its name in the kernel of
    integrals, which goes first. ``trivial`` is the value and the bounds of rows that begin after ``max_seconds``.
    """
    axes, points = ((), ()) if parameter is None else (parameter.shape[:-1], parameter.shape[-1:])
    stacks, kernel = stacks_of(distributions, axes, "order"), None
    grid = None if parameter is None else np.broadcast_to(parameter, stacks.shape + points)
    if exact is not None and stacks.in_one_dimension(request):
        in_one_dimension, deadline = exact, Deadline(time.monotonic() + request.time_budget.remaining)
        if integral:
            kernel = functools.partial(_settle, stacks, grid, integral, options["certified"], deadline)

        def answer(*arguments: Any, sampling: Sampling | None) -> Estimate:
            return in_one_dimension(*arguments, deadline=deadline, **options)
    else:

        def answer(*arguments: Any, sampling: Sampling | None) -> Estimate:
            return function(*arguments, sampling=sampling, **options)

    k = sum(stack.components for stack in stacks.stacks)
    return _row_by_row(stacks, grid, points, request, answer, unit="nats", trivial=trivial, kernel=kernel,
                       work=(k * k + k) * max(math.prod(points), 1))


class _Settled(NamedTuple):
    """Rows of a block that the kernel of integrals settled."""

    rows: IndexArray = np.zeros(0, dtype=np.intp)
    methods: tuple[tuple[Kind, str], ...] = ()  # kinds of bounds, with methods
    cost: Mapping[str, Any] = MappingProxyType({})


def _settle_curves(
    both: Stacks, grid: FloatArray, logs: bool, deadline: Deadline, part: IndexArray, numbers: FloatArray
) -> _Settled:
    """Hockey-stick curves of these rows by one call of the kernel, or by two where masses have gaps.

    Rows whose brackets are wide are not settled, nor those whose brackets elementary bounds contradict.
    """
    fields = both.fields(0), both.fields(1)
    gap_p, gap_q = (
        np.broadcast_to(stack.mass_gaps, both.shape).reshape(-1)[part] if stack.mass_gaps.any() else np.zeros(len(part))
        for stack in both.stacks
    )
    count = grid.shape[1]
    out, cost = np.empty((len(part), count, 6)), np.zeros((len(part), 6), dtype=np.int64)
    redone = np.zeros(len(part), dtype=bool)

    def by_kernel(chosen: BoolArray, levels: FloatArray) -> FloatArray:
        rows = np.empty((*levels.shape, 6))
        some = np.zeros((len(levels), 6), dtype=np.int64)
        _hockey_stick_curves.stack_curves(
            *fields, levels, part[chosen], both.shape, monotone_pieces.MAX_DOUBLE_WIDTH, logs, deadline.expiry, rows,
            some,
        )
        cost[chosen], redone[chosen] = some, is_wide(rows).any(axis=-1)
        return rows

    with_gap = (gap_p != 0.0) | (gap_q != 0.0)
    if not with_gap.all():
        out[~with_gap] = by_kernel(~with_gap, grid[part[~with_gap]])
    if with_gap.any():
        gaps = gap_p[with_gap, None], gap_q[with_gap, None]
        levels = monotone_pieces.epsilons_for_gaps(grid[part[with_gap]], *gaps)
        out[with_gap] = monotone_pieces.rows_for_gaps(by_kernel(with_gap, levels), gaps[0])
    of_curve, zero, rounding = (out[..., 3:], -np.inf, math.log(_ROUNDING)) if logs else (out[..., :3], 0.0, _ROUNDING)
    least, most = of_curve[..., 1], of_curve[..., 2]
    redone |= ((least == zero) & (zero < most) & (most <= rounding)).any(axis=-1)  # single calls see equal laws
    stopped = cost[:, 4] > 0
    settled = ~(redone | (cost[:, 5] > 0)) | stopped
    costs = monotone_pieces.named_costs([*cost[settled, :4].sum(axis=0).tolist(), 0, 0])
    signs = sorted(set(((cost[settled] > 0) @ _BITS).tolist()))  # of the counts, one bit each
    counted = (monotone_pieces.named_costs([bits & bit for bit in _BITS.tolist()]) for bits in signs)
    methods: dict[tuple[Kind, str], None] = {
        ("certified", monotone_pieces.curve_method(counts, closed=False)): None for counts in counted
    }
    numbers[:, part[settled]] = np.moveaxis(of_curve if settled.all() else of_curve[settled], -1, 0)
    return _Settled(part[settled], tuple(methods), costs | STOPPED if stopped.any() else costs)


def _settle(
    stacks: Stacks, grid: FloatArray | None, integral: str, certified: bool, deadline: Deadline, part: IndexArray,
    numbers: FloatArray,
) -> _Settled:
    """Integrals of these rows by one call of the kernel; those of its answers that single calls give are written."""
    count = numbers.shape[2]
    position = np.unravel_index(part, stacks.shape) if stacks.shape else ()
    columns: list[Any] = [None] * 6
    for which in range(len(stacks.stacks)):
        for i, field in enumerate(stacks.fields(which)):
            rows = field[position] if position else field[None]
            columns[3 * which + i] = np.repeat(rows, count, axis=0) if count > 1 else rows
    total = len(part) * count
    out, status, bits = np.empty((3, total)), np.full(total, -1, dtype=np.intc), np.zeros(total, dtype=np.intc)
    cost = np.zeros((total, 2), dtype=np.int64)
    orders = None if grid is None else np.ascontiguousarray(grid[position] if position else grid).reshape(-1)
    calls = [(integral, np.arange(total))]
    if orders is not None:  # of order 1 is the relative entropy; that of order infinity is no integral
        of_order_1, others = orders == 1.0, (orders != 1.0) & np.isfinite(orders)
        calls = [("kl", np.flatnonzero(of_order_1)), (integral, np.flatnonzero(others))]
    for kind, chosen in calls:
        if not chosen.size:
            continue
        chosen_columns = [None if column is None else column[chosen] for column in columns]
        of_order = orders[chosen] if kind == "renyi" and orders is not None else None
        result = np.empty((3, chosen.size)), status[chosen], bits[chosen], cost[chosen]
        _quadrature.stack_integrals(
            _quadrature.KINDS[kind], *chosen_columns, of_order, *result[0], *result[1:3], certified, deadline.expiry,
            MAX_EXPONENTIALS, result[3],
        )
        out[:, chosen], status[chosen], bits[chosen], cost[chosen] = result
    good = status == _quadrature.SETTLED
    if integral in ("js", "entropy"):  # which have no other means to narrow a bracket
        good |= status == _quadrature.WIDE
    row_good = good.reshape(-1, count).all(axis=1)
    numbers[:, part[row_good]] = out.reshape(3, -1, count)[:, row_good]
    selected = np.repeat(row_good, count)
    panels, evaluations = cost[selected].sum(axis=0).tolist()
    spent: dict[str, Any] = {"panels": panels, "evaluations": evaluations} if evaluations else {}
    kinds = tuple(kind_and_method(each) for each in sorted(set(bits[selected].tolist())))
    if (bits[selected] & _quadrature.TIME_SPENT).any():
        spent |= STOPPED
    return _Settled(part[row_good], kinds, spent)


def _row_by_row(
    stacks: Stacks, grid: FloatArray | None, points: tuple[int, ...], request: Request,
    answer: Callable[..., Estimate], *, unit: Unit, trivial: tuple[float, float, float],
    kernel: Callable[[IndexArray, FloatArray], _Settled] | None = None, work: int = 1,
) -> Estimate:
    """The estimates of all rows as one, each by ``answer`` of its mixtures, its points, and options of its sampling.

    A ``kernel`` goes first: it writes the numbers of the rows that it settles, and ``work`` is that of a row.
    """
    root = None if stacks.in_one_dimension(request) else request.root
    options = {field.name: getattr(request, field.name) for field in dataclasses.fields(Sampling)}
    parameters = None if grid is None else grid.reshape(stacks.size, *points)
    rows = stacks.valid

    def estimate_of(row: int) -> Estimate | str:
        remaining = request.time_budget.remaining
        if remaining <= 0.0:
            ends = (np.full(points, number) for number in trivial)
            return Estimate(*ends, kind="certified", unit=unit, method="no bounds" + TIME_SPENT, cost=STOPPED)
        sampling = None
        if root is not None:
            stream = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, _ROW_STREAM, row))
            row_options = {"rng": stream, "n_jobs": 1, "progress": None, "max_seconds": remaining}
            sampling = Sampling(**options | row_options)
        parameter = () if parameters is None else (parameters[row],)
        try:
            return answer(*stacks.mixtures(row), *parameter, sampling=sampling)
        except (DomainError, ShapeError) as error:
            if stacks.records:
                return str(error)
            raise type(error)(with_position(str(error), "row", stacks.position(row))) from None

    def block(where: slice) -> tuple[list[tuple[int, Estimate | str]], _Settled]:
        part = rows[where]
        settled = _Settled() if kernel is None or request.time_budget.remaining <= 0.0 else kernel(part, numbers)
        remaining = [] if len(settled.rows) == len(part) else np.setdiff1d(part, settled.rows).tolist()
        return [(row, estimate_of(row)) for row in remaining], settled

    numbers = np.full((3, stacks.size, math.prod(points)), np.nan)
    failed: dict[int, str] = dict(zip(stacks.invalid.tolist(), stacks.errors.values(), strict=True))
    kinds: set[Kind] = {"exact"}
    methods: dict[str, None] = {}
    costs: list[Mapping[str, Any]] = []
    size = _ROWS_AT_ONCE if kernel is None else min(max(1, _BLOCK_WORK // work), _MAX_BLOCK_ROWS)
    parts = parallel.blocks(len(rows), size) if math.prod(points) else []
    results = parallel.ordered_map(block, parts, n_jobs=request.n_jobs, progress=request.progress, shared=True)
    for estimates, settled in results:
        kinds |= {kind for kind, _ in settled.methods}
        methods |= dict.fromkeys(method for _, method in settled.methods)
        costs.append(settled.cost)
        for row, entry in estimates:
            if isinstance(entry, str):
                failed[row] = entry
                continue
            kinds.add(entry.kind)
            methods[entry.method] = None
            costs.append(entry.cost)
            numbers[:, row] = [np.ravel(number) for number in (entry.value, entry.lower, entry.upper)]
    kind: Kind = max(kinds, key=KINDS.index)
    cost = combined_costs(costs)
    if failed:
        cost["errors"] = {stacks.position(row): text for row, text in sorted(failed.items())}
    return Estimate(
        *(item.reshape(stacks.shape + points) for item in numbers), kind=kind, unit=unit,
        method="; ".join(methods) or "no rows", cost=cost,
        confidence=request.confidence if kind == "statistical" else None,
    )
