"""The likelihood of one release over all subsets of a pool of records.

Notation: l(A) = constant + sum of linear[i] over the members of A + sum of pairwise[i, j] over its pairs.
"""

# bounds: tested by enclosures/test_subset_likelihoods - rounding of exponents over members and pairs

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import _validate
from ..._values import FloatArray
from ...errors import DomainError, ShapeError
from .combinations import checked_subset
from .kinds import Likelihood

__all__ = ["SubsetLikelihood"]

_ADDED = "below 1e280 in size, or -inf"
# bound: none - entries farther apart are refused
_LIKE = 1e-9  # how far two entries that should be one may be apart, relative to the largest
_ROWS = 256


class SubsetLikelihood(Likelihood):
    """Secrets are subsets of ``size`` out of n records, in lexicographic order of their increasing members.

    The log likelihood of a subset is ``constant``, plus ``linear[i]`` for each member, plus ``pairwise[i, j]`` for each
    pair of members.

    Parameters
    ----------
    linear : array_like, shape (n,)
        Log likelihood that each member adds; -inf for a record that cannot be one.
    pairwise : array_like, shape (n, n)
        What each pair of members adds; symmetric to within 1e-9 of its largest entry, and of two that differ the one
        above the diagonal counts. The diagonal plays no part. -inf for records that exclude each other.
    size : int
        Number of members of a subset, at most n.
    constant : float, optional
        What all subsets share; it moves the evidence and nothing else.
    error : float, optional
        How far these sums are from the log likelihoods that are meant, at most, for any subset; it widens the bounds.

    Attributes
    ----------
    members : int
        The number of members of a subset; ``size`` is the number of subsets.

    Raises
    ------
    DomainError, ShapeError
        For NaN, numbers of 1e280 or more, a matrix that is not symmetric or does not fit, or a size beyond n.

    Notes
    -----
    ``posterior`` of it visits every subset: up to 12 members and 10**13 subsets, some 5 core nanoseconds each.

    **Accuracy** bounds of a posterior hold the rounding of all sums; ``tests/enclosures/test_subset_posterior.py``.

    Source: pairwise models of sets; for means of vectors see ``from_gram``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import SubsetLikelihood
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
        self, linear: ArrayLike, pairwise: ArrayLike, size: int, constant: float = 0.0, error: float = 0.0
    ) -> None:
        alone = _validate.vector("linear", linear, _ADDED, _added)
        pairs = _validate.real("pairwise", pairwise, _ADDED, _added, answer=False)
        if pairs.shape != (alone.size, alone.size):
            raise ShapeError(
                f"pairwise must be a square with one row a record, {alone.size}; got shape {pairs.shape}. "
                "Pass what each pair of records adds."
            )
        self._set(
            linear=alone, pairwise=_symmetric(np.ascontiguousarray(pairs)),
            members=_validate.count("size", size, 1, alone.size),
            constant=_validate.scalar("constant", constant, "a finite number", np.isfinite),
            error=_validate.scalar("error", error, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf)),
        )  # fmt: skip

    @classmethod
    def from_gram(cls, products: ArrayLike, gram: ArrayLike, size: int, *, sigma: float) -> SubsetLikelihood:
        """The mean of ``size`` vectors out of n, released with normal noise, from inner products alone.

        Parameters
        ----------
        products : array_like, shape (n,)
            Inner product of the release with each vector.
        gram : array_like, shape (n, n)
            Inner products of the vectors with each other.
        size : int
            Number of vectors that are averaged.
        sigma : float
            Standard deviation of the noise in every coordinate of the mean.

        Returns
        -------
        SubsetLikelihood
            Up to a factor that all subsets share, with ``error`` the rounding of this step.

        Raises
        ------
        DomainError, ShapeError
            For numbers that are not finite, or shapes that do not fit.

        Notes
        -----
        -|y - mean|^2 / (2 sigma^2) has the parts y.g_i / (S sigma^2) - g_i.g_i / (2 S^2 sigma^2) and
        -g_i.g_j / (S^2 sigma^2).

        **Accuracy** ``error`` counts roundings (BOUNDS.md); ``tests/enclosures/test_subset_likelihoods.py``.

        Examples
        --------
        >>> from fastpriv import SubsetLikelihood, posterior
        >>> likelihood = SubsetLikelihood.from_gram([1.0, 0.0, 0.1], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1, sigma=0.5)
        >>> posterior(likelihood).map_index
        (0,)
        """
        noise = _validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        inner = _validate.vector("products", products)
        square = _validate.real("gram", gram, "finite numbers", np.isfinite, answer=False)
        if square.shape != (inner.size, inner.size):
            raise ShapeError(
                f"gram must be a square with one row a vector, {inner.size}; got shape {square.shape}. "
                "Pass the inner product of each pair of vectors."
            )
        members = _validate.count("size", size, 1, inner.size)
        scale = float(members) * noise * noise
        with np.errstate(over="ignore"):
            one, two = inner / scale, np.diagonal(square) / (2.0 * members * scale)
            pairs = square / -(members * scale)
            rounding = 6.0 * 2.0**-53 * members * (
                np.max(np.abs(one) + np.abs(two)) + 0.5 * (members - 1) * np.max(np.abs(pairs))
            )  # fmt: skip
        return cls(one - two, pairs, members, error=float(rounding) if rounding < np.inf else 0.0)

    @property
    def size(self) -> int:
        """Number of subsets."""
        return math.comb(self.linear.size, self.members)

    def log_likelihood(self, subset: ArrayLike) -> FloatArray:
        """Log likelihood of subsets given by their members.

        Parameters
        ----------
        subset : array_like of int, shape (..., size)
            Different records, in any order.

        Returns
        -------
        ndarray, shape (...)
            The sums, in doubles.

        Raises
        ------
        DomainError, ShapeError
            For members that do not exist or come twice, or another number of them.
        """
        members = checked_subset("subset", subset, self.linear.size)
        if members.shape[-1] != self.members:
            raise ShapeError(f"subset must have {self.members} members; got {members.shape[-1]}. Name all of them.")
        total = np.full(members.shape[:-1], self.constant)
        for place in range(self.members):
            total = total + self.linear[members[..., place]]
            for earlier in range(place):
                total = total + self.pairwise[members[..., earlier], members[..., place]]
        return np.asarray(total)


def _added(x: FloatArray) -> Any:
    return (np.abs(x) < 1e280) | np.isneginf(x)


def _symmetric(pairs: FloatArray) -> FloatArray:
    """The matrix itself, once looked at, some rows at a time."""
    for start in range(0, len(pairs), _ROWS):
        rows, columns = pairs[start : start + _ROWS], pairs[:, start : start + _ROWS].T
        with np.errstate(invalid="ignore"):
            apart = np.where(rows == columns, 0.0, np.abs(rows - columns))
        far = apart > _LIKE * np.max(np.abs(pairs[np.isfinite(pairs)]), initial=0.0) if apart.any() else apart > 0
        if far.any():
            i, j = (int(place) for place in np.argwhere(far)[0])
            raise DomainError(
                f"pairwise must be symmetric; got {float(rows[i, j])!r} at index {(start + i, j)} and "
                f"{float(columns[i, j])!r} across the diagonal. Average it with its transpose."
            )
    return pairs
