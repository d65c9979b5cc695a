"""Average Bayesian privacy (ABP), the root of the Jensen-Shannon divergence of beliefs after and before a release.

Notation: f^A the belief after the release, averaged over the distribution of the release, f^B the attacker's prior, pi
the true one; h binary entropy in nats; JS(f^A || f^B) = E_{f^B} phi(f^A / f^B) / 2 with phi convex, phi(1) = 0.

MBP, any distribution of the release: f^A/f^B lies in [e^-x, e^x] with mean 1, x = xi + belief_gap, so JS is at most the
chord of phi/2 between the ends at 1: ln 2 - h(1/(1 + e^x)).
LDP: all ratios of two values of f^A/pi are at most e^epsilon, so JS is at most the largest of two Bernoulli
distributions whose log odds differ by epsilon. With m the mean of their parameters, m + d and m - d the parameters and
n = 2m - 1, its derivative along the family has the sign of -n times the integral over s in [0, d] of
(d - s) (m(1-m) + ds) / ((m(1-m) - sn - s^2) (m(1-m) + sn - s^2)): the largest is the symmetric pair, m = 1/2.
A release drawn from the row of the secret d0: f^A(d)/pi(d) = E_q r_d r_d0 = 1 + Cov_q(r_d, r_d0), and a variable in
[e^-xi, e^xi] with mean 1 has variance at most c = (e^xi - 1)(1 - e^-xi) = 2 cosh xi - 2.

Errors of the practical estimator of ABP: kappa is the belief without protection, estimated within relative_error of it
at every secret; C1 = sqrt(JS) of kappa and the prior; C2 = (e^(2 xi) - 1)/2; TV the total variation of the releases
with and without protection; d(a||b) the Kullback-Leibler divergence of Bernoulli distributions.

Frequencies: the mean of n independent variables in [0, 1] of mean kappa is above a > kappa with probability at most
e^(-n d(a||kappa)), below a < kappa likewise (Hoeffding 1963). Attacks on one model share that model: given it they are
independent, over all models only the models are, so that n counts models and no number of attacks makes up for few.
MBP: xi in C2 is the largest over secrets and all releases. That one release has the largest posterior at every secret,
as is assumed in print, is possible only if all posteriors are equal, since each sums to 1.
C1: the root of JS is a metric, also for measures that do not sum to 1, so |C1_hat - C1| <= sqrt(JS(kappa_hat, kappa)),
and with ratios in [1 - e, 1 + e] that is at most sqrt(phi(1 - e) / 2).
Leakage: with delta = (e^(2 xi) - 1) TV the beliefs with and without protection have ratios in [1 - delta, 1 + delta]
of mean 1, so that the root of their JS is at most delta/2 = C2 TV; the triangle inequality does the rest.

Proofs: docs/proofs/conversions.md, theorem 12.4.
"""

# bounds: proved - docs/proofs/roundings.md, 13.11: relative errors, with that of an exponent up to 800; 1e-8 and 1e-9
#    choose the series

from __future__ import annotations

import numpy as np

from ..base.estimate import Estimate, NumberLike
from ..base.numerics import LOG_2, SQRT_LOG_2, SQRT_LOG_2_ABOVE, FloatArray, bennett, jensen_shannon_generator
from ._closed_forms import bounded, randomized_response_capacity_root, validated
from .declaration import BoundOrPublished, Formula, TightOrPublished, conversion
from .vocabulary import EVERY_PAIR, PROVED, TRUE_BELIEF, ZHANG_CHEN, Assumption

_SYMMETRIC_UP_TO = LOG_2  # beyond this xi, e^-xi is above 3 - 2 cosh xi
_SATURATED_FROM = 40.0  # beyond this xi the answer is sqrt(ln 2) to the last bit
_C2_KNOWN = Assumption("C2 and TV known")  # of the conversions that take C2 and the total variation as numbers
# Of the conversions from C1.
_SAME_RELEASE = Assumption("C1 and TV are those of the release distribution that ABP is asked for")


@conversion(
    "mbp", "abp",
    Formula("tight", PROVED, rising="xi belief_gap",
            note="whatever the distribution of the release; attained at belief_gap = 0"),
    Formula("as_published", f"{ZHANG_CHEN}, theorem IV.6, A.8", rising="xi belief_gap",
            domain="xi + belief_gap below 0.9194, beyond that vacuous", note="true; twice the least near 0"),
)
def abp_from_mbp(xi: NumberLike, belief_gap: NumberLike = 0.0, *, form: TightOrPublished = "tight") -> Estimate:
    """Least ABP that follows from xi-MBP, whatever the distribution of the release: sqrt(ln 2 - h(1/(1 + e^x))).

    x = xi + belief_gap. Attained where the gap is 0. As published: sqrt(x (e^x - 1) / 2), which is true, twice the
    least near 0, and beyond x = 0.9194 no better than sqrt(ln 2), which always holds.

    >>> conversions.abp_from_mbp([0.1, 1.0, 10.0]).value
    array([0.03533326, 0.33308268, 0.83225465])
    >>> conversions.abp_from_mbp([0.1, 1.0], form="as_published").value
    array([0.07251583, 0.92689855])
    """
    xi, belief_gap = validated(xi=xi, belief_gap=belief_gap)
    x = xi + belief_gap
    if form == "as_published":
        with np.errstate(over="ignore"):
            value = np.sqrt(0.5) * np.sqrt(x) * np.where(x < 700.0, np.sqrt(np.expm1(x)), np.exp(0.5 * x))
            error = (1e-14 + 2e-16 * x) * value  # the rounding of x, in an exponent
        method = "sqrt(x expm1(x) / 2), x = xi + belief_gap"
        return bounded(value, "1", method, error=np.where(np.isfinite(error), error, 0.0), unrounded=x == 0.0)
    return bounded(
        randomized_response_capacity_root(x), "1", "sqrt(ln 2 - h(1 / (1 + e^x))), x = xi + belief_gap",
        ceiling=SQRT_LOG_2_ABOVE, unrounded=x == 0.0,
    )


@conversion("mbp", "abp_given_secret", Formula(
    "bound", PROVED, rising="xi", assumptions=(TRUE_BELIEF,), note="of order xi^2",
))
def abp_given_secret_from_mbp(xi: NumberLike) -> Estimate:
    """Bound of ABP for a release drawn from the row of the true secret; of order xi^2, far below the general one.

    f^A/pi lies in [a, b] = [max(e^-xi, 3 - 2 cosh xi), 2 cosh xi - 1], so that ABP is at most the root of
    ((1 - a) phi(b) + (b - 1) phi(a)) / (2 (b - a)).

    >>> conversions.abp_given_secret_from_mbp([0.01, 0.1, 1.0]).value
    array([3.53556337e-05, 3.53853286e-03, 2.89631420e-01])
    """
    (xi,) = validated(xi=xi)
    x = np.minimum(xi, _SATURATED_FROM)
    c = 4.0 * np.sinh(0.5 * x) ** 2
    small = x <= _SYMMETRIC_UP_TO
    near = np.where(small, c, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = 0.5 * np.sqrt(jensen_shannon_generator(near) + jensen_shannon_generator(-near))
        symmetric = np.where(near < 1e-8, near * np.sqrt(0.125), root)
        left = -np.expm1(-np.where(small, 1.0, x))
        right = np.where(small, 1.0, c)
        chord = left * jensen_shannon_generator(right) + right * jensen_shannon_generator(-left)
        chord = chord / (2.0 * (left + right))
    value = np.where(small, symmetric, np.where(xi > _SATURATED_FROM, SQRT_LOG_2, np.sqrt(chord)))
    return bounded(
        value, "1", "chord of phi between the ends of f^A / pi", ceiling=SQRT_LOG_2_ABOVE, unrounded=xi == 0.0
    )


@conversion("ldp", "abp", Formula(
    "tight", PROVED, rising="epsilon belief_gap", assumptions=(EVERY_PAIR,),
    note="near 0 half of what follows by way of MBP; attained at belief_gap = 0",
))
def abp_from_ldp(epsilon: NumberLike, belief_gap: NumberLike = 0.0) -> Estimate:
    """Least ABP that follows from epsilon-LDP, whatever prior and distribution of the release.

    sqrt(ln 2 - h(1/(1 + e^x))) with x = epsilon/2 + belief_gap; attained where the gap is 0. By way of MBP x would be
    epsilon, twice as much near 0.

    >>> conversions.abp_from_ldp([0.1, 1.0, 10.0]).value
    array([0.01767491, 0.17406856, 0.80806409])
    """
    epsilon, belief_gap = validated(epsilon=epsilon, belief_gap=belief_gap)
    x = 0.5 * epsilon + belief_gap
    return bounded(
        randomized_response_capacity_root(x), "1", "sqrt(ln 2 - h(1 / (1 + e^x))), x = epsilon / 2 + belief_gap",
        ceiling=SQRT_LOG_2_ABOVE, unrounded=x == 0.0,
    )


@conversion(
    "trials", "frequency_failure",
    Formula("bound", "Hoeffding, Probability inequalities for sums of bounded random variables (1963); " + PROVED,
            falling="relative_error frequency trials",
            note="attacks on one model are independent only given that model: over models count models"),
    Formula("as_published", f"{ZHANG_CHEN}, lemma A.10", falling="relative_error frequency trials", holds=False,
            note="false for a mean over models, where trials counts attacks: all attacks on a model share it; given "
            "one model it is true"),
)
def frequency_failure_from_trials(
    relative_error: NumberLike, frequency: NumberLike, trials: NumberLike, *, form: BoundOrPublished = "bound"
) -> Estimate:
    """Bound of the chance that a frequency from independent trials errs by more than ``relative_error`` of it.

    e^(-n d((1 + e) kappa || kappa)) + e^(-n d((1 - e) kappa || kappa)), n = ``trials``, the first where
    (1 + e) kappa <= 1. For a mean over models n is their number, however many attacks each of them had.

    As published: 2 e^(-e^2 kappa T / 3), where T = ``trials`` counts attacks: FALSE for a mean over models. Four models
    that are hit always or never, each with probability 1/2, have a frequency that is off by half of it or more with
    probability 0.625, after a million attacks each as after one.

    >>> conversions.frequency_failure_from_trials(0.5, 0.5, [10, 100]).value
    array([5.40655396e-01, 4.16807436e-06])
    >>> conversions.frequency_failure_from_trials(0.5, 0.5, 1000, form="as_published").value
    1.60...e-18
    """
    e, frequency, trials = validated(relative_error=relative_error, frequency=frequency, trials=trials)
    if form == "as_published":
        size = e * e * frequency * trials / 3.0
        value = 2.0 * np.exp(-size)
        slack = (1e-14 + 1e-14 * size.clip(max=800.0)) * value
        return bounded(value, "probability", "2 e^(-e^2 kappa T / 3)", error=slack, ceiling=1.0)
    drop = e * frequency / np.where(frequency == 1.0, 1.0, 1.0 - frequency)
    high, low = (
        trials * (frequency * bennett(sign * e) + (1.0 - frequency) * bennett(np.maximum(-sign * drop, -1.0)))
        for sign in (1.0, -1.0)
    )
    over = (drop <= 1.0) & (frequency < 1.0)
    under = (frequency < 1.0) | (e == 0.0)
    terms = np.where(over, np.exp(-high), 0.0), np.where(under, np.exp(-low), 0.0)
    error = sum((1e-14 + 2e-14 * np.minimum(size, 800.0)) * term for size, term in zip((high, low), terms, strict=True))
    return bounded(sum(terms), "probability", "Chernoff's bound on both sides", error=error, ceiling=1.0)


@conversion(
    "frequency_error", "c1_error",
    Formula("tight", PROVED, rising="relative_error", note="also for estimates that do not sum to 1"),
    Formula("as_published", f"{ZHANG_CHEN}, theorem A.11, equation (34)", rising="relative_error",
            domain="relative_error below 0.287, beyond that vacuous",
            note="true; of the order of the root of relative_error"),
)
def c1_error_from_frequency_error(relative_error: NumberLike, *, form: TightOrPublished = "tight") -> Estimate:
    """Largest error of C1 when every frequency is right to e = ``relative_error``: sqrt(phi(1 - e) / 2).

    Attained, if estimated frequencies need not sum to 1. About e / sqrt(8). As published:
    sqrt((1 + e) ln((1 + e)/(1 - e)) / 2 + (e + ln(1/(1 - e))) / 2), inf at 1; true, and vacuous from 0.287 on.

    >>> conversions.c1_error_from_frequency_error([0.01, 0.1, 1.0]).value
    array([0.00354441, 0.03628219, 0.58870501])
    >>> conversions.c1_error_from_frequency_error(0.01, form="as_published").value
    0.14186438...
    """
    (e,) = validated(relative_error=relative_error)
    if form == "as_published":
        return bounded(_published_c1_error(e), "1", "equation (34)", unrounded=e == 0.0)
    return bounded(_c1_error(e), "1", "sqrt(phi(1 - e) / 2)", unrounded=e == 0.0)


@conversion(
    "frequency_error", "leakage_error",
    Formula("tight", PROVED, rising="relative_error", assumptions=(_C2_KNOWN,),
            note="of the expression 2 C1 - C2 TV, which is not the leakage"),
    Formula("as_published", f"{ZHANG_CHEN}, theorem A.12, equation (35)", rising="relative_error",
            assumptions=(_C2_KNOWN,),
            note="false of the leakage; of 2 C1 - C2 TV the factor is 2 and the number true, being that loose",
            holds=False),
)
def leakage_error_from_frequency_error(relative_error: NumberLike, *, form: TightOrPublished = "tight") -> Estimate:
    """Largest error of the estimate 2 C1 - C2 TV for known C2 and TV: twice that of C1.

    Attained as that of C1. It bounds the error of that expression; the leakage itself is in the interval of
    ``abp_from_c1``.

    As published: 3/2 times the published error of C1, as the error of the leakage: FALSE, the leakage is not estimated.
    What is estimated is 2 C1 - C2 TV. Its error is 2 times that of C1, which the printed number exceeds only because
    the printed error of C1 is more than four times too large.

    >>> conversions.leakage_error_from_frequency_error(0.1).value
    0.07256438...
    >>> conversions.leakage_error_from_frequency_error(0.01, form="as_published").value
    0.21279658...
    """
    (e,) = validated(relative_error=relative_error)
    if form == "as_published":
        return bounded(1.5 * _published_c1_error(e), "1", "equation (35)", unrounded=e == 0.0)
    return bounded(2.0 * _c1_error(e), "1", "2 sqrt(phi(1 - e) / 2)", unrounded=e == 0.0)


@conversion("mbp", "c2", Formula(
    "tight", f"{ZHANG_CHEN}, equation (33)", rising="xi",
    note="a definition; xi is over all releases: assumption A.1, one of them the largest at every secret, forces zero "
    "leakage",
))
def c2_from_mbp(xi: NumberLike) -> Estimate:
    """C2 = (e^(2 xi) - 1) / 2.

    >>> conversions.c2_from_mbp(0.5).value
    0.85914091...
    """
    (xi,) = validated(xi=xi)
    with np.errstate(over="ignore"):
        value = 0.5 * np.expm1(2.0 * xi)
    return bounded(value, "1", "expm1(2 xi) / 2", unrounded=(xi == 0.0) | np.isinf(xi))


@conversion(
    "c1", "abp",
    Formula("bound", PROVED, rising="c1", widening="c2 total_variation", assumptions=(_SAME_RELEASE,),
            note="an interval, lower and upper"),
    Formula("as_published", f"{ZHANG_CHEN}, section F of the appendix", rising="c1", falling="c2 total_variation",
            assumptions=(_SAME_RELEASE,), note="2 C1 - C2 TV is no upper bound: C1 = 0 makes it negative",
            holds=False),
)
def abp_from_c1(
    c1: NumberLike, c2: NumberLike, total_variation: NumberLike, *, form: BoundOrPublished = "bound"
) -> Estimate:
    """Interval of the leakage (ABP) with protection: C1 - C2 TV to C1 + C2 TV, within 0 and sqrt(ln 2).

    As published: 2 C1 - C2 TV, FALSE as an upper bound; C1 = 0 makes it negative, which is shown here as 0.

    >>> e = conversions.abp_from_c1(0.3, 0.5, 0.2)
    >>> round(e.lower, 12), e.value, round(e.upper, 12)
    (0.2, 0.3, 0.4)
    >>> round(conversions.abp_from_c1(0.3, 0.5, 0.2, form="as_published").value, 12)
    0.5
    """
    c1, c2, total_variation = validated(c1=c1, c2=c2, total_variation=total_variation)
    with np.errstate(invalid="ignore", over="ignore"):
        radius = np.where(total_variation == 0.0, 0.0, c2 * total_variation)
    if form == "as_published":
        return bounded(2.0 * c1 - radius, "1", "2 C1 - C2 TV", error=1e-15 * (2.0 * c1 + np.minimum(radius, 2.0)))
    return bounded(
        np.minimum(c1, SQRT_LOG_2_ABOVE), "1", "triangle inequality: C1 - C2 TV to C1 + C2 TV", kind="certified",
        ceiling=SQRT_LOG_2_ABOVE, error=radius * (1.0 + 1e-14) + 1e-15,
    )


def _c1_error(e: FloatArray) -> FloatArray:
    """sqrt(phi(1 - e) / 2), two terms of its series where phi might be subnormal."""
    far = np.sqrt(0.5 * jensen_shannon_generator(-np.maximum(e, 1e-9)))
    return np.asarray(np.where(e < 1e-9, e * np.sqrt(0.125) * (1.0 + 0.25 * e), far))


def _published_c1_error(e: FloatArray) -> FloatArray:
    """Equation (34)."""
    with np.errstate(divide="ignore"):
        ratio = np.log1p(e) - np.log1p(-e)
        return np.asarray(np.sqrt(0.5 * ((1.0 + e) * ratio + e - np.log1p(-e))))
