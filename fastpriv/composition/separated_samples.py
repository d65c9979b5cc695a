"""Samples for noise that is correlated by a banded matrix: cyclic Poisson samples, and samples with a separation.

Notation: T steps, b steps of separation, a lower triangular Toeplitz matrix C with m <= b bands and coefficients c_0 ..
c_(m-1) >= 0; C x plus N(0, sigma^2 I) noise is released, and a record contributes at most s to each step it takes part
in. a = s / sigma, r_d = a^2 sum_l c_l c_(l+d), k the largest number of steps of one record, T / b rounded up.

docs/proofs/sampled_tables.md, theorem 11.7. Cyclic Poisson. A record belongs to one subset of b, and each of the steps
j, j + b, ... of its subset samples it with the probability q. The columns of C of these steps share no row, so that
each step is a Poisson sample of the length of its column: exact, for all relations. The first subset has the most
steps; only its last column may be cut.

Separation b ("b-min-sep"). A record that took part in none of the last b - 1 steps takes part with the probability q.
Before the first step its age is stationary: it takes part in any step with the probability p = q / (1 + (b - 1) q). At
q = 1 these are balls in bins. Neighbours differ by a record that is added, removed, or zeroed. From above:

* Moments, for removal. E_Q R^n is the mean over n independent patterns of the exponential of the sum of the covariances
  K of all pairs of them. It is built step by step from the numbers of patterns of each age: where j of them take part,
  it gains the factor e^(r_0 j (j - 1) / 2 + j sum_d r_d n_d), n_d having taken part d steps before. With adaptive
  contributions it can only be less, row by row.
* Moments, for addition. R >= e^(mean over patterns u of log w_u), w_u the ratio of u, so that log E_Q R^-t <=
  t E K_uu / 2 + t^2 v / 2, with v = |E C u|^2 / sigma^2 <= T (a p sum_l c_l)^2 and E K_uu <= T p r_0.
* Poisson samples, in both directions. The noise of all steps of x + N(0, (sigma / l)^2 I), l = sum_l c_l >= |C|,
  multiplied with C and with more noise added, is the release. Of x alone, a step samples a record with at most the
  probability q, whatever was seen before: T Poisson samples of the sensitivity l s dominate.
* The pattern is told: k contributions, whose columns share no row, of the length |c| s each.

From below: the sum of all rows, in which the number of steps of a record shows, and one step.

Source: Choquette-Choo, Ganesh, McKenna, McMahan, Rush, Thakurta and Xu 2023 (cyclic Poisson); Dong and Ganesh 2026,
arXiv 2602.09338 (separation); the integer moments of mixtures of normal distributions are elementary.
"""

# bounds: proved - 1e-11 is far above the roundings of sums of up to 2^53 / 1e5 positive terms

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.exact_linear_algebra import square_root_enclosure
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..mechanisms.gaussian import GaussianMechanism
from ..mechanisms.subsampled_gaussian import PoissonSampledGaussian
from ..pairs.allocations import IMPROVED_DELTAS
from ..pairs.events import RenyiPair
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import BoundingPairs, Bounds, DominatingPair
from ..pairs.sampled import PoissonSampled, Relation
from .banded_matrices import BandedMatrixMechanism, checked_coefficients
from .compositions import compose
from .engines import curve_bounds
from .random_allocation import ALLOWANCE, StructuredSampling, mixture_of_sum, noise_and_sensitivity

_MAX_STEPS, _MAX_SEPARATION = 10**9, 4096
_MOST_ORDERS = 32  # of moments
_MOST_STATES, _WORK = 30_000, 6e7  # of one order; transitions of all orders and steps: a second
_SETUP = 200.0  # steps that take as long as the preparation of an order
_FEW_LEVELS = 8  # up to which curves are evaluated one by one
_LEVELS = np.concatenate([np.arange(0.0, 6.0, 1.0 / 32.0), np.geomspace(6.0, 700.0, 160)])  # between which are chords
# bound: none - log delta below which nothing is told by chords
_LEAST_LOG = -690.0
_COUNT_WORK = 2e7  # numbers of the law of how often a record takes part
# bound: none - means in units of sigma, and moments, beyond which nothing is looked for
_LARGEST_MEAN, _LARGEST_MOMENT = 1e100, 1e8
# bound: none - probabilities of numbers that are not told apart
_LEAST_COUNT = 1e-40


class _BandedSampled(StructuredSampling):
    """Base of samples for banded matrices, with their parameters in one order."""

    __slots__ = ()

    coefficients: FloatArray
    sigma: float
    steps: int
    rate: float
    separation: int
    sensitivity: float

    def _set_parameters(
        self, coefficients: Any, sigma: Any, steps: Any, rate: Any, separation: Any, sensitivity: Any, **others: Any
    ) -> None:
        period = validate.count("separation", separation, 1, _MAX_SEPARATION)
        column = checked_coefficients(coefficients, "separation", period)
        noise, span = noise_and_sensitivity(sigma, sensitivity)
        total = float(column.sum()) * span
        validate.scalar("sensitivity times the sum of the coefficients", total, "below 1e300", lambda x: x < 1e300)
        probability = validate.scalar("rate", rate, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
        number = validate.count("steps", steps, 1, _MAX_STEPS)
        self._set(coefficients=column, sigma=noise, steps=number, rate=probability, separation=period, sensitivity=span,
                  **others)

    def _lengths(self, rows: int) -> tuple[float, float]:
        """Doubles around the length of the first rows of a column, times the sensitivity."""
        square = sum((Fraction(c) ** 2 for c in self.coefficients[:rows].tolist()), Fraction(0))
        square *= Fraction(self.sensitivity) ** 2
        return square_root_enclosure((square, square)) if square else (0.0, 0.0)

    def _poisson(self, relation: Relation) -> BoundingPairs:
        """Poisson samples of the columns of the first subset."""
        turns = -(-self.steps // self.separation)
        last = self.steps - (turns - 1) * self.separation
        counts = {self._lengths(self.coefficients.size): turns - 1}
        counts[self._lengths(last)] = counts.get(self._lengths(last), 0) + 1

        def pairs(side: int) -> BoundingPairs:
            steps = [PoissonSampled(GaussianMechanism(self.sigma, x[side]), self.rate, relation) for x in counts]
            return compose(steps, list(counts.values())).forward_pairs

        larger = pairs(1)
        if all(low == high for low, high in counts):
            return larger
        return BoundingPairs(larger.dominating, pairs(0).alternatives)


class CyclicPoissonSampled(_BandedSampled):
    """Noise correlated by a banded Toeplitz matrix, and Poisson samples of subsets of the records, in turn.

    Parameters
    ----------
    coefficients : array_like, shape (bands,)
        First column of the matrix C, from the diagonal on: at least 0 and finite, the first one positive; at most
        ``separation`` of them.
    sigma : float
        Standard deviation of the noise before it is multiplied with the inverse of C, positive and finite.
    steps : int
        All steps, at most 1e9.
    rate : float
        Probability that a step samples a record of its subset, between 0 and 1.
    separation : int
        Number of subsets, and of steps from one turn of a subset to the next; at most 4096. A record belongs to one
        subset, whatever its value.
    sensitivity : float, default 1
        Largest length of the contribution of a record to a step, in the unit of sigma, at least 0 and finite.
    relation : {"add_or_remove", "replace_one", "zero_out"}, default "add_or_remove"
        What neighbouring data sets differ by.

    Raises
    ------
    DomainError
        For parameters out of range, or another relation.

    Notes
    -----
    Exact in all relations, also where the last column is cut by the last step: a composition of ``PoissonSampled``.

    **Accuracy** ``tests/enclosures/test_separated_samples.py``.

    Source: Choquette-Choo et al. 2023; the head of this module.

    Examples
    --------
    >>> from fastpriv.pairs import CyclicPoissonSampled
    >>> cyclic = CyclicPoissonSampled([1.0, 0.5], sigma=1.0, steps=2000, rate=0.02, separation=4)
    >>> print(f"{cyclic.epsilon(1e-6):.4f}")
    4.1315 [4.1314, 4.1315]
    """

    __slots__ = _fields = ("coefficients", "sigma", "steps", "rate", "separation", "sensitivity", "relation")

    relation: Relation

    def __init__(
        self, coefficients: ArrayLike, sigma: ArrayLike, steps: int, rate: ArrayLike, separation: int,
        sensitivity: ArrayLike = 1.0, relation: Relation = "add_or_remove",
    ) -> None:
        neighbours = validate.choice("relation", relation, ("add_or_remove", "replace_one", "zero_out"))
        self._set_parameters(coefficients, sigma, steps, rate, separation, sensitivity, relation=neighbours)

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        return self._poisson(self.relation)


class SeparatedSampled(_BandedSampled):
    """Noise correlated by a banded Toeplitz matrix, and samples of a record that are at least some steps apart.

    Parameters
    ----------
    coefficients, sigma, steps, sensitivity
        As of ``CyclicPoissonSampled``.
    rate : float
        Probability that a step samples a record that was in none of the last ``separation - 1`` samples.
    separation : int
        Least number of steps from one sample with a record to the next, at least the number of coefficients and at most
        4096.

    Raises
    ------
    DomainError
        For parameters out of range.

    Notes
    -----
    Known as b-min-sep sampling. The steps since a record was last sampled are drawn from their stationary law before
    the first step, so that it is in any sample with the probability rate / (1 + (separation - 1) rate). Other starts
    are other mechanisms. Neighbours differ by a record that is added, removed, or zeroed in its place.

    Bounds are certified: from above the least of integer moments, Poisson samples, and one Gaussian mechanism; from
    below the sum of all outputs, and one of them. They are wide. At separation 1, and at rate 1 for whole turns, they
    are those of ``CyclicPoissonSampled`` and of balls in bins.

    **Accuracy** ``tests/enclosures/test_separated_samples.py``.

    Source: Dong and Ganesh 2026; the head of this module.

    Examples
    --------
    >>> from fastpriv.pairs import SeparatedSampled
    >>> found = SeparatedSampled([1.0], sigma=1.0, steps=64, rate=0.25, separation=8).epsilon(1e-5, direction="forward")
    >>> 3.0 < found.lower < found.upper < 6.2
    True
    """

    __slots__ = _fields = ("coefficients", "sigma", "steps", "rate", "separation", "sensitivity")

    def __init__(
        self, coefficients: ArrayLike, sigma: ArrayLike, steps: int, rate: ArrayLike, separation: int,
        sensitivity: ArrayLike = 1.0,
    ) -> None:
        self._set_parameters(coefficients, sigma, steps, rate, separation, sensitivity)

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        if self.separation == 1 or self.rate == 0.0:
            return self._poisson("add_or_remove")
        if self.rate == 1.0:
            turns = -(-self.steps // self.separation)
            bins = BandedMatrixMechanism(self.coefficients, self.sigma, self.separation, self.sensitivity, turns)
            pairs = bins._bounding_pairs(deltas)
            exact = self.coefficients.size == 1 and not self.steps % self.separation
            return pairs if exact else BoundingPairs(pairs.dominating, _dominated(self))
        removal, addition = _dominating(self)
        return BoundingPairs((_LeastOfCurves(removal, addition, 1),), _dominated(self))


@dataclass(frozen=True, slots=True, eq=False)
class _LeastOfCurves(DominatingPair):
    """The least of the curves of several compositions that all dominate, from above alone."""

    losses_are_finite = True

    ahead: tuple[BoundingPairs, ...]
    behind: tuple[BoundingPairs, ...]
    count: int

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """The least upper bound; of many levels by chords, as delta is convex in e^epsilon."""
        if epsilon.size <= _FEW_LEVELS:
            upper = np.minimum.reduce([curve_bounds(pairs, epsilon).upper for pairs in self.ahead])
        else:
            x, heights = np.exp(_LEVELS), np.exp(_upper_on_levels(self.ahead))
            inside = np.exp(np.minimum(epsilon, _LEVELS[-1]))
            left = np.maximum(np.searchsorted(x, inside) - 1, 0)
            upper = np.log(np.interp(inside, x, heights) + 1e-11 * heights[left])
        return LogBounds(upper, np.full(epsilon.size, -np.inf), upper, {}, "least of several upper bounds")

    def largest_loss(self) -> Bounds:
        """Not looked for."""
        return 0.0, math.inf

    def reversed(self) -> _LeastOfCurves:
        """The other direction."""
        return _LeastOfCurves(self.behind, self.ahead, self.count)


@functools.lru_cache(maxsize=32)
def _upper_on_levels(alternatives: tuple[BoundingPairs, ...]) -> FloatArray:
    result = np.full(_LEVELS.size, _LEAST_LOG)
    for part in np.array_split(np.arange(_LEVELS.size), _LEVELS.size // 4):  # deep levels take long
        result[part] = np.minimum.reduce([curve_bounds(pairs, _LEVELS[part]).upper for pairs in alternatives])
        if result[part[-1]] <= _LEAST_LOG:
            break
    return np.asarray(np.maximum(result, _LEAST_LOG))


def _renyi(rho: float, xi: float, tilts: Any = (), moments: Any = ()) -> BoundingPairs:
    return BoundingPairs((RenyiPair(rho, xi, np.array(tilts), np.array(moments), 1),), ((),))


@functools.lru_cache(maxsize=64)
def _dominating(mechanism: SeparatedSampled) -> tuple[tuple[BoundingPairs, ...], tuple[BoundingPairs, ...]]:
    """What dominates the removal and the addition of a record."""
    steps, sigma, rate = mechanism.steps, mechanism.sigma, mechanism.rate
    length, turns = mechanism._lengths(mechanism.coefficients.size)[1], -(-steps // mechanism.separation)
    total = float(mechanism.coefficients.sum()) * mechanism.sensitivity * (1.0 + ALLOWANCE)
    single = compose(GaussianMechanism(sigma, length * math.sqrt(turns) * (1.0 + ALLOWANCE))).forward_pairs
    poisson = compose(PoissonSampledGaussian(sigma, rate, total), steps)
    removal, addition = [single, poisson.forward_pairs], [single, poisson.backward_pairs]
    r = _covariances(mechanism)
    visits = steps * rate / (1.0 + (mechanism.separation - 1) * rate)
    squares, variance = visits * float(r[0]), visits**2 / steps * (2.0 * float(r.sum()) - float(r[0]))
    if max(squares, variance) < _LARGEST_MOMENT:
        addition.append(_renyi(0.5 * variance, max(0.5 * (squares - variance), 0.0)))
    logs = _log_moments(mechanism, r)
    if logs[1:]:
        removal.append(_renyi(0.0, 0.0, np.arange(len(logs)), logs))
    return tuple(removal), tuple(addition)


def _covariances(mechanism: SeparatedSampled) -> FloatArray:
    """r_0 .. r_(m-1), rounded up."""
    c = mechanism.coefficients * min(mechanism.sensitivity / mechanism.sigma, _LARGEST_MEAN)
    return np.asarray(np.correlate(c, c, "full")[c.size - 1 :] * (1.0 + ALLOWANCE))


@functools.lru_cache(maxsize=64)
def _dominated(mechanism: SeparatedSampled) -> tuple[tuple[DominatingPair, ...], ...]:
    """The sum of all rows, where the columns of all but the last steps are complete; the rows of the first step."""
    lowered = 1.0 - ALLOWANCE
    scale = min(mechanism.sensitivity / mechanism.sigma, _LARGEST_MEAN)
    rate = mechanism.rate / (1.0 + (mechanism.separation - 1) * mechanism.rate) * lowered
    means = np.array([0.0, math.hypot(*mechanism.coefficients[: mechanism.steps].tolist()) * scale])
    result = [(mixture_of_sum(means, np.array([1.0 - rate, rate])),)]
    steps = mechanism.steps - mechanism.coefficients.size + 1
    if 0 < steps * (mechanism.separation + steps) <= _COUNT_WORK:
        counts = _counts(steps, mechanism.rate, mechanism.separation)
        unit = float(mechanism.coefficients.sum()) * scale / math.sqrt(mechanism.steps)
        result.append((mixture_of_sum(np.asarray(np.arange(counts.size) * unit), counts),))
    return tuple(result)


def _counts(steps: int, rate: float, separation: int) -> FloatArray:
    """The probabilities of the numbers of samples with a record, where rare ones count as smaller numbers.

    A little of Q is mixed with P, which only hides it: the least probability keeps its digits.
    """
    table = np.zeros((separation, 2 + steps // separation))  # by the steps until it may be sampled
    table[:, 0] = rate / (1.0 + (separation - 1) * rate)
    table[0, 0] /= rate
    for _ in range(steps):
        sampled = rate * table[0]
        remaining = (1.0 - rate) * table[0]
        table[:-1] = table[1:]
        table[-1] = 0.0
        table[0] += remaining
        table[separation - 1, 1:] += sampled[:-1]
    result = np.asarray(table.sum(axis=0))
    result[np.cumsum(result) < _LEAST_COUNT] = 0.0
    result[0] += _LEAST_COUNT
    last = int(np.flatnonzero(np.cumsum(result[::-1])[::-1] >= _LEAST_COUNT)[-1])
    return np.append(result[:last], result[last:].sum())


def _log_moments(mechanism: SeparatedSampled, r: FloatArray) -> list[float]:
    """Upper bounds of log E_Q R^n for n = 1, 2, ..., as many as are not too much work."""
    result, work = [0.0], 0.0
    for order in range(2, _MOST_ORDERS + 1):
        states = math.comb(order + mechanism.separation - 1, order)
        work += math.comb(order + mechanism.separation, order) * (mechanism.steps + _SETUP)
        if states > _MOST_STATES or work > _WORK or not order**2 * mechanism.steps * float(r.sum()) < _LARGEST_MOMENT:
            break
        result.append(_log_moment(mechanism, r, order))
    return result


def _log_moment(mechanism: SeparatedSampled, r: FloatArray, order: int) -> float:
    """An upper bound of log E_Q R^n, by the head of this module; states are the numbers of patterns of each age."""
    b, q = mechanism.separation, mechanism.rate
    bars = np.array(list(itertools.combinations(range(order + b - 1), b - 1)), dtype=np.int64)
    ends = np.full((len(bars), 1), order + b - 1)
    states = np.diff(np.hstack([-np.ones_like(ends), bars, ends]), axis=1) - 1  # the last may be sampled
    positions = {row.tobytes(): i for i, row in enumerate(states)}
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1, order + 1))))  # of factorials
    sources, sampled = np.nonzero(states[:, -1:] >= np.arange(order + 1))
    after = np.column_stack([sampled, states[sources, : b - 1]])[:, : b - 1]
    after = np.column_stack([after, order - after.sum(axis=1)])
    targets = np.array([positions[row.tobytes()] for row in after])
    rows = np.argsort(targets, kind="stable")
    sources, sampled, starts = sources[rows], sampled[rows], np.flatnonzero(np.diff(targets[rows], prepend=-1))
    free = states[sources, -1]
    single = logs[free] - logs[sampled] - logs[free - sampled] + sampled * math.log(q)
    single = single + (free - sampled) * math.log1p(-q) + r[0] * (sampled * (sampled - 1) / 2)
    log_p = math.log(q) - math.log1p((b - 1) * q)
    value = logs[order] - logs[states].sum(axis=1) + order * log_p - states[:, -1] * math.log(q)
    terms = abs(log_p) + abs(math.log(q)) - math.log1p(-q) + logs[order] + order * float(r.sum()) + 1.0
    size = 4.0 * order * terms  # more than the sum of what each logarithm is made of
    for step in range(mechanism.steps):
        if step < r.size:  # as long as further lags reach back to the first step
            lagged = (states[sources, :step] * r[1 : step + 1]).sum(axis=1)
            factors = single + sampled * lagged
        value = np.logaddexp.reduceat(value[sources] + factors, starts)
        size = max(size, float(np.abs(value).max()))
    roundings = (order + 4) * (mechanism.steps + 1) + len(states)
    return float(np.logaddexp.reduce(value) + 8 * UNIT_ROUNDOFF * roundings * size)
