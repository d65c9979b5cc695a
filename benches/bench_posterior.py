"""Evidence, entropy, Jensen-Shannon, extreme log ratios and mode of a posterior, beside what one would write today.

``python benches/bench_posterior.py [N]`` prints, for N float64 likelihoods and as many prior probabilities, CPU time of
all threads in nanoseconds a secret, wall time, and the peak of memory above the inputs; each line is a process of its
own. torch, jax and numba join where they are installed.
"""

import importlib.util
import resource
import subprocess
import sys
import time

import numpy as np
import pytest
from comparison.posteriors import by_numpy, jax_posterior, likelihoods, numba_posterior, torch_posterior

SIZE = 2_000_000


def with_fastpriv(likelihood, prior, n_jobs=1):
    import fastpriv

    p = fastpriv.posterior(likelihood, prior, n_jobs=n_jobs)
    return p.log_evidence.value, p.entropy.value, p.js.value, p.max_log_ratio.value


def with_two_threads(likelihood, prior):
    return with_fastpriv(likelihood, prior, 2)


PEERS = {name: make() for name, make in (("torch", torch_posterior), ("jax", jax_posterior), ("numba", numba_posterior))
         if importlib.util.find_spec(name)}
CALLS = {"fastpriv": with_fastpriv, "fastpriv, 2 threads": with_two_threads, "NumPy": by_numpy, **PEERS}


@pytest.fixture(scope="module")
def given():
    return likelihoods(SIZE)


@pytest.mark.parametrize("name", CALLS)
def test_posterior(benchmark, given, name):
    benchmark.group = f"posterior over {SIZE:,} secrets, prior given"
    found = benchmark.pedantic(CALLS[name], args=given, rounds=3, warmup_rounds=1)
    np.testing.assert_allclose(found, with_fastpriv(*given), rtol=1e-9)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_line(call, n, repetitions):
    """CPU time and wall time in nanoseconds a secret, and megabytes above the inputs."""
    small = likelihoods(1000)
    call(*small)
    given = likelihoods(n)
    before, cpu, wall = peak(), float("inf"), float("inf")
    for _ in range(repetitions):
        begun, ticks = time.process_time(), time.perf_counter()
        call(*given)
        wall = min(wall, time.perf_counter() - ticks)
        cpu = min(cpu, time.process_time() - begun)
    return 1e9 * cpu / n, 1e9 * wall / n, peak() - before


def report(n):
    for name in CALLS:
        command = [sys.executable, __file__, str(n), name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cpu, wall, memory = map(float, said.split())
        sys.stdout.write(f"{name:22} {cpu:8.2f} core-ns {wall:8.2f} wall-ns {memory:8.0f} MB\n")
        sys.stdout.flush()


if __name__ == "__main__":
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    if len(sys.argv) == 3:
        sys.stdout.write("{} {} {}".format(*one_line(CALLS[sys.argv[2]], size, 3)))
    else:
        report(size)
