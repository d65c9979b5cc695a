"""delta(epsilon) of many subsampled Gaussian releases: one epsilon, a hundred, ten thousand; dp_accounting beside.

Run: pytest benches/bench_compose.py. The peer discretises with an interval that gives about 1e-4 relative accuracy.
"""

import numpy as np
import pytest

from fastpriv import GaussianMixture, PoissonSampledGaussian, compose
from fastpriv.composition import contour

SIGMA, RATE = 2.0, 0.01
#: count -> epsilon with log delta near -10 and its value, by contours in 60 digits (tests/oracles/contours.py)
TRUTHS = {3000: (1.0, -9.976374281896600782), 1_000_000: (30.0, -6.999371868065242389)}
COUNTS = {100: 0.1, 3000: 1.0, 10_000: 2.0, 1_000_000: 30.0}

#: releases at the rate 1e-6 and sigma 1 -> log delta(4e-6), by integrals (tests/enclosures/test_small_rates.py)
SMALL_RATES = {2: -16.1589257656793, 3: -15.72942605226789, 10: -14.4839159635}


def composition(count):
    contour._composition.cache_clear()
    noise = GaussianMixture.single(0.0, SIGMA)
    return compose((GaussianMixture([1 - RATE, RATE], [0.0, 1.0], SIGMA), noise), count)


def log_delta(count, epsilon):
    return composition(count).log_delta(epsilon)


def check(count):
    if count in TRUTHS:
        epsilon, truth = TRUTHS[count]
        found = log_delta(count, epsilon)
        assert found.lower <= truth + 1e-13
        assert found.upper >= truth - 1e-13
        assert found.upper - found.lower < 1e-9


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.benchmark(group="composition, one epsilon, nothing computed before")
def test_cold(benchmark, count):
    check(count)
    benchmark(log_delta, count, COUNTS[count])


@pytest.mark.benchmark(group="composition, one epsilon, nothing computed before")
def test_cold_dp_accounting(benchmark):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    def peer():
        one = pld.from_gaussian_mechanism(
            SIGMA, sampling_prob=RATE, value_discretization_interval=1e-4, use_connect_dots=True
        )
        return one.self_compose(3000).get_delta_for_epsilon(1.0)

    assert np.log(peer()) == pytest.approx(TRUTHS[3000][1], abs=1e-2)
    benchmark.pedantic(peer, rounds=3)


@pytest.mark.parametrize("points", [100, 10_000])
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.benchmark(group="composition, many epsilons, tables computed before")
def test_warm(benchmark, count, points):
    check(count)
    composed, epsilon = composition(count), np.linspace(0.0, 2 * COUNTS[count], points)
    found = composed.log_delta(epsilon)
    assert np.all(found.upper - found.lower < 1e-9)
    benchmark(composed.log_delta, epsilon)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.benchmark(group="composition, a hundred epsilons, nothing computed before")
def test_cold_curve(benchmark, count):
    check(count)
    benchmark(log_delta, count, np.linspace(0.0, 2 * COUNTS[count], 100))


@pytest.mark.parametrize("count", SMALL_RATES)
@pytest.mark.benchmark(group="composition, few releases at a small rate")
def test_small_rate(benchmark, count):
    few = compose(PoissonSampledGaussian(1.0, 1e-6), count)
    found = few.log_delta(4e-6)
    assert found.value == pytest.approx(SMALL_RATES[count], abs=1e-10)
    assert found.width < 1e-9
    benchmark(few.log_delta, 4e-6)
