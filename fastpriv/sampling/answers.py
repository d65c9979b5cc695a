"""From replicates to answers: the interval of a mean, what holds where nothing varies, and the target.

Notation: f the integrand, whose e means stand in rows of replicates; a = 1 - level.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distributions.packed import Packed
from .problem import Problem
from .request import Request
from .statistics.intervals import stage_interval
from .statistics.tails import PointMoments

__all__ = ["Answers", "Goal", "Stage", "equal", "interval"]

FloatArray = NDArray[np.float64]
Answers = tuple[FloatArray, FloatArray, FloatArray]

SAME = 1e-15  # relative distance of equal values: their mean is rounded


@dataclass(frozen=True)
class Goal:
    """How means of f become the answer.

    Attributes
    ----------
    value : callable
        A monotone map of means, shape (e,), to answers.
    floor, ceiling : float or ndarray
        What the answer can never leave.
    scale : callable
        What ``rtol`` is relative to, given the answers: their size, or 1 for logarithms.
    """

    value: Callable[[FloatArray], FloatArray]
    floor: FloatArray | float = -math.inf
    ceiling: FloatArray | float = math.inf
    scale: Callable[[FloatArray], FloatArray] = np.abs

    def answers(self, interval: Answers) -> Answers:
        """Value, lower and upper of the answer from those of the mean."""
        value, one, other = (np.clip(self.value(x), self.floor, self.ceiling) for x in interval)
        lower, upper = np.minimum(one, other), np.maximum(one, other)
        return np.clip(value, lower, upper), lower, upper

    def excess(self, answers: Answers, request: Request) -> float:
        """Largest half width over what was asked; at most 1 once the target is met."""
        value, lower, upper = answers
        if request.side == "lower":
            half = value - lower
        elif request.side == "upper":
            half = upper - value
        else:
            with np.errstate(invalid="ignore"):
                half = np.where(lower == upper, 0.0, 0.5 * (upper - lower))
        with np.errstate(invalid="ignore"):
            asked = np.maximum(request.atol, request.rtol * self.scale(value))
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.max(np.where(half == 0.0, 0.0, half / asked)))


@dataclass
class Stage:
    """Means of f, shape (replicates, e), each over n points."""

    means: FloatArray
    n: int


def interval(
    problem: Problem, stages: list[Stage], level: float, request: Request, moments: PointMoments | None
) -> Answers:
    """Value, lower and upper of the means: Student's interval, widened for the skewness that the points show, and for
    what they cannot have seen.

    Where some components get fewer samples than their weights ask for, a replicate's mean may leave the range of f.
    Under a tilted law the integrand of a Renyi divergence is often flat but for a corner of small probability, where
    several components meet and it is many times larger. If no point falls there the replicates agree and their spread
    says nothing. A set of more than log(1/a) / N of
    the law escapes N points with probability below a: what it could add is added.
    """
    integrand, most = problem.integrand, problem.largest_ratio
    low, high = min(integrand.low, integrand.low * most), max(integrand.high, integrand.high * most)
    skewness: FloatArray | float = 0.0
    deviation: FloatArray | float = 0.0
    if moments is not None and np.isfinite(moments.variance).all():
        skewness, deviation = moments.skewness, np.sqrt(moments.variance)
    found = stage_interval(
        [(stage.n, stage.means) for stage in stages], level, request.side, low=low, high=high, skewness=skewness,
        deviation=deviation,
    )  # fmt: skip
    lower, upper = found.lower, found.upper
    if equal(stages).any() and integrand.rows[0].name == "kl_forward" and moments is not None:
        lower = np.maximum(lower, _least(problem, moments, level, request))
    if problem.law == "tilted" and integrand.rows[0].name == "renyi_proposal":
        unseen = -math.log1p(-level) / sum(stage.n * len(stage.means) for stage in stages)
        lower, upper = lower - unseen * (found.value - low), upper + unseen * (high - found.value)
    value, lower, upper = (np.clip(x, integrand.low, integrand.high) for x in (found.value, lower, upper))
    return value, lower, upper


def equal(stages: list[Stage]) -> NDArray[np.bool_]:
    """Where the replicates of a stage are all equal, so that they do not know their spread."""
    found: NDArray[np.bool_] = np.any([(stage.means == stage.means[0]).all(axis=0) for stage in stages], axis=0)
    return found


def _least(problem: Problem, moments: PointMoments, level: float, request: Request) -> float:
    """What a log ratio that is c at N independent draws of P proves of KL(P||Q).

    If all draws give one value, that value has a mass of less than 1 - m, m = 1 - a^(1 / (N - 1)), with probability
    below a. Where the ratio is c, Q has (1 - m) e^-c; what is left of both adds m log(m / (1 - (1 - m) e^-c)) at least,
    by the log-sum inequality, and the total falls with m.
    """
    c = float(moments.mean[0])
    alike = bool(moments.variance[0] <= (SAME * c) ** 2) and moments.count > 1
    if not alike or any(isinstance(part.source, Packed) for part in problem.parts):
        return -math.inf
    error = (1.0 - level) / (2.0 if request.side == "both" else 1.0)
    mass = -math.expm1(math.log(error) / (moments.count - 1))
    rest = 1.0 - (1.0 - mass) * math.exp(-max(c, 0.0))
    return (1.0 - mass) * c + mass * math.log(mass / rest)
