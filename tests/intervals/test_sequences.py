"""Bounds that hold at every moment: misses are counted at the worst time of each run, judged by a binomial region."""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from fastpriv import DomainError
from fastpriv.errors import ShapeError
from fastpriv.sampling.statistics import confidence_sequences
from fastpriv.sampling.statistics.confidence_sequences import BoundedMean, tail_excess
from oracles.counting import allowed, surely_fails

LEVELS = (0.90, 0.95, 0.99, 0.999)
LOOKS = (4, 10, 30, 100, 300, 1000)


def two_values(rng, size):
    """Nearly all of the mean in a value that comes once in a hundred draws: the law that fools a small sample."""
    return np.where(rng.random(size) < 0.01, 1.0, 0.001)


BOUNDED = {
    "one in a thousand": (lambda rng, size: (rng.random(size) < 1e-3) * 1.0, 1e-3),
    "one in a hundred": (lambda rng, size: (rng.random(size) < 1e-2) * 1.0, 1e-2),
    "one in ten": (lambda rng, size: (rng.random(size) < 0.1) * 1.0, 0.1),
    "a fair coin": (lambda rng, size: (rng.random(size) < 0.5) * 1.0, 0.5),
    "nine in ten": (lambda rng, size: (rng.random(size) < 0.9) * 1.0, 0.9),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "beta, narrow": (lambda rng, size: rng.beta(30.0, 90.0, size), 0.25),
    "beta, at the ends": (lambda rng, size: rng.beta(0.05, 0.2, size), 0.2),
    "rare large": (two_values, 0.01099),
    "tiny": (lambda rng, size: 1e-6 * rng.exponential(size=size).clip(max=1e6), 1e-6),
}


def misses_at_any_time(draw, truth, confidence, side, runs, seed, looks=LOOKS):
    rng = np.random.default_rng([seed, *str(truth).encode()])
    mean = BoundedMean(runs)
    missed = np.zeros(runs, bool)
    for before, after in zip((0, *looks), looks, strict=False):
        mean.update(draw(rng, (after - before, runs)))
        value, lower, upper = mean.interval(confidence, side)
        assert ((lower <= value) & (value <= upper)).all()
        missed |= (truth < lower) | (truth > upper)
    return int(missed.sum())


@pytest.mark.few(4)
@pytest.mark.parametrize("law", BOUNDED)
@pytest.mark.parametrize("confidence", [0.90, 0.99])
def test_misses_at_the_worst_time(law, confidence):
    draw, truth = BOUNDED[law]
    assert misses_at_any_time(draw, truth, confidence, "both", 250, 1) <= allowed(250, confidence)


@pytest.mark.slow
@pytest.mark.parametrize("law", BOUNDED)
def test_misses_at_the_worst_time_at_length(law):
    draw, truth = BOUNDED[law]
    runs, before, rng = 2000, 0, np.random.default_rng([2, *law.encode()])
    mean = BoundedMean(runs)
    missed = {(level, side): np.zeros(runs, bool) for level in LEVELS for side in ("both", "lower", "upper")}
    for after in np.unique(np.geomspace(1, 1500, 14).astype(int)):
        mean.update(draw(rng, (after - before, runs)))
        before = after
        for (level, side), found in missed.items():
            _, lower, upper = mean.interval(level, side)
            found |= (truth < lower) | (truth > upper)
    for (level, side), found in missed.items():
        assert found.sum() <= allowed(runs, level), (level, side)


def test_a_normal_interval_that_is_looked_at_again_and_again_fails_where_the_bets_hold():
    runs, confidence, rng = 400, 0.95, np.random.default_rng(3)
    x = rng.random((1000, runs))
    n = np.arange(1, 1001)[:, None]
    mean = np.cumsum(x, axis=0) / n
    half = stats.norm.isf(0.025) * np.sqrt(np.maximum(np.cumsum(x * x, axis=0) / n - mean**2, 0.0) / n)
    assert surely_fails(int((np.abs(mean - 0.5) > half)[30:].any(axis=0).sum()), runs, confidence)
    assert misses_at_any_time(lambda rng, size: rng.random(size), 0.5, confidence, "both", runs, 3) <= allowed(
        runs, confidence
    )


def test_one_look_at_rare_events_where_the_normal_interval_fails():
    runs, n, truth = 800, 1000, 2e-3
    x = (np.random.default_rng(4).random((n, runs)) < truth) * 1.0
    mean = BoundedMean(runs)
    mean.update(x)
    value, lower, upper = mean.interval(0.95)
    half = stats.norm.isf(0.025) * np.sqrt(value * (1 - value) / n)
    assert surely_fails(int((np.abs(value - truth) > half).sum()), runs, 0.95)
    assert int(((truth < lower) | (truth > upper)).sum()) <= allowed(runs, 0.95)


def test_one_point_of_each_stratum_and_antithetic_pairs():
    """Means that differ within a batch, and average to the mean over it: the proof covers them, the counts agree."""
    runs, strata, rng = 200, 16, np.random.default_rng(5)
    mean = BoundedMean(runs)
    missed = np.zeros(runs, bool)
    for _ in range(30):
        u = (np.arange(strata)[:, None] + rng.random((strata, runs))) / strata
        mean.update(u**3)
        _, lower, upper = mean.interval(0.90)
        missed |= (lower > 0.25) | (upper < 0.25)
    assert missed.sum() <= allowed(runs, 0.90)


@pytest.mark.parametrize("chance", [1e-4, 1e-3, 0.05])
@pytest.mark.slow
def test_batches_of_strata_hold_at_any_time(chance):
    """Points of strata beside their means: rare hits, in one stratum alone, and values that differ between strata."""
    runs, strata, rng = 60, 16, np.random.default_rng([16, round(1e6 * chance)])
    states = [BoundedMean(2, batch=strata) for _ in range(runs)]
    truth = np.array([chance / strata, 0.25])
    missed = np.zeros(runs, bool)
    for count in (20, 400):
        for run, state in enumerate(states):
            u = (np.arange(strata)[:, None] + rng.random((strata, count))) / strata
            hits = np.zeros((strata, count))
            hits[3] = rng.random(count) < chance
            state.update_batches(np.stack([hits, u**3]))
            _, lower, upper = state.interval(0.90)
            missed[run] |= bool(((lower > truth) | (upper < truth)).any())
    assert missed.sum() <= allowed(runs, 0.80)  # two intervals each


def test_batches_bound_what_is_never_hit_by_their_points_and_what_varies_by_their_means():
    alone, batched = BoundedMean(), BoundedMean(1, batch=16)
    alone.update(np.zeros(16_000))
    batched.update_batches(np.zeros((1, 16, 1000)))
    assert batched.count == alone.count == 16_000
    assert batched.interval(0.95).upper[0] < 1.15 * alone.interval(0.95).upper
    u = (np.arange(16)[:, None] + np.random.default_rng(17).random((16, 1000))) / 16
    alone, batched = BoundedMean(), BoundedMean(1, batch=16)
    alone.update(u.ravel())
    batched.update_batches(u[None, :, :600])
    other = BoundedMean(1, batch=16)
    other.update_batches(u[None, :, 600:])
    batched.merge(other)
    widths = [np.ptp(np.squeeze(state.interval(0.95)[1:])) for state in (alone, batched)]
    assert widths[1] < 0.5 * widths[0]


def test_the_interval_is_what_exact_sums_of_logarithms_give():
    """An independent twin: the same wealth by fsum, and a plain bisection."""
    x = np.random.default_rng(6).beta(2.0, 6.0, 300)
    mean = BoundedMean()
    for part in np.split(x, [7, 100, 101, 250]):
        mean.update(part)
    exponents = range(-22, 31)
    weights = [1 / (1 + ((j + 3) / 3) ** 2) for j in exponents]

    def log_wealth(y, m):
        terms = [
            math.log(w / math.fsum(weights)) + math.fsum(np.log1p(2.0**j * y)) - len(y) * math.log1p(2.0**j * m)
            for w, j in zip(weights, exponents, strict=True)
        ]
        top = max(terms)
        return top + math.log(math.fsum(math.exp(t - top) for t in terms))

    def floor(y, error):
        start, end = 0.0, float(np.mean(y))
        for _ in range(50):
            middle = 0.5 * (start + end)
            start, end = (middle, end) if log_wealth(y, middle) >= -math.log(error) else (start, middle)
        return start

    value, lower, upper = mean.interval(0.95)
    assert value == pytest.approx(x.mean(), rel=1e-13)
    assert lower == pytest.approx(floor(x, 0.025), rel=1e-9)
    assert lower <= floor(x, 0.025)
    assert upper == pytest.approx(1 - floor(1 - x, 0.025), rel=1e-9)
    assert mean.interval(0.975, "lower").lower == pytest.approx(lower, rel=1e-12)


def test_width_beside_the_student_interval():
    """The price of holding for any law and at any time: about 1.75 times the width at one look."""
    rng, n = np.random.default_rng(7), 20_000
    for x in ((rng.random(n) < 0.01) * 1.0, (rng.random(n) < 0.5) * 1.0, rng.beta(10, 30, n)):
        mean = BoundedMean()
        mean.update(x)
        _, lower, upper = mean.interval(0.95)
        assert 1.4 < (upper - lower) / (2 * stats.norm.isf(0.025) * x.std() / math.sqrt(n)) < 1.95


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (0.0, 1e-30), (5.0, 1e20)])
def test_any_range(low, high):
    x = np.random.default_rng(8).random((500, 3))
    unit, moved = BoundedMean(3), BoundedMean(3, low=low, high=high)
    unit.update(x)
    moved.update(np.clip(low + (high - low) * x, low, high))
    for a, b in zip(unit.interval(0.95), moved.interval(0.95), strict=True):
        np.testing.assert_allclose(low + (high - low) * a, b, rtol=1e-12, atol=1e-12 * (high - low))


def test_states_add_up():
    x = np.random.default_rng(9).random((1000, 2))
    whole, left, right = BoundedMean(2), BoundedMean(2), BoundedMean(2)
    whole.update(x)
    left.update(x[:304])
    right.update(x[304:])
    left.merge(right)
    assert left.count == whole.count == 1000
    for a, b in zip(left.interval(0.99), whole.interval(0.99), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_nothing_seen_and_nothing_hit():
    assert BoundedMean().interval(0.95).lower == 0.0
    assert BoundedMean().interval(0.95).upper == 1.0
    mean = BoundedMean()
    mean.update(np.zeros(10**6))
    value, lower, upper = mean.interval(0.95, "upper")
    assert (value, lower) == (0.0, 0.0)
    assert 3e-6 < upper < 8e-6
    mean = BoundedMean()
    mean.update(np.ones(10**6))
    value, lower, upper = mean.interval(0.95, "lower")
    assert (value, upper) == (1.0, 1.0)
    assert 3e-6 < 1 - lower < 8e-6


OPEN = {
    "log-normal": (lambda rng, size: np.exp(2 * rng.normal(size=size)), math.exp(2.0)),
    "Pareto 1.5": (lambda rng, size: rng.pareto(1.5, size), 2.0),
    "rare": (lambda rng, size: (rng.random(size) < 1e-3) * 1e3, 1.0),
}


@pytest.mark.parametrize("law", OPEN)
@pytest.mark.parametrize("confidence", [0.90, 0.99])
def test_a_lower_bound_needs_no_upper_end(law, confidence):
    draw, truth = OPEN[law]
    rng, runs = np.random.default_rng([10, *law.encode()]), 400
    mean = BoundedMean(runs, high=math.inf)
    missed = np.zeros(runs, bool)
    for _ in range(8):
        mean.update(draw(rng, (150, runs)))
        _, lower, upper = mean.interval(confidence, "lower")
        assert np.isinf(upper).all()
        missed |= lower > truth
    assert missed.sum() <= allowed(runs, confidence)


@pytest.mark.parametrize("side", ["both", "lower", "upper"])
def test_truncation_covers_what_it_cuts(side):
    """KL of N(0, 1) from N(1, 1) with a cut so low that its bias alone would be missed."""
    runs, confidence, rng = 150, 0.95, np.random.default_rng(14)
    state = BoundedMean(runs, low=-3.0, high=1.5)
    state.update(np.clip(0.5 - rng.normal(size=(2000, runs)), -3.0, 1.5))
    _, lower, upper = state.interval(confidence, side)
    # E exp(2 l) = exp(3) under P: the upper excess beyond 1.5 is at most exp(3 - 3) / (2 e); E exp(-l) = 1
    lower, upper = lower - tail_excess(0.0, 1.0, 3.0), upper + tail_excess(3.0, 2.0, 1.5)
    assert ((lower > 0.5) | (upper < 0.5)).sum() <= allowed(runs, confidence)
    _, _, upper = state.interval(confidence)
    assert side != "upper" or surely_fails(int((upper < 0.5).sum()), runs, confidence)


def test_the_excess_beyond_a_cut():
    rng = np.random.default_rng(15)
    for order in (0.5, 1.0, 3.0):
        for cut in (0.0, 1.0, 4.0):
            x = rng.normal(size=200_000)
            truth = np.maximum(x - cut, 0).mean()
            assert truth <= tail_excess(order**2 / 2, order, cut)
    assert tail_excess(0.0, 2.0, 0.5) == pytest.approx(0.5 * math.exp(-2.0))
    assert tail_excess(math.inf, 1.0, 3.0) == math.inf


def test_what_is_refused():
    mean = BoundedMean(2, low=0.0, high=2.0)
    with pytest.raises(DomainError, match=r"values must be between 0.0 and 2.0; got 3.0 at index \(1, 0\) \(1 of 4"):
        mean.update([[0.0, 1.0], [3.0, 1.0]])
    with pytest.raises(DomainError, match="values must be between"):
        mean.update([[math.nan, 1.0]])
    with pytest.raises(ShapeError, match=r"values must be of shape \(n,\) or \(n, 2\)"):
        mean.update([0.0, 1.0])
    with pytest.raises(ShapeError, match="other must be of the range"):
        mean.merge(BoundedMean(2))
    with pytest.raises(DomainError, match="high must be above low"):
        BoundedMean(low=1.0, high=1.0)
    with pytest.raises(DomainError, match="high must be within a finite distance of low"):
        BoundedMean(low=-1e308, high=1e308)
    with pytest.raises(DomainError, match="order must be positive and finite"):
        tail_excess(0.0, 0.0, 1.0)
    mean.update([[-1e-12, 2.0 + 1e-12]])
    assert mean.interval(0.9).value.tolist() == [0.0, 2.0]


def test_the_logarithm_of_the_wealth_is_as_exact_as_its_allowance_after_many_updates():
    """Sums of logarithms grow: a plain sum of 800 of them has lost more than the allowance for its observations."""
    x, m, blocks, size = 0.7, 0.42, 800, 500
    state, block = confidence_sequences.BoundedMean(), np.full(size, x)
    for _ in range(blocks):
        state.update(block)
    found, count = float(state._log_wealth(0, np.array([m]))[0][0]), blocks * size
    with mpmath.workdps(40):
        bets = zip(confidence_sequences._LOG_PRIOR.tolist(), confidence_sequences._BETS.tolist(), strict=True)
        logs = [mpmath.mpf(prior) + count * (mpmath.log1p(mpmath.mpf(b) * x) - mpmath.log1p(mpmath.mpf(b) * m))
                for prior, b in bets]
        truth = mpmath.log(mpmath.fsum(mpmath.exp(log) for log in logs))
    assert abs(found - truth) <= 1e-9 + count * 2.0**-46


def test_the_excess_over_a_threshold_whose_terms_cancel():
    for order in (0.3, 0.7, 0.9):
        threshold = 3e5 / 7
        log_moment = order * threshold
        with mpmath.workdps(40):
            truth = mpmath.exp(mpmath.mpf(log_moment) - mpmath.mpf(order) * threshold - 1) / mpmath.mpf(order)
        assert truth <= tail_excess(log_moment, order, threshold) <= truth * (1 + mpmath.mpf("1e-9")), order
