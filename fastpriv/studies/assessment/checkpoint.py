"""Finished blocks of an assessment on disk: those of one column under one mechanism are a store.

A block is a line of JSON (the quantities with their shapes, kinds and methods), and the numbers as little-endian
doubles. The name of the store has the digest of data and settings. A block that is damaged is computed again, and so
are all of a file that is damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base import validate
from ...base.files import writable_directory
from ...base.store import DamagedStoreError, ResultStore
from ...base.values import ValueObject
from ...base.version import VERSION
from .quantities import QUANTITIES, QuantityGrid

__all__ = ["Checkpoint", "open_store"]

_FORMAT = "information in nats"  # part of every digest; a change of meaning makes old blocks useless
_ARRAYS = ("value", "lower", "upper")  # arrays of doubles that a block stores of each quantity, in this order
_KEY_BITS = 31  # of the number of the row after a block, in the lower half of its key; a grid has at most 2^23 rows


def open_store(parent: str | os.PathLike[str], settings: tuple[Any, ...], *, resume: bool) -> ResultStore:
    """Open the store for these settings; remove the blocks of an earlier run unless ``resume``."""
    digest = hashlib.sha256()
    _update_digest(digest, (VERSION, _FORMAT, tuple(QUANTITIES), *settings))
    folder = writable_directory(validate.path("checkpoint", parent))
    path = folder / f".blocks-{digest.hexdigest()[:16]}"
    identity = {"version": VERSION, "settings": digest.hexdigest()}
    try:
        return ResultStore.open(path, resume=resume, identity=identity, name="checkpoint")
    except DamagedStoreError:
        for ending in ("", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        return ResultStore.open(path, resume=resume, identity=identity, name="checkpoint")


class Checkpoint:
    """The blocks of one column under one mechanism, kept until the run is complete; none are without a store."""

    def __init__(self, store: ResultStore | None) -> None:
        self.store = store

    def load(self, rows: slice) -> dict[str, QuantityGrid] | None:
        """Read the block of these rows; None if there is none that is whole."""
        payload = None if self.store is None else self.store.get(_key(rows))
        try:
            return None if payload is None else _parse(payload, rows)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None

    def save(self, rows: slice, block: Mapping[str, QuantityGrid]) -> None:
        """Write a block."""
        if self.store is None:
            return
        shapes = {name: [list(np.shape(grid.value)), grid.kind, grid.method] for name, grid in block.items()}
        arrays = (getattr(grid, name) for grid in block.values() for name in _ARRAYS)
        numbers = (np.asarray(array, dtype="<f8").tobytes() for array in arrays)
        self.store.put_many([(_key(rows), json.dumps(shapes).encode() + b"\n" + b"".join(numbers))])

    def remove(self) -> None:
        """Delete the blocks of a run that is complete."""
        if self.store is not None:
            self.store.remove()


def _key(rows: slice) -> int:
    return int(rows.start << _KEY_BITS | rows.stop)


def _parse(content: bytes, rows: slice) -> dict[str, QuantityGrid] | None:
    head, _, numbers = content.partition(b"\n")
    remaining, block = np.frombuffer(numbers, dtype="<f8").astype(np.float64), {}
    for name, (shape, kind, method) in json.loads(head).items():
        size = int(np.prod(shape))
        entries, remaining = remaining[: len(_ARRAYS) * size], remaining[len(_ARRAYS) * size :]
        value, lower, upper = entries.reshape(len(_ARRAYS), *shape)
        if not len(value) == len(kind) == len(method) == rows.stop - rows.start:
            return None
        block[name] = QuantityGrid(value, lower, upper, tuple(kind), tuple(method))
    return None if remaining.size else block


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
