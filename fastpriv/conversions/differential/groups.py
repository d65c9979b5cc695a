"""Group privacy: what holds when ``group`` records change at once, by as many steps from neighbour to neighbour."""

# bounds: tested by enclosures/test_conversions_values - relative error, with that of an exponent up to 2000

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._estimates import monotone
from ...estimate import Estimate, NumberLike, Unit
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = ["group_dp_delta_from_dp", "group_gdp_from_gdp", "group_ldp_from_ldp", "group_zcdp_from_zcdp"]

FloatArray = NDArray[np.float64]


@documented
@monotone(rising="epsilon group")
def group_ldp_from_ldp(epsilon: NumberLike, group: NumberLike) -> Estimate:
    """Epsilon of pure privacy for a group: group times epsilon, which a geometric mechanism attains.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.group_ldp_from_ldp(0.5, 4).value
    2.0
    """
    epsilon, group = validated(epsilon=epsilon, group=group)
    return _scaled(epsilon, group, "nats", "group epsilon")


@documented
@monotone(rising="epsilon delta group")
def group_dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, group: NumberLike) -> Estimate:
    """Delta of a group at ``group * epsilon``: delta (e^(group epsilon) - 1) / (e^epsilon - 1), at most 1.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.group_dp_delta_from_dp(1.0, 1e-6, [1, 2, 3]).value
    array([1.00000000e-06, 3.71828183e-06, 1.11073379e-05])
    """
    epsilon, delta, group = validated(epsilon=epsilon, delta=delta, group=group)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        # e^((k-1) epsilon) (1 - e^(-k epsilon)) / (1 - e^-epsilon), its power by halves against overflow
        shrunk = np.where(epsilon == 0.0, group, np.expm1(-group * epsilon) / np.expm1(-epsilon))
        power = np.where(group == 1.0, 0.0, (group - 1.0) * epsilon)
        root = np.exp(0.5 * power)
        value = np.where((delta == 0.0) & (power < np.inf), 0.0, root * (root * (delta * shrunk)))
        value = np.minimum(np.where(np.isnan(value), 1.0, value), 1.0)
        error = (1e-14 + 4e-16 * np.minimum(power, 2000.0)) * value
    return bounded(
        value, "probability", "delta expm1(group epsilon) / expm1(epsilon)", error=error, ceiling=1.0,
        settled=(group == 1.0) | (delta == 0.0),
    )  # fmt: skip


@documented
@monotone(rising="rho group")
def group_zcdp_from_zcdp(rho: NumberLike, group: NumberLike) -> Estimate:
    """Concentrated privacy of a group: group^2 rho, which the Gaussian mechanism attains.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.group_zcdp_from_zcdp(0.5, 4).value
    8.0
    """
    rho, group = validated(rho=rho, group=group)
    with np.errstate(over="ignore"):
        square = group * group
    return _scaled(rho, square, "nats", "group^2 rho")


@documented
@monotone(rising="separation group")
def group_gdp_from_gdp(separation: NumberLike, group: NumberLike) -> Estimate:
    """Separation of Gaussian privacy for a group: group times as much, which the Gaussian mechanism attains.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.group_gdp_from_gdp(0.5, 4).value
    2.0
    """
    separation, group = validated(separation=separation, group=group)
    return _scaled(separation, group, "1", "group separation")


def _scaled(value: FloatArray, factor: FloatArray, unit: Unit, method: str) -> Estimate:
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.where(value == 0.0, 0.0, value * factor)
    return bounded(found, unit, method, settled=(factor == 1.0) | (value == 0.0))
