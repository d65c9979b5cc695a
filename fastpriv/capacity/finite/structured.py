"""Capacities of channels that are known by structure, from their parts and never written out.

Notation: class c of like releases has probability W_c, its groups of secrets mass g_h and y_h = ln(posterior / prior).

Where some renaming of the releases undoes any renaming of two secrets (randomised response, unary encoding, subset
selection), all rows are equally far from their mean: the uniform law is the best one, and its information

    I = sum_c W_c sum_h g_h psi(y_h),   psi(y) = e^y (e^-y - 1 + y) >= 0,

is the capacity: both sides of the certificate are the same number, and no term cancels another. In classes of two
groups y is right to 1e-14 relatively; psi, its exponential apart, moves by at most e^y |y| min(1, 1.7 |y|) 1e-14 for
it, and every exponential is right to u times its exponent. Where the number of bits that are 1 is binomial, its mean
k q has an error of 2 u (1 + |ln q|), which moves the log of a probability by that times the distance from the mean,
about the standard deviation. Capacities of independent channels add up; equal rows count once.
"""

# bounds: tested by enclosures/test_structured_capacity - rounding of the sum over classes, by the notes at the head

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ..._values import FloatArray
from ...channels import (
    AnyChannel,
    DefaultChannel,
    ProductChannel,
    Profiles,
    RandomizedResponse,
    SubsetSelection,
    UnaryEncoding,
)
from ...channels.families.membership import log_expit

__all__ = ["EXACTLY", "SUMMED", "Laws", "added", "alike", "blur", "information", "joined", "shared", "uniform"]

# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
# bound: tested by enclosures/test_structured_capacity - relative error of log ratios in classes of few groups
_RATIO = 1e-14
EXACTLY = 2**16  # terms up to which a sum is exact
# bound: proved - a term takes part in at most 19 + log2(n / 128) additions, in blocks of 128 and halves of halves
SUMMED = 64 * _UNIT
_FEW = 8  # groups of a class up to which log ratios are that right; in others so much of the largest tilt besides
_WRITTEN = 2**20  # numbers of a law, and cells looked at for it, up to which it is written out
_SIDE = 2**10  # secrets of a channel with at least as many releases: beyond it there are more cells than that


class Laws(NamedTuple):
    """What shows a capacity, in nats; laws and divergences are None where they are too large to be written out."""

    value: float
    lower: float
    upper: float
    input: FloatArray | None
    output: FloatArray | None
    divergences: FloatArray | None


def alike(channel: AnyChannel) -> bool:
    """Whether some renaming of the releases undoes any renaming of two secrets."""
    return isinstance(channel, (RandomizedResponse, UnaryEncoding, SubsetSelection))


def uniform(channel: AnyChannel) -> Laws | None:
    """The closed form of a channel that treats all secrets alike; None where its classes are too many to be listed."""
    found = channel.profiles()
    if found is None:
        return None
    value, lower, upper = information(found, blur=blur(channel))
    if channel.inputs > _SIDE or not channel._cells_within(_WRITTEN):
        return Laws(value, lower, upper, None, None, None)
    law = np.full(channel.inputs, 1.0 / channel.inputs)
    return Laws(value, lower, upper, law, law @ channel.matrix(), np.full(channel.inputs, value))


def blur(channel: AnyChannel) -> float:
    """Relative error of all classes of a channel together."""
    if not (isinstance(channel, UnaryEncoding) and math.isfinite(channel.logit_q)):
        return 0.0
    spread = log_expit(channel.logit_q) + log_expit(-channel.logit_q)  # log of q (1 - q)
    return 32 * _UNIT * (1.0 - spread) * (1.0 + math.sqrt(channel.k * math.exp(spread)))


def shared(channel: DefaultChannel, found: Any) -> Laws:
    """The capacity of the rows that differ, with the weight of the default row shared by all secrets that have it."""
    bounds = found.capacity.value, found.capacity.lower, found.capacity.upper
    if channel.inputs > _WRITTEN:
        return Laws(*bounds, None, found.output, None)
    listed = channel.indices
    law = np.full(channel.inputs, found.input[-1] / (channel.inputs - listed.size))
    far = np.full(channel.inputs, found.divergences[-1])
    law[listed], far[listed] = found.input[:-1], found.divergences[:-1]
    return Laws(*bounds, law, found.output, far)


def joined(channel: ProductChannel, parts: list[Any]) -> Laws:
    """The sum over factors; the laws are products."""
    value, lower, upper = (
        math.fsum(own * float(getattr(one.capacity, end)) for own, one in zip(channel.powers, parts, strict=True))
        for end in ("value", "lower", "upper")
    )
    slack = 4 * _UNIT * upper
    places = [one for own, one in zip(channel.powers, parts, strict=True) for _ in range(min(own, _SIDE))]
    laws = [_outer([getattr(one, name) for one in places], join) for name, join in
            (("input", np.multiply), ("output", np.multiply), ("divergences", np.add))]  # fmt: skip
    return Laws(value, max(0.0, lower - slack), upper + slack, *laws)


def _outer(columns: list[FloatArray | None], join: np.ufunc) -> FloatArray | None:
    """The law, or the divergences, of independent ones; None where it is large."""
    law = np.full(1, float(join.identity))
    for column in columns:
        if column is None or law.size * column.size > _WRITTEN:
            return None
        law = join.outer(law, column).reshape(-1)
    return law


def information(found: Profiles, *, blur: float = 0.0, gap: float = 0.0) -> tuple[float, float, float]:
    """Mutual information of the profiles' prior, with its bounds.

    ``blur``: relative error of all classes together; ``gap``: what rows miss the sum 1 by.
    """
    log_weight, y = found.log_weight, found.log_ratio
    held = (found.log_mass > -np.inf) & (log_weight > -np.inf)[found.classes]
    classes, y, log_mass = found.classes[held], y[held], found.log_mass[held]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mass = np.exp(log_mass + log_weight[classes])
        joint = np.exp(log_mass + found.log_total[classes] + found.tilt[held])  # e^y mass
        small = np.abs(y) < 0.5
        inner = np.where(small, y, 0.0)
        falling = mass * (1.0 + np.where(np.isneginf(y), 0.0, np.exp(y) * (y - 1.0)))
        rising = joint * (y + np.expm1(-y))
        terms = np.where(small, joint * _excess(-inner), np.where(y < 0, falling, rising))
        reach = np.where(np.isfinite(y), np.abs(y), 0.0)
        moved = joint * np.where(y > 1.0, 1.0, 1.7 * reach)
    size = np.abs(found.tilt[held])
    loose = 1.0 + float(np.max(size, where=np.isfinite(size), initial=0.0))
    many = (np.diff(found.starts) > _FEW)[classes]
    blurred = _RATIO * (reach + np.where(many, loose, 0.0)) + 4 * found.error
    missed = abs(math.fsum(np.exp(log_weight)) - 1.0) if found.missing == 0 else 0.0
    exponent = np.abs(np.where(np.isfinite(found.log_total), found.log_total, 0.0))[classes] + np.abs(log_mass)
    value = added(terms)
    error = added(terms * (16 * _UNIT * (10 + exponent) + 2 * missed + blur)) + 1.1 * added(moved * blurred)
    error += SUMMED * (value + error) if terms.size > EXACTLY else 0.0
    error += 2.2 * found.gap * value + 1.01 * gap * (value + math.sqrt(2.01 * value) + gap)
    tiny = 1e-300 if value > 0 or np.any(y != 0) else 0.0
    beyond = found.missing * (1.0 + float(np.max(found.tilt.max() - found.tilt, initial=0.0))) if found.missing else 0.0
    return value, max(0.0, value - error - tiny), value + error + tiny + beyond


def added(terms: FloatArray) -> float:
    """The sum of terms of at least 0: exact, and of many of them right to ``SUMMED``."""
    return math.fsum(terms.tolist()) if terms.size <= EXACTLY else float(np.sum(terms))


def _excess(x: FloatArray) -> FloatArray:
    """e^x - 1 - x for |x| <= 1/2."""
    total = np.zeros_like(x)
    for i in range(17, 2, -1):
        total = (1.0 + total) * x / i
    return np.asarray(0.5 * x * x * (1.0 + total))
