"""Inverses of monotone functions: the point where a condition turns true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .numerics import FloatArray

__all__ = ["bisect"]

Number = TypeVar("Number", float, FloatArray)


def bisect(
    beyond: Callable[[Number], Any], low: Number, high: Number, halvings: int,
    middle: Callable[[Number, Number], Number] | None = None, rtol: float = 0.0,
) -> tuple[Number, Number]:  # fmt: skip
    """Halve brackets [low, high] of the points from which on ``beyond`` is true; numbers, or arrays of one shape.

    ``beyond`` was false at every ``low`` that moved and true at every ``high`` that moved. ``middle`` says where a
    bracket is cut, ``rtol`` how narrow all may end, relative to ``high``. ``high`` may be the smaller end.
    """
    for _ in range(halvings):
        centre: Any = 0.5 * (low + high) if middle is None else middle(low, high)
        past: Any = beyond(centre)
        if np.ndim(past):
            low, high = np.where(past, low, centre), np.where(past, centre, high)  # type: ignore[assignment]
        else:
            low, high = (low, centre) if past else (centre, high)
        if rtol and np.all(high - low <= rtol * high):
            break
    return low, high
