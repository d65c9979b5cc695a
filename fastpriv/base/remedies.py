"""Texts of errors: a refused value as one line, and the remedy for it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np

__all__ = ["LIP_LEVELS", "first_false", "for_non_integer", "for_out_of_range", "for_wrong_type", "shortened", "shown"]


# remedy for negative levels of local information privacy
LIP_LEVELS = "Local information privacy bounds |log ratio| by epsilon: pass 0 or more."


def first_false(good: Any) -> tuple[tuple[int, ...], str]:
    """The position of the first invalid entry, and a text of it: `` at index 3 (2 of 10 entries)``, "" for a number."""
    bad = np.argwhere(~np.asarray(good))
    index = tuple(map(int, bad[0]))
    shown_index = index[0] if len(index) == 1 else index
    return index, f" at index {shown_index} ({len(bad)} of {np.size(good)} entries)" if index else ""


def for_wrong_type(value: Any, remedy: str | None = None) -> str:
    """Remedy for a value that is not a number or an array of numbers."""
    if isinstance(value, (str, bytes)):
        return "Convert it with float(), or pass a number."
    if isinstance(value, int):
        return "Pass a number within the range of doubles, at most 1.8e308."
    if isinstance(value, (Mapping, Set, Iterator)) or callable(value):
        return "Make a list of the numbers that it holds or gives."
    return remedy or "Pass a number, or an array of real numbers: numpy.asarray(value, dtype=float)."


def for_out_of_range(constraint: str, worst: float) -> str:
    """Remedy for a number that is out of its range."""
    if math.isnan(worst):
        return "Remove NaN entries, or fill them with numbers."
    if math.isinf(worst):
        return "Look where the infinity comes from: a division by 0, a logarithm of 0, or an overflow before the call."
    if 1.0 < worst <= 100.0 and ("between 0 and 1" in constraint or "probabilit" in constraint):
        return "Divide percentages by 100."
    return f"Check its {'sign' if worst <= 0.0 else 'unit'}, and what it was computed from."


def for_non_integer(value: Any) -> str:
    """Remedy for a value that is not an integer."""
    if isinstance(value, (float, np.floating)) and math.isfinite(value) and value == int(value):
        return f"Write {shown(int(value))}, without a decimal point."
    return "Pass one integer: round() and int() make it of other numbers and of text."


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
