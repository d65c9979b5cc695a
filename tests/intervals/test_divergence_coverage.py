"""Sampled intervals hold the truth as often as they say: many seeds, judged by a binomial region.

A scenario is one call with a small budget. At each level it runs over independent seeds, and fails when the number of
misses is so large that intervals which hold at their level would reach it with probability below ``FALSE_ALARM``
divided by the number of counts in this file: a correct engine fails any of them once in a million fresh runs. The quick
test takes few seeds of each scenario and counts the misses of all scenarios together too. Missing less often than
allowed is no failure, but ``test_intervals_are_of_use`` bounds how wide they may be. Laws named "affine" are products
behind a linear map, so that no reduction to the line takes their place. ``FASTPRIV_COVERAGE_SEEDS`` in the environment
is the number of seeds a level of the slow tests, for long campaigns.
"""

import os
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from fastpriv import hockey_stick_divergence, kl_divergence
from fastpriv.errors import SamplingWarning
from misses import assert_few_misses, seen
from oracles.pairs_nd import table
from properties.known import ask, known, mixtures_of

LEVELS = (0.9, 0.95, 0.99, 0.999)
FALSE_ALARM = 1e-6
#: Seeds a level at most: LONG finds half the time misses that are SEEN times too many at each of the levels.
QUICK, LONG = 1, int(os.environ.get("FASTPRIV_COVERAGE_SEEDS", "200"))
SEEN = (2.4, 3.3, 7.3, 33.0)


@dataclass(frozen=True)
class Scenario:
    """One call; ``samples`` is its whole budget unless a target stops it."""

    name: str
    row: tuple
    samples: int
    keywords: dict = field(default_factory=dict)

    def __call__(self, rng, confidence):
        keywords = {"rtol": 0.0, "max_seconds": np.inf, "max_samples": self.samples, "n_jobs": 1} | self.keywords
        return ask(known(*self.row), rng=rng, confidence=confidence, **keywords)


HOCKEY = "hockey_stick"
SCENARIOS = [
    Scenario("kl plane", ("plane", "kl_PQ"), 2000),
    Scenario("kl full covariance", ("full-plane", "kl_PQ"), 2000),
    Scenario("kl space", ("solid", "kl_QP"), 3000),
    Scenario("kl 16 dimensions", ("product-16-affine", "kl_PQ"), 3000),
    Scenario("kl 16 dimensions, back", ("product-16-affine", "kl_QP"), 2000),
    Scenario("kl of 1e-11", ("tiny-2-affine", "kl_PQ"), 2000),
    Scenario("kl of 1e-10", ("tiny-8-affine", "kl_QP"), 2000),
    Scenario("kl, q much narrower", ("narrow-q-4-affine", "kl_PQ"), 2000),
    Scenario("kl, q much wider", ("narrow-q-4-affine", "kl_QP"), 2000),
    Scenario("kl, few samples", ("narrow-q-4-affine", "kl_PQ"), 200),
    Scenario("kl, very few samples", ("plane", "kl_PQ"), 20),
    Scenario("kl, rare component", ("rare-4-affine", "kl_PQ"), 3000),
    Scenario("kl, rare component in the second law", ("rare-4-affine", "kl_QP"), 3000),
    Scenario("kl, rare component that dominates", ("dominant-3-affine", "kl_PQ"), 3000),
    Scenario("kl, rare component that dominates, few samples", ("dominant-3-affine", "kl_PQ"), 300),
    Scenario("kl, rare component that dominates, random", ("dominant-3-affine", "kl_PQ"), 3000, {"method": "random"}),
    Scenario("kl, 1000 dimensions", ("diagonal-1000", "kl_PQ"), 1000),
    Scenario("entropy", ("product-3-affine", "entropy"), 2000),
    Scenario("entropy, full covariance", ("full-plane", "entropy"), 2000),
    Scenario("entropy, rare component", ("rare-4-affine", "entropy"), 2000),
    Scenario("label information", ("plane", "label_information"), 2000),
    Scenario("label information, shared covariance", ("shared-plane-in-16", "label_information"), 2000),
    Scenario("label information, rare component", ("rare-4-affine", "label_information"), 2000),
    Scenario("jensen-shannon", ("plane", "jensen_shannon"), 2000),
    Scenario("jensen-shannon, 16 dimensions", ("shared-plane-in-16", "jensen_shannon"), 2000),
    Scenario("total variation", ("plane", "total_variation"), 2000),
    Scenario("hockey-stick, ordinary", ("shared-plane-in-16", HOCKEY, 1.0), 2000),
    Scenario("hockey-stick 1e-9, plane", ("plane", HOCKEY, 9.351), 2000),
    Scenario("hockey-stick 1e-9, subsampled", ("subsampled-16", HOCKEY, 0.93993), 2000),
    Scenario("hockey-stick 1e-9, rare component", ("rare-tail-3", HOCKEY, 5.7073), 2000),
    Scenario("hockey-stick 1e-12, mixtures", ("unequal-8", HOCKEY, 13.144), 2000),
    Scenario("hockey-stick 1e-30, plane", ("shared-plane", HOCKEY, 24.01), 2000),
    Scenario("hockey-stick 1e-30, 16 dimensions", ("shared-plane-in-16", HOCKEY, 24.01), 2000),
    Scenario("renyi 1/2", ("plane", "renyi", 0.5), 2000),
    Scenario("renyi 2", ("full-plane", "renyi", 2.0), 2000),
    Scenario("renyi 2 of tiny divergence", ("tiny-8-affine", "renyi", 2.0), 2000),
    Scenario("renyi 3 near divergence", ("heavy-renyi-3-affine", "renyi", 3.0), 2000),
    Scenario("renyi 5 near divergence", ("heavy-renyi-5-affine", "renyi", 5.0), 2000),
    *(
        Scenario(f"kl by {method}", ("product-2-affine", "kl_PQ"), 1500, {"method": method})
        for method in ("direct sobol", "direct antithetic", "direct random", "direct plain", "balanced sobol", "plain")
    ),
    *(
        Scenario(f"hockey-stick by {method}", ("shared-plane", HOCKEY, 1.0), 1500, {"method": method})
        for method in ("direct plain", "direct sobol", "tilted plain", "tilted sobol", "balanced antithetic")
    ),
    *(
        Scenario(f"hockey-stick, few hits, {method}", ("subsampled-16", HOCKEY, 0.0), 400, {"method": method})
        for method in ("direct plain", "direct sobol", "direct random", "balanced sobol")
    ),
    Scenario("hockey-stick, no hits", ("sphere-5", HOCKEY, 2.0), 400, {"method": "direct random"}),
    Scenario("kl to a target", ("plane", "kl_PQ"), 50_000, {"rtol": 0.1}),
    Scenario("kl to a target, narrow", ("narrow-q-4-affine", "kl_PQ"), 50_000, {"rtol": 0.05}),
    Scenario("hockey-stick to a target", ("unequal-4", HOCKEY, 10.128), 50_000, {"rtol": 0.05}),
    Scenario("kl to an absolute target, plain", ("plane", "kl_PQ"), 50_000, {"atol": 0.02, "method": "direct plain"}),
    Scenario("kl from below", ("narrow-q-4-affine", "kl_PQ"), 2000, {"side": "lower"}),
    Scenario("kl from above", ("narrow-q-4-affine", "kl_PQ"), 2000, {"side": "upper"}),
    Scenario("hockey-stick from above", ("plane", HOCKEY, 9.351), 2000, {"side": "upper"}),
    Scenario("hockey-stick from below", ("unequal-8", HOCKEY, 13.144), 2000, {"side": "lower"}),
    Scenario("guaranteed kl", ("plane", "kl_PQ"), 2000, {"interval": "guaranteed"}),
    Scenario("guaranteed kl to a target", ("plane", "kl_PQ"), 10_000, {"interval": "guaranteed", "rtol": 0.3}),
    Scenario("guaranteed hockey-stick", ("plane", HOCKEY, 9.351), 2000, {"interval": "guaranteed"}),
    Scenario("guaranteed upper", ("unequal-8", HOCKEY, 13.144), 2000, {"interval": "guaranteed", "side": "upper"}),
    Scenario("kl, rare component, large nets", ("rare-4-affine", "kl_PQ"), 80_000),
    Scenario("total variation, large nets", ("plane", "total_variation"), 80_000),
    Scenario("entropy, large nets", ("product-3-affine", "entropy"), 80_000),
]
CHECKS = len(LEVELS) * (len(SCENARIOS) + 5)


def check_misses(missed, trials, level, what):
    """Fail where so many misses are next to impossible at the level."""
    chance = binom.sf(missed - 1, trials, 1.0 - level)
    found = f"{what}: {missed} of {trials} intervals at {level} miss (chance {chance:.1e})"
    assert chance >= FALSE_ALARM / CHECKS, found


def missed(answer, row):
    return not (np.all(answer.lower <= row.high) and np.all(row.low <= answer.upper))


def misses(scenario, level):
    """A function of a seed: whether the interval misses."""
    row, place = known(*scenario.row), [s.name for s in SCENARIOS].index(scenario.name)

    def missed_by(k):
        answer = scenario([place, round(1e4 * level), k], level)
        assert answer.kind == "statistical", (scenario.name, answer)
        assert answer.confidence == level
        return missed(answer, row)

    return missed_by


@pytest.fixture(autouse=True)
def _heavy_tails_may_be_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)
        yield


@pytest.mark.few(74)
@pytest.mark.parametrize("row", table(), ids=str)
def test_every_row_of_the_table_is_contained(row):
    """Reduced answers are proved; sampled ones are asked at a level that all rows together may miss once in 10^4."""
    answer = ask(row, rtol=0.05, max_samples=20_000, max_seconds=np.inf, confidence=1 - 1e-7, rng=1)
    assert answer.lower <= row.high, f"{row}: {answer} is above {row.value!r}"
    assert row.low <= answer.upper, f"{row}: {answer} is below {row.value!r}"


@pytest.mark.few(1)
@pytest.mark.parametrize("level", LEVELS)
def test_intervals_hold(level):
    found = {scenario.name: sum(map(misses(scenario, level), range(QUICK))) for scenario in SCENARIOS}
    for name, count in found.items():
        check_misses(count, QUICK, level, name)
    which = {name: count for name, count in found.items() if count}
    check_misses(sum(found.values()), QUICK * len(SCENARIOS), level, f"all together, of {QUICK} each {which}")


def test_what_many_seeds_find():
    found = [seen(200, level, FALSE_ALARM / CHECKS) / (1.0 - level) for level in LEVELS]
    assert np.all(np.abs(np.log(found) - np.log(SEEN)) < 0.1), found


@pytest.mark.parametrize("rate", [0.05, 0.4])
def test_too_many_misses_are_found(rate):
    rng, done = np.random.default_rng(1), []

    def missed_by(seed):
        done.append(seed)
        return rng.random(2) < [0.0, rate]

    with pytest.raises(AssertionError, match="of the first") if rate > 0.1 else nullcontext():
        assert_few_misses(missed_by, range(200), 0.9, FALSE_ALARM / CHECKS, "drawn")
    assert 20 <= len(done) <= 200  # ended early, both


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_intervals_hold_over_many_seeds_of_each_level(scenario):
    for level in LEVELS:
        assert_few_misses(misses(scenario, level), range(LONG), level, FALSE_ALARM / CHECKS, scenario.name)


def both_ways(level, k):
    case = "product-2-affine"
    words = {"rtol": 0.0, "max_samples": 2000, "confidence": level, "rng": [1001, round(1e4 * level), k]}
    answer = kl_divergence(*mixtures_of(case), both=True, **words)
    return [missed(answer[k], known(case, quantity)) for k, quantity in enumerate(("kl_PQ", "kl_QP"))]


def many_epsilons(level, k):
    """Each epsilon of one call holds at the level; epsilons of one law."""
    epsilons = (1.0, 10.128, 13.144)
    words = {"rtol": 0.0, "max_samples": 3000, "confidence": level, "rng": [1002, round(1e4 * level), k]}
    answer = hockey_stick_divergence(*mixtures_of("unequal-4"), epsilons, **words)
    return [missed(answer[k], known("unequal-4", HOCKEY, epsilon)) for k, epsilon in enumerate(epsilons)]


@pytest.mark.parametrize("seeds", [QUICK, pytest.param(LONG, marks=pytest.mark.slow)])
@pytest.mark.parametrize("misses_of", [both_ways, many_epsilons])
def test_each_of_many_answers_holds(misses_of, seeds):
    for level in LEVELS:
        assert_few_misses(partial(misses_of, level), range(seeds), level, FALSE_ALARM / CHECKS, misses_of.__name__)


ODD = [
    ("antithetic", 33), ("antithetic", 1500), ("balanced antithetic", 96), ("balanced antithetic", 80), ("sobol", 96),
    ("random", 33), ("plain", 33),
]


def check_unbiased(method, samples, count):
    row, fixed = known("product-2-affine", "kl_PQ"), {"rtol": 0.0, "max_samples": samples, "max_seconds": np.inf}
    values = [ask(row, method=method, rng=[6, k], **fixed).value for k in range(count)]
    z = (np.mean(values) - row.value) / (np.std(values, ddof=1) / np.sqrt(count))
    assert abs(z) < 5.5, f"mean {np.mean(values)}, truth {row.value}, z = {z:.1f}"


@pytest.mark.parametrize(("method", "samples"), ODD)
def test_values_are_unbiased_for_awkward_budgets(method, samples):
    check_unbiased(method, samples, 80)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "samples"), ODD)
def test_values_are_unbiased_for_awkward_budgets_over_many_seeds(method, samples):
    check_unbiased(method, samples, 1000)


# relative half-width at 0.95 that a budget must buy; the median of a few seeds
USE = [
    (("plane", "kl_PQ"), 20_000, 0.03), (("product-16-affine", "kl_PQ"), 20_000, 0.05),
    (("tiny-8-affine", "kl_PQ"), 20_000, 0.1),
    (("narrow-q-4-affine", "kl_PQ"), 20_000, 0.03), (("plane", "entropy"), 20_000, 0.01),
    (("plane", "label_information"), 20_000, 0.03), (("plane", "jensen_shannon"), 20_000, 0.03),
    (("plane", "total_variation"), 20_000, 0.03), (("sphere-16", HOCKEY, 7.7063), 50_000, 0.1),
    (("sphere-16", HOCKEY, 22.203), 50_000, 0.1), (("unequal-8", HOCKEY, 29.969), 50_000, 0.5),
    (("subsampled-16", HOCKEY, 0.93993), 50_000, 0.1), (("subsampled-16", HOCKEY, 6.4601), 50_000, 0.1),
    (("plane", HOCKEY, 11.64), 50_000, 0.1), (("rare-tail-3", HOCKEY, 12.455), 50_000, 0.1),
    (("shared-plane-in-16", HOCKEY, 24.01), 50_000, 0.1), (("full-plane", "renyi", 2.0), 20_000, 0.1),
    (("heavy-renyi-3-affine", "renyi", 3.0), 50_000, 0.1), (("heavy-renyi-5-affine", "renyi", 5.0), 50_000, 0.1),
]


@pytest.mark.few(4)
@pytest.mark.parametrize(("row", "samples", "limit"), USE, ids=[" ".join(map(str, row)) for row, _, _ in USE])
def test_intervals_are_of_use(row, samples, limit):
    truth = known(*row)
    widths = [
        ask(truth, rtol=0.0, max_samples=samples, max_seconds=np.inf, rng=seed).width / 2 / abs(truth.value)
        for seed in range(5)
    ]
    assert np.median(widths) <= limit, f"{truth}: relative half-widths {np.round(widths, 4)}, wanted {limit}"
