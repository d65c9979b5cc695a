"""Files that appear whole or not at all, whatever kills the run; what stops one is said in a sentence."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

__all__ = ["checked", "writable", "writable_directory", "written_whole"]

_ROOM = "Free space there, or name a path on another disk."
_RIGHTS = "Name a path where you may write, or have its owner let you."
_REMEDIES = {
    errno.ENOSPC: _ROOM, errno.EDQUOT: _ROOM, errno.EACCES: _RIGHTS, errno.EPERM: _RIGHTS,
    errno.EFBIG: "Raise the limit on the size of files (ulimit -f), or write less.",
    errno.EROFS: "Name a path on a disk that is not read-only.",
    errno.EISDIR: "Name a file in that directory.",
    errno.ENOENT: "Make its directory first, or name another.",
    errno.EEXIST: "Name a directory, or a path that is not taken.",
    errno.ENOTDIR: "Name a path without a file in place of a directory.",
    errno.ENAMETOOLONG: "Take a shorter name.",
    errno.EINVAL: "Name a plain file, or one that does not exist yet.",
}  # fmt: skip


@contextmanager
def writable(path: str | os.PathLike[str], kind: str = "a file") -> Iterator[None]:
    """Turns what the system says of writing to ``path`` into a sentence with its name and the remedy."""
    try:
        yield
    except OSError as fault:
        if fault.strerror is None:  # a sentence already
            raise
        remedy = _REMEDIES.get(fault.errno or 0, "Check the path and its disk.")
        said = type(fault)(f"path must be {kind} that can be written; got {str(path)!r}: {fault.strerror}. {remedy}")
        said.errno = fault.errno
        raise said from None


@contextmanager
def written_whole(path: str | os.PathLike[str], rights: int = 0o666) -> Iterator[IO[bytes]]:
    """A binary file that takes the name ``path`` when the block ends without an error, and never before.

    The bytes go to a file without a name where the file system has such a thing (a kill then leaves nothing at all),
    else to a hidden neighbour that is removed on error. They reach the disk before the name does. An error of the
    system names the path and the remedy; what else the block raises is left as it is.
    """
    goal = Path(path)
    hidden = goal.parent / f".{os.getpid()}.{secrets.token_hex(8)}.part"
    checked(goal)
    with writable(goal):
        descriptor = _nameless(goal.parent, rights)
        named = descriptor is None
        if descriptor is None:
            descriptor = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL, rights)
    stream = io.BufferedRandom(_File(descriptor, goal))
    try:
        yield stream
        stream.flush()
        with writable(goal):
            os.fsync(stream.fileno())
            if named or not _linked(stream.fileno(), goal):
                if not named:
                    _linked(stream.fileno(), hidden)
                os.replace(hidden, goal)
    except BaseException:
        with suppress(OSError):
            hidden.unlink()
        raise
    finally:
        with suppress(OSError):  # on the way out of an error, which is the one to tell
            stream.close()


class _File(io.FileIO):
    """A file whose faults in writing are told of its future name."""

    def __init__(self, descriptor: int, goal: Path) -> None:
        super().__init__(descriptor, "w+")
        self._goal = goal

    def write(self, data: Any) -> Any:
        with writable(self._goal):
            return super().write(data)


def checked(path: str | os.PathLike[str]) -> None:
    """Refuse before the work what cannot be the name of a file, or should not."""
    goal = Path(path)
    with writable(goal):
        fault = 0 if stat.S_ISDIR(os.stat(goal.parent).st_mode) else errno.ENOTDIR
        with suppress(FileNotFoundError):
            kind = os.stat(goal).st_mode
            if stat.S_ISDIR(kind):
                fault = errno.EISDIR
            elif not stat.S_ISREG(kind):  # a device, which the new name would remove
                fault = errno.EINVAL
            elif not os.access(goal, os.W_OK):
                fault = errno.EACCES
        if fault:
            raise OSError(fault, os.strerror(fault))


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
    with writable(directory, "a directory"):
        directory.mkdir(parents=True, exist_ok=True)
        probe = directory / f".{os.getpid()}.{secrets.token_hex(8)}.probe"
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        probe.unlink()
    return directory


def _nameless(directory: Path, rights: int) -> int | None:
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR, rights)
    except OSError:  # a file system without nameless files, or a real fault that the next open names
        return None
