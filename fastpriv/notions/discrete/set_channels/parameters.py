"""Unary encodings and subset selections as random sets whose reference distribution does not depend on the secret.

Notation: under the reference, which E_0 refers to, a unary encoding sets every bit with probability q, and a subset
selection draws any set of ``size`` of the k secrets, q = size / k. The likelihood of secret d over the reference is
c_d = a if d is in the set, b if not: a = 1 / (q + (1 - q) e^-epsilon), b = a e^-epsilon, D = a - b; hence
q a + (1 - q) b = 1. With S = sum_j pi_j c_j, E_0 S = 1, the distribution of the release is S times the reference, and
the posterior of d is pi_d c_d / S.
"""

# bounds: tested by enclosures/test_sets_notions - rounding of q, of D and of their logarithms; the rest chooses
#    another method

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ....base.numerics import UNIT_ROUNDOFF as U
from ....base.numerics import FloatArray
from ....channels.type_classes import distinct_probabilities
from ....mechanisms import SubsetSelection, UnaryEncoding
from ..channel_with_prior import ChannelWithPrior

__all__ = ["SetParameters", "set_parameters"]

_MOST_DISTINCT = 2**21  # distinct prior probabilities: 16 MiB a vector
_MOST_STEPS = 2**20  # steps of a recurrence over secrets and sizes: a second or so


class SetParameters(NamedTuple):
    """The few numbers of the channel, with the distinct prior probabilities.

    ``size`` is None for bits that are independent under the reference. ``prior`` holds the distinct positive
    probabilities, in decreasing order, to be divided by ``total``, and ``counts`` how many secrets have each; for
    subset selections they are as the caller passed them, so that their differences are exact. ``inside`` and
    ``outside`` are q and 1 - q, ``high``, ``low`` and ``difference`` are a, b and D; ``relative_error`` bounds the
    error of all five.
    """

    secrets: int
    size: int | None
    prior: FloatArray
    counts: FloatArray
    inside: float
    outside: float
    epsilon: float
    high: float
    low: float
    difference: float
    relative_error: float
    total: float

    @property
    def prior_square_sum(self) -> float:
        """Sum of the squares of the prior."""
        return float(np.sum(self.counts * self.prior**2))

    @property
    def single_secret(self) -> SetParameters:
        """The same channel under a prior that is sure of one secret, of which S is the likelihood."""
        return self._replace(secrets=1, size=None, prior=np.ones(1), counts=np.ones(1), total=1.0)


def set_parameters(model: ChannelWithPrior) -> SetParameters | None:
    """None for other channels, for those without noise or without information, and for those that are too large."""
    channel, prior = model
    if isinstance(channel, UnaryEncoding):
        _, logit, epsilon = channel._canonical_logits()
        if not math.isfinite(logit):
            return None
        inside, outside = _expit(logit), _expit(-logit)
        size = None
    elif isinstance(channel, SubsetSelection):
        size = channel.size
        if channel.k == 1 or channel.k * size > _MOST_STEPS:
            return None
        inside, outside, epsilon = size / channel.k, (channel.k - size) / channel.k, channel.epsilon
    else:
        return None
    distinct = distinct_probabilities(prior, channel.inputs)
    positive = distinct.value > 0
    value, counts = distinct.value[positive][::-1], np.array(distinct.counts, dtype=np.float64)[positive][::-1]
    if value.size > _MOST_DISTINCT or min(inside, outside) < 1e-280 or epsilon <= 1e-120:
        return None
    total = float(np.sum(counts * value, dtype=np.longdouble))
    if size is None:
        value, total = value / total, 1.0
    high = 1.0 / (inside + outside * math.exp(-epsilon))
    relative_error = 16 * U * (1.0 - math.log(inside * outside) if size is None else 1.0 - math.log(inside))
    return SetParameters(
        channel.inputs, size, value, counts, inside, outside, epsilon, high, high * math.exp(-epsilon),
        -high * math.expm1(-epsilon), relative_error, total,
    )  # fmt: skip


def _expit(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(max(x, -745.0)) / (1.0 + math.exp(max(x, -745.0)))
