"""``Table``: rows under named columns, and the frames, texts and files that hold them.

A result that is a table derives from ``Table`` and says its columns, its rows, and what its files say besides them;
everything that a table can be written as follows. Tables of text for people are ``aligned`` or an ``html_table``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import validate
from .errors import BackendMissingError, DomainError, explain_missing_package
from .escaping import escape_invisible
from .files import atomic_write, check_writable_file, json_safe, write_csv, write_csv_rows
from .numerics import rounded_down, rounded_up
from .version import VERSION

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "CellType", "Table", "aligned", "bounded_cells", "bounded_names", "bracket_texts", "html_table", "pandas",
    "pyarrow", "table_path", "write_table",
]

# What the cells of a column are: "category" is text of which Parquet stores each distinct one once. The type of a
# column called "" is inferred from its cells.
CellType = Literal["text", "category", "number", "integer", ""]
# The types of Parquet.
_ARROW_TYPES = {"text": "string", "category": "string", "number": "float64", "integer": "int64"}
# What stands for characters with a meaning of their own in LaTeX.
_LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
})


class Table:
    """Base of results that are tables: a subclass has ``column_types``, ``rows`` and, if need be, ``metadata``."""

    __slots__ = ()

    def column_types(self) -> Mapping[str, CellType]:
        """The columns by name, in order, with the type of their cells."""
        raise NotImplementedError

    def rows(self) -> Iterable[Any]:
        """The rows: cells in the order of the columns; None where there is nothing."""
        raise NotImplementedError

    def metadata(self) -> dict[str, Any]:
        """What JSON and Parquet files say besides the version and the rows, in plain types."""
        return {}

    def columns(self) -> Any:
        """Names of the columns."""
        return tuple(self.column_types())

    def to_frame(self) -> pd.DataFrame:
        """The table as a ``pandas.DataFrame``; NaN where a number does not apply."""
        types = self.column_types()
        frame: pd.DataFrame = pandas("to_frame").DataFrame(list(self.rows()), columns=list(types))
        return frame.astype({name: "float64" for name, kind in types.items() if kind == "number"})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV in UTF-8, atomically; cells without a number are empty."""
        write_csv(validate.path("path", path), tuple(self.column_types()), self.rows())

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write metadata and rows as JSON, atomically; infinite numbers are the texts "inf" and "-inf"."""
        with atomic_write(validate.path("path", path)) as stream:
            for piece in self.json_pieces():
                stream.write(piece.encode())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet with the metadata in its schema, atomically."""
        target = validate.path("path", path)
        arrow, parquet = pyarrow()
        types = self.column_types()
        cells = list(zip(*self.rows(), strict=True)) or [()] * len(types)
        arrays = {
            name: _arrow_array(arrow, column, kind) for (name, kind), column in zip(types.items(), cells, strict=True)
        }
        metadata = {"fastpriv": json.dumps(json_safe(self._head()))}
        with atomic_write(target) as stream:
            parquet.write_table(arrow.table(arrays).replace_schema_metadata(metadata), stream)

    def json_pieces(self) -> Iterator[str]:
        """The JSON document in pieces, so that a long table is never in memory as text."""
        yield json.dumps(json_safe(self._head()), indent=1, default=str)[:-2] + ',\n "table": ['
        for index, row in enumerate(self.named_rows()):
            yield (",\n  " if index else "\n  ") + json.dumps(json_safe(row))
        yield "\n ]\n}\n"

    def to_latex(self, columns: Sequence[str] | None = None, digits: int = 4) -> str:
        """Columns, by default all, in LaTeX (package booktabs); bounds are rounded outward to so many digits."""
        known, places = tuple(self.column_types()), validate.count("digits", digits, 1, 17)
        wanted = known if columns is None else validate.sequence("columns", columns, "names of columns")
        names = [validate.choice("columns", name, known) for name in wanted]
        rows = [[_latex_cell(name, row[name], places) for name in names] for row in self.named_rows()]
        lines = [r" & ".join(row) + r" \\" for row in [[_latex_text(name) for name in names], *rows]]
        middle = "\n".join([lines[0], r"\midrule", *lines[1:]])
        return f"\\begin{{tabular}}{{{'l' * len(names)}}}\n\\toprule\n{middle}\n\\bottomrule\n\\end{{tabular}}\n"

    def write_files(self, folder: Path, stem: str) -> list[Path]:
        """Write CSV, JSON and, with pyarrow, Parquet files of this stem; return their paths."""
        endings = ("csv", "json", "parquet") if find_spec("pyarrow") else ("csv", "json")
        paths = [folder / f"{stem}.{ending}" for ending in endings]
        for ending, path in zip(endings, paths, strict=True):
            getattr(self, f"to_{ending}")(path)
        return paths

    def print_csv(self, stream: Any) -> None:
        """Write the table as CSV to a stream of text."""
        write_csv_rows(stream, tuple(self.column_types()), self.rows())

    def named_rows(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a dict by the names of the columns."""
        names = tuple(self.column_types())
        return (dict(zip(names, row, strict=True)) for row in self.rows())

    def _head(self) -> dict[str, Any]:
        return {"fastpriv": VERSION} | self.metadata()


def _latex_text(text: str) -> str:
    return escape_invisible(text).translate(_LATEX)


def _latex_cell(name: str, cell: Any, digits: int) -> str:
    """A cell, of a number the digits rounded to the outside where the column is of bounds."""
    if cell is None or cell != cell:
        return ""
    if not isinstance(cell, (float, np.floating)):
        return _latex_text(str(cell))
    rounded = rounded_down if name.endswith("lower") else rounded_up if name.endswith("upper") else "{:.{}g}".format
    mantissa, _, exponent = rounded(float(cell), digits).replace("inf", r"\infty").partition("e")
    return f"${mantissa} \\times 10^{{{int(exponent)}}}$" if exponent else f"${mantissa}$"


def table_path(name: str, path: str | os.PathLike[str]) -> Path:
    """Return the path of a table whose ending gives its format; raise before the work if it cannot be written."""
    target = validate.path(name, path)
    if target.suffix.lower() not in (".parquet", ".csv"):
        raise DomainError(f"{name} must end in .parquet or .csv; got {str(target)!r}. Choose one of these endings.")
    if target.suffix.lower() == ".parquet":
        pyarrow()
    check_writable_file(target)
    return target


def write_table(table: Table, path: str | os.PathLike[str]) -> Path:
    """Write a table to a file whose ending, ``.parquet`` or ``.csv``, gives the format; return its path."""
    target = table_path("path", path)
    (table.to_parquet if target.suffix.lower() == ".parquet" else table.to_csv)(target)
    return target


def aligned(rows: Sequence[Sequence[str]], *, left: int | None = None, indent: str = "") -> list[str]:
    """Return rows as lines with aligned columns: the first ``left`` of them, or all, to the left, others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    count = len(widths) if left is None else left
    return [
        indent
        + "  ".join(
            cell.ljust(width) if index < count else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def bracket_texts(value: float, lower: float, upper: float, digits: int) -> tuple[str, str, str]:
    """Return a number and its bounds as texts of so many significant digits, the bounds rounded outward."""
    return f"{value:.{digits}g}", rounded_down(lower, digits), rounded_up(upper, digits)


def bounded_names(names: Iterable[str]) -> list[str]:
    """Return the columns of numbers with their bounds, which have ``_lower`` and ``_upper`` after the name."""
    return [name + end for name in names for end in ("", "_lower", "_upper")]


def bounded_cells(estimates: Iterable[Any]) -> list[float | None]:
    """Return the cells of these columns: those of each Estimate, or None where there is none."""
    return [cell for number in estimates for cell in ((None,) * 3 if number is None else number.floats())]


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return a table in HTML for notebooks; texts are escaped here."""
    from html import escape as escape_html

    def escape(text: str) -> str:
        return escape_html(escape_invisible(text))

    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def pandas(function: str) -> Any:
    """Return the module pandas, or raise an error that says how to install it."""
    with explain_missing_package(function, "pandas", "pandas"):
        import pandas
    return pandas


def pyarrow(purpose: str = "write Parquet") -> tuple[Any, Any]:
    """Return the modules pyarrow and pyarrow.parquet, or raise an error that says how to install them."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise BackendMissingError(
            f"pyarrow must be installed to {purpose}; got none. Run: pip install 'fastpriv[table]'"
        ) from None
    return pyarrow, parquet


def _arrow_array(arrow: Any, cells: Sequence[Any], kind: CellType) -> Any:
    if not kind:
        return arrow.array(cells)
    array = arrow.array(cells, getattr(arrow, _ARROW_TYPES[kind])())
    return array.dictionary_encode() if kind == "category" else array
