"""Certified curves of few correlated bins, against quadrature along other directions in 40 digits, and their proof."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from fastpriv import GaussianMechanism, compose
from fastpriv.composition import BallsInBins, BandedMatrixMechanism, RandomAllocation
from fastpriv.pairs import few_bins
from oracles import structured_sampling as oracle

DIRECTIONS = ("forward", "backward")
NO_BANDS, ONE_BAND, TWO_BANDS = (1.0,), (1.0, 0.5), (1.0, 0.9, 0.3)


def curve_of(coefficients, sigma, bins, direction, epochs=1):
    pair = BandedMatrixMechanism(coefficients, sigma, bins, epochs=epochs)._bounding_pairs().dominating[0]
    assert isinstance(pair, few_bins.FewBinsPair)
    return pair if direction == "forward" else pair.reversed()


@pytest.mark.few(1)
@pytest.mark.parametrize(("coefficients", "sigma", "epochs", "epsilon", "step", "reach"), [
    (ONE_BAND, 2.0, 1, 0.0, 0.25, 12), (ONE_BAND, 2.0, 1, 2.0, 0.25, 12), (ONE_BAND, 1.0, 1, 5.0, 0.25, 16),
    (ONE_BAND, 0.5, 2, 1.0, 0.125, 12), (ONE_BAND, 0.3, 1, 10.0, 0.125, 14), (NO_BANDS, 10.0, 1, 1.0, 0.5, 30),
    (NO_BANDS, 10.0, 1, 5.0, 0.25, 65), ((1.0, 1.0), 3.0, 4, 3.0, 0.25, 14), ((1.0, 1e-9), 1.0, 1, 0.5, 0.25, 12),
])
def test_two_bins(coefficients, sigma, epochs, epsilon, step, reach):
    gram = oracle.toeplitz(list(coefficients), sigma, 2, epochs)
    one = BandedMatrixMechanism(coefficients, sigma, 2, epochs=epochs)
    for direction in DIRECTIONS:
        truth = oracle.bins_log_delta(gram, epsilon, direction == "backward", step, reach)
        found = one.log_delta(epsilon, direction=direction)
        rounding = 1e-15 * abs(truth)
        assert found.lower - rounding <= truth <= found.upper + rounding, (direction, truth, found)
        assert found.width <= 1e-12 + 1e-13 * abs(truth), (direction, found)
        assert found.kind == "certified"


@pytest.mark.few(2)
@pytest.mark.parametrize(("coefficients", "sigma", "bins", "epochs", "epsilon", "step"), [
    (ONE_BAND, 2.0, 3, 1, 0.5, 0.2), (ONE_BAND, 0.7, 3, 1, 0.5, 0.1), (TWO_BANDS, 1.0, 3, 1, 2.0, 0.125),
    (TWO_BANDS, 5.0, 3, 3, 0.2, 0.25), (TWO_BANDS, 2.0, 4, 1, 0.3, 0.4), (NO_BANDS, 2.0, 4, 1, 0.0, 0.4),
])
def test_three_and_four_bins(coefficients, sigma, bins, epochs, epsilon, step):
    gram = oracle.toeplitz(list(coefficients), sigma, bins, epochs)
    one = BandedMatrixMechanism(coefficients, sigma, bins, epochs=epochs)
    for direction in DIRECTIONS:
        truth = oracle.bins_delta(gram, epsilon, direction == "backward", step, 9.0)
        found = one.delta(epsilon, direction=direction)
        assert found.lower <= truth * (1 + 1e-12), (direction, truth, found)
        assert truth * (1 - 1e-12) <= found.upper, (direction, truth, found)
        assert found.width <= 2e-10 * truth, (direction, found)


@pytest.mark.slow
@pytest.mark.parametrize(("coefficients", "sigma", "epsilon", "reach"), [
    (TWO_BANDS, 2.0, 1.0, 10), (TWO_BANDS, 2.0, 5.0, 12), (ONE_BAND, 10.0, 0.3, 9),
])
def test_three_bins_of_small_deltas(coefficients, sigma, epsilon, reach):
    gram = oracle.toeplitz(list(coefficients), sigma, 3)
    one = BandedMatrixMechanism(coefficients, sigma, 3)
    for direction in DIRECTIONS:
        truth = oracle.bins_log_delta(gram, epsilon, direction == "backward", 0.4, reach)
        found = one.log_delta(epsilon, direction=direction)
        assert found.lower <= truth <= found.upper, (direction, truth, found)
        assert found.width <= 1e-10, (direction, found)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 10.0])
def test_one_bin_is_the_gaussian_mechanism(sigma):
    epsilon = np.array([0.0, 0.5, 2.0, 10.0])
    truth = GaussianMechanism(sigma, math.hypot(1.0, 0.0)).log_delta(epsilon)
    for direction in DIRECTIONS:
        found = BandedMatrixMechanism([1.0], sigma, 1).log_delta(epsilon, direction=direction)
        assert (found.lower <= truth.upper).all()
        assert (truth.lower <= found.upper).all()
        assert (found.width <= 1e-12 + 1e-12 * np.abs(found.value)).all()
        exact = [oracle.one_step(1.0 / sigma, e) for e in epsilon[:2]]
        np.testing.assert_allclose(np.exp(found.value[:2]), exact, rtol=1e-12)


@pytest.mark.parametrize("nats", [1.0, 3.0, 6.0, 10.0])
def test_coarse_lattices_have_wide_bounds_that_hold(monkeypatch, nats):
    """The error of the rule and the points left out are then far above all roundings."""
    cases = [(ONE_BAND, 0.3, 2, 2.0), (ONE_BAND, 2.0, 2, 2.0), (NO_BANDS, 1.0, 2, 1.0), (TWO_BANDS, 1.0, 3, 1.0),
             (NO_BANDS, 0.5, 3, 6.0)]
    for (coefficients, sigma, bins, epsilon), direction in itertools.product(cases, DIRECTIONS):
        curve = curve_of(coefficients, sigma, bins, direction)
        truth = curve.log_delta(np.array([epsilon]))
        with monkeypatch.context() as patch:
            patch.setattr(few_bins, "_PRECISION", nats)
            found = curve.log_delta(np.array([epsilon]))
        assert found.lower[0] < truth.lower[0], (coefficients, sigma, bins, direction)
        assert truth.upper[0] < found.upper[0], (coefficients, sigma, bins, direction)
        assert "disagree" not in found.method
        if nats >= 6.0:
            assert found.upper[0] - found.lower[0] < 20.0 * math.exp(-nats)


@pytest.mark.parametrize(("row", "epochs"), [((1, 2), 1), ((3, 1), 5), ((2, 2, 1), 2), ((1,), 1)])
@pytest.mark.parametrize("bins", [3, 4])
def test_the_reduction_encloses_the_covariances(row, epochs, bins):
    curve = curve_of(np.array(row) / 3.0, 0.7, bins, "forward", epochs)
    problem = few_bins._reduced(curve.covariances)
    for half, sign in ((problem.half_low, -1), (problem.half_high, 1)):
        for i, j in itertools.product(range(bins), repeat=2):
            product = sum(Fraction(x) * Fraction(y) for x, y in zip(*problem.loadings[[i, j]].tolist(), strict=True))
            gap = 4 * Fraction(half) ** 2 + product - curve.covariances[abs(i - j)]
            assert 0 <= sign * gap <= Fraction(1, 10**13) * curve.covariances[0]
    truth = oracle.toeplitz((np.array(row) / 3.0).tolist(), 0.7, bins, epochs)
    for d in range(bins):
        assert float(curve.covariances[d]) == pytest.approx(float(truth[0][d]), rel=1e-14)


def test_delta_rises_with_each_covariance():
    epsilon = np.array([0.0, 0.3, 1.0, 4.0])
    for direction in DIRECTIONS:
        for bins in (2, 3):
            rows = [BandedMatrixMechanism([1.0, c], 1.5, bins, epochs=k).log_delta(epsilon, direction=direction)
                    for k, c in ((1, 0.0), (1, 0.1), (1, 0.5), (1, 1.0), (2, 1.0))]
            for before, after in itertools.pairwise(rows):
                assert (before.upper < after.lower).all()


@pytest.mark.slow
def test_processing_and_convexity():
    """Not more than with the bin known, and not more than with fewer bins of the same columns; convex in e^epsilon."""
    x = np.linspace(1.0, 4.0, 16)
    for direction in DIRECTIONS:
        rows = [BandedMatrixMechanism(ONE_BAND, 0.8, bins).delta(np.log(x), direction=direction) for bins in (2, 3, 4)]
        known = GaussianMechanism(0.8, math.sqrt(1.25)).delta(np.log(x))
        for before, after in itertools.pairwise((known, *rows)):
            assert (after.upper < before.lower).all()
        for row in rows[:2]:
            assert (row.lower[1:-1] <= 0.5 * (row.upper[2:] + row.upper[:-2])).all()


def test_allocations_are_bands_of_one():
    for direction in DIRECTIONS:
        pairs = ((RandomAllocation(2.0, 3), BandedMatrixMechanism([1.0], 2.0, 3)),
                 (BallsInBins(2.0, 2, epochs=9), BandedMatrixMechanism([1.0], 2.0, 2, epochs=9)))
        for one, other in pairs:
            assert one.log_delta(0.7, direction=direction) == other.log_delta(0.7, direction=direction)
            assert one.delta(0.7, direction=direction).width < 1e-11


def test_negative_epsilons_and_inverses():
    one = BandedMatrixMechanism(ONE_BAND, 2.0, 2)
    left, right = one.delta(-0.4, direction="forward"), one.delta(0.4, direction="backward")
    assert left.value == pytest.approx(-math.expm1(-0.4) + math.exp(-0.4) * right.value, rel=1e-14)
    for log_delta in (-5.0, -100.0, -5000.0):
        found = one.epsilon(log_delta=log_delta)
        assert found.width <= 1e-9 * found.value
        assert one.log_delta(found.upper).upper <= log_delta
        assert one.log_delta(found.lower).upper >= log_delta


@pytest.mark.slow
def test_a_composition_is_between_what_its_bounds_were():
    one = BandedMatrixMechanism(ONE_BAND, 0.5, 2)
    few = 1  # bins that are orthogonal
    found = compose(one, 3).delta(4.0, direction="forward")
    above, below = (compose(RandomAllocation(1.0, steps, sensitivity=one.scale), 3).delta(4.0, direction="forward")
                    for steps in (few, 2))
    assert below.upper < found.lower
    assert found.upper < above.lower
    assert found.upper < 1.0005 * found.lower


@pytest.mark.slow
def test_bounds_of_allocations_where_the_lattice_is_too_large(monkeypatch):
    for direction in DIRECTIONS:
        curve = curve_of(ONE_BAND, 2.0, 4, direction)
        truth = curve.curve(np.array([0.5, 40.0]))
        monkeypatch.setattr(few_bins, "_MAX_VALUES", 10)
        found = curve.curve(np.array([0.5, 40.0]))
        monkeypatch.undo()
        assert "closed-form bounds where it has too many points; bounds of allocations" in found.method
        assert (found.lower <= truth.lower).all()
        assert (truth.upper <= found.upper).all()
        assert found.upper[0] < 10.0 * found.lower[0]
        many = curve.curve(np.linspace(0.0, 2.0, 40))
        assert "trapezoidal" not in many.method
        assert (many.lower <= curve.curve(np.linspace(0.0, 2.0, 40)[:16]).upper[0]).all()


def test_bounds_that_disagree_are_widened(monkeypatch):
    curve = curve_of(ONE_BAND, 2.0, 2, "forward")
    level = np.array([1.0])
    least, most = few_bins._reduced(curve.covariances).elementary_bounds(level, False)
    truth = curve.log_delta(level)
    assert least[0] < truth.lower[0] < truth.upper[0] < most[0]
    false = (np.array([-1e-3]), np.array([-1e-4])), np.zeros(0, dtype=np.int64)
    monkeypatch.setattr(few_bins, "_lattice_sums", lambda *arguments: false)
    found = curve.log_delta(level)
    assert "bounds disagree: widened" in found.method
    assert found.lower[0] == least[0]
    assert found.upper[0] == -1e-4


@pytest.mark.slow
def test_extreme_parameters():
    epsilon = np.array([0.0, 1.0, 1e3, 1e9, np.inf])
    for sigma, bins in itertools.product((1e-9, 0.05, 1.0, 1e9, 1e90, 1e120), (1, 2, 4)):
        one = BandedMatrixMechanism(NO_BANDS, sigma, bins)
        for direction in DIRECTIONS:
            found = one.log_delta(epsilon, direction=direction)
            assert not np.isnan(found.value).any()
            assert (found.lower <= found.upper).all()
            assert (np.diff(found.upper) <= 1e-9).all()
    assert BandedMatrixMechanism(ONE_BAND, 1.0, 2, sensitivity=0.0).delta(0.0).upper == 0.0
    near = BandedMatrixMechanism(ONE_BAND, 1e9, 3).delta(0.0)
    assert near.width < 1e-9 * near.value
