"""The program ``fastpriv``: its parser, its exit codes, and the one line that it prints for an error.

Exit codes: 0 done, 1 an audit refutes its ``--claim`` or a bench fails, 2 bad input (one line on stderr, no traceback),
130 interrupted, 141 the reader of the output left.
Printing a help text loads neither NumPy nor a kernel, so the modules of the commands import what they need when they
run.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import io
import logging
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from types import TracebackType
from typing import Any, NoReturn

from ..base.errors import NotConvergedError
from ..base.escaping import escape_invisible
from ..base.version import VERSION

# The system errors of a disk, quota or file size that is exhausted.
_NO_SPACE_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Seconds after which a dropped interrupt is sent again: the finalizer that dropped it has then returned.
_INTERRUPT_DELAY = 0.01


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
        _configure_process()
    args = program_parser().parse_args(arguments)
    args.typed = shlex.join(["fastpriv", *(sys.argv[1:] if arguments is None else arguments)])
    try:
        code = int(args.run(args))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        exec("")  # After an interrupt inside exec(), CPython exits by the signal unless another exec() follows.
        return _report_error(f"interrupted; {args.interrupted}", 130)
    except BrokenPipeError:
        _discard_output()
        return 141
    except MemoryError as error:
        raised_by_fastpriv = type(error) is MemoryError and error.args
        return _report_error(str(error) if raised_by_fastpriv else args.large, 2)
    except (ValueError, OSError, ImportError, NotConvergedError) as error:
        # Writers of files replace the system's error by a sentence, so this one comes from standard output.
        if isinstance(error, OSError) and error.strerror and error.errno in _NO_SPACE_ERRORS:
            _discard_output()
            return _report_error(
                f"standard output must be writable; got: {error.strerror}. Free space there, or write elsewhere.", 2
            )
        return _report_error(_error_text(error), 2)


def program_parser() -> argparse.ArgumentParser:
    """Build the parser of the program and of its commands."""
    parser = _Parser(
        prog="fastpriv",
        description="Privacy figures with bounds. Commands: assess, sweep, compose, risk, divergence, posterior, "
        "convert, membership, leakage, audit, figures, examples, bench, info.",
        epilog="Example: fastpriv assess people.csv --column age --sigma 1,10,100",
    )
    parser.set_defaults(
        large="the grid must fit into memory; got less memory than it needs. Take fewer points, or release rounded "
        "values (--bins 256).", interrupted="nothing was written.",
    )
    parser.add_argument("--version", action="version", version=f"fastpriv {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    for name, text in (
        ("info", "versions, instruction set, threads, optional dependencies"),
        ("assess", "what does releasing each value of a column with noise leak?"),
        ("sweep", "a quantity over a table of settings, in a store that survives anything"),
        ("compose", "delta and epsilon of many releases together"),
        ("risk", "what many releases together tell an attacker, in sentences"),
        ("divergence", "a divergence of two Gaussian mixtures in files"),
        ("posterior", "what one release does to beliefs, from files"),
        ("convert", "one privacy notion from another, with its source"),
        ("membership", "attacks on who is in, against several defences"),
        ("leakage", "attacks on the records behind a model update, and exact posteriors"),
        ("audit", "lower bounds on epsilon from the scores of an attack"),
        ("figures", "the figures of a paper, recomputed with bounds"),
        ("examples", "files with which every command in the documents can be tried"),
        ("bench", "speed and accuracy on this machine, beside other packages and its limits"),
    ):
        subparser = commands.add_parser(name, help=text)
        command = import_module(f".{name}", __package__)
        subparser.set_defaults(run=command.run)
        command.add_options(subparser)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and that takes options by their full names alone.

    With abbreviations, ``--q 0.01`` would be ``--quiet`` and a file 0.01.
    """

    def __init__(self, **words: Any) -> None:
        super().__init__(**{"allow_abbrev": False} | words)

    def error(self, message: str) -> NoReturn:
        typed = re.search(r"(?:unrecognized arguments: |invalid choice: ')([\w-]+)", message)
        alike = [word for word in self._known_words() if typed and word != typed[1] and word[0] == typed[1][0]]
        near = difflib.get_close_matches(typed[1], alike, 1) if typed else []
        self.exit(_report_error(f"{message}. {f'Did you mean {near[0]}? ' if near else ''}See {self.prog} --help.", 2))

    def _known_words(self) -> list[str]:
        """The options and choices of this parser and of its commands."""
        words = list(self._option_string_actions)
        for action in self._actions:
            words += [str(choice) for choice in action.choices or ()]
            if isinstance(action.choices, dict):
                words += [word for command in action.choices.values() for word in command._known_words()]
        return words


def _configure_process() -> None:
    """Set up the process for the command line.

    Characters that the output cannot encode are escaped, matplotlib does not report its cache directory, and Ctrl-C
    stops the command also where it arrives inside a finalizer or a compiled function that drops exceptions.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    sys.excepthook = _print_exception
    sys.unraisablehook = _repeat_interrupt


def _print_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Print an exception, but no KeyboardInterrupt: compiled modules print what they drop before it is repeated."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)


def _repeat_interrupt(dropped: Any) -> None:
    """Interrupt the main thread again if an exception that Python is about to drop is KeyboardInterrupt."""
    if issubclass(dropped.exc_type, KeyboardInterrupt):
        main_thread = threading.main_thread().ident or 0
        try:  # a signal, and not an exception in the thread, so that a blocking call ends too
            threading.Timer(_INTERRUPT_DELAY, signal.pthread_kill, (main_thread, signal.SIGINT)).start()
        except KeyboardInterrupt:  # the delay was over before this function was: it would be dropped again
            _repeat_interrupt(dropped)
    else:
        sys.__unraisablehook__(dropped)


def _discard_output() -> None:
    """Send standard output nowhere, so that Python does not try again to print at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report_error(message: str, code: int) -> int:
    print(f"fastpriv: error: {escape_invisible(' '.join(message.split()))}", file=sys.stderr)
    return code


def _error_text(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{error.filename or 'file'} must be readable or writable; got: {error.strerror}. Check path and rights."
    return str(error)
