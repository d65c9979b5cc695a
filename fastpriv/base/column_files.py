"""A file of columns, as text: CSV of any usual dialect, also packed by gzip, a workbook (.xlsx), or Parquet.

What is ambiguous is refused. A sheet of a workbook is read as the CSV file that it would be saved as, with the results
of its formulas.

A separator is looked for in the first lines: among comma, semicolon, tab and bar those that cut line 1 outside of its
quotation marks. Where several do, it is the one that cuts all lines into equally many cells, none of which is cut
further by another. The comma of a number (``36,5``) and one before a blank cut nothing.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, time
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from . import validate
from .errors import BackendMissingError, DomainError
from .files import lines_of
from .table import pyarrow

__all__ = ["DECIMAL_COMMA", "THOUSANDS", "ColumnFile", "is_number", "open_table", "workbook_text"]

_SEPARATORS = ",;\t|"  # those that are looked for
_SAMPLE_LINES, _SAMPLE_SIZE = 1000, 2**20  # lines and characters in which they are looked for
_LONGEST_LINE = 2**21  # characters: a hundred thousand columns of twenty, which take a second
_PARQUET_MAGIC = b"PAR1"  # the first bytes of a Parquet file
_ZIP_MAGIC = b"PK\x03\x04"  # the first bytes of a zip archive, which a workbook is
_MAX_SHEET_ROWS = 2**20  # of a sheet, as in Excel
# The first bytes of files that have to be unpacked first: bzip2, xz.
_ARCHIVE = re.compile(rb"BZh\d1AY&SY|\xfd7zXZ\x00")
_BYTE_ORDER_MARKS = (  # longer marks first: that of UTF-32 begins with that of UTF-16
    (b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"),
)
# A tab, or a comma, semicolon or bar before other text: the line has several cells.
_CELL_END = re.compile(r"[,;|](?=\S)|\t")
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")  # a number with a decimal comma, such as -1,5e3
# A whole number in groups of three digits, such as 1,234,567.
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2}(,\d{3})+\s*")
_DAMAGE_ERRORS = (EOFError, OSError, zlib.error)  # what gzip raises if a file is damaged
# Remedy for a first line of which it is unclear whether it is a header.
_HEADER_REMEDY = "Pass header=True (--header) if it holds names, header=False (--no-header) if it is a record."


class ColumnFile:
    """A file of columns: their names, its dialect, and its cells.

    Parameters
    ----------
    path : path-like
        The file.
    sep, decimal, encoding, header, na, sheet
        As for ``read_column``.
    data : bytes, optional
        What the file holds, where it was read already; ``path`` is then but its name.

    Attributes
    ----------
    names : list of str
        Names of the columns, "1", "2" and so on where line 1 is a record.
    separator : str or None
        What stands between cells; None where there is one column, and for Parquet.
    decimal : str or None
        As it was given.
    decimal_commas_likely : bool
        Whether another column may have decimal commas, so that a point may separate thousands.
    headerless : bool
        Whether line 1 is a record.
    line : int
        Number of the line, or of the row of a Parquet file, that ``rows`` came to, from 1.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, sep: str | None = None, decimal: str | None = None,
        encoding: str | None = None, header: bool | None = None, na: str | None = None, sheet: str | None = None,
        data: bytes | None = None,
    ) -> None:
        self.file, self._data = validate.path("path", path), data
        self.separator = _check_separator(sep)
        self.decimal = None if decimal is None else validate.choice("decimal", decimal, (".", ","))
        self._encoding = None if encoding is None else _check_encoding(encoding)
        self._header = None if header is None else validate.flag("header", header)
        self._na = frozenset(() if na is None else (x.strip().lower() for x in validate.text("na", na).split(",")))
        self.decimal_commas_likely = self.headerless = False
        self.line = 0
        with self._open_bytes() as stream, _undamaged(stream, self.file):
            start = stream.read(4)
            if workbook := start == _ZIP_MAGIC:
                self._data = workbook_text(start + stream.read(), self.file, sheet)
                start = self._data[:4]
        self.parquet, self._first = start == _PARQUET_MAGIC, [""]
        if not start:
            raise DomainError(
                f"file must have at least one record; got the empty file {str(self.file)!r}. Check the path."
            )
        kind, needless = "text", cast(dict[str, Any], {"sheet": sheet})
        if workbook:
            kind, needless = "a workbook", {"sep": None if sep == "," else sep, "encoding": encoding}
            self.separator = ","
        elif self.parquet:
            kind = "Parquet"
            needless |= {"sep": sep, "decimal": decimal, "encoding": encoding, "header": header, "na": na}
        for name, value in needless.items():
            if value is not None:
                raise DomainError(
                    f"{name} must be left out for {kind}, which needs none; got {value!r} with {str(self.file)!r}. "
                    "Drop it."
                )
        if self.parquet:
            self.names = [str(name) for name in self._arrow(lambda parquet, source: parquet.read_schema(source).names)]
            return
        mark = next((name for mark, name in _BYTE_ORDER_MARKS if start.startswith(mark)), None)
        if self._encoding is None and mark is not None:
            raise DomainError(
                f"file must be text in UTF-8; got the byte order mark of {mark.upper()} in {str(self.file)!r}. Pass "
                f"encoding={mark!r} (--encoding {mark})."
            )
        self._read_dialect()

    @property
    def header_inferred(self) -> bool:
        """Whether line 1 was taken for the header without an argument that says so."""
        return not self.parquet and not self.headerless and self._header is None

    def description(self, decimals: Sequence[str] = ()) -> str:
        """Return the name of the file, and how it was read if it is not plain CSV."""
        notes = []
        if self.separator not in (None, ","):
            notes.append("separator " + {"\t": "tab", " ": "blank"}.get(self.separator, repr(self.separator)))
        if "," in decimals:
            notes.append("decimal ','")
        if self._encoding is not None and self._encoding != "utf-8":
            notes.append(self._encoding)
        if self.headerless:
            notes.append("no line of names")
        return self.file.name + (f" ({', '.join(notes)})" if notes else "")

    def column_index(self, column: str | None) -> int:
        """Return the index of the column of this name; for None, that of the only one."""
        labels = self.names
        shown = ", ".join(map(validate.shortened, labels[:20])) + (", ..." if len(labels) > 20 else "")
        if column is None:
            if len(labels) != 1:
                raise DomainError(
                    f"column must be named when a file has several; got {len(labels)} columns: {shown}. Pass "
                    "--column NAME."
                )
            return 0
        if column not in labels:
            in_line_1 = self.headerless and self._header is None and column in self._first
            more = f" Line 1 holds numbers alone. {_HEADER_REMEDY}" if in_line_1 else ""
            repeat = " A name with a comma stands alone: repeat --column." if "," in column else ""
            raise DomainError(
                f"column must be one of the file's columns: {shown}; got {column!r}. Choose one of these.{repeat}{more}"
            )
        if labels.count(column) > 1:
            raise DomainError(
                f"column must be unique; got {labels.count(column)} columns called {column!r}. Rename one."
            )
        if not self.parquet and self._header is None and not self.headerless and is_number(column):
            raise DomainError(
                f"line 1 must hold names, or numbers alone; got the number {column!r} beside "
                f"{next(name for name in labels if not is_number(name))!r}. {_HEADER_REMEDY}"
            )
        return labels.index(column)

    def cells(self, column: str | None) -> list[str]:
        """Return the cells of a column of a CSV file, in the order of the file."""
        index = self.column_index(column)
        cells = [row[index] for row in self.rows()]
        if self.separator is None and _are_row_names(cells):
            raise DomainError(
                f"line 1 must name every column; got {self.names[0]!r} alone above lines that begin with 1, 2, 3. Name "
                "the column of row numbers too, or pass sep=';' (--sep ';') if these are numbers with a decimal comma."
            )
        return cells

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the cells of each record, in the order of the file; those of a CSV file are texts."""
        if self.parquet:
            columns = self._arrow(
                lambda parquet, source: [column.to_pylist() for column in parquet.read_table(source).columns]
            )
            for self.line, record in enumerate(zip(*columns, strict=True), start=1):
                yield record
            return
        width, alone = len(self.names), self.separator is None
        begins = ends = 0  # numbers of lines before the last record, and up to its end
        with self._open_text() as stream:
            lines = _TextLines(stream, self.file)
            rows = self._reader(lines)
            try:
                if not self.headerless:
                    next(rows)
                    ends = rows.line_num
                for row in rows:
                    begins, ends = ends, rows.line_num
                    self.line = ends
                    if alone and len(row) > 1:
                        row = self._joined(row, lines.line, ends)
                    if len(row) == width:
                        yield ["" if cell.strip().lower() in self._na else cell for cell in row] if self._na else row
                    elif row:
                        raise self._ragged(ends, len(row))
                    elif width == 1:
                        yield [""]
            except csv.Error as error:
                raise DomainError(
                    f"file must be a well-formed CSV file; got {str(self.file)!r}: {error}. Write it again."
                ) from None
        if ends > begins + 1:
            self._check_quotation_closed(begins)

    def table(self) -> Any:
        """Return the columns of a Parquet file as an Arrow table."""
        return self._arrow(lambda parquet, source: parquet.read_table(source))

    def arrow(self, column: str | None) -> tuple[str, Any, Any]:
        """Return name and cells of a column of a Parquet file, and pyarrow."""
        name = self.names[self.column_index(column)]
        cells = self._arrow(lambda parquet, source: parquet.read_table(source, columns=[name]).column(0))
        import pyarrow

        return name, cells, pyarrow

    def _read_dialect(self) -> None:
        """Find separator, header and names in the first lines."""
        with self._open_text() as stream:
            lines, whole, size = [], True, 0
            for line in _TextLines(stream, self.file):
                lines.append(line)
                size += len(line)
                if len(lines) == _SAMPLE_LINES or size > _SAMPLE_SIZE:
                    whole = False
                    break
        if not lines or not lines[0].strip():
            raise DomainError(
                "line 1 must hold the names of the columns; got an empty line. Remove it, or check the file."
            )
        if self.separator is None:
            self.separator = _find_separator(lines, whole)
        sample = _parse_sample(lines, self.separator or ",", whole)
        self._first = [cell.strip() for cell in (sample[0] if sample else [])]
        if self.separator is None:
            self._first = [",".join(self._first)]
        every = all(map(is_number, self._first))
        self.headerless = every if self._header is None else not self._header
        self.names = [str(i) for i in range(1, len(self._first) + 1)] if self.headerless else self._first
        self.decimal_commas_likely = self.separator == ";" or any(
            DECIMAL_COMMA.fullmatch(cell) and not THOUSANDS.fullmatch(cell) for row in sample for cell in row
        )

    def _reader(self, lines: Iterable[str], strict: bool = False) -> Any:
        return csv.reader(lines, delimiter=self.separator or ",", skipinitialspace=self.separator != " ", strict=strict)

    def _joined(self, row: list[str], line: str, number: int) -> list[str]:
        """Return the only cell of a line of a file of one column, in which commas stand."""
        text = ",".join(row)
        is_number_with_commas = DECIMAL_COMMA.fullmatch(text) or THOUSANDS.fullmatch(text)
        if '"' in line or not (is_number_with_commas or not _CELL_END.search(text)):
            raise self._ragged(number, len(row))
        return [text]

    def _ragged(self, line: int, cells: int) -> DomainError:
        width = len(self.names)
        return DomainError(
            f"line {line} must be of {width} cells like the first line; got {cells}. Correct that line (a stray "
            "separator or an open quotation mark is the usual cause), or pass what separates cells, as in sep=';' "
            "(--sep ';')."
        )

    def _check_quotation_closed(self, begins: int) -> None:
        """Refuse a last record that swallowed lines behind a quotation mark which nothing closes."""
        with self._open_text() as stream:
            try:
                list(self._reader(itertools.islice(_TextLines(stream, self.file), begins, None), strict=True))
            except csv.Error as error:
                if "end of data" in str(error):
                    raise DomainError(
                        f"line {begins + 1} must close the quotation mark that it opens; got none until the end of "
                        f'{str(self.file)!r}. Close it, or write "" for a quotation mark in a cell.'
                    ) from None

    def _open_bytes(self) -> BinaryIO:
        """Open the file, unpacked."""
        if self._data is None:
            if self.file.is_dir() or not self.file.exists():
                kind = IsADirectoryError if self.file.is_dir() else FileNotFoundError
                raise kind(f"file must be an existing CSV or Parquet file; got {str(self.file)!r}. Check the path.")
            stream: BinaryIO = open(self.file, "rb")  # noqa: SIM115 - closed with what is returned
        else:
            stream = io.BytesIO(self._data)
        start = stream.read(10)
        stream.seek(0)
        if _ARCHIVE.match(start):
            stream.close()
            raise _archive_error(self.file)
        if start.startswith(b"\x1f\x8b"):
            packed = gzip.GzipFile(fileobj=stream)
            packed.myfileobj = stream  # type: ignore[assignment]  # closed with the packed one
            return cast(BinaryIO, packed)
        return stream

    def _open_text(self) -> TextIO:
        return io.TextIOWrapper(self._open_bytes(), encoding=self._encoding or "utf-8", newline="")

    def _arrow(self, read: Any) -> Any:
        arrow, parquet = pyarrow("read Parquet")
        source: Any = self.file if self._data is None else arrow.BufferReader(self._data)
        try:
            return read(parquet, source)
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = str(error).splitlines()[0]
            raise DomainError(
                f"file must be a whole Parquet file; got {str(self.file)!r}: {reason}. Write it again."
            ) from None


def open_table(path: Path) -> ColumnFile:
    """Open a Parquet file where the name ends so, else a CSV file with commas and a line of names."""
    if path.suffix.lower() != ".parquet":
        return ColumnFile(path, sep=",", header=True)
    table = ColumnFile(path)
    if not table.parquet:
        raise DomainError(
            f"file must be a whole Parquet file; got {str(path)!r}, which does not begin as one. Write it again."
        )
    return table


@contextmanager
def _undamaged(stream: Any, file: Path) -> Iterator[None]:
    """Say that a packed file is damaged, in what is read from it here."""
    try:
        yield
    except _DAMAGE_ERRORS as error:
        if not isinstance(stream, gzip.GzipFile):
            raise
        raise DomainError(
            f"file must be packed without damage; got {str(file)!r}: {error}. Copy or write it again."
        ) from None


class _TextLines:
    """The lines of a text, of which the last one is kept; raises for bytes that are not text in this encoding."""

    def __init__(self, stream: TextIO, file: Path) -> None:
        self._stream, self._file, self.line = stream, file, ""

    def __iter__(self) -> Iterator[str]:
        number, encoding = 0, _encoding_name(self._stream.encoding)
        try:
            lines = lines_of(self._stream, self._file, _LONGEST_LINE)
            while True:
                with _undamaged(self._stream.buffer, self._file):
                    line = next(lines, "")
                if not line:
                    return
                if "\0" in line:
                    raise DomainError(
                        f"file must be text; got the character 0 in line {number + 1} of {str(self._file)!r}. Pass the "
                        "encoding it has, such as encoding='utf-16-le' (--encoding utf-16-le), or save it as CSV in "
                        "UTF-8."
                    )
                number += 1
                self.line = line if number > 1 else line.removeprefix("\ufeff")
                yield self.line
        except UnicodeDecodeError as error:
            raise DomainError(
                f"file must be text in {encoding}; got byte 0x{error.object[error.start]:02x} "
                f"in {str(self._file)!r}: {error.reason}. Pass the encoding it has, such as encoding='latin-1', "
                "'cp1252' or 'utf-16' (--encoding latin-1), or save it in UTF-8."
            ) from None
        except UnicodeError as error:
            raise DomainError(
                f"file must be text in {encoding}; got {str(self._file)!r}: {error}. Pass the "
                "encoding it has, such as encoding='utf-16-le' (--encoding utf-16-le)."
            ) from None


def is_number(text: str) -> bool:
    """Whether a cell is a number, with a decimal point or comma or with commas between thousands."""
    try:
        float(text)
    except ValueError:
        return bool(DECIMAL_COMMA.fullmatch(text) or THOUSANDS.fullmatch(text))
    return "_" not in text


def _archive_error(file: Path) -> DomainError:
    return DomainError(
        f"file must be CSV, packed by gzip or not, Parquet, or a workbook (.xlsx); got {str(file)!r}, another archive "
        "or a damaged workbook. Unpack it, or save it as CSV in UTF-8."
    )


def workbook_text(data: bytes, file: Path, sheet: str | None = None) -> bytes:
    """Return the sheet of this name, or the only one, of a workbook as CSV in UTF-8 with commas."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise BackendMissingError(
            "openpyxl must be installed to read a workbook (.xlsx); got none. Run: pip install 'fastpriv[excel]'"
        ) from None
    try:
        with warnings.catch_warnings(action="ignore"):  # about parts of the workbook that hold no cells
            books = [load_workbook(io.BytesIO(data), read_only=True, data_only=results) for results in (True, False)]
            names = [item.title for item in books[0].worksheets]
            name = sheet if sheet is not None or len(names) > 1 else names[0]
            if name in names:
                return _sheet_text(*(book[name] for book in books))
    except (DomainError, MemoryError):
        raise
    except Exception:  # openpyxl raises errors of many kinds for damaged files
        raise _archive_error(file) from None
    raise DomainError(
        f"sheet must be one of the sheets {', '.join(map(repr, names))} of {str(file)!r}; got {sheet!r}. Pass its "
        "name (--sheet NAME)."
    )


def _sheet_text(results: Any, formulas: Any) -> bytes:
    """Return a sheet as CSV: its results, beside which it is read with formulas."""
    rows: list[list[Any]] = []
    for page in (results, formulas):
        page.reset_dimensions()  # those that the file states may be wrong
    pairs = zip(*(page.iter_rows(values_only=True) for page in (results, formulas)), strict=True)
    for number, (cells, sources) in enumerate(pairs, start=1):
        unknown = [source for cell, source in zip(cells, sources, strict=True) if cell is None and source is not None]
        if unknown or number > _MAX_SHEET_ROWS:
            fault = f"the formula {unknown[0]!r} without one" if unknown else f"more than {_MAX_SHEET_ROWS} rows"
            raise DomainError(
                f"row {number} of the sheet must be cells with their results; got {fault}. Open the workbook in a "
                "spreadsheet program and save it."
            )
        row = [cell.date() if isinstance(cell, datetime) and cell.time() == time() else cell for cell in cells]
        while row and row[-1] is None:
            row.pop()
        rows.append(row)
    while rows and not rows[-1]:
        rows.pop()
    text = io.StringIO()
    width = len(rows[0]) if rows else 0
    csv.writer(text).writerows(row + [None] * (width - len(row)) if row or width == 1 else row for row in rows)
    return text.getvalue().encode()


def _check_separator(sep: Any) -> str | None:
    if sep is None:
        return None
    separator = {"tab": "\t", "\\t": "\t"}.get(sep, sep) if isinstance(sep, str) else sep
    if not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n\0':
        raise DomainError(
            f"sep must be one character, no quotation mark and no end of line; got {validate.shown(sep)}. Pass ',', "
            "';', '|' or 'tab' (--sep ';')."
        )
    return separator


def _check_encoding(encoding: Any) -> str:
    try:
        with io.TextIOWrapper(io.BytesIO(), encoding=encoding) as stream:
            return "utf-8" if _encoding_name(stream.encoding) == "UTF-8" else str(encoding).lower()
    except (LookupError, TypeError, ValueError):
        raise DomainError(
            f"encoding must be a text encoding that Python knows; got {validate.shown(encoding)}. Pass utf-8, utf-16, "
            "latin-1, cp1252 or another one."
        ) from None


def _encoding_name(encoding: str) -> str:
    return "UTF-8" if encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig", "u8") else encoding


def _parse_sample(lines: list[str], separator: str, whole: bool) -> list[list[str]]:
    """Parse a sample; leave out empty lines and a last record that the sample may cut."""
    rows: list[list[str]] = []
    try:
        rows += csv.reader(lines, delimiter=separator, skipinitialspace=separator != " ")
    except csv.Error:  # reported when the whole file is read
        return rows
    if not whole and len(rows) > 1:
        rows.pop()
    return [row for row in rows if row]


def _find_separator(lines: list[str], whole: bool) -> str | None:
    """Find what separates cells; None for one column."""
    samples = {separator: _parse_sample(lines, separator, whole) for separator in _SEPARATORS}
    samples = {separator: rows for separator, rows in samples.items() if rows and len(rows[0]) > 1}
    if len(samples) > 1:  # a cell in quotation marks ends with them
        quoted = {sep: rows for sep, rows in samples.items() if _ends_inside_quotes(lines[0], sep)}
        samples = quoted or samples
    if len(samples) < 2:
        return next(iter(samples), None)
    fit = [
        separator
        for separator, rows in samples.items()
        if all(len(row) == len(rows[0]) and all(map(_is_one_cell, row)) for row in rows)
    ]
    if len(fit) == 1:
        return fit[0]
    shown = " and ".join(repr(separator) for separator in samples)
    raise DomainError(
        f"sep must be given where line 1 may be cut in several ways; got {shown} in {lines[0].strip()[:60]!r}. Pass "
        "what separates cells: sep=';' (--sep ';')."
    )


def _ends_inside_quotes(line: str, separator: str) -> bool:
    try:
        list(csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error as error:
        return "end of data" in str(error)
    return True


def _is_one_cell(cell: str) -> bool:
    return not _CELL_END.search(cell) or bool(DECIMAL_COMMA.fullmatch(cell))


def _are_row_names(cells: list[str]) -> bool:
    """Whether the cells of a file without separators begin with 1, 2, 3 and a comma: row numbers without a name."""
    return len(cells) > 1 and all(cell.startswith(f"{i},") for i, cell in enumerate(cells, start=1))
