"""Posteriors of membership: all subsets with bounds, beside the line of NumPy; Gibbs sweeps beside theirs.

``python benches/bench_membership_posterior.py`` prints milliseconds of the largest enumerations at one and two threads.
"""

import time

import numpy as np
import pytest
from comparison.posteriors import NOISES, membership_by_numpy, membership_model

from fastpriv.kernels import instruction_sets
from fastpriv.studies.membership import (
    membership_posterior,
)

ATTRIBUTES = 64


@pytest.mark.parametrize("kind", NOISES)
@pytest.mark.parametrize("peer", ["fastpriv", "numpy"])
def test_enumeration(benchmark, kind, peer):
    benchmark.group = f"posterior of 18 people, {ATTRIBUTES} attributes, {kind}"
    one, released = membership_model(18, kind)
    found = membership_posterior(one, released)
    assert np.allclose(found.probabilities.value, membership_by_numpy(one, released, kind), atol=1e-9)
    if peer == "numpy":
        benchmark.pedantic(membership_by_numpy, (one, released, kind), rounds=1)
    else:
        benchmark(membership_posterior, one, released)


@pytest.mark.parametrize("kind", NOISES)
def test_enumeration_of_twenty(benchmark, kind):
    benchmark.group = "posterior of 20 people, 64 attributes"
    one, released = membership_model(20, kind)
    assert membership_posterior(one, released).entropy.width < 1e-11
    benchmark(membership_posterior, one, released)


def test_many_releases(benchmark):
    benchmark.group = "posteriors of 1000 releases of 10 people"
    one, _ = membership_model(10, "gaussian")
    released = one.simulate(1000, rng=1).released
    assert membership_posterior(one, released).probabilities.shape == (1000, 10)
    benchmark.pedantic(membership_posterior, (one, released), rounds=3)


def sweeps_with_numpy(d, released, sigma, sweeps, rng):
    """Gibbs sweeps with running G b, G = <r - d_k, r - d_l>."""
    x = released - d
    gram = x @ x.T
    b = rng.random(len(d)) < 0.5
    h = gram @ b
    q, n = b @ h, b.sum()
    for _ in range(sweeps):
        logistic = rng.logistic(size=len(d))
        for k in range(len(d)):
            sign = -1 if b[k] else 1
            new = q + sign * 2 * h[k] + gram[k, k]
            change = q / (2 * n * n * sigma**2) - new / (2 * (n + sign) ** 2 * sigma**2)
            if (sign * change > logistic[k]) != b[k]:
                b[k], n, q = not b[k], n + sign, new
                h += sign * gram[k]
    return b


@pytest.mark.parametrize("peer", ["fastpriv", "numpy"])
def test_sweeps(benchmark, peer):
    benchmark.group = "Gibbs sweeps of 800 people, 5000 attributes: 6000 of fastpriv, 6 of NumPy"
    one, released = membership_model(800, "gaussian", 5000)
    if peer == "numpy":
        d, rng = one.panel.to_array().astype(float), np.random.default_rng(1)
        benchmark.pedantic(sweeps_with_numpy, (d, released, 0.3, 6, rng), rounds=1)
        return
    found = membership_posterior(one, released, sweeps=6000, chains=1, rng=1)
    assert np.all(found.probabilities.width < 0.2)
    benchmark.pedantic(membership_posterior, (one, released), {"sweeps": 6000, "chains": 1, "rng": 1}, rounds=1)


if __name__ == "__main__":
    print(instruction_sets.of_this_machine()[-1])
    for people, kind, n_jobs in [(20, "gaussian", 1), (20, "laplace", 1), (24, "gaussian", 2), (24, "laplace", 2)]:
        one, released = membership_model(people, kind)
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            membership_posterior(one, released, n_jobs=n_jobs)
            seconds.append(time.perf_counter() - start)
        print(f"{people} people, {kind}, {n_jobs} threads: {1e3 * min(seconds):.1f} ms")
