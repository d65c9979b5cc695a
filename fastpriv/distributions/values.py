"""What all distributions share: sizes that are taken, and points as rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .._values import FloatArray, Value
from ..errors import ShapeError

__all__ = ["LIMIT", "FloatArray", "Value", "rows"]

LIMIT = 1e300  # largest size of a point, a standard deviation, a variance and of one over the last two


def rows(name: str, x: ArrayLike, dimension: int) -> tuple[FloatArray, bool]:
    """Points as rows of coordinates, and whether a single one was given without its axis."""
    given = _validate.real(name, x, "made of finite numbers", np.isfinite, answer=False)
    one = given.ndim == (0 if dimension == 1 else 1)
    found = given.reshape(-1, 1) if dimension == 1 and given.ndim < 2 else np.atleast_2d(given)
    if found.ndim != 2 or found.shape[1] != dimension:
        wanted = "(n,) or (n, 1)" if dimension == 1 else f"(n, {dimension}) or ({dimension},)"
        raise ShapeError(f"{name} must be of shape {wanted}; got {given.shape}. Pass one row of coordinates a point.")
    return found, one
