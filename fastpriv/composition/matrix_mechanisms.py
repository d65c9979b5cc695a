"""Correlated noise of any matrix without negative entries, with any patterns of participation: certified comparisons.

Notation: C x plus N(0, sigma^2 I) noise is released; a record contributes in the steps of a pattern u, with at most the
sensitivity s each, with probability pi_u. In units of sigma / s the means are C u, K_uv = <C u, C v> >= 0, and under Q

    R = sum over u of pi_u e^(y_u - K_uu / 2),    y normal of covariance K.

Both deltas are means of convex functions of R, and rise with every entry of K (Kahane 1986): those of a covariance
K' >= K bound them from above, of K'' <= K from below. Compared are, with the largest diagonal entry g and a number r,

* K' = r + (g - r) [u, v in one cluster], where r is at least all entries between clusters: a Gaussian mechanism of the
  squared distance r, and beside it an allocation among the clusters with a^2 = g - r, independent of it. An allocation
  with unequal probabilities is at most one among floor(1 / largest probability) steps: these majorise them;
* P as the average over classes of patterns, between which in one class K is at most r: the same for the worst class
  (joint convexity);
* with equal probabilities, in the order of the patterns, K' = r but for the diagonal and what is beside it: bins on a
  line with two bands (``banded_sums``), beside the Gaussian mechanism.

From below: the same with least entries, and the sum of all patterns alone, a mixture on the line.

Source: Kahane, Comptes rendus de l'Academie des sciences 303, 1986; Choquette-Choo, Ganesh, Haque, Steinke and Thakurta
2025 (the pair dominates).
"""

# bounds: proved - 1e-11 is far above the roundings of sums of up to 4096 positive terms and of what follows from them

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import FloatArray
from ..distributions import GaussianMixture
from ..kernels import _matrix_product
from ..pairs.allocations import IMPROVED_DELTAS, AllocationPair
from ..pairs.banded_sums import banded_pair
from ..pairs.mixture_pairs import MixturePair
from ..pairs.protocol import BoundingPairs, DominatingPair
from .random_allocation import ALLOWANCE, StructuredSampling, mixture_of_sum, noise_and_sensitivity

_MAX_SIZE = 4096  # patterns, steps and rows, for which the roundings below hold
_SHARES = (0.0, 0.5, 0.9, 1.0)  # of the entries beside the diagonal that r is at least, as they are tried
_REFERENCE = 1e-6  # delta at which comparisons are compared
_MOST_ORDERS = 12  # of moments by which comparisons are chosen
_MOST_CLASSES = 64  # more have few patterns each
_Pairs = tuple[DominatingPair, ...]


class MatrixMechanism(StructuredSampling):
    """Noise correlated by any matrix without negative entries; a record takes part in the steps of a random pattern.

    Parameters
    ----------
    matrix : array_like, shape (rows, steps)
        C, at least 0 and finite.
    sigma : float
        Standard deviation of the noise before it is multiplied with the inverse of C, positive and finite.
    patterns : array_like, shape (patterns, steps)
        How often a record of each pattern contributes to each step: at least 0, mostly 0 or 1. For b bins over k epochs
        ``np.tile(np.eye(b), k)``.
    probabilities : array_like, shape (patterns,), optional
        Of the patterns; equal by default.
    sensitivity : float, default 1
        Largest length of the contribution of a record to a step, in the unit of sigma, at least 0 and finite.

    Raises
    ------
    DomainError, ShapeError
        For parameters out of range, negative entries, for which equal contributions need not be worst, and shapes that
        do not fit.

    Notes
    -----
    Neighbours differ by a record that is added or removed. Bounds are certified, and as far apart as comparisons with
    simpler covariances are: close where the columns of different patterns hardly overlap, or overlap alike. Up to 4096
    patterns and steps. For banded Toeplitz matrices ``BandedMatrixMechanism`` is narrower.

    **Accuracy** ``tests/enclosures/test_matrix_mechanisms.py``.

    Source: Kahane 1986; the head of this module.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv.pairs import MatrixMechanism
    >>> mechanism = MatrixMechanism(np.eye(10, 9) + 0.5 * np.eye(10, 9, k=-1), sigma=2.0, patterns=np.eye(9))
    >>> found = mechanism.delta(1.0, direction="forward")
    >>> bool(0.0 < found.lower < found.upper < 2.0 * found.lower)
    True
    """

    __slots__ = _fields = ("matrix", "sigma", "patterns", "probabilities", "sensitivity")

    matrix: FloatArray
    sigma: float
    patterns: FloatArray
    probabilities: FloatArray | None
    sensitivity: float

    def __init__(
        self, matrix: ArrayLike, sigma: ArrayLike, patterns: ArrayLike, probabilities: ArrayLike | None = None,
        sensitivity: ArrayLike = 1.0,
    ) -> None:
        c, u = (_rows(name, x) for name, x in (("matrix", matrix), ("patterns", patterns)))
        if u.shape[1] != c.shape[1]:
            raise ShapeError(
                f"patterns must have one column for each of the {c.shape[1]} columns of matrix; got {u.shape[1]}. Pass "
                "a row of participations in all steps for each pattern."
            )
        weights = None
        if probabilities is not None:
            weights = validate.with_argument_name(
                "weights", "probabilities", lambda: validate.probabilities("weights", probabilities)
            ).copy()
            if weights.shape != (u.shape[0],):
                raise ShapeError(
                    f"probabilities must have one entry for each of the {u.shape[0]} patterns; got {weights.size}. "
                    "Pass one each."
                )
        noise, span = noise_and_sensitivity(sigma, sensitivity)
        validate.scalar("the largest entries of matrix and patterns, times sensitivity over sigma",
                        float(c.max()) * float(u.max()) * (span / noise), "below 1e100", lambda x: x < 1e100)
        self._set(matrix=c, sigma=noise, patterns=u, probabilities=weights, sensitivity=span)

    def _bounding_pairs(self, deltas: tuple[float, float] = IMPROVED_DELTAS) -> BoundingPairs:
        return _comparisons(self, deltas)


def _rows(name: str, matrix: Any) -> FloatArray:
    """A matrix without negative entries."""
    rows = validate.real(name, matrix)
    if rows.ndim != 2 or not 0 < max(rows.shape) <= _MAX_SIZE or not min(rows.shape):
        raise ShapeError(f"{name} must have two axes of 1 to {_MAX_SIZE} entries; got the shape {rows.shape}. "
                         "Pass a matrix.")
    if not ((rows >= 0.0) & (rows < np.inf)).all():
        raise DomainError(
            f"{name} must be at least 0 and finite; got {float(rows.min())!r}. The worst contributions of a record are "
            "known for matrices without negative entries only."
        )
    return np.array(rows, dtype=np.float64)


@functools.lru_cache(maxsize=64)
def _comparisons(mechanism: MatrixMechanism, deltas: tuple[float, float]) -> BoundingPairs:
    """The best comparison from above, and all from below."""
    means = _matrix_product.product(mechanism.patterns, mechanism.matrix) * (mechanism.sensitivity / mechanism.sigma)
    k = _matrix_product.product(means, means)
    n = len(k)
    weights = np.full(n, 1.0 / n) if mechanism.probabilities is None else mechanism.probabilities
    k, weights = k[np.ix_(weights > 0.0, weights > 0.0)], weights[weights > 0.0]
    n = len(k)
    beside = k[~np.eye(n, dtype=bool)] if n > 1 else np.zeros(1)
    g = float(np.diagonal(k).max())
    result: list[tuple[float, _Pairs]] = []

    def compared(r: float, steps: int, pairs: _Pairs = ()) -> None:
        allocation = AllocationPair(_root(g - r, 1), steps, False, deltas, 1)
        result.append((_rough_epsilon(r, g, steps), pairs or _beside_gaussian(r, allocation, 1)))

    if n > 2 and np.ptp(weights) <= 1e-15 * n:
        lines = [_line(k, side, deltas) for side in (1, -1)]
        if lines[0]:
            compared(float(k[np.abs(np.subtract.outer(np.arange(n), np.arange(n))) > 1].max()), n // 2, lines[0])
    for share in _SHARES:
        r = min(float(np.quantile(beside, share, method="higher")), g)
        compared(r, max(_clusters(k, weights, r), _classes(k, weights, r)))
    compared(g, 1)
    low, low_r = float(np.diagonal(k).min()), min(float(beside.min()), float(np.diagonal(k).min()))
    dominated = [_beside_gaussian(low_r, AllocationPair(_root(low - low_r, -1), n, False, deltas, 1), -1)]
    if n > 2 and np.ptp(weights) <= 1e-15 * n and lines[1]:
        dominated = [lines[1]]
    dominated.append((_of_sum(k, weights),))
    return BoundingPairs(min(result, key=lambda item: item[0])[1], tuple(dominated))


def _rough_epsilon(r: float, g: float, steps: int) -> float:
    """Where Renyi divergences of a comparison have the delta of reference, to choose among them: no bound."""
    order = np.arange(_MOST_ORDERS + 1)
    factorials = np.array([math.factorial(j) for j in order], dtype=np.float64)
    term = np.exp(np.minimum((g - r) * order * (order - 1) / 2.0, 300.0)) / factorials
    power, remainder, n = np.eye(1, _MOST_ORDERS + 1)[0], term / np.maximum(float(steps), 1.0) ** order, steps
    while n:  # the moments of a sum, as coefficients of a power of the series of one term
        if n % 2:
            power = np.convolve(power, remainder)[: order.size]
        remainder, n = np.convolve(remainder, remainder)[: order.size], n // 2
    with np.errstate(over="ignore", invalid="ignore"):
        logs = np.log(np.minimum(power * factorials, 1e300))[2:] + r * (order * (order - 1) / 2.0)[2:]
    return float(((logs - math.log(_REFERENCE)) / (order[2:] - 1)).min())


def _root(square: float, side: int) -> float:
    """A length in units of sigma, moved up or down by the roundings of K."""
    return math.sqrt(max(square, 0.0)) * (1.0 + side * ALLOWANCE) if square > 0.0 else 0.0


def _beside_gaussian(square: float, pair: DominatingPair, side: int) -> _Pairs:
    """A pair beside an independent Gaussian mechanism."""
    zero = GaussianMixture.single(0.0, 1.0)
    gaussian = MixturePair(GaussianMixture.single(_root(square, side), 1.0), zero, 1)
    if not square > 0.0:
        return (pair,)
    return (gaussian,) if isinstance(pair, AllocationPair) and pair.scale == 0.0 else (gaussian, pair)


def _steps(weights: FloatArray) -> int:
    """Of an allocation with equal probabilities that is worse than this one."""
    return max(int(weights.sum() / weights.max() * (1.0 + 1e-12)), 1)


def _clusters(k: FloatArray, weights: FloatArray, r: float) -> int:
    """Steps of the allocation among the clusters that entries above r make."""
    left, sums = np.ones(len(k), dtype=bool), []
    while left.any():
        members, last = [], np.array([int(np.argmax(left))])
        while last.size:
            members.append(last)
            left[last] = False
            last = np.flatnonzero(left & (k[last] > r).any(axis=0))
        sums.append(float(weights[np.concatenate(members)].sum()))
    return _steps(np.array(sums))


def _classes(k: FloatArray, weights: FloatArray, r: float) -> int:
    """Steps of the worst class, each pattern being put in the first class where no entry exceeds r."""
    classes: list[list[int]] = []
    for i in range(len(k)):
        fitting = next((item for item in classes if (k[i, item] <= r).all()), None)
        if fitting is None and len(classes) == _MOST_CLASSES:
            return 1
        if fitting is None:
            classes.append([i])
        else:
            fitting.append(i)
    return min(_steps(weights[class_]) for class_ in classes)


def _line(k: FloatArray, side: int, deltas: tuple[float, float]) -> _Pairs:
    """Two bands on a line beside a Gaussian mechanism, from above or from below; nothing where they do not fit."""
    n, pick = len(k), np.max if side > 0 else np.min
    lags = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    g, near, r = (float(pick(k[lags == d])) if d < 2 else float(pick(k[lags > 1])) for d in (0, 1, 2))
    near = max(near, r) if side > 0 else near
    r = r if side > 0 else min(r, near, g)
    second, first = near - r, g - r
    if side > 0:
        first = max(first, 2.0 * second)
    second = min(second, 0.5 * first)
    ends = [math.sqrt(max(first + sign * 2.0 * second, 0.0)) for sign in (1, -1)]
    loadings = tuple(0.5 * (ends[0] + sign * ends[1]) * (1.0 + side * 1e-7) for sign in (1, -1))
    # the roots lose digits where both loadings are alike: their product and squares must be moved outward
    shifted = side * (loadings[0] * loadings[1] - second), side * (loadings[0] ** 2 + loadings[1] ** 2 - first)
    if shifted[0] < ALLOWANCE * near or shifted[1] < ALLOWANCE * g:
        return ()
    large = AllocationPair(math.hypot(*loadings), max(n // 2, 1), False, deltas, 1)
    small = AllocationPair(math.hypot(*loadings), n, False, deltas, 1)
    pair = banded_pair(loadings, n, loadings, n, large, small) if loadings[1] > 0.0 else None
    return () if pair is None else _beside_gaussian(r, pair, side)


def _of_sum(k: FloatArray, weights: FloatArray) -> MixturePair:
    """The release along the mean of all patterns."""
    sums = _matrix_product.product(k, weights[None, :])[:, 0]
    length = math.sqrt(float(weights @ sums))
    return mixture_of_sum(sums / length if length > 0.0 else np.zeros(len(k)), weights)
