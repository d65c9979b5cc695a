"""Weights of how often each outcome occurs in many draws, and the windows of counts that matter.

Notation: of ``draws`` draws, n fall to an outcome; its weight e^(slope n + offset) / n! is the exponential of a
double-double (``csrc/composition/fp_type_sums.h``), with slopes and offsets that are exact fractions here. With slopes
that are logarithms of tilted probabilities, but for a common constant, the weights of counts near the mean are ordinary
numbers, whatever the probability of the type is. Windows hold the counts n with draws KL(n/draws || probability) <= 75:
all others have a tilted probability below e^-75 on either side, by Chernoff's bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IntArray, next_above, next_below
from ..kernels import _type_sums

_TAIL_EXPONENT = 75.0  # counts whose tilted probability is below e^-75 are left out, on either side
# bound: proved - of what is left out: tilted probabilities in doubles move the exponent by less than 1
_TAIL_SLACK = 1.0
# bound: proved - relative error of the weight of a count: an exponential, a product and a sum
WEIGHT_ERROR = 4 * UNIT_ROUNDOFF
_ALL_COUNTS = 48  # draws for which all counts are taken


def count_weights(
    slopes: Sequence[Fraction], shares: FloatArray, draws: int, first: IntArray, last: IntArray
) -> tuple[list[FloatArray], Fraction, float]:
    """Weights of the counts first .. last of each outcome, whose product times e^scale is draws! prod e^(slope n) / n!;
    scale; and the tilted probability of all other counts, where ``shares`` are the tilted probabilities.
    """
    sides = int((first > 0).sum() + (last < draws).sum())
    scale = exact(_type_sums.log_factorial(float(draws)))
    weights = []
    for slope, share, least, most in zip(slopes, shares, first, last, strict=True):
        middle = min(max(int(draws * share), int(least)), int(most))
        offset = Fraction(float(exact(_type_sums.log_factorial(float(middle))) - middle * slope))
        weights.append(_type_sums.weights(float(least), int(most - least) + 1, pair(slope), pair(offset)))
        scale -= offset
    return weights, scale, sides * math.exp(_TAIL_SLACK - _TAIL_EXPONENT)


def count_windows(tilted: FloatArray, draws: int) -> tuple[IntArray, IntArray]:
    """The counts n of each atom with k KL(n/k || probability) at most 75."""
    first, last = np.zeros(tilted.size, dtype=np.int64), np.full(tilted.size, draws, dtype=np.int64)
    if tilted.size == 1:
        return last, last
    if draws <= _ALL_COUNTS:
        return first, last
    mean = draws * tilted
    none = np.zeros(1)
    others = draws * (np.concatenate([none, np.cumsum(tilted[:-1])])
                      + np.concatenate([np.cumsum(tilted[:0:-1])[::-1], none]))

    def exponent(n: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inside = np.where(n > 0.0, n * np.log(n / mean), 0.0)
            outside = np.where(n < draws, (draws - n) * np.log((draws - n) / others), 0.0)
        return np.asarray(inside + outside)

    for ends, far in ((first, 0.0), (last, float(draws))):
        end, halvings = np.full(tilted.size, far), math.ceil(math.log2(draws)) + 2
        _, high = bisect(lambda n: ~(exponent(n) < _TAIL_EXPONENT), mean, end, halvings)  # the exponent of means is 0
        beyond = exponent(end) >= _TAIL_EXPONENT
        result = np.floor(high) if far == 0.0 else np.ceil(high)
        ends[:] = np.where(beyond, result, far).astype(np.int64)
    return first, last


def exact(parts: tuple[float, float]) -> Fraction:
    """The sum of a leading and a trailing part."""
    return Fraction(parts[0]) + Fraction(parts[1])


def pair(x: Fraction) -> tuple[float, float]:
    """Leading and trailing part, off by 2^-106 of x."""
    leading = float(x)
    return leading, float(x - Fraction(leading))


def logarithm(x: Fraction) -> Fraction:
    """Of a positive number that is a sum of doubles, to 2^-98."""
    shift = math.frexp(float(x))[1]
    return exact(_type_sums.logarithm(*pair(x / Fraction(2) ** shift), shift))


def sum_below(x: float, y: Fraction) -> float:
    """A double below x + y, where x is right to two units in the last place."""
    return next_below(float(Fraction(next_below(x, 2)) + y))


def sum_above(x: float, y: Fraction) -> float:
    """A double above x + y, where x is right to two units in the last place."""
    return next_above(float(Fraction(next_above(x, 2)) + y))
