"""Discrete distributions on the real line; fewer atoms in their place where Gaussian noise is added.

A ``Pmf`` puts probability ``p_i`` on the point ``x_i``.

Grouping of atoms
-----------------
Notation: atoms x_i of weights w_i > 0, phi the standard normal density, M(y) = sum w_i phi((y - x_i) / s) s times the
density of the output, h the largest length of a cell in units of s. A cell has middle c, atoms at c + s (h/2) t_i with
|t_i| <= 1, and weight W. With u = (y - c) / s its part of M(y) is phi(u) times the sum of w_i f(t_i), where
f(t) = exp(u (h/2) t - (h t)^2 / 8); let a = |u| h / 2 and b = h^2 / 16.

The bound. The Chebyshev coefficients c_m of f satisfy |c_m| <= e^b C_m, where C_m are those of exp(a T_1 + b T_2),
since products of the T_m are sums of them with positive factors. On the ellipse of parameter r, |f| is at most M_r =
exp(a (r + 1/r) / 2 + b (r - 1/r)^2 / 2), so that what c_m with m >= 2k sum up to is at most 2 M_r r^(-2k) / (1 - 1/r).
And f >= e^(-a - 2b). If nodes of a cell have moments that differ from its own by d_m W, the cell's part of M moves by
at most e^(a + 2b) (sum_(m < 2k) e^b C_m |d_m| + (2 + d_0) sum_(m >= 2k) |c_m|) of itself. d_m is what the kernel
computes plus its rounding: with u the unit of rounding, T_m(t) from its recurrence errs by at most 3 u times
1 + 2 + ... + (m - 1), below 1.5 m^2 u; a product by u; sums in double-double by u and (n u)^2. The rounding of t, at
most 2 u of t, moves a point by 2 u (h/2) s and its part of M by 2 u (a + 4b) of itself.

That serves cells with |u| <= U. Where y is at most R s from an atom, M(y) is at least min(w) phi(R), and all cells
with |u| > U together have at most sum(w) phi(U - h/2), with their atoms or with their nodes: U is such that twice this
is below 1e-16 of the former.
"""

# bounds: proved - by the text above; 1 + 1e-9 and 1 + 1e-12 cover rounding

from __future__ import annotations

import math
import operator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray, IndexArray
from ..base.values import ValueObject
from ..kernels import _grouping
from .mixtures import GaussianMixture
from .packed import MAX_MAGNITUDE

# bound: proved - by the text above: relative mass of all cells that lie too far away
_FAR_MASS = 1e-16
# bound: proved - covers the rounding of the few operations that make the bound itself
_BOUND_ROUNDING = 1.01
# bound: proved - rounding of Chebyshev coefficients from a discrete cosine transform, relative to their sum
_COEFFICIENT_ERROR = 1e-14
_LARGEST_EXPONENT = 40.0  # of a coefficient of the bound of grouping; beyond it rounding alone exceeds all tolerances
_CELL_LENGTHS = tuple(2.0**-i for i in range(14))  # candidates, in units of sigma
_ANGLES = 128  # points of the discrete cosine transform that gives Chebyshev coefficients


class Pmf(ValueObject):
    """A discrete distribution on the real line: an input before noise is added.

    Parameters
    ----------
    values : array_like, shape (n,)
        The points, distinct, in any order.
    probabilities : array_like, shape (n,)
        Their probabilities; they must sum to 1 within 1e-9. Those of float32 may miss 1 by 2e-6, and are then
        divided by their sum in doubles. Points of probability zero are dropped.

    Raises
    ------
    DomainError
        For NaN, infinite values, repeated values, or probabilities that do not sum to 1.
    ShapeError
        For empty or unequal lengths.

    Examples
    --------
    >>> from fastpriv import Pmf
    >>> ages = Pmf.from_data([31, 40, 40, 58])
    >>> ages.values, ages.probabilities
    (array([31., 40., 58.]), array([0.25, 0.5 , 0.25]))
    """

    __slots__ = _fields = ("values", "probabilities")

    values: FloatArray
    probabilities: FloatArray

    def __init__(self, values: ArrayLike, probabilities: ArrayLike) -> None:
        x = validate.vector("values", values, "finite and at most 1e300 in size", lambda v: np.abs(v) <= MAX_MAGNITUDE)
        p = validate.probabilities("probabilities", probabilities)
        if x.shape != p.shape:
            raise ShapeError(
                f"values and probabilities must have equal lengths; got {x.size} and {p.size}. "
                "Pass one probability a value."
            )
        order = np.argsort(x, kind="stable")
        x, p = x[order], p[order]
        repeated = np.flatnonzero(x[1:] == x[:-1])
        if repeated.size:
            raise DomainError(
                f"values must be distinct; got {float(x[repeated[0]])!r} more than once ({repeated.size} repeats "
                f"among {x.size} entries). Add up the probabilities of equal values, or use Pmf.from_data."
            )
        self._set(values=x[p > 0], probabilities=p[p > 0])

    @classmethod
    def from_data(cls, column: ArrayLike, *, bins: int | None = None) -> Pmf:
        """The empirical distribution of a column of numbers.

        Parameters
        ----------
        column : array_like, shape (n,)
            The records.
        bins : int, optional
            Round every record to the centre of one of this many equal bins over the column's range; None keeps the
            exact values.
        """
        x = validate.vector("column", column)
        if bins is not None:
            number = validate.count("bins", bins, minimum=1)
            validate.count("bins", number, maximum=2**53)  # their edges are doubles
            low, high = float(x.min()), float(x.max())
            if low < high:
                cell = np.minimum(((x - low) / (high - low) * number).astype(np.int64), number - 1)
                x = low + (cell + 0.5) * ((high - low) / number)
        values, counts = np.unique(x, return_counts=True)
        return cls(values, counts / x.size)

    def __len__(self) -> int:
        return len(self.probabilities)

    @property
    def mass_gap(self) -> float:
        """Distance of the sum from 1, a relative error of all probabilities; 0 where it is 1 as a double."""
        return validate.rounded_sum_gap(self.probabilities)

    def through_gaussian(self, sigma: float) -> GaussianMixture:
        """The distribution of value + N(0, sigma^2) noise."""
        return GaussianMixture(self.probabilities, self.values, validate.scalar("sigma", sigma))

    def __repr__(self) -> str:
        if len(self) > 6:
            return f"<Pmf on {len(self)} points of [{self.values[0]:g}, {self.values[-1]:g}]>"
        return f"Pmf({self.values.tolist()}, {self.probabilities.tolist()})"


class GroupedAtoms(NamedTuple):
    """A distribution with fewer atoms.

    Cell j holds the atoms ``atoms[j]:atoms[j + 1]``, and the nodes ``nodes[j]:nodes[j + 1]`` represent them. With noise
    added the density is that of the original within a factor of 1 +- ``error``, wherever an atom lies within ``radius``
    standard deviations.
    """

    values: FloatArray
    weights: FloatArray
    atoms: IndexArray
    nodes: IndexArray
    error: float
    radius: float


def grouped_atoms(
    values: FloatArray, weights: FloatArray, sigma: float, *, radius: float = 12.0, tolerance: float = 1e-13
) -> GroupedAtoms:
    """Group the atoms of a discrete distribution for noise of standard deviation ``sigma``.

    Parameters
    ----------
    values : ndarray, shape (n,)
        The atoms, strictly increasing.
    weights : ndarray, shape (n,)
        Their weights, positive.
    sigma : float
        Standard deviation of the noise, positive.
    radius : float, default 12.0
        Distance from the nearest atom up to which the bound holds, in standard deviations.
    tolerance : float, default 1e-13
        Largest ``error``. Atoms that cannot be grouped so well stay as they are.

    Returns
    -------
    GroupedAtoms
        Nodes in increasing order, with positive weights, each within the range of the atoms of its cell.

    Notes
    -----
    The number of nodes is at most about forty for each ``sigma`` of the range of the atoms, the time that of one pass
    over them. Weights far apart in size, or a large ``radius``, take up to four times as many nodes.

    **Accuracy** proved; ``tests/enclosures/test_grouping.py``.

    Source: Gautschi, Orthogonal Polynomials: Computation and Approximation, 2004, section 2.2.3.
    """
    spread = 2 * math.log(2 * math.fsum(weights)) - 2 * math.log(float(weights.min()) * 0.999) - 2 * math.log(_FAR_MASS)
    distance = math.sqrt(radius * radius + max(spread, 0.0)) * (1 + 1e-9)
    plan = _plan(math.ceil(8 * distance) / 8, tolerance, weights.size)
    if plan is None:
        ends = np.arange(weights.size + 1, dtype=np.intp)
        return GroupedAtoms(values, weights, ends, ends, 0.0, radius)
    values, weights = np.ascontiguousarray(values), np.ascontiguousarray(weights)
    allowed = (tolerance - plan.error) / _BOUND_ROUNDING
    nodes, masses, first_atoms, first_nodes, worst = _grouping.group_atoms(
        values, weights, plan.length * sigma, plan.cost.size // 2, plan.cost, allowed
    )
    error = plan.error + worst * _BOUND_ROUNDING if nodes.size < weights.size else 0.0
    return GroupedAtoms(nodes, masses, first_atoms, first_nodes, error, radius)


class _Plan(NamedTuple):
    length: float  # of a cell, in units of sigma
    cost: FloatArray  # relative error of the density for a unit difference of each moment
    error: float  # relative error of the density that does not depend on these differences


@lru_cache(maxsize=64)
def _plan(distance: float, tolerance: float, atoms: int) -> _Plan | None:
    """The cell length and number of nodes with the fewest nodes in all; None where rounding exceeds the tolerance."""
    best: _Plan | None = None
    for length in _CELL_LENGTHS:
        h = length * (1 + 1e-12)
        a, b = (distance + 0.5 * h) * 0.5 * h, h * h / 16
        if a > _LARGEST_EXPONENT:  # rounding, which the bound multiplies by e^a, exceeds every tolerance
            continue
        coefficients = _coefficients(a, b, 2 * _grouping.MAX_NODES)
        for k in range(2, _grouping.MAX_NODES + 1):
            if best is not None and k / length >= best.cost.size / 2 / best.length:
                break
            cost = [_rounded_up(math.exp(a + 3 * b) * c) for c in coefficients[: 2 * k]]
            # rounding of each moment, of the atoms and of the nodes alike; then that of t
            rounding = [UNIT_ROUNDOFF * (2.1 + 1.5 * m * m) + (atoms * UNIT_ROUNDOFF) ** 2 for m in range(2 * k)]
            error = 2 * math.fsum(map(operator.mul, cost, rounding)) + 4 * UNIT_ROUNDOFF * (a + 4 * b)
            error = error + 2 * math.exp(a + 2 * b) * _coefficient_tail(a, b, 2 * k) + 2 * _FAR_MASS
            error = _rounded_up(_BOUND_ROUNDING * error)
            if error <= 0.75 * tolerance:
                best = _Plan(length, np.array(cost), error)
                break
    return best


def _coefficients(a: float, b: float, count: int) -> list[float]:
    """Upper bounds of the first Chebyshev coefficients of exp(a T_1 + b T_2); aliasing only adds to them."""
    cosine = [math.cos(2 * math.pi / _ANGLES * i) for i in range(_ANGLES)]
    f = [math.exp(a * cosine[i] + b * cosine[2 * i % _ANGLES]) for i in range(_ANGLES)]
    coefficients = []
    for m in range(count):
        mean = math.fsum(f[i] * cosine[m * i % _ANGLES] for i in range(_ANGLES)) / _ANGLES
        coefficients.append(max(mean if m == 0 else 2 * mean, 0.0) + _COEFFICIENT_ERROR * math.exp(a + b))
    return coefficients


def _rounded_up(x: float) -> float:
    """Round up to nine bits, so that the grouping does not depend on the exponential function of a machine."""
    fraction, exponent = math.frexp(x)
    return math.ldexp(math.ceil(fraction * 512), exponent - 9)


def _coefficient_tail(a: float, b: float, first: int) -> float:
    """A bound of the sum of the Chebyshev coefficients of f from ``first`` on, by the best of some ellipses."""

    def bound(r: float) -> float:
        log = 0.5 * a * (r + 1 / r) + 0.5 * b * (r - 1 / r) ** 2 - first * math.log(r)
        return 2 * math.exp(min(log, 600.0)) / (1 - 1 / r)

    return min(bound(2.0 ** (j / 4)) for j in range(2, 40))
