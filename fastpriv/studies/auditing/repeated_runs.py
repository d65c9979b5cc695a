"""What counts of independent runs exclude.

Notation: of n1 runs with the target in, ``tp`` are claimed, of n0 runs without it ``fp``; p1 and p0 are the true rates;
a = 1 - confidence. A claim says that p1 <= F(p0), F = 1 - trade-off curve of the runs without against those with the
target: increasing and concave. (epsilon, delta) is F(x) = min(delta + e^epsilon x, 1 - e^-epsilon (1 - delta - x)),
both directions of the definition; mu-Gaussian is F(x) = Phi(Phi^-1(x) + mu).

Clopper-Pearson. p0 <= U and p1 >= L, each but with probability a / 2: the claim is excluded where L > F(U). One
sided bounds serve both directions, as 1 - p0 >= 1 - U and 1 - p1 <= 1 - L are the same two events.

Product. V0 = P(Bin(n0, p0) <= fp) and V1 = P(Bin(n1, p1) >= tp) at the true rates are independent, and each is at most
x with probability at most x. Hence P(V0 V1 <= c) <= c (1 - log c) (Fisher 1932). With u0(x) = P(Bin(n0, x) <= fp)
decreasing and u1 increasing, a true claim has V0 V1 <= sup over x of u0(x) u1(F(x)) = s: the claim is excluded where
s (1 - log s) <= a. u0 and u1 are tails of beta distributions, whose densities are log-concave: log u0 and log u1 are
concave, and so is log u1(F): the supremum is found by a section, and the largest parameter that is excluded is

    inf over x of theta(x, L(x)),   u1(L(x)) = c / u0(x),   c (1 - log c) = a,

theta(x, L) being the parameter at which F(x) = L. It is quasi-convex in x, and at most theta(x2, L(x1)) where the
section has left [x1, x2]. At equal evidence on both sides this costs 2.6 standard errors where two bounds cost 3.9.

Threshold at an order statistic. Where the threshold is the (k+1)-th largest score of the n0 non-members, P(Bin(n0, p0)
<= k) is uniform at its rate p0, or larger with ties, and members are claimed independently of it: both forms hold with
fp = k. So they do with the (k+1)-th smallest score of the members. K thresholds fixed by their ranks cost a / K each.

Sources: Clopper and Pearson 1934; Fisher 1932, section 21.1; Jagielski, Ullman and Oprea 2020; Dong, Roth and Su 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from ...base.numerics import FloatArray
from ...base.parallel import blocks
from ...kernels import tail_products
from ...sampling.statistics.intervals import binomial_tails, least_rates, most_rates

Parameter = Callable[[FloatArray, FloatArray, FloatArray, Any], FloatArray]  # theta(x, L, 1 - L, rows)
Claim = tuple[int, Any, Any]  # a kind of ``tail_products``, and epsilon and delta, or mu twice, or slopes and heights
ClaimOf = Callable[[FloatArray, FloatArray], Claim]  # of a parameter and rows

_SECTION = (math.sqrt(5.0) - 1.0) / 2.0  # the golden ratio, by which each section shortens an interval
_SECTIONS = 48  # golden sections: the interval that is left is 1e-10 of the first one
_PIECE = 2**9  # audits of one call of the kernel
# bound: none - by how much a parameter is lowered before it is proved to be excluded, and how often
_MARGIN, _TRIES = 1e-11, 16


def excluded_by_two_bounds(rows: FloatArray, theta: Parameter, error: float) -> FloatArray:
    """The least parameter that is not excluded by two bounds, of each row (tp, n1, fp, n0, ...)."""
    tp, n1, fp, n0 = rows[:, :4].T
    missed = most_rates(n1 - tp, n1, error / 2.0)
    return theta(most_rates(fp, n0, error / 2.0), _complement(missed, tp, n1, error / 2.0), missed, rows)


def excluded_by_product(rows: FloatArray, theta: Parameter, claim: ClaimOf, error: float) -> FloatArray:
    """Parameters that the product of two p-values excludes, as large as may be, of each row (tp, n1, fp, n0, ...)."""
    critical = math.exp(1.0 + float(special.lambertw(-error / math.e, -1).real))
    while critical * (1.0 - math.log(critical)) > error * (1.0 - _MARGIN):
        critical *= 1.0 - _MARGIN
    tp, n1, fp, n0 = rows[:, :4].T

    def parameter(x: FloatArray, beside: FloatArray) -> FloatArray:
        """theta(x, L(beside))."""
        level = np.minimum(critical / np.maximum(binomial_tails(n0 - fp, n0, 1.0 - beside, beside)[0], critical), 1.0)
        missed = most_rates(n1 - tp, n1, level)
        return theta(x, _complement(missed, tp, n1, level), missed, rows)

    x1, x2 = _section(np.zeros(len(rows)), most_rates(fp, n0, critical), lambda x: parameter(x, x))
    lowered, proved = parameter(x2, x1), np.zeros(len(rows), dtype=bool)
    for step in _MARGIN * 4.0 ** np.arange(_TRIES):
        lowered = np.where(proved, lowered, np.maximum(lowered - step * (1.0 + lowered), 0.0))
        largest = _greatest_product(rows, claim(lowered, rows), np.stack([x1, x2], axis=1))
        proved |= (lowered == 0.0) | (largest <= math.log(critical) - _MARGIN)
        if proved.all():
            break
    return np.where(proved, lowered, 0.0)


def product_p_value(rows: FloatArray, claim: Claim) -> FloatArray:
    """Upper bounds of the p-value of the claim p1 <= F(p0), of each row (tp, n1, fp, n0, ...)."""
    largest = np.minimum(_greatest_product(rows, claim, np.zeros((len(rows), 2))) + _MARGIN, 0.0)
    with np.errstate(invalid="ignore"):
        return np.where(largest > -np.inf, np.minimum(np.exp(largest) * (1.0 - largest), 1.0), 0.0)


def _greatest_product(rows: FloatArray, claim: Claim, around: FloatArray) -> FloatArray:
    """Upper bounds of log u0(x) u1(F(x)) for all x, largest ``around`` these x: docs/proofs/roundings.md, 13.27."""
    (kind, *parameters), out = claim, np.empty(len(rows))
    numbers, shared = [np.ascontiguousarray(x) for x in (rows, *parameters)], kind == tail_products.LINES
    for part in blocks(len(rows), _PIECE):
        counts, first, second = (x if shared and i else x[part] for i, x in enumerate(numbers))
        tail_products.greatest_products(counts, kind, first, second, around[part], out[part])
    return out


def _complement(missed: FloatArray, tp: FloatArray, n1: FloatArray, error: Any) -> FloatArray:
    """Lower bounds of p1 beside the upper bounds of 1 - p1, with digits of their own where they are small."""
    small = missed > 0.5
    return np.where(small, least_rates(tp, n1, np.where(small, error, 0.5)), 1.0 - missed)


def _section(low: FloatArray, high: FloatArray, cost: Callable[[FloatArray], Any]) -> tuple[FloatArray, FloatArray]:
    """Intervals that hold the minimum of a quasi-convex function."""
    inner = np.stack([high - _SECTION * (high - low), low + _SECTION * (high - low)])
    costs = np.stack([cost(inner[0]), cost(inner[1])])
    for _ in range(_SECTIONS):
        right = costs[0] > costs[1]
        low, high = np.where(right, inner[0], low), np.where(right, high, inner[1])
        new = np.where(right, low + _SECTION * (high - low), high - _SECTION * (high - low))
        result = cost(new)
        inner = np.where(right, np.stack([inner[1], new]), np.stack([new, inner[0]]))
        costs = np.where(right, np.stack([costs[1], result]), np.stack([result, costs[0]]))
    return low, high
