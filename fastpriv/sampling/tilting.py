"""Proposals with bounded weights: exponentially tilted normals that dominate what is to be integrated.

Notation: P = sum w_i N_i, Q = sum v_j N_j (component j of Q), H = integral of (p - e^epsilon q)^+.
(p - e^epsilon q)^+ <= sum w_i (N_i - e^epsilon q)^+ <= G = sum w_i B_i T_i with the normals T_i and the numbers B_i of
``exponents``. So rho = (p - e^epsilon q)^+ / G lies in [0, 1] and H = Z E_(G/Z) rho, Z = sum w_i B_i. Likewise for the
integral of p^a q^(1-a), a > 1: by convexity p^a <= sum lam_i (w_i N_i / lam_i)^a, and each N_i^a q^(1-a) <= B_i T_i.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..distributions import GaussianMixture
from .slots import Tilts, diagonal_tilts

__all__ = ["Proposal", "hockey_stick_proposal"]

FloatArray = NDArray[np.float64]
_SMALLEST = math.log(1e-200)


@dataclass(frozen=True)
class Proposal:
    """A normalised law to draw from and what it bounds.

    ``integrand <= exp(log_scale) * density of mixture`` everywhere when ``bounded``; the integral is then at most
    exp(log_scale). ``log_bounds`` are the log B_i and ``exponents`` the theta_i of the components of P (theta 0 is N_i
    itself).
    """

    mixture: GaussianMixture
    log_scale: float
    bounded: bool
    log_bounds: FloatArray
    exponents: FloatArray


def hockey_stick_proposal(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> Proposal:
    """A law G/Z with (p - e^epsilon q)^+ <= Z g everywhere, near the smallest Z that tilting gives."""
    levels = np.log(q.weights) + epsilon
    tilts = diagonal_tilts((_grid(p.means), _spread(p)), (levels, _grid(q.means), _spread(q)))
    logs = np.log(p.weights) + tilts.log_bounds
    return _proposal(p, tilts, logs)


def _grid(means: FloatArray) -> FloatArray:
    return means[:, None] if means.ndim == 1 else means


def _spread(law: GaussianMixture) -> FloatArray:
    means = _grid(law.means)
    sigmas = _grid(law.sigmas)
    return np.broadcast_to(sigmas, means.shape)


def _proposal(p: GaussianMixture, tilts: Tilts, logs: FloatArray) -> Proposal:
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _SMALLEST))
    total = math.fsum(weights)
    weights /= total
    slack = 8 * 2.0**-53 * (len(logs) + 4 + abs(top) + float(np.abs(np.log(p.weights)).max()))
    means, sigmas = tilts.means, tilts.sigmas
    if p.means.ndim == 1:
        law = GaussianMixture(weights, means[:, 0], sigmas[:, 0])
    else:
        law = GaussianMixture(weights, means, sigmas)
    return Proposal(law, top + math.log(total) + slack, True, tilts.log_bounds, tilts.exponents)
