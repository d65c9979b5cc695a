"""Releases chosen from a menu: bounds contain what the best of all strategies attains, found by enumeration."""

import math
from fractions import Fraction

import numpy as np
import pytest

from fastpriv import DomainError, GaussianMechanism, LaplaceMechanism, RandomizedResponse, compose
from fastpriv.pairs import AdaptiveChoice

X = [Fraction(1), Fraction(5, 4), Fraction(2), Fraction(40)]


def best(menu, steps, p=Fraction(1), q=Fraction(1), x=Fraction(1)):
    """The largest sum of (P - x Q)^+ over leaves, of all ways to choose by what was seen."""
    if not steps:
        return max(p - x * q, Fraction(0))
    return max(
        sum(best(menu, steps - 1, p * a, q * b, x) for a, b in zip(*pair, strict=True)) for pair in menu
    )


def shares(*numbers):
    return [Fraction(n, sum(numbers)) for n in numbers]


MENUS = {
    "two": [(shares(3, 1), shares(1, 3)), (shares(1, 6, 1), shares(2, 5, 1))],
    "either order": [(shares(7, 1), shares(4, 4)), (shares(4, 4), shares(1, 7))],
    "infinite losses": [(shares(1, 15, 0), shares(0, 15, 1)), (shares(5, 3, 0), shares(3, 5, 0))],
    "one that tells nothing": [(shares(1, 1), shares(1, 1)), (shares(3, 2), shares(2, 3))],
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", MENUS)
@pytest.mark.parametrize("steps", [1, 2, 4])
def test_all_strategies(name, steps):
    menu = [tuple(np.array([float(a) for a in side]) for side in pair) for pair in MENUS[name]]
    for interval in (2.0**-4, 0.013):
        chosen = compose(AdaptiveChoice(menu, steps, interval))
        for pairs, direction in ((MENUS[name], "forward"), ([pair[::-1] for pair in MENUS[name]], "backward")):
            for x in X:
                truth = best(pairs, steps, x=x)
                found = chosen.delta(math.log(x), direction=direction)
                assert found.lower <= truth * (1 + Fraction(1, 10**12)), (name, steps, interval, direction, x)
                assert truth <= found.upper * (1 + 1e-12) + 1e-24, (name, steps, interval, direction, x)
                assert found.upper - found.lower <= 20 * steps * interval**0.5 * float(truth) + 0.15


def test_choices_by_what_was_seen_are_worse_than_fixed_ones():
    """Two exponential mechanisms of epsilon 1 at 1/4: 0.216055 fixed in advance, 0.220924 chosen (F8 of the notes)."""
    def mechanism(t):
        low, high = math.exp(-t), math.exp(1.0 - t)
        share = (high - 1.0) / (high - low)
        return np.array([share, 1.0 - share]), np.array([share * low, (1.0 - share) * high])

    menu = [mechanism(k / 32) for k in range(1, 32)]
    found = compose(AdaptiveChoice(menu, 2, 2.0**-9)).delta(0.25)
    assert 0.216055 < found.lower < 0.2209243
    assert 0.2207 < found.upper < 0.2210


@pytest.mark.parametrize("base", [GaussianMechanism(2.0, 1.0), LaplaceMechanism(3.0), RandomizedResponse(3, 0.3)])
def test_a_menu_of_one_is_a_composition(base):
    levels = [0.0, 0.5, 3.0, 30.0, 700.0, 1e300, math.inf]
    found, truth = compose(AdaptiveChoice([base], 5, 2.0**-8)).delta(levels), compose(base, 5).delta(levels)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert found.upper[1] - found.lower[1] < 0.05 * truth.value[1]
    epsilon = compose(AdaptiveChoice([base], 5, 2.0**-8)).epsilon(0.01)
    assert epsilon.lower <= compose(base, 5).epsilon(0.01).upper
    assert compose(base, 5).epsilon(0.01).lower <= epsilon.upper


def test_releases_in_an_entry_are_made_together():
    both = compose([GaussianMechanism(2.0, 1.0), LaplaceMechanism(3.0)])
    found, truth = compose(AdaptiveChoice([both], 2)).delta(0.5), compose(both, 2).delta(0.5)
    assert found.lower <= truth.value <= found.upper
    assert found.upper - found.lower < 0.02 * truth.value


def test_menus_are_objects():
    menu = AdaptiveChoice([GaussianMechanism(2.0, 1.0), (np.array([0.5, 0.5]), np.array([0.25, 0.75]))], 3)
    again = AdaptiveChoice([GaussianMechanism(2.0, 1.0), (np.array([0.5, 0.5]), np.array([0.25, 0.75]))], 3)
    assert menu == again
    assert hash(menu) == hash(again)
    assert "steps=3" in repr(menu)


@pytest.mark.parametrize(("arguments", "text"), [
    (([], 2), "menu must be a list of 1 to 1,000 pairs"), ((GaussianMechanism(1.0, 1.0), 2), "menu must be a list"),
    (([3], 2), r"menu\[0\] must be"), (([RandomizedResponse(2, 1.0)], 0), "steps must be"),
    (([RandomizedResponse(2, 1.0)], 2, 0.0), "interval must be from"),
    (([RandomizedResponse(2, 1.0)], 2, math.nan), "interval must be from"),
])
def test_errors(arguments, text):
    with pytest.raises(DomainError, match=text):
        AdaptiveChoice(*arguments)


def test_a_recursion_that_takes_too_long_is_refused():
    with pytest.raises(DomainError, match="interval must be larger for so many steps"):
        compose(AdaptiveChoice([GaussianMechanism(0.3, 1.0)], 10_000, 2.0**-10)).delta(1.0)
