"""Certificates of domination for full covariances: bounds that hold for the stored numbers, whatever the condition.

docs/proofs/domination.md, theorem 8.3. Notation as in ``exponents``. A normal proposal stands for its stored mean and
lower factor, as it is drawn and evaluated: S of the component N of p, L_j of those of q, F of a candidate T, x0 the
mean of T. With Y = S^-1 F, a = S^-1 (x0 - m), Y_j = L_j^-1 F, a_j = L_j^-1 (x0 - n_j), at x = x0 + F u,

    log N^(1 + theta) prod N_j^(-tau_j) T^-1 = h - g u - u' M u / 2,
    M = (1 + theta) Y'Y - sum tau_j Y_j'Y_j - I,   g = (1 + theta) Y'a - sum tau_j Y_j'a_j,

at most h + |g|^2 / 2 lambda if M >= lambda > 0. What has the factor of N enters by its distance from N. Every product
is followed by a bound of its rounding (n terms are summed to within n u of the sum of sizes); an inverse X of L enters
with its residual, L^-1 = (I + E) X with |E| <= r / (1 - r), r >= |I - X L|; that the Cholesky factorisation of M - c I
does not fail proves M >= c - 2 (d + 2) u tr M (Rump 2006). T is widened by what rounding may have lost. Norms are
Frobenius norms.
"""

# bounds: proved - n terms are summed to within n u of the sum of sizes; Rump 2006 for the factorisation

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray
from ...distributions.covariances import factors_and_refused
from .exponents import cholesky_factors

_TRIES = 4  # of wider and wider T
_MAX_ENTRIES = 2**21  # of the matrices that are held: 16 MB
# bound: none - the least widening that is tried
_LEAST_WIDENING, _MOST_WIDENING = 1e-13, 0.05  # of T, relative to its standard deviations


class Factors(NamedTuple):
    """Lower factors (n, d, d), inverses, bounds of what their inverses are off by, relative, and log determinants."""

    lower: FloatArray
    inverse: FloatArray
    error: FloatArray
    logs: FloatArray

    @classmethod
    def of(cls, lower: FloatArray) -> Factors:
        """Factors with their inverses; errors are infinite where an inverse is no use."""
        size = lower.shape[1]
        inverse = np.asarray(np.linalg.solve(lower, np.broadcast_to(np.eye(size), lower.shape)), np.float64)
        with np.errstate(all="ignore"):
            left = _norm(inverse @ lower - np.eye(size))
            left = left + _rounding(size) * (_norm(np.abs(inverse) @ np.abs(lower)) + 1.0)
            error = np.where(left < 0.5, left / (1.0 - left), np.inf)
        return cls(lower, inverse, error, np.sum(np.log(np.diagonal(lower, axis1=1, axis2=2)), axis=1))

    def subset(self, rows: IndexArray) -> Factors:
        """Some of them; one that all share stays one."""
        return Factors(*(array[rows] for array in self)) if len(self.lower) > 1 else self


class _TransformedComponents(NamedTuple):
    """Y and a of u components for each of r problems, and how far they may be off; one Y stands for all."""

    whitened_roots: FloatArray  # Y, (r, u, d, d) or (r, 1, d, d)
    whitened_gaps: FloatArray  # a, (r, u, d)
    roots_error: FloatArray  # bounds of the norm of the error of Y, (r, u) or (r, 1)
    gaps_error: FloatArray  # bounds of the norm of the error of a, (r, u)

    @classmethod
    def of(cls, factors: Factors, gaps: FloatArray, roots: FloatArray) -> _TransformedComponents:
        """Of factors (r, u, d, d), or one for each r or for all, and of the distances from their means (r, u, d)."""
        unit, inverse = _rounding(gaps.shape[2]), factors.inverse
        sizes, root = np.abs(inverse), roots[:, None]
        whitened_roots, whitened_gaps = inverse @ root, _applied(inverse, gaps)
        lost = unit * _norm(sizes @ np.abs(root))
        missed = unit * np.linalg.norm(_applied(sizes, np.abs(gaps)), axis=2)
        return cls(
            whitened_roots, whitened_gaps, lost + factors.error * (_norm(whitened_roots) + lost),
            missed + factors.error * (np.linalg.norm(whitened_gaps, axis=2) + missed),
        )

    def matrix(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """sum times Y'Y, and how far it may be off."""
        once = times if self.whitened_roots.shape[1] == times.shape[1] else times.sum(axis=1, keepdims=True)
        squares = self.whitened_roots.transpose(0, 1, 3, 2) @ self.whitened_roots
        total = (once[:, None, :] @ squares.reshape(*squares.shape[:2], -1)).reshape(len(times), *squares.shape[2:])
        size = _norm(self.whitened_roots)
        error = (2.0 * size + self.roots_error) * self.roots_error + self._unit() * size * size
        return total, np.sum(np.abs(times) * error, axis=1)

    def slope(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """sum times Y'a, and how far it may be off."""
        scaled = times[:, :, None] * self.whitened_gaps
        if self.whitened_roots.shape[1] == times.shape[1]:
            total = (scaled[:, :, None, :] @ self.whitened_roots)[:, :, 0].sum(axis=1)
        else:
            total = (scaled.sum(axis=1)[:, None, :] @ self.whitened_roots[:, 0])[:, 0]
        size, far = _norm(self.whitened_roots), np.linalg.norm(self.whitened_gaps, axis=2)
        error = size * self.gaps_error + self.roots_error * (far + self.gaps_error) + self._unit() * size * far
        return total, np.sum(np.abs(times) * error, axis=1)

    def square(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """sum times |a|^2, and how far it may be off."""
        far = np.linalg.norm(self.whitened_gaps, axis=2)
        error = (2.0 * far + self.gaps_error) * self.gaps_error + self._unit() * far * far
        return np.sum(times * far * far, axis=1), np.sum(np.abs(times) * error, axis=1)

    def _unit(self) -> float:
        return _rounding(self.whitened_roots.shape[2] + self.whitened_gaps.shape[1])


class _QuadraticForm(NamedTuple):
    """Parts of M + I, of g and of -2 h, and how far they may be off: of the matrix, the slope and the square."""

    matrix: FloatArray
    slope: FloatArray
    square: FloatArray
    errors: FloatArray  # (3, r)

    def __add__(self, other: object) -> _QuadraticForm:
        assert isinstance(other, _QuadraticForm)
        return _QuadraticForm(*(mine + new for mine, new in zip(self, other, strict=True)))


class _Certificates(NamedTuple):
    """N and the N_j with exponents above 0, for each of r problems: those with the factor of N apart."""

    numerator: Factors  # (r, 1, d, d) or (1, 1, d, d)
    means: FloatArray  # (r, d)
    denominators: Factors  # (r, u, d, d) or (1, 1, d, d)
    centres: FloatArray  # (r, u, d)
    times: FloatArray  # (r, u)
    same: FloatArray  # means (r, v, d)
    same_times: FloatArray  # (r, v)

    def subset(self, rows: IndexArray) -> _Certificates:
        return _Certificates(
            self.numerator.subset(rows), self.means[rows], self.denominators.subset(rows), self.centres[rows],
            self.times[rows], self.same[rows], self.same_times[rows],
        )

    def sums(self, candidate_means: FloatArray, roots: FloatArray) -> _QuadraticForm:
        """All parts at candidates T of these means and factors."""
        ours = _TransformedComponents.of(self.numerator, (candidate_means - self.means)[:, None], roots)
        form = _sums(ours, 1.0 + self.times.sum(axis=1, keepdims=True))
        if self.times.shape[1]:
            offsets = candidate_means[:, None] - self.centres
            form += _sums(_TransformedComponents.of(self.denominators, offsets, roots), -self.times)
        if self.same_times.shape[1]:
            same = _TransformedComponents.of(self.numerator, self.means[:, None] - self.same, roots)
            form += _gaps(same, self.same_times, ours)
        return form


@np.errstate(all="ignore")  # what is not finite proves nothing
def certified_bounds(
    numerator: tuple[Factors, FloatArray], denominators: tuple[Factors, FloatArray], levels: FloatArray,
    tau: FloatArray, theta: float | None, means: FloatArray, covariances: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """log B (r,) and covariances of proposals T, near the given ones, with N^(1 + theta) prod N_j^(-tau_j) ... <= B T.

    ``numerator`` and ``denominators`` are factors and means of the N and of the N_j, factors one for each or one for
    all; ``levels`` are the b_j and ``tau`` the exponents, (r, J). NaN and the given covariance where rounding
    dominates.
    """
    bounds, spreads = np.full(len(tau), np.nan), covariances.copy()
    if not len(tau):
        return bounds, spreads
    step = max(1, _MAX_ENTRIES // (tau.shape[1] * means.shape[1] ** 2))
    for first in range(0, len(tau), step):
        rows = np.arange(first, min(first + step, len(tau)))
        block_numerator = numerator[0].subset(rows), numerator[1][rows]
        _prove(block_numerator, denominators, levels[rows], tau[rows], theta, means[rows], rows, bounds, spreads)
    return bounds, spreads


def _prove(
    numerator: tuple[Factors, FloatArray], denominators: tuple[Factors, FloatArray], levels: FloatArray,
    tau: FloatArray, theta: float | None, means: FloatArray, positions: IndexArray, bounds: FloatArray,
    spreads: FloatArray,
) -> None:
    """Write the proved bounds and covariances of the problems at these positions."""
    equal = np.broadcast_to((denominators[0].lower[None] == numerator[0].lower[:, None]).all(axis=(2, 3)), tau.shape)
    problems = _problems(numerator, denominators, tau, equal)
    logs, log_sizes = _constants(numerator[0], denominators[0], levels, tau, equal, theta)
    size, initial_spreads = means.shape[1], spreads[positions]
    wider, alive = np.zeros(len(tau)), np.arange(len(tau))
    for attempt in range(_TRIES):
        spread = initial_spreads[alive] * ((1.0 + wider[alive]) ** 2)[:, None, None]
        spread = 0.5 * (spread + spread.transpose(0, 2, 1))
        roots, good = lower_factors(spread)
        alive, spread, roots = alive[good], spread[good], roots[good]
        if not alive.size:
            return
        sums = problems.subset(alive).sums(means[alive], roots)
        good = np.asarray(np.isfinite(sums.errors).all(axis=0) & np.isfinite(sums.matrix).all(axis=(1, 2)))
        alive, spread, roots = alive[good], spread[good], roots[good]
        sums = _QuadraticForm(sums.matrix[good], sums.slope[good], sums.square[good], sums.errors[:, good])
        if not alive.size:
            return
        proved = _proved_least_eigenvalues(sums.matrix - np.eye(size))
        least = proved - sums.errors[0] - 2.0 * UNIT_ROUNDOFF * size
        far = np.linalg.norm(sums.slope, axis=1) * (1.0 + _rounding(size)) + sums.errors[1]
        done = (least > 0.0) & ((far * far <= least * (far + _LEAST_WIDENING)) | (attempt == _TRIES - 1))
        ends = np.log(np.diagonal(roots, axis1=1, axis2=2))
        bound = logs[alive] + ends.sum(axis=1) + 0.5 * (sums.errors[2] - sums.square + far * far / least)
        sizes = log_sizes[alive] + np.abs(ends).sum(axis=1) + np.abs(sums.square)
        bound += _rounding(size + tau.shape[1]) * sizes
        bounds[positions[alive[done]]], spreads[positions[alive[done]]] = bound[done], spread[done]
        grown = np.maximum(2.0 * wider[alive], _LEAST_WIDENING)
        wider[alive] = np.maximum(grown, 2.0 * (sums.errors[0] - np.minimum(proved, 0.0)) + far)
        alive = alive[~done & (wider[alive] <= _MOST_WIDENING)]


def _problems(
    numerator: tuple[Factors, FloatArray], denominators: tuple[Factors, FloatArray], tau: FloatArray, equal: BoolArray
) -> _Certificates:
    used, used_tau = _gathered((tau > 0) & ~equal, tau)
    same, same_tau = _gathered((tau > 0) & equal, tau)
    shared = len(denominators[0].lower) == 1
    denominator_factors = Factors(*(array[None] if shared else array[used] for array in denominators[0]))
    numerator_factors = Factors(*(array[:, None] for array in numerator[0]))
    centres, same_means = denominators[1][used], denominators[1][same]
    return _Certificates(numerator_factors, numerator[1], denominator_factors, centres, used_tau, same_means, same_tau)


def _gathered(chosen: BoolArray, tau: FloatArray) -> tuple[IndexArray, FloatArray]:
    """The positions that are chosen in any row first, as many in every row, and exponents that are 0 elsewhere."""
    most = int(chosen.sum(axis=1).max(initial=0))
    index = np.argsort(~chosen, axis=1, kind="stable")[:, :most]
    return index, np.where(np.take_along_axis(chosen, index, axis=1), np.take_along_axis(tau, index, axis=1), 0.0)


def _sums(side: _TransformedComponents, times: FloatArray) -> _QuadraticForm:
    """The quadratic form of components with multiplicities ``times``."""
    (matrix, first), (slope, second), (square, third) = side.matrix(times), side.slope(times), side.square(times)
    return _QuadraticForm(matrix, slope, square, np.stack([first, second, third]))


def _gaps(side: _TransformedComponents, tau: FloatArray, ours: _TransformedComponents) -> _QuadraticForm:
    """The quadratic form of components with the factor of N, minus that of N as often.

    It is computed from a_j - a in place of a_j, so that no large terms cancel.
    """
    slope, slope_error = side.slope(tau)
    square, square_error = side.square(tau)
    far, missed = np.linalg.norm(ours.whitened_gaps, axis=2), ours.gaps_error
    gaps = np.linalg.norm(side.whitened_gaps, axis=2)
    size = ours.whitened_gaps.shape[2]
    cross = gaps * missed + side.gaps_error * (far + missed) + _rounding(size + tau.shape[1]) * gaps * far
    square += 2.0 * np.sum((tau[:, None, :] @ side.whitened_gaps)[:, 0] * ours.whitened_gaps[:, 0], axis=1)
    errors = np.stack([np.zeros(len(tau)), slope_error, square_error + 2.0 * np.sum(tau * cross, axis=1)])
    return _QuadraticForm(np.zeros((len(tau), size, size)), -slope, -square, errors)


def _constants(
    numerator: Factors, denominators: Factors, levels: FloatArray, tau: FloatArray, equal: BoolArray,
    theta: float | None,
) -> tuple[FloatArray, FloatArray]:
    """The part of h that is no square and does not depend on T, and the sum of the sizes of its terms."""
    positive, used = tau > 0, np.where(equal, 0.0, tau)
    total, once = tau.sum(axis=1), 1.0 + used.sum(axis=1)
    last = -(1.0 + total) * np.log1p(total) if theta is None else np.full(len(tau), -theta * np.log(theta))
    ends = once[:, None] * np.log(np.diagonal(numerator.lower, axis1=1, axis2=2))
    logs = np.where(positive, tau * np.log(np.where(positive, tau, 1.0)), 0.0)
    level = np.where(positive, tau * np.where(positive, levels, 0.0), 0.0)
    parts = (-ends, used * denominators.logs, logs, -level, last[:, None])
    sizes = np.sum(np.abs(np.log(np.diagonal(denominators.lower, axis1=1, axis2=2))), axis=1)
    constant, size = sum(x.sum(axis=1) for x in parts), sum(np.abs(x).sum(axis=1) for x in parts)
    return np.asarray(constant), np.asarray(size + np.sum(used * sizes, axis=1))


def lower_factors(spreads: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Lower Cholesky factors, 0 where there is none, and whether there is one."""
    factors, refused = factors_and_refused(spreads)
    positive_definite = np.ones(len(spreads), dtype=bool)
    positive_definite[[position for position, _ in refused]] = False
    factors[~positive_definite] = 0.0
    return factors, positive_definite


def _proved_least_eigenvalues(matrices: FloatArray) -> FloatArray:
    """Proved lower bounds of the least eigenvalues, 0 or less where no positive one is proved."""
    guess = np.linalg.eigvalsh(matrices)[:, 0]
    bounds = np.minimum(guess, 0.0)
    open_rows = np.flatnonzero(guess > 0.0)
    size = matrices.shape[1]
    traces = np.trace(matrices, axis1=1, axis2=2)
    for subset in (0.5, 0.1):
        if not open_rows.size:
            break
        shifted = matrices[open_rows] - (subset * guess[open_rows])[:, None, None] * np.eye(size)
        _, good = cholesky_factors(shifted)
        rows = open_rows[good]
        bounds[rows] = subset * guess[rows] - 4.0 * (size + 4) * UNIT_ROUNDOFF * traces[rows]
        open_rows = open_rows[~good]
    return np.asarray(bounds)


def _rounding(terms: int) -> float:
    """Twice what summing so many products can lose, relative to the sum of their sizes."""
    return 2.0 * (terms + 8) * UNIT_ROUNDOFF


def _applied(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Matrices (r, u, d, d), or fewer of them, times vectors (r, u, d)."""
    if matrices.shape[1] == 1 and vectors.shape[1] > 1:
        return np.asarray(vectors @ matrices[:, 0].transpose(0, 2, 1))
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _norm(matrices: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(matrices, axis=(-2, -1)))
