"""Binary entropy and the capacity of the binary asymmetric channel over a hundred thousand channels."""

import numpy as np
import pytest
from comparison.capacities import bac_blahut_arimoto, bac_closed_form, entropy

from fastpriv import special

CHANNELS = 100_000


@pytest.fixture(scope="module")
def crossovers():
    rng = np.random.default_rng(2)
    return rng.random(CHANNELS), rng.random(CHANNELS)


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_fastpriv(benchmark, crossovers):
    capacity = benchmark(special.bac_capacity, *crossovers)
    away = np.abs(1 - crossovers[0] - crossovers[1]) > 0.1
    np.testing.assert_allclose(capacity[away], bac_closed_form(*crossovers)[away], rtol=1e-11)


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_closed_form(benchmark, crossovers):
    capacity = benchmark(bac_closed_form, *crossovers)
    np.testing.assert_allclose(capacity, special.bac_capacity(*crossovers), rtol=1e-9, atol=1e-9)


@pytest.mark.benchmark(group="bac capacity, 1e5 channels")
def test_capacity_blahut_arimoto(benchmark, crossovers):
    capacity = benchmark.pedantic(bac_blahut_arimoto, args=crossovers, rounds=2)
    np.testing.assert_allclose(capacity, special.bac_capacity(*crossovers), atol=1e-4)


@pytest.mark.benchmark(group="binary entropy, 1e5 points")
def test_entropy_fastpriv(benchmark, crossovers):
    np.testing.assert_allclose(benchmark(special.binary_entropy, crossovers[0]), entropy(crossovers[0]), rtol=1e-13)


@pytest.mark.benchmark(group="binary entropy, 1e5 points")
def test_entropy_scipy_xlogy(benchmark, crossovers):
    values = benchmark(entropy, crossovers[0])
    np.testing.assert_allclose(values, special.binary_entropy(crossovers[0]), rtol=1e-13)
