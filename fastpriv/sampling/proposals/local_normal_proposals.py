"""Local normals: as narrow as the hockey-stick's integrand, drawn from beside the tilted normals that dominate it.

Notation as in ``exponents``: t_j = log(N / N_j) - b_j for a component N of p, so that its part of the integrand is
N (1 - sum e^-t_j)^+, and T the tilted normal, e^Lambda T = N e^(sum tau_j (t_j + b_j)). With y_j = e^-t_j that part
is T prod y_j^tau_j (1 - sum y_j)^+ up to a factor: if T is much wider than the t_j are, the y_j follow the
Dirichlet distribution with parameters tau_1, tau_2, ..., 2. Then, psi the digamma function,

    E t_j = psi(theta + 2) - psi(tau_j),   Cov(t_i, t_j) = [i = j] psi'(tau_j) - psi'(theta + 2).

The proposal sought is normal: the product of T and a normal likelihood of the t_j with these moments. The t_j are
quadratic, t_j = c_j + g_j u + u' H_j u / 2 in coordinates u in which T is N(0, I), and c_j is known from E_T t_j =
log((1 + theta) / tau_j), which holds at the best exponents. They are replaced by the line of the same mean and mean
slope under the current proposal, until the proposal no longer moves. Where covariances are equal, H = 0 and one step is
enough; else several such proposals may exist, for instance on the two sides of a component of q, and the search has
several starts.

No number of this module has to be exact: a fixed share of the proposal dominates the integrand, and the remaining mass
may follow any distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from ...base.numerics import FloatArray, IndexArray
from ...distributions import GaussianMixture
from .active_components import TiltedNormals
from .domination_certificates import lower_factors

_MAX_COMPONENTS, _BOUND_SHARE = 24, 0.97  # components of p that are used: so many, or those of this share of the bound
_ACTIVE = 0.02  # exponents below this hardly narrow the integrand
# bound: none - how wide narrow normals are made: proposals only
_WIDER = 1.2, 2.2  # factors on the Dirichlet covariance, whose tails are heavier than normal ones: linear t_j, curved
_STARTS, _KALMAN_STEPS, _SHORTER_STEPS = 6, 10, 6  # of the search for one component, at most
_OFFSET = 0.02  # of the first start from the mean of T, which may be a saddle
_LINEAR = 1e-6  # curvature up to which the t_j count as linear
_DISTINCT = 1.0  # squared distance between normals, in their own units, above which both are kept
_LOG_DEFICIT = 5.0  # log of what a normal may weigh less than the best of its component


class DominantTerms(NamedTuple):
    """The tilted normals that make up most of a bound."""

    rows: IndexArray  # which components of p they belong to
    weights: FloatArray
    tilts: TiltedNormals


class LocalNormals(NamedTuple):
    """The narrow normals, and how many times less volume they take than the tilted ones."""

    mixture: GaussianMixture
    gain: float


class _LogRatioQuadratics(NamedTuple):
    """t_j along u for one component: c, g and H, H (J, d) where it is diagonal and (J, d, d) else."""

    level: FloatArray
    slope: FloatArray
    curvature: FloatArray

    def curved(self, u: FloatArray) -> FloatArray:
        """H_j u for many u: (M, J, d)."""
        if self.curvature.ndim == 2:
            return np.asarray(u[:, None, :] * self.curvature)
        return np.asarray(np.einsum("jde,me->mjd", self.curvature, u))

    def values(self, u: FloatArray) -> FloatArray:
        """t_j at many u: (M, J)."""
        return np.asarray(self.level + u @ self.slope.T + 0.5 * np.einsum("md,mjd->mj", u, self.curved(u)))

    def half_traces(self, slopes: FloatArray, inverse: FloatArray) -> FloatArray:
        """Half of tr H_j C, C = I - slopes' inverse slopes: (M, J)."""
        weighted_slopes = inverse @ slopes
        if self.curvature.ndim == 2:
            return np.asarray(0.5 * (1.0 - np.sum(slopes * weighted_slopes, axis=1)) @ self.curvature.T)
        lost = np.einsum("jde,mkd,mke->mj", self.curvature, slopes, weighted_slopes, optimize=True)
        return np.asarray(0.5 * (np.einsum("jdd->j", self.curvature) - lost))


def dominant_terms(
    logs: FloatArray, tilts: TiltedNormals, exponents_of: Callable[[TiltedNormals, IndexArray], FloatArray]
) -> DominantTerms:
    """The dominant ones of tilted normals with log weights ``logs``; ``exponents_of`` gives exponents by component."""
    rows = np.argsort(-logs, kind="stable")[:_MAX_COMPONENTS]
    weights = np.exp(logs - logs[rows[0]])
    total = np.cumsum(weights[rows])
    rows = rows[: 1 + int(np.searchsorted(total, _BOUND_SHARE * weights.sum()))]
    bounds, means = tilts.log_bounds[rows], tilts.means[rows]
    dominant_tilts = TiltedNormals(bounds, means, tilts.spreads[rows], exponents_of(tilts, rows), tilts.tau[rows])
    return DominantTerms(rows, weights[rows] / weights[rows].sum(), dominant_tilts)


@np.errstate(all="ignore")  # what overflows is not finite, and not taken
def local_normals(p: GaussianMixture, q: GaussianMixture, dominant: DominantTerms) -> LocalNormals | None:
    """One narrow normal or more for each tilted one; None where they cannot be computed or nothing is to be gained."""
    means, covariances, weights, gain = [], [], [], 0.0
    for index, weight in enumerate(dominant.weights):
        try:
            mean, covariance, share, narrower = _local_normals_beside(p, q, dominant, index)
        except np.linalg.LinAlgError:  # where the divergence all but vanishes exponents are near 1e15, and spreads 0
            return None
        means.append(mean)
        covariances.append(covariance)
        weights.append(weight * share)
        gain += float(weight * narrower)
    arrays = [np.concatenate(parts) for parts in (weights, means, covariances)]
    if not all(np.isfinite(array).all() for array in arrays) or not np.isfinite(gain):
        return None
    weights_all, means_all, all_covariances = arrays
    if not lower_factors(all_covariances)[1].all():  # rounding left no positive definite covariance
        return None
    if p.means.ndim == 1:
        mixture = GaussianMixture(weights_all, means_all[:, 0], np.sqrt(all_covariances[:, 0, 0]))
    else:
        mixture = GaussianMixture(weights_all, means_all, covariances=all_covariances)
    return LocalNormals(mixture, float(np.exp(gain)))


def _local_normals_beside(
    p: GaussianMixture, q: GaussianMixture, dominant: DominantTerms, index: int
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Means (m, d), covariances (m, d, d) and shares (m,) for one component, and the log of how much narrower."""
    mean, spread = dominant.tilts.means[index], dominant.tilts.spreads[index]
    root = np.diag(spread) if spread.ndim == 1 else np.linalg.cholesky(spread)
    active = np.flatnonzero(dominant.tilts.exponents[index] > _ACTIVE)
    if not active.size:
        return mean[None], (root @ root.T)[None], np.ones(1), 0.0
    tau = dominant.tilts.exponents[index, active]
    lines = _lines(p, q, int(dominant.rows[index]), active, tau, mean, root)
    theta = float(tau.sum())
    target_means = special.psi(theta + 2.0) - special.psi(tau)
    linear = np.abs(lines.curvature).max() < _LINEAR
    spread = np.diag(special.polygamma(1, tau)) - special.polygamma(1, theta + 2.0)
    spread *= _WIDER[0] if linear else _WIDER[1]
    u = _starts(1 if linear else _STARTS, len(mean))
    halves = np.zeros((len(u), len(tau))) + np.sum(_diagonals(lines.curvature), axis=1) / 2
    for _ in range(1 if linear else _KALMAN_STEPS):
        u = _kalman_step(lines, u, halves, target_means, spread)
        slopes = lines.slope + lines.curved(u)
        inverse = np.linalg.inv(slopes @ slopes.transpose(0, 2, 1) + spread)
        halves = 0.5 * (halves + lines.half_traces(slopes, inverse))
    covariances = np.eye(len(mean)) - slopes.transpose(0, 2, 1) @ inverse @ slopes
    sizes = np.linalg.slogdet(covariances)[1]
    logs = 0.5 * sizes - _misfit(lines.values(u) + halves, u, target_means, spread)
    selected = _distinct(u, logs, slopes, spread)
    share = np.exp(logs[selected] - logs[selected].max())
    covariances = root @ covariances[selected] @ root.T
    narrower = -0.5 * float(share @ sizes[selected]) / float(share.sum())
    return (
        mean + u[selected] @ root.T, 0.5 * (covariances + covariances.transpose(0, 2, 1)), share / share.sum(),
        narrower,
    )


def _lines(
    p: GaussianMixture, q: GaussianMixture, row: int, active: IndexArray, tau: FloatArray, mean: FloatArray,
    root: FloatArray,
) -> _LogRatioQuadratics:
    precision_p, precisions_q = _precisions(p, np.array([row])), _precisions(q, active)
    p_offset, q_offsets = (
        mean - mixture.means.reshape(len(mixture), -1)[rows] for mixture, rows in ((p, [row]), (q, active))
    )
    if p.covariances is None and q.covariances is None:
        slope = (precisions_q * q_offsets - precision_p * p_offset) @ root
        curvature = (precisions_q - precision_p) * np.diagonal(root) ** 2
    else:
        precision_p, precisions_q = (
            x if x.ndim == 3 else x[:, :, None] * np.eye(len(mean)) for x in (precision_p, precisions_q)
        )
        slope = (
            np.einsum("jde,je->jd", precisions_q, q_offsets) - np.einsum("jde,je->jd", precision_p, p_offset)
        ) @ root
        curvature = root.T @ (precisions_q - precision_p) @ root
    level = np.log1p(tau.sum()) - np.log(tau) - 0.5 * np.sum(_diagonals(curvature), axis=1)
    return _LogRatioQuadratics(level, slope, curvature)


def _diagonals(curvature: FloatArray) -> FloatArray:
    return curvature if curvature.ndim == 2 else np.asarray(np.einsum("jdd->jd", curvature))


def _precisions(mixture: GaussianMixture, rows: IndexArray) -> FloatArray:
    """(J, d, d), or their diagonals (J, d)."""
    if mixture.covariances is not None:
        return np.asarray(np.linalg.inv(mixture.covariances[rows if len(mixture.covariances) > 1 else rows * 0]))
    sigmas = np.broadcast_to(mixture.sigmas.reshape(len(mixture.sigmas), -1), (len(mixture), mixture.dimension))[rows]
    return np.asarray(1.0 / (sigmas * sigmas))


def _starts(number: int, size: int) -> FloatArray:
    """Start points: near the mean of T, which may be a saddle, and points that spread like T."""
    grid = (np.arange(number)[:, None] + _OFFSET) * np.sqrt(np.arange(2, size + 2))
    return np.asarray(np.sqrt(2.0) * np.sin(2.0 * np.pi * grid))


def _misfit(t: FloatArray, u: FloatArray, target_means: FloatArray, spread: FloatArray) -> FloatArray:
    residual = t - target_means
    return np.asarray(
        0.5 * np.sum(u * u, axis=1) + 0.5 * np.sum(residual * np.linalg.solve(spread, residual.T).T, axis=1)
    )


def _kalman_step(
    lines: _LogRatioQuadratics, u: FloatArray, halves: FloatArray, target_means: FloatArray, spread: FloatArray
) -> FloatArray:
    """One Kalman step from each u, halved until it fits no worse."""
    slopes = lines.slope + lines.curved(u)
    t = lines.values(u) + halves
    matrix = slopes @ slopes.transpose(0, 2, 1) + spread
    innovation = target_means - t + np.einsum("mjd,md->mj", slopes, u)
    step = np.einsum("mjd,mj->md", slopes, np.linalg.solve(matrix, innovation[:, :, None])[:, :, 0]) - u
    now, done = _misfit(t, u, target_means, spread), np.zeros(len(u), dtype=bool)
    for k in range(_SHORTER_STEPS):
        trial = u + 0.4**k * step
        good = ~done & (_misfit(lines.values(trial) + halves, trial, target_means, spread) <= now)
        u = np.where(good[:, None], trial, u)
        done |= good
        if done.all():
            break
    return u


def _distinct(u: FloatArray, logs: FloatArray, slopes: FloatArray, spread: FloatArray) -> list[int]:
    """Indices, best first, of the points that are not close to a better one."""
    selected: list[int] = []
    for k in np.argsort(-logs, kind="stable"):
        if logs[k] < logs.max() - _LOG_DEFICIT:
            break
        for other in selected:
            gap = u[k] - u[other]
            along = slopes[other] @ gap
            if gap @ gap + along @ np.linalg.solve(spread, along) < _DISTINCT:
                break
        else:
            selected.append(int(k))
    return selected
