"""Matching to a pool, estimates, and a grid of attacks beside exact posteriors.

Run: pytest benches/bench_leakage_studies.py
"""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from fastpriv.studies import datasets
from fastpriv.studies.leakage import (
    Protection,
    SoftmaxRegression,
    bayesian_privacy_estimate,
    leakage_study,
    match_to_pool,
)

PIXELS, LABELS = datasets.digits()
POOL = PIXELS / 16.0


def with_scipy(reconstructions, pool):
    """The assignment as one would write it with SciPy, without checks and thresholds."""
    return np.array([linear_sum_assignment(cdist(one, pool, "sqeuclidean"))[1] for one in reconstructions])


@pytest.mark.parametrize("way", [match_to_pool, with_scipy])
def test_matching(benchmark, way):
    rng = np.random.default_rng(1)
    found = POOL[rng.choice(len(POOL), (50, 16))] + 0.3 * rng.normal(size=(50, 16, 64))
    assert np.array_equal(way(found, POOL), match_to_pool(found, POOL))
    benchmark.group = "50 attacks on batches of 16, matched to 1,797 records"
    benchmark(way, found, POOL)


def percentiles(named, pool, batch):
    """C1 and its percentile interval over resampled models, with NumPy alone."""
    rng = np.random.default_rng(1)
    hits = (named[..., None] == batch).any(axis=2).mean(axis=1) / batch.size
    cells = np.append(np.full(batch.size, 1 / pool), 1 - batch.size / pool)
    missed = 1 - hits.sum(axis=1, keepdims=True)
    beliefs = np.concatenate([hits + missed / pool, missed * cells[-1]], axis=1)
    weights = rng.multinomial(len(named), np.full(len(named), 1 / len(named)), 2000) / len(named)
    mean = np.concatenate([weights @ beliefs, beliefs.mean(axis=0)[None]])
    middle = (mean + cells) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        js = 0.5 * (np.where(mean > 0, mean * np.log(mean / middle), 0) + cells * np.log(cells / middle)).sum(axis=1)
    c1 = np.sqrt(js)
    return c1[-1], np.quantile(c1[:-1], [0.025, 0.975])


@pytest.mark.parametrize("way", ["fastpriv", "percentiles with NumPy, C1 alone"])
def test_estimates(benchmark, way):
    rng, batch = np.random.default_rng(1), np.arange(4)
    named = np.where(rng.random((8, 10, 1)) < 0.5, batch, -1)
    estimate = bayesian_privacy_estimate(named, 100, batch=batch, rng=1)
    assert percentiles(named, 100, batch)[0] == pytest.approx(estimate.c1.value, rel=1e-9)
    benchmark.group = "estimates from 8 x 10 attacks on a batch of 4 of 100"
    if way == "fastpriv":
        benchmark(bayesian_privacy_estimate, named, 100, batch=batch, rng=1)
    else:
        benchmark(percentiles, named, 100, batch)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_grid(benchmark, n_jobs):
    grid = [Protection(), *(Protection(noise="gaussian", scale=s) for s in np.geomspace(1e-3, 0.5, 9)),
            Protection(noise="laplace", scale=0.05), Protection(keep_fraction=0.1),
            Protection.dp_sgd(1.0, 0.1, 4)]

    def run():
        return leakage_study(SoftmaxRegression(64, 10), POOL, LABELS, grid, rng=1, n_jobs=n_jobs)

    benchmark.group = "13 protections, 8 models, 10 attacks on each, exact posteriors of 3,921,225 batches"
    study = benchmark.pedantic(run, rounds=1)
    for one in study.outcomes:
        assert one.exact is None or one.estimate.c1.value <= one.exact.c1.upper + 0.1
