"""What spreads the components of a mixture: standard deviations, or stacks of covariance matrices.

Both are checked and brought to their simplest form; matrices are looked at in blocks and factored once.

Notation: K a symmetric d x d matrix, S the diagonal matrix of powers of two for which S K S has its diagonal in
[1/4, 1). The factor of K is that of S K S times the inverse of S: the scaling is exact, so variances of 1e-300 beside
1e300 cost no accuracy (van der Sluis 1969), and what counts as singular does not depend on the units.
"""

# bounds: none - when a covariance is taken for a simpler form exactly, or refused

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._values import lasting
from ..errors import DomainError, ShapeError
from .packed import LIMIT, FloatArray

__all__ = ["SYMMETRY", "deviations", "exponents", "factored", "simplest", "spread_out", "taken"]

# bound: none - matrices farther from symmetric are refused
SYMMETRY = 1e-12  # largest |K_ij - K_ji| taken for rounding, relative to sqrt(K_ii K_jj)
_BLOCK = 2**21  # entries looked at together
# bound: none - matrices nearer to singular are refused
_SINGULAR = 2.0**-50  # least eigenvalue for unit variances, in parts of sqrt(d) times the largest
_HEAVY = (
    "Cholesky factors take as much again as the matrices, and so does a copy, which a C-contiguous array of doubles is "
    "spared after setflags(write=False). Share one matrix, or use sigmas."
)
_REMEDY = (
    "Drop coordinates that others determine, or add a small multiple of the identity if the matrices are estimates."
)
Mask = NDArray[np.bool_]


def deviations(sigmas: Any) -> FloatArray:
    """Standard deviations of any shape."""
    return _validate.real(
        "sigmas", sigmas, "positive and between 1e-300 and 1e300", lambda s: (s >= 1 / LIMIT) & (s <= LIMIT),
        remedy="Pass standard deviations; a point mass has no density.",
    )  # fmt: skip


def spread_out(sigmas: Any, k: int, d: int) -> FloatArray:
    """Standard deviations as (k, 1) or (k, d)."""
    given = _rectangular("sigmas", sigmas)
    if given.shape in ((1, d, d), (k, d, d)):  # before their zeros are taken for standard deviations
        raise _misshapen(np.shape(sigmas), k, d, "Matrices go to covariances=.")
    s = deviations(sigmas)
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
    raise _misshapen(s.shape, k, d, remedy)


def simplest(means: FloatArray, sigmas: FloatArray) -> dict[str, FloatArray | None]:
    """Means (k, d) and sigmas (k, 1) or (k, d) in the line, isotropic or diagonal form."""
    if means.shape[1] == 1:
        means = means[:, 0].copy()
    if np.all(sigmas == sigmas[:, :1]):
        sigmas = sigmas[:, 0].copy()
    return {"means": means, "sigmas": sigmas, "covariances": None, "_factors": None}


def taken(value: Any, used: Mask, dimension: int) -> tuple[FloatArray, FloatArray | None]:
    """Covariances of the components that are ``used``, checked, in their simplest form, and their Cholesky factors.

    The first is (k, d) variances where all matrices are diagonal, and then there are no factors; else matrices of
    shape (k, d, d), or (1, d, d) where all are equal. A read-only array of doubles is kept as it is; anything else is
    copied once.
    """
    given = _stack(value, used.size, dimension)
    symmetric, diagonal, equal = _looked_at(given, used)
    chosen = used if len(given) == used.size else np.ones(1, dtype=bool)
    if diagonal:
        variances = np.array(np.diagonal(given, axis1=1, axis2=2)[chosen], dtype=np.float64)
        return np.broadcast_to(variances, (int(used.sum()), dimension)), None
    if equal:
        chosen = np.arange(len(given)) == np.argmax(chosen)
    index = np.flatnonzero(chosen)
    kept = given if symmetric and chosen.all() and _lasting(given) else _copied(given, index, symmetric)
    return kept, factored(kept, index)


def factored(covariances: FloatArray, index: NDArray[np.intp] | None = None) -> FloatArray:
    """Lower Cholesky factors of (k, d, d) matrices; refuses those that are singular to rounding or indefinite.

    ``index`` is the place of each among what the caller was given.
    """
    count, dimension, _ = covariances.shape
    _validate.memory("covariances", covariances.nbytes, _HEAVY)
    factors = np.empty_like(covariances)
    refused: list[tuple[int, float]] = []
    for rows in _blocks(count, dimension):
        block = covariances[rows]
        powers = exponents(np.diagonal(block, axis1=1, axis2=2))
        down, up = np.ldexp(1.0, -powers), np.ldexp(1.0, powers)
        with np.errstate(over="ignore"):  # refused below
            unit = block * down[:, :, None]
            unit *= down[:, None, :]
        lower, doubtful = _cholesky(unit)
        least, largest = _extremes(unit[doubtful])
        bad = ~(least > _SINGULAR * np.sqrt(dimension) * largest)
        refused += zip((rows.start + doubtful[bad]).tolist(), least[bad].tolist(), strict=True)
        np.multiply(lower, up[:, :, None], out=factors[rows])
    if refused:
        place, least_found = refused[0]
        place = place if index is None else int(index[place])
        raise DomainError(
            f"covariances must be positive definite{' to rounding' if least_found > -1e-9 else ''}; got a smallest "
            f"eigenvalue of {least_found:.4g}, for unit variances, at index {place} ({len(refused)} of {count} "
            f"matrices). {_REMEDY}"
        )
    return factors


def exponents(diagonal: FloatArray) -> NDArray[np.int64]:
    """Integers a with diagonal / 4^a in [1/4, 1); 0 for an entry 0."""
    exponent = np.frexp(diagonal)[1].astype(np.int64)
    return -((-exponent) // 2)


def _stack(value: Any, count: int, dimension: int) -> NDArray[Any]:
    """The value as (1, d, d) or (count, d, d), without a copy where it is an array of numbers already."""
    given = _rectangular("covariances", value)
    if given.dtype.kind not in "fiub":
        given = _validate.real("covariances", value, "made of finite numbers", np.isfinite, answer=False)
    square = (dimension, dimension)
    if given.shape not in (square, (1, *square), (count, *square)):
        remedy = "Pass one matrix for all components or one a component; standard deviations go to sigmas."
        if given.shape in ((), (count,), (count, dimension)):
            remedy = "Pass variances as sigmas=np.sqrt(variances), and standard deviations go to sigmas as they are."
        raise ShapeError(f"covariances must be of shape {square} or {(count, *square)}; got {given.shape}. {remedy}")
    given = given.reshape(-1, *square)
    return given[:1] if given.strides[0] == 0 else given  # one matrix that was broadcast


def _rectangular(name: str, value: Any) -> NDArray[Any]:
    try:
        return _validate.array(name, value)
    except ShapeError:
        return np.asarray(value, dtype=object)


def _misshapen(shape: tuple[int, ...], k: int, d: int, remedy: str) -> ShapeError:
    return ShapeError(
        f"sigmas must be a number or of shape ({k},), ({k}, 1), (1, {d}) or ({k}, {d}) for means of shape ({k}, {d}); "
        f"got {shape}. {remedy}"
    )


def _looked_at(given: NDArray[Any], used: Mask) -> tuple[bool, bool, bool]:
    """Whether all used matrices are exactly symmetric, diagonal, equal; refuses what no covariance is."""
    _validate.memory("covariances", 9 * given.shape[1] ** 2, _HEAVY)  # one matrix and what is asked of its entries
    symmetric = diagonal = equal = light = True
    first = None
    for rows in _blocks(*given.shape[:2]):
        block = _doubles(given[rows])
        mirrored = np.array_equal(block, block.swapaxes(1, 2))
        for fault in _FAULTS[: 2 if mirrored else 3]:
            if fault.found(block).any():
                _refuse(given, fault)
        symmetric = symmetric and mirrored
        mine = block[used[rows]] if len(given) == used.size else block
        if len(mine):
            first = np.array(mine[0]) if first is None else first
            diagonal = diagonal and np.count_nonzero(mine) == mine.shape[0] * mine.shape[1]
            equal = equal and bool(np.all(mine == first))
        if light and not (diagonal or equal):  # known long before all of a large stack is read
            light = False
            _validate.memory("covariances", given.size * 8 * (1 if _lasting(given) else 2), _HEAVY)
    return symmetric, diagonal, equal


def _copied(given: NDArray[Any], index: NDArray[np.intp], symmetric: bool) -> FloatArray:
    """The chosen matrices as doubles of our own, made exactly symmetric, read-only."""
    kept = np.empty((len(index), *given.shape[1:]))
    for rows in _blocks(*kept.shape[:2]):
        block = _doubles(given[index[rows]])
        kept[rows] = block if symmetric else 0.5 * block + 0.5 * block.swapaxes(1, 2)
    kept.setflags(write=False)
    return kept


def _lasting(given: NDArray[Any]) -> bool:
    """Whether this array can be kept as it is; a map cannot, whose file may be cut at any time."""
    plain = given.dtype == np.float64 and given.flags.c_contiguous and given.flags.aligned
    return plain and lasting(given) and _validate.map_of(given) is None


def _cholesky(unit: FloatArray) -> tuple[FloatArray, NDArray[np.int64]]:
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
    margin = 64 * _SINGULAR * np.sqrt(unit.shape[1])  # the estimate of the condition is good to a small factor
    for i, factor in enumerate(lower):
        if i not in failed and lapack.dpocon(factor.T, size[i])[0] <= margin:
            doubtful.append(i)
    return lower, np.array(sorted(doubtful), dtype=np.int64)


def _extremes(unit: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Least and largest eigenvalues of matrices brought to a diagonal of ones."""
    root = np.sqrt(np.diagonal(unit, axis1=1, axis2=2))
    with np.errstate(over="ignore"):
        values = np.linalg.eigvalsh(np.clip(unit / (root[:, :, None] * root[:, None, :]), -1e100, 1e100))
    return values[:, 0], values[:, -1]


def _blocks(count: int, dimension: int) -> Iterator[slice]:
    step = max(1, _BLOCK // dimension**2)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


@np.errstate(over="ignore")
def _doubles(block: NDArray[Any]) -> FloatArray:
    return np.asarray(block, dtype=np.float64)


def _not_finite(block: FloatArray) -> Mask:
    return ~np.isfinite(block)


def _no_variance(block: FloatArray) -> Mask:
    variances = np.diagonal(block, axis1=1, axis2=2)
    bad = np.zeros(block.shape, dtype=bool)
    at = np.arange(block.shape[1])
    bad[:, at, at] = ~((variances >= 1 / LIMIT) & (variances <= LIMIT))
    return bad


def _asymmetric(block: FloatArray) -> Mask:
    root = np.sqrt(np.maximum(np.diagonal(block, axis1=1, axis2=2), 0.0))
    gap = np.abs(0.5 * block - 0.5 * block.swapaxes(1, 2))
    return np.asarray(gap > 0.5 * SYMMETRY * root[:, :, None] * root[:, None, :])


class _Fault(NamedTuple):
    found: Callable[[FloatArray], Mask]
    constraint: str
    remedy: str


_FAULTS = (
    _Fault(_not_finite, "made of finite numbers", "Remove what is not a number."),
    _Fault(_no_variance, "positive on their diagonals, between 1e-300 and 1e300", _REMEDY),
    _Fault(_asymmetric, "symmetric to rounding", "Pass (K + K.T) / 2 if that is meant."),
)


def _refuse(given: NDArray[Any], fault: _Fault) -> None:
    """All of the stack is counted, so that the sentence says how much is wrong."""
    total, where = 0, None
    with np.errstate(invalid="ignore"):
        for rows in _blocks(*given.shape[:2]):
            bad = fault.found(_doubles(given[rows]))
            if where is None and bad.any():
                at = np.argwhere(bad)[0]
                where = (int(at[0]) + rows.start, int(at[1]), int(at[2]))
            total += int(np.count_nonzero(bad))
    assert where is not None
    raise DomainError(
        f"covariances must be {fault.constraint}; got {float(given[where])!r} at index {where} ({total} of "
        f"{given.size} entries). {fault.remedy}"
    )
