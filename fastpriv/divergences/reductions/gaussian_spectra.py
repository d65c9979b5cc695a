"""Two Gaussians in d dimensions as independent coordinates, with what is uncertain of them; KL and Renyi divergences.

Notation: P = N(m, S), Q = N(n, T), gap = S - T. A congruence G with G T G' = I + E and G gap G' = diag(y) + F turns the
loss log dP/dQ into a sum over coordinates; its moments are

    log E_P e^(z L) = z c - log det(I + E - z (diag(y) + F)) / 2 + log det(I + E) / 2
                      + z (1 + z) / 2 w' (I + E - z (diag(y) + F))^-1 w,
    c = (log det T - log det S) / 2,  w = G (m - n).

Enclosure. |v' E v| <= e |v|^2 with e = |E| (Frobenius); |v' F v| <= sum b_i v_i^2 with b_i = f (|y_i| + s) and f the
norm of F with rows and columns divided by the roots of |y_i| + s, for any s > 0. By the theorem of Courant and Fischer
the ascending eigenvalues of T^-1 gap lie within (b_i + e |y_i|) / (1 - e) of the ascending y_i. With h_i = 1 - z y_i,
r = max (e + |z| b_i) / |h_i| < 1, the quadratic form at (E, F) differs from sum w_i^2 / h_i by at most r / (1 - r)
sum w_i^2 / |h_i|: factor |h_i|^(1/2) out on both sides.

With z = a - 1 for the order a this is z D_a, which is infinite exactly where H = T - z gap is not positive definite
(van Erven and Harremoes 2014; Gil, Alajaji and Linder 2013):

    D_a(P||Q) = -1/2 sum (log(1 + y_i) + log(1 - z y_i) / z) + a/2 w' (I + E - z (diag(y) + F))^-1 w,
    KL(P||Q)  = 1/2 sum (y_i - log(1 + y_i)) + 1/2 w' (I + E)^-1 w

with the eigenvalues y_i of T^-1 gap. Each term of either sum grows with |y_i| on both sides of 0, so that enclosures of
the y_i give enclosures of it.

G is refined in extended precision (Ogita and Aishima 2018) and taken as it comes; E and F are formed in extended
precision, and their rounding is bounded entry by entry. Of independent coordinates y and w are computed directly; the
square of a standard deviation that is no double may stand for a variance that was rounded when its root was taken.
"""

# bounds: proved - docs/proofs/roundings.md, 13.23: rounding of eigenvalues, determinants and sums; n terms of a product
#    within 1.01 n u

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ...base.estimate import Estimate
from ...base.exact_linear_algebra import unit_diagonal_scaling
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, LongDoubleArray
from ...base.values import distinct_rows
from ...distributions import GaussianMixture
from ..one_dimension.closed_forms import excess, variance_term

# bound: proved - half the spacing of extended precision at 1
_EXTENDED_ROUNDOFF = float(np.finfo(np.longdouble).eps) / 2
_MOST_EXTENDED = 256  # dimensions up to which products of matrices are taken in extended precision
_METHOD = "closed form, simultaneous diagonalisation"  # ``method`` of a divergence of two normal distributions
_FLOORS = (0.0, 0.1, 0.5, 1.0)  # quantiles of |y| that are tried for s


@dataclass(frozen=True)
class GaussianSpectrum:
    """Coordinates (y, w), each ``counts`` times, with the notation and the bounds of the head.

    ``b`` are the b_i, ``w_error`` bounds of the errors of w, ``e`` the norm of E, ``c`` with its error ``c_error``.
    """

    y: FloatArray
    w: FloatArray
    counts: FloatArray
    b: FloatArray
    w_error: FloatArray
    e: float
    c: float
    c_error: float


@lru_cache(maxsize=32)
def gaussian_spectrum(p: GaussianMixture, q: GaussianMixture) -> GaussianSpectrum | None:
    """The coordinates of two normal distributions; None where nothing can be proved in doubles."""
    if p.form != "full" and q.form != "full":
        return _of_independent_coordinates(p, q)
    powers, _ = unit_diagonal_scaling(_variances(q)[0].astype(np.float64))
    shift = powers.astype(np.int32)
    with np.errstate(all="ignore"):
        (s, s_error), (t, t_error) = (
            [np.ldexp(np.ldexp(k, shift[:, None]), shift[None, :]) for k in _variances(side)] for side in (p, q)
        )
        z = np.ldexp(p.means[0].astype(np.longdouble) - q.means[0], shift)
        z_error = _EXTENDED_ROUNDOFF * np.abs(z).astype(np.float64)
        gap = s - t
        gap_error = s_error + t_error + _EXTENDED_ROUNDOFF * np.abs(gap)
        s_error, t_error, gap_error = (error.astype(np.float64) for error in (s_error, t_error, gap_error))
        return _enclosed((s, s_error), (t, t_error), (gap, gap_error), z, z_error)


def spectrum_of_sum(signal: Any, noise: FloatArray) -> GaussianSpectrum | None:
    """The coordinates of N(0, signal + noise) against N(0, noise), of matrices that are taken as exact."""
    powers, t = unit_diagonal_scaling(noise)
    shift = powers.astype(np.int32)
    with np.errstate(all="ignore"):
        gap = np.ldexp(np.ldexp(np.asarray(signal, np.longdouble), shift[:, None]), shift[None, :])
        t = t.astype(np.longdouble)
        s, exact, z = gap + t, np.zeros(t.shape), np.zeros(len(t))
        s_error = _EXTENDED_ROUNDOFF * np.abs(s).astype(np.float64)
        return _enclosed((s, s_error), (t, exact), (gap, exact), z.astype(np.longdouble), z)


def eigenvalue_bounds(spectrum: GaussianSpectrum) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of the eigenvalues of T^-1 gap."""
    y = spectrum.y
    uncertainty = (1 + 1e-9) * (spectrum.b + spectrum.e * np.abs(y)) / (1 - spectrum.e) + 4 * UNIT_ROUNDOFF * np.abs(y)
    return y - uncertainty, y + uncertainty


def renyi_divergence(p: GaussianMixture, q: GaussianMixture, order: float) -> Estimate | None:
    """D_order(P||Q) of a finite order, KL(P||Q) for order 1; None where nothing can be proved."""
    spectrum = gaussian_spectrum(p, q)
    if spectrum is None:
        return None
    b, (below, above) = Fraction(order) - 1, eigenvalue_bounds(spectrum)
    if order > 1.0 and float(below.max()) * (order - 1.0) > 1 + 8 * UNIT_ROUNDOFF:
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")

    def term(y: float) -> float:
        x = Fraction(y)
        if x <= -1 or b * x >= 1:
            return math.inf
        if b == 0:
            return excess(x) / 2
        if b < Fraction(-1, 2):  # the other direction at order 1 - a
            return float((b + 1) / -b) * variance_term(-x / (1 + x), -b - 1)
        return variance_term(x, b)

    # the terms grow with |y|, each right to 64 ulp, 128 units
    ends = np.array([(term(x), term(y)) for x, y in zip(below.tolist(), above.tolist(), strict=True)])
    lowest = np.where((below <= 0.0) & (above >= 0.0), 0.0, ends.min(axis=1))
    low, high = (float(spectrum.counts @ column) for column in (lowest, ends.max(axis=1)))
    error = (128 + len(below)) * UNIT_ROUNDOFF
    low, high = low * (1 - error), high * (1 + error)
    least, most = _quadratic_form(spectrum, order - 1.0)
    low, high = low if math.isfinite(low) else 0.0, high + order * most / 2
    low = (low + order * least / 2) * (1 - 8 * UNIT_ROUNDOFF)
    high *= 1 + 8 * UNIT_ROUNDOFF
    value = (low + high) / 2 if math.isfinite(high) else low
    return Estimate(value, low, high, kind="certified", unit="nats", method=_METHOD)


def _quadratic_form(spectrum: GaussianSpectrum, z: float) -> tuple[float, float]:
    """Bounds of w' (I + E - z (diag(y) + F))^-1 w; 0 and infinity where that proves nothing."""
    h = 1.0 - z * spectrum.y
    if not h.min() > 0.0:
        return 0.0, math.inf
    rounding = 4 * UNIT_ROUNDOFF * (1.0 + np.abs(z * spectrum.y))
    part = float(((spectrum.e + abs(z) * spectrum.b + rounding) / h).max()) * (1 + 1e-9)
    size = np.abs(spectrum.w)
    least = float(spectrum.counts @ (np.maximum(size - spectrum.w_error, 0.0) ** 2 / h))
    most = float(spectrum.counts @ ((size + spectrum.w_error) ** 2 / h))
    error = (len(h) + 8) * UNIT_ROUNDOFF
    return least / (1 + part) * (1 - error), most / (1 - part) * (1 + error) if part < 1.0 else math.inf


def equal_covariances(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether two normal distributions have one covariance, so that they differ along one line alone."""
    if "full" in (p.form, q.form):
        return p.form == q.form and np.array_equal(p.covariances[:1], q.covariances[:1])  # type: ignore[index]
    return np.array_equal(first_sigmas(p), first_sigmas(q))


def _variances(gaussian: GaussianMixture) -> tuple[LongDoubleArray, LongDoubleArray]:
    """The covariance in extended precision, and bounds of its errors."""
    if gaussian.covariances is not None:
        k = np.asarray(gaussian.covariances[0]).astype(np.longdouble)
        return k, np.zeros_like(k)
    sigmas = first_sigmas(gaussian)
    squares = sigmas.astype(np.longdouble) ** 2
    return np.diag(squares), np.diag(squares * (_root_errors(sigmas) + 2 * _EXTENDED_ROUNDOFF))


def first_sigmas(gaussian: GaussianMixture) -> FloatArray:
    """Standard deviations of the coordinates of the first component."""
    return np.broadcast_to(gaussian.sigmas.reshape(len(gaussian), -1)[0], (gaussian.dimension,))


def _root_errors(sigmas: FloatArray) -> FloatArray:
    """Relative errors of variances: 0 where the square of the standard deviation is a double."""
    whole = np.ldexp(np.frexp(sigmas)[0], 26)
    return np.where(whole == np.floor(whole), 0.0, 2.5 * UNIT_ROUNDOFF)


def _of_independent_coordinates(p: GaussianMixture, q: GaussianMixture) -> GaussianSpectrum | None:
    s, t = first_sigmas(p), first_sigmas(q)
    with np.errstate(over="ignore", invalid="ignore"):
        y, w = (s - t) / t * ((s + t) / t), (p.means[0] - q.means[0]) / t
    errors = np.where(s == t, 0.0, _root_errors(s) + _root_errors(t))
    root = _root_errors(t)
    rows = np.stack([y, w, errors, root], axis=1)[(y != 0.0) | (w != 0.0)]
    if not np.isfinite(rows).all() or not (np.abs(rows[:, :2]) < 1e150).all() or not rows.size:
        return None
    rows, index = distinct_rows(rows)
    counts = np.bincount(index)
    y, w, errors, root = (np.ascontiguousarray(column) for column in rows.T)
    logs = np.where(np.abs(s - t) < 0.5 * t, np.log1p((s - t) / t), np.log(s) - np.log(t))
    sizes = np.where(np.abs(s - t) < 0.5 * t, np.abs(logs), np.abs(np.log(s)) + np.abs(np.log(t)))
    c_error = 14 * UNIT_ROUNDOFF * math.fsum(sizes.tolist()) + 0.51 * float(counts @ errors)
    b = 8 * UNIT_ROUNDOFF * np.abs(y) + 1.1 * errors * (1 + y)
    w_error = (4 * UNIT_ROUNDOFF + root) * np.abs(w)
    return GaussianSpectrum(y, w, counts.astype(np.float64), b, w_error, 0.0, -math.fsum(logs.tolist()), c_error)


def _enclosed(
    of_p: tuple[Any, FloatArray], of_q: tuple[Any, FloatArray], difference: tuple[Any, FloatArray], z: LongDoubleArray,
    z_error: FloatArray,
) -> GaussianSpectrum | None:
    """The coordinates from S, T, gap and z, each with bounds of its errors."""
    (s, s_error), (t, t_error), (gap, gap_error) = of_p, of_q, difference
    d = len(z)
    extended = d <= _MOST_EXTENDED
    kind, unit = (np.longdouble, _EXTENDED_ROUNDOFF) if extended else (np.float64, UNIT_ROUNDOFF)
    if not extended:  # the numbers are rounded once more
        parts = [(np.asarray(k, np.float64), e + unit * np.abs(k).astype(np.float64)) for k, e in (
            (s, s_error), (t, t_error), (gap, gap_error))]
        (s, s_error), (t, t_error), (gap, gap_error) = parts
    try:
        g = _congruence(t, gap, kind)
    except np.linalg.LinAlgError:
        return None
    size = np.abs(g).astype(np.float64)
    gamma = 1.01 * (2 * d + 8) * unit

    def form(k: Any, error: FloatArray) -> tuple[Any, FloatArray]:
        rounding = size @ (gamma * np.abs(k).astype(np.float64) + error) @ size.T
        return g @ k @ g.T, 1.01 * rounding + 1e-290

    ((e, e_rounding), (x, x_rounding), (m, m_rounding)) = form(t, t_error), form(gap, gap_error), form(s, s_error)
    e = e - np.eye(d)
    y = np.diagonal(x).astype(np.float64)
    order = np.argsort(y, kind="stable")
    remainder = np.abs(x).astype(np.float64) + x_rounding
    np.fill_diagonal(remainder, np.diagonal(x_rounding) + UNIT_ROUNDOFF * np.abs(y))
    norm = 1.01 * float(np.linalg.norm(np.abs(e).astype(np.float64) + e_rounding))
    diagonal = np.where(np.abs(y) < 0.5, 1 + np.diagonal(e) + np.diagonal(x), np.diagonal(m))
    if not (norm < 0.25 and (diagonal > 0).all() and (y > -1.0).all() and np.isfinite(remainder).all()):
        return None
    best: FloatArray | None = None
    least = math.inf
    for floor in np.quantile(np.abs(y), _FLOORS):
        scale = np.abs(y) + max(float(floor), 1e-280)
        b = 1.01 * float(np.linalg.norm(remainder / np.sqrt(np.outer(scale, scale)))) * scale
        shares = np.minimum(1.0, b / (np.abs(y) + 1e-280)).sum()
        if best is None or shares < least:
            least = shares
            best = b
    # log det S of the congruence: log det(I + N) is within |N|^2 / (2 - 2 |N|) of the trace of N
    roots = np.sqrt(diagonal.astype(np.float64))
    off = np.abs(m).astype(np.float64)
    np.fill_diagonal(off, 0.0)
    diagonal_error = np.diagonal(m_rounding) + np.diagonal(e_rounding) + np.diagonal(x_rounding)
    n = 1.01 * float(np.linalg.norm((off + m_rounding) / np.outer(roots, roots)))
    if not n < 0.25:
        return None
    logs = np.log1p(diagonal - 1) if extended else np.log(diagonal)
    terms = np.diagonal(e) - logs
    c = float(terms.sum() / 2)
    c_error = float((diagonal_error / diagonal).sum()) + n * n + norm * norm + float(np.diagonal(e_rounding).sum())
    c_error += (d + 8) * unit * float((np.abs(logs) + np.abs(terms)).sum()) + UNIT_ROUNDOFF * abs(c)
    w = g @ z.astype(kind)
    w_error = size @ (1.01 * (d + 8) * unit * np.abs(z).astype(np.float64) + z_error)
    means = np.asarray(w, np.float64)
    w_error = 1.01 * w_error + 2 * UNIT_ROUNDOFF * np.abs(means) + 1e-290
    assert best is not None
    vanishing = np.abs(y) <= best  # what may be 0 is 0
    y, best = np.where(vanishing, 0.0, y), np.where(vanishing, best + np.abs(y), best)
    return GaussianSpectrum(y[order], means[order], np.ones(d), best[order], w_error[order], norm, c, c_error)


def _congruence(t: Any, gap: Any, kind: Any) -> Any:
    """G with G T G' nearly I and G gap G' nearly diagonal."""
    start = np.linalg.inv(np.linalg.cholesky(t.astype(np.float64)))
    g = start.astype(kind)
    identity = np.eye(len(t), dtype=kind)
    for _ in range(3):  # orthonormal to the last digit, then diagonal as far as doubles see it
        for _ in range(2):
            g = g + (identity - g @ t @ g.T) @ g / 2
        x = (g @ gap @ g.T).astype(np.float64)
        g = np.linalg.eigh((x + x.T) / 2)[1].T.astype(kind) @ g
        if kind is np.float64:
            return g
    for _ in range(2):
        r, x = identity - g @ t @ g.T, g @ gap @ g.T
        y = np.diagonal(x)
        diagonal_differences = y[:, None] - y
        clear = np.abs(diagonal_differences) > 1e-7 * (np.abs(y)[:, None] + np.abs(y))
        step = np.where(clear, (x + y[:, None] * r) / np.where(clear, diagonal_differences, 1), r / 2)
        if not np.abs(step).max() < 0.1:
            break
        g = g + step @ g
    return g
