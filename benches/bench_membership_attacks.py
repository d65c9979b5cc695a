"""Scores of attacks from packed bits, AUCs and evaluations, beside NumPy, SciPy and scikit-learn.

Run: pytest benches/bench_membership_attacks.py
"""

import numpy as np
import pytest
from scipy.stats import rankdata

from fastpriv.studies.membership import (
    AdaptiveThresholdLRT,
    BayesAttacker,
    ClassifierAttacker,
    DworkScore,
    FixedSizeMembership,
    FixedThresholdLRT,
    FrequencyRelease,
    GaussianNoise,
    Panel,
    auc,
    evaluate_attack,
)

RELEASES, PEOPLE, ATTRIBUTES = 1000, 800, 5000


@pytest.fixture(scope="module")
def outcomes():
    rng = np.random.default_rng(1)
    membership = rng.random((RELEASES, PEOPLE)) < 0.5
    return rng.normal(size=membership.shape) + membership, membership


def by_ranks(scores, membership):
    """The Mann-Whitney statistic from the ranks of all rows."""
    members = membership.sum(axis=1)
    above = (rankdata(scores, axis=1) * membership).sum(axis=1) - members * (members + 1) / 2
    return above / (members * (scores.shape[1] - members))


def by_scikit_learn(scores, membership):
    metrics = pytest.importorskip("sklearn.metrics")
    return np.array([metrics.roc_auc_score(b, s) for s, b in zip(scores, membership, strict=True)])


@pytest.mark.parametrize("way", [auc, by_ranks, by_scikit_learn])
def test_aucs(benchmark, outcomes, way):
    scores, membership = outcomes
    assert way(scores[:20], membership[:20]) == pytest.approx(auc(scores[:20], membership[:20]), rel=1e-12)
    benchmark.group = "1,000 AUCs of 800 scores"
    benchmark.pedantic(way, (scores, membership), rounds=1 if way is by_scikit_learn else 7, warmup_rounds=0)


LAWS = {
    "heavy tails": lambda rng, shape: rng.standard_cauchy(shape),
    "probabilities near 0": lambda rng, shape: np.exp(rng.uniform(-200.0, 0.0, shape)),
    "five values": lambda rng, shape: rng.integers(0, 5, shape) * 1.0,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("way", [auc, by_ranks])
def test_aucs_of_other_scores(benchmark, outcomes, way, law):
    scores, membership = LAWS[law](np.random.default_rng(2), (RELEASES, PEOPLE)), outcomes[1]
    assert way(scores, membership) == pytest.approx(auc(scores, membership), rel=1e-12)
    benchmark.group = f"1,000 AUCs of 800 scores, {law}"
    benchmark(way, scores, membership)


def test_evaluation(benchmark, outcomes):
    benchmark.group = "evaluation of 1,000 releases of 800 people"
    found = benchmark.pedantic(evaluate_attack, outcomes, rounds=3)
    assert found.auc.upper - found.auc.lower < 0.03


@pytest.fixture(scope="module")
def attacked():
    rng = np.random.default_rng(3)
    bits = rng.random((2 * PEOPLE, ATTRIBUTES)) < rng.uniform(0.05, 0.5, ATTRIBUTES)
    panel, references = Panel(bits[:PEOPLE]), Panel(bits[PEOPLE:])
    released = FrequencyRelease(panel, FixedSizeMembership(400), GaussianNoise(0.01)).simulate(RELEASES, rng=4).released
    return panel, references, released


def likelihood_ratios(panel, references, released):
    """The likelihood ratios of all people by a product with the matrix of doubles."""
    pbar, e0 = references.frequencies(), 0.5 / references.n_people
    x, pbar = np.clip(released, e0, 1 - e0), np.clip(pbar, e0, 1 - e0)
    has, lacks = np.log(pbar / x), np.log((1 - pbar) / (1 - x))
    return -((has - lacks) @ MATRIX[id(panel)].T + lacks.sum(axis=1, keepdims=True))


MATRIX = {}  # of doubles, made before the clock starts


@pytest.mark.parametrize("way", ["fixed", "fixed, 2 threads", "adaptive", "score", "BLAS"])
def test_scores(benchmark, attacked, way):
    panel, references, released = attacked
    MATRIX[id(panel)] = panel.to_array().astype(float)
    benchmark.group = "scores of 1,000 releases of 800 people, 5,000 attributes"
    kinds = {"adaptive": AdaptiveThresholdLRT, "score": DworkScore}
    attack = kinds.get(way, FixedThresholdLRT)(panel, references)
    if way == "BLAS":
        assert likelihood_ratios(*attacked) == pytest.approx(attack.scores(released), rel=1e-9, abs=1e-9)
        benchmark.pedantic(likelihood_ratios, attacked, rounds=3)
    else:
        benchmark.pedantic(attack.scores, (released,), {"n_jobs": 2 if "2" in way else 1}, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("kind", ["network", "logistic"])
def test_trained_attacks(benchmark, kind):
    """Training on 4,000 releases; the network's AUC is within 0.03 of that of the exact posterior."""
    bits = np.random.default_rng(1).random((12, 60)) < 0.5
    model = FrequencyRelease(Panel(bits), FixedSizeMembership(6), GaussianNoise(0.2))
    training, fresh = model.simulate(4000, rng=1), model.simulate(1000, rng=2)
    benchmark.group = "training of an attack on 12 people, 60 attributes"

    def trained():
        attack = ClassifierAttacker(kind, rng=1)
        return attack.fit(training.released, training.membership)

    attack = benchmark.pedantic(trained, rounds=1)
    exact, reached = (
        auc(one.scores(fresh.released).ravel(), fresh.membership.ravel()) for one in (BayesAttacker(model), attack)
    )
    assert exact - 0.03 < reached < exact + 0.005
