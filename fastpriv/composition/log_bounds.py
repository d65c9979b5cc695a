"""Bounds of the logarithm of a curve at several levels, as every engine of this room returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..base.numerics import FloatArray

__all__ = ["LogBounds"]


class LogBounds(NamedTuple):
    """Natural logarithms, one for each epsilon, ``lower <= value <= upper``; -inf for 0. ``cost`` and ``method`` as
    those of an Estimate.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    cost: Mapping[str, Any]
    method: str

    @property
    def numbers(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Value, lower and upper bounds."""
        return self.value, self.lower, self.upper
