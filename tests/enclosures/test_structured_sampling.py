"""Certified curves of records that take part in one random step, against quadrature in one and two dimensions."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from fastpriv import Estimate, GaussianMechanism, PoissonSampledGaussian, compose
from fastpriv.composition import BallsInBins, BandedMatrixMechanism, RandomAllocation
from fastpriv.pairs.allocations import IMPROVED_DELTAS, AllocationPair
from fastpriv.pairs.log_normal_sums import AtomicLaw, LawsOfSum, SumBounds, log_normal_sum, log_normal_sum_near
from oracles import structured_sampling as oracle

DIRECTIONS = ("forward", "backward")


@pytest.mark.parametrize("scale", [1e-6, 0.01, 0.5, 1.0, 4.0, 12.0])
def test_one_step_is_the_gaussian_mechanism(scale):
    epsilon = scale * np.array([0.0, 0.3, 1.0, 3.0, 8.0]) + 0.5 * scale**2
    truth = [oracle.one_step(scale, e) for e in epsilon]
    for direction in DIRECTIONS:
        found = RandomAllocation(1.0 / scale, 1).delta(epsilon, direction=direction)
        assert (found.lower <= truth).all(), (found, truth)
        assert (truth <= found.upper).all(), (found, truth)
        assert found.kind == "certified"
        if scale >= 0.01:
            assert (found.upper <= 1.01 * found.lower).all(), found


@pytest.mark.few(2)
@pytest.mark.parametrize(("scale", "steps", "epsilon"), [
    (1.0, 2, 0.0), (1.0, 2, 0.5), (1.0, 2, 4.0), (2.0, 2, 3.0), (0.25, 2, 0.3), (1e-3, 2, 1e-3), (4.0, 2, 10.0),
    (0.2, 3, 0.1), (0.5, 3, 0.7),
])
def test_two_and_three_steps(scale, steps, epsilon):
    gram = oracle.toeplitz([1.0], 1.0 / scale, steps)
    for direction in DIRECTIONS:
        lattice = min(0.25, 0.2 / scale), 9.0 + scale
        truth = (math.exp(oracle.bins_log_delta(gram, epsilon, direction == "backward", *lattice)) if steps == 2
                 else oracle.bins_delta(gram, epsilon, direction == "backward", *lattice))
        found = RandomAllocation(1.0 / scale, steps).delta(epsilon, direction=direction)
        law = AllocationPair(scale, steps, direction == "backward", IMPROVED_DELTAS, 1).curve(np.array([epsilon]))
        for bounds, width in ((found, 1e-10), (law, 0.01)):
            assert bounds.lower <= truth * (1 + 1e-12), (direction, truth, bounds)
            assert truth * (1 - 1e-12) <= bounds.upper, (direction, truth, bounds)
            assert bounds.upper <= (1.0 + width) * bounds.lower, (direction, bounds)
        assert law.value == pytest.approx(truth, rel=1e-4), (direction, law)


@pytest.mark.parametrize("steps", [2, 3, 4, 5, 7, 12])
@pytest.mark.parametrize("scale", [0.5, 3.0])
def test_laws_of_sums_keep_their_mean_and_enclose_their_variance(steps, scale):
    near = log_normal_sum_near(scale, steps, 45.0, 600, (0.5 * steps, 2.0 * steps))
    for bounds in (log_normal_sum(scale, steps, 45.0), near):
        for side, sign in (("below", -1.0), ("above", 1.0)):
            one, other = (getattr(laws, side) for laws in (bounds.first, bounds.second))
            means = [law.atoms @ law.masses for law in (one, other)]
            squares = [(law.atoms - mean) ** 2 @ law.masses for law, mean in zip((one, other), means, strict=True)]
            assert sum(means) == pytest.approx(steps, rel=1e-9)
            assert sign * (sum(squares) / (steps * math.expm1(scale**2)) - 1.0) > 0.0


@pytest.mark.parametrize(("scale", "steps", "adds"), [(1.0, 100, False), (1.0, 100, True), (3.0, 9, False)])
def test_bounds_near_a_level_are_of_second_order(scale, steps, adds):
    levels = np.sort(log_normal_sum(scale, steps, 45.0).levels(np.array([-15.0, -17.0]), adds))
    widths = []
    for cells in (300, 600, 1200):
        _, lower, upper = log_normal_sum_near(scale, steps, 45.0, cells, tuple(levels)).excesses(levels, adds)
        widths.append((upper / lower - 1.0).max())
    assert widths[1] < 0.01
    assert widths[2] < widths[1] / 2.5 < widths[0] / 6.0


@pytest.mark.parametrize("steps", [2, 9])
@pytest.mark.parametrize("deficit", [False, True])
def test_many_levels_are_as_few(steps, deficit):
    bounds = log_normal_sum(1.5, steps, 45.0)
    levels = np.random.default_rng(1).permutation(np.geomspace(1e-6, 1e9, 4001))
    many = bounds.excesses(levels, deficit)
    few = np.concatenate([bounds.excesses(part, deficit) for part in np.array_split(levels, 5)], axis=1)
    assert np.abs(many - few).max(where=few < 1e-290, initial=0.0) < 1e-280
    used = few[1] > 1e-290
    np.testing.assert_allclose(many[:, used], few[:, used], rtol=1e-9)
    assert (many[1] <= few[2]).all()
    assert (few[1] <= many[2]).all()


@pytest.mark.slow
def test_more_steps_and_more_noise_are_more_private():
    epsilon = np.array([0.01, 0.1, 0.5, 1.0])
    for direction in DIRECTIONS:
        rows = [RandomAllocation(1.0, t).delta(epsilon, direction=direction) for t in (1, 3, 10, 31)]
        for before, after in itertools.pairwise(rows):
            assert (after.upper <= before.upper).all()
        rows = [RandomAllocation(s, 30).delta(epsilon, direction=direction) for s in (0.5, 1.0, 2.0)]
        for before, after in itertools.pairwise(rows):
            assert (after.upper < before.lower).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(("sigma", "steps", "delta"), [
    (2.0, 10, 1e-3), (0.3, 100, 1e-20), (0.1, 30, 1e-6), (1.0, 5, 1e-200),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in itertools.product(
        (0.3, 0.5, 1.0, 2.0, 10.0), (100, 4321, 100_000), (1e-6, 1e-10, 1e-15, 1e-20))),
])
def test_epsilon_is_within_a_thousandth(sigma, steps, delta):
    one = RandomAllocation(sigma, steps)
    for direction in DIRECTIONS:
        found = one.epsilon(delta, direction=direction)
        assert found.width < 2e-4
        assert one.delta(found.upper, direction=direction).upper <= delta * (1 + 1e-12)
        assert one.delta(found.lower, direction=direction).upper >= delta


def test_monte_carlo_of_a_hundred_steps():
    rng, scale, steps, samples = np.random.default_rng(5), 1.0, 100, 40_000
    ratio = np.exp(scale * rng.standard_normal((samples, steps)) - 0.5 * scale**2).mean(axis=1)
    epsilon = 0.1
    for direction, values in (("forward", np.maximum(ratio - math.exp(epsilon), 0.0)),
                              ("backward", np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0))):
        found = RandomAllocation(1.0, steps).delta(epsilon, direction=direction)
        assert abs(values.mean() - found.value) < 5.0 * values.std() / math.sqrt(samples)


@pytest.mark.slow
def test_extreme_parameters():
    assert RandomAllocation(1.0, 10, sensitivity=0.0).delta([0.0, 1.0]).upper.max() == 0.0
    for sigma in (1e-3, 0.03, 1e9):
        found = RandomAllocation(sigma, 50).delta([0.0, 1.0, 650.0, 800.0])
        assert (found.lower >= 0.0).all()
        assert (found.upper <= 1.0).all()
    assert RandomAllocation(1e9, 50).delta(0.0).upper < 1e-9
    for sigma in (1e11, 1e13, 1e90, 1e300):  # delta(0) is nearly that of the Gaussian mechanism with sqrt(50) sigma
        found, truth = RandomAllocation(sigma, 50).delta(0.0), 1.0 / (sigma * math.sqrt(2.0 * math.pi * 50))
        assert found.lower <= truth * (1 + 1e-9)
        assert truth <= found.upper <= 8.0 * truth + 1e-299
    assert RandomAllocation(0.03, 50).delta(0.0).lower > 0.9
    assert RandomAllocation(1.0, 10**9).epsilon(1e-6, direction="forward").upper < 1e-3


@pytest.mark.slow
def test_epochs_of_one_step_are_gaussian():
    truth = GaussianMechanism(1.0, math.sqrt(2.0)).delta(1.0).value
    found = RandomAllocation(1.0, 1, epochs=2).delta(1.0)
    assert found.lower <= truth <= found.upper


def test_epochs_are_steps_of_a_composition():
    once, twice = RandomAllocation(1.0, 20), RandomAllocation(1.0, 20, epochs=2)
    assert compose(once, 2).forward_pairs == compose(twice).forward_pairs


@pytest.mark.slow
@pytest.mark.parametrize("epochs", [2, 4, 10])
def test_epochs_against_sampling(epochs):
    rng, steps, samples, epsilon = np.random.default_rng(7), 8, 60_000, 1.0
    log_ratio = np.zeros(samples)
    for _ in range(epochs):
        log_ratio += np.log(np.exp(rng.standard_normal((samples, steps)) - 0.5).mean(axis=1))
    one = RandomAllocation(1.0, steps, epochs=epochs)
    for direction, values in (("forward", np.maximum(np.exp(log_ratio) - math.exp(epsilon), 0.0)),
                              ("backward", np.maximum(1.0 - np.exp(epsilon + log_ratio), 0.0))):
        found = one.delta(epsilon, direction=direction)
        assert found.upper <= 1.01 * found.lower, found
        spread = 5.0 * values.std() / math.sqrt(samples)
        assert found.lower - spread < values.mean() < found.upper + spread


def test_cyclic_poisson_sampling_of_a_banded_matrix():
    """Steps of one subset have orthogonal columns: the reduction to a composition, from samples of the whole output."""
    column, sigma, rate, steps, epsilon = np.array([1.0, 0.6]), 1.0, 0.3, 5, 0.8
    matrix = np.zeros((steps + 1, 3))
    for place, step in enumerate((0, 2, 4)):
        matrix[step : step + 2, place] = column
    rng, samples = np.random.default_rng(3), 200_000
    x = sigma * rng.standard_normal((samples, steps + 1))
    ratio = np.zeros(samples)
    for chosen in itertools.product((0, 1), repeat=3):
        mean = matrix @ np.array(chosen)
        weight = math.prod(rate if taken else 1.0 - rate for taken in chosen)
        ratio += weight * np.exp((x @ mean - 0.5 * mean @ mean) / sigma**2)
    values = np.maximum(ratio - math.exp(epsilon), 0.0)
    step = PoissonSampledGaussian(sigma, rate, sensitivity=float(np.linalg.norm(column)))
    found = compose(step, math.ceil(steps / column.size)).delta(epsilon, direction="forward")
    assert found.upper < 1.000001 * found.lower
    assert abs(values.mean() - found.value) < 5.0 * values.std() / math.sqrt(samples)


def test_bins_over_epochs_are_an_allocation_of_longer_contributions():
    bins, allocation = BallsInBins(3.0, 40, epochs=9), RandomAllocation(1.0, 40)
    assert bins.delta(0.5) == allocation.delta(0.5)
    assert BandedMatrixMechanism([1.0], 3.0, 40, epochs=9).delta(0.5) == allocation.delta(0.5)


@pytest.mark.parametrize(("second", "epochs", "epsilon"), [(0.5, 1, 0.5), (1.0, 2, 2.0), (0.1, 3, 1.0)])
def test_two_correlated_bins(monkeypatch, second, epochs, epsilon):
    one = BandedMatrixMechanism([1.0, second], 2.0, 2, epochs=epochs)
    truth = oracle.bins_delta(oracle.toeplitz([1.0, second], 2.0, 2, epochs), epsilon, False, 0.2, 10.0)
    found = one.delta(epsilon, direction="forward")
    assert found.lower <= truth * (1 + 1e-12)
    assert truth * (1 - 1e-12) <= found.upper
    nothing = Estimate(0.5, 0.0, 1.0, kind="certified", unit="probability", method="")  # samples alone
    monkeypatch.setattr(BandedMatrixMechanism, "delta", lambda *arguments, **options: nothing, raising=False)
    sampled = one.sampled_delta(epsilon, rng=3, confidence=0.9999, max_samples=30_000)
    assert sampled.kind == "statistical"
    assert sampled.lower <= truth <= sampled.upper
    assert sampled.value == pytest.approx(truth, rel=0.1)


def test_objects():
    for one in (RandomAllocation(1.0, 5), BallsInBins(1.0, 5), BandedMatrixMechanism([1.0, 0.5], 1.0, 5)):
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert hash(again) == hash(one)
        assert compose(again) == compose(one)
        assert compose(pickle.loads(pickle.dumps(compose(one)))) == compose(one)


@pytest.mark.parametrize("epsilon", [20.0, 30.0, 1e9])
def test_no_delta_is_claimed_to_be_zero(epsilon):
    """Losses are unbounded in both directions: delta is positive, however far below the smallest double."""
    for one in (RandomAllocation(2.0, 10), BallsInBins(2.0, 10), BandedMatrixMechanism([1.0, 0.5], sigma=2.0, bins=10)):
        for direction in ("forward", "backward"):
            found = one.delta(epsilon, direction=direction)
            assert found.lower == 0.0
            assert 0.0 < found.upper < 1e-250
    assert RandomAllocation(2.0, 10).epsilon(log_delta=-1000.0, direction="forward").upper == math.inf


def test_what_lies_at_infinity_is_added_to_the_upper_bound_once():
    """Two terms that are 1, but for parts at infinity whose means are 0.25 and 0.125: E (S - x)^+ = 2 - x + those."""
    below = AtomicLaw(np.ones(1), np.ones(1))
    first, second = (LawsOfSum(below, AtomicLaw(np.ones(1), np.ones(1), more), 0.0, 0.0) for more in (0.25, 0.125))
    level = np.array([0.5, 1.5])
    _, lower, upper = SumBounds(first, second, 2).excesses(level, deficit=False)
    np.testing.assert_allclose(lower, 2 - level, rtol=1e-13)
    np.testing.assert_allclose(upper, 2 - level + 0.375, rtol=1e-13)
    assert np.all((lower <= 2 - level) & (upper >= 2 - level + 0.375))
