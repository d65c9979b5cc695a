"""Identities and bounds of the risks against certified risks, enumeration by hand and each other."""

import itertools

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.studies.membership import (
    BernoulliMembership,
    CombinedReleases,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    NoNoise,
    Panel,
    bgp_risk,
    covariance_bound,
    joint_risk_composition,
    subjective_risk,
)

COLUMN = Panel([[1], [0], [1], [0]])
PRIORS = [BernoulliMembership(0.3), FixedSizeMembership(2)]


@pytest.mark.few(1)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("clip", [False, True])
def test_composition_of_gaussian_releases(prior, clip):
    """Each term against the certified risk of it; pooled releases have weights 1 / sigma^2."""
    sigmas = (0.2, 0.4)
    ones = [FrequencyRelease(COLUMN, prior, GaussianNoise(s), clip=clip) for s in sigmas]
    found = joint_risk_composition(CombinedReleases(ones), samples=1024, confidence=0.999, rng=1)
    separate = [bgp_risk(one, kind="joint").value for one in ones]
    assert (found.separate.lower <= separate).all()
    assert (separate <= found.separate.upper).all()
    assert found.prior_entropy.value == prior.entropy(4).value
    assert found.residual.lower <= 0.0 <= found.residual.upper
    assert found.residual.width < 0.2
    assert found.joint.upper <= min(separate) + 1e-9 + found.joint.width
    assert found.total_correlation_given_membership.value == 0.0
    if not clip:
        sigma = 1 / np.sqrt(sum(s**-2 for s in sigmas))
        joint = bgp_risk(FrequencyRelease(COLUMN, prior, GaussianNoise(sigma)), kind="joint").value
        assert found.joint.lower <= joint <= found.joint.upper
        correlation = joint - sum(separate) + prior.entropy(4).value
        assert found.total_correlation.lower <= correlation <= found.total_correlation.upper
        assert found.total_correlation.lower > 0.01


def test_composition_without_noise():
    """A noisy release tells nothing more of what the frequencies leave open."""
    prior = BernoulliMembership(0.5)
    ones = [FrequencyRelease(COLUMN, prior, noise) for noise in (NoNoise(), LaplaceNoise(0.3), LaplaceNoise(0.3))]
    found = joint_risk_composition(CombinedReleases(ones), samples=512, confidence=0.999, rng=2)
    known = bgp_risk(ones[0], kind="joint").value
    assert found.joint.lower <= known <= found.joint.upper
    assert found.residual.lower <= 0.0 <= found.residual.upper


@pytest.mark.few(2)
@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("sigma", [1e-3, 0.1, 30.0])
def test_the_covariance_bound_is_one(prior, sigma):
    model = FrequencyRelease(COLUMN, prior, GaussianNoise(sigma))
    found = covariance_bound(model, samples=256, confidence=0.999, rng=3)
    assert found.lower >= bgp_risk(model, kind="joint").value
    bits = covariance_bound(model, samples=256, confidence=0.999, rng=3, unit="bits")
    assert bits.value == pytest.approx(found.value / np.log(2), rel=1e-14)


def test_the_covariance_bound_of_one_number():
    """Where the release says nothing it is the bound of the prior's covariance; without I / 12 it would be -inf."""
    prior = FixedSizeMembership(1)
    model = FrequencyRelease(Panel([[1], [1]]), prior, GaussianNoise(1.0))
    covariance = np.array([[0.25, -0.25], [-0.25, 0.25]])
    known = 0.5 * np.linalg.slogdet(2 * np.pi * np.e * (covariance + np.eye(2) / 12))[1]
    assert covariance_bound(model, samples=64, rng=1).value == pytest.approx(known, rel=1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("sigma", [0.1, 1.0])
@pytest.mark.slow
def test_subjective_priors(sigma):
    truth = BernoulliMembership(0.4)
    model = FrequencyRelease(COLUMN, truth, GaussianNoise(sigma))
    right = subjective_risk(model, truth, samples=512, confidence=0.999, rng=4)
    risk = bgp_risk(model).value
    assert right.lower <= risk <= right.upper
    losses = [subjective_risk(model, BernoulliMembership(q), samples=512, confidence=0.999, rng=4)
              for q in (0.4, 0.2, 0.05, 1e-3)]  # fmt: skip
    assert all(one.upper >= risk for one in losses)
    assert all(worse.value > one.value for one, worse in itertools.pairwise(losses))


def test_subjective_risk_where_nothing_is_released():
    """sum_k of the cross-entropy of the two marginals, exactly."""
    model = FrequencyRelease(Panel([[1], [1], [1]]), BernoulliMembership(0.4), GaussianNoise(1.0))
    p, h = BernoulliMembership(0.4).marginals(3), BernoulliMembership([0.1, 0.5, 0.9]).marginals(3)
    known = -(p * np.log(h) + (1 - p) * np.log1p(-h)).sum()
    found = subjective_risk(model, BernoulliMembership([0.1, 0.5, 0.9]), samples=64, rng=1)
    assert found.value == pytest.approx(known, rel=1e-12)


def test_an_attacker_who_excludes_the_truth_loses_without_bound():
    model = FrequencyRelease(Panel([[1], [0]]), FixedSizeMembership(1), GaussianNoise(1.0))
    assert subjective_risk(model, FixedSizeMembership(2), samples=64, rng=1).value == np.inf


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_more_releases_and_less_processing_never_raise_the_risk(seed):
    """Adding a release, and undoing clipping or rounding into fewer attributes, of random models."""
    random = np.random.default_rng(seed)
    column = random.permutation([1, 0, *random.integers(0, 2, 3)])
    prior = [BernoulliMembership(random.uniform(0.1, 0.9)), FixedSizeMembership(2)][seed % 2]
    kinds = [GaussianNoise, LaplaceNoise]
    noise = kinds[seed // 3](float(np.exp(random.uniform(-3, 1))))
    panel = Panel(column[:, None])
    one, clipped = (FrequencyRelease(panel, prior, noise, clip=clip) for clip in (False, True))
    more = CombinedReleases([one, FrequencyRelease(panel, prior, GaussianNoise(0.2))])
    for kind in ("joint", "marginal"):
        risk = bgp_risk(one, kind=kind)
        assert bgp_risk(clipped, kind=kind).upper >= risk.lower
        assert bgp_risk(more, kind=kind).lower <= risk.upper
        assert risk.lower <= (prior.entropy(5).value + 1e-12 if kind == "joint" else 5 * np.log(2))


def test_what_is_refused():
    prior = BernoulliMembership(0.5)
    model = FrequencyRelease(COLUMN, prior, GaussianNoise(0.5))
    many = FrequencyRelease(Panel(np.eye(25, dtype=int)), prior, GaussianNoise(0.5))
    with pytest.raises(DomainError, match="model must be"):
        joint_risk_composition(model)
    with pytest.raises(DomainError, match="model must be of at most 24 people for posteriors of drawn"):
        covariance_bound(many)
    with pytest.raises(DomainError, match="prior must be a prior of membership; got 0.5"):
        subjective_risk(model, 0.5)
    with pytest.raises(DomainError, match="samples must be an integer of at least 64"):
        covariance_bound(model, samples=8)
    with pytest.raises(DomainError, match="confidence must be strictly between 0 and 1; got 0"):
        subjective_risk(model, prior, confidence=0.0)


def test_bounds_are_what_always_holds_where_nothing_is_learnt():
    """All releases alike: the replicates do not differ, and the interval of their mean was [-inf, inf]."""
    one = FrequencyRelease(Panel([[1], [1], [1]]), FixedSizeMembership(1), GaussianNoise(0.5))
    for parts in (2,):
        found = joint_risk_composition(CombinedReleases([one] * parts), samples=64, rng=1)
        entropy = np.log(3.0)
        for risk in (found.joint, found.separate):
            assert (np.asarray(risk.lower) >= 0.0).all()
            assert (np.abs(np.asarray(risk.upper) - entropy) <= 1e-12).all()
            assert (np.asarray(risk.value) <= np.asarray(risk.upper)).all()
        assert 0.0 <= found.total_correlation.lower <= found.total_correlation.upper <= (parts - 1) * entropy + 1e-12
        assert abs(found.residual.lower) <= parts * entropy + 1e-12
