"""What all distributions are: values made of read-only arrays, equal when their arrays are."""

from __future__ import annotations

import hashlib
import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..errors import ShapeError

__all__ = ["LIMIT", "FloatArray", "Value", "mass_gap", "rows"]

FloatArray = NDArray[np.float64]
LIMIT = 1e300  # largest size of a point, a standard deviation, a variance and of one over the last two
_HASHED = 2**20  # entries hashed at a time


class Value:
    """Frozen after construction; equal, hashable and picklable by the arrays that ``_fields`` names."""

    __slots__: tuple[str, ...] = ()
    _fields: ClassVar[tuple[str, ...]] = ()

    def _set(self, **arrays: FloatArray | None) -> None:
        """Keeps the arrays themselves, read-only from now on: the caller gives them away."""
        for name, array in arrays.items():
            if array is not None:
                array.setflags(write=False)
            object.__setattr__(self, name, array)

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of setting {name}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of deleting {name}.")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        state = hashlib.blake2b(digest_size=8)
        for array in self._arrays():
            if array is None:
                continue
            state.update(repr(array.shape).encode())
            flat = array.reshape(-1)
            for start in range(0, flat.size, _HASHED):
                state.update((flat[start : start + _HASHED] + 0.0).tobytes())  # -0.0 equals 0.0
        return hash((type(self).__name__, state.digest()))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> Any:
        return type(self), tuple(array.copy() for array in self._arrays())

    def __len__(self) -> int:
        return len(self._arrays()[0])


def mass_gap(weights: FloatArray) -> float:
    """How far the sum is from 1, beyond what rounding the weights themselves explains."""
    gap = abs(math.fsum(weights) - 1.0)
    return gap if gap > 0.5 * float(np.sum(np.spacing(weights))) + 2.0**-53 else 0.0


def _equal(a: FloatArray | None, b: FloatArray | None) -> bool:
    if a is None or b is None:
        return a is b
    if a is b:
        return True
    if a.ndim < 3:
        return np.array_equal(a, b)
    return a.shape == b.shape and all(np.array_equal(one, two) for one, two in zip(a, b, strict=True))


def rows(name: str, x: ArrayLike, dimension: int) -> tuple[FloatArray, bool]:
    """Points as rows of coordinates, and whether a single one was given without its axis."""
    given = _validate.real(name, x, "made of finite numbers", np.isfinite)
    one = given.ndim == (0 if dimension == 1 else 1)
    found = given.reshape(-1, 1) if dimension == 1 and given.ndim < 2 else np.atleast_2d(given)
    if found.ndim != 2 or found.shape[1] != dimension:
        wanted = "(n,) or (n, 1)" if dimension == 1 else f"(n, {dimension}) or ({dimension},)"
        raise ShapeError(f"{name} must be of shape {wanted}; got {given.shape}. Pass one row of coordinates a point.")
    return found, one
