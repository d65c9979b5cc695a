"""Delta of few releases with Laplace noise, by sums over how often the loss takes its two extreme values.

Notation: a = shift / scale. Under P the loss is a with probability 1/2, -a with probability e^-a / 2, and a - 2 a v
with density a e^(-a v) / 2 for v in (0, 1). Of k releases, j have the loss a, l have -a, and m = k - j - l lie between:
the sum of their v has the density B_m (the B-spline of m uniform numbers on (0, 1)) times a^m e^(-a v) / 2^m, and S =
a (j - l + m) - 2 a v. So with V = (j - l + m - epsilon / a) / 2

    delta = sum over j, l of k! / (j! l! m!) 2^-k a^m e^(-a l) I_m(V),
    I_m(V) = integral_0^V B_m(v) e^(-a v) (1 - e^(-2 a (V - v))) dv,  I_0(V) = 1 - e^(-2 a V) for V > 0,

and the tail, e^epsilon Q(S > epsilon), has e^(-2 a (V - v)) in place of 1 - e^(-2 a (V - v)). All terms are positive;

    B_m(v) = (v B_{m-1}(v) + (m - v) B_{m-1}(v - 1)) / (m - 1)

adds positive numbers too. Gauss-Legendre sums with n nodes over each interval between integers, and over the rest below
V, are exact for B_m times polynomials of degree r = 2 n - m. On an interval of length 1, e^(c v), |c| <= a, is off from
one by at most 2 (a/4)^(r+1) / (r+1)! of its largest value (interpolation at the nodes of Chebyshev), e^a of the least;
both in the integral and in the sum, as B_m and the weights are positive. The factor 1 - e^(-2 a (V - v)) has a mean of
at least min(1, a) / (4 m) there, as B_m, of degree m - 1, has a mean distance of 1 / (2 m) at least from V.

Rounding of a and of V is a move of epsilon: delta rises with a and falls with epsilon. So does Q(S > epsilon) with
epsilon, but e^epsilon does not, nor the weights a^m e^(-a (j + m - v)) of Q with a: the logarithm of the tail gets the
move of epsilon, the rounding of 2 a (V - v), of the same size, and that of k log a and k a besides. I_m(V) <= min(1,
V^m / m!) bounds what is left out.
"""

# bounds: tested by enclosures/test_laplace_sums - roundings of logarithms and sums, and moves of epsilon

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal

import numpy as np

from ..numerics import UNIT_ROUNDOFF, FloatArray, IntArray, next_above, next_below
from .log_bounds import LogBounds
from .steps import LaplaceStep

__all__ = ["laplace_bounds"]

Quantity = Literal["delta", "tail"]

_LARGEST_RATIO = 16.0  # of shift and scale: beyond it the exponential needs more nodes
_LARGEST_COUNT = 400  # releases: the terms are half the square of this
_MOST_BETWEEN = 96  # losses between the extremes in one term
_NODES_BEYOND = 16  # nodes beside those that B_m needs, and one for each unit of a
# bound: tested by enclosures/test_laplace_sums - relative rounding of a term, for each step of B_m and besides
_STEP_ERROR, _TERM_ERROR = 8 * UNIT_ROUNDOFF, 64 * UNIT_ROUNDOFF
_NEGLIGIBLE = 45.0  # terms that make less than e^-45 of the sum are left out, and added to the upper bound


def laplace_bounds(steps: Sequence[LaplaceStep], epsilon: FloatArray, quantity: Quantity = "delta") -> LogBounds | None:
    """Bounds of the logarithms at each epsilon >= 0, for steps of one ratio of shift and scale; None where the terms
    are too many."""
    ratios = {Fraction(step.shift) / Fraction(step.scale) for step in steps}
    count = sum(step.count for step in steps)
    if len(ratios) != 1 or not 0 < count <= _LARGEST_COUNT:
        return None
    quotient = ratios.pop()
    a = float(quotient)
    if not 1e-200 < a <= _LARGEST_RATIO:
        return None
    exact = Fraction(a) == quotient
    moved = 8 * UNIT_ROUNDOFF * (epsilon + a * count)
    bounds = np.empty((2, epsilon.size))
    sums = [_ExtremeLossSum(ratio, count, quantity) for ratio in ((a, a) if exact else (next_below(a), next_above(a)))]
    for i, (level, move) in enumerate(zip(epsilon.tolist(), moved.tolist(), strict=True)):
        below, above = sums[0].bounds(level + move), sums[1].bounds(level - move)
        if below is None or above is None:
            return None
        slack = 2.0 * move + 4 * UNIT_ROUNDOFF * count * (1.0 + a) if quantity == "tail" else 0.0
        bounds[:, i] = below[0] - slack, above[1] + slack
    lower, upper = np.minimum(bounds, 0.0) if quantity == "delta" else bounds
    with np.errstate(invalid="ignore"):
        value = np.where(lower > -math.inf, 0.5 * (lower + upper), upper)
    return LogBounds(np.clip(value, lower, upper), lower, upper, {"releases": count}, "sum over extreme losses")


class _ExtremeLossSum:
    """The sum over all numbers of extreme losses for one ratio a."""

    def __init__(self, a: float, count: int, quantity: Quantity) -> None:
        self.a, self.count, self.quantity = a, count, quantity

    def bounds(self, level: float) -> tuple[float, float] | None:
        """Lower and upper bound of the logarithm; None where the terms reach too far between the extremes."""
        a, k = self.a, self.count
        half = 0.5 * level / a  # V = (j - l + m) / 2 - half
        floors = [math.floor(shift - half) for shift in (0.0, 0.5)]
        rests = [shift - half - floor for shift, floor in zip((0.0, 0.5), floors, strict=True)]
        m, j = (x.ravel() for x in np.meshgrid(np.arange(k + 1), np.arange(k + 1), indexing="ij"))
        kept = m + j <= k
        m, j = m[kept], j[kept]
        twice = 2 * j + 2 * m - k  # j - l + m, as l = k - m - j
        odd = twice % 2
        whole = (twice - odd) // 2 + np.take(floors, odd)
        v = whole + np.take(rests, odd)
        kept = (whole >= 0) & (v > 0.0)
        if not kept.any():
            return -math.inf, -math.inf
        m, j, odd, whole, v = (x[kept] for x in (m, j, odd, whole, v))
        factorials = _log_factorials(k)
        scale = factorials[k] - factorials[j] - factorials[m] - factorials[k - m - j]
        scale += m * math.log(a) - a * (k - m - j) - k * math.log(2.0)
        most = scale + np.minimum(m * np.log(v) - factorials[m], 0.0) + np.log(np.minimum(1.0, 2.0 * a * v))
        if self.quantity == "tail":
            most = scale + np.minimum(m * np.log(v) - factorials[m], 0.0) - np.maximum(0.0, 2.0 * a * (v - m))
        reach = 30.0
        while True:
            chosen = most >= most.max() - reach
            if int(m[chosen].max()) > _MOST_BETWEEN:
                return None
            logs = scale[chosen] + self._log_integrals(m[chosen], whole[chosen], odd[chosen], rests)
            top = float(logs.max())
            rest = most[~chosen]
            left_out = _log_sum(rest) if rest.size else -math.inf
            total = _log_sum(logs)
            if left_out <= total - _NEGLIGIBLE or not rest.size:
                break
            reach += 30.0 if total == -math.inf else max(10.0, left_out - total + _NEGLIGIBLE)
        if top == -math.inf:
            return -math.inf, next_above(left_out + 1e-9)
        largest = int(m[chosen].max())
        error = largest * _STEP_ERROR + _TERM_ERROR + 4 * UNIT_ROUNDOFF * float(np.abs(scale[chosen]).max())
        error += _quadrature_error(a, largest, _nodes(a, largest)) + UNIT_ROUNDOFF * (2.0 * abs(total) + 4.0)
        return total - error, float(np.logaddexp(total + error, left_out + 1e-9))

    def _log_integrals(self, m: IntArray, whole: IntArray, odd: IntArray, rests: list[float]) -> FloatArray:
        """log I_m(whole + rest) for each entry."""
        a, largest, cells = self.a, int(m.max()), int(whole.max()) + 1
        x, w = np.polynomial.legendre.leggauss(_nodes(a, largest))
        x, w = 0.5 * (x + 1.0), 0.5 * w
        found = np.empty(m.size)
        for parity in (0, 1):
            rows = np.flatnonzero(odd == parity)
            if not rows.size:
                continue
            rest = rests[parity]
            # distances V - v: of the interval i from a V in the interval n they depend on n - i; the last is cut at V
            far = np.arange(1, cells)[:, None] + (rest - x)
            near = rest * (1.0 - x)
            whole_weights, near_weights = (self._weight(y) * factor for y, factor in ((far, w), (near, rest * w)))
            full, cut = _spline_of_one(cells, x), _spline_of_one(cells, rest * x)
            for order in range(largest + 1):
                here = rows[m[rows] == order]
                if order >= 2:
                    full, cut = _next_spline(full, x, order), _next_spline(cut, rest * x, order)
                if not here.size:
                    continue
                if order == 0:
                    found[here] = self._weight(whole[here] + rest)
                    continue
                decay = np.exp(-a * np.arange(cells))[:, None]
                last = np.einsum("ix,x->i", cut * decay * np.exp(-a * rest * x), near_weights)
                products = np.einsum("ix,nx->in", full * decay * np.exp(-a * x), whole_weights)
                found[here] = [last[n] + math.fsum(products[i, n - i - 1] for i in range(n)) for n in whole[here]]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def _weight(self, distance: FloatArray) -> FloatArray:
        y = 2.0 * self.a * distance
        return np.asarray(-np.expm1(-y) if self.quantity == "delta" else np.exp(-y))


def _nodes(a: float, largest: int) -> int:
    return largest // 2 + _NODES_BEYOND + math.ceil(a)


def _spline_of_one(cells: int, x: FloatArray) -> FloatArray:
    """B_1 at i + x for the cells i."""
    return np.concatenate([np.ones((1, x.size)), np.zeros((cells - 1, x.size))])


def _next_spline(spline: FloatArray, x: FloatArray, order: int) -> FloatArray:
    """B_order at i + x from B_(order - 1)."""
    v = np.arange(spline.shape[0])[:, None] + x
    before = np.concatenate([np.zeros((1, x.size)), spline[:-1]])
    return np.asarray((v * spline + np.maximum(order - v, 0.0) * before) / (order - 1))


def _quadrature_error(a: float, largest: int, nodes: int) -> float:
    """Relative error of the sums over nodes, by the text at the head."""
    degree = 2 * nodes - largest
    log = math.log(32.0 * max(1, largest) / min(1.0, a)) + 4.0 * a
    log += (degree + 1) * math.log(0.25 * a) - math.lgamma(degree + 2)
    return math.exp(min(log, 0.0))


@lru_cache(maxsize=8)
def _log_factorials(count: int) -> FloatArray:
    numbers, product = [0.0], 1
    for n in range(1, count + 1):
        product *= n
        numbers.append(math.log(product))
    return np.array(numbers)


def _log_sum(logs: FloatArray) -> float:
    top = float(logs.max())
    return top + math.log(math.fsum(np.exp(logs - top))) if top > -math.inf else top
