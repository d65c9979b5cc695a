"""Mutual information of a set with its secret: I = E_0 phi(c) - E_0 phi(S), phi(s) = s log s - s + 1.

Notation: ``parameters``. Since phi'' = 1/s, and E_0 S = 1,

    E_0 phi(S) = integral over t > 0 of F(t) dt,   F(t) = e^-t (M(t) - 1) / t^2,   M(t) = E_0 e^(-t (S - 1)),

where M - 1 >= 0 is formed from positive terms alone, so that weak channels keep their digits. The trapezoidal rule in
x = log t with step h: each s contributes g_s(t) = integral from 1 to s of (s - u) e^(-t u) du, which is analytic for
Re t > 0, and at the angle y the integral of |g_s| over the ray is at most phi(s) / cos y. Hence the rule is off by at
most 2 / (cos d (e^(2 pi d / h) - 1)) of the answer for each d < pi / 2. F falls, from F(0) = Var(S) / 2: the terms
before t_0 sum to between F(t_0) and F(0), times h t_0 / (e^h - 1); those beyond t_1 to at most e^-t_1 M(t_1) / t_1
times h / (e^h - 1).

Laplace transforms: x = t D, W = sum of pi_j over the set, S = b + D W, E_0 W = q; L(t) = log E_0 e^(-tS). If
log M = L + t is above 1, E_0 e^(-tS) is computed itself: logarithms of numbers below 1, all of one sign;
f(x) = -log E e^(-x W) is concave with f(0) = 0, so that x f' <= f: relative errors of q and D enter by at most their
multiple of |L|. Else M - 1 comes from positive terms, kappa(z) = e^z - 1 - z: of a bit
    m_j - 1 = q kappa(-(1 - q) x pi_j) + (1 - q) kappa(q x pi_j);
of sets, with G_nr + 1 the mean of e^(-x sum (pi_j - mu_n)) over the sets of r among the first n secrets, in increasing
order of pi, mu_n the mean of their pi, y = x (pi_n - mu_(n-1)), z = r / n:
    G_nr = (1 - z) kappa(z y) + z kappa(-(1 - z) y) + (1 - z) e^(z y) G_(n-1)r + z e^(-(1 - z) y) G_(n-1)(r-1).
"""

# bounds: tested by enclosures/test_sets_notions - rounding of nodes, of transforms and of the sum, by the notes at the
#    head

from __future__ import annotations

import math

import numpy as np

from ....base.numerics import UNIT_ROUNDOFF as U
from ....base.numerics import FloatArray
from ....base.quadrature import strip_divisor
from ..channel_with_prior import Bracket
from .parameters import SetParameters

__all__ = ["STEP", "TRAPEZOID", "log_transform", "mutual_information"]

# bound: proved - the trapezoidal rule in log t is off by at most TRAPEZOID of the answer, for any d < pi / 2
STEP = 0.22  # of the trapezoidal rule: TRAPEZOID is then below 1e-17
_ANGLE_GAP = STEP / (2 * math.pi)  # pi / 2 - d, at which the bound of the error is least
# Bound of the relative error of the trapezoidal rule.
TRAPEZOID = 2 / math.sin(_ANGLE_GAP) / strip_divisor(0.5 * math.pi - _ANGLE_GAP, STEP)
# bound: none - a times the first node t_0; what lies before is enclosed
_FIRST_NODE = 3e-9
# bound: none - the integral ends where e^-t is e^-39, or 1e-17, of the answer; what lies beyond is bounded
_LAST_EXPONENT = 39.0
# bound: tested by enclosures/test_sets_notions - underflow in the integral
_UNDERFLOW_ERROR = 1e-305
_BLOCK_TERMS = 2**18  # terms of nodes times secrets that are held at a time: 2 MiB
_KAPPA_COEFFICIENTS = [1.0 / math.factorial(n) for n in range(2, 20)]  # of kappa(z) / z^2, enough for |z| < 0.5


def mutual_information(sets: SetParameters) -> Bracket:
    """Mutual information with its bounds."""
    (of_secret, error), (of_mixture, more_error) = _mean_phi(sets.single_secret), _mean_phi(sets)
    value = max(0.0, of_secret - of_mixture)
    error = error + more_error + 2 * U * of_secret + _UNDERFLOW_ERROR
    return Bracket(value, max(0.0, value - error), value + error, "certified", "integral of products over bits")


def _mean_phi(sets: SetParameters) -> tuple[float, float]:
    """E_0 phi(S) and a bound on its error."""
    start = 0.5 * _variance(sets)  # F(0)
    if start < 1e-290:  # phi(s) <= (s - 1)^2; S is constant where a selection is symmetric in its secrets
        return start, start + _UNDERFLOW_ERROR
    scale = math.log(start) - math.log(sets.high)  # at most the log of the answer
    first = math.log(_FIRST_NODE / sets.high)
    last = _LAST_EXPONENT - scale
    if sets.low > 0:
        last = min(last, math.log(_LAST_EXPONENT + 6 - min(scale, 0.0)) - math.log(sets.low))
    nodes = STEP * np.arange(math.floor(first / STEP), math.ceil(last / STEP) + 1)
    t = np.exp(nodes)
    f_values, relative_error, last_transform = _centred_transform(sets, t)
    terms = STEP * t * f_values
    share = STEP / math.expm1(STEP)  # of what lies before the first node or beyond the last
    most = start * (1 + 8 * sets.relative_error)
    before = share * float(t[0]) * 0.5 * (most + float(f_values[0]))
    first_width = 0.5 * max(0.0, most - float(f_values[0]))
    before_error = share * float(t[0]) * (first_width + float(f_values[0] * relative_error[0]))
    value = math.fsum(terms.tolist()) + before
    node_error = 4 * U * (1 + np.abs(nodes)) * 3  # nodes are rounded, and d log(t F) / dx is at most 3 + t
    error = math.fsum((terms * (relative_error + node_error)).tolist()) + before_error
    error += share * last_transform / float(t[-1])
    return value, (error + TRAPEZOID * value) * (1 + 1e-9) + _UNDERFLOW_ERROR


def _variance(sets: SetParameters) -> float:
    """Of S under the reference."""
    of_secret = sets.difference**2 * sets.inside * sets.outside
    if sets.size is None:
        return of_secret * sets.prior_square_sum
    gaps = np.array(_excess_over_mean(_prior_of_each_secret(sets))) / sets.total
    n = np.arange(sets.secrets)
    spread = float(np.sum(n / (n + 1.0) * gaps**2))  # of the prior about its mean, secret by secret
    return of_secret * spread * sets.secrets / (sets.secrets - 1)


def _centred_transform(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """F(t) = e^-t (M - 1) / t^2, its relative error, and e^-t M at the last t rounded up."""
    log, error = log_transform(sets, t)
    log_m = log + t
    with np.errstate(under="ignore", over="ignore"):
        result = np.exp(log) * -np.expm1(-np.maximum(log_m, 1.0)) / t / t
        relative_error = 2 * error + 4 * U * t * np.exp(-np.maximum(log_m, 1.0)) + 16 * U
        relative_error += 16 * U * (1 + np.abs(np.log(t))) * (1 + np.abs(np.where(np.isfinite(log), log, 0.0)))
        is_small = log_m <= 1.0
        if is_small.any():
            small_t = t[is_small]
            transform = _transform_less_1_of_bits if sets.size is None else _transform_less_1_of_sets
            change, more_error = transform(sets, small_t)
            result[is_small] = np.exp(-small_t) * change / small_t / small_t
            relative_error[is_small] = more_error + 16 * U * (2 + np.abs(np.log(small_t))) * (1 + small_t)
    return result, relative_error, math.exp(min(0.0, float(log[-1] + error[-1])))


def log_transform(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """L(t) and its absolute error."""
    if sets.size is not None:
        return _log_transform_of_sets(sets, t)
    result = np.empty(t.size)
    rows = max(1, _BLOCK_TERMS // sets.prior.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * sets.difference, sets.prior)
        drop = sets.inside * -np.expm1(-x)
        parts = np.where(drop < 0.5, np.log1p(-np.minimum(drop, 0.5)),
                         np.log(sets.outside + sets.inside * np.exp(-x)))  # fmt: skip
        result[start : start + rows] = (sets.counts * parts).sum(axis=1)
    result -= t * sets.low
    return result, np.abs(result) * (6 * sets.relative_error + (40 + math.log2(sets.prior.size)) * U)


def _transform_less_1_of_bits(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M - 1 and its relative error, for M <= e."""
    log, largest_shift = np.empty(t.size), np.empty(t.size)
    rows = max(1, _BLOCK_TERMS // sets.prior.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * sets.difference, sets.prior)
        parts = sets.inside * _kappa(-sets.outside * x) + sets.outside * _kappa(sets.inside * x)
        log[start : start + rows] = (sets.counts * np.log1p(parts)).sum(axis=1)
        largest_shift[start : start + rows] = sets.inside * x.max(axis=1)
    rounding = (16 * U + 4 * sets.relative_error) * (2 + largest_shift) + (24 + math.log2(sets.prior.size)) * U
    return np.expm1(log), 2 * rounding


def _log_transform_of_sets(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    assert sets.size is not None
    x = t * (sets.difference / sets.total)
    means = np.zeros((sets.size + 1, t.size))
    means[0] = 1.0
    with np.errstate(under="ignore", divide="ignore"):
        for n, value in enumerate(_prior_of_each_secret(sets), 1):
            low, top = max(1, sets.size - sets.secrets + n), min(sets.size, n) + 1
            share = np.arange(low, top)[:, None] / n
            means[low:top] = (1 - share) * means[low:top] + share * (np.exp(-x * value) * means[low - 1 : top - 1])
        result = np.log(means[-1]) - t * sets.low
    size = np.where(np.isfinite(result), np.abs(result), 0.0)
    return result, size * (6 * sets.relative_error + 40 * U) + 8 * U * sets.secrets


def _transform_less_1_of_sets(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    assert sets.size is not None
    x = t * (sets.difference / sets.total)
    change, largest_shift = np.zeros((sets.size + 1, t.size)), np.zeros(t.size)
    with np.errstate(over="ignore", invalid="ignore"):
        for n, gap in enumerate(_excess_over_mean(_prior_of_each_secret(sets)), 1):
            y = x * gap
            largest_shift += np.abs(y)
            low, top = max(1, sets.size - sets.secrets + n), min(sets.size, n) + 1
            share = np.arange(low, top)[:, None] / n
            up, down = share * y, (share - 1) * y
            new = (1 - share) * (_kappa(up) + np.exp(up) * change[low:top])
            change[low:top] = new + share * (_kappa(down) + np.exp(down) * change[low - 1 : top - 1])
    overflown = ~np.isfinite(change[-1])  # overflow: then the only bound is 0 <= M - 1 <= e - 1
    rounding = (32 * U + 4 * sets.relative_error) * (sets.secrets + 2 + 2 * largest_shift)
    return np.where(overflown, 1.0, change[-1]), np.where(overflown, 1.8, rounding)


def _prior_of_each_secret(sets: SetParameters) -> list[float]:
    """The prior of every secret, in increasing order."""
    positive: list[float] = np.repeat(sets.prior, sets.counts.astype(np.int64))[::-1].tolist()
    return [0.0] * (sets.secrets - len(positive)) + positive


def _excess_over_mean(values: list[float]) -> list[float]:
    """Each of them less the mean of those before, rounded once."""
    result, total = [0.0], 0
    for n, value in enumerate(values):
        mantissa, exponent = math.frexp(value)
        integer = int(math.ldexp(mantissa, 53)) << (exponent + 1100)
        if n:
            result.append((n * integer - total) / (n << 1153))
        total += integer
    return result


def _kappa(z: FloatArray) -> FloatArray:
    """e^z - 1 - z, right to 8 u."""
    most = float(np.max(np.abs(z), initial=0.0))
    inner = z if most < 0.5 else np.where(np.abs(z) < 0.5, z, 0.0)
    terms, largest_shift = 2, min(most, 0.5)
    while terms < len(_KAPPA_COEFFICIENTS) and largest_shift ** (terms - 1) * _KAPPA_COEFFICIENTS[terms - 1] > 1e-18:
        terms += 1
    result = np.full_like(inner, _KAPPA_COEFFICIENTS[terms - 1])
    for coefficient in _KAPPA_COEFFICIENTS[terms - 2 :: -1]:
        result *= inner
        result += coefficient
    result *= inner * inner
    return result if most < 0.5 else np.where(np.abs(z) < 0.5, result, np.expm1(z) - z)
