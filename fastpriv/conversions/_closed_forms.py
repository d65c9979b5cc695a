"""What the closed forms of this room share: checked arguments, formulas without cancellation, bounds of the rounding.

Notation: h is the binary entropy in nats, s(x) = 1/(1 + e^-x), phi(r) = r ln(2r/(1+r)) + ln(2/(1+r)), so that the
Jensen-Shannon divergence of P and R is E_R phi(P/R) / 2. Randomised response of epsilon x is the pair of Bernoulli
distributions s(x) and s(-x).
"""

# bounds: proved - half a unit in the last place of 1 - alpha

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import ShapeError
from ..base.estimate import Estimate, Information, Kind, Unit
from ..base.monotone import UNITS
from ..base.numerics import LARGEST_DOUBLE, LOG_2, UNIT_ROUNDOFF, FloatArray, artanh_remainder, exp_excess
from .vocabulary import PARAMETERS

# bound: proved - docs/proofs/roundings.md, 13.10 and 13.11: relative error of every closed form without one of its own
_RELATIVE_ERROR = 2e-14
# bound: proved - docs/proofs/roundings.md, 13.11: absolute error of subnormal results
ABSOLUTE_ERROR = 5e-322  # for results that are subnormal: a hundred of the smallest doubles
# bound: proved - a logarithm of 1 - x, 5.02 units of 2^-53, an x that is right to 7, and a sum
_LOGARITHM_ERROR = 8e-16  # relative to the sum of its terms
# bound: proved - relative error of Phi, 9.7 units of 2^-53 (tools/proofs) with those of a sum, a difference and a
#    conversion, and of the quantile that it gives after one Newton step, relative to the ratio of Phi and its density
_NORMAL_ERROR = 1.7e-15
# bound: proved - rounding of a quotient and a difference in extended precision
_EXTENDED_ROUNDING = 4 * float(np.finfo(np.longdouble).eps)
# bound: proved - below it the next term of the series is under half an ulp
_ONE_TERM = 1e-8  # below it the square root of a capacity is the first term of its series to the last bit


def validated(*, unit: Any = "nats", **values: ArrayLike) -> tuple[FloatArray, ...]:
    """Each number checked by its range, all broadcast to one shape; amounts of information, in ``unit``, as nats."""
    validate.choice("unit", unit, ("nats", "bits"))
    checked: dict[str, FloatArray] = {}
    for name, value in values.items():
        parameter = PARAMETERS[name]
        array = validate.real(name, value, parameter.constraint, parameter.valid)
        for other, partner in checked.items():
            validate.broadcastable(name, array, other, partner)
        checked[name] = array * LOG_2 if unit == "bits" and UNITS[name] == "information" else array
    if len(checked) > 2:  # every pair of them fits
        validate.grid(" with ".join(checked), np.broadcast_shapes(*(array.shape for array in checked.values())))
    return tuple(np.broadcast_arrays(*checked.values()))


def points_and_values(
    name: str, points: ArrayLike, values_name: str, values: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """The one-dimensional points of a curve, and its values, whose last axis runs over the points; both checked."""
    grid = validate.vector(name, points, PARAMETERS[name].constraint, PARAMETERS[name].valid)
    (columns,) = validated(**{values_name: values})
    if columns.ndim == 0 or columns.shape[-1] != grid.size:
        raise ShapeError(
            f"{values_name} must be of a shape that ends with the length of {name}, {grid.size}; got {columns.shape}. "
            "Give one number for each point, along the last axis."
        )
    return grid, columns


def bounded(
    value: Any, unit: Unit, method: str, *, error: Any = None, ceiling: float = np.inf, unrounded: Any = False,
    kind: Kind = "exact",
) -> Estimate:
    """``value`` in [0, ceiling] with its error outward: the relative error, or ``error``; none where ``unrounded``.

    A value that has left the range of doubles has the largest of them as lower bound.
    """
    value = np.clip(np.asarray(value, dtype=np.float64), 0.0, ceiling)
    with np.errstate(invalid="ignore", over="ignore"):
        slack = (_RELATIVE_ERROR * value if error is None else np.asarray(error)) + ABSOLUTE_ERROR
        lower = np.where(np.isinf(value), LARGEST_DOUBLE, np.maximum(value - slack, 0.0))
        upper = np.where(np.isinf(value), np.inf, np.minimum(value + slack, ceiling))
    lower, upper = np.where(unrounded, value, lower), np.where(unrounded, value, upper)
    return Estimate(value, lower, upper, kind=kind, unit=unit, method=method)


def information(nats: Any, unit: Information, method: str, *, of: Any = np.nan, unrounded: Any = False) -> Estimate:
    """An amount of information, computed in nats, in ``unit``; not rounded where the parameter ``of`` which it is a
    function is 0, or is infinite as the amount is."""
    validate.choice("unit", unit, ("nats", "bits"))
    with np.errstate(over="ignore"):
        value = nats / LOG_2 if unit == "bits" else nats
    ends = (of == 0.0) | (np.isinf(of) & np.isinf(nats))
    return bounded(value, unit, method, unrounded=unrounded | ends)


def same_number(unit: Unit, method: str = "the same number", **value: ArrayLike) -> Estimate:
    """The number that was given, checked, in its unit, without rounding."""
    (checked,) = validated(**value)
    if not (isinstance(unit, str) and unit in ("1", "probability")):
        validate.choice("unit", unit, ("nats", "bits"))
    return bounded(checked, unit, method, unrounded=True)


def gaussian_trade_off(
    difference: FloatArray, sigma: FloatArray | float, type_one: FloatArray, power: bool = False
) -> tuple[Any, Any]:
    """Phi(z - difference / sigma) with Phi(-z) = type_one, or with ``power`` one minus it, and the absolute error.

    The quantile and the argument of Phi are kept in extended precision, so that far tails keep their digits.
    """
    quantile, error = normal_quantile(type_one)
    with np.errstate(all="ignore"):
        separation = np.divide(difference, np.asarray(sigma, dtype=np.longdouble))
        argument = separation - quantile if power else quantile - separation
        nearest = argument.astype(np.float64)
        value = np.asarray(special.ndtr(nearest) + _normal_density(nearest) * (argument - nearest), dtype=np.float64)
        error = error + _EXTENDED_ROUNDING * (np.abs(quantile) + separation)
        slope = np.where(nearest < 0.0, 1.0 - nearest, 1.0)  # of log Phi, at most
        error = np.minimum(1.0, _NORMAL_ERROR + 1.01 * slope * error) * value + ABSOLUTE_ERROR
        error = np.asarray(error, dtype=np.float64)
    ends = (type_one == 0.0) | (type_one == 1.0)
    straight = np.broadcast_to(ends | (separation == 0.0), value.shape)
    at_0, at_infinity = (type_one, np.where(type_one > 0.0, 1.0, 0.0)) if power else (1.0 - type_one, 0.0)
    value = np.where(np.isinf(separation), at_infinity, np.where(straight, at_0, value))
    error = np.where(np.isfinite(error), error, 0.0)
    return value, np.where(straight, np.where(ends, 0.0, UNIT_ROUNDOFF * value), error)


def normal_quantile(type_one: FloatArray) -> tuple[Any, Any]:
    """z with Phi(-z) = type_one in extended precision, and its absolute error: one Newton step after a rounded one."""
    from scipy.special import ndtri

    with np.errstate(all="ignore"):
        z = -ndtri(type_one)
        tail = np.minimum(type_one, 1.0 - type_one)  # the difference is exact from 1/2 on
        residual = np.where(type_one <= 0.5, special.ndtr(-z) - type_one, (1.0 - type_one) - special.ndtr(z))
        density = _normal_density(z)
        return z + residual / density, (_NORMAL_ERROR * tail + ABSOLUTE_ERROR) / density


def _normal_density(x: Any) -> Any:
    """The standard normal density in extended precision."""
    return np.exp(-0.5 * np.square(np.asarray(x, dtype=np.longdouble))) / np.sqrt(2 * np.pi)


def minus_log1pmx(y: FloatArray) -> FloatArray:
    """y - ln(1 + y) for y >= 0; about y^2/2."""
    near = y <= 0.5
    z, remainder = artanh_remainder(np.where(near, y, 0.0))
    series = 2.0 * z * z * (1.0 / (1.0 - z) - z * remainder)
    far = np.where(near | np.isinf(y), 0.0, y)
    return np.asarray(np.where(near | np.isinf(y), np.where(near, series, y), far - np.log1p(far)))


def randomized_response_capacity(x: FloatArray) -> FloatArray:
    """ln 2 - h(s(x)): the Jensen-Shannon divergence of Bernoulli s(x) and s(-x), the capacity of that channel."""
    u = 0.5 * x
    small = u < 1.0
    inner = np.where(small, u, 0.0)
    near = inner * np.tanh(inner) - np.log1p(2.0 * np.sinh(0.5 * inner) ** 2)
    far = np.where(small, 1.0, np.minimum(u, 400.0))
    decayed = np.exp(-2.0 * far)
    return np.asarray(np.where(small, near, LOG_2 - np.log1p(decayed) - 2.0 * far * decayed / (1.0 + decayed)))


def randomized_response_capacity_root(x: FloatArray) -> FloatArray:
    """The square root of ``randomized_response_capacity``, also where that is below the smallest double."""
    root = np.sqrt(randomized_response_capacity(np.maximum(x, _ONE_TERM)))
    return np.asarray(np.where(x < _ONE_TERM, x * np.sqrt(0.125), root))


def randomized_response_kl(x: FloatArray) -> FloatArray:
    """x tanh(x/2): the Kullback-Leibler divergence of Bernoulli s(x) and s(-x), either way round."""
    return np.asarray(x * np.tanh(0.5 * x))


def randomized_response_renyi(epsilon: FloatArray, order: FloatArray) -> FloatArray:
    """Renyi divergence of Bernoulli s(epsilon) from s(-epsilon): ln(cosh((a - 1/2) e) / cosh(e/2)) / (a - 1)."""
    epsilon, order = np.broadcast_arrays(epsilon, order)
    t = np.tanh(0.5 * epsilon)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        step = order - 1.0
        v = np.where(np.isinf(order) | np.isinf(epsilon), np.inf, step * epsilon)
        small = v < 1.0
        inner = np.where(small, v, 0.0)
        half = np.sinh(0.5 * inner)
        sinh_ratio = np.where(inner == 0.0, 1.0, half / (0.5 * inner))
        core = t * sinh_ratio * np.cosh(0.5 * inner) + half * sinh_ratio
        x = inner * core
        near = epsilon * core * np.where(x == 0.0, 1.0, np.log1p(x) / x)
        far = epsilon + np.log1p(np.expm1(-2.0 * v) / (1.0 + np.exp(epsilon))) / step
    return np.asarray(np.where(small, near, np.where(np.isinf(v), epsilon, far)))


def log_mean_ratio(x: FloatArray, weight: FloatArray) -> FloatArray:
    """ln(weight + (1 - weight) e^x) for x >= 0 and weight in [0, 1]."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = x < 1.0
        near = np.log1p((1.0 - weight) * np.expm1(np.where(small, x, 0.0)))
        far = x + np.log1p(weight * np.expm1(-np.where(small, 1.0, x)))
    return np.asarray(np.where(small, near, np.where(weight == 1.0, 0.0, far)))


def minus_log_mean_inverse_ratio(x: FloatArray, weight: FloatArray) -> FloatArray:
    """-ln(weight + (1 - weight) e^-x) for x >= 0 and weight in [0, 1]."""
    drop = (1.0 - weight) * -np.expm1(-x)
    near = drop < 0.5
    with np.errstate(divide="ignore"):
        far = -np.logaddexp(np.log(weight), np.log1p(-weight) - x)
    return np.asarray(np.where(near, -np.log1p(-np.where(near, drop, 0.0)), far))


def largest_probability(x: FloatArray, probability: FloatArray) -> FloatArray:
    """T_x(b) = min(e^x b, 1 - e^-x (1 - b)), b = ``probability``.

    It is the largest probability of an event under a distribution whose log ratios to the first are at most x.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # the exponential in halves, which does not overflow before the product does, and no subnormal factor
        root = np.exp(0.5 * x)
        product = root * (root * (probability * 2.0**200)) * 2.0**-200
        raised = np.where(probability == 0.0, np.where(np.isinf(x), np.inf, 0.0), product)
    return np.asarray(np.minimum(raised, probability - (1.0 - probability) * np.expm1(-x)))


def dominating_delta(epsilon: FloatArray, delta: FloatArray, target: FloatArray) -> FloatArray:
    """delta + (1 - delta) (e^epsilon - e^target)^+ / (1 + e^epsilon): the whole curve that one point bounds."""
    with np.errstate(invalid="ignore"):
        gap = np.where(epsilon > target, epsilon - target, 0.0)
        return np.asarray(delta + (1.0 - delta) * -np.expm1(-gap) / (1.0 + np.exp(-epsilon)))


def dominating_epsilon(epsilon: FloatArray, loss: FloatArray) -> tuple[FloatArray, FloatArray]:
    """epsilon + ln(1 - loss), at least 0: where the curve of the dominating pair falls to a delta; and its error."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        drop = np.where(loss < 1.0, -special.log1p(-np.minimum(loss, 1.0)), np.inf)
        value = np.where(np.isinf(drop), 0.0, np.maximum(epsilon - drop, 0.0))
        slope = np.where(loss < 1.0, loss / (1.0 - np.minimum(loss, 1.0)), 0.0)
        error = _LOGARITHM_ERROR * (epsilon + drop + slope)
    return value, np.where(np.isfinite(error), error, 0.0)


def subset_selection_capacity(epsilon: FloatArray) -> FloatArray:
    """s - 1 - ln s with s = e/(1 - exp(-e)): largest KL of Bernoulli distributions whose log odds differ by epsilon."""
    decay = -np.expm1(-epsilon)
    excess = exp_excess(-epsilon) / np.where(epsilon == 0.0, 1.0, decay)  # s - 1
    return minus_log1pmx(excess)
