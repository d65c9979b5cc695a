"""What a call costs by each way in: one setting, and per element of a million.

``python benches/bench_back_end.py`` prints the table of docs/back_end.md, in CPU time of one thread, with the
instruction set of the kernels.
"""

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import fastpriv
from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    PoissonSampledGaussian,
    compose,
    hockey_stick_divergence,
    kl_divergence,
    special,
)

MANY = 1_000_000
P, Q = GaussianMixture([0.99, 0.01], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
GRID = np.linspace(0.0, 5.0, MANY)

C_PROGRAM = """
#include <fastpriv.h>
void many(double r, const double *epsilon, double *out, long n)
{
    for (long i = 0; i < n; i++)
        out[i] = fastpriv_gaussian_delta(r, epsilon[i]);
}
"""

CYTHON_MODULE = """
# cython: boundscheck=False, wraparound=False
from fastpriv.special cimport gaussian_delta
def many(double r, const double[::1] epsilon, double[::1] out):
    cdef Py_ssize_t i
    for i in range(out.shape[0]):
        out[i] = gaussian_delta(r, epsilon[i])
"""


def by_numpy(r, epsilon):
    """The textbook line, which cancels in the tail."""
    c = epsilon / (2 * r)
    return norm.cdf(r - c) - np.exp(epsilon) * norm.cdf(-r - c)


def compiled_c(folder):
    (folder / "many.c").write_text(C_PROGRAM)
    flags = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    include = ["-I", fastpriv.get_include()]
    subprocess.run(["cc", *flags, *include, "many.c", "-o", "many.so", "-lm"], cwd=folder, check=True)
    function = ctypes.CDLL(str(folder / "many.so")).many
    pointer = np.ctypeslib.ndpointer(np.float64)
    function.argtypes, function.restype = [ctypes.c_double, pointer, pointer, ctypes.c_long], None
    return lambda r, epsilon, out: function(r, epsilon, out, out.size)


def compiled_cython(folder):
    (folder / "fastpriv_bench_cython.pyx").write_text(CYTHON_MODULE)
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "-3", "-i", "fastpriv_bench_cython.pyx"]
    package = os.environ | {"PYTHONPATH": str(Path(fastpriv.__file__).parents[1])}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=package)
    sys.path.insert(0, str(folder))
    import fastpriv_bench_cython

    return fastpriv_bench_cython.many


def compiled_numba(_=None):
    import numba

    from fastpriv import nb

    @numba.njit(nogil=True)
    def many(r, epsilon, out):
        for i in range(out.size):
            out[i] = nb.gaussian_delta(r, epsilon[i])

    return many


LOOPS = {"numba": compiled_numba, "C header": compiled_c, "cimport": compiled_cython}


@pytest.mark.benchmark(group="Gaussian delta, 1e5 epsilons, by the ways in")
@pytest.mark.parametrize("way", LOOPS)
def test_compiled_loops(benchmark, way, tmp_path):
    epsilon, out = GRID[:: MANY // 100_000], np.empty(100_000)
    many = LOOPS[way](tmp_path)
    benchmark(many, 0.5, epsilon.copy(), out)
    np.testing.assert_array_equal(out, special.gaussian_delta(0.5, epsilon))


@pytest.mark.benchmark(group="Gaussian delta, 1e5 epsilons, by the ways in")
def test_ufunc(benchmark):
    epsilon = GRID[:: MANY // 100_000].copy()
    np.testing.assert_allclose(benchmark(special.gaussian_delta, 0.5, epsilon), by_numpy(0.5, epsilon), rtol=1e-6)


@pytest.mark.benchmark(group="Gaussian delta, 1e5 epsilons, by the ways in")
def test_numpy(benchmark):
    epsilon = GRID[:: MANY // 100_000].copy()
    np.testing.assert_allclose(benchmark(by_numpy, 0.5, epsilon), special.gaussian_delta(0.5, epsilon), rtol=1e-6)


def composed():
    return compose(PoissonSampledGaussian(1.0, 0.01), 100).delta(1.0)


@pytest.mark.benchmark(group="100 steps of a subsampled Gaussian mechanism, one epsilon")
def test_composition(benchmark):
    found = benchmark(composed)
    assert found.lower <= found.upper <= 1.2 * found.lower


@pytest.mark.benchmark(group="100 steps of a subsampled Gaussian mechanism, one epsilon")
def test_composition_dp_accounting(benchmark):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")

    def delta():
        single = pld.from_gaussian_mechanism(1.0, sampling_prob=0.01, value_discretization_interval=1e-3)
        return single.self_compose(100).get_delta_for_epsilon(1.0)

    assert benchmark(delta) == pytest.approx(composed().upper, rel=0.05)


def seconds(function, *args, repeat=7):
    """The least CPU time of a call, of calls that last 20 ms together."""
    function(*args)
    count = 1
    while True:
        start = time.process_time()
        for _ in range(count):
            function(*args)
        if (once := time.process_time() - start) > 0.02:
            break
        count *= 4
    best = once / count
    for _ in range(repeat):
        start = time.process_time()
        for _ in range(count):
            function(*args)
        best = min(best, (time.process_time() - start) / count)
    return best


def rows(folder):
    """Name, seconds of a call with one setting or None, seconds of a million elements."""
    many, out = GRID.copy(), np.empty(MANY)
    mechanism = GaussianMechanism(1.0, 1.0)
    yield "`GaussianMechanism.delta`, with bounds", seconds(mechanism.delta, 1.0), seconds(mechanism.delta, many)
    yield ("`hockey_stick_divergence` of two mixtures, 2 + 1 components", seconds(hockey_stick_divergence, P, Q, 1.0),
           seconds(hockey_stick_divergence, P, Q, many, repeat=1))
    yield "`kl_divergence` of two mixtures, 2 + 1 components", seconds(kl_divergence, P, Q), None
    yield "ufunc `special.gaussian_delta`", seconds(special.gaussian_delta, 0.5, 1.0), seconds(
        lambda: special.gaussian_delta(0.5, many, out=out))
    for name, make in LOOPS.items():
        loop = make(folder)
        one_in, one_out = np.ones(1), np.empty(1)
        yield (f"{name}, a loop over `gaussian_delta`", seconds(loop, 0.5, one_in, one_out),
               seconds(loop, 0.5, many, out))
    epsilon_add, capacity = special.sampled_gaussian_epsilon_add, special.awgn_capacity
    yield ("ufunc `special.sampled_gaussian_epsilon_add`, with bounds", seconds(epsilon_add, 1.0, 0.01, 1e-5),
           seconds(epsilon_add, 0.01, many + 0.5, 1e-5, repeat=1))
    yield "ufunc `special.awgn_capacity(2, 1, 1e-9)`, with bounds", seconds(capacity, 2.0, 1.0, 1e-9), None
    yield "ufunc `special.awgn_capacity(2, 10, 1e-9)`, with bounds", seconds(capacity, 2.0, 10.0, 1e-9), None
    yield "ufunc `special.ndtr`", seconds(special.ndtr, 0.5), seconds(lambda: special.ndtr(many, out=out))
    yield "SciPy `norm.cdf`, for comparison", seconds(norm.cdf, 0.5), seconds(norm.cdf, many)
    yield "NumPy line for `gaussian_delta`, for comparison", seconds(by_numpy, 0.5, 1.0), seconds(by_numpy, 0.5, many)


def table():
    """The table of docs/back_end.md as text."""
    lines = ["| way in | one call, us | per element of 1e6, ns |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        for name, one, million in rows(Path(folder)):
            lines.append(f"| {name} | {one * 1e6:.2f} | {'' if million is None else f'{million / MANY * 1e9:.1f}'} |")
    return "\n".join(lines)


if __name__ == "__main__":
    from fastpriv.kernels import _special

    print(f"Instruction set: {_special.ISA}\n\n{table()}")
