"""What must hold between notions of channels: less after post-processing, more for products, and the conversions."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fastpriv import Channel, conversions, notions

STEP = 2.0**-20
QUICK = settings(max_examples=15, deadline=None)
SCALARS = ("ldp_epsilon", "ldp_on_support", "xi", "xi_plus", "xi_minus", "cd_lmip", "pointwise_lmip",
           "bayes_vulnerability", "min_entropy_leakage", "maximal_leakage")


@st.composite
def laws(draw, size, zeros=True):
    """Multiples of 2^-20 with sum 1."""
    least = 0 if zeros else 1
    cuts = sorted(draw(st.lists(st.integers(0, 2**20 - size), min_size=size - 1, max_size=size - 1)))
    return (np.diff([0, *cuts, 2**20 - size * least]) + least) * STEP


@st.composite
def channels(draw, most=5, zeros=True):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, most))
    return np.array([draw(laws(m, zeros)) for _ in range(n)]), draw(laws(n, zeros))


@QUICK
@given(channels(), st.data())
def test_post_processing_lowers_everything(setting, data):
    rows, prior = setting
    m = rows.shape[1]
    step = np.array([data.draw(laws(3)) for _ in range(m)])
    before, after = notions.summary(prior, rows), notions.summary(prior, Channel(rows).then(step))
    for name in SCALARS:
        assert getattr(after, name).lower <= getattr(before, name).upper + 1e-15, name
    assert after.abp.maximum.lower <= math.sqrt(math.log(2))
    assert notions.ci_lmip(Channel(rows).then(step)).lower <= notions.ci_lmip(rows).upper + 1e-15
    grid = np.array([0.0, 0.3, 2.0])
    for curve in (notions.ldp_delta, notions.lip_delta):
        assert (curve(prior, Channel(rows).then(step), grid).lower <= curve(prior, rows, grid).upper + 1e-15).all()


@QUICK
@given(channels(3), channels(3))
def test_products_add_whatever_way_they_are_computed(one, two):
    (rows, prior), (others, law) = one, two
    factors = Channel(rows).product(Channel(others))
    apart = notions.summary((prior, law), factors)
    whole = notions.summary(np.multiply.outer(prior, law).ravel(), factors.matrix())
    for name in SCALARS:
        a, b = getattr(apart, name), getattr(whole, name)
        assert a.value == b.value or (a.lower - 1e-12 <= b.upper and b.lower <= a.upper + 1e-12), name
    assert abs(apart.abp.maximum.value - whole.abp.maximum.value) <= 1e-9


@QUICK
@given(channels(zeros=False), st.floats(0.01, 3.0))
def test_notions_follow_from_each_other_as_the_conversions_say(setting, epsilon):
    rows, prior = setting
    found = notions.summary(prior, rows)
    level, xi = found.ldp_epsilon, found.xi
    least = float(prior.min())
    assert least > 0.5 or xi.lower <= conversions.mbp_from_ldp(level.upper, pi_min=least).upper + 1e-12
    assert found.cd_lmip.lower <= notions.ci_lmip(rows).upper + 1e-15
    assert found.cd_lmip.lower <= found.pointwise_lmip.upper
    assert found.pointwise_lmip.lower <= found.xi_plus.upper + 1e-15
    assert found.min_entropy_leakage.lower <= found.maximal_leakage.upper + 1e-15
    assert notions.ci_lmip(rows).lower <= found.maximal_leakage.upper + 1e-15
    assert found.maximal_leakage.lower <= level.upper + 1e-15
    delta = notions.ldp_delta(None, rows, [0.0, epsilon, 2 * epsilon])
    assert (np.diff(delta.lower) <= delta.width[1:] + 1e-15).all()
    assert delta.lower[0] <= math.tanh(0.5 * min(level.upper, 700.0)) + 1e-15
    assert notions.lip_delta(prior, rows, epsilon).lower <= delta.upper[1] + 1e-15


@QUICK
@given(channels(), st.permutations(range(5)))
def test_names_of_secrets_and_releases_do_not_matter(setting, order):
    rows, prior = setting
    n, m = rows.shape
    i, j = [k for k in order if k < n], [k for k in order if k < m]
    one, two = notions.summary(prior, rows), notions.summary(prior[i], rows[np.ix_(i, j)])
    for name in SCALARS:
        a, b = getattr(one, name), getattr(two, name)
        assert a.value == b.value or abs(a.value - b.value) <= 1e-13 * (1 + abs(a.value)), name


@QUICK
@given(channels())
def test_a_release_split_in_two_changes_nothing(setting):
    rows, prior = setting
    split = np.concatenate([0.25 * rows[:, :1], 0.75 * rows[:, :1], rows[:, 1:]], axis=1)
    one, two = notions.summary(prior, rows), notions.summary(prior, split)
    for name in SCALARS:
        a, b = getattr(one, name), getattr(two, name)
        assert a.value == b.value or abs(a.value - b.value) <= 1e-13 * (1 + abs(a.value)), name
    assert abs(one.abp.maximum.value - two.abp.maximum.value) <= 1e-9
