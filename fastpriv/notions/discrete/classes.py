"""Channels known by classes of like releases and groups of like secrets: one sum over groups for each quantity.

Notation: class c has weight W_c (probability of its releases) and groups of prior mass g_h and log ratio y_h = ln r_h.
I = sum_c W_c sum_h g_h psi(e^y_h), psi(e^y) = e^y kappa(-y), kappa(x) = e^x - 1 - x >= 0: nothing cancels.

Errors: y is right to 1e-14 |y| in classes of at most 8 groups, to 1e-14 (1 + the largest finite |tilt|) besides in
others; an error dy moves psi by at most e^y |y| dy to first order. The log of W_c is right to 16 u (8 + |ln W_c|), and
what the weights miss 1 by is added.
"""

from __future__ import annotations

import math

import numpy as np

from ..._values import FloatArray
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

__all__ = ["alike", "edges", "grouped", "information", "maximal", "vulnerability"]

_METHOD = "classes of like releases"
_FEW = 8
_RATIO = 1e-14


def grouped(given: Setting) -> Profiles | None:
    """Profiles of the families that have them without being looked at cell by cell."""
    channel = given.channel
    sparse = isinstance(channel, SparseChannel) and len(channel.background) == 1
    if sparse or isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection)):
        return channel._profiles(given.prior)
    return None


def alike(channel: AnyChannel) -> bool:
    """Whether any permutation of the secrets is undone by one of the releases."""
    return isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection))


def edges(found: Extremes, channel: AnyChannel, gap: float) -> dict[str, Reading]:
    """LDP over all secrets and over the support, and both sides of MBP."""
    names = {"ldp": found.ldp_epsilon, "support": found.support_epsilon, "plus": found.xi_plus, "minus": found.xi_minus}
    readings = {}
    for name, value in names.items():
        error = value * found.rounding + found.error + 2.1 * channel.mass_gap + (1.1 * gap if "s" not in name else 0.0)
        if value in (0.0, math.inf) or not math.isfinite(error):
            error = 0.0 if value == math.inf else 2.1 * channel.mass_gap
        readings[name] = Reading(value, max(0.0, value - error), value + error, "exact", "closed form")
    return readings


def information(found: Profiles, gap: float) -> Reading:
    """Mutual information."""
    log_weight, y = found.log_weight, found.log_ratio
    held = (found.log_mass > -np.inf) & (log_weight > -np.inf)[found.classes]
    classes = found.classes[held]
    y, log_mass, weight = y[held], found.log_mass[held], np.exp(log_weight)
    with np.errstate(over="ignore", invalid="ignore"):
        joint = np.exp(log_mass + found.log_total[classes] + found.tilt[held])
        base = np.exp(log_mass) * weight[classes]
        falling = base * (1.0 + np.where(np.isneginf(y), 0.0, np.exp(y) * (y - 1.0)))
        rising = joint * (y + np.expm1(-y))
        near = np.abs(y) < 0.5
        terms = np.where(near, joint * _kappa(np.where(near, -y, 0.0)), np.where(y < 0, falling, rising))
    many = (np.diff(found.starts) > _FEW)[classes]
    size = np.abs(found.tilt[held])
    loose = 1.0 + float(np.max(size, where=np.isfinite(size), initial=0.0))
    finite = np.isfinite(y)
    reach = np.where(finite, np.abs(np.where(finite, y, 0.0)), 0.0)
    moved = joint * reach * (_RATIO * reach + np.where(many, _RATIO * loose, 0.0) + 4 * found.error)
    missed = abs(math.fsum(weight) - 1.0) if found.missing == 0 else 0.0
    exponent = np.abs(np.where(np.isfinite(found.log_total), found.log_total, 0.0))[classes]
    relative = 16 * UNIT * (8 + exponent) + 2 * missed + 40 * UNIT
    value = math.fsum(terms)
    error = math.fsum(terms * relative) + 1.1 * math.fsum(moved) + 1e-300 * (value > 0)
    error += 2.2 * found.gap * value + 1.01 * gap * (value + math.sqrt(2.01 * value) + gap)
    upper = value + error + (found.missing * float(np.max(found.tilt.max() - found.tilt, initial=0.0) + 1.0)
                             if found.missing else 0.0)  # fmt: skip
    return Reading(value, max(0.0, value - error), upper, "certified", _METHOD)


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


def _log_sum(logs: FloatArray) -> tuple[float, float]:
    """Log of the sum of exponentials, and a bound of its error."""
    real = logs[logs > -np.inf]
    if real.size == 1:  # as precise as it was given
        return float(real[0]), 4 * UNIT * abs(float(real[0]))
    top = float(real.max())
    parts = np.exp(real - top)
    total = math.fsum(parts)
    size = math.fsum(parts * np.abs(real)) / total
    return top + math.log(total), 16 * UNIT * (8 + size + abs(top))


def _kappa(x: FloatArray) -> FloatArray:
    """e^x - 1 - x for |x| <= 1/2."""
    total = np.zeros_like(x)
    for i in range(16, 2, -1):
        total = (1.0 + total) * x / i
    return 0.5 * x * x * (1.0 + total)
