"""Distributions: immutable values that the quantities take.

Notation: a Gaussian mixture is the measure ``sum_i w_i N(m_i, s_i^2)`` on the line, with weights ``w``, means ``m`` and
standard deviations ``s``. A Pmf puts probability ``p_i`` on the point ``x_i``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _validate
from .errors import DomainError, ShapeError

__all__ = ["GaussianMixture", "Pmf"]

FloatArray = NDArray[np.float64]
_LIMIT = 1e300


class _Value:
    """Frozen after construction; equal, hashable and picklable by its arrays."""

    __slots__: tuple[str, ...] = ()

    def _set(self, **arrays: FloatArray) -> None:
        for name, array in arrays.items():
            frozen = np.array(array, dtype=np.float64)
            frozen.setflags(write=False)
            object.__setattr__(self, name, frozen)

    def _arrays(self) -> tuple[FloatArray, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of setting {name}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of deleting {name}.")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        return hash((type(self).__name__, *(array.tobytes() for array in self._arrays())))

    def __reduce__(self) -> Any:
        return type(self), tuple(array.copy() for array in self._arrays())

    def __len__(self) -> int:
        return len(self._arrays()[0])


class GaussianMixture(_Value):
    """A finite mixture of one-dimensional normal laws.

    Parameters
    ----------
    weights : array_like, shape (k,)
        Probabilities of the components. They must sum to 1 within 1e-9 and are never renormalised: the mixture is the
        measure with exactly these weights. Components of weight zero are dropped.
    means : array_like, shape (k,)
        Means, in any unit.
    sigmas : array_like, shape (k,) or scalar
        Standard deviations in the same unit, positive; one number serves all components.

    Raises
    ------
    DomainError
        For NaN, infinite or negative entries, non-positive sigmas, or weights that do not sum to 1.
    ShapeError
        For empty or unequal lengths.

    Examples
    --------
    >>> from fastpriv import GaussianMixture
    >>> p = GaussianMixture([0.25, 0.75], [0.0, 3.0], 1.0)
    >>> len(p), p.sigmas
    (2, array([1., 1.]))
    """

    __slots__ = ("weights", "means", "sigmas")  # noqa: RUF023  (the order of the constructor)

    weights: FloatArray
    means: FloatArray
    sigmas: FloatArray

    def __init__(self, weights: ArrayLike, means: ArrayLike, sigmas: ArrayLike) -> None:
        w = _validate.probabilities("weights", weights)
        m = _validate.vector("means", means, "finite and at most 1e300 in size", lambda x: np.abs(x) <= _LIMIT)
        s = _validate.vector(
            "sigmas", sigmas, "positive and between 1e-300 and 1e300", lambda x: (x >= 1 / _LIMIT) & (x <= _LIMIT),
            remedy="Pass standard deviations; a point mass has no density.",
        )  # fmt: skip
        if s.size == 1:
            s = np.full(w.shape, s[0])
        if not w.shape == m.shape == s.shape:
            raise ShapeError(
                f"weights, means and sigmas must have equal lengths; got {w.size}, {m.size} and {s.size}. "
                "Pass one entry of each a component."
            )
        used = w > 0
        self._set(weights=w[used], means=m[used], sigmas=s[used])

    @classmethod
    def single(cls, mean: float, sigma: float) -> GaussianMixture:
        """One normal law N(mean, sigma^2)."""
        return cls([1.0], [_validate.scalar("mean", mean)], [_validate.scalar("sigma", sigma)])

    @property
    def mass_gap(self) -> float:
        """How far the sum of the weights is from 1, beyond what rounding the weights themselves explains."""
        return _mass_gap(self.weights)

    def __repr__(self) -> str:
        if len(self) > 4:
            return f"<GaussianMixture of {len(self)} components>"
        w, m, s = (array.tolist() for array in self._arrays())
        return f"GaussianMixture({w}, {m}, {s})"


class Pmf(_Value):
    """A discrete law on points of the line: the secret before noise is added.

    Parameters
    ----------
    values : array_like, shape (n,)
        The points, distinct, in any order.
    probabilities : array_like, shape (n,)
        Their probabilities; they must sum to 1 within 1e-9. Points of probability zero are dropped.

    Raises
    ------
    DomainError
        For NaN, infinite values, repeated values, or probabilities that do not sum to 1.
    ShapeError
        For empty or unequal lengths.

    Examples
    --------
    >>> from fastpriv import Pmf
    >>> ages = Pmf.from_data([31, 40, 40, 58])
    >>> ages.values, ages.probabilities
    (array([31., 40., 58.]), array([0.25, 0.5 , 0.25]))
    """

    __slots__ = ("values", "probabilities")  # noqa: RUF023

    values: FloatArray
    probabilities: FloatArray

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        x = _validate.vector("values", values, "finite and at most 1e300 in size", lambda v: np.abs(v) <= _LIMIT)
        p = _validate.probabilities("probabilities", probabilities)
        if x.shape != p.shape:
            raise ShapeError(
                f"values and probabilities must have equal lengths; got {x.size} and {p.size}. "
                "Pass one probability a value."
            )
        order = np.argsort(x, kind="stable")
        x, p = x[order], p[order]
        repeated = np.flatnonzero(x[1:] == x[:-1])
        if repeated.size:
            raise DomainError(
                f"values must be distinct; got {float(x[repeated[0]])!r} more than once ({repeated.size} repeats "
                f"among {x.size} entries). Add up the probabilities of equal values, or use Pmf.from_data."
            )
        self._set(values=x[p > 0], probabilities=p[p > 0])

    @classmethod
    def from_data(cls, column: ArrayLike, *, bins: int | None = None) -> Pmf:
        """The empirical law of a column of numbers.

        Parameters
        ----------
        column : array_like, shape (n,)
            The records.
        bins : int, optional
            Round every record to the centre of one of this many equal bins over the column's range; None keeps the
            exact values.
        """
        x = _validate.vector("column", column)
        if bins is not None:
            number = _validate.count("bins", bins, minimum=1)
            low, high = float(x.min()), float(x.max())
            if low < high:
                cell = np.minimum(((x - low) / (high - low) * number).astype(np.int64), number - 1)
                x = low + (cell + 0.5) * ((high - low) / number)
        values, counts = np.unique(x, return_counts=True)
        return cls(values, counts / x.size)

    @property
    def mass_gap(self) -> float:
        """How far the sum of the probabilities is from 1, beyond what rounding them explains."""
        return _mass_gap(self.probabilities)

    def through_gaussian(self, sigma: float) -> GaussianMixture:
        """The law of value + N(0, sigma^2) noise."""
        return GaussianMixture(self.probabilities, self.values, _validate.scalar("sigma", sigma))

    def __repr__(self) -> str:
        if len(self) > 6:
            return f"<Pmf on {len(self)} points of [{self.values[0]:g}, {self.values[-1]:g}]>"
        return f"Pmf({self.values.tolist()}, {self.probabilities.tolist()})"


def _mass_gap(weights: FloatArray) -> float:
    gap = abs(math.fsum(weights) - 1.0)
    return gap if gap > 0.5 * float(np.sum(np.spacing(weights))) + 2.0**-53 else 0.0
