"""Contour sums with a little noise bound compositions whose loss has atoms."""

import math

import numpy as np
import pytest
from mpmath import exp, mpf

from fastpriv import GaussianMechanism, GaussianMixture
from fastpriv.composition.atom_sums import atom_bounds
from fastpriv.composition.laplace_sums import laplace_bounds
from fastpriv.composition.smoothed_sums import smoothed_bounds
from fastpriv.composition.steps import AtomStep, CurveStep, LaplaceStep, MixtureStep
from oracles.composition import delta_of_atoms


def enclose(found, truth, width):
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.upper - found.lower <= width).all()


def test_small_pairs_in_rational_numbers():
    steps = [(np.array([0.5, 0.25, 0.125, 0.0625, 0.0625]), np.array([0.25, 0.25, 0.25, 0.25, 0.0]), 3),
             (np.array([0.75, 0.25]), np.array([0.5, 0.5]), 4)]  # fmt: skip
    epsilon = np.array([0.0, 0.7, 2.0])
    found = smoothed_bounds([AtomStep(*step) for step in steps], epsilon)
    for truth, low, high in zip(delta_of_atoms(steps, epsilon), found.lower, found.upper, strict=True):
        assert exp(mpf(low)) <= truth <= exp(mpf(high))
        assert high - low <= 1e-3


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [10, 1000, 10**6])
def test_two_outcomes(count):
    gap = 1.0 / math.sqrt(count)
    step = AtomStep(np.array([0.5 + gap / 8, 0.5 - gap / 8]), np.array([0.5 - gap / 8, 0.5 + gap / 8]), count)
    epsilon = np.array([0.05, 0.3, 1.0])
    enclose(smoothed_bounds([step], epsilon), atom_bounds([step], epsilon), 0.02)


@pytest.mark.slow
def test_laplace_noise_of_two_scales_with_outcomes():
    atoms = AtomStep(np.array([0.6, 0.4]), np.array([0.4, 0.6]), 3)
    steps = [LaplaceStep(3.0, 1.0, 3), LaplaceStep(17.0, 1.0, 3), atoms]
    found = smoothed_bounds(steps, np.array([0.5]))
    alone = smoothed_bounds(steps[::-1], np.array([0.5]))
    enclose(found, alone, 1e-7)


def test_laplace_noise():
    step, epsilon = LaplaceStep(1.0, 0.5, 6), np.array([0.2, 1.0, 2.3])
    enclose(smoothed_bounds([step], epsilon), laplace_bounds([step], epsilon), 1e-2)


@pytest.mark.few(1)
@pytest.mark.parametrize(("count", "width"), [(40, 1e-5), (1000, 2e-9), (5000, 2e-9)])
def test_unrelated_outcomes_agree_with_sums_over_types(count, width):
    p = np.array([0.4375, 0.34375, 0.21875])
    q = p * np.exp(np.array([-1.0, 0.31, 1.17]) / math.sqrt(count))
    step = AtomStep(p, q / q.sum(), count)
    epsilon = np.array([0.1, 2.0, 6.0])
    truth, found = atom_bounds([step], epsilon), smoothed_bounds([step], epsilon)
    assert (truth.upper - truth.lower <= 1e-12).all()
    enclose(found, truth, width)


@pytest.mark.parametrize("count", [10**4, 10**6, 10**8])
def test_many_unrelated_outcomes_many_times(count):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(9, 3.0))
    q = p * np.exp(rng.normal(size=9) / math.sqrt(count))
    step, epsilon = AtomStep(p, q / q.sum(), count), np.array([2.0, 9.0, 30.0])
    found = smoothed_bounds([step], epsilon)
    assert (found.upper - found.lower <= 2e-8).all()
    assert found.lower[-1] < -200.0


def test_near_the_mass_of_p_no_sum_is_needed():
    step = AtomStep(np.array([0.5, 0.25, 0.125]), np.array([0.125, 0.5, 0.25]), 10**6)
    found = smoothed_bounds([step], np.array([1.0]))
    assert found.lower[0] <= 10**6 * math.log(0.875) <= found.upper[0] <= found.lower[0] + 1e-8
    assert found.cost["frequencies"] == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("p", [[0.75, 0.125, 0.125], [0.5, 0.25, 0.125]])
def test_affinity_where_mass_is_missing_or_a_loss_infinite(p):
    step, epsilon = (np.array(p), np.array([0.0625, 0.4375, 0.0]), 9), [0.0, 3.0]
    found = smoothed_bounds([AtomStep(*step)], np.array(epsilon))
    for truth, low, high in zip(delta_of_atoms([step], epsilon), found.lower, found.upper, strict=True):
        assert exp(mpf(low)) <= truth <= exp(mpf(high))
        assert high - low <= 1e-2


def test_a_trillion_releases():
    p, q = np.array([0.5, 0.25, 0.25]), np.array([0.5 - 1e-7, 0.25 + 2e-7, 0.25 - 1e-7])
    found = smoothed_bounds([AtomStep(p, q, 10**12)], np.array([0.1, 1.0]))
    assert (found.upper - found.lower <= 1e-2).all()


def test_what_is_left_to_others():
    curve = lambda e: None
    assert smoothed_bounds([CurveStep(curve, curve, 2)], np.array([1.0])) is None


def test_a_step_that_needs_no_noise():
    step = MixtureStep(GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0), 2)
    found = smoothed_bounds([step], np.array([1.0]))
    truth = GaussianMechanism(math.sqrt(0.5), 1.0).log_delta(1.0)
    assert found.lower[0] <= truth.upper
    assert truth.lower <= found.upper[0] <= truth.upper + 1e-3
