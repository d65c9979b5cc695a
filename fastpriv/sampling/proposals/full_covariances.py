"""Active components and exponents where covariances are full and differ: all components of p, each in its own units.

Notation as in ``exponents``: with the lower factor S of a component of p and L_j of one of q, Y_j = L_j^-1 S, I - D_j =
Y_j' Y_j and E_j = Y_j' L_j^-1 (n_j - m). The number of active components falls with the dimension, since a Newton step
costs a few d^3 for each; the others form a remainder as in ``active_components``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.numerics import FloatArray, IndexArray
from ..options import never_expired
from .active_components import TiltedNormals, Tilting
from .domination_certificates import Factors, certified_bounds
from .exponents import FullExponentProblem, interior_start, objective, solve

_MAX_ACTIVE = 8  # active components, the remainder included
_WORK = 5e7  # active components times d^3
# bound: none - exponents that are left out: proposals only
_NEGLIGIBLE = 1e-12  # relative to the largest, or to 1: exponents that are left out


class FullTilting(Tilting):
    """Problems of all components of p = (means, factors) against q = (levels, means, factors), one by one.

    Factors are lower Cholesky factors, (k, d, d) or (1, d, d) where they are shared. Spreads are covariances. Where log
    shares are known by component of q, the bounds of ``tilted`` are right but for rounding until ``certified_normals``
    has them; else they are certified there.
    """

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, expired: Callable[[], bool] = never_expired,
    ) -> None:
        partners, size = len(q[0]), p[0].shape[1]
        most = int(np.clip(_WORK / size**3, 2, _MAX_ACTIVE))
        active = partners if partners <= most + 1 else most
        super().__init__(p, q, theta, expired, active, max(active * size * size, partners * size))
        identity = np.eye(size)
        self.inverses: FloatArray = np.asarray(np.linalg.solve(q[2], np.broadcast_to(identity, q[2].shape)), np.float64)
        self.precisions = self.inverses.transpose(0, 2, 1) @ self.inverses
        self.logs = np.sum(np.log(np.diagonal(q[2], axis1=1, axis2=2)), axis=1)
        self.factors_p, self.factors_q = Factors.of(self.scales), Factors.of(q[2])

    def certified_normals(self, tilts: TiltedNormals, log_shares: FloatArray) -> TiltedNormals:
        """The tilted normals with bounds certified for the ``log_shares`` they were found with, unless ``tilted`` has
        done so."""
        if tilts.exponents.shape[1] == len(self.q[0]):
            rows = np.arange(len(self.means))
            self._certify(rows, tilts.exponents, self.q[0] + log_shares, tilts, rows)
        return tilts

    def _factors(self, rows: IndexArray) -> FloatArray:
        """Lower factors of components of p."""
        return self.scales[rows if len(self.scales) > 1 else np.zeros_like(rows)]

    def spreads(self, rows: IndexArray) -> FloatArray:
        """Covariances of components of p."""
        factors = self._factors(rows)
        return np.asarray(factors @ factors.transpose(0, 2, 1))

    def solve_tile(
        self, rows: IndexArray, log_shares: FloatArray, start: FloatArray | None, goal: FloatArray | None,
        tilts: TiltedNormals, positions: IndexArray,
    ) -> None:
        """As ``Tilting.solve_tile``."""
        levels, size = self.q[0], self.means.shape[1]
        factors = self._factors(rows)
        total = np.broadcast_to(levels + log_shares, (len(rows), len(levels)))
        whitened = self._whitened(self.means[rows])
        logs = np.sum(np.log(np.diagonal(factors, axis1=1, axis2=2)), axis=1)
        offset = 0.5 * np.sum(whitened * whitened, axis=2) + self.logs - logs[:, None]
        every = np.broadcast_to(np.arange(len(levels)), total.shape)
        chosen, remaining = self._selection(rows, factors, total) if self.has_remainder else (every, None)
        active = chosen.shape[1]
        some = chosen if len(self.inverses) > 1 else chosen[:, :1] * 0
        whitened_factors = self.inverses[some] @ factors[:, None]
        equal = (self.q[2][some] == factors[:, None]).all(axis=(2, 3))
        whitened_factors[equal] = np.eye(size)  # however large tau, D stays 0
        near = np.take_along_axis(whitened, chosen[:, :, None], axis=1)
        precision = np.broadcast_to(
            whitened_factors.transpose(0, 1, 3, 2) @ whitened_factors, (*chosen.shape, size, size)
        )
        linear_term = (near[:, :, None, :] @ whitened_factors)[:, :, 0]
        parts = [precision, linear_term, *(np.take_along_axis(x, chosen, axis=1) for x in (offset, total))]
        if remaining is not None:
            with np.errstate(divide="ignore"):
                level = np.sum(remaining * (total - np.where(remaining > 0, np.log(remaining), 0.0)), axis=1)
            remainder = [*self._remainder(factors, remaining, whitened), np.sum(remaining * offset, axis=1), level]
            parts = [np.concatenate([x, y[:, None]], axis=1) for x, y in zip(parts, remainder, strict=True)]
        problem = FullExponentProblem(np.eye(size) - parts[0], *parts[1:])
        if self.theta is not None and start is None:
            assert self.feasible_start is not None
            index, shares = self.feasible_start[0][rows], self.feasible_start[1][rows]
            feasible = np.zeros((len(rows), self.active))
            feasible[:, :active] = np.sum((chosen[:, :, None] == index[:, None, :]) * shares[:, None, :], axis=2)
            start = interior_start(problem, self.theta, feasible)
        tau = solve(problem, self.theta, start, goal, self.expired)
        tilts.tau[positions] = tau
        exponents = np.zeros(total.shape)
        np.put_along_axis(exponents, chosen, tau[:, :active], axis=1)
        if remaining is not None:
            exponents += tau[:, -1:] * remaining
        dense = tilts.exponents.shape[1] == len(levels)
        tilts.exponents[positions] = exponents if dense else exponents.sum(axis=1, keepdims=True)
        root, good = problem.inverse_factors(tau)
        factor = factors @ root.transpose(0, 2, 1)
        step = root @ (tau[:, None, :] @ problem.linear_term).transpose(0, 2, 1)
        tilts.means[positions] = self.means[rows] - (factor @ step)[:, :, 0]
        tilts.spreads[positions] = factor @ factor.transpose(0, 2, 1)
        tilts.log_bounds[positions] = np.where(good, objective(problem, tau, self.theta), np.inf)
        if not dense:
            self._certify(rows, exponents, total, tilts, positions)

    def _whitened(self, means: FloatArray) -> FloatArray:
        """L_j^-1 (n_j - m) for every m: (I, J, d)."""
        mean_gaps = self.q[1] - means[:, None]
        if len(self.inverses) == 1:
            return np.asarray(mean_gaps @ self.inverses[0].T)
        return np.asarray((self.inverses @ mean_gaps[..., None])[..., 0])

    def _selection(self, rows: IndexArray, factors: FloatArray, total: FloatArray) -> tuple[IndexArray, FloatArray]:
        """The heaviest components of q near the tilted normals, and the shares of the others."""
        normals = self.selection_normals
        spread = factors @ factors.transpose(0, 2, 1) if normals is None else normals[1][rows]
        whitened_gaps = self._whitened(self.means[rows] if normals is None else normals[0][rows])
        flat = spread.reshape(len(rows), -1) @ self.precisions.reshape(len(self.precisions), -1).T
        weights = total - self.logs - 0.5 * (flat + np.sum(whitened_gaps * whitened_gaps, axis=2))
        open_rows = np.flatnonzero(self.chosen[rows, 0] < 0)
        if open_rows.size:
            if self.feasible_start is not None:
                forced = weights[open_rows]
                np.put_along_axis(forced, self.feasible_start[0][rows[open_rows]], np.inf, axis=1)
                weights[open_rows] = forced
            order = np.argsort(-weights[open_rows], axis=1, kind="stable")
            self.chosen[rows[open_rows]] = order[:, : self.active - 1]
        chosen = self.chosen[rows]
        np.put_along_axis(weights, chosen, -np.inf, axis=1)
        weights[weights == np.inf] = -np.inf
        top = weights.max(axis=1, keepdims=True)
        remainder = np.exp(np.maximum(weights - top, -700.0)) * np.isfinite(weights)
        return chosen, remainder / remainder.sum(axis=1, keepdims=True)

    def _remainder(self, factors: FloatArray, remaining_shares: FloatArray, whitened: FloatArray) -> list[FloatArray]:
        """Precision and linear term of the components of q that enter together, in shares ``remaining_shares``."""
        number, size = len(factors), factors.shape[1]
        if len(self.inverses) == 1:
            precision = np.broadcast_to(self.precisions[0], factors.shape)
            force = (remaining_shares[:, None, :] @ whitened)[:, 0] @ self.inverses[0]
        else:
            precision = (remaining_shares @ self.precisions.reshape(len(self.precisions), -1)).reshape(
                number, size, size
            )
            forces = (self.inverses.transpose(0, 2, 1) @ whitened[..., None])[..., 0]
            force = (remaining_shares[:, None, :] @ forces)[:, 0]
        across = factors.transpose(0, 2, 1)
        return [np.asarray(across @ precision @ factors), np.asarray((across @ force[:, :, None])[:, :, 0])]

    def _certify(
        self, rows: IndexArray, exponents: FloatArray, levels: FloatArray, tilts: TiltedNormals, positions: IndexArray
    ) -> None:
        """Certified bounds of the tilted normals of ``rows``, which stand at ``positions``, or the components
        themselves where rounding dominates."""
        least = _NEGLIGIBLE * np.minimum(exponents.max(axis=1, keepdims=True), 1.0)
        tau = np.where(exponents > least, exponents, 0.0)
        if self.theta is not None:
            tau *= self.theta / tau.sum(axis=1, keepdims=True)
        usable = np.isfinite(tilts.log_bounds[positions]) & np.isfinite(tau).all(axis=1)
        usable &= (tau > 0.0).any(axis=1)
        some = np.flatnonzero(usable)
        bounds, spreads = np.full(len(rows), np.nan), tilts.spreads[positions]
        bounds[some], spreads[some] = certified_bounds(
            (self.factors_p.subset(rows[some]), self.means[rows[some]]), (self.factors_q, self.q[1]), levels[some],
            tau[some], self.theta, tilts.means[positions[some]], spreads[some],
        )
        proved = np.isfinite(bounds)
        tilts.log_bounds[positions] = np.where(proved, bounds, 0.0 if self.theta is None else np.inf)
        tilts.spreads[positions] = np.where(proved[:, None, None], spreads, self.spreads(rows))
        tilts.means[positions] = np.where(proved[:, None], tilts.means[positions], self.means[rows])
