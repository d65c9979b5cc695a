"""Posteriors of an ``IndexLikelihood``, a function that returns the log likelihood of every secret.

Up to half the budget of the likelihood, all secrets are evaluated, in ``dense``. Beyond it, branch and bound encloses
every quantity from bounds over ranges.

Notation: the uniform prior over N secrets; range j holds a share m_j of them, whose log likelihoods lie in [a_j, b_j];
small ranges are enumerated secret by secret. Z' is a trial evidence, rho = Z / Z', and for r = e^l / Z'

    Z in enumerated + [sum m e^a, sum m e^b],
    G = E(r log r - r + 1),  KL = G / rho + 1 - 1 / rho - log rho,
    J = E phi(r) / 2,        |JS - J| <= 0.35 |log rho| e^|log rho|,

where r log r - r + 1 and phi are convex with their least value 0 at r = 1, so that the contribution of a range lies
between 0 (or that of the smaller end) and that of the larger end. The ranges that matter most are split first:
m (e^b - e^a) (1 + |b|), relative to the upper bound of Z, is what a range leaves uncertain. Next come ranges that may
hold a secret likelier than the most likely ones that are kept, or one less likely than all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Unit
from ..base.numerics import LOG_2, FloatArray, IntArray, log_sum_exp
from ..base.parallel import Progress, progress_reporter
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood
from ..kernels import _posterior
from . import dense
from .dense import FirstPassSums
from .index_functions import (
    IndexSource,
    checked_bound,
    checked_function,
    index_range,
    range_evaluator,
    require_enclosed,
)
from .result import Options, Posterior, Top, index_array, write_probabilities

__all__ = ["posterior"]

_SIZE_LIMIT = 2**1000  # secrets; the share of one secret in a larger domain is no normal double
_LEAF = 2**12  # secrets; ranges of at most that many, or of a 1024th of the budget, are enumerated
_MAX_BOUND_CALLS = 2**19  # calls of the user's bound; some seconds in Python
_FIRST_RANGES = 64  # ranges at the start, and the least number chosen in one round
_LEAVES_AT_ONCE = 64  # leaves enumerated by one call of the user's function
# bound: tested by enclosures/test_index_posteriors - rounding of sums over ranges and of their logarithms
_ROUNDING = 1e-12
_TOO_WIDE = 600.0  # nats between the bounds of log Z beyond which KL and JS get their trivial bounds

_Function = Callable[[NDArray[Any]], FloatArray]


def posterior(likelihood: IndexLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior by full evaluation if that is within the budget, else by branch and bound."""
    size = likelihood.size
    if 2 * size <= likelihood.budget:
        if callable(prior):
            prior = IndexSource("prior", IndexLikelihood(prior, size))
        return dense.posterior(DenseLikelihood(IndexSource("likelihood", likelihood)), prior, options)
    if prior is not None or size > _SIZE_LIMIT:
        raise DomainError(
            "prior must be None, and size at most 2**1000, for more secrets than half the budget; got "
            f"{validate.shown(size)} secrets and a budget of {likelihood.budget}. Raise the budget, or add "
            "the log prior to the function and take the uniform prior."
        )
    if likelihood.bound is None:
        raise DomainError(
            f"bound must be given for more secrets than half the budget; got None for {validate.shown(size)} secrets "
            f"and a budget of {likelihood.budget}. Pass bounds of the function over ranges of secrets, or raise the "
            "budget to twice the number of secrets."
        )
    function = checked_function(likelihood)
    ranges, evaluated, cost = _search(likelihood, function, max(1, options.top), options.progress)
    low, high = _log_evidence_bounds(ranges, evaluated, size)
    kl, js = _divergences(ranges, evaluated, size, function, low, high)
    slack = _slack(low, high)
    low, high = low - slack, high + slack
    log_size = math.log(size)
    likeliest = evaluated.most, max(evaluated.most, float(np.max(ranges.upper, initial=-np.inf)))
    unlikeliest = min(evaluated.least, float(np.min(ranges.lower, initial=np.inf))), evaluated.least
    most = likeliest[0] - high, min(likeliest[1] - low, log_size)
    least = unlikeliest[0] - high, min(unlikeliest[1] - low, 0.0)
    best, logs = evaluated.most_likely(), range_evaluator(likelihood)
    shift = (0.5 * (low + high) if low > -math.inf else high) + log_size

    def probabilities(start: int, stop: int) -> FloatArray:
        return np.asarray(np.minimum(np.exp(logs(start, stop) - shift), 1.0))

    write_probabilities(options.out, size, probabilities)
    shown = best[: options.top]
    top = Top(index_array([i for _, i in shown], size), np.minimum(np.exp([log - shift for log, _ in shown]), 1.0))
    return Posterior(
        size, log_evidence=_certified((low, high)), kl=_certified(kl), js=_certified(js),
        entropy=_certified((max(0.0, log_size - kl[1]), log_size - kl[0])),
        max_log_ratio=_certified(most), min_log_ratio=_certified(least),
        vulnerability=_certified((math.exp(most[0] - log_size), math.exp(most[1] - log_size)), "probability"),
        map_index=best[0][1] if best else 0, ties=evaluated.ties, top=top, cost=cost, _probabilities=probabilities,
    )  # fmt: skip


def _certified(ends: tuple[float, float], unit: Unit = "nats") -> Estimate:
    lower, upper = min(ends), max(ends)  # rounding may have exchanged ends that are close
    value = lower if lower == -math.inf or upper == math.inf else 0.5 * (lower + upper)
    return Estimate(value, lower, upper, kind="certified", unit=unit, method="branch and bound")


class _Evaluated:
    """Secrets whose log likelihood is known: enumerated ranges, their sums, extremes and the most likely secrets."""

    def __init__(self, keep: int) -> None:
        self.ranges: list[tuple[int, int]] = []
        self.sums: list[Any] = []
        self.best: dict[int, float] = {}
        self.most, self.least, self.keep = -math.inf, math.inf, keep

    def record(self, indices: NDArray[Any], logs: FloatArray) -> None:
        self.most, self.least = max(self.most, float(logs.max())), min(self.least, float(logs.min()))
        order = np.argsort(-logs, kind="stable")[: min(self.keep, len(logs))]
        self.best |= {int(indices[i]): float(logs[i]) for i in order}
        if len(self.best) > 64 * self.keep:
            self.best = {index: log for log, index in self.most_likely()}

    def most_likely(self) -> list[tuple[float, int]]:
        """The most likely secrets, the lowest first on ties."""
        ranked = sorted((-log, index) for index, log in self.best.items())[: self.keep]
        return [(-log, index) for log, index in ranked if log < math.inf]

    @property
    def threshold(self) -> float:
        """The least log likelihood among the secrets that are kept: a likelier one must still be found."""
        ranked = self.most_likely()
        return ranked[-1][0] if len(ranked) == self.keep else -math.inf

    @property
    def log_sum(self) -> float:
        """log sum e^l over the enumerated ranges."""
        if not self.sums:
            return -math.inf
        self.sums = [_posterior.merge_evidence_sums(self.sums)]
        sums = FirstPassSums(*self.sums[0])
        return float(sums.top + math.log(sums.ties + sums.rest)) if sums.top > -math.inf else -math.inf

    @property
    def ties(self) -> int:
        """The number of enumerated secrets that are as likely as the likeliest one."""
        self.sums = [_posterior.merge_evidence_sums(self.sums)] if self.sums else []
        return int(self.sums[0][1]) if self.sums and self.sums[0][0] == self.most else 1  # (top, ties, ...)


class _Ranges(NamedTuple):
    """Ranges that are not enumerated, with their share of the secrets and bounds of the log likelihood."""

    start: NDArray[Any]
    stop: NDArray[Any]
    mass: FloatArray
    lower: FloatArray
    upper: FloatArray


def _search(
    likelihood: IndexLikelihood, function: _Function, keep: int, progress: Progress
) -> tuple[_Ranges, _Evaluated, dict[str, Any]]:
    """Split ranges until the enclosures are as narrow as ``likelihood.rtol``, or the budget is spent."""
    size, bound = likelihood.size, checked_bound(likelihood)
    evaluated = _Evaluated(keep)
    leaf = max(1, min(_LEAF, likelihood.budget // 1024))
    calls = evaluations = 0
    report, close = progress_reporter(progress, _MAX_BOUND_CALLS)

    def bounded(pieces: list[tuple[int, int]]) -> _Ranges:
        """Ask for the bounds of these ranges, and check them at the middle of each."""
        nonlocal calls, evaluations
        pairs = [bound(start, stop) for start, stop in pieces]
        middles = [(start + stop) // 2 for start, stop in pieces]
        indices = np.array(middles, dtype=index_range(0, 1, size).dtype)
        logs = function(indices)
        for (start, stop), (a, b), log, index in zip(pieces, pairs, logs.tolist(), middles, strict=True):
            require_enclosed(log, a, b, index, start, stop)
        evaluated.record(indices, logs)
        calls, evaluations = calls + len(pieces), evaluations + len(pieces)
        bounds = np.array(pairs)
        first, last = (np.array([piece[end] for piece in pieces], dtype=object) for end in (0, 1))
        mass = np.array([(stop - start) / size for start, stop in pieces])
        return _Ranges(first, last, mass, bounds[:, 0], bounds[:, 1])

    try:
        ranges = bounded(_split(0, size, min(_FIRST_RANGES, size)))
        while True:
            chosen, uncertainty = _ranges_to_refine(ranges, evaluated, size, likelihood.rtol)
            if not len(chosen) or calls > _MAX_BOUND_CALLS or evaluations + leaf > likelihood.budget // 2:
                break
            selected = np.ones(len(ranges.start), dtype=bool)
            selected[chosen] = False
            spans = [(int(ranges.start[i]), int(ranges.stop[i])) for i in chosen]
            leaves = [span for span in spans if span[1] - span[0] <= leaf]
            pieces = [piece for span in spans if span[1] - span[0] > leaf for piece in _split(*span, 4)]
            affordable = (likelihood.budget // 2 - evaluations) // leaf
            for group in range(0, min(len(leaves), affordable), _LEAVES_AT_ONCE):
                part = leaves[group : min(group + _LEAVES_AT_ONCE, affordable)]
                evaluations += _enumerate(part, size, function, evaluated)
            postponed = set(leaves[max(affordable, 0) :])
            kept_back = [i for i, span in zip(chosen, spans, strict=True) if span in postponed]
            groups = [_Ranges(*(column[selected] for column in ranges))]
            groups += [_Ranges(*(column[np.array(kept_back, dtype=np.int64)] for column in ranges))]
            groups += [bounded(pieces)] if pieces else []
            ranges = _Ranges(*(np.concatenate(columns) for columns in zip(*groups, strict=True)))
            report(min(calls, _MAX_BOUND_CALLS))
        cost = {"bounds": calls, "evaluations": evaluations, "open": len(ranges.start)}
        return ranges, evaluated, cost | {"reached": uncertainty <= likelihood.rtol}
    finally:
        close()


def _split(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
    edges = [start + (stop - start) * i // parts for i in range(parts + 1)]
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _enumerate(spans: list[tuple[int, int]], size: int, function: _Function, evaluated: _Evaluated) -> int:
    """Evaluate every secret of these ranges; return their number."""
    indices = np.concatenate([index_range(start, stop, size) for start, stop in spans])
    logs = function(indices)
    no_top = np.empty(0), np.empty(0, dtype=np.intp)
    if logs.max() > -math.inf:
        evaluated.sums.append(_posterior.evidence_sums(logs, None, False, 0.0, True, 0, *no_top)[0])
    evaluated.record(indices, logs)
    evaluated.ranges += spans
    return len(indices)


def _log_evidence_bounds(ranges: _Ranges, evaluated: _Evaluated, size: int) -> tuple[float, float]:
    enumerated = evaluated.log_sum - math.log(size)
    with np.errstate(divide="ignore"):
        log_mass = np.log(ranges.mass)
        ends = np.stack([ranges.lower, ranges.upper])
        lower, upper = log_sum_exp(np.column_stack([log_mass + ends, [enumerated] * 2])).tolist()
    return lower, upper


def _ranges_to_refine(ranges: _Ranges, evaluated: _Evaluated, size: int, rtol: float) -> tuple[IntArray, float]:
    """The ranges to refine next, and the total uncertainty of all ranges."""
    if not len(ranges.start):
        return np.empty(0, dtype=np.int64), 0.0
    _, log_evidence = _log_evidence_bounds(ranges, evaluated, size)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        top = np.exp(np.log(ranges.mass) + ranges.upper - log_evidence)
        each = top * -np.expm1(ranges.lower - ranges.upper) * (1 + np.abs(ranges.upper - log_evidence))
        each = np.where(ranges.upper == -np.inf, 0.0, each)
    uncertainty = float(each.sum())
    many = max(_FIRST_RANGES, len(each) // 4)
    chosen = []
    if uncertainty > rtol:
        order = np.argsort(-each, kind="stable")[:many]
        chosen.append(order[each[order] > 0])
    above = np.flatnonzero(ranges.upper > evaluated.threshold)
    below = np.flatnonzero((ranges.lower < evaluated.least) & (ranges.lower > -np.inf))
    few = many if uncertainty <= rtol else _FIRST_RANGES
    chosen.append(above[np.argsort(-ranges.upper[above], kind="stable")[:few]])
    chosen.append(below[np.argsort(ranges.lower[below], kind="stable")[:few]])
    return np.unique(np.concatenate(chosen)), uncertainty


def _slack(low: float, high: float) -> float:
    """The rounding of the bounds of log Z, and, relative and absolute, of those of KL and JS."""
    return _ROUNDING * (1 + max(abs(x) for x in (low, high) if math.isfinite(x)))


def _divergences(
    ranges: _Ranges, evaluated: _Evaluated, size: int, function: _Function, low: float, high: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bounds of KL and JS, by a second pass over the enumerated ranges; ``low`` and ``high`` are those of log Z."""
    log_size, slack = math.log(size), _slack(low, high)
    if not high - low < _TOO_WIDE:
        return (0.0, log_size), (0.0, LOG_2)
    trial = 0.5 * (low + high)
    sums = [(0.0, 0.0)] * 2
    for group in range(0, len(evaluated.ranges), _LEAVES_AT_ONCE):
        spans = evaluated.ranges[group : group + _LEAVES_AT_ONCE]
        logs = function(np.concatenate([index_range(start, stop, size) for start, stop in spans]))
        terms = _posterior.divergence_sums(logs, None, False, 1.0 / size, trial, 0.0, None)[1:]
        sums = [(a + x, b + y) for (a, b), (x, y) in zip(sums, terms, strict=True)]
    ends = np.stack([ranges.lower, ranges.upper]) - trial
    contains_minimum = (ends[0] <= 0) & (ends[1] >= 0)
    bounds = []
    for (a, b), convex in zip(sums, (_convex_kl, _convex_js), strict=True):
        terms = ranges.mass * convex(ends)
        lower = float(np.sum(np.where(contains_minimum, 0.0, terms.min(axis=0)))) + a + b
        upper = float(np.sum(terms.max(axis=0))) + a + b
        bounds.append((lower * (1 - slack) - slack, upper * (1 + slack) + slack))
    log_rho = 0.5 * (high - low) + slack  # at most, in absolute value
    correction = 0.35 * log_rho * math.exp(min(log_rho, 700.0))
    js = max(0.0, bounds[1][0] - correction), min(LOG_2, bounds[1][1] + correction)
    return _kl_bounds(*bounds[0], log_rho, log_size), js


def _kl_bounds(lower: float, upper: float, log_rho: float, ceiling: float) -> tuple[float, float]:
    """Bounds of G / rho + 1 - 1 / rho - log rho over G in [lower, upper] and |log rho| up to ``log_rho``.

    As a function of rho it is largest at rho = 1 - G.
    """

    def value(g: float, log_ratio: float) -> float:
        return g * math.exp(-log_ratio) - math.expm1(-log_ratio) - log_ratio

    ends = [value(lower, -log_rho), value(lower, log_rho)]
    peak = min(max(math.log1p(-upper), -log_rho), log_rho) if upper < 1 else -log_rho
    return max(0.0, min(ends)), min(ceiling, max(value(upper, x) for x in (-log_rho, log_rho, peak)))


def _convex_kl(y: FloatArray) -> FloatArray:
    """r log r - r + 1 at r = e^y: the integrand of KL, at least 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.exp(y) * y - np.expm1(y)
    return np.asarray(np.where(y == -np.inf, 1.0, np.maximum(value, 0.0)))


def _convex_js(y: FloatArray) -> FloatArray:
    """Half of r log(2 r / (1 + r)) + log(2 / (1 + r)) at r = e^y: the integrand of JS, at least 0."""
    size = np.abs(y)
    with np.errstate(over="ignore", invalid="ignore"):
        deficit = LOG_2 - np.log1p(np.exp(-size))
        large = np.exp(np.maximum(y, 0.0))
        small = np.where(y > 0, 1.0, np.exp(y))
        value = large * deficit + np.where(small > 0, small * (deficit - size), 0.0)
    return np.asarray(0.5 * np.maximum(value, 0.0))
