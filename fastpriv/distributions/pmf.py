"""Discrete laws.

Notation: a Pmf puts probability ``p_i`` on the point ``x_i`` of the line.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..errors import DomainError, ShapeError
from .mixtures import GaussianMixture
from .values import LIMIT, FloatArray, Value

__all__ = ["Pmf"]


class Pmf(Value):
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

    __slots__ = _fields = ("values", "probabilities")

    values: FloatArray
    probabilities: FloatArray

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        x = _validate.vector("values", values, "finite and at most 1e300 in size", lambda v: np.abs(v) <= LIMIT)
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
            _validate.count("bins", number, maximum=2**53)  # their edges are doubles
            low, high = float(x.min()), float(x.max())
            if low < high:
                cell = np.minimum(((x - low) / (high - low) * number).astype(np.int64), number - 1)
                x = low + (cell + 0.5) * ((high - low) / number)
        values, counts = np.unique(x, return_counts=True)
        return cls(values, counts / x.size)

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def mass_gap(self) -> float:
        """How far the sum is from 1, a relative slip of all probabilities; 0 where it is 1 as a double."""
        return _validate.rounded_sum_gap(self.probabilities)

    def through_gaussian(self, sigma: float) -> GaussianMixture:
        """The law of value + N(0, sigma^2) noise."""
        return GaussianMixture(self.probabilities, self.values, _validate.scalar("sigma", sigma))

    def __repr__(self) -> str:
        if len(self) > 6:
            return f"<Pmf on {len(self)} points of [{self.values[0]:g}, {self.values[-1]:g}]>"
        return f"Pmf({self.values.tolist()}, {self.probabilities.tolist()})"
