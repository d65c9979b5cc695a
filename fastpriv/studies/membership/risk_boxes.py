"""Certified integrals of the risks over releases of up to three dimensions.

Notation of ``risk_integrals``: u_g = w_g p_g, p = sum u_g, and integrands sum_g u_g log(p / u_g) and, for each type of
people, v_1 log(p / v_1) + v_0 log(p / v_0). The noise of the coordinates is independent given b, so that log u_g is a
sum over coordinates of polynomials of degree 2 on a box without a kink inside. Coordinates with atoms (``LineModel``)
split the integral into faces: each coordinate is at an atom, or in the interval between them.

Quadrature. Gauss's rules are applied one coordinate at a time, so that each step has one complex coordinate, in the
disc of radius R about the centre of the box, and real ones: the error is at most the sum over coordinates j of
(64/15) M_j rho^(-2n) / (1 - rho^(-2)) times the volume over 2^d halves, as of one dimension, M_j the bound in the disc.
Relative to the largest class h at the centre, u_g / u_h has a phase of at most |s_g - s_h| R + |c_g - c_h| R^2 by the
complex coordinate alone, and a modulus within exp(+-k), k also with the real ones. log p is analytic where the terms
with phases beyond pi / 2 have a sum of at most 1/2 in modulus, and so for each v. rho is the best of a few. Boxes with
too large an error are halved; what has too little mass counts as error: the integrands are at most p log G and p log 2.

A v below p / e at most V with p at most P, everywhere in the box, needs no such bound: v log(p / v) <= V log(P / V).

Evaluation. With t_g = u_g / u_h, rho = sum of t_g over the others, the first integrand is u_h ((1 + rho) log(1 + rho) -
sum t_g log t_g): t_g is a product over coordinates, so that sums over classes at all nodes are products of matrices.

Rounding. As of one dimension: a relative error e_g of u_g moves the sums by at most sum e_g u_g log(p / u_g).
"""

# bounds: proved - see each constant

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from ...base.numerics import LOG_2, UNIT_ROUNDOFF, BoolArray, FloatArray
from .risk_integrals import LineModel, log_of_sum_over

__all__ = ["MAX_DIMENSIONS", "BoxModel", "box_entropies"]

MAX_DIMENSIONS = 3  # for which boxes are of bearable number
_NODES = (20, 12, 8)  # of Gauss's rule in each coordinate, in one, two and three dimensions
_RHO = (2.5, 4.0, 7.0, 12.0)  # parameters of Bernstein's ellipses, of which each box takes the best
# bound: none - errors relative to the integral at which boxes are halved no more, by dimension
_RELATIVE = (1e-13, 1e-12, 1e-9)
# bound: none - the same of the first pass, which finds the size of each integral
_COARSE = 1e-3
# bound: none - absolute error of a box that is always accepted: risks below 1e-20 keep fewer digits
_LEAST_ABSOLUTE = 1e-24
_MAX_WORK = 3e9  # nodes times classes times sums that are formed: some ten seconds; boxes beyond count as error
_BLOCK_NUMBERS = 2**20  # numbers of one array that are formed at a time: 8 MiB, in cache
# bound: proved - logs of u_g / u_h below which classes are left out, and are not counted in the rounding of others:
#   their terms are at most t (1 - log t) u_h, added as error
_OMITTED, _IRRELEVANT = -80.0, -60.0
# bound: proved - relative rounding of sums over classes and nodes: of (1 + rho) log(1 + rho) - sum t log t, with
#   t <= exp(pi / 2) in accepted boxes, the terms exceed the difference by at most 10
_SUM_ERROR = 512 * UNIT_ROUNDOFF
# bound: proved - what lies beyond the intervals of all coordinates, times the log of 2^20 classes
_TAIL_ERROR = 1e-314


class BoxModel(NamedTuple):
    """Coordinates with the same classes, and the absolute error of the means of each."""

    columns: tuple[LineModel, ...]
    mean_error: float

    def faces(self) -> list[tuple[FloatArray, list[LineModel], list[tuple[float, float]]]]:
        """Logs of w_g times probabilities of the atoms, and the coordinates and intervals of the others."""
        found = []
        choices = []
        for column in self.columns:
            interval, atoms = column.atoms()
            inside: list[Any] = [(column, interval)] if interval[0] < interval[1] else []
            choices.append(inside + list(atoms))
        for choice in itertools.product(*choices):
            logs = np.log(self.columns[0].weights)
            inner = [one for one in choice if isinstance(one, tuple)]
            for one in choice:
                logs = logs if isinstance(one, tuple) else logs + one
            found.append((logs, [column for column, _ in inner], [interval for _, interval in inner]))
        return found


class Boxes(NamedTuple):
    """Boxes with what is known of log u_g there: shapes (B, d), and (B, G) or (B, d, G)."""

    columns: list[LineModel]
    centre: FloatArray
    half: FloatArray
    logs: FloatArray
    slope: FloatArray
    curvature: FloatArray

    @classmethod
    def of(cls, columns: list[LineModel], log_weights: FloatArray, left: FloatArray, right: FloatArray) -> Boxes:
        centre, half = 0.5 * (left + right), 0.5 * (right - left)
        logs = np.tile(log_weights, (len(left), 1))
        slope, curvature = np.zeros((2, len(left), len(columns), len(log_weights)))
        for j, one in enumerate(columns):
            logs = logs + one.log_densities(centre[:, j], 0.0 * centre[:, j])
            slope[:, j], curvature[:, j] = one.slopes(centre[:, j])
        return cls(columns, centre, half, logs, slope, curvature)

    def select(self, chosen: Any) -> Boxes:
        return Boxes(self.columns, *(one[chosen] for one in self[1:]))

    def growth(self, against: Any, radius: float) -> FloatArray:
        """Bounds, by coordinate, of what log u_g less that of classes ``against`` (B,) moves; shape (B, d, G)."""
        r = radius * self.half[:, :, None]
        if against is None:
            return np.abs(self.slope) * r + np.abs(self.curvature) * r * r
        index = against[:, None, None]
        slope = np.abs(self.slope - np.take_along_axis(self.slope, index, axis=2))
        return slope * r + np.abs(self.curvature - np.take_along_axis(self.curvature, index, axis=2)) * r * r


def first_boxes(columns: list[LineModel], intervals: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    """Boxes between kinks."""
    sides = []
    for column, (low, high) in zip(columns, intervals, strict=True):
        kinks = [] if column.normal else np.unique(np.clip(column.means, low, high)).tolist()
        ends = np.unique([low, *kinks, high])
        sides.append(list(itertools.pairwise(ends.tolist())))
    both = np.array(list(itertools.product(*sides)))
    return both[:, :, 0], both[:, :, 1]


def halves(left: FloatArray, right: FloatArray, axis: Any) -> tuple[FloatArray, FloatArray]:
    """Both halves of boxes along an axis each."""
    index = (np.arange(len(left)), axis)
    middle = 0.5 * (left[index] + right[index])
    lefts, rights = np.concatenate([left, left]), np.concatenate([right, right])
    rights[: len(left)][index] = middle
    lefts[len(left) :][index] = middle
    return lefts, rights


def masses(columns: list[LineModel], log_weights: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """Probabilities of the classes in boxes, shape (B, G)."""
    found = np.exp(log_weights) * np.ones((len(left), 1))
    for j, column in enumerate(columns):
        found = found * column.masses(left[:, j], right[:, j])
    return found


def box_entropies(model: BoxModel, given: float) -> tuple[FloatArray, FloatArray]:
    """The integral over classes and those of each type, shape (1 + T,), with absolute errors.

    ``given`` is what is added to the first, to which its error is then relative.
    """
    first = model.columns[0]
    value, error = np.zeros((2, 1 + len(first.member)))
    budget = [_MAX_WORK]
    faces = model.faces()
    rough = [np.maximum(_over_face(model, face, _COARSE, None, [_MAX_WORK / 4])[0], 0.0) for face in faces]
    total = np.sum(rough, axis=0)
    total[0] += given
    for face in faces:
        relative = _RELATIVE[max(len(face[1]) - 1, 0)]
        tolerance = np.maximum(1e-3 * relative * total, _LEAST_ABSOLUTE)
        one, one_error = _over_face(model, face, relative, tolerance, budget)
        value, error = value + one, error + one_error
    return value, error + _SUM_ERROR * value + _TAIL_ERROR


def _over_face(
    model: BoxModel, face: Any, relative: float, tolerance: FloatArray | None, budget: list[float]
) -> tuple[FloatArray, FloatArray]:
    """Integrals over one face with their errors; without ``tolerance``, a first pass."""
    log_weights, columns, intervals = face
    first = model.columns[0]
    rows = [row for pair in zip(first.member, first.other, strict=True) for row in pair]
    largest = np.r_[math.log(max(len(log_weights), 2)), np.full(len(first.member), LOG_2)]
    value, error = np.zeros((2, largest.size))
    left, right = first_boxes(columns, intervals) if columns else np.zeros((2, 1, 0))
    nodes = _NODES[max(len(columns) - 1, 0)]
    work = nodes ** len(columns) * len(log_weights) * (2.0 + len(rows))
    size = max(1, int(_BLOCK_NUMBERS / (nodes ** max(len(columns) - 1, 0) * len(log_weights))))
    slack = 1e-6 if tolerance is None else tolerance
    while len(left):
        a, b = left[:size], right[:size]
        left, right = left[size:], right[size:]
        boxes = Boxes.of(columns, log_weights, a, b)
        mass = masses(columns, log_weights, a, b).sum(axis=1)
        bound = mass[:, None] * largest * (1.0 + _SUM_ERROR)
        last = (boxes.half <= 1e-15 * np.abs(boxes.centre) + 1e-290).any(axis=1) | (budget[0] <= 0.0)
        small = last | (bound <= 1e-3 * slack).all(axis=1)
        boxes, a, b, bound, dropped = boxes.select(~small), a[~small], b[~small], bound[~small], bound[small]
        value, error = value + 0.5 * dropped.sum(axis=0), error + 0.5 * dropped.sum(axis=0)
        if not len(a):
            continue
        top = boxes.logs.max(axis=1)
        h = np.argmax(boxes.logs, axis=1)
        found = _quadrature_error(boxes, top, h, rows, nodes)
        at_centre = _at_centre(boxes, top, first) * np.prod(2.0 * boxes.half, axis=1)[:, None]
        accepted = (found <= relative * at_centre + slack).all(axis=1)
        if accepted.any():
            chosen = boxes.select(accepted)
            numbers, rounding = _evaluated(model, chosen, h[accepted], first, nodes, bound[accepted])
            budget[0] -= work * len(numbers)
            value = value + numbers.sum(axis=0)
            error = error + found[accepted].sum(axis=0) + rounding.sum(axis=0)
        if not accepted.all():
            axis = _longest(boxes.select(~accepted), top[~accepted], h[~accepted])
            lefts, rights = halves(a[~accepted], b[~accepted], axis)
            left, right = np.concatenate([left, lefts]), np.concatenate([right, rights])
            budget[0] -= 20.0 * len(lefts) * len(log_weights) * (2.0 + len(rows))
    return value, error


def _longest(boxes: Boxes, top: FloatArray, h: Any) -> Any:
    """The axis along which ratios of classes of weight, and the largest class, vary most."""
    grown = boxes.growth(h, 1.0)
    near = boxes.logs - top[:, None] + grown.sum(axis=1) >= -40.0
    own = np.take_along_axis(boxes.growth(None, 1.0), h[:, None, None], axis=2)[:, :, 0]
    return np.argmax(np.where(near[:, None, :], grown, 0.0).max(axis=2) + 0.25 * own, axis=1)


def _quadrature_error(
    boxes: Boxes, top: FloatArray, h: Any, rows: list[FloatArray], nodes: int
) -> FloatArray:
    """Errors of Gauss's rules for all integrals, shape (B, 1 + T); infinite where a log is not analytic."""
    count, dimensions = boxes.half.shape
    if dimensions == 0:
        return np.zeros((count, 1 + len(rows) // 2))
    active = [i for i, row in enumerate(rows) if row.any() and rows[i ^ 1].any()]
    volume = np.prod(2.0 * boxes.half, axis=1)
    logs = boxes.logs - top[:, None]
    real, own = boxes.growth(h, 1.0), boxes.growth(None, 1.0)
    best = np.full((count, 1 + len(rows)), np.inf)
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        most = np.exp(logs + own.sum(axis=1))
        p = most.sum(axis=1)
        for index in active:
            v = most @ rows[index]
            small = np.where(v > 0.0, v * (np.log(p) - np.log(v)), 0.0)
            best[:, 1 + index] = np.where(v < p / math.e, volume * np.exp(top) * small, np.inf)
        against = {i: np.argmax(logs + np.log(rows[i]), axis=1) for i in active}
        for rho in _RHO:
            radius = 0.5 * (rho + 1.0 / rho)
            constant = 32.0 / 15.0 * rho ** (-2.0 * nodes) / (1.0 - rho**-2.0)
            if constant > 1e-3:
                continue
            errors = np.zeros_like(best)
            disc, own_disc = boxes.growth(h, radius), boxes.growth(None, radius)
            moved = {i: (boxes.growth(against[i], 1.0), boxes.growth(against[i], radius)) for i in active}
            for j in range(dimensions):
                k = _with_disc(real, disc, j)
                size = np.exp(top[:, None] + logs + _with_disc(own, own_disc, j))
                good, log_size = _analytic(logs, disc[:, j], k)
                m = np.where(logs > -np.inf, size * (k - logs + log_size[:, None]), 0.0).sum(axis=1)
                errors[:, 0] += np.where(good & np.isfinite(m), m, np.inf)
                for index in active:
                    first, own_logs = against[index][:, None], logs + np.log(rows[index])
                    largest = np.take_along_axis(own_logs, first, axis=1)
                    k_row = _with_disc(*moved[index], j)
                    fine, row_size = _analytic(own_logs - largest, moved[index][1][:, j], k_row)
                    apart = np.take_along_axis(k, first, axis=1)[:, 0] - largest[:, 0]
                    m = (size * rows[index]).sum(axis=1) * (apart + log_size + row_size)
                    errors[:, 1 + index] += np.where(good & fine & np.isfinite(m), m, np.inf)
            best = np.minimum(best, constant * volume[:, None] * errors)
    best[:, [1 + i for i in range(len(rows)) if i not in active]] = 0.0
    return np.concatenate([best[:, :1], best[:, 1::2] + best[:, 2::2]], axis=1)


def _with_disc(real: FloatArray, disc: FloatArray, j: int) -> FloatArray:
    """Bounds where coordinate j alone is complex."""
    return np.asarray(real.sum(axis=1) - real[:, j] + disc[:, j])


def _analytic(logs: FloatArray, phase: FloatArray, k: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Whether log of a sum is analytic, from logs relative to its largest term; a bound of that log over the term's."""
    terms = np.exp(logs + k)
    least = 1.0 - np.where(phase > 0.5 * math.pi, terms, 0.0).sum(axis=1)
    others = np.maximum(terms.sum(axis=1) - 1.0, 0.0) + terms.shape[1] * UNIT_ROUNDOFF  # the largest has k = 0
    return least >= 0.5, np.where(others <= 0.5, 2.0 * others, np.log(np.maximum(1.0 + others, 2.0)) + 0.5 * math.pi)


def _at_centre(boxes: Boxes, top: FloatArray, first: LineModel) -> FloatArray:
    """The integrands at the centres, shape (B, 1 + T)."""
    with np.errstate(under="ignore", divide="ignore", invalid="ignore"):
        t = np.exp(boxes.logs - top[:, None])
        p = t.sum(axis=1)
        found = np.empty((len(t), 1 + len(first.member)))
        found[:, 0] = p * np.log(p) - np.where(t > 0, t * np.log(t), 0.0).sum(axis=1)
        for i, (member, other) in enumerate(zip(first.member, first.other, strict=True)):
            found[:, 1 + i] = _binary(t @ member, t @ other)
        return np.asarray(np.exp(top)[:, None] * np.maximum(found, 0.0))


def _binary(one: FloatArray, none: FloatArray) -> FloatArray:
    """v_1 log(p / v_1) + v_0 log(p / v_0)."""
    found = one * log_of_sum_over(one, none) + none * log_of_sum_over(none, one)
    return np.where((one > 0) & (none > 0), found, 0.0)


def _evaluated(
    model: BoxModel, boxes: Boxes, h: Any, first: LineModel, nodes: int, bound: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gauss's rules in boxes, and the rounding."""
    count, dimensions = boxes.half.shape
    classes = boxes.logs.shape[1]
    log_t = boxes.logs - np.take_along_axis(boxes.logs, h[:, None], axis=1)
    grown = boxes.growth(h, 1.0)
    k = grown.sum(axis=1)
    omitted = log_t + k < _OMITTED
    t, w = np.polynomial.legendre.leggauss(nodes)
    own = np.take_along_axis(boxes.logs, h[:, None], axis=1)
    weight = np.ones((count, 1))
    log_factor, factor = np.zeros((count, 1, classes)), np.ones((count, 1, classes))
    second_log, second = np.zeros((count, classes, 1)), np.ones((count, classes, 1))
    index = h[:, None, None]
    with np.errstate(under="ignore", over="ignore", divide="ignore", invalid="ignore"):
        part = np.where(k > 0.0, 1.0 / k, 0.0)
        for j in range(dimensions):
            offset = boxes.half[:, j, None] * t
            slope, curvature = boxes.slope[:, j, None, :], boxes.curvature[:, j, None, :]
            s_h, c_h = np.take_along_axis(slope, index, axis=2), np.take_along_axis(curvature, index, axis=2)
            moved = offset[:, :, None] * ((slope - s_h) + (curvature - c_h) * offset[:, :, None])
            share = np.where(k > 0.0, grown[:, j] * part, float(j == 0))
            logs = np.where(omitted[:, None, :], -np.inf, moved + (log_t * share)[:, None, :])
            step = offset * (s_h[:, :, 0] + c_h[:, :, 0] * offset)
            own = (own[:, :, None] + step[:, None, :]).reshape(count, -1)
            weight = (weight[:, :, None] * (boxes.half[:, j, None] * w)[:, None, :]).reshape(count, -1)
            if j < dimensions - 1 or dimensions == 1:
                log_factor = (log_factor[:, :, None] + logs[:, None]).reshape(count, -1, classes)
            else:
                second_log = logs.transpose(0, 2, 1)
        others = np.arange(classes) != h[:, None]
        if dimensions == 0:
            log_factor = np.where(omitted, -np.inf, log_t)[:, None, :]
        factor = np.exp(log_factor) * others[:, None, :]
        second = np.exp(second_log)
        ones = np.where(np.isfinite(log_factor), log_factor, 0.0)
        twos = np.where(np.isfinite(second_log), second_log, 0.0)
        rho = (factor @ second).reshape(count, -1)
        t_log_t = ((factor * ones) @ second + factor @ (second * twos)).reshape(count, -1)
        weight = weight * np.exp(own)
        numbers = np.empty((count, 1 + len(first.member)))
        numbers[:, 0] = (weight * np.maximum((1.0 + rho) * np.log1p(rho) - t_log_t, 0.0)).sum(axis=1)
        for i, (member, other) in enumerate(zip(first.member, first.other, strict=True)):
            one, none = ((factor @ (second * row[:, None])).reshape(count, -1) for row in (member, other))
            found = _binary(one + member[h][:, None], none + other[h][:, None])
            numbers[:, 1 + i] = (weight * found).sum(axis=1)
    return numbers, _rounding(model, boxes, log_t, grown, omitted, numbers, bound)


def _rounding(
    model: BoxModel, boxes: Boxes, log_t: FloatArray, grown: FloatArray, omitted: BoolArray, numbers: FloatArray,
    bound: FloatArray,
) -> FloatArray:  # fmt: skip
    """What the rounding of log u_g moves the integrals by."""
    error = 8.0 * UNIT_ROUNDOFF * (8.0 + np.abs(np.log(model.columns[0].weights)) + grown.sum(axis=1))
    for column in model.columns:
        error = error + 8.0 * UNIT_ROUNDOFF * (2.0 + np.abs(np.log(column.scales)))
    for j, column in enumerate(boxes.columns):
        z = (np.abs(boxes.centre[:, j, None] - column.means) + boxes.half[:, j, None]) / column.scales
        steep = z / column.scales if column.normal else 1.0 / column.scales
        error = error + 8.0 * UNIT_ROUNDOFF * (z * z if column.normal else z)
        error = error + steep * (2.0 * UNIT_ROUNDOFF * np.abs(column.means) + model.mean_error)
    error = error + 8.0 * UNIT_ROUNDOFF * np.abs(boxes.logs)  # with the logs of atoms
    relevant = log_t + grown.sum(axis=1) >= _IRRELEVANT
    of_relevant = np.where(relevant, error, 0.0).max(axis=1)
    of_others = np.where(omitted, 1.0, error) * np.where(omitted, np.exp(_OMITTED), np.exp(_IRRELEVANT))
    rest = np.where(relevant, 0.0, of_others).sum(axis=1) * (4.0 - 2.0 * _OMITTED)
    return np.asarray(of_relevant[:, None] * numbers + rest[:, None] * bound)
