"""Options that several commands share, and the parsing of their values."""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.errors import DomainError
from ..base.escaping import escape_invisible

if TYPE_CHECKING:
    from ..base.column_files import ColumnFile
    from ..base.numerics import FloatArray

FIGURE_FORMATS = ("png", "svg", "pdf", "none")  # choices of --figure-format; "none" draws nothing
# The three ways to write a grid, for the help texts.
GRID_FORMS = "numbers (1,2,5), start:stop:count (equal steps) or start..stop:count (equal ratios)"

_MAX_POINTS = 100_000  # of a grid of epsilons or deltas: the curves are smooth, and each point costs an evaluation
# The options that several commands have, by name.
_SHARED_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "confidence": {"metavar": "P", "type": float, "default": 0.95, "help": "level of intervals (default: 0.95)"},
    "figure_format": {"choices": FIGURE_FORMATS, "help": "kind of picture (default: png if matplotlib is installed)"},
    "json": {"action": "store_true", "help": "print JSON instead of the table"},
    "n_jobs": {"metavar": "N", "type": int, "default": -1, "help": "threads (default: all cores)"},
    "out": {"metavar": "DIR", "help": "directory for the files"},
    "quiet": {"action": "store_true", "help": "no progress bar"},
    "seed": {"metavar": "N", "type": int, "help": "the same seed gives the same random numbers"},
    "unit": {"choices": ("nats", "bits"), "help": "of amounts of information (default: nats)"},
}


def add_shared_options(parser: argparse.ArgumentParser, *names: str, **texts: str) -> None:
    """Add options that several commands have: ``names`` with their usual help text, ``texts`` with one of their own."""
    for name in names + tuple(texts):
        words = dict(_SHARED_OPTIONS[name])
        parser.add_argument(f"--{name.replace('_', '-')}", **words | {"help": texts.get(name, words["help"])})


def add_file_options(parser: argparse.ArgumentParser, files: str, *names: str, **texts: str) -> None:
    """Add the options of a command that writes files into ``fastpriv-{files}``, and further ones as those shared."""
    usual = {
        "out": f"directory for the files (default: fastpriv-{files}; none with --json)",
        "json": "print JSON instead of the table; writes files only with --out", "quiet": "no progress bar, no text",
    }
    add_shared_options(parser, *names, "figure_format", **usual | texts)
    parser.set_defaults(files=files)


def add_column_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say how a file of columns is written."""
    add = parser.add_argument
    add("--sep", metavar="CHAR", help="what separates cells, one character or tab (default: what cuts all lines alike)")
    add(
        "--decimal", metavar="MARK", help="what stands before decimals, . or , (default: the comma where all cells are "
        "numbers with one)",
    )
    add("--encoding", metavar="NAME", help="of the text, such as latin-1, cp1252 or utf-16 (default: utf-8)")
    add(
        "--header", action=argparse.BooleanOptionalAction, help="names stand in line 1, or they do not (default: they "
        "do unless it holds numbers alone; columns are then called 1, 2, ...)",
    )
    add("--na", metavar="MARKS", help="further marks of cells without a value, with commas: 'k.A.,-,#NV'")
    add("--sheet", metavar="NAME", help="the sheet of a workbook (default: its only one)")


def build_grid(name: str, text: str, constraint: str, valid: Callable[[FloatArray], Any], remedy: str) -> FloatArray:
    """Return the points of a grid of epsilons or deltas."""
    from ..base.grids import parse_grid

    points = parse_grid(name, text, constraint, valid, remedy)
    if points.count > _MAX_POINTS:
        raise DomainError(
            f"{name} must be a grid of at most {_MAX_POINTS:,} points; got {points.count:,}. Take fewer points: the "
            "curves are smooth."
        )
    return points.build()


def directory_of_files(args: argparse.Namespace) -> str | None:
    """Return the directory of --out; without it that of the command, and with --json none."""
    if Path(args.out or "").suffix in (".csv", ".html", ".json", ".parquet", ".pdf", ".png", ".svg"):
        raise DomainError(
            f"--out must be a directory, because this command writes several files; got {args.out!r}. Write --out "
            f"{Path(args.out).with_suffix('')}."
        )
    return args.out if args.out is not None or args.json else f"fastpriv-{args.files}"


def make_directory(out: str | None) -> None:
    """Make the directory of the files before the work, not after it; with None none."""
    from ..base.files import writable_directory

    if out is not None:
        writable_directory(out)


def what_ran(args: argparse.Namespace) -> dict[str, str]:
    """The command as it was typed, and the digest of each file that it reads: the same ones make the same page."""
    ran = {"command": args.typed}
    for name in ("file", "channel", "prior"):
        path = getattr(args, name, None)
        if isinstance(path, str) and Path(path).is_file():
            with open(path, "rb") as stream:
                ran[f"SHA-256 of {Path(path).name}"] = hashlib.file_digest(stream, "sha256").hexdigest()
    return ran


def figure_format(args: argparse.Namespace) -> Literal["png", "svg", "pdf"] | None:
    """Return the ending of the picture's name, None for no picture."""
    if args.figure_format is None:
        return "png" if find_spec("matplotlib") else None
    figure: Literal["png", "svg", "pdf", "none"] = args.figure_format
    return None if figure == "none" else figure


def csv_dialect(args: argparse.Namespace) -> dict[str, Any]:
    """Return what the options say of a file of columns, None where they are left out."""
    return {name: getattr(args, name) for name in ("sep", "decimal", "encoding", "header", "na", "sheet")}


def open_table(args: argparse.Namespace, path: str, data: bytes | None = None) -> ColumnFile:
    """Open a file of columns with these options; ``-`` is standard input, or ``data`` where that was read from it."""
    from ..base.column_files import ColumnFile

    dialect = csv_dialect(args)
    if path != "-":
        return ColumnFile(path, **dialect)
    return ColumnFile("standard input", data=sys.stdin.buffer.read() if data is None else data, **dialect)


def print_result(args: argparse.Namespace, result: Any, text: str, written: Sequence[Any]) -> int:
    """Print the result as JSON with --json, else the text with the names of the files; return the exit code."""
    if args.json:
        sys.stdout.writelines(result.json_pieces())
    elif not args.quiet:
        print_text(text + "\n")
        if written:
            print_text("\nWritten: " + ", ".join(map(str, written)) + "\n")
    return 0


def print_answer(args: argparse.Namespace, content: Any, text: str) -> int:
    """Print the content as JSON with --json, else the text; return the exit code."""
    if args.json:
        print_json(content)
    else:
        print_text(text)
    return 0


def print_json(content: Any) -> None:
    """Write plain types as JSON to standard output."""
    import json

    sys.stdout.write(json.dumps(content, indent=1, default=str) + "\n")


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
