"""Grids of noise, levels and epsilons, whose size is known before they are built.

A grid is a sequence of numbers or a text of comma-separated pieces: a number (``2.5``), ``start:stop:count`` with equal
steps, or ``start..stop:count`` with equal ratios.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _validate
from ..errors import DomainError
from ..numerics import FloatArray

__all__ = ["MAX_CELLS", "Grid", "check_size", "default_epsilon", "default_level", "default_sigma", "parse_grid"]

MAX_CELLS = 5_000_000  # rows times epsilons of an assessment; a quantity then takes 120 MB
# bound: none - which levels of noise are tabulated
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-298, 1e297  # scales between which all of a default grid are normal doubles
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
        array = np.unique(_validate.vector(name, points, constraint, valid, remedy=remedy))
        return Grid(array.size, lambda: array)

    def number(text: str) -> float:
        try:
            parsed = float(text)
        except ValueError:
            raise DomainError(f"{name} must be {constraint}; got {text!r}. {_FORMS}") from None
        return _validate.scalar(name, parsed, constraint, valid, remedy=remedy)

    pieces = [_parse_piece(name, text.strip(), number) for text in points.split(",")]
    return Grid(
        sum(piece.count for piece in pieces),
        lambda: np.unique(np.concatenate([piece.build() for piece in pieces])),
    )


def check_size(name: str, rows: Grid, epsilon: Grid) -> None:
    """Refuse a product of grids that exceeds the memory, before anything is allocated."""
    cells = rows.count * epsilon.count
    if cells > MAX_CELLS:
        raise DomainError(
            f"{name} x epsilon must be a grid of at most {MAX_CELLS:,} cells; got {rows.count:,} x {epsilon.count:,} = "
            f"{cells:,}. Take fewer points: the curves are smooth, and 100 points a factor of ten draw them."
        )


def default_sigma(scale: float) -> FloatArray:
    """Round numbers (1, 1.5, 2, 3, 5, 7) from about a tenth of ``scale`` to a hundred times it."""
    scale = min(max(scale, _SMALLEST_SCALE), _LARGEST_SCALE)
    lowest = math.floor(math.log10(scale / 10.0))
    steps = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)
    points = np.array([float(f"{step}e{power}") for power in range(lowest, lowest + 5) for step in steps])
    return points[(points >= 0.08 * scale) & (points <= 120.0 * scale)]


def default_level() -> FloatArray:
    """Levels from 0.1 to 10 nats, ten to a factor of ten, round powers of ten included."""
    return np.unique([float(f"{10.0 ** (i / 10 - 1):.3g}") for i in range(21)])


def default_epsilon() -> FloatArray:
    """Epsilons from 0.01 to 100 nats, 20 to a factor of ten, round powers of ten included."""
    return np.unique([float(f"{10.0 ** (i / 20 - 2):.3g}") for i in range(81)])


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
