"""Mutual information of a set with its secret: I = E_0 phi(c) - E_0 phi(S), phi(s) = s log s - s + 1.

Since phi'' = 1/s, and E_0 S = 1,

    E_0 phi(S) = integral over t > 0 of F(t) dt,   F(t) = e^-t (M(t) - 1) / t^2,   M(t) = E_0 e^(-t (S - 1)),

where M - 1 >= 0 is formed from positive terms alone (``transforms``), so that weak channels keep their digits. The
trapezoidal rule in x = log t with step h: each s contributes g_s(t) = integral from 1 to s of (s - u) e^(-t u) du,
which is analytic where Re t > 0, and at the angle y the integral of |g_s| over the ray is at most phi(s) / cos y. Hence
the rule is off by at most 2 / (cos d (e^(2 pi d / h) - 1)) of the answer for each d < pi / 2. F falls, from
F(0) = Var(S) / 2: the terms before t_0 sum to between F(t_0) and F(0), times h t_0 / (e^h - 1); those beyond t_1 to at
most e^-t_1 M(t_1) / t_1 times h / (e^h - 1).
"""

# bounds: tested by enclosures/test_sets_notions - rounding of nodes and of the sum

from __future__ import annotations

import math

import numpy as np

from ..arguments import UNIT, Reading
from . import transforms
from .bits import Bits

__all__ = ["STEP", "TRAPEZOID", "information"]

# bound: proved - the rule is off by at most TRAPEZOID of the answer, for any d < pi / 2
STEP = 0.22  # of the trapezoidal rule in log t
_FREE = STEP / (2 * math.pi)
TRAPEZOID = 2 / math.sin(_FREE) / math.expm1(2 * math.pi * (0.5 * math.pi - _FREE) / STEP)
# bound: none - where the end of the integral is put; what is left out is added
_NEAR = 3e-9
# bound: none - the same
_DIGITS = 39.0
# bound: tested by enclosures/test_sets_notions - underflow in the integral
_TINY = 1e-305


def information(bits: Bits) -> Reading:
    """Mutual information with its bounds."""
    (own, error), (mixed, more) = _mean(bits.bit), _mean(bits)
    value = max(0.0, own - mixed)
    error = error + more + 2 * UNIT * own + _TINY
    return Reading(value, max(0.0, value - error), value + error, "certified", "integral of products over bits")


def _mean(bits: Bits) -> tuple[float, float]:
    """E_0 phi(S) and a bound on its error."""
    start = 0.5 * transforms.variance(bits)  # F(0)
    if start < 1e-290:  # phi(s) <= (s - 1)^2; S is constant where all secrets of a selection are alike
        return start, start + _TINY
    scale = math.log(start) - math.log(bits.high)  # at most the log of the answer
    first = math.log(_NEAR / bits.high)
    last = _DIGITS - scale
    if bits.low > 0:
        last = min(last, math.log(_DIGITS + 6 - min(scale, 0.0)) - math.log(bits.low))
    nodes = STEP * np.arange(math.floor(first / STEP), math.ceil(last / STEP) + 1)
    t = np.exp(nodes)
    falling, relative, rest = transforms.centred(bits, t)
    terms = STEP * t * falling
    share = STEP / math.expm1(STEP)
    most = start * (1 + 8 * bits.blur)
    before = share * float(t[0]) * 0.5 * (most + float(falling[0]))
    unsure = share * float(t[0]) * (0.5 * max(0.0, most - float(falling[0])) + float(falling[0] * relative[0]))
    value = math.fsum(terms.tolist()) + before
    moved = 4 * UNIT * (1 + np.abs(nodes)) * 3  # nodes are rounded, and d log(t F) / dx is at most 3 + t
    error = math.fsum((terms * (relative + moved)).tolist()) + unsure + share * rest / float(t[-1])
    return value, (error + TRAPEZOID * value) * (1 + 1e-9) + _TINY
