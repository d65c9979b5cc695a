"""Posteriors of a default and exceptions: every quantity against brute force and against groups, in many digits."""

import math

import numpy as np
import pytest
from mpmath import exp, inf, mp, mpf

from fastpriv import RandomizedResponse, posterior
from fastpriv.channels import DefaultChannel, DefaultLikelihood
from fastpriv.mechanisms import SubsetSelection, UnaryEncoding
from oracles.grouped_posteriors import DIGITS as MPMATH_DIGITS  # noqa: F401 -- the digits of these tests too
from oracles.grouped_posteriors import of_groups, quantities

DUST = mpf(10) ** -240  # what the oracle itself is off where the truth is 0


def enclosed(found, truth, width=math.inf):
    for name, want in truth.items():
        estimate = getattr(found, name)
        if abs(want) == inf:
            assert estimate.lower == estimate.value == estimate.upper == float(want), name
            continue
        assert estimate.lower - DUST <= want <= estimate.upper + DUST, (name, estimate, mp.nstr(want, 20))
        assert estimate.width <= width * abs(want) + 1e-300, (name, estimate)


def drawn(seed):
    """A likelihood over few secrets, with ties, zeros and scales from 1e-9 to 100."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    indices = rng.permutation(n)[: rng.integers(0, n + 1)]
    scale = 10.0 ** rng.integers(-9, 3)
    values, default = scale * rng.normal(size=indices.size), float(scale * rng.normal())
    if seed % 3 == 0:
        values = np.round(values / scale) * scale
    if seed % 4 == 0:
        values[rng.random(indices.size) < 0.3] = -np.inf
    if seed % 5 == 0:
        default = -np.inf if np.any(values > -np.inf) else 0.0
    return n, default, indices, values


@pytest.mark.parametrize("seed", range(60))
def test_brute_force(seed):
    n, default, indices, values = drawn(seed)
    logs = np.full(n, default)
    logs[indices] = values
    if not np.any(logs > -np.inf):
        logs[:] = default = 0.0
        indices, values = [], []
    found = posterior(DefaultLikelihood(n, default, indices, values))
    enclosed(found, quantities(logs.tolist()), width=1e-11)
    order = [i for i in np.lexsort((np.arange(n), -logs))[:10] if logs[i] > -np.inf]
    assert found.top.indices.tolist() == order
    assert found.map_index == order[0]
    assert found.ties == np.sum(logs == logs.max())
    law = np.exp(logs - logs.max())
    np.testing.assert_allclose(found.probabilities(), law / law.sum(), rtol=1e-12, atol=0)
    np.testing.assert_allclose(found.top.probabilities, found.probabilities()[order], rtol=1e-13)


@pytest.mark.parametrize(("k", "epsilon"), [
    (2, 1.0), (10**12, 3.0), (10**12, 1e-9), (2**200, 1.0), (2**200, 100.0), (2**200, 139.0), (2**200, 200.0),
    (2**200, 1e-9), (2**5000, 1.0), (2**5000, 3466.0), (2**5000, 5000.0),
])
def test_randomised_response_over_any_domain(k, epsilon):
    release = min(k - 1, 5)
    column = RandomizedResponse(k, epsilon).column(release)
    found = posterior(column)
    share = mpf(1) / k
    truth = of_groups([(1, share, mpf(float(column.values[0]))), (k - 1, share, mpf(column.default))])
    enclosed(found, truth, width=2e-11)
    assert (found.map_index, found.ties, found.size) == (release, 1, k)
    assert found.top.indices[:3].tolist() == [release, *[i for i in range(3) if i != release][: min(2, k - 1)]]
    law = found.probabilities(0, 2)
    assert law.sum() == pytest.approx(1.0 if k == 2 else 2 * law[0], rel=1e-12)


def test_the_closed_form_of_randomised_response():
    k, epsilon = 2**200, 1.0
    found = posterior(RandomizedResponse(k, epsilon).column(0))
    with mp.workdps(80):
        truth = exp(mpf(epsilon)) / (k + exp(mpf(epsilon)) - 1)
        assert abs(found.vulnerability.value / truth - 1) < 1e-12
        assert abs(found.max_log_ratio.value - (epsilon - mp.log1p((exp(mpf(epsilon)) - 1) / k))) < 1e-15


def test_unary_encoding_and_subset_selection():
    rng = np.random.default_rng(3)
    bits = rng.random(500) < 0.3
    channel = UnaryEncoding(500, 2.0)
    column = channel.column(bits)
    found = posterior(column)
    ones = int(bits.sum())
    inside = float(np.max(column.values)) if len(column.values) == ones else column.default
    outside = column.default if len(column.values) == ones else float(np.max(column.values))
    share = mpf(1) / 500
    enclosed(found, of_groups([(ones, share, mpf(inside)), (500 - ones, share, mpf(outside))]), width=1e-11)
    assert found.ties == ones
    assert found.map_index == int(np.argmax(bits))
    found = posterior(SubsetSelection(10**9, 1.0, size=3).column([5, 10**8, 10**9 - 1]))
    assert (found.map_index, found.ties) == (5, 3)
    assert found.top.indices.tolist() == [5, 10**8, 10**9 - 1, 0, 1, 2, 3, 4, 6, 7]


def test_a_default_channel():
    channel = DefaultChannel(10**12, [0.5, 0.5], [7], [[0.9, 0.1]])
    found = posterior(channel.column(1))
    assert (found.map_index, found.ties) == (0, 10**12 - 1)
    share = mpf(1) / 10**12
    enclosed(found, of_groups([(1, share, mpf(math.log(0.1))), (10**12 - 1, share, mpf(math.log(0.5)))]))


def test_the_lowest_best_secret_where_the_best_are_defaults():
    found = posterior(DefaultLikelihood(2**200, 0.0, [0, 1, 2, 5, 2**199], [-1.0] * 5))
    assert (found.map_index, found.ties) == (3, 2**200 - 5)
    assert found.top.indices.tolist() == [3, 4, 6, 7, 8, 9, 10, 11, 12, 13]
    found = posterior(DefaultLikelihood(10, 0.0, [0, 4], [0.0, -1.0]), top=12)
    assert (found.map_index, found.ties) == (0, 9)
    assert found.top.indices.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 4]


@pytest.mark.parametrize("k", [200, 10**12, 2**200])
def test_priors_with_few_distinct_values(k):
    special = {3: mpf("0.25"), 7: mpf("0.125"), k - 1: mpf(0)}
    rest = (1 - sum(special.values())) / (k - 3)
    logs = [-math.inf if x == 0 else float(mp.log(x)) for x in special.values()]
    prior = DefaultLikelihood(k, float(mp.log(rest)), list(special), logs)
    likelihood = DefaultLikelihood(k, -2.0, [7, 9, k - 1], [0.0, 1.0, 50.0])
    found = posterior(likelihood, prior)
    truth = of_groups([(1, special[3], mpf(-2)), (1, special[7], mpf(0)), (1, rest, mpf(1)), (k - 4, rest, mpf(-2))])
    enclosed(found, truth, width=1e-11)
    assert found.map_index == 7
    assert found.top.indices.tolist() == [7, 3, 9, 0, 1, 2, 4, 5, 6, 8]
    assert found.probabilities(k - 2, k)[1] == 0.0
    enclosed(posterior(likelihood, log_prior=prior), truth, width=1e-11)


def test_a_prior_that_misses_one_widens_the_bounds():
    prior = DefaultLikelihood(100, math.log(0.01) + 5e-10, [], [])
    found = posterior(DefaultLikelihood(100, -1.0, [3], [0.0]), prior)
    exact = posterior(DefaultLikelihood(100, -1.0, [3], [0.0]))
    for name in ("log_evidence", "kl", "js", "max_log_ratio", "min_log_ratio"):
        wide, narrow = getattr(found, name), getattr(exact, name)
        assert wide.lower <= narrow.value <= wide.upper, name
        least = 1e-12 if name in ("kl", "js") else 1e-10  # these are moved by a part of themselves
        assert least < wide.width < 5e-9, name


def test_a_prior_in_full():
    rng = np.random.default_rng(5)
    prior = rng.dirichlet(np.ones(1000))
    logs = np.full(1000, -1.0)
    logs[[3, 8]] = 0.5, -np.inf
    found, dense = posterior(DefaultLikelihood(1000, -1.0, [3, 8], [0.5, -np.inf]), prior), posterior(logs, prior)
    assert found.kl.value == dense.kl.value
    assert found.map_index == dense.map_index


def test_secrets_that_are_ruled_out_are_not_listed():
    found = posterior(DefaultLikelihood(10**12, -math.inf, [4, 9], [0.0, 0.0]))
    assert found.top.indices.tolist() == [4, 9]
    assert found.entropy.value == pytest.approx(math.log(2), rel=1e-14)
    assert found.min_log_ratio.value == -math.inf
    assert found.xi.value == math.inf
    assert found.abp.value == pytest.approx(math.sqrt(math.log(2)), rel=1e-9)


def test_all_probabilities():
    found = posterior(DefaultLikelihood(300_000, 0.0, [5, 270_000], [1.0, 2.0])).probabilities()
    weights = np.ones(300_000)
    weights[[5, 270_000]] = np.e, np.e**2
    np.testing.assert_allclose(found, weights / weights.sum(), rtol=1e-12)


@pytest.mark.slow
def test_a_million_exceptions():
    logs = np.random.default_rng(0).normal(size=10**6)
    found = posterior(DefaultLikelihood(10**12, 0.0, np.arange(10**6) * 7, logs))
    assert found.map_index == 7 * int(np.argmax(logs))
    with mp.workdps(40):
        growth = math.fsum(np.expm1(logs)) / 10**12
        assert abs(found.log_evidence.value / math.log1p(growth) - 1) < 1e-10
