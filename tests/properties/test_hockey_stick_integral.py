"""The Kullback-Leibler divergence is an integral of hockey-stick divergences, for everything that has both."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp

from fastpriv import GaussianMechanism, GaussianMixture, Pmf, kl_divergence
from fastpriv.conversions import HockeyStickCurve, cd_lmip_from_lip_curve, ci_lmip_from_dp_curve, kl_from_dp_curve
from oracles import curve_integrals as oracle
from properties.drawn import mixtures, shown

FEW = settings(max_examples=15, deadline=None)
POSITIVE = st.floats(0.05, 20.0, allow_nan=False)


def check_brackets(p, q, rtol=1e-4):
    found = kl_from_dp_curve(HockeyStickCurve(p, q), HockeyStickCurve(q, p), rtol=rtol)
    truth = kl_divergence(p, q)
    where = shown(p, q, found, truth)
    assert found.kind == "certified", where
    assert found.lower <= truth.upper, where
    assert truth.lower <= found.upper, where
    if truth.value > 1e-20:  # laws closer than that: the bounds hold, their width is that of the hockey-sticks
        assert found.width <= 1.01 * rtol * truth.upper, where
        assert found.value == pytest.approx(truth.value, rel=rtol), where


@FEW
@given(mixtures(), mixtures())
def test_mixtures(p, q):
    check_brackets(p, q)


@FEW
@given(st.floats(-5, 5), POSITIVE, st.floats(-5, 5), POSITIVE)
def test_normal_laws(m, s, n, t):
    if (m, s) != (n, t):
        check_brackets(GaussianMixture.single(m, s), GaussianMixture.single(n, t))


@FEW
@given(st.integers(2, 8), st.integers(0, 2**31), POSITIVE)
@pytest.mark.slow
def test_a_point_against_the_release(size, seed, sigma):
    rng = np.random.default_rng(seed)
    prior, mechanism = Pmf(rng.normal(0, 2, size), rng.dirichlet(np.ones(size))), GaussianMechanism(sigma)
    release = mechanism.output_distribution(prior)
    check_brackets(mechanism.conditional_distribution(prior.values[0]), release)
    check_brackets(release, mechanism.conditional_distribution(prior.values[-1]))


@FEW
@given(st.floats(1e-4, 30.0))
def test_the_gaussian_mechanism(r):
    """KL of the worst pair is 2 r^2, from the one curve in both directions; (12) is the same integral."""
    mechanism = GaussianMechanism(1.0, 2 * r)
    found = kl_from_dp_curve(mechanism.delta, mechanism.delta, rtol=1e-6)
    assert found.lower <= 2 * r * r <= found.upper, (r, found)
    assert found.value == pytest.approx(ci_lmip_from_dp_curve(mechanism, unit="nats").value, rel=1e-12)
    pair = GaussianMixture.single(2 * r, 1.0), GaussianMixture.single(0.0, 1.0)
    assert found.value == pytest.approx(kl_divergence(*pair).value, rel=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6))
def test_binary_channels(p, q):
    def curve(a, b):
        return lambda e: np.maximum(0.0, np.maximum(a - np.exp(e) * b, (1 - a) - np.exp(e) * (1 - b)))

    found = kl_from_dp_curve(curve(p, q), curve(q, p), rtol=1e-9)
    truth = float(oracle.binary_kl(p, q))
    slack = 1e-12 * truth + 1e-15 * abs(p - q)  # the rounding of a - e^epsilon b, which a plain function hides
    assert found.lower - slack <= truth <= found.upper + slack, (p, q, found, truth)
    assert found.width <= 1e-7 * truth + 2 * slack + 1e-300


HINGES = st.lists(st.tuples(st.floats(1e-3, 12.0), st.integers(1, 64)), min_size=1, max_size=5)


def hinged(hinges):
    """sum w (1 - a/c)^+: every privacy curve is a limit of these, and they touch the bounds between samples."""
    total = sum(part for _, part in hinges) * 1.25
    parts = [(part / total, end) for end, part in hinges]  # the curve is at most 0.8

    def curve(epsilon):
        return sum(weight * np.maximum(-np.expm1(np.asarray(epsilon) - end), 0.0) for weight, end in parts)

    truths = [mp.mpf(0)] * 3
    for weight, end in parts:
        c = mp.exp(end)
        sums = (
            mp.log(c) * (1 - 1 / c), (c - 1) - (c - 1 / c) / 2 + (1 - 1 / c) - mp.log(c) / c,
            mp.log(2 * c / (1 + c)) - mp.log((1 + c) / 2) / c,
        )
        truths = [truth + mp.mpf(weight) * part for truth, part in zip(truths, sums, strict=True)]
    return curve, truths


@settings(max_examples=40, deadline=None)
@given(HINGES, st.lists(st.floats(0.0, 14.0), min_size=1, max_size=12, unique=True), st.booleans())
@pytest.mark.slow
def test_curves_of_straight_lines(hinges, grid, through_zero):
    with mp.workdps(40):
        curve, truths = hinged(hinges)
    grid = np.unique([*grid, 0.0] if through_zero else grid)
    samples = np.append(grid, 15.0), np.append(curve(grid), 0.0)
    for source in (samples, curve):
        settings_ = {"unit": "nats", "rtol": 1e-5}
        answers = (
            ci_lmip_from_dp_curve(source, **settings_), cd_lmip_from_lip_curve(source, **settings_),
            ci_lmip_from_dp_curve(source, form="two_inputs", **settings_),
        )
        for answer, truth in zip(answers, truths, strict=True):
            slack = 1e-11 * truth  # the curve is rounded
            assert answer.lower - slack <= truth <= answer.upper + slack, (hinges, grid, answer, truth)
            if source is curve:
                assert answer.width <= 1.01e-5 * truth + 2 * slack, (hinges, answer)


def test_a_pair_seen_from_both_sides_differs():
    p, q = GaussianMixture.single(0.0, 1.0), GaussianMixture([0.5, 0.5], [0.0, 3.0], [1.0, 2.0])
    one = kl_from_dp_curve(HockeyStickCurve(p, q), HockeyStickCurve(q, p), rtol=1e-6)
    other = kl_from_dp_curve(HockeyStickCurve(q, p), HockeyStickCurve(p, q), rtol=1e-6)
    assert one.upper < other.lower
    same = kl_from_dp_curve(HockeyStickCurve(p, p), HockeyStickCurve(p, p))
    assert same.lower == 0.0
    assert same.upper < 1e-300


def test_measures_that_are_not_probabilities_are_off_by_their_gap():
    """With curves of P and of 2Q the right-hand side of (20) is KL(P||2Q) + (2Q - P)(all)."""
    q = 0.5
    found = kl_from_dp_curve(lambda e: 0.0 * e, lambda e: np.maximum(0.0, 2 * q - np.exp(e) * q))
    assert found.value == pytest.approx(-q * math.log(2.0) + q, rel=1e-12)
