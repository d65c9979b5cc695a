"""Channels known by structure, against their definitions in many digits and against brute force."""

import math

import numpy as np
import pytest
from mpmath import exp, log, mp, mpf

from fastpriv import Channel, RandomizedResponse
from fastpriv.channels import DefaultChannel, DefaultLikelihood, DenseLikelihood, ProductLikelihood
from fastpriv.mechanisms import (
    DiscreteLaplace,
    ExponentialMechanism,
    GeometricMechanism,
    SubsetSelection,
    UnaryEncoding,
)
from oracles import channels as truth

SCORES = np.array([[1.0, 0.25, -3.0], [0.0, 2.0, 0.5]])
EPSILONS = (1e-20, 1e-6, 0.3, 2.0, 30.0)


def cases():
    for e in EPSILONS:
        for k in (2, 3, 5):
            yield RandomizedResponse(k, e), truth.randomized_response(k, e)
            yield GeometricMechanism(k, e), truth.geometric(k, e)
        yield UnaryEncoding(4, e), truth.symmetric_unary(4, e)
        yield UnaryEncoding.optimized(4, e), truth.optimized_unary(4, e)
        yield SubsetSelection(6, e, 2), truth.subset(6, e, 2)
        yield SubsetSelection(5, e, 4), truth.subset(5, e, 4)
        yield ExponentialMechanism(SCORES, e, 2.5), truth.exponential(SCORES, e, 2.5)
    yield UnaryEncoding(3, p=0.3, q=0.8), truth.unary(3, mpf(0.3), mpf(0.8))
    yield UnaryEncoding(3, p=0.25, q=0.0), truth.unary(3, mpf(0.25), mpf(0))
    yield UnaryEncoding(3, p=0.25, q=1.0), truth.unary(3, mpf(0.25), mpf(1))
    yield UnaryEncoding(3, p=1.0, q=0.125), truth.unary(3, mpf(1), mpf(0.125))
    yield UnaryEncoding(1, 2.0), truth.symmetric_unary(1, 2.0)
    yield RandomizedResponse(2, 1.0).product(SubsetSelection(3, 0.5)), truth.kron(
        truth.randomized_response(2, 1.0), truth.subset(3, 0.5, SubsetSelection(3, 0.5).size))
    yield DiscreteLaplace(4, 2.0), truth.geometric(4, 0.5)


CASES = list(cases())


def name(case):
    return repr(case[0])[:40]


@pytest.mark.parametrize("case", CASES, ids=name)
def test_rows_are_those_of_the_definition(case):
    channel, want = case
    got = channel.log_matrix()
    assert got.shape == channel.shape == (len(want), len(want[0]))
    for d, row in enumerate(want):
        assert abs(math.fsum(channel.matrix()[d]) - 1) <= 1e-14
        for w, cell in enumerate(row):
            if cell == 0:
                assert got[d, w] == -np.inf
            else:
                assert abs(got[d, w] - log(cell)) <= 1e-14 * (1 + abs(log(cell))), (channel, d, w)


def written(column):
    if isinstance(column, DefaultLikelihood):
        found = np.full(column.size, column.default)
        found[column.indices] = column.values
        return found
    if isinstance(column, ProductLikelihood):
        found = np.zeros(1)
        for one in column.factors:
            found = np.add.outer(found, written(one)).reshape(-1)
        return found
    return column.values if isinstance(column, DenseLikelihood) else column


@pytest.mark.parametrize("case", CASES, ids=name)
def test_columns_are_those_of_the_matrix(case):
    channel, want = case
    for w in range(channel.outputs):
        shift = 0.0
        got = written(channel.column(w))
        if isinstance(channel, DiscreteLaplace) and w in (0, channel.outputs - 1):  # one release, not all beyond it
            shift = float(log(1 - exp(mpf(-channel.epsilon))))
        for d in range(channel.inputs):
            cell = want[d][w]
            assert (cell == 0 and got[d] == -np.inf) or abs(got[d] - shift - log(cell)) <= 1e-13 * (1 + abs(log(cell)))


def priors(k):
    rng = np.random.default_rng(k)
    yield None
    law = rng.dirichlet(np.ones(k))
    yield law / law.sum()
    if k > 2:
        law = np.zeros(k)
        law[1:] = 1.0
        law[-1] = 3.0
        yield law / law.sum()
    law = np.full(k, 1e-20)
    law[0] = 1.0
    yield law


def read(found):
    weight = np.exp(found.log_weight)
    held = (found.log_mass > -np.inf) & (found.log_evidence > -np.inf)[found.classes] & (found.log_relative > -np.inf)
    joint = np.exp(found.log_mass + (found.log_total[found.classes] + found.log_relative))[held]
    ratio = found.log_ratio[held]
    order = np.expm1(-ratio) if np.isfinite(found.log_relative).all() else 0.0  # sums to 0
    information = math.fsum(joint * (ratio + order))
    best = np.maximum.reduceat(found.log_largest + found.log_relative, found.starts[:-1]) + found.log_total
    return weight.sum(), information, np.exp(best).sum()


@pytest.mark.parametrize("case", CASES, ids=name)
def test_profiles_and_extremes_are_those_of_brute_force(case):
    channel, want = case
    for prior in priors(channel.inputs):
        law = [mpf(1) / channel.inputs] * channel.inputs if prior is None else [mpf(x) for x in prior]
        information, vulnerability, *most = truth.leakage(want, law)
        found = channel.type_classes(prior)
        total, got_information, got_vulnerability = read(found)
        assert abs(total - 1) <= 1e-12
        assert abs(got_information - information) <= 1e-12 * information + 1e-14
        assert abs(got_vulnerability - vulnerability) <= 1e-13
        got = channel.extreme_log_ratios(prior)
        values = got.ldp_epsilon, got.ldp_on_support, got.xi_plus, got.xi_minus
        gap = abs(float(sum(law) - 1))
        for value, right in zip(values, most, strict=True):
            assert value == right or abs(value - right) <= got.rounding * abs(right) + got.error + 2 * gap, (prior, got)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_pairs_attain_the_hockey_stick_curve(case):
    channel, want = case
    pairs = channel.dominating_pairs()
    if pairs is None:
        assert isinstance(channel, ExponentialMechanism)
        return
    for e in (0.0, 0.2, 1.5):
        right = max(truth.hockey_stick(p, q, e) for p in want for q in want)
        got = max(float(np.sum(np.maximum(np.exp(one.log_p) - math.exp(e) * np.exp(one.log_q), 0))) for one in pairs)
        assert abs(got - right) <= 1e-13


def test_extremes_at_huge_sizes():
    for k in (10**9, 2**200, 2**2000):
        for e in (0.0, 1e-300, 1.0, 1e3, np.inf):
            got = RandomizedResponse(k, e).extreme_log_ratios()
            a, x = 1 / mpf(k), exp(-mpf(e))
            assert got.ldp_epsilon == e
            with mp.workdps(1200):
                plus, minus = -log(a + (1 - a) * x), log(a / x + 1 - a) if e < np.inf else mpf("inf")
            if e < 1e-200:
                plus, minus = (1 - a) * e, a * e
            for value, right in ((got.xi_plus, plus), (got.xi_minus, minus)):
                assert value == right or abs(value - right) <= got.rounding * abs(right) + got.error, (k, e, got)
    got = UnaryEncoding(10**9, 1.0).extreme_log_ratios()
    assert got.xi_plus == pytest.approx(float(-log((1 + (10**9 - 1) * exp(mpf(-1))) / 10**9)), rel=1e-14)
    got = GeometricMechanism(10**12, 1e-9).extreme_log_ratios()
    right = log(mpf(10) ** 12 * (1 - exp(-mpf(1e-9)))) - log(1 - exp(-(10**12) * mpf(1e-9)))
    assert abs(got.xi_plus - right) <= 1e-13 * right


def assert_sides(channel, plus, minus, prior=None):
    got = channel.extreme_log_ratios(prior)
    for value, right in ((got.xi_plus, plus), (got.xi_minus, minus)):
        assert abs(value - right) <= got.rounding * abs(right) + got.error, (channel, value, right)


@pytest.mark.parametrize(("k", "e", "size", "prior"),
                         [(10**9, 1.0, 10**9 - 1, False), (2**1000, 700.0, 1, False), (10**5, 1.0, 1, True)],
                         ids=["almost all", "one of 2**1000", "prior"])
def test_extremes_of_sets_of_extreme_mass(k, e, size, prior):
    """Both masses count where one of them is tiny: 1 less the other loses it."""
    w = mpf(1e-5) if prior else mpf(size) / k
    sides = -log(w + (1 - w) * exp(-mpf(e))), log(1 - w + w * exp(mpf(e)))
    assert_sides(SubsetSelection(k, e, size), *sides, np.full(k, 1e-5) if prior else None)


def test_extremes_of_geometric_noise_between_far_secrets():
    """The decay a = e^-epsilon is rounded, and a^10000 carries 10000 times that error."""
    n, e = 20001, 0.03
    prior = np.zeros(n)
    prior[[0, -1]] = 0.5
    far = exp(-mpf(e) * (n - 1) / 2)
    plus, minus = log(mpf(2)) - log(1 + far * far), mpf(e) * (n - 1) + log((1 + far * far) / 2)
    assert_sides(GeometricMechanism(n, e), plus, minus, prior)
    assert GeometricMechanism(10**9, 1e300).extreme_log_ratios().xi_minus == np.inf  # beyond doubles, but no NaN


def test_rappor_of_almost_only_noise_keeps_its_digits():
    f = 1 - 1e-10
    assert UnaryEncoding.rappor(5, f).epsilon == pytest.approx(float(2 * log((2 - mpf(f)) / f)), rel=1e-14)
    p, q = 2e-300, 1e-300
    right = log(mpf(p)) - log(mpf(q)) + log(1 - mpf(q)) - log(1 - mpf(p))
    assert UnaryEncoding(5, p=p, q=q).epsilon == pytest.approx(float(right), rel=3e-15)
    assert UnaryEncoding(5, p=1e-300, q=0.0).epsilon == np.inf


def test_sizes_that_doubles_cannot_tell_apart_have_no_classes():
    """Sizes near 10^18 are 128 apart as doubles: their classes had a mass of e^-7.7 together."""
    assert UnaryEncoding._of_logits(10**18, 40.0, 37.0, 3.0).type_classes() is None


@pytest.mark.slow
def test_a_million_bits_keep_their_mass():
    for k in (10**6, 10**9):
        found = UnaryEncoding(k, 1.0).type_classes()
        assert found.omitted_mass <= 1e-200
        assert abs(math.fsum(np.exp(found.log_weight)) - 1) <= 1e-10
        assert found.log_relative.min() == -1.0
    assert UnaryEncoding(10**16, 1.0).type_classes() is None


def test_powers_add():
    one, prior = RandomizedResponse(2, 0.3), [0.2, 0.8]
    alone, few = read(one.type_classes(prior)), read(one.power(3).type_classes((prior,)))
    assert few[1] == pytest.approx(3 * alone[1], rel=1e-13)
    assert one.power(200).type_classes((prior,)) is None
    got, single = one.power(200).extreme_log_ratios((prior,)), one.extreme_log_ratios(prior)
    assert got.xi_plus == pytest.approx(200 * single.xi_plus, rel=1e-14)
    assert one.power(200).inputs == 2**200
    (pair,) = one.power(30).dominating_pairs()
    assert np.exp(pair.log_p).sum() == pytest.approx(1, abs=1e-12)
    assert pair.log_ratio.max() == pytest.approx(9.0)


def test_a_cascade_of_randomised_responses_is_one():
    for first, second in ((1.0, 2.0), (1e-300, 3.0), (1e-8, 1e-8), (800.0, 900.0), (5.0, np.inf), (0.0, 1.0), (40, 40)):
        for k in (1, 2, 3, 1000):
            got = RandomizedResponse(k, first).then(RandomizedResponse(k, second)).epsilon
            if k == 1:
                continue
            if second == np.inf or first == 0:
                assert got == first
                continue
            with mp.workdps(900):
                a, b = exp(mpf(first)), exp(mpf(second))
                right = log((a * b + k - 1) / (a + b + k - 2))
            assert abs(got - right) <= 4e-15 * right, (first, second, k)


def test_default_rows_and_dense_channels_agree():
    rows = np.array([[0.9, 0.1, 0.0], [0.2, 0.3, 0.5]])
    channel = DefaultChannel(6, [0.25, 0.25, 0.5], [4, 1], rows)
    dense = Channel(channel.matrix())
    assert dense.matrix()[4].tolist() == rows[0].tolist()
    for prior in (None, [0.1, 0.2, 0.3, 0.4, 0.0, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4, 0.0]):
        assert read(channel.type_classes(prior)) == pytest.approx(read(dense.type_classes(prior)), abs=1e-14)
        one, two = channel.extreme_log_ratios(prior), dense.extreme_log_ratios(prior)
        got = one.ldp_epsilon, one.xi_plus, one.xi_minus
        assert got == pytest.approx((two.ldp_epsilon, two.xi_plus, two.xi_minus))


def test_exponential_mechanism_of_large_scores_that_differ_little():
    """The products of scores near 10^10 with epsilon are off by 10^-7; those of their differences are not."""
    scores, level = [[1e10, 1e10 + 1.0], [1e10 + 3.0, 1e10]], mpf(0.3) / 2
    odds = [exp(level * (mpf(row[1]) - mpf(row[0]))) for row in scores]
    ratios = [log((1 + odds[1]) / (1 + odds[0])), log((1 + odds[1]) / (1 + odds[0])) + log(odds[0] / odds[1])]
    got, right = ExponentialMechanism(scores, 0.3, 1.0).extreme_log_ratios(), max(abs(x) for x in ratios)
    assert abs(got.ldp_epsilon - right) <= got.rounding * right + got.error <= 1e-13


@pytest.mark.parametrize("gap", [1e-9, 3e-10, 1e-7])
def test_extremes_of_rows_that_are_nearly_equal_far_below_another(gap):
    """Theorem 7.21 of docs/proofs: 1.8e-15 was the error where 1.5e-23 was stated."""
    channel = Channel([[1e-10, 1 - 1e-10], [1e-30, 1.0], [1e-30 * (1 + gap), 1.0]])
    cells = [[mpf(float(x)) for x in row] for row in channel.cells]
    with mp.workdps(60):
        for first in (1e-60, 0.0):
            prior = [mpf(x) for x in (first, 0.5, 0.5)]
            columns = [[row[w] for row in cells] for w in (0, 1)]
            logs = [[log(x / mp.fdot(prior, column)) for x, p in zip(column, prior, strict=True) if p]
                    for column in columns]
            got = channel.extreme_log_ratios([first, 0.5, 0.5])
            for value, truth in ((got.xi_minus, max(-min(x) for x in logs)), (got.xi_plus, max(max(x) for x in logs)),
                                 (got.ldp_on_support, max(max(x) - min(x) for x in logs))):
                assert abs(value - truth) <= got.rounding * value + got.error, (first, value, float(truth))
