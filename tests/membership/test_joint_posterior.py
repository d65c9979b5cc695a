"""The condition on the joint posterior beside ratios of likelihoods and the epsilon that is proved."""

import numpy as np
import pytest

from fastpriv import DomainError, ShapeError
from fastpriv.studies.membership import (
    BernoulliMembership,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    NoNoise,
    Panel,
    joint_posterior_epsilon,
)

PANEL = Panel([[1, 0], [0, 1], [1, 1]])


@pytest.mark.parametrize("prior", [BernoulliMembership(0.3), FixedSizeMembership(2)])
@pytest.mark.parametrize("noise", [LaplaceNoise(0.5), GaussianNoise(0.3)])
def test_it_bounds_all_ratios_of_likelihoods(prior, noise):
    release = FrequencyRelease(PANEL, prior, noise)
    released = release.simulate(50, rng=1).released
    b = (np.arange(1, 8)[:, None] >> np.arange(3)) & 1 == 1
    b = b[prior.log_probability(b) > -np.inf]
    logs = release.log_likelihood(released[:, None, :], b[None])
    ratios = (logs.max(axis=1) - logs.min(axis=1)).max()
    found = joint_posterior_epsilon(release, released)
    assert ratios <= found * (1 + 1e-12)
    assert found <= 2 * ratios * (1 + 1e-12)
    assert found == max(joint_posterior_epsilon(release, one) for one in released)


def test_a_proved_epsilon_bounds_it():
    release = FrequencyRelease(PANEL, FixedSizeMembership(1), LaplaceNoise(2.0))  # all memberships are neighbours
    released = release.simulate(200, rng=1).released
    assert 0 < joint_posterior_epsilon(release, released) <= 2 * release.epsilon().upper


def test_without_noise_memberships_are_excluded():
    release = FrequencyRelease(PANEL, FixedSizeMembership(1), NoNoise())
    assert joint_posterior_epsilon(release, [1.0, 0.0]) == np.inf


RELEASE = FrequencyRelease(PANEL, FixedSizeMembership(1), NoNoise())
GENERATOR = GeneratorNoise(lambda b, nu: np.zeros((len(b), 2)), 1)
MISTAKES = [
    (lambda: joint_posterior_epsilon(FrequencyRelease(PANEL, FixedSizeMembership(1), GENERATOR), [0.0, 0.0]),
     DomainError, "release must have noise whose likelihood is known; got that of a generator, and without"),
    (lambda: joint_posterior_epsilon(FrequencyRelease(Panel(np.eye(13)), FixedSizeMembership(1)), np.zeros(13)),
     DomainError, "release must be of at most 12 people for a joint posterior; got 13"),
    (lambda: joint_posterior_epsilon(RELEASE, [0.3, 0.3]), DomainError, "released must be possible"),
    (lambda: joint_posterior_epsilon(RELEASE, [0.3]), ShapeError, "released must have one entry"),
    (lambda: joint_posterior_epsilon(PANEL, [0.3]), DomainError, "release must be a FrequencyRelease"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=[text for *_, text in MISTAKES])
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
