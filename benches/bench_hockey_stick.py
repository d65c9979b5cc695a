"""Certified hockey-sticks and LIP curves beside what a user would write: quad, and roots with normal distributions."""

import numpy as np
import pytest
from comparison.divergences import hockey_stick_by_quad, hockey_stick_by_roots, lip_by_sums

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


@pytest.mark.parametrize("way", ["fastpriv", "roots with ndtr", "quad"])
@pytest.mark.benchmark(group="hockey-stick, 8 + 8 components, one epsilon")
def test_one_epsilon(benchmark, way):
    run = {"fastpriv": lambda: hockey_stick_divergence(P, Q, 1.0).value,
           "roots with ndtr": lambda: hockey_stick_by_roots(P, Q, 1.0),
           "quad": lambda: hockey_stick_by_quad(P, Q, 1.0)}[way]
    assert run() == pytest.approx(hockey_stick_divergence(P, Q, 1.0).value, rel=1e-7)
    benchmark(run)


@pytest.mark.parametrize("way", ["fastpriv", "roots with ndtr"])
@pytest.mark.benchmark(group="hockey-stick, 8 + 8 components, 201 epsilons")
def test_curve(benchmark, way):
    run = {"fastpriv": lambda: hockey_stick_divergence(P, Q, GRID).value,
           "roots with ndtr": lambda: np.array([hockey_stick_by_roots(P, Q, e) for e in GRID])}[way]
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
        result = benchmark.pedantic(lambda: lip_by_sums(PRIOR, sigma, LIP_GRID), rounds=1)
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
        result = benchmark.pedantic(lambda: lip_by_sums(prior, sigma, epsilon), rounds=1)
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
