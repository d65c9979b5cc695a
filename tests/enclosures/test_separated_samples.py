"""Cyclic Poisson samples and samples with a separation, against all patterns of few steps and sampling."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import GaussianMechanism, PoissonSampledGaussian, compose
from fastpriv.composition import BallsInBins, BandedMatrixMechanism, separated_samples
from fastpriv.pairs import CyclicPoissonSampled, PoissonSampled, SeparatedSampled
from oracles import separated_samples as oracle

DIRECTIONS = ("forward", "backward")
EPSILONS = (0.0, 0.25, 1.0, 3.0)
TRUTH_ERROR = 2e-4  # of the trapezoid rule, where the integrand has narrow bends: 7e-5 seen at a rate of 0.01


def moments(one):
    return separated_samples._log_moments(one, separated_samples._covariances(one))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "sigma", "steps", "rate"),
    [([1.0], 1.0, 3, 0.25), ([1.0, 0.5], 1.0, 3, 0.25), ([1.0, 0.5], 0.7, 2, 0.9), ([0.5, 1.5], 2.0, 3, 0.01)],
)
def test_cyclic_samples_by_all_patterns(column, sigma, steps, rate):
    """The last column of the first subset is cut in three steps; the second subset has no larger delta."""
    one = CyclicPoissonSampled(column, sigma, steps, rate, separation=2)
    scaled = [c / sigma for c in column]
    for direction in DIRECTIONS:
        for epsilon in EPSILONS:
            first, second = (
                oracle.delta(oracle.cyclic_patterns(steps, rate, 2, j), scaled, steps, epsilon, direction == "backward")
                for j in (0, 1)
            )
            found = one.delta(epsilon, direction=direction)
            print(column, direction, epsilon, found, first)
            assert found.lower <= first * (1 + TRUTH_ERROR) + 1e-12
            assert first * (1 - TRUTH_ERROR) - 1e-12 <= found.upper <= found.lower * (1 + 1e-6) + 1e-300
            assert second <= first * (1 + 1e-3) + 1e-12


@pytest.mark.slow
def test_cyclic_samples_of_replaced_records():
    truth = oracle.replaced_twice(math.hypot(1.0, 0.5) / 2.0, 0.25, 0.5)
    found = CyclicPoissonSampled([1.0, 0.5], 2.0, 4, 0.25, 2, relation="replace_one").delta(0.5)
    assert found.lower * (1 - 1e-4) <= truth <= found.upper * (1 + 1e-4)
    assert CyclicPoissonSampled([1.0, 0.5], 2.0, 4, 0.25, 2, relation="zero_out").delta(0.5).upper < found.lower


@pytest.mark.slow
def test_cyclic_samples_are_compositions():
    one = CyclicPoissonSampled([3.0, 4.0], 5.0, 40, 0.1, 4, sensitivity=2.0)
    assert one.epsilon(1e-6) == compose(PoissonSampled(GaussianMechanism(5.0, 10.0), 0.1), 10).epsilon(1e-6)
    cut = CyclicPoissonSampled([3.0, 4.0], 5.0, 41, 0.1, 4, sensitivity=2.0)
    parts = [PoissonSampled(GaussianMechanism(5.0, size), 0.1) for size in (10.0, 6.0)]
    assert cut.delta(1.0).value == pytest.approx(float(compose(parts, [10, 1]).delta(1.0).value), rel=1e-9)
    assert CyclicPoissonSampled([1.0], 1.0, 10, 0.0, 2).delta(0.0).upper == 0.0
    assert CyclicPoissonSampled([1.0], 1.0, 10, 0.5, 2, sensitivity=0.0).delta(0.0).upper == 0.0


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("column", "steps", "rate", "separation"),
    [([1.0], 4, 0.25, 2), ([0.8, 0.5], 5, 0.3, 2), ([0.7, 0.4, 0.3], 5, 0.6, 3), ([1.0, 0.5], 4, 1e-3, 4),
     ([0.5], 3, 0.5, 1), ([1.0, 1.0], 4, 1 - 2.0**-30, 2)],
)
def test_moments_by_all_patterns(column, steps, rate, separation):
    patterns = oracle.separated_patterns(steps, rate, separation)
    assert sum(patterns.values()) == 1
    found = moments(SeparatedSampled(column, 1.0, steps, rate, separation))
    for order in (2, 3, 4):
        truth = oracle.log_moment(patterns, column, order)
        print(column, order, found[order - 1], truth)
        assert truth * (1 - 1e-14) <= found[order - 1] <= truth * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("rate", [1e-300, 1e-100, 1e-9, 0.5, 1 - 2.0**-53])
@pytest.mark.parametrize("scale", [1e-160, 1e-3, 5.0])
def test_second_moments_at_the_ends(rate, scale):
    """Separation 2 and two steps: R = 1 - 2 p + p (w_1 + w_2), so that E R^2 = 1 + 2 p^2 (e^r - 1)."""
    found = moments(SeparatedSampled([scale], 1.0, 2, rate, 2))[1]
    p = rate / (1 + rate)
    truth = math.log1p(2.0 * p * p * math.expm1(scale * scale))
    assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-9) + 1e-8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "sigma", "steps", "rate"),
    [([1.0], 1.0, 3, 0.25), ([1.0, 0.5], 1.0, 3, 0.25), ([1.0, 0.5], 0.7, 2, 0.9), ([0.5, 1.5], 2.0, 3, 0.01),
     ([1.0, 1.0], 0.5, 3, 0.999)],
)
def test_separated_samples_by_all_patterns(column, sigma, steps, rate):
    patterns = oracle.separated_patterns(steps, rate, 2)
    one, scaled = SeparatedSampled(column, sigma, steps, rate, 2), [c / sigma for c in column]
    for direction in DIRECTIONS:
        for epsilon in EPSILONS:
            truth = oracle.delta(patterns, scaled, steps, epsilon, direction == "backward")
            found = one.delta(epsilon, direction=direction)
            print(column, rate, direction, epsilon, found.lower, truth, found.upper)
            assert found.lower <= truth * (1 + TRUTH_ERROR) + 1e-12
            assert truth * (1 - TRUTH_ERROR) - 1e-12 <= found.upper


@pytest.mark.slow
@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("column", "sigma", "steps", "rate", "separation", "epsilon"),
    [([1.0], 1.0, 64, 0.25, 8, 1.0), ([1.0, 0.5], 2.0, 48, 0.1, 4, 0.5), ([1.0, 0.5, 0.25], 2.0, 60, 0.9, 5, 2.0)],
)
def test_separated_samples_by_sampling(column, sigma, steps, rate, separation, epsilon):
    rng, samples, scaled = np.random.default_rng(7), 200_000, [c / sigma for c in column]
    one = SeparatedSampled(column, sigma, steps, rate, separation)
    for direction, present in (("forward", True), ("backward", False)):
        ratio = oracle.sampled_ratios(scaled, steps, rate, separation, present, samples, rng)
        values = np.maximum(1.0 - math.exp(epsilon) * (1.0 / ratio if present else ratio), 0.0)
        found, spread = one.delta(epsilon, direction=direction), 5.0 * values.std() / math.sqrt(samples)
        print(column, direction, found.lower, values.mean(), found.upper)
        assert found.lower <= values.mean() + spread
        assert values.mean() - spread <= found.upper


@pytest.mark.slow
def test_special_cases():
    """Separation 1 is Poisson sampling; rate 1 is balls in bins, also beside rates near it."""
    one = SeparatedSampled([1.0], 2.0, 50, 0.1, 1)
    assert one.delta(0.5) == compose(PoissonSampledGaussian(2.0, 0.1), 50).delta(0.5)
    assert SeparatedSampled([1.0], 2.0, 24, 1.0, 8).delta(0.5) == BallsInBins(2.0, 8, epochs=3).delta(0.5)
    for direction in DIRECTIONS:
        near = SeparatedSampled([1.0], 2.0, 24, 1 - 2.0**-40, 8).delta(0.5, direction=direction)
        exact = BallsInBins(2.0, 8, epochs=3).delta(0.5, direction=direction)
        assert near.lower <= exact.upper + 1e-9
        assert exact.lower <= near.upper + 1e-9
        cut = SeparatedSampled([1.0, 0.5], 2.0, 26, 1.0, 8).delta(0.5, direction=direction)
        wide = BandedMatrixMechanism([1.0, 0.5], 2.0, 8, epochs=4).delta(0.5, direction=direction)
        assert 0.0 < cut.lower <= cut.upper == wide.upper


@settings(max_examples=10, deadline=None)
@given(
    st.floats(0.3, 5.0), st.integers(1, 30), st.floats(1e-6, 1.0), st.integers(1, 5), st.floats(0.0, 1.0),
    st.floats(0.0, 4.0),
)
@pytest.mark.slow
def test_more_noise_and_lower_rates_prove_less(sigma, steps, rate, separation, second, epsilon):
    """Bounds of two mechanisms, one of which is a processing of the other, overlap in their order."""
    column = [1.0, second][:separation]
    one = SeparatedSampled(column, sigma, steps, rate, separation)
    noisier = SeparatedSampled(column, 1.5 * sigma, steps, rate, separation)
    shorter = SeparatedSampled(column, sigma, max(steps - 1, 1), rate, separation)
    for direction in DIRECTIONS:
        found = one.delta(epsilon, direction=direction)
        assert 0.0 <= found.lower <= found.upper <= 1.0
        for less in (noisier, shorter):
            assert less.delta(epsilon, direction=direction).lower <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "epsilon"), [
    (([1.0], 1e-150, 5, 0.5, 2), 1.0), (([1e-300], 1.0, 5, 0.5, 2), 1e-300),
    (([1.0], 1.0, 10**9, 1e-6, 100), 1.0), (([1.0, 1.0], 1.0, 1, 1e-300, 3), 0.1), (([1.0], 1e300, 9, 0.9, 4), 0.0),
    (([1e200, 1e150], 1e200, 3, 1e-9, 2), 2.0), (([1.0] * 40, 3.0, 4000, 0.5, 40), 700.0),
    (([1.0], 1.0, 4, 5e-324, 2), 0.0), (([1.0, 1e-300], 0.5, 4000, 0.999, 2), 3000.0), (([1.0], 2.0, 3, 1.0, 5), 0.5),
    (([1.0, 0.5], 2.0, 3, 1.0, 5), 0.5),
])
def test_the_ends(arguments, epsilon):
    for direction in DIRECTIONS:
        found = SeparatedSampled(*arguments).log_delta(epsilon, direction=direction)
        print(arguments, direction, found)
        assert found.lower <= found.upper <= 0.0
        end = SeparatedSampled(*arguments).epsilon(1e-9, direction=direction)
        assert 0.0 <= end.lower <= end.upper


@pytest.mark.slow
def test_objects_and_composition():
    one = SeparatedSampled([1.0, 0.5], 4.0, 32, 0.2, 4)
    again = pickle.loads(pickle.dumps(one))
    assert (again, hash(again)) == (one, hash(one))
    assert repr(one).startswith("SeparatedSampled(coefficients=[1.0, 0.5], sigma=4.0, steps=32, rate=0.2, separation=4")
    cyclic = CyclicPoissonSampled([1.0, 0.5], 4.0, 32, 0.2, 4)
    assert pickle.loads(pickle.dumps(cyclic)) == cyclic != one
    both = compose([one, GaussianMechanism(4.0, 1.0)], [2, 1])
    alone = compose(GaussianMechanism(4.0, 1.0))
    for level in np.linspace(0.1, 9.0, 9):  # chords are no less than the curve
        chord = one._bounding_pairs().dominating[0].log_delta(np.linspace(level, 20.0, 9)).upper[0]
        assert one.log_delta(level, direction="forward").upper <= chord + 1e-12
    assert alone.delta(0.25).lower < both.delta(0.25).upper < 1.0
    assert both.delta(0.25).lower <= compose(GaussianMechanism(4.0, 9.0)).delta(0.25).upper
