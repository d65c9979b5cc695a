"""Risks of releases: certified integrals beside SciPy's adaptive and NumPy's composite quadrature without bounds.

Run: pytest benches/bench_membership_risks.py
"""

import itertools

import numpy as np
import pytest
from scipy.integrate import dblquad
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
MODEL = FrequencyRelease(Panel([[1, 0], [0, 1], [1, 1]]), BernoulliMembership(0.5), GaussianNoise(SIGMA))


def memberships(model):
    every = np.array([b for b in itertools.product((0, 1), repeat=model.n_people) if any(b)])
    return every @ model.panel.to_array() / every.sum(axis=1, keepdims=True)


def certified(model):
    return bgp_risk(model, kind="joint").value


def by_scipy(model):
    """H(b | r) = log 7 - h(r) + h(noise), h(r) by adaptive quadrature."""
    f = memberships(model)

    def density(y, x):
        p = np.exp(-((x - f[:, 0]) ** 2 + (y - f[:, 1]) ** 2) / (2 * SIGMA**2)).mean() / (2 * np.pi * SIGMA**2)
        return -p * np.log(p)

    entropy = dblquad(density, -1.4, 2.4, -1.4, 2.4, epsabs=1e-7, epsrel=1e-7)[0]
    return np.log(len(f)) - entropy + np.log(2 * np.pi * np.e * SIGMA**2)


def by_numpy(model):
    """The same by the trapezoid on a grid, whose error is not known."""
    f = memberships(model)
    x = np.linspace(-1.6, 2.6, 421)
    first, second = (norm.pdf(x[:, None], f[:, j], SIGMA) for j in (0, 1))
    p = first @ second.T / len(f)
    entropy = -(p * np.log(p)).sum() * (x[1] - x[0]) ** 2
    return np.log(len(f)) - entropy + np.log(2 * np.pi * np.e * SIGMA**2)


@pytest.mark.parametrize("way", [certified, by_scipy, by_numpy])
def test_joint_risk_of_two_attributes(benchmark, way):
    assert way(MODEL) == pytest.approx(certified(MODEL), abs=1e-6)
    benchmark.group = "joint risk of three people and two attributes"
    benchmark.pedantic(way, (MODEL,), rounds=1 if way is by_scipy else 3)


def certified_gain(model):
    return bwma(model, 0.5).value


def gain_by_numpy(model):
    """sum_k E (pi_k - 1/2)^+ on a grid of a thousand by a thousand points."""
    every = np.array([b for b in itertools.product((0, 1), repeat=model.n_people) if any(b)])
    f = memberships(model)
    x = np.linspace(-1.4, 2.4, 1001)
    first, second = (norm.pdf(x[:, None], f[:, j], SIGMA) for j in (0, 1))
    total = sum(np.maximum(first * (b - 0.5) @ second.T, 0.0).sum() for b in every.T)
    return total * (x[1] - x[0]) ** 2 / len(f)


@pytest.mark.parametrize("way", [certified_gain, gain_by_numpy])
def test_advantage_of_two_attributes(benchmark, way):
    assert way(MODEL) == pytest.approx(certified_gain(MODEL), abs=1e-5)
    benchmark.group = "weighted advantage of three people and two attributes"
    benchmark.pedantic(way, (MODEL,), rounds=3)


def blahut_arimoto(costs, prior, slope, steps):
    """The plain iteration of rate distortion."""
    factors = np.exp(-slope * costs)
    marginal = np.full(costs.shape[1], 1.0 / costs.shape[1])
    for _ in range(steps):
        joint = prior[:, None] * factors * marginal
        marginal = (joint / joint.sum(axis=1, keepdims=True) * prior[:, None]).sum(axis=0)
    return marginal


def test_best_defence_of_a_small_game(benchmark):
    benchmark.group = "best defence of a small game"
    panel, prior = Panel([[1, 0], [0, 1], [1, 1]]), BernoulliMembership(0.5)
    found = benchmark.pedantic(membership_equilibrium, (panel, prior), {"slope": 5.0}, rounds=3)
    assert found is not None


def test_best_defence_by_numpy(benchmark):
    benchmark.group = "best defence of a small game"
    f = memberships(MODEL)
    costs = np.abs(f[:, None, :] - np.unique(f, axis=0)[None]).mean(axis=2)
    found = benchmark.pedantic(blahut_arimoto, (costs, np.full(len(f), 1 / len(f)), 5.0, 10_000), rounds=3)
    assert found.sum() == pytest.approx(1.0)
