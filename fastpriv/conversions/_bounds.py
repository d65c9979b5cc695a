"""Outward bounds of closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _validate
from ..estimate import Estimate, Information, Kind, Unit

__all__ = ["RELATIVE", "bounded", "information", "same_information"]

# bound: tested by enclosures/test_conversions_values - relative error of every closed form without an error of its own
RELATIVE = 1e-14  # of every closed form here, tested against mpmath
# bound: tested by enclosures/test_conversions_values - absolute error of subnormal results
_TINY = 5e-322  # absolute, for results that are subnormal
_LN2 = 0.6931471805599453
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


def information(nats: Any, unit: Information, method: str, *, known: Any = np.nan, settled: Any = False) -> Estimate:
    """An amount of information, computed in nats, in ``unit``; none rounded where ``known``, which it is of, is 0,
    or is infinite as the amount is."""
    _validate.choice("unit", unit, ("nats", "bits"))
    with np.errstate(over="ignore"):
        value = nats / _LN2 if unit == "bits" else nats
    ends = (known == 0.0) | (np.isinf(known) & np.isinf(nats))
    return bounded(value, unit, method, settled=settled | ends)


def same_information(value: Any, unit: Information, method: str = "the same number") -> Estimate:
    """The amount of information that was given, in its unit, without rounding."""
    _validate.choice("unit", unit, ("nats", "bits"))
    return bounded(value, unit, method, settled=True)
