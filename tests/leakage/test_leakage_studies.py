"""Studies of a grid of protections: exact values against enumeration, the same bits on every engine, resumption."""

import itertools
import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from fastpriv.base.errors import DomainError, NotConvergedError, ShapeError
from fastpriv.cli.leakage import _table
from fastpriv.studies.leakage import MultilayerPerceptron, Protection, SoftmaxRegression, leakage_study
from fastpriv.studies.leakage.leakage_pages import leakage_page
from fastpriv.studies.leakage.leakage_studies import guessing_remark
from fastpriv.studies.leakage.record_files import labelled_records
from leakage.attacks_that_know import BATCH, LABELS, POOL, RECORDS, Everything, Guesses, HalfOfThem, WrongOnes

MODEL = SoftmaxRegression(5, 3)
GRID = {
    "none": Protection(), "little": Protection(noise="gaussian", scale=0.2),
    "much": Protection(clip_example=0.5, noise="gaussian", scale=0.5),
    "laplace": Protection(noise="laplace", scale=0.1),
}


def study(**words):
    settings = {"attack": HalfOfThem(), "pool": POOL, "batch": BATCH, "n_models": 3, "n_attacks": 2, "rng": 1,
                "threshold": 1.0} | words
    return leakage_study(settings.pop("model", MODEL), settings.pop("records", RECORDS), settings.pop("labels", LABELS),
                         settings.pop("protections", GRID), **settings)


def enumerated(model, guard, starts, rounds, rng):
    """C1, kappa_3, vulnerability, entropy and recovered over all pairs of the pool, by normal densities."""
    from numpy.random import SeedSequence

    from fastpriv.studies.leakage import Training

    pairs = list(itertools.combinations(range(POOL.size), 2))
    training = Training(model, rounds=rounds, learning_rate=0.1, batch="full", protection=guard)
    members = POOL[BATCH]
    beliefs, best, entropies = [], [], []
    for m, start in enumerate(starts):
        updates = training.run(RECORDS[members], LABELS[members], weights=start,
                               rng=SeedSequence(rng, spawn_key=(3, m)))
        logs = np.zeros(len(pairs))
        for r in range(rounds):
            rows = model.per_example_gradients(updates.before[r], RECORDS[POOL], LABELS[POOL])
            if guard.clip_example is not None:
                rows = rows * np.minimum(1, guard.clip_example / np.linalg.norm(rows, axis=1))[:, None]
            means = np.array([rows[list(pair)].mean(axis=0) for pair in pairs])
            logs -= ((updates.gradient(r) - means) ** 2).sum(axis=1) / (2 * guard.scale**2)
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        beliefs.append([weight[[d in pair for pair in pairs]].sum() / 2 for d in range(POOL.size)])
        best.append(weight.max())
        entropies.append(-(weight[weight > 0] * np.log(weight[weight > 0])).sum())
    beliefs, prior = np.array(beliefs), 1 / POOL.size
    kappa = beliefs.mean(axis=0)
    middle = (kappa + prior) / 2
    js = 0.5 * (kappa * np.log(kappa / middle)).sum() + 0.5 * (prior * np.log(prior / middle)).sum()
    recovered = np.sort(beliefs, axis=1)[:, -2:].sum(axis=1).mean()
    return math.sqrt(js), np.abs(np.log(beliefs / prior)).max(), np.mean(best), np.mean(entropies), recovered


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("model", [MODEL, MultilayerPerceptron(5, (4,), 3)])
def test_exact_values_are_those_of_all_batches(model, rounds):
    starts = np.random.default_rng(rounds).normal(size=(3, model.n_parameters))
    found = study(model=model, weights=starts, rounds=rounds)
    for label in ("little", "much"):
        exact = found[label].exact
        truth = enumerated(model, GRID[label], starts, rounds, 1)
        for one, true in zip((exact.c1, exact.kappa_3, exact.vulnerability, exact.entropy, exact.recovered), truth,
                             strict=True):
            assert one.kind == "certified"
            assert one.value == pytest.approx(true, rel=1e-7, abs=1e-9)
            assert one.lower - 1e-9 <= true <= one.upper + 1e-9
    assert found["laplace"].exact is None
    assert "normal noise, or none" in found["laplace"].remark


def test_without_noise_the_batch_is_identified():
    found = study(attack=Everything())["none"]
    assert found.exact.vulnerability.value == found.exact.recovered.value == found.exact.identified == 1.0
    assert found.exact.entropy.value == 0.0
    assert found.exact.kappa_3.value == math.inf
    assert found.estimate.c1.value == pytest.approx(found.exact.c1.value, rel=1e-12)
    assert found.estimate.recovered.value == 1.0
    assert found.distortion.value == pytest.approx(0.0, abs=1e-12)
    equal = RECORDS.copy()
    equal[POOL[3]] = equal[POOL[BATCH[0]]]
    one = study(records=equal, labels=np.zeros(40, dtype=int), attack=Everything())["none"]
    assert one.exact is None
    assert "without noise, other batches have" in one.remark


def test_a_posterior_that_is_sampled_agrees_with_all_batches(monkeypatch):
    guard = {"noise": Protection(noise="gaussian", scale=0.2)}
    exact = study(protections=guard).outcomes[0].exact
    monkeypatch.setattr("fastpriv.studies.leakage.leakage_studies._MOST_BATCHES", 10)
    sampled = study(protections=guard).outcomes[0].exact
    assert sampled.c1.kind == "heuristic"
    assert sampled.method == "posterior over sampled batches"
    for name in ("c1", "recovered", "entropy", "kappa_3_smoothed"):
        assert getattr(sampled, name).value == pytest.approx(getattr(exact, name).value, rel=0.05, abs=0.03)
    assert sampled.identified == exact.identified
    without = study(protections=[Protection()]).outcomes[0]
    assert without.exact is None
    assert "not sampled without noise" in without.remark


def test_no_attack_beats_the_exact_posterior_by_more_than_chance():
    found = study(protections={"much": Protection(noise="gaussian", scale=5.0)}, attack=HalfOfThem(), n_models=8)
    # this attack cheats, and the calibration says so: it recovers more than the best attack can expect to
    assert found.outcomes[0].estimate.recovered.lower > found.outcomes[0].exact.recovered.upper


@pytest.mark.slow
def test_the_same_bits_on_every_engine_and_after_interruptions(tmp_path):
    one = study()
    assert study(n_jobs=2) == one  # processes
    file = tmp_path / "study.db"

    class Stop(Exception):
        pass

    def stop(done, total):
        if done == 20:
            raise Stop

    with pytest.raises(Stop):
        study(store=file, progress=stop)
    counts = []
    again = study(store=file, progress=lambda done, total: counts.append((done, total)))
    assert again == one
    assert counts[0][0] >= 16
    assert counts[-1] == (36, 36)
    counts.clear()
    more = study(store=file, n_attacks=3, protections=dict(reversed(GRID.items())),
                 progress=lambda done, total: counts.append((done, total)))
    assert counts[0] == (36, 48)
    assert np.array_equal(more.attributions[::-1, :, :2], one.attributions)
    with pytest.raises(DomainError, match="store must be one of the same"):
        study(store=file, learning_rate=0.2)
    assert pickle.loads(pickle.dumps(one)) == one


@pytest.mark.slow
def test_table_and_files():
    found = study()
    assert len(found.rows()) == 4
    assert len(found.rows()[0]) == len(found.columns())
    frame = found.to_frame()
    assert frame["exact_c1"].notna().tolist() == [True, True, True, False]
    table = json.loads("".join(found.json_pieces()))
    assert table["table"][1]["protection"] == "little"
    assert table["settings"]["n_models"] == 3


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ({"protections": []}, r"protections must have at least one entry; got none. Pass \[Protection\(\)\]"),
        ({"protections": [Protection(), Protection()]}, "protections must be different; got 2 of which 1 have"),
        ({"protections": [1]}, "protections must be"),
        ({"batch": 13}, "batch must be an integer of at least 1 and at most 12; got 13"),
        ({"pool": 41}, "pool must be an integer of at least 1 and at most 40; got 41"),
        ({"batch": [1, 1]}, "batch must be a number of records, or a flat list of different indices; got"),
        ({"labels": LABELS + 1}, "labels must be integers from 0 to 2; got 3"),
        ({"store": "x.db", "rng": None}, "rng must be an integer with a store; got None"),
        ({"attack": 3}, r"attack must have a method reconstruct\(updates, rng=\); got 3"),
        ({"weights": np.zeros((2, 18))}, r"weights must have one row a model, 3; got shape \(2, 18\)"),
        ({"model": 3}, "model must be a trainable model, with n_features, .*; got 3"),
        ({"threshold": -1.0}, "threshold must be at least 0; got -1.0"),
    ],
)
def test_errors(words, text):
    with pytest.raises((DomainError, ShapeError), match=text):
        study(**words)


def test_what_is_not_there():
    with pytest.raises(DomainError, match="label must be one of none, .*; got 'x'. "):
        study()["x"]


def test_a_gradient_that_is_nan_is_named():
    with pytest.raises(NotConvergedError, match="gradient must be finite; got .* in round"):
        study(records=RECORDS * 1e308, rounds=3)


WORDS = "better than guessing (which recovers 0.167 of the batch): says nothing about privacy"


@pytest.mark.parametrize("attack", [Guesses(), WrongOnes()])
def test_an_attack_that_guesses_is_called_one(attack, tmp_path):
    found = study(attack=attack, n_models=8, n_attacks=4)
    assert all(one.no_better_than_guessing for one in found.outcomes)
    assert all(WORDS in one.remark for one in found.outcomes)
    rows = json.loads("".join(found.json_pieces()))["table"]
    assert all(WORDS in row["remark"] for row in rows)
    assert "normal noise, or none" in found["laplace"].remark  # the other remark stays
    page = leakage_page(found, labelled_records(RECORDS, LABELS, source="made up"), drawn=False)
    assert "Under all protections: attack no better than guessing" in page
    assert WORDS in _table(found)


@pytest.mark.parametrize("attack", [Everything(), HalfOfThem()])
def test_an_attack_that_knows_is_not(attack):
    found = study(attack=attack, n_models=24)
    assert not any(one.no_better_than_guessing for one in found.outcomes)
    page = leakage_page(found, labelled_records(RECORDS, LABELS, source="made up"), drawn=False)
    assert "better than guessing" not in page + _table(found)


@pytest.mark.parametrize(("models", "chance"), [(2, 0.04), (8, 0.04), (8, 0.3), (40, 0.1), (200, 0.01)])
def test_guesses_are_seldom_called_better(models, chance):
    hits = stats.binom(models, chance)  # the largest spread of means in [0, 1]
    better = [k for k in range(models + 1) if not guessing_remark(k / models, chance, models, 0.95)]
    assert sum(hits.pmf(k) for k in better) <= 0.05
    assert not guessing_remark(1.0, chance, models, 0.95)
    assert guessing_remark(chance, chance, models, 0.95).startswith("attack no better")
    unclear = [guessing_remark(k / models, chance, models, 0.95) for k in range(models + 1) if k / models > chance]
    assert all(text.startswith("attack not shown to be better than guessing") for text in unclear if text)
