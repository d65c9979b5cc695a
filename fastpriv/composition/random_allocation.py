"""Records that take part in one random step of many: random allocation, and balls in bins over several epochs.

Notation: t steps with normal noise of standard deviation sigma on a sum to which a record contributes at most the
sensitivity s; a = s / sigma. A record takes part in one step of the t, chosen uniformly. In units of sigma,

    P = average over i = 1..t of N(a e_i, I_t),        Q = N(0, I_t)

dominates the removal of the record, and Q, P its addition (docs/proofs/sampled_tables.md, theorem 11.4). Under Q the
likelihood ratio R = dP/dQ is the average of t independent log-normal variables with mean 1 and log standard deviation
a, so that with the bounds of ``log_normal_sums``

    delta_remove = E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+.

Neither exceeds the delta of the Gaussian mechanism with the same noise, by the joint convexity of delta. Neither is
below that with sqrt(t) times the noise: given the mean of all coordinates, R is on average the likelihood ratio of that
mean. Up to four steps have the curve of ``few_bins``.

Balls in bins. A record is put in one of t bins once, and takes part in the step of its bin in each of k epochs: the
means are orthogonal and of length a sqrt(k). It is the allocation with the sensitivity s sqrt(k).

Source: Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024 (balls and bins; the pair
dominates); Feldman and Shenfeld 2025 (random allocation); Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2025
(bins over epochs).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import FloatArray
from ..channels import AnyChannel
from ..distributions import GaussianMixture, Pmf
from ..mechanisms.gaussian import GaussianMechanism
from ..pairs.allocations import IMPROVED_DELTAS, AllocationOfPair, AllocationPair, listed_allocation
from ..pairs.curve_pairs import PairObject, PrivacyCurves
from ..pairs.discrete_pairs import DiscretePair
from ..pairs.few_bins import MAX_FEW_BINS, FewBinsPair, few_bins_pair
from ..pairs.mixture_pairs import MixturePair
from ..pairs.protocol import BoundingPairs, DominatingPair
from ..pairs.readers import read_pair
from .compositions import Composition, compose

Direction = Literal["forward", "backward", "worst"]

_MAX_STEPS = 10**9  # of an epoch, and epochs: sums are doubled, 30 times for these
# bound: proved - relative roundings of means, of their squares, and of weights that are sums of up to 4096 terms
ALLOWANCE = 1e-11
_MOST_MEANS = 32  # of the mixture of a sum
# bound: none - nats around a delta whose epsilon is asked for
_AROUND = 1.0
_NOTHING: tuple[DominatingPair, ...] = (DiscretePair(np.ones(1), np.ones(1), 1),)  # what every pair dominates


class StructuredSampling(PairObject):
    """Base of mechanisms whose records take part in steps by one random choice; ``compose`` takes them as pairs."""

    __slots__ = ()

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        """The pairs of the removal of a record, with narrow bounds for deltas between two numbers."""
        raise NotImplementedError

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self._fields)
        shown = (f"{name}={x.tolist() if isinstance(x, np.ndarray) else x!r}" for name, x in fields)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _composed(self) -> Any:
        return compose(self)

    def _privacy_curves(self) -> PrivacyCurves:
        curves: PrivacyCurves = self._composed()._privacy_curves()
        return curves

    @monotone(falling="epsilon")
    def delta(self, epsilon: NumberLike, *, direction: Direction = "worst") -> Estimate:
        """Smallest delta for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        epsilon : array_like or Estimate
            Any real numbers, in nats; any shape.
        direction : {"forward", "backward", "worst"}, default "worst"
            The removal of a record, its addition, or the larger of both.

        Returns
        -------
        Estimate
            Probabilities of the shape of ``epsilon``, with certified bounds.

        Raises
        ------
        DomainError
            For NaN, or another direction.

        Notes
        -----
        **Accuracy** ``tests/enclosures/test_structured_sampling.py``.

        Examples
        --------
        >>> from fastpriv.composition import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=100).delta(0.5):.2e}")
        4.41e-05 [4.40e-05, 4.42e-05]
        """
        result: Estimate = self._composed().delta(epsilon, direction=direction)
        return result

    @monotone(falling="epsilon")
    def log_delta(self, epsilon: NumberLike, *, direction: Direction = "worst") -> Estimate:
        """Natural logarithm of ``delta(epsilon)``; arguments and errors as there.

        Notes
        -----
        **Accuracy** as ``delta``.

        Examples
        --------
        >>> from fastpriv.composition import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=100).log_delta(0.5).value:.2f}")
        -10.03
        """
        result: Estimate = self._composed().log_delta(epsilon, direction=direction)
        return result

    @monotone(falling="delta log_delta")
    def epsilon(
        self, delta: NumberLike | None = None, *, log_delta: NumberLike | None = None, direction: Direction = "worst"
    ) -> Estimate:
        """Smallest epsilon >= 0 for which the mechanism is (epsilon, delta)-private.

        Parameters
        ----------
        delta : array_like or Estimate
            Between 0 and 1, any shape.
        log_delta : array_like or Estimate, optional
            Its natural logarithm instead, at most 0.
        direction : {"forward", "backward", "worst"}, default "worst"
            As in ``delta``.

        Returns
        -------
        Estimate
            In nats, with certified bounds.

        Raises
        ------
        DomainError
            For numbers out of range, both or neither of delta and log_delta, or another direction.

        Notes
        -----
        **Accuracy** ``tests/enclosures/test_structured_sampling.py``.

        Examples
        --------
        >>> from fastpriv.composition import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=100).epsilon(1e-6).value:.3f}")
        0.858
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            pairs = self._bounding_pairs(_deltas_near(delta, log_delta))
        item = Composition(pairs, pairs.reversed(), 1, False)
        result: Estimate = item.epsilon(delta, log_delta=log_delta, direction=direction)
        return result


class RandomAllocation(StructuredSampling):
    """Normal noise in each of ``steps`` steps; in every epoch a record takes part in one of them, chosen at random.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of a step, positive and finite; the noise multiplier where ``sensitivity`` is 1.
    steps : int
        Steps of an epoch, at most 1e9.
    sensitivity : float, default 1
        Largest length of the contribution of a record, in the unit of sigma, at least 0 and finite.
    epochs : int, default 1
        Epochs, each with a choice of its own for every record.

    Raises
    ------
    DomainError
        For parameters out of range.

    Notes
    -----
    Neighbours differ by a record that is added or removed. Choices of different records are independent of one another
    and secret; later steps may depend on the outputs of earlier ones.

    One epoch is the law of a sum of ``steps`` log-normal variables, between two laws with atoms; the cost grows like
    the logarithm of their number. Up to four steps have bounds that are about 1e-10 apart or closer. ``epsilon`` of one
    epoch looks closer at deltas near the one that is asked for, and is faster than that of ``compose``. Epochs are
    composed.

    **Accuracy** ``tests/enclosures/test_structured_sampling.py``.

    Source: Chua et al. 2024; Feldman and Shenfeld 2025.

    Examples
    --------
    >>> from fastpriv.composition import RandomAllocation
    >>> print(f"{RandomAllocation(sigma=1.0, steps=100).epsilon(1e-6).value:.3f}")
    0.858
    """

    __slots__ = _fields = ("sigma", "steps", "sensitivity", "epochs")

    sigma: float
    steps: int
    sensitivity: float
    epochs: int

    def __init__(self, sigma: ArrayLike, steps: int, sensitivity: ArrayLike = 1.0, epochs: int = 1) -> None:
        self._set(**_checked(sigma, "steps", steps, sensitivity, epochs))

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        return _allocation(self.sensitivity, self.sigma, self.steps, deltas, composed=self.epochs)


class Allocation(StructuredSampling):
    """Any mechanism, in each of ``steps`` steps; a record takes part in ``times`` of them, chosen at random.

    Parameters
    ----------
    base : mechanism, or tuple (p, q)
        The mechanism of a step, or the laws of a step in which the record takes part and of any other: a
        ``GaussianMechanism`` with a sensitivity, a ``LaplaceMechanism``, a ``PoissonSampledGaussian``, two discrete
        distributions, two ``GaussianMixture`` on the line, or a ``Composition`` of what is released in a step.
    steps : int
        Steps of an epoch, at most 1e9.
    times : int, default 1
        Steps in which the record takes part, at most ``steps``.

    Raises
    ------
    DomainError
        For numbers out of range, and a base that is no pair, several pairs, or in no order of presence and absence.

    Notes
    -----
    Neighbours differ by a record that is added or removed, and the distance is that of the base: one contribution.
    One of ``steps`` is exact up to the bounds of laws of sums, for discrete laws with few values to about 12 digits.
    ``times`` > 1 is bounded from above by as many allocations to one of ``steps // times`` steps; from below the mean
    of all steps and one step alone are looked at where the noise is normal, else nothing. ``compose`` takes epochs.

    **Accuracy** ``tests/enclosures/test_allocations.py``.

    Source: Feldman and Shenfeld 2025 (the pair, and ``times`` > 1).

    Examples
    --------
    >>> from fastpriv import LaplaceMechanism
    >>> from fastpriv.pairs import Allocation
    >>> print(f"{Allocation(LaplaceMechanism(scale=1.0), steps=10).delta(0.25):.3f}")
    0.044 [0.044, 0.045]
    """

    __slots__ = _fields = ("base", "steps", "times")

    base: Any
    steps: int
    times: int

    def __init__(self, base: Any, steps: int, times: int = 1) -> None:
        number = validate.count("steps", steps, 1, _MAX_STEPS)
        if isinstance(base, tuple) and len(base) == 2:
            base = tuple(Pmf(np.arange(len(x)), x) if isinstance(x, (list, np.ndarray)) else x for x in base)
        self._set(base=base, steps=number, times=validate.count("times", times, 1, number))
        self._bounding_pairs()  # raises

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        base, steps = self.base, self.steps // self.times
        if isinstance(base, GaussianMechanism) and base.sensitivity is not None:
            sigma, span = validate.scalar("sigma", base.sigma), validate.scalar("sensitivity", base.sensitivity)
            pairs = _allocation(span, sigma, steps, deltas, composed=self.times)
            return pairs if self.times == 1 else BoundingPairs(pairs.dominating, self._normal_lower(sigma, span))
        if isinstance(base, Composition):  # several mechanisms in each step
            curves = base._privacy_curves()
            base = (curves.forward, curves.backward)
        read = read_pair("base", base)
        both = (*read.forward.dominated, read.forward.dominating)
        assert len(both[0]) == len(both[-1]) == 1, "one object has one pair"
        if isinstance(base, AnyChannel) and read.forward != read.backward:
            raise DomainError(
                f"base must say which of its laws is that of a step with the record; got {validate.shown(base)}. Pass "
                "a tuple (p, q), p with the record."
            )
        if steps == 1:
            pairs = read.forward
            largest = tuple(pair.repeated(self.times) for pair in pairs.dominating)
            smallest = tuple(tuple(pair.repeated(self.times) for pair in row) for row in pairs.dominated)
            return BoundingPairs(largest, smallest if self.steps == self.times else (_NOTHING,))
        if not read.forward.dominated:
            listed = listed_allocation(read.forward.dominating[0], steps)
            if listed is not None:
                return BoundingPairs((listed.repeated(self.times),), () if self.times == 1 else (_NOTHING,))
        pair = AllocationOfPair(both[-1][0], both[0][0], steps, False, deltas, self.times)
        return BoundingPairs((pair,), () if self.times == 1 else (_NOTHING,))

    def _normal_lower(self, sigma: float, span: float) -> tuple[tuple[DominatingPair, ...], ...]:
        """The mean of all steps; one step, which is sampled."""
        t, k, ratio = self.steps, self.times, span / sigma
        mean, once = ([k * ratio / math.sqrt(t)], [1.0]), ([0.0, ratio], [1.0 - k / t, k / t])
        return tuple((mixture_of_sum(np.array(means), np.array(weights)),) for means, weights in (mean, once))


class BallsInBins(StructuredSampling):
    """Every record is put in one of ``bins`` bins once, and takes part in the step of its bin in each epoch.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise of a step, positive and finite; the noise multiplier where ``sensitivity`` is 1.
    bins : int
        Bins, and steps of an epoch, at most 1e9.
    sensitivity : float, default 1
        Largest length of the contribution of a record to a step, in the unit of sigma, at least 0 and finite.
    epochs : int, default 1
        Epochs, which go through the bins in the same order.

    Raises
    ------
    DomainError
        For parameters out of range.

    Notes
    -----
    Neighbours differ by a record that is added or removed; noise is independent in all steps. With correlated noise see
    ``BandedMatrixMechanism``. The contributions of a record in several epochs are worst when equal: the pair is that
    of ``RandomAllocation`` with the sensitivity times the root of the number of epochs.

    **Accuracy** ``tests/enclosures/test_structured_sampling.py``.

    Source: Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2025.

    Examples
    --------
    >>> from fastpriv.composition import BallsInBins
    >>> print(f"{BallsInBins(sigma=2.0, bins=100, epochs=4).delta(0.5):.2e}")
    4.41e-05 [4.40e-05, 4.42e-05]
    """

    __slots__ = _fields = ("sigma", "bins", "sensitivity", "epochs")

    sigma: float
    bins: int
    sensitivity: float
    epochs: int

    def __init__(self, sigma: ArrayLike, bins: int, sensitivity: ArrayLike = 1.0, epochs: int = 1) -> None:
        self._set(**_checked(sigma, "bins", bins, sensitivity, epochs))

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        return _allocation(self.sensitivity, self.sigma, self.bins, deltas, added=self.epochs)


def noise_and_sensitivity(sigma: Any, sensitivity: Any) -> tuple[float, float]:
    """Validate the standard deviation of noise and the length of a contribution."""
    noise = validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    at_least_0 = "at least 0 and finite"
    return noise, validate.scalar("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))


def mixture_of_sum(means: FloatArray, weights: FloatArray) -> MixturePair:
    """A mixture of normal distributions with means >= 0 against N(0, 1), with means that are moved down to a few."""
    means, weights = means[weights > 0.0] * (1.0 - ALLOWANCE), weights[weights > 0.0]
    levels = np.unique(np.quantile(means, np.linspace(0.0, 1.0, _MOST_MEANS), method="lower"))
    positions = np.searchsorted(levels, means, side="right") - 1
    total = np.bincount(positions, weights=weights, minlength=levels.size)
    selected = total > 0.0
    p = GaussianMixture(total[selected] / total.sum(), levels[selected], 1.0)
    return MixturePair(p, GaussianMixture.single(0.0, 1.0), 1, ALLOWANCE)


def _deltas_near(delta: Any, log_delta: Any) -> tuple[float, float]:
    """Numbers on both sides of what is asked for; those of all curves where that is not one row of numbers."""
    try:
        values = np.asarray(log_delta if delta is None else delta)
        if values.dtype.kind == "c":
            return IMPROVED_DELTAS
        logs = values.astype(np.float64) if delta is None else np.log(values.astype(np.float64))
        low, high = float(np.min(logs)), float(np.max(logs))
    except (OverflowError, TypeError, ValueError):
        return IMPROVED_DELTAS
    if not -math.inf < low <= high <= 0.0:
        return IMPROVED_DELTAS
    return max(math.exp(low - _AROUND), IMPROVED_DELTAS[0]), math.exp(min(high + _AROUND, 0.0))


def _allocation(
    sensitivity: float, sigma: float, steps: int, deltas: tuple[float, float], *, added: int = 1, composed: int = 1
) -> BoundingPairs:
    """One choice for ``added`` epochs, whose contributions add up, and as many choices as ``composed`` says."""
    near = deltas if composed == 1 else IMPROVED_DELTAS
    pair: AllocationPair | FewBinsPair
    pair = allocation = AllocationPair(sensitivity * math.sqrt(added) / sigma, steps, False, near, composed)
    if steps <= MAX_FEW_BINS:
        square = added * (Fraction(sensitivity) / Fraction(sigma)) ** 2
        covariances = (square, *(Fraction(0),) * (steps - 1))
        pair = few_bins_pair(covariances, allocation, allocation) or allocation
    return BoundingPairs((pair,))


def _checked(sigma: Any, name: str, steps: Any, sensitivity: Any, epochs: Any) -> dict[str, Any]:
    """The arguments of both constructors."""
    noise, span = noise_and_sensitivity(sigma, sensitivity)
    number = validate.count(name, steps, 1, _MAX_STEPS)
    return {"sigma": noise, name: number, "sensitivity": span,
            "epochs": validate.count("epochs", epochs, 1, _MAX_STEPS)}
