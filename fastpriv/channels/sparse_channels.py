"""Channels whose rows are mostly equal: exceptions to a background, or a few rows beside a default row.

Notation: Q[d, w] is the probability of release w under secret d; n secrets, m releases.

Source: Shannon 1948, the discrete channel with noise.
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding of the gap of a sparse row to a double

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, IndexArray, IntArray, LongDoubleArray, RealArray
from .base import AnyChannel, Channel
from .likelihoods import DefaultLikelihood
from .matrix_cells import logs_of
from .type_classes import RowPair, TypeClasses, classes_of_groups, ordered_pairs, prior_gap, relative_logs

_MAX_GROUPS = 2**24  # groups of secrets up to which type classes of a sparse channel are listed (about 1 GiB)
_MAX_LISTED_ROWS = 64  # distinct rows up to which all their ordered pairs are returned


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
    >>> from fastpriv.channels import SparseChannel
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
                  indptr=csr.indptr.astype(np.int64), background=base.copy(), count=int(m))
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
        return logs_of(cells) if log else cells

    def column(self, output: ArrayLike) -> FloatArray | DefaultLikelihood:
        """Log likelihoods of one release: the background, and the secrets with a stored cell in this column."""
        index = self._output_index(output)
        stored = np.flatnonzero(self.indices == index)
        rows = np.searchsorted(self.indptr, stored, side="right") - 1
        values = logs_of(self.data[stored])
        if len(self.background) > 1:
            logs = logs_of(self.background[:, 0])
            logs[rows] = values
            return logs
        default = self.background[0, index if self.background.size > 1 else 0]
        return DefaultLikelihood(self.inputs, float(logs_of(default)), rows, values)

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
            for column, stored, other in zip(
                columns, (self.data[order[part]], listed, listed, listed), others, strict=True
            ):
                column.append(np.append(stored, [] if stored_counts[w] == n else [other]))
            starts.append(starts[-1] + len(columns[0][-1]))
        cells, masses, largest, smallest = map(np.concatenate, columns)
        top = np.maximum.reduceat(cells, np.array(starts[:-1]))
        top_of_group = np.repeat(top, np.diff(starts))
        relative = relative_logs(cells, top_of_group)
        relative[top_of_group == 0] = 0.0
        return TypeClasses(np.zeros(m), logs_of(top), starts, relative, masses, logs_of(masses), logs_of(largest),
                           logs_of(smallest), gap=prior_gap(prior))

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
    >>> from fastpriv.channels import DefaultChannel
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

    def column(self, output: ArrayLike) -> DefaultLikelihood:
        """Log likelihoods of one release: a default, and those of the secrets that are listed."""
        logs = np.asarray(self.distinct_rows.column(output), dtype=np.float64)
        return DefaultLikelihood(self.size, float(logs[-1]), self.indices, logs[:-1])

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
        remainder = np.delete(prior, self.indices)
        total = float(np.sum(remainder, dtype=np.longdouble))
        low = float(np.min(remainder, where=remainder > 0, initial=np.inf))
        mass, largest, smallest = (
            np.append(prior[self.indices], last) for last in (total, remainder.max(), low if low < np.inf else 0.0)
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


def _unpickled_sparse_channel(data: FloatArray, indices: Any, indptr: Any, shape: Any, background: Any) -> Any:
    from scipy.sparse import csr_array

    return SparseChannel(csr_array((data, indices, indptr), shape=shape), background)


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
