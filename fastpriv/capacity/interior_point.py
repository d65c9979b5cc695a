"""Capacity of one finite channel: a primal-dual interior-point method, and the bounds that any input proves.

Notation: channel Q (n, m), input distribution p, output distribution q = pQ, divergences K_d = KL(Q_d || q), slacks s
with K_d + s_d = lambda and p_d s_d = mu. A Newton step solves

    (B B^T + S/P) dp + dlambda = b,   sum dp = 0,   B = [(Q - q)/sqrt(q), sqrt(k)],

in as many unknowns as there are inputs or outputs, whichever are fewer. Inputs whose p_d/s_d |B_d|^2 have a negligible
sum tend to weight 0: their coupling is left out of the matrix, and their steps follow from the others. The formulas of
divergences and bounds are in csrc/channel/fp_capacity.h.

Truncated geometric mechanisms, whose input is found in time proportional to the number of inputs: with a = e^-epsilon
the channel is Q = K diag(c) with K = a^|d - w| and c = (1 - a) / (1 + a), 1 / (1 + a) at both ends. K is that of an
autoregression: K f takes two recursions, and K^-1 is tridiagonal, 1 / (1 - a^2) times 1 + a^2 (1 at the ends) and -a
beside. Where the inputs sum to 0 anyway, a step solves

    (K diag(c^2 / q) K + S/P) dp + dlambda = b,   (...)^-1 = K^-1 (diag(c^2 / q) + K^-1 S/P K^-1)^-1 K^-1,

and the matrix inside has five diagonals. The result is a start of the method above; the bounds are those of the cells.

Nearly equal rows, where the rounding of q is as large as Q - q. With r the first row, D = Q - r (each difference is one
rounding), m = pD, e = D - m and x = e / (r + m), the divergence from the exact q = pQ, which is never formed, is

    K_d = sum of q h(x),   h(x) = (1 + x) log(1 + x) - x = x^2 (1/2 - x/6 + x^2/12 - ...).

Of e the error is at most delta = (2n + 10) u (|D| + |e| + pA), A = |D|, and of q a part rho; by the slopes of q h(e/q),
log(1 + x) in e and log(1 + x) - x in q, a term is off by 1.01 (|x| + delta/q) (delta + 0.51 rho q (|x| + delta/q)).
Then I(p) = sum of p_d K_d holds without the term for a rounded q. The best p is near that of the channel r + tD where
|x| is about 2^-14; Newton steps K_d = lambda on its support do the rest, with the matrix E E^T, E = e / sqrt(q).
"""

# bounds: proved - rounding of the input's sum and of the bounds: docs/proofs/finite_capacity.md, theorems 7.5 and 7.6;
#    1e-25 and 1e-270 are least slacks and lengths of the solver

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray
from ..kernels import _channel_capacity
from ..mechanisms import GeometricMechanism
from ..mechanisms.geometric import geometric_smoothing

_UNCOUPLED_SUM = 1e-3  # sum of p/s |B|^2 over the inputs whose coupling the matrix leaves out
_STEP_FRACTION = 0.995  # of the longest step that keeps p and s positive, as is usual in interior-point methods
_PATIENCE = 10  # steps without a tenth less width after which the solver stops
_FINAL_PRODUCT = 0.1  # sum of p_d s_d that the last steps aim at, in units of the width to reach
_MAX_SHIFTS = 8  # of the diagonal, each a hundredfold, until a matrix is positive definite
_MAX_MULTIPLICATIONS = 2**32  # in one call of BLAS: some tenths of a second, after which Ctrl-C is heard
_PANEL = 1024  # rows and columns of a large matrix that are treated at a time
_GEOMETRIC_STEPS = 60  # Newton steps for a geometric mechanism, far more than convergence takes
_SMALLEST_EPSILON = 1e-3  # below it K is so near to singular that its inverse is useless
# bound: proved - the largest |x| of nearly equal rows: what is left out of h is then below u/2 of the sum
_NEARLY_EQUAL = 2.0**-10
# bound: proved - the least cell of nearly equal rows: the least q x^2, with x = 2^-53, is far from underflow
_LEAST_CELL = 1e-250
_AMPLIFIED = 2.0**-14  # |x| of the channel r + tD, whose best input is that of nearly equal rows
# bound: none - probability in it below which an input is taken to be unused
_LEAST_SUPPORT = 1e-7
_CENTRED_STEPS = 8  # Newton steps for nearly equal rows; they converge quadratically
_LARGEST_EPSILON = 700.0  # beyond it e^-epsilon nearly underflows

_Solver = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, slots=True)
class InputDistribution:
    """Distributions and divergences where the solver stopped; ``width`` is max K - mean K there, before rounding."""

    p: FloatArray
    q: FloatArray
    divergences: FloatArray
    width: float
    iterations: int


class _Iterate(NamedTuple):
    """Input distribution, slacks, output distribution, divergences and lambda."""

    p: FloatArray
    s: FloatArray
    q: FloatArray
    k: FloatArray
    multiplier: float


class _Step(NamedTuple):
    """Directions of p, s and lambda, and the length of the step along them."""

    dp: FloatArray
    ds: FloatArray
    dlambda: float
    length: float


def solve(
    channel: FloatArray, rtol: float, max_steps: int, deadline: float, start: FloatArray | None = None
) -> InputDistribution:
    """Newton's method until the bounds are ``rtol`` min(1, I) apart, or the width no longer decreases.

    ``start`` is an input distribution, all positive; the default is the uniform one.
    """
    n, m = channel.shape
    factor = np.empty((n, m + 1))

    def distances(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        q = p @ channel
        return q, _channel_capacity.divergences(channel, q, factor)

    def step(point: _Iterate, low: float) -> _Step | None:
        return _newton_step(factor, point, low, deadline)

    start = np.full(n, 1.0 / n) if start is None else start
    return _descend(distances, step, start, rtol, 0.9 * rtol, max_steps, deadline)


def _descend(
    distances: Callable[[FloatArray], tuple[FloatArray, FloatArray]], step: Callable[[_Iterate, float], _Step | None],
    p: FloatArray, rtol: float, width_to_reach: float, max_steps: int, deadline: float,
) -> InputDistribution:
    """Newton steps from p until the width is at most ``width_to_reach`` min(1, I), or no longer decreases.

    ``distances`` returns the output distribution of p and the divergences from it; ``step`` returns None, or raises
    TimeoutError, where there is none.
    """
    best, best_width, stalled, steps = None, math.inf, 0, 0
    s, multiplier = np.empty(0), 0.0
    while True:
        q, k = distances(p)
        mean, high = float(p @ k), float(k.max())
        width = high - mean
        stalled = 0 if width < 0.9 * best_width else stalled + 1
        if best is None or width < best_width:
            best, best_width = (p, q, k), width
        spent = stalled >= _PATIENCE or steps >= max_steps or time.monotonic() > deadline
        if spent or width <= width_to_reach * min(1.0, mean):
            return InputDistribution(*best, best_width, steps)
        if not steps:
            multiplier = high + 0.1 * width
            s = multiplier - k
        try:
            direction = step(_Iterate(p, s, q, k, multiplier), _FINAL_PRODUCT * rtol * min(1.0, mean))
        except TimeoutError:
            direction = None
        if direction is None:
            return InputDistribution(*best, best_width, steps)
        p = np.maximum(p + direction.length * direction.dp, _channel_capacity.LEAST_PROBABILITY)
        p /= p.sum()
        s = np.maximum(s + direction.length * direction.ds, 1e-25 * high)
        multiplier += direction.length * direction.dlambda
        steps += 1


def certified_bounds(solution: InputDistribution, gaps: FloatArray, faint_columns: int) -> tuple[float, float, float]:
    """Value, lower and upper bound of the capacity, for any p; ``faint_columns`` is the number of columns left out."""
    k, p = solution.divergences, solution.p
    relative = _channel_capacity.divergence_relative_error(solution.q.size)
    spread = 1.01 * gaps * (k + np.sqrt(2.01 * k) + gaps)
    mass, mean = math.fsum(p), math.fsum(p * k)
    deviation = abs(mass - 1.0) + 1.01 * (p.size + 8) * UNIT_ROUNDOFF + float(gaps.max())
    error = 1.01 * deviation * deviation if mean > 0 else 0.0
    low = math.fsum(p * (k * (1 - relative) - spread)) / mass - 16 * UNIT_ROUNDOFF * mean - error
    high = float((k * (1 + relative) + spread).max()) * (1 + 8 * UNIT_ROUNDOFF) + faint_columns * 2.0**-899
    value = min(mean, high)
    return value, min(max(low, 0.0), value), high


class CentredSolution(NamedTuple):
    """Bounds of the capacity of nearly equal rows, and the distributions and divergences that prove them."""

    value: float
    lower: float
    upper: float
    p: FloatArray
    q: FloatArray
    divergences: FloatArray
    width: float  # max K - mean K, before rounding and apart from rows that do not sum to 1


def nearly_equal_rows(
    channel: FloatArray, gaps: FloatArray, rtol: float, steps: int, deadline: float
) -> CentredSolution | None:
    """The capacity of a channel whose rows are so alike that q must not be rounded; None for other channels."""
    used = channel.max(axis=0) > 0.0
    cells = channel[:, used]
    first = cells[0]
    if not (first >= _LEAST_CELL).all():
        return None
    differences = cells - first
    largest = float((np.abs(differences) / first).max())
    if not 0.0 < largest <= _NEARLY_EQUAL:
        return None
    amplified = np.ascontiguousarray(first + differences * (_AMPLIFIED / largest))
    p = solve(amplified, max(rtol, 1e-10), steps, deadline, None).p
    p = np.where(p > _LEAST_SUPPORT, p, 0.0)
    best = _centred(cells, differences, p / p.sum(), gaps)
    for _ in range(_CENTRED_STEPS):
        if best.width <= 0.01 * rtol * best.value or time.monotonic() > deadline:
            break
        shifted = _centred_step(differences, first, best)
        if shifted is None:
            break
        following = _centred(cells, differences, shifted, gaps)
        if not following.width < best.width:
            break
        best = following
    q = np.zeros(channel.shape[1])
    q[used] = best.q
    return best._replace(q=q)


def _centred(cells: FloatArray, differences: FloatArray, p: FloatArray, gaps: FloatArray) -> CentredSolution:
    """Divergences of all rows from the exact output of p, and the bounds that they prove."""
    n, m = cells.shape
    sizes = np.abs(differences)
    mean, weight = p @ differences, 1.01 * (p @ sizes)
    e, q = differences - mean, cells[0] + mean
    x = e / q
    delta = (2 * n + 10) * UNIT_ROUNDOFF * (sizes + np.abs(e) + weight)
    rho = 1.01 * UNIT_ROUNDOFF + (2 * n + 10) * UNIT_ROUNDOFF * weight / q
    reach = np.abs(x) + delta / q
    series = 0.5 + x * (-1 / 6 + x * (1 / 12 + x * (-1 / 20 + x * (1 / 30 - x / 42))))
    k = (q * x * x * series).sum(axis=1)
    error = 1.02 * (reach * (delta + 0.51 * rho * q * reach)).sum(axis=1) + (m + 30) * UNIT_ROUNDOFF * k
    spread = 1.01 * gaps * (k + np.sqrt(2.01 * k) + gaps)
    mass, value = math.fsum(p), math.fsum(p * k)
    worst = float(gaps.max())
    rounding = 16 * UNIT_ROUNDOFF * math.fsum(p * (k + error + spread))
    low = math.fsum(p * (k - error - spread)) / mass - rounding - 1.02 * worst * worst
    high = float((k + error + spread).max()) * (1.0 + 8 * UNIT_ROUNDOFF)
    value = min(value, high)
    return CentredSolution(value, min(max(low, 0.0), value), high, p, q, k, float(k.max()) - value)


def _centred_step(differences: FloatArray, first: FloatArray, solution: CentredSolution) -> FloatArray | None:
    """The input after a Newton step toward equal divergences on the support; None if there is no step."""
    support = (solution.p > 0.0) | (solution.divergences >= solution.divergences.max())
    e = differences[support] - solution.p @ differences
    rows = e / np.sqrt(first)
    matrix = np.ones((len(rows) + 1, len(rows) + 1))
    gram = rows @ rows.T
    scale = float(np.abs(gram).max())
    if not scale > 0.0:
        return None
    matrix[:-1, :-1], matrix[-1, -1] = gram / scale, 0.0
    k = solution.divergences[support]
    right = np.append((k - solution.value) / scale, 0.0)
    step = np.linalg.lstsq(matrix, right, rcond=1e-12)[0][:-1]
    p = solution.p.copy()
    p[support] = np.maximum(p[support] + step, 0.0)
    total = float(p.sum())
    return p / total if total > 0.0 and np.isfinite(total) else None


def _newton_step(b: FloatArray, point: _Iterate, low: float, deadline: float) -> _Step | None:
    """Mehrotra's step; None where the matrix cannot be factored. TimeoutError if the deadline passes meanwhile."""
    p = point.p
    b[:, -1] = 0.0
    size = np.einsum("ij,ij->i", b, b)
    b[:, -1] = math.sqrt(float(p @ size))
    weight = p / point.s
    coupling = weight * (size + b[0, -1] ** 2)
    threshold = min(_UNCOUPLED_SUM / p.size, 0.5 * float(coupling.max()))
    solve = _solver(b, weight, np.flatnonzero(coupling > threshold), deadline)
    return None if solve is None else _mehrotra_step(solve, point, low)


def _mehrotra_step(solve: _Solver, point: _Iterate, low: float) -> _Step | None:
    """Mehrotra's step by a ``solve`` for B B^T + S/P, or for that plus a constant in every entry."""
    p, s = point.p, point.s
    residual = point.multiplier - point.k - s
    items = solve(np.ones(p.size))
    scale = items.sum()

    def direction(complementarity_residual: FloatArray) -> tuple[FloatArray, FloatArray, float, float]:
        free = solve(complementarity_residual / p - residual)
        dlambda = float(free.sum() / scale)
        dp = free - dlambda * items
        ds = (complementarity_residual - s * dp) / p
        return dp, ds, dlambda, 1.0 / max(float((-dp / p).max()), float((-ds / s).max()), 1e-270)

    products = p * s
    total = float(products.sum())
    dp, ds, _, longest = direction(-products)
    length = min(1.0, longest)
    ratio = float((p + length * dp) @ (s + length * ds)) / total
    dp, ds, dlambda, longest = direction(max(ratio**3 * total, low) / p.size - products - dp * ds)
    length = min(1.0, _STEP_FRACTION * longest)
    return _Step(dp, ds, dlambda, length) if math.isfinite(dlambda) and length > 0 else None


def _solver(b: FloatArray, weight: FloatArray, coupled: IndexArray, deadline: float) -> _Solver | None:
    """The function that applies the inverse of B B^T + 1/weight, with the coupling of the rows ``coupled`` only."""
    from scipy.linalg import lapack  # slow to load, and small channels do without

    all_coupled = coupled.size == weight.size
    rows = b if all_coupled else b[coupled]
    coupled_weight = weight if all_coupled else weight[coupled]
    if rows.shape[0] <= rows.shape[1]:
        matrix = _gram(rows, deadline)
        matrix.flat[:: matrix.shape[0] + 1] += 1 / coupled_weight
    else:
        scaled = rows * np.sqrt(coupled_weight)[:, None]
        matrix = _gram(scaled.T, deadline)
        matrix.flat[:: matrix.shape[0] + 1] += 1.0
    root = _cholesky(matrix, deadline)
    if root is None:
        return None

    def solve(right: FloatArray) -> FloatArray:
        coupled_right: FloatArray = right if all_coupled else right[coupled]
        x: FloatArray
        if rows.shape[0] <= rows.shape[1]:
            x = lapack.dpotrs(root, coupled_right)[0]
        else:
            inner = lapack.dpotrs(root, rows.T @ (coupled_weight * coupled_right))[0]
            x = coupled_weight * (coupled_right - rows @ inner)
        if all_coupled:
            return x
        full: FloatArray = weight * (right - b @ (rows.T @ x))
        full[coupled] = x
        return full

    return solve


def _check_deadline(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError


def _gram(rows: FloatArray, deadline: float) -> FloatArray:
    """rows @ rows.T; if large, only the lower triangle, panel by panel, so that Ctrl-C takes effect in between."""
    n, m = rows.shape
    if n * n * m <= _MAX_MULTIPLICATIONS:
        return np.asarray(rows @ rows.T)
    matrix = np.empty((n, n))
    step = max(1, min(n, _MAX_MULTIPLICATIONS // (n * m)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        for left in range(0, stop, _PANEL):
            _check_deadline(deadline)
            right = min(left + _PANEL, stop)
            first = max(1, _MAX_MULTIPLICATIONS // ((stop - start) * (right - left)))
            part = rows[start:stop, :first] @ rows[left:right, :first].T
            for column in range(first, m, first):
                part += rows[start:stop, column : column + first] @ rows[left:right, column : column + first].T
            matrix[start:stop, left:right] = part
    return matrix


def _block_cholesky(matrix: FloatArray, deadline: float) -> tuple[FloatArray, int]:
    """Cholesky factor of the lower triangle by LAPACK's dpotrf; of a large matrix panel by panel."""
    from scipy.linalg import blas, lapack

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
            _check_deadline(deadline)
            high = min(low + _PANEL, n)
            root[low:high, start:stop] = blas.dtrsm(1.0, corner, root[low:high, start:stop].T, trans_a=1).T
            for left in range(stop, high, _PANEL):
                right = min(left + _PANEL, high)
                root[low:high, left:right] -= root[low:high, start:stop] @ root[left:right, start:stop].T
    return root.T, 0


def _cholesky(matrix: FloatArray, deadline: float) -> FloatArray | None:
    """Cholesky factor of a symmetric matrix, its diagonal increased by as little as makes it positive definite."""
    diagonal = np.diagonal(matrix).copy()
    shift = 0.0
    root: FloatArray
    for _ in range(_MAX_SHIFTS):
        root, failed = _block_cholesky(matrix, deadline)
        if not failed:
            return root
        shift = max(100 * shift, 4 * UNIT_ROUNDOFF)
        matrix.flat[:: diagonal.size + 1] = diagonal * (1 + shift)
    return None


def is_geometric(channel: object) -> bool:
    """Whether ``geometric_input`` finds the input of this channel."""
    if not isinstance(channel, GeometricMechanism):
        return False
    return channel.n >= 3 and _SMALLEST_EPSILON <= channel.epsilon <= _LARGEST_EPSILON


def geometric_input(channel: GeometricMechanism, rtol: float, deadline: float) -> FloatArray:
    """An input distribution whose two bounds are about ``rtol`` min(1, C) apart."""
    n, epsilon = channel.n, channel.epsilon
    a = math.exp(-epsilon)
    c = np.full(n, (1.0 - a) / (1.0 + a))
    c[[0, -1]] = 1.0 / (1.0 + a)

    def apply_inverse(f: FloatArray) -> FloatArray:  # K^-1 f; geometric_smoothing(f, a) is K f
        product = (1.0 + a * a) * f
        product[[0, -1]] = f[[0, -1]]
        product[1:] -= a * f[:-1]
        product[:-1] -= a * f[1:]
        return product / (1.0 - a * a)

    from scipy import linalg

    entropies = _row_entropies(n, epsilon, a, c)

    def distances(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        q = c * geometric_smoothing(p, a)
        return q, -entropies - geometric_smoothing(c * np.log(q), a)

    def step(point: _Iterate, low: float) -> _Step | None:
        bands = _bands(point.s / point.p, c * c / point.q, a)

        def solve(right: FloatArray) -> FloatArray:
            return apply_inverse(linalg.solveh_banded(bands, apply_inverse(right), check_finite=False))

        try:
            return _mehrotra_step(solve, point, low)
        except linalg.LinAlgError:
            return None

    start = np.full(n, 1.0 / n)
    return _descend(distances, step, start, rtol, 0.5 * rtol, _GEOMETRIC_STEPS, deadline).p


def _row_entropies(n: int, epsilon: float, a: float, c: FloatArray) -> FloatArray:
    """-sum over w of Q[d, w] ln Q[d, w] for every d."""
    steps = np.arange(n, dtype=np.float64)
    powers = np.exp(-epsilon * steps)
    ends = c[0] * (powers + powers[::-1])  # probability of the first and last output; each row of Q sums to 1
    moments = c[1] * np.cumsum(steps * powers)
    half = np.where(steps > 0, moments - c[1] * steps * powers + c[0] * steps * powers, 0.0)
    ends[[0, -1]] = c[0] * (1.0 + powers[-1])
    return np.asarray(epsilon * (half + half[::-1]) - ends * math.log(c[0]) - (1.0 - ends) * math.log(c[1]))


def _bands(weight: FloatArray, diagonal: FloatArray, a: float) -> FloatArray:
    """The upper diagonals of diag(diagonal) + K^-1 diag(weight) K^-1, in the band storage of LAPACK."""
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
