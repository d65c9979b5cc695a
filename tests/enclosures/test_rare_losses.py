"""Compositions whose large losses are rare: bounds against integrals over one loss after another."""

import math

import numpy as np
import pytest

from fastpriv import GaussianMixture
from fastpriv.composition.common_grids import grid_bounds
from fastpriv.composition.contour import _composition, contour_bounds
from fastpriv.pairs.mixture_pairs import MixturePair
from oracles.jumps import log_delta

# epsilon, (q, sigma, count) of the steps, log delta by ``python tests/oracles/jumps.py``, true to about 1e-12
TRUTHS = [
    (0.5, [(0.01, 2.0, 2)], -42.795698686658874),
    (0.5, [(0.01, 2.0, 3)], -42.35980535740597),
    (0.5, [(0.01, 2.0, 10)], -40.93983055757443),
    (10.0, [(0.0001, 0.5, 10)], -48.703054113279784),
    (0.01, [(0.0001, 2.0, 10)], -53.363534218039504),
    (0.1, [(0.0001, 2.0, 10)], -107.21048257701212),
    (0.001, [(0.0001, 1.0, 10)], -11.364626411403064),
    (3.0, [(0.5, 0.3, 2)], -0.7020508303598852),
    (30.0, [(0.5, 0.3, 2)], -13.744233814656694),
    (30.0, [(0.0001, 0.5, 10)], -139.19679926135828),
    (1.0, [(0.01, 0.5, 3)], -7.098478870702433),
    (0.5, [(0.0001, 0.5, 10)], -15.928277044177939),
    (2.0, [(1e-06, 1.0, 5)], -133.7055021407756),
    (0.0, [(0.0001, 1.0, 5)], -9.182632870979731),
    (2.0, [(0.001, 1.0, 3), (1e-05, 0.5, 2)], -31.040318728589522),
    (5.0, [(0.0001, 0.5, 3), (1.0, 2.0, 1)], -29.33671426942231),
]
ORACLE_ERROR = 3e-12


def steps_of(parts):
    steps = []
    for q, sigma, count in parts:
        p = GaussianMixture([1.0 - q, q], [0.0, 1.0], sigma) if q < 1.0 else GaussianMixture.single(1.0, sigma)
        steps.append(MixturePair(p, GaussianMixture.single(0.0, sigma), count))
    return steps


def bounds_of(parts, epsilon, quantity="delta"):
    bounds = contour_bounds(steps_of(parts), np.atleast_1d(np.asarray(epsilon, dtype=np.float64)), quantity)
    assert np.all(bounds.lower <= bounds.value)
    assert np.all(bounds.value <= bounds.upper)
    return bounds


@pytest.mark.few(4)
@pytest.mark.parametrize(("epsilon", "parts", "truth"), TRUTHS)
def test_bounds_contain_the_truth_and_are_narrow(epsilon, parts, truth):
    bounds = bounds_of(parts, epsilon)
    assert bounds.lower[0] - ORACLE_ERROR <= truth <= bounds.upper[0] + ORACLE_ERROR
    assert bounds.upper[0] - bounds.lower[0] <= (1e-9 if truth > -120.0 else 2e-8)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "q", "sigma"), [(0.7, 0.01, 2.0), (4.0, 1e-5, 0.8), (1e-3, 1e-3, 1.5)])
def test_two_steps(epsilon, q, sigma):
    truth = log_delta(epsilon, [(q, 1.0 / sigma)] * 2)
    bounds = bounds_of([(q, sigma, 2)], epsilon)
    assert bounds.lower[0] - ORACLE_ERROR <= truth <= bounds.upper[0] + ORACLE_ERROR
    assert bounds.upper[0] - bounds.lower[0] <= 1e-9


@pytest.mark.parametrize("parts", [[(0.01, 2.0, 10)], [(1e-4, 1.0, 1000)], [(1e-4, 0.5, 10), (1.0, 3.0, 4)]])
def test_the_tail_is_the_slope_of_delta(parts):
    """delta is convex with the slope -a: a lies between the slopes of its chords."""
    epsilon, h = 0.8, 1e-3
    below, at, above = np.exp(bounds_of(parts, [epsilon - h, epsilon, epsilon + h]).lower)
    tail = bounds_of(parts, epsilon, "tail")
    assert tail.upper[0] - tail.lower[0] <= 2e-8
    assert (at - above) / h * (1.0 - 1e-5) <= math.exp(tail.upper[0])
    assert math.exp(tail.lower[0]) <= (below - at) / h * (1.0 + 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma", "count", "epsilon"), [(0.01, 2.0, 10, 0.5)])
def test_brackets_by_transforms_of_grids_overlap(q, sigma, count, epsilon):
    coarse = grid_bounds(steps_of([(q, sigma, count)]), np.array([epsilon]))
    bounds = bounds_of([(q, sigma, count)], epsilon)
    assert coarse.lower[0] <= bounds.upper[0]
    assert bounds.lower[0] <= coarse.upper[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("quantity", ["delta", "tail"])
def test_bounds_do_not_depend_on_other_epsilons(quantity):
    """Neighbours share a table; the order of epsilons, and what was asked before, change nothing."""
    parts, epsilons = [(1e-4, 1.0, 100)], np.array([0.3, 2.0, 1.0, 0.31, 2.05, 0.0, 1.03])
    together = bounds_of(parts, epsilons, quantity)
    for i, epsilon in enumerate(epsilons):
        _composition.cache_clear()
        alone = bounds_of(parts, epsilon, quantity)
        assert (alone.lower[0], alone.upper[0]) == (together.lower[i], together.upper[i])


@pytest.mark.slow
@pytest.mark.parametrize(("q", "sigma"), [(0.01, 2.0), (1e-4, 0.7)])
def test_neighbours_that_share_a_table(q, sigma):
    epsilons = np.array([0.749999, 2.3])
    bounds = bounds_of([(q, sigma, 2)], epsilons)
    for epsilon, lower, upper in zip(epsilons, bounds.lower, bounds.upper, strict=True):
        truth = log_delta(epsilon, [(q, 1.0 / sigma)] * 2)
        assert lower - ORACLE_ERROR <= truth <= upper + ORACLE_ERROR, epsilon
        assert upper - lower <= 1e-8, epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "epsilon"),
    [
        ([(1e-4, 50.0, 10)], 1.0),  # delta is about e^-1e5
        ([(1e-4, 1.0, 10)], 1e3),
        ([(1e-300, 1.0, 100000)], 1.0),
        ([(1e-9, 1.0, 10**12)], 1.0),
        ([(1e-4, 0.01, 10)], 1.0),
    ],
)
def test_bounds_out_of_reach_are_wide_but_hold(parts, epsilon):
    bounds = bounds_of(parts, epsilon)
    one = bounds_of([(*parts[0][:2], 1)], epsilon)
    assert bounds.upper[0] <= 1e-9
    assert bounds.upper[0] >= one.lower[0]


def test_large_losses_that_are_sure():
    """delta is 1 but for less than e^-1000, though one of the pairs is cut."""
    bounds = bounds_of([(0.5, 0.343, 3233), (0.5, 0.855, 6)], 5.0)
    assert bounds.lower[0] <= 0.0 <= bounds.upper[0]
    assert bounds.upper[0] - bounds.lower[0] <= 1e-9
