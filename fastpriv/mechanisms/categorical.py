"""Mechanisms on categories: randomised response, and the exponential mechanism on given scores.

Notation: k secrets, e = epsilon; n secrets, m releases.
"""

# bounds: proved - rounding of the logs of both probabilities of randomised response of two values: theorem 7.8 of
#    docs/proofs/finite_capacity.md

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.errors import ShapeError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, scaled_exponential
from ..channels.base import AnyChannel
from ..channels.likelihoods import DefaultLikelihood
from ..channels.type_classes import ExtremeLogRatios, RowPair, TypeClasses, distinct_probabilities

_MAX_INT64_SECRETS = 2**63  # more secrets are numbered by Python integers


class RandomizedResponse(AnyChannel):
    """Randomised response over k values: the truth, or any other value, e^epsilon times less likely each.

    Parameters
    ----------
    k : int
        Number of secrets, which are the releases too; 1 to 2**200 and beyond.
    epsilon : float
        Level of LDP in nats, from 0 (noise alone) to inf (the truth).

    Notes
    -----
    The truth is released with probability e^epsilon / (e^epsilon + k - 1). A cascade of two is another one.

    **Accuracy** entries within 4e-15 relative; ``tests/enclosures/test_channels.py``.

    Source: Kairouz, Oh and Viswanath 2014; Kairouz, Bonawitz and Ramage 2016 (k-RR).

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> q = RandomizedResponse(10**12, 3.0)
    >>> q.column(5).indices, q.column(5).values
    (array([5]), array([-24.63...]))
    >>> RandomizedResponse(2, 1.0).then(RandomizedResponse(2, 1.0))
    RandomizedResponse(2, 0.43378083048302...)
    """

    __slots__ = _fields = ("k", "epsilon")

    k: int
    epsilon: float

    def __init__(self, k: int, epsilon: float) -> None:
        self._set(k=validate.count("k", k), epsilon=validated_epsilon(epsilon))

    def _input_count(self) -> int:
        return self.k

    _output_count = _input_count

    @property
    def log_truth(self) -> float:
        """Log probability of releasing the truth."""
        return 0.0 if self.k == 1 else -float(np.logaddexp(0.0, math.log(self.k - 1) - self.epsilon))

    @property
    def log_gain(self) -> float:
        """Log of k times the probability of the truth: the log ratio to a uniform guess."""
        if self.epsilon > 700 or self.k > 2**1000:
            return self.log_truth + math.log(self.k)
        return -log_mixture(1.0 / self.k, (self.k - 1) / self.k, -self.epsilon)

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        rows = np.full((stop - start, self.k), self.log_truth - self.epsilon)
        rows[np.arange(stop - start), np.arange(start, stop)] = self.log_truth
        return rows

    def column(self, output: ArrayLike) -> DefaultLikelihood:
        """Log likelihoods of one release: the same for all secrets but that one."""
        dtype: Any = np.int64 if self.k <= _MAX_INT64_SECRETS else object
        index = np.array([self._output_index(output)], dtype=dtype)
        return DefaultLikelihood(self.k, self.log_truth - self.epsilon, index, np.array([self.log_truth]))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        lies = generator.random(secrets.shape) >= math.exp(self.log_truth)
        if self.k == 1 or not lies.any():
            return secrets.copy()
        if self.k <= _MAX_INT64_SECRETS:
            other = generator.integers(0, self.k - 1, secrets.shape)
        else:
            other = np.empty(secrets.shape, dtype=object)
            for index in np.ndindex(secrets.shape):
                other[index] = _random_below(self.k - 1, generator)
        return np.where(lies, other + (other >= secrets), secrets)

    def _closed_cascade(self, step: AnyChannel) -> AnyChannel | None:
        if not isinstance(step, RandomizedResponse):
            return step if self.epsilon == math.inf or self.k == 1 else None
        low, high = sorted((self.epsilon, step.epsilon))
        if high == math.inf or low == 0.0:
            return RandomizedResponse(self.k, low)
        # with a = e^low, b = e^high: e^epsilon - 1 = (a - 1)(b - 1) / (a + b + k - 2); both sides divided by b
        denominator = math.exp(low - high) + 1.0 + scaled_exponential(self.k - 2, -high)
        return RandomizedResponse(self.k, math.log1p(math.expm1(low) * -math.expm1(-high) / denominator)
                                  if low < 700 else low - math.log(denominator))

    def _type_classes(self, prior: FloatArray | None) -> TypeClasses:
        """A class for each distinct probability of the released secret; its groups are that secret and all others."""
        distinct = distinct_probabilities(prior, self.k)
        if self.k == 1:
            zeros, items = np.zeros(1), np.ones(1)
            return TypeClasses(zeros, zeros, [0, 1], zeros, items, zeros, zeros, zeros, gap=distinct.gap)
        groups = [column.reshape(-1) for column in distinct.with_other_secrets()]
        relative = np.tile([0.0, -self.epsilon], len(distinct.value))
        return TypeClasses(distinct.log_count, distinct.log_count - math.log(self.k) + self.log_gain,
                           np.arange(0, relative.size + 1, 2), relative, *groups, gap=distinct.gap)

    def _extreme_log_ratios(self, prior: FloatArray | None) -> ExtremeLogRatios:
        return self._type_classes(prior).extreme_log_ratios()

    def dominating_pairs(self) -> tuple[RowPair, ...]:
        """One pair of rows: all pairs are equivalent by symmetry."""
        if self.k == 1:
            return (RowPair.trivial(),)
        truth, lie = self.log_truth, self.log_truth - self.epsilon
        if self.k == 2:
            error = 8 * UNIT_ROUNDOFF * abs(truth) + 2 * UNIT_ROUNDOFF * abs(lie) if self.epsilon < math.inf else 0.0
            return (RowPair([truth, lie], [lie, truth], [self.epsilon, -self.epsilon], [error] * 2, [0.0] * 2),)
        remainder, ratios = lie + math.log(self.k - 2), [self.epsilon, -self.epsilon, 0.0]
        rows = [truth, lie, remainder], [lie, truth, remainder]
        return (RowPair(*rows, ratios, ratio_error=[0.0] * 3, largest=math.log(self.k)),)

    def __repr__(self) -> str:
        return f"RandomizedResponse({self.k}, {self.epsilon!r})"


class ExponentialMechanism(AnyChannel):
    """The exponential mechanism: releases weighted by e^(epsilon score / (2 sensitivity)).

    Parameters
    ----------
    scores : array_like, shape (n, m)
        Score of each release under each secret, finite; higher is likelier.
    epsilon : float
        Non-negative and finite: the LDP level that is aimed at. The level attained is at most that.
    sensitivity : float, optional
        The largest difference that a change of the secret makes to a score. Default: that of the scores given.
        A smaller one, for neighbours alone, is allowed: LDP over all secrets is then larger than ``epsilon``.

    Notes
    -----
    Rows are computed on demand from the stored scores.

    **Accuracy** logs of entries within 2e-15 of the largest of their row, and 2e-15;
    ``tests/enclosures/test_channels.py``.

    Source: McSherry and Talwar 2007.

    Examples
    --------
    >>> from fastpriv.mechanisms import ExponentialMechanism
    >>> q = ExponentialMechanism([[1.0, 0.0], [0.0, 1.0]], 2.0)
    >>> q.matrix()
    array([[0.73105858, 0.26894142],
           [0.26894142, 0.73105858]])
    """

    __slots__ = _fields = ("scores", "epsilon", "sensitivity")

    scores: FloatArray
    epsilon: float
    sensitivity: float

    def __init__(self, scores: ArrayLike, epsilon: float, sensitivity: float | None = None) -> None:
        table = validate.real("scores", scores, "finite", np.isfinite, answer=False)
        if table.ndim != 2 or table.size == 0:
            raise ShapeError(
                f"scores must have one row a secret and one column a release; got shape {table.shape}. "
                "Pass shape (n, m)."
            )
        level = validate.scalar("epsilon", epsilon, "finite and at least 0", lambda e: (e >= 0) & (e < np.inf))
        if sensitivity is None:
            sensitivity = float(np.max(table.max(axis=0) - table.min(axis=0))) or 1.0
        span = validate.scalar("sensitivity", sensitivity, "positive and finite", lambda s: (s > 0) & (s < np.inf))
        self._set(scores=np.array(table, order="C"), epsilon=level, sensitivity=span)

    def _input_count(self) -> int:
        return len(self.scores)

    def _output_count(self) -> int:
        return int(self.scores.shape[1])

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        halves = 0.5 * self.scores[start:stop]  # differences of scores may exceed the largest double
        with np.errstate(over="ignore"):  # differences of scores first: products of large scores are rounded far more
            exponents = (halves - halves.max(axis=1, keepdims=True)) * (self.epsilon / self.sensitivity)
        return np.asarray(exponents - np.log(np.sum(np.exp(exponents), axis=1, keepdims=True)))

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<ExponentialMechanism of {n:,} secrets and {m:,} releases, epsilon {self.epsilon:g}>"


def validated_epsilon(epsilon: float) -> float:
    """A level of privacy from 0 to infinity."""
    return validate.scalar("epsilon", epsilon, "at least 0", lambda e: e >= 0)


def log_mixture(weight: float, complement: float, exponent: float) -> float:
    """log(w + v e^x) of the weight w and its complement v = 1 - w for exponents x < 0, else log(v + w e^x)."""
    change = complement * math.expm1(exponent) if exponent < 0 else weight * math.expm1(min(exponent, 700.0))
    if change > -0.5 and exponent < 700:
        return math.log1p(change)
    return float(np.logaddexp(math.log(weight) + max(exponent, 0.0), math.log(complement) + min(exponent, 0.0)))


def _random_below(bound: int, generator: np.random.Generator) -> int:
    """A uniform natural number below a bound of any size, by rejection."""
    bits = bound.bit_length()
    while True:
        number = int.from_bytes(generator.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if number < bound:
            return number
