"""Mutual information from LDP and MBP.

Notation: D(p||q) Kullback-Leibler; I the mutual information under a prior (context-dependent, CD-LMIP), C its supremum
over priors (context-independent, CI-LMIP); the pointwise notion bounds D(P_x || P_M) at every x. One record given all
others is a channel too, so that what bounds C under LDP bounds mutual-information differential privacy (MI-DP) under
differential privacy.

LDP, any inputs: I = E_q D(posterior || prior), and the ratios r of one posterior to the prior have mean 1 and
max <= e^epsilon min. r ln r is convex, so D is at most that of Bernoulli laws whose log odds differ by epsilon,
k(t) = -ln(1 + t (e^epsilon - 1)) + epsilon t e^epsilon / (1 + t (e^epsilon - 1)), largest where
1 + t (e^epsilon - 1) = epsilon e^epsilon / (e^epsilon - 1) = s: k = s - 1 - ln s. Subset selection of t n out of n
uniform inputs attains it, where t n is whole. About epsilon^2/8.
LDP, two inputs: every such channel is randomised response, processed further; C = ln 2 - h(1/(1 + e^epsilon)).
LDP, n inputs: also at most the maximal leakage.
MBP: ratios in [e^-xi, e^xi] with mean 1, so E r ln r <= xi tanh(xi/2), for I and for each D(P_x || P_M).
C is at most the largest D(P_x || q), q the law of the release, so that what bounds the pointwise notion under a prior
bounds C. A known pi_min bounds the ratios too: r is at most 1 + v and at least 1 - u,
v = min(e^xi - 1, (1 - e^-xi) (1 - pi_min)/pi_min), u = min(1 - e^-xi, (e^xi - 1) (1 - pi_min)/pi_min), and r ln r is at
most its chord: (v g(-u) + u g(v)) / (u + v), g(y) = (1 + y) ln(1 + y) - y.
(epsilon, delta), two inputs: every such channel is randomised response processed further that reveals the secret with
probability delta; C = delta ln 2 + (1 - delta)(ln 2 - h(1/(1 + e^epsilon))).
"""

# bounds: tested by enclosures/test_conversions_values - where a closed limit is taken

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._estimates import monotone
from ...estimate import Estimate, Information, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded, information, same_information
from ..registry import documented

__all__ = [
    "cd_lmip_from_ci_lmip", "cd_lmip_from_mbp", "cd_lmip_from_pointwise_lmip", "ci_lmip_from_dp", "ci_lmip_from_kl",
    "ci_lmip_from_maximal_leakage", "ci_lmip_from_mbp", "ci_lmip_from_pointwise_lmip", "ci_lmip_from_pure_ldp",
    "dp_delta_from_mi_dp", "dp_delta_from_mi_dp_as_published", "mi_dp_from_ldp", "mi_dp_from_ldp_as_published",
    "pointwise_lmip_from_ldp", "pointwise_lmip_from_mbp",
]  # fmt: skip

FloatArray = NDArray[np.float64]


@documented
@monotone(rising="epsilon inputs")
def ci_lmip_from_pure_ldp(epsilon: NumberLike, inputs: NumberLike = np.inf, *, unit: Information = "nats") -> Estimate:
    """Largest capacity of an epsilon-LDP channel: s - 1 - ln s with s = epsilon / (1 - e^-epsilon).

    Tight for an unlimited number of inputs. For two it is ln 2 - h(1/(1 + e^epsilon)), tight; for n between, the
    smaller of the first and of ln(n e^epsilon / (n - 1 + e^epsilon)), a bound.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_pure_ldp(1.0, [2, 4, float("inf")]).value
    array([0.11094407, 0.12330156, 0.12330156])
    """
    epsilon, inputs = validated(epsilon=epsilon, inputs=inputs)
    many = np.minimum(_formulas.subset_capacity(epsilon), _formulas.retained(epsilon, 1.0 / inputs))
    value = np.where(inputs < 3.0, _formulas.bernoulli_js(epsilon), many)
    return information(value, unit, "convexity of r ln r", known=epsilon)


@documented
@monotone(rising="epsilon")
def mi_dp_from_ldp(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest conditional mutual information of one record and the release: s - 1 - ln s, about epsilon^2/8.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mi_dp_from_ldp(1.0).value
    0.12330156...
    """
    (epsilon,) = validated(epsilon=epsilon)
    method = "s - 1 - ln s, s = epsilon / (1 - e^-epsilon)"
    return information(_formulas.subset_capacity(epsilon), unit, method, known=epsilon)


@documented
@monotone(rising="epsilon")
def mi_dp_from_ldp_as_published(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The published bound, min(epsilon, epsilon^2): true, eight times the least near 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mi_dp_from_ldp_as_published(0.5).value
    0.25
    """
    (epsilon,) = validated(epsilon=epsilon)
    return information(epsilon * np.minimum(epsilon, 1.0), unit, "min(epsilon, epsilon^2)", known=epsilon)


@documented
@monotone(rising="mu", falling="epsilon")
def dp_delta_from_mi_dp(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least delta at ``epsilon`` that follows from MI-DP with mu: the conversion of CI-LMIP, record by record.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_mi_dp(0.1, [0.0, 1.0]).value
    array([0.43958925, 0.27640351])
    """
    from ..lmip.ci_lmip_and_ldp import ldp_delta_from_ci_lmip

    return ldp_delta_from_ci_lmip(mu, epsilon, unit=unit)


@documented
@monotone(rising="mu")
def dp_delta_from_mi_dp_as_published(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The published delta at epsilon = 0: sqrt(2 mu); true, by Pinsker's inequality.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> round(conversions.dp_delta_from_mi_dp_as_published(0.02).value, 12)
    0.2
    """
    (mu,) = validated(mu=mu, unit=unit)
    return bounded(np.sqrt(2.0) * np.sqrt(mu), "probability", "sqrt(2 mu)", ceiling=1.0, settled=mu == 0.0)


@documented
@monotone(rising="epsilon delta")
def ci_lmip_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest capacity of a channel with TWO inputs that is (epsilon, delta)-LDP.

    delta ln 2 + (1 - delta) (ln 2 - h(1/(1 + e^epsilon))); attained.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_dp([0.0, 1.0], 0.1).value
    array([0.06931472, 0.16916438])
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    value = delta * _formulas.LN2 + (1.0 - delta) * _formulas.bernoulli_js(epsilon)
    return information(value, unit, "the pair that dominates (epsilon, delta)", known=epsilon + delta)


@documented
@monotone(rising="kl")
def ci_lmip_from_kl(kl: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the largest divergence between two rows: the mean of the rows is no farther than the rows.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_kl(0.25).value
    0.25
    """
    (kl,) = validated(kl=kl)
    return same_information(kl, unit, "convexity of the divergence")


@documented
@monotone(rising="leakage")
def ci_lmip_from_maximal_leakage(leakage: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the maximal leakage, which a channel that reveals its input attains.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_maximal_leakage(0.25).value
    0.25
    """
    (leakage,) = validated(leakage=leakage)
    return same_information(leakage, unit, "monotonicity in the order")


@documented
@monotone(rising="xi", falling="pi_min")
def ci_lmip_from_mbp(xi: NumberLike, pi_min: NumberLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest capacity under xi-MBP: xi tanh(xi/2), and less where ``pi_min`` is known.

    Subset selection of n/(1 + e^xi) out of n uniform inputs attains the first, where that is a whole number; the
    second is ln 2 - h((1 + e^-xi)/2) for ``pi_min`` = 1/2, attained too.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_mbp(1.0, [0.0, 0.5]).value
    array([0.46211716, 0.21583199])
    """
    xi, pi_min = validated(xi=xi, pi_min=pi_min)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = (1.0 - pi_min) / pi_min
        u, v = np.minimum(-np.expm1(-xi), odds * np.expm1(xi)), np.minimum(np.expm1(xi), odds * -np.expm1(-xi))
        free = (pi_min == 0.0) | (u < 1e-140) | np.isinf(odds)  # v = e^xi - 1, u = 1 - e^-xi, or about xi^2 / 2
        inner, outer = np.where(free, 0.5, u), np.where(free, 0.5, v)
        chord = _formulas.entropy_excess(-inner) / (1.0 + inner / outer)
        chord = chord + _formulas.entropy_excess(outer) / (1.0 + outer / inner)
        value = np.where(free, _formulas.mean_loss(xi), np.minimum(chord, _formulas.mean_loss(xi)))
    return information(value, unit, "chord of r ln r", known=xi)


@documented
@monotone(rising="mu")
def ci_lmip_from_pointwise_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the largest D(P_x || P_M), whatever the prior, and equal under the one that attains it.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ci_lmip_from_pointwise_lmip(0.25).upper
    0.25
    """
    (mu,) = validated(mu=mu)
    return same_information(mu, unit)


@documented
@monotone(rising="mu")
def cd_lmip_from_ci_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """What bounds the mutual information under every prior bounds it under one.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.cd_lmip_from_ci_lmip(0.25).upper
    0.25
    """
    (mu,) = validated(mu=mu)
    return same_information(mu, unit)


@documented
@monotone(rising="mu")
def cd_lmip_from_pointwise_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Mutual information is the mean of the divergences D(P_x || P_M), so at most the largest.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.cd_lmip_from_pointwise_lmip(0.25).upper
    0.25
    """
    (mu,) = validated(mu=mu)
    return same_information(mu, unit)


@documented
@monotone(rising="xi")
def cd_lmip_from_mbp(xi: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest mutual information under a prior with xi-MBP: xi tanh(xi/2).

    Subset selection of n/(1 + e^xi) out of n uniform inputs attains it, where that is a whole number.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.cd_lmip_from_mbp(1.0).value
    0.46211715...
    """
    (xi,) = validated(xi=xi)
    return information(_formulas.mean_loss(xi), unit, "xi tanh(xi / 2)", known=xi)


@documented
@monotone(rising="xi")
def pointwise_lmip_from_mbp(xi: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest D(P_x || P_M) under xi-MBP: xi tanh(xi/2); attained as in ``cd_lmip_from_mbp``.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.pointwise_lmip_from_mbp(1.0).value
    0.46211715...
    """
    (xi,) = validated(xi=xi)
    return information(_formulas.mean_loss(xi), unit, "xi tanh(xi / 2)", known=xi)


@documented
@monotone(rising="epsilon")
def pointwise_lmip_from_ldp(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest D(P_x || P_M) under epsilon-LDP and any prior: epsilon tanh(epsilon/2), approached by rare x.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.pointwise_lmip_from_ldp(1.0).value
    0.46211715...
    """
    (epsilon,) = validated(epsilon=epsilon)
    return information(_formulas.mean_loss(epsilon), unit, "epsilon tanh(epsilon / 2)", known=epsilon)

