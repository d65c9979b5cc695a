"""Finite channels: capacity of any channel with its certificate, and maximal leakage.

Notation: channel Q (n, m), Q[d, w] = P(output w | input d); input law p, output law q = pQ, K_d = KL(Q_d || q). Then

    I(p, Q) = sum_d p_d K_d  <=  C = max_p I(p, Q)  <=  max_d K_d

for every p, and both sides meet at the best one. A solver finds p; the bracket is these two numbers, rounded outward,
and holds whatever the solver did (csrc/fp_blahut.h, ``interior``). Channels known by structure go by ``structured``
first.
"""

# bounds: tested by enclosures/test_discrete_capacity - rounding of small channels, and underflow; the rest are
#    limits of gap

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ... import _parallel, _validate, special
from ...channels import AnyChannel, Channel, DefaultChannel, ProductChannel
from ...errors import DomainError, ShapeError
from ...estimate import Estimate
from ...kernels import _blahut
from . import geometric, structured
from .interior import enclosed, solved
from .leakage import leakage_of_excess

__all__ = ["ChannelCapacity", "channel_capacity", "maximal_leakage"]

FloatArray = NDArray[np.float64]
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_BLOCK = 4096  # small channels in one task
# bound: none - the width that closed forms count as having
_FINE = 1e-13
# bound: tested by kernels/test_binary_channel, enclosures/test_discrete_capacity - relative error of the capacity
#    of the binary asymmetric channel
_BINARY = 4e-15  # relative error of the capacity of the binary asymmetric channel
_REMEDY = "Give channel one row an input, P(output | input)."


@dataclass(frozen=True, slots=True, eq=False)
class ChannelCapacity:
    """The capacity of a finite channel with what proves it.

    Parameters
    ----------
    capacity : Estimate
        Certified: ``lower`` is I(input, channel), ``upper`` the largest divergence from ``output``. Of shape (...) for
        a stack of channels.
    input : ndarray, shape (..., n), or None
        The input law found. None, as the next two, for a channel that is too large for it to be written out: there the
        law is uniform, over all secrets or within the factors.
    output : ndarray, shape (..., m), or None
        The output law it gives.
    divergences : ndarray, shape (..., n), or None
        KL(row || output) for every input, in the unit of the capacity: equal to it where the input is used, at most
        that elsewhere.
    iterations : int or ndarray
        Newton steps taken.
    converged : bool or ndarray
        Whether the two bounds came within ``gap``, what rows that miss 1 add left aside.
    method : str
        What ran, and a note where some channel did not get to ``gap``.

    Examples
    --------
    >>> from fastpriv import channel_capacity
    >>> found = channel_capacity([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.25, 0.5, 0.25]])
    >>> found.input.round(6), found.converged
    (array([0.5, 0.5, 0. ]), True)
    """

    capacity: Estimate
    input: FloatArray | None
    output: FloatArray | None
    divergences: FloatArray | None
    iterations: Any
    converged: Any
    method: str


def channel_capacity(
    channel: Any, *, gap: float = 1e-9, unit: Literal["nats", "bits"] = "nats", max_iterations: int = 200,
    max_seconds: float | None = None, n_jobs: int | None = None,
) -> ChannelCapacity:  # fmt: skip
    """Capacity of any finite channel: the largest mutual information over all laws of the input, with a certificate.

    Parameters
    ----------
    channel : AnyChannel, array_like of shape (n, m) or (..., n, m), or an object with ``matrix()``
        A channel, or rows of probabilities, P(output w | input d), float64 or float32, that sum to 1 within 1e-9 or
        2e-6. The leading axes are a stack of channels.
    gap : float, default 1e-9
        How far apart the bounds may be: nats where the capacity is above 1 nat, relative to it below. From 1e-14 to 1.
    unit : {"nats", "bits"}
        Unit of the answer.
    max_iterations : int, default 200
        Most Newton steps a channel.
    max_seconds : float, optional
        Time after which no further step is begun.
    n_jobs : int, optional
        Threads for a stack; the answers do not depend on it.

    Returns
    -------
    ChannelCapacity
        Bracket (kind ``certified``), input law, output law and divergences. A bracket that is wider than ``gap`` is as
        true; ``converged`` and ``method`` say so.

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
    needs 1/gap steps if some input is barely unused. A step solves min(n, m) equations. Channels of at most 16 inputs
    and outputs go eight at a time through one kernel; two inputs with two outputs have a closed bracket as well.

    Channels that treat all secrets alike (``RandomizedResponse``, ``UnaryEncoding``, ``SubsetSelection``) have a closed
    form at any size, a ``ProductChannel`` the sum over its factors, a ``DefaultChannel`` the capacity of the rows that
    differ; others are written out. The law of a ``GeometricMechanism`` comes from steps in time proportional to its
    inputs, and is proved on its cells.

    Rows that miss 1 by g widen the bounds by about g sqrt(2 C): they hold for every channel with rows of sum 1 whose
    cells are those given up to a factor 1 + g or 1 - g, such as the rows divided by their sums. Columns with no cell of
    1e-270 count as at most 1e-270.

    **Accuracy**: the bracket always holds; its width is at most ``gap`` min(1, C), down to about 1e-13 C and
    1e-15 sqrt(C), by ``tests/enclosures/test_discrete_capacity.py``.

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
    _parallel.checked(n_jobs)
    gap = _validate.scalar("gap", gap, "between 1e-14 and 1", lambda x: (x >= 1e-14) & (x <= 1))
    _validate.choice("unit", unit, ("nats", "bits"))
    most = _validate.count("max_iterations", max_iterations, minimum=0, maximum=1_000_000)
    seconds = math.inf
    if max_seconds is not None:
        seconds = _validate.scalar("max_seconds", max_seconds, "positive", lambda x: x > 0)
    deadline = time.monotonic() + seconds
    found = _known(channel, gap, most, deadline, n_jobs) if isinstance(channel, AnyChannel) else None
    return _told(_solved(channel, gap, most, deadline, n_jobs) if found is None else found, unit)


def _known(channel: AnyChannel, gap: float, most: int, deadline: float, n_jobs: int | None) -> ChannelCapacity | None:
    """By structure, in nats; None for a channel that must be written out."""

    def part(one: AnyChannel, width: float) -> ChannelCapacity:
        found = _known(one, width, most, deadline, n_jobs)
        return _solved(one, width, most, deadline, n_jobs) if found is None else found

    steps, converged, laws = 0, True, None
    if isinstance(channel, ProductChannel):
        parts = [part(one, max(gap / sum(channel.powers), 1e-14)) for one in channel.factors]
        laws, steps = structured.joined(channel, parts), max(one.iterations for one in parts)
        converged = all(one.converged for one in parts)
        method = f"sum over factors: {'; '.join(dict.fromkeys(one.method for one in parts))}"
    elif isinstance(channel, DefaultChannel):
        only = part(channel.laws, gap)
        laws, steps, converged = structured.shared(channel, only), only.iterations, only.converged
        method = f"equal rows once: {only.method}"
    elif structured.alike(channel):
        laws = structured.uniform(channel)
        converged = laws is not None and laws.upper - laws.lower <= gap * min(1.0, max(laws.value, 1e-290))
        method = "all inputs alike: the uniform law"
    if laws is None:
        return None
    value, lower, upper, p, q, k = laws
    estimate = Estimate(value, lower, upper, kind="certified", unit="nats", method=method)
    return ChannelCapacity(estimate, p, q, k, steps, converged, method)


def _solved(channel: Any, gap: float, most: int, deadline: float, n_jobs: int | None) -> ChannelCapacity:
    """From the cells, in nats."""
    cells, gaps = _rows(channel)
    shape, (n, m) = cells.shape[:-2], cells.shape[-2:]
    stack = cells.reshape(-1, n, m)
    small = max(n, m) <= _blahut.SIDE
    structure = not small and geometric.suited(channel)
    size = _BLOCK if small else 1
    aim = min(gap, _FINE) if (n, m) == (2, 2) else gap  # laws as good as the closed bracket

    def block(part: slice) -> tuple[FloatArray, ...]:
        left = most if time.monotonic() < deadline else 0
        if small:
            return tuple(_blahut.small(stack[part], gaps[part], aim, left))
        start = geometric.input_law(channel, gap) if structure and left else None
        return _large(stack[part.start], gaps[part.start], gap, left, deadline, start)

    if not small:
        _validate.memory("channel", 16 * n * (m + 1), "Fewer inputs or outputs will do.")
    parts = _parallel.ordered_map(block, _parallel.blocks(len(stack), size), n_jobs=n_jobs, shared=True)
    empty = (np.empty((0, 5)), np.empty((0, n)), np.empty((0, m)), np.empty((0, n)))
    numbers, p, q, k = (np.concatenate(rows) for rows in zip(empty, *parts, strict=True))
    method = "primal-dual Newton, begun by structure" if structure else "primal-dual Newton"
    _equal_rows(stack, numbers, p, q, k)
    if (n, m) == (2, 2):
        method = "primal-dual Newton, and Halley's method on the input weight"
        _binary(stack, gaps, numbers)
    converged = numbers[:, 3] <= gap
    if not converged.all():
        short = f"{int((~converged).sum())} of {len(stack)} stopped" if shape else "stopped"
        method += f"; not converged: {short} at a width up to {numbers[:, 3].max():.2g} nats, gap {gap:g}"
    value, lower, upper = (numbers[:, column].reshape(shape) for column in range(3))
    estimate = Estimate(value, lower, upper, kind="certified", unit="nats", method=method)
    steps, done = numbers[:, 4].astype(np.int64).reshape(shape), converged.reshape(shape)
    return ChannelCapacity(
        estimate, p.reshape(*shape, n), q.reshape(*shape, m), k.reshape(*shape, n), steps if shape else int(steps),
        done if shape else bool(done), method,
    )  # fmt: skip


def _told(found: ChannelCapacity, unit: Literal["nats", "bits"]) -> ChannelCapacity:
    """In the unit asked for, its arrays locked."""
    k = found.divergences
    if k is not None and unit == "bits":
        k = k / math.log(2.0)
    for law in (found.input, found.output, k):
        if law is not None:
            law.setflags(write=False)
    return replace(found, capacity=found.capacity.to(unit), divergences=k)


def maximal_leakage(channel: Any, *, unit: Literal["nats", "bits"] = "nats") -> Estimate:
    """Maximal leakage, log sum_w max_d Q[d, w]: what an output tells about any function of the input.

    Parameters
    ----------
    channel : AnyChannel, array_like of shape (n, m) or (..., n, m), or an object with ``matrix()``
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
    >>> from fastpriv import maximal_leakage
    >>> float(maximal_leakage([[0.75, 0.25], [0.25, 0.75]], unit="bits"))
    0.58496250072...
    """
    _validate.choice("unit", unit, ("nats", "bits"))
    cells, gaps = _rows(channel)
    gap = gaps.max(axis=1, initial=0.0).reshape(cells.shape[:-2])
    found = leakage_of_excess(cells.max(axis=-2) - cells[..., 0, :], gap)
    return Estimate(*found, kind="exact", unit="nats", method="closed form").to(unit)


def _rows(channel: Any) -> tuple[FloatArray, FloatArray]:
    """Checked cells (..., n, m), contiguous, and what every row misses 1 by, rounded up, (stack, n)."""
    given = channel
    if isinstance(channel, Channel) and channel.log:  # in doubles, whatever the logarithms are in
        given = np.exp(channel.rows(log=True), dtype=np.float64)
    elif callable(matrix := getattr(channel, "matrix", None)):
        given = matrix()
    try:
        cells = _validate.array("channel", given)
    except ShapeError:  # rows of several lengths
        cells = np.empty(0, dtype=object)
    miss = _validate.sum_tolerance((channel.cells if isinstance(channel, Channel) else cells).dtype)
    if cells.dtype.kind not in "fiub":
        cells = _validate.real("channel", given, "rows of probabilities of one length", remedy=_REMEDY, answer=False)
    if cells.ndim < 2:
        raise ShapeError(f"channel must be of shape (n, m) or (..., n, m); got shape {cells.shape}. {_REMEDY}")
    if 0 in cells.shape[-2:]:
        raise ShapeError(f"channel must have an input and an output at least; got shape {cells.shape}. {_REMEDY}")
    cells = np.ascontiguousarray(cells, dtype=np.float64)
    if _validate.map_of(cells) is not None:  # whose file may be cut at any time
        _validate.memory("channel", cells.nbytes, "Take a smaller channel.")
        cells = np.array(cells)
    gaps = _blahut.row_gaps(cells.reshape(-1, cells.shape[-1])).reshape(cells.shape[:-1])
    good = (gaps >= 0) & (gaps <= miss)
    if not good.all():
        index = tuple(int(i) for i in np.argwhere(~good)[0])
        row = cells[index]
        place = f"in row {index[0] if len(index) == 1 else index} ({int((~good).sum())} of {good.size} rows)"
        if gaps[index] < 0:
            worst = float(row[np.isnan(row) | (row < 0)][0])
            raise DomainError(f"channel must have cells of at least 0; got {worst!r} {place}. {_REMEDY}")
        raise DomainError(
            f"channel must have rows that sum to 1 within {miss:g}; got a sum of {float(row.sum())!r} {place}. "
            "Divide every row by its sum if the numbers are relative."
        )
    return cells, gaps.reshape(-1, cells.shape[-2])


def _large(
    channel: FloatArray, gaps: FloatArray, gap: float, most: int, deadline: float, start: FloatArray | None
) -> tuple[FloatArray, ...]:  # fmt: skip
    """One channel beyond the kernel of the small ones, as rows like its."""
    top = channel.max(axis=0)
    faint = (top > 0) & (top < _blahut.FAINT)
    clear = np.ascontiguousarray(np.where(faint, 0.0, channel)) if faint.any() else channel
    found = solved(clear, gap, most, deadline, start)
    bounds = enclosed(found, gaps, int(faint.sum()))
    return np.array([[*bounds, found.width, found.iterations]]), found.p[None], found.q[None], found.divergences[None]


def _equal_rows(stack: FloatArray, numbers: FloatArray, p: FloatArray, q: FloatArray, k: FloatArray) -> None:
    """Equal rows tell nothing: exactly 0, with the row itself as the output law."""
    for index in np.flatnonzero(numbers[:, 0] < 1e-25):
        rows = stack[index]
        if (rows == rows[0]).all():
            numbers[index], q[index], k[index] = 0.0, rows[0], 0.0
            p[index] = 1.0 / len(rows)


def _binary(stack: FloatArray, gaps: FloatArray, numbers: FloatArray) -> None:
    """Intersects the brackets with the closed one, where the rows are pairs of a number and its complement."""
    (a, b), (c, d) = stack.transpose(1, 2, 0)
    miss = gaps.max(axis=1, initial=0.0)
    value = special.bac_capacity_with_complements(b, a, c, d)
    spread = 2.1 * miss * (value + np.sqrt(2.1 * value) + 2 * miss) + 5e-323
    with np.errstate(under="ignore"):
        lower, upper = value * (1 - _BINARY) - spread, value * (1 + _BINARY) + spread
    lower, upper = np.maximum(numbers[:, 1], lower), np.minimum(numbers[:, 2], upper)
    sure = (miss <= _UNIT) & (value > 0) & (lower <= upper)
    numbers[sure, 0] = np.clip(value, lower, upper)[sure]
    numbers[sure, 1], numbers[sure, 2] = lower[sure], upper[sure]
    numbers[sure, 3] = np.minimum(numbers[sure, 3], (upper - lower)[sure])
