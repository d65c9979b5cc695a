"""What a target needs: the least noise, or the highest level, whose upper bound meets it."""

# bounds: none - keeps a logarithm of 0 away

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import calibration, notions
from ..estimate import Estimate
from .families import Family
from .inputs.secrets import Secret
from .measures import information

__all__ = ["Requirement", "required_noise"]

_STEPS = 24
_STRIDE, _REACH = 1.0, 7.0  # in log level: from 0.001 to 1000
_CLOSE = 5e-4


@dataclass(frozen=True)
class Requirement:
    """A target, what meets it (level 0: nothing found, noise 0: none is needed), and what is claimed of the bound."""

    target: str
    setting: float
    kind: str


@dataclass(frozen=True)
class _Target:
    text: str
    bound: float
    quantity: Callable[[Secret, Any], Estimate]


_BIT = math.log(2.0)
_BITS = (("at most 0.1 bit on average", 0.1), ("at most 0.01 bit on average", 0.01))
_NOISE: tuple[tuple[str, Callable[[Secret, float], Estimate]], ...] = (
    (_BITS[0][0], lambda s, span: calibration.sigma_from_cd_lmip(_BITS[0][1], s.prior, unit="bits")),
    (_BITS[1][0], lambda s, span: calibration.sigma_from_cd_lmip(_BITS[1][1], s.prior, unit="bits")),
    ("LIP, epsilon = 1, delta = 1e-5", lambda s, span: calibration.sigma_from_lip(1.0, 1e-5, s.prior)),
    ("LDP, epsilon = 1, delta = 1e-5", lambda s, span: calibration.sigma_from_ldp(1.0, 1e-5, span)),
)
_LEVELS = (
    *(_Target(text, bits * _BIT, information) for text, bits in _BITS),
    _Target("MBP, xi = 1", 1.0, lambda s, mechanism: notions.mbp_xi(s.weights, mechanism)),
)


def required_noise(secret: Secret, family: Family, sensitivity: float) -> tuple[Requirement, ...]:
    """The parameter for the usual targets: sigma, which leaks less as it grows, or the level, which leaks more.

    Less noise is followed by more as a step of post-processing, except where the size of a set depends on the level or
    scores are of any shape: there what is found meets its target, but a higher level might as well.
    """
    if family.parameter == "sigma":
        found = ((text, noise(secret, sensitivity)) for text, noise in _NOISE)
        return tuple(Requirement(text, float(sigma.upper), sigma.kind) for text, sigma in found)
    if family.parameter == "level":
        return tuple(_highest_level(target, secret, family, sensitivity) for target in _LEVELS)
    return ()


def _highest_level(target: _Target, secret: Secret, family: Family, sensitivity: float) -> Requirement:
    """By interpolation of log(upper bound / target) over log level, halved where that does not shrink the bracket."""

    def over(place: float) -> tuple[float, str]:
        found = target.quantity(secret, family.build(math.exp(place), sensitivity, secret))
        return math.log(max(float(found.upper), 1e-300) / target.bound), found.kind

    low = high = 0.0
    below, kind = over(0.0)
    above = below
    while below > 0.0 and low > -_REACH:
        high, above, low = low, below, low - _STRIDE
        below, kind = over(low)
    while above <= 0.0 and high < _REACH:
        low, below, high = high, above, high + _STRIDE
        above, new = over(high)
        kind = kind if above > 0.0 else new
    if below > 0.0 or above <= 0.0:
        return Requirement(target.text, 0.0 if below > 0.0 else math.exp(high), "certified" if below > 0.0 else kind)
    for step in range(_STEPS):
        width = high - low
        if width < _CLOSE:
            break
        inner = low + width * below / (below - above) - 0.3 * _CLOSE
        middle = 0.5 * (low + high) if step % 3 == 2 else min(max(inner, low + 0.1 * _CLOSE), high - 0.1 * _CLOSE)
        value, said = over(middle)
        if value <= 0.0:
            low, below, kind = middle, value, said
            if value > -_CLOSE:
                break
        else:
            high, above = middle, value
    return Requirement(target.text, math.exp(low), kind)
