"""``fastpriv sweep``: a quantity over a table of settings, kept in a store while it runs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..base.errors import DomainError
from ..base.escaping import escape_invisible
from .shared_options import add_shared_options, print_answer, print_json, print_text


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Evaluate a quantity in every cell of a table of settings, and tabulate the results with their bounds. With "
        "--store, every finished batch is kept: the same command goes on where a killed, interrupted or full run ended."
    )
    add = parser.add_argument
    add(
        "spec", nargs="?", metavar="SPEC", help="a TOML file with the keys quantity, grid, zip, table, replicates and "
        "seed; or the name of a quantity, or the place of a function, module:name or file.py:name",
    )
    add(
        "--grid", metavar="NAME=VALUES", action="append", default=[], help="values of a parameter: numbers (1,2,5), "
        "start:stop:count (equal steps), start..stop:count (equal ratios), or words; repeat it, for all combinations",
    )
    add("--table", metavar="FILE", help="rows of settings: CSV or Parquet")
    add("--replicates", metavar="N", type=int, help="how often each cell is evaluated (default: 1)")
    add("--store", metavar="FILE", help="where finished cells are kept; what is there is not computed again")
    add("--fresh", action="store_true", help="empty the store first")
    add("--out", metavar="FILE", help="the table, .parquet or .csv (default: CSV on standard output without --store)")
    add("--figure", metavar="FILE", help="draw the numbers with their bounds into this .png, .svg or .pdf")
    add("--x", metavar="NAME", help="the setting on the axis of the figure (default: the first)")
    add("--hue", metavar="NAME", help="the setting that tells the curves of the figure apart")
    add("--status", metavar="STORE", help="how far the sweep of this store is, also while it runs")
    add("--shard", metavar="I/N", help="the I-th of N parts, I from 1, with a store of its own")
    add("--merge", metavar="STORE", nargs="+", default=[], help="copy the cells of the stores of shards; compute none")
    add("--list", action="store_true", help="all quantities by name, with their parameters")
    add_shared_options(
        parser, seed="of random numbers, for functions with a parameter rng", n_jobs="workers (default: all cores)",
        json="print JSON instead of text", quiet="no progress, no summary",
    )
    parser.epilog = (
        "Example: fastpriv sweep sampled_gaussian_delta --grid sigma=0.5..5:50 --grid rate=0.001,0.01 --grid "
        "epsilon=0:5:26 --store sweep.db --out sweep.parquet"
    )
    parser.set_defaults(
        interrupted="finished cells are kept in the store, if there is one. Run the same command to go on.",
        large="the axes of a sweep must fit into memory; got less memory than they need. Take fewer values of each.",
    )


def run(args: argparse.Namespace) -> int:
    """Sweep, predict or report; return the exit code."""
    if args.list:
        return _print_quantities(args)
    if args.status is not None:
        return _print_status(args)
    if args.spec is None:
        raise DomainError("SPEC must be given; got none. Pass a TOML file or a quantity; --list names all.")
    from ..base.files import check_writable_file, json_safe, picture_kind, write_picture
    from ..sweeps.runs import sweep

    if args.figure is not None:
        picture_kind("--figure", args.figure)
        check_writable_file(args.figure)

    out = None if args.out in (None, "-") else args.out
    result = sweep(
        args.spec, args.table, grid=_grid(args.grid), replicates=args.replicates or 1,
        seed=args.seed, store=args.store, resume=not args.fresh, out=out, shard=_shard(args.shard), merge=args.merge,
        n_jobs=args.n_jobs, progress=not args.quiet,
    )
    if args.figure is not None:
        ax = result.plot(args.x or result.settings.names[0], args.hue)
        write_picture(Path(args.figure), ax.figure, 150)
    whole = out is None and (args.out == "-" or args.store is None)
    if args.json:
        content = result.to_dict() if whole else result.metadata()
        print_json(json_safe(content | {"failed": result.failed, "store": args.store, "out": args.out}))
    elif whole:
        result.print_csv(sys.stdout)
    elif not args.quiet:
        where = ", ".join(filter(None, (args.store, out, args.figure)))
        print_text(f"{len(result):,} cells, {result.failed:,} failed. Written: {where}\n")
    error = next(result.errors(), None)
    if error is not None and not args.quiet:
        sys.stderr.write(escape_invisible(
            f"fastpriv: {result.failed:,} of {len(result):,} cells failed, the first with: {error}\n"
        ))
    return 0


def _print_quantities(args: argparse.Namespace) -> int:
    from ..base.table import aligned
    from ..sweeps.quantities import quantity_names

    names = quantity_names()
    return print_answer(args, names, "".join(f"{line}\n" for line in aligned(list(names.items()))))


def _print_status(args: argparse.Namespace) -> int:
    from ..base.store import ResultStore
    from ..sweeps.runs import SweepProgress

    with ResultStore.read(args.status) as store:
        progress, identity = SweepProgress.of_notes(store.notes()), store.identity
    content = identity | vars(progress) | {"rate": progress.rate, "seconds_left": progress.seconds_left}
    return print_answer(args, content, f"{identity.get('quantity')}: {progress}\n")


def _grid(texts: list[str]) -> dict[str, Any] | None:
    """Return the axes by name."""
    axes = list(map(_axis, texts))
    names = [name for name, _ in axes]
    for name in names:
        if names.count(name) > 1:
            raise DomainError(f"--grid must name each parameter once; got {name!r} twice. Write all values in one.")
    return dict(axes) or None


def _axis(text: str) -> tuple[str, Any]:
    """Return the name and the values of an axis."""
    name, equals, values = text.partition("=")
    if not equals or not name.strip() or not values.strip():
        raise DomainError(f"--grid must be NAME=VALUES; got {text!r}. Write --grid sigma=1,2,5.")
    if ":" in values:
        return name.strip(), values
    words = [word.strip() for word in values.split(",")]
    try:
        return name.strip(), [int(word) if word.lstrip("+-").isdecimal() else float(word) for word in words]
    except ValueError:
        return name.strip(), words


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    index, _, shards = text.partition("/")
    if not (index.isdecimal() and shards.isdecimal()):
        raise DomainError(f"--shard must be I/N, two whole numbers; got {text!r}. Write 1/10 for the first of ten.")
    return int(index), int(shards)
