"""Certified curves of shuffled reports and batches, against sums over all cells and over all data sets."""

from __future__ import annotations

import itertools
import math
import pickle
from bisect import bisect_left
from functools import cache

import mpmath
import numpy as np
import pytest

from fastpriv import GaussianMechanism, LaplaceMechanism, RandomizedResponse, compose
from fastpriv.base.errors import DomainError
from fastpriv.channels import Channel
from fastpriv.composition import RandomAllocation
from fastpriv.mechanisms import UnaryEncoding
from fastpriv.pairs import Shuffled, ShuffledBatches, shuffled_least_reports, shuffled_local_epsilon
from fastpriv.pairs.binomials import binomial_log_probabilities
from fastpriv.pairs.shuffled import _CELL_ERROR, _largest_sum
from fastpriv.pairs.shuffled_sums import ShuffleSum
from oracles import shuffled as oracle


def levels(local_epsilon: float) -> list[float]:
    """Epsilons from 0 to the local one, close to both ends."""
    inside = [0.0, 1e-12, 1e-3, 0.1, 0.3, 0.5, 0.8, 0.99, 1 - 1e-9]
    return [share * local_epsilon for share in inside] + [math.nextafter(local_epsilon, 0.0)]


def check_logs(found, truth, width: float, worst: list) -> None:
    """Bounds of logarithms contain the truth, and are narrow."""
    for index, log in enumerate(truth):
        lower, upper = (mpmath.mpf(float(row[index])) for row in (found.lower, found.upper))
        assert lower <= log <= upper, (index, lower, log, upper)
        if log > -mpmath.inf:
            worst.append(float(upper - lower))
            assert upper - lower <= width * (1 + abs(log) / 100), (index, lower, log, upper)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 12, 40])
@pytest.mark.parametrize("local", [1e-8, 0.03, 0.7, 2.0, 6.0, 30.0, 200.0])
def test_clones_of_few_reports(n, local):
    p, q = oracle.clone_pair(n, local)
    epsilon = np.array(levels(local))
    with mpmath.workdps(400 if local > 20 else 60):
        p, q = oracle.clone_pair(n, local)
        truth = [mpmath.log(oracle.positive_part(p, q, e)) for e in epsilon.tolist()]
    worst: list[float] = []
    check_logs(ShuffleSum("clones", n, local).log_delta(epsilon), truth, 1e-12, worst)
    print(f"n {n}, local epsilon {local}: widest {max(worst):.1e}")
    found = compose(Shuffled(local, n)).log_delta(epsilon)
    assert (found.lower <= [float(x) for x in truth]).all()
    assert (found.upper >= [float(x) for x in truth]).all()


@pytest.mark.parametrize(("n", "local", "epsilon"), [
    (300, 1.0, 0.05), (300, 1.0, 0.9), (1000, 4.0, 2.0), (1000, 7.0, 1.0), (300, 0.2, 0.1),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in [
        (10_000, 2.0, 0.125), (10_000, 2.0, 0.25), (3000, 0.2, 0.01), (10_000, 2.0, 1.5), (10_000, 9.0, 3.0),
        (10_000, 12.0, 8.0), (20_000, 0.5, 0.3), (20_000, 0.5, 0.499),
    ]),
])
def test_clones_of_many_reports(n, local, epsilon):
    truth = oracle.clone_log_delta(n, local, epsilon)
    worst: list[float] = []
    check_logs(ShuffleSum("clones", n, local).log_delta(np.array([epsilon])), [truth], 1e-10, worst)
    print(f"n {n}: log delta {float(truth):.4f}, width {worst[0]:.1e}")


def test_published_numbers():
    logs = ShuffleSum("clones", 10_000, 2.0).log_delta(np.array([0.125, 0.25]))
    np.testing.assert_allclose(np.exp(logs.value), [1.602767e-5, 7.262981e-12], rtol=1e-6)
    assert math.isclose(float(np.exp(ShuffleSum("blanket", 50, 2.0, 2).log_delta(np.array([0.125])).value[0])),
                        0.1282666, rel_tol=1e-6)


def test_grouped_clones_contain_the_sum_over_all(monkeypatch):
    epsilon = np.array([0.0, 0.02, 0.1, 0.4])
    curve = ShuffleSum("clones", 20_000, 1.0)
    exact = curve.log_delta(epsilon)
    monkeypatch.setattr("fastpriv.pairs.shuffled_sums._MOST_STEPS", 1e5)
    grouped = curve.log_delta(epsilon)
    assert (grouped.upper - grouped.lower > 10 * (exact.upper - exact.lower)).all()
    assert (grouped.lower <= exact.lower).all(), grouped.lower - exact.lower
    assert (grouped.upper >= exact.upper).all()


@pytest.mark.parametrize("n", [10**6, pytest.param(10**9, marks=pytest.mark.slow)])
def test_very_many_reports(n):
    epsilon = np.array([0.0, 1.0, 3.0, 10.0]) / math.sqrt(n)
    found = ShuffleSum("clones", n, 1.0).log_delta(epsilon)
    assert (found.upper - found.lower <= (1e-10 if n == 10**6 else 1e-3)).all()
    # the distance of the Gaussian that the loss is like, to the first order in 1 / n
    mu = 2 * math.tanh(0.5) / math.sqrt(n / math.e)
    normal = GaussianMechanism(1.0 / mu, 1.0).log_delta(epsilon)
    np.testing.assert_allclose(found.value, normal.value, atol=0.05)


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "k", "local"), [
    (1, 3, 1.0), (2, 2, 0.5), (3, 3, 2.0), (4, 2, 1.0), (4, 4, 2.0), (5, 3, 1.0),
    *(pytest.param(*row, marks=pytest.mark.slow) for row in [(5, 4, 2.0), (6, 3, 4.0), (6, 2, 3.0), (5, 5, 3.0)]),
])
def test_randomised_response_against_all_data_sets(n, k, local):
    channel = RandomizedResponse(k, local)
    for share in (0.0, 0.25, 0.5, 0.9):
        truth = oracle.worst_data_set(n, k, local, share * local)
        for adaptive in (True, False):
            found = compose(Shuffled(channel, n, adaptive)).delta(share * local)
            assert found.lower <= truth <= found.upper, (share, adaptive, found, truth)
            if k == 2 and not adaptive:
                assert found.upper - found.lower <= 1e-12 * truth
        print(f"n {n}, k {k}, share {share}: {found.lower:.6e} <= {float(truth):.6e} <= {found.upper:.6e}")


@pytest.mark.few(7)
@pytest.mark.parametrize(("n", "k", "local"), [
    (1, 3, 1.0), (5, 4, 2.0), (12, 12, 5.0), (7, 3, 0.01), (14, 50, 3.0), (15, 5, 12.0), (9, 4, 60.0), (18, 3, 1.0),
])
def test_sums_over_two_numbers(n, k, local):
    epsilon = np.array([0.0, 1e-9, 0.2, 0.5, 0.8, 0.975, 1 - 1e-6]) * local
    worst: list[float] = []
    for form, function in (("blanket", oracle.blanket), ("third_value", oracle.third_value)):
        truth = [mpmath.log(function(n, k, local, e)) for e in epsilon.tolist()]
        check_logs(ShuffleSum(form, n, local, k).log_delta(epsilon), truth, 1e-11, worst)
    print(f"n {n}, k {k}, local epsilon {local}: widest {max(worst):.1e}")


def test_counts_of_two_values_are_no_upper_bound():
    """The worst data set at n 5, k 4 exceeds the stronger-clone pair with p = 1 / (E + k - 1), 0.2198854."""
    lower = compose(Shuffled(RandomizedResponse(4, 2.0), 5, adaptive=False)).delta(1.0).lower
    assert 0.2200787 - 1e-6 < lower < 0.2200788
    assert lower > 0.2198854


@pytest.mark.parametrize("local", [150.0, 299.0, 599.0, 601.0, 800.0, 12_000.0])
def test_reports_without_clones(local):
    """delta is (E - x) / (E + 1) to a relative n / E."""
    epsilon = np.array([0.0, 1.0, 0.5 * local, local - 1.0])
    truth = [mpmath.log1p(-mpmath.exp(mpmath.mpf(e) - local)) - mpmath.log1p(mpmath.exp(-mpmath.mpf(local)))
             for e in epsilon.tolist()]
    for form, k in (("clones", 2), ("blanket", 2), ("blanket", 5), ("third_value", 5)):
        found = ShuffleSum(form, 100, local, k).log_delta(epsilon)
        assert not np.isnan(found.numbers).any()
        if form != "third_value":
            assert (found.upper >= [float(x) - 1e-100 for x in truth]).all()
            assert (found.lower <= [float(x) + 1e-100 for x in truth]).all()
        if k == 2:
            assert (found.upper - found.lower < 1e-10).all()


def test_two_values_of_fifty_reports():
    found = compose(Shuffled(RandomizedResponse(2, 2.0), 50, adaptive=False)).delta(0.125)
    assert found.upper - found.lower < 1e-12
    assert math.isclose(found.value, 0.0911531, rel_tol=1e-6)
    many = compose(Shuffled(RandomizedResponse(2, 2.0), 300, adaptive=False)).delta([0.0, 0.125, 0.5])
    assert (many.lower > [0.7 * many.upper[0], 0.5 * many.upper[1], 0.1 * many.upper[2]]).all()


@pytest.mark.slow
def test_bounds_are_in_order():
    """Fewer reports, a larger local epsilon and adaptive randomisers lose more; lower bounds stay below upper ones."""
    epsilon = np.linspace(0.0, 1.9, 7)
    for n, k in itertools.product((3, 30, 200), (2, 3, 8)):
        clones, blanket = (compose(Shuffled(RandomizedResponse(k, 2.0), n, adaptive)).log_delta(epsilon)
                           for adaptive in (True, False))
        assert (blanket.lower <= clones.upper).all()
        assert (blanket.upper <= clones.upper + 1e-12).all()
        number = compose(Shuffled(2.0, n)).log_delta(epsilon)
        assert (number.upper <= compose(Shuffled(2.0, n - 1)).log_delta(epsilon).upper).all()
        assert (number.upper <= compose(Shuffled(2.25, n)).log_delta(epsilon).upper).all()


@pytest.mark.parametrize(("n", "local"), [(2, 1.0), (4, 3.0), (6, 0.25)])
def test_two_rounds_of_clones(n, local):
    p, q = oracle.twice(*oracle.clone_pair(n, local))
    for share in (0.0, 0.3, 1.0, 1.7):
        truth = oracle.positive_part(p, q, share * local)
        found = compose(Shuffled(local, n), 2).delta(share * local)
        assert found.lower <= truth <= found.upper, (share, found, truth)
        print(f"n {n}, share {share}: {found.upper / max(found.lower, 1e-300) - 1:.1e}")
        if share <= 0.3:
            assert found.upper <= 1.05 * found.lower


def test_two_rounds_of_randomised_response():
    rows = oracle.response(2, 1.0)
    best = max(oracle.positive_part(*oracle.twice(oracle.histogram(rows, (0, *others)),
                                                  oracle.histogram(rows, (1, *others))), 0.5)
               for others in itertools.combinations_with_replacement(range(2), 3))
    found = compose(Shuffled(RandomizedResponse(2, 1.0), 4, adaptive=False), 2).delta(0.5)
    assert found.lower <= best * (1 + 1e-12)
    assert best <= found.upper
    assert found.lower > 0.8 * found.upper


@pytest.mark.slow
def test_two_rounds_of_three_values():
    rows = oracle.response(3, 1.0)
    laws = [oracle.histogram(rows, (x, 2, 2)) for x in (0, 1)]
    truth = oracle.positive_part(*oracle.twice(*laws), 0.5)
    found = compose(Shuffled(RandomizedResponse(3, 1.0), 3, adaptive=False), 2).delta(0.5)
    assert found.lower <= truth <= found.upper
    assert found.lower > 0.9 * found.upper


def test_hundred_rounds():
    found = compose(Shuffled(1.0, 1000), 100).delta([0.5, 1.0, 2.0])
    assert (found.upper <= 1.001 * found.lower).all(), found
    mu = 20 * math.tanh(0.5) / math.sqrt(1000 / math.e)
    np.testing.assert_allclose(found.value, GaussianMechanism(1.0 / mu, 1.0).delta([0.5, 1.0, 2.0]).value, rtol=0.1)


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (7, 0.3), (16, 0.99), (1000, 1e-6), (10**6, 0.37), (10**9, 0.5)])
def test_binomial_log_probabilities(n, p):
    with mpmath.workdps(60):
        wide = mpmath.mpf(p)
        centre = int(n * p)
        reach = int(10 * math.sqrt(n * p * (1 - p))) + 3
        places = (0, 1, 15, 16, 17, n, n - 1, centre, centre - reach, centre + reach)
        counts = sorted({min(max(x, 0), n) for x in places})
        rest = np.longdouble(1) - np.longdouble(p)
        found, errors = binomial_log_probabilities(np.array(counts), n, np.longdouble(p), rest)
        for x, value, error in zip(counts, found, errors, strict=True):
            truth = (mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)
                     + x * mpmath.log(wide) + (n - x) * mpmath.log(1 - wide))
            high = float(value)
            difference = mpmath.mpf(high) + mpmath.mpf(float(value - high)) - truth
            assert abs(difference) <= error, (x, difference, error)


def test_inverses():
    for epsilon, delta, n in ((0.25, 1e-6, 10_000), (0.0, 0.1, 50), (1.0, 1e-12, 100), (0.5, 0.3, 1)):
        found = shuffled_local_epsilon(epsilon, delta, n)
        assert compose(Shuffled(found.lower, n)).delta(epsilon).upper <= delta * (1 + 1e-14)
        assert compose(Shuffled(found.upper, n)).delta(epsilon).lower > delta * (1 - 1e-14)
        assert found.upper - found.lower <= 1e-8 * found.upper
    found = shuffled_least_reports(0.25, 1e-6, 2.0)
    reports = int(found.upper)
    assert compose(Shuffled(2.0, reports)).delta(0.25).upper <= 1e-6
    assert compose(Shuffled(2.0, int(found.lower) - 1)).delta(0.25).lower > 1e-6
    assert shuffled_least_reports(3.0, 1e-6, 2.0).value == 1.0


def test_local_epsilons():
    assert Shuffled(LaplaceMechanism(3.0, 1.0), 10).local_epsilon * 3 >= 1.0
    assert math.isclose(Shuffled(UnaryEncoding(4, 2.0), 10).local_epsilon, 2.0, rel_tol=1e-12)
    assert Shuffled(Channel([[0.75, 0.25], [0.25, 0.75]]), 10).local_epsilon >= math.log(3)
    found = compose(Shuffled(UnaryEncoding(4, 2.0), 100)).delta(0.5)
    assert 0.0 < found.lower < found.upper
    assert found.upper >= compose(Shuffled(2.0, 100)).delta(0.5).value
    assert compose(Shuffled(0.0, 10)).delta(0.0).upper == 0.0


@pytest.mark.slow
def test_batches():
    base = GaussianMechanism(2.0, 1.0)
    replaced = compose(ShuffledBatches(base, 100)).delta([0.0, 0.5, 2.0])
    reference = RandomAllocation(2.0, 100, sensitivity=2.0).delta([0.0, 0.5, 2.0])
    assert (replaced.lower <= reference.upper).all()
    assert (replaced.lower >= 0.99 * reference.lower).all()
    revealed = GaussianMechanism(1.0, 1.0).delta([0.0, 0.5, 2.0])
    np.testing.assert_allclose(replaced.upper, revealed.value, rtol=1e-12)
    one = compose(ShuffledBatches(base, 1)).delta(0.5)
    assert one.upper - one.lower < 1e-12


@pytest.mark.slow
def test_epochs_of_batches():
    base = GaussianMechanism(2.0, 1.0)
    four = compose(ShuffledBatches(base, 100, 4)).delta(0.5)
    assert four.lower > 2.0 * compose(ShuffledBatches(base, 100)).delta(0.5).lower
    reference = RandomAllocation(2.0, 100, sensitivity=2.0, epochs=4).delta(0.5)
    assert 0.99 * reference.lower <= four.lower <= reference.upper
    np.testing.assert_allclose(four.upper, compose(GaussianMechanism(1.0, 1.0), 4).delta(0.5).value, rtol=1e-12)


@pytest.mark.parametrize(("scale", "batches"), [(0.05, 2), (0.5, 100), (3.0, 10_000), (8.0, 3)])
def test_cells_of_the_largest_sum(scale, batches):
    pair = _largest_sum(scale, batches, 1)
    worst = 0.0
    points = np.linspace(-9.0, 9.0 + 2.0 * scale, 4000)
    ends = _ends_of_cells(pair.q, scale, batches, points)
    for masses, shift in ((pair.p, 2.0 * scale), (pair.q, scale)):
        above = [mpmath.mpf(1), *(oracle.largest_sum_above(x, shift, batches) for x in ends), mpmath.mpf(0)]
        for mass, high, low in zip(masses, above, above[1:], strict=False):
            worst = max(worst, abs(float(mpmath.mpf(float(mass)) / (high - low) - 1)))
    print(f"scale {scale}, {batches} batches: {pair.p.size} cells, worst relative error {worst:.1e}")
    assert worst <= _CELL_ERROR / 4


def _ends_of_cells(q, scale, batches, points):
    """The points that cells end at, from the masses of Q: by bisection, as masses above a point fall."""

    @cache
    def log_above(i):
        return math.log(float(oracle.largest_sum_above(points[i], scale, batches)) + 1e-300)

    def nearest(log):
        i = min(bisect_left(range(len(points)), -log, key=lambda i: -log_above(i)), len(points) - 1)
        return min((i, max(i - 1, 0)), key=lambda i: abs(log_above(i) - log))

    return [points[nearest(math.log(y))] for y in np.cumsum(q[::-1])[::-1][1:]]


def test_null_records():
    """Two batches: the lower bound against the integral over both sums."""
    scale, epsilon = 1.5, 0.5
    x = np.linspace(-9.0, 13.0, 1401)
    density = lambda t: np.exp(-0.5 * (x - t) ** 2) / math.sqrt(2 * math.pi)
    p, q = (0.5 * (np.outer(density(t), density(0.0)) + np.outer(density(0.0), density(t)))
            for t in (2 * scale, scale))
    area = (x[1] - x[0]) ** 2
    deltas = [np.maximum(a - math.exp(epsilon) * b, 0.0).sum() * area for a, b in ((p, q), (q, p))]
    found = compose(ShuffledBatches(GaussianMechanism(1.0, scale), 2, relation="zero_out")).delta(epsilon)
    assert 0.5 * max(deltas) < found.lower < max(deltas) + 1e-4
    assert found.upper > max(deltas) - 1e-4


@pytest.mark.slow
def test_objects():
    one = Shuffled(RandomizedResponse(4, 2.0), 10, adaptive=False)
    assert pickle.loads(pickle.dumps(one)) == one
    assert hash(one) == hash(Shuffled(RandomizedResponse(4, 2.0), 10, adaptive=False))
    assert repr(one) == "Shuffled(randomizer=RandomizedResponse(4, 2.0), n=10, adaptive=False)"
    assert Shuffled(2, 10) == Shuffled(2.0, 10)
    batches = ShuffledBatches(GaussianMechanism(2.0, 1.0), 10)
    assert pickle.loads(pickle.dumps(batches)) == batches
    assert repr(batches).endswith("batches=10, epochs=1, relation='replace_one')")
    both = compose([one, Shuffled(1.0, 100), GaussianMechanism(5.0, 1.0)])
    assert 0.0 < both.delta(0.5).lower <= both.delta(0.5).upper < 1.0


@pytest.mark.parametrize(("make", "text"), [
    (lambda: Shuffled(-1.0, 10), "randomizer must be a local epsilon, at least 0 and finite, or"),
    (lambda: Shuffled(math.inf, 10), "randomizer must be a local epsilon"),
    (lambda: Shuffled(math.nan, 10), "randomizer must be a local epsilon"),
    (lambda: Shuffled("RR", 10), "randomizer must be"),
    (lambda: Shuffled(GaussianMechanism(1.0, 1.0), 10), "randomizer must have a finite local epsilon"),
    (lambda: Shuffled(Channel([[1.0, 0.0], [0.5, 0.5]]), 10), "randomizer must have a finite local epsilon"),
    (lambda: Shuffled(1.0, 0), "n must be an integer of at least 1"),
    (lambda: Shuffled(1.0, 2 * 10**9), "n must be an integer of at least 1 and at most 1000000000"),
    (lambda: Shuffled(1.0, 10, adaptive=False), "adaptive must be True where nothing but a local"),
    (lambda: Shuffled(1.0, 10, adaptive=1), "adaptive must be True or False; got 1"),
    (lambda: ShuffledBatches(LaplaceMechanism(1.0), 10), "base must be a GaussianMechanism"),
    (lambda: ShuffledBatches(GaussianMechanism(1.0), 10), "sensitivity"),
    (lambda: ShuffledBatches(GaussianMechanism(1.0, 1.0), 0), "batches must be an integer"),
    (lambda: ShuffledBatches(GaussianMechanism(1.0, 1.0), 10, 0), "epochs must be an integer"),
    (lambda: ShuffledBatches(GaussianMechanism(1.0, 1.0), 10, 10**30), "epochs must be an integer of at least 1 and"),
    (lambda: ShuffledBatches(GaussianMechanism(1.0, 1.0), 10, relation="add_or_remove"), "relation must be one of"),
    (lambda: shuffled_local_epsilon(-1.0, 0.1, 10), "epsilon must be at least 0 and finite; got -1.0"),
    (lambda: shuffled_local_epsilon(1.0, 0.0, 10), "delta must be above 0 and below 1; got 0.0"),
    (lambda: shuffled_least_reports(1.0, 0.5, math.inf), "local_epsilon must be at least 0 and finite"),
])
def test_texts(make, text):
    with pytest.raises(DomainError) as error:
        make()
    assert text in str(error.value)


def test_too_few_reports(monkeypatch):
    monkeypatch.setattr("fastpriv.pairs.shuffled._MOST_REPORTS", 1000)
    with pytest.raises(DomainError, match="delta must be within the reach of 1000 reports"):
        shuffled_least_reports(0.0, 1e-9, 1.0)
