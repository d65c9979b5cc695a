"""Hockey-stick divergences of normal distributions of any covariances, by sums along contours that are bent.

Notation of ``gaussian_spectra``: S is the sum of the losses of independent coordinates y, w, each ``counts`` times, and

    log F(z) = z (c - epsilon) - sum log(1 - z y) / 2 + z (1 + z) / 2 sum w^2 / (1 - z y) - log k(z)

with k = z (z + 1) for delta(epsilon), z + 1 for its tail e^epsilon Q(S > epsilon), -z for P(S <= epsilon). Each is the
integral of F over a line Re z = t, divided by 2 pi i, with t between 0 (-1 for the tail) and the least 1 / y > 0, for
the last between the largest 1 / y < 0 and 0. F is analytic but for cuts of the real axis outside of this interval. On
the line it falls as a power of |z| alone, so that the path is bent to the side where e^(-epsilon z) falls:

    z(u) = t + s R (sin a (cosh u - 1)) + i R cos a sinh u,    s = 1 or -1, |u| <= U,

which for u + i b is the same with the angle a + b or a - b. Powers of |z| are exponentials in u. The path goes on as it
is, or to the line at the height W of its end and along the line.

Bounds. With f(u) = F(z(u)) z'(u) / (2 pi i), U = (N + 1/2) h and a strip |Im u| <= b on which f is analytic, the
trapezoidal rule of 2 N + 1 points errs by at most (integrals of |f| over both edges of the strip) / (e^(2 pi b / h) -
1) + (integral of |f| over one end of the strip): f / (1 - e^(-2 pi i u / h)) has the residues of the rule, and what is
added to f has at most half of its size at the ends. All these integrals, and that from z(U) to the line, are bounded by
cells: on a disc of radius r about x, of at most half the distance of the next singularity, |log F(z) - log F(x)| is at
most |(log F)'(x)| r + B r^2 / 2 with

    B = sum 2 |y|^2 / |1 - x y|^2 + 8 (1 + y) w^2 / |1 - x y|^3 + 4 / |x|^2 + 4 / |x + 1|^2 >= |(log F)''|.

Beyond U on the path, where no y is 0, partial fractions give log F = z s + g + sum (1 + y) w^2 / (2 y^2 (1 - z y)) -
sum log(1 - z y) / 2 - log k with s = c - epsilon - sum w^2 / (2 y) and a constant g: |F| falls as e^(-|s Re z|), but
for factors that are bounded at z(U). On the line beyond W, |F| falls faster than w^(-1 - p), p = 1 for delta, else half
the number of the coordinates with |v| > 1, but for the factor prod (1 + 1 / v^2)^(1/4) over these, v = W y / (1 - t y).

What is uncertain of the coordinates moves log F by at most |z| c_error + sum eta / (2 - 2 eta) + |z (1 + z)| / 2
(r / (1 - r) |q|^2 + (2 |q| o + o^2) / (1 - r)), with eta the bounds of the moves of y times |z| / |1 - z y|, r as in
``gaussian_spectra``, |q|^2 = sum w^2 / |1 - z y| and o^2 the same of the errors of w.
"""

# bounds: proved - roundings of log F, relative to the sizes of its terms

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...kernels import _gaussian_sums
from .gaussian_spectra import GaussianSpectrum

Quantity = Literal["delta", "tail", "lower"]
_POLES: dict[Quantity, tuple[float, ...]] = {"delta": (0.0, -1.0), "tail": (-1.0,), "lower": (0.0,)}  # of 1 / k
LogRows = tuple[FloatArray, FloatArray, FloatArray]  # values, lower and upper bounds of logarithms

# bound: none - the angle of the path and half the width of the strip: directions stay within 45 degrees of the line,
#    where also coordinates with y = 0 fall
_ANGLE, _STRIP = 0.38, 0.32
# bound: none - log of the relative size of what is left out, which the bounds contain
_AIM = 43.0
_STEP = 2 * math.pi * _STRIP / (_AIM + 1.0)  # of the trapezoidal rule along the path
_ENDS = np.unique((40 * 1.11 ** np.arange(48)).astype(np.int64))  # numbers of points that are tried
_END_CELLS, _RETURN_CELLS = 16, 96
_RADII = (1.0, 0.5, 2.0)  # R in units of the width of the saddle
# bound: none - what a path may leave out, relative to its rounding, to be the last one
_NEGLIGIBLE = 0.1
# The search for a saddle point: rounds, each of which divides what is left by 9, to 1e-10 of its distance
_ROUNDS, _DIVISION = 13, np.arange(1, 9) / 9


class _Coordinates(NamedTuple):
    """Coordinates of all pairs, with the errors of the head; ``rows`` are the arrays below as one."""

    rows: FloatArray

    y: FloatArray
    square: FloatArray  # counts w^2
    counts: FloatArray
    b: FloatArray
    error_square: FloatArray  # counts times squares of the errors of w
    e: FloatArray
    c: float
    c_error: float


class _LogF(NamedTuple):
    """log F at points, its derivative, B, half the distance of singularities, and the error of log F."""

    value: Any
    slope: Any
    bend: FloatArray
    reach: FloatArray
    error: FloatArray


def gaussian_sum_bounds(
    spectra: Sequence[tuple[GaussianSpectrum, float]], epsilon: FloatArray, quantity: Quantity = "delta"
) -> LogRows:
    """Logarithms of delta, its tail or P(S <= epsilon), of spectra with their counts, at a vector of epsilons."""
    coordinates = _joined(spectra)
    n = epsilon.size
    value, lower, upper = np.zeros(n), np.full(n, -np.inf), np.zeros(n)
    if quantity == "tail":
        value, upper = epsilon.copy(), epsilon.copy()
    if quantity != "lower":
        least, most = largest_gaussian_loss(spectra)
        beyond, near = epsilon >= most, (epsilon >= least) & (epsilon < most)
        value[beyond] = upper[beyond] = -np.inf
        with np.errstate(divide="ignore", invalid="ignore"):
            if quantity == "delta":
                value[near] = upper[near] = np.minimum(np.log((most - epsilon[near]) * (1 + 1e-14)), 0.0)
        todo = np.flatnonzero((epsilon < least) & (epsilon < np.inf))
    else:
        todo = np.flatnonzero(epsilon < np.inf)
    if todo.size:
        with np.errstate(all="ignore"):
            positions = _saddles(coordinates, epsilon[todo], quantity)
            for i, t in zip(todo.tolist(), positions.tolist(), strict=True):
                low, high = _bounds_at(coordinates, float(epsilon[i]), quantity, t)
                lower[i], upper[i] = max(low, lower[i]), min(high, upper[i])
                value[i] = 0.5 * (lower[i] + upper[i]) if lower[i] > -np.inf else upper[i]
    return np.clip(value, lower, upper), lower, upper


def largest_gaussian_loss(spectra: Sequence[tuple[GaussianSpectrum, float]]) -> tuple[float, float]:
    """Bounds of the largest loss c - sum w^2 / (2 y), finite where all y are negative; at least 0."""
    low = high = 0.0
    for item, count in spectra:
        part = float((item.b / np.abs(item.y)).max()) if (item.y != 0.0).all() else math.inf
        if not ((item.y < 0.0).all() and part < 0.5):
            sure = ((item.y + item.b + item.e * np.abs(item.y)) / (1 - item.e) < 0.0).all()
            return (0.0, math.inf) if sure or (item.y - item.b < 0.0).all() else (math.inf, math.inf)
        q = math.sqrt(math.fsum((item.counts * item.w**2 / -item.y).tolist()))
        o = math.sqrt(math.fsum((item.counts * item.w_error**2 / -item.y).tolist()))
        error = part / (1 - part) * q * q + (2 * q * o + o * o) / (1 - part)
        total = item.c + 0.5 * q * q
        error = 0.5 * error + item.c_error + 8 * UNIT_ROUNDOFF * (abs(item.c) + q * q)
        low, high = low + count * (total - error), high + count * (total + error)
    margin = 4 * len(spectra) * UNIT_ROUNDOFF
    return max(0.0, low - margin * abs(low)), max(0.0, high + margin * abs(high))


def _joined(spectra: Sequence[tuple[GaussianSpectrum, float]]) -> _Coordinates:
    def column(name: str) -> FloatArray:
        return np.concatenate([getattr(spectrum, name) for spectrum, _ in spectra])

    counts = np.concatenate([spectrum.counts * count for spectrum, count in spectra])
    e = np.concatenate([np.full(spectrum.y.size, spectrum.e) for spectrum, _ in spectra])
    c = math.fsum(spectrum.c * count for spectrum, count in spectra)
    c_error = math.fsum(spectrum.c_error * count for spectrum, count in spectra) * (1 + 1e-12)
    c_error += 4 * UNIT_ROUNDOFF * math.fsum(abs(spectrum.c) * count for spectrum, count in spectra)
    rows = np.stack([column("y"), counts * column("w") ** 2, counts, column("b"), counts * column("w_error") ** 2, e])
    return _Coordinates(rows, rows[0], rows[1], rows[2], rows[3], rows[4], rows[5], c, c_error)


def _interval(x: _Coordinates, quantity: Quantity) -> tuple[float, float]:
    """The interval of the real axis on which t may lie."""
    right = 1 / float(x.y.max()) if x.y.max() > 0 else math.inf
    left = 1 / float(x.y.min()) if x.y.min() < 0 else -math.inf
    return (left, 0.0) if quantity == "lower" else (-1.0 if quantity == "tail" else 0.0, right)


def _saddles(x: _Coordinates, epsilon: FloatArray, quantity: Quantity) -> FloatArray:
    """The t of the least F on the interval, by division of the logarithm of the distance from its singular end."""
    left, right = _interval(x, quantity)
    end, side, length = (right, -1.0, right - left) if quantity == "lower" else (left, 1.0, right - left)

    def tilt_at(v: FloatArray) -> FloatArray:
        distance = np.exp(v)
        return end + side * (distance / (1 + distance / length))

    low, width = np.full(epsilon.size, -600.0), 1200.0
    for _ in range(_ROUNDS):  # falls are a first part of the points
        points = low[:, None] + width * _DIVISION
        falls = side * _slope(x, tilt_at(points).ravel(), np.repeat(epsilon, len(_DIVISION)), quantity) < 0.0
        width /= 1 + len(_DIVISION)
        low += width * falls.reshape(points.shape).sum(axis=1)
    return tilt_at(low + 0.5 * width)


def _slope(x: _Coordinates, t: FloatArray, epsilon: FloatArray, quantity: Quantity) -> FloatArray:
    """The derivative of log F on the real axis."""
    inverse = 1 / np.maximum(1 - np.multiply.outer(t, x.y), 1e-150)  # positive but for rounding
    slope = x.c - epsilon + 0.5 * (inverse @ (x.counts * x.y)) + (0.5 + t) * (inverse @ x.square)
    slope += 0.5 * t * (1 + t) * (inverse**2 @ (x.square * x.y))
    return np.asarray(slope - sum(1 / (t - pole) for pole in _POLES[quantity]))


def _log_f(x: _Coordinates, z: Any, epsilon: float, quantity: Quantity, *, angles: bool = False) -> _LogF:
    """log F at points, its imaginary part right only with ``angles``."""
    z = np.asarray(z, dtype=np.complex128)
    size = np.abs(z)
    result = _gaussian_sums.coordinate_sums(z.real.copy(), z.imag.copy(), x.rows, angles)
    logs, turns = result[:2]
    means, first, second = result[2:8:2] + 1j * result[3:8:2]
    reach, bend, absolute, shifted, eta, part, o, terms, quadratic = result[8:]
    product = z * (1 + z)
    poles = _POLES[quantity]
    kernel = np.prod([z - pole for pole in poles], axis=0) * (-1 if quantity == "lower" else 1)
    value = z * (x.c - epsilon) - 0.5 * (logs + 1j * turns) + 0.5 * product * means - np.log(kernel)
    slope = (x.c - epsilon) + 0.5 * first + 0.5 * (1 + 2 * z) * means + 0.5 * product * second
    near = [np.abs(z - pole) for pole in poles]
    for pole, distance in zip(poles, near, strict=True):
        slope, bend = slope - 1 / (z - pole), bend + 4 / distance**2
    # what is uncertain, and rounding
    error = size * x.c_error + 0.5 * shifted
    error += 0.5 * np.abs(product) / (1 - part) * (part * absolute + 2 * np.sqrt(absolute * o) + o)
    error = np.where((part < 0.5) & (eta < 0.5), error * (1 + 1e-9), np.inf)
    sizes = size * (abs(x.c) + abs(epsilon)) + terms + np.abs(product) * quadratic + np.abs(value) + 4
    error += (12 + x.rows.shape[1]) * UNIT_ROUNDOFF * sizes
    return _LogF(value, slope, bend, np.minimum.reduce([reach, *near]) / 2, error)


def _bounds_at(x: _Coordinates, epsilon: float, quantity: Quantity, t: float) -> tuple[float, float]:
    """The best bounds of paths that bend to either side, until what one leaves out is small."""
    low, high = -math.inf, math.inf
    side = -1.0 if not _least_slope(x) <= epsilon else 1.0
    for radius in _RADII:
        for s in (side, -side):
            bounds = _along_path(x, epsilon, quantity, t, s, radius)
            low, high = max(low, bounds[0]), min(high, bounds[1])
            if bounds[2]:
                return low, high
    return low, high


def _least_slope(x: _Coordinates) -> float:
    """c - sum w^2 / (2 y), the slope of log F + epsilon z far away; NaN where a coordinate is of equal variances."""
    return x.c - 0.5 * float((x.square / np.where(x.y == 0.0, np.nan, x.y)).sum())


def _slope_error(x: _Coordinates) -> float:
    """A bound of what is uncertain of it."""
    part = float(((x.b + 1e-15 * np.abs(x.y)) / np.abs(x.y)).max())
    q, o = (float((side / np.abs(x.y)).sum()) for side in (x.square, x.error_square))
    return x.c_error + (part * q + 2 * math.sqrt(q * o) + o) / (1 - part) if part < 0.5 else math.inf


def _along_path(
    x: _Coordinates, epsilon: float, quantity: Quantity, t: float, side: float, width: float
) -> tuple[float, float, bool]:
    """Bounds by the trapezoidal rule on one path, and whether they are as narrow as rounding lets them be."""
    left, right = _interval(x, quantity)
    middle = np.array([t])
    at = _log_f(x, middle, epsilon, quantity)
    top = float(at.value.real[0])
    h = 1 - t * x.y
    curvature = float((0.5 * x.counts * (x.y / h) ** 2 + x.square * (1 + x.y) / h**3).sum())
    curvature += sum((t - pole) ** -2 for pole in _POLES[quantity])
    moves = [side * (math.sin(_ANGLE + item) - math.sin(_ANGLE)) for item in (_STRIP, -_STRIP)]
    radius = width / math.sqrt(curvature)
    for move in moves:
        radius = min(radius, 0.75 * ((right - t) if move > 0 else (t - left)) / abs(move))
    if not (math.isfinite(top) and 0.0 < radius < 1e300):
        return -math.inf, math.inf, False
    sine, cosine = math.sin(_ANGLE), math.cos(_ANGLE)

    def path(u: Any, angle: float) -> Any:
        return t + side * radius * (math.sin(angle) * np.cosh(u) - sine) + 1j * radius * math.cos(angle) * np.sinh(u)

    def line_bound(heights: Any) -> Any:
        """Logarithm of the integral of |F| along the line beyond the heights."""
        v = np.multiply.outer(heights, np.abs(x.y / h))
        turns = v > 1.0
        power = 1.0 if quantity == "delta" else 0.5 * turns @ x.counts
        growth = 0.25 * (np.where(turns, np.log1p(1 / v**2), 0.0) @ x.counts)
        result = _log_f(x, t + 1j * heights, epsilon, quantity)
        log_pole_factor = np.log(heights) + sum(np.log(np.abs(t + 1j * heights - p) / heights) for p in (0.0, -1.0))
        return result.value.real + log_pole_factor + growth + 16 * result.error - np.log(power) + 0.01

    def path_bound(ends: Any) -> Any:
        """The same of |F z'| on the path beyond the ends; infinite where it need not fall."""
        rate = side * (epsilon - _least_slope(x)) - _slope_error(x)
        if not rate > 0.0:
            return np.full(ends.size, np.inf)
        z = path(ends, _ANGLE)
        outcome = _log_f(x, z, epsilon, quantity)
        heights = np.multiply.outer(z.imag, np.abs(x.y))
        nearer = np.log(np.abs(1 - np.multiply.outer(z, x.y)) / heights) @ (0.5 * x.counts)
        growth = 1.01 * (1 / heights) @ (np.maximum(1 + x.y + x.b, 0.0) * x.square / x.y**2)
        kernel = sum(np.log(np.abs(z - p) / z.imag) for p in (0.0, -1.0))
        return outcome.value.real + nearer + growth + kernel + 16 * outcome.error + math.log(1.3 / (sine * rate))

    ends = (_ENDS + 0.5) * _STEP
    ends = ends[ends < 600.0]
    beyond = path_bound(ends)
    heights = radius * cosine * np.sinh(ends)
    corners = (_log_f(x, path(ends, _ANGLE + b), epsilon, quantity).value.real for b in (_STRIP, -_STRIP))
    left_out = np.maximum(np.fmin(beyond, line_bound(heights)), np.maximum(*corners) + np.log(heights))
    fits = left_out < top + math.log(radius) - _AIM
    if np.isnan(left_out).all():
        return -math.inf, math.inf, False
    index = int(np.argmax(fits)) if fits.any() else int(np.nanargmin(left_out))
    n = int(_ENDS[index])
    end = (n + 0.5) * _STEP
    # the rule
    u = np.arange(n + 1) * _STEP
    points = _log_f(x, path(u, _ANGLE), epsilon, quantity, angles=True)
    turn = radius * (side * sine * np.sinh(u) + 1j * cosine * np.cosh(u)) / 1j
    sizes = np.exp(points.value.real - top) * np.abs(turn)
    terms = (np.exp(points.value - top) * turn).real
    weights = np.where(u == 0.0, 1.0, 2.0) * _STEP
    rounding = float(weights @ (sizes * np.expm1(points.error + 16 * UNIT_ROUNDOFF * (4 + np.abs(points.value)))))

    def integral(z: Any, reach: Any, length: Any) -> float:
        """Upper bound of the integral of |F| e^-top along cells of these lengths in discs about z."""
        answer = _log_f(x, z, epsilon, quantity)
        logs = answer.value.real - top + np.abs(answer.slope) * reach + 0.5 * answer.bend * reach**2 + 16 * answer.error
        total = float((np.exp(logs) * length).sum()) * (1 + 1e-9)
        return total if (reach <= answer.reach).all() and total == total else math.inf

    step = end / (n + 1)
    u = (np.arange(n + 1) + 0.5) * step
    speed = 1.0001 * radius * np.cosh(u + step / 2)
    edges = math.fsum(integral(path(u, _ANGLE + b), speed * step / 2, speed * step) for b in (_STRIP, -_STRIP))
    error = 2 * edges / math.expm1(2 * math.pi * _STRIP / _STEP)
    step = 2 * _STRIP / _END_CELLS
    angles = _ANGLE - _STRIP + (np.arange(_END_CELLS) + 0.5) * step
    speed = np.full(_END_CELLS, 1.0001 * radius * math.cosh(end))
    corners = t + side * radius * (np.sin(angles) * math.cosh(end) - sine)
    corners = corners + 1j * radius * np.cos(angles) * math.sinh(end)
    error += integral(corners, speed * step / 2, speed * step)
    remainder = 2 * math.exp(min(float(beyond[index]) - top, 700.0))
    if not remainder < error:
        corner = complex(path(np.array([end]), _ANGLE)[0])
        length = abs(corner.real - t) / _RETURN_CELLS
        way = t + math.copysign(1.0, corner.real - t) * (np.arange(_RETURN_CELLS) + 0.5) * length + 1j * corner.imag
        returned_rest = 2 * integral(way, np.full(_RETURN_CELLS, length / 2 * (1 + 1e-14)), length)
        remainder = min(remainder, returned_rest + 2 * math.exp(float(line_bound(np.array([corner.imag]))[0]) - top))
    error += remainder
    total = float(weights @ terms)
    rounding += 32 * UNIT_ROUNDOFF * float(weights @ sizes)
    error += rounding
    if not math.isfinite(error):
        return -math.inf, math.inf, False
    shift = top - math.log(2 * math.pi)
    outward = 8 * UNIT_ROUNDOFF * (abs(top) + 4.0)
    low = math.log(total - error) + shift - outward if total > error else -math.inf
    high = math.log(total + error) + shift + outward if total + error > 0.0 else math.inf
    return low, high, error - rounding <= _NEGLIGIBLE * rounding
