"""What people call their columns and categories, so that a table or a picture can show it: nothing is left out.

What a terminal or a font has no shape for is written as Python writes it (``\\n``, ``\\x07``, ``\\u5317``). The fonts
are those of ``matplotlib.rcParams["font.family"]``: name one there that has the characters, and they are drawn.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

__all__ = ["PLAIN", "drawable", "printable"]

PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}  # of a text in which a dollar is a dollar
_JOINERS = "\u200c\u200d"  # of letters in some scripts


def printable(text: str, most: int | None = None) -> str:
    """The text, characters without a shape written as Python does; the middle left out beyond ``most`` columns."""
    return _shortened(((c if _has_shape(c) else _escaped(c)) for c in text), most)


def drawable(text: str, most: int | None = None, weight: str = "normal") -> str:
    """The same for a picture: characters that its fonts lack are written as Python does."""
    fonts = _fonts(weight)
    return _shortened(
        (c if _has_shape(c) and any(font.get_char_index(ord(c)) for font in fonts) else _escaped(c) for c in text), most
    )


def _has_shape(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or unicodedata.category(character) == "Zs"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _shortened(tokens: Iterable[str], most: int | None) -> str:
    parts = list(tokens)
    if most is None or sum(map(_width, parts)) <= most:
        return "".join(parts)
    tail = _taken(parts[::-1], (most - 1) // 3)[::-1]
    head = _taken(parts, most - 1 - sum(map(_width, tail)))
    return "".join((*head, "…", *tail))


def _taken(parts: list[str], most: int) -> list[str]:
    """As many as have room."""
    used = 0
    for count, part in enumerate(parts):
        used += _width(part)
        if used > most:
            return parts[:count]
    return parts


def _width(text: str) -> int:
    """Columns of a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _fonts(weight: str) -> tuple[Any, ...]:
    from matplotlib import rcParams

    return _fonts_of(tuple(rcParams["font.family"]), weight)


@lru_cache(maxsize=8)
def _fonts_of(families: tuple[str, ...], weight: str) -> tuple[Any, ...]:
    """The fonts that matplotlib looks for a character in."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    paths = []
    for family in families:
        try:
            paths.append(findfont(FontProperties(family=[family], weight=weight), fallback_to_default=False))
        except ValueError:  # not installed
            continue
    return tuple(map(get_font, paths or [findfont(FontProperties(family=["DejaVu Sans"], weight=weight))]))
