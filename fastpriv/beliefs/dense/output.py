"""Where the posterior probabilities go: an array, or a .npy file that appears whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ... import _validate
from ..._files import atomic_write, check_writable_file, explain_write_errors
from ..._values import FloatArray
from ...errors import DomainError, ShapeError
from .passes import Block, Pair

__all__ = ["Output", "Room"]


class Room:
    """Gives each block its place, and keeps what was written there."""

    def __init__(self, array: FloatArray | None, path: Any = None, descriptor: int = -1, offset: int = 0) -> None:
        self.array, self.path, self.descriptor, self.offset = array, path, descriptor, offset

    def __call__(self, block: Block) -> FloatArray:
        """Where to write the posterior of a block."""
        size = block.likelihood.size
        return np.empty(size) if self.array is None else self.array[block.start : block.start + size]

    def write(self, block: Block, found: FloatArray) -> None:
        """Takes what was written there."""
        if self.array is not None:
            return
        left, at = memoryview(found.view(np.uint8).data), self.offset + 8 * block.start
        with explain_write_errors(self.path):
            while len(left):
                count = os.pwrite(self.descriptor, left, at)
                left, at = left[count:], at + count


class Output:
    """``out=`` of ``posterior``, checked before anything is read."""

    def __init__(self, out: Any, pair: Pair) -> None:
        self.out = out
        if out is None:
            return
        if not pair.again:
            raise DomainError(
                "out must be None for what can be read only once; got an iterator, whose evidence is known at its end. "
                "Pass a function that returns a fresh iterator."
            )
        if isinstance(out, (str, os.PathLike)):
            if Path(out).suffix.lower() != ".npy":
                raise DomainError(f"out must be a .npy file; got {os.fspath(out)!r}. Name it so, or pass an array.")
            check_writable_file(out)
            return
        plain = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.flags.c_contiguous
        if not plain or not out.flags.writeable:
            raise DomainError(
                f"out must be a contiguous array of float64 that can be written to; got {_validate.shown(out)}. "
                "Pass numpy.empty(size), or the path of a .npy file."
            )
        if any(
            np.may_share_memory(out, getattr(source, "values", None)) or source.is_file_of(out)
            for source in pair.sources
        ):
            raise DomainError(
                "out must be memory of its own; got that of the likelihood or prior. Pass numpy.empty(size)."
            )
        if pair.length is not None:
            self._fits(pair.length)

    def _fits(self, size: int) -> None:
        if isinstance(self.out, np.ndarray) and self.out.shape != (size,):
            raise ShapeError(f"out must be of shape ({size},); got {self.out.shape}. Pass numpy.empty({size}).")

    @contextmanager
    def opened(self, size: int) -> Iterator[Room | None]:
        """What gives each block its place; the file takes its name at the end."""
        self._fits(size)
        if self.out is None or isinstance(self.out, np.ndarray):
            yield None if self.out is None else Room(self.out)
            return
        with atomic_write(self.out) as stream:
            head = {"descr": "<f8", "fortran_order": False, "shape": (size,)}
            np.lib.format.write_array_header_1_0(stream, head)
            stream.flush()
            yield Room(None, self.out, stream.fileno(), stream.tell())
