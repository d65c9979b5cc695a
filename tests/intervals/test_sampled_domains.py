"""Posteriors over sampled domains: the intervals hold as often as they say, and what cannot be known is said."""

import math
import warnings

import numpy as np
import pytest
from scipy import stats

from fastpriv import IndexLikelihood, SamplingWarning, posterior

N = 10**6
SCATTERED = 2654435761, 1000003  # spreads indices over residues


def wave(d):
    return 2.0 * np.sin(d * 1e-4) + (d * SCATTERED[0] % 1000) / 1000


def hill(d):
    return -0.5 * ((d - 700_000.3) / 20_000.0) ** 2


def exponential(d):
    return -((d * SCATTERED[0] % SCATTERED[1]) / 2e5)


def normal(d):
    rank = (d * SCATTERED[0] % SCATTERED[1] + 1) / 1000004
    return 1.5 * np.sqrt(2.0) * np.sin(d * 1e-3) + np.sqrt(-2.0 * np.log(rank))


def posterior_of(likelihood, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        return posterior(likelihood, **options)


def misses_allowed(function, runs, budget=2**20):
    """Of intervals that do not hold the truth, the most of any quantity, and how many there may be."""
    truth = posterior(function(np.arange(N)))
    names = "log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "vulnerability"
    misses = dict.fromkeys(names, 0)
    for seed in range(runs):
        found = posterior_of(IndexLikelihood(function, N, budget=budget), rng=seed, top=1)
        for name in misses:
            one = getattr(found, name)
            misses[name] += not one.lower <= getattr(truth, name).value <= one.upper
    return max(misses.values()), stats.binom.ppf(1 - 1e-4, runs, 0.05)


@pytest.mark.few(1)
@pytest.mark.parametrize("function", [wave, hill, exponential, normal])
def test_the_intervals_cover(function):
    misses, allowed = misses_allowed(function, 25)
    assert misses <= allowed


@pytest.mark.slow
@pytest.mark.parametrize("function", [wave, hill, exponential, normal])
def test_the_intervals_cover_over_many_seeds(function):
    misses, allowed = misses_allowed(function, 1000)
    assert misses <= allowed


def test_a_domain_far_beyond_64_bits():
    def function(d):
        assert d.dtype == object
        return np.sin(np.array([x / 2**200 for x in d]))

    found = posterior_of(IndexLikelihood(function, 2**200, budget=2**27), rng=1)
    evidence = math.log(np.mean(np.exp(np.sin((np.arange(10**6) + 0.5) / 10**6))))
    assert found.log_evidence.lower <= evidence <= found.log_evidence.upper
    assert found.log_evidence.width < 1e-3
    assert found.entropy.upper <= 200 * math.log(2)
    assert 0 <= found.map_index < 2**200
    assert len(set(found.top.indices.tolist())) == 10


def test_equal_seeds_give_equal_bits_for_any_number_of_threads():
    likelihood = IndexLikelihood(wave, 2**60, budget=2**25)
    one, two = posterior_of(likelihood, rng=7), posterior_of(likelihood, rng=7, n_jobs=2)
    assert one.to_dict() == two.to_dict()
    assert one.to_dict() != posterior_of(likelihood, rng=8).to_dict()


def test_maxima_are_bounded_by_what_was_seen_and_what_cannot_be_surpassed():
    with pytest.warns(SamplingWarning, match="the smallest log likelihood of 1000000 secrets are not known"):
        found = posterior(IndexLikelihood(wave, N, budget=2**18), rng=1)
    assert found.max_log_ratio.upper == math.log(N)
    assert found.max_log_ratio.kind == "statistical"
    assert found.min_log_ratio.lower == -math.inf
    assert found.vulnerability.upper == 1.0
    assert found.vulnerability.lower >= 1 / N
    assert found.xi.upper == math.inf
    assert found.cost["evaluations"] == 1024
    np.testing.assert_allclose(
        found.probabilities(3, 6), np.exp(wave(np.arange(3, 6)) - found.log_evidence.value) / N, rtol=1e-12
    )


def test_evidence_in_few_draws_has_no_upper_end():
    def function(d):
        rank = (d * SCATTERED[0] % SCATTERED[1] + 1) / 1000004
        return -1.5 * np.log(rank)

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = posterior(IndexLikelihood(function, N, budget=2**20), rng=1)
    assert any("few of the draws carry most of the evidence" in str(one.message) for one in said)
    assert found.log_evidence.upper == math.inf
    assert (found.kl.lower, found.kl.upper) == (0.0, math.log(N))
    truth = posterior(function(np.arange(N)))
    for name in ("log_evidence", "kl", "js", "max_log_ratio", "vulnerability"):
        assert getattr(found, name).lower <= getattr(truth, name).value <= getattr(found, name).upper, name


def test_draws_that_are_all_impossible():
    with pytest.warns(SamplingWarning, match="sampled secrets are impossible"):
        found = posterior(IndexLikelihood(lambda d: np.where(d == 77, 0.0, -np.inf), 10**15, budget=2**20), rng=1)
    assert found.log_evidence.lower == -math.inf
    assert found.log_evidence.upper == math.inf
    assert found.js.upper == math.log(2)
    assert found.top.indices.size == 0
