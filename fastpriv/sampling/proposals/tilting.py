"""Proposals with bounded weights: exponentially tilted normals that dominate what is to be integrated.

Notation: P = sum w_i N_i, Q = sum v_j N_j (component j of Q), H = integral of (p - e^epsilon q)^+. For shares s_ij >= 0
with sum_i s_ij <= 1, (p - e^epsilon q)^+ <= sum_i (w_i N_i - e^epsilon sum_j s_ij v_j N_j)^+ <= G = sum w_i B_i T_i
with the normals T_i and the numbers B_i of ``exponents``, the shares of ``shares``. So rho = (p - e^epsilon q)^+ / G
lies in [0, 1] and H = Z E_(G/Z) rho, Z = sum w_i B_i. Likewise for the integral of p^a q^(1-a), a > 1: by convexity
p^a <= sum lam_i (w_i N_i / lam_i)^a, and each N_i^a q^(1-a) <= B_i T_i.

How q is shared out among the components of p.

Notation: (sum_i w_i N_i - sum_j q_j)^+ <= sum_i (w_i N_i - sum_j s_ij q_j)^+ for shares s_ij >= 0 with sum_i s_ij <= 1.
At fixed exponents tau the bound of component i is G_i = C_i prod_j s_ij^(-tau_ij), so the best shares solve a geometric
program: G_i tau_ij / s_ij = e^m_j, one multiplier for each component of q. With g_i = log G_i that is m = f(m),

    f_j(m) = log sum_i tau_ij e^g_i(m),  (1 + theta_i) g_i(m) = log C_i - sum_j tau_ij (log tau_ij - m_j),

f convex, increasing and a contraction in the largest entry, so that Newton's method converges from everywhere (it is
policy iteration). Exponents and shares are improved in turn; the bound never rises.
"""

# bounds: tested by properties/test_tilting - rounding of masses, of the bound of a ratio and of a log sum

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...distributions import GaussianMixture
from ...numerics import BoolArray, FloatArray, IndexArray
from ..options import never_expired
from .active_components import DiagonalPair, Tilts, foremost
from .full_covariances import MatrixPair, TurnedPair
from .local_normal_proposals import DominantTerms, dominant_terms

__all__ = [
    "Proposal", "best_shares", "hockey_stick_proposal", "hockey_stick_proposals", "log_hockey_stick_upper_bound",
    "log_mass_of_larger", "paired", "tilted_law",
]  # fmt: skip

Pair = DiagonalPair | MatrixPair | TurnedPair
_SMALLEST = math.log(1e-200)
_MARGIN = 40.0  # components whose part of Z is below e^-40 hardly count
_DENSE, _MULTIPLIERS = 4_000_000, 1500  # beyond, all of q is shared out alike
_ROUNDS, _SELECTIONS, _WORK = 12, 3, 5e6  # fewer rounds where components, slots and entries are many
_GAIN = 0.05  # a round that lowers log Z by less is the last
_FARTHEST = 1e12  # what serves at this epsilon serves at all larger ones
_NOTHING = 1e9  # a divergence below e^-1e9 is as good as none


@dataclass(frozen=True)
class Proposal:
    """A normalised law to draw from and what it bounds.

    ``integrand <= exp(log_scale) * density of mixture`` everywhere when ``bounded``; the integral is then at most
    exp(log_scale). ``log_bounds`` are the log B_i and ``exponents`` the theta_i of the components of P (theta 0 is N_i
    itself). ``diverges`` says that the integral is infinite. ``dominant`` is what a narrower law needs.
    """

    mixture: GaussianMixture
    log_scale: float
    bounded: bool
    log_bounds: FloatArray
    exponents: FloatArray
    diverges: bool = False
    dominant: DominantTerms | None = None


def hockey_stick_proposal(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> Proposal:
    """A law G/Z with (p - e^epsilon q)^+ <= Z g everywhere, near the smallest Z that tilting gives.

    Parameters
    ----------
    p, q : GaussianMixture
        Any two mixtures of one dimension.
    epsilon : float
        At least 0.

    Returns
    -------
    Proposal
        A mixture of as many components as P, its weights at least 1e-200 of the largest.

    Notes
    -----
    **Accuracy** the bound holds for the stored mixture, with the rounding of its construction included:
    tests/properties/test_tilting.py; where covariances are full, tests/properties/test_proved_domination.py, and to
    first order only where all of p and all of q have one covariance and the pairs of components are above four million.
    """
    return _Search(p, q, epsilon).proposal(epsilon)


def hockey_stick_proposals(
    p: GaussianMixture, q: GaussianMixture, epsilons: ArrayLike, *, spacing: float = 2.0,
    expired: Callable[[], bool] = never_expired,
) -> list[tuple[Proposal, IndexArray]]:
    """Proposals for many epsilons, each with the indices of those it serves.

    What dominates at one epsilon dominates at all larger ones. A proposal serves the epsilons up to the next, where log
    Z has fallen by about ``spacing``, by half as much again at most unless the grid is coarser. Once the time has
    ``expired`` the last proposal serves the rest, and components of P that were not looked at serve for themselves.
    """
    grid = np.asarray(epsilons, dtype=np.float64).reshape(-1)
    order = np.argsort(grid, kind="stable")
    levels = grid[order]
    search = _Search(p, q, float(levels[0]), expired)
    starts, last = [0], search.proposal(float(levels[0]))
    proposals, place, end = [last], 0, len(levels) - 1
    while place < end and last.log_scale > -_NOTHING and not expired():
        slope = _mean_exponent(p, last)
        step = spacing / max(slope, spacing / max(float(levels[end] - levels[place]), 1e-300))
        far = end
        near = min(max(int(np.searchsorted(levels, levels[place] + step)), place + 1), far)
        while True:
            new = search.proposal(float(levels[near]))
            fall = proposals[-1].log_scale - new.log_scale
            if fall <= 1.5 * spacing or near == place + 1 or expired():
                break
            near = place + max(1, (near - place) // 2)
        if fall > 0.5 * spacing:
            starts.append(near)
            proposals.append(new)
        place, last = near, new
    ends = [*starts[1:], len(levels)]
    return [(proposal, order[i:j]) for proposal, i, j in zip(proposals, starts, ends, strict=True)]


def _mean_exponent(p: GaussianMixture, proposal: Proposal) -> float:
    logs = np.log(p.weights) + proposal.log_bounds
    return float(np.exp(logs - _log_total(logs)) @ proposal.exponents)


def log_hockey_stick_upper_bound(
    p: GaussianMixture, q: GaussianMixture, epsilon: float, expired: Callable[[], bool] = never_expired
) -> float:
    """An upper bound of log H_{e^epsilon}(P||Q): log Z, or the logarithm of the mass of P where that is less."""
    mass = math.log(math.fsum(p.weights)) + 4 * 2.0**-53
    return min(_Search(p, q, epsilon, expired).proposal(epsilon).log_scale, mass)


def log_mass_of_larger(p: GaussianMixture, proposal: Proposal, shift: float = 0.0) -> float:
    """An upper bound of log P(p > e^epsilon q), for an epsilon that is ``shift`` above that of the proposal.

    Where p > K q, p is at most (p - e^-t K q)^+ / (1 - e^-t) for every t > 0; and levels lower by t - shift raise the
    bound of a component with exponents of sum theta by theta (t - shift), the exponents being feasible at all levels.
    """
    logs = np.log(p.weights) + proposal.log_bounds
    steps = 0.5 ** np.arange(-4.0, 44.0)
    with np.errstate(over="ignore", invalid="ignore"):
        raised = np.minimum(proposal.exponents[:, None] * (steps - shift), -proposal.log_bounds[:, None])
        raised = np.where(proposal.exponents[:, None] > 0.0, raised, 0.0)  # N itself dominates at every level
        terms = logs[:, None] + raised
        top = terms.max(axis=0)
        found = top + np.log(np.exp(terms - top).sum(axis=0)) - np.log(-np.expm1(-steps))
    found = found[np.isfinite(found)]
    return min(float(found.min(initial=0.0)) + 1e-9, 0.0)


class _Search:
    """One pair of laws; every epsilon starts from the shares and exponents of the one before."""

    def __init__(
        self, p: GaussianMixture, q: GaussianMixture, epsilon: float, expired: Callable[[], bool] = never_expired
    ) -> None:
        self.p, self.size = p, len(q)
        self.weights = np.log(p.weights)
        self.epsilon = epsilon = min(epsilon, _FARTHEST)
        self.pair = paired(p, q, np.log(q.weights) + epsilon, expired=expired)
        self.expired = expired
        dense = len(p) * len(q) <= _DENSE and len(q) <= _MULTIPLIERS
        self.shares = np.zeros((len(p), len(q) if dense else 1))
        self.tau: FloatArray | None = None

    @np.errstate(all="ignore")  # what overflows is not finite, and not taken
    def proposal(self, epsilon: float) -> Proposal:
        """Slots once, then exponents and shares in turn while the bound falls."""
        pair, shift = self.pair, min(epsilon, _FARTHEST) - self.epsilon
        best = now = pair.run(self.shares + shift, self.tau)
        least = _log_total(self.weights + now.log_bounds)
        if pair.pooled and self.tau is None:
            for _ in range(_SELECTIONS):
                rows = foremost(self.weights + now.log_bounds, self.size)
                pair.choose(now, rows)
                now = now.replaced(rows, pair.run(self.shares + shift, None, rows))
                total = _log_total(self.weights + now.log_bounds)
                best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
                if gain < _GAIN or self.expired():
                    break
        found_with = self.shares
        rounds = int(np.clip(_WORK / max(now.tau.size * now.spreads[0].size, 1), 3, _ROUNDS))
        for _ in range(rounds):
            if not np.isfinite(least) or least < -_NOTHING or self.expired():
                break
            self._relax(now, shift)
            offset = self.weights[:, None]
            new = best_shares(self.weights + now.log_bounds, now.exponents, self.shares + offset) - offset
            if not np.isfinite(new).all():
                break
            self.shares = new
            now = pair.run(self.shares + shift, now.tau, floor=least - _MARGIN - self.weights)
            total = _log_total(self.weights + now.log_bounds)
            found_with = new if total < least else found_with
            best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
            if gain < _GAIN:
                break
        self.tau = now.tau
        best = best if isinstance(pair, DiagonalPair) else pair.restored(best, found_with + shift)
        return _proposal(self.p, pair, best)

    def _relax(self, now: Tilts, shift: float) -> None:
        """Components that hardly count take the least exponents that keep it so: they leave their shares to others."""
        logs = self.weights + now.log_bounds
        enough = _log_total(logs) - _MARGIN - self.weights
        low = np.flatnonzero(now.log_bounds < enough)
        if low.size:
            new = self.pair.run(self.shares + shift, None, low, enough[low])
            good = new.log_bounds < enough[low] + 1.0
            now.put(low[good], new.part(good))


def paired(
    p: GaussianMixture, q: GaussianMixture, levels: FloatArray, theta: float | None = None,
    expired: Callable[[], bool] = never_expired,
) -> Pair:  # fmt: skip
    """The problems of all components of p against e^levels N_j, in coordinates that suit the forms."""
    if p.form != "full" and q.form != "full":
        return DiagonalPair((_grid(p.means), _spread(p)), (levels, _grid(q.means), _spread(q)), theta, expired)
    kind = TurnedPair if p.shared and q.shared else MatrixPair
    return kind((p.means, _factors(p)), (levels, q.means, _factors(q)), theta, expired)


def _factors(law: GaussianMixture) -> FloatArray:
    if law.factors is not None:
        return law.factors
    spread = _spread(law)[:1] if law.shared else _spread(law)
    return spread[:, :, None] * np.eye(law.dimension)


def _log_total(logs: FloatArray) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).sum()))


def _grid(means: FloatArray) -> FloatArray:
    return means[:, None] if means.ndim == 1 else means


def _spread(law: GaussianMixture) -> FloatArray:
    means = _grid(law.means)
    sigmas = _grid(law.sigmas)
    return np.broadcast_to(sigmas, means.shape)


def _proposal(p: GaussianMixture, pair: Pair, tilts: Tilts) -> Proposal:
    """Where the bound is not below 1 the component of p itself serves."""
    same = ~(tilts.log_bounds < 0.0)
    bounds = np.where(same, 0.0, tilts.log_bounds)
    logs = np.log(p.weights) + bounds
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _SMALLEST))
    total = math.fsum(weights)
    weights /= total
    slack = 8 * 2.0**-53 * (len(logs) + 4 + abs(top) + float(np.abs(np.log(p.weights)).max()))
    law = tilted_law(p, weights, tilts, same)
    exponents = np.where(same, 0.0, tilts.exponents.sum(axis=1))
    dominant = dominant_terms(logs, tilts, pair.exponents) if np.isfinite(logs).all() else None
    return Proposal(law, top + math.log(total) + slack, True, bounds, exponents, dominant=dominant)


def tilted_law(p: GaussianMixture, weights: FloatArray, tilts: Tilts, same: BoolArray) -> GaussianMixture:
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


_STEPS = 12
_HELD = 1e-4
_NEAR = 1e-3  # of a multiplier: any shares are true bounds


def best_shares(log_bounds: FloatArray, tau: FloatArray, shares: FloatArray) -> FloatArray:
    """New log s_ij (k, J) from log G_i (k,), tau_ij (k, J) and the log shares in force; columns sum to at most 1."""
    total = tau.sum(axis=1)
    with np.errstate(all="ignore"):
        logs = np.where(tau > 0, np.log(tau), -np.inf)
        constant = log_bounds - np.sum(np.where(tau > 0, tau * (logs - shares), 0.0), axis=1)
    multiplier = _log_sum(log_bounds[:, None] + logs)
    used = np.isfinite(multiplier)
    multiplier = np.where(used, multiplier, 0.0)
    damp = 1.0 / (1.0 + total)
    for _ in range(_STEPS):
        terms = (damp * (constant + tau @ multiplier))[:, None] + logs
        gap = np.where(used, _log_sum(terms), 0.0) - multiplier
        if np.abs(gap).max() < _NEAR:
            break
        with np.errstate(all="ignore"):
            portion = np.where(used, np.exp(terms - np.where(used, gap + multiplier, 0.0)), 0.0)
        multiplier = multiplier + _newton(portion, tau * damp[:, None], gap)
    with np.errstate(all="ignore"):
        found = np.where(used, (damp * (constant + tau @ multiplier))[:, None] + logs - multiplier, shares)
        found = np.maximum(found, _LEAST)
        return found - np.where(used, np.maximum(_log_sum(found), 0.0) + 1e-12, 0.0)


_LEAST = -1e6


def _newton(portion: FloatArray, slopes: FloatArray, gap: FloatArray) -> FloatArray:
    """(I - portion' slopes)^-1 gap; components of p that hold next to nothing are left out of the matrix."""
    rows = np.flatnonzero(portion.max(axis=1) > _HELD)
    portion, slopes = portion[rows], slopes[rows]
    if len(rows) >= len(gap):
        return np.asarray(np.linalg.solve(np.eye(len(gap)) - portion.T @ slopes, gap))
    inner = np.eye(len(rows)) - slopes @ portion.T
    return np.asarray(gap + portion.T @ np.linalg.solve(inner, slopes @ gap))


def _log_sum(terms: FloatArray) -> FloatArray:
    top = terms.max(axis=0)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(all="ignore"):
        return np.asarray(np.log(np.sum(np.exp(terms - safe), axis=0)) + safe)
