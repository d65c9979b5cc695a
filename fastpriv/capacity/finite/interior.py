"""Capacity of one finite channel: primal-dual Newton's method on the inputs, and the bounds that any laws prove.

Notation: channel Q (n, m), input law p, output law q = pQ, divergences K_d = KL(Q_d || q), slacks s with K_d + s_d =
lambda and p_d s_d = mu. A step solves

    (B B^T + S/P) dp + dlambda = b,   sum dp = 0,   B = [(Q - q)/sqrt(q), sqrt(k)],

in as many unknowns as there are inputs or outputs, whichever are fewer. Inputs whose p_d/s_d |B_d|^2 add up to next to
nothing are on their way out: their coupling is left out of the matrix, and their steps follow from the others. The
mathematics of divergences and bounds is in csrc/fp_blahut.h.
"""

# bounds: tested by enclosures/test_discrete_capacity - rounding of the input law's sum and of the bounds; 1e-25
#    and 1e-270 steer the solver

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from ...kernels import _blahut

__all__ = ["Found", "enclosed", "solved", "stepped"]

FloatArray = NDArray[np.float64]
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_COUPLED = 1e-3  # sum of p/s |B|^2 over the inputs that the matrix leaves out
_TO_THE_EDGE = 0.995
_PATIENCE = 10  # steps that may pass until the width has lost a tenth
_LOW = 0.1  # of the target: sum of p_d s_d that steps aim at in the end
_LIFTS = 8
_BRIEF = 2**32  # multiplications that take some tenths of a second
_PANEL = 1024  # rows and columns of a matrix worked at a time


@dataclass(frozen=True, slots=True)
class Found:
    """Laws and divergences where the solver stopped; ``width`` is what it saw between the two bounds."""

    p: FloatArray
    q: FloatArray
    divergences: FloatArray
    width: float
    iterations: int


def solved(
    channel: FloatArray, gap: float, most: int, deadline: float, start: FloatArray | None = None
) -> Found:  # fmt: skip
    """Newton's method until the bounds are ``gap`` min(1, I) apart, or nothing more is gained.

    ``start`` is a law of the inputs, all positive, by default the uniform one.
    """
    n, m = channel.shape
    p = np.full(n, 1.0 / n) if start is None else start
    factor = np.empty((n, m + 1))
    best, best_width, waited, steps = None, math.inf, 0, 0
    s, level = np.empty(0), 0.0
    while True:
        q = p @ channel
        k = _blahut.divergences(channel, q, factor)
        mean, high = float(p @ k), float(k.max())
        width = high - mean
        waited = 0 if width < 0.9 * best_width else waited + 1
        if best is None or width < best_width:
            best, best_width = (p, q, k), width
        if width <= 0.9 * gap * min(1.0, mean) or waited >= _PATIENCE or steps >= most or time.monotonic() > deadline:
            return Found(*best, best_width, steps)
        if not steps:
            level = high + 0.1 * width
            s = level - k
        try:
            step = _newton(factor, p, s, k, level, _LOW * gap * min(1.0, mean), deadline)
        except TimeoutError:
            step = None
        if step is None:
            return Found(*best, best_width, steps)
        dp, ds, move, length = step
        p = np.maximum(p + length * dp, _blahut.LEAST)
        p /= p.sum()
        s = np.maximum(s + length * ds, 1e-25 * high)
        level += length * move
        steps += 1


def enclosed(found: Found, gaps: FloatArray, faint: int) -> tuple[float, float, float]:
    """Value, lower and upper bound of the capacity, whatever the laws; ``faint`` columns were left out."""
    k, p = found.divergences, found.p
    relative = _blahut.relative(found.q.size)
    spread = 1.01 * gaps * (k + np.sqrt(2.01 * k) + gaps)
    mass, mean = math.fsum(p), math.fsum(p * k)
    off = abs(mass - 1.0) + 1.01 * (p.size + 8) * _UNIT + float(gaps.max())
    error = 1.01 * off * off if mean > 0 else 0.0
    low = math.fsum(p * (k * (1 - relative) - spread)) / mass - 16 * _UNIT * mean - error
    high = float((k * (1 + relative) + spread).max()) * (1 + 8 * _UNIT) + faint * 2.0**-899
    value = min(mean, high)
    return value, min(max(low, 0.0), value), high


def _newton(
    b: FloatArray, p: FloatArray, s: FloatArray, k: FloatArray, level: float, low: float, deadline: float
) -> Any:
    """Mehrotra's step: dp, ds, dlambda and its length; None where the matrix can't be factored.

    A large one is given up at the deadline: TimeoutError.
    """
    b[:, -1] = 0.0
    size = np.einsum("ij,ij->i", b, b)
    b[:, -1] = math.sqrt(float(p @ size))
    weight = p / s
    coupling = weight * (size + b[0, -1] ** 2)
    solve = _solver(b, weight, np.flatnonzero(coupling > min(_COUPLED / p.size, 0.5 * float(coupling.max()))), deadline)
    return None if solve is None else stepped(solve, p, s, k, level, low)


def stepped(
    solve: Callable[[FloatArray], FloatArray], p: FloatArray, s: FloatArray, k: FloatArray, level: float, low: float
) -> Any:
    """Mehrotra's step by a ``solve`` for B B^T + S/P, or for that and a constant in every cell."""
    residual = level - k - s
    ones = solve(np.ones(p.size))
    scale = ones.sum()

    def direction(rest: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
        free = solve(rest / p - residual)
        move = float(free.sum() / scale)
        dp = free - move * ones
        ds = (rest - s * dp) / p
        return dp, ds, move, 1.0 / max(float((-dp / p).max()), float((-ds / s).max()), 1e-270)

    products = p * s
    total = float(products.sum())
    dp, ds, _, longest = direction(-products)
    length = min(1.0, longest)
    ratio = float((p + length * dp) @ (s + length * ds)) / total
    dp, ds, move, longest = direction(max(ratio**3 * total, low) / p.size - products - dp * ds)
    length = min(1.0, _TO_THE_EDGE * longest)
    return (dp, ds, move, length) if math.isfinite(move) and length > 0 else None


def _solver(b: FloatArray, weight: FloatArray, coupled: NDArray[np.intp], deadline: float) -> Any:
    """Applies the inverse of B B^T + 1/weight, coupling left out but for the rows ``coupled`` and what follows them."""
    every = coupled.size == weight.size
    rows = b if every else b[coupled]
    heavy = weight if every else weight[coupled]
    if rows.shape[0] <= rows.shape[1]:
        matrix = _gram(rows, deadline)
        matrix.flat[:: matrix.shape[0] + 1] += 1 / heavy
    else:
        scaled = rows * np.sqrt(heavy)[:, None]
        matrix = _gram(scaled.T, deadline)
        matrix.flat[:: matrix.shape[0] + 1] += 1.0
    root = _cholesky(matrix, deadline)
    if root is None:
        return None

    def solve(right: FloatArray) -> FloatArray:
        mine: FloatArray = right if every else right[coupled]
        x: FloatArray
        if rows.shape[0] <= rows.shape[1]:
            x = lapack.dpotrs(root, mine)[0]
        else:
            x = heavy * (mine - rows @ lapack.dpotrs(root, rows.T @ (heavy * mine))[0])
        if every:
            return x
        full: FloatArray = weight * (right - b @ (rows.T @ x))
        full[coupled] = x
        return full

    return solve


def _in_time(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError


def _gram(rows: FloatArray, deadline: float) -> FloatArray:
    """rows @ rows.T; of a large one the lower triangle alone, panel by panel, so that Ctrl-C is heard."""
    n, m = rows.shape
    if n * n * m <= _BRIEF:
        return np.asarray(rows @ rows.T)
    matrix = np.empty((n, n))
    step = max(1, min(n, _BRIEF // (n * m)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        for left in range(0, stop, _PANEL):
            _in_time(deadline)
            right = min(left + _PANEL, stop)
            first = max(1, _BRIEF // ((stop - start) * (right - left)))
            part = rows[start:stop, :first] @ rows[left:right, :first].T
            for column in range(first, m, first):
                part += rows[start:stop, column : column + first] @ rows[left:right, column : column + first].T
            matrix[start:stop, left:right] = part
    return matrix


def _factored(matrix: FloatArray, deadline: float) -> tuple[FloatArray, int]:
    """LAPACK's dpotrf of the lower triangle, which it may leave as it is; of a large one panel by panel."""
    n = len(matrix)
    if n <= 2 * _PANEL:
        whole: tuple[FloatArray, int] = lapack.dpotrf(matrix.T, clean=0)
        return whole
    root = np.array(matrix)  # the lower triangle becomes the factor
    for start in range(0, n, _PANEL):
        stop = min(start + _PANEL, n)
        corner, failed = lapack.dpotrf(root[start:stop, start:stop].T, clean=1)
        if failed:
            return root.T, failed
        root[start:stop, start:stop] = corner.T
        for low in range(stop, n, _PANEL):
            _in_time(deadline)
            high = min(low + _PANEL, n)
            root[low:high, start:stop] = blas.dtrsm(1.0, corner, root[low:high, start:stop].T, trans_a=1).T
            for left in range(stop, high, _PANEL):
                right = min(left + _PANEL, high)
                root[low:high, left:right] -= root[low:high, start:stop] @ root[left:right, start:stop].T
    return root.T, 0


def _cholesky(matrix: FloatArray, deadline: float) -> FloatArray | None:
    """The factor of a symmetric matrix, its diagonal lifted as little as makes it positive definite."""
    diagonal = np.diagonal(matrix).copy()
    lift = 0.0
    root: FloatArray
    for _ in range(_LIFTS):
        root, failed = _factored(matrix, deadline)
        if not failed:
            return root
        lift = max(100 * lift, 4 * _UNIT)
        matrix.flat[:: diagonal.size + 1] = diagonal * (1 + lift)
    return None
