"""Long vectors of numbers in fixed blocks: in memory, in files, or returned by functions.

Notation: block k holds the entries k BLOCK to (k + 1) BLOCK - 1, whatever reads it. A source with ``random_access``
reads any range, from any thread; the others are read from start to end, once more for each pass where they are
``rereadable``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.files import FileArray, changed_file, file_state, memory_mapped_file, read_npy_header
from ..base.numerics import FloatArray, IntArray, RealArray
from ..base.table import pyarrow
from ..kernels.jit import point_loops

_EVALUATED_AT_ONCE = 2**14  # values of a function; their arrays stay in the cache
BLOCK = 2**18  # entries: 2 MiB of doubles, the unit of work of all posteriors; results depend on it in the last digits


class VectorSource:
    """One vector of numbers; ``length`` is None if it is unknown before all of it is read.

    ``take(start, stop)`` is for sources with random access, ``blocks()`` for all; both give contiguous float32 or
    float64.
    """

    random_access = True
    rereadable = True
    length: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def is_file_of(self, array: NDArray[Any]) -> bool:
        """Whether an array is mapped from the file that this is read from."""
        return False

    def take(self, start: int, stop: int) -> RealArray:
        """Entries ``start`` to ``stop - 1``."""
        raise NotImplementedError

    def blocks(self) -> Iterator[RealArray]:
        """All blocks, in order, each full but the last."""
        length = self.known_length()
        return (self.take(start, min(start + BLOCK, length)) for start in range(0, length, BLOCK))

    def known_length(self) -> int:
        """The number of entries, where it is known before all are read."""
        if self.length is None:
            raise DomainError(
                f"{self.name} must be in memory or in a file for its size to be known; got a function or an iterator. "
                "Take the size of the posterior."
            )
        return self.length


def source_of(name: str, values: Any) -> VectorSource:
    """The source for an array, a path, a path and a column, a function or an iterator."""
    if isinstance(values, np.ndarray):
        array = validate.array(name, values)
        if validate.map_of(array) is None:
            return _ArraySource(name, array)
        # the file behind it; copy-on-write maps may differ from their file and are read as arrays
        numbers = memory_mapped_file(name, _checked_vector(name, array))
        return _MappedSource(name, array) if numbers is None else _FileSource(name, numbers)
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], (str, os.PathLike)):
        return _file_source(name, Path(values[0]), values[1])
    if isinstance(values, (str, os.PathLike)):
        return _file_source(name, Path(values), None)
    if callable(values):
        return _FunctionSource(name, values)
    if hasattr(values, "__next__"):
        return _FunctionSource(name, None, values)
    return _ArraySource(name, validate.vector(name, values, "numbers", lambda x: np.ones(x.shape, dtype=bool)))


class ConcatenatedSource(VectorSource):
    """Sources of known lengths, one behind the other, of which any range can be read."""

    def __init__(self, name: str, sources: Sequence[VectorSource]) -> None:
        super().__init__(name)
        for source in sources:
            if source.length is None:
                raise DomainError(
                    f"{name} must have parts of known lengths; got a function or an iterator. Pass files, arrays or "
                    "fastpriv.channels.IndexLikelihood."
                )
        self.sources = [source for source in sources if source.length]
        self.ends = np.cumsum([source.known_length() for source in self.sources], dtype=np.int64)
        self.length = int(self.ends[-1]) if self.sources else 0

    def is_file_of(self, array: NDArray[Any]) -> bool:
        """Whether an array is mapped from one of the files."""
        return any(source.is_file_of(array) for source in self.sources)

    def take(self, start: int, stop: int) -> RealArray:
        """Entries ``start`` to ``stop - 1``."""
        pieces, index = [], int(np.searchsorted(self.ends, start, side="right"))
        while start < stop:
            source, end = self.sources[index], int(self.ends[index])
            first = end - source.known_length()
            pieces.append(source.take(start - first, min(stop, end) - first))
            start, index = min(stop, end), index + 1
        if len({piece.dtype for piece in pieces}) > 1:
            pieces = [piece.astype(np.float64) for piece in pieces]
        return _concatenated(pieces)


_last = threading.local()  # by name of a vector: the array that this thread read last, with what it belongs to


def _cached(source: VectorSource, part: int, read: Callable[[], Any]) -> NDArray[Any]:
    """What ``read`` returns for a part of a source, kept until another one of its name is read in this thread."""
    selected = vars(_last)
    owner, number, values = selected.get(source.name, (None, 0, None))
    if owner is not source or number != part:
        del values
        selected.pop(source.name, None)  # two of them may not fit
        values = np.asarray(read())
        selected[source.name] = source, part, values
    return np.asarray(values)


class _ArraySource(VectorSource):
    def __init__(self, name: str, values: NDArray[Any]) -> None:
        super().__init__(name)
        self.values, self.length = _checked_vector(name, values), len(values)

    def take(self, start: int, stop: int) -> RealArray:
        return _floats(self.name, self.values[start:stop])


class _MappedSource(_ArraySource):
    """An array that is mapped from a file of which nothing is known but the map.

    Each block is copied, after a check of the length of the file. A truncation between this check and the end of the
    copy, which takes less than a millisecond, still ends the process.
    """

    def take(self, start: int, stop: int) -> RealArray:
        part = self.values[start:stop]
        validate.whole_file(self.name, part)
        return _floats(self.name, np.array(part))

    def __reduce__(self) -> Any:  # another process opens the file by its name
        return _ArraySource, (self.name, np.array(self.values))


class _FileSource(VectorSource):
    """Consecutive numbers in a file, read and never mapped: a truncated file is an error and not a signal."""

    def __init__(self, name: str, numbers: FileArray) -> None:
        super().__init__(name)
        _check_dtype(name, numbers.dtype)
        self.numbers, self.length = numbers, numbers.length

    def is_file_of(self, array: NDArray[Any]) -> bool:
        """Whether an array is mapped from this file."""
        other = memory_mapped_file(self.name, array)
        return other is not None and other.state[0] == self.numbers.state[0]

    def take(self, start: int, stop: int) -> RealArray:
        return _floats(self.name, self.numbers.take(start, stop, f"block {start // BLOCK}"))


def _file_source(name: str, path: Path, column: Any) -> VectorSource:
    validate.existing_file(name, path)
    ending = path.suffix.lower()
    if ending == ".npy" and column is None:
        return _npy_source(name, path)
    if ending == ".parquet":
        return _ParquetSource(name, path, column)
    raise DomainError(
        f"{name} must be a .npy or .parquet file; got {str(path)!r}. Save it with numpy.save, or pass an array."
    )


def _npy_source(name: str, path: Path) -> VectorSource:
    with open(path, "rb") as stream:
        try:
            head = read_npy_header(stream, os.fstat(stream.fileno()).st_size)
        except DomainError as fault:
            raise DomainError(
                f"{name} must be a .npy file; got {str(path)!r}, in which {fault}. Write it with numpy.save."
            ) from None
    if len(head.shape) != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {head.shape} in {str(path)!r}. Pass a flat array.")
    _check_dtype(name, head.dtype)
    return _FileSource(name, FileArray(name, path, head.dtype, head.start, head.entries))


def _floats(name: str, array: NDArray[Any]) -> RealArray:
    """The same numbers, contiguous and in float32 or float64: float16 become float32, the others float64."""
    _check_dtype(name, array.dtype)
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)


def _checked_vector(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {array.shape}. Pass a flat array.")
    _check_dtype(name, array.dtype)
    return array


def _check_dtype(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise DomainError(
            f"{name} must be made of floats of at most 64 bits or of integers; got {dtype}. "
            "Convert it with astype(float)."
        )


class _ParquetSource(VectorSource):
    """A column of a Parquet file, of which a thread keeps one row group."""

    def __init__(self, name: str, path: Path, column: str | None) -> None:
        super().__init__(name)
        self.path, self.open = path, pyarrow("read Parquet")[1].ParquetFile
        with self._opened(0) as file:
            names = list(file.schema_arrow.names)
            if column is None and len(names) == 1:
                column = names[0]
            if column not in names:
                raise DomainError(
                    f"{name} must name a column of {str(path)!r}; got {column!r}. "
                    f"Pass (path, column) with one of {', '.join(map(str, names))}."
                )
            self.column, self.length = column, int(file.metadata.num_rows)
            groups = range(file.metadata.num_row_groups)
            self.group_sizes = [int(file.metadata.row_group(group).num_rows) for group in groups]
            self.group_ends = np.cumsum(self.group_sizes, dtype=np.int64)
        self.state = file_state(path)

    def _opened(self, block: int) -> Any:
        try:
            return self.open(self.path)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as fault:
            raise self._unreadable(block, fault) from None

    def _unreadable(self, block: int, fault: Exception) -> DomainError:
        reason = " ".join(str(fault).split()).rstrip(".")
        return DomainError(
            f"{self.name} must be a Parquet file that can be read; got {str(self.path)!r}, in which block {block} "
            f"fails: {reason}. Write it anew."
        )

    def _check_state(self, block: int) -> None:
        if file_state(self.path) != self.state:
            raise changed_file(self.name, self.path, f"it was written to before block {block} was read")

    def _numbers(self, column: Any, first: int) -> NDArray[Any]:
        """The numbers of entries from ``first`` on; raises if one is missing."""
        if column.null_count:
            index = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise DomainError(
                f"{self.name} must have no missing entries; got one at index {index}, in block "
                f"{index // BLOCK} of {str(self.path)!r}. Fill it or leave it out."
            )
        numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return numbers

    def take(self, start: int, stop: int) -> RealArray:
        """Entries ``start`` to ``stop - 1``, out of row groups that are read as a whole."""
        self._check_state(start // BLOCK)
        pieces, group = [], int(np.searchsorted(self.group_ends, start, side="right"))
        while start < stop:
            end = int(self.group_ends[group])
            first = end - self.group_sizes[group]
            values = _cached(self, group, partial(self._row_group, group, first))
            pieces.append(_floats(self.name, values[start - first : min(stop, end) - first]))
            start, group = min(stop, end), group + 1
        return _concatenated(pieces)

    def _row_group(self, group: int, first: int) -> NDArray[Any]:
        validate.memory(self.name, 16 * self.group_sizes[group], "Write the file in row groups of 2**20 rows.")
        with self._opened(first // BLOCK) as file:
            try:
                table = file.read_row_group(group, columns=[self.column], use_threads=False)
            except (OSError, ValueError) as fault:
                raise self._unreadable(first // BLOCK, fault) from None
        self._check_state(first // BLOCK)
        return self._numbers(table.column(0).combine_chunks(), first)


class _FunctionSource(VectorSource):
    """Arrays of any length out of a function that starts afresh each time, or out of an iterator, once."""

    random_access = False

    def __init__(self, name: str, function: Callable[[], Any] | None, iterator: Iterator[Any] | None = None) -> None:
        super().__init__(name)
        self.function, self.iterator, self.rereadable = function, iterator, iterator is None

    def blocks(self) -> Iterator[RealArray]:
        return _rebatched(self.name, self._arrays())

    def _new_iterator(self) -> Iterator[Any]:
        """The iterator of a call of the function; an error if it takes arguments or returns no arrays."""
        assert self.function is not None
        try:
            return iter(self.function())
        except TypeError as cause:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            raise DomainError(
                f"{self.name} must be a function without arguments that yields arrays; got TypeError: {cause} from "
                f"{name!r}. Pass its values as an array, or a function of secrets to fastpriv.channels.IndexLikelihood."
            ) from cause

    def _arrays(self) -> Iterator[Any]:
        arrays = entries = 0
        try:
            iterator = self.iterator if self.function is None else self._new_iterator()
            assert iterator is not None
        except DomainError:
            raise
        except Exception as cause:  # anything that the caller's function raises
            raise self._failure(arrays, entries, cause) from cause
        while True:
            try:
                values = next(iterator)
            except StopIteration:
                return
            except Exception as cause:
                raise self._failure(arrays, entries, cause) from cause
            array = validate.array(self.name, values)
            arrays, entries = arrays + 1, entries + array.size
            yield array

    def _failure(self, arrays: int, entries: int, cause: Exception) -> DomainError:
        return DomainError(
            f"{self.name} must be arrays to its end; got {cause!r} from the function, in place of its array "
            f"{arrays}, which starts at secret {entries}. Mend the function, and call again."
        )


def _rebatched(name: str, arrays: Iterator[Any]) -> Iterator[RealArray]:
    """Arrays of any length as blocks; copied, as a function may fill one array again and again."""
    pending: list[RealArray] = []
    count = 0
    for array in arrays:
        remainder = _floats(name, _checked_vector(name, array))
        if np.may_share_memory(remainder, array):
            remainder = remainder.copy()
        while count + remainder.size >= BLOCK:
            length = BLOCK - count
            yield _concatenated([*pending, remainder[:length]])
            pending, count, remainder = [], 0, remainder[length:]
        if remainder.size:
            pending.append(remainder)
            count += remainder.size
    if count:
        yield _concatenated(pending)


def _concatenated(parts: list[RealArray]) -> RealArray:
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))


class IndexSource(VectorSource):
    """The values of a function of an index, jitted or vectorised, over all indices."""

    def __init__(self, name: str, function: Callable[..., Any], length: int) -> None:
        super().__init__(name)
        self.function, self.length = function, length
        self.loop = point_loops.index_loop("function", function) if point_loops.is_jitted(function) else None

    def __reduce__(self) -> Any:
        return IndexSource, (self.name, self.function, self.length)

    def take(self, start: int, stop: int) -> FloatArray:
        """Entries ``start`` to ``stop - 1``, evaluated in pieces that fit in the cache."""
        validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time.")
        logs = np.empty(stop - start)
        for first in range(start, stop, _EVALUATED_AT_ONCE):
            last = min(first + _EVALUATED_AT_ONCE, stop)
            logs[first - start : last - start] = self._values(np.arange(first, last))
        return logs

    def _values(self, indices: IntArray) -> FloatArray:
        """The caller's function of consecutive indices, with checks of what it returns."""
        position = f"block {indices[0] // BLOCK}, secrets {indices[0]} to {indices[-1]}"
        try:
            if self.loop is None:
                returned = self.function(indices)
            else:
                returned = np.empty(len(indices))
                self.loop(indices, returned)
        except Exception as fault:
            raise DomainError(
                f"function must return a log likelihood for every secret; got {type(fault).__name__}: {fault} in "
                f"{position}. Mend it for these secrets."
            ) from fault
        logs = validate.array("function", returned)
        if logs.shape != indices.shape or logs.dtype.kind not in "fiub":
            raise DomainError(
                f"function must return one real number a secret; got {logs.dtype} of shape {logs.shape} for "
                f"{len(indices)} secrets in {position}. Vectorise it, or jit a function of one integer."
            )
        return np.ascontiguousarray(logs, dtype=np.float64)
