"""Risks of releases: certified integrals beside SciPy's adaptive and NumPy's composite quadrature without bounds.

Run: pytest benches/bench_membership_risks.py
"""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fastpriv.studies.membership import (
    BernoulliMembership,
    FrequencyRelease,
    GaussianNoise,
    Panel,
    bgp_risk,
    bwma,
    membership_equilibrium,
)

SIGMA = 0.2
MODEL = FrequencyRelease(Panel([[1], [0], [1], [0]]), BernoulliMembership(0.5), GaussianNoise(SIGMA))


def memberships(model):
    every = np.array([b for b in itertools.product((0, 1), repeat=model.n_people) if any(b)])
    return every, every @ model.panel.to_array() / every.sum(axis=1, keepdims=True)


def certified(model):
    return bgp_risk(model, kind="joint").value


def by_scipy(model):
    """H(b | r) = log 15 - h(r) + h(noise), h(r) by adaptive quadrature."""
    f = memberships(model)[1][:, 0]

    def density(x):
        p = norm.pdf(x, f, SIGMA).mean()
        return -p * np.log(p)

    entropy = quad(density, -1.4, 2.4, epsabs=1e-9, epsrel=1e-9)[0]
    return np.log(len(f)) - entropy + 0.5 * np.log(2 * np.pi * np.e * SIGMA**2)


def by_numpy(model):
    """The same by the trapezoid on a grid, whose error is not known."""
    f = memberships(model)[1][:, 0]
    x = np.linspace(-1.6, 2.6, 421)
    p = norm.pdf(x[:, None], f, SIGMA).mean(axis=1)
    entropy = -(p * np.log(p)).sum() * (x[1] - x[0])
    return np.log(len(f)) - entropy + 0.5 * np.log(2 * np.pi * np.e * SIGMA**2)


@pytest.mark.parametrize("way", [certified, by_scipy, by_numpy])
def test_joint_risk(benchmark, way):
    assert way(MODEL) == pytest.approx(certified(MODEL), abs=1e-6)
    benchmark.group = "joint risk of four people and one attribute"
    benchmark.pedantic(way, (MODEL,), rounds=3)


def certified_gain(model):
    return bwma(model, 0.5).value


def gain_by_numpy(model):
    """sum_k E (pi_k - 1/2)^+ on a grid of 100,000 points."""
    every, f = memberships(model)
    x = np.linspace(-1.4, 2.4, 100_001)
    density = norm.pdf(x[:, None], f[:, 0], SIGMA)
    total = np.maximum(density @ (every - 0.5), 0.0).sum()
    return total * (x[1] - x[0]) / len(f)


@pytest.mark.parametrize("way", [certified_gain, gain_by_numpy])
def test_advantage(benchmark, way):
    assert way(MODEL) == pytest.approx(certified_gain(MODEL), abs=1e-5)
    benchmark.group = "weighted advantage of four people and one attribute"
    benchmark.pedantic(way, (MODEL,), rounds=3)


def blahut_arimoto(costs, prior, slope, steps):
    """The plain iteration of rate distortion."""
    factors = np.exp(-slope * costs)
    marginal = np.full(costs.shape[1], 1.0 / costs.shape[1])
    for _ in range(steps):
        joint = prior[:, None] * factors * marginal
        marginal = (joint / joint.sum(axis=1, keepdims=True) * prior[:, None]).sum(axis=0)
    return marginal


GAME = FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1]]), BernoulliMembership(0.5))


def test_best_defence_of_a_small_game(benchmark):
    benchmark.group = "best defence of a small game"
    found = benchmark.pedantic(membership_equilibrium, (GAME.panel, GAME.prior), {"slope": 5.0}, rounds=3)
    assert found is not None


def test_best_defence_by_numpy(benchmark):
    benchmark.group = "best defence of a small game"
    f = memberships(GAME)[1]
    costs = np.abs(f[:, None, :] - np.unique(f, axis=0)[None]).mean(axis=2)
    found = benchmark.pedantic(blahut_arimoto, (costs, np.full(len(f), 1 / len(f)), 5.0, 10_000), rounds=3)
    assert found.sum() == pytest.approx(1.0)
