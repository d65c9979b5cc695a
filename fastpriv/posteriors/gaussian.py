"""Average Bayesian privacy (ABP) of a discrete secret behind Gaussian noise.

Notation: pi_d the prior of the point x_d, N_d the density of N(x_d, sigma^2), q = sum pi_d N_d, and
E_d = N_d / q - 1 the relative change of the probability of d by a release. If d0 is the truth, the expected posterior
is A[d0, d] = pi_d integral N_d0 N_d / q, and e = A[d0, d] / pi_d - 1 = integral q E_d0 E_d, in which nothing cancels.
The divergence is half of F(d0) = sum pi_d j(e), with j as in csrc/posterior/fp_abp.h.

Many points. The summands, as functions of x_d, are smooth on the scale of sigma: the sums run over the nodes of
``grouped_atoms``. So is F as a function of x_d0: where a cell of length sigma holds many points, F is evaluated at the
nodes of a Chebyshev polynomial, whose last coefficients estimate the error. The cell is halved until they are small and
F is of one order of magnitude in it; the few points at which F is far below that are evaluated directly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .. import special
from ..base import validate
from ..base.estimate import Estimate
from ..base.numerics import LOG_2, FloatArray, next_above, next_below
from ..distributions import Pmf
from ..distributions.pmf import grouped_atoms
from ..kernels import _abp

# Nodes per standard deviation. The trapezoidal rule converges geometrically: its error squares with every doubling.
_DENSITIES = (8, 16, 32, 64, 128)
# bound: none - relative difference of the rules with all and half the nodes at which doubling ends; heuristic anyway
_QUADRATURE_RTOL = 1e-11
# bound: proved - a normal distribution has less than 1e-23 of its mass farther out; below _ROUNDING
_TAIL = 10.0  # standard deviations beyond the outermost point of a block
# bound: proved - A[a, b] <= sqrt(w_b / w_a) e^(-D^2 / 8), since a posterior is at most 1; D such that it is below 1e-16
_NEGLIGIBLE_EXPONENT = 37.0  # nats
_BLOCK_SPAN, _BLOCK_POINTS = 8.0, 256  # most standard deviations and true values in one block of a quadrature
_SHARED_SPAN = 24.0  # standard deviations up to which all blocks share one grid,
_SHARED_SPAN_FEW, _FEW_ATOMS = 64.0, 512  # and up to which they do with so few atoms
_INTERPOLATED = 24  # points of a cell beyond which they are interpolated: somewhat more than a polynomial has nodes
_DEGREE = 16  # nodes of the Chebyshev polynomial of a cell
_MAX_HALVINGS = 40  # of a cell, far more than smoothness on the scale of sigma needs
# bound: none - last coefficients, relative, at which halving of cells ends; they count in full in the error
_SMALL_COEFFICIENTS = 2e-13
# bound: none - error estimate in answers called heuristic: of an interpolated value, of the largest of its cell
_INTERPOLATION_ERROR = 1e-14
_SMALL_VALUE = 1 / 32  # of the largest value of a cell, below which points are evaluated directly,
_FEW_POINTS = 100  # or, in cells of more points, the cell is halved
# bound: none - error estimate in answers called heuristic: of the divergence, beside the difference of two rules
_ROUNDING = 1e-12
# bound: none - error estimate in answers called heuristic: of e, relative to the largest of all true values, or to 1
#    where N_a stands for q E_a
_CANCELLATION = 4e-15
# bound: none - error estimate in answers called heuristic: of divergences that are subnormal
_LEAST_ERROR = 1e-320
# bound: none - tolerance of the grouping of atoms, whose effect is tested with the rest
_GROUPING_RTOL = 1e-12


def gaussian_abp(prior: Pmf, sigma: float) -> Estimate:
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
        Shape (n,), between 0 and sqrt(log 2), ``kind="heuristic"``: the bounds add up the difference of two trapezoidal
        rules, one with twice the nodes of the other, the last coefficients of the polynomial for values that were
        interpolated, and an allowance for rounding.

    Raises
    ------
    DomainError
        If ``prior`` is not a Pmf, or ``sigma`` is not positive and finite.

    Notes
    -----
    Thousands of values are summed as a few nodes for each sigma of their range, and their results are interpolated: the
    time grows linearly. The bits do not depend on the instruction set.

    **Accuracy** about 1e-12 relative, weak and strong noise alike; ``tests/enclosures/test_notions.py``, of many values
    ``tests/enclosures/test_many_values.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.1, for releases N(x, sigma^2) of values x.

    Examples
    --------
    >>> from fastpriv import Pmf
    >>> from fastpriv.posteriors.gaussian import gaussian_abp
    >>> gaussian_abp(Pmf([0.0, 1.0], [0.5, 0.5]), 0.5).value
    array([0.20434..., 0.20434...])
    """
    validate.instance("prior", prior, Pmf)
    noise = validate.scalar("sigma", sigma, "positive and finite", lambda s: (s > 0) & (s < np.inf))
    js, error, nodes = _divergences(_grouped_prior(prior, noise), prior.values)
    value, lower, upper = (np.sqrt(np.clip(x, 0.0, LOG_2)) for x in (js, js - error, js + error))
    return Estimate(value, lower, upper, kind="heuristic", unit="1", method="trapezoidal rule", cost={"nodes": nodes})


class _GroupedPrior(NamedTuple):
    """The atoms over which the sums run, and what all blocks share."""

    atoms: FloatArray
    weights: FloatArray
    sigma: float
    reach: float  # standard deviations beyond which two points have no effect on each other
    shares_grid: bool  # whether one grid serves all blocks


def _grouped_prior(prior: Pmf, sigma: float) -> _GroupedPrior:
    x, w = prior.values, prior.probabilities
    reach = math.sqrt(8 * (_NEGLIGIBLE_EXPONENT - 0.5 * math.log(float(w.min())))) + 1.0
    grouped = grouped_atoms(x, w, sigma, radius=_TAIL, tolerance=_GROUPING_RTOL)
    span = float(x[-1] - x[0]) / sigma
    shares_grid = span <= _SHARED_SPAN or (span <= _SHARED_SPAN_FEW and grouped.values.size <= _FEW_ATOMS)
    return _GroupedPrior(grouped.values, grouped.weights, sigma, reach, shares_grid)


def _divergences(prior: _GroupedPrior, points: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Divergences of the points, their errors, and the nodes used; interpolated where the points are dense."""
    value, error = np.empty(points.size), np.empty(points.size)
    with np.errstate(over="ignore"):
        cell = np.floor((points - points[0]) / prior.sigma)
    starts = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]]))
    stops = np.append(starts[1:], points.size)
    # points that every release identifies, with less than half the mass; they are atoms of the grouped prior too
    far = np.concatenate([[True], np.diff(points) > prior.reach * prior.sigma, [True]])
    isolated = far[:-1] & far[1:]
    isolated[isolated] = prior.weights[np.searchsorted(prior.atoms, points[isolated])] < 0.5
    w = prior.weights[np.searchsorted(prior.atoms, points[isolated])]  # such a point is certain after its release
    value[isolated], error[isolated] = LOG_2 + 0.5 * (w * special.log(w) - (1 + w) * special.log1p(w)), 0.0
    direct = ~isolated
    chebyshev_nodes = np.array([-math.cos(math.pi * (k + 0.5) / _DEGREE) for k in range(_DEGREE)])  # increasing
    total = 0
    for _ in range(_MAX_HALVINGS):
        dense = stops - starts > _INTERPOLATED
        starts, stops = starts[dense], stops[dense]
        if not starts.size:
            break
        middle = points[starts] + 0.5 * (points[stops - 1] - points[starts])
        half = np.maximum(points[stops - 1] - middle, middle - points[starts])
        offsets = (half[:, None] / prior.sigma * chebyshev_nodes).ravel()
        *sums, used = _by_quadrature(prior, np.repeat(middle, _DEGREE), offsets)
        at_nodes, node_errors = (column.reshape(-1, _DEGREE) for column in sums)
        total += used
        coefficients = _chebyshev_coefficients(at_nodes)
        largest = at_nodes.max(axis=1)
        truncation = 2 * np.abs(coefficients[:, -3:]).sum(axis=1)
        varies = at_nodes.min(axis=1) < _SMALL_VALUE * largest
        smooth = (truncation <= _SMALL_COEFFICIENTS * largest) & ~(varies & (stops - starts > _FEW_POINTS))
        cell_error = truncation + _INTERPOLATION_ERROR * largest + 3 * node_errors.max(axis=1)
        for j in np.flatnonzero(smooth):
            members = slice(starts[j], stops[j])
            inside = (points[members] - middle[j]) / half[j]
            value[members] = np.maximum(np.polynomial.chebyshev.chebval(inside, coefficients[j]), 0.0)
            error[members] = cell_error[j]
            direct[members] = value[members] < _SMALL_VALUE * largest[j]
        starts, stops, middle = starts[~smooth], stops[~smooth], middle[~smooth]
        between = np.searchsorted(points, middle)
        starts, stops = np.concatenate([starts, between]), np.concatenate([between, stops])
        order = np.argsort(starts, kind="stable")
        starts, stops = starts[order], stops[order]
    remainder = np.flatnonzero(direct)
    if remainder.size:
        value[remainder], error[remainder], used = _by_quadrature(prior, points[remainder], np.zeros(remainder.size))
        total += used
    rounding = _CANCELLATION * math.sqrt(value.max() if prior.shares_grid else 1.0)
    return value, error + _ROUNDING * value + rounding * (np.sqrt(value) + rounding) + _LEAST_ERROR, total


def _chebyshev_coefficients(values: FloatArray) -> FloatArray:
    """Coefficients of the polynomials through the values at the nodes, one a row; summed node by node."""
    coefficients = np.zeros_like(values)
    for k in range(_DEGREE):
        angle = math.pi * (_DEGREE - k - 0.5) / _DEGREE
        row = np.array([(1.0 if m == 0 else 2.0) / _DEGREE * math.cos(m * angle) for m in range(_DEGREE)])
        coefficients += values[:, k, None] * row
    return coefficients


def _by_quadrature(prior: _GroupedPrior, base: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Divergences for true values base + offset sigma in increasing order, their quadrature errors, and the nodes."""
    value, error = np.empty(base.size), np.empty(base.size)
    nodes = start = 0
    origin = prior.atoms[0] + 0.5 * (prior.atoms[-1] - prior.atoms[0])
    shared: dict[int, _QuadratureGrid] = {}
    while start < base.size:
        stop = min(start + _BLOCK_POINTS, base.size)
        if not prior.shares_grid:
            origin = float(base[start])
            with np.errstate(over="ignore"):
                distance = (base[start:stop] - origin) / prior.sigma + offset[start:stop]
            stop = start + int(np.searchsorted(distance, distance[0] + _BLOCK_SPAN, side="right"))
        block = slice(start, stop)
        truth = (base[block] - origin) / prior.sigma + offset[block]
        for density in _DENSITIES:
            grid = shared.get(density) or _grid(prior, origin, truth, density)
            if prior.shares_grid:
                shared[density] = grid
            fine, coarse = grid.divergences(truth)
            nodes += grid.nodes.size
            if np.all(np.abs(fine - coarse) <= _QUADRATURE_RTOL * fine):
                break
        value[block], error[block] = fine, np.abs(fine - coarse)
        start = stop
    return value, error, nodes


class _QuadratureGrid(NamedTuple):
    """Relative changes E_d at the nodes of a trapezoidal rule, and what the kernel needs besides."""

    nodes: FloatArray
    density: int
    form: int
    weights: FloatArray
    outside: float  # weight of the atoms too far from all true values of the block
    change: FloatArray
    top: FloatArray
    mean: FloatArray

    def divergences(self, truth: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Divergences by the rules with all and with half the nodes."""
        padded = np.append(truth, np.full(-truth.size % _abp.POINTS, truth[-1]))
        fine, coarse = _abp.jensen_shannon_divergences(
            self.nodes, padded, self.form, 1.0 / self.density, self.change, self.top, self.mean, self.weights
        )
        remainder = self.outside * LOG_2
        return 0.5 * (fine[: truth.size] + remainder), 0.5 * (coarse[: truth.size] + remainder)


def _grid(prior: _GroupedPrior, origin: float, truth: FloatArray, density: int) -> _QuadratureGrid:
    """The grid for true values in units of sigma from ``origin``, or for all of a prior whose blocks share it."""
    first, last = float(truth[0]), float(truth[-1])
    near = slice(0, prior.atoms.size)
    if not prior.shares_grid:
        left, right = origin + (first - prior.reach) * prior.sigma, origin + (last + prior.reach) * prior.sigma
        outward = next_below(left), next_above(right)
        near = slice(*np.searchsorted(prior.atoms, outward))
    x = (prior.atoms[near] - origin) / prior.sigma
    w = prior.weights[near]
    outside = 0.0 if prior.shares_grid else max(0.0, 1.0 - math.fsum(w))
    if prior.shares_grid:
        first, last = float(x[0]), float(x[-1])
    count = 2 * math.ceil((last - first + 2 * _TAIL) * density / 2) + 1
    t = first - _TAIL + np.arange(count) / density
    largest = max(abs(x[0]), abs(x[-1]))
    small = prior.shares_grid and largest * (max(abs(t[0]), abs(t[-1])) + 0.5 * largest) < 0.5
    form = _abp.FORMS["small" if small else "whole" if prior.shares_grid else "part"]
    padding = -x.size % _abp.LANES
    x, w = np.append(x, np.full(padding, x[-1])), np.append(w, np.zeros(padding))
    return _QuadratureGrid(t, density, form, w, outside, *_abp.posterior_ratios(t, x, w, small))
