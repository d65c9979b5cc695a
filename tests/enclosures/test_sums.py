"""Vectors that rounding leaves beside the sum 1: bounds hold for them as given and divided by their exact sum.

Inputs come from whole numbers by single divisions, so that every machine makes the same.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import binomial, exp, expm1, inf, log1p, mp, mpf
from scipy.sparse import csr_array

from fastpriv import Channel, GaussianMixture, Pmf, RandomizedResponse, calibration, hockey_stick_divergence, notions
from fastpriv.base import validate
from fastpriv.channels import SparseChannel, type_classes
from oracles import channel_notions as truth


def shared(rng, count, kind=np.float64):
    """Whole numbers over their sum, added up in order: the sum is 1 up to rounding."""
    whole = rng.integers(1, 10**6, count)
    return whole.astype(kind) / kind(int(whole.sum()))


def both(rows):
    """The rows as they are and over their sums."""
    given = [[mpf(float(x)) for x in row] for row in rows]
    return given, [[x / sum(row) for x in row] for row in given]


def check_contains(found, wants, what):
    for want in wants:
        want = min(want, mpf(1)) if found.unit == "probability" else want
        want = mpf(0) if -mpf(10) ** -45 < want < 0 else want
        assert found.lower <= want <= found.upper, (what, found, want)
    assert found.lower <= found.value <= found.upper, (what, found)


def test_the_gap_of_a_sum_is_rounded_up():
    rng = np.random.default_rng(3)
    for count in (1, 2, 5, 50, 1000, 2**12, 2**12 + 1, 2**16 + 1):
        weights = shared(rng, count)
        exact = abs(Fraction(sum(int(math.ldexp(x, 200)) for x in weights.tolist()) - 2**200, 2**200))
        gap = validate.sum_gap(weights)
        spare = Fraction(1, 10**16) if count > 2**12 else 0
        assert exact <= Fraction(gap) <= exact * (1 + Fraction(1, 2**40)) + spare
        assert gap <= (count + 1) * 2.0**-53 + 1e-16  # what rounding explains
    assert validate.sum_gap([0.25, 0.75]) == 0.0
    weights = shared(rng, 5)
    assert GaussianMixture(weights, range(5), 1.0).mass_gap == Pmf(range(5), weights).mass_gap
    for law in (Pmf([0, 1], [1.0, 2.0**-52]), GaussianMixture([1.0, 2.0**-52], [0, 1], 1.0)):
        assert law.mass_gap == pytest.approx(2.0**-52, rel=1e-15)
    assert Pmf([0, 1], [1.0, 1e-30]).mass_gap == 0.0
    assert Channel([weights]).mass_gap == pytest.approx(validate.sum_gap(weights), rel=1e-9)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_channels_as_given_and_over_their_sums(kind):
    rng = np.random.default_rng(11)
    for _ in range(8):
        n, m = (int(x) for x in rng.integers(2, 5, 2))
        rows, prior = np.array([shared(rng, m, kind) for _ in range(n)]), shared(rng, n)
        given, normal = both(rows)
        wants = [truth.quantities(one, prior) for one in (given, normal)]
        for name, function in (
            ("ldp_epsilon", notions.ldp_epsilon), ("xi", notions.lip_epsilon),
            ("maximal_leakage", notions.maximal_leakage),
            ("bayes_vulnerability", notions.bayes_vulnerability), ("min_entropy_leakage", notions.min_entropy_leakage),
            ("cd_lmip", notions.cd_lmip), ("pointwise_lmip", notions.pointwise_lmip),
        ):
            informed = name in ("cd_lmip", "pointwise_lmip")  # of rows as given: divergences of measures
            check_contains(function(prior, rows), [want[name] for want in wants[informed:]], name)
        for epsilon in (0.0, 0.4):
            deltas = [truth.ldp_delta(one, epsilon) for one in (given, normal)]
            check_contains(notions.ldp_delta(None, rows, epsilon), deltas, epsilon)
            deltas = [truth.lip_delta(one, prior, epsilon) for one in (given, normal)]
            check_contains(notions.lip_delta(prior, rows, epsilon), deltas, epsilon)
        law = normal[0]
        check_contains(notions.abp(prior, rows, secret=0).mean, [truth.abp(normal, prior, law)], "abp")


def test_normalised_weights_keep_small_deltas():
    """Weights over their sums, most of which miss 1 by a rounding: curves and calibrations stay sharp."""
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(12):
        weights, others = (shared(rng, 50) * (1 + 2.0**-51) for _ in range(2))  # as sums in doubles may leave them
        p, q = (GaussianMixture(own, np.arange(50) / 8, 1.0) for own in (weights, others))
        missed += p.mass_gap > 0
        found = hockey_stick_divergence(p, q, [1.0, 20.0])
        assert found.width[0] <= 1e-9 * found.value[0], found  # of H = 1e-79 as of 0.1
        assert found.upper[1] <= 1e-30, found
    assert missed
    sigma = calibration.sigma_from_lip(0.5, 1e-20, Pmf(range(5), [0.1, 0.2, 0.3, 0.25, 0.15 + 2.0**-52]))
    assert sigma.width <= 1e-11 * sigma.value


def test_what_a_gap_moves_is_a_part_of_a_small_delta():
    tiny = 1e-20
    rows = np.array([[tiny, 0.1, 0.2, 0.7], [tiny * 2.0**-70, 0.3, 0.1, 0.6]])
    assert Channel(rows).mass_gap > 0
    found = notions.ldp_delta(None, rows, 20.0)
    check_contains(found, [truth.ldp_delta(one, 20.0) for one in both(rows)], "delta")
    assert found.width <= 1e-13 * found.value
    off = np.array([[tiny, 0.1, 0.2, 0.7 + 1e-10], [tiny * 2.0**-70, 0.3, 0.1, 0.6]])
    found = notions.ldp_delta(None, off, 20.0)
    check_contains(found, [truth.ldp_delta(one, 20.0) for one in both(off)], "delta")
    assert found.width <= 1e-9 * found.value


def test_equal_rows_of_singles_leak_nothing():
    rng = np.random.default_rng(4)
    for count in (5, 12, 40):
        row = shared(rng, count, np.float32)
        for quantity in (notions.cd_lmip, notions.maximal_leakage):
            found = quantity(None, np.stack([row, row]))
            assert found.lower == 0.0 <= found.value <= 1e-11, (quantity, found)
        assert notions.ldp_epsilon(None, np.stack([row, row])).upper == 0.0


SUBNORMAL = [
    [[1e-320, 0.5, 0.5], [0.25, 0.5, 0.25], [0.5, 3e-315, 0.5]], [[5e-324, 1.0], [1.5e-323, 1.0]],
    [[1.0, 3e-323, 0.0], [0.25, 0.25, 0.5], [0.5, 7e-310, 0.5]],
]


@pytest.mark.parametrize("rows", SUBNORMAL, ids=range(3))
def test_subnormal_cells_in_every_form(rows):
    prior = [0.5, 0.5] if len(rows) == 2 else [0.25, 0.25, 0.5]
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(rows))
    with mp.workdps(700):
        cells = [[exp(mpf(float(x))) if x > -np.inf else mpf(0) for x in row] for row in logs]
        for channel, written in ((Channel(rows), rows), (SparseChannel(csr_array(np.array(rows))), rows),
                                 (Channel(logs, log=True), cells)):
            want = truth.quantities(written, prior)
            for name, function in (
                ("ldp_epsilon", notions.ldp_epsilon), ("xi", notions.lip_epsilon), ("cd_lmip", notions.cd_lmip),
                ("pointwise_lmip", notions.pointwise_lmip), ("maximal_leakage", notions.maximal_leakage),
            ):
                found = function(prior, channel)
                if want[name] == inf:
                    assert found.value == found.lower == math.inf, (name, channel)
                    continue
                assert found.lower - 1e-300 <= want[name] <= found.upper + 1e-300, (name, channel, found, want[name])
                assert found.width <= 1e-11 * (1 + want[name]), (name, channel, found)


RARE = [
    ([[0.5, 0.25, 0.25], [0.25, 0.75, 0.0], [0.125, 0.125, 0.75]], [0.75, 0.25, 1e-300]),
    ([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]], [0.75, 0.25, 1e-120]),
    ([[0.5, 0.5, 1e-90], [0.25, 0.75, 1e-200], [0.25, 0.25, 0.5]], [1.0, 1e-290, 1e-100]),
    ([[1.0, 1e-250], [0.5, 0.5], [1e-20, 1.0]], [1.0, 1e-300, 1e-300]),
]


@pytest.mark.parametrize(("rows", "prior"), RARE, ids=range(len(RARE)))
@pytest.mark.parametrize("log", [False, True])
def test_rare_secrets(rows, prior, log, monkeypatch):
    """Priors from 1e-300 in ABP, information and its pointwise form: no wide bracket, whatever the form."""
    monkeypatch.setattr(truth, "FINE", 1000)
    with np.errstate(divide="ignore"):
        channel = Channel(np.log(np.array(rows)), log=True) if log else Channel(rows)
    with mp.workdps(1000):
        cells = [[exp(mpf(float(x))) if x > -np.inf else mpf(0) for x in row] for row in channel.cells] if log else rows
        cells = [[x / sum(map(mpf, row)) for x in row] for row in cells]
        want = truth.quantities(cells, prior)
        shift = [truth.abp(cells, prior, row) for row in cells]
    summary, per_value = notions.summary(prior, channel), notions.abp(prior, channel).per_value
    singly = [notions.abp(prior, channel, secret=d).mean for d in range(len(prior))]
    for name in ("cd_lmip", "pointwise_lmip", "xi_plus", "xi_minus", "bayes_vulnerability"):
        found = getattr(summary, name)
        assert found.lower - 1e-300 <= want[name] <= found.upper + 1e-300, (name, found, want[name])
        assert want[name] == inf or found.width <= 1e-11 * (1 + want[name]), (name, found)
    for d, value in enumerate(shift):
        assert per_value.lower[d] - 1e-300 <= value <= per_value.upper[d] + 1e-300, (d, per_value, value)
        assert singly[d].lower - 1e-300 <= value <= singly[d].upper + 1e-300, (d, singly[d], value)
        assert max(per_value.width[d], singly[d].width) <= 1e-11, (d, per_value, singly[d])


def binary_delta(e, n, epsilon):
    """sum_j C(n, j) (t^(n-j) l^j - e^epsilon t^j l^(n-j))^+ for t = 1 / (1 + e^-e), l = 1 - t."""
    ratio, level = exp(-mpf(e)), mpf(float(epsilon))
    part, total = exp(-n * log1p(ratio)), mpf(0)
    for j in range(n + 1):
        excess = (n - 2 * j) * mpf(e) - level
        if excess <= 0:
            break
        total -= part * expm1(-excess)
        part *= ratio * (n - j) / (j + 1)
    return min(total, mpf(1))


def check_binary_power(e, n, levels):
    found = notions.ldp_delta(None, RandomizedResponse(2, e).power(n), levels)
    for place, level in enumerate(levels):
        want = binary_delta(e, n, level)
        assert found.lower[place] <= want <= found.upper[place], (e, n, level, found.lower[place], want)
        assert found.lower[place] <= found.value[place] <= found.upper[place]
        if level < 0.99 * n * e and want > 1e-300:
            assert found.width[place] <= 1e-13 * (n + 20) * want * (1 + n * e / max(level, e)), (e, n, level, want)


def test_powers_of_binary_randomised_response():
    assert notions.ldp_delta(None, RandomizedResponse(2, 1.0).power(200), 25.0).upper >= 0.9999997653196424
    rng = np.random.default_rng(8)
    for n in (2, 7, 130, 200):
        for e in (2.0**-20, 0.5, 1.0, 3.0, 50.0):
            levels = [0.0, float(rng.integers(0, 1000)) / 1000 * n * e, n * e * math.tanh(e / 2), e * (n // 2), n * e]
            check_binary_power(e, n, levels)


@pytest.mark.slow
def test_many_powers_of_binary_randomised_response():
    rng = np.random.default_rng(9)
    for n in (*rng.integers(2, 1000, 150).tolist(), 10_000):
        e = math.ldexp(float(rng.integers(1, 2**20)), int(rng.integers(-40, -14)))
        centre = n * e * math.tanh(e / 2)
        spread = 3 * e * math.sqrt(n) / math.cosh(e / 2)
        check_binary_power(e, n, [0.0, abs(centre - spread), centre, min(centre + spread, n * e), e * (n // 3)])


def test_log_multinomials_in_extended_precision():
    many = np.array([[0, 30], [1, 29], [15, 15], [16, 14], [30, 0]])
    found, error = type_classes.log_multinomials(30, many)
    for row, got in zip(many.tolist(), found, strict=True):
        high = float(got)
        assert abs(mpf(high) + mpf(float(got - high)) - mp.log(binomial(30, row[0]))) <= error, row
    table = type_classes._log_factorials(5000)
    for x in (2, 15, 16, 17, 100, 5000):
        high = float(table[x])
        want = mp.loggamma(x + 1)
        assert abs(mpf(high) + mpf(float(table[x] - high)) - want) <= 12 * mpf(2) ** -63 * want + mpf(10) ** -18, x
