"""The errors that fastpriv raises, and its one warning.

Every message has the form ``<argument> must be <constraint>; got <value> at index <i> (<k> of <n> entries).
<what to do>``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "BackendMissingError", "DomainError", "EstimateGivenError", "NotConvergedError", "SamplingWarning", "ShapeError",
    "TooLargeError", "WorkerDiedError",
]


class DomainError(ValueError):
    """An argument lies outside the set where the quantity is defined."""


class TooLargeError(DomainError):
    """A channel has more cells, or a product more types of secrets, than can be enumerated."""


class ShapeError(ValueError):
    """An argument has the wrong number of dimensions, or shapes that do not broadcast."""


class EstimateGivenError(TypeError):
    """An Estimate is passed where an array is expected; the caller has to choose one of its numbers."""


class NotConvergedError(RuntimeError):
    """A budget is spent before the target is met; ``best`` is the result that was reached, with valid bounds."""

    def __init__(self, message: str, best: Any = None) -> None:
        super().__init__(message)
        self.best = best


class WorkerDiedError(RuntimeError):
    """The process that worked on a task ended before the task did, each time that it was tried."""


class SamplingWarning(UserWarning):
    """The samples do not support the requested interval; the message says why, and which bound holds."""


class BackendMissingError(ImportError):
    """An optional dependency is missing; the message contains the command that installs it."""


@contextmanager
def explain_missing_package(user: str, package: str, install: str) -> Iterator[None]:
    """Replace the error of an import within the block by a sentence with the command that installs the package."""
    try:
        yield
    except ImportError:
        raise BackendMissingError(f"{user} needs {package}. Install it with: pip install {install}") from None


def interruption(best: Any, text: str, note: str = "") -> KeyboardInterrupt:
    """The KeyboardInterrupt of a call that reached a result, which is its attribute ``best``."""
    error = KeyboardInterrupt(text)
    error.best = best  # type: ignore[attr-defined]
    error.add_note(f"The result that was reached is the attribute best of this error{note}.")
    return error


# Packages whose frames may lie between the place of a warning and the line of the caller.
_INTERMEDIATE_PACKAGES = {"fastpriv", "numpy", "joblib", "contextlib", "functools"}


def warned(text: str, category: type[Warning] = SamplingWarning) -> None:
    """Give a warning that points to the line that called into fastpriv."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _INTERMEDIATE_PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
