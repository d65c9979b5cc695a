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

SIZE = 2_000_000


def inputs(n):
    generator = np.random.default_rng(1)
    likelihood, prior = np.empty(n), np.empty(n)
    for i in range(0, n, 2**20):
        part = slice(i, min(i + 2**20, n))
        generator.standard_normal(out=likelihood[part])
        generator.random(out=prior[part])
    prior /= prior.sum()
    return likelihood, prior


def with_fastpriv(likelihood, prior, n_jobs=1):
    import fastpriv

    p = fastpriv.posterior(likelihood, prior, n_jobs=n_jobs)
    return p.log_evidence.value, p.entropy.value, p.js.value, p.max_log_ratio.value


def with_two_threads(likelihood, prior):
    return with_fastpriv(likelihood, prior, 2)


def with_numpy(likelihood, prior):
    joint = np.log(prior) + likelihood
    top = joint.max()
    evidence = top + np.log(np.exp(joint - top).sum())
    log_ratio = likelihood - evidence
    after = prior * np.exp(log_ratio)
    middle = 0.5 * (prior + after)
    js = 0.5 * (prior * np.log(prior / middle) + after * np.log(after / middle)).sum()
    return evidence, -(after * np.log(after)).sum(), js, log_ratio.max()


def with_torch(likelihood, prior):
    import torch

    likelihood, prior = torch.from_numpy(likelihood), torch.from_numpy(prior)
    evidence = torch.logsumexp(torch.log(prior) + likelihood, 0)
    log_ratio = likelihood - evidence
    after = prior * torch.exp(log_ratio)
    middle = 0.5 * (prior + after)
    js = 0.5 * (prior * torch.log(prior / middle) + after * torch.log(after / middle)).sum()
    return tuple(float(x) for x in (evidence, -(after * torch.log(after)).sum(), js, log_ratio.max()))


def with_jax(likelihood, prior):
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    def all_of_it(likelihood, prior):
        evidence = jax.scipy.special.logsumexp(jnp.log(prior) + likelihood)
        log_ratio = likelihood - evidence
        after = prior * jnp.exp(log_ratio)
        middle = 0.5 * (prior + after)
        js = 0.5 * (prior * jnp.log(prior / middle) + after * jnp.log(after / middle)).sum()
        return evidence, -(after * jnp.log(after)).sum(), js, log_ratio.max()

    if "jax" not in COMPILED:
        COMPILED["jax"] = jax.jit(all_of_it)
    return tuple(float(x) for x in COMPILED["jax"](likelihood, prior))


def with_numba(likelihood, prior):
    if "numba" not in COMPILED:
        import numba

        @numba.njit(nogil=True)
        def all_of_it(likelihood, prior):
            top = -np.inf
            for i in range(likelihood.size):
                top = max(top, np.log(prior[i]) + likelihood[i])
            total = 0.0
            for i in range(likelihood.size):
                total += np.exp(np.log(prior[i]) + likelihood[i] - top)
            evidence, entropy, js, most = top + np.log(total), 0.0, 0.0, -np.inf
            for i in range(likelihood.size):
                log_ratio = likelihood[i] - evidence
                after = prior[i] * np.exp(log_ratio)
                middle = 0.5 * (prior[i] + after)
                entropy -= after * np.log(after)
                js += 0.5 * (prior[i] * np.log(prior[i] / middle) + after * np.log(after / middle))
                most = max(most, log_ratio)
            return evidence, entropy, js, most

        COMPILED["numba"] = all_of_it
    return COMPILED["numba"](likelihood, prior)


COMPILED = {}
PEERS = {name: call for name, call in (("torch", with_torch), ("jax", with_jax), ("numba", with_numba))
         if importlib.util.find_spec(name)}
CALLS = {"fastpriv": with_fastpriv, "fastpriv, 2 threads": with_two_threads, "NumPy": with_numpy, **PEERS}


@pytest.fixture(scope="module")
def given():
    return inputs(SIZE)


@pytest.mark.parametrize("name", CALLS)
def test_posterior(benchmark, given, name):
    benchmark.group = f"posterior over {SIZE:,} secrets, prior given"
    found = benchmark.pedantic(CALLS[name], args=given, rounds=3, warmup_rounds=1)
    np.testing.assert_allclose(found, with_fastpriv(*given), rtol=1e-9)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_line(call, n, repetitions):
    """CPU time and wall time in nanoseconds a secret, and megabytes above the inputs."""
    small = inputs(1000)
    call(*small)
    given = inputs(n)
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
