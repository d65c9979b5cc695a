"""Proposals with bounded weights: exponentially tilted normals that dominate what is to be integrated.

docs/proofs/domination.md, theorem 8.2. Notation: P = sum w_i N_i, Q = sum v_j N_j (component j of Q), H = integral of
(p - e^epsilon q)^+. For shares s_ij >= 0 with sum_i s_ij <= 1, (p - e^epsilon q)^+ <= sum_i (w_i N_i - e^epsilon sum_j
s_ij v_j N_j)^+ <= G = sum w_i B_i T_i with the normals T_i and the numbers B_i of ``exponents``. So rho = (p -
e^epsilon q)^+ / G lies in [0, 1] and H = Z E_(G/Z) rho, Z = sum w_i B_i. Likewise for the integral of p^a q^(1-a), a >
1: by convexity p^a <= sum lam_i (w_i N_i / lam_i)^a, and each N_i^a q^(1-a) <= B_i T_i.

Mass allocation, or how q is shared out among the components of p. At fixed exponents tau the bound of component i is
G_i = C_i prod_j s_ij^(-tau_ij), so the best shares solve a geometric program: G_i tau_ij / s_ij = e^m_j, one multiplier
for each component of q. With g_i = log G_i that is m = f(m),

    f_j(m) = log sum_i tau_ij e^g_i(m),  (1 + theta_i) g_i(m) = log C_i - sum_j tau_ij (log tau_ij - m_j),

f convex, increasing and a contraction in the largest entry, so that Newton's method converges from everywhere (it is
policy iteration). Exponents and shares are improved in turn; the bound never rises.
"""

# bounds: proved - docs/proofs/roundings.md, 13.25: rounding of masses, of the bound of a ratio and of a log sum

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray, log_sum_exp
from ...distributions import GaussianMixture
from ..options import never_expired
from .active_components import DiagonalTilting, TiltedNormals, leading_components
from .full_covariances import FullTilting
from .local_normal_proposals import DominantTerms, dominant_terms

_LOG_LEAST_WEIGHT = math.log(1e-200)  # of a component of a proposal, relative to the largest
_MARGIN = 40.0  # components whose part of Z is below e^-40 hardly count
_DENSE_PAIRS, _DENSE_PARTNERS = 4_000_000, 1500  # pairs, and components of q, beyond which all of q is shared alike
_ROUNDS, _SELECTIONS = 12, 3  # of exponents and shares in turn, and of selections of active components, at most
_WORK = 5e6  # entries of exponents and spreads over all rounds: fewer rounds where there are many
_MIN_GAIN = 0.05  # a round that lowers log Z by less is the last
_FARTHEST = 1e12  # what serves at this epsilon serves at all larger ones
_NEGLIGIBLE = 1e9  # a divergence below e^-1e9 is as good as none
_NEWTON_STEPS = 12  # of the multipliers, at most
_DOMINANT_PORTION = 1e-4  # components of p that hold less of every component of q are left out of the matrix
# bound: none - change of a multiplier at which the iteration ends: any shares give true bounds
_MULTIPLIER_CHANGE = 1e-3
_LEAST_LOG_SHARE = -1e6  # shares stay above e to this power


class Proposal(NamedTuple):
    """A normalised mixture to draw from and what it bounds.

    ``integrand <= exp(log_scale) * density of mixture`` everywhere when ``bounded``; the integral is then at most
    exp(log_scale). ``log_bounds`` are the log B_i and ``exponents`` the theta_i of the components of P (theta 0 is N_i
    itself). ``diverges`` says that the integral is infinite. Local normals are made from ``dominant``.
    """

    mixture: GaussianMixture
    log_scale: float
    bounded: bool
    log_bounds: FloatArray
    exponents: FloatArray
    diverges: bool = False
    dominant: DominantTerms | None = None


def hockey_stick_proposal(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> Proposal:
    """A mixture G/Z with (p - e^epsilon q)^+ <= Z g everywhere, near the smallest Z that tilting gives.

    It has as many components as P, their weights at least 1e-200 of the largest; epsilon is at least 0. The bound holds
    for the stored mixture, with the rounding of its construction included: tests/properties/test_tilting.py; where
    covariances are full, tests/properties/test_proved_domination.py.
    """
    return _ProposalSearch(p, q, epsilon).proposal(epsilon)


def hockey_stick_proposals(
    p: GaussianMixture, q: GaussianMixture, epsilons: ArrayLike, *, spacing: float = 2.0,
    expired: Callable[[], bool] = never_expired,
) -> list[tuple[Proposal, IndexArray]]:
    """Proposals for many epsilons, each with the indices of those it serves.

    What dominates at one epsilon dominates at all larger ones. A proposal serves the epsilons up to the next, where log
    Z has fallen by about ``spacing``, by half as much again at most unless the grid is coarser. Once the time has
    ``expired`` the last proposal serves the rest, and components of P that were not solved for serve for themselves.
    """
    grid = np.asarray(epsilons, dtype=np.float64).reshape(-1)
    order = np.argsort(grid, kind="stable")
    levels = grid[order]
    search = _ProposalSearch(p, q, float(levels[0]), expired)
    starts, last = [0], search.proposal(float(levels[0]))
    proposals, index, end = [last], 0, len(levels) - 1
    while index < end and last.log_scale > -_NEGLIGIBLE and not expired():
        logs = np.log(p.weights) + last.log_bounds
        slope = float(np.exp(logs - log_sum_exp(logs)) @ last.exponents)
        step = spacing / max(slope, spacing / max(float(levels[end] - levels[index]), 1e-300))
        near = min(max(int(np.searchsorted(levels, levels[index] + step)), index + 1), end)
        while True:
            new = search.proposal(float(levels[near]))
            fall = proposals[-1].log_scale - new.log_scale
            if fall <= 1.5 * spacing or near == index + 1 or expired():
                break
            near = index + max(1, (near - index) // 2)
        if fall > 0.5 * spacing:
            starts.append(near)
            proposals.append(new)
        index, last = near, new
    ends = [*starts[1:], len(levels)]
    return [(proposal, order[i:j]) for proposal, i, j in zip(proposals, starts, ends, strict=True)]


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
        log_bounds = top + np.log(np.exp(terms - top).sum(axis=0)) - np.log(-np.expm1(-steps))
    log_bounds = log_bounds[np.isfinite(log_bounds)]
    least, size = float(log_bounds.min(initial=0.0)), np.abs(proposal.log_bounds[np.isfinite(proposal.log_bounds)])
    return min(least + 1e-9 + 1e-15 * (float(size.max(initial=0.0)) - least), 0.0)


class _ProposalSearch:
    """The search for one pair; every epsilon starts from the shares and exponents of the one before."""

    def __init__(
        self, p: GaussianMixture, q: GaussianMixture, epsilon: float, expired: Callable[[], bool] = never_expired
    ) -> None:
        self.p, self.size, self.largest_level = p, len(q), float(np.abs(np.log(q.weights)).max())
        self.weights = np.log(p.weights)
        self.epsilon = epsilon = min(epsilon, _FARTHEST)
        self.pair = tilting_of(p, q, np.log(q.weights) + epsilon, expired=expired)
        self.expired = expired
        dense = len(p) * len(q) <= _DENSE_PAIRS and len(q) <= _DENSE_PARTNERS
        self.log_shares = np.zeros((len(p), len(q) if dense else 1))
        self.tau: FloatArray | None = None

    @np.errstate(all="ignore")  # what overflows is not finite, and not taken
    def proposal(self, epsilon: float) -> Proposal:
        """Active components once, then exponents and shares in turn while the bound falls."""
        pair, shift = self.pair, min(epsilon, _FARTHEST) - self.epsilon
        shift -= 16 * UNIT_ROUNDOFF * (self.largest_level + self.epsilon + abs(shift))  # of levels that cancel
        best = now = pair.tilted(self.log_shares + shift, self.tau)
        least = float(log_sum_exp(self.weights + now.log_bounds))
        if pair.has_remainder and self.tau is None:
            for _ in range(_SELECTIONS):
                rows = leading_components(self.weights + now.log_bounds, self.size)
                pair.reselect(now, rows)
                now = now.replaced(rows, pair.tilted(self.log_shares + shift, None, rows))
                total = float(log_sum_exp(self.weights + now.log_bounds))
                best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
                if gain < _MIN_GAIN or self.expired():
                    break
        found_with = self.log_shares
        rounds = int(np.clip(_WORK / max(now.tau.size * now.spreads[0].size, 1), 3, _ROUNDS))
        for _ in range(rounds):
            if not np.isfinite(least) or least < -_NEGLIGIBLE or self.expired():
                break
            self._relax(now, shift)
            offset = self.weights[:, None]
            new = best_mass_allocation(self.weights + now.log_bounds, now.exponents, self.log_shares + offset) - offset
            if not np.isfinite(new).all():
                break
            self.log_shares = new
            now = pair.tilted(self.log_shares + shift, now.tau, sufficient=least - _MARGIN - self.weights)
            total = float(log_sum_exp(self.weights + now.log_bounds))
            found_with = new if total < least else found_with
            best, gain, least = (now, least - total, total) if total < least else (best, 0.0, least)
            if gain < _MIN_GAIN:
                break
        self.tau = now.tau
        best = pair.certified_normals(best, found_with + shift)
        return _proposal(self.p, pair, best)

    def _relax(self, now: TiltedNormals, shift: float) -> None:
        """Give negligible components the least exponents that keep them so: their shares go to others."""
        logs = self.weights + now.log_bounds
        sufficient = log_sum_exp(logs) - _MARGIN - self.weights
        low = np.flatnonzero(now.log_bounds < sufficient)
        if low.size:
            new = self.pair.tilted(self.log_shares + shift, None, low, sufficient[low])
            good = new.log_bounds < sufficient[low] + 1.0
            now.assign(low[good], new.subset(good))


def tilting_of(
    p: GaussianMixture, q: GaussianMixture, levels: FloatArray, theta: float | None = None,
    expired: Callable[[], bool] = never_expired,
) -> DiagonalTilting | FullTilting:
    """The problems of all components of p against e^levels N_j, in coordinates that suit the forms."""
    if p.form != "full" and q.form != "full":
        return DiagonalTilting((_columns(p.means), _spread(p)), (levels, _columns(q.means), _spread(q)), theta, expired)
    return FullTilting((p.means, _factors(p)), (levels, q.means, _factors(q)), theta, expired)


def _factors(mixture: GaussianMixture) -> FloatArray:
    """Lower factors of the covariances, one where it is shared."""
    if mixture.factors is not None:
        return mixture.factors
    spread = _spread(mixture)[:1] if mixture.shared else _spread(mixture)
    return spread[:, :, None] * np.eye(mixture.dimension)


def _columns(values: FloatArray) -> FloatArray:
    return values[:, None] if values.ndim == 1 else values


def _spread(mixture: GaussianMixture) -> FloatArray:
    """Standard deviations (k, d)."""
    return np.broadcast_to(_columns(mixture.sigmas), (len(mixture), mixture.dimension))


def _proposal(p: GaussianMixture, pair: DiagonalTilting | FullTilting, tilts: TiltedNormals) -> Proposal:
    """The proposal of these tilted normals; where the bound is not below 1 the component of p itself serves."""
    same = ~(tilts.log_bounds < 0.0)
    bounds = np.where(same, 0.0, tilts.log_bounds)
    logs = np.log(p.weights) + bounds
    top = float(logs.max())
    weights = np.exp(np.maximum(logs - top, _LOG_LEAST_WEIGHT))
    total = math.fsum(weights)
    weights /= total
    size = float(np.abs(np.log(p.weights)).max() + np.minimum(top - logs, -_LOG_LEAST_WEIGHT).max())
    slack = 8 * UNIT_ROUNDOFF * (len(logs) + 4 + abs(top) + size)
    mixture = tilted_mixture(p, weights, tilts, same)
    exponents = np.where(same, 0.0, tilts.exponents.sum(axis=1))
    dominant = dominant_terms(logs, tilts, pair.exponents) if np.isfinite(logs).all() else None
    return Proposal(mixture, top + math.log(total) + slack, True, bounds, exponents, dominant=dominant)


def tilted_mixture(p: GaussianMixture, weights: FloatArray, tilts: TiltedNormals, same: BoolArray) -> GaussianMixture:
    """The tilted normals, and the components of p themselves where these are as good."""
    means = np.where(same[:, None], _columns(p.means), tilts.means)
    if tilts.spreads.ndim == 2:
        return GaussianMixture(weights, means, np.where(same[:, None], _spread(p), tilts.spreads))
    covariances_p = p.covariances if p.covariances is not None else _factors(p) ** 2
    spreads = np.where(same[:, None, None], covariances_p, tilts.spreads)
    spreads.setflags(write=False)
    return GaussianMixture(weights, means, covariances=spreads)


def best_mass_allocation(log_bounds: FloatArray, tau: FloatArray, log_shares: FloatArray) -> FloatArray:
    """New log s_ij (k, J) from log G_i (k,), tau_ij (k, J) and the log shares in force; columns sum to at most 1."""
    total = tau.sum(axis=1)
    with np.errstate(all="ignore"):
        logs = np.where(tau > 0, np.log(tau), -np.inf)
        constant = log_bounds - np.sum(np.where(tau > 0, tau * (logs - log_shares), 0.0), axis=1)
    multiplier = log_sum_exp(log_bounds[:, None] + logs, axis=0)
    used = np.isfinite(multiplier)
    multiplier = np.where(used, multiplier, 0.0)
    damp = 1.0 / (1.0 + total)
    for _ in range(_NEWTON_STEPS):
        terms = (damp * (constant + tau @ multiplier))[:, None] + logs
        gap = np.where(used, log_sum_exp(terms, axis=0), 0.0) - multiplier
        if np.abs(gap).max() < _MULTIPLIER_CHANGE:
            break
        with np.errstate(all="ignore"):
            portion = np.where(used, np.exp(terms - np.where(used, gap + multiplier, 0.0)), 0.0)
        multiplier = multiplier + _newton(portion, tau * damp[:, None], gap)
    with np.errstate(all="ignore"):
        allocation = np.where(used, (damp * (constant + tau @ multiplier))[:, None] + logs - multiplier, log_shares)
        allocation = np.maximum(allocation, _LEAST_LOG_SHARE)
        return allocation - np.where(used, np.maximum(log_sum_exp(allocation, axis=0), 0.0) + 1e-12, 0.0)


def _newton(portion: FloatArray, slopes: FloatArray, gap: FloatArray) -> FloatArray:
    """(I - portion' slopes)^-1 gap; components of p that hold next to nothing are left out of the matrix."""
    rows = np.flatnonzero(portion.max(axis=1) > _DOMINANT_PORTION)
    portion, slopes = portion[rows], slopes[rows]
    if len(rows) >= len(gap):
        return np.asarray(np.linalg.solve(np.eye(len(gap)) - portion.T @ slopes, gap))
    inner = np.eye(len(rows)) - slopes @ portion.T
    return np.asarray(gap + portion.T @ np.linalg.solve(inner, slopes @ gap))
