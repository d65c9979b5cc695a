"""Determinants of matrices of doubles in whole-number arithmetic, for what rounding would drown.

Notation: every double is a whole number times a power of two, so K 2^bits is a matrix of whole numbers, and Bareiss's
elimination (1968) keeps it one: its divisions leave no remainder, and its last pivot is the determinant.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["half_log_ratio"]

FloatArray = NDArray[np.float64]
_LOG_2 = math.log(2.0)


def half_log_ratio(x: FloatArray, y: FloatArray) -> float | None:
    """1/2 log det(X + Y) / det Y to a few ulps; None when Y or X + Y is not positive definite as it stands."""
    bits = max(_bits(x), _bits(y))
    small, large = _whole(y, bits), _whole(x, bits)
    large = [[a + b for a, b in zip(*rows, strict=True)] for rows in zip(small, large, strict=True)]
    below, above = _determinant(small), _determinant(large)
    if below is None or above is None:
        return None
    excess = above - below
    if abs(excess) < below:
        return 0.5 * math.log1p(excess / below)  # quotients of whole numbers are rounded once
    shift = above.bit_length() - below.bit_length()
    return 0.5 * (shift * _LOG_2 + math.log(above / (below << shift)))


def _bits(k: FloatArray) -> int:
    """Binary places behind the point."""
    exponents = np.frexp(k[k != 0])[1]
    return max(0, 53 - int(exponents.min())) if exponents.size else 0


def _whole(k: FloatArray, bits: int) -> list[list[int]]:
    mantissas, exponents = np.frexp(k)
    places = exponents.astype(np.int64) - 53 + bits
    return [
        [int(m * 2.0**53) << int(place) if m else 0 for m, place in zip(*rows, strict=True)]
        for rows in zip(mantissas.tolist(), places.tolist(), strict=True)
    ]


def _determinant(k: list[list[int]]) -> int | None:
    """None if a leading minor is not positive."""
    last = 1
    for i, pivot in enumerate(k):
        head = pivot[i]
        if head <= 0:
            return None
        for row in k[i + 1 :]:
            factor = row[i]
            row[i + 1 :] = [(head * a - factor * b) // last for a, b in zip(row[i + 1 :], pivot[i + 1 :], strict=True)]
        last = head
    return last
