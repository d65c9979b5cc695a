"""Finished blocks on disk, in a directory named after the data and the settings they belong to."""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import __version__
from .._atomic import writable_directory, written_whole
from .quantities import Surface

__all__ = ["Checkpoint"]

_CONTENT = "information in nats"  # blocks of a run whose numbers meant something else are never taken


@dataclass(frozen=True)
class Checkpoint:
    """One directory of blocks; a block that is damaged or missing is computed again."""

    directory: Path

    @classmethod
    def opened(
        cls, parent: str | os.PathLike[str], words: tuple[str, ...], arrays: tuple[NDArray[np.float64], ...], *,
        resume: bool,
    ) -> Checkpoint:  # fmt: skip
        """The directory for these settings; emptied of an earlier run's blocks unless ``resume``."""
        digest = hashlib.sha256("\n".join((__version__, _CONTENT, *words)).encode())
        for array in arrays:
            digest.update(f"\n{array.size}\n".encode() + np.ascontiguousarray(array).tobytes())
        directory = writable_directory(parent) / f".blocks-{digest.hexdigest()[:16]}"
        if not resume:
            shutil.rmtree(directory, ignore_errors=True)
        return cls(writable_directory(directory))

    def load(self, start: int) -> dict[str, Surface] | None:
        """The block that begins at sigma number ``start``, or None."""
        try:
            with np.load(self._path(start), allow_pickle=False) as stored:
                names = [key.removesuffix("/value") for key in stored.files if key.endswith("/value")]
                return {name: _surface(stored, name) for name in names}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def keep(self, start: int, block: Mapping[str, Surface]) -> None:
        """Write a block, whole or not at all."""
        arrays: dict[str, NDArray[Any]] = {}
        for name, found in block.items():
            arrays |= {f"{name}/{part}": np.asarray(getattr(found, part)) for part in Surface.__dataclass_fields__}
        with written_whole(self._path(start)) as stream:
            np.savez(stream, allow_pickle=False, **arrays)

    def remove(self) -> None:
        """Remove the blocks: the run is complete."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _path(self, start: int) -> Path:
        return self.directory / f"{start}.npz"


def _surface(stored: Mapping[str, NDArray[np.float64]], name: str) -> Surface:
    value, lower, upper = (stored[f"{name}/{part}"] for part in ("value", "lower", "upper"))
    kind, method = (tuple(str(word) for word in stored[f"{name}/{part}"]) for part in ("kind", "method"))
    return Surface(value, lower, upper, kind, method)
