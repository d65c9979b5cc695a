"""Proposals with bounded weights: exponentially tilted normals that dominate what is to be integrated.

Notation: P = sum w_i N_i, Q = sum v_j N_j (component j of Q), H = integral of (p - e^epsilon q)^+. For shares s_ij >= 0
with sum_i s_ij <= 1, (p - e^epsilon q)^+ <= sum_i (w_i N_i - e^epsilon sum_j s_ij v_j N_j)^+ <= G = sum w_i B_i T_i with
the normals T_i and the numbers B_i of ``exponents``, the shares of ``shares``. So rho = (p - e^epsilon q)^+ / G lies in
[0, 1] and H = Z E_(G/Z) rho, Z = sum w_i B_i. Likewise for the integral of p^a q^(1-a), a > 1: by convexity
p^a <= sum lam_i (w_i N_i / lam_i)^a, and each N_i^a q^(1-a) <= B_i T_i.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..distributions import GaussianMixture
from .shares import best_shares
from .slots import DiagonalPair, Tilts

__all__ = ["Proposal", "hockey_stick_proposal"]

FloatArray = NDArray[np.float64]
_SMALLEST = math.log(1e-200)
_MARGIN = 40.0  # components whose part of Z is below e^-40 need not be improved
_DENSE = 4_000_000  # shares of each component of q by itself up to this many pairs
_ROUNDS = 16
_SELECTIONS = 3


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
    pair = DiagonalPair((_grid(p.means), _spread(p)), (levels, _grid(q.means), _spread(q)))
    tilts = _improved(pair, np.log(p.weights))
    return _proposal(p, tilts)


def _improved(pair: DiagonalPair, weights: FloatArray) -> Tilts:
    """Slots, then exponents and shares in turn while the bound falls."""
    dense = len(weights) * len(pair.q[0]) <= _DENSE and len(pair.q[0]) <= 1500
    shares = np.zeros((len(weights), len(pair.q[0]) if dense else 1))
    best, least = None, math.inf
    if pair.pooled:
        for _ in range(_SELECTIONS):
            pair.choose(best)
            new = pair.run(shares, None)
            total = _log_total(weights + new.log_bounds)
            if total > least - 0.05:
                break
            best, least = new, total
        # the last choice stays
    now = pair.run(shares, None)
    for _ in range(_ROUNDS):
        logs = weights + now.log_bounds
        total = _log_total(logs)
        low = logs < total - _MARGIN
        if low.any():
            pair.tau[low] = np.nan
            now = pair.run(shares, total - _MARGIN - weights)
            logs = weights + now.log_bounds
        if best is None or total < least:
            gain = least - total
            best, least = now, total
            if gain < 0.05:
                break
        elif total > least + 1e-6:
            break
        new = best_shares(logs, now.exponents, shares + weights[:, None]) - weights[:, None]
        if not np.isfinite(new).all():
            break
        shares = new
        now = pair.run(shares, None)
    assert best is not None
    return best


def _log_total(logs: FloatArray) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _grid(means: FloatArray) -> FloatArray:
    return means[:, None] if means.ndim == 1 else means


def _spread(law: GaussianMixture) -> FloatArray:
    means = _grid(law.means)
    sigmas = _grid(law.sigmas)
    return np.broadcast_to(sigmas, means.shape)


def _proposal(p: GaussianMixture, tilts: Tilts) -> Proposal:
    logs = np.log(p.weights) + tilts.log_bounds
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _SMALLEST))
    total = math.fsum(weights)
    weights /= total
    slack = 8 * 2.0**-53 * (len(logs) + 4 + abs(top) + float(np.abs(np.log(p.weights)).max()))
    law = GaussianMixture(weights, tilts.means, tilts.sigmas)
    return Proposal(law, top + math.log(total) + slack, True, tilts.log_bounds, tilts.exponents.sum(axis=1))
