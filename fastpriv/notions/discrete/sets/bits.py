"""Unary encodings and subset selections as sets whose law under a reference does not depend on the secret.

Notation: under the reference law 0 a unary release sets every bit with probability q, a subset selection draws any set
of ``size`` of the k secrets, q = size / k. The likelihood of secret d over the reference is c_d = a if d is in the set,
b if not: a = 1 / (q + (1 - q) e^-epsilon), b = a e^-epsilon, D = a - b; q a + (1 - q) b = 1. With
S = sum_j pi_j c_j, E_0 S = 1, the law of the release is S times the reference, and the posterior of d is pi_d c_d / S.
"""

# bounds: tested by enclosures/test_sets_notions - rounding of q, of D and of their logarithms; the rest chooses
#    another way

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...._values import FloatArray
from ....channels import SubsetSelection, UnaryEncoding
from ....channels.priors import atoms
from ..arguments import UNIT, Setting

__all__ = ["Bits", "bits_of"]

_MOST = 2**21  # distinct prior probabilities
_STEPS = 2**20  # of a recurrence over secrets and sizes


class Bits(NamedTuple):
    """The positive atoms of the prior in decreasing order, with the few numbers of the channel.

    ``size`` is None for bits that are independent under the reference. ``inside`` and ``outside`` are q and 1 - q,
    ``blur`` bounds the relative error of both, of a, b and of D. Values are to be divided by ``total``: of sets they
    are as they were given, their differences exact.
    """

    secrets: int
    size: int | None
    value: FloatArray
    counts: FloatArray
    inside: float
    outside: float
    epsilon: float
    high: float
    low: float
    rise: float
    blur: float
    total: float

    @property
    def energy(self) -> float:
        """Sum of the squares of the prior."""
        return float(np.sum(self.counts * self.value**2))

    @property
    def bit(self) -> Bits:
        """The same channel under a prior that is sure of one secret, of which S is the likelihood."""
        return self._replace(secrets=1, size=None, value=np.ones(1), counts=np.ones(1), total=1.0)


def bits_of(given: Setting) -> Bits | None:
    """None for other channels, channels without noise or without information, and what is out of reach."""
    channel, prior = given
    if isinstance(channel, UnaryEncoding):
        _, logit, epsilon = channel._mirrored()
        if not math.isfinite(logit):
            return None
        inside, outside = _expit(logit), _expit(-logit)
        size = None
    elif isinstance(channel, SubsetSelection):
        size = channel.size
        if channel.k == 1 or channel.k * size > _STEPS:
            return None
        inside, outside, epsilon = size / channel.k, (channel.k - size) / channel.k, channel.epsilon
    else:
        return None
    own = atoms(prior, channel.inputs)
    held = own.value > 0
    value, counts = own.value[held][::-1], np.array(own.counts, dtype=np.float64)[held][::-1]
    if value.size > _MOST or min(inside, outside) < 1e-280 or epsilon <= 1e-120:
        return None
    total = float(np.sum(counts * value, dtype=np.longdouble))
    if size is None:
        value, total = value / total, 1.0
    high = 1.0 / (inside + outside * math.exp(-epsilon))
    blur = 16 * UNIT * (1.0 - math.log(inside * outside) if size is None else 1.0 - math.log(inside))
    return Bits(
        channel.inputs, size, value, counts, inside, outside, epsilon, high, high * math.exp(-epsilon),
        -high * math.expm1(-epsilon), blur, total,
    )  # fmt: skip


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(max(x, -745.0)) / (1.0 + math.exp(max(x, -745.0)))
