"""Privacy against accuracy of a statistic with Laplace noise: a private mean, a private model.

Notation: secrets d = 0 ... K - 1, data sets with prior pi, of which 0 is the true one; o_d in R^P their noiseless
outputs; the release is o_d plus independent Laplace noise of scale b in every coordinate; D_ij = |o_i - o_j|_1 / b.
At the release o_d the log likelihoods of all secrets differ by l_j - l_d = -D_jd, which is the least there is, and
nowhere by more than D_jd. So

    epsilon = max D_ij (LDP),   xi_plus = max over d of -ln sum of pi_j e^(-D_jd),
    xi_minus = max over d and releases of ln sum of pi_j e^(l_j - l_d) <= max over d of ln sum of pi_j e^(D_jd).

Between the outputs' coordinates the last sum is convex in the release, and beyond the outermost it is constant: its
largest value is at a release whose every coordinate is one of an output's. The outputs themselves are such releases,
all of them for P = 1. xi is the larger of xi_plus and xi_minus (MBP).

A release misses the target mu by more than alpha with probability beta for the true data, gamma_d for another d. By the
corrected theorem IV.7 gamma_d <= T_xi(T_xi(beta)), T_x(p) = min(e^x p, 1 - e^-x (1 - p)); published is (1 + 4 xi) beta.
In the maximum norm the coordinates miss independently; other norms are sampled.

Source: J. Zhang and K. Chen, Bridging Privacy and Robustness, definitions IV.2 to IV.6, theorem IV.7.
"""

# bounds: tested by leakage/test_accuracy_tradeoffs - rounding of distances and exponents; 1e-300 for underflow

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...base import random_streams, validate
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, Result, stacked
from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...base.parallel import Progress
from ...base.random_streams import RNGLike
from ...conversions import abp_from_mbp, robustness_from_ldp, robustness_from_mbp
from ...notions import robust_accuracy

__all__ = ["AccuracyTradeoff", "accuracy_tradeoff", "neighbour_outputs"]

# bound: tested by leakage/test_accuracy_tradeoffs - relative error of logarithms of sums, and of tails of Laplace noise
_RELATIVE_ERROR = 1e-12
# bound: none - distances are at most this many scales, so that no quotient overflows
_LARGEST_QUOTIENT = 1e300


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AccuracyTradeoff(Result):
    """Privacy and accuracy at each scale of the noise; all estimates have the shape (L,) of the scales.

    Parameters
    ----------
    scales : ndarray, shape (L,)
        Scales of the Laplace noise.
    epsilon : Estimate
        Least epsilon of LDP among the secrets, in nats.
    xi : Estimate
        Their maximum Bayesian privacy.
    abp : Estimate
        Bound of the average Bayesian privacy that follows from ``xi``, whatever is released.
    beta : Estimate
        Probability that the release of the true secret misses the target by more than alpha.
    gamma : Estimate
        The largest such probability of the other secrets.
    gamma_bound : Estimate
        What follows for gamma from ``beta`` by ``xi`` (corrected theorem IV.7) or by ``epsilon``, the smaller.
    gamma_as_published : Estimate
        (1 + 4 xi) beta, as published, which is FALSE for xi above 0.628; 1 where xi exceeds 1 and nothing is claimed.

    Examples
    --------
    >>> from fastpriv import leakage
    >>> found = leakage.accuracy_tradeoff([[0.0], [0.1]], [0.05, 0.1, 1.0], alpha=0.5)
    >>> found.epsilon.value, found.gamma.value.round(2)
    (array([2. , 1. , 0.1]), array([0.  , 0.01, 0.61]))
    """

    scales: FloatArray
    epsilon: Estimate
    xi: Estimate
    abp: Estimate
    beta: Estimate
    gamma: Estimate
    gamma_bound: Estimate
    gamma_as_published: Estimate


def neighbour_outputs(
    statistic: Callable[..., ArrayLike], records: ArrayLike, labels: ArrayLike | None = None, *, neighbours: int = 10,
    rng: RNGLike = None,
) -> FloatArray:  # fmt: skip
    """Outputs of a statistic on data and on neighbours of it, in each of which one record is a copy of another.

    Parameters
    ----------
    statistic : callable
        Called with records, and labels if there are any; returns a number or a vector: a mean, trained weights.
    records : array_like, shape (N, ...)
        The data.
    labels : array_like, shape (N,), optional
        Labels of the records.
    neighbours : int
        How many neighbours.
    rng : int, Generator or None
        Source of the records that are replaced.

    Returns
    -------
    ndarray, shape (neighbours + 1, P)
        The true data's output first.

    Raises
    ------
    ShapeError
        For fewer than two records, or labels or outputs that do not fit.

    Notes
    -----
    **Accuracy** outputs are those of ``statistic``. Source: the head of fastpriv/studies/leakage/accuracy_tradeoffs.py.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import leakage
    >>> leakage.neighbour_outputs(np.mean, [0.0, 1.0, 5.0], neighbours=2, rng=1).shape
    (3, 1)
    """
    if not callable(statistic):
        raise DomainError(
            f"statistic must be a function of records; got {validate.shown(statistic)}. Pass one, as numpy.mean."
        )
    data = validate.real("records", records)
    if data.ndim == 0 or len(data) < 2:
        raise ShapeError(f"records must have at least two rows; got shape {data.shape}. Pass one row a record.")
    tags = None if labels is None else validate.array("labels", labels)
    if tags is not None and tags.shape[:1] != (len(data),):
        raise ShapeError(f"labels must have one entry a record, {len(data)}; got shape {tags.shape}. Pass a flat list.")
    stream = random_streams.generator(rng)
    outputs = []
    for k in range(validate.count("neighbours", neighbours, 1, validate.MOST_ENTRIES) + 1):
        x, y = data.copy(), None if tags is None else tags.copy()
        if k:
            replaced, by = stream.choice(len(data), 2, replace=False)
            x[replaced] = data[by]
            if y is not None and tags is not None:
                y[replaced] = tags[by]
        arguments: tuple[Any, ...] = (x,) if y is None else (x, y)
        outputs.append(validate.vector("statistic", np.atleast_1d(np.asarray(statistic(*arguments)))))
    if len({one.shape for one in outputs}) > 1:
        raise ShapeError(
            f"statistic must return vectors of one length; got {sorted({one.size for one in outputs})}. Return the "
            "same numbers for every data set."
        )
    return np.array(outputs)


def accuracy_tradeoff(
    outputs: ArrayLike, scales: ArrayLike, alpha: float, *, target: ArrayLike | None = None,
    prior: ArrayLike | None = None, norm: float = math.inf, confidence: float = 0.95, max_samples: float = 1e6,
    rng: RNGLike = None, n_jobs: int | None = None, progress: Progress = None,
) -> AccuracyTradeoff:  # fmt: skip
    """Privacy, accuracy and robustness of a statistic with Laplace noise, over the scale of the noise.

    Parameters
    ----------
    outputs : array_like, shape (K, P)
        Noiseless outputs on K data sets, the true one first: from ``neighbour_outputs``.
    scales : array_like, shape (L,)
        Positive scales b of the noise of each coordinate (density exp(-|x| / b) / 2b).
    alpha : float
        Largest distance from the target that is no miss.
    target : array_like, shape (P,), optional
        What the release estimates; by default the true output without noise.
    prior : array_like, shape (K,), optional
        Prior probabilities of the data sets, positive; by default equal ones.
    norm : {1, 2, inf}
        Of the distance; the maximum norm is exact, others are sampled.
    confidence, max_samples, rng, n_jobs, progress
        Of the sampling, as ``robust_accuracy``.

    Returns
    -------
    AccuracyTradeoff

    Raises
    ------
    DomainError, ShapeError
        For scales that are not positive, a prior with zeros, fewer than two data sets, arrays that do not fit.

    Notes
    -----
    Normal noise has no finite MBP: a release far out decides between two data sets.

    **Accuracy** LDP is exact; xi is certified, and within rounding for P = 1; misses are exact in the maximum norm;
    ``tests/leakage/test_accuracy_tradeoffs.py``. Source: the head of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import leakage
    >>> ages = np.random.default_rng(1).uniform(20, 60, 200)
    >>> means = leakage.neighbour_outputs(np.mean, ages, rng=1)
    >>> found = leakage.accuracy_tradeoff(means, [0.1, 1.0], alpha=2.0)
    >>> bool(np.all(found.gamma.upper <= found.gamma_bound.upper))
    True
    """
    points = validate.real("outputs", outputs, "finite numbers", np.isfinite)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] == 0:
        raise ShapeError(
            f"outputs must be a table of at least two data sets and one number each; got shape {points.shape}. Pass "
            "what neighbour_outputs returned."
        )
    widths = validate.vector("scales", scales, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    edge = validate.scalar("alpha", alpha, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    centre = points[0] if target is None else validate.vector("target", target)
    most = _LARGEST_QUOTIENT * min(1.0, float(widths.min()))
    for name, number in (("alpha", edge), ("outputs", points), ("target", centre)):
        constraint = f"at most {_LARGEST_QUOTIENT:g} times the least scale"
        validate.real(name, number, constraint, lambda x: np.abs(x) <= most)
    if centre.shape != points.shape[1:]:
        raise ShapeError(
            f"target must have {points.shape[1]} numbers, as an output; got {centre.size}. Pass what is estimated."
        )
    if prior is None:
        pi = np.full(len(points), 1.0 / len(points))
    else:
        pi = validate.probabilities("prior", prior)
        if pi.shape != (len(points),) or not np.all(pi > 0):
            raise DomainError(
                f"prior must be {len(points)} positive probabilities, one a data set; got {validate.shown(prior)}. "
                "Leave out data sets that cannot be."
            )
    norm = validate.scalar("norm", norm, "1, 2 or inf", lambda x: (x == 1) | (x == 2) | (x == np.inf),
                            remedy="Choose one of these.")  # fmt: skip
    distances = np.abs(points[:, None] - points).sum(axis=2)
    relative = (points.shape[1] + 8) * UNIT_ROUNDOFF
    largest = distances.max() / widths
    epsilon = _estimate(largest, relative * largest, "nats", "largest L1 distance by the scale")
    xi = _mbp(distances, widths, pi, relative, points.shape[1] == 1)
    misses = [_misses(points, float(b), centre, edge, norm, confidence, max_samples, rng, n_jobs, progress)
              for b in widths]  # fmt: skip
    beta = stacked([one[0] for one in misses], widths.shape)
    gamma = stacked([one[1] for one in misses], widths.shape)
    least = float(pi.min())
    by_xi, by_epsilon = robustness_from_mbp(xi, beta, least), robustness_from_ldp(epsilon, beta)
    inside = np.minimum(xi.upper, 1.0)
    published = robustness_from_mbp(inside, beta, form="as_published")
    beyond = np.asarray(xi.upper) > 1.0
    numbers = (np.where(beyond, 1.0, one) for one in published.arrays())
    return AccuracyTradeoff(
        widths, epsilon, xi, abp_from_mbp(xi), beta, gamma, _smaller(by_xi, by_epsilon),
        Estimate(*numbers, kind=published.kind, unit="probability", method="(1 + 4 xi) beta",
                 confidence=published.confidence),
    )  # fmt: skip


def _mbp(distances: FloatArray, scales: FloatArray, prior: FloatArray, relative: float, flat: bool) -> Estimate:
    """xi at each scale: the values at the outputs, and the bound of xi_minus for all releases."""
    attained = flat or len(prior) == 2  # at an output
    values, uppers = [], []
    for b in scales:
        gaps = distances / b  # (K, K)
        error = relative * float(gaps.max()) + _RELATIVE_ERROR
        raised = -_log_mean(-gaps, prior)  # xi_plus of each d, at the release o_d
        at_outputs = gaps.T[:, :, None] - gaps.T[:, None, :]  # l_j - l_d at the release o_i: D_di - D_ji
        lowered = np.max([_log_mean(one, prior) for one in at_outputs])
        value = max(float(raised.max()), float(lowered), 0.0)
        bound = value if attained else max(value, float(_log_mean(gaps, prior).max()))
        values.append((value, max(value - error * (1.0 + value), 0.0)))
        uppers.append(bound + error * (1.0 + bound))
    value, lower = np.array(values).T
    return Estimate(value, lower, np.array(uppers), kind="certified", unit="nats", method="ratios at the outputs")


def _log_mean(exponents: FloatArray, prior: FloatArray) -> FloatArray:
    """ln sum of pi_j e^(x_j) over the last axis."""
    top = exponents.max(axis=-1, keepdims=True)
    return np.asarray(top[..., 0] + np.log((np.exp(exponents - top) * prior).sum(axis=-1)))


def _misses(
    points: FloatArray, scale: float, target: FloatArray, alpha: float, norm: float, confidence: float,
    max_samples: float, rng: RNGLike, n_jobs: int | None, progress: Progress,
) -> tuple[Estimate, Estimate]:  # fmt: skip
    """beta of the first output, and the largest gamma of the others."""
    if norm == math.inf:
        shifts = np.abs(points - target) / scale
        edge = alpha / scale
        each = _tail(edge - shifts) + _tail(edge + shifts)
        with np.errstate(divide="ignore"):
            found = -np.expm1(np.log1p(-np.minimum(each, 1.0)).sum(axis=1))
        # rounding of edge -+ shift, an exponent; the slope of a tail is at most its value
        error = (_RELATIVE_ERROR + 4 * UNIT_ROUNDOFF * (edge + shifts.max())) * found + 1e-300
        all_of_them = _estimate(found, error, "probability", "tails of Laplace noise")
        worst = 1 + int(np.argmax(found[1:]))
        return all_of_them[0], all_of_them[worst]

    def release(stream: np.random.Generator, n: int, secret: Any) -> FloatArray:
        return np.asarray(secret) + stream.laplace(scale=scale, size=(n, points.shape[1]))

    words: dict[str, Any] = {"norm": norm, "confidence": confidence, "max_samples": max_samples, "n_jobs": n_jobs,
                             "progress": progress, "rng": rng}  # fmt: skip
    own = robust_accuracy(release, [points[0]], target, alpha, **words).maximum
    return own, robust_accuracy(release, list(points[1:]), target, alpha, **words).maximum


def _tail(t: FloatArray) -> FloatArray:
    """P(Z > t) of Laplace noise of scale 1."""
    return np.where(t >= 0, 0.5 * np.exp(-np.abs(t)), 1.0 - 0.5 * np.exp(-np.abs(t)))


def _estimate(value: FloatArray, error: Any, unit: Any, method: str) -> Estimate:
    most = 1.0 if unit == "probability" else np.inf
    return Estimate(value, np.maximum(value - error, 0.0), np.minimum(value + error, most), kind="exact", unit=unit,
                    method=method)  # fmt: skip


def _smaller(one: Estimate, other: Estimate) -> Estimate:
    """The smaller of two upper bounds of one quantity."""
    numbers = (np.minimum(a, b) for a, b in zip(one.arrays(), other.arrays(), strict=True))
    method = "smaller of T_xi(T_xi(beta)) and T_epsilon(beta)"
    return Estimate(*numbers, kind=one.kind, unit="probability", method=method, confidence=one.confidence)
