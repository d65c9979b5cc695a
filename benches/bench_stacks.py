"""Settings of the subsampled Gaussian mechanism: one call of stacks beside the loop over them, and dp_accounting."""

import numpy as np
import pytest

from fastpriv import GaussianMixture, MixtureStack, hockey_stick_divergence, kl_divergence, renyi_divergence

SIGMA = np.geomspace(0.5, 10.0, 25)[:, None, None]
RATE = np.geomspace(1e-4, 0.5, 20)[:, None]
EPSILON = np.geomspace(0.01, 10.0, 20)  # 25 x 20 x 20 settings
P = MixtureStack(np.concatenate([1 - RATE, RATE], axis=-1), [0.0, 1.0], SIGMA)
Q = MixtureStack([1.0], [0.0], SIGMA)
RNG = np.random.default_rng(1)
GENERAL = MixtureStack(RNG.dirichlet(np.ones(8), 200), RNG.normal(0, 3, (200, 8)), RNG.uniform(0.5, 2, (200, 8)))
OTHER = GaussianMixture(RNG.dirichlet(np.ones(8)), RNG.normal(0, 3, 8), RNG.uniform(0.5, 2, 8))
VAST_SIGMA, VAST_RATE = np.geomspace(0.5, 10.0, 100)[:, None, None], np.geomspace(1e-4, 0.5, 100)[:, None]


def by_loop(function, *points):
    """What a user writes without stacks: a call for each setting."""
    values = []
    for sigma in SIGMA.ravel().tolist():
        q = GaussianMixture.single(0.0, sigma)
        for rate in RATE.ravel().tolist():
            p = GaussianMixture([1 - rate, rate], [0.0, 1.0], sigma)
            values.append([function(p, q, point).value for point in points] if points else function(p, q).value)
    return np.reshape(values, (25, 20, len(points)) if points else (25, 20))


def by_dp_accounting(part):
    accounting = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    values = []
    for sigma in SIGMA.ravel().tolist():
        for rate in RATE.ravel().tolist():
            loss = accounting.GaussianPrivacyLoss(sigma, sampling_prob=rate)
            values.append([loss.get_delta_for_epsilon(float(e)) for e in EPSILON[::part]])
    return np.reshape(values, (25, 20, -1))


@pytest.mark.benchmark(group="10,000 settings of sigma, rate and epsilon: hockey-stick")
@pytest.mark.parametrize("way", ["one call", "one call, 2 threads", "a loop"])
def test_hockey_stick(benchmark, way):
    expected = hockey_stick_divergence(P, Q, EPSILON).value
    jobs = 2 if "threads" in way else 1
    calls = {"a loop": lambda: by_loop(hockey_stick_divergence, *EPSILON.tolist())}
    found = benchmark(calls.get(way, lambda: hockey_stick_divergence(P, Q, EPSILON, n_jobs=jobs).value))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.benchmark(group="500 of these settings: hockey-stick")
@pytest.mark.parametrize("way", ["one call", "dp_accounting"])
def test_hockey_stick_of_others(benchmark, way):
    found = benchmark(
        lambda: by_dp_accounting(20) if way == "dp_accounting" else hockey_stick_divergence(P, Q, EPSILON[::20]).value
    )
    np.testing.assert_allclose(found, hockey_stick_divergence(P, Q, EPSILON[::20]).value, rtol=1e-6, atol=1e-12)


@pytest.mark.benchmark(group="500 settings of sigma and rate: KL")
@pytest.mark.parametrize("way", ["one call", "a loop"])
def test_kl(benchmark, way):
    found = benchmark(lambda: by_loop(kl_divergence) if way == "a loop" else kl_divergence(P, Q).value)
    np.testing.assert_array_equal(found, kl_divergence(P, Q).value)


@pytest.mark.benchmark(group="500 settings of sigma and rate: Renyi of order 8")
@pytest.mark.parametrize("way", ["one call", "a loop"])
def test_renyi(benchmark, way):
    found = benchmark(
        lambda: by_loop(renyi_divergence, 8.0)[..., 0] if way == "a loop" else renyi_divergence(P, Q, 8.0).value
    )
    np.testing.assert_array_equal(found, renyi_divergence(P, Q, 8.0).value)


@pytest.mark.benchmark(group="200 pairs of 8 and 8 components, 5 epsilons")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_general_pairs(benchmark, n_jobs):
    epsilon = [0.1, 0.5, 1.0, 2.0, 5.0]
    found = benchmark(lambda: hockey_stick_divergence(GENERAL, OTHER, epsilon, n_jobs=n_jobs))
    assert found[7] == hockey_stick_divergence(GENERAL, OTHER, epsilon)[7]


@pytest.mark.benchmark(group="1,000,000 settings of sigma, rate and epsilon")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_million_settings(benchmark, n_jobs):
    def million():
        p = MixtureStack(np.concatenate([1 - VAST_RATE, VAST_RATE], axis=-1), [0.0, 1.0], VAST_SIGMA)
        q = MixtureStack([1.0], [0.0], VAST_SIGMA)
        return hockey_stick_divergence(p, q, np.geomspace(0.01, 10.0, 100), n_jobs=n_jobs)

    found = benchmark(million)
    assert found.shape == (100, 100, 100)
    assert (found.upper - found.lower <= 1e-11 * found.upper + 1e-300).all()


@pytest.mark.benchmark(group="one call by objects")
@pytest.mark.parametrize("call", ["build", "hockey-stick", "KL", "Renyi"])
def test_one_call(benchmark, call):
    p, q = GaussianMixture([0.99, 0.01], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
    calls = {
        "build": lambda: GaussianMixture([0.99, 0.01], [0.0, 1.0], 1.0),
        "hockey-stick": lambda: hockey_stick_divergence(p, q, 1.0),
        "KL": lambda: kl_divergence(p, q), "Renyi": lambda: renyi_divergence(p, q, 8.0),
    }
    assert benchmark(calls[call]) is not None
