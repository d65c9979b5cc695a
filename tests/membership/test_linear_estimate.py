"""The linear estimate of least mean square error against moments summed over all memberships."""

import numpy as np
import pytest

from fastpriv.studies.membership import (
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    LInfinityNoise,
    NoNoise,
    Panel,
)
from fastpriv.studies.membership.linear_estimate import linear_estimates

PEOPLE = 7
MEMBERS = (np.arange(1, 2**PEOPLE)[:, None] >> np.arange(PEOPLE)) & 1 == 1
PRIORS = [BernoulliMembership(0.3), BernoulliMembership([0.1, 0.5, 0.5, 0.9, 0.3, 0.01, 0.999]), FixedSizeMembership(3)]
SCALES = 0.5 / np.arange(1, PEOPLE + 1)


def by_moments(models, released):
    """E b + Cov(b, r) Cov(r)^-1 (r - E r), all moments by sums over memberships."""
    weights = np.exp(models[0].prior.log_probability(MEMBERS))
    sizes = MEMBERS.sum(axis=1)
    signals = np.hstack([model.frequencies(MEMBERS) for model in models])
    noise = []
    for model in models:
        m, scale = model.n_attributes, model.noise.scale_of(sizes)
        unit = {GaussianNoise: 1.0, LaplaceNoise: 2.0, LInfinityNoise: (m + 1) * (m + 2) / 3}[type(model.noise)]
        noise += [unit * (weights @ scale**2)] * m
    mean_b, mean_r = weights @ MEMBERS, weights @ signals
    cross = (MEMBERS - mean_b).T @ (weights[:, None] * (signals - mean_r))
    spread = (signals - mean_r).T @ (weights[:, None] * (signals - mean_r)) + np.diag(noise)
    return mean_b + (np.hstack(released) - mean_r) @ np.linalg.solve(spread, cross.T)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("noise", [*map(GaussianNoise, (0.2, SCALES)), LaplaceNoise(SCALES), LInfinityNoise(0.1)])
def test_against_moments(prior, noise):
    rng = np.random.default_rng(1)
    first = FrequencyRelease(Panel(rng.integers(0, 2, (PEOPLE, 9))), prior, noise)
    second = FrequencyRelease(Panel(rng.integers(0, 2, (PEOPLE, 4))), prior, LaplaceNoise(0.3))
    released = first.simulate(5, rng=2).released
    assert np.allclose(linear_estimates([first], [released]), by_moments([first], [released]), rtol=0, atol=1e-10)
    both = [first, second]
    parts = CombinedReleases(both).simulate(5, rng=3).released
    assert np.allclose(linear_estimates(both, parts), by_moments(both, parts), rtol=0, atol=1e-10)


def test_without_noise_and_of_one_person():
    model = FrequencyRelease(Panel(np.eye(5, dtype=int)), FixedSizeMembership(2), NoNoise())
    simulated = model.simulate(20, rng=4)
    assert np.allclose(linear_estimates([model], [simulated.released]), simulated.membership, atol=1e-6)
    alone = FrequencyRelease(Panel([[1, 0]]), BernoulliMembership(0.3), GaussianNoise(0.1))
    assert np.allclose(linear_estimates([alone], [np.array([[0.3, 0.1]])]), 1.0)
