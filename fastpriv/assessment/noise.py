"""The noise that a target needs: the smallest sigma whose upper bound meets it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import notions
from ..distributions import Pmf
from ..estimate import Estimate
from .quantities import Family

__all__ = ["Requirement", "required_noise"]

_STEPS = 24  # bisections of a factor of 10: a relative width of 1.4e-7
_DECADES = 9


@dataclass(frozen=True)
class Requirement:
    """A target, the noise that meets it (infinite when none was found), and what is claimed of the bound."""

    target: str
    sigma: float
    kind: str


@dataclass(frozen=True)
class _Target:
    text: str
    bound: float
    quantity: Callable[[Pmf, Any], Estimate]


_TARGETS = (
    _Target("at most 0.1 bit on average", 0.1, lambda prior, mechanism: notions.cd_lmip(prior, mechanism).to("bits")),
    _Target("at most 0.01 bit on average", 0.01, lambda prior, mechanism: notions.cd_lmip(prior, mechanism).to("bits")),
    _Target("LIP, epsilon = 1, delta = 1e-5", 1e-5, lambda prior, mechanism: notions.lip_delta(prior, mechanism, 1.0)),
    _Target("LDP, epsilon = 1, delta = 1e-5", 1e-5, lambda prior, mechanism: mechanism.delta(1.0)),
)


def required_noise(prior: Pmf, family: Family, sensitivity: float) -> tuple[Requirement, ...]:
    """Noise for the usual targets; every quantity here falls as sigma grows, since more noise is post-processing."""
    return tuple(_requirement(target, prior, family, sensitivity) for target in _TARGETS)


def _requirement(target: _Target, prior: Pmf, family: Family, sensitivity: float) -> Requirement:
    def met(sigma: float) -> Estimate | None:
        found = target.quantity(prior, family.build(sigma, sensitivity))
        return found if float(found.upper) <= target.bound else None

    high = 1e-3 * sensitivity
    best = met(high)
    for _ in range(_DECADES):
        if best is not None:
            break
        high *= 10.0
        best = met(high)
    if best is None:
        return Requirement(target.text, math.inf, "certified")
    low = high / 10.0
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        found = met(middle)
        if found is None:
            low = middle
        else:
            high, best = middle, found
    return Requirement(target.text, high, best.kind)
