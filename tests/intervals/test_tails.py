"""The tail index finds the tails it is asked about, and the verdict keeps the intervals honest; collectors add up."""

import math

import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError
from fastpriv.errors import SamplingWarning, ShapeError
from fastpriv.sampling.statistics.intervals import replicate_interval
from fastpriv.sampling.statistics.tail_index import LargestValues, PointMoments, tail_index, tail_verdict
from oracles.counting import allowed, surely_fails


@pytest.mark.parametrize("k", [-0.5, 0.0, 0.3, 0.5, 0.7, 1.0, 1.5])
def test_the_index_of_a_generalised_pareto_law(k):
    """Error against the asymptotic standard deviation (1 + k) / sqrt(m) of the best estimate, Smith 1987."""
    m, lists = 500, 400
    draws = stats.genpareto.rvs(k, size=(lists, m), random_state=np.random.default_rng(1))
    found = tail_index(np.concatenate([np.zeros((lists, 1)), draws], axis=1))
    shrunk = (m * k + 5.0) / (m + 10.0)
    spread = max(1.0 + k, 0.6) / math.sqrt(m)
    assert abs(np.median(found) - shrunk) < 0.35 * spread
    assert found.std() < 1.25 * spread


def test_scale_and_place_do_not_matter():
    x = 3.0 + np.random.default_rng(2).pareto(2.0, 400)
    for scale in (1e-300, 1e-12, 1e290):
        assert float(tail_index(x * scale)) == pytest.approx(float(tail_index(x)), rel=1e-9)
    assert float(tail_index(x + 1e3)) == pytest.approx(float(tail_index(x)), rel=1e-6)


# law of one value: draws, its mean, and how often a verdict may be what it should not be
LAWS = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0, "holds"),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0, "holds"),
    "log-normal 1": (lambda rng, size: np.exp(rng.normal(size=size)), math.exp(0.5), "holds"),
    "hits, 1 in 1000": (lambda rng, size: (rng.random(size) < 1e-3) * 1.0, 1e-3, "holds"),
    "Pareto 6": (lambda rng, size: rng.pareto(6.0, size), 0.2, "holds"),
    "Pareto 2": (lambda rng, size: rng.pareto(2.0, size), 1.0, "warn"),
    "log-normal 2": (lambda rng, size: np.exp(2 * rng.normal(size=size)), math.exp(2.0), "warn"),
    "log-normal 3": (lambda rng, size: np.exp(3 * rng.normal(size=size)), math.exp(4.5), "unknown"),
    "Pareto 1.1": (lambda rng, size: rng.pareto(1.1, size), 10.0, "unknown"),
    "Cauchy": (lambda rng, size: rng.standard_cauchy(size), math.nan, "unknown"),
}


def whole_way(law, runs, replicates, points, seed):
    """Verdicts and misses at 0.95 of runs that go the whole way from points to interval."""
    draw, truth, _ = LAWS[law]
    rng = np.random.default_rng([seed, *law.encode()])
    verdicts, missed = [], []
    for _ in range(runs):
        values = draw(rng, (replicates, points))
        top, moments = LargestValues(), PointMoments()
        top.update(np.abs(values.ravel()))
        moments.update(values.ravel())
        found = replicate_interval(values.mean(axis=1), 0.95, points=points, skewness=moments.skewness[0])
        verdicts.append(tail_verdict(top.index()))
        missed.append(not found.lower <= truth <= found.upper)
    return np.array(verdicts), np.array(missed)


@pytest.mark.few(2)
@pytest.mark.parametrize("law", LAWS)
def test_verdicts(law):
    verdicts, missed = whole_way(law, 60, 16, 1000, 3)
    expected = LAWS[law][2]
    assert (verdicts == expected).mean() > 0.85, dict(zip(*np.unique(verdicts, return_counts=True), strict=True))
    if expected == "holds":
        assert int(missed.sum()) <= allowed(60, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_where_the_verdict_is_that_the_interval_holds_it_does(law):
    """16 replicates of 4000 points: false alarms below 2 %, heavy tails always found, coverage where it holds."""
    verdicts, missed = whole_way(law, 2000, 16, 4000, 4)
    expected = LAWS[law][2]
    holds = verdicts == "holds"
    if expected == "holds":
        assert holds.mean() > 0.98
        assert int(missed[holds].sum()) <= allowed(int(holds.sum()), 0.95)
    if expected == "unknown":
        assert not holds.any()
        assert (verdicts == "unknown").mean() > 0.95
    if law == "Pareto 1.1":
        assert surely_fails(int(missed.sum()), 2000, 0.95), "the interval itself does not hold here"


def test_lists_of_every_kind():
    many = np.zeros(400)
    assert float(tail_index(many)) == -math.inf
    many[:200] = 1.0
    assert float(tail_index(many)) < -2.0
    many[0] = math.inf
    assert float(tail_index(many)) == math.inf
    few = np.zeros(400)
    few[:5] = np.arange(1.0, 6.0)
    assert math.isnan(float(tail_index(few)))
    assert tail_index(np.random.default_rng(5).pareto(1.0, (2, 3, 50))).shape == (2, 3)


def test_verdicts_of_indices():
    assert tail_verdict(-math.inf) == tail_verdict([0.1, 0.39]) == "holds"
    assert tail_verdict([0.1, 0.4]) == tail_verdict(math.nan) == tail_verdict(0.69) == "warn"
    assert tail_verdict([0.0, 0.7]) == tail_verdict(math.inf) == "unknown"
    assert issubclass(SamplingWarning, UserWarning)


def test_collectors_of_tiles_add_up():
    x = np.random.default_rng(6).standard_cauchy((5000, 3))
    whole, parts = LargestValues(200, 3), LargestValues(200, 3)
    moments, tiles = PointMoments(3), PointMoments(3)
    whole.update(x)
    moments.update(x)
    for first, last in ((0, 10), (10, 10), (10, 3000), (3000, 5000)):
        tile, part = LargestValues(200, 3), PointMoments(3)
        tile.update(x[first:last])
        part.update(x[first:last])
        parts.merge(tile)
        tiles.merge(part)
    np.testing.assert_array_equal(whole.values, parts.values)
    np.testing.assert_array_equal(whole.values, np.sort(x, axis=0)[-200:].T)
    np.testing.assert_array_equal(whole.index(), parts.index())
    assert whole.count == parts.count == moments.count == tiles.count == 5000
    np.testing.assert_allclose(tiles.mean, x.mean(axis=0), rtol=1e-11)
    np.testing.assert_allclose(tiles.variance, x.var(axis=0), rtol=1e-11)
    np.testing.assert_allclose(tiles.skewness, stats.skew(x, axis=0), rtol=1e-9)
    np.testing.assert_allclose(moments.skewness, stats.skew(x, axis=0), rtol=1e-9)


def test_collectors_with_little_or_infinite():
    assert math.isnan(LargestValues().index()[0])
    top, moments = LargestValues(20), PointMoments()
    top.update(np.array([1.0, math.nan, 3.0]))
    assert top.values[0, -1] == math.inf
    moments.update(np.array([1.0, math.inf, 3.0]))
    assert moments.skewness[0] == 0.0
    moments = PointMoments()
    moments.update(np.full(10, 3.0))
    assert (moments.mean[0], moments.variance[0], moments.skewness[0]) == (3.0, 0.0, 0.0)


def test_what_is_refused():
    with pytest.raises(ShapeError, match="top_values must have at least 9 values in a list"):
        tail_index(np.arange(8.0))
    with pytest.raises(DomainError, match="top_values must be numbers"):
        tail_index([math.nan] * 20)
    with pytest.raises(DomainError, match="keep must be an integer of at least 2"):
        LargestValues(1)
