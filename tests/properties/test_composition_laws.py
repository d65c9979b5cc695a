"""Laws of compositions and of their risks: duality, data processing, conjugates, tails, groups, sums of counts."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
    risk,
)
from fastpriv.composition import PrivacyLossDistribution

# Laws hold for the default direction too, whichever is the larger one.
pytestmark = pytest.mark.filterwarnings("ignore:the answer is that of p against q as passed:UserWarning")

LEVELS = np.array([-3.0, -0.7, -0.05, 0.0, 0.05, 0.7, 3.0])
FEW = settings(max_examples=5, deadline=None)
COUNTS = st.integers(1, 40)


@st.composite
def probabilities(draw, outcomes=3, zeros=False):
    """Multiples of 1/64 that sum to 1 exactly."""
    cuts = sorted(draw(st.lists(st.integers(0 if zeros else 1, 64 if zeros else 63), min_size=outcomes - 1,
                                max_size=outcomes - 1, unique=not zeros)))
    return np.diff([0, *cuts, 64]) / 64.0


QUICK = ["mixtures", "atoms", "subsampled", "gaussian", "response"]  # whose tails take milliseconds


@st.composite
def pairs(draw, kinds=(*QUICK, "sigmas", "laplace")):
    """What compose takes, with an order or without one."""
    kind = draw(st.sampled_from(kinds))
    if kind in ("mixtures", "sigmas"):
        w, mean = draw(st.floats(0.1, 0.9)), draw(st.floats(0.1, 1.5))
        sigma = draw(st.floats(1.0, 1.5)) if kind == "sigmas" else 1.0
        return GaussianMixture([w, 1 - w], [0.0, mean], 1.0), GaussianMixture.single(0.0, sigma)
    if kind == "atoms":
        return draw(probabilities()), draw(probabilities())
    if kind == "subsampled":
        return PoissonSampledGaussian(draw(st.floats(0.7, 4.0)), draw(st.floats(0.01, 0.5)))
    if kind == "laplace":
        return LaplaceMechanism(draw(st.floats(1.0, 20.0)))
    if kind == "response":
        return RandomizedResponse(draw(st.integers(2, 4)), draw(st.floats(0.01, 2.0)))
    return GaussianMechanism(draw(st.floats(0.5, 20.0)), 1.0)


def meet(a, b):
    """Whether two brackets have numbers in common, up to the rounding of the test."""
    slack = 1e-15 * (1.0 + np.abs(np.asarray(b.upper)))
    return bool(((a.lower <= b.upper + slack) & (b.lower <= a.upper + slack)).all())


def at_most(a, b):
    """Whether bounds allow a <= b."""
    return bool((np.asarray(a.lower) <= np.asarray(b.upper) + 1e-15).all())


class TestDuality:
    @FEW
    @given(pair=pairs(), count=COUNTS)
    def test_negative_epsilons(self, pair, count):
        """1 - delta(-e) = e^-e (1 - delta'(e)), for brackets and at both signs of e; delta falls and bends upward."""
        composition = compose(pair, count)
        there = composition.delta(LEVELS, direction="forward")
        back = composition.delta(-LEVELS, direction="backward")
        factor = np.exp(LEVELS)
        slack = 1e-15 * (1.0 + factor)
        assert (1.0 - there.upper <= factor * (1.0 - back.lower) + slack).all()
        assert (1.0 - there.lower >= factor * (1.0 - back.upper) - slack).all()
        assert (np.diff(there.value) <= there.width[1:] + there.width[:-1]).all()
        x = np.exp(LEVELS)
        chord = there.upper[:-2] + (there.upper[2:] - there.upper[:-2]) * (x[1:-1] - x[:-2]) / (x[2:] - x[:-2])
        assert (there.lower[1:-1] <= chord + 1e-14).all()

    @FEW
    @given(pair=pairs(), count=COUNTS)
    def test_both_directions(self, pair, count):
        composition = compose(pair, count)
        assert composition.reversed.reversed == composition
        ahead, behind, worst = (composition.delta(LEVELS, direction=d) for d in ("forward", "backward", "worst"))
        ahead_of_reversed = composition.reversed.delta(LEVELS, direction="forward")
        for one, other in zip(ahead_of_reversed.arrays(), behind.arrays(), strict=True):
            assert (one == other).all()
        positive = LEVELS != 0.0  # at 0 both are one number, and the worst their intersection
        assert (worst.upper == np.maximum(ahead.upper, behind.upper))[positive].all()
        assert (worst.lower == np.maximum(ahead.lower, behind.lower))[positive].all()
        assert ((worst.lower <= behind.upper) & (worst.upper >= ahead.lower))[~positive].all()
        if isinstance(pair, tuple):
            assert meet(compose(pair[::-1], count).delta(LEVELS), behind)

    @pytest.mark.parametrize("epsilon", [-0.01, -0.4, -3.088326706405063, -17.548299543301326, -36.0])
    def test_where_delta_is_near_one(self, epsilon):
        """log delta keeps the digits of 1 - delta: a sum of binomial terms to 60 digits."""
        with mp.workdps(60):
            p, level = 1 / (1 + mp.exp(-mpf(0.05))), mpf(epsilon)
            rest = mpf(0)  # 1 - delta = sum of min(P, e^epsilon Q)
            for j in range(901):
                mass = mp.binomial(900, j) * p**j * (1 - p) ** (900 - j)
                rest += min(mass, mp.exp(level - (2 * j - 900) * mpf(0.05)) * mass)
            found = compose(RandomizedResponse(2, 0.05), 900).log_delta(epsilon)
            truth = mp.log1p(-rest)
            assert mpf(found.lower) <= truth <= mpf(found.upper)
            assert found.width <= 1e-10 * abs(truth)


class TestProcessing:
    @FEW
    @given(data=st.data(), count=st.integers(1, 3))
    @pytest.mark.slow
    def test_channels_lower_delta(self, data, count):
        """Merged outcomes, and any channel after the pair, which has infinite losses too."""
        p, q = data.draw(probabilities(4, zeros=True)), data.draw(probabilities(4, zeros=True))
        first = compose((p, q), count)
        merged = compose(([*p[:2], p[2] + p[3]], [*q[:2], q[2] + q[3]]), count)
        rows = np.array([data.draw(probabilities(3, zeros=True)) for _ in range(4)])
        seen = compose((p @ rows, q @ rows), count)
        for direction in ("forward", "backward"):
            top = first.delta(LEVELS, direction=direction)
            assert at_most(merged.delta(LEVELS, direction=direction), top)
            assert at_most(seen.delta(LEVELS, direction=direction), top)
        for power in (risk.bayes_risk(first, None, 0.3), risk.trade_off_curve(first, None, 0.2).beta):
            assert power.lower <= 1.0
        assert risk.bayes_risk(first, None, 0.3).lower <= risk.bayes_risk(merged, None, 0.3).upper
        assert risk.trade_off_curve(first, None, 0.2).beta.lower <= risk.trade_off_curve(seen, None, 0.2).beta.upper

    @FEW
    @given(rate=st.floats(0.01, 0.5), sigma=st.floats(0.8, 4.0), count=COUNTS)
    def test_more_noise_and_fewer_records(self, rate, sigma, count):
        one = compose(PoissonSampledGaussian(sigma, rate), count).delta(LEVELS)
        assert at_most(compose(PoissonSampledGaussian(1.1 * sigma, rate), count).delta(LEVELS), one)
        assert at_most(compose(PoissonSampledGaussian(sigma, 0.9 * rate), count).delta(LEVELS), one)
        assert at_most(one, compose(PoissonSampledGaussian(sigma, rate, group_size=2), count).delta(LEVELS))
        group = risk.privacy_profile(compose(PoissonSampledGaussian(sigma, rate), count), None, 2.0, group=2)
        two = compose(PoissonSampledGaussian(sigma, rate, group_size=2), count).delta(2.0)
        assert two.lower <= group.upper * (1 + 1e-12)


class TestSums:
    @pytest.mark.slow
    @FEW
    @given(first=pairs(), second=pairs(), counts=st.tuples(COUNTS, COUNTS))
    def test_compositions_of_compositions(self, first, second, counts):
        a, b = counts
        flat = compose([first, second], [3 * a, 3 * b])
        nested = compose(compose([first, second], [a, b]), 3)
        halves = compose([compose(first, a), compose([second, first], [3 * b, 2 * a])])
        assert nested == flat
        assert hash(nested) == hash(flat)
        assert nested.count == halves.count == 3 * (a + b)
        assert compose([first, first], [a, b]) == compose(first, a + b)
        assert compose([first, second], [a, 0]).forward_pairs == compose(first, a).forward_pairs
        assert meet(halves.delta(LEVELS[3:]), flat.delta(LEVELS[3:]))

    @FEW
    @given(pair=pairs(), count=COUNTS, order=st.floats(1.1, 20.0))
    def test_renyi_divergences_bound_delta(self, pair, count, order):
        """delta <= e^((a - 1) (D_a - epsilon)) (1 - 1/a)^a / (a - 1), and D of two releases is twice D of one."""
        composition = compose(pair, count)
        divergence = composition.renyi_divergence(order, direction="forward")
        single = compose(pair).renyi_divergence(order, direction="forward")
        assert math.isclose(divergence.upper, count * single.upper, rel_tol=1e-9, abs_tol=1e-12)
        if divergence.upper < 100.0:
            level = 2.0 * divergence.upper + 0.1
            bound = (order - 1) * (divergence.upper - level) + order * math.log1p(-1 / order) - math.log(order - 1)
            assert composition.log_delta(level, direction="forward").lower <= bound + 1e-12 * (1 + abs(bound))


class TestTails:
    @FEW
    @given(pair=pairs(), count=COUNTS)
    def test_delta_is_their_difference(self, pair, count):
        composition = compose(pair, count)
        power, level = composition.tail_probabilities(LEVELS)
        delta, x = composition.delta(LEVELS, direction="forward"), np.exp(LEVELS)
        assert (delta.lower <= power.upper - x * level.lower + 1e-14 * (1 + x)).all()
        assert (delta.upper >= power.lower - x * level.upper - 1e-14 * (1 + x)).all()
        for tail in (power, level):
            assert (tail.lower[1:] <= tail.upper[:-1]).all()
            assert ((tail.lower >= 0.0) & (tail.upper <= 1.0)).all()
        behind = composition.tail_probabilities(-LEVELS, direction="backward")
        assert (power.lower <= 1.0 - behind[1].lower + 1e-15).all()  # P(S > e) + P(-S > -e) <= 1
        assert (level.lower <= 1.0 - behind[0].lower + 1e-15).all()

    @pytest.mark.parametrize("direction", ["forward", "backward"])
    def test_at_zero(self, direction):
        """Gaps of weights reach below epsilon = 0, where the other direction has the bound; tails at 1e-12 are near."""
        composition = compose(PoissonSampledGaussian(1.0, 0.05), 1456)
        at, after = (composition.tail_probabilities(e, direction=direction) for e in (0.0, 1e-12))
        for a, b in zip(at, after, strict=True):
            assert b.lower <= a.upper <= b.upper * (1 + 1e-10)

    @pytest.mark.parametrize("scale", [0.051115087437419666, 0.5, 7.0])
    @pytest.mark.slow
    def test_symmetric_losses(self, scale):
        """P(S > e) = Q(S < -e) where P and Q are mirror images; and a tail of Laplace noise of 60 digits."""
        composition = compose(LaplaceMechanism(scale, 0.6013232291660296), 4)
        power, level = composition.tail_probabilities(0.0)
        assert power.lower + level.lower <= 1.0 <= power.upper + level.upper + 1e-12 + 0.5**4 * math.exp(-2 / scale)
        if scale < 0.1:
            assert mpf(level.lower) <= mpf("6.662199071587049783262984225e-9") <= mpf(level.upper)


class TestRisk:
    @FEW
    @given(pair=pairs(), count=COUNTS, prior=st.floats(0.05, 0.95))
    def test_bayes_risks_and_advantages(self, pair, count, prior):
        composition = compose(pair, count)
        advantage, risk_at_half = risk.advantage(composition, None), risk.bayes_risk(composition, None, 0.5)
        assert advantage.lower <= 1.0 - 2.0 * risk_at_half.lower + 1e-14
        assert advantage.upper >= 1.0 - 2.0 * risk_at_half.upper - 1e-14
        assert meet(advantage, composition.delta(0.0))
        found = risk.bayes_risk(composition, None, prior)
        odds = math.log(prior / (1.0 - prior))  # prior of P: 1 - risk / (1 - prior) and delta of Q against P are dual
        assert found.lower <= min(prior, 1.0 - prior) * (1 + 1e-15)
        if composition.ordered or composition.forward_pairs == composition.backward_pairs:
            truth = composition.delta(-odds, direction="forward")
            assert found.lower <= prior * (1.0 - truth.lower) + 1e-14
            assert found.upper >= prior * (1.0 - truth.upper) - 1e-14

    @FEW
    @given(pair=pairs(QUICK), count=st.integers(8, 40))
    def test_trade_off_curves_are_conjugates(self, pair, count):
        """beta(alpha) >= 1 - delta(e) - e^e alpha, with delta of Q against P; convex, falling, through the tails."""
        composition = compose(pair, count)
        alpha = np.linspace(0.0, 1.0, 5)
        beta = risk.trade_off_curve(composition, None, alpha).beta
        direction = "backward" if composition.ordered else "worst"
        delta = composition.delta(LEVELS, direction=direction)
        lines = 1.0 - delta.upper[:, None] - np.exp(LEVELS)[:, None] * alpha
        assert (beta.upper >= lines - 1e-13).all()
        assert (beta.lower[1:-1] <= 0.5 * (beta.upper[:-2] + beta.upper[2:]) + 1e-13).all()
        assert (beta.lower[1:] <= beta.upper[:-1]).all()
        assert (beta.lower <= 1.0 - alpha + 1e-15).all()
        if composition.ordered or composition.forward_pairs == composition.backward_pairs:
            power, level = composition.tail_probabilities(LEVELS)
            at = risk.trade_off_curve(composition.reversed, None, level.upper).beta  # level under Q, errors under P
            assert (at.lower <= 1.0 - power.lower + 1e-13).all()

    @FEW
    @given(sigma=st.floats(0.5, 4.0), count=COUNTS, alpha=st.floats(0.01, 0.99))
    def test_symmetric_pairs(self, sigma, count, alpha):
        """The curve of a symmetric pair is its own inverse, and that of a group lies below."""
        composition = compose([GaussianMechanism(sigma, 1.0), RandomizedResponse(2, 0.1)], [count, 2])
        beta = risk.trade_off_curve(composition, None, alpha).beta
        again = risk.trade_off_curve(composition, None, [beta.lower, beta.upper]).beta
        assert again.upper[0] >= alpha * (1 - 1e-9) - 1e-14
        assert again.lower[1] <= alpha * (1 + 1e-9) + 1e-14
        assert risk.trade_off_curve(composition, None, alpha, group=2).beta.lower <= beta.upper


@FEW
@given(pair=pairs(), count=COUNTS, level=st.floats(0.01, 8.0))
def test_epsilon_inverts_delta(pair, count, level):
    composition = compose(pair, count)
    delta = composition.log_delta(level)
    if math.isfinite(delta.lower):
        found = composition.epsilon(log_delta=delta)
        assert found.lower <= level <= found.upper


def test_measured_losses_of_both_directions():
    """The losses of Q against P have the masses m e^-l at -l, and delta' of them is dual to delta."""
    losses, masses = np.arange(-6, 10) * 0.25, np.r_[np.full(6, 1.0 / 64), np.full(10, 5.0 / 64)]
    masses[-1] += 1.0 - masses.sum() - 1.0 / 128
    composition = compose(PrivacyLossDistribution(losses, masses, 1.0 / 128), 5)
    there, back = composition.delta(LEVELS, direction="forward"), composition.delta(-LEVELS, direction="backward")
    assert np.allclose(1.0 - there.value, np.exp(LEVELS) * (1.0 - back.value), rtol=1e-12, atol=1e-13)
