"""Sibson's mutual information of a channel.

Notation: order a, I_a = a/(a-1) log sum_w (sum_d pi_d Q[d, w]^a)^(1/a). With M_w the largest cell of column w over the
support, s = Q/M in [0, 1] and p_w = sum_d pi_d (s^a - 1), the sum is sum_w M_w (1 + p_w)^(1/a).

Errors: log Q is right to 2 u (1 + |log Q|), s^a to 4 u (4 + a |log s|) at most e^-1 of which remains in the product;
p_w, a sum of terms of one sign, to u (64 + 2 N), N additions in a row; the error of each term enters by its weight.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _parallel
from ..._values import FloatArray
from ...channels import ProductChannel
from . import classes
from .arguments import UNIT, Reading, Setting, written
from .table import Table

__all__ = ["sibson"]


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
    if profiles is not None:
        return _grouped(profiles, order, channel.mass_gap)
    return _walked(Table(written(given)), order, n_jobs, progress)


def _grouped(profiles: Any, order: float, gap: float) -> Reading:
    held = profiles.log_mass > -np.inf
    top = np.maximum.reduceat(np.where(held, profiles.tilt, -np.inf), profiles.starts[:-1])
    with np.errstate(invalid="ignore"):
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
        powers = order * (logs - base)
        return np.stack([table.prior[part][own] @ change for change in (np.expm1(powers), np.exp(powers))])

    top = np.full(channel.outputs, -np.inf)
    for one in _parallel.ordered_map(tops, table.parts, n_jobs=n_jobs):
        top = np.maximum(top, one)
    base = np.where(top > -np.inf, top, 0.0)
    found = np.zeros((2, channel.outputs))
    for one in _parallel.ordered_map(sums, table.parts, n_jobs=n_jobs, progress=progress):
        found += one
    real = top > -np.inf
    change, whole = found[:, real] / float(np.sum(table.prior, dtype=np.longdouble))
    logs = np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), np.log(whole))
    longest = max(part.stop - part.start for part in table.parts) + len(table.parts)
    return _total(top[real], logs, order, longest, channel.mass_gap, table.gap, 0.0)


def _total(
    top: FloatArray, logs: FloatArray, order: float, n: int, gap: float, prior_gap: float, missing: float
) -> Reading:
    """a/(a-1) log sum e^(top + logs/a); the largest cells sum to at least 1."""
    peak = float(np.max(top + logs / order))
    shift = peak if peak > 500 else 0.0  # else the sum is formed from what it exceeds 1 by
    whole = np.exp(top - shift)
    each = np.exp(top - shift + logs / order)
    if shift:
        total = math.fsum(each)
        value = shift + math.log(total)
    else:
        excess = math.fsum(whole) - 1.0 + math.fsum(whole * np.expm1(logs / order))
        total = max(1.0 + excess, 1e-300)
        value = math.log1p(max(excess, -1.0 + 1e-300))
    size = math.fsum(each * (8 + np.abs(top) + np.abs(logs) / order))
    spread = (1 + 1 / order) * math.fsum(each) + math.fsum(whole)
    error = UNIT * ((64 + 4 * n) * spread + 8 * size) / total
    error += 2.2 * (gap + prior_gap / order) + missing
    factor = order / (order - 1.0)
    value, error = max(0.0, factor * value), abs(factor) * error
    return Reading(value, max(0.0, value - error), value + error, "certified", "Sibson's sum over releases")
