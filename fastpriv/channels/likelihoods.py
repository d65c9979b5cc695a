"""Likelihoods of one release over the secrets: what ``posterior`` takes.

Notation: l_d = log likelihood of the release under secret d, for d = 0, ..., size - 1; -inf where it is impossible. A
likelihood may leave out a factor that all secrets share: it moves the evidence and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from .._values import FloatArray, Value, lasting
from ..errors import DomainError, ShapeError
from .base import Exceptions, Factors
from .combinations import checked_subset

__all__ = [
    "DefaultLikelihood", "DenseLikelihood", "IndexLikelihood", "Likelihood", "ProductLikelihood", "SubsetLikelihood",
    "as_likelihood",
]  # fmt: skip

_ADDED = "below 1e280 in size, or -inf"
_LIKE = 1e-9  # how far two entries that should be one may be apart, relative to the largest
_ROWS = 256


class Likelihood(Value):
    """Log likelihoods of one release under every secret: the base class; immutable, and told apart by type.

    Attributes
    ----------
    size : int
        Number of secrets, as a Python integer: 2**200 is fine.

    Examples
    --------
    >>> from fastpriv import DefaultLikelihood, Likelihood
    >>> isinstance(DefaultLikelihood(10**12, -3.0, [7], [0.0]), Likelihood)
    True
    """

    __slots__ = ()

    @property
    def size(self) -> int:
        """Number of secrets."""
        raise NotImplementedError


class DenseLikelihood(Likelihood):
    """One number a secret, in memory, in a file, or made block by block.

    Parameters
    ----------
    values : array_like, path-like, (path, column), or callable
        A vector of numbers (float16, float32, float64 or integers, ``numpy.memmap`` too), which is not copied; a
        ``.npy`` file; a column of a Parquet file; a function without arguments that returns a fresh iterator of
        arrays; or an iterator, which can be read once only.
    log : bool, optional
        Whether they are natural logarithms of likelihoods (the default) or likelihoods.

    Examples
    --------
    >>> from fastpriv import DenseLikelihood, posterior
    >>> posterior(DenseLikelihood([0.25, 0.75], log=False)).map_index
    1
    """

    __slots__ = ("log", "values")
    _fields = ("values", "log")

    values: Any
    log: bool

    def __init__(self, values: Any, *, log: bool = True) -> None:
        self._set_plainly(values=values, log=_validate.flag("log", log))

    def _set_plainly(self, **fields: Any) -> None:
        """Without making the caller's arrays read-only."""
        for name, field in fields.items():
            object.__setattr__(self, name, field)

    @property
    def size(self) -> int:
        """Number of secrets; reads the head of a file, and raises where only reading all would tell."""
        from .sources import source_of

        return source_of("likelihood", self.values).known_length()

    def __reduce__(self) -> Any:
        return _dense, (self.values, self.log)


class DefaultLikelihood(Likelihood):
    """One log likelihood for all secrets but those that are listed.

    Parameters
    ----------
    size : int
        Number of secrets.
    default : float
        Log likelihood of the secrets that are not listed; -inf makes them impossible.
    indices : array_like of int, shape (k,)
        The exceptions: different secrets, in any order.
    values : array_like, shape (k,)
        Their log likelihoods.

    Examples
    --------
    >>> from fastpriv import DefaultLikelihood
    >>> DefaultLikelihood(10**12, -3.0, [7], [0.0]).size
    1000000000000
    """

    __slots__ = ("_size", "default", "indices", "values")
    _fields = ("_size", "default", "indices", "values")

    _size: int
    default: float
    indices: NDArray[Any]
    values: FloatArray

    def __init__(self, size: int, default: float, indices: ArrayLike, values: ArrayLike) -> None:
        count = _validate.count("size", size)
        plain = _validate.scalar("default", default, "a log likelihood below infinity", lambda x: x < np.inf)
        places, logs = _exceptions(count, indices, values)
        self._set(_size=count, default=plain, indices=places, values=logs)

    @property
    def size(self) -> int:
        """Number of secrets."""
        return self._size


class ProductLikelihood(Likelihood):
    """Independent parts: a secret is a tuple with one entry a factor, and log likelihoods add.

    Parameters
    ----------
    factors : sequence of Likelihood, array_like, Exceptions or Factors
        One likelihood a factor; the first changes slowest in the numbering of secrets. Arrays hold logarithms.
    powers : sequence of int, optional
        How often each factor occurs, one behind the other; once by default.

    Examples
    --------
    >>> from fastpriv import ProductLikelihood
    >>> ProductLikelihood([[-1.0, -0.5]], powers=[200]).size == 2**200
    True
    """

    __slots__ = ("factors", "powers")
    _fields = ("factors", "powers")

    factors: tuple[Likelihood, ...]
    powers: tuple[int, ...]

    def __init__(self, factors: Sequence[Any], powers: Sequence[int] | None = None) -> None:
        parts = tuple(as_likelihood(factor) for factor in factors)
        if not parts:
            raise ShapeError("factors must have at least one entry; got none. Pass one likelihood for each part.")
        often = (1,) * len(parts) if powers is None else tuple(_validate.count("powers", power) for power in powers)
        if len(often) != len(parts):
            raise ShapeError(f"powers must have one entry a factor, {len(parts)}; got {len(often)}. Pass one for each.")
        self._set(factors=parts, powers=often)

    @property
    def size(self) -> int:
        """Number of secrets."""
        return math.prod(part.size**power for part, power in zip(self.factors, self.powers, strict=True))


class IndexLikelihood(Likelihood):
    """A function of the number of the secret.

    Parameters
    ----------
    function : callable
        Log likelihood of a secret from its number: jitted by numba, of one integer; or vectorised, from an array of
        int64 to an array of floats.
    size : int
        Number of secrets.
    upper : callable, optional
        ``upper(start, stop)`` is at least the log likelihood of every secret in the range; it lets the search leave
        out what cannot matter.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import IndexLikelihood
    >>> IndexLikelihood(lambda d: -0.5 * (d - 70.0) ** 2, 10**6).size
    1000000
    """

    __slots__ = ("_size", "function", "upper")
    _fields = ("function", "_size", "upper")

    function: Callable[..., Any]
    _size: int
    upper: Callable[[int, int], float] | None

    def __init__(
        self, function: Callable[..., Any], size: int, upper: Callable[[int, int], float] | None = None
    ) -> None:
        for name, call in (("function", function), ("upper", upper)):
            if not callable(call) and not (name == "upper" and call is None):
                raise DomainError(f"{name} must be a function; got {_validate.shown(call)}. Pass one of secrets.")
        self._set(function=function, _size=_validate.count("size", size), upper=upper)

    @property
    def size(self) -> int:
        """Number of secrets."""
        return self._size


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
        How far these sums may be from the log likelihoods that are meant, at most, for any subset; it widens the bounds.

    Attributes
    ----------
    members : int
        The number of members of a subset; ``size`` is the number of subsets.

    Raises
    ------
    DomainError, ShapeError
        For NaN, numbers of 1e280 or more, a matrix that is not symmetric or does not fit, or a size beyond n.

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
        pairs = _validate.real("pairwise", pairwise, _ADDED, _added)
        if pairs.shape != (alone.size, alone.size):
            raise ShapeError(
                f"pairwise must be a square with one row a record, {alone.size}; got shape {pairs.shape}. "
                "Pass what each pair of records adds."
            )
        self._set(
            linear=_own(alone, linear), pairwise=_own(np.ascontiguousarray(_symmetric(pairs)), pairwise),
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

        **Accuracy** ``error`` is proved; ``tests/enclosures/test_subset_likelihoods.py``.

        Examples
        --------
        >>> from fastpriv import SubsetLikelihood, posterior
        >>> likelihood = SubsetLikelihood.from_gram([1.0, 0.0, 0.1], [[1, 0, 0], [0, 1, 0], [0, 0, 1]], 1, sigma=0.5)
        >>> posterior(likelihood).map_index
        (0,)
        """
        noise = _validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        inner = _validate.vector("products", products)
        square = _validate.real("gram", gram, "finite numbers", np.isfinite)
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


def as_likelihood(given: Any) -> Likelihood:
    """A likelihood of what people and channels give: arrays and sources hold logarithms."""
    if isinstance(given, Likelihood):
        return given
    if isinstance(given, Exceptions):
        return DefaultLikelihood(given.size, given.default, given.indices, given.values)
    if isinstance(given, Factors):
        return ProductLikelihood(given.columns)
    return DenseLikelihood(given)


def _dense(values: Any, log: bool) -> DenseLikelihood:
    return DenseLikelihood(values, log=log)


def _exceptions(size: int, indices: ArrayLike, values: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Places in increasing order, and their log likelihoods."""
    logs = np.atleast_1d(_validate.real("values", values, "log likelihoods below infinity", lambda x: x < np.inf))
    places = np.asarray(indices, dtype=np.int64 if size <= 2**63 else object).reshape(-1)
    if places.size != logs.size or logs.ndim != 1:
        raise ShapeError(f"values must have one entry an index, {places.size}; got shape {logs.shape}. Match them.")
    order = np.argsort(places, kind="stable")
    places, logs = places[order], logs[order]
    if places.size and (places[0] < 0 or places[-1] >= size or np.any(places[1:] == places[:-1])):
        raise DomainError(
            f"indices must be different secrets from 0 to {_validate.shown(size - 1)}; got "
            f"{_validate.shown(places.tolist())}. Name each exception once."
        )
    return places, logs


def _own(array: FloatArray, given: Any) -> FloatArray:
    """A copy, where somebody else could write to it."""
    return array.copy() if isinstance(given, np.ndarray) and np.may_share_memory(array, given) and not lasting(given) \
        else array


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
