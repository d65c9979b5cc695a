"""Capacity of finite channels to 1e-9 nats, beside Blahut-Arimoto in NumPy as one would write it.

``python benches/bench_discrete_capacity.py`` prints core milliseconds a channel, one line a size; dit, qif and cvxpy
join where they are installed.
"""

import importlib.util
import time

import numpy as np
import pytest
from comparison.capacities import GAP, blahut_arimoto, capacity_by_cvxpy, capacity_by_dit, random_channels

from fastpriv import channel_capacity

SIZES = ((2, 2), (3, 3), (4, 4), (16, 16), (64, 64), (256, 256))


def with_qif(channel):
    import qif

    return qif.measure.shannon.add_capacity(channel, md=GAP)[0] * np.log(2)


PEERS = {name: call for name, call in (("dit", capacity_by_dit), ("qif", with_qif), ("cvxpy", capacity_by_cvxpy))
         if importlib.util.find_spec(name)}


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (4, 4)])
def test_a_batch_fastpriv(benchmark, n, m):
    benchmark.group = f"capacity of 10,000 channels {n} x {m}"
    found = benchmark.pedantic(channel_capacity, args=(random_channels(n, m, 10_000),), rounds=3)
    assert found.capacity.width.max() <= 1.01 * GAP


@pytest.mark.parametrize(("n", "m"), [(2, 2), (3, 3), (4, 4)])
def test_ten_blahut_arimoto(benchmark, n, m):
    benchmark.group = f"capacity of 10,000 channels {n} x {m}"
    stack = random_channels(n, m, 10_000)[:10]
    found = benchmark.pedantic(lambda: [blahut_arimoto(channel) for channel in stack], rounds=1)
    np.testing.assert_allclose([value for value, _ in found], channel_capacity(stack).capacity.value, atol=2e-9)


@pytest.mark.parametrize("size", [64, 256])
def test_one_fastpriv(benchmark, size):
    benchmark.group = f"capacity, {size} x {size}"
    found = benchmark.pedantic(channel_capacity, args=(random_channels(size, size)[0],), rounds=3, warmup_rounds=1)
    assert found.capacity.width <= 1.01 * GAP


def test_one_blahut_arimoto(benchmark):
    benchmark.group = "capacity, 64 x 64"
    channel = random_channels(64, 64)[0]
    value, _ = benchmark.pedantic(blahut_arimoto, args=(channel,), rounds=1)
    assert abs(value - channel_capacity(channel).capacity.value) < 2e-9


def spent(call, repetitions):
    best = float("inf")
    for _ in range(repetitions):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return 1e3 * best


def lines():
    for n, m in SIZES:
        many = 100_000 if max(n, m) <= 4 else 1
        stack = random_channels(n, m, many)
        few = stack[:3]
        channel_capacity(few)
        name = "fastpriv, in a batch" if many > 1 else "fastpriv"
        yield n, m, name, spent(lambda s=stack: channel_capacity(s), 3) / many
        if max(n, m) <= 64:
            yield n, m, "Blahut-Arimoto, NumPy", spent(lambda s=few: [blahut_arimoto(c) for c in s], 1) / len(few)
        for name, call in PEERS.items():
            yield n, m, name, spent(lambda s=stack, f=call: f(s[0]), 1)
    for n, m, gap in ((1024, 1024, 1e-9), (2000, 2000, 1e-12), (100_000, 8, 1e-9), (8, 100_000, 1e-9)):
        channel = random_channels(n, m)[0]
        yield n, m, f"fastpriv to {gap:g}", spent(lambda c=channel, g=gap: channel_capacity(c, rtol=g), 1)


if __name__ == "__main__":
    import sys

    for n, m, name, milliseconds in lines():
        sys.stdout.write(f"{n:>6} x {m:<6} {name:24} {milliseconds:12.5f} ms\n")
        sys.stdout.flush()
