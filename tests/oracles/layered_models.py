"""Truth about layered models in mpmath: losses, gradients and gradient matching from their definitions; slow, readable.

A model is a list of matrices, each with the intercept in its last column. Derivatives of gradients come from symmetric
differences at 60 digits with a step of 1e-20, so that they are right to about 1e-38.
"""

from itertools import pairwise

from mpmath import mp, mpf

DIGITS = 60
STEP = mpf(10) ** -20


def activation(name, z):
    if name == "sigmoid":
        return 1 / (1 + mp.exp(-z))
    if name == "tanh":
        return mp.tanh(z)
    if name == "softplus":
        return mp.log(1 + mp.exp(z))
    return max(z, mpf(0))


def slope(name, z):
    if name == "sigmoid":
        return 1 / (2 + mp.exp(z) + mp.exp(-z))
    if name == "tanh":
        return 1 / mp.cosh(z) ** 2
    if name == "softplus":
        return 1 / (1 + mp.exp(-z))
    return mpf(1) if z > 0 else mpf(0)


def matrices(widths, weights):
    """The matrices of flat weights."""
    numbers, found = iter(weights), []
    for inner, out in pairwise(widths):
        found.append([[mpf(float(next(numbers))) for _ in range(inner + 1)] for _ in range(out)])
    return found


def outputs(layers, name, record):
    """z of every layer, and its inputs with a 1 at their end."""
    inputs, found = [*(mpf(x) for x in record), mpf(1)], []
    for matrix in layers:
        z = [mp.fdot(row, inputs) for row in matrix]
        found.append((inputs, z))
        inputs = [*(activation(name, one) for one in z), mpf(1)]
    return found


def loss(layers, name, record, label):
    z = outputs(layers, name, record)[-1][1]
    return mp.log(mp.fsum(mp.exp(one) for one in z)) - z[label]


def gradient(layers, name, record, label):
    """Flat gradient of one record by the chain rule; ``label`` is a class, or a list of probabilities."""
    passed = outputs(layers, name, record)
    total = mp.fsum(mp.exp(one) for one in passed[-1][1])
    target = label if isinstance(label, list) else [int(j == label) for j in range(len(passed[-1][1]))]
    errors = [mp.exp(one) / total - y for one, y in zip(passed[-1][1], target, strict=True)]
    flat = []
    for index in range(len(layers) - 1, -1, -1):
        inputs = passed[index][0]
        flat = [e * a for e in errors for a in inputs] + flat
        if index:
            back = [mp.fdot(errors, [row[i] for row in layers[index]]) for i in range(len(inputs) - 1)]
            errors = [slope(name, z) * b for z, b in zip(passed[index - 1][1], back, strict=True)]
    return flat


def softmax(logits):
    total = mp.fsum(mp.exp(one) for one in logits)
    return [mp.exp(one) / total for one in logits]


def matching(layers, name, records, logits, target):
    """|mean gradient - target|^2."""
    rows = [gradient(layers, name, x, softmax(u)) for x, u in zip(records, logits, strict=True)]
    means = [mp.fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return mp.fsum((one - t) ** 2 for one, t in zip(means, target, strict=True))


def derivative(function, table, i, j):
    """Symmetric difference of a function of a table by one entry."""
    moved = [list(row) for row in table]
    moved[i][j] = table[i][j] + STEP
    above = function(moved)
    moved[i][j] = table[i][j] - STEP
    return (above - function(moved)) / (2 * STEP)
