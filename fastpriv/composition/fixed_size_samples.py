"""Delta of three and more releases of samples of fixed size, normal noise and a record replaced, along a contour.

Row that needs it: 3 x FixedSizeSampled(GaussianMechanism(2.0, 1.0), 64, 8, relation="replace_one"), whose upper bound
is 5e-11 wide here and 1.5e-7 on a grid, which takes three times as long.

Notation: release i comes k_i times and is the symmetric pair of ``two_sampled_gaussians``. With Y = e^(a d), l = log(1
+ q (Y - 1)) and x = a/2 + d, its losses are l with the density phi(x) e^l and -l with phi(x), d > 0, and 0 with the
probability m. So M(z) = E_P e^(z L) = m + c(z),

    c(z) = integral over d > 0 of phi(x) (e^((z + 1) l) + e^(-z l)).

The loss 0 keeps |M(t + i w)| above 0 for all w, and no contour sum of prod M^k ends. Outcomes with no other loss add
nothing to delta(epsilon), epsilon >= 0, and those with one other loss sum_i k_i (prod m^k / m_i) delta_i(epsilon), the
closed curve of one release; those with two are integrals of it (``two_sampled_gaussians``). The others have the
transform

    R(z) = prod M^k - prod m^k (1 + s + (s^2 - sum k (c / m)^2) / 2),   s = sum k c / m,

of a measure >= 0, to which theorem 2.1 of docs/proofs/contour.md applies: with t > 0, z_n = t + i n h and the period 2
pi / h, h / pi Re[f(z_0) / 2 + sum f(z_n)], f = e^(-epsilon z) R / (z (z + 1)), is their part of delta and aliases >=
0, at most e^(-t period) / (1 - e^(-t period)) and C(t') e^(-t' epsilon) e^(-g) / (1 - e^(-g)), g = (t' - t) period, t'
> t, as R(t') <= prod M(t')^k.

Terms beyond w = W = N h. Two integrations by parts of both parts of c, whose first ends nearly cancel, give
|c(t + i w)| <= B / w^2 with v = (1 - q) / (q Y), l' = a / (1 + v), F = (phi / l')' = -phi (x (1 + v) / a + v) and

    B = phi / l' + 2 |F| / l' at d = 0 + integral of |(F / l')'| (e^((t + 1) l) + e^(-t l)),
    |(F / l')'| <= (phi / a) (x Q + 2 v (1 + v) x + (1 + v)^2 / a + a v (1 + 2 v)),  Q = (1 + v)^2 x / a + v (1 + v).

Each factor is monotone in d: cells are bounded at their ends. With b_i = B_i / w^2 |R| is at most the terms of order 3
and more of prod (m + b)^k, so at most G^3 / 6 prod (m + b)^k, G = sum k b / (m + b), and this falls at least like
w^-6: the terms beyond W sum to at most 1 / (7 pi W) of it at W.

Quadrature. Gauss-Legendre sums over cells of d, whose integrands are bounded on ellipses: |phi(x + i y)| <= e^(y^2 /
2) phi(Re x), |1 - q + q Y| <= 1 - q + q |Y|, Re (1 - q + q Y) >= 1 - q + q |Y| cos(a y), and |Im l| is at most the
angle of which the tangent is sin(a y) / ((1 - q) / (q |Y|) + cos(a y)). Beyond the last cell at X, (1 - q + q Y) / Y
falls, and x^2 <= X^2 e^(x - X) for X >= 2. Frequencies are products e^(i w l) = e^(i n h l) e^(i j h l): their sums
over all nodes are products of matrices.

Rounding. delta rises with a and q, so that doubles around them bound it. Of a node d errs by 3 u d, l by 8 u (a d s +
l + s), s = 1 / (1 + v), the logarithm of a term by u (32 + 4 x^2 + 4 (t + 1) (l + 1) + 3 d (x + (t + 1) a)) and (t +
1) times the error of l, an angle by w times that of l and 4 u w l; a sum of n numbers in blocks of b by (b + n / b) u.
"""

# bounds: proved - truncation and roundings, by the text above

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import special
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..base.quadrature_rules import ellipse_axes, gauss_legendre, log_gauss_error
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair
from .two_sampled_gaussians import LARGEST_EPSILON, both_moved_bounds

_NODES = 24  # of the Gauss-Legendre rule of a cell
_BLOCK = 256  # nodes of one product of matrices
# bound: none - logarithm of the errors that are aimed at, relative to M(t) and to the first term
_AIM = -31.0
# bound: none - products of nodes and frequencies of a table, and nodes and frequencies, beyond which grids are quicker
_MOST_WORK, _MOST_NODES, _MOST_FREQUENCIES = 4e8, 2e5, 2e5
_STEPS_OF_TILTS, _MOST_DOUBLINGS = 8, 20  # values of t to a factor of 2, and factors to either side of 1
_CELLS = 4096  # of the bound B
# bound: proved - the distance in sigmas of the last node from the mean of the tilted normal distribution
_REACH = 9.0
# bound: proved - relative error of m, as theorem 1.2 of docs/proofs/gaussian.md has 5e-15 (1 + 2 |log m|)
_ATOM_ERROR = 2e-14
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)  # of the normal density
_Releases = tuple[tuple[float, float, int], ...]  # a, q and how often


def fixed_size_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at each epsilon >= 0; None where a pair is no such sample, and where sums take too long."""
    sampled = [(pair.sampled_gaussian, pair.count) for pair in pairs]
    known = [(pair, count) for pair, count in sampled if pair is not None and pair.order == "symmetric"]
    if len(known) < len(pairs):
        return None
    rows = np.array([np.full(epsilon.size, -math.inf), np.zeros(epsilon.size)])
    exact = all(pair.exact for pair, _ in known)
    for side in (0,) if exact else (0, 1):
        releases = tuple((pair.ratio[side], pair.rate[side], count) for pair, count in known)
        for i, level in enumerate(epsilon.tolist()):
            low, high = _log_delta(releases, level, [(pair, count, side) for pair, count in known])
            if exact or side == 0:
                rows[0, i] = low
            if exact or side == 1:
                rows[1, i] = high
    return LogBounds.of_bounds(rows[0], np.maximum(rows[1], rows[0]), {}, "contour sum without the loss 0")


class _Sums(NamedTuple):
    """Terms R(z_n) / e^scale for the frequencies n h, their errors, and logarithms of what is beyond and of aliases."""

    t: float
    h: float
    scale: float  # sum k log M(t)
    terms: Any
    errors: FloatArray
    beyond: float


def _log_delta(releases: _Releases, epsilon: float, pairs: Any) -> tuple[float, float]:
    if epsilon > LARGEST_EPSILON:
        return -math.inf, 0.0
    t = _tilt(releases, epsilon)
    moment = sum(k * _moment(a, q, t)[1] for a, q, k in releases)
    top = moment - t * epsilon - math.log(t * (t + 1.0))  # of the first term
    period, log_alias = _period(releases, epsilon, t, top)
    if not period < math.inf:
        return -math.inf, 0.0
    sums = _sums(releases, t, 2.0 * math.pi / period)
    if sums is None:
        return -math.inf, 0.0
    unit, h = UNIT_ROUNDOFF, sums.h
    w = h * np.arange(sums.terms.size)
    z = t + 1j * w
    factors = np.exp(-1j * (w * epsilon)) * (t * (t + 1.0)) / (z * (z + 1.0))
    terms, sizes = (sums.terms * factors).real, np.abs(factors)
    terms[0], sizes[0] = 0.5 * terms[0], 0.5 * sizes[0]
    error = float(sizes @ (sums.errors + np.abs(sums.terms) * unit * (16.0 + 2.0 * w * epsilon))) * (1.0 + 1e-9)
    error = h / math.pi * error + t * (t + 1.0) / math.pi * math.exp(sums.beyond)
    value = h / math.pi * math.fsum(terms.tolist())
    error += abs(value) * 8.0 * unit
    rounding = unit * (16.0 + 8.0 * (abs(sums.scale) + t * epsilon) + 4.0 * sum(k for *_, k in releases))
    low = value - error - math.exp(min(log_alias - top, 700.0)) * 1.001
    few, slack = _few_other_losses(releases, epsilon, pairs)
    logs = [math.log(end) + top if end > 0.0 else -math.inf for end in (low, value + error)]
    ends = np.logaddexp(logs, few)
    slack = (slack + rounding) * (1.0 + 1e-9)
    return float(ends[0]) - slack, min(float(ends[1]) + slack, 0.0)


def _few_other_losses(releases: _Releases, epsilon: float, pairs: Any) -> tuple[FloatArray, float]:
    """Bounds of the logarithm of what outcomes with one or two losses other than 0 add, and their error."""
    log_atoms = [_log_atom(a, q) for a, q, _ in releases]
    none = sum(k * log for (*_, k), log in zip(releases, log_atoms, strict=True))
    parts, level = [], np.array([epsilon])
    for i, (first, count, side) in enumerate(pairs):
        curve = special.sampled_gaussian_log_delta_remove(first.sigma[side], first.rate[side], epsilon)
        parts.append(np.array(curve[1:]) + math.log(count) + (none - log_atoms[i]))
        for j, (second, other, _) in enumerate(pairs[: i + 1]):
            ways = count * (count - 1) // 2 if i == j else count * other
            if ways:
                both = np.ravel(both_moved_bounds(first, second, side, level))
                parts.append(both + math.log(ways) + (none - log_atoms[i] - log_atoms[j]))
    error = _ATOM_ERROR * sum(k * (1.0 + abs(log)) for (*_, k), log in zip(releases, log_atoms, strict=True))
    return np.asarray(np.logaddexp.reduce(parts)), error + 8.0 * UNIT_ROUNDOFF * len(parts)


def _log_atom(a: float, q: float) -> float:
    """log m."""
    return math.log1p(-q) + float(special.gaussian_log_delta(0.5 * a, 0.0))


def _losses(a: float, q: float, d: FloatArray) -> FloatArray:
    """l at d."""
    y = a * d
    with np.errstate(over="ignore"):
        return np.where(y < 30.0, np.log1p(q * np.expm1(np.minimum(y, 30.0))),
                        math.log(q) + y + np.log1p((1.0 - q) / q * np.exp(-y)))


def _end(a: float, t: float) -> float:
    """The last d."""
    return _REACH + (t + 0.5) * a


def _log_beyond(a: float, q: float, t: float) -> float:
    """log of the integral of phi e^((t + 1) l) (x / X)^2 beyond the last d, at least that of both parts of c."""
    end, b = _end(a, t), (t + 1.0) * a + 1.0
    start = end + 0.5 * a
    log_ratio = float(np.logaddexp(math.log(q), math.log1p(-q) - a * end))
    size = (t + 1.0) * (abs(log_ratio) + 0.5 * a * a) + 0.5 * b * b + start
    return ((t + 1.0) * (log_ratio - 0.5 * a * a) + 0.5 * b * b - start + float(special.log_ndtr(b - start))
            + 1e-12 * (1.0 + size) + math.log(2.0))


def _cells(a: float, q: float, t: float, w: float, log_scale: float) -> tuple[FloatArray, FloatArray, float] | None:
    """Middles and half lengths of cells for frequencies up to w, and the log of their error; None if too many."""
    edges = np.linspace(0.0, _end(a, t), math.ceil(2.0 * _end(a, t)) + 1)
    low, high, left_out = edges[:-1], edges[1:], np.array([-math.inf])
    done: list[tuple[FloatArray, ...]] = []
    while low.size:
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        reach, height = ellipse_axes(half)
        angle = np.minimum(a * height, 1.5)
        first, last = a * (middle - reach), a * (middle + reach)
        nearest = np.maximum(middle - reach + 0.5 * a, 0.0)
        with np.errstate(over="ignore", divide="ignore"):
            most = np.logaddexp(math.log1p(-q), math.log(q) + last)
            least = np.logaddexp(math.log1p(-q), math.log(q) + first + np.log(np.cos(angle)))
            turn = np.arctan(np.sin(angle) / ((1.0 - q) / q * np.exp(-last) + np.cos(angle)))
        bound = 0.5 * (height**2 - nearest**2) + np.maximum((t + 1.0) * most, -t * least) + w * turn
        bound += math.log(2.0) - _HALF_LOG_TWO_PI + 1e-9 * (1.0 + np.abs(bound))
        errors = log_gauss_error(np.where(a * height < 1.5, bound, math.inf), _NODES) + np.log(half)
        whole = np.log(4.0 * half) - 0.5 * (low + 0.5 * a) ** 2 - _HALF_LOG_TWO_PI + (t + 1.0) * _losses(a, q, high)
        small = whole + 1e-9 * (1.0 + np.abs(whole)) <= log_scale + _AIM  # bounded and left out
        ready = (errors <= log_scale + _AIM) & ~small
        left_out = np.concatenate([left_out, whole[small], errors[ready]])
        done.append((middle[ready], half[ready]))
        split = ~(ready | small)
        low, middle, high = low[split], middle[split], high[split]
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        if (sum(item[0].size for item in done) + low.size) * _NODES > _MOST_NODES:
            return None
    middle, half = (np.concatenate(column) for column in zip(*done, strict=True))
    order = np.argsort(middle)
    return middle[order], half[order], float(np.logaddexp.reduce(left_out)) + 1e-9


def _terms(a: float, q: float, t: float, middle: FloatArray, half: FloatArray) -> tuple[FloatArray, ...]:
    """At all nodes: l, the logarithms of both terms, and the errors of l and of the logarithms."""
    nodes, _, weights = gauss_legendre(_NODES)
    d = (middle[:, None] + half[:, None] * (2.0 * nodes - 1.0)).ravel()
    log_weights = np.log(2.0 * half[:, None] * weights).ravel()
    losses, x = _losses(a, q, d), d + 0.5 * a
    density = log_weights - 0.5 * x * x - _HALF_LOG_TWO_PI
    share = 1.0 / (1.0 + (1.0 - q) / q * np.exp(-a * d))
    loss_errors = 8.0 * UNIT_ROUNDOFF * (a * d * share + losses + share)
    errors = UNIT_ROUNDOFF * (32.0 + 4.0 * x * x + 4.0 * (t + 1.0) * (losses + 1.0) + 3.0 * d * (x + (t + 1.0) * a)
                              + np.abs(log_weights) * 2.0) + (t + 1.0) * loss_errors
    return losses, density + (t + 1.0) * losses, density - t * losses, loss_errors, errors


@lru_cache(maxsize=1024)
def _moment(a: float, q: float, t: float) -> tuple[float, float]:
    """An upper bound of log M(t), and a number near it; infinite where it takes too many nodes."""
    log_atom = _log_atom(a, q)
    edges = np.linspace(0.0, _end(a, t), math.ceil(8.0 * _end(a, t)) + 1)
    _, up, down, _, _ = _terms(a, q, t, 0.5 * (edges[:-1] + edges[1:]), 0.5 * np.diff(edges))
    near = float(np.logaddexp.reduce(np.concatenate([up, down, [log_atom]])))
    cells = _cells(a, q, t, 0.0, near)
    if cells is None:
        return math.inf, near
    _, up, down, _, errors = _terms(a, q, t, *cells[:2])
    others = [log_atom + _ATOM_ERROR * (1.0 + abs(log_atom)), cells[2], _log_beyond(a, q, t)]
    return float(np.logaddexp.reduce(np.concatenate([up + errors, down + errors, others]))) + 1e-11, near


def _tilt(releases: _Releases, epsilon: float) -> float:
    """t on a grid, where the first term of the sum is about the least."""
    def size(step: int) -> float:
        t = math.exp2(step / _STEPS_OF_TILTS)
        return math.fsum(k * _moment(a, q, t)[1] for a, q, k in releases) - t * epsilon - math.log(t * (t + 1.0))

    low, high = -_MOST_DOUBLINGS * _STEPS_OF_TILTS, _MOST_DOUBLINGS * _STEPS_OF_TILTS
    far = max(a for a, _, _ in releases)
    while high > low and _end(far, math.exp2(high / _STEPS_OF_TILTS)) * 8.0 * _NODES > _MOST_NODES:
        high -= 1
    while high - low > 2:
        middle = (low + high) // 2
        low, high = (low, middle + 1) if size(middle) <= size(middle + 1) else (middle, high)
    return math.exp2(min(range(low, high + 1), key=size) / _STEPS_OF_TILTS)


def _period(releases: _Releases, epsilon: float, t: float, top: float) -> tuple[float, float]:
    """A period, of few values, whose aliases are small, and the logarithm of their bound; infinite if there is none."""
    best = math.inf, math.inf
    choices = []
    for factor in (1.125, 1.25, 1.5, 2.0, 3.0, 5.0):
        other = factor * t
        if _end(max(a for a, _, _ in releases), other) * 8.0 * _NODES > _MOST_NODES:
            continue
        log_moment = sum(k * _moment(a, q, other)[0] for a, q, k in releases)
        chernoff = other * math.log(other) - (1.0 + other) * math.log1p(other) + log_moment - other * epsilon
        choices.append((other - t, chernoff + 1e-12 * (1.0 + abs(chernoff) + other * (1.0 + epsilon))))
    for gap, chernoff in choices:
        needed = max((-_AIM - top) / t, (chernoff - top - _AIM) / gap, 1.0 / t)
        period = 2.0 ** (math.ceil(4.0 * math.log2(needed)) / 4.0)
        logs = [start - fall - math.log(-math.expm1(-fall)) for start, fall in ((0.0, t * period * (1 - 1e-14)),
                                                                                (chernoff, gap * period * (1 - 1e-14)))]
        best = min(best, (period, float(np.logaddexp(*logs)) + 1e-11))
    return best


def _decay(a: float, q: float, t: float) -> float:
    """log B."""
    end = _end(a, t)
    edges = np.linspace(0.0, end, _CELLS + 1)
    losses, x, v = _losses(a, q, edges), edges + 0.5 * a, (1.0 - q) / q * np.exp(-a * edges)
    low, high = slice(None, -1), slice(1, None)

    def slope(x: Any, v: Any) -> Any:
        return (x * ((1.0 + v) ** 2 * x / a + v * (1.0 + v)) + 2.0 * v * (1.0 + v) * x + (1.0 + v) ** 2 / a
                + a * v * (1.0 + 2.0 * v)) / a

    logs = -0.5 * x[low] ** 2 - _HALF_LOG_TWO_PI + np.log(slope(x[high], v[low])) + math.log(end / _CELLS)
    both = np.logaddexp((t + 1.0) * losses[high], -t * losses[low]) + logs
    start = -a * a / 8.0 - _HALF_LOG_TWO_PI - math.log(a * q)
    corner = start + math.log(1.0 + (1.0 + v[0]) + 2.0 * v[0])
    beyond = _log_beyond(a, q, t) + math.log(slope(x[-1], v[-1]))
    return float(np.logaddexp.reduce(np.concatenate([both, [corner, beyond]]))) + 1e-9 * (1.0 + t * float(losses[-1]))


@lru_cache(maxsize=8)
def _sums(releases: _Releases, t: float, h: float) -> _Sums | None:
    scales = [_moment(a, q, t)[1] for a, q, _ in releases]
    atoms = [_log_atom(a, q) - scale for (a, q, _), scale in zip(releases, scales, strict=True)]
    decays = [_decay(a, q, t) - scale for (a, q, _), scale in zip(releases, scales, strict=True)]
    counts = [k for *_, k in releases]

    def log_remainder(w: float) -> float:
        """log of the bound of |R| at W, over 7 W, less the scale."""
        total = growth = 0.0
        for atom, decay, k in zip(atoms, decays, counts, strict=True):
            both = float(np.logaddexp(atom, decay - 2.0 * math.log(w)))
            total, growth = total + k * both, growth + k * math.exp(decay - 2.0 * math.log(w) - both)
        return total + min(0.0, 3.0 * math.log(growth) - math.log(6.0)) - math.log(7.0 * w)

    aim, last = _AIM - math.log(t * (t + 1.0)), math.ceil(_MOST_FREQUENCIES)
    steps = 16
    while log_remainder(steps * h) > aim:
        steps += math.ceil(0.125 * steps)
        if steps > last:
            return None
    side = math.isqrt(steps) + 1
    terms, errors = np.empty((len(releases), side * side), dtype=np.complex128), np.empty((len(releases), side * side))
    w = h * np.arange(side * side)
    all_cells = []
    for (a, q, _), scale in zip(releases, scales, strict=True):
        cells = _cells(a, q, t, float(w[-1]), scale)
        if cells is None or cells[0].size * _NODES * w.size * len(releases) > _MOST_WORK:
            return None
        all_cells.append(cells)
    for i, ((a, q, _), scale, cells) in enumerate(zip(releases, scales, all_cells, strict=True)):
        losses, up, down, loss_errors, log_errors = _terms(a, q, t, *cells[:2])
        weights = np.exp(np.stack([up, down]) - scale)
        total = np.zeros((2, side, side), dtype=np.complex128)
        for start in range(0, losses.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            fine = np.exp(1j * (h * np.arange(side))[:, None] * losses[block])
            coarse = np.exp(1j * (h * side * np.arange(side))[:, None] * losses[block])
            total += (weights[:, None, block] * coarse) @ fine.T
        terms[i] = (total[0] + total[1].conj()).ravel()
        sizes = weights.sum(axis=0)
        whole = float(sizes.sum())
        summed = 4.0 * UNIT_ROUNDOFF * (_BLOCK + losses.size / _BLOCK + 8.0) * whole
        angle_error = float(sizes @ (loss_errors + 4.0 * UNIT_ROUNDOFF * losses))
        left_out = math.exp(cells[2] - scale) + math.exp(_log_beyond(a, q, t) - scale)
        rounding = float(sizes @ (log_errors + 4.0 * UNIT_ROUNDOFF * abs(scale)))
        errors[i] = (rounding + summed + left_out) * 1.001 + w * angle_error
    none = math.exp(sum(k * atom for k, atom in zip(counts, atoms, strict=True)))
    logs, limits, sizes, shares, squares, share_errors = np.zeros((6, w.size), dtype=np.complex128)
    for atom, k, c, error in zip(atoms, counts, terms, errors, strict=True):
        ratio, share = math.exp(atom) + c, c * math.exp(-atom)
        error = error + _ATOM_ERROR * (1.0 + abs(atom)) * math.exp(atom)
        with np.errstate(divide="ignore"):
            log = np.log(ratio)
            limits += k * np.log(np.abs(ratio) + error)
        logs, sizes = logs + k * log, sizes + k * (np.abs(log) + 1.0)
        shares, squares = shares + k * share, squares + k * share * share
        share_errors += k * (error * math.exp(-atom) + np.abs(share) * _ATOM_ERROR * (2.0 + abs(atom)))
    with np.errstate(invalid="ignore"):
        product = np.exp(logs)
    largest, size = np.exp(limits.real), np.abs(product)
    wrong = largest - size + largest * UNIT_ROUNDOFF * (16.0 + 8.0 * np.nan_to_num(sizes.real, posinf=0.0))
    few = 1.0 + np.abs(shares) + np.abs(shares) ** 2 + np.abs(squares)
    none_error = sum(k * _ATOM_ERROR * (2.0 + abs(atom)) for k, atom in zip(counts, atoms, strict=True))
    wrong += none * (few * (none_error + 16.0 * UNIT_ROUNDOFF) + 3.0 * share_errors.real * (1.0 + np.abs(shares)))
    remainder = product - none * (1.0 + shares + 0.5 * (shares * shares - squares))
    scale = sum(k * item for k, item in zip(counts, scales, strict=True))
    return _Sums(t, h, scale, remainder, wrong, log_remainder(float(w[-1])))
