"""Attacks on a gradient of four digits, beside NumPy with SciPy, and PyTorch where it is installed.

``python benches/bench_gradient_inversion.py`` prints milliseconds of an attack and the error of its records, by noise:
in the box alone, and with the search in the space of the gradient's rows first.
"""

import os
import time
from functools import cache

import numpy as np
import pytest

from fastpriv.kernels import instruction_sets
from fastpriv.studies.kernels import _gradient_matching
from fastpriv.studies.leakage import (
    GradientMatching,
    MultilayerPerceptron,
    Protection,
    SoftmaxRegression,
    Training,
    invert_single_record,
)
from fastpriv.studies.leakage.gradient_inversion import _orthonormal_rows

SIZE, CLASSES, FEATURES = 4, 10, 64


@cache
def digits():
    """The digits of scikit-learn, or as many random records."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        rng = np.random.default_rng(1)
        return rng.random((1797, FEATURES)), rng.integers(0, CLASSES, 1797)
    records, labels = load_digits(return_X_y=True)
    return records / 16.0, labels


@cache
def updates_of(sigma, seed=0, steps=0, size=SIZE, hidden=()):
    records, labels = digits()
    model = MultilayerPerceptron(FEATURES, hidden, CLASSES, "tanh") if hidden else SoftmaxRegression(FEATURES, CLASSES)
    weights = model.initial(seed)
    for step in range(steps):
        batch = np.random.default_rng([seed, step]).integers(0, len(records), 32)
        weights = weights - model.gradient(weights, records[batch], labels[batch])
    noise = Protection(noise="gaussian", scale=sigma) if sigma else None
    return Training(model, learning_rate=0.5, batch_size=size, protection=noise).run(records, labels, rng=seed,
                                                                                  weights=weights)


def error(found, updates):
    from scipy.optimize import linear_sum_assignment

    truth = digits()[0][updates.batches[0]]
    squares = ((found[:, None] - truth) ** 2).mean(axis=2)
    return float(squares[linear_sum_assignment(squares)].mean())


def with_scipy(updates, labels, start):
    """The attack as one would write it: the analytic gradient in NumPy, L-BFGS-B of SciPy."""
    from scipy.optimize import minimize

    w, target = (a.reshape(CLASSES, -1) for a in (updates.before[0], updates.gradient(0)))
    one_hot = np.eye(CLASSES)[labels]

    def objective(x):
        rows = np.c_[x.reshape(SIZE, -1), np.ones(SIZE)]
        p = np.exp(rows @ w.T - (rows @ w.T).max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        miss = (p - one_hot).T @ rows / SIZE - target
        a = 2 / SIZE * rows @ miss.T
        slope = 2 / SIZE * (p - one_hot) @ miss + p * (a - (p * a).sum(axis=1, keepdims=True)) @ w
        return (miss * miss).sum(), slope[:, :-1].ravel()

    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, 1)] * start.size,
                     options={"maxiter": 400, "maxfun": 400, "ftol": 1e-9})
    return found.x.reshape(start.shape)


def with_torch(updates, labels, start):
    """The same with PyTorch's automatic derivatives and its L-BFGS, as in the code of the papers."""
    import torch

    w, target = (torch.tensor(a.reshape(CLASSES, -1)) for a in (updates.before[0], updates.gradient(0)))
    w.requires_grad_(True)
    x, y = torch.tensor(start, requires_grad=True), torch.tensor(labels)
    search = torch.optim.LBFGS([x], max_iter=400, line_search_fn="strong_wolfe")

    def closure():
        search.zero_grad()
        loss = torch.nn.functional.cross_entropy(x @ w[:, :-1].T + w[:, -1], y)
        (gradient,) = torch.autograd.grad(loss, w, create_graph=True)
        value = ((gradient - target) ** 2).sum()
        value.backward()
        return value

    search.step(closure)
    return x.detach().numpy()


PEERS = {"numpy and scipy": with_scipy, "torch": with_torch}


@pytest.mark.parametrize("sigma", [0.0, 0.01])
@pytest.mark.parametrize("peer", ["fastpriv", *PEERS])
def test_batch_of_four(benchmark, sigma, peer):
    benchmark.group = f"gradient matching, 4 digits, noise {sigma:g}"
    if peer == "torch":
        pytest.importorskip("torch")
    updates = updates_of(sigma)
    labels = digits()[1][updates.batches[0]]
    start = np.random.default_rng(1).random((SIZE, FEATURES))
    attack = GradientMatching(restarts=1)
    ours = attack.reconstruct(updates, rng=1, labels=labels).records
    if peer == "fastpriv":
        assert error(ours, updates) < (1e-12 if sigma == 0 else 0.02)
        benchmark(attack.reconstruct, updates, rng=1, labels=labels)
        return
    assert error(PEERS[peer](updates, labels, start), updates) > 0.5 * error(ours, updates)
    benchmark.pedantic(PEERS[peer], args=(updates, labels, start), rounds=3, iterations=1)


@pytest.mark.parametrize("peer", ["fastpriv", "numpy"])
def test_objective(benchmark, peer):
    benchmark.group = "objective of gradient matching and its derivatives, 4 digits"
    updates = updates_of(0.0)
    labels = np.eye(CLASSES)[digits()[1][updates.batches[0]]]
    w, target = (a.reshape(CLASSES, -1) for a in (updates.before[0], updates.gradient(0)))
    x = np.random.default_rng(1).random((SIZE, FEATURES))
    matching = _gradient_matching.Matching(np.full(SIZE, 0.25), w, target)

    def plain():
        rows = np.c_[x, np.ones(SIZE)]
        p = np.exp(rows @ w.T - (rows @ w.T).max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        miss = (p - labels).T @ rows / SIZE - target
        a = 2 / SIZE * rows @ miss.T
        return (miss * miss).sum(), 2 / SIZE * (p - labels) @ miss + p * (a - (p * a).sum(1, keepdims=True)) @ w

    ours = matching.value(x, labels)
    assert abs(ours[0] - plain()[0]) < 1e-12
    assert np.abs(ours[1] - plain()[1][:, :-1]).max() < 1e-12
    benchmark((lambda: matching.value(x, labels)) if peer == "fastpriv" else plain)


def test_single_record(benchmark):
    benchmark.group = "closed form, one digit"
    updates = updates_of(0.0, size=1)
    assert error(invert_single_record(updates.model, updates.gradient(0)).records, updates) < 1e-24
    benchmark(invert_single_record, updates.model, updates.gradient(0))


def main():
    print(f"instruction set {os.environ.get('FASTPRIV_ISA', instruction_sets.of_this_machine()[-1])}")
    for hidden in ((), (32,)):
        for steps in (0, 100):
            for sigma in (0.0, 0.001, 0.01):
                rows = []
                for seed in range(20):
                    updates = updates_of(sigma, seed, steps, SIZE, hidden)
                    start = time.thread_time()
                    found = GradientMatching().reconstruct(updates, rng=seed)
                    rows.append((1e3 * (time.thread_time() - start), error(found.records, updates)))
                took, missed = np.array(rows).T
                print(f"hidden {hidden!s:6} steps {steps:4d} noise {sigma:<6g} {took.mean():7.2f} ms, most "
                      f"{took.max():7.2f}, squared error: median {np.median(missed):.1e}, mean {missed.mean():.1e}")
    print("one search without noise: in the box, and in the space of the rows")
    for steps in (0, 100):
        boxed, reduced = [], []
        for seed in range(20):
            updates = updates_of(0.0, seed, steps)
            labels = np.eye(CLASSES)[digits()[1][updates.batches[0]]]
            w, target = (a.reshape(CLASSES, -1) for a in (updates.before[0], updates.gradient(0)))
            x, shares = np.random.default_rng(seed).random((SIZE, FEATURES)), np.full(SIZE, 0.25)
            start = time.thread_time()
            matching = _gradient_matching.Matching(shares, w, target)
            found = matching.search(x, labels, np.zeros(FEATURES), 0.0, 0.0, 1.0, 1e-12, 1e-26, 2000)[0]
            boxed.append((1e3 * (time.thread_time() - start), error(found, updates)))
            start = time.thread_time()
            basis = _orthonormal_rows(target[:, :-1], SIZE)
            small = [np.c_[a[:, :-1] @ basis.T, a[:, -1]] for a in (w, target)]
            matching = _gradient_matching.Matching(shares, *small)
            found = matching.descend(x @ basis.T, labels, np.zeros(len(basis)), 0.0, 1e-26, 100)[0] @ basis
            reduced.append((1e3 * (time.thread_time() - start), error(found, updates)))
        for name, rows in (("box", boxed), ("rows", reduced)):
            took, missed = np.array(rows).T
            print(f"steps {steps:4d} {name:5} {took.mean():7.3f} ms, below 1e-12 in {np.mean(missed < 1e-12):.0%}")


if __name__ == "__main__":
    main()
