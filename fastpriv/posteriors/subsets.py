"""Beliefs over all subsets of a pool of records, walked one by one, in two passes.

Notation: n records, subsets A of S members, N = C(n, S) of them; l(A) = sum of linear[i] + sum of pairwise[i, j], the
prior w(A) uniform or proportional to a product of odds; y(A) = l(A) - log Z, Z = sum w e^l; T twice the total variation
between posterior and prior, at most min(2, sqrt(2 KL)). u = 2^-53. csrc/fp_subsets.h walks, csrc/fp_beliefs.h sums.

Bounds. With a, b the largest sizes of linear and pairwise, the exponent of a subset is wrong by at most

    delta = error + u [sum over m = 1 ... S of (m - 1)(a + (m - 1) b) + (S - 1)(S a + S (S - 1) b / 2)],

the roundings of the m-th member's share and of their sum, plus, with odds, what rounding does to log w. The second
pass gives e = sum w (e^y - 1), the correction of Z, and K = sum w (e^y (y - 1) + 1), J = sum w F(y), whose terms are
never negative (F is JS as a sum over w), and E|y| <= KL + T under the posterior, so that

    |e| is wrong by at most      delta (1 + |e|) + u [150 T + 6 (KL + T)]
    |K|                          delta (KL + T) + u K [400 + 4 (2 + max y)]
    |J|                          (delta + |log(1 + e)|) min(0.6, (KL + T)/2) + u [1000 J + 2 (KL + T)]

by the derivatives of the terms, their own roundings and at most 96 roundings of a sum. KL is (K + e)/(1 + e) -
log(1 + e), and JS is J but for the correction of y. A factor of 1.01 pays for products of small numbers.
"""

# bounds: tested by enclosures/test_subset_posterior - roundings counted at the head to first order, with a factor
#    1.01 and 1e-280 for the rest

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _parallel, _validate
from .._values import FloatArray
from ..channels.likelihoods.combinations import subset_of_rank
from ..channels.likelihoods.subsets import SubsetLikelihood
from ..errors import DomainError, ShapeError
from ..estimate import Estimate
from ..kernels import _beliefs, _subsets
from .result import Options, Posterior, Top

__all__ = ["posterior"]

_MOST = 10**13  # subsets that are walked: some core-days
_PART = 2**21  # subsets in one task, or a 1024th of them all
_BRIEF = 2**18  # subsets that are not worth a thread
_LAW = 2**16  # probabilities made at a time
# bound: proved - half a unit in the last place of a double, IEEE 754
_U = 2.0**-53
_RANGE = 570.0  # largest size of the log of a product of scaled odds, over members of a subset
_EXTRA = 3  # rows of room besides one a member


class _Part(NamedTuple):
    """The subsets that begin with a prefix and go on with a member of [start, stop); the first one has this rank."""

    prefix: tuple[int, ...]
    start: int
    stop: int
    rank: int


class _Prior(NamedTuple):
    """Odds with their logarithms, scaled to a prior of sum 1; None where it is uniform, as are their bounds."""

    odds: FloatArray | None
    error: float  # of the log prior of a subset
    least: float  # log of the smallest positive prior


class _Sums(NamedTuple):
    """What both passes give."""

    row: tuple[float, ...]
    rises: int
    high: float
    low: float
    excess: float
    kl: float
    js: float
    mass: FloatArray


def posterior(likelihood: SubsetLikelihood, prior: Any, options: Options) -> Posterior:
    """Both passes over all subsets."""
    pool, members, total = likelihood.linear.size, likelihood.members, likelihood.size
    _possible(pool, members, total)
    if options.out is not None:
        raise DomainError(
            f"out must be None for subsets; got {_validate.shown(options.out)}. "
            "Ask the posterior for probabilities(start, stop), some at a time."
        )
    if options.resume is not None:
        raise DomainError(
            f"resume must be None for subsets; got {_validate.shown(options.resume)}. Start again: nothing is kept."
        )
    weights = _prior(prior, options.log_prior, pool, members)
    top = min(options.top, total)
    sums, best = _passes(likelihood, weights, top, options)
    numbers = _bounds(likelihood, weights, sums, total)
    log_z = sums.high + sums.low + math.log1p(sums.excess)

    def law(members: NDArray[np.int64]) -> FloatArray:
        logs = likelihood.log_likelihood(members) - likelihood.constant
        log_w = -math.log(total) if weights.odds is None else weights.odds[1][members].sum(axis=-1)
        return np.asarray(np.exp((logs - log_z) + log_w))

    def probabilities(start: int, stop: int) -> FloatArray:
        _validate.memory("stop - start", 8 * (stop - start), "Ask for fewer at a time.")
        cut = [np.arange(i, min(i + _LAW, stop)) for i in range(start, stop, _LAW)]
        return np.concatenate([np.empty(0), *(law(subset_of_rank(ranks, pool, members)) for ranks in cut)])

    indices = subset_of_rank(best, pool, members)
    map_index = tuple(int(i) for i in subset_of_rank(int(sums.row[4]), pool, members))
    return Posterior(
        size=total, **numbers, map_index=map_index, ties=int(sums.row[1]), top=Top(indices, law(indices)),
        cost={"subsets": total, "passes": 2}, _law=probabilities,
    )  # fmt: skip


def _possible(pool: int, members: int, total: int) -> None:
    if members > _subsets.MOST:
        raise DomainError(
            f"likelihood must be of subsets of at most {_subsets.MOST} members; got {members}. "
            "Ask for smaller batches, or for the posterior of one record at a time."
        )
    if total > _MOST:
        shown = f"{total:.4g}" if total < 10**300 else f"about 10^{int(math.log10(total))}"
        raise DomainError(
            f"likelihood must be of at most {_MOST:.0e} subsets, since each of them is visited; got {shown} of "
            f"{members} out of {pool}. Leave out the records that are least likely alone, or ask for smaller batches."
        )


def _prior(prior: Any, logs: bool, pool: int, members: int) -> _Prior:
    """Odds scaled so that the products over all subsets sum to 1."""
    if prior is None:
        return _Prior(None, 0.0, -math.log(math.comb(pool, members)))
    name = "log_prior" if logs else "prior"
    remedy = f"Give {name} one number a record, the odds of its being in the batch."
    if logs:
        log_odds = _validate.vector(name, prior, "below infinity", lambda x: x < np.inf, remedy=remedy)
    else:
        odds = _validate.vector(name, prior, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf), remedy=remedy)
        with np.errstate(divide="ignore"):
            log_odds = np.log(odds)
    if log_odds.size != pool:
        raise ShapeError(f"{name} must have one entry a record, {pool}; got {log_odds.size}. {remedy}")
    allowed = np.sort(log_odds[log_odds > -np.inf])
    if allowed.size < members:
        raise DomainError(
            f"{name} must allow at least {members} records; got odds above 0 for {allowed.size}. "
            "Leave more records possible, or ask for smaller batches."
        )
    ways = np.zeros(members + 1, dtype=np.longdouble)  # sums of products of the odds over the subsets of each size
    ways[0] = 1.0
    for one in np.exp((allowed - allowed[-1]).astype(np.longdouble))[::-1]:
        ways[1:] += one * ways[:-1]
    with np.errstate(divide="ignore"):
        scaled = (log_odds - allowed[-1]) - float(np.log(ways[-1])) / members
    ordered = np.sort(scaled[scaled > -np.inf])
    least, low, high = (
        float(part.sum()) for part in (ordered[:members], ordered[:members].clip(max=0), ordered[-members:].clip(min=0))
    )
    if not (ways[-1] > 0 and low > -_RANGE and high < _RANGE):
        raise DomainError(
            f"{name} must give every subset a prior above 1e-247, or 0; got odds from "
            f"{_shown_exp(allowed[0])} to {_shown_exp(allowed[-1])}. Set the smallest ones to 0."
        )
    largest = max(float(np.max(np.abs(ordered))), 0.0 if logs else float(np.max(np.abs(allowed))))
    error = _U * members * ((members + 8) * (1.0 + largest)) + 2 * pool * float(np.finfo(np.longdouble).eps)
    return _Prior(np.stack([np.exp(scaled), scaled]), error, least)


def _shown_exp(log: float) -> str:
    return f"10^{log / math.log(10.0):.4g}"


def _parts(pool: int, members: int, size: int) -> Iterator[_Part]:
    """All subsets, cut into parts of about ``size``, in order."""

    def cut(prefix: tuple[int, ...], rank: int) -> Iterator[_Part]:
        left = members - len(prefix)
        first = start = prefix[-1] + 1 if prefix else 0
        held = 0  # subsets from `start` on
        for j in range(first, pool - left + 1):
            more = math.comb(pool - 1 - j, left - 1)
            if held and (held + more > size):
                yield _Part(prefix, start, j, rank)
                start, rank, held = j, rank + held, 0
            if more > 2 * size and left > 2:
                yield from cut((*prefix, j), rank)
                start, rank = j + 1, rank + more
            else:
                held += more
        if held:
            yield _Part(prefix, start, pool - left + 1, rank)

    return cut((), 0)


def _passes(
    likelihood: SubsetLikelihood, prior: _Prior, top: int, options: Options
) -> tuple[_Sums, NDArray[np.int64]]:  # fmt: skip
    pool, members, total = likelihood.linear.size, likelihood.members, likelihood.size
    records = _subsets.Pool(likelihood.linear, likelihood.pairwise, members, prior.odds)
    parts = list(_parts(pool, members, max(_PART, total // 1024)))
    report, close = _parallel.progress_reporter(options.progress, 2 * len(parts))

    def first(part: _Part) -> Any:
        best, places = np.empty(top), np.empty(top, dtype=np.intp)
        room, prefix = np.empty((members + _EXTRA, pool)), np.array(part.prefix, dtype=np.intp)
        row, count, rises = records.first_pass(room, prefix, part.start, part.stop, part.rank, best, places)
        return row, rises, best[:count], places[:count]

    def second(part: _Part) -> Any:
        room, prefix = np.empty((members + _EXTRA, pool)), np.array(part.prefix, dtype=np.intp)
        found = records.second_pass(room, prefix, part.start, part.stop, 1.0 / total, high, low)
        return found, room[-2:]

    def told(function: Any, before: int) -> Iterator[Any]:
        done = _parallel.ordered_map(
            function, parts, n_jobs=options.n_jobs, brief=total < _BRIEF, shared=True
        )
        for place, result in enumerate(done, start=1):
            report(before + place)
            yield result

    try:
        rows, rises, best, places = [], len(parts), np.empty(0), np.empty(0, dtype=np.int64)
        for row, more, t, at in told(first, 0):
            rows.append(row)
            rises += more
            best, places = np.concatenate([best, t]), np.concatenate([places, at])
            kept = np.lexsort((places, -best))[:top]
            best, places = best[kept], places[kept]
        row = _beliefs.joined(rows)
        high, low = _log_evidence(row, None if prior.odds is not None else total)
        mass, rest, pieces = np.zeros(pool), np.zeros(pool), []
        for found, masses in told(second, len(parts)):
            pieces.append(found)
            for part in masses:
                summed = mass + part
                back = summed - mass
                rest += (mass - (summed - back)) + (part - back)
                mass = summed
    finally:
        close()
    excess, kl, js = (math.fsum(itertools.chain.from_iterable(column)) for column in zip(*pieces, strict=True))
    return _Sums(row, rises, high, low, excess, max(kl, 0.0), max(js, 0.0), mass + rest), places


def _log_evidence(row: tuple[float, ...], total: int | None) -> tuple[float, float]:
    """In two doubles; ``total`` is the number of subsets of a uniform prior."""
    top, ties, rest = row[0], row[1], row[9] + row[10]
    if not top > -math.inf:
        raise DomainError(
            "likelihood must be positive for some subset that the prior allows; got -inf for all of them. "
            "Check the release, or allow more records."
        )
    pieces = [top, math.log1p((ties - 1.0) + rest), 0.0 if total is None else -math.log(total)]
    high = math.fsum(pieces)
    return high, math.fsum([*pieces, -high])


def _rounding(likelihood: SubsetLikelihood) -> float:
    """delta of a subset's log likelihood."""
    size = likelihood.members
    a, b = (
        float(np.max(np.abs(x), where=np.isfinite(x), initial=0.0)) for x in (likelihood.linear, likelihood.pairwise)
    )
    shares = sum((m - 1) * (a + (m - 1) * b) for m in range(1, size + 1))
    sum_of_all = (size - 1) * (size * a + 0.5 * size * (size - 1) * b)
    return float(likelihood.error + _U * (shares + sum_of_all))


def _bounds(likelihood: SubsetLikelihood, prior: _Prior, sums: _Sums, total: int) -> dict[str, Estimate]:
    """Every number with the bounds of the module's head."""
    delta = 1.01 * (_rounding(likelihood) + prior.error)
    e, k, log_n = sums.excess, sums.kl, math.log(total)
    kl_most = 1.01 * k + 510 * delta**2 + 1e-300
    apart = min(2.0, math.sqrt(2.0 * kl_most))  # T
    spread = kl_most + apart  # E|y|
    correction = math.log1p(e)
    e_error = 1.01 * (delta * (1.0 + abs(e)) + _U * (150.0 * apart + 6.0 * spread))
    z_error = 1.02 * e_error + 4.0 * _U * abs(correction)
    up = (sums.row[2] - sums.high) - sums.low - correction
    down = (sums.row[3] - sums.high) - sums.low - correction
    method = "both passes over all subsets"

    def bounded(value: float, error: float, least: float, most: float, unit: Any = "nats") -> Estimate:
        value = min(max(value, least), most)
        lower, upper = max(value - error, least), min(value + error, most)
        return Estimate(value, lower, upper, kind="certified", unit=unit, method=method)

    evidence = sums.high + (sums.low + correction + likelihood.constant)
    ev_error = z_error + 4.0 * _U * (abs(evidence) + abs(sums.high) + abs(likelihood.constant))
    kl = (k + (e - (1.0 + e) * correction)) / (1.0 + e)
    kl_error = 1.01 * (
        delta * spread + _U * k * (400.0 + 4.0 * (2.0 + max(up, 0.0))) + (k + abs(e)) * e_error + 4 * _U * abs(e)
        + e_error**2
    )  # fmt: skip
    js_error = 1.01 * (
        (delta + abs(correction) + e_error) * min(0.6, 0.5 * spread) + _U * (1000.0 * sums.js + 2.0 * spread)
    )  # fmt: skip
    most = -prior.least * (1.0 + 4.0 * _U) + prior.error + 4.0 * _U  # no posterior exceeds 1
    ratio_error = [1.01 * (delta + z_error + 4.0 * _U * abs(y)) for y in (up, down)]
    found = {
        "log_evidence": bounded(evidence, ev_error, -math.inf, math.inf),
        "kl": bounded(kl, kl_error, 0.0, most),
        "js": bounded(sums.js, js_error, 0.0, math.nextafter(math.log(2.0), 1.0)),
        "max_log_ratio": bounded(up, ratio_error[0], 0.0, most),
    }
    if down == -math.inf:
        found["min_log_ratio"] = Estimate(down, down, down, kind="certified", unit="nats", method=method)
    else:
        found["min_log_ratio"] = bounded(down, ratio_error[1], -math.inf, 0.0)
    value, error = _entropy(sums, delta)
    if prior.odds is None:  # entropy and KL add to log n: the better one gives the other
        through, slack = found["kl"], 4.0 * _U * log_n
        if through.width + slack < error:
            value, error = log_n - through.value, through.width + slack
        elif 2.0 * error + slack < through.width:
            found["kl"] = bounded(log_n - value, error + slack, 0.0, most)
    found["entropy"] = bounded(value, error, 0.0, log_n * (1.0 + 4.0 * _U))
    others = (sums.row[1] - 1.0) + sums.row[9] + sums.row[10]
    log_top = sums.row[0] - sums.high - sums.low - correction - (log_n if prior.odds is None else 0.0)
    relative = math.expm1(1.01 * (delta + z_error + 4.0 * _U * (abs(log_top) + log_n + 1.0)))
    probable = min(math.exp(log_top), 1.0)
    lower, upper = probable * (1.0 - relative), min(probable * (1.0 + relative), 1.0)
    value = min(max(1.0 / (1.0 + others), lower), upper)
    found["vulnerability"] = Estimate(value, lower, upper, kind="certified", unit="probability", method=method)
    found["inclusion"] = _inclusion(likelihood, sums, delta + z_error, max(abs(up), min(abs(down), 800.0)), method)
    return found


def _entropy(sums: _Sums, delta: float) -> tuple[float, float]:
    """From the sums of the first pass, with an error that is relative to what it is.

    With e^d the weight of a subset relative to the top one, R the sum of e^d over the others and M that of e^d |d|, the
    entropy is log(1 + R) + M / (1 + R); R and M are wrong by 2 delta R, 2 delta (R + M) and by their sums' roundings.
    """
    rest, moment = (sums.row[1] - 1.0) + sums.row[9] + sums.row[10], -(sums.row[11] + sums.row[12])
    value = math.log1p(rest) + moment / (1.0 + rest)
    steps = _U * (120.0 + 4.0 * sums.rises)
    wrong = 1.01 * (rest * (2.0 * delta + steps) + 5.0 * _U * moment) + 1e-280
    wrong_moment = 1.01 * (2.0 * delta * (rest + moment) + moment * (steps + 3800.0 * _U)) + 1e-280
    error = 1.02 * (wrong / (1.0 + rest) + wrong_moment / (1.0 + rest) + moment * wrong / (1.0 + rest) ** 2)
    return value, error + 8.0 * _U * value


def _inclusion(likelihood: SubsetLikelihood, sums: _Sums, error: float, largest: float, method: str) -> Estimate:
    """Masses of the members, with at most 96 roundings in each sum, corrected by the excess."""
    relative = math.expm1(1.01 * (error + _U * (4.0 * largest + 110.0)))
    value = np.clip(sums.mass / (1.0 + sums.excess), 0.0, 1.0)
    return Estimate(
        value, np.maximum(value * (1.0 - relative) - 1e-290, 0.0), np.minimum(value * (1.0 + relative) + 1e-290, 1.0),
        kind="certified", unit="probability", method=method,
    )  # fmt: skip
