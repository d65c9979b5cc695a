"""Long vectors of numbers in fixed blocks, from wherever they are: memory, files, functions.

Notation: block k holds the entries k BLOCK to (k + 1) BLOCK - 1, whatever reads it. A ``direct`` source hands out any
range, to any thread; the others come from start to end, once more for each pass where they can be read ``again``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._files import FileArray, file_state, memory_mapped_file, read_npy_header
from ...errors import BackendMissingError, DomainError, ShapeError

__all__ = ["BLOCK", "Source", "SourceFault", "source_of"]

BLOCK = 2**18
Numbers = NDArray[np.floating[Any]]


class SourceFault(Exception):
    """What a function of the caller raised, in which of its arrays, and at which entry of the whole."""

    def __init__(self, name: str, piece: int, entry: int, cause: BaseException) -> None:
        super().__init__(name, piece, entry, cause)
        self.name, self.piece, self.entry, self.cause = name, piece, entry, cause


class Source:
    """One vector: ``length`` is None where only reading all of it tells.

    ``take(start, stop)`` is for direct sources, ``blocks()`` for the others; both give contiguous float32 or float64.
    """

    direct = False
    again = True
    length: int | None = None

    def __init__(self, name: str) -> None:
        self.name = name

    def is_file_of(self, array: NDArray[Any]) -> bool:
        """Whether an array is mapped from the file that this is read from."""
        return False

    def take(self, start: int, stop: int) -> Numbers:
        """Entries ``start`` to ``stop - 1``."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Numbers]:
        """All blocks, in order, each full but the last."""
        raise NotImplementedError

    def known_length(self) -> int:
        """The number of entries, where it is known before all are read."""
        if self.length is None:
            raise DomainError(
                f"{self.name} must be in memory or in a file for its size to be known; got a function or an iterator. "
                "Take the size of the posterior."
            )
        return self.length


class _Array(Source):
    direct = True

    def __init__(self, name: str, values: NDArray[Any]) -> None:
        super().__init__(name)
        self.values, self.length = _vector(name, values), int(values.size)

    def take(self, start: int, stop: int) -> Numbers:
        return floats(self.name, self.values[start:stop])


class _File(Source):
    """Numbers in a row in a file, read and never mapped: what is cut off while it is read is an error and no signal."""

    direct = True

    def __init__(self, name: str, numbers: FileArray) -> None:
        super().__init__(name)
        _kind(name, numbers.dtype)
        self.numbers, self.length = numbers, numbers.length

    def is_file_of(self, array: NDArray[Any]) -> bool:
        """Whether an array is mapped from this file."""
        other = memory_mapped_file(self.name, array)
        return other is not None and other.state[0] == self.numbers.state[0]

    def take(self, start: int, stop: int) -> Numbers:
        return floats(self.name, self.numbers.take(start, stop, f"block {start // BLOCK}"))


class _Mapped(_Array):
    """An array that is mapped from a file of which nothing is known but the map.

    Each block is copied, after a look at how long the file is: cut between this look and the end of the copy, which
    takes less than a millisecond, it still ends the process.
    """

    def take(self, start: int, stop: int) -> Numbers:
        part = self.values[start:stop]
        _validate.whole_file(self.name, part)
        return floats(self.name, np.array(part))

    def __reduce__(self) -> Any:  # another process would look for the file by its name
        return _Array, (self.name, np.array(self.values))


class _Parquet(Source):
    def __init__(self, name: str, path: Path, column: str | None) -> None:
        super().__init__(name)
        try:
            import pyarrow.parquet as parquet
        except ImportError:
            raise BackendMissingError(
                f"{name} must be readable; got a Parquet file without pyarrow. Install it with: pip install pyarrow"
            ) from None
        self.path, self.open = path, parquet.ParquetFile
        with self._file(0) as file:
            names = list(file.schema_arrow.names)
            if column is None and len(names) == 1:
                column = names[0]
            if column not in names:
                raise DomainError(
                    f"{name} must name a column of {str(path)!r}; got {column!r}. "
                    f"Pass (path, column) with one of {', '.join(map(str, names))}."
                )
            self.column, self.length = column, int(file.metadata.num_rows)
        self.state = file_state(path)

    def _file(self, block: int) -> Any:
        try:
            return self.open(self.path)
        except FileNotFoundError:
            raise
        except (OSError, ValueError) as fault:
            raise _broken(self.name, self.path, block, fault) from None

    def blocks(self) -> Iterator[Numbers]:
        return _even(self.name, self._batches(), lasting=True)

    def _batches(self) -> Iterator[Any]:
        seen = 0
        with self._file(0) as file:
            batches = file.iter_batches(batch_size=BLOCK, columns=[self.column], use_threads=False)
            while True:
                block = seen // BLOCK
                try:
                    batch = next(batches, None)
                except (OSError, ValueError) as fault:
                    raise _broken(self.name, self.path, block, fault) from None
                if file_state(self.path) != self.state:
                    raise _changed(self.name, self.path, block, "it was written to")
                if batch is None:
                    return
                column = batch.column(0)
                if column.null_count:
                    index = seen + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
                    raise DomainError(
                        f"{self.name} must have no missing entries; got one at index {index}, in block "
                        f"{index // BLOCK} of {str(self.path)!r}. Fill it or leave it out."
                    )
                seen += len(column)
                yield column.to_numpy(zero_copy_only=False)


class _Function(Source):
    """Arrays of any length out of a function that starts afresh each time, or out of an iterator, once."""

    def __init__(self, name: str, function: Callable[[], Any] | None, iterator: Iterator[Any] | None = None) -> None:
        super().__init__(name)
        self.function, self.iterator, self.again = function, iterator, iterator is None

    def blocks(self) -> Iterator[Numbers]:
        return _even(self.name, self._pieces())

    def _called(self) -> Iterator[Any]:
        """What a call of the function goes through; an error for one that takes arguments or returns no arrays."""
        assert self.function is not None
        try:
            return iter(self.function())
        except TypeError as cause:
            name = getattr(self.function, "__name__", type(self.function).__name__)
            raise DomainError(
                f"{self.name} must be a function without arguments that yields arrays; got TypeError: {cause} from "
                f"{name!r}. Pass its values as an array, or a function of secrets to fastpriv.IndexLikelihood."
            ) from cause

    def _pieces(self) -> Iterator[Any]:
        count = seen = 0
        try:
            pieces = self.iterator if self.function is None else self._called()
            assert pieces is not None
        except DomainError:
            raise
        except Exception as cause:  # whatever the caller's function raises
            raise SourceFault(self.name, count, seen, cause) from cause
        while True:
            try:
                piece = next(pieces)
            except StopIteration:
                return
            except Exception as cause:
                raise SourceFault(self.name, count, seen, cause) from cause
            array = _validate.array(self.name, piece)
            count, seen = count + 1, seen + array.size
            yield array


def source_of(name: str, values: Any) -> Source:
    """The source that people mean by an array, a path, a path and a column, a function or an iterator."""
    if isinstance(values, Source):
        return values
    if isinstance(values, np.ndarray):
        return _in_memory(name, _validate.array(name, values))
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], (str, os.PathLike)):
        return _file(name, Path(values[0]), values[1])
    if isinstance(values, (str, os.PathLike)):
        return _file(name, Path(values), None)
    if callable(values):
        return _Function(name, values)
    if hasattr(values, "__next__"):
        return _Function(name, None, values)
    return _Array(name, _validate.vector(name, values, "numbers", lambda x: np.ones(x.shape, dtype=bool)))


def floats(name: str, array: NDArray[Any]) -> Numbers:
    """The same numbers, contiguous and in float32 or float64: float16 become float32, the others float64."""
    _kind(name, array.dtype)
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return np.ascontiguousarray(array, dtype=np.float32 if single else np.float64)


def _npy(name: str, path: Path) -> Source:
    with open(path, "rb") as stream:
        try:
            head = read_npy_header(stream, os.fstat(stream.fileno()).st_size)
        except DomainError as fault:
            raise DomainError(
                f"{name} must be a .npy file; got {str(path)!r}, in which {fault}. Write it with numpy.save."
            ) from None
    if len(head.shape) != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {head.shape} in {str(path)!r}. Save a flat array.")
    _kind(name, head.dtype)
    return _File(name, FileArray(name, path, head.dtype, head.start, head.entries))


def _file(name: str, path: Path, column: Any) -> Source:
    if not path.is_file():
        fault = IsADirectoryError if path.is_dir() else FileNotFoundError
        raise fault(f"{name} must be an existing file; got {str(path)!r}. Check the path.")
    ending = path.suffix.lower()
    if ending == ".npy" and column is None:
        return _npy(name, path)
    if ending == ".parquet":
        return _Parquet(name, path, column)
    raise DomainError(
        f"{name} must be a .npy or .parquet file; got {str(path)!r}. Save it with numpy.save, or pass an array."
    )


def _even(name: str, pieces: Iterator[Any], lasting: bool = False) -> Iterator[Numbers]:
    """Pieces of any length as blocks; copied unless they last, as a function may fill one array again and again."""
    held: list[Numbers] = []
    count = 0
    for piece in pieces:
        rest = floats(name, _vector(name, piece))
        if not lasting and np.may_share_memory(rest, piece):
            rest = rest.copy()
        while count + rest.size >= BLOCK:
            cut = BLOCK - count
            yield _joined([*held, rest[:cut]])
            held, count, rest = [], 0, rest[cut:]
        if rest.size:
            held.append(rest)
            count += rest.size
    if count:
        yield _joined(held)


def _joined(parts: list[Numbers]) -> Numbers:
    return np.ascontiguousarray(parts[0] if len(parts) == 1 else np.concatenate(parts))


def _vector(name: str, array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {array.shape}. Pass a flat array.")
    _kind(name, array.dtype)
    return array


def _kind(name: str, dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise DomainError(
            f"{name} must be made of floats of at most 64 bits or of integers; got {dtype}. "
            "Convert it with astype(float)."
        )


def _in_memory(name: str, values: NDArray[Any]) -> Source:
    """An array, or the file behind it, unless changes were kept from the file."""
    if _validate.map_of(values) is None:
        return _Array(name, values)
    numbers = memory_mapped_file(name, _vector(name, values))
    return _Mapped(name, values) if numbers is None else _File(name, numbers)


def _changed(name: str, path: Any, block: int, how: str) -> DomainError:
    return DomainError(
        f"{name} must be a file that stays as it is while it is read; got {str(path)!r}, and {how} before block "
        f"{block} was read. Run again when it is complete."
    )


def _broken(name: str, path: Path, block: int, fault: Exception) -> DomainError:
    reason = " ".join(str(fault).split()).rstrip(".")
    return DomainError(
        f"{name} must be a Parquet file that can be read; got {str(path)!r}, in which block {block} fails: {reason}. "
        "Write it anew."
    )
