"""Best responses with bounded average power: the signal against given noise, and the noise against a given signal.

Notation: K_X, K_Y covariances of signal and noise in R^d, l_i, n_i their eigenvalues, P the power of the player who
moves, I(K_X, K_Y) = 1/2 log det(I + K_Y^-1 K_X), concave in K_X and convex in K_Y.

    sup over trace K_X <= P:  along the axes of K_Y,  l_i = (w - n_i)^+,  sum l_i = P.
    inf over trace K_Y <= P:  along the axes of K_X,  n_i (n_i + l_i) = l_i t,  n_i = 2t / (1 + sqrt(1 + 4t/l_i)),
                              sum n_i = P.

That the axes agree is Fiedler's inequality (1971): det(A + B) lies between prod(a_i + b_i) for eigenvalues in the same
order and the same for opposite orders. What is left is separable, and certified by weak duality: for f concave with
gradient g at a feasible p, f <= f(p) + P max g - g.p everywhere; the same with signs turned for f convex.
"""

# bounds: tested by enclosures/test_gaussian_game - rounding of levels, gradients and of the duality gap

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ..._estimates import monotone
from ...errors import ShapeError
from ...estimate import Estimate, NumberLike
from .covariances import checked, scaled, scaling_exponents
from .information import bounds, log1p_ratio

__all__ = ["NoiseFilling", "WaterFilling", "noise_filling", "water_filling"]

FloatArray = NDArray[np.float64]
Numbers = tuple[float, float, float]
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_STEPS = 100
# bound: proved - below it n (n + l) is n^2 to rounding
_FAR = 2.0**-900


@dataclass(frozen=True, slots=True)
class WaterFilling:
    """The best signal against given noise.

    Parameters
    ----------
    capacity : Estimate
        sup I over trace K_X <= power, in nats; infinite where power meets a noiseless direction.
    signal : ndarray
        The allocation, one entry an eigenvalue, or the covariance K_X when the noise was a matrix. Where the capacity
        is infinite, all power in the noiseless directions.
    level : float
        The water level: noise plus signal in every direction that is used.
    """

    capacity: Estimate
    signal: FloatArray
    level: float


@dataclass(frozen=True, slots=True)
class NoiseFilling:
    """The best noise against a given signal.

    Parameters
    ----------
    information : Estimate
        inf I over trace K_Y <= power, in nats.
    noise : ndarray
        The allocation, one entry an eigenvalue, or the covariance K_Y when the signal was a matrix. Directions without
        signal get none.
    multiplier : float
        t with n (n + l) = l t in every direction; 0 where there is no power, infinite where there is no signal.
    """

    information: Estimate
    noise: FloatArray
    multiplier: float


@monotone(rising="power")
def water_filling(noise: ArrayLike, power: NumberLike) -> WaterFilling:
    """The signal of largest information against given Gaussian noise: sup of I over trace K_X <= power.

    Parameters
    ----------
    noise : array_like
        Covariance K_Y of shape (d, d), or its eigenvalues, shape (d,), at least 0.
    power : float or Estimate
        Bound on the trace of K_X, at least 0 and finite.

    Returns
    -------
    WaterFilling
        The capacity with proved bounds (kind ``exact``), the signal, and the water level.

    Raises
    ------
    DomainError
        For NaN, infinite or negative entries, or a matrix that is not positive semidefinite.
    ShapeError
        For a stack of matrices, or a power that is not one number.

    Notes
    -----
    Finite: eigenvalues are sorted, the number of used directions is where the sums of differences pass the power, and
    allocations come from differences of eigenvalues, so that nothing is lost for small power.

    **Accuracy**: the duality gap is part of the bounds; relative width below d 2e-15 for eigenvalues. For a matrix the
    error of its eigenvalues is added (tests/enclosures/test_gaussian_game.py).

    Source: the left side of eq. (48); T. M. Cover and J. A. Thomas, Elements of information theory, section 9.4.

    Examples
    --------
    >>> from fastpriv import water_filling
    >>> best = water_filling([1.0, 3.0, 10.0], 4.0)
    >>> best.signal, best.level, round(best.capacity.value, 12)
    (array([3., 1., 0.]), 4.0, 0.836988216786)
    """
    eigenvalues, low, high, axes = _spectrum("noise", noise)
    p = _power(power)
    value, signal, level = _filled(eigenvalues, p)
    if axes is not None:
        signal = _symmetric((axes * signal) @ axes.T)
    most = _filled(low, p)[0][2]
    least = _filled(high, p)[0][1]
    method = "water-filling by sorting"
    estimate = Estimate(value[0], min(least, value[0]), max(most, value[0]), kind="exact", unit="nats", method=method)
    return WaterFilling(estimate, _frozen(signal), level)


@monotone(falling="power")
def noise_filling(signal: ArrayLike, power: NumberLike) -> NoiseFilling:
    """The noise of least information against a given Gaussian signal: inf of I over trace K_Y <= power.

    Parameters
    ----------
    signal : array_like
        Covariance K_X of shape (d, d), or its eigenvalues, shape (d,), at least 0.
    power : float or Estimate
        Bound on the trace of K_Y, at least 0 and finite.

    Returns
    -------
    NoiseFilling
        The information with proved bounds (kind ``exact``), the noise, and the multiplier.

    Raises
    ------
    DomainError
        For NaN, infinite or negative entries, or a matrix that is not positive semidefinite.
    ShapeError
        For a stack of matrices, or a power that is not one number.

    Notes
    -----
    The multiplier t solves sum n_i(t) = power, an increasing equation whose slope in logarithms lies in [1/2, 1], by
    Newton's method there. Noise follows the signal: n_i close to t where t is small beside l_i, to sqrt(t l_i) where it
    is large.

    **Accuracy**: the duality gap is part of the bounds; relative width below d 4e-15 for eigenvalues. For a matrix the
    error of its eigenvalues is added (tests/enclosures/test_gaussian_game.py).

    Source: the right side of eq. (48) with trace constraints.

    Examples
    --------
    >>> from fastpriv import noise_filling
    >>> best = noise_filling([4.0, 1.0, 0.0], 3.0)
    >>> best.noise.round(6), round(best.information.value, 9)
    (array([1.805665, 1.194335, 0.      ]), 0.888097357)
    """
    eigenvalues, low, high, axes = _spectrum("signal", signal)
    p = _power(power)
    value, noise, multiplier = _drowned(eigenvalues, p)
    if axes is not None:
        noise = _symmetric((axes * noise) @ axes.T)
    least = _drowned(low, p)[0][1]
    most = _drowned(high, p)[0][2]
    method = "inverse filling, Newton on the multiplier"
    estimate = Estimate(value[0], min(least, value[0]), max(most, value[0]), kind="exact", unit="nats", method=method)
    return NoiseFilling(estimate, _frozen(noise), multiplier)


def _filled(n: FloatArray, power: float) -> tuple[Numbers, FloatArray, float]:
    """Capacity with bounds, allocation and level for noise eigenvalues n."""
    signal = np.zeros_like(n)
    if power == 0 or not (n > 0).all():
        quiet = n == n.min()
        signal[quiet] = power / quiet.sum()
        level = float(n.min() + signal.max())
        value = math.inf if power else 0.0
        return (value, value, value), signal, level
    order = np.argsort(n, kind="stable")
    steps = n[order]
    with np.errstate(over="ignore"):
        # power that lifts the first k levels to the next: sums of steps, each taken from a difference
        need = np.concatenate([[0.0], np.cumsum(np.arange(1, len(n)) * np.diff(steps))])
    used = int(np.searchsorted(need, power, side="left"))
    below = steps[used - 1] - steps[:used]
    above = max(0.0, (power - math.fsum(below)) / used)
    signal[order[:used]] = above + below
    level = float(steps[used - 1]) + above
    value = 0.5 * math.fsum(log1p_ratio(signal, n))
    with np.errstate(under="ignore"):
        most, spent = 0.5 * float((power / (n + signal)).max()), 0.5 * math.fsum(signal / (n + signal))
    gap = max(0.0, most - spent) + 8 * _UNIT * (most + spent)
    excess = max(0.0, math.fsum(signal) - power) / power + 4 * _UNIT
    rounding = 12 * _UNIT * value
    lower, upper = _outward(value, rounding + excess * value, rounding + gap)
    return (value, lower, upper), signal, level


def _drowned(signal: FloatArray, power: float) -> tuple[Numbers, FloatArray, float]:
    """Least information with bounds, allocation and multiplier for signal eigenvalues."""
    noise = np.zeros_like(signal)
    loud = signal > 0
    if not loud.any():
        return (0.0, 0.0, 0.0), noise, math.inf
    if power == 0:
        return (math.inf, math.inf, math.inf), noise, 0.0
    if signal.max() < _FAR * power:  # n_i (n_i + l_i) is n_i^2 to rounding
        root = np.sqrt(signal)
        noise = power * (root / math.fsum(root))
        value = 0.5 * math.fsum(log1p_ratio(signal, noise)[loud])
        return (value, *_outward(value, 16 * _UNIT * value, 16 * _UNIT * value)), noise, math.inf
    exponent = math.frexp(power)[1]
    with np.errstate(over="ignore", under="ignore"):
        x = np.maximum(np.ldexp(signal[loud], -exponent), 5e-324)
        p = math.ldexp(power, -exponent)
    n, t = _allocation(x, p)
    n *= p / math.fsum(n)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        terms = log1p_ratio(x, n)
        finite = np.isfinite(x)
        ratio = np.where(finite, x / (n + x), 1.0)
        spent = 0.5 * ratio  # minus the slope, times n
        slopes = spent / n
    value = 0.5 * math.fsum(np.where(finite, terms, log1p_ratio(signal[loud], np.ldexp(n, exponent))))
    total = math.fsum(spent)
    gap = max(0.0, float(slopes.max()) * p - total) + 8 * _UNIT * (float(slopes.max()) * p + total)
    noise[loud] = np.ldexp(n, exponent)
    rounding = 12 * _UNIT * value
    excess = 8 * _UNIT * total  # the powers given may exceed the bound by a rounding
    lower, upper = _outward(value, rounding + gap, rounding + excess)
    with np.errstate(over="ignore"):
        multiplier = float(np.ldexp(t, exponent))
    return (value, lower, upper), noise, multiplier


def _allocation(x: FloatArray, p: float) -> tuple[FloatArray, float]:
    """n_i = 2t / (1 + sqrt(1 + 4t/x_i)) with sum p, by Newton's method on log sum n as a function of log t."""
    y = math.log(p / len(x))
    for _ in range(_STEPS):
        t = math.exp(y)
        with np.errstate(over="ignore", under="ignore"):
            root = np.sqrt(1 + 4 * (t / x))
            n = np.where(np.isfinite(root), 2 * t / (1 + root), np.sqrt(t) * np.sqrt(x))
        total = math.fsum(n)
        slope = math.fsum(n * 0.5 * (1 + 1 / root)) / total
        step = math.log(p / total) / slope
        y += step
        if abs(step) <= 1e-9 * max(1.0, abs(y)):
            break
    t = math.exp(y)
    with np.errstate(over="ignore", under="ignore"):
        root = np.sqrt(1 + 4 * (t / x))
        return np.where(np.isfinite(root), 2 * t / (1 + root), np.sqrt(t) * np.sqrt(x)), t


def _spectrum(name: str, k: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """Eigenvalues with proved bounds, and axes; an eigenvalue not told from 0 is 0."""
    array = checked(name, k)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ShapeError(
            f"{name} must be one covariance matrix or its eigenvalues; got shape {array.shape}. "
            "Pass shape (d, d) or (d,), d at least 1."
        )
    if array.ndim == 1:
        return array, array, array, None
    d = len(array)
    exponent = scaling_exponents(np.asarray(np.max(np.diagonal(array))))
    k = scaled(array, np.full(d, exponent))
    values, axes = np.linalg.eigh(k)
    values = np.maximum(values, 0.0)
    gamma = 1.01 * (2 * d + 4) * _UNIT
    turned = np.abs(axes)
    e = 1.01 * float(np.linalg.norm(axes.T @ axes - np.eye(d)) + gamma * np.linalg.norm(turned.T @ turned))
    f = np.abs(axes.T @ k @ axes - np.diag(values)) + gamma * (turned.T @ np.abs(k) @ turned)
    weight = 1 / np.sqrt(np.where(values > 0, values, 1.0))
    m = 1.01 * float(np.linalg.norm(f * weight[:, None] * weight)) if (values > 0).all() else math.inf
    absolute = 1.01 * float(np.linalg.norm(f))
    low = np.maximum(np.maximum(values - absolute, values * (1 - min(m, 1.0))) / (1 + e), 0.0)
    high = np.minimum(values + absolute, values * (1 + m) if math.isfinite(m) else math.inf) / (1 - e)
    values = np.where(low > 0, values, 0.0)
    rows = (np.ldexp(row, 2 * int(exponent)) for row in (values, low * (1 - 4 * _UNIT), high * (1 + 4 * _UNIT)))
    return *rows, axes


def _power(power: NumberLike) -> float:
    return _validate.scalar("power", power, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))


def _symmetric(k: FloatArray) -> FloatArray:
    return 0.5 * (k + k.T)


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array


def _outward(value: float, below: float, above: float) -> tuple[float, float]:
    number = np.asarray(value)
    return float(bounds(number, below, False)[0]), float(bounds(number, above, False)[1])
