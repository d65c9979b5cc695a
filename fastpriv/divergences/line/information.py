"""Differential entropy, and the mutual information between a discrete secret and its noisy release.

Notation: pi_i the prior of the point x_i, N_i the density of N(x_i, sigma^2), q = sum pi_i N_i, rho_i = N_i / q, so
that the posterior of x_i is pi_i rho_i.
"""

# bounds: tested by enclosures/test_mixture_integrals - rounding of variance, of the closed form and of subnormal
#    results

from __future__ import annotations

import math

import numpy as np

from ...distributions import GaussianMixture, Pmf
from ...estimate import Estimate
from .quadrature import enclosed, integrate, mass_excess, rescaled, single

__all__ = ["entropy", "mutual_information"]

_LOG_2 = math.log(2.0)
# bound: tested by enclosures/test_mixture_integrals - where the first term of the expansion is the answer to rounding
_FAINT = 1e-7  # range / sigma below which the first term of the expansion is the answer to rounding


def entropy(p: GaussianMixture, *, certified: bool = False) -> Estimate:
    """Differential entropy in nats, minus the integral of p log p."""
    if single(p):
        from . import closed_form

        return closed_form.entropy(p)
    k, (p,) = rescaled(p)
    found = integrate("entropy", p, None, certified=certified)
    assert found is not None
    value = found.sum + k * _LOG_2 * math.fsum(p.weights.tolist())
    error = found.error + 4 * math.ulp(k * _LOG_2) + 1.1 * abs(mass_excess(p)) * (1.0 + abs(value))
    return enclosed(value, error, found)


def mutual_information(prior: Pmf, sigma: float, *, certified: bool = False) -> Estimate:
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
    if span < _FAINT:
        return _faint(prior, sigma, span * span)
    _, (law,) = rescaled(prior.through_gaussian(sigma))
    found = integrate("information", None, law, certified=certified)
    assert found is not None
    gap = abs(mass_excess(law))
    error = found.error + 2 * gap * (found.sum + gap)
    return enclosed(found.sum, error, found, floor=0.0, ceiling=_entropy_above(prior))


def _entropy_above(prior: Pmf) -> float:
    """An upper bound of the entropy of a discrete law."""
    terms = (-prior.probabilities * np.log(prior.probabilities)).tolist()
    return math.fsum(terms) * (1 + 8 * 2.0**-52) + 2 * abs(math.fsum([*prior.probabilities.tolist(), -1.0]))


def _faint(prior: Pmf, sigma: float, squared_span: float) -> Estimate:
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
