"""The least sigma at which a falling level meets a target, between two values of sigma that prove it.

An evaluation at one sigma returns a residual, 0 at the target and falling, nearly straight in log sigma; its
uncertainty; and whether its certified bounds prove that sigma to be above the target (the level is at most the
requested one) or below it. ``RootSearch`` of ``fastpriv/base/inverse.py`` does the rest.
"""

# bounds: none - limits of rtol

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base import validate
from ..base.errors import DomainError, NotConvergedError
from ..base.estimate import Estimate, Kind
from ..base.inverse import RootSearch
from ..base.numerics import BoolArray, FloatArray
from ..base.parallel import blocks, ordered_map

_BLOCK_TARGETS = 16  # targets in one task: each starts from what its neighbour found
# bound: none - the range of sigma that is searched: the standard deviations that a mixture takes
_LEAST, _MOST = 1e-300, 1e300
_UNINFORMATIVE = 0.3  # an uncertainty wider than the distance of any two targets
_LARGEST_STEP = 4.0  # of log sigma beyond all evaluated points; it doubles on a plateau
# bound: none - the least step of log sigma; and a residual on the side of 0 that proves nothing
_FIRST_STEP, _TINY = 1e-3, 5e-324


class Evaluation(NamedTuple):
    """What one sigma tells of the target; an infinite residual without proof where the level cannot be computed."""

    residual: float
    uncertainty: float
    above_target: bool
    below_target: bool
    kind: Kind


class _Solution(NamedTuple):
    value: float
    lower: float
    upper: float
    evaluations: int
    kind: Kind


Level: TypeAlias = Callable[[float], Evaluation]


def validated_rtol(rtol: float) -> float:
    """The relative width of the bracket at which the search stops."""
    return validate.scalar("rtol", rtol, "at least 1e-15 and below 1", lambda x: (x >= 1e-15) & (x < 1))


def least_sigma(
    name: str, tasks: FloatArray, no_noise_needed: BoolArray, level: Callable[[FloatArray], Level],
    start: Callable[[FloatArray], float], rtol: float, n_jobs: int | None, zero: str,
) -> Estimate:
    """One search for each row of ``tasks``, whose last entry is the target; 0 where no noise is needed."""
    numbers = np.zeros((3, len(tasks)))
    searched = np.flatnonzero(~no_noise_needed.ravel())
    searched = searched[np.lexsort(tasks[searched].T[::-1])]

    def solve(part: slice) -> list[_Solution]:
        solutions, factor = [], 1.0
        for row in tasks[searched[part]]:
            guess = min(max(start(row), _LEAST), _MOST)
            first = min(max(guess * factor, _LEAST), _MOST)
            solutions.append(_search(name, float(row[-1]), level(row), first, rtol))
            factor = solutions[-1].value / guess if solutions[-1].lower > 0 else 1.0
        return solutions

    parts = blocks(len(searched), _BLOCK_TARGETS)
    solutions = [solution for part in ordered_map(solve, parts, n_jobs=n_jobs) for solution in part]
    if solutions:
        numbers[:, searched] = np.array([solution[:3] for solution in solutions]).T
    kind: Kind = "certified" if all(solution.kind == "certified" for solution in solutions) else "heuristic"
    method = "inverse interpolation between two proofs" + (zero if no_noise_needed.any() else "")
    value, lower, upper = numbers.reshape(3, *no_noise_needed.shape)
    cost = {"evaluations": sum(solution.evaluations for solution in solutions)}
    return Estimate(value, lower, upper, kind=kind, unit="1", method=method, cost=cost)


def _search(name: str, target: float, level: Level, start: float, rtol: float) -> _Solution:
    kinds: dict[float, Kind] = {}

    def evaluate(sigmas: FloatArray) -> FloatArray:
        rows = np.empty((3, sigmas.size))
        for index, sigma in enumerate(sigmas.tolist()):
            evaluation = level(sigma)
            kinds[sigma] = evaluation.kind
            rows[:, index] = _bounds(evaluation)
        return rows

    search = RootSearch(evaluate, np.negative, start, rtol)
    search.add(np.array([start]))
    for index, sign, limit in ((-1, 1.0, _MOST), (0, -1.0, _LEAST)):
        largest = _LARGEST_STEP
        while search.x.size == 1 or sign * search.rows[0, index] > 0.0:
            residual, sigma = abs(float(search.rows[0, index])), float(search.x[index])
            if sigma == limit:
                raise DomainError(
                    f"{name} must be a level that some sigma from {_LEAST:g} to {_MOST:g} meets; got {target!r}. "
                    "Rescale the secret, or ask for another level."
                )
            step = min(_FIRST_STEP + 0.6 * residual, largest)  # the residual has slope -2
            half = math.exp(sign * 0.5 * step)
            search.add(np.array([min(max(sigma * half * half, _LEAST), _MOST)]))
            largest *= 2.0
    low, value, high = (float(end[0]) for end in search.solve(np.zeros(1), np.zeros(1)))
    if math.isinf(high):
        raise NotConvergedError(
            f"{name} must be met by a sigma that can be proved; got {target!r}, where the bounds of the level are too "
            "wide. Ask for a larger level.", None,
        )
    proofs = {kinds[end] for end in (low, high) if end > 0.0}
    return _Solution(value, low, high, len(kinds), "certified" if proofs == {"certified"} else "heuristic")


def _bounds(evaluation: Evaluation) -> tuple[float, float, float]:
    """Residual with bounds on that side of 0 that is proved; without a value where its bounds tell nothing."""
    residual, uncertainty, above, below, _ = evaluation
    if not (above or below) and uncertainty >= _UNINFORMATIVE:
        residual, uncertainty = math.inf, 0.0
    upper = min(residual + uncertainty, 0.0) if above else max(residual + uncertainty, _TINY)
    lower = max(residual - uncertainty, 0.0) if below else min(residual - uncertainty, -_TINY)
    return residual, lower, upper
