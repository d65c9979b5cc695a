"""Properties of the Gaussian mechanism and the binary channel: monotonicity, round trips, symmetry, data processing."""

import math

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from fastpriv import bac_capacity, special
from fastpriv.capacity import binary_entropy

SLACK = 8e-15  # twice the stated error of a value
quick = settings(max_examples=150, deadline=None)

ratios = st.floats(-300, 150).map(lambda x: 10**x) | st.floats(1e-3, 1e3)
budgets = st.just(0.0) | st.floats(-300, 300).map(lambda x: 10**x) | st.floats(0, 1e3)
chances = st.floats(0, 1) | st.floats(-300, 0).map(lambda x: 10**x)
open_chances = chances.filter(lambda x: 1e-300 <= x < 1)


def at_most(smaller, larger):
    """smaller <= larger up to the stated relative error of the two logarithms."""
    return smaller <= larger or abs(smaller - larger) <= SLACK * max(abs(smaller), abs(larger))


@quick
@given(ratios, budgets, budgets)
def test_delta_falls_with_epsilon(r, one, other):
    low, high = sorted((one, other))
    assert at_most(special.gaussian_log_delta(r, high), special.gaussian_log_delta(r, low))
    assert special.gaussian_delta(r, high) <= special.gaussian_delta(r, low) * (1 + SLACK)


@quick
@given(ratios, ratios, budgets)
def test_delta_rises_with_r(one, other, epsilon):
    low, high = sorted((one, other))
    assert at_most(special.gaussian_log_delta(low, epsilon), special.gaussian_log_delta(high, epsilon))


@quick
@given(ratios, budgets)
def test_the_two_curves_agree(r, epsilon):
    delta, logarithm = special.gaussian_delta(r, epsilon), special.gaussian_log_delta(r, epsilon)
    assume(1e-300 < delta < 1 and logarithm < -1e-10)
    assert math.isclose(math.log(delta), logarithm, rel_tol=1e-14, abs_tol=1e-15)


@quick
@given(ratios, open_chances)
@example(1.0, 0.5)
@example(math.nextafter(0.5, 1), 0.5)
def test_epsilon_round_trip(r, delta):
    epsilon = special.gaussian_epsilon(r, delta)
    assert epsilon >= 0
    assume(math.isfinite(epsilon))
    assert special.gaussian_delta(r, epsilon) <= delta * (1 + SLACK)
    if epsilon > 0:
        assert special.gaussian_delta(r, special.gaussian_epsilon_below(r, delta)) >= delta * (1 - SLACK)


@quick
@given(budgets, open_chances)
def test_noise_round_trip(epsilon, delta):
    noise = special.gaussian_noise(epsilon, delta)
    assert noise > 0
    assume(1e-300 < noise < 1e300)
    assume(epsilon < 1e10)  # beyond, the rounding of r alone moves delta
    assert special.gaussian_delta(0.5 / noise, epsilon) <= delta * (1 + 1e-4)
    assert special.gaussian_epsilon(0.5 / noise, delta) <= epsilon * (1 + 1e-13) or epsilon < 1e-3


@quick
@given(ratios, open_chances, open_chances)
def test_epsilon_falls_with_delta(r, one, other):
    low, high = sorted((one, other))
    assume(low < high * (1 - 1e-10) and (1 - high) < (1 - low) * (1 - 1e-10))
    assert special.gaussian_epsilon(r, high) <= special.gaussian_epsilon(r, low)


@quick
@given(budgets, budgets, open_chances)
def test_noise_falls_with_epsilon(one, other, delta):
    low, high = sorted((one, other))
    assert special.gaussian_noise(high, delta) <= special.gaussian_noise(low, delta) * (1 + 1e-13)


@quick
@given(chances, chances)
def test_capacity_is_symmetric_and_bounded(a, b):
    capacity = special.bac_capacity(a, b)
    assert 0 <= capacity <= math.log(2) * (1 + SLACK)
    assert math.isclose(special.bac_capacity(b, a), capacity, rel_tol=SLACK, abs_tol=1e-320)
    flipped = special.bac_capacity_with_complements(1 - a, a, 1 - b, b)  # the outputs renamed
    if 1 - (1 - a) == a and 1 - (1 - b) == b:
        assert math.isclose(flipped, capacity, rel_tol=SLACK, abs_tol=1e-320)


@quick
@given(chances, chances, chances)
def test_capacity_obeys_data_processing(a, b, flip):
    """Sending the output through a symmetric channel cannot help; neither can it beat that channel."""
    after_a, after_b = a * (1 - flip) + (1 - a) * flip, b * (1 - flip) + (1 - b) * flip
    after = special.bac_capacity(after_a, after_b)
    assert after <= special.bac_capacity(a, b) * (1 + 1e-9) + 1e-16
    assert after <= special.bac_capacity(flip, flip) * (1 + 1e-9) + 1e-16


@quick
@given(st.floats(0, 1))
def test_symmetric_channel_is_one_minus_entropy(a):
    assert math.isclose(
        bac_capacity(a, a, unit="bits").value, 1 - binary_entropy(a, unit="bits").value, rel_tol=1e-9, abs_tol=4e-16
    )
