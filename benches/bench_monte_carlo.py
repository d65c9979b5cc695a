"""KL and hockey-sticks of mixtures in d dimensions beside scikit-learn, torch, jax and the NumPy line.

The unit is core-nanoseconds, CPU time of all threads, for each sample x component of both mixtures x dimension, with
sampling included for everyone; it stands in the extra information of every bench. Peers that are not installed are
skipped. ``python benches/bench_monte_carlo.py`` prints the tables, with errors at equal wall time among them.
"""

import gc
import resource
import subprocess
import sys
import time
from functools import cache

import numpy as np
import pytest
from comparison.divergences import jax_samples, mixtures_in_space, numpy_samples, sklearn_samples, torch_samples
from scipy.special import gammainc, gammaincc

import fastpriv
from fastpriv import Density, GaussianMixture
from fastpriv.divergences import monte_carlo
from fastpriv.sampling.options import Sampling
from fastpriv.sampling.proposals.tilting import hockey_stick_proposal

SIZES = [(8, 1), (8, 16), (64, 16), (1024, 16)]
FIXED = {"rtol": 0.0, "max_seconds": np.inf, "n_jobs": 1}


laws = cache(mixtures_in_space)  # of (components, dimensions)


def samples(size, dimension):
    return int(np.clip(2**24 // (size * dimension), 2**12, 2**17))


# one line each: n samples of P, and the mean of log p - log q over them


def ours(p, q, method):
    """The sampling engine, past the door that sends laws on the line to quadrature."""

    def run(n, seed=1):
        sampling = Sampling(rtol=0.0, max_samples=n, max_seconds=np.inf, method=method, rng=seed, n_jobs=1)
        return monte_carlo.kl(p, q, sampling.request()).value

    return run


SIDES = {
    "fastpriv": lambda p, q: ours(p, q, "auto"), "fastpriv plain": lambda p, q: ours(p, q, "direct plain"),
    "numpy blas": numpy_samples, "scikit-learn": sklearn_samples, "torch": torch_samples, "jax": jax_samples,
}


@cache
def truth(size, dimension):
    """(KL, standard deviation of log p/q under P)."""
    p, q = laws(size, dimension)
    if dimension == 1:
        return fastpriv.kl_divergence(p, q).value, 3.0
    x = p.sample(4000, rng=1)
    return fastpriv.kl_divergence(p, q, rtol=1e-3, rng=1).value, float((p.log_density(x) - q.log_density(x)).std())


def core_ns(seconds, n, size, dimension):
    return seconds * 1e9 / (n * 2 * size * dimension)


@pytest.mark.benchmark(timer=time.process_time, min_rounds=3, max_time=1.0)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("size", "dimension"), SIZES)
def test_kl(benchmark, size, dimension, side):
    n = samples(size, dimension)
    try:
        call = SIDES[side](*laws(size, dimension))
    except ImportError as error:
        pytest.skip(f"could not import {error.name!r}")
    want, spread = truth(size, dimension)
    assert abs(call(n) - want) <= 6 * spread / np.sqrt(n) + 2e-3 * want
    benchmark.group = f"monte carlo: kl of {size} + {size} components in {dimension} dimensions, {n} samples"
    benchmark(call, n)
    if benchmark.stats:
        benchmark.extra_info["core_ns"] = core_ns(benchmark.stats.stats.min, n, size, dimension)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads(benchmark, n_jobs):
    p, q = laws(64, 16)

    def call():
        return fastpriv.kl_divergence(p, q, **FIXED | {"n_jobs": n_jobs}, max_samples=200_000, rng=1).value

    want, _ = truth(64, 16)
    assert abs(call() - want) <= 0.01 * want
    benchmark.group = "monte carlo: threads"
    benchmark(call)


# densities only their owner knows: Laplace laws in 4 dimensions


def laplace(form, centre):
    numba = pytest.importorskip("numba")
    if form == "vectorized":
        def many(x):
            return -np.abs(x - centre).sum(axis=1) - 4 * np.log(2.0)

        return Density(many, lambda rng, n: rng.laplace(centre, size=(n, 4)), dimension=4, vectorized=True)
    constant = -4 * np.log(2.0)

    def log_density(x):
        total = constant
        for value in x:
            total -= abs(value - centre)
        return total

    def sampler(rng, x):
        for j in range(4):
            x[j] = rng.laplace(centre, 1.0)

    if form == "jitted":
        return Density(numba.njit(log_density, nogil=True), numba.njit(sampler, nogil=True), dimension=4)
    return Density(log_density, lambda rng, n: rng.laplace(centre, size=(n, 4)), dimension=4)


@pytest.mark.filterwarnings("ignore::fastpriv.errors.SamplingWarning")
@pytest.mark.parametrize("form", ["jitted", "vectorized", "plain", "numpy line"])
def test_densities_only_their_owner_knows(benchmark, form):
    n = 20_000
    if form == "numpy line":
        def call():
            x = np.random.default_rng(1).laplace(0.0, size=(n, 4))
            return (np.abs(x - 0.5) - np.abs(x)).sum(axis=1).mean()
    else:
        p, q = laplace(form, 0.0), laplace(form, 0.5)

        def call():
            return fastpriv.kl_divergence(p, q, max_samples=n, rng=1, **FIXED).value

    want = 4 * (0.5 + np.exp(-0.5) - 1)
    assert abs(call() - want) <= 0.1 * want
    benchmark.group = f"monte carlo: densities of the user, {n} samples"
    benchmark(call)


# error at equal wall time

SPHERE = 16, 1.125, 1.0, 7.7063  # dimension, sigma of p, sigma of q, epsilon: H is near 1e-9


def sphere():
    d, s, t, _ = SPHERE
    return tuple(GaussianMixture([1.0], np.zeros((1, d)), sigma) for sigma in (s, t))


def sphere_truth():
    """(H, second moment of (1 - e^epsilon q/p)^+ under P), from chi-square tails."""
    d, s, t, epsilon = SPHERE
    square = (d * np.log(t / s) - epsilon) / ((1 / s**2 - 1 / t**2) / 2)

    def mass(variance):
        return gammaincc(d / 2, square / (2 * variance))

    a, mixed = np.exp(epsilon), 1 / (2 / t**2 - 1 / s**2)
    third = a * a * s**d * mixed ** (d / 2) / t ** (2 * d) * mass(mixed)  # of q^2/p, a normal law up to a factor
    return mass(s * s) - a * mass(t * t), mass(s * s) - 2 * a * mass(t * t) + third


def timed(call, *arguments, rounds=3):
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter()
        value = call(*arguments)
        best = min(best, time.perf_counter() - begin)
    return best, value


def samples_in(call, seconds, start=20_000):
    """How many samples a call does in the time."""
    n = start
    for _ in range(3):
        spent, _ = timed(call, n, rounds=1)
        n = int(max(1000, n * seconds / spent))
    return n


def error_of(call, n, want, seeds):
    return float(np.sqrt(np.mean([(call(n, seed) - want) ** 2 for seed in range(seeds)])))


def kl_errors(seconds=0.5, seeds=12):
    """Relative RMS errors of KL at 8 + 8 and 64 + 64 components in 16 dimensions, everyone given the same wall time."""
    out = {}
    for size in (8, 64):
        p, q = laws(size, 16)
        want = fastpriv.kl_divergence(p, q, rtol=0.0, max_samples=2**26 // size, max_seconds=200, rng=99).value
        for side in ("fastpriv", "fastpriv plain", "numpy blas"):
            call = SIDES[side](p, q)
            n = samples_in(call, seconds)
            out[size, side] = error_of(call, n, want, seeds) / want, n
    return out


def hockey_errors(seconds=0.5, seeds=12):
    """Relative RMS errors at H = 1e-9; that of plain sampling is computed, as it sees nothing."""
    p, q = sphere()
    want, second = sphere_truth()
    epsilon = SPHERE[-1]

    def call(n, seed=1):
        return fastpriv.hockey_stick_divergence(p, q, epsilon, max_samples=n, rng=seed, **FIXED).value

    n = samples_in(call, seconds)
    plain = samples_in(numpy_samples(p, q), seconds)
    return {
        "fastpriv": (error_of(call, n, want, seeds) / want, n),
        "numpy": (float(np.sqrt((second - want**2) / plain)) / want, plain),
    }


def eights():
    """Eight components against eight of the same covariance in 16 dimensions; H is near 1e-9."""
    rng = np.random.default_rng(3)
    laws = [GaussianMixture(rng.dirichlet(np.full(8, 2.0)), rng.normal(0, 0.5, (8, 16)), 1.0) for _ in range(2)]
    return *laws, 12.35


def plain_moments(p, q, epsilon, n=400_000):
    """(H, second moment of (1 - e^epsilon q/p)^+ under P) from draws of the proposal, as plain samples see nothing."""
    proposal = hockey_stick_proposal(p, q, epsilon)
    x = proposal.mixture.sample(n, rng=5)
    a, b, g = (law.log_density(x) for law in (p, q, proposal.mixture))
    part = -np.expm1(np.minimum(b + epsilon - a, 0.0))
    weight = np.exp(a - g)
    return float(np.mean(weight * part)), float(np.mean(weight * part * part))


def eights_errors(seconds=0.5, seeds=12):
    """Relative RMS errors for ``eights``; that of plain sampling is computed."""
    p, q, epsilon = eights()
    want = fastpriv.hockey_stick_divergence(p, q, epsilon, rtol=3e-4, max_seconds=60, max_samples=2**28, rng=99).value
    mean, second = plain_moments(p, q, epsilon)

    def call(n, seed=1):
        return fastpriv.hockey_stick_divergence(p, q, epsilon, max_samples=n, rng=seed, **FIXED).value

    n, plain = samples_in(call, seconds), samples_in(numpy_samples(p, q), seconds)
    return {
        "fastpriv, 8 + 8": (error_of(call, n, want, seeds) / want, n),
        "numpy, 8 + 8": (float(np.sqrt((second - mean**2) / plain)) / mean, plain),
    }


def test_errors_at_equal_time_are_far_below_plain_sampling():
    assert gammainc(8.0, 8.0) + gammaincc(8.0, 8.0) == pytest.approx(1.0)
    errors = hockey_errors(0.1, 4)
    assert errors["fastpriv"][0] <= 1e-3 * errors["numpy"][0]
    errors = eights_errors(0.1, 4)
    assert errors["fastpriv, 8 + 8"][0] <= 1e-3 * errors["numpy, 8 + 8"][0]


PEAK = """
import re, sys, numpy as np
from fastpriv import GaussianMixture, kl_divergence
p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
q = GaussianMixture([0.5, 0.5], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]])
kl_divergence(p, q, rtol=0.0, max_samples=int(float(sys.argv[1])), max_seconds=np.inf, rng=1)
sys.stdout.write(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])  # of this process alone
"""


def peak(n):
    """Peak resident memory of a process that does n samples, in MiB."""
    done = subprocess.run([sys.executable, "-c", PEAK, str(n)], capture_output=True, text=True, check=True)
    return int(done.stdout) / 1024


def test_memory_does_not_grow(benchmark):
    few, many = peak(1e5), peak(1e7)
    benchmark.group = "monte carlo: peak memory"
    benchmark.extra_info["peak_mib"] = many
    benchmark.pedantic(lambda: None)
    assert many <= few + 16


def cpu_seconds(call, n):
    gc.collect()
    begin = time.process_time()
    call(n)
    return time.process_time() - begin


def report():
    write = sys.stdout.write
    write("core-ns a sample x component x dimension, sampling included\n")
    write(f"{'(K, d)':>12}" + "".join(f"{side:>16}" for side in SIDES) + "\n")
    for size, dimension in SIZES:
        n, row = samples(size, dimension), f"{(size, dimension)!s:>12}"
        for side in SIDES.values():
            try:
                call = side(*laws(size, dimension))
            except ImportError:
                row += f"{'-':>16}"
                continue
            many, best = n, 0.0
            while best < 0.2:  # long enough that a call's fixed cost is not what is measured
                many, best = 2 * many, cpu_seconds(call, 2 * many)
            best = min(best, *(cpu_seconds(call, many) for _ in range(4)))
            row += f"{core_ns(best, many, size, dimension):16.3g}"
        write(row + "\n")
    p, q = laws(64, 16)
    walls = [
        timed(lambda n_jobs=n_jobs: fastpriv.kl_divergence(
            p, q, **FIXED | {"n_jobs": n_jobs}, max_samples=1_000_000, rng=1), rounds=4)[0] for n_jobs in (1, 2)
    ]
    write(f"threads 1 -> 2: {walls[0] / walls[1]:.2f}x\n")
    for key, (error, n) in (kl_errors() | hockey_errors() | eights_errors()).items():
        write(f"relative RMS error at equal wall time, {key}: {error:.3g} ({n} samples)\n")
    write(f"peak memory, MiB: {peak(1e5):.0f} at 1e5 samples, {peak(1e8):.0f} at 1e8\n")
    write(f"own peak, MiB: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}\n")


if __name__ == "__main__":
    report()
