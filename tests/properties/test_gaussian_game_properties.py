"""Gaussian information: concave in the signal, convex in the noise, monotone, and a game with a value."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fastpriv.capacity import average_power_capacity, gaussian_game, gaussian_information
from properties.drawn import QUICK

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 6)


def drawn(seed, d, count):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(count, d, d))
    return a @ a.swapaxes(1, 2) + 0.01 * np.eye(d)


@QUICK
@given(SEEDS, SIZES)
def test_data_processing(seed, d):
    """Less noise or more signal never carries less; dropping coordinates of the release never carries more."""
    x, y, z = drawn(seed, d, 3)
    plain = gaussian_information(x, y)
    assert gaussian_information(x, y + z).lower <= plain.upper
    assert gaussian_information(x + z, y).upper >= plain.lower
    assert gaussian_information(x[:-1, :-1], y[:-1, :-1]).lower <= plain.upper if d > 1 else True


@QUICK
@given(SEEDS, SIZES, st.floats(0, 1))
def test_concave_in_the_signal_and_convex_in_the_noise(seed, d, s):
    x, z, y = drawn(seed, d, 3)
    ends = gaussian_information(np.stack([x, z]), y)
    assert gaussian_information(s * x + (1 - s) * z, y).upper >= s * ends.lower[0] + (1 - s) * ends.lower[1] - 1e-14
    ends = gaussian_information(y, np.stack([x, z]))
    assert gaussian_information(y, s * x + (1 - s) * z).lower <= s * ends.upper[0] + (1 - s) * ends.upper[1] + 1e-14


@QUICK
@given(SEEDS, SIZES, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_any_pair_of_players_brackets_the_value(seed, d, signal_power, noise_power):
    """Against the other player's best choice nobody does better than the value."""
    x, y = (k / np.trace(k) for k in drawn(seed, d, 2))
    game = gaussian_game(d, signal_power, noise_power)
    assert gaussian_information(signal_power * x, game.noise).lower <= game.value.upper * (1 + 1e-13)
    assert gaussian_information(game.signal, noise_power * y).upper >= game.value.lower * (1 - 1e-13)


@QUICK
@given(st.integers(1, 10**6), st.floats(1e-100, 1e100), st.floats(1e-100, 1e100), st.floats(1, 1e3))
def test_average_power(d, amplitude, sigma, factor):
    here = average_power_capacity(d, amplitude, sigma)
    assert average_power_capacity(d, factor * amplitude, sigma).upper >= here.lower
    assert average_power_capacity(d + 1, amplitude, sigma).upper >= here.lower
