"""Least epsilon and least noise of the subsampled Gaussian mechanism for a target delta, against ball arithmetic."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import special
from oracles.two_points import subsampled
from sizes import few_or_all

QUANTITIES = [(quantity, direction) for quantity in ("epsilon", "noise") for direction in ("remove", "add")]


def inverse(quantity, direction):
    """The ufunc, called with the rate first whatever the known number is."""
    function = getattr(special, f"sampled_gaussian_{quantity}_{direction}")
    return (lambda rate, sigma, delta: function(sigma, rate, delta)) if quantity == "epsilon" else function


def settings(quantity, harsh, n):
    """Sampling rates, sigmas or epsilons, and targets."""
    rng = np.random.default_rng([20261123, n, harsh, quantity == "noise"])
    rate, delta = 10 ** rng.uniform(-6, 0, n), 10 ** rng.uniform(-12, 0, n)
    known = 10 ** (rng.uniform(-1, 2, n) if quantity == "epsilon" else rng.uniform(-3, 1, n))
    if harsh:
        rate = rng.choice([10 ** rng.uniform(-320, 0, n), 1 - 10 ** rng.uniform(-16, -1, n), np.ones(n)])
        near = np.minimum(1, rate * rng.uniform(0.5, 1.5, n))
        tiny, close = 10 ** rng.uniform(-307, 0, n), 1 - 10 ** rng.uniform(-16, -1, n)
        delta = np.choose(rng.integers(0, 5, n), [tiny, close, rate, near, np.full(n, 5e-324)])
        if quantity == "epsilon":
            known = 10 ** rng.uniform(-8, 9, n)
        else:
            end = np.minimum(-np.log1p(-np.minimum(rate, 1 - 2.0**-53)), 40.0)  # where H is 0 in the add direction
            far = 10 ** rng.uniform(-25, 3, n)
            known = np.choose(rng.integers(0, 3, n), [np.zeros(n), far, end * rng.uniform(0.99, 1.01, n)])
    return rate, known, delta


@few_or_all("count", 80, 3000)
@pytest.mark.parametrize("harsh", [False, True])
@pytest.mark.parametrize(("quantity", "direction"), QUANTITIES)
def test_the_curve_is_on_the_stated_side_of_the_target_at_the_bounds(quantity, direction, harsh, count):
    rate, known, delta = settings(quantity, harsh, count)
    value, lower, upper = inverse(quantity, direction)(rate, known, delta)
    assert np.all((lower <= value) & (value <= upper))
    problems, widths, wide = [], [], []
    rows = np.transpose([rate, known, delta, lower, value, upper]).tolist()
    for q, x, target, low, middle, high in rows:
        def log_curve(at, q=q, x=x):
            found = subsampled(q, *((x, at) if quantity == "epsilon" else (at, x)), direction)
            ctx.prec = 400
            return found

        ctx.prec = 400
        log_target = arb(target).log()
        if high < math.inf and target < 1.0 and log_curve(high) > log_target:
            problems.append(("upper", q, x, target, high))
        if 0 < low < 1e308 and log_curve(low) < log_target:
            problems.append(("lower", q, x, target, low))
        if 1e-300 < middle < math.inf:
            widths.append((high - low) / middle)
            if widths[-1] > 1e-10 and 1e-4 < (x if quantity == "epsilon" else middle) < 1e9:
                apart = log_curve(low) - log_curve(high)
                if not apart < 1e-13 * (1 - log_target):
                    wide.append((q, x, target, low, middle, high))
    assert not problems, problems[:5]
    assert not wide, ("as stated in fastpriv.special", wide[:5])
    assert np.median(widths) < 1e-12


@pytest.mark.parametrize(("quantity", "direction"), QUANTITIES)
def test_an_approximation_that_is_none_costs_no_width(quantity, direction):
    """Targets that are rounded when they are divided by the rate, and a growth of the odds that overflows."""
    rates = [0.44, 0.22, 3.5e-2, 2.3e-3, 1.0]
    known = [2.2e6, 41.5, 0.27, 1.6, 1.3e-4] if quantity == "epsilon" else [1e-3, 0.1, 1e-5, 1e-4, 806.0]
    value, lower, upper = inverse(quantity, direction)(rates, known, [5e-324, 5e-324, 2e-323, 5e-324, 0.9988])
    assert np.all((lower <= value) & (value <= upper))
    assert np.all(upper - lower <= 1e-10 * value), (lower, upper)


def test_targets_without_a_search():
    for quantity, direction in QUANTITIES:
        function = inverse(quantity, direction)
        for arguments in ((0.1, 1.0, 1.0), (0.0, 1.0, 0.5), (0.3, math.inf, 1e-5)):  # P is Q, or any delta will do
            assert function(*arguments) == (0.0, 0.0, 0.0), (quantity, direction, arguments)
        nan = math.nan
        for wrong in ((-0.1, 1, 0.5), (1.1, 1, 0.5), (0.1, -1, 0.5), (0.1, 1, -0.5), (0.1, 1, 1.5), (0.1, nan, 0.5)):
            assert np.isnan(function(*wrong)).all(), (quantity, direction, wrong)
    assert np.isnan(inverse("epsilon", "add")(0.1, 0.0, 0.5)).all(), "no noise"


def test_delta_of_zero():
    """Removal never has delta = 0; addition has it from -log(1 - q) on."""
    assert inverse("epsilon", "remove")(0.25, 1.0, 0.0)[2] == math.inf
    value, lower, upper = inverse("epsilon", "add")(0.25, 1.0, 0.0)
    assert upper - lower < 1e-9
    assert lower <= -math.log1p(-0.25) * (1 + 1e-15)
    assert value == pytest.approx(-math.log1p(-0.25), rel=1e-13)
    assert inverse("noise", "add")(0.25, 0.3, 0.0)[2] <= 5e-324
    assert inverse("noise", "remove")(0.25, 0.3, 0.0)[2] == math.inf


@pytest.mark.parametrize("quantity", ["epsilon", "noise"])
def test_a_rate_of_one_is_the_gaussian_mechanism(quantity):
    known, delta = np.array([0.3, 1.0, 5.0]), np.array([1e-9, 1e-5, 0.1])
    of_epsilon = quantity == "epsilon"
    plain = special.gaussian_epsilon(0.5 / known, delta) if of_epsilon else special.gaussian_noise(known, delta)
    for direction in ("remove", "add"):
        value, lower, upper = inverse(quantity, direction)(1.0, known, delta)
        np.testing.assert_allclose(value, plain, rtol=1e-12)
        assert np.all((lower <= plain * (1 + 1e-12)) & (upper >= plain * (1 - 1e-12)))
