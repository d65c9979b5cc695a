"""The sensitive column: its entries, none of which becomes another, and the distribution of the secret.

Entries are numbers that doubles hold, or categories. Integers are categories by exact value, in their order, and
everything else by its text: numbers by size, other text in alphabetical order. A missing entry is refused.

Notation: n possible values, of which the column holds some. A mechanism on integers sees inputs 0 .. n - 1, equal steps
apart; any other mechanism on values sees the indices 0 .. n - 1 of the distinct values in increasing order.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ...base import validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import equal_fields
from ...base.numerics import FloatArray, IntArray, next_above
from ...distributions import Pmf, columns

Domain = Literal["numbers", "integers", "values"]  # the values that a mechanism takes
MAX_CATEGORIES = 2**20  # distinct values of a mechanism of categories: its quantities pass over all of them
_MAX_RANGE = 2**31  # whole numbers farther apart, and more bins, are refused
_BYTES_PER_INPUT = 64  # of memory, of a mechanism on integers
# Remedy for numbers that doubles do not hold exactly.
_EXACTNESS_REMEDY = "Subtract a constant, as in data - min(data), or choose a mechanism for categories, such as rr."


@dataclass(frozen=True, eq=False)
class SecretDistribution:
    """The possible values of the secret and their distribution.

    Attributes
    ----------
    prior : Pmf
        The distribution of what the mechanism is given; of categories, over their indices.
    labels : tuple of str, optional
        Names of categories, in the order of ``prior.values``.
    records : int
        Number of records, 0 for a distribution that was given.
    bins : int, optional
        Number of bins to whose centres the release rounds values first; None for values as they are.
    input_indices : ndarray of int64, shape (k,)
        Which inputs of a channel the points of ``prior`` are.
    inputs : int
        Number of possible values.
    step : float
        Distance of neighbouring inputs, in the unit of the column.
    integers : tuple of int, optional
        The integers that categories are, where they are integers.
    texts : tuple of str, optional
        How numbers are written in the file they come from, in the order of ``prior.values``.
    before_rounding : Pmf, optional
        The distribution of the values before they are rounded; None where they are not.
    """

    prior: Pmf
    labels: tuple[str, ...] | None
    records: int
    bins: int | None
    input_indices: IntArray
    inputs: int
    step: float
    integers: tuple[int, ...] | None = None
    texts: tuple[str, ...] | None = None
    before_rounding: Pmf | None = None

    def __eq__(self, other: object) -> Any:
        return equal_fields(self, other)

    @property
    def unrounded(self) -> Pmf:
        """The distribution of the values as they are, whatever the release does to them."""
        return self.prior if self.before_rounding is None else self.before_rounding

    @property
    def deviation(self) -> float:
        """Standard deviation of the values as they are."""
        x, p, span = self.unrounded.values, self.unrounded.probabilities, self.span
        scaled = x / span - x[0] / span  # in [0, 1], so that no square overflows
        return span * float(np.sqrt(np.sum(p * (scaled - np.sum(p * scaled)) ** 2)))

    @property
    def entropy_bits(self) -> float:
        """Entropy of the values as they are."""
        p = self.unrounded.probabilities
        return -float(np.sum(p * np.log2(p)))

    @property
    def input_probabilities(self) -> FloatArray:
        """Probability of each input of a channel, shape (inputs,)."""
        probabilities = np.zeros(self.inputs)
        probabilities[self.input_indices] = self.prior.probabilities
        return probabilities

    @property
    def span(self) -> float:
        """The range of the values as they are, rounded up."""
        low, high = float(self.unrounded.values[0]), float(self.unrounded.values[-1])
        span = high - low
        return span if Fraction(high) - Fraction(low) <= Fraction(span) else next_above(span)


def secret_distribution(data: Any, bins: Any, domain: Domain) -> SecretDistribution:
    """Return the distribution of a column (numbers, or names for a mechanism of values), or one that was given."""
    if isinstance(bins, str) and bins == "auto":
        raise DomainError(
            "bins must be an integer or None; got 'auto'. Nothing is rounded unasked any more: leave bins out for the "
            "values as they are, or pass a number of bins to release rounded values."
        )
    count = None if bins is None else validate.count("bins", bins, 2, _MAX_RANGE)
    spelling: dict[float, str] = {}
    if isinstance(data, columns.Column):
        as_written = data.plain_numbers() if domain == "values" and count is None else (data.numbers(), {})
        if as_written is None:
            return _categories(data.texts(), data.sorted_categories, numbered=data.arrow_type is None)
        data, spelling = as_written
    elif not isinstance(data, Pmf):
        data = _exact_entries(data, domain)
        if isinstance(data, list) and count is not None:
            raise DomainError(f"bins must be left out for names, which cannot be rounded; got {count}. Drop it.")
        if isinstance(data, list):
            return _categories(data, columns.sorted_categories)
    if isinstance(data, Pmf):
        distribution, records = data, 0
    else:
        column = validate.vector("data", data, "finite numbers", remedy="Remove or correct these entries.")
        distribution, records = Pmf.from_data(column), column.size
    if len(distribution) < 2:
        raise DomainError(
            f"data must have at least two different values; got {float(distribution.values[0])!r} throughout. A "
            "constant column has nothing to leak."
        )
    prior, cells = (distribution, None) if count is None else _round_to_bins(distribution, records, count)
    if domain == "values" and len(prior) > MAX_CATEGORIES:
        raise DomainError(
            f"data must have at most {MAX_CATEGORIES} distinct values for a mechanism of categories; got {len(prior)}. "
            "Choose gaussian, or pass bins to release rounded values (--bins 256)."
        )
    before = distribution if prior is not distribution else None
    if domain != "integers":
        texts = tuple(spelling[x] for x in prior.values.tolist()) if spelling and count is None else None
        return SecretDistribution(
            prior, None, records, count, np.arange(len(prior)), len(prior), 1.0, texts=texts, before_rounding=before
        )
    if cells is None:
        indices, step = _integer_indices(distribution), 1.0
    else:
        indices, step = cells, float(np.ptp(distribution.values)) / (count or 1)
    inputs = int(indices[-1]) + 1
    validate.memory("data", _BYTES_PER_INPUT * inputs, "Pass bins, to release rounded values (--bins 256).")
    return SecretDistribution(prior, None, records, count, indices, inputs, step, before_rounding=before)


def assign_inputs(secret: SecretDistribution, inputs: int) -> SecretDistribution:
    """Assign the values to the inputs of a channel: by index where all are indices, else in increasing order."""
    x = secret.prior.values
    if secret.labels is not None:
        indices = [columns.whole_number(label) for label in secret.labels]
        if all(index is not None and 0 <= index < min(inputs, columns.LARGEST_EXACT_INTEGER) for index in indices):
            prior = Pmf(np.array(indices, dtype=np.float64), secret.prior.probabilities)
            return replace(
                secret, prior=prior, labels=None, integers=None, input_indices=prior.values.astype(np.int64),
                inputs=inputs,
            )
    elif (x == np.floor(x)).all() and x[0] >= 0 and x[-1] < inputs:
        return replace(secret, input_indices=x.astype(np.int64), inputs=inputs)
    if secret.inputs != inputs:
        raise ShapeError(
            f"data must have one distinct value for each of the {validate.shown(inputs)} inputs of the channel, or "
            f"number them from 0; got {secret.inputs} values. Pass a prior over its inputs, or another channel."
        )
    return secret


def _round_to_bins(distribution: Pmf, records: int, bins: int) -> tuple[Pmf, IntArray]:
    """Return the distribution of the centres of equal bins over the range, and the indices of the non-empty bins."""
    x, p = distribution.values, distribution.probabilities
    low, span = float(x[0]), float(x[-1]) - float(x[0])
    cell = np.minimum(((x - low) / span * bins).astype(np.int64), bins - 1)
    centres, first, inverse = np.unique(low + (cell + 0.5) * (span / bins), return_index=True, return_inverse=True)
    # Sums of counts, where there are counts, are exact.
    mass = np.bincount(inverse, np.rint(p * records) if records else p)
    return Pmf(centres, mass / records if records else mass), cell[first]


def _integer_indices(distribution: Pmf) -> IntArray:
    """Return the indices of whole numbers among all from the smallest to the largest."""
    x = distribution.values
    whole = x == np.floor(x)
    if not whole.all() or x[-1] - x[0] >= _MAX_RANGE:
        shown = f"a range of {float(x[-1] - x[0]):g}" if whole.all() else repr(float(x[~whole][0]))
        raise DomainError(
            f"data must be whole numbers less than 2**31 apart for noise on integers; got {shown}. Pass bins, to "
            "release values rounded to the centres of equal bins (--bins 256)."
        )
    return np.asarray(x - x[0], dtype=np.int64)


def _categories(
    texts: Sequence[str], in_order: Callable[[Iterable[str]], list[str]], *, numbered: bool = True
) -> SecretDistribution:
    """Return the distribution of a column of names; ``numbered`` says that names may be those of integers."""
    records = Counter(texts)
    labels = in_order(records)
    if not 2 <= len(labels) <= MAX_CATEGORIES:
        raise DomainError(
            f"data must have at least two different values, and at most {MAX_CATEGORIES}; got {len(labels)}. Choose a "
            "column of categories."
        )
    indices = np.arange(len(labels))
    prior = Pmf(indices.astype(np.float64), np.array([records[label] for label in labels]) / len(texts))
    integers = [columns.whole_number(label) for label in labels] if numbered else [None]
    whole = None if None in integers else tuple(x for x in integers if x is not None)
    return SecretDistribution(prior, tuple(labels), len(texts), None, indices, len(labels), 1.0, integers=whole)


def _exact_entries(data: Any, domain: Domain) -> Any:
    """Return the column if doubles hold its numbers, else the texts of its entries; refuse these for numbers.

    Doubles hold numbers if all integers equal a double, and no two of the others round to one double.
    """
    array = data
    if isinstance(data, (list, tuple)) and not all(isinstance(entry, (float, list, tuple)) for entry in data):
        array = np.empty(len(data), dtype=object)  # NumPy would round integers, or make texts of all entries
        array[:] = data
    array = validate.array("data", array)
    kind, largest = array.dtype.kind, columns.LARGEST_EXACT_INTEGER
    if (kind in "bf" and array.dtype.itemsize <= 8) or (kind in "iu" and np.all(np.abs(array) <= largest)):
        return array
    entries: list[Any] = (array.astype(str) if kind in "mM" else array).ravel().tolist()
    if array.ndim != 1 or array.size == 0 or any(type(entry).__hash__ is None for entry in entries):
        raise ShapeError(
            f"data must be one-dimensional with at least one entry; got shape {array.shape}. Pass one "
            "column: frame['age'] of a data frame, fastpriv.read_column(path, 'age') of a file."
        )
    missing = [_is_missing(entry) or (kind in "mM" and entry == "NaT") for entry in entries]
    if any(missing):
        index = missing.index(True)
        raise DomainError(
            f"data must have no missing values; got {entries[index]!r} at index {index} ({sum(missing)} of "
            f"{array.size} entries). Drop them, or name them."
        )
    texts: dict[Any, str] = {}
    for entry in entries:
        texts.setdefault(entry, str(entry))
    if all(isinstance(entry, (numbers.Real, Decimal, np.bool_)) for entry in texts):
        inexact = _inexact_numbers(texts)
        if not inexact:
            return np.array(entries, dtype=np.float64)
        fault = f"{' and '.join(map(str, inexact))}. {_EXACTNESS_REMEDY}"
    else:
        name = next((entry for entry in texts if isinstance(entry, (str, bytes))), entries[0])
        fault = f"{validate.shown(name)}. Choose a mechanism for categories, such as rr."
    if domain != "values":
        raise DomainError(f"data must be numbers that doubles hold, for this mechanism; got {fault}")
    if len(set(texts.values())) < len(texts):
        raise DomainError(
            f"data must be entries whose text tells them apart; got {len(texts)} entries with "
            f"{len(set(texts.values()))} texts. Make them of one type, or name them."
        )
    return [texts[entry] for entry in entries]


def _inexact_numbers(distinct: Iterable[Any]) -> list[Any]:
    """Return an integer that no double equals, or two numbers that round to one double; none if there are none."""
    first: dict[float, Any] = {}
    for entry in distinct:
        try:
            number = float(entry)
        except OverflowError:
            return [entry]
        if isinstance(entry, numbers.Integral) and number != int(entry):
            return [entry]
        if first.setdefault(number, entry) != entry:
            return [first[number], entry]
    return []


def _is_missing(entry: Any) -> bool:
    """Whether Python, pandas or a float says that there is no value."""
    if isinstance(entry, Decimal):
        return entry.is_nan()
    if isinstance(entry, (float, complex, np.inexact)):
        return bool(entry != entry)
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")
