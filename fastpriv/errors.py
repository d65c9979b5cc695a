"""The errors fastpriv raises, and the one warning it gives.

Every message has one form: ``<argument> must be <constraint>; got <value> at index <i> (<k> of <n> entries).
<what to do>``.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

__all__ = [
    "BackendMissingError", "DomainError", "EstimateGivenError", "NotConvergedError", "SamplingWarning", "ShapeError",
    "interruption", "warned",
]  # fmt: skip


class DomainError(ValueError):
    """An argument lies outside the set where the quantity is defined."""


class ShapeError(ValueError):
    """An argument has the wrong number of dimensions, or shapes that do not broadcast."""


class EstimateGivenError(TypeError):
    """An Estimate stands where an array is wanted; which of its numbers is meant has to be said."""


class NotConvergedError(RuntimeError):
    """A budget ran out before the target was met; ``best`` carries what was reached, with its true bounds."""

    def __init__(self, message: str, best: Any = None) -> None:
        super().__init__(message)
        self.best = best


class SamplingWarning(UserWarning):
    """What was sampled does not support the interval that was asked for; the message says why and what holds."""


class BackendMissingError(ImportError):
    """An optional dependency is needed; the message holds the line that installs it."""


def interruption(best: Any, text: str, note: str = "") -> KeyboardInterrupt:
    """The KeyboardInterrupt of a call that reached something; ``best`` of it carries that."""
    error = KeyboardInterrupt(text)
    error.best = best  # type: ignore[attr-defined]
    error.add_note(f"What was computed is in the attribute best of this error{note}.")
    return error


_PASSED = {"fastpriv", "numpy", "joblib", "contextlib", "functools"}  # what may stand between a warning and the caller


def warned(text: str, category: type[Warning] = SamplingWarning) -> None:
    """A warning at the line that called into the library, however deep it is noticed."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _PASSED:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
