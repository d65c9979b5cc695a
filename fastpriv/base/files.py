"""Files: written atomically, and arrays read from .npy and .npz files by position and never through a memory map.

Writing. A file is written without a name, or under a hidden one, and takes its name when it is complete, whatever kills
the run. An error of the system becomes a sentence with the path and a remedy.

Reading. A read by position ends, at worst, with an error in a sentence; a page of a memory map whose file has become
shorter ends the process. An array that is mapped is therefore read from its file where that file can be found for
certain: the map and a new map of the file of this name must be of one inode in ``/proc/self/maps``. A file that took
the name of the mapped one has another inode and is never read.
"""

from __future__ import annotations

import csv
import errno
import io
import math
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from . import validate
from .errors import DomainError
from .escaping import spreadsheet_row

__all__ = [
    "PICTURES", "FileArray", "NpyHeader", "atomic_write", "changed_file", "check_writable_file", "explain_write_errors",
    "file_state", "json_safe", "lines_of", "memory_mapped_file", "parse_json", "parse_toml", "picture_kind",
    "read_npy_header", "read_npz", "save_and_close", "writable_directory", "write_csv", "write_csv_rows",
    "write_picture", "write_text",
]

PICTURES = ("png", "svg", "pdf")  # file formats of pictures

_LONG_INTEGER = re.compile(rb"(?<=\d)L(?=\s*[,)])")  # as Python 2 wrote lengths; NumPy warns of it
_NO_SPACE = "Free space there, or name a path on another disk."  # remedy for a disk or quota that is full
# Remedy for a path that the process may not write.
_NO_RIGHTS = "Name a path where you may write, or have its owner let you."
# What to do about each error of the system in writing a file.
_REMEDIES = {
    errno.ENOSPC: _NO_SPACE, errno.EDQUOT: _NO_SPACE, errno.EACCES: _NO_RIGHTS, errno.EPERM: _NO_RIGHTS,
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f), or write less.",
    errno.EROFS: "Name a path on a disk that is not read-only.",
    errno.EISDIR: "Name a file in that directory.",
    errno.ENOENT: "Make its directory first, or name another.",
    errno.EEXIST: "Name a directory, or a path that is not taken.",
    errno.ENOTDIR: "Name a path without a file in place of a directory.",
    errno.ENAMETOOLONG: "Take a shorter name.",
    errno.EINVAL: "Name a plain file, or one that does not exist yet.",
}
# An archive whose members claim more than these is damaged or hostile, and is not unpacked.
# bound: none - bytes that one byte of an archive may stand for; zlib packs at most 1032 into one
_MAX_COMPRESSION_RATIO = 1100
_UNPACKED_ALLOWANCE = 2**16  # bytes that a member may have beyond that ratio: small members pack to almost nothing
_TOO_DEEP = "arrays and objects lie too deep within each other"  # fault of a JSON or TOML file
_CHECKED_CHARACTERS = 2**24  # of a text that is read between two looks at the free memory
_BYTES_OF_CELLS = 24  # of memory that a character of a table may take: a cell of one digit, as text of 50 bytes
_MAX_MESSAGE_LENGTH = 150  # characters of another package's error that are repeated


@contextmanager
def explain_write_errors(path: str | os.PathLike[str], kind: str = "a file") -> Iterator[None]:
    """Replace the system's error in writing to ``path`` by a sentence with the path and the remedy."""
    try:
        yield
    except OSError as error:
        if error.strerror is None:  # already a sentence
            raise
        remedy = _REMEDIES.get(error.errno or 0, "Check the path and its disk.")
        explained = type(error)(
            f"path must be {kind} that can be written; got {str(path)!r}: {error.strerror}. {remedy}"
        )
        explained.errno = error.errno
        raise explained from None


@contextmanager
def atomic_write(path: str | os.PathLike[str], permissions: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a binary file that gets the name ``path`` only when the block ends without an error.

    The bytes go to a file without a name where the file system has such files (a kill then leaves nothing at all), else
    to a hidden neighbour that is removed on error. They reach the disk before the name does. An error of the system
    names the path and the remedy; other exceptions of the block pass unchanged.
    """
    target = validate.path("path", path)
    hidden = target.parent / f".{os.getpid()}.{os.urandom(8).hex()}.part"
    check_writable_file(target)
    with explain_write_errors(target):
        descriptor = _open_nameless(target.parent, permissions)
        has_name = descriptor is None
        if descriptor is None:
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, permissions)
    stream = io.BufferedRandom(_TargetFile(descriptor, target))
    try:
        yield stream
        stream.flush()
        with explain_write_errors(target):
            os.fsync(stream.fileno())
            if has_name or not _link_descriptor(stream.fileno(), target):
                if not has_name:
                    _link_descriptor(stream.fileno(), hidden)
                os.replace(hidden, target)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise
    finally:
        with suppress(OSError):  # report the error that is being raised, not one of the cleanup
            stream.close()


def write_csv(path: str | os.PathLike[str], header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows of cells as CSV in UTF-8, atomically; None is an empty cell, and no text is a formula."""
    with atomic_write(path) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="")
        write_csv_rows(text, header, rows)
        text.flush()
        text.detach()


def write_csv_rows(stream: Any, header: Sequence[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write rows of cells as CSV to a stream of text, as ``write_csv`` does."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(spreadsheet_row(header))
    writer.writerows(map(spreadsheet_row, rows))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write a text in UTF-8, atomically; return its path."""
    with atomic_write(path) as stream:
        stream.write(text.encode())
    return Path(path)


def picture_kind(argument: str, path: str | os.PathLike[str]) -> str:
    """The ending of a picture's name, png where it has none."""
    kind = Path(path).suffix.lower()[1:] or "png"
    if kind not in PICTURES:
        raise DomainError(
            f"{argument} must be a name that ends in .png, .svg or .pdf; got {str(path)!r}. Choose one of these "
            "endings."
        )
    return kind


def write_picture(path: Path, figure: Any, dots: float, argument: str = "path") -> Path:
    """Write a matplotlib figure in the format of its name, atomically, the same bytes on every day. Return the path."""
    with atomic_write(path) as stream:
        save_and_close(figure, stream, picture_kind(argument, path), dots)
    return path


def save_and_close(figure: Any, stream: Any, kind: str, dots: float | Literal["figure"] = "figure") -> None:
    """Write a matplotlib figure into a stream; pyplot, if it is loaded, shows and keeps the figure no longer."""
    from matplotlib import rc_context

    metadata: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {}
    with rc_context({"svg.hashsalt": "fastpriv"}):  # the same figure is the same file
        figure.savefig(stream, format=kind, dpi=dots, **metadata)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close(figure)


def json_safe(item: Any) -> Any:
    """Replace infinities and NaN, which JSON does not have, by their text, inside dictionaries and lists too."""
    if isinstance(item, float) and not math.isfinite(item):
        return str(item)
    if isinstance(item, dict):
        return {key: json_safe(value) for key, value in item.items()}
    if isinstance(item, list):
        return [json_safe(value) for value in item]
    return item


def check_writable_file(path: str | os.PathLike[str]) -> None:
    """Raise before the work, not after it, if ``path`` cannot or should not be the name of a new file."""
    target = Path(path)
    with explain_write_errors(target):
        fault = 0 if stat.S_ISDIR(os.stat(target.parent).st_mode) else errno.ENOTDIR
        with suppress(FileNotFoundError):
            mode = os.stat(target).st_mode
            if stat.S_ISDIR(mode):
                fault = errno.EISDIR
            elif not stat.S_ISREG(mode):  # a device: the rename would replace it
                fault = errno.EINVAL
            elif not os.access(target, os.W_OK):
                fault = errno.EACCES
        if fault:
            raise OSError(fault, os.strerror(fault))


def writable_directory(path: str | os.PathLike[str]) -> Path:
    """Return the directory, made if it is missing; an ``OSError`` with its reason if nothing can be written there."""
    directory = Path(path)
    with explain_write_errors(directory, "a directory"):
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{os.getpid()}.{os.urandom(8).hex()}.probe"
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        probe.unlink()
    return directory


class _TargetFile(io.FileIO):
    """A file whose errors in writing name the path that it will have."""

    def __init__(self, descriptor: int, target: Path) -> None:
        super().__init__(descriptor, "w+")
        self._target = target

    def write(self, data: Any) -> Any:
        with explain_write_errors(self._target):
            return super().write(data)


def _open_nameless(directory: Path, permissions: int) -> int | None:
    """Open a file without a name in the directory; None where the file system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR, permissions)
    except OSError:  # unsupported, or an error that opening the hidden file will report
        return None


def _link_descriptor(descriptor: int, name: Path) -> bool:
    """Give a file without a name the name ``name``; False if that is taken."""
    root = os.open("/", os.O_RDONLY)
    try:  # with a directory descriptor, link() follows the symbolic link in /proc
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=root, follow_symlinks=True)
    except FileExistsError:
        return False
    finally:
        os.close(root)
    return True


def lines_of(stream: TextIO, file: Path, longest: int, name: str = "file") -> Iterator[str]:
    """Yield the lines of a text, which may be unpacked on the way, as long as they fit into memory.

    A line of more than ``longest`` characters is refused before the rest of it is read: a few bytes of a packed file
    may stand for many of them.
    """
    number, size = 0, 0
    while line := stream.readline(longest + 1):
        number, size = number + 1, size + len(line)
        if len(line) > longest:
            raise DomainError(
                f"{name} must have lines of at most {longest:,} characters; got more in line {number} of "
                f"{str(file)!r}. Check that it is the file that is meant, and that its lines end."
            )
        if size >= _CHECKED_CHARACTERS:
            size = 0
            validate.memory(name, _BYTES_OF_CELLS * _CHECKED_CHARACTERS, "Keep fewer rows or columns of it.")
        yield line


def parse_json(text: str, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the content of JSON; ``ValueError`` if it is none. An interrupt is heard at the next number."""
    import json

    try:
        return json.loads(  # Python hears interrupts where it calls its functions, json alone does not
            text, parse_float=lambda number: float(number), parse_int=lambda number: int(number),
            object_pairs_hook=object_pairs_hook,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of TOML; ``ValueError`` if it is none."""
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


class NpyHeader(NamedTuple):
    """The header of a .npy file, and the byte at which its entries start."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int

    @property
    def entries(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    def array(self, data: bytes | bytearray, start: int = 0) -> NDArray[Any]:
        """Return the array whose entries are these bytes from byte ``start`` on."""
        if not self.entries:
            return np.empty(self.shape, dtype=self.dtype)
        flat = np.frombuffer(data, dtype=self.dtype, count=self.entries, offset=start)
        return flat.reshape(self.shape, order="F" if self.fortran else "C")


def read_npy_header(stream: Any, size: int) -> NpyHeader:
    """Read the header of the .npy file that a stream of ``size`` bytes begins with; refuse it unless it is complete."""
    try:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise DomainError(f"the version must be 1.0, 2.0 or 3.0; got {version[0]}.{version[1]}")
        first = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        length = stream.read(2 if version == (1, 0) else 4)
        text = _LONG_INTEGER.sub(b" ", stream.read(int.from_bytes(length, "little")))
        shape, fortran, dtype = first(io.BytesIO(length + text))
    except DomainError:
        raise
    except Exception as error:  # NumPy parses the header as Python, so any error of the parser may come out
        raise DomainError(f"the head must be one that NumPy writes; got {_error_text(error)}") from None
    if dtype.hasobject:
        raise DomainError("the entries must be numbers; got objects that are pickled, which is never loaded")
    if not dtype.itemsize:
        raise DomainError(f"the entries must be numbers; got entries of no bytes, {dtype}")
    if any(length < 0 for length in shape):
        raise DomainError(f"the shape must have no negative lengths; got {validate.shown(shape)}")
    header = NpyHeader(tuple(int(length) for length in shape), bool(fortran), dtype, stream.tell())
    needed = header.start + header.entries * dtype.itemsize
    if size < needed:
        raise DomainError(
            f"the file must hold all entries that its head tells of; got {size} bytes where shape "
            f"{validate.shown(header.shape)} of {dtype} needs {validate.shown(needed)}"
        )
    return header


def read_npz(file: Path, check_keys: Callable[[list[str]], None], remedy: str) -> dict[str, NDArray[Any]]:
    """Read the arrays of a NumPy archive by their keys; ``check_keys`` sees the keys before any array is read."""
    import zipfile

    member = "the list of keys"
    try:
        with open(file, "rb") as stream, zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
            check_keys([info.filename.removesuffix(".npy") for info in infos])
            size = os.fstat(stream.fileno()).st_size
            for info in infos:
                member = info.filename.removesuffix(".npy")
                most = _MAX_COMPRESSION_RATIO * info.compress_size + _UNPACKED_ALLOWANCE
                if info.compress_size > size or info.file_size > most:
                    raise DomainError(
                        f"its size must be a possible one; got {info.file_size} bytes packed in {info.compress_size}"
                    )
            validate.memory("file", sum(info.file_size for info in infos), remedy)
            arrays = {}
            for info in infos:
                member = info.filename.removesuffix(".npy")
                with archive.open(info) as part:
                    header = read_npy_header(part, info.file_size)
                    data = bytearray(part.read())
                if len(data) < header.entries * header.dtype.itemsize:
                    raise DomainError(f"the numbers must follow the head; got {len(data)} bytes")
                arrays[member] = header.array(data)
            return arrays
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive raises errors of many classes of zipfile and zlib
        if isinstance(error, DomainError) and member == "the list of keys":
            raise
        raise DomainError(
            f"the archive must be whole; got {member} that cannot be read: {_error_text(error)}"
        ) from None


class FileArray:
    """A one-dimensional array in a file that is kept open, so that a later file of the same name is never read.

    Every read raises if the file was written to since this object was made.
    """

    def __init__(self, name: str, path: Path, dtype: np.dtype[Any], start: int, length: int) -> None:
        self.name, self.path, self.dtype, self.start, self.length = name, path, dtype, start, length
        self.descriptor = os.open(path, os.O_RDONLY)
        self.state = file_state(self.descriptor)

    def __del__(self) -> None:
        if hasattr(self, "descriptor"):
            os.close(self.descriptor)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "descriptor"}

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        self.descriptor = os.open(self.path, os.O_RDONLY)
        if file_state(self.descriptor) != self.state:
            raise changed_file(self.name, self.path, "another was found under its name in another process")

    def take(self, first: int, last: int, description: str = "") -> NDArray[Any]:
        """Read entries ``first`` to ``last - 1``; ``description`` says in errors which they are."""
        entries = np.empty(last - first, dtype=self.dtype)
        buffer = memoryview(entries.view(np.uint8).data)
        size, offset = self.dtype.itemsize, 0
        while offset < len(buffer):
            count = os.preadv(self.descriptor, [buffer[offset:]], self.start + first * size + offset)
            if not count:
                where = f", in {description}" if description else ""
                raise DomainError(
                    f"{self.name} must be a file with all of its {self.length} entries; got the end of "
                    f"{str(self.path)!r} at entry {first + offset // size}{where}. Write it anew."
                )
            offset += count
        if file_state(self.descriptor) != self.state:
            how = f"it was written to before {description or f'entry {first}'} was read"
            raise changed_file(self.name, self.path, how)
        return entries


def changed_file(name: str, path: Path, how: str) -> DomainError:
    """Build the error for a file that became another one while it was used."""
    return DomainError(
        f"{name} must be a file that stays as it is while it is read; got {str(path)!r}, and {how}. "
        "Run again when it is complete."
    )


def memory_mapped_file(name: str, values: NDArray[Any]) -> FileArray | None:
    """Return the file that a contiguous array is mapped from; None if there is none, or none that can be proved."""
    root = validate.map_of(values)
    if root is None or not root.filename or root.mode not in ("r", "r+") or not values.flags.c_contiguous:
        return None
    if not values.size:
        return None
    address, base = (array.__array_interface__["data"][0] for array in (values, root))
    try:
        file = FileArray(name, Path(root.filename), values.dtype, root.offset + address - base, int(values.size))
        return file if _is_mapped_from(file.descriptor, address) else None
    except OSError:
        return None


def file_state(file: Any) -> tuple[int, int, int]:
    """Return inode, size and time of change, which together identify a file and its version."""
    status = os.stat(file)
    return status.st_ino, status.st_size, status.st_mtime_ns


def _is_mapped_from(descriptor: int, address: int) -> bool:
    """Whether the page at this address is mapped from the open file: both maps must show one inode."""
    import mmap

    with mmap.mmap(descriptor, 1, access=mmap.ACCESS_READ) as page:
        view = np.frombuffer(page, dtype=np.uint8)
        page_address = view.__array_interface__["data"][0]
        del view
        inodes = {}
        with open("/proc/self/maps") as lines:
            for line in lines:
                span, _, _, device, inode, *_ = line.split()
                low, high = (int(end, 16) for end in span.split("-"))
                for mapped in (page_address, address):
                    if low <= mapped < high:
                        inodes[mapped] = device, inode
    return len(inodes) == 2 and inodes[page_address] == inodes[address] and inodes[page_address][1] != "0"


def _error_text(error: Exception) -> str:
    """Return an error of another package on one line."""
    text = " ".join(str(error).split()).rstrip(".")
    text = text if len(text) <= _MAX_MESSAGE_LENGTH else text[: _MAX_MESSAGE_LENGTH - 3] + "..."
    if isinstance(error, DomainError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
