"""The least Gaussian noise for a target: LDP in closed form, LIP and LMIP by a search between two proofs.

Notation: sigma the standard deviation of the noise, X the secret, H the entropy of its prior.

LIP: delta(sigma) is the level at a fixed epsilon and prior; 1 - min prior is its limit without noise. More independent
noise degrades P_x and P_M alike, so delta falls as sigma grows. Both delta at large sigma and 1 - delta / limit at
small sigma vanish like exp(-c sigma^(+-2)), so that asinh(logit(delta / limit)) is nearly a straight line of slope -2
in log sigma: the residual of ``root_search``.

LMIP: I(sigma) = I(X; X + N(0, sigma^2)) falls like variance / (2 sigma^2) at large sigma and H - I like
exp(-c / sigma^2) at small sigma, so that log(-log(1 - I/H)) is nearly such a line. The pointwise level, sup over x of
KL(P_x || P_M), falls from -log min prior like max (x - mean)^2 / (2 sigma^2). Without a prior, CI-LMIP is the capacity
of the peak-power Gaussian channel, whose solver has its own inverse.
"""

# bounds: proved - rounding of targets and units, counted beside them; relative error of a sigma in closed form: that
#    of the kernel (csrc/gauss/fp_gauss_inverse.h), 1e-13 and 4e-15 of |log delta|, and three roundings; the rest are
#    limits of rtol

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel, validate
from ..base.errors import NotConvergedError
from ..base.estimate import Estimate, Information, NumberLike
from ..base.monotone import monotone
from ..base.numerics import LOG_2, UNIT_ROUNDOFF, FloatArray, next_below
from ..capacity.awgn import awgn_sigma_from_capacity
from ..distributions import Pmf, PmfStack
from ..divergences.one_dimension.integrals import mutual_information
from ..mechanisms.broadcasting import broadcasting
from ..mechanisms.gaussian import GaussianMechanism
from ..notions import lip_curves, pointwise_lmip
from .root_search import Evaluation, Level, least_sigma, validated_rtol

_LARGEST_RATIO = 1e150  # of distances to sigma: its square is a double
_BELOW_ONE = 1 - UNIT_ROUNDOFF  # the largest double below 1
# bound: none - a smaller target counts as 0 in the search; bounds of the level at both ends prove the answer
_LEAST_TARGET = 1e-318


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
    It is the sigma of ``GaussianMechanism.calibrated``.

    **Accuracy**: the bounds differ by a relative 1.1e-13 (tests/kernels/test_gaussian_inverse.py,
    tests/enclosures/test_calibration.py). Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy,
    eq. (9); Balle and Wang 2018.

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ldp(1.0, 1e-5, 1.0).upper, 9)
    3.730631635
    """
    return _closed_form(GaussianMechanism.calibrated(epsilon, delta, sensitivity).sigma, 1.1e-13)


@monotone(falling="epsilon log_delta", rising="sensitivity")
def sigma_from_ldp_log_delta(epsilon: NumberLike, log_delta: NumberLike, sensitivity: NumberLike) -> Estimate:
    """As ``sigma_from_ldp``, from the natural logarithm of delta.

    Parameters
    ----------
    epsilon, sensitivity
        As in ``sigma_from_ldp``.
    log_delta : array_like or Estimate
        Finite and below 0.

    Returns
    -------
    Estimate
        As ``sigma_from_ldp``.

    Notes
    -----
    Raises as ``sigma_from_ldp``. **Accuracy**: the bounds differ by a relative 1.1e-13 + 4.1e-15 |log_delta|
    (tests/kernels/test_gaussian_inverse.py, tests/enclosures/test_calibration.py). Source: as ``sigma_from_ldp``.

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ldp_log_delta(1.0, -2302.585, 1.0).upper, 6)
    67.668627
    """
    sigma = GaussianMechanism.calibrated_from_log_delta(epsilon, log_delta, sensitivity).sigma
    size = np.abs(np.broadcast_to(np.asarray(log_delta, dtype=np.float64), np.shape(sigma)))
    return _closed_form(sigma, 1.1e-13 + 4.1e-15 * size)


def _closed_form(sigma: float | FloatArray, excess: float | FloatArray) -> Estimate:
    lower, middle = np.asarray(sigma) * (1 - excess), np.asarray(sigma) * (1 - 0.5 * np.asarray(excess))
    lower = np.maximum(next_below(lower, 2), 0.0)  # steps are large for subnormal sigmas, of which one was added
    method = "inverse of the closed form (Balle and Wang 2018, theorem 8)"
    return Estimate(np.clip(middle, lower, sigma), lower, sigma, kind="exact", unit="1", method=method)


@monotone(falling="epsilon delta")
@broadcasting(elements="epsilon delta")
def sigma_from_lip(
    epsilon: NumberLike, delta: NumberLike, prior: Pmf | PmfStack, *, rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """Least Gaussian noise for (epsilon, delta)-LIP of a secret with a given prior.

    Parameters
    ----------
    epsilon : array_like or Estimate
        At least 0 and finite, in nats.
    delta : array_like or Estimate
        Strictly between 0 and 1.
    prior : Pmf or PmfStack
        The distribution of the secret; the leading axes of a stack broadcast with the targets.
    rtol : float
        Relative width of the bracket of sigma at which the search stops, at least 1e-15 and below 1.
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
    tests/enclosures/test_calibration.py. Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy,
    eq. (6).

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_lip(0.5, [1e-6, 0.1, 0.9], prior).upper
    array([193.21068747,  36.40876464,   0.        ])
    """
    parallel.checked(n_jobs)
    targets = validate.real(
        "delta", delta, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1),
        remedy="delta = 0 needs infinite noise, delta = 1 needs none.",
    )
    return _sigma_from_lip(epsilon, "delta", targets, _single(prior), rtol, n_jobs)


@monotone(falling="epsilon log_delta")
@broadcasting(elements="epsilon log_delta")
def sigma_from_lip_log_delta(
    epsilon: NumberLike, log_delta: NumberLike, prior: Pmf | PmfStack, *, rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """As ``sigma_from_lip``, from the natural logarithm of delta, far below the smallest double.

    Parameters
    ----------
    epsilon, prior, rtol, n_jobs
        As in ``sigma_from_lip``.
    log_delta : array_like or Estimate
        Finite and below 0.

    Returns
    -------
    Estimate
        As ``sigma_from_lip``, proved by ``log_lip_delta``.

    Notes
    -----
    Raises as ``sigma_from_lip``. **Accuracy**: as ``sigma_from_lip``, down to log_delta = -3e5
    (tests/enclosures/test_calibration.py). Source: as ``sigma_from_lip``.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> round(calibration.sigma_from_lip_log_delta(0.5, -1000.0, Pmf([0.0, 1.0], [0.5, 0.5])).upper, 6)
    53.420551
    """
    parallel.checked(n_jobs)
    targets = validate.real(
        "log_delta", log_delta, "finite and below 0", lambda x: (x > -np.inf) & (x < 0),
        remedy="Pass the natural logarithm of a delta strictly between 0 and 1.",
    )
    return _sigma_from_lip(epsilon, "log_delta", targets, _single(prior), rtol, n_jobs)


def _sigma_from_lip(
    epsilon: ArrayLike, name: str, targets: FloatArray, prior: Pmf, rtol: float, n_jobs: int | None
) -> Estimate:
    rtol = validated_rtol(rtol)
    levels = validate.real("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    validate.broadcastable("epsilon", levels, name, targets)
    logs = name == "log_delta"
    levels, targets = np.broadcast_arrays(levels, targets)
    pi_min = float(prior.probabilities.min())
    limit, gap = 1.0 - pi_min, prior.through_gaussian(1.0).mass_gap
    if len(prior) == 1:
        no_noise_needed = np.ones(targets.shape, dtype=np.bool_)
    elif logs:
        no_noise_needed = targets >= math.log1p(-pi_min) * (1 - 1e-15) + 4 * gap  # 9 units: log1p 2, the product 1
    else:
        # the limit is at least 1/2, so that the differences are exact
        no_noise_needed = (targets >= 0.5) & ((targets - 1.0) + pi_min >= 2 * gap)
    span = float(prior.values[-1] - prior.values[0])
    tasks = np.stack([levels.ravel(), targets.ravel()], axis=1)

    def level(task: FloatArray) -> Level:
        e, target = float(task[0]), float(task[1])
        goal = _asinh_logit(target if logs else math.log(target), limit)

        def evaluate(sigma: float) -> Evaluation:
            if span > _LARGEST_RATIO * sigma:
                return Evaluation(math.inf, 0.0, False, False, "certified")
            delta, log_delta = lip_curves(prior, GaussianMechanism(sigma), e)
            known = log_delta if logs else delta
            log_value, *log_bounds = log_delta.floats()
            _, lower, upper = known.floats()
            low, high = log_bounds if logs else (_log(lower), _log(upper))
            uncertainty = abs(_asinh_logit(low, limit) - _asinh_logit(high, limit)) / 2
            residual = _asinh_logit(log_value, limit) - goal
            return Evaluation(residual, uncertainty, upper <= target, lower >= target, known.kind)

        return evaluate

    def start(task: FloatArray) -> float:
        e, target = float(task[0]), float(task[1])
        calibrated = GaussianMechanism.calibrated_from_log_delta if logs else GaussianMechanism.calibrated
        return 0.7 * float(calibrated(e, target, span).sigma)  # LIP asks for at most the noise of LDP

    zero = "; 0 where delta is at least that of a release without noise, 1 - min prior"
    return least_sigma(name, tasks, no_noise_needed, level, start, rtol, n_jobs, zero)


def _single(prior: Pmf | PmfStack) -> Pmf:
    """The prior of one setting; a stack is taken apart before."""
    validate.instance("prior", prior, Pmf)
    return prior  # type: ignore[return-value]


def _log(number: float) -> float:
    return math.log(number) if number > 0 else -math.inf


def _asinh_logit(log_delta: float, limit: float) -> float:
    """asinh of the logit of delta / limit."""
    share = min(math.exp(log_delta) / limit, _BELOW_ONE)
    if log_delta == -math.inf:
        return -math.inf
    return math.asinh(log_delta - math.log(limit) - math.log1p(-share))


@monotone(falling="mu")
@broadcasting(elements="mu")
def sigma_from_cd_lmip(
    mu: NumberLike, prior: Pmf | PmfStack, *, unit: Information = "nats", rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """Least Gaussian noise under which the release tells at most mu about the secret: I(X; M) <= mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, positive.
    prior, rtol, n_jobs
        As in ``sigma_from_lip``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

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
    tests/enclosures/test_calibration.py. Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy,
    definition 2 and figure 3.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_cd_lmip([0.1, 1e-6, 2.0], prior).upper
    array([  29.74816667, 9899.48998687,    0.        ])
    """
    parallel.checked(n_jobs)
    prior = _single(prior)
    entropy = -math.fsum(prior.probabilities * np.log(prior.probabilities))
    distances = _distances_from_mean(prior)
    far = float(distances.max())
    deviation = far * math.sqrt(math.fsum(prior.probabilities * np.square(distances / (far or 1.0))))

    def information(sigma: float) -> Estimate:
        return mutual_information(prior, sigma, certified=True)

    zero = "; 0 where mu is at least the entropy of the prior, which no release exceeds"
    return _sigma_from_information(mu, prior, unit, rtol, n_jobs, information, entropy, deviation, zero)


@monotone(falling="mu")
@broadcasting(elements="mu")
def sigma_from_pointwise_lmip(
    mu: NumberLike, prior: Pmf | PmfStack, *, unit: Information = "nats", rtol: float = 1e-12, n_jobs: int | None = None
) -> Estimate:
    """Least Gaussian noise under which no value of the secret is told by more than mu: sup KL(P_x || P_M) <= mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound of the divergence at every x, positive.
    prior, unit, rtol, n_jobs
        As in ``sigma_from_cd_lmip``.

    Returns
    -------
    Estimate
        sigma in the unit of the secret, of the shape of ``mu``: at ``upper``, the upper bound of
        ``notions.pointwise_lmip`` is at most ``mu``. Exactly 0 where ``mu`` exceeds -log of the smallest probability:
        there no noise is needed.

    Notes
    -----
    More independent noise degrades P_x and P_M alike, so that every divergence falls as sigma grows. Equation (13)
    holds for this level: ``lip_delta_from_pointwise_lmip`` gives the LIP guarantee of the answer.

    Raises as ``sigma_from_cd_lmip``. **Accuracy**: relative width 1e-12 for mu from 1e-9 to 0.99 of -log min prior, by
    tests/enclosures/test_calibration.py. Source: the premise of (35) to (37) in Ngo, Oestman and Graell i Amat, On
    local mutual-information privacy.

    Examples
    --------
    >>> from fastpriv import Pmf, calibration
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> calibration.sigma_from_pointwise_lmip([0.1, 1e-6, 3.0], prior).upper
    array([   47.59473219, 15556.34416198,     0.        ])
    """
    parallel.checked(n_jobs)
    prior = _single(prior)
    limit = -math.log(float(prior.probabilities.min()))

    def information(sigma: float) -> Estimate:
        return pointwise_lmip(prior, GaussianMechanism(sigma), certified=True)

    zero = "; 0 where mu is at least -log min prior, which no divergence exceeds"
    farthest = float(_distances_from_mean(prior).max())
    return _sigma_from_information(mu, prior, unit, rtol, n_jobs, information, limit, farthest, zero)


@monotone(falling="mu", rising="amplitude")
def sigma_from_ci_lmip(
    mu: NumberLike, dimension: ArrayLike, amplitude: NumberLike, *, unit: Information = "nats", rtol: float = 1e-9,
    n_jobs: int | None = None,
) -> Estimate:
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
        Relative width of the bracket of sigma at which the solver stops, from 1e-12 to 0.1.
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
    It inverts ``awgn_capacity``: both capacities that prove the answer are certified.

    **Accuracy**: relative width ``rtol``; tests/enclosures/test_calibration.py and
    tests/enclosures/test_awgn_capacity.py check both sides. Source: Ngo, Oestman and Graell i Amat, On local
    mutual-information privacy, definition 1 and eq. (8).

    Examples
    --------
    >>> from fastpriv import calibration
    >>> round(calibration.sigma_from_ci_lmip(0.5, 1, 1.0).upper, 6)
    0.707...
    """
    parallel.checked(n_jobs)
    target = validate.real(
        "mu", mu, "positive and finite", lambda x: (x > 0) & (x < np.inf), remedy="mu = 0 needs infinite noise.",
    )
    return awgn_sigma_from_capacity(target, dimension, amplitude, rtol=rtol, unit=unit, n_jobs=n_jobs)


def _sigma_from_information(
    mu: ArrayLike, prior: Pmf, unit: Information, rtol: float, n_jobs: int | None,
    information: Callable[[float], Estimate], limit: float, deviation: float, zero: str,
) -> Estimate:
    """The inverse of a level in nats that falls from ``limit`` without noise like (deviation / sigma)^2 / 2."""
    validate.choice("unit", unit, ("nats", "bits"))
    rtol = validated_rtol(rtol)
    targets = validate.real(
        "mu", mu, "positive", lambda x: x > 0, remedy="mu = 0 needs infinite noise, if there is a secret at all.",
    )
    nats = LOG_2 if unit == "bits" else 1.0
    gap = prior.through_gaussian(1.0).mass_gap
    # an entropy is right to 7 units, a product with a unit to 3, of 9 (len + 4)
    no_noise_needed = targets * nats >= limit * (1 + 1e-15 * (len(prior) + 4)) + 2 * gap * (1 + limit)

    def level(task: FloatArray) -> Level:
        target = float(task[0])
        goal = _minus_log_complement(target * nats, limit)

        def evaluate(sigma: float) -> Evaluation:
            try:
                known = information(sigma).to(unit)
            except NotConvergedError:  # the noise is too narrow for the distances in the secret
                return Evaluation(math.inf, 0.0, False, False, "certified")
            value, low, high = (_minus_log_complement(x * nats, limit) for x in known.floats())
            _, lower, upper = known.floats()
            uncertainty = math.log(high / low) / 2
            return Evaluation(math.log(value / goal), uncertainty, upper <= target, lower >= target, known.kind)

        return evaluate

    def start(task: FloatArray) -> float:
        return deviation / math.sqrt(2 * limit * _minus_log_complement(float(task[0]) * nats, limit))

    return least_sigma("mu", targets.reshape(-1, 1), no_noise_needed, level, start, rtol, n_jobs, zero)


def _minus_log_complement(information: float, limit: float) -> float:
    """-log(1 - I/H), positive and finite."""
    return max(-math.log1p(-min(information / limit, _BELOW_ONE)), _LEAST_TARGET)


def _distances_from_mean(prior: Pmf) -> FloatArray:
    """|x - mean| for every x."""
    scale = max(float(np.abs(prior.values).max()), 5e-324)
    x = prior.values / scale
    return scale * np.abs(x - math.fsum(prior.probabilities * x))
