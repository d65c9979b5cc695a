"""Default grids of noise, levels and epsilons, and the largest product of two."""

from __future__ import annotations

import math

import numpy as np

from ...base.errors import DomainError
from ...base.grids import Grid
from ...base.numerics import FloatArray

__all__ = ["MAX_CELLS", "check_size", "default_epsilon", "default_level", "default_sigma"]

MAX_CELLS = 5_000_000  # rows times epsilons of an assessment; a quantity then takes 120 MB
# bound: none - which levels of noise are tabulated
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-298, 1e297  # scales between which all of a default grid are normal doubles


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
