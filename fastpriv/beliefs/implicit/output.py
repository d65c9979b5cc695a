"""All posterior probabilities, into an array or a file, where somebody asks for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _validate
from ..._files import atomic_write
from ..._values import FloatArray
from ...errors import DomainError, ShapeError

__all__ = ["written"]

_BLOCK = 2**18


def written(out: Any, size: int, chance: Callable[[int, int], FloatArray]) -> None:
    """Fills an array of shape (size,), or writes a ``.npy`` file; nothing for None."""
    if out is None:
        return
    starts = range(0, size, _BLOCK)
    if isinstance(out, np.ndarray):
        if out.shape != (size,) or out.dtype != np.float64:
            raise ShapeError(
                f"out must be a float64 array with one entry a secret, {_validate.shown(size)}; got {out.dtype} of "
                f"shape {out.shape}. Pass np.empty of that size, or a path."
            )
        for start in starts:
            stop = min(start + _BLOCK, size)
            out[start:stop] = chance(start, stop)
        return
    if not isinstance(out, (str, os.PathLike)) or size > 2**48:
        raise DomainError(
            f"out must be an array, or the path of a file that can hold all secrets; got {_validate.shown(out)} for "
            f"{_validate.shown(size)} secrets. Ask for probabilities(start, stop) instead."
        )
    with atomic_write(out) as stream:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(np.float64)), "fortran_order": False, "shape": (size,)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in starts:
            stream.write(chance(start, min(start + _BLOCK, size)).tobytes())
