"""Which mixtures in d dimensions are one-dimensional, or products of one-dimensional ones, in disguise.

Notation as in ``lines.py``.

Factors. For independent coordinates (isotropic or diagonal covariances), coordinates on which all components of both
laws agree drop out. Those on which all of P agree and all of Q agree, but not with each other, are independent of the
rest and of one another. What is left must be one coordinate (standard deviations may differ by component), a line, or
a product of such.

Products. Coordinates whose values repeat in the same pattern form a group. Components are a product of the groups when
each combination of their values occurs once, and weights are when they are those of the product of their marginals to
within 1e-12. The laws are then known within e^(+-``log_uncertainty``), and ``bounds.py`` says what that costs. A factor whose two
laws differ by no more counts as equal.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture
from .collinear_means import (
    FIRST_COMPONENTS,
    OneDimensionalFactor,
    all_rows_equal,
    row_blocks,
    coordinate_factor,
    sums_to_one,
    collinear_factor,
    parallel_factors,
    clearly_not_collinear,
)

__all__ = ["equal_measures", "independent_factors", "common_covariance", "is_single_gaussian"]

FloatArray = NDArray[np.float64]
# bound: tested by enclosures/test_reductions_to_factors - weights nearer to products count as products, within
#    e^(+-blur)
_MAX_PRODUCT_ERROR = 1e-12  # relative error of weights that count as products
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)


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


def is_single_gaussian(law: GaussianMixture) -> bool:
    """Whether all components are the same one and their weights make 1."""
    few = law.means[:FIRST_COMPONENTS]
    return bool((few == few[0]).all() and (law.means == few[0]).all() and law.shared) and sums_to_one(law.weights.tolist())


def independent_factors(*laws: GaussianMixture) -> tuple[OneDimensionalFactor, ...] | None:
    """Independent factors that tell the laws apart, none if they are equal; None if they are not of that kind."""
    d = laws[0].dimension
    weights = [law.weights for law in laws]
    if any(law.form == "full" for law in laws):
        if not all(law.form == "full" for law in laws):
            return None
        means, k = [law.means for law in laws], common_covariance(laws)
        return None if k is None else _collinear_factor(weights, means, k) or _parallel_factors(weights, means, k)
    means = [law.means.reshape(len(law), d) for law in laws]
    scales = [law.sigmas.reshape(len(law), -1) for law in laws]
    if not all_rows_equal(scales):
        return _coordinate_factors(weights, means, scales)
    sigmas = np.broadcast_to(scales[0][0], (d,))
    found = _collinear_factor(weights, means, sigmas)
    if found is None:
        found = _coordinate_factors(weights, means, scales)
    return _parallel_factors(weights, means, sigmas) if found is None else found


def _collinear_factor(weights: list[FloatArray], means: list[FloatArray], k: FloatArray) -> tuple[OneDimensionalFactor, ...] | None:
    line = collinear_factor(weights, means, k)
    return None if line is None else (line,)


def _parallel_factors(weights: list[FloatArray], means: list[FloatArray], k: FloatArray) -> tuple[OneDimensionalFactor, ...] | None:
    return parallel_factors(weights, means, k) if len(means) == 2 else None


def _coordinate_factors(
    weights: list[FloatArray], means: list[FloatArray], scales: list[FloatArray]
) -> tuple[OneDimensionalFactor, ...] | None:
    """Factors of mixtures with independent coordinates."""
    d = means[0].shape[1]
    varied = np.zeros(d, dtype=bool)
    for size in (FIRST_COMPONENTS, None):
        for m, s in zip(means, scales, strict=True):
            for rows in row_blocks(m, size):
                varied |= (m[rows] != m[0]).any(axis=0) | (s[rows] != s[0]).any(axis=0)
        if varied.sum() > 1 and not _may_be_collinear(means, scales, varied) and not _may_be_product(means, varied):
            return None
    found = []
    for j in np.flatnonzero(~varied).tolist():
        ends = [(float(m[0, j]), float(s[0, j % s.shape[1]])) for m, s in zip(means, scales, strict=True)]
        if any(end != ends[0] for end in ends):
            found.append(coordinate_factor([_total_weight(w) for w in weights], *_columns(ends), j))
    if not varied.any():
        return tuple(found)
    line = _block_factor(weights, means, scales, np.flatnonzero(varied).tolist())
    if line is not None:
        return (*found, line)
    grid = _product_factors(weights, means, scales, np.flatnonzero(varied).tolist())
    if grid is None:
        return None
    lines, log_uncertainty = grid
    differing = []
    for line in lines:
        ratio = _weight_log_ratio(line)
        if ratio is None:
            differing.append(line)
        else:
            log_uncertainty += ratio
    differing += found
    if not differing:
        differing = lines[:1]
    return tuple(replace(line, log_uncertainty=log_uncertainty) for line in differing)


def _block_factor(
    weights: list[FloatArray], means: list[FloatArray], scales: list[FloatArray], columns: list[int]
) -> OneDimensionalFactor | None:
    """One coordinate, or several of constant standard deviations in which the means are collinear."""
    block = [s[:, columns] if s.shape[1] > 1 else s for s in scales]
    if len(columns) == 1:
        spread = [np.broadcast_to(s[:, 0], len(m)) for m, s in zip(means, block, strict=True)]
        return coordinate_factor(weights, [m[:, columns[0]] for m in means], spread, columns[0])
    if not all_rows_equal(block):
        return None
    sigmas = np.broadcast_to(block[0][0], (len(columns),))
    return collinear_factor(weights, [m[:, columns] for m in means], sigmas)


def _product_factors(
    weights: list[FloatArray], means: list[FloatArray], scales: list[FloatArray], columns: list[int]
) -> tuple[list[OneDimensionalFactor], float] | None:
    """One line for each group of coordinates that vary together, if components and weights form the product of them.

    Also by how much, in logarithms, the weights miss the products of their marginals.
    """
    groups: dict[bytes, list[int]] = {}
    levels: dict[bytes, list[NDArray[np.int64]]] = {}
    for j in columns:
        labels = [_level_labels(m[:, j], s[:, j % s.shape[1]]) for m, s in zip(means, scales, strict=True)]
        key = b"".join(label.tobytes() for label in labels)
        groups.setdefault(key, []).append(j)
        levels[key] = labels
        if len(groups) > sum(len(w).bit_length() for w in weights):
            return None
    marginals, firsts, log_uncertainty = [], [], 0.0
    for i, w in enumerate(weights):
        labels = [label[i] for label in levels.values()]
        shape = tuple(int(label.max()) + 1 for label in labels)
        if math.prod(shape) != len(w):
            return None
        cells = np.ravel_multi_index(labels, shape)
        if np.unique(cells).size != len(w):
            return None
        table = np.empty(len(w), dtype=np.longdouble)
        table[cells] = w
        table = table.reshape(shape)
        sums = [table.sum(axis=tuple(k for k in range(len(shape)) if k != g)) for g in range(len(shape))]
        parts = [total.astype(np.float64) for total in sums]
        product = functools.reduce(np.multiply.outer, [part.astype(np.longdouble) for part in parts])
        miss = float(np.abs(table / product - 1).max()) + (len(shape) + 2) * _EXTENDED_EPSILON
        if miss > _MAX_PRODUCT_ERROR:
            return None
        log_uncertainty = max(log_uncertainty, 1.01 * miss)
        marginals.append(parts)
        firsts.append([np.unique(label, return_index=True)[1] for label in labels])
    lines = []
    for g, block in enumerate(groups.values()):
        rows = [first[g] for first in firsts]
        line = _block_factor(
            [part[g] for part in marginals], [m[row] for m, row in zip(means, rows, strict=True)],
            [s[row] for s, row in zip(scales, rows, strict=True)], block,
        )  # fmt: skip
        if line is None:
            return None
        lines.append(line)
    return lines, log_uncertainty


def _level_labels(mean: FloatArray, sigma: FloatArray) -> NDArray[np.int64]:
    """The distinct pairs numbered in the order in which they come."""
    _, first, labels = np.unique(mean + 1j * sigma, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[labels.ravel()])


def _weight_log_ratio(line: OneDimensionalFactor) -> float | None:
    """How far the weights of two laws with the same components are apart, in logarithms, if only by rounding."""
    if len(line.narrow) == 1:
        return None
    p, q = line.narrow
    if len(p) != len(q):
        return None
    one, two = (np.lexsort((law.sigmas, law.means)) for law in (p, q))
    if (p.means[one] != q.means[two]).any() or (p.sigmas[one] != q.sigmas[two]).any():
        return None
    ratio = 1.01 * float(np.abs(np.log(p.weights[one] / q.weights[two])).max())
    return ratio if ratio <= _MAX_PRODUCT_ERROR else None


def _may_be_product(means: list[FloatArray], varied: NDArray[np.bool_]) -> bool:
    """Whether the larger law repeats a value in a coordinate that varies, as the laws of a product do."""
    largest = max(means, key=len)
    return bool(np.unique(largest[:, np.flatnonzero(varied)[0]]).size < len(largest))


def _columns(ends: list[tuple[float, float]]) -> tuple[list[FloatArray], list[FloatArray]]:
    return [np.array([mean]) for mean, _ in ends], [np.array([sigma]) for _, sigma in ends]


def _may_be_collinear(means: list[FloatArray], scales: list[FloatArray], varied: NDArray[np.bool_]) -> bool:
    few = [s[:FIRST_COMPONENTS, varied] if s.shape[1] > 1 else s[:FIRST_COMPONENTS] for s in scales]
    return all_rows_equal(few) and not clearly_not_collinear([m[:, varied] for m in (x[:FIRST_COMPONENTS] for x in means)], few[0][0])


def common_covariance(laws: tuple[GaussianMixture, ...]) -> FloatArray | None:
    """The covariance of all components of laws in the full form, if it is one."""
    first: Any = laws[0].covariances
    for law in laws:
        stack: Any = law.covariances
        for k in (stack[-1:], stack):
            if any(not np.array_equal(item, first[0]) for item in k):
                return None
    return np.asarray(first[0])


def _total_weight(weights: FloatArray) -> FloatArray:
    parts = weights.tolist()
    return np.array([1.0 if sums_to_one(parts) else math.fsum(parts)])


def _has_mean(law: GaussianMixture, mean: FloatArray) -> bool:
    means, mean = law.means.reshape(len(law), -1), np.ravel(mean)
    near = np.flatnonzero(means[:, 0] == mean[0])
    return bool(near.size) and bool((means[near] == mean).all(axis=1).any())


def _exact_weights_by_component(law: GaussianMixture) -> dict[bytes, Fraction]:
    """Exact weights by component."""
    d = law.dimension
    means = law.means.reshape(len(law), d) + 0.0
    if law.form == "full":
        scales: FloatArray = np.asarray(law.covariances).reshape(-1, d * d) + 0.0
    else:
        scales = np.broadcast_to(law.sigmas.reshape(len(law), -1), (len(law), d))
    found: dict[bytes, Fraction] = {}
    for i, w in enumerate(law.weights.tolist()):
        key = means[i].tobytes() + scales[i % len(scales)].tobytes()
        found[key] = found.get(key, Fraction(0)) + Fraction(w)
    return found
