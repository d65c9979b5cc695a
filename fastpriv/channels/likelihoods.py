"""Likelihoods of one release over the secrets: the arguments of ``posterior``.

Notation: l_d is the log likelihood of the release under secret d = 0, ..., size - 1; -inf where it is impossible. A
likelihood may leave out a factor that all secrets share: it changes the evidence and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray
from ..base.values import ValueObject
from .vector_sources import ConcatenatedSource, IndexSource, VectorSource, source_of

_MAX_EVALUATED = 2**48  # secrets of a function of the secret: a month of 100 cores
# Remedy for too many copies.
COPIES_REMEDY = "Quantities of a product add up: multiply those of one copy."
_MAX_SIZE_BITS = 2**23  # bits of the number of secrets of a product (0.8 s), and copies of all its factors


class Likelihood(ValueObject):
    """Log likelihoods of one release under every secret: the base class; immutable, and distinguished by type.

    Attributes
    ----------
    size : int
        Number of secrets, as a Python integer: 2**200 is fine.

    Examples
    --------
    >>> from fastpriv.channels import DefaultLikelihood, Likelihood
    >>> isinstance(DefaultLikelihood(10**12, -3.0, [7], [0.0]), Likelihood)
    True
    """

    __slots__ = ()

    @property
    def size(self) -> int:
        """Number of secrets."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}(size={validate.shown(self.size)})"


class DenseLikelihood(Likelihood):
    """One log likelihood for each secret, in memory, in a file, or computed block by block.

    Parameters
    ----------
    values : array_like, path-like, (path, column), or callable
        A vector of numbers (float16, float32, float64 or integers, ``numpy.memmap`` too), which is not copied; a
        ``.npy`` file; a column of a Parquet file; a function without arguments that returns a fresh iterator of
        arrays; or an iterator, which can be read once only. Files and maps are read by position from the file that was
        passed or mapped, even if another takes its name; an error says if it was written to or truncated. Where the
        file of a map cannot be known (renamed or removed, mapped copy-on-write, not on Linux), its length is checked
        before each block, and a truncation within the millisecond after the check still ends the process.
    log : bool, optional
        Whether they are natural logarithms of likelihoods (the default) or likelihoods.

    Examples
    --------
    >>> from fastpriv import posterior
    >>> from fastpriv.channels import DenseLikelihood
    >>> posterior(DenseLikelihood([0.25, 0.75], log=False)).map_index
    1
    """

    __slots__ = _fields = ("values", "log")

    values: Any
    log: bool

    def __init__(self, values: Any, *, log: bool = True) -> None:
        object.__setattr__(self, "values", values)  # not by _set, which would make the caller's array read-only
        object.__setattr__(self, "log", validate.flag("log", log))

    @property
    def size(self) -> int:
        """Number of secrets; reads the header of a file, and raises where only reading all would tell."""
        return self._source("likelihood").known_length()

    def _source(self, name: str) -> VectorSource:
        return source_of(name, self.values)

    def __repr__(self) -> str:
        return f"DenseLikelihood({validate.shown(self.values)}, log={self.log})"

    def __reduce__(self) -> Any:
        return partial(DenseLikelihood, log=self.log), (self.values,)


class DefaultLikelihood(Likelihood):
    """Listed secrets have their own log likelihoods, all others one default.

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
    of log probabilities: it stands for the distribution that sums to 1 and rounds to these.

    **Accuracy** bounds include rounding, given that of NumPy's exp and log (BOUNDS.md), mostly 1e-14 to 1e-12 relative;
    ``tests/enclosures/test_default_posteriors.py``.

    Examples
    --------
    >>> from fastpriv.channels import DefaultLikelihood
    >>> DefaultLikelihood(10**12, -3.0, [7], [0.0]).size
    1000000000000
    """

    __slots__ = _fields = ("size", "default", "indices", "values")

    size: int
    default: float
    indices: NDArray[Any]
    values: FloatArray

    def __init__(self, size: int, default: float, indices: ArrayLike, values: ArrayLike) -> None:
        count = validate.count("size", size)
        level = validate.scalar("default", default, "a log likelihood below infinity", lambda x: x < np.inf)
        listed, logs = _sorted_exceptions(count, indices, values)
        self._set(size=count, default=level, indices=listed, values=logs)

    def _written_out(self) -> FloatArray:
        """All log likelihoods as an array, shape (size,)."""
        logs = np.full(self.size, self.default)
        logs[self.indices.astype(np.int64)] = self.values
        return logs


class ProductLikelihood(Likelihood):
    """Independent parts: a secret is a tuple with one entry a factor, and log likelihoods add.

    Parameters
    ----------
    factors : sequence of Likelihood or array_like
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
    >>> from fastpriv.channels import ProductLikelihood
    >>> ProductLikelihood([[-1.0, -0.5]], powers=[200]).size == 2**200
    True
    """

    __slots__ = _fields = ("factors", "powers")

    factors: tuple[Likelihood, ...]
    powers: tuple[int, ...]

    def __init__(self, factors: Sequence[Any], powers: ArrayLike | None = None) -> None:
        parts = tuple(as_likelihood(factor) for factor in validate.sequence("factors", factors, "likelihoods"))
        if not parts:
            raise ShapeError("factors must have at least one entry; got none. Pass one likelihood for each part.")
        copies = tuple(validated_powers(powers, len(parts), 2**63 - 1))
        if sum(copies) > _MAX_SIZE_BITS:
            raise DomainError(
                f"powers must add up to at most {_MAX_SIZE_BITS}; got {validate.shown(sum(copies))}. {COPIES_REMEDY}"
            )
        self._set(factors=parts, powers=copies)

    @property
    def size(self) -> int:
        """Number of secrets."""
        pairs = list(zip(self.factors, self.powers, strict=True))
        bits = sum(float(min(power, 2**53)) * math.log2(max(part.size, 1)) for part, power in pairs)
        if bits > _MAX_SIZE_BITS:
            raise DomainError(
                f"powers must be small enough for a number of secrets of at most {_MAX_SIZE_BITS} bits; got one of "
                f"about {bits:.4g} bits. {COPIES_REMEDY}"
            )
        return math.prod(part.size**power for part, power in pairs)


class IndexLikelihood(Likelihood):
    """A function of the number of the secret, which is evaluated for all secrets, twice.

    Parameters
    ----------
    function : callable
        Log likelihood of a secret from its number: jitted by numba, of one integer; or vectorised, from an array of
        int64 to an array of floats.
    size : int
        Number of secrets, at most 2**48.

    Notes
    -----
    **Accuracy** that of ``DenseLikelihood``, with the same bits; ``tests/enclosures/test_index_posteriors.py``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.channels import IndexLikelihood
    >>> IndexLikelihood(lambda d: -0.5 * (d - 70.0) ** 2, 10**6).size
    1000000
    """

    __slots__ = _fields = ("function", "size")
    log = True

    function: Callable[..., Any]
    size: int

    def __init__(self, function: Callable[..., Any], size: int) -> None:
        if not callable(function):
            raise DomainError(f"function must be a function; got {validate.shown(function)}. Pass one of secrets.")
        remedy = "More secrets need a ProductLikelihood or a DefaultLikelihood."
        self._set(function=function, size=validate.count("size", size, maximum=_MAX_EVALUATED, remedy=remedy))

    def _source(self, name: str) -> VectorSource:
        return IndexSource(name, self.function, self.size)


class ShardedLikelihood(Likelihood):
    """One log likelihood for each secret, in parts that no machine needs to hold together.

    Parameters
    ----------
    parts : sequence of sources, or one source
        The parts of one vector, one behind the other, each of a length that is known: a ``.npy`` file, a column of a
        Parquet file as a path or (path, column), an array, or an ``IndexLikelihood`` of the numbers of its own secrets.
    shards : int, optional
        Number of pieces of work, of whole blocks of 2**18 secrets. None means one for each part, and 64 for one part.
        Results do not depend on it.
    log : bool, optional
        Whether they are natural logarithms of likelihoods (the default) or likelihoods.

    Notes
    -----
    ``fastpriv.posterior`` runs the shards on threads, processes or a cluster (``executor``), and keeps those that are
    finished (``store``). Files must be there under the same names for all workers.

    **Accuracy** that of ``DenseLikelihood``, with the same bits; ``tests/contracts/test_shards.py``.

    Examples
    --------
    >>> from fastpriv import posterior
    >>> from fastpriv.channels import IndexLikelihood, ShardedLikelihood
    >>> likelihood = ShardedLikelihood(IndexLikelihood(lambda d: -1e-6 * d, 10**6), shards=4)
    >>> posterior(likelihood).map_index
    0
    """

    __slots__ = _fields = ("parts", "shards", "log")

    parts: tuple[Any, ...]
    shards: int | None
    log: bool

    def __init__(self, parts: Any, shards: int | None = None, *, log: bool = True) -> None:
        is_column = isinstance(parts, tuple) and len(parts) == 2 and isinstance(parts[1], str)  # (file, its column)
        several = isinstance(parts, (list, tuple)) and not is_column
        if several and not parts:
            raise ShapeError("parts must have at least one entry; got none. Pass the parts of one vector.")
        object.__setattr__(self, "parts", tuple(parts) if several else (parts,))  # arrays stay writable
        object.__setattr__(self, "shards", None if shards is None else validate.count("shards", shards))
        object.__setattr__(self, "log", validate.flag("log", log))

    @property
    def size(self) -> int:
        """Number of secrets; reads the headers of files."""
        return self._source("parts").known_length()

    def _source(self, name: str) -> VectorSource:
        return ConcatenatedSource(
            name,
            [part._source(name) if isinstance(part, IndexLikelihood) else source_of(name, part) for part in self.parts],
        )

    def __repr__(self) -> str:
        return f"ShardedLikelihood({len(self.parts)} parts, shards={self.shards}, log={self.log})"

    def __reduce__(self) -> Any:
        return partial(ShardedLikelihood, log=self.log), (list(self.parts), self.shards)


def as_likelihood(likelihood: Any) -> Likelihood:
    """Convert arrays and other sources, which hold logarithms, to a ``Likelihood``."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if hasattr(likelihood, "column"):
        raise DomainError(
            f"likelihood must be of one release; got a channel, {validate.shown(likelihood)}. "
            "Pass channel.column(release)."
        )
    return DenseLikelihood(likelihood)


def validated_powers(powers: ArrayLike | None, factors: int, maximum: int) -> list[int]:
    """How many copies there are of each of the factors of a product; None is one of each."""
    if powers is None:
        return [1] * factors
    copies: list[int] = np.atleast_1d(validate.integers("powers", powers, 1, maximum, remedy=COPIES_REMEDY)).tolist()
    if len(copies) != factors:
        raise ShapeError(
            f"powers must have one entry for each of the {factors} factors; got {len(copies)}. Pass one power a factor."
        )
    return copies


def _sorted_exceptions(size: int, indices: ArrayLike, values: ArrayLike) -> tuple[NDArray[Any], FloatArray]:
    """Different secrets in increasing order, and their log likelihoods."""
    logs = np.atleast_1d(
        validate.real("values", values, "log likelihoods below infinity", lambda x: x < np.inf, answer=False)
    )
    listed = validate.integers(
        "indices", indices, 0, size - 1, constraint=f"different secrets from 0 to {validate.shown(size - 1)}",
        remedy="Give the number of each secret, counted from 0.",
    ).reshape(-1)
    if listed.size != logs.size or logs.ndim != 1:
        raise ShapeError(f"values must have one entry an index, {listed.size}; got shape {logs.shape}. Match them.")
    order = np.argsort(listed, kind="stable")
    listed, logs = listed[order], logs[order]
    if np.any(listed[1:] == listed[:-1]):
        raise DomainError(
            f"indices must be different secrets from 0 to {validate.shown(size - 1)}; got "
            f"{validate.shown(listed.tolist())}. Name each exception once."
        )
    return listed, logs
