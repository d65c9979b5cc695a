"""What the columns of a written channel say: LDP, MBP, vulnerability, maximal leakage; with its rows, information.

Notation as in ``table``. Cells that are known to a factor 1 + g, |g| at most the mass gap, move a log ratio of two
cells by at most 2.1 g, and a prior that misses 1 moves ln q by its own gap.
"""

# bounds: tested by enclosures/test_channel_notions - rounding of log ratios and sums of columns, by the notes of
#    table.py

from __future__ import annotations

import math

import numpy as np

from ..._values import FloatArray
from ...capacity.structured import leakage_of_excess
from ...kernels import _table
from .arguments import UNIT, Reading
from .table import Columns, Rows, Table

__all__ = ["divergence_bounds", "edge_ratio", "information", "log_ratios", "maximal", "pointwise", "vulnerability"]

_METHOD = "largest and smallest cell of each column"


def edge_ratio(table: Table, first: Columns, support: bool) -> Reading:
    """LDP: the largest log ratio of two cells of a column, of all rows or of those with prior."""
    top, low, other_top, other_low = first.edges
    if not support:
        top, low = np.maximum(top, other_top), np.minimum(low, other_low)
    if table.log:
        real = top > -np.inf
        value = float(np.max(top[real] - low[real], initial=0.0))
        error = 2 * UNIT * value + 2 * table.noise * min(1.0, value / UNIT)
    else:
        real = top > 0
        high, small = top[real].astype(np.float64), low[real].astype(np.float64)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            excess = (high - small) / small
            logs = np.where(excess < 8.0, np.log1p(excess), np.log(high) - np.log(small))
        value = float(np.max(logs, initial=0.0))
        error = UNIT * (6 * value if value < 2.0 else 1500 * 2)
    # equal rows are equal whatever their sum
    return _widened(value, error + 2.1 * table.channel.mass_gap if value else 0.0, "nats", _METHOD)


def log_ratios(table: Table, first: Columns) -> tuple[Reading, Reading]:
    """Both sides of MBP: max ln r and -min ln r."""
    real = first.occurs
    top, low, q, centre, delta, spread = (
        column[real] for column in (first.top, first.low, first.q, first.centre, first.delta, first.spread)
    )
    known = 16 * UNIT * (spread + q) / q  # of ln q
    gap = 2.1 * table.channel.mass_gap + 1.1 * table.gap
    found = []
    for edge, sign, written in ((top, 1.0, first.edges[0]), (low, -1.0, first.edges[1])):
        with np.errstate(divide="ignore", over="ignore"):
            excess = ((edge - centre) - delta) / q
            near = np.abs(excess) < 0.5
            # logs as they were given: an edge that is far below its column is subnormal, or 0
            log_edge = written[real] - table.shift[real] if table.log and table.shift is not None else np.log(edge)
            logs = np.where(near, np.log1p(np.where(near, excess, 0.0)), log_edge - np.log(q))
        close = 16 * UNIT * (spread + np.abs(edge - centre)) / q + 4 * UNIT * np.abs(excess)
        known_logs = np.abs(np.log(q)) + np.where(logs > -np.inf, np.abs(logs), 0.0)
        error = np.where(near, 2.1 * close, known + 6 * UNIT * (known_logs + 8))
        value = abs(float(np.max(sign * logs, initial=0.0)))
        if value == math.inf:
            found.append(Reading(value, value, value, "exact", _METHOD))
            continue
        error = np.minimum(error, 1e300)
        lower = float(np.max(sign * logs - error, initial=0.0)) - gap
        upper = float(np.max(sign * logs + error, initial=0.0)) + gap
        found.append(Reading(value, max(0.0, lower) if value > 0 else 0.0, upper, "exact", _METHOD))
    return found[0], found[1]


def vulnerability(table: Table, first: Columns) -> tuple[Reading, Reading, Reading]:
    """Chance of the best guess after the release, before it, and the log of their ratio."""
    prior = table.prior
    guess = int(np.argmax(prior))
    before = float(prior[guess])
    own = np.asarray(table.block(slice(guess, guess + 1))[0], dtype=np.float64)
    gap = 2.1 * table.channel.mass_gap + 1.1 * table.gap
    after = min(_table.accurate_sum(table.scaled(first.best)), 1.0)
    gain = _table.accurate_sum(table.scaled(first.best - before * own)) / before  # as if this row summed to 1
    other = first.best > before * own  # columns where the guess changes: two products are rounded
    rounded = 2 * UNIT * _table.accurate_sum(table.scaled(np.where(other, first.best, 0.0))) / before
    method = "largest joint probability of each column"
    scaled = 2 * table.noise
    if table.shift is not None:
        scaled += 4 * UNIT * (8 + float(np.abs(table.shift).max()))
    value = math.log1p(max(gain, 0.0))
    return (
        _widened(after, after * (4 * UNIT + scaled + table.slack + gap), "probability", method),
        _widened(before, before * (2 * UNIT + gap), "probability", method),
        _widened(value, (8 * UNIT + scaled) * value + rounded + table.slack + gap, "nats", method),
    )


def maximal(table: Table, first: Columns, support: bool) -> Reading:
    """log of the sum of the largest cells, formed from their differences to one row."""
    top, _, other, _ = first.edges
    whole = top if support else np.maximum(top, other)
    scaled = 0.0
    row = int(np.argmax(table.prior))
    if table.log:
        own = table.channel._log_rows(row, row + 1)[0]
        with np.errstate(invalid="ignore"):
            close = (own > -np.inf) & (whole - own < 1.0)
        rise = np.expm1(np.where(close, whole - np.where(close, own, 0.0), 0.0))
        excess = np.where(close, np.exp(own) * rise, np.exp(whole) - np.exp(own))
        scaled = 4 * UNIT * (8 + float(np.max(np.abs(whole), where=np.isfinite(whole), initial=0.0)))
    else:
        excess = whole.astype(np.float64) - np.asarray(table.channel._rows(row, row + 1, False)[0], np.float64)
    value, lower, upper = leakage_of_excess(excess, table.channel.mass_gap, scaled)
    return Reading(float(value), max(0.0, float(lower) - table.slack), float(upper) + table.slack, "exact", _METHOD)


def information(table: Table, first: Columns, second: Rows) -> Reading:
    """Mutual information, the mean of the divergences of the rows."""
    total = float(np.sum(table.prior, dtype=np.longdouble))
    value = _table.accurate_sum(table.prior * second.divergences) / total
    lower, upper = divergence_bounds(np.float64(value), second)
    gap = 2.2 * table.gap
    ends = max(0.0, float(lower) * (1 - gap - 4 * UNIT)), float(upper) * (1 + gap + 4 * UNIT) + gap * gap
    return Reading(value, *ends, "certified", "divergence of each row")


def pointwise(table: Table, second: Rows) -> Reading:
    """The largest divergence of a row from the law of the release."""
    value = float(second.divergences.max())
    lower, upper = divergence_bounds(second.divergences, second)
    gap = 1.1 * table.gap
    return Reading(value, max(0.0, float(lower.max()) - gap), float(upper.max()) + gap, "certified",
                   "divergence of each row")  # fmt: skip


def divergence_bounds(value: FloatArray | np.float64, second: Rows) -> tuple[FloatArray, FloatArray]:
    """Divergences less and plus what rounding and rows that miss 1 can change."""
    error = (200 * UNIT + 4 * second.relative) * value + 64 * UNIT * np.sqrt(value * second.energy)
    error = error + 1e-300 * (value > 0) + 1.01 * second.gap * (value + np.sqrt(2.01 * value) + second.gap)
    return np.maximum(value - error, 0.0), np.asarray(value + error)


def _widened(value: float, error: float, unit: str, method: str) -> Reading:
    if value == math.inf:
        return Reading(value, value, value, "exact", method)
    upper = value + error
    return Reading(value, max(0.0, value - error), min(1.0, upper) if unit == "probability" else upper, "exact", method)
