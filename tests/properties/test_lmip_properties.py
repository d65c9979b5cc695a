"""Properties of the conversions of mutual-information privacy: monotone, tight, and never exceeded by a mechanism."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastpriv import bac_capacity, special

SLACK = 1e-14
quick = settings(max_examples=150, deadline=None)

budgets = st.floats(1e-300, 1) | st.just(0.0) | st.floats(-300, 0).map(lambda x: 10**x)
losses = st.just(0.0) | st.floats(0, 8) | st.floats(-300, 3).map(lambda x: 10**x)
chances = st.floats(1e-300, 1) | st.floats(-300, 0).map(lambda x: 10**x)


@quick
@given(budgets, budgets, losses, chances)
def test_delta_rises_with_mu(one, other, epsilon, atom):
    low, high = sorted((one, other))
    for f, rest in ((special.ci_lmip_ldp_delta, ()), (special.pointwise_lip_delta, ())):
        assert f(low, epsilon, *rest) <= f(high, epsilon, *rest) * (1 + SLACK)
    assert special.cd_lmip_lip_delta(low, epsilon, atom) <= special.cd_lmip_lip_delta(high, epsilon, atom) * (1 + 1e-13)


@quick
@given(budgets, losses, losses, chances)
def test_delta_falls_with_epsilon_to_its_limit(mu, one, other, atom):
    low, high = sorted((one, other))
    for f, end in (
        (lambda e: special.ci_lmip_ldp_delta(mu, e), special.ci_lmip_ldp_saturation(mu)),
        (lambda e: special.pointwise_lip_delta(mu, e), -math.expm1(-mu)),
        (lambda e: special.cd_lmip_lip_delta(mu, e, atom), special.cd_lmip_lip_saturation(mu, atom)),
    ):
        assert end * (1 - 1e-13) <= f(high) <= f(low) * (1 + 1e-13) <= 1 + 2e-13


@quick
@given(budgets, losses, chances, chances)
def test_a_smaller_atom_is_worse(mu, epsilon, one, other):
    """Splitting an atom is data processing."""
    low, high = sorted((one, other))
    assert special.cd_lmip_lip_delta(mu, epsilon, high) <= special.cd_lmip_lip_delta(mu, epsilon, low) * (1 + 1e-13)


@quick
@given(budgets, losses, chances)
@pytest.mark.slow
def test_published_never_exceeds_the_corrected_limit_of_small_atoms(mu, epsilon, atom):
    """An atom with mu nats of information has a divergence of at most mu / atom."""
    assume(mu * (1.0 - atom) >= 1e-306)  # a smaller mu counts as this over 1 - atom (csrc/lmip/fp_lmip_lip.h)
    whole = special.pointwise_lip_delta(mu / atom, epsilon)
    assert special.cd_lmip_lip_delta(mu, epsilon, atom) <= whole * (1 + 1e-13)


@quick
@given(st.floats(1e-6, 0.692), st.floats(0, 4))
def test_the_best_channel_has_capacity_mu_and_that_delta(mu, epsilon):
    high, low = special.ci_lmip_ldp_high(mu, epsilon), math.exp(special.ci_lmip_ldp_log_low(mu, epsilon))
    assert bac_capacity(low, 1 - high).value == pytest.approx(mu, rel=1e-6, abs=1e-9)
    assert high - math.exp(epsilon) * low == pytest.approx(special.ci_lmip_ldp_delta(mu, epsilon), rel=1e-9)


@quick
@given(st.floats(1e-4, 0.5), st.floats(0, 3), st.floats(0.05, 0.95))
def test_the_best_mechanism_has_information_mu_and_that_delta(share, epsilon, atom):
    mu = share * special.binary_entropy(atom)
    high, low = special.cd_lmip_lip_high(mu, epsilon, atom), math.exp(special.cd_lmip_lip_log_low(mu, epsilon, atom))
    rest = (high - atom * low) / (1 - atom)
    assert high - math.exp(epsilon) * low == pytest.approx(special.cd_lmip_lip_delta(mu, epsilon, atom), rel=1e-9)
    assert information(atom, np.array(low), np.array(rest)) == pytest.approx(mu, rel=1e-6)


def divergence(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = p * np.log(p / q), (1 - p) * np.log((1 - p) / (1 - q))
    return np.where(p > 0, one, 0) + np.where(p < 1, other, 0)


def information(atom, p, s):
    q = atom * p + (1 - atom) * s
    return atom * divergence(p, q) + (1 - atom) * divergence(s, q)


def test_no_channel_exceeds_the_ldp_curve():
    rng = np.random.default_rng(41)
    n = 200_000
    p0, p1 = rng.random(n) ** rng.integers(1, 12, n), rng.random(n) ** rng.integers(1, 4, n)
    epsilon = rng.exponential(1.0, n)
    mu = special.bac_capacity(p0, 1 - p1)
    delta = np.maximum(p1 - np.exp(epsilon) * p0, p0 - np.exp(epsilon) * p1)
    bound = special.ci_lmip_ldp_delta(mu, epsilon)
    assert (delta <= bound * (1 + 1e-9) + 1e-15).all()
    assert (delta > 0.98 * bound).any()  # and it is close to some


@pytest.mark.slow
def test_no_mechanism_exceeds_the_corrected_lip_curve_and_some_exceed_the_published_one():
    rng = np.random.default_rng(42)
    n = 200_000
    atom = rng.random(n) ** rng.integers(1, 6, n)
    p, s = rng.random(n) ** rng.integers(1, 12, n), rng.random(n) ** rng.integers(1, 4, n)
    epsilon = rng.exponential(1.0, n)
    q, mu = atom * p + (1 - atom) * s, np.maximum(information(atom, p, s), 0.0)
    delta = np.maximum(q - np.exp(epsilon) * p, np.exp(-epsilon) * p - q)  # both halves of the notion
    bound = special.cd_lmip_lip_delta(mu, epsilon, atom)
    sure = mu > 1e-6  # information as computed here loses digits
    assert (delta <= bound * (1 + 1e-6) + 1e-12)[sure].all()
    assert (delta > 0.98 * bound)[sure].any()
    assert (delta > 1.5 * special.pointwise_lip_delta(mu, epsilon))[sure].any()
    each = np.maximum(divergence(p, q), divergence(s, q))
    assert (delta <= special.pointwise_lip_delta(each, epsilon) * (1 + 1e-6) + 1e-12)[sure].all()


def test_the_other_half_of_lip_is_never_larger():
    """max of e^-epsilon p - q is the complement's max of q - e^-epsilon p, less 1 - e^-epsilon."""
    level = np.linspace(0, 1, 1201)
    q, p = np.meshgrid(level, level)
    each = divergence(p, np.clip(q, 1e-300, 1 - 1e-16))
    for mu in (1e-3, 0.05, 0.3, 1.0, 2.0):
        allowed = (each <= mu) & (q > 0) & (q < 1)
        for epsilon in (0.0, 0.01, 0.1, 0.5, 1.0, 3.0):
            second = (math.exp(-epsilon) * p - q)[allowed].max()
            first = (q - math.exp(epsilon) * p)[allowed].max()
            assert max(first, second) <= special.pointwise_lip_delta(mu, epsilon)
            assert second <= special.pointwise_lip_delta(mu, epsilon) * (1.0 if epsilon == 0 else 0.999)
