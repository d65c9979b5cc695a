"""Exact intervals for a probability: coverage summed over every count, never below the level."""

import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.sampling.statistics.intervals import binomial_interval
from sizes import few_first


@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@pytest.mark.parametrize("trials", few_first([1, 5, 30, 200, 1000], 4))
def test_coverage_is_never_below_the_level(trials, side, confidence):
    hits = np.arange(trials + 1)
    value, lower, upper = binomial_interval(hits, trials, confidence, side)
    truths = np.unique(np.r_[np.geomspace(1e-9, 0.5, 150), 1 - np.geomspace(1e-9, 0.5, 150), lower, upper])
    truths = truths[(truths > 0) & (truths < 1)]
    mass = stats.binom.pmf(hits[:, None], trials, truths)
    inside = (lower[:, None] <= truths) & (truths <= upper[:, None])
    coverage = (mass * inside).sum(axis=0)
    worst = coverage.argmin()
    assert coverage[worst] >= confidence - 1e-12, (truths[worst], coverage[worst], confidence)
    assert ((lower <= value) & (value <= upper)).all()


@pytest.mark.parametrize(("hits", "trials"), [(1, 10), (3, 1000), (500, 1000), (7, 10**9), (10**6, 10**12)])
def test_ends_are_where_the_tails_have_their_mass(hits, trials):
    for confidence in (0.9, 0.999):
        _, lower, upper = binomial_interval(hits, trials, confidence)
        spent = 0.5 * (1 - confidence)
        assert stats.beta.cdf(lower, hits, trials - hits + 1) == pytest.approx(spent, rel=1e-6)
        assert stats.beta.sf(upper, hits + 1, trials - hits) == pytest.approx(spent, rel=1e-6)
        assert stats.beta.cdf(lower, hits, trials - hits + 1) <= spent * (1 + 1e-9)


def test_nothing_and_everything():
    assert binomial_interval(0, 1000, 0.95, "upper") == (0.0, 0.0, pytest.approx(1 - 0.05**0.001, rel=1e-9))
    assert binomial_interval(1000, 1000, 0.95, "lower") == (1.0, pytest.approx(0.05**0.001, rel=1e-9), 1.0)
    assert binomial_interval(0, 10**15, 0.95).upper == pytest.approx(-np.log(0.025) / 1e15, rel=1e-6)


def test_shapes_broadcast():
    value, lower, upper = binomial_interval(np.arange(3)[:, None], [10, 100], 0.9)
    assert value.shape == lower.shape == upper.shape == (3, 2)
    assert binomial_interval(2, 100, 0.9) == (value[2, 1], lower[2, 1], upper[2, 1])


def test_what_is_refused():
    with pytest.raises(DomainError, match="trials must be whole numbers of at least 1"):
        binomial_interval(0, 0, 0.9)
    with pytest.raises(DomainError, match="hits must be whole numbers of at least 0"):
        binomial_interval(0.5, 2, 0.9)
    with pytest.raises(DomainError, match="trials - hits must be at least 0"):
        binomial_interval(3, 2, 0.9)
    with pytest.raises(ShapeError, match="shape that broadcasts with trials"):
        binomial_interval([1, 2], [3, 4, 5], 0.9)
