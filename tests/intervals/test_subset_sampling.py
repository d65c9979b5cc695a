"""Posteriors over subsets by sampling, beside all subsets one by one: intervals, chains that do not mix, bits."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from fastpriv import DomainError, posterior
from fastpriv.channels import SubsetLikelihood
from fastpriv.errors import SamplingWarning
from fastpriv.mechanisms import BatchGradient
from fastpriv.posteriors import sampled_subset_posterior
from fastpriv.studies.datasets import digits
from kernels.variants import each_variant, printed


def drawn(pool, scale, size, seed=0):
    rng = np.random.default_rng((pool, seed))
    vectors = rng.normal(size=(pool, 4))
    gram = vectors @ vectors.T
    return SubsetLikelihood(scale * rng.normal(size=pool), -scale * (gram + gram.T) / 2, size, constant=-7.5)


@pytest.mark.slow
@pytest.mark.parametrize(("pool", "scale", "size"), [(30, 0.0, 3), (40, 2.0, 3), (14, 1.0, 6), (12, 1.0, 1)])
def test_intervals_hold_the_exact_posterior(pool, scale, size):
    likelihood = drawn(pool, scale, size)
    truth, misses, wrong = posterior(likelihood), np.zeros(2, dtype=int), 0
    runs = 12
    for seed in range(runs):
        found = sampled_subset_posterior(likelihood, sweeps=192, confidence=0.8, rng=seed)
        assert found.mixed
        assert found.inclusion.kind == found.entropy.kind == found.log_evidence.kind == "statistical"
        assert found.vulnerability.kind == "heuristic"
        for i, name in enumerate(("log_evidence", "entropy")):
            number, true = getattr(found, name), getattr(truth, name).value
            misses[i] += not number.lower - 1e-9 <= true <= number.upper + 1e-9
        chance = truth.inclusion.value
        wrong += np.sum((chance < found.inclusion.lower) | (chance > found.inclusion.upper))
        assert found.inclusion.value.sum() == pytest.approx(size)
        assert found.size == truth.size
        if scale >= 1.0:
            assert found.map_index == truth.map_index
            assert found.vulnerability.value == pytest.approx(truth.vulnerability.value, rel=0.2)
    most = binom.ppf(1 - 1e-4, runs, 0.2)
    assert misses.max() <= most, misses
    assert wrong <= 0.35 * runs * pool  # of correlated intervals of 0.8


def test_chains_that_do_not_mix_are_told():
    pairs = np.kron(np.eye(2), np.full((10, 10), 40.0))
    likelihood = SubsetLikelihood(np.zeros(20), pairs, 5)  # two groups, and a valley that no single step crosses
    with pytest.warns(SamplingWarning, match="the chains did not mix: R-hat reaches"):
        stuck = sampled_subset_posterior(likelihood, sweeps=64, temperatures=2, rng=1)
    assert not stuck.mixed
    assert stuck.inclusion.kind == stuck.entropy.kind == "heuristic"
    assert np.all(stuck.inclusion.upper - stuck.inclusion.lower > 0.3)  # those of all chains
    mixed = sampled_subset_posterior(likelihood, sweeps=2048, rng=1)
    assert mixed.mixed
    assert mixed.inclusion.lower.max() <= 0.25 <= mixed.inclusion.upper.min() + 0.05
    assert mixed.exchange_rates.min() > 0.05


@pytest.mark.slow
def test_batches_that_cannot_be_visited():
    rng = np.random.default_rng(5)
    gradients = rng.normal(size=(120, 60))
    batch = np.sort(rng.choice(120, 20, replace=False))
    step = BatchGradient.from_gradients(gradients, 20, sigma=0.02)
    likelihood = step.column(gradients[batch].mean(axis=0) + 0.02 * rng.normal(size=60))
    found = sampled_subset_posterior(likelihood, sweeps=128, rng=1)
    assert found.map_index == tuple(batch)
    assert found.inclusion.value[batch].min() > 0.9
    assert found.entropy.value < 1.0
    assert found.size == math.comb(120, 20)


@pytest.mark.slow
def test_three_of_all_digits():
    pixels, labels = digits()
    weights = 0.1 * np.random.default_rng(0).normal(size=(10, 65))
    step = BatchGradient.softmax_regression(pixels / 16.0, labels, weights, size=3, sigma=0.3)
    likelihood = step.column(step.sample([123, 777, 1500], rng=1))
    truth, found = posterior(likelihood), sampled_subset_posterior(likelihood, confidence=0.99, rng=1)
    assert found.mixed
    for name in ("log_evidence", "entropy"):
        number, true = getattr(found, name), getattr(truth, name)
        assert number.lower <= true.value <= number.upper
    outside = (truth.inclusion.value < found.inclusion.lower) | (truth.inclusion.value > found.inclusion.upper)
    assert outside.mean() < 0.05
    assert np.abs(found.inclusion.value - truth.inclusion.value).max() < 0.02


def test_the_same_bits_for_any_number_of_threads():
    likelihood = drawn(30, 0.5, 4)
    one, two = (sampled_subset_posterior(likelihood, sweeps=512, rng=3, n_jobs=jobs).to_dict() for jobs in (1, 3))
    assert one == two
    assert sampled_subset_posterior(likelihood, sweeps=512, rng=4).to_dict() != one
    done = []
    sampled_subset_posterior(likelihood, sweeps=1024, chains=3, rng=4, progress=lambda i, of: done.append((i, of)))
    assert done == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.slow
@each_variant
def test_the_same_bits_on_every_processor(variant):
    code = (
        "import warnings; warnings.simplefilter('ignore'); import numpy as np;"
        "from fastpriv import SubsetLikelihood, sampled_subset_posterior as f;"
        "i = np.arange(300); p = -((i[:, None] * i) % 7) / 8.0;"
        "r = f(SubsetLikelihood((i % 11) / 4.0, p, 4), sweeps=64, chains=2, rng=1, n_jobs=1);"
        "print(r.log_evidence.value.hex(), r.inclusion.value.sum().hex(), r.inclusion.value[17].hex(), r.map_index)"
    )
    assert printed(code, variant) == printed(code, "baseline")


def test_what_is_told_when_something_is_wrong():
    good = drawn(5, 1.0, 2)
    infinite = SubsetLikelihood([0.0, -math.inf, 0.0], np.zeros((3, 3)), 1)
    for call, text in [
        (lambda: sampled_subset_posterior(1.0), "likelihood must be"),
        (lambda: sampled_subset_posterior(infinite), "likelihood must be one with finite terms; got"),
        (lambda: sampled_subset_posterior(good, chains=1), "chains must be"),
        (lambda: sampled_subset_posterior(good, sweeps=8), "sweeps must be"),
        (lambda: sampled_subset_posterior(good, temperatures=1), "temperatures must be"),
        (lambda: sampled_subset_posterior(good, confidence=1.0), "confidence must be strictly between 0 and 1"),
    ]:
        with pytest.raises(DomainError, match=text):
            call()
