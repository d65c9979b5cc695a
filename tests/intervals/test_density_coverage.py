"""Intervals for laws that only the person knows, against closed forms; judged as in ``test_divergence_coverage``."""

import warnings

import numpy as np
import pytest

from fastpriv import (
    Density,
    GaussianMixture,
    hockey_stick_divergence,
    jensen_shannon,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.distributions import LogRatio
from fastpriv.errors import SamplingWarning
from misses import assert_few_misses

LEVELS = (0.9, 0.99)
FALSE_ALARM = 1e-6
QUICK, LONG = 12, 1000


def laplace(centre, dimension=1):
    """Independent Laplace laws of scale 1."""

    def log_density(x):
        return -np.abs(x - centre).sum(axis=1) - dimension * np.log(2.0)

    def sampler(rng, n):
        return rng.laplace(centre, size=(n, dimension))

    return Density(log_density, sampler, dimension=dimension, vectorized=True)


def normal(mean, sigma):
    def log_density(x):
        return -(((x[:, 0] - mean) / sigma) ** 2) / 2 - np.log(sigma * np.sqrt(2 * np.pi))

    def sampler(rng, n):
        return rng.normal(mean, sigma, size=(n, 1))

    return Density(log_density, sampler, dimension=1, vectorized=True)


def poisson(rate):
    """With respect to counts."""
    from scipy.special import gammaln

    def log_density(x):
        k = x[:, 0]
        return k * np.log(rate) - rate - gammaln(k + 1)

    def sampler(rng, n):
        return rng.poisson(rate, size=(n, 1))

    return Density(log_density, sampler, dimension=1, vectorized=True)


def exponential(rate):
    def log_density(x):
        return np.where(x[:, 0] >= 0, np.log(rate) - rate * x[:, 0], -np.inf)

    def sampler(rng, n):
        return rng.exponential(1 / rate, size=(n, 1))

    return Density(log_density, sampler, dimension=1, vectorized=True)


def ratio():
    """N(1, 1) against N(0, 1), known only by the logarithm of the ratio."""
    return LogRatio(
        lambda x: x[:, 0] - 0.5, lambda rng, n: rng.normal(1.0, 1.0, (n, 1)),
        sampler_q=lambda rng, n: rng.normal(0.0, 1.0, (n, 1)), dimension=1, vectorized=True,
    )


SHIFT = 0.75
LAPLACE = laplace(0.0), laplace(SHIFT)
LAPLACE_KL = SHIFT + np.exp(-SHIFT) - 1
EXPONENTIALS = exponential(2.0), exponential(1.0)
CASES = {
    "laplace kl": (lambda **k: kl_divergence(*LAPLACE, **k), LAPLACE_KL),
    "laplace kl in 3 dimensions": (
        lambda **k: kl_divergence(laplace(0.0, 3), laplace(SHIFT, 3), **k), 3 * LAPLACE_KL,
    ),
    "laplace tv": (lambda **k: total_variation(*LAPLACE, **k), -np.expm1(-SHIFT / 2)),
    "laplace hockey-stick": (
        lambda **k: hockey_stick_divergence(*LAPLACE, 0.25, **k), -np.expm1((0.25 - SHIFT) / 2),
    ),
    "poisson kl": (lambda **k: kl_divergence(poisson(3.0), poisson(2.0), **k), 3 * np.log(1.5) - 1),
    "exponential kl": (lambda **k: kl_divergence(*EXPONENTIALS, **k), np.log(2.0) - 0.5),
    # log p/q = log 2 - x > 0 before x = log 2
    "exponential tv": (lambda **k: total_variation(*EXPONENTIALS, **k), 0.25),
    "exponential renyi 1/2": (lambda **k: renyi_divergence(*EXPONENTIALS, 0.5, **k), -2 * np.log(np.sqrt(2.0) / 1.5)),
    "exponential renyi 3": (lambda **k: renyi_divergence(*EXPONENTIALS, 3.0, **k), np.log(8 / 4) / 2),
    "a normal law and a mixture": (
        lambda **k: kl_divergence(normal(0.5, 1.0), GaussianMixture.single(0.0, 1.5), **k),
        np.log(1.5) + 1.25 / 4.5 - 0.5,
    ),
    "a mixture and a normal law": (
        lambda **k: kl_divergence(GaussianMixture.single(0.5, 1.0), normal(0.0, 1.5), **k),
        np.log(1.5) + 1.25 / 4.5 - 0.5,
    ),
    "a ratio alone": (lambda **k: kl_divergence(ratio(), **k), 0.5),
    "a ratio alone, jensen-shannon": (lambda **k: jensen_shannon(ratio(), **k), 0.11142148218473618),
    "narrow q": (lambda **k: kl_divergence(normal(0.0, 1.0), normal(0.0, 0.2), **k), np.log(0.2) + 12.5 - 0.5),
}


@pytest.fixture(autouse=True)
def _warnings_are_allowed():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        yield


def check_coverage(name, count):
    call, truth = CASES[name]
    slack = 1e-7 * abs(truth)
    for level in LEVELS:

        def missed(k, level=level):
            seed = [len(name), round(1000 * level), k]
            answer = call(rng=seed, confidence=level, rtol=0.0, max_samples=2000, n_jobs=1)
            assert answer.kind == "statistical"
            return not answer.lower - slack <= truth <= answer.upper + slack

        assert_few_misses(missed, range(count), level, FALSE_ALARM / (len(LEVELS) * len(CASES)), name)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold(name):
    check_coverage(name, QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_intervals_hold_over_thousands_of_seeds(name):
    check_coverage(name, LONG)
