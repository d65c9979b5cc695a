"""Compositions contain the truth: published values, closed forms, and sums by hand."""

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import (
    Channel,
    DomainError,
    Estimate,
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    Pmf,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
    hockey_stick_divergence,
    renyi_divergence,
)
from fastpriv.adapters import dp_accounting_pld
from fastpriv.composition import PrivacyLossDistribution
from fastpriv.composition.compositions import certified_curves
from fastpriv.errors import ShapeError
from fastpriv.mechanisms import DiscreteLaplace
from fastpriv.pairs.discrete_pairs import DiscretePair
from fastpriv.pairs.measured_losses import LossPair
from oracles.composition import delta_of_masses

ONE = GaussianMixture.single(0.0, 1.0)
MIXTURES = GaussianMixture([0.75, 0.25], [0.0, 1.0], 1.0), GaussianMixture([0.5, 0.5], [0.0, 0.5], 1.0)
# Pairs, counts, and (epsilon, log delta) to 20 digits, by contour integrals of 50 digits; epsilon at delta = 1e-5.
TRUTH = {
    "gaussians": ([(GaussianMixture.single(1.0, 5.0), GaussianMixture.single(0.0, 5.0))], [25],
                  [("0.0", "-0.9599163336956223193"), ("2.833", "-5.982361944852031748"),
                   ("7.563", "-29.95409834789673528")], "4.377178095681224608"),
    "subsampled": ([(GaussianMixture([0.95, 0.050000000000000044], [0.0, 1.0], 3.0), GaussianMixture.single(0.0, 3.0))],
                   [50], [("0.0", "-3.034858840730751163"), ("0.2132", "-5.967219588810716479"),
                          ("0.9777", "-29.85371229471629606")], "0.4574476336184372511"),
    "laplace": ([LaplaceMechanism(10.0, 1.0)], [20],
                [("0.06", "-1.889044453167465751"), ("0.8", "-4.832360804058712745"), ("1.9", "-15.75438000063546644")],
                "1.592229503027551466"),
    "atoms": ([([0.625, 0.375], [0.375, 0.625])], [16],
              [("0.0", "-0.3813469564623772072"), ("2.737", "-1.452643272229782257")], "8.154590973249543524"),
}


@pytest.mark.parametrize("name", TRUTH)
def test_published_values(name):
    pairs, counts, values, inverse = TRUTH[name]
    composition = compose([tuple(map(np.array, p)) if isinstance(p, tuple) and isinstance(p[0], list) else p
                           for p in pairs], counts)
    found = composition.log_delta([float(e) for e, _ in values])
    for (_, truth), low, high in zip(values, found.lower, found.upper, strict=True):
        assert mpf(float(low)) <= mpf(truth) <= mpf(float(high)), (truth, low, high)
    assert (found.width <= (1e-9 if name != "laplace" else 1e-2)).all(), found.width
    epsilon = composition.epsilon(1e-5)
    assert epsilon.lower <= float(inverse) * (1 + 1e-15)
    assert epsilon.upper >= float(inverse) * (1 - 1e-15)
    assert epsilon.width <= (1e-9 if name != "laplace" else 1e-2)


@pytest.mark.parametrize("count", [1, 3, 1000, 10**6, 10**12])
def test_gaussians_are_one_gaussian(count):
    sigma = 2.0 * math.sqrt(count)
    epsilon = np.array([0.0, 0.1, 1.0, 5.0, 20.0])
    truth, found = GaussianMechanism(2.0, 1.0).log_delta(epsilon), compose(GaussianMechanism(sigma, 1.0), count)
    logs = found.log_delta(epsilon)
    assert np.allclose(logs.value, truth.value, rtol=1e-12, atol=1e-12)
    assert (logs.width <= 1e-12 * (1 + np.abs(logs.value))).all()
    mixed = compose([GaussianMechanism(4.0, 1.0), (GaussianMixture.single(3.0, 8.0), GaussianMixture.single(0.0, 8.0))],
                    [2, 1])
    single = GaussianMechanism(1.0, math.sqrt(2 / 16 + 9 / 64))
    assert np.allclose(mixed.log_delta(epsilon).value, single.log_delta(epsilon).value, rtol=1e-12)


def response_sum(epsilon_0, count, level):
    """The binomial sum of randomised response of two values, in 40 digits."""
    with mp.workdps(40):
        p = 1 / (1 + mp.exp(-mpf(epsilon_0)))
        return sum(
            mp.binomial(count, j) * p**j * (1 - p) ** (count - j) * -mp.expm1(level - (2 * j - count) * mpf(epsilon_0))
            for j in range(count + 1) if (2 * j - count) * mpf(epsilon_0) > level
        )


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon_0", "count"), [(1.0, 7), (0.1, 200), (1e-3, 2000)])
def test_randomised_response_is_a_binomial_sum(epsilon_0, count):
    top = epsilon_0 * count
    levels = np.array([0.0, 0.1, 0.3, 0.8, 0.99]) * top
    found = compose(RandomizedResponse(2, epsilon_0), count).delta(levels)
    for level, low, high in zip(levels.tolist(), found.lower, found.upper, strict=True):
        truth = response_sum(epsilon_0, count, level)
        assert low <= truth <= high, (level, low, truth, high)
        assert high - low <= 1e-9 * truth + 1e-300


def brute(p, q, count, level):
    """Delta of a discrete pair by all outcomes, in fractions."""
    total = Fraction(0)
    for outcome in product(range(len(p)), repeat=count):
        a, b = (math.prod(Fraction(x[i]) for i in outcome) for x in (p, q))
        total += max(Fraction(0), a - Fraction(math.exp(level)) * b)
    return float(total)


@pytest.mark.parametrize(("p", "q"), [([0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.0, 0.5]), ([0.75, 0.25], [0.25, 0.75])])
def test_discrete_pairs_are_sums_over_outcomes(p, q):
    composition = compose((np.array(p), np.array(q)), 4)
    for level in (0.0, 0.4, 1.5):
        found = composition.delta(level, direction="forward")
        assert found.lower <= brute(p, q, 4, level) * (1 + 1e-14)
        assert found.upper >= brute(p, q, 4, level) * (1 - 1e-14)
        behind = composition.delta(level, direction="backward").value
        assert behind == pytest.approx(brute(q, p, 4, level), rel=1e-12, abs=1e-300)
        negative = composition.delta(-level)
        assert negative.value == pytest.approx(1 - math.exp(-level) + math.exp(-level) * behind, rel=1e-12)
    mass = sum(a for a, b in zip(p, q, strict=True) if not b)
    assert composition.infinite_loss.value == pytest.approx(1 - (1 - mass) ** 4)


@pytest.mark.parametrize("pair", [MIXTURES, (MIXTURES[0], ONE), (ONE, MIXTURES[0])])
def test_one_release_is_its_pair(pair):
    levels = np.array([0.0, 0.01, 0.2, 1.0, 4.0])
    found, truth = compose(pair).delta(levels, direction="forward"), hockey_stick_divergence(*pair, levels)
    assert ((found.lower <= truth.upper) & (truth.lower <= found.upper)).all()
    assert np.allclose(found.value, truth.value, rtol=1e-12)


@pytest.mark.slow
def test_negative_epsilons_of_two_releases():
    """delta(epsilon) of two releases by an integral over the first one."""
    x, weight = np.polynomial.legendre.leggauss(400)
    y, (p, q) = 10 * x, (MIXTURES[0], ONE)
    loss = p.log_density(y[:, None]) - q.log_density(y[:, None])
    composition, single = compose((p, q), 2), compose((p, q))
    for level in (-0.5, 0.0, 0.3):
        terms = single.delta(level - loss).value
        truth = 10 * (weight * np.exp(p.log_density(y[:, None])) * terms).sum()
        found = composition.delta(level)
        assert found.value == pytest.approx(truth, rel=1e-6)  # what the quadrature is right to


def test_infinite_losses_beside_mixtures():
    pair = (np.array([0.5, 0.25, 0.25]), np.array([0.5, 0.5, 0.0]))
    gaussian = compose((MIXTURES[0], ONE), 20)
    found = compose([gaussian, pair], [1, 3])
    for level in (0.0, 0.5, 2.0):
        truth = 1 - 0.75**3
        for j in range(4):  # as often a loss of -log 2
            truth += math.comb(3, j) * 0.25**j * 0.5 ** (3 - j) * gaussian.delta(level + j * math.log(2.0)).value
        assert found.delta(level).value == pytest.approx(truth, rel=1e-10)
    assert found.delta(math.inf).value == pytest.approx(1 - 0.75**3, rel=1e-12)
    nothing = compose([gaussian, (np.array([1.0, 0.0]), np.array([0.0, 1.0]))])
    assert nothing.delta(7.0).value == 1.0
    assert nothing.tail_probabilities(7.0)[1].upper == 0.0


def test_groups_of_a_poisson_sample():
    """The weights of Bin(3, 1/4), and their bracket where three times the sensitivity is no double."""
    exact = compose(PoissonSampledGaussian(1.0, 0.25, group_size=3), 10)
    p = GaussianMixture(np.array([27.0, 27.0, 9.0, 1.0]) / 64, [0.0, 1.0, 2.0, 3.0], 1.0)
    assert exact.forward_pairs == compose((p, ONE), 10).forward_pairs
    assert exact.delta(1.0).upper == compose((p, ONE), 10).delta(1.0).upper  # removal is worse
    rounded = compose(PoissonSampledGaussian(1.0, 0.25, 0.1, 3), 10)
    assert rounded.forward_pairs.dominated
    assert rounded.delta(0.2).width < 1e-10 * rounded.delta(0.2).value


def test_measured_losses():
    masses = np.array([0.25, 0.5, 0.125])
    on_grid = PrivacyLossDistribution(np.arange(-4, 8) * 0.125, np.r_[np.full(4, 0.125), np.full(8, 0.05)], 0.1)
    free = PrivacyLossDistribution([-0.3, 0.7, 1.1], masses, 0.125)
    assert isinstance(compose(on_grid).forward_pairs.dominating[0], LossPair)
    assert isinstance(compose(free).forward_pairs.dominating[0], DiscretePair)
    for level in (0.0, 0.4, 1.3):
        found = compose(on_grid, 3).delta(level, direction="forward")
        truth = delta_of_masses(-4, 0.125, on_grid.masses, 0.1, 3, [level])[0]
        assert found.lower <= truth <= found.upper
        found, truth = compose(free, 2).delta(level, direction="forward"), 1 - 0.875**2
        for i, j in product(range(3), repeat=2):
            truth += masses[i] * masses[j] * max(0.0, 1 - math.exp(level - free.losses[i] - free.losses[j]))
        assert found.value == pytest.approx(truth, rel=1e-12)
        assert found.width < 1e-12


def test_losses_whose_masses_underflow():
    losses = PrivacyLossDistribution([0.0, 730.0], [1.0 - 1e-12, 1e-12])
    found = compose(losses).log_delta([0.0, 700.0])
    truth = math.log(1e-12)
    assert (found.lower <= truth + 1e-9).all()
    assert (found.upper >= truth - 1e-9).all()


def test_channels_without_a_worst_pair():
    rows = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.25, 0.75]]
    found = compose(Channel(rows), 3)
    for level in (0.0, 0.5, 1.0):
        worst = max(brute(p, q, 3, level) for p in rows for q in rows)
        assert found.delta(level).lower <= worst * (1 + 1e-12)
        assert found.delta(level).upper >= worst * (1 - 1e-12)


def test_symmetric_channels_have_one_pair():
    found = compose(Channel([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]), 2)
    assert found.delta(0.3).value == pytest.approx(brute([0.5, 0.25, 0.25], [0.25, 0.5, 0.25], 2, 0.3), rel=1e-11)
    noise = compose(DiscreteLaplace(2, 1.0), 5).delta(1.0)
    assert noise.value == pytest.approx(compose(RandomizedResponse(2, 1.0), 5).delta(1.0).value, rel=1e-11)
    sure = compose(RandomizedResponse(3, math.inf), 2)
    assert sure.delta(50.0).value == 1.0


def test_mixtures_in_several_dimensions():
    p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3.0, 4.0]], 5.0)
    q = GaussianMixture([1.0], [[0.0, 0.0]], 5.0)
    line = compose((GaussianMixture([0.5, 0.5], [0.0, 5.0], 5.0), GaussianMixture.single(0.0, 5.0)), 4)
    assert compose((p, q), 4).delta(1.0).value == pytest.approx(line.delta(1.0).value, rel=1e-10)
    corner = GaussianMixture([0.25, 0.25, 0.5], [[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]], 1.0)
    with pytest.raises(DomainError, match="p and q must be single Gaussians, or mixtures whose means lie on a line"):
        compose((corner, GaussianMixture([1.0], [[0.0, 0.0]], 1.0)))


def test_weights_that_miss_one():
    """Weights 1e-10 too large: the bounds contain what they stand for, divided by their sum or not."""
    p = GaussianMixture([0.75 * (1 + 1e-10), 0.25 * (1 + 1e-10)], [0.0, 1.0], 1.0)
    found, plain = (compose((one, ONE), 1000).log_delta(20.0) for one in (p, MIXTURES[0]))
    assert found.lower <= plain.value <= found.upper
    assert plain.width < found.width < 1e-5


class TestNothing:
    @pytest.mark.parametrize("given", [([], 1), (GaussianMechanism(1.0, 1.0), 0), (([0.5, 0.5], [0.5, 0.5]), 10**6),
                                       (LaplaceMechanism(1.0, 0.0), 5), ((ONE, ONE), 10**9)])
    def test_no_loss(self, given):
        pairs, count = given
        if isinstance(pairs, tuple) and isinstance(pairs[0], list):
            pairs = tuple(map(np.array, pairs))
        empty = compose(pairs, count)
        assert empty.delta([0.0, 1.0, math.inf]).upper.tolist() == [0.0, 0.0, 0.0]
        assert empty.delta(-1.0).value == pytest.approx(1 - math.exp(-1), rel=1e-14)
        assert empty.epsilon([0.0, 1e-9, 1.0]).upper.tolist() == [0.0, 0.0, 0.0]
        assert empty.infinite_loss.upper == 0.0
        assert [one.upper for one in empty.tail_probabilities(0.0)] == [0.0, 0.0]

    def test_no_epsilons(self):
        assert compose(GaussianMechanism(1.0, 1.0)).delta([]).shape == (0,)
        assert compose(GaussianMechanism(1.0, 1.0)).epsilon(np.zeros((2, 0))).shape == (2, 0)


def test_shapes_and_estimates():
    composition = compose((MIXTURES[0], ONE), 100)
    levels = np.array([[0.5, -1.0, 3.0], [0.0, np.inf, -np.inf]])
    found = composition.delta(levels)
    assert found.shape == levels.shape
    for index in np.ndindex(levels.shape):
        assert composition.delta(levels[index]).value == pytest.approx(found.value[index], rel=1e-12)
    assert found.value[1, 1] == 0.0
    assert found.value[1, 2] == 1.0
    known = Estimate(1.0, 0.5, 1.5, kind="certified", unit="nats", method="example")
    wide = composition.delta(known)
    assert wide.lower == composition.delta(1.5).lower
    assert wide.upper == composition.delta(0.5).upper
    bits = composition.delta(known.to("bits"))
    assert bits.value == pytest.approx(wide.value, rel=1e-12)
    assert composition.epsilon(found[:1]).upper.shape == (1, 3)


class TestEpsilon:
    def test_from_logarithms(self):
        logs = np.linspace(-1000.0, -0.5, 40)
        found = compose(GaussianMechanism(4.0, 1.0), 16).epsilon(log_delta=logs)
        truth = GaussianMechanism(1.0, 1.0).epsilon_from_log_delta(logs)
        assert ((found.lower <= truth.upper) & (truth.lower <= found.upper)).all()
        assert (found.width <= 1e-12 * truth.value).all()

    def test_ends_are_proved(self):
        composition = compose((MIXTURES[0], ONE), 200)
        targets = np.array([0.3, 1e-3, 1e-10, 1e-100])
        found = composition.epsilon(targets)
        assert (composition.delta(found.upper).upper <= targets).all()
        assert (composition.delta(found.lower).lower >= targets).all()
        assert (found.width <= 1e-10 * found.value).all()

    def test_ends_of_bounded_losses(self):
        bounded = compose(RandomizedResponse(2, 0.5), 10)
        assert bounded.epsilon(0.0).value == pytest.approx(5.0, rel=1e-14)
        assert bounded.epsilon(1e-300).upper <= 5.0 * (1 + 1e-14)
        added = compose((ONE, MIXTURES[0]), 3).epsilon(0.0, direction="forward")
        assert added.lower <= 3 * renyi_divergence(ONE, MIXTURES[0], math.inf).value <= added.upper

    def test_infinite_ends_have_a_reason(self):
        found = compose(GaussianMechanism(1.0, 1.0)).epsilon(0.0)
        assert found.lower == math.inf
        assert "the losses are unbounded" in found.method
        floored = compose((np.array([0.75, 0.25]), np.array([1.0, 0.0]))).epsilon([0.1, 0.9])
        assert floored.upper.tolist() == [math.inf, 0.0]
        assert "below the probability of an infinite loss" in floored.method

    def test_far_apart_and_close_together(self):
        far = compose(GaussianMechanism(10.0, 1.0), 10**12).epsilon(1e-5)
        truth = GaussianMechanism(1e-5, 1.0).epsilon(1e-5)
        assert far.lower <= truth.upper
        assert far.upper >= truth.lower
        assert far.width < 1e-9 * far.value
        assert compose(GaussianMechanism(1e12, 1.0), 4).epsilon(1e-5).upper == 0.0


class TestTails:
    def test_of_gaussians(self):
        from scipy.stats import norm

        power, level = compose(GaussianMechanism(4.0, 1.0), 16).tail_probabilities([-1.0, 0.0, 2.0, 30.0])
        e = np.array([-1.0, 0.0, 2.0, 30.0])
        for found, truth in ((power, norm.sf(e - 0.5)), (level, norm.sf(e + 0.5))):
            assert (found.lower <= truth * (1 + 1e-12)).all()
            assert (found.upper >= truth * (1 - 1e-12)).all()
            assert (found.width <= 1e-11 * truth).all()

    @pytest.mark.parametrize("count", [1, 2, 30])
    def test_add_up_to_delta(self, count):
        composition, e = compose((MIXTURES[0], ONE), count), np.array([-1.0, 0.2, 1.0])
        power, level = composition.tail_probabilities(e)
        delta = composition.delta(e)
        assert (power.lower - np.exp(e) * level.upper <= delta.upper + 1e-15).all()
        assert (power.upper - np.exp(e) * level.lower >= delta.lower - 1e-15).all()
        ahead, behind = composition.tail_probabilities(-e, direction="backward")
        assert np.allclose(1 - ahead.value, level.value, atol=1e-5)
        assert np.allclose(1 - behind.value, power.value, atol=1e-5)

    def test_of_atoms_leave_out_epsilon_itself(self):
        power, level = compose((np.array([0.75, 0.25]), np.array([0.25, 0.75])), 2).tail_probabilities([0.0, 1.0])
        assert np.allclose(power.value, 0.5625, rtol=1e-12)
        assert np.allclose(level.value, 0.0625, rtol=1e-12)


class TestObject:
    @pytest.mark.slow
    def test_values_and_pickles(self):
        pairs = [GaussianMechanism(1.0, 1.0), MIXTURES, LaplaceMechanism(2.0), RandomizedResponse(3, 1.0)]
        first, again = compose(pairs, [1, 2, 3, 4]), compose(pairs, [1, 2, 3, 4])
        assert first == again
        assert hash(first) == hash(again)
        assert pickle.loads(pickle.dumps(first)) == first
        assert first != compose(pairs, [1, 2, 3, 5])
        assert first.count == 10
        start = "<Composition of 10 releases: 1 x GaussianMechanism(sigma=1.0, sensitivity=1.0), 2 x pair ("
        assert repr(first).startswith(start)
        assert repr(first).endswith("4 x RandomizedResponse(3, 1.0); worst direction>")
        assert repr(pickle.loads(pickle.dumps(first))) == repr(first) == repr(first.reversed.reversed)
        assert first.reversed.reversed == first
        channel = Channel([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]])  # with no worst pair
        assert pickle.loads(pickle.dumps(compose(channel, 2))) == compose(channel, 2)
        curve = compose(GaussianMechanism(1.0, 1.0).delta, 2)
        logs = compose(GaussianMechanism(1.0, 1.0).log_delta, 2)
        assert logs.delta(1.0).upper == pytest.approx(curve.delta(1.0).upper)
        assert pickle.loads(pickle.dumps(curve)).delta(1.0) == curve.delta(1.0)
        with pytest.raises(AttributeError, match="Composition is immutable"):
            first.count = 3

    def test_nested_compositions_are_flat(self):
        inner = compose(GaussianMechanism(1.0, 1.0), 3)
        assert compose([inner, GaussianMechanism(1.0, 1.0)], [2, 4]) == compose(GaussianMechanism(1.0, 1.0), 10)

    def test_directions(self):
        ordered, free = compose((MIXTURES[0], ONE), 30), compose(PoissonSampledGaussian(1.0, 0.25), 30)
        assert ordered.ordered
        assert not free.ordered
        assert ordered.delta(1.0).value == free.delta(1.0, direction="forward").value
        ahead, behind = (free.delta(1.0, direction=way) for way in ("forward", "backward"))
        assert free.delta(1.0).upper == max(ahead.upper, behind.upper)
        assert ahead.value > 1.1 * behind.value

    def test_is_a_pair(self):
        composition = compose((MIXTURES[0], ONE), 30)
        pair = certified_curves(composition, None)
        assert pair.forward(np.array([1.0])).value == composition.delta([1.0]).value
        assert pair.backward(np.array([1.0])).value == composition.delta([1.0], direction="backward").value
        with pytest.raises(DomainError, match="q must be left out with a Composition"):
            certified_curves(composition, ONE)


@pytest.mark.slow
def test_to_dp_accounting():
    pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    composition = compose(PoissonSampledGaussian(2.0, 0.25), 10)
    above, below = (dp_accounting_pld(composition, interval=1e-2, pessimistic=side) for side in (True, False))
    for level in (0.1, 0.5, 1.0):
        truth = composition.delta(level)
        assert below.get_delta_for_epsilon(level) <= truth.upper
        assert truth.lower <= above.get_delta_for_epsilon(level) <= 1.01 * truth.upper
    assert compose(above).delta(0.5, direction="forward").lower >= composition.delta(0.5, direction="forward").lower


REFUSED = {
    "pairs must be a tuple \\(p, q\\) of two distributions, a mechanism": (3, 1),
    "pairs\\[1\\] must be a tuple \\(p, q\\) of two distributions": ([GaussianMechanism(1.0, 1.0), "normal"], 1),
    "sensitivity must be given for the privacy curve; got None": (GaussianMechanism(1.0), 1),
    "sigma must be a single number": (GaussianMechanism([1.0, 2.0], 1.0), 1),
    "counts must be an integer of at least 0": (GaussianMechanism(1.0, 1.0), -1),
    "counts\\[1\\] must be an integer": ([GaussianMechanism(1.0, 1.0)] * 2, [1, 0.5]),
    "counts must add up to at most": ([GaussianMechanism(1.0, 1.0)] * 2, 2**62),
    "q must be a Pmf": ((Pmf([0.0], [1.0]), 3), 1),
    "pairs must be a list if it has several pairs; got a tuple with Gau": ((GaussianMechanism(1.0, 1.0), ONE), 1),
    "pairs must be a tuple .* got <class 'fastpriv.mechanisms.gaussian": (GaussianMechanism, 1),
    "pairs must return an Estimate of the shape of epsilon": (lambda e: e, 5),
    "pairs must return probabilities or their logarithms; got an Estimate in 'nats'": (
        lambda e: Estimate(e, e, e, kind="certified", unit="nats", method="example"), 5
    ),
    "p and q must be a pair with certified bounds; got a heuristic estimate": (
        lambda e: Estimate(0.0 * e, 0.0 * e, 0.0 * e, kind="heuristic", unit="probability", method="example"), 5
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text):
    pairs, counts = REFUSED[text]
    with pytest.raises((DomainError, ShapeError), match=text):
        compose(pairs, counts)


def test_other_arguments_that_are_refused():
    composition = compose(GaussianMechanism(1.0, 1.0))
    with pytest.raises(ShapeError, match="counts must have one entry for each of the 2 pairs; got 1"):
        compose([composition, composition], [1])
    for call, text in (
        (lambda: composition.delta(math.nan), "epsilon must"),
        (lambda: composition.delta(1.0, direction="up"), "direction must be one of forward, backward, worst"),
        (lambda: composition.tail_probabilities(1.0, direction="worst"), "direction must be one of forward, backward"),
        (lambda: composition.epsilon(), "delta or log_delta must be given, and not both; got neither"),
        (lambda: composition.epsilon(0.1, log_delta=-1.0), "delta or log_delta must be given, and not both; got both"),
        (lambda: composition.epsilon(1.5), "delta must be between 0 and 1"),
        (lambda: composition.epsilon(log_delta=0.5), "log_delta must be at most 0"),
        (lambda: PrivacyLossDistribution([1.0], [0.5, 0.5]), "masses must have one entry for each of the 1 losses"),
        (lambda: PrivacyLossDistribution([1.0], [0.5]), "masses with infinite_mass must sum to 1"),
        (lambda: PrivacyLossDistribution([-1.0], [1.0]), "masses must be those of log P/Q under P, so that"),
        (lambda: PrivacyLossDistribution([math.inf], [1.0]), "losses must be finite"),
        (lambda: PrivacyLossDistribution([0.0], [1.0], -0.5), "infinite_mass must be between 0 and 1"),
        (lambda: PoissonSampledGaussian(0.0, 0.5), "sigma must be positive and finite"),
        (lambda: PoissonSampledGaussian(1.0, 1.5), "rate must be between 0 and 1"),
        (lambda: PoissonSampledGaussian(1.0, 0.5, -1.0), "sensitivity must be at least 0 and finite"),
        (lambda: PoissonSampledGaussian(1.0, 0.5, 1.0, 0), "group_size must be an integer of at least 1"),
        (lambda: PoissonSampledGaussian(1.0, 1e-6, 1.0, 100), "group_size must be so small that"),
    ):
        with pytest.raises((DomainError, ShapeError), match=text):
            call()
