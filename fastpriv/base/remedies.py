"""Texts of errors: a refused value as one line, and the remedy for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

__all__ = ["LIP_LEVELS", "for_non_integer", "for_out_of_range", "for_wrong_type", "shortened", "shown"]


# remedy for negative levels of local information privacy
LIP_LEVELS = "Local information privacy bounds |log ratio| by epsilon: pass 0 or more."


def for_wrong_type(value: Any, remedy: str | None = None) -> str:
    """Remedy for a value that is not a number or an array of numbers."""
    if isinstance(value, (str, bytes)):
        try:
            float(value)
        except ValueError:
            return "Pass a number instead of text."
        return "Convert it with float()."
    if value is None:
        return remedy or "Pass a number, or leave the argument out where it has a default."
    if isinstance(value, complex):
        return "Take its real part if that is meant: value.real."
    if isinstance(value, int):
        return "Pass a number within the range of doubles, at most 1.8e308."
    if hasattr(value, "toarray"):
        return "Write it out with value.toarray()."
    if isinstance(value, type) or callable(value):
        return "Call it, and pass the numbers that it gives."
    if isinstance(value, Mapping):
        return "Pass its numbers: list(value.values())."
    if isinstance(value, (Set, Iterator)):
        return "Make a list of it: list(value)."
    kind, ragged = _kind_of_entries(value)
    if ragged:
        return "Make all rows the same length."
    if kind == "c":
        return "Take the real part if that is meant: numpy.real(value)."
    if kind in "mM":
        return "Convert dates and durations to numbers, as in value / numpy.timedelta64(1, 's')."
    if kind in "SU":
        return "Convert the text to numbers: numpy.asarray(value, dtype=float)."
    return remedy or "Pass a number or an array of numbers."


def _kind_of_entries(value: Any) -> tuple[str, bool]:
    """Kind of the dtype of a value that is not an array of numbers, and whether its rows differ in length."""
    try:
        array = np.asarray(value)
    except ValueError:
        return "O", True
    except (TypeError, OverflowError):
        return "O", False
    if array.dtype.kind != "O" or array.ndim == 0:
        return array.dtype.kind, False
    kinds = {
        "S" if isinstance(entry, (str, bytes)) else "c" if isinstance(entry, complex) else "O"
        for entry in array.ravel()
    }
    ragged = any(hasattr(entry, "__len__") and not isinstance(entry, (str, bytes)) for entry in array.ravel())
    return next((kind for kind in "Sc" if kind in kinds), "O"), ragged


def for_out_of_range(constraint: str, worst: float) -> str:
    """Remedy for a number that is out of its range."""
    if math.isnan(worst):
        return "Remove NaN entries, or fill them with numbers."
    if math.isinf(worst):
        return "Look where the infinity comes from: a division by 0, a logarithm of 0, or an overflow before the call."
    if "between 0 and 1" in constraint or "probabilit" in constraint:
        if 1.0 < worst <= 100.0:
            return "Divide percentages by 100."
        if worst < 0.0:
            return "Take exp() of it if it is a logarithm."
    if worst < 0.0:
        return "Check its sign, and what it was computed from."
    if worst == 0.0:
        return "Pass the smallest number that is meant instead of 0."
    return "Check its unit, and what it was computed from."


def for_non_integer(value: Any) -> str:
    """Remedy for a value that is not an integer."""
    if isinstance(value, (float, np.floating)):
        if not math.isfinite(value):
            return "Pass a finite number of them."
        whole = value == int(value)
        return f"Write {shown(int(value))}, without a decimal point." if whole else "Round it with round()."
    if isinstance(value, (str, bytes)):
        return "Convert it with int()."
    if value is None:
        return "Pass an integer, or leave the argument out where it has a default."
    return "Pass one integer."


def shown(value: Any) -> str:
    """A value in one line of at most 60 characters."""
    if type(value) is int and value > 2**64 and value & (value - 1) == 0:
        return f"2**{value.bit_length() - 1}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 1000:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, (str, bytes)) and len(value) > 1000:
        value = value[:1000]
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return shortened(text)


def shortened(text: str) -> str:
    """A text, cut to 60 characters."""
    return text if len(text) <= 60 else text[:57] + "..."
