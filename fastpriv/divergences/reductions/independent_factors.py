"""Independent factors: mixtures in d dimensions that are products of one-dimensional ones, and how they are recognised.

Notation as in ``collinear_means.py``.

Factors. For independent coordinates (isotropic or diagonal covariances), coordinates on which all components of both
mixtures agree drop out. Coordinates on which all of P agree and all of Q agree, but not with each other, are
independent of the rest and of one another. What is left must be one coordinate (standard deviations may differ by
component), collinear means, or a product of such.

Products. Coordinates whose values repeat in the same pattern form a group. Components are a product of the groups when
each combination of their values occurs once, and weights are one when they are the products of their marginals to
within 1e-12. The densities are then known within e^(+-``log_uncertainty``), and ``factored_quantities.py`` says what
that costs. A factor whose two distributions differ by no more than that counts as equal.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...base.numerics import BoolArray, FloatArray, IntArray
from ...distributions import GaussianMixture
from .collinear_means import (
    FIRST_COMPONENTS,
    Arrays,
    OneDimensionalFactor,
    all_rows_equal,
    clearly_not_collinear,
    collinear_factor,
    coordinate_factor,
    parallel_factors,
    row_blocks,
    sums_to_one,
    total_weight,
)  # fmt: skip

__all__ = ["common_covariance", "equal_measures", "independent_factors", "is_single_gaussian"]

# bound: tested by enclosures/test_reductions_to_factors - weights nearer to products count as products, within
#    e^(+-log_uncertainty)
_MAX_PRODUCT_ERROR = 1e-12  # relative error of weights that count as products of their marginals
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)  # spacing of extended precision at 1

Factors = tuple[OneDimensionalFactor, ...]


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
    return equal and sums_to_one(p.weights.tolist())


def independent_factors(*mixtures: GaussianMixture) -> Factors | None:
    """Independent one-dimensional factors that distinguish the mixtures, none if they are equal.

    None if the mixtures are not of that kind.
    """
    d = mixtures[0].dimension
    weights = [p.weights for p in mixtures]
    if any(p.form == "full" for p in mixtures):
        k = common_covariance(mixtures) if all(p.form == "full" for p in mixtures) else None
        return None if k is None else _collinear_or_parallel(weights, [p.means for p in mixtures], k)
    means = [p.means.reshape(len(p), d) for p in mixtures]
    scales = [p.sigmas.reshape(len(p), -1) for p in mixtures]
    if not all_rows_equal(scales):
        return _coordinate_factors(weights, means, scales)
    sigmas = np.broadcast_to(scales[0][0], (d,))
    return _collinear_or_parallel(weights, means, sigmas, lambda: _coordinate_factors(weights, means, scales))


def _collinear_or_parallel(
    weights: Arrays, means: Arrays, k: FloatArray, between: Callable[[], Factors | None] = lambda: None
) -> Factors | None:
    """The factor of collinear means, else the result of ``between``, else the factors of means on parallel lines."""
    factor = collinear_factor(weights, means, k)
    if factor is not None:
        return (factor,)
    factors = between()
    if factors is None and len(means) == 2:
        return parallel_factors(weights, means, k)
    return factors


def _coordinate_factors(weights: Arrays, means: Arrays, scales: Arrays) -> Factors | None:
    """Factors of mixtures with independent coordinates."""
    d = means[0].shape[1]
    varied = np.zeros(d, dtype=bool)
    for size in (FIRST_COMPONENTS, None):
        for m, s in zip(means, scales, strict=True):
            for rows in row_blocks(m, size):
                varied |= (m[rows] != m[0]).any(axis=0) | (s[rows] != s[0]).any(axis=0)
        if varied.sum() > 1 and not _may_be_collinear(means, scales, varied) and not _may_be_product(means, varied):
            return None
    coordinates = []
    for j in np.flatnonzero(~varied).tolist():
        gaussians = [(float(m[0, j]), float(s[0, j % s.shape[1]])) for m, s in zip(means, scales, strict=True)]
        if any(gaussian != gaussians[0] for gaussian in gaussians):
            mean, sigma = ([np.array([x]) for x in column] for column in zip(*gaussians, strict=True))
            coordinates.append(coordinate_factor([total_weight(w) for w in weights], mean, sigma, j))
    if not varied.any():
        return tuple(coordinates)
    columns = np.flatnonzero(varied).tolist()
    factor = _block_factor(weights, means, scales, columns)
    if factor is not None:
        return (*coordinates, factor)
    product = _product_factors(weights, means, scales, columns)
    if product is None:
        return None
    factors, log_uncertainty = product
    differing = []
    for factor in factors:
        ratio = _weight_log_ratio(factor)
        if ratio is None:
            differing.append(factor)
        else:
            log_uncertainty += ratio
    differing = differing + coordinates or factors[:1]  # one factor carries the uncertainty where none differs
    return tuple(replace(factor, log_uncertainty=log_uncertainty) for factor in differing)


def _block_factor(weights: Arrays, means: Arrays, scales: Arrays, columns: list[int]) -> OneDimensionalFactor | None:
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
    weights: Arrays, means: Arrays, scales: Arrays, columns: list[int]
) -> tuple[list[OneDimensionalFactor], float] | None:
    """One factor for each group of coordinates that vary together, if components and weights form their product.

    The second result is the error of the weights as products of their marginals, in logarithms.
    """
    groups: dict[bytes, list[int]] = {}
    levels: dict[bytes, list[IntArray]] = {}
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
        error = float(np.abs(table / product - 1).max()) + (len(shape) + 2) * _EXTENDED_EPSILON
        if error > _MAX_PRODUCT_ERROR:
            return None
        log_uncertainty = max(log_uncertainty, 1.01 * error)
        marginals.append(parts)
        firsts.append([np.unique(label, return_index=True)[1] for label in labels])
    factors = []
    for g, block in enumerate(groups.values()):
        rows = [first[g] for first in firsts]
        factor = _block_factor(
            [part[g] for part in marginals], [m[row] for m, row in zip(means, rows, strict=True)],
            [s[row] for s, row in zip(scales, rows, strict=True)], block,
        )  # fmt: skip
        if factor is None:
            return None
        factors.append(factor)
    return factors, log_uncertainty


def _level_labels(mean: FloatArray, sigma: FloatArray) -> IntArray:
    """Number the distinct pairs of mean and standard deviation in the order in which they first occur."""
    _, first, labels = np.unique(mean + 1j * sigma, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    return np.asarray(rank[labels.ravel()])


def _weight_log_ratio(factor: OneDimensionalFactor) -> float | None:
    """The largest log ratio of the weights of P and Q if their components are the same and only rounding differs."""
    if len(factor.narrow) == 1:
        return None
    p, q = factor.narrow
    if len(p) != len(q):
        return None
    i, j = (np.lexsort((mixture.sigmas, mixture.means)) for mixture in (p, q))
    if (p.means[i] != q.means[j]).any() or (p.sigmas[i] != q.sigmas[j]).any():
        return None
    ratio = 1.01 * float(np.abs(np.log(p.weights[i] / q.weights[j])).max())
    return ratio if ratio <= _MAX_PRODUCT_ERROR else None


def _may_be_product(means: Arrays, varied: BoolArray) -> bool:
    """Whether the larger mixture repeats a value in a coordinate that varies, as the mixtures of a product do."""
    largest = max(means, key=len)
    return bool(np.unique(largest[:, np.flatnonzero(varied)[0]]).size < len(largest))


def _may_be_collinear(means: Arrays, scales: Arrays, varied: BoolArray) -> bool:
    few = [s[:FIRST_COMPONENTS, varied] if s.shape[1] > 1 else s[:FIRST_COMPONENTS] for s in scales]
    return all_rows_equal(few) and not clearly_not_collinear([m[:FIRST_COMPONENTS, varied] for m in means], few[0][0])


def common_covariance(mixtures: tuple[GaussianMixture, ...]) -> FloatArray | None:
    """The covariance matrix of all components of mixtures in the full form, if it is one."""
    first: Any = mixtures[0].covariances
    for mixture in mixtures:
        stack: Any = mixture.covariances
        for matrices in (stack[-1:], stack):  # the last one is likely to differ, if any does
            if any(not np.array_equal(k, first[0]) for k in matrices):
                return None
    return np.asarray(first[0])


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
