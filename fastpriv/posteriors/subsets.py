"""Posteriors over all subsets of a pool of records, enumerated one by one, in two passes.

Notation: n records, subsets A of S members, N = C(n, S) of them; l(A) = sum of linear[i] + sum of pairwise[i, j], the
prior w(A) = 1 / N; y(A) = l(A) - log Z, Z = sum w e^l; T twice the total variation between posterior and prior, at most
min(2, sqrt(2 KL)); u = 2^-53. The loops are in csrc/posterior.

Bounds (docs/proofs/posteriors.md, theorem 10.4). With a, b the largest sizes of linear and pairwise, the exponent of a
subset is wrong by at most

    delta = error + u [sum over m = 1 ... S of (m - 1)(a + (m - 1) b) + (S - 1)(S a + S (S - 1) b / 2)],

the roundings of the m-th member's share and of their sum. The second pass gives e = sum w (e^y - 1), the correction of
Z, and K = sum w (e^y (y - 1) + 1), J = sum w F(y), whose terms are never negative (F is JS as a sum over w), and
E|y| <= KL + T under the posterior, so that

    |e| is wrong by at most      delta (1 + |e|) + u [150 T + 6 (KL + T)]
    |K|                          delta (KL + T) + u K [600 + 4 (2 + max y)]
    |J|                          (delta + |log(1 + e)|) min(0.6, (KL + T)/2) + u [1000 J + 2 (KL + T)]

by the derivatives of the terms, their own roundings and at most 96 roundings of a sum. KL is (K + e)/(1 + e) -
log(1 + e), and JS is J but for the correction of y. A factor of 1.01 pays for products of small numbers.
"""

# bounds: proved - roundings counted at the head and in theorem 10.4 of docs/proofs/posteriors.md to first order, with a
#    factor 1.01 and 1e-280 for the rest

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, Unit
from ..base.numerics import LOG_2_ABOVE, UNIT_ROUNDOFF, FloatArray, IntArray, two_sum
from ..channels.subset_likelihoods import SubsetLikelihood, subset_of_rank
from ..kernels import _posterior, _subset_posterior
from .dense import FirstPassSums
from .result import Options, Posterior, Top

_MAX_SUBSETS = 10**13  # subsets that are enumerated: some core-days
_RANGE_SIZE = 2**21  # subsets in one task, some hundredths of a second; a 1024th of them all if that is more
_SERIAL_LIMIT = 2**18  # subsets; fewer are done before another thread has started
_EVALUATED_AT_ONCE = 2**16  # subsets whose probabilities are computed at a time
_EXTRA_ROWS = 3  # rows of the kernel's workspace besides one for each member


class _SubsetRange(NamedTuple):
    """The subsets that begin with a prefix and go on with a member of [start, stop); the first one has this rank."""

    prefix: tuple[int, ...]
    start: int
    stop: int
    rank: int


class _SubsetSums(NamedTuple):
    """The sums of both passes."""

    first: FirstPassSums
    rises: int  # how often a larger joint weight rescaled the sums of the first pass
    high: float  # log evidence in two parts
    low: float
    excess: float  # e
    kl: float  # K
    js: float  # J
    mass: FloatArray  # posterior mass of the subsets that hold each record


def posterior(likelihood: SubsetLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior from two passes over all subsets."""
    pool, members, total = likelihood.linear.size, likelihood.members, likelihood.size
    _require_enumerable(pool, members, total)
    if prior is not None:
        raise DomainError(
            f"prior must be None for subsets, which are equally likely; got {validate.shown(prior)}. Add the log odds "
            "of records to the linear terms."
        )
    top = min(options.top, total)
    sums, best = _passes(likelihood, top, options)
    numbers = _estimates(likelihood, sums, total)
    log_z = sums.high + sums.low + math.log1p(sums.excess)

    def of_subsets(subsets: IntArray) -> FloatArray:
        logs = likelihood.log_likelihood(subsets) - likelihood.constant
        return np.asarray(np.exp((logs - log_z) - math.log(total)))

    def probabilities(start: int, stop: int) -> FloatArray:
        validate.memory("stop - start", 8 * (stop - start), "Ask for fewer at a time.")
        pieces = [np.arange(i, min(i + _EVALUATED_AT_ONCE, stop)) for i in range(start, stop, _EVALUATED_AT_ONCE)]
        return np.concatenate([np.empty(0), *(of_subsets(subset_of_rank(ranks, pool, members)) for ranks in pieces)])

    indices = subset_of_rank(best, pool, members)
    map_index = tuple(int(i) for i in subset_of_rank(int(sums.first.map_index), pool, members))
    return Posterior(
        size=total, **numbers, map_index=map_index, ties=int(sums.first.ties), top=Top(indices, of_subsets(indices)),
        cost={"subsets": total, "passes": 2}, _probabilities=probabilities,
    )


def _require_enumerable(pool: int, members: int, total: int) -> None:
    if members > _subset_posterior.MAX_SIZE:
        raise DomainError(
            f"likelihood must be of subsets of at most {_subset_posterior.MAX_SIZE} members; got {members}. "
            "Ask for smaller batches, or for the posterior of one record at a time."
        )
    if total > _MAX_SUBSETS:
        shown = f"{total:.4g}" if total < 10**300 else f"about 10^{int(math.log10(total))}"
        raise DomainError(
            f"likelihood must be of at most {_MAX_SUBSETS:.0e} subsets, since each of them is visited; got {shown} of "
            f"{members} out of {pool}. Leave out the records that are least likely alone, or ask for smaller batches."
        )


def _ranges(pool: int, members: int, size: int) -> Iterator[_SubsetRange]:
    """All subsets, cut into ranges of about ``size``, in order."""

    def partition(prefix: tuple[int, ...], rank: int) -> Iterator[_SubsetRange]:
        left = members - len(prefix)
        first = start = prefix[-1] + 1 if prefix else 0
        if left == 1:
            for i in range(first, pool, size):
                yield _SubsetRange(prefix, i, min(i + size, pool), rank + i - first)
            return
        pending = 0  # subsets whose next member is at least `start` and below j
        for j in range(first, pool - left + 1):
            count = math.comb(pool - 1 - j, left - 1)  # subsets whose next member is j
            if pending and (pending + count > size):
                yield _SubsetRange(prefix, start, j, rank)
                start, rank, pending = j, rank + pending, 0
            if count > 2 * size and left > 2:
                yield from partition((*prefix, j), rank)
                start, rank = j + 1, rank + count
            else:
                pending += count
        if pending:
            yield _SubsetRange(prefix, start, pool - left + 1, rank)

    return partition((), 0)


def _passes(likelihood: SubsetLikelihood, top: int, options: Options) -> tuple[_SubsetSums, IntArray]:
    """The sums of both passes, and the ranks of the most probable subsets."""
    pool, members, total = likelihood.linear.size, likelihood.members, likelihood.size
    records = _subset_posterior.SubsetPool(likelihood.linear, likelihood.pairwise, members)
    ranges = list(_ranges(pool, members, max(_RANGE_SIZE, total // 1024)))
    report, close = parallel.progress_reporter(options.progress, 2 * len(ranges))

    def first_pass(part: _SubsetRange) -> Any:
        weights, ranks = np.empty(top), np.empty(top, dtype=np.intp)
        workspace, prefix = np.empty((members + _EXTRA_ROWS, pool)), np.array(part.prefix, dtype=np.intp)
        row, count, rises = records.evidence_sums(workspace, prefix, part.start, part.stop, part.rank, weights, ranks)
        return row, rises, weights[:count], ranks[:count]

    def second_pass(part: _SubsetRange) -> Any:
        workspace, prefix = np.empty((members + _EXTRA_ROWS, pool)), np.array(part.prefix, dtype=np.intp)
        sums = records.divergence_sums(workspace, prefix, part.start, part.stop, 1.0 / total, high, low)
        return sums, workspace[-2:]  # the kernel leaves the masses of the records there, as pairs of doubles

    def results(work: Any, done_before: int) -> Iterator[Any]:
        brief = total < _SERIAL_LIMIT
        partial_sums = parallel.ordered_map(work, ranges, n_jobs=options.n_jobs, brief=brief, shared=True)
        for done, result in enumerate(partial_sums, start=done_before + 1):
            report(done)
            yield result

    try:
        rows, rises, weights, ranks = [], len(ranges), np.empty(0), np.empty(0, dtype=np.int64)
        for row, own_rises, own_weights, own_ranks in results(first_pass, 0):
            rows.append(row)
            rises += own_rises
            weights, ranks = np.concatenate([weights, own_weights]), np.concatenate([ranks, own_ranks])
            selected = np.lexsort((ranks, -weights))[:top]
            weights, ranks = weights[selected], ranks[selected]
        first = FirstPassSums(*_posterior.merge_evidence_sums(rows))
        high, low = _log_evidence(first, total)
        mass, remainder, sums = np.zeros(pool), np.zeros(pool), []
        for own_sums, masses in results(second_pass, len(ranges)):
            sums.append(own_sums)
            for part in masses:  # sums of doubles with their rounding errors
                mass, error = two_sum(mass, part)
                remainder += error
    finally:
        close()
    excess, kl, js = (math.fsum(itertools.chain.from_iterable(column)) for column in zip(*sums, strict=True))
    return _SubsetSums(first, rises, high, low, excess, max(kl, 0.0), max(js, 0.0), mass + remainder), ranks


def _log_evidence(sums: FirstPassSums, total: int) -> tuple[float, float]:
    """Log evidence in two doubles; ``total`` is the number of subsets."""
    if not sums.top > -math.inf:
        raise DomainError(
            "likelihood must be positive for some subset; got -inf for all of them. Check the release, or allow more "
            "records."
        )
    pieces = [sums.top, math.log1p((sums.ties - 1.0) + sums.remainder), -math.log(total)]
    high = math.fsum(pieces)
    return high, math.fsum([*pieces, -high])


def _estimates(likelihood: SubsetLikelihood, sums: _SubsetSums, total: int) -> dict[str, Estimate]:
    """Every quantity, with the bounds at the head of the module."""
    delta = 1.01 * likelihood.summation_error
    e, k, log_n = sums.excess, sums.kl, math.log(total)
    kl_most = 1.01 * k + 510 * delta**2 + 1e-300 if delta < 0.004 else 1.01 * log_n
    twice_tv = min(2.0, math.sqrt(2.0 * kl_most))  # T
    spread = kl_most + twice_tv  # at least E|y|
    correction = math.log1p(e)
    e_error = 1.01 * (delta * (1.0 + abs(e)) + UNIT_ROUNDOFF * (150.0 * twice_tv + 6.0 * spread))
    z_error = 1.02 * e_error + 4.0 * UNIT_ROUNDOFF * abs(correction)
    up = (sums.first.most - sums.high) - sums.low - correction
    down = (sums.first.least - sums.high) - sums.low - correction
    method = "both passes over all subsets"

    def bounded(value: float, error: float, least: float, most: float, unit: Unit = "nats") -> Estimate:
        value = min(max(value, least), most)
        lower, upper = max(value - error, least), min(value + error, most)
        return Estimate(value, lower, upper, kind="certified", unit=unit, method=method)

    evidence = sums.high + (sums.low + correction + likelihood.constant)
    ev_error = z_error + 4.0 * UNIT_ROUNDOFF * (abs(evidence) + abs(sums.high) + abs(likelihood.constant))
    kl = (k + (e - (1.0 + e) * correction)) / (1.0 + e)
    kl_error = 1.01 * (
        delta * spread + UNIT_ROUNDOFF * k * (600.0 + 4.0 * (2.0 + max(up, 0.0))) + (k + abs(e)) * e_error
        + 4 * UNIT_ROUNDOFF * abs(e) + e_error**2
    )
    js_error = 1.01 * (
        (delta + abs(correction) + e_error) * min(0.6, 0.5 * spread) + UNIT_ROUNDOFF * (1000.0 * sums.js + 2.0 * spread)
    )
    most = log_n * (1.0 + 4.0 * UNIT_ROUNDOFF) + 4.0 * UNIT_ROUNDOFF  # no posterior exceeds 1
    ratio_error = [1.01 * (delta + z_error + 4.0 * UNIT_ROUNDOFF * abs(y)) for y in (up, down)]
    estimates = {
        "log_evidence": bounded(evidence, ev_error, -math.inf, math.inf),
        "kl": bounded(kl, kl_error, 0.0, most), "js": bounded(sums.js, js_error, 0.0, LOG_2_ABOVE),
        "max_log_ratio": bounded(up, ratio_error[0], 0.0, most),
    }
    if down == -math.inf:
        estimates["min_log_ratio"] = Estimate(down, down, down, kind="certified", unit="nats", method=method)
    else:
        estimates["min_log_ratio"] = bounded(down, ratio_error[1], -math.inf, 0.0)
    value, error = _entropy(sums, delta)
    by_kl, slack = estimates["kl"], 4.0 * UNIT_ROUNDOFF * log_n
    width = float(by_kl.width)
    if width + slack < error:  # entropy and KL add up to log n: the more accurate one gives the other
        value, error = log_n - float(by_kl.value), width + slack
    elif 2.0 * error + slack < width:
        estimates["kl"] = bounded(log_n - value, error + slack, 0.0, most)
    estimates["entropy"] = bounded(value, error, 0.0, log_n * (1.0 + 4.0 * UNIT_ROUNDOFF))
    others = (sums.first.ties - 1.0) + sums.first.remainder
    log_top = sums.first.top - sums.high - sums.low - correction - log_n
    relative = math.expm1(1.01 * (delta + z_error + 6.0 * UNIT_ROUNDOFF * (abs(log_top) + log_n + 1.0)))
    probable = min(math.exp(log_top), 1.0)
    lower, upper = probable * (1.0 - relative), min(probable * (1.0 + relative), 1.0)
    value = min(max(1.0 / (1.0 + others), lower), upper)
    estimates["vulnerability"] = Estimate(value, lower, upper, kind="certified", unit="probability", method=method)
    estimates["inclusion"] = _inclusion(likelihood, sums, delta + z_error, max(abs(up), min(abs(down), 800.0)), method)
    return estimates


def _entropy(sums: _SubsetSums, delta: float) -> tuple[float, float]:
    """Entropy from the sums of the first pass, with an error that is relative to it.

    With e^d the weight of a subset relative to the top one, R the sum of e^d over the others and M that of e^d |d|, the
    entropy is log(1 + R) + M / (1 + R); R and M are wrong by 2 delta R, 2 delta (R + M) and by their sums' roundings.
    """
    remainder, moment = (sums.first.ties - 1.0) + sums.first.remainder, sums.first.moment
    value = math.log1p(remainder) + moment / (1.0 + remainder)
    rounding = UNIT_ROUNDOFF * (140.0 + 4.0 * sums.rises)
    rest_error = 1.01 * (remainder * (2.0 * delta + rounding) + 5.0 * UNIT_ROUNDOFF * moment) + 1e-280
    size = 2.0 * remainder + moment  # at least that of the terms whose difference the moment is
    moment_error = 1.01 * (2.0 * delta * (remainder + moment) + size * (rounding + 3800.0 * UNIT_ROUNDOFF)) + 1e-280
    error = 1.02 * (
        rest_error / (1.0 + remainder) + moment_error / (1.0 + remainder) + moment * rest_error / (1.0 + remainder) ** 2
    )
    return value, error + 8.0 * UNIT_ROUNDOFF * value


def _inclusion(likelihood: SubsetLikelihood, sums: _SubsetSums, error: float, largest: float, method: str) -> Estimate:
    """Posterior probability of each record of being a member; at most 150 roundings in each sum, and one a tile."""
    relative = math.expm1(1.01 * (error + UNIT_ROUNDOFF * (4.0 * largest + 160.0 + likelihood.linear.size / 512.0)))
    value = np.clip(sums.mass / (1.0 + sums.excess), 0.0, 1.0)
    return Estimate(
        value, np.maximum(value * (1.0 - relative) - 1e-290, 0.0), np.minimum(value * (1.0 + relative) + 1e-290, 1.0),
        kind="certified", unit="probability", method=method,
    )
