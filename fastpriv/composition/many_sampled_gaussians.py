"""Delta of releases of Poisson-sampled Gaussians near epsilon = 0, however small the rates are.

Rows that need it: 3 x PoissonSampledGaussian(1.0, 1e-6) at epsilon = 1e-4, where a sum along a contour of P takes
seconds for a bracket of e^14; 2 x PoissonSampledGaussian(1.0, 1e-4) at epsilon = 0.

Notation: release i, which comes k_i times, has Q_i = N(0, 1) and P_i = (1 - q_i) N(0, 1) + q_i N(a_i, 1), in units of
sigma; Y_i = e^(a_i x - a_i^2/2). Under Q the loss of one release is log(1 - q_i) + u_i, u_i = log(1 + r_i Y_i) > 0
with r_i = q_i / (1 - q_i). L = -sum k_i log(1 - q_i), U is the sum of all u, so that S = U - L, and m_i(z) = E e^(-z
u_i) under Q. For c > 0, t > 0, by the transform of (1 - e^-y)^+,

    J(c) = E (1 - e^(U - c))^+ = (1/pi) Im of the integral of f(z) dz from t to t + i inf,
    f(z) = e^(c z) prod m_i(z)^k_i / (z (z + 1)).

Of Q against P, delta(epsilon) = J(L - epsilon). Of P against Q it is E (e^S - e^epsilon)^+ under Q, which is the mean
of (e^epsilon - e^S)^+ + e^S - e^epsilon:

    delta(epsilon) = e^epsilon J(L + epsilon) - (e^epsilon - 1),

with fewer digits where delta is far below epsilon. A sum along a contour of P has moments that a rare large loss rules;
these are of the small losses, and z of the order of 1 / c.

Moments. With x - i eta for x, 0 < a eta <= pi/4, -pi/2 <= arg u(x - i y) <= 0 for 0 <= y <= 2 eta, as Y turns by -a y.
On 0 <= arg z <= pi/2 the integrand phi(x - i y) e^(-z u) is thus at most e^(y^2/2) phi(x) e^(-t Re u(x - i y)), t =
Re z, and its trapezoidal sum with the step h at y = eta differs from m by at most (N(0) + N(2 eta)) / (e^(2 pi eta / h)
- 1), N the integrals of these bounds (Trefethen and Weideman 2014, theorem 5.1); e^(-t Re u) falls with x, so that its
values at the left ends of cells bound N. Terms beyond the nodes are at most e^(eta^2/2) phi e^(-t Re u). With tau the
sum of these errors, prod m^k changes by at most prod (m(t) + tau)^k - prod m(t)^k, and J by that times e^(c t) / (2 t).

Path. The finite sums are entire functions of z. Where all nodes have arg u <= -beta their terms stay bounded up to arg
z = pi/2 + beta, so that the path may turn left: z = t + s e^(i psi), psi = pi/2 + beta, along which e^(c z) falls. The
integral over s is a sum of Gauss and Legendre over cells. With N nodes it errs by (64/15) h M rho^(-2N) / (1 - rho^-2),
h half the length of a cell, M a bound of the integrand on the ellipse of rho around it (Trefethen, Approximation Theory
and Practice, theorem 19.3). log|f| but for z (z + 1) is at most c Re z + sum k log(sum |terms|), a convex function of
z: the corners of a rectangle around the ellipse bound it. On the path |e^(-z u)| falls with s, which bounds the
integral beyond the last cell.
"""

# bounds: proved - roundings of sums: theorem 11.12 of docs/proofs/sampled_tables.md; truncation is proved above

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import special
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..base.quadrature_rules import ellipse_axes, gauss_legendre, log_gauss_error, strip_divisor
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair, SampledPair

_NODES = 24  # of the Gauss-Legendre rule of a cell
# bound: none - times that a record takes part, on average, and releases and levels, beyond which other sums are quicker
_MOST_PARTICIPATIONS, _MOST_RELEASES, _LARGEST_LEVEL = 2e-3, 10_000, 1.0
_LARGEST_RATIO = 50.0  # of sensitivity and sigma: theorem 11.12 needs no more
# bound: none - width of log delta from which extended precision is tried
_NARROW = 1e-9
_TILTS = np.geomspace(1e-1, 1e4, 121)  # values of c t that are tried
_MOST_HALVINGS, _MOST_CELLS = 12, 200


def small_rate_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where the pairs are not sampled Gaussians of small rates.

    Those of neighbouring epsilons share a path, of a cell of a grid of c that the pairs give: the result at an epsilon
    does not depend on the others.
    """
    sampled = [(pair.sampled_gaussian, pair.count) for pair in pairs]
    known = [(pair, count) for pair, count in sampled if pair is not None]
    total = sum(count for _, count in known)
    orders = {pair.order for pair, _ in known}
    if len(known) < len(pairs) or len(orders) != 1 or "symmetric" in orders or total > _MOST_RELEASES:
        return None
    participations = math.fsum(pair.rate[1] * count for pair, count in known)
    if participations > _MOST_PARTICIPATIONS or max(pair.ratio[1] for pair, _ in known) > _LARGEST_RATIO:
        return None
    removes = "remove" in orders
    rows = np.array([np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)])
    exact = all(pair.exact for pair, _ in known)
    used = np.flatnonzero(epsilon <= _LARGEST_LEVEL)
    for extended in (False, True) if removes else (False,):
        for side in (0,) if exact else (0, 1):
            bounds = _log_deltas(_Moments.of(known, side, extended), epsilon[used], removes)
            if exact or side == 0:
                rows[0, used] = np.maximum(rows[0, used], bounds[0])
            if exact or side == 1:
                rows[1, used] = np.minimum(rows[1, used], bounds[1])
        with np.errstate(invalid="ignore"):
            wide = rows[1] - rows[0]
        used = used[(wide[used] > _NARROW) & (wide[used] < math.inf)]
        if not used.size:
            break
    return LogBounds.of_bounds(rows[0], np.maximum(rows[1], rows[0]), {}, "sum along a turned contour")


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Of one pair: logarithms of the terms, u, their sizes, bounds of N at 0 and 2 eta, and of relative errors."""

    count: int
    logs: Any
    losses: Any
    log_sizes: FloatArray
    real_losses: tuple[FloatArray, FloatArray]  # Re u at y = 0 and 2 eta
    masses: FloatArray  # of the normal distribution between the nodes, and beyond them
    factors: tuple[float, float]  # of N(0) and N(2 eta)
    beyond: tuple[float, float]  # terms below and above the nodes, without e^(-t Re u)
    rounding: FloatArray  # of terms, and of u


@dataclass(frozen=True, slots=True)
class _Moments:
    """Nodes of all pairs; ``least`` is L, ``unit`` the rounding of their precision."""

    pairs: tuple[_Nodes, ...]
    least: Any
    turn: float  # beta
    unit: float
    cell: float  # log of the ratio of both ends of a cell of c

    @classmethod
    def of(cls, pairs: Sequence[tuple[SampledPair, int]], side: int, extended: bool) -> _Moments:
        kind: Any = np.longdouble if extended else np.float64
        unit = 0.5 * float(np.finfo(kind).eps)
        total = sum(number for _, number in pairs)
        nodes = tuple(_nodes(pair.ratio[side], pair.rate[side], number, total, kind) for pair, number in pairs)
        least = sum((-number * np.log1p(-kind(pair.rate[side])) for pair, number in pairs), kind(0.0))
        turn = 0.9 * min(float(-np.angle(node.losses).max()) for node in nodes)
        spread = min(pair.ratio[0] for pair, _ in pairs) / math.sqrt(total)  # of S, relative to L
        return cls(nodes, least, turn, unit, math.log1p(min(0.125, 0.5 * spread)))

    def log_sizes(self, z: Any) -> FloatArray:
        """log of prod (sum |terms|)^k at z, an upper bound."""
        total = np.zeros(z.shape)
        for pair in self.pairs:
            losses = np.asarray(pair.losses, dtype=np.complex128)
            exponents = pair.log_sizes - z.real[..., None] * losses.real + z.imag[..., None] * losses.imag
            exponents += 1e-15 * np.abs(z)[..., None] * np.abs(losses)
            top = exponents.max(axis=-1)
            sums = np.log(np.exp(exponents - top[..., None]).sum(axis=-1)) + top
            total += pair.count * (sums + 1e-13 * (10.0 + np.abs(sums)))
        return total

    def log_products(self, z: Any) -> tuple[Any, FloatArray]:
        """log of prod m^k at the vector z, and the log of 1 + its relative error."""
        total, error = np.zeros_like(z), np.zeros(z.size)
        for pair in self.pairs:
            exponents = pair.logs - z[:, None] * pair.losses
            top = exponents.real.max(axis=1)
            terms = np.exp(exponents - top[:, None])
            sums, sizes = terms.sum(axis=1), np.abs(terms)
            wrong = (sizes * pair.rounding[0]).sum(axis=1) + np.abs(z) * (sizes * pair.rounding[1]).sum(axis=1)
            logs = np.log(sums)
            total += pair.count * (logs + top)
            error += pair.count * np.log1p(np.asarray(wrong / np.abs(sums), dtype=np.float64) * self.unit * 1.01)
            error += pair.count * 8.0 * self.unit * np.asarray(np.abs(logs) + np.abs(top), dtype=np.float64)
        return total, error

    def at_tilts(self, t: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Upper bounds of log prod m(t)^k, and log of prod (1 + tau / m(t))^k, at each t."""
        total, error = np.zeros(t.size), np.zeros(t.size)
        for pair in self.pairs:
            least = min(losses[0] for losses in pair.real_losses)  # e^(-t least) is taken out of all sums
            falls, scale = [np.exp(-t[:, None] * (losses - least)) for losses in pair.real_losses], np.exp(t * least)
            above = [
                fall[:, :-1] @ pair.masses[1:-1] + pair.masses[0] * scale + fall[:, -1] * pair.masses[-1]
                for fall in falls
            ]
            below = falls[0][:, 1:] @ pair.masses[1:-1]
            wide = 1e-11 + UNIT_ROUNDOFF * pair.masses.size  # of the masses, and of these sums
            tau = above[0] * pair.factors[0] + above[1] * pair.factors[1]
            tau = 1.001 * (tau + pair.beyond[0] * scale + falls[1][:, -1] * pair.beyond[1])
            total += pair.count * (np.log(above[0] * (1.0 + wide)) - t * least)
            error += pair.count * np.log1p(tau / np.maximum(below * (1.0 - wide), 1e-300))
        return total, error


def _nodes(a: float, rate: float, count: int, total: int, kind: Any) -> _Nodes:
    digits = -math.log(float(np.finfo(kind).eps)) + 5.0
    eta = kind(min(0.999 * math.pi / (4.0 * a), 1.5 / math.sqrt(total), 1.2))
    step = kind(2.0 * math.pi * float(eta) / (digits + 2.0 * float(eta) ** 2))
    end = math.sqrt(2.0 * digits) + 0.7
    x = np.arange(-math.ceil((end + 2.0 + 0.8 / a) / step), math.ceil(end / step) + 1) * step
    ratio = rate / (1 - kind(rate))

    def shifted_losses(y: Any) -> Any:
        """log(1 + r Y) at x - i y."""
        size = ratio * np.exp(a * x - 0.5 * kind(a) ** 2)
        real, imaginary = size * np.cos(a * y), size * np.sin(a * y)
        return 0.5 * np.log1p(2.0 * real + size * size) - 1j * np.arctan2(imaginary, 1.0 + real)

    logs = np.log(step / np.sqrt(2 * _pi(kind))) - 0.5 * (x * x - eta * eta) + 1j * eta * x
    y, h, points = float(eta), float(step), np.asarray(x, dtype=np.float64)
    below, above = special.ndtr(points), special.ndtr(-points)
    masses = np.concatenate([below[:1], np.where(points[:-1] < 0.0, np.diff(below), -np.diff(above)), above[-1:]])
    fall = 1.0 / strip_divisor(y * (1.0 - 1e-12), h)
    ends = [float(special.ndtr(-abs(p))) + h * math.exp(-0.5 * p * p) for p in (points[0], points[-1])]
    beyond = math.exp(0.5 * y * y) * ends[0], math.exp(0.5 * y * y) * ends[1]
    real = tuple(
        np.asarray(shifted_losses(line).real, dtype=np.float64) * (1.0 - 1e-14) for line in (kind(0.0), 2 * eta)
    )
    square = points * points
    losses = shifted_losses(eta)
    sizes = np.asarray(np.abs(losses), dtype=np.float64)
    rounding = np.stack([96.0 + 8.0 * square, (40.0 + 16.0 * a * np.abs(points) + 4.0 * a * a) * sizes])
    return _Nodes(count, logs, losses, np.asarray(logs.real, dtype=np.float64), (real[0], real[1]), masses,
                  (fall, fall * math.exp(2.0 * y * y)), beyond, rounding)


def _pi(kind: Any) -> Any:
    return 4 * np.arctan(kind(1.0))


def _log_deltas(moments: _Moments, epsilon: FloatArray, removes: bool) -> FloatArray:
    """Bounds of log delta at each epsilon, two rows."""
    kind: Any = type(moments.least)
    size, level = float(moments.least), epsilon.astype(kind)
    c = moments.least + (level if removes else -level)
    slip = 6.0 * moments.unit * (size * len(moments.pairs) + epsilon)  # of c
    rows = np.array([np.full(epsilon.size, -math.inf), np.where((c > -slip) | removes, 0.0, -math.inf)])
    used = np.flatnonzero(c > 4.0 * slip)
    index = np.floor(np.log(np.asarray(c[used] / moments.least, dtype=np.float64)) / moments.cell)
    for cell in np.unique(index):
        chosen = used[index == cell]
        low, high = (size * math.exp((cell + end) * moments.cell) for end in (-1e-9, 1.0 + 1e-9))
        log_scale, value, error = _contour(moments, low, high, c[chosen])
        error = error + 1.01 * slip[chosen]  # J changes by P(U < c) times that of c at most, less than e^scale
        if removes:
            scale = np.exp(level[chosen] + log_scale)
            grown = np.expm1(level[chosen])
            rounding = scale * np.abs(value) * (2.0 + np.abs(log_scale)) + grown
            wrong = scale * error * (1.0 + 1e-12) + 16.0 * moments.unit * rounding
            ends = [scale * value - grown + side * wrong for side in (-1.0, 1.0)]
            log_scale = np.zeros(chosen.size)
        else:
            ends = [value - error, value + error]
        for row, outward, end in zip(rows, (-1.0, 1.0), ends, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                logs = np.log(np.maximum(np.asarray(end, dtype=np.float64), 0.0))
                row[chosen] = logs + log_scale + outward * 1e-15 * (2.0 + np.abs(log_scale) + np.abs(logs))
    rows[0, np.isnan(rows[0])], rows[1, np.isnan(rows[1])] = -math.inf, 0.0
    return np.asarray(np.minimum(rows, 0.0))


def _contour(moments: _Moments, lowest: float, highest: float, c: Any) -> tuple[FloatArray, Any, FloatArray]:
    """J at each c between two, as e^scale times a value with its error."""
    middle, turn = 0.5 * (lowest + highest), moments.turn
    mantissa, exponent = np.frexp(_TILTS / middle)
    tilts = np.ldexp(np.round(mantissa * 2.0**20), exponent - 20)  # of few bits: halves of multiples of t are exact
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        log_moments, log_growth = moments.at_tilts(tilts)
    exponents = middle * tilts + log_moments - np.log(tilts * (tilts + 1.0))
    best = int(np.argmin(np.where(np.isnan(exponents), math.inf, exponents)))
    t, log_moment = float(tilts[best]), float(log_moments[best])
    error = math.expm1(min(float(log_growth[best]), 700.0)) / (2.0 * t)
    direction = complex(-math.sin(turn), math.cos(turn))

    def log_bound(z: Any) -> FloatArray:
        """Of |f z (z + 1)|, less the scale, at all c between both ends."""
        distance = z.real - t
        return np.asarray(np.maximum(lowest * distance, highest * distance) + moments.log_sizes(z) - log_moment)

    aim = math.log(0.05 * moments.unit / t)
    ends = [0.0, t]
    while True:
        fall = lowest * math.sin(turn) * (ends[-1] * math.cos(turn)) ** 2
        beyond = float(log_bound(np.array([t + direction * ends[-1]]))[0])
        beyond = beyond - math.log(fall) if fall > 0.0 else math.inf  # a fall that underflows
        if beyond < aim or len(ends) > 60:
            break
        ends.append(2.0 * ends[-1])
    error += math.exp(min(beyond, 700.0)) * 1.001
    low, high = np.array(ends[:-1]), np.array(ends[1:])
    cells: list[tuple[FloatArray, FloatArray]] = []
    for halving in range(_MOST_HALVINGS + 1):
        centre, half = 0.5 * (low + high), 0.5 * (high - low)
        along, across = ellipse_axes(half)
        z = t + direction * centre
        reach = np.hypot(along, across)
        near, nearer = np.abs(z) * (1.0 - 1e-12) - reach, np.abs(z + 1.0) * (1.0 - 1e-12) - reach
        corners = [z + direction * (side * along + 1j * end * across) for side in (-1, 1) for end in (-1, 1)]
        bound = np.maximum.reduce([log_bound(corner) for corner in corners])
        known = (near > 0.0) & (nearer > 0.0)
        bound = np.where(known, bound - np.log(np.where(known, near, 1.0) * np.where(known, nearer, 1.0)), math.inf)
        quadrature = log_gauss_error(bound, _NODES) + np.log(half)
        used = (quadrature < aim) | (halving == _MOST_HALVINGS) | (low.size > _MOST_CELLS)
        error += float(np.exp(np.minimum(quadrature[used], 700.0)).sum()) * 1.001
        cells.append((centre[used], half[used]))
        low, centre, high = low[~used], centre[~used], high[~used]
        low, high = np.concatenate([low, centre]), np.concatenate([centre, high])
        if not low.size:
            break
    kind: Any = type(moments.least)
    centre, half = (np.concatenate(column).astype(kind)[:, None] for column in zip(*cells, strict=True))
    x, _, weights = gauss_legendre(_NODES, extended=kind is np.longdouble)
    s, weights = (centre + half * (2 * x - 1)).ravel(), (2 * half * weights).ravel()
    path = t + s * direction
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number tells nothing
        logs, growth = moments.log_products(path)
        shift = np.asarray(logs, dtype=np.complex128)
        growth = np.expm1(np.minimum(growth, 700.0))
        growth += moments.unit * (96.0 + 8.0 * np.abs(shift) + 4.0 * abs(log_moment))
        growth += 8.0 * moments.unit * highest * np.asarray(np.abs(path), dtype=np.float64)
        factors = weights * direction / (path * (path + 1))
        terms = factors * np.exp(c[:, None] * (path - t) + (logs - log_moment))
        value = terms.imag.sum(axis=1) / _pi(kind)
        errors = (np.asarray(np.abs(terms), dtype=np.float64) * growth).sum(axis=1) / math.pi
        errors = (errors + error) * (1.0 + 1e-9) + np.asarray(np.abs(value), dtype=np.float64) * 16.0 * moments.unit
    return np.asarray(c * t + log_moment, dtype=kind), value, errors
