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
from .matrices import MatrixPair, TurnedPair
from .slots import DiagonalPair, Tilts

__all__ = ["Proposal", "hockey_stick_proposal"]

FloatArray = NDArray[np.float64]
Pair = DiagonalPair | MatrixPair | TurnedPair
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
    pair = _pair(p, q, np.log(q.weights) + epsilon)
    return _proposal(p, _improved(pair, np.log(p.weights)))


def _pair(p: GaussianMixture, q: GaussianMixture, levels: FloatArray, theta: float | None = None) -> Pair:
    if p.form != "full" and q.form != "full":
        return DiagonalPair((_grid(p.means), _spread(p)), (levels, _grid(q.means), _spread(q)), theta)
    kind = TurnedPair if p.shared and q.shared else MatrixPair
    return kind((p.means, _factors(p)), (levels, q.means, _factors(q)), theta)


def _factors(law: GaussianMixture) -> FloatArray:
    if law.factors is not None:
        return law.factors
    spread = _spread(law)[:1] if law.shared else _spread(law)
    return spread[:, :, None] * np.eye(law.dimension)


def _improved(pair: Pair, weights: FloatArray) -> Tilts:
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
    return pair.restored(best) if isinstance(pair, TurnedPair) else best


def _relax(pair: Pair, weights: FloatArray, shares: FloatArray, now: Tilts) -> None:
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
    same = ~(tilts.log_bounds < 0.0)
    bounds = np.where(same, 0.0, tilts.log_bounds)
    logs = np.log(p.weights) + bounds
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _SMALLEST))
    total = math.fsum(weights)
    weights /= total
    slack = 8 * 2.0**-53 * (len(logs) + 4 + abs(top) + float(np.abs(np.log(p.weights)).max()))
    law = _law(p, weights, tilts, same)
    return Proposal(law, top + math.log(total) + slack, True, bounds, np.where(same, 0.0, tilts.exponents.sum(axis=1)))


def _law(p: GaussianMixture, weights: FloatArray, tilts: Tilts, same: NDArray[np.bool_]) -> GaussianMixture:
    """The tilted normals, and the components of p themselves where these are as good."""
    means = np.where(same[:, None], _grid(p.means), tilts.means)
    if tilts.spreads.ndim == 2:
        return GaussianMixture(weights, means, np.where(same[:, None], _spread(p), tilts.spreads))
    if len(tilts.spreads) == 1 and not same.any():
        return GaussianMixture(weights, means, covariances=tilts.spreads)
    own = p.covariances if p.covariances is not None else _factors(p) ** 2
    spreads = np.where(same[:, None, None], own, tilts.spreads)
    spreads.setflags(write=False)
    return GaussianMixture(weights, means, covariances=spreads)
