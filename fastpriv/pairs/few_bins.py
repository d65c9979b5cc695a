"""The certified curve of a record in one of few bins, chosen at random, by the trapezoidal rule.

Notation: b bins, in which the releases of a record are normal with means m_1 .. m_b in units of the noise; G the matrix
of covariances G_ij = <m_i, m_j> under Q, a function of |i - j| with the diagonal g; c = e^epsilon. As in
``banded_matrices``, R = dP/dQ is the average of e^(y_i - g/2) with y normal of covariance G under Q, and

    delta_remove = E (R - c)^+,        delta_add = E (1 - c R)^+.

**Reduction.** G = s^2 1 1' + B B' with s as large as that allows: B has d = b - 1 columns. y_i = s x + <B_i, z> with
independent standard normal x and z in R^d, and R = A(z) e^(s x - s^2/2), where A(z) is the average of
e^(<B_i, z> - |B_i|^2/2). Given z, delta is that of the Gaussian mechanism, delta_s(epsilon) with the distance s:

    delta_remove = E h(A(z)),   h(A) = A delta_s(epsilon - log A),
    delta_add = E h(A(z)),      h(A) = delta_s(epsilon + log A),

with delta_s(-e) = 1 - e^-e + e^-e delta_s(e). The expectations are sums over a lattice of z with the spacings h_j.

**Error of the sum.** h is analytic in log A. If A is complex with the argument w, |w| < pi/2, then the set of x where R
exceeds c (or c R falls below 1) begins at a number with the imaginary part -w/s. On the line through it, A e^(s x) is
positive, and |phi(x - i w/s)| = phi(x) e^(w^2 / (2 s^2)): hence |h(A)| <= e^(w^2 / (2 s^2)) h(|A|). Now move one
coordinate z_j by i a. All terms of A turn by at most w = a t_j, t_j = max_i |B_ij|; let w < pi/2. Then A(z) cos w <=
|A(z + i a e_j)| <= A(z), and the density of z grows by e^(a^2/2). For removal, h rises in A: the integrand of one
coordinate at z + i a e_j is at most K = e^(a^2/2 + w^2 / (2 s^2)) times that at z, for all z. The trapezoidal rule
(Trefethen and Weideman 2014, theorem 5.1) errs by at most kappa_j = 2 K / (e^(2 pi a / h_j) - 1) times the integral
itself; one coordinate after the other, the sum lies between the product of 1 - kappa_j and that of 1 + kappa_j, times
delta. For addition h falls in A, and K multiplies the integral with c cos w in place of c: the error is at most
prod (1 + kappa_j) - 1 times delta_add(epsilon + sum log cos w_j), which is bounded below.

**Lattice points left out.** For removal h(A) <= A: the integrand is at most the average of the normal densities around
the B_i. For addition let p_i >= 0 add to 1, S = sum p_i y_i with the variance v = p' G p, and l = sum p_i log(b p_i).
By the inequality of the means R >= e^(S - g/2 - l), so that delta_add(epsilon) is at most the delta of one Gaussian
mechanism with the distance root v at epsilon + v/2 - g/2 - l. And (1 - y)^+ <= y^-u: the integrand is at most a normal
density around -u sum p_i B_i times e^(u (u v / 2 - epsilon + g/2 + l)), for every u >= 0. Beyond its middle, a normal
density falls: its sum over the points of a line beyond the last one that is used is at most its integral from there on.

**Rounding.** B is rounded, and s^2 is moved until s^2 1 1' + B B' exceeds G in each entry, or falls below it, in exact
arithmetic: delta rises with each covariance (Kahane 1986), so that the first gives upper bounds, the second lower ones.
log A is moved by its error in the direction that matters. Spacings have 24 bits, so that points are exact.

**Elementary bounds**, which share none of this: delta is at most that of the Gaussian mechanism with the distance root
g (joint convexity) and at least that with the distance s (E A = 1, Jensen); for removal also at least
delta_(root g)(epsilon + log b) / b, for R >= e^(y_1 - g/2) / b; for addition the upper bound above.

Sources: Kahane, Comptes rendus de l'Academie des sciences 303, 1986; Trefethen and Weideman, SIAM Review 56, 2014.
"""

# bounds: proved - allowances for the roundings of logarithms, exponents and elementary bounds

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from .. import special
from ..base.estimate import Estimate
from ..base.exact_linear_algebra import square_root_enclosure
from ..base.numerics import LARGEST_DOUBLE, UNIT_ROUNDOFF, FloatArray, IndexArray, reconcile_bounds
from .allocations import AllocationPair
from .log_bounds import LogBounds
from .protocol import DominatingPair

MAX_FEW_BINS = 4  # beyond which the lattice has too many points
_VARIANCES = Fraction(1, 10**200), 625  # g for which the curve is computed
# nats below delta that the errors of the sum are to lie: for few levels, and for whole curves of three bins or more
_PRECISION, _CURVE_PRECISION = 32.0, 14.0
_FEW_LEVELS, _MAX_CURVE_BINS = 16, 3  # beyond which whole curves have other bounds
_MAX_VALUES, _MAX_CURVE_VALUES = 2**22, 2**24  # of the integrand in one call: about 0.1 microseconds each
_BLOCK_VALUES = 2**18  # of the integrand that are evaluated at a time: 2 MiB an array
_SPACING_BITS = 24  # of a spacing, so that its multiples are doubles
_DEEPEST = -1e6  # log delta below which the elementary bounds stand alone
_DEEPEST_DOUBLE = -750.0  # the same where doubles are returned, and of allocations
_SHIFTS = np.linspace(0.02, 0.98, 49)  # a t_j in units of pi/2 that are tried
# bound: proved - relative to 1 + |log delta_s|: the errors of gaussian_log_delta and of the logarithms of both terms
#    at a negative epsilon, at most 84 units of 2^-53 (docs/proofs/gaussian.md, theorem 1.4)
_CURVE_ERROR = 1e-14
# bound: proved - relative change of s, g and v, and of elementary bounds, that makes up for their roundings
_ALLOWANCE = 1e-12


def few_bins_pair(
    covariances: tuple[Fraction, ...], dominating: AllocationPair, dominated: AllocationPair
) -> FewBinsPair | None:
    """The pair of the removal of a record, as often as ``dominating``; None for a g out of range."""
    if not _VARIANCES[0] < covariances[0] < _VARIANCES[1]:
        return None
    return FewBinsPair(covariances, False, dominating, dominated, dominating.count)


@dataclass(frozen=True, slots=True, eq=False)
class FewBinsPair(DominatingPair):
    """One direction, ``adds`` for Q against P. ``covariances`` are G_0d, exactly, d = 0 .. b - 1, b <= MAX_FEW_BINS.

    Where the sum would take too long, the curves of ``dominating`` and ``dominated`` bound it instead.
    """

    _fields = ("covariances", "adds", "dominating", "dominated", "count")

    covariances: tuple[Fraction, ...]
    adds: bool
    dominating: AllocationPair
    dominated: AllocationPair
    count: int

    @property
    def curve_width(self) -> float:
        """That of allocations, if a lattice has many points."""
        return self.dominating.curve_width if len(self.covariances) > 2 else 0.0

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        return self._log_delta(epsilon, _DEEPEST_DOUBLE).to("probability")

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Their logarithms, far below the smallest double."""
        return LogBounds.of_estimate(self._log_delta(epsilon, _DEEPEST))

    def reversed(self) -> FewBinsPair:
        """Addition for removal."""
        reversed_pairs = self.dominating.reversed(), self.dominated.reversed()
        return FewBinsPair(self.covariances, not self.adds, *reversed_pairs, self.count)

    def _log_delta(self, epsilon: FloatArray, deepest: float) -> Estimate:
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        problem = _reduced(self.covariances)
        lower, upper = problem.elementary_bounds(levels, self.adds)
        chosen = np.flatnonzero(upper > deepest)
        ends, left_out = _lattice_sums(problem, levels[chosen], self.adds)
        lower[chosen], upper[chosen], disagree = reconcile_bounds((lower[chosen], upper[chosen]), ends)
        method = "trapezoidal rule" if left_out.size < chosen.size else ""
        if left_out.size or chosen.size < levels.size:
            method += f"{'; ' if method else ''}closed-form bounds where it has too many points"
        if disagree.any():
            method += "; bounds disagree: widened"
        remainder = chosen[left_out]
        remainder = remainder[upper[remainder] > _DEEPEST_DOUBLE]
        if remainder.size:
            method += "; bounds of allocations"
            ends = self.dominated.log_delta(levels[remainder]).lower, self.dominating.log_delta(levels[remainder]).upper
            lower[remainder], upper[remainder], _ = reconcile_bounds((lower[remainder], upper[remainder]), ends)
        with np.errstate(invalid="ignore"):
            value = np.clip(np.where(np.isfinite(lower), 0.5 * (lower + upper), upper), lower, upper)
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in (value, lower, upper))
        return Estimate(value, lower, upper, kind="certified", unit="log probability", method=method)


class _Reduced(NamedTuple):
    """g and s; B by rows, shape (b, d); s/2 from below and from above; v, l and the sum of p_i B_i."""

    variance: float
    scale: float
    loadings: FloatArray
    half_low: float
    half_high: float
    mean_variance: float
    mean_excess: float
    mean_loading: FloatArray

    def elementary_bounds(self, epsilon: FloatArray, adds: bool) -> tuple[FloatArray, FloatArray]:
        """Of log delta, as the head of this module says."""
        b, root = len(self.loadings), 0.5 * math.sqrt(self.variance)
        upper = _log_delta(root * (1.0 + _ALLOWANCE), epsilon, 1.0)
        lower = _log_delta(self.half_low, epsilon, -1.0)
        if adds:
            upper = np.minimum(upper, self.addition_bound(epsilon))
        else:
            level = (epsilon + math.log(b)) * (1.0 + _ALLOWANCE)
            single = _log_delta(root * (1.0 - _ALLOWANCE), level, -1.0) - math.log(b) * (1.0 + _ALLOWANCE)
            lower = np.maximum(lower, single)
        upper = np.where(np.isposinf(epsilon), -np.inf, np.maximum(upper, -LARGEST_DOUBLE))
        return np.minimum(lower, upper), upper

    def addition_bound(self, epsilon: FloatArray) -> FloatArray:
        """Upper bounds of log delta_add."""
        shifted = epsilon + 0.5 * self.mean_variance - 0.5 * self.variance - self.mean_excess
        shifted -= _ALLOWANCE * (np.minimum(np.abs(epsilon), LARGEST_DOUBLE) + self.variance + self.mean_excess)
        bounds = _log_delta(0.5 * math.sqrt(self.mean_variance) * (1.0 + _ALLOWANCE), np.maximum(shifted, 0.0), 1.0)
        return np.asarray(np.where(shifted > 0.0, bounds, 0.0))


@functools.lru_cache(maxsize=64)
def _reduced(covariances: tuple[Fraction, ...]) -> _Reduced:
    """The reduction of G to s and B, and the p of the least v."""
    b = len(covariances)
    exact = [[covariances[abs(i - j)] for j in range(b)] for i in range(b)]
    g = np.array([[float(x) for x in row] for row in exact])
    square = 1.0 / float(np.linalg.solve(g, np.ones(b)).sum())
    values, vectors = np.linalg.eigh(g - square)
    loadings = vectors[:, 1:] * np.sqrt(np.maximum(values[1:], 0.0))
    rows = [[Fraction(x) for x in row] for row in loadings.tolist()]
    remainder = [exact[i][j] - sum((x * y for x, y in zip(rows[i], rows[j], strict=True)), Fraction(0))
            for i in range(b) for j in range(b)]
    low, high = max(min(remainder), Fraction(0)), max(remainder)
    ends = square_root_enclosure((low / 4, high / 4)) if low > 0 else (0.0, square_root_enclosure((high, high))[1])
    p = _least_mean(g)
    used = p[p > 0.0]
    return _Reduced(
        float(g[0, 0]), math.sqrt(square), loadings, *ends,
        float(p @ g @ p), max(float(used @ np.log(b * used)), 0.0), p @ loadings,
    )


def _least_mean(g: FloatArray) -> FloatArray:
    """The p >= 0 of sum 1 with the least p' G p: the best of those that are 0 outside of some indices."""
    b = len(g)
    best = np.full(b, 1.0 / b)
    for size in range(1, b + 1):
        for chosen in itertools.combinations(range(b), size):
            p = np.zeros(b)
            p[list(chosen)] = np.linalg.solve(g[np.ix_(chosen, chosen)], np.ones(size))
            p /= p.sum()
            if (p >= 0.0).all() and p @ g @ p < (1.0 - _ALLOWANCE) * (best @ g @ best):
                best = p
    return best


def _log_delta(half: float, epsilon: FloatArray, side: float) -> FloatArray:
    """A bound of the logarithm of the curve of the Gaussian mechanism at any epsilon, from above (1) or below (-1)."""
    size = np.abs(epsilon)
    logs = np.asarray(special.gaussian_log_delta(half, size))
    negative = epsilon < 0.0
    if negative.any():
        logs[negative] = special.logaddexp(special.log1mexp(-size[negative]), logs[negative] - size[negative])
    with np.errstate(invalid="ignore"):
        shifted = logs + side * _CURVE_ERROR * (1.0 + np.abs(logs))
    return np.minimum(np.where(np.isneginf(logs), logs, shifted), 0.0)


def _lattice_sums(
    problem: _Reduced, epsilon: FloatArray, adds: bool
) -> tuple[tuple[FloatArray, FloatArray], IndexArray]:
    """Bounds of log delta, and the indices of those epsilons that have none."""
    lower, upper = np.full(epsilon.size, -np.inf), np.zeros(epsilon.size)
    few = epsilon.size <= _FEW_LEVELS or len(problem.loadings) <= 2
    if not few and len(problem.loadings) > _MAX_CURVE_BINS:
        return (lower, upper), np.arange(epsilon.size, dtype=np.int64)
    spacings, shifts, extents = _lattices(problem, epsilon, adds, _PRECISION if few else _CURVE_PRECISION)
    keys = np.floor(8.0 * np.log(np.maximum(extents.max(axis=1, initial=1.0), 1.0)))
    groups = [np.flatnonzero(keys == key) for key in np.unique(keys)]
    lattices = []
    for at in groups:
        order = np.argmin(spacings[at], axis=0), np.arange(spacings.shape[1])
        lattices.append((spacings[at][order], shifts[at][order], extents[at].max(axis=0)))
    points = [float(np.prod(2.0 * np.ceil(extent / spacing) + 1.0)) for spacing, _, extent in lattices]
    values = np.cumsum([at.size * number for at, number in zip(groups, points, strict=True)])
    within = values <= _MAX_VALUES if few else np.full(values.size, values[-1] <= _MAX_CURVE_VALUES)
    for at, lattice, used in zip(groups, lattices, within, strict=True):
        if used:
            lower[at], upper[at] = _sums_of_lattice(problem, epsilon[at], adds, *lattice)
    left_out = [at for at, used in zip(groups, within, strict=True) if not used]
    return (lower, upper), np.concatenate(left_out) if left_out else np.zeros(0, dtype=np.int64)


def _lattices(
    problem: _Reduced, epsilon: FloatArray, adds: bool, nats: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each epsilon and coordinate the spacing, the shift a of its proof, and how far the points reach."""
    d = problem.loadings.shape[1]
    largest = np.maximum(np.abs(problem.loadings).max(axis=0, initial=0.0), 1e-300)  # t_j
    expected = problem.elementary_bounds(epsilon, adds)[0]
    precision = np.full((epsilon.size, _SHIFTS.size), nats)
    centres = largest[None, :]
    beyond = np.zeros(epsilon.size)
    if adds:
        order = _order(problem, epsilon)
        z = -order[:, None] * problem.mean_loading
        shifted_delta = _log_delta(0.5 * problem.scale, epsilon + _log_average(problem.loadings, z.T)[0], -1.0)
        expected = np.maximum(expected, shifted_delta - 0.5 * (z**2).sum(axis=1))
        shifted = epsilon[:, None] + d * np.log(np.cos(0.5 * math.pi * _SHIFTS))
        precision += problem.addition_bound(shifted) - expected[:, None]
        centres, beyond = np.abs(z), _log_outside(problem, epsilon, order)
    a = 0.5 * math.pi * _SHIFTS / largest[:, None]
    growth = 1.0 + (largest / problem.scale) ** 2
    a = np.minimum(a[None, :, :], np.sqrt(2.0 * precision[:, None, :] / growth[:, None]))
    spacings = 2.0 * math.pi * a / (precision[:, None, :] + 0.5 * a**2 * growth[:, None] + 1.0)
    best = np.argmax(np.log(spacings).sum(axis=1), axis=1)
    chosen = np.arange(epsilon.size), slice(None), best
    extents = centres + np.sqrt(2.0 * np.maximum(nats + 2.0 + beyond - expected, 1.0))[:, None]
    return spacings[chosen], a[chosen], extents


def _order(problem: _Reduced, epsilon: FloatArray) -> FloatArray:
    """u."""
    return np.maximum(epsilon - 0.5 * problem.variance - problem.mean_excess, 0.0) / problem.mean_variance


def _log_outside(problem: _Reduced, epsilon: FloatArray, order: FloatArray) -> FloatArray:
    """Logarithm of the factor of the normal density for addition."""
    offset = epsilon - 0.5 * problem.variance - problem.mean_excess
    error = _ALLOWANCE * (np.abs(epsilon) + problem.variance + problem.mean_excess + order * problem.mean_variance)
    return np.asarray(order * (0.5 * order * problem.mean_variance - offset + error))


def _log_average(loadings: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log A for each column of z, and a bound of its error."""
    d, halves = len(z), 0.5 * (loadings**2).sum(axis=1)
    exponents = [sum((z[j] * row[j] for j in range(d)), np.zeros(z.shape[1])) - half
                 for row, half in zip(loadings, halves, strict=True)]
    size = sum((np.abs(z[j]) * np.abs(loadings[:, j]).max() for j in range(d)), np.zeros(z.shape[1]))
    top = functools.reduce(np.maximum, exponents)
    # A / e^top is at least 1 / b, and 1 plus a mean of b terms, each of which errs by less than b + 6 roundings
    b = len(loadings)
    logs = top + special.log1p(sum(special.expm1(x - top) for x in exponents) / b)
    size += halves.max()
    return logs, UNIT_ROUNDOFF * ((d + 8) * size + b * (b + 6) * np.minimum(1.0, 2.0 * size))


def _sums_of_lattice(
    problem: _Reduced, epsilon: FloatArray, adds: bool, spacing: FloatArray, shift: FloatArray, extent: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of log delta by the sums over one lattice."""
    mantissa, exponent = np.frexp(spacing)
    spacing = np.ldexp(np.floor(np.ldexp(mantissa, _SPACING_BITS)), exponent - _SPACING_BITS)
    counts = np.ceil(extent / spacing).astype(np.int64)
    shape, d = tuple((2 * counts + 1).tolist()), len(counts)
    points = math.prod(shape)
    factor = float(np.log(spacing).sum()) - 0.5 * d * math.log(2.0 * math.pi)
    level = epsilon[:, None]
    sums = np.full((2, epsilon.size), -np.inf)
    size = max(1, _BLOCK_VALUES // epsilon.size)
    for first in range(0, points, size):
        ranks = np.arange(first, min(first + size, points))
        positions = np.array(np.unravel_index(ranks, shape)) if d else np.zeros((0, 1))
        z = spacing[:, None] * (positions - counts[:, None])
        log_average, error = _log_average(problem.loadings, z)
        density = factor - 0.5 * (z**2).sum(axis=0)
        density_error = UNIT_ROUNDOFF * (d + 4) * (np.abs(density) + abs(factor) + 1.0)
        errors = error + 4 * UNIT_ROUNDOFF * (level + np.abs(log_average))
        for row, (half, side) in enumerate(((problem.half_low, -1.0), (problem.half_high, 1.0))):
            shifted = log_average + (-side if adds else side) * errors
            logs = (
                _log_delta(half, level + shifted, side) if adds else _log_delta(half, level - shifted, side) + shifted
            )
            logs += density + side * (density_error + 4 * UNIT_ROUNDOFF * np.abs(logs))
            sums[row] = special.logaddexp(sums[row], special.log_sum_exp(logs))
    rounding = UNIT_ROUNDOFF * (0.2 * min(size, points) * (2.0 + math.log(points))
                                + (12.0 + 4.0 * points / size) * (2.0 + np.abs(sums)))
    lower, upper = sums[0] - rounding[0], sums[1] + rounding[1]
    outside = _log_points_outside(problem, epsilon, adds, spacing * counts, spacing)
    upper = np.logaddexp(upper, outside) + 4 * UNIT_ROUNDOFF * (1.0 + np.abs(upper))
    return _within_rule_error(problem, epsilon, adds, spacing, shift, lower, upper)


def _log_points_outside(
    problem: _Reduced, epsilon: FloatArray, adds: bool, last: FloatArray, spacing: FloatArray
) -> FloatArray:
    """Upper bounds of the logarithm of the sum over all points that are left out."""
    if not last.size:
        return np.full(epsilon.size, -np.inf)
    if adds:
        order = _order(problem, epsilon)
        middle = np.abs(problem.mean_loading) + _ALLOWANCE * np.abs(problem.loadings).max(axis=0)
        centres, factor = order[:, None] * middle * (1.0 + _ALLOWANCE), _log_outside(problem, epsilon, order)
    else:
        centres, factor = np.abs(problem.loadings), np.zeros(epsilon.size)
    # the sum over a whole line is at most 1 + 2 sum e^(-2 pi^2 k^2 / h^2)
    lines = 1.0 + 4.0 * np.exp(-2.0 * (math.pi / spacing) ** 2)
    tails = special.log_ndtr(np.minimum(centres - last, 0.0)) + math.log(2.0)
    tails = np.where(centres < last, tails, math.inf) + float(np.log(lines).sum())
    sums = special.log_sum_exp(tails)
    bound = factor + (sums if adds else sums.max())
    return np.asarray(bound + _ALLOWANCE * (1.0 + np.abs(factor) + np.abs(bound)))


def _within_rule_error(
    problem: _Reduced, epsilon: FloatArray, adds: bool, spacing: FloatArray, shift: FloatArray, lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """The sums moved by kappa."""
    angles = shift * np.abs(problem.loadings).max(axis=0, initial=0.0) * (1.0 + _ALLOWANCE)
    growth = 0.5 * shift**2 + 0.5 * (angles / (2.0 * problem.half_low)) ** 2 if problem.half_low else np.inf
    decay = 2.0 * math.pi * shift / spacing
    with np.errstate(over="ignore"):
        kappa = (1.0 + 1e-9) * 2.0 * np.exp(growth - decay) / -np.expm1(-decay)
    if not (kappa < 0.5).all() or not (angles < 0.5 * math.pi).all():
        return np.full(epsilon.size, -np.inf), np.zeros(epsilon.size)
    if adds:
        log_kappa = math.log(math.expm1(float(np.log1p(kappa).sum()))) if kappa.size else -math.inf
        shifted = problem.addition_bound(epsilon + float(np.log(np.cos(angles)).sum()) * (1.0 + _ALLOWANCE))
        error = shifted + log_kappa + _ALLOWANCE
        with np.errstate(divide="ignore", invalid="ignore"):
            lower = np.where(error < lower, lower + special.log1mexp(np.minimum(error - lower, 0.0)), -np.inf)
        upper = np.logaddexp(upper, error)
    else:
        lower = lower - float(np.log1p(kappa).sum())
        upper = upper - float(np.log1p(-kappa).sum())
    outward = 4 * UNIT_ROUNDOFF * (1.0 + np.abs(upper))
    return lower - outward, np.minimum(upper + outward, 0.0)
