"""Standard deviations and covariance matrices of mixtures: checks, simplest form, Cholesky factors.

Stacks of matrices are read in blocks and factored once.

Notation: K a symmetric d x d matrix, S the diagonal matrix of powers of two for which S K S has its diagonal in
[1/4, 1). The factor of K is that of S K S times the inverse of S: the scaling is exact, so variances of 1e-300 beside
1e300 cost no accuracy (van der Sluis 1969), and what counts as singular does not depend on the units.
"""

# bounds: none - when a covariance is taken for a simpler form exactly, or refused

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import parallel, validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import BoolArray, FloatArray, IndexArray, IntArray
from ..base.values import is_read_only
from .packed import MAX_MAGNITUDE

# bound: none - largest |K_ij - K_ji| relative to sqrt(K_ii K_jj) that is taken for rounding; others are refused
MAX_ASYMMETRY = 1e-12
# bound: none - matrices whose least eigenvalue, for unit variances, is below this part of sqrt(d) times the largest
#    are refused as singular
_MIN_EIGENVALUE_RATIO = 2.0**-50
_BLOCK_ENTRIES = 2**21  # entries of matrices that are examined together: 16 MiB
# Remedy for matrices that do not fit into the free memory.
_MEMORY_REMEDY = (
    "Cholesky factors take as much again as the matrices, and so does a copy, which a C-contiguous array of doubles is "
    "spared after setflags(write=False). Share one matrix, or use sigmas."
)
# Remedy for a matrix that is not positive definite.
_DEFINITENESS_REMEDY = (
    "Drop coordinates that others determine, or add a small multiple of the identity if the matrices are estimates."
)


def validated_sigmas(sigmas: Any) -> FloatArray:
    """Standard deviations of any shape, checked."""
    return validate.real(
        "sigmas", sigmas, "positive and between 1e-300 and 1e300",
        lambda s: (s >= 1 / MAX_MAGNITUDE) & (s <= MAX_MAGNITUDE),
        remedy="Pass standard deviations; a point mass has no density.",
    )


def sigma_rows(sigmas: Any, k: int, d: int) -> FloatArray:
    """Standard deviations as (k, 1) or (k, d)."""
    if _rectangular("sigmas", sigmas).shape in ((1, d, d), (k, d, d)):  # before zeros off the diagonal are refused
        raise _shape_error(np.shape(sigmas), k, d, "Matrices go to covariances=.")
    s = validated_sigmas(sigmas)
    if s.ndim == 0:
        return np.full((k, 1), s)
    if s.ndim == 1 and s.size == k:
        return s[:, None]
    if s.ndim == 2 and s.shape[0] in (1, k) and s.shape[1] in (1, d):
        return np.array(np.broadcast_to(s, (k, s.shape[1])))
    remedy = "Pass one standard deviation a component, or one to each coordinate of each."
    if s.shape == (d,):
        remedy = f"Pass shape (1, {d}) for one standard deviation a coordinate."
    elif s.shape == (d, d):
        remedy = "Matrices go to covariances=."
    raise _shape_error(s.shape, k, d, remedy)


def simplest_form(means: FloatArray, sigmas: FloatArray) -> dict[str, FloatArray | None]:
    """Means (k, d) and sigmas (k, 1) or (k, d) in the line, isotropic or diagonal form."""
    if means.shape[1] == 1:
        means = means[:, 0].copy()
    if np.all(sigmas == sigmas[:, :1]):
        sigmas = sigmas[:, 0].copy()
    return {"means": means, "sigmas": sigmas, "covariances": None, "_factors": None}


def validated_covariances(value: Any, used: BoolArray, dimension: int) -> tuple[FloatArray, FloatArray | None]:
    """Check the covariances of the components that are ``used``; their simplest form and their Cholesky factors.

    The first result is (k, d) variances where all matrices are diagonal, and then there are no factors; else matrices
    of shape (k, d, d), or (1, d, d) where all are equal. A read-only array of doubles is kept as it is; anything else
    is copied once.
    """
    stack = _as_stack(value, used.size, dimension)
    symmetric, diagonal, equal = _examine(stack, used)
    chosen = used if len(stack) == used.size else np.ones(1, dtype=bool)
    if diagonal:
        variances = np.array(np.diagonal(stack, axis1=1, axis2=2)[chosen], dtype=np.float64)
        return np.broadcast_to(variances, (int(used.sum()), dimension)), None
    if equal:
        chosen = np.arange(len(stack)) == np.argmax(chosen)
    index = np.flatnonzero(chosen)
    keep = symmetric and chosen.all() and _can_be_kept(stack)
    matrices = stack if keep else _private_copy(stack, index, symmetric)
    return matrices, validated_factors(matrices, index)


def validated_factors(covariances: FloatArray, index: IndexArray | None = None) -> FloatArray:
    """Lower Cholesky factors of (k, d, d) matrices; refuses those that are singular to rounding or indefinite.

    ``index`` holds the position of each matrix in the caller's argument, for errors.
    """
    factors, refused = factors_and_refused(covariances)
    if refused:
        position, least_found = refused[0]
        position = position if index is None else int(index[position])
        raise DomainError(
            f"covariances must be positive definite{' to rounding' if least_found > -1e-9 else ''}; got a smallest "
            f"eigenvalue of {least_found:.4g}, for unit variances, at index {position} ({len(refused)} of "
            f"{len(covariances)} matrices). {_DEFINITENESS_REMEDY}"
        )
    return factors


def factors_and_refused(covariances: FloatArray) -> tuple[FloatArray, list[tuple[int, float]]]:
    """Lower Cholesky factors of (k, d, d) matrices, and those refused: position and least eigenvalue at unit variances.

    The factors of the refused matrices, singular to rounding or indefinite, hold no meaningful numbers.
    """
    count, dimension, _ = covariances.shape
    validate.memory("covariances", covariances.nbytes, _MEMORY_REMEDY)
    factors = np.empty_like(covariances)
    refused: list[tuple[int, float]] = []
    for rows in _matrix_blocks(count, dimension):
        block = covariances[rows]
        powers = scaling_exponents(np.diagonal(block, axis1=1, axis2=2))
        down, up = np.ldexp(1.0, -powers), np.ldexp(1.0, powers)
        with np.errstate(over="ignore"):  # refused below
            unit = block * down[:, :, None]
            unit *= down[:, None, :]
        lower, doubtful = _cholesky(unit)
        least, largest = _extreme_eigenvalues(unit[doubtful])
        bad = ~(least > _MIN_EIGENVALUE_RATIO * np.sqrt(dimension) * largest)
        refused += zip((rows.start + doubtful[bad]).tolist(), least[bad].tolist(), strict=True)
        np.multiply(lower, up[:, :, None], out=factors[rows])
    return factors, refused


def doubtful_matrices(covariances: FloatArray) -> BoolArray:
    """Which (k, d, d) matrices have a defect, or are singular to rounding or indefinite."""
    bad = np.zeros(len(covariances), dtype=bool)
    with np.errstate(invalid="ignore"):
        for rows in _matrix_blocks(*covariances.shape[:2]):
            bad[rows] = np.any([defect.mask(covariances[rows]).any(axis=(1, 2)) for defect in _DEFECTS], axis=0)
    sound = np.flatnonzero(~bad)
    if sound.size:
        _, refused = factors_and_refused(covariances[sound])
        bad[sound[[position for position, _ in refused]]] = True
    return bad


def scaling_exponents(diagonal: FloatArray) -> IntArray:
    """Integers a with diagonal / 4^a in [1/4, 1); 0 for an entry 0."""
    exponent = np.frexp(diagonal)[1].astype(np.int64)
    return -((-exponent) // 2)


def _as_stack(value: Any, count: int, dimension: int) -> NDArray[Any]:
    """The value as (1, d, d) or (count, d, d), without a copy where it is an array of numbers already."""
    stack = _rectangular("covariances", value)
    if stack.dtype.kind not in "fiub":
        stack = validate.real("covariances", value, "made of finite numbers", np.isfinite, answer=False)
    square = (dimension, dimension)
    if stack.shape not in (square, (1, *square), (count, *square)):
        remedy = "Pass one matrix for all components or one a component; standard deviations go to sigmas."
        if stack.shape in ((), (count,), (count, dimension)):
            remedy = "Pass variances as sigmas=np.sqrt(variances), and standard deviations go to sigmas as they are."
        raise ShapeError(f"covariances must be of shape {square} or {(count, *square)}; got {stack.shape}. {remedy}")
    stack = stack.reshape(-1, *square)
    return stack[:1] if stack.strides[0] == 0 else stack  # one matrix that was broadcast


def _rectangular(name: str, value: Any) -> NDArray[Any]:
    """The value as an array, of objects where its rows have different lengths."""
    try:
        return validate.array(name, value)
    except ShapeError:
        return np.asarray(value, dtype=object)


def _shape_error(shape: tuple[int, ...], k: int, d: int, remedy: str) -> ShapeError:
    return ShapeError(
        f"sigmas must be a number or of shape ({k},), ({k}, 1), (1, {d}) or ({k}, {d}) for means of shape ({k}, {d}); "
        f"got {shape}. {remedy}"
    )


def _examine(stack: NDArray[Any], used: BoolArray) -> tuple[bool, bool, bool]:
    """Whether all used matrices are exactly symmetric, diagonal, equal; raises for what is no covariance matrix."""
    validate.memory("covariances", 9 * stack.shape[1] ** 2, _MEMORY_REMEDY)  # one matrix and a mask of its entries
    symmetric = diagonal = equal = True
    memory_checked = False
    first = None
    for rows in _matrix_blocks(*stack.shape[:2]):
        block = _as_float64(stack[rows])
        block_symmetric = np.array_equal(block, block.swapaxes(1, 2))
        for defect in _DEFECTS[: 2 if block_symmetric else 3]:
            if defect.mask(block).any():
                _raise_defect(stack, defect)
        symmetric = symmetric and block_symmetric
        selected = block[used[rows]] if len(stack) == used.size else block
        if len(selected):
            first = np.array(selected[0]) if first is None else first
            diagonal = diagonal and np.count_nonzero(selected) == selected.shape[0] * selected.shape[1]
            equal = equal and bool(np.all(selected == first))
        if not (memory_checked or diagonal or equal):  # known long before all of a large stack is read
            memory_checked = True
            copies = 1 if _can_be_kept(stack) else 2
            validate.memory("covariances", stack.size * 8 * copies, _MEMORY_REMEDY)
    return symmetric, diagonal, equal


def _private_copy(stack: NDArray[Any], index: IndexArray, symmetric: bool) -> FloatArray:
    """A read-only copy of the chosen matrices as doubles, made exactly symmetric."""
    copy = np.empty((len(index), *stack.shape[1:]))
    for rows in _matrix_blocks(*copy.shape[:2]):
        block = _as_float64(stack[index[rows]])
        copy[rows] = block if symmetric else 0.5 * block + 0.5 * block.swapaxes(1, 2)
    copy.setflags(write=False)
    return copy


def _can_be_kept(stack: NDArray[Any]) -> bool:
    """Whether this array can be kept as it is; not a memory map, whose file may be truncated at any time."""
    plain = stack.dtype == np.float64 and stack.flags.c_contiguous and stack.flags.aligned
    return plain and is_read_only(stack) and validate.map_of(stack) is None


def _cholesky(unit: FloatArray) -> tuple[FloatArray, IntArray]:
    """Lower factors, and the indices of the matrices that may be singular to rounding or are not definite."""
    from scipy.linalg import lapack

    doubtful: list[int] = []
    try:
        lower = np.asarray(np.linalg.cholesky(unit), dtype=np.float64)
    except np.linalg.LinAlgError:
        lower = np.zeros_like(unit)
        for i, matrix in enumerate(unit):
            try:
                lower[i] = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                doubtful.append(i)
    size = np.abs(unit).sum(axis=1).max(axis=1)
    failed = set(doubtful)
    margin = 64 * _MIN_EIGENVALUE_RATIO * np.sqrt(unit.shape[1])  # LAPACK estimates the condition to a small factor
    for i, factor in enumerate(lower):
        if i not in failed and lapack.dpocon(factor.T, size[i])[0] <= margin:
            doubtful.append(i)
    return lower, np.array(sorted(doubtful), dtype=np.int64)


def _extreme_eigenvalues(unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least and largest eigenvalues of matrices brought to a diagonal of ones."""
    root = np.sqrt(np.diagonal(unit, axis1=1, axis2=2))
    with np.errstate(over="ignore"):
        values = np.linalg.eigvalsh(np.clip(unit / (root[:, :, None] * root[:, None, :]), -1e100, 1e100))
    return values[:, 0], values[:, -1]


def _matrix_blocks(count: int, dimension: int) -> list[slice]:
    return parallel.blocks(count, max(1, _BLOCK_ENTRIES // dimension**2))


@np.errstate(over="ignore")
def _as_float64(block: NDArray[Any]) -> FloatArray:
    return np.asarray(block, dtype=np.float64)


def _is_no_variance(block: FloatArray) -> BoolArray:
    variances = np.diagonal(block, axis1=1, axis2=2)
    bad = np.zeros(block.shape, dtype=bool)
    i = np.arange(block.shape[1])
    bad[:, i, i] = ~((variances >= 1 / MAX_MAGNITUDE) & (variances <= MAX_MAGNITUDE))
    return bad


def _is_asymmetric(block: FloatArray) -> BoolArray:
    root = np.sqrt(np.maximum(np.diagonal(block, axis1=1, axis2=2), 0.0))
    gap = np.abs(0.5 * block - 0.5 * block.swapaxes(1, 2))
    return np.asarray(gap > 0.5 * MAX_ASYMMETRY * root[:, :, None] * root[:, None, :])


class _Defect(NamedTuple):
    mask: Callable[[FloatArray], BoolArray]
    constraint: str
    remedy: str


# What a covariance matrix may not be. Asymmetry is the last: it is skipped for blocks that are symmetric.
_DEFECTS = (
    _Defect(lambda block: ~np.isfinite(block), "made of finite numbers", "Remove what is not a number."),
    _Defect(_is_no_variance, "positive on their diagonals, between 1e-300 and 1e300", _DEFINITENESS_REMEDY),
    _Defect(_is_asymmetric, "symmetric to rounding", "Pass (K + K.T) / 2 if that is meant."),
)


def _raise_defect(stack: NDArray[Any], defect: _Defect) -> None:
    """Raise for a defect, with its first position and the number of defective entries of the whole stack."""
    total, position = 0, None
    with np.errstate(invalid="ignore"):
        for rows in _matrix_blocks(*stack.shape[:2]):
            bad = defect.mask(_as_float64(stack[rows]))
            if position is None and bad.any():
                k, i, j = np.argwhere(bad)[0]
                position = (int(k) + rows.start, int(i), int(j))
            total += int(np.count_nonzero(bad))
    assert position is not None
    raise DomainError(
        f"covariances must be {defect.constraint}; got {float(stack[position])!r} at index {position} ({total} of "
        f"{stack.size} entries). {defect.remedy}"
    )
