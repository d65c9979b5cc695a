"""The entries of a column in memory: numbers that doubles hold, or categories, none of which becomes another.

Integers are categories by exact value, in their order, and everything else by its text: numbers by size, other text by
alphabet. What is missing is refused.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...errors import DomainError, ShapeError
from .columns import Column, in_order, whole_number

__all__ = ["Categories", "categories_of", "held_exactly"]

_EXACT = 2**53  # whole numbers up to it are doubles
_BATCH = 2**17  # entries between two looks at Ctrl-C
_REMEDY = "Subtract a constant, as in data - min(data), or choose a mechanism for categories, such as rr."


@dataclass(frozen=True)
class Categories:
    """Different entries, in order.

    Attributes
    ----------
    labels : tuple of str
        The text of each.
    counts : ndarray of int64
        How many records hold it.
    integers : tuple of int, optional
        The integers that they are; None for others.
    """

    labels: tuple[str, ...]
    counts: NDArray[np.int64]
    integers: tuple[int, ...] | None = None


def categories_of(data: Any) -> Categories | None:
    """The categories of a column; None for numbers that doubles hold as they are."""
    if isinstance(data, Column):
        counts = _counted(data.texts())
        labels = data.in_order(counts)
        whole = None if data.kind is not None else _integers(labels)
        return Categories(tuple(labels), np.array([counts[label] for label in labels]), whole)
    cells = _cells(data)
    if cells is None:
        return None
    if not _are_numbers(cells):
        texts = _counted(cells)
        labels = in_order(texts)
        return Categories(tuple(labels), np.array([texts[label] for label in labels]))
    if _changed(cells) is None:
        return None
    sizes = Counter(cells)
    values = sorted(sizes)
    whole = tuple(int(x) for x in values) if all(isinstance(x, numbers.Integral) for x in values) else None
    return Categories(tuple(map(str, values)), np.array([sizes[x] for x in values]), whole)


def held_exactly(data: Any) -> None:
    """Refuses names where numbers are needed, integers that no double is, and numbers that become one double."""
    cells = _cells(data)
    if cells is None:
        return
    name = next((cell for cell in cells if isinstance(cell, (str, bytes))), None)
    if name is not None:
        raise DomainError(
            f"data must be finite numbers for this mechanism; got names such as {name!r}. Choose one for categories: "
            "rr, oue, sue, rappor, subset or exponential; of a file, read numbers with read_column."
        )
    if not _are_numbers(cells):
        return  # named where they are made doubles
    fault = _changed(cells)
    if fault is None:
        return
    if len(fault) == 1:
        place = cells.index(*fault)
        raise DomainError(
            "data must be whole numbers that a double is, as all up to 2**53 are; got "
            f"{fault[0]} at index {place} ({len(cells)} entries in all). {_REMEDY}"
        )
    raise DomainError(
        f"data must be numbers that doubles tell apart; got {fault[0]} and {fault[1]}, which become one. {_REMEDY}"
    )


def _cells(data: Any) -> Sequence[Any] | None:
    """The entries where they are not all floats, small integers or truth values; None otherwise."""
    given = data
    if isinstance(data, (list, tuple)):
        kinds = set(map(type, data))
        if data and not any(issubclass(kind, (list, tuple, dict, set, np.ndarray)) for kind in kinds):
            if all(issubclass(kind, (bool, np.bool_, float)) for kind in kinds):
                return None
            if all(issubclass(kind, (int, np.integer)) for kind in kinds):
                return data if any(cell > _EXACT or cell < -_EXACT for cell in data) else None
            given = np.empty(len(data), dtype=object)
            given[:] = data
    given = _validate.array("data", given)
    kind = given.dtype.kind
    if kind == "b" or (kind == "f" and given.dtype.itemsize <= 8):
        return None
    if kind in "iu" and not (np.any(given > _EXACT) or np.any(given < -_EXACT)):
        return None
    if given.ndim != 1 or given.size == 0:
        if kind in "iuf":
            return None
        raise ShapeError(
            f"data must be one-dimensional with at least one entry; got shape {given.shape}. Pass one column."
        )
    if kind in "mM":
        absent = np.isnat(given).tolist()
        cells = given.astype(str).tolist()
    else:
        cells = given.tolist()
        absent = [_is_missing(cell) for cell in cells]
        if kind == "f" and np.unique(given).size == np.unique(given.astype(np.float64)).size:
            return None
    if any(absent):
        place = absent.index(True)
        raise DomainError(
            f"data must have no missing values; got {cells[place]!r} at index {place} ({sum(absent)} of {given.size} "
            "entries). Drop them, or name them."
        )
    return list(cells)


def _is_missing(cell: Any) -> bool:
    """Whether Python, pandas or a float says that there is no value."""
    if isinstance(cell, (float, complex, np.inexact)):
        return bool(cell != cell)
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def _are_numbers(cells: Sequence[Any]) -> bool:
    return all(issubclass(kind, (numbers.Real, Decimal, np.bool_)) for kind in set(map(type, cells)))


def _changed(cells: Sequence[Any]) -> tuple[Any, ...] | None:
    """An integer that no double is, or two numbers that become one double; None where there are none."""
    first: dict[float, Any] = {}
    for cell in dict.fromkeys(cells):
        try:
            number = float(cell)
        except OverflowError:
            return (cell,)
        if isinstance(cell, numbers.Integral) and number != int(cell):
            return (cell,)
        if first.setdefault(number, cell) != cell:
            return first[number], cell
    return None


def _counted(cells: Sequence[Any]) -> Counter[str]:
    """How often each text stands there; entries that differ where their texts do not are refused."""
    found: Counter[str] = Counter()
    kinds: set[type] = set()
    for start in range(0, len(cells), _BATCH):
        part = cells[start : start + _BATCH]
        found.update(map(str, part))
        kinds.update(map(type, part))
    if not kinds <= {str, np.str_}:
        by_text: dict[str, Any] = {}
        for cell in cells:
            other = by_text.setdefault(str(cell), cell)
            if other is not cell and other != cell:
                raise DomainError(
                    f"data must be entries whose text tells them apart; got {other!r} and {cell!r}. Make them of one "
                    "type, or name them."
                )
    return found


def _integers(labels: Sequence[str]) -> tuple[int, ...] | None:
    """The integers that all labels are."""
    whole = [whole_number(label) for label in labels]
    return None if None in whole else tuple(x for x in whole if x is not None)
