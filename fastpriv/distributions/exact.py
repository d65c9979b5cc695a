"""Doubles as whole numbers, and determinants of matrices of them, for what rounding would drown.

Notation: every double is a whole number times a power of two, so a matrix of doubles is one of whole numbers times such
a power. Bareiss's elimination (1968) keeps it one: its divisions leave no remainder, and its last pivot is the
determinant.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .packed import FloatArray

__all__ = ["integer_determinant", "scaled_integers"]


def scaled_integers(x: FloatArray, shifts: Sequence[int] | None = None) -> tuple[list[int], int]:
    """Whole numbers n and an exponent e with x_i 2^shift_i = n_i 2^e."""
    mantissas, exponents = np.frexp(np.asarray(x, dtype=np.float64).ravel())
    places = (exponents.astype(np.int64) - 53).tolist()
    if shifts is not None:
        places = [a + b for a, b in zip(places, shifts, strict=True)]
    digits = np.ldexp(mantissas, 53).astype(np.int64).tolist()
    least = min((e for n, e in zip(digits, places, strict=True) if n), default=0)
    return [n << (e - least) if n else 0 for n, e in zip(digits, places, strict=True)], least


def integer_determinant(k: list[list[int]]) -> int | None:
    """Determinant of a matrix of whole numbers; None if a leading minor is not positive. Overwrites its rows."""
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
