"""Sums over types of discrete pairs contain the truth in rational arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import exp, mpf

from fastpriv.composition import atom_sums
from fastpriv.composition.atom_sums import atom_bounds
from fastpriv.composition.common_grids import grid_bounds
from fastpriv.pairs.discrete_pairs import DiscretePair
from fastpriv.pairs.tilted_transforms import log_mass_at_infinity
from oracles.composition import binomial_log_delta, delta_of_atoms

UNITS = 2**40


def contains(found, truths, width):
    """Bounds of logarithms contain positive or zero truths, and are not wide."""
    for truth, low, high in zip(truths, found.lower, found.upper, strict=True):
        assert (mpf(0) if low == -math.inf else exp(mpf(low))) <= truth, (truth, low, high)
        assert truth <= (mpf(0) if high == -math.inf else exp(mpf(high))), (truth, low, high)
        assert truth == 0 or high - low <= width, (truth, low, high)
    assert ((found.lower <= found.value) & (found.value <= found.upper)).all()


@st.composite
def probabilities(draw, size):
    """Multiples of 2^-40 that sum to 1, some of them 0 or so small that their ratios overflow."""
    cuts = sorted(draw(st.lists(st.integers(0, UNITS), min_size=size - 1, max_size=size - 1)))
    parts = np.diff(np.array([0, *cuts, UNITS])) / UNITS
    tiny = draw(st.sampled_from([None, 0, 1, 2]))
    if tiny is not None and tiny < size and parts[tiny] == 0.0:
        parts[tiny] = draw(st.sampled_from([1e-300, 5e-324, 1e-30]))
    return parts


@st.composite
def compositions(draw):
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 5))
        p, q = draw(probabilities(size)), draw(probabilities(size))
        if size > 2 and draw(st.booleans()):
            p[1], q[1] = p[2], q[2]  # one ratio
            p[0], q[0] = 1.0 - p[1:].sum(), 1.0 - q[1:].sum()
            if min(p[0], q[0]) < 0.0:
                p = q = np.full(size, 1.0 / 8) + np.eye(1, size, 0).ravel() * (1.0 - size / 8)
        steps.append((p, q, draw(st.integers(0, 12 if size == 2 else 4))))
    return steps


@settings(max_examples=25, deadline=None)
@given(compositions(), st.lists(st.floats(0.0, 100.0), min_size=1, max_size=3), st.sampled_from(["delta", "tail"]))
def test_small_compositions(steps, epsilon, quantity):
    found = atom_bounds([DiscretePair(*step) for step in steps], np.array(epsilon), quantity)
    contains(found, delta_of_atoms(steps, epsilon, quantity), math.inf)


@pytest.mark.parametrize("quantity", ["delta", "tail"])
@pytest.mark.parametrize(("p", "q"), [
    ([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]), ([1.0 - 1e-16, 1e-300], [1.0, 1e-320]), ([0.5, 0.5], [0.5, 0.0]),
    ([0.3, 5e-324], [0.3, 1.0]), ([0.25] * 4, [0.25 * (1.0 + 2.0**-52), 0.25, 0.25 * (1.0 - 2.0**-53), 0.1]),
    ([1e-310, 0.5, 0.5], [1e-323, 0.2, 0.8]),
])
def test_one_draw(p, q, quantity):
    step = np.array(p), np.array(q), 1
    epsilon = [0.0, 1e-300, 2.0**-53, math.log(2.5), float(np.nextafter(math.log(2.5), 9)), 20.0, 700.0]
    found = atom_bounds([DiscretePair(*step)], np.array(epsilon), quantity)
    contains(found, delta_of_atoms([step], epsilon, quantity), 2e-12)


def test_a_hundred_thousand_outcomes():
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(100_000), 2)
    found, epsilon = atom_bounds([DiscretePair(p, q, 1)], np.array([0.0, 2.0])), [0.0, 2.0]
    direct = [math.log(math.fsum(np.maximum(p - math.exp(e) * q, 0.0))) for e in epsilon]
    assert (np.abs(found.value - direct) <= 1e-12).all()
    assert atom_bounds([DiscretePair(p, q, 2)], np.array([1.0])) is None


def test_a_single_finite_loss_of_a_trillion_draws():
    step = DiscretePair(np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.25, 0.5]), 10**12)
    found = atom_bounds([step], np.array([1.0]))
    assert found.lower[0] <= 0.0 == found.upper[0]
    assert found.lower[0] >= -1e-14


@pytest.mark.few(4)
@pytest.mark.parametrize("quantity", ["delta", "tail"])
@pytest.mark.parametrize(
    ("p", "q", "count"),
    [
        ([0.625, 0.375], [0.375, 0.625], 50),
        ([0.5, 0.375, 0.125], [0.375, 0.625, 0.0], 30),
        ([0.5, 0.25, 0.25], [0.25, 0.5, 0.25], 40),
        ([0.5, 0.25, 0.1875, 0.0625], [0.25, 0.4375, 0.25, 0.0625], 25),
        ([0.5, 0.25, 0.125, 0.0625, 0.0625], [0.25, 0.25, 0.25, 0.1875, 0.0625], 8),
        ([1.0 - 2.0**-30, 2.0**-30], [1.0 - 2.0**-40, 2.0**-40], 50),
        ([0.5, 0.5], [0.5, 0.5], 50),
        ([1.0 - 1e-5, 1e-5], [1.0, 1e-300], 20),
        ([1.0], [1.0], 50),
        ([0.5, 0.5], [0.5 + 2.0**-50, 0.5 - 2.0**-50], 50),
    ],
)
def test_one_step_in_rational_numbers(p, q, count, quantity):
    p, q = np.array(p), np.array(q)
    top = count * float(np.log(p[q > 0] / q[q > 0]).max())
    epsilon = np.array([0.0, 0.1, 0.5 * top, 0.9 * top, 0.999 * top, 1.001 * top, 1e3])
    found = atom_bounds([DiscretePair(p, q, count)], epsilon, quantity)
    # five atoms: types whose loss is 0 may be computed above it, where the tail jumps; 1e-300: weights underflow
    wide = quantity == "tail" and (p.size == 5 or q[-1] == 1e-300)
    contains(found, delta_of_atoms([(p, q, count)], epsilon, quantity), math.inf if wide else 2e-12)


@pytest.mark.slow
def test_different_steps():
    steps = [
        (np.array([0.625, 0.375]), np.array([0.375, 0.625]), 20),
        (np.array([0.75, 0.25]), np.array([0.5, 0.5]), 12),
        (np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.25, 0.5]), 5),
    ]
    epsilon = np.array([0.0, 0.5, 2.0, 6.0, 15.0])
    for quantity in ("delta", "tail"):
        found = atom_bounds([DiscretePair(*step) for step in steps], epsilon, quantity)
        contains(found, delta_of_atoms(steps, epsilon, quantity), 1e-13)


@pytest.mark.parametrize("depth", [-0.005, 0.0, 0.02, 0.13])
@pytest.mark.parametrize("count", [1000, 100_000])
def test_two_outcomes_many_times(count, depth):
    p, q = np.array([0.52, 0.48]), np.array([0.48, 0.52])
    epsilon = count * (0.04 + depth) * math.log(0.52 / 0.48)
    found = atom_bounds([DiscretePair(p, q, count)], np.array([epsilon]))
    truth = binomial_log_delta(p, q, count, mpf(epsilon))
    assert found.lower[0] <= truth <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= 5e-14 + 1e-15 * abs(truth)  # down to e^-1700


def test_levels_share_a_tilt_and_do_not_change_the_answer():
    step = DiscretePair(np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4]), 500)
    epsilon = np.linspace(0.0, 200.0, 41)
    together = atom_bounds([step], epsilon)
    alone = [atom_bounds([step], epsilon[j : j + 1]) for j in range(epsilon.size)]
    for j, one in enumerate(alone):
        assert max(together.lower[j], one.lower[0]) <= min(one.upper[0], together.upper[j])
    width = (together.upper - together.lower)[together.upper > -math.inf]
    assert width.max() <= 1e-11
    assert (np.diff(together.value) <= 0.0).all()


def test_an_atom_at_epsilon_itself():
    """Its loss rounds to either side of epsilon; delta does not jump, the tail does."""
    p, q = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    epsilon = 3.0 * math.log(3.0)
    near = np.array([np.nextafter(epsilon, 0.0), epsilon, np.nextafter(epsilon, 9.0)])
    for quantity in ("delta", "tail"):
        found = atom_bounds([DiscretePair(p, q, 7)], near, quantity)
        contains(found, delta_of_atoms([(p, q, 7)], near, quantity), 1e-12 if quantity == "delta" else 2.0)


@pytest.mark.parametrize("mass", [1e-300, 1e-17, 1e-6, 0.25, 1.0 - 2.0**-50, 1.0])
@pytest.mark.parametrize("count", [1, 1000, 10**12])
def test_infinite_losses(mass, count):
    p, q = np.array([1.0 - mass, mass]), np.array([1.0, 0.0])
    low, high = log_mass_at_infinity([(mass, count)])
    # log(1 - (1 - m)^k), the small m by its series
    small = count * mpf(mass)
    truth = small * (1 - small / 2) if small < 1e-9 and mass < 1e-9 else 1 - (1 - mpf(mass)) ** count
    assert exp(mpf(low)) * (1 - mpf(10) ** -13) <= truth <= exp(mpf(high)) * (1 + mpf(10) ** -13)
    found = atom_bounds([DiscretePair(p, q, min(count, 1000))], np.array([0.0, 1.0, 700.0]))
    assert (found.upper - found.lower <= 2e-12).all()
    assert (found.lower >= math.log(mass) - 1e-12).all()


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("quantity", ["delta", "tail"])
def test_lattices_by_transforms(monkeypatch, count, quantity):
    """Losses that are multiples of log 2, in rational numbers."""
    monkeypatch.setattr(atom_sums, "_MOST_WORK", 0.0)
    steps = [(np.array([0.5, 0.25, 0.125, 0.0625, 0.0625]), np.array([0.125, 0.25, 0.25, 0.25, 0.125]), count),
             (np.array([0.5, 0.25, 0.25]), np.array([0.25, 0.5, 0.25]), 5)]
    top = (count * 2 + 5) * math.log(2.0)
    epsilon = np.array([0.01, 0.3 * top, 0.6 * top + 0.01, 0.9 * top + 0.01, 0.999 * top])
    found = atom_bounds([DiscretePair(*step) for step in steps], epsilon, quantity)
    assert found.method == "transform of a lattice"
    contains(found, delta_of_atoms(steps, epsilon, quantity), 2e-11)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 100])
def test_geometric_noise(count):
    """The ratios of its probabilities are rounded: a lattice but for that."""
    x = np.arange(-20, 21)
    p, q = 0.9 ** np.abs(x), 0.9 ** np.abs(x - 3)
    step = DiscretePair(p / p.sum(), q / q.sum(), count)
    epsilon = np.array([0.1, 1.0, 0.2 * count])
    found = atom_bounds([step], epsilon)
    if count == 3:
        contains(found, delta_of_atoms([(step.p, step.q, 3)], epsilon), 1e-12)
    else:
        assert found.method == "transform of a lattice"
        other = grid_bounds([step], epsilon)
        assert (np.maximum(found.lower, other.lower) <= np.minimum(found.upper, other.upper)).all()
        assert (found.upper - found.lower <= 1e-11).all()


def test_too_many_types_are_left_to_others():
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(30)), rng.dirichlet(np.ones(30))
    assert atom_bounds([DiscretePair(p, q, 1000)], np.array([1.0])) is None
    assert atom_bounds([DiscretePair(np.array([0.5, 0.5]), np.array([0.4, 0.6]), 10**12)], np.array([1.0])) is None
