"""Certified weighted advantages of releases of up to three dimensions: integrals of positive parts.

Notation of ``risk_boxes``. F = sum_g a_g p_g, with a_g of both signs; wanted is the integral of its positive part. The
last coordinate is x, that along which F varies most, the others y. Boxes of y are halved until all of the line of x
falls into

    panels where the sign of F is proved for all y of the box;
    intervals between two such panels of opposite signs where F has one root X(y), analytic in y;
    the rest, where |F| times the volume, or the mass, counts as error.

Roots. Let u_h be the largest |a_g p_g| at the centre, G = F / u_h, and D its derivative by x there. If |dG/dx - D| is
at most |D| / 2 for complex x in the disc of radius r about the centre and all y of the box, one coordinate complex in
its own disc, and |G| at the centre of x is at most r |D| / 2, then x - G(x, y) / D is a contraction of the
disc of x, whose fixed point X(y) is analytic in y. The integral over x of F from X(y) to the end of the positive side
is analytic too, and at most its length times the largest modulus; those over panels are products with masses. So
Gauss's rule in y has the error of ``risk_boxes``. Where two roots meet or one leaves the interval of x no box is
analytic, but F is then small in what is left.

Rounding. The positive part moves the integral by no more than F does: relative errors of a_g p_g by their integral, and
means by the distance in total variation.
"""

# bounds: proved - see each constant

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from .risk_boxes import BoxModel, first_boxes, halves, masses
from .risk_integrals import LineModel

__all__ = ["box_gain"]

_NODES = (1, 16, 10)  # of Gauss's rule in each coordinate of y, for releases of one, two and three dimensions
_RHO = 3.0  # parameter of Bernstein's ellipse of y
_RADIUS = 0.5 * (_RHO + 1.0 / _RHO)  # of its disc, in half-lengths
_ROOT_RADIUS = 3.0  # of the disc of x about the centre of an interval with a root, in its half-length
# bound: none - absolute error of a box of y that is accepted, by the dimension of the release
_ABSOLUTE = (1e-15, 1e-13, 1e-10)
_MAX_WORK = 2e9  # numbers that are formed for all integrals of a call: some ten seconds; the rest counts as error
_BLOCK_NUMBERS = 2**14  # boxes times classes at a time
_ROUNDS = 60  # halvings of a panel of x
_NEWTON_STEPS = 40  # at most; six are common
# bound: proved - relative rounding of a term whose z is at most 12: 8 roundings of z^2 and of the logs of the weight
#   and of the constant, and of a distribution function; beyond z = 12 terms are below 1e-31
_TERM_ERROR = 2048 * UNIT_ROUNDOFF
# bound: proved - what lies beyond the intervals, and terms with z beyond 12
_TAIL_ERROR = 1e-29


class _Lines(NamedTuple):
    """Boxes of y: log |a_g| densities at the centre (C, G), and slopes and curvatures (C, d - 1, G)."""

    logs: FloatArray
    slope: FloatArray
    curvature: FloatArray
    half: FloatArray
    mass: FloatArray  # |a_g| times probabilities of the box of y

    def growth(self, line: Any, radius: float, against: Any = None) -> FloatArray:
        """Bounds by coordinate of y of what the logs move, less those of a class: shape (len(line), d - 1, G)."""
        r = radius * self.half[line][:, :, None]
        slope, curvature = self.slope[line], self.curvature[line]
        if against is not None:
            index = against[:, None, None]
            slope = slope - np.take_along_axis(slope, index, axis=2)
            curvature = curvature - np.take_along_axis(curvature, index, axis=2)
        return np.asarray(np.abs(slope) * r + np.abs(curvature) * r * r)


class _Panels(NamedTuple):
    """Panels of x, sorted by line and place; sign is 0 in doubt, and ``bound`` of the integral of |F| there."""

    line: Any
    left: FloatArray
    right: FloatArray
    sign: FloatArray
    bound: FloatArray


def box_gain(model: BoxModel, gain: FloatArray, integrals: int = 1) -> tuple[float, float]:
    """The integral of the positive part of sum_g gain_g u_g, with its absolute error; one of so many of a call."""
    value = error = 0.0
    budget = [_MAX_WORK / integrals]
    size = [np.abs(gain) @ (c.weights * np.abs(c.means - c.means.mean()) / c.scales) for c in model.columns]
    model = BoxModel(tuple(model.columns[i] for i in np.argsort(size, kind="stable")), model.mean_error)
    kept = gain != 0.0
    signs, weight = np.sign(gain[kept]), np.log(np.abs(gain[kept]))
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        for logs, columns, intervals in model.faces():
            some = [LineModel(c.normal, c.means[kept], c.scales[kept], *c[3:]) for c in columns]
            one = _face(signs, logs[kept] + weight, some, intervals, budget)
            value, error = value + one[0], error + one[1]
        moved = sum(
            (np.abs(gain) * c.weights * (2.0 * UNIT_ROUNDOFF * np.abs(c.means) + model.mean_error) / c.scales).sum()
            for c in model.columns
        )  # fmt: skip
    return float(value), float(error + moved + _TAIL_ERROR)


def _face(
    signs: FloatArray, logs: FloatArray, columns: list[LineModel], intervals: Any, budget: list[float]
) -> tuple[float, float]:  # fmt: skip
    """The integral over one face, and its error."""
    if not logs.size or not (signs > 0).any():
        return 0.0, 0.0
    if not columns:
        terms = signs * np.exp(logs)
        return max(float(terms.sum()), 0.0), _TERM_ERROR * float(np.abs(terms).sum())
    nodes, tolerance = _NODES[len(columns) - 1], _ABSOLUTE[len(columns) - 1]
    inner, x = columns[:-1], columns[-1]
    left, right = first_boxes(inner, intervals[:-1]) if inner else np.zeros((2, 1, 0))
    ends = first_boxes([x], intervals[-1:])
    size = max(1, _BLOCK_NUMBERS // logs.size)
    value = error = 0.0
    while len(left):
        a, b = left[:size], right[:size]
        left, right = left[size:], right[size:]
        mass = masses(inner, logs, a, b)
        positive = mass[:, signs > 0].sum(axis=1)
        stop = (positive <= 1e-2 * tolerance) | (budget[0] <= 0.0)
        if inner:
            stop |= (b - a <= 1e-14 * np.abs(a + b)).any(axis=1)
        value, error = value + 0.5 * float(positive[stop].sum()), error + 0.5 * float(positive[stop].sum())
        a, b = a[~stop], b[~stop]
        if not len(a):
            continue
        lines = _lines(inner, logs, a, b, mass[~stop])
        panels = _panels(lines, signs, x, ends, tolerance, budget)
        found, wrong, doubt, steep = _over_lines(lines, signs, x, panels, nodes, ends[0])
        accepted = (wrong + doubt <= tolerance) | (doubt + wrong <= 1e-15 * mass[~stop].sum(axis=1))
        if not inner:
            accepted[:] = True
        value += float(found[accepted].sum())
        error += float((wrong + doubt)[accepted].sum()) + _TERM_ERROR * float(mass[~stop][accepted].sum())
        if not accepted.all():
            axis = np.argmax(steep[~accepted], axis=1)
            lefts, rights = halves(a[~accepted], b[~accepted], axis)
            left, right = np.concatenate([left, lefts]), np.concatenate([right, rights])
    return value, error


def _lines(inner: list[LineModel], logs: FloatArray, a: FloatArray, b: FloatArray, mass: FloatArray) -> _Lines:
    centre, half = 0.5 * (a + b), 0.5 * (b - a)
    every = np.tile(logs, (len(a), 1))
    slope, curvature = np.zeros((2, len(a), len(inner), logs.size))
    for j, column in enumerate(inner):
        every = every + column.log_densities(centre[:, j], 0.0 * centre[:, j])
        slope[:, j], curvature[:, j] = column.slopes(centre[:, j])
    return _Lines(every, slope, curvature, half, mass)


def _panels(
    lines: _Lines, signs: FloatArray, x: LineModel, ends: Any, tolerance: float, budget: list[float]
) -> _Panels:  # fmt: skip
    """Panels of x on all lines, halved until the sign of F is proved, or y moves F more than x does."""
    count, classes = lines.logs.shape
    line = np.repeat(np.arange(count), len(ends[0]))
    left, right = (np.tile(one[:, 0], count) for one in ends)
    volume = np.prod(2.0 * lines.half, axis=1)
    done: list[tuple[Any, ...]] = []
    for number in itertools.count():
        budget[0] -= 12.0 * len(line) * classes
        centre, half = 0.5 * (left + right), 0.5 * (right - left)
        logs = lines.logs[line] + x.log_densities(centre, 0.0 * centre)
        h = np.argmax(logs, axis=1)
        top = np.take_along_axis(logs, h[:, None], axis=1)
        slope, curvature = x.slopes(centre)
        s = slope - np.take_along_axis(slope, h[:, None], axis=1)
        linear = np.abs(s) * half[:, None]
        by_x = linear + np.abs(curvature - np.take_along_axis(curvature, h[:, None], axis=1)) * half[:, None] ** 2
        t = np.exp(logs - top)
        middle = (signs * t).sum(axis=1)
        from_x = np.abs((signs * t * s).sum(axis=1)) * half + (t * (np.expm1(by_x) - linear)).sum(axis=1)
        y_linear, y_all, y_moved = _by_y(lines, line, h, signs * t, 1.0)
        moved = np.abs((signs * t * s).sum(axis=1)) * half + y_moved
        moved += (t * (np.expm1(by_x + y_all) - linear - y_linear)).sum(axis=1)
        moved += (t * 8.0 * UNIT_ROUNDOFF * (4.0 + np.abs(logs) + by_x + y_all)).sum(axis=1)
        moved = np.where(np.isnan(moved), np.inf, moved)
        mass = (lines.mass[line] * x.masses(left, right)).sum(axis=1)
        sure = np.abs(middle) > moved
        small = mass <= 1e-3 * tolerance
        fixed = from_x <= 0.5 * (moved - from_x)
        own = (np.abs(slope) * half[:, None] + np.abs(curvature) * half[:, None] ** 2)
        own = np.take_along_axis(own + lines.growth(line, 1.0).sum(axis=1), h[:, None], axis=1)[:, 0]
        most = np.exp(top[:, 0] + own) * (np.abs(middle) + moved) * 2.0 * half * volume[line]
        most = np.where(np.isnan(most), np.inf, most)
        stop = sure | small | fixed | (half <= 4e-16 * np.abs(centre)) | (number >= _ROUNDS) | (budget[0] <= 0.0)
        sign = np.where(sure, np.sign(middle), 0.0)
        done.append(tuple(one[stop] for one in (line, left, right, sign, np.minimum(mass, most))))
        rest = ~stop
        if not rest.any():
            break
        line = np.tile(line[rest], 2)
        left, right = (
            np.concatenate([left[rest], centre[rest]]), np.concatenate([centre[rest], right[rest]])
        )  # fmt: skip
    joined = [np.concatenate(one) for one in zip(*done, strict=True)]
    order = np.lexsort((joined[1], joined[0]))
    return _Panels(*(one[order] for one in joined))


def _by_y(
    lines: _Lines, line: Any, h: Any, signed: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """What y moves log u_g / u_h by, to first order and in all (N, G), and G to first order (N,)."""
    r = radius * lines.half[line]
    index = h[:, None, None]
    slope, curvature = lines.slope[line], lines.curvature[line]
    slope = slope - np.take_along_axis(slope, index, axis=2)
    curvature = curvature - np.take_along_axis(curvature, index, axis=2)
    linear = (np.abs(slope) * r[:, :, None]).sum(axis=1)
    every = linear + (np.abs(curvature) * r[:, :, None] ** 2).sum(axis=1)
    return linear, every, (np.abs((slope * signed[:, None, :]).sum(axis=2)) * r).sum(axis=1)


def _over_lines(
    lines: _Lines, signs: FloatArray, x: LineModel, panels: _Panels, nodes: int,
    first_ends: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Integrals of each box of y with errors of the rule and of what is in doubt, and how F moves along each axis."""
    count, classes = lines.logs.shape
    dimensions = lines.half.shape[1]
    volume = np.prod(2.0 * lines.half, axis=1)
    doubt = np.zeros(count)
    # runs of panels in doubt, which end at kinks
    inside = panels.sign == 0.0
    new = np.isin(panels.left, first_ends) | np.r_[True, panels.line[1:] != panels.line[:-1]]
    final = np.r_[new[1:], True]
    start, end = inside & (np.r_[True, ~inside[:-1]] | new), inside & (np.r_[~inside[1:], True] | final)
    first, last = np.flatnonzero(start), np.flatnonzero(end)
    run_line, left, right = panels.line[first], panels.left[first], panels.right[last]
    before = np.where(new[first], 0.0, panels.sign[first - 1])
    after = np.where(final[last], 0.0, panels.sign[(last + 1) % len(panels.sign)])
    run = (np.cumsum(start) - 1)[inside]
    bounds = np.bincount(run, weights=panels.bound[inside], minlength=len(first))
    good, size, largest, derivative = _roots(lines, signs, x, run_line, left, right)
    good &= before * after < 0.0
    np.add.at(doubt, run_line[~good], 0.5 * bounds[~good])
    # masses of x where F is positive
    positive = panels.sign > 0.0
    sure = np.zeros((count, classes))
    np.add.at(sure, panels.line[positive], x.masses(panels.left[positive], panels.right[positive]))
    # moduli in the discs
    wrong = np.zeros(count)
    constant = 32.0 / 15.0 * _RHO ** (-2.0 * nodes) / (1.0 - _RHO**-2.0)
    every = np.arange(count)
    own, disc = lines.growth(every, 1.0), lines.growth(every, _RADIUS)
    for j in range(dimensions):
        grown = own.sum(axis=1) - own[:, j] + disc[:, j]
        moduli = (np.exp(lines.logs + grown) * sure).sum(axis=1)
        np.add.at(moduli, run_line[good], (np.exp(grown[run_line[good]]) * size[good]).sum(axis=1))
        wrong += constant * volume * np.where(np.isnan(moduli), np.inf, moduli)
    # nodes of y
    logs, weight = _at_nodes(lines, nodes)
    value = (weight * ((np.exp(logs) * sure[:, None, :]) @ signs)).sum(axis=1)
    roots, root_error = _root_integrals(
        signs, x, left[good], right[good], after[good] > 0, largest[good], derivative[good], logs[run_line[good]]
    )  # fmt: skip
    np.add.at(value, run_line[good], (weight[run_line[good]] * roots).sum(axis=1))
    np.add.at(wrong, run_line[good], (weight[run_line[good]] * root_error).sum(axis=1))
    near = lines.logs >= lines.logs.max(axis=1)[:, None] - 40.0
    steep = np.where(near[:, None, :], lines.growth(every, 1.0, np.argmax(lines.logs, axis=1)), 0.0).max(axis=2)
    return value + doubt, wrong, doubt, steep


def _roots(
    lines: _Lines, signs: FloatArray, x: LineModel, line: Any, left: FloatArray, right: FloatArray
) -> tuple[Any, FloatArray, Any, FloatArray]:
    """Whether each interval has one analytic root; moduli of its integral at the centre of y by class, (N, G); the
    largest class, and |D|."""
    centre, half = 0.5 * (left + right), 0.5 * (right - left)
    r = _ROOT_RADIUS * half[:, None]
    logs = lines.logs[line] + x.log_densities(centre, 0.0 * centre)
    h = np.argmax(logs, axis=1)
    t = np.exp(logs - np.take_along_axis(logs, h[:, None], axis=1))
    slope, curvature = x.slopes(centre)
    s = slope - np.take_along_axis(slope, h[:, None], axis=1)
    c = np.abs(curvature - np.take_along_axis(curvature, h[:, None], axis=1))
    by_x = np.abs(s) * r + c * r * r
    real, disc = lines.growth(line, 1.0, h), lines.growth(line, _RADIUS, h)
    middle, derivative = np.abs((signs * t).sum(axis=1)), np.abs((signs * t * s).sum(axis=1))
    rounding = 8.0 * UNIT_ROUNDOFF * (4.0 + np.abs(logs))
    good = derivative > 0.0
    y_linear, y_all, y_moved = _by_y(lines, line, h, signs * t, _RADIUS)
    for j in range(max(real.shape[1], 1)):
        by_y = real.sum(axis=1) - real[:, j] + disc[:, j] if real.shape[1] else 0.0 * by_x
        changed = (t * (np.abs(s) * (np.expm1(by_x + by_y) + rounding) + 2.0 * c * r * np.exp(by_x + by_y))).sum(axis=1)
        apart = middle + y_moved + (t * (np.expm1(y_all) - y_linear + rounding)).sum(axis=1)
        good &= (changed <= 0.5 * derivative) & (apart <= 0.5 * derivative * r[:, 0])
    own = np.abs(slope) * r + np.abs(curvature) * r * r
    return good, (_ROOT_RADIUS + 1.0) * half[:, None] * np.exp(logs + own), h, derivative


def _at_nodes(lines: _Lines, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Logs at the nodes of y, shape (C, N, G), and weights (C, N)."""
    count, dimensions = lines.half.shape
    t, w = np.polynomial.legendre.leggauss(nodes)
    logs, weight = lines.logs[:, None, :], np.ones((count, 1))
    for j in range(dimensions):
        offset = (lines.half[:, j, None] * t)[:, :, None]
        moved = offset * (lines.slope[:, j, None, :] + lines.curvature[:, j, None, :] * offset)
        logs = (logs[:, :, None, :] + moved[:, None]).reshape(count, -1, logs.shape[2])
        weight = (weight[:, :, None] * (lines.half[:, j, None] * w)[:, None, :]).reshape(count, -1)
    return logs, weight


def _root_integrals(
    signs: FloatArray, x: LineModel, left: FloatArray, right: FloatArray, rising: Any, largest: Any,
    derivative: FloatArray, logs: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Integrals of F from its root to the end of the positive side at all nodes of y, with errors: (N, nodes)."""
    shape = logs.shape[:2]
    if not len(left):
        return np.zeros(shape), np.zeros(shape)
    centre, half = 0.5 * (left + right), 0.5 * (right - left)
    slope, curvature = (one[:, None, :] for one in x.slopes(centre))
    base = logs + x.log_densities(centre, 0.0 * centre)[:, None, :]
    top = base.max(axis=2)
    offset = np.zeros(shape)
    for _ in range(_NEWTON_STEPS):
        d = offset[:, :, None]
        terms = signs * np.exp(base + d * (slope + curvature * d) - top[:, :, None])
        rate = (terms * (slope + 2.0 * curvature * d)).sum(axis=2)
        step = np.where(rate != 0.0, terms.sum(axis=2) / rate, 0.0)
        moved = np.clip(offset - step, -half[:, None], half[:, None])
        change, offset = np.abs(moved - offset), moved
        if np.all(change <= 1e-11 * half[:, None]):
            break
    d = offset[:, :, None]
    terms = np.exp(base + d * (slope + curvature * d))
    f = np.abs(terms @ signs) + 64.0 * UNIT_ROUNDOFF * terms.sum(axis=2)
    root = centre[:, None] + offset
    a = np.where(rising[:, None], root, left[:, None]).ravel()
    b = np.where(rising[:, None], right[:, None], root).ravel()
    found = x.masses(np.minimum(a, b), b).reshape(*shape, -1)
    # |F| is at most f to the true root, whose distance is at most |G| / (|D| / 2); twice that for u_h on the way
    h = np.take_along_axis(terms, largest[:, None, None], axis=2)[:, :, 0]
    error = np.where(f > 0.0, 4.0 * f * (f / h) / derivative[:, None], 0.0)
    return (np.exp(logs) * found) @ signs, error
