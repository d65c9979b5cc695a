"""``fastpriv posterior``: what one release does to beliefs, from files of likelihoods and prior."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .assessment.command import column_options, opened
from .errors import DomainError

if TYPE_CHECKING:
    from .posteriors.result import Posterior

__all__ = ["options", "run"]

_DIGITS = 12


def options(parser: argparse.ArgumentParser) -> None:
    """Describes the command to its parser."""
    parser.description = (
        "Evidence, entropy, divergences, log ratios and the most probable secrets of the posterior over a domain with "
        "one likelihood a secret, with bounds. Files of any size are read in blocks."
    )
    add = parser.add_argument
    add(
        "file", metavar="FILE", help=".npy, Parquet or CSV file, or - for standard input: natural logarithms of "
        "likelihoods, one a secret",
    )  # fmt: skip
    add("--column", metavar="NAME", help="its column, of a Parquet or CSV file")
    add("--plain", action="store_true", help="FILE holds likelihoods, not logarithms")
    add("--prior", metavar="FILE", help="file of prior probabilities (default: uniform)")
    add("--prior-column", metavar="NAME", help="its column, of a Parquet or CSV file")
    column_options(parser)
    add("--log-prior", action="store_true", help="the prior's file holds natural logarithms")
    add("--top", metavar="K", type=int, default=10, help="how many of the most probable secrets (default: 10)")
    add("--out", metavar="FILE", help="write all posterior probabilities to this .npy file")
    add("--n-jobs", metavar="N", type=int, default=-1, help="threads (default: all cores)")
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--quiet", action="store_true", help="no progress bar")
    parser.epilog = "Example: fastpriv posterior likelihoods.npy --prior prior.npy --top 5 --out posterior.npy"
    parser.set_defaults(
        run=run, interrupted="nothing was written.",
        large="the most probable secrets must fit into memory; got less memory than they need. Take a smaller --top.",
    )  # fmt: skip


def run(asked: argparse.Namespace) -> int:
    """Computes and prints; the exit code."""
    from .channels.likelihoods.kinds import DenseLikelihood
    from .posteriors.bayes import posterior

    if asked.file == asked.prior == "-":
        raise DomainError("FILE and --prior must not both be standard input; got - twice. Name a file for one of them.")
    belief = None if asked.prior is None else _source(asked, asked.prior, asked.prior_column)
    prior, log_prior = (None, belief) if asked.log_prior else (belief, None)
    found = posterior(
        DenseLikelihood(_source(asked, asked.file, asked.column), log=not asked.plain), prior, log_prior=log_prior,
        top=asked.top, out=asked.out, n_jobs=asked.n_jobs, progress=not asked.quiet,
    )  # fmt: skip
    sys.stdout.write(json.dumps(found.to_dict(), indent=1) + "\n" if asked.json else _table(found))
    if asked.out is not None and not asked.json:
        sys.stdout.write(f"\nWritten: {asked.out}\n")
    return 0


def _source(asked: argparse.Namespace, path: str, column: str | None) -> Any:
    """Where the numbers are: a file that is read in blocks, or an array of what is text or comes through a pipe."""
    if path != "-" and (Path(path).suffix.lower() in (".npy", ".parquet") or not Path(path).is_file()):
        return path if column is None else (path, column)
    from .assessment.inputs.columns import opened_column

    data = sys.stdin.buffer.read() if path == "-" else None
    if data is not None and data.startswith(b"\x93NUMPY"):
        return _array(data)
    return opened_column(opened(asked, path, data), column, "error").numbers(finite=False)


def _array(data: bytes) -> Any:
    """The array in the bytes of a .npy file."""
    import io

    from ._files import npy_head

    try:
        head = npy_head(io.BytesIO(data), len(data))
    except DomainError as fault:
        raise DomainError(
            f"standard input must be a whole .npy file; got one in which {fault}. Write it again with numpy.save."
        ) from None
    return head.array(data, head.start)


def _table(found: Posterior) -> str:
    rows = [("quantity", "value", "at least", "at most", "unit", "kind")]
    numbers = found.to_dict()
    for name, number in numbers.items():
        if isinstance(number, dict) and "lower" in number:
            ends = (f"{number[end]:.{_DIGITS}g}" for end in ("value", "lower", "upper"))
            rows.append((name.replace("_", " "), *ends, number["unit"], number["kind"]))
    wide = [max(len(row[k]) for row in rows) for k in range(6)]
    text = "".join("  ".join(cell.ljust(wide[k]) for k, cell in enumerate(row)).rstrip() + "\n" for row in rows)
    text += f"\n{found.size} secrets; the most probable is {found.map_index}"
    text += "\n" if found.ties == 1 else f", and {found.ties - 1} more are as probable\n"
    for index, probability in zip(found.top.indices, found.top.probabilities, strict=True):
        text += f"{int(index):>{len(str(found.size))}}  {float(probability):.{_DIGITS}g}\n"
    return text
