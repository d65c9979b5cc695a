"""The law of the secret: what a column says about the values that a mechanism may be given.

Notation: n possible values, of which the column holds some; a mechanism on integers sees places 0 .. n - 1, equal steps
apart, any other on values the numbers 0 .. n - 1 of the distinct ones in increasing (alphabetic) order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...distributions import Pmf
from ...errors import DomainError, ShapeError

__all__ = ["MAX_CATEGORIES", "MAX_POINTS", "Secret", "placed", "secret_of"]

FloatArray = NDArray[np.float64]
MAX_POINTS = 4096
MAX_CATEGORIES = 2**20
_AUTO_POINTS = 512
_AUTO_BINS = 256


@dataclass(frozen=True, eq=False)
class Secret:
    """The possible values and their law.

    Attributes
    ----------
    prior : Pmf
        The law; of categories, over their numbers.
    labels : tuple of str, optional
        Names of categories, in the order of ``prior.values``.
    records : int
        Number of records, 0 for a law that was given.
    bins : int, optional
        Number of bins that values were rounded to.
    places : ndarray of int64, shape (k,)
        Which inputs of a channel the points of ``prior`` are.
    inputs : int
        Number of possible values.
    step : float
        Distance of neighbouring places, in the unit of the column.
    """

    prior: Pmf
    labels: tuple[str, ...] | None
    records: int
    bins: int | None
    places: NDArray[np.int64]
    inputs: int
    step: float

    @property
    def weights(self) -> FloatArray:
        """Probability of each input of a channel, shape (inputs,)."""
        found = np.zeros(self.inputs)
        found[self.places] = self.prior.probabilities
        return found

    @property
    def span(self) -> float:
        """The range of the values, rounded up."""
        low, high = float(self.prior.values[0]), float(self.prior.values[-1])
        span = high - low
        return span if Fraction(high) - Fraction(low) <= Fraction(span) else math.nextafter(span, math.inf)


def secret_of(data: Any, bins: int | str | None, domain: str) -> Secret:
    """The law of a column (numbers, or names where categories are asked for), or a given one."""
    if isinstance(bins, str) and bins != "auto":
        raise DomainError(f"bins must be an integer, 'auto' or None; got {bins!r}. Pass one of these.")
    named = None if isinstance(data, Pmf) or domain != "values" else _names(data)
    if named is not None:
        return _categories(*named)
    if isinstance(data, Pmf):
        prior, records, used = data, 0, None
    else:
        if _validate.array("data", data).dtype.kind in "US" and np.size(data):
            raise DomainError(
                f"data must be finite numbers for this mechanism; got names such as {str(np.ravel(data)[0])!r}. Choose "
                "one for categories: rr, oue, sue, rappor, subset or exponential."
            )
        column = _validate.vector("data", data, "finite numbers", remedy="Remove or correct these entries.")
        records = column.size
        used = _bins(column, bins, domain)
        prior = Pmf.from_data(column, bins=used)
    if len(prior) < 2:
        raise DomainError(
            f"data must have at least two different values; got {float(prior.values[0])!r} throughout. A constant "
            "column has nothing to leak."
        )
    most = MAX_CATEGORIES if domain == "values" else MAX_POINTS
    if len(prior) > most:
        raise DomainError(
            f"data must have at most {most} distinct values when they are not rounded; got {len(prior)}. "
            "Pass bins='auto' or a number of bins (--bins auto, --bins 256)."
        )
    if domain != "integers":
        return Secret(prior, None, records, used, np.arange(len(prior)), len(prior), 1.0)
    return _lattice(prior, records, used, None if used is None else float(np.ptp(column)) / used)


def placed(secret: Secret, inputs: int) -> Secret:
    """The same for one channel: values that number its inputs are these, others are its inputs in increasing order."""
    x = secret.prior.values
    if secret.labels is None and (x == np.floor(x)).all() and x[0] >= 0 and x[-1] < inputs:
        return replace(secret, places=x.astype(np.int64), inputs=inputs)
    if secret.inputs != inputs:
        raise ShapeError(
            f"data must have one distinct value for each of the {_validate.shown(inputs)} inputs of the channel, or "
            f"number them from 0; got {secret.inputs} values. Pass a law over its inputs, or another channel."
        )
    return secret


def _bins(column: FloatArray, bins: int | str | None, domain: str) -> int | None:
    if bins != "auto":
        return None if bins is None else _validate.count("bins", bins, 2, MAX_POINTS)
    if domain == "integers" and np.ptp(column) < MAX_POINTS and (column == np.floor(column)).all():
        return None
    many = np.unique(column).size > _AUTO_POINTS
    return _AUTO_BINS if many or (domain == "integers" and np.ptp(column) > 0) else None


def _lattice(prior: Pmf, records: int, bins: int | None, step: float | None) -> Secret:
    """All places between the smallest and the largest value."""
    x = prior.values
    width = 1.0 if step is None else step
    places = np.round((x - x[0]) / width)
    if step is None and (not (x == np.floor(x)).all() or places[-1] >= 2**31):
        bad = x[x != np.floor(x)]
        shown = f"{float(bad[0])!r}" if bad.size else f"a range of {float(places[-1]):g}"
        raise DomainError(
            f"data must be whole numbers less than 2**31 apart for noise on integers; got {shown}. Pass bins, to round "
            "to the centres of equal bins (--bins 256)."
        )
    return Secret(prior, None, records, bins, places.astype(np.int64), int(places[-1]) + 1, width)


def _names(data: Any) -> tuple[NDArray[Any], NDArray[np.int64], int] | None:
    """Distinct names, their counts and the number of records; None for numbers."""
    given = _validate.array("data", data)
    if given.dtype.kind in "fiub":
        return None
    if given.ndim != 1 or given.size == 0:
        raise ShapeError(
            f"data must be one-dimensional with at least one entry; got shape {given.shape}. Pass one column."
        )
    cells = given.tolist()
    absent = [i for i, cell in enumerate(cells) if cell is None or cell != cell]
    if absent:
        raise DomainError(
            f"data must have no missing values; got {cells[absent[0]]!r} at index {absent[0]} ({len(absent)} of "
            f"{given.size} entries). Drop them, or name them."
        )
    names, counts = np.unique(np.array([str(cell) for cell in cells]), return_counts=True)
    return names, counts, given.size


def _categories(names: NDArray[Any], counts: NDArray[np.int64], records: int) -> Secret:
    if not 2 <= names.size <= MAX_CATEGORIES:
        raise DomainError(
            f"data must have at least two different values, and at most {MAX_CATEGORIES}; got {names.size}. Choose a "
            "column of categories."
        )
    prior = Pmf(np.arange(names.size, dtype=np.float64), counts / records)
    return Secret(prior, tuple(names.tolist()), records, None, np.arange(names.size), names.size, 1.0)
