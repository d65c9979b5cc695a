"""Hockey-stick divergences of mixtures whose parts can be told apart, by their places or by their scales.

Notation: f = p - a q with a = e^epsilon, P = sum_i w_i N(m_i, s_i^2), Q = sum_j v_j N(n_j, t_j^2); H(P, Q) is the
integral of f^+, for measures of any mass. The parts are computed in units and from origins of their own, so that
lengths of 1e-300 and 1e300 meet within the range of doubles, and crossings next to a mean are resolved wherever it is.

Groups. When the components fall into groups, c, with P = sum_c P_c and Q = sum_c Q_c, H differs from
sum_c H(P_c, Q_c) by at most the integrals of min(w_i N_i, a v_j N_j) over pairs i, j of different groups: both are sums
of positive parts, and (f + g)^+ >= f^+ + g^+ - min(f^+, g^-) - min(f^-, g^+).

Clusters. Let the components be wide ones and others that are at least ``_LEAST_GAP`` times narrower. The narrow ones
fall into clusters with disjoint windows W = [c - R, c + R], beyond which they have less than e^-``_OUTSIDE`` of their
mass, also when it is multiplied by a. With p_0 and q_0 the wide components, f_0 = p_0 - a q_0, and H_0 its integral,

    H(P, Q) = H_0 + sum over W of D,   D = integral over W of f^+ - f_0^+.

Within W a wide density is k e^(g y) up to a factor e^(+-eta), y = x - c: with r_i the share of component i at c, g_i
its score, g = sum r_i g_i and u_i = (g_i - g) y - y^2 / (2 s_i^2), the factor is sum_i r_i e^(u_i), which differs from
1 by at most sum_i r_i (R^2 / (2 s_i^2) + k_i^2 e^(k_i) / 2), k_i = |g_i - g| R + R^2 / (2 s_i^2). So is the Gaussian of
mean g S^2 and standard deviation S >> R that has the density k at c. These, h_p and h_q, take the place of the wide
components. With P' and Q' the narrow ones and them, f^+ lies within W between e^-eta (p' - e^(2 eta) a q')^+ and
e^eta (p' - e^(-2 eta) a q')^+, likewise f_0^+ with h_p and h_q, and outside of W the integrals of (p' - a q')^+ and of
(h_p - a h_q)^+ are equal. Hence D is H(P', Q') - H(h_p, h_q) with these factors and shifts of epsilon, up to 4.1 eta
times the integral of h_p over W. It is at most the mass of the narrow components of P, and at least minus the
integral of p_0 over W, or 0 where f_0 < 0 on W.
"""

# bounds: proved - docs/proofs/roundings.md, 13.18: rounding of overlaps, of local densities and of sums over parts

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from ...base import numerics
from ...base.numerics import LOG_2, MACHINE_EPSILON, BoolArray, FloatArray, IndexArray, log_sum_exp
from ...kernels import _hockey_stick_curves

Components = tuple[FloatArray, FloatArray, FloatArray]  # weights, means, standard deviations
RowsOf = Callable[[Components, Components, FloatArray], FloatArray]
# bound: none - relative width of a bracket from which on parts and closed bounds are tried
WIDE_BRACKET = 1e-9
MAX_PAIRS = 4_000_000  # of components, times the number of epsilons, for which closed bounds are computed
# bound: proved - docs/proofs/roundings.md, 13.18: rounding of the logarithms of overlaps, with 1e-12 of their terms
_OUTWARD = 1e-9
# Overlaps below these, relative to the smaller component, do not join two components to one group.
_NEGLIGIBLE_OVERLAPS = (1e-25, 1e-16, 1e-9, 1e-3)
# bound: proved - a window of a normal distribution leaves out at most e^-70 of it, which is added
_WINDOW_LOG_MASS = 70.0
# bound: none - ratio of neighbouring scales from which on the smaller ones are taken as clusters
_LEAST_GAP = 1e6
# bound: none - ratio of scales up to which clusters and what is left of the wide components are taken
_MAX_RATIO = 1e13
_MAX_NARROW = 500  # narrow components, whose distances are all compared
# bound: proved - at most e^-790 of a component lies outside of its window, which is added
_OUTSIDE = 790.0
# bound: none - S over R, and S over the least wide sigma, at most: errors of local densities and of differences balance
_MAX_STRETCH, _MAX_PART = 2.0**18, 2.0**-4
# bound: none - S over R, at least
_MIN_STRETCH = 2.0**8
# bound: proved - docs/proofs/roundings.md, 13.18: relative rounding of a local density, for each unit of its terms
_ROUNDING = 2e-15
_LOG_SQRT_2_PI = 0.9189385332046727  # log(2 pi) / 2, of the normal density
_TRIVIAL = [0.5, 0.0, 1.0, -LOG_2, -np.inf, 0.0]  # the row of which nothing is known
# bound: proved - e^-790, ten times; and more than that, as a double
_LOG_OUTSIDE, _TINY = 3.0 - _OUTSIDE, 1e-320
# bound: none - weights below e^-690 are not normal numbers
_LEAST_LOG_MASS = -690.0


def is_wide(rows: FloatArray, width: float = WIDE_BRACKET) -> BoolArray:
    """Whether a bracket is far wider than rounding explains; for tiny divergences, whether it is trivial."""
    wide = _hockey_stick_curves.wide_brackets(np.ascontiguousarray(rows).reshape(-1, 6), width)
    return np.zeros(rows.shape[:-1], dtype=np.bool_) if wide is None else np.asarray(wide).reshape(rows.shape[:-1])


def narrow_by_parts(
    rows: FloatArray, p: Components, q: Components, epsilon: FloatArray, kernel: RowsOf, expired: Callable[[], bool],
    *, thorough: bool = True,
) -> bool:
    """Intersect rows with those from parts, in place, until none is wide; whether two contradicted each other.

    Parts are parted themselves, but in one way only, the first that there is, so that the work grows with the number of
    parts and not with a power of it.
    """

    disagree = False

    def rows_of(p: Components, q: Components, grid: FloatArray) -> FloatArray:
        nonlocal disagree
        rows = kernel(p, q, grid)
        wide = np.flatnonzero(is_wide(rows))
        if wide.size:
            part = rows[wide]
            disagree |= narrow_by_parts(part, p, q, grid[wide], kernel, expired, thorough=False)
            rows[wide] = part
        return rows

    groups = _rows_of_groups(p, q, epsilon, rows_of)
    for parts in chain(islice(groups, 1), _rows_of_clusters(p, q, epsilon, rows_of), groups):
        disagree |= intersect_rows(rows, np.arange(len(rows)), parts)
        parted = (parts[:, 2] - parts[:, 1] < 1.0) | (parts[:, 4] > -np.inf) | (parts[:, 5] < 0.0)
        if expired() or not is_wide(rows).any() or (parted.all() and not thorough):
            break
    return disagree


def intersect_rows(rows: FloatArray, index: IndexArray, other: FloatArray) -> bool:
    """Intersect rows with other brackets of the same, in place, and take the value of the narrower one.

    Where two of them contradict each other the row becomes their hull, and True is returned.
    """
    contradicted = False
    for k in (0, 3):
        old, new = rows[index, k : k + 3], other[:, k : k + 3]
        with np.errstate(invalid="ignore"):  # of logarithms of 0
            better = new[:, 2] - new[:, 1] < old[:, 2] - old[:, 1]
        value = np.where(better | ~np.isfinite(old[:, 0]), new[:, 0], old[:, 0])
        lower, upper, disagree = numerics.reconcile_bounds((old[:, 1], old[:, 2]), (new[:, 1], new[:, 2]))
        rows[index, k], rows[index, k + 1], rows[index, k + 2] = np.clip(value, lower, upper), lower, upper
        contradicted |= bool(disagree.any())
    return contradicted


def _rows_of_clusters(p: Components, q: Components, epsilon: FloatArray, rows_of: RowsOf) -> Iterator[FloatArray]:
    """Rows from wide components and clusters of narrow ones, where there are both."""
    gap, limit = _largest_gap(p, q)
    if not gap >= _LEAST_GAP or sum(int((x[2] <= limit).sum()) for x in (p, q)) > _MAX_NARROW:
        return
    finite = np.isfinite(epsilon)
    reach = math.sqrt(2.0 * (_OUTSIDE + max(0.0, float(epsilon[finite].max(initial=0.0)))))
    wide_p, wide_q = (_select(side, side[2] > limit) for side in (p, q))
    narrow_p, narrow_q = (_select(side, side[2] <= limit) for side in (p, q))
    clusters = [_Cluster(*parts, wide_p, wide_q, reach) for parts in _clusters(narrow_p, narrow_q, reach)]
    scales = np.concatenate([wide_p[2], wide_q[2]])
    if not all(cluster.is_local for cluster in clusters) or scales.max() * (1.0 / _MAX_RATIO) > scales.min():
        return
    rows = _measure_rows(wide_p, wide_q, epsilon, rows_of)
    low, high, log_low, log_high = rows[:, 1], rows[:, 2], rows[:, 4], rows[:, 5]
    size = high.copy()
    with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
        for cluster in clusters:
            least, most, log_least, log_most = cluster.difference(epsilon, rows_of)
            low, high, size = low + least, high + most, size + np.maximum(np.abs(least), np.abs(most))
            log_low, log_high = np.logaddexp(log_low, log_least), np.logaddexp(log_high, log_most)
            log_low[np.isnan(log_least)] = np.nan
        rounding = MACHINE_EPSILON * (4 + 2 * len(clusters))
        low = np.maximum(low - rounding * size - _TINY, 0.0)
        high = np.clip(high + rounding * size + _TINY, 0.0, 1.0)
        log_low = np.where(log_low > 20.0 - _OUTSIDE, log_low - 1e-8, -np.inf)
        log_high = np.logaddexp(log_high, _LOG_OUTSIDE) + 1e-8
        log_low = np.where(low > 1e-290, np.log(low), log_low)
        log_high = np.where(high > 1e-290, np.log(high), log_high)
        log_low -= 1e-14 * (8.0 + np.abs(np.where(np.isinf(log_low), 0.0, log_low)))
        log_high = np.minimum(log_high + 1e-14 * (8.0 + np.abs(log_high)), 0.0)
        value = low + 0.5 * (high - low)
        log_value = np.clip(np.where(high > 1e-290, np.log(value), log_high), log_low, log_high)
    rows = np.column_stack([value, low, high, log_value, log_low, log_high])
    rows[~finite] = [0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf]
    yield rows


def _largest_gap(p: Components, q: Components) -> tuple[float, float]:
    """The largest ratio of neighbouring standard deviations, and the smaller one of the two."""
    sigmas = np.sort(np.concatenate([p[2], q[2]]))
    with np.errstate(over="ignore"):
        gaps = sigmas[1:] / sigmas[:-1]
    split = int(np.argmax(gaps))
    return float(gaps[split]), float(sigmas[split])


def _clusters(p: Components, q: Components, reach: float) -> list[tuple[Components, Components]]:
    """The narrow components that lie within each other's windows, directly or by others between them."""
    m, s = np.concatenate([p[1], q[1]]), np.concatenate([p[2], q[2]])
    with np.errstate(over="ignore"):
        joined = np.abs(m[:, None] - m) <= reach * (1 + 1e-9) * (s[:, None] + s)
    labels = _connected(joined)
    of_p, of_q = labels[: len(p[0])], labels[len(p[0]) :]
    return [(_select(p, of_p == c), _select(q, of_q == c)) for c in range(labels.max() + 1)]


def _select(side: Components, chosen: BoolArray) -> Components:
    """The components of one side that are marked."""
    return side[0][chosen], side[1][chosen], side[2][chosen]


class _LocalDensity(NamedTuple):
    """A density in a window: k e^(g y) within e^(+-eta); at most e^most, at least e^least at the centre."""

    log_k: float
    g: float
    eta: float
    least: float
    most: float


class _Cluster:
    """Narrow components in a window, and what stands for the wide ones there."""

    def __init__(self, p: Components, q: Components, wide_p: Components, wide_q: Components, reach: float) -> None:
        means, sigmas = np.concatenate([p[1], q[1]]), np.concatenate([p[2], q[2]])
        self.centre = float(means[np.argmin(sigmas)])
        self.narrow: list[Components] = [(w, m - self.centre, s) for w, m, s in (p, q)]
        offsets = np.concatenate([m for _, m, _ in self.narrow])
        self.radius = float((np.abs(offsets) + reach * sigmas).max()) * (1 + 1e-9)
        self.density = [self._local_density(*side) for side in (wide_p, wide_q)]
        part = _MAX_PART * min(float(side[2].min(initial=math.inf)) for side in (wide_p, wide_q))
        steepest = max(abs(side.g) for side in self.density)
        self.scale = min(self.radius * _MAX_STRETCH, part, 2.0 / steepest if steepest else math.inf)
        # a pair of more scales than that is not left to the monotone pieces
        self.is_local = self.scale >= _MIN_STRETCH * self.radius and self.scale / float(sigmas.min()) <= _MAX_RATIO
        # Where a difference of two means is not exact the place of a component would be lost, and c stays where it is;
        # doubles within a factor of 2 have exact differences, so that |c| is at most 4 R there.
        exact = bool(np.all((offsets + self.centre == means) & (means - offsets == self.centre)))
        self.origin = 0.0 if exact else self.centre
        self.narrow = self.narrow if exact else [p, q]

    def difference(self, epsilon: FloatArray, rows_of: RowsOf) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Lower and upper bound of D, and of log D; the first logarithm is NaN where D may be negative."""
        of_p, of_q = self.density
        bend, log_width = 0.5 * (self.radius / self.scale) ** 2, math.log(2.1 * self.radius)
        bend += 2e-15 * (8.0 + abs(math.log(self.scale)))
        present: list[bool] = []
        wide: list[Components] = []
        for side in self.density:
            log_mass = side.log_k + math.log(self.scale) + _LOG_SQRT_2_PI + 0.5 * (side.g * self.scale) ** 2
            present.append(log_mass > _LEAST_LOG_MASS and side.eta < math.inf)
            mass = np.array([math.exp(log_mass)] if present[-1] else [])
            mean = self.origin + side.g * self.scale**2
            wide.append((mass, np.full(mass.size, mean), np.full(mass.size, self.scale)))
        eta = max([bend, *(bend + side.eta for side, selected in zip(self.density, present, strict=True) if selected)])
        local = [
            (np.append(n[0], h[0]), np.append(n[1], h[1]), np.append(n[2], h[2]))
            for n, h in zip(self.narrow, wide, strict=True)
        ]
        grid = np.concatenate([epsilon + 2.0 * eta, epsilon - 2.0 * eta])
        down, up = np.split(_measure_rows(local[0], local[1], grid, rows_of), 2)
        x_down, x_up = np.split(_measure_rows(wide[0], wide[1], grid, rows_of), 2)
        # a density that is left out costs its mass in the window; that of Q costs the lower bound alone
        mass_of_p = math.exp(of_p.most + log_width)
        crosses = of_p.most > epsilon + (of_q.least if present[1] else -math.inf) - 2.0 * eta - 1e-9
        spread = np.where(crosses, 4.1 * eta * mass_of_p, 0.0) + (0.0 if present[0] else mass_of_p)
        lost = spread + (0.0 if present[1] else np.exp(np.minimum(of_q.most + log_width + epsilon, 700.0)))
        slip, grow, mass_p = 8.0 * MACHINE_EPSILON, math.exp(eta), math.fsum(self.narrow[0][0]) * (1 + 1e-15)
        least = (down[:, 1] - x_down[:, 2]) / grow - slip * (down[:, 1] + x_down[:, 2]) - lost
        most = (up[:, 2] - x_up[:, 1]) * grow + slip * (up[:, 2] + x_up[:, 1]) + spread
        least, most = np.maximum(least, np.where(crosses, -mass_of_p, 0.0)), np.minimum(most, mass_p)
        unmixed = (x_down[:, 2] == 0.0) & (lost == 0.0)
        log_least = np.where(unmixed, down[:, 4] - eta, np.where(least >= 0.0, np.log(least), np.nan))
        log_most = np.where(unmixed & (x_up[:, 1] == 0.0), up[:, 5] + eta, np.log(np.maximum(most, 0.0)))
        return least, most, log_least, np.minimum(log_most, np.log(mass_p))

    def _local_density(self, w: FloatArray, m: FloatArray, s: FloatArray) -> _LocalDensity:
        if not w.size:
            return _LocalDensity(-math.inf, 0.0, 0.0, -math.inf, -math.inf)
        with np.errstate(divide="ignore", over="ignore", under="ignore", invalid="ignore"):
            z = np.clip((self.centre - m) / s, -1e150, 1e150)
            load, rho = np.log(w) - np.log(s) - _LOG_SQRT_2_PI, self.radius / s
            size = np.abs(np.log(w)) + np.abs(np.log(s))
            nearest = load - 0.5 * np.maximum(np.abs(z) * (1 - 1e-14) - rho, 0.0) ** 2
            most = float(log_sum_exp(nearest + _ROUNDING * size)) + 1e-9
            absent = _LocalDensity(-math.inf, 0.0, math.inf, -math.inf, most)
            if most + math.log(2.1 * self.radius) < _LEAST_LOG_MASS - 60.0:
                return absent
            terms = load - 0.5 * z * z
            log_k = float(log_sum_exp(terms))
            shares = np.exp(terms - log_k)
            scores = np.where(shares > 0.0, -z / s, 0.0)
            g = float((shares * scores).sum())
            half, k = 0.5 * rho * rho, np.abs(-z / s - g) * self.radius + 0.5 * rho * rho
            # a share may be off by its error, relative to itself, and by that of the sum
            errors = _ROUNDING * (8.0 + z * z + size + abs(log_k))
            errors = errors + 1.1 * float((shares * errors).sum())
            ceiling = np.exp(terms - log_k + errors)
            bent = 0.5 * (1.0 + errors) * np.exp(terms - log_k + errors + k + 2.0 * np.log(k))
            change = ceiling * (half + errors * (1.0 + k)) + bent
            eta = 1.02 * float(change.sum()) + 1e-15 * (8.0 + abs(log_k))
        return _LocalDensity(log_k, g, eta, log_k - eta - abs(g) * self.radius, most) if eta < 0.1 else absent


def _measure_rows(p: Components, q: Components, epsilon: FloatArray, rows_of: RowsOf) -> FloatArray:
    """Rows of two measures, either of which may have no mass."""
    if p[0].size:
        return _group_rows(p, q, epsilon, rows_of)
    return np.tile([0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf], (epsilon.size, 1))


def _rows_of_groups(p: Components, q: Components, epsilon: FloatArray, rows_of: RowsOf) -> Iterator[FloatArray]:
    """Rows for each level at which components count as separated; ``rows_of`` gives those of one group."""
    if len(p[0]) * len(q[0]) * epsilon.size > MAX_PAIRS:
        return
    overlaps = [_log_overlaps(p, q, float(e)) for e in epsilon]
    smaller = [np.minimum(np.log(p[0])[:, None], np.log(q[0])[None, :] + e) for e in epsilon]
    for negligible in _NEGLIGIBLE_OVERLAPS:
        limits = [size + math.log(negligible) for size in smaller]
        labels, omitted = zip(*map(_overlap_groups, overlaps, limits), strict=True)
        rows = np.tile(_TRIVIAL, (epsilon.size, 1))
        for label in set(labels):
            group = np.array(label)
            if group.max() == 0:
                continue
            index = [k for k in range(epsilon.size) if labels[k] == label]
            groups_p, groups_q = group[: len(p[0])], group[len(p[0]) :]
            parts = [
                _group_rows(_select(p, groups_p == c), _select(q, groups_q == c), epsilon[index], rows_of)
                for c in range(group.max() + 1)
                if np.any(groups_p == c)
            ]
            rows[index] = _sum_of_groups(np.array(parts), np.array([omitted[k] for k in index]))
        yield rows


def _log_overlaps(p: Components, q: Components, epsilon: float) -> FloatArray:
    """Upper bounds of log of the integral of min(w_i N_i, a v_j N_j), shape (len(p), len(q)).

    They are the least of three: the smaller mass, the affinity (integral of the root of the product, in closed form),
    and a window around the mean of the narrow component, in which the wide one is at most ``height``.
    """
    (w, m, s), (v, n, t) = p, q
    a, b = np.log(w)[:, None], np.log(v)[None, :] + epsilon
    size = np.abs(np.log(v))[None, :] + abs(epsilon)  # of the terms of b, which may cancel
    least, most = np.minimum(a, b), np.maximum(s[:, None], t[None, :])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        ratio = np.minimum(s[:, None], t[None, :]) / most
        log_ratio = -np.abs(np.log(s)[:, None] - np.log(t)[None, :])  # the ratio itself may underflow
        distance = np.abs(m[:, None] - n[None, :]) / most  # in units of the wider sigma
        affinity = 0.5 * (a + b + log_ratio + np.log(2 / (1 + ratio**2))) - distance**2 / (4 * (1 + ratio**2))
        affinity += 1e-14 * (size - a)
        p_is_narrow = s[:, None] < t[None, :]
        narrow, wide = np.where(p_is_narrow, a, b), np.where(p_is_narrow, b + 1e-14 * size, a)
        half_window = math.sqrt(2) * np.sqrt(np.maximum(narrow - wide, 0.0) + _WINDOW_LOG_MASS)  # in narrow sigmas
        height = -0.5 * np.maximum(distance * (1 - 1e-14) - half_window * ratio * (1 + 1e-14), 0.0) ** 2
        inside = wide + np.minimum(np.log(half_window) + log_ratio - 0.2257 + height, 0.0)  # 0.2257 < log(sqrt(pi / 2))
        inside = np.maximum(np.where(np.isnan(inside), wide, inside), least - 2000.0)
        by_window = np.logaddexp(inside, least - _WINDOW_LOG_MASS)
    bound = np.fmin(np.fmin(affinity, by_window), least)
    bound += _OUTWARD + 1e-12 * np.abs(np.where(np.isinf(bound), 0.0, bound))
    return np.asarray(np.minimum(bound, least + 1e-15 * (np.abs(a) + np.minimum(size, 2000.0))))


def _overlap_groups(overlaps: FloatArray, limit: FloatArray) -> tuple[tuple[int, ...], float]:
    """The group of each component of P, then of Q, and the log of the sum of all overlaps between groups."""
    k, n = overlaps.shape
    joined = np.zeros((k + n, k + n), dtype=np.bool_)
    joined[:k, k:] = overlaps > limit
    labels = _connected(joined | joined.T)
    across = labels[:k, None] != labels[None, k:]
    return tuple(labels.tolist()), float(log_sum_exp(np.append(overlaps[across], -np.inf)))


def _connected(joined: BoolArray) -> IndexArray:
    """The number of the connected component of each vertex, from a symmetric matrix of edges."""
    labels = np.full(len(joined), -1, dtype=np.intp)
    while labels.size and labels.min() < 0:
        reached, label = np.array([labels.argmin()]), labels.max() + 1
        labels[reached] = label
        while reached.size:  # every row of edges is read once
            reached = np.flatnonzero(joined[reached].any(axis=0) & (labels < 0))
            labels[reached] = label
    return labels


def _group_rows(p: Components, q: Components, epsilon: FloatArray, rows_of: RowsOf) -> FloatArray:
    """Rows of one group; its mass where it has no component of Q."""
    if q[0].size:
        return rows_of(p, q, epsilon)
    mass = math.fsum(p[0])
    row = np.array([mass, np.nextafter(mass, 0.0), np.nextafter(mass, np.inf)])
    row = np.append(row, np.log(row) + np.array([0.0, -1.0, 1.0]) * 1e-15 * (1.0 + np.abs(np.log(row))))
    rows = np.tile(row, (epsilon.size, 1))
    rows[epsilon == np.inf] = [0.0, 0.0, 0.0, -np.inf, -np.inf, -np.inf]
    return rows


def _sum_of_groups(parts: FloatArray, log_omitted: FloatArray) -> FloatArray:
    """Sums over the groups, widened by the overlaps between them."""
    rows = np.empty(parts.shape[1:])
    rows[:, :3], rows[:, 3:] = parts[:, :, :3].sum(axis=0), np.logaddexp.reduce(parts[:, :, 3:], axis=0)
    rounding, log_rounding = MACHINE_EPSILON * (len(parts) + 2), 6 * MACHINE_EPSILON * len(parts)
    omitted = np.exp(log_omitted)
    rows[:, 1] = np.maximum(rows[:, 1] * (1 - rounding) - omitted, 0.0)
    rows[:, 2] = np.minimum(rows[:, 2] * (1 + rounding) + omitted, 1.0)
    rows[:, 5] = np.logaddexp(rows[:, 5], log_omitted)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rows[:, 4] += np.log1p(-np.minimum(np.exp(log_omitted - rows[:, 4]), 1.0))
        rows[:, 4] = np.where(np.isnan(rows[:, 4]), -np.inf, rows[:, 4])
        rows[:, 4] -= log_rounding * (1.0 + np.abs(np.where(np.isinf(rows[:, 4]), 0.0, rows[:, 4])))
    rows[:, 5] += log_rounding * (1.0 + np.abs(np.where(np.isinf(rows[:, 5]), 0.0, rows[:, 5])))
    rows[:, 5] = np.minimum(rows[:, 5], 0.0)
    for value in (0, 3):
        rows[:, value] = np.clip(rows[:, value], rows[:, value + 1], rows[:, value + 2])
    return rows
