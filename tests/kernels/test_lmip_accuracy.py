"""The curves of mutual-information privacy against many digits held between a primal and a dual value."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import special
from fastpriv.conversions import lip_delta_from_cd_lmip
from oracles import lmip_conversions as oracle
from sizes import few_or_all

CSRC = Path(__file__).parents[2] / "csrc/lmip"
LN2 = math.log(2)
RELATIVE, RELATIVE_ATOM = 3e-15, 3e-14  # as stated in fastpriv.special
PROVED = mpf(10) ** -20  # how far primal and dual may be apart


def entropy(p):
    small = np.clip(np.minimum(p, 1 - p), 1e-320, 0.5)
    return -(small * np.log(small) + (1 - small) * np.log1p(-small))


def settings(name, n):
    """mu and epsilon, in nats."""
    rng = np.random.default_rng(5)
    mu, epsilon = LN2 * rng.random(n), rng.uniform(0, 5, n)
    if name == "wide":
        mu, epsilon = LN2 * 10 ** rng.uniform(-12, 0, n), 10 ** rng.uniform(-9, math.log10(700), n)
    elif name == "normal":  # epsilon of the order of the root of mu, where the laws are close to normal
        mu = LN2 * 10 ** rng.uniform(-30, 0, n)
        epsilon = np.sqrt(mu) * 10 ** rng.uniform(-3, 3, n)
    elif name == "near one bit":
        mu = LN2 * (1 - 10 ** rng.uniform(-15, -1, n))
    elif name == "tiny":
        mu = 10 ** rng.uniform(-300, -12, n)
        epsilon = np.where(rng.random(n) < 0.5, rng.uniform(0.5, 5, n), np.sqrt(mu) * 10 ** rng.uniform(-2, 2, n))
    elif name == "edges":
        grid = np.meshgrid([1e-12, 1e-3, 0.5, math.nextafter(LN2, 0)], [0, 5e-324, 1e-9, 6, 700])
        mu, epsilon = (x.ravel() for x in grid)
    return mu, epsilon


def atoms(name, n):
    """mu and epsilon, in nats, and the atom."""
    rng = np.random.default_rng(6)
    epsilon = np.where(rng.random(n) < 0.5, rng.uniform(0, 5, n), 10 ** rng.uniform(-12, 2.8, n))
    atom = rng.random(n)
    if name == "rare":
        atom = 10 ** rng.uniform(-300, 0, n)
    elif name == "common":
        atom = 1 - 10 ** rng.uniform(-15, -1, n)
    share = np.where(rng.random(n) < 0.5, rng.random(n), 10 ** rng.uniform(-9, 0, n))
    if name == "close to free":
        share = 1 - 10 ** rng.uniform(-12, -1, n)
    mu = np.maximum(share * entropy(atom), 1e-300)  # a smaller mu is taken for 1e-300
    if name == "edges":
        mu, epsilon, atom = (
            x.ravel() for x in np.meshgrid([1e-12, 0.1, 2.0], [0.0, 1.0, 1e4], [1e-300, 0.1, 0.5, 1 - 2.0**-53])
        )
    return mu, epsilon, atom


def compare(name, got, rows, truth, relative):
    """Every answer, worst first; the flat directions of the maximiser have a tolerance of their own."""
    delta, high, log_low = got
    found = []
    for i, row in enumerate(rows):
        want = truth(*row)
        assert want.gap < PROVED, (row, want)
        with mp.workdps(40):
            error = abs(mpf(float(delta[i])) / want.delta - 1)
            side = abs(mpf(float(high[i])) / want.high - 1)
        side, truth_of = float(side), (float(want.delta), float(want.log_low))
        found.append((float(error), side, row, float(delta[i]), truth_of[0], float(log_low[i]), truth_of[1]))
    worst = max(found)
    print(name, worst)
    assert worst[0] <= relative, worst
    return found


@pytest.mark.slow
@few_or_all("count", 12, 240)
@pytest.mark.parametrize("name", ["plain", "wide", "normal", "near one bit", "tiny", "edges"])
def test_ldp_curve(name, count):
    mu, epsilon = settings(name, count // 12 if name == "tiny" else count)
    arguments = mu, epsilon
    got = [f(*arguments) for f in (special.ci_lmip_ldp_delta, special.ci_lmip_ldp_high, special.ci_lmip_ldp_log_low)]
    rows = [(float(m), float(e)) for m, e in zip(mu, epsilon, strict=True)]
    found = compare(name, got, rows, oracle.ldp, RELATIVE)
    assert max(row[1] for row in found) <= 1e-7, max(found, key=lambda row: row[1])
    if name in ("plain", "wide", "normal"):
        for row in found:
            assert row[5] == pytest.approx(row[6], rel=1e-8, abs=1e-8), row


@few_or_all("count", 12, 240)
@pytest.mark.parametrize("name", ["plain", "wide", "normal", "near one bit", "tiny"])
def test_pointwise_curve(name, count):
    mu, epsilon = settings(name, count // 12 if name == "tiny" else count)
    mu = mu * 2 if name != "tiny" else mu
    functions = special.pointwise_lip_delta, special.pointwise_lip_high, special.pointwise_lip_log_low
    got = [f(mu, epsilon) for f in functions]
    rows = [(float(m), float(e)) for m, e in zip(mu, epsilon, strict=True)]
    for row in compare(name, got, rows, oracle.pointwise, RELATIVE):
        assert row[1] <= 1e-9, row
        assert row[5] == pytest.approx(row[6], rel=1e-9, abs=1e-9), row


@few_or_all("count", 10, 50)
@pytest.mark.parametrize("name", ["plain", "rare", "common", "close to free", "edges"])
def test_atom_curve(name, count):
    mu, epsilon, atom = atoms(name, count // 3 if name == "rare" else count)
    arguments = mu, epsilon, atom
    got = [f(*arguments) for f in (special.cd_lmip_lip_delta, special.cd_lmip_lip_high, special.cd_lmip_lip_log_low)]
    rows = [(float(m), float(e), float(p)) for m, e, p in zip(mu, epsilon, atom, strict=True)]
    found = compare(name, got, rows, oracle.lip, RELATIVE_ATOM)
    if name == "plain":
        for row in found:
            assert row[1] <= 1e-6, row
            assert row[5] == pytest.approx(row[6], rel=1e-6, abs=1e-6), row


@few_or_all("count", 5, 20)
@pytest.mark.slow
def test_saturation(count):
    rng = np.random.default_rng(8)
    drawn = 10 ** rng.uniform(-300, 0, count), rng.random(2 * count), 1 - 10 ** rng.uniform(-15, -1, count)
    for mu in LN2 * np.concatenate(drawn):
        want = oracle.ldp_end(float(mu))
        assert abs(mpf(float(special.ci_lmip_ldp_saturation(mu))) / want - 1) <= RELATIVE, mu
        assert special.ci_lmip_ldp_delta(mu, math.inf) == pytest.approx(float(want), rel=RELATIVE)
        end = special.pointwise_lip_delta(2 * mu, math.inf)
        assert end == pytest.approx(-math.expm1(-2 * mu), rel=RELATIVE), mu
    small = special.ci_lmip_ldp_saturation(1e-12) / (1e-12 * math.e)
    assert small == pytest.approx(1, rel=1e-10)
    for name in ("plain", "rare", "common"):
        for mu, _, atom in zip(*atoms(name, count), strict=True):
            want = oracle.lip_end(float(mu), float(atom))
            got = special.cd_lmip_lip_saturation(mu, atom)
            assert abs(mpf(float(got)) / want - 1) <= RELATIVE_ATOM, (mu, atom, got, want)


def test_exact_values():
    assert special.ci_lmip_ldp_delta([0, LN2, 2, math.inf], 1.0).tolist() == [0, 1, 1, 1]
    assert special.ci_lmip_ldp_high([0, LN2], 1.0).tolist() == [0, 1]
    assert special.ci_lmip_ldp_log_low([0, LN2], 1.0).tolist() == [-math.inf, -math.inf]
    assert special.ci_lmip_ldp_saturation([0, LN2, 3]).tolist() == [0, 1, 1]
    assert special.pointwise_lip_delta([0, math.inf], 1.0).tolist() == [0, 1]
    ends = special.cd_lmip_lip_delta([0, 0.5, LN2, 2], [0, 1, 50, math.inf], [0.0, 0.0, 0.5, 0.25])
    assert ends.tolist() == [0, 1, 0.5, 0.75]
    assert special.cd_lmip_lip_delta([0.5, 2.0], 1.0, 1.0).tolist() == [0, 0]
    assert special.cd_lmip_lip_saturation([0, 0.5, LN2, 0.5], [0.0, 0.0, 0.5, 1.0]).tolist() == [0, 1, 0.5, 0]


@pytest.mark.parametrize("bad", [-1e-300, -1.0, math.nan])
def test_outside_the_domain_is_nan(bad):
    with np.errstate(all="raise"):
        for f in (special.ci_lmip_ldp_delta, special.ci_lmip_ldp_high, special.pointwise_lip_log_low):
            assert np.isnan([f(bad, 1.0), f(0.5, bad)]).all()
        assert np.isnan([special.ci_lmip_ldp_saturation(bad), special.cd_lmip_lip_saturation(0.1, bad)]).all()
        rows = (bad, 1, 0.5), (0.1, bad, 0.5), (0.1, 1, bad), (0.1, 1, 1.5)
        values = [special.cd_lmip_lip_delta(*row) for row in rows]
        assert np.isnan(values).all()


def test_a_smaller_mu_is_taken_for_the_least():
    """Below 1e-300 divergences are subnormal; the answer stays above the truth and below that of 1e-300."""
    for mu in (5e-324, 1e-310, 9e-301):
        for epsilon in (0.0, 1e-200, 1e-150, 1e-3, 2.0):
            assert special.ci_lmip_ldp_delta(mu, epsilon) == special.ci_lmip_ldp_delta(1e-300, epsilon) > 0
            assert special.pointwise_lip_delta(mu, epsilon) == special.pointwise_lip_delta(1e-300, epsilon) > 0
            assert special.cd_lmip_lip_delta(mu, epsilon, 0.3) == special.cd_lmip_lip_delta(1e-300, epsilon, 0.3) > 0
        assert special.ci_lmip_ldp_saturation(mu) == special.ci_lmip_ldp_saturation(1e-300) > 0


@pytest.mark.slow
def test_rare_other_values_at_tiny_mu():
    """At epsilon = 0 a small delta is the root of mu (1 - atom) / (2 atom), whose square leaves the doubles."""
    atom = 1 - 2.0 ** -np.arange(1.0, 54.0)
    mu, atom = (x.ravel() for x in np.meshgrid(10 ** np.linspace(-300, -270, 61), atom))
    delta, found = special.cd_lmip_lip_delta(mu, 0.0, atom), lip_delta_from_cd_lmip(mu, 0.0, atom)
    rows = zip(mu, atom, delta, found.lower, found.upper, strict=True)
    for m, pi, got, lower, upper in rows:
        want = mp.sqrt(mp.mpf(float(m)) * (1 - mp.mpf(float(pi))) / (2 * mp.mpf(float(pi))))
        assert lower <= want <= upper, (m, pi, got, want)
        assert got >= want * (1 - mp.mpf(3e-14)), (m, pi, got, want)
        if m * (1 - pi) >= 1.01e-305:
            assert got <= want * (1 + mp.mpf(3e-14)), (m, pi, got, want)
    near = np.concatenate([[0.0], 10 ** np.linspace(-170, -140, 301)])
    falls = special.cd_lmip_lip_delta(3e-297, near, 1 - 6e-16)
    assert np.all(np.diff(falls) <= 1e-14 * falls[:-1]), np.max(np.diff(falls) / falls[:-1])


def test_no_nan_and_no_neighbours():
    """Over the whole domain, and whatever stands beside an entry."""
    rng = np.random.default_rng(9)
    n = 20_000
    mu = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-300, 0.5, n), 2 * rng.random(n))
    epsilon = 10 ** rng.uniform(-300, 4, n)
    atom = np.where(rng.random(n) < 0.5, 10 ** rng.uniform(-300, 0, n), 1 - 10 ** rng.uniform(-16, 0, n))
    some = rng.permutation(n)[:500]
    calls = [(f, (mu, epsilon)) for f in (special.ci_lmip_ldp_delta, special.pointwise_lip_delta)]
    for f, arguments in [*calls, (special.cd_lmip_lip_delta, (mu, epsilon, atom))]:
        values = f(*arguments)
        assert ((values >= 0) & (values <= 1)).all(), f.__name__
        alone = np.array([f(*(float(a[i]) for a in arguments)) for i in some])
        np.testing.assert_array_equal(alone, values[some])


def test_series_are_those_of_bernoulli_numbers():
    """Lemma 12.12 of docs/proofs/conversions.md: coefficients are rounded, and the next term is what it says."""
    text = "".join((CSRC / name).read_text() for name in ("fp_lmip.h", "fp_lmip_lip.h"))

    def table(name):
        body = re.search(rf"double {name}\[\d+\] = {{(.*?)}};", text, re.DOTALL)[1]
        return [eval(term) for term in body.replace("\n", " ").split(",") if term.strip()]

    with mp.workdps(40):
        b = [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 10)]
        wanted = {
            "T": [mpf(1) / (2 * k + 3) for k in range(14)], "fp_lmip_b": b[:8],
            "D": [(2 * k + 1) * x for k, x in enumerate(b[:8])],
            "S": [x / (2 * k + 2) for k, x in enumerate(b[:7])],
        }
        for name, want in wanted.items():
            found = table(name)
            assert len(found) == len(want), name
            assert all(abs(x / y - 1) <= 2.0**-52 for x, y in zip(found, want, strict=True)), (name, found)
        assert abs(b[8]) < 8.7e-15
        assert abs(b[7]) / 16 < 2.2e-14
