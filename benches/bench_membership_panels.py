"""Panels of packed bits: the products behind likelihood ratio tests, counts of members, Gram matrices, simulation.

Each group has the line of NumPy that one would write, on the matrix of doubles that it needs. Two threads each.
"""

import numpy as np
import pytest

from fastpriv.studies.membership import FixedSizeMembership, FrequencyRelease, GaussianNoise, Panel

PEOPLE, ATTRIBUTES, RELEASES = 800, 5000, 1000


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(0).random((PEOPLE, ATTRIBUTES)) < 0.3


@pytest.fixture(scope="module")
def panel(values):
    return Panel(values)


@pytest.fixture(scope="module")
def released():
    return np.random.default_rng(1).standard_normal((RELEASES, ATTRIBUTES))


@pytest.fixture(scope="module")
def members():
    return np.random.default_rng(2).random((RELEASES, PEOPLE)) < 0.5


@pytest.mark.benchmark(group="1,000 products D x of 800 x 5,000")
def test_products(benchmark, panel, values, released):
    found = benchmark(lambda: panel.products(released.T, n_jobs=2))
    np.testing.assert_allclose(found[:5], values[:5].astype(float) @ released.T, rtol=0, atol=1e-11)


@pytest.mark.benchmark(group="1,000 products D x of 800 x 5,000")
def test_products_numpy(benchmark, values, released):
    benchmark(lambda: values.astype(float) @ released.T)


@pytest.mark.benchmark(group="frequencies of 1,000 memberships of 800 x 5,000")
def test_counts(benchmark, panel, values, members):
    found = benchmark(lambda: panel.counts(members, n_jobs=2))
    np.testing.assert_array_equal(found[:5], members[:5].astype(int) @ values.astype(int))


@pytest.mark.benchmark(group="frequencies of 1,000 memberships of 800 x 5,000")
def test_counts_numpy(benchmark, values, members):
    benchmark(lambda: members.astype(float) @ values.astype(float))


@pytest.mark.benchmark(group="Gram matrix of 800 x 5,000")
def test_gram(benchmark, panel, values):
    found = benchmark(lambda: panel.gram(n_jobs=2))
    np.testing.assert_array_equal(found, values.astype(float) @ values.astype(float).T)


@pytest.mark.benchmark(group="Gram matrix of 800 x 5,000")
def test_gram_numpy(benchmark, values):
    def gram():
        matrix = values.astype(float)
        return matrix @ matrix.T

    benchmark(gram)


@pytest.mark.benchmark(group="1,000 simulated releases of 800 x 5,000")
def test_simulate(benchmark, panel):
    release = FrequencyRelease(panel, FixedSizeMembership(400), GaussianNoise(0.01))
    found = benchmark(lambda: release.simulate(RELEASES, rng=1))
    assert abs((found.released - release.frequencies(found.membership)).std() / 0.01 - 1) < 1e-2


@pytest.mark.benchmark(group="1,000 simulated releases of 800 x 5,000")
def test_simulate_numpy(benchmark, values):
    def simulate():
        rng = np.random.default_rng(1)
        members = rng.permuted(np.tile(np.arange(PEOPLE) < 400, (RELEASES, 1)), axis=1)
        return members.astype(float) @ values.astype(float) / 400 + 0.01 * rng.standard_normal((RELEASES, ATTRIBUTES))

    benchmark(simulate)
