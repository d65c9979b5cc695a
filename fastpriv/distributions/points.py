"""Gaussian mixtures at points: log densities, draws and affine images, in NumPy, in blocks that fit the caches.

Notation: ``z = L^-1 (x - m)`` has log density ``-z.z/2 - log det L - (d/2) log 2 pi``. The difference is formed first
and never expanded into squares, so means that lie 1e8 standard deviations apart cost no digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _random, _validate
from ..errors import DomainError
from .values import FloatArray

if TYPE_CHECKING:
    from .mixtures import GaussianMixture

__all__ = ["draws", "image", "log_density"]

_BLOCK = 2**17  # doubles in a temporary
_HALF_LOG_2_PI = 0.91893853320467274178


def log_density(law: GaussianMixture, x: FloatArray) -> FloatArray:
    """Log density at the rows of x, shape (n, d)."""
    n, d = x.shape
    k = len(law)
    constants = np.log(law.weights) - _log_scales(law) - d * _HALF_LOG_2_PI
    columns = 1 if law.covariances is not None else max(1, min(k, _BLOCK // (8 * d)))
    out = np.empty(n)
    for rows in _blocks(n, max(1, _BLOCK // (columns * d))):
        top = np.full(rows.stop - rows.start, -np.inf)
        total = np.zeros_like(top)
        for part in _blocks(k, columns):
            logs = constants[part] - 0.5 * _squares(law, x[rows], part)
            reached = np.maximum(top, logs.max(axis=1))
            safe = np.where(reached == -np.inf, 0.0, reached)
            total = total * np.exp(top - safe) + np.exp(logs - safe[:, None]).sum(axis=1)
            top = reached
        with np.errstate(divide="ignore"):
            out[rows] = np.log(total) + np.where(top == -np.inf, 0.0, top)
    return out


def draws(law: GaussianMixture, size: int, rng: Any) -> FloatArray:
    """Independent draws, shape (size, d)."""
    generator = rng if isinstance(rng, np.random.Generator) else np.random.default_rng(_random.root(rng))
    k, d = len(law), law.dimension
    means = law.means.reshape(k, d)
    ladder = np.cumsum(law.weights)
    ladder /= ladder[-1]
    out = generator.standard_normal((size, d))
    factors = law.factors
    for rows in _blocks(size, max(1, _BLOCK // d)):
        component = np.searchsorted(ladder, generator.random(rows.stop - rows.start), side="right")
        z = out[rows]
        if factors is None:
            z *= law.sigmas.reshape(k, -1)[component]
        else:
            order = np.argsort(component, kind="stable")
            for run in np.split(order, np.flatnonzero(np.diff(component[order])) + 1):
                z[run] = z[run] @ factors[component[run[0]] if len(factors) > 1 else 0].T
        z += means[component]
    return out


@np.errstate(over="ignore", invalid="ignore")
def image(
    law: GaussianMixture, matrix: FloatArray, shift: FloatArray
) -> tuple[FloatArray, FloatArray | None, FloatArray | None]:
    """Means, and sigmas or covariances, of ``matrix @ X + shift``."""
    k, d = len(law), law.dimension
    means = law.means.reshape(k, d)
    if matrix.ndim < 2:
        if not np.all(matrix):
            raise DomainError(
                f"matrix must be without zeros, so that the image has a density; got {matrix.tolist()!r}. "
                "Take a marginal to drop coordinates."
            )
        stretch = np.broadcast_to(np.abs(matrix), (d,))
        if law.covariances is None:
            return means * matrix + shift, law.sigmas.reshape(k, -1) * stretch, None
        _validate.memory("matrix", law.covariances.nbytes, "The image has as many matrices.")
        outer = np.broadcast_to(matrix, (d,))[:, None] * np.broadcast_to(matrix, (d,))
        return means * matrix + shift, None, law.covariances * outer
    rows = len(matrix)
    moved = means @ matrix.T + shift
    factors = law.factors
    if factors is None:
        spread = law.sigmas.reshape(k, -1) * np.ones(d)
        if law.shared:
            spread = spread[:1]
    count = len(spread if factors is None else factors)
    _validate.memory("matrix", count * rows * rows * 8, "Map to fewer dimensions.")
    images = np.empty((count, rows, rows))
    sigmas = np.empty(k)
    for i in range(count):
        half = matrix * spread[i] if factors is None else matrix @ factors[i]
        if rows == 1:
            sigmas[i:] = math.hypot(*half[0].tolist())
        else:
            images[i] = half @ half.T
    images.setflags(write=False)
    return (moved, sigmas, None) if rows == 1 else (moved, None, images)


def _log_scales(law: GaussianMixture) -> FloatArray:
    """log det L of each component."""
    if law.factors is not None:
        return np.asarray(np.log(np.diagonal(law.factors, axis1=1, axis2=2)).sum(axis=1))
    if law.sigmas.ndim == 1:
        return law.dimension * np.log(law.sigmas)
    return np.asarray(np.log(law.sigmas).sum(axis=1))


def _squares(law: GaussianMixture, x: FloatArray, part: slice) -> FloatArray:
    """The squared lengths of z, shape (points, components); infinite where they overflow."""
    k, d = len(law), law.dimension
    means = law.means.reshape(k, d)[part]
    with np.errstate(over="ignore", invalid="ignore"):
        z = x[:, None, :] - means
        if law.factors is None:
            z /= law.sigmas.reshape(k, -1)[part]
        else:
            from scipy.linalg.blas import dtrsm

            factor = law.factors[part.start if len(law.factors) > 1 else 0]
            z = dtrsm(1.0, factor.T, z[:, 0, :].T, trans_a=1, overwrite_b=1).T[:, None, :]
        squares = np.einsum("nkd,nkd->nk", z, z)
    # inf - inf in a solve: some z overflowed, and so does the sum
    return np.where(np.isnan(squares), np.inf, squares)


def _blocks(count: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
