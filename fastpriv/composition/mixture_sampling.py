"""Importance sampling of delta of a mixture of shifted normal laws against one, with a bound of what is cut.

Notation: P = average over i = 1..b of N(m_i, I), Q = N(0, I), y_i = <m_i, x>, normal under Q with covariances G_ij =
<m_i, m_j> >= 0, g_i = G_ii, Y_i = e^(y_i - g_i/2), R = dP/dQ the average of Y_i, c = e^epsilon; f = (R - c)^+ for
removal and f = (1 - c R)^+ for addition, so that delta = E_Q f.

Proposals. h = sum over k of a_k times the average over i of N(sum_j u_kij m_j, I). Each u_ki is the least tilt, nearly,
by which R is c on average and y_i a given number s_k, from all y being alike (s_k least) to y_i alone being large (s_k
largest): u_j is in proportion to e^(y_j) for j != i, a fixed point. The a_k are fitted to a pilot sample. h / Q is a
sum of exponentials of linear functions of y, so that w = f Q / h costs products of matrices.

Bound of what is cut. Means of min(w, T) are estimated, whose values lie in a known range, and the rest is bounded:

    E_h (w - T)^+ <= r^r (1 + r)^-(1 + r) T^-r E_Q f^(1 + r) (Q / h)^r,   r >= 0.

Q / h <= e^(-l - <u, y> + v/2) / a_k for the mean u and v of a set of tilts of one k and l = log(size / b) (Jensen), and
f^(1 + r) <= ((1 + r) / (e q))^(1 + r) e^(q (R - c)) for any q > 0. The linear function moves y by d = -r G u and
leaves the mean of a product of functions F_j(y_j). If p_j >= 1 and diag(p_j C_jj) - C is positive semidefinite for the
covariances C of normal variables, then (Chen, Dafnis and Paouris 2015)

    E prod F_j(y_j) <= prod (E F_j(y_j)^p_j)^(1 / p_j).

p_j = sum_k |C_jk| w_k / (C_jj w_j) will do for any weights w > 0: the matrix is then the sum of
|C_jk| w_j w_k (x_j / w_j -+ x_k / w_k)^2 / 2. The functions are e^(q Y_j / b), cut where the set of x ends:

* all y_j <= s: C = G;
* y_i in a short interval (s, s'] and y_j <= y_i: given y_i, C = G - G_i G_i' / g_i, with the means at s' and the cut of
  the ends s and s', and the chance of the interval; summed over i and intervals;
* some y_i > s: E_Q f is at most the sum over i of E_Q R 1(y_i > s), a sum of normal tails.

For addition F_j = e^(-q c Y_j / b) and the set is everything. Means of F^p are sums over cells with chords where F is
convex, Jensen's inequality where it is concave, and the larger end otherwise.

Sources: Chen, Dafnis and Paouris, Advances in Mathematics 280, 2015, theorem 1 (products); Owen, Monte Carlo theory,
methods and examples, 2013, chapter 9 (mixtures of proposals).
"""

# bounds: proved - rounding of logarithms of bounds

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import special
from ..base import random_streams
from ..base.inverse import bisect
from ..base.numerics import FloatArray
from ..base.values import distinct_rows
from ..kernels import _matrix_product

__all__ = ["Covariances", "Proposals", "fitted_proposals", "log_remainder"]

_COMPONENTS = 10  # s_k
_PATH_STEPS, _HALVINGS = 40, 40  # of the fixed points, and of the level of R in each
_PILOT_SAMPLES, _PILOT_ROUNDS = 2000, 3
_LENGTHS = (0.7, 0.85, 1.0, 1.2)  # of tilts for addition, in units of the one by which R is 1/c on average
_EQUAL_SHARE = 0.2  # of the weights a_k, whatever the pilot sample says
_ORDERS = (0.25, 1.0, 3.0)  # r, at first
_POWERS = (0.0, 0.5, 1.0)  # weights w_j are these powers of e^(mean of y_j)
_EDGES = np.linspace(-8.0, 37.0, 181)  # of cells, in standard deviations
_RATES = 12  # values of q at a time
# bound: proved - to the logarithm of a bound: sums of 1e4 terms, exponents below 1e5
_LOG_ALLOWANCE = 1e-8
_GRID = 1e-5  # of shifts: rounded up, so that functions which are nearly alike are alike
_STEP, _PIECES = 0.25, 4  # intervals of y_i, in standard deviations, and how many one is cut into
_SINGLE, _TOGETHER = 12, 6  # pairs of bins from both ends that are bounded one by one, and others together
_MOST_TERMS = 4e7  # of sums over cells, after which no better choices are looked for: about two seconds


@dataclass(frozen=True, eq=False)
class Covariances:
    """G, and ``draw(rng, size)``: samples of y under Q, by rows."""

    g: FloatArray
    draw: Callable[[np.random.Generator, int], FloatArray]

    @property
    def bins(self) -> int:
        """b."""
        return len(self.g)


@dataclass(frozen=True, eq=False)
class Proposals:
    """The law h: tilts of shape (k, i, j), shifts G u, variances u' G u, weights, and levels s_k."""

    covariances: Covariances
    epsilon: float
    adds: bool
    tilts: FloatArray
    shifts: FloatArray
    variances: FloatArray
    levels: FloatArray
    weights: FloatArray
    log_delta: float  # of the pilot sample

    def log_values(self, rng: np.random.Generator, size: int) -> tuple[FloatArray, FloatArray]:
        """Logarithms of w for samples of h, and the share of each a_k in h, shape (size, k)."""
        covariances = self.covariances
        sums = np.cumsum(self.weights)
        kind = np.minimum(np.searchsorted(sums, rng.random(size) * sums[-1], side="right"), len(sums) - 1)
        y = covariances.draw(rng, size) + self.shifts[kind, rng.integers(0, self.tilts.shape[1], size)]
        logs = np.empty((size, len(sums)))
        for k, tilts in enumerate(self.tilts):
            logs[:, k] = _log_mean(_matrix_product.product(y, tilts) - 0.5 * self.variances[k])
        top = logs.max(axis=1, keepdims=True)
        parts = special.exp(np.maximum(logs - top, -700.0)) * self.weights
        total = parts.sum(axis=1, keepdims=True)
        log_ratio = _log_mean(y - 0.5 * np.diagonal(covariances.g))
        if self.adds:
            log_loss = special.log(np.maximum(-special.expm1(np.minimum(self.epsilon + log_ratio, 0.0)), 1e-300))
            inside = log_ratio < -self.epsilon
        else:
            rest = np.maximum(-special.expm1(np.minimum(self.epsilon - log_ratio, 0.0)), 1e-300)
            log_loss = log_ratio + special.log(rest)
            inside = log_ratio > self.epsilon
        values = np.where(inside, log_loss - top[:, 0] - special.log(total[:, 0]), -np.inf)
        return values, parts / total


def _log_mean(exponents: FloatArray) -> FloatArray:
    """Logarithm of the mean of e^x over the last axis."""
    top = exponents.max(axis=-1, keepdims=True)
    sums = special.exp(np.maximum(exponents - top, -700.0)).sum(axis=-1)
    return np.asarray(top[..., 0] + special.log(sums / exponents.shape[-1]))


def fitted_proposals(covariances: Covariances, epsilon: float, adds: bool, root: Any) -> Proposals:
    """Tilts along the path of s_k, with weights fitted to pilot samples from the streams of ``root``."""
    g = covariances.g
    levels, tilts = _addition_tilts(g, epsilon) if adds else _removal_tilts(g, epsilon)
    shifts = np.stack([_matrix_product.product(u, g) for u in tilts])
    variances = (shifts * tilts).sum(axis=-1)
    energies = 0.5 * variances.mean(axis=1)
    weights = special.exp(np.maximum(0.5 * (energies.min() - energies), -700.0))
    weights = 0.5 * weights / weights.sum() + 0.5 / len(weights)
    log_delta = -math.inf
    for turn in range(_PILOT_ROUNDS + 1):
        one = Proposals(covariances, epsilon, adds, tilts, shifts, variances, levels, weights, log_delta)
        rng = random_streams.generator(np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, 2**31 + turn)))
        values, parts = one.log_values(rng, _PILOT_SAMPLES)
        top = float(values.max())
        if top == -math.inf:
            return one
        w = special.exp(np.maximum(values - top, -700.0))
        log_delta = top + math.log(float(w.mean()))
        fitted = (w[:, None] * parts).sum(axis=0) / w.sum()
        weights = (1.0 - _EQUAL_SHARE) * fitted + _EQUAL_SHARE / len(fitted)
    return Proposals(covariances, epsilon, adds, tilts, shifts, variances, levels, weights, log_delta)


def _removal_tilts(g: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Levels s_k, and u_kij, shape (k, b, b)."""
    b, own = len(g), np.arange(len(g))
    diagonal = np.diagonal(g)
    target = math.log(b) + epsilon
    levels = np.linspace(epsilon, target + 0.5 * float(diagonal.max()), _COMPONENTS)
    slopes = g / diagonal[:, None]
    tilts = np.empty((_COMPONENTS, b, b))
    for k, level in enumerate(levels):
        u = np.diag(level / diagonal)
        for _ in range(_PATH_STEPS):
            y = _matrix_product.product(u, g)
            weights = special.exp(np.clip(y - y[own, own][:, None], -700.0, 0.0))
            weights[own, own] = 0.0
            moved = _matrix_product.product(weights, g)
            rates = moved - moved[own, own][:, None] * slopes

            def target_is_reached(length: FloatArray, level: float = level, rates: FloatArray = rates) -> Any:
                terms = special.exp(np.clip(level * slopes + length[:, None] * rates, -700.0, 700.0))
                terms[own, own] = special.exp(np.full(b, min(level, 700.0)) - 0.5 * diagonal)
                return terms.sum(axis=1) >= math.exp(min(target, 700.0))

            _, high = bisect(target_is_reached, np.zeros(b), np.full(b, 1e4), _HALVINGS)
            u *= 0.5
            u += 0.5 * high[:, None] * weights
            u[own, own] += 0.5 * (level - high * moved[own, own]) / diagonal
        tilts[k] = u
    return levels, tilts


def _addition_tilts(g: FloatArray, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Tilts of all y alike towards R = e^-epsilon, of several lengths; shape (k, 1, b), the same for all i."""
    b = len(g)
    scale = g.mean(axis=1)
    levels, tilts = np.empty(len(_LENGTHS)), np.empty((len(_LENGTHS), 1, b))
    _, high = bisect(
        lambda x: float(special.exp(np.maximum(-x * scale, -700.0)).mean()) <= math.exp(-epsilon), 0.0, 1e6, 60
    )
    for k, part in enumerate(_LENGTHS):
        levels[k] = -part * high
        tilts[k] = levels[k] / b
    return levels, tilts


def log_remainder(one: Proposals, log_cut: float, limit: float) -> float:
    """Logarithm of a bound of E_h (w - T)^+, T = e^log_cut; inf where it would exceed ``limit`` (a logarithm)."""
    bound = _Remainder(one, log_cut)
    found = bound.of_addition() if one.adds else bound.of_removal(limit)
    return found + _LOG_ALLOWANCE if found <= limit else math.inf


# probabilities of the cells of a normal variable
_MASSES = special.ndtr_difference(_EDGES[:-1], _EDGES[1:])
# their logarithms, from above
_LOG_MASSES = special.log(np.maximum(_MASSES, 1e-320)) + 1e-12
# of what lies beyond the first and the last edge
_LOG_LOWEST, _LOG_HIGHEST = (float(special.log_ndtr(x)) + 1e-12 for x in (_EDGES[0], -_EDGES[-1]))
# densities at the edges
_DENSITIES = special.exp(np.maximum(-0.5 * _EDGES**2, -740.0)) / math.sqrt(2.0 * math.pi)
# means of cells
_CENTROIDS = np.clip((_DENSITIES[:-1] - _DENSITIES[1:]) / np.maximum(_MASSES, 1e-320), _EDGES[:-1], _EDGES[1:])
# shares of the right ends in the chords, at the means of cells
_SHARES = np.minimum((_CENTROIDS - _EDGES[:-1]) / np.diff(_EDGES) + 1e-9, 1.0)


class _Choice(NamedTuple):
    """What a bound was found with: its logarithm, the tilts k and their set, r, and the power of weights."""

    log_bound: float
    kind: int
    width: int
    order: float
    power: float


class _Variables(NamedTuple):
    """Sets of y_j - g_j/2 alike: counts, shifts, least and largest deviations, cuts, in deviations, and powers p_j."""

    counts: FloatArray
    shifts: FloatArray
    least: FloatArray
    largest: FloatArray
    cuts: FloatArray
    powers: FloatArray


class _Remainder:
    """The bound for one cut T, by its parts."""

    def __init__(self, one: Proposals, log_cut: float) -> None:
        self.one, self.log_cut = one, log_cut
        self.g = one.covariances.g
        self.own = np.diagonal(self.g)
        self.bins = len(self.g)
        self.spent, self.rate = 0, 0.0

    def of_addition(self) -> float:
        """Everything is one set."""
        best = math.inf
        for kind in range(len(self.one.levels)):
            for order in (1.0, 2.0, 4.0, 8.0):
                best = min(best, self._of_all(math.inf, kind, order, 0.0))
        return best

    def of_removal(self, limit: float) -> float:
        """The set where all y are at most a number, and the rest by intervals, from above; the best such number."""
        negligible_log = self.one.log_delta + math.log(2e-5)
        deviation = math.sqrt(float(self.own.max()))
        top = math.log(self.bins) + self.one.epsilon + 0.5 * float(self.own.max())
        while self._beyond(top) > negligible_log:
            top += deviation
        first = min(float(self.one.levels[0]), top / 3.0)
        edges = np.linspace(first, top, 1 + math.ceil((top - first) / (_STEP * deviation)))
        below = [math.inf] * len(edges)
        choice: _Choice | None = None
        for n, edge in enumerate(edges):
            choice = self._best((-math.inf, float(edge)), negligible_log, choice)
            below[n] = choice.log_bound
            if below[n] > limit:
                break
        above, choice, best = self._beyond(top), None, math.inf
        for n in range(len(edges) - 1, -1, -1):
            best = min(best, _log_sum([above, below[n]]))
            if n == 0 or above > min(best, limit):
                break
            found = self._interval(float(edges[n - 1]), float(edges[n]), negligible_log, choice)
            choice = found[1]
            above = _log_sum([above, found[0]])
        return best

    def _interval(
        self, low: float, high: float, negligible_log: float, before: _Choice | None
    ) -> tuple[float, _Choice]:
        """The bound for all i of an interval, cut into pieces where that may help, and the choice at its lower end."""
        choice = self._best((low, high), negligible_log, before)
        if choice.log_bound <= negligible_log or self.spent > _MOST_TERMS:
            return self._of_interval((low, high), choice, every=True), choice
        edges, parts = np.linspace(low, high, _PIECES + 1), []
        for n in range(_PIECES - 1, -1, -1):
            ends = float(edges[n]), float(edges[n + 1])
            choice = self._best(ends, negligible_log, choice)
            parts.append(self._of_interval(ends, choice, every=True))
        return _log_sum(parts), choice

    def _beyond(self, level: float) -> float:
        """Logarithm of the sum over i of E_Q R 1(y_i > level)."""
        z = (self.g - level) / np.sqrt(self.own)[:, None]
        found = _log_sum(special.log_ndtr(z).ravel().tolist()) - math.log(self.bins)
        return found + 1e-12 * (1.0 + abs(found))

    def _best(self, ends: tuple[float, float], negligible_log: float, before: _Choice | None) -> _Choice:
        """The least bound for a set of x, with one i in place of all; the search ends where it is negligible."""
        everywhere = ends[0] == -math.inf
        best = _Choice(math.inf, 0, 0, 0.0, 0.0)

        def tried(kind: int, width: int, order: float, power: float) -> bool:
            nonlocal best
            choice = _Choice(math.inf, kind, width, order, power)
            bound = self._of_all(ends[1], kind, order, power) if everywhere else self._of_interval(ends, choice)
            if bound < best.log_bound:
                best = choice._replace(log_bound=bound)
            return best.log_bound <= negligible_log

        if before is not None and (tried(*before[1:]) or self.spent > _MOST_TERMS):
            return best
        near = np.argsort(np.abs(self.one.levels - ends[1]), kind="stable")
        if before is None or before.order == 0.0:
            for power in _POWERS[: 1 if everywhere else 3]:
                if tried(0, 0, 0.0, power):
                    return best
            if self.spent > _MOST_TERMS:
                return best
            for kind in (0, 1) if everywhere else near[:2]:
                for width in (-1,) if everywhere else (0, 3, -1):
                    for order in _ORDERS:
                        if tried(int(kind), width, order, best.power):
                            return best
        if best.order > 0.0:
            for part in (0.7, 1.4):
                if tried(best.kind, best.width, best.order * part, best.power):
                    return best
            for kind in (best.kind - 1, best.kind + 1):
                if 0 <= kind < len(self.one.levels) and tried(kind, best.width, best.order, best.power):
                    return best
        for power in (0.0, 0.5) if best.power > 0.5 else (best.power + 0.25,):
            if tried(best.kind, best.width, best.order, power):
                return best
        return best

    def _constant(self, order: float, log_weight: Any, mean_variance: Any, variance: Any) -> Any:
        """What a bound has of r, of h and of the linear function."""
        constant = (order * math.log(order) if order else 0.0) - (1.0 + order) * math.log1p(order)
        return constant - order * (self.log_cut + log_weight) + 0.5 * order * (mean_variance + order * variance)

    def _of_all(self, end: float, kind: int, order: float, power: float) -> float:
        """The set where all y_j <= end, which may be inf for addition."""
        one = self.one
        tilt = one.tilts[kind].mean(axis=0)
        shift = one.shifts[kind].mean(axis=0)
        constant = self._constant(
            order, math.log(one.weights[kind]), float(one.variances[kind].mean()), float(shift @ tilt)
        )
        means = -order * shift
        weights = special.exp(np.minimum(power * (means - means.min()), 30.0))
        powers = (self.g * weights).sum(axis=1) / (self.own * weights)
        deviations = np.sqrt(self.own)
        cuts = np.full(self.bins, math.inf) if one.adds else (end - means) / deviations
        variables = _alike(means - 0.5 * self.own, deviations, deviations, cuts, powers, one.adds)
        cap = math.inf if one.adds else end - 0.5 * float(self.own.min())
        return float(constant) + self._by_rates(variables, cap, order, False)

    def _of_interval(self, ends: tuple[float, float], choice: _Choice, every: bool = False) -> float:
        """y_i within the ends and the largest; for all i, or for the middle one as if all were like it."""
        b = self.bins
        if not every:
            return self._of_rows(ends, choice, np.array([b // 2])) + math.log(b)
        self._of_rows(ends, choice, np.array([b // 2]))
        rate, parts, first = self.rate, [], 0
        while 2 * first < b:  # pairs i, b - 1 - i from the ends inwards, whose sorted variables are much alike
            last = min(first + (1 if first < _SINGLE else _TOGETHER), (b + 1) // 2)
            near = np.arange(first, last)
            parts.append(self._of_rows(ends, choice, np.union1d(near, b - 1 - near), rate))
            first = last
        return _log_sum(parts)

    def _of_rows(self, ends: tuple[float, float], choice: _Choice, rows: Any, rate: float = 0.0) -> float:
        """The sum over these i, whose sorted variables are bounded together."""
        one, b = self.one, self.bins
        tilts, shifts, sizes, variances = self._sets(choice, rows)
        own = self.own[rows]
        constant = self._constant(
            choice.order, np.log(one.weights[choice.kind] * sizes / b), variances, (tilts * shifts).sum(axis=1)
        )
        means = -choice.order * shifts
        deviation = np.sqrt(own)
        center = means[np.arange(len(rows)), rows]
        chance = special.ndtr_difference((ends[0] - center) / deviation, (ends[1] - center) / deviation)
        constant = constant + special.log(np.maximum(chance, 1e-320))
        constant = _log_sum(list(constant))
        covariances = self.g[rows]
        slopes = covariances / own[:, None]
        high = means + slopes * (ends[1] - center)[:, None]
        low = means + slopes * (ends[0] - center)[:, None]
        spread = np.maximum(self.own - covariances * slopes, 0.0)
        others = np.ones((len(rows), b), dtype=bool)
        others[np.arange(len(rows)), rows] = False
        base = high.min(axis=1, keepdims=True)
        weights = special.exp(np.minimum(choice.power * (high - base), 30.0)) * others
        powers = np.ones_like(high)
        for n in range(len(rows)):
            conditional = np.abs(self.g - covariances[n][:, None] * slopes[n])
            total = (conditional * weights[n]).sum(axis=1)
            positive = others[n] & (spread[n] > 0.0)
            powers[n, positive] = np.maximum(total[positive] / (spread[n] * weights[n])[positive], 1.0)
        deviations = np.sqrt(spread)
        with np.errstate(divide="ignore"):
            cuts = np.where(deviations > 0.0, (ends[1] - low) / np.maximum(deviations, 1e-300), math.inf)
        shape = (len(rows), b - 1)
        high = (high - 0.5 * self.own)[others].reshape(shape)
        order = np.argsort(-high, axis=1, kind="stable")
        sort = [np.take_along_axis(x[others].reshape(shape), order, axis=1) for x in (deviations, cuts, powers)]
        variables = _alike(
            np.take_along_axis(high, order, axis=1).max(axis=0), sort[0].min(axis=0), sort[0].max(axis=0),
            sort[1].max(axis=0), sort[2].max(axis=0), False,
        )  # fmt: skip
        return constant + self._by_rates(variables, ends[1] - 0.5 * float(self.own.min()), choice.order, True, rate)

    def _sets(self, choice: _Choice, rows: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Means of u and G u over the set around each i, its size, and the mean of the variances."""
        one, b = self.one, self.bins
        width = b if choice.width < 0 else choice.width
        first, last = np.maximum(rows - width, 0), np.minimum(rows + width + 1, b)
        sizes = last - first

        def mean(values: FloatArray) -> FloatArray:
            sums = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
            total = sums[last] - sums[first]
            return np.asarray(total / sizes.reshape(-1, *[1] * (total.ndim - 1)))

        kind = choice.kind
        return mean(one.tilts[kind]), mean(one.shifts[kind]), sizes, mean(one.variances[kind])

    def _by_rates(self, variables: _Variables, cap: float, order: float, own: bool, near: float = 0.0) -> float:
        """The least over q of the logarithm of what depends on it; ``own``: Y_i, at most e^cap, is not a variable."""
        one, b = self.one, self.bins
        if one.adds:
            unit, center = math.exp(one.epsilon) / b, -1.0
            rates = np.geomspace(0.1, 1e6, 2 * _RATES)
        else:
            unit, center = 1.0 / b, math.exp(one.epsilon)
            rates = np.geomspace(0.05, 80.0, _RATES) / (unit * math.exp(min(cap, 600.0)))
        if near > 0.0:
            rates = near * np.array([0.8, 1.0, 1.25])
        best = math.inf
        for _ in range(1 if near > 0.0 else 2):
            self.spent += rates.size * variables.shifts.size * _EDGES.size
            sums = _log_means(rates * unit, variables, cap, one.adds)
            held = math.exp(cap) * unit if own else 0.0
            totals = (1.0 + order) * (math.log1p(order) - 1.0 - np.log(rates)) + rates * (held - center) + sums
            place = int(totals.argmin())
            if totals[place] < best:
                best, self.rate = float(totals[place]), float(rates[place])
            rates = np.geomspace(rates[max(place - 1, 0)], rates[min(place + 1, len(rates) - 1)], _RATES)
        return best


def _alike(
    shifts: FloatArray, least: FloatArray, largest: FloatArray, cuts: FloatArray, powers: FloatArray, falls: bool
) -> _Variables:
    """Variables in sets: numbers are moved to a grid, to the side on which the functions are larger."""
    rows = [np.floor(shifts / _GRID) if falls else np.ceil(shifts / _GRID), np.floor(least / _GRID),
            np.ceil(largest / _GRID), np.ceil(np.clip(cuts, -50.0, 50.0) / _GRID), np.ceil(powers / _GRID)]  # fmt: skip
    found, index = distinct_rows(np.stack(rows, axis=1))
    return _Variables(np.bincount(index).astype(float), *(found.T * _GRID))


def _log_means(rates: FloatArray, variables: _Variables, cap: float, falls: bool) -> FloatArray:
    """Sums over the variables of log E F^p / p from above, F = e^(q min(e^y, e^cap)), or e^(-q e^y) where it falls."""
    shifts, least, largest = (x[:, None] for x in (variables.shifts, variables.least, variables.largest))
    spread = np.maximum(largest * _EDGES, least * _EDGES)
    powers = rates[:, None, None] * variables.powers[:, None]
    if falls:
        # towards small y the function is largest; the deviations of all are exact
        y = special.exp(np.clip(shifts + np.minimum(largest * _EDGES, least * _EDGES), -700.0, 700.0))
        logs = -powers * y
        left, right = logs[..., :-1], logs[..., 1:]
        middle = -powers * special.exp(np.clip(shifts + least * _CENTROIDS, -700.0, 700.0))
        fall = np.maximum(special.expm1(np.maximum(right - left, -700.0)), -0.999999)
        chord = left + special.log1p((_SHARES - 1e-9) * fall)
        cells = np.where(right >= -1.0, np.where(largest == least, middle, left), np.where(left <= -1.0, chord, left))
        ends = (np.zeros_like(logs[..., :1]) + _LOG_LOWEST, logs[..., -1:] + _LOG_HIGHEST)
    else:
        y = special.exp(np.clip(np.minimum(shifts + spread, cap), -700.0, 700.0))
        logs = powers * y
        left, right = logs[..., :-1], logs[..., 1:]
        rise = right - left
        chord = left + special.log1p(_SHARES * special.expm1(np.minimum(rise, 30.0)))
        convex = (shifts + spread[:, 1:] <= cap) & (_SHARES < 1.0)
        cells = np.where(convex & (rise <= 30.0), chord, right)
        cells = np.where(_EDGES[:-1] <= variables.cuts[:, None], cells, -np.inf)
        lowest = np.where(variables.cuts[:, None] >= -38.0, logs[..., :1] + _LOG_LOWEST, _LOG_HIGHEST + logs[..., :1])
        largest_value = powers * math.exp(min(cap, 700.0)) + _LOG_HIGHEST
        highest = np.where(_EDGES[-1] <= variables.cuts[:, None], largest_value, -np.inf)
        ends = (lowest, highest + 0.0 * logs[..., :1])
    terms = np.concatenate([ends[0], cells + _LOG_MASSES, ends[1]], axis=-1)
    top = terms.max(axis=-1, keepdims=True)
    sums = special.exp(np.maximum(terms - top, -700.0)).sum(axis=-1)
    found = (top[..., 0] + special.log(sums)) / variables.powers
    return np.asarray((found * variables.counts).sum(axis=-1))


def _log_sum(logs: list[float]) -> float:
    """Logarithm of a sum of numbers given by theirs."""
    top = max(logs)
    return top + math.log(sum(math.exp(x - top) for x in logs)) if top > -math.inf else top
