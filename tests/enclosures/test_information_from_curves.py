"""Mutual information from privacy curves: brackets hold the truth, and samples, functions and mechanisms agree."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy.special import ndtr

from fastpriv import (
    DomainError,
    Estimate,
    GaussianMechanism,
    GaussianMixture,
    Pmf,
    hockey_stick_divergence,
    kl_divergence,
    notions,
)
from fastpriv.conversions import (
    HockeyStickCurve,
    LipCurve,
    cd_lmip_from_hockey_sticks,
    cd_lmip_from_lip_curve,
    ci_lmip_from_dp_curve,
    kl_from_dp_curve,
)
from fastpriv.conversions.curve_integrals import Weight
from fastpriv.conversions.privacy_curves import WorstHockeyStickCurve
from fastpriv.errors import ShapeError
from oracles import curve_integrals as oracle
from sizes import few_first, few_or_all

RATIOS = few_first([1e-6, 1.0, 20.0, 1e-3, 0.1, 5.0], 3)
POINTS = np.linspace(-1, 1, 21)
DENSITY = np.exp(-2 * POINTS**2)
PRIOR = Pmf(POINTS, DENSITY / DENSITY.sum())  # N(0, 1/4) at 21 points, the paper's figure 3
SIGMA = 1.16618639010826510  # gives it 0.1 bit


def check_holds(found, truth, where, width=None, value=1e-12):
    """The bracket has the truth, the value is close, and the bracket narrow."""
    truth = mp.mpf(truth)
    shown = f"{where}: want {mp.nstr(truth, 20)}, got {found!r}"
    assert found.lower <= truth <= found.upper, shown
    assert abs(found.value - truth) <= value * truth, shown
    if width is not None:
        assert found.upper - found.lower <= width * truth, shown


def exponential(rate):
    return lambda epsilon: np.exp(-rate * epsilon)


@pytest.mark.few(1)
@pytest.mark.parametrize("r", RATIOS)
def test_gaussian_published_is_its_closed_form(r):
    mechanism = GaussianMechanism(sigma=0.75, sensitivity=1.5 * r)
    truth = 2 * mp.mpf(1.5 * r / 2 / 0.75) ** 2
    exact = ci_lmip_from_dp_curve(mechanism, unit="nats")
    assert exact.kind == "exact"
    check_holds(exact, truth, "closed form", 5e-15, 2e-15)
    check_holds(ci_lmip_from_dp_curve(mechanism.delta, unit="nats"), truth, "function with bounds", 1e-8)
    check_holds(ci_lmip_from_dp_curve(lambda e: mechanism.delta(e).value, unit="nats"), truth, "function", 1e-8)
    if 1e-3 <= r <= 5.0:
        check_holds(exact, oracle.gaussian_published(r), "quadrature", None, 1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("r", few_first([1e-9, 1.0, 21.0, 4e-7, 1e-3, 0.1, 5.0], 3))
def test_two_inputs_of_the_gaussian_mechanism(r):
    truth = oracle.gaussian_two_inputs(r)
    mechanism = GaussianMechanism(1.0, 2 * r)
    check_holds(ci_lmip_from_dp_curve(mechanism, form="two_inputs", unit="nats"), truth, "mutual information", 1e-12)
    found = ci_lmip_from_dp_curve(mechanism.delta, form="two_inputs", unit="nats")
    assert found.kind == "certified"
    check_holds(found, truth, "integral", 1e-8)


def test_two_input_value_of_the_literature():
    found = ci_lmip_from_dp_curve(GaussianMechanism(1.0, 2.0), form="two_inputs", unit="nats")
    assert found.value == pytest.approx(0.33683082, abs=5e-9)
    assert ci_lmip_from_dp_curve(GaussianMechanism(1.0, 2.0), unit="nats").value == 2.0


def test_mechanism_parameters_broadcast():
    mechanism = GaussianMechanism([1.0, 2.0], [[1.0], [0.0], [1e200]])
    wide = ci_lmip_from_dp_curve(mechanism, unit="bits")
    assert wide.shape == (3, 2)
    assert wide.upper[1].tolist() == [0.0, 0.0]
    assert np.isinf(wide.value[2]).all()
    assert np.all(wide.lower[2] < np.inf)
    narrow = ci_lmip_from_dp_curve(mechanism, form="two_inputs", unit="bits")
    assert narrow.shape == (3, 2)
    assert narrow.value[1].tolist() == [0.0, 0.0]
    assert narrow.value[2] == pytest.approx(1.0)
    tiny = ci_lmip_from_dp_curve(GaussianMechanism(1e200, 1e-200), unit="bits")
    assert 0.0 <= tiny.lower <= tiny.upper < 1e-300


@pytest.mark.parametrize("rate", [0.25, 1.0, 3.0, 1e6])
def test_exponential_curves(rate):
    rate_ = mp.mpf(rate)
    found = ci_lmip_from_dp_curve(exponential(rate), unit="nats")
    check_holds(found, 1 / rate_ + 1 / (rate_ + 1), "published", 1e-8)
    stated = ci_lmip_from_dp_curve(exponential(rate), unit="nats", decay=rate)
    check_holds(stated, 1 / rate_ + 1 / (rate_ + 1), "with decay", 1e-8)
    found = ci_lmip_from_dp_curve(exponential(rate), form="two_inputs", unit="nats")
    with mp.workdps(40):
        truth = (mp.digamma((rate_ + 2) / 2) - mp.digamma((rate_ + 1) / 2)) / 2
    check_holds(found, truth, "two inputs", 1e-8)
    if rate > 1:
        found = cd_lmip_from_lip_curve(exponential(rate), unit="nats", rtol=1e-8)
        check_holds(found, 1 / (rate_ - 1) + 1 / (rate_ + 1), "lip", 1e-8)
    else:
        assert cd_lmip_from_lip_curve(exponential(rate), unit="bits").upper == math.inf


@pytest.mark.slow
@pytest.mark.parametrize("r", few_first([0.05, 0.5, 2.0], 2))
def test_published_lip_of_a_coin(r):
    prior, mechanism = Pmf([0.0, 2 * r], [0.5, 0.5]), GaussianMechanism(1.0)
    found = cd_lmip_from_lip_curve(LipCurve(prior, mechanism), unit="nats")
    assert found.kind == "certified"
    check_holds(found, oracle.published_lip_of_two_points(r), f"r = {r}", 1e-6)


def test_figure_three():
    """10.9 times the mutual information at 0.1 bit, 3e15 times at sigma 0.3; both directions, worst point, sup KL."""
    for sigma, ratio in ((SIGMA, 10.8697790), (0.3, 3.0274032e15)):
        mechanism = GaussianMechanism(sigma)
        information = notions.cd_lmip(PRIOR, mechanism).to("bits")
        published = cd_lmip_from_lip_curve(LipCurve(PRIOR, mechanism), rtol=1e-4, unit="bits")
        assert published.value / information.value == pytest.approx(ratio, rel=1e-8)
        kept = cd_lmip_from_hockey_sticks(PRIOR, mechanism, rtol=1e-4, unit="bits")
        law = mechanism.output_distribution(PRIOR)
        worst = max(kl_divergence(mechanism.conditional_distribution(x), law).to("bits").value for x in POINTS)
        assert kept.kind == published.kind == "certified"
        check_holds(kept, worst, f"one point is the worst at every epsilon, sigma = {sigma}", 1e-4, 1e-11)
        assert information.upper < kept.lower < kept.upper < published.lower
    assert notions.cd_lmip(PRIOR, GaussianMechanism(SIGMA)).to("bits").value == pytest.approx(0.1, rel=1e-13)


def test_mean_over_the_points_is_the_mutual_information():
    prior, mechanism = Pmf([-1.0, 0.0, 0.5, 2.0], [0.5, 0.25, 0.125, 0.125]), GaussianMechanism(SIGMA)
    law, points = mechanism.output_distribution(prior), [mechanism.conditional_distribution(x) for x in prior.values]

    def mean(epsilon, released_first):
        sides = np.zeros((3, *np.shape(epsilon)))
        for weight, point in zip(prior.probabilities, points, strict=True):
            e = hockey_stick_divergence(*((law, point) if released_first else (point, law)), epsilon)
            sides += weight * np.array([e.value, e.lower * (1 - 1e-15), e.upper * (1 + 1e-15)])
        return Estimate(*sides, kind="certified", unit="probability", method="mean")

    found = kl_from_dp_curve(lambda e: mean(e, False), lambda e: mean(e, True), unit="bits", rtol=1e-4)
    check_holds(found, notions.cd_lmip(prior, mechanism).to("bits").value, "mean over x", 1e-4, 1e-11)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("released_first", [False, True])
def test_worst_point_by_brute_force(sigma, released_first):
    rng = np.random.default_rng(5)
    prior, mechanism = Pmf(rng.normal(size=9), rng.dirichlet(np.ones(9))), GaussianMechanism(sigma)
    law = mechanism.output_distribution(prior)
    epsilon = np.concatenate([[0.0], np.geomspace(1e-6, 60, 80)])
    curve = WorstHockeyStickCurve(prior, mechanism, released_first)(epsilon.reshape(9, 9))
    assert curve.shape == (9, 9)
    rows = [mechanism.conditional_distribution(x) for x in prior.values]
    pairs = [(law, row) if released_first else (row, law) for row in rows]
    slow = np.max([hockey_stick_divergence(*pair, epsilon).value for pair in pairs], axis=0)
    assert np.all((curve.lower.ravel() <= slow * (1 + 1e-12)) & (slow * (1 - 1e-12) <= curve.upper.ravel()))
    assert np.all((curve.width <= 1e-9 * curve.upper) | (curve.upper < 1e-300))


@pytest.mark.parametrize("rate", few_first([-1, 0, 1], 1))
@pytest.mark.slow
def test_tails_lie_above_the_rest(rate):
    rng = np.random.default_rng(6)
    curves = []
    for _ in range(6):
        p, q = (
            GaussianMixture(rng.dirichlet(np.ones(k)), rng.normal(0, 2, k), rng.uniform(0.7, 1.4, k)) for k in (3, 2)
        )
        curves.append(HockeyStickCurve(p, q))
    curves += [LipCurve(PRIOR, GaussianMechanism(s)) for s in (0.4, 2.0)]
    curves += [WorstHockeyStickCurve(PRIOR, GaussianMechanism(0.4), side) for side in (False, True)]
    for curve in curves:
        for start in (0.5, 3.0, 12.0):
            epsilon = start + np.linspace(0.0, 40.0, 2001)
            below = np.sum(curve(epsilon).lower[1:] * np.exp(rate * epsilon[:-1])) * 0.02  # decreasing curve
            assert curve.tail(start, rate) >= below * (math.exp(-0.02) if rate < 0 else 1.0), (curve, start)


@pytest.mark.parametrize("form", ["as_published", "two_inputs"])
@pytest.mark.parametrize("size", [3, 30, 3000])
def test_samples_bracket_and_narrow(form, size):
    mechanism = GaussianMechanism(1.0, 2.0)
    truth = ci_lmip_from_dp_curve(mechanism, form=form, unit="nats").value
    epsilon = np.linspace(0.0, 30.0, size)
    delta = mechanism.delta(epsilon)
    for given in (delta, delta.value):
        found = ci_lmip_from_dp_curve((epsilon, given), form=form, unit="nats", decay=5.0)
        assert found.kind == "certified"
        check_holds(found, truth, f"{size} samples", 1500.0 / size**2, 1.0)
    open_ended = ci_lmip_from_dp_curve((epsilon, delta), form=form, unit="nats")
    assert open_ended.lower <= truth <= open_ended.upper
    assert math.isinf(open_ended.upper) == (form == "as_published")
    assert ci_lmip_from_dp_curve((epsilon[1:], delta.value[1:]), form=form, unit="nats", decay=5.0).upper >= truth
    closed = ci_lmip_from_dp_curve((np.append(epsilon, 90.0), np.append(delta.value, 0.0)), form=form, unit="nats")
    assert closed.lower <= truth <= closed.upper < math.inf


@few_or_all("count", 40, 200)
@pytest.mark.slow
def test_random_samples_of_a_known_curve(count):
    rng = np.random.default_rng(7)
    for _ in range(count):
        rate = rng.uniform(1.2, 4.0)
        epsilon = np.sort(rng.exponential(rng.choice([0.01, 1.0, 8.0]), rng.integers(1, 12)))
        delta, c = np.exp(-rate * epsilon), mp.mpf(rate)
        found = ci_lmip_from_dp_curve((epsilon, delta), unit="nats", decay=rate)
        check_holds(found, 1 / c + 1 / (c + 1), f"{epsilon}", None, 1e9)
        found = cd_lmip_from_lip_curve((epsilon, delta), unit="nats", decay=rate)
        check_holds(found, 1 / (c - 1) + 1 / (c + 1), f"lip {epsilon}", None, 1e9)
        found = ci_lmip_from_dp_curve((epsilon, delta), form="two_inputs", unit="nats")
        with mp.workdps(40):
            truth = (mp.digamma((c + 2) / 2) - mp.digamma((c + 1) / 2)) / 2
        check_holds(found, truth, f"two {epsilon}", None, 1e9)


@pytest.mark.parametrize(
    "curve", [([1.0], [1e-5]), ([0.0, 1.0], [0.1, 0.1]), lambda e: 0.25 + 0 * e, lambda e: 1 / (1 + e)]
)
def test_a_curve_that_does_not_vanish_is_infinite(curve):
    found = ci_lmip_from_dp_curve(curve, unit="bits")
    assert found.value == found.upper == math.inf
    assert 0.0 < found.lower < math.inf
    bounded = ci_lmip_from_dp_curve(curve, form="two_inputs", unit="bits")
    assert bounded.upper < 1.0


def test_curves_that_are_not_convex_fall_back_on_monotonicity():
    truth = mp.sqrt(mp.pi) / 2 * (1 + mp.exp(0.25) * mp.erfc(0.5))
    found = ci_lmip_from_dp_curve(lambda e: np.exp(-e * e), unit="nats")
    assert "monotone" in found.method
    check_holds(found, truth, "exp(-epsilon^2)", 1e-4)
    epsilon = np.linspace(0.0, 8.0, 1001)
    found = ci_lmip_from_dp_curve((epsilon, np.where(epsilon < 7, np.exp(-epsilon * epsilon), 0.0)), unit="nats")
    assert "monotone" in found.method
    check_holds(found, truth, "samples", 2e-2, 1e-2)
    step = ci_lmip_from_dp_curve(lambda e: np.where(e < 1.0, 0.5, 0.0), unit="nats")
    check_holds(step, (2 - mp.exp(-1)) / 2, "step", 1e-4, 1e-6)


@pytest.mark.parametrize("noise", [1e-14, 1e-11, 1e-9])
def test_noisy_samples_widen_the_bounds(noise):
    epsilon = np.linspace(0.0, 12.0, 200_001)
    delta = np.exp(-3 * epsilon) * (1 + noise * np.random.default_rng(9).uniform(-1, 1, epsilon.size))
    found = ci_lmip_from_dp_curve((epsilon, np.minimum(delta, 1.0)), unit="nats", decay=3.0)
    assert "convex" in found.method
    assert "monotone" not in found.method
    check_holds(found, mp.mpf(1) / 3 + mp.mpf(1) / 4, "noisy", 1.2e-8 + 10 * noise, 1e-8)


def test_functions_of_every_make():
    truth, r = mp.mpf(2), 1.0

    def plain(e):
        return ndtr(r - e / (2 * r)) - np.exp(e) * ndtr(-r - e / (2 * r))

    mechanism = GaussianMechanism(1.0, 2.0)
    check_holds(ci_lmip_from_dp_curve(plain, unit="nats"), truth, "vectorised", 1e-8)
    check_holds(ci_lmip_from_dp_curve(mechanism.delta, unit="nats"), truth, "with bounds", 1e-8)
    coarse = ci_lmip_from_dp_curve(plain, unit="nats", max_evaluations=1000)
    check_holds(coarse, truth, "few", 1e-3)
    assert coarse.cost["evaluations"] <= 1300
    zero = ci_lmip_from_dp_curve(lambda e: 0.0 * e, unit="bits")
    assert (zero.value, zero.lower, zero.upper) == (0.0, 0.0, 0.0)
    scale = 1e9
    found = ci_lmip_from_dp_curve(exponential(scale), unit="nats")
    check_holds(found, 1 / mp.mpf(scale) + 1 / mp.mpf(scale + 1), "narrow", 1e-8)


def test_beyond_the_range_of_doubles():
    coin = Pmf([0.0, 1.0], [0.5, 0.5])
    found = cd_lmip_from_lip_curve(LipCurve(coin, GaussianMechanism(0.01)), unit="bits")
    assert found.value == found.upper == math.inf
    assert 1e307 < found.lower < math.inf
    assert cd_lmip_from_hockey_sticks(coin, GaussianMechanism(0.01), unit="bits").value == pytest.approx(1.0, rel=1e-12)
    alone = Pmf([3.0], [1.0])
    assert cd_lmip_from_lip_curve(LipCurve(alone, GaussianMechanism(1.0)), unit="bits").upper < 1e-300
    assert cd_lmip_from_hockey_sticks(alone, GaussianMechanism(1.0), unit="bits").upper < 1e-300


@pytest.mark.parametrize("rates", few_first([(0,), (-1,), (1,), ()], 3))
def test_straight_lines_in_closed_form(rates):
    """The integral of a line in e^epsilon against every weight, for pieces from 1e-9 to 600 long."""
    rng = np.random.default_rng(8)
    weight, worst = Weight(rates), (0.0, None)
    for h in (1e-9, 1e-4, 9e-4, 0.011, 0.019, 0.2, 0.49, 0.51, 3.0, 29.0, 31.0, 200.0, 600.0):
        for start in (0.0, 1e-3, 1.0, 40.0):
            left, right = rng.random(2)
            with np.errstate(over="ignore"):
                got = weight.line(*(np.array([x]) for x in (start, h, left, right)))[0]
            want = oracle.straight_line(rates, start, h, left, right)
            error = float(abs(got / want - 1)) / (1e-14 + 4e-16 * (start + h))  # e^epsilon knows epsilon to an ulp
            worst = max(worst, (error, (rates, h, start, got, want)), key=lambda row: row[0])
    assert worst[0] <= 1.0, worst


def test_units():
    curve = exponential(2.0)
    nats, bits = ci_lmip_from_dp_curve(curve, unit="nats"), ci_lmip_from_dp_curve(curve, unit="bits")
    assert bits.unit == "bits"
    assert bits.value == pytest.approx(nats.value / math.log(2), rel=1e-14)


BAD = [
    (lambda e: np.nan * e, r"curve must be between 0 and 1 at every epsilon; got nan at epsilon 0\.0"),
    (lambda e: -exponential(1.0)(e), r"curve must be between 0 and 1 at every epsilon; got -1\.0 at epsilon 0\.0"),
    (lambda e: 2 * exponential(1.0)(e), r"curve must be between 0 and 1 at every epsilon; got 2\.0"),
    (lambda e: np.minimum(0.25 + e, 1.0) * (e < 9), "curve must be non-increasing in epsilon; got .* after 0.25 at"),
    (lambda e: 1 - np.exp(-e), r"curve must be non-increasing in epsilon; got .* after 0\.0 at 0\.0"),
    (lambda e: None, "curve must be a function that returns numbers; got None"),
    (lambda e: 0.5j * e, "curve must be a function that returns numbers; got array"),
    (lambda e: "much", "curve must be a function that returns numbers; got 'much'"),
    (lambda e: [0.5, 0.25, 0.125], "curve must be a function with one delta for every epsilon; got an answer of"),
    (lambda e: 0.25, "curve must be a function with one delta for every epsilon; got an answer of"),
    (lambda e: 0.5 if e > 75 else 1.0, "curve must be a function of an array of epsilons; got ValueError: The truth"),
    (lambda: 0.5, "curve must be a function of an array of epsilons; got TypeError: "),
    (GaussianMechanism(1.0, 1.0).log_delta, "curve must be a probability; got an Estimate in 'log probability'"),
    (3, r"curve must be a pair \(epsilon, delta\) or a function of epsilon; got int"),
    (([0.0, 1.0, 2.0], [0.1]), "epsilon and delta must have equal lengths; got 3 and 1"),
    (([1.0, 1.0], [0.1, 0.1]), r"epsilon must be strictly increasing; got 1\.0 at index 1"),
    (([0.0, 1.0], [0.1, 0.2]), r"delta must be non-increasing in epsilon; got 0\.2 at index 1"),
    (([0.0, np.inf], [0.1, 0.0]), "epsilon must be at least 0 and finite; got inf at index 1"),
    (([-1.0, 1.0], [0.1, 0.0]), "epsilon must be at least 0 and finite; got -1.0 at index 0"),
    (([0.0, 1.0], [0.1, np.nan]), "delta must be between 0 and 1; got nan at index 1"),
    (([0.0, 1.0], [1.5, 1.0]), r"delta must be between 0 and 1; got 1\.5 at index 0"),
    (([0.0], GaussianMechanism(1.0, 1.0).log_delta([0.0])), "delta must be a probability; got an Estimate in"),
    (GaussianMechanism(1.0), "sensitivity must be given for the privacy curve; got None"),
]


@pytest.mark.parametrize(("curve", "message"), BAD)
def test_bad_curves(curve, message):
    with pytest.raises((DomainError, ShapeError), match=message):
        ci_lmip_from_dp_curve(curve, unit="bits")


def test_bad_settings():
    good = exponential(2.0)
    with pytest.raises(DomainError, match="form must be one of as_published, two_inputs"):
        ci_lmip_from_dp_curve(good, form="tight", unit="bits")
    for settings, message in (
        ({"rtol": 0.0}, "rtol must be between 1e-15 and 1"), ({"decay": -1.0}, "decay must be positive and finite"),
        ({"unit": "hartleys"}, "unit must be one of nats, bits"), ({"max_evaluations": 3}, "max_evaluations must be"),
    ):
        for function in (ci_lmip_from_dp_curve, cd_lmip_from_lip_curve):
            with pytest.raises(DomainError, match=message):
                function(good, **settings)
        with pytest.raises(DomainError, match=message):
            kl_from_dp_curve(good, good, **settings)
    with pytest.raises(DomainError, match="backward must be between 0 and 1"):
        kl_from_dp_curve(good, lambda e: 3.0 + 0 * e)
    with pytest.raises(DomainError, match="prior must be a Pmf"):
        LipCurve([0.5, 0.5], GaussianMechanism(1.0))
    with pytest.raises(DomainError, match="mechanism must be a GaussianMechanism"):
        cd_lmip_from_hockey_sticks(PRIOR, 1.0, unit="bits")
    with pytest.raises(DomainError, match="p must be a GaussianMixture"):
        HockeyStickCurve(PRIOR, PRIOR)


def test_a_function_that_writes_to_its_argument_does_no_harm():
    def greedy(e):
        e *= -2.0
        return np.exp(e)

    found = ci_lmip_from_dp_curve(greedy, unit="nats")
    assert found.value == ci_lmip_from_dp_curve(lambda e: np.exp(-2.0 * e), unit="nats").value
    assert ci_lmip_from_dp_curve(lambda e: e.__imul__(0.0), unit="bits").upper == 0.0
    check_holds(ci_lmip_from_dp_curve(exponential(3.0), unit="nats"), mp.mpf(1) / 3 + mp.mpf(1) / 4, "afterwards", 1e-8)


@pytest.mark.parametrize("apart", [1e-9, 1e-7, 1e-5, 1e-3])
def test_rounding_of_plain_functions_is_seen(apart):
    """Two coins so close that p - e^epsilon q keeps few digits: the bounds must hold the truth all the same."""
    p, q = np.array([0.3 + apart, 0.7 - apart]), np.array([0.3, 0.7])

    def curve(p, q):
        return lambda e: np.maximum(p - np.exp(np.asarray(e, dtype=float))[..., None] * q, 0.0).sum(axis=-1)

    with mp.workdps(40):  # the sums of p and of q differ in their last place, which the last terms take off
        pairs = [(mp.mpf(float(a)), mp.mpf(float(b))) for a, b in zip(p, q, strict=True)]
        truth = sum(a * mp.log(a / b) - (a - b) for a, b in pairs)
    found = kl_from_dp_curve(curve(p, q), curve(q, p))
    assert found.kind == "heuristic"
    assert found.lower <= truth <= found.upper, (apart, found, mp.nstr(truth, 20))


def test_far_samples_leave_the_range_of_doubles():
    for last in (800.0, 1e4, 1e300):
        found = cd_lmip_from_lip_curve(([0.0, last], [0.3, 0.0]), unit="bits")
        assert (found.value, found.lower, found.upper) == (0.0, 0.0, math.inf)
    assert ci_lmip_from_dp_curve(([0.0, 1e300], [0.3, 0.0]), unit="nats").upper == pytest.approx(3e299, rel=1e-9)


def test_the_tail_of_a_curve_is_checked():
    class Tailed:
        def __init__(self, bound):
            self.bound = bound

        def __call__(self, e):
            return np.exp(-2.0 * e)

        def tail(self, epsilon, rate):
            return self.bound

    for bound in (math.nan, -1.0, None, "far", np.array([1.0])):
        with pytest.raises(DomainError, match="curve.tail must be an upper bound of at least 0; got"):
            ci_lmip_from_dp_curve(Tailed(bound), unit="bits")
    curve = LipCurve(PRIOR, GaussianMechanism(1.0))
    for arguments, message in (((-1.0, 0), "epsilon must be at least 0"), ((1.0, 5), "rate must be between -1 and 1")):
        with pytest.raises(DomainError, match=message):
            curve.tail(*arguments)


def test_errors_of_the_function_itself_come_through():
    def broken(e):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ci_lmip_from_dp_curve(broken, unit="bits")
