"""Texts that people did not expect: characters without a shape on a screen, and cells that a spreadsheet would run."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

__all__ = ["escape_invisible", "escaped", "has_shape", "printable", "shortened", "spreadsheet_row"]

_JOINERS = "\u200c\u200d"  # characters without a shape that join or separate letters in some scripts
_SUSPECT = re.compile(r"[^\t\n -~]")  # characters that may have no shape: no ASCII that is seen or lays out a text
# A text that a spreadsheet takes for a formula, with the apostrophes that are written before one.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def has_shape(character: str) -> bool:
    """Whether a character is seen, or is a space or joiner; controls of the direction of text, as U+202E, are not."""
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"


def escaped(character: str) -> str:
    r"""A character as Python writes it, such as ``\u202e``."""
    return character.encode("unicode_escape").decode("ascii")


def escape_invisible(text: str) -> str:
    """Escape the characters without a shape, so that a name cannot reorder or hide the text around it.

    Tabs and line ends stay.
    """
    return _SUSPECT.sub(lambda result: result[0] if has_shape(result[0]) else escaped(result[0]), text)


def printable(text: str, width: int | None = None) -> str:
    """Escape characters without a shape, and leave out the middle of a text wider than ``width`` columns."""
    return shortened(((c if has_shape(c) else escaped(c)) for c in text), width)


def shortened(tokens: Iterable[str], width: int | None) -> str:
    """Join the tokens, with an ellipsis in the place of middle ones that do not fit."""
    parts = list(tokens)
    if width is None or sum(map(_columns, parts)) <= width:
        return "".join(parts)
    tail = _fitting(parts[::-1], (width - 1) // 3)[::-1]
    head = _fitting(parts, width - 1 - sum(map(_columns, tail)))
    return "".join((*head, "…", *tail))


def _fitting(parts: list[str], width: int) -> list[str]:
    """Return as many parts as fit."""
    used = 0
    for count, part in enumerate(parts):
        used += _columns(part)
        if used > width:
            return parts[:count]
    return parts


def _columns(text: str) -> int:
    """Return the number of columns of a terminal that the text takes."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def spreadsheet_row(cells: Iterable[Any]) -> list[Any]:
    """The cells of a row of CSV, in which no text is a formula of a spreadsheet.

    A text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return, also after apostrophes, gets an
    apostrophe in front, which a reader takes off again. Numbers, and texts that are numbers, stay as they are.
    """
    return [f"'{cell}" if isinstance(cell, str) and _is_formula(cell) else cell for cell in cells]


def _is_formula(text: str) -> bool:
    if _FORMULA.match(text) is None:
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False
