"""Covariance matrices as arguments: shapes, symmetry, definiteness, and scaling by exact powers of two.

Notation: K a symmetric positive semidefinite d x d matrix, S the diagonal matrix of powers of two for which S K S has
its diagonal in [1/4, 1). S K S has the same signs of eigenvalues and, unlike K, says how close to singular K is
whatever the units of its coordinates (van der Sluis 1969): every tolerance here refers to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ...distributions.covariances import MAX_ASYMMETRY, scaling_exponents
from ...errors import DomainError, ShapeError

__all__ = ["MAX_ASYMMETRY", "checked", "pair", "rank_tolerance", "scaled", "scaling_exponents"]

FloatArray = NDArray[np.float64]
# bound: none - eigenvalues below it are taken for 0: the rank of the input
_ROUNDING = 2.0**-48


def rank_tolerance(dimension: int) -> float:
    """Eigenvalues of S K S below this part of the largest count as zero: what rounding a matrix product leaves."""
    return dimension * _ROUNDING


def checked(name: str, value: ArrayLike) -> FloatArray:
    """Non-negative scalar (isotropic), vector (diagonal) or stack (..., d, d) of positive semidefinite matrices."""
    try:
        ndim = np.ndim(value)
    except ValueError:  # ragged
        ndim = 0
    if ndim < 2:
        return _validate.real(name, value, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))
    k = _validate.real(name, value, "made of finite numbers", np.isfinite)
    if k.shape[-1] != k.shape[-2] or k.size == 0:
        raise ShapeError(
            f"{name} must be a square matrix or a stack of them; got shape {k.shape}. "
            "Pass shape (d, d) or (..., d, d), a vector for a diagonal matrix, or one number for a multiple of I."
        )
    diagonal = np.diagonal(k, axis1=-2, axis2=-1)
    _refuse(name, diagonal < 0, diagonal, "at least 0 on its diagonal", "Variances cannot be negative.")
    root = np.sqrt(diagonal)
    size = root[..., :, None] * root[..., None, :]
    gap = np.abs(0.5 * k - 0.5 * k.swapaxes(-1, -2))
    asymmetric = gap > 0.5 * MAX_ASYMMETRY * size
    _refuse(name, asymmetric, 2 * gap, "symmetric to rounding", "Pass (K + K.T) / 2 if that is meant.")
    k = np.where(gap == 0, k, 0.5 * k + 0.5 * k.swapaxes(-1, -2))
    too_large = np.abs(k) > (1 + MAX_ASYMMETRY) * size
    _refuse(name, too_large, k, "positive semidefinite", "No covariance exceeds the product of two deviations.")
    least = _least_eigenvalue(scaled(k, scaling_exponents(diagonal)))
    refused = least < -rank_tolerance(k.shape[-1])
    _refuse(
        name, refused, least, "positive semidefinite",
        "Shown is the least eigenvalue with all coordinates scaled to variances near 1.",
    )  # fmt: skip
    return k


def pair(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Signal and noise as matrices of one shape, or both as diagonals when neither is a matrix."""
    arrays = first, second
    sizes = {a.shape[-1] for a in arrays if a.ndim}
    if len(sizes) > 1:
        raise ShapeError(
            f"signal must be of the dimension of noise; got shapes {first.shape} and {second.shape}. "
            "One number stands for a multiple of the identity."
        )
    dimension = sizes.pop() if sizes else 1
    if all(a.ndim < 2 for a in arrays):
        one, two = (np.array(np.broadcast_to(a, (dimension,))) for a in arrays)
        return one, two
    one, two = (a if a.ndim >= 2 else a[..., None] * np.eye(dimension) for a in arrays)
    _validate.broadcastable("signal", one, "noise", two)
    one, two = np.broadcast_arrays(one, two)
    return one, two


def scaled(k: FloatArray, rows: NDArray[np.int64], shift: Any = 0) -> FloatArray:
    """K_ij 2^(-rows_i - rows_j - 2 shift), exact but for underflow."""
    power = -(rows[..., :, None] + rows[..., None, :] + 2 * np.asarray(shift)[..., None, None])
    return np.asarray(np.ldexp(k, np.clip(power, -5000, 5000).astype(np.int32)))


def _least_eigenvalue(k: FloatArray) -> FloatArray:
    """0 if a Cholesky factor of all of them proves that none is negative beyond rounding."""
    try:
        np.linalg.cholesky(k)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(k)[..., 0], dtype=np.float64)
    return np.zeros(k.shape[:-2])


def _refuse(name: str, bad: NDArray[np.bool_], shown: FloatArray, constraint: str, remedy: str) -> None:
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        place = f" at index {where}" if where else ""
        raise DomainError(
            f"{name} must be {constraint}; got {float(shown[where])!r}{place} ({int(bad.sum())} of {bad.size} entries)."
            f" {remedy}"
        )
