"""The convex problem behind a proposal: the exponents tau of the components of q against one component of p.

Notation: N is a component of p in its own units (mean 0, covariance I), N_j a component of q there, with precision
I - D_j, d_j its mean and E_j = (I - D_j) d_j. For tau >= 0, theta = sum tau,

    N^(1 + theta) prod N_j^(-tau_j) = e^Lambda T, T normal with precision P = I + sum tau_j D_j and mean
    -P^-1 sum tau_j E_j, Lambda = sum tau_j a_j - log det P / 2 + |sum tau_j E_j|^2_(P^-1) / 2, a_j = log(N / N_j) at 0.

docs/proofs/domination.md, theorem 8.1: by weighted means, (1 - e^-t) <= theta^theta (1 + theta)^-(1 + theta) e^(theta
t) for t = log(N / Q) >= 0, and Q >= prod (e^b_j N_j theta / tau_j)^(tau_j / theta) for any Q >= sum e^b_j N_j. Hence (N
- Q)^+ <= e^F T with

    F(tau) = Lambda - sum tau_j b_j + sum tau_j log tau_j - (1 + theta) log(1 + theta),

convex. At its minimum tau_j / (1 + theta) = e^b_j exp E_T log(N_j / N). With theta held fixed the same function, its
last term replaced by -theta log theta, bounds N^(1 + theta) Q^(-theta). Every feasible tau gives a true bound, so the
solver is free to stop: a damped Newton iteration in relative steps, for many components at once.

Arrays have I problems (components of p), J active components of q, d coordinates.
"""

# bounds: proved - docs/proofs/domination.md, 8.6: rounding of exponents, means and precisions of a proposal; 1e-300
#    keeps quotients by 0 away

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray
from ..options import never_expired

_NEWTON_STEPS = 60  # at most; few problems need more than 20
_LINE_SEARCH_STEPS = 30  # of a factor 0.4 each
_DECREMENT = 1e-3  # twice what F may still fall by when a problem is left
_LARGEST_THETA = 1e15  # beyond, the iteration of a problem ends
_GROWTH = 9.0  # theta grows tenfold in a step at most
# bound: none - least eigenvalue of a precision: proposals only
_LEAST_PRECISION = 1e-9  # least eigenvalue of a precision that counts as positive


class DiagonalExponentProblem(NamedTuple):
    """Problems of J active components in ``d`` coordinates in which all matrices are diagonal.

    A component that is not used has ``level`` minus infinity and zeros elsewhere.
    """

    curvature: FloatArray  # D (I, J, d)
    linear_term: FloatArray  # E (I, J, d)
    offset: FloatArray  # a (I, J)
    level: FloatArray  # b (I, J)
    rounding_error: FloatArray  # how far rounding may have moved a - b (I, J)
    linear_term_error: FloatArray  # how far rounding may have moved D and E of the last component (I, d)

    def subset(self, rows: IndexArray) -> DiagonalExponentProblem:
        """Some of the problems."""
        return DiagonalExponentProblem(*(array[rows] for array in self))

    def extended(self, *last: FloatArray) -> DiagonalExponentProblem:
        """With one more active component, whose fields are ``last``; the error of the linear terms is the new one."""
        joined = [np.concatenate([x, y[:, None]], axis=1) for x, y in zip(self[:-1], last[:-1], strict=True)]
        return DiagonalExponentProblem._make([*joined, last[-1]])

    def initial_score(self) -> FloatArray:
        """b_j + E log(N_j / N) at T = N (I, J)."""
        return np.asarray(self.level - self.offset + 0.5 * np.sum(self.curvature, axis=2))

    def least_eigenvalue(self, tau: FloatArray) -> FloatArray:
        """The least eigenvalue of sum tau_j D_j (I,)."""
        return np.asarray(np.min(self.precision_and_force(tau)[0], axis=1) - 1.0)

    def precision_and_force(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The precisions of T, and its means times these."""
        row = tau[:, None, :]
        return 1.0 + (row @ self.curvature)[:, 0], -(row @ self.linear_term)[:, 0]

    def log_normaliser(self, tau: FloatArray) -> FloatArray:
        """Lambda - sum tau_j a_j; infinite where the precision is not positive (I,)."""
        precision, force = self.precision_and_force(tau)
        with np.errstate(all="ignore"):
            value = 0.5 * np.sum(force * force / precision - np.log(precision), axis=1)
        return np.where((precision.min(axis=1) > _LEAST_PRECISION) & np.isfinite(value), value, np.inf)

    def derivatives(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient of ``log_normaliser`` (I, J), and its Hessian with rows and columns times tau (I, J, J)."""
        precision, force = self.precision_and_force(tau)
        inverse, mean = 1.0 / precision, force / precision
        gradient = (self.curvature @ (-0.5 * (inverse + mean * mean))[:, :, None])[:, :, 0]
        gradient -= (self.linear_term @ mean[:, :, None])[:, :, 0]
        scaled = self.curvature * tau[:, :, None]
        first = scaled * inverse[:, None, :]
        second = (self.linear_term * tau[:, :, None] + scaled * mean[:, None, :]) * np.sqrt(inverse)[:, None, :]
        return gradient, 0.5 * first @ first.transpose(0, 2, 1) + second @ second.transpose(0, 2, 1)


class FullExponentProblem(NamedTuple):
    """Problems with matrices of any kind; methods as in ``DiagonalExponentProblem``."""

    curvature: FloatArray  # D (I, J, d, d)
    linear_term: FloatArray  # E (I, J, d)
    offset: FloatArray  # a (I, J)
    level: FloatArray  # b (I, J)

    def subset(self, rows: IndexArray) -> FullExponentProblem:
        """Some of the problems."""
        if len(rows) == len(self.level):
            return self
        return FullExponentProblem(*(array[rows] for array in self))

    def initial_score(self) -> FloatArray:
        """b_j + E log(N_j / N) at T = N (I, J)."""
        return np.asarray(self.level - self.offset + 0.5 * np.trace(self.curvature, axis1=2, axis2=3))

    def least_eigenvalue(self, tau: FloatArray) -> FloatArray:
        """The least eigenvalue of sum tau_j D_j (I,)."""
        return np.asarray(np.linalg.eigvalsh(self._sum(tau))[:, 0])

    def inverse_factors(self, tau: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The inverses of the lower factors of the precisions of T, and which of these are positive."""
        precision = self._sum(tau) + np.eye(self.linear_term.shape[2])
        finite = np.asarray(np.isfinite(precision).all(axis=(1, 2)))
        factors, good = cholesky_factors(np.where(finite[:, None, None], precision, np.eye(precision.shape[1])))
        good &= finite & (np.diagonal(factors, axis1=1, axis2=2).min(axis=1) >= 1e-4)
        return np.asarray(np.linalg.inv(factors)), good

    def log_normaliser(self, tau: FloatArray) -> FloatArray:
        """Lambda - sum tau_j a_j; infinite where the precision is not positive (I,)."""
        root, good = self.inverse_factors(tau)
        whitened = (root @ self._force(tau))[:, :, 0]
        ends = np.log(np.diagonal(root, axis1=1, axis2=2))
        return np.where(good, 0.5 * np.sum(whitened * whitened, axis=1) + ends.sum(axis=1), np.inf)

    def derivatives(self, tau: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The gradient of ``log_normaliser`` and its scaled Hessian."""
        root, _ = self.inverse_factors(tau)
        across = root.transpose(0, 2, 1)
        mean = -(across @ (root @ self._force(tau)))[:, :, 0]
        transformed_curvature = root[:, None] @ self.curvature @ across[:, None]
        curved = (self.curvature @ mean[:, None, :, None])[..., 0]
        half = self.linear_term + 0.5 * curved
        gradient = -0.5 * np.trace(transformed_curvature, axis1=2, axis2=3) - (half @ mean[:, :, None])[:, :, 0]
        flat = (transformed_curvature * tau[:, :, None, None]).reshape(*tau.shape, -1)
        forces = ((self.linear_term + curved) * tau[:, :, None]) @ across
        return gradient, 0.5 * flat @ flat.transpose(0, 2, 1) + forces @ forces.transpose(0, 2, 1)

    def _force(self, tau: FloatArray) -> FloatArray:
        """sum tau_j E_j as columns (I, d, 1)."""
        return np.asarray((tau[:, None, :] @ self.linear_term).transpose(0, 2, 1))

    def _sum(self, tau: FloatArray) -> FloatArray:
        """sum tau_j D_j."""
        flat = self.curvature.reshape(*tau.shape, -1)
        return np.asarray((tau[:, None, :] @ flat).reshape(len(tau), *self.curvature.shape[2:]))


ExponentProblem = DiagonalExponentProblem | FullExponentProblem


@np.errstate(over="ignore", invalid="ignore")  # epsilons near 1e300; what is not finite is no direction
def solve(
    problem: ExponentProblem, theta: float | None = None, start: FloatArray | None = None,
    sufficient: FloatArray | None = None, expired: Callable[[], bool] = never_expired,
) -> FloatArray:
    """The exponents; with ``theta`` their sum is held at it and ``start`` must be feasible.

    Infeasible rows of ``start`` start afresh. A row stops as soon as F is at most its ``sufficient`` value, all of them
    once the time has ``expired``.
    """
    used = np.isfinite(problem.level)
    tau = _start_at_component(problem, used) if start is None else np.where(used, start, 0.0)
    values = objective(problem, tau, theta)
    infeasible = np.flatnonzero(~np.isfinite(values))
    if start is not None and infeasible.size:
        tau[infeasible] = _start_at_component(problem.subset(infeasible), used[infeasible])
        values[infeasible] = objective(problem.subset(infeasible), tau[infeasible], theta)
    goal = np.full(len(tau), -np.inf) if sufficient is None else sufficient
    running = np.flatnonzero(used.any(axis=1) & np.isfinite(values) & (values > goal))
    for _ in range(_NEWTON_STEPS):
        if not running.size or expired():
            break
        remainder, old = problem.subset(running), tau[running]
        relative, diagonal, decrement = _newton_direction(remainder, old, theta)
        shifted, reached = _line_search(remainder, old, values[running], relative, diagonal, decrement, theta)
        tau[running], values[running] = shifted, reached
        # small entries that want to grow may still gain what Newton's model does not show
        hidden = np.sum(old * np.expm1(np.clip(relative, 0.0, 60.0)) * (relative > 1.0), axis=1)
        going = ((decrement > _DECREMENT) | (hidden > _DECREMENT)) & (reached > goal[running])
        running = running[going & (shifted.sum(axis=1) < _LARGEST_THETA) & np.any(shifted != old, axis=1)]
    return tau


def interior_start(problem: ExponentProblem, theta: float, feasible: FloatArray) -> FloatArray:
    """Feasible exponents of sum ``theta``, every active component in use, as far as may be from the shares
    ``feasible``, which are known to leave the precision positive."""
    used = np.isfinite(problem.level)
    even = used / np.maximum(used.sum(axis=1, keepdims=True), 1)
    tau = theta * feasible
    open_rows = np.arange(len(tau))
    for part in (0.9, 0.5, 0.1, 1e-2, 1e-4, 1e-6):
        trial = theta * ((1.0 - part) * feasible + part * even)
        good = np.isfinite(objective(problem, trial, theta))[open_rows]
        tau[open_rows[good]] = trial[open_rows[good]]
        open_rows = open_rows[~good]
    return tau


def _start_at_component(problem: ExponentProblem, used: BoolArray) -> FloatArray:
    """Shares as at T = N, small enough that the precision stays above one half."""
    score = np.where(used, problem.initial_score(), -np.inf)
    top = np.max(score, axis=1, keepdims=True, initial=-1e300)
    share = np.exp(np.maximum(score - top, -60.0)) * used
    share *= np.exp(np.clip(top, -60.0, 0.0)) / np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    scale = np.minimum(1.0, 0.5 / np.maximum(-problem.least_eigenvalue(share), 1e-300))
    return np.asarray(share * scale[:, None])


def objective(problem: ExponentProblem, tau: FloatArray, theta: float | None) -> FloatArray:
    """F (I,); infinite where tau is not feasible."""
    total = tau.sum(axis=1)
    with np.errstate(all="ignore"):
        slope = np.where(tau > 0, problem.offset - problem.level + np.log(tau), 0.0)
        value = np.sum(tau * slope, axis=1) + problem.log_normaliser(tau)
        value -= (1.0 + total) * np.log1p(total) if theta is None else theta * np.log(theta)
    return np.where(np.isfinite(value), value, np.inf)


def _newton_direction(
    problem: ExponentProblem, tau: FloatArray, theta: float | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Newton's step divided by tau, the second derivative of Lambda for each entry, and twice what the step should
    gain."""
    used = tau > 0
    total = tau.sum(axis=1, keepdims=True)
    gradient, hessian = problem.derivatives(tau)
    with np.errstate(all="ignore"):
        gradient = gradient + problem.offset - problem.level + np.log(tau)
    gradient = np.where(used, gradient - (np.log1p(total) if theta is None else 0.0), 0.0)
    index = np.arange(tau.shape[1])
    diagonal = hessian[:, index, index]
    hessian[:, index, index] = diagonal * (1.0 + 1e-13) + np.where(used, tau, 1.0)
    right = -tau * gradient
    if theta is None:
        hessian -= tau[:, :, None] * tau[:, None, :] / (1.0 + total)[:, :, None]
        relative = _solved(hessian, right[:, :, None])[:, :, 0]
    else:
        both = _solved(hessian, np.stack([right, tau], axis=2))
        shift = np.sum(tau * both[:, :, 0], axis=1) / np.sum(tau * both[:, :, 1], axis=1)
        relative = both[:, :, 0] - shift[:, None] * both[:, :, 1]
    relative = np.where(used & np.isfinite(relative), relative, 0.0)
    return relative, diagonal, np.sum(right * relative, axis=1)


def _solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    scale = 1.0 / np.sqrt(np.einsum("ijj->ij", matrix))
    try:
        answer = np.linalg.solve(matrix * scale[:, :, None] * scale[:, None, :], right * scale[:, :, None])
    except np.linalg.LinAlgError:
        answer = right * scale[:, :, None]
    return np.asarray(answer * scale[:, :, None])


def _line_search(
    problem: ExponentProblem, tau: FloatArray, values: FloatArray, relative: FloatArray, diagonal: FloatArray,
    decrement: FloatArray, theta: float | None,
) -> tuple[FloatArray, FloatArray]:
    """Shorten the step until the value falls by its share.

    The step stays on Newton's line, short of zero, and lets theta grow tenfold at most. Only entries too small to curve
    the normal, by ``diagonal``, leave it: they shrink exponentially.
    """
    best, reached = tau.copy(), values.copy()
    light = diagonal * np.minimum(relative, 0.0) ** 2 < 0.1
    total = tau.sum(axis=1)
    fall = np.max(np.where(light, 0.0, -relative), axis=1)
    rise = np.sum(tau * relative, axis=1) / (1.0 + total)
    step = np.minimum(1.0, np.minimum(0.9 / np.maximum(fall, 1e-300), _GROWTH / np.maximum(rise, 1e-300)))
    open_rows = np.flatnonzero(decrement > 0)
    for _ in range(_LINE_SEARCH_STEPS):
        if not open_rows.size:
            break
        remainder = problem.subset(open_rows) if len(open_rows) < len(tau) else problem
        move = step[open_rows, None] * relative[open_rows]
        move = np.where(light[open_rows] & (move < 0), np.expm1(np.clip(move, -30.0, 0.0)), move)
        trial = tau[open_rows] * (1.0 + move)
        if theta is not None:
            trial *= theta / trial.sum(axis=1, keepdims=True)
        new = objective(remainder, trial, theta)
        good = new <= values[open_rows] - 1e-4 * step[open_rows] * decrement[open_rows]
        best[open_rows[good]], reached[open_rows[good]] = trial[good], new[good]
        step[open_rows] *= 0.4
        open_rows = open_rows[~good]
    return best, reached


def diagonal_solution(
    problem: DiagonalExponentProblem, tau: FloatArray, theta: float | None, standardised_mean: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log bounds (I,), and means and sigmas (I, d) of the tilted normals in the units of the components of p.

    Every rounding is outward: the bounds are rounded up, and sigmas widened so that rounding cannot break a bound.
    ``standardised_mean`` (I, d) is the size of the stored means over the sigmas of the components of p: storing a mean
    rounds it by that much.
    """
    active = tau.shape[1]
    total = tau.sum(axis=1)
    precision, force = problem.precision_and_force(tau)
    row = tau[:, None, :]
    size = 1.0 + (row @ np.abs(problem.curvature))[:, 0]
    force_size = (row @ np.abs(problem.linear_term))[:, 0]
    unit = 2 * (active + 8) * UNIT_ROUNDOFF
    mean, sigma = force / precision, 1.0 / np.sqrt(precision)
    remainder_error = tau[:, -1:] * problem.linear_term_error
    precision_error = (unit * size + remainder_error) / precision
    mean_error = (unit * force_size + remainder_error) / precision + np.abs(mean) * (precision_error + unit)
    lost = np.abs(mean) * (2 * mean_error + np.abs(mean) * precision_error) + mean_error * mean_error
    quadratic = np.sum(precision * lost, axis=1)
    mean_error += 4 * UNIT_ROUNDOFF * (standardised_mean + np.abs(mean))
    widen = 1e-13 + precision_error + mean_error / sigma
    with np.errstate(all="ignore"):
        logs = np.where(tau > 0, np.log(tau), 0.0)
        level = np.where(tau > 0, problem.level, 0.0)
        parts = np.sum(tau * (np.abs(problem.offset) + np.abs(level) + np.abs(logs)), axis=1)
        parts += 0.5 * np.sum(force * force / precision + np.abs(np.log(precision)), axis=1)
        parts += (1.0 + total) * np.log1p(total)
        slack = 4 * (active + mean.shape[1] + 8) * UNIT_ROUNDOFF * parts + 3 * widen.sum(axis=1) + quadratic
        slack += np.sum(tau * problem.rounding_error, axis=1)
    usable = precision_error.max(axis=1) <= 0.2  # theorem 8.6
    return np.where(usable, objective(problem, tau, theta) + slack, np.inf), mean, sigma * (1.0 + widen)


def cholesky_factors(matrices: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Lower Cholesky factors, and which of the matrices have one; the identity stands for the others."""
    try:
        return np.asarray(np.linalg.cholesky(matrices), np.float64), np.ones(len(matrices), dtype=bool)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.eye(matrices.shape[1])[None], np.zeros(1, dtype=bool)
    half = len(matrices) // 2
    first, second = cholesky_factors(matrices[:half]), cholesky_factors(matrices[half:])
    return np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
