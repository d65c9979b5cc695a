"""Quantities of d-dimensional mixtures that are those of one-dimensional ones, with proved bounds.

Every function returns None where ``independent_factors`` finds no reduction. KL and Renyi divergences add over
independent factors; hockey-stick divergences are those of their composition, which is also asked for the factors of
``product_factors``; the others need a single factor that distinguishes P from Q. The bounds include what rounding may
have done to the means. Where the one-dimensional bounds are too wide to be of
use, the result is None too, unless ``certified`` asks for bounds of any width.

Effect of displaced means
-------------------------
Notation: eta is the displacement, D the diameter of all means, both in the metric K^-1 of the one covariance K; u =
p/q; P~ and Q~ are the distributions that are computed with.

The means move along m_i(t) = m~_i + t d_i, |d_i| <= eta, 0 <= t <= 1, from the line to where they are.
Write m_p(x) and d_p(x) for the posterior means of m_i and d_i given x under P, and likewise for Q. In units K = I the
score is grad log p = m_p(x) - x, so that grad log u = m_p - m_q, and partial integration gives for f convex

    d/dt of the integral of q f(u) = the integral of q u^2 f''(u) (d_p - d_q).(m_p - m_q),

where |d_p - d_q| <= 2 eta and |m_p - m_q| <= D. So the whole path changes

* KL (q u^2 f'' = p) by at most 2 eta E, E = E_P |m_p - m_q| <= D;
* JS (q u^2 f'' = pq / 2(p + q), of mass <= 1/4 and at most p/2) by at most eta min(D/2, E);
* D_a (f = u^a; d/dt log of the integral is a(a - 1) times a mean of the same product) by at most 2 a eta D;
* the entropy, whose derivative is -E_P d_p.(m_p - x) = -sum w_i d_i . E_i (m_p - m_i), by at most eta D, and so the
  mutual information of label and output, which differs from it by a constant.

For E: with c the centre of the line, E_P |m_p - m_q| is at most the integral of |sum w_i N_i (m_i - c) - sum v_i N_i
(m_i - c)| + (D/2) |p - q|; where components share a position of the line, up to 2 eta apart and so within 0.8 eta in
total variation, E <= D |w - v|_1 + (2 + 2 D) eta.

Hockey-stick divergences. N_i and N~_i differ on {|z| <= X}, z the sample's normal coordinate along d_i, by a factor
within e^(+-(eta X + eta^2/2)), and each has at most tau = e^(-X^2/2) outside. With kappa = eta X + eta^2/2,
P(A) <= e^kappa P~(A) + tau and P(A) >= e^-kappa P~(A) - tau for every event A, likewise Q, and with a = e^epsilon

    e^-kappa H_{epsilon + 2 kappa}(P~||Q~) - (1 + a) tau <= H_epsilon(P||Q)
        <= e^kappa H_{epsilon - 2 kappa}(P~||Q~) + (1 + a) tau.

X is chosen for every epsilon such that (1 + a) tau is e^-40 of a first lower bound. At epsilon < 2 kappa the order is
cut at 0, and H_b - H_1 <= 1 - b for b < 1.
"""

# bounds: proved - docs/proofs/roundings.md, 13.21: rounding of entropies and logarithms, and of what is proved above;
#    underflow

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from ...base.estimate import KINDS, Estimate, Kind, Unit
from ...base.exact_linear_algebra import log_determinant
from ...base.numerics import LOG_2_ABOVE, UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ...distributions import GaussianMixture, Pmf
from ..one_dimension import integrals, monotone_pieces
from ..one_dimension.closed_forms import LOG_2_PI_E
from ..one_dimension.quadrature import NO_DEADLINE, STOPPED, Deadline
from . import gaussian_spectra
from .gaussian_sums import gaussian_sum_bounds
from .independent_factors import (
    OneDimensionalFactor,
    equal_measures,
    independent_factors,
    is_single_gaussian,
    product_factors,
)

_MAX_MASS = 1.00001  # exceeds every total weight, at most 1 + 1e-9, times the rounding of an error bound
# bound: none - bounds wider than both of these, absolutely and relatively, say no more than a sample would
_MAX_WIDTH, _MAX_RELATIVE_WIDTH = 1e-3, 1e-2
# bound: none - log of the smallest positive double: below it a logarithm stands for a number that underflows
_LOG_UNDERFLOW = -745.0
_TAIL_LOG_FRACTION = 40.0  # minus the log of the fraction of a hockey-stick divergence that its window may leave out
_UNKNOWN_SIZE = 1e6  # minus the log of a hockey-stick divergence taken where its own is 0 or cannot be computed
_METHOD = "reduced to one dimension"  # ``method`` of an Estimate by integrals in one dimension

Arguments = ParamSpec("Arguments")


def _none_if_uninformative(function: Callable[Arguments, Estimate | None]) -> Callable[Arguments, Estimate | None]:
    """Make a function return None in place of bounds that are too wide, unless certified bounds are asked for."""

    @wraps(function)
    def informative(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Estimate | None:
        estimate = function(*args, **kwargs)
        if estimate is None or kwargs.get("certified"):
            return estimate
        with np.errstate(invalid="ignore"):
            width = np.asarray(estimate.width)
            wide = (width > _MAX_WIDTH) & (width > _MAX_RELATIVE_WIDTH * np.abs(estimate.value))
            if estimate.unit == "log probability":
                wide &= np.asarray(estimate.upper) > _LOG_UNDERFLOW
        wide &= np.isfinite(estimate.upper)
        return None if wide.size and wide.all() else estimate

    return informative


@_none_if_uninformative
def renyi_divergence(
    p: GaussianMixture, q: GaussianMixture, order: float = 1.0, *, certified: bool = False,
    deadline: Deadline = NO_DEADLINE,
) -> Estimate | None:
    """D_order(P||Q) in nats, KL(P||Q) for order 1: the sum over independent factors, infinite if one of them is."""

    def divergence(p: GaussianMixture, q: GaussianMixture) -> Estimate:
        return monotone_pieces.renyi_divergence(p, q, order, certified=certified, deadline=deadline)

    def displacement_error(factor: OneDimensionalFactor) -> float:
        if order == 1.0:
            return 2 * factor.displacement * _posterior_mean_gap(factor)
        # An infinite order times no displacement is no error.
        return 2 * order * factor.displacement * factor.diameter if factor.displacement else 0.0

    total = _sum_over_factors(p, q, divergence, displacement_error)
    if total is None and math.isfinite(order) and is_single_gaussian(p) and is_single_gaussian(q):
        return gaussian_spectra.renyi_divergence(p, q, order)
    return total


@_none_if_uninformative
def jensen_shannon(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """JS(P, Q) in nats, where one factor alone distinguishes P from Q."""
    factor = _only_factor(p, q)
    if not isinstance(factor, OneDimensionalFactor):
        return factor
    error = factor.displacement * min(factor.diameter / 2, _posterior_mean_gap(factor))

    def divergence(p: GaussianMixture, q: GaussianMixture) -> Estimate:
        return integrals.jensen_shannon(p, q, certified=certified, deadline=deadline)

    estimate = _from_narrow_and_wide(factor, divergence, error)
    value, upper = (min(end, LOG_2_ABOVE) for end in (estimate.value, estimate.upper))
    return replace(estimate, value=value, upper=upper, method=f"{_METHOD}: {estimate.method}")


@_none_if_uninformative
def hockey_stick_divergence(
    p: GaussianMixture, q: GaussianMixture, epsilon: ArrayLike, *, logs: bool = False, deadline: Deadline = NO_DEADLINE,
    n_jobs: int | None = None,
) -> Estimate | None:
    """H_{e^epsilon}(P||Q) or its logarithm, of two Gaussians, or where independent factors distinguish P from Q."""
    factor = _only_factor(p, q)
    if factor is None:
        result = _gaussian_hockey_stick(p, q, np.asarray(epsilon, dtype=np.float64), logs)
        if result is None and product_factors(p, q) is not None:
            result = hockey_stick_of_blocks([(p, q)], epsilon, logs=logs)
        return result
    if not isinstance(factor, OneDimensionalFactor):
        return _zero_divergence("log probability" if logs else "probability", np.shape(epsilon))
    grid = np.asarray(epsilon, dtype=np.float64)
    options: dict[str, Any] = {"logs": logs, "deadline": deadline, "n_jobs": n_jobs}
    curve: Callable[..., Estimate] = monotone_pieces.hockey_stick_divergence
    above = curve(*factor.narrow, grid, **options)
    method = f"{_METHOD}: {above.method}"
    if factor.exact:
        return replace(above, method=method)
    below = curve(*factor.wide, grid, **options)
    lower, upper = np.asarray(below.lower), np.asarray(above.upper)
    if factor.displacement:
        lower, upper = _displaced_bounds(factor, grid, logs=logs, deadline=deadline)
    return replace(
        above, value=np.clip(np.asarray(below.value), lower, upper), lower=lower, upper=upper, kind="certified",
        method=method,
    )


def _gaussian_hockey_stick(p: GaussianMixture, q: GaussianMixture, grid: FloatArray, logs: bool) -> Estimate | None:
    """The curve of two normal distributions whose covariances differ."""
    spectrum = gaussian_spectra.gaussian_spectrum(p, q) if is_single_gaussian(p) and is_single_gaussian(q) else None
    if spectrum is None:
        return None
    rows = gaussian_sum_bounds([(spectrum, 1.0)], np.ravel(grid))
    result = Estimate(
        *(row.reshape(grid.shape) for row in rows), kind="certified", unit="log probability",
        method=f"sum along a bent contour, {int(spectrum.counts.sum())} independent coordinates",
    )
    return result if logs else result.to("probability")


def hockey_stick_of_blocks(
    pairs: list[tuple[GaussianMixture, GaussianMixture]], epsilon: ArrayLike, *, logs: bool, direction: str = "forward"
) -> Estimate:
    """The curve of independent blocks of coordinates, each with its pair: that of their composition."""
    composition = import_module("fastpriv").compose(pairs)  # which is built on this room: its public name is called
    curve: Callable[..., Estimate] = composition.log_delta if logs else composition.delta
    return curve(epsilon, direction=direction)


@_none_if_uninformative
def entropy(p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE) -> Estimate | None:
    """Differential entropy in nats: that of the noise and the information about the label, or of coordinates."""
    factors = independent_factors(p)
    if factors is None:
        return None
    if not factors:
        return _noise_entropy(p, [])
    (factor,) = factors  # of one mixture there is one, since all other coordinates drop out
    mixture = factor.narrow[0]
    if factor.coordinate is not None and np.ptp(mixture.sigmas):
        term = integrals.entropy(mixture, certified=certified, deadline=deadline)
        noise = _noise_entropy(p, [factor.coordinate])
    else:
        term = _input_information(factor, certified=certified, deadline=deadline)
        noise = _noise_entropy(p, [])
    return _sum_of_estimates([term, noise], _METHOD, floor=-math.inf)


@_none_if_uninformative
def mutual_information(
    p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate | None:
    """Information in nats between the component of a mixture and the sample: I(X; X + noise) for a discrete X."""
    factors = independent_factors(p)
    if factors is None:
        return None
    if not factors:
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")
    (factor,) = factors  # as in ``entropy``
    mixture = factor.narrow[0]
    if not np.ptp(mixture.sigmas):
        estimate = _input_information(factor, certified=certified, deadline=deadline)
    else:  # h(X) less the mean entropy of the components
        estimate = integrals.entropy(mixture, certified=certified, deadline=deadline)
        value, lower, upper = estimate.floats()
        logs = np.log(mixture.sigmas)
        noise = math.fsum((mixture.weights * (LOG_2_PI_E / 2 + logs)).tolist())
        error = 12 * UNIT_ROUNDOFF * (math.fsum((mixture.weights * (3 + np.abs(logs))).tolist()) + abs(value))
        estimate = _rounded_outward(estimate, value - noise, lower - noise - error, upper - noise + error)
    return replace(estimate, method=f"{_METHOD}: {estimate.method}")


def _input_information(factor: OneDimensionalFactor, *, certified: bool, deadline: Deadline) -> Estimate:
    """Information between the means, as a discrete input, and the sample; components have one standard deviation."""
    if not np.ptp(factor.narrow[0].means):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")

    def information(mixture: GaussianMixture) -> Estimate:
        values, index = np.unique(mixture.means, return_inverse=True)
        weights: list[list[float]] = [[] for _ in values]
        for i, w in zip(index.tolist(), mixture.weights.tolist(), strict=True):
            weights[i].append(w)
        prior = Pmf(values, [math.fsum(part) for part in weights])
        result = integrals.mutual_information(prior, float(mixture.sigmas[0]), certified=certified, deadline=deadline)
        value, lower, upper = result.floats()
        rounding = 4 * UNIT_ROUNDOFF * (upper + UNIT_ROUNDOFF) if len(values) < len(mixture) else 0.0
        return _rounded_outward(result, value, lower - rounding, upper + rounding)

    return _from_narrow_and_wide(factor, information, factor.displacement * factor.diameter)


def _noise_entropy(p: GaussianMixture, removed: list[int]) -> Estimate:
    """Entropy of N(0, K), K the first covariance, without the ``removed`` coordinates."""
    d = p.dimension
    if p.form == "full":
        assert p.covariances is not None
        log, error = log_determinant(p.covariances[0])
        value = (d * LOG_2_PI_E + log) / 2
        error = error / 2 + 4 * UNIT_ROUNDOFF * (d * LOG_2_PI_E + abs(log))
    else:
        logs = np.log(np.delete(gaussian_spectra.first_sigmas(p), removed))
        value = math.fsum([*logs.tolist(), logs.size * LOG_2_PI_E / 2])
        error = 12 * UNIT_ROUNDOFF * (float(np.abs(logs).sum()) + logs.size * LOG_2_PI_E + abs(value))
    return Estimate(value, value - error, value + error, kind="exact", unit="nats", method="closed form")


def _sum_over_factors(
    p: GaussianMixture, q: GaussianMixture, divergence: Callable[[GaussianMixture, GaussianMixture], Estimate],
    displacement_error: Callable[[OneDimensionalFactor], float],
) -> Estimate | None:
    """The sum of the divergences of all factors, with the error of their displacements.

    A displacement moves means in all directions, also across a line: its error is one of the sum, not of the term.
    """
    factors = _distinguishing_factors(p, q)
    if factors is None:
        return None
    if not factors:
        return _zero_divergence("nats", ())
    terms = [_from_narrow_and_wide(factor, divergence) for factor in factors]
    prefix = _METHOD if len(factors) == 1 else f"{len(factors)} independent one-dimensional factors"
    total = _sum_of_estimates(terms, prefix)
    if math.isinf(total.lower):
        return total
    return _sum_of_estimates([total], "", math.fsum(displacement_error(factor) for factor in factors))


def _only_factor(p: GaussianMixture, q: GaussianMixture) -> OneDimensionalFactor | Estimate | None:
    """The only factor; the estimate 0 for equal distributions; None if there is no reduction to one factor."""
    factors = _distinguishing_factors(p, q)
    if factors is None or len(factors) > 1:
        return None
    return factors[0] if factors else _zero_divergence("nats", ())


def _distinguishing_factors(p: GaussianMixture, q: GaussianMixture) -> tuple[OneDimensionalFactor, ...] | None:
    return () if equal_measures(p, q) else independent_factors(p, q)


def _zero_divergence(unit: Unit, shape: tuple[int, ...]) -> Estimate:
    zero = np.zeros(shape) if unit != "log probability" else np.full(shape, -np.inf)
    return Estimate(zero, zero, zero, kind="exact", unit=unit, method="equal distributions")


def _from_narrow_and_wide(
    factor: OneDimensionalFactor, quantity: Callable[..., Estimate], error: float = 0.0
) -> Estimate:
    """A quantity that noise lowers, from the narrow and the wide distributions, and an absolute error."""
    above = quantity(*factor.narrow)
    if factor.exact:
        return above
    below = quantity(*factor.wide) if factor.wide is not factor.narrow else above
    error *= _MAX_MASS
    (first, _, upper), (second, lower, _) = above.floats(), below.floats()
    value = first if math.isinf(first) else (first + second) / 2
    estimate = _rounded_outward(below, value, lower - error, upper + error)
    return replace(estimate, kind=_weakest_kind([above, below], "certified"))


def _sum_of_estimates(terms: list[Estimate], prefix: str, error: float = 0.0, *, floor: float = 0.0) -> Estimate:
    """A sum of estimates, its bounds an error and a rounding further out, but not below the floor."""
    methods = ", ".join(sorted({term.method for term in terms}))
    method = f"{prefix}: {methods}" if prefix else methods
    if len(terms) == 1 and not error:
        return replace(terms[0], method=method)
    columns = ([getattr(term, name) for term in terms] for name in ("value", "lower", "upper"))
    value, lower, upper = (math.fsum(x) if all(map(math.isfinite, x)) else sum(x) for x in columns)
    lower = lower if math.isinf(lower) else max(floor, next_below(lower - _MAX_MASS * error))
    upper = upper if math.isinf(upper) else next_above(upper + _MAX_MASS * error)
    kind = _weakest_kind(terms, "certified" if error else "exact")
    cost = STOPPED if any("stopped" in term.cost for term in terms) else {}
    return Estimate(
        min(max(value, lower), upper), lower, upper, kind=kind, unit=terms[0].unit, method=method, cost=cost
    )


def _weakest_kind(terms: list[Estimate], least: Kind) -> Kind:
    return max((least, *(term.kind for term in terms)), key=KINDS.index)


def _rounded_outward(like: Estimate, value: float, lower: float, upper: float) -> Estimate:
    """Bounds of a quantity that is never negative, each one double further out."""
    lower = max(0.0, next_below(lower) if lower > 0.0 else 0.0)
    upper = max(next_above(upper), lower)
    return replace(like, value=min(max(value, lower), upper), lower=lower, upper=upper)


def _posterior_mean_gap(factor: OneDimensionalFactor) -> float:
    """The bound of E of the header."""
    p, q = factor.narrow
    signed_weights: dict[float, list[float]] = {}
    for mixture, sign in ((p, 1.0), (q, -1.0)):
        for x, w in zip(mixture.means.tolist(), mixture.weights.tolist(), strict=True):
            signed_weights.setdefault(x, []).append(sign * w)
    distance = math.fsum(abs(math.fsum(weights)) for weights in signed_weights.values())  # |w - v|_1
    bound = factor.diameter * distance + (2 + 2 * factor.diameter) * factor.displacement
    return min(factor.diameter, bound)


def _displaced_bounds(
    factor: OneDimensionalFactor, epsilon: FloatArray, *, logs: bool, deadline: Deadline
) -> tuple[FloatArray, FloatArray]:
    """Bounds of hockey-stick divergences, or of their logarithms, over all displacements allowed."""
    curve: Callable[..., Estimate] = monotone_pieces.hockey_stick_divergence
    with np.errstate(all="ignore"):
        size = np.asarray(curve(*factor.wide, epsilon, logs=True, deadline=deadline).lower)
        growth = np.logaddexp(0.0, epsilon)  # log(1 + a)
        drop = np.where(np.isfinite(size) & np.isfinite(growth), growth - size, _UNKNOWN_SIZE)
        window = np.sqrt(2 * (np.maximum(drop, 0.0) + _TAIL_LOG_FRACTION))  # X of the header
        kappa = 1.0001 * (factor.displacement * window + factor.displacement**2 / 2)
        kappa += 4 * UNIT_ROUNDOFF * np.where(np.isfinite(epsilon), epsilon, 0.0)
        tail = growth - window**2 / 2 + 1e-9 * (1 + window**2)  # log of (1 + a) tau
        missing = np.where(epsilon < 2 * kappa, 2 * kappa, 0.0)  # bounds 1 - b where the order is cut at 0
        high = curve(*factor.narrow, np.maximum(epsilon - 2 * kappa, 0.0), logs=logs, deadline=deadline)
        low = curve(*factor.wide, epsilon + 2 * kappa, logs=logs, deadline=deadline)
        top, bottom = np.asarray(high.upper), np.asarray(low.lower)
        if logs:
            margin = 32 * UNIT_ROUNDOFF
            top = np.logaddexp(np.logaddexp(top + kappa, tail), np.log(missing))
            bottom = bottom - kappa
            bottom = np.where(tail < bottom, bottom + np.log(-np.expm1(np.minimum(tail - bottom, 0.0))), -np.inf)
            top, bottom = top + margin * (1 + np.abs(top)), bottom - margin * (1 + np.abs(bottom))
            top = np.minimum(np.where(np.isnan(top), -np.inf, top), 0.0)
            bottom = np.where(np.isnan(bottom), -np.inf, bottom)
        else:
            top = (top * np.exp(kappa) + np.exp(tail) + missing) * (1 + 32 * UNIT_ROUNDOFF)
            bottom = (bottom * np.exp(-kappa) - np.exp(tail)) * (1 - 32 * UNIT_ROUNDOFF)
            top, bottom = np.minimum(top + 1e-322, 1.0), np.maximum(bottom - 1e-322, 0.0)
    zero, infinite = -np.inf if logs else 0.0, np.isposinf(epsilon)
    return np.where(infinite, zero, bottom), np.where(infinite, zero, top)
