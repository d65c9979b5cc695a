"""The joint risk by the integral of the mean squared error against certified risks and enumeration."""

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.studies.membership import (
    BernoulliMembership,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    Panel,
    bgp_risk,
    joint_risk_from_mmse,
    membership_posterior,
)


@pytest.mark.few(1)
@pytest.mark.parametrize("prior", [BernoulliMembership(0.3), FixedSizeMembership(2)])
@pytest.mark.parametrize("sigma", [0.1, 1.0])
def test_one_attribute(prior, sigma):
    model = FrequencyRelease(Panel([[1], [0], [1], [0], [0]]), prior, GaussianNoise(sigma))
    found = joint_risk_from_mmse(model, samples=256, sweeps=500, confidence=0.999, rng=1)
    known = bgp_risk(model, kind="joint").value
    assert found.lower <= known <= found.upper
    assert found.width <= 1.2
    assert found.cost["samples"] == 256


@pytest.mark.few(1)
@pytest.mark.parametrize("prior", [BernoulliMembership(0.5), FixedSizeMembership(5)])
@pytest.mark.slow
def test_twelve_people(prior):
    """Enumeration of drawn releases, with intervals much narrower."""
    bits = np.random.default_rng(3).integers(0, 2, (12, 20))
    model = FrequencyRelease(Panel(bits), prior, GaussianNoise(0.25))
    entropies = membership_posterior(model, model.simulate(2000, rng=2).released).entropy.value
    known, error = entropies.mean(), entropies.std() / np.sqrt(2000)
    found = joint_risk_from_mmse(model, samples=128, sweeps=400, confidence=0.999, rng=3)
    assert error < 0.05
    assert found.lower <= known + 3 * error
    assert known - 3 * error <= found.upper
    assert found.width < 2.5
    assert 0.2 * prior.entropy(12).value < found.value < 0.98 * prior.entropy(12).value


def test_releases_that_say_nothing():
    model = FrequencyRelease(Panel(np.ones((6, 2), dtype=int)), BernoulliMembership(0.5), GaussianNoise(0.1))
    found = joint_risk_from_mmse(model, samples=64, sweeps=64, rng=1, unit="bits")
    assert found.value == pytest.approx(np.log2(63), rel=1e-12)


@pytest.mark.slow
def test_same_seed_same_bits_for_any_number_of_threads():
    model = FrequencyRelease(Panel(np.eye(30, dtype=int)), FixedSizeMembership(4), GaussianNoise(0.1))
    one, two = (joint_risk_from_mmse(model, samples=64, sweeps=64, rng=5, n_jobs=n) for n in (1, 2))
    assert (one.value, one.lower, one.upper) == (two.value, two.lower, two.upper)
    assert 0.0 <= one.lower <= one.value <= one.upper <= model.prior.entropy(30).upper


def test_what_is_refused():
    panel, prior = Panel([[1], [0]]), BernoulliMembership(0.5)
    for noise, clip in ((LaplaceNoise(1.0), False), (GaussianNoise(1.0), True), (GaussianNoise([1.0, 2.0]), False)):
        with pytest.raises(DomainError, match="model must have Gaussian noise of one sigma without clipping; got"):
            joint_risk_from_mmse(FrequencyRelease(panel, prior, noise, clip=clip))
    model = FrequencyRelease(panel, prior, GaussianNoise(1.0))
    with pytest.raises(DomainError, match="samples must be an integer of at least 64"):
        joint_risk_from_mmse(model, samples=8)
    with pytest.raises(DomainError, match="chains must be an integer of at least 2"):
        joint_risk_from_mmse(model, chains=1)
    with pytest.raises(DomainError, match="sweeps must be an integer of at least 16"):
        joint_risk_from_mmse(model, sweeps=1)
    with pytest.raises(DomainError, match="confidence must be strictly between 0 and 1; got 1"):
        joint_risk_from_mmse(model, confidence=1.0)


@pytest.mark.slow
def test_the_best_linear_estimate_bounds_the_risk():
    """Where it is nearly best, as the control variate it leaves little variance, and its lower end is not random."""
    bits = np.random.default_rng(60).integers(0, 2, (60, 100))
    model = FrequencyRelease(Panel(bits), BernoulliMembership(0.5), GaussianNoise(0.1))
    found = [joint_risk_from_mmse(model, samples=64, sweeps=200, rng=seed) for seed in (1, 2)]
    f = model.frequencies(model.prior.draw(20_000, 60, np.random.default_rng(1)))
    linear = 0.5 * np.linalg.slogdet(np.eye(100) + np.cov(f.T) / 0.1**2)[1]
    floor = model.prior.entropy(60).value - linear
    for one in found:
        assert one.lower >= floor - 0.02  # the covariance is that of draws
        assert one.width <= 0.6
    assert max(one.lower for one in found) <= min(one.upper for one in found)


def test_an_interruption_says_what_it_is(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt("interrupted while sampling")

    monkeypatch.setattr("fastpriv.studies.membership.risk_mmse.sample_posterior", interrupted)
    model = FrequencyRelease(Panel([[1], [0], [1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    with pytest.raises(KeyboardInterrupt, match="interrupted while drawing releases") as caught:
        joint_risk_from_mmse(model, samples=64, rng=1)
    assert not getattr(caught.value, "__notes__", [])  # there is no resume=
