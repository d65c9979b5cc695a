"""``fastpriv divergence``: a divergence of two Gaussian mixtures in files, as a table with bounds and as a file."""

from __future__ import annotations

import argparse
import sys

from ..base.errors import DomainError
from .shared_options import GRID_FORMS, add_shared_options, print_text, warnings_on_one_line


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Compute a divergence of two Gaussian mixtures, or the entropy or label information of one, with bounds: exact "
        "or certified where that can be, else sampled. The files are made by "
        "fastpriv.distributions.write_mixture(path, mixture), or hold weights, means and sigmas or covariances as "
        "JSON or .npz."
    )
    add = parser.add_argument
    add(
        "quantity", metavar="QUANTITY", help="kl, jensen-shannon, total-variation, hockey-stick, log-hockey-stick, "
        "renyi, entropy or label-information",
    )
    add("p", metavar="P", help="file of the first mixture")
    add("q", nargs="?", metavar="Q", help="file of the second mixture; none for entropy and label-information")
    add("--epsilon", metavar="GRID", help=f"of the hockey-sticks, in nats: {GRID_FORMS} (default: 0)")
    add("--order", metavar="A", type=float, help="of the Renyi divergence (default: 2)")
    add("--both", action="store_true", help="also the other direction, Q||P (kl and the hockey-sticks)")
    add("--certified", action="store_true", help="the proved enclosure or an error")
    add("--side", metavar="SIDE", default="both", help="both, or the bound of interest: lower or upper (default: both)")
    add("--rtol", metavar="R", type=float, default=1e-3, help="stop at this relative half width (default: 1e-3)")
    add("--atol", metavar="A", type=float, default=0.0, help="or at this absolute one (default: 0)")
    add("--max-samples", metavar="N", type=float, default=1e8, help="samples at most (default: 1e8)")
    add("--max-seconds", metavar="S", type=float, default=60.0, help="seconds at most (default: 60)")
    add("--method", metavar="WORDS", default="auto", help="auto, or what is forced, as 'direct sobol' (default: auto)")
    add("--interval", metavar="KIND", default="replicates", help="replicates or guaranteed (default: replicates)")
    add("--out", metavar="FILE", help="also write the table to this .csv or .parquet file")
    add_shared_options(
        parser, "unit", "seed", "n_jobs", "json", confidence="level of a sampled interval (default: 0.95)",
        quiet="no progress bar; with --out no table",
    )
    parser.epilog = "Example: fastpriv divergence hockey-stick p.json q.json --epsilon 0.1..10:5 --out deltas.csv"
    parser.set_defaults(
        interrupted="nothing was reached yet, and nothing written.",
        large="mixtures and samples must fit into memory; got less memory than they need. Take fewer components.",
    )


def run(args: argparse.Namespace) -> int:
    """Compute, print and write the table; return the exit code."""
    from ..base.table import table_path, write_table
    from ..distributions.files import read_mixture
    from .divergence_table import QUANTITIES, compute_table

    if args.quantity in QUANTITIES and ("Q" in QUANTITIES[args.quantity][1]) != (args.q is not None):
        got, constraint = ("none", "given") if args.q is None else (repr(args.q), "left out")
        raise DomainError(f"Q must be {constraint} for {args.quantity}; got {got}. See fastpriv divergence --help.")
    if args.seed is not None and args.seed < 0:
        raise DomainError(f"--seed must be a whole number of at least 0; got {args.seed}. Pass one, or leave it out.")
    if args.out is not None:  # before the work, not after it
        table_path("--out", args.out)
    mixtures = [(file, read_mixture(file)) for file in (args.p, args.q) if file is not None]
    values = {name: getattr(args, name) for name in ("epsilon", "order", "both", "certified")}
    values["unit"] = None if args.unit == "nats" else args.unit  # nats are given to every quantity
    sampling = {
        name: getattr(args, name) for name in (
            "confidence", "side", "rtol", "atol", "max_samples", "max_seconds", "method", "interval", "n_jobs",
        )
    }
    with warnings_on_one_line():
        code = 0
        try:
            table = compute_table(
                args.quantity, mixtures, values, rng=args.seed, progress=not args.quiet, **sampling,
            )
        except KeyboardInterrupt as error:
            if not hasattr(error, "best"):
                raise
            exec("")  # as in main
            table, code = error.best, 130
            print(f"fastpriv: warning: {error} The bounds are those of what was done.", file=sys.stderr)
    if args.out is not None:
        write_table(table, args.out)
    if args.json:
        sys.stdout.writelines(table.json_pieces())
    elif args.out is None or not args.quiet:
        print_text(table.summary() + (f"\n\nWritten: {args.out}" if args.out else "") + "\n")
    return code
