"""Branch and bound: brackets of a posterior over a domain that is too large to look at, from bounds over ranges.

Notation: the uniform law over N secrets; range j holds a share m_j of them, whose log likelihoods lie in [a_j, b_j];
what is small is looked at, secret by secret ("swept"). Z' is a trial evidence, rho = Z / Z', and for r = e^l / Z'

    Z in swept + [sum m e^a, sum m e^b],
    G = E(r log r - r + 1),  KL = G / rho + 1 - 1 / rho - log rho,
    J = E phi(r) / 2,        |JS - J| <= 0.35 |log rho| e^|log rho|,

where r log r - r + 1 and phi are convex with their least value 0 at r = 1, so that a range adds something between 0 (or
the smaller end) and the larger end. Ranges that matter most are split first: m (e^b - e^a) (1 + |b|), relative to the
upper bound of Z, says what a range leaves open; those follow that may hold a secret likelier than the most likely ones
that are kept, or one less likely than all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._parallel import Progress, progress_reporter
from ..._values import FloatArray
from ...channels.likelihoods.kinds import IndexLikelihood
from ...kernels import _beliefs
from .functions import bounded, evaluator, held, indices_of

__all__ = ["Brackets", "brackets", "half_phi", "surprise"]

_LEAF = 2**12  # secrets of a range that is swept, or a thousandth of the budget
_CALLS = 2**19
_FIRST = 64
_BATCH = 64  # leaves swept in one go
_LN2 = math.log(2.0)
# bound: tested by enclosures/test_index_posteriors - rounding of sums over ranges and of their logarithms
_ROUNDING = 1e-12
_APART = 600.0  # nats between the bounds of log Z from which nothing else is known


class Brackets(NamedTuple):
    """Enclosures (lower, upper) of what a release does to beliefs, and the most likely secrets that were seen."""

    log_evidence: tuple[float, float]
    kl: tuple[float, float]
    js: tuple[float, float]
    most: tuple[float, float]  # of the log likelihood
    least: tuple[float, float]
    best: list[tuple[float, int]]  # (log likelihood, secret), the most likely first
    ties: int
    cost: dict[str, Any]


class _Seen:
    """Secrets that were looked at one by one: their ranges, sums, extremes and the most likely of them."""

    def __init__(self, keep: int) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.rows: list[Any] = []
        self.best: dict[int, float] = {}
        self.most, self.least, self.keep = -math.inf, math.inf, keep

    def note(self, indices: NDArray[Any], logs: FloatArray) -> None:
        self.most, self.least = max(self.most, float(logs.max())), min(self.least, float(logs.min()))
        count = min(self.keep, len(logs))
        order = np.argsort(-logs, kind="stable")[:count]
        self.best |= {int(indices[i]): float(logs[i]) for i in order}
        if len(self.best) > 64 * self.keep:
            self.best = {index: log for log, index in self.ordered()}

    def ordered(self) -> list[tuple[float, int]]:
        """The most likely secrets, of equal ones the lowest first."""
        ranked = sorted((-log, index) for index, log in self.best.items())[: self.keep]
        return [(-log, index) for log, index in ranked if log < math.inf]

    @property
    def threshold(self) -> float:
        """The least likely of those that are kept: what is likelier must still be found."""
        ranked = self.ordered()
        return ranked[-1][0] if len(ranked) == self.keep else -math.inf

    @property
    def log_sum(self) -> float:
        """log sum e^l over what was swept."""
        if not self.rows:
            return -math.inf
        self.rows = [_beliefs.joined(self.rows)]
        top, ties, rest = self.rows[0][0], self.rows[0][1], self.rows[0][9]
        return float(top + math.log(ties + rest)) if top > -math.inf else -math.inf

    @property
    def ties(self) -> int:
        """How many of the swept secrets are as likely as the likeliest one."""
        self.rows = [_beliefs.joined(self.rows)] if self.rows else []
        return int(self.rows[0][1]) if self.rows and self.rows[0][0] == self.most else 1


class _Open(NamedTuple):
    """Ranges with bounds."""

    start: NDArray[Any]
    stop: NDArray[Any]
    mass: FloatArray
    lower: FloatArray
    upper: FloatArray


def brackets(likelihood: IndexLikelihood, keep: int, progress: Progress) -> Brackets:
    """Splits ranges until the brackets are as narrow as asked for, or the budget is spent."""
    size, at, over = likelihood.size, evaluator(likelihood), bounded(likelihood)
    seen = _Seen(max(1, keep))
    leaf = max(1, min(_LEAF, likelihood.budget // 1024))
    calls = evaluations = 0
    report, close = progress_reporter(progress, _CALLS)

    def added(pieces: list[tuple[int, int]]) -> _Open:
        nonlocal calls, evaluations
        pairs = [over(start, stop) for start, stop in pieces]
        middles = [(start + stop) // 2 for start, stop in pieces]
        indices = np.array(middles, dtype=indices_of(0, 1, size).dtype)
        logs = at(indices)
        for (start, stop), (a, b), log, index in zip(pieces, pairs, logs.tolist(), middles, strict=True):
            held(log, a, b, index, start, stop)
        seen.note(indices, logs)
        calls, evaluations = calls + len(pieces), evaluations + len(pieces)
        bounds = np.array(pairs)
        first, last = (np.array([piece[end] for piece in pieces], dtype=object) for end in (0, 1))
        mass = np.array([(stop - start) / size for start, stop in pieces])
        return _Open(first, last, mass, bounds[:, 0], bounds[:, 1])

    try:
        ranges = added(_pieces(0, size, min(_FIRST, size)))
        while True:
            chosen, missing = _chosen(ranges, seen, size, likelihood.rtol)
            if not len(chosen) or calls > _CALLS or evaluations + leaf > likelihood.budget // 2:
                break
            kept = np.ones(len(ranges.start), dtype=bool)
            kept[chosen] = False
            spans = [(int(ranges.start[i]), int(ranges.stop[i])) for i in chosen]
            rest = _Open(*(column[kept] for column in ranges))
            small = [span for span in spans if span[1] - span[0] <= leaf]
            split = [piece for span in spans if span[1] - span[0] > leaf for piece in _pieces(*span, 4)]
            room = (likelihood.budget // 2 - evaluations) // leaf
            for group in range(0, min(len(small), room), _BATCH):
                evaluations += _swept(small[group : min(group + _BATCH, room)], size, at, seen)
            late = set(small[max(room, 0) :])
            left = [i for i, span in zip(chosen, spans, strict=True) if span in late]
            fresh = [_Open(*(column[np.array(left, dtype=np.int64)] for column in ranges))]
            fresh += [added(split)] if split else []
            ranges = _Open(*(np.concatenate(columns) for columns in zip(rest, *fresh, strict=True)))
            report(min(calls, _CALLS))
        cost = {"bounds": calls, "evaluations": evaluations, "open": len(ranges.start)}
        return _bracketed(ranges, seen, size, at, cost | {"reached": missing <= likelihood.rtol})
    finally:
        close()


def _pieces(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    edges = [start + (stop - start) * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _swept(spans: list[tuple[int, int]], size: int, at: Callable[[NDArray[Any]], FloatArray], seen: _Seen) -> int:
    """Looks at every secret of these ranges."""
    indices = np.concatenate([indices_of(start, stop, size) for start, stop in spans])
    logs = at(indices)
    none = np.empty(0), np.empty(0, dtype=np.intp)
    if logs.max() > -math.inf:
        seen.rows.append(_beliefs.first_pass(logs, None, False, 0.0, True, 0, *none)[0])
    seen.note(indices, logs)
    seen.ranges += spans
    return len(indices)


def _trial(ranges: _Open, seen: _Seen, size: int) -> tuple[float, float]:
    """Bounds of log Z."""
    swept = seen.log_sum - math.log(size)
    with np.errstate(divide="ignore"):
        mass = np.log(ranges.mass)
        return tuple(_log_sum(np.append(mass + ends, swept)) for ends in (ranges.lower, ranges.upper))  # type: ignore[return-value]


def _chosen(ranges: _Open, seen: _Seen, size: int, rtol: float) -> tuple[NDArray[np.int64], float]:
    """Which ranges to split next, and what all of them leave open."""
    if not len(ranges.start):
        return np.empty(0, dtype=np.int64), 0.0
    _, trial = _trial(ranges, seen, size)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mass = np.log(ranges.mass)
        top = np.exp(mass + ranges.upper - trial)
        share = top * -np.expm1(ranges.lower - ranges.upper) * (1 + np.abs(ranges.upper - trial))
        share = np.where(ranges.upper == -np.inf, 0.0, share)
    missing = float(share.sum())
    many = max(_FIRST, len(share) // 4)
    found = []
    if missing > rtol:
        order = np.argsort(-share, kind="stable")[:many]
        found.append(order[share[order] > 0])
    above = np.flatnonzero(ranges.upper > seen.threshold)
    below = np.flatnonzero((ranges.lower < seen.least) & (ranges.lower > -np.inf))
    few = many if missing <= rtol else _FIRST
    found.append(above[np.argsort(-ranges.upper[above], kind="stable")[:few]])
    found.append(below[np.argsort(ranges.lower[below], kind="stable")[:few]])
    return np.unique(np.concatenate(found)), missing


def _bracketed(ranges: _Open, seen: _Seen, size: int, at: Callable[[NDArray[Any]], FloatArray],
               cost: dict[str, Any]) -> Brackets:  # fmt: skip
    """The brackets, with a second pass over what was swept."""
    low, high = _trial(ranges, seen, size)
    most = seen.most, max(seen.most, float(np.max(ranges.upper, initial=-np.inf)))
    least = min(seen.least, float(np.min(ranges.lower, initial=np.inf))), seen.least
    slack = _ROUNDING * (1 + max(abs(x) for x in (low, high) if math.isfinite(x)))
    log_size = math.log(size)
    kl, js = (0.0, log_size), (0.0, _LN2)
    if high - low < _APART:
        trial = 0.5 * (low + high)
        sums = [(0.0, 0.0)] * 2
        for group in range(0, len(seen.ranges), _BATCH):
            spans = seen.ranges[group : group + _BATCH]
            logs = at(np.concatenate([indices_of(start, stop, size) for start, stop in spans]))
            terms = _beliefs.second_pass(logs, None, False, 1.0 / size, trial, 0.0, None)[1:]
            sums = [(a + x, b + y) for (a, b), (x, y) in zip(sums, terms, strict=True)]
        ends = np.stack([ranges.lower, ranges.upper]) - trial
        across = (ends[0] <= 0) & (ends[1] >= 0)
        found = []
        for (a, b), convex in zip(sums, (surprise, half_phi), strict=True):
            terms = ranges.mass * convex(ends)
            lower = float(np.sum(np.where(across, 0.0, terms.min(axis=0)))) + a + b
            upper = float(np.sum(terms.max(axis=0))) + a + b
            found.append((lower * (1 - slack) - slack, upper * (1 + slack) + slack))
        away = 0.5 * (high - low) + slack
        kl = _kl(*found[0], away, log_size)
        off = 0.35 * away * math.exp(min(away, 700.0))
        js = max(0.0, found[1][0] - off), min(_LN2, found[1][1] + off)
    return Brackets((low - slack, high + slack), kl, js, most, least, seen.ordered(), seen.ties, cost)


def _kl(lower: float, upper: float, away: float, ceiling: float) -> tuple[float, float]:
    """Bounds of G / rho + 1 - 1 / rho - log rho over G in [lower, upper] and |log rho| <= away: largest at 1 - G."""

    def value(g: float, log_rho: float) -> float:
        return g * math.exp(-log_rho) - math.expm1(-log_rho) - log_rho

    ends = [value(lower, -away), value(lower, away)]
    peak = min(max(math.log1p(-upper), -away), away) if upper < 1 else -away
    return max(0.0, min(ends)), min(ceiling, max(value(upper, x) for x in (-away, away, peak)))


def surprise(y: FloatArray) -> FloatArray:
    """r log r - r + 1 at r = e^y."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.exp(y) * y - np.expm1(y)
    return np.asarray(np.where(y == -np.inf, 1.0, np.maximum(found, 0.0)))


def half_phi(y: FloatArray) -> FloatArray:
    """phi(e^y) / 2: half of r log(2 r / (1 + r)) + log(2 / (1 + r))."""
    size = np.abs(y)
    with np.errstate(over="ignore", invalid="ignore"):
        part = _LN2 - np.log1p(np.exp(-size))
        large = np.exp(np.maximum(y, 0.0))
        small = np.where(y > 0, 1.0, np.exp(y))
        found = large * part + np.where(small > 0, small * (part - size), 0.0)
    return np.asarray(0.5 * np.maximum(found, 0.0))


def _log_sum(logs: FloatArray) -> float:
    top = float(logs.max())
    return top if math.isinf(top) else top + math.log(float(np.sum(np.exp(logs - top))))
