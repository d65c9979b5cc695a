"""Reading one column, of numbers or of categories, from a CSV or Parquet file, with errors that say where to look."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...errors import BackendMissingError, DomainError

__all__ = ["read_categories", "read_column"]

FloatArray = NDArray[np.float64]
_MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))
_PARQUET_MAGIC = b"PAR1"


def read_column(path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error") -> FloatArray:
    """Read one column of numbers from a CSV or Parquet file.

    Parameters
    ----------
    path : path-like
        A Parquet file, or text in UTF-8 with one record a line, separated by commas, semicolons, tabs or bars. Names
        stand in the first line; when that line holds numbers alone, the columns are called ``1``, ``2`` and so on.
    column : str, optional
        Name of the column; it may be left out when the file has one column.
    missing : {"error", "drop"}
        What to do with empty cells and the marks ``?``, ``NA``, ``NaN`` and ``null``.

    Returns
    -------
    ndarray of float64, shape (n,)
        The column in the order of the file.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    DomainError
        For an unknown column, text in place of a number, missing or infinite values, lines of unequal length, an empty
        file or column, or text that is not UTF-8. Rows are counted from 1, without the line of names.
    BackendMissingError
        For a Parquet file without pyarrow.

    Examples
    --------
    >>> import tempfile, os
    >>> from fastpriv import read_column
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("name,age\\nAda,36\\nAlan,41\\n")
    >>> read_column(path, "age")
    array([36., 41.])
    """
    _validate.choice("missing", missing, ("error", "drop"))
    file, packed = _opened(path)
    values = _parquet(file, column) if packed else _numbers(_csv(file, column))
    absent = np.isnan(values)
    if missing == "drop":
        values = values[~absent]
    elif absent.any():
        raise DomainError(
            f"column must have no missing values; got {int(absent.sum())} of {values.size} rows without a number, the "
            f"first at row {int(np.argmax(absent)) + 1}. Fill them in, or drop these rows with missing='drop' "
            "(--missing drop)."
        )
    if values.size == 0:
        raise DomainError(f"column must have at least one number; got none in {str(file)!r}. Check file and column.")
    infinite = np.isinf(values)
    if infinite.any():
        raise DomainError(
            f"column must be finite; got {float(values[infinite][0])!r} at row {int(np.argmax(infinite)) + 1} "
            f"({int(infinite.sum())} of {values.size} entries). Remove these rows or clip the column."
        )
    return values


def read_categories(path: str | os.PathLike[str], column: str | None = None, *, missing: str = "error") -> Any:
    """Read one column of categories from a CSV or Parquet file; numbers stay numbers if all of them are.

    Parameters
    ----------
    path : path-like
        As for ``read_column``.
    column : str, optional
        Name of the column; it may be left out when the file has one column.
    missing : {"error", "drop", "keep"}
        What to do with empty cells and the marks ``?``, ``NA``, ``NaN`` and ``null``; ``keep`` makes them one category,
        called ``?``.

    Returns
    -------
    ndarray of str or float64, shape (n,)
        The column in the order of the file, without the blanks around a cell.

    Raises
    ------
    FileNotFoundError, DomainError, BackendMissingError
        As ``read_column``, but for text, which is welcome.

    Examples
    --------
    >>> import tempfile, os
    >>> from fastpriv import read_categories
    >>> path = os.path.join(tempfile.mkdtemp(), "people.csv")
    >>> with open(path, "w") as stream:
    ...     _ = stream.write("name,job\\nAda,analyst\\nAlan,\\nEmmy,professor\\n")
    >>> read_categories(path, "job", missing="keep")
    array(['analyst', '?', 'professor'], dtype='<U9')
    """
    _validate.choice("missing", missing, ("error", "drop", "keep"))
    file, packed = _opened(path)
    texts = np.array([text.strip() for text in (_parquet_words(file, column) if packed else _csv(file, column))])
    absent = np.isin(np.char.lower(texts), sorted(_MISSING)) if texts.size else np.zeros(0, dtype=bool)
    if missing == "drop":
        texts = texts[~absent]
    elif missing == "keep":
        texts[absent] = "?"
    elif absent.any():
        raise DomainError(
            f"column must have no missing values; got {int(absent.sum())} of {texts.size} rows without a category, the "
            f"first at row {int(np.argmax(absent)) + 1}. Fill them in, drop these rows with missing='drop' "
            "(--missing drop), or make them a category of their own with missing='keep' (--missing keep)."
        )
    if texts.size == 0:
        raise DomainError(f"column must have at least one category; got none in {str(file)!r}. Check file and column.")
    if all(map(_is_number, np.unique(texts).tolist())):
        return texts.astype(np.float64)
    return texts


def _opened(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """The file, and whether it is Parquet."""
    file = Path(path)
    if file.is_dir() or not file.exists():
        fault = IsADirectoryError if file.is_dir() else FileNotFoundError
        raise fault(f"file must be an existing CSV or Parquet file; got {str(file)!r}. Check the path.")
    with open(file, "rb") as stream:
        start = stream.read(4)
    if not start:
        raise DomainError(f"file must have at least one record; got the empty file {str(file)!r}. Check the path.")
    return file, start == _PARQUET_MAGIC


def _csv(file: Path, column: str | None) -> list[str]:
    try:
        with open(file, encoding="utf-8-sig", newline="") as stream:
            return list(_cells(stream, column))
    except UnicodeDecodeError as fault:
        raise DomainError(
            f"file must be text in UTF-8; got byte 0x{fault.object[fault.start]:02x} in {str(file)!r}. Save it as CSV "
            "in UTF-8, or as Parquet."
        ) from None
    except csv.Error as fault:
        raise DomainError(f"file must be a well-formed CSV file; got {str(file)!r}: {fault}. Write it again.") from None


def _cells(stream: TextIO, column: str | None) -> Iterator[str]:
    first = stream.readline()
    stream.seek(0)
    rows = csv.reader(stream, delimiter=max(",;\t|", key=first.count))
    names = next(rows, [])
    if not names:
        raise DomainError("line 1 must hold the names of the columns; got an empty line. Remove it, or check the file.")
    headless = all(_is_number(name) for name in names)
    labels = [str(i) for i in range(1, len(names) + 1)] if headless else [name.strip() for name in names]
    index, width = _position(labels, column), len(labels)
    if headless:
        yield names[index]
    for row in rows:
        if len(row) == width:
            yield row[index]
        elif row:
            raise DomainError(
                f"line {rows.line_num} must be of {width} cells like the first line; got {len(row)}. Correct that line "
                "(a stray separator or an open quotation mark is the usual cause)."
            )
        elif width == 1:
            yield ""


def _position(labels: list[str], column: str | None) -> int:
    shown = ", ".join(labels[:20]) + (", ..." if len(labels) > 20 else "")
    if column is None:
        if len(labels) != 1:
            raise DomainError(
                f"column must be named when a file has several; got {len(labels)} columns: {shown}. Pass --column NAME."
            )
        return 0
    if column not in labels:
        raise DomainError(f"column must be one of the file's columns: {shown}; got {column!r}. Choose one of these.")
    if labels.count(column) > 1:
        raise DomainError(f"column must be unique; got {labels.count(column)} columns called {column!r}. Rename one.")
    return labels.index(column)


def _numbers(texts: list[str]) -> FloatArray:
    try:
        values = np.array(list(map(float, texts)), dtype=np.float64)
        if not any("_" in text for text in texts):
            return values
    except ValueError:
        pass
    values = np.full(len(texts), np.nan)
    wrong = []
    for row, text in enumerate(texts):
        if _is_number(text):
            values[row] = float(text)
        elif text.strip().lower() not in _MISSING:
            wrong.append(row)
    if wrong:
        raise DomainError(
            f"column must be numbers; got {texts[wrong[0]]!r} at row {wrong[0] + 1} ({len(wrong)} of {len(texts)} "
            "entries). Correct these cells, choose a column of numbers, or a mechanism for categories, such as rr."
        )
    return values


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def _parquet(file: Path, column: str | None) -> FloatArray:
    name, cells, arrow = _parquet_cells(file, column)
    kind = cells.type
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind) or arrow.types.is_decimal(kind)):
        raise DomainError(f"column must be numbers; got {name!r} of type {kind}. Choose a column of numbers.")
    return np.asarray(cells.cast(arrow.float64(), safe=False).to_numpy(), dtype=np.float64)


def _parquet_words(file: Path, column: str | None) -> list[str]:
    _, cells, _ = _parquet_cells(file, column)
    return ["" if cell is None else str(cell) for cell in cells.to_pylist()]


def _parquet_cells(file: Path, column: str | None) -> tuple[str, Any, Any]:
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise BackendMissingError(
            "pyarrow must be installed to read Parquet; got none. Run: pip install 'fastpriv[table]'"
        ) from None
    try:
        labels = [str(name) for name in parquet.read_schema(file).names]
        name = labels[_position(labels, column)]
        cells: Any = parquet.read_table(file, columns=[name]).column(0)
    except (arrow.ArrowException, OSError) as fault:
        reason = str(fault).splitlines()[0]
        raise DomainError(f"file must be a whole Parquet file; got {str(file)!r}: {reason}. Write it again.") from None
    return name, cells, arrow
