"""The least sigma at which a falling level meets a target, between two sigmas that prove it.

A level looks at one sigma and answers with a score, 0 at the target and falling, nearly straight in log sigma, its
uncertainty, and whether its certified bounds prove that sigma enough, or not more than enough. The next sigma comes
from inverse interpolation of the score through up to four points, kept inside the bracket of its sign changes, and is
put just beyond the expected root, on the side whose proof is missing: about four looks, and the two that prove.
"""

# bounds: tested by enclosures/test_calibration - least relative distance of the two ends

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._parallel import blocks, ordered_map
from ..errors import DomainError, NotConvergedError
from ..estimate import Estimate, Kind

__all__ = ["Level", "Look", "calibrated", "tolerance_of"]

FloatArray = NDArray[np.float64]
_BLOCK = 16  # targets a task: neighbours share what they know of the curve
_LOOKS = 120
# bound: none - the range of sigma that is searched
_LEAST, _MOST = 1e-300, 1e300  # standard deviations of a mixture
# bound: tested by enclosures/test_calibration - rounding of sigma and of its logarithm
_ROUNDING = 4 * 2.0**-53
# bound: none - which missing proof is forgiven in the search
_CLOSE = 1e-11  # a score so near the target that a missing proof is the fault of the bounds
_BLIND = 0.3
_FLAT = 1e-3  # scores that are not near the target
_NEAR = 0.1  # so far below an upper bound, where the level cannot be computed, and
_DEEP = 0.5  # so far below one, above the target and yet without a proof, 0 is taken for the lower bound
_FARTHEST = 4.0  # largest step of log sigma beyond all that was seen


class Look(NamedTuple):
    """What one sigma says of the target; an infinite score without proof where the level cannot be computed."""

    score: float
    blur: float
    enough: bool
    short: bool
    kind: Kind


class _Point(NamedTuple):
    place: float  # log(sigma / start)
    sigma: float
    look: Look


class _Answer(NamedTuple):
    value: float
    lower: float
    upper: float
    looks: int
    kind: Kind


Level = Callable[[float], Look]


def tolerance_of(rtol: float) -> float:
    """The width of the bracket that is asked for."""
    return _validate.scalar("rtol", rtol, "at least 1e-15 and below 1", lambda x: (x >= 1e-15) & (x < 1))


def calibrated(
    name: str, tasks: FloatArray, silent: NDArray[np.bool_], level: Callable[[FloatArray], Level],
    start: Callable[[FloatArray], float], tolerance: float, n_jobs: int | None, zero: str,
) -> Estimate:  # fmt: skip
    """One search a row of ``tasks``, in order of their numbers; 0 where ``silent``. The target is the last column."""
    numbers = np.zeros((3, len(tasks)))
    todo = np.flatnonzero(~silent.ravel())
    todo = todo[np.lexsort(tasks[todo].T[::-1])]

    def solve(part: slice) -> list[_Answer]:
        answers, factor = [], 1.0
        for row in tasks[todo[part]]:
            guess = min(max(start(row), _LEAST), _MOST)
            first = min(max(guess * factor, _LEAST), _MOST)
            answers.append(_search(name, float(row[-1]), level(row), first, tolerance))
            factor = answers[-1].value / guess if answers[-1].lower > 0 else 1.0
        return answers

    parts = blocks(len(todo), _BLOCK)
    found = [answer for part in ordered_map(solve, parts, n_jobs=n_jobs) for answer in part]
    if found:
        numbers[:, todo] = np.array([answer[:3] for answer in found]).T
    kind: Kind = "certified" if all(answer.kind == "certified" for answer in found) else "heuristic"
    method = "inverse interpolation between two proofs" + (zero if silent.any() else "")
    value, lower, upper = numbers.reshape(3, *silent.shape)
    cost = {"evaluations": sum(answer.looks for answer in found)}
    return Estimate(value, lower, upper, kind=kind, unit="1", method=method, cost=cost)


def _search(name: str, target: float, level: Level, start: float, tolerance: float) -> _Answer:
    points: list[_Point] = []
    unsure: list[float] = []  # places above the target without a proof
    above: _Point | None = None  # the least sigma proved enough
    below: _Point | None = None  # the largest proved not more than enough
    root, margin, failures = 0.0, 0.0, 0
    first, last = (math.log(limit) - math.log(start) for limit in (_LEAST, _MOST))
    for looks in range(1, _LOOKS + 1):
        side = 1.0 if above is None or (below is not None and above.place - root >= root - below.place) else -1.0
        place = min(max(root + side * margin, first), last)
        half = math.exp(0.5 * place)  # of 1e600 at most
        sigma = min(max(start * half * half, _LEAST), _MOST)
        if sigma in (_LEAST, _MOST) and any(point.sigma == sigma for point in points):
            raise DomainError(
                f"{name} must be a level that some sigma from {_LEAST:g} to {_MOST:g} meets; got {target!r}. "
                "Rescale the secret, or ask for another level."
            )
        point = _Point(math.log(sigma / start) if abs(place) < 1 else place, sigma, _sighted(level(sigma)))
        points.append(point)
        blurred = 0.75 * point.look.blur + _ROUNDING
        if point.look.enough and (above is None or sigma < above.sigma):
            above = point
        if point.look.short and (below is None or sigma > below.sigma):
            below = point
        unproved = not point.look.short and point.look.score >= -8 * point.look.blur
        depth = above.place - point.place if above and unproved else 0.0
        blind = math.isinf(point.look.score)
        if unproved and not blind and not point.look.enough:
            unsure.append(point.place)
        deep = above and not below and any(_DEEP < above.place - place < 4 * _DEEP for place in unsure)
        hopeless = 0 < depth < _NEAR if blind else bool(deep)
        if above and (below or hopeless):
            least = below.sigma if below else 0.0
            narrow = max(tolerance, 5 * margin if failures > 1 else 5 * blurred)
            if above.sigma - least <= narrow * above.sigma or hopeless:
                nearer = above.sigma * math.exp(max(min(root - above.place, 0.0), -2 * _DEEP))
                value = min(max(nearer, least), above.sigma)
                kinds = {above.look.kind, below.look.kind if below else above.look.kind}
                kind: Kind = "certified" if kinds == {"certified"} else "heuristic"
                return _Answer(value, least, above.sigma, looks, kind)
        expected = abs(point.look.score) <= 8 * point.look.blur + _CLOSE
        if margin and expected and not (point.look.enough if side > 0 else point.look.short):
            failures += 1
        root = _next(points)
        margin = 4.0 ** max(0, failures - 1) * max(0.3 * tolerance, blurred)
        margin = min(margin, 1.1 * _DEEP if above else last)
        if above and not below and any(above.place - place >= 4 * _DEEP for place in unsure):
            deep_enough = above.place - 2 * _DEEP
            if all(abs(p.place - deep_enough) > _NEAR for p in points):
                root, margin = deep_enough, 0.0
    best = above and Estimate(above.sigma, 0.0, above.sigma, kind=above.look.kind, unit="1", method="unfinished search")
    raise NotConvergedError(
        f"{name} must be met within {_LOOKS} evaluations; got {target!r}, where the bounds of the level are too wide "
        "to prove a sigma. Ask for a larger level.", best,
    )  # fmt: skip


def _sighted(look: Look) -> Look:
    """Bounds wider than the distance of any two targets say nothing."""
    blind = not (look.enough or look.short or look.blur < _BLIND)
    return look._replace(score=math.inf, blur=0.0) if blind else look


def _next(points: list[_Point]) -> float:
    """Where the score is expected to vanish."""
    low = max((p.place for p in points if p.look.score > 0), default=-math.inf)
    high = min((p.place for p in points if p.look.score <= 0), default=math.inf)
    place = _interpolated(points)
    if math.isinf(low) or math.isinf(high):
        first, last = (pick(p.place for p in points) for pick in (min, max))
        reach = _FARTHEST * 2.0 ** max(0, len(points) - 3)
        if len(points) > 3 and min(abs(p.look.score) for p in points) > _FLAT:  # a plateau
            return last + reach if math.isinf(high) else first - reach
        return min(max(place, first - reach), last + reach)
    stuck = len(points) > 6 and high - low > 1e-3 and len(points) % 2 == 0
    return place if low < place < high and not stuck else 0.5 * (low + high)


def _interpolated(points: list[_Point]) -> float:
    """Inverse interpolation at score 0 through the nearest points that are well apart."""
    chosen: list[_Point] = []
    for point in sorted(points, key=lambda p: abs(p.look.score)):
        apart = all(abs(point.look.score - p.look.score) > 1e3 * (point.look.blur + p.look.blur) for p in chosen)
        if math.isfinite(point.look.score) and apart:
            chosen.append(point)
        if len(chosen) == 4:
            break
    if not chosen:
        return min(p.place for p in points) - _FARTHEST  # the level vanished: less noise
    if len(chosen) == 1:
        return chosen[0].place + 0.5 * chosen[0].look.score
    rows = [(p.look.score, p.place) for p in chosen]
    falling = all((a[0] - b[0]) * (a[1] - b[1]) < 0 for i, a in enumerate(rows) for b in rows[:i])
    if not falling:
        rows = rows[:1]
        return rows[0][1] + 0.5 * rows[0][0]
    table = [place for _, place in rows]
    for step in range(1, len(rows)):  # Neville
        for i in range(len(rows) - step):
            left, right = rows[i][0], rows[i + step][0]
            table[i] = (left * table[i + 1] - right * table[i]) / (left - right)
    return table[0]
