"""Channels as few numbers: classes of equivalent releases, groups of equivalent secrets, and pairs of rows.

Notation: Q[d, w] is the probability of release w under secret d, pi the prior, q = pi Q, r_d(w) = Q[d, w] / q[w]. A
type class c is a set of releases whose columns are equal up to the order of the secrets; a group g of a class is a set
of secrets with one likelihood in it. The total of a class is (number of releases) times (largest likelihood); the
log relative likelihood of a group is the log of its likelihood over that largest one, so that a tiny epsilon keeps all
its digits beside a likelihood of 2^-200. Releases of a power of a pair of rows are counted by their types: how many
coordinates are in each class.

Source: the method of types, Cover and Thomas 2006, chapter 11.
"""

# bounds: proved - docs/proofs/finite_capacity.md: rounding of log ratios and masses (7.21), of products (7.23), of
#    families (7.15, 7.17); and underflow

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import ShapeError
from ..base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray, IntArray, LongDoubleArray, RealArray
from ..base.values import ValueObject
from ..kernels import _matrix_product

_PAIRWISE_GROUPS = 8  # groups of a class up to which ratios are summed over pairs of groups, without cancellation
_BLOCK_CLASSES = 2**18  # classes whose ratios are computed together; bounds the memory of the pairs of groups
# bound: proved - docs/proofs/finite_capacity.md, 7.17: error of a log that a family makes from its parameters
_LOG_ROUNDING = 32 * UNIT_ROUNDOFF  # absolute error, for each unit of 8 + |log|
# bound: none - which of two formulas takes a log ratio
_SMALLEST_ACCURATE = 2.0**-1021  # ratios below are subnormal, or nearly, and have few digits
_MAX_ENTRIES = 2**21  # entries of row pairs up to which they are listed: 16 MiB an array
_MAX_PAIRS = 2**12  # pairs of rows of the whole product up to which they are listed
_EXTENDED_EPSILON = float(np.finfo(np.longdouble).eps)  # twice the unit roundoff of extended precision
_STIRLING = tuple(
    np.longdouble(a) / b for a, b in ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188), (-691, 360360), (1, 156))
)  # of log n!
_HALF_LOG_2PI = np.log(2 * np.arccos(np.longdouble(-1))) / 2  # in extended precision


class DistinctProbabilities(NamedTuple):
    """Distinct prior probabilities, increasing, shape (v,), each with the sums over all secrets but one that has it."""

    size: int  # number of secrets
    value: FloatArray
    log_value: FloatArray
    counts: list[int]  # number of secrets with this probability
    log_count: FloatArray
    other_mass: FloatArray  # mass of all secrets but one with this probability
    log_other_mass: FloatArray
    log_other_largest: FloatArray  # log of the largest probability among them
    log_other_smallest: FloatArray  # log of the smallest positive one among them
    gap: float  # distance of the sum of the prior from 1

    def with_other_secrets(self) -> list[FloatArray]:
        """Mass, log mass, log largest and log smallest of one secret of each probability and of all others, (v, 2)."""
        pairs = ((self.value, self.other_mass), (self.log_value, self.log_other_mass),
                 (self.log_value, self.log_other_largest), (self.log_value, self.log_other_smallest))
        return [np.stack(pair, axis=1) for pair in pairs]


def validated_prior(prior: ArrayLike, inputs: int) -> FloatArray:
    """Return the prior as an array; raise unless it has one probability for each secret."""
    probabilities = validate.probabilities("prior", prior)
    if probabilities.size != inputs:
        raise ShapeError(
            f"prior must have one entry for each of the {validate.shown(inputs)} secrets; got {probabilities.size}. "
            "Pass None for the uniform distribution."
        )
    return probabilities


def prior_gap(prior: FloatArray | None) -> float:
    """Distance of the sum from 1; 0 for None, the uniform distribution."""
    return 0.0 if prior is None else validate.sum_gap(prior)


def distinct_probabilities(prior: FloatArray | None, size: int) -> DistinctProbabilities:
    """The distinct probabilities of a prior of this many secrets."""
    if prior is None:
        log_size = math.log(size)
        probability = math.exp(-log_size) if size > 2**1000 else 1.0 / size
        log_other_mass = np.array([math.log1p(-probability) if size > 1 else -math.inf])
        log_others = np.array([-log_size if size > 1 else -math.inf])
        return DistinctProbabilities(size, np.array([probability]), np.array([-log_size]), [size], np.array([log_size]),
                                     np.exp(log_other_mass), log_other_mass, log_others, log_others, 0.0)
    value, counts = np.unique(prior, return_counts=True)
    wide, wide_counts = value.astype(np.longdouble), counts.astype(np.longdouble)
    below = np.concatenate([[0], np.cumsum(wide * wide_counts)])
    above = np.concatenate([np.cumsum((wide * wide_counts)[::-1])[::-1], [0]])
    remainder = below[:-1] + above[1:] + (wide_counts - 1) * wide  # sums of positive terms: nothing cancels
    with np.errstate(divide="ignore"):
        log_value = np.log(value)
        log_other_mass = np.log(remainder).astype(np.float64)
    unique = counts == 1  # the largest and the smallest of the others differ only where the value occurs once
    largest = np.full(value.size, log_value[-1])
    if unique[-1]:
        largest[-1] = log_value[-2] if value.size > 1 else -np.inf
    smallest = np.full(value.size, log_value[value > 0][0])
    first = int(np.argmax(value > 0))
    if unique[first]:
        smallest[first] = log_value[first + 1] if first + 1 < value.size else -np.inf
    return DistinctProbabilities(size, value, log_value, counts.tolist(), np.log(counts), remainder.astype(np.float64),
                                 log_other_mass, largest, smallest, prior_gap(prior))


@dataclass(frozen=True, slots=True)
class ExtremeLogRatios:
    """The largest log ratios of a channel under a prior, in nats.

    Parameters
    ----------
    ldp_epsilon : float
        max over releases of log(largest / smallest likelihood), over all secrets.
    ldp_on_support : float
        The same over the secrets that the prior gives mass.
    xi_plus, xi_minus : float
        max ln r and -min ln r over these secrets and the releases that occur.
    rounding, error : float
        Relative and absolute bounds on the error of all four; they add.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> RandomizedResponse(2**200, 1.0).extreme_log_ratios().xi_plus
    1.0
    """

    ldp_epsilon: float
    ldp_on_support: float
    xi_plus: float
    xi_minus: float
    rounding: float = 1e-14
    error: float = 0.0


class TypeClasses(ValueObject):
    """Classes of equivalent releases, and in each of them groups of equivalent secrets.

    Parameters
    ----------
    log_outputs : ndarray, shape (c,)
        Log number of releases in each class.
    log_total : ndarray, shape (c,)
        Log of that number times the largest likelihood in the class; -inf for releases that never occur.
    starts : ndarray of int, shape (c + 1,)
        Groups ``starts[i]`` to ``starts[i + 1]`` are those of class i; there is at least one.
    log_relative : ndarray, shape (g,)
        Log likelihood of a group less that of the likeliest group of its class: at most 0, -inf for a zero.
    mass, log_mass : ndarray, shape (g,)
        Prior mass of the secrets of each group, and its log, which is accurate where the mass underflows. A group of
        mass zero holds secrets outside the prior's support: they count for LDP alone.
    log_largest, log_smallest : ndarray, shape (g,)
        Logs of the largest and the smallest positive prior probability of one secret in the group.
    omitted_mass : float, optional
        Upper bound on the probability, under any secret, of releases that no class covers.
    gap : float, optional
        Distance of the prior's sum from 1.
    error : float, optional
        Absolute bound on the error of each log relative likelihood, beyond 1e-15 relative.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> classes = RandomizedResponse(10**9, 1.0).type_classes()
    >>> classes.log_relative, classes.mass.tolist()
    (array([ 0., -1.]), [1e-09, 0.999999999])
    >>> bool(abs(classes.log_weight[0]) < 1e-15)  # all releases are in one class
    True
    """

    __slots__ = _fields = (
        "log_outputs", "log_total", "starts", "log_relative", "mass", "log_mass", "log_largest",
        "log_smallest", "omitted_mass", "gap", "error",
    )

    log_outputs: FloatArray
    log_total: FloatArray
    starts: IntArray
    log_relative: FloatArray
    mass: FloatArray
    log_mass: FloatArray
    log_largest: FloatArray
    log_smallest: FloatArray
    omitted_mass: float
    gap: float
    error: float

    def __init__(
        self, log_outputs: ArrayLike, log_total: ArrayLike, starts: ArrayLike, log_relative: ArrayLike,
        mass: ArrayLike, log_mass: ArrayLike, log_largest: ArrayLike, log_smallest: ArrayLike, *,
        omitted_mass: float = 0.0, gap: float = 0.0, error: float = 0.0,
    ) -> None:
        arrays = (log_outputs, log_total, starts, log_relative, mass, log_mass, log_largest, log_smallest)
        self._set(
            **{name: np.ascontiguousarray(array, dtype=np.int64 if name == "starts" else np.float64)
               for name, array in zip(self._fields, arrays, strict=False)},
            omitted_mass=float(omitted_mass), gap=float(gap), error=float(error),
        )

    @property
    def classes(self) -> IntArray:
        """The class of each group, shape (g,)."""
        return np.repeat(np.arange(len(self.log_total)), np.diff(self.starts))

    @property
    def log_evidence(self) -> FloatArray:
        """Log of the evidence over the largest likelihood, sum_g mass_g e^(log relative likelihood of g), (c,)."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            change = self._class_sums(self.mass * np.expm1(self.log_relative))  # evidence less 1
            if change.min() > -0.5:  # all likelihoods are nearly equal: no other formula is needed
                return np.asarray(np.log1p(change))
            exponent = self.log_mass + self.log_relative
            top = np.maximum.reduceat(exponent, self.starts[:-1])
            centre = np.where(top == -np.inf, 0.0, top)[self.classes]
            direct = top + np.log(self._class_sums(np.exp(exponent - centre)))
            direct = np.where(top == -np.inf, -np.inf, direct)
            return np.where(change > -0.5, np.log1p(np.maximum(change, -0.5)), direct)

    @property
    def log_weight(self) -> FloatArray:
        """Log probability of each class of releases under the prior, shape (c,)."""
        return self.log_total + self.log_evidence

    @property
    def log_ratio(self) -> FloatArray:
        """ln r of each group, shape (g,); without meaning in classes whose evidence is zero.

        In classes of at most 8 groups, the relative error is about 1e-15 even where r is next to 1, if the groups have
        two likelihoods.
        """
        return self._log_ratio(self.log_evidence)

    def _log_ratio(self, log_evidence: FloatArray) -> FloatArray:
        sizes, relative = np.diff(self.starts), self.log_relative
        with np.errstate(invalid="ignore"):
            ratios = relative - log_evidence[self.classes]
        ratios[relative == -np.inf] = -np.inf
        for size in range(1, _PAIRWISE_GROUPS + 1):
            first = self.starts[:-1][sizes == size]
            for start in range(0, first.size, _BLOCK_CLASSES):
                groups = first[start : start + _BLOCK_CLASSES, None] + np.arange(size)
                ratios[groups] = _pairwise_log_ratios(relative[groups], self.mass[groups], self.log_mass[groups])
        return ratios

    def extreme_log_ratios(self) -> ExtremeLogRatios:
        """Largest log ratios: LDP over all secrets and over the support, and both sides of MBP."""
        support = self.log_mass > -np.inf
        rounding, evidence_rounding, mixed_tilt = self.roundings()
        log_evidence = self.log_evidence
        occurs = (self.log_total + log_evidence > -np.inf)[self.classes] & support
        ratio = self._log_ratio(log_evidence)[occurs]
        plus, minus = max(0.0, float(np.max(ratio, initial=-np.inf))), max(0.0, float(-np.min(ratio, initial=np.inf)))
        spread = self._largest_difference(support)
        overall = spread if support.all() else self._largest_difference(np.ones_like(support))
        # in a class of many groups a log ratio is a difference of two logs (docs/proofs/finite_capacity.md, 7.19)
        error = evidence_rounding * largest_size(log_evidence[np.diff(self.starts) > _PAIRWISE_GROUPS])
        error += 4 * self.error + underflow_error(spread, plus, minus) + 32 * UNIT_ROUNDOFF * float(mixed_tilt.max())
        return ExtremeLogRatios(overall, spread, plus, minus, rounding, error)

    def roundings(self) -> tuple[float, float, FloatArray]:
        """Relative errors of log ratios in classes of at most 8 groups (docs/proofs/finite_capacity.md, 7.21) and of
        ``log_evidence`` (7.19), and the size of the largest log relative likelihood of each class that has two of them
        besides 0, else 0.
        """
        size = np.where(np.isfinite(self.log_relative), -self.log_relative, 0.0)
        largest = np.maximum.reduceat(size, self.starts[:-1])
        mixed = np.logical_or.reduceat((size > 0) & (size < largest[self.classes]), self.starts[:-1])
        ratio = 1e-14 + 2.0**-48 * min(largest_size(self.log_mass), float(size.max()))
        return ratio, UNIT_ROUNDOFF * (80 + 16 * math.log2(len(self.mass))), np.where(mixed, largest, 0.0)

    def _largest_difference(self, selected: BoolArray) -> float:
        """The largest difference of two log relative likelihoods of one class, of the selected groups."""
        relative = self.log_relative
        top = np.maximum.reduceat(np.where(selected, relative, -np.inf), self.starts[:-1])
        low = np.minimum.reduceat(np.where(selected, relative, np.inf), self.starts[:-1])
        occurs = (self.log_total > -np.inf) & (top > -np.inf)
        return float(np.max(top[occurs] - low[occurs], initial=0.0))

    def _class_sums(self, terms: FloatArray) -> FloatArray:
        return np.add.reduceat(terms, self.starts[:-1])

    def __repr__(self) -> str:
        return f"<TypeClasses: {len(self.log_total)} classes of releases, {len(self.mass)} groups of secrets>"


def largest_size(logs: FloatArray) -> float:
    """The size of the largest finite logarithm, 0 if there is none."""
    return float(np.max(np.abs(logs), where=np.isfinite(logs), initial=0.0))


def underflow_error(spread: float, plus: float, minus: float) -> float:
    """Absolute error to add where a log ratio is too small for a double."""
    return 1e-300 if spread > 0 and min(plus, minus) < 1e-290 else 0.0


def classes_of_matrix(cells: RealArray, log: bool, prior: FloatArray | None, error: float = 0.0) -> TypeClasses:
    """Type classes of a small channel: every release is a class, every secret a group."""
    n = len(cells)
    mass = np.full(n, 1.0 / n) if prior is None else prior
    return classes_of_groups(cells, mass, mass, mass, prior_gap(prior), log=log, error=error)


def classes_of_groups(
    cells: RealArray, mass: FloatArray, largest: FloatArray, smallest: FloatArray, gap: float, *,
    log: bool = False, error: float = 0.0,
) -> TypeClasses:
    """Type classes where every release is a class and every row a group of secrets."""
    n, m = cells.shape
    columns = np.ascontiguousarray(cells.T, dtype=np.float64)
    top = columns.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_top = top if log else np.log(top)
        if log:
            relative = columns - np.where(log_top == -np.inf, 0.0, log_top)[:, None]
        else:
            relative = relative_logs(columns, top[:, None])
        logs = [np.tile(np.log(column), m) for column in (mass, largest, smallest)]
    return TypeClasses(np.zeros(m), log_top, np.arange(0, n * m + 1, n), relative.reshape(-1), np.tile(mass, m), *logs,
                       gap=gap, error=error)


def relative_logs(cells: FloatArray, top: FloatArray) -> FloatArray:
    """log(cells / top) for cells of at most ``top``, precise where they are next to it; -inf where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = np.where(top > 0, top, 1.0)
        ratio = cells / scale
        near = ratio > 0.5
        logs = np.log(ratio, out=np.zeros_like(ratio), where=~near)
        np.log1p((cells - top) / scale, out=logs, where=near)
        inaccurate = (ratio < _SMALLEST_ACCURATE) & (cells > 0)
        return np.where(inaccurate, np.log(cells) - np.log(scale), logs) if inaccurate.any() else logs


def _pairwise_log_ratios(relative: FloatArray, mass: FloatArray, log_mass: FloatArray) -> FloatArray:
    """ln r_g = -log sum_h mass_h e^(relative_h - relative_g), shape (classes, groups).

    The sum is 1 plus sum_h mass_h expm1(difference), which is precise where r is next to 1.
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        difference = relative[:, None, :] - relative[:, :, None]
        log_masses = log_mass[:, None, :]
        exponent = np.where(log_masses == -np.inf, -np.inf, log_masses + difference)
        subtracted = np.exp(exponent) - np.exp(log_masses)  # for masses that underflow, or nearly
        terms = np.where(mass[:, None, :] > 1e-290, mass[:, None, :] * np.expm1(difference), subtracted)
        change = np.sum(np.where(log_masses == -np.inf, 0.0, terms), axis=2)
        top = exponent.max(axis=2)
        centre = np.where(np.isfinite(top), top, 0.0)
        direct = top + np.log(np.sum(np.exp(exponent - centre[:, :, None]), axis=2))
        near = np.abs(change) < 0.5
        ratios = -np.where(near, np.log1p(np.where(near, change, 0.0)), direct)
    return np.where(relative == -np.inf, -np.inf, ratios)


class RowPair(ValueObject):
    """Two rows of a channel, releases with equal entries counted together.

    Parameters
    ----------
    log_p, log_q : array_like, shape (c,)
        Log probability of each class of releases under either secret.
    log_ratio : array_like, shape (c,), optional
        Their difference, where it is known more precisely.
    log_error, ratio_error : array_like, shape (c,), optional
        Absolute bounds on the errors of log_p and log_q, and of log_ratio.
    largest : float, optional
        Without ``log_error``: size of the largest log that these are sums of, where it is not among them.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse
    >>> pair, = RandomizedResponse(3, 1.0).dominating_pairs()
    >>> pair.log_ratio.tolist()
    [1.0, -1.0, 0.0]
    """

    __slots__ = _fields = ("log_p", "log_q", "log_ratio", "log_error", "ratio_error")

    log_p: FloatArray
    log_q: FloatArray
    log_ratio: FloatArray
    log_error: FloatArray
    ratio_error: FloatArray

    def __init__(
        self, log_p: ArrayLike, log_q: ArrayLike, log_ratio: ArrayLike | None = None,
        log_error: ArrayLike | None = None, ratio_error: ArrayLike | None = None, *, largest: float = 0.0,
    ) -> None:
        p, q = np.array(log_p, dtype=np.float64), np.array(log_q, dtype=np.float64)
        finite_p, finite_q = (np.where(np.isfinite(logs), np.abs(logs), 0.0) for logs in (p, q))
        size = np.maximum(finite_p, finite_q)
        if log_error is None:
            log_error = _LOG_ROUNDING * (8.0 + largest + size)
        if log_ratio is None:
            same = p == q
            with np.errstate(invalid="ignore"):
                log_ratio = np.where(same, 0.0, p - q)
            if ratio_error is None:
                ratio_error = np.where(same, 0.0, 2.0 * np.asarray(log_error))
        ratio = np.array(log_ratio, dtype=np.float64)
        if ratio_error is None:
            ratio_error = 16.0 * UNIT_ROUNDOFF * np.where(np.isfinite(ratio), np.abs(ratio), 0.0)
        self._set(
            log_p=p, log_q=q, log_ratio=ratio, log_error=np.array(log_error, dtype=np.float64),
            ratio_error=np.array(ratio_error, dtype=np.float64),
        )

    @classmethod
    def trivial(cls) -> RowPair:
        """Two equal rows of one release: the pair of a channel with one secret, and the neutral pair of products."""
        return cls([0.0], [0.0])

    def __repr__(self) -> str:
        return f"<RowPair of {self.log_p.size} classes of releases>"


def ordered_pairs(logs: FloatArray) -> tuple[RowPair, ...]:
    """All ordered pairs of different rows, given by the logs of their cells."""
    size = np.where(np.isfinite(logs), np.abs(logs), 0.0)
    return tuple(
        RowPair(p, q, log_error=2.0**-49 * (1.0 + math.log(p.size) + np.maximum(size[i], size[j])))
        for i, p in enumerate(logs)
        for j, q in enumerate(logs)
        if i != j
    )


def _count_compositions(total: int, parts: int) -> int:
    return math.comb(total + parts - 1, parts - 1)


def compositions(total: int, parts: int) -> IntArray:
    """All weak compositions of a total into this many natural numbers, shape (compositions, parts)."""
    if parts == 1:
        return np.array([[total]])
    if parts == 2:
        first_of_two = np.arange(total + 1)
        return np.stack([first_of_two, total - first_of_two], axis=1)
    blocks = []
    for first in range(total + 1):
        remainder = compositions(total - first, parts - 1)
        blocks.append(np.concatenate([np.full((len(remainder), 1), first), remainder], axis=1))
    return np.concatenate(blocks)


def log_multinomials(total: int, counts: IntArray) -> tuple[LongDoubleArray, float]:
    """Logs of the multinomial coefficients of rows of counts, in extended precision, and a bound on their errors."""
    table = _log_factorials(total)
    error = 16 * _EXTENDED_EPSILON * (2.0 * float(table[total]) + 3.0 * counts.shape[1])
    return table[total] - table[counts].sum(axis=1), error


def _log_factorials(largest: int) -> LongDoubleArray:
    """Logs of 0! to ``largest``!, within 12 roundings of themselves: logs of integers, then Stirling's series."""
    logs = np.arange(largest + 1).astype(np.longdouble)
    tabulated = min(largest + 1, 16)
    logs[:tabulated] = np.log(np.array([math.factorial(i) for i in range(tabulated)], dtype=np.longdouble))
    n = logs[tabulated:]
    inverse, series = 1 / n, np.zeros_like(n)
    for coefficient in _STIRLING[::-1]:
        series = series * inverse * inverse + coefficient
    logs[tabulated:] = (n + 0.5) * np.log(n) - n + _HALF_LOG_2PI + series * inverse
    return np.asarray(logs)


def weighted_sums(counts: IntArray, logs: FloatArray) -> LongDoubleArray:
    """Sums of counts times logs in extended precision, where a count of 0 times -inf is 0."""
    finite = np.where(np.isfinite(logs), logs, 0.0).astype(np.longdouble)
    sums = np.zeros(len(counts), dtype=np.longdouble)
    for log, count in zip(finite, counts.T, strict=True):
        sums += log * count
    with np.errstate(invalid="ignore"):
        for log, count in zip(logs, counts.T, strict=True):
            if not np.isfinite(log):
                sums = sums + np.where(count > 0, log, 0.0)
    return np.asarray(np.where(np.isnan(sums), 0.0, sums))


def product_pairs(factors: Sequence[tuple[Sequence[RowPair], int]]) -> tuple[RowPair, ...] | None:
    """One of the pairs of rows of each factor at each of its coordinates; None for too many combinations or classes."""
    joint = [RowPair.trivial()]
    for pairs, power in factors:
        powers = _pairs_of_power([_possible(pair) for pair in pairs], power)
        if powers is None or len(powers) * len(joint) > _MAX_PAIRS:
            return None
        if math.prod(sum(pair.log_p.size for pair in listed) for listed in (powers, joint)) > _MAX_ENTRIES:
            return None
        joint = [_product_pair(pair, other) for other in powers for pair in joint]
    return tuple(joint)


def _pairs_of_power(pairs: Sequence[RowPair], copies: int) -> list[RowPair] | None:
    """Every assignment of the pairs to ``copies`` coordinates; None for too many assignments or classes."""
    if _count_compositions(copies, len(pairs)) > _MAX_PAIRS:
        return None
    powers: list[RowPair] = []
    size = 0
    for counts in compositions(copies, len(pairs)).tolist():
        size += math.prod(_count_compositions(n, pair.log_p.size) for pair, n in zip(pairs, counts, strict=True))
        if size > _MAX_ENTRIES:
            return None
        pair = RowPair.trivial()
        for row_pair, count in zip(pairs, counts, strict=True):
            if count:
                pair = _product_pair(pair, _pair_power(row_pair, count))
        powers.append(pair)
    return powers


def _possible(pair: RowPair) -> RowPair:
    """The pair without the releases of probability 0 in both rows."""
    occurs = (pair.log_p > -np.inf) | (pair.log_q > -np.inf)
    return pair if occurs.all() else RowPair(*(getattr(pair, name)[occurs] for name in RowPair._fields))


def _pair_power(pair: RowPair, copies: int) -> RowPair:
    """The pair of rows of ``copies`` coordinates; classes are by the numbers of coordinates in each class."""
    counts = compositions(copies, pair.log_p.size)
    multinomials, error = log_multinomials(copies, counts)
    p, q, ratio = (weighted_sums(counts, logs) for logs in (pair.log_p, pair.log_q, pair.log_ratio))
    # sums in extended precision; each log is rounded once more
    log_p, log_q = (np.asarray(logs + multinomials, dtype=np.float64) for logs in (p, q))
    size = [np.abs(np.where(np.isfinite(x), x, 0)).astype(np.float64) for x in (log_p, log_q, p, q, ratio)]
    log_error = _matrix_product.matrix_vector(counts, pair.log_error) + error
    log_error += UNIT_ROUNDOFF * (size[0] + size[1]) + 8 * _EXTENDED_EPSILON * (size[2] + size[3])
    finite_ratio = np.where(np.isfinite(pair.log_ratio), pair.log_ratio, 0.0)
    magnitude = _matrix_product.matrix_vector(counts, np.abs(finite_ratio))
    ratio_error = _matrix_product.matrix_vector(counts, pair.ratio_error) + 2 * UNIT_ROUNDOFF * size[4]
    ratio_error += 8 * _EXTENDED_EPSILON * magnitude
    return RowPair(log_p, log_q, ratio, log_error, ratio_error)


def _product_pair(first: RowPair, second: RowPair) -> RowPair:
    """The pair of rows of the product of two channels."""
    with np.errstate(invalid="ignore"):
        p, q, ratio, log_error, ratio_error = (
            np.add.outer(getattr(first, name), getattr(second, name)).reshape(-1) for name in RowPair._fields
        )
    ratio = np.where(np.isnan(ratio), 0.0, ratio)
    sizes = [np.where(np.isfinite(logs), np.abs(logs), 0.0) for logs in (p, q, ratio)]
    log_error = log_error + UNIT_ROUNDOFF * (sizes[0] + sizes[1])
    return RowPair(p, q, ratio, log_error, ratio_error + UNIT_ROUNDOFF * sizes[2])
