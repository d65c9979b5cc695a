"""Renyi divergences of an order below 1: bounds from pairs of components, and values where the integral underflows."""

import math
import warnings

import mpmath as mp
import numpy as np
import pytest

from fastpriv import GaussianMixture, renyi_divergence
from fastpriv.errors import SamplingWarning
from fastpriv.sampling.proposals.renyi_proposals import renyi_integral_bounds

ORDERS = (0.1, 0.5, 0.9, 0.999)


def mixture(scale, seed, d=4, k=3):
    rng = np.random.default_rng(seed)
    weights, means = rng.dirichlet(np.ones(k)), scale * rng.standard_normal((k, d))
    return GaussianMixture(weights, means, rng.uniform(0.8, 1.3, (k, d)))


@pytest.mark.parametrize("order", ORDERS)
def test_the_sum_over_pairs_dominates_and_is_reached(order):
    rng = np.random.default_rng(1)
    for scale in (0.0, 1.0, 5.0, 40.0):
        p, q = mixture(scale, 2), mixture(scale, 3)
        found = renyi_integral_bounds(p, q, order)
        whole = len(found.mixture) == found.pairs
        x = np.concatenate([law.sample(300, rng=rng) for law in (p, q, found.mixture)[0 if whole else 2 :]])
        log_f = order * p.log_density(x) + (1.0 - order) * q.log_density(x)
        ratio = log_f - found.mixture.log_density(x) - found.log_scale
        assert ratio.max() <= found.rounding_error
        assert ratio.min() >= -math.log(found.pairs) - found.rounding_error


@pytest.mark.parametrize(
    ("mu", "s", "nu", "t", "order"),
    [(1e6, 1e4, 1e-3, 1e-3, 0.5), (1e8, 1e5, 0.0, 1e-2, 0.3), (3e5, 1e3, 1e-9, 1e-4, 0.9), (40.0, 2.0, -3.0, 0.5, 0.5)],
)
def test_ratios_of_a_pair_whose_normal_lies_near_0_stay_in_their_range(mu, s, nu, t, order):
    """Its mean is a difference of large numbers: ratios were off by up to 200 times what was stated."""
    found = renyi_integral_bounds(GaussianMixture.single(mu, s), GaussianMixture.single(nu, t), order)
    mean, deviation = (mp.mpf(float(np.ravel(x)[0])) for x in (found.mixture.means, found.mixture.sigmas))

    def log_density(x, m, d):
        return -mp.log(d) - ((x - m) / d) ** 2 / 2

    with mp.workdps(50):
        for z in (-30, -8, -1, 0, 2, 8, 30):
            x = mean + z * deviation
            log_f = order * log_density(x, mp.mpf(mu), mp.mpf(s)) + (1 - mp.mpf(order)) * log_density(
                x, mp.mpf(nu), mp.mpf(t)
            )
            assert abs(log_f - log_density(x, mean, deviation) - found.log_scale) <= found.rounding_error


@pytest.mark.parametrize("order", ORDERS)
def test_single_normals_are_exact(order):
    p, q = mixture(30.0, 4, k=1), mixture(30.0, 5, k=1)
    found = renyi_integral_bounds(p, q, order)
    r = (1.0 - order) * p.sigmas**2 + order * q.sigmas**2
    logs = (1.0 - order) * np.log(p.sigmas) + order * np.log(q.sigmas) - 0.5 * np.log(r)
    truth = float((logs - order * (1.0 - order) * (p.means - q.means) ** 2 / (2.0 * r)).sum())
    assert found.low <= truth <= found.high
    assert found.high - found.low <= 1e-12 * (1.0 + abs(truth))


@pytest.mark.few(5)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scale", [10.0, 30.0, 100.0, 1e4, 1e6, 1e100])
def test_far_laws_have_finite_values_in_proved_bounds(scale, order):
    p, q = mixture(1.0, 6), mixture(scale, 7)
    bounds = renyi_integral_bounds(p, q, order)
    proved = [end / (order - 1.0) for end in (bounds.high, bounds.low)]
    for keywords in ({}, {"method": "balanced", "max_samples": 10**5}, {"interval": "guaranteed", "rtol": 0.1}):
        found = renyi_divergence(p, q, order, rng=1, **keywords)
        assert math.isfinite(found.upper)
        assert proved[0] * (1 - 1e-14) <= found.lower <= found.value <= found.upper <= proved[1] * (1 + 1e-14)
        assert "method" in keywords or found.cost["stopped"] == "target"


@pytest.mark.slow
def test_products_of_far_laws_are_covered():
    """A product of one pair of mixtures on the line: the divergence is a sum, certified coordinate by coordinate."""
    means, sigmas = [np.array([0.0, 1.5]), np.array([14.0, 17.0])], [np.array([1.0, 0.8]), np.array([1.2, 0.9])]
    p, q = (GaussianMixture([0.3, 0.7], m, s) for m, s in zip(means, sigmas, strict=True))
    flat = [
        GaussianMixture(
            np.outer(law.weights, law.weights).ravel(),
            np.stack(np.meshgrid(law.means, law.means, indexing="ij"), -1).reshape(4, 2),
            np.stack(np.meshgrid(law.sigmas, law.sigmas, indexing="ij"), -1).reshape(4, 2),
        )
        for law in (p, q)
    ]
    for order in (0.3, 0.8):
        truth = 2.0 * renyi_divergence(p, q, order, certified=True).value
        answers = [renyi_divergence(*flat, order, method="tilted", rtol=0.003, rng=seed) for seed in range(100)]
        missed = sum(not found.lower <= truth <= found.upper for found in answers)
        assert missed <= 16, (order, missed)  # of 100 at 0.95: once in 10^4


def test_full_covariances_have_a_finite_lower_end():
    laws = [
        GaussianMixture(law.weights, law.means, covariances=law.sigmas[:, :, None] ** 2 * np.eye(4) + 0.1)
        for law in (mixture(1.0, 8), mixture(100.0, 9))
    ]
    assert renyi_integral_bounds(*laws, 0.5) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        found = renyi_divergence(*laws, 0.5, rng=1, max_samples=10**5)
    assert math.isfinite(found.lower)
    assert found.upper == math.inf


def test_many_pairs_and_overflow_have_no_bounds():
    assert renyi_integral_bounds(mixture(1.0, 1, d=500, k=100), mixture(1.0, 2, d=500, k=100), 0.5) is None
    assert renyi_integral_bounds(mixture(1.0, 1), mixture(1e160, 2), 0.5) is None
    assert renyi_integral_bounds(mixture(1.0, 1, k=40), mixture(1.0, 2, k=40), 0.5).mixture is None
