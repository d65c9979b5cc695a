"""Bounds of binomial tails against arithmetic of more digits, and rates that hold whatever SciPy's quantiles say."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from fastpriv.kernels import _binomial_tail
from fastpriv.sampling.statistics.intervals import binomial_tails, least_rates, most_rates
from fastpriv.studies.auditing.one_run import p_value

COUNTS = [(1, 1, 0.25), (1, 10, 1e-9), (10, 10, 1 - 2.0**-40), (3, 7, 0.6), (40, 1000, 0.05), (52, 1000, 0.05),
          (500, 1000, 0.5), (501, 1000, 0.5), (999, 1000, 0.9999), (400, 1000, 0.01), (50_300, 10**5, 0.5),
          (49_900, 10**5, 0.5), (30, 10**12, 1e-11), (10**12 - 3, 10**12, 1 - 2.0**-39), (990, 1000, 0.001),
          (7, 10**15, 2.0**-52), (1, 10**6, 1e-305), (10**6, 10**6, 0.5)]


def series(k, n, x):
    """P(X >= k), and P(X = k), where terms fall from k on."""
    mass = mp.exp(mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1))
    mass *= mp.exp(k * mp.log(x) + (n - k) * mp.log1p(-x))
    total = term = mp.mpf(1)
    for j in range(k, n):
        term *= x / (1 - x) * (n - j) / (j + 1)
        total += term
        if term < total * mp.mpf(10) ** -35:
            break
    return total * mass, mass


def tail(k, n, x):
    """P(X >= k) and P(X = k) to 30 digits."""
    x = mp.mpf(x)
    upper = series(k, n, x)
    if k >= (n + 1) * x:
        return upper
    return 1 - series(n + 1 - k, n, 1 - x)[0], upper[1]


@pytest.mark.parametrize(("k", "n", "x"), COUNTS)
def test_bounds_contain_the_tail_and_are_near_it(k, n, x):
    with mp.workdps(60):
        truth, mass = tail(k, n, x)
        upper, lower, share = (mp.mpf(float(bound)) for bound in binomial_tails(k, n, x, 1.0 - x))
        assert lower <= truth <= upper + mp.mpf(2) ** -1075  # below half the least double the upper bound is 0
        assert share >= truth / (k * mass)
        slack = 1e-11 + 1e-16 * 200 * abs(k - n * mp.mpf(x))
        assert upper <= truth * (1 + slack) + mp.mpf(2) ** -1073
        if mass > 1e-280:
            assert share <= truth / (k * mass) * (1 + slack)
            assert truth < 1e-280 or lower >= truth - slack * min(truth, 1)


def test_the_remainders_of_stirlings_formula_are_those_of_the_table():
    n = np.arange(1.0, 41.0)  # P(X >= n) of n trials has none, P(X >= n - 1) those of n and n - 1
    with mp.workdps(40):
        for k in n[1:].astype(int).tolist():
            truth = tail(k - 1, k, 0.25)[0] if k > 1 else 1
            bounds = binomial_tails(k - 1.0, float(k), 0.25, 0.75)
            assert bounds[1] <= truth <= bounds[0]
            assert bounds[0] / bounds[1] < 1 + 1e-12


def test_rates_are_proved_whatever_the_quantile_says(monkeypatch):
    """A quantile that is a billionth, a half or all too far in is moved out until its tail is small enough."""
    hits, trials = np.array([1.0, 3.0, 40.0, 999.0, 0.0]), np.array([1.0, 10.0, 1000.0, 1000.0, 5.0])
    low_of, high_of = special.betaincinv, special.betainccinv
    right = least_rates(hits, trials, 0.025), most_rates(hits, trials, 0.025)
    assert np.allclose(right[0][:4], low_of(hits[:4], trials[:4] - hits[:4] + 1.0, 0.025), rtol=2e-12)
    for wrong in (1e-9, 0.5, 3.0):
        monkeypatch.setattr(special, "betaincinv", lambda a, b, p, w=wrong: low_of(a, b, p) * (1 + w))
        monkeypatch.setattr(special, "betainccinv", lambda a, b, p, w=wrong: high_of(a, b, p) / (1 + w))
        low, high = least_rates(hits, trials, 0.025), most_rates(hits, trials, 0.025)
        inner = hits > 0
        assert (binomial_tails(hits, trials, low, 1.0 - low)[0][inner] <= 0.025).all()
        inner = hits < trials
        assert (binomial_tails(trials - hits, trials, 1.0 - high, high)[0][inner] <= 0.025).all()
        assert (low <= right[0]).all()
        assert (high >= right[1]).all()
    monkeypatch.setattr(special, "betaincinv", lambda a, b, p: np.full_like(a, np.nan))
    assert (least_rates(hits, trials, 0.025) == 0.0).all()


@pytest.mark.parametrize("trials", [2.0**52, 1e20, 1e40])
def test_vast_numbers_of_trials_have_bounds_of_chernoff(trials):
    low, high = least_rates(100.0, trials, 1e-3), most_rates(100.0, trials, 1e-3)
    with mp.workdps(40):
        assert mp.gammainc(100, 0, mp.mpf(float(low)) * trials, regularized=True) <= 1e-3
        assert mp.gammainc(101, mp.mpf(float(high)) * trials, regularized=True) <= 1e-3
    assert trials > 1e30 or 60 < low * trials < high * trials < 160


def test_a_p_value_of_ten_million_guesses_is_not_below_the_true_one():
    """As a quotient of exponentials of log gammas the mass was wrong by 3.7e-8 here, where 1e-8 was allowed."""
    v, r, epsilon, delta = 8_993_406, 9_894_716, 2.29509610726859, 4.496583286046841e-08
    with mp.workdps(50):
        q = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
        above, mass = tail(v, r, q)
        want = above + 2 * r * mp.mpf(delta) * above * (1 - above) / (v * mass)
    found = p_value(np.array([[v, r, 2.0 * r]]), epsilon, delta)[0]
    assert want <= found <= want * (1 + 1e-7)


def test_shapes_must_fit():
    one, two = np.ones(1), np.ones(2)
    for arguments in ((one, two, one, one, np.empty((3, 1))), (one, one, one, one, np.empty((2, 1)))):
        with pytest.raises(ValueError, match="must have"):
            _binomial_tail.tails(*arguments)
    with pytest.raises(ValueError, match="all arrays must have one length"):
        _binomial_tail.rates(True, one, two, one, one.copy())
    with pytest.raises(ValueError, match="rows must have four counts and two parameters"):
        _binomial_tail.greatest_products(np.ones((1, 3)), _binomial_tail.DP, one, one, np.zeros((1, 2)), one.copy())


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("counts", [(430, 1000, 40, 1000), (5, 10, 0, 10), (999, 1000, 900, 1000), (7, 9, 2, 8)])
def test_products_of_tails_are_proved_wherever_they_are_looked_for(counts):
    """Against a fine grid; a place that is far from the largest product, or none, makes the bound larger only."""
    tp, n1, fp, n0 = counts
    row, x = np.array([counts], dtype=float), np.r_[np.geomspace(1e-9, 0.01, 3000), np.linspace(0.01, 1.0, 6000)[:-1]]
    claims = [(_binomial_tail.DP, 0.7, 1e-3), (_binomial_tail.GAUSSIAN, 1.1, 0.0), (_binomial_tail.LINES, 2.0, 0.1)]
    for kind, first, second in claims:
        rate = (np.minimum(second + np.exp(first) * x, 1 - np.exp(-first) * (1 - second - x)),
                special.ndtr(special.ndtri(x) + first), np.minimum(second + first * x, 1.0))[kind]
        logs = np.log(stats.binom.cdf(fp, n0, x)) + np.log(stats.binom.sf(tp - 1, n1, np.minimum(rate, 1.0)))
        best, bound = x[logs.argmax()], np.empty(1)
        for around in ((0.0, 0.0), (best, best), (0.5 * best, 0.6 * best), (0.9, 0.95), (1e-300, 1e-299)):
            _binomial_tail.greatest_products(
                row, kind, np.array([first]), np.array([second]), np.array([around]), bound
            )
            assert bound[0] >= logs.max() - 1e-12
            if around[0] == 0.0:
                assert bound[0] <= logs.max() + 0.05
