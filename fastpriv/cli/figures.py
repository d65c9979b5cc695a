"""``fastpriv figures``: the figures of a paper, recomputed with bounds."""

from __future__ import annotations

import argparse
import sys

from .shared_options import FIGURE_FORMATS, figure_format, print_text

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Compute figures 1 to 4 of Ngo, Ostman and Graell i Amat, On local mutual-information privacy, with its "
        "parameters, as printed and as they should read. Prints what is seen; writes a table with bounds (CSV) and a "
        "picture of each, and one page (HTML) that shows them all."
    )
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", default="all", help="all, or figure1 to figure4, or 1 to 4 (default: all)")
    add("--out", metavar="DIR", help="directory for the files (default: fastpriv-figures; none with --json)")
    add("--figure", choices=FIGURE_FORMATS, help="kind of picture (default: png if matplotlib is installed)")
    add("--json", action="store_true", help="print the tables as JSON; writes files only with --out")
    add("--quiet", action="store_true", help="no progress bar, no text")
    parser.epilog = "Example: fastpriv figures figure2 --out figures --figure svg"
    parser.set_defaults(run=run, interrupted="files that are there are whole. Run the same command again.")


def run(args: argparse.Namespace) -> int:
    """Compute, print and write the figures; return the exit code."""
    from ..base.files import writable_directory
    from ..studies.papers.paper_report import figure_names, paper

    figure = figure_format(args)
    figure_names(args.name)
    out = args.out if args.out is not None else None if args.json else "fastpriv-figures"
    if out is not None:  # before the work, not after it
        writable_directory(out)
    computed = paper(args.name, progress=not args.quiet)
    written = [] if out is None else computed.save(out, figure=figure)
    if args.json:
        for piece in computed.json_pieces():
            sys.stdout.write(piece)
    elif not args.quiet:
        print_text(f"{computed.summary()}\n\nWritten: {', '.join(str(path) for path in written)}\n")
    return 0
