"""Quantities of an attack that are means over releases, each a mean of bounded numbers with bets.

Notation of ``evaluation``. The thresholds of a release are those that are best for it, which no attacker knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np

from ...base.errors import DomainError
from ...base.estimate import Estimate, Unit
from ...base.numerics import BoolArray, FloatArray
from ...sampling.statistics.fixed_samples import bounded_mean_interval
from .attackers import empirical_threshold

__all__ = [
    "bwma_of_posteriors", "bwma_of_releases", "mean_over_simulations", "means_over_releases", "with_interval",
]  # fmt: skip


def bwma_of_posteriors(x: FloatArray, b: BoolArray, gamma: FloatArray, level: float) -> Estimate:
    """BWMA of the claims ``score > gamma``."""
    gains = [((x > g) * np.where(b, 1.0 - g, -g)).mean(axis=1) for g in gamma.tolist()]
    return _bwma_of_gains(gains, -gamma, x, gamma, level, "BWMA of posteriors above gamma, bets on releases")


def bwma_of_releases(x: FloatArray, b: BoolArray, gamma: FloatArray, level: float) -> Estimate:
    """Mean over releases of the BWMA of the best threshold of each."""
    gains = [np.maximum(_largest_gain(x, np.where(b, 1.0 - g, -g)), 0.0) / x.shape[1] for g in gamma.tolist()]
    return _bwma_of_gains(gains, 0.0 * gamma, x, gamma, level, "mean BWMA of a release, bets on releases")


def _bwma_of_gains(
    gains: list[FloatArray], low: FloatArray, x: FloatArray, gamma: FloatArray, level: float, method: str
) -> Estimate:  # fmt: skip
    """Means of gains a person of each release, between ``low`` and 1 - gamma, for each gamma."""
    numbers = []
    for values, lowest, weight in zip(gains, low.tolist(), gamma.tolist(), strict=True):
        found = bounded_mean_interval(values, level, low=lowest, high=1.0 - weight, outcomes=x.size)
        numbers.append(np.array(found) * x.shape[1])
    value, lower, upper = np.array(numbers).reshape(-1, 3).T
    return with_interval(value, lower, upper, level, "1", method)


def _largest_gain(x: FloatArray, gain: FloatArray) -> FloatArray:
    """The largest sum of gains of scores at a threshold or above it, of each row."""
    order = np.argsort(-x, axis=1, kind="stable")
    ordered = np.take_along_axis(x, order, axis=1)
    sums = np.cumsum(np.take_along_axis(gain, order, axis=1), axis=1)
    ends = np.concatenate([ordered[:, 1:] != ordered[:, :-1], np.ones((len(x), 1), dtype=bool)], axis=1)
    return np.asarray(np.where(ends, sums, -math.inf).max(axis=1))


def means_over_releases(
    x: FloatArray, b: BoolArray, fpr: float, level: float, auc: Callable[[FloatArray, BoolArray], Any]
) -> tuple[Estimate, Estimate, Estimate]:  # fmt: skip
    """Mean AUC, and mean TPR and advantage at each release's own thresholds, of releases with both kinds of people."""
    if x.shape[1] == 1:
        raise DomainError(
            "pooled must be True where each release has a single target; got False. Pass scores of shape (R, K)."
        )
    both = b.any(axis=1) & ~b.all(axis=1)
    if not both.any():
        raise DomainError(
            "membership must have members and non-members in a release where pooled=False; got none of "
            f"{len(x)} such releases. Pass pooled=True."
        )
    x, b = x[both], b[both]
    tpr = np.empty(len(x))
    for row, (scores, member) in enumerate(zip(x, b, strict=True)):
        tpr[row] = np.mean(scores[member] > empirical_threshold(scores[~member], fpr))
    members = b.sum(axis=1, keepdims=True)
    advantage = np.clip(_largest_gain(x, np.where(b, 1.0 / members, -1.0 / (x.shape[1] - members))), 0.0, 1.0)
    numbers = []
    units: tuple[Unit, ...] = ("probability", "probability", "1")
    for name, unit, values in zip(
        ("AUC", "TPR", "advantage"), units, (np.asarray(auc(x, b)), tpr, advantage), strict=True
    ):  # fmt: skip
        found = bounded_mean_interval(values, level, outcomes=x.size)
        numbers.append(with_interval(*found, level, unit, f"mean {name} of a release, bets on releases"))
    return numbers[0], numbers[1], numbers[2]


def mean_over_simulations(values: FloatArray, level: float, unit: Unit, least: float = 0.0) -> Estimate:
    """The mean with the interval of the normal distribution; infinite with bounds that are infinite."""
    mean = float(values.mean())
    half = 0.0
    if math.isfinite(mean):
        half = NormalDist().inv_cdf(0.5 + 0.5 * level) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return with_interval(mean, max(mean - half, least), mean + half, level, unit, "simulated releases")


def with_interval(value: Any, lower: Any, upper: Any, level: float, unit: Unit, method: str) -> Estimate:
    """An estimate whose interval is widened to its value, which may come from other data than the bounds."""
    return Estimate(
        value, np.minimum(lower, value), np.maximum(upper, value), kind="statistical", unit=unit, method=method,
        confidence=level,
    )  # fmt: skip
