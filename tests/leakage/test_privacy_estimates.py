"""Estimates of Bayesian privacy against their definition, written out over the whole pool."""

import math
import pickle

import numpy as np
import pytest

from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.leakage import bayesian_privacy_estimate

RNG = np.random.default_rng(3)


def by_definition(named, prior, batch, pseudo_count):
    """kappa_1, C1 and kappa_3 by loops over releases, attacks and records."""
    releases, attacks, size = named.shape
    beliefs = []
    for m in range(releases):
        belief = np.zeros(prior.size)
        for t in range(attacks):
            for d in named[m, t].tolist():
                belief += (np.arange(prior.size) == d) if d in batch else prior
        beliefs.append(belief / (size * attacks))
    kappa = np.mean(beliefs, axis=0)
    middle = (kappa + prior) / 2
    js = sum(
        0.5 * (k * math.log(k / m) if k else 0.0) + 0.5 * p * math.log(p / m)
        for k, p, m in zip(kappa, prior, middle, strict=True)
    )
    total = size * attacks
    smooth = [(total * belief + pseudo_count * prior) / (total + pseudo_count) for belief in beliefs]
    return kappa, math.sqrt(max(js, 0.0)), max(np.abs(np.log(belief / prior)).max() for belief in smooth)


@pytest.mark.parametrize("size", [1, 2, 4, 9])
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("pseudo_count", [1e-3, 1.0, 50.0])
def test_values_are_those_of_the_definition(size, rate, pseudo_count):
    prior = RNG.dirichlet(np.full(9, 0.7)) + 1e-3
    prior /= prior.sum()
    batch = RNG.choice(9, size, replace=False)
    named = np.array([[RNG.choice(9, size, replace=False) for _ in range(5)] for _ in range(3)])
    right = RNG.random((3, 5)) < rate
    named[right] = batch
    named[RNG.random(named.shape) < 0.1] = -1
    found = bayesian_privacy_estimate(named, prior, batch=batch, pseudo_count=pseudo_count, rng=1)
    kappa, c1, kappa_3 = by_definition(named, prior, batch.tolist(), pseudo_count)
    np.testing.assert_allclose(found.kappa_1.value, kappa, rtol=1e-12, atol=1e-15)
    assert found.c1.value == pytest.approx(c1, abs=1e-8)
    assert found.kappa_3.value == pytest.approx(kappa_3, rel=1e-10, abs=1e-13)
    assert found.c2.value == pytest.approx(math.expm1(2 * kappa_3) / 2, rel=1e-9, abs=1e-12)
    assert found.kappa_1.value.sum() == pytest.approx(1.0, rel=1e-12)


def test_the_published_form_would_rank_backwards():
    batch = np.arange(4)
    everything = bayesian_privacy_estimate(np.broadcast_to(batch, (8, 10, 4)), 1797, batch=batch, rng=1)
    nothing = bayesian_privacy_estimate(np.full((8, 10, 4), -1), 1797, batch=batch, rng=1)
    assert everything.c1.value > 0.82
    assert nothing.c1.value == 0.0
    published = np.full(4, 0.25)  # hits / (S T) over the batch alone, against a uniform prior of the batch
    assert np.abs(published - 0.25).max() == 0.0  # ... says that perfect reconstruction leaks nothing


def test_everything_and_nothing_have_bounds_of_positive_width():
    batch = np.arange(4)
    everything = bayesian_privacy_estimate(np.broadcast_to(batch, (8, 10, 4)), 100, batch=batch, rng=1)
    assert everything.c1.lower < everything.c1.value == everything.c1.upper
    assert everything.kappa_3.upper == math.inf
    assert everything.c2.upper == math.inf
    assert everything.kappa_3.lower > everything.kappa_3_null.value
    # Clopper and Pearson for 8 of 8
    assert everything.recovered.lower == pytest.approx(0.025 ** (1 / 8), abs=0.02)
    nothing = bayesian_privacy_estimate(np.full((8, 10, 4), -1), 100, batch=batch, rng=1)
    assert nothing.c1.floats()[:2] == (0.0, 0.0)
    assert nothing.c1.upper > 0.2
    assert nothing.kappa_3.floats()[:2] == (0.0, 0.0)
    assert nothing.recovered.upper == pytest.approx(1 - 0.025 ** (1 / 8), abs=0.02)


@pytest.mark.parametrize("prior", [np.full(12, 1 / 12), np.r_[0.3, 0.25, np.full(10, 0.045)]])
def test_null_values_are_those_of_random_attributions(prior):
    batch = np.array([0, 5])
    found = bayesian_privacy_estimate(np.full((8, 10, 2), -1), prior, batch=batch, rng=1)
    studies = []
    for _ in range(300):
        named = np.array([RNG.choice(12, 2, replace=False, p=prior) for _ in range(8)])
        studies.append(by_definition(np.repeat(named[:, None], 10, axis=1), prior, batch.tolist(), 1.0)[1:])
    for null, values in zip((found.c1_null, found.kappa_3_null), np.transpose(studies), strict=True):
        assert abs(null.value - values.mean()) < 4 * values.std() * math.sqrt(1 / 300 + 1 / 200)
        inside = ((null.lower - 1e-12 <= values) & (values <= null.upper + 1e-12)).mean()
        assert inside > 0.88


def test_null_values_of_vast_and_tiny_pools():
    vast = bayesian_privacy_estimate([[[7, 3]]], 10**6, batch=[7, 3], rng=1)
    assert vast.c1_null.upper == 0.0
    assert vast.kappa_1.shape == (10**6,)
    whole = bayesian_privacy_estimate([[[1, 0]]], 2, batch=[0, 1], rng=1)
    assert whole.c1.floats()[0] == 0.0
    assert whole.c1_null.upper == 0.0


def test_same_seed_same_numbers_and_pickles():
    named = np.where(RNG.random((8, 10, 1)) < 0.5, [1, 2], -1)
    one, two = (bayesian_privacy_estimate(named, 30, batch=[1, 2], rng=7) for _ in range(2))
    assert one == two
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"attributions": [[1]]}, r"attributions must be of shape \(M, T, S\), each at least 1; got \(1, 1\)"),
        ({"attributions": [[[1, 30]]]}, "attributions must name records of the pool, below 30; got 30"),
        ({"attributions": [[[1, -2]]]}, "attributions must be integers from -1"),
        ({"attributions": [[[4, 4]]]}, r"attributions must name different records within an attack; got \[4, 4\]"),
        ({"batch": [1, 1]}, "batch must name 2 different records, as many as an attack; got"),
        ({"batch": [1, 2, 3]}, "batch must name 2 different records"),
        ({"batch": [1, 30]}, "batch must be integers from 0 to 29; got 30"),
        ({"pool": [1.0, 0.0, 0.0]}, "pool must give every record a positive probability; got .*0.0.* at index 1"),
        ({"pool": [0.5, 0.2]}, "pool must sum to 1"),
        ({"pool": 0}, "pool must be an integer of at least 1"),
        ({"pseudo_count": 0.0}, "pseudo_count must be positive and finite; got 0.0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1, exclusive; got 1.0"),
        ({"rng": "x"}, "rng must be None, an integer"),
    ],
)
def test_errors(words, text):
    arguments = {"attributions": [[[1, 2]]], "pool": 30, "batch": [1, 2]} | words
    with pytest.raises((DomainError, ShapeError), match=text):
        bayesian_privacy_estimate(arguments.pop("attributions"), arguments.pop("pool"), **arguments)
