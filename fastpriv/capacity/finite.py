"""Finite channels: capacity of any channel with its certificate, and maximal leakage.

Notation: channel Q (n, m), Q[d, w] = P(output w | input d); input distribution p, output distribution q = pQ,
K_d = KL(Q_d || q). Then

    I(p, Q) = sum_d p_d K_d  <=  C = max_p I(p, Q)  <=  max_d K_d

for every p, and both sides meet at the best one. A solver finds p; the bracket is these two numbers, rounded outward,
and holds whatever p the solver found (``interior_point``, csrc/channel/fp_capacity.h). ``structured`` handles channels
of known structure first.
"""

# bounds: proved - a sum over factors: a product each, one sum that is rounded once, and the end; the rest are limits of
#    rtol

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Information, Kind, Result
from ..base.numerics import LOG_2, UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray, rounded_up
from ..channels import AnyChannel, Channel, ChannelStack, DefaultChannel, ProductChannel, TypeClasses
from ..kernels import _channel_capacity, _channel_quantities
from . import interior_point, structured

_CHANNELS_PER_TASK = 4096  # small channels solved in one task, some milliseconds
_METHOD = "primal-dual Newton"  # ``method`` of a capacity that Newton's method found
_METHOD_BY_STRUCTURE = "primal-dual Newton, begun by structure"  # the same, from an input distribution near the best
# The same of two inputs and two outputs.
_BINARY_METHOD = "primal-dual Newton, and the closed form"
# bound: none - relative width that is not called wide, whatever rtol; capacity above which rows are not nearly equal
_ROUNDING_WIDTH, _SMALL_CAPACITY = 1e-12, 2.0**-19
_ENTRY_LIMIT = 2**20  # entries of a distribution, or cells of its channel, up to which it is written out
_SIDE_LIMIT = 2**10  # secrets; a channel of more, with at least as many releases, has more cells than _ENTRY_LIMIT
_REMEDY = "Give channel one row an input, P(output | input)."  # remedy for an array that is not a channel


class HasMatrix(Protocol):
    """An object that writes itself out as rows of probabilities."""

    def matrix(self) -> Any:
        """The rows."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ChannelCapacity(Result):
    """The capacity of a finite channel with the distributions that prove it.

    Parameters
    ----------
    capacity : Estimate
        Certified: ``lower`` is I(input, channel), ``upper`` the largest divergence from ``output``. Of shape (...) for
        a stack of channels.
    input : ndarray, shape (..., n), or None
        The input distribution found. None, as the next two, for a channel that is too large for it to be written out:
        there the distribution is uniform, over all secrets or within the factors.
    output : ndarray, shape (..., m), or None
        The output distribution that it gives.
    divergences : ndarray, shape (..., n), or None
        KL(row || output) for every input, in the unit of the capacity: equal to it where the input is used, at most
        that elsewhere.
    iterations : int or ndarray
        Newton steps taken.
    converged : bool or ndarray
        Whether the two bounds came within ``rtol``, apart from the widening for rows that do not sum to 1.
    method : str
        The method, with a note where a bracket is wider than ``rtol``: since the solver stopped, by rounding, or since
        rows do not sum to 1.

    Examples
    --------
    >>> from fastpriv import channel_capacity
    >>> result = channel_capacity([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25]])
    >>> result.input.round(6), result.converged
    (array([0.5, 0.5, 0. ]), True)
    """

    capacity: Estimate
    input: FloatArray | None
    output: FloatArray | None
    divergences: FloatArray | None
    iterations: int | IntArray
    converged: bool | BoolArray
    method: str


def channel_capacity(
    channel: AnyChannel | ChannelStack | HasMatrix | ArrayLike, *, rtol: float = 1e-9,
    unit: Information = "nats", max_iterations: int = 200, max_seconds: float | None = None, n_jobs: int | None = None,
) -> ChannelCapacity:
    """Capacity of any finite channel: the largest mutual information over all input distributions, with a certificate.

    Parameters
    ----------
    channel : AnyChannel, ChannelStack, array_like of shape (..., n, m), or an object with ``matrix()``
        A channel, or rows of probabilities, P(output w | input d), float64 or float32, that sum to 1 within 1e-9 or
        2e-6. The leading axes are a stack of channels.
    rtol : float, default 1e-9
        Width of the bracket to reach: relative to the capacity, and in nats where it is above 1 nat. From 1e-14 to 1.
    unit : {"nats", "bits"}
        Unit of the answer.
    max_iterations : int, default 200
        Largest number of Newton steps for one channel.
    max_seconds : float, optional
        Seconds after which no further step is begun.
    n_jobs : int, optional
        Threads for a stack; the answers do not depend on it.

    Returns
    -------
    ChannelCapacity
        Bracket (kind ``certified``), input distribution, output distribution and divergences. A bracket that is wider
        than ``rtol`` holds all the same; ``converged`` and ``method`` say so.

    Raises
    ------
    DomainError
        For negative cells, NaN, rows that do not sum to 1, or parameters out of range.
    ShapeError
        For fewer than two axes, no inputs or no outputs.
    MemoryError
        When the work arrays, twice the channel, do not fit.

    Notes
    -----
    Primal-dual Newton's method with predictor and corrector: mostly 4 to 15 steps, at any size, where Blahut-Arimoto
    needs 1/rtol steps if some input is barely unused. A step solves min(n, m) equations. Channels of at most 16 inputs
    and outputs are solved eight at a time by one kernel; two inputs with two outputs have a closed bracket as well.

    Channels that treat all secrets alike (``RandomizedResponse``, ``UnaryEncoding``, ``SubsetSelection``) have a closed
    form at any size, a ``ProductChannel`` the sum over its factors, a ``DefaultChannel`` the capacity of the rows that
    differ; others are written out. The input distribution of a ``GeometricMechanism`` comes from steps in time
    proportional to its inputs, and the bounds from its cells.

    Rows that miss 1 by g widen the bounds by about g sqrt(2 C): they hold for every channel with rows of sum 1 whose
    cells are those given up to a factor 1 + g or 1 - g, such as the rows divided by their sums. Columns with no cell of
    1e-270 count as at most 1e-270.

    **Accuracy**: the bracket always holds; its width is at most ``rtol`` min(1, C), down to about 1e-13 C, also for
    rows that are nearly equal, and beyond that what rows of another sum than 1 need, which ``method`` says;
    ``tests/enclosures/test_discrete_capacity.py``.

    Source: certificate R. G. Gallager, Information theory and reliable communication (1968), theorem 4.5.1; why
    Blahut-Arimoto stalls, Nakagawa, Takei, Hara and Watabe (2021); steps S. Mehrotra (1992).

    Examples
    --------
    >>> from fastpriv import channel_capacity
    >>> erasure = [[0.75, 0.25, 0.0], [0.0, 0.25, 0.75]]
    >>> round(float(channel_capacity(erasure, unit="bits").capacity), 9)
    0.75
    >>> channel_capacity([[[1.0, 0.0], [0.5, 0.5]], [[0.9, 0.1], [0.9, 0.1]]]).capacity.value
    array([0.22314355, 0.        ])
    >>> from fastpriv import RandomizedResponse
    >>> channel_capacity(RandomizedResponse(10**12, 30.0).power(100)).capacity.value
    2497.44...
    """
    parallel.checked(n_jobs)
    if not (type(rtol) is float and 1e-14 <= rtol <= 1):
        rtol = validate.scalar("rtol", rtol, "between 1e-14 and 1", lambda x: (x >= 1e-14) & (x <= 1))
    validate.choice("unit", unit, ("nats", "bits"))
    steps = validate.count("max_iterations", max_iterations, minimum=0, maximum=1_000_000)
    seconds = math.inf
    if max_seconds is not None:
        seconds = validate.scalar("max_seconds", max_seconds, "positive", lambda x: x > 0)
    if type(channel) is Channel and channel._plain and max(channel.cells.shape) <= _channel_capacity.SMALL_SIZE:
        result = _solve_small(channel, rtol, steps)
    else:
        result = _solve(channel, rtol, steps, time.monotonic() + seconds, n_jobs)
    divergences = result.divergences
    if divergences is not None and unit == "bits":
        divergences = divergences / LOG_2
    for array in (result.input, result.output, divergences):
        if array is not None:
            array.setflags(write=False)
    return result if unit == "nats" else replace(result, capacity=result.capacity.to(unit), divergences=divergences)


def _solve_small(channel: Channel, rtol: float, steps: int) -> ChannelCapacity:
    """Capacity in nats of one small channel of plain cells, by one call of the kernel."""
    cells: Any = channel.cells if channel.cells.dtype == np.float64 else channel.cells.astype(np.float64)
    value, lower, upper, width, iterations, p, q, k = _channel_capacity.solve_small_channel(cells, rtol, steps)
    method, converged = _BINARY_METHOD if cells.shape == (2, 2) else _METHOD, width <= rtol
    if not converged:
        method += _not_converged("stopped", width, rtol)
    elif upper - lower > max(rtol, _ROUNDING_WIDTH) * min(1.0, value):
        numbers, arrays = np.array([[value, lower, upper]]), (p[None].copy(), q[None].copy(), k[None].copy())
        gaps = _channel_capacity.row_gaps(cells)[None]
        notes, met = _narrow_wide_brackets(cells[None], gaps, numbers, arrays, rtol, steps, math.inf)
        (value, lower, upper), (p, q, k) = numbers[0].tolist(), (array[0] for array in arrays)
        method, converged = method + notes, bool(met[0])
    estimate = Estimate(value, lower, upper, kind="certified", unit="nats", method=method)
    return ChannelCapacity(estimate, p, q, k, int(iterations), converged, method)


def _narrow_wide_brackets(
    stack: FloatArray, gaps: FloatArray, numbers: FloatArray, arrays: tuple[FloatArray, ...], rtol: float, steps: int,
    deadline: float,
) -> tuple[str, BoolArray]:
    """Replace brackets wider than rtol by those from centred rows where these are narrower, in place.

    Return what to say of the method, and which channels have a bracket whose width rounding does not set. Columns of
    ``numbers`` are value, lower and upper; ``arrays`` are inputs, outputs and divergences.
    """
    notes, worst = "", gaps.max(axis=1)
    upper = numbers[:, 2]
    by_rows = worst * np.sqrt(2.0 * upper) > 0.25 * (upper - numbers[:, 1])  # what misses the sum 1 sets the width
    for i in np.flatnonzero(_are_wide(numbers, rtol) & (upper < _SMALL_CAPACITY) & ~by_rows).tolist():
        result = interior_point.nearly_equal_rows(stack[i], gaps[i], rtol, steps, deadline)
        if result is not None and result.upper - result.lower < numbers[i, 2] - numbers[i, 1]:
            numbers[i, :3], notes = result[:3], ", from centred rows"
            for array, row in zip(arrays, (result.p, result.q, result.divergences), strict=True):
                array[i] = row
    wide = _are_wide(numbers, rtol)
    if (wide & (worst > 0.0)).any():
        largest = float(worst[wide].max())
        notes += f"; wider than rtol, which rows do not allow that miss the sum 1 by up to {rounded_up(largest, 2)}"
    rounded = wide & (worst == 0.0)
    return notes + ("; not converged: wider than rtol by rounding" if rounded.any() else ""), ~rounded


def _are_wide(numbers: FloatArray, rtol: float) -> BoolArray:
    """Which rows of value, lower and upper bound are wider than rtol and rounding let them be."""
    limit = max(rtol, _ROUNDING_WIDTH) * np.minimum(1.0, numbers[:, 0])
    return np.asarray(numbers[:, 2] - numbers[:, 1] > limit)


def _not_converged(stopped: str, width: float, rtol: float) -> str:
    return f"; not converged: {stopped} at a width up to {width:.2g} nats, rtol {rtol:g}"


def _solve(channel: Any, rtol: float, steps: int, deadline: float, n_jobs: int | None) -> ChannelCapacity:
    """Capacity in nats, by structure where that is known."""
    if isinstance(channel, ProductChannel):
        width = max(rtol / sum(channel.powers), 1e-14)
        return _sum_over_factors(
            channel, [_solve(factor, width, steps, deadline, n_jobs) for factor in channel.factors]
        )
    if isinstance(channel, DefaultChannel):
        return _with_equal_rows(channel, _solve(channel.distinct_rows, rtol, steps, deadline, n_jobs))
    if isinstance(channel, AnyChannel) and structured.is_symmetric(channel):
        classes = channel.type_classes()
        if classes is not None:
            return _of_uniform_input(channel, classes, rtol)
    return _solve_cells(channel, rtol, steps, deadline, n_jobs)


def _sum_over_factors(channel: ProductChannel, parts: list[ChannelCapacity]) -> ChannelCapacity:
    """The sum over independent factors; their input and output distributions are multiplied."""
    value, lower, upper = (
        math.fsum(times * float(getattr(part.capacity, end)) for times, part in zip(channel.powers, parts, strict=True))
        for end in ("value", "lower", "upper")
    )
    slack = 4 * UNIT_ROUNDOFF * upper
    factors = [part for times, part in zip(channel.powers, parts, strict=True) for _ in range(min(times, _SIDE_LIMIT))]
    p, q, k = (
        _outer_product([getattr(part, name) for part in factors], operation)
        for name, operation in (("input", np.multiply), ("output", np.multiply), ("divergences", np.add))
    )
    method = f"sum over factors: {'; '.join(dict.fromkeys(part.method for part in parts))}"
    bracket = value, max(0.0, lower - slack), upper + slack
    estimate = Estimate(*bracket, kind="certified", unit="nats", method=method)
    iterations, converged = max(int(part.iterations) for part in parts), all(part.converged for part in parts)
    return ChannelCapacity(estimate, p, q, k, iterations, converged, method)


def _outer_product(factors: list[FloatArray | None], operation: np.ufunc) -> FloatArray | None:
    """The outer product or sum of all factors as a vector; None where one is unknown or the result is too large."""
    result = np.full(1, float(operation.identity))
    for factor in factors:
        if factor is None or result.size * factor.size > _ENTRY_LIMIT:
            return None
        result = operation.outer(result, factor).reshape(-1)
    return result


def _with_equal_rows(channel: DefaultChannel, part: ChannelCapacity) -> ChannelCapacity:
    """The capacity of the distinct rows; all secrets with the default row share its weight in the input."""
    weights = divergences = None
    if channel.inputs <= _ENTRY_LIMIT and part.input is not None and part.divergences is not None:
        listed = channel.indices
        weights = np.full(channel.inputs, part.input[-1] / (channel.inputs - listed.size))
        divergences = np.full(channel.inputs, part.divergences[-1])
        weights[listed], divergences[listed] = part.input[:-1], part.divergences[:-1]
    method = f"equal rows once: {part.method}"
    estimate = Estimate(*part.capacity.floats(), kind="certified", unit="nats", method=method)
    return replace(part, capacity=estimate, input=weights, divergences=divergences, method=method)


def _of_uniform_input(channel: AnyChannel, classes: TypeClasses, rtol: float) -> ChannelCapacity:
    """The closed form for a symmetric channel."""
    value, lower, upper = structured.information(classes, shared_error=structured.shared_error(channel))
    method = "all inputs alike: the uniform distribution"
    estimate = Estimate(value, lower, upper, kind="certified", unit="nats", method=method)
    converged = upper - lower <= rtol * min(1.0, max(value, 1e-290))
    if channel.inputs > _SIDE_LIMIT or not channel._cells_within(_ENTRY_LIMIT):
        return ChannelCapacity(estimate, None, None, None, 0, converged, method)
    uniform = np.full(channel.inputs, 1.0 / channel.inputs)
    divergences = np.full(channel.inputs, value)
    return ChannelCapacity(estimate, uniform, uniform @ channel.matrix(), divergences, 0, converged, method)


def _solve_cells(channel: Any, rtol: float, steps: int, deadline: float, n_jobs: int | None) -> ChannelCapacity:
    """Capacity in nats, from the cells of a channel or a stack of them."""
    cells, gaps = _checked_cells(channel)
    shape, (n, m) = cells.shape[:-2], cells.shape[-2:]
    stack = cells.reshape(-1, n, m)
    small = max(n, m) <= _channel_capacity.SMALL_SIZE
    geometric = not small and interior_point.is_geometric(channel)

    def solve_part(part: slice) -> tuple[FloatArray, ...]:
        allowed = steps if time.monotonic() < deadline else 0
        if small:
            return tuple(_channel_capacity.solve_small_channels(stack[part], gaps[part], rtol, allowed))
        start = interior_point.geometric_input(channel, rtol, deadline) if geometric and allowed else None
        return _solve_large(stack[part.start], gaps[part.start], rtol, allowed, deadline, start)

    if not small:
        validate.memory("channel", 16 * n * (m + 1), "Fewer inputs or outputs will do.")
    tasks = parallel.blocks(len(stack), _CHANNELS_PER_TASK if small else 1)
    parts = parallel.ordered_map(solve_part, tasks, n_jobs=n_jobs, shared=True)
    empty = (np.empty((0, 5)), np.empty((0, n)), np.empty((0, m)), np.empty((0, n)))
    numbers, p, q, k = (np.concatenate(rows) for rows in zip(empty, *parts, strict=True))
    method = _METHOD_BY_STRUCTURE if geometric else _BINARY_METHOD if (n, m) == (2, 2) else _METHOD
    converged = numbers[:, 3] <= rtol
    if not converged.all():
        stopped = f"{int((~converged).sum())} of {len(stack)} stopped" if shape else "stopped"
        method += _not_converged(stopped, float(numbers[:, 3].max()), rtol)
    wide = converged & _are_wide(numbers, rtol)
    if wide.any():
        part, arrays = numbers[wide], (p[wide], q[wide], k[wide])
        notes, met = _narrow_wide_brackets(stack[wide], gaps[wide], part, arrays, rtol, steps, deadline)
        numbers[wide], (p[wide], q[wide], k[wide]), converged[wide] = part, arrays, met
        method += notes
    value, lower, upper = (np.ascontiguousarray(numbers[:, column]).reshape(shape) for column in range(3))
    estimate = _stack_estimate(channel, value, lower, upper, "certified", method)
    iterations, done = numbers[:, 4].astype(np.int64).reshape(shape), converged.reshape(shape)
    return ChannelCapacity(
        estimate, p.reshape(*shape, n), q.reshape(*shape, m), k.reshape(*shape, n),
        iterations if shape else int(iterations), done if shape else bool(done), method,
    )


def _stack_estimate(
    channel: Any, value: FloatArray, lower: FloatArray, upper: FloatArray, kind: Kind, method: str
) -> Estimate:
    """The estimate in nats; NaN for the channels of a stack that are invalid, whose texts are in ``cost``."""
    errors = channel.errors if isinstance(channel, ChannelStack) else {}
    for number in (value, lower, upper):
        for index in errors:
            number[index] = np.nan
    cost = {"errors": tuple(errors.items())} if errors else {}
    return Estimate._of_arrays(value, lower, upper, kind=kind, unit="nats", method=method, cost=cost)


def _checked_cells(channel: Any) -> tuple[FloatArray, FloatArray]:
    """Cells (..., n, m), contiguous, and the |row sum - 1|, rounded up, of shape (stack, n)."""
    if isinstance(channel, ChannelStack):
        cells = np.ascontiguousarray(channel.cells, dtype=np.float64)
        return cells, _channel_capacity.row_gaps(cells.reshape(-1, channel.outputs)).reshape(-1, channel.inputs)
    probabilities = channel
    if isinstance(channel, Channel) and channel.log:  # in doubles, whatever the precision of the logarithms
        probabilities = np.exp(channel.rows(log=True), dtype=np.float64)
    elif callable(matrix := getattr(channel, "matrix", None)):
        probabilities = matrix()
    try:
        cells = validate.array("channel", probabilities)
    except ShapeError:  # rows of different lengths
        cells = np.empty(0, dtype=object)
    tolerance = validate.sum_tolerance((channel.cells if isinstance(channel, Channel) else cells).dtype)
    if cells.dtype.kind not in "fiub":
        constraint = "rows of probabilities of one length"
        cells = validate.real("channel", probabilities, constraint, remedy=_REMEDY, answer=False)
    if cells.ndim < 2:
        raise ShapeError(f"channel must be of shape (n, m) or (..., n, m); got shape {cells.shape}. {_REMEDY}")
    if 0 in cells.shape[-2:]:
        raise ShapeError(f"channel must have an input and an output at least; got shape {cells.shape}. {_REMEDY}")
    cells = np.ascontiguousarray(cells, dtype=np.float64)
    if validate.map_of(cells) is not None:  # another process may truncate its file
        validate.memory("channel", cells.nbytes, "Take a smaller channel.")
        cells = np.array(cells)
    gaps = _channel_capacity.row_gaps(cells.reshape(-1, cells.shape[-1])).reshape(cells.shape[:-1])
    good = (gaps >= 0) & (gaps <= tolerance)
    if not good.all():
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        row = cells[index]
        position = f"in row {index[0] if len(index) == 1 else index} ({int((~good).sum())} of {good.size} rows)"
        if gaps[index] < 0:
            worst = float(row[np.isnan(row) | (row < 0)][0])
            raise DomainError(f"channel must have cells of at least 0; got {worst!r} {position}. {_REMEDY}")
        raise DomainError(
            f"channel must have rows that sum to 1 within {tolerance:g}; got a sum of {float(row.sum())!r} {position}. "
            "Divide every row by its sum if the numbers are relative."
        )
    return cells, gaps.reshape(-1, cells.shape[-2])


def _solve_large(
    channel: FloatArray, gaps: FloatArray, rtol: float, steps: int, deadline: float, start: FloatArray | None
) -> tuple[FloatArray, ...]:
    """Solve one large channel; return arrays shaped like those of the small-channel kernel."""
    largest = channel.max(axis=0)
    faint = (largest > 0) & (largest < _channel_capacity.NEGLIGIBLE_COLUMN)
    clear = np.ascontiguousarray(np.where(faint, 0.0, channel)) if faint.any() else channel
    solution = interior_point.solve(clear, rtol, steps, deadline, start)
    bounds = interior_point.certified_bounds(solution, gaps, int(faint.sum()))
    numbers = np.array([[*bounds, solution.width, solution.iterations]])
    arrays = tuple(np.array(array[None]) for array in (solution.p, solution.q, solution.divergences))
    _channel_capacity.set_equal_rows(channel, numbers, *arrays)
    return numbers, *arrays


def maximal_leakage(
    channel: AnyChannel | ChannelStack | HasMatrix | ArrayLike, *, unit: Information = "nats"
) -> Estimate:
    """Maximal leakage, log sum_w max_d Q[d, w]: the leakage of an output about any function of the input.

    Parameters
    ----------
    channel : AnyChannel, ChannelStack, array_like of shape (..., n, m), or an object with ``matrix()``
        Rows of probabilities, as for ``channel_capacity``; a channel is written out (``notions.maximal_leakage`` knows
        closed forms).
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        Kind ``exact``, of shape (...). It is the min-entropy capacity and Sibson's information of infinite order, and
        at least the capacity.

    Raises
    ------
    DomainError
        For negative cells, NaN, rows that do not sum to 1, or another unit.
    ShapeError
        For fewer than two axes, no inputs or no outputs.

    Notes
    -----
    Formed as log1p of the sum of max_d Q[d, w] - Q[0, w], so that small leakages keep their digits.

    **Accuracy**: 1e-14 relative, and twice what rows miss 1 by besides (tests/enclosures/test_discrete_capacity.py).

    Source: I. Issa, A. B. Wagner and S. Kamath, An operational approach to information leakage (2020).

    Examples
    --------
    >>> from fastpriv.capacity import maximal_leakage
    >>> float(maximal_leakage([[0.75, 0.25], [0.25, 0.75]], unit="bits"))
    0.58496250072...
    """
    validate.choice("unit", unit, ("nats", "bits"))
    cells, gaps = _checked_cells(channel)
    shape, stack = cells.shape[:-2], cells.reshape(-1, *cells.shape[-2:])
    numbers = _channel_quantities.maximal_leakages(stack, gaps.max(axis=1, initial=0.0)).T.copy()
    value, lower, upper = (number.reshape(shape) for number in numbers)
    return _stack_estimate(channel, value, lower, upper, "exact", "closed form").to(unit)
