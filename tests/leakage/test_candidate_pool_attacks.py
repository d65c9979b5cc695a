"""Attacks with a pool: the mode of the exact posterior, beside all batches one by one; membership scores."""

import itertools
import math

import numpy as np
import pytest

from fastpriv import BatchGradient, posterior
from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.leakage import (
    GradientProductAttack,
    LossAttack,
    MultilayerPerceptron,
    PoolPursuit,
    Protection,
    SoftmaxRegression,
    Training,
)
from fastpriv.studies.membership import auc

RNG = np.random.default_rng(11)
POOL, LABELS = RNG.random((80, 8)), RNG.integers(0, 4, 80)
MODEL, NETWORK = SoftmaxRegression(8, 4), MultilayerPerceptron(8, (5,), 4)


class Foreign:
    """A model with the least that is asked for."""

    n_features, n_classes, n_parameters = MODEL.n_features, MODEL.n_classes, MODEL.n_parameters
    initial, logits, losses, gradient = MODEL.initial, MODEL.logits, MODEL.losses, MODEL.gradient
    per_example_gradients = MODEL.per_example_gradients


def updates_of(model=MODEL, rng=1, records=POOL, labels=LABELS, **options):
    options = {"learning_rate": 0.5, **({} if "batch" in options else {"batch_size": 3}), **options}
    return Training(model, **options).run(records, labels, rng=rng)


def gradients(updates, records=POOL, labels=LABELS, index=0):
    return updates.model.per_example_gradients(updates.before[index], records, labels)


@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("sigma", [0.001, 0.02, 0.1, 1.0])
def test_the_mode_of_the_exact_posterior(sigma, clip):
    for seed in range(4):
        noise = Protection(noise="gaussian", scale=sigma, clip_example=clip)
        updates = updates_of(rng=seed, protection=noise)
        step = BatchGradient.softmax_regression(POOL, LABELS, updates.before[0].reshape(4, 9), 3, sigma, clip=clip)
        seen = posterior(step.column(updates.gradient(0)))
        found = PoolPursuit(POOL, LABELS).reconstruct(updates)
        assert tuple(found.members) == tuple(seen.map_index), (sigma, seed)
        assert np.array_equal(found.records, POOL[found.members])
        assert np.array_equal(found.labels, LABELS[found.members])
        miss = step.gradient(found.members).ravel() - updates.gradient(0)
        assert found.objective == pytest.approx(miss @ miss, rel=1e-9)


@pytest.mark.parametrize("sigma", [0.0, 0.005, 0.05, 0.3])
def test_poisson_batches_beside_all_batches(sigma):
    records, labels = POOL[:11], LABELS[:11]
    noise = Protection(noise="gaussian", scale=sigma) if sigma else Protection()
    for seed in range(4):
        updates = updates_of(rng=seed, records=records, labels=labels, batch="poisson", sampling_rate=0.2,
                             protection=noise)  # fmt: skip
        rows, seen = gradients(updates, records, labels), updates.gradient(0)
        best = max(
            (-((rows[list(batch)].sum(axis=0) / 2.2 - seen) ** 2).sum() / (2 * max(sigma, 1e-9) ** 2)
             + len(batch) * math.log(0.25), batch)
            for size in range(12) for batch in itertools.combinations(range(11), size))[1]  # fmt: skip
        assert tuple(PoolPursuit(records, labels, beam=32).reconstruct(updates).members) == best, (sigma, seed)


def test_poisson_batches_of_all_records():
    updates = updates_of(records=POOL[:9], labels=LABELS[:9], batch="poisson", sampling_rate=1.0)
    assert PoolPursuit(POOL[:9], LABELS[:9]).reconstruct(updates).members.tolist() == list(range(9))
    empty = updates_of(batch="poisson", sampling_rate=1e-9)
    found = PoolPursuit(POOL, LABELS).reconstruct(empty)
    assert found.members.size == 0
    assert found.records.shape == (0, 8)


@pytest.mark.parametrize("model", [MODEL, NETWORK, Foreign()], ids=["softmax", "network", "foreign"])
@pytest.mark.parametrize("options", [
    {}, {"batch_size": 7}, {"share": "weights", "local_steps": 4, "learning_rate": 0.1},
    {"protection": Protection.dp_sgd(0.3, 0.001, 3), "local_steps": 2}, {"rounds": 3},
    {"protection": Protection(clip_example=0.1, levels=1024)}, {"batch_size": 80},
], ids=str)  # fmt: skip
def test_members_are_found(model, options):
    updates = updates_of(model, rng=5, **options)
    for index in range(len(updates)):
        found = PoolPursuit(POOL, LABELS).reconstruct(updates, round=index)
        assert np.array_equal(found.members, updates.batches[index])


def test_a_wider_beam_is_no_worse():
    updates = updates_of(protection=Protection(noise="gaussian", scale=0.1), batch_size=10)
    narrow, wide = (PoolPursuit(POOL, LABELS, beam=k).reconstruct(updates).objective for k in (1, 64))
    assert wide <= narrow


def test_loss_is_lower_for_members():
    rng = np.random.default_rng(3)
    records, labels = rng.normal(size=(60, 30)), rng.integers(0, 3, 60)
    updates = updates_of(SoftmaxRegression(30, 3), records=records[:30], labels=labels[:30], rounds=200, batch="full")
    scores = LossAttack().scores(updates, records, labels)
    assert np.array_equal(scores, -updates.model.losses(updates.weights, records, labels))
    assert float(auc(scores, np.arange(60) < 30)) > 0.75


@pytest.mark.parametrize("model", [MODEL, NETWORK, Foreign()], ids=["softmax", "network", "foreign"])
def test_gradient_products_by_the_definition(model):
    for options in ({}, {"rounds": 3}, {"batch": "poisson", "sampling_rate": 0.1}):
        updates = updates_of(model, **options)
        product, cosine = np.zeros(80), np.zeros(80)
        for index in range(len(updates)):
            rows, seen = gradients(updates, index=index), updates.gradient(index)
            product += rows @ seen
            cosine += rows @ seen / np.maximum(np.linalg.norm(rows, axis=1) * np.linalg.norm(seen), 1e-300)
        np.testing.assert_allclose(GradientProductAttack().scores(updates, POOL, LABELS), product, atol=1e-14)
        np.testing.assert_allclose(GradientProductAttack("cosine").scores(updates, POOL, LABELS), cosine, atol=1e-13)
    clipped = updates_of(model, protection=Protection(clip_example=0.1))
    rows, seen = gradients(clipped), clipped.gradient(0)
    short = rows * np.minimum(1, 0.1 / np.linalg.norm(rows, axis=1))[:, None]
    np.testing.assert_allclose(GradientProductAttack().scores(clipped, POOL, LABELS), short @ seen, atol=1e-14)
    np.testing.assert_allclose(GradientProductAttack(clip=False).scores(clipped, POOL, LABELS), rows @ seen, atol=1e-14)


def test_gradient_products_are_higher_for_members():
    updates = updates_of(rng=2, batch_size=4)
    members = np.isin(np.arange(80), updates.batches[0])
    assert float(auc(GradientProductAttack().scores(updates, POOL, LABELS), members)) > 0.7


def test_names_and_equality():
    attack = PoolPursuit(POOL, LABELS)
    assert attack == PoolPursuit(POOL, LABELS)
    assert attack != PoolPursuit(POOL, LABELS, beam=2)
    assert [one.name for one in (attack, LossAttack(), GradientProductAttack("cosine"))] == [
        "pool pursuit", "loss", "gradient cosine"]  # fmt: skip


def test_errors():
    updates = updates_of()
    with pytest.raises(DomainError, match="records must be a pool of at least the 3 records of a batch; got 2"):
        PoolPursuit(POOL[:2], LABELS[:2]).reconstruct(updates)
    with pytest.raises(ShapeError, match="columns, the model's features; got"):
        PoolPursuit(POOL[:, :3], LABELS).reconstruct(updates)
    with pytest.raises(DomainError, match="The model has 4 classes, numbered from 0"):
        PoolPursuit(POOL, LABELS + 9).reconstruct(updates)
    with pytest.raises(DomainError, match="beam must be an integer of at least 1; got 0"):
        PoolPursuit(POOL, LABELS, beam=0)
    with pytest.raises(DomainError, match="form must be one of product, cosine; got"):
        GradientProductAttack("sum")
    with pytest.raises(DomainError, match="rng must be None, an integer of at least 0"):
        PoolPursuit(POOL, LABELS).reconstruct(updates, rng="a")
    for call in (LossAttack().scores, GradientProductAttack().scores):
        with pytest.raises(DomainError, match="updates must be a Updates; got"):
            call(None, POOL, LABELS)


def test_large_batches_from_weights_in_place_of_membership():
    rng = np.random.default_rng(4)
    records, labels = rng.random((150, 20)), rng.integers(0, 6, 150)
    updates = updates_of(SoftmaxRegression(20, 6), records=records, labels=labels, batch_size=20)
    assert np.array_equal(PoolPursuit(records, labels, beam=2).reconstruct(updates).members, updates.batches[0])
