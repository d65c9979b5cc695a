"""The law of the secret: what a column says about the values that a mechanism may be given.

Notation: n possible values, of which the column holds some; a mechanism on integers sees places 0 .. n - 1, equal steps
apart, any other on values the numbers 0 .. n - 1 of the distinct ones in increasing order: of numbers by size, of other
categories by alphabet.
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
from .columns import Column, whole_number
from .entries import Categories, categories_of, held_exactly

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
    integers : tuple of int, optional
        The integers that categories are, where they are integers.
    texts : tuple of str, optional
        How numbers are written in the file they come from, in the order of ``prior.values``.
    """

    prior: Pmf
    labels: tuple[str, ...] | None
    records: int
    bins: int | None
    places: NDArray[np.int64]
    inputs: int
    step: float
    integers: tuple[int, ...] | None = None
    texts: tuple[str, ...] | None = None

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
    spelling: dict[float, str] = {}
    if isinstance(data, Column):
        plain = None if domain != "values" or isinstance(bins, int) else data.plain_numbers()
        if plain is not None:
            data, spelling = plain
        elif domain != "values" or isinstance(bins, int):
            data = data.numbers()
    if not isinstance(data, Pmf) and domain == "values":
        named = categories_of(data)
        if named is not None:
            return _categories(named, int(named.counts.sum()))
    if isinstance(data, Pmf):
        prior, records, used = data, 0, None
    else:
        held_exactly(data)
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
        texts = tuple(spelling[x] for x in prior.values.tolist()) if spelling and used is None else None
        return Secret(prior, None, records, used, np.arange(len(prior)), len(prior), 1.0, texts=texts)
    return _lattice(prior, records, used, None if used is None else float(np.ptp(column)) / used)


def placed(secret: Secret, inputs: int) -> Secret:
    """The same for one channel: values that number its inputs are these, others are its inputs in increasing order."""
    x = secret.prior.values
    if secret.labels is not None:
        numbers = [whole_number(label) for label in secret.labels]
        if all(number is not None and 0 <= number < min(inputs, 2**53) for number in numbers):
            law = Pmf(np.array(numbers, dtype=np.float64), secret.prior.probabilities)
            return replace(
                secret, prior=law, labels=None, integers=None, places=law.values.astype(np.int64), inputs=inputs
            )
    elif (x == np.floor(x)).all() and x[0] >= 0 and x[-1] < inputs:
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


def _categories(found: Categories, records: int) -> Secret:
    names, counts = found.labels, found.counts
    if not 2 <= len(names) <= MAX_CATEGORIES:
        raise DomainError(
            f"data must have at least two different values, and at most {MAX_CATEGORIES}; got {len(names)}. Choose a "
            "column of categories."
        )
    prior = Pmf(np.arange(len(names), dtype=np.float64), counts / records)
    places = np.arange(len(names))
    return Secret(prior, names, records, None, places, len(names), 1.0, integers=found.integers)
