"""Best responses: gradients beside differences, objectives beside grids and other noise, budgets, refusals."""

import itertools
import pickle

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BayesAttacker,
    BernoulliMembership,
    DworkScore,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    Panel,
    best_response,
)

KINDS = ["fixed", "adaptive", "score"]


def panels(seed, people, attributes, references):
    rng = np.random.default_rng(seed)
    bits = rng.random((people + references, attributes)) < rng.uniform(0.1, 0.6, attributes)
    return Panel(bits[:people]), Panel(bits[people:])


def attack(kind, seed=1, people=12, attributes=40, references=30):
    """An attacker, and its threshold."""
    panel, others = panels(seed, people, attributes, references)
    if kind == "score":
        return DworkScore(panel, others, eta=0.8), 1.0
    if kind == "adaptive":
        return AdaptiveThresholdLRT(panel, others, n_smallest=3), 0.0
    found = FixedThresholdLRT(panel, others, alpha=0.1)
    simulated = FrequencyRelease(panel, BernoulliMembership(0.5)).simulate(200, rng=2)
    return found.fit(simulated.released, simulated.membership), found.threshold


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_scores(kind):
    attacker, _ = attack(kind)
    rng = np.random.default_rng(4)
    r, w = rng.uniform(0.1, 0.9, (5, 40)), rng.normal(size=(5, 12))
    found = attacker.gradient(r, w)
    step = 1e-6
    for j in range(40):
        move = step * (np.arange(40) == j)
        change = ((attacker.scores(r + move) - attacker.scores(r - move)) * w).sum(axis=1) / (2 * step)
        assert found[:, j] == pytest.approx(change, rel=1e-5, abs=1e-5)
    assert np.array_equal(attacker.gradient(r[2], w[2]), found[2])


def test_gradients_at_cut_frequencies():
    attacker, _ = attack("fixed")
    e0 = attacker.e0
    r = np.where(np.arange(40) % 2 == 0, 0.0, 1.0)
    weights = np.arange(1.0, 13.0)
    assert np.array_equal(attacker.gradient(r, weights), attacker.gradient(np.clip(r, e0, 1 - e0), weights))


def objective(attacker, threshold, price, gamma, b, noise, frequencies):
    scores = attacker.scores(frequencies + noise)
    claims = scores >= threshold if isinstance(attacker, AdaptiveThresholdLRT) else scores > threshold
    gain = np.where(claims, np.where(b, 1 - gamma, -gamma), 0.0).sum(axis=-1)
    return gain + price * np.abs(noise).mean(axis=-1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("price", "gamma"), [(0.0, 0.5), (5.0, 0.5), (60.0, 0.0), (300.0, 0.9)])
def test_no_worse_than_other_noise(kind, price, gamma):
    attacker, threshold = attack(kind)
    noise = best_response(attacker, price=price, gamma=gamma, threshold=threshold, iterations=60)
    release = FrequencyRelease(attacker.panel, BernoulliMembership(0.4), noise)
    b = release.prior.draw(20, 12, 7)
    f = release.frequencies(b)
    delta = noise.draw(b, 40, np.random.default_rng(1))
    reached = objective(attacker, threshold, price, gamma, b, delta, f)
    assert ((f + delta >= 0) & (f + delta <= 1)).all()
    rng = np.random.default_rng(8)
    constant = np.clip(attacker.references.frequencies() - f, -0.5, 0.5)
    for other in (0.0 * f, constant, *(np.clip(f + s * rng.normal(size=f.shape), 0, 1) - f for s in (0.01, 0.1, 0.3))):
        assert (reached <= objective(attacker, threshold, price, gamma, b, other, f) + 1e-9).all()
    assert np.array_equal(release.release(b, rng=3), release.release(b, rng=4))  # a function of b alone
    assert np.array_equal(pickle.loads(pickle.dumps(noise)).draw(b, 40, np.random.default_rng(1)), delta)


@pytest.mark.slow
def test_beside_a_search_of_a_grid():
    """Local minima: now and then a claim (0.5) from the best of the grid, seldom in the mean."""
    grid = np.array(list(itertools.product(np.linspace(-0.5, 0.5, 101), repeat=2)))
    gaps = []
    for kind, price in itertools.product(KINDS, (0.5, 2.0, 8.0)):
        attacker, threshold = attack(kind, seed=6, people=3, attributes=2, references=9)
        noise = best_response(attacker, price=price, threshold=threshold, iterations=400)
        for b in np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 1, 1]], dtype=bool):
            f = FrequencyRelease(attacker.panel, FixedSizeMembership(1)).frequencies(b)
            allowed = grid[((f + grid >= 0) & (f + grid <= 1)).all(axis=1)]
            found = noise.draw(b[None], 2, np.random.default_rng(1))[0]
            best, reached = (
                objective(attacker, threshold, price, 0.5, b, x, f).min() for x in (allowed, found)
            )
            gaps.append(reached - best)
    assert max(gaps) < 0.5
    assert np.mean(gaps) < 0.08


@pytest.mark.few(5)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", [None, np.arange(40.0)])
@pytest.mark.parametrize("budget", [0.0, 0.003, 0.03, 2.0])
def test_budgets_hold_for_each_release(kind, weights, budget):
    attacker, threshold = attack(kind)
    words = {"threshold": threshold, "attribute_weights": weights}
    noise = best_response(attacker, utility_budget=budget, iterations=80, **words)
    b = BernoulliMembership(0.4).draw(10, 12, 7)
    f = FrequencyRelease(attacker.panel, FixedSizeMembership(1)).frequencies(b)
    delta = noise.draw(b, 40, np.random.default_rng(1))
    kappa = np.ones(40) if weights is None else weights
    loss = (np.abs(delta) * kappa).mean(axis=1)
    assert (loss <= budget * (1 + 1e-12)).all()
    before, after = (objective(attacker, threshold, 0.0, 0.5, b, x, f) for x in (0.0 * delta, delta))
    assert (after <= before).all()
    if budget >= 0.03:
        assert after.mean() < before.mean() - 0.5
    if weights is not None and budget == 0.0:
        assert not delta[:, 1:].any()  # only what has no weight may move


@pytest.mark.slow
def test_dither_is_added_and_privacy_is_that_of_the_dither():
    attacker, _ = attack("adaptive")
    noise = best_response(attacker, price=1.0, dither=GaussianNoise(0.1))
    release = FrequencyRelease(attacker.panel, FixedSizeMembership(4), noise, clip=True)
    assert release.epsilon(1e-6).upper < np.inf
    assert not np.array_equal(release.release([True] * 4 + [False] * 8, rng=1),
                              release.release([True] * 4 + [False] * 8, rng=2))
    bare = FrequencyRelease(attacker.panel, FixedSizeMembership(4), best_response(attacker, price=1.0))
    with pytest.raises(DomainError, match="noise must have full dimension"):
        bare.epsilon()


ONE = attack("adaptive")[0]
MISTAKES = [
    (lambda: best_response(BayesAttacker(FrequencyRelease(ONE.panel, FixedSizeMembership(1), GaussianNoise(1.0))),
                           price=1.0), DomainError, "attacker must be a likelihood ratio test or a score"),
    (lambda: best_response(ONE), DomainError, "price must be given if utility_budget is not"),
    (lambda: best_response(ONE, price=1.0, utility_budget=1.0), DomainError, "price must be given if utility_budget"),
    (lambda: best_response(attack("score")[0], price=1.0), DomainError, "threshold must be given for a score"),
    (lambda: best_response(FixedThresholdLRT(ONE.panel, ONE.references), price=1.0), DomainError, "fit must be called"),
    (lambda: best_response(ONE, price=-1.0), DomainError, "price must be at least 0"),
    (lambda: best_response(ONE, utility_budget=-1.0), DomainError, "utility_budget must be at least 0"),
    (lambda: best_response(ONE, price=1.0, threshold=np.nan), DomainError, "threshold must be"),
    (lambda: best_response(ONE, price=1.0, gamma=1.5), DomainError, "gamma must be between 0 and 1"),
    (lambda: best_response(ONE, price=1.0, iterations=0), DomainError, "iterations must be"),
    (lambda: best_response(ONE, price=1.0, attribute_weights=[1.0]), ShapeError, "attribute_weights must have 40"),
    (lambda: best_response(ONE, price=1.0, attribute_weights=np.zeros(40)), DomainError,
     "attribute_weights must have a"),
    (lambda: best_response(ONE, price=1.0, dither=1.0), DomainError, "dither must be"),
    (lambda: ONE.gradient(np.zeros((2, 40)), np.zeros(12)), ShapeError, "weights must have shape"),
    (lambda: ONE.gradient(np.zeros((2, 39)), np.zeros((2, 12))), ShapeError, "released must have one entry"),
]


@pytest.mark.parametrize(("call", "error", "text"), MISTAKES, ids=[text for *_, text in MISTAKES])
def test_mistakes(call, error, text):
    with pytest.raises(error, match=text):
        call()
