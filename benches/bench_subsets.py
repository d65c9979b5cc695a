"""Which three of the 1797 digits of scikit-learn were in the batch? The posterior over all 965,534,090 batches.

``python benches/bench_subsets.py`` prints seconds a pass at one and two threads, core nanoseconds a subset, NumPy and
numba on a cut of the pool, and what a noisy gradient of softmax regression tells at several levels of noise. Without
scikit-learn records of the same shape are drawn.
"""

import importlib.util
import math
import time

import numpy as np
import pytest
from comparison.posteriors import numba_subsets, subsets_by_numpy

from fastpriv import posterior
from fastpriv.channels import rank_of_subset
from fastpriv.mechanisms import BatchGradient
from fastpriv.posteriors import sampled_subset_posterior

BATCH = (123, 777, 1500)
SIGMAS = (3.0, 1.0, 0.5, 0.3, 0.2, 0.1, 0.05, 0.03)
CUT = 400  # records of the pool where peers are run: 10,586,800 subsets


def digits():
    """Pixels between 0 and 1, labels."""
    if importlib.util.find_spec("sklearn"):
        from sklearn.datasets import load_digits

        pixels, labels = load_digits(return_X_y=True)
        return pixels / 16.0, labels
    rng = np.random.default_rng(0)
    return rng.integers(0, 17, (1797, 64)) / 16.0, rng.integers(0, 10, 1797)


def trained(pixels, labels, steps=200):
    """Weights after some steps of plain gradient descent from zero, at rate 1."""
    x, onehot = np.column_stack([pixels, np.ones(len(pixels))]), np.eye(10)[labels]
    weights = np.zeros((10, x.shape[1]))
    for _ in range(steps):
        scores = x @ weights.T
        law = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights -= (law / law.sum(axis=1, keepdims=True) - onehot).T @ x / len(x)
    return weights


def step(sigma, records=1797, weights=None):
    pixels, labels = digits()
    if weights is None:
        weights = 0.1 * np.random.default_rng(0).normal(size=(10, 65))
    return BatchGradient.softmax_regression(pixels[:records], labels[:records], weights, size=3, sigma=sigma)


def cut(size=CUT):
    mechanism = step(0.3, size)
    return mechanism.column(mechanism.sample([7, 100, size - 30], rng=1))


def test_a_cut_fastpriv(benchmark):
    benchmark.group = "posterior over 10,586,800 subsets"
    found = benchmark.pedantic(posterior, args=(cut(),), rounds=3)
    assert found.inclusion.value.sum() == pytest.approx(3, rel=1e-12)


def test_a_cut_numpy(benchmark):
    benchmark.group = "posterior over 10,586,800 subsets"
    likelihood = cut()
    entropy, js, most, least = benchmark.pedantic(subsets_by_numpy, args=(likelihood,), rounds=1)
    found = posterior(likelihood)
    numbers = [found.entropy.value, found.js.value, found.max_log_ratio.value, found.min_log_ratio.value]
    np.testing.assert_allclose([entropy, js, most, least], numbers, rtol=1e-9)


def test_a_cut_numba(benchmark):
    benchmark.group = "posterior over 10,586,800 subsets"
    likelihood, passes = cut(), numba_subsets()
    passes(likelihood.linear[:5], likelihood.pairwise[:5, :5])
    entropy, js, inclusion = benchmark.pedantic(passes, args=(likelihood.linear, likelihood.pairwise), rounds=1)
    found = posterior(likelihood)
    assert entropy == pytest.approx(found.entropy.value, rel=1e-9)
    assert js == pytest.approx(found.js.value, rel=1e-9)
    np.testing.assert_allclose(inclusion, found.inclusion.value, rtol=1e-8)


def test_sampling_fastpriv(benchmark):
    benchmark.group = "Gibbs sweeps, three of 400 records, 8 chains of 256 sweeps at 8 temperatures"
    found = benchmark.pedantic(sampled_subset_posterior, args=(cut(),), rounds=3,
                               kwargs={"sweeps": 256, "temperatures": 8, "rng": 1})
    assert found.entropy.lower <= posterior(cut()).entropy.value <= found.entropy.upper


def test_sampling_numpy(benchmark):
    benchmark.group = "Gibbs sweeps, three of 400 records, 8 chains of 256 sweeps at 8 temperatures"
    likelihood = cut()
    pairs = np.triu(likelihood.pairwise, 1)
    pairs += pairs.T

    def plain(rng, steps=8 * 256 * 8 * 3):
        members = list(rng.choice(CUT, 3, replace=False))
        total = np.zeros(CUT)
        for _ in range(steps):
            members.pop(0)
            logs = likelihood.linear + pairs[members].sum(axis=0)
            logs[members] = -np.inf
            law = np.exp(logs - logs.max())
            law /= law.sum()
            total += law
            members.append(np.searchsorted(law.cumsum(), rng.random()).clip(max=CUT - 1))
        return 3 * total / steps

    found = benchmark.pedantic(plain, args=(np.random.default_rng(1),), rounds=1)
    np.testing.assert_allclose(found, posterior(likelihood).inclusion.value, atol=0.1)


def spent(call, repetitions=1):
    best = math.inf
    for _ in range(repetitions):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def speed():
    """Seconds a pass over all of the digits, and core nanoseconds a subset of a cut beside NumPy and numba."""
    mechanism = step(0.3)
    likelihood = mechanism.column(mechanism.sample(BATCH, rng=1))
    for jobs in (1, 2):
        times = [(time.perf_counter(), time.process_time())]
        posterior(likelihood, n_jobs=jobs, progress=lambda done, of: times.append(  # noqa: B023
            (time.perf_counter(), time.process_time())))
        half = len(times) // 2
        for name, (a, b) in (("first", (times[0], times[half])), ("second", (times[half], times[-1]))):
            yield (f"{likelihood.size} subsets, {jobs} threads, {name} pass: {b[0] - a[0]:.2f} s, "
                   f"{1e9 * (b[1] - a[1]) / likelihood.size:.2f} core-ns a subset")
    small, passes = cut(), numba_subsets()
    passes(small.linear[:5], small.pairwise[:5, :5])
    peers = {"fastpriv": (lambda: posterior(small), 3), "NumPy": (lambda: subsets_by_numpy(small), 1),
             "numba, naive": (lambda: passes(small.linear, small.pairwise), 1)}
    for name, (call, repetitions) in peers.items():
        yield f"{small.size} subsets, both passes, {name}: {1e9 * spent(call, repetitions) / small.size:.1f} core-ns"


def beliefs(weights=None, sigmas=SIGMAS, rng=1, n_jobs=2):
    """What each release tells: one dict a level of noise, the noise itself the same draw throughout."""
    for sigma in sigmas:
        mechanism = step(sigma, weights=weights)
        found = posterior(mechanism.column(mechanism.sample(BATCH, rng=rng)), n_jobs=n_jobs)
        rank = rank_of_subset(BATCH, 1797)
        law = found.inclusion.value
        yield {
            "sigma": sigma, "bits": found.entropy.to("bits"), "true": float(found.probabilities(rank, rank + 1)[0]),
            "map": found.map_index, "vulnerability": found.vulnerability, "xi": found.xi, "js": found.js,
            "inclusion": law[list(BATCH)], "others": float(np.delete(law, BATCH).max()), "posterior": found,
        }


def report():
    yield from speed()
    for label, weights in (("random weights", None), ("weights after 200 steps", trained(*digits()))):
        for row in beliefs(weights):
            keys = ("true", "vulnerability", "others", "xi", "js")
            numbers = ", ".join(f"{key} {float(row[key]):.6g}" for key in keys)
            yield (f"{label}, sigma {row['sigma']:g}: {float(row['bits']):.4f} +- {row['bits'].width / 2:.0e} bits, "
                   f"most likely {row['map']}, members {np.array2string(row['inclusion'], precision=4)}, {numbers}")


if __name__ == "__main__":
    import sys

    for line in report():
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
