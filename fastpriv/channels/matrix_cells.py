"""Cells of written channels: one array of floats, whose rows must be distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray, RealArray
from ..kernels import _channel_capacity

_STORED_DTYPES = (np.dtype(np.float64), np.dtype(np.float32))  # kept as they are; others are converted to float64
# bound: proved - what exponentials of doubles by NumPy, right to two ulps (theorem 7.8 of
#    docs/proofs/finite_capacity.md), change in a sum of at most 1 + 2e-6
_EXP_ERROR = 1.01 * 2.0**-51


def validated_cells(name: str, matrix: ArrayLike, constraint: str, remedy: str, *, stacked: bool) -> NDArray[Any]:
    """Numbers with an axis of secrets and one of releases, neither empty, after leading axes if these are stacked."""
    try:
        array = validate.array(name, matrix)
    except ShapeError:  # rows of different lengths
        array = np.asarray(matrix, dtype=object)
    if array.dtype.kind not in "fiub":
        array = validate.real(name, matrix, constraint, remedy=remedy if stacked else None, answer=False)
    if array.ndim < 2 or (array.ndim > 2 and not stacked) or 0 in array.shape[-2:]:
        raise ShapeError(
            f"{name} must have one row a secret and one column a release; got shape {array.shape}. {remedy}"
        )
    return array


def contiguous_cells(name: str, array: NDArray[Any], may_share: bool, remedy: str) -> RealArray:
    """The numbers as C-contiguous floats: the array itself if it may be kept and is such an array, else a copy."""
    dtype = array.dtype if array.dtype in _STORED_DTYPES and array.dtype.isnative else np.dtype(np.float64)
    if may_share and array.dtype == dtype and array.flags.c_contiguous:
        return array.view(np.ndarray)
    validate.memory(name, array.size * dtype.itemsize, remedy)
    return validate.copied(array, dtype, "C")


def logs_of(cells: Any) -> FloatArray:
    """Natural logarithms, -inf of zeros."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(cells))


def largest_gap(rows: RealArray, log: bool, start: int) -> float:
    """The largest distance of the sum of one of these rows from 1, rounded up; an error for an invalid row.

    The first one is row ``start`` of the channel; ``log`` says whether they are logarithms.
    """
    tolerance = validate.sum_tolerance(rows.dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        weights = np.exp(rows, dtype=np.float64) if log else np.asarray(rows, dtype=np.float64)
        gaps = _channel_capacity.row_gaps(np.ascontiguousarray(weights))  # negative for NaN and negative cells
        valid = (gaps >= 0) & (gaps <= tolerance)
    if not valid.all():
        _raise_for_row(rows, weights, int(np.argmin(valid)), start, log, tolerance)
    if log:  # the exponentials are rounded, all but those of 0 and -inf
        gaps[((weights > 0) & (weights != 1)).any(axis=1)] += _EXP_ERROR
    return float(gaps.max())


def _raise_for_row(block: RealArray, weights: RealArray, index: int, start: int, log: bool, tolerance: float) -> None:
    """Raise the error for a row that holds a wrong cell or does not sum to 1."""
    row = block[index]
    wrong = np.isnan(row) | (row > (1e-5 if log else 1 + tolerance)) | (False if log else row < 0)
    if wrong.any():
        column = int(np.argmax(wrong))
        wanted = "log probabilities, at most 0" if log else "probabilities between 0 and 1"
        raise DomainError(
            f"matrix must be made of {wanted}; got {float(row[column])!r} at row {start + index}, column {column}. "
            + ("Pass natural logarithms." if log else "Divide percentages by 100; pass logarithms with log=True.")
        )
    raise DomainError(
        f"each row of matrix must sum to 1 within {tolerance:g}; got a sum of "
        f"{float(np.sum(weights[index], dtype=np.longdouble))!r} at row {start + index}. "
        "Divide each row by its sum if the numbers are relative."
    )
