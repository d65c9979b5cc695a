"""The Laplace mechanism: value + Laplace noise.

Notation: b the scale of the noise, density e^(-|z|/b) / (2 b); s the l1 sensitivity, the largest distance between the
values of two neighbouring secrets. Between two neighbours at that distance the privacy loss is at most a = s / b, and

    delta(epsilon) = 1 - e^((epsilon - a) / 2) for 0 <= epsilon <= a, and 0 beyond.

Source: Balle, Barthe and Gaboardi 2018, theorem 3.
"""

# bounds: proved - rounding of a difference

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.estimate import Estimate, NumberLike, with_negative_levels
from ..base.monotone import monotone
from ..base.numerics import LARGEST_DOUBLE, UNIT_ROUNDOFF, FloatArray, doubles_around, next_above, next_below
from ..base.values import ValueObject

# bound: proved - expm1 has 1.36 ulps and log1p 2.51 (tools/proofs), at most two units each; one of the argument, one of
#    a product
_RELATIVE_ERROR = 7 * UNIT_ROUNDOFF
# of the closed form, for ``method``
_SOURCE = "(Balle, Barthe and Gaboardi 2018, theorem 3)"


class LaplaceMechanism(ValueObject):
    """Adds Laplace noise of scale ``scale`` to a number of sensitivity ``sensitivity``.

    Parameters
    ----------
    scale : float
        Scale of the noise, positive and finite; its standard deviation is sqrt(2) times that.
    sensitivity : float, default 1
        Largest distance between the numbers of two neighbouring secrets, in the same unit, at least 0 and finite.

    Raises
    ------
    DomainError
        For a scale or a sensitivity out of range.

    Notes
    -----
    ``compose`` takes it as a pair, whose two orders have the same curve.

    Source: Dwork, McSherry, Nissim and Smith 2006; Balle, Barthe and Gaboardi 2018.

    Examples
    --------
    >>> from fastpriv import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(scale=2.0, sensitivity=1.0)
    >>> print(f"{mechanism.delta([0.0, 0.25]):.4f}")
    [0.2212, 0.1175], lower=[0.2211, 0.1175], upper=[0.2212, 0.1176]
    >>> mechanism.epsilon(0.0).upper
    0.5
    """

    __slots__ = _fields = ("scale", "sensitivity")

    scale: float
    sensitivity: float

    def __init__(self, scale: ArrayLike, sensitivity: ArrayLike = 1.0) -> None:
        width = validate.scalar("scale", scale, "positive and finite", lambda x: (x > 0) & (x < np.inf))
        at_least_0 = "at least 0 and finite"
        span = validate.scalar("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))
        self._set(scale=width, sensitivity=span)

    @monotone(falling="epsilon")
    def delta(self, epsilon: NumberLike) -> Estimate:
        """Smallest delta for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : array_like or Estimate
            In nats, of either sign, any shape; NaN raises ``DomainError``.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``probability``.

        Notes
        -----
        **Accuracy** 4e-16 relative beside the rounding of sensitivity / scale; against high-precision arithmetic by
        ``tests/kernels/test_laplace_mechanism.py``.

        Examples
        --------
        >>> from fastpriv import LaplaceMechanism
        >>> LaplaceMechanism(scale=1.0, sensitivity=1.0).delta(0.5).value
        0.22119921692859...
        """
        level = validate.real("epsilon", epsilon, "a number", lambda x: x == x)
        if (level < 0.0).any():
            return with_negative_levels(level, self.delta, self.delta)  # exchanging both distributions changes nothing
        low, high = self._loss_bounds()

        def curve(loss: float, outward: float) -> FloatArray:
            gap = np.minimum(level - loss, 0.0)
            return np.asarray(-special.expm1(0.5 * (gap + outward * UNIT_ROUNDOFF * gap)))

        with np.errstate(under="ignore"):
            value = np.clip(curve(self.sensitivity / self.scale, 0.0), 0.0, 1.0)
        lower = np.maximum(next_below(curve(low, -1.0) * (1 - _RELATIVE_ERROR)), 0.0)
        upper = curve(high, 1.0)
        inside = level < high  # where delta is positive, even if its double is 0
        upper = np.where(inside, np.minimum(next_above(np.maximum(upper, 0.0) * (1 + _RELATIVE_ERROR)), 1.0), 0.0)
        return _estimate(value, lower, upper, "probability")

    @monotone(falling="delta")
    def epsilon(self, delta: NumberLike) -> Estimate:
        """Smallest epsilon for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        delta : array_like or Estimate
            Between 0 and 1, any shape; others raise ``DomainError``.

        Returns
        -------
        Estimate
            Kind ``exact``, unit ``nats``: a + 2 log(1 - delta), at least 0.

        Notes
        -----
        **Accuracy** as ``delta``; ``tests/kernels/test_laplace_mechanism.py``.

        Examples
        --------
        >>> from fastpriv import LaplaceMechanism
        >>> LaplaceMechanism(scale=1.0, sensitivity=1.0).epsilon(0.1).value
        0.78927896868434...
        """
        target = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        low, high = self._loss_bounds()
        with np.errstate(divide="ignore"):
            change = 2.0 * special.log1p(-target)
        with np.errstate(invalid="ignore"):
            error = np.where(np.isfinite(change), _RELATIVE_ERROR * np.abs(change), 0.0)
        value = np.maximum(self.sensitivity / self.scale + change, 0.0)
        lower = np.maximum(next_below(low + (change - error)), 0.0)
        upper = high + (change + error)
        exact = (change == 0.0) & (low == high)
        upper = np.where(exact, high, np.where(upper > 0.0, next_above(upper), 0.0))
        return _estimate(value, np.where(exact, low, lower), upper, "nats")

    def __repr__(self) -> str:
        return f"LaplaceMechanism(scale={self.scale!r}, sensitivity={self.sensitivity!r})"

    def _loss_bounds(self) -> tuple[float, float]:
        """Bounds of a = sensitivity / scale, equal where the quotient is exact."""
        if self.sensitivity / self.scale == math.inf:
            return LARGEST_DOUBLE, math.inf
        from fractions import Fraction  # slow to load

        return doubles_around(Fraction(self.sensitivity) / Fraction(self.scale))


def _estimate(value: FloatArray, lower: FloatArray, upper: FloatArray, unit: str) -> Estimate:
    value = np.clip(value, lower, upper)
    return Estimate(value, lower, upper, kind="exact", unit=unit, method=f"closed form {_SOURCE}")  # type: ignore[arg-type]
