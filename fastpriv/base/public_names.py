"""``attach``: the public names of a package, listed once, in its type stub, and loaded on first use.

The stub ``__init__.pyi`` beside a package's ``__init__.py`` has a line ``from .module import name as name`` for each
public name. Type checkers read it, and ``attach`` reads it when the package is imported, so that there is one list.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

__all__ = ["address", "attach"]

# A line of a stub that makes a name public: ``from .module import name as name``.
_PUBLIC_IMPORT = re.compile(r"^from (\.[\w.]*) import \(?\s*(\w+) as \2\b", re.MULTILINE)

# The public names of each package that has been imported.
_LISTED: dict[str, dict[str, str]] = {}


def address(kind: type) -> str:
    """The shortest address at which a class is public, such as ``fastpriv.membership.Panel``."""
    packages = [package for package, names in [*_LISTED.items()] if kind.__name__ in names]
    package = min(packages, key=len, default=kind.__module__.rpartition(".")[0])
    return f"{package}.{kind.__name__}".replace(".studies.", ".")


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make the functions ``__getattr__`` and ``__dir__`` and the list ``__all__`` of a package.

    Parameters
    ----------
    package : str
        Name of the package: its ``__name__``.
    file : str
        Path of its ``__init__.py``: its ``__file__``. The stub lies beside it.
    """
    with open(file.removesuffix(".py") + ".pyi", encoding="utf-8") as stub:
        module_of = {name: module for module, name in _PUBLIC_IMPORT.findall(stub.read())}
    _LISTED[package] = module_of

    def load(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if module_of[name] == ".":  # the name is a module of the package
            value: Any = import_module(f".{name}", package)
        else:
            value = getattr(import_module(module_of[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(module_of)
    dunders = [name for name in vars(sys.modules[package]) if name.startswith("__")]
    return load, lambda: sorted({*dunders, *names}), names
