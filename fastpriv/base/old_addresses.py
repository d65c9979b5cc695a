"""Short addresses of packages: ``fastpriv.membership`` has the names of ``fastpriv.studies.membership``, and so on.

A finder answers ``from fastpriv.membership import Panel``; names are looked up in the packages that define them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

__all__ = ["PRESENT", "install", "module"]

# Packages that have the names of each short address.
PRESENT = {
    "fastpriv.assessment": ["fastpriv.studies.assessment"],
    "fastpriv.auditing": ["fastpriv.studies.auditing"],
    "fastpriv.datasets": ["fastpriv.studies.datasets"],
    "fastpriv.errors": ["fastpriv.base.errors"],
    "fastpriv.estimate": ["fastpriv.base.estimate"],
    "fastpriv.figures": ["fastpriv.report", "fastpriv.studies.papers"],
    "fastpriv.leakage": ["fastpriv.studies.leakage"],
    "fastpriv.membership": ["fastpriv.studies.membership", "fastpriv.studies.papers"],
    "fastpriv.risk": ["fastpriv.composition"],
}


class _ShortAddress(ModuleType):
    """Module whose names are those of its packages."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [public for public in dir(self) if not public.startswith("_")]
        for package in map(import_module, () if name.startswith("__") else PRESENT[self.__name__]):
            if hasattr(package, name):
                return getattr(package, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        names = {name for package in map(import_module, PRESENT[self.__name__]) for name in dir(package)}
        return sorted(name for name in names if not name.startswith("__"))


class _ShortAddresses:
    """Finder and loader of the modules above."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, cast(Any, self), is_package=True) if fullname in PRESENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _ShortAddress(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = f"Short address of {' and '.join(PRESENT[module.__name__])}."


def module(name: str) -> ModuleType:
    """The module with the short address ``fastpriv.<name>``."""
    return import_module(f"fastpriv.{name}")


def install() -> None:
    """Let programs find what they import by a short address."""
    if not any(isinstance(finder, _ShortAddresses) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ShortAddresses())  # before finders of paths, which take an empty folder for a package
