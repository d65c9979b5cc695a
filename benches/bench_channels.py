"""Channels: making, checking, profiles, columns and samples, beside the NumPy lines that one would write.

``python benches/bench_channels.py`` prints core milliseconds, one line a task, best of five.
"""

import time

import numpy as np
import pytest
from comparison.capacities import extremes_by_numpy, response_matrix

from fastpriv import Channel, RandomizedResponse
from fastpriv.mechanisms import GeometricMechanism, SubsetSelection, UnaryEncoding

K, EPSILON, DRAWS = 1000, 2.0, 10**6
WIDE = 20_000, 200  # secrets and releases of the dense channel


def rows():
    made = np.random.default_rng(0).dirichlet(np.ones(WIDE[1]), WIDE[0])
    made.setflags(write=False)  # nobody can write to it: no copy is needed
    return made


def numpy_check(cells):
    assert (cells >= 0).all()
    assert np.abs(cells.sum(axis=1) - 1).max() <= 1e-9


def numpy_samples(cells, secrets, rng):
    ladder = cells.cumsum(axis=1)
    return np.array([np.searchsorted(ladder[d], u) for d, u in zip(secrets, rng.random(len(secrets)), strict=True)])


def numpy_response(secrets, rng):
    lies = rng.random(len(secrets)) >= np.exp(EPSILON) / (np.exp(EPSILON) + K - 1)
    other = rng.integers(0, K - 1, len(secrets))
    return np.where(lies, other + (other >= secrets), secrets)


def numpy_bits(secrets, rng):
    half = 1 / (1 + np.exp(EPSILON / 2))
    bits = rng.random((len(secrets), 64)) < half
    bits[np.arange(len(secrets)), secrets] = rng.random(len(secrets)) < 1 - half
    return bits


def numpy_subsets(k, size, secrets, rng):
    inside = size * np.exp(EPSILON) / (size * np.exp(EPSILON) + k - size)
    found = np.empty((len(secrets), size), dtype=np.int64)
    for row, secret in enumerate(secrets):
        held = int(rng.random() < inside)
        others = rng.choice(k - 1, size - held, replace=False)
        found[row, held:] = others + (others >= secret)
        if held:
            found[row, 0] = secret
    return np.sort(found, axis=1)


def numpy_geometric(n, secrets, rng):
    noise = rng.geometric(1 - np.exp(-EPSILON), len(secrets)) - rng.geometric(1 - np.exp(-EPSILON), len(secrets))
    return np.clip(secrets + noise, 0, n - 1)


def tasks():
    """Name, fastpriv's call, NumPy's call, and what says that both answer the same."""
    cells, square = rows(), response_matrix(K, EPSILON)
    secrets = np.random.default_rng(1).integers(0, 64, DRAWS)
    few = secrets[:20_000]
    structured, subsets = RandomizedResponse(K, EPSILON), SubsetSelection(64, EPSILON, 8)
    unary, geometric = UnaryEncoding(64, EPSILON), GeometricMechanism(64, EPSILON)
    dense = Channel(square)

    def generator():
        return np.random.default_rng(2)

    def extremes(channel):
        found = channel.extreme_log_ratios()
        return found.ldp_epsilon, found.xi_plus, found.xi_minus

    def close(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-10)

    def alike(a, b):
        """The same law: means and squares of a million draws within six deviations of either."""
        a, b = (np.asarray(x, dtype=float).reshape(len(x), -1).sum(axis=1) for x in (a, b))
        assert abs(a.mean() - b.mean()) < 6 * (a.std() + b.std()) / len(a) ** 0.5

    return {
        f"check a dense channel {WIDE[0]} x {WIDE[1]}": (lambda: Channel(cells), lambda: numpy_check(cells), None),
        f"k-RR, k = {K}: LDP and MBP": (
            lambda: extremes(structured), lambda: extremes_by_numpy(response_matrix(K, EPSILON)), close),
        f"dense {K} x {K}: LDP and MBP": (lambda: extremes(dense), lambda: extremes_by_numpy(square), close),
        f"cascade of two dense {K} x {K}": (
            lambda: dense.then(dense).matrix(), lambda: square @ square, close),
        f"{DRAWS:,} releases of k-RR": (
            lambda: structured.sample(secrets, rng=2), lambda: numpy_response(secrets, generator()), alike),
        f"{DRAWS // 10:,} releases of 64 bits": (
            lambda: unary.sample(secrets[:100_000], rng=2), lambda: numpy_bits(secrets[:100_000], generator()), alike),
        f"{len(few):,} releases of 8 of 64": (
            lambda: subsets.sample(few, rng=2), lambda: numpy_subsets(64, 8, few, generator()), alike),
        f"{DRAWS:,} releases of geometric noise": (
            lambda: geometric.sample(secrets, rng=2), lambda: numpy_geometric(64, secrets, generator()), alike),
        f"{len(few):,} releases of a dense channel": (
            lambda: dense.sample(few, rng=2), lambda: numpy_samples(square, few, generator()), alike),
    }


TASKS = tasks() if __name__ == "__main__" else {}
NAMES = ("check a dense", "k-RR", "dense 1000", "cascade", "1,000,000 releases of k-RR", "100,000 releases",
         "20,000 releases of 8", "1,000,000 releases of geometric", "20,000 releases of a dense")


@pytest.fixture(scope="module")
def every():
    return tasks()


@pytest.mark.parametrize("who", ["fastpriv", "numpy"])
@pytest.mark.parametrize("name", NAMES)
def test_channels(benchmark, every, name, who):
    task = next(found for found in every if found.startswith(name))
    ours, theirs, same = every[task]
    if same is not None:
        same(ours(), theirs())
    benchmark.group = task
    benchmark.pedantic(ours if who == "fastpriv" else theirs, rounds=3)


def best(call):
    found = []
    for _ in range(5):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return 1e3 * min(found)


if __name__ == "__main__":
    for task, (ours, theirs, same) in TASKS.items():
        if same is not None:
            same(ours(), theirs())
        print(f"{task:45} fastpriv {best(ours):9.3f}  NumPy {best(theirs):9.3f}")
