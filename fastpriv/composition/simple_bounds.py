"""Bounds of any composition from the curves, and of mixtures the affinities, of its single releases: wide, but quick.

Rows that need it: 10 x PoissonSampledGaussian(1e-3, 0.01) at epsilon = 10, whose components are too far apart for the
terms of a contour to fall, is a bracket of 1e-11 here and takes a minute on a grid; 10^12 x PoissonSampledGaussian(1.0,
0.01) at epsilon <= 5, whose delta is nearly 1, has no lower bound near that from the other engines.

Notation: k = sum count_i releases, d_i the curve of a release of pair i, K(-s) = sum count_i log E_P e^(-s L_i).

* above, delta(epsilon) <= 1 - prod (1 - d_i(epsilon / k))^count_i (Kairouz, Oh and Viswanath 2017, theorem 3.3);
* below, for 0 < s < 1, 1 - delta(epsilon) = E min(1, e^(epsilon - S)) <= e^(K(-s) + s epsilon);
* below, by the test that some L_i exceeds l: with p_i = P(L_i > l) >= d_i(l), and Q(L_i > l) <= e^-l p_i,
  p_i <= d_i(l - 1) / (1 - 1/e), delta(epsilon) >= 1 - prod (1 - d_i(l))^count_i - e^(epsilon - l) sum count_i p_i.
"""

# bounds: proved - roundings of sums, exponentials and logarithms

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.errors import DomainError, NotConvergedError
from ..base.numerics import LARGEST_DOUBLE, FloatArray
from ..distributions import GaussianMixture
from ..divergences.kl_and_renyi import renyi_divergence
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import LARGEST_DISTANCE, DominatingPair

# bound: proved - relative error of the formulas at the head: a few hundred roundings, far below it
_ROUNDING = 1e-12
# bound: none - s of the affinities that are tried; the Renyi orders 1 - s are exact in double precision
_AFFINITY_POWERS = np.array([0.125, 0.5, 0.875])
# bound: none - l - epsilon of the tests of the largest loss
_JUMPS = np.array([0.5, 2.0, 8.0, 40.0, 80.0])


def simple_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds:
    """Bounds of log delta at each epsilon >= 0."""
    lower, upper = np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)
    try:
        lower, upper = _by_single_releases(pairs, epsilon)
        lower = np.fmax(lower, _by_affinity(pairs, epsilon))
    except (DomainError, NotConvergedError):
        pass
    return LogBounds.of_bounds(np.minimum(lower, upper), upper, {}, "bounds by single releases")


def _largest_distance(p: GaussianMixture, q: GaussianMixture) -> float:
    """The largest distance of a mean of P from one of Q, in the smallest standard deviation."""
    means = np.concatenate([p.means, q.means])
    with np.errstate(over="ignore"):
        return float(np.ptp(means) / min(p.sigmas.min(), q.sigmas.min()))


def _by_affinity(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> FloatArray:
    """Lower bounds of log delta; the weights are taken as they are, normalised or not."""
    mixtures = [(pair.mixtures, pair) for pair in pairs if pair.mixtures is not None]
    if len(mixtures) < len(pairs) or not all(_largest_distance(*sides) < LARGEST_DISTANCE for sides, _ in mixtures):
        return np.full(epsilon.size, -math.inf)  # Losses, the squares of these distances, are no doubles.
    s = _AFFINITY_POWERS
    exponent = np.zeros(s.size)  # an upper bound of K(-s) = -s D, with D the Renyi divergence of order 1 - s
    for sides, pair in mixtures:
        divergence = renyi_divergence(*sides, 1.0 - s)
        largest = np.maximum(-s * divergence.lower, -s * divergence.upper)
        errors = 4.0 * (pair.p_relative_error + pair.q_relative_error)
        exponent += pair.count * (largest + 1e-15 * np.abs(largest) + errors)
    logs = (exponent + 1e-15 * np.abs(exponent) + s * epsilon[:, None]).min(axis=1) + _ROUNDING * (1.0 + epsilon)
    missing = sum(2.0 * pair.count * pair.p_relative_error for pair in pairs)
    lost = np.exp(np.minimum(logs, 0.0)) * (1.0 + _ROUNDING) + missing
    below = np.log1p(-np.minimum(lost, 1.0 - 1e-16))
    return np.where(lost < 1.0, below - 1e-15 * np.abs(below), -math.inf)


def _by_single_releases(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    count = sum(pair.count for pair in pairs)
    share = epsilon / count * (1.0 - 1e-15)
    levels = np.minimum(epsilon[:, None] + _JUMPS, LARGEST_DOUBLE).ravel()
    both = np.concatenate([share, levels, np.maximum(levels - 1.0, 0.0) * (1.0 - 1e-15)])
    curves = [pair.log_delta(both).numbers[1:] for pair in pairs]
    counts = [pair.count for pair in pairs]
    errors = 4.0 * sum(pair.count * (pair.p_relative_error + pair.q_relative_error) for pair in pairs)  # of all masses
    n, m = epsilon.size, levels.size
    upper = _at_least_once([curve[1][:n] for curve in curves], counts, 1.0) + errors
    some = _at_least_once([curve[0][n : n + m] for curve in curves], counts, -1.0) - errors
    most = -math.log1p(-math.exp(-1.0)) + errors + _ROUNDING
    likely = [math.log(k) + high[n + m :] + most for (_, high), k in zip(curves, counts, strict=True)]
    likely = np.logaddexp.reduce(likely)
    epsilon_gap = levels - np.repeat(epsilon, _JUMPS.size)
    with np.errstate(invalid="ignore"):
        lost = np.exp(np.minimum(likely - epsilon_gap * (1.0 - 1e-15) - some, 1.0)) * (1.0 + _ROUNDING)
        lost *= 1.0 + 1e-14 * (np.abs(some) + np.abs(likely))
        result = _round_down(some + np.log1p(-np.minimum(lost, 1.0 - 1e-16)))
    exact = epsilon_gap <= np.repeat(epsilon, _JUMPS.size) + 80.0
    result = np.where((lost < 1.0) & exact & (levels > np.repeat(epsilon, _JUMPS.size)), result, -math.inf)
    return result.reshape(n, -1).max(axis=1), np.minimum(upper, 0.0)


def _round_down(logs: FloatArray) -> FloatArray:
    return np.where(np.isfinite(logs), logs - 1e-14 * np.abs(logs) - 1e-15, -math.inf)


def _at_least_once(logs: list[FloatArray], counts: list[int], side: float) -> FloatArray:
    """log(1 - prod (1 - e^logs_i)^counts_i), rounded to one side."""
    rates = []
    with np.errstate(divide="ignore", under="ignore"):
        for log, count in zip(logs, counts, strict=True):
            large = np.log(-np.log1p(-np.exp(np.clip(log, -40.0, -1e-16))))
            rates.append(math.log(count) + np.where(log > -40.0, large, log))
        rate = np.minimum(np.logaddexp.reduce(rates), 7.0)
        result = np.where(rate > -30.0, np.log(-np.expm1(-np.exp(rate))), rate)
        error = 1e-14 * np.abs(rate) + 1e-12 * np.exp(np.minimum(rate, 0.0)) + 4e-16
        return np.asarray(np.minimum(result + np.where(np.isfinite(result), side * error, 0.0), 0.0))
