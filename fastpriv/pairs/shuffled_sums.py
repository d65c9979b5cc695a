"""Certified curves of shuffled reports by sums over the numbers of two kinds of reports.

Notation: n reports, E = e^(local epsilon), x = e^epsilon, Y ~ Bin(N, 1/2), and

    c = (E - x) / ((E - 1) (1 + x)),        a = (x - 1) / ((E - 1) (1 + x)),

c between 0 and 1/2. Every curve here is

    delta = factor * sum over N, M of Bin(n, q)(N) Bin(n - N, r)(M) E (N c - (n - N) a_0 - M a_1 - Y)^+:

* clones (Feldman, McMillan and Talwar 2021): q = 1/E, r = 0, factor 2 (E - 1) (1 + x) E / ((E + 1) n), no a_0, a_1.
  N - 1 is the number of clones. With N reports of two kinds the excess of P(N - Y) over x Q(N - Y) is
  2 (E - 1) (1 + x) / ((E + 1) N) times (N c - Y).
* blanket of k-ary randomised response (Balle, Bell, Gascon and Nissim 2019), p = 1 / (E + k - 1): q = 2 p, N reports of
  the two values that matter and M of the blanket's others, r = (k - 2) p / (1 - q), a_1 = a, and the factor
  (E - 1) (1 + x) / n.
* counts of data whose other reports are all of a third value: the ratio of both laws to that of n reports of the third
  value is an average over the reports. The counts of values 1 and 2, of value 3 and of all others M: r = (k - 3) p /
  (1 - q), a_0 = a / E, a_1 = a (1 - 1 / E); the same factor. A lower bound.

Both directions are equal by symmetry. Beyond epsilon = log E delta is 0.

Windows. (T - Y)^+ <= n c e^(lambda (T - Y)) for every level T <= n c and lambda >= 0. So what N and M outside windows
add is at most factor n c F^n times the probability that a binomial variable under the tilted law lies outside, F =
q e^(lambda c) (1 + e^-lambda) / 2 + (1 - q) e^(-lambda a_0) (1 - r + r e^(-lambda a_1)); N is Bin(n, q') and M is
Bin(n - N, r') there. Bernstein's inequality bounds both by e^-t beyond t/3 + sqrt(t^2/9 + 2 t variance).

Groups. One more clone is a post-processing: E (N c - Y)^+ / N does not rise with N. Where N takes many values, whole
groups of them are evaluated at their least N for the upper bound and at the largest of the group for the lower one.
"""

# bounds: proved - roundings in extended precision, and tails that are added to upper bounds

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ..kernels import _binomial_shortfalls
from .binomials import BINOMIAL_ERROR, EXTENDED_ROUNDOFF, binomial_log_probabilities
from .discrete_pairs import bounding_atoms
from .discretised_losses import PrivacyLoss, discretised
from .log_bounds import LogBounds

Form = Literal["clones", "blanket", "third_value"]

# bound: proved - nats of the terms below the first that the kernel leaves out, beside 2 log N
_WARMUP_NATS = 40.0
_TAIL_NATS = 60.0  # exponent t of what windows leave out, beside polynomial factors; it is added to upper bounds
_LARGEST_LOCAL = 100.0  # local epsilon up to which windows grow with it
_BATCH_NATS = 250.0  # log delta of the levels that one walk serves: their terms stay within the range of doubles
_MOST_STEPS = 1.5e8  # of the kernel, half a second, for a few levels
_MOST_STEPS_OF_GRIDS = 2e7  # and for more levels, which grids ask for again and again
_MOST_STEPS_OF_LOSSES = 1e8  # and for a loss on a grid
_FEW_LEVELS = 8  # up to which the larger number of steps is allowed
_MOST_POINTS = 2**21  # of a grid of losses of one sign
# bound: proved - more than the masses of cells that underflow
_LOST_MASS = 1e-300
_LAST_LEVEL = 300.0  # local epsilon beyond which sums over two numbers are not formed
# bound: proved - local epsilon beyond which clones have a probability of 1e9 e^-600 at most
_NO_CLONES = 600.0


@dataclass(frozen=True)
class ShuffleSum:
    """One curve: ``form`` of ``n`` reports with this local epsilon, over ``k`` values where that matters."""

    form: Form
    n: int
    local_epsilon: float
    k: int = 2

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Bounds of log delta at epsilon >= 0, a vector."""
        rows = np.full((3, epsilon.size), -np.inf)
        inside = np.flatnonzero(epsilon < self.local_epsilon)
        order = inside[np.argsort(-epsilon[inside], kind="stable")]  # c rises
        if order.size:
            rows[:, order] = self._inside(epsilon[order])
        return LogBounds(rows[0], rows[1], rows[2], {}, "sums over the numbers of clones")

    def _inside(self, epsilon: FloatArray) -> FloatArray:
        """Rows of value, lower and upper bound at falling levels below the local epsilon."""
        if self.form == "clones" or self.k == 2:
            levels = _Levels(self, epsilon)
            result = np.empty((3, epsilon.size))
            item = np.asarray(self.n * levels.c <= 1, dtype=bool)  # only Y = 0 counts
            item |= self.local_epsilon > _NO_CLONES  # N = 1 has all but a part n / E
            result[:, item] = levels.closed_form(item)
            start = int(item.sum())
            budget = _MOST_STEPS if epsilon.size <= _FEW_LEVELS else _MOST_STEPS_OF_GRIDS
            while start < epsilon.size:
                nats = self.n * (levels.log_moment - levels.log_moment[start])
                end = start + max(1, int(np.searchsorted(nats[start:], _BATCH_NATS)))
                result[:, start:end] = _sum_over_clones(levels, slice(start, end), budget)
                start = end
            return result
        far = epsilon.size if self.local_epsilon > _LAST_LEVEL else 0
        columns = [_counts_at(self, level) for level in epsilon[far:].tolist()]
        result = np.array(columns).reshape(-1, 3).T
        if far:  # clones are fewer than the blanket of two values has: an upper bound
            above = ShuffleSum("clones", self.n, self.local_epsilon)._inside(epsilon[:far])
            above[1] = -np.inf
            result = np.concatenate([above, result], axis=1)
        return result


class _Levels:
    """Parameters of a sum at falling epsilons, in extended precision."""

    def __init__(self, curve: ShuffleSum, epsilon: FloatArray) -> None:
        self.n, k = curve.n, np.longdouble(curve.k)
        wide, local = epsilon.astype(np.longdouble), np.longdouble(curve.local_epsilon)
        e, less = np.exp(-local), -np.expm1(-local)
        inverse = np.exp(-wide)
        self.local_epsilon = curve.local_epsilon
        self.complement = -np.expm1(wide - local)  # 1 - x / E
        self.c = inverse * self.complement / (less * (1 + inverse))
        a = e * -np.expm1(-wide) / (less * (1 + inverse))
        factor = local + np.log(less) + wide + np.log1p(inverse) - np.log(np.longdouble(self.n))
        self.r, self.r_rest, self.a0, self.a1 = np.longdouble(0), np.longdouble(1), 0 * a, 0 * a
        self.e = e
        if curve.form == "clones":
            self.q, self.q_rest = e, less
            factor = factor + np.log(np.longdouble(2)) - np.log1p(e)
        else:
            total, others = 1 + (k - 1) * e, 1 + (k - 3) * e if curve.k > 2 else less
            self.q, self.q_rest = 2 * e / total, others / total
            if curve.form == "blanket":
                self.r, self.r_rest, self.a1 = (k - 2) * e / others, less / others, a
            else:
                self.r, self.r_rest, self.a0, self.a1 = (k - 3) * e / others, 1 / others, a * e, a * less
        self.log_factor = factor
        sizes = 4 + float(abs(factor).max()) + 2 * float(local + np.log(float(self.n)))
        self.factor_error = 32 * EXTENDED_ROUNDOFF * sizes
        with np.errstate(divide="ignore", invalid="ignore"):
            c = self.c
            log_shift = -(np.log(np.longdouble(2)) + (1 - c) * np.log1p(-c) + np.where(c > 0, c * np.log(c), 0))
        self.shift = np.expm1(np.minimum(log_shift, 0))  # of e^(lambda c) (1 + e^-lambda) / 2, at its least, minus 1
        self.log_moment = np.log1p(self.q * self.shift)  # of clones: rises with c
        self.nats = _TAIL_NATS + 2 * math.log(self.n + 1.0) + min(curve.local_epsilon, _LARGEST_LOCAL)

    def closed_form(self, where: Any) -> FloatArray:
        """(E - x) / (E + 1) (1 - q / 2)^(n - 1), where n c <= 1 and there is no M."""
        value = np.log(self.complement[where]) - np.log1p(self.e) + (self.n - 1) * np.log1p(-self.q / 2)
        error = BINOMIAL_ERROR * (2 + np.abs(np.log(self.complement[where])) + np.abs(value))
        return _rounded(value, value - error, value + error)

    def left_out(self, log_moment: Any, at: Any, sides: float) -> Any:
        """Logarithm of what the windows leave out, from above."""
        with np.errstate(divide="ignore"):
            size = self.log_factor[at] + np.log(self.n * self.c[at])
        return size + self.n * log_moment * (1 - 1e-15) + math.log(2 * sides) - self.nats + 1.0


def _window(mean: Any, variance: Any, nats: float, most: Any) -> tuple[Any, Any]:
    """Integers around the mean of a binomial variable, outside of which at most 2 e^-nats lies."""
    mean, variance = (np.asarray(x, dtype=np.float64) for x in (mean, variance))
    reach = nats / 3 + np.sqrt(nats * nats / 9 + 2 * nats * variance)
    # P(X >= m) <= (e mean / m)^m, at most e^-nats from m = nats / -log(e mean) on
    few = np.where(mean < 0.1, nats / np.maximum(-np.log(np.maximum(mean, 1e-300)) - 1, 1.0), np.inf)
    return np.clip(np.floor(mean - reach) - 1, 0, most), np.clip(np.ceil(np.minimum(mean + reach, few)) + 1, 0, most)


def _warmup(n: FloatArray, y: FloatArray) -> FloatArray:
    """Terms before y whose sum is a part e^-40 of what follows, by the text of the kernel.

    Ratios of neighbouring probabilities L places below y are at most e^(-(2 L + 1) / (n + 1)), and at most that at y.
    """
    nats = _WARMUP_NATS + 2 * np.log(n + 1.0)
    with np.errstate(divide="ignore"):
        geometric = nats / np.maximum(-np.log(y / (n - y + 1.0)), 1e-300)
    return np.asarray(np.minimum(np.ceil(np.minimum(np.sqrt(nats * (n + 1.0)), geometric)) + 4.0, y))


def _pair(x: Any) -> tuple[FloatArray, FloatArray]:
    """Extended numbers as sums of two doubles."""
    high = np.asarray(x, dtype=np.float64)
    return high, np.asarray(x - high, dtype=np.float64)


def _sum_over_clones(levels: _Levels, part: slice, budget: float) -> FloatArray:
    """Rows of value, lower and upper bound at a few levels of one batch; c rises."""
    c, moment = levels.c[part], np.exp(levels.log_moment[part])
    share = levels.q * (1 + levels.shift[part]) / moment  # q', rises with c
    low, high = _window(levels.n * share, levels.n * share * (1 - share), levels.nats, levels.n)
    low, high = np.minimum.accumulate(low[::-1])[::-1], np.maximum.accumulate(high)
    low, high = np.maximum(low, 1.0), np.maximum(high, 1.0)
    counts = np.arange(low[0], high[-1] + 1.0)
    logs, errors = binomial_log_probabilities(counts, levels.n, levels.q, levels.q_rest)
    middle = counts[counts.size // 2]
    steps = float(_warmup(np.array([middle]), np.floor(middle * np.array([float(c[0])])))[0])
    steps += float((c[-1] - c[0]) * middle) + 4.0 * c.size
    stride = max(1, math.ceil(counts.size * steps / budget))
    index = np.arange(0, counts.size, stride)
    rows = counts[index]
    ends = np.append(rows[1:] - 1.0, counts[-1])
    first = np.searchsorted(high, rows, side="left").astype(np.intp)
    last = np.searchsorted(low, ends, side="right").astype(np.intp)
    used = first < last
    top = logs.max()
    masses = np.exp(logs - top) * counts
    above = np.add.reduceat(masses, index)
    below = np.add.reduceat(masses[: index[-1] + 1], np.append(0, index[:-1] + 1))
    rows, above, below, first, last = rows[used], above[used], below[used], first[used], last[used]
    start = np.maximum(np.floor(np.asarray(rows * c[first], dtype=np.float64)) - 1.0, 0.0)
    half = np.longdouble(0.5)
    at_start, start_errors = binomial_log_probabilities(start, rows, half, half)
    with np.errstate(divide="ignore"):  # masses below e^-11000 are far below the relative error
        exponents = at_start + np.log(above / rows) + top
    reference = exponents.max()
    scale = np.exp(exponents - reference).astype(np.float64)
    weights = np.ones((1, rows.size)) if stride == 1 else np.stack([np.ones(rows.size), (below / above).astype(float)])
    warmup = _warmup(rows, start)
    result = np.zeros((len(weights), 2, c.size))
    _binomial_shortfalls.shortfalls_at_shares(rows, start, scale, warmup, first, last, *_pair(c), weights, result)
    walked = float((warmup + rows * float(c[-1]) + 2.0 - start).max())
    relative = (4 * walked + rows.size + stride + 64) * UNIT_ROUNDOFF + float(errors.max() + start_errors.max())
    return _assembled(levels, part, reference, result[0], result[-1], relative, BINOMIAL_ERROR * c,
                      levels.left_out(levels.log_moment[part], part, 1.0))


@lru_cache(maxsize=2**15)  # grids with other tails ask for the same levels
def _counts_at(curve: ShuffleSum, epsilon: float) -> tuple[float, ...]:
    return tuple(_sum_over_counts(_Levels(curve, np.array([epsilon])), 0).tolist())


def _sum_over_counts(levels: _Levels, i: int) -> FloatArray:
    """Value, lower and upper bound at one level by a sum over N and M."""
    n, q, r, c, a0, a1 = levels.n, levels.q, levels.r, levels.c[i], levels.a0[i], levels.a1[i]
    tilt = _best_tilt(*(float(x) for x in (q, r, c, a0, a1)))
    two = tilt * c + np.log1p(np.expm1(-tilt) / 2)
    others = -tilt * a0 + np.log1p(r * np.expm1(-tilt * a1))
    log_moment = np.log1p(q * np.expm1(two) + levels.q_rest * np.expm1(others))
    share = q * np.exp(two - log_moment)
    low, high = _window(n * share, n * share * (1 - share), levels.nats, n)
    rows = np.arange(max(1.0, float(low)), max(1.0, float(high)) + 1.0)
    trials = n - rows
    tilted = r * np.exp(-tilt * a1) / (1 + r * np.expm1(-tilt * a1))
    first, last = _window(trials * tilted, trials * tilted * (1 - tilted), levels.nats, trials)
    top = rows * c - trials * a0
    if a1 > 0:
        last = np.minimum(last, np.floor(np.asarray(top / a1, dtype=np.float64)) + 1.0)
    last = np.minimum(last, 0.0) if r == 0 else last
    first = np.minimum(first, 0.0) if r == 0 else first
    used = (first <= last) & (last >= 0.0)
    rows, trials, first, last, top = (x[used] for x in (rows, trials, first, last, top))
    left_out = levels.left_out(log_moment, i, 2.0)
    if not rows.size:
        return _rounded(np.array([left_out]), np.array([-np.inf]), np.array([left_out]))[:, 0]
    start = np.maximum(np.floor(np.asarray(top - a1 * last, dtype=np.float64)) - 1.0, 0.0)
    half = np.longdouble(0.5)
    parts = [binomial_log_probabilities(rows, n, q, levels.q_rest), binomial_log_probabilities(start, rows, half, half)]
    if r > 0:
        parts.append(binomial_log_probabilities(last, trials, r, levels.r_rest))
    exponents = sum(part[0] for part in parts)
    reference = exponents.max()
    scale = np.exp(exponents - reference).astype(np.float64)
    warmup = _warmup(rows, start)
    odds = float(levels.r_rest / r) if r > 0 else 0.0
    step = _pair(a1)
    result = _binomial_shortfalls.shortfalls_of_mixtures(
        rows, start, scale, warmup, *_pair(top), float(step[0]), float(step[1]), first, last, float(n), odds
    )
    walked = float((warmup + np.maximum(top.astype(np.float64), 0.0) + 2.0 - start).max())
    relative = (4 * walked + 6 * float((last - first).max()) + rows.size + 64) * UNIT_ROUNDOFF
    relative += float(sum(part[1].max() for part in parts))
    sums = np.array(result).reshape(2, 1)
    rows_of_level = _assembled(levels, slice(i, i + 1), reference, sums, sums, relative, 4 * BINOMIAL_ERROR * c,
                               left_out)
    return rows_of_level[:, 0]


def clone_loss(curve: ShuffleSum, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
    """The loss of clones on the multiples of an interval, from above or from below; the curve has no M.

    The loss of N - Y and Y reports of two kinds, Y <= N / 2, is at least epsilon where Y <= N c. With the mass S of Y
    between two such levels and D = sum of mass (c - Y / N), P - x Q is 2 kappa D, kappa = (E - 1) (1 + x) / (E + 1).
    From above each mass goes to the two ends, P and Q kept; what is too close to an end to be told goes to the end
    after. From below all of a cell is one outcome. Losses of the other sign have the masses m e^-l.
    """
    last = _last_level(curve, interval, tail)
    grid = np.arange(last, -1, -1) * np.longdouble(interval)
    levels = _Levels(curve, np.minimum(grid, curve.local_epsilon))
    c, x_log = levels.c[::-1].copy(), grid[::-1]
    if x_log[-1] >= curve.local_epsilon:
        c[-1] = -1  # no loss is larger
    nats = levels.nats - math.log(tail)
    low, high = _window(levels.n * levels.q, levels.n * levels.q * levels.q_rest, nats, levels.n)
    counts = np.arange(max(1.0, float(low)), max(1.0, float(high)) + 1.0)
    steps = counts[-1] * float(0.5 - max(c[-1], 0)) + last + 4.0
    stride = max(1, math.ceil(counts.size * steps / _MOST_STEPS_OF_LOSSES))
    index = np.arange(0, counts.size, stride)
    logs, errors = binomial_log_probabilities(counts, levels.n, levels.q, levels.q_rest)
    masses = np.exp(logs) * counts / (levels.n * levels.q)  # of N - 1 clones
    if dominating:
        weights = np.add.reduceat(masses, index)
    else:
        weights = np.add.reduceat(masses[: index[-1] + 1], np.append(0, index[:-1] + 1))
    rows = counts[index]
    half = np.longdouble(0.5)
    at_middle, middle_errors = binomial_log_probabilities(np.floor(rows / 2), rows, half, half)
    scale = (np.exp(at_middle) * weights).astype(np.float64)
    result = np.zeros((3, last))
    beyond = _binomial_shortfalls.binomial_cells(rows, scale, *_pair(c), BINOMIAL_ERROR, result)
    relative = float(errors.max() + middle_errors.max()) + (4 * steps + rows.size + stride + 64) * UNIT_ROUNDOFF
    cells = result.astype(np.longdouble)
    share = c[:-1] - cells[1] / np.where(cells[0] > 0, cells[0], 1)  # mean of Y / N
    p, q = (2 * cells[0] * part / (1 + levels.e) for part in (1 - share + levels.e * share,
                                                              levels.e * (1 - share) + share))
    if not dominating:
        doubtful = 2 * cells[2] * (1 - c[:-1] + levels.e * c[:-1]) / (1 + levels.e)
        return _merged_loss(p + doubtful, q + doubtful * np.exp(-x_log[:-1]), relative + 1e-14, interval, tail)
    kappa = -np.expm1(-np.longdouble(curve.local_epsilon)) * (1 + np.exp(x_log[:-1])) / (1 + levels.e)
    up = np.minimum(2 * kappa * cells[1] / -np.expm1(-np.longdouble(interval)), p)
    positive = np.zeros(last + 2, dtype=np.longdouble)
    positive[:last] += p - up + 4e-15 * p
    positive[1 : last + 1] += up
    positive[1 : last + 1] += 2 * cells[2]
    positive *= 1 + np.longdouble(relative + 1e-14)
    beyond = 2 * beyond * (1 + relative) + 2 * math.exp(-nats) + _LOST_MASS
    total = np.concatenate([(positive * np.exp(-np.arange(last + 2) * np.longdouble(interval)))[:0:-1], positive])
    total[last + 1] += positive[0]
    total[0] += beyond
    return PrivacyLoss(-last - 1, interval, next_above(total.astype(np.float64)), float(beyond))


def _last_level(curve: ShuffleSum, interval: float, tail: float) -> int:
    """The least i with F^n at most the tail at epsilon = i interval, or beyond the local epsilon."""
    low, high = 0, max(1, math.ceil(curve.local_epsilon / interval))
    while high - low > 1:
        middle = (low + high) // 2
        levels = _Levels(curve, np.array([min(middle * interval, curve.local_epsilon)]))
        small = levels.n * float(levels.log_moment[0]) <= math.log(tail)
        low, high = (low, middle) if small else (middle, high)
    if high > _MOST_POINTS:
        raise DomainError(
            f"interval must be so large that {_MOST_POINTS} points reach the losses of the pair; got {interval!r}. "
            "Pass a larger interval."
        )
    return high


def _merged_loss(p: Any, q: Any, relative: float, interval: float, tail: float) -> PrivacyLoss:
    """The loss on a grid from below of outcomes that are cells, each known to a relative error, and their opposites."""
    selected = (p > 0) & (q > 0)
    p, q = np.concatenate([p[selected], q[selected]]), np.concatenate([q[selected], p[selected]])
    (pair,) = bounding_atoms(p, q, np.ones(p.size, dtype=bool), relative, relative).alternatives[0]
    return discretised(pair.curve, pair.curve, interval, tail, dominating=False)


def _best_tilt(q: float, r: float, c: float, a0: float, a1: float) -> float:
    """About the lambda that makes F least; every lambda gives a bound."""
    if c >= 0.5:
        return 0.0
    least = math.log1p(-c) - math.log(c)

    def moment(tilt: float) -> float:
        others = math.exp(-tilt * a0) * (1.0 + r * math.expm1(-tilt * a1))
        return q * math.exp(tilt * c) * 0.5 * (1.0 + math.exp(-tilt)) + (1.0 - q) * others

    low, high = least, 2.0 * least
    while 2.0 * high * c < 300.0 and moment(2.0 * high) < moment(high):
        high *= 2.0
    high *= 2.0
    for _ in range(40):
        third = (high - low) / 3.0
        low, high = (low, high - third) if moment(low + third) < moment(high - third) else (low + third, high)
    return 0.5 * (low + high)


def _assembled(
    levels: _Levels, part: slice, reference: Any, above: FloatArray, below: FloatArray, relative: float, shift: Any,
    left_out: Any,
) -> FloatArray:
    """Logarithms from the sums of shortfalls and of probabilities, with all errors."""
    relative += levels.factor_error + 1e-16
    scale = reference + levels.log_factor[part]
    with np.errstate(divide="ignore", under="ignore"):
        upper = above[0] * (1 + np.longdouble(relative)) + above[1] * shift * (1 + 2 * relative)
        lower = below[0] * (1 - np.longdouble(relative)) - below[1] * shift * (1 + 2 * relative)
        upper = np.logaddexp(scale + np.log(upper), left_out)
        lower = scale + np.log(np.maximum(lower, 0))
        middle = 0.5 * (above[0] + below[0])
        return _rounded(scale + np.log(middle.astype(np.longdouble)), lower, upper)


def _rounded(value: Any, lower: Any, upper: Any) -> FloatArray:
    """Rows of doubles, moved outward, of logarithms in extended precision."""
    value, lower, upper = (np.asarray(x, dtype=np.float64) for x in (value, lower, upper))
    with np.errstate(invalid="ignore"):
        upper = np.minimum(next_above(upper, 2), 0.0)
        lower = np.minimum(np.where(np.isfinite(lower), next_below(lower, 2), lower), upper)
    return np.stack([np.clip(value, lower, upper), lower, upper])
