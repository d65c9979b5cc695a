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


@pytest.mark.parametrize("count", [10, 1000, 10**6])
def test_two_outcomes(count):
    gap = 1.0 / math.sqrt(count)
    step = AtomStep(np.array([0.5 + gap / 8, 0.5 - gap / 8]), np.array([0.5 - gap / 8, 0.5 + gap / 8]), count)
    epsilon = np.array([0.05, 0.3, 1.0])
    enclose(smoothed_bounds([step], epsilon), atom_bounds([step], epsilon), 0.02)


def test_laplace_noise():
    step, epsilon = LaplaceStep(1.0, 0.5, 6), np.array([0.2, 1.0, 2.3])
    enclose(smoothed_bounds([step], epsilon), laplace_bounds([step], epsilon), 1e-2)


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
