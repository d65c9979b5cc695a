"""Finished blocks of an assessment on disk, each of which is verified before it is used.

A block is a file: the digest of all that follows, a line of JSON (version, digest of data and settings, rows, and the
quantities with their shapes, kinds and methods), and the numbers as little-endian doubles. A block that differs in any
point is computed again. Only the user may read the directory (0700) and the blocks (0600); links and files of other
owners are refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__, _validate
from .._files import atomic_write, explain_write_errors, writable_directory
from .._values import ValueObject
from ..errors import DomainError
from .quantities import QUANTITIES, QuantityGrid

__all__ = ["Checkpoint"]

_FORMAT = "information in nats"  # part of every digest; a change of meaning makes old blocks useless
_ARRAYS = ("value", "lower", "upper")  # arrays of doubles that a block stores of each quantity, in this order
_DIGEST_LENGTH = 64  # hexadecimal digits of SHA-256, at the start of a block
_OPEN_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC  # follow no symbolic link, and hand the file to no child process


@dataclass(frozen=True)
class Checkpoint:
    """A directory of blocks, named after the data and settings that they belong to.

    ``settings`` is the digest of these, ``owner`` the user whose files this process makes there, and ``resume`` says
    whether the blocks of an earlier run are used.
    """

    directory: Path
    settings: str
    owner: int
    resume: bool

    @classmethod
    def open(cls, parent: str | os.PathLike[str], settings: tuple[Any, ...], *, resume: bool) -> Checkpoint:
        """Open the directory for these settings; remove the blocks of an earlier run unless ``resume``."""
        digest = hashlib.sha256()
        _update_digest(digest, (__version__, _FORMAT, tuple(QUANTITIES), *settings))
        folder = writable_directory(_validate.path("checkpoint", parent))
        with explain_write_errors(folder, "a directory"), TemporaryFile(dir=folder) as probe:
            owner = os.fstat(probe.fileno()).st_uid
        checkpoint = cls(folder / f".blocks-{digest.hexdigest()[:16]}", digest.hexdigest(), owner, resume)
        if not resume:
            checkpoint.remove()
        with checkpoint._open_directory():
            return checkpoint

    def load(self, rows: slice) -> dict[str, QuantityGrid] | None:
        """Read the block of these rows; None if there is none that is valid in every point."""
        if not self.resume:
            return None
        try:
            with self._open_directory() as folder:
                block = os.open(_file_name(rows), os.O_RDONLY | os.O_NONBLOCK | _OPEN_FLAGS, dir_fd=folder)
            with open(block, "rb") as stream:
                status = os.fstat(block)
                if not stat.S_ISREG(status.st_mode) or status.st_uid != self.owner:
                    return None
                return self._parse(stream.read(), rows)
        except (OSError, ValueError, LookupError, TypeError, MemoryError):
            return None

    def save(self, rows: slice, block: Mapping[str, QuantityGrid]) -> None:
        """Write a block atomically."""
        shapes = {name: [list(np.shape(grid.value)), grid.kind, grid.method] for name, grid in block.items()}
        head = json.dumps([*self._identity(rows), shapes]).encode() + b"\n"
        content = head + b"".join(
            np.asarray(getattr(grid, name), dtype="<f8").tobytes() for grid in block.values() for name in _ARRAYS
        )
        path = self.directory / _file_name(rows)
        with self._open_directory(), suppress(IsADirectoryError):  # a directory has this name: no block is saved
            with suppress(OSError):
                path.unlink()
            with atomic_write(path, 0o600) as stream:
                stream.write(hashlib.sha256(content).hexdigest().encode() + content)

    def remove(self) -> None:
        """Remove the blocks."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextmanager
    def _open_directory(self) -> Iterator[int]:
        """Open the directory, made if it is missing; raise if it is a link or another user's."""
        with suppress(FileExistsError), explain_write_errors(self.directory, "a directory"):
            os.mkdir(self.directory, 0o700)
        try:
            folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | _OPEN_FLAGS)
        except NotADirectoryError:
            raise self._refused("a link, or a file") from None
        try:
            status = os.fstat(folder)
            if status.st_uid != self.owner:
                raise self._refused(f"one of user {status.st_uid}")
            with suppress(OSError):  # a file system without permissions
                os.fchmod(folder, 0o700)
            yield folder
        finally:
            os.close(folder)

    def _refused(self, what: str) -> DomainError:
        return DomainError(
            f"checkpoint must be a directory whose blocks are the user's own; got {what}: {str(self.directory)!r}. "
            "Remove it, or name another directory."
        )

    def _identity(self, rows: slice) -> list[Any]:
        """Return the run and the rows that a block belongs to, as the block stores them."""
        return [__version__, self.settings, rows.start, rows.stop]

    def _parse(self, data: bytes, rows: slice) -> dict[str, QuantityGrid] | None:
        content = data[_DIGEST_LENGTH:]
        if hashlib.sha256(content).hexdigest().encode() != data[:_DIGEST_LENGTH]:
            return None
        head, _, numbers = content.partition(b"\n")
        *identity, shapes = json.loads(head)
        if identity != self._identity(rows):
            return None
        remaining, block = np.frombuffer(numbers, dtype="<f8").astype(np.float64), {}
        for name, (shape, kind, method) in shapes.items():
            size = int(np.prod(shape))
            entries, remaining = remaining[: len(_ARRAYS) * size], remaining[len(_ARRAYS) * size :]
            value, lower, upper = entries.reshape(len(_ARRAYS), *shape)
            if not len(value) == len(kind) == len(method) == rows.stop - rows.start:
                return None
            block[name] = QuantityGrid(value, lower, upper, tuple(kind), tuple(method))
        return None if remaining.size else block


def _file_name(rows: slice) -> str:
    return f"{rows.start}-{rows.stop}.block"


def _update_digest(digest: Any, item: Any) -> None:
    """Feed a setting to the digest, so that different settings give different bytes."""
    if isinstance(item, np.ndarray):
        digest.update(f"array {item.dtype.str} {item.shape};".encode())
        flat: NDArray[Any] = item.reshape(-1)
        for start in range(0, flat.size, 2**20):
            digest.update(np.ascontiguousarray(flat[start : start + 2**20]).data)
        return
    if isinstance(item, ValueObject):
        item = (type(item).__name__, *item._arrays())
    if isinstance(item, tuple):
        digest.update(f"tuple {len(item)};".encode())
        for element in item:
            _update_digest(digest, element)
        return
    text = repr(item).encode("utf-8", "backslashreplace")
    digest.update(f"text {len(text)};".encode() + text)
