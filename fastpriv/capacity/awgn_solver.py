"""The peak-power capacity of the Gaussian channel: stacks of settings for the compiled solver, and the inverse.

Notation: C(d, R) is the capacity of Y = X + N(0, I_d), ||X|| <= R, in nats. csrc/awgn/fp_awgn_capacity_solver.h has the
solver, and the bounds in closed form that serve where it does not reach.
"""

# bounds: tested by enclosures/test_awgn_capacity - outward steps of the inverse, in units of ROUNDING; the rest are
#    limits of the search

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..base import parallel
from ..base.numerics import FloatArray, IndexArray

__all__ = [
    "BLOCK", "ROUNDING", "SolvedArray", "SolvedSetting", "inverse_block", "solve", "solve_all",
]  # fmt: skip

BLOCK = 32  # settings of one dimension solved in a row, each from the solution of the one before
# bound: tested by enclosures/test_awgn_capacity - relative rounding of R = A / sigma and of the unit
ROUNDING = 1e-15
# bound: none - part of the relative width that is reserved for ROUNDING
_RESERVED = 6e-15
_ONE_SPHERE_RUN = 2048  # settings in one task of the solver with a single sphere
_NEIGHBOUR = 0.6  # largest difference of R at which the solution of one setting is a start for another
_CLOSED_FORM = "average-power, volume and entropy-power bounds"  # ``method`` of an Estimate by closed bounds
_LOG_2_PI_E = math.log(2.0 * math.pi * math.e)  # twice the entropy of a standard normal variable, in nats


@dataclass(slots=True)
class SolvedSetting:
    """The capacity of one setting, its bounds and its input."""

    value: float
    lower: float
    upper: float
    slope: float  # dC/dR
    method: str
    radii: FloatArray
    probabilities: FloatArray
    evaluations: int = 0
    state: Any = None


def solve(d: float, radius: float, rtol: float, start: Any = None) -> SolvedSetting:
    """C(d, R) to relative width ``rtol``; ``start`` is the ``state`` of a neighbouring setting."""
    from ..kernels import _awgn

    return _solved_setting(_awgn.solve(d, radius, rtol - _RESERVED, start), radius)


def _solved_setting(state: Any, radius: float) -> SolvedSetting:
    """A solution of the kernel with its input in full and its method in words."""
    from ..kernels import _awgn

    value, lower, upper, slope, method, evaluations = state.numbers
    radii, probabilities = state.spheres
    words = [name for bit, name in (
        (_awgn.ONE_SPHERE, "one sphere"), (_awgn.SPHERES, "spheres by Newton's method"),
        (_awgn.BALL, "uniform ball and spheres"), (_awgn.CLOSED_FORM, _CLOSED_FORM),
    ) if method & bit]  # fmt: skip
    return SolvedSetting(value, lower, upper, slope, " within ".join(words), radii, probabilities, evaluations, state)


@dataclass(slots=True)
class SolvedArray:
    """Many settings: ``numbers[position[k]]`` has value, lower, upper, slope and evaluations of setting k.

    ``solutions`` maps a position to its solution where that is not one sphere of full radius by the solver.
    """

    position: IndexArray
    numbers: FloatArray
    solutions: dict[int, SolvedSetting]


def solve_all(
    d: FloatArray, a: FloatArray, s: FloatArray, rtol: float, n_jobs: int | None, progress: parallel.Progress
) -> SolvedArray:
    """Solve the settings of three flat arrays, equal ones once, in ascending order of R = a/s for each dimension."""
    from ..kernels import _awgn

    radius = a / s
    log_radius = np.log(a, out=np.full(a.shape, -np.inf), where=a > 0) - np.log(s)
    order = np.lexsort((log_radius, radius, d))
    keys = np.stack((d, radius, log_radius))[:, order]
    new = np.ones(d.size, dtype=bool)  # keys that differ from the one before
    new[1:] = np.any(keys[:2, 1:] != keys[:2, :-1], axis=0) | np.isinf(keys[1, 1:])
    position = np.empty(d.size, dtype=np.intp)
    position[order] = np.cumsum(new) - 1
    d, radius, log_radius = np.ascontiguousarray(keys[:, new])
    numbers = np.full((d.size, 5), -1.0)
    solvable = (radius >= _awgn.SMALLEST_RADIUS) & (radius <= _awgn.LARGEST_RADIUS)
    edges = np.append(np.flatnonzero(np.diff(d, prepend=0.0)), d.size)
    runs = [
        slice(start + block.start, start + block.stop)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for block in parallel.blocks(end - start, _ONE_SPHERE_RUN)
    ]

    def one_sphere(run: slice) -> FloatArray:
        radii = np.where(solvable[run], radius[run], 1.0)
        return np.asarray(_awgn.one_sphere(float(d[run.start]), radii, rtol - _RESERVED))

    for run, rows in zip(runs, parallel.ordered_map(one_sphere, runs, n_jobs=n_jobs), strict=True):
        numbers[run] = rows
    solutions = {
        k: replace(_solved_setting(_awgn.closed_form(d[k], radius[k], log_radius[k]), radius[k]), state=None)
        for k in np.flatnonzero(~solvable).tolist()
    }
    remaining = np.flatnonzero(solvable & (numbers[:, 1] < 0.0))
    of_dimensions = np.split(remaining, np.flatnonzero(np.diff(d[remaining])) + 1)
    tasks = [part[block] for part in of_dimensions for block in parallel.blocks(part.size, BLOCK)]
    results = parallel.ordered_map(
        lambda part: _solve_block(d[part], radius[part], rtol), tasks, n_jobs=n_jobs, progress=progress
    )
    for part, block_solutions in zip(tasks, results, strict=True):
        solutions.update(zip(part.tolist(), block_solutions, strict=True))
    for k, solution in solutions.items():
        numbers[k] = solution.value, solution.lower, solution.upper, solution.slope, solution.evaluations
    return SolvedArray(position, numbers, solutions)


def _start(state: Any, distance: float) -> Any:
    """The state of another setting if it is a start: in large balls the input near the edge is the same for every R."""
    from ..kernels import _awgn

    near = state is not None and (abs(distance) <= _NEIGHBOUR or state.numbers[4] & _awgn.BALL)
    return state if near else None


def _solve_block(d: FloatArray, radii: FloatArray, rtol: float) -> list[SolvedSetting]:
    solutions: list[SolvedSetting] = []
    for dimension, radius in zip(d.tolist(), radii.tolist(), strict=True):
        last = solutions[-1] if solutions else None
        start = _start(last.state, radius - last.radii[-1]) if last else None
        solutions.append(solve(dimension, radius, rtol, start))
    # Only neighbouring settings use a state, and it cannot be pickled.
    return [replace(solution, state=None) for solution in solutions]


def inverse_block(pairs: Sequence[tuple[float, float]], rtol: float) -> FloatArray:
    """For pairs (d, C): a radius of capacity at most C, one of capacity at least C, and the best approximation."""
    rows = np.empty((len(pairs), 3))
    last: tuple[float, float, Any] | None = None  # dimension, radius and state of the previous setting
    for index, (d, target) in enumerate(pairs):
        rows[index], radius, state = _inverse(d, target, rtol, _radius_of_upper_bound(d, target), last)
        last = (d, radius, state)
    return rows


def _inverse(d: float, target: float, rtol: float, radius: float, last: Any) -> tuple[tuple[float, ...], float, Any]:
    """R with C(R) <= target, R with C(R) >= target and R itself, by Newton's method; then R and its solver state."""
    if radius > 1e300:
        return (1e300, math.inf, 1e300), radius, None
    state = None
    for step in range(60):
        if state is None and last is not None and last[0] == d:
            state = _start(last[2], radius - last[1])
        solution = solve(d, radius, (1e-2, 1e-4)[step] if step < 2 else rtol, state)
        elasticity = min(max(radius * solution.slope / solution.value, 0.02), 2.0) if solution.value > 0 else 2.0
        move = min(max(math.log(target / solution.value) / elasticity, -2.0), 2.0) if solution.value > 0 else 1.0
        previous, radius = radius, radius * math.exp(move)
        state = _start(solution.state, radius - previous)
        if step > 1 and move * move <= 0.01 * rtol:  # the step after this one would be as small as its square
            break
    # Far enough to either side that the target lies outside of any bracket of relative width rtol.
    width = max(4.0 * move * move, max(1.1 * rtol, (solution.upper - solution.lower) / solution.value) / elasticity)
    below, above = target * (1 - 4 * ROUNDING), target * (1 + 4 * ROUNDING)
    low = _beyond(radius, -width, lambda r: _bracket(d, r, rtol, state)[1] <= below)
    high = _beyond(radius, width, lambda r: _bracket(d, r, rtol, state)[0] >= above)
    return (low, high, min(max(radius, low), high)), previous, solution.state


def _bracket(d: float, radius: float, rtol: float, start: Any) -> tuple[float, float]:
    """Bounds, widened if they are wider than ``rtol``, since another start may give wider ones."""
    from ..kernels import _awgn

    solution = solve(d, radius, rtol, start)
    width = solution.upper - solution.lower
    margin = 0.0 if width <= rtol * solution.lower or radius < _awgn.SMALLEST_RADIUS else width
    return solution.lower - margin, solution.upper + margin


def _beyond(radius: float, width: float, reached: Callable[[float], bool]) -> float:
    """Move the radius by the relative ``width``, and by more until the target is certainly on the other side."""
    while 1e-300 < radius < 1e300:
        radius *= math.exp(min(max(width, -700.0), 700.0))
        if reached(radius):
            return radius
        width *= 2.0
    return 5e-324 if width < 0 else math.inf


def _radius_of_upper_bound(d: float, capacity: float) -> float:
    """The R at which an upper bound is ``capacity``, so that C(R) is at most that."""
    exponent = 2.0 * capacity / d
    root = math.sqrt(math.expm1(exponent)) if exponent < 600.0 else math.exp(0.5 * min(exponent, 1400.0))
    by_average_power = math.sqrt(d) * root
    if d == 1 and capacity < 600.0:
        return max(by_average_power, 0.5 * math.expm1(capacity) * math.exp(0.5 * _LOG_2_PI_E))
    return by_average_power
