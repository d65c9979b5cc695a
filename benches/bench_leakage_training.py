"""Victims of attacks on updates: gradients, rounds of training and the objective of gradient matching.

Each group has the lines of NumPy that one would write; those of gradient matching follow the same formulas.
"""

from itertools import pairwise

import numpy as np
import pytest

from fastpriv.studies.leakage import MultilayerPerceptron, Protection, SoftmaxRegression, Training

MODELS = {"softmax": (), "one hidden layer of 32": (32,)}
BATCHES = (4, 64)


def drawn(hidden, size):
    rng = np.random.default_rng(0)
    widths = (64, *hidden, 10)
    layers = [rng.normal(size=(out, inner + 1)) * 0.2 for inner, out in pairwise(widths)]
    return layers, rng.random((size, 64)), rng.integers(0, 10, size)


def model_of(hidden):
    return MultilayerPerceptron(64, hidden, 10) if hidden else SoftmaxRegression(64, 10)


def flat(matrices):
    return np.concatenate([one.ravel() for one in matrices])


def forward(layers, x):
    inputs, slopes = [np.hstack([x, np.ones((len(x), 1))])], []
    for layer in layers[:-1]:
        a = 1.0 / (1.0 + np.exp(-(inputs[-1] @ layer.T)))
        slopes.append(a * (1.0 - a))
        inputs.append(np.hstack([a, np.ones((len(x), 1))]))
    z = inputs[-1] @ layers[-1].T
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return inputs, slopes, p / p.sum(axis=1, keepdims=True)


def gradient_numpy(layers, x, y):
    inputs, slopes, e = forward(layers, x)
    e[np.arange(len(y)), y] -= 1.0
    found = []
    for index in range(len(layers) - 1, -1, -1):
        found.insert(0, e.T @ inputs[index] / len(x))
        if index:
            e = (e @ layers[index][:, :-1]) * slopes[index - 1]
    return found


def matching_numpy(layers, x, target, u):
    """The objective and its derivative by the records, for soft labels."""
    inputs, slopes, p = forward(layers, x)
    soft = np.exp(u - u.max(axis=1, keepdims=True))
    soft /= soft.sum(axis=1, keepdims=True)
    errors = [p - soft]
    for index in range(len(layers) - 1, 0, -1):
        errors.insert(0, (errors[0] @ layers[index][:, :-1]) * slopes[index - 1])
    apart = [e.T @ a / len(x) - t for e, a, t in zip(errors, inputs, target, strict=True)]
    value = sum((one * one).sum() for one in apart)
    tangents, above = [], None
    for index, layer in enumerate(layers):
        tangent = inputs[index] @ (2.0 * apart[index]).T
        if above is not None:
            tangent += above @ layer[:, :-1].T
        tangents.append(tangent)
        above = slopes[index] * tangent if index < len(slopes) else None
    b = p * (tangents[-1] - (p * tangents[-1]).sum(axis=1, keepdims=True))
    for index in range(len(layers) - 1, -1, -1):
        down = errors[index] @ (2.0 * apart[index])[:, :-1] + b @ layers[index][:, :-1]
        if index:
            curvature = slopes[index - 1] * (1.0 - 2.0 * inputs[index][:, :-1])
            b = slopes[index - 1] * down + curvature * tangents[index - 1] * (errors[index] @ layers[index][:, :-1])
    return value, down / len(x)


@pytest.mark.parametrize("size", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_gradient(benchmark, name, size):
    benchmark.group = f"mean gradient, {name}, batch of {size}"
    layers, x, y = drawn(MODELS[name], size)
    model, w = model_of(MODELS[name]), flat(layers)
    found = benchmark(lambda: model.gradient(w, x, y))
    np.testing.assert_allclose(found, flat(gradient_numpy(layers, x, y)), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("size", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_gradient_numpy(benchmark, name, size):
    benchmark.group = f"mean gradient, {name}, batch of {size}"
    layers, x, y = drawn(MODELS[name], size)
    benchmark(lambda: gradient_numpy(layers, x, y))


@pytest.mark.parametrize("size", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_matching(benchmark, name, size):
    benchmark.group = f"gradient matching with its derivatives, {name}, batch of {size}"
    layers, x, y = drawn(MODELS[name], size)
    model, w, u = model_of(MODELS[name]), flat(layers), np.random.default_rng(1).normal(size=(size, 10))
    target = gradient_numpy(layers, x[::-1], y)
    value, by_records, _ = benchmark(lambda: model.matching(w, x, u, flat(target)))
    expected = matching_numpy(layers, x, target, u)
    assert value == pytest.approx(expected[0], rel=1e-10)
    np.testing.assert_allclose(by_records, expected[1], rtol=1e-8, atol=1e-13)


@pytest.mark.parametrize("size", BATCHES)
@pytest.mark.parametrize("name", MODELS)
def test_matching_numpy(benchmark, name, size):
    benchmark.group = f"gradient matching with its derivatives, {name}, batch of {size}"
    layers, x, y = drawn(MODELS[name], size)
    u, target = np.random.default_rng(1).normal(size=(size, 10)), gradient_numpy(layers, x[::-1], y)
    benchmark(lambda: matching_numpy(layers, x, target, u))


def rounds_numpy(layers, x, y, batches):
    """Rounds of 10 steps with examples clipped to 1, on given batches."""
    layers = [one.copy() for one in layers]
    for members in batches:
        for _ in range(10):
            inputs, slopes, e = forward(layers, x[members])
            e[np.arange(len(members)), y[members]] -= 1.0
            errors = [e]
            for index in range(len(layers) - 1, 0, -1):
                errors.insert(0, (errors[0] @ layers[index][:, :-1]) * slopes[index - 1])
            square = sum((a * a).sum(axis=1) * (b * b).sum(axis=1) for a, b in zip(errors, inputs, strict=True))
            scale = np.minimum(1.0, 1.0 / np.sqrt(square))[:, None]
            for layer, a, b in zip(layers, errors, inputs, strict=True):
                layer -= 0.1 * ((a * scale).T @ b) / len(members)
    return flat(layers)


def training_of(hidden):
    return Training(model_of(hidden), rounds=50, local_steps=10, learning_rate=0.1, batch_size=32, share="weights",
                    protection=Protection(clip_example=1.0))


@pytest.mark.parametrize("name", MODELS)
def test_rounds(benchmark, name):
    benchmark.group = f"50 rounds of 10 clipped steps on 32 of 1,797 records, {name}"
    layers, x, y = drawn(MODELS[name], 1797)
    run, w = training_of(MODELS[name]), flat(layers)
    found = benchmark(lambda: run.run(x, y, rng=1, weights=w))
    np.testing.assert_allclose(found.weights, rounds_numpy(layers, x, y, found.batches), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_rounds_numpy(benchmark, name):
    benchmark.group = f"50 rounds of 10 clipped steps on 32 of 1,797 records, {name}"
    layers, x, y = drawn(MODELS[name], 1797)
    batches = training_of(MODELS[name]).run(x, y, rng=1, weights=flat(layers)).batches
    benchmark(lambda: rounds_numpy(layers, x, y, batches))
