"""Hockey-stick divergences of the pairs accountants live from, beside the NumPy line and dp_accounting.

Subsampled Gaussians over a million settings and along one curve, one Gaussian against another, binomial groups. Every
bench asserts the answer; `extra_info` holds microseconds an epsilon where a peer takes fewer settings.
"""

import time
from math import comb

import numpy as np
import pytest
from comparison.divergences import subsampled_delta
from scipy.special import ndtr

from fastpriv import GaussianMixture, hockey_stick_divergence, special

SETTINGS, FEW, CURVE = 1_000_000, 300, 1000


def settings(n):
    """Sampling rates, noise multipliers, epsilons."""
    rng = np.random.default_rng(1)
    return 10 ** rng.uniform(-5, -0.5, n), 10 ** rng.uniform(-0.5, 1, n), 10 ** rng.uniform(-2, 0.5, n)


def agrees(value, rate, sigma, epsilon, tolerance):
    want = special.sampled_gaussian_delta_remove(sigma, rate, epsilon)[0]
    where = want > 1e-9 * rate
    assert np.max(np.abs(np.asarray(value)[where] / want[where] - 1)) < tolerance


def microseconds(benchmark, epsilons):
    if benchmark.stats:  # None with --benchmark-disable
        benchmark.extra_info["microseconds an epsilon"] = round(1e6 * benchmark.stats["min"] / epsilons, 3)


@pytest.mark.benchmark(group="subsampled Gaussian, settings", timer=time.process_time)
@pytest.mark.parametrize("name", ["delta_remove", "delta_add", "log_delta_remove", "log_delta_add"])
def test_settings_fastpriv(benchmark, name):
    rate, sigma, epsilon = settings(SETTINGS)
    value, lower, upper = benchmark(getattr(special, f"sampled_gaussian_{name}"), sigma, rate, epsilon)
    assert ((lower <= value) & (value <= upper)).all()
    if name == "delta_remove":
        agrees(subsampled_delta(rate, sigma, epsilon), rate, sigma, epsilon, 1e-3)
    microseconds(benchmark, SETTINGS)


@pytest.mark.benchmark(group="subsampled Gaussian, settings", timer=time.process_time)
def test_settings_gufunc(benchmark):
    rate, sigma, epsilon = settings(SETTINGS // 10)
    weights, sigma = np.stack([1 - rate, rate], axis=1), sigma[:, None] * np.ones(2)
    value, _, _ = benchmark(
        special.mixture_hockey_stick, weights, [0.0, 1.0], sigma, [1.0], [0.0], sigma[:, :1], epsilon[:, None]
    )
    agrees(value[:, 0], rate, sigma[:, 0], epsilon, 1e-10)
    microseconds(benchmark, SETTINGS // 10)


@pytest.mark.benchmark(group="subsampled Gaussian, settings", timer=time.process_time)
def test_settings_numpy(benchmark):
    given = settings(SETTINGS)
    agrees(benchmark(subsampled_delta, *given), *given, 1e-3)
    microseconds(benchmark, SETTINGS)


@pytest.mark.benchmark(group="subsampled Gaussian, settings", timer=time.process_time)
def test_settings_dp_accounting(benchmark):
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    given = settings(FEW)

    def all_settings():
        remove = module.AdjacencyType.REMOVE
        return [
            module.GaussianPrivacyLoss(s, sampling_prob=q, adjacency_type=remove).get_delta_for_epsilon(e)
            for q, s, e in zip(*(x.tolist() for x in given), strict=True)
        ]

    agrees(benchmark(all_settings), *given, 1e-3)
    microseconds(benchmark, FEW)


@pytest.fixture(scope="module")
def curve():
    return np.linspace(0.0, 3.0, CURVE)


@pytest.mark.benchmark(group="subsampled Gaussian, one curve", timer=time.process_time)
def test_curve_fastpriv(benchmark, curve):
    p, q = GaussianMixture([0.99, 0.01], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
    found = benchmark(hockey_stick_divergence, p, q, curve)
    assert found.method == "closed form"
    agrees(found.value, 0.01, 1.0, curve, 1e-12)
    microseconds(benchmark, CURVE)


@pytest.mark.benchmark(group="subsampled Gaussian, one curve", timer=time.process_time)
def test_curve_numpy(benchmark, curve):
    agrees(benchmark(subsampled_delta, 0.01, 1.0, curve), 0.01, 1.0, curve, 1e-3)
    microseconds(benchmark, CURVE)


@pytest.mark.benchmark(group="subsampled Gaussian, one curve", timer=time.process_time)
def test_curve_dp_accounting(benchmark, curve):
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    loss = module.GaussianPrivacyLoss(1.0, sampling_prob=0.01, adjacency_type=module.AdjacencyType.REMOVE)
    agrees(benchmark(loss.get_delta_for_epsilon, curve.tolist()), 0.01, 1.0, curve, 1e-3)
    microseconds(benchmark, CURVE)


def gaussian_line(epsilon, m, s, n, t):
    """H of N(m, s^2) from N(n, t^2), s > t: outside of the roots of a quadratic."""
    a, b = 0.5 / t**2 - 0.5 / s**2, m / s**2 - n / t**2
    c = np.log(t / s) - 0.5 * (m / s) ** 2 + 0.5 * (n / t) ** 2 - epsilon
    root = np.sqrt(b * b - 4 * a * c)
    left, right = (-b - root) / (2 * a), (-b + root) / (2 * a)
    inside = ndtr((left - m) / s) + ndtr((m - right) / s)
    return inside - np.exp(epsilon) * (ndtr((left - n) / t) + ndtr((n - right) / t))


@pytest.mark.benchmark(group="one Gaussian each, one curve", timer=time.process_time)
@pytest.mark.parametrize("form", ["fastpriv", "NumPy"])
def test_one_gaussian_each(benchmark, curve, form):
    p, q = GaussianMixture.single(0.5, 1.3), GaussianMixture.single(0.0, 1.0)
    found = hockey_stick_divergence(p, q, curve)
    assert found.method.startswith("closed form")
    if form == "fastpriv":
        found = benchmark(hockey_stick_divergence, p, q, curve).value
    else:
        found = benchmark(gaussian_line, curve, 0.5, 1.3, 0.0, 1.0)
    np.testing.assert_allclose(found, gaussian_line(curve, 0.5, 1.3, 0.0, 1.0), rtol=1e-9)
    microseconds(benchmark, CURVE)


@pytest.mark.benchmark(group="group of eight, subsampled, one curve", timer=time.process_time)
@pytest.mark.parametrize("form", ["fastpriv", "dp_accounting"])
def test_group(benchmark, curve, form):
    rate, size = 0.2, 8
    weights = [comb(size, i) * rate**i * (1 - rate) ** (size - i) for i in range(size + 1)]
    p, q = GaussianMixture(weights, np.arange(size + 1.0), 3.0), GaussianMixture.single(0.0, 3.0)
    want = hockey_stick_divergence(p, q, curve)
    if form == "fastpriv":
        benchmark(hockey_stick_divergence, p, q, curve)
        microseconds(benchmark, CURVE)
        return
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    loss = module.MixtureGaussianPrivacyLoss(
        3.0, list(range(size + 1)), weights, adjacency_type=module.AdjacencyType.REMOVE
    )
    found = benchmark(loss.get_delta_for_epsilon, curve.tolist())
    np.testing.assert_allclose(found, want.value, rtol=1e-6, atol=1e-12)
    microseconds(benchmark, CURVE)
