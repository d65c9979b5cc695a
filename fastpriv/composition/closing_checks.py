"""Elementary bounds that every answer of a composition has to meet, by reasoning that the engines do not share.

Notation: delta(epsilon) = sup over events E of P(E) - e^epsilon Q(E) for P, Q the product of all releases, with curves
delta_i of the single releases; chi^2 + 1 = E_P dP/dQ = M, the product of the M_i^k_i.

* Data processing: one release, or one event of it, tells no more than all: delta >= P_i(A) - e^epsilon Q_i(A). Events
  are half-lines of mixtures and of Laplace noise, and the outcomes of the largest ratios of discrete pairs. The best
  of them at many epsilons are found once for a composition.
* (1 - e^(epsilon - S))^+ <= e^(S - epsilon) / 4, so that delta <= M e^-epsilon / 4 (Markov); and delta <= delta(0), the
  total variation distance, <= sqrt(M - 1) / 2 (Cauchy and Schwarz), in either order of P and Q.
* delta falls with epsilon.
* At epsilon = 0 both orders have one delta.

Each is a second enclosure of the same number: where it meets the first, the answer is their intersection; where it does
not, one of both is false, and the answer is the hull of both, of which ``method`` says so (``reconcile_bounds``).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .. import special
from ..base.numerics import LARGEST_DOUBLE, FloatArray, log_sum_exp, reconcile_bounds
from ..distributions import GaussianMixture
from .log_bounds import LogBounds
from .steps import LARGEST_DISTANCE, AtomStep, BoundingSteps, LaplaceStep, MixtureStep, Step, reversed_step

__all__ = ["WIDENED", "checked", "reconciled"]

WIDENED = "widened: elementary bounds disagree with it"  # in ``method``

# bound: proved - rounding of a logarithm of a probability here, relative to 1 + its size
_ROUNDING = 1e-12
_HALF_LINES = 96  # events of a release
_MOST_OUTCOMES = 512  # of a discrete pair whose events are tried
# bound: none - epsilons at which the best event is found beforehand; delta falls between them
_LEVELS = np.concatenate([[0.0], np.geomspace(1e-6, 700.0, 191)])
_LEVEL_LIST = _LEVELS.tolist()  # the same as Python's numbers, for a bisection


class _Elementary(NamedTuple):
    """Bounds of log delta: from below at each of ``_LEVELS``; from above ``log_moment`` - epsilon, and the logarithm of
    the total variation distance."""

    lower: FloatArray
    lower_list: list[float]
    log_moment: float
    log_distance: float


def checked(steps: BoundingSteps, epsilon: FloatArray, found: LogBounds) -> LogBounds:
    """The bounds of log delta at epsilon >= 0, reconciled with the elementary ones."""
    table = _elementary(steps)
    if epsilon.size == 1:  # without arrays, in 3 microseconds
        level = float(epsilon[0])
        least = table.lower_list[bisect_left(_LEVEL_LIST, level)]
        most = min(table.log_moment - min(level, LARGEST_DOUBLE), table.log_distance)
        if least <= float(found.lower[0]) <= float(found.upper[0]) <= most:
            return found
        return reconciled(found, np.array([least]), np.array([most]))
    lower = table.lower[np.searchsorted(_LEVELS, epsilon)]  # delta is at least that at the next level
    upper = np.minimum(table.log_moment - np.minimum(epsilon, LARGEST_DOUBLE), table.log_distance)
    if not ((lower <= found.lower) & (found.lower <= found.upper) & (found.upper <= upper)).all():
        found = reconciled(found, lower, upper)
    order = slice(None) if (epsilon[1:] >= epsilon[:-1]).all() else np.argsort(epsilon, kind="stable")
    below, above = found.lower[order], found.upper[order]
    if (below[:-1] >= below[1:]).all() and (above[:-1] >= above[1:]).all():
        return found
    lower[order] = np.append(np.maximum.accumulate(below[:0:-1])[::-1], -np.inf)  # of all larger epsilons
    upper[order] = np.append(0.0, np.minimum.accumulate(above[:-1]))  # and of all smaller ones
    return reconciled(found, lower, upper)


def reconciled(found: LogBounds, lower: FloatArray, upper: FloatArray) -> LogBounds:
    """The bounds of ``found`` and another enclosure of the same numbers."""
    low, high, disagree = reconcile_bounds((found.lower, found.upper), (lower, upper))
    method = f"{found.method}, {WIDENED}" if disagree.any() else found.method
    return LogBounds(np.clip(found.value, low, high), low, high, found.cost, method)


@lru_cache(maxsize=256)
def _elementary(steps: BoundingSteps) -> _Elementary:
    events = [_events(step) for part in (steps.below or (steps.above,)) for step in part if step.count]
    log_p, log_q = (np.concatenate([[end], *(one[k] for one in events)]) for k, end in enumerate((-np.inf, 0.0)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = np.minimum(_LEVELS[:, None] + log_q - log_p, 0.0)
        gains = np.nan_to_num(log_p + np.log1p(-np.exp(ratios)), nan=-np.inf, neginf=-np.inf)
    lower = np.append(gains.max(axis=1), -np.inf)
    forward, backward = 0.0, 0.0
    for step in (one for one in steps.above if one.count):
        forward += step.count * _log_moment(step)
        backward += step.count * _log_moment(reversed_step(step))
    least = min(forward, backward)
    distance = 0.5 * _log_expm1(least) - math.log(2.0)
    return _Elementary(
        lower, lower.tolist(), forward - math.log(4.0) + _ROUNDING * (1.0 + abs(forward)),
        min(0.0, distance + _ROUNDING * (1.0 + abs(distance))) if distance > -math.inf else 0.0,
    )  # fmt: skip


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x)) if 0.0 < x < math.inf else (-math.inf if x == 0.0 else x)


def _events(step: Step) -> tuple[FloatArray, FloatArray]:
    """Logarithms of P(A), from below, and of Q(A), from above, of events of one release."""
    if isinstance(step, MixtureStep):
        p, q, gaps = *_half_lines(step.p, step.q), (step.p_gap, step.q_gap)
    elif isinstance(step, LaplaceStep):
        cut, gaps = np.linspace(0.0, step.shift, 8), (0.0, 0.0)
        p, q = np.log1p(-0.5 * np.exp(-cut / step.scale)), -(step.shift - cut) / step.scale - math.log(2.0)
    elif isinstance(step, AtomStep) and step.p.size <= _MOST_OUTCOMES:
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log(step.q) - np.log(step.p))
            p, q = (np.log(np.cumsum(x[order])) for x in (step.p, step.q))
        gaps = step.p_gap, step.q_gap
    else:
        return np.empty(0), np.empty(0)
    p = p - _ROUNDING * (1.0 + np.abs(p)) + math.log1p(-min(gaps[0], 0.5))
    return p, np.minimum(q + _ROUNDING * (1.0 + np.where(np.isfinite(q), np.abs(q), 0.0)) + math.log1p(gaps[1]), 0.0)


def _half_lines(p: GaussianMixture, q: GaussianMixture) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the masses of P and Q on half-lines to both sides."""
    centres = np.concatenate([p.means, q.means])
    middle, width = float(p.weights @ p.means), float(np.max(p.sigmas) + np.ptp(centres))
    offsets = width * np.concatenate([np.linspace(0.0, 4.0, 16, endpoint=False), np.geomspace(4.0, 40.0, 8)])
    cut = middle + np.concatenate([-offsets, offsets])

    def masses(x: GaussianMixture, sign: float) -> FloatArray:
        with np.errstate(divide="ignore"):
            terms = np.log(x.weights) + special.log_ndtr(sign * (cut[:, None] - x.means) / x.sigmas)
        return np.asarray(log_sum_exp(terms))

    first, second = (np.concatenate([masses(x, 1.0), masses(x, -1.0)]) for x in (p, q))
    return first, second


def _log_moment(step: Step) -> float:
    """log M = log E_P dP/dQ of one release from above, for pairs where that is a sum of a few terms; else infinity."""
    gap = 0.0
    if isinstance(step, MixtureStep):
        if len(step.q) > 1 or (step.p.sigmas != step.q.sigmas[0]).any() or len(step.p) > _HALF_LINES:
            return math.inf
        with np.errstate(over="ignore"):
            x = (step.p.means - step.q.means[0]) / step.q.sigmas[0]
        if not np.abs(x).max() < LARGEST_DISTANCE:
            return math.inf
        logs = np.log(step.p.weights)
        value = float(log_sum_exp((logs[:, None] + logs + x[:, None] * x).ravel()))
        size, gap = float(np.abs(x).max() ** 2), 2.0 * step.p_gap + step.q_gap
        value = max(value, 0.0)
    elif isinstance(step, LaplaceStep):
        d = step.shift / step.scale
        value, size = d + math.log((2.0 + math.exp(-3.0 * d)) / 3.0), d
    elif isinstance(step, AtomStep):
        used = step.p > 0.0
        if not step.q[used].all():
            return math.inf
        with np.errstate(over="ignore"):
            value = float(np.log((step.p[used] * (step.p[used] / step.q[used])).sum()))
        size, gap = 1.0, 2.0 * step.p_gap + step.q_gap
    else:
        return math.inf
    return max(value, 0.0) + _ROUNDING * (1.0 + size) + 1.1 * gap
