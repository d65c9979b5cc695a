"""Channels that release a set of secrets: bits flipped independently, or a set of fixed size.

Notation: the release is a set S of the k secrets. Q[d, S] depends on whether d is in S and on |S|; where it is, it is
e^epsilon times as likely. Secrets of one prior probability are alike: with v atoms and k_i secrets of each, the sets of
j_i secrets of atom i form a class.
"""

# bounds: tested by enclosures/test_channels, enclosures/test_channel_notions - mass of the classes that are left out

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray
from ...errors import DomainError
from ..base import MOST_SECRETS, AnyChannel, Exceptions, countable
from ..priors import atoms
from ..profiles import Extremes, Profiles, RowPair
from .binomials import log_choose, log_comb, log_pmf, unranked
from .membership import by_membership, log_expit, log_mixed, log_odds_ratio, logit, set_extremes, single, times
from .responses import checked_epsilon

__all__ = ["SubsetSelection", "UnaryEncoding", "unary"]

_CLASSES = 2**18  # classes of sets up to which they are listed
_WINDOW = 2**21  # the same where only the size of the set counts
_VECTORS, _SETS = 2**27, 2**20  # bits of a number of bit vectors, and of sets, that is written


class UnaryEncoding(AnyChannel):
    """One bit a secret, all zero but that of the true one, and each bit flipped at random; RAPPOR's first step.

    Parameters
    ----------
    k : int
        Number of secrets; a release is one of 2**k bit vectors. As an integer it has bit ``d`` at place ``2**d``.
    epsilon : float, optional
        Level of LDP in nats, for the symmetric encoding: p = 1 - q = e^(epsilon/2) / (1 + e^(epsilon/2)).
    p, q : float, optional
        Instead of ``epsilon``: probability that the bit of the true secret, and that any other, is 1 in the release.

    Raises
    ------
    DomainError
        For values out of range, or both or neither of epsilon and (p, q).

    Notes
    -----
    ``UnaryEncoding.optimized(k, epsilon)`` has p = 1/2 and q = 1 / (1 + e^epsilon), ``UnaryEncoding.rappor(k, f)`` is
    basic RAPPOR.

    **Accuracy** entries within 1e-13 relative at k = 12; ``tests/enclosures/test_channels.py``.

    Source: Wang, Blocki, Li and Jha 2017 (SUE, OUE); Erlingsson, Pihur and Korolova 2014 (RAPPOR).

    Examples
    --------
    >>> from fastpriv import UnaryEncoding
    >>> q = UnaryEncoding(1000, 2.0)
    >>> q.extremes().ldp_epsilon
    2.0
    >>> UnaryEncoding.optimized(4, 1.0).sample([0, 1], rng=1).shape
    (2, 4)
    """

    __slots__ = _fields = ("k", "logit_p", "logit_q", "epsilon")

    k: int
    logit_p: float
    logit_q: float
    epsilon: float

    def __init__(
        self, k: int, epsilon: float | None = None, *, p: float | None = None, q: float | None = None
    ) -> None:
        size = _validate.count("k", k, maximum=MOST_SECRETS)
        if (epsilon is None) != (p is not None and q is not None) or (
            epsilon is not None and not (p is None and q is None)
        ):
            shown = ", ".join(f"{x}={_validate.shown(y)}" for x, y in (("epsilon", epsilon), ("p", p), ("q", q)))
            raise DomainError(
                f"epsilon must be given, or else both p and q; got {shown}. "
                "Pass epsilon for the symmetric encoding."
            )
        if epsilon is not None:
            level = checked_epsilon(epsilon)
            self._set(k=size, logit_p=level / 2, logit_q=-level / 2, epsilon=level)
            return
        yes, other = (
            _validate.scalar(name, value, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
            for name, value in (("p", p), ("q", q))
        )
        self._set(k=size, logit_p=logit(yes), logit_q=logit(other), epsilon=log_odds_ratio(yes, other))

    @classmethod
    def optimized(cls, k: int, epsilon: float) -> UnaryEncoding:
        """Optimised unary encoding (OUE): p = 1/2, q = 1 / (1 + e^epsilon).

        Parameters
        ----------
        k : int
            Number of secrets.
        epsilon : float
            Level of LDP in nats.
        """
        level = checked_epsilon(epsilon)
        return unary(_validate.count("k", k, maximum=MOST_SECRETS), 0.0, -level, level)

    @classmethod
    def rappor(cls, k: int, f: float, *, p: float = 0.0, q: float = 1.0) -> UnaryEncoding:
        """Basic RAPPOR: one bit a secret, no Bloom filter.

        Parameters
        ----------
        k : int
            Number of secrets.
        f : float
            Each bit becomes 1 with probability f/2, 0 with probability f/2, and stays otherwise (the permanent
            randomised response); LDP is 2 log((2 - f) / f).
        p, q : float, optional
            The instantaneous randomised response of one report: the probability that a permanent 0, and a permanent 1,
            is reported as 1. By default the permanent bits themselves are released.
        """
        share = _validate.scalar("f", f, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        low, high = (
            _validate.scalar(name, value, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
            for name, value in (("p", p), ("q", q))
        )
        if (low, high) == (0.0, 1.0):
            odds = math.inf if share == 0 else math.log((2 - share) / share)
            return unary(_validate.count("k", k, maximum=MOST_SECRETS), odds, -odds, 2 * odds)
        common = 0.5 * share * (low + high)
        return cls(k, p=common + (1 - share) * high, q=common + (1 - share) * low)

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of releases."""
        countable("outputs", self._log2_shape()[1], _VECTORS, self)
        return int(2**self.k)

    def _log2_shape(self) -> tuple[float, float]:
        return math.log2(self.k), float(min(self.k, 10**300))

    @property
    def p(self) -> float:
        """Probability that the bit of the true secret is 1."""
        return math.exp(log_expit(self.logit_p))

    @property
    def q(self) -> float:
        """Probability that any other bit is 1."""
        return math.exp(log_expit(self.logit_q))

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        bits = (np.arange(self.outputs)[:, None] >> np.arange(self.k)) & 1
        ones = bits.sum(axis=1)
        log_p, log_q = log_expit(self.logit_p), log_expit(self.logit_q)
        not_p, not_q = log_expit(-self.logit_p), log_expit(-self.logit_q)
        own = bits[:, start:stop]
        others = ones[:, None] - own
        found = np.where(own == 1, log_p, not_p) + times(others, log_q) + times(self.k - 1 - others, not_q)
        return np.ascontiguousarray(found.T)

    def column(self, output: Any) -> Exceptions:
        """Log likelihoods of one release: one value for the secrets whose bit is 1, another for the rest.

        Parameters
        ----------
        output : int, or array_like of bool, shape (k,)
            The release, as the integer whose bits it is or as the bits themselves.
        """
        bits = _validate.array("output", output)
        if bits.shape != (self.k,) or bits.dtype != bool:
            number = self._output(output)
            raw = np.frombuffer(number.to_bytes((self.k + 7) // 8, "little"), dtype=np.uint8)
            bits = np.unpackbits(raw, count=self.k, bitorder="little").astype(bool)
        ones = int(bits.sum())
        base = ones, self.k - ones
        log_q, not_q = log_expit(self.logit_q), log_expit(-self.logit_q)
        inside = outside = -math.inf
        if ones:
            inside = log_expit(self.logit_p) + float(times(base[0] - 1, log_q) + times(base[1], not_q))
        if ones < self.k:
            outside = log_expit(-self.logit_p) + float(times(base[0], log_q) + times(base[1] - 1, not_q))
        return _inside_or_outside(bits, inside, outside)

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        _validate.memory("sample", 9 * secrets.size * self.k, "Draw fewer at a time.")
        uniform = generator.random((*secrets.shape, self.k))
        found = uniform < self.q
        own = np.take_along_axis(uniform, secrets[..., None], axis=-1) < self.p
        np.put_along_axis(found, secrets[..., None], own, axis=-1)
        return found

    def _mirrored(self) -> tuple[float, float, float]:
        """Both logits and epsilon, after renaming 0 and 1 where zeros are the sign of the truth."""
        lp, lq, e = self.logit_p, self.logit_q, self.epsilon
        return (-lp, -lq, -e) if e < 0 or lq == math.inf else (lp, lq, e)

    def _profiles(self, prior: FloatArray | None) -> Profiles | None:
        own = atoms(prior, self.k)
        logit_p, logit_q, epsilon = self._mirrored()
        log_p, log_q = log_expit(logit_p), log_expit(logit_q)
        not_p, not_q = log_expit(-logit_p), log_expit(-logit_q)
        if logit_q == -math.inf:
            return single(own, log_p, not_p, epsilon)
        counts = own.counts
        missing = 0.0
        if len(counts) == 1:
            mean = (self.k - 1) * math.exp(log_q)
            width = 40 * math.sqrt(mean * math.exp(not_q)) + 800
            low, high = max(0, math.floor(mean - width)), min(self.k, math.ceil(mean + width) + 1)
            if high - low >= _WINDOW:
                return None
            missing = 0.0 if (low, high) == (0, self.k) else 1e-250
            ones = np.arange(low, high + 1)[:, None]
        elif math.prod(count + 1 for count in counts) <= _CLASSES:
            ones = np.indices([count + 1 for count in counts]).reshape(len(counts), -1).T
        else:
            return None
        whole = np.array(counts)
        null = np.zeros(len(ones))
        outputs = np.zeros(len(ones))
        for i, count in enumerate(counts):
            null += log_pmf(ones[:, i], count, log_q, not_q)
            outputs += log_choose(count, ones[:, i])
        some = ones.sum(axis=1) > 0
        if len(counts) == 1:  # a binomial law of one bit less, which cancels nothing
            null[some] = log_pmf(ones[some, 0] - 1, self.k - 1, log_q, not_q) + np.log(self.k / ones[some, 0])
            total = np.where(some, null + log_p, not_p + (self.k - 1) * not_q)
        else:
            total = np.where(some, null + (log_p - log_q), null + (not_p - not_q))
        return by_membership(own, ones, whole - ones, total, outputs, epsilon, missing)

    def _extremes(self, prior: FloatArray | None) -> Extremes:
        return set_extremes(prior, self.k, 1, self.k - 1, abs(self.epsilon))

    def pairs(self) -> tuple[RowPair, ...]:
        """One pair of rows: all are alike, and all bits but two cancel."""
        if self.k == 1:
            return (RowPair([0.0], [0.0]),)
        e = self.epsilon
        log_p, log_q = log_expit(self.logit_p), log_expit(self.logit_q)
        not_p, not_q = log_expit(-self.logit_p), log_expit(-self.logit_q)
        both, none = log_p + log_q, not_p + not_q
        first, second = log_p + not_q, not_p + log_q
        return (RowPair([both, first, second, none], [both, second, first, none], [0.0, e, -e, 0.0]),)

    def __reduce__(self) -> Any:
        return unary, (self.k, self.logit_p, self.logit_q, self.epsilon)

    def __repr__(self) -> str:
        if self.logit_p == -self.logit_q:
            return f"UnaryEncoding({self.k}, {self.epsilon!r})"
        if self.logit_p == 0.0:
            return f"UnaryEncoding.optimized({self.k}, {self.epsilon!r})"
        return f"UnaryEncoding({self.k}, p={self.p!r}, q={self.q!r})"


class SubsetSelection(AnyChannel):
    """A random set of fixed size, e^epsilon times as likely if it holds the truth.

    Parameters
    ----------
    k : int
        Number of secrets.
    epsilon : float
        Level of LDP in nats.
    size : int, optional
        Number of secrets in the released set, 1 to k - 1. Default: the one of the two integers next to
        k / (e^epsilon + 1) that has the smaller squared error in frequency estimation. 1 is randomised response.

    Notes
    -----
    As an integer, a set c_1 < .. < c_s is numbered by its colexicographic rank, the sum of binomials (c_i over i).

    **Accuracy** entries within 1e-13 relative; ``tests/enclosures/test_channels.py``.

    Source: Ye and Barg 2018; Wang et al. 2016 (k-subset mechanism).

    Examples
    --------
    >>> from fastpriv import SubsetSelection
    >>> q = SubsetSelection(100, 1.0)
    >>> q.size, q.sample([3, 4], rng=1).shape
    (27, (2, 27))
    >>> q.profiles().log_total
    array([0.61887...])
    """

    __slots__ = _fields = ("k", "epsilon", "size")

    k: int
    epsilon: float
    size: int

    def __init__(self, k: int, epsilon: float, size: int | None = None) -> None:
        number, level = _validate.count("k", k, maximum=MOST_SECRETS), checked_epsilon(epsilon)
        chosen = _best_size(number, level) if size is None else size
        self._set(k=number, epsilon=level, size=_validate.count("size", chosen, 1, max(1, number - 1)))

    @property
    def inputs(self) -> int:
        """Number of secrets."""
        return self.k

    @property
    def outputs(self) -> int:
        """Number of releases."""
        countable("outputs", self._log2_shape()[1], _SETS, self)
        return math.comb(self.k, self.size)

    def _log2_shape(self) -> tuple[float, float]:
        return math.log2(self.k), log_comb(self.k, self.size) / math.log(2.0)

    @property
    def log_inside(self) -> float:
        """Log of (number of sets) times the probability of one that holds the truth."""
        share = self.size / self.k
        return -log_mixed(share, -self.epsilon)

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        sets = sorted(itertools.combinations(range(self.k), self.size), key=lambda one: one[::-1])
        inside = np.zeros((self.outputs, self.k), dtype=bool)
        np.put_along_axis(inside, np.array(sets), True, axis=1)
        base = self.log_inside - math.log(self.outputs)
        return np.ascontiguousarray(np.where(inside[:, start:stop], base, base - self.epsilon).T)

    def column(self, output: Any) -> Exceptions:
        """Log likelihoods of one release: one value for the secrets in the set, another for the rest.

        Parameters
        ----------
        output : int, or array_like of int, shape (size,)
            The release: its rank, or the secrets in the set.
        """
        if _validate.array("output", output).ndim == 1:
            members = np.unique(_validate.integers("output", output, 0, self.k - 1))
            if members.size != self.size:
                raise DomainError(
                    f"output must hold {self.size} different secrets; got {_validate.shown(output)}. Pass one set."
                )
        else:
            members = unranked(self._output(output), self.size, self.k)
        base = self.log_inside - log_comb(self.k, self.size)
        return Exceptions(self.k, base - self.epsilon, members, np.full(self.size, base))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> NDArray[Any]:
        if self.k > 2**63:
            raise DomainError(
                f"k must be at most 2**63 for sets to be drawn; got {_validate.shown(self.k)}. Take fewer secrets."
            )
        pool = self.k if 50 * self.size > self.k else 0  # numpy lists it
        _validate.memory("sample", 8 * (secrets.size * self.size + pool), "Draw fewer at a time.")
        found = np.empty((secrets.size, self.size), dtype=np.int64)
        holds = generator.random(secrets.size) < self.size / self.k * math.exp(self.log_inside)
        for row, (secret, held) in enumerate(zip(secrets.ravel().tolist(), holds.tolist(), strict=True)):
            others = generator.choice(self.k - 1, self.size - held, replace=False, shuffle=False)
            found[row, held:] = others + (others >= secret)
            if held:
                found[row, 0] = secret
        found.sort(axis=1)
        return found.reshape(*secrets.shape, self.size)

    def _profiles(self, prior: FloatArray | None) -> Profiles | None:
        own = atoms(prior, self.k)
        counts, s = own.counts, self.size
        if self.k == 1:
            return by_membership(own, np.ones((1, 1), int), np.zeros((1, 1), int), np.zeros(1), np.zeros(1), 0.0)
        reach = [min(count, s) + 1 for count in counts]
        if len(counts) > 1 and math.prod(reach) > _CLASSES:
            return None
        if len(counts) == 1:
            inside = np.array([[s]], dtype=object if self.k > 2**62 else np.int64)
            drawn = np.zeros(1)
        else:
            inside = np.indices(reach).reshape(len(counts), -1).T
            inside = inside[inside.sum(axis=1) == s]
            log_share, log_other = math.log(s / self.k), math.log1p(-s / self.k)
            drawn = -log_pmf(np.full(len(inside), s), self.k, log_share, log_other)
            for i, count in enumerate(counts):
                drawn += log_pmf(inside[:, i], count, log_share, log_other)
        outside = np.array(counts, dtype=inside.dtype) - inside
        outputs = drawn + log_comb(self.k, s)
        return by_membership(own, inside, outside, drawn + self.log_inside, outputs, self.epsilon)

    def _extremes(self, prior: FloatArray | None) -> Extremes:
        return set_extremes(prior, self.k, self.size, self.size, self.epsilon)

    def pairs(self) -> tuple[RowPair, ...]:
        """One pair of rows: all are alike. Sets that hold both secrets, the first, the second, neither."""
        k, s, e = self.k, self.size, self.epsilon
        if k == 1:
            return (RowPair([0.0], [0.0]),)
        shares = (s / k * ((s - 1) / (k - 1)), s / k * ((k - s) / (k - 1)), (k - s) / k * ((k - s - 1) / (k - 1)))
        both, one, none = (self.log_inside + math.log(x) if x > 0 else -math.inf for x in shares)
        return (RowPair([both, one, one - e, none - e], [both, one - e, one, none - e], [0.0, e, -e, 0.0]),)

    def __repr__(self) -> str:
        return f"SubsetSelection({self.k}, {self.epsilon!r}, {self.size})"


def unary(k: int, logit_p: float, logit_q: float, epsilon: float) -> UnaryEncoding:
    """An encoding by its logits, and their difference as precisely as it is known."""
    made = UnaryEncoding.__new__(UnaryEncoding)
    made._set(k=k, logit_p=logit_p, logit_q=logit_q, epsilon=epsilon)
    return made


def _inside_or_outside(bits: NDArray[np.bool_], inside: float, outside: float) -> Exceptions:
    """The fewer of both as exceptions."""
    few = 2 * int(bits.sum()) <= bits.size
    indices = np.flatnonzero(bits if few else ~bits)
    value = inside if few else outside
    return Exceptions(bits.size, outside if few else inside, indices, np.full(indices.size, value))


def _best_size(k: int, epsilon: float) -> int:
    """The size next to k / (e^epsilon + 1) with the smaller error (d e^epsilon + k - d)^2 / (d (k - d))."""
    if k <= 2 or epsilon > 700:
        return 1
    ratio = math.exp(epsilon)
    near = math.floor(k / (ratio + 1))
    both = [max(1, min(k - 1, d)) for d in (near, near + 1)]
    return min(both, key=lambda d: (d * (ratio - 1) / k + 1) ** 2 / ((d / k) * (1 - d / k)))
