"""Grouped atoms have the density of the atoms behind Gaussian noise, within the error that is claimed."""

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv.distributions.pmf import grouped_atoms


def law(name, n=300):
    """Atoms and weights that are the same doubles on every machine: sums and products of integers alone."""
    i = np.arange(1, n + 1, dtype=np.float64)
    place = np.sort((i * 0.6180339887498949) % 1.0)
    weight = 1.0 + (i * i * 0.41421356237309503) % 1.0
    if name == "skewed":
        place = place**8 * 50.0
    if name == "clusters":
        place = np.sort(np.concatenate([1e-6 * place[: n // 3], 0.5 + 1e-3 * place[n // 3 : n // 2], place[n // 2 :]]))
    if name == "light":
        weight[::3] *= 1e-300
        weight[1::7] *= 2.0**-60
    if name == "heavy":
        weight[n // 2] = 1e18
    if name == "far from the origin":
        place = np.unique(1e5 + place)
    if name == "integers":
        place = 4.0 * i
    if name == "coarse":
        place = 2.0**52 + i
    return place, weight[: place.size] / weight.sum()


LAWS = ["even", "skewed", "clusters", "light", "heavy", "far from the origin", "integers", "coarse"]


def density(values, weights, sigma, y):
    return sum(mpf(w) * mp.exp(-(((y - mpf(x)) / mpf(sigma)) ** 2) / 2) for x, w in zip(values, weights, strict=True))


def assert_density_within_error(x, w, sigma, grouped, places):
    with mp.workdps(40):
        for y in places:
            nearest = float(min(abs(mpf(float(y)) - mpf(v)) for v in x.tolist()) / mpf(sigma))
            if nearest > grouped.radius:
                continue
            want = density(x.tolist(), w.tolist(), sigma, mpf(float(y)))
            got = density(grouped.values.tolist(), grouped.weights.tolist(), sigma, mpf(float(y)))
            assert abs(got - want) <= grouped.error * want, (y, float(got / want - 1), grouped.error)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("part", "reach"), [(0.03, 12.0), (1.0, 40.0), (1e6, 12.0)])
def test_the_density_is_within_the_error(name, part, reach):
    x, w = law(name, 120)
    sigma = part * float(x[-1] - x[0])
    found = grouped_atoms(x, w, sigma, radius=reach)
    assert found.error <= 1e-13
    assert np.all(found.weights > 0)
    assert np.all(np.diff(found.values) > 0)
    span = 0.99 * reach * sigma
    assert_density_within_error(x, w, sigma, found, [x[0] - span, x[0], x[40] + 0.3 * sigma, x[-1], x[-1] + span])


@pytest.mark.slow
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("part", [1e-3, 0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("reach", [2.0, 12.0, 38.0])
def test_the_density_is_within_the_error_at_many_places(name, part, reach):
    x, w = law(name, 1000)
    sigma = part * float(x[-1] - x[0])
    found = grouped_atoms(x, w, sigma, radius=reach)
    places = [x[0] + (x[-1] - x[0]) * j / 9 for j in range(10)] + [x[0] - 0.9 * reach * sigma, x[-1] + reach * sigma]
    assert_density_within_error(x, w, sigma, found, places)


@pytest.mark.parametrize("name", LAWS)
def test_cells_hold_their_atoms_and_nodes(name):
    x, w = law(name)
    sigma = 0.1 * float(x[-1] - x[0])
    found = grouped_atoms(x, w, sigma)
    assert found.atoms[0] == found.nodes[0] == 0
    assert found.atoms[-1] == x.size
    assert found.nodes[-1] == found.values.size
    for j in range(found.atoms.size - 1):
        atoms, nodes = slice(*found.atoms[j : j + 2]), slice(*found.nodes[j : j + 2])
        assert x[atoms][0] <= found.values[nodes].min()
        assert found.values[nodes].max() <= x[atoms][-1]
        assert x[atoms][-1] - x[atoms][0] <= sigma
        assert abs(found.weights[nodes].sum() - w[atoms].sum()) <= 1e-14 * w[atoms].sum()


def test_few_nodes_stand_for_many_atoms():
    x, w = law("even", 20_000)
    assert grouped_atoms(x, w, 0.1).values.size < 500
    assert grouped_atoms(x, w, 10.0).values.size < 30


def test_atoms_far_apart_stay_as_they_are():
    x, w = law("even", 50)
    found = grouped_atoms(x, w, 1e-5)
    assert found.values.tolist() == x.tolist()
    assert found.weights.tolist() == w.tolist()
    assert found.error == 0.0


def test_a_tolerance_that_rounding_exceeds_groups_nothing():
    x, w = law("even")
    found = grouped_atoms(x, w, 1.0, tolerance=1e-17)
    assert found.values.size == x.size
    assert found.error == 0.0


def test_extreme_scales_are_grouped_alike():
    x, w = law("even")
    plain = grouped_atoms(x, w, 1.0)
    for k in (-900, 900):
        scaled = grouped_atoms(np.ldexp(x, k), w, 2.0**k)
        assert np.array_equal(scaled.values, np.ldexp(plain.values, k))
        assert np.array_equal(scaled.weights, plain.weights)


def test_large_cells_are_resumed_between_pieces():
    x, w = law("even", 250_000)
    found = grouped_atoms(x, w, 1e3)
    assert found.values.size < 20
    assert abs(found.weights.sum() - w.sum()) < 1e-13
    mean = np.dot(found.values, found.weights)
    assert abs(mean - np.dot(x, w)) < 1e-12
