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

from .. import _validate
from ..distributions import GaussianMixture
from ..estimate import Estimate, Unit
from ..kernels import _hockey

__all__ = ["hockey_stick_divergence", "log_hockey_stick_divergence", "total_variation"]

FloatArray = NDArray[np.float64]
# sums in doubles are accepted below this relative width; double-doubles otherwise
DOUBLE_WIDTH = 5e-13


def hockey_stick_divergence(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate:
    """H_{e^epsilon}(P||Q), the smallest delta for which P(E) <= e^epsilon Q(E) + delta for every event E.

    Parameters
    ----------
    p, q : GaussianMixture
        Any two mixtures on the line; neither equal variances nor a common support are asked for. The other direction
        is ``hockey_stick_divergence(q, p, epsilon)``.
    epsilon : array_like
        Non-negative, in nats, any shape; infinity gives 0. All of them share one analysis of the pair.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="certified"``: the bounds contain the true divergence, with
        crossings, truncation and rounding included. Below 1e-300 use ``log_hockey_stick_divergence``.

    Raises
    ------
    DomainError
        For a negative or NaN epsilon, or arguments that are not mixtures.

    Notes
    -----
    **Accuracy** the bounds always contain the truth. Their relative width is at most 1e-12, down to 1e-300, on the
    families that ``tests/enclosures/test_hockey_stick.py`` holds against ball arithmetic: ordinary, far apart, narrow,
    and nearly identical (means that differ by 1e-8). Where many components of very different weights or nearly equal
    sigmas almost cancel the bracket can be wider: look at ``width``.

    Source: Ngo et al. 2024, eq. (4); Balle, Barthe and Gaboardi 2018.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, hockey_stick_divergence
    >>> q = 0.01  # a Poisson-subsampled Gaussian mechanism, noise 1, remove direction
    >>> p = GaussianMixture([1 - q, q], [0.0, 1.0], 1.0)
    >>> e = hockey_stick_divergence(p, GaussianMixture.single(0.0, 1.0), [0.0, 0.1, 1.0])
    >>> e.upper
    array([3.82924923e-03, 7.29003770e-05, 2.73200926e-09])
    """
    rows, grid, method, cost = _curve(p, q, epsilon, logs=False)
    return curve_estimate(rows[:, :3], grid, "probability", method, cost)


def log_hockey_stick_divergence(p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike) -> Estimate:
    """Natural logarithm of H_{e^epsilon}(P||Q), for divergences far below 1e-300.

    Parameters
    ----------
    p, q : GaussianMixture
        Any two mixtures on the line.
    epsilon : array_like
        Non-negative, in nats, any shape.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``kind="certified"``; minus infinity where the divergence is 0.

    Raises
    ------
    DomainError
        As ``hockey_stick_divergence``.

    Notes
    -----
    **Accuracy** relative width of the logarithm at most 1e-12 down to -3e5, a true but wider bracket below; proved by
    ``tests/enclosures/test_hockey_stick.py``.

    Source: as ``hockey_stick_divergence``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, log_hockey_stick_divergence
    >>> p, q = GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0)
    >>> log_hockey_stick_divergence(p, q, 300.0).value
    -44862.4515...
    """
    rows, grid, method, cost = _curve(p, q, epsilon, logs=True)
    return curve_estimate(rows[:, 3:], grid, "log probability", method, cost)


def total_variation(p: GaussianMixture, q: GaussianMixture) -> Estimate:
    """Total variation distance, sup_E |P(E) - Q(E)| = H_1(P||Q), certified.

    Parameters
    ----------
    p, q : GaussianMixture
        Any two mixtures on the line.

    Returns
    -------
    Estimate
        A scalar probability, ``kind="certified"``.

    Raises
    ------
    DomainError
        If an argument is not a GaussianMixture.

    Notes
    -----
    **Accuracy** as ``hockey_stick_divergence`` at epsilon 0; ``tests/enclosures/test_hockey_stick.py``.

    Source: Ngo et al. 2024, section I, with alpha = 1.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, total_variation
    >>> total_variation(GaussianMixture.single(0, 1), GaussianMixture.single(2, 1)).value
    0.68268949213708...
    """
    return hockey_stick_divergence(p, q, 0.0)


def _curve(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool
) -> tuple[FloatArray, FloatArray, str, Any]:
    _validate.instance("p", p, GaussianMixture)
    _validate.instance("q", q, GaussianMixture)
    _validate.line(p=p, q=q)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
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
