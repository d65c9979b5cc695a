"""From local mutual-information privacy to local differential privacy (LDP) and local information privacy (LIP).

CI-LMIP to LDP: mu bounds the capacity of the mechanism, sup over priors of I(X; M(X)); p0 and p1 are the probabilities
of one event under two inputs. Equation (10) of Ngo, Oestman and Graell i Amat, On local mutual-information privacy,

    delta(epsilon) = max of p1 - e^epsilon p0 subject to C_BAC(p0, 1 - p1) <= mu,

is tight: some mechanism with mu-CI-LMIP attains it, if two inputs can be chosen; ``special.ci_lmip_ldp_high`` is its
p1, ``special.ci_lmip_ldp_log_low`` the logarithm of its p0. It does not vanish as epsilon grows,
and it is 1 from mu = log 2 on, 1 bit. Its limit p for large epsilon solves h(p) / p = -log(e^mu - 1), that is
d(p || 1 - e^-mu) = mu.

CD-LMIP to LIP: mu bounds I(X; M(X)) for the given prior. P_x is the distribution of M(x), P_M that of M(X);
q = P_M(event) and p = P_x(event). LIP (epsilon, delta) bounds q - e^epsilon p and e^-epsilon p - q by delta for every
x; in the worst case the first is always the larger (proved in csrc/lmip/fp_lmip_lip.h). The paper prints as equation
(13) the maximum of q - e^epsilon p under KL(P_x || P_M) <= mu. Mutual information bounds only the average of this
divergence over x, so (13) is FALSE for CD-LMIP: the paper's own figure 3 has mu = 0.1 bit and a divergence of 0.468 bit
at the outermost points. ``lip_delta_from_cd_lmip`` is right and tight, from the probability of the worst value; with
``form="as_published"`` it is equation (13), to reproduce the paper only; ``lip_delta_from_pointwise_lmip`` is equation
(13) where it is true, under sup over x of KL(P_x || P_M) <= mu.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import special
from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike
from ..base.inverse import bisect
from ..base.numerics import MACHINE_EPSILON, BoolArray, FloatArray
from ._closed_forms import ABSOLUTE_ERROR, bounded, validated
from .declaration import Formula, TightOrPublished, conversion
from .vocabulary import NGO, PROVED

if TYPE_CHECKING:
    from ..distributions import Pmf

# bound: tested by kernels/test_lmip_accuracy - relative error of the curves of CI-LMIP and of equation (13)
_RELATIVE_ERROR = 4e-15  # of the kernels ci_lmip_ldp_delta and pointwise_lip_delta
# bound: tested by kernels/test_lmip_accuracy - relative error of the curve for a smallest probability
_RELATIVE_ERROR_CD = 4e-14  # of the kernel cd_lmip_lip_delta
# bound: none - of a smaller mu the answer is an upper bound
_LEAST_MU = 1e-300  # the kernels take it in place of a smaller mu > 0
# bound: none - how a search begins: both ends of its last interval are bounds
_STEP = 2.0**-16  # ratio of the first steps of the bisection towards 0
_FLAT_FROM = 6.0  # beyond this epsilon the curve of CI-LMIP is at its limit, whatever mu
_BISECTIONS = 120  # more than the logarithm of any double needs
_POINTWISE = "equation (13) under KL(P_x || P_M) <= mu for every x"  # ``method`` of the form that is true
# ``method`` of the form that the paper states.
_PUBLISHED = "equation (13) as published: FALSE as a guarantee of CD-LMIP"


@conversion("ci_lmip", "dp", Formula("tight", f"{NGO}, theorem 1(a), equation (10)", rising="mu", falling="epsilon"))
def dp_delta_from_ci_lmip(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least delta such that every mu-CI-LMIP mechanism is (epsilon, delta)-LDP; its limit at epsilon = inf.

    **Accuracy**: 4e-15 relative for mu >= 1e-300 and every epsilon (tests/kernels/test_lmip_accuracy.py).

    >>> conversions.dp_delta_from_ci_lmip([0.01, 0.1, 1.0], 1.0).upper
    array([0.03259994, 0.27640351, 1.        ])
    >>> conversions.dp_delta_from_ci_lmip([0.0, 0.1, 0.5, 1.0], float("inf")).value
    array([0.        , 0.24938627, 0.87420508, 1.        ])
    """
    mu, epsilon = validated(mu=mu, epsilon=epsilon, unit=unit)
    method = "equation (10): the divergences of both rows from one mean equal mu"
    return _delta(special.ci_lmip_ldp_delta(mu, epsilon), mu, _RELATIVE_ERROR, method)


@conversion("ci_lmip", "dp", Formula(
    "tight", f"{NGO}, theorem 1(a), equation (10), inverted", rising="mu", falling="delta",
    note="inf below the saturation level of delta",
))
def dp_epsilon_from_ci_lmip(mu: NumberLike, delta: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least epsilon such that every mu-CI-LMIP mechanism is (epsilon, delta)-LDP; inf below the saturation level.

    **Accuracy**: ``lower`` and ``upper`` are where the curve, moved by its error, meets delta; they may be 0 and inf
    close to the ends of the curve (tests/contracts/test_lmip_conversions.py).

    >>> conversions.dp_epsilon_from_ci_lmip(0.1, [0.17, 0.3, 0.5]).value
    array([       inf, 0.72613377, 0.        ])
    """
    mu, delta = (np.array(x) for x in validated(mu=mu, delta=delta, unit=unit))
    slack = _RELATIVE_ERROR * delta + ABSOLUTE_ERROR
    targets = np.minimum(delta + slack, 1.0), delta, delta - slack
    (lower, _), (_, value), (_, upper) = (_least_epsilon(mu, target) for target in targets)
    always = (mu == 0.0) | (delta == 1.0)
    upper = np.where(always, 0.0, upper)
    return Estimate(
        np.clip(np.where(always, 0.0, value), lower, upper), lower, upper, kind="exact", unit="nats",
        method="bisection of equation (10)",
    )


@conversion(
    "cd_lmip", "approximate_lip",
    Formula("tight", f"{NGO}, theorem 2(a), corrected: {PROVED}", only="pi_min", rising="mu", falling="epsilon pi_min",
            domain="pi_min between 0 and 1", note="distributions without atoms get no guarantee"),
    Formula("as_published", f"{NGO}, theorem 2(a), equation (13)", rising="mu", falling="epsilon", holds=False,
            note="false: mutual information is a mean over x; 0.2918 against 0.1525 in figure 3"),
)
def lip_delta_from_cd_lmip(
    mu: NumberLike, epsilon: NumberLike, pi_min: NumberLike | Pmf | None = None, *, form: TightOrPublished = "tight",
    unit: Information = "nats",
) -> Estimate:
    """Least delta such that every mu-CD-LMIP mechanism is (epsilon, delta)-LIP at a value of probability ``pi_min``.

    The maximum of q - e^epsilon p over q = pi_min p + (1 - pi_min) s with
    pi_min d(p || q) + (1 - pi_min) d(s || q) <= mu. Splitting a value is data processing, so that the least probable
    one is the worst. Once mu reaches the entropy of the value, delta is 1 - pi_min for every epsilon.

    As published: equation (13) without ``pi_min``, FALSE as a guarantee. At mu = 0.1 bit and epsilon = 0.1 the Gaussian
    mechanism of the paper's figure 3 has delta = 0.2918, against 0.1525 as printed.

    **Accuracy**: 4e-14 relative for mu >= 1e-300 and mu (1 - pi_min) >= 1e-305, pi_min from 1e-300 to 1; as published
    4e-15 (tests/kernels/test_lmip_accuracy.py).

    Parameters
    ----------
    pi_min : array_like, Estimate or Pmf
        Prior probability of the value, between 0 and 1; or the prior, for its least probable value. 0 stands for a
        distribution without atoms, which gets delta = 1 from every mu > 0.

    >>> from fastpriv import Pmf
    >>> conversions.lip_delta_from_cd_lmip(0.1, 1.0, [0.5, 0.1, 0.0]).upper
    array([0.13222996, 0.59975872, 1.        ])
    >>> conversions.lip_delta_from_cd_lmip(0.1, 1.0, Pmf([0.0, 1.0, 2.0], [0.5, 0.4, 0.1])).value
    0.59975871...
    >>> published = conversions.lip_delta_from_cd_lmip(0.1, 0.1, form="as_published", unit="bits")
    >>> round(published.value, 5), published.method
    (0.15246, 'equation (13) as published: FALSE as a guarantee of CD-LMIP')
    """
    mu, epsilon = validated(mu=mu, epsilon=epsilon, unit=unit)
    if form == "as_published":
        return _delta(special.pointwise_lip_delta(mu, epsilon), mu, _RELATIVE_ERROR, _PUBLISHED)
    from ..distributions import Pmf

    if not isinstance(pi_min, Pmf):
        probability = validate.real("pi_min", pi_min, "between 0 and 1", lambda p: (p >= 0) & (p <= 1))
        validate.broadcastable("pi_min", probability, "mu and epsilon", mu)
        return _worst_value(mu, epsilon, probability)
    least, gap = float(pi_min.probabilities.min()), 2.0 * pi_min.mass_gap
    estimate = _worst_value(mu, epsilon, least)
    if gap == 0.0:
        return estimate
    # delta falls as the probability grows, and that of the normalised prior is within the gap
    larger, smaller = (_worst_value(mu, epsilon, min(least * factor, 1.0)) for factor in (1.0 + gap, 1.0 - gap))
    return Estimate(
        estimate.value, np.minimum(larger.lower, estimate.lower), np.maximum(smaller.upper, estimate.upper),
        kind="exact", unit="probability", method=estimate.method,
    )


@conversion("pointwise_lmip", "approximate_lip", Formula(
    "tight", f"{NGO}, equation (13) under the condition that its proof needs", rising="mu", falling="epsilon",
))
def lip_delta_from_pointwise_lmip(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least delta of (epsilon, delta)-LIP that follows from KL(P_x || P_M) <= mu for every x; 1 - e^-mu in the limit.

    ``notions.pointwise_lmip`` gives this mu; mutual information is only the average of the divergences and does not do.

    **Accuracy**: 4e-15 relative for mu >= 1e-300 (tests/kernels/test_lmip_accuracy.py).

    >>> conversions.lip_delta_from_pointwise_lmip(0.1, [0.5, 1.0, float("inf")]).upper
    array([0.1240016 , 0.10091774, 0.09516258])
    """
    mu, epsilon = validated(mu=mu, epsilon=epsilon, unit=unit)
    return _delta(special.pointwise_lip_delta(mu, epsilon), mu, _RELATIVE_ERROR, _POINTWISE)


def _least_epsilon(mu: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends of a bisection of ``ci_lmip_ldp_delta``, geometric far from it; inf where its limit is above delta."""

    def meets(epsilon: FloatArray) -> BoolArray:
        return np.asarray(special.ci_lmip_ldp_delta(mu, epsilon) <= delta)

    def middle(low: FloatArray, high: FloatArray) -> FloatArray:
        centre = np.where(high > 4.0 * low, np.sqrt(low * high), 0.5 * (low + high))
        return np.where(low > 0.0, centre, high * _STEP)

    start, end = np.zeros_like(mu), np.full_like(mu, _FLAT_FROM)
    ends = bisect(meets, start, end, _BISECTIONS, middle, rtol=MACHINE_EPSILON)
    below, above = (np.where(meets(ends[1]), np.where(meets(start), 0.0, x), np.inf) for x in ends)
    return below, above


def _worst_value(mu: FloatArray, epsilon: FloatArray, pi_min: FloatArray | float) -> Estimate:
    value = special.cd_lmip_lip_delta(mu, epsilon, pi_min)
    spread = 1e5 * (np.minimum(mu, 1.0) * (1.0 - pi_min))  # below 1e-305 the kernel may take a larger mu
    least = np.broadcast_to(np.minimum(mu, spread), np.shape(value))
    return _delta(value, least, _RELATIVE_ERROR_CD, "worst value under I(X; M(X)) <= mu")


def _delta(value: FloatArray, mu: FloatArray, relative_error: float, method: str) -> Estimate:
    """Probabilities with the relative error, outward, in [0, 1]; for a tiny ``mu`` they are upper bounds."""
    error = value * np.where(mu < _LEAST_MU, 1.0, relative_error)
    return bounded(value, "probability", method, error=error, ceiling=1.0, unrounded=mu == 0.0)
