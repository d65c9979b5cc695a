"""The notions of a secret in one dimension behind Gaussian noise.

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the distribution of M(x), P_M that of M(X).

The largest divergence
----------------------
Lengths are in units of sigma, q is the density of M(X), Z a standard normal number, and D(x) = KL(P_x || P_M), which is
-E log q(x + Z) less the entropy of the noise, for every real x. Its second derivative is 1 - E Var(X | M(X) = x + Z).
A variance is at most a quarter of the square of the range, so that D is convex where the range of the points is at most
2: one of the two outermost points has the largest divergence.

The best guess
--------------
In units of sigma, the likeliest x after a release y has the largest line l_x(y) = log pi(x) - x^2 / 2 + x y. The lines
of the upper concave hull of the points (x, log pi(x) - x^2 / 2) win, each between two breakpoints. Any intervals are a
strategy, so that the sum of pi(x) P_x(its interval) is a lower bound. For the upper one, let a breakpoint t have the
lines i left and j right of it: for y < t, l_j(y) <= l_i(y) + |l_j(t) - l_i(t)| since l_j is steeper, and a line k of a
slope between both has l_k(y) <= l_i(y) + (l_k(t) - l_i(t))^+; for y > t, l_k(y) <= l_j(y) + |l_j(t) - l_i(t)| +
(l_k(t) - l_i(t))^+. Breakpoints ascend, so that no line is above the one that wins by more than the sum of the first
differences and the largest of the second, e: the sum times exp(e) is an upper bound.
"""

# bounds: proved - docs/proofs/roundings.md, 13.15: rounding of the caps by which values of the secret are left out

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.errors import DomainError
from ..base.estimate import KINDS, Estimate
from ..base.numerics import FloatArray, next_above, next_below
from ..base.parallel import Progress, blocks, ordered_map
from ..base.remedies import LIP_LEVELS
from ..distributions import GaussianMixture, Pmf
from ..distributions.pmf import GroupedAtoms, grouped_atoms
from ..divergences.one_dimension.integrals import kl_divergence
from ..divergences.one_dimension.monotone_pieces import MAX_DOUBLE_WIDTH, curve_estimate, with_mass_gaps
from ..kernels import _lip
from ..mechanisms.gaussian import GaussianMechanism

# bound: proved - of numbers in extended precision by some roundings, and of a sum of normal probabilities, below 1
_LONG_ROUNDING, _GUESS_ROUNDING = 16.0 * float(np.finfo(np.longdouble).eps), 2e-15
_LEVELS_PER_TASK = 256  # levels of epsilon of one call of the kernel: each takes up to 0.2 ms with a thousand points
_LEVELS_TIMES_POINTS = 2**16  # levels times points of the sigmas of one call: some 10 ms
_COST = ("evaluations", "double_double", "tails", "undecided")  # what the kernel of LIP curves counts
_DENSITY_REACH = 16.0  # standard deviations within which the density of grouped values is close to that of all
# bound: proved - the mass of a normal beyond 16 deviations, e^-128, times the log of a density, which is below e^10
_BEYOND_REACH_ERROR = 1e-50
_MANY_VALUES = 2048  # values from which grouping saves time of LIP curves
_MANY_DIVERGENCES = 256  # values from which grouping saves time of a divergence
# bound: none - relative error of the density that is asked of grouping, which says what it attains
_GROUPING_TOLERANCE = 4e-14
_CROSSING_ROOM = 2.0  # times the least bound of a crossing: how far from the values grouped ones serve as well
_GROUPING_SQUARE = 100.0  # what the square of the radius has to exceed that of a crossing by, and 10 to spare
_CLEAR_DIVERGENCE = 0.1  # nats; the error of grouping is small beside such a divergence
# bound: proved - docs/proofs/roundings.md, 13.15: relative rounding of a sum of exponentials of at most 450
_CAP_ROUNDING = 4e-13
# bound: none - values whose cap is so near the largest upper bound, relative, are not evaluated; their cap is a bound
_TIE = 1e-12
_CAP_REACH = 30.0  # standard deviations beyond which values add nothing to a cap: e^-450
_CAP_ROWS = 256  # values whose caps are computed at a time


def ldp_delta(prior: Any, mechanism: Any, epsilon: ArrayLike) -> Estimate:
    """Optimal LDP curve over the points of the prior: sup over x, x' of H_{e^epsilon}(P_x || P_x')."""
    prior, sigma = _with_sigmas(prior, mechanism)
    sigma, levels, squeezed = _rows_of_levels(sigma, epsilon)
    sigma = sigma[..., None]
    span = float(prior.values[-1] - prior.values[0])  # rounded: the true span lies between its neighbours
    exact = GaussianMechanism(sigma, span).delta(levels)
    above = GaussianMechanism(sigma, next_above(span) if len(prior) > 1 else 0.0).delta(levels)
    below = GaussianMechanism(sigma, max(0.0, next_below(span))).delta(levels)
    lower, upper = np.minimum(below.lower, exact.lower), np.maximum(above.upper, exact.upper)
    numbers = (np.reshape(number, squeezed) for number in (exact.value, lower, upper))
    return Estimate(*numbers, kind="exact", unit="probability", method=exact.method)


def lip_curves(
    prior: Any, mechanism: Any, epsilon: ArrayLike, n_jobs: int | None, progress: Progress
) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points."""
    prior, sigma = _with_sigmas(prior, mechanism)
    sigma, levels, squeezed = _rows_of_levels(sigma, epsilon)
    flat = np.ascontiguousarray(np.broadcast_to(levels, (*sigma.shape, levels.shape[-1])))
    rows, method, cost = _lip_rows(
        prior, sigma.reshape(-1), flat.reshape(sigma.size, flat.shape[-1]), MAX_DOUBLE_WIDTH, True, n_jobs, progress
    )
    rows = rows.reshape(-1, 6)
    grid = np.empty(squeezed)
    return (
        curve_estimate(rows[:, :3], grid, "probability", method, cost),
        curve_estimate(rows[:, 3:], grid, "log probability", method, cost),
    )


def _with_sigmas(prior: Any, mechanism: Any) -> tuple[Pmf, FloatArray]:
    """The prior and every sigma of a Gaussian mechanism."""
    sigma = sigmas_of(mechanism)
    validate.instance("prior", prior, Pmf)
    return prior, sigma


def _rows_of_levels(sigma: FloatArray, epsilon: ArrayLike) -> tuple[FloatArray, FloatArray, tuple[int, ...]]:
    """Each sigma (...), its row of levels (..., e), and the shape of the answers.

    The leading axes of epsilon broadcast with those of sigma, and a single sigma takes levels of any shape.
    """
    numbers = validate.real("epsilon", epsilon, "at least 0", lambda e: e == e)
    levels = validate.real("epsilon", numbers, "at least 0", lambda e: e >= 0, remedy=LIP_LEVELS)
    if sigma.ndim == 0:
        return sigma, levels.reshape(-1), levels.shape
    rows = np.atleast_1d(levels)
    validate.broadcastable("epsilon", rows, "sigma", sigma[..., None])
    leading = np.broadcast_shapes(rows.shape[:-1], sigma.shape)
    shape = leading + (rows.shape[-1:] if levels.ndim else ())
    return np.broadcast_to(sigma, leading), rows, shape


def lip_rows(
    prior: Pmf, sigma: float, epsilon: FloatArray, width: float, *, logs: bool
) -> tuple[FloatArray, str, dict[str, int]]:
    """Value, lower and upper and their logarithms for each epsilon, of this relative width; the method; the cost."""
    rows, method, cost = _lip_rows(prior, np.array([sigma]), epsilon[None], width, logs, 1, None)
    return rows[0], method, cost


def _lip_rows(
    prior: Pmf, sigma: FloatArray, epsilon: FloatArray, width: float, logs: bool, n_jobs: int | None, progress: Progress
) -> tuple[FloatArray, str, dict[str, int]]:
    """The same (s, e, 6) for levels (s, e) of each sigma, in blocks of both axes that do not depend on the threads."""
    s, e = epsilon.shape
    points, weights = prior.values, prior.probabilities

    def rows_at(flat: FloatArray) -> tuple[FloatArray, dict[str, int]]:
        # a gap of the prior can move levels below 0, where the kernel's bracket at 0 covers them
        levels = np.maximum(flat, 0.0).reshape(-1, s, e).transpose(1, 0, 2).reshape(s, flat.size // max(s, 1))
        order = np.argsort(levels, axis=1, kind="stable")
        increasing = np.take_along_axis(levels, order, axis=1)
        step = max(1, _LEVELS_TIMES_POINTS // (len(prior) * min(max(levels.shape[1], 1), _LEVELS_PER_TASK)))
        parts = [(some, part) for some in blocks(s, step) for part in blocks(levels.shape[1], _LEVELS_PER_TASK)]

        def of_part(task: tuple[slice, slice]) -> Any:
            some, part = task
            chosen = np.ascontiguousarray(increasing[some, part])
            groups = None
            if len(prior) > _MANY_VALUES and chosen.size > 1:
                groups = _groups_for_tails(prior, float(sigma[some][0]), float(chosen[0, -1]))
            return _lip.lip_curves(weights, points, np.ascontiguousarray(sigma[some]), chosen, width, logs, groups)

        rows, costs = np.empty((*levels.shape, 6)), np.zeros(4, dtype=np.int64)
        brief = levels.size * len(prior) <= _LEVELS_TIMES_POINTS
        results = ordered_map(of_part, parts, n_jobs=n_jobs, progress=progress, brief=brief, shared=True)
        for (some, part), (result, spent) in zip(parts, results, strict=True):
            rows[some, part] = result
            costs += spent
        unsorted = np.empty_like(rows)
        np.put_along_axis(unsorted, order[..., None], rows, axis=1)
        out = unsorted.reshape(s, flat.size // max(s * e, 1), e, 6).transpose(1, 0, 2, 3).reshape(-1, 6)
        return out, dict(zip(_COST, costs.tolist(), strict=True))

    if epsilon.size == 0:
        return np.empty((s, e, 6)), "two crossings a point", dict.fromkeys(_COST, 0)
    rows, cost = with_mass_gaps(rows_at, epsilon.reshape(-1), prior.mass_gap, 0.0)
    return rows.reshape(s, e, 6), "two crossings a point" + (", some not enclosed" if cost["undecided"] else ""), cost


def _groups_for_tails(prior: Pmf, sigma: float, epsilon: float) -> tuple[FloatArray, FloatArray, float, float] | None:
    """Return the grouped atoms of a prior that serve curves up to this epsilon; None if grouping saves little.

    From the first atom, the log-ratio reaches epsilon at most at (epsilon - log w) / d + d / 2, d being the distance of
    another atom. The radius leaves room for crossings of other atoms; points beyond it are summed over all atoms.
    """
    distance = (prior.values - prior.values[0]) / sigma
    if not (0.0 < distance[-1] < math.inf and epsilon < math.inf):
        return None
    with np.errstate(divide="ignore", over="ignore"):
        crossing = float(np.min((epsilon - np.log(prior.probabilities)) / distance + 0.5 * distance))
    least = -2.0 * math.log(float(prior.probabilities.min())) + _GROUPING_SQUARE
    radius = math.sqrt((_CROSSING_ROOM * max(crossing - float(distance[-1]), 1.0)) ** 2 + least)
    grouped = grouped_atoms(prior.values, prior.probabilities, sigma, radius=radius)
    if 2 * grouped.values.size >= len(prior):
        return None
    return grouped.weights, grouped.values, grouped.error, radius


def pointwise_lmip(prior: Any, mechanism: Any, *, certified: bool = False) -> Estimate:
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M), in nats.

    The text at the head of this module says which divergences are computed.
    """
    prior, sigma = validated(prior, mechanism)
    certified = validate.flag("certified", certified)
    x, release, grouping_error = prior.values, prior.through_gaussian(sigma), 0.0
    convex = next_above(float(x[-1] - x[0])) <= 2 * sigma
    cap = np.zeros(x.size)
    if convex:
        cap[[0, -1]] = 0.5 * (float(x[-1] - x[0]) / sigma) ** 2 * (1 + 1e-9) + 4 * release.mass_gap
    if not convex or (x.size > _MANY_DIVERGENCES and cap[0] > _CLEAR_DIVERGENCE):
        grouped = grouped_atoms(x, prior.probabilities, sigma, radius=_DENSITY_REACH, tolerance=_GROUPING_TOLERANCE)
        cap = cap if convex else _divergence_caps(prior, sigma, grouped) + 4 * release.mass_gap
        if x.size > _MANY_DIVERGENCES and 2 * grouped.values.size < x.size and cap.max() > _CLEAR_DIVERGENCE:
            grouping_error = 1.01 * (grouped.error + 2 * release.mass_gap) + _BEYOND_REACH_ERROR
            release = GaussianMixture(grouped.weights, grouped.values, sigma)
    largest: Estimate | None = None
    lower = upper = value = 0.0
    kinds: set[str] = set()
    evaluations = 0
    for i in np.argsort(-cap, kind="stable"):
        if largest is not None and cap[i] <= max(lower, upper + _TIE * upper):
            upper = max(upper, float(cap[i]))
            break
        largest = kl_divergence(GaussianMixture.single(float(x[i]), sigma), release, certified=certified)
        evaluations += 1
        kinds.add(largest.kind)
        central, below, above = largest.floats()
        value, lower, upper = (
            max(value, central), max(lower, below - grouping_error), max(upper, above + grouping_error)
        )
    assert largest is not None
    kind: Any = max(kinds, key=KINDS.index)
    return Estimate(
        value, min(lower, value), max(upper, value), kind=kind, unit="nats",
        method=f"largest divergence; {largest.method}", cost={"divergences": evaluations},
    )


def _divergence_caps(prior: Pmf, sigma: float, grouped: GroupedAtoms) -> FloatArray:
    """Upper bounds of KL(P_x || P_M) of every x, in closed form.

    One is -log sum_j w_j e^(-(x - x_j)^2 / (2 sigma^2)): the sum of w_j P_j is no less than its part along P_x with
    mass w_j e^(-KL(P_x || P_j)) each (Hershey and Olsen 2007). The other averages KL(P_x || P_j).
    """
    x, median = prior.values, int(np.searchsorted(np.cumsum(prior.probabilities), 0.5))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (x - x[min(median, x.size - 1)]) / sigma  # an outlier as origin would cost digits
        square = (scaled - np.sum(prior.probabilities * scaled)) ** 2
        average = 0.5 * (square + np.sum(prior.probabilities * square))
    sums = np.empty(x.size)
    start = 0
    while start < x.size:
        stop = min(start + _CAP_ROWS, int(np.searchsorted(x, x[start] + sigma, side="right")))
        ends = x[start] - _CAP_REACH * sigma, x[stop - 1] + _CAP_REACH * sigma
        near = slice(*np.searchsorted(grouped.values, ends))
        distance = (x[start:stop, None] - grouped.values[near]) / sigma
        sums[start:stop] = (np.exp(-0.5 * distance * distance) * grouped.weights[near]).sum(axis=1)
        start = stop
    single = prior.probabilities * (1 - 1e-15)
    density = -np.log(np.maximum(sums * (1 - grouped.error), single))
    average = np.where(np.isnan(average), np.inf, average)
    return np.asarray(np.minimum(average * (1 + 1e-9), density * (1 + 1e-15) + _CAP_ROUNDING))


def bayes_vulnerability(prior: Any, mechanism: Any) -> Estimate:
    """The chance that the best guess of the secret is right after the release; proof at the head of this module."""
    prior, sigma = validated(prior, mechanism)
    x = (prior.values.astype(np.longdouble) - prior.values.mean()) / sigma
    logs = np.log(prior.probabilities.astype(np.longdouble))
    heights, hull = logs - 0.5 * x * x, [0]
    for k in range(1, x.size):
        while len(hull) > 1 and (
            (heights[k] - heights[hull[-1]]) * (x[hull[-1]] - x[hull[-2]])
            >= (heights[hull[-1]] - heights[hull[-2]]) * (x[k] - x[hull[-1]])
        ):
            hull.pop()
        hull.append(k)
    i, j = np.array(hull[:-1], dtype=int), np.array(hull[1:], dtype=int)
    breakpoints = np.maximum.accumulate(0.5 * (x[i] + x[j]) - (logs[j] - logs[i]) / (x[j] - x[i]))
    index = np.searchsorted(j, np.arange(1, x.size))  # of the breakpoint between whose lines a line's slope is
    left, t = i[index], breakpoints[index]
    gap, twice_middle = x[1:] - x[left], x[1:] + x[left]
    over = logs[1:] - logs[left] + gap * (t - 0.5 * twice_middle)
    error = _LONG_ROUNDING * (np.abs(logs[1:]) + np.abs(logs[left]) + gap * (np.abs(t) + np.abs(twice_middle)))
    excess = float(np.sum((np.abs(over) + error)[j - 1]) + np.max(over + error, initial=0.0))
    ends = np.concatenate([[-np.inf], breakpoints, [np.inf]])
    low, high = ((side - x[hull]).astype(np.float64) for side in (ends[:-1], ends[1:]))
    chance = math.fsum(prior.probabilities[hull] * special.ndtr_difference(low, high))
    rounding = _GUESS_ROUNDING + prior.mass_gap
    least = float(prior.probabilities.max()) - rounding  # without the release
    rounding += _LONG_ROUNDING * float(np.abs(x).max())  # of the places of the values
    upper = min(1.0, chance * math.exp(min(excess, 700.0)) + rounding)  # exp of more overflows
    return Estimate(
        min(max(chance, least), upper), max(least, chance - rounding), upper, kind="certified", unit="probability",
        method="the intervals of the likeliest value", cost={"intervals": len(hull)},
    )


def lip_epsilon(prior: Any, mechanism: Any) -> Estimate:
    """Pure LIP and MBP, and pure LDP too: 0 for one point, infinity for more."""
    prior, sigma = _with_sigmas(prior, mechanism)
    xi = np.full(sigma.shape, 0.0 if len(prior) == 1 else math.inf)
    return Estimate(xi, xi, xi, kind="exact", unit="nats", method="the tails of normal noise tell the points apart")


def validated(prior: Any, mechanism: Any) -> tuple[Pmf, float]:
    """The prior and sigma of a Gaussian mechanism, the one family of noise whose notions are computed here."""
    prior, sigma = _with_sigmas(prior, mechanism)
    return prior, validate.scalar("sigma", sigma)


def sigmas_of(mechanism: Any) -> FloatArray:
    """Every sigma of a Gaussian mechanism."""
    if not isinstance(mechanism, GaussianMechanism):
        raise DomainError(
            f"mechanism must be a channel, rows of probabilities or a GaussianMechanism; got "
            f"{validate.shown(mechanism)}. Build one of these."
        )
    return np.asarray(mechanism.sigma)
