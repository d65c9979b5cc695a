"""Privacy notions of a discrete secret behind a mechanism: LDP, LIP, LMIP, MBP, ABP.

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X). ``epsilon``
is in nats.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _validate
from .distributions import GaussianMixture, Pmf
from .divergences.line.hockey_stick import DOUBLE_WIDTH, curve_estimate, widen
from .divergences.line.information import mutual_information
from .divergences.line.kl import kl_divergence
from .estimate import Estimate
from .kernels import _hockey
from .mechanisms.gaussian import GaussianMechanism
from .posterior import belief_shift

__all__ = [
    "AverageBayesianPrivacy", "abp", "cd_lmip", "ldp_delta", "lip_curves", "lip_delta", "log_lip_delta", "mbp_xi",
    "pointwise_lmip",
]  # fmt: skip

_FAR = 1e6  # in sigmas: a longer gap moves no curve by more than e^(-1e11) for epsilon up to _FAR^2 / 100


def ldp_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Optimal LDP curve over the points of the prior: sup over x, x' of H_{e^epsilon}(P_x || P_x').

    Parameters
    ----------
    prior : Pmf
        The secret. Only its points count, not their probabilities.
    mechanism : GaussianMechanism
        Its sigma is used; the sensitivity is the distance of the outermost points.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="exact"``.

    Raises
    ------
    DomainError
        For a negative epsilon, a prior that is no Pmf or a mechanism that is not Gaussian.

    Notes
    -----
    **Accuracy** as ``GaussianMechanism.delta``; ``tests/enclosures/test_notions.py``.

    Source: Ngo, Ostman and Graell i Amat 2024, eqs (4) and (9).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.ldp_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.5991..., 0.3318...])
    """
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


def lip_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Optimal LIP curve: sup over x of max{H_{e^epsilon}(P_M || P_x), e^-epsilon H_{e^epsilon}(P_x || P_M)}.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape; all of them share one pass over the points.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="certified"``: the maximum over points is proved.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    The likelihood ratio of the release law and one point is log-convex, so each set has at most two crossings.

    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.lip_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.2801..., 0.0859...])
    """
    return lip_curves(prior, mechanism, epsilon)[0]


def log_lip_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Natural logarithm of the optimal LIP curve, far below 1e-300.

    Parameters
    ----------
    prior : Pmf
        The secret, with its probabilities.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``kind="certified"``.

    Notes
    -----
    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.log_lip_delta(prior, GaussianMechanism(100.0), 50.0).value
    -8180.43...
    """
    return lip_curves(prior, mechanism, epsilon)[1]


def lip_curves(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    tuple of Estimate
        The curve and its natural logarithm, both ``kind="certified"``.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> delta, log_delta = notions.lip_curves(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.2), 3.0)
    >>> delta.value, log_delta.value
    (0.46869..., -0.75779...)
    """
    sigma = _noise(prior, mechanism)
    grid = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    law = prior.through_gaussian(sigma)
    means = law.means
    flat = np.ascontiguousarray(grid).reshape(-1)
    order = np.argsort(flat, kind="stable")
    rows = np.empty((flat.size, 6))
    beyond = np.zeros(flat.shape, dtype=bool)
    if np.diff(means).max(initial=0.0) > _FAR * sigma:
        means = np.cumsum(np.minimum(np.diff(means, prepend=means[0]), _FAR * sigma))
        beyond = (flat > 1e-2 * _FAR**2) & np.isfinite(flat)
    rows[order], (evaluations, extended, pieces) = _hockey.lip_curve(
        law.weights, means, law.sigmas, np.where(beyond, 1e-2 * _FAR**2, flat)[order], DOUBLE_WIDTH, True
    )
    rows[beyond, 1], rows[beyond, 4] = 0.0, -np.inf
    if law.mass_gap:
        widen(rows, flat, law.mass_gap)
    cost = {"evaluations": evaluations, "pieces": pieces, "double_double": extended}
    method = "two crossings a point"
    return (
        curve_estimate(rows[:, :3], grid, "probability", method, cost),
        curve_estimate(rows[:, 3:], grid, "log probability", method, cost),
    )


def cd_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Context-dependent local mutual-information privacy, I(X; M(X)), in nats.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    certified : bool, default False
        Ask for proved bounds whatever they cost.

    Returns
    -------
    Estimate
        A scalar in nats; ``.to("bits")`` gives the unit of the papers.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** as ``mutual_information``; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, definition 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.cd_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.287195...
    """
    return mutual_information(prior, _noise(prior, mechanism), certified=certified)


def pointwise_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M), in nats.

    Mutual information is the mean of these divergences under the prior; a bound for every x needs their supremum.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    certified : bool, default False
        Ask for proved bounds whatever they cost.

    Returns
    -------
    Estimate
        A scalar in nats; ``.to("bits")`` gives the unit of the papers. ``kind`` is that of the weakest divergence used.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    Points are taken in the order of min{-log pi(x), sum over x' of pi(x') (x - x')^2 / (2 sigma^2)}, which bounds the
    divergence, until no later one can be larger.

    **Accuracy** as ``kl_divergence``; ``tests/enclosures/test_notions.py``.

    Source: the premise that the proof of theorem 2(a) of Ngo et al. 2024 uses in (35) to (37).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.pointwise_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.63341...
    """
    sigma = _noise(prior, mechanism)
    certified = _validate.flag("certified", certified)
    law = prior.through_gaussian(sigma)
    x, weights = prior.values, prior.probabilities
    scaled = (x - x[0]) / sigma  # the sum over x' in closed form
    mean = float(np.dot(weights, scaled))
    spread = float(np.dot(weights, (scaled - mean) ** 2))
    reach = 0.5 * ((scaled - mean) ** 2 + spread)
    cap = np.minimum(reach, -np.log(weights)) * (1 + 1e-9) + 4 * law.mass_gap
    best: Estimate | None = None
    lower = upper = 0.0
    kinds, evaluations = set(), 0
    for i in np.argsort(-cap, kind="stable"):
        if best is not None and cap[i] <= lower:
            break
        found = kl_divergence(GaussianMixture.single(float(x[i]), sigma), law, certified=certified)
        evaluations += 1
        kinds.add(found.kind)
        lower, upper = max(lower, float(found.lower)), max(upper, float(found.upper))
        best = found if best is None or found.value > best.value else best
    assert best is not None
    kind = next(kind for kind in ("heuristic", "certified", "exact") if kind in kinds)
    return Estimate(
        best.value, min(lower, best.value), upper, kind=kind, unit="nats", method=f"largest divergence; {best.method}",
        cost={"divergences": evaluations},
    )  # fmt: skip


def mbp_xi(prior: Pmf, mechanism: GaussianMechanism) -> Estimate:
    """Maximum Bayesian privacy: sup over x and releases of |log posterior(x) / prior(x)|, in nats.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Checked only: the answer is the same for every sigma.

    Returns
    -------
    Estimate
        0 for one point; infinity otherwise, since a far release of normal noise rules every inner point out.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** exact; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.3.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> notions.mbp_xi(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(3.0)).value
    inf
    """
    _noise(prior, mechanism)
    xi = 0.0 if len(prior) == 1 else math.inf
    return Estimate(xi, xi, xi, kind="exact", unit="nats", method="the tails of normal noise tell the points apart")


@dataclass(frozen=True, slots=True)
class AverageBayesianPrivacy:
    """Average Bayesian privacy for every true value, its maximum over them, and its mean under the prior.

    Parameters
    ----------
    per_value : Estimate
        One entry a point of the prior, in increasing order of the points; between 0 and sqrt(log 2).
    maximum : Estimate
        The largest of them.
    mean : Estimate
        Their mean, weighted by the prior.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.per_value.shape, bool(shift.mean.value <= shift.maximum.value)
    ((2,), True)
    """

    per_value: Estimate
    maximum: Estimate
    mean: Estimate


def abp(prior: Pmf, mechanism: GaussianMechanism) -> AverageBayesianPrivacy:
    """Average Bayesian privacy: root of JS(expected posterior || prior), the release drawn at the true value.

    Parameters
    ----------
    prior : Pmf
        The attacker's prior, shape (n,).
    mechanism : GaussianMechanism
        Its sigma is used.

    Returns
    -------
    AverageBayesianPrivacy
        ``per_value`` of shape (n,) in the order of ``prior.values``, ``maximum`` and prior ``mean``; each between 0
        and sqrt(log 2) = 0.8326.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    If the release were drawn from P_M instead, the expected posterior would be the prior and ABP would vanish.

    **Accuracy** as ``fastpriv.posterior.belief_shift``; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, definition IV.1.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.maximum.value
    0.20434...
    """
    shift = belief_shift(prior, _noise(prior, mechanism))
    parts: list[Estimate] = []
    for summary in (np.max, lambda column: np.dot(prior.probabilities, column)):
        value, lower, upper = (float(summary(column)) for column in (shift.value, shift.lower, shift.upper))
        bounds = min(lower, value), max(upper, value)
        parts.append(Estimate(value, *bounds, kind=shift.kind, unit="1", method=shift.method, cost=shift.cost))
    return AverageBayesianPrivacy(shift, *parts)


def _noise(prior: Any, mechanism: Any) -> float:
    """sigma of a Gaussian mechanism, the one family whose laws the curves know."""
    _validate.instance("prior", prior, Pmf)
    _validate.instance("mechanism", mechanism, GaussianMechanism)
    return _validate.scalar("sigma", mechanism.sigma)
