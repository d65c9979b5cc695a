"""Reading one column, of numbers or of categories, from a CSV or Parquet file, with errors that say where to look.

Categories are the text in the file. Numbers are doubles, and an integer that no double is, or two numbers that become
one double, are refused: nothing that differs in the file is the same in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...errors import DomainError
from .tables import Table

__all__ = ["Column", "in_order", "opened_column", "read_categories", "read_column", "whole_number"]

FloatArray = NDArray[np.float64]
_MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))
_EXACT = 2**53  # whole numbers up to it are doubles
_DIGITS = 15  # numbers of so many digits are different doubles where they differ
_BATCH = 2**17  # cells between two looks at Ctrl-C
_WHOLE = re.compile(r"[+-]?\d+")
_WHOLE_POINT = re.compile(r"[+-]?\d+(\.0*)?")
_COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
_POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_LEADING_ZERO = re.compile(r"[+-]?0\d")


def read_column(
    path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error", sep: str | None = None,
    decimal: str | None = None, encoding: str | None = None, header: bool | None = None,
) -> FloatArray:  # fmt: skip
    """Read one column of numbers from a CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        A Parquet file, or text with one record a line; or such a file packed by gzip, bzip2 or xz, or alone in a zip
        archive.
    column : str, optional
        Name of the column; it may be left out when the file has one column.
    missing : {"error", "drop"}
        What to do with empty cells and the marks ``?``, ``NA``, ``NaN`` and ``null``.
    sep : str, optional
        What separates cells, one character or ``"tab"``. By default the comma, semicolon, tab or bar that cuts all
        lines alike; an error where several do.
    decimal : {".", ","}, optional
        What stands before the decimals. By default the comma where all cells are numbers with one; an error where a
        comma or point may as well separate thousands, as in ``1,234``.
    encoding : str, optional
        Of the text, as Python calls it: ``latin-1``, ``cp1252``, ``utf-16``. Default: UTF-8, with or without a mark.
    header : bool, optional
        Whether names stand in line 1. By default they do, unless line 1 holds numbers alone; columns without names are
        called ``1``, ``2`` and so on. A number beside names in line 1 is an error where it is to name the column.

    Returns
    -------
    ndarray of float64, shape (n,)
        The column in the order of the file.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DomainError
        For an unknown column, text in place of a number, missing or infinite values, whole numbers that no double is,
        different numbers that are the same double, lines of unequal length, an empty file or column, what is ambiguous,
        or text in another encoding. Rows are counted from 1, without the line of names.
    BackendMissingError
        For a Parquet file without pyarrow.

    Examples
    --------
    >>> import tempfile, os
    >>> from fastpriv import read_column
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("name;height\\nAda;1,65\\nAlan;1,8\\n")
    >>> read_column(path, "height")
    array([1.65, 1.8 ])
    """
    _validate.choice("missing", missing, ("error", "drop"))
    table = Table(path, sep=sep, decimal=decimal, encoding=encoding, header=header)
    return opened_column(table, column, missing).numbers()


def read_categories(
    path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error", sep: str | None = None,
    decimal: str | None = None, encoding: str | None = None, header: bool | None = None,
) -> Any:  # fmt: skip
    """Read one column of categories from a CSV or Parquet file: the text of its cells.

    Parameters
    ----------
    path : path-like
        As for ``read_column``.
    column : str, optional
        Name of the column; it may be left out when the file has one column.
    missing : {"error", "drop", "keep"}
        What to do with empty cells and the marks ``?``, ``NA``, ``NaN`` and ``null``; ``keep`` makes them one category,
        called ``?``.
    sep, decimal, encoding, header
        As for ``read_column``. The text of a cell is what stands there, whatever ``decimal`` is.

    Returns
    -------
    ndarray of str, shape (n,)
        The column in the order of the file, without the blanks around a cell; ``01234`` and ``1234`` are two
        categories, ``1.0`` and ``1`` too. Of Parquet columns that are not text, the text that Python writes.

    Raises
    ------
    FileNotFoundError, DomainError, BackendMissingError
        As ``read_column``, but for text, which is welcome; and where the name of the column is one of its categories.

    Examples
    --------
    >>> import tempfile, os
    >>> from fastpriv import read_categories
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("name,zip\\nAda,01234\\nAlan,\\nEmmy,1234\\n")
    >>> read_categories(path, "zip", missing="keep")
    array(['01234', '?', '1234'], dtype='<U5')
    """
    _validate.choice("missing", missing, ("error", "drop", "keep"))
    table = Table(path, sep=sep, decimal=decimal, encoding=encoding, header=header)
    texts = opened_column(table, column, missing).texts()
    widest = max(map(len, texts))
    _validate.memory("column", 4 * widest * len(texts), "Shorten its longest category.")
    return np.array(texts)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a file, as it stands there.

    Attributes
    ----------
    name : str
        What it is called, for messages.
    file : str
        Where it stands.
    cells : sequence of str
        The text of each row; "" where Parquet has none.
    missing : {"error", "drop", "keep"}
        What to do with cells without a value.
    notation : {".", ",", None}
        What stands before decimals; None where the cells decide.
    commas : bool
        Whether decimal commas are likely here, so that a point may separate thousands.
    kind : str, optional
        The type of a Parquet column that is not numbers; None for text of a CSV file.
    values : ndarray of float64, optional
        The cells of a Parquet column as numbers, NaN for none.
    named : bool
        Whether line 1 was taken to hold names without being told so.
    """

    name: str
    file: str
    cells: Sequence[str]
    missing: str
    notation: str | None = "."
    commas: bool = False
    kind: str | None = None
    values: FloatArray | None = None
    named: bool = False

    @cached_property
    def decimal(self) -> str:
        """What stands before the decimals: ".", ",", or "" where that is ambiguous."""
        if self.notation is not None:
            return self.notation
        cells = {cell.strip() for cell in self.cells if "," in cell or (self.commas and "." in cell)}
        with_commas = {cell for cell in cells if "," in cell}
        if not with_commas:
            grouped = bool(cells) and all(_POINT_GROUPS.fullmatch(cell) for cell in cells)
            return "" if grouped and all(self._is_number(cell, ".") for cell in set(self.cells)) else "."
        if not all(self._is_number(cell, ",") for cell in set(self.cells)):
            return "."
        return "" if all(_COMMA_GROUPS.fullmatch(cell) for cell in with_commas) else ","

    def numbers(self, finite: bool = True) -> FloatArray:
        """The column as numbers; an error for what is none or would change."""
        values = self._parsed() if self.values is None else self.values
        absent = np.isnan(values)
        if self.missing == "drop":
            values = values[~absent]
        elif absent.any():
            raise DomainError(
                f"column must have no missing values; got {int(absent.sum())} of {values.size} rows without a number, "
                f"the first at row {int(np.argmax(absent)) + 1}. Fill them in, or drop these rows with missing='drop' "
                "(--missing drop)."
            )
        if values.size == 0:
            raise DomainError(
                f"column must have at least one number; got none in {self.file!r}. Check file and column."
            )
        infinite = np.isinf(values)
        if finite and infinite.any():
            raise DomainError(
                f"column must be finite; got {float(values[infinite][0])!r} at row {int(np.argmax(infinite)) + 1} "
                f"({int(infinite.sum())} of {values.size} entries). Remove these rows or clip the column."
            )
        return values

    def texts(self) -> list[str]:
        """The column as categories: the text of each cell."""
        texts = [cell.strip() for cell in self.cells]
        absent = [row for row, text in enumerate(texts) if text.lower() in _MISSING]
        if absent and self.missing == "error":
            raise DomainError(
                f"column must have no missing values; got {len(absent)} of {len(texts)} rows without a category, the "
                f"first at row {absent[0] + 1}. Fill them in, drop these rows with missing='drop' "
                "(--missing drop), or make them a category of their own with missing='keep' (--missing keep)."
            )
        if self.missing == "keep":
            for row in absent:
                texts[row] = "?"
        elif absent:
            texts = [text for text in texts if text.lower() not in _MISSING]
        if not texts:
            raise DomainError(
                f"column must have at least one category; got none in {self.file!r}. Check file and column."
            )
        if self.named and self.name in texts:
            raise DomainError(
                f"column must not hold its own name as a category; got {self.name!r} at row "
                f"{texts.index(self.name) + 1} too. Pass header=False (--no-header) if line 1 is a record, header=True "
                "(--header) if it holds the names."
            )
        return texts

    def plain_numbers(self) -> tuple[FloatArray, dict[float, str]] | None:
        """The numbers and the text of each, where text and number say the same; None for categories.

        They do where every cell is a finite number without leading zeros that a double is, and every number is written
        in one way.
        """
        if self.kind is not None:
            return None
        texts = self.texts()
        distinct = set(texts)
        if "?" in distinct or any(_LEADING_ZERO.match(text) for text in distinct):
            return None
        try:
            numbers = self.numbers()
        except DomainError:
            return None
        spelling = dict(zip(numbers.tolist(), texts, strict=False))
        return (numbers, spelling) if numbers.size == len(texts) and len(spelling) == len(distinct) else None

    def in_order(self, texts: Iterable[str]) -> list[str]:
        """Categories of the column: numbers by size, other text by alphabet."""
        return in_order(texts, self.decimal or ".")

    def _is_number(self, cell: str, decimal: str) -> bool:
        return cell.strip().lower() in _MISSING or _as_number(cell, decimal) is not None

    def _parsed(self) -> FloatArray:
        if self.kind is not None:
            raise DomainError(
                f"column must be numbers; got {self.name!r} of type {self.kind}. Choose a column of numbers."
            )
        decimal = self.decimal
        if not decimal:
            shown = next(cell for cell in self.cells if _COMMA_GROUPS.fullmatch(cell.strip())
                         or _POINT_GROUPS.fullmatch(cell.strip())).strip()  # fmt: skip
            mark = "," if "," in shown else "."
            raise DomainError(
                f"column must be numbers that can be read in one way; got {shown!r}, which may be "
                f"{shown.replace(mark, '')} or {shown.replace(mark, '.')}. Pass decimal={mark!r} (--decimal {mark}) if "
                f"{mark!r} stands before decimals, or write the numbers without separators of thousands."
            )
        values = np.empty(len(self.cells))
        wrong: list[int] = []
        for start in range(0, len(self.cells), _BATCH):
            part = self.cells[start : start + _BATCH]
            values[start : start + _BATCH], faults = _doubles(part, decimal)
            wrong += [start + row for row in faults]
        if wrong:
            cell = self.cells[wrong[0]]
            grouped = re.search(r"\d[.,]\d{3}(\D|$)", cell) is not None
            more = " Write numbers without separators of thousands." if grouped else ""
            what = "numbers" if decimal == "." else "numbers with a decimal comma"
            raise DomainError(
                f"column must be {what}; got {cell!r} at row {wrong[0] + 1} ({len(wrong)} of {len(self.cells)} "
                f"entries).{more} Correct these cells, choose a column of numbers, or a mechanism for categories, such "
                "as rr."
            )
        _told_apart(self.cells, values, decimal)
        return values


def opened_column(table: Table, column: str | None, missing: str) -> Column:
    """A column of an open file."""
    if column is not None and not isinstance(column, str):
        raise DomainError(
            f"column must be the name of a column; got {_validate.shown(column)}. Pass it as text, as in 'age'."
        )
    file = str(table.file)
    if not table.parquet:
        cells = table.cells(column)
        name = table.names[table.position(column)]
        named = table.named
        return Column(name, file, cells, missing, table.decimal, table.commas, named=named)
    name, cells, arrow = table.arrow(column)
    kind, types = cells.type, arrow.types
    if types.is_dictionary(kind):
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if types.is_floating(kind):
        values = np.asarray(cells.cast(arrow.float64()).to_numpy(), dtype=np.float64) + 0.0  # no negative zeros
        return Column(name, file, _Written(cells), missing, values=values)
    if types.is_integer(kind):
        whole = cells.fill_null(0).to_numpy()
        if not (np.any(whole > _EXACT) or np.any(whole < -_EXACT)):
            values = whole.astype(np.float64)
            values[np.asarray(cells.is_null().to_numpy())] = np.nan
            return Column(name, file, _Written(cells), missing, values=values)
        return Column(name, file, _Written(cells), missing)
    if types.is_decimal(kind):
        return Column(name, file, _Written(cells), missing)
    if types.is_temporal(kind):
        try:
            cells = cells.cast(arrow.string())
        except arrow.ArrowException:
            cells = cells.cast(arrow.int64())
    return Column(name, file, _Written(cells), missing, kind=str(kind))


def in_order(texts: Iterable[str], decimal: str = ".") -> list[str]:
    """Different texts in order: by size where all are numbers, else by alphabet."""
    distinct = set(texts)
    if all(_as_number(text, decimal) is not None for text in distinct):
        sizes = {text: Decimal(text.strip().replace(decimal, ".")) for text in distinct}
        if all(size.is_finite() for size in sizes.values()):
            return sorted(distinct, key=lambda text: (sizes[text], text))
    return sorted(distinct)


def whole_number(text: str) -> int | None:
    """The integer that a text is, written as Python writes it; None for others."""
    if not _WHOLE.fullmatch(text) or not text.isascii() or len(text) > 4000:
        return None
    number = int(text)
    return number if str(number) == text else None


class _Written(Sequence[str]):
    """The cells of a Parquet column as text, written when they are asked for."""

    def __init__(self, cells: Any) -> None:
        self._cells = cells

    @cached_property
    def _texts(self) -> list[str]:
        return [
            "" if cell is None else str(cell + 0.0 if isinstance(cell, float) else cell)  # no negative zeros
            for cell in self._cells.to_pylist()
        ]

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, place: Any) -> Any:
        return self._texts[place]


def _as_number(text: str, decimal: str) -> float | None:
    if "_" in text or (decimal == "," and ("." in text or text.count(",") > 1)):
        return None
    try:
        return float(text if decimal == "." else text.replace(",", "."))
    except ValueError:
        return None


def _doubles(texts: Sequence[str], decimal: str) -> tuple[FloatArray, list[int]]:
    """Numbers, NaN for what is missing, and the rows that are neither."""
    if decimal == "." and not any("_" in text for text in texts):
        try:
            return np.array(list(map(float, texts)), dtype=np.float64), []
        except ValueError:
            pass
    values, wrong = np.full(len(texts), np.nan), []
    for row, text in enumerate(texts):
        number = _as_number(text, decimal)
        if number is not None:
            values[row] = number
        elif text.strip().lower() not in _MISSING:
            wrong.append(row)
    return values, wrong


def _told_apart(texts: Sequence[str], values: FloatArray, decimal: str) -> None:
    """Refuses whole numbers that no double is, and different numbers that become one double."""
    together = "".join(texts)
    if max(map(len, texts), default=0) <= _DIGITS and "e" not in together and "E" not in together:
        return
    rows = [row for row, text in enumerate(texts) if len(text) > _DIGITS or "e" in text or "E" in text]
    exact: dict[float, Decimal] = {}
    first: dict[float, str] = {}
    places = {texts[row]: row for row in reversed(rows)}
    close = {float(values[row]) for row in places.values()}
    among: Iterable[tuple[str, float]] = ((text, float(value)) for text, value in zip(texts, values, strict=True)
                                          if float(value) in close)  # fmt: skip
    for text, value in dict(among).items():
        if not np.isfinite(value):
            continue
        number = Decimal(text.strip().replace(decimal, "."))
        if abs(value) >= _EXACT and _WHOLE_POINT.fullmatch(text.strip().replace(decimal, ".")) and number != value:
            raise DomainError(
                f"column must be whole numbers that a double is, as all up to 2**53 are; got {text.strip()!r} at row "
                f"{places[text] + 1}. Subtract a constant from the column, or choose a mechanism for categories, such "
                "as rr."
            )
        if exact.setdefault(value, number) != number:
            raise DomainError(
                f"column must be numbers that doubles tell apart; got {first[value].strip()!r} and {text.strip()!r}, "
                "which become one. Subtract a constant from the column, or choose a mechanism for categories, such as "
                "rr."
            )
        first.setdefault(value, text)
