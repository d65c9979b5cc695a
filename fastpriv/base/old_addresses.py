"""Addresses of earlier versions: ``fastpriv.membership`` is ``fastpriv.studies.membership``, and so on.

A finder answers ``import fastpriv.membership.releases`` with the module at its present address, so that programs and
pickles of earlier versions are read; names of ``fastpriv.membership`` are looked up in its present packages.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

__all__ = ["PRESENT", "install", "module"]

# Packages and modules that have the names, and the modules, of an earlier one.
PRESENT = {
    "fastpriv.composition.measured_losses": ["fastpriv.pairs.measured_losses"],
    "fastpriv.sweeps.table": ["fastpriv.sweeps.sweep_table"],
    "fastpriv.capacity.awgn_solver": ["fastpriv.capacity.awgn"],
    "fastpriv.channels.composite": ["fastpriv.channels.base", "fastpriv.channels.type_classes"],
    "fastpriv.channels.matrix_channels": ["fastpriv.channels.base", "fastpriv.channels.sparse_channels"],
    "fastpriv.assessment": ["fastpriv.studies.assessment"],
    "fastpriv.auditing": ["fastpriv.studies.auditing"],
    "fastpriv.datasets": ["fastpriv.studies.datasets"],
    "fastpriv.errors": ["fastpriv.base.errors"],
    "fastpriv.estimate": ["fastpriv.base.estimate"],
    "fastpriv.figures": ["fastpriv.report", "fastpriv.studies.papers"],
    "fastpriv.leakage": ["fastpriv.studies.leakage"],
    "fastpriv.membership": ["fastpriv.studies.membership", "fastpriv.studies.papers"],
    "fastpriv.membership.defences.judgement": ["fastpriv.studies.membership.defences.defence_evaluation"],
    "fastpriv.risk": ["fastpriv.composition"],
    "fastpriv.studies.leakage.foreign_models": ["fastpriv.studies.leakage.model_adapters"],
    "fastpriv.studies.leakage.pool_attacks": ["fastpriv.studies.leakage.candidate_pool_attacks"],
    "fastpriv.studies.membership.defences.judgement": ["fastpriv.studies.membership.defences.defence_evaluation"],
}


class _OldPackage(ModuleType):
    """Package whose names are those of its present packages."""

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


class _OldAddresses:
    """Finder and loader of the earlier packages and of their modules."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = fullname if fullname in PRESENT else ".".join(fullname.split(".")[:2])
        return ModuleSpec(fullname, cast(Any, self), is_package=fullname == package) if package in PRESENT else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return _OldPackage(spec.name) if spec.name in PRESENT else None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name in PRESENT:
            module.__doc__ = f"Earlier address of {' and '.join(PRESENT[name])}."
            return
        package, below = ".".join(name.split(".")[:2]), name.split(".")[2:]
        for address in (".".join((present, *below)) for present in PRESENT[package]):
            try:
                sys.modules[name] = import_module(address)  # the import system returns what stands here
                return
            except ModuleNotFoundError as error:
                if error.name is None or not address.startswith(error.name):  # neither the module nor a parent of it
                    raise
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def module(name: str) -> ModuleType:
    """The package that earlier versions had as ``fastpriv.<name>``."""
    return import_module(f"fastpriv.{name}")


def install() -> None:
    """Let programs and pickles of earlier versions find what they import."""
    if not any(isinstance(finder, _OldAddresses) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldAddresses())  # before finders of paths, which take an empty folder for a package
