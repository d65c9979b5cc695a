"""The posterior over all subsets of a pool holds the truth of mpmath, whatever the parts and the number of threads."""

import itertools
import math

import numpy as np
import pytest

from fastpriv import posterior
from fastpriv.channels import SubsetLikelihood, rank_of_subset, subset_of_rank
from fastpriv.posteriors import subsets
from kernels.variants import each_variant, printed
from oracles.subsets import belief

NUMBERS = ("log_evidence", "entropy", "kl", "js", "max_log_ratio", "min_log_ratio", "xi", "vulnerability")
NONE = -math.inf


def drawn(pool, scale, seed=0):
    rng = np.random.default_rng((pool, seed))
    vectors = rng.normal(size=(pool, 3))
    return scale * rng.normal(size=pool), -scale * (vectors @ vectors.T + (vectors @ vectors.T).T) / 2


def held(found, truth):
    for name in NUMBERS:
        number = getattr(found, name)
        assert number.kind == "certified"
        assert number.lower <= truth[name] <= number.upper, f"{name}: {number!r} without {truth[name]}"
    for i, true in enumerate(truth["inclusion"]):
        assert found.inclusion.lower[i] <= true <= found.inclusion.upper[i], f"inclusion of {i}"


def width(found, name):
    number = getattr(found, name)
    return np.max(number.width) / max(1.0, np.max(np.abs(number.value)))


@pytest.mark.few(8)
@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-8, 1e-3, 0.1, 1.0, 30.0, 1e3])
@pytest.mark.parametrize(("pool", "size"), [(7, 1), (9, 2), (10, 3), (9, 5), (13, 12)])
def test_every_number_holds_the_truth(pool, size, scale):
    linear, pairwise = drawn(pool, scale)
    found, truth = posterior(SubsetLikelihood(linear, pairwise, size)), belief(linear, pairwise, size)
    held(found, truth)
    assert found.size == math.comb(pool, size)
    best = max(range(found.size), key=lambda i: truth["law"][i])
    if scale >= 1e-3:
        assert found.map_index == tuple(subset_of_rank(best, pool, size))
    np.testing.assert_allclose(found.probabilities(), np.array(truth["law"], dtype=float), rtol=1e-9, atol=1e-300)
    assert found.inclusion.value.sum() == pytest.approx(size, rel=1e-13)


def test_what_cannot_be():
    linear, pairwise = drawn(8, 1.0)
    linear[3] = NONE
    pairwise[1, 2] = pairwise[2, 1] = NONE
    found, truth = posterior(SubsetLikelihood(linear, pairwise, 3)), belief(linear, pairwise, 3)
    held(found, truth)
    assert found.min_log_ratio.value == NONE
    assert found.xi.value == math.inf
    assert found.inclusion.value[3] == 0.0
    assert found.probabilities()[rank_of_subset([1, 2, 4], 8)] == 0.0


def test_equal_records_share_the_first_place():
    found = posterior(SubsetLikelihood(np.zeros(8), np.full((8, 8), 0.25), 3), top=4)
    assert found.ties == found.size == 56
    assert found.map_index == (0, 1, 2)
    assert found.top.indices.tolist() == [[0, 1, 2], [0, 1, 3], [0, 1, 4], [0, 1, 5]]
    assert found.kl.upper < 1e-25
    assert found.entropy.value == pytest.approx(math.log(56), rel=1e-14)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
def test_bounds_are_narrow(scale):
    found = posterior(SubsetLikelihood(*drawn(40, scale), 3))
    assert max(width(found, name) for name in (*NUMBERS, "inclusion")) < 1e-12 * max(1.0, scale)


def test_one_member_is_a_softmax():
    rng = np.random.default_rng(5)
    logs = 20 * rng.normal(size=1000)
    found = posterior(SubsetLikelihood(logs, np.zeros((1000, 1000)), 1))
    law = np.exp(logs - logs.max())
    law /= law.sum()
    np.testing.assert_allclose(found.inclusion.value, law, rtol=1e-12)
    assert float(found.entropy) == pytest.approx(-np.sum(law * np.log(law)), rel=1e-12)
    assert found.map_index == (int(np.argmax(logs)),)


def test_one_subset_alone_is_known_before():
    found = posterior(SubsetLikelihood(*drawn(6, 10.0), 6))
    for name in ("entropy", "kl", "js", "max_log_ratio", "min_log_ratio"):
        number = getattr(found, name)
        assert number.lower <= 0.0 <= number.upper, name
        assert number.value == pytest.approx(0.0, abs=1e-13)
    assert found.vulnerability.upper == 1.0
    assert (found.map_index, found.ties) == ((0, 1, 2, 3, 4, 5), 1)


def test_a_few_thousand_subsets_beside_numpy():
    linear, pairwise = drawn(60, 0.7)
    likelihood = SubsetLikelihood(linear, pairwise, 3)
    found = posterior(likelihood, top=5)
    logs = likelihood.log_likelihood(list(itertools.combinations(range(60), 3)))
    law = np.exp(logs - logs.max())
    law /= law.sum()
    assert float(found.entropy) == pytest.approx(-np.sum(law * np.log(law)), rel=1e-12)
    order = np.argsort(-law, kind="stable")[:5]
    assert [rank_of_subset(one, 60) for one in found.top.indices] == order.tolist()
    np.testing.assert_allclose(found.top.probabilities, law[order], rtol=1e-12)
    np.testing.assert_allclose(found.probabilities(100, 2000), law[100:2000], rtol=1e-12)


@pytest.mark.few(2)
@pytest.mark.parametrize(("pool", "size"), [(40, 3), (25, 5), (20, 2), (300, 1), (16, 8)])
def test_the_same_bits_for_any_number_of_threads(monkeypatch, pool, size):
    likelihood = SubsetLikelihood(*drawn(pool, 1.0), size)
    whole = posterior(likelihood)
    monkeypatch.setattr(subsets, "_RANGE_SIZE", 100)
    monkeypatch.setattr(subsets, "_SERIAL_LIMIT", 0)
    cut = [posterior(likelihood, n_jobs=jobs) for jobs in (1, 2, 3)]
    first = cut[0].to_dict()
    assert all(one.to_dict() == first for one in cut)
    for name in NUMBERS:
        assert getattr(cut[0], name).value == pytest.approx(getattr(whole, name).value, rel=1e-13)
    assert cut[0].map_index == whole.map_index
    np.testing.assert_array_equal(cut[0].top.indices, whole.top.indices)
    np.testing.assert_allclose(cut[0].inclusion.value, whole.inclusion.value, rtol=1e-12)


@pytest.mark.parametrize("size", [1, 10, 100, 10**9])
@pytest.mark.parametrize(("pool", "members"), [(12, 4), (9, 1), (9, 2), (8, 8), (11, 7)])
def test_parts_hold_every_subset_once_in_order(pool, members, size):
    walked = []
    for part in subsets._ranges(pool, members, size):
        assert part.rank == len(walked)
        left = members - len(part.prefix)
        walked += [
            (*part.prefix, *rest) for rest in itertools.combinations(range(part.start, pool), left)
            if rest[0] < part.stop
        ]
    assert walked == list(itertools.combinations(range(pool), members))


@pytest.mark.slow
@each_variant
def test_every_instruction_set_holds_the_truth(variant):
    code = """
from enclosures.test_subset_posterior import drawn, held
from fastpriv import posterior
from fastpriv.channels import SubsetLikelihood
from oracles.subsets import belief
for pool, size in ((9, 3), (12, 1), (8, 5)):
    held(posterior(SubsetLikelihood(*drawn(pool, 2.0), size)), belief(*drawn(pool, 2.0), size))
"""
    printed(code, variant)


@pytest.mark.parametrize(("pool", "size"), [(1, 1), (7, 1), (7, 3), (9, 9), (10, 5)])
def test_ranks_and_subsets_belong_together(pool, size):
    every = np.array(list(itertools.combinations(range(pool), size)))
    np.testing.assert_array_equal(subset_of_rank(np.arange(len(every)), pool, size), every)
    np.testing.assert_array_equal(rank_of_subset(every[:, ::-1], pool), np.arange(len(every)))


def test_ranks_beyond_64_bits():
    total = math.comb(1797, 12)
    assert total > 2**63
    ranks = [0, 1, total // 3, total - 2, total - 1]
    members = subset_of_rank(ranks, 1797, 12)
    assert members[-1].tolist() == list(range(1785, 1797))
    assert rank_of_subset(members, 1797).tolist() == ranks
    assert subset_of_rank(total - 1, 1797, 12).tolist() == list(range(1785, 1797))


def blocked(likelihood):
    """log sum of e^l, largest l and inclusion in NumPy: one row of last members for each pair before it."""
    linear, pairwise, pool = likelihood.linear, likelihood.pairwise, likelihood.linear.size
    top = NONE
    for i in range(pool - 2):
        base = linear + pairwise[i]
        block = (base[i + 1 :, None] + base[None, i + 1 :]) + pairwise[i + 1 :, i + 1 :] + linear[i]
        top = max(top, block[np.triu_indices(pool - i - 1, 1)].max())
    total, mass = 0.0, np.zeros(pool)
    for i in range(pool - 2):
        base = linear + pairwise[i]
        block = np.exp((base[i + 1 :, None] + base[None, i + 1 :]) + pairwise[i + 1 :, i + 1 :] + (linear[i] - top))
        block = np.triu(block, 1)
        total += block.sum()
        mass[i] += block.sum()
        mass[i + 1 :] += block.sum(axis=0) + block.sum(axis=1)
    return top + math.log(total), top, mass / total


@pytest.mark.slow
def test_all_965534090_subsets_beside_numpy():
    linear, pairwise = drawn(1797, 0.5)
    likelihood = SubsetLikelihood(linear, pairwise, 3)
    found = posterior(likelihood, n_jobs=-1)
    log_sum, top, mass = blocked(likelihood)
    assert found.size == 965534090
    assert float(found.log_evidence) == pytest.approx(log_sum - math.log(found.size), rel=1e-12)
    assert found.vulnerability.value == pytest.approx(math.exp(top - log_sum), rel=1e-10)
    np.testing.assert_allclose(found.inclusion.value, mass, rtol=1e-10)
