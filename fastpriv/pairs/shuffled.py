"""Reports that are shuffled before anyone sees them, and batches of training that are shuffled in every epoch.

Notation: n users send one report each through the same local randomiser, or one of local epsilon at most log E; one
random permutation hides who sent which. Neighbours differ in the data of one user.

* Clones (Feldman, McMillan and Talwar 2021, theorem 3.1): any randomisers, also chosen by earlier reports. With
  C ~ Bin(n - 1, 1/E), A ~ Bin(C, 1/2) and D ~ Bin(1, E / (E + 1)) the pair (A + D, C - A + 1 - D) against
  (A + 1 - D, C - A + D) dominates.
* k-ary randomised response, not adaptive: the blanket pair (Balle, Bell, Gascon and Nissim 2019, lemma 5.3) dominates;
  data whose other users all hold a third value are dominated. Of two values, the data are known by the number j of
  ones among the other users: the largest curve over j is the truth.
* Any other channel of few values, unary encodings, Laplace and normal noise on a number in an interval, not adaptive:
  the blanket from above, in ``blankets.py``; from below sums of scores, where all other users hold the same value.

Shuffled batches. T batches of an epoch, normal noise on the sum of each; s is the sensitivity of one contribution. If
the order is revealed, the record is in one known step: a Gaussian mechanism of distance 2 s where a record is replaced
and s where it becomes null, an upper bound. If all others contribute -x with |x| = s, and the record is x or -x (x or
null), the sums without their known part have means 2 s e_t or 0 (2 s e_t or s e_t), t random: lower bounds. The gap
between them is open: batches depend on each other by the other records, so that neither independent bins nor Poisson
samples bound them.
"""

# bounds: proved - rounding of the logarithm of a target

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate
from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_below
from ..channels import AnyChannel
from ..distributions import GaussianMixture
from ..mechanisms.categorical import RandomizedResponse
from ..mechanisms.gaussian import GaussianMechanism
from ..mechanisms.laplace import LaplaceMechanism
from ..notions.local import ldp_epsilon
from .allocations import IMPROVED_DELTAS, AllocationPair
from .binomials import binomial_log_probabilities
from .blankets import BlanketSum, CellsOfReports, cells_of_reports
from .curve_pairs import PairObject, normal_noise
from .discrete_pairs import DiscretePair, bounding_atoms
from .discretised_losses import PrivacyLoss, discretised, on_another_grid
from .log_bounds import LogBounds
from .mixture_pairs import MixturePair
from .protocol import BoundingPairs, Bounds, DominatingPair, SymmetricBounds
from .shuffled_sums import ShuffleSum, clone_loss

_MOST_REPORTS = 10**9  # beyond them windows of clones take gigabytes
# bound: none - width of a local epsilon that is searched for
_RTOL = 1e-10
_MOST_DATA_SETS = 256  # reports of two values up to which every data set is looked at
_MOST_OF_MIXED_DATA = 4096  # and up to which data of both values are looked at
_MOST_OF_ONE_DATA_SET = 10**5  # and up to which outcomes are listed
_LARGEST_SCORE, _MOST_SCORED = 16, 2**14  # of a report, and reports, of which sums of scores are listed
_MOST_COUNTED = 10**6  # reports over three or more values that are counted by two numbers
# bound: proved - relative error of masses by convolution, for each report
_CONVOLUTION_ERROR = 4 * float(np.finfo(np.longdouble).eps)
# bound: none - relative width of a composition that its grid may add where clones are counted in groups
_GROUPED_WIDTH = 1e-4
_GROUPED = 10**5  # reports from which on grids ask for groups
# bound: none - points of grids of sums over two numbers, a millisecond each, and levels by which their length is found
_COARSE_POINTS, _SEARCHED = 512, 33
_FARTHEST = 1e3  # nats of losses that are searched for an end, where they are unbounded
_MAX_STEPS = 10**9  # batches of an epoch, and epochs
_POINTS = 4000  # of the largest of all sums of a null record, where cells may end
_CELL_RATIO = 0.9  # of the probabilities above the ends of a cell
# bound: none - probability above the last end
_LEAST_TAIL = 1e-12
# bound: proved - relative error of the mass of a cell, a tenth of what lies above its left end: theorem 11.14 of
#    docs/proofs/sampled_tables.md
_CELL_ERROR = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ShuffledPair(DominatingPair):
    """One round of shuffled reports by a sum over numbers of reports; both directions are equal."""

    losses_are_finite = True

    sums: ShuffleSum | BlanketSum
    count: int

    @property
    def is_trivial(self) -> bool:
        """Whether reports are independent of the data."""
        return self.sums.local_epsilon == 0.0

    @property
    def curve_width(self) -> float:
        """Grids of many reports follow the width of sums over groups of clones."""
        return _GROUPED_WIDTH if self.sums.n >= _GROUPED else 0.0

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Logarithms, far below the smallest double."""
        return self.sums.log_delta(epsilon)

    def reversed(self) -> ShuffledPair:
        """The pair itself."""
        return self

    def largest_loss(self) -> Bounds:
        """The local epsilon, where no report is a clone."""
        return self.sums.local_epsilon, self.sums.local_epsilon

    def privacy_loss(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """Of clones by the outcomes themselves; else by curves on a coarser grid that refines to this one."""
        if isinstance(self.sums, ShuffleSum) and (self.sums.form == "clones" or self.sums.k == 2):
            return clone_loss(self.sums, interval, tail, dominating)
        points = np.geomspace(1.0, max(min(self.sums.local_epsilon, _FARTHEST) / interval, 2.0), _SEARCHED)
        within = np.asarray(self.curve(points * interval).upper) > tail
        times = 2 ** max(0, math.ceil(math.log2(float(points[within].max(initial=1.0)) / _COARSE_POINTS)))
        coarse = _coarse_loss(self.repeated(1), interval * times, tail, dominating)
        return on_another_grid(coarse, interval, dominating)


@dataclass(frozen=True, slots=True, eq=False)
class LargestOfPairs(DominatingPair):
    """Shuffled reports of two values: the largest curve of several data sets, which together have both orders.

    On a grid from below, where several releases are composed, it is the pair at ``fixed``.
    """

    losses_are_finite = True

    pairs: tuple[BoundingPairs, ...]
    fixed: int
    local_epsilon: float
    count: int

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        above = [entry.dominating[0].curve(epsilon) for entry in self.pairs]
        below = [pair.alternatives[0][0].curve(epsilon) for pair in self.pairs]
        sides = ("value", above), ("lower", below), ("upper", above)
        numbers = (np.max([getattr(item, name) for item in some], axis=0) for name, some in sides)
        return Estimate(*numbers, kind="certified", unit="probability",
                        method="sum over outcomes, the largest of all data sets")

    def reversed(self) -> LargestOfPairs:
        """The pair itself: the ones and the zeros exchanged."""
        return self

    def largest_loss(self) -> Bounds:
        """The local epsilon, where all other users hold the same value."""
        return self.local_epsilon, self.local_epsilon

    def privacy_loss(self, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
        """From above by the largest curve, from below by one data set."""
        if dominating:
            return discretised(self.curve, self.curve, interval, tail, dominating)
        pair = self.pairs[self.fixed].alternatives[0][0]
        return discretised(pair.curve, pair.reversed().curve, interval, tail, dominating)


class Shuffled(PairObject):
    """One round of n reports of a local randomiser, shuffled: nobody sees who sent which.

    Parameters
    ----------
    randomizer : float, channel, LaplaceMechanism or GaussianMechanism
        What every user applies to their own data: a number is the local epsilon alone, at least 0 and finite, of any
        randomiser; the local epsilon of a channel is the largest log ratio of its rows, that of a LaplaceMechanism its
        sensitivity over its scale. Noise is added to one number of each user in an interval as long as the sensitivity.
    n : int
        Reports that arrive, at most 1e9: those that the shuffler really mixes, not the users who were invited.
    adaptive : bool, default True
        Whether a user's randomiser may depend on the reports before. If False, the bounds are those of the randomiser
        itself, which a GaussianMechanism needs: it has no local epsilon.

    Raises
    ------
    DomainError
        For a randomiser of another kind or without a finite local epsilon, n out of range, or ``adaptive=False`` for
        another randomiser than RandomizedResponse.

    Notes
    -----
    Neighbours differ in the data of one user; both directions are equal, and rounds compose by ``compose``, each with
    an order of its own. Several reports of one user are one report here, of a randomiser with the sum of their local
    epsilons, if they stay together; if not, the guarantee is that of a group of users.

    For a number the bounds are those of the clone pair itself, which dominates every randomiser of this local epsilon,
    so that ``upper`` is a guarantee. For RandomizedResponse ``lower`` belongs to concrete data and ``upper`` is the
    clone pair or, if not adaptive, the blanket pair: over three or more values up to 1e6 reports these are within a few
    percent up to half of the local epsilon, and near it apart by a factor, up to five in the tests. Over two values up
    to 256 reports, not adaptive, one round is exact. Rounds of few reports are composed with bounds
    that are a few percent apart.

    Of other randomisers, not adaptive, ``upper`` is the sum over the privacy blanket rounded up on a lattice, within
    2 % of it where delta is above 1e-12 and within 0.2 % of its logarithm elsewhere (normal noise: less precise below
    1e-6), and ``lower`` belongs to data whose other users all hold one value: near epsilon = 0 they are up to a factor
    of two apart, at larger epsilon and many reports powers of ten. Channels of up to 16 values and unary encodings of
    any size have these bounds, larger channels those of the clone pair; ``lower`` is 0 beyond 16,384 reports. A report
    on a vector with noise is none of these.

    **Accuracy** 1e-10 relative up to 1e6 reports for one round, about 1e-4 for 1e9, also far below 1e-300;
    ``tests/enclosures/test_shuffled.py`` and, for blankets, ``test_blankets.py``. Milliseconds for 1e4
    reports, a second for 1e6 (over three or more values not adaptive: several), several for 1e9; normal noise a second
    or more for each epsilon.

    Source: Feldman, McMillan and Talwar 2021, theorem 3.1; Balle, Bell, Gascon and Nissim 2019, lemma 5.3.

    Examples
    --------
    >>> from fastpriv import LaplaceMechanism, RandomizedResponse, compose
    >>> from fastpriv.pairs import Shuffled
    >>> print(f"{compose(Shuffled(2.0, 10_000)).delta(0.125):.4e}")
    1.6028e-05 [1.6027e-05, 1.6028e-05]
    >>> print(f"{compose(Shuffled(RandomizedResponse(4, 2.0), 1000, adaptive=False)).delta(0.125).upper:.3e}")
    3.397e-03
    >>> noise = LaplaceMechanism(scale=1.0, sensitivity=1.0)
    >>> for adaptive in (True, False):
    ...     print(f"{compose(Shuffled(noise, 1000, adaptive)).delta(0.125).upper:.2e}")
    7.74e-05
    1.82e-06
    """

    __slots__ = _fields = ("randomizer", "n", "adaptive")

    randomizer: Any
    n: int
    adaptive: bool

    def __init__(self, randomizer: Any, n: int, adaptive: bool = True) -> None:
        if not isinstance(randomizer, (AnyChannel, LaplaceMechanism, GaussianMechanism)):
            randomizer = validate.scalar(
                "randomizer", randomizer, "a local epsilon, at least 0 and finite, or a randomiser",
                lambda x: (x >= 0) & (x < np.inf), remedy="Pass RandomizedResponse(k, epsilon), or the epsilon alone.",
            )
        n = validate.count("n", n, 1, _MOST_REPORTS)
        if not validate.flag("adaptive", adaptive) and isinstance(randomizer, float):
            raise DomainError(
                f"adaptive must be True where nothing but a local epsilon is known; got {adaptive!r} with "
                f"{randomizer!r}. Leave it out, or pass the randomiser itself."
            )
        self._set(randomizer=randomizer, n=n, adaptive=bool(adaptive))
        if isinstance(randomizer, GaussianMechanism):
            normal_noise(randomizer, "randomizer.")
        if not self.local_epsilon < math.inf and (adaptive or not isinstance(randomizer, GaussianMechanism)):
            raise DomainError(
                f"randomizer must have a finite local epsilon, or be a GaussianMechanism with adaptive=False; got "
                f"{validate.shown(randomizer)}. Pass a randomiser whose releases are all possible for every value, "
                "such as RandomizedResponse(k, epsilon)."
            )

    @property
    def local_epsilon(self) -> float:
        """Local epsilon of one report in nats, from above.

        Examples
        --------
        >>> from fastpriv import RandomizedResponse
        >>> from fastpriv.pairs import Shuffled
        >>> Shuffled(RandomizedResponse(4, 2.0), 1000).local_epsilon
        2.0
        """
        item = self.randomizer
        if isinstance(item, float):
            return item
        if isinstance(item, RandomizedResponse):
            return item.epsilon if item.k > 1 else 0.0
        if isinstance(item, LaplaceMechanism):
            return item._loss_bounds()[1]
        if isinstance(item, GaussianMechanism):
            return math.inf
        return float(ldp_epsilon(None, item).upper + 4 * item.mass_gap)  # rows as passed, and divided by their sums

    def _bounding_pairs(self) -> BoundingPairs:
        item, local = self.randomizer, self.local_epsilon
        if local == 0.0 or isinstance(item, float):
            return BoundingPairs((ShuffledPair(ShuffleSum("clones", self.n, local), 1),))
        clones = ShuffledPair(ShuffleSum("clones", self.n, local), 1)
        if isinstance(item, RandomizedResponse):
            blanket = ShuffledPair(ShuffleSum("blanket", self.n, local, item.k), 1)
            if item.k == 2:
                below = self._of_two_values(local)
                exact = below and self.n <= _MOST_DATA_SETS and not self.adaptive
                return BoundingPairs(below[-1] if exact else (clones if self.adaptive else blanket,), below or ((),))
            if self.n > _MOST_COUNTED:
                return BoundingPairs((clones,), ((),))
            third = ShuffledPair(ShuffleSum("third_value", self.n, local, item.k), 1)
            return BoundingPairs((clones if self.adaptive else blanket,), ((third,),))
        fallback: DominatingPair = clones
        if isinstance(item, GaussianMechanism):
            sigma, span = normal_noise(item)
            fallback = MixturePair(GaussianMixture.single(span, sigma), GaussianMixture.single(0.0, sigma), 1)
            if span == 0.0:
                return BoundingPairs((fallback,))
        cuts = cells_of_reports(item)
        blanket = ShuffledPair(BlanketSum(self.n, local, cuts, fallback), 1)
        above = fallback if self.adaptive or not cuts else blanket
        return BoundingPairs((above,), self._of_scores(cuts[len(cuts) // 4]) if cuts else ((),))

    def _of_two_values(self, local: float) -> tuple[tuple[DominatingPair, ...], ...]:
        """The largest curve over the number of ones among the others, all of them or a few; none of many reports."""
        others = self.n - 1
        every = self.n <= _MOST_DATA_SETS
        if self.n > _MOST_OF_ONE_DATA_SET:
            return ()
        mixed = (others // 2, 3 * others // 4, others - 2, others - 1) if self.n <= _MOST_OF_MIXED_DATA else ()
        items = range(self.n) if every else (*mixed, others)
        pairs = tuple(_of_ones(j, others, local) for j in items)
        return tuple((LargestOfPairs(pairs, fixed, local, 1),)
                     for fixed in sorted({len(pairs) - 1, (len(pairs) // 2) if every else 0}))

    def _of_scores(self, cells: CellsOfReports) -> tuple[tuple[DominatingPair, ...], ...]:
        """Sums of scores of the reports, where all other users hold the same value; none of many reports."""
        if self.n > _MOST_SCORED:
            return ((),)
        largest = min(max(_MOST_OF_MIXED_DATA // self.n, 1), _LARGEST_SCORE)
        first, second, other = cells.scores(largest)
        masses = np.ones(1, dtype=np.longdouble)
        for bit in bin(self.n - 1)[2:]:
            masses = np.convolve(masses, masses)
            masses = np.convolve(masses, other) if bit == "1" else masses
        summed = 2 * (cells.blanket.size + cells.revealed.shape[1]) * UNIT_ROUNDOFF
        error = 4 * self.n * (largest + 2) * _CONVOLUTION_ERROR + 2 * self.n * (cells.error + summed)
        p, q = np.convolve(masses, first), np.convolve(masses, second)
        return bounding_atoms(p, q, np.ones(p.size, dtype=bool), error, error).alternatives


class ShuffledBatches(PairObject):
    """Normal noise on the sums of batches: every epoch shuffles all records and cuts them into batches of one size.

    Parameters
    ----------
    base : GaussianMechanism
        The noise of one step and the largest length of one contribution, its sensitivity.
    batches : int
        Batches of an epoch, at most 1e9.
    epochs : int, default 1
        Epochs, each with an order of its own, at most 1e9.
    relation : {"replace_one", "zero_out"}, default "replace_one"
        Whether a record is replaced by another, up to two sensitivities away, or becomes null, which contributes 0
        but keeps its place.

    Raises
    ------
    DomainError
        For another base, or parameters out of range.

    Notes
    -----
    The bounds are far apart, and nothing between them is proved: ``upper`` reveals the order, one Gaussian of the
    distance of two contributions (of one where the record becomes null) in each epoch; ``lower`` belongs to data whose
    other records all contribute the opposite: ``RandomAllocation`` at twice the sensitivity, or, where the record
    becomes null, the largest of all sums in cells. Shuffled batches are neither Poisson samples nor balls in bins, and
    numbers of those are no guarantee here.

    **Accuracy** ``tests/enclosures/test_shuffled.py``.

    Source: Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024 (lower bounds).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, compose
    >>> from fastpriv.pairs import ShuffledBatches
    >>> training = compose(ShuffledBatches(GaussianMechanism(2.0, 1.0), batches=100))
    >>> print(f"{training.delta(0.5).lower:.2e} {training.delta(0.5).upper:.2e}")
    4.41e-05 2.38e-01
    """

    __slots__ = _fields = ("base", "batches", "epochs", "relation")

    base: GaussianMechanism
    batches: int
    epochs: int
    relation: str

    def __init__(
        self, base: GaussianMechanism, batches: int, epochs: int = 1,
        relation: Literal["replace_one", "zero_out"] = "replace_one",
    ) -> None:
        validate.instance("base", base, GaussianMechanism)
        normal_noise(base, "base.")
        self._set(base=base, batches=validate.count("batches", batches, 1, _MAX_STEPS),
                  epochs=validate.count("epochs", epochs, 1, _MAX_STEPS),
                  relation=validate.choice("relation", relation, ("replace_one", "zero_out")))

    def _bounding_pairs(self) -> BoundingPairs:
        sigma, span = normal_noise(self.base)
        distance = 2.0 * span if self.relation == "replace_one" else span
        p, q = GaussianMixture.single(distance, sigma), GaussianMixture.single(0.0, sigma)
        upper = (MixturePair(p, q, self.epochs),)
        if self.batches == 1 or span == 0.0:
            return BoundingPairs(upper)
        if self.relation == "zero_out":
            return BoundingPairs(upper, ((_largest_sum(span / sigma, self.batches, self.epochs),),))
        lower = AllocationPair(next_below(distance / sigma), self.batches, False, IMPROVED_DELTAS, self.epochs)
        return SymmetricBounds(upper, ((lower,), (lower.reversed(),)))


def shuffled_local_epsilon(epsilon: ArrayLike, delta: ArrayLike, n: int) -> Estimate:
    """The largest local epsilon of n shuffled reports that are together (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta : float
        The target of one round: epsilon at least 0 and finite, in nats; delta above 0 and below 1.
    n : int
        Reports that arrive, at most 1e9.

    Returns
    -------
    Estimate
        In nats. At ``lower`` the clone pair meets the target, for any randomisers; at ``upper`` it misses it.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    A larger local epsilon reveals more and has fewer clones: the curve of the clone pair rises with it.

    **Accuracy** both ends are proved by bounds of the curve; ``tests/enclosures/test_shuffled.py``.

    Examples
    --------
    >>> from fastpriv.pairs import shuffled_local_epsilon
    >>> print(f"{shuffled_local_epsilon(0.25, 1e-6, 10_000):.4f}")
    2.6307 [2.6306, 2.6307]
    """
    level, log_target = _target(epsilon, delta)
    n = validate.count("n", n, 1, _MOST_REPORTS)

    def logs(local: float) -> Bounds:
        return _clone_bounds(n, local, level)

    high = max(1.0, 2.0 * level)
    while sum(logs(high)) <= 2.0 * log_target:
        high *= 2.0
    low, high = bisect(lambda local: sum(logs(local)) > 2.0 * log_target, level, high, 60, rtol=_RTOL)
    value, gap = low, max(high - low, UNIT_ROUNDOFF * high)
    while low > level and logs(low)[1] > log_target:
        low, gap = max(level, low - gap), 2.0 * gap
    gap = max(high - value, UNIT_ROUNDOFF * high)
    while logs(high)[0] <= log_target:
        high, gap = high + gap, 2.0 * gap
    return Estimate(value, min(low, value), high, kind="certified", unit="nats", method="bisection between proofs")


def shuffled_least_reports(epsilon: ArrayLike, delta: ArrayLike, local_epsilon: ArrayLike) -> Estimate:
    """The least number of shuffled reports of a local epsilon that are together (epsilon, delta)-private.

    Parameters
    ----------
    epsilon, delta : float
        The target of one round: epsilon at least 0 and finite, in nats; delta above 0 and below 1.
    local_epsilon : float
        Local epsilon of any randomiser, at least 0 and finite, in nats.

    Returns
    -------
    Estimate
        Whole numbers. With ``upper`` reports, and with more, the clone pair meets the target; with one report fewer
        than ``lower`` it misses it.

    Raises
    ------
    DomainError
        For numbers out of range, or where 1e9 reports are too few.

    Notes
    -----
    One more clone is a post-processing: the curve of the clone pair falls with the number of reports.

    **Accuracy** both ends are proved by bounds of the curve; ``tests/enclosures/test_shuffled.py``.

    Examples
    --------
    >>> from fastpriv.pairs import shuffled_least_reports
    >>> shuffled_least_reports(0.25, 1e-6, 2.0).value
    4120.0
    """
    level, log_target = _target(epsilon, delta)
    local = validate.scalar("local_epsilon", local_epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    ends = []
    for side in (1, 0):
        low, high = 0, 1  # no reports miss every target

        def meets(n: int, side: int = side) -> bool:
            return _clone_bounds(n, local, level)[side] <= log_target

        while not meets(high):
            if high == _MOST_REPORTS:
                raise DomainError(
                    f"delta must be within the reach of {_MOST_REPORTS} reports; got {float(np.asarray(delta))!r} at "
                    f"epsilon {level!r} and local_epsilon {local!r}. Pass a larger one, or a smaller local_epsilon."
                )
            low, high = high, min(8 * high, _MOST_REPORTS)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if meets(middle) else (middle, high)
        ends.append(high)
    return Estimate(ends[0], ends[1], ends[0], kind="certified", unit="1", method="bisection between proofs")


def _target(epsilon: Any, delta: Any) -> tuple[float, float]:
    level = validate.scalar("epsilon", epsilon, "at least 0 and finite", lambda x: (x >= 0) & (x < np.inf))
    target = validate.scalar("delta", delta, "above 0 and below 1", lambda x: (x > 0) & (x < 1))
    return level, math.log(target)


def _clone_bounds(n: int, local: float, level: float) -> Bounds:
    """Bounds of log delta of the clone pair, and of the rounding of the logarithm of a target."""
    bounds = ShuffleSum("clones", n, local).log_delta(np.array([level]))
    low, high = float(bounds.lower[0]), float(bounds.upper[0])
    return low * (1 + 4 * UNIT_ROUNDOFF), high * (1 - 4 * UNIT_ROUNDOFF)


@lru_cache(maxsize=32)
def _coarse_loss(pair: ShuffledPair, interval: float, tail: float, dominating: bool) -> PrivacyLoss:
    """By curves; searches for an interval ask for the same one again and again."""
    return discretised(pair.curve, pair.curve, interval, tail, dominating)


def _of_ones(ones: int, others: int, local: float) -> BoundingPairs:
    """Reported ones of two values: ``ones`` of the other users hold the value 1, the rest 0, and one user 1 or 0."""
    e = np.exp(-np.longdouble(local))
    lie, truth = e / (1 + e), 1 / (1 + e)
    counts, error = np.ones(1, dtype=np.longdouble), 0.0
    for number, p, remainder in ((ones, truth, lie), (others - ones, lie, truth)):
        if number:
            logs, errors = binomial_log_probabilities(np.arange(number + 1), number, p, remainder)
            with np.errstate(under="ignore"):
                counts = np.convolve(counts, np.exp(logs))
            error += float(errors.max()) + (number + 8) * _CONVOLUTION_ERROR
    before, after = np.append(counts, 0), np.append(np.longdouble(0), counts)
    p, q = truth * after + lie * before, lie * after + truth * before
    return bounding_atoms(p, q, np.ones(p.size, dtype=bool), error, error)


def _largest_sum(scale: float, batches: int, epochs: int) -> DiscretePair:
    """Cells of the largest of all sums: the record contributes 2 s or s to one of them, the others are noise."""
    points = np.linspace(-9.0, 9.0 + 2.0 * scale, _POINTS)
    others = (batches - 1) * special.log_ndtr(points)
    above = [-np.expm1(special.log_ndtr(points - shift) + others) for shift in (2.0 * scale, scale)]
    selected, last = [], (1.0, 1.0)
    for i, ends in enumerate(zip(*(row.tolist() for row in above), strict=True)):
        if all(_LEAST_TAIL < end <= _CELL_RATIO * before for end, before in zip(ends, last, strict=True)):
            selected.append(i)
            last = ends
    p, q = (-np.diff(np.concatenate([[1.0], row[selected], [0.0]])) for row in above)
    return DiscretePair(p, q, epochs, _CELL_ERROR, _CELL_ERROR)
