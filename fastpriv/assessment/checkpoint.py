"""Finished blocks on disk, each checked before it is taken.

A block is a file: the digest of all that follows, a line of JSON (version, digest of data and settings, rows, and the
quantities with their shapes, kinds and methods), and the numbers as doubles. What does not agree in every point is
computed again. The directory (0700) and the blocks (0600) are the user's alone; links and what others own are refused.
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
from .._values import Value
from ..errors import DomainError
from .quantities import QUANTITIES, Surface

__all__ = ["Checkpoint"]

_MEANING = "information in nats"  # blocks of a run whose numbers meant something else are never taken
_PARTS = ("value", "lower", "upper")
_DIGEST = 64  # hexadecimal digits of SHA-256
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Checkpoint:
    """One directory of blocks, named after the data and settings that they belong to."""

    directory: Path
    settings: str  # their digest
    owner: int  # of files that this process makes there
    resume: bool  # whether blocks that are there are taken

    @classmethod
    def opened(cls, parent: str | os.PathLike[str], settings: tuple[Any, ...], *, resume: bool) -> Checkpoint:
        """The directory for these settings; emptied of an earlier run's blocks unless ``resume``."""
        state = hashlib.sha256()
        _feed(state, (__version__, _MEANING, tuple(QUANTITIES), *settings))
        folder = writable_directory(_validate.path("checkpoint", parent))
        with explain_write_errors(folder, "a directory"), TemporaryFile(dir=folder) as probe:
            owner = os.fstat(probe.fileno()).st_uid
        found = cls(folder / f".blocks-{state.hexdigest()[:16]}", state.hexdigest(), owner, resume)
        if not resume:
            found.remove()
        with found._folder():
            return found

    def load(self, rows: slice) -> dict[str, Surface] | None:
        """The block of these rows, or None where there is none that agrees in every point."""
        if not self.resume:
            return None
        try:
            with self._folder() as folder:
                block = os.open(_name(rows), os.O_RDONLY | os.O_NONBLOCK | _FLAGS, dir_fd=folder)
            with open(block, "rb") as stream:
                about = os.fstat(block)
                if not stat.S_ISREG(about.st_mode) or about.st_uid != self.owner:
                    return None
                return self._read(stream.read(), rows)
        except (OSError, ValueError, LookupError, TypeError, MemoryError):
            return None

    def keep(self, rows: slice, block: Mapping[str, Surface]) -> None:
        """Write a block, whole or not at all."""
        shapes = {name: [list(np.shape(found.value)), found.kind, found.method] for name, found in block.items()}
        head = json.dumps([*self._belonging(rows), shapes]).encode() + b"\n"
        content = head + b"".join(
            np.asarray(getattr(found, part), dtype="<f8").tobytes() for found in block.values() for part in _PARTS
        )
        path = self.directory / _name(rows)
        with self._folder(), suppress(IsADirectoryError):  # one in the way of the block, which is computed again
            with suppress(OSError):
                path.unlink()
            with atomic_write(path, 0o600) as stream:
                stream.write(hashlib.sha256(content).hexdigest().encode() + content)

    def remove(self) -> None:
        """Remove the blocks."""
        shutil.rmtree(self.directory, ignore_errors=True)

    @contextmanager
    def _folder(self) -> Iterator[int]:
        """The directory, made where it is missing; an error where it is a link, or not the user's."""
        with suppress(FileExistsError), explain_write_errors(self.directory, "a directory"):
            os.mkdir(self.directory, 0o700)
        try:
            folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
        except NotADirectoryError:
            raise self._refused("a link, or a file") from None
        try:
            about = os.fstat(folder)
            if about.st_uid != self.owner:
                raise self._refused(f"one of user {about.st_uid}")
            with suppress(OSError):  # a file system without rights
                os.fchmod(folder, 0o700)
            yield folder
        finally:
            os.close(folder)

    def _refused(self, what: str) -> DomainError:
        return DomainError(
            f"checkpoint must be a directory whose blocks are the user's own; got {what}: {str(self.directory)!r}. "
            "Remove it, or name another directory."
        )

    def _belonging(self, rows: slice) -> list[Any]:
        return [__version__, self.settings, rows.start, rows.stop]

    def _read(self, text: bytes, rows: slice) -> dict[str, Surface] | None:
        content = text[_DIGEST:]
        if hashlib.sha256(content).hexdigest().encode() != text[:_DIGEST]:
            return None
        head, _, numbers = content.partition(b"\n")
        *belonging, shapes = json.loads(head)
        if belonging != self._belonging(rows):
            return None
        left, block = np.frombuffer(numbers, dtype="<f8").astype(np.float64), {}
        for name, (shape, kind, method) in shapes.items():
            size = int(np.prod(shape))
            of, left = left[: len(_PARTS) * size], left[len(_PARTS) * size :]
            value, lower, upper = of.reshape(len(_PARTS), *shape)
            if not len(value) == len(kind) == len(method) == rows.stop - rows.start:
                return None
            block[name] = Surface(value, lower, upper, tuple(kind), tuple(method))
        return None if left.size else block


def _name(rows: slice) -> str:
    return f"{rows.start}-{rows.stop}.block"


def _feed(state: Any, item: Any) -> None:
    """Everything that a setting says, so that no two settings say the same bytes."""
    if isinstance(item, np.ndarray):
        state.update(f"array {item.dtype.str} {item.shape};".encode())
        flat: NDArray[Any] = item.reshape(-1)
        for start in range(0, flat.size, 2**20):
            state.update(np.ascontiguousarray(flat[start : start + 2**20]).data)
        return
    if isinstance(item, Value):
        item = (type(item).__name__, *item._arrays())
    if isinstance(item, tuple):
        state.update(f"tuple {len(item)};".encode())
        for one in item:
            _feed(state, one)
        return
    text = repr(item).encode("utf-8", "backslashreplace")
    state.update(f"text {len(text)};".encode() + text)
