"""``fastpriv figures``: the figures of a paper, recomputed with bounds."""

from __future__ import annotations

import argparse

from .shared_options import add_file_options, directory_of_files, figure_format, make_directory, print_result


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Compute figures 1 to 4 of Ngo, Ostman and Graell i Amat, On local mutual-information privacy, with its "
        "parameters, as printed and as they should read. Prints what is wrong in print; writes a table with bounds "
        "(CSV) and a picture of each."
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", default="all", help="all, or figure1 to figure4, or 1 to 4 (default: all)"
    )
    add_file_options(parser, "figures", json="print the tables as JSON; writes files only with --out")
    parser.epilog = "Example: fastpriv figures figure2 --out figures --figure-format svg"
    parser.set_defaults(interrupted="files that are there are whole. Run the same command again.")


def run(args: argparse.Namespace) -> int:
    """Compute, print and write the figures; return the exit code."""
    from ..studies.papers.paper_report import figure_names, paper

    figure = figure_format(args)
    figure_names(args.name)
    out = directory_of_files(args)
    make_directory(out)
    computed = paper(args.name, progress=not args.quiet)
    written = [] if out is None else computed.save(out, figure=figure)
    return print_result(args, computed, computed.summary(), written)
