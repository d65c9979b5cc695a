"""Sets of secrets: profiles of channels that tell apart only who is in the set, and the logs that they need."""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - rounding of tilts; 1e-300 keeps
#    quotients by 0 away

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._values import FloatArray
from ..priors import Atoms
from ..profiles import Extremes, Profiles, underflow

__all__ = ["by_membership", "log_expit", "log_mixed", "log_odds_ratio", "logit", "set_extremes", "single", "times"]


def by_membership(
    own: Atoms, inside: NDArray[Any], outside: NDArray[Any], log_total: FloatArray, log_outputs: FloatArray,
    epsilon: float, missing: float = 0.0,
) -> Profiles:  # fmt: skip
    """Classes (c, v) of sets by how many secrets of each atom are inside and outside."""
    many = np.concatenate([inside, outside], axis=1)
    tilt = np.repeat([0.0, -epsilon], inside.shape[1]) * np.ones((len(many), 1))
    tilt[inside.sum(axis=1) == 0] = 0.0
    held = many > 0
    with np.errstate(divide="ignore"):
        log_many = np.log(many.astype(np.float64))
    mass = many.astype(np.float64) * np.tile(own.value, 2)
    log_own = np.tile(own.log_value, 2) + np.zeros((len(many), 1))
    starts = np.concatenate([[0], np.cumsum(held.sum(axis=1))])
    return Profiles(log_outputs, log_total, starts, tilt[held], mass[held], (log_many + log_own)[held], log_own[held],
                    log_own[held], missing, own.gap)  # fmt: skip


def single(own: Atoms, log_p: float, not_p: float, epsilon: float) -> Profiles:
    """No bit is ever wrongly 1: the release is empty, or the truth alone."""
    v = len(own.value)
    alone = own.size == 1
    mass, log_mass = own.value * np.array(own.counts, dtype=np.float64), own.log_value + own.log_count
    grouped = [
        np.concatenate([np.stack(pair, axis=1).reshape(-1) if not alone else pair[0], every])
        for pair, every in (
            ((own.value, own.rest), mass), ((own.log_value, own.log_rest), log_mass),
            ((own.log_value, own.rest_largest), own.log_value), ((own.log_value, own.rest_smallest), own.log_value),
        )
    ]  # fmt: skip
    width = 1 if alone else 2
    tilt = np.zeros(width * v + v)
    if not alone:
        tilt[1 : 2 * v : 2] = -epsilon if log_p > -math.inf else 0.0
    starts = np.append(np.arange(0, width * v + 1, width), width * v + v)
    return Profiles(np.append(own.log_count, 0.0), np.append(own.log_count + log_p, not_p), starts, tilt, grouped[0],
                    grouped[1], grouped[2], grouped[3], gap=own.gap)  # fmt: skip


def set_extremes(prior: FloatArray | None, k: int, fewest: int, most: int, epsilon: float) -> Extremes:
    """Extremes where any set of ``fewest`` to ``most`` secrets can occur."""
    if prior is None:
        support, low, high = k, fewest / k, most / k
    else:
        ordered = np.sort(prior)
        first = int(np.argmax(ordered > 0))
        support = k - first
        least = np.append(ordered[: fewest - 1], ordered[first]) if first >= fewest else ordered[:fewest]
        last = k - most  # where the sets of the likeliest secrets start
        rest = np.append(ordered[first:first + 1], ordered[:first]) if first >= last else ordered[:last]
        low, high = math.fsum(least), 1.0 - math.fsum(rest)
    if support == 1 or epsilon == 0:
        return Extremes(epsilon if k > 1 else 0.0, 0.0, 0.0, 0.0)
    plus = -log_mixed(low, -epsilon)
    minus = log_mixed(high, epsilon)
    rounding = 1e-14 + 2.0**-51 * min(epsilon, math.log(k))
    return Extremes(epsilon, epsilon, plus, minus, rounding, underflow(epsilon, plus, minus))


def log_mixed(share: float, tilt: float) -> float:
    """log(share + (1 - share) e^tilt) for a negative tilt, log(1 - share + share e^tilt) for a positive one."""
    if tilt < 0:
        change = (1.0 - share) * math.expm1(tilt)
        return math.log1p(change) if change > -0.5 else math.log(share + (1.0 - share) * math.exp(tilt))
    return math.log1p(share * math.expm1(tilt)) if tilt < 700 else tilt + math.log(share)


def log_expit(x: float) -> float:
    """log(1 / (1 + e^-x))."""
    return -float(np.logaddexp(0.0, -x))


def logit(p: float) -> float:
    """log(p / (1 - p))."""
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def log_odds_ratio(p: float, q: float) -> float:
    """logit p - logit q, whole where they are close."""
    if p == q:
        return 0.0
    if 0.5 < p / (q or 1e-300) < 2 and 0.5 < (1 - p) / (1 - q if q < 1 else 1e-300) < 2:
        return math.log1p((p - q) / q) + math.log1p((p - q) / (1 - p))
    return logit(p) - logit(q)


def times(count: Any, log: float) -> Any:
    """count * log, 0 for a count of 0 whatever the log."""
    return np.where(np.asarray(count) == 0, 0.0, np.asarray(count) * (log if log > -math.inf else 0.0)
                    + np.where(np.asarray(count) > 0, 0.0 if log > -math.inf else -math.inf, 0.0))  # fmt: skip
