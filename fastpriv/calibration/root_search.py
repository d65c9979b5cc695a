"""The least sigma at which a falling level meets a target, between two values of sigma that prove it.

An evaluation at one sigma returns a residual, 0 at the target and falling, nearly straight in log sigma; its
uncertainty; and whether its certified bounds prove that sigma to be above the target (the level is at most the
requested one) or below it. The next sigma comes from inverse interpolation of the residual through up to four points,
is kept inside the bracket of its sign changes, and is put just beyond the expected root, on the side whose proof is
missing: about four evaluations, and the two that prove.
"""

# bounds: tested by enclosures/test_calibration - least relative distance of the two ends

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ..base import validate
from ..base.errors import DomainError, NotConvergedError
from ..base.estimate import Estimate, Kind
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ..base.parallel import blocks, ordered_map

__all__ = ["Evaluation", "Level", "least_sigma", "validated_rtol"]

_BLOCK_TARGETS = 16  # targets in one task: each starts from what its neighbour found
# Evaluations of the level for one target; halving the range of log sigma to a rounding takes 64.
_MOST_EVALUATIONS = 120
# bound: none - the range of sigma that is searched: the standard deviations that a mixture takes
_LEAST, _MOST = 1e-300, 1e300
# bound: tested by enclosures/test_calibration - rounding of sigma and of its logarithm
_ROUNDING = 4 * UNIT_ROUNDOFF
# bound: none - a residual so near 0 that a missing proof is due to wide bounds of the level
_CLOSE = 1e-11
_UNINFORMATIVE = 0.3  # an uncertainty wider than the distance of any two targets
_FLAT = 1e-3  # residuals at least as large on a plateau are not near the target
_NEAR = 0.1  # if a level so near below an upper bound (in log sigma) cannot be computed, 0 is taken for the lower bound
_FAR_BELOW = 0.5  # the same for a level that is computed, but proves nothing
_LARGEST_STEP = 4.0  # of log sigma beyond all evaluated points


class Evaluation(NamedTuple):
    """What one sigma tells of the target; an infinite residual without proof where the level cannot be computed."""

    residual: float
    uncertainty: float
    above_target: bool
    below_target: bool
    kind: Kind


class _Point(NamedTuple):
    log_sigma: float  # relative to the start
    sigma: float
    evaluation: Evaluation


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
) -> Estimate:  # fmt: skip
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
    points: list[_Point] = []
    unproved_points: list[float] = []  # log sigma where the level is above the target, but not proved to be
    above: _Point | None = None  # the least sigma that is proved to be above the target
    below: _Point | None = None  # the largest that is proved to be below it
    root, margin, failures = 0.0, 0.0, 0
    first, last = (math.log(limit) - math.log(start) for limit in (_LEAST, _MOST))
    for evaluations in range(1, _MOST_EVALUATIONS + 1):
        upper_is_farther = above and below and above.log_sigma - root >= root - below.log_sigma
        side = 1.0 if above is None or upper_is_farther else -1.0
        log_sigma = min(max(root + side * margin, first), last)
        half = math.exp(0.5 * log_sigma)  # its square may reach 1e600
        sigma = min(max(start * half * half, _LEAST), _MOST)
        if sigma in (_LEAST, _MOST) and any(point.sigma == sigma for point in points):
            raise DomainError(
                f"{name} must be a level that some sigma from {_LEAST:g} to {_MOST:g} meets; got {target!r}. "
                "Rescale the secret, or ask for another level."
            )
        evaluation = _informative(level(sigma))
        point = _Point(math.log(sigma / start) if abs(log_sigma) < 1 else log_sigma, sigma, evaluation)
        points.append(point)
        uncertainty = 0.75 * evaluation.uncertainty + _ROUNDING
        if evaluation.above_target and (above is None or sigma < above.sigma):
            above = point
        if evaluation.below_target and (below is None or sigma > below.sigma):
            below = point
        unproved = not evaluation.below_target and evaluation.residual >= -8 * evaluation.uncertainty
        depth = above.log_sigma - point.log_sigma if above and unproved else 0.0
        blind = math.isinf(evaluation.residual)
        if unproved and not blind and not evaluation.above_target:
            unproved_points.append(point.log_sigma)
        far_below = (
            above and not below and any(_FAR_BELOW < above.log_sigma - x < 4 * _FAR_BELOW for x in unproved_points)
        )
        hopeless = 0 < depth < _NEAR if blind else bool(far_below)
        if above and (below or hopeless):
            least = below.sigma if below else 0.0
            narrow = max(rtol, 5 * margin if failures > 1 else 5 * uncertainty)
            if above.sigma - least <= narrow * above.sigma or hopeless:
                nearer = above.sigma * math.exp(max(min(root - above.log_sigma, 0.0), -2 * _FAR_BELOW))
                value = min(max(nearer, least), above.sigma)
                kinds = {above.evaluation.kind, below.evaluation.kind if below else above.evaluation.kind}
                kind: Kind = "certified" if kinds == {"certified"} else "heuristic"
                return _Solution(value, least, above.sigma, evaluations, kind)
        expected = abs(evaluation.residual) <= 8 * evaluation.uncertainty + _CLOSE
        if margin and expected and not (evaluation.above_target if side > 0 else evaluation.below_target):
            failures += 1
        root = _next_root(points)
        margin = 4.0 ** max(0, failures - 1) * max(0.3 * rtol, uncertainty)
        margin = min(margin, 1.1 * _FAR_BELOW if above else last)
        if above and not below and any(above.log_sigma - x >= 4 * _FAR_BELOW for x in unproved_points):
            far = above.log_sigma - 2 * _FAR_BELOW
            if all(abs(p.log_sigma - far) > _NEAR for p in points):
                root, margin = far, 0.0
    best = above and Estimate(
        above.sigma, 0.0, above.sigma, kind=above.evaluation.kind, unit="1", method="unfinished search"
    )
    raise NotConvergedError(
        f"{name} must be met within {_MOST_EVALUATIONS} evaluations; got {target!r}, where the bounds of the level are "
        "too wide to prove a sigma. Ask for a larger level.",
        best,
    )


def _informative(evaluation: Evaluation) -> Evaluation:
    """The evaluation, without its residual if the bounds are wider than the distance of any two targets."""
    proved = evaluation.above_target or evaluation.below_target
    if proved or evaluation.uncertainty < _UNINFORMATIVE:
        return evaluation
    return evaluation._replace(residual=math.inf, uncertainty=0.0)


def _next_root(points: list[_Point]) -> float:
    """log sigma at which the residual is expected to vanish."""
    low = max((p.log_sigma for p in points if p.evaluation.residual > 0), default=-math.inf)
    high = min((p.log_sigma for p in points if p.evaluation.residual <= 0), default=math.inf)
    root = _interpolated_root(points)
    if math.isinf(low) or math.isinf(high):
        first, last = (pick(p.log_sigma for p in points) for pick in (min, max))
        step = _LARGEST_STEP * 2.0 ** max(0, len(points) - 3)
        if len(points) > 3 and min(abs(p.evaluation.residual) for p in points) > _FLAT:  # a plateau
            return last + step if math.isinf(high) else first - step
        return min(max(root, first - step), last + step)
    stuck = len(points) > 6 and high - low > 1e-3 and len(points) % 2 == 0
    return root if low < root < high and not stuck else 0.5 * (low + high)


def _interpolated_root(points: list[_Point]) -> float:
    """Inverse interpolation at residual 0 through the nearest points that are well apart."""
    chosen: list[_Point] = []
    for point in sorted(points, key=lambda p: abs(p.evaluation.residual)):
        residual, uncertainty = point.evaluation[:2]
        apart = all(
            abs(residual - p.evaluation.residual) > 1e3 * (uncertainty + p.evaluation.uncertainty) for p in chosen
        )
        if math.isfinite(residual) and apart:
            chosen.append(point)
        if len(chosen) == 4:
            break
    if not chosen:
        return min(p.log_sigma for p in points) - _LARGEST_STEP  # the level vanished: less noise
    rows = [(p.evaluation.residual, p.log_sigma) for p in chosen]
    falling = all((a[0] - b[0]) * (a[1] - b[1]) < 0 for i, a in enumerate(rows) for b in rows[:i])
    if len(rows) == 1 or not falling:  # the residual has slope -2
        return rows[0][1] + 0.5 * rows[0][0]
    table = [log_sigma for _, log_sigma in rows]
    for step in range(1, len(rows)):  # Neville
        for i in range(len(rows) - step):
            left, right = rows[i][0], rows[i + step][0]
            table[i] = (left * table[i + 1] - right * table[i]) / (left - right)
    return table[0]
