"""What the curves of this room return: certified Estimates, and bounds of the logarithms at several levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.numerics import FloatArray

Curve = Callable[[FloatArray], Estimate]


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

    @classmethod
    def of_estimate(cls, estimate: Estimate) -> LogBounds:
        """The bounds of an Estimate of a probability or of its logarithm."""
        logs = estimate.to("log probability")
        return cls(*logs.arrays(), logs.cost, logs.method)

    @classmethod
    def of_bounds(cls, lower: FloatArray, upper: FloatArray, cost: Mapping[str, Any], method: str) -> LogBounds:
        """Bounds with the values in their middle, or at the upper one where the lower one is -inf."""
        with np.errstate(invalid="ignore"):
            value = np.where(np.isfinite(lower), 0.5 * lower + 0.5 * upper, upper)
        return cls(np.clip(value, lower, upper), lower, upper, cost, method)


def certified(curve: Curve, epsilon: FloatArray) -> Estimate:
    """The curve at these levels, whose bounds must be proved."""
    estimate = curve(epsilon)
    if estimate.kind not in ("exact", "certified"):
        raise DomainError(
            f"p and q must be a pair with certified bounds; got a {estimate.kind} estimate. A privacy loss made of "
            "estimates would dominate nothing."
        )
    return estimate
