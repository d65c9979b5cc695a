"""Gaussian mixtures at points: log densities, draws and affine images, in blocks that fit the caches.

The mathematics of the log density is in ``csrc/fp_density.h``. There ``x - m`` is formed first and never expanded into
squares, so means that lie 1e8 standard deviations apart cost no digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _parallel, _random, _validate
from ..errors import DomainError
from ..kernels import _product
from .packed import log_density as kernel_density
from .values import FloatArray

if TYPE_CHECKING:
    from .mixtures import GaussianMixture

__all__ = ["draws", "image", "log_density"]

_BLOCK = 2**17  # doubles in a temporary
_SHARE = 2**22  # doubles of points that a thread takes at a time


def log_density(law: GaussianMixture, x: FloatArray, n_jobs: int | None = None) -> FloatArray:
    """Log density at the rows of x, shape (n, d)."""
    n, d = x.shape
    packed, out = law.packed, np.empty(n)

    def share(part: slice) -> None:
        here, values = x[part], out[part]
        for rows in _blocks(len(here), max(1, _BLOCK // d)):
            kernel_density(packed, np.ascontiguousarray(here[rows].T), values[rows])

    for _ in _parallel.ordered_map(share, _parallel.blocks(n, max(1, _SHARE // d)), n_jobs=n_jobs, shared=True):
        pass
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
                z[run] = _product.product(z[run], factors[component[run[0]] if len(factors) > 1 else 0])
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
    moved = _product.product(means, matrix) + shift
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
            images[i] = _product.product(half, half)
    images.setflags(write=False)
    return (moved, sigmas, None) if rows == 1 else (moved, None, images)


def _blocks(count: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, count)) for start in range(0, count, step))
