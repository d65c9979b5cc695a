"""Confidence intervals from independent replicates, from stages of them, and from counts.

Notation: R replicates with means m_1..m_R, each an unbiased estimate of mu from n points; s their standard deviation;
a = 1 - confidence, spent on one side or halved between two. The points inside a replicate may depend on each other in
any way (stratified, antithetic, scrambled Sobol): only replicates have to be independent.

Sources: Student 1908; Welch 1947, eq. (28) (degrees of freedom); Clopper and Pearson 1934; Stein 1945 (stage sizes may
follow earlier variances).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from .. import _validate
from ..errors import ShapeError

__all__ = ["Interval", "Side", "binomial_interval", "look_confidence", "replicate_interval", "stage_interval"]

FloatArray = NDArray[np.float64]
Side = Literal["both", "lower", "upper"]
SIDES = ("both", "lower", "upper")
_FIRST_LOOK = 0.75  # share of the error that the first look may spend


class Interval(NamedTuple):
    """A value and its bounds: floats, or arrays with one entry a quantity."""

    value: Any
    lower: Any
    upper: Any


def replicate_interval(
    means: Any, confidence: float, side: Side = "both", *, low: float = -math.inf, high: float = math.inf,
    points: int = 1,
) -> Interval:  # fmt: skip
    """Student's interval for the common mean of independent replicates.

    Parameters
    ----------
    means : array_like, shape (R,) or (R, e)
        Means of R >= 2 independent, identically distributed replicates, of e quantities at once. An infinite entry is
        an answer: a value that is infinite with positive probability makes the mean infinite.
    confidence : float
        Level in (0, 1).
    side : {"both", "lower", "upper"}
        ``lower`` and ``upper`` spend the whole error on one bound and leave the other trivial (``low`` or ``high``).
    low, high : float
        Known range of the integrand; bounds are cut to it.
    points : int
        Number of *independent* points behind each replicate, where they are independent; 1 says nothing about them.
        It matters only where all replicates are equal to an end of the range.

    Returns
    -------
    Interval
        ``(value, lower, upper)``.

    Raises
    ------
    DomainError, ShapeError
        NaN, fewer than two replicates, a level outside (0, 1), an unknown side.

    Notes
    -----
    Replicates that are all equal say nothing of their spread. What holds then needs the range: with probability
    1 - a, a law of which R independent draws equal v has at most 1 - a^(1/R) of its mass on each side of v (the rule of
    three), so that mu <= v + (high - v)(1 - a^(1/R)), and likewise below. Without a range the bound is infinite.

    **Accuracy** exact for normal replicates; ``tests/coverage/test_replicates.py`` has the coverage for others.

    Source: Student 1908.

    Examples
    --------
    >>> from fastpriv.sampling.intervals import replicate_interval
    >>> replicate_interval([1.0, 2.0, 3.0, 2.0], 0.95)
    Interval(value=2.0, lower=0.700..., upper=3.299...)
    >>> replicate_interval([0.0, 0.0, 0.0, 0.0], 0.95, low=0.0, high=1.0, points=1000).upper
    0.0009217...
    """
    array = _replicates("means", means)
    level, side = _level(confidence), _side(side)
    flat = array.reshape(len(array), -1)
    value, spread = _moments(flat)
    half = _quantile(level, side, np.float64(len(flat) - 1)) * spread / math.sqrt(len(flat))
    lower, upper = value - half, value + half
    equal = (flat == flat[0]).all(axis=0)
    if equal.any():
        below, above = _rule_of_three(value[equal], len(flat), points, level, side, low, high)
        lower[equal], upper[equal] = below, above
    return _finished(value, lower, upper, side, low, high, array.shape[1:])


def stage_interval(
    stages: Sequence[tuple[int, Any]], confidence: float, side: Side = "both", *, low: float = -math.inf,
    high: float = math.inf,
) -> Interval:  # fmt: skip
    """Interval from independent stages of replicates, each stage with its own number of points a replicate.

    Parameters
    ----------
    stages : sequence of (points, means)
        For each stage the number of points a replicate and the means, shape (R_k,) or (R_k, e).
    confidence : float
        Level in (0, 1).
    side : {"both", "lower", "upper"}
        As for ``replicate_interval``.
    low, high : float
        Known range of the integrand.

    Returns
    -------
    Interval
        ``(value, lower, upper)`` of sum c_k m_k with c_k proportional to points_k R_k: the mean over all points.

    Raises
    ------
    DomainError, ShapeError
        As for ``replicate_interval``.

    Notes
    -----
    Stages of equal size are pooled into one. The variance is sum c_k^2 s_k^2 / R_k; its degrees of freedom are
    (sum v_k)^2 / sum v_k^2 / (R_k - 1). The weights must not follow the means: sizes are fixed in advance, or follow
    earlier variances, which for normal replicates are independent of the means (Stein 1945).

    **Accuracy** ``tests/coverage/test_replicates.py`` stops on width after each stage and counts.

    Source: Welch 1947, eq. (28); Satterthwaite 1946, eq. (17).

    Examples
    --------
    >>> from fastpriv.sampling.intervals import stage_interval
    >>> stage_interval([(100, [1.0, 2.0, 3.0, 2.0]), (300, [2.0, 2.1, 1.9, 2.0])], 0.95)
    Interval(value=2.0, lower=1.69..., upper=2.30...)
    """
    pooled: dict[int, list[FloatArray]] = {}
    for points, means in stages:
        size = _validate.count("points of a stage", points)
        pooled.setdefault(size, []).append(_replicates("means of a stage", means))
    if not pooled:
        raise ShapeError("stages must have at least one entry; got an empty sequence. Run one stage first.")
    groups = {size: np.concatenate(parts) for size, parts in pooled.items()}
    if len(groups) == 1:
        ((size, only),) = groups.items()
        return replicate_interval(only, confidence, side, low=low, high=high)
    level, side = _level(confidence), _side(side)
    total = float(sum(size * len(group) for size, group in groups.items()))
    shape = next(iter(groups.values())).shape[1:]
    value = variance = weight = np.zeros(math.prod(shape))
    equal = np.ones(math.prod(shape), dtype=bool)
    for size, group in groups.items():
        flat = group.reshape(len(group), -1)
        share = size * len(group) / total
        mean, spread = _moments(flat)
        term = (share * spread) ** 2 / len(group)
        with np.errstate(invalid="ignore"):
            value, variance, weight = value + share * mean, variance + term, weight + term**2 / (len(group) - 1)
        equal &= spread == 0.0
    replicates = sum(len(group) for group in groups.values())
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(equal, replicates - 1.0, variance**2 / weight)
        half = _quantile(level, side, np.maximum(freedom, 1.0)) * np.sqrt(variance)
    lower, upper = value - half, value + half
    if equal.any():
        smallest = min(len(group) for group in groups.values())
        below, above = _rule_of_three(value[equal], smallest, 1, level, side, low, high)
        lower[equal], upper[equal] = below, above
    return _finished(value, lower, upper, side, low, high, shape)


def look_confidence(confidence: float, look: int) -> float:
    """Level of the interval at the k-th look, so that all looks together hold at ``confidence``.

    Parameters
    ----------
    confidence : float
        Level that a run that stops at any look must keep.
    look : int
        Number of the look, from 1.

    Returns
    -------
    float
        1 - a_k with a_1 = 3a/4 and a_k = a / (4 k (k - 1)): they sum to a = 1 - confidence.

    Raises
    ------
    DomainError
        For a level outside (0, 1) or a look below 1.

    Notes
    -----
    By the union bound the true mean lies in all the intervals of a run, so also in the one it stops at, whatever the
    rule that stops it. An infinite run is covered.

    **Accuracy** ``tests/coverage/test_replicates.py`` stops on width.

    Source: Lan and DeMets 1983 (spending); the sum 1 / (k (k - 1)) = 1 over k >= 2.

    Examples
    --------
    >>> from fastpriv.sampling.intervals import look_confidence
    >>> [round(1 - look_confidence(0.95, k), 6) for k in (1, 2, 3, 10)]
    [0.0375, 0.00625, 0.002083, 0.000139]
    """
    error = 1.0 - _level(confidence)
    look = _validate.count("look", look)
    return 1.0 - (error * _FIRST_LOOK if look == 1 else error * (1.0 - _FIRST_LOOK) / (look * (look - 1.0)))


def binomial_interval(hits: Any, trials: Any, confidence: float, side: Side = "both") -> Interval:
    """Exact interval for a probability from a count, any shapes that broadcast.

    Parameters
    ----------
    hits, trials : array_like of int
        ``0 <= hits <= trials``, ``trials >= 1``.
    confidence : float
        Level in (0, 1).
    side : {"both", "lower", "upper"}
        As for ``replicate_interval``.

    Returns
    -------
    Interval
        ``(hits / trials, lower, upper)``.

    Raises
    ------
    DomainError, ShapeError
        Counts outside their range, or shapes that do not broadcast.

    Notes
    -----
    Never covers less than ``confidence``, for any probability and any number of trials. Bounds are moved outward by
    1e-12 of themselves for the rounding of the beta quantile.

    **Accuracy** ``tests/coverage/test_counts.py`` sums the coverage exactly over all counts.

    Source: Clopper and Pearson 1934.

    Examples
    --------
    >>> from fastpriv.sampling.intervals import binomial_interval
    >>> binomial_interval(0, 1000, 0.95, "upper").upper
    0.0029912...
    """
    whole = lambda x: (x == np.floor(x)) & np.isfinite(x)
    trial = _validate.real("trials", trials, "whole numbers of at least 1", lambda x: whole(x) & (x >= 1))
    hit = _validate.real("hits", hits, "whole numbers of at least 0", lambda x: whole(x) & (x >= 0))
    _validate.broadcastable("hits", hit, "trials", trial)
    hit, trial = np.broadcast_arrays(hit, trial)
    _validate.real("trials - hits", trial - hit, "at least 0", lambda x: x >= 0)
    error = _error(confidence, side)
    inner = np.clip(hit, 1.0, None)
    lower = np.where(hit > 0, betaincinv(inner, trial - inner + 1.0, error) * (1 - 1e-12), 0.0)
    inner = np.clip(trial - hit, 1.0, None)
    upper = np.where(hit < trial, 1.0 - betaincinv(inner, trial - inner + 1.0, error) * (1 - 1e-12), 1.0)
    return _finished(hit / trial, lower, upper, side, 0.0, 1.0, hit.shape)


def _replicates(name: str, means: Any) -> FloatArray:
    array = _validate.real(name, means, "numbers")
    if array.ndim not in (1, 2) or len(array) < 2:
        raise ShapeError(
            f"{name} must be of shape (R,) or (R, e) with R of at least 2; got {array.shape}. One replicate has no spread."
        )
    return array


def _error(confidence: float, side: str) -> float:
    """The error that one bound may spend."""
    return (1.0 - _level(confidence)) / (2.0 if _side(side) == "both" else 1.0)


def _level(confidence: float) -> float:
    return _validate.scalar("confidence", confidence, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))


def _side(side: str) -> Side:
    return _validate.choice("side", side, SIDES)  # type: ignore[return-value]


def _moments(flat: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of each column; equal entries give exactly their value and 0."""
    with np.errstate(invalid="ignore", over="ignore"):
        centre = flat[0]
        gaps = flat - centre
        value = centre + gaps.mean(axis=0)
        spread = gaps.std(axis=0, ddof=1)
    return value, spread


def _quantile(level: float, side: Side, freedom: Any) -> Any:
    return -stdtrit(freedom, (1.0 - level) / (2.0 if side == "both" else 1.0))


def _rule_of_three(
    value: FloatArray, replicates: int, points: int, level: float, side: Side, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    error = (1.0 - level) / (2.0 if side == "both" else 1.0)
    at_end = (value == low) | (value == high)
    draws = np.where(at_end, replicates * float(points), float(replicates))
    mass = -np.expm1(math.log(error) / draws)
    with np.errstate(invalid="ignore"):
        below = np.where(value == low, low, value - (value - low) * mass)
        above = np.where(value == high, high, value + (high - value) * mass)
    return below, above


def _finished(
    value: FloatArray, lower: FloatArray, upper: FloatArray, side: Side, low: float, high: float,
    shape: tuple[int, ...],
) -> Interval:  # fmt: skip
    """Cut to the range, drop the side that was not asked for, keep infinite answers, give floats for scalars."""
    value = np.where(np.isnan(value), 0.5 * (max(low, -1e308) + min(high, 1e308)), value)
    lower = np.full_like(value, low) if side == "upper" else np.where(np.isnan(lower), low, lower)
    upper = np.full_like(value, high) if side == "lower" else np.where(np.isnan(upper), high, upper)
    lower = np.where(np.isposinf(value), math.inf, lower)
    upper = np.where(np.isneginf(value), -math.inf, upper)
    value = np.clip(value, low, high)
    lower, upper = np.clip(lower, low, value), np.clip(upper, value, high)
    if shape == ():
        return Interval(float(value.ravel()[0]), float(lower.ravel()[0]), float(upper.ravel()[0]))
    return Interval(value.reshape(shape), lower.reshape(shape), upper.reshape(shape))
