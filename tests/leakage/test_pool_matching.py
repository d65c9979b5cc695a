"""Reconstructions are matched to the records of a pool whose squared distances have the least sum."""

import itertools
import math

import numpy as np
import pytest

from fastpriv.base.errors import DomainError, ShapeError
from fastpriv.studies.leakage import match_to_pool

RNG = np.random.default_rng(5)


def least_sum(records, pool, threshold):
    """The least sum of capped squares over all assignments to different records."""
    squares = np.minimum(((records[:, None] - pool) ** 2).sum(axis=2), threshold**2)
    ways = itertools.permutations(range(len(pool)), len(records))
    return min(sum(squares[i, d] for i, d in enumerate(way)) for way in ways)


@pytest.mark.parametrize("threshold", [math.inf, 1.0, 0.3, 0.0])
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_assignment_is_the_best_of_all(size, threshold):
    for _ in range(20):
        pool, records = RNG.normal(size=(6, 2)), RNG.normal(size=(size, 2))
        found = match_to_pool(records, pool, threshold=threshold)
        named = found[found >= 0]
        assert np.unique(named).size == named.size
        squares = [min(((x - pool[d]) ** 2).sum(), threshold**2) if d >= 0 else threshold**2
                   for x, d in zip(records, found, strict=True)]
        assert sum(squares) == pytest.approx(least_sum(records, pool, threshold), rel=1e-12, abs=1e-300)


def test_it_is_not_slot_by_slot_and_not_greedy():
    pool = np.array([[0.0], [1.0], [9.0]])
    assert match_to_pool([[9.0], [0.0]], pool).tolist() == [2, 0]
    # both are nearest to the second record; the first one yields, since that costs less
    assert match_to_pool([[0.6], [1.2]], pool).tolist() == [0, 1]


def test_attacks_that_diverged_are_misses():
    pool = RNG.normal(size=(5, 3))
    attacks = np.stack([pool[[1, 3]], pool[[4, 0]]])
    attacks[0, 0, 1], attacks[1, 1, 2] = np.nan, np.inf
    assert match_to_pool(attacks, pool).tolist() == [[-1, 3], [4, -1]]
    assert match_to_pool(np.full((2, 3), np.nan), pool).tolist() == [-1, -1]
    assert match_to_pool([[1e200, 0.0, 0.0]], pool, threshold=1.0).tolist() == [-1]


def test_a_batch_as_large_as_the_pool():
    pool = RNG.normal(size=(7, 2))
    order = RNG.permutation(7)
    assert match_to_pool(pool[order] + 1e-3, pool).tolist() == order.tolist()


def test_errors():
    with pytest.raises(ShapeError, match=r"pool must be a table of at least one record and feature; got shape \(3,\)"):
        match_to_pool([[1.0]], [1.0, 2.0, 3.0])
    with pytest.raises(DomainError, match="reconstructions must be numbers; got"):
        match_to_pool([["a"]], [[1.0]])
    with pytest.raises(ShapeError, match=r"reconstructions must be of shape \(..., S, 2\); got \(1, 1\)"):
        match_to_pool([[1.0]], [[1.0, 2.0]])
    with pytest.raises(DomainError, match="pool must have at least as many records as a batch, 2; got 1"):
        match_to_pool([[1.0], [2.0]], [[1.0]])
    with pytest.raises(DomainError, match="threshold must be at least 0; got -1"):
        match_to_pool([[1.0]], [[1.0]], threshold=-1.0)
