"""Kullback-Leibler and Jensen-Shannon divergences of one-dimensional Gaussian mixtures.

Notation: p, q the densities, l = log(p/q), m = (p + q)/2, t = tanh(l/2).
"""

from __future__ import annotations

import math

from ...distributions import GaussianMixture
from ...estimate import Estimate
from . import component_bounds
from .quadrature import enclosed, integrate, mass_excess, rescaled, same, single

__all__ = ["jensen_shannon", "kl_divergence"]

_CERTAIN = 1e-3  # relative error up to which the closed bounds of the components can add nothing
_LOG_2_UP = math.nextafter(math.log(2.0), 1.0)


def kl_divergence(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: float = math.inf
) -> Estimate:
    """KL(P||Q) in nats.

    The integrand is p (l + expm1(-l)), which is never negative, so a small divergence costs no digits. For weights that
    sum to A and B it integrates to A KL(P/A||Q/B) + A log(A/B) + B - A; the bounds hold for the weights as they are and
    for those divided by their sums.
    """
    if same(p, q):
        return _zero()
    if single(p, q):
        from . import closed_form

        return closed_form.kl(p, q)
    _, (p, q) = rescaled(p, q)
    found = integrate("kl", p, q, certified=certified, deadline=deadline)
    if found is None:
        return _zero()
    value, error = normalised(p, q, found.sum, found.error)
    if error <= _CERTAIN * value:
        return enclosed(value, error, found, floor=0.0)
    found = found._replace(kind="certified")
    value, error = normalised(p, q, found.sum, found.error)
    lower, upper = component_bounds.kl_bounds(p, q, deadline=deadline)
    return enclosed(value, error, found, floor=lower, ceiling=upper)


def jensen_shannon(
    p: GaussianMixture, q: GaussianMixture, *, certified: bool = False, deadline: float = math.inf
) -> Estimate:
    """JS(P, Q) in nats; the integrand is m (t atanh(t) + log1p(-t^2)/2), which loses no digits at either end."""
    if same(p, q):
        return _zero()
    _, (p, q) = rescaled(p, q)
    found = integrate("js", p, q, certified=certified, deadline=deadline)
    if found is None:
        return _zero()
    gap = mass_excess(p), mass_excess(q)
    error = found.error + 2 * max(map(abs, gap)) * abs(found.sum) + (gap[0] - gap[1]) ** 2
    return enclosed(found.sum, error, found, floor=0.0, ceiling=_LOG_2_UP)


def normalised(p: GaussianMixture, q: GaussianMixture, total: float, error: float) -> tuple[float, float]:
    """KL(P/A||Q/B) from A KL(P/A||Q/B) + A log(A/B) + B - A; the error holds the difference from KL(P||Q) + B - A."""
    a, b = mass_excess(p), mass_excess(q)
    apart = (a - b) / (1.0 + b)
    extra = (1.0 + a) * math.log1p(apart) - (a - b) if abs(apart) > 1e-5 else apart * apart / 2
    value = max((total - extra) / (1.0 + a), 0.0)
    return value, error * (1 + 2 * abs(a)) + 2 * (abs(a) + abs(b)) * total + 2 * extra


def _zero() -> Estimate:
    return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal laws")
