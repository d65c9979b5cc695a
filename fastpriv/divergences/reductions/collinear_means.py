"""Laws on a line: mixtures with one covariance and collinear means, and single coordinates.

Notation: P = sum w_i N(m_i, K_i), Q = sum v_j N(n_j, L_j) with entries taken as exact; s^2 = 1 / (u' K^-1 u).

Lines. If all components of all laws have one covariance K and all means lie on c + x u, the likelihoods depend on the
sample through u' K^-1 (sample - c) alone, which is a sufficient statistic: every f-divergence, Renyi divergence and
mutual information of label and output is that of the laws sum w_i N(x_i, s^2) on the line. Exactly collinear means
(at most two distinct ones always are) are kept as one of their own coordinates, x_i = m_ij, with u scaled to
u_j = 1, so that no position is rounded; s is irrational in general and is enclosed by two doubles. Adding independent
noise to both laws lowers each of these divergences (data processing), so the narrow laws (s rounded down) give upper
and the wide ones (s rounded up) lower bounds.

Means that miss a line by rounding. u is the double nearest to the difference of two far means, x_i a double, and
r_i = m_i - c - x_i u is bounded in extended precision; ``displacement`` is an upper bound of the largest |r_i| in the metric
of K, at most 1e-9 and at most a millionth of the extent; what it may do to each quantity is proved in ``__init__.py``.
Larger residuals are not reduced.

Parallel lines. If the means of P lie on one line and those of Q on a parallel one (a single mean lies on any), the
coordinates along and across are independent in both laws: across, they are two normal laws of one deviation.
"""

# bounds: tested by enclosures/test_reductions - rounding of positions, and of residuals in extended precision

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..._values import distinct_rows
from ...distributions import GaussianMixture
from ...distributions.exact import scaled_integers
from .exact_linear_algebra import diagonal_quadratic_form, exact_difference, least_eigenvalue_bound, inverse_quadratic_form, square_root_enclosure, unit_diagonal_scaling

__all__ = [
    "FIRST_COMPONENTS", "OneDimensionalFactor", "all_rows_equal", "row_blocks", "coordinate_factor", "sums_to_one", "collinear_factor", "parallel_factors",
    "clearly_not_collinear",
]  # fmt: skip

FloatArray = NDArray[np.float64]
FIRST_COMPONENTS = 4  # components of each law that are looked at before all are
# bound: none - means farther from a line are not reduced
_MAX_DISPLACEMENT = 1e-9
_MAX_RELATIVE_DISPLACEMENT = 1e-6  # of the slack in the extent of the line
_MAX_EXACT_NUMBERS = 20_000  # numbers in the means up to which collinearity is decided in whole numbers
_BLOCK_NUMBERS = 1 << 20
_MAX_MAGNITUDE = 1e300
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True)
class OneDimensionalFactor:
    """Laws on the line with standard deviations rounded down (``narrow``) and up (``wide``); the same if exact."""

    narrow: tuple[GaussianMixture, ...]
    wide: tuple[GaussianMixture, ...]
    displacement: float = 0.0
    coordinate: int | None = None  # the coordinate that the line is
    distance_across: float = 0.0  # distance of the lines of two laws, in standard deviations
    log_uncertainty: float = 0.0  # the densities of the laws are known within e^(+-blur)

    @property
    def exact(self) -> bool:
        """Whether nothing was rounded."""
        return self.narrow is self.wide and self.displacement == 0.0 and self.log_uncertainty == 0.0

    @property
    def diameter(self) -> float:
        """An upper bound of the distance of any two means in standard deviations, those off the line included."""
        means = np.concatenate([law.means for law in self.narrow])
        sigma = min(float(law.sigmas.min()) for law in self.narrow)
        along = float(means.max()) / sigma - float(means.min()) / sigma
        return 1.000001 * (along + self.distance_across) + 2 * self.displacement


def coordinate_factor(weights: list[FloatArray], positions: list[FloatArray], sigmas: list[FloatArray], axis: int) -> OneDimensionalFactor:
    """The laws of one coordinate, without rounding."""
    positions = _recentred(positions)
    laws = tuple(_with_equal_components_joined(*columns) for columns in zip(weights, positions, sigmas, strict=True))
    return OneDimensionalFactor(laws, laws, coordinate=axis)


def collinear_factor(weights: list[FloatArray], means: list[FloatArray], k: FloatArray) -> OneDimensionalFactor | None:
    """Laws with one covariance k (a matrix, or the standard deviations) and means on one line."""
    size = np.sqrt(np.diagonal(k)) if k.ndim == 2 else k
    if clearly_not_collinear([m[:FIRST_COMPONENTS] for m in means], size):
        return None
    base, far = means[0][0], _farthest_mean(means, size)
    if far is None:
        u = [Fraction(int(j == 0)) for j in range(len(base))]
        axis = 0
    else:
        u = exact_difference(far, base)
        axis = max(range(len(u)), key=lambda j: abs(u[j]) / Fraction(float(size[j])))
    displacement = 0.0
    positions = [m[:, axis] for m in means]
    length = u[axis]
    if far is not None and not _exactly_collinear(means, base, far, u, axis):
        with np.errstate(over="ignore"):
            rounded = far - base
        if not np.all(np.isfinite(rounded)):
            return None
        found = _positions_and_displacement(means, base, rounded, k)
        if found is None:
            return None
        positions, displacement = found
        u, length = [Fraction(x) for x in rounded.tolist()], Fraction(1)
    form = inverse_quadratic_form(u, k) if k.ndim == 2 else diagonal_quadratic_form(u, np.asarray(k))
    if form is None:
        return None
    low, high = square_root_enclosure((length**2 / form[1], length**2 / form[0]))
    if not 1 / _MAX_MAGNITUDE <= low <= high <= _MAX_MAGNITUDE:
        return None
    if displacement > _MAX_RELATIVE_DISPLACEMENT * max(float(x.max()) - float(y.min()) for x in positions for y in positions) / high:
        return None
    return OneDimensionalFactor(*_narrow_and_wide(weights, positions, low, high), displacement)


def parallel_factors(
    weights: list[FloatArray], means: list[FloatArray], k: FloatArray
) -> tuple[OneDimensionalFactor, OneDimensionalFactor] | None:
    """Two laws with one covariance and means on two parallel lines: along these, and across from one to the other."""
    size = np.sqrt(np.diagonal(k)) if k.ndim == 2 else k
    with np.errstate(over="ignore", invalid="ignore"):
        if clearly_not_collinear([m[:FIRST_COMPONENTS] - m[0] for m in means], size):
            return None
        far = [_farthest_mean([m], size) for m in means]
        steps = [end - m[0] for m, end in zip(means, far, strict=True) if end is not None]
        rounded = max(steps, key=lambda step: float(np.abs(step / size).max()), default=np.full(size.size, np.nan))
    if not np.all(np.isfinite(rounded)):
        return None
    found = [_positions_and_displacement([m], m[0], rounded, k) for m in means]
    if found[0] is None or found[1] is None:
        return None
    (x, slack_p), (y, slack_q) = found[0], found[1]
    u, v = [Fraction(t) for t in rounded.tolist()], exact_difference(means[1][0], means[0][0])
    forms = [
        inverse_quadratic_form(z, k) if k.ndim == 2 else diagonal_quadratic_form(z, np.asarray(k))
        for z in (u, v, [a + b for a, b in zip(u, v, strict=True)])
    ]
    if forms[0] is None or forms[1] is None or forms[2] is None:
        return None
    (uu, uu_high), (vv, vv_high), (both, both_high) = forms[0], forms[1], forms[2]
    low, high = square_root_enclosure((1 / uu_high, 1 / uu))
    # v = shift u + w with w across: |w|^2 = |v|^2 - (u.v)^2 / |u|^2
    dot = (both - uu_high - vv_high) / 2, (both_high - uu - vv) / 2
    square = max(dot[0] ** 2, dot[1] ** 2)
    least = Fraction(0) if dot[0] <= 0 <= dot[1] else min(dot[0] ** 2, dot[1] ** 2)
    distance_across = vv - square / uu, vv_high - least / uu_high
    shift = float((dot[0] + dot[1]) / 2 / uu)
    if distance_across[0] <= 0:
        return None
    near, wide = square_root_enclosure((1 / distance_across[1], 1 / distance_across[0]))
    if not (1 / _MAX_MAGNITUDE <= low <= high <= _MAX_MAGNITUDE and 1 / _MAX_MAGNITUDE <= near <= wide <= _MAX_MAGNITUDE):
        return None
    moved = y[0] + shift
    ends = abs(Fraction(shift) - dot[0] / uu_high), abs(Fraction(shift) - dot[0] / uu), \
        abs(Fraction(shift) - dot[1] / uu_high), abs(Fraction(shift) - dot[1] / uu)  # fmt: skip
    rounding = 2.0**-53 * float(np.abs(moved).max()) + 1.0001 * float(max(ends))
    displacement = max(slack_p, slack_q) + 1.0001 * rounding / low
    diameter = (max(float(x[0].max()), float(moved.max())) - min(float(x[0].min()), float(moved.min()))) / high
    if displacement > _MAX_DISPLACEMENT or displacement > _MAX_RELATIVE_DISPLACEMENT * diameter:
        return None
    along = _narrow_and_wide(weights, [x[0], moved], low, high)
    masses = [np.array([1.0]) if sums_to_one(w.tolist()) else np.array([math.fsum(w.tolist())]) for w in weights]
    apart = _narrow_and_wide(masses, [np.array([0.0]), np.array([1.0])], near, wide)
    return OneDimensionalFactor(*along, displacement, distance_across=1.000001 / near), OneDimensionalFactor(*apart)


def _narrow_and_wide(
    weights: list[FloatArray], positions: list[FloatArray], low: float, high: float
) -> tuple[tuple[GaussianMixture, ...], tuple[GaussianMixture, ...]]:
    """The narrow and the wide laws at these positions."""
    positions = _recentred(positions)
    narrow = tuple(_with_equal_components_joined(w, x, np.full(len(x), low)) for w, x in zip(weights, positions, strict=True))
    if high == low:
        return narrow, narrow
    return narrow, tuple(GaussianMixture(law.weights, law.means, np.full(len(law), high)) for law in narrow)


def clearly_not_collinear(few: list[FloatArray], size: FloatArray) -> bool:
    """Whether a few means are clearly farther from a line than what is reduced."""
    with np.errstate(over="ignore", invalid="ignore"):
        rows = np.concatenate([(m - few[0][0]) / size for m in few])
        largest = np.abs(rows).max(axis=1)
        far = int(np.argmax(largest))
        if not largest[far] > 0.0 or not largest[far] < 1e290:
            return False
        unit = rows[far] / largest[far]
        gap = np.abs(rows - (rows @ unit / (unit @ unit))[:, None] * unit).max(axis=1)
        return bool((gap > 4 * _MAX_DISPLACEMENT + 1e-11 * largest[far]).any())


def _farthest_mean(means: list[FloatArray], size: FloatArray) -> FloatArray | None:
    """The mean farthest from the first one; None when all are equal."""
    base, best = means[0][0], 0.0
    found: FloatArray | None = None
    with np.errstate(over="ignore"):
        for m in means:
            for rows in row_blocks(m):
                distance = np.abs((0.5 * m[rows] - 0.5 * base) / size).max(axis=1)
                i = int(np.argmax(distance))
                if distance[i] > best:
                    best, found = float(distance[i]), m[rows][i]
    if found is None:  # differences below the smallest double in units of the deviation
        for m in means:
            other = np.flatnonzero((m != base).any(axis=1))
            if other.size:
                return np.asarray(m[other[0]])
    return found


def _exactly_collinear(means: list[FloatArray], base: FloatArray, far: FloatArray, u: list[Fraction], axis: int) -> bool:
    """Whether all means lie exactly on base + x u, as far as that is decided exactly."""
    moved = far != base
    rest = ~moved
    for m in means:
        for rows in row_blocks(m):
            if (m[rows][:, rest] != base[rest]).any():
                return False
    if moved.sum() == 1:
        return True
    others: list[FloatArray] = []
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
    numbers, e = scaled_integers(np.concatenate([base, *others]))
    origin = numbers[:d]
    shift = 1 << max(0, -min(0, e))
    step = [x * shift for x in u]  # u in units that make it whole
    for i in range(1, len(others) + 1):
        gap = [a - b for a, b in zip(numbers[i * d : (i + 1) * d], origin, strict=True)]
        if any(g * step[axis] != gap[axis] * t for g, t in zip(gap, step, strict=True)):
            return False
    return True


def _positions_and_displacement(
    means: list[FloatArray], base: FloatArray, u: FloatArray, k: FloatArray
) -> tuple[list[FloatArray], float] | None:
    """Positions x_i along u and a bound of the distances of the means from base + x_i u in the metric of k."""
    if k.ndim == 2:
        exponents, a = unit_diagonal_scaling(k)
        least = least_eigenvalue_bound(a)
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
    found, displacement = [], 0.0
    for m in means:
        parts = []
        for rows in row_blocks(m):
            block = m[rows]
            gap = block - wide_base
            x = np.asarray(gap @ direction, dtype=np.float64)
            moved = np.multiply.outer(x.astype(np.longdouble), wide_u)
            rounding = 3 * _EXTENDED_EPSILON * (np.abs(block) + np.abs(base) + np.abs(moved))
            distance = np.sqrt((((np.abs(gap - moved) + rounding) * scale) ** 2).sum(axis=1))
            displacement = max(displacement, 1.000001 * float(distance.max()))
            if not displacement <= _MAX_DISPLACEMENT:
                return None
            parts.append(x)
        found.append(np.concatenate(parts))
    return found, displacement


def all_rows_equal(arrays: list[FloatArray]) -> bool:
    """Whether every row of every array is the first row of the first; a row of length 1 stands for a constant one."""
    first = arrays[0][0]
    return all((a[rows] == first).all() for size in (FIRST_COMPONENTS, None) for a in arrays for rows in row_blocks(a, size))


def row_blocks(x: FloatArray, few: int | None = None) -> list[slice]:
    """Slices of rows of about a million numbers; only the first few rows if asked so."""
    if few is not None:
        return [slice(0, few)]
    step = max(1, _BLOCK_NUMBERS // max(1, x.shape[1]))
    return [slice(i, i + step) for i in range(0, len(x), step)]


def _recentred(positions: list[FloatArray]) -> list[FloatArray]:
    """All positions less the first one, if that rounds none of them."""
    c = positions[0][0]
    moved = [x - c for x in positions]
    for x, y in zip(positions, moved, strict=True):
        back = y - x
        if ((x - (y - back)) - (c + back)).any() or np.abs(y).max() > _MAX_MAGNITUDE:
            return positions
    return moved


def _with_equal_components_joined(weights: FloatArray, means: FloatArray, sigmas: FloatArray) -> GaussianMixture:
    """The mixture with equal components joined; each weight is then a few doubles with exactly the same sum."""
    rows = np.stack([means + 0.0, sigmas], axis=1)
    if len(rows) == 1 or len(distinct_rows(rows)[0]) == len(rows):
        return GaussianMixture(weights, means, sigmas)
    total: dict[tuple[float, float], list[float]] = {}
    for w, (m, s) in zip(weights.tolist(), rows.tolist(), strict=True):
        total.setdefault((m, s), []).append(w)
    if len(total) == 1:
        total = {key: [1.0] if sums_to_one(parts) else parts for key, parts in total.items()}
    found = [(w, *key) for key, parts in total.items() for w in _exact_summands(parts)]
    return GaussianMixture(*(np.array(column) for column in zip(*found, strict=True)))


def sums_to_one(weights: list[float]) -> bool:
    """Whether they sum to 1 as far as their own rounding tells."""
    return abs(math.fsum([*weights, -1.0])) <= 0.5 * math.fsum(map(math.ulp, weights)) + 2.0**-53


def _exact_summands(weights: list[float]) -> list[float]:
    """Few positive doubles with the exact sum of the given ones."""
    rest, found = sum(map(Fraction, weights)), []
    while rest:
        w = float(rest)
        if Fraction(w) > rest:
            w = math.nextafter(w, 0.0)
        found.append(w)
        rest -= Fraction(w)
    return found
