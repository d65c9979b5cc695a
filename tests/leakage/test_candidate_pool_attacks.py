"""The attack with a pool: the mode of the exact posterior, also of large, clipped and Poisson batches."""

import numpy as np
import pytest

from fastpriv import BatchGradient, posterior
from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.leakage import (
    MultilayerPerceptron,
    PoolPursuit,
    Protection,
    SoftmaxRegression,
    Training,
)

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


def test_poisson_batches_of_a_known_size():
    updates = updates_of(rng=2, batch="poisson", sampling_rate=0.05)
    assert np.array_equal(PoolPursuit(POOL, LABELS).reconstruct(updates).members, updates.batches[0])
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


def test_equality():
    attack = PoolPursuit(POOL, LABELS)
    assert attack == PoolPursuit(POOL, LABELS)
    assert attack != PoolPursuit(POOL, LABELS, beam=2)


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
    with pytest.raises(DomainError, match="rng must be None, an integer of at least 0"):
        PoolPursuit(POOL, LABELS).reconstruct(updates, rng="a")
    with pytest.raises(DomainError, match="updates must be a Updates; got"):
        PoolPursuit(POOL, LABELS).reconstruct(None)


def test_large_batches_from_weights_in_place_of_membership():
    rng = np.random.default_rng(4)
    records, labels = rng.random((150, 20)), rng.integers(0, 6, 150)
    updates = updates_of(SoftmaxRegression(20, 6), records=records, labels=labels, batch_size=20)
    assert np.array_equal(PoolPursuit(records, labels, beam=2).reconstruct(updates).members, updates.batches[0])
