"""Channels that release a set of secrets, under priors of so many distinct probabilities that classes of equal releases
would be too many: integrals of products over bits, and sums over the secrets in order of their prior.

Notation: a unary encoding or a subset selection is a random set whose reference distribution, which E_0 refers to, does
not depend on the secret. Under the reference, a unary encoding sets every bit with probability q, and a subset
selection draws any set of ``size`` of the k secrets, q = size / k. The likelihood of secret d over the reference is
c_d = a if d is in the set, b if not: a = 1 / (q + (1 - q) e^-epsilon), b = a e^-epsilon, D = a - b; hence
q a + (1 - q) b = 1. With S = sum_j pi_j c_j, E_0 S = 1, the distribution of the release is S times the reference, and
the posterior of d is pi_d c_d / S.

Best guess: the likeliest secret in the set, or of all. With secrets in decreasing order of their prior,
rho_i = pi_i / pi_1, and P_i the chance under the reference that the first secret in the set is i, the best guess is
right with probability E_0 max_d pi_d c_d, which is pi_1 if no release changes it; its gain, in units of pi_1, is the
sum over i > 1 of P_i (a rho_i - b)^+.

Mutual information: I = E_0 phi(c) - E_0 phi(S), phi(s) = s log s - s + 1.

Since phi'' = 1/s, and E_0 S = 1,

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
multiple of |L|. Else M - 1 comes from positive terms, kappa(z) = e^z - 1 - z (``exp_excess``): of a bit
    m_j - 1 = q kappa(-(1 - q) x pi_j) + (1 - q) kappa(q x pi_j);
of sets, with G_nr + 1 the mean of e^(-x sum (pi_j - mu_n)) over the sets of r among the first n secrets, in increasing
order of pi, mu_n the mean of their pi, y = x (pi_n - mu_(n-1)), z = r / n:
    G_nr = (1 - z) kappa(z y) + z kappa(-(1 - z) y) + (1 - z) e^(z y) G_(n-1)r + z e^(-(1 - z) y) G_(n-1)(r-1).

Average Bayesian privacy of independent bits: the matrix of expected posteriors, one integral for each pair of
atoms. With r_d = c_d / S, E the mean under the distribution of the release. The posterior of d expected
under d0 is pi_d (1 + g), and since E_0 c_d = 1, g = E (r_d0 - 1)(r_d - 1) = integral over t > 0 of K(t) dt,
K(t) = E_0[(c_d0 - S)(c_d - S) e^(-tS)]. Under the density proportional to e^(-tS) the bits are independent, 1 with
probability q - u_j, of variance v_j; with ubar = sum pi u, V = sum pi^2 v and T = E_0 e^(-tS),

    K = T D^2 [(u_d0 - ubar)(u_d - ubar) - pi_d0 v_d0 - pi_d v_d + V + (v_d where d = d0)]:

one product of matrices for all pairs. At an angle y of t the integral of |K| is at most sqrt(g_d0d0 g_dd) / cos y by
Cauchy and Schwarz, which bounds the error of the trapezoidal rule in log t. K_dd falls in t, K
is at most sqrt(K_d0d0 K_dd): the terms before t_0 sum to at most h t_0 / (e^h - 1) times that at 0; and c_d differs
from S only where some bit is 1 and S >= b + D min pi = l: those beyond t_1 >= 1 / l sum to at most D^2 e^(-l t_1) / l.
"""

# bounds: proved - docs/proofs/notions.md, 14.9 to 14.12: rounding of q, of D and of their logarithms, of sums over
#    guesses, of nodes, transforms, products of matrices and sums; the rest chooses another method

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF as U
from ...base.numerics import FloatArray, exp_excess
from ...base.quadrature_rules import strip_divisor
from ...channels.type_classes import distinct_probabilities
from ...kernels import _channel_blocks, _matrix_product
from ...mechanisms import SubsetSelection, UnaryEncoding
from .channel_with_prior import Bracket, ChannelWithPrior, QuantityRequest
from .type_class_quantities import BEST_GUESS

_MOST_DISTINCT = 2**21  # distinct prior probabilities: 16 MiB a vector
_MOST_STEPS = 2**20  # steps of a recurrence over secrets and sizes: a second or so
MOST_PAIRED = 2048  # distinct prior probabilities, all pairs of which are held: 32 MiB a matrix
_METHOD = "secrets in order of their prior"  # ``method`` of a Bracket
# bound: proved - the trapezoidal rule in log t is off by at most _TRAPEZOID of the answer, for any d < pi / 2
_STEP = 0.22  # of the trapezoidal rule: _TRAPEZOID is then below 1e-17
_ANGLE_GAP = _STEP / (2 * math.pi)  # pi / 2 - d, at which the bound of the error is least
# Bound of the relative error of the trapezoidal rule.
_TRAPEZOID = 2 / math.sin(_ANGLE_GAP) / strip_divisor(0.5 * math.pi - _ANGLE_GAP, _STEP)
# bound: none - a times the first node t_0; what lies before is enclosed
_FIRST_NODE = 3e-9
# bound: none - the integral ends where e^-t is e^-39, or 1e-17, of the answer; what lies beyond is bounded
_LAST_EXPONENT = 39.0
# bound: proved - docs/proofs/notions.md, 14.11: underflow in the integral
_UNDERFLOW_ERROR = 1e-305
_BLOCK_TERMS = 2**18  # terms of nodes times secrets that are held at a time: 2 MiB
_LAST_EXPONENT_OF_PAIRS = 44.0  # what lies outside the nodes of pairs is about e^-44, or 1e-19, of the answer


class SetParameters(NamedTuple):
    """The few numbers of the channel, with the distinct prior probabilities.

    ``size`` is None for bits that are independent under the reference. ``prior`` holds the distinct positive
    probabilities, in decreasing order, to be divided by ``total``, and ``counts`` how many secrets have each; for
    subset selections they are as the caller passed them, so that their differences are exact. ``inside`` and
    ``outside`` are q and 1 - q, ``high``, ``low`` and ``difference`` are a, b and D; ``relative_error`` bounds the
    error of all five.
    """

    secrets: int
    size: int | None
    prior: FloatArray
    counts: FloatArray
    inside: float
    outside: float
    epsilon: float
    high: float
    low: float
    difference: float
    relative_error: float
    total: float

    @property
    def prior_square_sum(self) -> float:
        """Sum of the squares of the prior."""
        return float(np.sum(self.counts * self.prior**2))


def set_parameters(model: ChannelWithPrior) -> SetParameters | None:
    """None for other channels, for those without noise or without information, and for those that are too large."""
    channel, prior = model
    if isinstance(channel, UnaryEncoding):
        _, logit, epsilon = channel._canonical_logits()
        if not math.isfinite(logit):
            return None
        inside, outside = _expit(logit), _expit(-logit)
        size = None
    elif isinstance(channel, SubsetSelection):
        size = channel.size
        if channel.k == 1 or channel.k * size > _MOST_STEPS:
            return None
        inside, outside, epsilon = size / channel.k, (channel.k - size) / channel.k, channel.epsilon
    else:
        return None
    distinct = distinct_probabilities(prior, channel.inputs)
    positive = distinct.value > 0
    value, counts = distinct.value[positive][::-1], np.array(distinct.counts, dtype=np.float64)[positive][::-1]
    if value.size > _MOST_DISTINCT or min(inside, outside) < 1e-150 or epsilon <= 1e-120:
        return None
    total = float(np.sum(counts * value, dtype=np.longdouble))
    if size is None:
        value, total = value / total, 1.0
    high = 1.0 / (inside + outside * math.exp(-epsilon))
    relative_error = 16 * U * (1.0 - math.log(inside))
    if size is None:  # probabilities, and perhaps epsilon, are computed
        relative_error = 16 * U * (3.0 - math.log(inside * outside))
        relative_error += 6 * U * epsilon if epsilon < math.inf else 0.0
    return SetParameters(
        channel.inputs, size, value, counts, inside, outside, epsilon, high, high * math.exp(-epsilon),
        -high * math.expm1(-epsilon), relative_error, total,
    )


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(max(x, -745.0)) / (1.0 + math.exp(max(x, -745.0)))


def brackets(request: QuantityRequest) -> dict[str, Bracket]:
    """Best guess, information and leakage of channels that release sets."""
    result: dict[str, Bracket] = {}
    known = {"cd_lmip", "maximal_leakage", *BEST_GUESS} & set(request.names)
    sets = set_parameters(request.model) if known else None
    if sets is None:
        return result
    if "cd_lmip" in known:
        result["cd_lmip"] = _mutual_information(sets)
    if not known.isdisjoint(BEST_GUESS):
        result |= dict(zip(BEST_GUESS, _best_guess(sets), strict=True))
    if "maximal_leakage" in known:
        result["maximal_leakage"] = _maximal_leakage(sets)
    return result


def _best_guess(sets: SetParameters) -> tuple[Bracket, Bracket, Bracket]:
    """Chance of the best guess after the release and before it, and the log of their ratio."""
    pi = sets.prior
    rho = pi / pi[0]
    log_rho = np.where(rho < 0.5, np.log(rho), np.log1p(-np.minimum((pi[0] - pi) / pi[0], 0.5)))
    level = sets.epsilon + log_rho  # log(a rho / b), right to 24 u epsilon where it is positive
    near = level < 1.0
    gains = np.where(near, sets.low * np.expm1(np.clip(level, 0.0, 1.0)), sets.high * rho - sets.low)
    level_error = 24 * U * np.minimum(sets.epsilon, 1e3)
    gain_error = np.where(near & (level > -2 * level_error), sets.high * rho * level_error, 0.0)
    gain_error += np.where(rho < 1e-300, sets.high * 1e-323, 0.0)  # rho may be subnormal
    first, first_error = _first_in_set(sets)
    gain, relative_error = math.fsum((first * gains).tolist()), first_error + 3 * sets.relative_error + 32 * U
    error = math.fsum((first * (gains * relative_error + gain_error)).tolist())
    least, most = max(0.0, gain - error), gain + error
    before, rounding = float(pi[0]) / sets.total, 16 * U
    after_bounds = before * (1 + least) * (1 - rounding), min(1.0, before * (1 + most) * (1 + rounding))
    return (
        Bracket(before * (1 + gain), *after_bounds, "exact", _METHOD),
        Bracket(before, before * (1 - rounding), min(1.0, before * (1 + rounding)), "exact", _METHOD),
        Bracket(math.log1p(gain), math.log1p(least) * (1 - rounding), math.log1p(most) * (1 + rounding), "exact",
                _METHOD),
    )


def _maximal_leakage(sets: SetParameters) -> Bracket:
    """Logarithm of the sum of the largest likelihoods of the secrets of positive prior probability."""
    support = float(sets.counts.sum())
    if sets.size is None:
        covered, error = -math.expm1((support - 1) * _log_outside(sets)) * sets.outside, 8 * U
    else:  # the chance that the set holds some of these secrets, less that of a given one
        others = np.arange(1.0, min(support, sets.secrets - sets.size + 1.0))
        can_miss = support <= sets.secrets - sets.size
        log_miss = math.fsum(np.log1p(-sets.size / (sets.secrets - others)).tolist()) if can_miss else -math.inf
        covered, error = sets.outside * -math.expm1(log_miss), 16 * U
    error += 4 * sets.relative_error + 32 * U
    value = math.log1p(sets.difference * covered)
    return Bracket(value, value * (1 - error), value * (1 + error), "exact", _METHOD)


def _first_in_set(sets: SetParameters) -> tuple[FloatArray, FloatArray]:
    """Chance that the first secret in the set has each prior probability, secret 1 left out; its relative error."""
    counts = sets.counts.copy()
    before = np.concatenate([[0.0], np.cumsum(counts)])
    if sets.size is None:
        log_outside, start = _log_outside(sets), np.maximum(before[:-1], 1.0)
        with np.errstate(under="ignore"):
            chance = np.exp(start * log_outside) * -np.expm1((before[1:] - start) * log_outside)
        return chance, (4 * sets.relative_error + 16 * U) * (2 + np.minimum(start * -log_outside, 1e4))
    k, size = sets.secrets, sets.size
    index = np.arange(k)
    with np.errstate(divide="ignore"):
        log_miss = np.concatenate([[0.0], np.cumsum(np.log1p(-np.minimum(1.0, size / (k - index))))])[:-1]
        each = np.exp(log_miss) * np.minimum(1.0, size / (k - index))
    each[k - size + 1 :] = 0.0
    each[0] = 0.0
    first = before[:-1].astype(np.int64)
    chance = np.add.reduceat(each[: int(before[-1])], first)
    return chance, 8 * U * (2 * k + 4) * (2 + np.minimum(-log_miss[first], 1e3))


def _log_outside(sets: SetParameters) -> float:
    """Logarithm of the chance that a secret is not in the set."""
    return math.log1p(-sets.inside) if sets.inside < 0.5 else math.log(sets.outside)


def _mutual_information(sets: SetParameters) -> Bracket:
    """Mutual information with its bounds."""
    # the first under a prior that is sure of one secret, of which S is the likelihood
    single = sets._replace(secrets=1, size=None, prior=np.ones(1), counts=np.ones(1), total=1.0)
    (of_secret, error), (of_mixture, more_error) = _mean_phi(single), _mean_phi(sets)
    value, error = max(0.0, of_secret - of_mixture), error + more_error + 2 * U * of_secret + _UNDERFLOW_ERROR
    return Bracket(value, max(0.0, value - error), value + error, "certified", "integral of products over bits")


def _mean_phi(sets: SetParameters) -> tuple[float, float]:
    """E_0 phi(S) and a bound on its error."""
    start = 0.5 * _variance(sets)  # F(0)
    if start < 1e-290:  # phi(s) <= (s - 1)^2; S is constant where a selection is symmetric in its secrets
        return start, start * (1 + 16 * sets.relative_error) + _UNDERFLOW_ERROR
    scale = math.log(start) - math.log(sets.high)  # at most the log of the answer
    first, last = math.log(_FIRST_NODE / sets.high), _LAST_EXPONENT - scale
    if sets.low > 0:
        last = min(last, math.log(_LAST_EXPONENT + 6 - min(scale, 0.0)) - math.log(sets.low))
    nodes = _STEP * np.arange(math.floor(first / _STEP), math.ceil(last / _STEP) + 1)
    t = np.exp(nodes)
    f_values, relative_error, last_transform = _centred_transform(sets, t)
    terms = _STEP * t * f_values
    share = _STEP / math.expm1(_STEP)  # of what lies before the first node or beyond the last
    most = start * (1 + 8 * sets.relative_error)
    before = share * float(t[0]) * 0.5 * (most + float(f_values[0]))
    first_width = 0.5 * max(0.0, most - float(f_values[0]))
    before_error = share * float(t[0]) * (first_width + float(f_values[0] * relative_error[0]))
    value = math.fsum(terms.tolist()) + before
    node_error = 4 * U * (1 + np.abs(nodes)) * 3  # nodes are rounded, and d log(t F) / dx is at most 3 + t
    error = math.fsum((terms * (relative_error + node_error)).tolist()) + before_error
    error += share * last_transform / float(t[-1])
    return value, (error + _TRAPEZOID * value) * (1 + 1e-9) + _UNDERFLOW_ERROR


def _variance(sets: SetParameters) -> float:
    """Of S under the reference."""
    of_secret = sets.difference**2 * sets.inside * sets.outside
    if sets.size is None:
        return of_secret * sets.prior_square_sum
    gaps, n = np.array(_excess_over_mean(_prior_of_each_secret(sets))) / sets.total, np.arange(sets.secrets)
    spread = float(np.sum(n / (n + 1.0) * gaps**2))  # of the prior about its mean, secret by secret
    return of_secret * spread * sets.secrets / (sets.secrets - 1)


def _centred_transform(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """F(t) = e^-t (M - 1) / t^2, its relative error, and e^-t M at the last t rounded up."""
    log, error = _log_transform(sets, t)
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


def _log_transform(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """L(t) and its absolute error."""
    if sets.size is not None:
        return _log_transform_of_sets(sets, t)
    result, rows = np.empty(t.size), max(1, _BLOCK_TERMS // sets.prior.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * sets.difference, sets.prior)
        drop = sets.inside * -np.expm1(-x)
        parts = np.where(drop < 0.5, np.log1p(-np.minimum(drop, 0.5)), np.log(sets.outside + sets.inside * np.exp(-x)))
        result[start : start + rows] = (sets.counts * parts).sum(axis=1)
    result -= t * sets.low
    return result, np.abs(result) * (6 * sets.relative_error + (40 + math.log2(sets.prior.size)) * U)


def _transform_less_1_of_bits(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M - 1 and its relative error, for M <= e."""
    log, largest_shift = np.empty(t.size), np.empty(t.size)
    rows = max(1, _BLOCK_TERMS // sets.prior.size)
    for start in range(0, t.size, rows):
        x = np.multiply.outer(t[start : start + rows] * sets.difference, sets.prior)
        parts = sets.inside * exp_excess(-sets.outside * x) + sets.outside * exp_excess(sets.inside * x)
        log[start : start + rows] = (sets.counts * np.log1p(parts)).sum(axis=1)
        largest_shift[start : start + rows] = sets.inside * x.max(axis=1)
    rounding = (16 * U + 4 * sets.relative_error) * (2 + largest_shift) + (24 + math.log2(sets.prior.size)) * U
    return np.expm1(log), 2 * rounding


def _log_transform_of_sets(sets: SetParameters, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    assert sets.size is not None
    x, means = t * (sets.difference / sets.total), np.zeros((sets.size + 1, t.size))
    means[0] = 1.0
    with np.errstate(under="ignore", divide="ignore"):
        for n, value in enumerate(_prior_of_each_secret(sets), 1):
            low, top = max(1, sets.size - sets.secrets + n), min(sets.size, n) + 1
            share, remainder = np.arange(low, top)[:, None] / n, np.arange(n - low, n - top, -1)[:, None] / n
            means[low:top] = remainder * means[low:top] + share * (np.exp(-x * value) * means[low - 1 : top - 1])
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
            share, remainder = np.arange(low, top)[:, None] / n, np.arange(n - low, n - top, -1)[:, None] / n
            up, down = share * y, -remainder * y
            new = remainder * (exp_excess(up) + np.exp(up) * change[low:top])
            change[low:top] = new + share * (exp_excess(down) + np.exp(down) * change[low - 1 : top - 1])
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


def expected_changes(sets: SetParameters) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """g of two secrets for all pairs of prior probabilities, shape (v, v), and its error; the same for d = d0, (v,)."""
    value, counts = sets.prior, sets.counts
    start = 2 * sets.difference**2 * sets.inside * sets.outside * (1 - value + 4 * U) ** 2  # at least K_dd(0)
    scale = math.log(sets.inside * sets.outside) + 2 * math.log(sets.difference / sets.high)
    least_s, first = sets.low + sets.difference * float(value[-1]), -_LAST_EXPONENT_OF_PAIRS - math.log(sets.high)
    last = math.log(_LAST_EXPONENT_OF_PAIRS - scale + 2 * max(0.0, -math.log(least_s))) - math.log(least_s)
    nodes = _STEP * np.arange(math.floor(first / _STEP), math.ceil(last / _STEP) + 1)
    t = np.exp(nodes)
    log, log_error = _log_transform(sets, t)
    x = np.multiply.outer(t * sets.difference, value)
    with np.errstate(under="ignore"):
        weight, tilted = _STEP * t * np.exp(log) * sets.difference**2, sets.inside * np.exp(-x)
        denominator = sets.outside + tilted
        u = sets.inside * sets.outside * -np.expm1(-x) / denominator
        v = sets.outside * tilted / denominator / denominator
    weight_error = 2 * log_error + 8 * U * (1 + np.abs(nodes)) * (4 + np.abs(log))
    weight_error, q_error = weight_error + 8 * sets.relative_error + 64 * U, 8 * sets.relative_error + 16 * U
    u_error = weight_error[:, None] + q_error * (2 + x * tilted / denominator)  # of u; in v, e^-x has the error of x
    v_error = u_error + q_error * x
    mean, mean_error = ((counts * value * x).sum(axis=1)[:, None] for x in (u, u * u_error))
    deviation = u - mean
    deviation_error, prior_v = u * u_error + mean_error + (u + mean) * (32 + math.log2(value.size)) * U, value * v
    v_total = (counts * value * prior_v).sum(axis=1)
    v_total_error = (counts * value * prior_v * (v_error + 24 * U)).sum(axis=1)
    root = np.sqrt(weight)[:, None]
    scaled_size, summation = root * np.abs(deviation), (t.size + 8) * U
    scaled, scaled_error = (root * deviation).T, (root * deviation_error).T
    alpha, beta = _matrix_product.matrix_vector(prior_v.T, weight), _channel_blocks.accurate_sum(weight * v_total)
    near = _matrix_product.matrix_vector(v.T, weight)
    near_error = (_matrix_product.matrix_vector((v * v_error).T, weight) + summation * near) * (1 + 1e-6)
    alpha_error = _matrix_product.matrix_vector((prior_v * v_error).T, weight) + summation * alpha
    beta_error = _channel_blocks.accurate_sum(weight * v_total_error) + _channel_blocks.accurate_sum(
        weight * (weight_error * v_total)
    )
    beta_error += summation * beta
    error = _matrix_product.product(scaled_size.T, (root * (deviation_error + u_error * np.abs(deviation))).T)
    squares = _matrix_product.product(scaled_error, scaled_error)
    error += error.T + squares + summation * _matrix_product.product(scaled_size.T, scaled_size.T)
    error += alpha_error[:, None] + alpha_error + beta_error
    off_diagonal = _matrix_product.product(scaled, scaled) - alpha[:, None] - alpha + beta
    diagonal = np.diagonal(off_diagonal) + near
    root_diagonal = np.sqrt(np.maximum(diagonal, 0.0) + np.diagonal(error) + near_error + 1e-300)
    root_start, first_share = np.sqrt(start), _STEP / math.expm1(_STEP) * float(t[0])
    beyond = sets.difference**2 * math.exp(-least_s * float(t[-1]) * (1 - 1e-9)) / least_s
    rule_error = 1.01 * _TRAPEZOID * np.multiply.outer(root_diagonal, root_diagonal)
    rule_error += 1.01 * first_share * np.multiply.outer(root_start, root_start)
    error = (error + rule_error + beyond) * (1 + 1e-6)
    return off_diagonal, error, diagonal, np.diagonal(error) + near_error
