"""(epsilon, delta) from Renyi divergences: the most that two laws on two points can have, which is the most of all."""

import itertools

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import conversions as c
from oracles.conversions import best_delta, best_epsilon, renyi_delta, renyi_epsilon, two_point_delta

DIGITS = 100
ORDERS = [1.0, 1.0 + 2.0**-30, 1.001, 1.5, 2.0, 20.0, 1e3]
GRID = list(itertools.product([1e-12, 1e-6, 1e-2, 0.5, 5.0], ORDERS, [0.0, 1e-7, 1e-3, 0.3, 3.0, 20.0]))


@pytest.mark.slow
def test_delta_is_the_most_of_two_laws_on_two_points():
    renyi, order, epsilon = (np.array(column) for column in zip(*GRID, strict=True))
    found = c.dp_delta_from_rdp(renyi, order, epsilon)
    for row, upper in zip(GRID, found.upper, strict=True):
        with mp.workdps(DIGITS):
            r, a, e = (mpf(x) for x in row)
            if (a - 1) * (r - e) < -70:  # beyond the digits of the reference
                continue
            truth = two_point_delta(r, a, e)
            moved = mpf(10) ** -14 * (e + 1) * min(mpf(1), mp.exp((a - 1) * (r - e)))  # rounding of e^epsilon
            slack = moved + mpf(10) ** -300
            assert truth <= upper, (row, mp.nstr(truth, 17), upper)
            assert upper <= truth * (1 + mpf(10) ** -6) + slack, (row, mp.nstr(truth, 17), upper)
            assert a == 1 or upper <= renyi_delta(r, a, e) * (1 + mpf(10) ** -11) + mpf(10) ** -320


@pytest.mark.slow
def test_epsilon_is_the_inverse_of_delta():
    renyi, order, epsilon = (np.array(column) for column in zip(*GRID, strict=True))
    delta = c.dp_delta_from_rdp(renyi, order, epsilon).value
    usual = (delta > 1e-290) & (delta < 1.0)
    found = c.dp_epsilon_from_rdp(renyi[usual], order[usual], delta[usual])
    for r, a, e, d, upper in zip(renyi[usual], order[usual], epsilon[usual], delta[usual], found.upper, strict=True):
        with mp.workdps(DIGITS):
            truth = two_point_delta(mpf(r), mpf(a), mpf(upper))
            assert truth <= mpf(d) * (1 + mpf(10) ** -20), (r, a, d, upper)
            assert a == 1 or upper <= renyi_epsilon(mpf(r), mpf(a), mpf(d)) * (1 + mpf(10) ** -9) + mpf(10) ** -14
        assert upper <= e * (1 + 1e-6) + 1e-5, (r, a, e, d, upper)


@pytest.mark.slow
def test_total_variation_is_the_delta_at_epsilon_0():
    rng = np.random.default_rng(5)
    for _ in range(50):
        p, q = rng.random(2) ** 3
        a = 1.0 + 10.0 ** rng.uniform(-3, 2)
        r = np.log(p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)) / (a - 1)
        if np.isfinite(r):
            assert abs(p - q) <= c.dp_delta_from_rdp(max(r, 0.0), a, 0.0).upper + 1e-9
    kl = np.array([1e-12, 1e-3, 0.5, 5.0])
    pinsker = c.total_variation_from_kl(kl).upper
    assert (c.dp_delta_from_rdp(kl, 1.0, 0.0).upper <= pinsker).all()
    assert c.dp_epsilon_from_rdp(1e-12, 2.0, 1e-6).upper == pytest.approx(0.0, abs=1e-15)


def test_a_tiny_rho_promises_nothing_to_spend():
    assert c.dp_epsilon_from_zcdp(1e-12, 1e-5).upper < 1e-14
    assert c.dp_epsilon_from_zcdp(1e-12, 1e-5, form="as_published").lower > 5e-6
    assert c.dp_delta_from_zcdp(1e-12, 0.0).upper <= np.sqrt(0.5e-12) * (1 + 1e-9)


@pytest.mark.few(2)
@pytest.mark.parametrize("rho", [1e-12, 1e-6, 1e-3, 0.1, 0.5, 10.0])
def test_concentrated_privacy_is_between_the_gaussian_and_the_printed_bound(rho):
    """N(0, 1) against N(sqrt(2 rho), 1) has rho-zCDP, so that no promise may be below its curve."""
    epsilon, delta = np.array([0.0, 1e-6, 1e-3, 0.1, 1.0, 20.0]), np.array([1e-9, 1e-6, 1e-3, 0.1])
    separation = np.sqrt(2.0 * rho) * (1 - 1e-15)
    found = c.dp_delta_from_zcdp(rho, epsilon)
    assert (c.dp_delta_from_gdp(separation, epsilon).lower <= found.upper).all()
    level = c.dp_epsilon_from_zcdp(rho, delta)
    assert (c.dp_epsilon_from_gdp(separation, delta).lower <= level.upper).all()
    with mp.workdps(30):
        for e, upper in zip(epsilon, found.upper, strict=True):
            assert upper <= best_delta(mpf(rho), mpf(e)) * (1 + mpf(10) ** -11) + mpf(10) ** -320
        for d, upper in zip(delta, level.upper, strict=True):
            assert upper <= max(mpf(0), best_epsilon(mpf(rho), mpf(d))) * (1 + mpf(10) ** -11) + mpf(10) ** -14


def test_curves_of_orders_are_the_least_of_them():
    orders = np.array([1.0, 1.5, 2.0, 8.0, 64.0])
    renyi = 1e-3 * orders
    epsilon = c.dp_epsilon_from_rdp_curve(renyi, orders, [1e-6, 1e-3])
    each = c.dp_epsilon_from_rdp(renyi, orders, np.array([[1e-6], [1e-3]]))
    np.testing.assert_allclose(epsilon.upper, each.upper.min(axis=1), rtol=1e-12)
    delta = c.dp_delta_from_rdp_curve(renyi, orders, [0.0, 0.1])
    each = c.dp_delta_from_rdp(renyi, orders, np.array([[0.0], [0.1]]))
    np.testing.assert_allclose(delta.upper, each.upper.min(axis=1), rtol=1e-12)
