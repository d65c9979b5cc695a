"""The mechanisms that an assessment knows by name, each with one parameter.

To add one, add its row to ``FAMILIES``; the notions must know what it builds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from ..channels import (
    AnyChannel,
    DiscreteLaplace,
    ExponentialMechanism,
    GeometricMechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from ..errors import DomainError
from ..mechanisms.gaussian import GaussianMechanism
from .inputs.secrets import Secret

__all__ = ["FAMILIES", "Family", "family_of"]

_COPIES = 3  # of the matrix of scores while it is made
_REPORT = {"p": 0.5, "q": 0.75}  # the instantaneous response of RAPPOR


@dataclass(frozen=True)
class Family:
    """A family of mechanisms with one parameter.

    Attributes
    ----------
    name, noise : str
        What it is called, and what it does in words of its parameter.
    parameter : {"sigma", "level", ""}
        Standard deviation of noise; LDP epsilon between the values that are farthest apart; none.
    domain : {"numbers", "integers", "values"}
        What secrets it takes.
    build : callable
        (parameter, sensitivity, secret) to the mechanism.
    """

    name: str
    noise: str
    parameter: str
    domain: str
    build: Callable[[float, float, Secret], Any]

    @property
    def is_channel(self) -> bool:
        """Whether its releases are finitely many."""
        return self.name != "gaussian"

    @property
    def has_sensitivity(self) -> bool:
        """Whether its noise is scaled by the largest distance of two values."""
        return self.domain != "values"


def _exponential(level: float, secret: Secret) -> AnyChannel:
    """Scores are minus the distance of two numbers; of categories 1 for the true one, else 0: randomised response."""
    if secret.labels is not None and secret.integers is None:
        return RandomizedResponse(secret.inputs, 0.5 * level)
    _validate.memory("data", _COPIES * 8 * secret.inputs**2, "Pass bins, to release rounded values (--bins 256).")
    x = secret.prior.values if secret.integers is None else np.array(secret.integers, dtype=object)
    return ExponentialMechanism(-np.abs(x[:, None] - x).astype(np.float64), level)


def _level(name: str, noise: str, build: Callable[[float, Secret], Any]) -> Family:
    return Family(name, noise, "level", "values", lambda level, sensitivity, secret: build(level, secret))


def _steps(name: str, noise: str, build: Callable[[int, float], Any]) -> Family:
    def built(level: float, sensitivity: float, secret: Secret) -> Any:
        return build(secret.inputs, level * secret.step / sensitivity)

    return Family(name, noise, "level", "integers", built)


FAMILIES: Mapping[str, Family] = {
    row.name: row
    for row in (
        Family(
            "gaussian", "value + N(0, sigma^2)", "sigma", "numbers",
            lambda sigma, sensitivity, secret: GaussianMechanism(sigma, sensitivity),
        ),
        _level("rr", "randomised response: the value, or any other, e^level times less likely each",
               lambda level, secret: RandomizedResponse(secret.inputs, level)),
        _level("oue", "optimised unary encoding: one bit a value, the true one kept with probability 1/2",
               lambda level, secret: UnaryEncoding.optimized(secret.inputs, level)),
        _level("sue", "symmetric unary encoding: one bit a value, all flipped alike",
               lambda level, secret: UnaryEncoding(secret.inputs, level)),
        _level("rappor", "one RAPPOR report (p = 1/2, q = 3/4) of permanent bits at the level",
               lambda level, secret: UnaryEncoding.rappor(
                   secret.inputs, 2.0 * math.exp(-0.5 * level) / (1.0 + math.exp(-0.5 * level)), **_REPORT)),
        _level("subset", "subset selection: a set of values, e^level times as likely if it holds the true one",
               lambda level, secret: SubsetSelection(secret.inputs, level)),
        _steps("geometric", "value + two-sided geometric noise, cut off at the ends",
               lambda n, step: GeometricMechanism(n, step)),
        _steps("laplace-discrete", "value + discrete Laplace noise, any integer",
               lambda n, step: DiscreteLaplace(n, 1.0 / step)),
        _level("exponential", "exponential mechanism: nearer values (of categories: the true one) score higher",
               _exponential),
    )
}  # fmt: skip


def family_of(mechanism: str | AnyChannel) -> Family:
    """A family by its name, or that of one channel."""
    if not isinstance(mechanism, (AnyChannel, str)):
        raise DomainError(
            f"mechanism must be a name or one channel; got {_validate.shown(mechanism)}. Wrap rows of probabilities in "
            "fastpriv.Channel, and pass several mechanisms to fastpriv.sweep."
        )
    if isinstance(mechanism, str):
        return FAMILIES[_validate.choice("mechanism", mechanism, tuple(FAMILIES))]
    text = repr(mechanism).strip("<>")
    return Family("channel", text if len(text) <= 90 else text[:87] + "...", "", "values", lambda *_: mechanism)
