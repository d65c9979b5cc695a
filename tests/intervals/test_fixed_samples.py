"""Bounds from a fixed number of observations: misses over many seeds, widths, and what holds for any sample."""

import numpy as np
import pytest
from scipy import stats

from fastpriv.kernels import _betting
from fastpriv.sampling.statistics.fixed_samples import bounded_mean_interval, ratio_lower_bound

NORMAL = 2 * stats.norm.isf(0.05)  # width of a normal interval at 0.9, in standard errors


def two_points(rng):
    return np.where(rng.random(150) < 0.03, 1.0, 0.2)  # skewed: a rare high value


def coin(rng):
    return (rng.random(200) < 0.7).astype(float)


def rare(rng):
    return (rng.random(400) < 0.02).astype(float)


def narrow(rng):
    return rng.binomial(12, 0.4, 250) / 12


def few(rng):
    return rng.random(12)


@pytest.mark.few(2)
@pytest.mark.parametrize(("draw", "mean", "deviation", "widest"), [
    (coin, 0.7, np.sqrt(0.21), 1.15), (rare, 0.02, np.sqrt(0.0196), 1.5), (narrow, 0.4, np.sqrt(0.02), 1.42),
    (two_points, 0.224, 0.8 * np.sqrt(0.0291), 1.75), (few, 0.5, np.sqrt(1 / 12), 1.7),
])
def test_both_bounds_miss_no_more_often_than_their_error(draw, mean, deviation, widest):
    seeds, below, above, width = 250, 0, 0, 0.0
    for seed in range(seeds):
        x = draw(np.random.default_rng([seed, 11]))
        found = bounded_mean_interval(x, 0.9)
        assert found.lower <= found.value <= found.upper
        below, above = below + (mean > found.upper), above + (mean < found.lower)
        width += (found.upper - found.lower) / seeds
    assert max(below, above) <= stats.binom.ppf(1 - 1e-4, seeds, 0.05), (below, above)
    assert width <= widest * NORMAL * deviation / np.sqrt(x.size), width / (NORMAL * deviation / np.sqrt(x.size))


@pytest.mark.parametrize(("law", "mean"), [
    (lambda rng, n: rng.random(n) < 0.3, 0.3), (lambda rng, n: 0.6 * (rng.random(n) < 0.5), 0.3),
    (lambda rng, n: rng.beta(0.3, 0.7, n), 0.3), (lambda rng, n: np.where(rng.random(n) < 0.9, 0.2, 1.0), 0.28),
    (lambda rng, n: rng.random(n) < 0.995, 0.995), (lambda rng, n: rng.random(n) < 1e-3, 1e-3),
])
@pytest.mark.parametrize("size", [1, 7, 150])
def test_a_test_of_the_true_mean_refuses_it_with_at_most_its_error(law, mean, size):
    seeds, rng = 1000, np.random.default_rng([5, size])
    refused = 0
    for _ in range(seeds):
        x = np.asarray(law(rng, size), dtype=float)
        refused += _betting.leading_refused(x, np.ones(size), np.array([mean]), 0.1)
    assert refused <= stats.binom.ppf(1 - 1e-5, seeds, 0.1), refused


def test_ratios_of_dependent_sums_keep_their_level():
    """E H / E N where H and N depend on each other, and their ratio is far from the mean of ratios."""
    seeds, missed = 400, 0
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 12])
        big = rng.random(120) < 0.4
        totals = np.where(big, 9, 2)
        hits = rng.binomial(totals, np.where(big, 0.2, 0.7))
        truth = (0.4 * 9 * 0.2 + 0.6 * 2 * 0.7) / (0.4 * 9 + 0.6 * 2)
        missed += ratio_lower_bound(hits, totals, 10.0, 0.1, outcomes=1200) > truth
    assert 0 < missed <= stats.binom.ppf(1 - 1e-4, seeds, 0.1), missed


def test_the_bound_is_the_candidate_before_the_first_that_is_not_refused():
    x = (np.arange(300) * 0.6180339887498949) % 1.0
    candidates = np.linspace(0.01, 0.99, 99)
    leading = _betting.leading_refused(x, np.ones(300), candidates, 0.05)
    alone = [_betting.leading_refused(x, np.ones(300), candidates[i : i + 1], 0.05) for i in range(99)]
    assert 0 < leading < 50
    assert alone[:leading] == [1] * leading
    assert alone[leading] == 0


def test_ends_and_one_side():
    assert bounded_mean_interval(np.zeros(50), 0.95).lower == 0.0
    assert bounded_mean_interval(np.ones(50), 0.95).upper == 1.0
    assert 0.8 < bounded_mean_interval(np.ones(50), 0.95).lower < 0.95
    x = 8.0 * ((np.arange(500) * 0.6180339887498949) % 1.0) - 3.0
    both, lower = (bounded_mean_interval(x, 0.9, low=-3.0, high=5.0, side=side) for side in ("both", "lower"))
    assert both.lower < lower.lower < lower.value
    assert lower.upper == 5.0
    assert _betting.leading_refused(np.zeros(0), np.zeros(0), np.array([0.5]), 0.1) == 0
    with pytest.raises(ValueError, match="h and m must have the same length"):
        _betting.leading_refused(np.zeros(3), np.zeros(2), np.array([0.5]), 0.1)


def test_many_observations_are_grouped(monkeypatch):
    from fastpriv.sampling.statistics import fixed_samples

    x = (np.arange(5000) * 0.6180339887498949) % 1.0
    whole = bounded_mean_interval(x, 0.95)
    monkeypatch.setattr(fixed_samples, "_MOST_UNITS", 1000)
    grouped = bounded_mean_interval(np.random.default_rng(0).permutation(x), 0.95)
    assert abs(grouped.value - whole.value) < 1e-12
    assert grouped.lower < 0.5 < grouped.upper
    assert grouped.upper - grouped.lower < 1.3 * (whole.upper - whole.lower)
