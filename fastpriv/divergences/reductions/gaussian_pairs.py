"""Two Gaussians in d dimensions whose covariances differ and are not both diagonal: KL and Renyi divergences.

Notation: P = N(m, S), Q = N(n, T), z = m - n; y_i the eigenvalues of T^-1 (S - T); a the order, b = a - 1. Then

    KL(P||Q)  = 1/2 sum_i (y_i - log(1 + y_i)) + 1/2 z' T^-1 z,
    D_a(P||Q) = -1/2 sum_i (log(1 + y_i) + log(1 - b y_i) / b) + a/2 z' H^-1 z,    H = T - b (S - T),

the latter infinite exactly where H is not positive definite (van Erven and Harremoes 2014; Gil, Alajaji and Linder
2013). Each term of either sum grows with |y_i| on both sides of 0, so enclosures of the y_i give enclosures of it.

Enclosure of y. A computed congruence G takes T to I + E and S - T to X = diag(x) + F; G is taken as it comes, E and F
are formed and their rounding bounded entry by entry. With e = |E| and f = |F| (Frobenius), both sorted,
|eigenvalue_i(X) - x_i| <= f (Weyl) and y_i is an eigenvalue of X times a factor between 1 / (1 + e) and 1 / (1 - e)
(Ostrowski 1959). Forming S - T first keeps the relative accuracy of nearly equal covariances.
"""

# bounds: tested by enclosures/test_reductions_to_factors - rounding of eigenvalue enclosures and sums; n terms of
#    a product within 1.01 n u

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ...base.estimate import Estimate
from ...base.exact_linear_algebra import (
    exact_difference,
    integer_determinant,
    inverse_quadratic_form,
    least_eigenvalue_bound,
    scaled_integers,
    unit_diagonal_scaling,
)  # fmt: skip
from ...base.numerics import SMALLEST_SUBNORMAL, UNIT_ROUNDOFF, FloatArray
from ...distributions import GaussianMixture
from ..one_dimension.closed_forms import excess, variance_term

__all__ = ["first_sigmas", "renyi_divergence"]

_MAX_EXACT_DIMENSION = 20  # up to which positive definiteness is decided in whole numbers
_METHOD = "closed form, simultaneous diagonalisation"  # ``method`` of an Estimate for two normal distributions


def renyi_divergence(p: GaussianMixture, q: GaussianMixture, order: float) -> Estimate | None:
    """D_order(P||Q), KL(P||Q) for order 1; None where nothing can be proved in doubles."""
    if order == 1.0:
        return _kl_divergence(p, q)
    b = Fraction(order) - 1
    spectrum = _spectrum(p, q)
    if spectrum is None:
        return None
    edge = math.inf if b <= 0 else 1 / float(b)
    if spectrum[1][-1] >= edge * (1 - 4 * UNIT_ROUNDOFF):
        definite = _is_definite(p, q, Fraction(order))
        if definite is None:
            return None
        if not definite:
            return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
    form = _renyi_quadratic_form(p, q, order)

    def term(y: float) -> float:
        if y <= -1.0 or 1 - b * Fraction(y) <= 0:
            return math.inf
        if b < Fraction(-1, 2):  # the other direction at order 1 - a
            x = Fraction(y)
            return float((b + 1) / -b) * variance_term(-x / (1 + x), -b - 1)
        return variance_term(Fraction(y), b)

    low, high = _sum_bounds(term, *spectrum)
    low = low if math.isfinite(low) else 0.0
    return _certified_estimate(low + order * form[0] / 2, high + order * form[1] / 2)


def _kl_divergence(p: GaussianMixture, q: GaussianMixture) -> Estimate | None:
    """KL(P||Q); None where T cannot be proved positive definite in doubles."""
    spectrum = _spectrum(p, q)
    form = _quadratic_form(exact_difference(p.means[0], q.means[0]), q)
    if spectrum is None or form is None:
        return None
    low, high = _sum_bounds(lambda y: excess(Fraction(y)) / 2 if y > -1.0 else math.inf, *spectrum)
    return _certified_estimate(low + form[0] / 2, high + form[1] / 2)


def _certified_estimate(low: float, high: float) -> Estimate | None:
    if not math.isfinite(low):
        return None
    low, high = max(0.0, low * (1 - 8 * UNIT_ROUNDOFF)), high * (1 + 8 * UNIT_ROUNDOFF)
    value = (low + high) / 2 if math.isfinite(high) else low
    return Estimate(value, low, high, kind="certified", unit="nats", method=_METHOD)


def _sum_bounds(term: Callable[[float], float], low: FloatArray, high: FloatArray) -> tuple[float, float]:
    """Bounds of the sum of terms that grow with |y|, each right to 64 ulp."""
    ends = [(term(x), term(y)) for x, y in zip(low.tolist(), high.tolist(), strict=True)]
    least = [0.0 if x <= 0.0 <= y else min(pair) for pair, x, y in zip(ends, low, high, strict=True)]
    most = [max(pair) for pair in ends]
    total = math.fsum(most) if all(map(math.isfinite, most)) else math.inf
    bottom = math.fsum(least) if all(map(math.isfinite, least)) else math.inf
    return bottom * (1 - 64 * UNIT_ROUNDOFF), total * (1 + 64 * UNIT_ROUNDOFF)


def _spectrum(p: GaussianMixture, q: GaussianMixture) -> tuple[FloatArray, FloatArray] | None:
    """Ascending lower and upper bounds of the eigenvalues of T^-1 (S - T)."""
    powers, t = unit_diagonal_scaling(_covariance(q))
    s = _covariance(p)
    shift = powers.astype(np.int32)
    with np.errstate(over="ignore", invalid="ignore"):
        s = np.ldexp(np.ldexp(s, shift[:, None]), shift[None, :])
        gap = s - t
        try:
            g = np.linalg.inv(np.linalg.cholesky(t))
            g = np.linalg.eigh(g @ gap @ g.T)[1].T @ g
        except np.linalg.LinAlgError:
            return None
        size = np.abs(g)
        gamma = 1.01 * (2 * len(t) + 8) * UNIT_ROUNDOFF
        squaring = [  # error of variances that are rounded squares of standard deviations
            0.0 if gaussian.form == "full" else np.diag(2 * UNIT_ROUNDOFF * np.diagonal(k))
            for gaussian, k in ((p, s), (q, t))
        ]
        e = g @ t @ g.T - np.eye(len(t))
        x = g @ gap @ g.T
        e = np.abs(e) + size @ (gamma * np.abs(t) + squaring[1]) @ size.T
        rest = size @ (gamma * np.abs(gap) + squaring[0] + squaring[1]) @ size.T
        centre = np.diagonal(x).copy()
        np.fill_diagonal(x, 0.0)
        a, f = (1.01 * float(np.linalg.norm(part)) + 1e-290 for part in (e, np.abs(x) + rest))
    if not (a < 0.5 and math.isfinite(f)):
        return None
    centre.sort()
    low, high = centre - f, centre + f
    low = np.where(low >= 0, low / (1 + a), low / (1 - a))
    high = np.where(high >= 0, high / (1 - a), high / (1 + a))
    margin = 4 * UNIT_ROUNDOFF
    return low - margin * np.abs(low), high + margin * np.abs(high)


def _covariance(gaussian: GaussianMixture) -> FloatArray:
    """The first covariance; squares of standard deviations are rounded, relatively by 2^-53."""
    if gaussian.covariances is not None:
        return np.asarray(gaussian.covariances[0])
    return np.diag(first_sigmas(gaussian) ** 2)


def first_sigmas(gaussian: GaussianMixture) -> FloatArray:
    """Standard deviations of the coordinates of the first component."""
    return np.broadcast_to(gaussian.sigmas.reshape(len(gaussian), -1)[0], (gaussian.dimension,))


def _quadratic_form(z: list[Fraction], gaussian: GaussianMixture) -> tuple[float, float] | None:
    """z' K^-1 z with K the covariance of the Gaussian, in doubles rounded outward."""
    if not any(z):
        return 0.0, 0.0
    k = first_sigmas(gaussian) if gaussian.covariances is None else np.asarray(gaussian.covariances[0])
    form = inverse_quadratic_form(z, k)
    if form is None:
        return None
    try:
        low, high = (float(x) for x in form)
    except OverflowError:
        return None
    return max(0.0, low * (1 - 2 * UNIT_ROUNDOFF)), high * (1 + 2 * UNIT_ROUNDOFF) + SMALLEST_SUBNORMAL


def _renyi_quadratic_form(p: GaussianMixture, q: GaussianMixture, order: float) -> tuple[float, float]:
    """z' H^-1 z, H = a T + (1 - a) S formed in doubles; (0, inf) where that proves nothing.

    Its rounding R has -r H <= R <= r H for r = |S R S| / lambda, in the notation of ``numerics.exact_linear_algebra``.
    """
    z = exact_difference(p.means[0], q.means[0])
    if not any(z):
        return 0.0, 0.0
    s, t = _covariance(p), _covariance(q)
    with np.errstate(over="ignore", invalid="ignore"):
        h = t - (order - 1.0) * (s - t)
        rounding = 8 * UNIT_ROUNDOFF * (order + 1.0) * (np.abs(s) + np.abs(t))
        if not (np.diagonal(h) > 0.0).all() or not np.isfinite(h).all() or not np.isfinite(rounding).all():
            return 0.0, math.inf
        exponents, a = unit_diagonal_scaling(h)
        shift = exponents.astype(np.int32)
        error = 1.01 * float(np.linalg.norm(np.ldexp(np.ldexp(rounding, shift[:, None]), shift[None, :])))
    least = least_eigenvalue_bound(a)
    form = inverse_quadratic_form(z, h)
    if form is None or not error < 0.5 * least:
        return 0.0, math.inf
    part = error / least
    try:
        low, high = (float(x) for x in form)
    except OverflowError:
        return 0.0, math.inf
    margin = 4 * UNIT_ROUNDOFF
    return low / (1 + part) * (1 - margin), high / (1 - part) * (1 + margin) + SMALLEST_SUBNORMAL


def _is_definite(p: GaussianMixture, q: GaussianMixture, order: Fraction) -> bool | None:
    """Whether a T + (1 - a) S is positive definite, decided in whole numbers; None in too many dimensions."""
    d = p.dimension
    if d > _MAX_EXACT_DIMENSION:
        return None
    parts = []
    for gaussian, factor in ((q, order), (p, 1 - order)):
        if gaussian.covariances is not None:
            numbers, e = scaled_integers(np.asarray(gaussian.covariances[0]))
        else:
            roots, half = scaled_integers(first_sigmas(gaussian))
            numbers, e = [roots[i // d] ** 2 if i % d == i // d else 0 for i in range(d * d)], 2 * half
        parts.append((numbers, e, factor.numerator))
    least = min(e for _, e, _ in parts)
    total = [sum(n * x << e - least for n, x, e in row) for row in zip(*(
        [(n, x, e) for n in numbers] for numbers, e, x in parts), strict=True)]  # fmt: skip
    return integer_determinant([total[i * d : (i + 1) * d] for i in range(d)]) is not None
