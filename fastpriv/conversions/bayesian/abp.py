"""Average Bayesian privacy (ABP), the root of the Jensen-Shannon divergence of beliefs after and before a release.

Notation: f^A the belief after the release, averaged over the law of the release, f^B the attacker's prior, pi the true
one; h binary entropy in nats; JS(f^A || f^B) = E_{f^B} phi(f^A / f^B) / 2 with phi convex, phi(1) = 0.

MBP, any law of the release: f^A/f^B lies in [e^-x, e^x] with mean 1, x = xi + belief_gap, so JS is at most the chord of
phi/2 between the ends at 1: ln 2 - h(1/(1 + e^x)).
LDP: all ratios of two values of f^A/pi are at most e^epsilon, so JS is at most the largest of two Bernoulli laws whose
log odds differ by epsilon. With m the mean of their parameters, m + d and m - d the parameters and n = 2m - 1, its
derivative along the family has the sign of -n times the integral over s in [0, d] of
(d - s) (m(1-m) + ds) / ((m(1-m) - sn - s^2) (m(1-m) + sn - s^2)): the largest is the symmetric pair, m = 1/2.
A release drawn from the row of the secret d0: f^A(d)/pi(d) = E_q r_d r_d0 = 1 + Cov_q(r_d, r_d0), and a variable in
[e^-xi, e^xi] with mean 1 has variance at most c = (e^xi - 1)(1 - e^-xi) = 2 cosh xi - 2.
"""

# bounds: tested by enclosures/test_conversions_values - relative error, with the rounding of an exponent; 1e-8
#    chooses the series

from __future__ import annotations

import numpy as np

from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = ["abp_from_ldp", "abp_from_mbp", "abp_from_mbp_as_published", "abp_given_secret_from_mbp"]

_LARGEST = float(np.sqrt(np.log(2.0)))
_CEILING = float(np.nextafter(_LARGEST, 1.0))
_TURN = float(np.log(2.0))  # beyond this xi, e^-xi is above 3 - 2 cosh xi
_FULL = 40.0  # beyond it the answer is sqrt(ln 2) to the last bit


@documented
@monotone(rising="xi belief_gap")
def abp_from_mbp(xi: NumberLike, belief_gap: NumberLike = 0.0) -> Estimate:
    """Least ABP that follows from xi-MBP, whatever the law of the release: sqrt(ln 2 - h(1/(1 + e^x))).

    x = xi + belief_gap. Attained where the gap is 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.abp_from_mbp([0.1, 1.0, 10.0]).value
    array([0.03533326, 0.33308268, 0.83225465])
    """
    xi, belief_gap = validated(xi=xi, belief_gap=belief_gap)
    x = xi + belief_gap
    return bounded(
        _formulas.bernoulli_js_root(x), "1", "sqrt(ln 2 - h(1 / (1 + e^x))), x = xi + belief_gap", ceiling=_CEILING,
        settled=x == 0.0,
    )  # fmt: skip


@documented
@monotone(rising="xi belief_gap")
def abp_from_mbp_as_published(xi: NumberLike, belief_gap: NumberLike = 0.0) -> Estimate:
    """The published ABP, sqrt(x (e^x - 1) / 2) with x = xi + belief_gap.

    True, twice the least near 0, and beyond x = 0.9194 no better than sqrt(ln 2), which always holds.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.abp_from_mbp_as_published([0.1, 1.0]).value
    array([0.07251583, 0.92689855])
    """
    xi, belief_gap = validated(xi=xi, belief_gap=belief_gap)
    x = xi + belief_gap
    with np.errstate(over="ignore"):
        value = np.sqrt(0.5) * np.sqrt(x) * np.where(x < 700.0, np.sqrt(np.expm1(x)), np.exp(0.5 * x))
        error = (1e-14 + 2e-16 * x) * value  # the rounding of x, in an exponent
    method = "sqrt(x expm1(x) / 2), x = xi + belief_gap"
    return bounded(value, "1", method, error=np.where(np.isfinite(error), error, 0.0), settled=x == 0.0)


@documented
@monotone(rising="xi")
def abp_given_secret_from_mbp(xi: NumberLike) -> Estimate:
    """Bound of ABP for a release drawn from the row of the true secret; of order xi^2, far below the general one.

    f^A/pi lies in [a, b] = [max(e^-xi, 3 - 2 cosh xi), 2 cosh xi - 1], so that ABP is at most the root of
    ((1 - a) phi(b) + (b - 1) phi(a)) / (2 (b - a)).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.abp_given_secret_from_mbp([0.01, 0.1, 1.0]).value
    array([3.53556337e-05, 3.53853286e-03, 2.89631420e-01])
    """
    (xi,) = validated(xi=xi)
    x = np.minimum(xi, _FULL)
    c = 4.0 * np.sinh(0.5 * x) ** 2
    small = x <= _TURN
    near = np.where(small, c, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        symmetric = np.where(near < 1e-8, near * np.sqrt(0.125),
                             0.5 * np.sqrt(_formulas.phi(near) + _formulas.phi(-near)))  # fmt: skip
        left = -np.expm1(-np.where(small, 1.0, x))
        right = np.where(small, 1.0, c)
        chord = (left * _formulas.phi(right) + right * _formulas.phi(-left)) / (2.0 * (left + right))
    value = np.where(small, symmetric, np.where(xi > _FULL, _LARGEST, np.sqrt(chord)))
    return bounded(value, "1", "chord of phi between the ends of f^A / pi", ceiling=_CEILING, settled=xi == 0.0)


@documented
@monotone(rising="epsilon belief_gap")
def abp_from_ldp(epsilon: NumberLike, belief_gap: NumberLike = 0.0) -> Estimate:
    """Least ABP that follows from epsilon-LDP, whatever prior and law of the release: half of it goes each way.

    sqrt(ln 2 - h(1/(1 + e^x))) with x = epsilon/2 + belief_gap; attained where the gap is 0. The way over MBP gives
    x = epsilon, twice as much near 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.abp_from_ldp([0.1, 1.0, 10.0]).value
    array([0.01767491, 0.17406856, 0.80806409])
    """
    epsilon, belief_gap = validated(epsilon=epsilon, belief_gap=belief_gap)
    x = 0.5 * epsilon + belief_gap
    return bounded(
        _formulas.bernoulli_js_root(x), "1", "sqrt(ln 2 - h(1 / (1 + e^x))), x = epsilon / 2 + belief_gap",
        ceiling=_CEILING, settled=x == 0.0,
    )  # fmt: skip
