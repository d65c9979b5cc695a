"""Attackers by mixtures of seeds beside integrals in closed form, and both sides of the exact Bayes attacker."""

import math

import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError
from fastpriv.studies.membership import (
    BayesAttacker,
    BernoulliMembership,
    FixedSizeMembership,
    FrequencyRelease,
    GaussianNoise,
    GeneratorNoise,
    LaplaceNoise,
    Panel,
    SeedMixtureAttacker,
    auc,
)
from fastpriv.studies.membership.seed_mixtures import simulate_with_seeds

PANEL = Panel([[1, 0], [1, 1], [0, 0]])
PRIOR = BernoulliMembership(0.4)
EVERY = (np.arange(1, 8)[:, None] >> np.arange(3)) & 1 == 1


def uniform(b, nu):
    return np.asarray(nu) - 0.5


def model(dither, clip=False, function=uniform, seeds=2, prior=PRIOR):
    return FrequencyRelease(PANEL, prior, GeneratorNoise(function, seeds, dither), clip=clip)


def density(release, r, b):
    """Of a uniform variable on +- 1/2 plus normal noise, in each entry."""
    a = (np.asarray(r) - release.frequencies(b)) / release.noise.dither.sigma
    half = 0.5 / release.noise.dither.sigma
    return np.prod((stats.norm.cdf(a + half) - stats.norm.cdf(a - half)), axis=-1)


@pytest.mark.parametrize("sigma", [0.1, 0.5])
def test_the_posterior_beside_the_closed_form(sigma):
    release = model(GaussianNoise(sigma))
    r = release.simulate(20, rng=1).released
    weights = density(release, r[:, None, :], EVERY) * np.exp(PRIOR.log_probability(EVERY))
    want = weights @ EVERY / weights.sum(axis=1, keepdims=True)
    attack = SeedMixtureAttacker(release, seeds=20_000, confidence=0.999, rng=2)
    found = attack.posterior(r)
    assert found.probabilities.kind == "heuristic"
    inside = (found.probabilities.lower <= want) & (want <= found.probabilities.upper)
    assert inside.mean() > 0.97
    assert np.abs(found.probabilities.value - want).max() < 0.03
    assert np.array_equal(attack.scores(r), found.log_odds.value)
    assert np.array_equal(attack.claims(r), attack.predict_proba(r) > 0.5)
    single = attack.posterior(r[3])
    assert single.probabilities.shape == (3,)
    assert single.probabilities.value == pytest.approx(found.probabilities.value[3], rel=1e-9)


@pytest.mark.parametrize("dither", [GaussianNoise(0.2), GaussianNoise(1e-4), LaplaceNoise(0.3)])
@pytest.mark.parametrize("clip", [False, True])
def test_without_variation_it_is_the_likelihood_of_the_dither(dither, clip):
    if clip and isinstance(dither, LaplaceNoise):
        return
    release = model(dither, clip, lambda b, nu: np.zeros((len(b), 2)))
    plain = FrequencyRelease(PANEL, PRIOR, dither, clip=clip)
    r = plain.simulate(30, rng=1).released
    want = BayesAttacker(plain).posterior(r).log_odds.value
    found = SeedMixtureAttacker(release, seeds=8, rng=1).posterior(r).log_odds
    assert found.value == pytest.approx(want, rel=1e-9, abs=1e-9)
    assert np.all((found.upper - found.lower)[np.isfinite(want)] < 1e-6 * (1 + np.abs(want[np.isfinite(want)])))


def test_intervals_of_the_likelihood_hold():
    release = model(GaussianNoise(0.05))
    r, b = np.array([0.7, 0.9]), np.array([True, True, False])
    want = math.log(density(release, r, b))
    found = [SeedMixtureAttacker(release, seeds=200, confidence=0.9, rng=i).log_likelihood(r, b) for i in range(200)]
    misses = sum(not one.lower <= want <= one.upper for one in found)
    assert stats.binomtest(misses, 200, 0.1, alternative="greater").pvalue > 1e-3
    assert min(one.upper - one.lower for one in found) < 2.5
    far = SeedMixtureAttacker(release, seeds=8, rng=1).log_likelihood([3.0, 0.9], b)
    assert far.lower == -math.inf
    clipped = SeedMixtureAttacker(model(GaussianNoise(0.3), True), seeds=4000, rng=1).log_likelihood([0.0, 1.0], b)
    means = np.random.default_rng(3).random((100_000, 2)) - 0.5 + [1.0, 0.5]
    want = np.log(np.mean(stats.norm.cdf(-means[:, 0] / 0.3) * stats.norm.cdf((means[:, 1] - 1) / 0.3)))
    assert clipped.lower <= want <= clipped.upper


def test_the_exact_attacker_lies_between():
    """The one who draws seeds finds less than the posterior, the one who is told them more; both meet."""
    release = model(GaussianNoise(0.05), prior=FixedSizeMembership(1))
    rng = np.random.default_rng(1)
    b = release.prior.draw(4000, 3, rng)
    nu = rng.random((4000, 2))
    r = release.frequencies(b) + uniform(b, nu) + 0.05 * rng.standard_normal((4000, 2))
    members = EVERY[EVERY.sum(axis=1) == 1]
    weights = density(release, r[:, None, :], members)
    exact = auc((weights @ members / weights.sum(axis=1, keepdims=True)).ravel(), b.ravel())
    gaps = []
    for seeds in (16, 2048):
        attack = SeedMixtureAttacker(release, seeds=seeds, rng=5)
        low, high = (auc(x.ravel(), b.ravel()) for x in (attack.scores(r), attack.scores_of_known_seeds(r, nu)))
        assert low <= exact + 0.01
        assert exact <= high + 0.01
        gaps.append(high - low)
    assert gaps[1] < 0.2 * gaps[0]


def test_the_seeds_of_simulated_releases():
    release = model(GaussianNoise(1e-6))
    simulated, seeds = simulate_with_seeds(release, 20, np.random.default_rng(3))
    again = release.simulate(20, rng=np.random.default_rng(3))
    assert np.array_equal(simulated.released, again.released)
    assert np.array_equal(simulated.membership, again.membership)
    want = release.frequencies(simulated.membership) + seeds - 0.5
    assert simulated.released == pytest.approx(want, abs=1e-5)


MISTAKES = [
    (lambda: SeedMixtureAttacker(FrequencyRelease(PANEL, PRIOR)),
     "model must be a generator with dither, of few people; got .* but the noise is not that of a"),
    (lambda: SeedMixtureAttacker(model(None)), "a generator without dither has no likelihood"),
    (lambda: SeedMixtureAttacker(model(LaplaceNoise(0.1), True)), "dither is clipped and not Gaussian"),
    (lambda: SeedMixtureAttacker(FrequencyRelease(Panel(np.eye(17, dtype=int)), PRIOR, model(LaplaceNoise(1.0)).noise)),
     "a mixture of seeds over 17 people takes too long"),
    (lambda: SeedMixtureAttacker(model(LaplaceNoise(0.1)), seeds=7), "seeds must be an integer of .*; got 7"),
    (lambda: SeedMixtureAttacker(model(LaplaceNoise(0.1)), confidence=1.0), "confidence must be strictly between"),
    (lambda: SeedMixtureAttacker([]), "model must be a FrequencyRelease"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), MISTAKES, ids=[text for _, text in MISTAKES])
def test_mistakes(call, text):
    with pytest.raises(DomainError, match=text):
        call()
