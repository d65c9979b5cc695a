"""Group privacy: what a guarantee for one record says about several.

Notation: P_0, .., P_g are the distributions of the release as the records of a group change one after the other, each
neighbouring two a pair with the curve D(x) = sup_E P(E) - x Q(E) and the largest power F(alpha) of a test at level
alpha. A test of P_0 against P_g has at most the power F(F(..F(alpha))), g times (Dong, Roth and Su 2022, theorem 2.14),
and delta at g epsilon is at most D(e^epsilon) (1 + x + .. + x^(g - 1)) with x = e^epsilon. Two normal distributions
have g times the distance, exactly.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..composition.engines import gaussian_bounds
from ..composition.pairs import Curve, Pair, certified
from ..conversions import group_dp_delta_from_dp
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from ..numerics import FloatArray, next_below

__all__ = ["group_pair", "group_size"]

_MOST_RECORDS = 1024  # of a group: times the distance of two means, exact in extended precision


def group_size(group: ArrayLike) -> int:
    """The number of records, checked."""
    return _validate.count("group", group, 1, _MOST_RECORDS)


def group_pair(pair: Pair, group: int) -> Pair:
    """The pair of a group, by its curves: exact for normal distributions, upper bounds otherwise."""
    if group == 1:
        return pair
    if pair.gaussian is not None:
        distance, sigma = pair.gaussian
        if pair.squared_distance is not None:
            square = group**2 * pair.squared_distance
            curve = partial(_gaussian_curve, square)
            gaussian = np.longdouble(distance) * group, sigma
            return replace(pair, forward=curve, backward=curve, gaussian=gaussian, squared_distance=square)
        wide = np.longdouble(distance) * group
        mechanism = GaussianMechanism(sigma, float(wide))
        return replace(pair, forward=mechanism.delta, backward=mechanism.delta, gaussian=(wide, sigma))
    return Pair(_group_curve(pair.forward, group), _group_curve(pair.backward, group), of_one_pair=False)


def _gaussian_curve(square: Fraction, epsilon: FloatArray) -> Estimate:
    levels = np.asarray(epsilon, dtype=np.float64)
    found = gaussian_bounds(square, levels.ravel())
    rows = (row.reshape(levels.shape) for row in found.numbers)
    return Estimate(*rows, kind="certified", unit="log probability", method=found.method).to("probability")


def _group_curve(curve: Curve, group: int) -> Curve:
    def of_group(epsilon: FloatArray) -> Estimate:
        each = np.maximum(next_below(np.asarray(epsilon) / group), 0.0)
        return group_dp_delta_from_dp(each, certified(curve, each), group)

    return of_group
