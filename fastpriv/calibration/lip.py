"""The noise for a LIP target.

Notation: delta(sigma) the LIP level of the Gaussian mechanism at a fixed epsilon and prior; 1 - min prior is its limit
without noise. More independent noise degrades P_x and P_M alike, so delta falls as sigma grows.

Both delta at large sigma and 1 - delta / limit at small sigma vanish like exp(-c sigma^(+-2)), so that
asinh(logit(delta / limit)) is nearly a straight line of slope -2 in log sigma: the score of ``search``.
"""

# bounds: tested by enclosures/test_calibration - rounding of scaled laws and targets; the rest are limits of rtol

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _parallel, _validate
from .._estimates import monotone
from ..distributions import Pmf
from ..estimate import Estimate, NumberLike
from ..mechanisms.gaussian import GaussianMechanism
from ..notions import lip_curves
from .search import Level, Look, calibrated, tolerance_of

__all__ = ["sigma_from_lip", "sigma_from_lip_log_delta"]

FloatArray = NDArray[np.float64]
_FARTHEST = 1e150  # standard deviations whose square is a double


@monotone(falling="epsilon delta")
def sigma_from_lip(
    epsilon: NumberLike, delta: NumberLike, prior: Pmf, *, rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """Least Gaussian noise for (epsilon, delta)-LIP of a secret with a given prior.

    Parameters
    ----------
    epsilon : array_like or Estimate
        At least 0 and finite, in nats.
    delta : array_like or Estimate
        Strictly between 0 and 1.
    prior : Pmf
        The law of the secret.
    rtol : float
        Relative width of the bracket of sigma that is good enough, at least 1e-15 and below 1.
    n_jobs : int, optional
        Threads for arrays of targets; None follows ``joblib.parallel_config``. The answer does not depend on it.

    Returns
    -------
    Estimate
        sigma in the unit of the secret, of the broadcast shape: ``lip_delta`` at ``upper`` has its own upper bound at
        most ``delta``. Exactly 0 where ``delta`` is at least 1 minus the smallest probability, the level of a release
        without noise.

    Raises
    ------
    DomainError
        For arguments outside these sets, and where the noise needed is not between 1e-300 and 1e300.
    ShapeError
        For shapes that do not broadcast.
    NotConvergedError
        If no bracket is found in 120 evaluations.

    Notes
    -----
    **Accuracy**: relative width 1e-12 for delta from 1e-300 to 0.99 of the noiseless level, by
    tests/enclosures/test_calibration.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eq. (6).

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_lip(0.5, [1e-6, 0.1, 0.9], prior).upper
    array([193.21068747,  36.40876464,   0.        ])
    """
    _parallel.checked(n_jobs)
    goals = _validate.real(
        "delta", delta, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1),
        remedy="delta = 0 needs infinite noise, delta = 1 needs none.",
    )  # fmt: skip
    return _lip(epsilon, "delta", goals, prior, rtol, n_jobs)


@monotone(falling="epsilon log_delta")
def sigma_from_lip_log_delta(
    epsilon: NumberLike, log_delta: NumberLike, prior: Pmf, *, rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """As ``sigma_from_lip``, from the natural logarithm of delta, far below the smallest double.

    Parameters
    ----------
    epsilon : array_like or Estimate
        At least 0 and finite, in nats.
    log_delta : array_like or Estimate
        Finite and below 0.
    prior : Pmf
        The law of the secret.
    rtol, n_jobs
        As ``sigma_from_lip``.

    Returns
    -------
    Estimate
        As ``sigma_from_lip``, proved by ``log_lip_delta``.

    Raises
    ------
    DomainError
        As ``sigma_from_lip``.

    Notes
    -----
    **Accuracy**: as ``sigma_from_lip``, down to log_delta = -3e5 (tests/enclosures/test_calibration.py).

    Source: as ``sigma_from_lip``.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> round(calibration.sigma_from_lip_log_delta(0.5, -1000.0, Pmf([0.0, 1.0], [0.5, 0.5])).upper, 6)
    53.420551
    """
    _parallel.checked(n_jobs)
    goals = _validate.real(
        "log_delta", log_delta, "finite and below 0", lambda x: (x > -np.inf) & (x < 0),
        remedy="Pass the natural logarithm of a delta strictly between 0 and 1.",
    )  # fmt: skip
    return _lip(epsilon, "log_delta", goals, prior, rtol, n_jobs)


def _lip(
    epsilon: ArrayLike, name: str, goals: FloatArray, prior: Pmf, rtol: float, n_jobs: int | None
) -> Estimate:
    _validate.instance("prior", prior, Pmf)
    tolerance = tolerance_of(rtol)
    budget = _validate.real("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    _validate.broadcastable("epsilon", budget, name, goals)
    logs = name == "log_delta"
    budget, goals = np.broadcast_arrays(budget, goals)
    rarest = float(prior.probabilities.min())
    noiseless, gap = 1.0 - rarest, prior.through_gaussian(1.0).mass_gap
    if len(prior) == 1:
        silent = np.ones(goals.shape, dtype=np.bool_)
    elif logs:
        silent = goals >= math.log1p(-rarest) * (1 - 1e-15) + 4 * gap
    else:
        silent = (goals >= 0.5) & ((goals - 1.0) + rarest >= 2 * gap)  # exact: the limit is at least 1/2
    span = float(prior.values[-1] - prior.values[0])
    tasks = np.stack([budget.ravel(), goals.ravel()], axis=1)

    def level(task: FloatArray) -> Level:
        e, goal = float(task[0]), float(task[1])
        wanted = _position(goal if logs else math.log(goal), noiseless)

        def at(sigma: float) -> Look:
            if span > _FARTHEST * sigma:
                return Look(math.inf, 0.0, False, False, "certified")
            linear, log = lip_curves(prior, GaussianMechanism(sigma), e)
            found = log if logs else linear
            here = _position(log.value, noiseless)
            low, high = (log.lower, log.upper) if logs else (_log(linear.lower), _log(linear.upper))
            blur = abs(_position(low, noiseless) - _position(high, noiseless)) / 2
            return Look(here - wanted, blur, found.upper <= goal, found.lower >= goal, found.kind)

        return at

    def start(task: FloatArray) -> float:
        e, goal = float(task[0]), float(task[1])
        make = GaussianMechanism.calibrated_from_log_delta if logs else GaussianMechanism.calibrated
        return 0.7 * float(make(e, goal, span).sigma)  # LIP asks for at most the noise of LDP

    zero = "; 0 where delta is at least that of a release without noise, 1 - min prior"
    return calibrated(name, tasks, silent, level, start, tolerance, n_jobs, zero)


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _position(log_delta: float, noiseless: float) -> float:
    """asinh of the logit of delta / noiseless."""
    share = min(math.exp(log_delta) / noiseless, 1 - 2.0**-53)
    if log_delta == -math.inf:
        return -math.inf
    return math.asinh(log_delta - math.log(noiseless) - math.log1p(-share))
