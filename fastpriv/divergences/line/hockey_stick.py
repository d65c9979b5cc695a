"""Hockey-stick divergences and total variation of one-dimensional Gaussian mixtures, certified.

Notation: ``p``, ``q`` the densities of P and Q, ``L = log(p/q)``, ``H_a(P||Q) = sup_E P(E) - a Q(E)
= integral of (p - a q)^+`` with ``a = e^epsilon`` (Ngo, Ostman and Graell i Amat 2024, section I).

The line is cut into pieces on which L is proved monotone, from the sign of L' or L'' over discs with a Cauchy bound of
the remainder. Every epsilon then needs only its crossings, one at most a piece, and differences of normal
distribution functions between them. What a crossing's enclosure may hide is of second order in its width and goes into
the upper bound, as does every rounding. Where doubles cancel, the sums are done again in double-double arithmetic.
"""

from __future__ import annotations

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
    rows, (evaluations, extended, pieces) = _hockey.pair_curve(
        p.weights, p.means, p.sigmas, q.weights, q.means, q.sigmas, flat, DOUBLE_WIDTH, logs
    )
    gap = p.mass_gap + q.mass_gap
    if gap:
        widen(rows, flat, gap)
    method = "monotone pieces, double-double sums" if extended else "monotone pieces, double sums"
    cost = {"evaluations": evaluations, "pieces": pieces, "double_double": extended}
    return rows, grid, method, cost


def widen(rows: FloatArray, epsilon: FloatArray, gap: float) -> None:
    """Weights known only to a relative ``gap``: p and e^eps q each may be off by that much over the chosen set."""
    with np.errstate(over="ignore"):
        slack = gap * (2.0 + np.exp(epsilon))
    slack = np.minimum(slack, 1.0)
    rows[:, 1] = np.maximum(rows[:, 1] - slack, 0.0)
    rows[:, 2] = np.minimum(rows[:, 2] + slack, 1.0)
    with np.errstate(divide="ignore"):
        rows[:, 4] = np.minimum(rows[:, 4], np.log(rows[:, 1]))
        rows[:, 5] = np.maximum(rows[:, 5], np.log(rows[:, 2]))


def curve_estimate(rows: FloatArray, grid: FloatArray, unit: Unit, method: str, cost: Any) -> Estimate:
    value, lower, upper = (rows[:, column].reshape(grid.shape) for column in range(3))
    return Estimate(value, lower, upper, kind="certified", unit=unit, method=method, cost=cost)
