"""Mutual information of a Gaussian signal and its release in Gaussian noise, for any covariances.

Notation: X ~ N(0, K_X) and Y ~ N(0, K_Y) independent in R^d. Equation (19) of Ngo, Oestman and Graell i Amat, On local
mutual-information privacy,

    I(X; X + Y) = 1/2 log det(I + K_Y^-1 K_X) = 1/2 sum_i log(1 + lambda_i),

with lambda_i the eigenvalues of the pencil (K_X, K_Y), holds when range(K_X) lies inside range(K_Y), with the inverse
taken there; otherwise the information is infinite.

Scaling. S is the diagonal matrix of powers of two for which S K S has its diagonal in [1/4, 1). S K S has the same
signs of eigenvalues as K and, unlike K, shows how close to singular K is whatever the units of its coordinates (van der
Sluis 1969): every tolerance here refers to it.

The eigenvalues are those of T^-1 (S - T) with S = K_X + K_Y and T = K_Y, enclosed as for the divergences of two
Gaussians (``divergences/reductions/gaussian_spectra.py``).

The game: with trace K_X <= P and trace K_Y <= N, K_X = (P/d) I and K_Y = (N/d) I are a saddle point of value
d/2 log(1 + P/N) (theorem 3). The line after (48) writes I through the sorted eigenvalues of K_X and K_Y. That needs
common eigenvectors in the same order: for diag(4, 1) against diag(1, 3) it gives 1.1112 bit, and I is 1.3685 bit.
Sorted eigenvalues give the least I over all rotations (Fiedler 1971); the theorem itself is correct.
"""

# bounds: proved - docs/proofs/roundings.md, 13.8: rounding of logarithms and their sum

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import ShapeError
from ..base.estimate import Estimate, Information, Kind, NumberLike, Result, exact
from ..base.monotone import monotone
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray, enclosure
from ..distributions.covariances import MAX_ASYMMETRY, scaling_exponents
from ..divergences.reductions.gaussian_spectra import eigenvalue_bounds, spectrum_of_sum

# bound: proved - docs/proofs/roundings.md, 13.8: absolute error of subnormal quotients and results
_SUBNORMAL = 5e-323
# bound: proved - docs/proofs/roundings.md, 13.8: relative error of a closed form, and of the sum over axes
_RELATIVE_ERROR = 2e-15
# bound: none - eigenvalues below it, times the dimension, are taken for 0: the rank of the input
_RANK_TOLERANCE = 2.0**-48
_MAX_SHIFT = 5000  # exponents of two beyond it overflow or underflow in any product with a double


def gaussian_information(signal: ArrayLike, noise: ArrayLike, *, unit: Information = "nats") -> Estimate:
    """Information between a Gaussian signal and its sum with Gaussian noise: 1/2 log det(I + K_Y^-1 K_X).

    Parameters
    ----------
    signal, noise : array_like
        Covariances K_X and K_Y: symmetric positive semidefinite matrices of shape (..., d, d), singular ones included;
        stacks broadcast. A vector stands for a diagonal matrix, one number for a multiple of the identity (of
        dimension 1 if both are numbers). Entries are taken as exact.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        Of the shape of the stack, a scalar for one pair. Infinite where range(K_X) is not inside range(K_Y). Kind
        ``exact``; ``heuristic`` if a rank had to be decided from rounded numbers.

    Raises
    ------
    DomainError
        For NaN, infinite entries, a matrix that is not symmetric to a relative 1e-12 of its deviations' products, or
        that has, scaled to unit diagonal, an eigenvalue below -d 2^-48.
    ShapeError
        For shapes that are no square matrices or do not fit together.

    Notes
    -----
    Rank: coordinates are scaled to variances near 1 first, so diag(1, 1e-20) is regular; after that an eigenvalue below
    d 2^-48 times the largest counts as zero, and so does a signal in the null space of the noise when it is no larger
    than that perturbation explains. Answers that rest on such a decision are labelled ``heuristic``.

    **Accuracy**: the bounds hold the exact value; relative width 2e-15 for diagonal matrices of any scale, otherwise
    about d 2^-50, and d^2 2^-60 times the condition number of the scaled K_Y where that is more; above 256 dimensions
    d^2 2^-52 times it. Signals of variances that differ by more than about 1e15 in units of the noise can have an
    infinite upper bound (tests/enclosures/test_gaussian_game.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 3, eq. (19).

    Examples
    --------
    >>> from fastpriv.capacity import gaussian_information
    >>> gaussian_information([[4.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 3.0]], unit="bits").value
    1.368482797...
    >>> gaussian_information([1.0, 1.0], [1.0, 0.0]).value
    inf
    """
    validate.choice("unit", unit, ("nats", "bits"))
    x, y = _broadcast_pair(_covariance("signal", signal), _covariance("noise", noise))
    if x.ndim == 1:
        value, lower, upper = _diagonal_information(x[None], y[None])[:, 0]
        return Estimate(value, lower, upper, kind="exact", unit="nats", method="diagonal covariances").to(unit)
    dimension, shape = x.shape[-1], x.shape[:-2]
    x, y = x.reshape(-1, dimension, dimension), y.reshape(-1, dimension, dimension)
    numbers = np.full((3, len(x)), np.inf)
    kind: Kind = "exact"
    i = np.arange(dimension)
    diagonal_pairs = ~((x != 0) | (y != 0))[:, ~np.eye(dimension, dtype=bool)].any(axis=1)
    numbers[:, diagonal_pairs] = _diagonal_information(x[diagonal_pairs][:, i, i], y[diagonal_pairs][:, i, i])
    noiseless = y[:, i, i] == 0
    exposed = (noiseless & (x[:, i, i] > 0)).any(axis=1)  # with a coordinate with signal and no noise
    if noiseless.any():  # coordinates with neither get noise 1
        y = y.copy()
        y[:, i, i] = np.where(noiseless, 1.0, y[:, i, i])
    for j in np.flatnonzero(~exposed & ~diagonal_pairs).tolist():
        row = _of_regular_noise(x[j], y[j])
        if row is None:
            row, kind = _information_of_ranges(x[j], y[j]), "heuristic"
        numbers[:, j] = row
    value, lower, upper = numbers.reshape(3, *shape)
    return Estimate(value, lower, upper, kind=kind, unit="nats", method="simultaneous diagonalisation").to(unit)


@monotone(rising="amplitude", falling="sigma")
def average_power_capacity(
    dimension: ArrayLike, amplitude: NumberLike, sigma: NumberLike = 1.0, *, unit: Information = "nats"
) -> Estimate:
    """Capacity of the Gaussian channel under an average-power constraint: d/2 log(1 + A^2 / (d sigma^2)).

    Parameters
    ----------
    dimension : array_like of int
        d, at least 1 and below 2^53.
    amplitude : array_like or Estimate
        A with E||X||^2 <= A^2, at least 0 and finite.
    sigma : array_like or Estimate
        Standard deviation of the noise in every coordinate, positive and finite.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        Kind ``exact``, of the broadcast shape.

    Raises
    ------
    DomainError
        For arguments outside these sets or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    The signal may exceed A as long as its mean square does not. Under the peak constraint ||X|| <= A, which is what
    CI-LMIP asks about, the capacity is at most this: an upper bound, and for small A / sigma a tight one.

    **Accuracy**: 2e-15 relative from 1e-300 to 1e300 (tests/enclosures/test_gaussian_game.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 3 with K_X = (A^2/d) I.

    Examples
    --------
    >>> from fastpriv.capacity import average_power_capacity
    >>> average_power_capacity([1, 4, 100], 2.0, 1.0, unit="bits").value
    array([1.16096405, 2.        , 2.82917642])
    """
    validate.choice("unit", unit, ("nats", "bits"))
    d = validate.real(
        "dimension", dimension, "whole numbers from 1 to 2^53", lambda x: (x >= 1) & (x < 2.0**53) & (x == np.floor(x))
    )
    a = validate.real("amplitude", amplitude, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))
    s = validate.real("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    validate.broadcastable("dimension", d, "amplitude", a)
    validate.broadcastable("sigma", s, "dimension and amplitude", d + a)
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        ratio = a / s
        per = np.where(ratio < 1e-140, (ratio * np.sqrt(d)) * ratio / np.sqrt(d), d * special.log1p(ratio * ratio / d))
        logs = d * (2 * (special.log(a) - special.log(s)) - special.log(d))
    value = 0.5 * np.where(ratio > 1e140, logs, per)
    return exact(value, _rounding(value, a == 0), unit="nats", method="closed form", least=0.0).to(unit)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GaussianGame(Result):
    """Value and saddle point of the game.

    Parameters
    ----------
    value : Estimate
        d/2 log(1 + P/N).
    signal, noise : float
        Variance of each coordinate at the saddle point: K_X = signal I, K_Y = noise I.

    Examples
    --------
    >>> from fastpriv.capacity import gaussian_game
    >>> print(f"{gaussian_game(2, 1.0, 1.0):.4g}")
    GaussianGame(value=0.6931 [0.6931, 0.6932], signal=0.5, noise=0.5)
    """

    value: Estimate
    signal: float
    noise: float


@monotone(rising="signal_power", falling="noise_power")
def gaussian_game(
    dimension: int, signal_power: NumberLike, noise_power: NumberLike, *, unit: Information = "nats"
) -> GaussianGame:
    """Value and saddle point of inf over K_Y, sup over K_X of I with trace K_X <= P and trace K_Y <= N.

    Parameters
    ----------
    dimension : int
        d, at least 1.
    signal_power, noise_power : float or Estimate
        P = d Delta^2 and N = d sigma^2, positive and finite.
    unit : {"nats", "bits"}
        Unit of the value.

    Returns
    -------
    GaussianGame
        Value d/2 log(1 + P/N), and the variances P/d and N/d of the coordinates of both players.

    Raises
    ------
    DomainError
        For arguments outside these sets or another unit.

    Notes
    -----
    The value is also the sup-inf: isotropic Gaussian noise is the best noise of its average power, and the isotropic
    Gaussian signal the best attack of its average power.

    **Accuracy**: 2e-15 relative (tests/enclosures/test_gaussian_game.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eqs (16)-(19) and theorem 3.

    Examples
    --------
    >>> from fastpriv.capacity import gaussian_game
    >>> game = gaussian_game(4, 4.0, 4.0, unit="bits")
    >>> game.value.value, game.signal, game.noise
    (2.0, 1.0, 1.0)
    """
    validate.choice("unit", unit, ("nats", "bits"))
    d = validate.count("dimension", dimension, 1, 2**53)
    p = validate.scalar("signal_power", signal_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    n = validate.scalar("noise_power", noise_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    value = 0.5 * d * float(_log1p_ratio(np.asarray(p), np.asarray(n)))
    error = float(_rounding(value, False, d))
    estimate = exact(value, error, unit="nats", method="saddle point in closed form", least=0.0)
    return GaussianGame(estimate.to(unit), p / d, n / d)


def _log1p_ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    """log(1 + x/y) for non-negative numbers of any size, 0 where x = 0 and infinity where y = 0 < x."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        ratio = x / y
        difference = special.log(x) - special.log(y)
        return np.where(x == 0, 0.0, np.where(np.isposinf(ratio), difference, special.log1p(ratio)))


def _rounding(value: Any, zero: Any, quotients: int = 1) -> FloatArray:
    """Error of so many quotients and their logarithms; none where the value is infinite or an exact zero."""
    return np.where(zero | np.isposinf(value), 0.0, _RELATIVE_ERROR * value + quotients * _SUBNORMAL)


def _diagonal_information(x: FloatArray, y: FloatArray) -> FloatArray:
    """Rows value, lower, upper for stacks of diagonals."""
    terms = _log1p_ratio(x, y)
    value = np.array([0.5 * (math.fsum(row) if np.isfinite(row).all() else math.inf) for row in terms])
    return np.stack(enclosure(value, _rounding(value, ~x.any(axis=1), x.shape[-1]), 0.0))


def _of_regular_noise(x: Any, y: FloatArray) -> tuple[float, float, float] | None:
    """Value, lower and upper, 0 and infinity where nothing is proved; None where K_Y is singular to rounding."""
    if not x.any():
        return 0.0, 0.0, 0.0
    spectrum = np.linalg.eigvalsh(_scaled(y, scaling_exponents(np.diagonal(y))))
    if not spectrum[0] > len(y) * _RANK_TOLERANCE * spectrum[-1]:
        return None
    coordinates = spectrum_of_sum(x, y)
    if coordinates is None:
        return 0.0, 0.0, math.inf
    bounds = [0.5 * math.fsum(np.log1p(np.maximum(end, -0.5)).tolist()) for end in eigenvalue_bounds(coordinates)]
    rounding = (len(y) + 12) * 2 * UNIT_ROUNDOFF * bounds[1] + len(y) * _SUBNORMAL
    determinant, error = -coordinates.c, coordinates.c_error
    lower = max(bounds[0] - rounding, determinant - error, 0.0)
    upper = min(bounds[1] + rounding, max(determinant + error, lower))
    return 0.5 * (lower + upper), lower, upper


def _information_of_ranges(x: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Value and bounds after restricting both matrices to the numerical range of the noise."""
    rows, tolerance = scaling_exponents(np.diagonal(y)), len(y) * _RANK_TOLERANCE
    spectrum, vectors = np.linalg.eigh(_scaled(y, rows))
    shift = -rows.astype(np.int32)
    signal = np.ldexp(np.ldexp(x.astype(np.longdouble), shift[:, None]), shift[None, :])
    selected = spectrum > tolerance * spectrum[-1]
    condition = float(spectrum[-1] / spectrum[selected][0])
    null, basis = vectors[:, ~selected], vectors[:, selected]
    whole = np.asarray(signal / np.abs(signal).max(), np.float64)
    if np.linalg.norm(null.T @ whole @ null, 2) > (tolerance + (tolerance * condition) ** 2) * np.linalg.norm(whole, 2):
        return np.inf, np.inf, np.inf
    restricted = basis.T @ signal @ basis
    row = _of_regular_noise(0.5 * (restricted + restricted.T), np.diag(spectrum[selected]))
    assert row is not None
    size = np.linalg.eigvalsh(basis.T @ whole @ basis)
    change = min(0.5, tolerance * (condition + float(size[-1] / size[size > tolerance * size[-1]][0])))
    error = change * len(size)
    return row[0], max(0.0, row[1] - error), row[2] + error


def _covariance(name: str, value: ArrayLike) -> FloatArray:
    """Non-negative scalar (isotropic), vector (diagonal) or stack (..., d, d) of positive semidefinite matrices."""
    try:
        ndim = np.ndim(value)
    except ValueError:  # rows of different lengths
        ndim = 0
    if ndim < 2:
        return validate.real(name, value, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))
    k = validate.real(name, value, "made of finite numbers", np.isfinite)
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
    least = _least_eigenvalue(_scaled(k, scaling_exponents(diagonal)))
    refused = least < -(k.shape[-1] * _RANK_TOLERANCE)
    _refuse(
        name, refused, least, "positive semidefinite",
        "Shown is the least eigenvalue with all coordinates scaled to variances near 1.",
    )
    return k


def _broadcast_pair(first: FloatArray, second: FloatArray) -> tuple[FloatArray, FloatArray]:
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
        signal, noise = (np.array(np.broadcast_to(a, (dimension,))) for a in arrays)
        return signal, noise
    signal, noise = (a if a.ndim >= 2 else a[..., None] * np.eye(dimension) for a in arrays)
    validate.broadcastable("signal", signal, "noise", noise)
    signal, noise = np.broadcast_arrays(signal, noise)
    return signal, noise


def _scaled(k: FloatArray, rows: IntArray) -> FloatArray:
    """K_ij 2^(-rows_i - rows_j), exact but for underflow."""
    power = -(rows[..., :, None] + rows[..., None, :])
    return np.asarray(np.ldexp(k, np.clip(power, -_MAX_SHIFT, _MAX_SHIFT).astype(np.int32)))


def _least_eigenvalue(k: FloatArray) -> FloatArray:
    """Least eigenvalues; 0 if Cholesky factors prove that none is negative beyond rounding."""
    try:
        np.linalg.cholesky(k)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.eigvalsh(k)[..., 0], dtype=np.float64)
    return np.zeros(k.shape[:-2])


def _refuse(name: str, bad: BoolArray, shown: FloatArray, constraint: str, remedy: str) -> None:
    if bad.any():
        validate.real(name, shown, constraint, lambda _: ~bad, remedy=remedy)
