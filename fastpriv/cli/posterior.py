"""``fastpriv posterior``: the posterior after one release, from files of likelihoods and prior."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.errors import DomainError
from .shared_options import add_column_options, add_shared_options, open_table, print_answer, warnings_on_one_line

if TYPE_CHECKING:
    from ..posteriors.result import Posterior

_DIGITS = 12  # significant digits that are printed


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    parser.description = (
        "Evidence, entropy, divergences, log ratios and the most probable secrets of the posterior over a domain with "
        "one likelihood a secret, with bounds. Files of any size are read in blocks."
    )
    add = parser.add_argument
    add(
        "file", metavar="FILE", help=".npy, Parquet or CSV file, or - for standard input: natural logarithms of "
        "likelihoods, one a secret",
    )
    add("--column", metavar="NAME", help="its column, of a Parquet or CSV file")
    add("--plain", action="store_true", help="FILE holds likelihoods, not logarithms")
    add("--prior", metavar="FILE", help="file of prior probabilities (default: uniform)")
    add("--prior-column", metavar="NAME", help="its column, of a Parquet or CSV file")
    add_column_options(parser)
    add("--log-prior", action="store_true", help="the prior's file holds natural logarithms")
    add("--top", metavar="K", type=int, default=10, help="how many of the most probable secrets (default: 10)")
    add("--out", metavar="FILE", help="write all posterior probabilities to this .npy file")
    add_shared_options(parser, "n_jobs", "json", "quiet")
    parser.epilog = "Example: fastpriv posterior likelihoods.npy --prior prior.npy --top 5 --out posterior.npy"
    parser.set_defaults(
        large="the most probable secrets must fit into memory; got less memory than they need. Take a smaller --top.",
    )


def run(args: argparse.Namespace) -> int:
    """Compute, print and write; return the exit code."""
    from ..channels.likelihoods import DenseLikelihood
    from ..posteriors.bayes import posterior

    if args.file == args.prior == "-":
        raise DomainError("FILE and --prior must not both be standard input; got - twice. Name a file for one of them.")
    prior_source = None if args.prior is None else _source(args, args.prior, args.prior_column)
    prior, log_prior = (None, prior_source) if args.log_prior else (prior_source, None)
    with warnings_on_one_line():
        result = posterior(
            DenseLikelihood(_source(args, args.file, args.column), log=not args.plain), prior, log_prior=log_prior,
            top=args.top, out=args.out, n_jobs=args.n_jobs, progress=not args.quiet,
        )
    written = "" if args.out is None else f"\nWritten: {args.out}\n"
    return print_answer(args, result.to_dict(), _table(result) + written)


def _source(args: argparse.Namespace, path: str, column: str | None) -> Any:
    """Return the path of a file that is read in blocks, or the array of one that is text or comes through a pipe."""
    if path != "-" and (Path(path).suffix.lower() in (".npy", ".parquet") or not Path(path).is_file()):
        return path if column is None else (path, column)
    from ..distributions.columns import open_column

    data = sys.stdin.buffer.read() if path == "-" else None
    if data is not None and data.startswith(b"\x93NUMPY"):
        return _npy_array(data)
    return open_column(open_table(args, path, data), column, "error").numbers(finite=False)


def _npy_array(data: bytes) -> Any:
    """Return the array in the bytes of a .npy file."""
    import io

    from ..base.files import read_npy_header

    try:
        header = read_npy_header(io.BytesIO(data), len(data))
    except DomainError as error:
        raise DomainError(
            f"standard input must be a whole .npy file; got one in which {error}. Write it again with numpy.save."
        ) from None
    return header.array(data, header.start)


def _table(posterior: Posterior) -> str:
    from ..base.table import aligned, bracket_texts

    rows = [("quantity", "value", "at least", "at most", "unit", "kind")]
    numbers = posterior.to_dict()
    for name, number in numbers.items():
        if isinstance(number, dict) and "lower" in number:
            texts = bracket_texts(number["value"], number["lower"], number["upper"], _DIGITS)
            rows.append((name.replace("_", " "), *texts, number["unit"], number["kind"]))
    text = "\n".join(aligned(rows)) + f"\n\n{posterior.size} secrets; the most probable is {posterior.map_index}"
    text += "\n" if posterior.ties == 1 else f", and {posterior.ties - 1} more are as probable\n"
    for index, probability in zip(posterior.top.indices, posterior.top.probabilities, strict=True):
        text += f"{int(index):>{len(str(posterior.size))}}  {float(probability):.{_DIGITS}g}\n"
    return text
