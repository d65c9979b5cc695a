"""Outward bounds of closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimate import Estimate, Kind, Unit

__all__ = ["RELATIVE", "bounded"]

RELATIVE = 1e-14  # of every closed form here, tested against mpmath
_TINY = 5e-322  # absolute, for results that are subnormal
_LARGEST = float(np.finfo(np.float64).max)


def bounded(
    value: Any, unit: Unit, method: str, *, error: Any = None, ceiling: float = np.inf, settled: Any = False,
    kind: Kind = "exact",
) -> Estimate:  # fmt: skip
    """``value`` in [0, ceiling] with its error outward: ``RELATIVE`` of it, or ``error``; none where ``settled``.

    A value that has left the range of doubles has the largest of them as lower bound.
    """
    found = np.clip(np.asarray(value, dtype=np.float64), 0.0, ceiling)
    with np.errstate(invalid="ignore", over="ignore"):
        slack = (RELATIVE * found if error is None else np.asarray(error)) + _TINY
        lower = np.where(np.isinf(found), _LARGEST, np.maximum(found - slack, 0.0))
        upper = np.where(np.isinf(found), np.inf, np.minimum(found + slack, ceiling))
    lower, upper = np.where(settled, found, lower), np.where(settled, found, upper)
    return Estimate(found, lower, upper, kind=kind, unit=unit, method=method)
