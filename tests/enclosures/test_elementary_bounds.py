"""Elementary bounds close every bracket of a hockey-stick divergence, and contradictions never reach a caller."""

import numpy as np
import pytest

from enclosures.test_needles import KINDS, pair_with_needles
from fastpriv import (
    GaussianMixture,
    MixtureStack,
    hockey_stick_divergence,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.divergences import jensen_shannon
from fastpriv.divergences.one_dimension import monotone_pieces
from fastpriv.kernels import _hockey_stick_curves

P = GaussianMixture([0.3, 0.7], [0.0, 1.0], [1.0, 1.5])
Q = GaussianMixture([0.4, 0.6], [0.2, 2.0], [1.2, 0.8])


def test_no_bracket_of_the_kernel_contradicts_them():
    rng = np.random.default_rng(3)
    grid = np.array([-2.0, 0.0, 1e-9, 0.5, 20.0, 300.0])
    for k in range(30):
        p, q, _ = pair_with_needles(rng, KINDS[k % len(KINDS)])
        rows, cost = _hockey_stick_curves.pair_curve(*p, *q, grid, 5e-13, False)
        assert cost[5] == 0, (p, q)
        assert np.all(rows[:, 1] <= rows[:, 2])


def test_a_pair_that_the_pieces_cannot_resolve_has_a_lower_bound():
    """The masses around the narrowest component alone: lengths too far apart, so that there are no pieces."""
    p = [np.array(x) for x in ([0.25, 0.5, 0.25], [0.0, 3.0, 1e200], [1.0, 1e-200, 1e190])]
    q = [np.array(x) for x in ([0.5, 0.5], [0.0, -1e200], [2.0, 1e190])]
    rows, cost = _hockey_stick_curves.pair_curve(*p, *q, np.array([0.0, 1.0]), 5e-13, False)
    assert cost[3] > 0
    for row in rows:  # the first component of each is the only part that they share, and 0.25 N(0, 1) <= 0.5 N(0, 4)
        assert 0.49 < row[1] <= 0.75 <= row[2]


@pytest.mark.parametrize("bracket", [(0.0, 1e-6), (0.999, 1.0)])
def test_a_false_bracket_is_widened_and_said(monkeypatch, bracket):
    """A kernel that claims too little or too much, at one of several epsilons: its rows would fall and rise again."""
    grid = np.array([0.0, 0.5, 1.0])
    wrong = int(bracket[0] > 0.5) + 1

    class Kernel:
        wide_brackets = staticmethod(_hockey_stick_curves.wide_brackets)

        @staticmethod
        def pair_curve(*arguments):
            rows, cost = _hockey_stick_curves.pair_curve(*arguments)
            rows[wrong, :3] = bracket[0], *bracket
            rows[wrong, 3:] = np.log(bracket[1]), -np.inf if bracket[0] == 0.0 else np.log(bracket[0]), 0.0
            return rows, cost

    truth = hockey_stick_divergence(P, Q, grid)
    monkeypatch.setattr(monotone_pieces, "_hockey_stick_curves", Kernel)
    got = hockey_stick_divergence(P, Q, grid)
    assert np.all(got.lower <= truth.value)
    assert np.all(truth.value <= got.upper)
    assert got.method.endswith("widened to bounds that disagree")
    assert got.cost["contradicted"] > 0


def test_brackets_of_parts_that_disagree_become_their_hull():
    from fastpriv.divergences.one_dimension.separated_scales import intersect_rows

    rows = np.array([[0.2, 0.1, 0.3, -1.6, -2.3, -1.2], [0.2, 0.1, 0.3, -1.6, -2.3, -1.2]])
    other = np.array([[0.25, 0.2, 0.4, -1.4, -1.6, -0.9], [0.5, 0.4, 0.6, -0.7, -0.9, -0.5]])
    assert intersect_rows(rows, np.arange(2), other)
    assert rows[:, 1:3].tolist() == [[0.2, 0.3], [0.1, 0.6]]
    assert rows[:, 4:].tolist() == [[-1.6, -1.2], [-2.3, -0.5]]


def test_rows_of_stacks_are_closed_too():
    stack = MixtureStack(np.tile(P.weights, (3, 1)), np.tile(P.means, (3, 1)), np.tile(P.sigmas, (3, 1)))
    got = hockey_stick_divergence(stack, Q, 0.5)
    assert np.all(got.value == hockey_stick_divergence(P, Q, 0.5).value)
    assert "contradicted" not in got.cost


@pytest.mark.parametrize("gap", [5e-10, -5e-10])
def test_one_reading_of_weights_whose_sum_misses_one(gap):
    """The bounds of every divergence hold for the weights divided by their sum."""
    rough = GaussianMixture([0.25, 0.75 + gap], [0.0, 2.0], [1.0, 0.5])
    exact = GaussianMixture(rough.weights / rough.weights.sum(), rough.means, rough.sigmas)
    calls = [
        lambda p, q: hockey_stick_divergence(p, q, 0.5), lambda p, q: hockey_stick_divergence(p, q, -0.5),
        total_variation, kl_divergence, jensen_shannon, lambda p, q: renyi_divergence(p, q, 2.0),
        lambda p, q: renyi_divergence(p, q, 0.5),
    ]  # fmt: skip
    for call in calls:
        for wide, narrow in ((call(rough, Q), call(exact, Q)), (call(Q, rough), call(Q, exact))):
            assert wide.lower <= narrow.upper
            assert narrow.lower <= wide.upper
            assert wide.lower - 1e-15 <= narrow.value <= wide.upper + 1e-15
