"""Confidence intervals from independent replicates, from stages of them, and from counts.

Notation: R replicates with means m_1..m_R, each an unbiased estimate of mu from n points; s their standard deviation;
a = 1 - confidence, spent on one side or halved between two. The points inside a replicate may depend on each other in
any way (stratified, antithetic, scrambled Sobol): only replicates have to be independent.

Sources: Student 1908; Johnson 1978 (skewness); Welch 1947 (degrees of freedom); Clopper and Pearson 1934; Stein 1945
(stage sizes may follow earlier variances).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from ...base import validate
from ...base.errors import ShapeError
from ...base.estimate import Estimate, Unit
from ...base.numerics import BoolArray, FloatArray
from ...base.parallel import blocks
from ...kernels import _binomial_tail
from ..options import SIDES, Side

_SKEWNESS_FACTOR = 2.0  # on the skewness that the points show, which is itself uncertain
_PIECE = 8192  # quantiles of a beta distribution in one call of SciPy, at most some hundredths of a second
_FIRST_SHARE = 0.75  # share of the error that the first interim analysis may spend: most runs stop there


class Interval(NamedTuple):
    """A value and its bounds: floats, or arrays with one entry a quantity."""

    value: Any
    lower: Any
    upper: Any


def replicate_interval(
    means: Any, confidence: float, side: Side = "both", *, low: float = -math.inf, high: float = math.inf,
    points: int = 1, skewness: Any = 0.0, deviation: Any = 0.0,
) -> Interval:
    """Student's interval for the common mean of independent replicates, widened on the side of their skewness.

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
        Points behind each replicate.
    skewness : float or array_like, shape (e,)
        Skewness of the integrand at one point, as the points show it (``PointMoments``); 0 where it is unknown.
    deviation : float or array_like, shape (e,)
        Standard deviation of the integrand at one point, where the points of a replicate depend on each other; 0 where
        they do not, or it is unknown.

    Raises
    ------
    DomainError, ShapeError
        NaN, fewer than two replicates, a level outside (0, 1), an unknown side.

    Notes
    -----
    The bounds are value -+ s / sqrt(R) (t + (1 + 2 t^2) g / 6), t Student's quantile and g >= 0 a skewness of the mean:
    to the left for negative skewness, to the right for positive, the larger of what the replicates show and twice what
    the points show. Without the second term an integrand of skewness 1 (one hit a replicate) is missed three times too
    often at 0.999; no side is ever narrower than Student's.

    Where stratified or quasi-random points lower the variance, the skewness of the replicates rises: what is left comes
    from the ends of the distribution. The third cumulant is then taken to have fallen in proportion to the variance,
    from that of independent points: skewness times deviation / (sqrt(points) s).

    Replicates that are all equal say nothing of their spread. What holds then needs the range: with probability 1 - a,
    a distribution of which R independent draws equal v has at most 1 - a^(1/R) of its mass on each side of v (the rule
    of three), so that mu <= v + (high - v)(1 - a^(1/R)), and likewise below. Without a range the bound is infinite.

    **Accuracy** ``tests/intervals/test_replicates.py`` counts the misses for R = 8, 16 and 32. From R = 16 on they stay
    below the level for every distribution there whose points show its skewness; R = 8 does not carry 0.999.

    Source: Student 1908; Johnson 1978, eq. (2.5), inverted, on the side where it widens.

    Examples
    --------
    >>> replicate_interval([1.0, 2.0, 3.0, 2.0], 0.95)
    Interval(value=2.0, lower=0.700..., upper=3.299...)
    """
    return stage_interval(
        [(points, means)], confidence, side, low=low, high=high, skewness=skewness, deviation=deviation
    )


def stage_interval(
    stages: Sequence[tuple[int, Any]], confidence: float, side: Side = "both", *, low: float = -math.inf,
    high: float = math.inf, skewness: Any = 0.0, deviation: Any = 0.0,
) -> Interval:
    """Interval from independent stages of replicates, each stage with its own number of points a replicate.

    ``stages`` has for each the number of points a replicate and the means, shape (R_k,) or (R_k, e); the rest is as for
    ``replicate_interval``. The value is sum c_k m_k with c_k proportional to points_k R_k: the mean over all points.

    Stages of equal size are pooled into one. The variance is sum c_k^2 s_k^2 / R_k; its degrees of freedom are
    (sum v_k)^2 / sum v_k^2 / (R_k - 1). The weights must not follow the means: sizes are fixed in advance, or follow
    earlier variances, which for normal replicates are independent of the means (Stein 1945).

    **Accuracy** ``tests/intervals/test_replicates.py`` stops on width after each stage and counts.

    Source: Welch 1947; Satterthwaite 1946.

    Examples
    --------
    >>> stage_interval([(100, [1.0, 2.0, 3.0, 2.0]), (300, [2.0, 2.1, 1.9, 2.0])], 0.95)
    Interval(value=2.0, lower=1.688..., upper=2.311...)
    """
    error = error_of_one_bound(confidence, side)
    pooled: dict[int, list[FloatArray]] = {}
    for points, means in stages:
        size = validate.count("points", points)
        pooled.setdefault(size, []).append(_replicates(means))
    if not pooled:
        raise ShapeError("stages must have at least one entry; got an empty sequence. Run one stage first.")
    groups = {size: np.concatenate(parts) for size, parts in pooled.items()}
    shape = next(iter(groups.values())).shape[1:]
    point_skewness = np.broadcast_to(validate.real("skewness", skewness, "a number"), shape).ravel()
    point_deviation = np.broadcast_to(validate.real("deviation", deviation, "a number"), shape).ravel()
    every = np.concatenate(list(groups.values()))
    infinite = [(every == end).any(axis=0).ravel() for end in (math.inf, -math.inf)]
    if np.any(infinite):
        groups = {size: np.where(np.isfinite(group), group, 0.0) for size, group in groups.items()}
    total = float(sum(size * len(group) for size, group in groups.items()))
    # gaps from the first mean in units of the largest gap: neither their squares nor their cubes overflow
    first = next(iter(groups.values())).reshape(-1, math.prod(shape))[0]
    with np.errstate(over="ignore"):
        span = np.max([np.abs(group.reshape(len(group), -1) - first).max(axis=0) for group in groups.values()], axis=0)
    equal = span == 0.0
    span = np.where(equal, 1.0, span)
    value = variance = weight = third = third_of_points = np.zeros(math.prod(shape))
    for size, group in groups.items():
        count = len(group)
        share = size * count / total
        gaps = (group.reshape(count, -1) - first) / span
        mean = gaps.mean(axis=0)
        spread = gaps.std(axis=0, ddof=1)
        term = (share * spread) ** 2 / count
        value, variance, weight = value + share * mean, variance + term, weight + term**2 / (count - 1)
        cubes = ((gaps - mean) ** 3).sum(axis=0) / ((count - 1) * max(count - 2, 1))
        third = third + share**3 * cubes / count
        widest = np.maximum(spread, point_deviation / span / math.sqrt(size))  # of the mean of independent points
        third_of_points = third_of_points + share * term * widest * point_skewness / (math.sqrt(size) * count)
    equal |= variance == 0.0
    freedom = len(every) - 1.0 if len(groups) == 1 else np.where(equal, 1.0, variance**2 / np.where(equal, 1.0, weight))
    quantile = -special.stdtrit(np.maximum(freedom, 1.0), error)
    scale = np.sqrt(variance)
    skew, skew_of_points = (x / np.where(equal, 1.0, scale) ** 3 for x in (third, _SKEWNESS_FACTOR * third_of_points))
    shift = (1.0 + 2.0 * quantile**2) / 6.0  # Johnson 1978, eq. (2.5), inverted
    lower = value - scale * (quantile + shift * np.maximum(0.0, np.maximum(-skew, -skew_of_points)))
    upper = value + scale * (quantile + shift * np.maximum(0.0, np.maximum(skew, skew_of_points)))
    value, lower, upper = (first + span * x for x in (value, lower, upper))
    if equal.any():
        lower[equal], upper[equal] = _rule_of_three(groups, equal, error, low, high)
    above, below = infinite
    lower, upper = (np.where(above & ~below, math.inf, np.where(below & ~above, -math.inf, x)) for x in (lower, upper))
    lower, upper = np.where(above & below, -math.inf, lower), np.where(above & below, math.inf, upper)
    value = np.where(above & ~below, math.inf, np.where(below & ~above, -math.inf, value))
    return finished_interval(value, lower, upper, side, low, high, shape)


def analysis_confidence(confidence: float, analysis: int) -> float:
    """Level of the interval at the k-th interim analysis, so that all of them together hold at ``confidence``.

    It is 1 - a_k with a_1 = 3a/4 and a_k = a / (4 k (k - 1)), which sum to a = 1 - confidence. By the union bound the
    true mean lies in all the intervals of a run, so also in the one at which it stops, whatever the rule that stops it.
    An infinite run is covered. ``tests/intervals/test_replicates.py`` stops on width.

    Source: Lan and DeMets 1983 (spending); the sum 1 / (k (k - 1)) = 1 over k >= 2.

    Examples
    --------
    >>> [round(1 - analysis_confidence(0.95, k), 6) for k in (1, 2, 3, 10)]
    [0.0375, 0.00625, 0.002083, 0.000139]
    """
    error = 1.0 - validate.open_probability("confidence", confidence)
    k = validate.count("analysis", analysis)
    return 1.0 - (error * _FIRST_SHARE if k == 1 else error * (1.0 - _FIRST_SHARE) / (k * (k - 1.0)))


def student_factor(confidence: float, replicates: int, side: Side = "both") -> float:
    """Half width of Student's interval in standard errors, by ``scipy.special.stdtrit``.

    Examples
    --------
    >>> student_factor(0.95, 32)
    2.0395...
    """
    freedom = validate.count("replicates", replicates, 2) - 1.0
    return -float(special.stdtrit(freedom, error_of_one_bound(confidence, side)))


def binomial_interval(hits: Any, trials: Any, confidence: float, side: Side = "both") -> Interval:
    """Exact interval for a probability from counts of any shapes that broadcast: 0 <= ``hits`` <= ``trials``.

    It never covers less than ``confidence``, for any probability and any number of trials: each bound is proved by one
    of the tail of the counts (docs/proofs/roundings.md, 13.26). ``tests/intervals/test_counts.py`` sums the coverage
    exactly over all counts.

    Source: Clopper and Pearson 1934.

    Examples
    --------
    >>> binomial_interval(0, 1000, 0.95, "upper").upper
    0.0029912...
    """
    trial = validate.real("trials", trials, "whole numbers of at least 1", lambda x: _whole(x) & (x >= 1))
    hit = validate.real("hits", hits, "whole numbers of at least 0", lambda x: _whole(x) & (x >= 0))
    validate.broadcastable("hits", hit, "trials", trial)
    hit, trial = np.broadcast_arrays(hit, trial)
    validate.real("trials - hits", trial - hit, "at least 0", lambda x: x >= 0)
    error = error_of_one_bound(confidence, side)
    lower, upper = least_rates(hit, trial, error), most_rates(hit, trial, error)
    return finished_interval(hit / trial, lower, upper, side, 0.0, 1.0, hit.shape)


def least_rates(hits: Any, trials: Any, error: Any) -> FloatArray:
    """Lower bounds of rates, each of which fails with probability ``error``; shapes broadcast."""
    return _proved_rates(False, hits, trials, error)


def most_rates(hits: Any, trials: Any, error: Any) -> FloatArray:
    """Upper bounds of rates, each of which fails with probability ``error``; shapes broadcast."""
    return _proved_rates(True, hits, trials, error)


def _proved_rates(upper: bool, hits: Any, trials: Any, error: Any) -> FloatArray:
    """SciPy's quantiles of beta laws, moved outward until the tails of the counts are proved to be small enough.

    In pieces of at most some hundredths of a second, between which Ctrl-C is heard.
    """
    arrays = [np.asarray(x, dtype=np.float64) for x in np.broadcast_arrays(hits, trials, error)]
    hit, trial, level = (x.ravel() for x in arrays)
    bounds = np.empty(hit.size)
    for some in blocks(hit.size, _PIECE):
        h, n, e = hit[some], trial[some], level[some]
        bounds[some] = special.betainccinv(h + 1.0, n - h, e) if upper else special.betaincinv(h, n - h + 1.0, e)
        _binomial_tail.rates(upper, h, n, e, bounds[some])
    return bounds.reshape(arrays[0].shape)


def binomial_tails(hits: FloatArray, trials: FloatArray, rate: FloatArray, other: FloatArray) -> FloatArray:
    """Upper and lower bounds of P(Bin >= hits), and upper ones of it over hits P(Bin = hits): (3, ...).

    Of ``rate`` and ``other`` the smaller one is exact, and the larger one its complement, rounded.
    """
    arrays = [np.asarray(x, dtype=np.float64) for x in np.broadcast_arrays(hits, trials, rate, other)]
    out = np.empty((3, arrays[0].size))
    _binomial_tail.tails(*(x.ravel() for x in arrays), out)
    return out.reshape(3, *arrays[0].shape)


def _replicates(means: Any) -> FloatArray:
    array = validate.real("means", means, "numbers")
    if array.ndim not in (1, 2) or len(array) < 2:
        raise ShapeError(
            f"means must be of shape (R,) or (R, e) with R of at least 2; got {array.shape}. Run more replicates."
        )
    return array


def _whole(x: FloatArray) -> BoolArray:
    return np.asarray((x == np.floor(x)) & np.isfinite(x))


def error_of_one_bound(confidence: float, side: Side) -> float:
    """The probability with which one bound may fail."""
    error = 1.0 - validate.open_probability("confidence", confidence)
    return error / (2.0 if validate.choice("side", side, SIDES) == "both" else 1.0)


def estimate_around(value: Any, lower: Any, upper: Any, unit: Unit, method: str, confidence: float) -> Estimate:
    """An estimate whose interval is widened to its value, which may come from other data than the bounds."""
    return Estimate(
        value, np.minimum(lower, value), np.maximum(upper, value), kind="statistical", unit=unit, method=method,
        confidence=confidence,
    )


def _rule_of_three(
    groups: dict[int, FloatArray], columns: BoolArray, error: float, low: float, high: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds where all replicates of a stage are equal; of several stages, that with most of them is the tightest."""
    _, group = max(groups.items(), key=lambda item: (len(item[1]), item[0]))
    value = group.reshape(len(group), -1)[0, columns]
    mass = -math.expm1(math.log(error) / len(group))
    with np.errstate(invalid="ignore"):
        below = np.where(value == low, low, value - (value - low) * mass)
        above = np.where(value == high, high, value + (high - value) * mass)
    return below, above


def finished_interval(
    value: FloatArray, lower: FloatArray, upper: FloatArray, side: Side, low: float, high: float,
    shape: tuple[int, ...],
) -> Interval:
    """Cut to the range, drop the side that was not asked for, give floats for scalars."""
    value = np.clip(value, low, high)
    lower = np.full_like(value, low) if side == "upper" else np.clip(lower, low, value)
    upper = np.full_like(value, high) if side == "lower" else np.clip(upper, value, high)
    if shape == ():
        return Interval(float(value.ravel()[0]), float(lower.ravel()[0]), float(upper.ravel()[0]))
    return Interval(value.reshape(shape), lower.reshape(shape), upper.reshape(shape))
