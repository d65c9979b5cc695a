"""``fastpriv risk``: what many private releases together tell an attacker, in sentences with proved numbers."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..base.version import VERSION
from .compose import add_step_options, composition_of, summary_of
from .shared_options import add_shared_options, print_answer, what_ran


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "What releases tell an attacker, in sentences for people who decide: how many members are found, how sure an "
        "accusation is, what a guess attains. Every number is a proved upper bound, rounded up."
    )
    add_step_options(parser)
    ask = parser.add_argument_group("what is asked")
    ask.add_argument("--prior", metavar="P", type=float, default=0.01, help="share of members among those asked about "
        "(default: 0.01)")
    ask.add_argument("--fpr", metavar="A", type=float, default=1e-3, help="share of the others that the attacker "
        "accuses (default: 0.001)")
    ask.add_argument("--candidates", metavar="K", type=int, default=10, help="values of a record that are equally "
        "likely before the release (default: 10)")
    ask.add_argument("--delta", metavar="D", type=float, default=1e-5, help="delta at which epsilon is told (default: "
        "1e-5)")
    ask.add_argument("--record", metavar="WORD", default="record", help="what one contribution is called, such as "
        "patient")
    parser.add_argument("--page", metavar="FILE", help="write the sentences and numbers as a page (.html)")
    add_shared_options(parser, "json")
    parser.epilog = "Example: fastpriv risk --sigma 1 --rate 0.01 --count 1000 --prior 0.05 --record patient"
    parser.set_defaults(direction=None, least_sigma=False, largest_count=False)


def run(args: argparse.Namespace) -> int:
    """Compute, print and write; return the exit code."""
    from ..base.files import check_writable_file, json_safe, write_text
    from ..composition.statements import ASSUMPTIONS, statement

    if args.page is not None:
        check_writable_file(args.page)
    composition, steps = composition_of(args)
    said = statement(
        composition, prior=args.prior, false_positive_rate=args.fpr, candidates=args.candidates, delta=args.delta,
        record=args.record,
    )
    summary = summary_of(args, composition, steps)
    if args.page is not None:
        from ..report import TextTable, page

        head = ["quantity", "value", "lower", "upper", "bounds"]
        table = TextTable(head, said.number_rows(), "The numbers", numeric=[1, 2, 3])
        text = page(
            "What the release tells an attacker", {"": [f"Released: {summary.composed}.", *said.sentences],
                                                   "Numbers": [table], "Assumed": [ASSUMPTIONS, *summary.assumed]},
            ran={"steps": summary.composed, **what_ran(args)},
        )
        write_text(Path(args.page), text)
    document = {"fastpriv": VERSION, "composed": summary.composed, **said.to_dict(),
                "assumed": [*said.assumptions(), *summary.assumed]}
    written = [] if args.page is None else [f"Written: {args.page}"]
    lines = [summary.composed, *summary.assumed, "", str(said), "", ASSUMPTIONS, *written, ""]
    return print_answer(args, json_safe(document), "\n".join(lines))
