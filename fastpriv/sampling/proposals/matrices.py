"""Slots and exponents where covariances are full and differ: every component of p in its own units.

Notation as in ``exponents``: with the lower factor S of a component of p and L_j of one of q, Y_j = L_j^-1 S, I - D_j =
Y_j' Y_j and E_j = Y_j' L_j^-1 (n_j - m). The number of slots falls with the dimension, since a Newton step costs a few
d^3 a slot; what has no slot of its own is pooled as in ``slots``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..clock import endless
from .certificates import Factors, certified
from .exponents import interior, solve
from .slots import DiagonalPair, Tilts, by_component

__all__ = ["MatrixPair", "TurnedPair"]

FloatArray = NDArray[np.float64]
_UNIT = 2.0**-53
_SLOTS = 8
_WORK = 5e7  # slots times d^3
_COMMON = 3  # times that one covariance for all is tried
_FEWEST = 1e-12  # relative to the largest, or to 1: exponents that are left out


@dataclass(frozen=True)
class _MatrixProblem:
    """One problem with matrices of any kind."""

    curvature: FloatArray  # D (J, d, d)
    pull: FloatArray  # E (J, d)
    offset: FloatArray  # a (1, J)
    level: FloatArray  # b (1, J)

    def part(self, rows: NDArray[np.intp]) -> _MatrixProblem:
        return self

    def score(self) -> FloatArray:
        return np.asarray(self.level - self.offset + 0.5 * np.einsum("jkk->j", self.curvature))

    def depth(self, tau: FloatArray) -> FloatArray:
        return np.linalg.eigvalsh(np.tensordot(tau[0], self.curvature, 1))[:1]

    def factor(self, tau: FloatArray) -> FloatArray | None:
        """The lower factor of the precision of T, None where that is not positive."""
        precision = np.tensordot(tau[0], self.curvature, 1)
        precision[np.diag_indices_from(precision)] += 1.0
        try:
            factor = np.linalg.cholesky(precision)
        except np.linalg.LinAlgError:
            return None
        return None if np.diagonal(factor).min() < 1e-4 else factor

    def root(self, tau: FloatArray) -> FloatArray:
        """The inverse of that factor, where there is one."""
        from scipy.linalg import solve_triangular

        factor = self.factor(tau)
        assert factor is not None
        return np.asarray(solve_triangular(factor, np.eye(len(factor)), lower=True))

    def shape(self, tau: FloatArray) -> FloatArray:
        from scipy.linalg import solve_triangular

        factor = self.factor(tau) if np.isfinite(tau).all() else None
        if factor is None:
            return np.array([np.inf])
        reach = solve_triangular(factor, tau[0] @ self.pull, lower=True)
        return np.array([0.5 * reach @ reach - np.sum(np.log(np.diagonal(factor)))])

    def slopes(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        root = self.root(tau)
        mean = -root.T @ (root @ (tau[0] @ self.pull))
        turned = root @ self.curvature @ root.T
        bent = self.curvature @ mean
        gradient = -0.5 * np.einsum("jkk->j", turned) - (self.pull + 0.5 * bent) @ mean
        flat = (turned * tau[0][:, None, None]).reshape(len(turned), -1)
        forces = ((self.pull + bent) * tau[0][:, None]) @ root.T
        return gradient[None], (0.5 * flat @ flat.T + forces @ forces.T)[None]


class MatrixPair:
    """Problems of all components of p = (means, factors) against q = (levels, means, factors), one by one.

    Factors are lower Cholesky factors, (k, d, d) or (1, d, d) where they are shared.
    """

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, late: Callable[[], bool] = endless,
    ) -> None:  # fmt: skip
        self.means, self.factors = p
        self.q = q
        self.theta, self.late = theta, late
        size = self.means.shape[1]
        identity = np.eye(size)
        self.inverses: FloatArray = np.asarray(np.linalg.solve(q[2], np.broadcast_to(identity, q[2].shape)), np.float64)
        self.precisions = self.inverses.transpose(0, 2, 1) @ self.inverses
        self.logs = np.sum(np.log(np.diagonal(q[2], axis1=1, axis2=2)), axis=1)
        self.own, self.others = Factors.of(self.factors), Factors.of(q[2])
        most = int(np.clip(_WORK / size**3, 2, _SLOTS))
        self.slots = len(q[0]) if len(q[0]) <= most + 1 else most
        self.chosen = np.full((len(self.means), self.slots - 1), -1, dtype=np.intp)
        self.at: Tilts | None = None
        self.base: tuple[NDArray[np.intp], FloatArray] | None = None

    @property
    def pooled(self) -> bool:
        """Whether some components of q enter only together."""
        return self.slots < len(self.q[0])

    def choose(self, tilts: Tilts, rows: NDArray[np.intp]) -> None:
        """Look for the slots of ``rows`` at these tilted normals; exponents found before lose their meaning."""
        self.at = tilts
        self.chosen[rows] = -1

    def run(
        self, shares: FloatArray, start: FloatArray | None = None, rows: NDArray[np.intp] | None = None,
        floor: FloatArray | None = None,
    ) -> Tilts:  # fmt: skip
        """As ``DiagonalPair.run``; the spreads are covariances."""
        rows = np.arange(len(self.means)) if rows is None else rows
        number, size = len(rows), self.means.shape[1]
        found = Tilts(
            np.full(number, 0.0 if self.theta is None else np.inf), self.means[rows], np.empty((number, size, size)),
            np.zeros((number, shares.shape[1])), np.zeros((number, self.slots)),
        )  # fmt: skip
        for place, row in enumerate(rows):
            if self.late():
                own = self.factors[rows[place:] if len(self.factors) > 1 else [0]]
                found.spreads[place:] = own @ own.transpose(0, 2, 1)
                break
            begin, enough = (None if x is None else x[place : place + 1] for x in (start, floor))
            self._one(int(row), shares[row], begin, enough, found, place)
        return found

    def exponents(self, tilts: Tilts, rows: NDArray[np.intp]) -> FloatArray:
        """As ``DiagonalPair.exponents``."""
        return by_component(tilts, rows, self.chosen, len(self.q[0]))

    def _one(
        self, row: int, shares: FloatArray, start: FloatArray | None, floor: FloatArray | None, found: Tilts,
        place: int,
    ) -> None:  # fmt: skip
        levels = self.q[0]
        own = self.factors[row if len(self.factors) > 1 else 0]
        total = levels + shares
        whitened = self._whitened(self.means[row])
        offset = 0.5 * np.sum(whitened * whitened, axis=1) + self.logs - np.sum(np.log(np.diagonal(own)))
        chosen, rest = np.arange(len(levels)), None
        if self.pooled:
            chosen, rest = self._choice(row, own, total)
        some = chosen if len(self.inverses) > 1 else [0]
        turned = self.inverses[some] @ own
        turned[(self.q[2][some] == own).all(axis=(1, 2))] = np.eye(len(own))  # however large tau, D stays 0
        precision = np.broadcast_to(turned.transpose(0, 2, 1) @ turned, (len(chosen), *own.shape))
        pull = np.einsum("jkl,jk->jl", np.broadcast_to(turned, precision.shape), whitened[chosen])
        parts = [precision, pull, offset[chosen], total[chosen]]
        if rest is not None:
            pooled = self._pooled(own, rest, whitened)
            with np.errstate(divide="ignore"):
                level = np.sum(rest * (total - np.where(rest > 0, np.log(rest), 0.0)))
            pooled += [np.asarray(rest @ offset), np.asarray(level)]
            parts = [np.concatenate([x, np.asarray(y)[None]]) for x, y in zip(parts, pooled, strict=True)]
        problem = _MatrixProblem(np.eye(len(own)) - parts[0], parts[1], parts[2][None], parts[3][None])
        if self.theta is not None and start is None:
            assert self.base is not None
            base = np.zeros((1, self.slots))
            for index, part in zip(self.base[0][row], self.base[1][row], strict=True):
                base[0, np.flatnonzero(chosen == index)[0]] += part
            start = interior(problem, self.theta, base)
        tau = solve(problem, self.theta, start, floor, self.late)
        found.tau[place] = tau[0]
        every = np.zeros(len(levels))
        every[chosen] = tau[0, : len(chosen)]
        if rest is not None:
            every += tau[0, -1] * rest
        found.exponents[place] = every.sum() if shares.size == 1 else every
        self._finish(problem, tau, every, total, row, found, place)

    def _whitened(self, mean: FloatArray) -> FloatArray:
        away = self.q[1] - mean
        if len(self.inverses) == 1:
            return np.asarray(away @ self.inverses[0].T)
        return np.asarray(np.einsum("jkl,jl->jk", self.inverses, away))

    def _choice(self, row: int, own: FloatArray, total: FloatArray) -> tuple[NDArray[np.intp], FloatArray]:
        """The heaviest components of q near the tilted normal, and the shares of the others."""
        spread = own @ own.T if self.at is None else self.at.spreads[row]
        away = self._whitened(self.means[row] if self.at is None else self.at.means[row])
        flat = self.precisions.reshape(len(self.precisions), -1) @ spread.reshape(-1)
        weights = total - self.logs - 0.5 * (flat + np.sum(away * away, axis=1))
        if self.chosen[row, 0] < 0:
            if self.base is not None:
                weights[self.base[0][row]] = np.inf
            self.chosen[row] = np.argsort(-weights, kind="stable")[: self.slots - 1]
        chosen = self.chosen[row]
        weights[chosen] = -np.inf
        rest = np.exp(np.maximum(weights - weights.max(), -700.0)) * np.isfinite(weights)
        return chosen, rest / rest.sum()

    def _pooled(self, own: FloatArray, rest: FloatArray, whitened: FloatArray) -> list[FloatArray]:
        if len(self.inverses) == 1:
            precision = self.precisions[0]
            pull = self.inverses[0].T @ (rest @ whitened)
        else:
            precision = np.tensordot(rest, self.precisions, 1)
            pull = np.einsum("j,jkl,jk->l", rest, self.inverses, whitened, optimize=True)
        return [np.asarray(own.T @ precision @ own), np.asarray(own.T @ pull)]

    def _finish(
        self, problem: _MatrixProblem, tau: FloatArray, every: FloatArray, levels: FloatArray, row: int, found: Tilts,
        place: int,
    ) -> None:  # fmt: skip
        """The tilted normal and its certified bound, or the component itself where rounding rules."""
        own = self.own.part(np.array([row]))
        root = problem.root(tau)
        factor = own.lower[0] @ root.T
        mean = self.means[row] - factor @ (root @ (tau[0] @ problem.pull))
        every = np.where(every > _FEWEST * min(every.max(), 1.0), every, 0.0)
        if self.theta is not None:
            every *= self.theta / every.sum()
        proof = certified(
            (own, self.means[row : row + 1]), (self.others, self.q[1]), levels, every, self.theta, mean,
            factor @ factor.T,
        )  # fmt: skip
        if proof is None:
            found.log_bounds[place] = 0.0 if self.theta is None else np.inf
            found.spreads[place] = own.lower[0] @ own.lower[0].T
        else:
            found.log_bounds[place], found.spreads[place] = proof
            found.means[place] = mean


class TurnedPair:
    """One covariance for all of p and one for all of q: in some coordinates both are diagonal."""

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, late: Callable[[], bool] = endless,
    ) -> None:  # fmt: skip
        factor, other = p[1][0], q[2][0]
        inverse = np.linalg.solve(factor, np.eye(len(factor)))
        self.equal = np.array_equal(factor, other)
        if self.equal:
            self.back, sigmas = factor, np.ones(len(factor))
        else:
            left, sigmas, _ = np.linalg.svd(inverse @ other)
            self.back, inverse = factor @ left, left.T @ inverse
        self.rounding = 8 * len(factor) * _UNIT * (_condition(p[1]) + _condition(q[2]))
        centre = p[0].mean(axis=0)
        means, centres = (p[0] - centre) @ inverse.T, (q[1] - centre) @ inverse.T
        self.own = self.means = p[0]
        self.sides = Factors.of(p[1][:1]), Factors.of(q[2][:1])
        self.turned = means
        self.pair = DiagonalPair(
            (means, np.ones_like(means)), (q[0], centres, np.broadcast_to(sigmas, centres.shape)), theta, late
        )
        self.q = q

    @property
    def pooled(self) -> bool:
        """Whether some components of q enter only together."""
        return self.pair.pooled

    def choose(self, tilts: Tilts, rows: NDArray[np.intp]) -> None:
        """As ``DiagonalPair.choose``."""
        self.pair.choose(tilts, rows)

    def run(
        self, shares: FloatArray, start: FloatArray | None = None, rows: NDArray[np.intp] | None = None,
        floor: FloatArray | None = None,
    ) -> Tilts:  # fmt: skip
        """As ``DiagonalPair.run``, in its coordinates."""
        return self.pair.run(shares, start, rows, floor)

    def exponents(self, tilts: Tilts, rows: NDArray[np.intp]) -> FloatArray:
        """As ``DiagonalPair.exponents``."""
        return self.pair.exponents(tilts, rows)

    def restored(self, tilts: Tilts, shares: FloatArray) -> Tilts:
        """In the coordinates of p and q, certified there for the ``shares`` they were found with.

        Where exponents are known by their sums only, ``rounding`` bounds to first order what turning lost.
        """
        found = self._turned_back(tilts)
        if tilts.exponents.shape[1] != len(self.q[0]):
            return found
        common = found.spreads if len(found.spreads) == 1 else None
        for _ in range(_COMMON):
            proved = [self._proved(found, shares, row, common) for row in range(len(found.means))]
            spreads = np.stack([spread for _, spread in proved])
            widest = spreads[np.argmax(np.trace(spreads, axis1=1, axis2=2))]
            if common is None or all(np.array_equal(spread, widest) for spread in spreads):
                break
            common = widest[None]
        found.log_bounds[:] = [bound for bound, _ in proved]
        one = common is not None and np.array_equal(spreads, np.broadcast_to(widest, spreads.shape))
        return Tilts(found.log_bounds, found.means, widest[None] if one else spreads, found.exponents, found.tau)

    def _proved(
        self, found: Tilts, shares: FloatArray, row: int, common: FloatArray | None
    ) -> tuple[float, FloatArray]:
        theta = self.pair.theta
        spread = found.spreads[row] if common is None else common[0]
        if not np.isfinite(found.log_bounds[row]) or (theta is None and found.log_bounds[row] >= 0.0):
            return float(found.log_bounds[row]), spread
        tau = found.exponents[row]
        proof = certified(
            (self.sides[0], self.own[row : row + 1]), (self.sides[1], self.q[1]), self.q[0] + shares[row],
            tau if theta is None else tau * (theta / tau.sum()), theta, found.means[row], spread,
        )  # fmt: skip
        return (0.0 if theta is None else np.inf, spread) if proof is None else proof

    def _turned_back(self, tilts: Tilts) -> Tilts:
        size = self.own.shape[1]
        step = tilts.means - self.turned
        theta = tilts.exponents.sum(axis=1)
        parts = size + np.abs(tilts.log_bounds) + theta * (1.0 + float(np.abs(self.q[0]).max()))
        parts += (1.0 + theta) * np.sum(step * step, axis=1)
        widen = 1e-12 + self.rounding * (np.linalg.norm(self.turned, axis=1) + np.linalg.norm(step, axis=1))
        if not self.equal:
            widen += self.rounding * (1.0 + theta) * (1.0 + np.max(tilts.spreads, axis=1) ** 2)
        sigmas = tilts.spreads * (1.0 + widen)[:, None]
        bounds = tilts.log_bounds + 8 * self.rounding * parts + 3 * size * widen
        if np.ptp(sigmas) < 1e-6:
            bounds = bounds + np.sum(np.log(sigmas.max() / sigmas), axis=1) + size * 8 * _UNIT
            sigmas = np.full((1, size), sigmas.max())
        factors = self.back * sigmas[:, None, :]
        spreads = factors @ factors.transpose(0, 2, 1)
        return Tilts(bounds, self.own + step @ self.back.T, spreads, tilts.exponents, tilts.tau)


def _condition(factors: FloatArray, inverses: FloatArray | None = None) -> float:
    """The largest condition number of these triangular factors once their rows have length one, or more."""
    if inverses is None:
        inverses = np.asarray(np.linalg.solve(factors, np.broadcast_to(np.eye(factors.shape[1]), factors.shape)))
    rows = np.linalg.norm(factors, axis=2)
    ends = np.linalg.norm(inverses * rows[:, None, :], axis=(1, 2))
    return float(np.max(ends)) * float(np.sqrt(factors.shape[1]))
