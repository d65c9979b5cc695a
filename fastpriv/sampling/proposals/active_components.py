"""Which components of q enter the problem of a component of p, where all precisions are diagonal.

Notation: N_i = N(m_i, diag s_i^2) the components of p, e^c_j N(n_j, diag t_j^2) those of e^epsilon q. A few all
enter. Of many, the heaviest near the tilted normal enter each by itself and the rest as one: for shares lambda,
sum e^c_j N_j >= prod (e^c_j N_j / lambda_j)^lambda_j, again a normal curve times a number. The shares are those of the
components at the tilted normal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...kernels import _product
from ...numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IndexArray
from ..options import never_expired
from .exponents import DiagonalProblem, finish, interior, solve

__all__ = ["DiagonalPair", "Tilts", "by_component", "foremost"]

_SLOTS = 64
_TILE = 2**21
_WORK = 5e7  # components of p times the cube of the slots
_SLIVER = 0.01  # part of a bound whose components get no second look
_PASS = 4_000_000  # pairs of components that one pass looks at without a second thought


@dataclass(frozen=True)
class Tilts:
    """One tilted normal for each component of p: N_i bounded by e^log_bound times it where it counts."""

    log_bounds: FloatArray  # (k,)
    means: FloatArray  # (k, d)
    spreads: FloatArray  # sigmas (k, d) or covariances (k, d, d)
    exponents: FloatArray  # tau by component of q (k, J), or their sums (k, 1)
    tau: FloatArray  # tau by slot (k, slots)

    def put(self, rows: IndexArray, other: Tilts) -> None:
        """Replace some components."""
        for mine, new in zip(vars(self).values(), vars(other).values(), strict=True):
            mine[rows] = new

    def replaced(self, rows: IndexArray, other: Tilts) -> Tilts:
        """A copy with some components replaced."""
        found = Tilts(*(array.copy() for array in vars(self).values()))
        found.put(rows, other)
        return found

    def part(self, rows: IndexArray | BoolArray) -> Tilts:
        """Some of the components."""
        return Tilts(*(array[rows] for array in vars(self).values()))


class DiagonalPair:
    """Problems of all components of p = (means, sigmas) against q = (levels, means, sigmas), solved in tiles."""

    def __init__(
        self, p: tuple[FloatArray, FloatArray], q: tuple[FloatArray, FloatArray, FloatArray],
        theta: float | None = None, expired: Callable[[], bool] = never_expired,
    ) -> None:  # fmt: skip
        self.means, self.sigmas = p
        self.q = q
        self.theta, self.expired = theta, expired
        number, size = self.means.shape
        self.slots = _slot_number(number, len(q[0]), size)
        self.screen = _Screen(*q) if self.slots < len(q[0]) else None
        self.chosen = np.full((number, self.slots - 1), -1, dtype=np.intp)
        self.at = p
        self.lean = np.full(number, self.screen is not None and number * len(q[0]) > _PASS)  # rows that pool nothing
        self.base: tuple[IndexArray, FloatArray] | None = None  # feasible shares: components of q, and how much

    @property
    def pooled(self) -> bool:
        """Whether some components of q enter only together."""
        return self.screen is not None

    def choose(self, tilts: Tilts, rows: IndexArray) -> None:
        """Look for the slots of ``rows`` at these tilted normals; exponents found before lose their meaning."""
        self.at = (tilts.means, tilts.spreads)
        self.chosen[rows] = -1
        self.lean[rows] = False

    def run(
        self, shares: FloatArray, start: FloatArray | None = None, rows: IndexArray | None = None,
        floor: FloatArray | None = None,
    ) -> Tilts:  # fmt: skip
        """Solve for components ``rows`` of p with levels raised by ``shares``, log s_ij - log w_i, (k, J) or (k, 1).

        ``start`` are exponents found before, ``floor`` log bounds that are good enough; both have a row for each of
        ``rows``. What is not solved before it is ``expired`` has the bound 0 of N_i itself, and none for a fixed theta.
        """
        rows = np.arange(len(self.means)) if rows is None else rows
        number = len(rows)
        found = Tilts(
            np.full(number, 0.0 if self.theta is None else np.inf), self.means[rows], self.sigmas[rows],
            np.zeros((number, shares.shape[1])), np.zeros((number, self.slots)),
        )  # fmt: skip
        for here in self._tiles(rows):
            if self.expired():
                break
            now = rows[here]
            problem, share = self._problem(now, shares[now])
            begin, enough = (None if x is None else x[here] for x in (start, floor))
            if self.theta is not None and begin is None:
                begin = interior(problem, self.theta, self._based(now))
            tau = solve(problem, self.theta, begin, enough, self.expired)
            best = finish(problem, tau, self.theta, np.abs(self.means[now]) / self.sigmas[now])
            found.log_bounds[here], found.tau[here] = best.log_bound, tau
            found.means[here] = self.means[now] + self.sigmas[now] * best.mean
            found.spreads[here] = self.sigmas[now] * best.sigma
            if shares.shape[1] == 1:
                found.exponents[here, 0] = tau.sum(axis=1)
            elif share is None:
                found.exponents[here] = tau
            else:
                share *= tau[:, -1:]
                np.put_along_axis(share, self.chosen[now], tau[:, :-1], axis=1)
                found.exponents[here] = share
        return found

    def exponents(self, tilts: Tilts, rows: IndexArray) -> FloatArray:
        """Exponents of ``rows`` by component of q; without those that are pooled where only sums are kept."""
        return by_component(tilts, rows, self.chosen, len(self.q[0]))

    def _tiles(self, rows: IndexArray) -> Iterator[IndexArray]:
        """Places of rows that go together, those that pool nothing by themselves."""
        for lean in (False, True):
            places = np.flatnonzero(self.lean[rows] == lean)
            open_slots = bool(lean and places.size and self.chosen[rows[places[0]], 0] >= 0)
            width = self.slots * self.means.shape[1] + (0 if open_slots else len(self.q[0]))
            length = max(1, _TILE // width)
            for first in range(0, len(places), length):
                yield places[first : first + length]

    def _based(self, rows: IndexArray) -> FloatArray:
        assert self.base is not None
        index, parts = self.base[0][rows], self.base[1][rows]
        base = np.zeros((len(rows), self.slots))
        if self.screen is None:
            np.put_along_axis(base, index, parts, axis=1)
        else:
            base[:, :-1] = np.sum((self.chosen[rows][:, :, None] == index[:, None, :]) * parts[:, None, :], axis=2)
        return base

    def _problem(self, here: IndexArray, shares: FloatArray) -> tuple[DiagonalProblem, FloatArray | None]:
        levels, centres, widths = self.q
        means, sigmas = self.means[here], self.sigmas[here]
        if self.screen is None:
            every = np.broadcast_to(np.arange(self.slots), (len(here), self.slots))
            return _gathered(means, sigmas, levels + shares, centres, widths, every), None
        lean, known = self.lean[here[0]], self.chosen[here[0], 0] >= 0
        if lean and known:
            return self._lean(here, shares), None
        weights = self.screen.weights(self.at[0][here], self.at[1][here]) + shares
        if self.chosen[here[0], 0] < 0:
            if self.base is not None:
                np.put_along_axis(weights, self.base[0][here], 1e299, axis=1)
            place = len(levels) - self.slots + 1
            self.chosen[here] = np.argpartition(weights, place, axis=1)[:, place:]
        if lean:
            return self._lean(here, shares), None
        chosen = self.chosen[here]
        weights = np.where(weights > 1e298, -1e299, weights)
        total = np.broadcast_to(levels + shares, weights.shape)
        raw = _gathered(means, sigmas, np.take_along_axis(total, chosen, axis=1), centres, widths, chosen)
        np.put_along_axis(weights, chosen, -np.inf, axis=1)
        return self.screen.pooled(means, sigmas, total, weights, raw)


    def _lean(self, here: IndexArray, shares: FloatArray) -> DiagonalProblem:
        """The slots alone; the last one is empty."""
        levels, centres, widths = self.q
        chosen = self.chosen[here]
        raw = _gathered(self.means[here], self.sigmas[here], levels[chosen] + shares, centres, widths, chosen)
        after = {2: ((0, 0), (0, 1)), 3: ((0, 0), (0, 1), (0, 0))}
        return DiagonalProblem(
            np.pad(raw.curvature, after[3]), np.pad(raw.pull, after[3]), np.pad(raw.offset, after[2]),
            np.pad(raw.level, after[2], constant_values=-np.inf), np.pad(raw.rounding_error, after[2]), raw.pull_error,
        )  # fmt: skip


def by_component(tilts: Tilts, rows: IndexArray, chosen: IndexArray, size: int) -> FloatArray:
    """Exponents of ``rows`` by component of q, from the slots where only their sums are kept."""
    if tilts.exponents.shape[1] == size:
        return tilts.exponents[rows]
    found = np.zeros((len(rows), size))
    slots = np.where(chosen[rows] < 0, 0.0, tilts.tau[rows, : chosen.shape[1]])
    np.put_along_axis(found, np.maximum(chosen[rows], 0), slots, axis=1)
    return found


def foremost(logs: FloatArray, partners: int) -> IndexArray:
    """The components of p that make up nearly all of a bound of these parts, or as many as one pass may look at."""
    order = np.argsort(-logs, kind="stable")
    with np.errstate(all="ignore"):
        parts = np.cumsum(np.exp(logs[order] - logs[order[0]]))
        count = 1 + int(np.searchsorted(parts, (1.0 - _SLIVER) * parts[-1])) if np.isfinite(parts[-1]) else len(logs)
    return np.sort(order[: min(count, max(_SLOTS, _PASS // partners))])


def _slot_number(number: int, partners: int, size: int) -> int:
    most = int(min(_SLOTS, max(6.0, min(3e8 / (number * size), (_WORK / number) ** (1 / 3)))))
    return partners if partners <= most + 1 else most


def _gathered(
    means: FloatArray, sigmas: FloatArray, levels: FloatArray, centres: FloatArray, widths: FloatArray,
    chosen: IndexArray,
) -> DiagonalProblem:  # fmt: skip
    """One slot for each chosen component; those out of range of doubles are left out. ``levels`` are theirs."""
    with np.errstate(all="ignore"):
        width, own = widths[chosen], sigmas[:, None, :]
        ratio = own / width
        apart = (centres[chosen] - means[:, None, :]) / width
        curvature = (width - own) / width * (1.0 + ratio)
        pull = ratio * apart
        logs = np.where(np.abs(curvature) < 0.5, 0.5 * np.log1p(-np.clip(curvature, -1, 0.9)), np.log(ratio))
        offset = 0.5 * np.sum(apart * apart, axis=2) - np.sum(logs, axis=2)
        sure = np.isfinite(offset) & np.isfinite(curvature).all(axis=2) & np.isfinite(pull).all(axis=2)
        sure &= (np.abs(curvature).max(axis=2) < 1e100) & (np.abs(pull).max(axis=2) < 1e100) & np.isfinite(levels)
        sizes = 0.5 * np.sum(apart * apart, axis=2) + np.sum(np.abs(logs), axis=2)
        rounding_error = (apart.shape[2] + 8) * UNIT_ROUNDOFF * sizes
    rounding_error += 8 * UNIT_ROUNDOFF * np.sum(np.abs(curvature), axis=2, where=sure[:, :, None], initial=0.0)
    deep = sure[:, :, None]
    return DiagonalProblem(
        np.where(deep, curvature, 0.0), np.where(deep, pull, 0.0), np.where(sure, offset, 0.0),
        np.where(sure, levels, -np.inf), np.where(sure, rounding_error, 0.0), np.zeros_like(means),
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
            square = _product.product(sigma * sigma + moved * moved, self.precision)
            square -= 2.0 * _product.product(moved, self.pull)
            square += self.square
            found = self.levels - self.logs - 0.5 * square
        return np.where(np.isfinite(found), found, -1e300)

    def pooled(
        self, means: FloatArray, sigmas: FloatArray, levels: FloatArray, rest: FloatArray, raw: DiagonalProblem
    ) -> tuple[DiagonalProblem, FloatArray]:
        """One more slot: all that have a finite weight ``rest``, in shares that go with it."""
        rest[:, ~self.usable] = -np.inf
        top = rest.max(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            share = np.exp(np.maximum(rest - top, -745.0)) * np.isfinite(rest)
            share /= share.sum(axis=1, keepdims=True)
            logs = np.where(share > 0, np.log(share), 0.0)
            moved = means - self.centre
            precision, pull = (_product.product(share, part.T) for part in (self.precision, self.pull))
            square, inner = _product.times(share, self.square), sigmas * precision
            pulled = sigmas * pull - inner * moved
            rounding = (len(self.levels) + 8) * UNIT_ROUNDOFF
            curvature = 1.0 - sigmas * inner
            level = np.sum(share * np.where(share > 0, levels, 0.0), axis=1) - np.sum(share * logs, axis=1)
            parts = square + np.sum(2 * np.abs(moved * pull) + moved * moved * precision, axis=1)
            offset = 0.5 * (square + np.sum(moved * (moved * precision - 2 * pull), axis=1))
            widths = _product.times(share, self.logs) - np.sum(np.log(sigmas), axis=1)
            offset += widths
            bulk = _product.times(share, np.abs(self.logs)) + np.sum(np.abs(np.log(sigmas)), axis=1)
            bulk += np.sum(share * (np.abs(np.where(share > 0, levels, 0.0)) + np.abs(logs)), axis=1)
            rounding_error = rounding * (parts + bulk)
            # an error e of the precision is an error e of D and e |moved| of E
            error = 2 * rounding * (np.abs(sigmas * pull) + inner * np.abs(moved) + sigmas * inner)
        good = np.isfinite(offset + rounding_error) & np.isfinite(level) & np.isfinite(curvature + pulled).all(axis=1)
        good &= rounding_error < 1e-5
        keep = good[:, None]
        problem = DiagonalProblem(
            np.concatenate([raw.curvature, np.where(keep, curvature, 0.0)[:, None, :]], axis=1),
            np.concatenate([raw.pull, np.where(keep, pulled, 0.0)[:, None, :]], axis=1),
            np.concatenate([raw.offset, np.where(good, offset, 0.0)[:, None]], axis=1),
            np.concatenate([raw.level, np.where(good, level, -np.inf)[:, None]], axis=1),
            np.concatenate([raw.rounding_error, np.where(good, rounding_error, 0.0)[:, None]], axis=1),
            np.where(keep, error, 0.0),
        )  # fmt: skip
        return problem, share
