"""Notions of many distinct values behind Gaussian noise, beside sums over all pairs of values and releases.

Run: pytest benches/bench_many_values.py
"""

import numpy as np
import pytest

from fastpriv import GaussianMechanism, Pmf, assess, mutual_information, notions
from fastpriv.distributions.pmf import grouped_atoms


@pytest.fixture(scope="module")
def incomes():
    return Pmf.from_data(np.random.default_rng(0).lognormal(2, 1.5, 10_000))


def information_by_hand(prior, sigma):
    y = np.linspace(prior.values[0] - 9 * sigma, prior.values[-1] + 9 * sigma, 1001)
    density = np.zeros(y.size)
    for x, w in zip(prior.values, prior.probabilities, strict=True):
        density += w * np.exp(-0.5 * ((y - x) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    terms = np.where(density > 0, -density * np.log(np.maximum(density, 1e-300)), 0.0)
    return terms.sum() * (y[1] - y[0]) - 0.5 * np.log(2 * np.pi * np.e * sigma**2)


@pytest.mark.benchmark(group="mutual information of 10,000 values")
def test_information_by_hand(benchmark, incomes):
    benchmark.pedantic(information_by_hand, (incomes, 60.0), rounds=3)


@pytest.mark.benchmark(group="mutual information of 10,000 values")
def test_information(benchmark, incomes):
    assert mutual_information(incomes, 60.0).value == pytest.approx(information_by_hand(incomes, 60.0), rel=1e-6)
    benchmark.pedantic(mutual_information, (incomes, 60.0), rounds=3)


@pytest.mark.parametrize("sigma", [6.0, 60.0, 6000.0])
@pytest.mark.benchmark(group="ABP of 10,000 values")
def test_abp(benchmark, incomes, sigma):
    found = benchmark.pedantic(notions.abp, (incomes, GaussianMechanism(sigma)), rounds=3)
    assert found.mean.upper <= found.maximum.upper


@pytest.mark.parametrize("sigma", [6.0, 60.0])
@pytest.mark.benchmark(group="pointwise information of 10,000 values")
def test_pointwise(benchmark, incomes, sigma):
    found = benchmark.pedantic(notions.pointwise_lmip, (incomes, GaussianMechanism(sigma)), rounds=3)
    assert found.upper >= mutual_information(incomes, sigma).lower


@pytest.mark.benchmark(group="grouping of a million values")
def test_grouping(benchmark):
    x = np.unique(np.random.default_rng(0).lognormal(2, 1.5, 1_000_000))
    w = np.full(x.size, 1 / x.size)
    found = benchmark.pedantic(grouped_atoms, (x, w, 60.0), rounds=3)
    assert found.values.size < 10_000


@pytest.mark.benchmark(group="assess of 100,000 different values")
def test_assess(benchmark):
    values = np.random.default_rng(0).lognormal(10, 1, 100_000)
    found = benchmark.pedantic(assess, (values,), {"n_jobs": 1}, rounds=1)
    assert len(found.prior) == 100_000


@pytest.mark.benchmark(group="LIP curve of 100,000 values where delta is near 1")
def test_logarithms_near_zero(benchmark):
    prior = Pmf.from_data(np.random.default_rng(0).lognormal(10, 1, 100_000))
    arguments = prior, GaussianMechanism(1.5e5), np.geomspace(0.01, 100, 81)
    _, logarithm = benchmark.pedantic(notions.lip_curves, arguments, rounds=3)
    assert (logarithm.upper - logarithm.lower <= 1e-10 * np.abs(logarithm.value)).all()
