"""The best of a random number of runs: exact laws against sums over the number of runs, bounds against every order."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import (
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    Pmf,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
)
from fastpriv.composition import trade_off_curve
from fastpriv.errors import ShapeError
from fastpriv.pairs import (
    ApproximateDP,
    NegativeBinomial,
    PermuteAndFlip,
    Poisson,
    PoissonSampled,
    Selected,
    TreeAggregation,
)
from oracles import selection_and_events as oracle

RUNS = {
    "geometric": (NegativeBinomial(1.0, 0.5), ("negative binomial", 1.0, 0.5)),
    "many": (NegativeBinomial(1.0, 0.125), ("negative binomial", 1.0, 0.125)),
    "logarithmic": (NegativeBinomial(0.0, 0.25), ("negative binomial", 0.0, 0.25)),
    "heavy": (NegativeBinomial(-0.5, 0.25), ("negative binomial", -0.5, 0.25)),
    "light": (NegativeBinomial(3.5, 0.5), ("negative binomial", 3.5, 0.5)),
    "nearly one": (NegativeBinomial(1.0, 1.0 - 2.0**-30), ("negative binomial", 1.0, 1.0 - 2.0**-30)),
    "poisson": (Poisson(8.0), ("poisson", 8.0)),
    "few": (Poisson(1e-3), ("poisson", 1e-3)),
}
BASES = [
    ([0.5, 0.5], [0.25, 0.75], [0, 1]),
    ([0.5, 0.25, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5], [0, 1, 2, 3]),
    ([0.5, 0.25, 0.125, 0.125], [0.125, 0.125, 0.25, 0.5], [2.0, 0.0, 2.0, 1.0]),  # a tie
    ([0.5, 0.5, 0.0], [0.25, 0.25, 0.5], [1, 0, 0]),
    ([1.0 - 2.0**-40, 2.0**-40, 0.0], [1.0 - 2.0**-40, 0.0, 2.0**-40], [0, 1, 1]),
    ([0.5, 0.5 - 2.0**-52, 2.0**-52], [2.0**-52, 0.5, 0.5 - 2.0**-52], [0, 1, 2]),
]


def contains(found, truth, width=None, label=""):
    """Whether bounds hold the true delta, with their relative width."""
    with mp.workdps(40):
        low, high = mpf(float(found.lower)), mpf(float(found.upper))
        assert low <= truth <= high, (label, found, mp.nstr(truth, 20))
        if width is not None and truth > 0:
            assert high - low <= width * truth, (label, found, mp.nstr(truth, 20))
        return float((high - low) / truth) if truth else 0.0


@pytest.mark.few(4)
@pytest.mark.parametrize("name", RUNS)
def test_known_orders_are_exact(name):
    runs, numbers = RUNS[name]
    worst = 0.0
    for p, q, scores in BASES:
        made = compose(Selected((p, q), runs, order=scores))
        laws = [oracle.selected_law(side, scores, numbers) for side in (p, q)]
        for direction, pair in (("forward", laws), ("backward", laws[::-1])):
            for level in (0.0, 1e-9, 0.25, 0.5, 1.0, 3.0):
                truth = oracle.delta_of_outcomes([pair], level)
                found = made.delta(level, direction=direction)
                worst = max(worst, contains(found, truth, 1e-11 if truth > 1e-3 else None, (name, p, direction, level)))
    print("selected", name, worst)
    two = compose(Selected(BASES[1][:2], runs, order="largest"), 2)
    laws = [oracle.selected_law(side, [0, 1, 2, 3], numbers) for side in BASES[1][:2]]
    contains(two.delta(0.5, direction="forward"), oracle.delta_of_outcomes([laws, laws], 0.5), 1e-11)


def test_the_mean_is_that_of_the_runs():
    for name, (runs, numbers) in RUNS.items():
        mean = mp.fsum(k * w for k, w in enumerate(oracle.run_probabilities(numbers)))
        assert runs.mean == pytest.approx(float(mean), rel=1e-13), name


def test_worst_orders_are_not_monotone():
    p = [0.5, 0.25, 0.125, 0.125]
    runs = NegativeBinomial(1.0, 0.125)
    found = {
        order: float(compose(Selected((p, p[::-1]), runs, order=list(order))).delta(0.5, direction="forward").value)
        for order in itertools.permutations(range(4))
    }
    scores = max(found, key=found.get)
    assert found[scores] == pytest.approx(0.33981, abs=5e-6)
    assert np.argsort(scores).tolist() == [1, 2, 0, 3]  # worst run first
    bound = compose(Selected((p, p[::-1]), runs)).delta(0.5, direction="forward")
    assert bound.lower <= found[scores] <= bound.upper
    assert bound.lower >= max(found[0, 1, 2, 3], found[3, 2, 1, 0]) * (1 - 1e-12)


def random_pairs(generator, number):
    for _ in range(number):
        n = int(generator.integers(2, 5))
        p, q = (generator.dirichlet(np.full(n, generator.choice([0.3, 1.0, 5.0]))) for _ in range(2))
        if generator.integers(2):
            q = 0.8 * p + 0.2 * q
        yield p / p.sum(), q / q.sum()


@pytest.mark.slow
def test_bounds_hold_for_every_order():
    generator, ratio = np.random.default_rng(11), 0.0
    for p, q in random_pairs(generator, 60):
        runs = generator.choice(list(RUNS))
        levels = np.array([0.0, 0.3, 1.0, 2.5])
        bound = compose(Selected((p, q), RUNS[runs][0]))
        for direction in ("forward", "backward"):
            upper = bound.delta(levels, direction=direction).upper
            for order in itertools.permutations(range(p.size)):
                exact = compose(Selected((p, q), RUNS[runs][0], order=list(order))).delta(levels, direction=direction)
                assert (exact.lower <= upper).all(), (p, q, order, runs)
                ratio = max(ratio, float((exact.lower / np.maximum(upper, 1e-300))[upper < 1.0].max(initial=0.0)))
    print("true delta over the bound, at most", ratio)
    assert ratio > 0.5


GAUSSIANS = [(0.5, 0.0, "many"), (0.5, 0.0, "poisson"), (0.0, 2.0, "geometric"), (1.0, 0.0, "heavy"),
             (0.0, 0.25, "light"), (0.25, 0.0, "logarithmic")]


@pytest.mark.slow
@pytest.mark.parametrize("case", GAUSSIANS)
def test_normal_runs(case):
    p_mean, q_mean, name = case
    runs, numbers = RUNS[name]
    pair = GaussianMixture.single(2 * p_mean, 2.0), GaussianMixture.single(2 * q_mean, 2.0)
    worst = 0.0
    for order, sign in (("largest", 1), ("smallest", -1)):
        made = compose(Selected(pair, runs, order=order))
        for level in (0.0, 0.5, 2.0):
            for direction, means in (("forward", (p_mean, q_mean)), ("backward", (q_mean, p_mean))):
                truth = oracle.selected_gaussian(*means, numbers, level, sign)
                if truth < 1e-40:  # what is left of 60 digits
                    continue
                found = made.delta(level, direction=direction)
                width = 1e-9 if truth > 1e-30 else None
                worst = max(worst, contains(found, truth, width, (case, order, direction, level)))
    print("selected normal", case, worst)


def test_numbers_of_normal_runs():
    pair = GaussianMixture.single(0.5, 1.0), GaussianMixture.single(0.0, 1.0)
    for runs, order, number in ((RUNS["many"][0], "largest", "0.1074"), (RUNS["many"][0], "smallest", "0.0402"),
                                (RUNS["poisson"][0], "smallest", "0.1609"), (RUNS["poisson"][0], "largest", "0.1398")):
        assert f"{compose(Selected(pair, runs, order=order)).delta(0.5, direction='forward').value:.4f}" == number


@pytest.mark.slow
def test_many_levels_and_several_releases_of_normal_runs():
    one = Selected(GaussianMechanism(2.0, 1.0), RUNS["many"][0], order="largest")
    levels = np.linspace(0.0, 3.0, 40)
    many, few = compose(one).delta(levels), [compose(one).delta(level) for level in levels[::13]]
    for wide, close in zip(range(0, 40, 13), few, strict=True):
        assert many.lower[wide] <= close.upper
        assert close.lower <= many.upper[wide]
    assert (many.upper - many.lower <= 1e-5 * many.upper)[:30].all()
    cells = 4000  # a coarser law from below: cells of both densities
    ends = np.linspace(-12.0, 12.0, cells)
    masses = []
    for mean in (0.5, 0.0):
        above = np.array([0.5 * math.erfc((x - mean) / math.sqrt(2.0)) for x in ends])
        g = 0.125
        released = g * (1.0 - above) / (g + (1.0 - g) * above)  # f of the geometric distribution
        masses.append(np.diff(released, prepend=0.0, append=1.0))
    p, q = (m / m.sum() for m in masses)
    found = compose(one, 2).delta(0.5)
    lower = max(compose((a, b), 2).delta(0.5, direction="forward").upper for a, b in ((p, q), (q, p)))
    assert lower * (1 - 1e-9) <= found.upper
    assert found.upper - found.lower <= 1e-3 * found.upper
    assert found.lower <= lower * (1 + 1e-3)


BASE_OBJECTS = [
    RandomizedResponse(3, 1.0), PoissonSampledGaussian(1.0, 0.01), LaplaceMechanism(1.0), PermuteAndFlip(1.0),
    ApproximateDP(0.5, 1e-6), compose(GaussianMechanism(10.0, 1.0), 9),
    ([0.5, 0.5], [0.25, 0.75]), GaussianMechanism(4.0, 1.0),
    (Pmf([0.0, 1.0], [0.5, 0.5]), Pmf([0.0, 1.0], [0.25, 0.75])), lambda e: compose(LaplaceMechanism(1.0)).delta(e),
]


@pytest.mark.parametrize("index", range(len(BASE_OBJECTS)))
def test_any_base_without_an_order(index):
    one = Selected(BASE_OBJECTS[index], NegativeBinomial(1.0, 0.25))
    found = compose(one).delta([0.0, 0.5, 3.0, 6.0], direction="worst")
    assert (found.lower <= found.upper).all()
    base = BASE_OBJECTS[index]
    same = compose(base).delta([0.0, 0.5, 3.0, 6.0], direction="worst") if index != 6 else found
    assert (same.lower <= found.upper).all()  # one run is a number of runs
    if index not in (0, 4, 6):
        return
    assert compose(one, 2).delta(3.0, direction="worst").upper >= found.upper[2] * (1 - 1e-6) or found.upper[2] < 1e-10


def test_pure_privacy_keeps_its_published_price():
    for eta in (0.0, 1.0, 2.5):
        made = compose(Selected(RandomizedResponse(2, 0.5), NegativeBinomial(eta, 0.1)))
        assert made.delta((2.0 + eta) * 0.5 * (1 + 1e-9)).upper < 1e-14


def test_the_order_of_a_gaussian_bounds_from_below():
    bound = compose(Selected(GaussianMechanism(2.0, 1.0), RUNS["many"][0])).delta([0.5, 2.0])
    orders = [compose(Selected(GaussianMechanism(2.0, 1.0), RUNS["many"][0], order=order)).delta([0.5, 2.0])
              for order in ("largest", "smallest")]
    assert (bound.lower == np.maximum(*(one.lower for one in orders))).all()
    assert all((one.upper <= bound.upper).all() for one in orders)


@pytest.mark.parametrize("index", [0, 4, 5, 6, 7, 8])
def test_they_are_values(index):
    for order in (None, *(("largest", [1.0, 2.0]) if index == 6 else ())):
        one = Selected(BASE_OBJECTS[index], NegativeBinomial(1.0, 0.25), order=order)
        again = pickle.loads(pickle.dumps(one))
        assert again == one
        assert hash(again) == hash(one)
        assert repr(again) == repr(one)
        assert compose([one, again]).count == 2
    for runs in (NegativeBinomial(0.5, 0.25), Poisson(2.0)):
        assert pickle.loads(pickle.dumps(runs)) == runs
        assert eval(repr(runs)) == runs


def test_other_functions_take_them():
    one = Selected(([0.5, 0.5], [0.25, 0.75]), NegativeBinomial(1.0, 0.5), order="largest")
    assert 0.0 < trade_off_curve(one, None, 0.25).beta.lower <= 0.75


ERRORS = [
    (lambda: Selected(GaussianMechanism(1.0, 1.0), 8), DomainError,
     "runs must be a NegativeBinomial or a Poisson; got 8"),
    (lambda: Selected(3, Poisson(1.0)), DomainError,
     "base must be a tuple"),
    (lambda: Selected(TreeAggregation(8, 1.0), Poisson(1.0)), DomainError,
     "base must be a single pair, or a Composition"),
    (lambda: Selected(LaplaceMechanism(1.0), Poisson(1.0), order="largest"), DomainError,
     "order must be left out for a base"),
    (lambda: Selected(([0.5, 0.5], [0.25, 0.75]), Poisson(1.0), order="best"), DomainError,
     "order must be one of largest"),
    (lambda: Selected(([0.5, 0.5], [0.25, 0.75]), Poisson(1.0), order=[1.0]), ShapeError,
     "order must have one score for each of"),
    (lambda: Selected(GaussianMechanism(1e-4, 1.0), Poisson(1.0), order="largest"), DomainError,
     "base must be two normal distributions at most 1000 sigmas apart"),
    (lambda: NegativeBinomial(-1.0, 0.5), DomainError,
     "eta must be above -1 and at most 1e6; got -1"),
    (lambda: NegativeBinomial(1.0, 1.0), DomainError,
     "gamma must be from 1e-300 to below 1; got 1"),
    (lambda: NegativeBinomial(1.0, math.nan), DomainError,
     "gamma must be"),
    (lambda: Poisson(0.0), DomainError,
     "mean must be positive and at most 1e15; got 0"),
]


@pytest.mark.parametrize("case", ERRORS, ids=range(len(ERRORS)))
def test_what_is_refused(case):
    make, kind, text = case
    with pytest.raises(kind, match=text):
        make()


def test_few_selections_of_small_losses():
    # the grid is as fine as losses of 1e-4: 2 releases cost at most twice one
    base, runs = PoissonSampled(GaussianMechanism(3.0, 1.0), 1e-4), NegativeBinomial(1.0, 0.1)
    one, two = (compose(Selected(base, runs), count) for count in (1, 2))
    both, most = two.delta(2.4e-4), 2 * one.delta(1.2e-4).upper
    assert 1e-6 < both.upper <= min(1e-5, most)
    assert both.lower >= compose(base, 2).delta(2.4e-4).lower * (1 - 1e-9) > 0.0  # a score without information


def test_selections_of_a_long_composition_have_no_end():
    base = compose(PoissonSampled(GaussianMechanism(1.0, 1.0), 0.01), 1000)
    selected = compose(Selected(base, NegativeBinomial(1.0, 0.1)))
    assert selected.epsilon(0.0).upper == math.inf
    assert selected.delta(3.0).lower >= base.delta(3.0).lower * (1 - 1e-9) > 0.0
    bounded = compose(Selected(compose(LaplaceMechanism(2.0), 3), NegativeBinomial(1.0, 0.5))).epsilon(0.0)
    assert 1.5 <= bounded.upper <= 4.5 + 1e-9  # three times the 1/2 of one run, from above (2 + eta) times that
