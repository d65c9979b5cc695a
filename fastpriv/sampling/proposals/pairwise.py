"""What pairs of components tell: the integral of p^a q^(1-a) for an order a below 1, and bounds of KL.

Powers below 1 are subadditive and every component is below its mixture, so that with N_i of p and M_j of q

    max_ij w_i^a v_j^(1-a) N_i^a M_j^(1-a)  <=  p^a q^(1-a)  <=  sum_ij w_i^a v_j^(1-a) N_i^a M_j^(1-a).

Each term is B_ij times a normal T_ij: with r = (1-a) s^2 + a t^2 in every coordinate,

    log B = sum ((1-a) log s + a log t - log(r)/2 - a (1-a) (mu - nu)^2 / (2 r)),

mean mu + (1-a) s^2 (nu - mu) / r and variance s^2 t^2 / r. The sum dominates, and over its normals the ratio lies
between 1 over the number of pairs and 1: no integral is too small for it. Pairs of less than 1e-308 of the sum are left
out, and could add that much.

KL(P||Q) is convex in P, p and q are nowhere below one of their components, and -log is convex; so that, with h the
entropy and z_ij the integral of N_i M_j,

    sum_i w_i (log w_i - h(N_i) - log sum_j v_j z_ij)  <=  KL(P||Q)  <=  sum_i w_i min_j (KL(N_i||M_j) - log v_j).

Sources: van Erven and Harremoes 2014 (the Renyi divergence of normals); Hershey and Olsen 2007 and Durrieu et al. 2012
(KL from pairs).
"""

# bounds: tested by properties/test_renyi_below_one, properties/test_renyi_proposals - rounding of log pair
#    integrals and of ratios

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture

__all__ = ["Between", "between", "kl_range"]

FloatArray = NDArray[np.float64]

_ENTRIES = 4e6  # pairs times coordinates
_PAIRS = 1024  # components of a law that is worth its cost
# bound: proved - a unit in the last place of a double, IEEE 754: twice the rounding
_UNIT = 2.0**-52
_UNCLEAR = 1e-3  # rounding of the exponents beyond which ratios have no range


@dataclass(frozen=True)
class Between:
    """Proved bounds of the logarithm of the integral; the dominating law, where it serves, its log scale, and the log
    of what rounding may do to a ratio."""

    low: float
    high: float
    mixture: GaussianMixture | None
    log_scale: float
    pairs: int
    fuzz: float


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is no bound
def between(p: GaussianMixture, q: GaussianMixture, order: float) -> Between | None:
    """Bounds and proposal; None for full covariances and too many pairs."""
    if p.form == "full" or q.form == "full" or len(p) * len(q) * p.dimension > _ENTRIES:
        return None
    (mu, s), (nu, t) = ((_rows(law, law.means), _rows(law, law.sigmas)) for law in (p, q))
    mu, s, nu, t = mu[:, None], s[:, None], nu[None], t[None]
    a, b = order, 1.0 - order
    r = b * s * s + a * t * t
    parts = (b * np.log(s), a * np.log(t), -0.5 * np.log(r), -0.5 * a * b * ((mu - nu) / r * (mu - nu)))
    weights = a * np.log(p.weights)[:, None] + b * np.log(q.weights)
    logs = weights + sum(part.sum(axis=2) for part in parts)
    size = np.abs(weights) + sum(np.abs(part).sum(axis=2) for part in parts)
    if not np.isfinite(logs).all() or r.min() < 1e-290:
        return None
    error = _UNIT * (16 + p.dimension + logs.size) * (1.0 + float(size.max()))
    top = float(logs.max())
    shares = np.exp(logs - top).ravel()
    log_scale = top + math.log(math.fsum(shares))
    if logs.size <= _PAIRS and error < _UNCLEAR:
        shape = (logs.size, p.dimension)
        means, deviations = (mu + b * s * s / r * (nu - mu)).reshape(shape), (s * t / np.sqrt(r)).reshape(shape)
        kept = shares > 0.0
        reach = float(np.max(np.abs(means) / deviations))
        if reach * _UNIT < _UNCLEAR / 64:  # of what a stored mean is rounded by
            law = GaussianMixture(shares[kept] / math.fsum(shares), means[kept], deviations[kept])
            error_of_ratio = 64.0 * (error + _UNIT * reach) + 1e-9
            return Between(top - error, log_scale + error, law, log_scale, logs.size, error_of_ratio)
    return Between(top - error, log_scale + error, None, log_scale, logs.size, math.inf)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite is no bound
def kl_range(p: GaussianMixture, q: GaussianMixture) -> tuple[float, float]:
    """Bounds of KL(P||Q); 0 and infinity for full covariances, too many pairs and what doubles do not hold."""
    if p.form == "full" or q.form == "full" or len(p) * len(q) * p.dimension > _ENTRIES:
        return 0.0, math.inf
    (mu, s), (nu, t) = ((_rows(law, law.means), _rows(law, law.sigmas)) for law in (p, q))
    mu, s, nu, t = mu[:, None], s[:, None], nu[None], t[None]
    gap, ratio, both = (mu - nu) / t, s / t, np.hypot(s, t)
    logs, unit = np.log(q.weights), _UNIT * (16 + 2 * p.dimension)
    spread, squares = np.log(ratio), 0.5 * (ratio * ratio + gap * gap)
    each, size = squares - spread - 0.5, squares + np.abs(spread) + 0.5
    best = np.min(each.sum(axis=2) - logs + unit * (size.sum(axis=2) - logs), axis=1)
    apart = ((mu - nu) / both) ** 2
    overlaps = logs - np.sum(np.log(both / s) + 0.5 * apart - 0.5, axis=2)  # log v_j z_ij e^h(N_i)
    overlaps += unit * (np.sum(np.abs(np.log(both / s)) + 0.5 * apart + 0.5, axis=2) - logs)
    worst = np.log(p.weights) - np.logaddexp.reduce(overlaps, axis=1)
    slack = _UNIT * (8 + 2 * len(p) + len(q))
    low, high = float(np.sum(p.weights * worst)), float(np.sum(p.weights * best))
    low -= slack * float(np.sum(p.weights * (np.abs(worst) + 1.0)))
    return (max(low, 0.0) if math.isfinite(low) else 0.0), (high * (1.0 + slack) if math.isfinite(high) else math.inf)


def _rows(law: GaussianMixture, values: FloatArray) -> FloatArray:
    columns = values if values.ndim == 2 else values[:, None]
    return np.broadcast_to(columns, (len(law), law.dimension))
