"""Posteriors over subsets of any size hold the truth of mpmath: terms of any size, and Poisson batches by density."""

import itertools
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from enclosures.test_subset_posterior import drawn, held
from fastpriv import BatchGradient, DomainError, ShapeError, SubsetLikelihood, posterior
from oracles.subsets import DIGITS, belief_of, products, subsets_of_any_size

NONE = -math.inf


def truth_of(linear, pairwise, odds, constant=0.0):
    members, logs = zip(*subsets_of_any_size(linear, pairwise), strict=True)
    truth = belief_of(members, logs, len(linear), odds)
    truth["log_evidence"] += mpf(constant)
    truth["min_log_ratio"] = min(truth["min_log_ratio"], mpf(0))  # which sixty digits round above 0
    return truth, members


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-8, 1e-3, 0.1, 1.0, 30.0, 1e3, 1e8])
@pytest.mark.parametrize("pool", [1, 2, 7])
def test_every_number_holds_the_truth(pool, scale):
    linear, pairwise = drawn(pool, scale)
    odds = np.random.default_rng(pool).exponential(size=pool) ** 4
    found = posterior(SubsetLikelihood(linear, pairwise, None, constant=-3.5), odds)
    truth, members = truth_of(linear, pairwise, odds, -3.5)
    held(found, truth)
    assert found.size == 2**pool
    np.testing.assert_allclose(found.probabilities(), np.array(truth["law"], dtype=float), rtol=1e-9, atol=1e-290)
    assert found.map_index == max(zip(truth["law"], members, strict=True))[1] or scale < 1e-3
    assert found.inclusion.width.max() < 1e-10 * (1 + scale)


@pytest.mark.parametrize("odds", [[1e-9, 1.0, 1e9, 3.0], [0.0, 1.0, 0.0, 1e-300], [1e300, 1.0, 1e-300, 2.0]])
def test_extreme_odds_and_impossible_members(odds):
    linear, pairwise = drawn(4, 2.0)
    linear[1] = NONE
    pairwise[0, 2] = pairwise[2, 0] = NONE
    likelihood = SubsetLikelihood(linear, pairwise, None)
    held(posterior(likelihood, odds), truth_of(linear, pairwise, odds)[0])
    with np.errstate(divide="ignore"):
        logs = posterior(likelihood, log_prior=np.log(odds))
    assert logs.inclusion.value == pytest.approx(posterior(likelihood, odds).inclusion.value, rel=1e-12, abs=1e-290)


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(20))
def test_harsh_odds_and_terms(seed, monkeypatch):
    monkeypatch.setattr("oracles.subsets.DIGITS", 750)  # of probabilities that differ from 1 by 1e-600
    rng = np.random.default_rng(seed)
    pool, scale = int(rng.integers(1, 6)), 10.0 ** rng.uniform(-12, 5)
    linear, pairwise = drawn(pool, scale, seed)
    linear *= 10.0 ** rng.uniform(-6, 0, pool)
    odds = 10.0 ** (rng.choice([1, 50, 290]) * rng.uniform(-1, 1, pool))
    held(posterior(SubsetLikelihood(linear, pairwise, None), odds), truth_of(linear, pairwise, odds)[0])


@pytest.mark.parametrize(("sigma", "rate", "divisor"), [(1e-3, 0.5, 2.0), (0.2, 0.3, 1.8), (50.0, 0.9, 7.5)])
def test_poisson_batches_have_the_posterior_of_their_density(sigma, rate, divisor):
    rng = np.random.default_rng(3)
    records, labels, weights = rng.normal(size=(6, 4)), rng.integers(0, 3, 6), rng.normal(size=(3, 5))
    step = BatchGradient.softmax_regression(records, labels, weights, divisor, sigma, sampling_rate=rate)
    gradients = products(step.errors, step.features)
    for batch in ([], [1, 4, 5], range(6)):
        release = step.sample(batch, rng=7)
        found = posterior(step.column(release), step.odds)
        members, logs = [], []
        with mp.workdps(DIGITS):
            for size in range(7):
                for one in itertools.combinations(range(6), size):
                    means = [mp.fsum(gradients[i][d] for i in one) / mpf(divisor) for d in range(release.size)]
                    square = mp.fsum((mpf(float(y)) - m) ** 2 for y, m in zip(release.ravel(), means, strict=True))
                    members.append(one)
                    logs.append(-square / (2 * mpf(sigma) ** 2)
                                - release.size * mp.log(mp.sqrt(2 * mp.pi) * mpf(sigma)))  # fmt: skip
        held(found, belief_of(members, logs, 6, [mpf(rate) / (1 - mpf(rate))] * 6))
        if sigma < 0.01:
            assert found.map_index == tuple(batch)
            assert np.isclose(step.column(release).log_likelihood(list(batch)), float(max(logs)))


def test_what_is_told_when_something_is_wrong():
    likelihood = SubsetLikelihood(np.zeros(3), np.zeros((3, 3)), None)
    step = BatchGradient.from_gradients(np.eye(3), 1.5, 1.0, sampling_rate=0.5)
    assert likelihood.size == 8
    assert BatchGradient.from_gradients(np.eye(3), 1, 1.0).odds is None
    for call, error, text in [
        (lambda: posterior(likelihood), DomainError, "prior must be given for subsets of any size; got None"),
        (lambda: posterior(likelihood, [1.0]), ShapeError, "prior must have one entry a record, 3; got 1"),
        (lambda: posterior(SubsetLikelihood(np.zeros(25), np.zeros((25, 25)), None), np.ones(25)), DomainError,
         "likelihood must be of at most 24 records for subsets of any size; got 25"),
        (lambda: SubsetLikelihood([0.0], None, None), DomainError, "pairwise must be"),
        (lambda: BatchGradient(np.ones((3, 1)), np.eye(3), 2, 1.0, 1.0), DomainError,
         "sampling_rate must be strictly between 0 and 1; got 1.0"),
        (lambda: BatchGradient(np.ones((3, 1)), np.eye(3), 0.0, 1.0, 0.5), DomainError, "size must be between 1e-50"),
        (lambda: step.gradient([[0, 1]]), ShapeError, r"batch must be a list of records; got shape \(1, 2\)"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()


@pytest.mark.parametrize("pool", [20, pytest.param(24, marks=pytest.mark.slow)])
def test_a_large_pool_is_the_product_of_its_records(pool):
    """Without pairs records are independent, so that every number is known."""
    linear = np.linspace(-3.0, 3.0, pool)
    found = posterior(SubsetLikelihood(linear, np.zeros((pool, pool)), None), np.ones(pool))
    chance = 1.0 / (1.0 + np.exp(-linear))
    np.testing.assert_allclose(found.inclusion.value, chance, rtol=1e-12)
    assert float(found.entropy) == pytest.approx(-np.sum(chance * np.log(chance) + (1 - chance) * np.log1p(-chance)))
    assert found.map_index == tuple(range(pool // 2, pool))
