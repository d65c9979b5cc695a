"""Bounds of any composition from the moments of its losses and the curves of single releases: wide, but quick.

Notation: k = sum count_i releases, d_i the curve of a release of step i; K(t) = sum count_i log E_P e^(t L_i), which is
t times the sum of the Renyi divergences of order 1 + t. For t > 0, 0 <= s <= 1:

* above, delta(epsilon) <= e^(K(t) - t epsilon) t^t / (1 + t)^(1 + t), Chernoff's bound of (1 - e^(epsilon - S))^+;
* above, delta(epsilon) <= 1 - prod (1 - d_i(epsilon / k))^count_i (Kairouz, Oh and Viswanath 2017, theorem 3.3);
* below, 1 - delta(epsilon) = E min(1, e^(epsilon - S)) <= e^(K(-s) + s epsilon);
* below, by the test that some L_i exceeds l: with p_i = P(L_i > l) >= d_i(l), and Q(L_i > l) <= e^-l p_i,
  p_i <= d_i(l - 1) / (1 - 1/e), delta(epsilon) >= 1 - prod (1 - d_i(l))^count_i - e^(epsilon - l) sum count_i p_i;
* below, by the law tilted by t, whose moments are K at the other orders: if u > t > v,
  P_t(S > b) <= e^(K(u) - K(t) - (u - t) b) and P_t(S < a) <= e^(K(v) - K(t) + (t - v) a). Where both are 1/4,
  delta(epsilon) >= e^(K(t) - t b) (1 - e^(epsilon - a)) / 2.
"""

# bounds: proved - roundings of sums, exponentials and logarithms

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.errors import DomainError, NotConvergedError
from ..base.numerics import LARGEST_DOUBLE, FloatArray
from ..divergences.hockey_stick import log_hockey_stick_divergence
from ..divergences.kl_and_renyi import renyi_divergence
from .log_bounds import LogBounds
from .steps import LARGEST_DISTANCE, MixtureStep, Step

__all__ = ["simple_bounds"]

# bound: proved - relative error of the formulas at the head: a few hundred roundings, far below it
_ROUNDING = 1e-12
# bound: none - t that are tried first, -s among them; then points between the neighbours of the best, so often
_NEGATIVE_TILTS = np.array([-0.875, -0.75, -0.625, -0.5, -0.375, -0.25, -0.125, -0.03])
# bound: none - as above
_FIRST_TILTS = np.concatenate([_NEGATIVE_TILTS, np.geomspace(1e-8, 1e10, 61)])
_BETWEEN, _ROUNDS = 14, 4
_AT_ONCE = 8  # epsilons that share their t
# bound: none - l - epsilon of the tests of the largest loss
_JUMPS = np.array([0.5, 2.0, 8.0, 40.0, 80.0])


def simple_bounds(steps: Sequence[Step], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where a step is no mixture, or its moments are not known."""
    mixtures = [step for step in steps if isinstance(step, MixtureStep)]
    if len(mixtures) < len(steps):
        return None
    lower, upper = np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)
    # No moment is a double where losses, the squares of distances of the means, are none.
    known = all(_largest_distance(step) < LARGEST_DISTANCE for step in mixtures)
    for start in range(0, epsilon.size, _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        for bounds in (_by_single_releases, _by_moments)[: 1 + known]:
            try:
                low, high = bounds(mixtures, epsilon[rows])
            except (DomainError, NotConvergedError):
                continue
            lower[rows], upper[rows] = np.fmax(lower[rows], low), np.fmin(upper[rows], high)
    lower = np.minimum(lower, upper)
    with np.errstate(invalid="ignore"):
        value = np.clip(np.where(lower > -math.inf, 0.5 * lower + 0.5 * upper, upper), lower, upper)
    return LogBounds(value, lower, upper, {}, "bounds by moments and single releases")


def _largest_distance(step: MixtureStep) -> float:
    """The largest distance of a mean of P from one of Q, in the smallest standard deviation."""
    means = np.concatenate([step.p.means, step.q.means])
    with np.errstate(over="ignore"):
        return float(np.ptp(means) / min(step.p.sigmas.min(), step.q.sigmas.min()))


def _by_moments(steps: list[MixtureStep], epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    tilts, (low, high) = _FIRST_TILTS, _log_moments(steps, _FIRST_TILTS)
    for _ in range(_ROUNDS):
        best = np.array(sorted(set(np.argmin(_chernoff(tilts, high, epsilon), axis=1).tolist())))
        left, right = tilts[np.maximum(best - 1, _NEGATIVE_TILTS.size)], tilts[np.minimum(best + 1, tilts.size - 1)]
        between = np.linspace(left, right, _BETWEEN + 2)[1:-1].ravel()
        more = np.array(sorted(set(between.tolist()) - set(tilts.tolist())))
        if not more.size:
            break
        found = _log_moments(steps, more)
        tilts = np.concatenate([tilts, more])
        order = np.argsort(tilts)
        tilts = tilts[order]
        low, high = (np.concatenate(pair)[order] for pair in zip((low, high), found, strict=True))
    upper = np.clip(_outward(_chernoff(tilts, high, epsilon).min(axis=1), 1.0), -LARGEST_DOUBLE, 0.0)
    return np.maximum(_affinity(steps, tilts, high, epsilon), _tilted(tilts, low, high, epsilon)), upper


def _log_moments(steps: list[MixtureStep], tilts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of K, for the weights as they are, normalised or not."""
    low, high = np.zeros(tilts.size), np.zeros(tilts.size)
    for step in steps:
        found = renyi_divergence(step.p, step.q, 1.0 + tilts)
        with np.errstate(over="ignore"):
            ends = np.stack([tilts * found.lower, tilts * found.upper])
        rounding = 1e-15 * (1.0 + np.abs(tilts)) * np.abs(ends).max(axis=0) / np.abs(tilts)  # of 1 + t
        slack = rounding + 2.0 * (1.0 + np.abs(tilts)) * (step.p_gap + step.q_gap)
        with np.errstate(invalid="ignore"):  # where the divergence is infinite: no bound
            low += step.count * (ends.min(axis=0) - slack)
            high += step.count * (ends.max(axis=0) + slack)
    return _outward(low, -1.0), _outward(high, 1.0)


def _outward(x: FloatArray, side: float) -> FloatArray:
    return np.asarray(x + side * 1e-15 * np.abs(x))


def _chernoff(tilts: FloatArray, high: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Logarithms of Chernoff's bounds, a row for each epsilon; infinite for t < 0."""
    used = tilts > 0.0
    t = np.where(used, tilts, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        # t log t - (1 + t) log(1 + t) = -log(1 + t) - t log(1 + 1/t)
        size = np.log1p(t) + t * np.log1p(1.0 / t)
        lost = t * epsilon[:, None]
        logs = high - lost - size + _ROUNDING * (size + 1e-3 * (np.abs(high) + lost))
    logs = np.where(np.isinf(lost), -0.5 * LARGEST_DOUBLE, logs)  # K is far less
    return np.where(used & (high < 1e300), logs, math.inf)


def _affinity(steps: list[MixtureStep], tilts: FloatArray, high: FloatArray, epsilon: FloatArray) -> FloatArray:
    used = tilts < 0.0
    rest = (high[used] - tilts[used] * epsilon[:, None]).min(axis=1)
    rest += _ROUNDING * (1.0 + epsilon)
    missing = sum(2.0 * step.count * step.p_gap for step in steps)
    lost = np.exp(np.minimum(rest, 0.0)) * (1.0 + _ROUNDING) + missing
    return np.where(lost < 1.0, _outward(np.log1p(-np.minimum(lost, 1.0 - 1e-16)), -1.0), -math.inf)


def _tilted(tilts: FloatArray, low: FloatArray, high: FloatArray, epsilon: FloatArray) -> FloatArray:
    first = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    t, low, high = tilts[first], low[first], high[first]
    apart = t - t[:, None]  # row: t; column: the other order
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        slopes = (high + math.log(4.0) - low[:, None]) / apart
        slopes += np.where(apart > 0.0, 1.0, -1.0) * 1e-15 * (np.abs(high) + np.abs(low[:, None]) + 2.0) / np.abs(apart)
        b = np.where(apart > 0.0, slopes, math.inf).min(axis=1)
        a = np.where(apart < 0.0, slopes, -math.inf).max(axis=1)
        room = a - epsilon[:, None]
        room -= 1e-15 * (np.abs(a) + epsilon[:, None])
        logs = low - t * b + np.log(-np.expm1(-np.maximum(room, 0.0))) - math.log(2.0)
        logs -= _ROUNDING + 1e-15 * (np.abs(low) + np.abs(t * b))
    return np.asarray(np.where((t > 0.0) & (room > 0.0) & np.isfinite(logs), logs, -math.inf).max(axis=1))


def _by_single_releases(steps: list[MixtureStep], epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    count = sum(step.count for step in steps)
    share = epsilon / count * (1.0 - 1e-15)
    levels = np.minimum(epsilon[:, None] + _JUMPS, LARGEST_DOUBLE).ravel()
    both = np.concatenate([share, levels, np.maximum(levels - 1.0, 0.0) * (1.0 - 1e-15)])
    curves = [log_hockey_stick_divergence(step.p, step.q, both).arrays()[1:] for step in steps]
    counts = [step.count for step in steps]
    gaps = 4.0 * sum(step.count * (step.p_gap + step.q_gap) for step in steps)  # of the masses of all products
    n, m = epsilon.size, levels.size
    upper = _at_least_once([curve[1][:n] for curve in curves], counts, 1.0) + gaps
    some = _at_least_once([curve[0][n : n + m] for curve in curves], counts, -1.0) - gaps
    most = -math.log1p(-math.exp(-1.0)) + gaps + _ROUNDING
    likely = [math.log(k) + high[n + m :] + most for (_, high), k in zip(curves, counts, strict=True)]
    likely = np.logaddexp.reduce(likely)
    apart = levels - np.repeat(epsilon, _JUMPS.size)
    with np.errstate(invalid="ignore"):
        lost = np.exp(np.minimum(likely - apart * (1.0 - 1e-15) - some, 1.0)) * (1.0 + _ROUNDING)
        lost *= 1.0 + 1e-14 * (np.abs(some) + np.abs(likely))
        found = _lowered(some + np.log1p(-np.minimum(lost, 1.0 - 1e-16)))
    exact = apart <= np.repeat(epsilon, _JUMPS.size) + 80.0
    found = np.where((lost < 1.0) & exact & (levels > np.repeat(epsilon, _JUMPS.size)), found, -math.inf)
    return found.reshape(n, -1).max(axis=1), np.minimum(upper, 0.0)


def _lowered(logs: FloatArray) -> FloatArray:
    return np.where(np.isfinite(logs), logs - 1e-14 * np.abs(logs) - 1e-15, -math.inf)


def _at_least_once(logs: list[FloatArray], counts: list[int], side: float) -> FloatArray:
    """log(1 - prod (1 - e^logs_i)^counts_i), rounded to one side."""
    rates = []
    with np.errstate(divide="ignore", under="ignore"):
        for log, count in zip(logs, counts, strict=True):
            large = np.log(-np.log1p(-np.exp(np.clip(log, -40.0, -1e-16))))
            rates.append(math.log(count) + np.where(log > -40.0, large, log))
        rate = np.minimum(np.logaddexp.reduce(rates), 7.0)
        found = np.where(rate > -30.0, np.log(-np.expm1(-np.exp(rate))), rate)
        error = 1e-14 * np.abs(rate) + 1e-12 * np.exp(np.minimum(rate, 0.0)) + 4e-16
        return np.asarray(np.minimum(found + np.where(np.isfinite(found), side * error, 0.0), 0.0))
