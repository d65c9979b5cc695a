"""What the guesses of one run with many canaries exclude.

Notation: m canaries, each in (s_i = 1) or out (s_i = 0) by a fair coin of its own; T the output, by which the attack
guesses for r of them and is right for W; a(c) = P(W = c), b(c) = P(Bin(r, q) = c), q = e^epsilon / (1 + e^epsilon).

The lemma. Let C be a set of counts. For one canary i and fixed coins of the others let A be the outputs that guess "in"
for it and for which W, with i counted as right, lies in C. A mechanism whose pair with and without i has P1(A) <=
F(P0(A)), F increasing and concave, and the same for "out" with P0 and P1 exchanged, obeys on the mean over i and the
coins, by Jensen,

    sum over c in C of c a(c) / m  <=  F( sum over c in C of (r - c + 1) a(c - 1) / m ):                            (1)

on the left i is one of the c right guesses, on the right one of the r - c + 1 wrong ones of c - 1.

(epsilon, delta), exactly. With F(x) = e^epsilon x + delta and C the counts whose term is positive, (1) says

    sum over c of (c a(c) - e^epsilon (r - c + 1) a(c - 1))^+  <=  m delta.

A law whose terms are x_c is a = t b + sum over c of x_c b(.) 1[. >= c] / (c b(c)), of total mass 1. So P(W >= v) =
B + sum over c of x_c (P(Bin >= max(c, v)) - B P(Bin >= c)) / (c b(c)), B = P(Bin(r, q) >= v). No factor of an x_c is
negative, and as b is log-concave they rise up to c = v and fall beyond; all of m delta is best spent there:

    P(W >= v)  <=  B + m delta B (1 - B) / (v b(v)).                                                                (2)

For r fixed it is attained, by an output that lists r canaries drawn at random and a guess for each, of probability a(W)
given W: (2) is the least bound that holds for all (epsilon, delta) mechanisms. For delta = 0 it holds given the output,
however it chose r. Steinke, Nasr and Jagielski 2023 have B + 2 m delta max_i P(v - i <= Bin < v) / i, the form as
published. It is larger wherever (2) is below 1/2; where v is far below the mean it is smaller, and so false: a uniform
guess of ten coins on condition that two are right is (0, 0.01), and P(W >= 2) = 1 exceeds it. No audit comes there.

Any trade-off curve. With x_c and y_c the sums over counts of at least c of j a(j) and of (r - j) a(j), P(W >= c) =
(x_c + y_c) / r, and (1) for C = {c, c + 1, ...} is y_{c-1} >= m F^-1(x_c / m). If P(W >= v) >= p, then x_v >= v p, and
the least that can follow is p at v itself and

    y_{c-1} = max(y_c, m F^-1(x_c / m)),   x_{c-1} = x_c + (c - 1) / (r - c + 1) (y_{c-1} - y_c):                   (3)

more mass at j >= c never lowers y_c nor x_c - k y_c, k = (c - 1) / (r - c + 1), and (3) keeps this order since k falls
with c. Where (x_0 + y_0) / r > 1, P(W >= v) < p: the curve is excluded at confidence 1 - p. F must serve both
directions; of an asymmetric pair it is made of the larger delta of both at each epsilon. Every line e^epsilon x + delta
above F also gives (2), and the least of all these is a p-value.

Sources: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2024 ((3), for r = m); proofs above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import special
from ...base.inverse import bisect
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ...sampling.statistics.intervals import binomial_tails

Inverse = Callable[[FloatArray], FloatArray]  # F^-1 of an array of true rates

# bound: proved - docs/proofs/roundings.md, 13.28: roundings of q, of a p-value, and of a step of (3)
_ROUNDINGS = 32 * UNIT_ROUNDOFF
_HALVINGS = 48  # of a bracket of a parameter, and of the logarithm of a p-value
# bound: none - mass that a step adds below which the rest is left out, which excludes less
_NEGLIGIBLE = 1e-15
_LEAST_LOG = -690.0  # of a probability: its exponential is far above the least double
_BLOCK_CELLS = 2**20  # products of audits and counts that are formed at a time: 8 MiB


def p_value(rows: FloatArray, epsilon: Any, delta: Any) -> FloatArray:
    """The bound (2) of each row (correct, guesses, canaries)."""
    v, r, m = rows[:, :3].T
    tail, below, share = _tail(v, r, epsilon)
    with np.errstate(invalid="ignore"):
        bound = tail + np.where(delta > 0.0, m * delta * below * share, 0.0)
    return np.where((v > 0) & (tail < 1.0), np.minimum(bound * (1.0 + _ROUNDINGS), 1.0), 1.0)


def published_p_value(rows: FloatArray, epsilon: FloatArray, delta: FloatArray) -> FloatArray:
    """The p-value of Steinke, Nasr and Jagielski, of each row."""
    answer = np.empty(len(rows))
    for k, (v, r, m) in enumerate(rows[:, :3]):
        if v == 0:
            answer[k] = 1.0
            continue
        at, most = _tails(v, r, epsilon[k]), 0.0
        for start in range(1, int(v) + 1, _BLOCK_CELLS):
            i = np.arange(start, min(start + _BLOCK_CELLS, int(v) + 1), dtype=np.float64)
            inside = _tails(v - i, r, epsilon[k])[0] - at[1] + r * _ROUNDINGS * at[0]
            most = max(most, float((inside / i).max()))
        answer[k] = min(1.0, float(at[0] + 2.0 * m * delta[k] * most) * (1.0 + _ROUNDINGS))
    return answer


def delta_of_level(rows: FloatArray, epsilon: Any, error: float) -> FloatArray:
    """The least delta for which (2) is at least ``error``, of each row; 0 where it is for every delta."""
    v, r, m = rows[:, :3].T
    tail, below, share = _tail(v, r, epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = (error * (1.0 - _ROUNDINGS) - tail) / (m * below * share) * (1.0 - _ROUNDINGS)
    return np.where((v > 0) & (delta > 0.0), np.minimum(delta, 1.0), 0.0)


def exceeds_level(rows: FloatArray, error: Any, inverse: Inverse) -> BoolArray:
    """Whether (3), begun with the mass ``error`` of each row, comes to more than 1."""
    v, r, m = rows[:, :3].T
    start = error * (1.0 - (v + 8.0) * _ROUNDINGS)
    x, y, c = v * start, (r - v) * start, v.copy()
    while True:
        excess = x + y > r
        needed = m * inverse(np.minimum(x / m, 1.0))
        more = np.where((c >= 1.0) & ~excess, np.maximum(needed - y, 0.0), 0.0)
        if not (more > _NEGLIGIBLE * r).any():
            return np.asarray(excess & (v > 0))
        y = y + more
        x = x + (c - 1.0) / np.maximum(r - c + 1.0, 1.0) * more
        c = c - 1.0


def level_p_value(row: FloatArray, inverse: Inverse) -> float:
    """An upper bound of the largest mass of one row (1, 3) from which (3) does not come to more than 1."""

    def excluded(log: float) -> bool:
        return bool(exceeds_level(row, np.exp(log), inverse)[0])

    if excluded(_LEAST_LOG):
        return float(np.exp(_LEAST_LOG))
    return float(np.exp(bisect(excluded, _LEAST_LOG, 0.0, _HALVINGS)[1]))


def greatest_excluded(excluded: Callable[[FloatArray], BoolArray], high: FloatArray) -> FloatArray:
    """The greatest parameter in [0, high] that is excluded, of each row, to 48 halvings; 0 where none is."""
    return bisect(lambda parameter: ~excluded(parameter), np.zeros_like(high), high, _HALVINGS)[0]


def _tail(v: FloatArray, r: FloatArray, epsilon: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """B = P(Bin(r, q) >= v), 1 - B and B / (v b(v)) from above."""
    upper, lower, share = _tails(v, r, epsilon)
    return upper, (1.0 - lower) * (1.0 + r * _ROUNDINGS), share


def _tails(v: Any, r: Any, epsilon: Any) -> FloatArray:
    """``binomial_tails`` at a rate that is above q by a few roundings of it and of 1 - q."""
    small = special.exp(-np.abs(epsilon)) / (1.0 + special.exp(-np.abs(epsilon)))
    small = small * (1.0 + np.where(epsilon > 0.0, -0.5, 0.5) * _ROUNDINGS)
    q, other = np.where(epsilon > 0.0, 1.0 - small, small), np.where(epsilon > 0.0, small, 1.0 - small)
    return binomial_tails(v, r, q, other)
