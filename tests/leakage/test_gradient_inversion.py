"""Inversion of gradients: closed forms to rounding, labels exactly, batches by matching."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.leakage import (
    GradientMatching,
    MultilayerPerceptron,
    Protection,
    SoftmaxRegression,
    Training,
    invert_single_record,
    recover_labels,
)
from fastpriv.studies.leakage.gradient_inversion import observed_round
from kernels.variants import check_same_lines, each_wider_variant

RNG = np.random.default_rng(7)
POOL, LABELS = RNG.random((60, 12)), np.arange(60) % 6
SOFTMAX = SoftmaxRegression(12, 6)
NETWORKS = [SOFTMAX, *(MultilayerPerceptron(12, (9,), 6, f) for f in ("sigmoid", "tanh", "softplus", "relu"))]
NETWORK = MultilayerPerceptron(12, (16,), 6, "tanh")


class Foreign:
    """A model with the least that is asked for."""

    n_features, n_classes, n_parameters = SOFTMAX.n_features, SOFTMAX.n_classes, SOFTMAX.n_parameters
    initial, logits, losses, gradient = SOFTMAX.initial, SOFTMAX.logits, SOFTMAX.losses, SOFTMAX.gradient
    per_example_gradients = SOFTMAX.per_example_gradients


class ForeignMatching(Foreign):
    matching = SOFTMAX.matching


def distance(found, truth):
    """Largest error of a coordinate, with records in the order that fits best."""
    gaps = np.abs(found[:, None] - truth).max(axis=2)
    rows, columns = linear_sum_assignment(gaps)
    return gaps[rows, columns].max()


def updates_of(model, rng=1, **options):
    options = {"learning_rate": 0.5, **({} if "batch" in options else {"batch_size": 3}), **options}
    return Training(model, **options).run(POOL, LABELS, rng=rng)


@pytest.mark.parametrize("model", NETWORKS, ids=repr)
def test_single_record_in_closed_form(model):
    read = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        record, label = rng.normal(size=12) * 10.0 ** rng.integers(-8, 9), int(rng.integers(6))
        weights = model.initial(rng) * (0.1 if seed % 2 else 1.0)
        gradient = model.gradient(weights, record[None], [label])
        largest = np.abs(model.matrices(gradient)[0][:, -1]).max()
        for factor in (1.0, 1e-3, 1e-100):
            if not largest * factor > 1e-280:  # of a saturated network nothing is left
                continue
            read += 1
            found = invert_single_record(model, gradient * factor)
            assert np.abs(found.records[0] - record).max() <= 1e-12 * max(1.0, np.linalg.norm(record))
            assert found.labels.tolist() == [label]
            assert found.objective <= 1e-24 * (gradient @ gradient) * factor**2
    assert read > 30


def test_single_record_of_noise_is_no_match():
    gradient = SOFTMAX.gradient(SOFTMAX.initial(1), POOL[:1], LABELS[:1])
    assert invert_single_record(SOFTMAX, gradient + 0.1 * RNG.normal(size=gradient.size)).objective > 0.1


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_labels_that_are_certain_are_right(size):
    certain = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, size])
        members = rng.choice(60, size, replace=False)
        model = NETWORKS[seed % 5]
        weights = model.initial(rng) * 4.0 ** (seed % 4 - 2)
        gradient = model.gradient(weights, POOL[members], LABELS[members])
        found = recover_labels(model, gradient, size)
        assert found.counts.sum() == size
        assert np.array_equal(np.repeat(np.arange(6), found.counts), found.labels)
        if found.certain:
            certain += 1
            assert found.labels.tolist() == sorted(LABELS[members].tolist()), (seed, size)
        probabilities = np.exp(model.logits(weights, POOL[members]))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        assert found.certain or probabilities.mean(axis=0).max() >= 1 / size
    assert certain >= 25


def test_labels_that_are_uncertain_use_the_probabilities_of_other_records():
    weights = np.zeros((6, 13))
    weights[2, -1] = 8.0  # all records look like class 2
    members = np.array([0, 1, 2, 8, 9])
    gradient = SOFTMAX.gradient(weights.ravel(), POOL[members], LABELS[members])
    assert not recover_labels(SOFTMAX, gradient, 5).certain
    found = recover_labels(SOFTMAX, gradient, 5, weights=weights.ravel(), records=POOL[20:])
    assert found.labels.tolist() == sorted(LABELS[members].tolist())
    assert not found.certain


def test_labels_with_noise():
    members, rng = np.array([0, 1, 6, 17]), np.random.default_rng(3)
    gradient = SOFTMAX.gradient(np.zeros(78), POOL[members], LABELS[members])
    for sigma in (1e-3, 0.02):
        found = recover_labels(SOFTMAX, gradient + sigma * rng.normal(size=78), 4, sigma=sigma)
        assert found.labels.tolist() == [0, 0, 1, 5]
        assert not found.certain
    assert recover_labels(SOFTMAX, 5.0 * gradient, 4).counts.sum() == 4  # not a gradient of four records


@pytest.mark.parametrize("steps", [0, 30])
def test_batches_without_noise(steps):
    weights = SOFTMAX.initial(1)
    for _ in range(steps):
        weights = weights - 2.0 * SOFTMAX.gradient(weights, POOL, LABELS)
    for seed in range(8):
        updates = Training(SOFTMAX, learning_rate=0.1, batch_size=4).run(POOL, LABELS, rng=seed, weights=weights)
        members = updates.batches[0]
        found = GradientMatching().reconstruct(updates, rng=seed)
        if len(set(LABELS[members])) == 4:  # records of one class are hardly told apart at small weights
            assert distance(found.records, POOL[members]) < 1e-8, seed
        assert sorted(found.labels) == sorted(LABELS[members])
        assert found.objective < 1e-18


@pytest.mark.parametrize("model", [NETWORK, ForeignMatching()], ids=["network", "foreign"])
def test_batches_of_other_models(model):
    updates = updates_of(model, rng=4, batch_size=2)
    known = {"labels": LABELS[updates.batches[0]]}
    found = GradientMatching(max_evaluations=3000).reconstruct(updates, rng=1, **known)
    assert distance(found.records, POOL[updates.batches[0]]) < 1e-5
    assert found.labels.tolist() == known["labels"].tolist()
    assert found.objective < 1e-14


@pytest.mark.parametrize("options", [{"share": "weights"}, {"batch": "poisson", "rate": 0.05}], ids=str)
def test_what_is_shared_in_other_ways(options):
    misses = []
    for seed in range(5):
        updates = updates_of(SOFTMAX, rng=seed, **options)
        members = updates.batches[0]
        found = GradientMatching().reconstruct(updates, rng=seed)
        assert found.records.shape == (len(members), 12)
        if len(members):
            assert np.array_equal(np.sort(found.labels), np.sort(LABELS[members]))
            misses.append(distance(found.records, POOL[members]))
    assert np.median(misses) < 1e-2


@pytest.mark.parametrize("options", [
    {"local_steps": 4, "learning_rate": 0.1}, {"local_steps": 3, "learning_rate": 0.1, "share": "weights"},
    {"protection": Protection(clip_example=0.3)},
], ids=str)
def test_steps_and_clipped_gradients_are_taken_for_a_gradient(options):
    misses, guesses = [], []
    for seed in range(5):
        updates = updates_of(SOFTMAX, rng=seed, **options)
        truth = POOL[updates.batches[0]]
        found = GradientMatching().reconstruct(updates, rng=seed)
        assert found.records.shape == truth.shape
        assert np.all((found.records >= 0.0) & (found.records <= 1.0))
        misses.append(distance(found.records, truth))
        guesses.append(distance(np.full((3, 12), 0.5), truth))
    if "local_steps" in options:  # clipped gradients lead to other records
        assert np.median(misses) < 0.5 * np.median(guesses)


@pytest.mark.parametrize("protection", [
    Protection(noise="gaussian", scale=0.003), Protection(noise="laplace", scale=0.002), Protection(levels=256),
    Protection(keep_fraction=0.7), Protection.dp_sgd(10.0, 0.0006, 3),
], ids=lambda one: one.label)
def test_noise(protection):
    errors = {"attack": [], "with public records": [], "guess": []}
    for seed in range(4):
        updates = updates_of(SOFTMAX, rng=seed, protection=protection)
        truth = POOL[updates.batches[0]]
        errors["attack"].append(distance(GradientMatching().reconstruct(updates, rng=1).records, truth))
        attack = GradientMatching(public_records=POOL[30:])
        errors["with public records"].append(distance(attack.reconstruct(updates, rng=1).records, truth))
        errors["guess"].append(distance(np.full((3, 12), 0.5), truth))
    assert np.median(errors["attack"]) < 0.5 * np.median(errors["guess"]), errors
    assert np.median(errors["with public records"]) < 0.5 * np.median(errors["guess"]), errors


def test_the_prior_counts_as_much_as_noise_says():
    updates = updates_of(SOFTMAX, protection=Protection(noise="gaussian", scale=100.0))
    found = GradientMatching(public_records=POOL).reconstruct(updates, rng=1)
    np.testing.assert_allclose(found.records, np.tile(POOL.mean(axis=0), (3, 1)), atol=0.05)


def test_bounds_hold():
    updates = updates_of(SOFTMAX, protection=Protection(noise="gaussian", scale=0.05))
    for bounds in ((0.2, 0.4), (-np.inf, np.inf), (0.0, np.inf)):
        found = GradientMatching(bounds=bounds, restarts=1).reconstruct(updates, rng=1)
        assert np.all((found.records >= bounds[0]) & (found.records <= bounds[1]))


def test_same_seed_same_answer():
    updates = updates_of(SOFTMAX, protection=Protection(noise="gaussian", scale=0.01))
    first, again, other = (GradientMatching(restarts=2).reconstruct(updates, rng=seed) for seed in (5, 5, 6))
    assert first == again
    assert first != other
    assert hash(first) == hash(again)
    assert "Reconstruction(3 records" in repr(first)


def test_more_restarts_are_no_worse():
    updates = updates_of(SOFTMAX, protection=Protection(noise="gaussian", scale=0.01))
    found = [GradientMatching(restarts=k).reconstruct(updates, rng=1, labels=LABELS[updates.batches[0]]).objective
             for k in (1, 6)]
    assert found[1] <= found[0]


def test_empty_batches_and_zero_gradients():
    updates = updates_of(SOFTMAX, batch="poisson", rate=1e-9)
    found = GradientMatching().reconstruct(updates, rng=1)
    assert found.records.shape == (0, 12)
    assert found.labels.shape == (0,)
    assert found.objective == 0.0
    flat = updates_of(SOFTMAX, protection=Protection(noise="gaussian", scale=1e-300))
    assert np.isfinite(GradientMatching().reconstruct(flat, rng=1).records).all()


def test_what_an_attacker_sees():
    plain = observed_round(updates_of(SOFTMAX))
    assert plain.variance == 0.0
    assert plain.weights is plain.before
    laplace = observed_round(updates_of(SOFTMAX, protection=Protection(noise="laplace", scale=0.5)))
    assert laplace.variance == 0.5
    steps = updates_of(SOFTMAX, local_steps=4, protection=Protection.dp_sgd(1.0, 3.0, 3))
    assert observed_round(steps).variance == pytest.approx(0.25)
    np.testing.assert_allclose(observed_round(steps).weights, (steps.before[0] + steps.weights) / 2, atol=1e-12)
    foreign = updates_of(Foreign(), local_steps=3, protection=Protection(clip_example=0.2))
    members = foreign.batches[0]
    for updates in (foreign, updates_of(SOFTMAX, local_steps=3, protection=Protection(clip_example=0.2))):
        seen = observed_round(updates)
        np.testing.assert_allclose(seen.update(POOL[members], LABELS[members]), seen.gradient, rtol=0, atol=1e-15)


def test_errors():
    updates, gradient = updates_of(SOFTMAX), np.ones(78)
    with pytest.raises(DomainError, match="a derivative by an intercept of the first layer that is not 0; got zeros"):
        invert_single_record(SOFTMAX, np.zeros(78))
    with pytest.raises(DomainError, match="model must be a SoftmaxRegression or a MultilayerPerceptron; got"):
        invert_single_record(Foreign(), gradient)
    with pytest.raises(ShapeError, match="gradient must be one vector of the model's 78 weights; got shape"):
        invert_single_record(SOFTMAX, gradient[1:])
    with pytest.raises(DomainError, match="weights must be given with records, and only with them; got None"):
        recover_labels(SOFTMAX, gradient, 2, records=POOL)
    with pytest.raises(DomainError, match="weights must be given with records, and only with them; got weights"):
        recover_labels(SOFTMAX, gradient, 2, weights=gradient)
    with pytest.raises(DomainError, match="sigma must be at least 0 and finite; got -1.0"):
        recover_labels(SOFTMAX, gradient, 2, sigma=-1.0)
    with pytest.raises(DomainError, match="bounds must be a least and a largest value, ascending; got"):
        GradientMatching(bounds=(1.0, 0.0))
    with pytest.raises(ShapeError, match="bounds must be two numbers; got shape"):
        GradientMatching(bounds=(0.0, 0.5, 1.0))
    with pytest.raises(ShapeError, match="public_records must be a table of at least two rows; got shape"):
        GradientMatching(public_records=POOL[0])
    with pytest.raises(ShapeError, match="public_records must have 12 columns, the model's features; got 3"):
        GradientMatching(public_records=POOL[:, :3]).reconstruct(updates)
    with pytest.raises(DomainError, match="updates must be of a model with the method matching; got"):
        GradientMatching().reconstruct(updates_of(Foreign()))
    with pytest.raises(DomainError, match="updates must be a Updates; got"):
        GradientMatching().reconstruct(gradient)
    with pytest.raises(ShapeError, match="labels must have one entry a record, 3; got shape"):
        GradientMatching().reconstruct(updates, labels=[1])


SCRIPT = """
import numpy as np
from fastpriv.studies.leakage import *
records, labels = (np.arange(1, 241) * 0.6180339887498949 % 1.0).reshape(20, 12), np.arange(20) % 6
for model in (SoftmaxRegression(12, 6), MultilayerPerceptron(12, (9,), 6)):
    for noise in (None, Protection(noise="gaussian", scale=0.01), Protection(clip_example=0.2)):
        training = Training(model, learning_rate=0.1, batch_size=2, protection=noise, local_steps=2)
        updates = training.run(records, labels, rng=3)
        found = GradientMatching(restarts=2, max_evaluations=50).reconstruct(updates, rng=1)
        print(found.records.tobytes().hex(), found.labels, found.objective.hex())
"""


@pytest.mark.slow
@each_wider_variant
def test_same_bits(variant):
    check_same_lines(SCRIPT, 6, variant)
