"""A guaranteed interval for a bounded mean beside what a user would write: width and time of 100,000 observations.

Run: pytest benches/bench_intervals.py
"""

import math

import numpy as np
import pytest

from fastpriv.sampling.statistics.confidence_sequences import BoundedMean

N = 100_000
LAWS = {
    "one in a hundred": lambda rng: (rng.random(N) < 0.01) * 1.0,
    "a fair coin": lambda rng: (rng.random(N) < 0.5) * 1.0,
    "beta(10, 30)": lambda rng: rng.beta(10.0, 30.0, N),
    "beta(1000, 3000)": lambda rng: rng.beta(1000.0, 3000.0, N),
}


def bets(x):
    """Ours: holds at any time."""
    mean = BoundedMean()
    mean.update(x)
    _, lower, upper = mean.interval(0.95)
    return upper - lower


def empirical_bernstein(x):
    """Maurer and Pontil 2009, theorem 4, on both sides: holds at one time that is fixed in advance."""
    log = math.log(4 / 0.05)
    return 2 * (math.sqrt(2 * x.var(ddof=1) * log / len(x)) + 7 * log / (3 * (len(x) - 1)))


def predictable_bernstein(x):
    """Waudby-Smith and Ramdas 2023, theorem 2: holds at any time."""
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    variance = np.r_[0.25, ((0.25 + np.cumsum((x - mean) ** 2)) / (t + 1))[:-1]]
    bet = np.minimum(np.sqrt(2 * math.log(40) / (variance * t * np.log1p(t))), 0.5)
    cost = (x - np.r_[0.5, mean[:-1]]) ** 2 * (-np.log1p(-bet) - bet)
    return 2 * (math.log(40) + cost.sum()) / bet.sum()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("way", [bets, empirical_bernstein, predictable_bernstein])
def test_bounded_mean(benchmark, law, way):
    x = LAWS[law](np.random.default_rng(1))
    student = 2 * 1.96 * x.std() / math.sqrt(N)
    assert bets(x) < 1.9 * student
    assert bets(x) < predictable_bernstein(x)
    benchmark.group = f"bounded mean, {law}"
    benchmark.extra_info["width over Student's"] = benchmark(way, x) / student
