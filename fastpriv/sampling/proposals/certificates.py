"""Bounds that hold for the stored numbers where covariances are full, whatever their condition.

Notation as in ``exponents``. A normal law stands for its stored mean and lower factor, as it is drawn and evaluated: S
of the component N of p, L_j of those of q, F of a candidate T, x0 the mean of T. With Y = S^-1 F, a = S^-1 (x0 - m),
Y_j = L_j^-1 F, a_j = L_j^-1 (x0 - n_j), at x = x0 + F u,

    log N^(1 + theta) prod N_j^(-tau_j) T^-1 = h - g u - u' M u / 2,
    M = (1 + theta) Y'Y - sum tau_j Y_j'Y_j - I,   g = (1 + theta) Y'a - sum tau_j Y_j'a_j,

at most h + |g|^2 / 2 lambda if M >= lambda > 0. What has the factor of N enters by its distance from N. Every product
is followed by a bound of its rounding (n terms are summed to within n u of the sum of sizes); an inverse X of L enters
with its residual, L^-1 = (I + E) X with |E| <= r / (1 - r), r >= |I - X L|; that the Cholesky factorisation of M - c I
does not fail proves M >= c - 2 (d + 2) u tr M (Rump 2006). T is widened by what rounding may have lost. Norms are
Frobenius norms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions.covariances import factored

__all__ = ["Factors", "certified"]

FloatArray = NDArray[np.float64]
_UNIT = 2.0**-53
_TRIES = 4
_LEAST, _MOST = 1e-13, 0.05  # of the widening


class Factors(NamedTuple):
    """Lower factors (n, d, d), inverses, bounds of what their inverses are off by, relative, and log determinants."""

    lower: FloatArray
    inverse: FloatArray
    error: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, lower: FloatArray) -> Factors:
        """With infinite errors where an inverse is no use."""
        size = lower.shape[1]
        inverse = np.asarray(np.linalg.solve(lower, np.broadcast_to(np.eye(size), lower.shape)), np.float64)
        with np.errstate(all="ignore"):
            left = _norm(inverse @ lower - np.eye(size))
            left = left + _rounding(size) * (_norm(np.abs(inverse) @ np.abs(lower)) + 1.0)
            error = np.where(left < 0.5, left / (1.0 - left), np.inf)
        return cls(lower, inverse, error, np.sum(np.log(np.diagonal(lower, axis1=1, axis2=2)), axis=1))

    def part(self, rows: NDArray[np.intp]) -> Factors:
        """Some of them; one that all share stays one."""
        return Factors(*(array[rows] for array in self)) if len(self.lower) > 1 else self


class _Side(NamedTuple):
    """Y and a of some components, and how far they may be off."""

    turned: FloatArray  # (n, d, d), or (1, d, d) where all have one
    away: FloatArray  # (n, d)
    turned_error: FloatArray  # (n,) or (1,)
    away_error: FloatArray  # (n,)

    @classmethod
    def of(cls, factors: Factors, means: FloatArray, mean: FloatArray, root: FloatArray) -> _Side:
        unit, sizes = _rounding(len(mean)), np.abs(factors.inverse)
        gap = mean - means
        turned, away = factors.inverse @ root, _applied(factors.inverse, gap)
        lost = unit * _norm(sizes @ np.abs(root))
        missed = unit * np.linalg.norm(_applied(sizes, np.abs(gap)), axis=1)
        return cls(
            turned, away, lost + factors.error * (_norm(turned) + lost),
            missed + factors.error * (np.linalg.norm(away, axis=1) + missed),
        )  # fmt: skip

    def matrix(self, times: FloatArray) -> tuple[FloatArray, float]:
        """sum times Y'Y, and how far it may be off."""
        once = times if len(self.turned) > 1 else times.sum(keepdims=True)
        total = np.tensordot(once, self.turned.transpose(0, 2, 1) @ self.turned, 1)
        size = _norm(self.turned)
        error = (2.0 * size + self.turned_error) * self.turned_error + self._unit() * size * size
        return np.asarray(total), float(np.sum(times * error))

    def slope(self, times: FloatArray) -> tuple[FloatArray, float]:
        """sum times Y'a, and how far it may be off."""
        scaled = times[:, None] * self.away
        if len(self.turned) == 1:
            total = scaled.sum(axis=0) @ self.turned[0]
        else:
            total = np.einsum("nde,nd->e", self.turned, scaled)
        size, far = _norm(self.turned), np.linalg.norm(self.away, axis=1)
        error = size * self.away_error + self.turned_error * (far + self.away_error) + self._unit() * size * far
        return np.asarray(total), float(times @ error)

    def square(self, times: FloatArray) -> tuple[float, float]:
        """sum times |a|^2, and how far it may be off."""
        far = np.linalg.norm(self.away, axis=1)
        error = (2.0 * far + self.away_error) * self.away_error + self._unit() * far * far
        return float(times @ (far * far)), float(times @ error)

    def _unit(self) -> float:
        return _rounding(self.turned.shape[1] + len(self.away))


def certified(
    own: tuple[Factors, FloatArray], others: tuple[Factors, FloatArray], levels: FloatArray, tau: FloatArray,
    theta: float | None, mean: FloatArray, covariance: FloatArray,
) -> tuple[float, FloatArray] | None:  # fmt: skip
    """log B and the covariance of a law T, near the given one, with N^(1 + theta) prod N_j^(-tau_j) ... <= B T.

    ``own`` and ``others`` are factors and means of N and of the N_j; ``levels`` are the b_j. None where rounding rules.
    """
    equal = np.broadcast_to((others[0].lower == own[0].lower).all(axis=(1, 2)), tau.shape)
    same, used = np.flatnonzero((tau > 0) & equal), np.flatnonzero((tau > 0) & ~equal)
    logs, log_size = _constants(own[0], others[0].part(used), levels, tau, used, theta)
    wider = 0.0
    for attempt in range(_TRIES):
        spread = covariance * (1.0 + wider) ** 2
        spread = 0.5 * (spread + spread.T)
        try:
            root = factored(spread[None])[0]
        except ValueError:
            return None
        ours = _Side.of(*own, mean, root)
        parts = [_sums(ours, np.array([1.0 + tau[used].sum()]))]
        if used.size:
            parts.append(_sums(_Side.of(others[0].part(used), others[1][used], mean, root), -tau[used]))
        if same.size:
            parts.append(_gaps(_Side.of(own[0], others[1][same], own[1][0], root), tau[same], ours))
        matrix = np.sum([part.matrix for part in parts], axis=0)
        slope = np.sum([part.slope for part in parts], axis=0)
        square, errors = float(sum(part.square for part in parts)), np.sum([part.errors for part in parts], axis=0)
        if not np.isfinite(errors).all():
            return None
        proved = _least(matrix - np.eye(len(mean)))
        least = proved - errors[0] - 2.0 * _UNIT * len(mean)
        far = float(np.linalg.norm(slope)) * (1.0 + _rounding(len(mean))) + float(errors[1])
        if least > 0.0 and (far * far <= least * (far + _LEAST) or attempt == _TRIES - 1):
            ends = np.log(np.diagonal(root))
            bound = logs + float(ends.sum()) + 0.5 * (float(errors[2]) - square + far * far / least)
            size = log_size + float(np.abs(ends).sum()) + abs(square)
            return bound + _rounding(len(mean) + len(tau)) * size, spread
        wider = max(2.0 * wider, _LEAST, 2.0 * (float(errors[0]) - min(proved, 0.0)) + far)
        if wider > _MOST:
            return None
    return None


class _Sums(NamedTuple):
    """Parts of M + I, of g and of -2 h, and how far they may be off."""

    matrix: FloatArray
    slope: FloatArray
    square: float
    errors: FloatArray


def _sums(side: _Side, times: FloatArray) -> _Sums:
    """Those of components counted so many times."""
    size = np.abs(times)
    found = side.matrix(times), side.slope(times), side.square(times)
    errors = np.array([call(size)[1] for call in (side.matrix, side.slope, side.square)])
    return _Sums(found[0][0], found[1][0], found[2][0], errors)


def _gaps(side: _Side, tau: FloatArray, ours: _Side) -> _Sums:
    """Those of components with the factor of N, less N as often: with a_j - a in place of a_j nothing large cancels."""
    slope, slope_error = side.slope(tau)
    square, square_error = side.square(tau)
    far, missed = float(np.linalg.norm(ours.away)), float(ours.away_error[0])
    gaps = np.linalg.norm(side.away, axis=1)
    cross = gaps * missed + side.away_error * (far + missed) + _rounding(len(ours.away[0]) + len(tau)) * gaps * far
    square += 2.0 * float((tau @ side.away) @ ours.away[0])
    size = len(ours.away[0])
    errors = np.array([0.0, slope_error, square_error + 2.0 * float(tau @ cross)])
    return _Sums(np.zeros((size, size)), -slope, -square, errors)


def _constants(
    own: Factors, others: Factors, levels: FloatArray, tau: FloatArray, used: NDArray[np.intp], theta: float | None
) -> tuple[float, float]:  # fmt: skip
    """What of h is no square and does not depend on T, and the sum of its sizes."""
    here = tau > 0
    total, once = float(tau.sum()), 1.0 + float(tau[used].sum())
    parts = np.concatenate([
        -once * np.log(np.diagonal(own.lower[0])), tau[used] * others.logs, tau[here] * np.log(tau[here]),
        -tau[here] * levels[here], [-(1.0 + total) * np.log1p(total) if theta is None else -theta * np.log(theta)],
    ])  # fmt: skip
    sizes = np.sum(np.abs(np.log(np.diagonal(others.lower, axis1=1, axis2=2))), axis=1)
    return float(parts.sum()), float(np.abs(parts).sum() + np.sum(tau[used] * sizes))


def _least(matrix: FloatArray) -> float:
    """A proved lower bound of the eigenvalues, 0 or less where none is positive."""
    guess = float(np.linalg.eigvalsh(matrix)[0])
    if guess <= 0.0:
        return guess
    for part in (0.5, 0.1):
        try:
            np.linalg.cholesky(matrix - part * guess * np.eye(len(matrix)))
        except np.linalg.LinAlgError:
            continue
        return part * guess - 4.0 * (len(matrix) + 4) * _UNIT * float(np.trace(matrix))
    return 0.0


def _rounding(terms: int) -> float:
    """Twice what summing so many products can lose, relative to the sum of their sizes."""
    return 2.0 * (terms + 8) * _UNIT


def _applied(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    if len(matrices) == 1:
        return np.asarray(vectors @ matrices[0].T)
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def _norm(matrices: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(matrices, axis=(1, 2)))
