"""Curves of groups of records: exact for mechanisms with a sensitivity, bounds that hold for all others.

Oracles: the closed curve of Laplace noise at the group's distance; binomial mixtures against one normal distribution by
mpmath; chains of geometric laws and of randomised responses by sums of fractions.
"""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fastpriv import (
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
    hockey_stick_divergence,
)
from fastpriv.composition import privacy_profile, trade_off_curve, true_positive_rate
from fastpriv.mechanisms import GeometricMechanism

LEVELS = np.array([-0.7, 0.0, 0.2, 1.1])
GROUPS = [1, 2, 3, 4, 5]


def holds(found, truth, width=None):
    """Whether bounds contain a truth of 1e-14 relative, and are as narrow as told."""
    truth = np.asarray(truth)
    assert np.all(found.lower <= truth * (1 + 1e-13)), (found.lower, truth)
    assert np.all(found.upper >= truth * (1 - 1e-13)), (found.upper, truth)
    assert width is None or np.all(found.width <= width), found.width


def laplace(level, shift):
    """delta of Laplace noise of scale 1 at a distance, at any real epsilon."""
    if level < 0:
        return 1 - math.exp(level) + math.exp(level) * laplace(-level, shift)
    return -math.expm1(min(0.0, (level - shift) / 2))


def removal(level, sigma, rate, group):
    """delta of the mixture of binomial distances against the base, by the root of its increasing ratio."""
    with mpmath.workdps(40):
        weights = [math.comb(group, j) * mpf(rate) ** j * (1 - mpf(rate)) ** (group - j) for j in range(group + 1)]
        x = mpmath.exp(level)

        def ratio(y):
            return sum(w * mpmath.exp((2 * y * j - j * j) / (2 * mpf(sigma) ** 2)) for j, w in enumerate(weights)) - x

        low, high = mpf(-100), mpf(100)
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if ratio(middle) < 0 else (low, middle)
        tail = [mpmath.ncdf((j - low) / sigma) for j in range(group + 1)]
        return float(sum(w * t for w, t in zip(weights, tail, strict=True)) - x * tail[0])


@pytest.mark.few(4)
@pytest.mark.parametrize("group", GROUPS)
def test_laplace_noise_at_the_distance_of_the_group(group):
    found = privacy_profile(LaplaceMechanism(1.0), None, LEVELS, group=group)
    holds(found, [laplace(level, group) for level in LEVELS], 1e-14)
    alpha = 1e-3  # below e^-g / 2 the power is e^g alpha
    power = true_positive_rate(LaplaceMechanism(1.0), None, alpha, group=group)
    holds(power, alpha * math.exp(group) if alpha * math.exp(group) <= 0.5 else 1 - math.exp(-group) / 4 / alpha, 1e-10)


@pytest.mark.parametrize("group", GROUPS)
def test_normal_noise_and_mixed_mechanisms_at_the_distance_of_the_group(group):
    exact = GaussianMechanism(2.0, float(group)).delta(0.2)
    holds(privacy_profile(GaussianMechanism(2.0, 1.0), None, 0.2, group=group), exact.value, 1e-13)
    mixed = compose([LaplaceMechanism(3.0, 0.1), GaussianMechanism(2.0, 0.7)], [2, 3])
    larger = compose([LaplaceMechanism(3.0, 0.1 * group), GaussianMechanism(2.0, 0.7 * group)], [2, 3])
    found, truth = privacy_profile(mixed, None, 0.2, group=group), larger.delta(0.2)
    assert found.lower <= truth.upper * (1 + 1e-12)
    assert truth.lower * (1 - 1e-12) <= found.upper
    assert found.width < 1e-9


@pytest.mark.few(2)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (0.5, 0.25)])
def test_steps_on_poisson_samples(sigma, rate, group):
    found = privacy_profile(PoissonSampledGaussian(sigma, rate), None, 0.2, group=group)
    holds(found, removal(0.2, sigma, rate, group), 1e-12)
    mixture, base = PoissonSampledGaussian(sigma, rate, group_size=group).pair()
    many = privacy_profile(compose(PoissonSampledGaussian(sigma, rate), 20), None, LEVELS, group=group)
    orders = [compose(pair, 20).delta(LEVELS, direction="forward") for pair in ((mixture, base), (base, mixture))]
    holds(many, np.maximum(orders[0].value, orders[1].value), 1e-10)


def test_a_hundred_sampled_steps_of_two_records():
    """The bound for two records was quoted as their curve, from both sides: 0.0073717 for 0.0068173 and the like."""
    steps = compose(PoissonSampledGaussian(1.0, 0.01), 100)
    found = privacy_profile(steps, None, 1.0, group=2)
    pair = PoissonSampledGaussian(1.0, 0.01, group_size=2).pair()
    worst = max(float(compose(one, 100).delta(1.0, direction="forward").value) for one in (pair, pair[::-1]))
    holds(found, worst, 1e-12)
    assert found.upper < privacy_profile(lambda e: privacy_profile(steps, None, e), None, 1.0, group=2).upper


def chains(p, q, level):
    return float(sum(max(Fraction(0), a - Fraction(math.exp(level)) * b) for a, b in zip(p, q, strict=True)))


@pytest.mark.parametrize("group", GROUPS)
def test_other_pairs_are_between_one_record_and_the_iterated_curve(group):
    """Geometric laws on the integers whose centre moves by one for each record; responses of as many people."""
    ratio, size = Fraction(1, 2), 60
    laws = [[ratio ** abs(z - c) * (1 - ratio) / (1 + ratio) for z in range(-size, size + 1)] for c in (0, 1, group)]
    for law in laws:  # what lies outside
        law[0] += (1 - sum(law)) / 2
        law[-1] += 1 - sum(law)
    p, q = (np.array([float(x) for x in law]) for law in laws[:2])
    for level in (0.0, 0.2, 1.1):
        found = privacy_profile(p / p.sum(), q / q.sum(), level, group=group)
        truth = chains(laws[0], laws[2], level)
        assert found.lower <= truth + 1e-14
        assert truth - 1e-14 <= found.upper <= 1.5 * truth + 1e-16
        assert abs(found.lower - chains(laws[0], laws[1], level)) < 1e-14
    response = RandomizedResponse(2, 0.5)
    true = Fraction(1 / (1 + math.exp(-0.5)))
    people = [[math.prod(true if b == bit else 1 - true for b in bits) for bits in product((0, 1), repeat=group)]
              for bit in (0, 1)]
    for level in (0.0, 0.2, 1.1):
        found = privacy_profile(response, None, level, group=group)
        assert found.lower <= float(response_delta(response, level)) * (1 + 1e-12)
        assert chains(*people, level) <= found.upper * (1 + 1e-13)
    assert "one record" in found.method or group == 1


def response_delta(response, level):
    rows = response.matrix()
    return hockey_stick_sum(rows[0], rows[1], level)


def hockey_stick_sum(p, q, level):
    return np.maximum(p - math.exp(level) * q, 0.0).sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [GeometricMechanism(5, 0.3), RandomizedResponse(3, 1.0), LaplaceMechanism(2.0).delta]
)
def test_lower_bounds_are_those_of_one_record(mechanism):
    level, alpha = np.array([-0.3, 0.0, 0.4]), np.array([0.01, 0.4])
    one, several = privacy_profile(mechanism, None, level), privacy_profile(mechanism, None, level, group=3)
    assert (several.lower <= one.lower * (1 + 1e-12)).all()
    assert (several.upper >= one.upper * (1 - 1e-12)).all()
    betas = [trade_off_curve(mechanism, None, alpha, group=g).beta for g in (1, 3)]
    assert (betas[1].upper >= betas[0].lower).all()
    assert (betas[1].lower <= betas[0].lower).all()
    powers = [true_positive_rate(mechanism, None, alpha, group=g) for g in (1, 3)]
    assert (powers[1].lower <= powers[0].upper).all()
    assert "between one record and the iterated curve" in powers[1].method


def test_iterated_curves_of_normal_noise_are_nearly_its_own():
    """The bound by the trade-off curve is exact for normal noise: what is lost is the table's."""
    mechanism = GaussianMechanism(4.0, 1.0)
    for group, excess in ((2, 5e-3), (8, 5e-3), (64, 2e-3)):
        found = privacy_profile(mechanism.delta, None, [0.0, 0.5, 2.0], group=group)
        truth = GaussianMechanism(4.0, float(group)).delta([0.0, 0.5, 2.0])
        assert (found.upper >= truth.lower).all()
        assert (found.upper <= truth.upper * (1 + excess)).all()


@pytest.mark.slow
def test_groups_that_no_mixture_has_are_bounded():
    """Where the weight of the whole group underflows, the iterated curve stands in."""
    step = PoissonSampledGaussian(2.0, 1e-6)
    found = privacy_profile(step, None, 0.1, group=60)
    assert "iterated" in found.method
    vast = privacy_profile(LaplaceMechanism(1e308, 1e308), None, 0.1, group=2)  # twice the sensitivity is no double
    assert vast.lower <= laplace(0.1, 1.0) * (1 + 1e-13)
    assert vast.upper >= laplace(0.1, 2.0) * (1 - 1e-13)
    assert found.lower <= hockey_stick_divergence(*step.pair(), 0.1).upper
