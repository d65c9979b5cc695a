"""The exact equilibrium: closed forms, its certificate off the grid, and no defender or attacker that does better."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import BernoulliMembership, FixedSizeMembership, Panel, membership_equilibrium


def _binary_entropy(p):
    return -sum(x * math.log(x) for x in (p, 1 - p) if x > 0)


def _game(values, prior):
    """(theta, f) over all memberships, in plain Python."""
    d = np.asarray(values)
    k = len(d)
    rows = []
    for b in itertools.product((0, 1), repeat=k):
        n = sum(b)
        if n == 0 or (isinstance(prior, FixedSizeMembership) and n != prior.n0):
            continue
        q = prior.q if isinstance(prior, BernoulliMembership) else 0.5
        rows.append((q**n * (1 - q) ** (k - n), b, np.array(b) @ d / n))
    total = sum(row[0] for row in rows)
    return [(w / total, np.array(b), f) for w, b, f in rows]


def _risks(rows, channel_of):
    """(H(b), I(b; R), sum of H(b_k | R)) of p(r | f) given as a function of f."""
    cells = np.array([w * channel_of(f) for w, _, f in rows])
    output = cells.sum(axis=0)
    theta = np.array([w for w, _, _ in rows])
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.nansum(np.where(cells > 0, cells * np.log(cells / (theta[:, None] * output)), 0.0))
    b = np.array([b for _, b, _ in rows])
    members = (cells.T @ b) / output[:, None]
    marginal = sum(o * sum(_binary_entropy(p) for p in row) for o, row in zip(output, members, strict=True))
    return -float(theta @ np.log(theta)), float(information), marginal


@pytest.mark.parametrize("budget", [1e-6, 0.01, 0.1, 0.25, 0.49])
def test_two_people_and_one_attribute_are_a_binary_source(budget):
    game = membership_equilibrium(Panel([[1], [0]]), FixedSizeMembership(1), utility_budget=budget)
    truth = math.log(2) - _binary_entropy(budget)
    assert game.information.lower - 1e-12 <= truth <= game.information.upper + 1e-12
    assert game.information.width <= 2e-7
    assert game.constant_loss == 0.5
    assert game.joint_risk.lower - 1e-12 <= _binary_entropy(budget) <= game.joint_risk.upper + 1e-12
    assert game.marginal_risk.value == pytest.approx(2 * _binary_entropy(budget), abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_certificate_holds_off_the_grid_and_risks_are_those_of_the_channel(seed):
    rng = np.random.default_rng(seed)
    k, m = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    values = rng.integers(0, 2, (k, m))
    prior = BernoulliMembership(0.3) if seed % 2 else FixedSizeMembership(int(rng.integers(1, k + 1)))
    slope = float(10 ** rng.uniform(0, 2.5))
    kappa = rng.random(m) + 0.1
    game = membership_equilibrium(Panel(values), prior, slope=slope, attribute_weights=kappa)
    rows = _game(values, prior)

    def distance(f, r):
        return np.abs(f - r) @ kappa / m

    order = {tuple(f.round(9)): i for i, f in enumerate(game.frequencies)}
    cells = game.channel.matrix()
    entropy, information, marginal = _risks(rows, lambda f: cells[order[tuple(f.round(9))]])
    loss = sum(w * cells[order[tuple(f.round(9))]] @ distance(f, game.releases) for w, _, f in rows)
    assert game.utility_loss.value == pytest.approx(loss, abs=1e-12)
    assert game.information.lower - 1e-9 <= information <= game.information.upper + 1e-9
    assert game.joint_risk.value == pytest.approx(entropy - information, abs=1e-6)
    assert game.marginal_risk.lower - 1e-13 <= marginal <= game.marginal_risk.upper + 1e-13
    assert game.lagrangian.width <= 1.1e-7
    assert game.joint_risk.upper <= game.marginal_risk.upper + 1e-9

    weights = np.array([w for w, _, _ in rows]) @ np.array([cells[order[tuple(f.round(9))]] for _, _, f in rows])
    z = [float(weights @ np.exp(-slope * distance(f, game.releases))) for _, _, f in rows]
    r = rng.random((2000, m))
    c = sum(w * np.exp(-slope * distance(f, r)) / zb for (w, _, f), zb in zip(rows, z, strict=True))
    assert c.max() <= 1 + 1e-6

    for _ in range(20):  # other defenders, on releases of their own
        outputs = rng.random((5, m))
        kernel = rng.dirichlet(np.ones(5))
        tilt = float(10 ** rng.uniform(0, 3))

        def channel_of(f, outputs=outputs, kernel=kernel, tilt=tilt):
            p = kernel * np.exp(-tilt * distance(f, outputs))
            return p / p.sum()

        _, learned, _ = _risks(rows, channel_of)
        cost = sum(w * channel_of(f) @ distance(f, outputs) for w, _, f in rows)
        assert learned + slope * cost >= game.lagrangian.lower - 1e-12


def test_scores_are_the_posterior_and_simulation_follows_the_channel():
    values = [[1, 0], [0, 1], [1, 1], [0, 0]]
    prior = BernoulliMembership(0.5)
    game = membership_equilibrium(Panel(values), prior, slope=8.0)
    rows = _game(values, prior)
    order = {tuple(f.round(9)): i for i, f in enumerate(game.frequencies)}
    cells = game.channel.matrix()
    joint = np.array([w * cells[order[tuple(f.round(9))]] for w, _, f in rows])
    b = np.array([row[1] for row in rows])
    assert np.allclose(game.scores(game.releases), (joint.T @ b) / joint.sum(axis=0)[:, None], atol=1e-13)
    simulated = game.simulate(20_000, rng=3)
    again = game.simulate(20_000, rng=3)
    assert np.array_equal(simulated.released, again.released)
    f = simulated.membership @ np.array(values) / simulated.membership.sum(axis=1, keepdims=True)
    loss = np.abs(simulated.released - f).mean(axis=1)
    assert abs(loss.mean() - game.utility_loss.value) <= 5 * loss.std() / math.sqrt(len(loss))
    hits = simulated.membership[np.arange(20_000), 0]
    claimed = game.scores(simulated.released)[:, 0]
    assert abs((hits - claimed).mean()) <= 5 * (hits - claimed).std() / math.sqrt(len(hits))


def test_constant_release_is_best_where_utility_is_cheap():
    game = membership_equilibrium(Panel([[1], [0], [0], [1]]), BernoulliMembership(0.5), slope=1e-3)
    assert game.information.upper <= 1e-7
    assert game.utility_loss.value == pytest.approx(game.constant_loss, abs=1e-12)
    assert len(game.releases) == 1
    whole = membership_equilibrium(Panel([[1], [0], [0], [1]]), BernoulliMembership(0.5), utility_budget=1.0)
    assert whole.information.upper <= 1e-7


def test_everyone_alike_leaks_nothing():
    game = membership_equilibrium(Panel(np.ones((5, 2), int)), BernoulliMembership(0.2), slope=1e5)
    assert game.information.upper <= 1e-7
    assert game.utility_loss.upper <= 1e-12


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        ({}, DomainError, "slope must be given if utility_budget is not"),
        ({"slope": 1.0, "utility_budget": 0.1}, DomainError, "slope must be given if utility_budget is not"),
        ({"slope": -1.0}, DomainError, "slope must be a finite number"),
        ({"utility_budget": -1.0}, DomainError, "utility_budget must be a finite number"),
        ({"slope": 1.0, "attribute_weights": [0.0]}, DomainError, "attribute_weights must have a positive entry"),
        ({"slope": 1.0, "attribute_weights": [1.0, 1.0]}, ShapeError, "attribute_weights must have 1 entries"),
        ({"slope": 1.0, "attribute_weights": [-1.0]}, DomainError, "attribute_weights must be finite numbers"),
        ({"slope": 1.0, "panel": Panel(np.eye(21, 1, dtype=int))}, DomainError, "panel must have at most 20 people"),
        ({"slope": 1.0, "panel": [[1], [0]]}, DomainError, "panel must be a Panel"),
        ({"slope": 1.0, "prior": 0.5}, DomainError, "prior must be a MembershipPrior"),
        ({"slope": 1.0, "panel": Panel(np.eye(12, dtype=int))}, MemoryError, "Take fewer attributes or people"),
    ],
)
def test_bad_input(call, kind, text):
    arguments = {"panel": Panel([[1], [0]]), "prior": BernoulliMembership(0.5)} | call
    with pytest.raises(kind, match=text):
        membership_equilibrium(arguments.pop("panel"), arguments.pop("prior"), **arguments)


def test_releases_of_another_game_are_refused():
    game = membership_equilibrium(Panel([[1], [0]]), BernoulliMembership(0.5), slope=10.0)
    with pytest.raises(DomainError, match="released must be rows of releases"):
        game.scores([0.123])
    with pytest.raises(ShapeError, match="released must have one entry an attribute, here 1; got shape"):
        game.scores([0.0, 1.0])
