"""The constants and functions of ``numerics`` against rational arithmetic and mpmath."""

import math
import sys
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from fastpriv.base import numerics


def test_constants_are_what_their_names_say():
    one_above = np.nextafter(1.0, 2.0)
    assert Fraction(numerics.MACHINE_EPSILON) == Fraction(one_above) - 1 == 2 * Fraction(numerics.UNIT_ROUNDOFF)
    assert numerics.LARGEST_DOUBLE < math.inf == math.nextafter(numerics.LARGEST_DOUBLE, math.inf)
    assert np.nextafter(0.0, 1.0) == numerics.SMALLEST_SUBNORMAL
    assert np.finfo(np.float64).tiny == numerics.SMALLEST_NORMAL
    with mpmath.workdps(60):
        log_2 = mpmath.log(2)
        assert numerics.LOG_2 < log_2 < numerics.LOG_2_ABOVE <= numerics.LOG_2 * (1 + numerics.MACHINE_EPSILON)
        assert numerics.SQRT_LOG_2 <= numerics.SQRT_LOG_2_ABOVE
        assert mpmath.sqrt(log_2) < numerics.SQRT_LOG_2_ABOVE
        assert abs(numerics.SQRT_LOG_2 - mpmath.sqrt(log_2)) < 2 * numerics.UNIT_ROUNDOFF


@pytest.mark.parametrize("x", [0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, sys.float_info.max, math.inf, -math.inf])
def test_steps_are_those_of_the_grid_of_doubles(x):
    for steps in (1, 3):
        above = below = x
        for _ in range(steps):
            above, below = math.nextafter(above, math.inf), math.nextafter(below, -math.inf)
        assert (numerics.next_above(x, steps), numerics.next_below(x, steps)) == (above, below)
        assert numerics.next_above(np.array([x, 2.0]), steps)[0] == above
        assert numerics.next_below(np.array([x, 2.0]), steps)[0] == below


def test_an_enclosure_contains_all_that_lies_within_its_error():
    rng = np.random.default_rng(0)
    values, errors = rng.normal(size=200) * 10.0 ** rng.integers(-300, 300, 200), 10.0 ** rng.integers(-320, 300, 200)
    of_array = np.array(numerics.enclosure(values, errors)).T
    for value, error, row in zip(values.tolist(), errors.tolist(), of_array, strict=True):
        found, lower, upper = numerics.enclosure(value, error)
        assert (found, lower, upper) == tuple(row)
        assert Fraction(lower) <= Fraction(value) - Fraction(error)
        assert Fraction(value) + Fraction(error) <= Fraction(upper)


def test_an_enclosure_keeps_to_its_range_and_to_exact_values():
    assert numerics.enclosure(0.9, 0.2, 0.0, 1.0) == (0.9, np.nextafter(0.9 - 0.2, 0.0), 1.0)
    assert numerics.enclosure(1.5, 0.0, 0.0, 1.0) == (1.0, 1.0, 1.0)
    value, lower, upper = numerics.enclosure(np.array([0.25, -1.0]), np.array([0.0, 0.1]), 0.0, 1.0)
    assert value.tolist() == [0.25, 0.0]
    assert (lower.tolist(), upper[0]) == ([0.25, 0.0], 0.25)
    assert 0.1 < upper[1] < 0.1 + 1e-15


@pytest.mark.parametrize(
    "terms",
    [[0.0], [-1e300] * 2, [700.0, 710.0, 720.0], [-math.inf, -3.0], [-math.inf] * 3, [math.inf, 1.0], [1e-300, 0.0]],
)
def test_the_logarithm_of_a_sum_of_exponentials(terms):
    found = float(numerics.log_sum_exp(np.array(terms)))
    if any(math.isinf(x) for x in [max(terms)]):
        assert found == max(terms)
        return
    with mpmath.workdps(50):
        truth = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in terms if x > -math.inf))
        assert abs(found - truth) <= 2.0**-50 * (1 + abs(truth))


def test_the_logarithm_of_a_sum_takes_an_axis():
    terms = np.log(np.arange(1.0, 7.0)).reshape(2, 3)
    np.testing.assert_allclose(numerics.log_sum_exp(terms, axis=0), np.log([5.0, 7.0, 9.0]), rtol=1e-15)
    np.testing.assert_allclose(numerics.log_sum_exp(terms), np.log([6.0, 15.0]), rtol=1e-15)


def test_enclosures_that_overlap_are_intersected_and_others_are_widened_to_contain_both():
    nan = math.nan
    bounds = np.array([0.0, 0.0, 2.0, nan, 0.0, -math.inf]), np.array([2.0, 1.0, 3.0, 1.0, 1.0, 0.0])
    other = np.array([1.0, 3.0, 0.0, 0.5, 1.0, -1.0]), np.array([4.0, 4.0, 1.0, 2.0, 1.0, math.inf])
    lower, upper, disagree = numerics.reconcile_bounds(bounds, other)
    assert lower.tolist() == [1.0, 0.0, 0.0, 0.5, 1.0, -1.0]
    assert upper.tolist() == [2.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    assert disagree.tolist() == [False, True, True, True, False, False]
