"""``fastpriv assess``: what releasing each value of a column with noise leaks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import DomainError
from . import shared_options
from .shared_options import GRID_FORMS

if TYPE_CHECKING:
    from ..base.column_files import ColumnFile


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Tabulate what releasing each value of a column once, through a mechanism, leaks: LDP, LIP, mutual "
        "information, capacity, Bayesian privacy, leakage of guesses, each with bounds. Prints a table; writes CSV, "
        "Parquet, JSON, a figure, and a page (HTML) that shows and explains it all. Several columns or mechanisms make "
        "one table."
    )
    add = parser.add_argument
    add(
        "file", nargs="?", metavar="FILE", help="CSV (also packed by gzip) or Parquet file; - for "
        "standard input; default: the ages of the Adult data set",
    )
    add(
        "--column", "--columns", metavar="NAMES", action="append", help="columns by name, with commas between them; "
        "repeat it for names that hold commas; may be left out when the file has one column",
    )
    shared_options.add_column_options(parser)
    add(
        "--missing", choices=("error", "drop", "keep"), default="error",
        help="cells without a value; keep: as a category of their own (default: error)",
    )
    add("--id", metavar="COLUMN", help="identifiers of persons: several rows of one are refused, as all numbers are "
        "about one row")
    add("--dates", choices=("days", "months"), default="days", help="dates (2024-05-31) as days since 1970-01-01, or "
        "cut to months (default: days)")
    add(
        "--bins", metavar="N|exact", default="exact",
        help="release values rounded to the centres of N equal bins; exact: the values as they are (default: exact)",
    )
    add(
        "--mechanism", metavar="NAMES", default="gaussian",
        help="gaussian (numbers); rr, oue, sue, rappor, subset, exponential (any values); geometric, laplace-discrete "
        "(whole numbers); several with commas (default: gaussian)",
    )
    add("--channel", metavar="FILE", help="a channel instead, a row for each value: .csv, .npy, .npz, .parquet, .json")
    add("--prior", metavar="FILE", help="with --channel: probabilities of its inputs, one column (default: uniform)")
    add("--sigma", metavar="GRID", help=f"standard deviations of noise, in the unit of the column: {GRID_FORMS}")
    add(
        "--epsilon", metavar="GRID",
        help="levels of the mechanisms other than gaussian, LDP epsilons in nats: same forms (default: 21 from 0.1 to "
        "10); with gaussian or --channel alone, the epsilons of the curves, as --curve",
    )
    add("--curve", metavar="GRID", help="epsilons of the curves, in nats: same forms (default: 81 from 0.01 to 100)")
    add(
        "--sensitivity", metavar="S", type=float, help="largest distance between two possible values, in the unit of "
        "the column, that is known without the data (default: range of the column, which is computed from the private "
        "data)",
    )
    add(
        "--statistic", choices=("mean", "sum", "count", "histogram"), help="release this of all records in place of "
        "each value, with gaussian or laplace noise (--epsilon: its pure epsilon)",
    )
    add(
        "--bounds", metavar=("LOW", "HIGH"), type=float, nargs=2, help="of a statistic: least and largest value, "
        "stated without a look at the data; others are clipped to them, or not counted",
    )
    add("--relation", metavar="NAME", help="of a statistic: add_or_remove, or replace_one (default of mean alone)")
    add("--format", metavar="LIST", help="comma-separated, of csv, parquet, json, html, or none (default: all)")
    add("--resume", action="store_true", help="take the finished blocks of an interrupted run with the same settings")
    shared_options.add_file_options(parser, "report", "n_jobs", quiet="no progress bar, no table")
    parser.epilog = (
        "Example: fastpriv assess people.csv --column age,job --mechanism rr,subset --epsilon 0.5,1,2 --out report"
    )
    parser.set_defaults(interrupted="finished blocks are kept. Run the same command with --resume to go on.")


def run(args: argparse.Namespace) -> int:
    """Assess, print and write; return the exit code."""
    formats, figure = _formats(args), shared_options.figure_format(args)
    out = shared_options.directory_of_files(args)
    with shared_options.warnings_on_one_line(shown=not args.quiet):
        report = _assess(args, out)
    written = [] if out is None else report.save(out, formats=formats, figure=figure, ran=shared_options.what_ran(args))
    return shared_options.print_result(args, report, report.summary(), written)


def _assess(args: argparse.Namespace, out: str | None) -> Any:
    from ..studies.assessment.assess import assess, default_level
    from ..studies.assessment.families import FAMILIES, family_of

    names = [name.strip() for name in args.mechanism.split(",")]
    if args.statistic is None:
        names = [family_of(name).name for name in names]
    has_level = args.channel is None and any(name == "laplace" or FAMILIES[name].parameter == "level" for name in names)
    if not has_level and args.epsilon is not None and args.curve is not None:
        raise DomainError(
            f"--curve must be left out beside --epsilon here, where both mean the curves; got {args.curve!r} and "
            f"{args.epsilon!r}. Pass one."
        )
    keywords = {
        "sigma": args.sigma, "epsilon": args.curve if has_level or args.epsilon is None else args.epsilon,
        "bins": _bins(args.bins), "sensitivity": args.sensitivity, "statistic": args.statistic, "bounds": args.bounds,
        "relation": args.relation, "n_jobs": args.n_jobs,
        "progress": not args.quiet, "checkpoint": out, "resume": args.resume,
    }
    if has_level:
        keywords["level"] = default_level() if args.epsilon is None else args.epsilon
    if args.channel is not None:
        channel, data, name, source = _read_channel(args)
        return assess(data, mechanism=channel, name=name, source=source, **keywords)
    if args.prior is not None:
        raise DomainError(f"--prior must stand beside --channel; got {args.prior!r} alone. Pass the channel too.")
    columns, source = _columns(args, names)
    if len(columns) == len(names) == 1:
        ((name, data),) = columns.items()
        return assess(data, mechanism=names[0], name=name, source=source, **keywords)
    return assess(columns, mechanism=names, source=source, **keywords)


def _columns(args: argparse.Namespace, mechanisms: list[str]) -> tuple[dict[str, Any], str]:
    """Return the columns by name, and the text that says where they come from."""
    from ..studies.assessment.families import FAMILIES

    if args.file is None:
        from ..studies.datasets import ADULT_CATEGORIES, ADULT_COLUMNS, adult

        unused = [k for k, value in (shared_options.csv_dialect(args) | {"id": args.id}).items() if value is not None]
        if unused:
            raise DomainError(f"--{unused[0]} must stand beside a file; got none. Pass FILE, or leave it out.")
        chosen = _column_names(args.column, (*ADULT_COLUMNS, *ADULT_CATEGORIES)) or ["age"]
        columns = {name: adult(name) for name in chosen}
        if args.missing == "drop":
            columns = {k: x[x != "?"] if k in ADULT_CATEGORIES else x for k, x in columns.items()}
        return columns, "Adult data set (UCI)"
    from ..distributions.columns import open_column

    numeric = args.bounds or (args.statistic is None and all(FAMILIES[name].domain != "values" for name in mechanisms))
    table = shared_options.open_table(args, args.file)
    names: list[str | None] = [*_column_names(args.column, table.names)]
    opened = {name or _default_name(table): open_column(table, name, args.missing, args.dates)
              for name in names or [None]}
    source = table.description([column.decimal for column in opened.values()])
    if args.id is not None:
        open_column(table, args.id, "error").check_one_row_each()
        source += f", one row for each {args.id}"
    return {name: column.numbers() if numeric else column for name, column in opened.items()}, source


def _column_names(option: list[str] | None, names: Sequence[str]) -> list[str]:
    """Return the column names in the option: a text is one name if a column is called so, else several with commas."""
    chosen: list[str] = []
    for text in option or []:
        chosen += [text.strip()] if text.strip() in names else [name.strip() for name in text.split(",")]
    return chosen


def _default_name(table: ColumnFile) -> str:
    """Return the name of a file's only column: that of the file, or its own if the file is standard input."""
    if table.file.name == "standard input":
        return "value" if table.headerless else str(table.names[0])
    return Path(table.file.name.removesuffix(".gz")).stem


def _read_channel(args: argparse.Namespace) -> tuple[Any, Any, str, str]:
    """Return the channel, the distribution of its input, its name, and where the distribution comes from."""
    import numpy as np

    from ..channels.files import read_channel
    from ..distributions import Pmf

    channel, name = read_channel(args.channel), Path(args.channel).name
    if args.file is not None:
        if args.prior is not None:
            raise DomainError(f"--prior must be left out beside a file of records; got {args.prior!r}. Pass one.")
        columns, source = _columns(args, ["rr"])
        if len(columns) != 1:
            raise DomainError(f"--column must be one column beside --channel; got {args.column!r}. Pass one name.")
        return channel, *columns.values(), f"{next(iter(columns))} through {name}", source
    if args.prior is None:
        return channel, None, name, "uniform prior"
    from ..distributions.columns import open_column

    table = shared_options.open_table(args, args.prior)
    names = _column_names(args.column, table.names)
    if len(names) > 1:
        raise DomainError(f"--column must be one column beside --prior; got {args.column!r}. Pass one name.")
    column = open_column(table, names[0] if names else None, "error")
    probabilities = column.numbers()
    if probabilities.size != channel.inputs:
        raise DomainError(
            f"--prior must hold one probability for each of the {channel.inputs} inputs of {name}; got "
            f"{probabilities.size}. Write one a line, in the order of the channel's rows."
        )
    return channel, Pmf(np.arange(probabilities.size), probabilities), name, table.description([column.decimal])


def _formats(args: argparse.Namespace) -> tuple[str, ...]:
    if args.format is None:
        return ("csv", "parquet", "json", "html") if find_spec("pyarrow") else ("csv", "json", "html")
    formats = tuple(dict.fromkeys(word.strip() for word in args.format.split(",")))
    if formats == ("none",):
        return ()
    from ..base import validate

    for word in formats:
        validate.choice("--format", word, ("csv", "parquet", "json", "html", "none"))
    return formats


def _bins(text: str) -> int | None:
    if text == "exact":
        return None
    if not text.isdecimal():
        raise DomainError(
            f"--bins must be a whole number or exact; got {text!r}. Leave it out to release the values as they are."
        )
    return int(text)
