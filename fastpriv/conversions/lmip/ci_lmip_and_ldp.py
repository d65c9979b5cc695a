"""From context-independent local mutual-information privacy (CI-LMIP) to local differential privacy (LDP).

Notation: mu bounds the capacity of the mechanism, sup over priors of I(X; M(X)); p0 and p1 are the probabilities of one
event under two inputs. Equation (10) of Ngo, Oestman and Graell i Amat, On local mutual-information privacy,

    delta(epsilon) = max of p1 - e^epsilon p0 subject to C_BAC(p0, 1 - p1) <= mu,

is tight: some mechanism with mu-CI-LMIP attains it, if two inputs can be chosen. It does not vanish as epsilon grows,
and it is 1 from mu = log 2 on, 1 bit.
"""

# bounds: tested by kernels/test_lmip_accuracy - absolute error of subnormal targets

from __future__ import annotations

import numpy as np

from ... import _validate, special
from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .extremes import ExtremalPair, FloatArray, Information, budget, exact, grid, pair

__all__ = ["epsilon_from_ci_lmip", "ldp_delta_from_ci_lmip", "ldp_delta_saturation", "ldp_extremal_channel"]

# bound: tested by kernels/test_lmip_accuracy - relative error of the curve, its limit and its inverse
_RELATIVE = 4e-15
_METHOD = "equation (10): the divergences of both rows from one mean equal mu"
# bound: tested by kernels/test_lmip_accuracy - least step of the inverse
_STEP, _ULP = 2.0**-16, 2.0**-52
_FLAT = 6.0  # beyond this epsilon the curve is at its limit, whatever mu


@monotone(rising="mu", falling="epsilon")
def ldp_delta_from_ci_lmip(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least delta such that every mu-CI-LMIP mechanism is (epsilon, delta)-LDP.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on the mutual information for every prior, at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats; inf gives the limit. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, kind ``exact``.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: 4e-15 relative for mu >= 1e-300 and every epsilon (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 1(a), equation (10).

    Examples
    --------
    >>> from fastpriv import ldp_delta_from_ci_lmip
    >>> ldp_delta_from_ci_lmip([0.01, 0.1, 1.0], 1.0).upper
    array([0.03259994, 0.27640351, 1.        ])
    """
    information = budget(mu, unit)
    value = special.ci_lmip_ldp_delta(information, grid(information, epsilon))
    return exact(value, np.broadcast_to(information, np.shape(value)), _RELATIVE, _METHOD)


@monotone(rising="mu")
def ldp_delta_saturation(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The limit of ``ldp_delta_from_ci_lmip`` for large epsilon: no smaller delta follows from mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, at least 0.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``mu``, kind ``exact``; about e mu for small mu.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.

    Notes
    -----
    It solves h(p) / p = -log(e^mu - 1), that is d(p || 1 - e^-mu) = mu.

    **Accuracy**: 4e-15 relative (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, below equation (12).

    Examples
    --------
    >>> from fastpriv import ldp_delta_saturation
    >>> ldp_delta_saturation([0.0, 0.1, 0.5, 1.0]).value
    array([0.        , 0.24938627, 0.87420508, 1.        ])
    """
    information = budget(mu, unit)
    return exact(special.ci_lmip_ldp_saturation(information), information, _RELATIVE, "h(p) / p = -log(e^mu - 1)")


@monotone(at_value="mu epsilon")
def ldp_extremal_channel(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> ExtremalPair:
    """The binary channel that attains ``ldp_delta_from_ci_lmip``: P(event | x) = p1 and P(event | x') = p0.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, at least 0; from 1 bit on the channel is noiseless.
    epsilon : array_like or Estimate
        At least 0, in nats. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    ExtremalPair
        p1 as ``high``, log p0 as ``log_low``; bare numbers.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: about 1e-9 for mu up to 0.99 log 2, as the objective is flat at its maximum
    (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, appendix A.

    Examples
    --------
    >>> from fastpriv import bac_capacity, ldp_extremal_channel
    >>> pair = ldp_extremal_channel(0.1, 1.0)
    >>> round(bac_capacity(pair.low, 1 - pair.high).value, 12)
    0.1
    """
    information = budget(mu, unit)
    level = grid(information, epsilon)
    return pair(special.ci_lmip_ldp_high(information, level), special.ci_lmip_ldp_log_low(information, level))


@monotone(rising="mu", falling="delta")
def epsilon_from_ci_lmip(mu: NumberLike, delta: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least epsilon such that every mu-CI-LMIP mechanism is (epsilon, delta)-LDP; inf below the saturation level.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on the mutual information for every prior, at least 0.
    delta : array_like or Estimate
        Between 0 and 1. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        In nats, of the broadcast shape, kind ``exact``; a guarantee quotes ``upper``.

    Raises
    ------
    DomainError
        For a number outside its range, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: ``lower`` and ``upper`` are where the curve, moved by its error, meets delta; they may be 0 and inf
    close to the ends of the curve (tests/contracts/test_lmip_conversions.py).

    Source: the inverse of theorem 1(a), equation (10), of Ngo, Oestman and Graell i Amat, On local mutual-information
    privacy.

    Examples
    --------
    >>> from fastpriv import epsilon_from_ci_lmip
    >>> epsilon_from_ci_lmip(0.1, [0.17, 0.3, 0.5]).value
    array([       inf, 0.72613377, 0.        ])
    """
    information = budget(mu, unit)
    target = _validate.real("delta", delta, "between 0 and 1", lambda d: (d >= 0) & (d <= 1))
    _validate.broadcastable("delta", target, "mu", information)
    information, target = (np.array(x) for x in np.broadcast_arrays(information, target))
    slack = _RELATIVE * target + 5e-322
    lower, value, upper = (
        _least_epsilon(information, shifted) for shifted in (np.minimum(target + slack, 1.0), target, target - slack)
    )
    settled = (information == 0.0) | (target == 1.0)
    upper = np.where(settled, 0.0, upper)
    return Estimate(
        np.clip(np.where(settled, 0.0, value), lower, upper), lower, upper, kind="exact", unit="nats",
        method="bisection of equation (10)",
    )  # fmt: skip


def _least_epsilon(mu: FloatArray, delta: FloatArray) -> FloatArray:
    low, high = np.zeros_like(mu), np.full_like(mu, _FLAT)
    for _ in range(120):
        middle = np.where(high > 4.0 * low, np.sqrt(low * high), 0.5 * (low + high))
        middle = np.where(low > 0.0, middle, high * _STEP)
        meets = special.ci_lmip_ldp_delta(mu, middle) <= delta
        low, high = np.where(meets, low, middle), np.where(meets, middle, high)
        if np.all(high - low <= _ULP * high):
            break
    found = np.where(special.ci_lmip_ldp_delta(mu, np.zeros_like(mu)) <= delta, 0.0, high)
    return np.where(special.ci_lmip_ldp_delta(mu, high) <= delta, found, np.inf)
