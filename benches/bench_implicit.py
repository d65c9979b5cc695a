"""Posteriors over domains that are never written out, beside what NumPy takes where it can.

``python benches/bench_implicit.py`` prints core time, one line a case.
"""

import time

import numpy as np
import pytest

from fastpriv import RandomizedResponse, posterior
from fastpriv.channels import DefaultLikelihood, IndexLikelihood, ProductLikelihood
from fastpriv.mechanisms import UnaryEncoding

SMALL = 10**6


def written_out(logs):
    """Evidence, KL and Jensen-Shannon divergence as one writes them in NumPy, uniform prior."""
    top = logs.max()
    evidence = np.log(np.mean(np.exp(logs - top))) + top
    ratio = np.exp(logs - evidence)
    kl = np.mean(ratio * (logs - evidence))
    middle = (1 + ratio) / 2
    return evidence, kl, 0.5 * np.mean(ratio * np.log(ratio / middle) - np.log(middle))


def default(size, exceptions):
    rng = np.random.default_rng(1)
    return DefaultLikelihood(size, 0.0, np.arange(exceptions) * (size // exceptions), rng.normal(size=exceptions))


def normals(places, size):
    rng = np.random.default_rng(2)
    return ProductLikelihood([0.1 * rng.normal(size=size) for _ in range(places)])


def hill(d):
    return -0.5 * ((d - 3e5) / 4e4) ** 2


def jitted():
    import numba

    return numba.njit(hill)


CASES = {
    "k-RR, 2^200 secrets": lambda: RandomizedResponse(2**200, 5.0).column(7),
    "unary encoding, 1e5 secrets": lambda: UnaryEncoding(10**5, 2.0).column(np.arange(10**5) % 5 == 0),
    "1e12 secrets, 1e5 exceptions": lambda: default(10**12, 10**5),
    "2^200 tuples of 200 answers": lambda: RandomizedResponse(2, 0.1).power(200).column([1, 0] * 100),
    "100 places of 100 values": lambda: normals(100, 100),
    "function swept, 1e6 secrets": lambda: IndexLikelihood(hill, SMALL),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.benchmark(group="implicit posteriors")
def test_implicit(benchmark, name):
    likelihood = CASES[name]()
    found = benchmark.pedantic(posterior, (likelihood,), rounds=3)
    assert found.js.lower <= found.js.value <= found.js.upper


@pytest.mark.benchmark(group="a function over 1e6 secrets")
@pytest.mark.parametrize("way", ["fastpriv", "NumPy"])
def test_sweep(benchmark, way):
    if way == "NumPy":
        found = benchmark.pedantic(lambda: written_out(hill(np.arange(SMALL))), rounds=3)[2]
    else:
        found = benchmark.pedantic(lambda: posterior(IndexLikelihood(hill, SMALL)).js.value, rounds=3)
    assert found == pytest.approx(written_out(hill(np.arange(SMALL)) + 0.0)[2], rel=1e-9)


def core_time(call, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        found = call()
        times.append(time.process_time() - start)
    return min(times), found


def main():
    for name, make in CASES.items():
        likelihood = make()
        seconds, found = core_time(lambda given=likelihood: posterior(given))
        print(f"{name:34s} {1e3 * seconds:9.2f} ms   JS {found.js.value:.6e}  width {found.js.width:.1e}")
    seconds, _ = core_time(lambda: written_out(hill(np.arange(SMALL))))
    print(f"{'NumPy, 1e6 secrets written out':34s} {1e3 * seconds:9.2f} ms")
    n = 10**8
    for name, function in (("jitted", jitted()), ("vectorised", hill)):
        seconds, _ = core_time(lambda f=function: posterior(IndexLikelihood(f, n), n_jobs=2), repeats=2)
        print(f"{'function swept, 1e8, ' + name:34s} {1e9 * seconds / n:9.2f} core-ns a secret")


if __name__ == "__main__":
    main()
