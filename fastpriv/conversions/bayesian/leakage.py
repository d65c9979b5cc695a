"""Leakage measured by guessing: maximal leakage, min-entropy leakage, Bayes vulnerability, from LDP and MBP.

Notation: the Bayes vulnerability of a prior is its largest probability pi_max; after the release it is
V = sum over w of max_d pi_d Q[d, w]; min-entropy leakage is ln(V / pi_max); maximal leakage is
ln sum over w of max_d Q[d, w], the largest min-entropy leakage over priors, attained by the uniform one.

Proof: the other rows of a column are at least e^-epsilon of its largest cell, so that
max_d Q[d, w] (1 + (n - 1) e^-epsilon) <= sum_d Q[d, w]; summed over w, n = inputs. Randomised response on n values
attains it. For another prior the largest posterior is at most pi_max / (pi_max + (1 - pi_max) e^-epsilon).
MBP: with r = Q / q in [e^-xi, e^xi] and of mean 1, no r is above (1 - (1 - pi_min) e^-xi) / pi_min either, and maximal
leakage is ln E_q max_d r_d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._estimates import monotone
from ...estimate import Estimate, Information, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded, information
from ..registry import documented

__all__ = [
    "maximal_leakage_from_ldp", "maximal_leakage_from_mbp", "min_entropy_leakage_from_ldp", "vulnerability_from_ldp",
]  # fmt: skip

FloatArray = NDArray[np.float64]


@documented
@monotone(rising="epsilon inputs")
def maximal_leakage_from_ldp(
    epsilon: NumberLike, inputs: NumberLike = np.inf, *, unit: Information = "nats"
) -> Estimate:
    """Largest maximal leakage of an epsilon-LDP channel: ln(n e^epsilon / (n - 1 + e^epsilon)), n = ``inputs``.

    It is epsilon for an unlimited number of inputs; randomised response on n values attains it.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.maximal_leakage_from_ldp(1.0, [2, 10, float("inf")]).value
    array([0.37988549, 0.84143492, 1.        ])
    """
    epsilon, inputs = validated(epsilon=epsilon, inputs=inputs)
    value = _formulas.retained(epsilon, 1.0 / inputs)
    settled = _settled(epsilon, 1.0 / inputs)
    return information(value, unit, "ln(n e^epsilon / (n - 1 + e^epsilon))", settled=settled)


@documented
@monotone(rising="xi", falling="pi_min")
def maximal_leakage_from_mbp(
    xi: NumberLike, pi_min: NumberLike = 0.0, *, unit: Information = "nats"
) -> Estimate:
    """Largest maximal leakage under xi-MBP: min(xi, ln(1 + (1 - e^-xi) (1 - pi_min) / pi_min)).

    Randomised response with uniform prior attains it for every whole 1 / pi_min; so no smaller number holds for
    ``pi_min`` = 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.maximal_leakage_from_mbp(1.0, [0.0, 0.1, 0.5]).value
    array([1.        , 1.        , 0.48988013])
    """
    xi, pi_min = validated(xi=xi, pi_min=pi_min)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        least = np.minimum(xi, np.log1p((1.0 - pi_min) / pi_min * -np.expm1(-xi)))
    value = np.where((pi_min == 0.0) | (xi == 0.0), xi, least)
    nats = _validate.choice("unit", unit, ("nats", "bits")) == "nats"
    settled = ((pi_min == 0.0) & nats) | (xi == 0.0)
    return information(value, unit, "min(xi, ln(1 + (1 - e^-xi) (1 - pi_min) / pi_min))", settled=settled)


@documented
@monotone(rising="epsilon", falling="pi_max")
def min_entropy_leakage_from_ldp(epsilon: NumberLike, pi_max: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Bound of the min-entropy leakage under a prior: -ln(pi_max + (1 - pi_max) e^-epsilon).

    Attained for uniform priors.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.min_entropy_leakage_from_ldp(1.0, 0.5).value
    0.37988549...
    """
    epsilon, pi_max = validated(epsilon=epsilon, pi_max=pi_max)
    value = _formulas.retained(epsilon, pi_max)
    return information(value, unit, "-ln(pi_max + (1 - pi_max) e^-epsilon)", settled=_settled(epsilon, pi_max))


@documented
@monotone(rising="epsilon pi_max")
def vulnerability_from_ldp(epsilon: NumberLike, pi_max: NumberLike) -> Estimate:
    """Bound of the chance that a best guess is right after the release: pi_max / (pi_max + (1 - pi_max) e^-epsilon).

    Attained for uniform priors.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.vulnerability_from_ldp(1.0, 0.5).value
    0.73105857...
    """
    epsilon, pi_max = validated(epsilon=epsilon, pi_max=pi_max)
    with np.errstate(under="ignore"):
        value = pi_max / (pi_max + (1.0 - pi_max) * np.exp(-epsilon))
    return bounded(value, "probability", "pi_max / (pi_max + (1 - pi_max) e^-epsilon)", ceiling=1.0)


def _settled(epsilon: FloatArray, share: FloatArray) -> NDArray[np.bool_]:
    return np.asarray((epsilon == 0.0) | (np.isinf(epsilon) & (share == 0.0)) | (share == 1.0))
