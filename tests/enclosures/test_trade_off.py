"""Trade-off curves contain the errors of likelihood-ratio tests, and are as sharp as they say."""

from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from mpmath import erfc, erfinv, findroot, log, mp, mpf, ncdf, sqrt
from scipy.special import ndtr, ndtri

import fastpriv
from fastpriv import (
    Channel,
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    RandomizedResponse,
    compose,
    risk,
    special,
    total_variation,
)
from fastpriv.adapters import dp_accounting_pld
from fastpriv.composition import privacy_profile, reconstruction_robustness, trade_off_curve, true_positive_rate
from fastpriv.errors import ShapeError

ALPHA = np.array([0.0, 1e-12, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.9999, 1.0])


def normal_beta(alpha, mu):
    """Phi(Phi^-1(1 - alpha) - mu), exactly 1 and 0 at the ends."""
    if alpha in (0.0, 1.0):
        return mpf(1 - alpha)
    quantile = sqrt(mpf(2)) * erfinv(1 - 2 * mpf(alpha))
    return erfc((mu - quantile) / sqrt(mpf(2))) / 2


@pytest.mark.few(2)
@pytest.mark.parametrize("mu", [0.0, 1e-300, 1e-3, 0.5, 1.0, 4.0, 30.0, 70.0])
def test_normal_distributions(mu):
    alpha = np.array([1e-300, 1e-100, 1e-12, 1e-4, 0.05, 0.3, 0.5, 0.9, 0.9999, 1 - 1e-15])
    curve = trade_off_curve(GaussianMechanism(1.0, mu), None, alpha)
    assert curve.beta.kind == "exact"
    for a, low, high in zip(alpha, curve.beta.lower, curve.beta.upper, strict=True):
        with mp.workdps(340):
            z = findroot(lambda z: log(erfc(z / sqrt(mpf(2))) / 2) - log(mpf(a)), -float(ndtri(a)), tol=1e-60)  # noqa: B023
            truth = erfc((mu - z) / sqrt(mpf(2))) / 2
            assert low <= truth <= high, (a, low, high, truth)
            assert high - low <= 2e-13 * max(truth, mpf("1e-305"))
    assert curve.advantage == GaussianMechanism(1.0, mu).delta(0.0)


def test_the_generic_method_is_as_sharp_as_the_closed_curve():
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture.single(1.0, 1.0)
    known, mechanism = trade_off_curve(p, q, ALPHA).beta, GaussianMechanism(1.0, 1.0)
    found = trade_off_curve(mechanism.delta, None, ALPHA).beta
    assert known.kind == "exact"
    assert found.kind == "certified"
    assert (found.lower <= known.upper).all()
    assert (known.lower <= found.upper).all()
    assert found.width.max() <= 1e-12
    for a, low, high in zip(ALPHA, found.lower, found.upper, strict=True):
        assert low <= normal_beta(a, 1.0) <= high


@pytest.mark.parametrize(("mean", "sigma"), [(0.3, 2.0), (0.0, 1.000001), (3.0, 0.1), (1e-9, 1.0), (50.0, 1.0)])
def test_thresholds_on_two_sides(mean, sigma):
    """N(0, 1) against N(mean, sigma^2): any test gives an upper bound; mpmath has the best one at its own alpha."""
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture.single(mean, sigma)
    with mp.workdps(400):
        m, s = mpf(mean), mpf(sigma)
        rows = []
        for t in (0.1, 1.0, 2.5):
            if sigma == 1.0:
                alpha, beta = 1 - ncdf(t), ncdf(t - m)
            else:  # q / p >= c on the outside of an interval about the centre where s > 1, else inside
                centre = m / (1 - s * s)
                low, high = centre - t, centre + t
                alpha = 1 - (ncdf(high) - ncdf(low))
                beta = ncdf((high - m) / s) - ncdf((low - m) / s)
                if s < 1:
                    alpha, beta = 1 - alpha, 1 - beta
            rows.append((alpha, beta))
    for alpha, beta in rows:
        a = float(alpha)
        curve = trade_off_curve(p, q, [np.nextafter(a, 0), a, np.nextafter(a, 1)])
        assert curve.beta.lower[2] <= beta <= curve.beta.upper[0]
        assert curve.beta.width.max() <= 1e-12


@pytest.mark.parametrize("swapped", [False, True])
def test_a_subsampled_mechanism(swapped):
    """The likelihood ratio rises in the release, so that thresholds are the best tests."""
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture([0.9, 0.1], [0.0, 2.0], 1.0)
    t = np.linspace(-3.0, 6.0, 40)
    mixed = 0.9 * special.ndtr(-t) + 0.1 * special.ndtr(2.0 - t)
    if swapped:
        alpha, beta, pair = 1 - mixed, special.ndtr(-t), (q, p)
    else:
        alpha, beta, pair = special.ndtr(-t), 1 - mixed, (p, q)
    curve = trade_off_curve(*pair, alpha)
    assert (curve.beta.lower <= beta + 1e-15).all()
    assert (curve.beta.upper >= beta - 1e-15).all()
    assert curve.beta.width.max() <= 1e-12
    assert curve.advantage.value == pytest.approx(total_variation(p, q).value, abs=1e-14)


def test_randomised_response():
    """At alpha = 1/4 the concave function is flat from kink to kink."""
    curve = trade_off_curve(Channel([[0.75, 0.25], [0.25, 0.75]]), None, [0.0, 0.1, 0.25, 0.5, 1.0])
    truth = np.array([1.0, 0.7, 0.25, 0.5 / 3, 0.0])
    assert ((curve.beta.lower <= truth + 1e-15) & (truth - 1e-15 <= curve.beta.upper)).all()
    assert curve.beta.width.max() <= 1e-12


def polygon(p, q, alpha):
    """The least beta at alpha by rational arithmetic: reject outcomes in the order of falling q / p."""
    p, q = ([Fraction(x) for x in row] for row in (p, q))
    order = sorted(range(len(p)), key=lambda i: q[i] / p[i] if p[i] else Fraction(10) ** 400, reverse=True)
    left, beta = Fraction(alpha), sum(q)
    for i in order:
        part = min(Fraction(1), left / p[i]) if p[i] else Fraction(1)
        left, beta = left - part * p[i], beta - part * q[i]
    return beta


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(6))
def test_discrete_pairs(seed):
    rng = np.random.default_rng(seed)
    p, q = (rng.integers(1, 2**20, 7) * 2.0 ** -rng.integers(0, 40 * (seed % 3) + 1, 7) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    if seed >= 3:
        p[0], q[1] = 0.0, 0.0
        p, q = p / p.sum(), q / q.sum()
    alpha = np.concatenate([[0.0, 1e-300, 1e-12, 1.0], rng.random(20)])
    exact = trade_off_curve(p, q, alpha)
    on_points = trade_off_curve(Pmf(np.arange(7.0), p), Pmf(np.arange(7.0), q), alpha)
    assert np.allclose(exact.beta.value, on_points.beta.value, rtol=1e-14)
    generic = trade_off_curve(lambda e: pair(p, q, e), lambda e: pair(q, p, e), alpha)
    for i, a in enumerate(alpha):
        truth = polygon(p, q, a)
        slack = Fraction(2) ** -52 * 4
        assert exact.beta.lower[i] - slack <= truth <= exact.beta.upper[i] + slack, a
        assert exact.beta.width[i] <= 1e-14
        assert generic.beta.lower[i] - slack <= truth <= generic.beta.upper[i] + slack
        assert generic.beta.width[i] <= 1e-12


def pair(p, q, epsilon):
    return privacy_profile(p, q, epsilon)


def test_what_is_refused():
    with pytest.raises(DomainError, match="alpha must be between 0 and 1; got 2"):
        trade_off_curve(GaussianMechanism(1.0, 1.0), None, 2.0)
    with pytest.raises(ShapeError, match="q must have one probability for each of p, 2; got 3"):
        trade_off_curve([0.5, 0.5], [0.5, 0.25, 0.25], 0.5)
    with pytest.raises(DomainError, match="p must sum to 1 within 1e-09; got a sum of 0.75"):
        trade_off_curve([0.5, 0.25], [0.5, 0.5], 0.5)
    with pytest.raises(ShapeError, match="sigma must be a single number"):
        trade_off_curve(GaussianMechanism([1.0, 2.0], 1.0), None, 0.5)
    with pytest.raises(DomainError, match="p must be a GaussianMixture, a Pmf, a vector of probabilities"):
        trade_off_curve(None, None, 0.5)


def test_curves_of_riskcal():
    riskcal = pytest.importorskip("riskcal")
    p, q = GaussianMixture([0.9, 0.1], [0.0, 1.0], 0.7), GaussianMixture([0.8, 0.2], [0.0, -1.0], 0.7)
    alpha = np.array([0.01, 0.1])
    theirs = riskcal.analysis.get_beta_from_pld(dp_accounting_pld(p, q, interval=1e-3), alpha)
    assert np.allclose(theirs, trade_off_curve(q, p, alpha).beta.value, atol=1e-5)


HARSH = np.array([0.0, 1e-300, 1e-100, 1e-16, 1e-6, 0.05, 0.3, 0.5, 0.9, 1 - 1e-10, 1 - 2.0**-53, 1.0])


def log_tail(x):
    return log(erfc(x / sqrt(mpf(2))) / 2)


def quantile(alpha):
    """The x with normal tail alpha."""
    return findroot(lambda x: log_tail(x) - log(mpf(alpha)), -float(ndtri(alpha)), tol=1e-60)


@pytest.mark.few(1)
@pytest.mark.parametrize("mu", [1e-3, 1.0, 5.0])
def test_powers_of_normal_distributions(mu):
    """The closed form, the conjugate of its curve and the composition of 16 releases, from 1e-300 to 1 - 1e-16."""
    alpha = HARSH[1:-1]
    mechanism = GaussianMechanism(1.0, mu)
    with mp.workdps(340):
        truth = [erfc((quantile(a) - mpf(mu)) / sqrt(mpf(2))) / 2 for a in alpha]
        composed = compose(GaussianMechanism(4.0, mu), 16)
        for pair, width in ((mechanism, 1e-13), (mechanism.delta, 2e-11), (composed, 5e-11)):
            power, beta = true_positive_rate(pair, None, alpha), trade_off_curve(pair, None, alpha).beta
            for i, a in enumerate(alpha):
                assert power.lower[i] <= truth[i] <= power.upper[i], (pair, a)
                assert beta.lower[i] <= 1 - truth[i] <= beta.upper[i], (pair, a)
                assert power.width[i] <= width * truth[i], (pair, a)
                assert beta.width[i] <= 1e-12
    ends = true_positive_rate(compose(mechanism, 3), None, [0.0, 1.0])
    assert (ends.lower.tolist(), ends.upper.tolist()) == ([0.0, 1.0], [0.0, 1.0])


def test_powers_of_a_subsampled_mechanism():
    """The likelihood ratio rises in the release: thresholds are the best tests, down to levels of 1e-300."""
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture([0.75, 0.25], [0.0, 1.0], 1.0)
    with mp.workdps(340):
        for x in (-1.0, 0.5, 3.0, 8.0, 20.0, 36.0):
            tails = [erfc((mpf(x) - m) / sqrt(mpf(2))) / 2 for m in (0, 1)]
            level, power = tails[0], (3 * tails[0] + tails[1]) / 4
            around = float(level) * np.array([1 - 1e-15, 1 + 1e-15])
            found = true_positive_rate(p, q, around)
            assert found.lower[0] <= power <= found.upper[1]
            assert (found.width <= 1e-12 * found.value).all()
            reverse = reconstruction_robustness(q, p, around)
            assert reverse == found


@pytest.mark.few(1)
@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_releases_of_randomised_response(count):
    """All corners of the polygon of rational tests, and levels between them."""
    cells = [Fraction(3, 4) ** (count - j) * Fraction(1, 4) ** j for j in range(count + 1)]
    p = [Fraction(comb(count, j)) * cells[j] for j in range(count + 1)]
    q = p[::-1]
    levels = [float(sum(p[:j])) for j in range(count + 1)] + [1e-300, 1e-16, 0.01, 0.3, 0.7, 0.99, 1 - 2.0**-53]
    alpha = np.clip(levels, 0.0, 1.0)
    pair = compose(([0.75, 0.25], [0.25, 0.75]), count)
    power, beta = true_positive_rate(pair, None, alpha), trade_off_curve(pair, None, alpha).beta
    for i, a in enumerate(alpha):
        left, truth = Fraction(a), Fraction(0)
        for j in range(count, -1, -1):
            part = min(Fraction(1), left / p[j])
            left, truth = left - part * p[j], truth + part * q[j]
        assert power.lower[i] <= truth <= power.upper[i], (count, a)
        assert beta.lower[i] <= 1 - truth <= beta.upper[i], (count, a)
        assert power.width[i] <= 1e-12
        assert power.width[i] <= 1e-9 * power.value[i] or a < 1e-290
    distance = sum(max(a - b, 0) for a, b in zip(p, q, strict=True))
    assert trade_off_curve(pair).advantage.value == pytest.approx(float(distance))


@pytest.mark.parametrize(("sigma", "rate", "count"), [(1.0, 0.125, 20), (2.0, 0.0078125, 1000)])
def test_releases_of_a_subsampled_mechanism(sigma, rate, count):
    """Duality: the line of slope e^epsilon that touches the powers meets the axis at delta(epsilon)."""
    p, q = GaussianMixture([1 - rate, rate], [0.0, 1.0], sigma), GaussianMixture.single(0.0, sigma)
    pair = compose((p, q), count)
    epsilon = np.array([0.01, 0.3, 1.0, 2.0])
    delta = pair.delta(epsilon)
    level = pair.tail_probabilities(epsilon)[1].value
    power = reconstruction_robustness(pair, None, level)
    line = np.exp(epsilon) * level
    assert (power.lower <= (delta.upper + line) * (1 + 1e-14)).all()
    assert (power.upper >= (delta.lower + line) * (1 - 1e-14)).all()
    assert (power.width <= 1e-9 * power.value)[:3].all()
    grid = np.concatenate([np.geomspace(1e-20, 0.5, 60), 1 - np.geomspace(0.4, 1e-12, 40)])
    curve = trade_off_curve(pair, None, grid).beta
    part = np.diff(grid)[:-1] / (grid[2:] - grid[:-2])
    assert (curve.lower[1:-1] <= curve.upper[:-2] * (1 - part) + curve.upper[2:] * part + 1e-15).all()  # convex
    inverse = trade_off_curve(pair.reversed, None, curve.value).beta  # the other error, at this one
    some = curve.value < 1 - 1e-3
    assert np.allclose(inverse.value[some], grid[some], rtol=1e-9, atol=1e-13)
    fewer = trade_off_curve(compose((p, q), count // 2), None, grid).beta
    assert (fewer.upper >= curve.lower).all()


@pytest.mark.slow
def test_groups():
    mechanism, alpha = GaussianMechanism(1.0, 0.25), np.array([1e-12, 0.01, 0.5])
    exact = trade_off_curve(mechanism, None, alpha, group=4)
    assert exact.beta == trade_off_curve(GaussianMechanism(1.0, 1.0), None, alpha).beta
    bound = trade_off_curve(mechanism.delta, None, alpha, group=4)
    assert np.allclose(bound.beta.lower, exact.beta.value, atol=1e-9)
    assert (bound.beta.lower <= exact.beta.upper).all()
    assert (bound.beta.upper == trade_off_curve(mechanism.delta, None, alpha).beta.upper).all()  # of one record
    assert exact.advantage == GaussianMechanism(1.0, 1.0).delta(0.0)
    assert bound.advantage.upper >= exact.advantage.upper
    power = true_positive_rate(mechanism.delta, None, alpha, group=4)
    assert np.allclose(power.upper, true_positive_rate(mechanism, None, alpha, group=4).value, rtol=1e-9)
    wide = privacy_profile(mechanism.delta, None, [-1.0, 0.0, 1.0], group=4)
    assert (wide.upper >= privacy_profile(mechanism, None, [-1.0, 0.0, 1.0], group=4).upper).all()
    assert (wide.lower <= privacy_profile(mechanism, None, [-1.0, 0.0, 1.0]).lower * (1 + 1e-12)).all()
    response = RandomizedResponse(2, 0.5)
    power = true_positive_rate(response, None, 1e-3, group=3)
    assert power.upper == pytest.approx(1e-3 * np.exp(1.5))
    assert power.lower == pytest.approx(1e-3 * np.exp(0.5))


@pytest.mark.slow
def test_the_null_hypothesis_of_an_attack_on_membership_is_the_base():
    """Of (mixture, base) the claim "the record is there" has false alarms under the base, as delta forward counts."""
    base = fastpriv.GaussianMixture.single(0.0, 1.0)
    mixture = fastpriv.GaussianMixture([0.9, 0.1], [0.0, 3.0], 1.0)
    rate = np.array([1e-4, 0.01, 0.3])
    claims = true_positive_rate(mixture, base, rate, null="q")
    cut = -ndtri(rate)  # the ratio rises with the release
    truth = 0.9 * rate + 0.1 * ndtr(3.0 - cut)
    assert np.allclose(claims.value, truth, rtol=1e-9)
    swapped = true_positive_rate(base, mixture, rate)
    assert (np.abs(swapped.value - claims.value) <= 1e-12).all()
    pair = fastpriv.compose((mixture, base))
    found = true_positive_rate(pair, None, rate, null="q")
    assert ((found.lower <= claims.upper) & (claims.lower <= found.upper)).all()
    other = true_positive_rate(pair.reversed, None, rate)
    assert ((found.lower <= other.upper) & (other.lower <= found.upper)).all()
    assert (true_positive_rate(pair, None, rate).upper < found.lower)[:2].all()  # null="p", which says "it is absent"
    beta = trade_off_curve(pair, None, rate, null="q").beta
    assert np.allclose(beta.value, 1.0 - truth, rtol=1e-9)
    delta = pair.delta(1.0, direction="forward")
    best = found.upper - np.e * rate  # power - e^epsilon level of this test is at most delta of the direction forward
    assert (true_positive_rate(pair, None, rate, null="q").lower - np.e * rate <= delta.upper).all()
    assert best.max() > 0.0
    step = fastpriv.PoissonSampledGaussian(1.0, 0.1)
    both = [true_positive_rate(step, None, rate, null=role) for role in ("p", "q")]
    assert np.allclose(both[0].value, both[1].value, rtol=1e-9)
    with pytest.raises(DomainError, match="null must be one of p, q; got 'base'"):
        true_positive_rate(pair, None, rate, null="base")


def test_what_powers_refuse():
    mechanism = GaussianMechanism(1.0, 1.0)
    with pytest.raises(DomainError, match="false_positive_rate must be between 0 and 1; got -1"):
        true_positive_rate(mechanism, None, -1.0)
    with pytest.raises(DomainError, match="baseline must be between 0 and 1; got 2"):
        reconstruction_robustness(mechanism, None, 2.0)
    with pytest.raises(DomainError, match="group must be an integer of at least 1 and at most 1024; got 0"):
        trade_off_curve(mechanism, None, 0.5, group=0)


def test_releases_with_normal_noise():
    releases = fastpriv.compose([fastpriv.GaussianMechanism(3.0, 1.0), fastpriv.GaussianMechanism(2.0, 1.0)], [7, 3])
    level = np.array([1e-300, 1e-20, 0.01, 0.3, 0.7, 1 - 1e-9])
    power = risk.true_positive_rate(releases, None, level)
    beta = risk.trade_off_curve(releases, None, level).beta
    assert (power.width <= 1e-13 * power.value).all()
    assert (beta.width <= 1e-13 * beta.value).all()
    with mpmath.workdps(60):
        mu = mpmath.sqrt(mpmath.mpf(7) / 9 + mpmath.mpf(3) / 4)
        for i, alpha in enumerate(level.tolist()):
            z = mpmath.findroot(lambda z, a=alpha: mpmath.log(mpmath.ncdf(-z)) - mpmath.log(a), -float(ndtri(alpha)))
            assert power.lower[i] <= mpmath.ncdf(mu - z) <= power.upper[i]
            assert beta.lower[i] <= mpmath.ncdf(z - mu) <= beta.upper[i]
    single = fastpriv.GaussianMechanism(1.0, 6.0)
    four = fastpriv.compose(fastpriv.GaussianMechanism(1.0, 1.0), 4)  # three records: mu = 2 * 3
    together = risk.trade_off_curve(four, None, level, group=3)
    assert (np.abs(together.beta.value - risk.trade_off_curve(single, None, level).beta.value) <= 1e-15).all()
    assert abs(together.advantage.value - single.delta(0.0).value) <= 1e-14
    assert risk.compare_mechanisms(four, fastpriv.GaussianMechanism(0.5, 1.0)).relation == "equally private"
    assert risk.gaussian_dp_fit(four).value == 2.0


def test_pairs_without_an_order_take_the_worse_one():
    step = fastpriv.PoissonSampledGaussian(sigma=1.0, rate=0.05)
    either, removal = fastpriv.compose(step, 20), fastpriv.compose(step.pair(), 20)
    orders = removal, removal.reversed
    level = np.array([0.01, 0.3, 0.7])
    betas = [risk.trade_off_curve(one, None, level).beta for one in orders]
    assert (betas[0].upper[:2] != betas[1].upper[:2]).all()
    lower = risk.trade_off_curve(either, None, level).beta.lower
    assert np.allclose(lower, np.minimum(*(b.lower for b in betas)), rtol=1e-10)
    assert risk.trade_off_curve(step, None, 0.3).beta.lower <= risk.trade_off_curve(*step.pair(), 0.3).beta.upper
    for function in (risk.true_positive_rate, risk.reconstruction_robustness, risk.privacy_profile):
        found = [function(one, None, level) for one in orders]
        assert np.allclose(function(either, None, level).upper, np.maximum(*(f.upper for f in found)), rtol=1e-12)
    risks = [risk.bayes_risk(one, None, [0.3, 0.7]).lower for one in orders]
    assert np.allclose(risk.bayes_risk(either, None, [0.3, 0.7]).lower, np.minimum(*risks), rtol=1e-12)
    fits = [risk.gaussian_dp_fit(one, least_delta=0.001).upper for one in orders]
    assert risk.gaussian_dp_fit(either, least_delta=0.001).upper >= max(fits) * (1 - 1e-8)
