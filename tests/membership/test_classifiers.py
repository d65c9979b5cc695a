"""Classifiers of scikit-learn, one a person: the same answers as scikit-learn's own, seeds, errors."""

import sys

import numpy as np
import pytest

from fastpriv import DomainError
from fastpriv.errors import BackendMissingError, ShapeError
from fastpriv.studies.membership import (
    BayesAttacker,
    BernoulliMembership,
    ClassifierAttacker,
    FrequencyRelease,
    GaussianNoise,
    Panel,
    auc,
)
from fastpriv.studies.membership.attackers import Attacker

KINDS = ["tree", "svm", "logistic"]


def model():
    bits = np.random.default_rng(1).random((6, 20)) < 0.4
    return FrequencyRelease(Panel(bits), BernoulliMembership(0.5), GaussianNoise(0.1))


def fitted(kind, **words):
    training = model().simulate(300, rng=2)
    return ClassifierAttacker(kind, rng=3, **words).fit(training.released, training.membership)


@pytest.fixture(autouse=True)
def _scikit_learn(request):
    if "without" not in request.node.name:
        pytest.importorskip("sklearn")


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", KINDS)
def test_members_are_found(kind):
    attack, fresh = fitted(kind), model().simulate(300, rng=4)
    assert isinstance(attack, Attacker)
    scores = attack.scores(fresh.released)
    assert scores.shape == (300, 6)
    assert auc(scores.ravel(), fresh.membership.ravel()) > (0.6 if kind == "tree" else 0.85)
    assert np.mean(attack.claims(fresh.released) == fresh.membership) > 0.6
    assert attack.decision_function(fresh.released[0]) == pytest.approx(scores[0], rel=1e-12)  # of BLAS, by its order
    assert np.array_equal(fitted(kind).scores(fresh.released), scores)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", KINDS)
def test_workers_change_nothing(kind):
    training = model().simulate(100, rng=2)
    one, two = (
        ClassifierAttacker(kind, rng=3).fit(training.released, training.membership,
        n_jobs=n_jobs).scores(training.released) for n_jobs in (1, 2)
    )
    assert np.array_equal(one, two)


@pytest.mark.slow
def test_the_same_as_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    training = model().simulate(300, rng=2)
    x = (training.released - training.released.mean(axis=0)) / training.released.std(axis=0)
    attack = fitted("logistic", C=0.5)
    for person in range(6):
        own = linear_model.LogisticRegression(C=0.5, max_iter=1000).fit(x, training.membership[:, person])
        found = attack.predict_proba(training.released)[:, person]
        assert found == pytest.approx(own.predict_proba(x)[:, 1], abs=1e-12)
        assert attack.scores(training.released)[:, person] == pytest.approx(own.decision_function(x), abs=1e-12)


def test_a_person_who_is_always_a_member_has_one_score():
    training = model().simulate(50, rng=5)
    membership = training.membership.copy()
    membership[:, 2] = True
    attack = ClassifierAttacker("tree", rng=1, max_depth=2).fit(training.released, membership)
    assert np.ptp(attack.scores(training.released)[:, 2]) == 0.0 < np.ptp(attack.scores(training.released)[:, 0])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: ClassifierAttacker("forest"), DomainError,
         "kind must be one of tree, svm, logistic, network; got 'forest'"),
        (lambda: ClassifierAttacker("tree", depth=3), DomainError,
         "options must be arguments of sklearn.tree.DecisionTreeClassifier; got depth: "),
        (lambda: ClassifierAttacker("tree", rng=-1), DomainError, "rng must be None, an integer of at least 0"),
        (lambda: ClassifierAttacker("tree").scores([0.5]), DomainError,
         "fit must be called before scores and claims; got a ClassifierAttacker that was never fitted"),
        (lambda: fitted("svm").predict_proba(np.zeros(20)), DomainError,
         "kind must be tree, logistic or network for probabilities; got 'svm'. Use scores"),
        (lambda: fitted("tree").claims(np.zeros(20), 1.5), DomainError, "gamma must be between 0 and 1; got 1.5"),
        (lambda: fitted("tree").scores(np.zeros(3)), ShapeError, "released must have one entry an attribute, here 20"),
        (lambda: ClassifierAttacker("tree").fit(np.zeros((3, 4)), np.zeros((2, 5), dtype=bool)), ShapeError,
         r"released and membership must be of shapes \(R, m\) and \(R, 5\)"),
    ],
)
def test_what_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def small_model():
    bits = np.random.default_rng(1).random((5, 12)) < 0.5
    return FrequencyRelease(Panel(bits), BernoulliMembership(0.5), GaussianNoise(0.3))


@pytest.mark.slow
def test_a_network_is_nearly_as_good_as_the_exact_posterior():
    membership, released = small_model().simulate(3000, rng=1)
    attack = ClassifierAttacker("network", rng=1, hidden_layer_sizes=[32, 16], max_iter=15).fit(released, membership)
    fresh = small_model().simulate(2000, rng=2)
    exact, found = BayesAttacker(small_model()).predict_proba(fresh.released), attack.predict_proba(fresh.released)
    best, reached = (auc(p.ravel(), fresh.membership.ravel()) for p in (exact, found))
    assert best - 0.05 < reached < best + 0.005
    assert np.abs(found - exact).mean() < 0.1
    assert np.array_equal(attack.claims(fresh.released, 0.7), found > 0.7)
    assert attack.scores(fresh.released[0]).shape == (5,)
    assert attack.scores(fresh.released.reshape(4, 500, 12)).shape == (4, 500, 5)
    assert attack.decision_function(fresh.released[:0]).shape == (0, 5)


def test_networks_of_one_person_and_of_a_seed():
    model = FrequencyRelease(Panel([[1, 0], [0, 1]]), BernoulliMembership(0.5), GaussianNoise(0.2))
    membership, released = model.simulate(400, rng=1)
    one, again, other = (ClassifierAttacker("network", rng=seed).fit(released, membership[:, :1]).scores(released)
                         for seed in (1, 1, 2))
    assert one.shape == (400, 1)
    assert auc(one[:, 0], membership[:, 0]) > 0.8
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_without_scikit_learn(monkeypatch):
    for name in ("sklearn", "sklearn.tree"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BackendMissingError, match=r"needs scikit-learn. Install it .* 'fastpriv\[attacks\]'"):
        ClassifierAttacker("tree")
