"""Slots and exponents where covariances are full and differ: all components of p together, each in its own units.

Notation as in ``exponents``: with the lower factor S of a component of p and L_j of one of q, Y_j = L_j^-1 S, I - D_j =
Y_j' Y_j and E_j = Y_j' L_j^-1 (n_j - m). The number of slots falls with the dimension, since a Newton step costs a few
d^3 a slot; what has no slot of its own is pooled as in ``slots``.
"""

# bounds: tested by properties/test_tilting, properties/test_proved_domination - rounding of a turned law, to
#    first order in the condition number

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray
from ..options import never_expired
from .active_components import DiagonalPair, Tilts, by_component
from .domination_certificates import Factors, certified, cholesky_factors
from .exponents import interior, solve, value

__all__ = ["MatrixPair", "TurnedPair"]

_SLOTS = 8
_WORK = 5e7  # slots times d^3
_TILE = 2**21  # entries of the matrices that are held
_COMMON = 3  # times that one covariance for all is tried
# bound: none - exponents that are left out: proposals only
_FEWEST = 1e-12  # relative to the largest, or to 1: exponents that are left out


@dataclass(frozen=True)
class _MatrixProblem:
    """Problems with matrices of any kind."""

    curvature: FloatArray  # D (I, J, d, d)
    pull: FloatArray  # E (I, J, d)
    offset: FloatArray  # a (I, J)
    level: FloatArray  # b (I, J)

    def part(self, rows: IndexArray) -> _MatrixProblem:
        if len(rows) == len(self.level):
            return self
        return _MatrixProblem(*(array[rows] for array in vars(self).values()))

    def score(self) -> FloatArray:
        return np.asarray(self.level - self.offset + 0.5 * np.trace(self.curvature, axis1=2, axis2=3))

    def depth(self, tau: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.eigvalsh(self._sum(tau))[:, 0])

    def roots(self, tau: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The inverses of the lower factors of the precisions of T, and which of these are positive."""
        precision = self._sum(tau) + np.eye(self.pull.shape[2])
        finite = np.asarray(np.isfinite(precision).all(axis=(1, 2)))
        factors, good = cholesky_factors(np.where(finite[:, None, None], precision, np.eye(self.pull.shape[2])))
        good &= finite & (np.diagonal(factors, axis1=1, axis2=2).min(axis=1) >= 1e-4)
        return np.asarray(np.linalg.inv(factors)), good

    def shape(self, tau: FloatArray) -> FloatArray:
        root, good = self.roots(tau)
        reach = (root @ (tau[:, None, :] @ self.pull).transpose(0, 2, 1))[:, :, 0]
        ends = np.log(np.diagonal(root, axis1=1, axis2=2))
        return np.where(good, 0.5 * np.sum(reach * reach, axis=1) + ends.sum(axis=1), np.inf)

    def slopes(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        root, _ = self.roots(tau)
        across = root.transpose(0, 2, 1)
        mean = -(across @ (root @ (tau[:, None, :] @ self.pull).transpose(0, 2, 1)))[:, :, 0]
        turned = root[:, None] @ self.curvature @ across[:, None]
        bent = (self.curvature @ mean[:, None, :, None])[..., 0]
        half = self.pull + 0.5 * bent
        gradient = -0.5 * np.trace(turned, axis1=2, axis2=3) - (half @ mean[:, :, None])[:, :, 0]
        flat = (turned * tau[:, :, None, None]).reshape(*tau.shape, -1)
        forces = ((self.pull + bent) * tau[:, :, None]) @ across
        return gradient, 0.5 * flat @ flat.transpose(0, 2, 1) + forces @ forces.transpose(0, 2, 1)

    def _sum(self, tau: FloatArray) -> FloatArray:
        """sum tau_j D_j."""
        flat = self.curvature.reshape(*tau.shape, -1)
        return np.asarray((tau[:, None, :] @ flat).reshape(len(tau), *self.curvature.shape[2:]))


class MatrixPair:
    """Problems of all components of p = (means, factors) against q = (levels, means, factors), one by one.

    Factors are lower Cholesky factors, (k, d, d) or (1, d, d) where they are shared.
    """

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, expired: Callable[[], bool] = never_expired,
    ) -> None:  # fmt: skip
        self.means, self.factors = p
        self.q = q
        self.theta, self.expired = theta, expired
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
        self.base: tuple[IndexArray, FloatArray] | None = None

    @property
    def pooled(self) -> bool:
        """Whether some components of q enter only together."""
        return self.slots < len(self.q[0])

    def choose(self, tilts: Tilts, rows: IndexArray) -> None:
        """Look for the slots of ``rows`` at these tilted normals; exponents found before lose their meaning."""
        self.at = tilts
        self.chosen[rows] = -1

    def run(
        self, shares: FloatArray, start: FloatArray | None = None, rows: IndexArray | None = None,
        floor: FloatArray | None = None,
    ) -> Tilts:  # fmt: skip
        """As ``DiagonalPair.run``; the spreads are covariances. Where ``shares`` are known by component of q, bounds
        are right but for rounding until they are ``restored``; else they are certified here."""
        rows = np.arange(len(self.means)) if rows is None else rows
        number, size, partners = len(rows), self.means.shape[1], len(self.q[0])
        found = Tilts(
            np.full(number, 0.0 if self.theta is None else np.inf), self.means[rows], self._covariances(rows).copy(),
            np.zeros((number, shares.shape[1])), np.zeros((number, self.slots)),
        )  # fmt: skip
        width = max(self.slots * size * size, partners * size)
        for first in range(0, number, max(1, _TILE // width)):
            if self.expired():
                break
            here = np.arange(first, min(first + max(1, _TILE // width), number))
            begin, enough = (None if x is None else x[here] for x in (start, floor))
            self._solve(rows[here], shares[rows[here]], begin, enough, found, here)
        return found

    def restored(self, tilts: Tilts, shares: FloatArray) -> Tilts:
        """Certified for the ``shares`` they were found with, unless ``run`` has done so."""
        if tilts.exponents.shape[1] == len(self.q[0]):
            rows = np.arange(len(self.means))
            self._certify(rows, tilts.exponents, self.q[0] + shares, tilts, rows)
        return tilts

    def exponents(self, tilts: Tilts, rows: IndexArray) -> FloatArray:
        """As ``DiagonalPair.exponents``."""
        return by_component(tilts, rows, self.chosen, len(self.q[0]))

    def _covariances(self, rows: IndexArray) -> FloatArray:
        """Covariances of components of p."""
        own = self.factors[rows if len(self.factors) > 1 else np.zeros_like(rows)]
        return np.asarray(own @ own.transpose(0, 2, 1))

    def _solve(
        self, rows: IndexArray, shares: FloatArray, start: FloatArray | None, floor: FloatArray | None,
        found: Tilts, here: IndexArray,
    ) -> None:  # fmt: skip
        """Solve for components ``rows``, which stand at ``here``."""
        levels, size = self.q[0], self.means.shape[1]
        own = self.factors[rows if len(self.factors) > 1 else np.zeros_like(rows)]
        total = np.broadcast_to(levels + shares, (len(rows), len(levels)))
        whitened = self._whitened(self.means[rows])
        logs = np.sum(np.log(np.diagonal(own, axis1=1, axis2=2)), axis=1)
        offset = 0.5 * np.sum(whitened * whitened, axis=2) + self.logs - logs[:, None]
        every = np.broadcast_to(np.arange(len(levels)), total.shape)
        chosen, rest = self._choice(rows, own, total) if self.pooled else (every, None)
        some = chosen if len(self.inverses) > 1 else chosen[:, :1] * 0
        turned = self.inverses[some] @ own[:, None]
        turned[(self.q[2][some] == own[:, None]).all(axis=(2, 3))] = np.eye(size)  # however large tau, D stays 0
        near = np.take_along_axis(whitened, chosen[:, :, None], axis=1)
        precision = np.broadcast_to(turned.transpose(0, 1, 3, 2) @ turned, (*chosen.shape, size, size))
        pull = (near[:, :, None, :] @ turned)[:, :, 0]
        parts = [precision, pull, *(np.take_along_axis(x, chosen, axis=1) for x in (offset, total))]
        if rest is not None:
            with np.errstate(divide="ignore"):
                level = np.sum(rest * (total - np.where(rest > 0, np.log(rest), 0.0)), axis=1)
            pooled = [*self._pooled(own, rest, whitened), np.sum(rest * offset, axis=1), level]
            parts = [np.concatenate([x, y[:, None]], axis=1) for x, y in zip(parts, pooled, strict=True)]
        problem = _MatrixProblem(np.eye(size) - parts[0], *parts[1:])
        if self.theta is not None and start is None:
            assert self.base is not None
            base = np.zeros((len(rows), self.slots))
            base[:, : chosen.shape[1]] = np.sum(
                (chosen[:, :, None] == self.base[0][rows][:, None, :]) * self.base[1][rows][:, None, :], axis=2
            )
            start = interior(problem, self.theta, base)
        tau = solve(problem, self.theta, start, floor, self.expired)
        found.tau[here] = tau
        exponents = np.zeros(total.shape)
        np.put_along_axis(exponents, chosen, tau[:, : chosen.shape[1]], axis=1)
        if rest is not None:
            exponents += tau[:, -1:] * rest
        dense = found.exponents.shape[1] == len(levels)
        found.exponents[here] = exponents if dense else exponents.sum(axis=1, keepdims=True)
        root, good = problem.roots(tau)
        factor = own @ root.transpose(0, 2, 1)
        step = root @ (tau[:, None, :] @ problem.pull).transpose(0, 2, 1)
        found.means[here] = self.means[rows] - (factor @ step)[:, :, 0]
        found.spreads[here] = factor @ factor.transpose(0, 2, 1)
        found.log_bounds[here] = np.where(good, value(problem, tau, self.theta), np.inf)
        if not dense:
            self._certify(rows, exponents, total, found, here)

    def _whitened(self, means: FloatArray) -> FloatArray:
        """L_j^-1 (n_j - m) for every m: (I, J, d)."""
        away = self.q[1] - means[:, None]
        if len(self.inverses) == 1:
            return np.asarray(away @ self.inverses[0].T)
        return np.asarray((self.inverses @ away[..., None])[..., 0])

    def _choice(
        self, rows: IndexArray, own: FloatArray, total: FloatArray
    ) -> tuple[IndexArray, FloatArray]:  # fmt: skip
        """The heaviest components of q near the tilted normals, and the shares of the others."""
        spread = own @ own.transpose(0, 2, 1) if self.at is None else self.at.spreads[rows]
        away = self._whitened(self.means[rows] if self.at is None else self.at.means[rows])
        flat = spread.reshape(len(rows), -1) @ self.precisions.reshape(len(self.precisions), -1).T
        weights = total - self.logs - 0.5 * (flat + np.sum(away * away, axis=2))
        fresh = np.flatnonzero(self.chosen[rows, 0] < 0)
        if fresh.size:
            if self.base is not None:
                forced = weights[fresh]
                np.put_along_axis(forced, self.base[0][rows[fresh]], np.inf, axis=1)
                weights[fresh] = forced
            order = np.argsort(-weights[fresh], axis=1, kind="stable")
            self.chosen[rows[fresh]] = order[:, : self.slots - 1]
        chosen = self.chosen[rows]
        np.put_along_axis(weights, chosen, -np.inf, axis=1)
        weights[weights == np.inf] = -np.inf
        top = weights.max(axis=1, keepdims=True)
        rest = np.exp(np.maximum(weights - top, -700.0)) * np.isfinite(weights)
        return chosen, rest / rest.sum(axis=1, keepdims=True)

    def _pooled(self, own: FloatArray, rest: FloatArray, whitened: FloatArray) -> list[FloatArray]:
        number, size = len(own), own.shape[1]
        if len(self.inverses) == 1:
            precision = np.broadcast_to(self.precisions[0], own.shape)
            pull = (rest[:, None, :] @ whitened)[:, 0] @ self.inverses[0]
        else:
            precision = (rest @ self.precisions.reshape(len(self.precisions), -1)).reshape(number, size, size)
            forces = (self.inverses.transpose(0, 2, 1) @ whitened[..., None])[..., 0]
            pull = (rest[:, None, :] @ forces)[:, 0]
        across = own.transpose(0, 2, 1)
        return [np.asarray(across @ precision @ own), np.asarray((across @ pull[:, :, None])[:, :, 0])]

    def _certify(
        self, rows: IndexArray, exponents: FloatArray, levels: FloatArray, found: Tilts, here: IndexArray
    ) -> None:  # fmt: skip
        """Certified bounds of the tilted normals of ``rows``, which stand at ``here``, or the components themselves
        where rounding rules."""
        least = _FEWEST * np.minimum(exponents.max(axis=1, keepdims=True), 1.0)
        every = np.where(exponents > least, exponents, 0.0)
        if self.theta is not None:
            every *= self.theta / every.sum(axis=1, keepdims=True)
        usable = np.isfinite(found.log_bounds[here]) & np.isfinite(every).all(axis=1)
        usable &= (every > 0.0).any(axis=1)
        some = np.flatnonzero(usable)
        bounds, spreads = np.full(len(rows), np.nan), found.spreads[here]
        bounds[some], spreads[some] = certified(
            (self.own.part(rows[some]), self.means[rows[some]]), (self.others, self.q[1]), levels[some], every[some],
            self.theta, found.means[here[some]], spreads[some],
        )  # fmt: skip
        proved = np.isfinite(bounds)
        found.log_bounds[here] = np.where(proved, bounds, 0.0 if self.theta is None else np.inf)
        found.spreads[here] = np.where(proved[:, None, None], spreads, self._covariances(rows))
        found.means[here] = np.where(proved[:, None], found.means[here], self.means[rows])


class TurnedPair:
    """One covariance for all of p and one for all of q: in some coordinates both are diagonal."""

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, expired: Callable[[], bool] = never_expired,
    ) -> None:  # fmt: skip
        factor, other = p[1][0], q[2][0]
        inverse = np.linalg.solve(factor, np.eye(len(factor)))
        self.equal = np.array_equal(factor, other)
        if self.equal:
            self.back, sigmas = factor, np.ones(len(factor))
        else:
            left, sigmas, _ = np.linalg.svd(inverse @ other)
            self.back, inverse = factor @ left, left.T @ inverse
        self.rounding = 8 * len(factor) * UNIT_ROUNDOFF * (_condition(p[1]) + _condition(q[2]))
        centre = p[0].mean(axis=0)
        means, centres = (p[0] - centre) @ inverse.T, (q[1] - centre) @ inverse.T
        self.own = self.means = p[0]
        self.sides = Factors.of(p[1][:1]), Factors.of(q[2][:1])
        self.turned = means
        self.pair = DiagonalPair(
            (means, np.ones_like(means)), (q[0], centres, np.broadcast_to(sigmas, centres.shape)), theta, expired
        )
        self.q = q

    @property
    def pooled(self) -> bool:
        """Whether some components of q enter only together."""
        return self.pair.pooled

    def choose(self, tilts: Tilts, rows: IndexArray) -> None:
        """As ``DiagonalPair.choose``."""
        self.pair.choose(tilts, rows)

    def run(
        self, shares: FloatArray, start: FloatArray | None = None, rows: IndexArray | None = None,
        floor: FloatArray | None = None,
    ) -> Tilts:  # fmt: skip
        """As ``DiagonalPair.run``, in its coordinates."""
        return self.pair.run(shares, start, rows, floor)

    def exponents(self, tilts: Tilts, rows: IndexArray) -> FloatArray:
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
            bounds, spreads = self._proved(found, shares, common)
            widest = spreads[np.argmax(np.trace(spreads, axis1=1, axis2=2))]
            if common is None or all(np.array_equal(spread, widest) for spread in spreads):
                break
            common = widest[None]
        found.log_bounds[:] = bounds
        one = common is not None and np.array_equal(spreads, np.broadcast_to(widest, spreads.shape))
        return Tilts(found.log_bounds, found.means, widest[None] if one else spreads, found.exponents, found.tau)

    def _proved(
        self, found: Tilts, shares: FloatArray, common: FloatArray | None
    ) -> tuple[FloatArray, FloatArray]:
        theta = self.pair.theta
        given = found.spreads if common is None else common
        spreads = np.array(np.broadcast_to(given, (len(found.means), *given.shape[1:])))
        bounds = found.log_bounds.copy()
        rows = np.flatnonzero(np.isfinite(bounds) & ((bounds < 0.0) | (theta is not None)))
        tau = found.exponents[rows]
        proved, spreads[rows] = certified(
            (self.sides[0], self.own[rows]), (self.sides[1], self.q[1]), self.q[0] + shares[rows],
            tau if theta is None else tau * (theta / tau.sum(axis=1, keepdims=True)), theta, found.means[rows],
            spreads[rows],
        )  # fmt: skip
        bounds[rows] = np.where(np.isfinite(proved), proved, 0.0 if theta is None else np.inf)
        return bounds, spreads

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
            bounds = bounds + np.sum(np.log(sigmas.max() / sigmas), axis=1) + size * 8 * UNIT_ROUNDOFF
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
