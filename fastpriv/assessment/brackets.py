"""Bounds on what a channel has no quick way to: from its pure levels, which every channel has.

Notation: e the LDP epsilon of the channel, xi_plus and xi_minus the sides of its MBP under the prior pi. A hockey-stick
of two laws within a ratio of e^e is at most (e^e - e^epsilon)^+ / (1 + e^e); LIP is at most LDP at each epsilon, since
the law of the release is a mixture of rows. A best guess gains at most e^xi_plus. What is unknown is reported by its
upper bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conversions.average_bayesian_privacy import abp_given_secret_from_mbp
from ..estimate import Estimate, Unit
from .quantities import BOUND

__all__ = ["below", "curve", "gain", "shift"]

FloatArray = NDArray[np.float64]
# bound: tested by surfaces/test_assess - rounding where a level is turned into a bound
_UP = 1.0 + 1e-14


def below(upper: Any, unit: Unit, lower: Any = 0.0, why: str = "more releases than can be gone through") -> Estimate:
    """A number of which only bounds are known."""
    return Estimate(
        upper, np.minimum(lower, upper) + np.zeros(np.shape(upper)), upper, kind="certified", unit=unit,
        method=f"{BOUND}: {why}",
    )  # fmt: skip


def curve(level: float, epsilon: FloatArray) -> Estimate:
    """A curve below that of the worst channel with this LDP epsilon."""
    gap = np.maximum(level - epsilon, 0.0)
    share = 1.0 if level > 700.0 else 1.0 / (1.0 + math.exp(-level))
    most = np.minimum(1.0, -np.expm1(-gap) * share * _UP)
    return below(most, "probability", why="the worst curve of its LDP epsilon")


def shift(xi: float) -> Estimate:
    """ABP of a channel with this MBP, the release drawn at a true value."""
    return below(float(abp_given_secret_from_mbp(xi).upper), "1")


def gain(before: float, xi_plus: float, maximal: float) -> tuple[Estimate, Estimate]:
    """Chance of the best guess, and its leakage in nats."""
    most = max(0.0, min(xi_plus, maximal, -math.log(before)) * _UP)
    return below(min(1.0, before * math.exp(most) * _UP), "probability", before), below(most, "nats")
