"""``fastpriv assess``: its options, what they mean, and the run. Nothing heavy is loaded before it runs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import DomainError

__all__ = ["FIGURES", "GRID", "column_options", "figure_kind", "opened", "options"]

FIGURES = ("png", "svg", "pdf", "none")
GRID = "numbers (1,2,5), start:stop:count (equal steps) or start..stop:count (equal ratios)"


def options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.description = (
        "Tabulate what releasing each value of a column once, through a mechanism, leaks: LDP, LIP, mutual "
        "information, capacity, Bayesian privacy, leakage of guesses, each with bounds. Prints a table; writes CSV, "
        "Parquet, JSON and a figure. Several columns or mechanisms make one table."
    )
    add = parser.add_argument
    add(
        "file", nargs="?", metavar="FILE", help="CSV or Parquet file, also packed (gzip, bzip2, xz, zip); - for "
        "standard input; default: the ages of the Adult data set",
    )  # fmt: skip
    add(
        "--column", "--columns", metavar="NAMES", action="append", help="columns by name, with commas between them; "
        "repeat it for names that hold commas; may be left out when the file has one column",
    )  # fmt: skip
    column_options(parser)
    add(
        "--missing", choices=("error", "drop", "keep"), default="error",
        help="cells without a value; keep: as a category of their own (default: error)",
    )  # fmt: skip
    add(
        "--bins", metavar="N|exact", default="exact",
        help="release values rounded to the centres of N equal bins; exact: the values as they are (default: exact)",
    )  # fmt: skip
    add(
        "--mechanism", metavar="NAMES", default="gaussian",
        help="gaussian (numbers); rr, oue, sue, rappor, subset, exponential (any values); geometric, laplace-discrete "
        "(whole numbers); several with commas (default: gaussian)",
    )  # fmt: skip
    add("--channel", metavar="FILE", help="a channel instead, a row for each value: .csv, .npy, .npz, .parquet, .json")
    add("--prior", metavar="FILE", help="with --channel: probabilities of its inputs, one column (default: uniform)")
    add("--sigma", metavar="GRID", help=f"standard deviations of the noise, in the unit of the column: {GRID}")
    add(
        "--epsilon", metavar="GRID",
        help="levels of the mechanisms other than gaussian, LDP epsilons in nats: same forms (default: 21 from 0.1 to "
        "10); with gaussian or --channel alone, the epsilons of the curves, as --curve",
    )  # fmt: skip
    add("--curve", metavar="GRID", help="epsilons of the curves, in nats: same forms (default: 81 from 0.01 to 100)")
    add(
        "--sensitivity", metavar="S", help="largest distance between two possible values, in the unit of the column "
        "(default: range of the column)",
    )  # fmt: skip
    add("--out", metavar="DIR", help="directory for the files (default: fastpriv-report; none with --json)")
    add("--format", metavar="LIST", help="comma-separated, of csv, parquet, json, or none (default: all installed)")
    add("--figure", choices=FIGURES, help="kind of figure (default: png if matplotlib is installed)")
    add("--json", action="store_true", help="print JSON instead of the table; writes files only with --out")
    add("--resume", action="store_true", help="take the finished blocks of an interrupted run with the same settings")
    add("--n-jobs", metavar="N", type=int, default=-1, help="threads (default: all cores)")
    add("--quiet", action="store_true", help="no progress bar, no table")
    parser.epilog = (
        "Example: fastpriv assess people.csv --column age,job --mechanism rr,subset --epsilon 0.5,1,2 --out report"
    )
    again = "finished blocks are kept. Run the same command with --resume to go on."
    parser.set_defaults(run=_run, interrupted=again)


def column_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how a CSV file is written."""
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


def opened(asked: argparse.Namespace, path: str, data: bytes | None = None) -> Any:
    """A file of columns, or standard input (``data`` where it was read), with these options."""
    from .inputs.tables import Table

    words = {"sep": asked.sep, "decimal": asked.decimal, "encoding": asked.encoding, "header": asked.header}
    if path != "-":
        return Table(path, **words)
    return Table("standard input", data=sys.stdin.buffer.read() if data is None else data, **words)


def _run(asked: argparse.Namespace) -> int:
    formats, figure = _formats(asked), figure_kind(asked)
    out = asked.out if asked.out is not None else None if asked.json else "fastpriv-report"
    report = _assessed(asked, out)
    written = [] if out is None else report.save(out, formats=formats, figure=figure)
    if asked.json:
        for piece in report.json_pieces():
            sys.stdout.write(piece)
    elif not asked.quiet:
        sys.stdout.write(report.summary() + "\n")
        if written:
            sys.stdout.write("\nWritten: " + ", ".join(str(path) for path in written) + "\n")
    return 0


def _assessed(asked: argparse.Namespace, out: str | None) -> Any:
    from .families import FAMILIES, family_of
    from .run import assess, sweep

    names = [family_of(name.strip()).name for name in asked.mechanism.split(",")]
    levels = asked.channel is None and any(FAMILIES[name].parameter == "level" for name in names)
    if not levels and asked.epsilon is not None and asked.curve is not None:
        raise DomainError(
            f"--curve must be left out beside --epsilon here, where both mean the curves; got {asked.curve!r} and "
            f"{asked.epsilon!r}. Pass one."
        )
    words = {
        "sigma": asked.sigma, "epsilon": asked.curve if levels or asked.epsilon is None else asked.epsilon,
        "bins": _bins(asked.bins), "sensitivity": _sensitivity(asked.sensitivity), "n_jobs": asked.n_jobs,
        "progress": not asked.quiet, "checkpoint": out, "resume": asked.resume,
    }  # fmt: skip
    if levels:
        words["level"] = asked.epsilon
    if asked.channel is not None:
        channel, data, name, source = _channel(asked)
        return assess(data, mechanism=channel, name=name, source=source, **words)
    if asked.prior is not None:
        raise DomainError(f"--prior must stand beside --channel; got {asked.prior!r} alone. Pass the channel too.")
    columns, source = _columns(asked, names)
    if len(columns) == len(names) == 1:
        ((name, data),) = columns.items()
        return assess(data, mechanism=names[0], name=name, source=source, **words)
    return sweep(columns, mechanism=names, source=source, **words)


def _columns(asked: argparse.Namespace, mechanisms: list[str]) -> tuple[dict[str, Any], str]:
    """The columns by name, and where they come from."""
    from .families import FAMILIES

    if asked.file is None:
        from ..datasets import ADULT_CATEGORIES, ADULT_COLUMNS, adult

        needless = [name for name in ("sep", "decimal", "encoding", "header") if getattr(asked, name) is not None]
        if needless:
            raise DomainError(f"--{needless[0]} must stand beside a file; got none. Pass FILE, or leave it out.")
        chosen = _named(asked.column, (*ADULT_COLUMNS, *ADULT_CATEGORIES)) or ["age"]
        columns = {name: adult(name) for name in chosen}
        if asked.missing == "drop":
            columns = {k: x[x != "?"] if k in ADULT_CATEGORIES else x for k, x in columns.items()}
        return columns, "Adult data set (UCI)"
    from .inputs.columns import opened_column

    numbers = all(FAMILIES[name].domain != "values" for name in mechanisms)
    table = opened(asked, asked.file)
    named: list[str | None] = [*_named(asked.column, table.names)]
    found = {name or _stem(table): opened_column(table, name, asked.missing) for name in named or [None]}
    decimals = [column.decimal for column in found.values()]
    return {name: column.numbers() if numbers else column for name, column in found.items()}, table.said(decimals)


def _named(given: list[str] | None, names: Sequence[str]) -> list[str]:
    """The names of columns that are asked for: each text is one if a column is called so, else several."""
    found: list[str] = []
    for text in given or []:
        found += [text.strip()] if text.strip() in names else [name.strip() for name in text.split(",")]
    return found


def _stem(table: Any) -> str:
    """What the one column of a file is called: as the file, or by its own name where that is standard input."""
    if table.file.name == "standard input":
        return "value" if table.headless else str(table.names[0])
    name = table.file.name
    for ending in (".gz", ".bz2", ".xz", ".zip"):
        name = name.removesuffix(ending)
    return Path(name).stem


def _channel(asked: argparse.Namespace) -> tuple[Any, Any, str, str]:
    """The channel, the law of its input, its name, and where the law comes from."""
    import numpy as np

    from ..channels.files import read_channel
    from ..distributions import Pmf

    channel, name = read_channel(asked.channel), Path(asked.channel).name
    if asked.file is not None:
        if asked.prior is not None:
            raise DomainError(f"--prior must be left out beside a file of records; got {asked.prior!r}. Pass one.")
        columns, source = _columns(asked, ["rr"])
        if len(columns) != 1:
            raise DomainError(f"--column must be one column beside --channel; got {asked.column!r}. Pass one name.")
        return channel, *columns.values(), f"{next(iter(columns))} through {name}", source
    if asked.prior is None:
        return channel, None, name, "uniform prior"
    from .inputs.columns import opened_column

    table = opened(asked, asked.prior)
    names = _named(asked.column, table.names)
    if len(names) > 1:
        raise DomainError(f"--column must be one column beside --prior; got {asked.column!r}. Pass one name.")
    column = opened_column(table, names[0] if names else None, "error")
    given = column.numbers()
    if given.size != channel.inputs:
        raise DomainError(
            f"--prior must hold one probability for each of the {channel.inputs} inputs of {name}; got {given.size}. "
            "Write one a line, in the order of the channel's rows."
        )
    return channel, Pmf(np.arange(given.size), given), name, table.said([column.decimal])


def _formats(asked: argparse.Namespace) -> tuple[str, ...]:
    if asked.format is None:
        return ("csv", "parquet", "json") if find_spec("pyarrow") else ("csv", "json")
    words = tuple(dict.fromkeys(word.strip() for word in asked.format.split(",")))
    if words == ("none",):
        return ()
    for word in words:
        if word not in ("csv", "parquet", "json"):
            raise DomainError(f"--format must be of csv, parquet, json or none; got {word!r}. Choose among these.")
    return words


def figure_kind(asked: argparse.Namespace) -> str | None:
    """Ending of the picture's name, None for no picture."""
    if asked.figure is None:
        return "png" if find_spec("matplotlib") else None
    return None if asked.figure == "none" else str(asked.figure)


def _bins(text: str) -> int | None:
    if text == "exact":
        return None
    if not text.isdecimal():
        raise DomainError(
            f"--bins must be a whole number or exact; got {text!r}. Leave it out to release the values as they are."
        )
    return int(text)


def _sensitivity(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise DomainError(f"--sensitivity must be a number; got {text!r}. Pass it in the unit of the column.") from None
