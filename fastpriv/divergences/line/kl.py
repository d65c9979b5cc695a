"""Kullback-Leibler and Jensen-Shannon divergences of one-dimensional Gaussian mixtures.

Notation: p, q the densities, l = log(p/q), m = (p + q)/2, t = tanh(l/2).
"""

from __future__ import annotations

import math

from ...distributions import GaussianMixture
from ...estimate import Estimate
from .quadrature import enclosed, integrate, rescaled, same, single

__all__ = ["jensen_shannon", "kl_divergence"]


def kl_divergence(p: GaussianMixture, q: GaussianMixture, *, certified: bool = False) -> Estimate:
    """KL(P||Q) in nats.

    The integrand is p (l + expm1(-l)), which is never negative, so a small divergence costs no digits; for weights that
    sum to 1 only up to rounding this is KL(P||Q) + Q(R) - P(R). A larger gap of the weights (below 1e-9) widens the
    bounds.
    """
    if same(p, q):
        return _zero()
    if single(p, q):
        from . import closed_form

        return closed_form.kl(p, q)
    _, (p, q) = rescaled(p, q)
    found = integrate("kl", p, q, certified=certified)
    if found is None:
        return _zero()
    gap = p.mass_gap + q.mass_gap
    return enclosed(found.sum, found.error + 2 * gap * (abs(found.sum) + gap), found, floor=0.0)


def jensen_shannon(p: GaussianMixture, q: GaussianMixture, *, certified: bool = False) -> Estimate:
    """JS(P, Q) in nats; the integrand is m (t atanh(t) + log1p(-t^2)/2), which loses no digits at either end."""
    if same(p, q):
        return _zero()
    _, (p, q) = rescaled(p, q)
    found = integrate("js", p, q, certified=certified)
    if found is None:
        return _zero()
    gap = p.mass_gap + q.mass_gap
    error = found.error + 2 * gap * (abs(found.sum) + gap)
    return enclosed(found.sum, error, found, floor=0.0, ceiling=math.nextafter(math.log(2.0), 1.0))


def _zero() -> Estimate:
    return Estimate(0.0, 0.0, 0.0, kind="exact", unit="nats", method="equal laws")
