"""KL, Jensen-Shannon and Renyi divergences, entropy and mutual information in one dimension, by quadrature.

Notation: p, q the densities of P and Q, l = log(p/q), m = (p + q)/2, t = tanh(l/2); a is the order, b = a - 1, and J
the logarithm of the integral of p^a q^(1-a), so that D_a(P||Q) = J / b.

Mutual information of a discrete input and input + noise
--------------------------------------------------------
Notation: pi_i the prior of the point x_i, N_i the density of N(x_i, sigma^2), q = sum pi_i N_i, rho_i = N_i / q, so
that the posterior of x_i is pi_i rho_i.

Many points are grouped (``distributions/pmf.py``): nodes of density r stand for them, |r / q - 1| <= eta up to 16 sigma
from the nearest point. Both informations are the entropy of the noisy input less that of the noise, hence

    I(q) - I(r) = integral (r - q) log(r / g) + integral (r - q) log g - D(q || r)

for any density g. The last term is at most eta^2. With g the constant 1 / sqrt(2 pi) of the density in units of sigma,
which r does not exceed, the second vanishes, and the first is at most eta (I(r) + 1/2). With g normal, of any centre
and of variance s^2, the second is half the difference of the second moments over s^2, and the first at most eta times
integral r |log(r / g)| <= D + sqrt(2 D), D = D(r || g): its negative part is at most the total variation, sqrt(D / 2)
(Barron 1986). If s^2 is 1 plus the second moment of the nodes, D = log(s^2) / 2 - I(r), which is small against I(r)
where the noise is strong. Beyond 16 sigma there is less than e^-128 of either.
"""

# bounds: proved - docs/proofs/roundings.md, 13.19: rounding of second moments, of exponents and of a half-width

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from ...base import validate
from ...base.errors import DomainError
from ...base.estimate import Estimate
from ...base.numerics import UNIT_ROUNDOFF, FloatArray, next_above, next_below
from ...distributions import GaussianMixture, Pmf
from ...distributions.pmf import GroupedAtoms, grouped_atoms
from ...kernels._quadrature import SETTLED, UNDECIDED
from . import closed_forms
from .quadrature import (
    NO_DEADLINE,
    STOPPED,
    TIME_SPENT,
    Deadline,
    all_single_gaussians,
    estimate_and_status,
    quantity_and_status,
    rescaled,
)

# bound: none - orders beyond it are refused: their multiples of logarithms leave the range of doubles
_MAX_ORDER = 1e300
# bound: none - range / sigma below which nothing is grouped: the kernel takes the variance
_LEAST_GROUPED_RANGE = 1e-7
MAX_UNGROUPED = 2048  # points of a prior beyond which they are grouped
_GROUPING_RADIUS = 16.0  # standard deviations from the nearest point up to which the grouped density is that close
_MAX_STANDARDISED_RANGE = 1e100  # range / sigma of which the square does not overflow
# bound: none - relative error of the density asked of the grouping, which says what it attains
_GROUPING_TOLERANCE = 4e-14
# bound: none - relative; information that grouping would widen more is computed from all points
_MAX_WIDENING = 1e-12
# bound: proved - what lies beyond 16 sigma: e^-128 times the logarithm of a density, which is below e^10
_TAIL_ERROR = 1e-50


def kl_divergence(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """KL(P||Q) in nats.

    The integrand is p (l + expm1(-l)), which is never negative, so a small divergence costs no digits. For weights that
    sum to A and B it integrates to A KL(P/A||Q/B) + A log(A/B) + B - A; the bounds hold for the weights as they are and
    for those divided by their sums.
    """
    estimate, status = quantity_and_status("kl", p, q, certified=certified, deadline=deadline)
    if status == SETTLED:
        return estimate
    return closed_forms.gaussian_kl(p, q) if all_single_gaussians(p, q) else estimate


def jensen_shannon(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """JS(P, Q) in nats; the integrand is m (t atanh(t) + log1p(-t^2)/2), which loses no digits at either end."""
    return quantity_and_status("js", p, q, certified=certified, deadline=deadline)[0]


def renyi_divergence(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """D_order(P||Q) in nats, P and Q scaled to mass 1 (weights may miss it by their rounding).

    The mass of p^a q^(1-a) may lie far outside both distributions; the panels follow the bounds of that product, not
    the components. ``_tail_behaviour`` says where the divergence is infinite. What the kernel does not decide in
    doubles, the tails and the width of the integral, is decided here in rational arithmetic.
    """
    if order == 1.0:
        return kl_divergence(p, q, certified=certified, deadline=deadline)
    estimate, status = quantity_and_status("renyi", p, q, order=order, certified=certified, deadline=deadline)
    if status == SETTLED:
        return estimate
    tails = _tail_behaviour(p, q, order) if order > 1.0 else "finite"
    if tails == "infinite":
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
    if tails == "boundary":
        # no less than that of a smaller order (van Erven and Harremoes 2014, theorem 3), and perhaps infinite
        near = renyi_divergence(p, q, order * (1.0 - 2.0**-48), certified=certified, deadline=deadline)
        method = f"{near.method}, of the order less 2^-48 of itself"
        return Estimate(near.value, near.lower, math.inf, kind=near.kind, unit="nats", method=method, cost=near.cost)
    if all_single_gaussians(p, q):
        return closed_forms.gaussian_renyi(p, q, order)
    if order > _MAX_ORDER:
        raise DomainError(
            f"order must be at most {_MAX_ORDER:g} for several components; got {order!r}. Take that one: the "
            "divergence is the same to all digits."
        )
    if status == UNDECIDED:
        p, q = rescaled(p, q)
        half_width = _half_width(p, q, order, deadline)
        if half_width is None:
            method = "no bounds" + TIME_SPENT
            return Estimate(0.0, 0.0, math.inf, kind="certified", unit="nats", method=method, cost=STOPPED)
        options: dict[str, Any] = {"half_width": half_width, "certified": certified, "deadline": deadline}
        estimate, _ = quantity_and_status("renyi", p, q, order=order, **options)
    return estimate


def _tail_behaviour(p: GaussianMixture, q: GaussianMixture, order: float) -> Literal["finite", "infinite", "boundary"]:
    """Whether p^a q^(1-a) has a finite integral, for an order above 1, decided in rational arithmetic.

    It is infinite where a / s^2 < (a - 1) / t^2 for the largest standard deviations s of P and t of Q. On the boundary
    of equality the squares in the exponent cancel, and a / s^2 (m - n) x remains, m and n the outermost means of the
    widest components on the side of x: the integral is finite if those of q lie strictly outside on both sides.
    """
    a, s, t = Fraction(order), Fraction(float(p.sigmas.max())), Fraction(float(q.sigmas.max()))
    gap = a * t * t - (a - 1) * s * s
    if gap:
        return "finite" if gap > 0 else "infinite"
    inner, outer = p.means[p.sigmas == p.sigmas.max()], q.means[q.sigmas == q.sigmas.max()]
    return "boundary" if outer.min() < inner.min() and inner.max() < outer.max() else "infinite"


def _half_width(p: GaussianMixture, q: GaussianMixture, order: float, deadline: Deadline) -> float | None:
    """Half-width that leaves out at most e^-750 of the integral, for an order above 1; None at the ``deadline``.

    p^a <= k^(a-1) sum (w_i N_i)^a and q is at least its widest component; each product is a Gaussian curve, and J >= 0.
    """
    a, b = Fraction(order), Fraction(order) - 1
    widest = max(range(len(q)), key=lambda j: (q.sigmas[j], q.weights[j]))
    v, n, t = (Fraction(float(column[widest])) for column in (q.weights, q.means, q.sigmas))
    log_q = math.log(v) - math.log(t)
    half_width = 0.0
    extra = 800.0 + float(b) * math.log(len(p))
    for w, mean, sigma in zip(p.weights.tolist(), p.means.tolist(), p.sigmas.tolist(), strict=True):
        if deadline.expired:
            return None
        m, s = Fraction(mean), Fraction(sigma)
        precision = a / s**2 - b / t**2  # of the Gaussian curve
        centre = closed_forms.to_float((a * m / s**2 - b * n / t**2) / precision)
        peak = order * (math.log(w) - math.log(s)) - float(b) * log_q
        peak += 1e-14 * order * sum(abs(math.log(x)) for x in (w, s, v, t))  # what it may have lost
        rise = a * b * (m - n) ** 2 / (2 * s**2 * t**2 * precision)  # of the log of the curve at its centre
        drop = 2 * (max(peak + closed_forms.to_float(rise), 0.0) + extra)
        rounded_precision = closed_forms.to_float(precision)
        if math.isfinite(drop) and 1e-300 < rounded_precision < 1e300:
            half = math.sqrt(drop / rounded_precision)
        else:
            exact_drop = 2 * (max(Fraction(peak) + rise, Fraction(0)) + Fraction(extra))
            half = closed_forms.square_root_above(exact_drop / precision)
        half_width = max(half_width, (abs(centre) + half) * (1 + 1e-14))
    return half_width


def entropy(p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE) -> Estimate:
    """Differential entropy in nats, minus the integral of p log p."""
    return quantity_and_status("entropy", p, certified=certified, deadline=deadline)[0]


def mutual_information(
    prior: Pmf, sigma: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """I(X; X + N(0, sigma^2)) in nats for X distributed as ``prior``.

    The integrand is q sum pi_i (rho_i log rho_i - rho_i + 1), every term of which is non-negative, with all densities
    taken relative to the likeliest input: nothing cancels, however large or small the noise is.

    Where (range / sigma)^2 < 1e-14 the answer is half the variance over sigma^2, with the bounds proved in the kernel.
    """
    if len(prior) == 1:
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")
    if len(prior) > MAX_UNGROUPED and float(prior.values[-1] - prior.values[0]) / sigma >= _LEAST_GROUPED_RANGE:
        grouped = grouped_atoms(
            prior.values, prior.probabilities, sigma, radius=_GROUPING_RADIUS, tolerance=_GROUPING_TOLERANCE
        )
        if 2 * len(grouped.values) < len(prior):
            estimate = _information_of_nodes(prior, sigma, grouped, certified, deadline)
            if estimate is not None:
                return estimate
    output = prior.through_gaussian(sigma)
    return _information(output.weights, output.means, sigma, certified, deadline)


def _information(
    weights: FloatArray, values: FloatArray, sigma: float, certified: bool, deadline: Deadline
) -> Estimate:
    columns = (weights, values, np.array([sigma]))
    return estimate_and_status("information", columns, certified=certified, deadline=deadline)[0]


def _information_of_nodes(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, certified: bool, deadline: Deadline
) -> Estimate | None:
    """The information of the grouped prior, with the error proved above; None where that widens its bounds too much."""
    estimate = _information(grouped.weights, grouped.values, sigma, certified, deadline)
    value, lower, upper = float(estimate.value), float(estimate.lower), float(estimate.upper)
    prior_excess = validate.sum_gap(prior.probabilities)
    excess = validate.sum_gap(grouped.weights) + prior_excess
    extra = _grouping_error(prior, sigma, grouped, value, max(upper - value, value - lower), excess)
    extra += 2 * prior_excess * (value + excess)
    if extra > _MAX_WIDENING * value:
        return None
    method = f"{estimate.method}, {len(grouped.values)} nodes for {len(prior)} points"
    lower, upper = max(next_below(lower - extra), 0.0), next_above(upper + extra)
    return Estimate(value, lower, upper, kind=estimate.kind, unit="nats", method=method, cost=estimate.cost)


def _grouping_error(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, information: float, error: float, excess: float
) -> float:
    """A bound of what grouping does to the information, by the text above; ``excess`` is that of all masses."""
    centre = math.fsum((prior.probabilities * prior.values).tolist())

    def second_moment(x: FloatArray, w: FloatArray) -> float:
        with np.errstate(under="ignore"):
            return math.fsum((w * np.square((x - centre) / sigma)).tolist())

    eta = 1.01 * (grouped.error + 2 * excess)
    bound = eta * (information + error + 0.5)
    if float(prior.values[-1] - prior.values[0]) / sigma < _MAX_STANDARDISED_RANGE:
        before, after = second_moment(prior.values, prior.probabilities), second_moment(grouped.values, grouped.weights)
        moments = abs(after - before) + (16 * UNIT_ROUNDOFF + 2 * excess) * (after + before)
        divergence = max(0.5 * math.log1p(after) * (1 + 1e-15) - information, 0.0)  # D(r || g) for g normal
        divergence = divergence + error + 1e-15 * after / (1 + after)
        bound = min(bound, eta * (divergence + math.sqrt(2 * divergence)) + 0.5 * moments / (1 + after))
    return bound + eta * eta + _TAIL_ERROR
