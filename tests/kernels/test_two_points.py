"""Two points against two points with one sigma, and the subsampled Gaussian mechanism, against ball arithmetic."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from fastpriv import GaussianMixture, PoissonSampledGaussian, compose, hockey_stick_divergence, special
from fastpriv.divergences import log_hockey_stick_divergence
from fastpriv.kernels import _hockey_stick_curves
from oracles.two_points import log_hockey_stick, subsampled
from sizes import few_or_all

RELATIVE = 2e-15  # of the value, u being known; the kernel allows for 6e-15 (FP_TWO_POINTS_RELATIVE)
WIDTH = 4e-14  # as stated in fastpriv.special
CLOSED_FORM = "closed form"


def sizes(rng, low, high, n):
    return 10 ** rng.uniform(low, high, n)


def settings(name, direction, n):
    """Sampling rates, noise multipliers and epsilons."""
    rng = np.random.default_rng([20261122, n, len(name), direction == "add"])
    rate, sigma, epsilon = sizes(rng, -6, 0, n), sizes(rng, -1, 2, n), sizes(rng, -4, 1, n)
    if name == "tiny rate":
        rate, epsilon = sizes(rng, -320, -3, n), sizes(rng, -10, 2, n)
    elif name == "tiny epsilon":
        sigma, epsilon = sizes(rng, -1, 9, n), sizes(rng, -25, -3, n)
    elif name == "rate near one":
        rate, epsilon = 1 - sizes(rng, -16, -2, n), sizes(rng, -5, 2, n)
    elif name == "epsilon zero":
        rate, sigma, epsilon = sizes(rng, -300, 0, n), sizes(rng, -4, 9, n), np.zeros(n)
    elif name in ("large sigma", "small sigma"):  # where the curve is neither 0 nor at its top
        sigma = sizes(rng, 3, 9, n) if name == "large sigma" else sizes(rng, -4, -1, n)
        r = 0.5 / sigma
        u = np.minimum(np.maximum(2 * r * (r + rng.uniform(-8, 30, n)), 0), 600)
        epsilon = np.log1p(rate * np.expm1(u)) if direction == "remove" else -np.log1p(rate * np.expm1(-u))
    elif name == "far tail":
        epsilon = sizes(rng, 1, 5, n)
    return rate, sigma, epsilon


NAMES = [
    "practice", "tiny rate", "tiny epsilon", "rate near one", "epsilon zero", "large sigma", "small sigma", "far tail",
]


def functions(direction):
    stem = "sampled_gaussian_"
    return getattr(special, f"{stem}delta_{direction}"), getattr(special, f"{stem}log_delta_{direction}")


def misses(row, truth, linear, logarithm):
    """Why the bounds of one setting do not hold the truth, which is a ball of its logarithm; else an empty text."""
    ctx.prec = 300
    if truth == arb.neg_inf():
        good = linear[1] == 0 and logarithm[1] == -math.inf
    else:
        good = not truth > arb(float(logarithm[2]))
        if truth > -1e6:
            good = good and not (arb(float(linear[1])) > truth.exp() or truth.exp() > arb(float(linear[2])))
        else:
            good = good and linear[1] == 0 < linear[2]
        good = good and (logarithm[1] == -math.inf or not arb(float(logarithm[1])) > truth)
    return "" if good else f"{row}: log H = {truth.str(20)}, got {linear}, {logarithm}"


def known_u(rate, sigma, epsilon, direction):
    """Whether q - (1 - q) (e^epsilon - 1) does not cancel, so that double-doubles know u to 1e-27."""
    rate, rise = Fraction(rate), math.expm1(min(epsilon, 700.0))
    return direction == "remove" or float(rate - (1 - rate) * Fraction(rise)) > 1e-3 * float(rate)


@few_or_all("count", 150, 3000)
@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_contain_the_truth_and_are_close(name, direction, count):
    rate, sigma, epsilon = settings(name, direction, count)
    linear, logarithm = (np.array(function(sigma, rate, epsilon)).T for function in functions(direction))
    problems, worst, widest = [], 0.0, 0.0
    for i in range(count):
        row = tuple(map(float, (rate[i], sigma[i], epsilon[i])))
        truth = subsampled(*row, direction)
        problems += filter(None, [misses(row, truth, linear[i], logarithm[i])])
        if truth == arb.neg_inf() or not known_u(*row, direction):
            continue
        if truth > -700:
            size = truth.exp()
            worst = max(worst, abs(float(arb(float(linear[i][0])) / size - 1)))
            widest = max(widest, float((linear[i][2] - linear[i][1]) / size))
        worst = max(worst, abs(float((arb(float(logarithm[i][0])) - truth) / (1 + abs(truth)))))
        widest = max(widest, float((logarithm[i][2] - logarithm[i][1]) / (1 + abs(truth))))
    print(name, direction, worst, widest)
    assert not problems, "\n".join(problems[:8])
    assert worst <= RELATIVE
    assert widest <= WIDTH


def weights(rng, kind):
    """Weights of P and of Q on two points."""
    if kind == "subsampled":
        rate = float(10 ** rng.uniform(-12, 0))
        return (1 - rate, rate), (1.0, 0.0)
    if kind == "both":
        a, b = rng.random(2)
        return (1 - a, a), (1 - b, b)
    if kind == "close":
        a = rng.random()
        b = float(np.clip(a * (1 + rng.normal() * 10 ** rng.uniform(-16, -1)), 0, 1))
        return (1 - a, a), (1 - b, b)
    if kind == "gap":  # sums that are not 1, by which u may be negative
        rate, gap = 10 ** rng.uniform(-10, 0), rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -9.1)
        return (1 - rate + gap, rate), (1.0, 0.0)
    if kind == "far gap":  # weights far from a sum of 1, which only the kernel takes
        a, b = 10 ** rng.uniform(-30, 0, 2), 10 ** rng.uniform(-30, 0, 2)
        return tuple(a), tuple(b)
    return (1.0, 0.0), (0.0, 1.0)


@few_or_all("count", 150, 3000)
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("kind", ["subsampled", "both", "close", "gap", "far gap", "single"])
def test_curves_of_pairs_contain_the_truth(kind, swapped, count):
    rng = np.random.default_rng([7, len(kind), swapped])
    problems = []
    closed = 0
    for _ in range(count):
        p, q = weights(rng, kind)[:: -1 if swapped else 1]
        means = rng.normal(size=2) * 10 ** rng.uniform(-6, 3)
        sigma = 10 ** rng.uniform(-3, 6)
        epsilon = rng.choice([0.0, -1e-3, 1e-18, 1e-9, 1e-3, 0.1, 1.0, 3.0, 30.0, 300.0])
        sides = []
        for weight in (p, q):
            used = np.array(weight) > 0
            sides += [np.array(weight, float)[used], means[used], np.full(used.sum(), sigma)]
        rows, cost = _hockey_stick_curves.pair_curve(*sides, np.array([epsilon]), 5e-13, True)
        closed += cost[2] == 0
        distance = Fraction(float(means[1])) - Fraction(float(means[0]))
        truth = log_hockey_stick(p, q, distance, float(sigma), float(epsilon))
        if truth > 0:  # measures of more than 1: the kernel keeps probabilities
            continue
        problems += filter(None, [misses((p, q, means, sigma, epsilon), truth, rows[0, :3], rows[0, 3:])])
    assert not problems, "\n".join(problems[:8])
    assert closed > 0.8 * count


def test_agrees_with_the_monotone_pieces():
    """A third component of no account takes the pair to the general path."""
    epsilon = np.linspace(0.0, 3.0, 40)
    for rate in (1e-6, 0.01, 0.5):
        p, q = GaussianMixture([1 - rate, rate], [0.0, 1.0], 0.8), GaussianMixture.single(0.0, 0.8)
        for first, second in ((p, q), (q, p)):
            for function in (hockey_stick_divergence, log_hockey_stick_divergence):
                closed = function(first, second, epsilon)
                split = GaussianMixture(
                    np.append(first.weights / 2, first.weights / 2), np.tile(first.means, 2), 0.8
                )
                pieces = function(split, second, epsilon)
                assert closed.method == CLOSED_FORM
                assert pieces.method.startswith("monotone pieces")
                assert (np.maximum(closed.lower, pieces.lower) <= np.minimum(closed.upper, pieces.upper)).all()
                finite = np.isfinite(closed.value)
                width = closed.upper[finite] - closed.lower[finite]
                assert (width <= 5e-13 * np.maximum(1, np.abs(closed.value[finite]))).all()
                np.testing.assert_array_equal(np.isfinite(pieces.upper), finite)


def test_what_the_formula_does_not_reach_goes_to_the_monotone_pieces():
    p, q = GaussianMixture([0.5, 0.5], [0.0, 1.0], 1e-11), GaussianMixture.single(0.0, 1e-11)
    found = log_hockey_stick_divergence(p, q, [1.0, 1e22])
    assert found.method.startswith("monotone pieces")
    assert found.lower[0] <= math.log(0.5) <= found.upper[0]
    assert found.upper[1] < -1e15


def test_mass_gaps_widen_as_before():
    p = GaussianMixture([0.7 + 4e-10, 0.3], [0.0, 1.0], 1.0)
    q = GaussianMixture.single(0.0, 1.0)
    found = hockey_stick_divergence(p, q, [0.0, 0.5])
    plain = hockey_stick_divergence(GaussianMixture([0.7, 0.3], [0.0, 1.0], 1.0), q, [0.0, 0.5])
    assert (found.lower <= plain.lower).all()
    assert (found.upper >= plain.upper).all()
    assert ((found.upper - found.lower) > 1e-11).all()
    assert ((found.upper - found.lower) < 1e-8).all()


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_edges(direction):
    delta, log_delta = functions(direction)
    nan, inf = math.nan, math.inf
    for rate, sigma, epsilon in (
        (-0.1, 1, 1), (1.1, 1, 1), (0.5, 0.0, 1), (0.5, -1, 1), (0.5, 1, -1e-300), (nan, 1, 1), (0.5, nan, 1),
        (0.5, 1, nan),
    ):
        assert np.isnan(delta(sigma, rate, epsilon)).all()
        assert np.isnan(log_delta(sigma, rate, epsilon)).all()
    for rate, sigma, epsilon in ((0.0, 1, 0), (0.5, inf, 0), (0.5, 1, inf), (1.0, 1, inf), (0.0, 1, 3)):
        assert delta(sigma, rate, epsilon) == (0.0, 0.0, 0.0)
        assert log_delta(sigma, rate, epsilon) == (-inf, -inf, -inf)
    for sigma in (1e-300, 5e-324, 1e-9):  # one point against two that are told apart
        value, lower, upper = delta(sigma, 0.25, 0.0)
        assert lower <= 0.25 <= upper
        assert value == pytest.approx(0.25, rel=1e-14)
    for sigma in (1e300, 1e290, 1.7e308):
        value, lower, upper = delta(sigma, 0.25, 0.0)
        assert lower <= value <= upper < 1e-280
    value, lower, upper = delta(0.5, 1.0, 1.0)
    assert lower <= special.gaussian_delta(1.0, 1.0) <= upper
    assert delta(2.0, 0.3, 0.1)[0] == functions(direction)[0](2.0, 0.3, [0.1])[0][0]


@pytest.mark.parametrize("direction", ["remove", "add"])
def test_layouts_give_the_same_bits(direction):
    rng = np.random.default_rng(3)
    rate, sigma, epsilon = sizes(rng, -4, 0, 700), sizes(rng, -1, 1, 700), rng.random(700)
    for function in functions(direction):
        want = np.array(function(sigma, rate, epsilon))
        one_by_one = [function(*map(float, row)) for row in zip(sigma, rate, epsilon, strict=True)]
        np.testing.assert_array_equal(one_by_one, want.T)
        np.testing.assert_array_equal(function(sigma[::-3], rate[::-3], epsilon[::-3]), want[:, ::-3])
        out = tuple(np.full((700, 2), 5.0)[:, 0] for _ in range(3))
        assert function(sigma, rate, epsilon, out=out)[1] is out[1]
        np.testing.assert_array_equal(np.array(out), want)
        place = epsilon.copy()
        function(sigma, rate, place, out=(None, place, None))
        np.testing.assert_array_equal(place, want[1])
        grid = np.array(function(sigma[0], rate[:30, None], epsilon))
        np.testing.assert_array_equal(grid[:, 7], function(sigma[0], np.full(700, rate[7]), epsilon))


def test_sigma_stands_before_the_rate_as_in_the_classes():
    """The former names took (rate, sigma): names changed, so that no call changes its meaning silently."""
    mechanism = PoissonSampledGaussian(0.8, 0.01)
    want = compose(mechanism).delta(0.5, direction="forward")
    _, lower, upper = special.sampled_gaussian_delta_remove(0.8, 0.01, 0.5)
    assert lower <= want.upper
    assert want.lower <= upper
    assert upper - lower < 1e-10 * upper
    value, _, _ = special.sampled_gaussian_epsilon_remove(0.8, 0.01, float(want.value))
    assert value == pytest.approx(0.5, rel=1e-9)
    sigma, _, _ = special.sampled_gaussian_noise_remove(0.01, 0.5, float(want.value))
    assert sigma == pytest.approx(0.8, rel=1e-9)
    with pytest.raises(AttributeError, match="module 'fastpriv.special' has no attribute 'subsampled_gaussian_moment'"):
        special.subsampled_gaussian_moment


def test_the_former_names_answer_in_their_order():
    for name in ("delta_remove", "log_delta_add", "epsilon_remove", "noise_add"):
        with pytest.warns(DeprecationWarning, match=f"{name} is sampled_gaussian_{name}, with sigma"):
            old = getattr(special, f"subsampled_gaussian_{name}")
        other, level = (0.5, 1e-3) if name == "noise_add" else (0.8, 0.25)
        order = (0.01, other) if name == "noise_add" else (other, 0.01)
        assert old(0.01, other, [level]) == getattr(special, f"sampled_gaussian_{name}")(*order, [level])


EDGES = [0.0, 5e-324, 2.0**-201, 2.0**-200, 2.0**-61, 2.0**-60, 1e-9, 0.5, 1 - 2.0**-40, 1 - 2.0**-41, 1.0, 40.0,
         math.nextafter(40.0, 50.0), 1e9, 1.1e9, math.inf]


@pytest.mark.parametrize("name", ["delta_remove", "delta_add", "log_delta_remove", "log_delta_add"])
def test_many_sampled_releases_have_the_bits_of_one(name):
    """Usual settings are computed side by side without branches; the others, and single ones, one by one."""
    rng, ufunc = np.random.default_rng(7), getattr(special, f"sampled_gaussian_{name}")
    wide = [10 ** rng.uniform(*ends, 300) for ends in ((-3, 3), (-15, 0), (-18, 1.7))]
    rate = rng.uniform(1e-4, 0.99, 300)
    cuts = np.array([0.41, 0.5, math.sqrt(2) - 1])[np.arange(300) % 3] * (1 + 2.0**-52 * rng.integers(-4, 4, 300))
    turns = -np.log1p(-rate) * (1 + rng.choice([0.0, 1e-15, 1e-3, 2e-3], 300))  # where c_0 changes its sign
    near = -np.log1p(-np.minimum(cuts * rate / (1 - rate), 0.9))  # (G - A) / A at the branches of the logarithm
    ends = np.array(list(itertools.product(EDGES, EDGES, EDGES))).T
    some = ends[:, rng.permutation(len(EDGES) ** 3)[:600]]
    for sigma, share, epsilon in (wide, (wide[0], rate, near), (wide[0], rate, turns), some):
        together = np.array(ufunc(sigma, share, epsilon))
        alone = np.array([ufunc(*setting) for setting in zip(sigma, share, epsilon, strict=True)]).T
        assert np.array_equal(together, alone, equal_nan=True)


@pytest.mark.parametrize("weights", [(0.99, 0.01), (0.3, 0.7), (1 - 1e-13, 1e-13), (0.5 + 2e-10, 0.5)])
def test_a_curve_of_a_sampled_release_has_the_bits_of_its_points(weights):
    p, q = GaussianMixture(weights, [0.0, 1.0], 0.7), GaussianMixture.single(0.0, 0.7)
    rate = weights[1]
    grid = np.sort(np.concatenate([np.geomspace(1e-20, 45.0, 60), [0.0, 2.0**-60, 40.0, rate * 0.41, rate * 0.5]]))
    for pair in ((p, q), (q, p)):
        curve = hockey_stick_divergence(*pair, grid)
        points = [hockey_stick_divergence(*pair, float(epsilon)) for epsilon in grid]
        for name in ("value", "lower", "upper"):
            assert np.array_equal(getattr(curve, name), [getattr(point, name) for point in points])
