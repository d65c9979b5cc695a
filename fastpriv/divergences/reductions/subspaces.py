"""The same pair in fewer dimensions, for what has to be sampled.

Notation: laws with one covariance K = L L' tell nothing across the span of the whitened differences L^-1 (m_i - m_0);
with independent coordinates, nothing on those on which all components of all laws agree. Divergences and mutual
information of the laws within are the same, and the entropy is less by a constant (``entropy``).

A coordinate that drops out changes nothing at all. The span is found by an orthogonal factorisation in doubles, which
moves the means by about 1e-15 of their distances: far below what sampling can see, but nothing here is a bound.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture
from .collinear_means import FIRST_COMPONENTS, all_rows_equal, row_blocks
from .independent_factors import common_covariance

__all__ = ["Subspace", "in_common_units", "subspace"]

FloatArray = NDArray[np.float64]
_LOG_2_PI_E = 2.8378770664093454836
_MAX_EXPONENT = 200  # powers of two within which products of standard deviations are doubles


class Subspace(NamedTuple):
    """The laws in fewer dimensions, and what their entropies lack."""

    mixtures: tuple[GaussianMixture, ...]
    entropy: float


def subspace(*mixtures: GaussianMixture) -> Subspace | None:
    """The laws in fewer dimensions; None where that is not possible or not cheap to see."""
    d = mixtures[0].dimension
    if d == 1:
        return None
    if sum(len(mixture) for mixture in mixtures) - 1 < d:
        spanned = _spanned_subspace(mixtures, d)
        if spanned is not None:
            return spanned
    if any(mixture.form == "full" for mixture in mixtures):
        return None
    return _differing_coordinates(mixtures, d)


def in_common_units(*mixtures: GaussianMixture) -> tuple[GaussianMixture, ...]:
    """The laws, coordinates with standard deviations of extreme size scaled by powers of two: exact, and the same
    divergences."""
    exponents = np.concatenate([np.frexp(_standard_deviations(mixture))[1].reshape(-1, mixture.dimension) for mixture in mixtures])
    low, high = exponents.min(axis=0), exponents.max(axis=0)
    extreme = (low < -_MAX_EXPONENT) | (high > _MAX_EXPONENT)
    if not extreme.any():
        return mixtures
    farthest = np.max([np.abs(mixture.means).reshape(len(mixture), -1).max(axis=0) for mixture in mixtures], axis=0)
    powers = np.minimum(-(low + high) // 2, 960 - np.frexp(farthest)[1])
    scale = np.ldexp(1.0, np.where(extreme, powers, 0))
    return tuple(mixture.affine(scale) for mixture in mixtures)


def _standard_deviations(mixture: GaussianMixture) -> FloatArray:
    """Of every coordinate, in rows."""
    if mixture.covariances is not None:
        return np.sqrt(np.diagonal(mixture.covariances, axis1=1, axis2=2))
    assert mixture.sigmas is not None
    return np.broadcast_to(mixture.sigmas.reshape(len(mixture), -1), mixture.means.reshape(len(mixture), -1).shape)


def _spanned_subspace(mixtures: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    means = np.concatenate([mixture.means for mixture in mixtures])
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = means[1:] - means[0]
        if all(mixture.form == "full" for mixture in mixtures):
            if common_covariance(mixtures) is None:
                return None
            factor = mixtures[0].factors
            assert factor is not None
            gaps = np.linalg.solve(factor[0], gaps.T).T
            log_volume = float(np.log(np.diagonal(factor[0])).sum())
        elif any(mixture.form == "full" for mixture in mixtures):
            return None
        else:
            scales = [mixture.sigmas.reshape(len(mixture), -1) for mixture in mixtures]
            if not all_rows_equal(scales):
                return None
            gaps = gaps / scales[0][0]
            log_volume = float(np.log(np.broadcast_to(scales[0][0], (d,))).sum())
    size = float(np.abs(gaps).max()) if gaps.size else 0.0
    if not 0.0 < size < 1e150:
        return None
    triangle = np.asarray(np.linalg.qr(gaps.T, mode="r"))
    rows = np.vstack([np.zeros(len(triangle)), triangle.T])
    ends = np.cumsum([len(mixture) for mixture in mixtures])[:-1]
    found = [
        GaussianMixture(mixture.weights, part, 1.0) for mixture, part in zip(mixtures, np.split(rows, ends), strict=True)
    ]  # fmt: skip
    return Subspace(tuple(found), log_volume + (d - rows.shape[1]) * _LOG_2_PI_E / 2)


def _differing_coordinates(mixtures: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    """The coordinates on which not all components agree."""
    kept = np.zeros(d, dtype=bool)
    first = mixtures[0].sigmas.reshape(len(mixtures[0]), -1)[0]
    for few in (FIRST_COMPONENTS, None):
        for mixture in mixtures:
            scales = mixture.sigmas.reshape(len(mixture), -1)
            for rows in row_blocks(mixture.means, few):
                kept |= (mixture.means[rows] != mixtures[0].means[0]).any(axis=0) | (scales[rows] != first).any(axis=0)
                if kept.all():
                    return None
    if not kept.any():
        return None
    index = np.flatnonzero(kept)
    dropped = np.broadcast_to(first, (d,))[~kept]
    entropy = math.fsum(np.log(dropped).tolist()) + dropped.size * _LOG_2_PI_E / 2
    return Subspace(tuple(mixture.marginal(index) for mixture in mixtures), entropy)
