"""The best tests of a pair whose tail probabilities are known, at many levels at once.

Notation: L = log dQ/dP; the test that says Q where L > epsilon has the level A(epsilon) = P(L > epsilon) and the power
T(epsilon) = Q(L > epsilon); x = e^epsilon. By the lemma of Neyman and Pearson these points lie on the concave curve

    F(level) = the largest power at that level,

which has slope x there and is straight between them. The inverse G of F is convex, with slope 1 / x. So each point
gives a line above F and below G, D(x) + x level with D = T - x A, and any two points a chord below F and above G.
Tails of the other direction, S = -L > epsilon, give beta = Q(S > epsilon) at 1 - alpha = P(S > epsilon): as G of that
direction small errors of the second kind keep their digits, and as F of this one small powers do.

Both are minimised as one convex function c of u: -F(u) and G(u). A table of points in u, interpolated in normal
quantiles, which are nearly straight in epsilon, gives the epsilon of each level; one evaluation there gives the line
and, with a neighbour in the table, the chord. Where the loss has atoms the chord of the two nearest points has the
slope of the atom between them, and the curve D at that slope the line.
"""

# bounds: proved - units of rounding of lines and chords in doubles; the table bounds nothing

from __future__ import annotations

from typing import Any

import numpy as np

from ..composition.pairs import Curve, Pair, Tails, certified
from ..numerics import UNIT_ROUNDOFF, FloatArray, IndexArray

__all__ = ["best_tests", "tails_are_sharp"]

# bound: proved - a line or a chord in doubles, relative to the sum of its terms: an exponential to 2 units and at most
#    six operations
_ROUNDING = 12 * UNIT_ROUNDOFF
# bound: proved - three products or quotients that underflow
_UNDERFLOW = 2e-323
_NODES = 192  # of a table, evenly in the normal quantile: every 0.2 down to 1e-300
_COARSE_NODES = 17  # of the table that places those
_HALVINGS = 4  # of the range of the table, to within a sixteenth
_SPLITS = np.array([0.0, 1e-12, 1e-9, 1e-6])  # epsilons of the test that parts the two directions: the first sharp one,
_SHARP = 1e-6  # its power being known to this relative width
_OTHER_NODES = 8  # every so many of their epsilons are looked at in the other direction,
_NEAR_ZERO = np.array([1e-9, 1e-6, 1e-3])  # and these, relative to the largest, of both: the loss may have an atom at 0
# bound: none - part of the neighbours in a table with one u from which on the losses count as atoms
_TIES = 0.2
_DEGREE = 7  # of the interpolation in the table
_LARGEST_EPSILON = 700.0  # nats: e^epsilon and its inverse are normal doubles
_ROUNDS = 60  # of refinement at most: one for smooth curves, about ten among atoms
# bound: none - width of the answer, relative to it, at which a level is refined no more
_TARGET = 2e-13
# bound: none - where the search for the range of a table ends
_LEAST_EPSILON = 1e-300  # nats
_SCALES = 2.0 ** np.arange(-7, 4)  # nats: where the range of a table may end
_GROWTH = np.array([1.0, 2.0, 4.0])  # of these where it does not
# bound: none - how far beside an atom a point is taken
_SHIFT = 1e-14  # of an epsilon from the third round on, relative to 1 + |epsilon|, and as much more in each
_NOISE = 6.0  # widths of the bounds of a point that those of the answer may be apart

Numbers = tuple[FloatArray, FloatArray]  # lower and upper bounds


def best_tests(pair: Pair, alpha: FloatArray) -> tuple[Numbers, Numbers]:
    """Bounds of the largest power at each alpha, and of the least beta, of a pair whose tails are known."""
    assert pair.tails is not None
    power, beta = np.ones((2, alpha.size)), np.zeros((2, alpha.size))
    forward, backward = pair.tails
    near_zero = _bounds_of_tails(backward, _SPLITS)
    split = int(np.argmax(_is_sharp(near_zero[0])))
    by_power = (alpha <= near_zero[1][1][split]) & (alpha < 1.0)
    by_level = ~by_power & (alpha < 1.0)
    if by_power.any():
        u = alpha[by_power]
        low, high = _TestSearch(pair.backward, backward, forward, False).bounds(u, u)
        power[:, by_power] = np.clip(-high, 0.0, 1.0), np.clip(-low, 0.0, 1.0)
        beta[:, by_power] = _complement(*power[:, by_power])
    if by_level.any():
        u = 1.0 - alpha[by_level]
        slack = np.where(u > 0.5, UNIT_ROUNDOFF, 0.0)  # a difference from 1/2 on is exact
        low, high = _TestSearch(pair.forward, forward, backward, True).bounds(u - slack, np.minimum(u + slack, 1))
        most = 1.0 - near_zero[0][0][split] + UNIT_ROUNDOFF  # the error of that test, whose level is smaller
        beta[:, by_level] = np.clip(low, 0.0, 1.0), np.clip(np.minimum(high, most), 0.0, 1.0)
        power[:, by_level] = _complement(*beta[:, by_level])
    return (power[0], power[1]), (beta[0], beta[1])


def _bounds_of_tails(tails: Tails, epsilon: FloatArray) -> tuple[Numbers, Numbers]:
    """Bounds of the power and of the level of the tests at these epsilons."""
    power, level = (certified(lambda _, one=one: one, epsilon) for one in tails(epsilon))  # type: ignore[misc]
    return (np.asarray(power.lower), np.asarray(power.upper)), (np.asarray(level.lower), np.asarray(level.upper))


def tails_are_sharp(pair: Pair) -> bool:
    """Whether the tails are known far better than difference quotients of the curve."""
    return pair.tails is not None and all(_is_sharp(_bounds_of_tails(one, _SPLITS)[0]).any() for one in pair.tails)


def _is_sharp(bounds: Numbers) -> Any:
    return bounds[1] - bounds[0] <= _SHARP * bounds[1]


def _complement(low: FloatArray, high: FloatArray) -> Numbers:
    return np.maximum(1.0 - high - UNIT_ROUNDOFF, 0.0), np.minimum(1.0 - low + UNIT_ROUNDOFF, 1.0)


class _TestPoints:
    """Points of a convex function c of u: their epsilons, slopes, and bounds of u and of c."""

    __slots__ = ("c", "epsilon", "slope", "u")

    def __init__(self, epsilon: FloatArray, slope: FloatArray, u: Numbers, c: Numbers) -> None:
        self.epsilon, self.slope, self.u, self.c = epsilon, slope, u, c

    def rows(self, index: Any) -> _TestPoints:
        u, c = ((low[index], high[index]) for low, high in (self.u, self.c))
        return _TestPoints(self.epsilon[index], self.slope[index], u, c)

    def above(self) -> FloatArray:
        """Epsilons, abscissae and ordinates of points on or above the graph, shape (3, points)."""
        return np.stack([self.epsilon, np.where(self.slope < 0.0, self.u[1], self.u[0]), self.c[1]])

    def lines(self, u: FloatArray) -> FloatArray:
        """Lower bounds of c at u, by the lines that touch the graph at the points."""
        run = u - np.where(self.slope < 0.0, *self.u)
        with np.errstate(invalid="ignore", over="ignore"):
            step = np.where(run == 0.0, 0.0, self.slope * run)
            bound = self.c[0] + step
            bound -= np.where(step == 0.0, 0.0, _ROUNDING * (np.abs(self.c[0]) + np.abs(step)) + _UNDERFLOW)
        return np.where(np.isnan(bound), -np.inf, bound)

    def noise(self) -> FloatArray:
        """How far the bounds of c along the line are apart."""
        with np.errstate(invalid="ignore"):
            return self.c[1] - self.c[0] + np.abs(self.slope) * (self.u[1] - self.u[0])


def _chord(left: FloatArray, right: FloatArray, u: FloatArray) -> FloatArray:
    """Upper bounds of c at u, from points above the graph on both sides."""
    (_, a, first), (_, b, second) = left, right
    with np.errstate(all="ignore"):
        bound = first + (second - first) * ((u - a) / (b - a))
        bound = np.where(a == u, first, np.where(b == u, second, bound + _ROUNDING * np.abs(bound) + _UNDERFLOW))
    return np.where((a <= u) & (u <= b), bound, np.inf)


def _lower_hull(x: FloatArray, y: FloatArray) -> IndexArray:
    """Indices of points whose polygon is convex, with rising x."""
    kept: list[int] = []
    places, heights = x.tolist(), y.tolist()
    for i in np.lexsort((y, x)).tolist():
        if kept and places[kept[-1]] == places[i]:
            continue
        while len(kept) > 1:
            j, k = kept[-2:]
            before, after = heights[k] - heights[j], heights[i] - heights[k]
            if before * (places[i] - places[k]) < after * (places[k] - places[j]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)


class _TestSearch:
    """Bounds of c at many u: c = -F(u) of one direction, u being levels, or c = G(u), u being powers."""

    def __init__(self, curve: Curve, tails: Tails, other_tails: Tails, by_power: bool) -> None:
        self.curve, self.tails, self.other_tails, self.by_power = curve, tails, other_tails, by_power

    def points(self, epsilon: FloatArray) -> _TestPoints:
        """Points at these epsilons, each of which is evaluated once."""
        different, index = np.unique(epsilon, return_inverse=True)
        return self._of_tails(different, *_bounds_of_tails(self.tails, different)).rows(index)

    def _of_tails(self, epsilon: FloatArray, power: Numbers, level: Numbers) -> _TestPoints:
        with np.errstate(over="ignore"):
            if self.by_power:
                return _TestPoints(epsilon, np.exp(-epsilon), power, level)
            return _TestPoints(epsilon, -np.exp(epsilon), level, (-power[1], -power[0]))

    def bounds(self, u_low: FloatArray, u_high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Lower bounds of c at ``u_low`` and upper bounds at ``u_high``."""
        table = self._epsilons(u_low)
        nodes = self.points(np.concatenate([table, _SPLITS, table[-1] * _NEAR_ZERO]))
        quantile = _quantile(0.5 * (nodes.u[0] + nodes.u[1]))[: table.size]
        target = _quantile(u_low)
        guess, fall = _interpolated(table, quantile, target)
        nodes = self._with_ends(nodes, table)
        nodes = nodes.rows(_lower_hull(*nodes.above()[1:]))
        above = nodes.above()
        after = np.clip(np.searchsorted(above[1], u_high, side="right"), 1, above.shape[1] - 1)
        left, right = above[:, after - 1], above[:, after]
        lower = np.maximum(nodes.rows(after - 1).lines(u_low), nodes.rows(after).lines(u_low))
        upper = _chord(left, right, u_high)
        with np.errstate(all="ignore"):
            noise = nodes.noise() / np.abs(nodes.c[1])
            noise = np.where(np.isfinite(noise), noise, 0.0)
        goal = _TARGET + _NOISE * np.maximum(noise[after - 1], noise[after])
        rows = np.arange(u_low.size)
        smooth = np.count_nonzero(np.diff(quantile) == 0.0) <= _TIES * table.size
        if not smooth:
            guess = self._of_chords(0, left, right)
        for turn in range(0 if smooth else 2, _ROUNDS):
            points = self.points(guess)
            lower[rows] = np.maximum(lower[rows], points.lines(u_low[rows]))
            if turn > 1:
                lower[rows] = np.maximum(lower[rows], self._line_of_curve(points, u_low[rows]))
            new = points.above()
            on_left = new[1] <= u_high[rows]
            first, second = np.where(on_left, new, left[:, rows]), np.where(on_left, right[:, rows], new)
            bound = _chord(first, second, u_high[rows])
            nearer = bound <= upper[rows]
            changed = rows[nearer]
            left[:, changed], right[:, changed], upper[changed] = first[:, nearer], second[:, nearer], bound[nearer]
            unknown = np.abs(points.slope) * (u_high - u_low)[rows]
            still = upper[rows] - lower[rows] > goal[rows] * np.abs(upper[rows]) + _NOISE * unknown
            if not still.any():
                break
            rows = rows[still]
            guess = self._next(turn, rows, points.rows(still), target, fall, left, right)
        return lower, upper

    def _epsilons(self, u: FloatArray) -> FloatArray:
        """Epsilons of a table, from 0 to where u is below the least of these, nearly even in normal quantiles."""
        least = float(u[u > 0.0].min(initial=1.0))

        def first_beyond(epsilon: Any) -> int:
            """The index of the first whose u is at most the least; their number if there is none."""
            below = self.points(epsilon).u[1] <= least
            return int(np.argmax(below)) if below.any() else epsilon.size

        scales = _SCALES
        while (index := first_beyond(scales)) == 0 and scales[0] > _LEAST_EPSILON:
            scales = scales * scales[0] / scales[-1]
        while index == scales.size and scales[-1] < _LARGEST_EPSILON:
            scales = np.minimum(scales[-1] * _GROWTH, _LARGEST_EPSILON)
            index = first_beyond(scales)
        low, high = float(scales[index - 1]) if index else 0.0, float(scales[min(index, scales.size - 1)])
        for _ in range(_HALVINGS):  # one by one: near the largest loss the tails take long
            middle = 0.5 * (low + high)
            low, high = (low, middle) if first_beyond(np.array([middle])) == 0 else (middle, high)
        coarse = np.linspace(0.0, high, _COARSE_NODES)
        points = self.points(coarse)
        quantile = np.minimum.accumulate(_quantile(0.5 * (points.u[0] + points.u[1])))
        even = np.linspace(quantile[-1], quantile[0], _NODES)
        return np.unique(np.interp(even, quantile[::-1], coarse[::-1]))

    def _with_ends(self, nodes: _TestPoints, table: FloatArray) -> _TestPoints:
        """With the points at infinity, at epsilon <= 0 from the other direction, and at u = 1."""
        infinite = certified(self.curve, np.full(1, np.inf))
        mass, nought, one = (np.asarray(infinite.lower), np.asarray(infinite.upper)), np.zeros(1), np.ones(1)
        start = self._of_tails(np.full(1, np.inf), mass, (nought, nought))
        beyond = np.concatenate([_SPLITS, table[-1] * _NEAR_ZERO, table[_OTHER_NODES::_OTHER_NODES]])
        power, level = _bounds_of_tails(self.other_tails, beyond)
        zero = self._of_tails(-beyond, *((1.0 - high - UNIT_ROUNDOFF, 1.0 - low + UNIT_ROUNDOFF)
                                         for low, high in (level, power)))  # fmt: skip
        last = self._of_tails(np.full(1, -np.inf), (one, one), (one, one))
        parts = (start, nodes, zero, last)

        def joined(name: str) -> Numbers:
            return tuple(np.concatenate([getattr(part, name)[k] for part in parts]) for k in (0, 1))  # type: ignore

        return _TestPoints(
            np.concatenate([part.epsilon for part in parts]), np.concatenate([part.slope for part in parts]),
            joined("u"), joined("c"),
        )  # fmt: skip

    def _line_of_curve(self, points: _TestPoints, u: FloatArray) -> FloatArray:
        """Lower bounds of c at u, by the lines of these slopes: the curve is sharp where the tails jump."""
        different, index = np.unique(points.epsilon, return_inverse=True)
        delta = np.asarray(certified(self.curve, different).upper)[index]
        if self.by_power:
            bound = points.slope * (u - delta)
        else:
            bound = -(delta - points.slope * u)
        return np.asarray(bound - _ROUNDING * np.abs(bound) - _UNDERFLOW)

    def _next(
        self, turn: int, rows: Any, points: _TestPoints, target: FloatArray, fall: FloatArray, left: FloatArray,
        right: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """The next epsilons: a Newton step in normal quantiles first, and then those of the slopes of the chords."""
        if turn > 0:
            return self._of_chords(turn, left[:, rows], right[:, rows])
        newton = points.epsilon + (target[rows] - _quantile(0.5 * (points.u[0] + points.u[1]))) * fall[rows]
        return np.asarray(np.clip(newton, 0.0, _LARGEST_EPSILON))

    def _of_chords(self, turn: int, left: FloatArray, right: FloatArray) -> FloatArray:
        """Epsilons of the slopes of chords, and from the third round on beside them, where an atom may be."""
        with np.errstate(all="ignore"):
            slope = np.abs((right[2] - left[2]) / (right[1] - left[1]))
            guess = np.log(slope) * (-1.0 if self.by_power else 1.0)
            guess += (-1.0) ** turn * _SHIFT * max(0, turn - 2) * (1.0 + np.abs(guess))
        middle = 0.5 * (np.minimum(left[0], _LARGEST_EPSILON) + np.maximum(right[0], 0.0))
        return np.asarray(np.clip(np.where(np.isfinite(guess), guess, middle), 0.0, _LARGEST_EPSILON))


def _quantile(u: FloatArray) -> FloatArray:
    """Normal quantiles, finite."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(u, 5e-324, 1.0 - UNIT_ROUNDOFF)))


def _interpolated(epsilon: FloatArray, quantile: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilon at the targets, by a polynomial through the nearest points, and d epsilon / d quantile there.

    ``epsilon`` rises and ``quantile`` falls; where it does not, or nearly so, the answer lies between neighbours.
    """
    size = min(_DEGREE + 1, epsilon.size)
    after = np.clip(np.searchsorted(-quantile, -target), 1, epsilon.size - 1)
    start = np.clip(after - size // 2, 0, epsilon.size - size)
    with np.errstate(all="ignore"):
        distance = [quantile[start + k] - target for k in range(size)]
        value = [epsilon[start + k] for k in range(size)]
        for width in range(1, size):  # Neville's scheme
            value = [
                (distance[k + width] * value[k] - distance[k] * value[k + 1]) / (distance[k + width] - distance[k])
                for k in range(size - width)
            ]
        fall = (epsilon[after] - epsilon[after - 1]) / (quantile[after] - quantile[after - 1])
    low, high = epsilon[after - 1], epsilon[after]
    guess = np.where(np.isfinite(value[0]), value[0], 0.5 * (low + high))
    return np.clip(guess, low, high), np.where(np.isfinite(fall), fall, 0.0)
