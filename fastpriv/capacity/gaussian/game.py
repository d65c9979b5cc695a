"""The game of theorem 3: a signal of bounded average power against noise of bounded average power.

Notation: K_X, K_Y covariances of signal and noise in R^d with trace K_X <= P and trace K_Y <= N, and
I(K_X, K_Y) = 1/2 log det(I + K_Y^-1 K_X) (eq. 19), concave in K_X and convex in K_Y. Either player's best response is
in ``filling``; with both to choose, K_X = (P/d) I and K_Y = (N/d) I are a saddle point of value d/2 log(1 + P/N).

The line after (48) writes I through the sorted eigenvalues of K_X and K_Y. That needs common eigenvectors in the same
order: for diag(4, 1) against diag(1, 3) it gives 1.1112 bit, and I is 1.3685 bit. What sorted eigenvalues give is the
least I over all rotations (Fiedler 1971); the theorem itself stands.

All of this speaks of average power. Under peak power, ||X|| <= A, the capacity is at most ``average_power_capacity``.

Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 3 and appendix D.
"""

# bounds: tested by enclosures/test_gaussian_game - relative error of the closed form

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ..._estimates import monotone
from ...errors import DomainError, ShapeError
from ...estimate import Estimate, NumberLike
from .covariances import checked
from .filling import NoiseFilling, WaterFilling, noise_filling, water_filling
from .information import average_power_capacity, bounds, gaussian_information, log1p_ratio

__all__ = [
    "GaussianGame", "NoiseFilling", "SaddlePointGaps", "WaterFilling", "average_power_capacity", "gaussian_game",
    "gaussian_information", "noise_filling", "saddle_point_gaps", "water_filling",
]  # fmt: skip

FloatArray = NDArray[np.float64]
# bound: none - powers farther apart are refused
_TRACE = 1e-12


@dataclass(frozen=True, slots=True)
class GaussianGame:
    """Value and saddle point of the game.

    Parameters
    ----------
    value : Estimate
        d/2 log(1 + P/N).
    signal, noise : float
        Variance of each coordinate at the saddle point: K_X = signal I, K_Y = noise I.
    """

    value: Estimate
    signal: float
    noise: float


@dataclass(frozen=True, slots=True)
class SaddlePointGaps:
    """What each player could gain by leaving a pair (K_X, K_Y); both gaps are 0 at a saddle point and nowhere else.

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
    """

    information: Estimate
    signal_gap: Estimate
    noise_gap: Estimate
    best_signal: WaterFilling
    best_noise: NoiseFilling


@monotone(rising="signal_power", falling="noise_power")
def gaussian_game(
    dimension: int, signal_power: NumberLike, noise_power: NumberLike, *, unit: Literal["nats", "bits"] = "nats"
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
    _validate.choice("unit", unit, ("nats", "bits"))
    d = _validate.count("dimension", dimension, 1, 2**53)
    p = _validate.scalar("signal_power", signal_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    n = _validate.scalar("noise_power", noise_power, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    value = 0.5 * d * float(log1p_ratio(np.asarray(p), np.asarray(n)))
    lower, upper = bounds(np.asarray(value), 2e-15 * value, False)
    estimate = Estimate(value, lower, upper, kind="exact", unit="nats", method="saddle point in closed form")
    return GaussianGame(estimate.to(unit), p / d, n / d)


def saddle_point_gaps(
    signal: ArrayLike, noise: ArrayLike, signal_power: float | None = None, noise_power: float | None = None
) -> SaddlePointGaps:
    """How far a pair (K_X, K_Y) is from a saddle point: what each player gains by its best deviation.

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
    x, y = checked("signal", signal), checked("noise", noise)
    information = gaussian_information(signal, noise)
    if information.shape or x.ndim == 0 or y.ndim == 0:
        raise ShapeError(
            f"signal and noise must be one covariance each; got shapes {x.shape} and {y.shape}. "
            "Pass shape (d, d), or (d,) for a diagonal matrix."
        )
    totals = (_allowed(f"{name}_power", p, k) for name, p, k in (
        ("signal", signal_power, x), ("noise", noise_power, y)))  # fmt: skip
    best_signal, best_noise = water_filling(noise, next(totals)), noise_filling(signal, next(totals))
    return SaddlePointGaps(
        information, _difference(best_signal.capacity, information), _difference(information, best_noise.information),
        best_signal, best_noise,
    )  # fmt: skip


def _allowed(name: str, power: float | None, k: FloatArray) -> float:
    """The bound on a trace: given, or the trace itself."""
    try:
        trace = math.fsum(np.diagonal(k) if k.ndim == 2 else k)
    except OverflowError:
        raise DomainError(
            f"{name.removesuffix('_power')} must have a trace within the range of doubles; got variances up to "
            f"{float(k.max())!r}. Divide both covariances and powers by one number: the gaps depend on ratios alone."
        ) from None
    if power is None:
        return trace
    return _validate.scalar(
        name, power, f"finite and at least the trace {trace!r} of its covariance",
        lambda x: (x * (1 + _TRACE) >= trace) & (x < np.inf), remedy="The pair must lie inside both constraint sets.",
    )  # fmt: skip


def _difference(first: Estimate, second: Estimate) -> Estimate:
    """first - second for first >= second in truth; 0 where both are infinite."""
    if math.isinf(second.value) and math.isinf(first.value):
        numbers = (0.0, 0.0, 0.0 if math.isinf(second.lower) else math.inf)
    else:
        value = first.value - second.value
        lower, upper = first.lower - second.upper, np.nextafter(first.upper - second.lower, np.inf)
        numbers = (max(value, 0.0), max(float(np.nextafter(lower, -np.inf)), 0.0), float(upper))
    kind = "exact" if first.kind == second.kind == "exact" else "heuristic"
    return Estimate(*numbers, kind=kind, unit="nats", method="best deviation")  # type: ignore[arg-type]
