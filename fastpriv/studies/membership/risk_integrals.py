"""Certified integrals of the risks over a release of one dimension.

Notation: classes g of memberships with weights w_g and densities p_g of the release, u_g = w_g p_g, p = sum u_g. For a
type t of people v_t1 = sum_g P(b_k = 1 | g) u_g and v_t0 = p - v_t1, summed as it is. The risks are integrals of

    sum_g u_g log(p / u_g)   and   v_t1 log(p / v_t1) + v_t0 log(p / v_t0),

sums of terms that are not negative. Releases that are clipped have atoms at 0 and 1, where the same sums stand.

Quadrature. log p_g is a polynomial of degree 2 on a panel of centre x and half-length a: with slope s_g and curvature
c_g, p_g(z) = p_g(x) exp(s_g (z - x) + c_g (z - x)^2). In the disc |z - x| <= R, u_g / u_h has modulus within exp(+-k)
and phase at most k, k = |s_g - s_h| R + |c_g - c_h| R^2. Let h be the largest at x. Terms with k <= pi/2 have real
parts of at least 0, so that Re (p / u_h) >= 1 - sum over the others of u_g(x) / u_h(x) exp(k): where this is at least
1/2, log p is analytic, with imaginary part within pi/2 of that of log u_h; so for each v. That bounds the integrand
in the disc, which contains the Bernstein ellipse of parameter rho for R = a (rho + 1/rho) / 2, and Gauss's rule of n
points errs by at most (64/15) a M rho^(-2n) / (1 - rho^(-2)) (Trefethen 2013, theorem 19.3). Other panels are halved.

Rounding. A relative error e_g of u_g moves the sums by at most sum e_g u_g log(p / u_g), and by sum e_g u_g (P(1 | g)
log(p / v_t1) + P(0 | g) log(p / v_t0)), to first order: derivatives of p cancel. These sums are integrated too.

Maximal weighted advantage. The positive part of sum_g a_g p_g, a_g of both signs, is integrated by distribution
functions over panels on which its sign is proved, by the same moduli; panels in doubt are halved until they do not
count.
"""

# bounds: proved - units of rounding of logarithms and exponentials; thresholds that stop the halving of panels bound
#   nothing, as what they leave counts as error

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ... import special
from ...base.numerics import UNIT_ROUNDOFF, BoolArray, FloatArray
from ...base.quadrature_rules import gauss_error
from ...base.values import distinct_rows

_NODES = 20  # of Gauss's rule on a panel
_RHO = 6.0  # parameter of the Bernstein ellipse: rho^(-2n) is 7.5e-32
_RADIUS = 0.5 * (_RHO + 1.0 / _RHO)  # of the disc about the ellipse, in half-lengths
# bound: proved - by the text above, for half-length 1 and modulus 1
_QUADRATURE_ERROR = gauss_error(_NODES, _RHO)
# bound: proved - relative rounding of a term and of its sums over classes and nodes
_SUM_ERROR = 64 * UNIT_ROUNDOFF
# bound: proved - relative error of a weight, of the constant of a density and of an exponential
_DENSITY_ERROR = 24 * UNIT_ROUNDOFF
_REACH = 38.5  # sigmas from all means beyond which a normal distribution has less than 1e-323
_LAPLACE_REACH = 740.0  # scales beyond which a Laplace distribution has less than 1e-321
# bound: proved - what lies beyond both, times the log of 2^20 classes
_TAIL_ERROR = 1e-315
# bound: none - error of a panel, relative to its integral, that is accepted
_RELATIVE = 1e-16
# bound: none - absolute error of a panel in the first pass
_ABSOLUTE = 1e-20
# bound: none - absolute error of a panel below which halving it gains little: 7.5e-32 of its mass
_LEAST_ABSOLUTE = 1e-31
_PASSES = 4  # with ever smaller absolute errors, for small risks
_MAX_PANELS = 2**17  # beyond which the rest counts as error
_BLOCK_NUMBERS = 2**21  # densities that are formed at a time: 16 MiB


class LineModel(NamedTuple):
    """Classes with normal or Laplace releases in one dimension; ``clip`` says that there are atoms at 0 and 1."""

    normal: bool
    means: FloatArray
    scales: FloatArray
    weights: FloatArray
    member: FloatArray
    other: FloatArray
    clip: bool

    def log_densities(self, centre: FloatArray, offset: FloatArray) -> FloatArray:
        """log p_g at centre + offset, shape (..., G)."""
        distance = (centre[..., None] - self.means) + offset[..., None]
        z = distance / self.scales
        if self.normal:
            return np.asarray(-0.5 * z * z - (np.log(self.scales) + 0.5 * math.log(2 * math.pi)))
        return np.asarray(-np.abs(z) - np.log(2.0 * self.scales))

    def slopes(self, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope and curvature of log p_g at the centres of panels without a kink inside."""
        z = (centre[:, None] - self.means) / self.scales
        if self.normal:
            return -z / self.scales, np.broadcast_to(-0.5 / self.scales**2, z.shape)
        return -np.sign(z) / self.scales, np.zeros(z.shape)

    def atoms(self) -> tuple[tuple[float, float], list[FloatArray]]:
        """The interval without atoms, and the log probabilities of what is left and right of it, if that is one."""
        low, high = float(self.means.min()), float(self.means.max())
        if not self.normal and np.all(self.scales == self.scales[0]):  # posteriors are constant beyond the means
            return (low, high), [-np.abs(self.means - end) / self.scales - math.log(2.0) for end in (low, high)]
        if not self.clip:
            reach = (_REACH if self.normal else _LAPLACE_REACH) * float(self.scales.max())
            return (low - reach, high + reach), []
        distances = [self.means / self.scales, (1.0 - self.means) / self.scales]
        if self.normal:
            return (0.0, 1.0), [np.asarray(special.log_ndtr(-item)) for item in distances]
        return (0.0, 1.0), [-distance - math.log(2.0) for distance in distances]

    def masses(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Probabilities of intervals without a mean inside where noise is Laplace, shape (N, G)."""
        a, b = ((x[:, None] - self.means) / self.scales for x in (left, right))
        if self.normal:
            return np.asarray(special.ndtr_difference(a, b))
        near = np.minimum(np.abs(a), np.abs(b))
        return np.asarray(0.5 * np.exp(-near) * -np.expm1(-np.abs(b - a)))

    def panels(self, interval: tuple[float, float]) -> tuple[FloatArray, FloatArray]:
        """First panels: about a sigma long near normal means, from mean to mean of Laplace distributions."""
        low, high = interval
        if self.normal:
            step = np.arange(-_REACH, _REACH + 1.0, 1.75)
            keep, _ = distinct_rows(np.column_stack([self.means, self.scales]))
            ends = (keep[:, :1] + keep[:, 1:] * step).ravel()
            ends = np.unique(np.clip(ends, low, high))
            cell = np.floor((ends - low) / (0.5 * float(self.scales.min())))
            ends = ends[np.diff(cell, prepend=-1.0) > 0]  # one a cell
        else:
            ends = np.unique(np.clip(self.means, low, high))
        ends = np.unique(np.concatenate([[low], ends, [high]]))
        return ends[:-1], ends[1:]


class _Disc(NamedTuple):
    """What is known of all classes in the discs about panels, relative to the largest u_g at the centre."""

    top: FloatArray  # log of the largest u_g
    ratio: FloatArray
    slope: FloatArray
    curvature: FloatArray
    radius: FloatArray

    def growth(self) -> FloatArray:
        r = self.radius[:, None]
        return np.abs(self.slope) * r + np.abs(self.curvature) * r * r

    def analytic(self, share: FloatArray | None) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
        """Of sum share_g u_g: whether its log is analytic, its largest term, a bound of |log| of the sum over that
        term, and the moduli k of all classes against it."""
        ratio = self.ratio if share is None else self.ratio * share
        first = np.argmax(ratio, axis=1)[:, None]
        largest = np.take_along_axis(ratio, first, axis=1)
        r = self.radius[:, None]
        k = np.abs(self.slope - np.take_along_axis(self.slope, first, axis=1)) * r
        k = k + np.abs(self.curvature - np.take_along_axis(self.curvature, first, axis=1)) * r * r
        terms = ratio / largest * np.exp(k)
        least = 1.0 - np.where(k > 0.5 * math.pi, terms, 0.0).sum(axis=1)
        size = np.log(np.maximum(terms.sum(axis=1), 2.0)) + 0.5 * math.pi
        return least >= 0.5, np.log(largest[:, 0]), size, k


def entropy_integrals(model: LineModel) -> tuple[FloatArray, FloatArray]:
    """The integral over classes and those of each type, shape (1 + T,), with absolute errors."""
    interval, atoms = model.atoms()
    count = 1 + len(model.member)
    value, rounding = np.zeros(count), np.zeros(count)
    for logs in atoms:
        item, error = _entropies(model, np.log(model.weights) + logs, 0.0 * logs)
        value, rounding = value + item, rounding + error
    if len(model.weights) == 1 or interval[0] >= interval[1]:
        return value, rounding + _SUM_ERROR * value
    base, base_rounding, tolerance = value, rounding, _ABSOLUTE
    for _ in range(_PASSES):
        inner, error, inner_rounding = _over_panels(model, interval, tolerance)
        value, rounding = base + inner, base_rounding + inner_rounding
        positive = value[value > 0]
        if not positive.size or (error[value > 0] <= 1e-14 * positive).all():
            break
        if tolerance <= _LEAST_ABSOLUTE:
            break
        tolerance = max(float(positive.min()) * 1e-19, _LEAST_ABSOLUTE)
    return value, error + rounding + _SUM_ERROR * value + _TAIL_ERROR


def _over_panels(
    model: LineModel, interval: tuple[float, float], tolerance: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Integrals, errors of quadrature and of rounding over the interval."""
    nodes, node_weights = np.polynomial.legendre.leggauss(_NODES)
    left, right = model.panels(interval)
    count = 1 + len(model.member)
    sums: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    size = max(1, _BLOCK_NUMBERS // (_NODES * len(model.weights)))
    done = 0
    while left.size:
        a, b = left[:size], right[:size]
        left, right = left[size:], right[size:]
        centre, half = 0.5 * (a + b), 0.5 * (b - a)
        good, modulus, mass = _moduli(model, centre, half)
        mass *= math.log(len(model.weights)) + 1.0  # a bound of the integrals over the panels
        small = mass <= 1e-3 * tolerance
        last = (half <= 1e-15 * np.maximum(np.abs(centre), 1e-290)) | (done > _MAX_PANELS)
        evaluated = good & ~small
        numbers, roundings = np.zeros((2, a.size, count))
        if evaluated.any():
            offset = half[evaluated, None] * nodes
            logs = np.log(model.weights) + model.log_densities(centre[evaluated, None] + 0.0 * offset, offset)
            slope = np.abs(model.slopes(centre[evaluated])[0])[:, None, :]
            result = _entropies(model, logs, np.broadcast_to(slope * (np.abs(model.means) + 0.0), logs.shape))
            weighted = half[evaluated, None] * node_weights
            numbers[evaluated], roundings[evaluated] = (np.einsum("nq,nqt->nt", weighted, entry) for entry in result)
        error = np.where(evaluated[:, None], _QUADRATURE_ERROR * half[:, None] * modulus, 0.0)
        accepted = evaluated & (error <= _RELATIVE * numbers + tolerance).all(axis=1)
        remainder = ~accepted & ~small & ~last
        error = np.where(accepted[:, None], error, mass[:, None])
        numbers[~accepted] = roundings[~accepted] = 0.0
        sums.append((numbers[~remainder].sum(axis=0), error[~remainder].sum(axis=0), roundings[~remainder].sum(axis=0)))
        left = np.concatenate([left, a[remainder], centre[remainder]])
        right = np.concatenate([right, centre[remainder], b[remainder]])
        done += int((~remainder).sum())
    totals = [np.array([math.fsum(column) for column in np.stack(item).T]) for item in zip(*sums, strict=True)]
    return totals[0], totals[1], totals[2]


def _moduli(model: LineModel, centre: FloatArray, half: FloatArray) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Whether all logs are analytic about panels; bounds of the integrands in the discs, and of their masses."""
    logs = np.log(model.weights) + model.log_densities(centre, 0.0 * centre)
    top = logs.max(axis=1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        ratio = np.exp(logs - top[:, None])
        disc = _Disc(top, ratio, *model.slopes(centre), _RADIUS * half)
        size = np.exp(top[:, None] + np.log(ratio) + disc.growth())
        good, _, log_size, k = disc.analytic(None)
        modulus = np.empty((centre.size, 1 + len(model.member)))
        modulus[:, 0] = np.where(ratio > 0, size * (-np.log(ratio) + k + log_size[:, None]), 0.0).sum(axis=1)
        for t, rows in enumerate(zip(model.member, model.other, strict=True)):
            modulus[:, 1 + t] = 0.0
            for row in rows:
                if not row.any():
                    continue
                fine, largest, own_size, _ = disc.analytic(row)
                good &= fine | ~np.isfinite(largest)
                first = np.argmax(ratio * row, axis=1)[:, None]
                logs_of_both = -largest + np.take_along_axis(k, first, axis=1)[:, 0] + log_size + own_size
                modulus[:, 1 + t] += np.where(np.isfinite(largest), (size * row).sum(axis=1) * logs_of_both, 0.0)
        inner = _Disc(top, ratio, disc.slope, disc.curvature, half)
        mass = 2.0 * half * np.exp(top[:, None] + np.log(ratio) + inner.growth()).sum(axis=1)
        good &= np.isfinite(modulus).all(axis=1)
    return good, np.nan_to_num(modulus, nan=np.inf), mass


def _entropies(model: LineModel, logs: FloatArray, steepness: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The sums of the integrands from log u_g, shape (..., 1 + T), and what rounding moves them by.

    ``steepness`` is the size of what the rounding of the means moves log u_g by, in units of rounding.
    """
    top = logs.max(axis=-1, keepdims=True)
    with np.errstate(under="ignore", divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.exp(logs - top)
        scale = np.exp(top[..., 0])
        error = _DENSITY_ERROR + UNIT_ROUNDOFF * (6.0 * np.where(ratio > 0, np.abs(logs), 0.0) + 2.0 * steepness)
        first = np.argmax(logs, axis=-1)[..., None]
        others = ratio.copy()
        np.put_along_axis(others, first, 0.0, axis=-1)
        total = np.log1p(others.sum(axis=-1, keepdims=True))
        terms = np.where(ratio > 0, ratio * (total - (logs - top)), 0.0)
        np.put_along_axis(terms, first, total, axis=-1)
        value = [scale * terms.sum(axis=-1)]
        rounding = [scale * (terms * error).sum(axis=-1)]
        wrong = ratio * error
        for member, other in zip(model.member, model.other, strict=True):
            item, none = ratio @ member, ratio @ other
            log_one, log_none = _log_of_sum_over(item, none), _log_of_sum_over(none, item)
            result = np.where(item > 0, item * log_one, 0.0) + np.where(none > 0, none * log_none, 0.0)
            shifted = np.where(item > 0, (wrong @ member) * log_one, 0.0)
            shifted = shifted + np.where(none > 0, (wrong @ other) * log_none, 0.0)
            value.append(scale * np.where((item > 0) & (none > 0), result, 0.0))
            rounding.append(scale * np.where((item > 0) & (none > 0), shifted, 0.0))
    return np.stack(value, axis=-1), np.stack(rounding, axis=-1)


def _log_of_sum_over(first: FloatArray, second: FloatArray) -> FloatArray:
    """log((first + second) / first), also where the quotient overflows."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratio = second / first
        return np.where(np.isinf(ratio), np.log(second) - np.log(first), np.log1p(ratio))


def positive_part(model: LineModel, coefficients: FloatArray) -> tuple[float, float]:
    """The integral of (sum_g a_g p_g)^+ with atoms, and its absolute error."""
    interval, atoms = model.atoms()
    value, error, done = [], [], 0
    left, right = model.panels(interval) if interval[0] < interval[1] else (np.empty(0), np.empty(0))
    for logs in atoms:
        terms = coefficients * np.exp(logs)
        value.append(max(math.fsum(terms.tolist()), 0.0))
        error.append(float((np.abs(terms) * (_DENSITY_ERROR + 4 * UNIT_ROUNDOFF * np.abs(logs))).sum()))
    size = max(1, _BLOCK_NUMBERS // (4 * len(coefficients)))
    while left.size:
        a, b = left[:size], right[:size]
        left, right = left[size:], right[size:]
        centre, half = 0.5 * (a + b), 0.5 * (b - a)
        logs = model.log_densities(centre, 0.0 * centre)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            ratio = np.abs(coefficients) * np.exp(logs - logs.max(axis=1, keepdims=True))
            slope, curvature = model.slopes(centre)
            first = np.argmax(ratio, axis=1)[:, None]
            k = np.abs(slope - np.take_along_axis(slope, first, axis=1)) * half[:, None]
            k = k + np.abs(curvature - np.take_along_axis(curvature, first, axis=1)) * half[:, None] ** 2
            middle = (np.sign(coefficients) * ratio).sum(axis=1)
            shifted = (ratio * np.expm1(k)).sum(axis=1)
            shifted += (ratio * (_DENSITY_ERROR + 8 * UNIT_ROUNDOFF * (1.0 + np.abs(logs)))).sum(axis=1)
        terms = coefficients * model.masses(a, b)
        size_of = np.abs(terms).sum(axis=1)
        sure = np.abs(middle) > shifted
        small = (size_of <= _ABSOLUTE) | (half <= 1e-15 * np.abs(centre))
        selected = (sure | small) | (done > _MAX_PANELS)
        value.extend(np.where(sure & (middle > 0), terms.sum(axis=1), 0.0)[selected].tolist())
        shifted = _DENSITY_ERROR + UNIT_ROUNDOFF * (8.0 * (1.0 + np.abs(logs)) + np.abs(slope) * np.abs(model.means))
        error.extend(np.where(sure, (np.abs(terms) * shifted).sum(axis=1), size_of)[selected].tolist())
        done += int(selected.sum())
        left = np.concatenate([left, a[~selected], centre[~selected]])
        right = np.concatenate([right, centre[~selected], b[~selected]])
    total = math.fsum(value)
    return total, math.fsum(error) + _SUM_ERROR * total + _TAIL_ERROR
