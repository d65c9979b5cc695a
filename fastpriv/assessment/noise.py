"""What a target needs: the least noise, or the highest level, whose upper bound meets it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import notions
from ..channels import AnyChannel
from ..estimate import Estimate
from .families import Family
from .inputs.secrets import Secret

__all__ = ["Requirement", "required_noise"]

_STEPS = 24  # bisections of a factor of 10: a relative width of 1.4e-7
_DECADES = 9
_HIGHEST = 100.0


@dataclass(frozen=True)
class Requirement:
    """A target, what meets it (infinite noise or level 0 when nothing was found), and what is claimed of the bound."""

    target: str
    setting: float
    kind: str


@dataclass(frozen=True)
class _Target:
    text: str
    bound: float
    quantity: Callable[[Secret, Any], Estimate]


def _bits(secret: Secret, mechanism: Any) -> Estimate:
    prior = secret.weights if isinstance(mechanism, AnyChannel) else secret.prior
    return notions.cd_lmip(prior, mechanism).to("bits")


_INFORMATION = (_Target("at most 0.1 bit on average", 0.1, _bits), _Target("at most 0.01 bit on average", 0.01, _bits))
_NOISE = (
    *_INFORMATION,
    _Target("LIP, epsilon = 1, delta = 1e-5", 1e-5, lambda s, mechanism: notions.lip_delta(s.prior, mechanism, 1.0)),
    _Target("LDP, epsilon = 1, delta = 1e-5", 1e-5, lambda s, mechanism: mechanism.delta(1.0)),
)
_LEVELS = (
    *_INFORMATION,
    _Target("MBP, beliefs change by e at most", 1.0, lambda s, mechanism: notions.mbp_xi(s.weights, mechanism)),
)


def required_noise(secret: Secret, family: Family, sensitivity: float) -> tuple[Requirement, ...]:
    """The parameter for the usual targets: sigma, which leaks less as it grows, or the level, which leaks more.

    Less noise is followed by more as a step of post-processing, except where the size of a set depends on the level or
    scores are of any shape: there what is found meets its target, but a higher level might as well.
    """
    if family.parameter == "sigma":
        return tuple(_least_noise(target, secret, family, sensitivity) for target in _NOISE)
    if family.parameter == "level":
        return tuple(_highest_level(target, secret, family, sensitivity) for target in _LEVELS)
    return ()


def _meets(target: _Target, secret: Secret, family: Family, sensitivity: float) -> Callable[[float], Estimate | None]:
    def met(setting: float) -> Estimate | None:
        found = target.quantity(secret, family.build(setting, sensitivity, secret))
        return found if float(found.upper) <= target.bound else None

    return met


def _least_noise(target: _Target, secret: Secret, family: Family, sensitivity: float) -> Requirement:
    met = _meets(target, secret, family, sensitivity)
    high = 1e-3 * sensitivity
    best = met(high)
    for _ in range(_DECADES):
        if best is not None:
            break
        high *= 10.0
        best = met(high)
    if best is None:
        return Requirement(target.text, math.inf, "certified")
    return _halved(target, met, high / 10.0, high, best)


def _highest_level(target: _Target, secret: Secret, family: Family, sensitivity: float) -> Requirement:
    met = _meets(target, secret, family, sensitivity)
    low = 1e-3
    best = met(low)
    if best is None:
        return Requirement(target.text, 0.0, "certified")
    while low < _HIGHEST and (found := met(10.0 * low)) is not None:
        low, best = 10.0 * low, found
    return _halved(target, met, 10.0 * low, low, best) if low < _HIGHEST else Requirement(target.text, low, best.kind)


def _halved(
    target: _Target, met: Callable[[float], Estimate | None], bad: float, good: float, best: Estimate
) -> Requirement:
    """Bisection of the logarithm between a setting that fails and one that meets the target."""
    for _ in range(_STEPS):
        middle = math.sqrt(bad * good)
        found = met(middle)
        if found is None:
            bad = middle
        else:
            good, best = middle, found
    return Requirement(target.text, good, best.kind)
