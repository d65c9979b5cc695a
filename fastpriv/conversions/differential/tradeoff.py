"""Trade-off functions (f-DP): the least probability of a miss for each probability of a false alarm.

Notation: x = type_one the probability of a false alarm, f(x) that of a miss, for the best test between two neighbours.
The guarantee is a LOWER bound: quote ``lower``. (epsilon, delta) either way round means f(x) >= max(0, 1 - delta -
e^epsilon x, e^-epsilon (1 - delta - x)), and nothing for an infinite epsilon; a whole curve means the largest of these
over it, and back, delta(epsilon) is the largest of 1 - f(x) - e^epsilon x over x, with the roles exchanged too.
"""

# bounds: tested by enclosures/test_conversions_values - rounding of a line's slope and height

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate, special
from ..._estimates import monotone
from ...errors import DomainError, ShapeError
from ...estimate import Estimate, NumberLike
from .._arguments import validated
from .._bounds import bounded
from ..parameters import PARAMETERS
from ..registry import documented

__all__ = [
    "dp_delta_from_tradeoff", "tradeoff_from_dp", "tradeoff_from_dp_curve", "tradeoff_from_gdp", "tradeoff_from_ldp",
]  # fmt: skip

FloatArray = NDArray[np.float64]
# bound: tested by enclosures/test_conversions_values - absolute rounding of the height of a line
_ULPS = 1e-15


@documented
@monotone(falling="epsilon type_one")
def tradeoff_from_ldp(epsilon: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under pure privacy: that of randomised response, two straight lines.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.tradeoff_from_ldp(1.0, [0.0, 0.25, 0.5, 1.0]).value
    array([1.        , 0.32042954, 0.18393972, 0.        ])
    """
    epsilon, type_one = validated(epsilon=epsilon, type_one=type_one)
    return _lines(epsilon, np.zeros_like(epsilon), type_one)


@documented
@monotone(falling="epsilon delta type_one")
def tradeoff_from_dp(epsilon: NumberLike, delta: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under (epsilon, delta): max(0, 1 - delta - e^epsilon x, e^-epsilon (1 - delta - x)).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.tradeoff_from_dp(1.0, 0.1, [0.0, 0.25]).value
    array([0.9       , 0.23912...])
    """
    epsilon, delta, type_one = validated(epsilon=epsilon, delta=delta, type_one=type_one)
    return _lines(epsilon, delta, type_one)


@documented
@monotone(falling="epsilon delta type_one", joint="delta")
def tradeoff_from_dp_curve(epsilon: NumberLike, delta: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under a whole curve; ``epsilon`` is one-dimensional, the last axis of ``delta``.

    ``type_one`` broadcasts with the other axes of ``delta``. Tight at the points given.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import conversions
    >>> epsilon = np.linspace(0.0, 5.0, 101)
    >>> delta = conversions.dp_delta_from_gdp(1.0, epsilon).value
    >>> conversions.tradeoff_from_dp_curve(epsilon, delta, 0.1).value
    0.61...
    """
    grid, levels = _columns("epsilon", epsilon, "delta", delta)
    (false_alarm,) = validated(type_one=type_one)
    _validate.broadcastable("type_one", false_alarm, "delta without its last axis", levels[..., 0])
    best = _line(grid[0], levels[..., 0], false_alarm)
    for k in range(1, grid.size):
        best = np.maximum(best, _line(grid[k], levels[..., k], false_alarm))
    return bounded(best, "probability", f"highest of {grid.size} pairs of lines", error=_ULPS, ceiling=1.0)


@documented
@monotone(falling="separation type_one")
def tradeoff_from_gdp(separation: NumberLike, type_one: NumberLike) -> Estimate:
    """Least probability of a miss under Gaussian privacy: Phi(Phi^-1(1 - x) - separation).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.tradeoff_from_gdp(1.0, [0.05, 0.5]).value
    array([0.74048898, 0.15865525])
    """
    from scipy.special import ndtri

    separation, type_one = validated(separation=separation, type_one=type_one)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        z = -ndtri(type_one)
        place = np.where(np.isinf(z), z, z - separation)
        value = np.asarray(special.ndtr(place))
        value = np.where(separation == 0.0, 1.0 - type_one, np.where(np.isinf(separation), 0.0, value))
        # the relative slope of Phi at -y is at most y + 1; z is right to some ulps, of z and of its argument
        slope = np.where(place < 0.0, 1.0 - place, 1.0)
        blurred = np.where(np.isfinite(z), np.abs(z), 0.0) + np.where(np.isfinite(separation), separation, 0.0) + 1.0
        error = np.minimum(1.0, np.where(np.isfinite(slope), 1e-15 * (slope * blurred + 4.0), 1.0)) * value
    ends = (type_one == 1.0) | (type_one == 0.0)
    return bounded(value, "probability", "Phi(Phi^-1(1 - x) - separation)", error=error, ceiling=1.0, settled=ends)


@documented
@monotone(falling="type_two epsilon", joint="type_two")
def dp_delta_from_tradeoff(type_one: ArrayLike, type_two: NumberLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from a trade-off function that is straight between the points (type_one, type_two).

    ``type_one`` is one-dimensional, increasing from 0 to 1, the last axis of ``type_two``; both ways round are taken.
    Samples of a strictly convex function lie on chords above it, so that for one of those the answer is too small.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> corner = 1 / (1 + 2.718281828459045)
    >>> conversions.dp_delta_from_tradeoff([0, corner, 1], [1, corner, 0], [0.0, 0.5]).value
    array([0.46211716, 0.28764...])
    """
    alarms, misses = _columns("type_one", type_one, "type_two", type_two)
    if alarms[0] != 0.0 or alarms[-1] != 1.0 or np.any(np.diff(alarms) < 0.0):
        raise DomainError(
            f"type_one must be increasing from 0 to 1; got {alarms[0]!r} to {alarms[-1]!r} over {alarms.size} points. "
            "Sort the points and add the ends."
        )
    (goal,) = validated(epsilon=epsilon)
    _validate.broadcastable("epsilon", goal, "type_two without its last axis", misses[..., 0])
    best = np.zeros(np.broadcast_shapes(goal.shape, misses.shape[:-1]))
    with np.errstate(over="ignore", invalid="ignore"):
        steep = np.exp(goal)
        for k in range(alarms.size):
            for first, second in ((alarms[k], misses[..., k]), (misses[..., k], alarms[k])):
                best = np.maximum(best, 1.0 - first - np.where(np.equal(second, 0.0), 0.0, steep * second))
    return bounded(best, "probability", f"highest of {alarms.size} corners", error=_ULPS, ceiling=1.0)


def _line(epsilon: FloatArray, delta: FloatArray, x: FloatArray) -> FloatArray:
    with np.errstate(over="ignore", invalid="ignore"):
        steep = 1.0 - delta - np.where(x == 0.0, 0.0, np.exp(epsilon) * x)
        flat = np.exp(-epsilon) * (1.0 - delta - x)
    return np.where(np.isinf(epsilon), 0.0, np.maximum(0.0, np.maximum(steep, flat)))


def _lines(epsilon: FloatArray, delta: FloatArray, x: FloatArray) -> Estimate:
    value = _line(epsilon, delta, x)
    return bounded(value, "probability", "the higher of two lines", error=_ULPS, ceiling=1.0, settled=x == 1.0)


def _columns(name: str, points: ArrayLike, other: str, values: ArrayLike) -> tuple[FloatArray, FloatArray]:
    row = _validate.vector(name, points, PARAMETERS[name].constraint, PARAMETERS[name].valid)
    (columns,) = validated(**{other: values})
    if columns.ndim == 0 or columns.shape[-1] != row.size:
        raise ShapeError(
            f"{other} must be of a shape that ends with the length of {name}, {row.size}; got {columns.shape}. "
            "Give one number for each point, along the last axis."
        )
    return row, columns
