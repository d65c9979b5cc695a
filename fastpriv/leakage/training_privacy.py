"""Differential privacy of a training with clipped examples and normal noise.

Notation: a round has one batch and k noisy gradients of it, each with sensitivity clip / L to one example and noise
sigma in every coordinate, L the (expected) size of the batch. Given the batch they are together as private as one
Gaussian mechanism with sensitivity mu = sqrt(k) clip / (L sigma) and noise 1. A Poisson batch of rate q amplifies that
to the pair P = (1 - q) N(0, 1) + q N(mu, 1), Q = N(0, 1), in both orders, for data sets that differ by one example more
or less; T rounds compose. Later rounds may depend on earlier ones, since the pair dominates every round.

Source: M. Abadi et al. 2016 (DP-SGD); J. Dong, A. Roth and W. Su 2022, corollary 3.3 (composed Gaussian mechanisms);
Y. Zhu, J. Dong and Y.-X. Wang 2022, theorem 11 (dominating pairs of Poisson samples).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..composition.discretised_losses import discretised
from ..composition.pairs import pair_of
from ..composition.tilted_transforms import composed_bounds
from ..distributions.mixtures import GaussianMixture
from ..errors import DomainError
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from ..numerics import SMALLEST_NORMAL
from .protections import Protection

__all__ = ["epsilon_of_training", "sensitivity_of_round"]

# bound: none - delta of a round beyond the grid of losses, which becomes mass at infinity with its bound
_TAIL_MASS = 1e-30
# bound: none - accuracy of the search for epsilon: the bracket of the composed delta is wider
_SEARCH_ACCURACY = 1e-7
# bound: none - intervals of losses that are chosen here: the bracket holds for any
_LARGEST_INTERVAL, _LEAST_INTERVAL = 0.1, 1e-6
_INTERVALS_IN_DEVIATION, _MOST_POINTS = 64.0, 2**14
_LARGEST_EPSILON = 1e4  # beyond it infinity is returned: nobody calls that private


def sensitivity_of_round(protection: Protection, local_steps: int, batch: str, size: float) -> float:
    """Mu of a round; an error that says what is missing where no privacy is known."""
    plain = protection.clip_example is not None and protection.noise == "gaussian"
    if not plain or (local_steps > 1 and not protection.every_step) or batch == "fixed":
        raise DomainError(
            "protection must clip examples and add normal noise to every step, in Poisson or full batches; got "
            f"{protection!r} with {batch} batches and {local_steps} local steps. No privacy is known here for others; "
            "take Protection.dp_sgd and batch='poisson'."
        )
    return math.sqrt(local_steps) * float(protection.clip_example or 0.0) / (size * protection.scale)


def epsilon_of_training(mu: float, rate: float, rounds: int, delta: float, interval: float | None) -> Estimate:
    """The least epsilon for which the rounds are (epsilon, delta) private, in the worst case."""
    if rate == 1.0:
        return GaussianMechanism(1.0, mu * math.sqrt(rounds)).epsilon(delta)
    if delta == 0.0:
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="normal noise at delta = 0")
    p, q = GaussianMixture([1.0 - rate, rate], [0.0, mu], 1.0), GaussianMixture.single(0.0, 1.0)
    lower, upper, evaluations = 0.0, 0.0, 0
    interval = _adapted_interval(p, q) if interval is None else interval
    for first, second in ((p, q), (q, p)):
        pair = pair_of(first, second)
        for pessimistic in (True, False):
            loss = discretised(pair.forward, pair.backward, interval, _TAIL_MASS, pessimistic)

            def composed(epsilon: float, loss: Any = loss, upper_side: bool = pessimistic) -> float:
                bounds = composed_bounds(loss, np.array([epsilon]), rounds)
                return float(bounds[1][0] if upper_side else bounds[0][0])

            if pessimistic:
                found, count = _least_epsilon(composed, delta, lambda d: d <= delta, 1.0)
                upper = max(upper, found)
            else:
                found, count = _least_epsilon(composed, delta, lambda d: d >= delta, -1.0)
                lower = max(lower, found)
            evaluations += count
    lower = min(lower, upper)
    return Estimate(0.5 * (lower + upper) if upper < math.inf else lower, lower, upper, kind="certified", unit="nats",
                    method="composed pair of a Poisson sample with normal noise",
                    cost={"evaluations": evaluations})  # fmt: skip


def _adapted_interval(p: GaussianMixture, q: GaussianMixture) -> float:
    """A fraction of the standard deviation of the loss of a round, but not so little that its grid is long."""
    pair, interval = pair_of(p, q), _LARGEST_INTERVAL
    while True:
        loss = discretised(pair.forward, pair.backward, interval, _TAIL_MASS, True)
        losses = (loss.first + np.arange(len(loss.masses))) * interval
        mean = float(loss.masses @ losses)
        fine = math.sqrt(float(loss.masses @ (losses - mean) ** 2)) / _INTERVALS_IN_DEVIATION
        fine = max(fine, len(losses) * interval / _MOST_POINTS, _LEAST_INTERVAL)
        if fine >= 0.5 * interval:
            return min(fine, interval)
        interval = fine


def _least_epsilon(
    composed: Callable[[float], float], delta: float, holds: Callable[[float], bool], outward: float
) -> tuple[float, int]:
    """An epsilon near the root of composed = delta, on the side where ``holds`` is true, and the number of evaluations.

    0 where delta is met at 0.
    """
    count = 0

    def gap(epsilon: float) -> float:
        nonlocal count
        count += 1
        return math.log(max(composed(epsilon), SMALLEST_NORMAL)) - math.log(delta)

    if gap(0.0) <= 0.0:
        return 0.0, count
    low, high = 0.0, 1.0
    while gap(high) > 0.0:
        low, high = high, 2.0 * high
        if high > _LARGEST_EPSILON:
            return math.inf if outward > 0 else low, count
    root = float(brentq(gap, low, high, xtol=_SEARCH_ACCURACY))
    step = _SEARCH_ACCURACY
    while root > 0.0 and not holds(composed(root)):
        root, step = max(0.0, root + outward * step), 2.0 * step
        count += 1
    return root, count
