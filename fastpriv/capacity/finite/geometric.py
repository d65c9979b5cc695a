"""The input law of a truncated geometric mechanism, by Newton steps in time proportional to the number of inputs.

Notation: a = e^-epsilon; the channel is Q = K diag(c) with K = a^|d - w| and c = (1 - a) / (1 + a), 1 / (1 + a) at both
ends. K is that of an autoregression: K f takes two recursions, and K^-1 has three diagonals, 1 / (1 - a^2) times
1 + a^2 (1 at the ends) and -a beside. As in ``interior``, where the inputs sum to 0 anyway, a step solves

    (K diag(c^2 / q) K + S/P) dp + dlambda = b,   (...)^-1 = K^-1 (diag(c^2 / q) + K^-1 S/P K^-1)^-1 K^-1,

and the matrix inside has five diagonals. What is found is a start: the bounds are those of the cells.
"""

# bounds: none - the solver's least slack

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solveh_banded

from ...channels import GeometricMechanism
from ...channels.families.geometric import geometric_smoothing
from ...kernels import _blahut
from .interior import stepped

__all__ = ["input_law", "suited"]

FloatArray = NDArray[np.float64]
_STEPS = 60
_SLOW = 1e-3  # an epsilon below which K is too near to singular for its inverse to serve


def suited(channel: Any) -> bool:
    """Whether ``input_law`` is for it."""
    return isinstance(channel, GeometricMechanism) and channel.n >= 3 and _SLOW <= channel.epsilon <= 700.0


def input_law(channel: GeometricMechanism, gap: float) -> FloatArray:
    """A law of the inputs whose two bounds are about ``gap`` min(1, C) apart."""
    n, epsilon = channel.n, channel.epsilon
    a = math.exp(-epsilon)
    c = np.full(n, (1.0 - a) / (1.0 + a))
    c[[0, -1]] = 1.0 / (1.0 + a)

    def smoothed(f: FloatArray) -> FloatArray:
        return geometric_smoothing(f, a)

    def sharpened(f: FloatArray) -> FloatArray:
        found = (1.0 + a * a) * f
        found[[0, -1]] = f[[0, -1]]
        found[1:] -= a * f[:-1]
        found[:-1] -= a * f[1:]
        return found / (1.0 - a * a)

    own = _row_entropies(n, epsilon, a, c)
    p, s, level = np.full(n, 1.0 / n), np.empty(0), 0.0
    best, best_width = p, math.inf
    for step in range(_STEPS):
        q = c * smoothed(p)
        k = -own - smoothed(c * np.log(q))
        mean, high = float(p @ k), float(k.max())
        if high - mean < best_width:
            best, best_width = p, high - mean
        if high - mean <= 0.5 * gap * min(1.0, mean):
            break
        if not step:
            level = high + 0.1 * (high - mean)
            s = level - k
        inner = _bands(s / p, c * c / q, a)

        def solve(right: FloatArray, bands: FloatArray = inner) -> FloatArray:
            return sharpened(solveh_banded(bands, sharpened(right), check_finite=False))

        try:
            moved = stepped(solve, p, s, k, level, 0.1 * gap * min(1.0, mean))
        except LinAlgError:
            break
        if moved is None:
            break
        dp, ds, move, length = moved
        p = np.maximum(p + length * dp, _blahut.LEAST)
        p /= p.sum()
        s = np.maximum(s + length * ds, 1e-25 * high)
        level += length * move
    return best


def _row_entropies(n: int, epsilon: float, a: float, c: FloatArray) -> FloatArray:
    """-sum over w of Q[d, w] ln Q[d, w] for every d."""
    steps = np.arange(n, dtype=np.float64)
    powers = np.exp(-epsilon * steps)
    ends = c[0] * (powers + powers[::-1])  # mass at both ends; all of Q sums to 1
    moments = c[1] * np.cumsum(steps * powers)
    half = np.where(steps > 0, moments - c[1] * steps * powers + c[0] * steps * powers, 0.0)
    ends[[0, -1]] = c[0] * (1.0 + powers[-1])
    return np.asarray(epsilon * (half + half[::-1]) - ends * math.log(c[0]) - (1.0 - ends) * math.log(c[1]))


def _bands(weight: FloatArray, diagonal: FloatArray, a: float) -> FloatArray:
    """The upper diagonals of diag(diagonal) + K^-1 diag(weight) K^-1, for LAPACK."""
    n = weight.size
    scale = 1.0 / (1.0 - a * a)
    main = np.full(n, (1.0 + a * a) * scale)
    main[[0, -1]] = scale
    side = -a * scale
    bands = np.zeros((3, n))
    bands[2] = diagonal + main * main * weight
    bands[2, 1:] += side * side * weight[:-1]
    bands[2, :-1] += side * side * weight[1:]
    bands[1, 1:] = side * (main[:-1] * weight[:-1] + main[1:] * weight[1:])
    bands[0, 2:] = side * side * weight[1:-1]
    return bands
