"""No attack has a larger AUC than the exact Bayes attacker, beyond two standard errors."""

import numpy as np
import pytest

from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BayesAttacker,
    BernoulliMembership,
    ClassifierAttacker,
    DworkScore,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    LaplaceNoise,
    Panel,
    auc,
    evaluate_attack,
)

BITS = np.random.default_rng(1).random((30, 40)) < np.random.default_rng(2).uniform(0.1, 0.5, 40)
PANEL, REFERENCES = Panel(BITS[:8]), Panel(BITS[8:])
RELEASES, BLOCKS = 1000, 50
MODELS = {
    "Gaussian": FrequencyRelease(PANEL, BernoulliMembership(0.5), GaussianNoise(0.25)),
    "Laplace, clipped": FrequencyRelease(PANEL, FixedSizeMembership(3), LaplaceNoise(0.3), clip=True),
}


def by_references(kind):
    return lambda training: kind(PANEL, REFERENCES)


def trained(make):
    return lambda training: make().fit(training.released, training.membership)


ATTACKS = {
    "fixed": by_references(FixedThresholdLRT),
    "adaptive": by_references(AdaptiveThresholdLRT),
    "score": by_references(DworkScore),
    "tree": trained(lambda: ClassifierAttacker("tree", rng=1, max_depth=5)),
    "svm": trained(lambda: ClassifierAttacker("svm", rng=1)),
    "logistic": trained(lambda: ClassifierAttacker("logistic", rng=1)),
    "network": trained(lambda: ClassifierAttacker("network", rng=1, hidden_layer_sizes=[64], max_iter=10)),
}


@pytest.fixture(scope="module", params=MODELS)
def case(request):
    model = MODELS[request.param]
    fresh = model.simulate(RELEASES, rng=3)
    bayes = BayesAttacker(model)
    return model.simulate(1500, rng=4), fresh, bayes, auc(*in_blocks(bayes.scores(fresh[1]), fresh[0]))


def in_blocks(*arrays):
    return [array.reshape(BLOCKS, -1) for array in arrays]


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ATTACKS)
def test_bayes_is_best(case, name):
    training, (membership, released), _, best = case
    if name in ("tree", "svm", "logistic", "network"):
        pytest.importorskip("sklearn")
    attack = ATTACKS[name](training)
    other = auc(*in_blocks(attack.scores(released), membership))
    gain = best - other
    assert gain.mean() >= -2.0 * gain.std(ddof=1) / np.sqrt(BLOCKS)
    assert other.mean() > 0.52  # an attack it is


@pytest.mark.few(1)
def test_evaluation_of_the_bayes_attacker(case):
    _, (membership, released), bayes, _ = case
    probabilities = bayes.predict_proba(released)
    gammas = np.array([0.3, 0.5, 0.7])
    found = evaluate_attack(probabilities, membership, gamma=gammas, posterior=True)
    best = evaluate_attack(probabilities, membership, gamma=gammas)
    for i, gamma in enumerate(gammas):
        attained = np.maximum(probabilities - gamma, 0.0).sum(axis=1)  # E (pi - gamma)^+ over people
        slack = 4.0 * attained.std() / np.sqrt(RELEASES)
        assert found.bwma.lower[i] - slack <= attained.mean() <= found.bwma.upper[i] + slack
        assert best.bwma.upper[i] >= found.bwma.lower[i]
