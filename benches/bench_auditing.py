"""5,000 audits in one call, beside the loop over audits that one would write with SciPy."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from fastpriv.studies.auditing import OneRun, RepeatedRuns, audit_epsilon, audit_gaussian_dp, audit_scores

RNG = np.random.default_rng(3)
TRUE, FALSE = RNG.binomial(1000, 0.4, 5000), RNG.binomial(1000, 0.1, 5000)
CORRECT = RNG.binomial(200, 0.85, 5000)


def with_scipy_two_bounds():
    least = stats.beta.ppf(0.025, TRUE, 1001 - TRUE)
    most = stats.beta.ppf(0.975, FALSE + 1, 1000 - FALSE)
    return np.maximum(np.log(least / most), np.log((1 - most) / (1 - least)))


def published_bound(v, r, m, delta):
    """Steinke et al.: root of their p-value."""
    i = np.arange(1, v + 1)

    def excess(epsilon):
        q = 1 / (1 + np.exp(-epsilon))
        tail, below = stats.binom.sf(v - 1, r, q), stats.binom.cdf(v - 1, r, q)
        return tail + 2 * m * delta * ((below - stats.binom.cdf(v - 1 - i, r, q)) / i).max() - 0.05

    return brentq(excess, 0.0, 20.0)


@pytest.mark.benchmark(group="audits: 5000 of repeated runs, two bounds")
def test_two_bounds(benchmark):
    found = benchmark(audit_epsilon, RepeatedRuns(TRUE, 1000, FALSE, 1000), form="two_bounds")
    assert np.allclose(found.lower, with_scipy_two_bounds(), rtol=1e-8)


@pytest.mark.benchmark(group="audits: 5000 of repeated runs, two bounds")
def test_two_bounds_scipy(benchmark):
    benchmark(with_scipy_two_bounds)


@pytest.mark.benchmark(group="audits: 5000 of repeated runs, product")
@pytest.mark.parametrize("quantity", [audit_epsilon, audit_gaussian_dp])
def test_product(benchmark, quantity):
    runs = RepeatedRuns(TRUE, 1000, FALSE, 1000)
    found = benchmark(quantity, runs)
    assert (found.lower > quantity(runs, form="two_bounds").lower).mean() > 0.99


@pytest.mark.benchmark(group="audits: 5000 of one run, delta 1e-5")
def test_one_run(benchmark):
    found = benchmark(audit_epsilon, OneRun(CORRECT, 200, 1000), delta=1e-5)
    assert found.lower[:20] == pytest.approx([published_bound(v, 200, 1000, 1e-5) for v in CORRECT[:20]], rel=1e-2)


@pytest.mark.benchmark(group="audits: 5000 of one run, delta 1e-5")
def test_one_run_scipy_50_audits(benchmark):
    benchmark.pedantic(lambda: [published_bound(v, 200, 1000, 1e-5) for v in CORRECT[:50]], rounds=2)


@pytest.mark.benchmark(group="audits: 5000 of one run, Gaussian")
def test_one_run_gaussian(benchmark):
    found = benchmark.pedantic(audit_gaussian_dp, (OneRun(CORRECT, 200, 1000),), rounds=3)
    assert (found.lower > 0).all()


@pytest.mark.benchmark(group="audits: 5000 of 1000 scores")
def test_scores(benchmark):
    member = RNG.random((5000, 1000)) < 0.5
    scores = RNG.normal(size=(5000, 1000)) + member
    found = benchmark.pedantic(audit_scores, (scores, member), rounds=1)
    assert (found.mu.lower > 1.0).mean() < 0.05
