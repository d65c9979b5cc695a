"""Bounds from counts against linear programs, brute force over claims, and arithmetic of more digits."""

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from fastpriv import DomainError, GaussianMechanism
from fastpriv.errors import ShapeError
from fastpriv.kernels._binomial_tail import LINES
from fastpriv.studies.auditing import (
    OneRun,
    RepeatedRuns,
    audit_delta,
    audit_epsilon,
    audit_gaussian_dp,
    audit_p_value,
)
from fastpriv.studies.auditing.one_run import (
    exceeds_level,
    greatest_excluded,
    level_p_value,
    p_value,
    published_p_value,
)
from fastpriv.studies.auditing.repeated_runs import product_p_value

ONE_RUN = [(5, 4, 5, 1.0, 0.01), (5, 5, 20, 0.3, 0.001), (10, 2, 10, 0.0, 0.05), (20, 15, 30, 1.0, 1e-3),
           (20, 19, 30, 2.0, 1e-4), (8, 6, 8, 0.5, 0.2), (12, 11, 40, 0.0, 1e-5), (1, 1, 1, 0.7, 0.1)]


def largest_tail(r, v, m, lines, tails_only=False):
    """max P(W >= v) over laws of W that obey (1) of one_run for all lines (slope, delta): a linear program."""
    n = r + 1
    terms = 0 if tails_only else r * len(lines)
    rows, limits = [], []
    for k, (slope, delta) in enumerate(lines):
        excess = np.zeros((r, n + terms))
        for c in range(1, r + 1):
            excess[c - 1, c] += c
            excess[c - 1, c - 1] -= slope * (r - c + 1)
        scale = max(1.0, slope)
        if tails_only:
            rows += [excess[c - 1 :].sum(axis=0) / scale for c in range(1, v + 1)]
            limits += [m * delta / scale] * v
        else:
            excess[np.arange(r), n + k * r + np.arange(r)] = -scale
            total = np.zeros(n + terms)
            total[n + k * r : n + (k + 1) * r] = 1.0
            rows += [*(excess / scale), total]
            limits += [0.0] * r + [m * delta / scale]
    cost, mass = np.zeros(n + terms), np.zeros((1, n + terms))
    cost[v:n], mass[0, :n] = -1.0, 1.0
    exact = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return -linprog(cost, A_ub=np.array(rows), b_ub=limits, A_eq=mass, b_eq=[1.0], options=exact).fun


@pytest.mark.parametrize(("r", "v", "m", "epsilon", "delta"), ONE_RUN)
def test_one_run_has_the_largest_tail_of_all_laws(r, v, m, epsilon, delta):
    row = np.array([[v, r, m]], dtype=float)
    want = largest_tail(r, v, m, [(np.exp(epsilon), delta)])
    assert want * (1 - 1e-9) <= p_value(row, epsilon, delta)[0] <= min(want * (1 + 1e-7), 1.0)


@pytest.mark.parametrize(("r", "v", "m", "mu"), [(6, 6, 6, 0.5), (10, 9, 20, 0.5), (16, 14, 16, 1.0)])
def test_curves_of_one_run_against_linear_programs(r, v, m, mu):
    levels = np.r_[-np.geomspace(0.02, 15, 40), 0.0, np.geomspace(0.02, 15, 40)]
    deltas = stats.norm.cdf(mu / 2 - levels / mu) - np.exp(levels) * stats.norm.cdf(-mu / 2 - levels / mu)
    lines = list(zip(np.exp(levels), deltas, strict=True))
    row = np.array([[v, r, m]], dtype=float)
    found = level_p_value(row, lambda x: stats.norm.cdf(stats.norm.ppf(x) - mu))
    assert largest_tail(r, v, m, lines, tails_only=True) == pytest.approx(found, rel=1e-2)
    assert largest_tail(r, v, m, lines) <= found * (1 + 1e-2)  # all sets of counts say more than the tails
    assert exceeds_level(row, found * 1.0001, lambda x: stats.norm.cdf(stats.norm.ppf(x) - mu))[0]


def test_the_published_p_value_is_larger_where_it_matters_and_false_elsewhere():
    r, v, m, e, d = (np.ravel(x).astype(float) for x in np.meshgrid(
        [5, 40, 300], [0.5, 0.7, 0.9, 1.0], [1, 4], [0.0, 0.5, 2.0], [1e-6, 1e-3, 0.05]))
    v = np.ceil(v * r)
    rows = np.stack([v, r, r * m], axis=1)
    exact, published = p_value(rows, e, d), published_p_value(rows, e, d)
    assert (published >= exact * (1 - 1e-7))[exact < 0.5].all()
    row = np.array([[2.0, 10.0, 10.0]])  # a uniform guess of 10 coins, given at least 2 right, is (0, 0.009)
    law = stats.binom.pmf(np.arange(11), 10, 0.5)
    assert 2 * law[2] / law[2:].sum() / 10 < 0.05
    assert published_p_value(row, np.zeros(1), np.full(1, 0.05))[0] < 1.0 == p_value(row, 0.0, 0.05)[0]


@pytest.mark.parametrize(
    ("v", "r", "epsilon"),
    [(700, 1000, 0.5), (60_000, 100_000, 0.3), (30, 30, 5.0), (1, 10**6, -13.0), (900, 1000, 0.0)],
)
def test_tails_of_one_run_against_more_digits(v, r, epsilon):
    m, delta = 2 * r, 1e-6
    with mp.workdps(60):
        odds = mp.exp(mp.mpf(epsilon))
        mass = mp.exp(mp.loggamma(r + 1) - mp.loggamma(v + 1) - mp.loggamma(r - v + 1)) * odds**v / (1 + odds) ** r
        tail, term, j = mp.mpf(0), mass, v
        while j <= r and term > tail * mp.mpf(10) ** -40:
            tail, term, j = tail + term, term * odds * (r - j) / (j + 1), j + 1
        want = min(tail + m * mp.mpf(delta) * tail * (1 - tail) / (v * mass), 1)
    found = p_value(np.array([[v, r, m]], dtype=float), epsilon, delta)[0]
    assert want <= found <= want * (1 + 1e-6)
    deep = p_value(np.array([[9000, 10_000, 10_000]], dtype=float), 0.0, 1e-3)[0]  # the tail is below 1e-300
    assert 10 / 9000 <= deep <= 10 / 9000 * 1.2


def brute_p_value(tp, n1, fp, n0, rate):
    """sup of the product over a fine grid of p0, and its p-value."""
    x = np.r_[np.geomspace(1e-12, 1e-3, 4001), np.linspace(1e-3, 1 - 1e-9, 20_001)]
    s = (stats.binom.cdf(fp, n0, x) * stats.binom.sf(tp - 1, n1, np.clip(rate(x), 0, 1))).max()
    return s * (1 - np.log(s)) if s > 0 else 0.0


COUNTS = [(430, 1000, 40, 1000), (5, 10, 0, 10), (10, 10, 0, 10), (999, 1000, 900, 1000), (3, 2000, 0, 50),
          (1, 1, 0, 1), (1000, 1000, 990, 1000), (200, 400, 190, 400)]


@pytest.mark.few(5)
@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_bounds_of_repeated_runs_are_where_brute_force_has_them(counts, delta):
    for confidence in (0.9, 0.999):
        error = 1 - confidence
        found = audit_epsilon(RepeatedRuns(*counts), delta=delta, confidence=confidence).lower

        def p_of(epsilon):
            return brute_p_value(*counts, lambda x: np.minimum(
                delta + np.exp(epsilon) * x, 1 - np.exp(-epsilon) * (1 - delta - x)))

        assert found == 0.0 or p_of(found) <= error * (1 + 1e-3)
        assert p_of(found + 2e-3 * (1 + found)) > error
        above = audit_p_value(RepeatedRuns(*counts), epsilon=found + 1e-3, delta=delta)
        assert above >= p_of(found + 1e-3) * (1 - 1e-9)
        assert above == pytest.approx(p_of(found + 1e-3), rel=2e-2)
        mu = audit_gaussian_dp(RepeatedRuns(*counts), confidence=confidence).lower
        p_of_mu = lambda mu: brute_p_value(*counts, lambda x: stats.norm.cdf(stats.norm.ppf(x) + mu))
        assert mu == 0.0 or p_of_mu(mu) <= error * (1 + 1e-3)
        assert p_of_mu(mu + 2e-3 * (1 + mu)) > error


@pytest.mark.parametrize("counts", COUNTS)
def test_delta_and_epsilon_exclude_the_same(counts):
    for form in ("product", "two_bounds"):
        for epsilon in (0.0, 0.3, 1.5):
            delta = audit_delta(RepeatedRuns(*counts), epsilon, form=form).lower
            if delta > 0:
                at = audit_epsilon(RepeatedRuns(*counts), delta=delta, form=form).lower
                assert at == pytest.approx(epsilon, abs=1e-6)
    wrong = counts[1] - counts[0]
    if wrong < counts[1] / 3:
        run = OneRun(counts[0], counts[1], 2 * counts[1])
        delta = audit_delta(run, 0.1).lower
        assert delta > 0 or audit_epsilon(run).lower < 0.1
        if delta > 0:
            below, above = audit_epsilon(run, delta=[delta * (1 - 1e-6), delta * (1 + 1e-6)]).lower
            assert above - 1e-6 <= 0.1 <= below + 1e-6


def test_two_bounds_are_those_of_clopper_and_pearson():
    tp, n1, fp, n0 = 430, 1000, 40, 1000
    least, most = stats.beta.ppf(0.025, tp, n1 - tp + 1), stats.beta.ppf(0.975, fp + 1, n0 - fp)
    runs = RepeatedRuns(tp, n1, fp, n0)
    found = audit_epsilon(runs, delta=1e-3, form="two_bounds")
    assert found.lower == pytest.approx(np.log((least - 1e-3) / most), rel=1e-9)
    mu = audit_gaussian_dp(runs, form="two_bounds")
    assert mu.lower == pytest.approx(stats.norm.ppf(least) - stats.norm.ppf(most), rel=1e-9)
    assert found.lower < audit_epsilon(runs, delta=1e-3).lower
    assert found.confidence == 0.95
    assert found.upper == np.inf
    other = RepeatedRuns(n0 - fp, n0, n1 - tp, n1)  # in and out exchanged, as the definition is symmetric
    assert audit_epsilon(other, form="two_bounds").lower == pytest.approx(
        audit_epsilon(runs, form="two_bounds").lower, rel=1e-9)


def test_the_greatest_parameter_that_is_excluded_is_found_by_halving():
    high = np.array([1.0, 8.0, 700.0, 1e-3, 40.0])
    ends = np.array([0.3, 7.9, 1e-9, 0.0, 40.0])  # of what is excluded, of each row
    found = greatest_excluded(lambda x: x <= ends, high)
    np.testing.assert_allclose(found, ends, rtol=0, atol=high.max() * 2.0**-47)
    assert np.all((found <= ends) & (ends - found <= high * 2.0**-47))


def test_one_run_without_delta_is_the_binomial_bound():
    found = audit_epsilon(OneRun([180, 200, 100], 200, 1000))
    least = stats.beta.ppf(0.05, [180, 200], [21, 1])
    assert found.lower[:2] == pytest.approx(np.log(least / (1 - least)), rel=1e-8)
    assert found.lower[2] == 0.0
    with_delta = audit_epsilon(OneRun(180, 200, 1000), delta=[0.0, 1e-6, 1e-3, 0.5])
    assert (np.diff(with_delta.lower) <= 0).all()
    assert with_delta.lower[3] == 0.0
    published = audit_epsilon(OneRun(180, 200, 1000), delta=1e-3, form="as_published")
    assert published.lower < with_delta.lower[2]
    with pytest.raises(DomainError, match="form must be one of exact, as_published; got 'product'"):
        audit_epsilon(OneRun(180, 200), form="product")


@pytest.mark.slow
def test_many_audits_are_the_single_ones():
    tp, fp = np.array([[430, 0], [1000, 5]]), np.array([40, 0])
    many = audit_epsilon(RepeatedRuns(tp, 1000, fp, 1000), delta=1e-4)
    for i, j in np.ndindex(2, 2):
        assert many.lower[i, j] == audit_epsilon(RepeatedRuns(tp[i, j], 1000, fp[j], 1000), delta=1e-4).lower
    mus = audit_gaussian_dp(OneRun([10, 690, 990], 1000))
    assert mus.lower[1] == audit_gaussian_dp(OneRun(690, 1000)).lower
    assert (np.diff(mus.lower) >= 0).all()
    assert RepeatedRuns(1, 2, 1, 2) == RepeatedRuns(1.0, 2, 1, 2)
    assert repr(OneRun([1, 2], 3)) == "OneRun(correct=<array of shape (2,)>, guesses=<array of shape (2,)>, canaries=" \
        "<array of shape (2,)>)"


def test_extreme_counts():
    huge = RepeatedRuns(10**15, 10**15, 0, 10**15)
    assert 30 < audit_epsilon(huge).lower < 35
    assert audit_epsilon(RepeatedRuns(0, 10**9, 10**9, 10**9)).lower == 0.0
    assert audit_epsilon(RepeatedRuns(1, 1, 0, 1), confidence=1 - 1e-12).lower == 0.0
    assert audit_epsilon(RepeatedRuns(9, 10, 0, 10), delta=1.0).lower == 0.0
    assert audit_epsilon(OneRun(0, 1)).lower == 0.0
    assert 12.5 < audit_epsilon(OneRun(10**6, 10**6)).lower < 13.0
    assert audit_p_value(huge, epsilon=1.0) == 0.0
    assert audit_p_value(huge, epsilon=np.inf) == audit_p_value(OneRun(9, 9), epsilon=np.inf) == 1.0


def test_p_values_of_mechanisms():
    runs, mechanism = RepeatedRuns(430, 1000, 40, 1000), GaussianMechanism(0.7, 1.0)
    want = brute_p_value(430, 1000, 40, 1000, lambda x: stats.norm.cdf(stats.norm.ppf(x) + 1 / 0.7))
    assert want <= audit_p_value(runs, mechanism) <= want * 1.01
    pair = ([0.9, 0.1], [0.3, 0.7])  # FPR and TPR of the claim of the second outcome
    curve = lambda x: np.minimum(7 * x, 0.7 + (x - 0.1) / 3)
    want = brute_p_value(430, 1000, 40, 1000, curve)
    assert want * (1 - 1e-6) <= audit_p_value(runs, *pair) <= want * 1.05
    assert audit_p_value(RepeatedRuns(700, 1000, 50, 1000), pair[1], pair[0]) < 1e-6 < 0.01 < audit_p_value(
        RepeatedRuns(700, 1000, 100, 1000), *pair)  # the direction matters
    many = audit_p_value(runs, epsilon=[1.0, 2.0, 3.0], delta=[[0.0], [1e-2]])
    assert many[1, 1] == audit_p_value(runs, epsilon=2.0, delta=1e-2)
    single = audit_p_value(OneRun(180, 200, 1000), epsilon=1.5, delta=1e-4)
    assert single == p_value(np.array([[180.0, 200.0, 1000.0]]), 1.5, 1e-4)[0]
    q = np.e / (1 + np.e)  # randomised response is the line of (1, 0)
    assert audit_p_value(OneRun(78, 100), [q, 1 - q], [1 - q, q]) == pytest.approx(
        audit_p_value(OneRun(78, 100), epsilon=1.0), rel=0.05)
    rows = np.array([[430.0, 1000.0, 40.0, 1000.0]])
    assert product_p_value(rows, (LINES, np.ones(1), np.zeros(1)))[0] < 1e-60


def test_what_is_refused():
    runs = RepeatedRuns(1, 2, 1, 2)
    with pytest.raises(DomainError, match="true_positives must be at most members; got 3 of 2 at index 1"):
        RepeatedRuns([1, 3], 2, 1, 2)
    with pytest.raises(DomainError, match="members must be integers from 1"):
        RepeatedRuns(0, 0, 1, 2)
    with pytest.raises(DomainError, match="guesses must be at most canaries; got 5 of 4"):
        OneRun(3, 5, 4)
    with pytest.raises(ShapeError, match="correct must be of a shape that broadcasts"):
        OneRun([1, 2], [3, 4, 5])
    with pytest.raises(DomainError, match="outcomes must be RepeatedRuns or OneRun"):
        audit_epsilon((1, 2, 1, 2))
    with pytest.raises(DomainError, match="delta must be between 0 and 1"):
        audit_epsilon(runs, delta=1.5)
    with pytest.raises(ShapeError, match="delta must"):
        audit_epsilon(RepeatedRuns([1, 2], 2, 1, 2), delta=[0.1, 0.2, 0.3])
    with pytest.raises(DomainError, match="confidence must be between 0 and 1, exclusive"):
        audit_gaussian_dp(runs, confidence=1.0)
    for function in (audit_gaussian_dp, lambda o, form: audit_delta(o, 1.0, form=form)):
        with pytest.raises(DomainError, match="form must be exact"):
            function(OneRun(1, 2), form="as_published")
    with pytest.raises(DomainError, match="epsilon must be finite and at least 0"):
        audit_delta(runs, np.inf)
    with pytest.raises(DomainError, match="epsilon must be given, or p and q, and not both"):
        audit_p_value(runs)
    with pytest.raises(ShapeError, match="outcomes must have one or more audits"):
        audit_epsilon(RepeatedRuns([], [], [], []))
