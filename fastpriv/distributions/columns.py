"""Reading one column, of numbers or of categories, from a CSV or Parquet file, with errors that say where to look.

Categories are the text in the file. Numbers are doubles, and an integer that no double is, or two numbers that become
one double, are refused: nothing that differs in the file is the same in memory. Dates (2024-05-31, also with a time in
whole seconds and without a zone) are numbers as days since 1 January 1970, months (2024-05) as months since January
1970; as categories they are text.

Examples
--------
>>> from fastpriv.distributions import columns
>>> columns.sorted_categories(["10", "9"]), columns.sorted_categories(["nurse", "clerk"])
(['9', '10'], ['clerk', 'nurse'])
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from ..base import validate
from ..base.column_files import ColumnFile
from ..base.errors import DomainError
from ..base.numerics import FloatArray

_MISSING_MARKS = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))  # in lower case
LARGEST_EXACT_INTEGER = 2**53  # all integers up to it are doubles
# bound: none - different decimal numbers of at most so many digits are different doubles
_SAFE_DIGITS = 15
CELLS_PER_BATCH = 2**17  # cells that are read between two checks for Ctrl-C: some 10 ms
# Integers, integers that may end with a point and zeros, numbers in groups of three digits, and leading zeros.
_INTEGER = re.compile(r"[+-]?\d+")
# A whole number, with or without zeros as decimals: 12, 12. or 12.00.
_INTEGER_WITH_POINT = re.compile(r"[+-]?\d+(\.0*)?")
# A whole number whose thousands are marked by commas: 1,234 may also mean 1.234.
_COMMA_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
# A whole number whose thousands are marked by points: 1.234 may also mean 1234.
_POINT_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+")
_LEADING_ZERO = re.compile(r"[+-]?0\d")  # a code such as 007, which names a category and is not a number

_DATE = re.compile(r"\d{4}-\d\d(-\d\d([ T]\d\d:\d\d(:\d\d(\.0+)?)?)?)?")  # a month, a day, or a time of whole seconds
_MONTH_LENGTH, _DAY = 7, 86400  # characters of 2024-05; seconds


def read_column(
    path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error", sep: str | None = None,
    decimal: str | None = None, encoding: str | None = None, header: bool | None = None, na: str | None = None,
    sheet: str | None = None, dates: str = "days",
) -> FloatArray:
    """Read one column of numbers from a CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        A Parquet file, a workbook (.xlsx) with the extra ``excel``, or text with one record a line, also packed by
        gzip.
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
    na : str, optional
        Further marks of cells without a value, in capitals or not, with commas between them: ``"k.A.,-,#NV"``.
    sheet : str, optional
        Name of the sheet of a workbook; it may be left out where there is one. Formulas count by their results.
    dates : {"days", "months"}
        Dates such as ``2024-05-31`` are days since 1 January 1970, with a time their fractions. ``"months"`` cuts them
        to months, such as ``2024-05``, which are months since January 1970.

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
        different numbers that are the same double, days that no month has, lines of unequal length, an empty file or
        column, what is ambiguous, or text in another encoding. Rows are counted from 1, without the line of names.
    BackendMissingError
        For a Parquet file without pyarrow, or a workbook without openpyxl.

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
    validate.choice("missing", missing, ("error", "drop"))
    table = ColumnFile(path, sep=sep, decimal=decimal, encoding=encoding, header=header, na=na, sheet=sheet)
    return open_column(table, column, missing, dates).numbers()


def read_categories(
    path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error", sep: str | None = None,
    decimal: str | None = None, encoding: str | None = None, header: bool | None = None, na: str | None = None,
    sheet: str | None = None, dates: str = "days",
) -> Any:
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
    sep, decimal, encoding, header, na, sheet
        As for ``read_column``. The text of a cell is what stands there, whatever ``decimal`` is.
    dates : {"days", "months"}
        ``"months"`` cuts dates to months: ``2024-05-31`` becomes ``2024-05``.

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
    validate.choice("missing", missing, ("error", "drop", "keep"))
    table = ColumnFile(path, sep=sep, decimal=decimal, encoding=encoding, header=header, na=na, sheet=sheet)
    texts = open_column(table, column, missing, dates).texts()
    widest = max(map(len, texts))
    validate.memory("column", 4 * widest * len(texts), "Shorten its longest category.")
    return np.array(texts)


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a file, with its cells unchanged.

    Attributes
    ----------
    name : str
        Its name, for messages.
    file : str
        The file it is read from, for messages.
    cells : sequence of str
        The text of each row; "" where Parquet has none.
    missing : {"error", "drop", "keep"}
        What to do with cells without a value.
    decimal_mark : {".", ",", None}
        What stands before decimals; None where the cells decide.
    decimal_commas_likely : bool
        Whether other columns have decimal commas, so that a point may separate thousands.
    arrow_type : str, optional
        The type of a Parquet column that is not numbers; None for text of a CSV file.
    values : ndarray of float64, optional
        The cells of a Parquet column as numbers, NaN for none.
    header_inferred : bool
        Whether line 1 was taken for the header without an argument that says so.
    """

    name: str
    file: str
    cells: Sequence[str]
    missing: str
    decimal_mark: str | None = "."
    decimal_commas_likely: bool = False
    arrow_type: str | None = None
    values: FloatArray | None = None
    header_inferred: bool = False

    @cached_property
    def decimal(self) -> str:
        """What stands before the decimals: ".", ",", or "" where that is ambiguous."""
        if self.decimal_mark is not None:
            return self.decimal_mark
        cells = {cell.strip() for cell in self.cells if "," in cell or (self.decimal_commas_likely and "." in cell)}
        with_commas = {cell for cell in cells if "," in cell}
        if not with_commas:
            grouped = bool(cells) and all(_POINT_GROUPS.fullmatch(cell) for cell in cells)
            return "" if grouped and all(self._is_number(cell, ".") for cell in set(self.cells)) else "."
        if not all(self._is_number(cell, ",") for cell in set(self.cells)):
            return "."
        return "" if all(_COMMA_GROUPS.fullmatch(cell) for cell in with_commas) else ","

    def numbers(self, finite: bool = True) -> FloatArray:
        """Return the column as numbers; raise for a cell that is not a number or that a double would change."""
        values = self._parse_cells() if self.values is None else self.values
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
        """Return the column as categories: the text of each cell."""
        texts = [cell.strip() for cell in self.cells]
        absent = [row for row, text in enumerate(texts) if text.lower() in _MISSING_MARKS]
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
            texts = [text for text in texts if text.lower() not in _MISSING_MARKS]
        if not texts:
            raise DomainError(
                f"column must have at least one category; got none in {self.file!r}. Check file and column."
            )
        if self.header_inferred and self.name in texts:
            raise DomainError(
                f"column must not hold its own name as a category; got {self.name!r} at row "
                f"{texts.index(self.name) + 1} too. Pass header=False (--no-header) if line 1 is a record, header=True "
                "(--header) if it holds the names."
            )
        return texts

    def check_one_row_each(self) -> None:
        """Refuse several rows of one identifier: what is said of a release of rows is about one row."""
        rows = Counter(self.texts())
        repeated = [text for text, count in rows.items() if count > 1]
        if repeated:
            most = max(rows.values())
            raise DomainError(
                f"id must be another text in each row, as all numbers are about one row; got {len(repeated)} of "
                f"{len(rows)} identifiers in several rows of column {self.name!r}, up to {most}. Make one row of each "
                f"person's rows first, such as their mean; or leave id out, and count a person's {most} rows as {most} "
                "releases."
            )

    def plain_numbers(self) -> tuple[FloatArray, dict[float, str]] | None:
        """Return the numbers and the text of each number, or None for categories.

        A column is numbers if every cell is a finite number without leading zeros that equals a double, and if each
        number is written in one way.
        """
        if self.arrow_type is not None:
            return None
        texts = self.texts()
        distinct = set(texts)
        if "?" in distinct or any(_LEADING_ZERO.match(text) or _DATE.fullmatch(text) for text in distinct):
            return None
        try:
            numbers = self.numbers()
        except DomainError:
            return None
        spelling = dict(zip(numbers.tolist(), texts, strict=False))
        return (numbers, spelling) if numbers.size == len(texts) and len(spelling) == len(distinct) else None

    def sorted_categories(self, texts: Iterable[str]) -> list[str]:
        """Sort categories of the column: numbers by size, other text in alphabetical order."""
        return sorted_categories(texts, self.decimal or ".")

    def _is_number(self, cell: str, decimal: str) -> bool:
        return cell.strip().lower() in _MISSING_MARKS or _parse_number(cell, decimal) is not None

    def _date_numbers(self) -> FloatArray | None:
        """Days, or months, since the beginning of 1970, where all cells are dates or all are months; NaN for none."""
        present = (text for text in map(str.strip, self.cells) if text.lower() not in _MISSING_MARKS)
        if not all(map(_DATE.fullmatch, present)):  # most often the first cell is none
            return None
        texts = ["" if text.lower() in _MISSING_MARKS else text for text in map(str.strip, self.cells)]
        are_months = {len(text) == _MONTH_LENGTH for text in texts if text}
        if len(are_months) > 1:
            return None
        unit, size = ("datetime64[M]", 1) if True in are_months else ("datetime64[s]", _DAY)
        values = np.empty(len(texts))
        for row, text in enumerate(texts):
            try:
                values[row] = np.array(text, unit).astype(np.int64) / size if text else np.nan
            except ValueError:
                raise DomainError(
                    f"column must be dates that exist; got {text!r} at row {row + 1}. Correct this cell, or mark it as "
                    "missing."
                ) from None
        return values

    def _parse_cells(self) -> FloatArray:
        dates = self._date_numbers()
        if dates is not None:
            return dates
        if self.arrow_type is not None:
            raise DomainError(
                f"column must be numbers; got {self.name!r} of type {self.arrow_type}. Choose a column of numbers."
            )
        decimal = self.decimal
        if not decimal:
            shown = next(cell for cell in self.cells if _COMMA_GROUPS.fullmatch(cell.strip())
                         or _POINT_GROUPS.fullmatch(cell.strip())).strip()
            mark = "," if "," in shown else "."
            raise DomainError(
                f"column must be numbers that can be read in one way; got {shown!r}, which may be "
                f"{shown.replace(mark, '')} or {shown.replace(mark, '.')}. Pass decimal={mark!r} (--decimal {mark}) if "
                f"{mark!r} stands before decimals, or write the numbers without separators of thousands."
            )
        values = np.empty(len(self.cells))
        wrong: list[int] = []
        for start in range(0, len(self.cells), CELLS_PER_BATCH):
            part = self.cells[start : start + CELLS_PER_BATCH]
            values[start : start + CELLS_PER_BATCH], faults = _parse_numbers(part, decimal)
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
        _check_distinct_doubles(self.cells, values, decimal)
        return values


def open_column(table: ColumnFile, column: str | None, missing: str, dates: str = "days") -> Column:
    """Return a column of an open file, with dates cut to months if so."""
    validate.choice("dates", dates, ("days", "months"))
    result = _open(table, column, missing)
    if dates == "days" or result.values is not None:
        return result
    cells = [cell.strip()[:_MONTH_LENGTH] if _DATE.fullmatch(cell.strip()) else cell for cell in result.cells]
    return replace(result, cells=cells)


def _open(table: ColumnFile, column: str | None, missing: str) -> Column:
    remedy = "Pass it as text, as in 'age'."
    validate.instance("column", column, (str, type(None)), "the name of a column", remedy)
    file = str(table.file)
    if not table.parquet:
        cells = table.cells(column)
        name = table.names[table.column_index(column)]
        return Column(
            name, file, cells, missing, table.decimal, table.decimal_commas_likely,
            header_inferred=table.header_inferred,
        )
    name, cells, arrow = table.arrow(column)
    kind, types = cells.type, arrow.types
    if types.is_dictionary(kind):
        cells, kind = cells.cast(kind.value_type), kind.value_type
    if types.is_floating(kind):
        values = np.asarray(cells.cast(arrow.float64()).to_numpy(), dtype=np.float64) + 0.0  # no negative zeros
        return Column(name, file, _ArrowTexts(cells), missing, values=values)
    if types.is_integer(kind):
        whole = cells.fill_null(0).to_numpy()
        if not (np.any(whole > LARGEST_EXACT_INTEGER) or np.any(whole < -LARGEST_EXACT_INTEGER)):
            values = whole.astype(np.float64)
            values[np.asarray(cells.is_null().to_numpy())] = np.nan
            return Column(name, file, _ArrowTexts(cells), missing, values=values)
    if types.is_integer(kind) or types.is_decimal(kind):
        return Column(name, file, _ArrowTexts(cells), missing)
    if types.is_temporal(kind):
        try:
            cells = cells.cast(arrow.string())
        except arrow.ArrowException:
            cells = cells.cast(arrow.int64())
    return Column(name, file, _ArrowTexts(cells), missing, arrow_type=str(kind))


def sorted_categories(texts: Iterable[str], decimal: str = ".") -> list[str]:
    """Sort the distinct texts: by size if all are numbers, else in alphabetical order."""
    distinct = set(texts)
    if all(_parse_number(text, decimal) is not None for text in distinct):
        sizes = {text: Decimal(text.strip().replace(decimal, ".")) for text in distinct}
        if all(size.is_finite() for size in sizes.values()):
            return sorted(distinct, key=lambda text: (sizes[text], text))
    return sorted(distinct)


def whole_number(text: str) -> int | None:
    """Return the integer of a text in the form in which Python writes integers; None for other texts."""
    if not _INTEGER.fullmatch(text) or not text.isascii() or len(text) > 4000:
        return None
    number = int(text)
    return number if str(number) == text else None


class _ArrowTexts(Sequence[str]):
    """The cells of a Parquet column as text, converted on first use."""

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

    def __getitem__(self, index: Any) -> Any:
        return self._texts[index]


def _parse_number(text: str, decimal: str) -> float | None:
    if "_" in text or (decimal == "," and ("." in text or text.count(",") > 1)):
        return None
    try:
        return float(text if decimal == "." else text.replace(",", "."))
    except ValueError:
        return None


def _parse_numbers(texts: Sequence[str], decimal: str) -> tuple[FloatArray, list[int]]:
    """Return the numbers, NaN for missing cells, and the rows of cells that are neither."""
    if decimal == "." and not any("_" in text for text in texts):
        try:
            return np.array(list(map(float, texts)), dtype=np.float64), []
        except ValueError:
            pass
    values, wrong = np.full(len(texts), np.nan), []
    for row, text in enumerate(texts):
        number = _parse_number(text, decimal)
        if number is not None:
            values[row] = number
        elif text.strip().lower() not in _MISSING_MARKS:
            wrong.append(row)
    return values, wrong


def _check_distinct_doubles(texts: Sequence[str], values: FloatArray, decimal: str) -> None:
    """Refuse integers that no double equals, and different numbers that round to one double."""
    all_text = "".join(texts)
    if max(map(len, texts), default=0) <= _SAFE_DIGITS and "e" not in all_text and "E" not in all_text:
        return
    rows = [row for row, text in enumerate(texts) if len(text) > _SAFE_DIGITS or "e" in text or "E" in text]
    exact: dict[float, Decimal] = {}
    first: dict[float, str] = {}
    row_of = {texts[row]: row for row in reversed(rows)}
    # Only texts of these values can collide with a long text; the last row of each text stands for all.
    suspects = {float(values[row]) for row in row_of.values()}
    value_of = {text: float(value) for text, value in zip(texts, values, strict=True) if float(value) in suspects}
    for text, value in value_of.items():
        if not np.isfinite(value):
            continue
        plain = text.strip().replace(decimal, ".")
        number = Decimal(plain)
        if abs(value) >= LARGEST_EXACT_INTEGER and _INTEGER_WITH_POINT.fullmatch(plain) and number != value:
            raise DomainError(
                f"column must be whole numbers that a double is, as all up to 2**53 are; got {text.strip()!r} at row "
                f"{row_of[text] + 1}. Subtract a constant from the column, or choose a mechanism for categories, such "
                "as rr."
            )
        if exact.setdefault(value, number) != number:
            raise DomainError(
                f"column must be numbers that doubles tell apart; got {first[value].strip()!r} and {text.strip()!r}, "
                "which become one. Subtract a constant from the column, or choose a mechanism for categories, such as "
                "rr."
            )
        first.setdefault(value, text)
