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
from .lines import FEW, all_rows_equal, chunks
from .recognition import one_covariance

__all__ = ["Subspace", "in_common_units", "subspace"]

FloatArray = NDArray[np.float64]
_LOG_2_PI_E = 2.8378770664093454836
_ORDINARY = 200  # powers of two within which products of standard deviations are doubles


class Subspace(NamedTuple):
    """The laws in fewer dimensions, and what their entropies lack."""

    laws: tuple[GaussianMixture, ...]
    entropy: float


def subspace(*laws: GaussianMixture) -> Subspace | None:
    """The laws in fewer dimensions; None where that is not possible or not cheap to see."""
    d = laws[0].dimension
    if d == 1:
        return None
    if sum(len(law) for law in laws) - 1 < d:
        spanned = _span(laws, d)
        if spanned is not None:
            return spanned
    if any(law.form == "full" for law in laws):
        return None
    return _coordinates(laws, d)


def in_common_units(*laws: GaussianMixture) -> tuple[GaussianMixture, ...]:
    """The laws, coordinates with standard deviations of extreme size scaled by powers of two: exact, and the same
    divergences."""
    exponents = np.concatenate([np.frexp(_deviations(law))[1].reshape(-1, law.dimension) for law in laws])
    low, high = exponents.min(axis=0), exponents.max(axis=0)
    extreme = (low < -_ORDINARY) | (high > _ORDINARY)
    if not extreme.any():
        return laws
    farthest = np.max([np.abs(law.means).reshape(len(law), -1).max(axis=0) for law in laws], axis=0)
    powers = np.minimum(-(low + high) // 2, 960 - np.frexp(farthest)[1])
    scale = np.ldexp(1.0, np.where(extreme, powers, 0))
    return tuple(law.affine(scale) for law in laws)


def _deviations(law: GaussianMixture) -> FloatArray:
    """Of every coordinate, in rows."""
    if law.covariances is not None:
        return np.sqrt(np.diagonal(law.covariances, axis1=1, axis2=2))
    assert law.sigmas is not None
    return np.broadcast_to(law.sigmas.reshape(len(law), -1), law.means.reshape(len(law), -1).shape)


def _span(laws: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    means = np.concatenate([law.means for law in laws])
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = means[1:] - means[0]
        if all(law.form == "full" for law in laws):
            if one_covariance(laws) is None:
                return None
            factor = laws[0].factors
            assert factor is not None
            gaps = np.linalg.solve(factor[0], gaps.T).T
            log_volume = float(np.log(np.diagonal(factor[0])).sum())
        elif any(law.form == "full" for law in laws):
            return None
        else:
            scales = [law.sigmas.reshape(len(law), -1) for law in laws]
            if not all_rows_equal(scales):
                return None
            gaps = gaps / scales[0][0]
            log_volume = float(np.log(np.broadcast_to(scales[0][0], (d,))).sum())
    size = float(np.abs(gaps).max()) if gaps.size else 0.0
    if not 0.0 < size < 1e150:
        return None
    triangle = np.asarray(np.linalg.qr(gaps.T, mode="r"))
    rows = np.vstack([np.zeros(len(triangle)), triangle.T])
    ends = np.cumsum([len(law) for law in laws])[:-1]
    found = [
        GaussianMixture(law.weights, part, 1.0) for law, part in zip(laws, np.split(rows, ends), strict=True)
    ]  # fmt: skip
    return Subspace(tuple(found), log_volume + (d - rows.shape[1]) * _LOG_2_PI_E / 2)


def _coordinates(laws: tuple[GaussianMixture, ...], d: int) -> Subspace | None:
    """The coordinates on which not all components agree."""
    kept = np.zeros(d, dtype=bool)
    first = laws[0].sigmas.reshape(len(laws[0]), -1)[0]
    for few in (FEW, None):
        for law in laws:
            scales = law.sigmas.reshape(len(law), -1)
            for rows in chunks(law.means, few):
                kept |= (law.means[rows] != laws[0].means[0]).any(axis=0) | (scales[rows] != first).any(axis=0)
                if kept.all():
                    return None
    if not kept.any():
        return None
    index = np.flatnonzero(kept)
    dropped = np.broadcast_to(first, (d,))[~kept]
    entropy = math.fsum(np.log(dropped).tolist()) + dropped.size * _LOG_2_PI_E / 2
    return Subspace(tuple(law.marginal(index) for law in laws), entropy)
