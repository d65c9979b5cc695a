"""Binary entropy and the capacity of the binary asymmetric channel over a hundred thousand channels."""

import numpy as np
import pytest
from scipy.special import xlog1py, xlogy

from fastpriv import special

CHANNELS = 100_000


@pytest.fixture(scope="module")
def crossovers():
    rng = np.random.default_rng(2)
    return rng.random(CHANNELS), rng.random(CHANNELS)


def entropy(p):
    return -(xlogy(p, p) + xlog1py(1 - p, -p))


def closed_form(a, b):
    """Equation (11) as a person types it: 0/0 near a + b = 1."""
    h, k, gap = entropy(a), entropy(b), 1 - a - b
    return np.logaddexp(-((1 - b) * h - a * k) / gap, -((1 - a) * k - b * h) / gap)


def blahut_arimoto(a, b, steps=200):
    """The general algorithm, on all channels at once."""
    w = np.full_like(a, 0.5)
    for _ in range(steps):
        q = (1 - w) * a + w * (1 - b)
        d0 = xlogy(a, a / q) + xlogy(1 - a, (1 - a) / (1 - q))
        d1 = xlogy(1 - b, (1 - b) / q) + xlogy(b, b / (1 - q))
        w = 1 / (1 + (1 - w) / w * np.exp(d0 - d1))
    return (1 - w) * d0 + w * d1


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_fastpriv(benchmark, crossovers):
    capacity = benchmark(special.bac_capacity, *crossovers)
    away = np.abs(1 - crossovers[0] - crossovers[1]) > 0.1
    np.testing.assert_allclose(capacity[away], closed_form(*crossovers)[away], rtol=1e-11)


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_closed_form(benchmark, crossovers):
    capacity = benchmark(closed_form, *crossovers)
    np.testing.assert_allclose(capacity, special.bac_capacity(*crossovers), rtol=1e-9, atol=1e-9)


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_blahut_arimoto(benchmark, crossovers):
    capacity = benchmark.pedantic(blahut_arimoto, args=crossovers, rounds=2)
    np.testing.assert_allclose(capacity, special.bac_capacity(*crossovers), atol=1e-4)


@pytest.mark.benchmark(group="binary entropy, 1e5 points")
def test_entropy_fastpriv(benchmark, crossovers):
    np.testing.assert_allclose(benchmark(special.binary_entropy, crossovers[0]), entropy(crossovers[0]), rtol=1e-13)


@pytest.mark.benchmark(group="binary entropy, 1e5 points")
def test_entropy_scipy_xlogy(benchmark, crossovers):
    values = benchmark(entropy, crossovers[0])
    np.testing.assert_allclose(values, special.binary_entropy(crossovers[0]), rtol=1e-13)
