"""Trade-off curves of hypothesis tests.

Notation: a test tells P from Q; alpha is the probability that it says Q under P, beta that it says P under Q; x =
e^epsilon, delta(x) = sup_E Q(E) - x P(E), convex. The least beta at alpha is the convex conjugate (Dong, Roth and Su
2022, proposition 6)

    beta(alpha) = sup over x >= 0 of g(x),   g(x) = 1 - delta(x) - x alpha.

Every x gives a lower bound of beta, from an upper bound of delta. g is concave, so that points a < b < c < d with
bounds of g give upper bounds everywhere: between b and c, g lies below the line through a and b and below that
through c and d; left of b it lies below the line through b and any later point, down to x = 0; right of c below that
through c and any earlier point, up to the x where 1 - delta(infinity) - x alpha is 0. Rounds of six points narrow
both bounds: about the vertex of a parabola, or, at a kink of delta, about the point where the lines cross.

For epsilon < 0, 1 - delta(x) = x (1 - delta'(1/x)), delta' the curve of P against Q: small betas keep their digits.

Two normal distributions of one standard deviation have beta = Phi(Phi^-1(1 - alpha) - distance / sigma). Discrete pairs
have the polygon through the tests that reject the outcomes of the largest ratios.
"""

# bounds: proved - units of rounding of sums in extended precision; steps between points bound nothing

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray, LongDoubleArray, next_above, next_below
from ..conversions._closed_forms import gaussian_trade_off
from ..pairs.curve_pairs import PrivacyCurves
from ..pairs.discrete_pairs import DiscretePair
from ..pairs.log_bounds import certified
from .compositions import certified_curves
from .group_privacy import exact_group_pair, group_pair, group_size
from .neyman_pearson import best_tests

Role: TypeAlias = Literal["p", "q"]

# bound: proved - g and its lines in extended precision, relative to their largest term: an exponential to 16 units,
#    two products, two quotients and three sums
_ROUNDING = 64 * float(np.finfo(np.longdouble).eps)
_EPSILONS = np.geomspace(1e-12, 1e4, 129)  # nats: the points of the first round, 8 to a decade, and their opposites
_ROUNDS = 40  # of refinement at most: about five for smooth curves, three at kinks
# bound: none - only says when another bound is formed
_FLAT_ROUND = 8  # after which the bound from all points of the first round is formed too
_NARROWING = 0.02  # distance of the next inner points, as a part of the distance of the present ones
_STENCIL = np.array([-9.0, -3.0, -1.0, 1.0, 3.0, 9.0])  # the points of a round: far ones show that g falls outside
_KINK = 0.8  # part of the change of slope over five intervals that two neighbours have at a kink; 1/3 or 1/2 without
# bound: none - width of beta, relative to it, at which a point is refined no more
_TARGET = 1e-13
_NOISE = 6.0  # widths of the bounds of g at its highest point that the bounds of beta may be apart
_BLOCK = 512  # alphas whose tables of the first round are formed at a time: 2 MiB each


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TradeOffCurve(Result):
    """The least error of the second kind for each error of the first kind, of a test that tells P from Q.

    Parameters
    ----------
    alpha : ndarray
        Probabilities that the test says Q under P.
    beta : Estimate
        Least probabilities that it says P under Q, of the shape of ``alpha``.
    advantage : Estimate
        The largest 1 - alpha - beta over all alpha: the total variation distance of P and Q.

    Notes
    -----
    **Accuracy** as ``trade_off_curve``, which makes it.

    Source: Dong, Roth and Su 2022, section 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> curve = risk.trade_off_curve(GaussianMechanism(2.0, 1.0), None, 0.1)
    >>> print(f"{curve.beta:.3f}, {curve.advantage:.3f}")
    0.783 [0.782, 0.783], 0.197 [0.197, 0.198]
    """

    alpha: FloatArray
    beta: Estimate
    advantage: Estimate


def trade_off_curve(
    p: Any, q: Any = None, alpha: ArrayLike = 0.05, *, null: Role = "p", group: ArrayLike = 1
) -> TradeOffCurve:
    """The trade-off curve of a pair, as arrays alpha and beta, certified, and the advantage.

    Parameters
    ----------
    p, q : GaussianMixture, Pmf, vector of probabilities, or p alone a GaussianMechanism, a channel or a function
        Any pair with certified bounds. Vectors have one probability for each outcome, on the same outcomes. Of a
        channel the curve of its worst pairs of rows; rows are vectors. Functions of an array epsilon, 0 to inf, return
        an Estimate of its shape: p the curve of P against Q, q that of Q against P, or None if they are the same.
    alpha : array_like
        Errors under the null hypothesis, between 0 and 1, any shape.
    null : {"p", "q"}, default "p"
        Which of the two is the null hypothesis; the other one is the alternative. Of mechanisms and channels, whose
        pairs have no order, both give the same.
    group : int, default 1
        Records that change, at most 1024: the test is of the first against the last of ``group`` + 1 distributions,
        each neighbouring two of which are at most as far apart as the pair. Exact for normal distributions and for
        Gaussian, Laplace and Poisson-sampled Gaussian mechanisms and their compositions, whose records are all removed
        or all added. Of other pairs only bounds are known: one record from the one side, which an attack may quote, and
        the iterated curve 1 - F(..F(alpha)), F the largest power, from the other, which a guarantee may.

    Returns
    -------
    TradeOffCurve
        ``alpha``, ``beta`` and ``advantage``; a guarantee quotes ``beta.lower``.

    Raises
    ------
    DomainError
        For alpha outside of [0, 1], and pairs without certified bounds or with arguments that fit no pair.
    ShapeError
        For distributions of different dimensions, vectors of different lengths, or a mechanism with several sigmas.

    Notes
    -----
    Of composed releases pass what ``compose`` returns. Where its pairs have an order, as ``compose((p, q), k)``, P is
    the null hypothesis unless ``null="q"``. In (mixture, base), as sampled steps have it, the base is the world without
    the record and the null hypothesis of an attack on membership: ``null="q"``. Of mechanisms and channels, which have
    no order, every function here takes the worse of both orders.

    **Accuracy** relative width 1e-12 down to alpha = 1e-300 for two normal distributions of one sigma and for discrete
    pairs; otherwise absolute width 1e-12 where the privacy curve is that sharp. Tested against the closed curve, sums
    in rational arithmetic and likelihood-ratio tests of mixtures in mpmath by ``tests/enclosures/test_trade_off.py``.

    Source: Dong, Roth and Su 2022, proposition 6.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> curve = risk.trade_off_curve(GaussianMechanism(1.0, 1.0), None, [0.01, 0.05, 0.5])
    >>> curve.beta.value.round(4)
    array([0.9076, 0.7405, 0.1587])
    >>> round(curve.advantage.value, 6)
    0.382925
    >>> risk.trade_off_curve([0.75, 0.25], [0.25, 0.75], 0.25).beta.value
    0.25
    """
    pair, records = _oriented(certified_curves(p, q), null), group_size(group)
    errors = validate.real("alpha", alpha, "between 0 and 1", lambda a: (a >= 0) & (a <= 1))
    advantage = certified(group_pair(pair, records).forward, np.zeros(()))
    return TradeOffCurve(errors, _of_group(pair, errors, False, records), advantage)


def true_positive_rate(
    p: Any, q: Any = None, false_positive_rate: ArrayLike = 0.05, *, null: Role = "p", group: ArrayLike = 1
) -> Estimate:
    """The largest true positive rate of an attack at each false positive rate: the curve of its best tests (ROC).

    Parameters
    ----------
    p, q
        As ``trade_off_curve``; the attack claims the alternative, rightly under it and wrongly under the null.
    false_positive_rate : array_like
        Between 0 and 1, any shape.
    null : {"p", "q"}, default "p"
        The distribution under which claims are false; the other one is the alternative. An attack on membership claims
        that the record is there, and its null is the distribution without it: ``null="q"`` for ``compose((mixture,
        base))``, as delta in the direction forward is of such claims.
    group : int, default 1
        As ``trade_off_curve``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``false_positive_rate``: one minus ``beta`` of the trade-off curve, with digits of
        their own where they are small. A guarantee quotes ``upper``.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for a rate outside of [0, 1].

    Notes
    -----
    **Accuracy** as ``trade_off_curve``; relative to the rate where the false positive rate is at most P(q > p), down to
    1e-300. ``tests/enclosures/test_trade_off.py``.

    Source: Kairouz, Oh and Viswanath 2015, theorem 2.1; Carlini et al. 2022, section 4.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> risk.true_positive_rate(GaussianMechanism(1.0, 1.0), None, [1e-300, 0.01]).value
    array([7.65717206e-285, 9.23622481e-002])
    >>> from fastpriv import GaussianMixture
    >>> mixture, base = GaussianMixture([0.9, 0.1], [0.0, 3.0], 1.0), GaussianMixture.single(0.0, 1.0)
    >>> risk.true_positive_rate(mixture, base, 0.001, null="q").value  # who claims that the record is there
    0.0473...
    """
    pair, records = _oriented(certified_curves(p, q), null), group_size(group)
    rates = validate.real("false_positive_rate", false_positive_rate, "between 0 and 1", lambda a: (a >= 0) & (a <= 1))
    return _of_group(pair, rates, True, records)


def _oriented(pair: PrivacyCurves, null: Any) -> PrivacyCurves:
    """The pair with the null hypothesis as its P."""
    return pair if validate.choice("null", null, ("p", "q")) == "p" else pair.swapped()


def _of_group(pair: PrivacyCurves, alpha: FloatArray, power: bool, group: int) -> Estimate:
    """Beta, or the power, of a test of the first against the last of ``group`` + 1 distributions."""
    known = exact_group_pair(pair, group)
    if known is not None:
        return curve_of_pair(known.worst(), alpha, power)
    pair = pair.worst()
    item = curve_of_pair(pair, alpha, power)
    least = alpha
    for _ in range(group):
        least = np.asarray(curve_of_pair(pair, least, power=True).upper)
    if power:
        lower, upper = np.asarray(item.lower), np.maximum(least, item.upper)
    else:
        lower, upper = np.minimum(np.maximum(next_below(1.0 - least), 0.0), item.lower), np.asarray(item.upper)
    method = f"between one record and the iterated curve, {item.method}"
    value = lower + 0.5 * (upper - lower)
    return Estimate(value, lower, upper, kind="certified", unit="probability", method=method)


def curve_of_pair(pair: PrivacyCurves, alpha: FloatArray, power: bool = False) -> Estimate:
    """Beta at each alpha, or the largest power 1 - beta with digits of its own, by the sharpest method for the pair."""
    flat = alpha.reshape(-1)
    if pair.gaussian is not None:
        value, error = gaussian_trade_off(np.asarray(pair.gaussian[0]), pair.gaussian[1], flat, power)
        numbers = value, np.where(error > 0, next_below(value - error), value), next_above(value + error)
        numbers = value, np.clip(numbers[1], 0.0, 1.0), np.where(error > 0, np.clip(numbers[2], 0.0, 1.0), value)
        return _estimate(numbers, alpha, "exact", "Phi(Phi^-1(1 - alpha) - distance / sigma)")
    if pair.discrete is not None:
        return _estimate(_polygon(pair.discrete, flat, power), alpha, "exact", "tests by ratio of probabilities")
    worse = ", in the worse order" if pair.orders else ""
    result = best_tests(pair.orders or [pair], flat)
    if result is not None:
        lower, upper = result[0 if power else 1]
        method = f"tests by their tail probabilities{worse}"
    elif pair.orders is not None:
        rows = [curve_of_pair(order, flat, power) for order in pair.orders]
        least = np.maximum if power else np.minimum
        numbers = tuple(least(a, b) for a, b in zip(*(row.arrays() for row in rows), strict=True))
        return _estimate(numbers, alpha, rows[0].kind, f"{rows[0].method}{worse}")
    else:
        bounds = _conjugate(pair, flat, 1 if power else 0)
        low, high = (-bounds[1], -bounds[0]) if power else bounds
        lower, upper = next_below(low.astype(np.float64)), next_above(high.astype(np.float64))
        method = "conjugate of the privacy curve"
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    if power:
        lower, upper = np.where(flat == 1.0, 1.0, np.maximum(lower, flat)), np.maximum(upper, flat)
    else:
        upper = np.where(flat == 1.0, 0.0, np.minimum(upper, next_above(1.0 - flat)))
    lower = np.minimum(lower, upper)
    middle = lower + 0.5 * (upper - lower)
    return _estimate((middle, lower, upper), alpha, "certified", method)


def _estimate(numbers: tuple[Any, ...], alpha: FloatArray, kind: Any, method: str) -> Estimate:
    value, lower, upper = (x.reshape(alpha.shape) for x in numbers)
    return Estimate(np.clip(value, lower, upper), lower, upper, kind=kind, unit="probability", method=method)


def _polygon(pair: DiscretePair, alpha: FloatArray, power: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Value and bounds of beta, or of the power, of a discrete pair, as passed and divided by its sums.

    A test that rejects outcomes in the order of falling q / p has beta = B(k+1) + q_k (A(k+1) - alpha) / p_k between
    its corners, A and B cumulative sums from the side on which they are small, and the power C(k) + q_k (alpha - A(k))
    / p_k, C cumulative sums from the other side. Equal ratios in any order give the same polygon; so do, to the
    rounding that the error covers, ratios that agree in extended precision.
    """
    p, q = pair.p.astype(np.longdouble), pair.q.astype(np.longdouble)
    with np.errstate(divide="ignore"):
        order = np.argsort(-(q / p), kind="stable")
    p, q = p[order], q[order]
    a = np.concatenate([[0], np.cumsum(p)])
    b = np.concatenate([np.cumsum(q[::-1])[::-1], [0]])
    c = np.concatenate([[0], np.cumsum(q)])
    eps = float(np.finfo(np.longdouble).eps)
    unit = (2 * p.size + 8) * eps

    def corner_value(level: Any) -> tuple[LongDoubleArray, LongDoubleArray]:
        k = np.clip(np.searchsorted(a, level, side="right") - 1, 0, p.size - 1)
        k = np.where(p[k] == 0.0, np.minimum(k + 1, p.size - 1), k)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(p[k] == 0.0, 0.0, q[k] / p[k])
        if power:
            value = c[k] + slope * np.clip(level - a[k], 0.0, p[k])
            return value, unit * (value + slope * np.minimum(level, a[k + 1]))
        value = b[k + 1] + slope * np.clip(a[k + 1] - level, 0.0, p[k])
        return value, unit * (value + slope * a[k + 1])

    value, _ = corner_value(alpha.astype(np.longdouble))
    more, fewer = (alpha * (1 + sign * np.longdouble(1.01 * pair.p_relative_error)) for sign in (1, -1))
    low, low_error = corner_value(fewer if power else more)
    high, high_error = corner_value(more if power else fewer)
    lower = np.maximum(next_below((low * (1 - 1.01 * pair.q_relative_error) - low_error).astype(np.float64)), 0.0)
    upper = next_above((high * (1 + 1.01 * pair.q_relative_error) + high_error).astype(np.float64))
    if power:
        lower, upper = np.where(alpha == 1.0, 1.0, lower), np.minimum(upper, 1.0)
    else:
        upper = np.where(alpha == 1.0, 0.0, np.minimum(upper, next_above(1.0 - alpha)))
    return value.astype(np.float64), np.minimum(lower, upper), upper


class _Points:
    """Points epsilon, one row an alpha, with x = e^epsilon and bounds of 1 - delta(x) less ``less`` (0 or 1: the part
    that a power needs keeps the digits of a small delta), in extended precision."""

    def __init__(self, epsilon: FloatArray, x: LongDoubleArray, low: LongDoubleArray, high: LongDoubleArray) -> None:
        self.epsilon, self.x, self.low, self.high = epsilon, x, low, high

    @classmethod
    def evaluated(cls, pair: PrivacyCurves, epsilon: FloatArray, less: int) -> _Points:
        positive = epsilon >= 0.0
        low, high = np.empty((2, *epsilon.shape), dtype=np.longdouble)
        for some, curve in ((positive, pair.backward), (~positive, pair.forward)):
            if some.any():
                delta = certified(curve, np.abs(epsilon[some]))
                low[some], high[some] = delta.upper, delta.lower
        wide = epsilon.astype(np.longdouble)
        x = np.exp(wide)
        factor = np.where(positive, 1, x)
        if less:
            remainder = np.where(positive, 0, np.expm1(np.minimum(wide, 0)))
            return cls(epsilon, x, remainder - low * factor, remainder - high * factor)
        return cls(epsilon, x, np.maximum(1 - low, 0) * factor, (1 - high) * factor)

    def parts(self) -> tuple[Any, ...]:
        return self.epsilon, self.x, self.low, self.high

    def rows(self, index: Any) -> _Points:
        return _Points(*(part[index] for part in self.parts()))

    def bounds(self, alpha: FloatArray) -> tuple[LongDoubleArray, LongDoubleArray]:
        """Lower and upper bounds of g at each point."""
        with np.errstate(over="ignore", invalid="ignore"):
            line = self.x * alpha[:, None]
            error = _ROUNDING * (np.maximum(np.abs(self.high), np.abs(self.low)) + line)
            return self.low - line - error, self.high - line + error


def _conjugate(pair: PrivacyCurves, alpha: FloatArray, less: int) -> tuple[LongDoubleArray, LongDoubleArray]:
    """Lower and upper bounds of the supremum of g, less 0 or 1, at each alpha."""
    grid = _Points.evaluated(pair, np.concatenate([-_EPSILONS[::-1], [0.0], _EPSILONS]), less)
    end = 1 - np.longdouble(float(certified(pair.backward, np.asarray(np.inf)).lower))  # of 1 - delta, at infinity
    lower, upper = np.full(alpha.size, -less, dtype=np.longdouble), (1 - less) - alpha.astype(np.longdouble)
    highest = np.empty(alpha.size, dtype=np.intp)
    for start in range(0, alpha.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        low, high = _Points(*(x[None] for x in grid.parts())).bounds(alpha[part])
        highest[part] = np.argmax(low + high, axis=1)
        lower[part] = np.maximum(lower[part], low.max(axis=1))
    window = np.clip(highest, 2, grid.epsilon.size - 4)[:, None] + np.arange(-2, 4)
    points = _Points(*(x[window] for x in grid.parts()))
    rows = np.arange(alpha.size)
    for turn in range(_ROUNDS + 1):
        low, high = points.bounds(alpha[rows])
        upper[rows] = np.fmin(upper[rows], _highest(points.x, low, high, alpha[rows], end, less))
        lower[rows] = np.fmax(lower[rows], low.max(axis=1))
        best = np.argmax(low + high, axis=1)[:, None]
        noise = np.take_along_axis(high - low, best, axis=1)[:, 0]
        open_rows = upper[rows] - lower[rows] > _TARGET * np.abs(upper[rows]) + _NOISE * noise
        if turn == _ROUNDS or not open_rows.any():
            break
        if turn == _FLAT_ROUND:  # g may be flat from kink to kink: wide lines see that, narrow ones only noise
            for row in rows[open_rows]:
                item = alpha[row : row + 1]
                every = _Points(*(x[None] for x in grid.parts()))
                upper[row] = np.fmin(upper[row], _highest(every.x, *every.bounds(item), item, end, less)[0])
        rows, points, low, high = rows[open_rows], points.rows(open_rows), low[open_rows], high[open_rows]
        points = _Points.evaluated(pair, _next_points(points, low, high), less)
    return lower, upper


def _highest(x: Any, low: Any, high: Any, alpha: FloatArray, end: Any, less: int) -> LongDoubleArray:
    """An upper bound of g from six points, by the lines at the head of this module."""

    def line(first: int, second: int, at: Any) -> Any:
        """Height of g at most, at a point beyond the second."""
        ratio = (at - x[:, second]) / (x[:, second] - x[:, first])
        level, step = high[:, second], high[:, second] - low[:, first]
        return np.maximum(level, level + ratio * step + _ROUNDING * (1 + ratio) * (np.abs(level) + np.abs(step)))

    last = x.shape[1] - 1
    with np.errstate(all="ignore"):
        bound = np.fmin.reduce([line(k, 0, 0.0) for k in range(1, last + 1)])
        bound = np.fmin(bound, x[:, 0] - less)  # delta(x) >= 1 - x
        after = np.fmin.reduce([line(k, last, np.maximum(end / alpha, x[:, last])) for k in range(last)])
        bound = np.maximum(bound, np.fmin(after, np.maximum(end - less - x[:, last] * alpha, high[:, last])))
        for k in range(last):
            rising = line(k - 1, k, x[:, k + 1]) if k else np.inf
            falling = line(k + 2, k + 1, x[:, k]) if k + 1 < last else np.inf
            bound = np.maximum(bound, np.fmin(rising, falling))
    return np.asarray(np.where(np.isnan(bound), np.inf, bound))


def _next_points(points: _Points, low: Any, high: Any) -> FloatArray:
    """Six points about the place where g seems to be highest; over all of the interval where g is steep there."""
    e, height = points.epsilon, (low + high) / 2
    best = np.argmax(height, axis=1)
    inner = np.clip(best, 1, e.shape[1] - 2)

    def column(array: Any, index: Any) -> Any:
        return np.take_along_axis(array, index[:, None], axis=1)[:, 0]

    middle = column(e, inner)
    below, above = middle - column(e, inner - 1), column(e, inner + 1) - middle
    with np.errstate(all="ignore"):
        fall, drop = ((column(height, inner) - column(height, inner + k)).astype(np.float64) for k in (-1, 1))
        curvature = 2.0 * (fall / below + drop / above) / (below + above)
        vertex = middle + 0.5 * (above**2 * fall - below**2 * drop) / (above * fall + below * drop)
        slopes = np.diff(height, axis=1) / np.diff(points.x, axis=1)
        change = slopes[:, :-2] - slopes[:, 2:]
        first = np.argmax(change, axis=1)
        kink = column(change, first) > _KINK * (slopes[:, 0] - slopes[:, -1])
        left, right = column(slopes, first), column(slopes, first + 2)
        origin = column(points.x, first + 1)
        step = column(points.x, first + 2) - origin
        fall_to_right = column(height, first + 2) - column(height, first + 1) - right * step
        cross = origin + fall_to_right / (left - right)
        cross = np.log(cross).astype(np.float64)
        least = 0.5 * np.sqrt(column(high - low, inner).astype(np.float64) / curvature)  # g falls by more than noise
    centre = np.where(kink & np.isfinite(cross), cross, np.where(np.isfinite(vertex), vertex, middle))
    centre = np.clip(centre, middle - below, middle + above)
    step = np.fmax(_NARROWING * np.maximum(below, above), np.where(kink | ~np.isfinite(least), 0.0, least))
    with np.errstate(invalid="ignore"):
        steep = np.maximum(fall, drop) > np.abs(column(height, inner)).astype(np.float64)
    centre, step = np.where(steep, middle, centre), np.where(steep, np.maximum(below, above) / 9.0, step)
    step = np.maximum(step, 1e-15 * (1e-300 + np.abs(centre)))
    at_end = best != inner
    centre = np.where(at_end, column(e, best), centre)
    step = np.where(at_end, (e[:, -1] - e[:, 0]) / 6.0, step)
    return np.asarray(np.clip(centre[:, None] + step[:, None] * _STENCIL, -_EPSILONS[-1], _EPSILONS[-1]))
