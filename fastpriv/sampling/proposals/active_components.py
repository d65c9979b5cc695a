"""Which components of q enter the problem of a component of p, where all precisions are diagonal.

Notation: N_i = N(m_i, diag s_i^2) the components of p, e^c_j N(n_j, diag t_j^2) those of e^epsilon q. Where q has few
components all are active. Of many, the heaviest near the tilted normal enter each by itself and the remainder as one:
for shares lambda, sum e^c_j N_j >= prod (e^c_j N_j / lambda_j)^lambda_j, again a normal curve times a number. The
shares are those of the components at the tilted normal.
"""

# bounds: proved - docs/proofs/domination.md, 8.6: rounding of quadratic forms

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray
from ...kernels import _matrix_product
from ..options import never_expired
from .exponents import DiagonalExponentProblem, diagonal_solution, interior_start, solve

_MAX_ACTIVE = 64  # components of q that enter each by itself, the remainder included
_TILE = 2**21  # doubles of an array that is held: 16 MB
_MAX_ENTRIES = 3e8  # components of p times active components times coordinates
_WORK = 5e7  # components of p times the cube of the active components
_NEGLECTED = 0.01  # share of a bound whose components are not selected for again
_PASS_PAIRS = 4_000_000  # pairs of components of a second pass


class TiltedNormals(NamedTuple):
    """One tilted normal for each component of p: N_i bounded by e^log_bound times it where it counts."""

    log_bounds: FloatArray  # (k,)
    means: FloatArray  # (k, d)
    spreads: FloatArray  # sigmas (k, d) or covariances (k, d, d)
    exponents: FloatArray  # tau by component of q (k, J), or their sums (k, 1)
    tau: FloatArray  # tau by active component (k, number of them)

    def assign(self, rows: IndexArray, other: TiltedNormals) -> None:
        """Replace some components."""
        for mine, new in zip(self, other, strict=True):
            mine[rows] = new

    def replaced(self, rows: IndexArray, other: TiltedNormals) -> TiltedNormals:
        """A copy with some components replaced."""
        copy = TiltedNormals(*(array.copy() for array in self))
        copy.assign(rows, other)
        return copy

    def subset(self, rows: IndexArray | BoolArray) -> TiltedNormals:
        """Some of the components."""
        return TiltedNormals(*(array[rows] for array in self))


class Tilting:
    """Problems of all components of p against q, solved in tiles: what diagonal and full covariances have in common.

    ``q`` has levels, means and scales; ``theta`` is held fixed where it is given, and ``feasible_start`` then has
    components of q and their shares.
    """

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray], theta: float | None,
        expired: Callable[[], bool], active: int, width: int,
    ) -> None:
        self.means, self.scales = p
        self.q = q
        self.theta, self.expired = theta, expired
        self.active = active
        self.tile = max(1, _TILE // width)  # problems whose matrices are held at a time, each of ``width`` doubles
        self.chosen = np.full((len(self.means), active - 1), -1, dtype=np.intp)
        self.selection_normals: tuple[FloatArray, FloatArray] | None = None  # where active components are selected
        self.feasible_start: tuple[IndexArray, FloatArray] | None = None

    @property
    def has_remainder(self) -> bool:
        """Whether some components of q enter only together."""
        return self.active < len(self.q[0])

    def reselect(self, tilts: TiltedNormals, rows: IndexArray) -> None:
        """Select the active components of ``rows`` at these tilted normals; exponents found before lose their
        meaning."""
        self.selection_normals = (tilts.means, tilts.spreads)
        self.chosen[rows] = -1

    def tilted(
        self, log_shares: FloatArray, start: FloatArray | None = None, rows: IndexArray | None = None,
        sufficient: FloatArray | None = None,
    ) -> TiltedNormals:
        """Solve for components ``rows`` of p with levels raised by ``log_shares``, log s_ij - log w_i, (k, J) or
        (k, 1).

        ``start`` are exponents found before, ``sufficient`` log bounds that are good enough; both have a row for each
        of ``rows``. What is not solved before the time has ``expired`` has the bound 0 of N_i itself, and none for a
        fixed theta.
        """
        rows = np.arange(len(self.means)) if rows is None else rows
        number = len(rows)
        tilts = TiltedNormals(
            np.full(number, 0.0 if self.theta is None else np.inf), self.means[rows], self.spreads(rows),
            np.zeros((number, log_shares.shape[1])), np.zeros((number, self.active)),
        )
        for first in range(0, number, self.tile):
            if self.expired():
                break
            positions = np.arange(first, min(first + self.tile, number))
            tau, goal = (None if x is None else x[positions] for x in (start, sufficient))
            self.solve_tile(rows[positions], log_shares[rows[positions]], tau, goal, tilts, positions)
        return tilts

    def spreads(self, rows: IndexArray) -> FloatArray:
        """Sigmas or covariances of components of p."""
        raise NotImplementedError

    def solve_tile(
        self, rows: IndexArray, log_shares: FloatArray, start: FloatArray | None, goal: FloatArray | None,
        tilts: TiltedNormals, positions: IndexArray,
    ) -> None:
        """Solve for components ``rows``, which stand at ``positions`` of ``tilts``."""
        raise NotImplementedError

    def exponents(self, tilts: TiltedNormals, rows: IndexArray) -> FloatArray:
        """Exponents of ``rows`` by component of q; without those of the remainder where only sums are kept."""
        if tilts.exponents.shape[1] == len(self.q[0]):
            return tilts.exponents[rows]
        exponents = np.zeros((len(rows), len(self.q[0])))
        active = np.where(self.chosen[rows] < 0, 0.0, tilts.tau[rows, : self.chosen.shape[1]])
        np.put_along_axis(exponents, np.maximum(self.chosen[rows], 0), active, axis=1)
        return exponents


class DiagonalTilting(Tilting):
    """Problems of all components of p = (means, sigmas) against q = (levels, means, sigmas)."""

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, expired: Callable[[], bool] = never_expired,
    ) -> None:
        number, size = p[0].shape
        most = int(min(_MAX_ACTIVE, max(6.0, min(_MAX_ENTRIES / (number * size), (_WORK / number) ** (1 / 3)))))
        active = len(q[0]) if len(q[0]) <= most + 1 else most
        super().__init__(p, q, theta, expired, active, active * size + len(q[0]))
        self.natural = _NaturalParameters(*q) if self.has_remainder else None
        self.selection_normals = p

    def spreads(self, rows: IndexArray) -> FloatArray:
        """Sigmas of components of p."""
        return self.scales[rows]

    def solve_tile(
        self, rows: IndexArray, log_shares: FloatArray, start: FloatArray | None, goal: FloatArray | None,
        tilts: TiltedNormals, positions: IndexArray,
    ) -> None:
        """As ``Tilting.solve_tile``."""
        problem, share = self._problem(rows, log_shares)
        tau = start
        if self.theta is not None and tau is None:
            tau = interior_start(problem, self.theta, self._feasible_start(rows))
        tau = solve(problem, self.theta, tau, goal, self.expired)
        standardised_means = np.abs(self.means[rows]) / self.scales[rows]
        tilts.log_bounds[positions], mean, sigma = diagonal_solution(problem, tau, self.theta, standardised_means)
        tilts.tau[positions] = tau
        tilts.means[positions] = self.means[rows] + self.scales[rows] * mean
        tilts.spreads[positions] = self.scales[rows] * sigma
        if log_shares.shape[1] == 1:
            tilts.exponents[positions, 0] = tau.sum(axis=1)
        elif share is None:
            tilts.exponents[positions] = tau
        else:
            share *= tau[:, -1:]
            np.put_along_axis(share, self.chosen[rows], tau[:, :-1], axis=1)
            tilts.exponents[positions] = share

    def certified_normals(self, tilts: TiltedNormals, log_shares: FloatArray) -> TiltedNormals:
        """The tilted normals with bounds that hold: here those of ``tilted`` do, for any ``log_shares``."""
        return tilts

    def _feasible_start(self, rows: IndexArray) -> FloatArray:
        """The feasible shares of ``rows`` by active component."""
        assert self.feasible_start is not None
        index, parts = self.feasible_start[0][rows], self.feasible_start[1][rows]
        shares = np.zeros((len(rows), self.active))
        if self.natural is None:
            np.put_along_axis(shares, index, parts, axis=1)
        else:
            same = self.chosen[rows][:, :, None] == index[:, None, :]
            shares[:, :-1] = np.sum(same * parts[:, None, :], axis=2)
        return shares

    def _problem(self, rows: IndexArray, log_shares: FloatArray) -> tuple[DiagonalExponentProblem, FloatArray | None]:
        """The problem of ``rows``, and the shares of the components of q in the remainder, where there is one."""
        levels, centres, widths = self.q
        means, sigmas = self.means[rows], self.scales[rows]
        if self.natural is None:
            every = np.broadcast_to(np.arange(self.active), (len(rows), self.active))
            return _gathered(means, sigmas, levels + log_shares, centres, widths, every), None
        assert self.selection_normals is not None
        at_means, at_sigmas = self.selection_normals
        weights = self.natural.weights(at_means[rows], at_sigmas[rows]) + log_shares
        if self.chosen[rows[0], 0] < 0:
            if self.feasible_start is not None:
                np.put_along_axis(weights, self.feasible_start[0][rows], 1e299, axis=1)
            remainder = len(levels) - self.active + 1
            self.chosen[rows] = np.argpartition(weights, remainder, axis=1)[:, remainder:]
        chosen = self.chosen[rows]
        weights = np.where(weights > 1e298, -1e299, weights)
        total = np.broadcast_to(levels + log_shares, weights.shape)
        raw = _gathered(means, sigmas, np.take_along_axis(total, chosen, axis=1), centres, widths, chosen)
        np.put_along_axis(weights, chosen, -np.inf, axis=1)
        return self.natural.with_remainder(means, sigmas, total, weights, raw)


def leading_components(logs: FloatArray, partners: int) -> IndexArray:
    """The components of p that make up nearly all of a bound with these log parts, or as many as one pass takes."""
    order = np.argsort(-logs, kind="stable")
    with np.errstate(all="ignore"):
        parts = np.cumsum(np.exp(logs[order] - logs[order[0]]))
        count = 1 + int(np.searchsorted(parts, (1.0 - _NEGLECTED) * parts[-1])) if np.isfinite(parts[-1]) else len(logs)
    return np.sort(order[: min(count, max(_MAX_ACTIVE, _PASS_PAIRS // partners))])


def _gathered(
    means: FloatArray, sigmas: FloatArray, levels: FloatArray, centres: FloatArray, widths: FloatArray,
    chosen: IndexArray,
) -> DiagonalExponentProblem:
    """The problem of the ``chosen`` components, whose levels are ``levels``; those out of the range of doubles are left
    out."""
    with np.errstate(all="ignore"):
        width, component_sigmas = widths[chosen], sigmas[:, None, :]
        ratio = component_sigmas / width
        standardised_distance = (centres[chosen] - means[:, None, :]) / width
        curvature = (width - component_sigmas) / width * (1.0 + ratio)
        linear_term = ratio * standardised_distance
        logs = np.where(np.abs(curvature) < 0.5, 0.5 * np.log1p(-np.clip(curvature, -1, 0.9)), np.log(ratio))
        squares = 0.5 * np.sum(standardised_distance * standardised_distance, axis=2)
        offset = squares - np.sum(logs, axis=2)
        sure = np.isfinite(offset) & np.isfinite(curvature).all(axis=2) & np.isfinite(linear_term).all(axis=2)
        sure &= (np.abs(curvature).max(axis=2) < 1e100) & (np.abs(linear_term).max(axis=2) < 1e100)
        sure &= np.isfinite(levels)
        rounding_error = (standardised_distance.shape[2] + 8) * UNIT_ROUNDOFF * (squares + np.sum(np.abs(logs), axis=2))
    rounding_error += 8 * UNIT_ROUNDOFF * np.sum(np.abs(curvature), axis=2, where=sure[:, :, None], initial=0.0)
    return DiagonalExponentProblem(
        np.where(sure[:, :, None], curvature, 0.0), np.where(sure[:, :, None], linear_term, 0.0),
        np.where(sure, offset, 0.0), np.where(sure, levels, -np.inf), np.where(sure, rounding_error, 0.0),
        np.zeros_like(means),
    )


class _NaturalParameters:
    """All components of q in natural parameters about a common centre: sums over all of them are matrix products."""

    def __init__(self, levels: FloatArray, centres: FloatArray, widths: FloatArray) -> None:
        with np.errstate(all="ignore"):
            self.centre = np.median(centres, axis=0)
            shifted = centres - self.centre
            self.precision = 1.0 / (widths * widths)
            self.linear_term = shifted * self.precision
            self.square = np.sum(shifted * self.linear_term, axis=1)
            self.logs, self.log_sizes = np.sum(np.log(widths), axis=1), np.sum(np.abs(np.log(widths)), axis=1)
            self.levels = levels
        self.usable = np.isfinite(self.square) & np.isfinite(self.precision).all(axis=1)

    def weights(self, mean: FloatArray, sigma: FloatArray) -> FloatArray:
        """Expected log of each component at the normals (mean, sigma): (I, J)."""
        shifted = mean - self.centre
        with np.errstate(all="ignore"):
            square = _matrix_product.product(sigma * sigma + shifted * shifted, self.precision)
            square -= 2.0 * _matrix_product.product(shifted, self.linear_term)
            square += self.square
            log_weights = self.levels - self.logs - 0.5 * square
        return np.where(np.isfinite(log_weights), log_weights, -1e300)

    def with_remainder(
        self, means: FloatArray, sigmas: FloatArray, levels: FloatArray, log_weights: FloatArray,
        raw: DiagonalExponentProblem,
    ) -> tuple[DiagonalExponentProblem, FloatArray]:
        """The problem ``raw`` with one more active component: all whose ``log_weights`` are finite, in shares
        proportional to the weights."""
        log_weights[:, ~self.usable] = -np.inf
        top = log_weights.max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            share = np.exp(np.maximum(log_weights - top, -745.0)) * np.isfinite(log_weights)
            share /= share.sum(axis=1, keepdims=True)
            used = share > 0
            logs = np.where(used, np.log(share), 0.0)
            shifted = means - self.centre
            precision, natural_mean = (
                _matrix_product.product(share, parameters.T) for parameters in (self.precision, self.linear_term)
            )
            square, inner = _matrix_product.matrix_vector(share, self.square), sigmas * precision
            linear_term = sigmas * natural_mean - inner * shifted
            rounding = (2 * len(self.levels) + means.shape[1] + 40) * UNIT_ROUNDOFF
            curvature = 1.0 - sigmas * inner
            level = np.sum(share * np.where(used, levels, 0.0), axis=1) - np.sum(share * logs, axis=1)
            parts = square + np.sum(2 * np.abs(shifted * natural_mean) + shifted * shifted * precision, axis=1)
            offset = 0.5 * (square + np.sum(shifted * (shifted * precision - 2 * natural_mean), axis=1))
            widths = _matrix_product.matrix_vector(share, self.logs) - np.sum(np.log(sigmas), axis=1)
            offset += widths
            bulk = _matrix_product.matrix_vector(share, self.log_sizes) + np.sum(np.abs(np.log(sigmas)), axis=1)
            bulk += np.sum(share * (np.abs(np.where(used, levels, 0.0)) + np.abs(logs)), axis=1)
            rounding_error = rounding * (parts + bulk)
            across = np.sqrt(square[:, None] * precision)  # at least the mean size of the linear terms
            error = 2 * rounding * (sigmas * across + inner * np.abs(shifted) + sigmas * inner)
        good = np.isfinite(offset + rounding_error) & np.isfinite(level)
        good &= np.isfinite(curvature + linear_term).all(axis=1) & (rounding_error < 1e-5)
        return raw.extended(
            np.where(good[:, None], curvature, 0.0), np.where(good[:, None], linear_term, 0.0),
            np.where(good, offset, 0.0), np.where(good, level, -np.inf), np.where(good, rounding_error, 0.0),
            np.where(good[:, None], error, 0.0),
        ), share
