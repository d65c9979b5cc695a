"""Mutual information and maximal leakage from LDP, MBP and divergences.

Notation: D(p||q) Kullback-Leibler; I the mutual information under a prior (context-dependent, CD-LMIP), C its supremum
over priors (context-independent, CI-LMIP); the pointwise notion bounds D(P_x || P_M) at every x.

LDP, any inputs: I = E_q D(posterior || prior), and the ratios r of one posterior to the prior have mean 1 and
max <= e^epsilon min. r ln r is convex, so D is at most that of Bernoulli distributions whose log odds differ by
epsilon, k(t) = -ln(1 + t (e^epsilon - 1)) + epsilon t e^epsilon / (1 + t (e^epsilon - 1)), largest where
1 + t (e^epsilon - 1) = epsilon e^epsilon / (e^epsilon - 1) = s: k = s - 1 - ln s. Subset selection of t n out of n
uniform inputs attains it, where t n is whole. About epsilon^2/8.
LDP, two inputs: every such channel is randomised response, processed further; C = ln 2 - h(1/(1 + e^epsilon)).
LDP, n inputs: also at most the maximal leakage.
MBP: ratios in [e^-xi, e^xi] with mean 1, so E r ln r <= xi tanh(xi/2), for I and for each D(P_x || P_M).
C is at most the largest D(P_x || q), q the distribution of the release, so that what bounds the pointwise notion
under a prior bounds C.
(epsilon, delta), two inputs: every such channel is randomised response processed further that reveals the secret with
probability delta; C = delta ln 2 + (1 - delta)(ln 2 - h(1/(1 + e^epsilon))).

Maximal leakage is ln sum over w of max_d Q[d, w], the largest log by which a release raises the chance of a best guess,
over priors. LDP: the other rows of a column are at least e^-epsilon of its largest cell, so that
max_d Q[d, w] (1 + (n - 1) e^-epsilon) <= sum_d Q[d, w]; summed over w, n = inputs. Randomised response on n values
attains it.
MBP: with r = Q / q in [e^-xi, e^xi] and of mean 1, no r is above (1 - (1 - pi_min) e^-xi) / pi_min either, and maximal
leakage is ln E_q max_d r_d.

Proofs: docs/proofs/conversions.md, theorems 12.5 and 12.6.
"""

from __future__ import annotations

import numpy as np

from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike
from ..base.numerics import LOG_2
from . import _closed_forms as forms
from .declaration import Formula, conversion
from .vocabulary import EVERY_PAIR, FULL_SUPPORT, KAIROUZ, PROVED, Assumption

_TWO_INPUTS = Assumption("the channel has two inputs")  # of the bound that is tight for two inputs only


@conversion("ldp", "ci_lmip", Formula(
    "tight", PROVED, rising="epsilon inputs", assumptions=(EVERY_PAIR,),
    note="tight for 2 and for unlimited inputs, a bound between",
))
def ci_lmip_from_ldp(epsilon: NumberLike, inputs: NumberLike = np.inf, *, unit: Information = "nats") -> Estimate:
    """Largest capacity of an epsilon-LDP channel: s - 1 - ln s with s = epsilon / (1 - e^-epsilon).

    Tight for an unlimited number of inputs. For two it is ln 2 - h(1/(1 + e^epsilon)), tight; for n between, the
    smaller of the first and of ln(n e^epsilon / (n - 1 + e^epsilon)), a bound.

    >>> conversions.ci_lmip_from_ldp(1.0, [2, 4, float("inf")]).value
    array([0.11094407, 0.12330156, 0.12330156])
    """
    epsilon, inputs = forms.validated(epsilon=epsilon, inputs=inputs)
    subsets = forms.subset_selection_capacity(epsilon)
    many = np.minimum(subsets, forms.minus_log_mean_inverse_ratio(epsilon, 1.0 / inputs))
    value = np.where(inputs < 3.0, forms.randomized_response_capacity(epsilon), many)
    return forms.information(value, unit, "convexity of r ln r", of=epsilon)


@conversion("dp", "ci_lmip", Formula(
    "tight", f"{KAIROUZ}; {PROVED}", rising="epsilon delta", assumptions=(_TWO_INPUTS,),
))
def ci_lmip_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest capacity of a channel with TWO inputs that is (epsilon, delta)-LDP.

    delta ln 2 + (1 - delta) (ln 2 - h(1/(1 + e^epsilon))); attained.

    >>> conversions.ci_lmip_from_dp([0.0, 1.0], 0.1).value
    array([0.06931472, 0.16916438])
    """
    epsilon, delta = forms.validated(epsilon=epsilon, delta=delta)
    value = delta * LOG_2 + (1.0 - delta) * forms.randomized_response_capacity(epsilon)
    return forms.information(value, unit, "the pair that dominates (epsilon, delta)", of=epsilon + delta)


@conversion("kl", "ci_lmip", Formula(
    "bound", "convexity of the divergence", rising="kl", assumptions=(EVERY_PAIR,), note="kl between any two rows",
))
def ci_lmip_from_kl(kl: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the largest divergence between two rows: the mean of the rows is no farther than the rows.

    >>> conversions.ci_lmip_from_kl(0.25).value
    0.25
    """
    return forms.same_number(unit, "convexity of the divergence", kl=kl)


@conversion("maximal_leakage", "ci_lmip", Formula(
    "bound", "Issa, Wagner and Kamath, An operational approach to information leakage (2020)", rising="leakage",
    note="attained by channels that reveal their input",
))
def ci_lmip_from_maximal_leakage(leakage: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the maximal leakage, which a channel that reveals its input attains.

    >>> conversions.ci_lmip_from_maximal_leakage(0.25).value
    0.25
    """
    return forms.same_number(unit, "monotonicity in the order", leakage=leakage)


@conversion("pointwise_lmip", "ci_lmip", Formula(
    "tight", "the capacity is the least radius of the rows; attained under the prior that attains the capacity",
    rising="mu", assumptions=(FULL_SUPPORT,),
))
def ci_lmip_from_pointwise_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Capacity is at most the largest D(P_x || P_M), whatever the prior, and equal under the one that attains it.

    >>> conversions.ci_lmip_from_pointwise_lmip(0.25).upper
    0.25
    """
    return forms.same_number(unit, mu=mu)


@conversion("ci_lmip", "cd_lmip", Formula("tight", "the definitions", rising="mu"))
def cd_lmip_from_ci_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """What bounds the mutual information under every prior bounds it under one.

    >>> conversions.cd_lmip_from_ci_lmip(0.25).upper
    0.25
    """
    return forms.same_number(unit, mu=mu)


@conversion("pointwise_lmip", "cd_lmip", Formula("tight", "the definitions", rising="mu"))
def cd_lmip_from_pointwise_lmip(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Mutual information is the mean of the divergences D(P_x || P_M), so at most the largest.

    >>> conversions.cd_lmip_from_pointwise_lmip(0.25).upper
    0.25
    """
    return forms.same_number(unit, mu=mu)


@conversion("mbp", "pointwise_lmip", Formula("tight", PROVED, rising="xi"))
def pointwise_lmip_from_mbp(xi: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest D(P_x || P_M) under xi-MBP: xi tanh(xi/2); subset selection of n/(1 + e^xi) out of n
    uniform inputs attains it, where that is a whole number.

    >>> conversions.pointwise_lmip_from_mbp(1.0).value
    0.46211715...
    """
    (xi,) = forms.validated(xi=xi)
    return forms.information(forms.randomized_response_kl(xi), unit, "xi tanh(xi / 2)", of=xi)


@conversion("ldp", "pointwise_lmip", Formula(
    "tight", PROVED, rising="epsilon", assumptions=(EVERY_PAIR,), note="approached by rare values",
))
def pointwise_lmip_from_ldp(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest D(P_x || P_M) under epsilon-LDP and any prior: epsilon tanh(epsilon/2), approached by rare x.

    >>> conversions.pointwise_lmip_from_ldp(1.0).value
    0.46211715...
    """
    (epsilon,) = forms.validated(epsilon=epsilon)
    return forms.information(forms.randomized_response_kl(epsilon), unit, "epsilon tanh(epsilon / 2)", of=epsilon)


@conversion("ldp", "maximal_leakage", Formula(
    "tight",
    "Alvim et al., Differential privacy: on the trade-off between utility and information leakage (2011); " + PROVED,
    rising="epsilon inputs", assumptions=(EVERY_PAIR,),
))
def maximal_leakage_from_ldp(
    epsilon: NumberLike, inputs: NumberLike = np.inf, *, unit: Information = "nats"
) -> Estimate:
    """Largest maximal leakage of an epsilon-LDP channel: ln(n e^epsilon / (n - 1 + e^epsilon)), n = ``inputs``.

    It is epsilon for an unlimited number of inputs; randomised response on n values attains it.

    >>> conversions.maximal_leakage_from_ldp(1.0, [2, 10, float("inf")]).value
    array([0.37988549, 0.84143492, 1.        ])
    """
    epsilon, inputs = forms.validated(epsilon=epsilon, inputs=inputs)
    value = forms.minus_log_mean_inverse_ratio(epsilon, 1.0 / inputs)
    return forms.information(value, unit, "ln(n e^epsilon / (n - 1 + e^epsilon))", of=epsilon)


@conversion("mbp", "maximal_leakage", Formula(
    "tight", PROVED, rising="xi", falling="pi_min", assumptions=(FULL_SUPPORT,),
    note="tight at pi_min = 0; attained for uniform priors too",
))
def maximal_leakage_from_mbp(xi: NumberLike, pi_min: NumberLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest maximal leakage under xi-MBP: min(xi, ln(1 + (1 - e^-xi) (1 - pi_min) / pi_min)).

    Randomised response with uniform prior attains it for every whole 1 / pi_min; so no smaller number holds for
    ``pi_min`` = 0.

    >>> conversions.maximal_leakage_from_mbp(1.0, [0.0, 0.1, 0.5]).value
    array([1.        , 1.        , 0.48988013])
    """
    xi, pi_min = forms.validated(xi=xi, pi_min=pi_min)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        least = np.minimum(xi, np.log1p((1.0 - pi_min) / pi_min * -np.expm1(-xi)))
    value = np.where((pi_min == 0.0) | (xi == 0.0), xi, least)
    nats = validate.choice("unit", unit, ("nats", "bits")) == "nats"
    unrounded = ((pi_min == 0.0) & nats) | (xi == 0.0)
    return forms.information(value, unit, "min(xi, ln(1 + (1 - e^-xi) (1 - pi_min) / pi_min))", unrounded=unrounded)
