"""Mechanisms that release a set of secrets: bits flipped independently, or a set of fixed size.

Notation: the release is a set S of the k secrets. Q[d, S] depends on whether d is in S and on |S|; where it is, it is
e^epsilon times as likely. Secrets of one prior probability are equivalent: with v distinct probabilities and k_i
secrets of each, the sets of j_i secrets of probability i form a class.
"""

# bounds: proved - mass of the classes that are left out, and rounding of the extreme log ratios: theorems 7.9 and 7.10
#    of docs/proofs/finite_capacity.md

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..base import validate
from ..base.binomial import log_binomial_coefficients, log_binomial_pmf, log_comb
from ..base.errors import DomainError
from ..base.numerics import LOG_2, BoolArray, FloatArray, IntArray
from ..channels import type_classes as types
from ..channels.base import MAX_INPUTS, AnyChannel, check_countable
from ..channels.likelihoods import DefaultLikelihood
from .categorical import log_mixture, validated_epsilon

_MAX_CLASSES = 2**18  # classes of sets up to which they are listed: about 100 MiB
_MAX_SIZES = 2**21  # sizes of sets up to which they are listed, where only the size counts
_MAX_MEAN_SIZE = 2.0**44  # mean size up to which the sizes near it are exact doubles, and it is right to 1/30
_MAX_VECTOR_BITS = 2**27  # bits of the number of bit vectors, 2**k, up to which it is computed
_MAX_SET_BITS = 2**20  # bits of the number of sets of fixed size up to which it is computed


class UnaryEncoding(AnyChannel):
    """One bit for each secret, 1 for the true one and 0 for the others, flipped at random: the first step of RAPPOR.

    Parameters
    ----------
    k : int
        Number of secrets; a release is one of 2**k bit vectors. As an integer it is the sum of ``2**d`` over bits d.
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
    >>> from fastpriv.mechanisms import UnaryEncoding
    >>> q = UnaryEncoding(1000, 2.0)
    >>> q.extreme_log_ratios().ldp_epsilon
    2.0
    >>> UnaryEncoding.optimized(4, 1.0).sample([0, 1], rng=1).shape
    (2, 4)
    """

    __slots__ = _fields = ("k", "logit_p", "logit_q", "epsilon")

    k: int
    logit_p: float
    logit_q: float
    epsilon: float

    def __init__(self, k: int, epsilon: float | None = None, *, p: float | None = None, q: float | None = None) -> None:
        size = validate.count("k", k, maximum=MAX_INPUTS)
        if [epsilon is None, p is None, q is None] not in ([False, True, True], [True, False, False]):
            shown = ", ".join(f"{x}={validate.shown(y)}" for x, y in (("epsilon", epsilon), ("p", p), ("q", q)))
            raise DomainError(
                f"epsilon must be given, or else both p and q; got {shown}. Pass epsilon for the symmetric encoding."
            )
        if epsilon is not None:
            level = validated_epsilon(epsilon)
            self._set(k=size, logit_p=level / 2, logit_q=-level / 2, epsilon=level)
            return
        yes, other = _probability("p", p), _probability("q", q)
        self._set(k=size, logit_p=_logit(yes), logit_q=_logit(other), epsilon=_log_odds_ratio(yes, other))

    @classmethod
    def _of_logits(cls, k: int, logit_p: float, logit_q: float, epsilon: float) -> UnaryEncoding:
        """An encoding by its logits, and their difference as precisely as it is known."""
        encoding = cls.__new__(cls)
        encoding._set(k=k, logit_p=logit_p, logit_q=logit_q, epsilon=epsilon)
        return encoding

    @classmethod
    def optimized(cls, k: int, epsilon: float) -> UnaryEncoding:
        """Optimised unary encoding (OUE) of k secrets at LDP level epsilon: p = 1/2, q = 1 / (1 + e^epsilon)."""
        level = validated_epsilon(epsilon)
        return cls._of_logits(validate.count("k", k, maximum=MAX_INPUTS), 0.0, -level, level)

    @classmethod
    def rappor(cls, k: int, f: float, *, p: float = 0.0, q: float = 1.0) -> UnaryEncoding:
        """Basic RAPPOR: one bit for each secret, no Bloom filter.

        Parameters
        ----------
        k : int
            Number of secrets.
        f : float
            Each bit becomes 1 with probability f/2, 0 with probability f/2, and stays otherwise (the permanent
            randomised response); LDP is 2 log((2 - f) / f).
        p, q : float, optional
            The instantaneous randomised response of one report: the probability that a permanent 0, and a permanent 1,
            is reported as 1. By default the permanent bits themselves are released; otherwise the encoding is that of
            the two probabilities of a reported 1, each rounded to a double.
        """
        noise, low, high = _probability("f", f), _probability("p", p), _probability("q", q)
        if (low, high) == (0.0, 1.0):
            logit = math.inf if noise == 0 else math.log1p(2 * (1 - noise) / noise)
            return cls._of_logits(validate.count("k", k, maximum=MAX_INPUTS), logit, -logit, 2 * logit)
        uniform = 0.5 * noise * (low + high)
        return cls(k, p=uniform + (1 - noise) * high, q=uniform + (1 - noise) * low)

    def _input_count(self) -> int:
        return self.k

    def _output_count(self) -> int:
        check_countable("outputs", self._log2_shape()[1], _MAX_VECTOR_BITS, self)
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
        log_p, log_q, not_p, not_q = _log_bits(self.logit_p, self.logit_q)
        true_bit = bits[:, start:stop]
        others = bits.sum(axis=1)[:, None] - true_bit
        logs = np.where(true_bit == 1, log_p, not_p) + count_times_log(others, log_q)
        logs += count_times_log(self.k - 1 - others, not_q)
        return np.ascontiguousarray(logs.T)

    def column(self, output: ArrayLike) -> DefaultLikelihood:
        """Log likelihoods of one release: one value for the secrets whose bit is 1, another for the rest.

        Parameters
        ----------
        output : int, or array_like of bool, shape (k,)
            The release, as the integer whose bits it is or as the bits themselves.
        """
        bits = validate.array("output", output)
        if bits.shape != (self.k,) or bits.dtype != bool:
            number = self._output_index(output)
            octets = np.frombuffer(number.to_bytes((self.k + 7) // 8, "little"), dtype=np.uint8)
            bits = np.unpackbits(octets, count=self.k, bitorder="little").astype(bool)
        items = int(bits.sum())
        zeros = self.k - items
        log_p, log_q, not_p, not_q = _log_bits(self.logit_p, self.logit_q)
        inside = outside = -math.inf
        if items:
            inside = log_p + float(count_times_log(items - 1, log_q) + count_times_log(zeros, not_q))
        if zeros:
            outside = not_p + float(count_times_log(items, log_q) + count_times_log(zeros - 1, not_q))
        few_ones = 2 * items <= self.k  # list the smaller of the two sets
        indices = np.flatnonzero(bits if few_ones else ~bits)
        default, value = (outside, inside) if few_ones else (inside, outside)
        return DefaultLikelihood(self.k, default, indices, np.full(indices.size, value))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> BoolArray:
        validate.memory("sample", 9 * secrets.size * self.k, "Draw fewer at a time.")
        uniform = generator.random((*secrets.shape, self.k))
        bits = uniform < self.q
        true_bits = np.take_along_axis(uniform, secrets[..., None], axis=-1) < self.p
        np.put_along_axis(bits, secrets[..., None], true_bits, axis=-1)
        return bits

    def _canonical_logits(self) -> tuple[float, float, float]:
        """Both logits and epsilon, with 0 and 1 exchanged if p < q or q = 1, so that a 1 is evidence for its secret."""
        if self.epsilon < 0 or self.logit_q == math.inf:
            return -self.logit_p, -self.logit_q, -self.epsilon
        return self.logit_p, self.logit_q, self.epsilon

    def _type_classes(self, prior: FloatArray | None) -> types.TypeClasses | None:
        distinct = types.distinct_probabilities(prior, self.k)
        logit_p, logit_q, epsilon = self._canonical_logits()
        log_p, log_q, not_p, not_q = _log_bits(logit_p, logit_q)
        if logit_q == -math.inf:
            return _classes_without_false_ones(distinct, log_p, not_p, epsilon)
        counts = distinct.counts
        omitted = 0.0
        if len(counts) == 1:  # classes by the number of ones; numbers far from the mean are omitted
            mean = (self.k - 1) * math.exp(log_q)
            width = 40 * math.sqrt(mean * math.exp(not_q)) + 800
            low, high = max(0, math.floor(mean - width)), min(self.k, math.ceil(mean + width) + 1)
            if high - low >= _MAX_SIZES or mean > _MAX_MEAN_SIZE:
                return None
            omitted = 0.0 if (low, high) == (0, self.k) else 1e-250
            items = np.arange(low, high + 1)[:, None]
        elif math.prod(count + 1 for count in counts) <= _MAX_CLASSES:
            items = np.indices([count + 1 for count in counts]).reshape(len(counts), -1).T
        else:
            return None
        log_null = np.zeros(len(items))  # of each class if all bits were those of other secrets
        log_outputs = np.zeros(len(items))
        for i, count in enumerate(counts):
            log_null += log_binomial_pmf(items[:, i], count, log_q, not_q)
            log_outputs += log_binomial_coefficients(count, items[:, i])
        nonempty = items.sum(axis=1) > 0
        if len(counts) == 1:  # from the binomial distribution of one bit fewer, without cancellation
            log_null[nonempty] = log_binomial_pmf(items[nonempty, 0] - 1, self.k - 1, log_q, not_q) + np.log(
                self.k / items[nonempty, 0]
            )
            log_total = np.where(nonempty, log_null + log_p, not_p + (self.k - 1) * not_q)
        else:
            log_total = np.where(nonempty, log_null + (log_p - log_q), log_null + (not_p - not_q))
        return _classes_by_membership(
            distinct, items, np.array(counts) - items, log_total, log_outputs, epsilon, omitted
        )

    def _extreme_log_ratios(self, prior: FloatArray | None) -> types.ExtremeLogRatios:
        return _set_extremes(prior, self.k, 1, self.k - 1, abs(self.epsilon))

    def dominating_pairs(self) -> tuple[types.RowPair, ...]:
        """One pair of rows: all pairs are equivalent, and all bits but two cancel."""
        if self.k == 1:
            return (types.RowPair.trivial(),)
        e = self.epsilon
        log_p, log_q, not_p, not_q = _log_bits(self.logit_p, self.logit_q)
        both, none = log_p + log_q, not_p + not_q
        first, second = log_p + not_q, not_p + log_q
        return (types.RowPair([both, first, second, none], [both, second, first, none], [0.0, e, -e, 0.0]),)

    def __reduce__(self) -> Any:
        return type(self)._of_logits, (self.k, self.logit_p, self.logit_q, self.epsilon)

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
    >>> from fastpriv.mechanisms import SubsetSelection
    >>> q = SubsetSelection(100, 1.0)
    >>> q.size, q.sample([3, 4], rng=1).shape
    (27, (2, 27))
    >>> q.type_classes().log_total
    array([0.61887...])
    """

    __slots__ = _fields = ("k", "epsilon", "size")

    k: int
    epsilon: float
    size: int

    def __init__(self, k: int, epsilon: float, size: int | None = None) -> None:
        inputs, level = validate.count("k", k, maximum=MAX_INPUTS), validated_epsilon(epsilon)
        chosen = _best_size(inputs, level) if size is None else size
        self._set(k=inputs, epsilon=level, size=validate.count("size", chosen, 1, max(1, inputs - 1)))

    def _input_count(self) -> int:
        return self.k

    def _output_count(self) -> int:
        check_countable("outputs", self._log2_shape()[1], _MAX_SET_BITS, self)
        return math.comb(self.k, self.size)

    def _log2_shape(self) -> tuple[float, float]:
        return math.log2(self.k), log_comb(self.k, self.size) / LOG_2

    @property
    def log_inside(self) -> float:
        """Log of (number of sets) times the probability of one that holds the truth."""
        return -log_mixture(self.size / self.k, (self.k - self.size) / self.k, -self.epsilon)

    def _log_rows(self, start: int, stop: int) -> FloatArray:
        sets = sorted(itertools.combinations(range(self.k), self.size), key=lambda subset: subset[::-1])
        inside = np.zeros((self.outputs, self.k), dtype=bool)
        np.put_along_axis(inside, np.array(sets), True, axis=1)
        log_one = self.log_inside - math.log(self.outputs)
        return np.ascontiguousarray(np.where(inside[:, start:stop], log_one, log_one - self.epsilon).T)

    def column(self, output: ArrayLike) -> DefaultLikelihood:
        """Log likelihoods of one release: one value for the secrets in the set, another for the rest.

        Parameters
        ----------
        output : int, or array_like of int, shape (size,)
            The release: its rank, or the secrets in the set.
        """
        if validate.array("output", output).ndim == 1:
            members = np.unique(validate.integers("output", output, 0, self.k - 1))
            if members.size != self.size:
                raise DomainError(
                    f"output must hold {self.size} different secrets; got {validate.shown(output)}. Pass one set."
                )
        else:
            members = _set_of_rank(self._output_index(output), self.size, self.k)
        log_one = self.log_inside - log_comb(self.k, self.size)
        return DefaultLikelihood(self.k, log_one - self.epsilon, members, np.full(self.size, log_one))

    def _sample(self, secrets: NDArray[Any], generator: np.random.Generator) -> IntArray:
        if self.k > 2**63:
            raise DomainError(
                f"k must be at most 2**63 for sets to be drawn; got {validate.shown(self.k)}. Take fewer secrets."
            )
        listed = self.k if 50 * self.size > self.k else 0  # Generator.choice lists all then
        validate.memory("sample", 8 * (secrets.size * self.size + listed), "Draw fewer at a time.")
        releases = np.empty((secrets.size, self.size), dtype=np.int64)
        contains = generator.random(secrets.size) < self.size / self.k * math.exp(self.log_inside)
        for row, (secret, inside) in enumerate(zip(secrets.ravel().tolist(), contains.tolist(), strict=True)):
            others = generator.choice(self.k - 1, self.size - inside, replace=False, shuffle=False)
            releases[row, inside:] = others + (others >= secret)
            if inside:
                releases[row, 0] = secret
        releases.sort(axis=1)
        return releases.reshape(*secrets.shape, self.size)

    def _type_classes(self, prior: FloatArray | None) -> types.TypeClasses | None:
        distinct = types.distinct_probabilities(prior, self.k)
        counts, s = distinct.counts, self.size
        if self.k == 1:
            items = np.ones((1, 1), int)
            return _classes_by_membership(distinct, items, items - 1, np.zeros(1), np.zeros(1), 0.0)
        lengths = [min(count, s) + 1 for count in counts]
        if len(counts) > 1 and math.prod(lengths) > _MAX_CLASSES:
            return None
        if len(counts) == 1:
            inside = np.array([[s]], dtype=object if self.k > 2**62 else np.int64)
            log_share = np.zeros(1)  # log of the fraction of all sets that is in each class
        else:  # a quotient of binomial probabilities, whose parameter s / k cancels
            inside = np.indices(lengths).reshape(len(counts), -1).T
            inside = inside[inside.sum(axis=1) == s]
            log_q, not_q = math.log(s / self.k), math.log1p(-s / self.k)
            log_share = -log_binomial_pmf(np.full(len(inside), s), self.k, log_q, not_q)
            for i, count in enumerate(counts):
                log_share += log_binomial_pmf(inside[:, i], count, log_q, not_q)
        outside = np.array(counts, dtype=inside.dtype) - inside
        return _classes_by_membership(
            distinct, inside, outside, log_share + self.log_inside, log_share + log_comb(self.k, s), self.epsilon
        )

    def _extreme_log_ratios(self, prior: FloatArray | None) -> types.ExtremeLogRatios:
        return _set_extremes(prior, self.k, self.size, self.size, self.epsilon)

    def dominating_pairs(self) -> tuple[types.RowPair, ...]:
        """One pair of rows: all pairs are equivalent. Sets hold both secrets, the first, the second, or neither."""
        k, s, e = self.k, self.size, self.epsilon
        if k == 1:
            return (types.RowPair.trivial(),)
        shares = (s / k * ((s - 1) / (k - 1)), s / k * ((k - s) / (k - 1)), (k - s) / k * ((k - s - 1) / (k - 1)))
        both, item, none = (self.log_inside + math.log(x) if x > 0 else -math.inf for x in shares)
        rows = [both, item, item - e, none - e], [both, item - e, item, none - e]
        return (types.RowPair(*rows, [0.0, e, -e, 0.0], largest=math.log(k)),)

    def __repr__(self) -> str:
        return f"SubsetSelection({self.k}, {self.epsilon!r}, {self.size})"


def _best_size(k: int, epsilon: float) -> int:
    """The size next to k / (e^epsilon + 1) with the smaller error (d e^epsilon + k - d)^2 / (d (k - d))."""
    if k <= 2 or epsilon > 700:
        return 1
    ratio = math.exp(epsilon)
    below = math.floor(k / (ratio + 1))
    candidates = [max(1, min(k - 1, d)) for d in (below, below + 1)]
    return min(candidates, key=lambda d: (d * (ratio - 1) / k + 1) ** 2 / ((d / k) * (1 - d / k)))


def _set_of_rank(rank: int, size: int, k: int) -> IntArray:
    """The set with this colexicographic rank."""
    members = []
    for order in range(size, 0, -1):
        low, high = order - 1, k - 1  # bisection for the largest c with comb(c, order) <= rank
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if math.comb(middle, order) <= rank else (low, middle - 1)
        members.append(low)
        rank -= math.comb(low, order)
        k = low
    return np.array(members[::-1], dtype=np.int64)


def _classes_by_membership(
    distinct: types.DistinctProbabilities, inside: NDArray[Any], outside: NDArray[Any], log_total: FloatArray,
    log_outputs: FloatArray, epsilon: float, omitted: float = 0.0,
) -> types.TypeClasses:
    """Classes of sets, shape (c, v), by how many secrets of each distinct probability are inside and outside."""
    counts = np.concatenate([inside, outside], axis=1)
    relative = np.repeat([0.0, -epsilon], inside.shape[1]) * np.ones((len(counts), 1))
    relative[inside.sum(axis=1) == 0] = 0.0
    nonempty = counts > 0
    with np.errstate(divide="ignore"):
        log_counts = np.log(counts.astype(np.float64))
    mass = counts.astype(np.float64) * np.tile(distinct.value, 2)
    log_value = np.tile(distinct.log_value, 2) + np.zeros((len(counts), 1))
    starts = np.concatenate([[0], np.cumsum(nonempty.sum(axis=1))])
    return types.TypeClasses(log_outputs, log_total, starts, relative[nonempty], mass[nonempty],
                       _log_masses(mass, log_counts + log_value)[nonempty], log_value[nonempty], log_value[nonempty],
                       omitted_mass=omitted, gap=distinct.gap)


def _log_masses(mass: FloatArray, logs: FloatArray) -> FloatArray:
    """Logs of masses: of the mass itself where that is no subnormal number, else the sum of logs that is given."""
    return np.where(mass > 1e-290, np.log(np.maximum(mass, 1e-290)), logs)


def _classes_without_false_ones(
    distinct: types.DistinctProbabilities, log_p: float, not_p: float, epsilon: float
) -> types.TypeClasses:
    """Classes where no bit is ever wrongly 1: the release is the truth alone, or empty (the last class)."""
    v, width = len(distinct.value), 1 if distinct.size == 1 else 2
    counts = np.array(distinct.counts, dtype=np.float64)
    mass, logs = distinct.value * counts, distinct.log_value
    empty = (mass, _log_masses(mass, logs + distinct.log_count), logs, logs)
    groups = [
        np.concatenate([pairs[:, :width].reshape(-1), last])
        for pairs, last in zip(distinct.with_other_secrets(), empty, strict=True)
    ]
    relative = np.zeros(width * v + v)
    if width == 2:
        relative[1 : 2 * v : 2] = -epsilon if log_p > -math.inf else 0.0
    starts = np.append(np.arange(0, width * v + 1, width), width * v + v)
    return types.TypeClasses(np.append(distinct.log_count, 0.0), np.append(distinct.log_count + log_p, not_p), starts,
                       relative, *groups, gap=distinct.gap)


def _set_extremes(prior: FloatArray | None, k: int, fewest: int, most: int, epsilon: float) -> types.ExtremeLogRatios:
    """Extremes where any set of ``fewest`` to ``most`` secrets can occur.

    xi_plus comes from the set that holds a secret of the support and the least mass, xi_minus from the set that misses
    one and holds the most.
    """
    if prior is None:
        support, low, high, above, below = k, fewest / k, most / k, (k - fewest) / k, (k - most) / k
    else:
        ordered = np.sort(prior)
        first = int(np.argmax(ordered > 0))
        support, light, heavy = k - first, max(fewest, first + 1), max(k - most, first + 1)
        low, above = math.fsum(ordered[:light]), math.fsum(ordered[light:])  # both sums: 1 less one of them cancels
        below, high = math.fsum(ordered[:heavy]), math.fsum(ordered[heavy:])
    if support == 1 or epsilon == 0:
        return types.ExtremeLogRatios(epsilon if k > 1 else 0.0, 0.0, 0.0, 0.0)
    plus = -log_mixture(low, above, -epsilon)
    minus = log_mixture(high, below, epsilon)
    rounding = 1e-14 + 2.0**-51 * min(epsilon, math.log(k))
    return types.ExtremeLogRatios(epsilon, epsilon, plus, minus, rounding, types.underflow_error(epsilon, plus, minus))


def _probability(name: str, value: float | None) -> float:
    return validate.scalar(name, value, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))


def log_expit(x: float) -> float:
    """log(1 / (1 + e^-x))."""
    return -float(np.logaddexp(0.0, -x))


def _log_bits(logit_p: float, logit_q: float) -> tuple[float, float, float, float]:
    """Logs of p, q, 1 - p and 1 - q."""
    return log_expit(logit_p), log_expit(logit_q), log_expit(-logit_p), log_expit(-logit_q)


def _logit(p: float) -> float:
    """log(p / (1 - p))."""
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return math.log(p) - math.log1p(-p)


def _log_odds_ratio(p: float, q: float) -> float:
    """logit p - logit q, without cancellation where they are close."""
    if p == q:
        return 0.0
    if 0.5 * q < p < 2 * q and 0.5 * (1 - q) < 1 - p < 2 * (1 - q):
        return math.log1p((p - q) / q) + math.log1p((p - q) / (1 - p))
    if q > 0.0 and max(p, q) < 1.0 and 1e-300 < p / q < 1e300:  # both logits may be far larger than their difference
        return math.log(p / q) + math.log((1 - q) / (1 - p))
    return _logit(p) - _logit(q)


def count_times_log(count: Any, log: float) -> Any:
    """count * log, 0 for a count of 0 whatever the log."""
    count = np.asarray(count)
    return np.where(count == 0, 0.0, count * log if log > -math.inf else -math.inf)
