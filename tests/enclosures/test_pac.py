"""Misses in closed form and by sums: the bounds contain the truth, the two ways agree, edges are exact."""

import math

import mpmath as mp
import numpy as np
import pytest
from flint import arb

from fastpriv import GaussianMechanism, RandomizedResponse, notions
from fastpriv.kernels import _gaussian_ball
from oracles import misses
from oracles.crossings import exact, working_precision

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


@pytest.mark.few(9)
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


@pytest.mark.parametrize("k", [2, 5, 1000])
def test_noise_alone(k):
    alpha = np.array([0.0, 1e-200, 1.0, 3.0, 30.0, 37.0, 1e150, 1.7e308])
    found = notions.pac_accuracy(GaussianMechanism(1.25), np.zeros(k), np.zeros(k), alpha)
    assert (found.kind, found.method) == ("exact", "closed form")
    for i, a in enumerate(alpha.tolist()):
        x = (mp.mpf(a) / mp.mpf(1.25)) ** 2 / 2
        check_contains(found[i], mp.gammainc(mp.mpf(k) / 2, x, regularized=True) if a < 1e9 else mp.mpf(0))


@pytest.mark.parametrize("k", [2, 3, 4, 11, 60, 401, 3000, pytest.param(10**5 + 1, marks=pytest.mark.slow)])
def test_kernel_of_noise_alone(k):
    rng, sigma = np.random.default_rng(k), 0.7
    radii = [0.0, 5e-324, 37.416573867739416, 37.42, 99.999, *(10 ** rng.uniform(-8, 2, 4)), *rng.uniform(0, 99, 4)]
    alpha = np.array(radii + [math.sqrt(k)] * (k < 9000) + [100.1]) * sigma
    out = np.empty((3, alpha.size))
    assert _gaussian_ball.outside_ball(k, sigma, alpha, out) == 1
    assert np.isnan(out[:, -1]).all()
    for a, (value, lower, upper) in zip(alpha[:-1].tolist(), out.T.tolist(), strict=False):
        with working_precision(300):
            x = (exact(a) / exact(sigma)) ** 2 / 2
            want = x.gamma_upper(arb(k) / 2, regularized=1)
            assert not want < arb(lower), (a, lower, want)
            assert not want > arb(upper), (a, upper, want)
            assert want.rad() < 1e-30 * want + 1e-300
        assert upper - lower <= 2.5e-16 * (7 * float(x) + 20) * value + 3e-322


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


def test_channels_are_functions_that_are_counted():
    rr = RandomizedResponse(5, 2.0)

    def estimate(rng, n, secret):
        return rr.sample(np.full(n, secret), rng=rng).astype(float)

    found = notions.pac_accuracy(estimate, 3, 3.0, [0.0, 1.0, 3.0], rng=1, rtol=0.02)
    points = np.arange(5.0)
    want = [rr.rows(3, 4)[0][np.abs(points - 3.0) > alpha].sum() for alpha in (0.0, 1.0, 3.0)]
    assert found.kind == "statistical"
    assert (found.lower <= want).all()
    assert (want <= found.upper).all()


def test_robust_accuracy_of_exact_ways():
    found = notions.robust_accuracy(GaussianMechanism(1.0), [0.0, 0.5, -1.0], 0.0, [[1.0, 2.0]])
    assert found.per_neighbour.shape == (3, 1, 2)
    assert found.maximum.shape == (1, 2)
    assert found.maximum.kind == "exact"
    np.testing.assert_array_equal(found.maximum.upper, found.per_neighbour.upper[2])
