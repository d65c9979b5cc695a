"""Channels that are stored: as a matrix, as exceptions to a background, or as a few rows beside a default row.

Notation: Q[d, w] is the probability of release w under secret d; n secrets, m releases.

Source: Shannon 1948, the discrete channel with noise.
"""

# bounds: tested by enclosures/test_channels - rounding of the sum of a sparse row

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.files import FileArray, memory_mapped_file
from ..base.numerics import FloatArray, IndexArray, IntArray, LongDoubleArray, RealArray
from ..base.values import is_read_only
from ..kernels import _channel_capacity
from .base import ENUMERABLE_CELLS, AnyChannel, DefaultColumn
from .type_classes import (
    RowPair,
    TypeClasses,
    classes_of_groups,
    classes_of_matrix,
    ordered_pairs,
    prior_gap,
    relative_logs,
)

__all__ = ["Channel", "DefaultChannel", "SparseChannel", "largest_gap"]

_STORED_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))  # kept as they are; others are converted to float64
_BLOCK_CELLS = 2**15  # cells read at a time: 256 KiB of doubles, which stay in the cache of a core
_ENTRYWISE_OUTPUTS = 2**13  # releases beyond which a column of a file is read entry by entry: rows are 16 pages or more
# bound: tested by kernels/test_bound_constants - relative error of NumPy's exponential, which no standard bounds
_EXP_ERROR = 2.0**-51  # relative error of one exponential of doubles
_MAX_GROUPS = 2**24  # groups of secrets up to which type classes of a sparse channel are listed (about 1 GiB)
_MAX_LISTED_ROWS = 64  # distinct rows up to which all their ordered pairs are returned


class Channel(AnyChannel):
    """A channel written out as a matrix: one row a secret, one column a release.

    Parameters
    ----------
    matrix : array_like, shape (n, m)
        Probabilities of the releases under each secret, or their natural logarithms. float32 and float64 are kept as
        they are, other numbers become float64. Rows must sum to 1 within 1e-9 (float64) or 2e-6 (float32), and are
        never renormalised; what is computed has bounds that hold for the rows as given and for rows divided by
        their sums.
    log : bool, optional
        Whether ``matrix`` holds natural logarithms; -inf stands for a zero.

    Attributes
    ----------
    cells : ndarray, shape (n, m)
        What was given, read-only; ``log`` says whether they are logarithms.

    Raises
    ------
    DomainError, ShapeError, MemoryError
        For NaN, negative cells, or a row that does not sum to 1, which the message names; for an array that is not a
        matrix, or has no rows or no columns; if a copy is needed and would not fit.

    Notes
    -----
    A C-contiguous array of floats that nobody can write to (``setflags(write=False)``), and any ``numpy.memmap``, are
    kept without a copy and read in blocks. Zero columns, releases that never occur, are allowed.

    The rows of a mapped array are read from the file that is mapped, even if another file has taken its name since;
    an error says if it was written to or truncated. Where that file cannot be known (copy-on-write maps, files that
    were renamed or removed, systems other than Linux), each block is read through the map after a check of the length
    of the file; a file that is truncated in between still ends the process.

    **Accuracy** ``mass_gap`` is within rounding of the largest gap of a row; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import Channel
    >>> q = Channel([[0.75, 0.25], [0.25, 0.75]])
    >>> q.shape, q.column(0)
    ((2, 2), array([-0.28768207, -1.38629436]))
    >>> q.then(q).matrix()
    array([[0.625, 0.375],
           [0.375, 0.625]])
    """

    __slots__ = ("cells", "log", "mass_gap", "_file", "_plain")  # noqa: RUF023  (the order of the constructor)
    _fields = ("cells", "log")

    cells: RealArray
    log: bool
    mass_gap: float
    _file: FileArray | None
    _plain: bool  # whether the cells are probabilities in memory

    def __init__(self, matrix: ArrayLike, *, log: bool = False) -> None:
        logs = validate.flag("log", log)
        cells = _contiguous_cells(matrix)
        self._set(cells=cells, log=logs, _file=memory_mapped_file("matrix", cells))
        self._set(_plain=not logs and validate.map_of(cells) is None)
        self._set(mass_gap=self._largest_gap())

    def _largest_gap(self) -> float:
        """The largest distance of a row's sum from 1, rounded up; an error for a row that is not a distribution."""
        n, m = self.shape
        step = max(1, _BLOCK_CELLS // m)
        starts = range(0, n, step)
        return max(largest_gap(self._stored_rows(start, min(start + step, n)), self.log, start) for start in starts)

    def _input_count(self) -> int:
        return len(self.cells)

    def _output_count(self) -> int:
        return int(self.cells.shape[1])

    def _stored_rows(self, start: int, stop: int) -> RealArray:
        """Rows as they are stored."""
        if self._file is None:
            block = self.cells[start:stop]
            if validate.map_of(block) is None:
                return block
            validate.whole_file("matrix", block)
            return np.array(block)
        m = self.outputs
        rows = self._file.take(start * m, stop * m).reshape(stop - start, m)
        rows.setflags(write=False)
        return rows

    def _stored_cells(self) -> RealArray:
        """All cells, where they are few or read once."""
        validate.whole_file("matrix", self.cells)
        return self.cells

    def _arrays(self) -> tuple[Any, ...]:
        return self._stored_cells(), self.log

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        block = self._stored_rows(start, stop)
        if log == self.log:
            return block
        doubles = block.astype(np.float64)  # logs of singles in doubles: later steps count them as exact
        return _logs(doubles) if log else np.asarray(np.exp(doubles))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses | None:
        if self.cells.size > ENUMERABLE_CELLS:
            return None
        return classes_of_matrix(self._stored_rows(0, self.inputs), self.log, prior)

    def column(self, output: ArrayLike) -> RealArray:
        """Log likelihoods of one release under every secret, shape (inputs,), float64."""
        cells = self._stored_column(self._output_index(output)).astype(np.float64)
        return cells if self.log else _logs(cells)

    def _stored_column(self, index: int) -> RealArray:
        n, m = self.shape
        if self._file is None:
            return self._stored_cells()[:, index]
        column = np.empty(n, dtype=self.cells.dtype)
        if m > _ENTRYWISE_OUTPUTS:  # most pages of the file hold no entry of the column
            for row in range(n):
                column[row : row + 1] = self._file.take(row * m + index, row * m + index + 1)
            return column
        step = max(1, _BLOCK_CELLS // m)
        for start in range(0, n, step):
            column[start : start + step] = self._stored_rows(start, min(start + step, n))[:, index]
        return column

    def __reduce__(self) -> Any:
        cells = self._stored_cells()
        if self._file is None:  # another process opens a file by its name
            cells = np.array(cells) if validate.map_of(cells) is not None else cells
        return _unpickled_channel, (np.asarray(cells), self.log, None if self._file is None else self._file.state)

    def __repr__(self) -> str:
        if self.cells.size <= 16 and not self.log:
            return f"Channel({self.cells.tolist()})"
        n, m = self.shape
        return f"<Channel of {n:,} secrets and {m:,} releases, {self.cells.dtype}{', logs' if self.log else ''}>"


class SparseChannel(AnyChannel):
    """A channel whose rows agree almost everywhere: stored cells over a background.

    Parameters
    ----------
    exceptions : scipy sparse array or matrix, shape (n, m)
        Probabilities that differ from the background. A stored zero is a zero of the channel; repeated entries add.
    background : array_like, optional
        Probability of all cells that are not stored: one number, shape (m,) or (1, m) for one a release, shape (n, 1)
        for one a secret.

    Raises
    ------
    DomainError, ShapeError
        For negative or NaN cells, or a row that does not sum to 1 within 1e-9, which the message names; for an argument
        that is not a sparse matrix, or a background that does not fit.

    Notes
    -----
    **Accuracy** as ``Channel``; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import diags_array
    >>> from fastpriv import SparseChannel
    >>> q = SparseChannel(diags_array(np.full(1000, 0.001 + 0.999 * 0.5)), background=0.0005)
    >>> q.shape, q.type_classes().mass.size
    ((1000, 1000), 2000)
    """

    __slots__ = ("data", "indices", "indptr", "background", "count", "mass_gap")  # noqa: RUF023
    _fields = ("data", "indices", "indptr", "background", "count")

    data: FloatArray
    indices: IntArray
    indptr: IntArray
    background: FloatArray
    count: int
    mass_gap: float

    def __init__(self, exceptions: Any, background: ArrayLike = 0.0) -> None:
        if not hasattr(exceptions, "tocsr") or getattr(exceptions, "ndim", 2) != 2 or 0 in exceptions.shape:
            raise ShapeError(
                f"exceptions must be a SciPy sparse matrix of shape (n, m); got {validate.shown(exceptions)}. "
                "Use Channel for a dense one."
            )
        for name in ("indices", "indptr", "row", "col", "offsets"):  # SciPy would drop fractions of these
            if isinstance(index_array := getattr(exceptions, name, None), np.ndarray):
                validate.integers(f"{name} of exceptions", index_array, -(2**63))
        validate.array("exceptions", getattr(exceptions, "data", 0.0))
        csr = exceptions.tocsr(copy=True)
        if csr.data.dtype.kind not in "fiub":
            raise DomainError(
                f"exceptions must be real numbers; got {csr.data.dtype} cells. Store probabilities as float64."
            )
        try:
            csr.check_format(full_check=True)
        except ValueError as fault:
            raise DomainError(
                f"exceptions must be a whole sparse matrix; got one in which {fault}. Build it with scipy.sparse."
            ) from None
        csr.sum_duplicates()
        n, m = csr.shape
        base = validate.real("background", background, "probabilities", lambda b: (b >= 0) & (b <= 1))
        base = base.reshape(1, -1) if base.ndim < 2 else base
        if base.shape not in ((1, 1), (1, m), (n, 1)):
            raise ShapeError(
                f"background must be a number, of shape ({m},) or of shape ({n}, 1); got {np.shape(background)}. "
                "Pass one number a release, or a column of one a secret."
            )
        if np.all(base == base[0, 0]):
            base = base[:1, :1]
        self._set(data=np.array(csr.data, dtype=np.float64), indices=csr.indices.astype(np.int64),
                  indptr=csr.indptr.astype(np.int64), background=base.copy(), count=int(m))  # fmt: skip
        self._set(mass_gap=self._largest_gap())

    def _largest_gap(self) -> float:
        """The largest distance of a row's sum from 1, rounded up; an error for a row that is not a distribution."""
        tolerance = validate.sum_tolerance(self.data.dtype)
        wrong = ~((self.data >= 0) & (self.data <= 1 + tolerance))
        if wrong.any():
            index = int(np.argmax(wrong))
            raise DomainError(
                f"exceptions must be probabilities between 0 and 1; got {float(self.data[index])!r} at row "
                f"{self._stored_cell_rows()[index]}, column {self.indices[index]}. Store only probabilities."
            )
        stored_counts = np.diff(self.indptr)
        stored = _row_sums(self.data, self.indptr)
        if self.background.shape[1] > 1:
            base = self.background[0].astype(np.longdouble)
            filled = base.sum() - _row_sums(base[self.indices], self.indptr)
        else:
            filled = self.background[:, 0].astype(np.longdouble) * (self.count - stored_counts)
        gaps = np.abs(stored + filled - 1)
        if gaps.max() > tolerance:
            row = int(np.argmax(gaps > tolerance))
            raise DomainError(
                f"each row must sum to 1 within {tolerance:g} with its background; got a sum of "
                f"{float(stored[row] + filled[row])!r} at row {row}. Raise or lower its background."
            )
        rounding = float(np.finfo(np.longdouble).eps) * (2.0 * float(stored_counts.max()) + 256)
        return float(gaps.max()) * (1 + 2.0**-50) + rounding

    def _input_count(self) -> int:
        return len(self.indptr) - 1

    def _output_count(self) -> int:
        return self.count

    def _stored_cell_rows(self) -> IndexArray:
        """The row of each stored cell."""
        return np.repeat(np.arange(self.inputs), np.diff(self.indptr))

    def _rows(self, start: int, stop: int, log: bool) -> FloatArray:
        base = self.background[start:stop] if len(self.background) > 1 else self.background
        cells = np.array(np.broadcast_to(base, (stop - start, self.count)))
        stored = slice(self.indptr[start], self.indptr[stop])
        rows = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        cells[rows, self.indices[stored]] = self.data[stored]
        return _logs(cells) if log else cells

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return self._rows(start, stop, True)

    def column(self, output: ArrayLike) -> FloatArray | DefaultColumn:
        """Log likelihoods of one release: the background, and the secrets with a stored cell in this column."""
        index = self._output_index(output)
        stored = np.flatnonzero(self.indices == index)
        rows = np.searchsorted(self.indptr, stored, side="right") - 1
        values = _logs(self.data[stored])
        if len(self.background) > 1:
            logs = _logs(self.background[:, 0])
            logs[rows] = values
            return logs
        default = self.background[0, index if self.background.size > 1 else 0]
        return DefaultColumn(self.inputs, float(_logs(default)), rows, values)

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses | None:
        """Each release is a class; each secret with a stored cell is a group, and all others are one group."""
        n, m = self.shape
        if len(self.background) > 1 or len(self.data) + m > _MAX_GROUPS:
            return super()._type_classes(prior)
        rows = self._stored_cell_rows()
        order = np.lexsort((rows, self.indices))
        rows = rows[order]
        stored_counts = np.bincount(self.indices, minlength=m)
        bounds = np.concatenate([[0], np.cumsum(stored_counts)])
        mass = np.full(n, 1.0 / n) if prior is None else prior
        ranked = np.argsort(mass, kind="stable")
        positive = ranked[mass[ranked] > 0]
        columns: list[list[FloatArray]] = [[], [], [], []]  # likelihoods, masses, largest and smallest probabilities
        starts = [0]
        for w in range(m):
            part = slice(bounds[w], bounds[w + 1])
            base = self.background[0, w if self.background.size > 1 else 0]
            listed = mass[rows[part]]
            others = (base, *_others(mass, rows[part], ranked, positive, prior is None))
            for column, stored, rest in zip(columns, (self.data[order[part]], listed, listed, listed), others,
                                            strict=True):  # fmt: skip
                column.append(np.append(stored, [] if stored_counts[w] == n else [rest]))
            starts.append(starts[-1] + len(columns[0][-1]))
        cells, masses, largest, smallest = map(np.concatenate, columns)
        top = np.maximum.reduceat(cells, np.array(starts[:-1]))
        top_of_group = np.repeat(top, np.diff(starts))
        relative = relative_logs(cells, top_of_group)
        relative[top_of_group == 0] = 0.0
        return TypeClasses(np.zeros(m), _logs(top), starts, relative, masses, _logs(masses), _logs(largest),
                           _logs(smallest), gap=prior_gap(prior))  # fmt: skip

    def __reduce__(self) -> Any:
        arrays = (self.data.copy(), self.indices.copy(), self.indptr.copy())
        return _unpickled_sparse_channel, (*arrays, self.shape, self.background.copy())

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<SparseChannel of {n:,} secrets and {m:,} releases, {len(self.data):,} cells stored>"


class DefaultChannel(AnyChannel):
    """One default row for all secrets but a few listed ones, which have other rows.

    Parameters
    ----------
    inputs : int
        Number of secrets.
    default : array_like, shape (m,)
        Distribution of the release under every secret that is not listed.
    indices : array_like of int, shape (e,)
        The secrets that are listed, distinct.
    rows : array_like, shape (e, m)
        Distributions of the release under these.

    Raises
    ------
    DomainError, ShapeError
        For rows that are not distributions, or indices that repeat or do not exist; for lengths that do not fit.

    Notes
    -----
    **Accuracy** what is stored is what was given; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import DefaultChannel
    >>> q = DefaultChannel(10**12, [0.5, 0.5], [7], [[0.9, 0.1]])
    >>> q.extreme_log_ratios().ldp_epsilon  # log 5
    1.6094379124341...
    """

    __slots__ = ("size", "distinct_rows", "indices")  # noqa: RUF023
    _fields = ("size", "distinct_rows", "indices")

    size: int
    distinct_rows: Channel  # the rows that are listed, and the default as the last
    indices: IntArray

    def __init__(self, inputs: int, default: ArrayLike, indices: ArrayLike, rows: ArrayLike) -> None:
        size = validate.count("inputs", inputs, maximum=2**63)
        default_row = np.atleast_2d(validate.real("default", default, "one row of probabilities", answer=False))
        m = default_row.size
        listed = validate.integers(
            "indices", indices, 0, size - 1, constraint=f"distinct integers from 0 to {validate.shown(size - 1)}"
        )
        cells = validate.real("rows", rows, "probabilities", answer=False) if listed.size else np.empty((0, m))
        if listed.ndim != 1 or cells.shape != (listed.size, m) or len(default_row) != 1:
            raise ShapeError(
                f"rows must have one row for each of the {listed.size} indices and one column for each of the "
                f"{m} releases of default; got shape {np.shape(rows)}. Pass shape (e, m)."
            )
        if np.unique(listed).size < listed.size:
            raise DomainError(
                f"indices must be distinct integers from 0 to {size - 1}; got {validate.shown(indices)}. "
                "List each secret once."
            )
        if listed.size == size:  # no secret would have the default row, but LDP would include it
            raise DomainError(f"indices must be fewer than the {size} inputs; got {listed.size}. Use Channel(rows).")
        order = np.argsort(listed, kind="stable")
        matrix = np.concatenate([cells[order], default_row])
        distinct = validate.with_argument_name("matrix", "rows with default", lambda: Channel(matrix))
        self._set(size=size, distinct_rows=distinct, indices=listed[order])

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1, rounded up."""
        return self.distinct_rows.mass_gap

    def _input_count(self) -> int:
        return self.size

    def _output_count(self) -> int:
        return self.distinct_rows.outputs

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        listed = len(self.indices)
        cells = np.tile(self.distinct_rows._rows(listed, listed + 1, log), (stop - start, 1))
        part = slice(*np.searchsorted(self.indices, [start, stop]))
        cells[self.indices[part] - start] = self.distinct_rows._rows(part.start, part.stop, log)
        return cells

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)

    def column(self, output: ArrayLike) -> DefaultColumn:
        """Log likelihoods of one release: a default, and those of the secrets that are listed."""
        logs = np.asarray(self.distinct_rows.column(output), dtype=np.float64)
        return DefaultColumn(self.size, float(logs[-1]), self.indices, logs[:-1])

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        rows = self.distinct_rows.then(step).matrix()
        return DefaultChannel(self.size, rows[-1], self.indices, rows[:-1])

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses:
        listed = len(self.indices)
        if prior is None:
            size = float(self.size)
            mass = np.append(np.full(listed, 1 / size), (self.size - listed) / size)
            probabilities = np.full(listed + 1, 1 / size)
            return classes_of_groups(self.distinct_rows.cells, mass, probabilities, probabilities, 0.0)
        rest = np.delete(prior, self.indices)
        total = float(np.sum(rest, dtype=np.longdouble))
        low = float(np.min(rest, where=rest > 0, initial=np.inf))
        mass, largest, smallest = (
            np.append(prior[self.indices], last) for last in (total, rest.max(), low if low < np.inf else 0.0)
        )
        return classes_of_groups(self.distinct_rows.cells, mass, largest, smallest, prior_gap(prior))

    def dominating_pairs(self) -> tuple[RowPair, ...] | None:
        """All ordered pairs of different rows, while these are few."""
        logs = self.distinct_rows._log_rows(0, self.distinct_rows.inputs)
        if len(logs) > _MAX_LISTED_ROWS:
            return None
        return ordered_pairs(logs) if len(logs) > 1 else (RowPair(logs[0], logs[0]),)

    def __reduce__(self) -> Any:
        cells = self.distinct_rows.cells
        return type(self), (self.size, cells[-1].copy(), self.indices.copy(), cells[:-1].copy())

    def __repr__(self) -> str:
        return f"<DefaultChannel of {self.size:,} secrets, {len(self.indices):,} of them listed>"


def _logs(cells: Any) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(cells))


def _unpickled_channel(cells: RealArray, log: bool, state: tuple[int, int, int] | None = None) -> Channel:
    cells.setflags(write=False)
    channel = Channel(cells, log=log)
    if channel._file is not None and state not in (None, channel._file.state):
        raise DomainError(
            f"matrix must be a file that stays as it is while it is read; got {str(channel._file.path)!r}, and another "
            "was found under its name in another process. Run again when it is complete."
        )
    return channel


def _unpickled_sparse_channel(data: FloatArray, indices: Any, indptr: Any, shape: Any, background: Any) -> Any:
    from scipy.sparse import csr_array

    return SparseChannel(csr_array((data, indices, indptr), shape=shape), background)


def _contiguous_cells(matrix: ArrayLike) -> RealArray:
    """The matrix as C-contiguous floats: itself where nobody can write to it, else a copy."""
    try:
        array = validate.array("matrix", matrix)
    except ShapeError:  # ragged
        array = np.asarray(matrix, dtype=object)
    if array.dtype.kind not in "fiub":
        array = validate.real("matrix", matrix, "numbers", answer=False)
    if array.ndim != 2 or array.size == 0:
        raise ShapeError(
            f"matrix must have one row a secret and one column a release; got shape {array.shape}. Pass shape (n, m)."
        )
    dtype = array.dtype if array.dtype in _STORED_DTYPES and array.dtype.isnative else np.dtype(np.float64)
    if array.dtype == dtype and array.flags.c_contiguous and (isinstance(matrix, np.memmap) or is_read_only(array)):
        return array.view(np.ndarray)
    validate.memory("matrix", array.size * dtype.itemsize, "Save it as .npy and pass numpy.load(path, mmap_mode='r').")
    return validate.copied(array, dtype, "C")


def largest_gap(rows: RealArray, log: bool, start: int) -> float:
    """The largest distance of the sum of one of these rows from 1, rounded up; an error for an invalid row.

    The first one is row ``start`` of the channel; ``log`` says whether they are logarithms.
    """
    tolerance = validate.sum_tolerance(rows.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        weights = np.exp(rows, dtype=np.float64) if log else np.asarray(rows, dtype=np.float64)
        gaps = _channel_capacity.row_gaps(np.ascontiguousarray(weights))  # negative for NaN and negative cells
        valid = (gaps >= 0) & (gaps <= tolerance)
    if not valid.all():
        _raise_for_row(rows, weights, int(np.argmin(valid)), start, log, tolerance)
    if log:  # the exponentials are rounded, all but those of 0 and -inf
        gaps[((weights > 0) & (weights != 1)).any(axis=1)] += _EXP_ERROR
    return float(gaps.max())


def _raise_for_row(block: RealArray, weights: RealArray, index: int, start: int, log: bool, tolerance: float) -> None:
    """Raise the error for a row that holds a wrong cell or does not sum to 1."""
    row = block[index]
    wrong = np.isnan(row) | (row > (1e-5 if log else 1 + tolerance)) | (False if log else row < 0)
    if wrong.any():
        column = int(np.argmax(wrong))
        wanted = "log probabilities, at most 0" if log else "probabilities between 0 and 1"
        raise DomainError(
            f"matrix must be made of {wanted}; got {float(row[column])!r} at row {start + index}, column {column}. "
            + ("Pass natural logarithms." if log else "Pass logarithms with log=True.")
        )
    raise DomainError(
        f"each row of matrix must sum to 1 within {tolerance:g}; got a sum of "
        f"{float(np.sum(weights[index], dtype=np.longdouble))!r} at row {start + index}. "
        "Divide each row by its sum if the numbers are relative."
    )


def _row_sums(cells: NDArray[Any], indptr: IntArray) -> LongDoubleArray:
    """Sums of the cells stored in each row."""
    sums = np.zeros(len(indptr) - 1, dtype=np.longdouble)
    nonempty = np.diff(indptr) > 0
    if nonempty.any():
        sums[nonempty] = np.add.reduceat(cells.astype(np.longdouble), indptr[:-1][nonempty])
    return sums


def _others(mass: FloatArray, listed: Any, ranked: Any, positive: Any, uniform: bool) -> tuple[float, float, float]:
    """Mass of the secrets that are not listed, the largest probability among them and the smallest positive one.

    ``ranked`` and ``positive`` order all secrets, and those of positive mass, by mass: among the first ``len(listed) +
    1`` from either end there is one that is not listed.
    """
    n = len(mass)
    if len(listed) == n:
        return 0.0, 0.0, 0.0
    if uniform:
        return (n - len(listed)) / n, 1.0 / n, 1.0 / n
    count = len(listed) + 1
    total = float(np.sum(mass, dtype=np.longdouble) - np.sum(mass[listed], dtype=np.longdouble))
    high = next(i for i in ranked[::-1][:count] if i not in listed)
    low = next((mass[i] for i in positive[:count] if i not in listed), 0.0)
    return max(0.0, total), float(mass[high]), float(low)
