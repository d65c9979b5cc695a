"""Independent factors: mixtures in d dimensions that are products of one-dimensional ones, and how they are recognised.

Notation: P = sum w_i N(m_i, K_i), Q = sum v_j N(n_j, L_j) with entries taken as exact; s^2 = 1 / (u' K^-1 u).

Factors. For independent coordinates (isotropic or diagonal covariances), coordinates on which all components of both
mixtures agree drop out. Coordinates on which all of P agree and all of Q agree, but not with each other, are
independent of the rest and of one another. What is left must be one coordinate (standard deviations may differ by
component) or collinear means.

Products. Components that are all combinations of one component of each coordinate, with weights that are products, have
independent coordinates. Weights are rounded: a relative error says how far from the density of the factors they are.

One line. If all components of all mixtures have one covariance K and all means lie on c + x u, the likelihoods depend
on the sample through u' K^-1 (sample - c) alone, which is a sufficient statistic: every f-divergence, Renyi divergence
and mutual information of label and sample is that of the one-dimensional mixtures sum w_i N(x_i, s^2). Exactly
collinear means (two distinct ones always are) keep one of their own coordinates as position, x_i = m_ij, with u scaled
to u_j = 1, so that no position is rounded. s is irrational in general and is enclosed by two doubles. Adding
independent noise to both mixtures lowers each of these divergences (data processing), so the narrow mixtures (s rounded
down) give upper bounds and the wide ones (s rounded up) lower bounds.

Means that miss a line by rounding. u is the double nearest to the difference of two far means, x_i a double, and
r_i = m_i - c - x_i u is bounded in extended precision; ``displacement`` is an upper bound of the largest |r_i| in the
metric of K, at most 1e-9 and at most a millionth of the diameter. ``factored_quantities.py`` proves what it may do to
each quantity. Larger residuals are not reduced.
"""

# bounds: proved - docs/proofs/roundings.md, 13.24: rounding of residuals in extended precision and of products of
#    weights; the rest tells which means are not reduced

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ...base import exact_linear_algebra as algebra
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ...base.values import distinct_rows
from ...distributions import GaussianMixture

FIRST_COMPONENTS = 4  # of each mixture, examined before all are: most inputs that do not reduce are found out by these
# bound: none - in standard deviations; means farther from a line are not reduced
_MAX_DISPLACEMENT = 1e-9
# bound: none - of the diameter of the means; means that are farther from a line relative to it are not reduced
_MAX_RELATIVE_DISPLACEMENT = 1e-6
# bound: none - relative error of products of weights up to which they are taken for products that were rounded
_MAX_WEIGHT_ERROR = 1e-9
_MAX_EXACT_NUMBERS = 20_000  # numbers in the means up to which collinearity is decided in whole numbers
_BLOCK_NUMBERS = 1 << 20  # numbers of an array that are compared at a time: 8 MiB
_MAX_MAGNITUDE = 1e300  # of positions and standard deviations: what ``GaussianMixture`` takes
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)  # spacing of extended precision at 1

Arrays = list[FloatArray]  # one for each mixture


@dataclass(frozen=True)
class OneDimensionalFactor:
    """One-dimensional mixtures with standard deviations rounded down (``narrow``) and up (``wide``); the same if exact.

    Together with other, independent factors they have the divergences of the d-dimensional mixtures.
    """

    narrow: tuple[GaussianMixture, ...]
    wide: tuple[GaussianMixture, ...]
    displacement: float = 0.0  # of the means from their line, at most, in standard deviations
    coordinate: int | None = None  # index of the coordinate that this factor is, if it is one

    @property
    def exact(self) -> bool:
        """Whether nothing was rounded."""
        return self.narrow is self.wide and self.displacement == 0.0

    @property
    def diameter(self) -> float:
        """An upper bound of the distance of any two means in standard deviations, those off the line included."""
        means = np.concatenate([mixture.means for mixture in self.narrow])
        sigma = min(float(mixture.sigmas.min()) for mixture in self.narrow)
        along = float(means.max()) / sigma - float(means.min()) / sigma
        return 1.000001 * along + 2 * self.displacement


def equal_measures(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether both are the same measure, whatever the order and the splitting of their components."""
    if p is q:
        return True
    if "full" in (p.form, q.form) and p.form != q.form:
        return False
    probes = (0, len(p) // 2, len(p) - 1)
    if not all(_has_mean(q, p.means[i]) for i in probes):
        return False
    return _exact_weights_by_component(p) == _exact_weights_by_component(q)


def is_single_gaussian(p: GaussianMixture) -> bool:
    """Whether all components are the same one and their weights make 1."""
    first = p.means[:FIRST_COMPONENTS]  # a quick test before the whole array
    equal = bool((first == first[0]).all() and (p.means == first[0]).all() and p.shared)
    return equal and _sums_to_one(p.weights.tolist())


def independent_factors(*mixtures: GaussianMixture) -> tuple[OneDimensionalFactor, ...] | None:
    """Independent one-dimensional factors that distinguish the mixtures, none if they are equal.

    None if the mixtures are not of that kind.
    """
    d = mixtures[0].dimension
    weights = [p.weights for p in mixtures]
    if any(p.form == "full" for p in mixtures):
        k = common_covariance(mixtures) if all(p.form == "full" for p in mixtures) else None
        factor = None if k is None else _collinear_factor(weights, [p.means for p in mixtures], k)
        return None if factor is None else (factor,)
    means = [p.means.reshape(len(p), d) for p in mixtures]
    scales = [p.sigmas.reshape(len(p), -1) for p in mixtures]
    if all_rows_equal(scales):
        factor = _collinear_factor(weights, means, np.broadcast_to(scales[0][0], (d,)))
        if factor is not None:
            return (factor,)
    return _coordinate_factors(weights, means, scales)


def product_factors(
    p: GaussianMixture, q: GaussianMixture
) -> tuple[tuple[OneDimensionalFactor, ...], tuple[float, float]] | None:
    """Independent factors of two mixtures without displacements, and relative errors of the densities of both.

    None if there are no such factors, or nothing but the errors distinguishes the mixtures.
    """
    factors = () if equal_measures(p, q) else independent_factors(p, q)
    if factors is not None:
        return None if any(factor.displacement for factor in factors) else (factors, (0.0, 0.0))
    of_p, of_q = _marginals(p), _marginals(q)
    if of_p is None or of_q is None:
        return None
    columns = (list(zip(*rows, strict=True)) for rows in zip(of_p[0], of_q[0], strict=True))
    coordinates = [_coordinate_factor(list(w), list(m), list(s), j) for j, (w, m, s) in enumerate(columns)]
    factors = tuple(factor for factor in coordinates if factor.narrow[0] != factor.narrow[1])
    return (factors, (of_p[1], of_q[1])) if factors else None


def _marginals(p: GaussianMixture) -> tuple[list[tuple[FloatArray, FloatArray, FloatArray]], float] | None:
    """Weights, means and standard deviations of each coordinate of a product, and how far from one it is."""
    if p.form == "full":
        return None
    k, d = len(p), p.dimension
    means, sigmas = p.means.reshape(k, d) + 0.0, np.broadcast_to(p.sigmas.reshape(k, -1), (k, d))
    number, combination, product = 1, np.zeros(k, dtype=np.int64), np.ones(k)
    marginals: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for m, s in zip(means.T, sigmas.T, strict=True):
        rows, index = distinct_rows(np.stack([m, s], axis=1))
        number *= len(rows)
        if number > k:
            return None
        weights = np.asarray(np.bincount(index, p.weights), np.float64) if len(rows) > 1 else np.ones(1)
        combination, product = combination * len(rows) + index, product * weights[index]
        marginals.append((weights, rows[:, 0].copy(), rows[:, 1].copy()))
    if len(np.unique(combination)) < k or not (product > 1e-290).all():
        return None
    error = float(np.abs(p.weights / product - 1.0).max()) + 4 * (d + 2) * UNIT_ROUNDOFF
    return (marginals, error) if error <= _MAX_WEIGHT_ERROR else None


def _coordinate_factors(weights: Arrays, means: Arrays, scales: Arrays) -> tuple[OneDimensionalFactor, ...] | None:
    """Factors of mixtures with independent coordinates."""
    d = means[0].shape[1]
    varied = np.zeros(d, dtype=bool)
    for size in (FIRST_COMPONENTS, None):
        for m, s in zip(means, scales, strict=True):
            for rows in row_blocks(m, size):
                varied |= (m[rows] != m[0]).any(axis=0) | (s[rows] != s[0]).any(axis=0)
        if varied.sum() > 1 and not _may_be_collinear(means, scales, varied):
            return None
    factors = []
    for j in np.flatnonzero(~varied).tolist():
        gaussians = [(float(m[0, j]), float(s[0, j % s.shape[1]])) for m, s in zip(means, scales, strict=True)]
        if any(gaussian != gaussians[0] for gaussian in gaussians):
            mean, sigma = ([np.array([x]) for x in column] for column in zip(*gaussians, strict=True))
            factors.append(_coordinate_factor([_total_weight(w) for w in weights], mean, sigma, j))
    if varied.any():
        factor = _block_factor(weights, means, scales, np.flatnonzero(varied).tolist())
        if factor is None:
            return None
        factors.append(factor)
    return tuple(factors)


def _block_factor(weights: Arrays, means: Arrays, scales: Arrays, columns: list[int]) -> OneDimensionalFactor | None:
    """One coordinate, or several of constant standard deviations in which the means are collinear."""
    block = [s[:, columns] if s.shape[1] > 1 else s for s in scales]
    if len(columns) == 1:
        spread = [np.broadcast_to(s[:, 0], len(m)) for m, s in zip(means, block, strict=True)]
        return _coordinate_factor(weights, [m[:, columns[0]] for m in means], spread, columns[0])
    if not all_rows_equal(block):
        return None
    sigmas = np.broadcast_to(block[0][0], (len(columns),))
    return _collinear_factor(weights, [m[:, columns] for m in means], sigmas)


def _may_be_collinear(means: Arrays, scales: Arrays, varied: BoolArray) -> bool:
    few = [s[:FIRST_COMPONENTS, varied] if s.shape[1] > 1 else s[:FIRST_COMPONENTS] for s in scales]
    return all_rows_equal(few) and not _clearly_not_collinear([m[:FIRST_COMPONENTS, varied] for m in means], few[0][0])


def common_covariance(mixtures: tuple[GaussianMixture, ...]) -> FloatArray | None:
    """The covariance matrix of all components of mixtures in the full form, if it is one."""
    first: Any = mixtures[0].covariances
    for mixture in mixtures:
        stack: Any = mixture.covariances
        for matrices in (stack[-1:], stack):  # the last one is likely to differ, if any does
            if any(not np.array_equal(k, first[0]) for k in matrices):
                return None
    return np.asarray(first[0])


def _coordinate_factor(weights: Arrays, positions: Arrays, sigmas: Arrays, index: int) -> OneDimensionalFactor:
    """The distributions of one coordinate, without rounding."""
    columns = zip(weights, _recentred(positions), sigmas, strict=True)
    mixtures = tuple(_with_equal_components_joined(*column) for column in columns)
    return OneDimensionalFactor(mixtures, mixtures, coordinate=index)


def _collinear_factor(weights: Arrays, means: Arrays, k: FloatArray) -> OneDimensionalFactor | None:
    """Mixtures with one covariance k (a matrix, or the standard deviations) and means on one line; None if off it."""
    sigmas = np.sqrt(np.diagonal(k)) if k.ndim == 2 else k
    if _clearly_not_collinear([m[:FIRST_COMPONENTS] for m in means], sigmas):
        return None
    base, far = means[0][0], _farthest_mean(means, sigmas)
    if far is None:
        direction = [Fraction(int(j == 0)) for j in range(len(base))]
        axis = 0
    else:
        direction = algebra.exact_difference(far, base)
        axis = max(range(len(direction)), key=lambda j: abs(direction[j]) / Fraction(float(sigmas[j])))
    displacement = 0.0
    positions = [m[:, axis] for m in means]
    length = direction[axis]
    if far is not None and not _exactly_collinear(means, base, far, direction, axis):
        with np.errstate(over="ignore"):
            rounded = far - base
        if not np.all(np.isfinite(rounded)):
            return None
        result = _positions_and_displacement(means, base, rounded, k)
        if result is None:
            return None
        positions, displacement = result
        direction, length = [Fraction(x) for x in rounded.tolist()], Fraction(1)
    form = algebra.inverse_quadratic_form(direction, k)
    if form is None:
        return None
    low, high = algebra.square_root_enclosure((length**2 / form[1], length**2 / form[0]))
    if not 1 / _MAX_MAGNITUDE <= low <= high <= _MAX_MAGNITUDE:
        return None
    extent = max(float(x.max()) - float(y.min()) for x in positions for y in positions)
    if displacement > _MAX_RELATIVE_DISPLACEMENT * extent / high:
        return None
    return OneDimensionalFactor(*_narrow_and_wide(weights, positions, low, high), displacement)


def _narrow_and_wide(
    weights: Arrays, positions: Arrays, low: float, high: float
) -> tuple[tuple[GaussianMixture, ...], tuple[GaussianMixture, ...]]:
    """The mixtures with components at these positions and standard deviations ``low`` and ``high``."""
    columns = zip(weights, _recentred(positions), strict=True)
    narrow = tuple(_with_equal_components_joined(w, x, np.full(len(x), low)) for w, x in columns)
    if high == low:
        return narrow, narrow
    return narrow, tuple(GaussianMixture(p.weights, p.means, np.full(len(p), high)) for p in narrow)


def _clearly_not_collinear(means: Arrays, sigmas: FloatArray) -> bool:
    """Whether some of these means are clearly farther from a line than what is reduced."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.concatenate([(m - means[0][0]) / sigmas for m in means])
        largest = np.abs(rows).max(axis=1)
        far = int(np.argmax(largest))
        if not largest[far] > 0.0 or not largest[far] < 1e290:
            return False
        unit = rows[far] / largest[far]
        gap = np.abs(rows - (rows @ unit / (unit @ unit))[:, None] * unit).max(axis=1)
        return bool((gap > 4 * _MAX_DISPLACEMENT + 1e-11 * largest[far]).any())


def _farthest_mean(means: Arrays, sigmas: FloatArray) -> FloatArray | None:
    """The mean farthest from the first one; None when all are equal."""
    base, best = means[0][0], 0.0
    farthest: FloatArray | None = None
    with np.errstate(over="ignore"):
        for m in means:
            for rows in row_blocks(m):
                distance = np.abs((0.5 * m[rows] - 0.5 * base) / sigmas).max(axis=1)
                i = int(np.argmax(distance))
                if distance[i] > best:
                    best, farthest = float(distance[i]), m[rows][i]
    if farthest is None:  # differences that underflow in units of the standard deviation
        for m in means:
            other = np.flatnonzero((m != base).any(axis=1))
            if other.size:
                return np.asarray(m[other[0]])
    return farthest


def _exactly_collinear(means: Arrays, base: FloatArray, far: FloatArray, u: list[Fraction], axis: int) -> bool:
    """Whether all means lie exactly on base + x u; False too where that would take too long to decide."""
    differs = far != base
    remainder = ~differs
    for m in means:
        for rows in row_blocks(m):
            if (m[rows][:, remainder] != base[remainder]).any():
                return False
    if differs.sum() == 1:
        return True
    others: Arrays = []
    for m in means:
        for rows in row_blocks(m):
            block = m[rows]
            new = (block != base).any(axis=1) & (block != far).any(axis=1)
            others.extend(block[new][: _MAX_EXACT_NUMBERS // len(u) + 1])
            if len(others) * len(u) > _MAX_EXACT_NUMBERS:
                return False
    if not others:
        return True
    d = len(u)
    numbers, e = algebra.scaled_integers(np.concatenate([base, *others]))
    origin = numbers[:d]
    shift = 1 << max(0, -min(0, e))
    step = [x * shift for x in u]  # u in units that make it whole
    for i in range(1, len(others) + 1):
        gap = [a - b for a, b in zip(numbers[i * d : (i + 1) * d], origin, strict=True)]
        if any(g * step[axis] != gap[axis] * t for g, t in zip(gap, step, strict=True)):
            return False
    return True


def _positions_and_displacement(
    means: Arrays, base: FloatArray, u: FloatArray, k: FloatArray
) -> tuple[Arrays, float] | None:
    """Positions x_i along u and a bound of the distances of the means from base + x_i u in the metric of k."""
    if k.ndim == 2:
        exponents, a = algebra.unit_diagonal_scaling(k)
        least = algebra.least_eigenvalue_bound(a)
        if least <= 0.0 or np.abs(exponents).max() > 900:
            return None
        scale = np.ldexp(1.0, exponents.astype(np.int32)) / math.sqrt(least)
    else:
        with np.errstate(over="ignore"):
            scale = 1.0 / k
    direction = np.asarray(u * scale, dtype=np.longdouble)
    square = float(direction @ direction)
    if not 1e-250 < square < 1e250:
        return None
    direction = direction * (scale / square)
    wide_base, wide_u = base.astype(np.longdouble), u.astype(np.longdouble)
    positions, displacement = [], 0.0
    for m in means:
        parts = []
        for rows in row_blocks(m):
            block = m[rows]
            gap = block - wide_base
            x = np.asarray(gap @ direction, dtype=np.float64)
            shifted = np.multiply.outer(x.astype(np.longdouble), wide_u)
            rounding = 3 * _EXTENDED_EPSILON * (np.abs(block) + np.abs(base) + np.abs(shifted))
            distance = np.sqrt((((np.abs(gap - shifted) + rounding) * scale) ** 2).sum(axis=1))
            displacement = max(displacement, 1.000001 * float(distance.max()))
            if not displacement <= _MAX_DISPLACEMENT:
                return None
            parts.append(x)
        positions.append(np.concatenate(parts))
    return positions, displacement


def all_rows_equal(arrays: Arrays) -> bool:
    """Whether every row of every array is the first row of the first; a row of length 1 stands for a constant one."""
    first = arrays[0][0]
    sizes = (FIRST_COMPONENTS, None)
    return all((a[rows] == first).all() for size in sizes for a in arrays for rows in row_blocks(a, size))


def row_blocks(x: FloatArray, few: int | None = None) -> list[slice]:
    """Slices of rows of about a million numbers; only the first few rows if asked so."""
    if few is not None:
        return [slice(0, few)]
    step = max(1, _BLOCK_NUMBERS // max(1, x.shape[1]))
    return [slice(i, i + step) for i in range(0, len(x), step)]


def _recentred(positions: Arrays) -> Arrays:
    """All positions less the first one, if that rounds none of them."""
    c = positions[0][0]
    shifted = [x - c for x in positions]
    for x, y in zip(positions, shifted, strict=True):
        back = y - x
        if ((x - (y - back)) - (c + back)).any() or np.abs(y).max() > _MAX_MAGNITUDE:
            return positions
    return shifted


def _with_equal_components_joined(weights: FloatArray, means: FloatArray, sigmas: FloatArray) -> GaussianMixture:
    """The mixture with equal components joined; each weight is then a few doubles with exactly the same sum."""
    rows = np.stack([means + 0.0, sigmas], axis=1)
    if len(rows) == 1 or len(distinct_rows(rows)[0]) == len(rows):
        return GaussianMixture(weights, means, sigmas)
    total: dict[tuple[float, float], list[float]] = {}
    for w, (m, s) in zip(weights.tolist(), rows.tolist(), strict=True):
        total.setdefault((m, s), []).append(w)
    if len(total) == 1:
        total = {key: [1.0] if _sums_to_one(parts) else parts for key, parts in total.items()}
    components = [(w, *key) for key, parts in total.items() for w in _exact_summands(parts)]
    return GaussianMixture(*(np.array(column) for column in zip(*components, strict=True)))


def _sums_to_one(weights: list[float]) -> bool:
    """Whether they sum to 1 within their own rounding."""
    return abs(math.fsum([*weights, -1.0])) <= 0.5 * math.fsum(map(math.ulp, weights)) + UNIT_ROUNDOFF


def _total_weight(weights: FloatArray) -> FloatArray:
    """The sum of the weights as an array of one entry, exactly 1 where their rounding allows it."""
    parts = weights.tolist()
    return np.array([1.0 if _sums_to_one(parts) else math.fsum(parts)])


def _exact_summands(weights: list[float]) -> list[float]:
    """Few positive doubles with the exact sum of the given ones."""
    remainder, summands = sum(map(Fraction, weights)), []
    while remainder:
        w = float(remainder)
        if Fraction(w) > remainder:
            w = math.nextafter(w, 0.0)
        summands.append(w)
        remainder -= Fraction(w)
    return summands


def _has_mean(mixture: GaussianMixture, mean: FloatArray) -> bool:
    means, mean = mixture.means.reshape(len(mixture), -1), np.ravel(mean)
    near = np.flatnonzero(means[:, 0] == mean[0])
    return bool(near.size) and bool((means[near] == mean).all(axis=1).any())


def _exact_weights_by_component(mixture: GaussianMixture) -> dict[bytes, Fraction]:
    """The exact total weight of each distinct component; its bytes are the key."""
    k, d = len(mixture), mixture.dimension
    means = mixture.means.reshape(k, d) + 0.0  # makes -0.0 the same bytes as 0.0
    if mixture.form == "full":
        scales: FloatArray = np.asarray(mixture.covariances).reshape(-1, d * d) + 0.0
    else:
        scales = np.broadcast_to(mixture.sigmas.reshape(k, -1), (k, d))
    weights: dict[bytes, Fraction] = {}
    for i, w in enumerate(mixture.weights.tolist()):
        key = means[i].tobytes() + scales[i % len(scales)].tobytes()
        weights[key] = weights.get(key, Fraction(0)) + Fraction(w)
    return weights
