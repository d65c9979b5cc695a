"""Which components of q enter the problem of a component of p, in coordinates in which all precisions are diagonal.

Notation: N_i = N(m_i, diag s_i^2) the components of p, e^c_j N(n_j, diag t_j^2) those of e^epsilon q. A few q's all enter.
Of many, the heaviest near the tilted normal enter each by itself and the rest as one: for shares lambda,
sum e^c_j N_j >= prod (e^c_j N_j / lambda_j)^lambda_j, again a normal curve times a number. The shares are those of the
components at the tilted normal, so slots and exponents are found in turn; the best round is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .exponents import Problem, Solution, finish, solve

__all__ = ["Tilts", "diagonal_tilts"]

FloatArray = NDArray[np.float64]
_UNIT = 2.0**-53
_SLOTS = 48
_ROUNDS = 4
_TILE = 2**21


@dataclass(frozen=True)
class Tilts:
    """One tilted normal for each component of p: N_i bounded by e^log_bound times it where it counts."""

    log_bounds: FloatArray  # (k,)
    means: FloatArray  # (k, d)
    sigmas: FloatArray  # (k, d)
    exponents: FloatArray  # (k,) theta


def diagonal_tilts(
    p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray], theta: float | None = None,
    shares: FloatArray | None = None,
) -> Tilts:  # fmt: skip
    """The tilted normals of p = (means, sigmas) against q = (levels, means, sigmas).

    With ``theta`` the sum of the exponents is held at it; ``shares`` (k, number of q) then says where to start, a
    point where the precision is positive.
    """
    means, sigmas = p
    number, size = means.shape
    slots = _slot_number(number, len(q[0]), size)
    found = Tilts(np.empty(number), np.empty((number, size)), np.empty((number, size)), np.empty(number))
    rows = max(1, _TILE // (slots * size + len(q[0])))
    for first in range(0, number, rows):
        here = slice(first, min(first + rows, number))
        start = None if shares is None else shares[here]
        best, total = _tile(means[here], sigmas[here], q, slots, theta, start)
        found.log_bounds[here], found.exponents[here] = best.log_bound, total
        found.means[here] = means[here] + sigmas[here] * best.mean
        found.sigmas[here] = sigmas[here] * best.sigma
    return found


def _slot_number(number: int, partners: int, size: int) -> int:
    most = int(min(_SLOTS, max(6.0, 3e8 / (number * size))))
    return partners if partners <= most + 1 else most


def _tile(
    means: FloatArray, sigmas: FloatArray, q: tuple[FloatArray, FloatArray, FloatArray], slots: int,
    theta: float | None, shares: FloatArray | None,
) -> tuple[Solution, FloatArray]:  # fmt: skip
    levels, centres, widths = q
    reach = np.abs(means) / sigmas
    if slots == len(levels):
        problem = _gathered(means, sigmas, q, np.broadcast_to(np.arange(slots), (len(means), slots)))
        tau = solve(problem, theta, None if shares is None else theta * shares)
        return finish(problem, tau, theta, reach), tau.sum(axis=1)
    screen = _Screen(levels, centres, widths)
    best: Solution | None = None
    mean, sigma = means, sigmas
    for _ in range(_ROUNDS):
        weights = screen.weights(mean, sigma)
        problem = screen.problem(means, sigmas, q, weights, slots)
        tau = solve(problem, theta)
        new = finish(problem, tau, theta, reach)
        if best is None:
            best, total = new, tau.sum(axis=1)
        else:
            good = new.log_bound < best.log_bound
            gain = np.max(np.where(good, best.log_bound - new.log_bound, 0.0))
            keep = good[:, None]
            best = Solution(
                tau, np.where(good, new.log_bound, best.log_bound), np.where(keep, new.mean, best.mean),
                np.where(keep, new.sigma, best.sigma),
            )  # fmt: skip
            total = np.where(good, tau.sum(axis=1), total)
            if gain < 0.02:
                break
        mean, sigma = means + sigmas * best.mean, sigmas * best.sigma
    assert best is not None
    return best, total


def _gathered(
    means: FloatArray, sigmas: FloatArray, q: tuple[FloatArray, FloatArray, FloatArray], chosen: NDArray[np.intp]
) -> Problem:
    """One slot for each chosen component; those out of range of doubles are left out."""
    levels, centres, widths = q
    with np.errstate(all="ignore"):
        width, own = widths[chosen], sigmas[:, None, :]
        ratio = own / width
        apart = (centres[chosen] - means[:, None, :]) / width
        curvature = (width - own) / width * (1.0 + ratio)
        pull = ratio * apart
        logs = np.where(np.abs(curvature) < 0.5, 0.5 * np.log1p(-np.clip(curvature, -1, 0.9)), np.log(ratio))
        offset = 0.5 * np.sum(apart * apart, axis=2) - np.sum(logs, axis=2)
        level = levels[chosen]
        sure = np.isfinite(offset) & np.isfinite(curvature).all(axis=2) & np.isfinite(pull).all(axis=2)
        sure &= (np.abs(curvature).max(axis=2) < 1e100) & (np.abs(pull).max(axis=2) < 1e100) & np.isfinite(level)
        fuzz = (apart.shape[2] + 8) * _UNIT * (0.5 * np.sum(apart * apart, axis=2) + np.sum(np.abs(logs), axis=2))
    fuzz += 8 * _UNIT * np.sum(np.abs(curvature), axis=2, where=sure[:, :, None], initial=0.0)
    deep = sure[:, :, None]
    return Problem(
        np.where(deep, curvature, 0.0), np.where(deep, pull, 0.0), np.where(sure, offset, 0.0),
        np.where(sure, level, -np.inf), np.where(sure, fuzz, 0.0), np.zeros_like(means),
    )  # fmt: skip


class _Screen:
    """All components of q in natural parameters about a common centre: sums over all of them are matrix products."""

    def __init__(self, levels: FloatArray, centres: FloatArray, widths: FloatArray) -> None:
        with np.errstate(all="ignore"):
            self.centre = np.median(centres, axis=0)
            moved = centres - self.centre
            self.precision = 1.0 / (widths * widths)
            self.pull = moved * self.precision
            self.square = np.sum(moved * self.pull, axis=1)
            self.logs = np.sum(np.log(widths), axis=1)
            self.levels = levels
        self.usable = np.isfinite(self.square) & np.isfinite(self.precision).all(axis=1)

    def weights(self, mean: FloatArray, sigma: FloatArray) -> FloatArray:
        """Expected log of each component at the normals (mean, sigma): (I, J)."""
        moved = mean - self.centre
        with np.errstate(all="ignore"):
            square = (sigma * sigma + moved * moved) @ self.precision.T - 2.0 * (moved @ self.pull.T) + self.square
            found = self.levels - self.logs - 0.5 * square
        return np.where(np.isfinite(found), found, -1e300)

    def problem(
        self, means: FloatArray, sigmas: FloatArray, q: tuple[FloatArray, FloatArray, FloatArray], weights: FloatArray,
        slots: int,
    ) -> Problem:  # fmt: skip
        """The heaviest ``slots - 1`` by themselves, the rest pooled by their weights."""
        chosen = np.argpartition(-weights, slots - 2, axis=1)[:, : slots - 1]
        raw = _gathered(means, sigmas, q, chosen)
        rest = weights.copy()
        np.put_along_axis(rest, chosen, -np.inf, axis=1)
        rest[:, ~self.usable] = -np.inf
        top = rest.max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            share = np.exp(np.maximum(rest - top, -745.0)) * np.isfinite(rest)
            share /= share.sum(axis=1, keepdims=True)
            logs = np.where(share > 0, np.log(share), 0.0)
            moved = means - self.centre
            precision, pull = share @ self.precision, share @ self.pull
            square, inner = share @ self.square, sigmas * precision
            pulled = sigmas * pull - inner * moved
            rounding = (len(self.levels) + 8) * _UNIT
            curvature = 1.0 - sigmas * inner
            level = share @ self.levels - np.sum(share * logs, axis=1)
            parts = square + np.sum(2 * np.abs(moved * pull) + moved * moved * precision, axis=1)
            offset = 0.5 * (square + np.sum(moved * (moved * precision - 2 * pull), axis=1))
            widths = share @ self.logs - np.sum(np.log(sigmas), axis=1)
            offset += widths
            bulk = share @ np.abs(self.logs) + np.sum(np.abs(np.log(sigmas)), axis=1)
            bulk += share @ np.abs(self.levels) + np.sum(np.abs(share * logs), axis=1)
            fuzz = rounding * (parts + bulk)
            # an error e of the precision is an error e of D and e |moved| of E
            error = 2 * rounding * (np.abs(sigmas * pull) + inner * np.abs(moved) + sigmas * inner)
        good = np.isfinite(offset + fuzz) & np.isfinite(level) & np.isfinite(curvature + pulled).all(axis=1)
        good &= fuzz < 1e-5
        keep = good[:, None]
        return Problem(
            np.concatenate([raw.curvature, np.where(keep, curvature, 0.0)[:, None, :]], axis=1),
            np.concatenate([raw.pull, np.where(keep, pulled, 0.0)[:, None, :]], axis=1),
            np.concatenate([raw.offset, np.where(good, offset, 0.0)[:, None]], axis=1),
            np.concatenate([raw.level, np.where(good, level, -np.inf)[:, None]], axis=1),
            np.concatenate([raw.fuzz, np.where(good, fuzz, 0.0)[:, None]], axis=1),
            np.where(keep, error, 0.0),
        )  # fmt: skip
