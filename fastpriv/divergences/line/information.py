"""Differential entropy, and the mutual information between a discrete secret and its noisy release.

Notation: pi_i the prior of the point x_i, N_i the density of N(x_i, sigma^2), q = sum pi_i N_i, rho_i = N_i / q, so
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

# bounds: tested by enclosures/test_mixture_integrals - rounding of variance, of the closed form and of subnormal
#    results; enclosures/test_many_values - of the second moments, and room for what lies beyond 16 sigma

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ...distributions import GaussianMixture, Pmf
from ...distributions.grouping import GroupedAtoms, grouped_atoms
from ...estimate import Estimate
from .quadrature import enclosed, integrate, mass_excess, rescaled, single

__all__ = ["entropy", "mutual_information"]

FloatArray = NDArray[np.float64]
_LOG_2 = math.log(2.0)
# bound: tested by enclosures/test_mixture_integrals - where the first term of the expansion is the answer to rounding
_FAINT = 1e-7  # range / sigma below which the first term of the expansion is the answer to rounding
_MANY = 2048  # points beyond which they are grouped
_REACH = 16.0  # standard deviations, as above
_FARTHEST = 1e100  # standard deviations, whose squares do not overflow
# bound: none - asked of the grouping, which says what it reaches
_GROUPING = 4e-14
# bound: none - relative; answers that grouping would widen more are summed over all points
_WIDENING = 1e-12
# bound: proved - what lies beyond the reach, e^-128 times the logarithm of a density, which is below e^10
_BEYOND = 1e-50


def entropy(p: GaussianMixture, *, certified: bool = False, deadline: float = math.inf) -> Estimate:
    """Differential entropy in nats, minus the integral of p log p."""
    if single(p):
        from . import closed_form

        return closed_form.entropy(p)
    k, (p,) = rescaled(p)
    found = integrate("entropy", p, None, certified=certified, deadline=deadline)
    assert found is not None
    value = found.sum + k * _LOG_2 * math.fsum(p.weights.tolist())
    error = found.error + 4 * math.ulp(k * _LOG_2) + 1.1 * abs(mass_excess(p)) * (1.0 + abs(value))
    return enclosed(value, error, found)


def mutual_information(
    prior: Pmf, sigma: float, *, certified: bool = False, deadline: float = math.inf
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
    if span < _FAINT:
        return _faint(prior, sigma, span * span)
    if len(prior) > _MANY:
        grouped = grouped_atoms(prior.values, prior.probabilities, sigma, reach=_REACH, tolerance=_GROUPING)
        if 2 * len(grouped.values) < len(prior):
            found = _of_nodes(prior, sigma, grouped, certified, deadline)
            if found is not None:
                return found
    return _summed(prior, prior.through_gaussian(sigma), certified, deadline, lambda value, error, gap: 0.0)


def _summed(
    prior: Pmf, law: GaussianMixture, certified: bool, deadline: float,
    moved: Callable[[float, float, float], float],
) -> Estimate:  # fmt: skip
    """The integral, with what ``moved`` says of its value, error and missing mass added to the error."""
    nodes = len(law)
    _, (law,) = rescaled(law)
    found = integrate("information", None, law, certified=certified, deadline=deadline)
    assert found is not None
    gap = abs(mass_excess(law))
    error = found.error + 2 * gap * (found.sum + gap)
    if nodes != len(prior):
        found = found._replace(method=f"{found.method}, {nodes} nodes for {len(prior)} points")
    error += moved(found.sum, error, gap)
    return enclosed(found.sum, error, found, floor=0.0, ceiling=_entropy_above(prior))


def _of_nodes(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, certified: bool, deadline: float
) -> Estimate | None:
    """The answer by the text above; None where that widens its bounds too much."""
    missing = _validate.sum_gap(prior.probabilities)
    wide = False

    def moved(value: float, error: float, gap: float) -> float:
        nonlocal wide
        more = _moved(prior, sigma, grouped, value, error, gap + missing) + 2 * missing * (value + gap + missing)
        wide = more > _WIDENING * value
        return more

    found = _summed(prior, GaussianMixture(grouped.weights, grouped.values, sigma), certified, deadline, moved)
    return None if wide else found


def _moved(
    prior: Pmf, sigma: float, grouped: GroupedAtoms, information: float, error: float, gap: float
) -> float:
    """A bound of what grouping does to the information, by the text above."""
    centre = math.fsum((prior.probabilities * prior.values).tolist())

    def second(x: FloatArray, w: FloatArray) -> float:
        with np.errstate(under="ignore"):
            return math.fsum((w * np.square((x - centre) / sigma)).tolist())

    eta = 1.01 * (grouped.error + 2 * gap)
    found = eta * (information + error + 0.5)
    if float(prior.values[-1] - prior.values[0]) / sigma < _FARTHEST:
        before, after = second(prior.values, prior.probabilities), second(grouped.values, grouped.weights)
        moments = abs(after - before) + (16 * 2.0**-53 + 2 * gap) * (after + before)
        excess = max(0.5 * math.log1p(after) * (1 + 1e-15) - information, 0.0) + error + 1e-15 * after / (1 + after)
        normal = eta * (excess + math.sqrt(2 * excess)) + 0.5 * moments / (1 + after)
        found = min(found, normal)
    return found + eta * eta + _BEYOND


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
