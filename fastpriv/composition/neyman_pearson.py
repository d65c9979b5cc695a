"""The best tests of a pair whose tail probabilities are known, at many levels at once.

Notation: L = log dQ/dP; the test that says Q where L > epsilon has the level A = P(L > epsilon), the power T = Q(L >
epsilon) and the error B = 1 - T; x = e^epsilon, for any real epsilon. By the lemma of Neyman and Pearson the points (A,
B) lie on the convex curve beta(alpha), which has slope -x there and is straight between them. So each point gives a
line below the curve, B - x (alpha - A), and any two points a chord above it. For epsilon < 0 tails of the other
direction, S = -L > -epsilon, give 1 - A = P(S > -epsilon) and B = Q(S > -epsilon), and its lower tails A and T.

All four numbers of a point have digits of their own. A level alpha from 1/2 on enters as 1 - alpha, which is exact,
with 1 - A; and where beta is above 1/2 the same lines and chords are formed for minus the power, beta - 1.

A table of points, interpolated in normal quantiles of A, which are nearly straight in epsilon, gives the epsilon of
each level; one evaluation there gives the line and, with a neighbour in the table, the chord. Where the loss has atoms
the chord of the two nearest points has the slope of the atom between them, and the curve D(x) = sup_E Q(E) - x P(E) at
that slope the line 1 - D(x) - x alpha.
"""

# bounds: proved - units of rounding of lines and chords in doubles; the table bounds nothing

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from ..pairs.curve_pairs import PrivacyCurves
from ..pairs.log_bounds import certified

# bound: proved - a line or a chord in doubles, relative to the sum of its terms: an exponential to 2 units and at most
#    six operations
_ROUNDING = 12 * UNIT_ROUNDOFF
# bound: proved - three products or quotients that underflow
_UNDERFLOW = 2e-323
_NODES = 192  # of a table, evenly in the normal quantile: every 0.4 from 1e-300 to 1 - 1e-300
_FEW_NODES, _NODES_FOR_EACH = 24, 3  # of a table for few levels, or for each level
_COARSE_NODES = 9  # of the table that places those
_MARGIN = 0.3  # of the quantiles of a table beyond those of the levels
# Epsilons in every table, with their opposites: the loss may have an atom at 0
# bound: none - where points are taken
_NEAR_ZERO, _RELATIVE = np.array([0.0, 1e-12, 1e-9, 1e-6]), np.array([1e-9, 1e-6, 1e-3])  # nats; of the largest
# bound: none - which of two proofs is used
_SHARP = 1e-8  # relative width of a power that counts as known, better than by difference quotients
# bound: none - part of the neighbours in a table with one level from which on the losses count as atoms
_TIES = 0.2
_DEGREE = 7  # of the interpolation in the table
_LARGEST_EPSILON = 700.0  # nats: e^epsilon and its inverse are normal doubles
_ROUNDS = 60  # of refinement at most: one for smooth curves, about ten among atoms
# bound: none - width of the answer, relative to it, at which a level is refined no more
_TARGET = 2e-13
_SECANTS = 30  # rounds of secants, before chords are tried
# bound: none - part of a width that rounds must leave at most, and how many, for others to follow
_PROGRESS, _PATIENCE = 0.7, 6
_MOST_STEPS = 60  # of the search for the ends of a table
# bound: none - where a search starts
_LEAST_MEAN_DISTANCE = 1e-13  # least distance of the means for the first guess of these ends
# bound: none - parts of the range of quantiles above which a step of the coarse table is halved, how often at most
_WIDEST_PART, _DIVISIONS = 8, 10
# bound: none - how far beside an atom a point is taken
_SHIFT = 1e-14  # of an epsilon from the third round on, relative to 1 + |epsilon|, and as much more in each
_NOISE = 6.0  # widths of the bounds of a point that those of the answer may be apart

Numbers = tuple[FloatArray, FloatArray]  # lower and upper bounds


def best_tests(pairs: Sequence[PrivacyCurves], alpha: FloatArray) -> tuple[Numbers, Numbers] | None:
    """Bounds of the largest power at each alpha, and of the least beta, of the least private of pairs whose tails are
    known; None where they are not known far better than difference quotients of the curves.
    """
    rows = np.flatnonzero(alpha < 1.0)
    searches = [_TestSearch(pair, alpha[rows]) for pair in pairs if pair.tails is not None]
    if len(searches) < len(pairs) or not all(search.is_sharp() for search in searches):
        return None
    power, beta = np.ones((2, alpha.size)), np.zeros((2, alpha.size))
    if rows.size:
        for search in searches:
            search.make_table()
        by_power = searches[0].is_low()
        for search in searches:
            search.bound(by_power)
        least = np.minimum.reduce([search.upper for search in searches])
        for search in searches:
            search.refine(np.flatnonzero(search.lower <= least))
        low, high = (np.minimum.reduce([getattr(search, side) for search in searches]) for side in ("lower", "upper"))
        item, other = np.clip([low, high], 0.0, 1.0), np.clip([-high, -low], 0.0, 1.0)
        beta[:, rows] = np.where(by_power, _complement(other), item)
        power[:, rows] = np.where(by_power, other, _complement(item))
    return (power[0], power[1]), (beta[0], beta[1])


def _complement(bounds: Any) -> Any:
    return np.clip([1.0 - bounds[1] - UNIT_ROUNDOFF, 1.0 - bounds[0] + UNIT_ROUNDOFF], 0.0, 1.0)


class _TestPoints:
    """Points of the curve: their epsilons, slopes x, and bounds, shape (4, 2, n), of A - 1 / 2 in both forms, which is
    A and A - 1, and of the ordinate in both forms, which is B and -T.
    """

    __slots__ = ("epsilon", "numbers", "x")

    def __init__(self, epsilon: FloatArray, numbers: FloatArray) -> None:
        with np.errstate(over="ignore"):
            self.epsilon, self.x, self.numbers = epsilon, np.exp(epsilon), numbers

    def rows(self, index: Any) -> _TestPoints:
        return _TestPoints(self.epsilon[index], self.numbers[..., index])

    def form(self, late: Any, by_power: Any) -> _Form:
        """The numbers at levels of these forms, one for each point."""
        first, second, error, power = self.numbers
        u, c = np.where(late, second, first), np.where(by_power, power, error)
        return _Form(self.epsilon, self.x, u[0], u[1], c[0], c[1])

    def quantile(self) -> FloatArray:
        """Normal quantiles of A, of rising digits to both ends."""
        first, second = self.numbers[:2].mean(axis=1)
        late = first > 0.5
        return _quantile(np.where(late, second, first), late)


class _Form(NamedTuple):
    """Points with bounds of their abscissae u and ordinates c, all arrays of one shape."""

    epsilon: FloatArray
    x: FloatArray
    u_low: FloatArray
    u_high: FloatArray
    c_low: FloatArray
    c_high: FloatArray

    def above(self) -> FloatArray:
        """Epsilons, abscissae and ordinates of points on or above the curve, shape (3, points)."""
        return np.stack([self.epsilon, self.u_high, self.c_high])

    def lines(self, u: FloatArray) -> FloatArray:
        """Lower bounds at u, by the lines that touch the curve at the points."""
        run = u - self.u_low
        with np.errstate(invalid="ignore", over="ignore"):
            step = np.where(run == 0.0, 0.0, self.x * run)
            bound = self.c_low - step - (_ROUNDING * (np.abs(self.c_low) + np.abs(step)) + _UNDERFLOW)
        return np.where(np.isnan(bound), -np.inf, bound)

    def noise(self) -> FloatArray:
        """How far the bounds of the ordinate along the line are apart, relative to it."""
        with np.errstate(all="ignore"):
            noise = (self.c_high - self.c_low + self.x * (self.u_high - self.u_low)) / np.abs(self.c_high)
        return np.where(np.isfinite(noise), noise, 0.0)


def _quantile(u: FloatArray, late: Any) -> FloatArray:
    """Normal quantiles of u, and of 1 + u where it is ``late``, finite."""
    from scipy.special import ndtri

    size = ndtri(np.clip(np.abs(u), 5e-324, 1.0 - UNIT_ROUNDOFF))
    return np.asarray(np.where(late, -size, size))


def _chord(left: FloatArray, right: FloatArray, u: FloatArray) -> FloatArray:
    """Upper bounds at u, from points above the curve on both sides."""
    (_, a, first), (_, b, second) = left, right
    with np.errstate(all="ignore"):
        bound = first + (second - first) * ((u - a) / (b - a))
        bound = np.where(a == u, first, np.where(b == u, second, bound + _ROUNDING * np.abs(first) + _UNDERFLOW))
    return np.where((a <= u) & (u <= b), bound, np.inf)


class _TestSearch:
    """Bounds of beta, or of minus the power, at many levels below 1.

    ``u`` is alpha, or alpha - 1 where it is ``late``.
    """

    def __init__(self, pair: PrivacyCurves, alpha: FloatArray) -> None:
        assert pair.tails is not None
        self.pair, self.alpha, self.late = pair, alpha, alpha >= 0.5
        self.forward, self.backward = pair.tails
        self.u = np.where(self.late, alpha - 1.0, alpha)

    def points(self, epsilon: FloatArray) -> _TestPoints:
        """Points at these epsilons."""
        numbers = np.empty((4, 2, epsilon.size))
        ahead = epsilon >= 0.0
        for some, tails, order in ((ahead, self.backward, (1, 3, 2, 0)), (~ahead, self.forward, (2, 0, 1, 3))):
            if some.any():
                result = tails(np.abs(epsilon[some]))[list(order)]
                result[1::2] = -result[1::2, ::-1]
                numbers[..., some] = result
        return _TestPoints(epsilon, numbers)

    def is_sharp(self) -> bool:
        """Whether the tails are known near 0."""
        self.near = self.points(np.concatenate([_NEAR_ZERO, -_NEAR_ZERO[1:]]))
        low, high = self.near.numbers[3]
        known = high - low <= -_SHARP * low
        return bool(known[: _NEAR_ZERO.size].any() and known[_NEAR_ZERO.size :].any())

    def make_table(self) -> None:
        """The table, the first guesses, and the points beside each level."""
        self.target = _quantile(self.u, self.late)
        table = self._epsilons(self.target[self.u != 0.0])
        near = _RELATIVE * np.abs(table).max(initial=0.0)
        nodes = self.points(np.concatenate([table, near, -near]))
        quantile = np.maximum.accumulate(nodes.quantile()[: table.size])
        self.guess, self.fall = _interpolated(table, quantile, self.target)
        self.smooth = np.count_nonzero(np.diff(quantile) == 0.0) <= _TIES * quantile.size
        self.nodes = self._with_ends(nodes)
        positions = [np.searchsorted(row, self.u, side="right") for row in self.nodes.numbers[:2, 1]]
        self.after = np.clip(np.where(self.late, positions[1], positions[0]), 1, self.nodes.x.size - 1)

    def is_low(self) -> Any:
        """Where the power is below 1/2, roughly."""
        low, high = self.nodes.numbers[2].mean(axis=0)[np.stack([self.after, self.after - 1])]
        far = np.flatnonzero((high > 0.5) & (low <= 0.5))  # between them a chord decides
        left, right = (self.nodes.rows(position[far]).form(self.late[far], False).above()
                       for position in (self.after - 1, self.after))
        by_power = low > 0.5
        by_power[far] = _chord(left, right, self.u[far]) > 0.5
        return by_power

    def bound(self, by_power: Any) -> None:
        """Bounds by the table: of minus the power where ``by_power``, and of beta."""
        self.by_power = by_power
        sides = [self.nodes.rows(position).form(self.late, by_power) for position in (self.after - 1, self.after)]
        self.left, self.right = (side.above() for side in sides)
        self.lower = np.maximum(*(side.lines(self.u) for side in sides))
        self.upper = _chord(self.left, self.right, self.u)
        self.goal = _TARGET + np.minimum(*(side.noise() for side in sides)) * _NOISE
        if not self.smooth:
            self.guess = self._of_chords(0, self.left, self.right)

    def refine(self, rows: Any) -> None:
        """The bounds at the levels with these indices, as narrow as they get."""
        u, lower, upper, left, right = self.u, self.lower, self.upper, self.left, self.right
        guess, before = self.guess[rows], np.full(u.size, np.inf)
        for turn in range(0 if self.smooth else 2, _ROUNDS):
            if not rows.size:
                break
            points = self.points(guess) if self.smooth else self._each_once(guess)
            form = points.form(self.late[rows], self.by_power[rows])
            lower[rows] = np.maximum(lower[rows], form.lines(u[rows]))
            if turn > 1:
                lower[rows] = np.maximum(lower[rows], self._lines_of_curve(points, rows))
            new = form.above()
            on_left = new[1] <= u[rows]
            first, second = np.where(on_left, new, left[:, rows]), np.where(on_left, right[:, rows], new)
            bound = _chord(first, second, u[rows])
            nearer = bound <= upper[rows]
            changed = rows[nearer]
            left[:, changed], right[:, changed], upper[changed] = first[:, nearer], second[:, nearer], bound[nearer]
            self.goal[rows] = np.minimum(self.goal[rows], _TARGET + form.noise() * _NOISE)
            width = upper[rows] - lower[rows]
            still = width > self.goal[rows] * np.abs(upper[rows])
            if self.smooth and turn % _PATIENCE == _PATIENCE - 1:
                still &= width < _PROGRESS * before[rows]
                before[rows] = width
            rows = rows[still]
            if turn == 0:  # a Newton step in normal quantiles
                quantile_gap = self.target[rows] - points.rows(still).quantile()
                guess = np.clip(
                    points.epsilon[still] + quantile_gap * self.fall[rows], -_LARGEST_EPSILON, _LARGEST_EPSILON
                )
            elif self.smooth and turn < _SECANTS:
                guess = self._secant_epsilons(turn, rows)
            else:
                guess = self._of_chords(turn, left[:, rows], right[:, rows])

    def _each_once(self, epsilon: FloatArray) -> _TestPoints:
        """Points at these epsilons, each of which is evaluated once."""
        different, index = np.unique(epsilon, return_inverse=True)
        return self.points(different).rows(index)

    def _epsilons(self, target: FloatArray) -> FloatArray:
        """Falling epsilons of a table, nearly even in normal quantiles, over all targets where the losses reach them.

        For normal losses whose means are ``mean_distance`` m standard deviations from one another, the quantile z
        belongs to epsilon = -m (z + m / 2).
        """
        if target.size == 0:
            return np.zeros(1)
        low, high = float(target.min()) - _MARGIN, float(target.max()) + _MARGIN
        level, error = self.near.quantile()[0], _quantile(self.near.numbers[2, :, :1].mean(axis=0), False)[0]
        mean_distance = max(float(-level - error), _LEAST_MEAN_DISTANCE)
        limit = _LARGEST_EPSILON
        epsilon = -mean_distance * (np.linspace(low, high, _COARSE_NODES) + 0.5 * mean_distance)
        epsilon = np.unique(np.clip(epsilon, -limit, limit))[::-1]
        quantile = self.points(epsilon).quantile()
        for turn in range(_MOST_STEPS):
            reached = np.maximum.accumulate(quantile)
            step = 2.0**turn * (np.ptp(epsilon) / _COARSE_NODES + 0.1 * mean_distance)
            more = [np.array([])]
            if reached[0] > low and epsilon[0] < limit:
                more.append(np.minimum(epsilon[:1] + step * min(reached[0] - low, 1.0), limit))
            if reached[-1] < high and epsilon[-1] > -limit:
                more.append(np.maximum(epsilon[-1:] - step * min(high - reached[-1], 1.0), -limit))
            wide = np.diff(np.clip(reached, low, high)) > (high - low) / _WIDEST_PART
            if turn < _DIVISIONS and wide.any():
                more.append(0.5 * (epsilon[1:] + epsilon[:-1])[wide])
            new = np.setdiff1d(np.concatenate(more), epsilon)
            if new.size == 0:
                break
            order = np.argsort(-np.concatenate([epsilon, new]), kind="stable")
            quantile = np.concatenate([quantile, self.points(new).quantile()])[order]
            epsilon = np.concatenate([epsilon, new])[order]
        reached = np.maximum.accumulate(quantile)
        nodes = int(np.clip(_NODES_FOR_EACH * target.size, _FEW_NODES, _NODES))
        even = np.linspace(max(low, reached[0]), min(high, reached[-1]), nodes)
        return np.unique(np.interp(even, reached, epsilon))[::-1]

    def _with_ends(self, nodes: _TestPoints) -> _TestPoints:
        """Falling epsilons, with the points at both infinities and at the level 1; levels whose upper bounds rise."""
        end = np.full(1, np.inf)
        ends = [certified(curve, end) for curve in (self.pair.backward, self.pair.forward)]
        (mass, most), (left, most_left) = ([float(np.ravel(x)[0]) for x in (item.lower, item.upper)] for item in ends)
        up, down = 1.0 + UNIT_ROUNDOFF, 1.0 - UNIT_ROUNDOFF
        first = [[0.0, 0.0], [-1.0, -1.0], [1.0 - most * up, 1.0 - mass * down], [-most, -mass]]
        last = [[1.0 - most_left * up, 1.0 - left * down], [-most_left, -left], [0.0, 0.0], [-1.0, -1.0]]
        final = [[1.0, 1.0], [-0.0, -0.0], [0.0, 0.0], [-1.0, -1.0]]
        epsilon = np.concatenate([nodes.epsilon, self.near.epsilon])
        order = np.argsort(-epsilon, kind="stable")
        rows = [np.array(entry)[..., None] for entry in (first, last, final)]
        numbers = np.concatenate([nodes.numbers, self.near.numbers], axis=2)[..., order]
        numbers = np.concatenate([rows[0], numbers, *rows[1:]], axis=2)
        numbers[:2, 1] = np.maximum.accumulate(numbers[:2, 1], axis=1)
        return _TestPoints(np.concatenate([end, epsilon[order], -end, -end]), numbers)

    def _lines_of_curve(self, points: _TestPoints, rows: Any) -> FloatArray:
        """Lower bounds at u, by the lines of these slopes: the curve is sharp where the tails jump."""
        different, index = np.unique(points.epsilon, return_inverse=True)
        delta, ahead = np.empty(different.size), different >= 0.0
        for some, curve in ((ahead, self.pair.backward), (~ahead, self.pair.forward)):
            if some.any():
                delta[some] = certified(curve, np.abs(different[some])).upper
        delta, ahead, x, by_power = delta[index], ahead[index], points.x, self.by_power[rows]
        remainder = np.where(self.late[rows], -self.u[rows], 1.0 - self.alpha[rows])
        bound = np.where(ahead, np.where(by_power, 0.0, 1.0) - delta - x * self.alpha[rows],
                         x * (remainder - delta) - by_power)
        size = np.where(ahead, ~by_power + delta + x * self.alpha[rows], x * (remainder + delta) + by_power)
        return np.asarray(bound - _ROUNDING * size - _UNDERFLOW)

    def _secant_epsilons(self, turn: int, rows: Any) -> FloatArray:
        """Epsilons by secants in normal quantiles between the points on both sides; halfway in every third round."""
        limit = _LARGEST_EPSILON
        first, second = (np.clip(side[0, rows], -limit, limit) for side in (self.left, self.right))
        a, b = (_quantile(side[1, rows], self.late[rows]) for side in (self.left, self.right))
        with np.errstate(all="ignore"):
            share = (self.target[rows] - a) / (b - a)
        share = np.where((share > 0.0) & (share < 1.0) & (turn % 3 > 0), share, 0.5)
        return np.asarray(first + (second - first) * share)

    def _of_chords(self, turn: int, left: FloatArray, right: FloatArray) -> FloatArray:
        """Epsilons of the slopes of chords, and from the third round on beside them, where an atom may be."""
        with np.errstate(all="ignore"):
            guess = np.log(np.abs((right[2] - left[2]) / (right[1] - left[1])))
            guess += (-1.0) ** turn * _SHIFT * max(0, turn - 2) * (1.0 + np.abs(guess))
        middle = 0.5 * (np.minimum(left[0], _LARGEST_EPSILON) + np.maximum(right[0], -_LARGEST_EPSILON))
        return np.asarray(np.clip(np.where(np.isfinite(guess), guess, middle), -_LARGEST_EPSILON, _LARGEST_EPSILON))


def _interpolated(epsilon: FloatArray, quantile: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilon at the targets, by a polynomial through the nearest points, and d epsilon / d quantile there.

    ``epsilon`` falls and ``quantile`` rises; where it does not, or nearly so, the answer lies between neighbours.
    """
    if epsilon.size == 1:
        return np.full(target.size, epsilon[0]), np.zeros(target.size)
    size = min(_DEGREE + 1, epsilon.size)
    after = np.clip(np.searchsorted(quantile, target), 1, epsilon.size - 1)
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
    high, low = epsilon[after - 1], epsilon[after]
    guess = np.where(np.isfinite(value[0]), value[0], 0.5 * (low + high))
    return np.clip(guess, low, high), np.where(np.isfinite(fall), fall, 0.0)
