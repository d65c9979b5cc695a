"""The network beside the exact posterior of a small model; seeds, errors."""

import sys

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from fastpriv import BackendMissingError, DomainError, ShapeError
from fastpriv.studies.membership import (
    BernoulliMembership,
    FrequencyRelease,
    GaussianNoise,
    NetworkAttacker,
    Panel,
    auc,
)
from fastpriv.studies.membership.attackers import Attacker


def model():
    bits = np.random.default_rng(1).random((5, 12)) < 0.5
    return FrequencyRelease(Panel(bits), BernoulliMembership(0.5), GaussianNoise(0.3))


def exact_posterior(release, released):
    """P(b_k = 1 | r) by a sum over all memberships."""
    every = (np.arange(1, 32)[:, None] >> np.arange(5)) & 1 == 1
    logs = release.log_likelihood(released[:, None, :], np.broadcast_to(every, (len(released), 31, 5)))
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return weights @ every / weights.sum(axis=1, keepdims=True)


def network(epochs=4, **words):
    return NetworkAttacker(**{"hidden": [32, 16], "epochs": epochs, "rng": 1} | words)


def test_nearly_as_good_as_the_exact_posterior():
    membership, released = model().simulate(12_000, rng=1)
    attack = network(12).fit(released, membership)
    fresh = model().simulate(4000, rng=2)
    exact = exact_posterior(model(), fresh.released)
    found = attack.predict_proba(fresh.released)
    best, reached = (auc(p.ravel(), fresh.membership.ravel()) for p in (exact, found))
    assert best - 0.02 < reached < best + 0.005
    assert np.abs(found - exact).mean() < 0.06
    loss = [-np.mean(np.log(np.where(fresh.membership, p, 1 - p))) for p in (exact, found)]
    assert loss[0] - 0.005 < loss[1] < loss[0] + 0.03
    assert len(attack.history) == 12
    assert attack.history[-1][0] < attack.history[0][0]
    assert isinstance(attack, Attacker)
    assert np.array_equal(attack.claims(fresh.released, 0.7), found > 0.7)
    assert attack.scores(fresh.released[0]).shape == (5,)
    assert attack.scores(fresh.released.reshape(4, 1000, 12)).shape == (4, 1000, 5)
    assert attack.decision_function(fresh.released[:0]).shape == (0, 5)


def test_seeds():
    membership, released = model().simulate(401, rng=1)
    counted = []
    plain = network().fit(released, membership, progress=lambda done, total: counted.append((done, total)))
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]
    again = network().fit(released, membership)
    assert again.history == plain.history
    assert np.array_equal(again.scores(released), plain.scores(released))
    assert not np.array_equal(network(rng=2).fit(released, membership).scores(released), plain.scores(released))


def test_the_scores_are_those_of_scikit_learn():
    """The classifier that is trained with the same seed and order gives the same probabilities."""
    membership, released = model().simulate(301, rng=1)
    kept = []

    class Recorded(MLPClassifier):
        def fit(self, *arguments, **words):
            kept.append(self)
            return super().fit(*arguments, **words)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.neural_network.MLPClassifier", Recorded)
        attack = network(validation=0.0).fit(released, membership)
    rows, _ = attack._scaled(released)
    assert attack.predict_proba(released) == pytest.approx(kept[-1].predict_proba(rows), rel=1e-9)
    assert kept[-1].learning_rate_init == pytest.approx(2e-3 * 0.95**3)


def test_one_person():
    membership, released = FrequencyRelease(
        Panel([[1, 0], [0, 1]]), BernoulliMembership(0.5), GaussianNoise(0.2)
    ).simulate(400, rng=1)
    attack = network(8).fit(released, membership[:, :1])
    assert attack.scores(released).shape == (400, 1)
    assert auc(attack.scores(released)[:, 0], membership[:, 0]) > 0.8
    assert attack.history[0][0] < 1.5


def test_widths_and_small_sets():
    membership, released = model().simulate(9, rng=1)
    attack = NetworkAttacker(epochs=1, batch_size=2, validation=0.0, rng=1).fit(released, membership)
    assert np.isnan(attack.history[0][1])
    assert NetworkAttacker()._widths(5000, 800) == (3400, 2000)
    assert NetworkAttacker()._widths(10, 20) == (20, 20)
    assert attack.scores(released).shape == (9, 5)
    with pytest.raises(DomainError, match="released must have at least 2 releases that are not held out; got 1"):
        network().fit(released[:1], membership[:1])
    with pytest.raises(ShapeError, match=r"released and membership must be of shapes \(R, m\)"):
        network().fit(released[:3], membership)
    with pytest.raises(DomainError, match="gamma must be between 0 and 1; got 2"):
        attack.claims(released, 2)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"hidden": [0]}, "hidden must be an integer of at least 1; got 0"),
        ({"epochs": 0}, "epochs must be an integer of at least 1; got 0"),
        ({"batch_size": 1}, "batch_size must be an integer of at least 2; got 1"),
        ({"learning_rate": 0.0}, "learning_rate must be positive and finite; got 0.0"),
        ({"decay": 1.5}, "decay must be above 0 and at most 1; got 1.5"),
        ({"validation": 1.0}, "validation must be at least 0 and below 1; got 1.0"),
        ({"rng": "a"}, "rng must be None, an integer of at least 0"),
    ],
)
def test_parameters(words, text):
    with pytest.raises(DomainError, match=text):
        NetworkAttacker(**words)
    with pytest.raises(DomainError, match="fit must be called before scores and claims; got a NetworkAttacker"):
        NetworkAttacker().scores([0.5])


def test_without_scikit_learn(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.neural_network", None)
    with pytest.raises(BackendMissingError, match=r"needs scikit-learn. Install it .* 'fastpriv\[attacks\]'"):
        NetworkAttacker().fit([[0.5]], [[True]])
