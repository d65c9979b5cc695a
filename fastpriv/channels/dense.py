"""Channels that are written out.

Notation: Q[d, w] is the probability of release w under secret d.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .._files import FileArray, memory_mapped_file
from .._values import FloatArray, lasting
from ..errors import DomainError, ShapeError
from ..kernels import _blahut
from .base import SMALL, AnyChannel
from .priors import prior_gap
from .profiles import Profiles, from_matrix

__all__ = ["Channel"]

_KEPT = (np.dtype(np.float64), np.dtype(np.float32))
_BLOCK = 2**15  # cells looked at together: what stays in a cache
_WIDE = 2**13  # releases beyond which one column of a file is read entry by entry
# bound: tested by kernels/test_bound_constants - relative error of NumPy's exponential, which no standard bounds
_EXPONENTIAL = 2.0**-51  # relative error of one of doubles
_REMEDY = "Divide each row by its sum if the numbers are relative."
Cells = NDArray[np.floating[Any]]


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
        What was given, read-only.
    log : bool
        Whether they are logarithms.

    Raises
    ------
    DomainError
        For NaN, negative cells, or a row that does not sum to 1; the message names the row.
    ShapeError
        For what is no matrix, or has no rows or no columns.
    MemoryError
        If a copy is needed and would not fit.

    Notes
    -----
    A C-contiguous array of floats that nobody can write to (``setflags(write=False)``), and any ``numpy.memmap``, are
    kept without a copy and read in blocks. Zero columns, releases that never occur, are allowed.

    The rows of a mapped array are read from the file that is mapped, also where another file has taken its name by
    now: an error says if it was written to or cut. Where that file cannot be known (maps with changes of their own,
    files that were renamed or removed, systems other than Linux), each block is read through the map after a look at
    the length of the file; a file that is cut in between still ends the process.

    **Accuracy** ``mass_gap`` is within rounding of the largest gap of a row; ``tests/contracts/test_channels.py``.

    Source: Shannon 1948, the discrete channel with noise.

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

    __slots__ = ("cells", "log", "_gap", "_file")  # noqa: RUF023  (the order of the constructor)
    _fields = ("cells", "log")

    cells: Cells
    log: bool
    _gap: float
    _file: FileArray | None

    def __init__(self, matrix: ArrayLike, *, log: bool = False) -> None:
        logs = _validate.flag("log", log)
        cells = _cells(matrix)
        self._set(cells=cells, log=logs, _file=memory_mapped_file("matrix", cells))
        self._set(_gap=self._checked())

    def _checked(self) -> float:
        """The largest gap of a row, rounded up; an error that names the row for what is no law."""
        (n, m), log = self.shape, self.log
        allowed = _validate.sum_tolerance(self.cells.dtype)
        worst = 0.0
        step = max(1, _BLOCK // m)
        for start in range(0, n, step):
            block = self._stored(start, min(start + step, n))
            with np.errstate(invalid="ignore", over="ignore"):
                weights = np.exp(block, dtype=np.float64) if log else np.asarray(block, dtype=np.float64)
                gaps = _blahut.row_gaps(np.ascontiguousarray(weights))  # negative for NaN and negative cells
                good = (gaps >= 0) & (gaps <= allowed)
            if not good.all():
                _refuse(block, weights, int(np.argmin(good)), start, log, allowed)
            if log:  # the exponentials are rounded, all but those of 0 and -inf
                gaps[((weights > 0) & (weights != 1)).any(axis=1)] += _EXPONENTIAL
            worst = max(worst, float(gaps.max()))
        return worst

    @classmethod
    def sparse(cls, exceptions: Any, background: ArrayLike = 0.0) -> AnyChannel:
        """A channel given by exceptions to a background; see ``SparseChannel``."""
        from .sparse import SparseChannel

        return SparseChannel(exceptions, background)

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return len(self.cells)

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return int(self.cells.shape[1])

    @property
    def mass_gap(self) -> float:
        """How far the sum of a row is from 1, at most: a relative slip of the row."""
        return self._gap

    def _stored(self, start: int, stop: int) -> Cells:
        """Rows as they are stored."""
        if self._file is None:
            block = self.cells[start:stop]
            if _validate.map_of(block) is None:
                return block
            _validate.whole_file("matrix", block)
            return np.array(block)
        m = self.outputs
        found = self._file.take(start * m, stop * m).reshape(stop - start, m)
        found.setflags(write=False)
        return found

    def _whole(self) -> Cells:
        """All cells, where they are few or looked at once."""
        _validate.whole_file("matrix", self.cells)
        return self.cells

    def _arrays(self) -> tuple[Any, ...]:
        return self._whole(), self.log

    def _rows(self, start: int, stop: int, log: bool) -> Cells:
        block = self._stored(start, stop)
        if log == self.log:
            return block
        wide = block.astype(np.float64)  # logs of singles in doubles: what follows counts them as exact
        if log:
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(wide))
        return np.asarray(np.exp(wide))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)

    def _profiles(self, prior: FloatArray | None) -> Profiles | None:
        if self.cells.size > SMALL:
            return None
        return from_matrix(self._stored(0, self.inputs), self.log, prior, prior_gap(prior), 0.0)

    def column(self, output: Any) -> NDArray[np.floating[Any]]:
        """Log likelihoods of one release under every secret, shape (inputs,), float64.

        Parameters
        ----------
        output : int
            The release.
        """
        cells = self._entries(self._output(output)).astype(np.float64)
        if self.log:
            return cells
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(cells))

    def _entries(self, place: int) -> Cells:
        """One column as it is stored."""
        n, m = self.shape
        if self._file is None:
            return self._whole()[:, place]
        found = np.empty(n, dtype=self.cells.dtype)
        if m > _WIDE:  # few of the pages hold one
            for row in range(n):
                found[row : row + 1] = self._file.take(row * m + place, row * m + place + 1)
            return found
        step = max(1, _BLOCK // m)
        for start in range(0, n, step):
            found[start : start + step] = self._stored(start, min(start + step, n))[:, place]
        return found

    def __reduce__(self) -> Any:
        cells = self._whole()
        if self._file is None:  # another process would look for a file by its name
            cells = np.array(cells) if _validate.map_of(cells) is not None else cells
        return _rebuilt, (np.asarray(cells), self.log, None if self._file is None else self._file.state)

    def __repr__(self) -> str:
        if self.cells.size <= 16 and not self.log:
            return f"Channel({self.cells.tolist()})"
        n, m = self.shape
        return f"<Channel of {n:,} secrets and {m:,} releases, {self.cells.dtype}{', logs' if self.log else ''}>"


def _rebuilt(cells: Cells, log: bool, found: tuple[int, int, int] | None = None) -> Channel:
    cells.setflags(write=False)
    made = Channel(cells, log=log)
    if made._file is not None and found not in (None, made._file.state):
        raise DomainError(
            f"matrix must be a file that stays as it is while it is read; got {str(made._file.path)!r}, and another "
            "was found under its name in another process. Run again when it is complete."
        )
    return made


def _cells(matrix: ArrayLike) -> Cells:
    """The matrix as C-contiguous floats: itself where it lasts, else a copy."""
    try:
        given = _validate.array("matrix", matrix)
    except ShapeError:  # ragged
        given = np.asarray(matrix, dtype=object)
    if given.dtype.kind not in "fiub":
        given = _validate.real("matrix", matrix, "numbers", answer=False)
    if given.ndim != 2 or given.size == 0:
        raise ShapeError(
            f"matrix must have one row a secret and one column a release; got shape {given.shape}. Pass shape (n, m)."
        )
    kind = given.dtype if given.dtype in _KEPT and given.dtype.isnative else np.dtype(np.float64)
    if given.dtype == kind and given.flags.c_contiguous and (isinstance(matrix, np.memmap) or lasting(given)):
        return given.view(np.ndarray)
    _validate.memory("matrix", given.size * kind.itemsize, "Save it as .npy and pass numpy.load(path, mmap_mode='r').")
    return _validate.copied(given, kind, "C")


def _refuse(block: Cells, weights: Cells, place: int, start: int, log: bool, allowed: float) -> None:
    row, found = block[place], weights[place]
    wrong = np.isnan(row) | (row > (1e-5 if log else 1 + allowed)) | (False if log else row < 0)
    if wrong.any():
        column = int(np.argmax(wrong))
        said = "log probabilities, at most 0" if log else "probabilities between 0 and 1"
        raise DomainError(
            f"matrix must be made of {said}; got {float(row[column])!r} at row {start + place}, column {column}. "
            + ("Pass natural logarithms." if log else "Pass logarithms with log=True.")
        )
    raise DomainError(
        f"each row of matrix must sum to 1 within {allowed:g}; got a sum of "
        f"{float(np.sum(found, dtype=np.longdouble))!r} at row {start + place}. {_REMEDY}"
    )
