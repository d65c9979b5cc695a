"""The Gaussian mechanism: delta, log delta and their inverses over a million settings, beside the lines people write.

The ratio within a group and one run is what is judged. Every bench asserts the answer; the peers' own tolerance says
how far theirs is off.
"""

import time

import numpy as np
import pytest
from comparison.accounting import epsilon_by_bisection, erfcx_difference, ndtr_difference
from scipy.special import log_ndtr

from fastpriv import GaussianMechanism, special

POINTS = 1_000_000


@pytest.fixture(scope="module")
def settings():
    rng = np.random.default_rng(1)
    return 10 ** rng.uniform(-2, 1.2, POINTS), 10 ** rng.uniform(-3, 2, POINTS)


def log_ndtr_difference(r, epsilon):
    c = epsilon / (2 * r)
    first, second = log_ndtr(r - c), epsilon + log_ndtr(-r - c)
    return first + np.log1p(-np.exp(np.minimum(second - first, 0.0)))


def agreement(got, want, where):
    return np.max(np.abs(got[where] / want[where] - 1))


@pytest.mark.benchmark(group="gaussian delta, 1e6 points")
def test_delta_fastpriv(benchmark, settings):
    delta = benchmark(special.gaussian_delta, *settings)
    logarithm = special.gaussian_log_delta(*settings)
    where = (delta > 1e-300) & (delta < 0.9)
    assert np.max(np.abs(np.log(delta[where]) / logarithm[where] - 1)) < 2e-14


@pytest.mark.benchmark(group="gaussian delta, 1e6 points")
def test_delta_scipy_ndtr(benchmark, settings):
    with np.errstate(all="ignore"):
        delta = benchmark(ndtr_difference, *settings)
    want = special.gaussian_delta(*settings)
    assert agreement(delta, want, (want > 1e-3) & np.isfinite(delta)) < 1e-9


@pytest.mark.benchmark(group="gaussian delta, 1e6 points")
def test_delta_scipy_erfcx(benchmark, settings):
    with np.errstate(all="ignore"):
        delta = benchmark(erfcx_difference, *settings)
    want = special.gaussian_delta(*settings)
    assert agreement(delta, want, (want > 1e-3) & np.isfinite(delta)) < 1e-9


def mechanism_of(r):
    """With a sigma and a sensitivity of its own for each setting."""
    sigma = 2.0 ** np.random.default_rng(2).integers(-3, 4, r.size)
    return GaussianMechanism(sigma, 2 * sigma * r)


@pytest.mark.benchmark(group="gaussian delta, 1e6 settings", timer=time.process_time)
@pytest.mark.parametrize("form", ["kernel", "GaussianMechanism, with bounds"])
def test_delta_with_bounds(benchmark, settings, form):
    """What the bounds cost beside the kernel: at most 1.3 times."""
    r, epsilon = settings
    want = special.gaussian_delta(r, epsilon)
    mechanism = mechanism_of(r)
    found = benchmark(special.gaussian_delta, r, epsilon) if form == "kernel" else benchmark(mechanism.delta, epsilon)
    if form != "kernel":
        np.testing.assert_array_equal(found.value, want)
        assert (found.lower <= want).all()
        assert (want <= found.upper).all()


@pytest.mark.benchmark(group="gaussian log delta, 1e6 settings", timer=time.process_time)
@pytest.mark.parametrize("form", ["kernel", "GaussianMechanism, with bounds"])
def test_log_delta_with_bounds(benchmark, settings, form):
    r, epsilon = settings
    want = special.gaussian_log_delta(r, epsilon)
    mechanism = mechanism_of(r)
    found = (
        benchmark(special.gaussian_log_delta, r, epsilon) if form == "kernel"
        else benchmark(mechanism.log_delta, epsilon)
    )
    if form != "kernel":
        np.testing.assert_array_equal(found.value, want)


@pytest.mark.benchmark(group="gaussian log delta, 1e6 points")
def test_log_delta_fastpriv(benchmark, settings):
    logarithm = benchmark(special.gaussian_log_delta, *settings)
    assert np.isfinite(logarithm).all()
    assert logarithm.max() <= 0


@pytest.mark.benchmark(group="gaussian log delta, 1e6 points")
def test_log_delta_scipy_log_ndtr(benchmark, settings):
    with np.errstate(all="ignore"):
        logarithm = benchmark(log_ndtr_difference, *settings)
    want = special.gaussian_log_delta(*settings)
    assert agreement(logarithm, want, np.isfinite(logarithm) & (want < -0.1) & (want > -5)) < 1e-9


SMALL = 1000


@pytest.mark.benchmark(group="gaussian epsilon for delta = 1e-5, 1e3 settings")
def test_epsilon_fastpriv(benchmark):
    r = np.geomspace(0.05, 10, SMALL)
    epsilon = benchmark(special.gaussian_epsilon, r, 1e-5)
    assert (special.gaussian_delta(r, epsilon) <= 1e-5 * (1 + 4e-15)).all()
    assert (special.gaussian_delta(r, epsilon * (1 - 1e-12)) > 1e-5).all()


@pytest.mark.benchmark(group="gaussian epsilon for delta = 1e-5, 1e3 settings")
def test_epsilon_bisection_on_ndtr(benchmark):
    r = np.geomspace(0.05, 10, SMALL)
    epsilon = benchmark(epsilon_by_bisection, r, np.full(SMALL, 1e-5))
    np.testing.assert_allclose(epsilon, special.gaussian_epsilon(r, 1e-5), rtol=1e-6)


@pytest.mark.benchmark(group="gaussian noise for (1, 1e-5)")
def test_noise_fastpriv(benchmark):
    noise = benchmark(special.gaussian_noise, 1.0, 1e-5)
    assert noise == pytest.approx(3.73063163481594, rel=1e-13)


@pytest.mark.benchmark(group="gaussian noise for (1, 1e-5)")
def test_noise_autodp(benchmark):
    mechanisms = pytest.importorskip("autodp.mechanism_zoo")
    calibrate = pytest.importorskip("autodp.calibrator_zoo").ana_gaussian_calibrator()
    found = benchmark(lambda: calibrate(mechanisms.ExactGaussianMechanism, 1.0, 1e-5))
    assert found.params["sigma"] == pytest.approx(3.73063163481594, rel=1e-4)


@pytest.mark.benchmark(group="gaussian noise for (1, 1e-5)")
def test_noise_dp_accounting(benchmark):
    module = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    parameters = pytest.importorskip("dp_accounting.pld.common").DifferentialPrivacyParameters(1.0, 1e-5)
    found = benchmark(module.GaussianPrivacyLoss.from_privacy_guarantee, parameters)
    assert found.standard_deviation == pytest.approx(3.73063163481594, rel=1e-3)
