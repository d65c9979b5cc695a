"""Files that appear whole or not at all, whatever kills the run."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

__all__ = ["writable_directory", "written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file that takes the name ``path`` when the block ends without an error, and never before.

    The bytes go to a file without a name where the file system has such a thing (a kill then leaves nothing at all),
    else to a hidden neighbour that is removed on error. They reach the disk before the name does.
    """
    goal = Path(path)
    if not goal.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(goal.parent))
    hidden = goal.parent / f".{goal.name}.{os.getpid()}.{secrets.token_hex(4)}.part"
    descriptor = _nameless(goal.parent)
    named = descriptor is None
    if descriptor is None:
        descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if not named and _linked(stream.fileno(), goal):
                return
            if not named:
                _linked(stream.fileno(), hidden)
        os.replace(hidden, goal)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise


def _linked(descriptor: int, name: Path) -> bool:
    """Give a file without a name one that is not taken; False if it is."""
    root = os.open("/", os.O_RDONLY)
    try:  # the directory descriptor only makes link() follow the link in /proc
        os.link(f"/proc/self/fd/{descriptor}", name, src_dir_fd=root, follow_symlinks=True)
    except FileExistsError:
        return False
    finally:
        os.close(root)
    return True


def writable_directory(path: str | os.PathLike[str]) -> Path:
    """The directory, made if it is missing; an ``OSError`` with its reason when nothing can be written there."""
    directory = Path(path)
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / f".{os.getpid()}.{secrets.token_hex(4)}.probe"
    os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    probe.unlink()
    return directory


def _nameless(directory: Path) -> int | None:
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError:  # a file system without nameless files, or a real fault that the next open names
        return None
