"""Any steps on one grid: brackets that contain what exact engines say, and transforms of several losses."""

import math

import numpy as np
import pytest
from mpmath import exp, log, mpf

from fastpriv import GaussianMechanism, GaussianMixture, LaplaceMechanism, RandomizedResponse, compose
from fastpriv.composition.atom_sums import atom_bounds
from fastpriv.composition.common_grids import grid_bounds
from fastpriv.composition.laplace_sums import laplace_bounds
from fastpriv.pairs import Allocation, FixedSizeSampled, PoissonSampled
from fastpriv.pairs.curve_pairs import CurvePair
from fastpriv.pairs.discrete_pairs import DiscretePair
from fastpriv.pairs.discretised_losses import PrivacyLoss
from fastpriv.pairs.laplace_pairs import LaplacePair
from fastpriv.pairs.measured_losses import LossPair
from fastpriv.pairs.mixture_pairs import MixturePair
from fastpriv.pairs.tilted_transforms import composed_log_bounds, saddle_point
from oracles.composition import composed_masses

STEPS = {
    "normal": MixturePair(GaussianMixture.single(0.5, 1.0), GaussianMixture.single(0.0, 1.0), 8),
    "laplace": LaplacePair(1.0, 0.5, 6),
    "atoms": DiscretePair(np.array([0.75, 0.25]), np.array([0.5, 0.5]), 10),
}


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "width"), [("normal", 1e-4), ("laplace", 0.02), ("atoms", 0.05)])
def test_brackets_contain_exact_ones(name, width):
    step, epsilon = STEPS[name], np.array([0.0, 0.7, 2.0])
    if name == "normal":
        truth = GaussianMechanism(1.0, math.sqrt(2.0)).log_delta(epsilon)
    else:
        truth = (laplace_bounds if name == "laplace" else atom_bounds)([step], epsilon)
    found = grid_bounds([step], epsilon)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.upper - found.lower <= width).all()


@pytest.mark.slow
@pytest.mark.parametrize("removes", [True, False])
@pytest.mark.parametrize(
    ("step", "width"),
    [
        (PoissonSampled(LaplaceMechanism(1.0), rate=0.01), 2e-7),
        (PoissonSampled(LaplaceMechanism(0.05), rate=0.9), 7e-4),
        (PoissonSampled(LaplaceMechanism(2.0), rate=0.25, relation="replace_one"), 1e-8),
        (FixedSizeSampled(GaussianMechanism(2.0, 1.0), 64, 8), 3e-2),
        (FixedSizeSampled(GaussianMechanism(0.05, 1.0), 64, 8, relation="replace_one"), 1e-12),
        (Allocation(RandomizedResponse(2, 2.0), 40), 0.2),
    ],
    ids=repr,
)
def test_one_release_on_a_grid_from_its_least_loss(step, width, removes):
    bounding = step._bounding_pairs()
    (pair,) = (bounding if removes else bounding.reversed()).dominating
    end = min(pair.largest_loss()[0], 8.0)
    worst = 0.0
    for epsilon in end * np.array([[0.0], [1e-3], [0.3], [0.7], [0.9]]):
        truth, found = pair.log_delta(epsilon), grid_bounds([pair], epsilon)
        assert found.lower[0] <= truth.upper[0]
        assert truth.lower[0] <= found.upper[0]
        worst = max(worst, found.upper[0] - found.lower[0])
    print(f"largest width {worst:.1e}")
    assert worst <= width


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0, 4.0, 6.0])
def test_thousand_sampled_laplace_mechanisms_have_brackets_within_a_part_in_a_hundred(epsilon):
    result = compose(PoissonSampled(LaplaceMechanism(1.0), rate=0.01), 1000).log_delta(epsilon)
    assert 0.0 < result.upper - result.lower < 1e-2


def two_losses(deep):
    scale = 1e-200 if deep else 1.0
    first = PrivacyLoss(-2, 0.25, np.array([0.25, 0.125, 0.5, 0.125 - 2.0**-30, scale * 2.0**-30]), 0.0)
    second = PrivacyLoss(-1, 0.25, np.array([0.5, 0.25, 0.25 * (1 - 2.0**-20)]), 2.0**-22)
    return (first, 5), (second, 7)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("quantity", ["delta", "tail"])
def test_several_losses_in_exact_integers(deep, quantity):
    losses = two_losses(deep)
    (a, a_scale), (b, b_scale) = (composed_masses(loss.masses, count) for loss, count in losses)
    masses = {}
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            masses[i + j - 2 * 5 - 7] = masses.get(i + j - 2 * 5 - 7, 0) + x * y
    infinite = 1 - (1 - mpf(losses[1][0].infinity_mass)) ** 7
    epsilon = np.array([0.1, 1.1, 2.1, 2.6])
    lower, upper, _ = composed_log_bounds(losses, epsilon, quantity)
    for level, low, high in zip(epsilon, lower, upper, strict=True):
        total = infinite if quantity == "delta" else mpf(0)
        for place, number in masses.items():
            if number and place * 0.25 > level:
                x = exp(mpf(level) - place * mpf(0.25))
                total += mpf(number) / (a_scale * b_scale) * (1 - x if quantity == "delta" else x)
        assert low <= log(total) <= high
        assert high - low <= 1e-9


@pytest.mark.parametrize("interval", [0.125, 0.25 * (1 - 2.0**-53), 0.1])
def test_losses_of_other_intervals(interval):
    coarse, fine = two_losses(False)[0][0], PrivacyLoss(-4, interval, np.array([0.3, 0.2, 0.1, 0.1, 0.05, 0.25]), 0.0)
    steps, epsilon = [LossPair(coarse, 3), LossPair(fine, 2)], np.array([0.1, 0.5, 1.01])
    found = grid_bounds(steps, epsilon)
    places = [(np.arange(len(one.masses)) + one.first) * one.interval for one in (coarse, fine)]
    losses, masses = np.zeros(1), np.ones(1)
    for values, weights in [(places[0], coarse.masses)] * 3 + [(places[1], fine.masses)] * 2:
        losses, masses = np.add.outer(losses, values).ravel(), np.multiply.outer(masses, weights).ravel()
    for level, low, high in zip(epsilon, found.lower, found.upper, strict=True):
        truth = math.log(float(masses @ np.maximum(-np.expm1(level - losses), 0.0)))
        assert low - 1e-12 <= truth <= high + 1e-12
        assert high - low <= (1e-7 if interval != 0.1 else 0.1)


def test_curves():
    mechanism, epsilon = GaussianMechanism(2.0, 1.0), np.array([0.3, 2.0])
    found = grid_bounds([CurvePair(mechanism.delta, mechanism.delta, 12)], epsilon)
    truth = GaussianMechanism(2.0, math.sqrt(12.0)).log_delta(epsilon)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.upper - found.lower <= 1e-3).all()
    assert grid_bounds([STEPS["normal"]], epsilon, "tail") is None


@pytest.mark.parametrize(("count", "level"), [(1, -0.2), (3, -8.0), (1000, -2500.0)])
def test_tilts_by_groups_of_neighbours(count, level):
    offsets = -6.0 * np.arange(2**15)[::-1] / 2**15
    masses = np.exp(-0.5 * (offsets + 3.0) ** 2)
    masses /= masses.sum()
    theta, variance, log_moment = saddle_point([(masses, offsets, count)], level, 0.0, 0.0, 600.0)
    tilted = masses * np.exp(theta * offsets)
    mean = tilted @ offsets / tilted.sum()
    exact = count * (tilted @ (offsets - mean) ** 2 / tilted.sum())
    assert abs(variance / exact - 1.0) <= 0.05
    assert theta == 0.0 or abs(count * mean - level) <= 0.2 * math.sqrt(exact)
    assert log_moment == pytest.approx(count * math.log(tilted.sum()), rel=1e-3, abs=1e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize(("scale", "rate"), [(5.97105, 1e-12), (100.0, 1e-10), (1000.0, 1e-9)])
def test_losses_of_hardly_any_size(scale, rate):
    """Two steps: delta(0) is between that of one and twice that; one grid serves losses of any size."""
    steps = compose(PoissonSampled(LaplaceMechanism(scale, 1.0), rate), 2)
    found = steps.log_delta(0.0, direction="forward")
    one = math.log(rate * -math.expm1(-0.5 / scale))
    assert one <= found.upper <= one + math.log(2.0)
    assert one <= found.lower <= found.upper <= found.lower + 1e-3


@pytest.mark.slow
def test_few_releases_have_fine_grids():
    step = FixedSizeSampled(GaussianMechanism(2.0, 1.0), 64, 8, relation="replace_one")._bounding_pairs().dominating[0]
    bounds = grid_bounds([step.repeated(3)], np.array([0.0625]))
    assert 0.0 < bounds.upper[0] - bounds.lower[0] <= 2e-7
    truth = [-2.81588053388923973, -6.67951733005357015, -14.9165463245329733]  # integrals in 30 digits
    two = grid_bounds([step.repeated(2)], np.array([0.0625, 1.0, 3.0]))
    assert (two.lower <= truth).all()
    assert (truth <= two.upper).all()
    assert (two.upper - two.lower <= 3e-7).all()
