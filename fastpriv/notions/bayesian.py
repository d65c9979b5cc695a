"""Bayesian privacy: how far beliefs about the secret move, at most (MBP) and in the mean (ABP).

Notation: X is the secret with prior pi on points x, M the mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..distributions import Pmf
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from . import gaussian

__all__ = ["AverageBayesianPrivacy", "abp", "mbp_xi"]


def mbp_xi(prior: Pmf, mechanism: GaussianMechanism) -> Estimate:
    """Maximum Bayesian privacy: sup over x and releases of |log posterior(x) / prior(x)|, in nats.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Checked only: the answer is the same for every sigma.

    Returns
    -------
    Estimate
        0 for one point; infinity otherwise, since a far release of normal noise rules every inner point out.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** exact; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.3.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> notions.mbp_xi(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(3.0)).value
    inf
    """
    return gaussian.mbp_xi(prior, mechanism)


@dataclass(frozen=True, slots=True)
class AverageBayesianPrivacy:
    """Average Bayesian privacy for every true value, its maximum over them, and its mean under the prior.

    Parameters
    ----------
    per_value : Estimate
        One entry a point of the prior, in increasing order of the points; between 0 and sqrt(log 2).
    maximum : Estimate
        The largest of them.
    mean : Estimate
        Their mean, weighted by the prior.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.per_value.shape, bool(shift.mean.value <= shift.maximum.value)
    ((2,), True)
    """

    per_value: Estimate
    maximum: Estimate
    mean: Estimate

def abp(prior: Pmf, mechanism: GaussianMechanism) -> AverageBayesianPrivacy:
    """Average Bayesian privacy: root of JS(expected posterior || prior), the release drawn at the true value.

    Parameters
    ----------
    prior : Pmf
        The attacker's prior, shape (n,).
    mechanism : GaussianMechanism
        Its sigma is used.

    Returns
    -------
    AverageBayesianPrivacy
        ``per_value`` of shape (n,) in the order of ``prior.values``, ``maximum`` and prior ``mean``; each between 0
        and sqrt(log 2) = 0.8326.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    If the release were drawn from P_M instead, the expected posterior would be the prior and ABP would vanish.

    **Accuracy** as ``fastpriv.beliefs.gaussian.belief_shift``; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, definition IV.1.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.maximum.value
    0.20434...
    """
    shift = gaussian.abp_per_value(prior, mechanism)
    parts: list[Estimate] = []
    for summary in (np.max, lambda column: np.dot(prior.probabilities, column)):
        value, lower, upper = (float(summary(column)) for column in (shift.value, shift.lower, shift.upper))
        bounds = min(lower, value), max(upper, value)
        parts.append(Estimate(value, *bounds, kind=shift.kind, unit="1", method=shift.method, cost=shift.cost))
    return AverageBayesianPrivacy(shift, *parts)
