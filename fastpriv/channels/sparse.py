"""Channels given by exceptions to a background.

Notation: Q[d, w] is a stored number, or else b, b_d or c_w: one number, one a secret or one a release.
"""

# bounds: tested by enclosures/test_channels - rounding of the sum of a sparse row

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .._values import FloatArray
from ..errors import DomainError, ShapeError
from .base import AnyChannel, Exceptions
from .priors import prior_gap
from .profiles import Profiles, tilts

__all__ = ["SparseChannel"]

_GROUPS = 2**24


class SparseChannel(AnyChannel):
    """A channel that is the same almost everywhere: stored cells over a background.

    Parameters
    ----------
    exceptions : scipy sparse array or matrix, shape (n, m)
        Probabilities that differ from the background. A stored zero is a zero of the channel; repeated entries add.
    background : array_like, optional
        Probability of all cells that are not stored: one number, shape (m,) or (1, m) for one a release, shape (n, 1)
        for one a secret.

    Raises
    ------
    DomainError
        For negative or NaN cells, or a row that does not sum to 1 within 1e-9; the message names the row.
    ShapeError
        For what is no sparse matrix, or a background that does not fit.

    Notes
    -----
    **Accuracy** as ``Channel``; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import diags_array
    >>> from fastpriv import Channel
    >>> q = Channel.sparse(diags_array(np.full(1000, 0.001 + 0.999 * 0.5)), background=0.0005)
    >>> q.shape, q.profiles().tilt.size
    ((1000, 1000), 2000)
    """

    __slots__ = ("data", "indices", "indptr", "background", "count", "_gap")  # noqa: RUF023
    _fields = ("data", "indices", "indptr", "background", "count")

    data: FloatArray
    indices: NDArray[np.int64]
    indptr: NDArray[np.int64]
    background: FloatArray
    count: int
    _gap: float

    def __init__(self, exceptions: Any, background: ArrayLike = 0.0) -> None:
        if not hasattr(exceptions, "tocsr") or getattr(exceptions, "ndim", 2) != 2 or 0 in exceptions.shape:
            raise ShapeError(
                f"exceptions must be a SciPy sparse matrix of shape (n, m); got {_validate.shown(exceptions)}. "
                "Use Channel for a dense one."
            )
        for name in ("indices", "indptr", "row", "col", "offsets"):  # SciPy would drop the fractions of such
            if isinstance(own := getattr(exceptions, name, None), np.ndarray):
                _validate.integers(f"{name} of exceptions", own, -(2**63))
        _validate.array("exceptions", getattr(exceptions, "data", 0.0))
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
        base = _validate.real("background", background, "probabilities", lambda b: (b >= 0) & (b <= 1))
        base = base.reshape(1, -1) if base.ndim < 2 else base
        if base.shape not in ((1, 1), (1, m), (n, 1)):
            raise ShapeError(
                f"background must be a number, of shape ({m},) or of shape ({n}, 1); got {np.shape(background)}. "
                "Pass one number a release, or a column of one a secret."
            )
        if np.all(base == base[0, 0]):
            base = base[:1, :1]
        data = np.array(csr.data, dtype=np.float64)
        self._set(data=data, indices=csr.indices.astype(np.int64), indptr=csr.indptr.astype(np.int64),
                  background=base.copy(), count=int(m))  # fmt: skip
        self._set(_gap=self._checked())

    def _checked(self) -> float:
        rows = np.repeat(np.arange(self.inputs), np.diff(self.indptr))
        allowed = _validate.sum_tolerance(self.data.dtype)
        wrong = ~((self.data >= 0) & (self.data <= 1 + allowed))
        if wrong.any():
            place = int(np.argmax(wrong))
            raise DomainError(
                f"exceptions must be probabilities between 0 and 1; got {float(self.data[place])!r} at row "
                f"{rows[place]}, column {self.indices[place]}. Store only probabilities."
            )
        listed = np.diff(self.indptr)
        stored = _by_row(self.data, self.indptr)
        if self.background.shape[1] > 1:
            own = self.background[0].astype(np.longdouble)
            filled = own.sum() - _by_row(own[self.indices], self.indptr)
        else:
            filled = self.background[:, 0].astype(np.longdouble) * (self.count - listed)
        gaps = np.abs(stored + filled - 1)
        if gaps.max() > allowed:
            row = int(np.argmax(gaps > allowed))
            raise DomainError(
                f"each row must sum to 1 within {allowed:g} with its background; got a sum of "
                f"{float(stored[row] + filled[row])!r} at row {row}. Raise or lower its background."
            )
        rounded = float(np.finfo(np.longdouble).eps) * (2.0 * float(listed.max()) + 256)
        return float(gaps.max()) * (1 + 2.0**-50) + rounded

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return len(self.indptr) - 1

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self.count

    @property
    def mass_gap(self) -> float:
        """How far the sum of a row is from 1, at most, rounded up."""
        return self._gap

    def _rows(self, start: int, stop: int, log: bool) -> FloatArray:
        base = self.background[start:stop] if len(self.background) > 1 else self.background
        found = np.array(np.broadcast_to(base, (stop - start, self.count)))
        stored = slice(self.indptr[start], self.indptr[stop])
        rows = np.repeat(np.arange(stop - start), np.diff(self.indptr[start : stop + 1]))
        found[rows, self.indices[stored]] = self.data[stored]
        if not log:
            return found
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return self._rows(start, stop, True)

    def column(self, output: Any) -> FloatArray | Exceptions:
        """Log likelihoods of one release: the background, and the secrets with a cell of their own.

        Parameters
        ----------
        output : int
            The release.
        """
        place = self._output(output)
        here = np.flatnonzero(self.indices == place)
        rows = np.searchsorted(self.indptr, here, side="right") - 1
        with np.errstate(divide="ignore"):
            values = np.log(self.data[here])
            if len(self.background) > 1:
                found = np.log(self.background[:, 0])
                found[rows] = values
                return np.asarray(found)
            own = float(np.log(self.background[0, place if self.background.size > 1 else 0]))
        return Exceptions(self.inputs, own, rows, values)

    def _profiles(self, prior: FloatArray | None) -> Profiles | None:
        n, m = self.shape
        if len(self.background) > 1 or len(self.data) + m > _GROUPS:
            return super()._profiles(prior)
        order = np.lexsort((np.repeat(np.arange(n), np.diff(self.indptr)), self.indices))
        rows = np.repeat(np.arange(n), np.diff(self.indptr))[order]
        listed = np.bincount(self.indices, minlength=m)
        bounds = np.concatenate([[0], np.cumsum(listed)])
        mass = np.full(n, 1.0 / n) if prior is None else prior
        ranked = np.argsort(mass, kind="stable")
        positive = ranked[mass[ranked] > 0]
        cells: list[FloatArray] = []
        weights: list[FloatArray] = []
        largest: list[FloatArray] = []
        smallest: list[FloatArray] = []
        starts = [0]
        for w in range(m):
            own = slice(bounds[w], bounds[w + 1])
            here, values = rows[own], self.data[order[own]]
            total, high, low = _others(mass, here, ranked, positive, prior is None)
            base = self.background[0, w if self.background.size > 1 else 0]
            extra = [] if listed[w] == n else [base]
            cells.append(np.append(values, extra))
            for column, rest in ((weights, total), (largest, high), (smallest, low)):
                column.append(np.append(mass[here], [rest] if extra else []))
            starts.append(starts[-1] + len(cells[-1]))
        place = np.array(starts[:-1])
        value = np.concatenate(cells)
        top = np.maximum.reduceat(value, place)
        tilt = tilts(value, np.repeat(top, np.diff(starts)))
        tilt[np.repeat(top == 0, np.diff(starts))] = 0.0
        with np.errstate(divide="ignore"):
            held = np.concatenate(weights)
            logs = [np.log(held), np.log(np.concatenate(largest)), np.log(np.concatenate(smallest))]
            return Profiles(np.zeros(m), np.log(top), starts, tilt, held, logs[0], logs[1], logs[2],
                            gap=prior_gap(prior))  # fmt: skip

    def __reduce__(self) -> Any:
        return _rebuilt, (self.data.copy(), self.indices.copy(), self.indptr.copy(), self.shape, self.background.copy())

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<SparseChannel of {n:,} secrets and {m:,} releases, {len(self.data):,} cells stored>"


def _rebuilt(data: FloatArray, indices: Any, indptr: Any, shape: tuple[int, int], background: FloatArray) -> Any:
    from scipy.sparse import csr_array

    return SparseChannel(csr_array((data, indices, indptr), shape=shape), background)


def _by_row(cells: NDArray[Any], indptr: NDArray[np.int64]) -> NDArray[np.longdouble]:
    """Sums of the cells stored in each row."""
    found = np.zeros(len(indptr) - 1, dtype=np.longdouble)
    real = np.diff(indptr) > 0
    if real.any():
        found[real] = np.add.reduceat(cells.astype(np.longdouble), indptr[:-1][real])
    return found


def _others(mass: FloatArray, here: Any, ranked: Any, positive: Any, uniform: bool) -> tuple[float, float, float]:
    """Mass of the secrets that are not here, the largest probability among them and the smallest positive one."""
    n = len(mass)
    if len(here) == n:
        return 0.0, 0.0, 0.0
    if uniform:
        return (n - len(here)) / n, 1.0 / n, 1.0 / n
    reach = len(here) + 1
    total = float(np.sum(mass, dtype=np.longdouble) - np.sum(mass[here], dtype=np.longdouble))
    high = next(i for i in ranked[::-1][:reach] if i not in here)
    low = next((mass[i] for i in positive[:reach] if i not in here), 0.0)
    return max(0.0, total), float(mass[high]), float(low)
