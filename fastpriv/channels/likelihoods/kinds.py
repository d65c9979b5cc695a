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

from ... import _validate
from ..._values import FloatArray, Value, lasting
from ...errors import DomainError, ShapeError
from ..base import AnyChannel, Exceptions, Factors

__all__ = [
    "DefaultLikelihood", "DenseLikelihood", "IndexLikelihood", "Likelihood", "ProductLikelihood", "as_likelihood",
]  # fmt: skip

_MOST_BITS = 2**23  # of the number of secrets of a product


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

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={_validate.shown(self.size)})"


class DenseLikelihood(Likelihood):
    """One number a secret, in memory, in a file, or made block by block.

    Parameters
    ----------
    values : array_like, path-like, (path, column), or callable
        A vector of numbers (float16, float32, float64 or integers, ``numpy.memmap`` too), which is not copied; a
        ``.npy`` file; a column of a Parquet file; a function without arguments that returns a fresh iterator of
        arrays; or an iterator, which can be read once only. Files and maps are read by position from the file that was
        passed or mapped: one that is written to, cut or replaced by then is said, or no concern. Where the file of a
        map cannot be known (renamed or removed, mapped with changes of its own, not on Linux), a look at its length
        goes before each block, and a cut within the millisecond after that look still ends the process.
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

    def __repr__(self) -> str:
        return f"DenseLikelihood({_validate.shown(self.values)}, log={self.log})"

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

    Notes
    -----
    Its posterior costs as much as its exceptions do, whatever ``size``. The prior may be another ``DefaultLikelihood``,
    of log probabilities: it stands for the law that sums to 1 and rounds to these.

    **Accuracy** bounds include rounding, given that of NumPy's exp and log (BOUNDS.md), mostly 1e-14 to 1e-12 relative;
    ``tests/enclosures/test_default_posteriors.py``.

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

    Notes
    -----
    Most quantities add up over factors. The Jensen-Shannon divergence is an integral over the line of a product of
    overlaps, evaluated at some 300 points with a proved error, for factors of any kind; the most probable tuples are
    exact, ties included.

    **Accuracy** bounds include rounding, given that of NumPy's exp and log (BOUNDS.md), mostly 1e-14 to 1e-12 relative;
    ``tests/enclosures/test_product_posteriors.py``.

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
        parts = tuple(as_likelihood(factor) for factor in _validate.sequence("factors", factors, "likelihoods"))
        if not parts:
            raise ShapeError("factors must have at least one entry; got none. Pass one likelihood for each part.")
        often = (1,) * len(parts) if powers is None else tuple(
            np.atleast_1d(_validate.integers("powers", powers, 1)).tolist()
        )
        if len(often) != len(parts):
            raise ShapeError(
                f"powers must have one entry for each of the {len(parts)} factors; got {len(often)}. Match them."
            )
        if sum(often) > _MOST_BITS:
            raise DomainError(
                f"powers must add up to at most {_MOST_BITS}; got {_validate.shown(sum(often))}. Quantities of a "
                "product add up: multiply those of one copy."
            )
        self._set(factors=parts, powers=often)

    @property
    def size(self) -> int:
        """Number of secrets."""
        pairs = list(zip(self.factors, self.powers, strict=True))
        bits = sum(float(min(power, 2**53)) * math.log2(max(part.size, 1)) for part, power in pairs)
        if bits > _MOST_BITS:
            raise DomainError(
                f"powers must be small enough for a number of secrets of at most {_MOST_BITS} bits; got one of about "
                f"{bits:.4g} bits. Quantities of a product add up: multiply those of one copy."
            )
        return math.prod(part.size**power for part, power in pairs)


class IndexLikelihood(Likelihood):
    """A function of the number of the secret.

    Parameters
    ----------
    function : callable
        Log likelihood of a secret from its number: jitted by numba, of one integer; or vectorised, from an array of
        int64 (of Python integers beyond 2**63 secrets) to an array of floats.
    size : int
        Number of secrets.
    bound : callable, optional
        ``bound(start, stop)`` returns two numbers, at most and at least the log likelihood of every secret from
        ``start`` to ``stop - 1``; or the upper one alone. It lets a search leave out what cannot matter.
    budget : int, optional
        How often the function may be evaluated. If that is twice for every secret, all are looked at, in two passes;
        otherwise the posterior is bracketed by branch and bound with ``bound``, and sampled without, from one draw
        for every 256 evaluations (for every 16,384 where indices do not fit 64 bits).
    rtol : float, optional
        What ranges may leave open of the evidence, relative to it, when branch and bound ends. Brackets of KL and
        Jensen-Shannon are about as wide, in nats.

    Notes
    -----
    A sample cannot tell the largest likelihood: the largest log ratio is then bounded below by what was seen and above
    by what a posterior of 1 would give, and a ``SamplingWarning`` says so.

    **Accuracy** within the budget that of dense likelihoods; with ``bound`` certified, as true as the bounds are, plus
    1e-12 for rounding, ``tests/enclosures/test_index_posteriors.py``; else intervals at 95 %,
    ``tests/intervals/test_sampled_domains.py``.

    Source: interval branch and bound; stratified sampling with Student's intervals over replicates.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import IndexLikelihood
    >>> IndexLikelihood(lambda d: -0.5 * (d - 70.0) ** 2, 10**6).size
    1000000
    """

    __slots__ = ("_size", "bound", "budget", "function", "rtol")
    _fields = ("function", "_size", "bound", "budget", "rtol")

    function: Callable[..., Any]
    _size: int
    bound: Callable[[int, int], Any] | None
    budget: int
    rtol: float

    def __init__(
        self, function: Callable[..., Any], size: int, bound: Callable[[int, int], Any] | None = None,
        budget: int = 2**30, rtol: float = 1e-6,
    ) -> None:  # fmt: skip
        for name, call in (("function", function), ("bound", bound)):
            if not callable(call) and not (name == "bound" and call is None):
                raise DomainError(f"{name} must be a function; got {_validate.shown(call)}. Pass one of secrets.")
        self._set(
            function=function, _size=_validate.count("size", size), bound=bound,
            budget=_validate.count("budget", budget),
            rtol=_validate.scalar("rtol", rtol, "between 0 and 1", lambda x: (x > 0) & (x < 1)),
        )  # fmt: skip

    @property
    def size(self) -> int:
        """Number of secrets."""
        return self._size


def as_likelihood(given: Any) -> Likelihood:
    """A likelihood of what people and channels give: arrays and sources hold logarithms."""
    if isinstance(given, Likelihood):
        return given
    if isinstance(given, Exceptions):
        return DefaultLikelihood(given.size, given.default, given.indices, given.values)
    if isinstance(given, Factors):
        return ProductLikelihood(given.columns)
    if isinstance(given, AnyChannel):
        raise DomainError(
            f"likelihood must be of one release; got a channel, {_validate.shown(given)}. Pass channel.column(release)."
        )
    return DenseLikelihood(given)


def _dense(values: Any, log: bool) -> DenseLikelihood:
    return DenseLikelihood(values, log=log)


def _exceptions(size: int, indices: ArrayLike, values: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Places in increasing order, and their log likelihoods."""
    below = ("log likelihoods below infinity", lambda x: x < np.inf)
    logs = np.atleast_1d(_validate.real("values", values, *below, answer=False))
    places = _validate.integers(
        "indices", indices, 0, size - 1, constraint=f"different secrets from 0 to {_validate.shown(size - 1)}",
        remedy="Give the number of each secret, counted from 0.",
    ).reshape(-1)  # fmt: skip
    if places.size != logs.size or logs.ndim != 1:
        raise ShapeError(f"values must have one entry an index, {places.size}; got shape {logs.shape}. Match them.")
    order = np.argsort(places, kind="stable")
    places, logs = places[order], logs[order]
    if np.any(places[1:] == places[:-1]):
        raise DomainError(
            f"indices must be different secrets from 0 to {_validate.shown(size - 1)}; got "
            f"{_validate.shown(places.tolist())}. Name each exception once."
        )
    return places, logs


def _own(array: FloatArray, given: Any) -> FloatArray:
    """A copy, where somebody else could write to it."""
    return array.copy() if isinstance(given, np.ndarray) and np.may_share_memory(array, given) and not lasting(given) \
        else array
