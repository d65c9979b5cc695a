"""Zero-concentrated differential privacy (zCDP): the Renyi divergence of order a is at most rho a, for every a > 1.

Pure privacy to zCDP: the divergence of randomised response is (L(s) - L(1/4)) / (a - 1) with L(s) = ln cosh(epsilon
sqrt(s)) and s = (a - 1/2)^2, so that divided by a it is the slope of a chord of L from 1/4; L is concave, hence the
largest slope is L'(1/4) = epsilon tanh(epsilon/2), approached as a tends to 1.
zCDP to (epsilon, delta): the conversion of Renyi privacy at the best order; with t = a - 1 that order solves
rho t^2 + ln(1 + t) = ln(1/delta), or (2t + 1) rho + ln(t/(1 + t)) = epsilon. Both sides are monotone in t, and any t
gives a true bound, so that the search cannot make it untrue. For a small rho the least epsilon and delta of some orders
down to 1 (``tangents``) promise more: nothing is left at epsilon = 0 from the total variation sqrt(rho / 2) on.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._estimates import monotone
from ...estimate import Estimate, Information, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded, information
from ..registry import documented
from .tangents import Least, improved, least_delta, least_epsilon

__all__ = [
    "dp_delta_from_zcdp", "dp_epsilon_from_zcdp", "dp_epsilon_from_zcdp_as_published", "kl_from_zcdp", "zcdp_from_gdp",
    "zcdp_from_ldp", "zcdp_from_ldp_as_published",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_HALVINGS = 44
# bound: tested by enclosures/test_conversions_values - where limits take the place of a search
_LEAST, _MOST = 1e-290, 1e290
# bound: tested by enclosures/test_conversions_values - rounding of each term of the exponent
_ULPS = 2e-15
_PARTS = (0.0, 2.0**-6, 2.0**-4, 0.25, 0.5, 1.0)  # of the best order less 1


@documented
@monotone(rising="epsilon")
def zcdp_from_ldp(epsilon: NumberLike) -> Estimate:
    """Least rho such that pure privacy gives rho-zCDP: epsilon tanh(epsilon/2), below epsilon^2/2.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.zcdp_from_ldp([0.1, 1.0, 10.0]).value
    array([4.99583750e-03, 4.62117157e-01, 9.99909204e+00])
    """
    (epsilon,) = validated(epsilon=epsilon)
    return bounded(_formulas.mean_loss(epsilon), "nats", "epsilon tanh(epsilon / 2)", settled=epsilon == 0.0)


@documented
@monotone(rising="epsilon")
def zcdp_from_ldp_as_published(epsilon: NumberLike) -> Estimate:
    """The published rho, epsilon^2/2: true, near the least for small epsilon.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.zcdp_from_ldp_as_published(10.0).value
    50.0
    """
    (epsilon,) = validated(epsilon=epsilon)
    with np.errstate(over="ignore"):
        return bounded(0.5 * epsilon * epsilon, "nats", "epsilon^2 / 2", settled=epsilon == 0.0)


@documented
@monotone(rising="separation")
def zcdp_from_gdp(separation: NumberLike) -> Estimate:
    """Least rho such that Gaussian privacy gives rho-zCDP: separation^2/2, that of two unit normal laws.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.zcdp_from_gdp(2.0).value
    2.0
    """
    (separation,) = validated(separation=separation)
    with np.errstate(over="ignore"):
        return bounded(0.5 * separation * separation, "nats", "separation^2 / 2", settled=separation == 0.0)


@documented
@monotone(rising="rho")
def kl_from_zcdp(rho: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Kullback-Leibler is the limit at order 1: at most rho, which normal laws attain.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.kl_from_zcdp(0.25).value
    0.25
    """
    (rho,) = validated(rho=rho)
    nats = _validate.choice("unit", unit, ("nats", "bits")) == "nats"
    return information(rho, unit, "order 1", settled=nats)


@documented
@monotone(rising="rho", falling="delta")
def dp_epsilon_from_zcdp(rho: NumberLike, delta: NumberLike) -> Estimate:
    """Epsilon at ``delta`` from rho-zCDP, at the best order: least of rho a + ln(1 - 1/a) - ln(a delta) / (a - 1).

    Less where rho is small: 0 from the largest total variation on.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_zcdp(0.5, [1e-9, 1e-6]).value
    array([6.47407002, 5.22153434])
    """
    rho, delta = validated(rho=rho, delta=delta)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        budget = -np.log(delta)
        high = np.clip(np.minimum(np.sqrt(budget) / np.sqrt(rho), np.expm1(np.minimum(budget, 660.0))), _LEAST, _MOST)
        low = np.clip(
            np.minimum(np.sqrt(0.5 * budget) / np.sqrt(rho), np.expm1(np.minimum(0.5 * budget, 660.0))), _LEAST, _MOST
        )
        t = _search(low, high, lambda s: rho * s * s + np.log1p(s) >= budget)
        # ln(1 - 1/a) - ln(a)/t - ln(delta)/t with ln a = log1p(t), ln(1 - 1/a) = -log1p(1/t)
        terms = rho * (1.0 + t), np.log1p(1.0 / t), (budget - np.log1p(t)) / t
        value = terms[0] - terms[1] + terms[2]
        error = _ULPS * (terms[0] + terms[1] + np.abs(terms[2]) + (budget + np.log1p(t)) / t)
    value = np.where((rho == 0.0) | (delta == 1.0), 0.0, np.where(delta == 0.0, np.inf, np.maximum(value, 0.0)))
    value = np.where(np.isinf(rho) & (delta < 1.0), np.inf, value)
    value, error = _at_lower_orders(least_epsilon, value, error, rho, t, delta)
    settled = (rho == 0.0) | (delta == 1.0) | np.isinf(value)
    return bounded(value, "nats", "Renyi privacy at the best order", error=np.where(settled, 0.0, error),
                   settled=settled)  # fmt: skip


@documented
@monotone(rising="rho", falling="delta")
def dp_epsilon_from_zcdp_as_published(rho: NumberLike, delta: NumberLike) -> Estimate:
    """The published epsilon, rho + 2 sqrt(rho ln(1/delta)): true, above ``dp_epsilon_from_zcdp``.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_zcdp_as_published(0.5, 1e-6).value
    5.75652...
    """
    rho, delta = validated(rho=rho, delta=delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.where(rho == 0.0, 0.0, 2.0 * np.sqrt(rho) * np.sqrt(-np.log(delta)))
        value = rho + np.where(delta == 1.0, 0.0, spread)
    return bounded(value, "nats", "rho + 2 sqrt(rho ln(1/delta))", settled=(rho == 0.0) | np.isinf(value))


@documented
@monotone(rising="rho", falling="epsilon")
def dp_delta_from_zcdp(rho: NumberLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from rho-zCDP, at the best order: least of e^((a-1)(rho a - epsilon)) (1 - 1/a)^(a-1) / a.

    Less where rho is small: at most the largest total variation.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_zcdp(0.5, [1.0, 5.0]).value
    array([2.15729916e-01, 2.89611824e-06])
    """
    rho, epsilon = validated(rho=rho, epsilon=epsilon)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low = np.full_like(rho, _LEAST)
        high = np.clip(np.maximum(1.0, 0.5 * (epsilon + 2.0) / rho), 1.0, _MOST)
        t = _search(low, high, lambda s: (2.0 * s + 1.0) * rho - np.log1p(1.0 / s) >= epsilon)
        kept = t * np.log1p(1.0 / t) + np.log1p(t)
        exponent = t * (rho * (1.0 + t) - epsilon) - kept
        size = t * (rho * (1.0 + t) + epsilon) + kept + 4.0
        value = np.where(np.isnan(exponent), 1.0, np.exp(np.minimum(exponent, 0.0)))
    value = np.where((rho == 0.0) | (np.isinf(epsilon) & np.isfinite(rho)), 0.0, np.where(np.isinf(rho), 1.0, value))
    error = np.where(value == 0.0, 0.0, np.where(np.isfinite(size), _ULPS * size, 1.0) * value)
    value, error = _at_lower_orders(least_delta, value, error, rho, t, epsilon)
    return bounded(
        value, "probability", "Renyi privacy at the best order", error=error, ceiling=1.0, settled=rho == 0.0
    )


def _at_lower_orders(
    least: Least, value: FloatArray, error: FloatArray, rho: FloatArray, t: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray]:
    for part in _PARTS:
        order = 1.0 + part * np.minimum(t, 1e15)
        with np.errstate(over="ignore"):
            renyi = np.where(rho == 0.0, 0.0, np.nextafter(rho * order, np.inf))
        value, error = improved(least, value, error, renyi, order, target)
    return value, error


def _search(low: FloatArray, high: FloatArray, beyond: Callable[[FloatArray], NDArray[np.bool_]]) -> FloatArray:
    """Where ``beyond`` turns true between low and high, by bisection of the logarithm."""
    left, right = np.log(low), np.log(high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (left + right)
        past = beyond(np.exp(middle))
        left, right = np.where(past, left, middle), np.where(past, middle, right)
    return np.asarray(np.exp(0.5 * (left + right)))
