"""``ResultStore``: finished results in one SQLite file, so that work which is killed at any moment goes on.

A store belongs to one computation: its ``identity`` names the version, the quantity and whatever else the results
depend on, and a store of another identity is refused. A result is a row: an integer key, the packed result, and a
digest of both and of the identity. A row whose digest does not agree is as good as missing, and is computed again.

The file is in WAL mode: what was committed survives a killed process, and one process may read while another writes.
There is one writer at a time, which holds a lock on the file ``<path>-lock``; the lock ends with its process. Only the
user may read the file (mode 0600); links and files of other users are refused. After a power failure the last commits
may be missing, but the file is whole (``synchronous=NORMAL``).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import sqlite3
import stat
import struct
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from . import validate
from .errors import DomainError
from .files import explain_write_errors
from .values import ValueObject

__all__ = ["DamagedStoreError", "ResultStore", "pack", "settings_digest", "unpack"]

Result = TypeVar("Result")

_APPLICATION = 0x66707276  # "fprv", the application id in the header of a store
_FORMAT = 2  # version of the tables below, the user_version in the header of a store
_DIGEST_BYTES = 16  # of a row: an accident that leaves the digest in agreement has probability 2^-128
_LONGEST_REASON = 150  # characters of the error of a parser that are repeated
_SIDE_FILES = ("", "-wal", "-shm", "-lock")  # endings of the files that belong to a store
# The tables of a store.
_TABLES = """
create table if not exists identity (name text primary key, value text not null);
create table if not exists notes (name text primary key, value text not null);
create table if not exists results (key integer primary key, payload blob not null, digest blob not null);
"""
_HEAD = struct.Struct("<I")  # length of the head of packed arrays
_HASHED_ENTRIES = 2**20  # of an array that are hashed at a time
_open_paths: set[str] = set()  # stores that this process writes: its POSIX locks do not exclude itself
_open_paths_lock = threading.Lock()


class DamagedStoreError(DomainError):
    """A file that SQLite cannot read."""


class ResultStore:
    """Results by integer key, in one file that survives the end of its process.

    Made by ``open``, ``read`` or ``temporary``. Methods may be called by any thread.

    Parameters
    ----------
    path : Path or None
        The file; None for a temporary one.
    connection : sqlite3.Connection
        The open database.
    identity : mapping of str to str
        What the results belong to.
    name : str
        What an error calls the store.
    lock_file : int, optional
        The descriptor that holds the writer's lock.
    """

    def __init__(
        self, path: Path | None, connection: sqlite3.Connection, identity: Mapping[str, str], name: str,
        lock_file: int | None = None,
    ) -> None:
        self.path, self.identity = path, dict(identity)
        self._connection, self._name, self._lock_file = connection, name, lock_file
        self._lock = threading.Lock()
        weakref.finalize(self, connection.close)  # a table of results is not closed, it goes when nobody has it
        self._digest_key = hashlib.blake2b(repr(sorted(self.identity.items())).encode(), digest_size=32).digest()

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, identity: Mapping[str, str], resume: bool = True, name: str = "store"
    ) -> ResultStore:
        """Open a store to write into it, and make it if there is none.

        Parameters
        ----------
        path : path-like
            The file.
        identity : mapping of str to str
            What the results depend on. A store of another identity is refused.
        resume : bool
            Keep the results that are there; False empties the store, whatever its identity.
        name : str
            The argument that errors name.

        Raises
        ------
        DomainError
            For a store of another identity, one that another process writes, and a file that is no store, is damaged,
            is a link or is another user's.
        OSError
            If the file cannot be written.
        """
        target = validate.path(name, path)
        lock_file = _lock(target, name)
        connection = None
        try:
            _check_files(target, os.fstat(lock_file).st_uid, name)
            with explain_write_errors(target), suppress(FileExistsError):
                os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with _explained(target, name):
                connection = sqlite3.connect(target, check_same_thread=False, isolation_level=None)
                _check_format(connection, target, name)
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = normal")
                connection.execute("begin immediate")
                connection.execute(f"pragma application_id = {_APPLICATION}")
                connection.execute(f"pragma user_version = {_FORMAT}")
                for statement in filter(str.strip, _TABLES.split(";")):
                    connection.execute(statement)
                if not resume:
                    for table in ("identity", "notes", "results"):
                        connection.execute(f"delete from {table}")
                selected = dict(connection.execute("select name, value from identity"))
                if selected:
                    _check_identity(selected, identity, target, name)
                else:
                    connection.executemany("insert into identity values (?, ?)", identity.items())
                connection.execute("commit")
        except BaseException:
            if connection is not None:
                connection.close()
            _unlock(target, lock_file)
            raise
        return cls(target, connection, identity, name, lock_file)

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, name: str = "store") -> ResultStore:
        """Open a store to read it, also while another process writes it.

        Raises
        ------
        DomainError
            For a file that is no store, or is damaged.
        FileNotFoundError
            If there is no such file.
        """
        target = validate.path(name, path)
        if not target.is_file():
            raise FileNotFoundError(
                f"{name} must be a file that fastpriv made; got none at {str(target)!r}. Check the path."
            )
        # A store that nobody writes has no log. It is read without locks, which need files beside it.
        mode = "mode=ro" if os.path.exists(f"{target}-wal") else "mode=ro&immutable=1"
        with _explained(target, name):
            connection = sqlite3.connect(
                f"{target.resolve().as_uri()}?{mode}", uri=True, check_same_thread=False, isolation_level=None
            )
            try:
                _check_format(connection, target, name, empty=False)
                identity = dict(connection.execute("select name, value from identity"))
            except BaseException:
                connection.close()
                raise
        return cls(target, connection, identity, name)

    @classmethod
    def temporary(cls, identity: Mapping[str, str]) -> ResultStore:
        """Make a store for one process, in a nameless file that ends with it; what is small stays in memory."""
        connection = sqlite3.connect("", check_same_thread=False, isolation_level=None)
        connection.executescript(_TABLES)
        return cls(None, connection, identity, "store")

    def put_many(self, items: Iterable[tuple[int, bytes]], notes: Mapping[str, str] | None = None) -> None:
        """Write results, and remarks by name, in one transaction: all are kept, or none."""
        rows = [(key, payload, self._digest(key, payload)) for key, payload in items]
        with self._transaction() as connection:
            connection.executemany("insert or replace into results values (?, ?, ?)", rows)
            connection.executemany("insert or replace into notes values (?, ?)", (notes or {}).items())

    def get(self, key: int) -> bytes | None:
        """Return the result of this key; None if there is none that agrees with its digest."""
        for _, payload in self.items(key, key):
            return payload
        return None

    def keys(self) -> list[int]:
        """Return the keys of the results, in order; those of damaged rows are among them."""
        with self._lock, _explained(self.path, self._name):
            return [key for (key,) in self._connection.execute("select key from results order by key")]

    def items(self, first: int = -(2**63), last: int = 2**63 - 1) -> Iterator[tuple[int, bytes]]:
        """Yield the results whose keys are in ``[first, last]``, in the order of keys, without damaged ones."""
        while True:
            with self._lock, _explained(self.path, self._name):
                rows = self._connection.execute(
                    "select key, cast(payload as blob), cast(digest as blob) from results where key between ? and ? "
                    "and typeof(key) = 'integer' order by key limit 64",
                    (first, last),
                ).fetchall()
            for key, payload, digest in rows:
                if payload is not None and digest == self._digest(key, payload):  # SQLite trusts its ``not null``
                    yield key, payload
            if len(rows) < 64 or rows[-1][0] >= last:
                return
            first = rows[-1][0] + 1

    def unpacked(self, payload: bytes, unpack: Callable[[bytes], Result]) -> Result:
        """Return what a result holds; its digest was forged if it is none that fastpriv packs."""
        try:
            return unpack(payload)
        except MemoryError:
            raise
        except Exception as error:  # what a parser raises for bytes that nobody foresaw
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise DamagedStoreError(
                f"{self._name} must hold results that fastpriv wrote; got {str(self.path)!r}, in which one cannot be "
                f"read: {reason[:_LONGEST_REASON].rstrip('.')}. Name another file, or remove this one to start afresh."
            ) from None

    def notes(self) -> dict[str, str]:
        """Return the remarks that were written with the results."""
        with self._lock, _explained(self.path, self._name):
            return dict(self._connection.execute("select name, value from notes"))

    def close(self) -> None:
        """Close the file and let go of the lock."""
        self._close(())

    def remove(self) -> None:
        """Close the store and delete its file."""
        self._close(_SIDE_FILES[:3])
        self.path = None

    def _close(self, removed: tuple[str, ...]) -> None:
        """Close the file, delete those with these endings, and let go of the lock."""
        with self._lock, suppress(sqlite3.Error):  # all that was committed is kept, also where the disk is full
            self._connection.close()
        if self.path is not None:
            for ending in removed:
                with suppress(FileNotFoundError):
                    os.unlink(f"{self.path}{ending}")
            if self._lock_file is not None:
                descriptor, self._lock_file = self._lock_file, None
                _unlock(self.path, descriptor)

    def __enter__(self) -> ResultStore:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _explained(self.path, self._name):
            self._connection.execute("begin immediate")
            try:
                yield self._connection
                self._connection.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):  # after a full disk SQLite has rolled back by itself
                    self._connection.execute("rollback")
                raise

    def _digest(self, key: int, payload: bytes) -> bytes:
        start = key.to_bytes(8, "little", signed=True)
        digest = hashlib.blake2b(start, digest_size=_DIGEST_BYTES, key=self._digest_key)
        digest.update(payload)
        return digest.digest()


def pack(head: Any, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Pack a result: ``head``, which JSON can hold, and arrays of numbers by name."""
    shapes = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    text = json.dumps([head, shapes]).encode()
    return b"".join([_HEAD.pack(len(text)), text, *(array.tobytes() for array in arrays.values())])


def unpack(payload: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return head and arrays of a packed result, read-only; an error of any class if it is none."""
    (length,) = _HEAD.unpack_from(payload)
    position = _HEAD.size + length
    head, shapes = json.loads(payload[_HEAD.size : position])
    arrays = {}
    for name, kind, shape in shapes:
        array = np.frombuffer(payload, dtype=kind, count=int(np.prod(shape)), offset=position)
        arrays[str(name)] = array.reshape(shape)
        position += array.nbytes
    return head, arrays


def settings_digest(*settings: Any) -> str:
    """A digest of settings, in hexadecimal digits: different ones, of different types too, have different digests."""
    digest = hashlib.sha256()

    def update(item: Any) -> None:
        if isinstance(item, np.ndarray):
            digest.update(f"array {item.dtype.str} {item.shape};".encode())
            flat: NDArray[Any] = item.reshape(-1)
            for start in range(0, flat.size, _HASHED_ENTRIES):
                digest.update(np.ascontiguousarray(flat[start : start + _HASHED_ENTRIES]).data)
            return
        if isinstance(item, ValueObject):
            item = (type(item).__name__, *item._arrays())
        if isinstance(item, tuple):
            digest.update(f"tuple {len(item)};".encode())
            for element in item:
                update(element)
            return
        text = repr(item).encode("utf-8", "backslashreplace")
        digest.update(f"text {len(text)};".encode() + text)

    update(settings)
    return digest.hexdigest()


@contextmanager
def _explained(path: Path | None, name: str) -> Iterator[None]:
    """Replace an error of SQLite by a sentence with the path and the remedy."""
    shown = "a temporary file" if path is None else repr(str(path))
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # texts of a damaged file may be no UTF-8
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            explained: Exception = OSError(
                f"{name} must be on a disk with space for the results; got {shown}: {error}. Free space there, or "
                "raise the limit on the size of files (ulimit -f), and run again: what is finished is kept."
            )
            explained.errno = errno.ENOSPC  # type: ignore[attr-defined]
        elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            explained = _second_writer(name, shown)
        elif code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or type(error) is sqlite3.ProgrammingError:
            explained = OSError(
                f"{name} must be a file that can be written; got {shown}: {error}. Check path and rights."
            )
        else:
            explained = DamagedStoreError(
                f"{name} must be a whole file that fastpriv made; got {shown}: {error}. Name another file, or remove "
                "this one to start afresh."
            )
        raise explained from None


def _check_files(path: Path, owner: int, name: str) -> None:
    """Refuse links and files of other users under the names that SQLite will open."""
    for ending in _SIDE_FILES:
        with suppress(FileNotFoundError):
            status = os.lstat(f"{path}{ending}")
            if not stat.S_ISREG(status.st_mode) or status.st_uid != owner:
                result = f"one of user {status.st_uid}" if stat.S_ISREG(status.st_mode) else "a link or a directory"
                raise DomainError(
                    f"{name} must be a plain file of the user's own; got {result}: '{path}{ending}'. Remove it, or "
                    "name another file."
                )


def _check_format(connection: sqlite3.Connection, path: Path, name: str, empty: bool = True) -> None:
    """Refuse a database that is no store, or one of another format."""
    ((application,),) = connection.execute("pragma application_id")
    ((version,),) = connection.execute("pragma user_version")
    ((tables,),) = connection.execute("select count(*) from sqlite_master")
    if application != _APPLICATION and (tables or not empty):
        raise DomainError(
            f"{name} must be a file that fastpriv made; got another database: {str(path)!r}. Name another file."
        )
    if tables and version != _FORMAT:
        raise DomainError(
            f"{name} must be of format {_FORMAT}; got format {version}: {str(path)!r}. Read it with the version of "
            "fastpriv that made it, or name another file."
        )


def _check_identity(stored: Mapping[str, str], wanted: Mapping[str, str], path: Path, name: str) -> None:
    for word in dict.fromkeys((*wanted, *stored)):
        has, needs = stored.get(word), wanted.get(word)
        if has != needs:
            raise DomainError(
                f"{name} must be one of the same {word}; got {str(path)!r}, which has {validate.shown(has)} and not "
                f"{validate.shown(needs)}. Name another file, or pass resume=False to empty it."
            )


def _second_writer(name: str, shown: str) -> DomainError:
    return DomainError(
        f"{name} must have one writer; got {shown}, which another run is writing. Wait for its end, or name another "
        "file."
    )


def _lock(path: Path, name: str) -> int:
    """Take the lock of the only writer; return the descriptor that holds it."""
    index, shown = f"{path}-lock", repr(str(path))
    with _open_paths_lock:
        resolved = os.path.realpath(path)
        if resolved in _open_paths:
            raise _second_writer(name, shown)
        while True:
            try:
                with explain_write_errors(path):
                    descriptor = os.open(index, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise DomainError(
                        f"{name} must have no link in place of its lock; got {index!r}. Remove it."
                    ) from None
                raise
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno in (errno.EACCES, errno.EAGAIN):
                    raise _second_writer(name, shown) from None
                raise
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.lstat(index)):
                    _open_paths.add(resolved)
                    return descriptor
            os.close(descriptor)  # the last writer removed this file just before it was locked


def _unlock(path: Path, descriptor: int) -> None:
    with _open_paths_lock:
        with suppress(OSError):
            os.unlink(f"{path}-lock")
        os.close(descriptor)
        _open_paths.discard(os.path.realpath(path))
