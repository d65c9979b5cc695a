"""The order of two mechanisms, with its proof or its counterexample.

Notation: a pair (P, Q) has the curve D(x) = sup_E Q(E) - x P(E) over x = e^epsilon in [0, infinity). For pairs 1 and 2
these say the same (Dong, Roth and Su 2022, proposition 6; Blackwell 1953, for two hypotheses):

    D_1(x) <= D_2(x) for all x: the privacy profile in both directions, as x < 1 is the other direction;
    beta_1(alpha) >= beta_2(alpha) for all alpha;
    for every prior q and weight gamma the weighted membership advantage of pair 1,
        (1 - gamma) q D_1(x) with x = gamma (1 - q) / ((1 - gamma) q), is at most that of pair 2.

Then pair 1 is a garbling of pair 2. Where one of the three fails at a point, the others fail at the points that belong
to it: at q = 1/2, gamma = x / (1 + x), and at the alpha where a line of slope -x touches the curve beta of the pair
that is less private.

Proof of an order. Between neighbouring points D_1 lies below its chord, and D_2 above the lines through the two points
before and the two points after: the largest excess of D_1 is at an end, or where these lines cross. Intervals that do
not settle the order are halved. Left of the first point both curves are within x of 1; right of the last D_1 only falls
and D_2 is at least D_2(infinity).
"""

# bounds: proved - rounding of the logarithm of odds; the tolerance is the caller's

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.estimate import Estimate, Result
from ..base.numerics import FloatArray, LongDoubleArray, next_above, next_below
from ..pairs.curve_pairs import PrivacyCurves
from ..pairs.log_bounds import certified
from .compositions import certified_curves
from .trade_off import curve_of_pair

# bound: none - excess of delta that counts as none unless the caller says otherwise
_TOLERANCE = 1e-9
_EPSILONS = np.geomspace(1e-3, 700.0, 60)  # nats: the points of the first round, with 0 and their opposites
_AT_ONCE = 6  # points of the first round between two looks at where both curves have ended
# bound: none - part of the tolerance below which a curve counts as ended
_ENDED = 1e-3
_MAX_POINTS = 2**17  # beyond which a comparison stays undecided
# bound: proved - chords and lines in extended precision, relative to 1: eight operations
_ROUNDING = 32 * float(np.finfo(np.longdouble).eps)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OrderCounterexample(Result):
    """A point at which one pair is less private than the other, in all three forms.

    Parameters
    ----------
    less_private : str
        "first" or "second".
    epsilon : float
        A real epsilon at which its delta is larger, in nats.
    delta_1, delta_2 : Estimate
        sup_E Q(E) - e^epsilon P(E) of both pairs.
    alpha : float
        An error of the first kind at which its error of the second kind is smaller, where ``beta_1`` and ``beta_2``
        prove it.
    beta_1, beta_2 : Estimate
        These errors of both pairs.
    prior, gamma : float
        A prior probability of Q and a weight for which its weighted membership advantage is larger.
    advantage_1, advantage_2 : Estimate
        These advantages, the largest (1 - gamma) prior Q(E) - gamma (1 - prior) P(E).

    Notes
    -----
    **Accuracy** as ``compare_mechanisms``, which makes it.

    Source: the head of fastpriv/composition/comparison.py.

    Examples
    --------
    >>> from fastpriv import risk
    >>> found = risk.compare_mechanisms(([0.9, 0.1], [0.1, 0.9]), ([0.6, 0.4, 0.0], [0.0, 0.4, 0.6]))
    >>> one = found.counterexamples[0]
    >>> one.less_private, round(one.epsilon, 3), one.delta_1.value, one.delta_2.value
    ('first', 0.0, 0.8, 0.6)
    """

    less_private: str
    epsilon: float
    delta_1: Estimate
    delta_2: Estimate
    alpha: float
    beta_1: Estimate
    beta_2: Estimate
    prior: float
    gamma: float
    advantage_1: Estimate
    advantage_2: Estimate


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MechanismComparison(Result):
    """What ``compare_mechanisms`` proved.

    Parameters
    ----------
    relation : str
        "first at least as private", "second at least as private", "equally private", "incomparable" or "undecided".
    excess_1, excess_2 : Estimate
        The largest delta of the first pair minus that of the second over all real epsilons, and the reverse; at least
        0, since both curves start at 1. An order is proved up to its ``upper``.
    counterexamples : tuple of OrderCounterexample
        One for each order that fails.

    Notes
    -----
    **Accuracy** as ``compare_mechanisms``, which makes it.

    Source: the head of fastpriv/composition/comparison.py.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, risk
    >>> found = risk.compare_mechanisms(GaussianMechanism(2.0, 1.0), GaussianMechanism(1.0, 1.0))
    >>> found.relation, found.excess_1.value
    ('first at least as private', 0.0)
    """

    relation: str
    excess_1: Estimate
    excess_2: Estimate
    counterexamples: tuple[OrderCounterexample, ...]


def compare_mechanisms(pair_1: Any, pair_2: Any, *, tolerance: ArrayLike = _TOLERANCE) -> MechanismComparison:
    """Whether one mechanism is at least as private as another, against every test and for every prior and weight.

    Parameters
    ----------
    pair_1, pair_2 : tuple (p, q), or a GaussianMechanism, a channel or a function
        As p and q of ``trade_off_curve``.
    tolerance : float, default 1e-9
        Excess of delta that counts as none, from 1e-15 to 0.1, and how far the two sides of an excess are apart.

    Returns
    -------
    MechanismComparison
        The relation, the largest excess in both directions with bounds, and a counterexample to each order that fails.
        "undecided" where the bounds of the curves prove neither an order up to the tolerance nor a counterexample.

    Raises
    ------
    DomainError, ShapeError
        As ``trade_off_curve``, and for a tolerance out of range.

    Notes
    -----
    The order of the profile in both directions, of the trade-off curves, and of the weighted membership advantages for
    all priors and weights are one order. Of a channel the worst pairs of its rows are compared, at each epsilon by
    themselves.

    **Accuracy** bounds of the excess hold by convexity; tested against rational arithmetic and closed curves by
    ``tests/enclosures/test_risk.py``.

    Source: Dong, Roth and Su 2022, proposition 6; Blackwell 1953, theorem 6; Kaissis et al. 2024, theorem 1.

    Examples
    --------
    >>> from fastpriv import risk
    >>> binary, erasure = ([0.9, 0.1], [0.1, 0.9]), ([0.6, 0.4, 0.0], [0.0, 0.4, 0.6])
    >>> risk.compare_mechanisms(binary, erasure).relation
    'incomparable'
    """
    pairs = [
        validate.with_argument_name("p must be a", f"{name} must be a", partial(
            certified_curves, *(item if isinstance(item, tuple) and len(item) == 2 else (item, None))
        )).worst() for name, item in (("pair_1", pair_1), ("pair_2", pair_2))
    ]
    most = validate.scalar("tolerance", tolerance, "from 1e-15 to 0.1", lambda x: (x >= 1e-15) & (x <= 0.1))
    excesses = _excesses_of_curves(pairs[0], pairs[1], most)
    result = [Estimate(0.5 * (low + high) if low > 0.0 else 0.0, low, high, kind="certified", unit="probability",
                      method="chords and lines of both curves") for low, high, _ in excesses]
    fails = [entry.lower > most for entry in result]
    holds = [element.upper <= most for element in result]
    counterexamples = tuple(
        _counterexample(name, pairs, epsilon)
        for name, bad, (_, _, epsilon) in zip(("first", "second"), fails, excesses, strict=True) if bad
    )
    relations = {
        "incomparable": all(fails), "equally private": all(holds), "first at least as private": holds[0],
        "second at least as private": holds[1], "undecided": True,
    }
    relation = next(text for text, proved in relations.items() if proved)
    return MechanismComparison(relation, result[0], result[1], counterexamples)


def _excesses_of_curves(first: PrivacyCurves, second: PrivacyCurves, most: float) -> list[tuple[float, float, float]]:
    """Bounds of the largest D_1 - D_2 and D_2 - D_1, each with an epsilon where the lower bound is attained."""
    epsilon = np.concatenate([-_EPSILONS[::-1], [0.0], _EPSILONS])
    curves: list[Any] = [_bounds_to_the_end(pair, epsilon, most) for pair in (first, second)]
    ends = [np.longdouble(float(certified(pair.backward, np.asarray(np.inf)).lower)) for pair in (first, second)]
    while True:
        x = np.exp(epsilon.astype(np.longdouble))
        lowest, bounds = [], []
        for a, b in ((0, 1), (1, 0)):
            lowest.append(np.maximum(curves[a][0] - curves[b][1], 0))
            bounds.append(_interval_excesses(x, curves[a][1], *curves[b]))
        goals = [0.5 * most + float(low.max()) for low in lowest]
        wide = (bounds[0] > goals[0]) | (bounds[1] > goals[1])
        if not wide.any() or epsilon.size + int(wide.sum()) > _MAX_POINTS:
            break
        middles = 0.5 * (epsilon[:-1] + epsilon[1:])[wide]
        if not ((middles > epsilon[:-1][wide]) & (middles < epsilon[1:][wide])).any():
            break
        order = np.argsort(np.concatenate([epsilon, middles]), kind="stable")
        curves = [
            tuple(np.concatenate(two)[order] for two in zip(curves[k], _both_bounds(pair, middles), strict=True))
            for k, pair in enumerate((first, second))
        ]
        epsilon = np.concatenate([epsilon, middles])[order]
    result = []
    for (a, b), low, bound in zip(((0, 1), (1, 0)), lowest, bounds, strict=True):
        high = max(bound.max(), curves[a][1][-1] - ends[b], x[0], low.max())
        at = int(np.argmax(low))
        lower, upper = max(next_below(float(low[at])), 0.0), next_above(float(high))
        result.append((lower, min(max(upper, 0.0), 1.0), float(epsilon[at])))
    return result


def _bounds_to_the_end(
    pair: PrivacyCurves, epsilon: FloatArray, most: float
) -> tuple[LongDoubleArray, LongDoubleArray]:
    """``_both_bounds`` at rising epsilons with their opposites: where a curve is as good as at its end, that is what
    bounds it, as both fall.
    """
    positive = epsilon[epsilon >= 0.0]
    rows: list[FloatArray] = []
    for curve in (pair.backward, pair.forward):
        if rows and pair.forward is pair.backward:
            rows.append(rows[0])
            break
        end = float(certified(curve, np.asarray(np.inf)).lower)
        bounds = np.full((2, positive.size), end)
        for start in range(0, positive.size, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            result = certified(curve, positive[part])
            bounds[:, part] = result.lower, result.upper
            last = float(np.asarray(result.upper)[-1])
            if last <= end + _ENDED * most:
                bounds[1, part.stop :] = last
                break
        rows.append(bounds)
    return _in_extended_precision(epsilon, np.concatenate([rows[1][:, :0:-1], rows[0]], axis=1))


def _both_bounds(pair: PrivacyCurves, epsilon: FloatArray) -> tuple[LongDoubleArray, LongDoubleArray]:
    """Lower and upper bounds of D at real epsilons, in extended precision."""
    bounds = np.empty((2, epsilon.size))
    positive = epsilon >= 0.0
    for some, curve in ((positive, pair.backward), (~positive, pair.forward)):
        if some.any():
            delta = certified(curve, np.abs(epsilon[some]))
            bounds[:, some] = np.asarray(delta.lower), np.asarray(delta.upper)
    return _in_extended_precision(epsilon, bounds)


def _in_extended_precision(epsilon: FloatArray, deltas: FloatArray) -> tuple[LongDoubleArray, LongDoubleArray]:
    """Bounds of D from those of delta, of the other direction at negative epsilons."""
    x, positive = np.exp(epsilon.astype(np.longdouble)), epsilon >= 0.0
    bounds = np.where(positive, deltas, 1 - x + x * deltas)
    return bounds[0] - np.where(positive, 0, _ROUNDING), bounds[1] + np.where(positive, 0, _ROUNDING)


def _interval_excesses(x: Any, upper: Any, low: Any, high: Any) -> LongDoubleArray:
    """Upper bounds of the excess over each interval: the chord of ``upper`` over the lines of the other curve."""
    flat = np.zeros(1, dtype=np.longdouble)
    fall = (high[:-1] - low[1:]) / np.diff(x)  # minus the steepest slope that the lower curve may have had before
    rise = (high[1:] - low[:-1]) / np.diff(x)
    before = np.concatenate([flat, -fall[:-1]])  # slopes of the lines from the left; none for the first interval
    after = np.concatenate([rise[1:], flat])
    left, right = low[:-1].copy(), low[1:]
    left[0] = right[0]
    width = np.diff(x)
    with np.errstate(all="ignore"):
        cross = (left - right - after * -width) / (after - before)  # from the left end
        cross = np.where(np.isfinite(cross), np.clip(cross, 0, width), 0)
    line = np.maximum(left + before * cross, right + after * (cross - width))
    chord = upper[:-1] + (upper[1:] - upper[:-1]) * (cross / width)
    ends = np.maximum(upper[:-1] - low[:-1], upper[1:] - low[1:])
    return np.asarray(np.maximum(ends, chord - line) + _ROUNDING)


def _counterexample(name: str, pairs: list[PrivacyCurves], epsilon: float) -> OrderCounterexample:
    """Both curves at this epsilon, at the alpha of a test and at a prior that belong to it."""
    worse = pairs[0] if name == "first" else pairs[1]
    deltas = [_estimate(*_both_bounds(pair, np.array([epsilon]))) for pair in pairs]
    steps = np.array([1e-6, 1e-4, 1e-2, 0.1])
    around = np.concatenate([epsilon - steps, [epsilon], epsilon + steps])
    heights = np.mean(_both_bounds(worse, around), axis=0)
    x = np.exp(around.astype(np.longdouble))
    centre = steps.size
    slopes = [(heights[k] - heights[centre]) / (x[centre] - x[k]) for k in range(around.size) if k != centre]
    levels = np.clip(np.array(slopes, dtype=np.float64), 0.0, 1.0)
    betas = [curve_of_pair(pair, levels) for pair in pairs]
    worse_beta, better_beta = betas if name == "first" else betas[::-1]
    gaps = np.asarray(better_beta.lower) - np.asarray(worse_beta.upper)
    best = int(np.argmax(gaps))
    with np.errstate(over="ignore"):
        share = float(1.0 / (1.0 + np.exp(abs(epsilon))))
    prior, gamma = (share, 0.5) if epsilon >= 0 else (0.5, share)
    odds = float(np.log1p(-share) - np.log(share)) * (1.0 if epsilon >= 0 else -1.0)
    slack = 1e-15 * (1.0 + abs(odds))
    scale = np.longdouble(1 - gamma) * np.longdouble(prior)
    advantages = []
    for pair in pairs:
        low, high = _both_bounds(pair, np.array([odds - slack, odds + slack]))
        advantages.append(_estimate(low[1:] * scale, high[:1] * scale))
    return OrderCounterexample(
        name, epsilon, deltas[0], deltas[1], float(levels[best]), betas[0][best], betas[1][best], prior, gamma,
        advantages[0], advantages[1],
    )


def _estimate(low: LongDoubleArray, high: LongDoubleArray) -> Estimate:
    lower = max(next_below(float(low[0])), 0.0)
    upper = max(next_above(float(high[0])), lower)
    value = min(max(float((low[0] + high[0]) / 2), lower), upper)
    return Estimate(value, lower, upper, kind="certified", unit="probability", method="privacy curves of both pairs")
