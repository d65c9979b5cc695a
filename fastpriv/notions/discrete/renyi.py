"""Sibson's mutual information of a channel.

Notation: order a, I_a = a/(a-1) log sum_w (sum_d pi_d Q[d, w]^a)^(1/a). With M_w the largest cell of column w over the
support, s = Q/M in [0, 1] and p_w = sum_d pi_d (s^a - 1), the sum is sum_w M_w (1 + p_w)^(1/a).

Errors: log Q is right to 2 u (1 + |log Q|), s^a to 4 u (4 + a |log s|) at most e^-1 of which remains in the product;
p_w, a sum of terms of one sign, to u (64 + 2 N), N additions in a row; the error of each term enters by its weight.

Next to order 1, with h = a - 1, r = Q/q and L = log r, the sum is 1 + sum_w q_w ((1 + e_w)^(1/a) - 1), where
e_w = sum_d pi_d r (r^h - 1) is of order h, as is its error: I_a loses nothing to the factor a/h. If |h L| <= 1/2, that
error is at most 1.7 |h| times that of L, and 4 u (N + 70) |h L|, in the mean, 4 times that after what follows.
It takes rows of sum 1, since others have no limit at order 1: what they miss moves L.

The sum is homogeneous in Q: rows whose sums miss 1 by more than doubles round are divided by their mean sum s.
"""

# bounds: tested by enclosures/test_channel_notions - roundings, by the notes at the head

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _parallel
from ..._values import FloatArray
from ...capacity import structured
from ...channels import ProductChannel
from . import classes
from .arguments import UNIT, Reading, Setting, written
from .table import Table, columns

__all__ = ["sibson"]

_CLOSE = 0.05  # to order 1
# bound: tested by enclosures/test_channel_notions - gaps of rows that were divided by their sums stay below
_ROUNDED = 1e-12  # a gap of rows of doubles that were divided by their sums stays below


def sibson(given: Setting, order: float, n_jobs: Any, progress: Any) -> Reading:
    """The number for a finite order other than 1; sums over the factors of a product."""
    channel, prior = given
    if isinstance(channel, ProductChannel) and (prior is None or isinstance(prior, tuple)):
        priors = (None,) * len(channel.factors) if prior is None else prior
        parts = [
            (own, sibson(Setting(one, pi), order, n_jobs, progress))
            for one, own, pi in zip(channel.factors, channel.powers, priors, strict=True)
        ]
        ends = [math.fsum(own * getattr(one, end) for own, one in parts) for end in ("value", "lower", "upper")]
        slack = 4 * UNIT * ends[2]
        return Reading(ends[0], ends[1] - slack, ends[2] + slack, "certified", "sum over factors")
    profiles = classes.grouped(given)
    close = abs(order - 1.0) <= _CLOSE
    if profiles is not None:
        near = _grouped_near(profiles, order, channel.mass_gap) if close else None
        return near or _grouped(profiles, order, channel.mass_gap)
    table = Table(written(given))
    near = _walked_near(table, order, n_jobs, progress) if close else None
    return near or _walked(table, order, n_jobs, progress)


def _grouped_near(profiles: Any, order: float, gap: float) -> Reading | None:
    held = (profiles.log_mass > -np.inf) & (profiles.log_weight > -np.inf)[profiles.classes]
    ratio = np.where(held, profiles.log_ratio, -np.inf)
    real = ratio > -np.inf
    if not real.any() or abs(order - 1.0) * float(np.max(np.abs(ratio[real]))) > 0.5:
        return None
    level = np.where(real, ratio, 0.0)
    after = np.where(real, np.exp(profiles.log_mass + ratio), 0.0)
    weight = np.exp(profiles.log_weight)
    change, reach = (
        np.add.reduceat(after * part, profiles.starts[:-1]) for part in (np.expm1((order - 1.0) * level), np.abs(level))
    )
    size = np.abs(np.where(real, profiles.log_mass, 0.0)) + np.abs(np.where(profiles.log_weight > -np.inf,
                  profiles.log_weight, 0.0))[profiles.classes]  # fmt: skip
    blur = np.add.reduceat(after * np.abs(level) * (UNIT * 16 * (10 + size) + 8e-14), profiles.starts[:-1])
    missed = abs(math.fsum(weight) - 1.0) if profiles.missing == 0 else profiles.missing
    error = 8 * math.fsum(weight * (blur + 4 * profiles.error)) + 16 * missed * math.fsum(weight * reach)
    error += UNIT * 32 * int(np.diff(profiles.starts).max()) * math.fsum(weight * reach)
    error += 8 * (gap + profiles.gap) * (1 + math.fsum(weight * reach))
    if profiles.missing:
        error += profiles.missing * (1.0 + float(np.max(profiles.tilt.max() - profiles.tilt, initial=0.0)))
    return _near(weight, change, order, error)


def _walked_near(table: Table, order: float, n_jobs: Any, progress: Any) -> Reading | None:
    first = columns(table, n_jobs=n_jobs)
    occurs = first.occurs
    with np.errstate(divide="ignore"):
        law = np.log(first.q[occurs]) + (0.0 if table.shift is None else _shift(table)[occurs])
    prior = table.prior / float(np.sum(table.prior, dtype=np.longdouble))

    def sums(part: slice) -> tuple[FloatArray, float]:
        own = table.prior[part] > 0
        logs = table.channel._log_rows(part.start, part.stop)[own][:, occurs]
        real = logs > -np.inf
        level = np.where(real, logs - law, 0.0)
        after = np.where(real, prior[part][own, None] * np.exp(level), 0.0)
        terms = [after * np.expm1((order - 1.0) * level), after * np.abs(level), after * np.where(real, -logs, 0.0)]
        return np.stack([term.sum(axis=0) for term in terms]), float(np.max(np.abs(level), initial=0.0))

    found, largest = np.zeros((3, law.size)), 0.0
    for one, most in _parallel.ordered_map(sums, table.parts, n_jobs=n_jobs, progress=progress, shared=True):
        found, largest = found + one, max(largest, most)
    if abs(order - 1.0) * largest > 0.5:
        return None
    change, reach, size = found
    weight = np.exp(law)
    longest = max(part.stop - part.start for part in table.parts) + len(table.parts)
    spread = 1 + math.fsum(weight * reach)
    error = 16 * UNIT * math.fsum(weight * (4 + size + np.abs(law) + reach)) + 8 * UNIT * (longest + 70) * spread
    error += 8 * (table.channel.mass_gap + table.gap + table.slack) * spread
    return _near(weight, change, order, error)


def _shift(table: Table) -> FloatArray:
    """Logs of what columns are scaled by."""
    assert table.shift is not None
    return np.asarray(table.shift if table.log else table.exponents * math.log(2), dtype=np.float64)


def _near(weight: FloatArray, change: FloatArray, order: float, error: float) -> Reading:
    """a/(a-1) log(1 + sum q ((1 + e)^(1/a) - 1))."""
    excess = math.fsum(weight * np.expm1(np.log1p(change) / order))
    value = max(0.0, order / (order - 1.0) * math.log1p(excess))
    return Reading(value, max(0.0, value - error), value + error, "certified", "Sibson's sum next to order 1")


def _grouped(profiles: Any, order: float, gap: float) -> Reading:
    held = profiles.log_mass > -np.inf
    top = np.maximum.reduceat(np.where(held, profiles.tilt, -np.inf), profiles.starts[:-1])
    with np.errstate(invalid="ignore", over="ignore"):
        tilt = np.where(held, profiles.tilt - top[profiles.classes], -np.inf)
        powered = np.where(held, np.exp(profiles.log_mass + order * tilt), 0.0)
        change = np.where(held, np.exp(profiles.log_mass) * np.expm1(order * tilt), 0.0)
    sums, changes = (np.add.reduceat(x, profiles.starts[:-1]) for x in (powered, change))
    with np.errstate(divide="ignore"):
        logs = np.where(changes > -0.5, np.log1p(np.maximum(changes, -0.5)), np.log(sums))
    real = profiles.log_total > -np.inf
    return _total(profiles.log_total[real] + top[real], logs[real], order, int(np.diff(profiles.starts).max()), gap,
                  profiles.gap, profiles.missing)  # fmt: skip


def _walked(table: Table, order: float, n_jobs: Any, progress: Any) -> Reading:
    held = table.prior > 0
    channel = table.channel

    def tops(part: slice) -> FloatArray:
        rows = channel._rows(part.start, part.stop, True)[held[part]]
        return np.asarray(np.max(rows, axis=0, initial=-np.inf), dtype=np.float64)

    def sums(part: slice) -> FloatArray:
        own = held[part]
        logs = np.asarray(channel._rows(part.start, part.stop, True)[own], dtype=np.float64)
        with np.errstate(over="ignore"):
            powers = order * (logs - base)
        terms = [np.expm1(powers), np.exp(powers), *([np.exp(logs)] if missed else [])]
        return np.stack([(table.prior[part][own][:, None] * term).sum(axis=0) for term in terms])

    top = np.full(channel.outputs, -np.inf)
    for one in _parallel.ordered_map(tops, table.parts, n_jobs=n_jobs, shared=True):
        top = np.maximum(top, one)
    base = np.where(top > -np.inf, top, 0.0)
    missed = channel.mass_gap > _ROUNDED
    found = np.zeros((2 + missed, channel.outputs))
    for one in _parallel.ordered_map(sums, table.parts, n_jobs=n_jobs, progress=progress, shared=True):
        found += one
    real = top > -np.inf
    change, whole, *law = found[:, real] / float(np.sum(table.prior, dtype=np.longdouble))
    over = math.fsum([*law[0].tolist(), -1.0]) if missed else 0.0
    logs = np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), np.log(whole))
    longest = max(part.stop - part.start for part in table.parts) + len(table.parts)
    return _total(top[real], logs, order, longest, channel.mass_gap, table.gap, 0.0, over)


def _added(terms: FloatArray) -> float:
    """The sum of terms of any sign: exact, and of many of them right to 64 units of that of their sizes."""
    return math.fsum(terms.tolist()) if terms.size <= structured.EXACTLY else float(np.sum(terms))


def _total(
    top: FloatArray, logs: FloatArray, order: float, n: int, gap: float, prior_gap: float, missing: float,
    over: float = 0.0,
) -> Reading:  # fmt: skip
    """a/(a-1) log(sum e^(top + logs/a) / (1 + over)); the largest cells sum to at least 1."""
    small = min(order, 1.0)  # logs are taken times the order where that is below 1: nothing overflows
    joint = small * top + logs * (small / order)
    peak = float(np.max(joint))
    whole = np.exp(top)
    with np.errstate(over="ignore"):
        direct = np.exp(joint / small)
        more = whole * np.expm1(logs / order)
        excess = (_added(whole) - 1.0) + _added(more)
        each = direct if -0.9 < excess < 1e200 else np.exp((joint - peak) / small)
    total = _added(each)
    size = _added(each * (8 * small + np.abs(small * top) + np.abs(logs) * (small / order)))
    spread = (small + small / order) * total
    many = whole.size > structured.EXACTLY  # their sums are right to 64 units; with those of the parts, 64 of spread
    if many:
        spread += small * total
        size += 8 * size
    if -0.9 < excess < 1e200:  # from what the sum exceeds 1 by
        value = small * math.log1p((excess - over) / (1.0 + over))
        spread += small * _added(whole)
        if many:
            spread += small * (_added(whole) + float(np.sum(np.abs(more))))
    else:
        value = peak + small * (math.log(total) - math.log1p(over))
        size += abs(peak) * total
    error = UNIT * ((64 + 4 * n) * spread + 8 * size) / total
    error += 2.2 * (small * gap + prior_gap * (small / order)) + small * (missing + 1.1 * abs(over))
    factor = (order / (order - 1.0)) if order >= 1.0 else 1.0 / (order - 1.0)
    value, error = max(0.0, factor * value), abs(factor) * error
    return Reading(value, max(0.0, value - error), value + error, "certified", "Sibson's sum over releases")
