"""Posteriors from a function of the secret: looked at in full, and searched, against brute force."""

import math

import numpy as np
import pytest

from fastpriv import IndexLikelihood, posterior
from fastpriv.posteriors.index_functions import checked_bound

QUANTITIES = (
    "log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "vulnerability", "xi", "abp",
)  # fmt: skip


def smooth(seed, n):
    """A random sum of waves over n secrets, and bounds of it over ranges by its slope."""
    rng = np.random.default_rng(seed)
    height = 10.0 ** rng.uniform(-3, 1, 4)
    pace = 2 * np.pi * rng.integers(1, 12, 4) / n
    phase = rng.uniform(0, 6, 4)
    slope = float(np.sum(height * pace))

    def function(d):
        return (height * np.sin(pace * (np.asarray(d, dtype=np.float64)[..., None]) + phase)).sum(axis=-1)

    def bound(start, stop):
        middle = float(function(np.array([(start + stop) // 2]))[0])
        reach = slope * (stop - start) + 1e-12
        return middle - reach, middle + reach

    return function, bound


def enclosed(found, dense):
    for name in QUANTITIES:
        one, other = getattr(found, name), getattr(dense, name)
        assert one.kind == "certified", name
        assert one.lower <= other.upper, (name, one, other)
        assert other.lower <= one.upper, (name, one, other)


def test_all_secrets_are_looked_at_within_the_budget():
    function, _ = smooth(1, 600_000)
    found, dense = posterior(IndexLikelihood(function, 600_000)), posterior(function(np.arange(600_000)))
    for name in QUANTITIES:
        assert getattr(found, name).value == getattr(dense, name).value
    assert found.top.indices.tolist() == dense.top.indices.tolist()
    np.testing.assert_array_equal(found.probabilities(5, 300_000), dense.probabilities(5, 300_000))


def test_bounds_of_a_likelihood_without_any_are_refused():
    with pytest.raises(TypeError, match="there must be a bound"):
        checked_bound(IndexLikelihood(lambda d: -1.0 * d, 10))


def test_a_jitted_function_and_a_prior_by_a_function():
    numba = pytest.importorskip("numba")

    @numba.njit
    def function(d):
        return -0.5 * ((d - 700.5) / 200.0) ** 2

    n = 2000
    weights = 2.0 * np.arange(1, n + 1) / (n * (n + 1))
    found = posterior(IndexLikelihood(function, n), lambda d: 2.0 * (d + 1) / (n * (n + 1)), n_jobs=2)
    dense = posterior(-0.5 * ((np.arange(n) - 700.5) / 200.0) ** 2, weights)
    assert found.kl.value == pytest.approx(dense.kl.value, rel=1e-12)
    assert found.map_index == dense.map_index


@pytest.mark.few(3)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("budget", [2**13, 2**20])
def test_a_search_encloses_the_truth(seed, budget):
    n = 10**6
    function, bound = smooth(seed, n)
    dense = posterior(function(np.arange(n)), top=3)
    found = posterior(IndexLikelihood(function, n, bound, budget=budget, rtol=1e-3), top=3)
    enclosed(found, dense)
    if found.cost["reached"]:
        assert found.log_evidence.width < 1e-2
        assert found.kl.width < 2e-2
    if budget == 2**20:
        assert found.map_index == dense.map_index
        assert found.top.indices.tolist() == dense.top.indices.tolist()


def peak(size, at, width):
    """A normal likelihood, and its bounds, for any number of secrets."""

    def square(index):
        return ((index - at) / width) ** 2

    def function(d):
        return np.array([-0.5 * square(int(x)) for x in d]) if np.asarray(d).dtype == object else \
            -0.5 * ((np.asarray(d) - float(at)) / width) ** 2

    def bound(start, stop):
        far = max(square(start), square(stop - 1))
        near = 0.0 if start <= at < stop else min(square(start), square(stop - 1))
        return -0.5 * far * (1 + 1e-9) - 1e-12, -0.5 * near * (1 - 1e-9) + 1e-12

    return function, bound, size


@pytest.mark.parametrize(("size", "at", "width"), [(10**12, 3 * 10**11, 4e5), (2**200, 2**199 + 12345, 2.0**60)])
def test_a_peak_in_a_huge_domain(size, at, width):
    function, bound, _ = peak(size, at, width)
    found = posterior(IndexLikelihood(function, size, bound, budget=2**16, rtol=1e-2), top=1)
    evidence = math.log(width) + 0.5 * math.log(2 * math.pi) - math.log(size)
    kl = -evidence - 0.5
    assert found.log_evidence.lower - 1e-9 <= evidence <= found.log_evidence.upper + 1e-9
    assert found.log_evidence.width < 0.05
    assert found.kl.lower - 1e-9 <= kl <= found.kl.upper + 1e-9
    assert found.kl.width < 0.05 * kl
    assert found.max_log_ratio.lower <= -evidence + 1e-9 <= found.max_log_ratio.upper + 2e-9
    assert abs(found.map_index - at) < 0.01 * width


def test_an_upper_bound_alone_bounds_what_it_can():
    function, bound, n = peak(10**6, 300_000, 4000.0)
    found = posterior(IndexLikelihood(function, n, lambda a, b: bound(a, b)[1], budget=2**18, rtol=1e-4))
    dense = posterior(function(np.arange(n)))
    enclosed(found, dense)
    assert found.min_log_ratio.lower == -math.inf
    assert found.log_evidence.width < 1e-2
    assert found.map_index == 300_000


def test_a_search_leaves_out_what_is_impossible():
    n = 10**6

    def function(d):
        return np.where((d >= 400_000) & (d < 400_100), 0.0, -np.inf)

    def bound(start, stop):
        inside = start < 400_100 and stop > 400_000
        whole = start >= 400_000 and stop <= 400_100
        return (0.0 if whole else -math.inf), (0.0 if inside else -math.inf)

    found = posterior(IndexLikelihood(function, n, bound, budget=2**19))
    assert found.log_evidence.lower <= math.log(1e-4) <= found.log_evidence.upper
    assert found.entropy.lower <= math.log(100) <= found.entropy.upper
    assert found.entropy.width < 1e-6
    assert found.min_log_ratio.value == -math.inf
    assert found.top.indices.tolist() == list(range(400_000, 400_010))
    assert found.ties == 100


def test_the_same_search_gives_the_same_bits():
    function, bound = smooth(3, 10**6)
    likelihood = IndexLikelihood(function, 10**6, bound, budget=2**15)
    one, two = posterior(likelihood), posterior(likelihood, n_jobs=2)
    assert one.to_dict() == two.to_dict()
    law = one.probabilities(10, 20)
    np.testing.assert_allclose(law, np.exp(function(np.arange(10, 20)) - one.log_evidence.value) / 1e6, rtol=1e-12)
