"""The base class of all channels.

Notation: a secret d is an input of the channel, a release w is an output; both are counted from 0. Q[d, w] is the
probability of release w under secret d; there are n secrets and m releases.
"""

# bounds: tested by enclosures/test_channels - rounding of log cells, relative to the largest

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import random_streams, validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, RealArray
from ..base.values import ValueObject
from .type_classes import ExtremeLogRatios, RowPair, TypeClasses, classes_of_matrix, validated_prior

__all__ = [
    "COPIES_REMEDY", "ENUMERABLE_CELLS", "MAX_COPIES", "MAX_INPUTS", "AnyChannel", "DefaultColumn", "ProductColumn",
    "check_countable", "validated_powers",
]  # fmt: skip

ENUMERABLE_CELLS = 2**20  # cells; a channel without structure of its own is enumerated up to this size (8 MiB)
_BLOCK_CELLS = 2**20  # cells computed at a time when a column is read from rows: 8 MiB of doubles
MAX_COPIES = 2**53  # copies of one factor of a product: counts up to here are exact as doubles
# Remedy for an exponent that is too large.
COPIES_REMEDY = "Quantities of a product add up: multiply those of one copy."
MAX_INPUTS = 2**1000  # secrets of one factor: their number must be finite as a double, with some room for products


class DefaultColumn(NamedTuple):
    """Log likelihoods of one release: listed secrets have their own, all others one default.

    Parameters
    ----------
    size : int
        Number of secrets.
    default : float
        Log likelihood under the secrets that are not listed.
    indices, values : ndarray, shape (e,)
        The secrets that are listed, and their log likelihoods.

    Examples
    --------
    >>> from fastpriv import DefaultLikelihood, RandomizedResponse
    >>> DefaultLikelihood(*RandomizedResponse(10**12, 3.0).column(5)).size
    1000000000000
    """

    size: int
    default: float
    indices: NDArray[Any]
    values: FloatArray


class ProductColumn(NamedTuple):
    """Log likelihoods of one release of a product: the sum of one column for each coordinate.

    Parameters
    ----------
    columns : tuple
        What ``column`` of the factor of each coordinate returns.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> len(RandomizedResponse(3, 1.0).power(5).column([0, 0, 1, 2, 0]).columns)
    5
    """

    columns: tuple[Any, ...]


class AnyChannel(ValueObject):
    """A row-stochastic matrix, stored or known by its structure: the base class of all channels.

    ``Channel`` is dense, ``SparseChannel`` holds exceptions to a background, ``DefaultChannel`` a few rows beside a
    default, ``ProductChannel`` independent channels side by side; the channels of ``fastpriv.mechanisms`` are known by
    parameters and never written out. There may be 2**200 secrets or releases: ``inputs`` and ``outputs`` are Python
    integers. All channels are immutable, equal when their parameters are, hashable and picklable.

    Examples
    --------
    >>> from fastpriv import AnyChannel, Channel, RandomizedResponse
    >>> q = RandomizedResponse(3, 1.0)
    >>> isinstance(q, AnyChannel), q.shape
    (True, (3, 3))
    >>> q.then(Channel([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])).shape
    (3, 2)
    """

    __slots__ = ()

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self._input_count()

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self._output_count()

    @property
    def shape(self) -> tuple[int, int]:
        """Number of secrets and number of releases."""
        return self.inputs, self.outputs

    @property
    def mass_gap(self) -> float:
        """Largest distance of the sum of a row from 1, rounded up."""
        return 0.0

    def _input_count(self) -> int:
        raise NotImplementedError

    def _output_count(self) -> int:
        raise NotImplementedError

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        """Natural logarithms of the rows of secrets ``start`` to ``stop - 1``."""
        raise NotImplementedError

    def _rows(self, start: int, stop: int, log: bool) -> RealArray:
        logs = self._log_rows(start, stop)
        return logs if log else np.exp(logs)

    def _log2_shape(self) -> tuple[float, float]:
        """Binary logarithms of the numbers of secrets and of releases, found without these numbers."""
        return math.log2(self.inputs), math.log2(self.outputs)

    def _cells_within(self, limit: int, exponent: int = 1) -> bool:
        """Whether (number of secrets) ** exponent * (number of releases) is at most ``limit``."""
        log_inputs, log_outputs = self._log2_shape()
        if exponent * log_inputs + log_outputs > math.log2(limit) + 1:
            return False  # the numbers themselves may be too long to be computed
        return bool(self.inputs**exponent * self.outputs <= limit)

    def rows(self, start: int = 0, stop: int | None = None, *, log: bool = False) -> RealArray:
        """The rows of secrets ``start`` to ``stop - 1``, by default of all, shape (stop - start, outputs).

        Probabilities, or with ``log`` their natural logarithms; read-only where they are stored so. Secrets that do not
        exist raise ``DomainError``, more than the memory that is free raises ``MemoryError``.
        """
        first = validate.count("start", start, 0, self.inputs)
        last = self.inputs if stop is None else validate.count("stop", stop, first, self.inputs)
        self._check_memory("rows", last - first, "Ask for fewer rows at a time.")
        return self._rows(first, last, validate.flag("log", log))

    def matrix(self) -> RealArray:
        """All rows, if they fit in memory."""
        remedy = "Use rows(start, stop), or quantities that never write the channel out."
        self._check_memory("matrix", self.inputs, remedy)
        return self._rows(0, self.inputs, False)

    def log_matrix(self) -> RealArray:
        """Natural logarithms of all rows, if they fit in memory."""
        self._check_memory("log_matrix", self.inputs, "Use rows(start, stop, log=True).")
        return self._rows(0, self.inputs, True)

    def _check_memory(self, name: str, rows: int, remedy: str) -> None:
        bits = math.log2(max(rows, 1)) + self._log2_shape()[1] + 3  # of the number of bytes, 8 a cell
        validate.memory(name, 2 ** int(min(bits, 1e5)) if bits > 100 else rows * self.outputs * 8, remedy)

    def column(self, output: ArrayLike) -> RealArray | DefaultColumn | ProductColumn:
        """Log likelihoods of one release under every secret.

        Parameters
        ----------
        output : int or array_like
            The release; channels whose releases are sets, bits or tuples take these too.

        Returns
        -------
        ndarray of shape (inputs,), DefaultColumn or ProductColumn
            All of them; or one default and what deviates from it; or, of a product, one column a factor.

        Raises
        ------
        DomainError, MemoryError
            For a release that does not exist; for more than the memory that is free.
        """
        index = self._output_index(output)
        validate.memory("column", min(self.inputs * 8, 2**1000), "Use a channel with fewer secrets.")
        step = max(1, _BLOCK_CELLS // self.outputs)
        return np.concatenate([
            self._rows(i, min(i + step, self.inputs), True)[:, index] for i in range(0, self.inputs, step)
        ])  # fmt: skip

    def _output_index(self, output: Any) -> int:
        return validate.count("output", output, 0, self.outputs - 1)

    def sample(self, secrets: ArrayLike, *, rng: random_streams.RNGLike = None) -> Any:
        """One release for each secret.

        Parameters
        ----------
        secrets : array_like of int
            Secrets, any shape.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Source of randomness; equal integers give equal releases.

        Returns
        -------
        ndarray of int
            Of the shape of ``secrets``; sets, bits and tuples add an axis at the end. Secrets that do not exist raise
            ``DomainError``.
        """
        return self._sample(self._validated_secrets(secrets), random_streams.generator(rng))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        """Inverse transform sampling, one row a distinct secret."""
        releases = np.empty(secrets.shape, dtype=np.int64)
        uniform = generator.random(secrets.shape)
        for secret in np.unique(secrets):
            selected = secrets == secret
            cumulative = np.cumsum(self._rows(int(secret), int(secret) + 1, False)[0], dtype=np.float64)
            releases[selected] = np.searchsorted(cumulative, uniform[selected] * cumulative[-1], side="right")
        return releases

    def _validated_secrets(self, secrets: ArrayLike) -> NDArray[Any]:
        """Secrets that exist, as integers of 64 bits where these can hold them all, else as Python integers."""
        return validate.integers("secrets", secrets, 0, self.inputs - 1)

    def then(self, post: AnyChannel | ArrayLike) -> AnyChannel:
        """The cascade: this channel, and then another step that sees only the release.

        Parameters
        ----------
        post : AnyChannel, array_like of shape (outputs, k), or array_like of int, shape (outputs,)
            A channel, a row-stochastic matrix, or a new label for each release (labels are counted from 0).

        Returns
        -------
        AnyChannel
            Of the same family where that is closed under the step, otherwise a dense ``Channel``.

        Raises
        ------
        DomainError, ShapeError, MemoryError
            For a matrix that is not row-stochastic, labels that are not natural numbers, a step for another number of
            releases, and a dense result that does not fit in memory.
        """
        from .composite import cascade

        return cascade(self, post)

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        """The cascade within this family, or None where the family is not closed under the step."""
        return None

    def product(self, *others: AnyChannel) -> AnyChannel:
        """Independent channels side by side, as a ``ProductChannel``: this one first, products among them flattened.

        Secrets and releases become tuples; the first factor changes slowest.
        """
        from .composite import ProductChannel

        return ProductChannel((self, *others))

    def power(self, exponent: int) -> AnyChannel:
        """The product of this many copies: a ``ProductChannel``, or the channel itself for ``exponent`` 1."""
        from .composite import ProductChannel

        copies = validate.count("exponent", exponent, 1, MAX_COPIES, remedy=COPIES_REMEDY)
        return self if copies == 1 else ProductChannel((self,), (copies,))

    def type_classes(self, prior: ArrayLike | None = None) -> TypeClasses | None:
        """Classes of equivalent releases and groups of equivalent secrets, which determine all quantities.

        ``prior`` has shape (inputs,); None is the uniform distribution, which is never written out. The answer is None
        where the channel is large and has no such grouping under this prior.
        """
        return self._type_classes(self._validated_prior(prior))

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses | None:
        if not self._cells_within(ENUMERABLE_CELLS):
            return None
        logs = self._log_rows(0, self.inputs)
        error = 2.0**-50 * float(np.max(np.abs(logs), where=np.isfinite(logs), initial=1.0))
        return classes_of_matrix(logs, True, prior, error)

    def extreme_log_ratios(self, prior: ArrayLike | None = None) -> ExtremeLogRatios | None:
        """The largest log ratios (LDP and both sides of MBP) in closed form.

        ``prior`` has shape (inputs,); None is the uniform distribution. The answer is None where the channel is large
        and has no closed form under this prior.
        """
        return self._extreme_log_ratios(self._validated_prior(prior))

    def _extreme_log_ratios(self, prior: FloatArray | None) -> ExtremeLogRatios | None:
        classes = self._type_classes(prior)
        return None if classes is None or classes.omitted_mass else classes.extreme_log_ratios()

    def dominating_pairs(self) -> tuple[RowPair, ...] | None:
        """Ordered pairs of rows whose largest hockey-stick divergence is that of the channel, at every epsilon.

        The answer is None where no few pairs are known to attain it; all ordered pairs of rows must then be compared.
        """
        return None

    def _validated_prior(self, prior: Any) -> Any:
        return None if prior is None else validated_prior(prior, self.inputs)


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


def check_countable(name: str, bits: float, max_bits: int, channel: AnyChannel) -> None:
    """Refuse to compute a number of secrets or releases that has too many digits."""
    if bits > max_bits:
        raise DomainError(
            f"{name} must be a number of at most {max_bits} bits to be written; got one of about {bits:.4g} bits for "
            f"{validate.shown(channel)}. Ask for quantities that never count them, or take a smaller channel."
        )
