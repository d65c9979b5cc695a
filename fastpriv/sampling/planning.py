"""How large a stage has to be: from half widths of what was seen to points of what is next.

The spread of R replicates is known to a relative 1 / sqrt(2 (R - 1)), that of a stage and that of what it is planned
from. A stage is planned so that it meets its target in spite of both nine times in ten: one that fails has spent its
part of the level, and the next look asks for half as many points again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .answers import Answers, Goal, Stage, interval
from .options import Request
from .problem import Problem
from .statistics.intervals import look_confidence, student_factor

__all__ = [
    "GROWTH", "PILOT_SHARE", "RATES", "REPLICATES", "SECOND_REPLICATES", "Reference", "confidence_at", "net", "planned",
    "refining", "shared",
]  # fmt: skip

FloatArray = NDArray[np.float64]

REPLICATES = 32
FEW = 24  # at least, where a power of two is near: from 16 on intervals hold
LARGE_NETS, LARGE = 16, 4096  # replicates of a fixed budget, at least, where each has so many points or more
SECOND_REPLICATES = 64  # of a pilot that refines the plan of a large run
PILOT_SHARE = 16  # of max_samples
RATES = {"sobol": 1.3, "antithetic": 1.0, "random": 1.0, "plain": 1.0}  # the variance falls like n to minus this
FALL = RATES | {"sobol": 2.0}  # what it rises like towards fewer points: of a range of rates the cautious end
FLAT = 2.0  # where nothing varies, bounds close in like 1 / n
SURE = 1.28  # standard errors of a predicted half width that a stage is planned to bear: it then fails once in ten
FEWEST_MORE = 0.5  # of what there is, in a further stage: every look costs some of the level
GROWTH = 4096.0  # of n between stages, at most

factor, confidence_at = lru_cache(256)(student_factor), lru_cache(256)(look_confidence)


@dataclass(frozen=True)
class Reference:
    """What the next stage is planned from: half width over what was asked, at a level, from replicates of n points."""

    n: float
    excess: float
    level: float
    replicates: int
    flat: bool = False

    def points(self, request: Request, points: str, look: int, replicates: int) -> float:
        """Points of each of so many replicates, all stages together, that should meet the target at this look."""
        level = confidence_at(request.confidence, look)
        wider = factor(level, replicates, request.side) / factor(self.level, self.replicates, request.side)
        error = math.sqrt(0.5 / (self.replicates - 1) + 0.5 / (replicates - 1))  # of log(spread / spread)
        rise = self.excess * wider * math.exp(SURE * error) * math.sqrt(self.replicates / replicates)
        rate = FLAT if self.flat else RATES[points] if rise > 1.0 else FALL[points]
        return self.n * float(min(rise, 1e9) ** (2 / rate))

    def wanted(self, request: Request, points: str, look: int, replicates: int) -> float:
        """Those of the next stage: of independent points only what lacks, and no less than is worth a look."""
        done = self.n * self.replicates / replicates
        wanted = self.points(request, points, look, replicates)
        if look > 1:
            wanted = max(wanted - (0.0 if points == "sobol" else done), FEWEST_MORE * done)
        return min(wanted, GROWTH * max(done, 1.0))


def planned(goal: Goal, problem: Problem, pilot: Stage, request: Request) -> Reference:
    """What to plan from, as far as a pilot knows."""
    excess = goal.excess(goal.answers(_plain(problem, pilot, request)), request)
    return Reference(pilot.n, excess, request.confidence, len(pilot.means))


def _plain(problem: Problem, pilot: Stage, request: Request) -> Answers:
    """Student's interval: what skewness adds to one side of a small one is gone in a large one."""
    integrand, count = problem.integrand, len(pilot.means)
    with np.errstate(invalid="ignore", over="ignore"):
        spread = pilot.means.std(axis=0, ddof=1)
    if not np.isfinite(spread).all() or not spread.all():
        return interval(problem, [pilot], request.confidence, request, None)
    half = factor(request.confidence, count, request.side) / math.sqrt(count) * spread
    value = pilot.means.mean(axis=0)
    half = np.minimum(half, np.maximum(np.minimum(value - integrand.low, integrand.high - value), 0.0))
    return value, value - half, value + half


def refining(reference: Reference, points: str, request: Request) -> int:
    """Points of a second pilot's replicate: a sixteenth of what the first one asks for."""
    if not math.isfinite(reference.excess):
        return 0
    wanted = reference.points(request, points, 1, SECOND_REPLICATES)
    n = min(wanted / PILOT_SHARE, GROWTH * reference.n)
    return 2 ** int(math.log2(n)) if n >= 1.0 else 0


def net(reference: Reference, request: Request, look: int) -> tuple[int, float]:
    """Replicates, and points of each, a power of two, that should meet the target with the fewest points in all."""
    found = []
    for replicates in range(FEW, SECOND_REPLICATES + 1, 4):
        n = 2.0 ** math.ceil(math.log2(max(reference.wanted(request, "sobol", look, replicates), 2.0)))
        found.append((replicates * n, -replicates, n))
    _, replicates, n = min(found)
    return -replicates, n


def shared(total: float, least: int) -> tuple[int, int]:
    """Replicates, and points of each, a power of two, that spend so many points: few where they are large, as nets of
    twice the points err less than half of them do together."""
    replicates = LARGE_NETS if total >= LARGE_NETS * LARGE else REPLICATES
    n = max(2 ** int(math.log2(max(total / replicates, 1.0))), least)
    return min(2 * replicates - 1, max(replicates, int(total) // n)), n
