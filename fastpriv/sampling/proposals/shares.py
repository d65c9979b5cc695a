"""How q is shared out among the components of p.

Notation: (sum_i w_i N_i - sum_j q_j)^+ <= sum_i (w_i N_i - sum_j s_ij q_j)^+ for shares s_ij >= 0 with sum_i s_ij <= 1.
At fixed exponents tau the bound of component i is G_i = C_i prod_j s_ij^(-tau_ij), so the best shares solve a geometric
program: G_i tau_ij / s_ij = e^m_j, one multiplier for each component of q. With g_i = log G_i that is m = f(m),

    f_j(m) = log sum_i tau_ij e^g_i(m),  (1 + theta_i) g_i(m) = log C_i - sum_j tau_ij (log tau_ij - m_j),

f convex, increasing and a contraction in the largest entry, so that Newton's method converges from everywhere (it is
policy iteration). Exponents and shares are improved in turn; the bound never rises.
"""

# bounds: tested by properties/test_tilting - rounding of a log sum

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["best_shares"]

FloatArray = NDArray[np.float64]
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
