"""The game of a Gaussian signal against Gaussian noise of bounded average power: best responses and saddle point.

Notation: K_X, K_Y covariances of signal and noise in R^d, l_i, n_i their eigenvalues, trace K_X <= P, trace K_Y <= N,
I(K_X, K_Y) = 1/2 log det(I + K_Y^-1 K_X) (eq. 19), concave in K_X and convex in K_Y. The best response to a given
opponent, each with power P,

    sup over trace K_X <= P:  along the axes of K_Y,  l_i = (w - n_i)^+,  sum l_i = P,
    inf over trace K_Y <= P:  along the axes of K_X,  n_i (n_i + l_i) = l_i t,  n_i = 2t / (1 + sqrt(1 + 4t/l_i)),
                              sum n_i = P.

That the axes agree is Fiedler's inequality (1971): det(A + B) lies between prod(a_i + b_i) for eigenvalues in the same
order and the same for opposite orders. The rest is separable, and certified by weak duality: for f concave with
gradient g at a feasible p, f <= f(p) + P max g - g.p everywhere; with signs reversed for f convex.

With both to choose, K_X = (P/d) I and K_Y = (N/d) I are a saddle point of value d/2 log(1 + P/N). The line after (48)
writes I through the sorted eigenvalues of K_X and K_Y. That needs common eigenvectors in the same order: for diag(4, 1)
against diag(1, 3) it gives 1.1112 bit, and I is 1.3685 bit. Sorted eigenvalues give the least I over all rotations
(Fiedler 1971); the theorem itself is correct.

All of this concerns average power. Under peak power, ||X|| <= A, the capacity is at most ``average_power_capacity``.

Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 3 and appendix D.
"""

# bounds: tested by enclosures/test_gaussian_game - rounding of levels, gradients and of the duality gap; relative
#    error of the closed form

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, Information, Kind, NumberLike, Result
from ..base.monotone import monotone
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ..distributions.covariances import scaling_exponents
from .gaussian import covariance, gaussian_information, log1p_ratio, nonnegative_bounds, scaled

__all__ = [
    "GaussianGame", "NoiseFilling", "SaddlePointGaps", "WaterFilling", "gaussian_game", "noise_filling",
    "saddle_point_gaps", "water_filling",
]  # fmt: skip

_Bounded = tuple[float, float, float]  # value, lower and upper bound
_NEWTON_STEPS = 100  # for the multiplier; far more than convergence takes
# bound: proved - below this part of the noise n, the signal l leaves n (n + l) at n^2 to rounding
_NEGLIGIBLE = 2.0**-900
# bound: none - powers below the trace by more, relative, are refused
_TRACE_RTOL = 1e-12


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WaterFilling(Result):
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

    Examples
    --------
    >>> from fastpriv import water_filling
    >>> print(f"{water_filling([1.0, 3.0], 2.0):.4g}")
    WaterFilling(capacity=0.5493 [0.5493, 0.5494], signal=[2.0, 0.0], level=3.0)
    """

    capacity: Estimate
    signal: FloatArray
    level: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NoiseFilling(Result):
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

    Examples
    --------
    >>> from fastpriv import noise_filling
    >>> print(f"{noise_filling([2.0, 0.0], 1.0):.4g}")
    NoiseFilling(information=0.5493 [0.5493, 0.5494], noise=[1.0, 0.0], multiplier=1.5)
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
    eigenvalues, low, high, axes = _eigenvalues("noise", noise)
    p = validate.scalar("power", power, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))
    value, signal, level = _water_filling(eigenvalues, p)
    least, most = _water_filling(high, p)[0][1], _water_filling(low, p)[0][2]
    return WaterFilling(_enclosing(value, least, most, "water-filling by sorting"), _covariance(axes, signal), level)


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
    eigenvalues, low, high, axes = _eigenvalues("signal", signal)
    p = validate.scalar("power", power, "finite and at least 0", lambda x: (x >= 0) & (x < np.inf))
    value, noise, multiplier = _noise_filling(eigenvalues, p)
    least, most = _noise_filling(low, p)[0][1], _noise_filling(high, p)[0][2]
    estimate = _enclosing(value, least, most, "inverse filling, Newton on the multiplier")
    return NoiseFilling(estimate, _covariance(axes, noise), multiplier)


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SaddlePointGaps(Result):
    """The gain of each player by leaving a pair (K_X, K_Y); both gaps are 0 at a saddle point and nowhere else.

    Parameters
    ----------
    information : Estimate
        I(K_X, K_Y), in nats.
    signal_gap : Estimate
        sup over K_X' of I(K_X', K_Y), less I(K_X, K_Y).
    noise_gap : Estimate
        I(K_X, K_Y), less the inf over K_Y' of I(K_X, K_Y').
    best_signal : WaterFilling
        The deviation behind ``signal_gap``.
    best_noise : NoiseFilling
        The deviation behind ``noise_gap``.

    Examples
    --------
    >>> from fastpriv import saddle_point_gaps
    >>> saddle_point_gaps([1.0, 1.0], [1.0, 1.0]).best_signal.signal
    array([1., 1.])
    """

    information: Estimate
    signal_gap: Estimate
    noise_gap: Estimate
    best_signal: WaterFilling
    best_noise: NoiseFilling


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

    **Accuracy**: 2e-15 relative; ``saddle_point_gaps`` verifies the point (tests/enclosures/test_gaussian_game.py).

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
    value = 0.5 * d * float(log1p_ratio(np.asarray(p), np.asarray(n)))
    lower, upper = nonnegative_bounds(np.asarray(value), 2e-15 * value, False)
    estimate = Estimate(value, lower, upper, kind="exact", unit="nats", method="saddle point in closed form")
    return GaussianGame(estimate.to(unit), p / d, n / d)


def saddle_point_gaps(
    signal: ArrayLike, noise: ArrayLike, signal_power: float | None = None, noise_power: float | None = None
) -> SaddlePointGaps:
    """The distance of a pair (K_X, K_Y) from a saddle point: the gain of each player by its best deviation.

    Parameters
    ----------
    signal, noise : array_like
        Covariances of shape (d, d), or (d,) for diagonal ones.
    signal_power, noise_power : float, optional
        Bounds on the traces of the players' covariances; the traces of ``signal`` and ``noise`` if left out.

    Returns
    -------
    SaddlePointGaps
        Both gaps, at least 0, with bounds; both contain 0 at a saddle point.

    Raises
    ------
    DomainError
        As ``gaussian_information``, and for a trace above its power by more than rounding.
    ShapeError
        For stacks, or dimensions that differ.

    Notes
    -----
    I is concave in K_X and convex in K_Y and both sets are convex, so two zero gaps prove a saddle point, and the
    value of the game lies between ``information - noise_gap`` and ``information + signal_gap`` for any pair.

    **Accuracy**: the gaps are differences: their bounds are those of the two terms, added
    (tests/enclosures/test_gaussian_game.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, eq. (48).

    Examples
    --------
    >>> from fastpriv import saddle_point_gaps
    >>> gaps = saddle_point_gaps([2.0, 2.0], [1.0, 1.0])
    >>> gaps.signal_gap.lower, gaps.noise_gap.lower, gaps.signal_gap.upper < 1e-14
    (0.0, 0.0, True)
    >>> gaps = saddle_point_gaps([3.0, 1.0], [1.0, 1.0])
    >>> round(gaps.signal_gap.value, 6), round(gaps.noise_gap.value, 6)
    (0.05889..., 0.00920...)
    """
    x, y = covariance("signal", signal), covariance("noise", noise)
    information = gaussian_information(signal, noise)
    if information.shape or x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            f"signal and noise must be one covariance each; got shapes {x.shape} and {y.shape}. "
            "Pass shape (d, d), or (d,) for a diagonal matrix."
        )
    best_signal = water_filling(noise, _power_bound("signal_power", signal_power, x))
    best_noise = noise_filling(signal, _power_bound("noise_power", noise_power, y))
    return SaddlePointGaps(
        information, _difference(best_signal.capacity, information), _difference(information, best_noise.information),
        best_signal, best_noise,
    )  # fmt: skip


def _enclosing(value: _Bounded, least: float, most: float, method: str) -> Estimate:
    """The value for the computed eigenvalues, with bounds for all eigenvalues within theirs."""
    lower, upper = min(least, value[0]), max(most, value[0])
    return Estimate(value[0], lower, upper, kind="exact", unit="nats", method=method)


def _water_filling(n: FloatArray, power: float) -> tuple[_Bounded, FloatArray, float]:
    """Capacity with bounds, allocation and level for noise eigenvalues n."""
    signal = np.zeros_like(n)
    if power == 0 or not (n > 0).all():
        least_noise = n == n.min()
        signal[least_noise] = power / least_noise.sum()
        level = float(n.min() + signal.max())
        value = math.inf if power else 0.0
        return (value, value, value), signal, level
    order = np.argsort(n, kind="stable")
    levels = n[order]
    with np.errstate(over="ignore"):
        # Power that raises the first k levels to the next one, as a sum of differences, in which nothing cancels.
        needed = np.concatenate([[0.0], np.cumsum(np.arange(1, len(n)) * np.diff(levels))])
    used = int(np.searchsorted(needed, power, side="left"))
    below = levels[used - 1] - levels[:used]
    above = max(0.0, (power - math.fsum(below)) / used)
    signal[order[:used]] = above + below
    level = float(levels[used - 1]) + above
    value = 0.5 * math.fsum(log1p_ratio(signal, n))
    with np.errstate(under="ignore"):
        most, spent = 0.5 * float((power / (n + signal)).max()), 0.5 * math.fsum(signal / (n + signal))
    gap = max(0.0, most - spent) + 8 * UNIT_ROUNDOFF * (most + spent)
    excess = max(0.0, math.fsum(signal) - power) / power + 4 * UNIT_ROUNDOFF
    rounding = 12 * UNIT_ROUNDOFF * value
    lower, upper = _outward(value, rounding + excess * value, rounding + gap)
    return (value, lower, upper), signal, level


def _noise_filling(signal: FloatArray, power: float) -> tuple[_Bounded, FloatArray, float]:
    """Least information with bounds, allocation and multiplier for signal eigenvalues."""
    noise = np.zeros_like(signal)
    present = signal > 0
    if not present.any():
        return (0.0, 0.0, 0.0), noise, math.inf
    if power == 0:
        return (math.inf, math.inf, math.inf), noise, 0.0
    if signal.max() < _NEGLIGIBLE * power:  # n_i (n_i + l_i) is n_i^2 to rounding
        root = np.sqrt(signal)
        noise = power * (root / math.fsum(root))
        value = 0.5 * math.fsum(log1p_ratio(signal, noise)[present])
        return (value, *_outward(value, 16 * UNIT_ROUNDOFF * value, 16 * UNIT_ROUNDOFF * value)), noise, math.inf
    exponent = math.frexp(power)[1]
    with np.errstate(over="ignore", under="ignore"):
        x = np.maximum(np.ldexp(signal[present], -exponent), 5e-324)
        p = math.ldexp(power, -exponent)
    n, t = _noise_allocation(x, p)
    n *= p / math.fsum(n)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        terms = log1p_ratio(x, n)
        finite = np.isfinite(x)
        ratio = np.where(finite, x / (n + x), 1.0)
        slope_times_noise = 0.5 * ratio  # minus the derivative, times n
        slopes = slope_times_noise / n
    value = 0.5 * math.fsum(np.where(finite, terms, log1p_ratio(signal[present], np.ldexp(n, exponent))))
    total = math.fsum(slope_times_noise)
    gap = max(0.0, float(slopes.max()) * p - total) + 8 * UNIT_ROUNDOFF * (float(slopes.max()) * p + total)
    noise[present] = np.ldexp(n, exponent)
    rounding = 12 * UNIT_ROUNDOFF * value
    excess = 8 * UNIT_ROUNDOFF * total  # the powers given may exceed the bound by a rounding
    lower, upper = _outward(value, rounding + gap, rounding + excess)
    with np.errstate(over="ignore"):
        multiplier = float(np.ldexp(t, exponent))
    return (value, lower, upper), noise, multiplier


def _noise_allocation(x: FloatArray, p: float) -> tuple[FloatArray, float]:
    """The n_i of sum p and their t, by Newton's method on log sum n as a function of log t."""
    y = math.log(p / len(x))
    for _ in range(_NEWTON_STEPS):
        n, root = _noise_of_multiplier(x, math.exp(y))
        total = math.fsum(n)
        slope = math.fsum(n * 0.5 * (1 + 1 / root)) / total
        step = math.log(p / total) / slope
        y += step
        if abs(step) <= 1e-9 * max(1.0, abs(y)):
            break
    t = math.exp(y)
    return _noise_of_multiplier(x, t)[0], t


def _noise_of_multiplier(x: FloatArray, t: float) -> tuple[FloatArray, FloatArray]:
    """n_i = 2t / (1 + root) and root = sqrt(1 + 4t/x_i)."""
    with np.errstate(over="ignore", under="ignore"):
        root = np.sqrt(1 + 4 * (t / x))
        return np.where(np.isfinite(root), 2 * t / (1 + root), np.sqrt(t) * np.sqrt(x)), root


def _eigenvalues(name: str, k: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray | None]:
    """Eigenvalues with proved bounds, and axes; an eigenvalue that rounding does not separate from 0 is set to 0."""
    array = covariance(name, k)
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
    gamma = 1.01 * (2 * d + 4) * UNIT_ROUNDOFF
    size = np.abs(axes)
    e = 1.01 * float(np.linalg.norm(axes.T @ axes - np.eye(d)) + gamma * np.linalg.norm(size.T @ size))
    f = np.abs(axes.T @ k @ axes - np.diag(values)) + gamma * (size.T @ np.abs(k) @ size)
    weight = 1 / np.sqrt(np.where(values > 0, values, 1.0))
    m = 1.01 * float(np.linalg.norm(f * weight[:, None] * weight)) if (values > 0).all() else math.inf
    absolute = 1.01 * float(np.linalg.norm(f))
    low = np.maximum(np.maximum(values - absolute, values * (1 - min(m, 1.0))) / (1 + e), 0.0)
    high = np.minimum(values + absolute, values * (1 + m) if math.isfinite(m) else math.inf) / (1 - e)
    values = np.where(low > 0, values, 0.0)
    low, high = low * (1 - 4 * UNIT_ROUNDOFF), high * (1 + 4 * UNIT_ROUNDOFF)
    return *(np.ldexp(row, 2 * int(exponent)) for row in (values, low, high)), axes


def _covariance(axes: FloatArray | None, variances: FloatArray) -> FloatArray:
    """The covariance with these variances along the axes, or the variances; read-only."""
    if axes is not None:
        k = (axes * variances) @ axes.T
        variances = 0.5 * (k + k.T)
    variances.setflags(write=False)
    return variances


def _outward(value: float, below: float, above: float) -> tuple[float, float]:
    number = np.asarray(value)
    return float(nonnegative_bounds(number, below, False)[0]), float(nonnegative_bounds(number, above, False)[1])


def _power_bound(name: str, power: float | None, k: FloatArray) -> float:
    """The given bound on the trace of a covariance, by default the trace itself."""
    try:
        trace = math.fsum(np.diagonal(k) if k.ndim == 2 else k)
    except OverflowError:
        raise DomainError(
            f"{name.removesuffix('_power')} must have a trace within the range of doubles; got variances up to "
            f"{float(k.max())!r}. Divide both covariances and powers by one number: the gaps depend on ratios alone."
        ) from None
    if power is None:
        return trace
    return validate.scalar(
        name,
        power,
        f"finite and at least the trace {trace!r} of its covariance",
        lambda x: (x * (1 + _TRACE_RTOL) >= trace) & (x < np.inf),
        remedy="The pair must lie inside both constraint sets.",
    )


def _difference(first: Estimate, second: Estimate) -> Estimate:
    """first - second, where the exact first is at least the exact second; 0 where both are infinite."""
    (value, lower, upper), (second_value, second_lower, second_upper) = first.floats(), second.floats()
    if math.isinf(second_value) and math.isinf(value):
        bracket = (0.0, 0.0, 0.0 if math.isinf(second_lower) else math.inf)
    else:
        least, largest = next_below(lower - second_upper), next_above(upper - second_lower)
        bracket = (max(value - second_value, 0.0), max(least, 0.0), largest)
    kind: Kind = "exact" if first.kind == second.kind == "exact" else "heuristic"
    return Estimate(*bracket, kind=kind, unit="nats", method="best deviation")
