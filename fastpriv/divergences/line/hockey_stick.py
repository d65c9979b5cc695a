"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: ``p``, ``q`` the densities of P and Q, ``L = log(p/q)``, ``H_a(P||Q) = sup_E P(E) - a Q(E)
= integral of (p - a q)^+`` with ``a = e^epsilon`` (Ngo, Ostman and Graell i Amat 2024, section I).

The line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs with a Cauchy bound of
the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences of normal
distribution functions between them. What a crossing's enclosure may hide is of second order in its width and goes into
the upper bound, as does every rounding. Where doubles cancel, the sums are done again in double-double arithmetic.
Stretches that stay undecided when their budget is spent widen the upper bound; then ``closed_bounds`` are met with it.
"""

# bounds: tested by enclosures/test_hockey_stick - outward roundings where gaps of sums are taken as factor and shift

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...distributions import GaussianMixture
from ...estimate import Estimate, Unit
from ...kernels import _hockey
from .closed_bounds import by_relative_entropy, by_separated_scales, by_tails
from .quadrature import STOPPED, TIME_SPENT, late

__all__ = ["hockey_stick_divergence", "log_hockey_stick_divergence", "total_variation"]

FloatArray = NDArray[np.float64]
# sums in doubles are accepted below this relative width; double-doubles otherwise
# bound: none - when double-doubles take the place of doubles
DOUBLE_WIDTH = 5e-13
COST = ("evaluations", "double_double", "pieces", "undecided")  # what the kernel counts
_ALIKE, _FEW = 1e6, 200  # sigmas, and components, for which an integral costs little
# bound: none - when closed bounds are tried
_WIDE = 1e-9  # relative width from which on closed bounds are tried


def hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: float = math.inf
) -> Estimate:
    """H_{e^epsilon}(P||Q), all of ``epsilon`` from one analysis of the pair."""
    rows, grid, method, cost = _curve(p, q, epsilon, logs=False, deadline=deadline)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def log_hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, deadline: float = math.inf
) -> Estimate:
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300."""
    rows, grid, method, cost = _curve(p, q, epsilon, logs=True, deadline=deadline)
    return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)


def total_variation(p: GaussianMixture, q: GaussianMixture, *, deadline: float = math.inf) -> Estimate:
    """sup_E |P(E) - Q(E)| = H_1(P||Q)."""
    return hockey_stick_divergence(p, q, 0.0, deadline=deadline)


def _curve(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool, deadline: float
) -> tuple[FloatArray, FloatArray, str, Any]:
    grid = np.asarray(epsilon, dtype=np.float64)
    flat = np.ascontiguousarray(grid).reshape(-1)
    rows, cost, closed = pair_rows(p, q, flat, DOUBLE_WIDTH, logs=logs, deadline=deadline)
    method = "monotone pieces, double-double sums" if cost["double_double"] else "monotone pieces, double sums"
    if closed:
        method += ", closed bounds"
    if "stopped" in cost:
        method += TIME_SPENT
    elif cost["undecided"]:
        method += ", budget spent"
    return rows, grid, method, cost


def pair_rows(
    p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, *, logs: bool,
    deadline: float = math.inf,
) -> tuple[FloatArray, dict[str, Any], bool]:  # fmt: skip
    """Value, lower and upper and their logarithms for each epsilon; the cost; whether closed bounds were needed.

    At the ``deadline``, by ``time.monotonic``, what is left gets brackets that are true, and wide.
    """
    closed = False

    def rows(grid: FloatArray) -> tuple[FloatArray, dict[str, Any]]:
        nonlocal closed
        found, counts = _hockey.pair_curve(
            p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas, grid, width, logs, deadline
        )
        closed = _narrowed(found, p, q, grid, width, logs, deadline)
        cost: dict[str, Any] = dict(zip(COST, counts[:-1], strict=True))
        return found, cost | STOPPED if counts[-1] else cost

    found, cost = with_gaps(rows, epsilon, p.mass_gap, q.mass_gap)
    return found, cost, closed


def with_gaps(
    rows: Callable[[FloatArray], tuple[FloatArray, dict[str, Any]]], epsilon: FloatArray, gap_p: float, gap_q: float
) -> tuple[FloatArray, dict[str, Any]]:
    """The rows when weights miss the sum 1 by these gaps: the bounds hold for all measures whose densities are within
    1 +- gap of those given, the normalised ones among them.

    (1 + g) p - a (1 - h) q = (1 + g) (p - a' q), so H moves by at most a factor 1 +- g and a shift of epsilon by
    log((1 + g) / (1 - h)): a relative change of p and q over the set itself, however small H is.
    """
    if not (gap_p or gap_q):
        return rows(epsilon)
    down = (math.log1p(gap_p) - math.log1p(-gap_q)) * (1 + 1e-15)
    up = (math.log1p(gap_q) - math.log1p(-gap_p)) * (1 + 1e-15)
    shifted = np.nextafter(epsilon - down, -np.inf), np.nextafter(epsilon + up, np.inf)
    all_rows, cost = rows(np.concatenate([epsilon, *shifted]))
    found, above, below = np.split(all_rows, 3)
    found = found.copy()
    found[:, 1] = np.minimum(found[:, 1], below[:, 1] * (1 - gap_p) * (1 - 1e-15))
    found[:, 2] = np.minimum(np.maximum(found[:, 2], above[:, 2] * (1 + gap_p) * (1 + 1e-15)), 1.0)
    found[:, 4] = np.minimum(found[:, 4], below[:, 4] + math.log1p(-gap_p) * (1 + 1e-15))
    found[:, 5] = np.minimum(np.maximum(found[:, 5], above[:, 5] + math.log1p(gap_p) * (1 + 1e-15)), 0.0)
    for column, out in ((4, -1.0), (5, 1.0)):
        finite = np.isfinite(found[:, column])
        found[finite, column] += out * 2.0**-52 * np.abs(found[finite, column])
    found[:, 5] = np.minimum(found[:, 5], 0.0)
    return found, cost


def _narrowed(
    rows: FloatArray, p: GaussianMixture, q: GaussianMixture, epsilon: FloatArray, width: float, logs: bool,
    deadline: float,
) -> bool:  # fmt: skip
    """Meets wide brackets with closed bounds, in place, while there is time; whether there were any."""
    wide = np.flatnonzero(_wide(rows))
    if not wide.size:
        return False
    first, second = (p.weights, p.means, p.sigmas), (q.weights, q.means, q.sigmas)

    def curve(own: Any, other: Any, grid: FloatArray) -> FloatArray:
        arrays = [np.ascontiguousarray(x) for x in (*own, *other)]
        return np.asarray(_hockey.pair_curve(*arrays, np.ascontiguousarray(grid), width, logs, deadline)[0])

    scales = () if late(deadline) else by_separated_scales(first, second, epsilon[wide], curve)
    for found in scales:
        _meet(rows, wide, found)
        if not _wide(rows[wide]).any() or late(deadline):
            break
    left = wide[_wide(rows[wide])]
    closed = not late(deadline)
    if left.size and closed:
        tails = by_tails(first, second, epsilon[left])
        upper = np.minimum(np.nextafter(np.exp(tails), np.inf), 1.0)
        _cut(rows, left, np.where(np.isneginf(tails), 0.0, upper), tails)
    order = np.argsort(epsilon, kind="stable")  # H falls with epsilon
    for column in (2, 5):
        rows[order, column] = np.minimum.accumulate(rows[order, column])
    for column in (1, 4):
        rows[order[::-1], column] = np.maximum.accumulate(rows[order[::-1], column])
    left = wide[_wide(rows[wide], 1e-2) & (epsilon[wide] >= 0.0)]
    lengths = np.concatenate([p.sigmas, q.sigmas])
    if left.size and closed and lengths.max() < _ALIKE * lengths.min() and len(p) + len(q) <= _FEW:
        most = by_relative_entropy(p, q, deadline)
        _cut(rows, left, np.full(left.size, most), np.full(left.size, math.log(most) + 1e-15 if most else -np.inf))
    for k in (0, 3):
        rows[:, k] = np.clip(rows[:, k], rows[:, k + 1], rows[:, k + 2])
    for k in wide[_wide(rows[wide], 1e-2)]:  # no better estimate than the middle where the value is an end
        if rows[k, 2] > 1e-300 and rows[k, 0] in (rows[k, 1], rows[k, 2]):
            rows[k, 0] = (rows[k, 1] + rows[k, 2]) / 2
            rows[k, 3] = np.clip(_log(rows[k, 0]), rows[k, 4], rows[k, 5])
    return closed


def _wide(rows: FloatArray, width: float = _WIDE) -> NDArray[np.bool_]:
    """Whether a bracket is far wider than what rounding explains."""
    lower, upper, tiny = rows[:, 1], rows[:, 2], rows[:, 2] <= 1e-300
    unknown = (rows[:, 5] > -np.inf) & (rows[:, 4] == -np.inf)
    return np.asarray(np.where(tiny, unknown, upper - lower > width * upper), dtype=np.bool_)


def _meet(rows: FloatArray, at: NDArray[np.intp], found: FloatArray) -> None:
    """Both brackets hold: their intersection, with the value of the narrower one."""
    for k in (0, 3):
        old, new = rows[at, k : k + 3], found[:, k : k + 3]
        better = new[:, 2] - new[:, 1] < old[:, 2] - old[:, 1]
        value = np.where(better | ~np.isfinite(old[:, 0]), new[:, 0], old[:, 0])
        lower, upper = np.maximum(old[:, 1], new[:, 1]), np.minimum(old[:, 2], new[:, 2])
        rows[at, k], rows[at, k + 1], rows[at, k + 2] = np.clip(value, lower, upper), lower, upper


def _cut(rows: FloatArray, at: NDArray[np.intp], upper: FloatArray, log_upper: FloatArray) -> None:
    """Meets upper bounds; both columns of a row tell the same."""
    rows[at, 2], rows[at, 5] = np.minimum(rows[at, 2], upper), np.minimum(rows[at, 5], log_upper)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def curve_estimate(rows: FloatArray, grid: FloatArray, unit: Unit, method: str, cost: Any) -> Estimate:
    value, lower, upper = (rows[:, column].reshape(grid.shape) for column in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)
