"""Likelihoods of one release over all subsets of a pool of records, and the numbering of these subsets.

Notation: l(A) = constant + sum of linear[i] over the members of A + sum of pairwise[i, j] over its pairs. The subsets
of a given size out of ``pool`` records 0 ... pool - 1 are written with increasing members and put in lexicographic
order, counted from 0. After a member a there are C(pool - 1 - a, r) ways to choose the r left, and
C(pool - 1 - a, r) - C(pool - v, r) of them continue with a member below v.
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding of exponents over members and pairs, to first order

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray
from .likelihoods import Likelihood

_TERM_CONSTRAINT = "below 1e280 in size, or -inf"  # sums over 12 members and 66 pairs then cannot overflow
# bound: none - entries farther apart are refused
_SYMMETRY_RTOL = 1e-9  # largest difference of two mirrored entries, relative to the largest entry
_BLOCK_ROWS = 256  # rows compared with columns at a time
_MAX_POOL = 2**53  # records: their logarithms are taken in doubles
_MAX_TABLE_ENTRIES = 2**25  # of all tables of binomial coefficients, pool + 1 for each member: 10 s
_LONG_INTEGER_BITS = 10_000  # a binomial coefficient of so many bits takes twice as long as a short one


class SubsetLikelihood(Likelihood):
    """Secrets are subsets of ``members`` out of n records, in lexicographic order of increasing members.

    The log likelihood of a subset is ``constant``, plus ``linear[i]`` for each member, plus ``pairwise[i, j]`` for each
    pair of members.

    Parameters
    ----------
    linear : array_like, shape (n,)
        Log likelihood that each member adds; -inf for a record that cannot be one.
    pairwise : array_like, shape (n, n)
        Log likelihood that each pair of members adds; symmetric to within 1e-9 of its largest entry, and of two that
        differ the one above the diagonal counts. The diagonal is not used. -inf for records that exclude each other.
        None where subsets have one member, so that n may be millions.
    members : int
        Number of members of a subset, at most n. ``size`` is the number of subsets.
    constant : float, optional
        Term that all subsets share; it changes the evidence and nothing else.
    error : float, optional
        Largest error of these sums as log likelihoods, for any subset; it widens the bounds.

    Raises
    ------
    DomainError, ShapeError
        For NaN, numbers of 1e280 or more, a matrix that is not symmetric or does not fit, or more than n members.

    Notes
    -----
    ``posterior`` of it visits every subset: up to 12 members and 10**13 subsets, 2 to 5 core nanoseconds each.

    **Accuracy** bounds of a posterior hold the rounding of all sums; ``tests/enclosures/test_subset_posterior.py``.

    Source: pairwise models of sets; for means of vectors see ``BatchGradient``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.channels import SubsetLikelihood
    >>> likelihood = SubsetLikelihood([0.0, -1.0, -2.0], np.ones((3, 3)), 2)
    >>> likelihood.size, likelihood.log_likelihood([[0, 1], [1, 2]])
    (3, array([ 0., -2.]))
    """

    __slots__ = _fields = ("linear", "pairwise", "members", "constant", "error")

    linear: FloatArray
    pairwise: FloatArray
    members: int
    constant: float
    error: float

    def __init__(
        self, linear: ArrayLike, pairwise: ArrayLike | None, members: int, constant: float = 0.0, error: float = 0.0
    ) -> None:
        single = validate.vector("linear", linear, _TERM_CONSTRAINT, _valid_terms)
        count = validate.count("members", members, 1, single.size)
        alone = pairwise is None and count == 1
        pairs = validate.real(
            "pairwise", np.empty((0, 0)) if alone else pairwise, _TERM_CONSTRAINT, _valid_terms, answer=False
        )
        if not alone and pairs.shape != (single.size, single.size):
            raise ShapeError(
                f"pairwise must be a square with one row a record, {single.size}; got shape {pairs.shape}. "
                "Pass what each pair of records adds."
            )
        self._set(
            linear=single, pairwise=_validated_symmetric(np.ascontiguousarray(pairs)), members=count,
            constant=validate.scalar("constant", constant, "a finite number", np.isfinite),
            error=validate.scalar("error", error, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf)),
        )

    @classmethod
    def combined(cls, likelihoods: Sequence[SubsetLikelihood]) -> SubsetLikelihood:
        """The likelihood of several independent releases of the same secret subset: their log likelihoods add.

        Parameters
        ----------
        likelihoods : sequence of SubsetLikelihood
            One a release, of the same pool and number of members.

        Returns
        -------
        SubsetLikelihood
            Sums of all terms; ``error`` adds their errors and the roundings of these sums.

        Raises
        ------
        DomainError, ShapeError
            For something else than subset likelihoods, or none; for other pools or numbers of members.

        Notes
        -----
        **Accuracy** as stated in ``error``; ``tests/enclosures/test_subset_likelihoods.py``.

        Examples
        --------
        >>> from fastpriv.channels import SubsetLikelihood
        >>> one = SubsetLikelihood([0.0, -1.0, -2.0], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], 2)
        >>> SubsetLikelihood.combined([one, one]).log_likelihood([[0, 1], [1, 2]])
        array([ 0., -4.])
        """
        parts = validate.sequence("likelihoods", likelihoods, "SubsetLikelihood")
        if not parts or not all(isinstance(likelihood, SubsetLikelihood) for likelihood in parts):
            raise DomainError(
                f"likelihoods must be SubsetLikelihoods, at least one; got {validate.shown(likelihoods)}. "
                "Pass what column() returns for each release."
            )
        first, roundings = parts[0], (len(parts) - 1.0) * UNIT_ROUNDOFF
        for i, likelihood in enumerate(parts):
            if (likelihood.linear.size, likelihood.members) != (first.linear.size, first.members):
                raise ShapeError(
                    f"likelihoods must be of one pool and number of members, {first.linear.size} and {first.members}; "
                    f"got {likelihood.linear.size} and {likelihood.members} at index {i}. "
                    "Combine releases of the same batch."
                )
        pairs = None
        if not (first.members == 1 and any(likelihood.pairwise.size == 0 for likelihood in parts)):
            pairs = sum((likelihood.pairwise for likelihood in parts[1:]), first.pairwise)
        a, b = (sum(_largest(getattr(likelihood, name)) for likelihood in parts) for name in ("linear", "pairwise"))
        count, constants = first.members, [likelihood.constant for likelihood in parts]
        return cls(
            sum((likelihood.linear for likelihood in parts[1:]), first.linear), pairs, first.members,
            math.fsum(constants),
            1.01 * (math.fsum(likelihood.error for likelihood in parts) + UNIT_ROUNDOFF * abs(math.fsum(constants))
                    + roundings * (count * a + 0.5 * count * (count - 1) * b)),
        )

    @property
    def size(self) -> int:
        """Number of subsets."""
        return math.comb(self.linear.size, self.members)

    @property
    def summation_error(self) -> float:
        """Bound on the error of a log likelihood less ``constant``: ``error`` and the roundings of sums over members.

        The share of the m-th member is a sum of m terms, and the subset one of all shares.
        """
        count, a, b = self.members, _largest(self.linear), _largest(self.pairwise)
        shares = sum((m - 1) * (a + (m - 1) * b) for m in range(1, count + 1))
        sum_of_all = (count - 1) * (count * a + 0.5 * count * (count - 1) * b)
        return self.error + UNIT_ROUNDOFF * (shares + sum_of_all)

    def log_likelihood(self, subset: ArrayLike) -> FloatArray:
        """Log likelihood, shape (...), of subsets given by their different members in any order, (..., members).

        Members that do not exist or repeat raise ``DomainError``, another number of them ``ShapeError``.
        """
        records = validated_subset("subset", subset, self.linear.size)
        if records.shape[-1] != self.members:
            raise ShapeError(f"subset must have {self.members} members; got {records.shape[-1]}. Name all of them.")
        total = np.full(records.shape[:-1], self.constant)
        for i in range(records.shape[-1]):
            total = total + self.linear[records[..., i]]
            for j in range(i):
                total = total + self.pairwise[records[..., j], records[..., i]]
        return np.asarray(total)


def _largest(terms: FloatArray) -> float:
    """The largest size of terms that are finite."""
    return float(np.max(np.abs(terms), where=np.isfinite(terms), initial=0.0))


def _valid_terms(x: FloatArray) -> BoolArray:
    return np.asarray((np.abs(x) < 1e280) | np.isneginf(x))


def _validated_symmetric(pairs: FloatArray) -> FloatArray:
    """The matrix itself, if it is symmetric; compared some rows at a time."""
    for start in range(0, len(pairs), _BLOCK_ROWS):
        rows, columns = pairs[start : start + _BLOCK_ROWS], pairs[:, start : start + _BLOCK_ROWS].T
        with np.errstate(invalid="ignore"):
            difference = np.where(rows == columns, 0.0, np.abs(rows - columns))
        if not difference.any():
            continue
        unequal = difference > _SYMMETRY_RTOL * np.max(np.abs(pairs[np.isfinite(pairs)]), initial=0.0)
        if unequal.any():
            i, j = (int(index) for index in np.argwhere(unequal)[0])
            raise DomainError(
                f"pairwise must be symmetric; got {float(rows[i, j])!r} at index {(start + i, j)} and "
                f"{float(columns[i, j])!r} across the diagonal. Average it with its transpose."
            )
    return pairs


def subset_of_rank(rank: ArrayLike, pool: int, size: int) -> IntArray:
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
    >>> from fastpriv.channels import subset_of_rank
    >>> subset_of_rank([0, 965534089], pool=1797, size=3)
    array([[   0,    1,    2],
           [1794, 1795, 1796]])
    """
    records = validate.count("pool", pool, 1, _MAX_POOL)
    members = validate.count("size", size, 1, records)
    _check_table_size(records, members)
    total = math.comb(records, members)
    ranks = validate.integers(
        "rank", rank, 0, total - 1, constraint=f"an integer from 0 to {validate.shown(total - 1)}",
        remedy="Count the subsets from 0.",
    )
    remaining = ranks.reshape(-1)
    subsets = np.empty((remaining.size, members), dtype=np.int64)
    continuations = np.full(remaining.shape, total, dtype=remaining.dtype)  # subsets with the members found so far
    for i in range(members):
        table = _binomial_column(records, members - i, remaining.dtype)
        below = np.searchsorted(table, continuations - remaining)  # pool - v: fewest records with so many subsets
        subsets[..., i] = records - below
        remaining = remaining - (continuations - table[below])
        continuations = _binomial_column(records, members - i - 1, remaining.dtype)[below - 1]
    return subsets.reshape(*ranks.shape, members)


def rank_of_subset(subset: ArrayLike, pool: int) -> int | NDArray[Any]:
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
    DomainError, ShapeError
        For records that do not exist or repeat; for no members.

    Notes
    -----
    **Accuracy** exact; ``tests/enclosures/test_subset_posterior.py``. Source: as ``subset_of_rank``.

    Examples
    --------
    >>> from fastpriv.channels import rank_of_subset
    >>> rank_of_subset([1795, 1796, 1794], pool=1797)
    965534089
    """
    records = validate.count("pool", pool, 1, _MAX_POOL)
    members = validated_subset("subset", subset, records)
    size = members.shape[-1]
    _check_table_size(records, size)
    total = math.comb(records, size)
    dtype: Any = np.int64 if total < 2**63 else object
    rank = np.full(members.shape[:-1], total - 1, dtype=dtype)
    for i in range(size):
        rank = rank - _binomial_column(records, size - i, dtype)[records - 1 - members[..., i]]
    return int(rank) if np.ndim(rank) == 0 else rank


def validated_subset(name: str, subset: ArrayLike, pool: int) -> IntArray:
    """Members in increasing order, different ones of 0 ... pool - 1, at least one."""
    wanted, remedy = f"different records from 0 to {pool - 1}", "Name each member once, by its index in the pool."
    array = validate.array(name, subset)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise ShapeError(f"{name} must have members along its last axis; got shape {array.shape}. Pass one or more.")
    members = np.sort(validate.integers(name, array, 0, pool - 1, constraint=wanted, remedy=remedy), axis=-1)
    if (members[..., 1:] == members[..., :-1]).any():
        raise DomainError(f"{name} must be {wanted}; got {validate.shown(array.tolist())}. {remedy}")
    return members


def _check_table_size(pool: int, size: int) -> None:
    """Refuse subsets whose tables of binomial coefficients would take more than about ten seconds."""
    bits = min(size, pool - size) * math.log2(pool)  # of a rank, at most
    if (pool + 1) * size * (1 + int(bits) // _LONG_INTEGER_BITS) > _MAX_TABLE_ENTRIES:
        raise DomainError(
            f"pool and size must be small enough for tables of binomial coefficients, with {_MAX_TABLE_ENTRIES} "
            f"entries in all; got {validate.shown(pool)} records and {validate.shown(size)} members. Draw subsets "
            "with numpy.random.Generator.choice, which needs no ranks."
        )


def _binomial_column(pool: int, size: int, dtype: Any) -> NDArray[Any]:
    """C(m, size) for m = 0 ... pool."""
    if size <= 1:
        return np.arange(pool + 1, dtype=dtype) ** size
    column = [1 if size == 0 else 0]
    for m in range(1, pool + 1):  # C(m, size) = C(m - 1, size) m / (m - size)
        column.append(column[-1] * m // (m - size) if m > size else int(m == size or size == 0))
    return np.array(column, dtype=dtype)
