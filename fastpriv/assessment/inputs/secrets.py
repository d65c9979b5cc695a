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

__all__ = ["MAX_CATEGORIES", "Secret", "placed", "secret_of"]

FloatArray = NDArray[np.float64]
MAX_CATEGORIES = 2**20
_LARGEST = 2**31  # whole numbers farther apart, and more bins, are refused
_BYTES = 64  # of memory for each place of a mechanism on integers


@dataclass(frozen=True, eq=False)
class Secret:
    """The possible values and their law.

    Attributes
    ----------
    prior : Pmf
        The law of what the mechanism is given; of categories, over their numbers.
    labels : tuple of str, optional
        Names of categories, in the order of ``prior.values``.
    records : int
        Number of records, 0 for a law that was given.
    bins : int, optional
        Number of bins to whose centres the release rounds values first; None for values as they are.
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
    rounded_from : Pmf, optional
        The law of the values before they are rounded; None where they are not.
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
    rounded_from: Pmf | None = None

    @property
    def unrounded(self) -> Pmf:
        """The law of the values as they are, whatever the release does to them."""
        return self.prior if self.rounded_from is None else self.rounded_from

    @property
    def deviation(self) -> float:
        """Standard deviation of the values as they are."""
        law, span = self.unrounded, self.span
        shares = law.values / span - law.values[0] / span
        return span * float(np.sqrt(np.sum(law.probabilities * (shares - np.sum(law.probabilities * shares)) ** 2)))

    @property
    def entropy_bits(self) -> float:
        """Entropy of the values as they are."""
        p = self.unrounded.probabilities
        return -float(np.sum(p * np.log2(p)))

    @property
    def weights(self) -> FloatArray:
        """Probability of each input of a channel, shape (inputs,)."""
        found = np.zeros(self.inputs)
        found[self.places] = self.prior.probabilities
        return found

    @property
    def span(self) -> float:
        """The range of the values as they are, rounded up."""
        low, high = float(self.unrounded.values[0]), float(self.unrounded.values[-1])
        span = high - low
        return span if Fraction(high) - Fraction(low) <= Fraction(span) else math.nextafter(span, math.inf)


def secret_of(data: Any, bins: Any, domain: str) -> Secret:
    """The law of a column (numbers, or names where categories are asked for), or a given one."""
    if isinstance(bins, str) and bins == "auto":
        raise DomainError(
            "bins must be an integer or None; got 'auto'. Nothing is rounded unasked any more: leave bins out for the "
            "values as they are, or pass a number of bins to release rounded values."
        )
    used = None if bins is None else _validate.count("bins", bins, 2, _LARGEST)
    spelling: dict[float, str] = {}
    if isinstance(data, Column):
        plain = None if domain != "values" or used is not None else data.plain_numbers()
        if plain is not None:
            data, spelling = plain
        elif domain != "values" or used is not None:
            data = data.numbers()
    if not isinstance(data, Pmf) and domain == "values":
        named = categories_of(data)
        if named is not None and used is not None:
            raise DomainError(f"bins must be left out for names, which cannot be rounded; got {used}. Drop it.")
        if named is not None:
            return _categories(named, int(named.counts.sum()))
    if isinstance(data, Pmf):
        law, records = data, 0
    else:
        held_exactly(data)
        column = _validate.vector("data", data, "finite numbers", remedy="Remove or correct these entries.")
        law, records = Pmf.from_data(column), column.size
    if len(law) < 2:
        raise DomainError(
            f"data must have at least two different values; got {float(law.values[0])!r} throughout. A constant "
            "column has nothing to leak."
        )
    prior, cells = (law, None) if used is None else _rounded(law, records, used)
    if domain == "values" and len(prior) > MAX_CATEGORIES:
        raise DomainError(
            f"data must have at most {MAX_CATEGORIES} distinct values for a mechanism of categories; got {len(prior)}. "
            "Choose gaussian, or pass bins to release rounded values (--bins 256)."
        )
    before = law if prior is not law else None
    if domain != "integers":
        texts = tuple(spelling[x] for x in prior.values.tolist()) if spelling and used is None else None
        return Secret(
            prior, None, records, used, np.arange(len(prior)), len(prior), 1.0, texts=texts, rounded_from=before
        )
    places, width = _lattice(law) if cells is None else (cells, float(np.ptp(law.values)) / (used or 1))
    inputs = int(places[-1]) + 1
    _validate.memory("data", _BYTES * inputs, "Pass bins, to release rounded values (--bins 256).")
    return Secret(prior, None, records, used, places, inputs, width, rounded_from=before)


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


def _rounded(law: Pmf, records: int, bins: int) -> tuple[Pmf, NDArray[np.int64]]:
    """The law of the centres of equal bins over the range, and the numbers of the bins that hold something."""
    x, p = law.values, law.probabilities
    low, span = float(x[0]), float(x[-1]) - float(x[0])
    cell = np.minimum(((x - low) / span * bins).astype(np.int64), bins - 1)
    centres, first, place = np.unique(low + (cell + 0.5) * (span / bins), return_index=True, return_inverse=True)
    mass = np.bincount(place, np.rint(p * records) if records else p)
    return Pmf(centres, mass / records if records else mass), cell[first]


def _lattice(law: Pmf) -> tuple[NDArray[np.int64], float]:
    """The places of whole numbers: all numbers between the smallest and the largest count."""
    x = law.values
    whole = x == np.floor(x)
    if not whole.all() or x[-1] - x[0] >= _LARGEST:
        shown = f"a range of {float(x[-1] - x[0]):g}" if whole.all() else repr(float(x[~whole][0]))
        raise DomainError(
            f"data must be whole numbers less than 2**31 apart for noise on integers; got {shown}. Pass bins, to "
            "release values rounded to the centres of equal bins (--bins 256)."
        )
    return (x - x[0]).astype(np.int64), 1.0


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
