"""Misses in closed form and by sums: the bounds contain the truth, the two ways agree, edges are exact."""

import math

import mpmath as mp
import numpy as np
import pytest

from fastpriv import (
    Channel,
    DiscreteLaplace,
    GaussianMechanism,
    GeometricMechanism,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
    notions,
)
from oracles import misses

INF = math.inf


def check_contains(found, want):
    want = min(want, 1)  # beyond it only by the rounding of the oracle
    assert found.lower <= want <= found.upper, (found, mp.nstr(mp.mpf(want), 20))
    if want > 1e-280:
        assert found.upper - found.lower <= 1e-9 * want


@pytest.mark.parametrize("shift", [0.0, 1e-8, 0.7, 9.0, 37.0])
def test_gaussian_on_the_line(shift):
    alpha = np.array([0.0, 1e-6, 0.5, 1.0, 9.0, 36.0, 60.0])
    found = notions.pac_accuracy(GaussianMechanism(2.0), 3.0 + 2.0 * shift, 3.0, 2.0 * alpha)
    assert found.kind == "exact"
    gap = mp.mpf(3.0 + 2.0 * shift) - 3
    for i, a in enumerate(alpha):
        check_contains(found[i], misses.line(gap / 2, mp.mpf(2.0 * a) / 2))


@pytest.mark.parametrize("k", [2, 3, 20, 1000])
@pytest.mark.parametrize("length", [0.0, 1e-9, 0.5, 3.0, 30.0])
def test_gaussian_in_a_ball(k, length):
    centre = np.zeros(k)
    centre[k // 2] = length
    for step in (-6.0, -1.0, 0.0, 2.0, 10.0, 20.0, 32.0):
        radius = max(0.0, math.sqrt(k + length**2) + step)
        found = notions.pac_accuracy(GaussianMechanism(1.0), centre, np.zeros(k), radius)
        assert (found.kind, found.method) == ("exact", "closed form")
        check_contains(found, misses.ball(k, length, radius))


def test_gaussian_in_a_cube():
    shifts = [0.0, 0.25, -1.5]
    alpha = [0.0, 0.5, 3.0, 12.0, 30.0]
    found = notions.pac_accuracy(GaussianMechanism(1.0), shifts, [0.0] * 3, alpha, norm=INF)
    for i, a in enumerate(alpha):
        check_contains(found[i], misses.cube(shifts, a))


def test_far_targets_and_no_tolerance():
    assert notions.pac_accuracy(GaussianMechanism(1.0), 1e9, 0.0, 1.0).value == 1.0
    assert notions.pac_accuracy(GaussianMechanism(1.0), [0.0] * 4, [0.0] * 4, 0.0).value == 1.0
    tiny = notions.pac_accuracy(GaussianMechanism(1e-3), 0.0, 0.0, 1.0)
    assert tiny.lower == 0.0 <= tiny.value < tiny.upper <= 1e-299
    far = notions.pac_accuracy(GaussianMechanism(1.0), [1e5, 0.0], [0.0, 0.0], 1e5, rng=1, rtol=0.05)
    assert far.kind == "statistical"  # an endless sum is not tried
    assert far.lower < 0.5 < far.upper


@pytest.mark.parametrize("norm", [1, 2, INF])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_rows_are_summed_exactly(norm, dimension):
    rng = np.random.default_rng(dimension)
    rows = rng.dirichlet(np.ones(60), size=3)
    rows[1, ::2] = 0.0
    rows[1] /= rows[1].sum()
    points = rng.integers(-3, 4, size=(60, dimension)) * (1.0 if norm == 2 else 0.1)
    target = np.full(dimension, 0.1)
    decode = points[:, 0] if dimension == 1 else points
    alpha = np.array([0.0, 0.1, 0.2, 0.30000000000000004, 1.0, 2.9, 3.1, 20.0])
    for secret in range(3):
        found = notions.pac_accuracy(Channel(rows), secret, target, alpha, decode=decode, norm=norm)
        assert (found.kind, found.method) == ("exact", "sum over a row")
        for i, a in enumerate(alpha):
            want = min(1, misses.row(rows[secret], points, target, a, norm))
            assert found.lower[i] <= want <= found.upper[i]
            assert found.upper[i] - found.lower[i] <= 1e-11


def test_a_release_on_the_edge_is_a_hit():
    channel = Channel([[0.25, 0.5, 0.25], [0.0, 0.0, 1.0]])
    found = notions.pac_accuracy(channel, 0, [0.0, 0.0], [5.0, 4.999999], decode=[[3, 4], [0, 0], [5, 12]])
    assert found.value.tolist() == [0.25, 0.5]
    swapped = notions.pac_accuracy(channel, 1, 0.1, 0.2, decode=[0.0, 0.1, 0.3])  # 0.3 - 0.1 < 0.2 in doubles
    assert swapped.value == 0.0


def test_releases_that_are_numbers_need_no_decoder():
    e = math.e**2
    found = notions.pac_accuracy(RandomizedResponse(5, 2.0), 3, 3.0, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(found.value, np.array([4, 2, 1, 0]) / (e + 4), rtol=1e-13)
    doubled = notions.pac_accuracy(RandomizedResponse(5, 2.0), 3, 6.0, [0.0, 2.0], decode=lambda w: 2.0 * w)
    assert doubled.kind == "exact"
    np.testing.assert_allclose(doubled.value, np.array([4, 2]) / (e + 4), rtol=1e-13)


def test_geometric_noise_with_and_without_ends():
    geometric = notions.pac_accuracy(GeometricMechanism(101, 0.5), 50, 50.0, [0.0, 3.0, 3.5])
    want = [2 * math.exp(-0.5 * t) / (1 + math.exp(-0.5)) for t in (1, 4, 4)]
    np.testing.assert_allclose(geometric.value, want, rtol=1e-12)
    laplace = DiscreteLaplace(101, 2.0)
    counted = notions.pac_accuracy(laplace, 0, 0.25, [0.0, 0.5, 2.0], rng=1, confidence=1 - 1e-6)
    a = math.exp(-0.5)
    exact = np.array([1.0, 1 - 1 / (1 + a) + a / (1 + a), (a**2 + a**3) / (1 + a)])
    assert (counted.lower <= exact).all()
    assert (counted.upper >= exact).all()


def test_sets_and_bits_are_decoded_and_counted():
    k, epsilon = 6, 2.0
    unary = UnaryEncoding(k, epsilon)
    own = notions.pac_accuracy(unary, 2, 1.0, 0.5, decode=lambda bits: bits[:, 2], rng=3, rtol=0.02)
    assert own.kind == "statistical"
    assert own.lower <= 1 - unary.p <= own.upper
    subset = SubsetSelection(10, 1.0, 4)
    misses_it = notions.pac_accuracy(
        subset, 7, 1.0, 0.0, decode=lambda sets: (sets == 7).any(axis=1).astype(float), rng=4, rtol=0.02
    )
    want = 1 - 0.4 * math.exp(subset.log_inside)
    assert misses_it.lower <= want <= misses_it.upper
    table = np.array([[w >> i & 1 for i in range(k)] for w in range(2**k)], dtype=float)
    exact = notions.pac_accuracy(unary, 2, np.eye(k)[2], 0.0, decode=table, norm=1)
    assert exact.kind == "exact"
    assert exact.value == pytest.approx(1 - unary.p * (1 - unary.q) ** 5, rel=1e-12)


def test_robust_accuracy_of_exact_ways():
    found = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 0.5, -1.0], 0.0, [[1.0, 2.0]])
    assert found.per_neighbour.shape == (3, 1, 2)
    assert found.maximum.shape == (1, 2)
    assert found.maximum.kind == "exact"
    np.testing.assert_array_equal(found.maximum.upper, found.per_neighbour.upper[2])
    rr = notions.robust_accuracy(RandomizedResponse(4, 1.0), range(1, 4), 0.0, 0.5)
    np.testing.assert_allclose(rr.per_neighbour.value, (math.e + 2) / (math.e + 3), rtol=1e-13)


def test_mbp_bounds_the_misses_of_other_secrets():
    from fastpriv import conversions

    rng = np.random.default_rng(7)
    for _ in range(30):
        rows = rng.dirichlet(np.full(5, 2.0), size=4)
        prior = rng.dirichlet(np.ones(4))
        xi = float(np.abs(np.log(rows / (prior @ rows))).max())
        decode = rng.integers(0, 3, 5).astype(float)
        beta = notions.pac_accuracy(Channel(rows), 0, 1.0, 0.5, decode=decode)
        robust = notions.robust_accuracy(Channel(rows), [1, 2, 3], 1.0, 0.5, decode=decode)
        assert robust.maximum.lower <= conversions.robustness_from_mbp(xi * (1 + 1e-12), beta.upper).upper
