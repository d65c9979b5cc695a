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

from ...base.errors import DomainError
from ...base.estimate import Estimate
from ...composition.compositions import compose
from ...mechanisms.subsampled_gaussian import PoissonSampledGaussian
from .protections import Protection

__all__ = ["epsilon_of_training", "sensitivity_of_round"]


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


def epsilon_of_training(mu: float, rate: float, rounds: int, delta: float) -> Estimate:
    """The least epsilon for which the rounds are (epsilon, delta) private, in the worse direction."""
    return compose(PoissonSampledGaussian(1.0, rate, mu), rounds).epsilon(delta)
