"""Integrands of which no sample differs: bounds of order 1 / n that hold, whatever rare set was missed."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from fastpriv import Density, GaussianMixture, hockey_stick_divergence, jensen_shannon, total_variation
from fastpriv.distributions.packed import pack
from fastpriv.divergences import label_information
from fastpriv.sampling.estimand import Stage, interval
from fastpriv.sampling.options import Sampling
from fastpriv.sampling.problem import Integrand, SampleSource, SamplingProblem, Term
from fastpriv.sampling.statistics.tail_index import PointMoments
from sizes import few_or_all

REPLICATES, POINTS, LOOKED_AT = 32, 1024, 16
RARE = (1e-6, 1e-5, 3e-5, 6e-5, 9e-5, 1.2e-4, 1.5e-4, 2e-4, 4e-4, 1e-3)
FALSE_ALARM = 1e-6
PACKED = pack(GaussianMixture.single(np.zeros(2), 1.0))


def problem(sources=1):
    integrand = Integrand((Term("total_variation", np.zeros(1)),), 0.0, 1.0)
    every = tuple(SampleSource.of(PACKED, np.ones(1), 1.0 / sources) for _ in range(sources))
    return SamplingProblem("direct", every, PACKED, PACKED, (), integrand)


def asked(side):
    return Sampling(side=side, max_seconds=math.inf, rng=1, n_jobs=1).request()


def drawn(rng, common, rare, chance, count):
    """Stages and moments of ``count`` runs side by side; values are ``rare`` with this chance and else ``common``."""
    hits = rng.binomial(POINTS, chance, (REPLICATES, count))
    of_all = hits.sum(axis=0)
    seen = rng.hypergeometric(of_all, REPLICATES * POINTS - of_all, REPLICATES * POINTS // LOOKED_AT)
    moments = PointMoments(count)
    moments.count = REPLICATES * POINTS // LOOKED_AT
    share, gap = seen / moments.count, rare - common
    moments.mean = common + gap * share
    moments._second = moments.count * share * (1 - share) * gap**2
    moments._third = moments.count * share * (1 - share) * (1 - 2 * share) * gap**3
    return [Stage(common + gap * hits / POINTS, POINTS, True)], moments


@pytest.mark.few(4)
@pytest.mark.parametrize(("common", "rare"), [(1.0, 0.0), (0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (1.0, 0.9), (0.3, 0.31)])
@pytest.mark.parametrize("side", ["both", "lower", "upper"])
@few_or_all("count", 300, 10_000)
def test_a_rare_set_that_no_sample_hit_is_covered(common, rare, side, count):
    rng = np.random.default_rng(3)
    for chance in RARE:
        truth = common + (rare - common) * chance
        for level in (0.9, 0.95, 0.99, 0.999):
            stages, moments = drawn(rng, common, rare, chance, count)
            _, lower, upper = interval(problem(), stages, level, asked(side), moments)
            missed = int(((lower > truth) | (upper < truth)).sum())
            assert binom.sf(missed - 1, count, 1 - level) > FALSE_ALARM, (chance, level, missed / count)


def test_tiny_values_whose_squares_underflow_are_not_taken_for_equal():
    """The mean of 1e-170 and 3e-170 was bounded as if all values were the same."""
    values = np.tile([1e-170, 3e-170], REPLICATES * POINTS // 2).reshape(-1, 1)
    moments = PointMoments()
    moments.update(values)
    assert moments.variance[0] == 0.0
    means = np.full((REPLICATES, 1), 2e-170) * (1.0 + 0.1 * np.linspace(-1, 1, REPLICATES))[:, None]
    _, lower, upper = interval(problem(), [Stage(means, POINTS, True)], 0.95, asked("both"), moments)
    assert upper < 1e-169
    assert lower < 1.98e-170


def test_halves_of_two_laws_are_covered():
    """Rare sets of both laws, of which half of the points each are drawn."""
    rng, count, half = np.random.default_rng(4), 4000, POINTS // 2
    for chances in ((1e-4, 1e-4), (2e-4, 0.0), (0.0, 3e-4)):
        hits = sum(rng.binomial(half, chance, (REPLICATES, count)) for chance in chances)
        _, lower, _ = interval(problem(2), [Stage(1.0 - hits / POINTS, POINTS, True)], 0.95, asked("both"), None)
        missed = int((lower > 1.0 - np.mean(chances)).sum())
        assert binom.sf(missed - 1, count, 0.05) > FALSE_ALARM, (chances, missed)


def flat(start):
    """The uniform law on [start, start + 1]."""
    return Density(
        lambda x: np.where((x[:, 0] >= start) & (x[:, 0] < start + 1.0), 0.0, -np.inf),
        lambda rng, n: start + rng.random((n, 1)), dimension=1, vectorized=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("quantity", "scale"), [(total_variation, 1.0), (jensen_shannon, math.log(2.0))])
def test_laws_that_share_a_small_set(quantity, scale):
    for overlap in (1e-4, 3e-5):
        p, q = flat(0.0), flat(1.0 - overlap)
        answers = [quantity(p, q, confidence=0.9, max_seconds=math.inf, rng=seed) for seed in range(40)]
        assert {answer.cost["stopped"] for answer in answers} == {"target"}
        truth = scale * (1.0 - overlap)
        missed = sum(not answer.lower <= truth <= answer.upper for answer in answers)
        assert binom.sf(missed - 1, len(answers), 0.1) > FALSE_ALARM, (overlap, missed)


def mixture(centers, seed):
    rng = np.random.default_rng(seed)
    means = np.asarray(centers, float) + 0.3 * rng.standard_normal((3, 4))
    return GaussianMixture(np.full(3, 1 / 3), means, rng.uniform(0.8, 1.3, (3, 4)))


FAR = mixture(np.zeros((3, 1)), 1), mixture(np.full((3, 1), 60.0), 2)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        (lambda **k: total_variation(*FAR, **k), 1.0),
        (lambda **k: jensen_shannon(*FAR, **k), math.log(2.0)),
        (lambda **k: label_information(mixture([[0.0], [60.0], [120.0]], 3), **k), math.log(3.0)),
    ],
    ids=["total variation", "jensen shannon", "label information"],
)
def test_separated_laws_stop_early_with_a_bound_of_order_1_over_n(answer, truth):
    found = answer(rng=1)
    assert found.lower <= truth * (1 + 1e-15)
    assert truth <= found.upper * (1 + 1e-15)
    assert (found.cost["stopped"], found.method.split()[1]) == ("target", "plain")
    assert found.cost["samples"] < 200_000
    assert found.width < 5e-4
    closer = answer(rng=1, rtol=1e-5)
    assert closer.cost["stopped"] == "target"
    assert closer.cost["samples"] < 3_000_000
    whole = answer(rng=1, rtol=0.0, max_samples=300_000)
    assert 0.0 < whole.width < 2e-4  # where every sixteenth point is looked at


def test_what_no_sample_hits_has_a_bound_of_order_1_over_n():
    found = hockey_stick_divergence(mixture(np.zeros((3, 1)), 1), mixture(np.zeros((3, 1)), 2), 60.0, method="direct",
                                    max_samples=10**6, rng=1)
    assert (found.value, found.lower, found.cost["stopped"]) == (0.0, 0.0, "max_samples")
    assert 0.0 < found.upper < 2e-5


def test_points_of_a_net_are_not_taken_for_independent():
    found = total_variation(*FAR, method="direct sobol", max_samples=10**5, rng=1)
    assert found.lower < 0.95
