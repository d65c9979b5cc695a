"""Replicate and stage intervals miss no more often than they say: thousands of runs, judged by a binomial region."""

import math

import numpy as np
import pytest
from scipy import special
from scipy.stats import qmc

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.sampling.statistics.intervals import analysis_confidence, replicate_interval, stage_interval
from fastpriv.sampling.statistics.tail_index import PointMoments
from oracles.counting import allowed, surely_fails
from sizes import few_first

LEVELS = (0.90, 0.95, 0.99, 0.999)
RUNS = 4_000


def lognormal(sigma):
    w = math.exp(sigma**2)
    return lambda rng, size: np.exp(sigma * rng.normal(size=size)), math.sqrt(w), (w + 2) * math.sqrt(w - 1)


# law of one replicate mean: draws, mean, skewness
LAWS = {
    "normal": (lambda rng, size: rng.normal(size=size), 0.0, 0.0),
    "uniform": (lambda rng, size: rng.random(size), 0.5, 0.0),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0, 2.0),
    "minus exponential": (lambda rng, size: -rng.exponential(size=size), -1.0, -2.0),
    "gamma 10": (lambda rng, size: rng.gamma(10.0, size=size), 10.0, 2 / math.sqrt(10)),
    "one hit a replicate": (lambda rng, size: rng.poisson(1.0, size) / 1.0, 1.0, 1.0),
    "five hits a replicate": (lambda rng, size: rng.poisson(5.0, size) / 1.0, 5.0, 1 / math.sqrt(5)),
    "half hits": (lambda rng, size: rng.binomial(20, 0.5, size) / 20, 0.5, 0.0),
    "beta": (lambda rng, size: rng.beta(2.0, 5.0, size), 2 / 7, 0.5962847939999439),
    "log-normal 1/2": lognormal(0.5),
    "log-normal 1": lognormal(1.0),
    "Student 3": (lambda rng, size: rng.standard_t(3, size), 0.0, 0.0),
    "Pareto 4": (lambda rng, size: rng.pareto(4.0, size), 1 / 3, 5 * math.sqrt(2)),
    "arcsine": (lambda rng, size: np.cos(np.pi * rng.random(size)), 0.0, 0.0),
}


def check_misses(lower, upper, truth, confidence, what):
    misses = int(((truth < lower) | (truth > upper)).sum())
    runs = np.size(lower)
    most = allowed(runs, confidence)
    assert misses <= most, f"{what}: {misses} misses of {runs} at {confidence}, at most {most} are allowed"
    return misses


def check_intervals(law, replicates, levels, runs, seed):
    draw, truth, skewness = LAWS[law]
    rng = np.random.default_rng([seed, replicates, *law.encode()])
    means = draw(rng, (replicates, runs))
    for confidence in levels:
        for side in ("both", "lower", "upper"):
            _, lower, upper = replicate_interval(means, confidence, side, skewness=skewness)
            check_misses(lower, upper, truth, confidence, f"{law}, R = {replicates}, {side}")


@pytest.mark.few(3)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("replicates", few_first([32, 16], 1))
def test_replicates_of_a_known_skewness(law, replicates):
    check_intervals(law, replicates, LEVELS, RUNS, 1)


@pytest.mark.parametrize("law", sorted(set(LAWS) - {"one hit a replicate", "exponential", "minus exponential"}))
def test_eight_replicates_carry_99_percent(law):
    check_intervals(law, 8, LEVELS[:3], RUNS, 2)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("replicates", [16, 32, 64])
def test_replicates_of_a_known_skewness_at_length(law, replicates):
    check_intervals(law, replicates, LEVELS, 100_000, 3)


def student(means, confidence):
    """The plain interval, without the term for skewness."""
    count = len(means)
    half = special.stdtrit(count - 1, 0.5 + 0.5 * confidence) * means.std(axis=0, ddof=1) / math.sqrt(count)
    return means.mean(axis=0) - half, means.mean(axis=0) + half


def normal(means, confidence):
    half = special.ndtri(0.5 + 0.5 * confidence) * means.std(axis=0, ddof=1) / math.sqrt(len(means))
    return means.mean(axis=0) - half, means.mean(axis=0) + half


@pytest.mark.parametrize(
    ("naive", "law", "confidence"),
    [(normal, "normal", 0.95), (normal, "normal", 0.999), (student, "exponential", 0.95),
     (student, "one hit a replicate", 0.999), (student, "log-normal 1/2", 0.99), (normal, "arcsine", 0.999)],
)
def test_where_the_usual_intervals_fail(naive, law, confidence):
    draw, truth, skewness = LAWS[law]
    means = draw(np.random.default_rng([4, *law.encode()]), (16, 40_000))
    lower, upper = naive(means, confidence)
    assert surely_fails(int(((truth < lower) | (truth > upper)).sum()), 40_000, confidence)
    _, lower, upper = replicate_interval(means, confidence, skewness=skewness)
    check_misses(lower, upper, truth, confidence, law)


@pytest.mark.parametrize("replicates", [16, 32])
@pytest.mark.parametrize("hits", few_first([1, 5, 100, 2, 3, 10, 30], 3))
def test_rare_hits_with_the_skewness_that_the_points_show(hits, replicates):
    """Bounded by 0 and 1, hit so rarely that many runs see nothing: the rule of three is part of the interval."""
    rng, points = np.random.default_rng([5, hits, replicates]), 1000
    truth = hits / (points * replicates)
    means = rng.binomial(points, truth, (replicates, RUNS)) / points
    share = means.mean(axis=0)
    skewness = (1 - 2 * share) / np.sqrt(np.maximum(share * (1 - share), 1e-300))
    for confidence in LEVELS:
        for side in ("both", "lower", "upper"):
            _, lower, upper = replicate_interval(
                means, confidence, side, low=0.0, high=1.0, points=points, skewness=np.where(share > 0, skewness, 0.0)
            )
            check_misses(lower, upper, truth, confidence, f"{hits} hits, R = {replicates}, {side}")


@pytest.mark.parametrize("law", ["log-normal 1", "Student 3", "exponential"])
def test_the_whole_way_from_points(law):
    draw, truth, _ = LAWS[law]
    rng, runs, points = np.random.default_rng([6, *law.encode()]), 2000, 64
    values = draw(rng, (16, points, runs))
    moments = PointMoments(runs)
    moments.update(values.reshape(-1, runs))
    for confidence in LEVELS:
        _, lower, upper = replicate_interval(values.mean(axis=1), confidence, points=points, skewness=moments.skewness)
        check_misses(lower, upper, truth, confidence, law)


def quasi_random(rng, dimension, points, count):
    """Scrambled Sobol points, and the sum of their normals over sqrt(dimension): shape (points, count)."""
    nets = [qmc.Sobol(dimension, scramble=True, seed=rng).random(points) for _ in range(count)]
    z = special.ndtri(np.clip(nets, 1e-12, 1 - 1e-12))
    return z.sum(axis=2).T / math.sqrt(dimension)


_HOCKEY = special.ndtr(-1.5) - math.e**2 * special.ndtr(-2.5)
INTEGRANDS = {
    "linear": (lambda z: z, 0.0),
    "exponential": (np.exp, math.exp(0.5)),
    "square": (lambda z: z * z, 1.0),
    "hockey stick": (lambda z: np.maximum(0.0, 1.0 - np.exp(1.5 - z)), _HOCKEY),
}


def quasi_random_runs(dimension, points, replicates, runs, seed):
    z = quasi_random(np.random.default_rng([seed, dimension, points]), dimension, points, replicates * runs)
    for name, (f, truth) in INTEGRANDS.items():
        values = f(z)
        moments = PointMoments(runs)
        moments.update(values.reshape(-1, runs))
        yield name, truth, values.mean(axis=0).reshape(replicates, runs), moments


@pytest.mark.slow
@pytest.mark.parametrize(("dimension", "points"), [(1, 64), (2, 256), (6, 128)])
@pytest.mark.parametrize("replicates", [16, 32])
def test_replicates_of_quasi_random_points(dimension, points, replicates):
    """Variances lowered up to a thousandfold, and what is left is skew: the points' spread tells."""
    failed = 0
    for name, truth, means, moments in quasi_random_runs(dimension, points, replicates, 1000, 10):
        for confidence in (0.90, 0.95, 0.99):
            _, lower, upper = replicate_interval(
                means, confidence, points=points, skewness=moments.skewness, deviation=np.sqrt(moments.variance)
            )
            check_misses(lower, upper, truth, confidence, f"{name}, d = {dimension}, R = {replicates}")
            lower, upper = student(means, confidence)
            failed += surely_fails(int(((truth < lower) | (truth > upper)).sum()), 1000, confidence)
    assert dimension > 1 or failed


def test_the_spread_of_the_points_widens_only_where_it_is_larger():
    means = np.random.default_rng(11).exponential(size=16)
    plain = replicate_interval(means, 0.99, points=100, skewness=20.0)
    spread = means.std(ddof=1)
    assert replicate_interval(means, 0.99, points=100, skewness=20.0, deviation=5 * spread) == plain
    wider = replicate_interval(means, 0.99, points=100, skewness=20.0, deviation=20 * spread)
    quantile = -special.stdtrit(15, 0.005)
    extra = spread / 4 * (1 + 2 * quantile**2) / 6 * 2.0 * (20.0 / 10 / 4)
    assert wider.upper - plain.upper == pytest.approx(extra, rel=1e-9)
    assert wider.lower == plain.lower


SCHEDULE = [(100, 16), (200, 16), (400, 16), (800, 16), (1600, 16)]


@pytest.mark.few(2)
@pytest.mark.parametrize("law", ["normal", "exponential", "one hit a replicate"])
@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_a_run_that_stops_when_its_interval_is_narrow(law, confidence):
    """The interval at the stop, and the worst interval of the run, miss no more often than stated."""
    draw, truth, skewness = LAWS[law]
    rng, runs = np.random.default_rng([7, *law.encode()]), 3_000
    stages, worst, running = [], np.zeros(runs, bool), np.ones(runs, bool)
    stopped, naive_worst = np.zeros(runs, bool), np.zeros(runs, bool)
    for look, (points, replicates) in enumerate(SCHEDULE, start=1):
        unit = points // 100  # 100 points are one draw of the law
        stages.append((points, draw(rng, (unit, replicates, runs)).mean(axis=0)))
        level = analysis_confidence(confidence, look)
        value, lower, upper = stage_interval(stages, level, skewness=skewness * 10)
        missed = (truth < lower) | (truth > upper)
        worst |= missed
        narrow = running & ((upper - lower < 0.5 * np.abs(value)) | (look == len(SCHEDULE)))
        stopped |= narrow & missed
        running &= ~narrow
        _, lower, upper = stage_interval(stages, confidence, skewness=skewness * 10)
        naive_worst |= (truth < lower) | (truth > upper)
    assert not running.any()
    most = allowed(runs, confidence)
    assert stopped.sum() <= worst.sum() <= most
    if law == "normal":
        assert surely_fails(int(naive_worst.sum()), runs, confidence), "looks must cost something"


@pytest.mark.parametrize("confidence", LEVELS)
def test_stages_of_unequal_spread(confidence):
    """Welch's degrees of freedom: the second stage far less noisy, or far noisier, than its size says."""
    rng = np.random.default_rng(8)
    for ratio in (0.1, 1.0, 10.0):
        stages = [(100, rng.normal(size=(16, RUNS))), (300, ratio * rng.normal(size=(16, RUNS)))]
        for side in ("both", "lower", "upper"):
            value, lower, upper = stage_interval(stages, confidence, side)
            check_misses(lower, upper, 0.0, confidence, f"spread {ratio}, {side}")
        np.testing.assert_allclose(value, 0.25 * stages[0][1].mean(axis=0) + 0.75 * stages[1][1].mean(axis=0))


def test_looks_spend_no_more_than_there_is():
    for confidence in LEVELS:
        spent = sum(1.0 - analysis_confidence(confidence, look) for look in range(1, 2_000))
        assert spent <= (1.0 - confidence) * (1 + 1e-9)
        assert 1.0 - analysis_confidence(confidence, 1) == pytest.approx(0.75 * (1.0 - confidence))


def test_stages_of_one_size_are_one_stage_and_columns_are_alone():
    rng = np.random.default_rng(9)
    means = rng.exponential(size=(24, 5))
    whole = replicate_interval(means, 0.99)
    parts = stage_interval([(7, means[:16]), (7, means[16:])], 0.99)
    for a, b in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(a, b)
    single = replicate_interval(means[:, 3], 0.99)
    assert single == tuple(float(x[3]) for x in whole)
    assert single.value == pytest.approx(means[:, 3].mean(), rel=1e-14)


def test_equal_replicates_are_no_certainty():
    flat = np.full(16, 0.25)
    assert replicate_interval(flat, 0.95) == (0.25, -math.inf, math.inf)
    value, lower, upper = replicate_interval(flat, 0.95, low=0.0, high=1.0)
    mass = 1 - 0.025 ** (1 / 16)
    assert (value, lower, upper) == (0.25, pytest.approx(0.25 * (1 - mass)), pytest.approx(0.25 + 0.75 * mass))
    none = np.zeros(16)
    dependent = replicate_interval(none, 0.95, "upper", low=0.0, high=1.0, points=1000)
    assert (dependent.lower, dependent.upper) == (0.0, pytest.approx(1 - 0.05 ** (1 / 16)))
    apart = stage_interval([(10, none), (20, none + 0.25)], 0.95, low=0.0, high=1.0)
    assert apart.value == pytest.approx(1 / 6)
    assert apart[1:] == (apart.value, pytest.approx(0.25 + 0.75 * mass))
    assert stage_interval([(10, none), (20, none + 0.25)], 0.95)[1:] == (-math.inf, math.inf)


def test_infinite_replicates_are_an_answer():
    means = np.array([[0.0, 1.0, 1.0, 0.5], [1.0, math.inf, 2.0, 3.0], [1.0, math.inf, -math.inf, 3.0]]).T
    value, lower, upper = replicate_interval(means, 0.95)
    assert (value[1], lower[1], upper[1]) == (math.inf, math.inf, math.inf)
    assert (lower[2], upper[2]) == (-math.inf, math.inf)
    assert (value[0], lower[0], upper[0]) == tuple(replicate_interval(means[:, 0], 0.95))
    assert (replicate_interval([1.0, math.inf, 2.0], 0.9)) == (math.inf, math.inf, math.inf)
    assert (replicate_interval([1.0, -math.inf, 2.0], 0.9)) == (-math.inf, -math.inf, -math.inf)


def test_sides_and_ranges():
    means = np.array([0.1, 0.2, 0.0, 0.1])
    both = replicate_interval(means, 0.9, low=0.0, high=1.0)
    lower = replicate_interval(means, 0.95, "lower", low=0.0, high=1.0)
    upper = replicate_interval(means, 0.95, "upper", low=0.0, high=1.0)
    assert (lower.lower, upper.upper) == (pytest.approx(both.lower), pytest.approx(both.upper))
    assert (lower.upper, upper.lower) == (1.0, 0.0)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e30, 1e300])
def test_any_scale(scale):
    means = np.array([1.0, 2.0, 3.0, 2.0, 2.5])
    plain, scaled = replicate_interval(means, 0.99), replicate_interval(means * scale, 0.99)
    np.testing.assert_allclose(np.array(scaled) / scale, plain, rtol=1e-12)


def test_what_is_refused():
    with pytest.raises(DomainError, match="means must be numbers; got nan at index 1"):
        replicate_interval([1.0, math.nan], 0.95)
    with pytest.raises(ShapeError, match="of shape .R,. or .R, e. with R of at least 2"):
        replicate_interval([1.0], 0.95)
    with pytest.raises(ShapeError, match="stages must have at least one entry"):
        stage_interval([], 0.95)
    with pytest.raises(DomainError, match="confidence must be between 0 and 1, exclusive"):
        replicate_interval([1.0, 2.0], 1.0)
    with pytest.raises(DomainError, match="side must be one of both, lower, upper"):
        replicate_interval([1.0, 2.0], 0.9, "left")
    with pytest.raises(DomainError, match="analysis must be an integer of at least 1"):
        analysis_confidence(0.9, 0)
