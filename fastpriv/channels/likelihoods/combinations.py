"""Numbers of subsets: the members of the r-th, and the rank of given ones.

Notation: the subsets of ``size`` out of ``pool`` records 0 ... pool - 1 are written with increasing members and put in
lexicographic order, counted from 0. After a member a there are C(pool - 1 - a, r) ways to choose the r left, and
C(pool - 1 - a, r) - C(pool - v, r) of them go on with a member below v.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ...errors import DomainError, ShapeError

__all__ = ["rank_of_subset", "subset_of_rank"]

_INT64 = 2**63
_POOL = 2**53  # records
_ENTRIES = 2**25  # of all tables of binomials, pool + 1 a member: 10 s
_LONG = 10_000  # bits of a binomial that takes twice as long


def subset_of_rank(rank: ArrayLike, pool: int, size: int) -> NDArray[np.int64]:
    """Members of the subsets with these ranks, in lexicographic order.

    Parameters
    ----------
    rank : array_like of int
        From 0 to C(pool, size) - 1; Python integers of any size.
    pool : int
        Number of records.
    size : int
        Number of members, at most ``pool``.

    Returns
    -------
    ndarray of int64, shape (..., size)
        Increasing members.

    Raises
    ------
    DomainError
        For ranks that no subset has.

    Notes
    -----
    **Accuracy** exact; ``tests/enclosures/test_subset_posterior.py``. Source: B. Buckles and M. Lybanon, Generation of
    a vector from the lexicographical index, ACM Transactions on Mathematical Software (1977).

    Examples
    --------
    >>> from fastpriv import subset_of_rank
    >>> subset_of_rank([0, 965534089], pool=1797, size=3)
    array([[   0,    1,    2],
           [1794, 1795, 1796]])
    """
    records = _validate.count("pool", pool, 1, _POOL)
    members = _validate.count("size", size, 1, records)
    _within_reach(records, members)
    total = math.comb(records, members)
    ranks = _validate.integers(
        "rank", rank, 0, total - 1, constraint=f"an integer from 0 to {_validate.shown(total - 1)}",
        remedy="Count the subsets from 0.",
    )  # fmt: skip
    left = ranks.reshape(-1)
    found = np.empty((left.size, members), dtype=np.int64)
    ways = np.full(left.shape, total, dtype=left.dtype)  # ways to go on after the members so far
    for place in range(members):
        table = _column(records, members - place, left.dtype)
        below = np.searchsorted(table, ways - left)  # pool - v: the fewest records among which so many ways are
        found[..., place] = records - below
        left = left - (ways - table[below])
        ways = _column(records, members - place - 1, left.dtype)[below - 1]
    return found.reshape(*ranks.shape, members)


def rank_of_subset(subset: ArrayLike, pool: int) -> Any:
    """Rank of each subset in the lexicographic order of all subsets of its size.

    Parameters
    ----------
    subset : array_like of int, shape (..., size)
        Different records from 0 to ``pool - 1``, in any order.
    pool : int
        Number of records.

    Returns
    -------
    int or ndarray, shape (...)
        int64, or Python integers where there are 2**63 subsets or more.

    Raises
    ------
    DomainError
        For records that do not exist or come twice.
    ShapeError
        For no members.

    Notes
    -----
    **Accuracy** exact; ``tests/enclosures/test_subset_posterior.py``. Source: as ``subset_of_rank``.

    Examples
    --------
    >>> from fastpriv import rank_of_subset
    >>> rank_of_subset([1795, 1796, 1794], pool=1797)
    965534089
    """
    records = _validate.count("pool", pool, 1, _POOL)
    members = checked_subset("subset", subset, records)
    size = members.shape[-1]
    _within_reach(records, size)
    kind = _kind(math.comb(records, size))
    rank = np.full(members.shape[:-1], math.comb(records, size) - 1, dtype=kind)
    for place in range(size):
        rank = rank - _column(records, size - place, kind)[records - 1 - members[..., place]]
    return int(rank) if np.ndim(rank) == 0 else rank


def checked_subset(name: str, subset: ArrayLike, pool: int) -> NDArray[np.int64]:
    """Members in increasing order, different ones of 0 ... pool - 1."""
    wanted, remedy = f"different records from 0 to {pool - 1}", "Name each member once, by its place in the pool."
    given = _validate.array(name, subset)
    if given.ndim == 0 or given.shape[-1] == 0:
        raise ShapeError(f"{name} must have members along its last axis; got shape {given.shape}. Pass one or more.")
    members = np.sort(_validate.integers(name, given, 0, pool - 1, constraint=wanted, remedy=remedy), axis=-1)
    if (members[..., 1:] == members[..., :-1]).any():
        raise DomainError(f"{name} must be {wanted}; got {_validate.shown(given.tolist())}. {remedy}")
    return members


def _within_reach(pool: int, size: int) -> None:
    """Refuse subsets whose tables of binomial coefficients would take more than some ten seconds."""
    bits = min(size, pool - size) * math.log2(pool)  # of a rank, at most
    if (pool + 1) * size * (1 + int(bits) // _LONG) > _ENTRIES:
        raise DomainError(
            f"pool and size must be small enough for tables of binomial coefficients, with {_ENTRIES} entries in all; "
            f"got {_validate.shown(pool)} records and {_validate.shown(size)} members. Draw subsets with "
            "numpy.random.Generator.choice, which needs no ranks."
        )


def _kind(total: int) -> Any:
    return np.int64 if total < _INT64 else object


def _column(pool: int, size: int, kind: Any) -> NDArray[Any]:
    """C(m, size) for m = 0 ... pool."""
    column = [1 if size == 0 else 0]
    for m in range(1, pool + 1):  # C(m, size) = C(m - 1, size) m / (m - size)
        column.append(column[-1] * m // (m - size) if m > size else int(m == size or size == 0))
    return np.array(column, dtype=kind)
