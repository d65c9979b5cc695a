"""Renyi divergences of compositions, and bounds of compositions that are no list of pairs: Renyi guarantees, and
bounded ranges that are fixed in advance.

Sums of divergences. Of order a > 1 the divergence of P from Q is log M / (a - 1), M = E_P e^((a - 1) L), and of order 1
it is E_P L, the Kullback-Leibler divergence. Those of releases add up. Densities within 1 +- g of those given change
log M by at most a g_p + (a - 1) g_q, to first order, and E_P L by at most (g_p + g_q) (1 + E_P |L|), with E_P |L| <= K
+ sqrt(2 K), K = E_P L, by Pinsker's inequality. A pair that dominates another one has at least its divergences.

Renyi guarantees. With K(t) >= log E_P e^(t S) for t > 0, (1 - e^(epsilon - S))^+ <= c(t) e^(t (S - epsilon)), c(t) =
t^t / (1 + t)^(1 + t), so that log delta <= log c(t) + K(t) - t epsilon. The right side is convex in t; the least of it
is searched, and each t gives a bound. Infinite losses of other pairs count by themselves: delta is at most P(S = inf)
plus the bound of the outcomes with finite losses. A pair of which only curves are known has the moments of a loss on a
grid that dominates it.

Bounded range e, k mechanisms with the losses t - e and t of one t: with j of the lower losses

    delta(t) = sum over j of C(k, j) p^(k - j) (1 - p)^j (1 - e^-y_j)^+,    y_j = k t - j e - epsilon,
    p = (1 - e^(t - e)) / (1 - e^-e).

The sum of the terms j <= l without the positive part, which is at most delta(t), is largest at t_l = (epsilon + (l + 1)
e) / (k + 1) (Dong, Durfee and Rogers 2020, lemma 5.2), and the largest delta(t) is that of some t_l. There
y_j = (l - j) e + w with w = e - t_l = ((k - l) e - epsilon) / (k + 1); where w <= 0 no loss exceeds epsilon. All terms
are positive and free of cancellation.

Source: van Erven and Harremoes 2014, theorem 28; Mironov 2017, propositions 1 and 6; Pinsker 1964 (sums).
"""

# bounds: proved - roundings in extended precision

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above
from ..pairs.events import BoundedRangePair, RenyiPair, extended
from ..pairs.log_bounds import LogBounds
from ..pairs.measured_losses import LossPair
from ..pairs.protocol import EXTENDED_ROUNDING, BoundingPairs, DominatingPair

_SECOND_ORDER = 1.01  # bound: proved - times a relative error of at most 1e-9: its logarithm
# bound: proved - differences of multiples of e and of epsilon are normal numbers, for e from here on
_LEAST_WIDTH = 1e-270
_TILTS = np.geomspace(2.0**-20, 2.0**20, 81)  # t between which the least bound is searched
_SEARCH_STEPS = 40  # of golden sections, each 0.618 of the last
_GOLDEN = 0.5 * (math.sqrt(5.0) - 1.0)  # the ratio of two sections
# bound: none - grids of pairs that are known by curves, and the delta beyond them
_INTERVALS, _TAIL = (2.0**-10, 2.0**-6, 2.0**-2, 4.0), 1e-30


def renyi_bounds(bounding: BoundingPairs, order: float) -> tuple[float, float, str]:
    """Lower and upper bound of the divergence of a finite order of at least 1, and what they rest on."""
    low, high, method = sum_of_divergences(bounding.dominating, order)
    if bounding.dominated:
        low = max(sum_of_divergences(pairs, order)[0] for pairs in bounding.dominated)
        method = f"{method}, between two compositions"
    return min(low, high), high, method


def sum_of_divergences(pairs: Sequence[DominatingPair], order: float) -> tuple[float, float, str]:
    """Lower and upper bound of the sum of the divergences of these pairs, and what they rest on."""
    low = high = 0.0
    method = "sum over all releases"
    for pair in pairs:
        least, most = pair.renyi_divergence(order)
        if pair.is_known_by_curves:
            method = "nothing is known of releases of which only curves are given"
        if most < math.inf:
            change = _change_by_errors(pair, order, most)
            least, most = max(0.0, least - change), most + change
        elif least == math.inf:
            method = "infinite losses, or too large ones for a double"
        low, high = low + pair.count * least, high + pair.count * most
    rounding = 4 * (len(pairs) + 1) * UNIT_ROUNDOFF
    low = low * (1 - rounding) if low < math.inf else low
    return low, high * (1 + rounding), method


def _change_by_errors(pair: DominatingPair, order: float, most: float) -> float:
    """What the relative errors of a pair may change of a finite divergence of it."""
    p_error, q_error = pair.p_relative_error, pair.q_relative_error
    if order > 1.0:
        return _SECOND_ORDER * (order * p_error + (order - 1.0) * q_error) / (order - 1.0)
    return _SECOND_ORDER * (p_error + q_error) * (1.0 + most + math.sqrt(2.0 * most))


def joint_bounds(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> LogBounds | None:
    """Bounds of log delta at epsilon >= 0; None where the pairs are a list that engines compose."""
    pairs = [pair for pair in pairs if pair.count and not pair.is_trivial]
    if any(isinstance(pair, RenyiPair) for pair in pairs):
        return _renyi_bounds(tuple(pairs), epsilon)
    first = pairs[0] if pairs else None
    if (isinstance(first, BoundedRangePair) and len(pairs) == 1 and first.count <= first.most_counted
            and first.width >= _LEAST_WIDTH):
        rows = np.array([_range_bounds(first.width, first.count, level) for level in epsilon.tolist()])
        lower, upper = rows.reshape(-1, 2).T
        return LogBounds.of_bounds(lower, upper, {}, "counts of losses, the largest over a common shift")
    return None


def _renyi_bounds(pairs: tuple[DominatingPair, ...], epsilon: FloatArray) -> LogBounds:
    finite, infinite = _finite_parts(pairs)
    upper = np.zeros(epsilon.size)
    at_tilts = [_tilted(finite, t) for t in _TILTS.tolist()]
    factors = np.array([log_tilt_factor(t) for t in _TILTS.tolist()])
    moments = np.array(at_tilts)
    for index, level in enumerate(epsilon.tolist()):
        if level == math.inf:
            upper[index] = -math.inf
            continue
        bounds = moments + factors - _TILTS * level * (1 - 4 * UNIT_ROUNDOFF)
        best = int(np.argmin(bounds))
        low, high = (math.log(_TILTS[i]) for i in (max(best - 1, 0), min(best + 1, _TILTS.size - 1)))
        result = float(bounds[best])
        if math.isfinite(result):
            result = min(result, _least_near(finite, level, low, high))
        upper[index] = result
    with np.errstate(invalid="ignore", divide="ignore"):
        upper = np.where(np.isfinite(upper), upper + 16 * UNIT_ROUNDOFF * (1.0 + np.abs(upper)), upper)
        upper = np.minimum(next_above(np.logaddexp(upper, math.log(infinite) if infinite else -math.inf), 8), 0.0)
    return LogBounds(upper, np.full(epsilon.size, -np.inf), upper, {}, "upper bound by Renyi divergences")


def _least_near(pairs: tuple[DominatingPair, ...], level: float, low: float, high: float) -> float:
    """The least bound between two logarithms of t, by golden sections."""

    def bound(s: float) -> float:
        t = math.exp(s)
        return _tilted(pairs, t) + log_tilt_factor(t) - t * level * (1 - 4 * UNIT_ROUNDOFF)

    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [bound(s) for s in inner]
    least = min(values)
    for _ in range(_SEARCH_STEPS):
        if values[0] <= values[1]:
            high = inner[1]
            inner = [high - _GOLDEN * (high - low), inner[0]]
            values = [bound(inner[0]), values[0]]
        else:
            low = inner[0]
            inner = [inner[1], low + _GOLDEN * (high - low)]
            values = [values[1], bound(inner[1])]
        least = min(least, *values)
        if high - low < 1e-9:
            break
    return least


def log_tilt_factor(t: float) -> float:
    """An upper bound of log c(t) = -t log(1 + 1/t) - log(1 + t)."""
    value = -t * math.log1p(1.0 / t) - math.log1p(t)
    return value + 8 * UNIT_ROUNDOFF * (1.0 + abs(value))


@lru_cache(maxsize=4096)
def _tilted(pairs: tuple[DominatingPair, ...], t: float) -> float:
    """An upper bound of log E_P e^(t S) of the finite losses."""
    known = math.fsum(pair.count * pair.moment(t) for pair in pairs if isinstance(pair, RenyiPair))
    others = [pair for pair in pairs if not isinstance(pair, RenyiPair)]
    order = 1.0 + t
    if others:
        if order - 1.0 < t:  # the divergence rises with its order
            order = math.nextafter(order, math.inf)
        divergence = sum_of_divergences(others, order)[1]
        known += divergence * t if divergence else 0.0
    return known + 8 * UNIT_ROUNDOFF * abs(known) if known < math.inf else math.inf


@lru_cache(maxsize=64)
def _finite_parts(pairs: tuple[DominatingPair, ...]) -> tuple[tuple[DominatingPair, ...], float]:
    """Pairs with finite losses alone, and an upper bound of the probability of all other losses."""
    finite: list[DominatingPair] = []
    infinite = 0.0
    for pair in pairs:
        if not isinstance(pair, RenyiPair) and pair.renyi_divergence(2.0)[1] == math.inf:
            mass = pair.infinite_mass()[1]
            outcomes: DominatingPair | None = pair.without_infinite_losses() if mass > 0.0 else pair
            if outcomes is not None and outcomes.renyi_divergence(2.0)[1] == math.inf:
                outcomes, mass = _on_grid(pair)
            infinite += pair.count * mass
            if outcomes is None:
                infinite = 1.0
                continue
            pair = outcomes
        finite.append(pair)
    return tuple(finite), min(1.0, infinite * (1 + 1e-12))


def _on_grid(pair: DominatingPair) -> tuple[DominatingPair, float]:
    """A loss on a grid that dominates the pair, without its infinite losses, and the probability of these."""
    for interval in _INTERVALS:
        try:
            loss = pair.privacy_loss(interval, _TAIL, True)
        except DomainError:
            continue
        mass = loss.infinity_mass * (1.0 + pair.p_relative_error)
        finite = replace(loss, infinity_mass=0.0)
        return LossPair(finite, pair.count, pair.p_relative_error, pair.q_relative_error), mass
    return pair, 1.0


@lru_cache(maxsize=64)
def _log_binomials(k: int) -> Any:
    """Logarithms of C(k, j), each integer rounded once."""
    return np.log(np.array([np.longdouble(str(math.comb(k, j))) for j in range(k + 1)]))


def _range_bounds(width: float, k: int, level: float) -> tuple[float, float]:
    """Bounds of log of the largest delta(t), by the head of this module."""
    tiny = float(np.finfo(np.longdouble).tiny)
    e, best, error = np.longdouble(width), -math.inf, 0.0
    binomials, scale = _log_binomials(k), np.log(-np.expm1(-np.longdouble(width)))
    exact, start = Fraction(width), Fraction(level) if level < math.inf else Fraction(0)
    if level >= k * width:
        return -math.inf, -math.inf
    for least in range(k):
        numerator = (k - least) * exact - start
        if numerator <= 0:
            break
        w, t = (extended(x / (k + 1)) for x in (numerator, (least + 1) * exact + start))
        j = np.arange(least + 1)
        log_p = np.log(-np.expm1(-w)) - scale
        log_rest = t - e + np.log(-np.expm1(-t)) - scale
        terms = binomials[: least + 1] + (k - j) * log_p + j * log_rest
        terms = terms + np.log(np.maximum(-np.expm1(-((least - j) * e + w)), tiny))
        top = terms.max()
        value = float(top + np.log(np.exp(terms - top).sum()))
        size = float(k * (abs(log_p) + abs(log_rest) + abs(scale)) + binomials.max() + abs(top))
        best, error = max(best, value), max(error, EXTENDED_ROUNDING * (4.0 + size + k) + UNIT_ROUNDOFF * abs(value))
    return (best - 2.0 * error, min(best + 2.0 * error, 0.0)) if best > -math.inf else (best, best)
