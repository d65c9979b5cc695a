"""Grids of numbers, whose size is known before they are built.

A grid is a sequence of numbers or a text of comma-separated pieces: a number (``2.5``), ``start:stop:count`` with equal
steps, or ``start..stop:count`` with equal ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import validate
from .errors import DomainError
from .numerics import FloatArray

__all__ = ["Grid", "parse_grid"]

# Remedy for a grid that cannot be read: the three ways to write one.
_FORMS = "Pass numbers (1,2,5), start:stop:count for equal steps or start..stop:count for equal ratios."


@dataclass(frozen=True)
class Grid:
    """A grid: its number of points, and a function that builds them."""

    count: int
    build: Callable[[], FloatArray]


def parse_grid(name: str, points: Any, constraint: str, valid: Callable[[FloatArray], Any], remedy: str) -> Grid:
    """Parse ``points`` (text, number or sequence); the points of the grid are increasing, distinct and ``valid``."""
    if not isinstance(points, str):
        array = np.unique(validate.vector(name, points, constraint, valid, remedy=remedy))
        return Grid(array.size, lambda: array)

    def number(text: str) -> float:
        try:
            parsed = float(text)
        except ValueError:
            raise DomainError(f"{name} must be {constraint}; got {text!r}. {_FORMS}") from None
        return validate.scalar(name, parsed, constraint, valid, remedy=remedy)

    pieces = [_parse_piece(name, text.strip(), number) for text in points.split(",")]
    return Grid(
        sum(piece.count for piece in pieces),
        lambda: np.unique(np.concatenate([piece.build() for piece in pieces])),
    )


def _parse_piece(name: str, text: str, number: Callable[[str], float]) -> Grid:
    head, colon, last = text.rpartition(":")
    if not colon:
        point = number(text)
        return Grid(1, lambda: np.array([point]))
    ratio = ".." in head
    start_text, _, stop_text = head.partition(".." if ratio else ":")
    start, stop = (number(part) for part in (start_text, stop_text))
    if not last.strip().isdecimal() or int(last) < 1:
        raise DomainError(f"{name} must have a whole number of points, 1 or more; got {last!r} in {text!r}. {_FORMS}")
    if ratio and min(start, stop) <= 0.0:
        raise DomainError(f"{name} must be positive to be spaced by equal ratios; got {text!r}. {_FORMS}")
    count = int(last)
    if ratio:
        return Grid(count, lambda: np.clip(np.geomspace(start, stop, count), min(start, stop), max(start, stop)))
    return Grid(count, lambda: np.linspace(start, stop, count))
