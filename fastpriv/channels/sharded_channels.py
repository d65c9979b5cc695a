"""``ShardedChannel``: a channel table that no machine needs to hold, whose rows come in parts.

Notation: Q[d, w] is the probability of release w under secret d; n secrets, m releases. A row is an entry of the
sources of ``vector_sources``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, RealArray
from .vector_sources import ConcatenatedSource, VectorSource, sources_of

__all__ = ["ShardedChannel"]


class ShardedChannel:
    """One channel table, in parts of whole rows that are read or computed block by block.

    Parameters
    ----------
    parts : sequence of sources, or one source
        The parts of the table, one below the other, each of a number of secrets that is known: a ``.npy`` file of shape
        (k, m), a Parquet file whose columns are the releases, an array of shape (k, m), or a pair ``(function, k)``; or
        a dask array, whose chunks of whole rows are the parts, or a column of rows of a Ray dataset,
        ``(dataset, column)``. A function takes an array of numbers of secrets of its part, counted from 0, and returns
        their rows.
    shards : int, optional
        Number of pieces of work, of whole blocks of rows. None means one for each part, and 64 for one part. Results do
        not depend on it.
    log : bool, optional
        Whether they are natural logarithms of probabilities; -inf stands for a zero.

    Raises
    ------
    DomainError, ShapeError
        For parts that are no matrices, of different numbers of columns, or of unknown lengths. Rows are checked when
        they are read: they must sum to 1 as those of ``Channel``.

    Notes
    -----
    ``notions.summary`` runs the shards on threads, processes or a cluster (``executor``), and keeps those that are
    finished (``store``). It and the functions of its quantities (LDP, MBP, mutual information, vulnerability, leakage)
    take this channel. What needs more than a few passes through the rows takes a ``Channel`` only. Files must be there
    under the same names for all workers.

    **Accuracy** that of ``Channel``, with the same bits under the uniform prior;
    ``tests/contracts/test_sharded_channels.py``.

    Source: Shannon 1948, the discrete channel with noise.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import ShardedChannel, notions
    >>> def rows(d):  # of the secrets with these numbers
    ...     p = 0.25 + 0.5 * (d % 2)
    ...     return np.stack([p, 1 - p], axis=1)
    >>> channel = ShardedChannel((rows, 10**6), shards=4)
    >>> channel.shape
    (1000000, 2)
    >>> notions.summary(None, channel).bayes_vulnerability.value
    1.5e-06
    """

    def __init__(self, parts: Any, shards: int | None = None, *, log: bool = False) -> None:
        several = isinstance(parts, (list, tuple)) and not _is_one_part(parts)
        if several and not parts:
            raise ShapeError("parts must have at least one entry; got none. Pass the parts of one table.")
        self.log = validate.flag("log", log)
        self.shards = None if shards is None else validate.count("shards", shards)
        self.parts = len(parts) if several else 1
        sources: list[VectorSource] = []
        for part in parts if several else (parts,):
            if isinstance(part, tuple) and len(part) == 2 and callable(part[0]):
                sources.append(_RowFunction(part[0], validate.count("number of secrets", part[1])))
            else:
                sources += sources_of("parts", part, ndim=2)
        self._source = ConcatenatedSource("parts", sources)
        if not self._source.length:
            raise ShapeError("parts must have at least one secret; got none. Pass one row for each secret.")
        self._outputs = int(self._source.sources[0].take(0, 1).shape[1])
        if not self._outputs:
            raise ShapeError("parts must have at least one release; got empty rows. Pass one column a release.")

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self._source.known_length()

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self._outputs

    @property
    def shape(self) -> tuple[int, int]:
        """Number of secrets and number of releases."""
        return self.inputs, self.outputs

    def __repr__(self) -> str:
        n, m = self.shape
        return f"ShardedChannel({n} x {m}, {self.parts} parts, shards={self.shards}, log={self.log})"

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        """The rows of secrets ``start`` to ``stop - 1``, as they are stored."""
        assert log == self.log
        try:
            rows = self._source.take(start, stop)
        except (DomainError, ShapeError):
            raise
        except ValueError:  # of NumPy, for pieces of different widths
            rows = np.empty((0, 0))
        if rows.shape[1] != self.outputs:
            raise ShapeError(
                f"parts must all have {self.outputs} releases, as the first one; got another number among the rows "
                f"from {start} to {stop - 1}. Pass the same columns in all parts."
            )
        return rows

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)


class _RowFunction(VectorSource):
    """The rows that a function returns for the numbers of the secrets of its part."""

    random_access = True

    def __init__(self, function: Callable[..., Any], length: int) -> None:
        super().__init__("function")
        self.function, self.length = function, length

    def take(self, start: int, stop: int) -> RealArray:
        try:
            rows = np.asarray(self.function(np.arange(start, stop, dtype=np.int64)))
        except Exception as cause:  # anything that the caller's function raises
            raise DomainError(
                f"function must return a row for every secret; got {type(cause).__name__}: {cause} for the secrets "
                f"from {start} to {stop - 1}. Make it take an array of their numbers."
            ) from cause
        if rows.ndim != 2 or len(rows) != stop - start or rows.dtype.kind not in "fiub":
            raise ShapeError(
                f"function must return one row of numbers for each of {stop - start} secrets; got shape {rows.shape} "
                f"of {rows.dtype}. Return an array of shape (secrets, releases)."
            )
        return np.ascontiguousarray(rows, dtype=np.float32 if rows.dtype == np.float32 else np.float64)


def _is_one_part(parts: Any) -> bool:
    """Whether a pair is a function with its number of secrets, a file with None, or a dataset and its column."""
    return isinstance(parts, tuple) and len(parts) == 2 and (callable(parts[0]) or isinstance(parts[1], str))
