"""Maximal leakage from the cells of a channel: one formula for stacks of channels and for notions."""

# bounds: tested by enclosures/test_discrete_capacity - rounding of a sum of maxima and of its logarithm

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["leakage_of_excess"]

FloatArray = NDArray[np.float64]
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53


def leakage_of_excess(excess: FloatArray, gap: Any, rounding: Any = 0.0) -> tuple[Any, Any, Any]:
    """Value, lower and upper bound of ln(1 + sum of ``excess``), in nats.

    ``excess`` has, along its last axis, the largest cell of each column less the cell of one row, which sums to 1 but
    for ``gap``, as the others do; so small leakages keep their digits. ``rounding`` is the relative error of its terms.
    """
    relative = (40 + excess.shape[-1].bit_length()) * _UNIT + rounding
    value = np.log1p(excess.sum(axis=-1))
    miss = 2.1 * np.asarray(gap)
    return value, np.maximum(value * (1 - relative) - miss, 0.0), value * (1 + relative) + miss
