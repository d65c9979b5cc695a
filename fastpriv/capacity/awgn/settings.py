"""The peak-power capacity of single settings: the compiled solver, the bounds in closed form, and the inverse.

Notation as in ``fastpriv.capacity.awgn.ball``, with noise of variance 1 and all capacities in nats.
"""

# bounds: tested by enclosures/test_awgn_capacity - outward steps of the inverse, in units of ROUNDING; the rest
#    are limits of the search

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _parallel
from . import bounds as awgn_bounds

__all__ = ["BLOCK", "ROUNDING", "Batch", "Solved", "inverse_block", "solve_all", "solved"]

FloatArray = NDArray[np.float64]
BLOCK = 32  # settings of one dimension solved in a row, each from the one before
# bound: tested by enclosures/test_awgn_capacity - rounding of R = A / sigma and of the units
ROUNDING = 1e-15  # of R = A / sigma, and of the units
# bound: none - part of the width that is left to ROUNDING
_OUTWARD = 6e-15  # of the width, left to roundings of R and of the unit
_RUN = 2048  # settings tried with one sphere at a time
_NEIGHBOUR = 0.6  # how far apart in R two settings may be for that
_LONG, _LONGEST = 61.0, 1e5  # R of the intervals that are pulled apart, in dimension 1
# bound: tested by enclosures/test_awgn_capacity - from where R^2 / 2 stands for the capacity
_FAINT = 1e-150  # below this R^2 / 2 is the capacity to the last bit


@dataclass(slots=True)
class Solved:
    """What is known of one setting."""

    value: float
    lower: float
    upper: float
    slope: float  # dC/dR
    method: str
    radii: FloatArray
    probabilities: FloatArray
    evaluations: int = 0
    state: Any = None


def solved(d: float, radius: float, rtol: float, start: Any = None) -> Solved:
    """C(d, R) to relative width ``rtol``, from the ``state`` of a setting nearby."""
    if radius < _FAINT or radius > awgn_bounds.LARGEST:
        return _from_bounds(d, radius, _log(radius))
    from ...kernels import _awgn

    if d == 1 and _LONG < radius <= _LONGEST:
        return _long_line(radius, rtol)
    state = _awgn.solve(d, radius, rtol - _OUTWARD, start)
    value, lower, upper, slope, status, evaluations = state.numbers
    radii, probabilities = state.spheres
    method = "one sphere" if len(radii) == 1 else "spheres by Newton's method"
    found = Solved(value, lower, upper, slope, method, radii, probabilities, evaluations, state)
    return found if status == 0 else _tightened(d, radius, found)


def _long_line(radius: float, rtol: float) -> Solved:
    """Dimension 1 and a long interval: the input of a short one, pulled apart and filled in with its lattice."""
    from ...kernels import _awgn

    state, extra = _awgn.line(radius, rtol - _OUTWARD)
    value, lower, upper, slope, status, evaluations = state.numbers
    radii, probabilities = state.spheres
    tied = int(_awgn.FLAT / _awgn.LATTICE) + 1
    lattice = np.arange(tied + extra) * _awgn.LATTICE
    weights = np.full(tied + extra, 2.0 * probabilities[0])
    weights[0] = probabilities[0]
    radii = np.concatenate((lattice, radii[tied:] + (radius - radii[-1])))
    probabilities = np.concatenate((weights, probabilities[tied:]))
    probabilities /= probabilities.sum()
    found = Solved(value, lower, upper, slope, "lattice with shaped edges", radii, probabilities, evaluations)
    return found if status == 0 else _tightened(1.0, radius, found)


def _log(radius: float) -> float:
    return math.log(radius) if radius > 0 else -math.inf


def _from_bounds(d: float, radius: float, log_radius: float) -> Solved:
    lower, upper = awgn_bounds.lower(d, radius, log_radius), awgn_bounds.upper(d, radius, log_radius)
    if radius < _FAINT:
        value, slope, method = 0.5 * radius * radius, radius, "one sphere"
    else:
        value, slope, method = awgn_bounds.asymptotic(d, log_radius), d / radius, awgn_bounds.METHOD
    value = min(max(value, lower), upper)
    return Solved(value, lower, upper, slope, method, np.array([radius]), np.array([1.0]))


def _tightened(d: float, radius: float, found: Solved) -> Solved:
    """A bracket that the solver could not close, intersected with the bounds in closed form."""
    bounds = _from_bounds(d, radius, _log(radius))
    found.lower, found.upper = max(found.lower, bounds.lower), min(found.upper, bounds.upper)
    if not found.lower <= found.value <= found.upper:
        found.value = min(max(bounds.value, found.lower), found.upper)
        found.slope = bounds.slope
    found.method += " within " + awgn_bounds.METHOD
    return found


@dataclass(slots=True)
class Batch:
    """Many settings: ``numbers[place[k]]`` has value, lower, upper, slope and evaluations of setting k.

    ``others`` has what is known of a place where that is more than one sphere of full radius.
    """

    place: NDArray[np.intp]
    numbers: FloatArray
    others: dict[int, Solved]


def solve_all(
    d: FloatArray, a: FloatArray, s: FloatArray, rtol: float, n_jobs: int | None, progress: _parallel.Progress
) -> Batch:
    """All settings of three flat arrays: equal ones once, those of one dimension in ascending order of R = a/s."""
    from ...kernels import _awgn

    radius = a / s
    log_radius = np.log(a, out=np.full(a.shape, -np.inf), where=a > 0) - np.log(s)
    order = np.lexsort((log_radius, radius, d))
    keys = np.stack((d, radius, log_radius))[:, order]
    new = np.ones(d.size, dtype=bool)
    new[1:] = np.any(keys[:2, 1:] != keys[:2, :-1], axis=0) | np.isinf(keys[1, 1:])
    place = np.empty(d.size, dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    d, radius, log_radius = np.ascontiguousarray(keys[:, new])
    numbers = np.full((d.size, 5), -1.0)
    near = (radius >= _FAINT) & (radius <= awgn_bounds.LARGEST)
    edges = np.append(np.flatnonzero(np.diff(d, prepend=0.0)), d.size)
    runs = [
        slice(start + block.start, start + block.stop)
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        for block in _parallel.blocks(end - start, _RUN)
    ]

    def one_sphere(run: slice) -> FloatArray:
        return _awgn.one_sphere(float(d[run.start]), np.where(near[run], radius[run], 1.0), rtol - _OUTWARD)  # type: ignore[no-any-return]

    for run, rows in zip(runs, _parallel.ordered_map(one_sphere, runs, n_jobs=n_jobs), strict=True):
        numbers[run] = rows
    others = {k: _from_bounds(*keys[:, new][:, k].tolist()) for k in np.flatnonzero(~near).tolist()}
    left = np.flatnonzero(near & (numbers[:, 1] < 0.0))
    cuts = np.flatnonzero(np.diff(d[left])) + 1
    tasks = [part[block] for part in np.split(left, cuts) for block in _parallel.blocks(part.size, BLOCK)]
    solve = _parallel.ordered_map(
        lambda part: _solve_block(d[part], radius[part], rtol), tasks, n_jobs=n_jobs, progress=progress
    )
    for part, found in zip(tasks, solve, strict=True):
        others.update(zip(part.tolist(), found, strict=True))
    for k, one in others.items():
        numbers[k] = one.value, one.lower, one.upper, one.slope, one.evaluations
    return Batch(place, numbers, others)


def _solve_block(d: FloatArray, radii: FloatArray, rtol: float) -> list[Solved]:
    found: list[Solved] = []
    for dimension, radius in zip(d.tolist(), radii.tolist(), strict=True):
        near = found and found[-1].state is not None and radius - found[-1].radii[-1] <= _NEIGHBOUR
        found.append(solved(dimension, radius, rtol, found[-1].state if near else None))
    return [replace(one, state=None) for one in found]  # it serves neighbours alone, and no other process takes it


def inverse_block(pairs: Sequence[tuple[float, float]], rtol: float) -> FloatArray:
    """For pairs (d, C): a radius that leaks at most C, one that leaks at least C, and the best guess."""
    rows = np.empty((len(pairs), 3))
    last: tuple[float, float, Any] | None = None  # dimension, radius and state of the setting before
    for index, (d, target) in enumerate(pairs):
        guess, state = awgn_bounds.radius_below(d, target), None
        rows[index], radius, state = _inverse(d, target, rtol, guess, last)
        last = (d, radius, state)
    return rows


def _inverse(d: float, target: float, rtol: float, radius: float, last: Any) -> tuple[tuple[float, ...], float, Any]:
    """R with C(R) <= target, R with C(R) >= target, and R itself; then R and the state that solved it."""
    if radius > 1e300:
        return (1e300, math.inf, 1e300), radius, None
    state = None
    for step in range(60):
        if state is None and last is not None and last[0] == d and abs(radius - last[1]) <= _NEIGHBOUR:
            state = last[2]
        found = solved(d, radius, (1e-2, 1e-4)[step] if step < 2 else rtol, state)
        elasticity = min(max(radius * found.slope / found.value, 0.02), 2.0) if found.value > 0 else 2.0
        move = min(max(math.log(target / found.value) / elasticity, -2.0), 2.0) if found.value > 0 else 1.0
        at, radius = radius, radius * math.exp(move)
        state = found.state if abs(radius - at) <= _NEIGHBOUR else None
        if step > 1 and move * move <= 0.01 * rtol:  # the step after this one would be as small as its square
            break
    # so far to either side that any bracket of relative width rtol has the target outside
    width = max(4.0 * move * move, max(1.1 * rtol, (found.upper - found.lower) / found.value) / elasticity)
    goal = target * (1 - 4 * ROUNDING), target * (1 + 4 * ROUNDING)
    low = _beyond(radius, -width, lambda r: _bracket(d, r, rtol, state)[1] <= goal[0])
    high = _beyond(radius, width, lambda r: _bracket(d, r, rtol, state)[0] >= goal[1])
    return (low, high, min(max(radius, low), high)), at, found.state


def _bracket(d: float, radius: float, rtol: float, start: Any) -> tuple[float, float]:
    """Bounds with room to spare where they are wider than ``rtol`` and so may come out wider from another start."""
    found = solved(d, radius, rtol, start)
    width = found.upper - found.lower
    spare = 0.0 if width <= rtol * found.lower or radius < _FAINT else width
    return found.lower - spare, found.upper + spare


def _beyond(radius: float, width: float, reached: Callable[[float], bool]) -> float:
    """The radius moved by ``width``, relative, and by more until the target is on the other side for certain."""
    while 1e-300 < radius < 1e300:
        radius *= math.exp(min(max(width, -700.0), 700.0))
        if reached(radius):
            return radius
        width *= 2.0
    return 5e-324 if width < 0 else math.inf
