"""Random and Sobol normals, placed samples, beside what NumPy, SciPy and torch give; 65,536 numbers a call, one thread.

Every row asserts its law or its answer first. A row's time over 65,536 is nanoseconds a normal.
"""

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import qmc

from fastpriv.base import random_streams
from fastpriv.kernels import _draw
from fastpriv.sampling import sobol

SHAPES = {"d=1": (1, 65536), "d=16": (16, 4096), "d=1000": (1000, 64)}
ROOT = random_streams.root(0)
WORDS = random_streams.stream_words(ROOT, (0,), _draw.SEED_WORDS)


def fastpriv_random(d, n):
    out = np.empty((d, n))
    return lambda: _draw.normals(WORDS, False, out) or out


def fastpriv_pairs(d, n):
    out = np.empty((d, n))
    return lambda: _draw.normals(WORDS, True, out) or out


def fastpriv_sobol(d, n):
    out, (columns, shifts) = np.empty((d, n)), sobol.scrambled(d, ROOT, (1,))
    return lambda: _draw.sobol_normals(columns, shifts, 0, out) or out


def numpy_generator(d, n):
    rng, out = np.random.default_rng(0), np.empty((d, n))
    return lambda: rng.standard_normal(out=out)


def numpy_sfc64(d, n):
    rng, out = np.random.Generator(np.random.SFC64(0)), np.empty((d, n))
    return lambda: rng.standard_normal(out=out)


def numpy_ndtri(d, n):
    rng = np.random.default_rng(0)
    return lambda: ndtri(rng.random((d, n)))


def scipy_sobol(d, n):
    sequence = qmc.Sobol(d, rng=np.random.default_rng(0))
    sequence.fast_forward(1)
    return lambda: ndtri(sequence.random(n).T)


def torch_normal(d, n):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    return lambda: torch.randn((d, n), dtype=torch.float64).numpy()


RANDOM = (fastpriv_random, fastpriv_pairs, numpy_generator, numpy_sfc64, numpy_ndtri, torch_normal)
SOBOL = (fastpriv_sobol, scipy_sobol)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("maker", RANDOM + SOBOL, ids=lambda maker: maker.__name__)
def test_normals(benchmark, maker, shape):
    d, n = SHAPES[shape]
    draw = maker(d, n)
    z = draw()
    assert abs(z.mean()) < 0.02
    assert abs(z.var() - 1) < 0.04
    benchmark.group = f"{'Sobol' if maker in SOBOL else 'random'} normals, {shape}"
    benchmark(draw)


@pytest.mark.parametrize("k", [8, 10_000])
@pytest.mark.parametrize("form", [0, 1, 2])
@pytest.mark.parametrize("side", ["fastpriv", "numpy"])
def test_place(benchmark, side, form, k):
    d, n = 16, 4096
    rng = np.random.default_rng(1)
    component = np.sort(rng.integers(0, k, n)).astype(np.int32)
    means, z, out = rng.normal(size=(k, d)), rng.normal(size=(d, n)), np.empty((d, n))
    spreads = (rng.random(k), rng.random((k, d)), rng.normal(size=(k, d * (d + 1) // 2)))[form]
    factors = np.zeros((k, d, d))
    if form == 2:
        factors[:, *np.tril_indices(d)] = spreads

    def numpy():
        if form == 2:
            return means[component].T + np.einsum("tij,jt->it", factors[component], z)
        return means[component].T + np.atleast_2d(spreads[component].T) * z

    _draw.affine_map(form, means, spreads, component, z, out)
    np.testing.assert_allclose(out, numpy(), atol=1e-12)
    benchmark.group = f"placed samples, form {form}, K={k}, d={d}"
    benchmark(numpy if side == "numpy" else lambda: _draw.affine_map(form, means, spreads, component, z, out))


@pytest.mark.parametrize("side", ["fastpriv", "scipy"])
@pytest.mark.parametrize("d", [16, 1000])
def test_scramble(benchmark, side, d):
    sobol.generators(d)
    seeds = iter(range(10**9))
    benchmark.group = f"a fresh scramble, d={d}"
    if side == "fastpriv":
        benchmark(lambda: sobol.scrambled(d, ROOT, (next(seeds),)))
    else:
        benchmark(lambda: qmc.Sobol(d, rng=np.random.default_rng(next(seeds))))
