"""Renyi divergences of one-dimensional Gaussian mixtures.

Notation: a the order, b = a - 1, J = log of the integral of p^a q^(1-a), so that D_a(P||Q) = J / b.
"""

# bounds: tested by enclosures/test_integrals, properties/test_renyi_below_one - rounding of closed forms and of
#    bounds from pairs

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

from ...distributions import GaussianMixture
from ...errors import DomainError
from ...estimate import Estimate
from ...kernels import _quadrature
from . import closed_form, component_bounds
from .kl import kl_divergence
from .quadrature import STOPPED, TIME_SPENT, Integral, arrays, enclosed, integrate, late, rescaled, same, single

__all__ = ["renyi_divergence"]

# bound: none - orders beyond it are refused
_MOST_ORDER = 1e300
_SMALL = 0.5  # below this J is taken from the integral of p^a q^(1-a) + b q - a p
# bound: proved - half a unit in the last place of a double, IEEE 754
_UNIT = 2.0**-53
_CERTAIN = 1e-3  # relative error up to which the integral is its sum, and not only bounded
_FARTHEST = 1e305  # half-width of the widest root


def renyi_divergence(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool = False, deadline: float = math.inf
) -> Estimate:
    """D_order(P||Q) in nats, P and Q scaled to mass 1 (weights may miss it by their rounding).

    The mass of p^a q^(1-a) may lie far outside both laws; the panels follow the bounds of that product, not the
    components. Infinite exactly when the order exceeds 1 and a / s^2 < (a - 1) / t^2 for the largest standard
    deviations s of P and t of Q, decided in rational arithmetic; for equality see ``_tails``.
    """
    if order == 1.0:
        return kl_divergence(p, q, certified=certified, deadline=deadline)
    if same(p, q):
        return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal laws")
    tails = _tails(p, q, order) if order > 1.0 else "finite"
    if tails == "infinite":
        return Estimate(math.inf, math.inf, math.inf, kind="exact", unit="nats", method="tails")
    if tails == "edge":
        return _on_the_edge(p, q, order, certified=certified, deadline=deadline)
    if single(p, q):
        return closed_form.renyi(p, q, order)
    if order > _MOST_ORDER:
        raise DomainError(
            f"order must be at most {_MOST_ORDER:g} for several components; got {order!r}. Take that one: the "
            "divergence is the same to all digits."
        )
    _, (p, q) = rescaled(p, q)
    reach = _reach(p, q, order, deadline) if order > 1.0 else 0.0
    if reach is None:
        method = "no bounds" + TIME_SPENT
        return Estimate(0.0, 0.0, math.inf, kind="certified", unit="nats", method=method, cost=STOPPED)
    # J is symmetric under a -> 1 - a with P and Q exchanged; b is then exact and at least -1/2
    first, second, b = (q, p, -order) if order < 0.5 else (p, q, order - 1.0)
    found = integrate("renyi", first, second, certified=certified, b=b, reach=reach, deadline=deadline)
    assert found is not None
    gap_p, gap_q = (math.fsum([*law.weights.tolist(), -1.0]) for law in (p, q))
    normal = (order - 1.0) * math.log1p(gap_q) - order * math.log1p(gap_p)
    divisor = order - 1.0
    if not found.error <= _CERTAIN * found.sum:
        return _far_apart(p, q, order, reach, normal, found, deadline)
    log_integral = found.scale + math.log(found.sum) + normal
    error = _log_error(found) + 4 * _UNIT * abs(normal)
    if abs(log_integral) < _SMALL:
        small = integrate("renyi small", first, second, certified=certified, b=b, reach=reach, deadline=deadline)
        if small is None:
            return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal laws")
        if "stopped" in small.cost:  # the first integral is done, and tells more than a part of this one
            found = found._replace(method=found.method + TIME_SPENT, cost={**found.cost, **STOPPED})
        else:
            found = small
            log_integral = math.log1p(found.sum)
            gap = (order + 1.0) * (abs(gap_p) + abs(gap_q))
            error = found.error / (1.0 + min(0.0, found.sum - found.error)) + gap * (2 * abs(found.sum) + gap)
    value = log_integral / divisor
    return enclosed(value, error / abs(divisor), found, floor=0.0)


def _far_apart(
    p: GaussianMixture, q: GaussianMixture, order: float, reach: float, normal: float, found: Integral,
    deadline: float,
) -> Estimate:  # fmt: skip
    """From bounds of p^(1 + b) q^(-b) on panels, where rounding leaves no digit of the integral; J is so large there
    that they leave most digits of its logarithm."""
    divisor = order - 1.0
    first, second, b = (q, p, -order) if order < 0.5 else (p, q, divisor)
    lower, upper, panels = _quadrature.renyi_bounds(arrays(first), arrays(second), b, min(reach, _FARTHEST), deadline)
    upper = upper + 1e-13 if reach <= _FARTHEST else math.inf  # and what lies beyond the root
    if found.sum > 0 and math.isfinite(found.error):
        upper = min(upper, found.scale + math.log(found.sum + found.error) + 4 * _UNIT * abs(found.scale))
        if found.error < found.sum:
            lower = max(lower, found.scale + math.log(found.sum - found.error) - 4 * _UNIT * abs(found.scale))
    ends = sorted((end + normal) / divisor for end in (lower, upper))
    low, high = ends[0] - 4 * _UNIT * abs(ends[0]), ends[1] + 4 * _UNIT * abs(ends[1])
    low, high = min(max(low, 0.0), sys.float_info.max), max(high, 0.0)
    if not high < math.inf:
        low, high = max(low, component_bounds.renyi_lower_bound(p, q, order, deadline=deadline)), math.inf
    value = low + 0.5 * (high - low) if math.isfinite(high) else (low if low < sys.float_info.max else math.inf)
    cost: dict[str, Any] = {"panels": panels + found.cost["panels"], "evaluations": found.cost["evaluations"]}
    method = "bounds on panels"
    if late(deadline):
        method, cost = method + TIME_SPENT, cost | STOPPED
    return Estimate(value, low, high, kind="certified", unit="nats", method=method, cost=cost)


def _log_error(found: Integral) -> float:
    relative = found.error / found.sum
    return -math.log1p(-relative) + 4 * _UNIT * abs(found.scale) if relative < 1.0 else math.inf


def _tails(p: GaussianMixture, q: GaussianMixture, order: float) -> str:
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


def _on_the_edge(
    p: GaussianMixture, q: GaussianMixture, order: float, *, certified: bool, deadline: float
) -> Estimate:
    """A divergence is no less than that of a smaller order (van Erven and Harremoes 2014, theorem 3), and near it here;
    nothing is proved of the other side."""
    near = renyi_divergence(p, q, order * (1.0 - 2.0**-48), certified=certified, deadline=deadline)
    method = f"{near.method}, of the order less 2^-48 of itself"
    return Estimate(near.value, near.lower, math.inf, kind=near.kind, unit="nats", method=method, cost=near.cost)


def _reach(p: GaussianMixture, q: GaussianMixture, order: float, deadline: float) -> float | None:
    """Half-width that leaves out at most e^-750 of the integral, for an order above 1; None at the ``deadline``.

    p^a <= k^(a-1) sum (w_i N_i)^a and q is at least its widest component; each product is a normal curve, and J >= 0.
    """
    a, b = Fraction(order), Fraction(order) - 1
    widest = max(range(len(q)), key=lambda j: (q.sigmas[j], q.weights[j]))
    v, n, t = (Fraction(float(column[widest])) for column in (q.weights, q.means, q.sigmas))
    log_q = math.log(v) - math.log(t)
    reach = 0.0
    extra = 800.0 + float(b) * math.log(len(p))
    for w, mean, sigma in zip(p.weights.tolist(), p.means.tolist(), p.sigmas.tolist(), strict=True):
        if late(deadline):
            return None
        m, s = Fraction(mean), Fraction(sigma)
        rate = a / s**2 - b / t**2
        centre = closed_form.to_float((a * m / s**2 - b * n / t**2) / rate)
        peak = order * (math.log(w) - math.log(s)) - float(b) * log_q
        top = a * b * (m - n) ** 2 / (2 * s**2 * t**2 * rate)
        spread, width = 2 * (max(peak + closed_form.to_float(top), 0.0) + extra), closed_form.to_float(rate)
        if math.isfinite(spread) and 1e-300 < width < 1e300:
            half = math.sqrt(spread / width)
        else:
            half = closed_form.root((2 * (max(Fraction(peak) + top, Fraction(0)) + Fraction(extra))) / rate)
        reach = max(reach, abs(centre) + half)
    return reach

