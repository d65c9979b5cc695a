"""Every conversion against mpmath: the bounds hold the truth, and the value is right to 1e-14, from 1e-300 to 1e300."""

import inspect
import itertools
import math

import numpy as np
import pytest
import scipy.special
from mpmath import mp, mpf

from fastpriv import conversions
from fastpriv.conversions.vocabulary import PARAMETERS
from oracles.conversions import DIGITS, VALUES
from sizes import few_or_all

LINE = [0.0, 1e-300, 1e-150, 1e-20, 1e-9, 1e-8, 1e-3, 0.1, 0.5, 0.693, 0.694, 0.99, 1.0, 1.01, 2.0, 5.0, 20.0, 39.9,
        40.1, 80.0, 300.0, 700.0, 710.0, 750.0, 1e5, 1e300]
SHORT = [0.0, 1e-300, 1e-9, 0.01, 0.7, 1.0, 3.0, 50.0, 720.0, 1e300]
CHANCE = [0.0, 1e-300, 1e-12, 1e-3, 0.3, 0.5, 0.9, 1.0]
GRIDS = {
    "delta": CHANCE, "beta": CHANCE, "total_variation": CHANCE, "type_one": CHANCE,
    "relative_error": [0.0, 1e-300, 1e-13, 1e-11, 1e-5, 0.1, 0.29, 0.31, 0.5, 0.99, 0.999999],
    "pi_min": [0.0, 1e-300, 1e-6, 0.3, 0.34, 0.45, 0.5],
    "inputs": [2.0, 3.0, 10.0, 1e15], "order": [1.0, 1.0 + 2.0**-50, 1.0001, 1.5, 2.0, 10.0, 1e5],
    "group": [1.0, 2.0, 3.0, 10.0], "c1": [0.0, 1e-9, 0.3, 0.8], "frequency": [1e-12, 0.01, 0.5, 0.75, 0.999, 1.0],
    "trials": [1.0, 4.0, 1e3, 1e9],
}
FEW = [0.0, 1e-300, 1e-9, 0.7, 3.0, 720.0]
OWN = {
    "robustness_from_mbp": {"xi": FEW, "beta": [0.0, 1e-300, 1e-3, 0.5, 1.0], "pi_min": [0.0, 1e-6, 0.3, 0.45]},
    "ldp_from_mbp_sides": {"xi_plus": FEW, "xi_minus": FEW},
    "frequency_failure_from_trials": {"relative_error": [0.0, 1e-300, 1e-5, 0.1, 1 / 3, 0.5, 0.99, 1.0]},
    "dp_delta_from_mbp": {"xi": FEW, "target_epsilon": FEW, "pi_min": [0.0, 1e-6, 0.3, 0.45]},
    "dp_epsilon_from_mbp": {"xi": FEW, "delta": [0.0, 1e-300, 1e-3, 0.6, 1.0], "pi_min": [0.0, 1e-6, 0.3, 0.45]},
    "rdp_from_mbp": {"xi": FEW, "pi_min": [0.0, 1e-6, 0.3, 0.45]},
    "dp_delta_from_dp": {"epsilon": FEW, "delta": [0.0, 1e-300, 1e-3, 1.0], "target_epsilon": FEW},
    "tradeoff_from_dp": {"epsilon": FEW, "delta": [0.0, 1e-12, 0.3, 1.0], "type_one": [0.0, 1e-300, 1e-3, 0.3, 1.0]},
    "robustness_from_mbp_as_published": {"xi": [0.0, 1e-300, 0.5, 1.0]},
    "rdp_from_ldp": {"epsilon": SHORT[:-1]},
    "dp_epsilon_from_rdp_as_published": {"order": [1.0001, 1.5, 10.0, 1e5], "delta": [1e-300, 1e-12, 0.3, 1.0]},
    "dp_epsilon_from_zcdp_as_published": {"delta": [1e-300, 1e-12, 0.3, 1.0]},
    "dp_epsilon_from_ldp": {"epsilon": SHORT[:-1]},
    "dp_delta_from_gdp": {"separation": [1e-3, 0.1, 1.0, 5.0], "epsilon": [0.0, 0.1, 1.0, 5.0]},
    "total_variation_from_gdp": {"separation": [1e-9, 1e-3, 0.5, 1.0, 5.0]},
    "gdp_from_ldp": {"epsilon": [1e-300, 1e-9, 0.1, 0.999, 1.0, 1.001, 3.0, 20.0, 60.0]},
    "tradeoff_from_gdp": {"separation": [0.0, 1e-3, 1.0, 5.0], "type_one": [1e-30, 1e-12, 0.01, 0.5, 0.9]},
    "group_dp_delta_from_dp": {"epsilon": SHORT[:-1]},
}
FEWER_DIGITS = {"gdp_from_ldp": 80, "tradeoff_from_gdp": 80,
                "dp_delta_from_gdp": 60, "total_variation_from_gdp": 60}
WIDER = {  # sums that cancel, or exponents: the bounds say how wide
    "ldp_from_mbp_sides", "abp_from_mbp_as_published", "robustness_from_mbp", "abp_from_c1",
    "abp_from_c1_as_published", "dp_epsilon_from_ldp", "tradeoff_from_ldp", "tradeoff_from_dp",
    "tradeoff_from_gdp", "group_dp_delta_from_dp", "dp_delta_from_mbp", "dp_epsilon_from_mbp",
    "frequency_failure_from_trials", "frequency_failure_from_trials_as_published",
}
FROM_RENYI = {  # test_renyi_to_dp.py
    "dp_epsilon_from_rdp", "dp_delta_from_rdp", "dp_epsilon_from_zcdp", "dp_delta_from_zcdp",
}
ELSEWHERE = FROM_RENYI | {  # earlier conversions, and those of whole curves
    "dp_delta_from_ci_lmip", "dp_epsilon_from_ci_lmip", "ci_lmip_from_dp_curve", "kl_from_dp_curve",
    "lip_delta_from_cd_lmip", "lip_delta_from_cd_lmip_as_published", "lip_delta_from_pointwise_lmip",
    "cd_lmip_from_lip_curve", "cd_lmip_from_hockey_sticks",
    "dp_epsilon_from_rdp_curve", "dp_delta_from_rdp_curve", "dp_epsilon_from_gdp",
}


def oracle_name(row):
    return row.function if row.default else f"{row.function}_{row.form}"


CONVERSIONS = {oracle_name(row): row for row in conversions.CONVERSIONS}
CLOSED = [row for name, row in CONVERSIONS.items() if name in {*VALUES, *FROM_RENYI}]


def numbers_of(row):
    """The parameters that are numbers, in the order of the signature."""
    return [p for p in inspect.signature(getattr(conversions, row.function)).parameters
            if p in row.parameters and p != "unit"]


def evaluated(name, step=1):
    names = numbers_of(CONVERSIONS[name])
    own = OWN.get(name, {})
    usual = LINE if len(names) == 1 else SHORT
    points = list(itertools.product(*(own.get(p, GRIDS.get(p, usual)) for p in names)))[::step]
    columns = (np.array(column) for column in zip(*points, strict=True))
    return points, CONVERSIONS[name].call(**dict(zip(names, columns, strict=True)))


@pytest.mark.few(17)
@few_or_all("step", 5, 1)
@pytest.mark.parametrize("name", VALUES)
def test_the_bounds_hold_the_truth(name, step):
    rows, found = evaluated(name, step)
    worst, where = mpf(0), None
    with mp.workdps(FEWER_DIGITS.get(name, DIGITS)):
        for row, value, lower, upper in zip(rows, found.value, found.lower, found.upper, strict=True):
            truth = VALUES[name](*(mpf(float(x)) for x in row))
            lost = abs(truth) * mpf(10) ** -25  # digits that the reference may have lost
            assert mpf(lower) <= truth + lost, (name, row, lower, mp.nstr(truth, 20))
            assert truth - lost <= mpf(upper), (name, row, mp.nstr(truth, 20), upper)
            if np.isfinite(value) and truth > mpf(1e-290):
                error = abs(mpf(value) - truth) / truth
                worst, where = max((worst, where or row), (error, row), key=lambda pair: pair[0])
    if name not in WIDER:
        assert worst < 1e-14, (name, where, mp.nstr(worst, 3))


def test_no_conversion_is_left_out():
    assert set(CONVERSIONS) == set(VALUES) | ELSEWHERE


@pytest.mark.parametrize("name", sorted(WIDER - {"abp_from_c1"}))
def test_the_wider_ones_are_close_where_nothing_cancels(name):
    _, found = evaluated(name)
    usual = (found.value > 1e-280) & np.isfinite(found.upper)
    width = (found.upper - found.lower)[usual] / found.value[usual]
    assert np.median(width) < 3e-13, name


@pytest.mark.parametrize("row", CLOSED, ids=oracle_name)
def test_ends_and_arrays(row):
    """Zero and inf give numbers, scalars give floats, a grid broadcasts."""
    names = numbers_of(row)
    inside = {"order": 2.0, "group": 2.0, "inputs": 3.0, "trials": 3.0, "frequency": 0.5}
    for edge in (0.0, 1.0, np.inf):
        good = [edge if PARAMETERS[p].valid(np.array(edge)) else inside.get(p, 0.5) for p in names]
        if oracle_name(row) == "robustness_from_mbp_as_published":
            good[0] = min(good[0], 1.0)
        found = row.call(**dict(zip(names, good, strict=True)))
        assert isinstance(found.value, float)
        assert not np.isnan([found.lower, found.value, found.upper]).any()
    column = [np.full((3, 1), inside.get(names[0], 0.5))] + [np.full(4, inside.get(p, 0.25)) for p in names[1:]]
    assert row.call(**dict(zip(names, column, strict=True))).shape == ((3, 1) if len(names) == 1 else (3, 4))


@pytest.mark.parametrize("row", CLOSED, ids=oracle_name)
def test_numbers_outside_their_range_are_refused(row):
    names = numbers_of(row)
    inside = {"order": 2.0, "group": 2.0, "inputs": 3.0, "trials": 3.0}
    for name in names:
        for bad in (-1.0, np.nan):
            with pytest.raises(ValueError, match=f"{name} must be"):
                row.call(**{**{p: inside.get(p, 0.25) for p in names}, name: bad})
    if len(names) > 1:
        shapes = {p: np.full(2 + index, inside.get(p, 0.25)) for index, p in enumerate(names)}
        with pytest.raises(ValueError, match="must be of a shape that broadcasts with"):
            row.call(**shapes)


def test_an_infinite_source_promises_nothing():
    never = (0.0, 1e-300, 0.5, 1.0)
    assert (conversions.tradeoff_from_ldp(np.inf, never).lower == 0.0).all()
    assert (conversions.tradeoff_from_dp(np.inf, 0.1, never).lower == 0.0).all()
    assert (conversions.tradeoff_from_gdp(np.inf, never).lower == 0.0).all()
    for goal in (0.0, 1.0, np.inf):
        assert conversions.dp_delta_from_ldp(np.inf, goal).upper == 1.0
        assert conversions.dp_delta_from_gdp(np.inf, goal).upper == 1.0
        assert conversions.dp_delta_from_zcdp(np.inf, goal).upper == 1.0
        assert conversions.dp_delta_from_rdp(np.inf, 2.0, goal).upper == 1.0


def test_the_best_of_many_orders_is_the_least_of_each():
    orders = np.array([1.0, 1.5, 2.0, 4.0, 16.0, np.inf])
    renyi = np.array([0.1, 0.2, 0.3, 0.5, 3.0, 9.0]) * np.array([[1.0], [2.0]])
    for many, one, goal in (
        (conversions.dp_epsilon_from_rdp_curve, conversions.dp_epsilon_from_rdp, np.array([[1e-6], [0.01], [1.0]])),
        (conversions.dp_delta_from_rdp_curve, conversions.dp_delta_from_rdp, np.array([[0.0], [1.0], [5.0]])),
    ):
        found, each = many(renyi, orders, goal), one(renyi, orders, goal[..., None])
        np.testing.assert_array_equal(found.value, each.value.min(axis=-1))
        assert (found.upper >= each.value.min(axis=-1)).all()


def test_normal_laws_both_ways():
    separation = np.array([1e-3, 0.1, 1.0, 10.0])
    epsilon = np.array([[0.01], [0.5], [3.0]])
    delta = conversions.dp_delta_from_gdp(separation, epsilon).value
    back = conversions.dp_epsilon_from_gdp(separation, delta)
    usual = (delta > 1e-300) & (delta < 0.9)
    np.testing.assert_allclose(np.where(usual, back.upper, 1.0), np.where(usual, epsilon, 1.0), rtol=1e-11)


def test_curves_of_the_wrong_form_are_refused():
    with pytest.raises(ValueError, match="renyi must be of a shape that ends with the length of orders, 2; got"):
        conversions.dp_epsilon_from_rdp_curve([1.0, 2.0, 3.0], [2.0, 3.0], 1e-6)
    for unit in ("", None, "bit"):
        with pytest.raises(ValueError, match="unit must be one of nats, bits"):
            conversions.ci_lmip_from_ldp(1.0, unit=unit)
        with pytest.raises(ValueError, match="unit must be one of nats, bits"):
            conversions.kl_from_ldp(1.0, unit=unit, form="as_published")


def test_numbers_that_leave_the_range_of_doubles():
    large = 1.7e308
    for found in (conversions.ldp_from_mbp(large), conversions.ldp_from_mbp(large, form="as_published"),
                  conversions.ci_lmip_from_ldp(large, unit="bits"),
                  conversions.pointwise_lmip_from_mbp(large, unit="bits")):
        assert found.lower < found.upper == math.inf
    assert conversions.robustness_from_mbp(large, 0.5).upper == 1.0
    assert conversions.ldp_from_mbp(math.inf).lower == math.inf


def test_an_order_near_1_and_a_delta_near_1():
    """1 - 1/a has no digits of its own there: with log1p(-1/a) the lower bound was above the formula by u / (a - 1)."""
    order, delta = 1.0 + 1e-10, 1.0 - 1e-10
    found = conversions.dp_epsilon_from_rdp(30.0, order, delta)
    with mp.workdps(50):
        truth = 30 + mp.log1p(-1 / mpf(order)) - mp.log(mpf(order) * mpf(delta)) / (mpf(order) - 1)
    assert found.lower <= truth <= found.upper


def test_the_least_probabilities_keep_their_digits_where_a_power_makes_them_large():
    """A subnormal product that is rounded first, and multiplied by a power of e then, has lost digits that count."""
    least = 5e-324
    with mp.workdps(50):
        delta = mpf(least)
        truths = [
            (conversions.group_dp_delta_from_dp(0.5, least, 1000), delta * mp.expm1(500) / mp.expm1("0.5")),
            (conversions.robustness_from_ldp(20.0, least), delta * mp.exp(20)),
            (conversions.robustness_from_mbp(5.0, least), delta * mp.exp(10)),
            (conversions.robustness_from_mbp(20.0, least), delta * mp.exp(40)),
            (conversions.ldp_from_mbp_sides(5e-323, least, 0.4), delta * (1 / mpf(0.4))),
        ]
        for found, truth in truths:
            assert found.lower <= truth <= found.upper, (found, truth)


@pytest.mark.parametrize(("name", "low", "high", "units"), [
    ("erfinv", 1e-300, 1e-290, 30), ("erfinv", 1e-3, 0.4622, 30), ("ndtri_exp", -700.0, -1.3, 60),
    ("ndtri_exp", -5.0, -1.3, 60),
])
def test_functions_of_scipy_are_as_exact_as_lemma_13_10_takes_them_to_be(name, low, high, units):
    x = np.random.default_rng(3).uniform(low, high, 40)
    found = getattr(scipy.special, name)(x)
    with mp.workdps(40):
        for t, y in zip(x.tolist(), found.tolist(), strict=True):
            value = mpf(y)
            if name == "erfinv":  # one Newton step from the value is the truth to the square of its error
                step = (mp.erf(value) - t) * mp.sqrt(mp.pi) / 2 * mp.exp(value**2)
            else:
                tail = mp.ncdf(value)
                step = (mp.log(tail) - t) * tail / mp.npdf(value)
            assert abs(step / value) <= units * mpf(2) ** -53, (name, t)
