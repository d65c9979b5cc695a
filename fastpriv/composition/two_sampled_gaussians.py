"""Delta of two releases of Poisson-sampled Gaussians, by one integral of the closed curve of a release.

Notation: release i has Q_i = N(0, 1) and P_i = (1 - q_i) N(0, 1) + q_i N(a_i, 1), in units of sigma; D_i = dP_i/dQ_i =
1 - q_i + q_i Y_i, Y_i = e^(a_i x - a_i^2/2). G is the curve of N(a_2, 1) against N(0, 1), G(log v) = E (1 - v / Y_2)^+.

One release has E_P (1 - X / D_2)^+ = q_2 G(log v) with v = 1 + (X - 1) / q_2 > 0 (Balle, Barthe and Gaboardi 2018,
theorem 8). Conditioned on the x of the first release, X = e^epsilon / D_1(x). As G(log v) = 1 - v + v G(-log v),

    q_2 G(log v) = (1 - X)^+ + q_2 V(v),    V(v) = G(log v) for v >= 1,  v G(-log v) for 0 < v <= 1,  0 for v <= 0.

The mean of (1 - X)^+ is the curve delta_1 of the first release, so that all terms are positive:

    delta(epsilon) = delta_1(epsilon) + q_2 I(epsilon),    I(epsilon) = integral of p_1(x) V(v(x)) dx.

For Q against P the same pairs give delta_1'(epsilon) + q_2 e^epsilon I(-epsilon), delta_1' the curve of Q_1 against
P_1.

The integral. v falls with x; it is 1 at x_0, where D_1 = e^epsilon, and 0 at x_c. V rises up to x_0 and falls beyond
it: times the largest p_1 it bounds the integral over a cell, and both ends. Gauss-Legendre sums with N nodes over a
cell on one side of x_0 err by (64/15) h M rho^(-2N) / (1 - rho^-2), h half its length, M a bound of the integrand on
the ellipse of rho around it (Trefethen, Approximation Theory and Practice, theorem 19.3), within |Im x| <= B. There
|p_1| is at most e^(B^2/2) times its value at Re x; Re D_1 and |Im D_1| are bounded by those of Y_1, as arg Y_1 =
a_1 Im x, which bounds Re v > 0 and arg v; and with log v = a_2 (y - a_2/2), V(v) = Phi(a_2 - y) - v Phi(-y), or v
Phi(y) - Phi(y - a_2), where |Phi(y)| <= e^((Im y)^2 / 2) Phi(Re y), as the density has that factor on a line of
constant Im y. Cells are halved until these bounds are small.

Rounding. |dV/dv| is Phi(-y) for v >= 1 and Phi(y) below, which turns the errors of v and of the nodes into those of V.
delta rises with a_i (a farther mean dominates), so that doubles around a_i bound it; q_i is taken as exact. A split at
another point than x_0 lowers delta_1 by the second order of the distance.
"""

# bounds: tested by enclosures/test_small_rates - roundings of integrands and sums; truncation is proved above

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

__all__ = ["two_release_bounds"]

_NODES = 20  # of the Gauss-Legendre rule of a cell
# bound: none - error of a cell relative to delta at which it is not halved; the bounds contain it
_CELL_ERROR = 1e-14
_MOST_HALVINGS, _MOST_CELLS = 48, 4000
_AT_ONCE = 64  # epsilons whose cells are refined together
# bound: proved - beyond it the lower end of the cells, e^-1800 of the mass of p_1 is left
_BEYOND = 60.0
# bound: none - epsilon beyond which others compute
_LARGEST_EPSILON = 300.0
# bound: proved - half the relative error of log G, with a unit for its sum (docs/proofs/gaussian.md, theorem 1.2)
_CURVE_ERROR = 5e-15
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)  # of the normal density


def two_release_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where the pairs are not two releases of sampled Gaussians."""
    if sum(pair.count for pair in pairs) != 2:
        return None
    first, second = (pair.sampled_gaussian for pair in pairs for _ in range(pair.count))
    if first is None or second is None or first.removes != second.removes or not (epsilon <= _LARGEST_EPSILON).all():
        return None
    rows = np.empty((2, epsilon.size))
    for start in range(0, epsilon.size, _AT_ONCE):
        levels = epsilon[start : start + _AT_ONCE]
        both = _log_delta(first, second, 0, levels)
        if not (first.exact and second.exact):
            both = both[0], _log_delta(first, second, 1, levels)[1]
        rows[:, start : start + _AT_ONCE] = both
    lower, upper = rows
    with np.errstate(invalid="ignore"):
        value = np.where(lower > -math.inf, lower + 0.5 * (upper - lower), upper)
    return LogBounds(value, lower, upper, {}, "integral of the curve of one release")


def _log_delta(first: SampledPair, second: SampledPair, side: int, epsilon: FloatArray) -> tuple[Any, Any]:
    """Lower and upper bounds of log delta for one side of the ratios a."""
    curve = special.sampled_gaussian_log_delta_remove if first.removes else special.sampled_gaussian_log_delta_add
    _, low, high = curve(first.sigma[side], first.rate, epsilon)
    sign = 1.0 if first.removes else -1.0
    log_factor = math.log(second.rate) + (0.0 if first.removes else epsilon)
    integrand = _ReleaseIntegrand(first.ratio[side], first.rate, second.ratio[side], second.rate)
    inner_low, inner_high = _log_integral(integrand, sign * epsilon, np.asarray(high - log_factor))
    bounds = []
    for item, inner, outward in ((low, inner_low, -1.0), (high, inner_high, 1.0)):
        with np.errstate(invalid="ignore"):
            total = np.logaddexp(item, log_factor + inner)
            size = 2.0 + np.abs(log_factor) + np.where(np.isfinite(total), np.abs(total), 0.0)
            total += outward * 8 * UNIT_ROUNDOFF * size
        bounds.append(np.minimum(np.where(np.isnan(total), -math.inf, total), 0.0))
    return bounds[0], bounds[1]


@dataclass(frozen=True, slots=True)
class _ReleaseIntegrand:
    """p_1 V(v) for the ratios and rates of both releases; ``growth`` is expm1(level) / q_2."""

    a: float
    q: float
    b: float  # a_2
    q_inner: float

    def crossing(self, growth: FloatArray, value: float) -> FloatArray:
        """x at which v is ``value``, 0 or 1; -inf where it is less everywhere."""
        ratio = self.q / self.q_inner
        g = growth / ratio if value else (1.0 + growth) / (ratio - self.q)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(g > -1.0, np.log1p(np.maximum(g, -1.0)) / self.a + 0.5 * self.a, -math.inf)

    def odds(self, x: FloatArray, growth: FloatArray) -> tuple[FloatArray, ...]:
        """Y - 1, D_1, v and v - 1 at real x."""
        ratio = self.q / self.q_inner
        g = np.expm1(self.a * x - 0.5 * self.a**2)
        d = 1.0 + self.q * g
        return g, d, (1.0 + growth - (ratio - self.q) * g) / d, (growth - ratio * g) / d

    def log_value(self, v: FloatArray, excess: FloatArray, call: Any) -> FloatArray:
        """log V at v = 1 + excess, on the side of 1 that ``call`` says."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            log_v = np.where(excess > -0.5, np.log1p(np.maximum(excess, -0.5)), np.log(np.maximum(v, 0.0)))
            distance = np.maximum(np.where(call, log_v, -log_v), 0.0)
            log_factor = np.where(call, 0.0, np.minimum(log_v, 0.0))
            return np.asarray(log_factor + special.gaussian_log_delta(0.5 * self.b, distance))

    def log_density(self, low: FloatArray, high: FloatArray) -> FloatArray:
        """Upper bound of log p_1 between two x."""
        far = [np.maximum(np.maximum(low - m, m - high), 0.0) for m in (0.0, self.a)]
        return np.logaddexp(math.log1p(-self.q) - 0.5 * far[0] ** 2, math.log(self.q) - 0.5 * far[1] ** 2) + (
            1e-12 - _HALF_LOG_TWO_PI
        )

    def log_modulus(self, middle: FloatArray, half: FloatArray, growth: FloatArray, call: Any) -> FloatArray:
        """Upper bounds of log |p_1 V| on the ellipses of each rho (a row), inf where none is known."""
        reach, height = ellipse_axes(half)
        low, high = middle - reach, middle + reach
        angle = np.minimum(self.a * height, 1.5)
        g_low, d_low, v_low, _ = self.odds(low, growth)  # v is largest at the lower end
        g_high, d_high, v_high, _ = self.odds(high, growth)
        y_low, y_high = 1.0 + g_low, 1.0 + g_high
        imaginary = self.q * y_high * np.sin(angle)
        least = 1.0 - self.q + self.q * y_low * np.cos(angle)
        factor = (growth * self.q_inner + 1.0) / self.q_inner  # e^level / q_2
        slack = 1e-12 * (1.0 + np.abs(growth) + self.q / self.q_inner * (2.0 + g_high))
        v_least = v_high - factor / d_high * (imaginary / least) ** 2 - slack
        v_most = v_low + factor * self.q * y_low * (1.0 - np.cos(angle)) / (d_low * least) + slack
        v_side = 1.0001 * factor * imaginary / least**2
        known = (self.a * height < 1.5) & (v_least > 0.0)
        v_least, v_most = np.where(known, v_least, 1.0), np.where(known, np.hypot(v_most, v_side), 1.0)
        y_imaginary = np.arctan(v_side / v_least) / self.b
        y = np.log(np.where(call, v_least, v_most)) / self.b + 0.5 * self.b
        y = np.where(call, y - 1e-12 * (1.0 + np.abs(y)), y + 1e-12 * (1.0 + np.abs(y)))
        item, other = np.where(call, self.b - y, y), np.where(call, -y, y - self.b)
        parts = special.log_ndtr(item), special.log_ndtr(other)
        log_v = np.log(v_most)
        value = np.logaddexp(parts[0] + np.where(call, 0.0, log_v), parts[1] + np.where(call, log_v, 0.0))
        bound = 0.5 * (height**2 + y_imaginary**2) + self.log_density(low, high) + value * (1.0 - 1e-13) + 1e-9
        return np.where(known, bound, math.inf)

    def log_terms(
        self, x: FloatArray, x_error: FloatArray, growth: FloatArray, call: Any
    ) -> tuple[FloatArray, FloatArray]:
        """log p_1 V and its error, at x that are within ``x_error`` of what is meant."""
        g, d, v, excess = self.odds(x, growth)
        log_value = self.log_value(v, excess, call)
        u, ratio, size = UNIT_ROUNDOFF, self.q / self.q_inner, np.abs(self.a * x)
        g_error = (1.0 + g) * (u * (4.0 * size + 2.0 * self.a**2) + self.a * x_error) + 4.0 * u * np.abs(g)
        d_error = (self.q * g_error + 4.0 * u * (1.0 + self.q * np.abs(g))) / d
        v_error = (ratio * g_error + 8.0 * u * (1.0 + np.abs(growth) + ratio * np.abs(g))) / d
        v = np.maximum(v, 1e-300)
        log_v = np.abs(np.log(v))
        v_error += v * (d_error + u * (8.0 + 4.0 * log_v))
        y = np.log(v) / self.b + 0.5 * self.b
        y_error = 1.1 * v_error / (v * self.b) + 1e-13 * np.abs(y)
        slope = special.log_ndtr(np.where(call, -y, y) + y_error)
        error = np.exp(np.minimum(np.log(v_error) + slope - log_value, 700.0)) * (1.0 + 1e-9)
        error += 2.0 * _CURVE_ERROR * np.abs(log_value) + 8.0 * u * log_v
        error += u * (4.0 * x * x + 16.0) + np.abs(x) * x_error + d_error
        return np.log(d) - 0.5 * x * x - _HALF_LOG_TWO_PI + log_value, error


def _log_integral(f: _ReleaseIntegrand, level: FloatArray, log_rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds of log I at each level; ``log_rest`` is log of what it is added to."""
    n = level.size
    growth_of = np.expm1(level) / f.q_inner
    top, end = f.crossing(growth_of, 1.0), f.crossing(growth_of, 0.0)
    start = np.minimum(np.where(np.isfinite(end), end, 0.0), 0.0) - _BEYOND
    top = np.clip(top, start, np.maximum(end, start))
    index = np.tile(np.arange(n), 2)
    low, high = np.concatenate([start, top]), np.concatenate([top, end])
    call = np.repeat([True, False], n)
    used = high > low
    index, low, high, call = index[used], low[used], high[used], call[used]
    total = log_rest.copy()
    accepted: list[tuple[Any, ...]] = [(index[:0], low[:0], high[:0], call[:0])]
    log_error = _ends(f, start, end, growth_of)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        for halving in range(_MOST_HALVINGS + 1):
            if not index.size:
                break
            growth, middle, half = growth_of[index], 0.5 * (low + high), 0.5 * (high - low)
            _, _, v, excess = f.odds(np.where(call, high, low), growth)
            largest = f.log_value(v, excess, call)
            whole = f.log_density(low, high) + np.log(high - low) + largest * (1.0 - 1e-13) + 1e-9
            quadrature = log_gauss_error(f.log_modulus(middle, half, growth, call), _NODES) + np.log(half)
            centre = f.log_terms(middle, np.zeros(middle.size), growth, call)[0] + np.log(high - low)
            total = np.maximum(total, _log_sums(index, centre, n))
            aim = total[index] + math.log(_CELL_ERROR)
            last = halving == _MOST_HALVINGS or index.size > _MOST_CELLS
            bounded = (whole <= aim) | last
            summed = (quadrature <= aim) & ~bounded
            for chosen, error in ((bounded, whole), (summed, quadrature)):
                log_error[chosen is bounded] = np.logaddexp(
                    log_error[chosen is bounded], _log_sums(index[chosen], error[chosen], n)
                )
            accepted.append((index[summed], middle[summed], half[summed], call[summed]))
            split = ~(bounded | summed)
            index, call = np.tile(index[split], 2), np.tile(call[split], 2)
            low, high = (np.concatenate(ends) for ends in
                         ((low[split], middle[split]), (middle[split], high[split])))
        return _sums(f, growth_of, [np.concatenate(column) for column in zip(*accepted, strict=True)], log_error)


def _ends(f: _ReleaseIntegrand, start: FloatArray, end: FloatArray, growth: FloatArray) -> FloatArray:
    """Logarithms of what is left beyond the cells: rows of errors of both signs, and of what adds only."""
    remainder = np.full((2, start.size), -math.inf)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        v, excess = f.odds(start, growth)[2:]
        largest = f.log_value(v, excess, v > 1.0) * (1.0 - 1e-13)
        mass = np.logaddexp(special.log_ndtr(start), math.log(f.q) + special.log_ndtr(start - f.a))
        beyond = 1e-12 * (1.0 + np.abs(growth) + f.q / f.q_inner * np.abs(f.odds(end, growth)[0]))  # v at the end
        after = np.log(beyond) + special.log_ndtr(np.log(beyond) / f.b + 0.5 * f.b)
    remainder[1] = np.logaddexp(np.where(v > 0.0, largest + mass * (1.0 - 1e-13), -math.inf),
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
    f: _ReleaseIntegrand, growth_of: FloatArray, cells: list[Any], log_error: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of log I by the sums over the nodes of all cells."""
    index, middle, half, call = cells
    n = growth_of.size
    nodes, _, weights = gauss_legendre(_NODES)
    x = middle[:, None] + half[:, None] * (2.0 * nodes - 1.0)
    shifted = np.broadcast_to(4.0 * UNIT_ROUNDOFF * (np.abs(middle) + half)[:, None], x.shape)
    logs, errors = f.log_terms(x, shifted, growth_of[index][:, None], call[:, None])
    logs = logs + np.log(2.0 * half[:, None] * weights)
    top = np.full(n, -math.inf)
    np.maximum.at(top, index, logs.max(axis=1, initial=-math.inf))
    base = np.where(np.isfinite(top), top, 0.0)
    terms = np.exp(logs - base[index][:, None])
    rounding = 8.0 * UNIT_ROUNDOFF * (4.0 + np.abs(logs) + np.abs(base[index][:, None]))
    rounding += (4.0 * UNIT_ROUNDOFF * (np.abs(middle) + half) / half)[:, None]  # gaps between cells
    value = np.bincount(index, terms.sum(axis=1), n)
    error = np.bincount(index, (terms * (errors + rounding)).sum(axis=1), n) * (1.0 + 1e-9)
    error += value * UNIT_ROUNDOFF * (np.bincount(index, minlength=n) + 2.0 * _NODES) + np.exp(log_error[0] - base)
    lower, upper = value - error, value + error + np.exp(np.minimum(log_error[1] - base, 700.0))
    lower = np.where(lower > 0.0, np.log(np.maximum(lower, 1e-300)) + base, -math.inf)
    upper = np.where(np.isfinite(top), np.log(upper) + base, np.logaddexp(log_error[0], log_error[1]))
    return lower - 1e-15 - 4 * UNIT_ROUNDOFF * np.abs(base), upper + 1e-15 + 4 * UNIT_ROUNDOFF * np.abs(base)
