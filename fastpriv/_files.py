"""Numbers in files: heads of .npy files, archives of them, and ranges that are read by position and never mapped.

A range that is read ends, at worst, with an error in a sentence; a page of a map whose file has become shorter ends the
process. So what is mapped is read from its file as well, where that can be found for certain: the map and a new one of
the file of this name must be of one inode in ``/proc/self/maps``. A file that took the name of the one that is mapped
is another inode, and never read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _validate
from .errors import DomainError

__all__ = ["FileNumbers", "Head", "archive", "behind", "npy_head"]

# bound: none - bytes that one byte of an archive may stand for; zlib packs at most 1032 into one
_PACKED = 1100
_SPARE = 2**16
_SAID = 150  # letters


class Head(NamedTuple):
    """What the head of a .npy file says, and the byte at which the numbers start."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def entries(self) -> int:
        """How many numbers there are."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    def array(self, data: bytes | bytearray, start: int = 0) -> NDArray[Any]:
        """The numbers in these bytes, from byte ``start`` on."""
        if not self.entries:
            return np.empty(self.shape, dtype=self.dtype)
        flat = np.frombuffer(data, dtype=self.dtype, count=self.entries, offset=start)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


def npy_head(stream: Any, size: int) -> Head:
    """The head of the .npy file that a stream of ``size`` bytes begins with; refused unless all its numbers follow."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what Python 2 wrote
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0), (3, 0)):
                raise DomainError(f"the version must be 1.0, 2.0 or 3.0; got {version[0]}.{version[1]}")
            first = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, dtype = first(stream)
    except DomainError:
        raise
    except Exception as fault:  # the head is parsed as Python: any of its errors may come out
        raise DomainError(f"the head must be one that NumPy writes; got {_said(fault)}") from None
    if dtype.hasobject:
        raise DomainError("the entries must be numbers; got objects that are pickled, which is never loaded")
    if not dtype.itemsize:
        raise DomainError(f"the entries must be numbers; got entries of no bytes, {dtype}")
    if any(length < 0 for length in shape):
        raise DomainError(f"the shape must have no negative lengths; got {_validate.shown(shape)}")
    head = Head(tuple(int(length) for length in shape), bool(fortran), dtype, stream.tell())
    needed = head.start + head.entries * dtype.itemsize
    if size < needed:
        raise DomainError(
            f"the file must hold all entries that its head tells of; got {size} bytes where shape "
            f"{_validate.shown(head.shape)} of {dtype} needs {_validate.shown(needed)}"
        )
    return head


def archive(file: Path, check: Callable[[list[str]], None], remedy: str) -> dict[str, NDArray[Any]]:
    """The arrays of a NumPy archive by their names, which ``check`` has seen before any is read."""
    import zipfile

    member = "the list of keys"
    try:
        with open(file, "rb") as stream, zipfile.ZipFile(stream) as packed:
            infos = packed.infolist()
            check([info.filename.removesuffix(".npy") for info in infos])
            size = os.fstat(stream.fileno()).st_size
            for info in infos:
                member = info.filename.removesuffix(".npy")
                if info.compress_size > size or info.file_size > _PACKED * info.compress_size + _SPARE:
                    raise DomainError(
                        f"its size must be a possible one; got {info.file_size} bytes packed in {info.compress_size}"
                    )
            _validate.memory("file", sum(info.file_size for info in infos), remedy)
            found = {}
            for info in infos:
                member = info.filename.removesuffix(".npy")
                with packed.open(info) as part:
                    head = npy_head(part, info.file_size)
                    data = bytearray(part.read())
                if len(data) < head.entries * head.dtype.itemsize:
                    raise DomainError(f"the numbers must follow the head; got {len(data)} bytes")
                found[member] = head.array(data)
            return found
    except MemoryError:
        raise
    except Exception as fault:  # damaged archives end in a dozen kinds of errors of zipfile and zlib
        if isinstance(fault, DomainError) and member == "the list of keys":
            raise
        raise DomainError(f"the archive must be whole; got {member} that cannot be read: {_said(fault)}") from None


class FileNumbers:
    """Numbers in a row in a file that is open from now on: what takes its name later is another file.

    Of two calls that read, each finds the file as it was when this was made, or says that it has changed.
    """

    def __init__(self, name: str, path: Path, dtype: np.dtype[Any], start: int, length: int) -> None:
        self.name, self.path, self.dtype, self.start, self.length = name, path, dtype, start, length
        self.descriptor = os.open(path, os.O_RDONLY)
        self.state = state(self.descriptor)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "descriptor"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self.descriptor = os.open(self.path, os.O_RDONLY)
        if state(self.descriptor) != self.state:
            raise self._changed("another was found under its name in another process")

    def take(self, first: int, last: int, place: str = "") -> NDArray[Any]:
        """Entries ``first`` to ``last - 1``; ``place`` says in errors which they are."""
        found = np.empty(last - first, dtype=self.dtype)
        room = memoryview(found.view(np.uint8).data)
        step, at = self.dtype.itemsize, 0
        while at < len(room):
            got = os.preadv(self.descriptor, [room[at:]], self.start + first * step + at)
            if not got:
                raise DomainError(
                    f"{self.name} must be a file with all of its {self.length} entries; got the end of "
                    f"{str(self.path)!r} at entry {first + at // step}{place and ', in ' + place}. Write it anew."
                )
            at += got
        if state(self.descriptor) != self.state:
            raise self._changed(f"it was written to before {place or f'entry {first}'} was read")
        return found

    def _changed(self, how: str) -> DomainError:
        return DomainError(
            f"{self.name} must be a file that stays as it is while it is read; got {str(self.path)!r}, and {how}. "
            "Run again when it is complete."
        )


def behind(name: str, values: NDArray[Any]) -> FileNumbers | None:
    """The file that an array in a row is mapped from; None where there is none, or none that can be known."""
    root = _validate.map_of(values)
    if root is None or not root.filename or root.mode not in ("r", "r+") or not values.flags.c_contiguous:
        return None
    if not values.size:
        return None
    first, start = (x.__array_interface__["data"][0] for x in (values, root))
    try:
        found = FileNumbers(name, Path(root.filename), values.dtype, root.offset + first - start, int(values.size))
        return found if _same_file(found.descriptor, first) else None
    except OSError:
        return None


def state(file: Any) -> tuple[int, int, int]:
    """What tells a file from another one, and from itself after it was written to."""
    found = os.stat(file)
    return found.st_ino, found.st_size, found.st_mtime_ns


def _same_file(descriptor: int, address: int) -> bool:
    """Whether the page at this address is mapped from the file that is open."""
    import mmap

    with mmap.mmap(descriptor, 1, access=mmap.ACCESS_READ) as page:
        view = np.frombuffer(page, dtype=np.uint8)
        own = view.__array_interface__["data"][0]
        del view
        inodes = {}
        with open("/proc/self/maps") as lines:
            for line in lines:
                span, _, _, device, inode, *_ = line.split()
                low, high = (int(end, 16) for end in span.split("-"))
                for at in (own, address):
                    if low <= at < high:
                        inodes[at] = device, inode
    return len(inodes) == 2 and inodes[own] == inodes[address] and inodes[own][1] != "0"


def _said(fault: Exception) -> str:
    """An error of another package on one line."""
    text = " ".join(str(fault).split()).rstrip(".")
    text = text if len(text) <= _SAID else text[: _SAID - 3] + "..."
    if isinstance(fault, DomainError):
        return text
    return f"{type(fault).__name__}: {text}" if text else type(fault).__name__
