"""The best of a random number of runs of a private mechanism, as a pair of a composition.

A mechanism runs K times, K random and secret with E z^K = f(z), and the run with the best score is released; nothing is
released where K = 0. P, Q are the pair of ONE run with all that it reads; the score is a function of what a run
releases. F(y) is the probability that a run is at most as good as y, S = 1 - F.

Known order of the scores. A run y is released with probability f(F(y)) - f(F(y-)); where runs tie, one of them is
drawn, so that the probability of a tie is divided in proportion. With u = g + (1 - g) S,

    truncated negative binomial (eta, g):  f' = m (g / u)^(eta + 1),  m = eta (1 - g) / (g (1 - g^eta)),
    f(F(y)) - f(F(y-)) = (u(y) / g)^-eta expm1(-eta d) / expm1(eta log g),    d = log(1 + (1 - g) p / u(y)),

and d / log(1/g) for eta = 0; Poisson: f' = m e^(-m S) and the difference e^(-m S(y)) (1 - e^(-m p)). For outcomes that
are known this is a discrete pair, exactly. For two normal distributions the densities are f'(F_P) p and f'(F_Q) q; the
log f' rise with y, so that their ends and those of the linear log p/q bound the loss in a cell. Cells whose losses all
exceed epsilon count as they are; those in doubt are halved, and what is left of them has P - e^epsilon Q between 0 and
P (1 - e^(epsilon - l)), l the largest loss.

Any order. 1 - F_Q <= e^a (1 - F_P) + delta', delta' the curve of Q against P at a. If delta' <= (g / (1 - g)) (e^a -
1), then u_Q <= e^a u_P, so that f'(F_P) / f'(F_Q) <= e^((eta + 1) a), and

    delta_sel(epsilon) <= integral of f'(F_P) (p - e^(epsilon - (eta + 1) a) q)^+ <= m delta(epsilon - (eta + 1) a);

Poisson: f'(F_P) / f'(F_Q) = e^(m (F_P - F_Q)), so that delta_sel(epsilon) <= m delta(epsilon - m delta(0)). A base that
is eps-DP gives (2 + eta) eps-DP. The least a serves all epsilons.

Source: Papernot and Steinke 2022 (runs, and pure privacy); Koskela, Redberg and Wang 2024 (curves).
"""

# bounds: proved - roundings of masses of normal distributions and in extended precision

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..base.inverse import bisect
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from .curve_pairs import NamedFields, PairObject
from .discrete_pairs import DiscretePair, bounding_atoms
from .protocol import EXTENDED_ROUNDING, BoundingPairs, Bounds, DominatingPair
from .readers import hashable_pair, pair_text, read_pair
from .sampled_curves import CompositionBase, PairBase

Order = Literal["largest", "smallest"]

_FAR = 38.0  # standard deviations beyond the centres at which the cells of normal distributions end
_CELLS, _GRID_CELLS = 2**10, 2**17  # of a few levels, and of many
_FEW_LEVELS = 12  # that are evaluated one by one
# bound: none - relative width of a composition that its grid may add to that of the cells
_CURVE_WIDTH = 1e-5
_HALVINGS = 26  # of cells in doubt
_MOST_DOUBTFUL = 4096  # cells that are halved
_LARGEST_LEVEL = 600.0  # epsilons beyond it have the bounds at it, and 0
# bound: proved - relative error of log_ndtr, 17 units of 2^-53 of itself (tools/proofs), with NumPy's exponential after
#    it
_NORMAL_ERROR = 1e-14
# bound: proved - rounding of logarithms of densities in a cell, relative to 1 + their sizes
_LOSS_ERROR = 1e-13
_SHIFTS = [2.0**power for power in range(-30, 21)]  # the first a that are tried
# bound: none - relative width of the bracket of the least a; each halving takes a value of the curve of one run
_SHIFT_WIDTH = 1e-4
# bound: proved - relative rounding of means, shifts and curves of the bound without an order
_OUTWARD = 1e-13
_LARGEST_DISTANCE = 1e3  # of normal distributions in sigmas: others are no doubles in any cell


class NegativeBinomial(NamedFields):
    """Numbers of runs with the negative binomial distribution, truncated so that there is at least one.

    Parameters
    ----------
    eta : float
        Shape, above -1 and at most 1e6: 0 is the logarithmic, 1 the geometric distribution.
    gamma : float
        From 1e-300 to below 1; runs are more where it is smaller.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    E z^K = ((1 - (1 - gamma) z)^-eta - 1) / (gamma^-eta - 1), and for eta = 0 log(1 - (1 - gamma) z) / log gamma.

    **Accuracy** 1e-14 relative; ``tests/enclosures/test_selected.py``.

    Source: Papernot and Steinke 2022, definition 1.

    Examples
    --------
    >>> from fastpriv.pairs import NegativeBinomial
    >>> NegativeBinomial(eta=1.0, gamma=0.125).mean
    8.0
    """

    __slots__ = _fields = ("eta", "gamma")

    eta: float
    gamma: float

    def __init__(self, eta: ArrayLike, gamma: ArrayLike) -> None:
        shape = validate.scalar("eta", eta, "above -1 and at most 1e6", lambda x: (x > -1) & (x <= 1e6))
        rate = validate.scalar("gamma", gamma, "from 1e-300 to below 1", lambda x: (x >= 1e-300) & (x < 1))
        self._set(eta=shape, gamma=rate)

    @property
    def mean(self) -> float:
        """The expected number of runs."""
        g, eta = np.longdouble(self.gamma), np.longdouble(self.eta)
        share = -1 / np.log(g) if self.eta == 0.0 else -eta / np.expm1(eta * np.log(g))
        return float((1 - g) / g * share)

    def _released(self, p: Any, above: Any) -> Any:
        """Probability that the released run is among those of probability p, with ``above`` for better ones."""
        g, eta = np.longdouble(self.gamma), np.longdouble(self.eta)
        better = np.log1p((1 - g) / g * above)  # log(u / g)
        d = np.log1p((1 - g) * p / (g + (1 - g) * above))
        if self.eta == 0.0:
            return d / -np.log(g)
        return np.exp(-eta * better) * np.expm1(-eta * d) / np.expm1(eta * np.log(g))

    def _log_slope(self, above: Any) -> Any:
        """log(f'(1 - above) / f'(1))."""
        return -(self.eta + 1.0) * np.log1p((1.0 - self.gamma) / self.gamma * above)

    def _sensitivity(self) -> float:
        """Relative change of f(F(y)) - f(F(y-)) for each relative change of probabilities."""
        return 1.0 + (2.0 + abs(self.eta)) * min(1.0 / self.gamma, 1e300) * (1.0 - self.gamma)

    def _size(self) -> float:
        """Roundings of a released probability in extended precision, in units of them."""
        return 16.0 * (1.0 + abs(self.eta)) * (2.0 - math.log(self.gamma))

    def _shift(self, backward: Any) -> float:
        """(eta + 1) a with the least a that the curve of Q against P allows, by the head of this module."""
        rate = self.gamma / (1.0 - self.gamma) * (1.0 - 4 * UNIT_ROUNDOFF)

        def allowed(a: float) -> bool:
            return float(backward(np.array([a]))[0]) <= rate * math.expm1(min(a, 700.0)) * (1.0 - 4 * UNIT_ROUNDOFF)

        if allowed(0.0):
            return 0.0
        index = bisect_left(_SHIFTS, True, key=allowed)
        high = _SHIFTS[index] if index < len(_SHIFTS) else math.inf
        if high < math.inf:
            high = bisect(allowed, 0.5 * high, high, _HALVINGS, rtol=_SHIFT_WIDTH)[1]
        return (self.eta + 1.0) * high * (1.0 + 4 * UNIT_ROUNDOFF)


class Poisson(NamedFields):
    """Numbers of runs with a Poisson distribution: none with probability exp(-mean).

    Parameters
    ----------
    mean : float
        Expected number of runs, positive and at most 1e15.

    Raises
    ------
    DomainError
        For numbers out of range.

    Notes
    -----
    Where there are no runs, nothing is released, which is an outcome of its own.

    **Accuracy** 1e-14 relative; ``tests/enclosures/test_selected.py``.

    Source: Papernot and Steinke 2022, section 3.4.

    Examples
    --------
    >>> from fastpriv.pairs import Poisson
    >>> Poisson(8.0).mean
    8.0
    """

    __slots__ = _fields = ("mean",)

    mean: float

    def __init__(self, mean: ArrayLike) -> None:
        self._set(mean=validate.scalar("mean", mean, "positive and at most 1e15", lambda x: (x > 0) & (x <= 1e15)))

    def _released(self, p: Any, above: Any) -> Any:
        m = np.longdouble(self.mean)
        return np.exp(-m * above) * -np.expm1(-m * p)

    def _log_slope(self, above: Any) -> Any:
        return -self.mean * above

    def _sensitivity(self) -> float:
        return 1.0 + 2.0 * self.mean

    def _size(self) -> float:
        return 16.0 * (1.0 + self.mean)

    def _shift(self, backward: Any) -> float:
        return self.mean * float(backward(np.zeros(1))[0]) * (1.0 + 4 * UNIT_ROUNDOFF)


Runs = NegativeBinomial | Poisson


class Selected(PairObject):
    """The best of a random number of runs: tuning of hyperparameters, and other private selection.

    Parameters
    ----------
    base : a pair
        What one run releases, with its tuning data: whatever ``compose`` takes as one pair, or a Composition. A tuple
        (p, q) means itself, in this order.
    runs : NegativeBinomial or Poisson
        Distribution of the number of runs, which is random, independent of the data and never released. A fixed number
        is not of this kind.
    order : {"largest", "smallest"} or array_like, optional
        Which run is the best, where the score is known to be a function of the release: the largest or the smallest
        value, or the last or first outcome of a vector; or the score of each outcome, the larger the better, ties drawn
        at random. By default nothing is known of the score.

    Raises
    ------
    DomainError
        For a base that is no single pair, other runs, or an order of a base that has no such values.
    ShapeError
        For another number of scores than of outcomes.

    Notes
    -----
    With a known order the pair is exact: of discrete bases, and of two normal distributions of one sigma. Without one,
    bounds from above hold for every order and score, and those from below are of the order of the losses, its
    reverse, and a score without information where there is always a run: they need not be the worst.

    "The best of m runs" is priced as ``compose(Selected(base, NegativeBinomial(1.0, 1.0 / m)))``: m on average.

    **Accuracy** ``tests/enclosures/test_selected.py``.

    Source: Papernot and Steinke 2022; Koskela, Redberg and Wang 2024; the head of ``fastpriv/pairs/selected.py``.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, compose
    >>> from fastpriv.pairs import NegativeBinomial, Selected
    >>> runs = NegativeBinomial(eta=1.0, gamma=0.5)
    >>> exact = compose(Selected(([0.5, 0.5], [0.25, 0.75]), runs, order="largest"))
    >>> print(f"{exact.delta(0.25, direction='forward'):.6f}")
    0.149901 [0.149901, 0.149902]
    >>> bound = compose(Selected(GaussianMechanism(2.0, 1.0), runs)).delta(3.0)
    >>> print(f"{bound.lower:.2e} {bound.upper:.2e}")
    6.80e-10 1.62e-08
    """

    __slots__ = _fields = ("base", "runs", "order")

    base: Any
    runs: Runs
    order: str | FloatArray | None

    def __init__(self, base: Any, runs: Runs, *, order: Order | ArrayLike | None = None) -> None:
        if not isinstance(runs, (NegativeBinomial, Poisson)):
            raise DomainError(
                f"runs must be a NegativeBinomial or a Poisson; got {validate.shown(runs)}. A fixed number of runs is "
                "not private selection: its epsilon is the sum of theirs."
            )
        if isinstance(order, str):
            validate.choice("order", order, ("largest", "smallest"))
        elif order is not None:
            order = validate.vector("order", order).copy()
        self._set(base=hashable_pair(base), runs=runs, order=order)
        self._bounding_pairs()  # raises

    def __reduce__(self) -> Any:
        return partial(type(self), order=self.order), (self.base, self.runs)

    def _bounding_pairs(self) -> BoundingPairs:
        pair, concrete = _read_base(self.base)
        if self.order is None:
            below = tuple(part for item in concrete for order in ("largest", "smallest")
                          for part in _of_monotone(item, self.runs, order))
            if isinstance(self.runs, NegativeBinomial):  # a score of no information: one run, as it is
                read = getattr(self.base, "forward_pairs", None) or read_pair("base", self.base).forward
                below += read.alternatives
            forward: Any = CompositionBase(self.base, "forward") if pair is None else PairBase(pair)
            backward: Any = CompositionBase(self.base, "backward") if pair is None else PairBase(pair.reversed())
            return BoundingPairs((_SelectionBound(forward, backward, self.runs, 1),), below or ((),))
        if isinstance(pair, DiscretePair) and concrete == (pair,):
            return _of_discrete(pair, self.runs, self.order)
        normal = pair is not None and pair.squared_gaussian_distance is not None
        if normal and concrete == (pair,) and isinstance(self.order, str):
            assert pair is not None
            return BoundingPairs((_of_gaussian(pair, self.runs, self.order),))
        raise DomainError(
            "order must be left out for a base that is neither discrete nor two normal distributions; got "
            f"{validate.shown(self.order)} with {pair_text(self.base)}. Bounds without it hold for every order."
        )


def _read_base(base: Any) -> tuple[DominatingPair | None, tuple[DominatingPair, ...]]:
    """The pair that dominates one run, None where it has curves of its own, and pairs that are attained."""
    if isinstance(base, PairObject) and type(base)._privacy_curves is not PairObject._privacy_curves:
        return None, ()
    read = read_pair("base", base).forward
    if len(read.dominating) != 1 or read.dominating[0].count != 1 or read.dominating[0].grid_losses is not None:
        raise DomainError(
            f"base must be a single pair, or a Composition; got {validate.shown(base)}. Pass fastpriv.compose(base)."
        )
    return read.dominating[0], tuple(
        alternative[0] for alternative in read.alternatives if len(alternative) == 1 and alternative[0].count == 1
    )


def _of_monotone(pair: DominatingPair, runs: Runs, order: str) -> tuple[tuple[DominatingPair, ...], ...]:
    """The selection of largest or smallest losses of a discrete or normal pair, from below."""
    if isinstance(pair, DiscretePair):
        with np.errstate(divide="ignore"):
            scores = np.log(pair.p) - np.log(pair.q)
        return _of_discrete(pair, runs, scores if order == "largest" else -scores).alternatives
    if pair.squared_gaussian_distance is not None:
        return ((_of_gaussian(pair, runs, order),),)
    return ()


def _of_discrete(pair: DiscretePair, runs: Runs, order: str | FloatArray) -> BoundingPairs:
    """The released outcome for known scores, and nothing where there are no runs."""
    outcomes = pair.p.size
    scores = np.arange(outcomes, dtype=np.float64) if isinstance(order, str) else order
    scores = -scores if isinstance(order, str) and order == "smallest" else scores
    if scores.size != outcomes:
        raise ShapeError(
            f"order must have one score for each of the {outcomes} outcomes; got {scores.size}. Outcomes that have the "
            "probability 0 under both are none."
        )
    levels, ties = np.unique(scores, return_inverse=True)
    rows = []
    for masses in (pair.p, pair.q):
        each = masses.astype(np.longdouble)
        tied = np.zeros(levels.size, dtype=np.longdouble)
        np.add.at(tied, ties, each)
        above = np.append(np.cumsum(tied[:0:-1])[::-1], np.longdouble(0))
        released = runs._released(tied, above)
        share = each / np.where(tied[ties] > 0, tied[ties], 1)
        rows.append(np.append(released[ties] * share, np.exp(-np.longdouble(runs.mean)) * isinstance(runs, Poisson)))
    p, q = rows
    gaps = pair.p_relative_error, pair.q_relative_error
    errors = [1.01 * gap * runs._sensitivity() + EXTENDED_ROUNDING * (outcomes + runs._size()) for gap in gaps]
    # Losses are finite also where p or q underflows.
    return bounding_atoms(p, q, np.append((pair.p > 0.0) & (pair.q > 0.0), isinstance(runs, Poisson)), *errors)


def _of_gaussian(pair: DominatingPair, runs: Runs, order: str) -> DominatingPair:
    assert pair.mixtures is not None
    (p_mean, q_mean), sigma = (float(mixture.means[0]) for mixture in pair.mixtures), float(pair.mixtures[0].sigmas[0])
    distance = (p_mean - q_mean) / sigma * (1.0 if order == "largest" else -1.0)
    if not abs(distance) <= _LARGEST_DISTANCE:
        raise DomainError(
            f"base must be two normal distributions at most {_LARGEST_DISTANCE:g} sigmas apart where an order is "
            f"given; got {abs(distance):g}. Leave order out."
        )
    return _SelectedGaussian(distance, 0.0, runs, 1)


@dataclass(frozen=True, slots=True, eq=False)
class _SelectionBound(DominatingPair):
    """The bound for any order, by the curves of one run, P against Q and Q against P."""

    has_lower_bounds = False

    forward: PairBase | CompositionBase
    backward: PairBase | CompositionBase
    runs: Runs
    count: int

    def curve(self, epsilon: FloatArray) -> Estimate:
        """m delta(epsilon - shift), from above."""
        shift, mean = _shift_of(self.repeated(1)), self.runs.mean * (1.0 + _OUTWARD)
        levels = np.asarray(epsilon, dtype=np.float64).ravel() - shift * (1.0 + _OUTWARD)
        levels = np.where(np.isposinf(levels), levels, next_below(levels))
        upper = np.ones(levels.shape)
        ahead, behind = levels >= 0.0, (levels < 0.0) & (levels > -np.inf)
        if ahead.any():
            upper[ahead] = _upper_bound(self.forward, levels[ahead])
        if behind.any():
            below = _upper_bound(self.backward, -levels[behind])
            upper[behind] = -np.expm1(levels[behind]) + np.exp(levels[behind]) * below
        tiny = 2.0**-1000 * (upper < 1e-290)
        upper = np.where(upper > 0.0, np.minimum(mean * upper * (1.0 + _OUTWARD) + tiny, 1.0), 0.0)
        upper = upper.reshape(np.shape(epsilon))
        return Estimate(upper, np.zeros(upper.shape), upper, kind="certified", unit="probability",
                        method="bound for any order of scores")

    def largest_loss(self) -> Bounds:
        """That of one run, and the shift."""
        return 0.0, next_above((_shift_of(self.repeated(1)) + self.forward.largest_loss()) * (1.0 + 4 * _OUTWARD))

    def reversed(self) -> _SelectionBound:
        """Q against P."""
        return _SelectionBound(self.backward, self.forward, self.runs, self.count)


def _upper_bound(base: PairBase | CompositionBase, levels: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(base.upper(levels)) * (1.0 + 4 * UNIT_ROUNDOFF))


@lru_cache(maxsize=64)
def _shift_of(bound: _SelectionBound) -> float:
    return bound.runs._shift(lambda a: _upper_bound(bound.backward, a))


@dataclass(frozen=True, slots=True, eq=False)
class _SelectedGaussian(DominatingPair):
    """P and Q are the largest values of runs of N(p_mean, 1) and N(q_mean, 1), one of the means 0."""

    losses_are_finite = True

    p_mean: float
    q_mean: float
    runs: Runs
    count: int

    @property
    def is_trivial(self) -> bool:
        """Whether the means are equal."""
        return self.p_mean == self.q_mean

    def reversed(self) -> _SelectedGaussian:
        """Q against P."""
        return _SelectedGaussian(self.q_mean, self.p_mean, self.runs, self.count)

    def largest_loss(self) -> Bounds:
        """log p/q has no end, and log f' is bounded."""
        return math.inf, math.inf

    def curve(self, epsilon: FloatArray) -> Estimate:
        """Masses of the cells whose losses exceed epsilon, and bounds of those in doubt."""
        levels = np.asarray(epsilon, dtype=np.float64).ravel()
        rows = np.zeros((2, levels.size))
        if not self.is_trivial and levels.size > _FEW_LEVELS:
            below, above = (_loss_atoms(self.repeated(1), dominating).curve(levels) for dominating in (False, True))
            rows[0], rows[1] = below.lower, above.upper
        elif not self.is_trivial:
            for index, level in enumerate(levels.tolist()):
                rows[:, index] = self._bounds(min(level, _LARGEST_LEVEL))
                rows[0, index] *= level <= _LARGEST_LEVEL
        lower, upper = (row.reshape(np.shape(epsilon)) for row in rows)
        return Estimate(lower + 0.5 * (upper - lower), lower, upper, kind="certified", unit="probability",
                        method="crossings of selected densities")

    def _ends(self, cells: int) -> FloatArray:
        low, high = sorted((self.p_mean, self.q_mean))
        return np.concatenate([[-np.inf], np.linspace(low - _FAR, high + _FAR, cells), [np.inf]])

    def _loss_bounds(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of the loss between two points."""
        with np.errstate(under="ignore", invalid="ignore"):
            p_left, p_right, q_left, q_right = (
                self.runs._log_slope(np.exp(special.log_ndtr(mean - y)))
                for mean in (self.p_mean, self.q_mean) for y in (left, right)
            )
            centre, slope = 0.5 * (self.p_mean + self.q_mean), self.p_mean - self.q_mean
            linear = np.sort([slope * (left - centre), slope * (right - centre)], axis=0)
            size = [np.where(np.isfinite(x), np.abs(x), 0.0) for x in linear]
            error = _LOSS_ERROR * (1.0 + abs(slope)) * (
                1.0 + np.maximum(*size) + np.abs(p_left) + np.abs(q_left) + np.abs(centre))
            low, high = p_left - q_right + linear[0] - error, p_right - q_left + linear[1] + error
        return np.nan_to_num(low, nan=-np.inf, posinf=np.inf, neginf=-np.inf), np.nan_to_num(
            high, nan=np.inf, posinf=np.inf, neginf=-np.inf
        )

    def _masses(self, left: FloatArray, right: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Released probabilities between two points under P and Q, with their absolute errors."""
        result = []
        for mean in (self.p_mean, self.q_mean):
            with np.errstate(under="ignore", invalid="ignore", over="ignore"):
                logs = [special.log_ndtr(sign * (y - mean)) for y in (left, right) for sign in (1.0, -1.0)]
                below, above, below_right, above_right = np.exp(logs)
                p = np.where(left >= mean, above - above_right, below_right - below)
                value = self.runs._released(np.maximum(p, 0.0), above_right).astype(np.float64)
                error = np.zeros(value.shape)
                for y, tails, better in ((left, logs[:2], above), (right, logs[2:], above_right)):
                    log = np.minimum(*tails)
                    rounding = UNIT_ROUNDOFF * (1.0 + abs(mean)) * np.where(np.isfinite(y), 4.0 + np.abs(y), 0.0) * (
                        2.0 + np.where(np.isfinite(y), np.abs(y - mean), 0.0))
                    relative = _NORMAL_ERROR * (1.0 - np.where(np.isfinite(log), log, 0.0)) + rounding
                    slope = self.runs.mean * np.exp(self.runs._log_slope(better))
                    error += np.exp(log) * relative * slope * (1.0 + 1e-6)
                error += value * (UNIT_ROUNDOFF * 4.0 + EXTENDED_ROUNDING * self.runs._size())
            result.append((value, error))
        return result

    def _bounds(self, level: float) -> tuple[float, float]:
        left, right, low, high = _gaussian_cells(self.repeated(1), _CELLS)
        sure, doubtful = low > level, (low <= level) & (high > level)
        parts, pending, ends = [(left[sure], right[sure])], (left[doubtful], right[doubtful]), high[doubtful]
        for _ in range(_HALVINGS):
            wide = np.isfinite(pending[0]) & np.isfinite(pending[1])
            if not wide.any() or wide.sum() > _MOST_DOUBTFUL:
                break
            a, b = pending[0][wide], pending[1][wide]
            middle = 0.5 * (a + b)
            a, b = (np.concatenate([*two, pending[i][~wide]])
                    for i, two in enumerate(((a, middle), (middle, b))))
            low, high = self._loss_bounds(a, b)
            sure, doubtful = low > level, (low <= level) & (high > level)
            parts.append((a[sure], b[sure]))
            pending, ends = (a[doubtful], b[doubtful]), high[doubtful]
        a, b = _joined(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        total, rounding = 0.0, 2.0**-1000
        if a.size:
            (p, p_error), (q, q_error) = self._masses(a, b)
            x = math.exp(level)
            terms = p - x * q
            total = math.fsum(terms.tolist())
            rounding += math.fsum((p_error + x * q_error + 4 * UNIT_ROUNDOFF * (p + x * q) * (1.0 + level)).tolist())
        lower, upper = total - rounding, total + rounding
        if pending[0].size:
            p, error = self._masses(*pending)[0]
            with np.errstate(under="ignore"):
                share = -np.expm1(np.minimum(level - ends, 0.0))
            upper += math.fsum(((p + error) * share).tolist()) * (1.0 + 1e-12)
        return min(max(lower, 0.0), 1.0), min(max(upper, 0.0), 1.0)

    @property
    def curve_width(self) -> float:
        """The intervals of a grid follow the width of the bounds."""
        return _CURVE_WIDTH


@lru_cache(maxsize=8)
def _loss_atoms(pair: _SelectedGaussian, dominating: bool) -> DominatingPair:
    """The cells as outcomes, by bounds of their losses: of a pair that dominates, or is dominated."""
    left, right, low, high = _gaussian_cells(pair, _GRID_CELLS)
    (p, p_error), (q, q_error) = pair._masses(left, right)
    beyond = 0.0
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        if dominating:  # each cell's mass at both ends of its losses, with the same mass of Q
            most, ends = p + p_error, np.isposinf(high)
            beyond = float(most[ends].sum()) * (1.0 + 1e-12) + 2.0**-1000
            inside = ~ends & (most > 0.0)
            most, low, high = most[inside], low[inside], high[inside]
            ratio = np.log(most) - np.log(np.maximum((q - q_error)[inside], 0.0)) + _LOSS_ERROR
            ratio = np.clip(ratio, low, high)
            share = np.where(np.isfinite(low), np.expm1(low - ratio) / np.expm1(low - high), 1.0)
            share = np.clip(np.where(high > low, share, 1.0) * (1.0 + 1e-9), 0.0, 1.0)
            losses = np.concatenate([high, np.where(np.isfinite(low), low, high)])
            masses = np.concatenate([most * share, most * (1.0 - share)])
        else:
            least = np.maximum(p - p_error, 0.0)
            losses = np.maximum(np.log(least) - np.log(q + q_error) - _LOSS_ERROR, low)
            selected = (least > 0.0) & np.isfinite(losses)
            losses, masses = losses[selected], least[selected]
        p_masses = np.append(masses.astype(np.longdouble), beyond)
        q_masses = np.append(masses * np.exp(-losses.astype(np.longdouble)), 0.0)
    finite = np.append(masses > 0.0, False)
    rounding = EXTENDED_ROUNDING * 709  # larger losses of doubles are no doubles
    pairs = bounding_atoms(p_masses, q_masses, finite, 0.0, rounding)
    return pairs.dominating[0] if dominating else pairs.alternatives[0][0]


def _joined(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Neighbouring cells as one."""
    order = np.argsort(left)
    left, right = left[order], right[order]
    starts = np.append(True, left[1:] != right[:-1]) if left.size else np.empty(0, dtype=bool)
    return left[starts], right[np.append(starts[1:], True)] if left.size else right


@lru_cache(maxsize=8)
def _gaussian_cells(pair: _SelectedGaussian, cells: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """The cells of a pair: their left and right ends, and bounds of their losses."""
    ends = pair._ends(cells)
    left, right = ends[:-1], ends[1:]
    return left, right, *pair._loss_bounds(left, right)
