"""Unary encodings and subset selections under priors of many atoms, against all releases one by one in many digits."""

import math

import numpy as np
import pytest
from mpmath import exp, log, mpf, sqrt

from fastpriv import Channel, DomainError, notions
from fastpriv.mechanisms import SubsetSelection, UnaryEncoding
from fastpriv.notions.discrete import set_channels
from fastpriv.notions.discrete.abp import has_pairwise_form
from fastpriv.notions.discrete.channel_with_prior import QuantityRequest, channel_with_prior
from fastpriv.notions.discrete.set_channels import MOST_PAIRED, set_parameters
from oracles import channel_notions as truth
from oracles import channels

NAMES = ("cd_lmip", "bayes_vulnerability", "prior_vulnerability", "min_entropy_leakage", "maximal_leakage")


def set_quantities(model, names):
    return set_channels.brackets(QuantityRequest(model, tuple(names)))


def priors(k, seed):
    rng = np.random.default_rng([k, seed])
    yield rng.dirichlet(np.ones(k))
    sparse = rng.dirichlet(np.full(k, 0.3))
    sparse[rng.random(k) < 0.4] = 0.0
    yield sparse / sparse.sum()
    yield 2.0 ** -np.minimum(np.arange(1.0, k + 1), k - 1)
    yield np.full(k, 1 / k) * (1 + 1e-9 * rng.uniform(-1, 1, k))
    yield np.array([1 - 2.0**-30, *[2.0**-30 / (k - 1)] * (k - 1)])


CASES = [
    *((UnaryEncoding.optimized(6, e), channels.optimized_unary(6, e)) for e in (1e-6, 0.5, 3.0, 40.0)),
    *((UnaryEncoding(5, e), channels.symmetric_unary(5, e)) for e in (1e-20, 1.0, 9.0)),
    (UnaryEncoding(4, p=0.25, q=0.75), channels.unary(4, mpf(0.25), mpf(0.75))),
    (UnaryEncoding(4, p=1.0, q=0.125), channels.unary(4, mpf(1), mpf(0.125))),
    (UnaryEncoding(4, p=0.75, q=2.0**-40), channels.unary(4, mpf(0.75), mpf(2) ** -40)),
    (UnaryEncoding(3, p=2.0**-60, q=1 - 2.0**-53), channels.unary(3, mpf(2) ** -60, 1 - mpf(2) ** -53)),
    *((SubsetSelection(k, e, s), channels.subset(k, e, s)) for k, e, s in (
        (6, 1e-6, 3), (6, 0.7, 2), (5, 4.0, 1), (5, 2.0, 4), (6, 50.0, 3))),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case[0]))
def test_every_release_one_by_one(case):
    channel, rows = case
    for prior in priors(channel.inputs, 1):
        found = set_quantities(channel_with_prior(prior, channel), NAMES)
        want = truth.quantities(rows, prior)
        for name in NAMES:
            value = want[name]
            one = found[name]
            slack = mpf(10) ** -50  # of 60 digits
            assert one.lower - slack <= value <= one.upper + slack, (name, one, value)
            scale = max(value, want["maximal_leakage"] ** 2) if name == "cd_lmip" else value
            assert one.upper - one.lower <= 1e-9 * scale + slack, (name, one)


@pytest.mark.few(3)
@pytest.mark.parametrize("case", CASES[:11], ids=lambda case: repr(case[0]))
def test_beliefs_at_every_true_secret(case):
    channel, rows = case
    for prior in priors(channel.inputs, 2):
        model = channel_with_prior(prior, channel)
        assert has_pairwise_form(model)
        found = notions.abp(prior, channel).per_value
        wanted = [truth.abp(rows, prior, rows[d]) for d in np.flatnonzero(prior)]
        for place, (d, want) in enumerate(zip(np.flatnonzero(prior), wanted, strict=True)):
            assert found.lower[place] <= want <= found.upper[place], (d, found, want)
            if prior.max() < 0.999:
                assert found.width[place] <= 1e-9 * max(wanted) + 1e-12 * min(1.0, channel.epsilon**2), (d, found, want)
        one = notions.abp(prior, channel, secret=[int(d), int(d)])
        assert (one.per_value.value == found.value[-1]).all()


@pytest.mark.slow
def test_twelve_bits_and_a_random_prior():
    rng = np.random.default_rng(12)
    prior = rng.dirichlet(np.ones(12))
    total = sum(mpf(x) for x in prior)
    pi = [mpf(x) / total for x in prior]
    q = 1 / (1 + exp(mpf(2)))
    ratio = mpf(1) / 2 / q, mpf(1) / 2 / (1 - q)
    information = guess = mpf(0)
    for number in range(2**12):
        c = [ratio[0] if number >> d & 1 else ratio[1] for d in range(12)]
        ones = number.bit_count()
        reference = q**ones * (1 - q) ** (12 - ones)
        s = sum(x * y for x, y in zip(pi, c, strict=True))
        inside = sum(pi[d] for d in range(12) if number >> d & 1)
        information += reference * (inside * ratio[0] * log(ratio[0]) + (1 - inside) * ratio[1] * log(ratio[1])
                                    - s * log(s))
        guess += reference * max(x * y for x, y in zip(pi, c, strict=True))
    found = set_quantities(channel_with_prior(prior, UnaryEncoding.optimized(12, 2.0)), NAMES)
    assert found["cd_lmip"].lower <= information <= found["cd_lmip"].upper
    assert found["bayes_vulnerability"].lower <= guess <= found["bayes_vulnerability"].upper


@pytest.mark.few(3)
@pytest.mark.parametrize("channel", [
    UnaryEncoding.optimized(1000, 1.0), pytest.param(UnaryEncoding(1000, 1e-6), marks=pytest.mark.slow),
    UnaryEncoding(1000, 12.0), SubsetSelection(1000, 1.0), SubsetSelection(300, 1e-6, 100),
    SubsetSelection(1000, 9.0, 3),
], ids=repr)
def test_a_thousand_secrets_of_two_atoms_as_by_classes(channel):
    k = channel.inputs
    prior = np.where(np.arange(k) < 20, 16.0, 1.0)
    prior /= prior.sum()
    model = channel_with_prior(prior, channel)
    found, known = set_quantities(model, NAMES), notions.summary(prior, channel)
    for name in NAMES:
        one, other = found[name], getattr(known, name)
        assert one.lower <= other.upper, (name, one, other)
        assert other.lower <= one.upper, (name, one, other)
        assert abs(one.value - other.value) <= 1e-8 * other.value, (name, one, other)


def test_every_prior_has_its_numbers():
    rng = np.random.default_rng(3)
    for channel in (UnaryEncoding.optimized(500, 1.5), SubsetSelection(100, 1.5)):
        prior = rng.dirichlet(np.ones(channel.inputs))
        found = notions.summary(prior, channel)
        for name in NAMES:
            assert getattr(found, name).width <= 1e-10 * getattr(found, name).value, name
        assert 0 < found.cd_lmip.value < notions.ci_lmip(channel).upper
        assert (found.abp is None) == isinstance(channel, SubsetSelection)
    huge, many = (notions.cd_lmip(None, UnaryEncoding(k, 1.0)).value for k in (10**16, 10**6))
    assert many < huge < many * (1 + 2e-6)  # too many sizes of sets for classes


def test_a_selection_of_like_secrets():
    found = set_quantities(channel_with_prior(None, SubsetSelection(2, 1.0, 1)), NAMES)
    want = channels.leakage(channels.subset(2, 1.0, 1), [mpf(0.5)] * 2)[0]
    assert found["cd_lmip"].lower <= want <= found["cd_lmip"].upper


def test_who_gains_nothing_from_a_guess():
    prior = np.array([0.5, *np.linspace(0.01, 0.04, 20)])
    prior /= prior.sum()
    found = notions.min_entropy_leakage(prior, UnaryEncoding.optimized(21, 1.0))
    assert (found.value, found.upper) == (0.0, 0.0)


def test_what_has_no_integral():
    prior = np.random.default_rng(4).dirichlet(np.ones(30))
    for channel in (UnaryEncoding(30, p=0.5, q=0.5), UnaryEncoding(30, 0.0), UnaryEncoding(30, p=0.5, q=0.0),
                    UnaryEncoding(30, p=0.5, q=1.0), SubsetSelection(30, 0.0), SubsetSelection(1, 1.0)):
        some = prior[: channel.inputs]
        assert set_parameters(channel_with_prior(some / some.sum(), channel)) is None
    assert set_parameters(channel_with_prior(None, Channel(np.eye(2)))) is None
    with pytest.raises(DomainError, match=r"at most 2\*\*25 cells, 2\*\*28 secrets and 2\*\*28 releases"):
        notions.pointwise_lmip(prior, UnaryEncoding(30, 1.0))
    many = np.random.default_rng(5).dirichlet(np.ones(MOST_PAIRED + 1))
    assert notions.summary(many, UnaryEncoding(many.size, 1.0)).abp is None
    with pytest.raises(DomainError, match="secret must be one that the prior gives mass; got 1"):
        notions.abp([0.5, 0.0, 0.5], UnaryEncoding(3, 1.0), secret=1)


def test_weak_channels_keep_their_digits():
    prior = np.random.default_rng(6).dirichlet(np.ones(40))
    e = 1e-9
    spread = mpf(e) ** 2 / 4 * (1 - sum(mpf(x) ** 2 for x in prior) / sum(mpf(x) for x in prior) ** 2)
    found = notions.cd_lmip(prior, UnaryEncoding.optimized(40, e))
    assert found.value == pytest.approx(float(spread / 2), rel=1e-8)
    assert found.width <= 1e-11 * found.value
    shift = notions.abp(prior, UnaryEncoding.optimized(40, e))
    assert shift.maximum.width <= 1e-10 * shift.maximum.value
    square = sum(mpf(x) ** 2 for x in prior)
    d = int(np.argmax(shift.per_value.value))
    first = [square - mpf(prior[d]) - mpf(x) + (1 if i == d else 0) for i, x in enumerate(prior)]
    want = mpf(e) ** 2 / 4 * sqrt(sum(mpf(x) * y**2 for x, y in zip(prior, first, strict=True)) / 8)
    assert shift.maximum.value == pytest.approx(float(want), rel=1e-7)
    assert math.isfinite(notions.cd_lmip(prior, SubsetSelection(40, 1e-100)).value)
