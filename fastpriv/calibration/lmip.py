"""The noise for a mutual-information target.

Notation: I(sigma) = I(X; X + N(0, sigma^2)), H the entropy of the prior of X, its limit without noise. I falls like
variance / (2 sigma^2) at large sigma and H - I like exp(-c / sigma^2) at small sigma, so that log(-log(1 - I/H)) is
nearly a straight line of slope -2 in log sigma: the score of ``search``. The pointwise level,
sup over x of KL(P_x || P_M), falls from -log min prior like max (x - mean)^2 / (2 sigma^2). Without a prior, CI-LMIP
is the capacity of the peak-power Gaussian channel, whose solver has its own inverse.
"""

# bounds: tested by enclosures/test_calibration - rounding of targets and units; the rest are limits of rtol

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _parallel, _validate
from .._estimates import monotone
from ..capacity.awgn import awgn_sigma_from_capacity
from ..distributions import Pmf
from ..divergences.one_dimension.integrals import mutual_information
from ..errors import NotConvergedError
from ..estimate import Estimate, NumberLike
from ..mechanisms.gaussian import GaussianMechanism
from ..notions import pointwise_lmip
from .search import Level, Look, calibrated, tolerance_of

__all__ = ["sigma_from_cd_lmip", "sigma_from_ci_lmip", "sigma_from_pointwise_lmip"]

FloatArray = NDArray[np.float64]
_ALMOST = 1 - 2.0**-53
# bound: tested by enclosures/test_calibration - a smaller target counts as 0
_LEAST = 1e-318  # with quotients by less than 40 still above 0


@monotone(falling="mu")
def sigma_from_cd_lmip(
    mu: NumberLike, prior: Pmf, *, unit: Literal["nats", "bits"] = "nats", rtol: float = 1e-12,
    n_jobs: int | None = None,
) -> Estimate:  # fmt: skip
    """Least Gaussian noise under which the release tells at most mu about the secret: I(X; M) <= mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, positive.
    prior : Pmf
        The law of the secret.
    unit : {"nats", "bits"}
        Unit of ``mu``.
    rtol : float
        Relative width of the bracket of sigma that is good enough, at least 1e-15 and below 1.
    n_jobs : int, optional
        Threads for arrays of targets; None follows ``joblib.parallel_config``. The answer does not depend on it.

    Returns
    -------
    Estimate
        sigma in the unit of the secret, of the shape of ``mu``: ``mutual_information(prior, upper).upper`` is at most
        ``mu``, and that of ``lower`` at least. Exactly 0 where ``mu`` is at least the entropy of the prior: there no
        noise is needed.

    Raises
    ------
    DomainError
        For mu that is NaN or not positive, and where the noise needed is not between 1e-300 and 1e300.
    NotConvergedError
        If no bracket is found in 120 evaluations.

    Notes
    -----
    The bracket is as wide as ``rtol`` or as the bounds of the information allow: wider only where mu is so close to the
    entropy that sigma hardly changes it.

    **Accuracy**: relative width 1e-12 for mu from 1e-300 to 0.999 of the entropy, by
    tests/enclosures/test_calibration.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, definition 2 and figure 3.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_cd_lmip([0.1, 1e-6, 2.0], prior).upper
    array([  29.74816667, 9899.48998687,    0.        ])
    """
    _parallel.checked(n_jobs)
    _validate.instance("prior", prior, Pmf)
    entropy = -math.fsum(prior.probabilities * np.log(prior.probabilities))
    distances = _distances(prior)
    far = float(distances.max())
    deviation = far * math.sqrt(math.fsum(prior.probabilities * np.square(distances / (far or 1.0))))

    def found(sigma: float) -> Estimate:
        return mutual_information(prior, sigma, certified=True)

    zero = "; 0 where mu is at least the entropy of the prior, which no release exceeds"
    return _from_level(mu, prior, unit, rtol, n_jobs, found, entropy, deviation, zero)


@monotone(falling="mu")
def sigma_from_pointwise_lmip(
    mu: NumberLike, prior: Pmf, *, unit: Literal["nats", "bits"] = "nats", rtol: float = 1e-12,
    n_jobs: int | None = None,
) -> Estimate:  # fmt: skip
    """Least Gaussian noise under which no value of the secret is told by more than mu: sup KL(P_x || P_M) <= mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound of the divergence at every x, positive.
    prior : Pmf
        The law of the secret.
    unit : {"nats", "bits"}
        Unit of ``mu``.
    rtol : float
        Relative width of the bracket of sigma that is good enough, at least 1e-15 and below 1.
    n_jobs : int, optional
        Threads for arrays of targets; None follows ``joblib.parallel_config``. The answer does not depend on it.

    Returns
    -------
    Estimate
        sigma in the unit of the secret, of the shape of ``mu``: at ``upper``, the upper bound of
        ``notions.pointwise_lmip`` is at most ``mu``. Exactly 0 where ``mu`` exceeds -log of the smallest probability:
        there no noise is needed.

    Raises
    ------
    DomainError
        For mu that is NaN or not positive, and where the noise needed is not between 1e-300 and 1e300.
    NotConvergedError
        If no bracket is found in 120 evaluations.

    Notes
    -----
    More independent noise degrades P_x and P_M alike, so that every divergence falls as sigma grows. Equation (13)
    holds for this level: ``lip_delta_from_pointwise_lmip`` gives the LIP guarantee of the sigma found.

    **Accuracy**: relative width 1e-12 for mu from 1e-9 to 0.99 of -log min prior, by
    tests/enclosures/test_calibration.py.

    Source: the premise of (35) to (37) in Ngo, Oestman and Graell i Amat, On local mutual-information privacy.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_pointwise_lmip([0.1, 1e-6, 3.0], prior).upper
    array([   47.59473219, 15556.34416198,     0.        ])
    """
    _parallel.checked(n_jobs)
    _validate.instance("prior", prior, Pmf)
    limit = -math.log(float(prior.probabilities.min()))

    def found(sigma: float) -> Estimate:
        return pointwise_lmip(prior, GaussianMechanism(sigma), certified=True)

    zero = "; 0 where mu is at least -log min prior, which no divergence exceeds"
    return _from_level(mu, prior, unit, rtol, n_jobs, found, limit, float(_distances(prior).max()), zero)


@monotone(falling="mu", rising="amplitude")
def sigma_from_ci_lmip(
    mu: NumberLike, dimension: ArrayLike, amplitude: NumberLike, *, unit: Literal["nats", "bits"] = "nats",
    rtol: float = 1e-9, n_jobs: int | None = None,
) -> Estimate:  # fmt: skip
    """Least Gaussian noise under which no prior on the ball ||x|| <= amplitude lets the release tell more than mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, positive and finite.
    dimension : array_like of int
        Dimension d of the secret.
    amplitude : array_like or Estimate
        Largest norm of the secret, positive and finite; sqrt(d) Delta in the paper. The three broadcast.
    unit : {"nats", "bits"}
        Unit of ``mu``.
    rtol : float
        Relative width to reach, from 1e-12 to 0.1.
    n_jobs : int, optional
        Threads for arrays of targets; None follows ``joblib.parallel_config``.

    Returns
    -------
    Estimate
        sigma of the noise in every coordinate, in the unit of the amplitude: the capacity at ``upper`` is proved to be
        at most ``mu``, that at ``lower`` at least.

    Raises
    ------
    DomainError
        For arguments outside these sets or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: that of ``awgn_sigma_from_capacity``; tests/enclosures/test_calibration.py checks both sides.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, definition 1 and eq. (8).

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ci_lmip(0.5, 1, 1.0).upper, 6)
    0.707...
    """
    _parallel.checked(n_jobs)
    target = _validate.real(
        "mu", mu, "positive and finite", lambda x: (x > 0) & (x < np.inf), remedy="mu = 0 needs infinite noise.",
    )  # fmt: skip
    return awgn_sigma_from_capacity(target, dimension, amplitude, rtol=rtol, unit=unit, n_jobs=n_jobs)


def _from_level(
    mu: ArrayLike, prior: Pmf, unit: Literal["nats", "bits"], rtol: float, n_jobs: int | None,
    information: Callable[[float], Estimate], limit: float, deviation: float, zero: str,
) -> Estimate:  # fmt: skip
    """The inverse of a level in nats that falls from ``limit`` without noise like (deviation / sigma)^2 / 2."""
    _validate.choice("unit", unit, ("nats", "bits"))
    tolerance = tolerance_of(rtol)
    goals = _validate.real(
        "mu", mu, "positive", lambda x: x > 0, remedy="mu = 0 needs infinite noise, if there is a secret at all.",
    )  # fmt: skip
    bit = math.log(2.0) if unit == "bits" else 1.0
    gap = prior.through_gaussian(1.0).mass_gap
    silent = goals * bit >= limit * (1 + 1e-15 * (len(prior) + 4)) + 2 * gap * (1 + limit)

    def level(task: FloatArray) -> Level:
        goal = float(task[0])
        wanted = _depth(goal * bit, limit)

        def at(sigma: float) -> Look:
            try:
                found = information(sigma).to(unit)
            except NotConvergedError:  # noise too narrow for the distances in the secret
                return Look(math.inf, 0.0, False, False, "certified")
            here = _depth(found.value * bit, limit)
            blur = math.log(_depth(found.upper * bit, limit) / _depth(found.lower * bit, limit)) / 2
            return Look(math.log(here / wanted), blur, found.upper <= goal, found.lower >= goal, found.kind)

        return at

    def start(task: FloatArray) -> float:
        return deviation / math.sqrt(2 * limit * _depth(float(task[0]) * bit, limit))

    return calibrated("mu", goals.reshape(-1, 1), silent, level, start, tolerance, n_jobs, zero)


def _depth(information: float, limit: float) -> float:
    """-log(1 - I/H), finite."""
    return max(-math.log1p(-min(information / limit, _ALMOST)), _LEAST)


def _distances(prior: Pmf) -> FloatArray:
    """|x - mean| for every x."""
    scale = max(float(np.abs(prior.values).max()), 5e-324)
    x = prior.values / scale
    return scale * np.abs(x - math.fsum(prior.probabilities * x))
