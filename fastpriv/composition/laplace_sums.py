"""Delta of releases with Laplace noise, by sums over how often the loss takes its two extreme values.

Row that needs it: 100 x Laplace 10 at epsilon = 2 of benches/bench_accountants.py, whose bracket is 3e-13 of delta here
and 7e-8 on a grid, which takes thirty times as long.

Notation: a = shift / scale. Under P the loss is a with probability 1/2, -a with probability e^-a / 2, and a - 2 a v
with density a e^(-a v) / 2 for v in (0, 1). Of k releases, j have the loss a, l have -a, and m = k - j - l lie between:
the sum of their v has the density B_m (the B-spline of m uniform numbers on (0, 1)) times a^m e^(-a v) / 2^m, and S =
a (j - l + m) - 2 a v. So with V = (j - l + m - epsilon / a) / 2

    delta = sum over j, l of k! / (j! l! m!) 2^-k a^m e^(-a l) I_m(V),
    I_m(V) = integral_0^V B_m(v) e^(-a v) (1 - e^(-2 a (V - v))) dv,  I_0(V) = 1 - e^(-2 a V) for V > 0,

and the tail, e^epsilon Q(S > epsilon), has T_m, with e^(-2 a (V - v)) in place of 1 - e^(-2 a (V - v)). All terms are
positive;

    B_m(v) = (v B_{m-1}(v) + (m - v) B_{m-1}(v - 1)) / (m - 1)

adds positive numbers too, and so do, for 0 <= s <= 1 and with i_s, t_s the parts from V to V + s of the integrals,

    T_m(V + s) = e^(-2 a s) T_m(V) + t_s,    I_m(V + s) = I_m(V) + (1 - e^(-2 a s)) T_m(V) + i_s.

From V = m on, as the integrals of B_m e^(-a v) and B_m e^(a v) are ((1 - e^-a) / a)^m and ((e^a - 1) / a)^m,

    I_m(V) = ((1 - e^-a) / a)^m (1 - e^(-a (2 V - m))),    T_m(V) = ((1 - e^-a) / a)^m e^(-a (2 V - m)).

Gauss-Legendre sums with n nodes over intervals between integers, and over the rest below V, are exact for B_m times
polynomials of degree r = 2 n - m. On an interval of length 1, e^(c v), |c| <= a, is off from one by at most 2
(a/4)^(r+1) / (r+1)! of its largest value (interpolation at the nodes of Chebyshev), e^a of the least; both in the
integral and in the sum, as B_m and the weights are positive. The factor 1 - e^(-2 a (V - v)) has a mean of at least
min(1, a) / (4 m) there, as B_m, of degree m - 1, has a mean distance of 1 / (2 m) at least from V.

Weights of the three counts are tilted as those of atoms (``type_weights``): with a tilt t, M(t) the moment of the loss
and d = (1 - e^(-(1 + 2 t) a)) / ((1 + 2 t) a), outcomes weigh e^(t a) / 2, e^(-a - t a) / 2 and a d e^(t a) / 2, and a
type has to be multiplied by e^(-t epsilon - 2 t a V) d^-m I_m(V). Types with a count outside of its window add at most
M(t)^k e^(-t epsilon) times their tilted probability to delta, for t >= 0, and to the tail, for t >= -1. I_m(V) <= V^m /
m! bounds what underflows.

Rounding of a and of V is a move of epsilon: delta rises with a and falls with epsilon. So does Q(S > epsilon) with
epsilon, but e^epsilon does not, nor the weights a^m e^(-a (j + m - v)) of Q with a: the logarithm of the tail gets the
move of epsilon, the rounding of 2 a (V - v), of the same size, and that of k log a and k a besides.
"""

# bounds: proved - roundings of logarithms and sums, and moves of epsilon: theorem 11.10 of
#    docs/proofs/sampled_tables.md

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray, next_above, next_below
from ..base.quadrature_rules import gauss_legendre
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair
from .type_weights import WEIGHT_ERROR, count_weights, count_windows, logarithm, sum_above, sum_below

Quantity = Literal["delta", "tail"]

_LARGEST_RATIO = 16.0  # of shift and scale: beyond it the exponential needs more nodes
_MOST_BETWEEN = 160  # losses between the extremes in one term
_MOST_TERMS = 2_000_000  # 0.2 s
_NODES_BEYOND = 16  # nodes beside those that B_m needs, and one for each unit of a
# bound: proved - relative rounding of a term, for each step of B_m and of the recursion in V, and besides, times
#    1 + a / 4
_STEP_ERROR, _TERM_ERROR = 12 * UNIT_ROUNDOFF, 64 * UNIT_ROUNDOFF
_LEAST = -570.0  # logarithms of integrals below it may have underflown


def laplace_bounds(
    pairs: Sequence[DominatingPair], epsilon: FloatArray, quantity: Quantity = "delta"
) -> LogBounds | None:
    """Bounds of the logarithms at each epsilon >= 0, for Laplace noise of one ratio of shift and scale; None for other
    pairs, and where the terms are too many.
    """
    shapes = [pair.laplace for pair in pairs if pair.laplace is not None]
    if len(shapes) < len(pairs):
        return None
    ratios = {Fraction(shift) / Fraction(scale) for scale, shift in shapes}
    count = sum(pair.count for pair in pairs)
    if len(ratios) != 1 or count <= 0:
        return None
    quotient = ratios.pop()
    a = float(quotient)
    if not 1e-200 < a <= _LARGEST_RATIO:
        return None
    exact = Fraction(a) == quotient
    shifted = 8 * UNIT_ROUNDOFF * (epsilon + a * count)
    bounds = np.empty((2, epsilon.size))
    for i, (level, move) in enumerate(zip(epsilon.tolist(), shifted.tolist(), strict=True)):
        below = _extreme_loss_sum(a if exact else next_below(a), count, level + move, quantity)
        above = _extreme_loss_sum(a if exact else next_above(a), count, level - move, quantity)
        if below is None or above is None:
            return None
        slack = 2.0 * move + 4 * UNIT_ROUNDOFF * count * (1.0 + a) if quantity == "tail" else 0.0
        bounds[:, i] = below[0] - slack, above[1] + slack
    lower, upper = np.minimum(bounds, 0.0) if quantity == "delta" else bounds
    return LogBounds.of_bounds(lower, upper, {"releases": count}, "sum over extreme losses")


def _extreme_loss_sum(a: float, k: int, level: float, quantity: Quantity) -> tuple[float, float] | None:
    """Lower and upper bound of the logarithm at an epsilon; None where the terms are too many."""
    if level >= a * k * (1.0 + 4 * UNIT_ROUNDOFF):
        return -math.inf, -math.inf
    t = _saddle_point(a, k, level, 0.0 if quantity == "delta" else -1.0)
    shares, log_moment = _tilted(a, t)
    first, last = count_windows(shares, k)
    if last[2] > _MOST_BETWEEN or (last[0] - first[0] + 1.0) * (last[2] - first[2] + 1.0) > _MOST_TERMS:
        return None
    half, base = Fraction(level) / (2 * Fraction(a)), Fraction(t) * Fraction(a)  # V = (j - l + m) / 2 - half
    floors = [math.floor(shift - half) for shift in (Fraction(0), Fraction(1, 2))]
    rests = [float(shift - half - floor) for shift, floor in zip((Fraction(0), Fraction(1, 2)), floors, strict=True)]
    between = Fraction(_log_between(a, t))  # log d, whatever it errs by
    centre = Fraction(math.log(k) - log_moment)
    end, inside = logarithm(Fraction(1, 2)) + centre, logarithm(Fraction(a) / 2) + between + centre
    slopes = [end + base, end - Fraction(a) - base, inside + base]
    weights, log_scale, left_out = count_weights(slopes, shares, k, first, last)
    j, m = np.arange(first[0], last[0] + 1)[:, None], np.arange(first[2], last[2] + 1)
    twice = 2 * (j + m) - k  # j - l + m, as l = k - m - j
    odd = twice % 2
    whole = (twice - odd) // 2 + np.take(floors, odd)
    v = whole + np.take(rests, odd)
    selected = (k - m - j >= first[1]) & (k - m - j <= last[1]) & (whole >= 0) & (v > 0.0)
    j, m = (np.broadcast_to(x, selected.shape)[selected] for x in (j, m))
    odd, whole, v = odd[selected], whole[selected], v[selected]
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        fall, rise = 2.0 * t * a * v, -m * float(between)
        logs = _log_integrals(a, m, whole, odd, rests, quantity)
        small = logs < _LEAST
        logs = np.where(small, np.minimum(m * np.log(v) - _log_factorials()[m], 0.0), logs)
        terms = weights[0][j - first[0]] * weights[1][k - m - j - first[1]] * weights[2][m - first[2]]
        terms *= np.exp(rise - fall + logs)
        remainder = float(terms[small].sum()) * (1.0 + 1e-9)
        total = float(terms[~small].sum(dtype=np.longdouble))
        rounding = float((terms * (np.abs(fall) + np.abs(rise) + np.abs(logs))).sum()) * 7 * UNIT_ROUNDOFF
    largest = int(last[2])
    error = ((largest + 1) * _STEP_ERROR + _TERM_ERROR) * (1.0 + 0.25 * a) + 4 * WEIGHT_ERROR
    degree = 2 * _nodes(a, largest) - largest  # of the sums over nodes, by the text at the head
    log = math.log(32.0 * max(1, largest) / min(1.0, a)) + 4.0 * a
    log += (degree + 1) * math.log(0.25 * a) - math.lgamma(degree + 2)
    error += math.exp(min(log, 0.0))
    lower = upper = -math.inf
    shift = log_scale - k * centre - Fraction(t) * Fraction(level)
    low, high = total * (1.0 - error) - rounding, total * (1.0 + error) + rounding + remainder
    if low > 0.0:
        lower = sum_below(math.log(low), shift)
    if high > 0.0:
        upper = sum_above(math.log(high), shift)
    beyond = math.log(left_out + 1e-290) + k * log_moment - t * level
    beyond += 1e-14 * (2.0 + k * (1.0 + abs(log_moment)) + abs(t) * (abs(level) + a * k))
    return lower, next_above(float(np.logaddexp(upper, beyond)) + 6 * UNIT_ROUNDOFF, 4)


def _log_between(a: float, t: float) -> float:
    """log d."""
    x = (1.0 + 2.0 * t) * a
    return math.log(-math.expm1(-x) / x) if x != 0.0 else 0.0


def _tilted(a: float, t: float) -> tuple[FloatArray, float]:
    """Tilted probabilities of a loss of a, of -a, and of one between, and log M(t)."""
    logs = np.array([t * a, -a - t * a, t * a + math.log(a) + _log_between(a, t)])
    weights = np.exp(logs - logs[0])
    total = float(weights.sum())
    return weights / total, logs[0] + math.log(0.5 * total)


def _saddle_point(a: float, k: int, level: float, least: float) -> float:
    """A tilt under which the mean of S is about the level, at least ``least``, of few bits."""
    low, high = least, 1.0

    def slope(t: float) -> float:
        """Mean of a loss under the tilt t."""
        shares, _ = _tilted(a, t)
        x = (1.0 + 2.0 * t) * a
        depth = 1.0 / x if x > 700.0 else 1.0 / x - 1.0 / math.expm1(x) if abs(x) > 1e-3 else 0.5  # mean of v
        return a * float(shares @ [1.0, -1.0, 1.0 - 2.0 * depth])

    while slope(high) * k < level and high < 1e8:
        low, high = high, 4.0 * high
    return float(np.float32(bisect(lambda t: slope(t) * k >= level, low, high, 30)[0]))


def _log_integrals(
    a: float, m: IntArray, whole: IntArray, odd: IntArray, rests: list[float], quantity: Quantity
) -> FloatArray:
    """The logarithm of I_m(whole + rest), or of T_m, for each entry."""
    fall = a * (2.0 * (whole + np.take(rests, odd)) - m)
    result = np.log(-np.expm1(-fall)) if quantity == "delta" else -fall
    result += m * math.log(-math.expm1(-a) / a)
    near = whole < m
    if near.any():
        tables = _tables(a, int(m.max()), (rests[0], rests[1]))[quantity == "tail"]
        result[near] = np.log(tables[odd[near], m[near], whole[near]])
    return np.asarray(result)


@lru_cache(maxsize=8)
def _tables(a: float, largest: int, rests: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
    """I_m(n + rest) and T_m(n + rest) for both rests, m <= ``largest`` and n < ``largest``."""
    x, y, w = gauss_legendre(_nodes(a, largest))
    cells = np.arange(largest)[:, None]
    parts = []  # i_s and t_s from each integer to the next, and to the rests beyond it
    for length in (1.0, *rests):
        distance = 2.0 * a * length * y
        kernels = np.stack([-np.expm1(-distance), np.exp(-distance)], 1)
        kernels *= (length * w * np.exp(-a * length * x))[:, None]
        spline, sums = np.zeros((largest, x.size)), np.zeros((largest + 1, largest, 2))
        spline[0] = 1.0
        v = cells + length * x
        for order in range(1, largest + 1):
            if order >= 2:
                rows = slice(0, order)
                before = np.concatenate([np.zeros((1, x.size)), spline[: order - 1]])
                beyond = np.maximum(order - 1 - cells[rows] + (1.0 - length * x if length < 1.0 else y), 0.0)
                spline[rows] = (v[rows] * spline[rows] + beyond * before) / (order - 1)
            sums[order] = spline @ kernels
        parts.append(sums * np.exp(-a * cells))
    curve, tail = np.zeros((2, largest + 1, largest + 1))
    fall = math.exp(-2.0 * a)
    for n in range(largest):
        tail[:, n + 1] = fall * tail[:, n] + parts[0][:, n, 1]
        curve[:, n + 1] = curve[:, n] - math.expm1(-2.0 * a) * tail[:, n] + parts[0][:, n, 0]
    curve, tail = curve[:, :-1], tail[:, :-1]
    ends = [(curve - math.expm1(-2.0 * a * left) * tail + part[..., 0], math.exp(-2.0 * a * left) * tail + part[..., 1])
            for left, part in zip(rests, parts[1:], strict=True)]
    return np.stack([end[0] for end in ends]), np.stack([end[1] for end in ends])


def _nodes(a: float, largest: int) -> int:
    return largest // 2 + _NODES_BEYOND + math.ceil(a)


@lru_cache(maxsize=1)
def _log_factorials() -> FloatArray:
    return np.array([math.lgamma(n + 1.0) for n in range(_MOST_BETWEEN + 1)])
