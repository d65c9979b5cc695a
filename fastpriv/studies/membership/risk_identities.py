"""Identities and bounds of the risks of releases: composition, covariance, attackers with another prior.

Notation of ``risks``: b the membership, x = (r_1, ..., r_T) releases that are independent given b, H(b | x) the joint
risk, TC the total correlation. As H(x) and H(x | b) are sums over releases less TC(x) and TC(x | b),

    H(b | x) = sum_i H(b | r_i) - (T - 1) H(b) + TC(x) - TC(x | b),   TC(x | b) = 0.

b with noise that is uniform on [-1/2, 1/2]^K has the differential entropy H(b | x), and a normal distribution of the
same covariance has no less:

    H(b | x) <= E_x 1/2 log det(2 pi e (Cov(b | x) + I / 12)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate, Information, Result, exact
from ...base.monotone import in_unit
from ...base.numerics import FloatArray, next_above
from ...base.random_streams import RNGLike
from .likelihood_terms import releases_of
from .member_posteriors import membership_posterior
from .posterior_enumeration import MAX_PEOPLE
from .priors import prior_of
from .releases import CombinedReleases, FrequencyRelease
from .risks import mean_over_releases, statistical

__all__ = ["JointRiskComposition", "covariance_bound", "joint_risk_composition", "subjective_risk"]

_SAMPLES = 4096  # releases that are drawn by default, as of ``bgp_risk``


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class JointRiskComposition(Result):
    """The joint risk of several releases, and the terms that it is made of; all in nats.

    Parameters
    ----------
    joint : Estimate
        H(b | x), from posteriors given all releases.
    separate : Estimate, shape (T,)
        H(b | r_i) of each release alone; ``joint`` is at most the least of them.
    prior_entropy : Estimate
        H(b).
    total_correlation : Estimate
        TC(x), from the evidence of all releases and of each.
    total_correlation_given_membership : Estimate
        TC(x | b), which is 0 for releases that are independent given b.
    residual : Estimate
        ``joint`` less the sum of the other terms, over the same draws: its interval should contain 0.

    Examples
    --------
    >>> from fastpriv.membership import CombinedReleases, FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
    >>> from fastpriv.membership import joint_risk_composition
    >>> one = FrequencyRelease(Panel([[1], [0], [1]]), FixedSizeMembership(1), LaplaceNoise(0.5))
    >>> found = joint_risk_composition(CombinedReleases([one, one]), samples=64, rng=1)
    >>> found.total_correlation_given_membership.value, found.separate.shape
    (0.0, (2,))
    """

    joint: Estimate
    separate: Estimate
    prior_entropy: Estimate
    total_correlation: Estimate
    total_correlation_given_membership: Estimate
    residual: Estimate


def joint_risk_composition(
    model: CombinedReleases, *, samples: int = _SAMPLES, confidence: float = 0.95, rng: RNGLike = None
) -> JointRiskComposition:
    """The joint risk of several releases as the sum of those of each, the prior's entropy and total correlations.

    Parameters
    ----------
    model : CombinedReleases
        At least two releases of the same at most 24 people.
    samples : int, default 4096
        Releases that are drawn, at least 64.
    confidence : float, default 0.95
        Level of each interval by itself.
    rng : int, Generator or None
        Source of random numbers.

    Returns
    -------
    JointRiskComposition

    Raises
    ------
    DomainError
        For a single release, more people, a generator without a likelihood, or keywords out of range.

    Notes
    -----
    **Accuracy** ``statistical``; ``tests/membership/test_risk_identities.py`` compares with certified risks.

    Source: chain rule of entropies; theorem 5 of Zhang et al. 2024 leaves terms out.

    Examples
    --------
    >>> from fastpriv.membership import CombinedReleases, FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel
    >>> from fastpriv.membership import joint_risk_composition
    >>> one = FrequencyRelease(Panel([[1], [0], [1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    >>> found = joint_risk_composition(CombinedReleases([one, one]), samples=64, rng=1)
    >>> bool(found.residual.lower <= 0.0 <= found.residual.upper)
    True
    """
    validate.instance("model", model, CombinedReleases)
    parts = _enumerable(model)
    prior = model.prior.entropy(model.n_people)
    known = (len(parts) - 1) * float(prior.value)

    def terms(released: Any) -> FloatArray:
        every = [membership_posterior(model, released)]
        every += [membership_posterior(part, one) for part, one in zip(parts, released, strict=True)]
        entropies = np.stack([_number(one.entropy) for one in every], axis=1)
        evidences = np.stack([_number(one.log_evidence) for one in every], axis=1)
        correlation = evidences[:, 0] - evidences[:, 1:].sum(axis=1)
        residual = entropies[:, 0] - entropies[:, 1:].sum(axis=1) + known - correlation
        return np.concatenate([entropies, correlation[:, None], residual[:, None]], axis=1)

    found = mean_over_releases(model, terms, samples, confidence, rng, low=-math.inf, high=math.inf)
    count = len(parts) + 1
    # 0 <= H(b | ..) <= H(b); TC(x) = sum I(b; r_i) - I(b; x), of which I(b; x) is at least each term of the sum
    entropy = float(prior.upper)
    low = np.array([0.0] * (count + 1) + [-len(parts) * entropy])
    high = np.array([entropy] * count + [(len(parts) - 1) * entropy, len(parts) * entropy])
    clipped = [np.clip(x, low, next_above(high)) for x in found]
    parts_of = [tuple(x[i] for x in clipped) for i in (0, slice(1, count), count, count + 1)]
    joint, separate, correlation, residual = (statistical(one, "nats", confidence, samples) for one in parts_of)
    none = exact(0.0, 0.0, unit="nats", method="independent given the membership")
    return JointRiskComposition(joint, separate, prior, correlation, none, residual)


@in_unit
def covariance_bound(
    model: FrequencyRelease | CombinedReleases, *, samples: int = _SAMPLES, confidence: float = 0.95,
    rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """An upper bound of the joint risk from covariances: E 1/2 log det(2 pi e (Cov(b | r) + I / 12)).

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        Of at most 24 people.
    samples, confidence, rng, unit
        As ``bgp_risk``.

    Returns
    -------
    Estimate
        ``statistical``: covariances are exact, releases are drawn.

    Raises
    ------
    DomainError
        For more people, a generator without a likelihood, or keywords out of range.

    Notes
    -----
    **Accuracy** as ``joint_risk_composition``. It exceeds the joint risk by 0.18 nats a person where nothing is hidden.

    Source: Cover and Thomas 2006, theorems 8.6.5 and 9.6.1 and problem 8.7. I / 12 is needed.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel, bgp_risk
    >>> from fastpriv.membership import covariance_bound
    >>> model = FrequencyRelease(Panel([[1], [0], [1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    >>> bool(covariance_bound(model, samples=64, rng=1).lower > bgp_risk(model, kind="joint").upper)
    True
    """
    _enumerable(model)
    people = model.n_people

    def bound(released: Any) -> FloatArray:
        covariance = np.asarray(membership_posterior(model, released).covariance().value)
        _, logs = np.linalg.slogdet(covariance + np.eye(people) / 12.0)
        return np.asarray(0.5 * (people * math.log(2 * math.pi * math.e) + logs))[:, None]

    found = mean_over_releases(model, bound, samples, confidence, rng, high=math.inf)
    return statistical(tuple(x[0] for x in found), "nats", confidence, samples)


@in_unit
def subjective_risk(
    model: FrequencyRelease | CombinedReleases, prior: Any, *, samples: int = _SAMPLES, confidence: float = 0.95,
    rng: RNGLike = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """The cross-entropy loss of an attacker who takes the Bayes rule with another prior: at least the marginal risk.

    Parameters
    ----------
    model : FrequencyRelease or CombinedReleases
        What is true, of at most 24 people.
    prior : BernoulliMembership or FixedSizeMembership
        What the attacker believes.
    samples, confidence, rng, unit
        As ``bgp_risk``.

    Returns
    -------
    Estimate
        -E sum_k [b_k log h_k + (1 - b_k) log(1 - h_k)], h_k the attacker's posterior; ``statistical``. Infinite where
        the attacker excludes what may be.

    Raises
    ------
    DomainError
        For what is no prior, more people, a generator without a likelihood, keywords out of range, and without noise
        for releases that the attacker thinks impossible.

    Notes
    -----
    **Accuracy** as ``joint_risk_composition``.

    Source: Zhang et al. 2024, proposition 6: a static subjective prior never lowers the loss.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership, FrequencyRelease, GaussianNoise, Panel, bgp_risk
    >>> from fastpriv.membership import subjective_risk
    >>> model = FrequencyRelease(Panel([[1], [0], [1]]), BernoulliMembership(0.5), GaussianNoise(0.5))
    >>> bool(subjective_risk(model, BernoulliMembership(0.1), samples=64, rng=1).lower > bgp_risk(model).upper)
    True
    """
    parts = _enumerable(model)
    believed = prior_of("prior", prior)
    others = [FrequencyRelease(part.panel, believed, part.noise, clip=part.clip) for part in parts]
    other = others[0] if isinstance(model, FrequencyRelease) else CombinedReleases(others)

    def losses(released: Any) -> FloatArray:
        pi = np.asarray(membership_posterior(model, released).probabilities.value)
        odds = np.asarray(membership_posterior(other, released).log_odds.value)
        with np.errstate(invalid="ignore"):
            terms = np.where(pi > 0, pi * np.logaddexp(0.0, -odds), 0.0)
            terms = terms + np.where(pi < 1, (1 - pi) * np.logaddexp(0.0, odds), 0.0)
        return np.asarray(terms.sum(axis=1))[:, None]

    found = mean_over_releases(model, losses, samples, confidence, rng, high=math.inf)
    return statistical(tuple(x[0] for x in found), "nats", confidence, samples)


def _number(one: Any) -> FloatArray:
    return np.asarray(one.value)


def _enumerable(model: Any) -> tuple[FrequencyRelease, ...]:
    """The releases of a model whose posteriors can be enumerated."""
    parts = releases_of(model)
    if parts[0].n_people > MAX_PEOPLE:
        raise DomainError(
            f"model must be of at most {MAX_PEOPLE} people for posteriors of drawn releases; got {parts[0].n_people}. "
            "Select fewer people."
        )
    return parts
