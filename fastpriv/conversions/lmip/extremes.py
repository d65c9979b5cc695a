"""What the conversions to a curve delta(epsilon) share: arguments, outward bounds, and the pair that attains it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ...estimate import Estimate, Information

__all__ = ["ExtremalPair", "Information", "budget", "exact", "grid", "pair"]

FloatArray = NDArray[np.float64]

_LN2 = 0.6931471805599453
# bound: none - mu below it goes the way of extremes
_LEAST = 1e-300  # the kernels take a smaller mu > 0 for this one
# bound: tested by enclosures/test_conversions_values - absolute error of subnormal results
_TINY = 5e-322  # absolute, for results that are subnormal


@dataclass(frozen=True, slots=True, eq=False)
class ExtremalPair:
    """The two probabilities of one event for which a bound on delta is attained.

    Parameters
    ----------
    high : float or ndarray
        The larger probability.
    log_low : float or ndarray
        Natural logarithm of the smaller one, which falls like exp(-c e^epsilon) and soon leaves the range of doubles;
        -inf where it is 0 or its logarithm leaves that range too.

    Examples
    --------
    >>> from fastpriv import ldp_extremal_channel
    >>> pair = ldp_extremal_channel(0.1, 1.0)
    >>> round(pair.high, 6), round(pair.low, 6)
    (0.342653, 0.024372)
    """

    high: Any
    log_low: Any

    @property
    def low(self) -> Any:
        """The smaller probability, 0 where it is below the range of doubles."""
        low = np.exp(self.log_low)
        return float(low) if np.ndim(low) == 0 else low


def budget(mu: ArrayLike, unit: str) -> FloatArray:
    """Mutual information in nats."""
    _validate.choice("unit", unit, ("nats", "bits"))
    information = _validate.real("mu", mu, "at least 0", lambda m: m >= 0)
    return information * _LN2 if unit == "bits" else information


def grid(mu: FloatArray, epsilon: ArrayLike) -> FloatArray:
    """Epsilon, checked, of a shape that broadcasts with mu."""
    array = _validate.real("epsilon", epsilon, "at least 0", lambda e: e >= 0)
    _validate.broadcastable("epsilon", array, "mu", mu)
    return array


def exact(value: Any, mu: FloatArray, relative: float, method: str) -> Estimate:
    """Probabilities with the stated relative error, outward, in [0, 1]; for a tiny ``mu`` they are upper bounds."""
    value = np.asarray(value)
    error = value * np.where(mu < _LEAST, 1.0, relative) + _TINY
    lower, upper = np.maximum(value - error, 0.0), np.where(mu == 0.0, value, np.minimum(value + error, 1.0))
    return Estimate(value, lower, upper, kind="exact", unit="probability", method=method)


def pair(high: Any, log_low: Any) -> ExtremalPair:
    """Plain floats for scalars."""
    if np.ndim(high) == 0:
        return ExtremalPair(float(high), float(log_low))
    return ExtremalPair(high, log_low)
