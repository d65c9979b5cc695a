"""Priors of membership: who is among the n members, of K people.

Notation: b in {0, 1}^K without 0, n = |b|. Both priors have the form

    log theta(b) = log_size_weights[n] + sum_k b_k log_odds_k,

which is what an enumeration of all b needs.
"""

# bounds: proved - rounding of a few operations and of exactly rounded sums

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...base import random_streams, validate
from ...base.binomial import log_binomial_coefficients
from ...base.errors import DomainError, ShapeError
from ...base.estimate import Estimate, exact
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ...base.random_streams import RNGLike
from ...base.values import ValueObject
from .panels import membership_array

_MOST_PEOPLE = 2**53  # counts up to here are doubles
_EXACT_PEOPLE, _EXACT_MEMBERS = 2**14, 1000  # up to either, a binomial coefficient is made exactly in a millisecond
# bound: proved - docs/proofs/roundings.md, 13.6: error of the logarithm of other binomial coefficients for each person,
#    as K log 2 cancels in it
_LOG_COEFFICIENT_CANCELLATION = 2.2e-15


class PriorTerms(NamedTuple):
    """A prior as log theta(b) = log_size_weights[|b|] + sum of log_odds over the members."""

    log_odds: FloatArray  # (K,)
    log_size_weights: FloatArray  # (K + 1,), -inf at sizes that are impossible, among them 0


class MembershipPrior(ValueObject):
    """Base of the priors of membership."""

    __slots__ = ()

    def log_prior(self, n_people: int) -> PriorTerms:
        """The terms of log theta(b) for K people."""
        raise NotImplementedError

    def marginals(self, n_people: int) -> FloatArray:
        """P(b_k = 1) for each of K people."""
        raise NotImplementedError

    def entropy(self, n_people: int) -> Estimate:
        """The entropy H(b) for K people, in nats."""
        raise NotImplementedError

    def draw(self, count: int, n_people: int, rng: RNGLike = None) -> NDArray[np.bool_]:
        """``count`` independent memberships, shape (count, K)."""
        raise NotImplementedError

    def log_probability(self, membership: ArrayLike) -> FloatArray:
        """log theta(b) of memberships of shape (..., K), -inf where they are impossible."""
        b = membership_array("membership", membership, np.shape(membership)[-1] if np.ndim(membership) else 1)
        terms = self.log_prior(b.shape[-1])
        return np.asarray(terms.log_size_weights[b.sum(axis=-1)] + np.where(b, terms.log_odds, 0.0).sum(axis=-1))


class BernoulliMembership(MembershipPrior):
    """Each person is a member with probability q, independently, on condition that there is a member.

    Parameters
    ----------
    q : float or array_like, shape (K,)
        Probabilities before the condition, strictly between 0 and 1; one for all people, or one for each.

    Raises
    ------
    DomainError
        For q outside of (0, 1): with q = 0 there is nobody to infer, and who is known to be a member or not to be one
        has no place in the panel.

    Notes
    -----
    **Accuracy**: ``entropy`` encloses the truth; tests/membership/test_priors.py compares with sums over all b.

    Examples
    --------
    >>> from fastpriv.membership import BernoulliMembership
    >>> prior = BernoulliMembership(0.5)
    >>> prior.marginals(2)
    array([0.66666667, 0.66666667])
    >>> print(f"{prior.entropy(2):.4f}")
    1.0986 [1.0986, 1.0987]
    """

    __slots__ = _fields = ("q",)

    q: float | FloatArray

    def __init__(self, q: ArrayLike) -> None:
        result = validate.real(
            "q", q, "strictly between 0 and 1", lambda x: (x > 0) & (x < 1),
            remedy="A prior without members says nothing; leave people whose membership is known out of the panel.",
        )
        if result.ndim > 1 or result.size == 0:
            raise ShapeError(f"q must be one number or one a person; got shape {result.shape}. Pass a flat sequence.")
        self._set(q=float(result) if result.ndim == 0 else result)

    def _probabilities(self, n_people: int) -> FloatArray:
        count = validate.count("n_people", n_people, 1, _MOST_PEOPLE)
        if isinstance(self.q, np.ndarray) and self.q.size != count:
            raise ShapeError(
                f"q must have one entry for each of {count} people; got {self.q.size}. Pass one number for all, or as "
                "many as the panel has people."
            )
        return np.broadcast_to(np.asarray(self.q, dtype=np.float64), (count,))

    def log_prior(self, n_people: int) -> PriorTerms:
        """Log odds log(q / (1 - q)), and at each size from 1 the log of prod (1 - q) over P(b != 0).

        Examples
        --------
        >>> from fastpriv.membership import BernoulliMembership
        >>> BernoulliMembership(0.5).log_prior(2).log_size_weights
        array([       -inf, -1.09861229, -1.09861229])
        """
        q = self._probabilities(n_people)
        weights = np.full(q.size + 1, _log_none(q) - math.log(_some(q)))
        weights[0] = -np.inf
        return PriorTerms(np.log(q) - np.log1p(-q), weights)

    def marginals(self, n_people: int) -> FloatArray:
        """P(b_k = 1) = q_k / P(b != 0), shape (K,).

        Examples
        --------
        >>> from fastpriv.membership import BernoulliMembership
        >>> BernoulliMembership([0.5, 0.25]).marginals(2)
        array([0.8, 0.4])
        """
        q = self._probabilities(n_people)
        return np.minimum(q / _some(q), 1.0)

    def entropy(self, n_people: int) -> Estimate:
        """H(b) = log P(b != 0) - sum_k P(b_k = 1) log_odds_k - sum_k log(1 - q_k), in nats.

        Examples
        --------
        >>> from fastpriv.membership import BernoulliMembership
        >>> BernoulliMembership(0.125).entropy(1).value
        0.0
        """
        q = self._probabilities(n_people)
        some = _some(q)
        first, second = (q / some) * np.log(q), (q / some) * np.log1p(-q)
        total = math.fsum([math.log(some), *(-first).tolist(), *second.tolist(), -_log_none(q)])
        size = abs(math.log(some)) + math.fsum((-first).tolist()) + math.fsum((-second).tolist()) - _log_none(q)
        return exact(total, 16 * UNIT_ROUNDOFF * (size + 1.0), unit="nats", method="closed form", least=0.0)

    def draw(self, count: int, n_people: int, rng: RNGLike = None) -> NDArray[np.bool_]:
        """Draws without rejection: first the member of least number, then all after it.

        Examples
        --------
        >>> from fastpriv.membership import BernoulliMembership
        >>> BernoulliMembership(1e-9).draw(3, 4, rng=1).sum(axis=1)
        array([1, 1, 1])
        """
        q = self._probabilities(n_people)
        size, random = validate.count("count", count, 0, validate.MOST_ENTRIES), random_streams.generator(rng)
        logs = np.log1p(-q)
        reached = -np.expm1(np.cumsum(logs))  # P(a member among the first k)
        first = np.searchsorted(reached, random.random(size) * reached[-1], side="right")
        first = np.minimum(first, q.size - 1)
        drawn = random.random((size, q.size)) < q
        number = np.arange(q.size)
        return np.asarray((drawn & (number > first[:, None])) | (number == first[:, None]))

    def __repr__(self) -> str:
        return f"BernoulliMembership({self.q if isinstance(self.q, float) else f'<{self.q.size} probabilities>'})"


class FixedSizeMembership(MembershipPrior):
    """All sets of n0 members are equally likely.

    Parameters
    ----------
    n0 : int
        Number of members, at least 1, and at most that of the people.

    Raises
    ------
    DomainError
        For a number below 1: an empty prior; and where it exceeds the number of people.

    Notes
    -----
    **Accuracy**: ``entropy`` encloses the truth; tests/membership/test_priors.py compares with exact coefficients.

    Examples
    --------
    >>> from fastpriv.membership import FixedSizeMembership
    >>> prior = FixedSizeMembership(2)
    >>> prior.marginals(4)
    array([0.5, 0.5, 0.5, 0.5])
    >>> print(f"{prior.entropy(4):.4f}")
    1.7918 [1.7917, 1.7918]
    """

    __slots__ = _fields = ("n0",)

    n0: int

    def __init__(self, n0: int) -> None:
        self._set(n0=validate.count("n0", n0, 1, remedy="A prior without members says nothing."))

    def _people(self, n_people: int) -> int:
        count = validate.count("n_people", n_people, 1, _MOST_PEOPLE)
        if count < self.n0:
            raise DomainError(f"n0 must be at most the number of people, {count}; got {self.n0}. Pass fewer members.")
        return count

    def log_prior(self, n_people: int) -> PriorTerms:
        """Log odds 0, and minus the log of the binomial coefficient at size n0.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership
        >>> FixedSizeMembership(1).log_prior(2).log_size_weights
        array([       -inf, -0.69314718,        -inf])
        """
        count = self._people(n_people)
        weights = np.full(count + 1, -np.inf)
        weights[self.n0] = -self.entropy(count).value
        return PriorTerms(np.zeros(count), weights)

    def marginals(self, n_people: int) -> FloatArray:
        """n0 / K for each person, shape (K,).

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership
        >>> FixedSizeMembership(1).marginals(2)
        array([0.5, 0.5])
        """
        count = self._people(n_people)
        return np.full(count, self.n0 / count)

    def entropy(self, n_people: int) -> Estimate:
        """The log of the binomial coefficient (K, n0), in nats.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership
        >>> FixedSizeMembership(3).entropy(3).value
        0.0
        """
        count = self._people(n_people)
        if count <= _EXACT_PEOPLE or min(self.n0, count - self.n0) <= _EXACT_MEMBERS:
            value = math.log(math.comb(count, self.n0))
            error = 4 * UNIT_ROUNDOFF * value
        else:
            value = float(log_binomial_coefficients(count, self.n0))
            error = _LOG_COEFFICIENT_CANCELLATION * count
        return exact(value, error, unit="nats", method="closed form", least=0.0)

    def draw(self, count: int, n_people: int, rng: RNGLike = None) -> NDArray[np.bool_]:
        """The n0 least of K uniform numbers, for each membership.

        Examples
        --------
        >>> from fastpriv.membership import FixedSizeMembership
        >>> FixedSizeMembership(2).draw(3, 4, rng=1).sum(axis=1)
        array([2, 2, 2])
        """
        people = self._people(n_people)
        size, random = validate.count("count", count, 0, validate.MOST_ENTRIES), random_streams.generator(rng)
        drawn = np.zeros((size, people), dtype=np.bool_)
        chosen = np.argpartition(random.random((size, people)), self.n0 - 1, axis=1)[:, : self.n0]
        np.put_along_axis(drawn, chosen, True, axis=1)
        return drawn

    def __repr__(self) -> str:
        return f"FixedSizeMembership({self.n0})"


def _log_none(q: FloatArray) -> float:
    """The log of the probability that nobody is a member, before the condition."""
    return math.fsum(np.log1p(-q).tolist())


def _some(q: FloatArray) -> float:
    """The probability that somebody is a member, before the condition."""
    return -math.expm1(_log_none(q))


def all_memberships(prior: MembershipPrior, n_people: int) -> tuple[BoolArray, FloatArray]:
    """All memberships of positive prior probability, ordered by sum_k b_k 2^k, and the logarithms of those."""
    b = (np.arange(1, 2**n_people, dtype=np.int64)[:, None] >> np.arange(n_people)) & 1 == 1
    logs = prior.log_probability(b)
    return np.ascontiguousarray(b[logs > -np.inf]), logs[logs > -np.inf]
