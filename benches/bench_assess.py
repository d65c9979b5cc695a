"""The main job beside what a user would write today: NumPy sums on a grid of releases, without bounds.

Run: pytest benches/bench_assess.py
"""

import numpy as np
import pytest

import fastpriv

SIGMA = np.array([5.0, 20.0, 80.0])
EPSILON = np.linspace(0.0, 4.0, 41)


@pytest.fixture(scope="module")
def ages():
    return fastpriv.studies.datasets.adult("age")


def by_hand(ages):
    """LIP curve and mutual information by trapezoid sums on 4001 points."""
    x, counts = np.unique(ages, return_counts=True)
    p = counts / counts.sum()
    curves, nats = [], []
    for sigma in SIGMA:
        y = np.linspace(x[0] - 9 * sigma, x[-1] + 9 * sigma, 4001)
        step = y[1] - y[0]
        each = np.exp(-0.5 * ((y - x[:, None]) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
        mixed = p @ each
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(each > 0, each * np.log(each / mixed), 0.0)
        nats.append(p @ terms.sum(axis=1) * step)
        row = []
        for factor in np.exp(EPSILON):
            up = np.maximum(mixed - factor * each, 0.0).sum(axis=1).max()
            down = np.maximum(each / factor - mixed, 0.0).sum(axis=1).max()
            row.append(max(up, down) * step)
        curves.append(row)
    return np.array(curves), np.array(nats)


@pytest.mark.benchmark(group="assess 73 ages, 3 sigmas x 41 epsilons")
def test_by_hand(benchmark, ages):
    benchmark.pedantic(by_hand, (ages,), rounds=3)


@pytest.mark.benchmark(group="assess 73 ages, 3 sigmas x 41 epsilons")
def test_fastpriv(benchmark, ages):
    report = fastpriv.assess(ages, sigma=SIGMA, epsilon=EPSILON)
    curves, nats = by_hand(ages)
    np.testing.assert_allclose(report["lip_delta"].value, curves, rtol=0.01, atol=1e-6)
    np.testing.assert_allclose(report["mutual_information"].value, nats, rtol=1e-6)
    benchmark.pedantic(fastpriv.assess, (ages,), {"sigma": SIGMA, "epsilon": EPSILON}, rounds=3)
