"""Mutual information of a Gaussian signal and its release in Gaussian noise, for any covariances.

Notation: X ~ N(0, K_X) and Y ~ N(0, K_Y) independent in R^d. Equation (19) of Ngo, Oestman and Graell i Amat, On local
mutual-information privacy,

    I(X; X + Y) = 1/2 log det(I + K_Y^-1 K_X) = 1/2 sum_i log(1 + lambda_i),

with lambda_i the eigenvalues of the pencil (K_X, K_Y), holds when range(K_X) lies inside range(K_Y), with the inverse
taken there; otherwise the information is infinite.

Scaling. S is the diagonal matrix of powers of two for which S K S has its diagonal in [1/4, 1). S K S has the same
signs of eigenvalues as K and, unlike K, shows how close to singular K is whatever the units of its coordinates (van der
Sluis 1969): every tolerance here refers to it.

Both matrices are brought to diagonal form by one computed congruence G: P = G' K_Y G = I + E and Q = G' K_X G =
diag(lambda) + F. G is taken as computed; E and F are formed, their rounding is bounded entry by entry, and then

    1/2 log det(I + P^-1 Q) differs from 1/2 sum log(1 + lambda_i) by at most
    1/2 [sqrt(d) m / (1 - m) + e / (1 - e) (sum_i lambda_i / (1 + lambda_i) + d m)],

e = |E|, m = |(I + diag(lambda))^-1/2 F (I + diag(lambda))^-1/2| (Frobenius): the determinant is multiplicative, and
P between (1 - e) I and (1 + e) I scales every eigenvalue by no more than that (Ostrowski 1959). The bound holds
whatever the accuracy of the computed eigenvectors.

The game: with trace K_X <= P and trace K_Y <= N, K_X = (P/d) I and K_Y = (N/d) I are a saddle point of value
d/2 log(1 + P/N) (theorem 3). The line after (48) writes I through the sorted eigenvalues of K_X and K_Y. That needs
common eigenvectors in the same order: for diag(4, 1) against diag(1, 3) it gives 1.1112 bit, and I is 1.3685 bit.
Sorted eigenvalues give the least I over all rotations (Fiedler 1971); the theorem itself is correct.
"""

# bounds: tested by enclosures/test_gaussian_game - rounding of the congruence entry by entry, n terms of a
#    product within n u; of logarithms

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import ShapeError
from ..base.estimate import Estimate, Information, Kind, NumberLike, Result
from ..base.exact_linear_algebra import integer_determinant, scaled_integers
from ..base.monotone import monotone
from ..base.numerics import LOG_2, UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray
from ..distributions.covariances import MAX_ASYMMETRY, scaling_exponents

__all__ = ["GaussianGame", "average_power_capacity", "gaussian_game", "gaussian_information"]

# bound: tested by enclosures/test_gaussian_game - absolute error of subnormal results
_SUBNORMAL = 5e-323
# bound: tested by enclosures/test_gaussian_game - relative error of the closed form for one noise level
_AVERAGE_POWER_ERROR = 2e-15
# bound: tested by enclosures/test_gaussian_game - relative error of the sum over axes
_DIAGONAL_ERROR = 2e-15
# bound: none - relative width of the proved bounds above which exact arithmetic takes their place
_WIDE = 1e-10
# bound: none - eigenvalues below it, times the dimension, are taken for 0: the rank of the input
_RANK_TOLERANCE = 2.0**-48
_MAX_SHIFT = 5000  # exponents of two beyond it overflow or underflow in any product with a double
_EXACT_DIMENSION = 16  # largest dimension in which exact determinants, of cost d^3 long multiplications, are taken


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

    **Accuracy**: the bounds hold the exact value; relative width 2e-15 for diagonal matrices of any scale, and about
    d^2 2^-52 times the condition number of the scaled K_Y otherwise; where that is above 1e-10 and d is at most 16, the
    determinants are taken in whole-number arithmetic instead (tests/enclosures/test_gaussian_game.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 3, eq. (19).

    Examples
    --------
    >>> from fastpriv import gaussian_information
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
    exposed, y = _noiseless_coordinates(x, y)
    remainder = np.flatnonzero(~exposed & ~diagonal_pairs)
    if remainder.size:
        rows, regular = _congruence(x[remainder], y[remainder])
        wide, singular = _wide_and_singular(x[remainder], rows)
        for j in np.flatnonzero(~regular | (wide & singular)):
            rows[:, j] = _information_of_ranges(x[remainder[j]], y[remainder[j]])
            kind = "heuristic"
        if dimension <= _EXACT_DIMENSION:
            for j in np.flatnonzero(regular & wide & ~singular):
                rows[:, j] = _by_exact_determinants(x[remainder[j]], y[remainder[j]], rows[:, j])
        numbers[:, remainder] = rows
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
    >>> from fastpriv import average_power_capacity
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
        per = np.where(ratio < 1e-140, (ratio * np.sqrt(d)) * ratio / np.sqrt(d), d * np.log1p(ratio * ratio / d))
        logs = d * (2 * (np.log(a) - np.log(s)) - np.log(d))
    value = 0.5 * np.where(ratio > 1e140, logs, per)
    lower, upper = _nonnegative_bounds(value, _AVERAGE_POWER_ERROR * value, np.asarray(a == 0))
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="closed form").to(unit)


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
    >>> from fastpriv import gaussian_game
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
    >>> from fastpriv import gaussian_game
    >>> game = gaussian_game(4, 4.0, 4.0, unit="bits")
    >>> game.value.value, game.signal, game.noise
    (2.0, 1.0, 1.0)
    """
    validate.choice("unit", unit, ("nats", "bits"))
    d = validate.count("dimension", dimension, 1, 2**53)
    p = validate.scalar("signal_power", signal_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    n = validate.scalar("noise_power", noise_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    value = 0.5 * d * float(_log1p_ratio(np.asarray(p), np.asarray(n)))
    lower, upper = _nonnegative_bounds(np.asarray(value), _AVERAGE_POWER_ERROR * value, False)
    estimate = Estimate(value, lower, upper, kind="exact", unit="nats", method="saddle point in closed form")
    return GaussianGame(estimate.to(unit), p / d, n / d)


def _log1p_ratio(x: FloatArray, y: FloatArray) -> FloatArray:
    """log(1 + x/y) for non-negative numbers of any size, 0 where x = 0 and infinity where y = 0 < x."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        ratio = x / y
        difference = np.log(x) - np.log(y)
        return np.where(x == 0, 0.0, np.where(np.isposinf(ratio), difference, np.log1p(ratio)))


def _nonnegative_bounds(value: FloatArray, error: Any, zero: Any) -> tuple[FloatArray, FloatArray]:
    """value -+ error, rounded outward and at least 0; an exact zero or infinity has no error."""
    with np.errstate(invalid="ignore"):
        lower = np.maximum(np.nextafter(value - error, -np.inf) - _SUBNORMAL, 0.0)
        upper = np.nextafter(value + error, np.inf) + _SUBNORMAL
    lower = np.where(np.isposinf(value), value, lower)
    return np.where(zero, 0.0, lower), np.where(zero, 0.0, np.where(np.isposinf(value), value, upper))


def _diagonal_information(x: FloatArray, y: FloatArray) -> FloatArray:
    """Rows value, lower, upper for stacks of diagonals."""
    terms = _log1p_ratio(x, y)
    value = np.array([0.5 * (math.fsum(row) if np.isfinite(row).all() else math.inf) for row in terms])
    error = _DIAGONAL_ERROR * value + x.shape[-1] * _SUBNORMAL
    return np.stack([value, *_nonnegative_bounds(value, error, ~x.any(axis=1))])


def _noiseless_coordinates(x: FloatArray, y: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Which pairs have a coordinate with signal and no noise; coordinates with neither get noise 1."""
    i = np.arange(x.shape[-1])
    noiseless = y[:, i, i] == 0
    exposed = (noiseless & (x[:, i, i] > 0)).any(axis=1)
    if noiseless.any():
        y = y.copy()
        y[:, i, i] = np.where(noiseless, 1.0, y[:, i, i])
    return exposed, y


def _in_common_units(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, Any, Any]:
    """K_Y with a diagonal near 1, and K_X in the same coordinates over 4^shift, so that its largest entry is near 1."""
    i = np.arange(x.shape[-1])
    rows, sizes = scaling_exponents(y[..., i, i]), scaling_exponents(x[..., i, i])
    shift = np.where(x[..., i, i] > 0, sizes - rows, -_MAX_SHIFT).max(axis=-1)
    shift = np.where(shift == -_MAX_SHIFT, 0, shift)
    return _scaled(x, rows, shift), _scaled(y, rows), rows, shift


def _congruence(x: FloatArray, y: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Rows value, lower, upper over a stack, valid where K_Y is regular, and where it is."""
    d = x.shape[-1]
    x, y, _, shift = _in_common_units(x, y)
    spectrum, vectors = np.linalg.eigh(y)
    regular = spectrum[:, 0] > d * _RANK_TOLERANCE * spectrum[:, -1]
    spectrum = np.where(regular[:, None], spectrum, 1.0)
    g = vectors / np.sqrt(spectrum)[:, None, :]
    g = g @ np.linalg.eigh(_quadratic(g, x))[1]
    gamma = 1.01 * (2 * d + 4) * UNIT_ROUNDOFF
    p, q = _quadratic(g, y), _quadratic(g, x)
    slack_p, slack_q = (gamma * _quadratic(np.abs(g), np.abs(k)) + 1e-300 for k in (y, x))
    i = np.arange(d)
    p[:, i, i] -= 1.0
    e = 1.01 * (_frobenius(p) + _frobenius(slack_p))
    diagonal = np.maximum(q[:, i, i], 0.0)
    q[:, i, i] -= diagonal
    f = np.abs(q) + slack_q
    logs = _rescaled_logs(diagonal, shift)[1]
    scaled_one = np.ldexp(1.0, np.clip(-2 * shift, -1060, 1000).astype(np.int32))[:, None]  # 1 in the units of q
    weight = 1 / np.sqrt(scaled_one + diagonal)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        m = 1.01 * _frobenius(f * weight[:, :, None] * weight[:, None, :])
        share = (diagonal / (scaled_one + diagonal)).sum(axis=1)
        value = 0.5 * logs.sum(axis=1)
        error = 0.5 * 1.01 * (math.sqrt(d) * m / (1 - m) + e / (1 - e) * (share + d * m))
        error = np.where((m < 0.5) & (e < 0.5), error, np.inf)
        size = _frobenius(f)[:, None]
        high = 0.5 * _rescaled_logs(1.01 * (diagonal + size) / (1 - e[:, None]), shift)[1].sum(axis=1)
        least = diagonal - 1.01 * size
        low = 0.5 * _rescaled_logs(np.maximum(least, 0.0) / (1 + e[:, None]), shift)[1].sum(axis=1)
        low = np.where((least >= 0).all(axis=1), low, 0.0)  # K_X itself may be indefinite by a rounding
        high, low = np.where(e < 0.5, high, np.inf), np.where(e < 0.5, low, 0.0)
    rounding = (d + 12) * 2 * UNIT_ROUNDOFF * value + d * _SUBNORMAL
    zero = ~x.any(axis=(1, 2))
    least, most = _nonnegative_bounds(value, error + rounding, zero)
    most = np.where(zero, 0.0, np.minimum(most, np.maximum(high * (1 + d * 1e-15), value + rounding)))
    least = np.maximum(least, np.minimum(low * (1 - d * 1e-15), np.maximum(value - rounding, 0.0)))
    return np.stack([value, least, most]), regular


def _rescaled_logs(diagonal: FloatArray, shift: Any) -> tuple[FloatArray, FloatArray]:
    """The eigenvalues 4^shift diagonal, which may overflow, and log(1 + them)."""
    power = 2 * np.asarray(shift)[:, None]
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        ratios = np.ldexp(diagonal, np.clip(power, -_MAX_SHIFT, _MAX_SHIFT).astype(np.int32))
        logs = np.where(np.isposinf(ratios), np.log(diagonal) + power * LOG_2, np.log1p(ratios))
    return ratios, logs


def _wide_and_singular(x: FloatArray, rows: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Where the proved bounds are wide, and where K_X is singular to rounding, so that rounding counts as signal."""
    with np.errstate(invalid="ignore"):
        wide = np.asarray(~(rows[2] - rows[1] <= _WIDE * rows[0]))
    if not wide.any():
        return wide, wide
    i = np.arange(x.shape[-1])
    spectrum = np.linalg.eigvalsh(_scaled(x, scaling_exponents(x[:, i, i])))
    return wide, np.asarray(spectrum[:, 0] <= x.shape[-1] * _RANK_TOLERANCE * spectrum[:, -1])


def _by_exact_determinants(x: FloatArray, y: FloatArray, row: FloatArray) -> FloatArray:
    """Value and bounds from exact determinants; the given row where these are not positive."""
    value = _half_log_ratio(x, y)
    if value is None or value <= 0:
        return row
    return np.stack([np.asarray(value), *_nonnegative_bounds(np.asarray(value), 8 * UNIT_ROUNDOFF * value, False)])


def _information_of_ranges(x: FloatArray, y: FloatArray) -> tuple[float, float, float]:
    """Value and bounds after restricting both matrices to their numerical ranges, by singular values."""
    d = x.shape[-1]
    i, tolerance = np.arange(d), d * _RANK_TOLERANCE
    signal_exponents = scaling_exponents(x[i, i])
    signal, noise, rows, shift = _in_common_units(x, y)
    spectrum, vectors = np.linalg.eigh(noise)
    selected = spectrum > tolerance * spectrum[-1]
    least = float(spectrum[selected][0])
    null = vectors[:, ~selected]
    angle = tolerance * float(spectrum[-1]) / least
    if np.linalg.norm(null.T @ signal @ null, 2) > (tolerance + angle * angle) * np.linalg.norm(signal, 2):
        return np.inf, np.inf, np.inf
    size, axes = np.linalg.eigh(_scaled(x, signal_exponents))
    used = size > tolerance * size[-1]
    factor = axes[:, used] * np.sqrt(size[used])
    power = np.clip(signal_exponents - rows - shift, -_MAX_SHIFT, _MAX_SHIFT).astype(np.int32)
    factor = np.ldexp(factor, power[:, None])
    singular = np.linalg.svd((vectors[:, selected] / np.sqrt(spectrum[selected])).T @ factor, compute_uv=False)
    ratios, logs = _rescaled_logs(np.square(singular)[None, :], np.array([shift]))
    value = 0.5 * float(logs.sum())
    change = min(0.5, tolerance * (float(spectrum[-1]) / least + float(size[-1] / size[used][0])))
    with np.errstate(invalid="ignore"):
        share = np.where(np.isposinf(ratios), 1.0, ratios / (1 + ratios)).sum()
    error = change * float(share) + (d + 12) * 2 * UNIT_ROUNDOFF * value + _SUBNORMAL
    return value, max(0.0, value - error), value + error


def _quadratic(g: FloatArray, k: FloatArray) -> FloatArray:
    return np.asarray(g.swapaxes(-1, -2) @ k @ g)


def _frobenius(k: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.square(k).sum(axis=(-2, -1))))


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
    )  # fmt: skip
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


def _scaled(k: FloatArray, rows: IntArray, shift: Any = 0) -> FloatArray:
    """K_ij 2^(-rows_i - rows_j - 2 shift), exact but for underflow."""
    power = -(rows[..., :, None] + rows[..., None, :] + 2 * np.asarray(shift)[..., None, None])
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


def _half_log_ratio(x: FloatArray, y: FloatArray) -> float | None:
    """1/2 log det(X + Y) / det Y by exact determinants; None when Y or X + Y is not positive definite as given."""
    d = len(x)
    numbers, _ = scaled_integers(np.concatenate([x, y]))
    rows = [numbers[i * d : (i + 1) * d] for i in range(2 * d)]
    large = [
        [a + b for a, b in zip(first, second, strict=True)] for first, second in zip(rows[:d], rows[d:], strict=True)
    ]
    below, above = integer_determinant(rows[d:]), integer_determinant(large)
    if below is None or above is None:
        return None
    excess = above - below
    if abs(excess) < below:
        return 0.5 * math.log1p(excess / below)  # quotients of whole numbers are rounded once
    shift = above.bit_length() - below.bit_length()
    return 0.5 * (shift * LOG_2 + math.log(above / (below << shift)))
