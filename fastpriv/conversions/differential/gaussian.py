"""Gaussian differential privacy (GDP): no easier to tell apart than N(0, 1) and N(separation, 1).

Notation: ``separation`` is the mu of mu-GDP; delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon
Phi(-epsilon/mu - mu/2) is the curve of the Gaussian mechanism with sensitivity / sigma = mu.

Pure privacy to GDP: the trade-off function of randomised response is a line from (0, 1) to its corner (c, c),
c = 1/(1 + e^epsilon), and a line from there to (1, 0). That of normal laws is convex, so it lies below both lines
once it lies below the corner: Phi(-mu/2) <= c.
"""

# bounds: tested by enclosures/test_conversions_values - rounding of the ends of the inverse

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import special
from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = [
    "dp_delta_from_gdp", "dp_epsilon_from_gdp", "gdp_from_dp", "gdp_from_ldp", "total_variation_from_gdp",
]  # fmt: skip

FloatArray = NDArray[np.float64]
# bound: tested by kernels/test_gaussian_mechanism, enclosures/test_conversions_values - relative error of
#    gaussian_delta
_RELATIVE = 4e-15  # of gaussian_delta
_TURN = 1.0  # below it the inverse error function, above it the inverse of log Phi


@documented
@monotone(rising="separation", falling="epsilon")
def dp_delta_from_gdp(separation: NumberLike, epsilon: NumberLike) -> Estimate:
    """Least delta at ``epsilon`` that follows from Gaussian privacy: the exact curve of two unit normal laws.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_gdp(1.0, [0.0, 1.0]).value
    array([0.38292492, 0.12693674])
    """
    separation, epsilon = validated(separation=separation, epsilon=epsilon)
    value = np.asarray(special.gaussian_delta(0.5 * separation, epsilon))
    settled = (separation == 0.0) | (np.isinf(epsilon) & np.isfinite(separation))
    return bounded(value, "probability", "closed form", error=_RELATIVE * value, ceiling=1.0, settled=settled)


@documented
@monotone(rising="separation", falling="delta")
def dp_epsilon_from_gdp(separation: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from Gaussian privacy: the inverse of the exact curve.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_gdp(1.0, 1e-6).value
    4.8865541...
    """
    separation, delta = validated(separation=separation, delta=delta)
    upper = np.asarray(special.gaussian_epsilon(0.5 * separation, delta))
    lower = np.minimum(np.asarray(special.gaussian_epsilon_below(0.5 * separation, delta)), upper)
    with np.errstate(invalid="ignore"):
        value = np.where(np.isinf(upper), upper, np.clip(lower + 0.5 * (upper - lower), lower, upper))
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="inverse of the closed form")


@documented
@monotone(rising="separation")
def total_variation_from_gdp(separation: NumberLike) -> Estimate:
    """Largest total variation under Gaussian privacy: 2 Phi(separation / 2) - 1.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.total_variation_from_gdp(1.0).value
    0.38292492...
    """
    (separation,) = validated(separation=separation)
    return dp_delta_from_gdp(separation, 0.0)


@documented
@monotone(rising="epsilon")
def gdp_from_ldp(epsilon: NumberLike) -> Estimate:
    """Least separation such that pure privacy gives Gaussian privacy: -2 Phi^-1(1 / (1 + e^epsilon)).

    About sqrt(pi/2) epsilon for small epsilon and sqrt(8 epsilon) for large ones.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.gdp_from_ldp([0.01, 1.0, 100.0]).value
    array([1.25331190e-02, 1.23203539e+00, 2.77769521e+01])
    """
    from scipy.special import erfinv, ndtri_exp

    (epsilon,) = validated(epsilon=epsilon)
    small = epsilon < _TURN
    with np.errstate(over="ignore"):
        near = np.sqrt(8.0) * erfinv(np.tanh(0.5 * np.where(small, epsilon, 0.0)))
        tail = np.where(small | np.isinf(epsilon), 1.0, epsilon)
        far = -2.0 * ndtri_exp(-tail - np.log1p(np.exp(-tail)))
    value = np.where(small, near, np.where(np.isinf(epsilon), np.inf, far))
    return bounded(value, "1", "-2 Phi^-1(1 / (1 + e^epsilon))", settled=(epsilon == 0.0) | np.isinf(epsilon))


@documented
@monotone(rising="epsilon delta")
def gdp_from_dp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """Separation of the normal laws that meet (epsilon, delta): for a mechanism KNOWN to be Gaussian.

    No Gaussian privacy follows from one (epsilon, delta) with delta > 0 in general: the secret may be revealed with
    probability delta.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> round(conversions.gdp_from_dp(1.0, 0.12693673750664397).value, 12)
    1.0
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    with np.errstate(divide="ignore"):
        low = 1.0 / np.asarray(special.gaussian_noise(epsilon, delta))
        high = 1.0 / np.asarray(special.gaussian_noise_below(epsilon, delta))
    lower, upper = np.minimum(low, high) * (1.0 - 4e-16), np.maximum(low, high) * (1.0 + 4e-16)
    return Estimate(
        np.clip(low, lower, upper), lower, upper, kind="exact", unit="1", method="inverse of the closed form"
    )
