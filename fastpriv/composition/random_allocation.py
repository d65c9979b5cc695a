"""Records that take part in one random step of many: random allocation, and balls in bins over several epochs.

Notation: t steps with normal noise of standard deviation sigma on a sum to which a record contributes at most the
sensitivity s; a = s / sigma. A record takes part in one step of the t, chosen uniformly. In units of sigma,

    P = average over i = 1..t of N(a e_i, I_t),        Q = N(0, I_t)

dominates the removal of the record, and Q, P its addition. Under Q the likelihood ratio R = dP/dQ is the average of t
independent log-normal variables with mean 1 and log standard deviation a, so that with the bounds of
``log_normal_sums``

    delta_remove = E (R - e^epsilon)^+,        delta_add = E (1 - e^epsilon R)^+.

Neither exceeds the delta of the Gaussian mechanism with the same noise, by the joint convexity of delta.

Balls in bins. A record is put in one of t bins once, and takes part in the step of its bin in each of k epochs: the
means are orthogonal and of length a sqrt(k). It is the allocation with the sensitivity s sqrt(k).

Source: Chua, Ghazi, Harrison, Leeman, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024 (balls and bins; the pair
dominates); Feldman and Shenfeld 2025 (random allocation); Choquette-Choo, Ganesh, Haque, Steinke and Thakurta 2025
(bins over epochs).
"""

# bounds: proved - numbers of roundings in units of UNIT_ROUNDOFF

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate, special
from .._monotone import monotone
from .._values import ValueObject
from ..estimate import Estimate, NumberLike
from ..numerics import UNIT_ROUNDOFF, FloatArray, next_above
from .log_normal_sums import log_normal_sum
from .pairs import Pair, PairObject
from .steps import BoundingSteps, CurveStep

__all__ = ["IMPROVED_DELTAS", "AllocationCurve", "BallsInBins", "RandomAllocation", "StructuredSampling"]

Direction = Literal["forward", "backward", "worst"]

_MAX_STEPS = 10**9  # of an epoch: sums are doubled, 30 times for these
_CELLS, _DEPTH = 2000, 45.0  # of a first evaluation: 0.4 s for 1e5 steps
_MORE_CELLS = 5000, 9000  # where that is not close enough, one after the other; the last only
_MANY_STEPS, _MANY_LEVELS = 100_000, 1000  # up to so many steps, and levels: those of a composition are many
_DEPTHS = np.array([45.0, 60.0, 90.0, 180.0])  # of these, the first that is enough for a delta
# bound: none - of what is evaluated twice: smaller deltas have wider and wider bounds
_LEAST_IMPROVED = 1e-60
IMPROVED_DELTAS = (_LEAST_IMPROVED, 1.0)  # of curves of which nothing else is known
_LARGEST_SCALE = 25.0  # beyond it, where sigma is less than 0.04 sensitivities, other steps are left out of account
_ACCEPTED_WIDTH = 4e-3  # relative width of delta that is not improved where epsilon is as close as is said next
_ORDINARY = 50.0  # -log of smaller deltas: of these the width of epsilon counts alone
# bound: none - width of epsilon, from that of delta and its slope, that is not improved
_ACCEPTED_EPSILON = 8e-4
# bound: none - relative width of delta that is improved whatever the slope
_LARGEST_WIDTH = 0.2
# bound: none - nats around a delta whose epsilon is asked for
_AROUND = 1.0
# bound: none - step of epsilon for the slope
_SLOPE_STEP = 0.01
_LARGEST_EPSILON = 690.0  # beyond it the bounds are those at it, and 0: e^epsilon would overflow
# bound: tested by kernels/test_gaussian_mechanism - relative error of gaussian_delta
_GAUSSIAN_ERROR = 4e-15


class AllocationCurve(ValueObject):
    """The certified curve of one epoch: ``scale`` is a, ``steps`` is t; ``adds`` tells addition from removal.

    Wide bounds of deltas between the two numbers ``deltas`` are evaluated again with more cells.
    """

    __slots__ = _fields = ("scale", "steps", "adds", "deltas")

    scale: float
    steps: int
    adds: bool
    deltas: tuple[float, float]

    def __init__(self, scale: float, steps: int, adds: bool, deltas: tuple[float, float]) -> None:
        self._set(scale=scale, steps=steps, adds=adds, deltas=deltas)

    def __call__(self, epsilon: FloatArray) -> Estimate:
        """Probabilities at epsilon >= 0."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        rows = np.zeros((3, levels.size))
        if self.scale > 0.0 and levels.size:
            rows = self._bounds(levels, _CELLS, _DEPTH)
            logs = np.log(np.maximum(rows[0], _LEAST_IMPROVED))
            within = np.log(np.clip(rows[0], *self.deltas))
            depths = _DEPTHS[np.minimum(np.searchsorted(_DEPTHS, 8.0 - 1.1 * within), _DEPTHS.size - 1)]
            after = self._bounds(levels + _SLOPE_STEP, _CELLS, _DEPTH)[0]
            fall = np.maximum(logs - np.log(np.maximum(after, _LEAST_IMPROVED)), 0.0) / _SLOPE_STEP
            near = np.minimum(_ACCEPTED_EPSILON * fall, _LARGEST_WIDTH)
            first = np.where(logs > -_ORDINARY, np.minimum(near, _ACCEPTED_WIDTH), near)
            for cells, most in zip(_MORE_CELLS, (first, near), strict=True):
                if cells == _MORE_CELLS[-1] and (self.steps > _MANY_STEPS or levels.size > _MANY_LEVELS):
                    break
                wide = (rows[2] - rows[1] > most * rows[2]) & (rows[2] > self.deltas[0]) & (rows[1] < self.deltas[1])
                if self.deltas == IMPROVED_DELTAS:
                    wide &= rows[0] > _LEAST_IMPROVED
                for depth in np.unique(depths[wide]):
                    part = wide & (depths == depth)
                    better = self._bounds(levels[part], cells, float(depth))
                    lower, upper = np.maximum(rows[1, part], better[1]), np.minimum(rows[2, part], better[2])
                    rows[:, part] = np.clip(better[0], lower, upper), lower, upper
        value, lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(
            value, lower, upper, kind="certified", unit="probability", method="law of a sum of log-normal variables"
        )

    def _bounds(self, epsilon: FloatArray, cells: int, depth: float) -> FloatArray:
        """Rows of values, lower and upper bounds."""
        inside = np.minimum(epsilon, _LARGEST_EPSILON)
        rows = np.zeros((3, epsilon.size))
        if self.scale > _LARGEST_SCALE:
            if not self.adds:  # R is at least one of its t terms
                rows[1] = self._of_one_step(next_above(inside + next_above(math.log(self.steps))), -1.0)
            rows[2] = 1.0
        else:
            bounds = log_normal_sum(self.scale, self.steps, cells, depth)
            ratio = np.exp(-inside if self.adds else inside)
            rows = bounds.excesses(self.steps * ratio, self.adds) / self.steps
            if self.adds:
                rows /= ratio
        rows[1] *= 1.0 - 8 * UNIT_ROUNDOFF
        rows[2] *= 1.0 + 8 * UNIT_ROUNDOFF
        rows[1, epsilon > inside] = 0.0
        rows[2] = np.minimum(np.minimum(rows[2], self._of_one_step(inside, 1.0)), 1.0)
        rows[1] = np.minimum(rows[1], rows[2])
        rows[0] = np.clip(rows[0], rows[1], rows[2])
        return rows

    def _of_one_step(self, epsilon: FloatArray, side: float) -> FloatArray:
        """A bound of delta of the Gaussian mechanism with the same noise, from above (1) or from below (-1)."""
        half = 0.5 * self.scale * (1.0 + side * 2 * UNIT_ROUNDOFF)
        return np.asarray(special.gaussian_delta(half, epsilon) * (1.0 + side * _GAUSSIAN_ERROR))


class StructuredSampling(PairObject):
    """Base of mechanisms whose records take part in steps by one random choice; ``compose`` takes them as pairs."""

    __slots__ = ()

    def _steps(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingSteps:
        """The steps of the removal of a record, with narrow bounds for deltas between two numbers."""
        raise NotImplementedError

    def _composed(self) -> Any:
        from .compositions import compose

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
        from .compositions import Composition

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
    the logarithm of their number. ``epsilon`` of one epoch looks closer at deltas near the one that is asked for, and
    is faster than that of ``compose``. Epochs are composed.

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
        return _allocation(self.sensitivity / self.sigma, self.steps, self.epochs, deltas)


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
        return _allocation(self.sensitivity * math.sqrt(self.epochs) / self.sigma, self.bins, 1, deltas)


def _deltas_near(delta: Any, log_delta: Any) -> tuple[float, float]:
    """Numbers on both sides of what is asked for; those of all curves where that is not one row of numbers."""
    try:
        logs = np.asarray(log_delta, dtype=np.float64) if delta is None else np.log(np.asarray(delta, dtype=np.float64))
        low, high = float(np.min(logs)), float(np.max(logs))
    except (TypeError, ValueError):
        return IMPROVED_DELTAS
    if not -math.inf < low <= high <= 0.0:
        return IMPROVED_DELTAS
    return max(math.exp(low - _AROUND), _LEAST_IMPROVED), math.exp(min(high + _AROUND, 0.0))


def _allocation(scale: float, steps: int, epochs: int, deltas: tuple[float, float]) -> BoundingSteps:
    near = deltas if epochs == 1 else IMPROVED_DELTAS
    removal, addition = (AllocationCurve(scale, steps, adds, near) for adds in (False, True))
    return BoundingSteps((CurveStep(removal, addition, epochs),))


def _checked(sigma: Any, name: str, steps: Any, sensitivity: Any, epochs: Any) -> dict[str, Any]:
    """The arguments of both constructors."""
    noise = _validate.scalar("sigma", sigma, "positive and finite", lambda x: (x > 0) & (x < np.inf))
    number = _validate.count(name, steps, 1, _MAX_STEPS)
    at_least_0 = "at least 0 and finite"
    span = _validate.scalar("sensitivity", sensitivity, at_least_0, lambda x: (x >= 0) & (x < np.inf))
    return {"sigma": noise, name: number, "sensitivity": span, "epochs": _validate.count("epochs", epochs)}
