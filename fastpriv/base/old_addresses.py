"""Short addresses of packages: ``fastpriv.membership`` has the names of ``fastpriv.studies.membership``, and so on.

A finder answers ``from fastpriv.membership import Panel``; names are looked up in the packages that define them. Names
that were at the top of ``fastpriv`` before 1.0 are answered there with a warning until 2.0.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, cast

__all__ = ["PRESENT", "formerly_at_the_top", "install", "module"]

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
# Public names that were at the top of the package, by the package that has them.
_FORMERLY_AT_THE_TOP = {
    "assessment": "Assessment Comparison",
    "capacity": "AwgnCapacity ChannelCapacity average_power_capacity binary_entropy gaussian_game gaussian_information "
                "maximal_leakage rate_distortion",
    "channels": "AnyChannel ChannelStack DefaultChannel DefaultLikelihood DenseLikelihood IndexLikelihood Likelihood "
                "ProductChannel ProductLikelihood ShardedLikelihood SparseChannel SubsetLikelihood rank_of_subset "
                "read_channel subset_of_rank write_channel",
    "composition": "BallsInBins BandedMatrixMechanism Composition RandomAllocation",
    "distributions": "LogRatio PmfStack read_mixture write_mixture",
    "divergences": "label_information log_hockey_stick_divergence",
    "errors": "BackendMissingError NotConvergedError SamplingWarning ShapeError WorkerDiedError",
    "mechanisms": "BatchGradient DiscreteLaplace ExponentialMechanism GeometricMechanism SubsetSelection UnaryEncoding",
    "posteriors": "Posterior SampledSubsetPosterior sampled_subset_posterior",
    "sampling": "Sampling",
    "sweeps": "SweepTable",
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
        packages = map(import_module, PRESENT[self.__name__])
        names = {name for package in packages for name in getattr(package, "__all__", None) or dir(package)}
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


def formerly_at_the_top(name: str) -> Any:
    """The public name ``fastpriv.<name>`` of former versions, with a warning that says where it is now."""
    for package, names in _FORMERLY_AT_THE_TOP.items():
        if name in names.split():
            warnings.warn(
                f"fastpriv.{name} is fastpriv.{package}.{name} now; the old address ends with version 2.0.",
                DeprecationWarning, stacklevel=3,
            )
            return getattr(module(package), name)
    raise AttributeError(f"module 'fastpriv' has no attribute {name!r}")


def install() -> None:
    """Let programs find what they import by a short address."""
    if not any(isinstance(finder, _ShortAddresses) for finder in sys.meta_path):
        sys.meta_path.insert(0, _ShortAddresses())  # before finders of paths, which take an empty folder for a package
