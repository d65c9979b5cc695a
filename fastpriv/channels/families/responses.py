"""Channels that treat secrets alike but for the true one: randomised response, default rows, scores.

Notation: k secrets, e = epsilon; n secrets, m releases.
"""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - rounding of the logs of both
#    probabilities

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ..._values import FloatArray
from ...errors import DomainError, ShapeError
from ..base import AnyChannel, Exceptions
from ..dense import Channel
from ..priors import atoms, prior_gap
from ..profiles import Extremes, Profiles, RowPair, from_groups, ordered_pairs
from .membership import log_mixed

__all__ = ["DefaultChannel", "ExponentialMechanism", "RandomizedResponse", "checked_epsilon", "natural_below"]

_BITS = 63
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_DISTINCT = 64  # rows up to which all ordered pairs are handed out


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
    The truth is told with probability e^epsilon / (e^epsilon + k - 1). Of two in a row the result is another.

    **Accuracy** entries within 4e-15 relative; ``tests/enclosures/test_channels.py``.

    Source: Kairouz, Oh and Viswanath 2014; Kairouz, Bonawitz and Ramage 2016 (k-RR).

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> q = RandomizedResponse(10**12, 3.0)
    >>> q.column(5)
    Exceptions(size=1000000000000, default=-27.63..., indices=array([5]), values=array([-24.63...]))
    >>> RandomizedResponse(2, 1.0).then(RandomizedResponse(2, 1.0))
    RandomizedResponse(2, 0.43378083048302...)
    """

    __slots__ = _fields = ("k", "epsilon")

    k: int
    epsilon: float

    def __init__(self, k: int, epsilon: float) -> None:
        self._set(k=_validate.count("k", k), epsilon=checked_epsilon(epsilon))

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self.k

    @property
    def log_truth(self) -> float:
        """Log probability of releasing the truth."""
        return 0.0 if self.k == 1 else -float(np.logaddexp(0.0, math.log(self.k - 1) - self.epsilon))

    @property
    def log_gain(self) -> float:
        """Log of k times that probability: how much likelier than a guess."""
        if self.epsilon > 700 or self.k > 2**1000:
            return self.log_truth + math.log(self.k)
        return -log_mixed(1.0 / self.k, -self.epsilon)

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        found = np.full((stop - start, self.k), self.log_truth - self.epsilon)
        found[np.arange(stop - start), np.arange(start, stop)] = self.log_truth
        return found

    def column(self, output: Any) -> Exceptions:
        """Log likelihoods of one release: the same for all secrets but that one.

        Parameters
        ----------
        output : int
            The release.
        """
        place = self._output(output)
        kind: Any = np.int64 if self.k <= 2**_BITS else object
        return Exceptions(self.k, self.log_truth - self.epsilon, np.array([place], dtype=kind),
                          np.array([self.log_truth]))  # fmt: skip

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        lies = generator.random(secrets.shape) >= math.exp(self.log_truth)
        if self.k == 1 or not lies.any():
            return secrets.copy()
        if self.k <= 2**_BITS:
            other = generator.integers(0, self.k - 1, secrets.shape)
        else:
            other = np.empty(secrets.shape, dtype=object)
            for place in np.ndindex(secrets.shape):
                other[place] = natural_below(self.k - 1, generator)
        return np.where(lies, other + (other >= secrets), secrets)

    def _then(self, step: AnyChannel) -> AnyChannel | None:
        if not isinstance(step, RandomizedResponse):
            return step if self.epsilon == math.inf or self.k == 1 else None
        low, high = sorted((self.epsilon, step.epsilon))
        if high == math.inf or low == 0.0:
            return RandomizedResponse(self.k, low)
        # e^epsilon - 1 = (a - 1)(b - 1) / (a + b + k - 2), divided by b = e^high
        below = math.exp(low - high) + 1.0 + _times_exp(self.k - 2, -high)
        return RandomizedResponse(self.k, math.log1p(math.expm1(low) * -math.expm1(-high) / below)
                                  if low < 700 else low - math.log(below))  # fmt: skip

    def _profiles(self, prior: FloatArray | None) -> Profiles:
        own = atoms(prior, self.k)
        pairs = len(own.value), 2
        if self.k == 1:
            one = np.ones(1)
            return Profiles(one * 0, one * 0, [0, 1], one * 0, one, one * 0, one * 0, one * 0, gap=own.gap)
        tilt = np.broadcast_to([0.0, -self.epsilon], pairs)
        columns = ((own.value, own.rest), (own.log_value, own.log_rest), (own.log_value, own.rest_largest),
                   (own.log_value, own.rest_smallest))  # fmt: skip
        grouped = [np.stack(column, axis=1).reshape(-1) for column in columns]
        starts = np.arange(0, 2 * pairs[0] + 1, 2)
        return Profiles(own.log_count, own.log_count - math.log(self.k) + self.log_gain, starts, tilt.reshape(-1),
                        grouped[0], grouped[1], grouped[2], grouped[3], gap=own.gap)  # fmt: skip

    def _extremes(self, prior: FloatArray | None) -> Extremes:
        return self._profiles(prior).extremes()

    def pairs(self) -> tuple[RowPair, ...]:
        """One pair of rows: all are alike."""
        if self.k == 1:
            return (RowPair([0.0], [0.0]),)
        truth, lie = self.log_truth, self.log_truth - self.epsilon
        if self.k == 2:
            error = 8 * _UNIT * abs(truth) + 2 * _UNIT * abs(lie) if self.epsilon < math.inf else 0.0
            return (RowPair([truth, lie], [lie, truth], [self.epsilon, -self.epsilon], [error] * 2, [0.0] * 2),)
        rest = lie + math.log(self.k - 2)
        return (RowPair([truth, lie, rest], [lie, truth, rest], [self.epsilon, -self.epsilon, 0.0], None, [0.0] * 3),)

    def __repr__(self) -> str:
        return f"RandomizedResponse({self.k}, {self.epsilon!r})"


class DefaultChannel(AnyChannel):
    """One row for all secrets but a few that have rows of their own.

    Parameters
    ----------
    inputs : int
        Number of secrets.
    default : array_like, shape (m,)
        Law of the release under every secret that is not listed.
    indices : array_like of int, shape (e,)
        The secrets that are listed, distinct.
    rows : array_like, shape (e, m)
        Laws of the release under these.

    Raises
    ------
    DomainError
        For rows that are no laws, or indices that repeat or do not exist.
    ShapeError
        For lengths that do not fit.

    Notes
    -----
    **Accuracy** what is stored is what was given; ``tests/contracts/test_channels.py``.

    Examples
    --------
    >>> from fastpriv import DefaultChannel
    >>> q = DefaultChannel(10**12, [0.5, 0.5], [7], [[0.9, 0.1]])
    >>> q.extremes().ldp_epsilon  # log 5
    1.6094379124341...
    """

    __slots__ = ("size", "laws", "indices")  # noqa: RUF023
    _fields = ("size", "laws", "indices")

    size: int
    laws: Channel  # the rows that are listed, and the default as the last
    indices: NDArray[np.int64]

    def __init__(self, inputs: int, default: ArrayLike, indices: ArrayLike, rows: ArrayLike) -> None:
        size = _validate.count("inputs", inputs, maximum=2**_BITS)
        law = np.atleast_2d(_validate.real("default", default, "one row of probabilities", answer=False))
        where = _validate.integers(
            "indices", indices, 0, size - 1, constraint=f"distinct integers from 0 to {_validate.shown(size - 1)}"
        )
        given = _validate.real("rows", rows, "probabilities", answer=False) if where.size else np.empty((0, law.size))
        if where.ndim != 1 or given.shape != (where.size, law.size) or len(law) != 1:
            raise ShapeError(
                f"rows must have one row for each of the {where.size} indices and one column for each of the "
                f"{law.size} releases of default; got shape {np.shape(rows)}. Pass shape (e, m)."
            )
        if np.unique(where).size < where.size:
            raise DomainError(
                f"indices must be distinct integers from 0 to {size - 1}; got {_validate.shown(indices)}. "
                "List each secret once."
            )
        order = np.argsort(where, kind="stable")
        if where.size == size:  # the default would be the row of no secret, but counts as one of LDP
            raise DomainError(f"indices must be fewer than the {size} inputs; got {where.size}. Use Channel(rows).")
        laws = _validate.with_argument_name(
            "matrix", "rows with default", lambda: Channel(np.concatenate([given[order], law]))
        )
        self._set(size=size, laws=laws, indices=where[order])

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self.size

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return self.laws.outputs

    @property
    def mass_gap(self) -> float:
        """How far the sum of a row is from 1, at most."""
        return self.laws.mass_gap

    def _rows(self, start: int, stop: int, log: bool) -> NDArray[np.floating[Any]]:
        found = np.tile(self.laws._rows(len(self.indices), len(self.indices) + 1, log), (stop - start, 1))
        here = slice(*np.searchsorted(self.indices, [start, stop]))
        found[self.indices[here] - start] = self.laws._rows(here.start, here.stop, log)
        return found

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self._rows(start, stop, True), dtype=np.float64)

    def column(self, output: Any) -> Exceptions:
        """Log likelihoods of one release: a default, and those of the secrets that are listed.

        Parameters
        ----------
        output : int
            The release.
        """
        logs = np.asarray(self.laws.column(output), dtype=np.float64)
        return Exceptions(self.size, float(logs[-1]), self.indices, logs[:-1])

    def _then(self, step: AnyChannel) -> AnyChannel | None:
        behind = self.laws.then(step).matrix()
        return DefaultChannel(self.size, behind[-1], self.indices, behind[:-1])

    def _profiles(self, prior: FloatArray | None) -> Profiles:
        listed = len(self.indices)
        if prior is None:
            size = float(self.size)
            mass = np.append(np.full(listed, 1 / size), (self.size - listed) / size)
            edge = np.full(listed + 1, 1 / size)
            return from_groups(self.laws.cells, mass, edge, edge, 0.0)
        own = prior[self.indices]
        rest = np.delete(prior, self.indices)
        total = float(np.sum(rest, dtype=np.longdouble))
        low = float(np.min(rest, where=rest > 0, initial=np.inf))
        return from_groups(self.laws.cells, np.append(own, total), np.append(own, rest.max()),
                           np.append(own, low if low < np.inf else 0.0), prior_gap(prior))  # fmt: skip

    def pairs(self) -> tuple[RowPair, ...] | None:
        """All ordered pairs of different rows, while these are few."""
        logs = self.laws._log_rows(0, self.laws.inputs)
        if len(logs) > _DISTINCT:
            return None
        if len(logs) == 1:
            return (RowPair(logs[0], logs[0]),)
        return ordered_pairs(logs)

    def __reduce__(self) -> Any:
        cells = self.laws.cells
        return type(self), (self.size, cells[-1].copy(), self.indices.copy(), cells[:-1].copy())

    def __repr__(self) -> str:
        return f"<DefaultChannel of {self.size:,} secrets, {len(self.indices):,} of them listed>"


class ExponentialMechanism(AnyChannel):
    """The exponential mechanism: releases weighted by e^(epsilon score / (2 sensitivity)).

    Parameters
    ----------
    scores : array_like, shape (n, m)
        Score of each release under each secret, finite; higher is likelier.
    epsilon : float
        Non-negative and finite: the LDP level that is aimed at. What is attained is at most that.
    sensitivity : float, optional
        The largest difference that a change of the secret makes to a score. Default: that of the scores given.
        A smaller one, for neighbours alone, is allowed: LDP over all secrets is then larger than ``epsilon``.

    Notes
    -----
    Rows are made when they are asked for; scores are kept.

    **Accuracy** logs of entries within 1e-15 of the largest exponent; ``tests/enclosures/test_channels.py``.

    Source: McSherry and Talwar 2007.

    Examples
    --------
    >>> from fastpriv import ExponentialMechanism
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
        given = _validate.real("scores", scores, "finite", np.isfinite, answer=False)
        if given.ndim != 2 or given.size == 0:
            raise ShapeError(
                f"scores must have one row a secret and one column a release; got shape {given.shape}. "
                "Pass shape (n, m)."
            )
        level = _validate.scalar("epsilon", epsilon, "finite and at least 0", lambda e: (e >= 0) & (e < np.inf))
        if sensitivity is None:
            sensitivity = float(np.max(given.max(axis=0) - given.min(axis=0))) or 1.0
        width = _validate.scalar("sensitivity", sensitivity, "positive and finite", lambda s: (s > 0) & (s < np.inf))
        self._set(scores=np.array(given, order="C"), epsilon=level, sensitivity=width)

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return len(self.scores)

    @property
    def outputs(self) -> int:
        """Number of releases."""
        return int(self.scores.shape[1])

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        scaled = self.scores[start:stop] * (0.5 * self.epsilon / self.sensitivity)
        scaled -= scaled.max(axis=1, keepdims=True)
        return np.asarray(scaled - np.log(np.sum(np.exp(scaled), axis=1, keepdims=True)))

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<ExponentialMechanism of {n:,} secrets and {m:,} releases, epsilon {self.epsilon:g}>"


def checked_epsilon(epsilon: float) -> float:
    """A level of privacy from 0 to infinity."""
    return _validate.scalar("epsilon", epsilon, "at least 0", lambda e: e >= 0)


def natural_below(bound: int, generator: np.random.Generator) -> int:
    """A uniform natural number below a bound of any size."""
    bits = bound.bit_length()
    while True:
        found = int.from_bytes(generator.bytes((bits + 7) // 8), "little") & ((1 << bits) - 1)
        if found < bound:
            return found


def _times_exp(factor: int, exponent: float) -> float:
    """factor * e^exponent for a natural number of any size."""
    if factor <= 0:
        return 0.0
    log = math.log(factor) + exponent
    return math.exp(log) if log < 700 else math.inf
