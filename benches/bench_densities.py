"""The loops around a person's own functions, beside the bare function in a loop of its own and the NumPy line.

Run: pytest benches/bench_densities.py
"""

import math

import numba
import numpy as np
import pytest

from fastpriv import Density

D, N = 16, 4088
NORMALISER = -0.5 * D * math.log(2 * math.pi)
WORDS = np.arange(4, dtype=np.uint64)
TILE = np.random.default_rng(0).standard_normal((D, N))


@numba.njit
def log_density(x):
    total = 0.0
    for j in range(x.shape[0]):
        total += x[j] * x[j]
    return NORMALISER - 0.5 * total


@numba.njit
def sampler(rng, x):
    for j in range(x.shape[0]):
        x[j] = rng.standard_normal()


@numba.njit
def bare_loop(rows, out):
    for k in range(out.size):
        out[k] = log_density(rows[k])


def plain(x):
    return NORMALISER - 0.5 * float(x @ x)


def vectorized(x):
    return NORMALISER - 0.5 * np.einsum("ij,ij->i", x, x)


LAWS = {
    "jitted": Density(log_density, sampler, dimension=D),
    "vectorized": Density(vectorized, lambda rng, n: rng.standard_normal((n, D)), dimension=D, vectorized=True),
    "plain": Density(plain, dimension=D),
}


@pytest.mark.benchmark(group="log density of 4088 points, d = 16")
def test_bare_loop(benchmark):
    rows, out = np.ascontiguousarray(TILE.T), np.empty(N)
    benchmark(bare_loop, rows, out)


@pytest.mark.parametrize("form", list(LAWS))
@pytest.mark.benchmark(group="log density of 4088 points, d = 16")
def test_evaluate(benchmark, form):
    np.testing.assert_allclose(LAWS[form].evaluate(TILE), vectorized(TILE.T), rtol=1e-13)
    benchmark(LAWS[form].evaluate, TILE)


@pytest.mark.benchmark(group="4088 normal draws, d = 16")
def test_numpy_draws(benchmark):
    benchmark(lambda: np.random.default_rng(WORDS).standard_normal((N, D)))


@pytest.mark.parametrize("form", ["jitted", "vectorized"])
@pytest.mark.benchmark(group="4088 normal draws, d = 16")
def test_draw(benchmark, form):
    want = np.random.default_rng(WORDS).standard_normal((N, D)).T
    np.testing.assert_array_equal(LAWS[form].draw(WORDS, N), want)
    benchmark(LAWS[form].draw, WORDS, N)
