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
_MARGIN = 40.0  # components whose part of Z is below e^-40 hardly count
_DENSE, _MULTIPLIERS = 4_000_000, 1500  # beyond, all of q is shared out alike
_ROUNDS, _SELECTIONS = 12, 3
_GAIN = 0.05  # a round that lowers log Z by less is the last
_NOTHING = 1e9  # a divergence below e^-1e9 is as good as none


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
    partners = len(pair.q[0])
    dense = len(weights) * partners <= _DENSE and partners <= _MULTIPLIERS
    shares = np.zeros((len(weights), partners if dense else 1))
    best = now = pair.run(shares)
    least = _log_total(weights + now.log_bounds)
    if pair.pooled:
        for _ in range(_SELECTIONS):
            pair.choose(now)
            now = pair.run(shares)
            total = _log_total(weights + now.log_bounds)
            best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
            if gain < _GAIN:
                break
    for _ in range(_ROUNDS):
        if not np.isfinite(least) or least < -_NOTHING:
            break
        _relax(pair, weights, shares, now)
        new = best_shares(weights + now.log_bounds, now.exponents, shares + weights[:, None]) - weights[:, None]
        if not np.isfinite(new).all():
            break
        shares = new
        now = pair.run(shares, now.tau)
        total = _log_total(weights + now.log_bounds)
        best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
        if gain < _GAIN:
            break
    return best


def _relax(pair: DiagonalPair, weights: FloatArray, shares: FloatArray, now: Tilts) -> None:
    """Components that hardly count take the smallest exponents that keep it so: then they leave their shares to others."""
    logs = weights + now.log_bounds
    enough = _log_total(logs) - _MARGIN - weights
    low = np.flatnonzero(now.log_bounds < enough)
    if low.size:
        new = pair.run(shares, None, low, enough[low])
        good = new.log_bounds < enough[low] + 1.0
        now.put(low[good], new.part(good))


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
    law = GaussianMixture(weights, tilts.means, tilts.spreads)
    return Proposal(law, top + math.log(total) + slack, True, tilts.log_bounds, tilts.exponents.sum(axis=1))
