"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from ..base.escaping import escape_invisible

if TYPE_CHECKING:
    from ..base.column_files import ColumnFile

__all__ = [
    "FIGURE_FORMATS", "GRID_FORMS", "add_column_options", "figure_format", "open_table", "print_text",
    "warnings_on_one_line",
]  # fmt: skip

FIGURE_FORMATS = ("png", "svg", "pdf", "none")  # choices of --figures; "none" draws nothing
# The three ways to write a grid, for the help texts.
GRID_FORMS = "numbers (1,2,5), start:stop:count (equal steps) or start..stop:count (equal ratios)"


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a CSV file is written."""
    add = parser.add_argument
    add("--sep", metavar="CHAR", help="what separates cells, one character or tab (default: what cuts all lines alike)")
    add(
        "--decimal", metavar="MARK", help="what stands before decimals, . or , (default: the comma where all cells are "
        "numbers with one)",
    )  # fmt: skip
    add("--encoding", metavar="NAME", help="of the text, such as latin-1, cp1252 or utf-16 (default: utf-8)")
    add(
        "--header", action=argparse.BooleanOptionalAction, help="names stand in line 1, or they do not (default: they "
        "do unless it holds numbers alone; columns are then called 1, 2, ...)",
    )  # fmt: skip


def figure_format(args: argparse.Namespace) -> Literal["png", "svg", "pdf"] | None:
    """Return the ending of the picture's name, None for no picture."""
    if args.figure is None:
        return "png" if find_spec("matplotlib") else None
    figure: Literal["png", "svg", "pdf", "none"] = args.figure
    return None if figure == "none" else figure


def open_table(args: argparse.Namespace, path: str, data: bytes | None = None) -> ColumnFile:
    """Open a file of columns with these options; ``-`` is standard input, or ``data`` where that was read from it."""
    from ..base.column_files import ColumnFile

    dialect = {"sep": args.sep, "decimal": args.decimal, "encoding": args.encoding, "header": args.header}
    if path != "-":
        return ColumnFile(path, **dialect)
    return ColumnFile("standard input", data=sys.stdin.buffer.read() if data is None else data, **dialect)


def print_text(text: str) -> None:
    """Write text for people to standard output; characters without a shape, which names may hold, are escaped."""
    sys.stdout.write(escape_invisible(text))


@contextmanager
def warnings_on_one_line(*, shown: bool = True) -> Iterator[None]:
    """Print warnings about samples, arguments and long runs as one line each, unless they are not to be shown."""

    def print_warning(message: Warning | str, *location: Any, **more: Any) -> None:
        if shown:
            print(f"fastpriv: warning: {escape_invisible(' '.join(str(message).split()))}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = print_warning
        yield
