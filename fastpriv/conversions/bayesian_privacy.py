"""Maximum Bayesian privacy (MBP) and what follows: pure local privacy (LDP, LIP), divergences of rows, robustness.

Notation: Q channel, pi prior, q = pi Q the distribution of the release, r_d(w) = Q[d, w] / q[w] = posterior / prior.
LDP: Q[d, w] <= e^epsilon Q[d', w]. MBP: |ln r| <= xi; xi_plus and xi_minus bound ln r and -ln r. Pure LIP is the same
condition as MBP, epsilon for xi.

LDP to MBP: 1/r_d(w) = pi_d + sum over d' != d of pi_d' Q[d', w]/Q[d, w] lies between pi_d + (1 - pi_d) e^-epsilon and
pi_d + (1 - pi_d) e^epsilon. MBP to LDP: maximise r_d/r_d' over vectors with sum pi r = 1 and every r in its range; the
optimum of that linear-fractional problem has all but one entry at an end of the range. With three secrets or more the
raised and the lowered one may both have the smallest probability; above 1/3 there are two, of pi_min and 1 - pi_min.

MBP to divergences of two rows P and R: xi-MBP puts both densities to q, p and r, into [l, h] = [e^-xi, e^xi], and both
have mean 1. RR(x) is the pair of Bernoulli distributions s(x), s(-x) with s(x) = 1/(1 + e^-x). An f-divergence is
E_q r f(p/r), jointly convex in (p, r), so it is largest with (p, r) in the corners of the square. Let t = 1/(1 + e^xi)
be the probability of p = h, and of r = h. With probability s in (h, h) there is t - s in (h, l), t - s in (l, h) and
the rest in (l, l); f(1) = 0, and f(h/l) l + f(l/h) h is at least 0, so that s = 0 is the worst. In that pair a part
w = t (h + l) = (1 + e^(-2 xi)) / (1 + e^-xi) of P, and of R, is RR(2 xi), and the rest is common. So every divergence
is w times that of RR(2 xi): total variation 1 - e^-xi, Kullback-Leibler 2 xi (1 - e^-xi), hockey-stick
(1 - e^(e - 2 xi))^+ / (1 + e^-xi) at e^e. Two rare secrets with these rows attain it. By way of LDP, w is 1. Where
pi_min is known the epsilon of ``ldp_from_mbp`` may be below 2 xi, and then that way is better.

Robust accuracy: beta bounds the probability that the release misses its target by more than alpha for one secret, gamma
for each other one; the event, and with it alpha, is the same. T_x(b) = min(e^x b, 1 - e^-x (1 - b)) is the largest
probability of an event under a distribution whose log ratios to the first are at most x. LDP relates the rows directly;
MBP relates each row to their mean, hence two steps.

Proofs: docs/proofs/conversions.md, theorems 12.1 to 12.3 and 12.8.
"""

# bounds: proved - docs/proofs/roundings.md, 13.11: outward steps of the shift and of its ends, the rounding of an
#    exponent, and underflow between two steps

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike
from ..base.numerics import BoolArray, FloatArray
from . import _closed_forms as forms
from .declaration import Formula, TightOrPublished, conversion
from .differential_privacy import dp_delta_from_ldp, dp_epsilon_from_ldp, total_variation_from_ldp
from .renyi_privacy import kl_from_ldp, rdp_from_ldp
from .vocabulary import EVERY_PAIR, FULL_SUPPORT, PROVED, ZHANG_CHEN, Assumption

_THIRD = 1.0 / 3.0  # a larger smallest probability leaves two secrets
# bound: proved - below it the next term of the series is under half an ulp
_ONE_TERM = 1e-280  # below this exponent the first term of a logarithm's series is exact to the last bit
_UNIFORM = Assumption("prior uniform, or within prior_spread of it")  # of the conversions that take prior_spread


@conversion(
    "ldp", "mbp",
    Formula("tight", PROVED, only="pi_min", rising="epsilon", falling="pi_min", assumptions=(EVERY_PAIR,),
            note="needs nothing of the prior; pi_min = 0 gives epsilon, for every prior"),
    Formula("as_published", f"{ZHANG_CHEN}, theorem IV.4, lemmas A.1, A.5", only="prior_spread",
            rising="epsilon prior_spread", assumptions=(_UNIFORM, EVERY_PAIR),
            note="true without the assumption and without prior_spread; loose"),
)
def mbp_from_ldp(
    epsilon: NumberLike, pi_min: NumberLike = 0.0, *, prior_spread: NumberLike = 0.0, form: TightOrPublished = "tight"
) -> Estimate:
    """Least xi such that epsilon-LDP gives xi-MBP under every prior whose smallest probability is ``pi_min``.

    xi = ln(pi_min + (1 - pi_min) e^epsilon), below epsilon; attained by a channel with two releases.

    As published: epsilon + prior_spread, which is true and loose; the spread is not needed.

    >>> conversions.mbp_from_ldp(1.0, [0.0, 0.01, 0.5]).value
    array([1.        , 0.99365873, 0.62011451])
    >>> conversions.mbp_from_ldp(1.0, prior_spread=0.5, form="as_published").value
    1.5
    """
    if form == "as_published":
        epsilon, prior_spread = forms.validated(epsilon=epsilon, prior_spread=prior_spread)
        return _nats(epsilon + prior_spread, "epsilon + prior_spread", prior_spread == 0.0)
    epsilon, pi_min = forms.validated(epsilon=epsilon, pi_min=pi_min)
    return _nats(forms.log_mean_ratio(epsilon, pi_min), "ln(pi_min + (1 - pi_min) e^epsilon)", _ends(epsilon))


@conversion(
    "mbp", "ldp",
    Formula("tight", PROVED, only="pi_min", rising="xi", assumptions=(FULL_SUPPORT,)),
    Formula("as_published", f"{ZHANG_CHEN}, theorem IV.4, lemmas A.2, A.6", only="prior_spread",
            rising="xi prior_spread", assumptions=(_UNIFORM, FULL_SUPPORT), note="true; prior_spread is unnecessary"),
)
def ldp_from_mbp(
    xi: NumberLike, pi_min: ArrayLike = 0.0, *, prior_spread: NumberLike = 0.0, form: TightOrPublished = "tight"
) -> Estimate:
    """Least epsilon such that xi-MBP under a prior with smallest probability ``pi_min`` gives epsilon-LDP.

    epsilon = min(2 xi, ln(1 + (e^xi - 1) / pi_min)); above 1/3, where there are two secrets, also at most
    -ln(1 - (1 - e^-xi) / (1 - pi_min)), where that exists. Attained for every ``pi_min`` by some prior that has it.

    As published: 2 xi + prior_spread, which is true; the spread is not needed.

    >>> conversions.ldp_from_mbp(1.0, [0.0, 0.4, 0.5]).value
    array([2.        , 1.66689603, 1.48988013])
    >>> conversions.ldp_from_mbp(1.0, prior_spread=0.5, form="as_published").value
    2.5
    """
    if form == "as_published":
        xi, prior_spread = forms.validated(xi=xi, prior_spread=prior_spread)
        total = _twice(xi) + prior_spread
        return _nats(total, "2 xi + prior_spread", (prior_spread == 0.0) & (np.isfinite(total) | np.isinf(xi)))
    xi, pi_min = forms.validated(xi=xi, pi_min=pi_min)
    two = np.where(pi_min > _THIRD, _lowered_log_ratio(xi, 1.0 - pi_min, 0.0), np.inf)
    least = np.minimum(np.minimum(_twice(xi), _raised_log_ratio(xi, pi_min)), two)
    return _nats(least, "min(2 xi, ln(1 + expm1(xi) / pi_min))", _ends(xi))


@conversion("mbp", "ldp", Formula(
    "tight", PROVED, rising="xi_plus xi_minus", assumptions=(FULL_SUPPORT,), note="takes xi_plus and xi_minus apart",
))
def ldp_from_mbp_sides(xi_plus: NumberLike, xi_minus: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon from separate bounds on how much likelier and how much less likely a secret becomes.

    epsilon = min(xi_plus + xi_minus, ln(1 + (e^xi_minus - 1) / pi_min), -ln(1 - (1 - e^-xi_plus) / pi_min)), the last
    where 1 - e^-xi_plus < pi_min. Above 1/3, where there are two secrets, the larger of what remains with pi_min in
    one and 1 - pi_min in the other of the last two terms.

    >>> conversions.ldp_from_mbp_sides(0.2, 1.0).value
    1.2
    >>> conversions.ldp_from_mbp_sides(0.2, 1.0, 0.25).value
    1.2
    >>> conversions.ldp_from_mbp_sides(0.2, 1.0, 0.5).value
    0.45...
    """
    xi_plus, xi_minus, pi_min = forms.validated(xi_plus=xi_plus, xi_minus=xi_minus, pi_min=pi_min)
    low, value, high = (_vertices(xi_plus, xi_minus, pi_min, shift) for shift in (-1e-15, 0.0, 1e-15))
    value = np.where((xi_plus == 0.0) | (xi_minus == 0.0), 0.0, value)  # ratios on one side of their mean, 1, are 1
    with np.errstate(over="ignore"):
        upper = np.where(value == 0.0, 0.0, np.maximum(high * (1.0 + 1e-14) + 5e-322, value))
    lower = np.minimum(np.maximum(low * (1.0 - 1e-14) - 5e-322, 0.0), value)
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="least of the three vertices")


@conversion("mbp", "lip", Formula("tight", "the definitions agree", rising="xi"))
def lip_from_mbp(xi: NumberLike) -> Estimate:
    """Pure LIP is the condition of MBP under another name: epsilon = xi.

    >>> conversions.lip_from_mbp(0.5).value
    0.5
    """
    return forms.same_number("nats", xi=xi)


@conversion("lip", "mbp", Formula("tight", "the definitions agree", rising="epsilon"))
def mbp_from_lip(epsilon: NumberLike) -> Estimate:
    """MBP is the condition of pure LIP under another name: xi = epsilon.

    >>> conversions.mbp_from_lip(0.5).value
    0.5
    """
    return forms.same_number("nats", epsilon=epsilon)


def _raised_log_ratio(xi: FloatArray, pi_min: FloatArray) -> FloatArray:
    """ln(1 + expm1(xi) / pi_min), as xi + ln(1 + (1 - pi_min)/pi_min (1 - e^-xi)); inf at pi_min = 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = (1.0 - pi_min) / pi_min
        return np.asarray(np.where(xi == 0.0, 0.0, xi + np.log1p(odds * -np.expm1(-xi))))


def _vertices(plus: FloatArray, minus: FloatArray, pi_min: FloatArray, shift: float) -> FloatArray:
    """The optimum: the raised secret has probability pi_min and the lowered one ``other``, or with two the reverse."""
    two_secrets = pi_min > _THIRD
    other = np.where(two_secrets, 1.0 - pi_min, pi_min)
    raised, lowered = (
        np.minimum(np.minimum(plus + minus, _raised_log_ratio(minus, up)), _lowered_log_ratio(plus, down, shift))
        for up, down in ((pi_min, other), (other, pi_min))
    )
    return np.where(two_secrets, np.maximum(raised, lowered), raised)


def _lowered_log_ratio(xi_plus: FloatArray, pi_min: FloatArray, shift: float) -> FloatArray:
    """-ln(1 - (1 - e^-xi_plus) / pi_min), inf where there is no such number; the ratio moved by a relative shift."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = -special.expm1(-xi_plus) / pi_min * (1.0 + shift)
        inside = (pi_min > 0.0) & (ratio < 1.0)
        return np.asarray(np.where(inside, -special.log1p(-np.where(inside, ratio, 0.0)), np.inf))


def _ends(value: FloatArray) -> BoolArray:
    """Where the answer is 0 or inf without rounding."""
    return np.asarray((value == 0.0) | np.isinf(value))


def _twice(level: FloatArray) -> FloatArray:
    """Twice the number; infinite on overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * level)


def _nats(value: FloatArray, method: str, unrounded: object) -> Estimate:
    return forms.bounded(value, "nats", method, unrounded=unrounded)


@conversion("mbp", "dp", Formula(
    "tight", PROVED, rising="xi", falling="target_epsilon", assumptions=(FULL_SUPPORT,), note="tight at pi_min = 0",
))
def dp_delta_from_mbp(xi: NumberLike, target_epsilon: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least delta at ``target_epsilon`` between two rows under xi-MBP: (1 - e^(t - 2 xi))^+ / (1 + e^-xi).

    t = ``target_epsilon``; or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    >>> conversions.dp_delta_from_mbp(1.0, [0.0, 1.0, 2.0]).value
    array([0.63212056, 0.46211716, 0.        ])
    """
    xi, target, pi_min = forms.validated(xi=xi, target_epsilon=target_epsilon, pi_min=pi_min)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(xi > 0.5 * target, 2.0 * (xi - 0.5 * target), 0.0)
    value = np.where(np.isinf(xi), 1.0, -np.expm1(-gap) / (1.0 + np.exp(-xi)))
    direct = forms.bounded(
        value, "probability", "(1 - e^(t - 2 xi))^+ / (1 + e^-xi)", ceiling=1.0, unrounded=np.isinf(xi) | (gap == 0.0)
    )
    return _smaller_bound(direct, xi, pi_min, lambda epsilon: dp_delta_from_ldp(epsilon, target))


@conversion("mbp", "dp", Formula(
    "tight", PROVED, rising="xi", falling="delta", assumptions=(FULL_SUPPORT,), note="tight at pi_min = 0",
))
def dp_epsilon_from_mbp(xi: NumberLike, delta: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon at ``delta`` between two rows under xi-MBP: 2 xi + ln(1 - delta (1 + e^-xi)), at least 0.

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    >>> conversions.dp_epsilon_from_mbp(1.0, [0.0, 0.1, 0.7]).value
    array([2.        , 1.85..., 0.        ])
    """
    xi, delta, pi_min = forms.validated(xi=xi, delta=delta, pi_min=pi_min)
    with np.errstate(over="ignore"):
        value, error = forms.dominating_epsilon(2.0 * xi, delta * (1.0 + np.exp(-xi)))
    value = np.where(np.isinf(xi) & (delta < 1.0), np.inf, np.where(delta == 1.0, 0.0, value))
    direct = forms.bounded(
        value, "nats", "2 xi + ln(1 - delta (1 + e^-xi))", error=error,
        unrounded=(delta == 1.0) | (xi == 0.0) | np.isinf(xi),
    )
    return _smaller_bound(direct, xi, pi_min, lambda epsilon: dp_epsilon_from_ldp(epsilon, delta))


@conversion("mbp", "total_variation", Formula(
    "tight", PROVED, rising="xi", assumptions=(FULL_SUPPORT,), note="tight at pi_min = 0",
))
def total_variation_from_mbp(xi: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Largest total variation of two rows under xi-MBP: 1 - e^-xi.

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    >>> conversions.total_variation_from_mbp(1.0, [0.0, 0.5]).value
    array([0.63212056, 0.63212056])
    """
    xi, pi_min = forms.validated(xi=xi, pi_min=pi_min)
    direct = forms.bounded(-np.expm1(-xi), "probability", "1 - e^-xi", ceiling=1.0, unrounded=xi == 0.0)
    return _smaller_bound(direct, xi, pi_min, total_variation_from_ldp)


@conversion("mbp", "kl", Formula("tight", PROVED, rising="xi", assumptions=(FULL_SUPPORT,), note="tight at pi_min = 0"))
def kl_from_mbp(xi: NumberLike, pi_min: ArrayLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest Kullback-Leibler divergence of two rows under xi-MBP: 2 xi (1 - e^-xi).

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    >>> conversions.kl_from_mbp([0.1, 1.0]).value
    array([0.01903252, 1.26424112])
    """
    xi, pi_min = forms.validated(xi=xi, pi_min=pi_min)
    with np.errstate(over="ignore"):
        direct = forms.information(-2.0 * xi * np.expm1(-xi), unit, "2 xi (1 - e^-xi)", unrounded=xi == 0.0)
    return _smaller_bound(direct, xi, pi_min, lambda epsilon: kl_from_ldp(epsilon, unit=unit))


@conversion("mbp", "rdp", Formula(
    "tight", PROVED, rising="xi order", assumptions=(FULL_SUPPORT,), note="tight at pi_min = 0",
))
def rdp_from_mbp(xi: NumberLike, order: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Largest Renyi divergence of two rows under xi-MBP: ln(1 - w + w e^((a-1) r)) / (a - 1), order a.

    w = (1 + e^(-2 xi)) / (1 + e^-xi), r the divergence of randomised response with 2 xi; 2 xi at order inf. Or what
    follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    >>> conversions.rdp_from_mbp(0.5, [1.0, 2.0, float("inf")]).value
    array([0.39346934, 0.654..., 1.        ])
    """
    xi, order, pi_min = forms.validated(xi=xi, order=order, pi_min=pi_min)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        twice = 2.0 * xi
        remainder = np.exp(-xi) * -np.expm1(-xi) / (1.0 + np.exp(-xi))  # 1 - w
        renyi = forms.randomized_response_renyi(twice, order)
        exponent = (order - 1.0) * renyi
        value = forms.log_mean_ratio(exponent, remainder) / (order - 1.0)
        value = np.where(exponent < _ONE_TERM, (1.0 - remainder) * renyi, np.where(exponent < np.inf, value, renyi))
    direct = forms.bounded(value, "nats", "randomised response of 2 xi, in part", unrounded=(xi == 0.0) | np.isinf(xi))
    return _smaller_bound(direct, xi, pi_min, lambda epsilon: rdp_from_ldp(epsilon, order))


def _smaller_bound(direct: Estimate, xi: FloatArray, pi_min: FloatArray, by_ldp: Callable[[Any], Estimate]) -> Estimate:
    """The smaller of the direct bound and of that by way of LDP, which only a known ``pi_min`` can make better."""
    if not pi_min.any():
        return direct
    epsilon = ldp_from_mbp(xi, pi_min)
    low, middle, high = by_ldp(epsilon.lower), by_ldp(epsilon.value), by_ldp(epsilon.upper)
    known = pi_min > 0.0
    value, lower, upper = (
        np.where(known, np.minimum(array, other), array)
        for array, other in zip(direct.arrays(), (middle.value, low.lower, high.upper), strict=True)
    )
    return Estimate(
        np.clip(value, lower, upper), lower, upper, kind=direct.kind, unit=direct.unit,
        method=f"smaller of {direct.method} and of the way by LDP",
    )


@conversion(
    "mbp", "robustness",
    Formula("tight", PROVED, only="pi_min", rising="xi beta", assumptions=(FULL_SUPPORT,),
            note="for each other secret separately; alpha is the same; tight at pi_min = 0"),
    Formula("as_published", f"{ZHANG_CHEN}, theorem IV.7, A.9", rising="xi beta", assumptions=(FULL_SUPPORT,),
            domain="xi at most 1", note="false for xi above 0.62822: 0.00739 against 0.005 at xi = 1", holds=False),
)
def robustness_from_mbp(
    xi: NumberLike, beta: NumberLike, pi_min: ArrayLike = 0.0, *, form: TightOrPublished = "tight"
) -> Estimate:
    """Least gamma such that (xi, beta, alpha)-MBP misses by more than alpha with at most gamma, for each other secret.

    T_xi(T_xi(beta)), or T_e(beta) with the epsilon e of ``ldp_from_mbp`` where a known ``pi_min`` makes that smaller.
    For ``pi_min`` = 0 no smaller number holds for all priors.

    As published: (1 + 4 xi) beta, for xi up to 1; FALSE for xi above 0.62822, where e^(2 xi) exceeds 1 + 4 xi. At 1
    and beta = 0.001 it says 0.005, and 0.00739 occurs.

    >>> conversions.robustness_from_mbp(1.0, [0.001, 0.1]).value
    array([0.00738906, 0.73212056])
    >>> conversions.robustness_from_mbp(1.0, 0.001, form="as_published").value
    0.005
    """
    if form == "as_published":
        validate.real(
            "xi", xi, "between 0 and 1", lambda x: (x >= 0) & (x <= 1), remedy="Use form 'tight' for a larger one.",
        )
        xi, beta = forms.validated(xi=xi, beta=beta)
        return forms.bounded((1.0 + 4.0 * xi) * beta, "probability", "(1 + 4 xi) beta", ceiling=1.0)
    xi, beta, pi_min = forms.validated(xi=xi, beta=beta, pi_min=pi_min)
    best = forms.largest_probability(xi, forms.largest_probability(xi, beta))
    if pi_min.any():
        by_ldp = forms.largest_probability(ldp_from_mbp(xi, pi_min).arrays()[0], beta)
        best = np.where(pi_min > 0.0, np.minimum(best, by_ldp), best)
    error = (1e-14 + 1e-14 * xi.clip(max=1500.0) * (pi_min > 0.0)) * best + 1e-323 * np.exp(xi.clip(max=700.0))
    return forms.bounded(best, "probability", "T_xi(T_xi(beta))", error=error, ceiling=1.0)


@conversion("ldp", "robustness", Formula("tight", PROVED, rising="epsilon beta", assumptions=(EVERY_PAIR,)))
def robustness_from_ldp(epsilon: NumberLike, beta: NumberLike) -> Estimate:
    """Least gamma under epsilon-LDP: T_epsilon(beta) = min(e^epsilon beta, 1 - e^-epsilon (1 - beta)).

    >>> conversions.robustness_from_ldp(1.0, [0.001, 0.5]).value
    array([0.00271828, 0.81606028])
    """
    epsilon, beta = forms.validated(epsilon=epsilon, beta=beta)
    return forms.bounded(forms.largest_probability(epsilon, beta), "probability", "T_epsilon(beta)", ceiling=1.0)
