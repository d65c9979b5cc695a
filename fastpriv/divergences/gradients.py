"""Derivatives of divergences and entropies of Gaussian mixtures on the line by their weights, means and sigmas.

Notation: D is an integral of f(p, q), or a function of one; a and b are its derivatives by the densities p and q, as
functions of x. With the normal density phi_i of component i of P, of weight w_i, and z = (x - m_i) / s_i,

    dD/dw_i = E a,    dD/dm_i = w_i E z a / s_i,    dD/ds_i = w_i E (z^2 - 1) a / s_i,    E under phi_i,

and the same for Q with b. Weights are free: of changes that keep their sum, a constant in a or b has no part.

    KL              a = log(p/q) + 1, b = -p/q
    entropy         a = -log p - 1
    Jensen-Shannon  a = log(p/m) / 2, b = log(q/m) / 2, m = (p + q) / 2
    Renyi, order c  a = c (p/q)^(c-1) / ((c-1) I), b = -(p/q)^c / I, I the integral of p^c q^(1-c)
    hockey-stick    a = 1, b = -x where p > x q, else 0; x = e^epsilon
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray
from ..distributions import GaussianMixture, MixtureStack
from ..distributions.other_libraries import takes_other_libraries

# bound: none - ends of panels around a mean, in standard deviations; beyond the last a density is below the doubles
_ENDS = np.array([0.0, 0.35, 0.7, 1.1, 1.5, 2.0, 2.6, 3.3, 4.1, 5.0, 6.0, 7.2, 8.6, 10.5, 13.0, 17.0, 23.0, 31.0, 39.0])
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)  # of the rule, and of the one that tells its error
_FEW_NODES, _FEW_WEIGHTS = np.polynomial.legendre.leggauss(14)
# bound: none - rounding of a sum of terms, relative to their sizes: an estimate
_ROUNDING = 2.0**-44
_HALVINGS = 60  # of an interval where p crosses x q
_QUANTITIES = ("kl", "jensen_shannon", "renyi", "entropy", "hockey_stick")  # what has a gradient


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MixtureGradient(Result):
    """Derivatives by the parameters of both mixtures, each an Estimate of the shape of the parameter.

    Parameters
    ----------
    p_weights, p_means, p_sigmas : Estimate
        By the parameters of P.
    q_weights, q_means, q_sigmas : Estimate or None
        By those of Q; None for the entropy.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, divergences
    >>> p, q = GaussianMixture.single(1.0, 1.0), GaussianMixture.single(0.0, 1.0)
    >>> divergences.divergence_gradient("kl", p, q).p_means.value.round(12).tolist()
    [1.0]
    """

    p_weights: Estimate
    p_means: Estimate
    p_sigmas: Estimate
    q_weights: Estimate | None = None
    q_means: Estimate | None = None
    q_sigmas: Estimate | None = None


@takes_other_libraries
def divergence_gradient(
    quantity: str, p: GaussianMixture | MixtureStack, q: GaussianMixture | MixtureStack | None = None, *,
    order: float | None = None, epsilon: float | None = None,
) -> MixtureGradient:
    """The derivatives of a divergence of two Gaussian mixtures on the line, or of the entropy of one.

    Parameters
    ----------
    quantity : {"kl", "jensen_shannon", "renyi", "entropy", "hockey_stick"}
        What is differentiated: the functions of these names, in nats, of P against Q.
    p, q : GaussianMixture or MixtureStack
        In one dimension; stacks broadcast. Without q for the entropy.
    order : float, optional
        Of the Renyi divergence, positive and not 1.
    epsilon : float, optional
        Of the hockey-stick divergence, finite.

    Returns
    -------
    MixtureGradient
        Estimates of the shapes of the parameters, ``heuristic``: the error is that of another rule on the same panels,
        an estimate that is tested and not proved. No derivative here is certified; the divergences themselves are.
        Weights are free; project onto changes that keep their sum where they must.

    Raises
    ------
    DomainError
        For another quantity, a missing or superfluous argument, or an infinite divergence.
    ShapeError
        For mixtures in several dimensions, or leading axes that do not broadcast.

    Notes
    -----
    Panels of Gauss-Legendre end at fixed distances from every mean, in the standard deviations of its component, so
    that each scale is seen; the hockey-stick divergence has ends where p crosses e^epsilon q, too. A stack is a loop
    over its rows, a few milliseconds each with a few components.

    **Accuracy** about 1e-12 of the largest derivative by the same kind of parameter, compared with derivatives by
    mpmath; ``tests/enclosures/test_gradients.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, divergences
    >>> p, q = GaussianMixture([0.4, 0.6], [-1.0, 1.0], [0.5, 0.5]), GaussianMixture.single(0.0, 1.0)
    >>> divergences.divergence_gradient("kl", p, q).p_means.value.round(6).tolist()
    [-0.266049, 0.466049]
    """
    validate.choice("quantity", quantity, _QUANTITIES)
    if (q is None) != (quantity == "entropy"):
        raise DomainError(
            f"q must be {'None' if quantity == 'entropy' else 'a mixture'} for {quantity!r}; got {validate.shown(q)}. "
            "Pass both mixtures for a divergence, and one for the entropy."
        )
    number = _parameter(quantity, order, epsilon)
    mixtures = [p] if q is None else [p, q]
    for name, item in zip("pq", mixtures, strict=False):
        if not isinstance(item, (GaussianMixture, MixtureStack)) or item.dimension != 1:
            raise ShapeError(f"{name} must be mixtures in one dimension; got {validate.shown(item)}. Pass marginals.")
    parts = [(np.asarray(x.weights), np.reshape(x.means, x.weights.shape),
              np.reshape(np.asarray(x.sigmas), x.weights.shape)) for x in mixtures]
    try:
        shape = np.broadcast_shapes(*(weights.shape[:-1] for weights, _, _ in parts))
    except ValueError:
        raise ShapeError("p and q must have leading axes that broadcast; got others. Insert axes of one row.") from None
    rows = [[np.broadcast_to(x, (*shape, x.shape[-1])).reshape(-1, x.shape[-1]) for x in part] for part in parts]
    derivatives = [
        _derivatives_of_pair([tuple(x[k] for x in part) for part in rows], quantity, number)
        for k in range(math.prod(shape))
    ]
    return MixtureGradient(*(
        _estimate(np.array([row[0][k] for row in derivatives]), np.array([row[1][k] for row in derivatives]), shape)
        for k in range(3 * len(mixtures))
    ))


def _parameter(quantity: str, order: float | None, epsilon: float | None) -> float:
    for name, value, owner in (("order", order, "renyi"), ("epsilon", epsilon, "hockey_stick")):
        if (value is None) != (quantity != owner):
            raise DomainError(
                f"{name} must be {'given' if quantity == owner else 'None'} for {quantity!r}; got "
                f"{validate.shown(value)}. It belongs to {owner!r} alone."
            )
    if order is not None:
        return validate.scalar("order", order, "positive and not 1", lambda x: (x > 0) & (x < np.inf) & (x != 1))
    return 0.0 if epsilon is None else validate.scalar("epsilon", epsilon, "finite", np.isfinite)


def _estimate(value: FloatArray, error: FloatArray, shape: tuple[int, ...]) -> Estimate:
    value, error = (x.reshape(*shape, x.shape[-1]) for x in (value, error))
    return Estimate(value, value - error, value + error, kind="heuristic", unit="1", method="Gauss-Legendre panels")


def _derivatives_of_pair(
    mixtures: list[tuple[FloatArray, ...]], quantity: str, number: float
) -> tuple[list[FloatArray], list[FloatArray]]:
    """The derivatives by all parameters in turn, and their errors."""
    ends = np.unique(np.concatenate([
        (means[:, None] + sigmas[:, None] * np.concatenate([-_ENDS, _ENDS])).ravel() for _, means, sigmas in mixtures
    ]))
    logs = [_log_density(mixture) for mixture in mixtures]
    if quantity == "hockey_stick":
        ends = np.unique(np.concatenate([ends, _crossings(lambda x: logs[0](x) - logs[1](x) - number, ends)]))
    (fine, sizes), (coarse, _) = (
        _on_panels(mixtures, logs, quantity, number, ends, *rule)
        for rule in ((_NODES, _WEIGHTS), (_FEW_NODES, _FEW_WEIGHTS))
    )
    infinite = False
    if quantity == "renyi" and number > 1.0:
        widest_p, widest_q = (float(sigmas[weights > 0].max()) for weights, _, sigmas in mixtures)
        infinite = number * widest_q**2 <= (number - 1.0) * widest_p**2
    if infinite or not all(np.isfinite(item).all() for item in fine):
        raise DomainError(f"p and q must have a finite {quantity!r}; got an infinite one. It has no gradient.")
    return fine, [np.abs(a - b) + _ROUNDING * size for a, b, size in zip(fine, coarse, sizes, strict=True)]


def _log_density(mixture: tuple[FloatArray, ...]) -> Callable[[FloatArray], FloatArray]:
    weights, means, sigmas = (x[mixture[0] > 0] for x in mixture)
    heights = np.log(weights) - np.log(sigmas) - 0.5 * math.log(2.0 * math.pi)
    return lambda x: np.logaddexp.reduce(heights[:, None] - 0.5 * ((x - means[:, None]) / sigmas[:, None]) ** 2)


def _crossings(function: Callable[[FloatArray], FloatArray], ends: FloatArray) -> FloatArray:
    """Where a function changes its sign between points of a grid; four in each panel."""
    grid = (ends[:-1, None] + np.diff(ends)[:, None] * np.linspace(0.0, 1.0, 5)[:-1]).ravel()
    sign = np.sign(function(grid))
    at = np.flatnonzero(sign[1:] * sign[:-1] < 0)
    low, high = grid[at], grid[at + 1]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        beyond = np.sign(function(middle)) != sign[at] if at.size else np.zeros(0, dtype=bool)
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return low


def _on_panels(
    mixtures: list[tuple[FloatArray, ...]], logs: list[Any], quantity: str, number: float, ends: FloatArray,
    nodes: FloatArray, rule: FloatArray,
) -> tuple[list[FloatArray], list[FloatArray]]:
    """All derivatives by one rule, and the sums of the sizes of their terms."""
    half = 0.5 * np.diff(ends)
    x = (0.5 * (ends[1:] + ends[:-1])[:, None] + half[:, None] * nodes).ravel()
    dx = (half[:, None] * rule).ravel()
    densities = _densities(quantity, number, [log(x) for log in logs], dx)
    result, sizes = [], []
    for (weights, means, sigmas), (sign, a) in zip(mixtures, densities, strict=True):
        with np.errstate(under="ignore", over="ignore"):
            z = np.clip((x - means[:, None]) / sigmas[:, None], -1e100, 1e100)
            log_mass = -0.5 * z * z + np.log(dx) - np.log(sigmas * math.sqrt(2.0 * math.pi))[:, None]
            mass = np.exp(log_mass)
            mean = sign * np.exp(log_mass + a) if sign else mass * a
            terms = mean - mass * mean.sum(axis=1)[:, None]  # z and z^2 - 1 have the mean 0
            parts = mean, terms * z, terms * (z * z - 1.0)
        for part, factor in zip(parts, (1.0, weights / sigmas, weights / sigmas), strict=True):
            result.append(factor * part.sum(axis=1))
            sizes.append(factor * np.abs(part).sum(axis=1))
    return result, sizes


def _densities(quantity: str, number: float, logs: list[FloatArray], dx: FloatArray) -> list[tuple[float, FloatArray]]:
    """a, and b where there is a Q, at the nodes: with the factor 0 itself, else a factor and the logarithm."""
    log_p = logs[0]
    if quantity == "entropy":
        return [(0.0, -log_p - 1.0)]
    log_q = logs[1]
    loss = log_p - log_q
    if quantity == "kl":
        return [(0.0, loss + 1.0), (-1.0, loss)]
    if quantity == "jensen_shannon":
        log_m = np.logaddexp(log_p, log_q) - math.log(2.0)
        return [(0.0, 0.5 * (log_p - log_m)), (0.0, 0.5 * (log_q - log_m))]
    if quantity == "renyi":
        log_integral = np.logaddexp.reduce(number * log_p + (1.0 - number) * log_q + np.log(dx))
        a = (number - 1.0) * loss - log_integral
        return [(number / (number - 1.0), a), (-1.0, a + loss)]
    inside = loss > number
    return [(0.0, np.where(inside, 1.0, 0.0)), (0.0, np.where(inside, -math.exp(number), 0.0))]
