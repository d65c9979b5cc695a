"""Double precision, once for the whole package: array types, constants, outward rounding, log-sum-exp, texts of bounds.

A double has a significand of 53 bits. A single addition, multiplication, division or square root, rounded to nearest,
has a relative error of at most ``UNIT_ROUNDOFF`` where its result is normal (Higham, Accuracy and Stability of
Numerical Algorithms, 2nd edition, theorem 2.2). Bounds are moved outward by whole steps of the grid of doubles.
"""

from __future__ import annotations

import math
import sys
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_DOUBLE", "LOG_2", "LOG_2_ABOVE", "MACHINE_EPSILON", "SMALLEST_NORMAL", "SMALLEST_SUBNORMAL", "SQRT_LOG_2",
    "SQRT_LOG_2_ABOVE", "UNIT_ROUNDOFF", "BoolArray", "FloatArray", "IndexArray", "IntArray", "LongDoubleArray",
    "RealArray", "WordArray", "artanh_remainder", "bennett", "doubles_around", "enclosure", "exp_excess",
    "jensen_shannon_generator", "log_sum_exp", "next_above", "next_below", "reconcile_bounds", "rounded_down",
    "rounded_outward", "rounded_up", "scaled_exponential", "two_sum",
]

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
IndexArray = NDArray[np.intp]  # positions in another array
WordArray = NDArray[np.uint64]  # 64 random bits each, or hashes
RealArray = NDArray[np.floating[Any]]  # float32 or float64, as handed in
LongDoubleArray = NDArray[np.longdouble]  # x87 extended precision on x86-64

# bound: proved - half the distance from 1 to the next double: the relative error of one rounding to nearest
UNIT_ROUNDOFF = 2.0**-53
# bound: proved - the distance from 1 to the next double
MACHINE_EPSILON = 2.0**-52
LARGEST_DOUBLE = sys.float_info.max  # about 1.8e308
SMALLEST_NORMAL = sys.float_info.min  # 2^-1022: below it the relative error of a rounding is no longer bounded
SMALLEST_SUBNORMAL = math.ulp(0.0)  # 2^-1074: the absolute error of a product that underflows is at most half of it
LOG_2 = math.log(2.0)  # nats in a bit, rounded: 2.3e-17 below the logarithm of 2
# bound: proved - log 2 rounded to nearest is less than one step below the logarithm of 2
LOG_2_ABOVE = math.nextafter(LOG_2, 1.0)  # bounds the Jensen-Shannon divergence from above
SQRT_LOG_2 = math.sqrt(LOG_2)  # the largest square root of a Jensen-Shannon divergence in nats (ABP), rounded
# bound: proved - the square root of a rounded number, rounded, is less than one step off here
SQRT_LOG_2_ABOVE = math.nextafter(SQRT_LOG_2, 1.0)

_PYTHON_PRECISION = 6  # digits of a format without a precision, as Python has it
_DECIMAL_DIGITS = 800  # more than the 767 significant digits of any double

Number = TypeVar("Number", float, FloatArray, float | FloatArray)


def next_above(x: Number, steps: int = 1) -> Number:
    """The double that lies ``steps`` places above x, of a float or of each entry of an array."""
    return _repeated_nextafter(x, steps, math.inf)


def next_below(x: Number, steps: int = 1) -> Number:
    """The double that lies ``steps`` places below x, of a float or of each entry of an array."""
    return _repeated_nextafter(x, steps, -math.inf)


def doubles_around(x: Any) -> tuple[float, float]:
    """The largest double at most a rational number and the least at least it: equal where it is a double."""
    near = float(x)
    return (near if near <= x else next_below(near)), (near if near >= x else next_above(near))


def _repeated_nextafter(x: Number, steps: int, toward: float) -> Number:
    if isinstance(x, np.ndarray):
        with np.errstate(over="ignore", under="ignore"):  # a step from the largest double is infinity, as it should be
            for _ in range(steps):
                x = np.nextafter(x, toward)
        return x
    for _ in range(steps):
        x = math.nextafter(x, toward)
    return x


def enclosure(
    value: Number, error: Number, least: float = -math.inf, most: float = math.inf
) -> tuple[Number, Number, Number]:
    """Value, lower and upper bound of numbers within ``error`` of ``value`` that are known to lie in [least, most].

    An error of 0 says that the value is exact. Any other is widened by one step, for the rounding of the sum.
    """
    if isinstance(value, np.ndarray):
        value = np.clip(value, least, most)
        lower, upper = np.maximum(next_below(value - error), least), np.minimum(next_above(value + error), most)
        return value, np.where(error == 0.0, value, lower), np.where(error == 0.0, value, upper)
    value = min(max(value, least), most)
    if error == 0.0:
        return value, value, value
    return value, max(next_below(value - error), least), min(next_above(value + error), most)


def reconcile_bounds(
    bounds: tuple[FloatArray, FloatArray], other: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Combine two enclosures of the same numbers, each a pair (lower, upper), that were derived independently.

    Where the two overlap, the result is their intersection. Where they do not, at least one of them is false: the
    result is then the smallest interval that contains both, which holds if either does. A bound that is NaN counts as
    false and is left out. The third array marks the entries of both sorts, so that the caller can take another path or
    say in ``method`` that the bounds were widened.

    Examples
    --------
    >>> import numpy as np
    >>> first, second = (np.array([0.0, 0.0]), np.array([2.0, 1.0])), (np.array([1.0, 3.0]), np.array([4.0, 4.0]))
    >>> lower, upper, disagree = reconcile_bounds(first, second)
    >>> lower.tolist(), upper.tolist(), disagree.tolist()
    ([1.0, 0.0], [2.0, 4.0], [False, True])
    """
    lower, upper = np.maximum(bounds[0], other[0]), np.minimum(bounds[1], other[1])
    disagree = ~(lower <= upper)
    lower = np.where(disagree, np.fmin(bounds[0], other[0]), lower)
    return lower, np.where(disagree, np.fmax(bounds[1], other[1]), upper), disagree


def rounded_outward(bound: float, spec: str, *, below: bool) -> str:
    """A bound in the format of a float (``f``, ``e`` or ``g``), rounded toward the outside of its bracket.

    The text, read as a double, is at most ``bound`` if that is a bound from ``below``, else at least ``bound``.
    """
    text = format(bound, spec)
    if not math.isfinite(bound) or spec[-1:] not in "efgEFG":
        return text
    indices = int(spec.rpartition(".")[2][:-1]) if "." in spec else _PYTHON_PRECISION
    from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

    digits = Decimal(repr(float(bound)))  # the shortest that tell this double from all others
    if spec[-1] in "fF":
        last = -indices
    else:  # the leading digit and ``places`` more; with g one fewer, and at least one in all
        last = digits.adjusted() - (indices if spec[-1] in "eE" else max(indices, 1) - 1)
    with localcontext() as context:
        context.prec = _DECIMAL_DIGITS + indices
        return format(float(digits.quantize(Decimal((0, (1,), last)), ROUND_FLOOR if below else ROUND_CEILING)), spec)


def rounded_up(bound: float, digits: int = 3) -> str:
    """An upper bound with at most ``digits`` significant digits, never less than it."""
    return rounded_outward(bound, f".{digits}g", below=False)


def rounded_down(bound: float, digits: int = 3) -> str:
    """A lower bound with at most ``digits`` significant digits, never more than it."""
    return rounded_outward(bound, f".{digits}g", below=True)


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum of two numbers or arrays, and its rounding error, exactly."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def scaled_exponential(value: float, exponent: float) -> float:
    """value e^exponent of a number of at least 0 or an integer of any size, infinite where it overflows."""
    if value <= 0:
        return 0.0
    logarithm = math.log(value) + exponent
    return math.exp(logarithm) if logarithm < 709.0 else math.inf


def log_sum_exp(terms: FloatArray, axis: int = -1) -> Any:
    """log(sum(exp(terms))) over an axis without overflow; -inf where all terms are -inf, inf where one is.

    The largest term is taken out of the sum first, so that every exponential is at most 1. The absolute error is about
    ``UNIT_ROUNDOFF`` times the number of terms plus the size of the result; no bound is claimed.
    """
    largest = terms.max(axis=axis, keepdims=True)
    finite = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        return (np.log(np.sum(np.exp(terms - finite), axis=axis, keepdims=True)) + finite).squeeze(axis)


_ARTANH = 1.0 / np.arange(3.0, 33.0, 2.0)  # artanh z = z + z^3/3 + z^5/5 + ..., enough terms for |z| <= 0.2


def artanh_remainder(y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """z = y/(2 + y), for which ln(1 + y) = 2 artanh z, and (artanh z - z) / z^3."""
    z = y / (2.0 + y)
    return z, np.asarray(np.polynomial.polynomial.polyval(z * z, _ARTANH), dtype=np.float64)


def bennett(y: FloatArray) -> FloatArray:
    """Bennett's function (1 + y) ln(1 + y) - y for y >= -1; about y^2/2."""
    near = (y >= -0.3) & (y <= 0.5)
    z, remainder = artanh_remainder(np.where(near, y, 0.0))
    series = 2.0 * z * z * (1.0 + (1.0 + z) * z * remainder) / (1.0 - z)
    far = np.where(near | (y == -1.0), 0.0, y)
    return np.asarray(np.where(near, series, np.where(y == -1.0, 1.0, (1.0 + far) * np.log1p(far) - far)))


def jensen_shannon_generator(excess: FloatArray) -> FloatArray:
    """phi(1 + excess) for excess >= -1: ln 2 at -1, about excess^2/4 near 0."""
    near = excess <= 1.0
    inner = np.where(near, excess, 0.0)
    ratio = 1.0 + np.where(near, 1.0, excess)
    half = 0.5 + 0.5 * ratio
    return np.asarray(
        np.where(near, bennett(inner) - 2.0 * bennett(inner / 2.0), ratio * np.log(ratio / half) - np.log(half))
    )


_EXP_SERIES = [1.0 / math.factorial(n) for n in range(2, 20)]  # of (e^x - 1 - x) / x^2, enough terms for |x| < 0.5


def exp_excess(x: FloatArray) -> FloatArray:
    """e^x - 1 - x without cancellation, right to 40 units of rounding; about x^2/2."""
    near = np.abs(x) < 0.5
    inner = np.where(near, x, 0.0)
    series = inner * inner * np.polynomial.polynomial.polyval(inner, _EXP_SERIES)
    return np.asarray(np.where(near, series, np.expm1(x) - x))
