"""LIP curves of priors behind Gaussian noise contain the truth, for few values and for many, near and far apart."""

import math
import signal

import mpmath as mp
import numpy as np
import pytest

from fastpriv import GaussianMechanism, GaussianMixture, Pmf, hockey_stick_divergence, notions
from fastpriv.conversions import LipCurve
from oracles import lip as oracle
from oracles import mixture
from oracles.mixture_pairs import dyadic

EPSILONS = np.array([0.0, 1e-9, 0.01, 0.3, 2.0, 30.0, 200.0])


def random_prior(rng, size):
    """Points and weights that sum to 1 exactly: spread, clustered, on a lattice, or with twins that nearly coincide."""
    points = {
        0: lambda: rng.normal(size=size), 1: lambda: rng.standard_cauchy(size), 2: lambda: np.arange(size) / 8,
        3: lambda: np.concatenate([rng.normal(0, 1e-6, size - size // 2), rng.normal(1, 1e-6, size // 2)]),
        4: lambda: np.append(rng.normal(size=size - 1), 0.5) * np.append(np.ones(size - 1), 1 + 1e-13),
    }[int(rng.integers(5))]()
    points = np.unique(np.round(points, 14))
    weights = {
        0: lambda: np.ones(points.size), 1: lambda: rng.exponential(size=points.size) + 1e-6,
        2: lambda: np.where(np.arange(points.size) == points.size // 2, 1e-7, 1.0),
        3: lambda: np.exp2(rng.integers(-40, 0, points.size)),
    }[int(rng.integers(4))]()
    return points, dyadic(weights)


def check_contains_truth(seed, size):
    rng = np.random.default_rng(seed)
    points, weights = random_prior(rng, size)
    sigma = float(np.ptp(points) * 10.0 ** rng.uniform(-3, 3))
    epsilon = np.sort(rng.choice(EPSILONS, 3, replace=False))
    delta, log_delta = notions.lip_curves(Pmf(points, weights), GaussianMechanism(sigma), epsilon)
    for i, level in enumerate(epsilon):
        want, _ = mixture.lip_delta((points, weights), sigma, level)
        where = f"{seed=} {size=} {sigma=} epsilon={level}: [{delta.lower[i]!r}, {delta.upper[i]!r}], want {want}"
        assert delta.lower[i] <= want.upper(), where
        assert delta.upper[i] >= want.lower(), where
        if want.is_zero():
            continue
        log = want.log()
        assert log_delta.lower[i] <= log.upper(), where
        assert log_delta.upper[i] >= log.lower(), where
        assert log_delta.upper[i] - log_delta.lower[i] <= 1e-12 * max(1.0, abs(float(log.mid()))), where
        if delta.upper[i] > 1e-290:
            assert delta.upper[i] - delta.lower[i] <= 1e-12 * delta.upper[i], where


@pytest.mark.few(4)
@pytest.mark.parametrize("seed", range(16))
def test_few_values(seed):
    check_contains_truth(seed, 2 + seed % 6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_more_values(seed):
    check_contains_truth(seed, 2 + seed % 15 if seed < 156 else 40)


@pytest.mark.slow
@pytest.mark.parametrize("relative_sigma", [1e-5, 1e-8, 1e-10])
@pytest.mark.parametrize("epsilon", [0.3, 1e7, 1e13])
def test_values_a_billion_sigmas_apart(relative_sigma, epsilon):
    """Errors of the logarithms of terms exceed 1 there, and those of the arguments of Phi do."""
    points = np.array([-1.3, -0.7, 0.1, 0.1 + 3e-9, 1.9])
    weights = np.array([0.125, 0.25, 0.375, 2.0**-20, 0.25 - 2.0**-20])
    delta, log_delta = notions.lip_curves(Pmf(points, weights), GaussianMechanism(relative_sigma), [epsilon])
    want, _ = mixture.lip_delta((points, weights), relative_sigma, epsilon)
    assert delta.lower[0] <= want.upper()
    assert delta.upper[0] >= want.lower()
    if want.lower() > 0:
        assert log_delta.lower[0] <= want.log().upper()
        assert log_delta.upper[0] >= want.log().lower()


def prior_of(kind, size):
    rng = np.random.default_rng(size)
    if kind == "lognormal":
        points, weights = rng.lognormal(2, 1.5, size), np.ones(size)
    elif kind == "uneven weights":
        points, weights = rng.normal(size=size), rng.exponential(size=size) + 1e-3
    else:
        points, weights = np.arange(size, dtype=float), np.where(np.arange(size) % (size - 1), 1.0, 3.0)
    return np.sort(points), dyadic(weights)


def check_all_atoms(kind, size, relative_sigma, epsilon):
    """The maximum over all atoms in doubles, and the atom where it is attained in forty digits."""
    points, weights = prior_of(kind, size)
    sigma = float(points.std() * relative_sigma)
    got = notions.lip_delta(Pmf(points, weights), GaussianMechanism(sigma), epsilon)
    first, second = oracle.all_divergences(points, weights, sigma, epsilon)
    where = f"{kind} {size} sigma={sigma} epsilon={epsilon}: {got!r}, want {first.max()!r}"
    assert np.all(second <= first + 1e-12), where
    assert got.upper - got.lower <= 1e-9 * got.upper, where
    assert got.lower <= first.max() + 1e-12, where
    assert got.upper >= first.max() - 1e-12, where
    want = oracle.divergence_at(points, weights, sigma, epsilon, int(np.argmax(first)))
    assert mp.mpf(float(got.upper)) >= want, where
    if np.sum(first > first.max() - 1e-10) == 1:
        assert mp.mpf(float(got.lower)) <= want, where


@pytest.mark.parametrize("kind", ["lognormal", "uneven weights", "lattice"])
@pytest.mark.parametrize(("relative_sigma", "epsilon"), [(0.02, 0.5), (0.2, 2.0), (2.0, 0.05)])
def test_all_atoms_of_many(kind, relative_sigma, epsilon):
    check_all_atoms(kind, 50, relative_sigma, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lognormal", "uneven weights", "lattice"])
@pytest.mark.parametrize("relative_sigma", [0.002, 0.05, 0.3, 5.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 3.0])
def test_all_atoms_of_very_many(kind, relative_sigma, epsilon):
    check_all_atoms(kind, 400, relative_sigma, epsilon)


@pytest.mark.parametrize("seed", range(20))
def test_the_law_of_one_value_against_the_release_is_never_the_larger(seed):
    """H(N_a||M) <= H(M||N_a) for one sigma, proved in csrc/line/fp_lip.h; it is false for mixtures in general."""
    rng = np.random.default_rng(seed)
    points, weights = random_prior(rng, int(rng.integers(2, 9)))
    sigma = float(np.ptp(points) * 10.0 ** rng.uniform(-1.5, 1))
    release = GaussianMixture(weights, points, sigma)
    for x in points[:3]:
        one = GaussianMixture.single(float(x), sigma)
        found = [hockey_stick_divergence(*pair, [1e-3, 0.1, 1.0, 4.0]) for pair in ((one, release), (release, one))]
        assert np.all(found[0].lower <= found[1].upper), f"{seed=} {x=} {sigma=}"


def test_weights_that_miss_the_sum_one_by_their_rounding():
    """Where noise hides all but 1e-10, the bracket holds for the weights as given and for their multiples of sum 1."""
    x, w = [0.0, 1.0, 2.0], [0.2, 0.5, 0.3 + 2.0**-54]
    for epsilon in (0.0, 1e-13, 1e-10):
        got = notions.lip_delta(Pmf(x, w), GaussianMechanism(1e9), epsilon)
        for weights in (w, dyadic(w)):
            want, _ = mixture.lip_delta((x, weights), 1e9, epsilon)
            assert got.lower <= want.upper(), epsilon
            assert got.upper >= want.lower(), epsilon
    assert got.upper < 1e-9


def test_one_value_and_no_epsilon():
    one = notions.lip_curves(Pmf([3.0], [1.0]), GaussianMechanism(1.0), [0.0, 1.0])
    assert np.all(one[0].upper == 0.0)
    assert np.all(one[1].upper == -np.inf)
    assert notions.lip_delta(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(1.0), []).shape == (0,)


@pytest.mark.parametrize("size", [3, 300])
def test_the_curve_falls_and_each_point_is_the_same_alone(size):
    points, weights = prior_of("lognormal", size)
    prior, epsilon = Pmf(points, weights), np.array([5.0, 0.0, 0.7, 0.02, 60.0, np.inf])
    for sigma in (1.0, 50.0):
        curve = notions.lip_delta(prior, GaussianMechanism(sigma), epsilon)
        order = np.argsort(epsilon)
        assert np.all(np.diff(curve.value[order]) <= 0)
        for i, level in enumerate(epsilon):
            alone = notions.lip_delta(prior, GaussianMechanism(sigma), level)
            assert alone.lower <= curve.upper[i]
            assert alone.upper >= curve.lower[i]
        assert curve.upper[-1] == 0.0
        coarse = LipCurve(prior, GaussianMechanism(sigma))(epsilon)
        assert np.all((coarse.lower <= curve.upper) & (coarse.upper >= curve.lower))


@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-300, 2.0**300, 2.0**900])
def test_a_change_of_unit_changes_nothing(unit):
    points, weights = np.array([-1.0, 0.25, 0.5, 3.0]), np.array([0.25, 0.125, 0.5, 0.125])
    for sigma in (0.125, 8.0):
        here, there = (
            notions.lip_curves(Pmf(points * by, weights), GaussianMechanism(sigma * by), EPSILONS) for by in (1.0, unit)
        )
        for a, b in zip(here, there, strict=True):
            np.testing.assert_array_equal(a.lower, b.lower)
            np.testing.assert_array_equal(a.upper, b.upper)


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e10, 1e14, 1e100, 1e250])
def test_huge_epsilons_keep_their_order(epsilon):
    """Two values: delta <= P(t > epsilon / d + d / 2 - d) for t normal, and log delta near -(epsilon / d)^2 / 2."""
    prior, d = Pmf([0.0, 1.0], [0.5, 0.5]), 2.0
    log = notions.log_lip_delta(prior, GaussianMechanism(0.5), epsilon)
    want = -0.5 * ((epsilon + math.log(2)) / d - d / 2) ** 2 if epsilon < 1e150 else -1.8e308
    assert log.lower <= log.upper <= 0.999 * max(want, -1e300)
    if epsilon <= 1e6:
        assert log.lower >= 1.001 * want


def test_ctrl_c_is_heard_within_the_kernel():
    points = np.arange(200_000.0)
    prior = Pmf(points, np.full(points.size, 1 / points.size))

    class Heard(Exception):
        pass

    def hear(*_):
        raise Heard

    before = signal.signal(signal.SIGALRM, hear)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Heard):
            notions.lip_delta(prior, GaussianMechanism(1e5), np.linspace(0, 5, 20_000))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
