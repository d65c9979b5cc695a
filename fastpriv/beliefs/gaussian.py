"""What a release does to beliefs about a discrete secret behind Gaussian noise.

Notation: pi_d the prior of the point x_d, N_d the density of N(x_d, sigma^2), q = sum pi_d N_d, and
E_d = N_d / q - 1 the relative change of the belief in d on seeing a release. If d0 is the truth, the expected posterior
is A[d0, d] = pi_d integral N_d0 N_d / q, and e = A[d0, d] / pi_d - 1 = integral q E_d0 E_d, which cancels nothing. The
divergence is half of F(d0) = sum pi_d j(e), j as in csrc/fp_abp.h.

Many points. As a function of x_d, what is summed is smooth on the scale of sigma: the sums run over the nodes of
``grouped_atoms``. So is F as a function of x_d0: where a cell of length sigma holds many points, F is evaluated at the
nodes of a Chebyshev polynomial, whose last coefficients estimate the error; the cell is halved until they are small
and F is of one size in it, and the few points at which F is far below that are evaluated themselves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate, special
from ..distributions import Pmf
from ..distributions.pmf import grouped_atoms
from ..estimate import Estimate
from ..kernels import _abp

__all__ = ["belief_shift"]

FloatArray = NDArray[np.float64]
Places = NDArray[np.intp]
# nodes a standard deviation: the trapezoidal rule converges geometrically, its error squares with every doubling
_DENSITIES = (8, 16, 32, 64, 128)
# bound: none - when doubling of the nodes ends; the answer is called heuristic
_AGREEMENT = 1e-11  # of the rules with all and with half the nodes, after which doubling ends
# bound: proved - a normal law has less than 1e-23 beyond it; below _ROUNDING
_TAIL = 10.0  # standard deviations beyond the outermost point of a block, where 1e-23 of the mass is left
# bound: proved - A[a, b] <= sqrt(w_b / w_a) e^(-D^2 / 8), since a posterior is at most 1; D such that it is below 1e-16
_FAR = 37.0
_SPAN = 8.0  # of the true values of a block
_WHOLE, _SMALL_LAW = 24.0, 512  # span up to which one grid serves all, and up to 64 for so few atoms
_ROWS = 256
_MANY = 24  # points of a cell beyond which they are interpolated
_ORDER = 16
_HALVINGS = 40
# bound: none - when halving of cells ends; what the last coefficients say counts in full
_SMOOTH = 2e-13
# bound: tested by enclosures/test_many_values - rounding of an interpolated value, relative to the largest of its cell
_INTERPOLATION_ERROR = 1e-14
_FLOOR = 1 / 32  # of the largest value of a cell, below which points are evaluated themselves,
_FEW_LOW = 100  # or, in cells of more points, the cell is halved
# bound: tested by enclosures/test_notions, enclosures/test_many_values - rounding of the divergence, beside the
#    difference of two rules, which estimates the other error
_ROUNDING = 1e-12
# bound: tested by enclosures/test_many_values - rounding of e, relative to the largest of all true values, or to 1
#    where N_a stands for q E_a
_CANCELLATION = 4e-15
# bound: tested by enclosures/test_many_values - rounding of divergences that are subnormal
_LEAST_ERROR = 1e-320
# bound: none - asked of the grouping; what it costs is tested with the rest
_GROUPING = 1e-12
_LN2 = float(np.log(2.0))


def belief_shift(prior: Pmf, sigma: float) -> Estimate:
    """Root of the Jensen-Shannon divergence between expected posterior and prior, for every true value.

    Parameters
    ----------
    prior : Pmf
        The attacker's prior over the secret, shape (n,); the release is secret + N(0, sigma^2).
    sigma : float
        Standard deviation of the noise, in the unit of the secret.

    Returns
    -------
    Estimate
        Shape (n,), between 0 and sqrt(log 2), ``kind="heuristic"``: the bounds are the difference of two trapezoidal
        rules, one with twice the nodes of the other, for values that were interpolated the last coefficients of the
        polynomial, and an allowance for rounding.

    Raises
    ------
    DomainError
        If ``prior`` is not a Pmf, or ``sigma`` is not positive and finite.

    Notes
    -----
    Thousands of values are summed as a few nodes for each sigma of their range, and what is asked of each of them is
    interpolated: the time grows with their number, and the same bits come from every instruction set.

    **Accuracy** about 1e-12 relative, weak and strong noise alike; ``tests/enclosures/test_notions.py``, of many values
    ``tests/enclosures/test_many_values.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.1, with the law of the release made explicit.

    Examples
    --------
    >>> from fastpriv import Pmf
    >>> from fastpriv.beliefs.gaussian import belief_shift
    >>> belief_shift(Pmf([0.0, 1.0], [0.5, 0.5]), 0.5).value
    array([0.20434..., 0.20434...])
    """
    _validate.instance("prior", prior, Pmf)
    noise = _validate.scalar("sigma", sigma, "positive and finite", lambda s: (s > 0) & (s < np.inf))
    law = _law(prior, noise)
    shift, error, nodes = _many(law, prior.values)
    value, lower, upper = (np.sqrt(np.clip(v, 0.0, _LN2)) for v in (shift, shift - error, shift + error))
    return Estimate(value, lower, upper, kind="heuristic", unit="1", method="trapezoidal rule", cost={"nodes": nodes})


class _Law(NamedTuple):
    """The atoms that sums run over, and what all blocks share."""

    atoms: FloatArray
    weights: FloatArray
    sigma: float
    distance: float  # in standard deviations, beyond which two points do not see each other
    whole: bool  # one grid serves all


def _law(prior: Pmf, sigma: float) -> _Law:
    x, w = prior.values, prior.probabilities
    distance = math.sqrt(8 * (_FAR - 0.5 * math.log(float(w.min())))) + 1.0
    grouped = grouped_atoms(x, w, sigma, reach=_TAIL, tolerance=_GROUPING)
    span = float(x[-1] - x[0]) / sigma
    whole = span <= _WHOLE or (span <= 64.0 and grouped.values.size <= _SMALL_LAW)
    return _Law(grouped.values, grouped.weights, sigma, distance, whole)


def _many(law: _Law, points: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Divergences of the points with their errors: interpolated where they are dense, evaluated where they are not."""
    value, error = np.empty(points.size), np.empty(points.size)
    with np.errstate(over="ignore"):
        cell = np.floor((points - points[0]) / law.sigma)
    starts = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
    stops = np.append(starts[1:], points.size)
    alone = _alone(law, points)
    value[alone] = _divergence_of_certainty(law.weights[np.searchsorted(law.atoms, points[alone])])
    error[alone] = 0.0
    direct = ~alone
    total = 0
    for _ in range(_HALVINGS):
        dense = stops - starts > _MANY
        starts, stops = starts[dense], stops[dense]
        if not starts.size:
            break
        middle = points[starts] + 0.5 * (points[stops - 1] - points[starts])
        half = np.maximum(points[stops - 1] - middle, middle - points[starts])
        at, blur, used = _evaluated(
            law, np.repeat(middle, _ORDER), (half[:, None] / law.sigma * _chebyshev_nodes()).ravel()
        )
        total += used
        coefficients = _chebyshev_coefficients(at.reshape(-1, _ORDER))
        largest = at.reshape(-1, _ORDER).max(axis=1)
        cut = 2 * np.abs(coefficients[:, -3:]).sum(axis=1)
        steep = at.reshape(-1, _ORDER).min(axis=1) < _FLOOR * largest
        smooth = (cut <= _SMOOTH * largest) & ~(steep & (stops - starts > _FEW_LOW))
        off = cut + _INTERPOLATION_ERROR * largest + 3 * blur.reshape(-1, _ORDER).max(axis=1)
        for j in np.flatnonzero(smooth):
            part = slice(starts[j], stops[j])
            value[part] = np.maximum(_chebyshev_sum(coefficients[j], (points[part] - middle[j]) / half[j]), 0.0)
            error[part] = off[j]
            direct[part] = value[part] < _FLOOR * largest[j]
        starts, stops, middle = starts[~smooth], stops[~smooth], middle[~smooth]
        between = np.searchsorted(points, middle)
        starts, stops = np.concatenate([starts, between]), np.concatenate([between, stops])
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]
    rest = np.flatnonzero(direct)
    if rest.size:
        value[rest], error[rest], used = _evaluated(law, points[rest], np.zeros(rest.size))
        total += used
    rounding = _CANCELLATION * math.sqrt(value.max() if law.whole else 1.0)
    return value, error + _ROUNDING * value + rounding * (np.sqrt(value) + rounding) + _LEAST_ERROR, total


def _alone(law: _Law, points: FloatArray) -> NDArray[np.bool_]:
    """Which points every release tells, with less than half the mass; they are atoms of the law that sums run over."""
    far = np.concatenate([[True], np.diff(points) > law.distance * law.sigma, [True]])
    found = far[:-1] & far[1:]
    found[found] = law.weights[np.searchsorted(law.atoms, points[found])] < 0.5
    return np.asarray(found, dtype=np.bool_)


def _divergence_of_certainty(w: FloatArray) -> FloatArray:
    """The divergence of certainty from the prior, at an atom of weight w."""
    return np.asarray(_LN2 + 0.5 * (w * special.log(w) - (1 + w) * special.log1p(w)))


def _chebyshev_nodes() -> FloatArray:
    """In increasing order."""
    return np.array([-math.cos(math.pi * (k + 0.5) / _ORDER) for k in range(_ORDER)])


def _chebyshev_coefficients(values: FloatArray) -> FloatArray:
    """Of the polynomials through the values at the nodes, one a row; summed node by node."""
    found = np.zeros_like(values)
    for k in range(_ORDER):
        angle = math.pi * (_ORDER - k - 0.5) / _ORDER
        row = np.array([(1.0 if m == 0 else 2.0) / _ORDER * math.cos(m * angle) for m in range(_ORDER)])
        found += values[:, k, None] * row
    return found


def _chebyshev_sum(coefficients: FloatArray, t: FloatArray) -> FloatArray:
    """By Clenshaw's recurrence."""
    now: FloatArray = np.zeros_like(t)
    after = now
    for c in coefficients[:0:-1]:
        now, after = 2 * t * now - after + c, now
    total: FloatArray = t * now - after + coefficients[0]
    return total


def _evaluated(law: _Law, base: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Divergences and their errors but for rounding, for true values base + shift sigma, in increasing order."""
    value, error = np.empty(base.size), np.empty(base.size)
    nodes = start = 0
    middle = law.atoms[0] + 0.5 * (law.atoms[-1] - law.atoms[0])
    known: dict[int, _Grid] = {}  # of the whole law
    while start < base.size:
        stop = min(start + _ROWS, base.size)
        if not law.whole:
            middle = float(base[start])
            with np.errstate(over="ignore"):
                away = (base[start:stop] - middle) / law.sigma + shift[start:stop]
            stop = start + int(np.searchsorted(away, away[0] + _SPAN, side="right"))
        part = slice(start, stop)
        truth = (base[part] - middle) / law.sigma + shift[part]
        for density in _DENSITIES:
            grid = known.get(density) or _grid(law, middle, truth, density)
            if law.whole:
                known[density] = grid
            fine, coarse = grid.divergences(truth)
            nodes += grid.nodes.size
            if np.all(np.abs(fine - coarse) <= _AGREEMENT * fine):
                break
        value[part], error[part] = fine, np.abs(fine - coarse)
        start = stop
    return value, error, nodes


class _Grid(NamedTuple):
    """Relative changes of beliefs at the nodes of a trapezoidal rule."""

    nodes: FloatArray
    density: int
    form: int
    weights: FloatArray
    outside: float  # weight of the atoms that see none of the true values
    change: FloatArray
    top: FloatArray
    mean: FloatArray

    def divergences(self, truth: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With all and with half the nodes."""
        padded = np.append(truth, np.full(-truth.size % _abp.POINTS, truth[-1]))
        fine, coarse = _abp.divergences(
            self.nodes, padded, self.form, 1.0 / self.density, self.change, self.top, self.mean, self.weights
        )
        rest = self.outside * _LN2
        return 0.5 * (fine[: truth.size] + rest), 0.5 * (coarse[: truth.size] + rest)


def _grid(law: _Law, middle: float, truth: FloatArray, density: int) -> _Grid:
    """For true values in units of sigma from ``middle``; one that serves all of a law that is ``whole``."""
    first, last = float(truth[0]), float(truth[-1])
    near = slice(0, law.atoms.size)
    if not law.whole:
        left, right = middle + (first - law.distance) * law.sigma, middle + (last + law.distance) * law.sigma
        reach = math.nextafter(left, -math.inf), math.nextafter(right, math.inf)  # wider than rounding made it
        near = slice(*np.searchsorted(law.atoms, reach))
    x = (law.atoms[near] - middle) / law.sigma
    w = law.weights[near]
    outside = 0.0 if law.whole else max(0.0, 1.0 - math.fsum(w))
    if law.whole:
        first, last = float(x[0]), float(x[-1])
    count = 2 * math.ceil((last - first + 2 * _TAIL) * density / 2) + 1
    t = first - _TAIL + np.arange(count) / density
    largest = max(abs(x[0]), abs(x[-1]))
    small = law.whole and largest * (max(abs(t[0]), abs(t[-1])) + 0.5 * largest) < 0.5
    form = _abp.FORMS["small" if small else "whole" if law.whole else "part"]
    filled = -x.size % _abp.LANES
    x, w = np.append(x, np.full(filled, x[-1])), np.append(w, np.zeros(filled))
    return _Grid(t, density, form, w, outside, *_abp.changes(t, x, w, small))
