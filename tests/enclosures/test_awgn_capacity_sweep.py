"""Random settings of the peak-power capacity: every bracket closes, and brackets of two tolerances overlap."""

import numpy as np
import pytest

from fastpriv import awgn_capacity
from fastpriv.kernels import _awgn

DIMENSIONS = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 64, 96, 128, 200, 300, 512, 1000, 4000, 100000]


def settings(count, seed):
    rng = np.random.default_rng(seed)
    d = rng.choice(DIMENSIONS, count)
    per_root = np.where(rng.random(count) < 0.3, 10.0 ** rng.uniform(-6, 0.2, count), rng.uniform(1.5, 10.0, count))
    return d, np.where(d == 1, 2.5, 1.0) * per_root * np.sqrt(d)


def check_settings_close(count, seed):
    d, amplitude = settings(count, seed)
    loose, tight = (awgn_capacity(d, amplitude, rtol=rtol) for rtol in (1e-9, 1e-12))
    for found, rtol in ((loose, 1e-9), (tight, 1.01e-12)):
        relative = found.width / found.value
        worst = int(np.argmax(relative))
        assert relative[worst] <= rtol, (d[worst], amplitude[worst], relative[worst])
    apart = np.maximum(loose.lower - tight.upper, tight.lower - loose.upper)
    worst = int(np.argmax(apart))
    assert apart[worst] <= 0, (d[worst], amplitude[worst], loose[worst], tight[worst])


@pytest.mark.slow
def test_random_settings_close():
    check_settings_close(120, seed=20)


@pytest.mark.slow
def test_many_random_settings_close():
    for seed in range(2):
        check_settings_close(1000, seed)


@pytest.mark.parametrize("radius", [62.0, 70.3, 80.0])
def test_long_intervals_agree_with_the_general_solver(radius):
    found = awgn_capacity(1, radius)
    _, lower, upper, slope, *_ = _awgn.solve(1.0, radius, 1e-9, None).numbers
    assert found.width <= 1e-8 * found.value
    assert found.lower <= upper
    assert lower <= found.upper
    assert abs(found.slope - slope) <= 1e-6 * slope
    assert found.radii[-1] == radius
    assert abs(found.probabilities.sum() - 1) < 1e-14


@pytest.mark.parametrize("radius", [61.5, 100.0, 1000.0, 1e5])
@pytest.mark.slow
def test_long_intervals_have_one_edge(radius):
    """Whatever the length, C = log((2R + c) / sqrt(2 pi e)) with one c, up to the proved width."""
    found = awgn_capacity(1, radius)
    assert found.width <= 1e-8 * found.value
    low, high = (np.exp(bound) * np.sqrt(2 * np.pi * np.e) - 2 * radius for bound in (found.lower, found.upper))
    assert low <= 3.98160794705 <= high
    assert abs(found.slope * (2 * radius + 3.98160794705) / 2 - 1) < 1e-5


@pytest.mark.slow
def test_the_input_of_a_long_interval_gives_its_information():
    """I(P) of the returned points, summed on a grid of its own, is what the bracket says."""
    radius = 75.0
    found = awgn_capacity(1, radius)
    points = np.concatenate((-found.radii, found.radii))
    weights = np.concatenate((found.probabilities, found.probabilities)) / 2
    y = np.linspace(-radius - 9, radius + 9, 16001)
    density = np.exp(-0.5 * (y[:, None] - points) ** 2) @ weights / np.sqrt(2 * np.pi)
    entropy = -np.sum(density * np.log(density)) * (y[1] - y[0])
    information = entropy - 0.5 * np.log(2 * np.pi * np.e)
    assert abs(information - found.value) <= 1e-9
