"""Proposals for Renyi integrals: bounded ratios, and finite or not as the integrals are."""

import math

import numpy as np
import pytest

from fastpriv import GaussianMixture, renyi_divergence
from fastpriv.sampling.proposals.renyi_proposals import renyi_proposal
from properties.test_tilting import law, log_density, log_mean, points

UNIT = 2.0**-53


def log_ratio(p, q, order, proposal, x):
    a, b, g = (log_density(m, x) for m in (p, q, proposal.mixture))
    found = order * a + (1 - order) * b - g - proposal.log_scale
    size = order * np.abs(a) + abs(1 - order) * np.abs(b) + np.abs(g) + abs(proposal.log_scale) + 1.0
    return found, 64 * UNIT * p.dimension * size


PAIRS = [
    (1, 1, 1, "line", "line"), (8, 8, 1, "line", "line"), (5, 8, 4, "one sigma", "one sigma"),
    (5, 8, 4, "diagonal", "one sigma"), (80, 100, 3, "one sigma", "one sigma"), (4, 4, 3, "shared", "shared"),
    (4, 6, 3, "full", "full"), (4, 20, 3, "shared", "full"),
]


@pytest.mark.parametrize(("k", "j", "d", "form", "other"), PAIRS)
@pytest.mark.parametrize("order", [1.01, 1.3, 2.0, 8.0])
def test_the_ratio_is_bounded_everywhere(k, j, d, form, other, order):
    rng = np.random.default_rng([k, j, d, int(100 * order)])
    p, q = law(rng, k, d, form), law(rng, j, d, other)
    proposal = renyi_proposal(p, q, order)
    if not proposal.bounded:
        assert proposal.log_scale == math.inf
        return
    x = points(rng, (p, q, proposal.mixture), 4000)
    found, slack = log_ratio(p, q, order, proposal, x)
    worst = np.argmax(found - slack)
    assert found[worst] <= slack[worst], x[worst]


@pytest.mark.few(4)
@pytest.mark.parametrize(("k", "form"), [(1, "line"), (5, "line"), (16, "one sigma"), (64, "one sigma")])
@pytest.mark.parametrize("order", [1.2, 2.0, 6.0, 20.0])
def test_finiteness_and_values_agree_with_the_line(k, form, order):
    for seed in range(4):
        rng = np.random.default_rng([seed, k, int(10 * order)])
        p, q = law(rng, k, 1, form), law(rng, k, 1, form)
        truth = renyi_divergence(p, q, order)
        proposal = renyi_proposal(p, q, order)
        assert proposal.diverges == math.isinf(truth.value)
        assert proposal.bounded == math.isfinite(truth.value)
        if proposal.bounded:
            lowest = min((order - 1) * truth.lower, (order - 1) * truth.upper)
            assert proposal.log_scale >= lowest
            x = proposal.mixture.sample(20_000, rng=rng)[:, None]
            found, error = log_mean(log_ratio(p, q, order, proposal, x)[0])
            assert abs(found + proposal.log_scale - (order - 1) * truth.value) < 6 * error + 1e-9


def crossed(turn):
    """Two narrow components of q across each other: no one of them covers p, their geometric mean does."""
    matrices = [turn @ np.diag([1.0, 1 / 9]) @ turn.T, turn @ np.diag([1 / 9, 1.0]) @ turn.T]
    return GaussianMixture([0.5, 0.5], [[0.2, 0.0], [0.0, -0.1]], covariances=matrices)


def grid_integral(p, q, order, half):
    line = np.linspace(-half, half, 801)
    x = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 2)
    logs = order * p.log_density(x) + (1 - order) * q.log_density(x)
    top = logs.max()
    return top + math.log(np.exp(logs - top).sum()) + 2 * math.log(line[1] - line[0])


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_two_components_together_make_it_finite(angle):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    q = crossed(turn)
    p = GaussianMixture([0.4, 0.6], [[0.0, 0.0], [0.3, 0.1]], 0.6)
    proposal = renyi_proposal(p, q, 2.0)
    assert proposal.bounded
    rng = np.random.default_rng(1)
    x = proposal.mixture.sample(100_000, rng=rng)
    found, error = log_mean(log_ratio(p, q, 2.0, proposal, x)[0])
    assert abs(found + proposal.log_scale - grid_integral(p, q, 2.0, 12.0)) < 6 * error
    far = points(rng, (p, q, proposal.mixture), 5000)
    ratio, slack = log_ratio(p, q, 2.0, proposal, far)
    assert np.all(ratio <= slack)


@pytest.mark.parametrize("angle", [0.0, 0.3])
def test_a_direction_that_no_component_covers_makes_it_infinite(angle):
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    q = crossed(turn)
    p = GaussianMixture([0.4, 0.6], [[0.0, 0.0], [0.3, 0.1]], 0.66)
    proposal = renyi_proposal(p, q, 2.0)
    assert proposal.diverges
    assert not proposal.bounded
    assert grid_integral(p, q, 2.0, 60.0) > grid_integral(p, q, 2.0, 30.0) + 50.0


def test_equality_is_not_decided():
    """sigma 5 against 3 at order 25/16: the exponents of both tails are linear and depend on the means."""
    p = GaussianMixture([1.0], [[0.0, 0.0]], [[5.0, 1.0]])
    between = GaussianMixture([0.5, 0.5], [[-1.0, 0.0], [1.0, 0.0]], [[3.0, 1.0]])
    proposal = renyi_proposal(p, between, 1.5625)
    assert not proposal.bounded
    assert not proposal.diverges
    assert proposal.log_scale == math.inf


def test_many_components_take_seconds():
    rng = np.random.default_rng(0)
    p, q = law(rng, 1000, 16, "one sigma"), law(rng, 1000, 16, "one sigma")
    assert renyi_proposal(p, q, 2.0).bounded
