"""The sensitive column: its entries, none of which becomes another, and the distribution of the secret.

Entries are numbers that doubles hold, or categories. Integers are categories by exact value, in their order, and
everything else by its text: numbers by size, other text in alphabetical order. A missing entry is refused.

Notation: n possible values, of which the column holds some. A mechanism on integers sees inputs 0 .. n - 1, equal steps
apart; any other mechanism on values sees the indices 0 .. n - 1 of the distinct values in increasing order.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Sequence
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

__all__ = ["MAX_CATEGORIES", "Domain", "SecretDistribution", "assign_inputs", "secret_distribution"]

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
        as_written = None if domain != "values" or count is not None else data.plain_numbers()
        if as_written is not None:
            data, spelling = as_written
        elif domain != "values" or count is not None:
            data = data.numbers()
    if not isinstance(data, Pmf) and domain == "values":
        categories = _categories(data)
        if categories is not None and count is not None:
            raise DomainError(f"bins must be left out for names, which cannot be rounded; got {count}. Drop it.")
        if categories is not None:
            return categories
    if isinstance(data, Pmf):
        distribution, records = data, 0
    else:
        _check_exact_numbers(data)
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
            )  # fmt: skip
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


def _of_categories(
    labels: Sequence[str], counts: Sequence[int], integers: tuple[int, ...] | None = None
) -> SecretDistribution:
    """Return the distribution of distinct entries in order: their texts, numbers of records, and values if integers."""
    records = np.array(counts)
    if not 2 <= len(labels) <= MAX_CATEGORIES:
        raise DomainError(
            f"data must have at least two different values, and at most {MAX_CATEGORIES}; got {len(labels)}. Choose a "
            "column of categories."
        )
    indices, total = np.arange(len(labels)), int(records.sum())
    prior = Pmf(indices.astype(np.float64), records / total)
    return SecretDistribution(prior, tuple(labels), total, None, indices, len(labels), 1.0, integers=integers)


def _categories(data: Any) -> SecretDistribution | None:
    """Return the distribution of the categories of a column; None for numbers that doubles hold as they are."""
    if isinstance(data, columns.Column):
        counts = _count_texts(data.texts())
        labels = data.sorted_categories(counts)
        integers = [columns.whole_number(label) for label in labels] if data.arrow_type is None else [None]
        whole = None if None in integers else tuple(x for x in integers if x is not None)
        return _of_categories(labels, [counts[label] for label in labels], whole)
    entries = _inexact_entries(data)
    if entries is None:
        return None
    if not _all_numbers(entries):
        counts = _count_texts(entries)
        labels = columns.sorted_categories(counts)
        return _of_categories(labels, [counts[label] for label in labels])
    if _inexact_numbers(entries) is None:
        return None
    records = Counter(entries)
    values = sorted(records)
    whole = tuple(int(x) for x in values) if all(isinstance(x, numbers.Integral) for x in values) else None
    return _of_categories(list(map(str, values)), [records[x] for x in values], whole)


def _check_exact_numbers(data: Any) -> None:
    """Refuse names, integers that no double equals, and different numbers that round to one double."""
    entries = _inexact_entries(data)
    if entries is None:
        return
    name = next((entry for entry in entries if isinstance(entry, (str, bytes))), None)
    if name is not None:
        raise DomainError(
            f"data must be finite numbers for this mechanism; got names such as {name!r}. Choose one for categories: "
            "rr, oue, sue, rappor, subset or exponential; of a file, read numbers with read_column."
        )
    if not _all_numbers(entries):
        return  # the conversion to doubles raises the errors for other entries
    fault = _inexact_numbers(entries)
    if fault is None:
        return
    if len(fault) == 1:
        raise DomainError(
            "data must be whole numbers that a double is, as all up to 2**53 are; got "
            f"{fault[0]} at index {entries.index(*fault)} ({len(entries)} entries in all). {_EXACTNESS_REMEDY}"
        )
    raise DomainError(
        f"data must be numbers that doubles tell apart; got {fault[0]} and {fault[1]}, which become one. "
        f"{_EXACTNESS_REMEDY}"
    )


def _inexact_entries(data: Any) -> Sequence[Any] | None:
    """Return the entries, or None if all are doubles, truth values or integers that are doubles."""
    array = data
    if isinstance(data, (list, tuple)):
        kinds = set(map(type, data))
        if data and not any(issubclass(kind, (list, tuple, dict, set, np.ndarray)) for kind in kinds):
            if all(issubclass(kind, (bool, np.bool_, float)) for kind in kinds):
                return None
            if all(issubclass(kind, (int, np.integer)) for kind in kinds):
                return data if any(abs(int(entry)) > columns.LARGEST_EXACT_INTEGER for entry in data) else None
            array = np.empty(len(data), dtype=object)
            array[:] = data
    array = validate.array("data", array)
    kind = array.dtype.kind
    if kind == "b" or (kind == "f" and array.dtype.itemsize <= 8):
        return None
    if kind in "iu" and not (
        np.any(array > columns.LARGEST_EXACT_INTEGER) or np.any(array < -columns.LARGEST_EXACT_INTEGER)
    ):
        return None
    if array.ndim != 1 or array.size == 0:
        if kind in "iuf":
            return None
        raise ShapeError(
            f"data must be one-dimensional with at least one entry; got shape {array.shape}. Pass one column."
        )
    if kind in "mM":
        missing = np.isnat(array).tolist()
        entries = array.astype(str).tolist()
    else:
        entries = array.tolist()
        missing = [_is_missing(entry) for entry in entries]
        if kind == "f" and np.unique(array).size == np.unique(array.astype(np.float64)).size:
            return None
    if any(missing):
        index = missing.index(True)
        raise DomainError(
            f"data must have no missing values; got {entries[index]!r} at index {index} ({sum(missing)} of "
            f"{array.size} entries). Drop them, or name them."
        )
    return list(entries)


def _is_missing(entry: Any) -> bool:
    """Whether Python, pandas or a float says that there is no value."""
    if isinstance(entry, (float, complex, np.inexact)):
        return bool(entry != entry)
    if isinstance(entry, Decimal):
        return entry.is_nan()
    return entry is None or type(entry).__name__ in ("NAType", "NaTType")


def _all_numbers(entries: Sequence[Any]) -> bool:
    return all(issubclass(kind, (numbers.Real, Decimal, np.bool_)) for kind in set(map(type, entries)))


def _inexact_numbers(entries: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return an integer that no double equals, or two numbers that round to one double; None if there are none."""
    first: dict[float, Any] = {}
    for entry in dict.fromkeys(entries):
        try:
            number = float(entry)
        except OverflowError:
            return (entry,)
        if isinstance(entry, numbers.Integral) and number != int(entry):
            return (entry,)
        if first.setdefault(number, entry) != entry:
            return first[number], entry
    return None


def _count_texts(entries: Sequence[Any]) -> Counter[str]:
    """Count the records of each text; different entries of one text are refused."""
    counts: Counter[str] = Counter()
    kinds: set[type] = set()
    for start in range(0, len(entries), columns.CELLS_PER_BATCH):
        batch = entries[start : start + columns.CELLS_PER_BATCH]
        counts.update(map(str, batch))
        kinds.update(map(type, batch))
    if not kinds <= {str, np.str_}:
        by_text: dict[str, Any] = {}
        for entry in entries:
            other = by_text.setdefault(str(entry), entry)
            if other is not entry and other != entry:
                raise DomainError(
                    f"data must be entries whose text tells them apart; got {other!r} and {entry!r}. Make them of one "
                    "type, or name them."
                )
    return counts
