"""Stacks of discrete distributions on the line: arrays of points and probabilities with leading axes.

Notation: ``shape`` are the leading axes of a stack, n its number of points, padding included. A row is the distribution
at one position of the leading axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import ShapeError
from ..base.numerics import FloatArray
from ..base.values import Index, Stack, broadcast_positions, errors_at
from .mixture_stacks import MixtureStack, stack_numbers
from .packed import MAX_MAGNITUDE
from .pmf import Pmf

# bound: none - sums nearer to 1 are not checked again; the tolerance of ``Pmf`` less the rounding of a sum
_SURE_TOLERANCE = validate.sum_tolerance(np.float64) * (1 - 1e-6)


class PmfStack(Stack):
    """Discrete distributions with leading axes, for one call instead of a loop over priors.

    Functions that take a ``Pmf`` as prior take a stack in its place: the notions, ``mutual_information`` and
    ``calibration``. Its leading axes broadcast with those of the mechanism and of the targets, as in NumPy.

    Parameters
    ----------
    values : array_like, shape (..., n)
        The points, distinct in each row, in any order.
    probabilities : array_like, shape (..., n)
        Their probabilities; each row sums to 1 within 1e-9 (2e-6 for float32), as for ``Pmf``. The leading axes of
        both broadcast. Points of probability zero are padding: they are dropped from their row, but where a channel
        counts them as secrets.
    errors : {"raise", "record"}, default "raise"
        What an invalid row does: raise an error that names it, or have NaN as its answers while the other rows keep
        theirs. Attribute ``errors`` then holds its text.

    Attributes
    ----------
    shape : tuple of int
        The leading axes.
    values, probabilities : ndarray
        With all leading axes, read-only, each row in increasing order of its points; invalid rows are 0.
    errors : mapping of tuple of int to str
        The texts of invalid rows by their position.

    Raises
    ------
    DomainError, ShapeError
        For a row that ``Pmf`` refuses, unless ``errors="record"``, with the position of the row; for shapes that do not
        broadcast, or have no point.

    See Also
    --------
    fastpriv.Pmf : one distribution.

    Notes
    -----
    **Accuracy** the answers for a row are those for the distribution itself, bit for bit:
    ``tests/contracts/test_prior_stacks.py``.

    Examples
    --------
    The information that noise of two sizes leaves about a coin, for three biases:

    >>> import numpy as np
    >>> from fastpriv import mutual_information
    >>> from fastpriv.distributions import PmfStack
    >>> bias = np.array([0.5, 0.1, 0.001])[:, None]
    >>> coins = PmfStack([0.0, 1.0], np.concatenate([1 - bias, bias], axis=-1))
    >>> mutual_information(coins, [[0.5], [1.0]]).value.round(6)
    array([[0.336831, 0.14202 , 0.001979],
           [0.111421, 0.042742, 0.000499]])
    """

    __slots__ = ("errors", "probabilities", "records", "shape", "values")
    _fields = ("values", "probabilities", "_error_texts")
    _columns = ("values", "probabilities")

    values: FloatArray
    probabilities: FloatArray

    def __init__(
        self, values: ArrayLike, probabilities: ArrayLike, *, errors: Literal["raise", "record"] = "raise"
    ) -> None:
        records = validate.choice("errors", errors, ("raise", "record")) == "record"
        x, p = (
            np.atleast_1d(stack_numbers(name, passed, "numbers"))
            for name, passed in (("values", values), ("probabilities", probabilities))
        )
        p = validate.divided_float32(probabilities, p)
        try:
            rows = np.broadcast_shapes(x.shape, p.shape)
        except ValueError:
            rows = ()
        if not rows or x.shape[-1] != p.shape[-1] or rows[-1] == 0:
            raise ShapeError(
                "values and probabilities must have leading axes that broadcast, and one last axis with a point at "
                f"least; got {x.shape} and {p.shape}. Add axes of length 1 for a grid."
            )
        validate.grid("values with probabilities", rows)
        order = np.argsort(x, axis=-1, kind="stable")
        spread = np.broadcast_to(order, rows)
        x = np.broadcast_to(np.take_along_axis(x, order, axis=-1), rows)
        p = np.take_along_axis(np.broadcast_to(p, rows), spread, axis=-1)
        self._set(values=x, probabilities=p, shape=rows[:-1], errors=MappingProxyType({}), records=records)
        with np.errstate(invalid="ignore"):
            sound = ((p >= 0) & (p <= 1) & (np.abs(x) <= MAX_MAGNITUDE)).all(axis=-1)
            sound &= (x[..., 1:] > x[..., :-1]).all(axis=-1)
            sound &= np.abs(np.sum(p, axis=-1, dtype=np.longdouble) - 1) <= _SURE_TOLERANCE
        # rows with padding of equal values are doubtful too, and valid
        self._note_errors(np.asarray(~sound), "row", {"values": 0.0, "probabilities": 0.0})

    @classmethod
    def of(cls, pmfs: Sequence[Pmf]) -> PmfStack:
        """A stack of one leading axis, of distributions with any numbers of points; shorter ones are padded.

        Examples
        --------
        >>> from fastpriv import Pmf
        >>> from fastpriv.distributions import PmfStack
        >>> both = PmfStack.of([Pmf([0.0, 1.0], [0.5, 0.5]), Pmf([2.0], [1.0])])
        >>> both.shape, both[1]
        ((2,), Pmf([2.0], [1.0]))
        """
        rows = validate.sequence("pmfs", pmfs, "Pmf")
        for index, row in enumerate(rows):
            validate.instance(f"pmfs[{index}]", row, Pmf)
        points = max(map(len, rows), default=1)
        x, p = np.zeros((len(rows), points)), np.zeros((len(rows), points))
        for index, row in enumerate(rows):
            x[index, : len(row)], p[index, : len(row)] = row.values, row.probabilities
            x[index, len(row) :] = row.values[-1]
        return cls(x, p)

    def through_gaussian(self, sigma: ArrayLike) -> MixtureStack:
        """The distributions of value + N(0, sigma^2) noise; sigma broadcasts with ``shape``."""
        noise = validate.real("sigma", sigma, answer=False)
        validate.broadcastable("sigma", noise, "the leading axes", np.broadcast_to(0.0, self.shape))
        stack = MixtureStack(
            self.probabilities, self.values, noise[..., None], errors="record" if self.records else "raise"
        )
        if self.errors:
            texts = {**stack.errors, **errors_at(self, broadcast_positions(self.shape, stack.shape))}
            stack._set(errors=MappingProxyType(texts))
        return stack

    def _item(self, index: Index) -> Pmf:
        x, p = self.values[index], self.probabilities[index]
        selected = p != 0
        return Pmf(x, p) if selected.all() else Pmf(x[selected], p[selected])

    def __repr__(self) -> str:
        invalid = f", {len(self.errors)} of them invalid" if self.errors else ""
        return f"<PmfStack of shape {self.shape}{invalid}: {self.values.shape[-1]:,} points>"
