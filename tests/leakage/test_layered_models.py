"""Losses, gradients, clipping, descent and gradient matching of layered models against high-precision arithmetic."""

import math
import pickle

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import BatchGradient
from fastpriv.studies.kernels import _layered_model
from fastpriv.studies.leakage import MultilayerPerceptron, SoftmaxRegression, TrainableModel
from kernels.variants import check_same_lines, each_wider_variant
from oracles import layered_models as oracle

MODELS = [
    SoftmaxRegression(3, 2), SoftmaxRegression(9, 11), MultilayerPerceptron(3, [4], 2, "sigmoid"),
    MultilayerPerceptron(8, [9, 3], 4, "tanh"), MultilayerPerceptron(2, [1, 17], 3, "softplus"),
    MultilayerPerceptron(5, [6], 3, "relu"),
]
SIZES = [1.0, 1e-8, 30.0, 700.0]  # of the weights: saturated units and underflowing probabilities at the end
PROGRAM = """
import numpy as np
from fastpriv.studies.leakage import MultilayerPerceptron, Protection, SoftmaxRegression, Training
rng = np.random.default_rng(5)
for model in (SoftmaxRegression(13, 5), *(MultilayerPerceptron(13, (9, 21), 5, name)
                                          for name in ("sigmoid", "tanh", "softplus", "relu"))):
    for size in (1, 6, 37):
        w, x, y = model.initial(rng), rng.standard_normal((size, 13)), rng.integers(0, 5, size)
        u, t = rng.standard_normal((size, 5)), rng.standard_normal(model.n_parameters)
        found = [model.logits(w, x), model.losses(w, x, y), model.gradient(w, x, y),
                 model.per_example_gradients(w, x, y), *model.matching(w, x, u, t), *model.matching(w, x, y, t)[:2]]
        training = Training(model, rounds=3, local_steps=2, learning_rate=0.3, batch="poisson", rate=0.5,
                            share="weights", protection=Protection(clip_example=0.5, noise="gaussian", scale=0.1,
                                                                   keep_fraction=0.5, levels=9))
        found.append(training.run(x, y, rng=1).shared)
        print([np.asarray(one).tobytes().hex() for one in found])
"""


def drawn(model, size, records, seed=1):
    rng = np.random.default_rng(seed)
    w = model.initial(rng) * size + 0.1 * size * rng.standard_normal(model.n_parameters)
    return w, rng.standard_normal((records, model.n_features)), rng.integers(0, model.n_classes, records), rng


def worst(found, truth):
    """The largest difference, relative to the largest number of the truth."""
    truth = np.array([float(one) for one in truth]) if not isinstance(truth, np.ndarray) else truth
    return np.max(np.abs(np.ravel(found) - truth)) / max(np.max(np.abs(truth)), 1e-300)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_losses_and_gradients(model, size):
    w, x, y, _ = drawn(model, size, 3)
    with mp.workdps(oracle.DIGITS if size <= 1.0 else 400):  # 1 - p keeps its digits down to the least double
        layers = oracle.matrices(model.widths, w)
        logits = [one for record in x for one in oracle.outputs(layers, model.activation, record)[-1][1]]
        losses = [oracle.loss(layers, model.activation, *one) for one in zip(x, y, strict=True)]
        rows = [oracle.gradient(layers, model.activation, *one) for one in zip(x, y, strict=True)]
        mean = [mp.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    # logits are off by their rounding, and exponentials of them relatively by as much
    allowed = 1e-14 * max(1.0, *(abs(float(one)) for one in logits))
    assert worst(model.logits(w, x), logits) < 1e-14
    assert np.max(np.abs(model.losses(w, x, y) - [float(one) for one in losses])) < allowed * 10
    assert worst(model.gradient(w, x, y), mean) < allowed * 10
    for found, row in zip(model.per_example_gradients(w, x, y), rows, strict=True):
        assert worst(found, row) < allowed * 10


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_gradient_matching(model):
    w, x, y, rng = drawn(model, 1.0, 3)
    u, target = rng.standard_normal((3, model.n_classes)), 0.1 * rng.standard_normal(model.n_parameters)
    value, by_records, by_logits = model.matching(w, x, u, target)
    hard = model.matching(w, x, y, target)
    rows = [list(map(mpf, row)) for row in x]
    with mp.workdps(oracle.DIGITS):
        layers, t = oracle.matrices(model.widths, w), [mpf(one) for one in target]
        logits = [list(map(mpf, row)) for row in u]
        truth = oracle.matching(layers, model.activation, rows, logits, t)
        for i, j in ((0, 0), (1, model.n_features - 1), (2, model.n_features // 2)):
            one = oracle.derivative(lambda z: oracle.matching(layers, model.activation, z, logits, t), rows, i, j)
            assert abs(by_records[i, j] - float(one)) < 1e-14 * max(1.0, float(truth)), (i, j)
        for i, j in ((0, 0), (2, model.n_classes - 1)):
            one = oracle.derivative(lambda z: oracle.matching(layers, model.activation, rows, z, t), logits, i, j)
            assert abs(by_logits[i, j] - float(one)) < 1e-14 * max(1.0, float(truth)), (i, j)
    assert value == pytest.approx(float(truth), rel=1e-14)
    # logits that are almost certain are the classes themselves
    certain = model.matching(w, x, np.where(np.arange(model.n_classes) == y[:, None], 800.0, 0.0), target)
    assert hard[2] is None
    assert hard[0] == pytest.approx(certain[0], rel=1e-13)
    np.testing.assert_allclose(hard[1], certain[1], rtol=1e-12, atol=1e-15)


def test_the_gradient_itself_is_a_match():
    for model in MODELS:
        w, x, y, _ = drawn(model, 1.0, 4)
        value, by_records, _ = model.matching(w, x, y, model.gradient(w, x, y))
        assert value < 1e-30
        assert np.max(np.abs(by_records)) < 1e-14


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_clipped_descent_by_the_definition(model):
    w, x, y, _ = drawn(model, 1.0, 70)
    moved, total = w.copy(), 0.0
    for _ in range(3):
        rows = model.per_example_gradients(moved, x, y)
        length = np.linalg.norm(rows, axis=1)
        step = (rows * np.minimum(1.0, 0.3 / length)[:, None]).sum(axis=0) / 50.0
        moved, total = moved - 0.2 * step, total + step
        assert (length > 0.3).any()
    found = model.descent(w, x, y, clip=0.3, size=50.0, steps=3, rate=0.2)
    np.testing.assert_allclose(found, total, rtol=1e-11, atol=1e-13)
    assert model.descent(w, x[:0], y[:0], clip=math.inf, size=5.0, steps=2, rate=0.2).tolist() == [0.0] * w.size


def test_weights_are_those_of_batch_gradients():
    model = SoftmaxRegression(4, 3)
    w, x, y, _ = drawn(model, 1.0, 6)
    step = BatchGradient.softmax_regression(x, y, w.reshape(3, 5), size=6, sigma=1.0)
    np.testing.assert_allclose(model.gradient(w, x, y), step.gradient(np.arange(6)).ravel(), rtol=1e-13, atol=1e-15)


@pytest.mark.slow
@each_wider_variant
def test_same_bits_on_every_instruction_set(variant):
    check_same_lines(PROGRAM, 15, variant)


def test_bits_do_not_depend_on_how_records_are_cut():
    model = MODELS[3]
    w, x, y, _ = drawn(model, 1.0, 100)
    np.testing.assert_array_equal(model.per_example_gradients(w, x, y)[61], model.gradient(w, x[61:62], y[61:62]))
    np.testing.assert_array_equal(model.logits(w, x)[40:], model.logits(w, x[40:]))


def test_not_a_number_stays():
    model = MODELS[3]
    w, x, y, _ = drawn(model, 1.0, 5)
    w[3] = np.nan
    found = model.descent(w, x, y, clip=1.0, size=5.0, steps=1, rate=0.0)
    assert np.isnan(found).any()


def test_models_are_values():
    for model in MODELS:
        again = pickle.loads(pickle.dumps(model))
        assert again == model
        assert hash(again) == hash(model)
        assert isinstance(again, TrainableModel)
        assert eval(repr(model)) == model
    assert MultilayerPerceptron(3, [4], 2) != MultilayerPerceptron(3, [4], 2, "relu")
    start = MODELS[3].initial(1)
    np.testing.assert_array_equal(start, MODELS[3].initial(1))
    assert (start.reshape(-1)[8::9][:9] == 0.0).all()  # intercepts of the first layer
    assert start.any()


def test_errors():
    model = SoftmaxRegression(2, 3)
    w, x = model.initial(1), [[1.0, 2.0]]
    with pytest.raises(ShapeError, match=r"weights must be one vector of the model's 9 weights; got shape \(8,\)"):
        model.logits(w[:8], x)
    with pytest.raises(ShapeError, match=r"target must be one vector of the model's 9 weights; got shape \(1,\)"):
        model.matching(w, x, [0], [1.0])
    with pytest.raises(ShapeError, match="records must be a table of at least one row and 2 columns, the model"):
        model.gradient(w, [[1.0]], [0])
    with pytest.raises(DomainError, match="labels must be integers from 0 to 2; got 3 .*The model has 3 classes"):
        model.losses(w, x, [3])
    with pytest.raises(ShapeError, match=r"labels must have one entry a record, 1; got shape \(2,\)"):
        model.losses(w, x, [0, 1])
    with pytest.raises(ShapeError, match=r"labels must be logits of shape \(1, 3\), or one class a record; got shape"):
        model.matching(w, x, [[0.0, 1.0]], w)
    with pytest.raises(DomainError, match=r"records must be finite numbers; got nan at index \(0, 1\)"):
        model.gradient(w, [[1.0, np.nan]], [0])
    with pytest.raises(ShapeError, match="hidden must be the widths of 1 to 15 layers; got 0. Take SoftmaxRegression"):
        MultilayerPerceptron(2, [], 3)
    with pytest.raises(ShapeError, match="hidden must be the widths of 1 to 15 layers; got 16"):
        MultilayerPerceptron(2, [1] * 16, 3)
    with pytest.raises(DomainError, match="activation must be one of"):
        MultilayerPerceptron(2, [1], 3, "step")
    for call in (lambda: _layered_model.logits((2, 3), 0, w, np.zeros((1, 3))),
                 lambda: _layered_model.summed_gradient((2, 3), 0, w[:3].copy(), np.zeros((1, 2)),
                                                       np.zeros(1, dtype=np.int64), 1.0, 1.0),
                 lambda: _layered_model.losses(np.zeros((1, 2)), np.zeros(2, dtype=np.int64)),
                 lambda: _layered_model.matching((2, 3), 0, w, np.zeros((1, 2)), np.zeros(2, dtype=np.int64), None, w),
                 lambda: _layered_model.matching((2, 3), 0, w, np.zeros((0, 2)), None, None, w)):
        with pytest.raises(ValueError, match="must"):
            call()
