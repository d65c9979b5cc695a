"""Noise on the integers 0 .. n - 1.

Notation: a = e^-epsilon; the noise is z with probability (1 - a) / (1 + a) a^|z|. What lies beyond an end is counted
with that end: all releases beyond it have one likelihood ratio, so nothing about the secret is lost.
"""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - rounding of exponents and of
#    closed extremes

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray
from ..base import AnyChannel
from ..profiles import Extremes, RowPair
from .responses import checked_epsilon

__all__ = ["DiscreteLaplace", "GeometricMechanism", "geometric_smoothing"]

_LONG = 2**22  # releases up to which rows are handed out
_FAR = 2**62


class GeometricMechanism(AnyChannel):
    """Two-sided geometric noise on 0 .. n - 1, cut off at the ends: the truncated geometric mechanism.

    Parameters
    ----------
    n : int
        Number of secrets, which are the releases too.
    epsilon : float
        Log likelihood ratio of neighbouring integers, in nats: the level of DP for counts. Over all secrets it is
        (n - 1) epsilon.

    Notes
    -----
    Releases below 0 become 0, those above n - 1 become n - 1.

    **Accuracy** entries within 1e-15 of the exponent; ``tests/enclosures/test_channels.py``.

    Source: Ghosh, Roughgarden and Sundararajan 2012 (range-restricted geometric mechanism).

    Examples
    --------
    >>> from fastpriv import GeometricMechanism
    >>> GeometricMechanism(3, 1.0).matrix()
    array([[0.73105858, 0.1700034 , 0.09893802],
           [0.26894142, 0.46211716, 0.26894142],
           [0.09893802, 0.1700034 , 0.73105858]])
    >>> GeometricMechanism(10**9 + 1, 0.5).extremes().ldp_epsilon
    500000000.0
    """

    __slots__ = _fields = ("n", "epsilon")

    n: int
    epsilon: float

    def __init__(self, n: int, epsilon: float) -> None:
        self._set(n=_validate.count("n", n, maximum=_FAR), epsilon=checked_epsilon(epsilon))

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self.n

    @property
    def outputs(self) -> int:
        """Number of releases; those beyond an end count with it."""
        return self.n

    def _at(self, distance: NDArray[np.int64], end: Any) -> FloatArray:
        """Log likelihoods at these distances, at an end or between."""
        log_end = -math.log1p(math.exp(-self.epsilon))
        log_one = math.log(-math.expm1(-self.epsilon)) if self.epsilon > 0 else -math.inf
        with np.errstate(invalid="ignore"):
            away = np.where(distance == 0, 0.0, -self.epsilon * distance)
        return np.asarray(away + log_end + np.where(end, 0.0, log_one))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        if self.n == 1:
            return np.zeros((stop - start, 1))
        w = np.arange(self.n)
        return self._at(np.abs(w - np.arange(start, stop)[:, None]), (w == 0) | (w == self.n - 1))

    def column(self, output: Any) -> FloatArray:
        """Log likelihoods of one release, shape (n,).

        Parameters
        ----------
        output : int
            The release.
        """
        place = self._output(output)
        _validate.memory("column", 32 * self.n, "Use fewer secrets.")
        if self.n == 1:
            return np.zeros(1)
        return self._at(np.abs(np.arange(self.n) - place), place in (0, self.n - 1))

    def _noise(self, shape: tuple[int, ...], generator: np.random.Generator) -> NDArray[np.int64]:
        success = -math.expm1(-self.epsilon)
        return np.asarray(generator.geometric(success, shape) - generator.geometric(success, shape))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        if self.epsilon == 0:
            return generator.integers(0, 2, secrets.shape) * (self.n - 1)
        noise = np.clip(self._noise(secrets.shape, generator), -self.n, self.n)
        return np.clip(secrets + noise, 0, self.n - 1)

    def _extremes(self, prior: FloatArray | None) -> Extremes | None:
        span = (self.n - 1) * self.epsilon if self.n > 1 else 0.0
        if self.n == 1 or self.epsilon == 0:
            return Extremes(0.0, 0.0, 0.0, 0.0)
        if prior is None:  # the extremes lie at the ends
            if self.epsilon == math.inf:
                return Extremes(span, span, math.log(self.n), span)
            half = 0.5 * span
            bend = _log_sinhc(0.5 * self.n * self.epsilon) - _log_sinhc(0.5 * self.epsilon)
            near = half - bend
            if self.n * self.epsilon > 80:
                near = math.log(self.n) + math.log(-math.expm1(-self.epsilon))
            return Extremes(span, span, near, half + bend, 1e-13)
        held = np.flatnonzero(prior)
        first, last = int(held[0]), int(held[-1])
        width = (last - first) * self.epsilon if last > first else 0.0
        if width == 0:
            return Extremes(span, 0.0, 0.0, 0.0)
        if self.epsilon == math.inf:
            return Extremes(span, span, -math.log(float(prior[held].min())), span)
        own = prior[first : last + 1]
        a = math.exp(-self.epsilon)
        evidence = geometric_smoothing(own, a)
        if evidence.min() < 1e-280:  # small channels are looked at cell by cell
            return super()._extremes(prior)
        place = np.arange(own.size)
        before = np.maximum.accumulate(np.where(own > 0, place, -own.size))
        after = np.minimum.accumulate(np.where(own > 0, place, 2 * own.size)[::-1])[::-1]
        logs = np.log(evidence)
        plus = float(np.max(-self.epsilon * np.minimum(place - before, after - place) - logs))
        minus = float(np.max(self.epsilon * np.maximum(place, own.size - 1 - place) + logs))
        steps = min(own.size, 1.0 / -math.expm1(-self.epsilon))
        return Extremes(span, width, max(0.0, plus), max(0.0, minus), 1e-14, 2.0**-51 * (steps + 4))

    def pairs(self) -> tuple[RowPair, ...] | None:
        """The two ends: the noise is log-concave, so the farthest secrets are the easiest to tell apart."""
        if self.n == 1:
            return (RowPair([0.0], [0.0]),)
        if self.n > _LONG:
            return None
        row = self._log_rows(0, 1)[0]
        steps = self.n - 1 - 2 * np.arange(self.n)
        with np.errstate(invalid="ignore"):
            return (RowPair(row, row[::-1], np.where(steps == 0, 0.0, self.epsilon * steps)),)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n}, {self.epsilon!r})"


class DiscreteLaplace(GeometricMechanism):
    """Discrete Laplace noise on 0 .. n - 1, with releases among all integers.

    Parameters
    ----------
    n : int
        Number of secrets.
    scale : float
        Positive and finite: noise z has probability proportional to e^(-abs(z) / scale).

    Notes
    -----
    ``sample`` and ``column`` know all integers. Releases beyond an end say as much about the secret as the end itself,
    so that rows, ``outputs`` and all quantities count them together: they are those of
    ``GeometricMechanism(n, 1 / scale)``.

    **Accuracy** as there; ``tests/enclosures/test_channels.py``.

    Source: Inusah and Kozubowski 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> from fastpriv import DiscreteLaplace
    >>> q = DiscreteLaplace(3, 2.0)
    >>> q.extremes().ldp_epsilon
    1.0
    >>> q.column(-4)
    array([-3.40682911, -3.90682911, -4.40682911])
    """

    __slots__ = ("scale",)
    _fields = ("n", "scale")

    scale: float

    def __init__(self, n: int, scale: float) -> None:
        width = _validate.scalar("scale", scale, "positive and finite", lambda s: (s > 0) & (s < np.inf))
        self._set(n=_validate.count("n", n, maximum=_FAR), epsilon=1.0 / width, scale=width)

    def column(self, output: Any) -> FloatArray:
        """Log likelihoods of one release, any integer, shape (n,).

        Parameters
        ----------
        output : int
            The release.
        """
        place = _validate.count("output", output, -_FAR, _FAR)
        _validate.memory("column", 32 * self.n, "Use fewer secrets.")
        return self._at(np.abs(np.arange(self.n) - place), False)

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        return np.asarray(secrets + np.clip(self._noise(secrets.shape, generator), -_FAR, _FAR))

    def __repr__(self) -> str:
        return f"DiscreteLaplace({self.n}, {self.scale!r})"


def _log_sinhc(y: float) -> float:
    """log(sinh(y) / y)."""
    if y > 1:
        return y - math.log(2 * y) + math.log1p(-math.exp(-2 * y))
    term, total, square = 1.0, 0.0, y * y
    for i in range(1, 12):
        term *= square / (2 * i * (2 * i + 1))
        total += term
    return math.log1p(total)


def geometric_smoothing(values: FloatArray, ratio: float) -> FloatArray:
    """sum over j of ratio^|i - j| values[j] for every i, by one recursion from each end."""
    from scipy.linalg import solve_banded

    bands = np.array([[1.0] * values.size, [-ratio] * values.size])
    left, right = (solve_banded((1, 0), bands, x, check_finite=False) for x in (values, values[::-1]))
    return np.asarray(left + right[::-1] - values)
