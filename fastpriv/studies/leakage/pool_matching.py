"""Which record of a pool is each reconstruction of an attack?

The reconstructions of one attack are matched to different records of the pool such that the sum of squared distances is
least: the Hungarian assignment. A distance above the threshold counts as the threshold, and is a miss.

Source: H. Kuhn, The Hungarian method for the assignment problem (1955).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.numerics import FloatArray, IntArray

__all__ = ["match_to_pool"]

_FARTHEST = 1e150  # a distance whose square is a double; what is farther away is no match


def match_to_pool(reconstructions: ArrayLike, pool: ArrayLike, *, threshold: float = math.inf) -> IntArray:
    """Match the reconstructions of each attack to different records of a pool.

    Parameters
    ----------
    reconstructions : array_like, shape (..., S, D)
        S records a attack. One with NaN or infinite numbers, of an attack that diverged, is a miss.
    pool : array_like, shape (N, D)
        Candidate records, N at least S.
    threshold : float
        Largest Euclidean distance of a match; by default there is none.

    Returns
    -------
    ndarray of int, shape (..., S)
        Indices of records of the pool, -1 for a miss.

    Raises
    ------
    DomainError, ShapeError
        For a pool that is not finite, or smaller than a batch; for a negative threshold; for arrays that do not fit.

    Notes
    -----
    **Accuracy** the assignment of least sum, by SciPy; ``tests/leakage/test_pool_matching.py`` tries all assignments.
    Source: the head of this module.

    Examples
    --------
    >>> from fastpriv import leakage
    >>> pool = [[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]
    >>> leakage.match_to_pool([[0.1, 0.1], [0.4, 0.0]], pool)
    array([0, 1])
    >>> leakage.match_to_pool([[0.1, 0.1], [3.0, 0.0]], pool, threshold=1.0)
    array([ 0, -1])
    """
    candidates = validate.real("pool", pool, "finite numbers", np.isfinite)
    if candidates.ndim != 2 or 0 in candidates.shape:
        raise ShapeError(
            f"pool must be a table of at least one record and feature; got shape {candidates.shape}. Pass one row a "
            "record."
        )
    attacks = validate.array("reconstructions", reconstructions)
    if attacks.dtype.kind not in "fiu":
        raise DomainError(
            f"reconstructions must be numbers; got {validate.shown(reconstructions)}. Pass what the attack returned."
        )
    attacks = attacks.astype(np.float64)
    if attacks.ndim < 2 or attacks.shape[-1] != candidates.shape[1] or attacks.shape[-2] == 0:
        raise ShapeError(
            f"reconstructions must be of shape (..., S, {candidates.shape[1]}); got {attacks.shape}. Pass records with "
            "the features of the pool."
        )
    if attacks.shape[-2] > len(candidates):
        raise DomainError(
            f"pool must have at least as many records as a batch, {attacks.shape[-2]}; got {len(candidates)}. Pass "
            "more candidates."
        )
    farthest = validate.scalar("threshold", threshold, "at least 0", lambda x: x >= 0)
    square = min(farthest, _FARTHEST) ** 2
    flat = attacks.reshape(-1, *attacks.shape[-2:])
    matched = np.array([_matched(item, candidates, square) for item in flat], dtype=np.int64)
    return matched.reshape(attacks.shape[:-1])


def _matched(records: FloatArray, pool: FloatArray, largest: float) -> IntArray:
    """The match of one attack."""
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    result = np.full(len(records), -1, dtype=np.int64)
    usable = np.flatnonzero(np.isfinite(records).all(axis=1))
    if not usable.size:
        return result
    squares = cdist(records[usable], pool, "sqeuclidean")
    rows, columns = linear_sum_assignment(np.minimum(squares, largest))
    close = squares[rows, columns] <= largest
    result[usable[rows[close]]] = columns[close]
    return result
