"""A point of the rate-distortion function: the certified Newton method to a gap of 1e-6, beside plain Blahut-Arimoto.

The peer stops after 20,000 steps, with a gap of about 1e-5 at these slopes; ``extra_info`` says which gap it reached.
"""

from __future__ import annotations

import numpy as np
import pytest

from fastpriv import capacity

_GAP = 1e-6
_RNG = np.random.default_rng(0)
_SOURCE = _RNG.dirichlet(np.ones(200))
_DISTORTION = np.abs(_RNG.random((200, 1, 2)) - _RNG.random((1, 1000, 2))).mean(axis=2)


def _blahut_arimoto(slope: float, most: int) -> tuple[float, float]:
    kernel = np.exp(-slope * _DISTORTION)
    q = np.full(kernel.shape[1], 1 / kernel.shape[1])
    for _ in range(most):
        z = kernel @ q
        c = (_SOURCE / z) @ kernel
        gap = float(np.log(c.max()))
        if gap <= _GAP:
            break
        q *= c
    return -float(_SOURCE @ np.log(z)), gap


@pytest.mark.benchmark(group="rate-distortion, 200 x 1000")
@pytest.mark.parametrize("slope", [1.0, 10.0, 100.0])
def test_newton(benchmark, slope):
    point = benchmark.pedantic(
        capacity.rate_distortion, (_SOURCE, _DISTORTION), {"slope": slope, "atol": _GAP}, rounds=3
    )
    assert point.lagrangian.width <= _GAP * 1.01


@pytest.mark.benchmark(group="rate-distortion, 200 x 1000")
@pytest.mark.parametrize("slope", [1.0, 10.0, 100.0])
def test_blahut_arimoto(benchmark, slope):
    upper, gap = benchmark.pedantic(_blahut_arimoto, (slope, 20_000), rounds=1)
    benchmark.extra_info["gap"] = gap
    point = capacity.rate_distortion(_SOURCE, _DISTORTION, slope=slope)
    assert upper - max(gap, 0.0) <= point.lagrangian.upper
    assert point.lagrangian.lower <= upper
