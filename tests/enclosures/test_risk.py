"""Advantages, Bayes risks, profiles and the order of mechanisms contain the truth."""

import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import erfc, exp, log, mp, mpf, ncdf, sqrt

import fastpriv
from fastpriv import (
    Channel,
    DomainError,
    GaussianMechanism,
    GaussianMixture,
    PoissonSampledGaussian,
    compose,
    hockey_stick_divergence,
    risk,
)
from fastpriv.composition import (
    advantage,
    bayes_risk,
    compare_mechanisms,
    privacy_profile,
    trade_off_curve,
)
from fastpriv.conversions import membership_advantage_from_dp

BINARY, ERASURE = ([0.9, 0.1], [0.1, 0.9]), ([0.6, 0.4, 0.0], [0.0, 0.4, 0.6])
ONE = GaussianMixture.single(0.0, 1.0)


def test_advantage():
    assert advantage(*BINARY).value == pytest.approx(0.8, abs=1e-15)
    assert advantage(Channel([[0.9, 0.1], [0.1, 0.9]])).value == pytest.approx(0.8, abs=1e-14)
    found = advantage(ONE, GaussianMixture.single(2.0, 1.0))
    assert found.lower <= 1 - erfc(1 / sqrt(mpf(2))) <= found.upper


@pytest.mark.parametrize("prior", [0.0, 1e-300, 1e-9, 0.1, 0.5, 0.7, 1 - 2.0**-53, 1.0])
def test_bayes_risk_of_normal_distributions(prior):
    """min over thresholds of prior P(r > t) + (1 - prior) Q(r < t), at t = 1/2 + log(prior / (1 - prior))."""
    found = bayes_risk(GaussianMechanism(1.0, 1.0), None, prior)
    with mp.workdps(60):
        a = mpf(prior)
        truth = mpf(0)
        if 0 < prior < 1:
            t = mp.log(a / (1 - a)) + mpf(1) / 2
            truth = a * ncdf(-t) + (1 - a) * ncdf(t - 1)
        assert found.lower <= truth <= found.upper
        assert found.width <= 5e-15 * min(prior, 1 - prior)


@pytest.mark.parametrize("mu", [6.0, 20.0, 60.0])
@pytest.mark.parametrize("prior", [0.5, 1e-3, 1 - 2.0**-20])
def test_small_risks_have_digits_of_their_own(mu, prior):
    """One minus delta had a floor of one unit of rounding: [0, 1.1e-16] for 7.6e-24 at mu = 20."""
    with mp.workdps(60):
        odds = log((1 - mpf(prior)) / prior)
        truth = (prior * ncdf((odds - mpf(mu) ** 2 / 2) / mu)
                 + (1 - mpf(prior)) * ncdf((-odds - mpf(mu) ** 2 / 2) / mu))
    mechanism = GaussianMechanism(1.0, mu)
    for pair in (mechanism, fastpriv.compose(GaussianMechanism(4.0, mu), 16)):
        found = bayes_risk(pair, None, prior)
        assert found.lower <= truth <= found.upper
        assert found.width <= 1e-11 * found.value


@pytest.mark.slow
def test_small_risks_of_outcomes_and_of_compositions():
    p, q = [1 - 2.0**-40, 2.0**-40], [2.0**-45, 1 - 2.0**-45]
    found = bayes_risk(p, q, [0.5, 0.25, 0.0, 1.0])
    truth = [Fraction(1, 2**41) + Fraction(1, 2**46), Fraction(1, 2**42) + Fraction(3, 2**47), 0, 0]
    for k, wanted in enumerate(truth):
        assert Fraction(float(found.lower[k])) <= wanted <= Fraction(float(found.upper[k]))
    assert (found.width <= 1e-14 * found.value).all()
    noise = fastpriv.compose(fastpriv.LaplaceMechanism(1.0), 100)
    assert bayes_risk(noise).width <= 1e-9 * bayes_risk(noise).value


def test_bayes_risk_of_discrete_pairs():
    prior = np.array([0.0, 0.05, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0])
    found = bayes_risk([0.75, 0.25, 0.0], [0.25, 0.5, 0.25], prior)
    for i, a in enumerate(map(Fraction, prior)):
        cells = ((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(1, 2)), (0, Fraction(1, 4)))
        truth = sum(min(a * p, (1 - a) * q) for p, q in cells)
        assert found.lower[i] <= truth <= found.upper[i]
        assert found.width[i] <= 1e-15
    with pytest.raises(DomainError, match="prior must be between 0 and 1; got 2"):
        bayes_risk(*BINARY, 2.0)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-9, 0.5, 3.0, 40.0, 1e3, np.inf])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 0.5, 1.0])
def test_membership_advantage_from_dp(epsilon, delta):
    found = membership_advantage_from_dp(epsilon, delta)
    with mp.workdps(330):
        e = mpf(epsilon)
        truth = mpf(1) if np.isinf(epsilon) else (mp.expm1(e) + 2 * mpf(delta)) / (exp(e) + 1)
        assert found.lower <= truth <= found.upper
        assert found.width <= 5e-14 * truth


def test_the_bound_is_attained():
    """The pair that dominates (epsilon, delta)."""
    epsilon, delta = 0.7, 0.03
    share = (1 - delta) / (1 + np.exp(epsilon))
    p = np.array([delta, share * np.exp(epsilon), share, 0.0])
    attained = advantage(p / p.sum(), p[::-1] / p.sum())
    bound = membership_advantage_from_dp(epsilon, delta)
    assert abs(attained.value - bound.value) <= 1e-14
    assert privacy_profile(p / p.sum(), p[::-1] / p.sum(), epsilon).value == pytest.approx(delta, abs=1e-14)


def test_profiles_at_every_real_epsilon():
    epsilon = np.array([-np.inf, -800.0, -3.0, -1e-9, 0.0, 1e-9, 2.0, 800.0, np.inf])
    p, q = GaussianMixture([0.9, 0.1], [0.0, 2.0], 1.0), ONE
    found = privacy_profile(p, q, epsilon)
    assert found[4:] == found[4:]
    assert (found.upper[4:] == hockey_stick_divergence(p, q, epsilon[4:]).upper).all()
    assert found.value[0] == 1.0
    behind = hockey_stick_divergence(q, p, 3.0)
    assert found.lower[2] <= -np.expm1(-3.0) + np.exp(-3.0) * behind.value <= found.upper[2]
    exact = privacy_profile(*BINARY, [-np.log(9.0), -1.0, 0.0, 1.0, 3.0])
    x = [1 / 9, np.exp(-1), 1.0, np.e, np.exp(3.0)]
    truth = [max(0.9 - 0.1 * t, 0) + max(0.1 - 0.9 * t, 0) for t in x]
    assert np.allclose(exact.value, truth, atol=2e-16)
    assert exact.width.max() <= 2e-15


def test_binary_symmetric_against_erasure():
    """BSC(0.1) beats BEC(0.4) deep in the profile, and loses near epsilon 0: no order."""
    found = compare_mechanisms(BINARY, ERASURE)
    assert found.relation == "incomparable"
    assert found.excess_1.lower <= Fraction(1, 5) <= found.excess_1.upper
    assert found.excess_2.lower <= Fraction(3, 5) <= found.excess_2.upper
    assert max(found.excess_1.width, found.excess_2.width) <= 1e-9
    first, second = found.counterexamples
    for one, worse, better in ((first, 1, 2), (second, 2, 1)):
        get = lambda name, k, one=one: getattr(one, f"{name}_{k}")
        assert one.less_private == ("first" if worse == 1 else "second")
        assert get("delta", worse).lower > get("delta", better).upper
        assert get("beta", worse).upper < get("beta", better).lower
        assert get("advantage", worse).lower > get("advantage", better).upper
        x = one.gamma * (1 - one.prior) / ((1 - one.gamma) * one.prior)
        assert np.log(x) == pytest.approx(one.epsilon, abs=1e-12)
        for k, pair in ((1, BINARY), (2, ERASURE)):
            right, wrong = (1 - one.gamma) * one.prior, one.gamma * (1 - one.prior)
            gain = sum(max(right * q - wrong * p, 0) for p, q in zip(*pair, strict=True))
            assert gain == pytest.approx(get("advantage", k).value, abs=1e-15)
    of_channels = compare_mechanisms(Channel([[0.9, 0.1], [0.1, 0.9]]), Channel([[0.6, 0.4, 0.0], [0.0, 0.4, 0.6]]))
    assert of_channels.relation == "incomparable"


def test_garbling_is_more_private():
    rng = np.random.default_rng(0)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(6), 2)
        garble = rng.dirichlet(np.ones(4), 6)
        found = compare_mechanisms((p @ garble, q @ garble), (p, q))
        assert found.relation == "first at least as private"
        assert found.excess_1.upper <= 1e-9
        assert compare_mechanisms((p, q), (p @ garble, q @ garble)).relation == "second at least as private"
    assert compare_mechanisms(BINARY, BINARY).relation == "equally private"


def test_order_of_normal_mechanisms():
    found = compare_mechanisms(GaussianMechanism(2.0, 1.0), GaussianMechanism(1.0, 1.0))
    assert found.relation == "first at least as private"
    assert found.excess_1.upper <= 1e-9
    grid = np.linspace(-3, 3, 4001)
    least = [privacy_profile(GaussianMechanism(s, 1.0), None, grid).value for s in (2.0, 1.0)]
    assert found.excess_2.lower >= (least[1] - least[0]).max() - 1e-4
    assert found.excess_2.upper >= (least[1] - least[0]).max()
    assert compare_mechanisms(GaussianMechanism(4.0, 2.0), GaussianMechanism(2.0, 1.0)).relation == "equally private"


def test_order_of_mixtures():
    tenth, fifth = (GaussianMixture([1 - w, w], [0.0, 1.0], 1.0) for w in (0.1, 0.2))
    assert compare_mechanisms((ONE, tenth), (ONE, fifth)).relation == "first at least as private"
    subsampled = compare_mechanisms((ONE, tenth), (tenth, ONE))
    assert subsampled.relation == "incomparable"  # add and remove are not alike
    assert compare_mechanisms((ONE, tenth), (ONE, tenth)).relation == "equally private"
    for one in subsampled.counterexamples:
        betas = [trade_off_curve(*pair, one.alpha).beta for pair in ((ONE, tenth), (tenth, ONE))]
        assert (betas[0].upper < betas[1].lower) == (one.less_private == "first")


def test_undecided_where_the_bounds_are_too_wide():
    wide = lambda e: type(privacy_profile(*BINARY, e))(
        0.5 * np.exp(-e), np.zeros(e.shape), np.exp(-0.1 * e), kind="certified", unit="probability", method="wide"
    )
    assert compare_mechanisms(wide, BINARY).relation == "undecided"
    with pytest.raises(DomainError, match="tolerance must be from 1e-15 to 0.1; got 1"):
        compare_mechanisms(BINARY, BINARY, tolerance=1.0)


def test_compositions():
    """Many releases have the risks of the one pair that they amount to."""
    many, one = compose(GaussianMechanism(4.0, 1.0), 16), GaussianMechanism(1.0, 1.0)
    priors, epsilon = [0.0, 0.01, 0.5, 0.9, 1.0], [-2.0, 0.0, 3.0]
    for quantity, *arguments in ((advantage,), (bayes_risk, priors), (privacy_profile, epsilon)):
        found, truth = quantity(many, None, *arguments), quantity(one, None, *arguments)
        assert np.all(np.asarray(found.lower) <= truth.upper)
        assert np.all(np.asarray(truth.lower) <= found.upper)
        assert np.max(np.asarray(found.width)) <= 1e-12


@pytest.mark.slow
def test_the_order_of_compositions():
    step = PoissonSampledGaussian(sigma=2.0, rate=0.015625)
    order = compare_mechanisms(compose(step, 20), compose(step, 40), tolerance=1e-4)
    assert order.relation == "first at least as private"
    assert len(order.counterexamples) == 1


SETTINGS = [(0.01, 1e-3), (1e-300, 1e-3), (0.5, 1.0), (1 - 2**-53, 1e-300), (0.3, 5e-324)]


@pytest.mark.parametrize(("prior", "rate"), SETTINGS)
@pytest.mark.parametrize("sigma", [0.05, 2.0, 1e9])
def test_a_statement_is_the_arithmetic_of_the_best_test(sigma, prior, rate):
    said = risk.statement(GaussianMechanism(sigma, 1.0), prior=prior, false_positive_rate=rate, candidates=7)
    best = risk.true_positive_rate(GaussianMechanism(sigma, 1.0), None, rate)
    pi, alpha = mpf(prior), mpf(rate)
    for end, share in (("lower", best.lower), ("upper", best.upper)):
        truth = pi * mpf(float(share)) / (pi * mpf(float(share)) + (1 - pi) * alpha)
        beyond = (lambda x, y: x <= y) if end == "lower" else (lambda x, y: x >= y)
        assert beyond(mpf(getattr(said.precision, end)), truth)
        assert beyond(mpf(getattr(said.lift, end)), truth / pi)
    if rate > 1e-320:  # below, the rate of the best test itself has no digits
        assert said.precision.upper - said.precision.lower <= 1e-12 * said.precision.upper + 1e-322
    assert said.true_positive_rate.upper >= best.upper
    assert said.reconstruction.upper >= 1 / 7
    assert said.epsilon.upper == fastpriv.compose(GaussianMechanism(sigma, 1.0)).epsilon(1e-5).upper


@pytest.mark.slow
def test_a_statement_takes_the_worse_order():
    p, q = [0.5, 0.5, 0.0], [0.5, 0.4999, 0.0001]
    ways = [risk.statement(p, q, false_positive_rate=1e-4), risk.statement(q, p, false_positive_rate=1e-4)]
    assert ways[0].true_positive_rate.floats() == ways[1].true_positive_rate.floats()
    assert ways[0].epsilon.upper == ways[1].epsilon.upper == math.inf
    assert ways[0].precision.upper <= 1.0


def test_the_sentences_of_a_statement():
    said = risk.statement(GaussianMechanism(2.0, 1.0), record="<b>patient</b>", candidates=1000)
    first, second, third, fourth, fifth = said.sentences
    assert "at most 1 in 1,000" in first
    assert "at most 0.48 %" in first  # 0.47955..., rounded up
    assert "at most 4.63 %" in second  # 4.6201...
    assert "4.63 times" in second
    assert "Among 1,000 values" in third
    assert "in place of 0.1 %" in third
    assert "19.8 percentage points" in fourth  # 19.741...
    assert "epsilon is at most 2 at" in fifth
    assert "<b>" not in said._repr_html_()
    assert said.to_dict()["precision"]["upper"] == said.precision.upper
    assert "1 in 3 " in risk.statement(GaussianMechanism(2.0, 1.0), false_positive_rate=1 / 3).sentences[0]
    assert "25 %" not in risk.statement(GaussianMechanism(2.0, 1.0), false_positive_rate=0.3).sentences[0]


@pytest.mark.parametrize("wrong", [
    {"prior": 0.0}, {"prior": 1.0}, {"false_positive_rate": 0.0}, {"false_positive_rate": 1.5}, {"candidates": 1},
    {"delta": -1.0}, {"prior": math.nan}, {"record": ""}, {"record": 3},
])
def test_wrong_settings_of_a_statement(wrong):
    with pytest.raises(DomainError, match=f"{next(iter(wrong))} must be"):
        risk.statement(GaussianMechanism(2.0, 1.0), **wrong)
