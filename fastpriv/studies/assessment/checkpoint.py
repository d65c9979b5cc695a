"""Finished blocks of an assessment on disk: those of one column under one mechanism are a store.

The name of the store has the digest of data and settings. A block that is damaged is computed again, and so are all of
a file that is damaged.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...base import validate
from ...base.files import writable_directory
from ...base.numerics import FloatArray
from ...base.store import DamagedStoreError, ResultStore, pack, settings_digest, unpack
from ...base.version import VERSION
from .quantities import QUANTITIES, QuantityGrid

_FORMAT = "information in nats"  # part of every digest; a change of meaning makes old blocks useless
_ARRAYS = ("value", "lower", "upper")  # arrays of doubles that a block stores of each quantity
_KEY_BITS = 31  # of the number of the row after a block, in the lower half of its key; a grid has at most 2^23 rows


def open_store(parent: str | os.PathLike[str], settings: tuple[Any, ...], *, resume: bool) -> ResultStore:
    """Open the store for these settings; remove the blocks of an earlier run unless ``resume``."""
    digest = settings_digest(VERSION, _FORMAT, tuple(QUANTITIES), *settings)
    folder = writable_directory(validate.path("checkpoint", parent))
    path = folder / f".blocks-{digest[:16]}"
    identity = {"version": VERSION, "settings": digest}
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
        if self.store is None or (payload := self.store.get(_key(rows))) is None:
            return None
        try:
            return _parse(*self.store.unpacked(payload, unpack), rows)
        except (ValueError, LookupError, TypeError, AttributeError):
            return None

    def save(self, rows: slice, block: Mapping[str, QuantityGrid]) -> None:
        """Write a block."""
        if self.store is not None:
            words = {name: [grid.kind, grid.method] for name, grid in block.items()}
            arrays = {f"{name} {end}": getattr(grid, end) for name, grid in block.items() for end in _ARRAYS}
            self.store.put_many([(_key(rows), pack(words, arrays))])

    def remove(self) -> None:
        """Delete the blocks of a run that is complete."""
        if self.store is not None:
            self.store.remove()


def _key(rows: slice) -> int:
    return int(rows.start << _KEY_BITS | rows.stop)


def _parse(words: Any, arrays: Mapping[str, FloatArray], rows: slice) -> dict[str, QuantityGrid] | None:
    block = {}
    for name, (kind, method) in words.items():
        value, lower, upper = (arrays[f"{name} {end}"].copy() for end in _ARRAYS)
        if not all(len(entries) == rows.stop - rows.start for entries in (value, lower, upper, kind, method)):
            return None
        block[name] = QuantityGrid(value, lower, upper, tuple(kind), tuple(method))
    return block
