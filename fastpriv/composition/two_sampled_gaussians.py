"""Delta of one or two releases of sampled Gaussians, by the closed curve of a release and integrals of it.

Notation: release i has Q_i = N(0, 1) and P_i = (1 - q_i) N(0, 1) + q_i N(a_i, 1), in units of sigma; p_i their
densities, phi that of Q_i; Y_i = e^(a_i x - a_i^2/2), D_i = dP_i/dQ_i = 1 - q_i + q_i Y_i. G is the curve of N(a_2, 1)
against N(0, 1), G(log v) = E (1 - v / Y_2)^+.

One release has delta_2 = E_P (1 - X / D_2)^+ = q_2 G(log v) at X = e^epsilon with v = 1 + (X - 1) / q_2 > 0 (Balle,
Barthe and Gaboardi 2018, theorem 8).

Poisson samples. Conditioned on the x of the first release, X = e^epsilon / D_1(x). As G(log v) = 1 - v + v G(-log v),

    q_2 G(log v) = (1 - X)^+ + q_2 V(v),    V(v) = G(log v) for v >= 1,  v G(-log v) for 0 < v <= 1,  0 for v <= 0.

The mean of (1 - X)^+ is the curve delta_1 of the first release, so that all terms are positive:

    delta(epsilon) = delta_1(epsilon) + q_2 I(epsilon),    I(epsilon) = integral of p_1(x) V(v(x)) dx.

For Q against P the same pairs give delta_1'(epsilon) + q_2 e^epsilon I(-epsilon), delta_1' the curve of Q_1 against
P_1.

Symmetric pairs (samples of fixed size, a record replaced). The pair with the curve delta_i at epsilon >= 0 in both
orders has losses +-log D_i(x), x > a_i/2, with the densities p_i(x) and phi(x), and the loss 0 with the probability m_i
= (1 - q_i) G_i(0): the curve of these, the integral of (p_i - e^epsilon phi)^+ beyond a_i/2, is that of P_i against
Q_i, as D_i <= 1 below; m_i is what is left of 1, 1 - P_i(x > a_i/2) - Q_i(x > a_i/2). At any level X > 0 its curve is
q_2 G(log v) for X >= 1 and 1 - X + X q_2 G(log v'), v' = 1 + (1/X - 1) / q_2, below. Conditioned on the first release
X is e^epsilon, e^epsilon / D_1 or e^epsilon D_1, and with x_0 where D_1 = e^epsilon

    delta(epsilon) = m_1 delta_2(epsilon) + delta_1(epsilon) + q_2 I(epsilon),
    I(epsilon) = int_{a_1/2}^{x_0} p_1 G(log v) + e^epsilon int_{x_0}^inf phi G(log w(-epsilon))
                 + int_{a_1/2}^inf phi G(log w(epsilon)),    w(t) = 1 + (e^t D_1 - 1) / q_2,

as the integral of p_1 - e^epsilon phi beyond x_0 is delta_1. Both directions are one. The part of delta in which
neither loss is 0 is (1 - m_2) delta_1 + q_2 I.

The integral. v falls with x; it is 1 at x_0, where D_1 = e^epsilon, and 0 at x_c. V rises up to x_0 and falls beyond
it: times the largest p_1 it bounds the integral over a cell, and both ends; w rises, and G(log w) falls. Gauss-Legendre
sums with N nodes over a cell on one side of x_0 err by (64/15) h M rho^(-2N) / (1 - rho^-2), h half its length, M a
bound of the integrand on the ellipse of rho around it (Trefethen, Approximation Theory and Practice, theorem 19.3),
within |Im x| <= B. There |p_1| and |phi| are at most e^(B^2/2) times their values at Re x; Re D_1 and |Im D_1| are
bounded by those of Y_1, as arg Y_1 = a_1 Im x, which bounds Re v > 0 and arg v; w is linear in Y_1. With log v = a_2 (y
- a_2/2), V(v) = Phi(a_2 - y) - v Phi(-y), or v Phi(y) - Phi(y - a_2), where |Phi(y)| <= e^((Im y)^2 / 2) Phi(Re y), as
the density has that factor on a line of constant Im y. Cells are halved until these bounds are small.

Rounding. |dV/dv| is Phi(-y) for v >= 1 and Phi(y) below, which turns the errors of v and of the nodes into those of V.
delta rises with a_i (a farther mean dominates) and with q_i, so that doubles around them bound it. The integrands on
both sides of x_0 continue each other: a split at another point, e away, lowers delta_1 alone, by the integral of |p_1 -
e^epsilon phi| between both, at most a_1 e^2 times the largest p_1 there.
"""

# bounds: proved - roundings of integrands and sums: theorem 11.11 of docs/proofs/sampled_tables.md; truncation is
#    proved above

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import special
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..base.quadrature_rules import ellipse_axes, gauss_legendre, log_gauss_error
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair, SampledPair

_NODES = 20  # of the Gauss-Legendre rule of a cell
# bound: none - error of a cell relative to delta at which it is not halved; the bounds contain it
_CELL_ERROR = 1e-14
_MOST_HALVINGS, _MOST_CELLS = 48, 2000  # of an epsilon
_AT_ONCE = 16  # epsilons whose cells are refined together
# bound: proved - beyond it the ends of the cells, e^-1800 of the mass of p_1 or phi is left
_BEYOND = 60.0
# bound: none - epsilon beyond which others compute
LARGEST_EPSILON = 300.0
# bound: proved - log Y_1 and log Y_1 + epsilon stay below it, so that no w is too large for a double
_LARGEST_LOG_RATIO = 620.0
# bound: proved - error of log G: so much, and twice so much of itself (docs/proofs/gaussian.md, theorem 1.2)
_CURVE_ERROR = 5e-15
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)  # of the normal density
# Integrands: p_1 V at v >= 1, p_1 V at v <= 1, and phi G(log w)
_ABOVE, _BELOW, _RISING = range(3)


def few_release_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where the pairs are not one or two releases of sampled Gaussians.
    """
    if sum(pair.count for pair in pairs) > 2:
        return None
    first, *others = (pair.sampled_gaussian for pair in pairs for _ in range(pair.count))
    if first is None:
        return None
    if not others:
        lower, upper = _release_curve(first, 0, epsilon)[0], _release_curve(first, 1, epsilon)[1]
        return LogBounds.of_bounds(lower, upper, {}, "closed form (Balle, Barthe and Gaboardi 2018)")
    (second,) = others
    if second is None or first.order != second.order or not (epsilon <= LARGEST_EPSILON).all():
        return None
    rows = np.empty((2, epsilon.size))
    for start in range(0, epsilon.size, _AT_ONCE):
        levels = epsilon[start : start + _AT_ONCE]
        both = _log_delta(first, second, 0, levels)
        if not (first.exact and second.exact):
            both = both[0], _log_delta(first, second, 1, levels)[1]
        rows[:, start : start + _AT_ONCE] = both
    return LogBounds.of_bounds(rows[0], rows[1], {}, "integral of the curve of one release")


def _release_curve(pair: SampledPair, side: int, epsilon: FloatArray) -> Any:
    """Bounds of log delta of one release, for one side of sigma and rate."""
    curve = special.sampled_gaussian_log_delta_add if pair.order == "add" else special.sampled_gaussian_log_delta_remove
    return curve(pair.sigma[side], pair.rate[side], epsilon)[1:]


def both_moved_bounds(first: SampledPair, second: SampledPair, side: int, epsilon: FloatArray) -> tuple[Any, Any]:
    """Bounds of the part of log delta of two symmetric pairs in which neither loss is 0."""
    return _log_delta(first, second, side, epsilon, both_moved=True)


def _log_delta(
    first: SampledPair, second: SampledPair, side: int, epsilon: FloatArray, both_moved: bool = False
) -> tuple[Any, Any]:
    """Lower and upper bounds of log delta for one side of the ratios and rates."""
    adds, symmetric = first.order == "add", first.order == "symmetric"
    curves = [_release_curve(pair, side, epsilon) for pair in (first, second)]
    f = _ReleaseIntegrand(first.ratio[side], first.rate[side], second.ratio[side], second.rate[side], symmetric)
    log_factor = math.log(f.q_inner) + (epsilon if adds else 0.0)
    inner_bounds = _log_integral(f, -epsilon if adds else epsilon, np.asarray(curves[0][1] - log_factor))
    bounds = []
    for item, other, inner, outward in zip(*curves, inner_bounds, (-1.0, 1.0), strict=True):
        with np.errstate(invalid="ignore"):
            total = np.logaddexp(item + f.log_moved() if both_moved else item, log_factor + inner)
            if symmetric and not both_moved:
                log_atom = f.log_atom()
                total = np.logaddexp(total, log_atom + outward * _CURVE_ERROR * (1.0 + 2.0 * abs(log_atom)) + other)
            size = 4.0 + abs(math.log(f.q_inner)) + epsilon + np.where(np.isfinite(total), np.abs(total), 0.0)
            total += outward * 8 * UNIT_ROUNDOFF * size
        bounds.append(np.minimum(np.where(np.isnan(total), -math.inf, total), 0.0))
    return bounds[0], bounds[1]


@dataclass(frozen=True, slots=True)
class _ReleaseIntegrand:
    """What is integrated, for the ratios and rates of both releases.

    Of each cell ``level`` is log X D_1, or log w's e^t, and ``kind`` says which integrand.
    """

    a: float
    q: float
    b: float  # a_2
    q_inner: float
    symmetric: bool

    def log_atom(self) -> float:
        """log m_1."""
        return math.log1p(-self.q) + float(special.gaussian_log_delta(0.5 * self.a, 0.0))

    def log_moved(self) -> float:
        """log(1 - m_2)."""
        return math.log(self.q_inner + 2.0 * (1.0 - self.q_inner) * float(special.ndtr(-0.5 * self.b)))

    def crossing(self, level: FloatArray, value: float) -> FloatArray:
        """x at which v is ``value``, 0 or 1; -inf where it is less everywhere."""
        growth, ratio = np.expm1(level) / self.q_inner, self.q / self.q_inner
        g = growth / ratio if value else (1.0 + growth) / (ratio - self.q)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(g > -1.0, np.log1p(np.maximum(g, -1.0)) / self.a + 0.5 * self.a, -math.inf)

    def odds(self, x: FloatArray, level: FloatArray, kind: Any) -> tuple[FloatArray, ...]:
        """Y - 1, the density over phi, v or w, and v - 1 or w - 1 at real x."""
        growth, ratio = np.expm1(level) / self.q_inner, self.q / self.q_inner
        g, rising = np.expm1(self.a * x - 0.5 * self.a**2), kind == _RISING
        d = np.where(rising, 1.0, 1.0 + self.q * g)
        slope = np.where(rising, -np.exp(level) * ratio, ratio)
        excess = (growth - slope * g) / d
        return g, d, np.where(rising, 1.0 + excess, (1.0 + growth - (ratio - self.q) * g) / d), excess

    def log_value(self, v: FloatArray, excess: FloatArray, kind: Any) -> FloatArray:
        """log V or log G at v = 1 + excess, on the side of 1 that ``kind`` says."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_v = np.where(excess > -0.5, np.log1p(np.maximum(excess, -0.5)), np.log(np.maximum(v, 0.0)))
            distance = np.maximum(np.where(kind == _BELOW, -log_v, log_v), 0.0)
            log_factor = np.where(kind == _BELOW, np.minimum(log_v, 0.0), 0.0)
            return np.asarray(log_factor + special.gaussian_log_delta(0.5 * self.b, distance))

    def log_weight(self, level: FloatArray, kind: Any) -> FloatArray:
        """log of the factor of the integral: e^epsilon of the second of three."""
        return np.where(kind == _RISING, np.maximum(-level, 0.0), 0.0)

    def log_density(self, low: FloatArray, high: FloatArray, kind: Any) -> FloatArray:
        """Upper bound of log p_1, or of log phi, between two x."""
        far = [np.maximum(np.maximum(low - m, m - high), 0.0) for m in (0.0, self.a)]
        logs = [-0.5 * x**2 * (1.0 - 1e-14) for x in far]
        mixture = np.logaddexp(math.log1p(-self.q) + logs[0], math.log(self.q) + logs[1])
        return np.where(kind == _RISING, logs[0], mixture) + (1e-12 - _HALF_LOG_TWO_PI)

    def log_modulus(self, middle: FloatArray, half: FloatArray, level: FloatArray, kind: Any) -> FloatArray:
        """Upper bounds of the log of the modulus on the ellipses of each rho (a row), inf where none is known."""
        reach, height = ellipse_axes(half)
        low, high = middle - reach, middle + reach
        angle, rising, above = np.minimum(self.a * height, 1.5), kind == _RISING, kind != _BELOW
        g_low, d_low, v_low, _ = self.odds(low, level, kind)  # v is largest at the lower end, w at the upper one
        g_high, d_high, v_high, _ = self.odds(high, level, kind)
        y_low, y_high = 1.0 + g_low, 1.0 + g_high
        imaginary = self.q * y_high * np.sin(angle)
        least = 1.0 - self.q + self.q * y_low * np.cos(angle)
        factor = np.exp(level) / self.q_inner
        loss = np.where(rising, self.q * y_low * (1.0 - np.cos(angle)), (imaginary / least) ** 2 / d_high)
        gain = np.where(rising, 0.0, self.q * y_low * (1.0 - np.cos(angle)) / (d_low * least))
        slope = np.where(rising, factor * self.q, self.q / self.q_inner)
        slack = 1e-12 + 16.0 * UNIT_ROUNDOFF * self.a * (np.abs(low) + np.abs(high) + self.a)
        slack *= 1.0 + np.abs(np.expm1(level)) / self.q_inner + slope * (2.0 + g_high)
        v_least = np.where(rising, v_low, v_high) - 1.0001 * factor * loss - slack / d_high
        v_most = np.where(rising, v_high, v_low) + 1.0001 * factor * gain + slack / d_low
        v_side = 1.0001 * factor * np.where(rising, imaginary, imaginary / least**2)
        known = (self.a * height < 1.5) & (v_least > 0.0) & (v_side < math.inf)
        v_least, v_most = np.where(known, v_least, 1.0), np.where(known, np.hypot(v_most, v_side), 1.0)
        y_imaginary = np.arctan(v_side / v_least) / self.b
        y = np.log(np.where(above, v_least, v_most)) / self.b + 0.5 * self.b
        y = np.where(above, y - 1e-12 * (1.0 + np.abs(y)), y + 1e-12 * (1.0 + np.abs(y)))
        item, other = np.where(above, self.b - y, y), np.where(above, -y, y - self.b)
        parts = special.log_ndtr(item), special.log_ndtr(other)
        log_v = np.log(v_most)
        value = np.logaddexp(parts[0] + np.where(above, 0.0, log_v), parts[1] + np.where(above, log_v, 0.0))
        growth = (0.5 + 1e-14) * (height**2 + y_imaginary**2)
        bound = growth + self.log_density(low, high, kind) + value * (1.0 - 1e-13) + 1e-9
        return np.where(known, bound, math.inf)

    def log_terms(
        self, x: FloatArray, x_error: FloatArray, level: FloatArray, kind: Any
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Logarithm of the integrand and its error, at x within ``x_error`` of what is meant, and a bound of log V."""
        g, d, v, excess = self.odds(x, level, kind)
        log_value, rising = self.log_value(v, excess, kind), kind == _RISING
        u, size = UNIT_ROUNDOFF, np.abs(self.a * x)
        slope = self.q / self.q_inner * np.where(rising, np.exp(level), 1.0)
        g_error = (1.0 + g) * (u * (4.0 * size + 2.0 * self.a**2) + self.a * x_error) + 4.0 * u * np.abs(g)
        d_error = np.where(rising, 0.0, (self.q * g_error + 4.0 * u * (1.0 + self.q * np.abs(g))) / d)
        growth = np.abs(np.expm1(level)) / self.q_inner
        v_error = (slope * g_error + 8.0 * u * (1.0 + growth + slope * np.abs(g))) / d
        v = np.maximum(v, 1e-300)
        log_v = np.abs(np.log(v))
        v_error += v * (d_error + u * (8.0 + 4.0 * log_v))
        y = np.log(v) / self.b + 0.5 * self.b
        y_error = -np.log1p(-np.minimum(1.001 * v_error / v, 1.0)) / self.b + 1e-13 * (np.abs(y) + self.b)
        fall = special.log_ndtr(np.where(kind == _BELOW, y, -y) + y_error)
        exponent = np.log(v_error) + fall - log_value + 1e-14 * (np.abs(fall) + np.abs(log_value))
        error = np.exp(np.minimum(exponent, 700.0)) * (1.0 + 1e-9)
        error += _CURVE_ERROR * (1.0 + 2.0 * np.abs(log_value)) + 8.0 * u * log_v
        weight, log_d, largest = self.log_weight(level, kind), np.log(d), log_value + np.log1p(error)
        error += u * (4.0 * x * x + 16.0 + 4.0 * weight + 8.0 * np.abs(log_d)) + np.abs(x) * x_error + d_error
        return log_d - 0.5 * x * x - _HALF_LOG_TWO_PI + log_value + weight, error, largest

    def parts(self, epsilon: FloatArray) -> tuple[FloatArray, ...]:
        """Levels, kinds, and both ends of each part of the integrals, one part after the other."""
        n, top = epsilon.size, self.crossing(epsilon, 1.0)
        if self.symmetric:
            start = np.full(n, 0.5 * self.a)
            levels = np.concatenate([epsilon, -epsilon, epsilon])
            low = np.concatenate([start, top, start])
            largest = (_LARGEST_LOG_RATIO - np.maximum(levels[n:], 0.0)) / self.a + 0.5 * self.a
            high = np.concatenate([top, np.minimum(low[n:] + _BEYOND, largest)])
            return levels, np.repeat([_ABOVE, _RISING, _RISING], n), low, high
        end = self.crossing(epsilon, 0.0)
        start = np.minimum(np.where(np.isfinite(end), end, 0.0), 0.0) - _BEYOND
        top = np.clip(top, start, np.maximum(end, start))
        return (np.tile(epsilon, 2), np.repeat([_ABOVE, _BELOW], n), np.concatenate([start, top]),
                np.concatenate([top, end]))


def _log_integral(f: _ReleaseIntegrand, epsilon: FloatArray, log_rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of log I at each epsilon; ``log_rest`` is log of what it is added to."""
    n, total = epsilon.size, log_rest.copy()
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        levels, kinds, low, high = f.parts(epsilon)
        log_error = _ends(f, epsilon, levels, kinds, low, high)
        index = np.flatnonzero(high > low)
        low, high = low[index], high[index]
        accepted: list[tuple[Any, ...]] = [(index[:0], low[:0], high[:0])]
        for halving in range(_MOST_HALVINGS + 1):
            if not index.size:
                break
            level, kind, middle, half = levels[index], kinds[index], 0.5 * (low + high), 0.5 * (high - low)
            zeros = np.zeros(middle.size)
            largest = f.log_terms(np.where(kind == _ABOVE, high, low), zeros, level, kind)[2]
            weight = f.log_weight(level, kind)
            whole = f.log_density(low, high, kind) + np.log(high - low) + largest * (1.0 - 1e-13) + weight + 1e-9
            quadrature = log_gauss_error(f.log_modulus(middle, half, level, kind), _NODES) + np.log(half) + weight
            centre = f.log_terms(middle, zeros, level, kind)[0] + np.log(high - low)
            total = np.maximum(total, _log_sums(index % n, centre, n))
            aim = total[index % n] + math.log(_CELL_ERROR)
            last = (halving == _MOST_HALVINGS) | (np.bincount(index % n)[index % n] > _MOST_CELLS)
            bounded = (whole <= aim) | last
            summed = (quadrature <= aim) & ~bounded
            for chosen, error in ((bounded, whole), (summed, quadrature)):
                log_error[chosen is bounded] = np.logaddexp(
                    log_error[chosen is bounded], _log_sums(index[chosen] % n, error[chosen], n)
                )
            accepted.append((index[summed], middle[summed], half[summed]))
            split = ~(bounded | summed)
            index = np.tile(index[split], 2)
            low, high = (np.concatenate(ends) for ends in
                         ((low[split], middle[split]), (middle[split], high[split])))
        index, middle, half = (np.concatenate(column) for column in zip(*accepted, strict=True))
        return _sums(f, (levels[index], kinds[index]), (index % n, middle, half), log_error)


def _ends(
    f: _ReleaseIntegrand, epsilon: FloatArray, levels: FloatArray, kinds: Any, low: FloatArray, high: FloatArray
) -> FloatArray:
    """Logarithms of what is beside the cells: rows of errors of both signs, and of what adds only."""
    n = epsilon.size
    remainder = np.full((2, n), -math.inf)
    top = f.crossing(epsilon, 1.0)
    y = np.exp(f.a * top - 0.5 * f.a**2)
    shift = 16.0 * UNIT_ROUNDOFF * (np.abs(top) + f.a + (1.0 + np.abs(f.a * top) + 1.0 / y) / f.a)
    split = math.log(f.a / f.q_inner) + 2.0 * np.log(shift) + f.log_density(top - shift, top + shift, _ABOVE)
    remainder[0] = np.where(np.isfinite(top), split, -math.inf)
    if f.symmetric:
        end = high[n:]
        beyond = (special.log_ndtr(-end) + f.log_terms(end, 0.0 * end, levels[n:], _RISING)[2]) * (1.0 - 1e-13)
        remainder[1] = np.logaddexp(*np.split(beyond + f.log_weight(levels[n:], _RISING), 2)) + 1e-9
        return remainder
    start, end = low[:n], f.crossing(epsilon, 0.0)
    v = f.odds(start, epsilon, _ABOVE)[2]
    largest = f.log_terms(start, 0.0 * start, epsilon, np.where(v > 1.0, _ABOVE, _BELOW))[2] * (1.0 - 1e-13)
    before, behind = (
        np.logaddexp(special.log_ndtr(x), math.log(f.q) + special.log_ndtr(y)) * (1.0 - 1e-13)
        for x, y in ((start, start - f.a), (-end, f.a - end))
    )  # masses of p_1
    g, d = f.odds(end, epsilon, _BELOW)[:2]
    beyond = 1e-12 + 16.0 * UNIT_ROUNDOFF * f.a * (np.abs(end) + f.a)
    beyond *= (1.0 + (np.abs(np.expm1(epsilon)) + f.q * (2.0 + np.abs(g))) / f.q_inner) / d  # v at the end
    after = np.log(beyond) + special.log_ndtr(np.log(beyond) / f.b + 0.5 * f.b) + behind
    remainder[1] = np.logaddexp(np.where(v > 0.0, largest + before, -math.inf),
                                np.where(np.isfinite(end), after, -math.inf)) + 1e-9
    return remainder


def _log_sums(index: Any, logs: FloatArray, n: int) -> FloatArray:
    """log of the sum of e^logs of each index, rounded up."""
    top = np.full(n, -math.inf)
    np.maximum.at(top, index, logs)
    base = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(np.log(np.bincount(index, np.exp(logs - base[index]), n)) + base + 1e-9)


def _sums(
    f: _ReleaseIntegrand, integrands: tuple[Any, Any], cells: tuple[Any, ...], log_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of log I by the sums over the nodes of all cells."""
    level, kind = integrands
    index, middle, half = cells
    n = log_error.shape[1]
    nodes, _, weights = gauss_legendre(_NODES)
    x = middle[:, None] + half[:, None] * (2.0 * nodes - 1.0)
    shifted = np.broadcast_to(4.0 * UNIT_ROUNDOFF * (np.abs(middle) + half)[:, None], x.shape)
    logs, errors, _ = f.log_terms(x, shifted, level[:, None], kind[:, None])
    log_weights = np.log(2.0 * half[:, None] * weights)
    logs = logs + log_weights
    top = np.full(n, -math.inf)
    np.maximum.at(top, index, logs.max(axis=1, initial=-math.inf))
    base = np.where(np.isfinite(top), top, 0.0)
    terms = np.exp(logs - base[index][:, None])
    rounding = 8.0 * UNIT_ROUNDOFF * (4.0 + np.abs(logs) + np.abs(log_weights) + np.abs(base[index][:, None]))
    rounding += (4.0 * UNIT_ROUNDOFF * (np.abs(middle) + half) / half)[:, None]  # gaps between cells
    value = np.bincount(index, terms.sum(axis=1), n)
    error = np.bincount(index, (terms * (errors + rounding)).sum(axis=1), n) * (1.0 + 1e-9)
    error += value * UNIT_ROUNDOFF * (np.bincount(index, minlength=n) + 2.0 * _NODES) + np.exp(log_error[0] - base)
    lower, upper = value - error, value + error + np.exp(np.minimum(log_error[1] - base, 700.0))
    lower = np.where(lower > 0.0, np.log(np.maximum(lower, 1e-300)) + base, -math.inf)
    upper = np.where(np.isfinite(top), np.log(upper) + base, np.logaddexp(log_error[0], log_error[1]))
    slack = 6 * UNIT_ROUNDOFF * (1.0 + 2.0 * np.abs(base) + np.where(np.isfinite(upper), np.abs(upper), 0.0))
    return lower - slack, upper + slack
