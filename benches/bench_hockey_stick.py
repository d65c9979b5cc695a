"""Certified hockey-sticks and LIP curves beside what a user would write: quad, and roots with normal distributions."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

from fastpriv import GaussianMechanism, GaussianMixture, Pmf, hockey_stick_divergence, notions
from fastpriv.studies.assessment.assess import default_epsilon, default_sigma

RNG = np.random.default_rng(1)


def random_mixture(size):
    return GaussianMixture(RNG.dirichlet(np.ones(size)), RNG.normal(0, 3, size), RNG.uniform(0.5, 2, size))


P, Q = random_mixture(8), random_mixture(8)
GRID = np.linspace(0, 5, 201)
POINTS = np.linspace(-1, 1, 21)
WEIGHTS = np.exp(-2 * POINTS**2)
PRIOR = Pmf(POINTS, WEIGHTS / WEIGHTS.sum())
LIP_GRID = np.linspace(0, 5, 200)


def log_density(law, x):
    z = (np.asarray(x)[..., None] - law.means) / law.sigmas
    return logsumexp(np.log(law.weights / law.sigmas) - z * z / 2, axis=-1) - np.log(2 * np.pi) / 2


def by_quad(epsilon):
    def excess(x):
        return max(0.0, np.exp(log_density(P, x)) - np.exp(epsilon + log_density(Q, x)))

    return quad(excess, -30, 30, limit=500)[0]


def by_roots(epsilon, p=P, q=Q, low=-30.0, high=30.0):
    x = np.linspace(low, high, 2001)
    ratio = log_density(p, x) - log_density(q, x) - epsilon
    roots = [
        brentq(lambda t: log_density(p, t) - log_density(q, t) - epsilon, x[i], x[i + 1], xtol=1e-13)
        for i in np.flatnonzero(np.sign(ratio[1:]) != np.sign(ratio[:-1]))
    ]
    edges = np.array([-np.inf, *roots, np.inf])
    mass = [
        law.weights @ np.diff(ndtr((edges[None, :] - law.means[:, None]) / law.sigmas[:, None]), axis=1)
        for law in (p, q)
    ]
    return float(np.sum(np.maximum(mass[0] - np.exp(epsilon) * mass[1], 0.0)))


def by_sums(prior, sigma, epsilon):
    """LIP on a grid of outputs: no bounds, no tails."""
    x, w = prior.values, prior.probabilities
    y = np.linspace(x[0] - 12 * sigma, x[-1] + 12 * sigma, 4001)
    single = np.exp(-(((y[:, None] - x) / sigma) ** 2) / 2) / (sigma * np.sqrt(2 * np.pi))
    mixed, step = single @ w, y[1] - y[0]
    best = np.zeros(len(epsilon))
    for k in range(len(x)):
        for i, e in enumerate(epsilon):
            first = np.maximum(mixed - np.exp(e) * single[:, k], 0).sum()
            second = np.exp(-e) * np.maximum(single[:, k] - np.exp(e) * mixed, 0).sum()
            best[i] = max(best[i], first * step, second * step)
    return best


@pytest.mark.parametrize("way", ["fastpriv", "roots with ndtr", "quad"])
@pytest.mark.benchmark(group="hockey-stick, 8 + 8 components, one epsilon")
def test_one_epsilon(benchmark, way):
    run = {"fastpriv": lambda: hockey_stick_divergence(P, Q, 1.0).value, "roots with ndtr": lambda: by_roots(1.0),
           "quad": lambda: by_quad(1.0)}[way]
    assert run() == pytest.approx(hockey_stick_divergence(P, Q, 1.0).value, rel=1e-7)
    benchmark(run)


@pytest.mark.parametrize("way", ["fastpriv", "roots with ndtr"])
@pytest.mark.benchmark(group="hockey-stick, 8 + 8 components, 201 epsilons")
def test_curve(benchmark, way):
    run = {"fastpriv": lambda: hockey_stick_divergence(P, Q, GRID).value,
           "roots with ndtr": lambda: np.array([by_roots(e) for e in GRID])}[way]
    got = hockey_stick_divergence(P, Q, GRID)
    assert np.all(got.upper - got.lower <= 1e-12 * got.upper)
    if way == "fastpriv":
        benchmark(run)
    else:
        benchmark.pedantic(run, rounds=1)
        assert run() == pytest.approx(got.value, rel=1e-6)


@pytest.mark.parametrize("way", ["fastpriv", "sums on a grid"])
@pytest.mark.parametrize("sigma", [0.3, 1.0])
def test_lip(benchmark, way, sigma):
    benchmark.group = f"LIP curve, 21 points x 200 epsilons, sigma {sigma}"
    got = notions.lip_delta(PRIOR, GaussianMechanism(sigma), LIP_GRID)
    assert np.all(got.upper - got.lower <= 1e-12 * got.upper)
    if way == "fastpriv":
        benchmark(lambda: notions.lip_delta(PRIOR, GaussianMechanism(sigma), LIP_GRID))
    else:
        result = benchmark.pedantic(lambda: by_sums(PRIOR, sigma, LIP_GRID), rounds=1)
        assert result == pytest.approx(got.value, rel=1e-3, abs=1e-8)


def lognormal_prior(size):
    return Pmf.from_data(np.random.default_rng(0).lognormal(2, 1.5, size))


@pytest.mark.parametrize("way", ["fastpriv", "sums on a grid"])
@pytest.mark.benchmark(group="LIP, 400 values, one sigma, one epsilon")
def test_lip_of_400_values(benchmark, way):
    prior, sigma, epsilon = lognormal_prior(400), 200.0, np.array([1.0])
    got = notions.lip_delta(prior, GaussianMechanism(sigma), epsilon)
    assert np.all(got.upper - got.lower <= 1e-12 * got.upper)
    if way == "fastpriv":
        benchmark(lambda: notions.lip_delta(prior, GaussianMechanism(sigma), epsilon))
    else:
        result = benchmark.pedantic(lambda: by_sums(prior, sigma, epsilon), rounds=1)
        assert result == pytest.approx(got.value, rel=1e-6)


@pytest.mark.parametrize("size", [256, 10_000])
def test_lip_on_the_default_grid(benchmark, size):
    benchmark.group = f"LIP curves, {size} values, the grid that assess takes"
    prior, epsilon = lognormal_prior(size), default_epsilon()
    noise = default_sigma(float(np.std(np.random.default_rng(0).lognormal(2, 1.5, size))))

    def curves():
        return [notions.lip_curves(prior, GaussianMechanism(sigma), epsilon)[0] for sigma in noise]

    for curve in curves():
        assert np.all(curve.upper - curve.lower <= 1e-9 * curve.upper + 1e-300)
    benchmark.pedantic(curves, rounds=2)
