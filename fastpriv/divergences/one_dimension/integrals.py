"""KL, Jensen-Shannon and Renyi divergences, entropy and mutual information in one dimension, by quadrature.

Notation: p, q the densities of P and Q, l = log(p/q), m = (p + q)/2, t = tanh(l/2); a the order, b = a - 1, J the log
of the integral of p^a q^(1-a), so that D_a(P||Q) = J / b.

Mutual information of a discrete input X and X + noise: pi_i the prior of the point x_i, N_i the density of N(x_i, sigma^2), q = sum pi_i N_i, rho_i = N_i / q, so
that the posterior of x_i is pi_i rho_i.

Many points are grouped (``distributions/grouping.py``): nodes of density r stand for them, |r / q - 1| <= eta up to
16 sigma from the nearest point. Both informations are the entropy of the release less that of the noise, hence

    I(q) - I(r) = integral (r - q) log(r / g) + integral (r - q) log g - D(q || r)

for any density g. The last term is at most eta^2. With g the constant 1 / sqrt(2 pi) of the density in units of sigma,
which r does not exceed, the second vanishes, and the first is at most eta (I(r) + 1/2). With g normal, of any centre
and of variance s^2, the second is half the difference of the second moments over s^2, and the first at most eta times
integral r |log(r / g)| <= D + sqrt(2 D), D = D(r || g): its negative part is at most the total variation, sqrt(D / 2)
(Barron 1986). If s^2 is 1 plus the second moment of the nodes, D = log(s^2) / 2 - I(r), which is small against I(r)
where the noise is strong. Beyond 16 sigma there is less than e^-128 of either.
"""

# bounds: tested by enclosures/test_integrals, properties/test_renyi_below_one, enclosures/test_mixture_integrals,
#    enclosures/test_many_values - rounding of closed forms, of variances and second moments, of subnormal results
#    and of bounds from pairs; room for what lies beyond 16 sigma

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...distributions import GaussianMixture, Pmf
from ...distributions.pmf import GroupedAtoms, grouped_atoms
from ...errors import DomainError
from ...estimate import Estimate
from ...kernels import _quadrature
from . import closed_forms
from .quadrature import (
    NO_DEADLINE,
    STOPPED,
    TIME_SPENT,
    Deadline,
    Integral,
    all_single_gaussians,
    enclosing_estimate,
    identical,
    integrate,
    kernel_arrays,
    mass_excess,
    rescaled,
)  # fmt: skip

__all__ = ["entropy", "jensen_shannon", "kl_divergence", "mutual_information", "renyi_divergence"]

FloatArray = NDArray[np.float64]
_LOG_2 = math.log(2.0)
# bound: tested by enclosures/test_mixture_integrals - where the first term of the expansion is the answer to rounding
_LOW_SIGNAL = 1e-7  # range / sigma below which the first term of the expansion is the answer to rounding
_MAX_UNGROUPED = 2048  # points beyond which they are grouped
_GROUPING_RADIUS = 16.0  # standard deviations, as above
_MAX_STANDARDISED_RANGE = 1e100  # standard deviations, whose squares do not overflow
# bound: none - asked of the grouping, which says what it reaches
_GROUPING_TOLERANCE = 4e-14
# bound: none - relative; answers that grouping would widen more are summed over all points
_MAX_WIDENING = 1e-12
# bound: proved - what lies beyond the reach, e^-128 times the logarithm of a density, which is below e^10
_TAIL_ERROR = 1e-50
_MAX_RELATIVE_ERROR = 1e-3  # relative error up to which the closed bounds of the components can add nothing
_LOG_2_UP = math.nextafter(math.log(2.0), 1.0)
# bound: none - orders beyond it are refused
_MAX_ORDER = 1e300
_SMALL_LOG_INTEGRAL = 0.5  # below this J is taken from the integral of p^a q^(1-a) + b q - a p
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_MAX_RELATIVE_ERROR = 1e-3  # relative error up to which the integral is its sum, and not only bounded
_MAX_HALF_WIDTH = 1e305  # half-width of the widest panel tree


def kl_divergence(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """KL(P||Q) in nats.

    The integrand is p (l + expm1(-l)), which is never negative, so a small divergence costs no digits. For weights that
    sum to A and B it integrates to A KL(P/A||Q/B) + A log(A/B) + B - A; the bounds hold for the weights as they are and
    for those divided by their sums.
    """
    if identical(p, q):
        return _equal_distributions()
    if all_single_gaussians(p, q):

        return closed_forms.gaussian_kl(p, q)
    _, (p, q) = rescaled(p, q)
    found = integrate("kl", p, q, certified=certified, deadline=deadline)
    if found is None:
        return _equal_distributions()
    value, error = normalised_kl(p, q, found.sum, found.error)
    if error <= _MAX_RELATIVE_ERROR * value:
        return enclosing_estimate(value, error, found, floor=0.0)
    found = found._replace(kind="certified")
    value, error = normalised_kl(p, q, found.sum, found.error)
    lower, upper = closed_forms.kl_bounds(p, q, deadline=deadline)
    return enclosing_estimate(value, error, found, floor=lower, ceiling=upper)


def jensen_shannon(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """JS(P, Q) in nats; the integrand is m (t atanh(t) + log1p(-t^2)/2), which loses no digits at either end."""
    if identical(p, q):
        return _equal_distributions()
    _, (p, q) = rescaled(p, q)
    found = integrate("js", p, q, certified=certified, deadline=deadline)
    if found is None:
        return _equal_distributions()
    gap = mass_excess(p), mass_excess(q)
    error = found.error + 2 * max(map(abs, gap)) * abs(found.sum) + (gap[0] - gap[1]) ** 2
    return enclosing_estimate(found.sum, error, found, floor=0.0, ceiling=_LOG_2_UP)


def normalised_kl(p: GaussianMixture, q: GaussianMixture, total: float, error: float) -> tuple[float, float]:
    """KL(P/A||Q/B) from A KL(P/A||Q/B) + A log(A/B) + B - A; the error holds the difference from KL(P||Q) + B - A."""
    a, b = mass_excess(p), mass_excess(q)
    apart = (a - b) / (1.0 + b)
    extra = (1.0 + a) * math.log1p(apart) - (a - b) if abs(apart) > 1e-5 else apart * apart / 2
    value = max((total - extra) / (1.0 + a), 0.0)
    return value, error * (1 + 2 * abs(a)) + 2 * (abs(a) + abs(b)) * total + 2 * extra


def _equal_distributions() -> Estimate:
    return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal distributions")


def renyi_divergence(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """D_order(P||Q) in nats, P and Q scaled to mass 1 (weights may miss it by their rounding).

    The mass of p^a q^(1-a) may lie far outside both laws; the panels follow the bounds of that product, not the
    components. Infinite exactly when the order exceeds 1 and a / s^2 < (a - 1) / t^2 for the largest standard
    deviations s of P and t of Q, decided in rational arithmetic; for equality see ``_tail_behaviour``.
    """
    if order == 1.0:
        return kl_divergence(p, q, certified=certified, deadline=deadline)
    if identical(p, q):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal distributions")
    tails = _tail_behaviour(p, q, order) if order > 1.0 else "finite"
    if tails == "infinite":
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
    if tails == "edge":
        return _renyi_at_tail_boundary(p, q, order, certified=certified, deadline=deadline)
    if all_single_gaussians(p, q):
        return closed_forms.gaussian_renyi(p, q, order)
    if order > _MAX_ORDER:
        raise DomainError(
            f"order must be at most {_MAX_ORDER:g} for several components; got {order!r}. Take that one: the "
            "divergence is the same to all digits."
        )
    _, (p, q) = rescaled(p, q)
    half_width = _half_width(p, q, order, deadline) if order > 1.0 else 0.0
    if half_width is None:
        method = "no bounds" + TIME_SPENT
        return Estimate(0.0, 0.0, math.inf, kind="certified", unit="nats", method=method, cost=STOPPED)
    # J is symmetric under a -> 1 - a with P and Q exchanged; b is then exact and at least -1/2
    first, second, b = (q, p, -order) if order < 0.5 else (p, q, order - 1.0)
    found = integrate("renyi", first, second, certified=certified, b=b, half_width=half_width, deadline=deadline)
    assert found is not None
    gap_p, gap_q = (math.fsum([*law.weights.tolist(), -1.0]) for law in (p, q))
    normal = (order - 1.0) * math.log1p(gap_q) - order * math.log1p(gap_p)
    divisor = order - 1.0
    if not found.error <= _MAX_RELATIVE_ERROR * found.sum:
        return _renyi_from_panel_bounds(p, q, order, half_width, normal, found, deadline)
    log_integral = found.scale + math.log(found.sum) + normal
    error = _log_error(found) + 4 * _UNIT * abs(normal)
    if abs(log_integral) < _SMALL_LOG_INTEGRAL:
        small = integrate("renyi small", first, second, certified=certified, b=b, half_width=half_width, deadline=deadline)
        if small is None:
            return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal distributions")
        if "stopped" in small.cost:  # the first integral is done, and tells more than a part of this one
            found = found._replace(method=found.method + TIME_SPENT, cost={**found.cost, **STOPPED})
        else:
            found = small
            log_integral = math.log1p(found.sum)
            gap = (order + 1.0) * (abs(gap_p) + abs(gap_q))
            error = found.error / (1.0 + min(0.0, found.sum - found.error)) + gap * (2 * abs(found.sum) + gap)
    value = log_integral / divisor
    return enclosing_estimate(value, error / abs(divisor), found, floor=0.0)


def _renyi_from_panel_bounds(
    p: GaussianMixture, q: GaussianMixture, order: float, half_width: float, normal: float, found: Integral,
    deadline: Deadline,
) -> Estimate:  # fmt: skip
    """From bounds of p^(1 + b) q^(-b) on panels, where rounding leaves no digit of the integral; J is so large there
    that they leave most digits of its logarithm."""
    divisor = order - 1.0
    first, second, b = (q, p, -order) if order < 0.5 else (p, q, divisor)
    lower, upper, panels = _quadrature.renyi_bounds(kernel_arrays(first), kernel_arrays(second), b, min(half_width, _MAX_HALF_WIDTH), deadline.at)
    upper = upper + 1e-13 if half_width <= _MAX_HALF_WIDTH else math.inf  # and what lies beyond the root
    if found.sum > 0 and math.isfinite(found.error):
        upper = min(upper, found.scale + math.log(found.sum + found.error) + 4 * _UNIT * abs(found.scale))
        if found.error < found.sum:
            lower = max(lower, found.scale + math.log(found.sum - found.error) - 4 * _UNIT * abs(found.scale))
    ends = sorted((end + normal) / divisor for end in (lower, upper))
    low, high = ends[0] - 4 * _UNIT * abs(ends[0]), ends[1] + 4 * _UNIT * abs(ends[1])
    low, high = min(max(low, 0.0), sys.float_info.max), max(high, 0.0)
    if not high < math.inf:
        low, high = max(low, closed_forms.renyi_lower_bound(p, q, order, deadline=deadline)), math.inf
    value = low + 0.5 * (high - low) if math.isfinite(high) else (low if low < sys.float_info.max else math.inf)
    cost: dict[str, Any] = {"panels": panels + found.cost["panels"], "evaluations": found.cost["evaluations"]}
    method = "bounds on panels"
    if deadline.expired:
        method, cost = method + TIME_SPENT, cost | STOPPED
    return Estimate(value, low, high, kind="certified", unit="nats", method=method, cost=cost)


def _log_error(found: Integral) -> float:
    relative = found.error / found.sum
    return -math.log1p(-relative) + 4 * _UNIT * abs(found.scale) if relative < 1.0 else math.inf


def _tail_behaviour(p: GaussianMixture, q: GaussianMixture, order: float) -> str:
    """Whether p^a q^(1-a) has a finite integral, for an order above 1: "finite", "infinite" or "edge".

    On the edge a / s^2 = (a - 1) / t^2 the squares in the exponent cancel, and a / s^2 (m - n) x is left of it, m and n
    the outermost means of the widest components on the side of x: finite if those of q lie strictly outside on both.
    """
    a, s, t = Fraction(order), Fraction(float(p.sigmas.max())), Fraction(float(q.sigmas.max()))
    gap = a * t * t - (a - 1) * s * s
    if gap:
        return "finite" if gap > 0 else "infinite"
    inner, outer = p.means[p.sigmas == p.sigmas.max()], q.means[q.sigmas == q.sigmas.max()]
    return "edge" if outer.min() < inner.min() and inner.max() < outer.max() else "infinite"


def _renyi_at_tail_boundary(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool, deadline: Deadline
) -> Estimate:
    """A divergence is no less than that of a smaller order (van Erven and Harremoes 2014, theorem 3), and near it here;
    nothing is proved of the other side."""
    near = renyi_divergence(p, q, order * (1.0 - 2.0**-48), certified=certified, deadline=deadline)
    method = f"{near.method}, of the order less 2^-48 of itself"
    return Estimate(near.value, near.lower, math.inf, kind=near.kind, unit="nats", method=method, cost=near.cost)


def _half_width(p: GaussianMixture, q: GaussianMixture, order: float, deadline: Deadline) -> float | None:
    """Half-width that leaves out at most e^-750 of the integral, for an order above 1; None at the ``deadline``.

    p^a <= k^(a-1) sum (w_i N_i)^a and q is at least its widest component; each product is a normal curve, and J >= 0.
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
        rate = a / s**2 - b / t**2
        centre = closed_forms.to_float((a * m / s**2 - b * n / t**2) / rate)
        peak = order * (math.log(w) - math.log(s)) - float(b) * log_q
        top = a * b * (m - n) ** 2 / (2 * s**2 * t**2 * rate)
        spread, width = 2 * (max(peak + closed_forms.to_float(top), 0.0) + extra), closed_forms.to_float(rate)
        if math.isfinite(spread) and 1e-300 < width < 1e300:
            half = math.sqrt(spread / width)
        else:
            half = closed_forms.square_root_above((2 * (max(Fraction(peak) + top, Fraction(0)) + Fraction(extra))) / rate)
        half_width = max(half_width, abs(centre) + half)
    return half_width


def entropy(p: GaussianMixture, *, certified: bool = False, deadline: Deadline = NO_DEADLINE) -> Estimate:
    """Differential entropy in nats, minus the integral of p log p."""
    if all_single_gaussians(p):

        return closed_forms.gaussian_entropy(p)
    k, (p,) = rescaled(p)
    found = integrate("entropy", p, None, certified=certified, deadline=deadline)
    assert found is not None
    value = found.sum + k * _LOG_2 * math.fsum(p.weights.tolist())
    error = found.error + 4 * math.ulp(k * _LOG_2) + 1.1 * abs(mass_excess(p)) * (1.0 + abs(value))
    return enclosing_estimate(value, error, found)


def mutual_information(
    prior: Pmf, sigma: float, *, certified: bool = False, deadline: Deadline = NO_DEADLINE
) -> Estimate:
    """I(X; X + N(0, sigma^2)) in nats for X of the law ``prior``.

    The integrand is q sum pi_i (rho_i log rho_i - rho_i + 1), every term of which is non-negative, with all densities
    taken relative to the likeliest input: nothing cancels, whether the noise drowns the secret or hardly touches it.

    Where (range / sigma)^2 < 1e-14 the answer is half the variance over sigma^2, v/2: dI/d(1/sigma^2) is half the mean
    square error of the best estimate (Guo, Shamai and Verdu 2005), which starts at the variance and falls no faster
    than v range^2 / 4, so that v/2 (1 - (range / sigma)^2 / 8) <= I <= v/2.
    """
    if len(prior) == 1:
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="one input")
    span = float(prior.values[-1] - prior.values[0]) / sigma
    if span < _LOW_SIGNAL:
        return _low_signal_information(prior, sigma, span * span)
    if len(prior) > _MAX_UNGROUPED:
        grouped = grouped_atoms(prior.values, prior.probabilities, sigma, reach=_GROUPING_RADIUS, tolerance=_GROUPING_TOLERANCE)
        if 2 * len(grouped.values) < len(prior):
            found = _information_of_nodes(prior, sigma, grouped, certified, deadline)
            if found is not None:
                return found
    return _information_of_atoms(prior, prior.through_gaussian(sigma), certified, deadline, lambda value, error, gap: 0.0)


def _information_of_atoms(
    prior: Pmf, law: GaussianMixture, certified: bool, deadline: Deadline,
    extra_error: Callable[[float, float, float], float],
) -> Estimate:  # fmt: skip
    """The integral, with what ``extra_error`` says of its value, error and missing mass added to the error."""
    nodes = len(law)
    _, (law,) = rescaled(law)
    found = integrate("information", None, law, certified=certified, deadline=deadline)
    assert found is not None
    gap = abs(mass_excess(law))
    error = found.error + 2 * gap * (found.sum + gap)
    if nodes != len(prior):
        found = found._replace(method=f"{found.method}, {nodes} nodes for {len(prior)} points")
    error += extra_error(found.sum, error, gap)
    return enclosing_estimate(found.sum, error, found, floor=0.0, ceiling=_entropy_above(prior))


def _information_of_nodes(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, certified: bool, deadline: Deadline
) -> Estimate | None:
    """The answer by the text above; None where that widens its bounds too much."""
    missing = _validate.sum_gap(prior.probabilities)
    wide = False

    def extra_error(value: float, error: float, gap: float) -> float:
        nonlocal wide
        more = _grouping_error(prior, sigma, grouped, value, error, gap + missing) + 2 * missing * (value + gap + missing)
        wide = more > _MAX_WIDENING * value
        return more

    found = _information_of_atoms(prior, GaussianMixture(grouped.weights, grouped.values, sigma), certified, deadline, extra_error)
    return None if wide else found


def _grouping_error(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, information: float, error: float, gap: float
) -> float:
    """A bound of what grouping does to the information, by the text above."""
    centre = math.fsum((prior.probabilities * prior.values).tolist())

    def second(x: FloatArray, w: FloatArray) -> float:
        with np.errstate(under="ignore"):
            return math.fsum((w * np.square((x - centre) / sigma)).tolist())

    eta = 1.01 * (grouped.error + 2 * gap)
    found = eta * (information + error + 0.5)
    if float(prior.values[-1] - prior.values[0]) / sigma < _MAX_STANDARDISED_RANGE:
        before, after = second(prior.values, prior.probabilities), second(grouped.values, grouped.weights)
        moments = abs(after - before) + (16 * 2.0**-53 + 2 * gap) * (after + before)
        excess = max(0.5 * math.log1p(after) * (1 + 1e-15) - information, 0.0) + error + 1e-15 * after / (1 + after)
        normal = eta * (excess + math.sqrt(2 * excess)) + 0.5 * moments / (1 + after)
        found = min(found, normal)
    return found + eta * eta + _TAIL_ERROR


def _entropy_above(prior: Pmf) -> float:
    """An upper bound of the entropy of a discrete law."""
    terms = (-prior.probabilities * np.log(prior.probabilities)).tolist()
    return math.fsum(terms) * (1 + 8 * 2.0**-52) + 2 * abs(math.fsum([*prior.probabilities.tolist(), -1.0]))


def _low_signal_information(prior: Pmf, sigma: float, squared_span: float) -> Estimate:
    """Half the signal-to-noise ratio; the centre need not be the exact mean, which is the best one."""
    centre = math.fsum(prior.probabilities * prior.values)
    with np.errstate(under="ignore"):
        value = 0.5 * math.fsum(prior.probabilities * np.square((prior.values - centre) / sigma))
    gap = prior.through_gaussian(sigma).mass_gap
    # centre and variance by sums of n roundings of the largest size
    off = (len(prior) + 8) * 2.0**-53 * max(abs(prior.values[0]), abs(prior.values[-1])) / sigma
    rounding = 10 * 2.0**-53 * value + 5e-323 + 2 * gap * (value + gap)
    lower, upper = value * (1 - squared_span / 8) - rounding - off * off, value + rounding
    method = "half the variance over that of the noise"
    return Estimate(value, max(lower, 0.0), upper, kind="certified", unit="nats", method=method)
