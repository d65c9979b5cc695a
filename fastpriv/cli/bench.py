"""``fastpriv bench``: quantities beside the other packages that compute them, on this machine."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from .shared_options import add_shared_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Time each quantity beside every peer that is installed, on equal inputs; answers are compared first. Exit "
        "code 1 for a wrong answer, or a ratio to the best peer that fell by 20 % since the last run in the history."
    )
    add = parser.add_argument
    add("--only", metavar="TEXT", action="append", default=[], help="tasks whose names contain it; may be repeated")
    add("--quick", action="store_true", help="two minutes: fewer repetitions, no slow peers")
    add("--history", metavar="FILE", help="add the run to this file, one JSON line, and compare it with the last ones")
    add("--list", action="store_true", help="names of the tasks")
    add("--markdown", action="store_true", help="the tables of docs/benches.md, with all peers")
    add_shared_options(parser, json="print JSON instead of the table")
    parser.epilog = "Example: fastpriv bench --quick --only hockey-stick"


def run(args: argparse.Namespace) -> int:
    """Run the tasks of ``benches/comparison``, which is installed as ``fastpriv/benches``; return the exit code."""
    package = Path(__file__).parents[1]
    installed = package / "benches"
    folder = installed if installed.is_dir() else package.parent / "benches" / "comparison"
    spec = spec_from_file_location("fastpriv_benches", folder / "__init__.py")
    assert spec is not None  # the name of the file says how it is loaded
    sys.modules[spec.name] = module_from_spec(spec)
    output = "json" if args.json else "markdown" if args.markdown else "text"
    program = import_module(f"{spec.name}.program")
    return int(program.run(args.only, args.quick, args.history, output, args.list))
