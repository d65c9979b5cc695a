"""The mechanisms that an assessment knows by name, each with one parameter, and the parameter that a target needs.

To add a mechanism, add its row to ``FAMILIES``; the notions must know what it builds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ... import calibration, mechanisms, notions
from ...base import validate
from ...base.estimate import Estimate
from ...base.inverse import bisect
from ...base.numerics import LOG_2
from ...channels import AnyChannel
from .quantities import mutual_information
from .secret import Domain, SecretDistribution

Parameter = Literal["sigma", "level", ""]
_SCORE_COPIES = 3  # copies of the matrix of scores in memory while an exponential mechanism is made
_RAPPOR_RESPONSE = {"p": 0.5, "q": 0.75}  # the instantaneous response of RAPPOR (Erlingsson et al. 2014, section 2)
_MAX_CHANNEL_TEXT = 90  # characters of a channel's repr that a table shows
_LOG_LIMIT = 7.0  # in log(level): the search brackets in factors of e, from 0.001 to 1000
_HALVINGS = 12  # of a factor of e: three digits of a level, as the table shows


@dataclass(frozen=True)
class MechanismFamily:
    """A family of mechanisms with one parameter.

    Attributes
    ----------
    name, noise : str
        What it is called, and what it does in words of its parameter.
    parameter : {"sigma", "level", ""}
        Standard deviation of noise; LDP epsilon between the values that are farthest apart; none.
    domain : {"numbers", "integers", "values"}
        What values it takes.
    build : callable
        (parameter, sensitivity, secret) to the mechanism.
    """

    name: str
    noise: str
    parameter: Parameter
    domain: Domain
    build: Callable[[float, float, SecretDistribution], Any]

    @property
    def has_sensitivity(self) -> bool:
        """Whether its noise is scaled by the largest distance of two values."""
        return self.domain != "values"


def family_of(mechanism: str | AnyChannel) -> MechanismFamily:
    """Return a family by its name, or the family that consists of one channel."""
    remedy = "Wrap rows of probabilities in fastpriv.Channel."
    validate.instance("mechanism", mechanism, (AnyChannel, str), "a name or a channel, or a sequence of these", remedy)
    if isinstance(mechanism, str):
        return FAMILIES[validate.choice("mechanism", mechanism, tuple(FAMILIES))]
    text = repr(mechanism).strip("<>")
    text = text if len(text) <= _MAX_CHANNEL_TEXT else text[: _MAX_CHANNEL_TEXT - 3] + "..."
    return MechanismFamily("channel", text, "", "values", lambda *_: mechanism)


def _exponential(level: float, secret: SecretDistribution) -> AnyChannel:
    """Scores are minus the distance of two numbers; of categories 1 for the true one, else 0: randomised response."""
    if secret.labels is not None and secret.integers is None:
        return mechanisms.RandomizedResponse(secret.inputs, 0.5 * level)
    validate.memory("data", _SCORE_COPIES * 8 * secret.inputs**2, "Pass bins, to release rounded values (--bins 256).")
    x = secret.prior.values if secret.integers is None else np.array(secret.integers, dtype=object)
    return mechanisms.ExponentialMechanism(-np.abs(x[:, None] - x).astype(np.float64), level)


def _of_values(name: str, noise: str, build: Callable[[float, SecretDistribution], Any]) -> MechanismFamily:
    return MechanismFamily(name, noise, "level", "values", lambda level, sensitivity, secret: build(level, secret))


def _of_integers(name: str, noise: str, build: Callable[[int, float], Any]) -> MechanismFamily:
    return MechanismFamily(name, noise, "level", "integers", lambda level, sensitivity, secret: build(
        secret.inputs, level * secret.step / sensitivity))


# The families of mechanisms that an assessment knows, by their names.
FAMILIES: Mapping[str, MechanismFamily] = {
    family.name: family
    for family in (
        MechanismFamily(
            "gaussian", "value + N(0, sigma^2)", "sigma", "numbers",
            lambda sigma, sensitivity, secret: mechanisms.GaussianMechanism(sigma, sensitivity),
        ),
        _of_values("rr", "randomised response: the value, or any other, e^level times less likely each",
                   lambda level, secret: mechanisms.RandomizedResponse(secret.inputs, level)),
        _of_values("oue", "optimised unary encoding: one bit a value, the true one kept with probability 1/2",
                   lambda level, secret: mechanisms.UnaryEncoding.optimized(secret.inputs, level)),
        _of_values("sue", "symmetric unary encoding: one bit a value, all flipped alike",
                   lambda level, secret: mechanisms.UnaryEncoding(secret.inputs, level)),
        _of_values("rappor", "one RAPPOR report (p = 1/2, q = 3/4) of permanent bits at the level",
                   lambda level, secret: mechanisms.UnaryEncoding.rappor(
                       secret.inputs, 2.0 * math.exp(-0.5 * level) / (1.0 + math.exp(-0.5 * level)),
                       **_RAPPOR_RESPONSE)),
        _of_values("subset", "subset selection: a set of values, e^level times as likely if it holds the true one",
                   lambda level, secret: mechanisms.SubsetSelection(secret.inputs, level)),
        _of_integers("geometric", "value + two-sided geometric noise, cut off at the ends",
                     lambda n, step: mechanisms.GeometricMechanism(n, step)),
        _of_integers("laplace-discrete", "value + discrete Laplace noise, any integer",
                     lambda n, step: mechanisms.DiscreteLaplace(n, 1.0 / step)),
        _of_values("exponential", "exponential mechanism: nearer values (of categories: the true one) score higher",
                   _exponential),
    )
}


@dataclass(frozen=True)
class Requirement:
    """The parameter that meets a target: the least noise (0: none is needed) or the highest level (0: none was found).

    Attributes
    ----------
    target : str
        The target, in words.
    setting : float
        The parameter whose upper bound of the leakage meets it.
    kind : str
        The kind of that bound.
    """

    target: str
    setting: float
    kind: str


# Targets of the report for mechanisms with a level: a quantity of secret and mechanism, and its bound in nats.
_LEVEL_TARGETS: Mapping[str, tuple[Callable[[SecretDistribution, Any], Estimate], float]] = {
    "at most 0.1 bit on average": (mutual_information, 0.1 * LOG_2),
    "at most 0.01 bit on average": (mutual_information, 0.01 * LOG_2),
    "MBP, xi = 1": (lambda secret, mechanism: notions.lip_epsilon(secret.input_probabilities, mechanism), 1.0),
}


def required_parameters(
    secret: SecretDistribution, family: MechanismFamily, sensitivity: float, central: bool = False
) -> tuple[Requirement, ...]:
    """Find the parameter for the usual targets: sigma, which leaks less as it grows, or the level, which leaks more.

    A release at a lower level is a release at a higher one, post-processed, except where the size of a set depends on
    the level or scores are of any shape: there the level that is found meets its target, but a higher one might too.
    ``central`` is for a statistic, whose level is its pure epsilon.
    """
    if central and family.parameter == "level":
        return (Requirement("DP, epsilon = 1, delta = 0", 1.0, "exact"),)
    if family.parameter == "sigma":
        sigmas = {} if central else {
            "at most 0.1 bit on average": calibration.sigma_from_cd_lmip(0.1, secret.prior, unit="bits"),
            "at most 0.01 bit on average": calibration.sigma_from_cd_lmip(0.01, secret.prior, unit="bits"),
            "LIP, epsilon = 1, delta = 1e-5": calibration.sigma_from_lip(1.0, 1e-5, secret.prior),
        }
        notion = "DP" if central else "LDP"
        sigmas[f"{notion}, epsilon = 1, delta = 1e-5"] = calibration.sigma_from_ldp(1.0, 1e-5, sensitivity)
        return tuple(Requirement(text, float(sigma.upper), sigma.kind) for text, sigma in sigmas.items())
    if family.parameter == "level":
        levels = ((text, _highest_level(*goal, secret, family, sensitivity)) for text, goal in _LEVEL_TARGETS.items())
        return tuple(Requirement(text, *level) for text, level in levels)
    return ()


def _highest_level(
    quantity: Callable[[SecretDistribution, Any], Estimate], bound: float, secret: SecretDistribution,
    family: MechanismFamily, sensitivity: float,
) -> tuple[float, str]:
    """Bracket the level where the upper bound of the quantity meets ``bound``, and halve in log(level).

    Return the level, 0 if there is none, and the kind of the bound there.
    """
    kinds: dict[float, str] = {}

    def misses(log_level: float) -> bool:
        estimate = quantity(secret, family.build(math.exp(log_level), sensitivity, secret))
        kinds[log_level] = estimate.kind
        return float(estimate.upper) > bound

    start, edge = misses(0.0), 0.0
    stride = -1.0 if start else 1.0
    while misses(edge + stride) == start:
        edge += stride
        if abs(edge) >= _LOG_LIMIT:
            return (0.0, "certified") if start else (math.exp(edge), kinds[edge])
    low, _ = bisect(misses, min(edge, edge + stride), max(edge, edge + stride), _HALVINGS)
    return math.exp(low), kinds[low]
