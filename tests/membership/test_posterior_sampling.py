"""Gibbs sampling against enumeration, its intervals, and chains that do not mix."""

import pickle
import warnings

import numpy as np
import pytest

from fastpriv.base.errors import DomainError, SamplingWarning
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
    membership_posterior,
)

PEOPLE = 14


def panel(seed=0, attributes=24):
    return Panel(np.random.default_rng(seed).integers(0, 2, (PEOPLE, attributes)))


PRIORS = [BernoulliMembership(0.4), BernoulliMembership(np.linspace(0.1, 0.9, PEOPLE)), FixedSizeMembership(5)]
NOISES = [
    GaussianNoise(0.25), GaussianNoise(0.6 / np.arange(1, PEOPLE + 1) ** 0.5), LaplaceNoise(0.3), LInfinityNoise(0.05),
]


@pytest.mark.few(5)
@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
@pytest.mark.parametrize("seed", [1, 2])
def test_within_a_hundredth_of_enumeration(prior, noise, seed):
    model = FrequencyRelease(panel(), prior, noise)
    released = model.simulate(1, rng=seed).released[0]
    truth = membership_posterior(model, released)
    # exchanges are counted, not averaged over what they might do, and take more sweeps
    sweeps = 64_000 if isinstance(prior, FixedSizeMembership) else 16_000
    found = membership_posterior(model, released, method="gibbs", sweeps=sweeps, rng=seed)
    assert found.mixed
    assert np.all(found.r_hat < 1.05)
    error = np.abs(found.probabilities.value - truth.probabilities.value)
    assert np.max(error) <= 0.01, (error, found.effective_samples)
    assert np.array_equal(found.mode, truth.mode)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GaussianNoise(0.3), LaplaceNoise(0.3)], ids=repr)
@pytest.mark.parametrize("prior", PRIORS[1:], ids=repr)
def test_clipped_and_combined(prior, noise):
    model = CombinedReleases([
        FrequencyRelease(panel(), prior, noise, clip=True), FrequencyRelease(panel(5, 7), prior, GaussianNoise(0.5)),
    ])
    released = [one[0] for one in model.simulate(1, rng=3).released]
    assert np.any((released[0] == 0) | (released[0] == 1))
    truth = membership_posterior(model, released)
    found = membership_posterior(model, released, method="gibbs", sweeps=64_000, rng=3)
    assert found.mixed
    assert np.max(np.abs(found.probabilities.value - truth.probabilities.value)) <= 0.01


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say():
    model = FrequencyRelease(panel(), BernoulliMembership(0.4), GaussianNoise(0.25))
    released = model.simulate(40, rng=4).released
    truth = membership_posterior(model, released).probabilities.value
    found = membership_posterior(model, released, method="gibbs", sweeps=2000, rng=4, n_jobs=2)
    held = (found.probabilities.lower <= truth) & (truth <= found.probabilities.upper)
    assert found.probabilities.kind == "statistical"
    assert found.probabilities.confidence == 0.95
    assert np.mean(held) >= 0.92, np.mean(held)
    assert np.median(found.probabilities.width) < 0.05
    assert np.all((found.log_odds.lower <= found.log_odds.value) & (found.log_odds.value <= found.log_odds.upper))


def test_chains_that_do_not_mix_under_l_infinity_noise_say_so():
    """Any flip moves the largest distance: chains stay where they started, and agree by chance alone."""
    unmixed = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = FrequencyRelease(
            Panel(rng.integers(0, 2, (20, 40))), BernoulliMembership(0.5), LInfinityNoise(0.0003)
        )
        released = model.simulate(1, rng=seed).released[0]
        truth = membership_posterior(model, released).probabilities.value
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = membership_posterior(model, released, method="gibbs", sweeps=1000, rng=seed)
        error = np.max(np.abs(found.probabilities.value - truth))
        if found.mixed:
            assert not caught
            assert error < 0.05, (seed, error)
            continue
        unmixed += 1
        assert caught[0].category is SamplingWarning
        assert "the chains did not mix for 1 of 1 releases: R-hat reaches" in str(caught[0].message)
        assert np.all((found.probabilities.lower - 0.01 <= truth) & (truth <= found.probabilities.upper + 0.01)), seed
    assert unmixed >= 4, unmixed


@pytest.mark.slow
def test_tempering_reaches_modes_that_flips_do_not():
    """Two groups of people with opposite attributes: what one says, the other says too."""
    rng = np.random.default_rng(0)
    half = rng.integers(0, 2, (5, 40))
    model = FrequencyRelease(Panel(np.vstack([half, half])), FixedSizeMembership(3), GaussianNoise(0.02))
    released = model.simulate(1, rng=1).released[0]
    truth = membership_posterior(model, released).probabilities.value
    found = membership_posterior(model, released, method="gibbs", sweeps=20_000, temperatures=10, rng=2)
    assert found.mixed
    assert np.max(np.abs(found.probabilities.value - truth)) <= 0.02


def test_chains_mix_with_large_noise_beyond_enumeration():
    """Noise that says nothing: the posterior is the prior."""
    q = np.linspace(0.05, 0.95, 60)
    rng = np.random.default_rng(5)
    model = FrequencyRelease(Panel(rng.integers(0, 2, (60, 30))), BernoulliMembership(q), GaussianNoise(1e4))
    released = model.simulate(2, rng=1).released
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = membership_posterior(model, released, rng=2)
    assert found.mixed.all()
    assert found.entropy is None
    assert found.log_evidence is None
    assert np.max(np.abs(found.probabilities.value - q)) < 1e-4
    assert found.cost == {"sweeps": 1984, "chains": 4}


def test_everybody_and_the_only_member():
    everybody = FrequencyRelease(panel(), FixedSizeMembership(PEOPLE), GaussianNoise(0.3))
    found = membership_posterior(everybody, np.full(24, 0.5), method="gibbs", rng=1)
    assert found.mixed
    assert np.all(found.probabilities.value > 0.999)
    assert np.all(found.probabilities.upper == 1.0)
    rare = FrequencyRelease(panel(), BernoulliMembership(1e-9), GaussianNoise(0.2))
    truth = membership_posterior(rare, np.full(24, 0.5))
    found = membership_posterior(rare, np.full(24, 0.5), method="gibbs", rng=1, sweeps=20_000)  # by exchanges
    assert found.mixed
    assert np.max(np.abs(found.probabilities.value - truth.probabilities.value)) <= 0.03


def test_same_seed_same_bits_for_any_number_of_threads():
    model = FrequencyRelease(panel(), BernoulliMembership(0.4), LaplaceNoise(0.3))
    released = model.simulate(3, rng=1).released
    one, many = (
        membership_posterior(model, released, method="gibbs", sweeps=320, rng=7, n_jobs=n, temperatures=2)
        for n in (1, 4)
    )
    assert one == many
    other = membership_posterior(model, released, method="gibbs", sweeps=320, rng=8, temperatures=2)
    assert one != other


def test_an_interruption_keeps_what_was_sampled():
    model = FrequencyRelease(panel(), BernoulliMembership(0.4), GaussianNoise(0.3))
    released = model.simulate(1, rng=1).released[0]

    def stop(done, total):
        if done == total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="interrupted while sampling") as caught:
        membership_posterior(model, released, method="gibbs", sweeps=640, rng=7, progress=stop)
    best = caught.value.best
    assert best.cost["sweeps"] == 240
    whole = membership_posterior(model, released, method="gibbs", sweeps=640, rng=7)
    assert np.max(np.abs(best.probabilities.value - whole.probabilities.value)) < 0.25
    assert pickle.loads(pickle.dumps(whole)) == whole


def test_arguments():
    model = FrequencyRelease(panel(), BernoulliMembership(0.4), NoNoise())
    with pytest.raises(DomainError, match="model must have noise for Gibbs sampling"):
        membership_posterior(model, np.full(24, 0.5), method="gibbs")
