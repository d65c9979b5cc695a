"""The numbers that conversions take: name, range and meaning of each, said once; readable without NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["PARAMETERS", "Parameter"]

Check = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """The range of a number, in words and as a check, and what it means."""

    constraint: str
    valid: Check
    text: str
    information: bool = False  # whether the keyword ``unit`` of the conversion is its unit


def _not_negative(text: str) -> Parameter:
    return Parameter("at least 0", lambda x: x >= 0, text)


def _information(text: str) -> Parameter:
    return Parameter("at least 0", lambda x: x >= 0, text, True)


def _chance(text: str) -> Parameter:
    return Parameter("between 0 and 1", lambda x: (x >= 0) & (x <= 1), text)


PARAMETERS: dict[str, Parameter] = {
    "epsilon": _not_negative("Epsilon in nats; inf where nothing is promised."),
    "target_epsilon": _not_negative("Where on the curve of delta the answer is wanted, in nats."),
    "delta": _chance("Delta, a probability."),
    "xi": _not_negative("Largest |ln(posterior / prior)| over secrets and releases, in nats."),
    "xi_plus": _not_negative("Largest ln(posterior / prior), in nats."),
    "xi_minus": _not_negative("Largest -ln(posterior / prior), in nats."),
    "pi_min": Parameter(
        "between 0 and 1/2", lambda x: (x >= 0) & (x <= 0.5),
        "Smallest positive prior probability of a secret, of two or more; 0 stands for every prior. Up to 1/3 a "
        "smaller number is safe too.",
    ),
    "pi_max": Parameter(
        "above 0 and at most 1", lambda x: (x > 0) & (x <= 1), "Largest prior probability of a secret.",
    ),
    "prior_spread": _not_negative("Largest |ln(pi(d) / pi(d'))| over pairs of secrets; 0 for a uniform prior."),
    "belief_gap": _not_negative("Largest |ln(attacker's prior / true prior)| over secrets; 0 where they agree."),
    "inputs": Parameter(
        "a whole number of at least 2, or inf", lambda x: (x >= 2) & (x == x.round()),
        "How many secrets there are; inf for any number.",
    ),
    "beta": _chance("Probability that the release misses its target by more than alpha for one secret."),
    "relative_error": _chance("Largest relative error of an estimated frequency."),
    "frequency": Parameter(
        "above 0 and at most 1", lambda x: (x > 0) & (x <= 1), "The frequency that is estimated.",
    ),
    "trials": Parameter(
        "a whole number of at least 1", lambda x: (x >= 1) & (x == x.round()) & (x < math.inf),
        "Number of models that were trained independently; or of attacks, for the frequency given one model.",
    ),
    "attacks": Parameter(
        "a whole number of at least 1", lambda x: (x >= 1) & (x == x.round()) & (x < math.inf),
        "Number of attacks on every model.",
    ),
    "c1": Parameter(
        "between 0 and sqrt(ln 2)", lambda x: (x >= 0) & (x <= math.sqrt(math.log(2.0)) + 2e-16),
        "C1, the root of the Jensen-Shannon divergence of belief without protection and prior.",
    ),
    "c2": _not_negative("C2 = (e^(2 xi) - 1) / 2."),
    "total_variation": _chance("Total variation distance of the two laws."),
    "kl": _information("Kullback-Leibler divergence in ``unit``."),
    "mu": _information("Mutual information in ``unit``."),
    "leakage": _information("Maximal leakage in ``unit``."),
    "renyi": _not_negative("Renyi divergence at ``order``, in nats."),
    "order": Parameter("at least 1", lambda x: x >= 1, "Order of the Renyi divergence; 1 is Kullback-Leibler."),
    "orders": Parameter("at least 1", lambda x: x >= 1, "Orders, one-dimensional: the last axis of ``renyi``."),
    "rho": _not_negative("rho of zero-concentrated privacy: Renyi divergence is at most rho times the order."),
    "separation": _not_negative("Distance of two unit normal laws that are as hard to tell apart (the mu of mu-GDP)."),
    "type_one": _chance("Probability of a false alarm."),
    "type_two": _chance("Probability of a miss."),
    "group": Parameter(
        "a whole number of at least 1", lambda x: (x >= 1) & (x == x.round()) & (x < math.inf),
        "Number of records that change at once.",
    ),
    "atom": _chance("Prior probability of the least likely value; 0 for a law without atoms."),
}  # fmt: skip
