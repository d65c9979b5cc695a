"""What all distributions share: sizes that are taken, and the gap of a sum of weights."""

from __future__ import annotations

import math

import numpy as np

from .._values import FloatArray, Value

__all__ = ["LIMIT", "FloatArray", "Value", "mass_gap"]

LIMIT = 1e300  # largest size of a point, a standard deviation, a variance and of one over the last two


def mass_gap(weights: FloatArray) -> float:
    """How far the sum is from 1, beyond what rounding the weights themselves explains."""
    gap = abs(math.fsum(weights) - 1.0)
    return gap if gap > 0.5 * float(np.sum(np.spacing(weights))) + 2.0**-53 else 0.0
