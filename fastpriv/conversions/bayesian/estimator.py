"""What the practical estimator of ABP errs by, and the interval that C1 and C2 give for the leakage.

Notation: kappa the belief without protection, estimated within relative_error of it at every secret; C1 = sqrt(JS) of
kappa and the prior; C2 = (e^(2 xi) - 1)/2; TV the total variation of the releases with and without protection; d(a||b)
the Kullback-Leibler divergence of Bernoulli laws.

Frequencies: the mean of n independent variables in [0, 1] of mean kappa is above a > kappa with probability at most
e^(-n d(a||kappa)), below a < kappa likewise (Hoeffding 1963). Attacks on one model share that model: given it they are
independent, over all models only the models are, so that n counts models and no number of attacks makes up for few.
MBP: xi in C2 is the largest over secrets and all releases. That one release has the largest posterior at every secret,
as is assumed in print, is possible only if all posteriors are equal, since each sums to 1.

C1: the root of JS is a metric, also for measures that do not sum to 1, so |C1_hat - C1| <= sqrt(JS(kappa_hat, kappa)),
and with ratios in [1 - e, 1 + e] that is at most sqrt(phi(1 - e) / 2).
Leakage: with delta = (e^(2 xi) - 1) TV the beliefs with and without protection have ratios in [1 - delta, 1 + delta]
of mean 1, so that the root of their JS is at most delta/2 = C2 TV; the triangle inequality does the rest.
"""

# bounds: tested by enclosures/test_conversions_values - relative errors, with that of an exponent up to 800

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = [
    "c1_error_from_count_error", "c1_error_from_count_error_as_published", "c2_from_mbp",
    "count_failure_from_trials", "count_failure_from_trials_as_published",
    "leakage_error_from_count_error", "leakage_error_from_count_error_as_published", "leakage_from_c1",
    "leakage_from_c1_as_published",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_LARGEST = float(np.nextafter(np.sqrt(np.log(2.0)), 1.0))


@documented
@monotone(falling="relative_error frequency trials")
def count_failure_from_trials(relative_error: NumberLike, frequency: NumberLike, trials: NumberLike) -> Estimate:
    """Bound of the chance that a frequency from independent trials errs by more than ``relative_error`` of it.

    e^(-n d((1 + e) kappa || kappa)) + e^(-n d((1 - e) kappa || kappa)), n = ``trials``, the first where
    (1 + e) kappa <= 1. For a mean over models n is their number, however many attacks each of them had.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.count_failure_from_trials(0.5, 0.5, [10, 100]).value
    array([5.40655396e-01, 4.16807436e-06])
    """
    e, frequency, trials = validated(relative_error=relative_error, frequency=frequency, trials=trials)
    drop = e * frequency / np.where(frequency == 1.0, 1.0, 1.0 - frequency)
    high, low = (
        trials * (frequency * _formulas.entropy_excess(sign * e)
                  + (1.0 - frequency) * _formulas.entropy_excess(np.maximum(-sign * drop, -1.0)))
        for sign in (1.0, -1.0)
    )  # fmt: skip
    over = (drop <= 1.0) & (frequency < 1.0)
    under = (frequency < 1.0) | (e == 0.0)
    terms = np.where(over, np.exp(-high), 0.0), np.where(under, np.exp(-low), 0.0)
    error = sum((1e-14 + 1e-14 * np.minimum(size, 800.0)) * term for size, term in zip((high, low), terms, strict=True))
    return bounded(sum(terms), "probability", "Chernoff's bound on both sides", error=error, ceiling=1.0)


@documented
@monotone(falling="relative_error frequency attacks")
def count_failure_from_trials_as_published(
    relative_error: NumberLike, frequency: NumberLike, attacks: NumberLike
) -> Estimate:
    """The published chance, 2 e^(-e^2 kappa T / 3), T = ``attacks``: FALSE for a mean over models.

    Four models that are hit always or never, each with probability 1/2, have a frequency that is off by half of it or
    more with probability 0.625, after a million attacks each as after one.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.count_failure_from_trials_as_published(0.5, 0.5, 1000).value
    1.60...e-18
    """
    e, frequency, attacks = validated(relative_error=relative_error, frequency=frequency, attacks=attacks)
    size = e * e * frequency * attacks / 3.0
    value = 2.0 * np.exp(-size)
    return bounded(value, "probability", "2 e^(-e^2 kappa T / 3)", error=(1e-14 + 1e-14 * size.clip(max=800.0)) * value,
                   ceiling=1.0)  # fmt: skip


@documented
@monotone(rising="relative_error")
def c1_error_from_count_error(relative_error: NumberLike) -> Estimate:
    """Largest error of C1 when every frequency is right to ``relative_error``: sqrt(phi(1 - relative_error) / 2).

    Attained, if estimated frequencies need not sum to 1. About relative_error / sqrt(8).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.c1_error_from_count_error([0.01, 0.1, 1.0]).value
    array([0.00354441, 0.03628219, 0.58870501])
    """
    (relative_error,) = validated(relative_error=relative_error)
    return bounded(_root(relative_error), "1", "sqrt(phi(1 - e) / 2)", settled=relative_error == 0.0)


@documented
@monotone(rising="relative_error")
def c1_error_from_count_error_as_published(relative_error: NumberLike) -> Estimate:
    """The published error of C1: true, of the order of the root of ``relative_error``, vacuous from 0.287 on.

    sqrt((1 + e) ln((1 + e)/(1 - e)) / 2 + (e + ln(1/(1 - e))) / 2); inf at 1.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.c1_error_from_count_error_as_published(0.01).value
    0.14186438...
    """
    (relative_error,) = validated(relative_error=relative_error)
    return bounded(_published(relative_error), "1", "equation (34)", settled=relative_error == 0.0)


@documented
@monotone(rising="relative_error")
def leakage_error_from_count_error(relative_error: NumberLike) -> Estimate:
    """Largest error of the estimate 2 C1 - C2 TV for known C2 and TV: twice that of C1.

    Attained as that of C1. It bounds the error of that expression; the leakage itself is in the interval of
    ``leakage_from_c1``.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.leakage_error_from_count_error(0.1).value
    0.07256438...
    """
    (relative_error,) = validated(relative_error=relative_error)
    return bounded(2.0 * _root(relative_error), "1", "2 sqrt(phi(1 - e) / 2)", settled=relative_error == 0.0)


@documented
@monotone(rising="relative_error")
def leakage_error_from_count_error_as_published(relative_error: NumberLike) -> Estimate:
    """The published error of the leakage, 3/2 times the published one of C1: FALSE, the leakage is not estimated.

    What is estimated is 2 C1 - C2 TV. Its error is 2 times that of C1, which the printed number exceeds only because
    the printed error of C1 is more than four times too large.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.leakage_error_from_count_error_as_published(0.01).value
    0.21279658...
    """
    (relative_error,) = validated(relative_error=relative_error)
    return bounded(1.5 * _published(relative_error), "1", "equation (35)", settled=relative_error == 0.0)


@documented
@monotone(rising="xi")
def c2_from_mbp(xi: NumberLike) -> Estimate:
    """C2 = (e^(2 xi) - 1) / 2.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.c2_from_mbp(0.5).value
    0.85914091...
    """
    (xi,) = validated(xi=xi)
    with np.errstate(over="ignore"):
        value = 0.5 * np.expm1(2.0 * xi)
    return bounded(value, "1", "expm1(2 xi) / 2", settled=(xi == 0.0) | np.isinf(xi))


@documented
@monotone(rising="c1", widening="c2 total_variation")
def leakage_from_c1(c1: NumberLike, c2: NumberLike, total_variation: NumberLike) -> Estimate:
    """Interval of the leakage (ABP) with protection: C1 - C2 TV to C1 + C2 TV, within 0 and sqrt(ln 2).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> e = conversions.leakage_from_c1(0.3, 0.5, 0.2)
    >>> round(e.lower, 12), e.value, round(e.upper, 12)
    (0.2, 0.3, 0.4)
    """
    c1, c2, total_variation = validated(c1=c1, c2=c2, total_variation=total_variation)
    with np.errstate(invalid="ignore", over="ignore"):
        radius = np.where(total_variation == 0.0, 0.0, c2 * total_variation)
    inside = np.minimum(c1, _LARGEST)
    return bounded(
        inside, "1", "triangle inequality: C1 - C2 TV to C1 + C2 TV", kind="certified", ceiling=_LARGEST,
        error=radius * (1.0 + 1e-14) + 1e-15,
    )  # fmt: skip


@documented
@monotone(rising="c1", falling="c2 total_variation")
def leakage_from_c1_as_published(c1: NumberLike, c2: NumberLike, total_variation: NumberLike) -> Estimate:
    """The published bound 2 C1 - C2 TV: FALSE as an upper bound; C1 = 0 makes it negative, shown here as 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> round(conversions.leakage_from_c1_as_published(0.3, 0.5, 0.2).value, 12)
    0.5
    """
    c1, c2, total_variation = validated(c1=c1, c2=c2, total_variation=total_variation)
    with np.errstate(invalid="ignore", over="ignore"):
        radius = np.where(total_variation == 0.0, 0.0, c2 * total_variation)
    return bounded(2.0 * c1 - radius, "1", "2 C1 - C2 TV", error=1e-15 * (2.0 * c1 + np.minimum(radius, 2.0)))


def _root(e: FloatArray) -> FloatArray:
    """sqrt(phi(1 - e) / 2), two terms of its series where phi might be subnormal."""
    far = np.sqrt(0.5 * _formulas.phi(-np.maximum(e, 1e-9)))
    return np.asarray(np.where(e < 1e-9, e * np.sqrt(0.125) * (1.0 + 0.25 * e), far))


def _published(e: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        ratio = np.log1p(e) - np.log1p(-e)
        return np.asarray(np.sqrt(0.5 * ((1.0 + e) * ratio + e - np.log1p(-e))))
