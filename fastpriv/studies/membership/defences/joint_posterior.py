"""The condition on the joint posterior that gives differential privacy.

Notation: J(b | r) the posterior of a membership b, theta(b) its prior. If exp(-epsilon / 2) <= J(b | r) / theta(b) <=
exp(epsilon / 2) for all b and r, then p(r | b) / p(r | b') = [J(b | r) / theta(b)] / [J(b' | r) / theta(b')] <=
exp(epsilon) for all b and b'. The same condition on each person's posterior gives nothing of the kind.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ....base import validate
from ....base.errors import DomainError
from ..noises import GeneratorNoise
from ..priors import all_memberships
from ..releases import FrequencyRelease

__all__ = ["joint_posterior_epsilon"]

_MAX_PEOPLE = 12  # 4,095 memberships at each release


def joint_posterior_epsilon(release: FrequencyRelease, released: ArrayLike) -> float:
    """The least epsilon with which the condition on the joint posterior holds at some releases.

    Parameters
    ----------
    release : FrequencyRelease
        Of at most 12 people, with noise whose likelihood is known.
    released : array_like, shape (..., m)
        Releases, such as simulated ones.

    Returns
    -------
    float
        2 max |log J(b | r) - log theta(b)| over these releases and all b, nats; inf where a membership is excluded.
        It can refute a claim and not prove one, as other releases may have more; ``FrequencyRelease.epsilon`` proves.

    Raises
    ------
    DomainError, ShapeError
        For a generator, whose likelihood is not known (without dither its epsilon is infinite), more people, and
        releases of another shape.

    Notes
    -----
    **Accuracy** Rounding of a few operations; ``tests/membership/test_joint_posterior.py`` compares with ratios of
    likelihoods and with the epsilon that is proved.

    Source: this package; Zhang et al. 2025, proposition 10, states it for marginal posteriors, for which it is false.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership, FrequencyRelease, LaplaceNoise, Panel
    >>> from fastpriv.membership import joint_posterior_epsilon
    >>> release = FrequencyRelease(Panel([[1], [0]]), FixedSizeMembership(1), LaplaceNoise(0.5))
    >>> round(joint_posterior_epsilon(release, [2.0]), 4), release.epsilon().value
    (2.8676, 2.0)
    """
    validate.instance("release", release, FrequencyRelease)
    if isinstance(release.noise, GeneratorNoise):
        without = "" if release.noise.dither is not None else ", and without dither its epsilon is infinite"
        raise DomainError(
            f"release must have noise whose likelihood is known; got that of a generator{without}. Give it a dither, "
            "and ask release.epsilon()."
        )
    people = release.n_people
    if people > _MAX_PEOPLE:
        raise DomainError(
            f"release must be of at most {_MAX_PEOPLE} people for a joint posterior; got {people}. Select some of them."
        )
    r = release.checked_release(released).reshape(-1, 1, release.n_attributes)
    b, prior = all_memberships(release.prior, people)
    worst = 0.0
    for row in r:
        logs = release.log_likelihood(row, b)
        evidence = np.logaddexp.reduce(logs + prior)
        if evidence == -np.inf:
            raise DomainError(
                "released must be possible; got a release that no membership can have made. Pass what simulate gives."
            )
        worst = max(worst, 2.0 * float(np.max(np.abs(logs - evidence))))
    return worst
