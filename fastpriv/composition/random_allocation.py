"""Records that take part in one random step of many: random allocation, and balls in bins over several epochs.

Notation: t steps with normal noise of standard deviation sigma on a sum to which a record contributes at most the
sensitivity s; a = s / sigma. A record takes part in one step of the t, chosen uniformly. In units of sigma,

    P = average over i = 1..t of N(a e_i, I_t),        Q = N(0, I_t)

dominates the removal of the record, and Q, P its addition. Under Q the likelihood ratio R = dP/dQ is the average of t
independent log-normal variables with mean 1 and log standard deviation a, so that with the bounds of
``log_normal_sums``

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

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray, next_above
from ..base.values import ValueObject
from .compositions import Composition, compose
from .few_bins import MAX_FEW_BINS, few_bins_curves
from .log_normal_sums import SumBounds, log_normal_sum, log_normal_sum_near
from .pairs import Curve, Pair
from .steps import BoundingSteps, CurveStep, SteppedPair

__all__ = [
    "IMPROVED_DELTAS", "AllocationCurve", "BallsInBins", "RandomAllocation", "StructuredSampling", "allocation_curves",
]  # fmt: skip

Direction = Literal["forward", "backward", "worst"]

_MAX_STEPS = 10**9  # of an epoch: sums are doubled, 30 times for these
_DEPTHS = 45.0, 150.0, 660.0  # of laws, in nats; each serves values down to a share of the depth
_DEPTH_SHARE = 0.75  # of the depth of a law down to which it is used
_CELLS = 600, 1200, 2400, 4800  # of laws near a level, the next where the bounds are not close enough
# bound: proved - the least upper bound that is claimed: sums of subnormal numbers lose their relative accuracy
_LEAST_KNOWN = 1e-300
_WORTHWHILE = 0.7  # the width that more cells leave, where still more follow: roundings grow with cells
_BREAK = 2.0  # nats of delta between two breaks
_FEW_LEVELS = 8  # that are evaluated by laws near them; of a whole curve one law serves all
# bound: none - relative width of a composition that the grid may add to that of the law: its intervals follow
_OWN_WIDTH = 3e-5
_MOST_BREAKS = 25  # near which that law is good
# bound: none - of what is evaluated by laws near a level: smaller deltas have wider and wider bounds
_LEAST_IMPROVED = 1e-250
IMPROVED_DELTAS = (_LEAST_IMPROVED, 1.0)  # of curves of which nothing else is known
# bound: none - a below which the atoms of a law are not told apart: the two Gaussian mechanisms at the head remain
_LEAST_SCALE = 1e-10
_LARGEST_SCALE = 25.0  # beyond it, where sigma is less than 0.04 sensitivities, other steps are left out of account
# bound: none - width of epsilon, from that of delta and its slope, that is not improved
_ACCEPTED_EPSILON = 2e-4
# bound: none - least and largest relative widths of delta that are not improved
_ACCEPTED_WIDTHS = 1e-4, 2e-3
# bound: none - nats around a delta whose epsilon is asked for
_AROUND = 1.0
_LARGEST_EPSILON = 680.0  # beyond it the bounds are those at it, and 0: steps e^epsilon would overflow
# bound: tested by kernels/test_gaussian_mechanism - relative error of gaussian_delta
_GAUSSIAN_ERROR = 4e-15


class AllocationCurve(ValueObject):
    """The certified curve of one epoch: ``scale`` is a, ``steps`` is t; ``adds`` tells addition from removal.

    Bounds of deltas between the two numbers ``deltas`` are evaluated again: by laws that are close near them, or, where
    levels are many, by one law that is close everywhere.
    """

    __slots__ = _fields = ("scale", "steps", "adds", "deltas")

    own_width = _OWN_WIDTH
    scale: float
    steps: int
    adds: bool
    deltas: tuple[float, float]

    def __init__(self, scale: float, steps: int, adds: bool, deltas: tuple[float, float]) -> None:
        self._set(scale=scale, steps=steps, adds=adds, deltas=deltas)

    def __call__(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        inside = np.minimum(levels, _LARGEST_EPSILON)
        most = self._of_one_step(inside, 1.0) if self.scale > 0.0 else np.zeros(levels.size)
        rows = np.stack([most, np.zeros(levels.size), most])
        if self.steps == 1 and self.scale > 0.0:
            rows[1] = self._of_one_step(inside, -1.0)
        elif self.scale > _LARGEST_SCALE:
            if not self.adds:  # R is at least one of its t terms
                rows[1] = self._of_one_step(next_above(inside + next_above(math.log(self.steps))), -1.0)
        elif 0.0 < self.scale < _LEAST_SCALE:
            rows[1] = self._of_one_step(inside, -1.0, math.sqrt(self.steps))
        elif self.scale > 0.0:
            self._improve(inside, rows, np.flatnonzero(levels == inside))
        rows[1, (levels > inside) | (rows[1] < _LEAST_KNOWN)] = 0.0
        rows[2] = np.clip(rows[2], _LEAST_KNOWN if self.scale > 0.0 else 0.0, 1.0)
        rows[1] = np.minimum(rows[1], rows[2])
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(
            value, lower, upper, kind="certified", unit="probability", method="law of a sum of log-normal variables"
        )

    def _improve(self, epsilon: FloatArray, rows: FloatArray, at: IndexArray) -> None:
        """Narrow some rows of values, lower and upper bounds by the laws of sums, as deep as the values ask for."""
        depths = _DEPTHS if epsilon.size <= _FEW_LEVELS else _DEPTHS[:-1]
        for depth in depths:
            least = math.exp(-_DEPTH_SHARE * depth) if depth < depths[-1] else 0.0
            if self.deltas[1] < least or not at.size:
                continue
            self._narrow(rows, at, epsilon, log_normal_sum(self.scale, self.steps, depth))
            values, lower, upper = rows[:, at]
            within = (upper > max(self.deltas[0], _LEAST_IMPROVED)) & (lower < self.deltas[1])
            deep = within & (values < least) & (self.deltas[0] < least)
            if epsilon.size <= _FEW_LEVELS:
                self._improve_near(rows, at[within & ~deep], epsilon, depth)
            elif (within & ~deep).any():
                self._narrow(rows, at[within & ~deep], epsilon, _everywhere(self.scale, self.steps, depth))
            at = at[deep]

    def _improve_near(self, rows: FloatArray, at: IndexArray, epsilon: FloatArray, depth: float) -> None:
        """Narrow some rows by laws whose cells are chosen for their levels."""
        if not at.size:
            return
        breaks = _breaks(self.scale, self.steps, depth, self.adds)
        part = np.clip(np.searchsorted(breaks, self._levels(epsilon[at])) - 1, 0, breaks.size - 2)
        accepted = np.clip(_ACCEPTED_EPSILON * _BREAK / np.log(breaks[part + 1] / breaks[part]), *_ACCEPTED_WIDTHS)
        for one in np.unique(part):
            inside = part == one
            cells, before = _CELLS[0], math.inf
            while True:
                law = log_normal_sum_near(self.scale, self.steps, depth, cells, tuple(breaks[one : one + 2].tolist()))
                self._narrow(rows, at[inside], epsilon, law)
                _, lower, upper = rows[:, at[inside]]
                excess = float(((upper - lower) / (accepted[inside] * upper)).max())
                if excess <= 1.0 or excess > _WORTHWHILE * before or cells == _CELLS[-1]:
                    break
                before = excess
                cells = next((n for n in _CELLS if n >= cells * math.sqrt(excess)), _CELLS[-1])

    def _levels(self, epsilon: FloatArray) -> FloatArray:
        """x of the sum of all log-normal variables."""
        return np.asarray(self.steps * np.exp(-epsilon if self.adds else epsilon))

    def _narrow(self, rows: FloatArray, at: IndexArray, epsilon: FloatArray, law: SumBounds) -> None:
        """Replace some rows by what a law tells, within the bounds that are known."""
        x = self._levels(epsilon[at])
        value, lower, upper = law.excesses(x, self.adds) / (x if self.adds else self.steps)
        lower = np.maximum(rows[1, at], lower * (1.0 - 8 * UNIT_ROUNDOFF))
        upper = np.minimum(rows[2, at], upper * (1.0 + 8 * UNIT_ROUNDOFF))
        rows[:, at] = np.clip(value, lower, upper), lower, upper

    def _of_one_step(self, epsilon: FloatArray, side: float, noise: float = 1.0) -> FloatArray:
        """A bound of delta of the Gaussian mechanism with ``noise`` times the noise, from above (1) or below (-1)."""
        half = 0.5 * self.scale / noise * (1.0 + side * 4 * UNIT_ROUNDOFF)
        return np.asarray(special.gaussian_delta(half, epsilon) * (1.0 + side * _GAUSSIAN_ERROR))


@lru_cache(maxsize=16)
def _breaks(scale: float, steps: int, depth: float, adds: bool) -> FloatArray:
    """Rising x at which delta is about 1, e^-_BREAK, ... to the depth."""
    logs = -np.arange(0.0, depth + _BREAK, _BREAK)
    return np.unique(log_normal_sum(scale, steps, depth).levels(logs, adds))


def _everywhere(scale: float, steps: int, depth: float) -> SumBounds:
    """A law that is good at all breaks of both directions."""
    breaks = np.unique(np.concatenate([_breaks(scale, steps, depth, adds) for adds in (False, True)]))
    chosen = breaks[np.linspace(0, breaks.size - 1, _MOST_BREAKS).astype(np.int64)]
    return log_normal_sum_near(scale, steps, depth, _CELLS[-1], tuple(chosen.tolist()))


class StructuredSampling(SteppedPair):
    """Base of mechanisms whose records take part in steps by one random choice; ``compose`` takes them as pairs."""

    __slots__ = ()

    def _steps(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingSteps:
        """The steps of the removal of a record, with narrow bounds for deltas between two numbers."""
        raise NotImplementedError

    def __repr__(self) -> str:
        fields = ((name, getattr(self, name)) for name in self._fields)
        shown = (f"{name}={x.tolist() if isinstance(x, np.ndarray) else x!r}" for name, x in fields)
        return f"{type(self).__name__}({', '.join(shown)})"

    def _composed(self) -> Any:
        return compose(self)

    def _as_pair(self) -> Pair:
        pair: Pair = self._composed()._as_pair()
        return pair

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
        >>> from fastpriv import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=100).delta(0.5):.2e}")
        4.41e-05 [4.40e-05, 4.42e-05]
        """
        found: Estimate = self._composed().delta(epsilon, direction=direction)
        return found

    @monotone(falling="epsilon")
    def log_delta(self, epsilon: NumberLike, *, direction: Direction = "worst") -> Estimate:
        """Natural logarithm of ``delta(epsilon)``; arguments and errors as there.

        Notes
        -----
        **Accuracy** as ``delta``.

        Examples
        --------
        >>> from fastpriv import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=100).log_delta(0.5).value:.2f}")
        -10.03
        """
        found: Estimate = self._composed().log_delta(epsilon, direction=direction)
        return found

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
        >>> from fastpriv import RandomAllocation
        >>> print(f"{RandomAllocation(sigma=1.0, steps=1000).epsilon(1e-6).value:.3f}")
        0.172
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = self._steps(_deltas_near(delta, log_delta))
        one = Composition(steps, steps.reversed(), 1, False)
        found: Estimate = one.epsilon(delta, log_delta=log_delta, direction=direction)
        return found


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
    >>> from fastpriv import RandomAllocation
    >>> print(f"{RandomAllocation(sigma=1.0, steps=1000).epsilon(1e-6).value:.3f}")
    0.172
    """

    __slots__ = _fields = ("sigma", "steps", "sensitivity", "epochs")

    sigma: float
    steps: int
    sensitivity: float
    epochs: int

    def __init__(self, sigma: ArrayLike, steps: int, sensitivity: ArrayLike = 1.0, epochs: int = 1) -> None:
        self._set(**_checked(sigma, "steps", steps, sensitivity, epochs))

    def _steps(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingSteps:
        return _allocation(self.sensitivity, self.sigma, self.steps, deltas, composed=self.epochs)


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
    >>> from fastpriv import BallsInBins
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

    def _steps(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingSteps:
        return _allocation(self.sensitivity, self.sigma, self.bins, deltas, added=self.epochs)


def _deltas_near(delta: Any, log_delta: Any) -> tuple[float, float]:
    """Numbers on both sides of what is asked for; those of all curves where that is not one row of numbers."""
    try:
        given = np.asarray(log_delta if delta is None else delta)
        if given.dtype.kind == "c":
            return IMPROVED_DELTAS
        logs = given.astype(np.float64) if delta is None else np.log(given.astype(np.float64))
        low, high = float(np.min(logs)), float(np.max(logs))
    except (OverflowError, TypeError, ValueError):
        return IMPROVED_DELTAS
    if not -math.inf < low <= high <= 0.0:
        return IMPROVED_DELTAS
    return max(math.exp(low - _AROUND), _LEAST_IMPROVED), math.exp(min(high + _AROUND, 0.0))


def _allocation(
    sensitivity: float, sigma: float, steps: int, deltas: tuple[float, float], *, added: int = 1, composed: int = 1
) -> BoundingSteps:
    """One choice for ``added`` epochs, whose contributions add up, and as many choices as ``composed`` says."""
    near = deltas if composed == 1 else IMPROVED_DELTAS
    curves = allocation_curves(sensitivity * math.sqrt(added) / sigma, steps, near)
    if steps <= MAX_FEW_BINS:
        square = added * (Fraction(sensitivity) / Fraction(sigma)) ** 2
        curves = few_bins_curves((square, *(Fraction(0),) * (steps - 1)), curves, curves) or curves
    return BoundingSteps((CurveStep(*curves, composed),))


def allocation_curves(scale: float, steps: int, deltas: tuple[float, float]) -> tuple[Curve, Curve]:
    """Of removal and addition."""
    return AllocationCurve(scale, steps, False, deltas), AllocationCurve(scale, steps, True, deltas)


def _checked(sigma: Any, name: str, steps: Any, sensitivity: Any, epochs: Any) -> dict[str, Any]:
    """The arguments of both constructors."""
    noise = validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    number = validate.count(name, steps, 1, _MAX_STEPS)
    at_least_0 = "at least 0 and finite"
    span = validate.scalar("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))
    return {"sigma": noise, name: number, "sensitivity": span, "epochs": validate.count("epochs", epochs)}
