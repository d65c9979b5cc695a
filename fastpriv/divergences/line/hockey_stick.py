"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: ``p``, ``q`` the densities of P and Q, ``L = log(p/q)``, ``H_a(P||Q) = sup_E P(E) - a Q(E)
= integral of (p - a q)^+`` with ``a = e^epsilon`` (Ngo, Ostman and Graell i Amat 2024, section I).

The line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs with a Cauchy bound of
the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences of normal
distribution functions between them. What a crossing's enclosure may hide is of second order in its width and goes into
the upper bound, as does every rounding. Where doubles cancel, the sums are done again in double-double arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...distributions import GaussianMixture
from ...estimate import Estimate, Unit
from ...kernels import _hockey

__all__ = ["hockey_stick_divergence", "log_hockey_stick_divergence", "total_variation"]

FloatArray = NDArray[np.float64]
# sums in doubles are accepted below this relative width; double-doubles otherwise
DOUBLE_WIDTH = 5e-13


def hockey_stick_divergence(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate:
    """H_{e^epsilon}(P||Q), all of ``epsilon`` from one analysis of the pair."""
    rows, grid, method, cost = _curve(p, q, epsilon, logs=False)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def log_hockey_stick_divergence(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate:
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300."""
    rows, grid, method, cost = _curve(p, q, epsilon, logs=True)
    return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)


def total_variation(p: GaussianMixture, q: GaussianMixture) -> Estimate:
    """sup_E |P(E) - Q(E)| = H_1(P||Q)."""
    return hockey_stick_divergence(p, q, 0.0)


def _curve(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool
) -> tuple[FloatArray, FloatArray, str, Any]:
    grid = np.asarray(epsilon, dtype=np.float64)
    flat = np.ascontiguousarray(grid).reshape(-1)

    def rows_at(epsilon: FloatArray) -> tuple[FloatArray, Any]:
        found: tuple[FloatArray, Any] = _hockey.pair_curve(
            p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas, epsilon, DOUBLE_WIDTH, logs
        )
        return found

    rows, (evaluations, extended, pieces) = with_gaps(rows_at, flat, p.mass_gap, q.mass_gap)
    method = "monotone pieces, double-double sums" if extended else "monotone pieces, double sums"
    cost = {"evaluations": evaluations, "pieces": pieces, "double_double": extended}
    return rows, grid, method, cost


def with_gaps(
    rows: Callable[[FloatArray], tuple[FloatArray, Any]], epsilon: FloatArray, gap_p: float, gap_q: float
) -> tuple[FloatArray, Any]:
    """The rows when weights miss the sum 1 by these gaps: the bounds hold for all measures whose densities are within
    1 +- gap of those given, the normalised ones among them.

    (1 + g) p - a (1 - h) q = (1 + g) (p - a' q), so H moves by at most a factor 1 +- g and a shift of epsilon by
    log((1 + g) / (1 - h)): a relative change of p and q over the set itself, however small H is. Below epsilon = 0, H
    grows by at most 1 - a'.
    """
    if not (gap_p or gap_q):
        return rows(epsilon)
    shift = (gap_p + gap_q) * (1 + 1e-8)
    near, far = np.nextafter(epsilon - shift, -np.inf), np.nextafter(epsilon + shift, np.inf)
    all_rows, cost = rows(np.concatenate([epsilon, np.maximum(near, 0.0), far]))
    found, above, below = np.split(all_rows, 3)
    found, over = found.copy(), np.where(near < 0.0, 2.0 * shift, 0.0)
    found[:, 1] = np.minimum(found[:, 1], below[:, 1] * (1 - gap_p) * (1 - 1e-15))
    found[:, 2] = np.minimum(np.maximum(found[:, 2], above[:, 2] * (1 + gap_p) * (1 + 1e-15) + over), 1.0)
    with np.errstate(divide="ignore"):
        upper = np.logaddexp(above[:, 5] + gap_p, np.log(over))
    for column, own, side in ((4, below[:, 4] - 1.1 * gap_p, -1.0), (5, upper, 1.0)):
        rounded = own + side * 2.0**-51 * np.where(np.isfinite(own), np.abs(own), 0.0)
        found[:, column] = (np.minimum if side < 0 else np.maximum)(found[:, column], rounded)
    found[:, 5] = np.minimum(found[:, 5], 0.0)
    return found, cost


def curve_estimate(rows: FloatArray, grid: FloatArray, unit: Unit, method: str, cost: Any) -> Estimate:
    value, lower, upper = (rows[:, column].reshape(grid.shape) for column in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)
