"""``fastpriv info``: versions, instruction set, threads, optional dependencies of this installation."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from .shared_options import add_shared_options, print_json

_NEEDED = ("numpy", "scipy", "numba", "joblib")  # packages that fastpriv does not work without, as in pyproject.toml
_OPTIONAL = ("pandas", "pyarrow", "openpyxl", "matplotlib", "tqdm")  # packages that some functions take


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to its parser."""
    add_shared_options(parser, json="print JSON")
    parser.epilog = "Example: fastpriv info --json"


def run(args: argparse.Namespace) -> int:
    """Print what is installed and return the exit code."""
    if args.json:
        print_json(installation())
    else:
        show_versions()
    return 0


def installation() -> dict[str, Any]:
    """Collect versions, instruction set, threads and place of this installation, in plain types.

    Returns
    -------
    dict
        ``version`` is None for a package that is not installed. ``instruction sets`` are those of this machine that
        kernels are compiled for, and ``instruction set`` the one in use: the widest, or what ``FASTPRIV_ISA`` in the
        environment says when Python starts; the numbers do not depend on it.

    Examples
    --------
    >>> from fastpriv.cli.info import installation
    >>> installation()["instruction set"] in ("baseline", "avx2", "avx512")
    True
    """
    from ..base.version import VERSION
    from ..kernels import _special
    from ..kernels.instruction_sets import of_this_machine

    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "fastpriv": VERSION,
        "place": str(Path(__file__).parent.parent),
        "instruction set": str(_special.ISA),
        "instruction sets": list(of_this_machine()),
        "threads": len(affinity(0)) if affinity is not None else os.cpu_count() or 1,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "needed": {name: _version(name) for name in _NEEDED},
        "optional": {name: _version(name) for name in _OPTIONAL},
    }


def show_versions() -> None:
    """Print versions, instruction set, threads and place of this installation; paste this into a report of a fault.

    Examples
    --------
    >>> import fastpriv
    >>> fastpriv.show_versions()
    fastpriv         1...
    """
    for name, item in installation().items():
        if isinstance(item, dict):
            for package, version in item.items():
                print(f"{package:<16} {version or 'not installed'}")
        else:
            print(f"{name:<16} {', '.join(item) if isinstance(item, list) else item}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
