"""Channels known by classes of like releases and groups of like secrets: one sum over groups for each quantity.

Notation: class c has weight W_c (probability of its releases) and groups of prior mass g_h. Logs of sums of
exponentials are right to 16 u (8 + the sizes of the logs, weighted). Mutual information:
``capacity/structured.py``.
"""

# bounds: tested by enclosures/test_channel_notions - rounding of logarithms of masses

from __future__ import annotations

import math

import numpy as np

from ..._values import FloatArray
from ...capacity import structured
from ...channels import (
    AnyChannel,
    Extremes,
    Profiles,
    RandomizedResponse,
    SparseChannel,
    SubsetSelection,
    UnaryEncoding,
)
from .arguments import UNIT, Reading, Setting

__all__ = ["edges", "energy", "grouped", "information", "maximal", "vulnerability"]

_METHOD = "classes of like releases"


def grouped(given: Setting) -> Profiles | None:
    """Profiles of the families that have them without being looked at cell by cell."""
    channel = given.channel
    sparse = isinstance(channel, SparseChannel) and len(channel.background) == 1
    if sparse or isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection)):
        return channel._profiles(given.prior)
    return None


def edges(found: Extremes, channel: AnyChannel, gap: float) -> dict[str, Reading]:
    """LDP over all secrets and over the support, and both sides of MBP."""
    names = {"ldp": found.ldp_epsilon, "support": found.support_epsilon, "plus": found.xi_plus, "minus": found.xi_minus}
    readings = {}
    for name, value in names.items():
        error = value * found.rounding + found.error + 2.1 * channel.mass_gap
        error += 1.1 * gap if name in ("plus", "minus") else 0.0
        if value in (0.0, math.inf) or not math.isfinite(error):
            error = 0.0  # equal rows stay so, and zeros, whatever their sums are
        readings[name] = Reading(value, max(0.0, value - error), value + error, "exact", "closed form")
    return readings


def information(found: Profiles, channel: AnyChannel) -> Reading:
    """Mutual information."""
    bounds = structured.information(found, blur=structured.blur(channel), gap=channel.mass_gap)
    return Reading(*bounds, "certified", _METHOD)


def vulnerability(found: Profiles, gap: float) -> tuple[Reading, Reading, Reading]:
    """Chance of the best guess after the release, the log of that before it, and the log of their ratio."""
    held = found.log_mass > -np.inf
    before = float(found.log_largest[held].max())
    with np.errstate(invalid="ignore"):
        gains = np.where(held, found.tilt + (found.log_largest - before), -np.inf)
    best = np.maximum.reduceat(gains, found.starts[:-1]) + found.log_total
    value, relative = _log_sum(best)
    relative += 4 * UNIT * (8 + abs(before)) + 4 * found.error + 2.1 * gap + 1.1 * found.gap + found.missing
    after = math.exp(before + value)
    return (
        Reading(after, after * (1 - relative), min(1.0, after * (1 + relative) + found.missing), "exact", _METHOD),
        Reading(before, before - 4 * UNIT * (8 + abs(before)), before + 4 * UNIT * (8 + abs(before)), "exact", _METHOD),
        Reading(max(0.0, value), max(0.0, value - relative), max(0.0, value) + relative, "exact", _METHOD),
    )


def maximal(found: Profiles, support: bool, gap: float) -> Reading:
    """Log of the sum of the largest likelihoods."""
    held = found.log_mass > -np.inf if support else np.ones(len(found.tilt), dtype=bool)
    best = np.maximum.reduceat(np.where(held, found.tilt, -np.inf), found.starts[:-1]) + found.log_total
    value, relative = _log_sum(best)
    relative += 4 * found.error + 2.1 * gap
    if found.missing:
        relative += found.missing * math.exp(min(700.0, float(-found.tilt.min())))
    return Reading(max(0.0, value), max(0.0, value - relative), max(0.0, value) + relative, "exact", _METHOD)


def energy(profiles: Profiles) -> tuple[float, float]:
    """sum_w q sum_d pi (r - 1)^2 with its relative error."""
    log_weight, y = profiles.log_weight, profiles.log_ratio
    held = (profiles.log_mass > -np.inf) & (log_weight > -np.inf)[profiles.classes] & (y > -np.inf)
    joint = profiles.log_mass + log_weight[profiles.classes]
    with np.errstate(over="ignore"):
        change = np.where(y > -np.inf, np.expm1(y), -1.0)
        terms = np.where(np.abs(y) < 1, np.exp(joint) * change**2, np.exp(joint + 2 * np.log(np.maximum(np.abs(change),
                         1e-300))))  # fmt: skip
    terms = np.where(held | (y == -np.inf), terms, 0.0)
    size = np.where(np.isfinite(joint), np.abs(joint), 0.0) + np.where(np.isfinite(y), np.abs(y), 0.0)
    total = structured.added(terms)
    spread = structured.added(terms * (32 * UNIT * (8 + size) + 4e-14)) / total if total > 0 else 0.0
    return total, spread + (2 * structured.SUMMED if terms.size > structured.EXACTLY else 0.0)


def _log_sum(logs: FloatArray) -> tuple[float, float]:
    """Log of the sum of exponentials, and a bound of its error."""
    real = logs[logs > -np.inf]
    if real.size == 1:  # as precise as it was given
        return float(real[0]), 4 * UNIT * abs(float(real[0]))
    top = float(real.max())
    parts = np.exp(real - top)
    total = structured.added(parts)
    size = structured.added(parts * np.abs(real)) / total
    summed = 2 * structured.SUMMED if parts.size > structured.EXACTLY else 0.0
    return top + math.log(total), 16 * UNIT * (8 + size + abs(top)) + summed
