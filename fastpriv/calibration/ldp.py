"""The noise for an LDP target, in closed form: a view of ``GaussianMechanism.calibrated``."""

# bounds: tested by enclosures/test_calibration - relative error of a sigma, and of the delta that proves it

from __future__ import annotations

from typing import Any

import numpy as np

from .._estimates import monotone
from ..estimate import Estimate, NumberLike
from ..mechanisms.gaussian import GaussianMechanism

__all__ = ["sigma_from_ldp", "sigma_from_ldp_log_delta"]


@monotone(falling="epsilon delta", rising="sensitivity")
def sigma_from_ldp(epsilon: NumberLike, delta: NumberLike, sensitivity: NumberLike) -> Estimate:
    """Least noise for (epsilon, delta)-LDP of values of a given l2 sensitivity.

    Parameters
    ----------
    epsilon : array_like or Estimate
        At least 0 and finite, in nats.
    delta : array_like or Estimate
        Strictly between 0 and 1.
    sensitivity : array_like or Estimate
        Largest distance of two secrets, positive and finite; for ||x|| <= sqrt(d) Delta it is 2 sqrt(d) Delta.

    Returns
    -------
    Estimate
        sigma in the unit of the sensitivity, of the broadcast shape; a guarantee quotes ``upper``.

    Raises
    ------
    DomainError
        For arguments outside these sets, and where the noise needed is not a finite positive double.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: the bounds differ by a relative 1.1e-13 (tests/kernels/test_gaussian_inverse.py,
    tests/enclosures/test_calibration.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eq. (9); Balle and Wang 2018.

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ldp(1.0, 1e-5, 1.0).upper, 9)
    3.730631635
    """
    return _closed(GaussianMechanism.calibrated(epsilon, delta, sensitivity).sigma, 1.1e-13)


@monotone(falling="epsilon log_delta", rising="sensitivity")
def sigma_from_ldp_log_delta(epsilon: NumberLike, log_delta: NumberLike, sensitivity: NumberLike) -> Estimate:
    """As ``sigma_from_ldp``, from the natural logarithm of delta.

    Parameters
    ----------
    epsilon : array_like or Estimate
        At least 0 and finite, in nats.
    log_delta : array_like or Estimate
        Finite and below 0.
    sensitivity : array_like or Estimate
        Positive and finite.

    Returns
    -------
    Estimate
        As ``sigma_from_ldp``.

    Raises
    ------
    DomainError
        As ``sigma_from_ldp``.

    Notes
    -----
    **Accuracy**: the bounds differ by a relative 1.1e-13 + 4.1e-15 |log_delta|
    (tests/kernels/test_gaussian_inverse.py, tests/enclosures/test_calibration.py).

    Source: as ``sigma_from_ldp``.

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ldp_log_delta(1.0, -2302.585, 1.0).upper, 6)
    67.668627
    """
    sigma = GaussianMechanism.calibrated_from_log_delta(epsilon, log_delta, sensitivity).sigma
    shape = np.shape(sigma)
    return _closed(sigma, 1.1e-13 + 4.1e-15 * np.abs(np.broadcast_to(np.asarray(log_delta, dtype=np.float64), shape)))


def _closed(sigma: Any, excess: Any) -> Estimate:
    lower, middle = np.asarray(sigma) * (1 - excess), np.asarray(sigma) * (1 - 0.5 * np.asarray(excess))
    method = "inverse of the closed form (Balle and Wang 2018, theorem 8)"
    return Estimate(np.clip(middle, lower, sigma), lower, sigma, kind="exact", unit="1", method=method)
