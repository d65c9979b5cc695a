"""What maximum Bayesian privacy (MBP) says of two rows of the channel: divergences, and (epsilon, delta).

Notation: q the law of the release under the prior, P and R two rows; xi-MBP puts both densities to q, p and r, into
[l, h] = [e^-xi, e^xi], and both have mean 1. RR(x) is the pair of Bernoulli laws s(x), s(-x) with s(x) = 1/(1 + e^-x).

An f-divergence is E_q r f(p/r), jointly convex in (p, r), so it is largest with (p, r) in the corners of the square.
Let t = 1/(1 + e^xi) be the probability of p = h, and of r = h. With probability s in (h, h) there is t - s in (h, l),
t - s in (l, h) and the rest in (l, l); f(1) = 0, and f(h/l) l + f(l/h) h is at least 0, so that s = 0 is the worst.
In that pair a part w = t (h + l) = (1 + e^(-2 xi)) / (1 + e^-xi) of P, and of R, is RR(2 xi), and the rest is common.
So every divergence is w times that of RR(2 xi): total variation 1 - e^-xi, Kullback-Leibler 2 xi (1 - e^-xi),
hockey-stick (1 - e^(e - 2 xi))^+ / (1 + e^-xi) at e^e. Two rare secrets with these rows attain it.
By way of LDP, w is 1. Where pi_min is known the epsilon of ``ldp_from_mbp`` may be below 2 xi, and that way better.
"""

# bounds: tested by enclosures/test_conversions_values - rounding of an exponent

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._estimates import monotone
from ...estimate import Estimate, Information, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded, information
from ..differential.approximate import dp_delta_from_ldp, dp_epsilon_from_ldp, total_variation_from_ldp
from ..differential.renyi import kl_from_ldp, rdp_from_ldp
from ..registry import documented
from .mbp import ldp_from_mbp

__all__ = ["dp_delta_from_mbp", "dp_epsilon_from_mbp", "kl_from_mbp", "rdp_from_mbp", "total_variation_from_mbp"]

FloatArray = NDArray[np.float64]
# bound: proved - below it the next term of the series is under half an ulp
_LEAST = 1e-280  # below it one term of a series is exact to the last bit


@documented
@monotone(rising="xi", falling="target_epsilon")
def dp_delta_from_mbp(xi: NumberLike, target_epsilon: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least delta at ``target_epsilon`` between two rows under xi-MBP: (1 - e^(t - 2 xi))^+ / (1 + e^-xi).

    t = ``target_epsilon``; or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_mbp(1.0, [0.0, 1.0, 2.0]).value
    array([0.63212056, 0.46211716, 0.        ])
    """
    xi, target, pi_min = validated(xi=xi, target_epsilon=target_epsilon, pi_min=pi_min)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.where(xi > 0.5 * target, 2.0 * (xi - 0.5 * target), 0.0)
    value = np.where(np.isinf(xi), 1.0, -np.expm1(-gap) / (1.0 + np.exp(-xi)))
    direct = bounded(value, "probability", "(1 - e^(t - 2 xi))^+ / (1 + e^-xi)", ceiling=1.0,
                     settled=np.isinf(xi) | (gap == 0.0))  # fmt: skip
    return _smaller(direct, xi, pi_min, lambda epsilon: dp_delta_from_ldp(epsilon, target))


@documented
@monotone(rising="xi", falling="delta")
def dp_epsilon_from_mbp(xi: NumberLike, delta: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon at ``delta`` between two rows under xi-MBP: 2 xi + ln(1 - delta (1 + e^-xi)), at least 0.

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_mbp(1.0, [0.0, 0.1, 0.7]).value
    array([2.        , 1.85..., 0.        ])
    """
    xi, delta, pi_min = validated(xi=xi, delta=delta, pi_min=pi_min)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lost = delta * (1.0 + np.exp(-xi))
        kept = np.where(lost < 1.0, -np.log1p(-np.minimum(lost, 1.0)), np.inf)
        value = np.where(np.isinf(kept), 0.0, np.maximum(2.0 * xi - kept, 0.0))
        steep = np.where(lost < 1.0, lost / (1.0 - np.minimum(lost, 1.0)), 0.0)
        error = 4e-16 * (2.0 * xi + kept + steep)
    value = np.where(np.isinf(xi) & (delta < 1.0), np.inf, np.where(delta == 1.0, 0.0, value))
    direct = bounded(
        value, "nats", "2 xi + ln(1 - delta (1 + e^-xi))", error=np.where(np.isfinite(error), error, 0.0),
        settled=(delta == 1.0) | (xi == 0.0) | np.isinf(xi),
    )  # fmt: skip
    return _smaller(direct, xi, pi_min, lambda epsilon: dp_epsilon_from_ldp(epsilon, delta))


@documented
@monotone(rising="xi")
def total_variation_from_mbp(xi: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Largest total variation of two rows under xi-MBP: 1 - e^-xi.

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.total_variation_from_mbp(1.0, [0.0, 0.5]).value
    array([0.63212056, 0.63212056])
    """
    xi, pi_min = validated(xi=xi, pi_min=pi_min)
    direct = bounded(-np.expm1(-xi), "probability", "1 - e^-xi", ceiling=1.0, settled=xi == 0.0)
    return _smaller(direct, xi, pi_min, total_variation_from_ldp)


@documented
@monotone(rising="xi")
def kl_from_mbp(xi: NumberLike, pi_min: ArrayLike = 0.0, *, unit: Information = "nats") -> Estimate:
    """Largest Kullback-Leibler divergence of two rows under xi-MBP: 2 xi (1 - e^-xi).

    Or what follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.kl_from_mbp([0.1, 1.0]).value
    array([0.01903252, 1.26424112])
    """
    xi, pi_min = validated(xi=xi, pi_min=pi_min)
    with np.errstate(over="ignore"):
        direct = information(-2.0 * xi * np.expm1(-xi), unit, "2 xi (1 - e^-xi)", settled=xi == 0.0)
    return _smaller(direct, xi, pi_min, lambda epsilon: kl_from_ldp(epsilon, unit=unit))


@documented
@monotone(rising="xi order")
def rdp_from_mbp(xi: NumberLike, order: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Largest Renyi divergence of two rows under xi-MBP: ln(1 - w + w e^((a-1) r)) / (a - 1), order a.

    w = (1 + e^(-2 xi)) / (1 + e^-xi), r the divergence of randomised response with 2 xi; 2 xi at order inf. Or what
    follows from the epsilon of ``ldp_from_mbp`` where ``pi_min`` makes that smaller.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.rdp_from_mbp(0.5, [1.0, 2.0, float("inf")]).value
    array([0.39346934, 0.654..., 1.        ])
    """
    xi, order, pi_min = validated(xi=xi, order=order, pi_min=pi_min)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        twice = 2.0 * xi
        rest = np.exp(-xi) * -np.expm1(-xi) / (1.0 + np.exp(-xi))  # 1 - w
        renyi = _formulas.response_renyi(twice, order)
        exponent = (order - 1.0) * renyi
        value = _formulas.tilted(exponent, rest) / (order - 1.0)
        value = np.where(exponent < _LEAST, (1.0 - rest) * renyi, np.where(exponent < np.inf, value, renyi))
    direct = bounded(value, "nats", "randomised response of 2 xi, in part", settled=(xi == 0.0) | np.isinf(xi))
    return _smaller(direct, xi, pi_min, lambda epsilon: rdp_from_ldp(epsilon, order))


def _smaller(direct: Estimate, xi: FloatArray, pi_min: FloatArray, by_ldp: Callable[[Any], Estimate]) -> Estimate:
    """The smaller of the direct bound and of that by way of LDP, which only a known ``pi_min`` can make better."""
    if not pi_min.any():
        return direct
    way = ldp_from_mbp(xi, pi_min)
    low, middle, high = by_ldp(way.lower), by_ldp(way.value), by_ldp(way.upper)
    value = np.minimum(direct.value, middle.value)
    lower, upper = np.minimum(direct.lower, low.lower), np.minimum(direct.upper, high.upper)
    return Estimate(
        np.clip(value, lower, upper), lower, upper, kind=direct.kind, unit=direct.unit,
        method=f"smaller of {direct.method} and of the way by LDP",
    )  # fmt: skip
