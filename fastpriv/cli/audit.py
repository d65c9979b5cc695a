"""``fastpriv audit``: lower bounds on epsilon and mu from the scores of an attack on membership."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import shared_options


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Lower bounds on epsilon and on mu (Gaussian differential privacy) that the scores of an attack on membership "
        "prove at a confidence level, the choice of the threshold paid for."
    )
    add = parser.add_argument
    add("file", metavar="FILE", help="CSV, .xlsx, Parquet, .npz: a score (higher for members), a membership each row")
    add("--score", metavar="COLUMN", help="column of scores (default: score, or the first of two)")
    add("--member", metavar="COLUMN", help="column of memberships (default: member, or the second of two)")
    shared_options.add_column_options(parser)
    add("--one-run", action="store_true", help="the scores are canaries of one run, each in by the toss of a fair coin "
        "(default: independent runs)")
    add("--delta", metavar="D", type=float, default=0.0, help="at which epsilon is bounded (default: 0)")
    add("--selection", choices=("simultaneous", "split", "as_published"), default="simultaneous",
        help="how the threshold is chosen; as_published pays nothing for it and is FALSE")
    add("--threshold", metavar="T", type=float, help="fixed without these scores: claimed is what scores at least T")
    add("--guesses", metavar="R", type=int, help="fixed before the run, of --one-run")
    add("--claim", metavar="EPSILON", type=float, help="say whether the bound refutes this epsilon, and exit with "
        "code 1 if it does")
    add("--figure", metavar="FILE", help="draw the bound against the threshold into this file")
    shared_options.add_shared_options(parser, confidence="level of each bound (default: 0.95)", json="print JSON")
    parser.epilog = "Example: fastpriv audit scores.csv --one-run --delta 1e-5 --claim 2"


def run(args: argparse.Namespace) -> int:
    """Compute, print and draw; return the exit code."""
    from ..base.errors import DomainError
    from ..base.files import json_safe, write_picture
    from ..base.numerics import rounded_down
    from ..studies.auditing import audit_scores, read_scores

    dialect = shared_options.csv_dialect(args)
    scores, membership = read_scores(args.file, score=args.score, member=args.member, **dialect)
    if scores.ndim > 1 and not args.json:
        raise DomainError(
            f"FILE must have the scores of one audit to print; got {len(scores)} audits. Add --json, or write one row."
        )
    with shared_options.warnings_on_one_line():
        result = audit_scores(
            scores, membership, design="one_run" if args.one_run else "repeated_runs", delta=args.delta,
            confidence=args.confidence, selection=args.selection, threshold=args.threshold, guesses=args.guesses,
        )
    verdict = None if args.claim is None else result.verdict(args.claim)
    refuted = args.claim is not None and float(result.epsilon.lower) > args.claim
    if args.figure is not None:
        from ..report import audit

        write_picture(Path(args.figure), audit(result, claim=args.claim).figure, 150, "--figure")
    if args.json:
        quantities = {"epsilon": result.epsilon, "mu": result.mu}
        content = {name: item.to_dict() for name, item in quantities.items()} | {
            "delta": result.delta, "members": int(membership.sum()), "non_members": int((~membership).sum()),
            "counts": result.counts.tolist(),
        }
        if verdict is not None:
            content |= {"claim": args.claim, "refuted": refuted, "verdict": verdict}
        shared_options.print_json(json_safe(content))
    else:
        said = "FALSE as published" if result.epsilon.kind == "heuristic" else f"confidence {args.confidence:g}"
        shared_options.print_text(
            f"epsilon >= {rounded_down(float(result.epsilon.lower), 6)} nats at delta = {result.delta:g}\n"
            f"mu >= {rounded_down(float(result.mu.lower), 6)}\n"
            f"{said}, {result.epsilon.method}, {membership.sum()} members of {membership.size}\n"
            + ("" if verdict is None else f"{verdict}\n")
        )
    return int(refuted)
