"""``fastpriv info``: versions, instruction set, threads, optional dependencies."""

from __future__ import annotations

import argparse
import json

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "Example: fastpriv info --json"
    parser.set_defaults(run=run, interrupted="nothing was written.")


def run(args: argparse.Namespace) -> int:
    """Print what is installed and return the exit code."""
    from ..info import installation, show_versions

    if args.json:
        print(json.dumps(installation(), indent=1))
    else:
        show_versions()
    return 0
