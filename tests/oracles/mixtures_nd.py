"""Independent truth for Gaussian mixtures in d dimensions: products, closed forms, chi-square laws, grids.

A law is a ``Law`` of NumPy arrays; a mixture on the line is (weights, means, sigmas) as in ``oracles.mixture``, whose
ball arithmetic everything exact here rests on. Nothing is fast and nothing comes from the package under test. Every
function returns a pair (value, relative error): the value as an mpmath number, the error stated or proved as its
docstring says.

* Products: P = P_1 x ... x P_d and Q likewise. KL, Renyi divergences and the information of the label add, entropies
  add up to log |det A| after x -> A x + b. All other divergences do not change under x -> A x + b.
* ``nuisance_bracket``: p = p1 x a^(d-1), q = q1 x b^(d-1) with a = N(0, 1), b = N(0, (1 + t)^2), t > 0. Since
  a <= (1 + t) b everywhere, H(p1||q1; e) <= H(p||q; e) <= H(p1||q1; e - (d-1) log(1 + t)).
* ``spherical_hockey_stick``: N(0, s^2 I) against N(0, t^2 I), whose log ratio is a function of |x|^2 alone.
* ``grid_integral``: the trapezoid rule on two interleaved grids in 1 to 3 dimensions; it converges exponentially for
  the analytic integrands here, and the difference of the two grids is the stated error.
* ``nested_hockey_stick``: diagonal laws on the plane; for each y a problem on the line is solved by its crossings, and
  the integral over y is a trapezoid sum on two interleaved grids.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
from scipy.special import log_ndtr

from oracles import mixture

__all__ = [
    "DIGITS", "Law", "affine_law", "closed_form", "grid_integral", "log_density", "nested_hockey_stick",
    "nuisance_bracket", "number", "product_law", "product_truth", "sample", "single_label_information",
    "spherical_hockey_stick",
]

DIGITS = 40


@dataclass(frozen=True)
class Law:
    """Weights (k,), means (k, d) and either sigmas (k, d) or covariances (k, d, d), or (1, d, d) for all."""

    weights: np.ndarray
    means: np.ndarray
    sigmas: np.ndarray | None = None
    covariances: np.ndarray | None = None

    @property
    def dimension(self):
        return self.means.shape[1]


def number(ball):
    """The middle of a ball as an mpmath number."""
    return mpmath.mpf(ball.mid().str(DIGITS, radius=False))


# laws


def product_law(factors):
    """The product of mixtures on the line, one component for each tuple of components."""
    weights, means, sigmas = np.ones(1), np.zeros((1, 0)), np.zeros((1, 0))
    for w, m, s in factors:
        w, m = np.asarray(w, float), np.asarray(m, float)
        s = np.broadcast_to(np.asarray(s, float), m.shape)
        count, size = len(weights), len(w)
        weights = np.repeat(weights, size) * np.tile(w, count)
        means = np.column_stack([np.repeat(means, size, axis=0), np.tile(m, count)])
        sigmas = np.column_stack([np.repeat(sigmas, size, axis=0), np.tile(s, count)])
    return Law(weights, means, sigmas)


def affine_law(law, matrix, shift):
    """The law of A x + b."""
    if law.covariances is None:
        covariances = np.einsum("ij,kj,lj->kil", matrix, law.sigmas**2, matrix)
    else:
        covariances = np.einsum("ij,kjm,lm->kil", matrix, law.covariances, matrix)
    covariances = (covariances + covariances.transpose(0, 2, 1)) / 2
    return Law(law.weights, law.means @ matrix.T + shift, None, covariances)


def log_sum(logs, axis=0):
    """log(sum(exp(logs)))."""
    logs = np.asarray(logs)
    top = logs.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(top, axis) + np.log(np.exp(logs - top).sum(axis=axis))


def log_density(law, x):
    """Logarithm of the density at the rows of x, in doubles."""
    terms = []
    for i, (w, m) in enumerate(zip(law.weights, law.means, strict=True)):
        if law.covariances is None:
            scaled, scale = (x - m) / law.sigmas[i], np.log(law.sigmas[i]).sum()
        else:
            factor = np.linalg.cholesky(law.covariances[min(i, len(law.covariances) - 1)])
            scaled, scale = np.linalg.solve(factor, (x - m).T).T, np.log(np.diag(factor)).sum()
        constant = np.log(w) - scale - law.dimension / 2 * np.log(2 * np.pi)
        terms.append(constant - (scaled * scaled).sum(axis=1) / 2)
    return log_sum(terms, axis=0)


def sample(law, count, rng):
    """Rows drawn from the law, and their labels."""
    label = rng.choice(len(law.weights), count, p=law.weights)
    z = rng.standard_normal((count, law.dimension))
    if law.covariances is None:
        return law.means[label] + law.sigmas[label] * z, label
    factors = np.linalg.cholesky(law.covariances)
    factors = np.broadcast_to(factors, (len(law.weights), *factors.shape[1:]))
    return law.means[label] + np.einsum("nij,nj->ni", factors[label], z), label


# products and closed forms


def product_truth(quantity, ps, qs, order=None, log_determinant=0.0):
    """Sum over the coordinates of the truth on the line; error 1e-15 for the doubles that hold the product."""
    with mpmath.workdps(DIGITS):
        total = mpmath.mpf(log_determinant) if quantity == "entropy" else mpmath.mpf(0)
        for p, q in zip(ps, qs, strict=True):
            if quantity == "kl":
                ball = mixture.kl_divergence(p, q)
            elif quantity == "renyi":
                ball = mixture.renyi(p, q, order)
                if not ball.is_finite():
                    return mpmath.inf, 0.0
            elif quantity == "entropy":
                ball = mixture.entropy(p)
            else:
                total += single_label_information(p)
                continue
            total += number(ball)
        return total, 1e-15


def single_label_information(p):
    """h(X) minus the mean of h(X | label) on the line."""
    weights, _, sigmas = p
    sigmas = np.broadcast_to(np.asarray(sigmas, float), np.shape(weights))
    inside = mpmath.fsum(
        mpmath.mpf(float(w)) * (mpmath.log(2 * mpmath.pi * mpmath.e) / 2 + mpmath.log(mpmath.mpf(float(s))))
        for w, s in zip(weights, sigmas, strict=True)
    )
    return number(mixture.entropy(p)) - inside


def closed_form(quantity, p, q, order=None):
    """One normal law against another, any covariances; the doubles are taken as exact."""
    with mpmath.workdps(DIGITS):
        (m, s), (n, t) = _normal(p), _normal(q)
        d = p.dimension
        if quantity == "entropy":
            return d * mpmath.log(2 * mpmath.pi * mpmath.e) / 2 + _log_det(s) / 2, 1e-30
        gap = m - n
        if quantity == "kl":
            inverse = t**-1
            trace = mpmath.fsum((inverse * s)[i, i] for i in range(d))
            square = (gap.T * inverse * gap)[0]
            return (trace + square - d + _log_det(t) - _log_det(s)) / 2, 1e-25
        middle = (1 - mpmath.mpf(order)) * s + mpmath.mpf(order) * t
        if min(mpmath.eigsy(middle, eigvals_only=True)) <= 0:
            return mpmath.inf, 0.0
        square = (gap.T * middle**-1 * gap)[0]
        logs = _log_det(middle) - (1 - order) * _log_det(s) - order * _log_det(t)
        return order * square / 2 - logs / (2 * (order - 1)), 1e-25


def _normal(law):
    covariance = np.diag(law.sigmas[0] ** 2) if law.covariances is None else law.covariances[0]
    if law.covariances is None:
        exact = mpmath.diag([mpmath.mpf(float(s)) ** 2 for s in law.sigmas[0]])
    else:
        exact = mpmath.matrix(covariance.tolist())
    return mpmath.matrix(law.means[0].tolist()), exact


def _log_det(matrix):
    factor = mpmath.cholesky(matrix)
    return 2 * mpmath.fsum(mpmath.log(factor[i, i]) for i in range(matrix.rows))


# hockey-sticks


def nuisance_bracket(p, q, epsilon, dimension, excess):
    """Proved bracket of H for p1 x N(0, 1)^(d-1) against q1 x N(0, (1 + excess)^2)^(d-1); logs of both ends."""
    ratio = (dimension - 1) * float(np.log1p(excess)) * (1 + 1e-12)
    low = mixture.log_hockey_stick(p, q, epsilon)
    high = mixture.log_hockey_stick(p, q, float(epsilon) - ratio)
    with mpmath.workdps(DIGITS):
        return number(low), number(high)


def spherical_hockey_stick(dimension, sigma_p, sigma_q, epsilon):
    """H of N(0, s^2 I) and N(0, t^2 I): |x|^2 has a scaled chi-square law and the chosen set is a ball or its rest."""
    with mpmath.workdps(DIGITS + 40):
        s, t, e = mpmath.mpf(float(sigma_p)), mpmath.mpf(float(sigma_q)), mpmath.mpf(float(epsilon))
        # log p/q = d log(t/s) - r^2/2 (1/s^2 - 1/t^2) > e
        rate = (1 / s**2 - 1 / t**2) / 2
        square = (dimension * mpmath.log(t / s) - e) / rate
        half = mpmath.mpf(dimension) / 2
        if rate > 0:
            if square <= 0:
                return mpmath.mpf(0), 0.0
            inside = [mpmath.gammainc(half, 0, square / (2 * v**2), regularized=True) for v in (s, t)]
        else:
            inside = [mpmath.gammainc(half, max(square, 0) / (2 * v**2), mpmath.inf, regularized=True) for v in (s, t)]
        return inside[0] - mpmath.exp(e) * inside[1], 1e-25


def nested_hockey_stick(p, q, epsilon, step=0.1, reach=16.0, cells=1500):
    """(log H, absolute error of the logarithm) of diagonal laws on the plane."""
    smallest = min(p.sigmas.min(), q.sigmas.min())
    low, high = (
        pick(pick(law.means[:, 1] + side * reach * law.sigmas[:, 1]) for law in (p, q))
        for pick, side in ((min, -1), (max, 1))
    )
    h = step * smallest
    sums = []
    for offset in (0.0, 0.5):
        y = np.arange(low + offset * h, high, h)
        sums.append(log_sum([_line_hockey_stick(p, q, epsilon, v, reach, cells) for v in y]) + np.log(h))
    return float(np.logaddexp(*sums) - np.log(2)), float(abs(sums[0] - sums[1])) + 1e-12


def _line_hockey_stick(p, q, epsilon, y, reach, cells):
    """log of the integral over x of (p(x, y) - e^epsilon q(x, y))^+."""
    rows = []
    for law, shift in ((p, 0.0), (q, epsilon)):
        t = (y - law.means[:, 1]) / law.sigmas[:, 1]
        constants = np.log(law.weights) + shift - t * t / 2 - np.log(law.sigmas[:, 1]) - np.log(2 * np.pi) / 2
        rows.append((constants, law.means[:, 0], law.sigmas[:, 0]))

    def log_ratio(x):
        logs = [
            log_sum(c - ((x[:, None] - m) / s) ** 2 / 2 - np.log(s), axis=1) for c, m, s in rows
        ]
        return logs[0] - logs[1]

    low, high = (
        pick(pick(m + side * 2 * reach * s) for _, m, s in rows) for pick, side in ((min, -1), (max, 1))
    )
    x = np.linspace(low, high, cells)
    signs = log_ratio(x) > 0
    change = np.flatnonzero(signs[1:] != signs[:-1])
    left, right = x[change], x[change + 1]
    rising = signs[change + 1]
    for _ in range(70):
        middle = (left + right) / 2
        up = (log_ratio(middle) > 0) == rising if len(middle) else np.zeros(0, bool)
        left, right = np.where(up, left, middle), np.where(up, middle, right)
    edges = np.concatenate([[-np.inf] if signs[0] else [], (left + right) / 2, [np.inf] if signs[-1] else []])
    if not len(edges):
        return -np.inf
    total = [-np.inf, -np.inf]
    for a, b in edges.reshape(-1, 2):
        for side, (c, m, s) in enumerate(rows):
            total[side] = np.logaddexp(total[side], log_sum(c + _log_mass((a - m) / s, (b - m) / s)))
    return total[0] + np.log(-np.expm1(min(total[1] - total[0], -1e-300)))


def _log_mass(a, b):
    """log(Phi(b) - Phi(a)), a < b, from the nearer tail."""
    flip = a > 0
    a, b = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore"):
        high, low = log_ndtr(b), log_ndtr(a)
        return high + np.log1p(-np.exp(low - high))


# grids


def grid_integral(f, laws, step, reach=9.0):
    """(integral of f over R^d, relative error): f takes rows of points; the grid spans every component of the laws."""
    lows, highs = [], []
    for law in laws:
        spread = law.sigmas if law.covariances is None else np.sqrt(np.einsum("kii->ki", law.covariances))
        lows.append((law.means - reach * spread).min(axis=0))
        highs.append((law.means + reach * spread).max(axis=0))
    low, high = np.min(lows, axis=0), np.max(highs, axis=0)
    sums = []
    for offset in (0.0, 0.5):
        axes = [np.arange(a + offset * step, b, step) for a, b in zip(low, high, strict=True)]
        rest = np.stack(np.meshgrid(*axes[1:], indexing="ij"), axis=-1).reshape(-1, len(axes) - 1)
        rows = [f(np.column_stack([np.full(len(rest), first), rest])).sum() for first in axes[0]]
        sums.append(float(np.sum(rows)) * step ** len(axes))
    middle = (sums[0] + sums[1]) / 2
    return mpmath.mpf(middle), abs(sums[0] - sums[1]) / abs(middle) + 2e-14
