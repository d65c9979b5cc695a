"""LIP curves, CD-LMIP, LDP, MBP and ABP of a discrete prior through Gaussian noise contain the truth."""

import itertools
import math
from collections import defaultdict
from decimal import Decimal

import numpy as np
import pytest
from mpmath import log, mp, mpf

from fastpriv import notions, special
from fastpriv.distributions import Pmf
from fastpriv.mechanisms.gaussian import GaussianMechanism
from fastpriv.notions import abp, cd_lmip, ldp_delta, lip_delta, lip_epsilon, log_lip_delta
from oracles import mixture
from oracles.mixture_pairs import priors
from oracles.tables import rows
from oracles.truth import bounds

WIDTH = 1e-12


def tables():
    """(prior, sigma) -> list of (epsilon, log delta), and (prior, sigma) -> mutual information."""
    curves, information = defaultdict(list), {}
    for name, quantity, sigma, epsilon, value, *_ in rows("notions"):
        key = name, float.fromhex(sigma)
        if quantity == "mutual_information":
            information[key] = value
        else:
            curves[key].append((float.fromhex(epsilon), value))
    return curves, information


CURVES, INFORMATION = tables()


def misses(lower, upper, text):
    low, high = bounds(text)
    return Decimal(lower) > high or Decimal(upper) < low


def setting(key):
    name, sigma = key
    points, weights = priors()[name]
    return Pmf(points, weights), GaussianMechanism(sigma, float(np.ptp(points)))


@pytest.mark.parametrize("key", list(CURVES), ids=lambda key: f"{key[0]}-sigma-{key[1]:g}")
def test_lip_curve(key):
    prior, mechanism = setting(key)
    epsilon = np.array([row[0] for row in CURVES[key]])
    value, log = lip_delta(prior, mechanism, epsilon), log_lip_delta(prior, mechanism, epsilon)
    assert value.kind == log.kind == "certified"
    problems = []
    for i, (e, want) in enumerate(CURVES[key]):
        where = f"epsilon={e!r}: log delta = {want}, got [{log.lower[i]!r}, {log.upper[i]!r}]"
        if misses(log.lower[i], log.upper[i], want):
            problems.append(f"log misses: {where}")
        if want == "-inf":
            continue
        size = float(want)
        if size > -690:
            # the table holds log delta to 34 digits; exp costs a few ulps here
            low, high = math.exp(size) * (1 - 1e-13), math.exp(size) * (1 + 1e-13)
            if value.lower[i] > high or value.upper[i] < low:
                problems.append(f"value misses: {where}, [{value.lower[i]!r}, {value.upper[i]!r}]")
            if value.upper[i] - value.lower[i] > WIDTH * value.upper[i] and key[0] != "figure3":
                problems.append(f"wide: {where}, [{value.lower[i]!r}, {value.upper[i]!r}]")
        if not log.upper[i] - log.lower[i] <= WIDTH * max(1.0, -size) and key[0] != "figure3":
            problems.append(f"wide log: {where}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("key", list(INFORMATION), ids=lambda key: f"{key[0]}-sigma-{key[1]:g}")
def test_cd_lmip(key):
    prior, mechanism = setting(key)
    got, want = cd_lmip(prior, mechanism), INFORMATION[key]
    if key[0] == "figure3":  # its weights sum to 1 only up to rounding, which the table counts and the engine does not
        assert abs(got.value - float(want)) < 1e-15, f"{key}: want {want}, got {got!r}"
        return
    assert not misses(got.lower, got.upper, want), f"{key}: want {want}, got {got!r}"
    if key[0] != "figure3":  # whose weights sum to 1 only up to rounding
        assert got.upper - got.lower <= WIDTH * got.upper, f"{key}: want {want}, got {got!r}"


@pytest.mark.parametrize("name", list(priors()))
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_ldp_is_the_worst_pair_of_inputs(name, sigma):
    prior, mechanism = setting((name, sigma))
    points = priors()[name][0]
    first, last = ([1.0], [points[0]], [sigma]), ([1.0], [points[-1]], [sigma])
    for epsilon in (0.0, 0.1, 1.0, 5.0):
        got, want = ldp_delta(prior, mechanism, epsilon), mixture.hockey_stick(first, last, epsilon)
        text = want.str(36, radius=False)
        assert not misses(got.lower, got.upper, text), (
            f"{name} sigma={sigma} epsilon={epsilon}: want {text}, got {got!r}"
        )


def test_lip_is_at_most_ldp():
    for key in CURVES:
        prior, mechanism = setting(key)
        epsilon = np.array([row[0] for row in CURVES[key]])
        lip, ldp = lip_delta(prior, mechanism, epsilon), ldp_delta(prior, mechanism, epsilon)
        assert np.all(lip.lower <= ldp.upper), f"{key}: {lip.lower} {ldp.upper}"


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["two", "five"])
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
def test_abp_of_every_point(name, sigma):
    prior, mechanism = setting((name, sigma))
    points, weights = priors()[name]
    want = [mixture.abp_at((points, weights), sigma, i) for i in range(len(points))]
    got = abp(prior, mechanism).per_value
    largest = max(want, key=lambda ball: float(ball.mid()))
    text = largest.str(30, radius=False)
    upper, lower = np.max(got.upper), np.max(got.lower)
    assert not misses(float(lower), float(upper), text), f"{name} sigma={sigma}: want at most {text}, got {got!r}"


def test_mbp_is_infinite_for_two_points_and_zero_for_one():
    prior, mechanism = setting(("two", 1.0))
    assert lip_epsilon(prior, mechanism).value == math.inf
    assert lip_epsilon(Pmf([0.5], [1.0]), GaussianMechanism(1.0, 1.0)).value == 0.0


def abp_by_sums(points, weights, sigma, true):
    """Definition IV.1 in 40 digits: expected posterior by a dense trapezoidal rule, then Jensen-Shannon."""
    with mp.workdps(40):
        x, pi, s, h = [mp.mpf(v) for v in points], [mp.mpf(v) for v in weights], mp.mpf(sigma), mp.mpf(sigma) / 32
        expected = [mp.mpf(0)] * len(x)
        for k in range(-32 * 14, 32 * 14 + 1):
            w = x[true] + k * h
            density = [mp.exp(-(((w - v) / s) ** 2) / 2) for v in x]
            total = mp.fsum(p * d for p, d in zip(pi, density, strict=True))
            for d in range(len(x)):
                expected[d] += h * density[true] * density[d] / total
        scale = s * mp.sqrt(2 * mp.pi)
        terms = []
        for p, e in zip(pi, expected, strict=True):
            a = p * e / scale
            m = (a + p) / 2
            terms.append((a * mp.log(a / m) if a else 0) + p * mp.log(p / m))
        return mp.sqrt(mp.fsum(terms) / 2)


@pytest.mark.parametrize(("spread", "sigma"), [(1.0, 1.0), (30.0, 1.0), (200.0, 1.0), (1.0, 50.0), (3.0, 0.01)])
@pytest.mark.slow
def test_abp_of_columns_narrow_and_wide(spread, sigma):
    rng = np.random.default_rng(5)
    prior = Pmf(np.sort(rng.normal(0, spread, 9)), rng.dirichlet(np.ones(9)))
    got = abp(prior, GaussianMechanism(sigma)).per_value
    for true in (0, 4):
        want = float(abp_by_sums(prior.values, prior.probabilities, sigma, true))
        where = f"{spread=} {sigma=} point {true}: [{got.lower[true]!r}, {got.upper[true]!r}], want {want!r}"
        assert got.lower[true] <= want <= got.upper[true], where
        assert got.upper[true] - got.lower[true] <= 1e-10 * want, where


@pytest.mark.parametrize("sigma", [1e-3, 1e-5, 9e-7, 1e-10, 1e-17, 1e-155, 1e-300])
def test_lip_of_points_far_apart(sigma):
    """A point gives itself away but for e^(-1e5): H(P_M || P_x) = 1 - pi(x), and the rarest point is the worst."""
    prior = Pmf([0.0, 0.3 * sigma, 1.0], [0.5, 0.2, 0.3])
    found = lip_delta(prior, GaussianMechanism(sigma), [0.0, 1.0, 20.0])
    assert np.all(found.lower <= 0.7)
    assert np.all(found.upper >= 0.7)
    assert np.all(found.width <= 1e-12)
    beyond = lip_delta(prior, GaussianMechanism(sigma), [1e11, 1e250, np.inf])
    assert beyond.upper[-1] == 0
    assert np.all(beyond.lower <= beyond.upper)


def guess_by_all_intersections(values, weights, sigma):
    """The chance of the best guess: the likeliest value between any two points where two densities are equal."""
    with mp.workdps(60):
        x, p, s = [mpf(v) for v in values], [mpf(w) for w in weights], mpf(sigma)
        points = sorted((a + b) / 2 + s * s * log(p[i] / p[j]) / (b - a)
                        for i, a in enumerate(x) for j, b in enumerate(x) if i < j)
        ends = [min(points[0], x[0]) - 100 * s, *points, max(points[-1], x[-1]) + 100 * s]
        total = mpf(0)
        for low, high in itertools.pairwise(ends):
            middle = (low + high) / 2
            best = max(range(len(x)), key=lambda k: log(p[k]) - ((middle - x[k]) / s) ** 2 / 2)
            total += p[best] * (mp.ncdf((high - x[best]) / s) - mp.ncdf((low - x[best]) / s))
        return total / sum(p)


@pytest.mark.parametrize("sigma", [1e-3, 0.05, 0.7, 4.0, 300.0])
def test_the_best_guess_behind_gaussian_noise(sigma):
    rng = np.random.default_rng(5)
    for size in (2, 3, 7):
        values = np.sort(rng.normal(0.0, 3.0, size)) + rng.choice([0.0, 1e3])
        prior = Pmf(values, rng.dirichlet(np.full(size, 0.5)) * 0.9 + 0.1 / size)
        found = notions.bayes_vulnerability(prior, GaussianMechanism(sigma))
        truth = guess_by_all_intersections(prior.values, prior.probabilities, sigma)
        assert found.lower <= truth <= found.upper
        assert found.width < 1e-10
        assert found.upper >= prior.probabilities.max()


def test_the_best_guess_at_the_ends():
    assert notions.bayes_vulnerability(Pmf([3.0], [1.0]), GaussianMechanism(1.0)).lower > 1.0 - 1e-14
    two = notions.bayes_vulnerability(Pmf([0.0, 2.0], [0.5, 0.5]), GaussianMechanism(1.0))
    assert two.value == pytest.approx(special.ndtr(1.0), abs=1e-15)
    for sigma in (1e-280, 1e280):  # no lower than certainty, or than the guess without the release
        found = notions.bayes_vulnerability(Pmf([0.0, 1.0, 2.0], [0.25, 0.5, 0.25]), GaussianMechanism(sigma))
        assert 0.5 - 1e-14 <= found.lower <= found.value <= found.upper <= 1.0
    assert found.upper < 0.5 + 1e-14
    many = Pmf(np.linspace(0.0, 1.0, 2001), np.full(2001, 1 / 2001))  # lines that touch the hull without a share
    found = notions.bayes_vulnerability(many, GaussianMechanism(0.01))
    inner = 2000 * special.ndtr_difference(-0.025, 0.025) + 1.0
    assert found.value == pytest.approx(inner / 2001, rel=1e-11)
    assert found.width < 1e-13
