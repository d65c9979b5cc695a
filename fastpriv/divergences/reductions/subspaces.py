"""The same mixtures in fewer dimensions, for quantities that have to be sampled.

Notation: mixtures with one covariance K = L L' carry no information outside the span of the whitened differences
L^-1 (m_i - m_0); with independent coordinates, none in those on which all components of all mixtures agree.
Divergences and mutual information of the mixtures within are the same, and the entropy is less by a constant
(``entropy``).

A coordinate that drops out changes nothing at all. The span is found by an orthogonal factorisation in doubles, which
moves the means by about 1e-15 of their distances: far below what sampling can see, but nothing here is a bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ...base.numerics import FloatArray
from ...distributions import GaussianMixture
from ..one_dimension.closed_forms import LOG_2_PI_E
from .independent_factors import FIRST_COMPONENTS, all_rows_equal, common_covariance, row_blocks

# bound: none - a condition number beyond which rounding would move what samples see
_MAX_CONDITION = 1e4  # of the correlations of mixtures that are brought to the coordinates in which these are diagonal
_MAX_EXPONENT = 200  # standard deviations within 2^-200 and 2^200 have products, and quotients of products, in range


class Subspace(NamedTuple):
    """Mixtures in fewer dimensions, and the entropy of the dimensions that were left out."""

    mixtures: tuple[GaussianMixture, ...]
    entropy: float


def subspace(*mixtures: GaussianMixture) -> Subspace | None:
    """The mixtures in fewer dimensions; None where that is not possible or would take long to find."""
    d = mixtures[0].dimension
    if d == 1:
        return None
    if sum(len(p) for p in mixtures) - 1 < d:
        spanned = _spanned_subspace(mixtures, d)
        if spanned is not None:
            return spanned
    return None if any(p.form == "full" for p in mixtures) else _differing_coordinates(mixtures, d)


def in_diagonal_coordinates(p: GaussianMixture, q: GaussianMixture) -> tuple[GaussianMixture, GaussianMixture]:
    """Two mixtures with one covariance each in the coordinates in which these are the identity and a diagonal matrix.

    The mixtures themselves where a covariance is not shared, both are diagonal already, or they are ill-conditioned.
    """
    if not (p.shared and q.shared) or "full" not in (p.form, q.form):
        return p, q
    factor, other = (_first_factor(mixture) for mixture in (p, q))
    if max(np.linalg.cond(x / np.linalg.norm(x, axis=1, keepdims=True)) for x in (factor, other)) ** 2 > _MAX_CONDITION:
        return p, q
    whitening, sigmas = solve_triangular(factor, np.eye(len(factor)), lower=True), np.ones(len(factor))
    if not np.array_equal(factor, other):
        turn, sigmas, _ = np.linalg.svd(whitening @ other)
        whitening = turn.T @ whitening
    centre = p.means.mean(axis=0)
    means, centres = ((mixture.means - centre) @ whitening.T for mixture in (p, q))
    unit = 1.0 if (sigmas == 1.0).all() else np.broadcast_to(sigmas, centres.shape)
    return GaussianMixture(p.weights, means, 1.0), GaussianMixture(q.weights, centres, unit)


def _first_factor(mixture: GaussianMixture) -> FloatArray:
    """A lower factor of the covariance of the first component."""
    return mixture.factors[0] if mixture.factors is not None else np.diag(_standard_deviations(mixture)[0])


def in_common_units(*mixtures: GaussianMixture) -> tuple[GaussianMixture, ...]:
    """Scale coordinates with standard deviations of extreme size by powers of two, which is exact.

    The divergences of the results are those of the mixtures.
    """
    exponents = np.concatenate([np.frexp(_standard_deviations(p))[1].reshape(-1, p.dimension) for p in mixtures])
    low, high = exponents.min(axis=0), exponents.max(axis=0)
    extreme = (low < -_MAX_EXPONENT) | (high > _MAX_EXPONENT)
    if not extreme.any():
        return mixtures
    farthest = np.max([np.abs(p.means).reshape(len(p), -1).max(axis=0) for p in mixtures], axis=0)
    powers = np.minimum(-(low + high) // 2, 960 - np.frexp(farthest)[1])  # scaled means stay below 2^960
    scale = np.ldexp(1.0, np.where(extreme, powers, 0))
    return tuple(p.affine(scale) for p in mixtures)


def _standard_deviations(p: GaussianMixture) -> FloatArray:
    """Standard deviations of every coordinate, one row a component or a matrix."""
    if p.covariances is not None:
        return np.sqrt(np.diagonal(p.covariances, axis1=1, axis2=2))
    return np.broadcast_to(p.sigmas.reshape(len(p), -1), p.means.reshape(len(p), -1).shape)


def _spanned_subspace(mixtures: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    means = np.concatenate([p.means for p in mixtures])
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = means[1:] - means[0]
        if all(p.form == "full" for p in mixtures):
            if common_covariance(mixtures) is None:
                return None
            factor = mixtures[0].factors
            assert factor is not None
            gaps = np.linalg.solve(factor[0], gaps.T).T
            log_volume = float(np.log(np.diagonal(factor[0])).sum())
        elif any(p.form == "full" for p in mixtures):
            return None
        else:
            scales = [p.sigmas.reshape(len(p), -1) for p in mixtures]
            if not all_rows_equal(scales):
                return None
            gaps = gaps / scales[0][0]
            log_volume = float(np.log(np.broadcast_to(scales[0][0], (d,))).sum())
    size = float(np.abs(gaps).max()) if gaps.size else 0.0
    if not 0.0 < size < 1e150:
        return None
    triangle = np.asarray(np.linalg.qr(gaps.T, mode="r"))
    rows = np.vstack([np.zeros(len(triangle)), triangle.T])
    ends = np.cumsum([len(p) for p in mixtures])[:-1]
    spanned = tuple(GaussianMixture(p.weights, m, 1.0) for p, m in zip(mixtures, np.split(rows, ends), strict=True))
    return Subspace(spanned, log_volume + (d - rows.shape[1]) * LOG_2_PI_E / 2)


def _differing_coordinates(mixtures: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    """The coordinates in which the components differ."""
    differs = np.zeros(d, dtype=bool)
    first = mixtures[0].sigmas.reshape(len(mixtures[0]), -1)[0]
    for few in (FIRST_COMPONENTS, None):
        for p in mixtures:
            scales = p.sigmas.reshape(len(p), -1)
            for rows in row_blocks(p.means, few):
                differs |= (p.means[rows] != mixtures[0].means[0]).any(axis=0) | (scales[rows] != first).any(axis=0)
                if differs.all():
                    return None
    if not differs.any():
        return None
    index = np.flatnonzero(differs)
    dropped = np.broadcast_to(first, (d,))[~differs]
    entropy = math.fsum(np.log(dropped).tolist()) + dropped.size * LOG_2_PI_E / 2
    return Subspace(tuple(p.marginal(index) for p in mixtures), entropy)
