"""Guarantees, bounded range, permute-and-flip, discrete Gaussian noise and trees: compositions against their truth."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import DomainError, GaussianMechanism, LaplaceMechanism, PoissonSampledGaussian, compose
from fastpriv.composition import renyi_filter
from fastpriv.errors import ShapeError
from fastpriv.pairs import (
    ApproximateDP,
    BoundedRange,
    DiscreteGaussianMechanism,
    PermuteAndFlip,
    RenyiDP,
    TreeAggregation,
    ZeroConcentratedDP,
)
from oracles import selection_and_events as oracle

LEVELS = (0.0, 1e-300, 1e-9, 0.25, 0.75, 1.0, 1.5, 2.9)


def contains(found, truth, width=None, label=""):
    """Whether bounds hold the true delta, with their relative width; the row is printed."""
    with mp.workdps(40):
        low, high = mpf(float(found.lower)), mpf(float(found.upper))
        assert low <= truth <= high, (label, found, mp.nstr(truth, 20))
        if width is not None and truth > 0:
            assert high - low <= width * truth, (label, found, mp.nstr(truth, 20))
        return float((high - low) / truth) if truth else 0.0


@pytest.mark.parametrize("parts", [
    [(0.5, 2.0**-10, 2)], [(0.5, 0.0, 4)], [(1e-300, 1e-300, 2)], [(1.0, 1.0, 1)], [(0.0, 0.25, 2)], [(30.0, 1e-12, 2)],
    [(0.5, 2.0**-10, 2), (1.0, 2.0**-20, 2)], [(0.125, 0.0, 3), (2.0, 0.5, 1)], [(700.0, 1e-5, 1)],
])
def test_approximate_dp_is_the_optimal_composition(parts):
    pairs = [oracle.four_outcomes(e, d) for e, d, count in parts for _ in range(count)]
    made = compose([ApproximateDP(e, d) for e, d, _ in parts], [count for *_, count in parts])
    worst = 0.0
    for level in LEVELS:
        truth = oracle.delta_of_outcomes(pairs, level)
        width = 1e-12 if truth > 1e-10 and parts[0][0] < 600 else None
        worst = max(worst, contains(made.delta(level), truth, width, (parts, level)))
    print("approximate_dp", parts, worst)


def test_deep_tails_of_guarantees():
    made = compose(ApproximateDP(0.01, 1e-290), 3)
    truth = oracle.delta_of_outcomes([oracle.four_outcomes(0.01, 1e-290)] * 3, 0.5)
    assert 1e-290 < truth < 4e-290
    contains(made.delta(0.5), truth, 3e-12)


@pytest.mark.parametrize("guarantees", [
    [(0.5, 0.125), (1.0, 0.0)], [(0.25, 0.2), (0.5, 0.1), (1.0, 0.01), (3.0, 1e-9)], [(0.5, 0.1), (1.0, 0.2)],
    [(0.0, 0.3), (0.5, 0.3)], [(0.5, 0.1), (0.5, 0.01)], [(1e-300, 0.5), (1.0, 1e-300)], [(0.0, 1.0), (2.0, 0.25)],
])
def test_several_guarantees_of_one_mechanism(guarantees):
    one = compose(ApproximateDP(*zip(*guarantees, strict=True)))
    for level in LEVELS:
        truth = oracle.delta_of_guarantees(guarantees, level)
        contains(one.delta(level), truth, 1e-12 if truth > 1e-12 else None, (guarantees, level))
        single = min(compose(ApproximateDP(e, d)).delta(level).upper for e, d in guarantees)
        assert one.delta(level).lower <= single


@pytest.mark.few(3)
@pytest.mark.parametrize(("width", "count"), [(1.0, 1), (1.0, 2), (1.0, 3), (0.125, 20), (5.0, 4), (1e-3, 7),
                                              (1e-9, 2)])
def test_bounded_range_fixed_in_advance(width, count):
    made = compose(BoundedRange(width, adaptive=False), count)
    worst = 0.0
    for level in (0.0, *(share * width * count for share in (0.05, 0.3, 0.7, 0.95, 1.0))):
        truth = oracle.bounded_range(width, count, level)
        lower, upper = float(made.delta(level).lower), float(made.delta(level).upper)
        assert lower * (1 - 1e-14) <= truth <= upper, (level, mp.nstr(truth, 20), lower, upper)
        if level < 0.99 * width * count:
            assert upper - lower <= 1e-13 * truth
            worst = max(worst, float((upper - lower) / truth))
    assert made.delta(1.01 * width * count).upper == 0.0
    print("bounded_range", width, count, worst)


def test_bounded_range_numbers():
    fixed, adaptive = (compose(BoundedRange(1.0, adaptive=way), 2).delta(0.25) for way in (False, True))
    assert fixed.value == pytest.approx(0.216055, abs=5e-7)
    assert adaptive.lower <= 0.220924 <= adaptive.upper  # chosen adaptively, it is more than fixed in advance
    one = compose(BoundedRange(1.0)).delta([0.0, 0.25, 0.9])  # nothing to adapt to
    assert (one.upper == compose(BoundedRange(1.0, adaptive=False)).delta([0.0, 0.25, 0.9]).upper).all()
    # adaptive mechanisms count as epsilon-DP ones from above, and mixed lists too
    assert adaptive.upper == compose(ApproximateDP(1.0, 0.0), 2).delta(0.25).upper
    mixed = compose([BoundedRange(1.0, adaptive=False), GaussianMechanism(2.0, 1.0)], [2, 1])
    assert fixed.lower <= mixed.delta(0.25).upper
    assert mixed.delta(0.25).lower <= mixed.delta(0.25).upper <= 1.0


@pytest.mark.slow
def test_many_bounded_ranges_are_within_those_of_private_ones():
    some, many = (compose(BoundedRange(0.01, adaptive=False), count) for count in (1024, 1025))
    assert some.delta(0.5).upper <= many.delta(0.5).upper
    assert many.delta(0.5).lower <= some.delta(0.5).upper * 1.02


@pytest.mark.slow
def test_permute_and_flip_by_its_law():
    """Random scores of two to four candidates, with every change by at most 1, lie between both bounds."""
    generator = np.random.default_rng(5)
    worst = 0.0
    for epsilon in (0.5, 1.0, 4.0):
        found = {level: compose(PermuteAndFlip(epsilon)).delta(level) for level in (0.0, 0.25, 0.5, 1.0, 3.0)}
        for _ in range(60):
            n = int(generator.integers(2, 5))
            scores = generator.uniform(-2, 2, n) if generator.integers(2) else generator.integers(-1, 2, n)
            change = generator.choice([-1.0, 0.0, 1.0], n) if generator.integers(2) else generator.uniform(-1, 1, n)
            laws = [oracle.permute_and_flip(list(map(float, s)), epsilon) for s in (scores, scores + change)]
            for level, bounds in found.items():
                truth = max(oracle.delta_of_outcomes([pair], level) for pair in (laws, laws[::-1]))
                assert truth <= bounds.upper * (1 + 1e-15) + 1e-300
                worst = max(worst, float(truth) / bounds.upper if bounds.upper else 0.0)
    print("permute_and_flip", worst)
    laws = oracle.permute_and_flip([0.0, 0.0], 1.0), oracle.permute_and_flip([-1.0, 1.0], 1.0)
    truth = max(oracle.delta_of_outcomes([pair], 0.5) for pair in (laws, laws[::-1]))
    found = compose(PermuteAndFlip(1.0)).delta(0.5)
    assert found.lower == pytest.approx(float(truth), rel=1e-14)
    assert found.lower <= truth
    assert f"{found.lower:.5f} {found.upper:.5f}" == "0.19673 0.22120"
    assert found.upper == pytest.approx(compose(LaplaceMechanism(1.0)).delta(0.5).upper)


@pytest.mark.few(6)
@pytest.mark.parametrize(("variance", "shift", "count"), [
    (2.0, 1, 1), (0.25, 1, 1), (0.25, 1, 3), (0.0625, 1, 2), (9.0, 3, 1), (2.0, 2, 4), (0.3, 1, 2), (1e-3, 1, 1),
    (7.3, 5, 2),
])
def test_discrete_gaussian_noise(variance, shift, count):
    made = compose(DiscreteGaussianMechanism(sigma_squared=variance, sensitivity=shift), count)
    worst, mean = 0.0, count * shift**2 / (2 * variance)
    law = oracle.sum_of_discrete_gaussians(variance, count)
    for level in (0.0, 1e-9, 0.25, 1.0, mean, 1.5 * mean + 1.0, 4.0 * mean + 4.0):
        truth = oracle.delta_on_lattice(law, variance, shift, count, level)
        width = 1e-6 if truth > 1e-250 and variance > 0.01 else None
        worst = max(worst, contains(made.delta(level), truth, width, (variance, shift, count, level)))
        back = made.delta(level, direction="backward")
        contains(back, truth, width)
    print("discrete_gaussian", variance, shift, count, worst)


def test_discrete_gaussian_is_not_the_continuous_curve():
    found = compose(DiscreteGaussianMechanism(sigma_squared=0.25)).delta([2.0, 5.9])  # losses 2, 6, 10, ...
    smooth = compose(GaussianMechanism(0.5, 1.0)).delta([2.0, 5.9])
    assert abs(found.value / smooth.value - 1.0).max() > 0.05
    assert compose(DiscreteGaussianMechanism(1.0, sensitivity=0)).delta(0.0).upper == 0.0
    assert compose(DiscreteGaussianMechanism(math.sqrt(2.0), 1)).delta(0.25).value == pytest.approx(0.180143128819516)


def test_discrete_gaussian_renyi_divergences_are_bounded():
    made = compose(DiscreteGaussianMechanism(sigma_squared=2.0), 3)
    found = made.renyi_divergence([1.0, 2.0, 8.0])
    assert (found.upper >= 3 * np.array([1.0, 2.0, 8.0]) / 4.0).all()
    assert (found.upper <= 3 * np.array([1.0, 2.0, 8.0]) / 4.0 * (1 + 1e-12)).all()
    assert (found.lower > 0.99 * found.upper).all()


def test_many_steps_of_discrete_noise():
    found = compose(DiscreteGaussianMechanism(100.0, 1), 1000).delta([0.5, 2.0])  # near the continuous curve
    smooth = compose(GaussianMechanism(100.0, 1.0), 1000).delta([0.5, 2.0])
    assert (found.upper - found.lower <= 1e-9 * found.upper).all()
    assert np.allclose(found.value, smooth.value, rtol=1e-2)


def test_trees_are_gaussian_mechanisms():
    for leaves, depth in ((1, 1), (2, 2), (3, 2), (4, 3), (1023, 10), (1024, 11)):
        found, wanted = (compose(x).delta([0.5, 2.0]) for x in (
            TreeAggregation(leaves, 3.0, 0.7), compose(GaussianMechanism(3.0, 0.7), depth)))
        assert (found.lower == wanted.lower).all()
    assert compose(TreeAggregation([3, 9, 4], 2.0)).delta(1.0) == compose(TreeAggregation(9, 2.0)).delta(1.0)


def zcdp_delta(rho, xi, epsilon):
    """The least bound over t, on a fine grid: no bound of this form is below it by more than the grid says."""
    t = np.geomspace(1e-7, 1e7, 400001)
    logs = t * np.log(t / (1 + t)) - np.log1p(t) + t * (xi + rho * (1 + t)) - t * epsilon
    return min(math.exp(min(0.0, logs.min())), 0.5 * math.sqrt(math.expm1(2 * rho + xi)))  # and by Cauchy and Schwarz


@pytest.mark.parametrize(("rho", "xi"), [(0.01, 0.0), (1.0, 0.0), (0.02, 0.3), (1e-6, 0.0)])
def test_concentrated_privacy(rho, xi):
    found = compose(ZeroConcentratedDP(rho, xi), 3)
    for level in (0.0, 0.5, 3.0, 20.0):
        bound = found.delta(level)
        assert bound.lower == 0.0
        assert "upper bound" in bound.method
        least = zcdp_delta(3 * rho, 3 * xi, level)
        assert least * (1 - 1e-6) <= bound.upper <= least * (1 + 1e-6) + 1e-300
    if xi == 0.0:  # a Gaussian mechanism has it
        gaussian = compose(GaussianMechanism(math.sqrt(0.5 / rho), 1.0), 3)
        assert (gaussian.delta([0.0, 0.5, 3.0]).lower <= found.delta([0.0, 0.5, 3.0]).upper).all()
    assert compose(ZeroConcentratedDP(0.0)).delta(0.5).upper < 1e-6
    assert found.epsilon(1e-5).upper < math.inf


STEPS = {
    "gaussian": GaussianMechanism(4.0, 1.0), "sampled": PoissonSampledGaussian(1.0, 0.1),
    "laplace": LaplaceMechanism(4.0),
    "guarantee": ApproximateDP(0.1, 1e-6), "discrete gaussian": DiscreteGaussianMechanism(4.0),
    "pair": ([0.5, 0.25, 0.25], [0.25, 0.5, 0.25]),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", STEPS)
def test_concentrated_privacy_with_other_steps(name):
    """A Gaussian mechanism in the place of its zCDP has no larger delta, and the other steps alone bound from below."""
    sigma = 3.0
    bound = compose([ZeroConcentratedDP(0.5 / sigma**2), STEPS[name]], [2, 3])
    exact = compose([GaussianMechanism(sigma, 1.0), STEPS[name]], [2, 3])
    alone = compose(STEPS[name], 3)
    for level in (0.0, 0.5, 1.5):
        words = {"direction": "worst"}
        found = bound.delta(level, **words)
        assert exact.delta(level, **words).lower <= found.upper, level
        assert found.upper <= 1.0
        assert found.lower <= alone.delta(level, **words).upper
        assert found.lower >= alone.delta(level, **words).lower * (1 - 1e-9)
    assert bound.delta(1.5, direction="worst").upper < 0.9


def test_renyi_orders_and_chords():
    orders, sigma = [1.5, 2.0, 4.0, 16.0, 64.0], 2.0
    curve = RenyiDP(orders, [a / (2 * sigma**2) for a in orders])
    bound, exact = compose(curve, 4), compose(GaussianMechanism(sigma, 1.0), 4)
    smooth = compose(ZeroConcentratedDP(0.5 / sigma**2), 4)
    for level in (0.0, 1.0, 4.0, 12.0):
        assert exact.delta(level).lower <= bound.delta(level).upper
        assert smooth.delta(level).upper <= bound.delta(level).upper * (1 + 1e-9)
    single = compose(RenyiDP(2.0, 0.25)).delta(1.0).upper
    assert single <= 0.25 * math.exp(0.25 - 1.0) * (1 + 1e-9)  # t = 1: c(1) = 1/4
    assert compose(curve).renyi_divergence(4.0).upper == pytest.approx(0.5)


def test_renyi_filters_stop_in_time():
    """Every list that fits has a composition that meets the target, and the budget is nearly used."""
    generator = np.random.default_rng(3)
    for epsilon, delta, order in ((1.0, 1e-5, 24.0), (3.0, 1e-9, 12.0), (0.5, 1e-3, 30.0)):
        steps = [STEPS[name] for name in generator.choice(["gaussian", "sampled", "laplace", "discrete gaussian"], 200)]
        steps = [ZeroConcentratedDP(1e-4), *steps]
        number = renyi_filter(steps, epsilon, delta, order=order)
        assert 0 < number < 200
        assert compose(steps[:number]).delta(epsilon, direction="worst").lower <= delta
        t = order - 1.0
        moments = [t * compose(one).renyi_divergence(order, direction="worst").upper for one in steps[: number + 1]]
        budget = math.log(delta) + t * epsilon - t * math.log(t / order) + math.log(order)
        assert sum(moments[:-1]) <= budget * (1 + 1e-12) < sum(moments) * (1 + 2e-12)
    assert renyi_filter([], 1.0, 1e-5, order=2.0) == 0
    assert renyi_filter([ApproximateDP(0.1, 1e-9)], 1.0, 1e-5, order=8.0) == 0  # its divergence is infinite


@pytest.mark.parametrize("one", [
    ApproximateDP([0.5, 1.0], [0.125, 0.0]), BoundedRange(1.0), BoundedRange(1.0, adaptive=False), PermuteAndFlip(1.0),
    DiscreteGaussianMechanism(2.0), DiscreteGaussianMechanism(sigma_squared=2.0, sensitivity=3),
    ZeroConcentratedDP(0.1, 0.2), RenyiDP([2.0, 3.0], [0.1, 0.3]), TreeAggregation([3, 4], 2.0),
    TreeAggregation(3, 2.0),
])
def test_they_are_values(one):
    again = pickle.loads(pickle.dumps(one))
    assert again == one
    assert hash(again) == hash(one)
    assert repr(again) == repr(one)
    assert compose(one, 2).delta(0.5) == compose([again, one]).delta(0.5)
    assert eval(repr(one), {type(one).__name__: type(one)}) == one
    with pytest.raises(AttributeError, match="immutable"):
        one.epsilon = 3.0


@pytest.mark.parametrize("epsilon", [700.0, 800.0, 1e5, 1e308])
def test_epsilons_beyond_all_doubles(epsilon):
    """Masses of e^-epsilon are no doubles: bounds from below are those of a smaller epsilon."""
    assert compose(PermuteAndFlip(epsilon)).delta(1.0).lower > 0.499
    for one in (ApproximateDP(epsilon, 1e-300), BoundedRange(epsilon), BoundedRange(epsilon, adaptive=False)):
        assert compose(one).delta(1.0).lower > 1.0 - 1e-12
    several = compose(ApproximateDP([epsilon, 1.0], [1e-300, 0.5])).delta([1.0, 600.0])
    assert (several.lower > 0.5 - 1e-12).all()
    assert (several.upper < 0.5 + 1e-12).all()


ERRORS = [(lambda: renyi_filter([GaussianMechanism(1.0, 1.0)], 1.0, 0.0, order=2.0), DomainError,
     "delta must be above 0 and at most 1; got 0"),
    (lambda: renyi_filter([GaussianMechanism(1.0, 1.0)], 1.0, 0.5, order=1.0), DomainError,
     "order must be above 1 and finite; got 1"),
    (lambda: renyi_filter([3], 1.0, 0.5, order=2.0), DomainError, "pairs.0. must be a tuple"),
    (lambda: renyi_filter(GaussianMechanism(1.0, 1.0), 1.0, 0.5, order=2.0), DomainError,
     "pairs must be a sequence of pairs"),
    (lambda: ApproximateDP(-1.0, 0.0), DomainError,
     "epsilon must be at least 0 and finite; got -1"),
    (lambda: ApproximateDP(1.0, 1.5), DomainError,
     "delta must be between 0 and 1; got 1.5"),
    (lambda: ApproximateDP(math.nan, 0.5), DomainError,
     "epsilon must be"),
    (lambda: ApproximateDP([1.0, 2.0], [0.5]), ShapeError,
     "delta must have one entry for each of the 2 epsilons; got 1"),
    (lambda: BoundedRange(math.inf), DomainError,
     "epsilon must be at least 0 and finite"),
    (lambda: BoundedRange(1.0, adaptive="no"), DomainError,
     "adaptive must be True or False"),
    (lambda: PermuteAndFlip("x"), DomainError,
     "epsilon must be"),
    (lambda: DiscreteGaussianMechanism(), DomainError,
     "sigma or sigma_squared must be given, and not both; got neither"),
    (lambda: DiscreteGaussianMechanism(1.0, sigma_squared=1.0), DomainError,
     "and not both; got both"),
    (lambda: DiscreteGaussianMechanism(0.0), DomainError,
     "sigma must be positive and finite; got 0"),
    (lambda: DiscreteGaussianMechanism(1.0, 0.5), DomainError,
     "sensitivity must be an integer"),
    (lambda: DiscreteGaussianMechanism(1e-160), DomainError,
     "the square of sigma must be at least 1.5e-241; got 1e-160 as sigma. Without noise"),
    (lambda: DiscreteGaussianMechanism(sigma_squared=5e-324), DomainError,
     "the square of sigma must be at least .*; got 5e-324 as sigma_squared"),
    (lambda: DiscreteGaussianMechanism(1e6), DomainError,
     "sigma must be below .*, so that the lattice"),
    (lambda: TreeAggregation(0, 1.0), DomainError,
     "leaves must be an integer of at least 1"),
    (lambda: TreeAggregation([], 1.0), DomainError,
     "leaves must have at least one tree; got none"),
    (lambda: TreeAggregation(4, -1.0), DomainError,
     "sigma must be positive and finite"),
    (lambda: ZeroConcentratedDP(-0.1), DomainError,
     "rho must be at least 0 and finite"),
    (lambda: RenyiDP([1.0], [0.1]), DomainError,
     "orders must be above 1 and finite"),
    (lambda: RenyiDP([2.0, 3.0], [0.1]), ShapeError,
     "epsilons must have one entry for each of the 2 orders; got 1"),
]


@pytest.mark.parametrize("case", ERRORS, ids=range(len(ERRORS)))
def test_what_is_refused(case):
    make, kind, text = case
    with pytest.raises(kind, match=text):
        make()
