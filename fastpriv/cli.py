"""The command line: ``fastpriv assess``, ``divergence``, ``posterior``, ``convert``, ``figures`` and ``info``.

Exit codes: 0 done, 2 bad input (one line on stderr, no traceback), 130 interrupted, 141 the reader of the output left.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from . import __version__, posterior_command
from .assessment.command import FIGURES, GRID, figure_kind
from .assessment.command import options as _assess_options
from .errors import DomainError, NotConvergedError, SamplingWarning

__all__ = ["main"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments after the name of the program; by default those of the process.

    Returns
    -------
    int
        0, 2 for bad input, 130 when interrupted, 141 when the reader of the output left.

    Examples
    --------
    >>> from fastpriv.cli import main
    >>> main(["assess", "no-such-file.csv"])
    2
    """
    if arguments is None:
        _own_process()
    asked = _parser().parse_args(arguments)
    try:
        code = int(asked.run(asked))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        exec("")  # one that arose inside exec() has CPython die by the signal at exit, unless another exec() follows
        return _failed(f"interrupted; {asked.interrupted}", 130)
    except BrokenPipeError:
        _drop_output()
        return 141
    except MemoryError as fault:
        told = type(fault) is MemoryError and fault.args  # by fastpriv, not by the interpreter
        return _failed(str(fault) if told else asked.large, 2)
    except (ValueError, OSError, ImportError, NotConvergedError) as fault:
        if isinstance(fault, OSError) and fault.strerror and fault.errno in _FULL:  # written files say it themselves
            _drop_output()
            return _failed(
                f"standard output must be writable; got: {fault.strerror}. Free space there, or write elsewhere.", 2
            )
        return _failed(_said(fault), 2)


def _own_process() -> None:
    """Set up the process for the command line.

    Characters that the output cannot encode are escaped, matplotlib does not report its cache directory, and Ctrl-C
    stops the command also where it arrives inside a finalizer, where Python drops exceptions.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    sys.unraisablehook = _repeat_interrupt


def _repeat_interrupt(dropped: Any) -> None:
    """Interrupt the main thread again if an exception that Python is about to drop is KeyboardInterrupt."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        main_thread = threading.main_thread().ident or 0
        # A moment later, when the finalizer has returned; a signal, so that a blocking call ends too.
        threading.Timer(0.01, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(dropped)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_failed(f"{message}. See {self.prog} --help.", 2))


def _drop_output() -> None:
    """What could not be printed is not tried again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(message: str, code: int) -> int:
    print(f"fastpriv: error: {' '.join(message.split())}", file=sys.stderr)
    return code


def _said(fault: BaseException) -> str:
    if isinstance(fault, OSError) and fault.strerror is not None:
        return f"{fault.filename or 'file'} must be readable or writable; got: {fault.strerror}. Check path and rights."
    return str(fault)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fastpriv",
        description="Privacy figures with bounds. Commands: assess, divergence, posterior, convert, figures, info.",
        epilog="Example: fastpriv assess people.csv --column age --sigma 1,10,100",
    )
    parser.set_defaults(
        large="the grid must fit into memory; got less memory than it needs. Take fewer points, or release rounded "
        "values (--bins 256)."
    )
    parser.add_argument("--version", action="version", version=f"fastpriv {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    info = commands.add_parser(
        "info", help="versions, instruction set, threads, optional dependencies", epilog="Example: fastpriv info --json"
    )
    info.add_argument("--json", action="store_true", help="print JSON")
    info.set_defaults(run=_info, interrupted="nothing was written.")
    _assess_options(commands.add_parser("assess", help="what does releasing each value of a column with noise leak?"))
    _divergence_options(commands.add_parser("divergence", help="a divergence of two Gaussian mixtures in files"))
    posterior_command.options(commands.add_parser("posterior", help="what one release does to beliefs, from files"))
    _convert_options(commands.add_parser("convert", help="one privacy notion from another, with its source"))
    _figures_options(commands.add_parser("figures", help="the figures of a paper, recomputed with bounds"))
    return parser


def _divergence_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compute a divergence of two Gaussian mixtures, or the entropy or label information of one, with bounds: exact "
        "or certified where that can be, else sampled. The files are made by fastpriv.write_mixture(path, mixture), or "
        "hold weights, means and sigmas or covariances as JSON or .npz."
    )
    add = parser.add_argument
    add(
        "quantity", metavar="QUANTITY", help="kl, jensen-shannon, total-variation, hockey-stick, log-hockey-stick, "
        "renyi, entropy or label-information",
    )  # fmt: skip
    add("p", metavar="P", help="file of the first mixture")
    add("q", nargs="?", metavar="Q", help="file of the second mixture; none for entropy and label-information")
    add("--epsilon", metavar="GRID", help=f"of the hockey-sticks, in nats: {GRID} (default: 0)")
    add("--order", metavar="A", type=float, help="of the Renyi divergence (default: 2)")
    add("--both", action="store_true", help="also the other direction, Q||P (kl and the hockey-sticks)")
    add("--certified", action="store_true", help="the proved enclosure or an error")
    add("--confidence", metavar="C", type=float, default=0.95, help="level of a sampled interval (default: 0.95)")
    add("--side", metavar="SIDE", default="both", help="both, or the bound of interest: lower or upper (default: both)")
    add("--rtol", metavar="R", type=float, default=1e-3, help="stop at this relative half width (default: 1e-3)")
    add("--atol", metavar="A", type=float, default=0.0, help="or at this absolute one (default: 0)")
    add("--max-samples", metavar="N", type=float, default=1e8, help="samples at most (default: 1e8)")
    add("--max-seconds", metavar="S", type=float, default=60.0, help="seconds at most (default: 60)")
    add("--method", metavar="WORDS", default="auto", help="auto, or what is forced, as 'direct sobol' (default: auto)")
    add("--interval", metavar="KIND", default="replicates", help="replicates or guaranteed (default: replicates)")
    add("--seed", metavar="N", type=int, help="the same seed gives the same samples")
    add("--n-jobs", metavar="N", type=int, default=-1, help="threads (default: all cores)")
    add("--out", metavar="FILE", help="also write the table to this .csv or .parquet file")
    add("--json", action="store_true", help="print JSON instead of the table")
    add("--quiet", action="store_true", help="no progress bar; with --out no table")
    parser.epilog = "Example: fastpriv divergence hockey-stick p.json q.json --epsilon 0.1..10:5 --out deltas.csv"
    parser.set_defaults(
        run=_divergence, interrupted="nothing was reached yet, and nothing written.",
        large="mixtures and samples must fit into memory; got less memory than they need. Take fewer components.",
    )  # fmt: skip


def _convert_options(parser: argparse.ArgumentParser) -> None:
    from .conversions.vocabulary import NOTIONS, PARAMETERS

    parser.description = (
        "Convert a guarantee from one privacy notion to another: by the tight conversion, or by the shortest chain of "
        f"conversions where none leads straight. Notions: {', '.join(NOTIONS)}."
    )
    add = parser.add_argument
    add("target", nargs="?", metavar="TARGET", help="the notion wanted")
    add("--from", dest="source", metavar="SOURCE", help="the notion that is known")
    add("--form", choices=("tight", "bound", "as_published"),
        help="a conversion of this form only; as_published: as printed in a paper, also where it is false")
    add("--unit", choices=("nats", "bits"), help="of amounts of information, in and out (default: nats)")
    add("--list", action="store_true", help="all conversions, or those of TARGET and SOURCE")
    add("--markdown", action="store_true", help="with --list: the page CONVERSIONS.md")
    add("--json", action="store_true", help="print JSON instead of text")
    numbers = parser.add_argument_group("numbers", "one, or several by commas; inf is one")
    for name, known in PARAMETERS.items():
        numbers.add_argument(f"--{name.replace('_', '-')}", metavar="X", help=known.text.replace("``", "").rstrip("."))
    parser.epilog = "Example: fastpriv convert dp --from zcdp --rho 0.5 --delta 1e-6"
    parser.set_defaults(run=_convert, interrupted="nothing was written.")


def _figures_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Compute figures 1 to 4 of Ngo, Ostman and Graell i Amat, On local mutual-information privacy, with its "
        "parameters, as printed and as they should read. Prints what is seen; writes a table with bounds (CSV) and a "
        "picture of each, and one page (HTML) that shows them all."
    )
    add = parser.add_argument
    add("name", nargs="?", metavar="NAME", default="all", help="all, or figure1 to figure4, or 1 to 4 (default: all)")
    add("--out", metavar="DIR", help="directory for the files (default: fastpriv-figures; none with --json)")
    add("--figure", choices=FIGURES, help="kind of picture (default: png if matplotlib is installed)")
    add("--json", action="store_true", help="print the tables as JSON; writes files only with --out")
    add("--quiet", action="store_true", help="no progress bar, no text")
    parser.epilog = "Example: fastpriv figures figure2 --out figures --figure svg"
    parser.set_defaults(run=_figures, interrupted="files that are there are whole. Run the same command again.")


def _info(asked: argparse.Namespace) -> int:
    from .info import installation, show_versions

    if asked.json:
        print(json.dumps(installation(), indent=1))
    else:
        show_versions()
    return 0


def _divergence(asked: argparse.Namespace) -> int:
    from .comparison import QUANTITIES, compare, destination
    from .distributions.files import read_mixture

    if asked.quantity in QUANTITIES and ("Q" in QUANTITIES[asked.quantity].takes) != (asked.q is not None):
        has, wants = ("none", "given") if asked.q is None else (repr(asked.q), "left out")
        raise DomainError(f"Q must be {wants} for {asked.quantity}; got {has}. See fastpriv divergence --help.")
    if asked.seed is not None and asked.seed < 0:
        raise DomainError(f"--seed must be a whole number of at least 0; got {asked.seed}. Pass one, or leave it out.")
    if asked.out is not None:  # before the work, not after it
        destination(asked.out)
    files = [file for file in (asked.p, asked.q) if file is not None]
    laws = [(file, read_mixture(file)) for file in files]
    sampling = {
        name: getattr(asked, name) for name in (
            "confidence", "side", "rtol", "atol", "max_samples", "max_seconds", "method", "interval", "n_jobs",
        )
    }  # fmt: skip
    with _warnings_in_one_line():
        code = 0
        try:
            found = compare(
                asked.quantity, laws, epsilon=asked.epsilon, order=asked.order, both=asked.both,
                certified=asked.certified, rng=asked.seed, progress=not asked.quiet, **sampling,
            )  # fmt: skip
        except KeyboardInterrupt as error:
            if not hasattr(error, "best"):
                raise
            exec("")  # as in main
            found, code = error.best, 130
            print(f"fastpriv: warning: {error} The bounds are those of what was done.", file=sys.stderr)
    if asked.out is not None:
        found.save(asked.out)
    if asked.json:
        sys.stdout.write(found.json_text())
    elif asked.out is None or not asked.quiet:
        print(found.summary() + ("" if asked.out is None else f"\n\nWritten: {asked.out}"))
    return code


def _convert(asked: argparse.Namespace) -> int:
    from .conversions import registry
    from .conversions.chains import convert
    from .conversions.vocabulary import PARAMETERS

    if asked.list or asked.markdown:
        rows = registry.rows(asked.target, asked.source)
        if asked.json:
            sys.stdout.write(json.dumps(rows, indent=1) + "\n")
        else:
            sys.stdout.write(registry.markdown() if asked.markdown else _lines(rows))
        return 0
    if asked.target is None or asked.source is None:
        raise DomainError("TARGET and --from must be given; got none. See fastpriv convert --list for what there is.")
    values = {name: _numbers(name, getattr(asked, name)) for name in PARAMETERS if getattr(asked, name) is not None}
    if asked.unit is not None:
        values["unit"] = asked.unit
    found = convert(asked.target, asked.source, form=asked.form, **values)
    sys.stdout.write((json.dumps(found.to_dict(), indent=1) if asked.json else found.summary()) + "\n")
    return 0


def _lines(rows: list[dict[str, Any]]) -> str:
    words = [
        (f"{row['source']} -> {row['target']}", row["function"], row["form"] + ("" if row["holds"] else ", FALSE"))
        for row in rows
    ]
    wide = [max((len(line[k]) for line in words), default=0) for k in range(2)]
    return "".join(f"{way:{wide[0]}}  {name:{wide[1]}}  {form}\n" for way, name, form in words)


def _numbers(name: str, text: str) -> Any:
    try:
        found = [float(word) for word in text.split(",")]
    except ValueError:
        raise DomainError(
            f"--{name.replace('_', '-')} must be numbers separated by commas; got {text!r}. Write 1 or 0.5,1,inf."
        ) from None
    return found[0] if len(found) == 1 else found


@contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    def said(message: Warning | str, *place: Any, **more: Any) -> None:
        print(f"fastpriv: warning: {' '.join(str(message).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", SamplingWarning)
        warnings.showwarning = said
        yield


def _figures(asked: argparse.Namespace) -> int:
    from ._atomic import writable_directory
    from .figures.reproduction import chosen, paper

    figure = figure_kind(asked)
    chosen(asked.name)
    out = asked.out if asked.out is not None else None if asked.json else "fastpriv-figures"
    if out is not None:  # before the work, not after it
        writable_directory(out)
    found = paper(asked.name, progress=not asked.quiet)
    written = [] if out is None else found.save(out, figure=figure)
    if asked.json:
        for piece in found.json_pieces():
            sys.stdout.write(piece)
    elif not asked.quiet:
        print(found.summary())
        print("\nWritten: " + ", ".join(str(path) for path in written))
    return 0
