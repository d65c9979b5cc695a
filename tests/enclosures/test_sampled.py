"""Certified curves of mechanisms on samples, against high-precision arithmetic and all data sets of a few records."""

from __future__ import annotations

import itertools
import math
import pickle
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from fastpriv import GaussianMechanism, LaplaceMechanism, PoissonSampledGaussian, RandomizedResponse, compose
from fastpriv.composition.two_sampled_gaussians import few_release_bounds
from fastpriv.mechanisms import DiscreteLaplace, GeometricMechanism
from fastpriv.pairs import FixedSizeSampled, PoissonSampled, TruncatedPoissonSampled
from fastpriv.pairs.binomials import overflow
from oracles import sampled as oracle

SIGMAS = 0.05, 2.0, 100.0
RATES = 1e-12, 1e-3, 0.125, 0.7, 1.0
DRAWN = [(0.05, 64, 8), (2.0, 64, 8), (2.0, 1000, 1), (2.0, 2, 1), (100.0, 64, 8)]


def holds(found, truth, width, row):
    """Whether logarithms hold, and how far apart they are at most."""
    lower, upper = np.atleast_1d(found.lower), np.atleast_1d(found.upper)
    worst = 0.0
    for low, high, exact in zip(lower, upper, truth, strict=True):
        if exact <= 0:
            assert low == -np.inf, (row, low)
            continue
        log = min(mp.log(exact), mp.mpf(-1e-300)) if high < 0 else mp.log(exact)
        if log > -1e-40:  # of a truth of 50 digits nothing more is known
            assert high > -1e-40
            continue
        assert low <= log <= high, (row, low, high, log)
        worst = max(worst, float(high - low))
    assert worst <= width, (row, worst)
    return worst


def levels(sigma, distance, rate):
    """Epsilons from 0 to where delta is far below 1e-300."""
    mu = distance / sigma
    base = np.array([0.0, 1e-3, 0.3, 1.0, 3.0, 10.0, 30.0]) * mu + 0.5 * mu * mu * np.array([0, 0, 0.5, 1, 1, 1, 1])
    return np.log1p(rate * np.expm1(np.minimum(base, 600.0)))


@pytest.mark.slow
def test_poisson_samples_of_normal_noise():
    worst = (0.0, None)
    for sigma, rate in itertools.product(SIGMAS, RATES):
        epsilon = levels(sigma, 1.0, rate)
        q = mp.mpf(rate)
        mixture, single = [(1 - q, 0), (q, 1)], [(mp.mpf(1), 0)]
        step = compose(PoissonSampled(GaussianMechanism(sigma, 1.0), rate))
        assert step == compose(PoissonSampledGaussian(sigma, rate))
        truth = [oracle.mixture_delta(mixture, single, mp.mpf(sigma), e) for e in epsilon]
        found = step.log_delta(epsilon, direction="forward")
        width = 1e-4 if rate > 1e-9 else 0.2  # a mixture of weights 1 - rate and rate as doubles
        worst = max(worst, (holds(found, truth, width, (sigma, rate)), (sigma, rate)))
        if rate > 1e-9:
            opposite = [(1 - q, 0), (q, -1)]
            epsilon = levels(sigma, 2.0, rate)
            step = compose(PoissonSampled(GaussianMechanism(sigma, 1.0), rate, "replace_one"))
            truth = [oracle.mixture_delta(mixture, opposite, mp.mpf(sigma), e) for e in epsilon]
            worst = max(worst, (holds(step.log_delta(epsilon), truth, 1e-4, (sigma, rate)), (sigma, rate, "replace")))
    print("poisson normal", worst)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "size", "sample"), DRAWN)
def test_fixed_size_of_normal_noise(sigma, size, sample):
    worst = (0.0, None)
    q = mp.mpf(sample) / size
    epsilon = levels(sigma, 2.0, sample / size)
    noise = GaussianMechanism(sigma, 1.0)
    truth = [oracle.mixture_delta([(1 - q, 0), (q, 2)], [(mp.mpf(1), 0)], mp.mpf(sigma), e) for e in epsilon]
    row = sigma, size, sample
    for relation, width in (("replace_one", 1e-9), ("add_or_remove", 1e-4)):
        step = compose(FixedSizeSampled(noise, size, sample, relation=relation))
        found = step.log_delta(epsilon, direction="forward")
        upper = np.asarray(found.upper)
        width = 0.2 if sample / size < 1e-9 and relation == "add_or_remove" else width
        holds(found, truth, 0.2 if relation == "replace_one" else width, (*row, relation))
        wide = max(float(u - mp.log(t)) for u, t in zip(upper, truth, strict=True) if t > 0)
        worst = max(worst, (wide, (*row, relation)))
        assert wide <= width, (row, relation, wide)
    zero = compose(FixedSizeSampled(noise, size, sample, relation="zero_out"))
    sides = [(1 - q, -1), (q, 1)], [(1 - q, -1), (q, 0)]
    forward = [oracle.mixture_delta(*sides, mp.mpf(sigma), e) for e in epsilon]
    backward = [oracle.mixture_delta([(1 - q, 0), (q, 1)], [(mp.mpf(1), 0)], mp.mpf(sigma), e) for e in epsilon]
    holds(zero.log_delta(epsilon, direction="forward"), forward, 0.2, (*row, "zero"))
    holds(zero.log_delta(epsilon, direction="backward"), backward, 0.2, (*row, "zero"))
    print("fixed normal, upper bound", worst)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["add_or_remove", "replace_one", "zero_out", "fixed"])
def test_laplace_noise(kind):
    worst = (0.0, None)
    for loss, rate in itertools.product((0.01, 0.5, 3.0, 40.0), (1e-12, 0.125, 0.75, 1.0)):
        scale = 1.0 / loss
        exact = mp.mpf(1) / mp.mpf(scale)
        top = float(mp.log(1 - mp.mpf(rate) + mp.mpf(rate) * mp.exp((2 if kind == "fixed" else 1) * exact)))
        epsilon = np.array([0.0, 1e-9, 1e-3, 0.4, 0.9, 1.0 - 1e-9, 1.1]) * top
        noise = LaplaceMechanism(scale)
        if kind == "fixed":
            size = 10**9
            sample = max(1, round(rate * size))
            if sample == size:
                continue
            q, step = Fraction(sample, size), FixedSizeSampled(noise, size, sample)
        elif kind == "zero_out":
            size = 10**9
            sample = max(1, round(rate * size))
            q, step = Fraction(sample, size), FixedSizeSampled(noise, size, sample, relation="zero_out")
        else:
            q, step = Fraction(rate), PoissonSampled(noise, rate, kind)
        q = mp.mpf(q.numerator) / q.denominator
        for direction in ("forward", "backward") if kind != "zero_out" else ("forward",):
            truth = [oracle.laplace_poisson(exact, q, e, direction == "forward", kind) for e in epsilon]
            truth = [0 if t < mp.mpf(10) ** -35 else t for t in truth]
            found = compose(step).log_delta(epsilon, direction=direction)
            for low, high, t in zip(found.lower, found.upper, truth, strict=True):
                row = (kind, loss, rate, direction, float(low), float(high), mp.nstr(t, 20))
                assert low <= (mp.log(t) if t else -70), row
                assert t == 0 or mp.log(t) <= high, row
                if t > 1e-20:
                    worst = max(worst, (float(high - low), row[:4]))
    print("laplace", worst)
    assert worst[0] < 1e-3


ALPHAS = [Fraction(1), Fraction(9, 8), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(7, 2), Fraction(5)]


@pytest.mark.parametrize(("size", "sample"), [(3, 1), (3, 2), (4, 2), (4, 3), (5, 2)])
@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one", "zero_out"])
def test_all_data_sets_of_fixed_size(size, sample, relation):
    epsilon = np.log([float(a) for a in ALPHAS])
    base = DiscreteLaplace(2, 1.0 / math.log(2.0))
    exact = oracle.all_data_sets(size, sample, relation, Fraction(1, 2), ALPHAS)
    found = compose(FixedSizeSampled(base, size, sample, relation=relation)).delta(epsilon)
    for low, high, truth in zip(found.lower, found.upper, exact, strict=True):
        assert low <= float(truth) * (1 + 1e-14) + 1e-15, (low, high, truth)
        assert high >= float(truth) * (1 - 1e-14) - 1e-15, (low, high, truth)
        assert high - low < 1e-12, (low, high, truth)


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one", "zero_out"])
def test_all_data_sets_with_replacement(relation):
    epsilon = np.log([float(a) for a in ALPHAS])
    base = DiscreteLaplace(2, 1.0 / math.log(2.0))
    for size, sample in ((2, 2), (3, 2), (2, 3), (3, 3)):
        exact = oracle.all_data_sets(size, sample, relation, Fraction(1, 2), ALPHAS, "replaced")
        found = compose(FixedSizeSampled(base, size, sample, True, relation)).delta(epsilon)
        for low, high, truth in zip(found.lower, found.upper, exact, strict=True):
            assert low <= float(truth) * (1 + 1e-14) + 1e-15, (size, sample, low, high, float(truth))
            assert high >= float(truth) * (1 - 1e-14) - 1e-15, (size, sample, low, high, float(truth))
            if relation == "add_or_remove":
                assert high - low < 1e-12


@pytest.mark.parametrize("relation", ["add_or_remove", "replace_one", "zero_out"])
@pytest.mark.parametrize("cap", [1, 2, 3])
def test_all_data_sets_with_a_cap(relation, cap):
    epsilon = np.log([float(a) for a in ALPHAS])
    base = DiscreteLaplace(2, 1.0 / math.log(2.0))
    for rate in (0.25, 0.75):
        exact = oracle.all_data_sets(4, cap, relation, Fraction(1, 2), ALPHAS, "poisson", Fraction(rate))
        found = compose(TruncatedPoissonSampled(base, 4, rate, cap, relation)).delta(epsilon)
        for low, high, truth in zip(found.lower, found.upper, exact, strict=True):
            assert low <= float(truth) * (1 + 1e-9) + 1e-15, (rate, low, high, float(truth))
            assert high >= float(truth) * (1 - 1e-13) - 1e-15, (rate, low, high, float(truth))


@pytest.mark.parametrize(("size", "rate", "cap"), [
    (40, 0.125, 6), (64, 0.125, 10), (64, 0.125, 40), (2, 0.5, 1), (2, 1e-12, 1), (1000, 0.01, 5), (1000, 0.01, 300),
    (1000, 0.9, 30), (1000, 0.5, 999), (5, 1.0, 2), (300, 1e-100, 3), (1000, 1 - 2.0**-40, 999),
])
def test_overflow(size, rate, cap):
    found = overflow(size, rate, cap)
    tau = oracle.binomial_tail(size - 1, rate, cap) if rate < 1 else mp.mpf(1)
    with mp.workdps(900):
        rest = mp.fsum(math.comb(size - 1, j) * mp.mpf(rate) ** j * (1 - mp.mpf(rate)) ** (size - 1 - j)
                       for j in range(cap))
        tau = 1 - rest
        q2 = oracle.overflow_rate(size, rate, cap)
        assert found.log_tau[0] <= mp.log(tau) <= found.log_tau[1], (found, mp.log(tau))
        if rest > 0:
            assert found.log_rest[0] <= mp.log(rest) <= found.log_rest[1], (found, mp.log(rest))
        assert found.rate[0] <= q2 <= found.rate[1], (found, q2)
        other = cap * (1 - mp.fsum(math.comb(size, j) * mp.mpf(rate) ** j * (1 - mp.mpf(rate)) ** (size - j)
                                   for j in range(cap + 1))) / (size * tau)
        assert abs(other / q2 - 1) < 1e-30  # both forms of the theory
    assert found.log_tau[1] - found.log_tau[0] < 1e-12 * (1 + abs(found.log_tau[0]))
    assert found.rate[1] / found.rate[0] - 1 < 1e-10


def inside(found, truth, digits):
    """A published value of some digits within the bounds."""
    slack = 10.0 ** (math.floor(math.log10(truth)) + 1 - digits)
    assert found.lower - slack <= truth <= found.upper + slack, (found, truth)


@pytest.mark.slow
def test_directions_of_poisson_samples():
    """Adding may be the worse one from two steps on."""
    response = [0.75, 0.25], [0.25, 0.75]
    two = compose(PoissonSampled(response, 0.5), 2)
    level = math.log(1.1)
    assert abs(two.delta(level, direction="forward").value - 43 / 160) < 1e-14
    assert abs(two.delta(level, direction="backward").value - 23 / 80) < 1e-14
    assert two.delta(level).upper >= 23 / 80 - 1e-14
    noise = compose(PoissonSampled(LaplaceMechanism(2.0), 0.25), 2)
    for epsilon, remove, add in ((1 / 16, 0.0388233, 0.0452459), (1 / 128, 0.063915, 0.065301)):
        for direction, truth in (("forward", remove), ("backward", add)):
            found = noise.delta(epsilon, direction=direction)
            inside(found, truth, 6 if epsilon == 1 / 16 else 5)
            assert found.upper / found.lower < 1 + 1e-4
    ten = compose(PoissonSampled(RandomizedResponse(2, math.log(3.0)), 0.5), 10)
    inside(ten.delta(0.125, direction="forward"), 0.57416, 5)
    inside(ten.delta(0.125, direction="backward"), 0.58112, 5)
    mixed = compose([PoissonSampled(GaussianMechanism(0.5, 1.0), 1 / 16), RandomizedResponse(2, math.log(7.0))])
    inside(mixed.delta(1.875, direction="forward"), 0.0599337, 6)
    inside(mixed.delta(1.875, direction="backward"), 0.0879209, 6)


def test_fixed_size_is_not_poisson():
    noise = GaussianMechanism(2.0, 1.0)
    poisson, fixed = compose(PoissonSampled(noise, 0.125)), compose(FixedSizeSampled(noise, 64, 8))
    inside(poisson.delta(1.0), 1.5e-9, 2)
    inside(fixed.delta(1.0), 4.7e-4, 2)
    other = compose(FixedSizeSampled(GaussianMechanism(1.0, 1.0), 100, 1))
    inside(other.delta(1.0), 2.7e-4, 2)


# (sigma, size, sample) of two steps, epsilon, log delta of the symmetric pairs by oracles.sampled.symmetric_two_steps
TWO_STEPS = [
    ((2.0, 64, 8), (2.0, 64, 8), 0.0, "-2.5120685615748115283"),
    ((2.0, 64, 8), (2.0, 64, 8), 1.0, "-6.6795173300535701553"),
    ((2.0, 64, 8), (2.0, 64, 8), 8.0, "-39.935835200274924128"),  # 70 digits
    ((0.5, 10, 1), (0.5, 10, 1), 3.0, "-2.0472801676380330601"),
    ((5.0, 10, 9), (5.0, 10, 9), 1.0, "-4.7413775578479654183"),
    ((5.0, 10000, 1), (5.0, 10000, 1), 1e-4, "-12.827718756877999974"),
    ((1.0, 2, 1), (1.0, 2, 1), 0.25, "-0.70128350837621714304"),
    ((0.001, 100, 3), (0.001, 100, 3), 1.0, "-2.8285243545700845379"),
    ((1000.0, 10, 3), (1000.0, 10, 3), 0.0015, "-11.23494712209631729"),
    ((1.0, 1000, 10), (3.0, 50, 4), 0.5, "-7.1854274947330840452"),
    ((1.0, 10**12, 1), (1.0, 10**12, 1), 0.0, "-27.361936609399066453"),  # 40 digits
]


def replaced(sigma, size, sample):
    return FixedSizeSampled(GaussianMechanism(sigma, 1.0), size, sample, relation="replace_one")


@pytest.mark.parametrize(("first", "second", "epsilon", "truth"), TWO_STEPS)
def test_two_steps_of_replaced_records(first, second, epsilon, truth):
    """The composition of the curves of one step, in both orders of the steps."""
    pairs = [replaced(*item)._bounding_pairs().dominating[0] for item in (first, second)]
    for both in (pairs, pairs[::-1]):
        found = few_release_bounds(both, np.array([epsilon]))
        with mp.workdps(30):
            assert found.lower[0] <= mp.mpf(truth) <= found.upper[0]
        assert found.upper[0] - found.lower[0] <= 5e-13 * (1.0 - found.upper[0])


def test_answers_of_two_steps_of_replaced_records():
    """That composition from above, in both directions alike, and one data set each from below."""
    steps = compose(replaced(2.0, 64, 8), 2)
    for direction in ("forward", "backward"):
        found = steps.log_delta(1.0, direction=direction)
        assert "integral of the curve of one release" in found.method
        assert 0.0 <= found.upper + 6.6795173300535701 <= 1e-12
        assert abs(found.lower - math.log(1.20559e-3)) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "epsilon", "truth"), TWO_STEPS[1::3])
def test_truth_of_two_steps_of_replaced_records(first, second, epsilon, truth):
    with mp.workdps(30):
        pairs = [(mp.mpf(sample) / size, 2 / mp.mpf(sigma)) for sigma, size, sample in (first, second)]
        assert abs(mp.log(oracle.symmetric_two_steps(*pairs, epsilon)) - mp.mpf(truth)) <= 1e-18


def test_two_steps_far_away():
    """log delta falls far below doubles, rates and ratios beyond the range of the integral are left to others."""
    pair = replaced(2.0, 64, 8)._bounding_pairs().dominating[0].repeated(2)
    found = few_release_bounds([pair], np.array([40.0, 300.0]))
    single = pair.log_delta(np.array([40.0, 300.0]))
    assert (found.lower >= single.upper).all()  # two steps tell more than one
    assert (found.upper - found.lower <= 1e-12 * abs(found.upper)).all()
    assert found.upper[1] < -700.0
    assert few_release_bounds([pair], np.array([301.0])) is None
    for other in (replaced(1e-4, 64, 8), replaced(1e4, 64, 8)):
        assert other._bounding_pairs().dominating[0].sampled_gaussian is None
    assert FixedSizeSampled(LaplaceMechanism(1.0), 9, 2, relation="replace_one")._bounding_pairs().dominating[
        0].sampled_gaussian is None
    poisson = compose(PoissonSampled(GaussianMechanism(2.0, 1.0), 0.125)).forward_pairs.dominating
    assert few_release_bounds([*poisson, pair.repeated(1)], np.zeros(1)) is None
    other = few_release_bounds([poisson[0].repeated(2)], np.array([40.0, 300.0]))
    assert (other.lower <= found.upper).all()  # the removal of a record, with the same curve of one step
    assert (other.upper - other.lower <= 1e-12 * abs(other.upper)).all()
    many = few_release_bounds([replaced(5.0, 10000, 1)._bounding_pairs().dominating[0].repeated(2)],
                              np.linspace(0.0, 300.0, 17))
    assert (many.upper - many.lower <= 1e-12 * abs(many.upper)).all()


@pytest.mark.parametrize(("relation", "distance"), [("replace_one", 2.0), ("zero_out", 1.0)])
def test_all_records_drawn(relation, distance):
    """Then a record is shifted by one distance, and any number of steps is exact."""
    for kind, count in ((GaussianMechanism, 3), (LaplaceMechanism, 1)):
        found = compose(FixedSizeSampled(kind(2.0, 1.0), 9, 9, relation=relation), count).delta([0.1, 0.4])
        truth = compose(kind(2.0, distance), count).delta([0.1, 0.4])
        assert (found.lower <= truth.upper).all()
        assert (truth.lower <= found.upper).all()
        assert (found.upper - found.lower <= 1e-12 * found.upper).all()


def laplace_shifts(size, sample, step):
    weights = [mp.mpf(math.comb(sample, j)) * (size - 1) ** (sample - j) / mp.mpf(size) ** sample
               for j in range(sample + 1)]
    result = {}
    for j, weight in enumerate(weights):
        result[j * step] = result.get(j * step, 0) + weight
    return result


@pytest.mark.parametrize(("loss", "size", "sample"), [(0.5, 4, 3), (0.125, 100, 10), (2.0, 2, 2), (1.0, 50, 1)])
def test_laplace_noise_with_replacement(loss, size, sample):
    """Concrete data sets, means j (x - y) against j (x' - y) of j draws, lie below the upper bound."""
    epsilon = np.array([0.0, 0.4])
    noise = LaplaceMechanism(1.0 / loss)
    for relation, other in (("add_or_remove", None), ("replace_one", -1), ("zero_out", 0)):
        release = compose(FixedSizeSampled(noise, size, sample, True, relation))
        for direction in ("forward", "backward"):
            found = release.delta(epsilon, direction=direction)
            for level, low, high in zip(epsilon, found.lower, found.upper, strict=True):
                alpha, truths = mp.exp(mp.mpf(float(level))), []
                for x, y in ((2, 0),) if other is None else ((1 - y, other - y) for y in (-1, 0, 1)):
                    sides = [laplace_shifts(size, sample, step * mp.mpf(loss)) for step in (x, y)]
                    truths.append(oracle.laplace_mixture_delta(*sides[:: 1 if direction == "forward" else -1], alpha))
                assert low * (1 - 1e-14) <= max(truths) <= high * (1 + 1e-14), (relation, direction, level)


def test_laplace_noise_with_replacement_one_draw():
    """One draw with replacement is one without."""
    noise = LaplaceMechanism(2.0)
    for relation in ("add_or_remove", "replace_one"):
        steps = (FixedSizeSampled(noise, 10, 1, flag, relation) for flag in (True, False))
        again, once = (compose(step).delta([0.0, 0.25]) for step in steps)
        assert np.allclose(again.upper, once.upper, rtol=1e-12)


@pytest.mark.slow
def test_two_steps_of_laplace_noise_with_replacement():
    """Masses of cells of the line, a function of the release, tell less: their composition lies below."""
    size, sample, loss = 4, 3, 0.5
    steps = compose(FixedSizeSampled(LaplaceMechanism(1.0 / loss), size, sample, True), 2)
    edges = np.concatenate([[-np.inf], np.linspace(-6.0, 12.0, 400), [np.inf]])
    cells = [sum(float(w) * np.diff(np.where(edges < m, 0.5 * np.exp(np.minimum(edges - m, 0.0)),
                                             1.0 - 0.5 * np.exp(np.minimum(m - edges, 0.0))))
                 for m, w in side.items()) for side in (
                     {float(m): w for m, w in laplace_shifts(size, sample, 2 * loss).items()}, {0.0: 1.0})]
    for direction in ("forward", "backward"):
        p, q = cells if direction == "forward" else cells[::-1]
        found = steps.delta(0.3, direction=direction)
        truth = np.maximum(np.outer(p, p) - math.exp(0.3) * np.outer(q, q), 0.0).sum()
        assert found.lower <= truth * (1 + 1e-3)
        assert found.upper >= truth


def test_worst_pair_of_one_step_is_not_that_of_two():
    base = DiscreteLaplace(2, 1.0 / math.log(2.0))
    found = compose(FixedSizeSampled(base, 5, 2, relation="replace_one"), 2).delta(math.log(2.0))
    assert found.upper >= 0.09444
    assert found.lower >= 0.0900 - 1e-14
    assert abs(found.upper - 0.11) < 1e-12  # of the symmetric pair


@pytest.mark.slow
def test_truncated_samples():
    noise = GaussianMechanism(2.0, 1.0)
    one = compose(TruncatedPoissonSampled(noise, 64, 0.125, 10))
    for epsilon, truth in ((0.5, 5.77e-4), (2.0, 7.08e-7)):
        assert abs(one.delta(epsilon, direction="forward").upper / truth - 1) < 2e-3
    two = compose(TruncatedPoissonSampled(noise, 64, 0.125, 12), 2)
    assert abs(two.delta(0.75, direction="forward").upper / 1.584e-4 - 1) < 1e-3
    exact = compose(TruncatedPoissonSampled(noise, 40, 0.125, 6)).delta([0.25, 1.0], direction="forward")
    for k, (least, most) in enumerate(((2.08342605697704885e-4, 2.57236592707505154e-3),
                                       (5.30015915066110310e-10, 6.06452749383162655e-5))):
        assert most <= exact.upper[k] <= most * (1 + 1e-10)
        assert least * (1 - 1e-6) <= exact.lower[k] <= most


def test_steps_with_a_cap_that_hardly_matters():
    """Many steps: no less than without a cap, and hardly more where overflow is rare."""
    noise = GaussianMechanism(1.0, 1.0)
    plain = compose(PoissonSampled(noise, 0.01), 1000).delta([1.0, 2.0], direction="forward")
    capped = compose(TruncatedPoissonSampled(noise, 1000, 0.01, 60), 1000).delta([1.0, 2.0], direction="forward")
    assert (capped.upper >= plain.lower).all()
    assert (capped.upper <= plain.upper * (1 + 1e-6)).all(), (capped.upper, plain.upper)


@pytest.mark.slow
def test_a_sample_of_all_records():
    """Also at an infinite epsilon, where the curve of the sample would multiply it by 0."""
    sample, base = (compose(item, 2) for item in (PoissonSampled(LaplaceMechanism(3.0), 1.0), LaplaceMechanism(3.0)))
    levels = [0.0, 0.1, 0.3, 1.0, 1e300, np.inf]
    for direction in ("forward", "backward"):
        found, truth = (item.log_delta(levels, direction=direction) for item in (sample, base))
        assert ((found.lower <= truth.upper) & (truth.lower <= found.upper)).all()
    found, truth = (item.epsilon(0.03, direction="forward") for item in (sample, base))
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper <= truth.upper + 1e-8


def test_several_releases_of_one_sample():
    """Normal noise adds up in squares, and discrete releases multiply."""
    both = PoissonSampled([GaussianMechanism(3.0, 1.0), GaussianMechanism(4.0, 1.0)], 0.25)
    one = PoissonSampled(GaussianMechanism(2.4, 1.0), 0.25)
    assert abs(compose(both, 3).delta(0.5).value / compose(one, 3).delta(0.5).value - 1) < 1e-9
    response = [0.75, 0.25], [0.25, 0.75]
    product = np.outer(*[np.array(response[0])] * 2).ravel(), np.outer(*[np.array(response[1])] * 2).ravel()
    found = compose(PoissonSampled([response, response], 0.5), 3).delta([0.1, 0.4])
    truth = compose(PoissonSampled(product, 0.5), 3).delta([0.1, 0.4])
    assert np.allclose(found.value, truth.value, rtol=1e-12)
    again = compose(PoissonSampled(compose(response, 2), 0.5), 3).delta([0.1, 0.4])
    assert np.allclose(again.value, truth.value, rtol=1e-12)
    mixed = compose([LaplaceMechanism(2.0), GaussianMechanism(2.0, 1.0)])
    found = compose(PoissonSampled(mixed, 0.25)).delta(0.1, direction="forward")
    base = mixed.delta(math.log1p(math.expm1(0.1) / 0.25))
    assert found.lower <= 0.25 * base.upper * (1 + 1e-12)
    assert found.upper >= 0.25 * base.lower * (1 - 1e-12)


@pytest.mark.parametrize("step", [
    PoissonSampled(GaussianMechanism(1.0, 1.0), 0.1), PoissonSampled(LaplaceMechanism(1.0), 0.1, "replace_one"),
    FixedSizeSampled(GaussianMechanism(1.0, 1.0), 10, 2, relation="replace_one"),
    FixedSizeSampled(GeometricMechanism(2, 0.5), 10, 2, relation="zero_out"),
    FixedSizeSampled(GaussianMechanism(1.0, 1.0), 10, 2, True),
    TruncatedPoissonSampled(GaussianMechanism(1.0, 1.0), 10, 0.2, 3),
    PoissonSampled([GaussianMechanism(1.0, 1.0), GaussianMechanism(2.0, 1.0)], 0.1),
    PoissonSampled(([0.5, 0.5], [0.25, 0.75]), 0.1),
])
def test_values(step):
    again = pickle.loads(pickle.dumps(step))
    assert again == step
    assert hash(again) == hash(step)
    assert compose(again) == compose(step)
    assert type(step).__name__ in repr(step)
    one = compose(step).log_delta([0.0, 0.3, 1.0])
    assert (one.lower <= one.upper).all()
    assert (one.upper[1:] <= one.upper[:-1]).all()
