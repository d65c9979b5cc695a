"""Ratios of determinants of matrices of doubles, without rounding until the last step.

Notation: X and Y are of shape (d, d); both become whole numbers times one power of two, which leaves their ratio.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...numerics.exact_linear_algebra import integer_determinant, scaled_integers

__all__ = ["half_log_ratio"]

FloatArray = NDArray[np.float64]
_LOG_2 = math.log(2.0)


def half_log_ratio(x: FloatArray, y: FloatArray) -> float | None:
    """1/2 log det(X + Y) / det Y to a few ulps; None when Y or X + Y is not positive definite as it stands."""
    d = len(x)
    numbers, _ = scaled_integers(np.concatenate([x, y]))
    rows = [numbers[i * d : (i + 1) * d] for i in range(2 * d)]
    large = [[a + b for a, b in zip(*pair, strict=True)] for pair in zip(rows[:d], rows[d:], strict=True)]
    below, above = integer_determinant(rows[d:]), integer_determinant(large)
    if below is None or above is None:
        return None
    excess = above - below
    if abs(excess) < below:
        return 0.5 * math.log1p(excess / below)  # quotients of whole numbers are rounded once
    shift = above.bit_length() - below.bit_length()
    return 0.5 * (shift * _LOG_2 + math.log(above / (below << shift)))
