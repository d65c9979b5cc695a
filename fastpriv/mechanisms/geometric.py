"""Noise on the integers 0 .. n - 1: the geometric mechanism and discrete Laplace noise.

Notation: a = e^-epsilon; the noise is z with probability (1 - a) / (1 + a) a^|z|. What lies beyond an end is counted
with that end: all releases beyond it have one likelihood ratio, so nothing about the secret is lost.
"""

# bounds: proved - rounding of closed extremes: theorem 7.11 of docs/proofs/finite_capacity.md; below 1e-280 they are
#    not used

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.numerics import FloatArray, IntArray
from ..channels.base import AnyChannel
from ..channels.type_classes import ExtremeLogRatios, RowPair
from .categorical import validated_epsilon

_MAX_LISTED_OUTPUTS = 2**22  # releases up to which the pair of end rows is listed: 32 MiB an array
_MAX_INTEGER = 2**62  # secrets and releases in size, so that their differences fit 64 bits


class GeometricMechanism(AnyChannel):
    """Two-sided geometric noise on 0 .. n - 1, clamped to the ends: the truncated geometric mechanism.

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
    >>> from fastpriv.mechanisms import GeometricMechanism
    >>> GeometricMechanism(3, 1.0).matrix()
    array([[0.73105858, 0.1700034 , 0.09893802],
           [0.26894142, 0.46211716, 0.26894142],
           [0.09893802, 0.1700034 , 0.73105858]])
    >>> GeometricMechanism(10**9 + 1, 0.5).extreme_log_ratios().ldp_epsilon
    500000000.0
    """

    __slots__ = _fields = ("n", "epsilon")

    n: int
    epsilon: float

    def __init__(self, n: int, epsilon: float) -> None:
        self._set(n=validate.count("n", n, maximum=_MAX_INTEGER), epsilon=validated_epsilon(epsilon))

    def _input_count(self) -> int:
        return self.n

    _output_count = _input_count

    def _log_probabilities(self, distance: IntArray, at_end: Any) -> FloatArray:
        """Log probabilities of releases at these distances from the secret, at an end or between the ends."""
        log_end = -math.log1p(math.exp(-self.epsilon))
        log_inner = math.log(-math.expm1(-self.epsilon)) if self.epsilon > 0 else -math.inf
        with np.errstate(invalid="ignore"):
            decay = np.where(distance == 0, 0.0, -self.epsilon * distance)
        return np.asarray(decay + log_end + np.where(at_end, 0.0, log_inner))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        if self.n == 1:
            return np.zeros((stop - start, 1))
        w = np.arange(self.n)
        return self._log_probabilities(np.abs(w - np.arange(start, stop)[:, None]), (w == 0) | (w == self.n - 1))

    def column(self, output: ArrayLike) -> FloatArray:
        """Log likelihoods of one release, shape (n,)."""
        index = self._output_index(output)
        validate.memory("column", 32 * self.n, "Use fewer secrets.")
        if self.n == 1:
            return np.zeros(1)
        return self._log_probabilities(np.abs(np.arange(self.n) - index), index in (0, self.n - 1))

    def _noise(self, shape: tuple[int, ...], generator: np.random.Generator) -> IntArray:
        success = -math.expm1(-self.epsilon)
        return np.asarray(generator.geometric(success, shape) - generator.geometric(success, shape))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        if self.epsilon == 0:
            return generator.integers(0, 2, secrets.shape) * (self.n - 1)
        noise = np.clip(self._noise(secrets.shape, generator), -self.n, self.n)
        return np.clip(secrets + noise, 0, self.n - 1)

    def _extreme_log_ratios(self, prior: FloatArray | None) -> ExtremeLogRatios | None:
        span = (self.n - 1) * self.epsilon if self.n > 1 else 0.0
        if self.n == 1 or self.epsilon == 0:
            return ExtremeLogRatios(0.0, 0.0, 0.0, 0.0)
        if prior is None:  # the extremes lie at the ends
            if self.epsilon == math.inf:
                return ExtremeLogRatios(span, span, math.log(self.n), span)
            if self.n * self.epsilon > 80:  # a^n is below the rounding of 1
                plus = math.log(self.n) + math.log(-math.expm1(-self.epsilon))
                return ExtremeLogRatios(span, span, plus, span - plus, 1e-13)
            # r at an end: n (1 - a) / (1 - a^n) = e^(span / 2) / (sinhc(n epsilon / 2) / sinhc(epsilon / 2))
            log_quotient = _log_sinhc(0.5 * self.n * self.epsilon) - _log_sinhc(0.5 * self.epsilon)
            return ExtremeLogRatios(span, span, 0.5 * span - log_quotient, 0.5 * span + log_quotient, 1e-13)
        support = np.flatnonzero(prior)
        first, last = int(support[0]), int(support[-1])
        width = (last - first) * self.epsilon if last > first else 0.0
        if width == 0:
            return ExtremeLogRatios(span, 0.0, 0.0, 0.0)
        if self.epsilon == math.inf:
            return ExtremeLogRatios(span, span, -math.log(float(prior[support].min())), span)
        inner = prior[first : last + 1]
        evidence = geometric_smoothing(inner, math.exp(-self.epsilon))
        if evidence.min() < 1e-280:  # too close to underflow: small channels are enumerated instead
            return super()._extreme_log_ratios(prior)
        # the likeliest secret of a release is the nearest one in the support, the least likely one an end of it
        index = np.arange(inner.size)
        before = np.maximum.accumulate(np.where(inner > 0, index, -inner.size))
        after = np.minimum.accumulate(np.where(inner > 0, index, 2 * inner.size)[::-1])[::-1]
        logs = np.log(evidence)
        plus = float(np.max(-self.epsilon * np.minimum(index - before, after - index) - logs))
        minus = float(np.max(self.epsilon * np.maximum(index, inner.size - 1 - index) + logs))
        depth = max(0.0, -float(np.min(logs)))  # over epsilon, it bounds the mean distance of secrets from a release
        error = 2.0**-50 * (min(inner.size, depth / self.epsilon) + depth + 4)
        return ExtremeLogRatios(span, width, max(0.0, plus), max(0.0, minus), 1e-14, error)

    def dominating_pairs(self) -> tuple[RowPair, ...] | None:
        """The two ends: the noise is log-concave, so the farthest secrets are the easiest to tell apart."""
        if self.n == 1:
            return (RowPair.trivial(),)
        if self.n > _MAX_LISTED_OUTPUTS:
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
    ``sample`` and ``column`` take all integers. Releases beyond an end tell as much about the secret as the end itself,
    so that rows, ``outputs`` and all quantities count them together: they are those of
    ``GeometricMechanism(n, 1 / scale)``.

    **Accuracy** as there; ``tests/enclosures/test_channels.py``.

    Source: Inusah and Kozubowski 2006; Canonne, Kamath and Steinke 2020.

    Examples
    --------
    >>> from fastpriv.mechanisms import DiscreteLaplace
    >>> q = DiscreteLaplace(3, 2.0)
    >>> q.extreme_log_ratios().ldp_epsilon
    1.0
    >>> q.column(-4)
    array([-3.40682911, -3.90682911, -4.40682911])
    """

    __slots__ = ("scale",)
    _fields = ("n", "scale")

    scale: float

    def __init__(self, n: int, scale: float) -> None:
        width = validate.scalar("scale", scale, "positive and finite", lambda s: (s > 0) & (s < np.inf))
        self._set(n=validate.count("n", n, maximum=_MAX_INTEGER), epsilon=1.0 / width, scale=width)

    def column(self, output: ArrayLike) -> FloatArray:
        """Log likelihoods of one release, any integer, shape (n,)."""
        release = validate.count("output", output, -_MAX_INTEGER, _MAX_INTEGER)
        validate.memory("column", 32 * self.n, "Use fewer secrets.")
        return self._log_probabilities(np.abs(np.arange(self.n) - release), False)

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        return np.asarray(secrets + np.clip(self._noise(secrets.shape, generator), -_MAX_INTEGER, _MAX_INTEGER))

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
