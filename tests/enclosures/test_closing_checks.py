"""Elementary bounds agree with every engine, narrow what is wide, and turn a false answer into one that holds."""

import math
from dataclasses import replace

import numpy as np
import pytest

import fastpriv
from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
)
from fastpriv.composition import compositions, engines
from fastpriv.composition.closing_checks import WIDENED, _elementary, checked
from fastpriv.pairs.log_bounds import LogBounds

BASE = GaussianMixture.single(0.0, 1.0)
PAIRS = [
    GaussianMechanism(2.0, 1.0), LaplaceMechanism(3.0), RandomizedResponse(3, 0.4), PoissonSampledGaussian(1.0, 0.05),
    (GaussianMixture([0.75, 0.25], [0.0, 1.0], [1.0, 2.0]), GaussianMixture([0.5, 0.5], [0.0, -0.5], 1.0)),
    ([0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.0, 0.5]), ([0.5, 0.5], [0.25, 0.75]),
    PoissonSampledGaussian(0.3, 1e-4), GaussianMechanism(1.0, 30.0),
]
LEVELS = np.array([0.0, 1e-5, 0.01, 0.4, 1.5, 6.0, 60.0, np.inf])
SLOW = (4, 7)  # of these pairs only one release


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("pair", "count"), [(pair, k) for i, pair in enumerate(PAIRS) for k in ([1] if i in SLOW else [1, 2, 7])]
)
def test_they_contain_what_the_engines_prove(pair, count):
    """No false alarm: in no direction, at no epsilon, alone or in a grid in any order."""
    composition = compose(pair, count)
    for steps in (composition.forward_pairs, composition.backward_pairs):
        table = _elementary(steps)
        proved = engines.curve_bounds(steps, LEVELS)
        at_least = table.lower[np.searchsorted(fastpriv.composition.closing_checks._LEVELS, LEVELS)]
        assert (at_least <= proved.upper).all()
        finite = LEVELS[:-1]
        assert (np.minimum(table.log_moment - finite, table.log_distance) >= proved.lower[:-1]).all()
        for order in (np.arange(8), np.arange(8)[::-1], np.array([3, 0, 6, 1, 7, 2, 5, 4])):
            found = checked(steps, LEVELS[order], LogBounds(*(x[order] for x in proved.numbers), {}, "engine"))
            assert WIDENED not in found.method
            assert (found.lower >= proved.lower[order]).all()
            assert (found.upper <= proved.upper[order]).all()
        for k, level in enumerate(LEVELS):
            one = LogBounds(*(x[[k]] for x in proved.numbers), {}, "engine")
            assert WIDENED not in checked(steps, np.array([level]), one).method


def false_engine(monkeypatch, shift):
    """An engine whose bounds of log delta are wrong by a shift."""
    right = engines.curve_bounds

    def wrong(steps, epsilon, quantity="delta"):
        found = right(steps, epsilon, quantity)
        return found._replace(value=found.value + shift, lower=found.lower + shift, upper=found.upper + shift)

    monkeypatch.setattr(compositions.engines, "curve_bounds", wrong)


@pytest.mark.parametrize(
    ("pair", "count", "shift"),
    [(PoissonSampledGaussian(1.0, 0.1), 20, -6.0), (LaplaceMechanism(1.0), 2, -1.0),
     (GaussianMechanism(1.0, 1.0), 3, -4.0), (RandomizedResponse(2, 1.0), 2, -2.0),
     (PoissonSampledGaussian(1.0, 0.01), 20, 4.0),
     (LaplaceMechanism(50.0), 2, 5.0), (RandomizedResponse(2, 0.01), 2, 3.0)],
)
def test_a_false_engine_is_not_believed(monkeypatch, pair, count, shift):
    """Bounds that miss delta by a factor are widened to contain it, and ``method`` says so."""
    epsilon = np.array([0.0, 0.01])
    truth = compose(pair, count).log_delta(epsilon)
    false_engine(monkeypatch, shift)
    found = compose(pair, count).log_delta(epsilon)
    for one in (found, *(compose(pair, count).log_delta(e) for e in epsilon)):
        assert WIDENED in one.method
    assert (found.lower <= truth.upper).all()
    assert (found.upper >= truth.lower).all()


def test_a_curve_that_rises_and_a_crossed_bracket_are_widened():
    steps = compose(PoissonSampledGaussian(1.0, 0.1), 20).forward_pairs
    levels = np.array([1.0, 0.5, 0.7])
    right = engines.curve_bounds(steps, levels)
    upper = right.upper.copy()
    upper[0] = right.lower[0] + 2.0  # at the largest epsilon: no false bound, a wide one, cut to that before it
    found = checked(steps, levels, right._replace(upper=upper))
    assert found.upper[0] == right.upper[2]
    assert WIDENED not in found.method
    rising = right._replace(lower=right.lower + np.array([2.0, 0, 0]), upper=right.upper + np.array([2.0, 0, 0]),
                            value=right.value + np.array([2.0, 0, 0]))
    found = checked(steps, levels, rising)
    assert WIDENED in found.method
    assert (found.lower <= right.upper).all()
    assert (found.upper >= right.lower).all()
    crossed = right._replace(lower=right.upper + 1e-3)
    found = checked(steps, levels[:1], LogBounds(*(x[:1] for x in crossed.numbers), {}, ""))
    assert found.lower[0] <= right.lower[0]
    assert found.upper[0] >= right.upper[0]
    assert WIDENED in found.method


def test_both_directions_are_one_number_at_zero(monkeypatch):
    step = compose(PoissonSampledGaussian(1.0, 0.2), 4)
    both = [step.log_delta(0.0, direction=d) for d in ("forward", "backward", "worst")]
    assert both[2].lower == max(both[0].lower, both[1].lower)
    assert both[2].upper == min(both[0].upper, both[1].upper)
    right = engines.curve_bounds

    def wrong(steps, epsilon, quantity="delta"):
        found = right(steps, epsilon, quantity)
        shift = 0.02 if steps == step.backward_pairs else 0.0
        return found._replace(value=found.value + shift, lower=found.lower + shift, upper=found.upper + shift)

    monkeypatch.setattr(compositions.engines, "curve_bounds", wrong)
    found = step.log_delta([0.0, 0.5])
    assert WIDENED in found.method
    assert found.lower[0] <= both[2].upper
    assert found.upper[0] >= both[2].lower + 0.02


@pytest.mark.slow
def test_wide_brackets_hold_the_largest_single_release():
    """Two releases at small rates: the bracket of log delta(0) was [-10.78, -9.48], and single releases are above."""
    step = PoissonSampledGaussian(1.0, 1e-4)
    two, one = compose(step, 2).log_delta(0.0), compose(step).log_delta(0.0)
    assert two.lower >= one.lower - 1e-12
    assert two.width < 1e-9


@pytest.mark.slow
def test_losses_that_elementary_bounds_do_not_know_are_left_as_they_are():
    curve = compose(GaussianMechanism(1.0, 1.0).delta, 2)
    table = _elementary(curve.forward_pairs)
    assert np.isneginf(table.lower).all()
    assert (table.log_moment, table.log_distance) == (math.inf, 0.0)
    assert WIDENED not in curve.delta([0.0, 1.0]).method


class TestDirections:
    """Ordered pairs name their direction, and say where the other one is larger."""

    pair = ([0.5, 0.5], [0.25, 0.75])

    def test_the_larger_direction_is_named(self):
        composition = compose(self.pair, 2)
        level = math.log(1.1)
        words = r"at epsilon = 0\.0953101\d* delta is at most 0\.26875\d* forward and at least 0\.28749\d* backward"
        with pytest.warns(UserWarning, match=words):
            found = composition.delta(level)
        assert found.value == pytest.approx(43 / 160)
        assert found.method.endswith(", forward: P against Q")
        with pytest.warns(UserWarning, match="that of q against p is larger"):
            composition.epsilon(0.25)
        with pytest.warns(UserWarning, match="log delta is at most -inf forward and at least -"):
            compose((BASE, GaussianMixture([0.5, 0.5], [0.0, 1.0], 1.0)), 3).log_delta(30.0)
        assert "q against p" not in composition.default_direction
        assert repr(composition).endswith("2 x pair ([0.5, 0.5], [0.25, 0.75]); direction forward, p against q>")

    @pytest.mark.parametrize("direction", ["forward", "backward", "worst"])
    def test_a_direction_that_is_passed_is_silent(self, direction):
        composition = compose(self.pair, 2)
        composition.delta(0.0953, direction=direction)  # a warning would be an error here
        composition.log_delta(0.0953, direction=direction)
        composition.epsilon(0.25, direction=direction)

    def test_what_has_no_larger_direction_is_silent(self):
        step = PoissonSampledGaussian(1.0, 0.1)
        normal = BASE, GaussianMixture.single(1.0, 1.0)
        for composition in (compose(step, 5), compose(step.pair(), 5), compose(normal)):
            composition.delta([-1.0, 0.0, 0.5])
            composition.epsilon(1e-3)

    def test_mechanisms_are_not_evaluated_twice(self, monkeypatch):
        calls = []
        right = engines.curve_bounds

        def counted(*arguments):
            calls.append(arguments)
            return right(*arguments)

        composition = compose(PoissonSampledGaussian(1.0, 0.1), 5)
        monkeypatch.setattr(compositions.engines, "curve_bounds", counted)
        composition.delta([0.1, 0.5])
        assert len(calls) == 2  # one for each direction
        calls.clear()
        composition.delta([0.1, 0.5], direction="forward")
        assert len(calls) == 1


def test_replaced_counts_are_no_other_release():
    """Equality is that of the steps: texts of releases are no part of it."""
    step = PoissonSampledGaussian(1.0, 0.1)
    assert compose(compose(step, 3), 2) == compose(step, 6)
    assert repr(compose(compose(step, 3), 2)) == repr(compose(step, 6))
    assert replace(compose(step, 6).forward_pairs.dominating[0], count=1) == compose(step).forward_pairs.dominating[0]
