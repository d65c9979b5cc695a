"""What every channel can do.

Notation: Q[d, w] is the probability of release w under secret d; n secrets, m releases, both counted from 0.
"""

# bounds: tested by enclosures/test_channels - rounding of log cells, relative to the largest

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _random, _validate
from .._values import FloatArray, Value
from ..errors import DomainError
from .priors import checked_prior, prior_gap
from .profiles import Extremes, Profiles, RowPair, from_matrix

__all__ = ["COPIES", "MOST_COPIES", "MOST_SECRETS", "SMALL", "AnyChannel", "Exceptions", "Factors", "countable"]

SMALL = 2**20  # cells up to which a channel without a form of its own is looked at cell by cell
_BLOCK = 2**20  # cells made at a time
MOST_COPIES = 2**53  # of one factor of a product
COPIES = "Quantities of a product add up: multiply those of one copy."
MOST_SECRETS = 2**1000  # of one factor: their number is a double


class Exceptions(NamedTuple):
    """Log likelihoods of one release: one default for all secrets but those that are listed."""

    size: int
    default: float
    indices: NDArray[Any]
    values: FloatArray


class Factors(NamedTuple):
    """Log likelihoods of one release of a product: the sum over factors of one column of each, in their order."""

    columns: tuple[Any, ...]


class AnyChannel(Value):
    """A row-stochastic matrix, stored or known by its structure: the base class of all channels.

    ``Channel`` is dense, ``SparseChannel`` holds exceptions to a background, ``ProductChannel`` independent channels
    side by side, ``CascadeChannel`` one behind the other; the others are known by parameters and never written out.
    Secrets and releases are counted from 0, and there may be 2**200 of them: ``inputs`` and ``outputs`` are Python
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
        raise NotImplementedError

    @property
    def outputs(self) -> int:
        """Number of releases."""
        raise NotImplementedError

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        """Logs of the rows of these secrets."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Number of secrets and number of releases."""
        return self.inputs, self.outputs

    def _log2_shape(self) -> tuple[float, float]:
        """Binary logarithms of the numbers of secrets and of releases, found without these numbers."""
        return math.log2(self.inputs), math.log2(self.outputs)

    def _cells_within(self, most: int, secrets: int = 1) -> bool:
        """Whether the number of secrets, to this power, times that of releases is at most so large."""
        logs = self._log2_shape()
        few = secrets * logs[0] + logs[1] <= math.log2(most) + 1  # else they are not even counted
        return few and self.inputs**secrets * self.outputs <= most

    @property
    def mass_gap(self) -> float:
        """How far the sum of a row is from 1, at most: a relative slip of the row."""
        return 0.0

    def rows(self, start: int = 0, stop: int | None = None, *, log: bool = False) -> NDArray[np.floating[Any]]:
        """The rows of consecutive secrets.

        Parameters
        ----------
        start, stop : int, optional
            Secrets ``start`` to ``stop - 1``; all of them by default.
        log : bool, optional
            Natural logarithms instead of probabilities.

        Returns
        -------
        ndarray, shape (stop - start, outputs)
            Probabilities, or their logs; read-only where they are stored so.

        Raises
        ------
        DomainError
            For secrets that do not exist.
        MemoryError
            For more than the memory that is free.
        """
        first = _validate.count("start", start, 0, self.inputs)
        last = self.inputs if stop is None else _validate.count("stop", stop, first, self.inputs)
        self._fits("rows", last - first, "Ask for fewer rows at a time.")
        return self._rows(first, last, _validate.flag("log", log))

    def matrix(self) -> NDArray[np.floating[Any]]:
        """All rows, if they fit in memory."""
        self._fits("matrix", self.inputs, "Use rows(start, stop), or quantities that never write the channel out.")
        return self._rows(0, self.inputs, False)

    def log_matrix(self) -> NDArray[np.floating[Any]]:
        """Natural logarithms of all rows, if they fit in memory."""
        self._fits("log_matrix", self.inputs, "Use rows(start, stop, log=True).")
        return self._rows(0, self.inputs, True)

    def _rows(self, start: int, stop: int, log: bool) -> NDArray[np.floating[Any]]:
        found = self._log_rows(start, stop)
        return found if log else np.exp(found)

    def _fits(self, name: str, rows: int, remedy: str) -> None:
        bits = math.log2(max(rows, 1)) + self._log2_shape()[1] + 3
        _validate.memory(name, 2 ** int(min(bits, 1e5)) if bits > 100 else rows * self.outputs * 8, remedy)

    def column(self, output: Any) -> NDArray[np.floating[Any]] | Exceptions | Factors:
        """Log likelihoods of one release under every secret.

        Parameters
        ----------
        output : int
            The release; channels whose releases are sets, bits or tuples take these too.

        Returns
        -------
        ndarray of shape (inputs,), Exceptions or Factors
            All of them; or one default and what deviates from it; or, of a product, one column a factor.

        Raises
        ------
        DomainError
            For a release that does not exist.
        MemoryError
            For more than the memory that is free.
        """
        place = self._output(output)
        _validate.memory("column", min(self.inputs * 8, 2**1000), "Use a channel with fewer secrets.")
        step = max(1, _BLOCK // self.outputs)
        return np.concatenate([
            self._rows(i, min(i + step, self.inputs), True)[:, place] for i in range(0, self.inputs, step)
        ])  # fmt: skip

    def _output(self, output: Any) -> int:
        return _validate.count("output", output, 0, self.outputs - 1)

    def sample(self, secrets: ArrayLike, *, rng: Any = None) -> NDArray[Any]:
        """One release for each secret.

        Parameters
        ----------
        secrets : array_like of int
            Secrets, any shape.
        rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator, optional
            Where the randomness comes from; equal integers give equal releases.

        Returns
        -------
        ndarray of int
            Of the shape of ``secrets``; sets, bits and tuples add an axis at the end.

        Raises
        ------
        DomainError
            For secrets that do not exist.
        """
        where = self._secrets(secrets)
        generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(_random.root(rng))
        return self._sample(where, generator)

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        found = np.empty(secrets.shape, dtype=np.int64)
        uniform = generator.random(secrets.shape)
        for secret in np.unique(secrets):
            here = secrets == secret
            ladder = np.cumsum(self._rows(int(secret), int(secret) + 1, False)[0], dtype=np.float64)
            found[here] = np.searchsorted(ladder, uniform[here] * ladder[-1], side="right")
        return found

    def _secrets(self, secrets: ArrayLike) -> NDArray[Any]:
        """Secrets that exist, as integers of 64 bits where these can hold them all, else as Python integers."""
        return _validate.integers("secrets", secrets, 0, self.inputs - 1)

    def then(self, post: Any) -> AnyChannel:
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
        ShapeError
            If the step does not take as many releases as there are.
        DomainError
            For a matrix that is not row-stochastic, or labels that are no natural numbers.
        MemoryError
            If the result must be written out and does not fit.
        """
        from .families import cascades

        return cascades.cascade(self, post)

    def _then(self, step: AnyChannel) -> AnyChannel | None:
        """The cascade in a form that this family has, or None."""
        return None

    def product(self, *others: AnyChannel) -> AnyChannel:
        """Independent channels side by side: secrets and releases become tuples, the first factor changes slowest.

        Parameters
        ----------
        *others : AnyChannel
            The channels to the right of this one.

        Returns
        -------
        ProductChannel
            With the factors in order; products among them are taken apart.
        """
        from .families.products import ProductChannel

        return ProductChannel((self, *others))

    def power(self, exponent: int) -> AnyChannel:
        """The product of this many copies.

        Parameters
        ----------
        exponent : int
            At least 1.

        Returns
        -------
        AnyChannel
            A ``ProductChannel``; the channel itself for 1.
        """
        from .families.products import ProductChannel

        times = _validate.count("exponent", exponent, 1, MOST_COPIES, remedy=COPIES)
        return self if times == 1 else ProductChannel((self,), (times,))

    def profiles(self, prior: ArrayLike | None = None) -> Profiles | None:
        """Classes of like releases and groups of like secrets, from which all quantities follow in few terms.

        Parameters
        ----------
        prior : array_like, shape (inputs,), optional
            Probabilities of the secrets; None is the uniform law, which is never written out.

        Returns
        -------
        Profiles or None
            None where the channel is large and has no such grouping under this prior.
        """
        found = self._prior(prior)
        return self._profiles(found)

    def _profiles(self, prior: FloatArray | None) -> Profiles | None:
        if not self._cells_within(SMALL):
            return None
        cells = self._log_rows(0, self.inputs)
        error = 2.0**-50 * float(np.max(np.abs(cells), where=np.isfinite(cells), initial=1.0))
        return from_matrix(cells, True, prior, prior_gap(prior), error)

    def extremes(self, prior: ArrayLike | None = None) -> Extremes | None:
        """The largest log ratios (LDP and both sides of MBP) in closed form.

        Parameters
        ----------
        prior : array_like, shape (inputs,), optional
            Probabilities of the secrets; None is the uniform law.

        Returns
        -------
        Extremes or None
            None where the channel is large and has no closed form under this prior.
        """
        return self._extremes(self._prior(prior))

    def _extremes(self, prior: FloatArray | None) -> Extremes | None:
        found = self._profiles(prior)
        return None if found is None or found.missing else found.extremes()

    def pairs(self) -> tuple[RowPair, ...] | None:
        """Ordered pairs of rows whose largest hockey-stick divergence is that of the channel, at every epsilon.

        Returns
        -------
        tuple of RowPair or None
            None where no few pairs are known to attain it; all ordered pairs of rows have then to be looked at.
        """
        return None

    def _prior(self, prior: ArrayLike | None) -> FloatArray | None:
        return None if prior is None else checked_prior(prior, self.inputs)


def countable(what: str, bits: float, most: int, channel: AnyChannel) -> None:
    """Refuse to write a number of secrets or releases that has more digits than a computer gets through."""
    if bits > most:
        raise DomainError(
            f"{what} must be a number of at most {most} bits to be written; got one of about {bits:.4g} bits for "
            f"{_validate.shown(channel)}. Ask for quantities that never count them, or take a smaller channel."
        )
