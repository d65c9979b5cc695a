"""Stages are as large as a target needs, tiny budgets are unbiased, tails of user densities are judged rightly."""

import math
import warnings

import numpy as np
import pytest
from numpy.random import SeedSequence

from fastpriv import Density, GaussianMixture, hockey_stick_divergence, jensen_shannon, kl_divergence
from fastpriv.errors import SamplingWarning
from fastpriv.sampling import replicates
from fastpriv.sampling.allocation import split_budget
from fastpriv.sampling.problem import Integrand, Term, distribution_pair
from fastpriv.sampling.statistics.tail_index import LargestValues, tail_verdict
from sizes import few_or_all

LINE = {"dimension": 1, "vectorized": True}
NORMAL = GaussianMixture.single(0.0, 1.0)
LAPLACE = Density(lambda x: -np.abs(x[:, 0]) - math.log(2.0), **LINE)
CAUCHY = Density(
    lambda x: -np.log1p(x[:, 0] ** 2) - math.log(math.pi), lambda rng, n: rng.standard_cauchy((n, 1)), **LINE
)
P = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 1.0]])
Q = GaussianMixture([0.5, 0.5], [[1.0, 0.0], [0.0, 2.0]], [[1.0, 1.0], [2.0, 2.0]])


def sixteen(seed):
    rng = np.random.default_rng(seed)
    return [
        GaussianMixture(rng.dirichlet(np.ones(8)), 0.3 * rng.normal(size=(8, 16)), rng.uniform(0.5, 1.5, (8, 16)))
        for _ in range(2)
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize(("epsilon", "independent"), [(5.0, 263_000), (10.0, 780_000), (25.0, 2_460_000)])
def test_small_deltas_take_few_samples(epsilon, independent):
    """``independent``: draws of the proposal that 1 % at 95 % would need if its variance were known."""
    answer = hockey_stick_divergence(*sixteen(1), epsilon, rtol=1e-2, rng=1, max_seconds=math.inf)
    assert answer.cost["stopped"] == "target"
    assert answer.cost["samples"] <= 3 * independent


def check_unbiased(points, samples, count):
    """Both laws of a balanced run get their half, also where a replicate has hardly any points."""
    truth = jensen_shannon(P, Q, rtol=1e-3, rng=0).value
    fixed = {"rtol": 0.0, "max_samples": samples, "method": points}
    found = [jensen_shannon(P, Q, rng=seed, **fixed).value for seed in range(count)]
    assert abs(np.mean(found) - truth) < 5 * np.std(found) / math.sqrt(count)


POINTS = ["sobol", "antithetic", "random", "plain"]


@pytest.mark.few(3)
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("samples", [8, 11, 40])
def test_the_smallest_budgets_are_unbiased(points, samples):
    check_unbiased(points, samples, 40)


@pytest.mark.slow
@pytest.mark.parametrize("points", POINTS)
@pytest.mark.parametrize("samples", [8, 11, 40])
def test_the_smallest_budgets_are_unbiased_over_many_seeds(points, samples):
    check_unbiased(points, samples, 1000)


def values(law, rng, n):
    x = rng.normal(size=n)
    heavy = rng.standard_cauchy(n)
    return {
        "normal over Laplace": np.abs(x) - 0.5 * x * x,
        "normal over t3": 2 * np.log1p(x * x / 3) - 0.5 * x * x,
        "chi-square": x * x,
        "minus chi-square": -x * x,
        "two piles": np.where(rng.random(n) < 0.02, 5.0 + x, 0.1 * x),
        "Cauchy over normal": 0.5 * heavy**2 - np.log1p(heavy**2),
        "t2 over normal": 0.5 * rng.standard_t(2, n) ** 2,
        "log-normal 3": np.exp(3 * x),
    }[law]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("law", "light"),
    [("normal over Laplace", True), ("normal over t3", True), ("chi-square", True), ("minus chi-square", True),
     ("two piles", True), ("Cauchy over normal", False), ("t2 over normal", False), ("log-normal 3", False)],
)
def test_piles_are_no_tails_and_tails_are_found(law, light):
    rng = np.random.default_rng([3, *law.encode()])
    verdicts = []
    for _ in range(100):
        top = LargestValues(256)
        top.update(values(law, rng, 2000))
        verdicts.append(tail_verdict(top.index()))
    assert verdicts.count("holds") >= 97 if light else verdicts.count("holds") <= 4


def test_a_light_log_ratio_with_a_stationary_point_has_an_upper_end():
    with warnings.catch_warnings():
        warnings.simplefilter("error", SamplingWarning)
        found = kl_divergence(NORMAL, LAPLACE, max_samples=2000, rtol=0.0, rng=1)
    assert found.lower <= -0.5 * math.log(2 * math.pi * math.e) + math.log(2.0) + math.sqrt(2 / math.pi) <= found.upper


@pytest.mark.parametrize("samples", [2000, 40_000, 400_000])
def test_the_tail_of_either_law_is_watched(samples):
    with pytest.warns(SamplingWarning, match="light tail"):
        found = kl_divergence(NORMAL, CAUCHY, both=True, max_samples=samples, rtol=0.0, rng=1)
    assert found.upper[1] == math.inf


@pytest.mark.parametrize("both", [False, True])
def test_an_infinite_divergence_is_an_answer_of_the_guaranteed_interval_too(both):
    def uniform(high):
        inside = -math.log(high)
        return Density(
            lambda x: np.where((x[:, 0] >= 0) & (x[:, 0] <= high), inside, -np.inf),
            lambda rng, n: high * rng.random((n, 1)), **LINE,
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SamplingWarning)  # the way back has no upper end
        found = kl_divergence(uniform(2.0), uniform(1.0), both=both, interval="guaranteed", max_samples=5000, rng=1)
    assert np.ravel(found.value)[0] == np.ravel(found.lower)[0] == math.inf


def test_guaranteed_bounds_stand_rounding_far_out():
    """Log densities of 1e9 are right to 1e-7 at best: the ratio to the proposal may pass 1 by as much."""
    p = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [3e4, 1.0]], [[1.0, 2.0], [2.0, 1.0]])
    q = GaussianMixture([0.5, 0.5], [[1.0, 0.0], [-3e4, 2.0]], [[1.0, 1.0], [2.0, 2.0]])
    for epsilon in (0.0, 1e3, 1e7):
        found = hockey_stick_divergence(p, q, epsilon, interval="guaranteed", max_samples=20_000, rng=1)
        assert found.lower <= found.value <= found.upper


@pytest.mark.slow
@few_or_all("runs", 100, 1000)
@pytest.mark.parametrize("points", ["sobol", "antithetic", "random", "plain"])
@pytest.mark.parametrize("law", ["mixtures", "functions"])
def test_replicates_side_by_side_are_independent_and_like_those_alone(points, law, runs, monkeypatch):
    """The mean of r of them has 1 / r of the variance of one, and one has that of a replicate by itself."""
    p, q = (CAUCHY, NORMAL) if law == "functions" else (P, Q)
    pair = distribution_pair(p, q, SeedSequence(0))
    problem = pair.balanced(Integrand((Term("jensen_shannon", np.zeros(1)),), 0.0, 1.0))
    root, n = SeedSequence(3), 48
    found = []
    for beside in (64, 10**9):
        monkeypatch.setattr(replicates, "SIDE_BY_SIDE", beside)
        work = [replicates.segments(problem, points, root, (k,), 8, n) for k in range(runs)]
        assert {len(pieces) for pieces in work} == ({1} if beside == 64 else {8})
        sums = [np.concatenate([pieces.summed(k).sums for k in range(len(pieces))]) for pieces in work]
        found.append(np.array(sums)[:, :, 0] / n)
    together, alone = found
    assert abs(together.mean() - alone.mean()) < 5 * alone.std() * math.sqrt(2 / alone.size)
    assert abs(math.log(together.var() / alone.var())) < 6 / math.sqrt(runs)
    assert abs(math.log(8 * together.mean(axis=1).var() / together.var())) < 7 / math.sqrt(runs)


@pytest.mark.few(1)
@pytest.mark.parametrize("points", ["sobol", "random"])
def test_targets_are_met_at_the_first_look(points):
    """Nine times in ten by the plan, less where nets gain less than they are taken to."""
    looks = [kl_divergence(P, Q, rtol=1e-2, rng=seed, method=f"direct {points}").cost["stages"] for seed in range(20)]
    assert np.mean(np.array(looks) == 1) >= 0.7


@pytest.mark.parametrize("samples", [70_000, 300_001])
def test_a_large_budget_is_spent_on_few_large_nets(samples):
    """Half as many, twice as large ones than a small budget; small nets of what is left would only add error."""
    request = {"rtol": 0.0, "max_samples": samples, "max_seconds": math.inf, "method": "direct sobol", "rng": 1}
    cost = kl_divergence(P, Q, **request).cost
    assert 16 <= cost["replicates"] < 32
    assert cost["stages"] == 1
    assert 0.75 * samples < cost["samples"] <= samples
    replicates, n = split_budget(float(samples), 2)
    assert 16 <= replicates < 32
    assert n == 2 ** round(math.log2(n))
    assert samples - n < replicates * n <= samples
    assert split_budget(4000.0, 2) == (62, 64)


def test_a_rare_component_that_counts_is_sampled_whatever_the_gain():
    """A millionth of P adds 0.4 % of the divergence: more than the intervals of large nets are wide."""
    weights = [1 - 2.0**-20, 2.0**-20]
    p = GaussianMixture(weights, [[0.0, 0.0, 0.0], [40.0, 1.0, 0.0]], [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])
    q = GaussianMixture([0.5, 0.5], [[0.0, 0.5, 0.0], [0.0, -0.5, 0.5]], [[1.0, 1.0, 0.7], [1.0, 1.5, 1.0]])
    alone = {"rtol": 0.0, "max_samples": 80_000, "max_seconds": math.inf}
    bulk = kl_divergence(GaussianMixture([1.0], p.means[:1], p.sigmas[:1]), q, **alone, rng=0)
    rest = [kl_divergence(p, q, **alone, rng=seed, method="direct sobol").value - bulk.value for seed in range(30)]
    assert min(rest) > 0.5 * 2.0**-20 * 800
