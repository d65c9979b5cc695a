"""The notions of a secret on the line behind Gaussian noise.

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X).
"""

# bounds: tested by enclosures/test_notions - rounding of the caps by which values of the secret are left out

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..distributions import GaussianMixture, Pmf
from ..distributions.pmf import GroupedAtoms, grouped_atoms
from ..divergences.one_dimension.integrals import kl_divergence, mutual_information
from ..divergences.one_dimension.monotone_pieces import MAX_DOUBLE_WIDTH, curve_estimate, with_mass_gaps
from ..errors import DomainError
from ..estimate import Estimate
from ..kernels import _lip
from ..mechanisms.gaussian import GaussianMechanism
from ..posteriors.gaussian import gaussian_abp

FloatArray = NDArray[np.float64]

__all__ = ["abp_per_value", "cd_lmip", "ldp_delta", "lip_curves", "mbp_xi", "pointwise_lmip"]

_COST = ("evaluations", "double_double", "tails", "undecided")  # what the kernel of LIP curves counts
# bound: proved - what a normal law has beyond it, e^-128, times the logarithm of a density, which is below e^10
_REACH, _BEYOND = 16.0, 1e-50
_MANY, _CLEAR = 2048, 0.1  # values beyond which they are grouped, for divergences to which the error of that is small
# bound: tested by enclosures/test_many_values - rounding of a sum of exponentials and of its logarithm
_CAP_ROUNDING = 2e-13
# bound: none - values whose cap is so near the largest upper bound are not looked at; their cap is a bound
_TIE = 1e-12
_NEAR, _ROWS = 30.0, 256


def ldp_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Optimal LDP curve over the points of the prior: sup over x, x' of H_{e^epsilon}(P_x || P_x')."""
    sigma = _noise(prior, mechanism)
    span = float(prior.values[-1] - prior.values[0])
    reach = math.nextafter(span, math.inf) if len(prior) > 1 else 0.0
    exact = GaussianMechanism(sigma, span).delta(epsilon)
    safe = GaussianMechanism(sigma, reach).delta(epsilon)
    least = GaussianMechanism(sigma, max(0.0, math.nextafter(span, 0.0))).delta(epsilon)
    return Estimate(
        exact.value, np.minimum(least.lower, exact.lower), np.maximum(safe.upper, exact.upper), kind="exact",
        unit="probability", method=exact.method,
    )  # fmt: skip


def lip_curves(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points."""
    sigma = _noise(prior, mechanism)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    rows, method, cost = lip_rows(prior, sigma, np.ascontiguousarray(grid).reshape(-1), MAX_DOUBLE_WIDTH, logs=True)
    return (
        curve_estimate(rows[:, :3], grid, "probability", method, cost),
        curve_estimate(rows[:, 3:], grid, "log probability", method, cost),
    )


def lip_rows(
    prior: Pmf, sigma: float, epsilon: FloatArray, width: float, *, logs: bool
) -> tuple[FloatArray, str, dict[str, int]]:
    """Value, lower and upper and their logarithms for each epsilon, of this relative width; the method; the cost."""

    def rows_at(grid: FloatArray) -> tuple[FloatArray, dict[str, int]]:
        order = np.argsort(grid, kind="stable")
        rising = np.maximum(grid[order], 0.0)  # what a gap moves below 0 the kernel's bracket at 0 covers
        found = np.empty((grid.size, 6))
        found[order], cost = _lip.lip_curve(prior.probabilities, prior.values, sigma, rising, width, logs)
        return found, dict(zip(_COST, cost, strict=True))

    rows, cost = with_mass_gaps(rows_at, epsilon, prior.mass_gap, 0.0)
    return rows, "two crossings a point" + (", some not enclosed" if cost["undecided"] else ""), cost


def cd_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Context-dependent local mutual-information privacy, I(X; M(X)), in nats."""
    return mutual_information(prior, _noise(prior, mechanism), certified=certified)


def pointwise_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M), in nats."""
    sigma = _noise(prior, mechanism)
    certified = _validate.flag("certified", certified)
    law = prior.through_gaussian(sigma)
    blur = 0.0
    grouped = grouped_atoms(prior.values, prior.probabilities, sigma, reach=_REACH)
    cap = _divergence_caps(prior, sigma, grouped) + 4 * law.mass_gap
    if len(prior) > _MANY and 2 * grouped.values.size < len(prior) and cap.max() > _CLEAR:
        blur = 1.01 * (grouped.error + 2 * law.mass_gap) + _BEYOND
        law = GaussianMixture(grouped.weights, grouped.values, sigma)
    best: Estimate | None = None
    lower = upper = 0.0
    kinds, evaluations = set(), 0
    for i in np.argsort(-cap, kind="stable"):
        if best is not None and cap[i] <= max(lower, upper + _TIE * upper):
            upper = max(upper, float(cap[i]))
            break
        found = kl_divergence(GaussianMixture.single(float(prior.values[i]), sigma), law, certified=certified)
        evaluations += 1
        kinds.add(found.kind)
        lower, upper = max(lower, float(found.lower) - blur), max(upper, float(found.upper) + blur)
        best = found if best is None or found.value > best.value else best
    assert best is not None
    kind = next(kind for kind in ("heuristic", "certified", "exact") if kind in kinds)
    return Estimate(
        best.value, min(lower, best.value), upper, kind=kind, unit="nats", method=f"largest divergence; {best.method}",
        cost={"divergences": evaluations},
    )  # fmt: skip


def _divergence_caps(prior: Pmf, sigma: float, grouped: GroupedAtoms) -> FloatArray:
    """Upper bounds of KL(P_x || P_M) of every x, in closed form.

    One is -log sum_j w_j e^(-(x - x_j)^2 / (2 sigma^2)): the sum of w_j P_j is no less than its part along P_x with
    mass w_j e^(-KL(P_x || P_j)) each (Hershey and Olsen 2007). The other averages KL(P_x || P_j).
    """
    x = prior.values
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (x - x[0]) / sigma
        square = (scaled - np.sum(prior.probabilities * scaled)) ** 2
        average = 0.5 * (square + np.sum(prior.probabilities * square))
    sums = np.empty(x.size)
    start = 0
    while start < x.size:
        stop = min(start + _ROWS, int(np.searchsorted(x, x[start] + sigma, side="right")))
        near = slice(*np.searchsorted(grouped.values, [x[start] - _NEAR * sigma, x[stop - 1] + _NEAR * sigma]))
        away = (x[start:stop, None] - grouped.values[near]) / sigma
        sums[start:stop] = (np.exp(-0.5 * away * away) * grouped.weights[near]).sum(axis=1)
        start = stop
    alone = prior.probabilities * (1 - 1e-15)
    density = -np.log(np.maximum(sums * (1 - grouped.error), alone))
    average = np.where(np.isnan(average), np.inf, average)
    return np.asarray(np.minimum(average * (1 + 1e-9), density * (1 + 1e-15) + _CAP_ROUNDING))


def mbp_xi(prior: Pmf, mechanism: GaussianMechanism) -> Estimate:
    """Maximum Bayesian privacy: sup over x and releases of |log posterior(x) / prior(x)|, in nats."""
    _noise(prior, mechanism)
    xi = 0.0 if len(prior) == 1 else math.inf
    return Estimate(xi, xi, xi, kind="exact", unit="nats", method="the tails of normal noise tell the points apart")


def abp_per_value(prior: Pmf, mechanism: GaussianMechanism) -> Estimate:
    """Average Bayesian privacy of every true value, in the order of ``prior.values``."""
    return gaussian_abp(prior, _noise(prior, mechanism))


def _noise(prior: Any, mechanism: Any) -> float:
    """sigma of a Gaussian mechanism, the one family whose laws the curves know."""
    if not isinstance(mechanism, GaussianMechanism):
        raise DomainError(
            f"mechanism must be a channel, rows of probabilities or a GaussianMechanism; got "
            f"{_validate.shown(mechanism)}. Build one of these."
        )
    _validate.instance("prior", prior, Pmf)
    return _validate.scalar("sigma", mechanism.sigma)
