"""Upper bounds of shuffled reports of one known randomiser by its privacy blanket.

Notation: R(y|x) is the density of a report y of the value x; b(y) = min over x of R(y|x), the blanket, has the mass
gamma; f_x = R(.|x) / b; alpha = e^epsilon. n users report, not adaptively; neighbours differ in the value of one of
them, x or x'. Then (Balle, Bell, Gascon and Nissim 2019, lemma 5.3)

    delta <= max over x, x' of E (V_1 + ... + V_n)^+ / n,

V_i independent: f_x(y) - alpha f_x'(y) where y ~ b, with the mass gamma, else 0. More reports lose less.

Lattice. Put h > 0. If V lies in [A h, B h] on some cell of reports, its part there is moved to both ends with its mean
kept, or raised. E (t + V)^+ is convex and rises in t, so that no bound falls. Of S = h J on the lattice,
kappa s <= (1 + z) (1 - e^(-kappa s)) for 0 <= s, kappa s <= z: ``tilted_transforms`` adds up E (1 - e^(-kappa S))^+.
Reports outside all cells add at most their mass of (R(.|x) - alpha R(.|x'))^+ to delta; V counts as 0 there, which is
an upper bound only where V <= 0 or where this was added.

Noise on a number in an interval of length D, normal or Laplace: the ends are the worst pair. Let values be in [-a, a],
2 a = D, and phi the density of the noise, so that b(y) = phi(|y| + a).
* If f_x(Y) <= f_a(Y) in convex order, Y ~ b: f_{-a} falls and f_a rises, so that f_{-a} and -alpha f_a are comonotone,
  and their sum is larger in convex order than f_x - alpha f_x' of any x, x' (stop-losses of comonotone sums add up by
  quantiles, and no other sum has larger ones). Convex order is kept by sums of independent terms.
* So it is. Let H(x) = integral of (R(y|x) - t b(y))^+ dy. By log-concavity f_x falls on y < 0 and rises on y > 0: the
  integrand is positive beyond -c and d. The derivative of H by x is phi(d - x) - phi(c + x) = t (phi(d + a) -
  phi(c + a)), as the integrand is 0 at both. Normal noise: c = k (a + x), d = k (a - x), k > 0, so that H rises for
  x > 0 and falls for x < 0. Laplace noise, x > 0: f_x is constant on y < 0 and smaller than on y > 0, so that c is
  infinite or all reports count, where H does not change; H rises. Both are symmetric in x.
Vectors are no such case.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .. import special
from ..base.numerics import FloatArray, LongDoubleArray, next_above
from ..channels import AnyChannel
from ..mechanisms.gaussian import GaussianMechanism
from ..mechanisms.laplace import LaplaceMechanism
from ..mechanisms.set_valued import UnaryEncoding
from .curve_pairs import normal_noise
from .discretised_losses import PrivacyLoss
from .log_bounds import LogBounds
from .protocol import DominatingPair, FrozenRecord
from .tilted_transforms import composed_log_bounds

_MOST_INPUTS = 16  # of a channel of which all pairs are evaluated
_MOST_ENTRIES = 2**18  # and of which all are read
_MOST_REPORTS = 10**6  # more reports count as so many
_NOISE_CELLS = 1024  # of reports with noise, on either side of the middle
_CUTS = (2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 11.0, 16.0)  # deviations beyond which reports with noise are revealed
_FEW_LEVELS = 8  # up to which the larger number of points is allowed
_POINTS = {True: (2**13, 2**18), False: (2**10, 2**14)}  # of the lattice, least and most
_LARGEST_PLACE = {True: 2**14, False: 2**12}  # of V on the lattice
_LARGEST_LEVEL = 100.0  # epsilon up to which the blanket is used: squares of V are no overflow
_WIDEST = 24.0  # deviations between the farther end and a cut, likewise
# bound: none - the least fall of log delta for which another cut is tried
_LEAST_GAIN = 0.002
# bound: none - the largest kappa S
_LARGEST_EXPONENT = 1e-5
# bound: none - mass of the blanket below which a report counts as revealed
_LEAST_MASS = 1e-150
# bound: proved - relative error of masses and ratios of cells of normal noise: theorem 11.13 of
#    docs/proofs/sampled_tables.md
_NORMAL_ERROR = 1e-12
# bound: proved - of cells of Laplace noise, and of entries of channels by exponentials of logarithms
_EXPONENTIAL_ERROR = 1e-14


@dataclass(frozen=True, slots=True, eq=False)
class CellsOfReports(FrozenRecord):
    """Cells of reports (columns) with a relative ``error``: masses of the blanket and of several values (rows), and the
    least and the largest f_x on each cell.

    ``revealed`` holds the masses of reports beyond the cells. ``pairs`` lists those ordered pairs of rows that no other
    pair of values exceeds.
    """

    blanket: FloatArray
    rows: FloatArray
    ratios: FloatArray
    revealed: FloatArray
    pairs: tuple[tuple[int, int], ...]
    error: float

    def scores(self, largest: int) -> tuple[LongDoubleArray, ...]:
        """Probabilities of scores of a report, integers up to ``largest`` in size: of two values that are compared, and
        of one that all other users hold.

        Scores follow v = (R(y|x) - R(y|x')) / R(y|x''); those values are taken for which the mean of the score's
        own v moves most in standard deviations.
        """
        rows = np.concatenate([self.rows, self.revealed], axis=1)
        best, result = -1.0, (rows[0], rows[0], rows[0])
        for (i, j), other in itertools.product(self.pairs, rows):
            v = np.divide(rows[i] - rows[j], other, out=np.zeros_like(other), where=other >= _LEAST_MASS)
            size = min(float(np.abs(v).max()), (1 + largest / 4) * math.sqrt(float(other @ v**2))) or 1.0
            index = np.rint(np.clip(v / size, -1, 1) * largest).astype(int) + largest
            p, q, r = (np.bincount(index, row, 2 * largest + 1) for row in (rows[i], rows[j], other))
            information = float(np.divide((p - q) ** 2, r, out=np.zeros_like(r), where=r >= _LEAST_MASS).sum())
            if information > best:
                best, result = information, (p, q, r)
        return tuple(x.astype(np.longdouble) / np.longdouble(x.sum()) for x in result)


@dataclass(frozen=True, slots=True, eq=False)
class BlanketSum(FrozenRecord):
    """Curve of ``n`` reports from above: the least of several cuts, each the largest of pairs of values, and never more
    than that of ``fallback``.
    """

    n: int
    local_epsilon: float
    cuts: tuple[CellsOfReports, ...]
    fallback: DominatingPair

    def log_delta(self, epsilon: FloatArray) -> LogBounds:
        """Bounds of log delta at epsilon >= 0, a vector."""
        upper = np.array(self.fallback.log_delta(epsilon).upper)
        few = epsilon.size <= _FEW_LEVELS
        for i in np.flatnonzero((upper > -np.inf) & (epsilon <= _LARGEST_LEVEL)):
            upper[i] = min(upper[i], _log_bound(self, float(epsilon[i]), few))
        return LogBounds.of_bounds(np.full(epsilon.size, -np.inf), upper, {}, "sums over the privacy blanket")


@lru_cache(maxsize=2**15)  # grids with other tails ask for the same levels
def _log_bound(curve: BlanketSum, epsilon: float, few: bool) -> float:
    best, n = 0.0, min(curve.n, _MOST_REPORTS)
    for cells in curve.cuts[:: 1 if few else 3]:
        value = max(_log_excess(cells, pair, n, epsilon, few) for pair in cells.pairs)
        if best < 0.0 and value > best - _LEAST_GAIN:
            return min(best, value)
        best = min(best, value)
    return best


def _log_excess(cells: CellsOfReports, pair: tuple[int, int], n: int, epsilon: float, few: bool) -> float:
    """Upper bound of log delta of a pair of values."""
    x, error = np.exp(np.longdouble(epsilon)), np.longdouble(4 * cells.error)
    (p, q), (f, g), (a, b) = (table[list(pair)] for table in (cells.rows, cells.ratios, cells.revealed))
    mean = (p - x * q + error * (p + x * q)) / cells.blanket
    least = f[0] * (1 - error) - x * g[1] * (1 + error)
    most = np.maximum(f[1] * (1 + error) - x * g[0] * (1 - error), mean)
    revealed = float(np.maximum(a * (1 + error) - x * b * (1 - error), 0).sum())
    points = min(max(_POINTS[few][0], 2 ** math.ceil(math.log2((500 if few else 100) * math.sqrt(n)))), _POINTS[few][1])
    deviation = math.sqrt(n * float(cells.blanket @ mean**2))
    h = max(20 * deviation / points, max(float(most.max()), -float(least.min())) / _LARGEST_PLACE[few])
    left = np.floor(least / h).astype(np.int64)
    right = np.maximum(np.ceil(most / h).astype(np.int64), left + 1)
    share = np.clip((mean / h - left) / (right - left), 0, 1)
    first = min(0, int(left.min()))
    masses = np.zeros(max(0, int(right.max())) - first + 1, dtype=np.longdouble)
    for position, part in ((left, 1 - share), (right, share)):
        np.add.at(masses, position - first, cells.blanket * (1 + error) * (part + error))
    masses[-first] += max(0, 1 - cells.blanket.sum() * (1 - error)) + error
    top = len(masses) - 1 + first
    log_revealed = math.log(revealed) if revealed > 0.0 else -math.inf
    if top <= 0:
        return log_revealed
    interval = _LARGEST_EXPONENT / (n * top)
    loss = PrivacyLoss(first, interval, next_above(masses.astype(np.float64)), 0.0)
    sums = float(composed_log_bounds([(loss, n)], np.zeros(1))[1][0])
    log = sums + math.log(h / (n * interval)) + 1.01 * _LARGEST_EXPONENT
    return float(next_above(np.logaddexp(log, log_revealed), 8))


def cells_of_reports(randomizer: Any) -> tuple[CellsOfReports, ...]:
    """Reports of a channel, or of noise on a number in an interval of the length of the sensitivity, with several cuts.

    None of a channel that is too large or has one value, or of noise that hides nothing.
    """
    if isinstance(randomizer, GaussianMechanism):
        sigma, span = normal_noise(randomizer)
        return _cells_of_noise(float(next_above(span / sigma)), normal=True)
    if isinstance(randomizer, LaplaceMechanism):
        return _cells_of_noise(randomizer._loss_bounds()[1], normal=False)
    if isinstance(randomizer, UnaryEncoding):
        return (_cells_of_bits(randomizer),)
    channel: AnyChannel = randomizer
    if not 1 < channel.inputs <= _MOST_INPUTS or channel.inputs * channel.outputs > _MOST_ENTRIES:
        return ()
    rows = np.asarray(channel.matrix(), dtype=np.float64)
    blanket = rows.min(axis=0)
    pairs: dict[bytes, tuple[int, int]] = {}
    for i, j in itertools.permutations(range(len(rows)), 2):  # without equal ones
        table = np.stack([blanket, rows[i], rows[j]])
        pairs.setdefault(table[:, np.lexsort(table)].tobytes(), (i, j))
    return (_cells(blanket, rows, tuple(pairs.values()), channel.mass_gap + _EXPONENTIAL_ERROR),)


def _cells(blanket: FloatArray, rows: FloatArray, pairs: tuple[tuple[int, int], ...], error: float) -> CellsOfReports:
    used = blanket >= _LEAST_MASS
    ratios = rows[:, used] / blanket[used]
    return CellsOfReports(blanket[used], rows[:, used], np.stack([ratios] * 2, axis=1), rows[:, ~used], pairs, error)


def _cells_of_bits(encoding: UnaryEncoding) -> CellsOfReports:
    """Bits of two values, and whether all others are as the bit of the true value is likelier to be; a third row where
    there are others.
    """
    swapped = encoding.logit_p < encoding.logit_q  # then bits are complemented
    logits = [-x if swapped else x for x in (encoding.logit_p, encoding.logit_q)]
    true, false = ([1 / (1 + math.exp(min(sign * x, 700.0))) for sign in (1, -1)] for x in logits)  # of 0 and 1
    others = encoding.k - 2
    ones = [p * false[1] ** (others - 1) for p in (false[1], true[1])] if others else [1.0, 1.0]
    table = []
    for a, b, reported in np.ndindex(2, 2, 2 if others else 1):
        second, third = (1 - x if reported else x for x in ones)
        least = true[1] / false[1] if a and b and not reported else true[0] / false[0]
        table.append([false[a] * false[b] * second * least, true[a] * false[b] * second, false[a] * true[b] * second,
                      false[a] * false[b] * third])
    blanket, *rows = np.array(table).T
    return _cells(blanket, np.array(rows[: 3 if others else 2]), ((0, 1),), max(1, others) * _EXPONENTIAL_ERROR)


def _cells_of_noise(distance: float, normal: bool) -> tuple[CellsOfReports, ...]:
    """Noise of unit scale: rows of both ends and of the middle. Cells left of the middle, where the blanket is the
    density of the farther end, then their mirror images; Laplace noise needs no cut, as its ratios are constant beyond
    both ends.
    """
    result = []
    for cut in _CUTS if normal else (0.0,):
        if distance + cut > (_WIDEST if normal else _LARGEST_LEVEL):
            break
        edges = np.linspace(-cut, distance / 2, _NOISE_CELLS + 1)
        shifts = np.array([[0.0], [distance], [0.5 * distance]])
        if normal:
            z = edges - shifts
            masses, tails = special.ndtr_difference(z[:, :-1], z[:, 1:]), special.ndtr(z[:, :1])
            error = _NORMAL_ERROR * (1 + distance) ** 2
            logs = distance * (0.5 * distance - edges)
        else:
            signs = np.array([[-1.0], [1.0], [1.0]])  # the end 0 lies left of the cells
            start = 0.5 * np.exp(signs * (edges[:-1] - shifts))
            masses, error = start * np.abs(np.expm1(signs * np.diff(edges))), _EXPONENTIAL_ERROR * (1 + distance)
            masses = np.concatenate([0.5 * np.exp(-shifts), masses], axis=1)
            edges, tails = np.append(0.0, edges), np.empty((3, 0))
            logs = distance - 2 * edges
        rows, revealed = (np.concatenate([x, x[[1, 0, 2]]], axis=1) for x in (masses, tails))
        near = np.exp(np.stack([logs[1:], logs[:-1]]))
        ratios = np.stack([np.hstack([near, np.ones_like(near)]), np.hstack([np.ones_like(near), near])])
        result.append(CellsOfReports(np.tile(masses[1], 2), rows, ratios, revealed, ((0, 1),), error))
    return tuple(result)
