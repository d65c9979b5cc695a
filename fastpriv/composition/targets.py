"""What a target allows: how many releases, and how little noise.

Notation: a target is (epsilon, delta); k the number of releases. delta at epsilon rises with k, since more releases
tell no less, and falls with the noise.
"""

# bounds: proved - rounding of a logarithm

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import Estimate, NumberLike
from ..base.monotone import monotone
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..calibration.root_search import Evaluation, Level, validated_rtol
from ..calibration.root_search import least_sigma as search_of_sigma
from .compositions import Composition, Direction, compose, largest_loss_of

_LIMIT = 10**9  # releases that are tried
# bound: none - where the search stops
_RTOL = 1e-9  # relative width of sigma
# bound: none - a residual in place of one beyond all doubles
_LARGEST_RESIDUAL = 700.0
_MUCH_NOISE = 1e100  # losses that are unbounded even there are so with less


@monotone(rising="epsilon delta")
def largest_count(
    pair: Any, *, epsilon: NumberLike, delta: NumberLike, direction: Direction | None = None, limit: int = _LIMIT
) -> Estimate:
    """The largest number of releases of a pair that is (epsilon, delta)-private.

    Parameters
    ----------
    pair : what ``compose`` takes
        A pair, or a list of pairs that are released together each time.
    epsilon, delta : array_like or Estimate
        The target: epsilon at least 0, in nats, delta between 0 and 1; they broadcast.
    direction : {"forward", "backward", "worst"}, optional
        As ``Composition.delta``.
    limit : int, default 1e9
        Number of releases that is large enough: the answer is at most that.

    Returns
    -------
    Estimate
        Whole numbers, unit ``1``. So many releases as ``lower`` says are proved to meet the target, and one more than
        ``upper`` is proved to miss it, unless ``upper`` is ``limit``.

    Raises
    ------
    DomainError, ShapeError
        As ``compose``, and for a target or limit out of range.

    Notes
    -----
    **Accuracy** both ends are proved by the bounds of ``compose``; ``tests/enclosures/test_compose_targets.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism
    >>> from fastpriv.composition import largest_count
    >>> largest_count(GaussianMechanism(10.0, 1.0), epsilon=1.0, delta=1e-5).value
    7.0
    """
    levels, targets = _targets(epsilon, delta)
    most = validate.count("limit", limit, 1, _LIMIT)
    item = compose(pair)
    rows = np.empty((3, levels.size))
    evaluations = 0
    for index, (level, target) in enumerate(zip(levels.ravel().tolist(), targets.ravel().tolist(), strict=True)):
        numbers, cost = _count_of(item, level, target, direction, most)
        rows[:, index] = numbers
        evaluations += cost
    value, lower, upper = (row.reshape(levels.shape) for row in rows)
    return Estimate(value, lower, upper, kind="certified", unit="1", method="bisection between proofs",
                    cost={"evaluations": evaluations})


def _count_of(
    composition: Composition, epsilon: float, target: float, direction: Direction | None, limit: int
) -> tuple[tuple[int, int, int], int]:
    """Value, lower and upper bound of the count, and how often the curve was evaluated."""
    known: dict[int, tuple[float, float, float]] = {}

    def bounds(count: int) -> tuple[float, float, float]:
        if count not in known:
            known[count] = compose(composition, count)._log_delta(epsilon, direction, quiet=True).floats()
        return known[count]

    log_target = math.log(target) if target > 0.0 else -math.inf
    ends = []
    for index in (0, 2, 1):  # the value, then the upper bound, which gives the lower count, and the other way round
        low, high = 0, 1  # low meets the target by this bound, high does not
        while high <= limit and bounds(high)[index] <= log_target:
            low, high = high, high * 8
        high = min(high, limit + 1)
        while high - low > 1:
            middle = _guess(known, index, log_target, low, high)
            low, high = (middle, high) if bounds(middle)[index] <= log_target else (low, middle)
        ends.append(low)
    value, lower, upper = ends
    return (min(max(value, lower), upper), lower, upper), len(known)


def _guess(known: dict[int, tuple[float, float, float]], index: int, target: float, low: int, high: int) -> int:
    """A whole number between low and high: where a power law of -log delta in the count meets the target."""
    middle = (low + high) // 2 if low == 0 else math.isqrt(low * high)
    first, second = (known.get(count, (math.nan,) * 3)[index] for count in (low, high))
    if low > 0 and -math.inf < first < target < second < 0.0 and high - low > 2:
        share = (math.log(-target) - math.log(-first)) / (math.log(-second) - math.log(-first))
        middle = round(low * (high / low) ** min(max(share, 0.02), 0.98))
    return min(max(middle, low + 1), high - 1)


@monotone(falling="epsilon delta")
def least_sigma(
    pair_of_sigma: Callable[[float], Any], *, epsilon: NumberLike, delta: NumberLike, count: int = 1,
    direction: Direction | None = None, rtol: float = _RTOL,
) -> Estimate:
    """The least noise with which the releases are (epsilon, delta)-private.

    Parameters
    ----------
    pair_of_sigma : callable
        Takes one sigma and returns what ``compose`` takes, less private where sigma is smaller.
    epsilon, delta : array_like or Estimate
        The target: epsilon at least 0, in nats, delta between 0 and 1; they broadcast.
    count : int, default 1
        Number of releases.
    direction : {"forward", "backward", "worst"}, optional
        As ``Composition.delta``.
    rtol : float, default 1e-9
        Relative width of the bracket at which the search stops.

    Returns
    -------
    Estimate
        Unit ``1``, that of sigma. ``upper`` is proved to meet the target, ``lower`` to miss it.

    Raises
    ------
    DomainError, ShapeError
        As ``compose``; for a target out of range, or that no sigma meets.
    NotConvergedError
        If the bounds of the curve are too wide to prove a sigma.

    Notes
    -----
    **Accuracy** both ends are proved by the bounds of ``compose``; ``tests/enclosures/test_compose_targets.py``.

    Examples
    --------
    >>> from fastpriv import PoissonSampledGaussian
    >>> from fastpriv.composition import least_sigma
    >>> sigma = least_sigma(lambda s: PoissonSampledGaussian(s, 0.01), epsilon=2.0, delta=1e-5, count=1000)
    >>> round(sigma.upper, 4)
    0.9591
    """
    if not callable(pair_of_sigma):
        raise DomainError(
            f"pair_of_sigma must be a function of sigma; got {validate.shown(pair_of_sigma)}. Pass, for example, "
            "lambda sigma: GaussianMechanism(sigma, 1.0)."
        )
    levels, targets = _targets(epsilon, delta)
    number = validate.count("count", count, 0)
    tolerance = validated_rtol(rtol)

    def level(row: FloatArray) -> Level:
        return lambda sigma: _evaluation(compose(pair_of_sigma(sigma), number), float(row[0]), float(row[1]), direction)

    if ((targets == 0.0) & (levels < np.inf)).any() and number:
        refuse_zero_delta(_largest_losses(compose(pair_of_sigma(_MUCH_NOISE), number), direction)[0] == math.inf)
    tasks = np.stack([levels.ravel(), targets.ravel()], axis=-1)
    no_noise = np.broadcast_to((targets == 1.0) | np.isposinf(levels) | (number == 0), levels.shape)
    return search_of_sigma("delta", tasks, no_noise, level, lambda row: 1.0, tolerance, 1, "; 0 where none is needed")


def refuse_zero_delta(unbounded: Any) -> None:
    """Refuse delta = 0 where losses are unbounded."""
    if unbounded:
        raise DomainError(
            "delta must be positive where losses are unbounded, however much noise there is; got 0.0. Ask for a larger "
            "delta."
        )


def _largest_losses(composition: Composition, direction: Direction | None) -> tuple[float, float]:
    """Bounds of the largest loss: delta is 0 from there on."""
    ends = [largest_loss_of(steps) for steps in composition._directions(direction)]
    return max(least for least, _ in ends), max(most for _, most in ends)


def _evaluation(composition: Composition, epsilon: float, delta: float, direction: Direction | None) -> Evaluation:
    """The residual log(log delta / log of the curve): of normal noise, -log delta grows with sigma^2."""
    if delta == 0.0:
        least, most = _largest_losses(composition, direction)
        return Evaluation(_LARGEST_RESIDUAL if most > epsilon else -_LARGEST_RESIDUAL, 0.0, most <= epsilon,
                          least > epsilon, "certified")
    return evaluation_at_log_delta(composition._log_delta(epsilon, direction, quiet=True).floats(), delta)


def evaluation_at_log_delta(log_delta: tuple[float, float, float], delta: float) -> Evaluation:
    """The residual of one curve at the target delta > 0, by value, lower and upper bound of its logarithm."""
    value, lower, upper = log_delta
    target = math.log(delta)
    rounding = 2 * UNIT_ROUNDOFF * abs(target)
    proved = upper <= target - rounding, lower >= target + rounding
    if value == -math.inf or value == 0.0:
        residual = -_LARGEST_RESIDUAL if value else _LARGEST_RESIDUAL
        return Evaluation(residual, 0.0, *proved, "certified")
    residual = math.log(target / value)
    uncertainty = (upper - lower) / abs(value) if lower > -math.inf else 1.0
    return Evaluation(residual, uncertainty, *proved, "certified")


def _targets(epsilon: Any, delta: Any) -> tuple[FloatArray, FloatArray]:
    levels = validate.real("epsilon", epsilon, "at least 0", lambda x: x >= 0)
    targets = validate.real("delta", delta, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))
    validate.broadcastable("epsilon", levels, "delta", targets)
    both = np.broadcast_arrays(levels, targets)
    return np.array(both[0]), np.array(both[1])
