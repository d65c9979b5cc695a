"""The protocol of pairs: what follows from two members alone, and what all kinds have in common."""

import math
from dataclasses import dataclass
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from mpmath import mp, mpf

from fastpriv import (
    GaussianMechanism,
    GaussianMixture,
    LaplaceMechanism,
    PoissonSampledGaussian,
    RandomizedResponse,
    compose,
)
from fastpriv.composition import Composition, PrivacyLossDistribution, RandomAllocation
from fastpriv.mechanisms import GeometricMechanism
from fastpriv.pairs import Poisson, PoissonSampled, Selected
from fastpriv.pairs.log_bounds import LogBounds
from fastpriv.pairs.mixture_pairs import MixturePair
from fastpriv.pairs.protocol import BoundingPairs, DominatingPair
from fastpriv.pairs.sampled_curves import PairBase, SampledCurve

LEVELS = np.array([0.0, 0.3, 2.0])
KINDS = {
    "gaussian": GaussianMechanism(1.0, 1.0), "sampled": PoissonSampledGaussian(1.0, 0.1),
    "two sigmas": (GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 1.5]), GaussianMixture.single(0.0, 1.0)),
    "laplace": LaplaceMechanism(2.0), "outcomes": ([0.5, 0.3, 0.2], [0.25, 0.25, 0.5]),
    "allocation": RandomAllocation(1.0, 10), "few bins": RandomAllocation(1.0, 2),
    "losses": PrivacyLossDistribution([1.0, -1.0], [0.7310585786300049, 0.2689414213699951]),
    "curve": GaussianMechanism(1.0, 1.0).delta,
}


@dataclass(frozen=True, slots=True, eq=False)
class OnlyCurve(DominatingPair):
    """A kind of pair with nothing but its curve, which both orders have."""

    _fields = ("sigma", "count")

    sigma: float
    count: int

    def curve(self, epsilon):
        return GaussianMechanism(self.sigma, 1.0).delta(epsilon)

    def reversed(self):
        return self


def test_a_new_kind_is_a_curve_and_its_reverse():
    pairs = BoundingPairs((OnlyCurve(2.0, 3),))
    found = Composition(pairs, pairs.reversed(), 3, False).log_delta(LEVELS)
    truth = GaussianMechanism(2.0, math.sqrt(3.0)).log_delta(LEVELS)
    assert (found.lower <= truth.upper).all()
    assert (truth.lower <= found.upper).all()
    assert (found.width <= 1e-3).all()
    assert pairs.dominating[0].repeated(1) == OnlyCurve(2.0, 1)


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", KINDS)
def test_members_of_every_kind(kind):
    composition = compose(KINDS[kind])
    pair = composition.forward_pairs.dominating[0]
    assert pair.reversed().reversed() == pair
    assert hash(pair.repeated(5).repeated(1)) == hash(pair)
    bounds = pair.log_delta(LEVELS)
    assert (bounds.lower <= bounds.upper).all()
    loss = pair.privacy_loss(0.01, 1e-12, True)
    assert abs(loss.masses.sum() + loss.infinity_mass - 1.0) < 1e-9
    least, most = pair.renyi_divergence(2.0)
    assert 0.0 <= least <= most
    assert pair.infinite_mass()[0] <= pair.infinite_mass()[1] <= 1e-9


@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_bounds_hold_for_vectors_divided_by_sums_that_round_to_1(distance):
    """0.9 + 0.1 and 0.3 + 0.7 round to 1 but are not 1: near the largest loss this moves delta by many bounds."""
    p, q = [0.9, 0.1], [0.3, 0.7]
    epsilon = math.log(3.0) - distance
    bounds = compose((p, q)).delta(epsilon, direction="forward")
    for divided in (False, True):
        masses = [[Fraction(x) / (sum(map(Fraction, side)) if divided else 1) for x in side] for side in (p, q)]
        with mp.workdps(50):
            first, second = (mpf(side[0].numerator) / side[0].denominator for side in masses)
            truth = first - mp.exp(mpf(epsilon)) * second  # the other outcome has a negative loss
        assert bounds.lower <= truth <= bounds.upper


@pytest.mark.parametrize("error", [0.0, 1e-3])
def test_each_end_of_a_curve_on_samples_comes_from_the_same_end_of_its_pair(error):
    """Brackets of pairs are mostly narrow, so that a wrong end would hardly be seen; this pair has a wide one."""
    pair = SimpleNamespace(
        mixtures=(), p_relative_error=error, q_relative_error=error,
        log_delta=lambda epsilon: LogBounds.of_bounds(-3.0 - epsilon, -1.0 - epsilon, {}, ""),
    )
    base = PairBase(pair)
    lower, upper = base(np.array([1.0]), np.array([2.0]))
    assert -5.0 - 6.0 * error <= lower <= -5.0 - 2.9 * error
    assert -2.0 + 2.9 * error <= upper <= -2.0 + 6.0 * error
    assert base.upper(np.array([1.0])) == upper
    lower, upper = SampledCurve(((-1.0, -0.5),), (base,), (0.25, 0.5))(np.array([1.0]))
    assert lower <= -4.0 - math.log(4.0 * math.e - 3.0) + 1e-15 - 2.9 * error
    assert upper >= -1.5 - math.log(2.0 * math.e - 1.0) - 1e-15 + 2.9 * error


def _geometric(epsilon, weights):
    """Geometric noise, clamped to -1, 0, 1, with weights; around 0 and 1 it is a randomised response."""
    far = mp.exp(-mpf(epsilon))
    rows = [[1 / (1 + far), far * (1 - far) / (1 + far), far**2 / (1 + far)],
            [far / (1 + far), (1 - far) / (1 + far), far / (1 + far)]]
    return [sum(w * row[i] for w, row in zip(weights, (*rows, rows[0][::-1]), strict=True)) for i in range(3)]


def _selected(runs, p):
    """The better of two outcomes of these probabilities, the other one, none."""
    first = mp.exp(-runs * p[0])
    return 1 - first, first * -mp.expm1(-runs * p[1]), mp.exp(-mpf(runs))


UNEQUAL = (0.75, 0.25), (2.0**-7, 1 - 2.0**-7)
LOST = [
    item for e in (800.0, 20000.0) for item in (
        (RandomizedResponse(2, e), _geometric(e, (0, 1, 0)), _geometric(e, (0, 0, 1))),
        (PoissonSampled(GeometricMechanism(2, e), 1.0), _geometric(e, (0, 0, 1)), _geometric(e, (0, 1, 0))),
        (PoissonSampled(GeometricMechanism(2, e), 0.25), _geometric(e, (0, 0.75, 0.25)), _geometric(e, (0, 1, 0))),
        (PoissonSampled(GeometricMechanism(2, e), 0.25, "replace_one"), _geometric(e, (0, 0.75, 0.25)),
         _geometric(e, (0.25, 0.75, 0))),
    )
] + [
    *((Selected(sides, Poisson(18000.0), order=[1.0, 0.0]), *(_selected(18000, side) for side in sides))
      for sides in (UNEQUAL, UNEQUAL[::-1])),
]


@pytest.mark.parametrize(("steps", "p", "q"), LOST)
def test_probabilities_below_all_doubles_hold_in_both_orders(steps, p, q):
    """Losses of 708 and more: what no double holds was kept in one order alone, or taken for an infinite loss."""
    found = compose(steps)
    for direction, (a, b) in {"forward": (p, q), "backward": (q, p)}.items():
        for level in (0.5, 100.0, 750.0, 795.0, 10000.0, 20001.0):
            truth = sum(max(x - mp.exp(level) * y, 0) for x, y in zip(a, b, strict=True))
            bounds = found.log_delta(level, direction=direction)
            assert bounds.lower <= (mp.log(truth) if truth else -mp.inf) <= bounds.upper, (level, direction)
        largest = max(mp.log(x / y) for x, y in zip(a, b, strict=True))
        exact = found.epsilon(0.0, direction=direction)
        assert exact.lower <= max(largest, 0) <= exact.upper, direction


@pytest.mark.parametrize(("weights", "means", "sigmas"), [
    ([0.75, 0.25], [0.0, 1.0], [1.0, 1.5]), ([0.75, 0.25], [-1.0, 1.0], 1.0), ([0.75, 0.25], [0.0, 0.0], 1.0),
])
def test_what_looks_like_a_sampled_gaussian_mechanism_is_none(weights, means, sigmas):
    """Its kernel takes one sigma, one mean of the other side, and one that differs."""
    base = GaussianMixture.single(0.0, 1.0)
    sampled = MixturePair(GaussianMixture([0.75, 0.25], [0.0, 1.0], 1.0), base, 1)
    assert sampled.sampled_gaussian is not None
    assert MixturePair(GaussianMixture(weights, means, sigmas), base, 1).sampled_gaussian is None


def test_means_that_are_no_doubles_lie_between_those_of_two_pairs():
    pairs = compose(PoissonSampledGaussian(1.0, 0.1, 0.1, 3)).forward_pairs
    (larger,), ((smaller,),) = pairs.dominating, pairs.dominated
    for count, high, low in zip(range(4), larger.p.means.tolist(), smaller.p.means.tolist(), strict=True):
        assert Fraction(low) <= count * Fraction(0.1) <= Fraction(high) <= Fraction(low) * (1 + Fraction(1, 2**50))
