"""Elementary bounds close every bracket of a divergence, and contradictions never reach a caller."""

import json
import math

import numpy as np
import pytest
from mpmath import mp, mpf

from enclosures.test_far_components import TABLE, laws
from enclosures.test_needles import KINDS, pair_with_needles, weights
from fastpriv import (
    GaussianMixture,
    MixtureStack,
    hockey_stick_divergence,
    kl_divergence,
    renyi_divergence,
    total_variation,
)
from fastpriv.divergences import jensen_shannon
from fastpriv.divergences.one_dimension import monotone_pieces, quadrature
from fastpriv.kernels import _hockey_stick_curves, _quadrature

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
        may_rise = staticmethod(_hockey_stick_curves.may_rise)

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
    ]
    for call in calls:
        for wide, narrow in ((call(rough, Q), call(exact, Q)), (call(Q, rough), call(Q, exact))):
            assert wide.lower <= narrow.upper
            assert narrow.lower <= wide.upper
            assert wide.lower - 1e-15 <= narrow.value <= wide.upper + 1e-15


def columns(*pair):
    return [np.array(x) for side in pair for x in side]


def elementary(quantity, order, *pair, value=0.0, bracket=None):
    """The bracket (lower, upper, whether it was contradicted) closed by elementary bounds, or these bounds alone."""
    ends = bracket or (-math.inf if quantity == "entropy" else 0.0, math.inf)
    _, low, high, bits = _quadrature.closed_bracket(
        _quadrature.KINDS[quantity], value, *ends, *columns(*pair), order=order or 0.0
    )
    return low, high, bool(bits & _quadrature.BOUNDS_DISAGREE)


def test_elementary_bounds_of_integrals_contain_the_truth():
    sharp = 0
    for row in json.loads(TABLE.read_text()):
        if row["quantity"] == "information" or row["order"] == 1:
            continue
        pair, want = [laws(row[side]) for side in "pq" if row[side]], mpf(row["truth"])
        low, high, contradicted = elementary(row["quantity"], row["order"], *pair)
        assert low <= want * (1 + mpf(10) ** -28), row
        assert want <= high + abs(want) * mpf(10) ** -28, row
        assert not contradicted
        sharp += low > 0.5 * want and high < 2 * want
    assert sharp > 10  # they are bounds that could be missed


PAIR = [(P.weights, P.means, P.sigmas), (Q.weights, Q.means, Q.sigmas)]
SHARP = [([0.3, 0.7], [0.0, 1.0], [1.0, 1.5]), ([0.3, 0.7], [40.0, 41.0], [1.0, 1.5])]


@pytest.mark.parametrize(("quantity", "order"), [("kl", 0), ("js", 0), ("renyi", 0.3), ("renyi", 0.5), ("renyi", 2.0),
                                                 ("renyi", 1e-9), ("renyi", 1 - 1e-9), ("entropy", 0)])
@pytest.mark.parametrize("pair", [PAIR, SHARP])
def test_a_false_integral_is_widened_to_the_hull(quantity, order, pair):
    pair = pair[:1] if quantity == "entropy" else pair
    kind, options = _quadrature.KINDS[quantity], {"order": float(order), "certified": True}
    value, least, most = _quadrature.row_integral(kind, *columns(*pair), **options)[:3]
    low, high, contradicted = elementary(quantity, order, *pair)
    assert low <= least <= most <= high
    assert not contradicted
    assert elementary(quantity, order, *pair, value=value, bracket=(least, most)) == (least, most, False)
    gap = 0.1 * abs(high)
    for false in (high + gap, low - gap):
        bracket = elementary(quantity, order, *pair, value=false, bracket=(false, false))
        assert bracket == (min(false, low), max(false, high), True)


@pytest.mark.slow
def test_nearly_equal_pairs_are_not_contradicted():
    rng = np.random.default_rng(5)
    for k in range(60):
        w, m, s = weights(rng, 3), rng.normal(0, 2, 3), np.exp(rng.normal(0, 1, 3))
        shift = 10.0 ** -rng.uniform(1, 17, 2)
        pair = (w, m, s), (w[::-1] if k % 3 == 0 else w, m + shift[0] * s, s * (1 + shift[1]))
        for quantity, order in (("kl", 0.0), ("js", 0.0), ("renyi", 1e-12), ("renyi", 1 + 1e-9), ("renyi", 3.0)):
            row = _quadrature.row_integral(_quadrature.KINDS[quantity], *columns(*pair), order=order, certified=True)
            assert not row[4] & _quadrature.BOUNDS_DISAGREE, (pair, quantity, order, row)


def test_an_integral_without_budget_has_elementary_bounds():
    for quantity, order in (("kl", 0.0), ("renyi", 2.0), ("renyi", 0.3)):
        kind, pair = _quadrature.KINDS[quantity], columns(*SHARP)
        value, low, high, *_ = _quadrature.row_integral(kind, *pair, order=order, certified=True, max_work=1)
        want = _quadrature.row_integral(kind, *pair, order=order, certified=True)
        assert 0.2 * want[1] <= low <= want[1] <= want[2] <= high <= 5.0 * want[2]
        assert low <= value <= high


def test_a_contradicted_integral_is_said(monkeypatch):
    def row_integral(*arguments, **options):
        row = _quadrature.row_integral(*arguments, **options)
        return (*row[:4], row[4] | _quadrature.BOUNDS_DISAGREE, *row[5:])

    wrong = type("Kernel", (), {**vars(_quadrature), "row_integral": staticmethod(row_integral)})
    monkeypatch.setattr(quadrature, "_quadrature", wrong)
    for call in (kl_divergence, jensen_shannon, renyi_divergence):
        assert call(P, Q).method.endswith("widened to bounds that disagree")


@pytest.mark.parametrize("exponent", [100, 150, 154, 155, 160, 200, 250, 299])
@pytest.mark.parametrize("mean", [0.0, 1.5])
def test_relative_entropy_of_a_needle(exponent, mean):
    """Squares of distances in the needle's standard deviations leave the doubles; Q is constant within it."""
    q, sigma = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 10.0]), 10.0**-exponent
    density = sum(mp.npdf(mpf(mean), m, s) / 2 for m, s in ((0, 1), (1, 10)))
    want = -mp.log(mpf(sigma) * mp.sqrt(2 * mp.pi * mp.e)) - mp.log(density)
    got = kl_divergence(GaussianMixture.single(mean, sigma), q, certified=True)
    assert mpf(float(got.lower)) <= want <= mpf(float(got.upper)), got
    assert got.width < 1e-11 * want


@pytest.mark.parametrize(("exponent", "wide"), [(20, 2e-5), (119, 2e-5), (119, 2e-50), (250, 1.0), (119, 2e-96)])
@pytest.mark.parametrize("order", [2.0, 1.25])
def test_renyi_divergence_of_a_needle_far_away(exponent, wide, order):
    """The integral is that over the needle, in which Q, its wide component, is constant."""
    sigma, t, far = 10.0**-exponent, 7.4e90, 2e99
    p, q = GaussianMixture([0.75, 0.25], [0.0, far], [wide, sigma]), GaussianMixture([0.5, 0.5], [7e57, 0.0], [t, 2e4])
    a = mpf(order)
    log_q = mp.log(mpf(0.5) / mpf(t)) - mp.log(2 * mp.pi) / 2 - ((mpf(far) - mpf(7e57)) / mpf(t)) ** 2 / 2
    power = (1 - a) * mp.log(mpf(sigma) * mp.sqrt(2 * mp.pi)) - mp.log(a) / 2  # log of the integral of N^a
    want = (a * mp.log(mpf(0.25)) + power + (1 - a) * log_q) / (a - 1)
    got = renyi_divergence(p, q, order, certified=True)
    assert mpf(float(got.lower)) <= want <= mpf(float(got.upper)), got
    assert got.width < 1e-10 * want
