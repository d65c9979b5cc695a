"""Maximum Bayesian privacy (MBP), local differential privacy (LDP) and pure local information privacy (LIP).

Notation: Q channel, pi prior, q = pi Q, r_d(w) = Q[d, w] / q[w] = posterior / prior.
LDP: Q[d, w] <= e^epsilon Q[d', w]. MBP: |ln r| <= xi; xi_plus and xi_minus bound ln r and -ln r. Pure LIP is the same
condition as MBP, epsilon for xi.

LDP to MBP: 1/r_d(w) = pi_d + sum over d' != d of pi_d' Q[d', w]/Q[d, w] lies between pi_d + (1 - pi_d) e^-epsilon and
pi_d + (1 - pi_d) e^epsilon. MBP to LDP: maximise r_d/r_d' over vectors with sum pi r = 1 and every r in its range; the
optimum of that linear-fractional problem has all but one entry at an end of the range. With three secrets or more the
raised and the lowered one may both have the smallest probability; above 1/3 there are two, of pi_min and 1 - pi_min.
"""

# bounds: tested by enclosures/test_conversions_values - outward steps of the shift and of its ends

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = [
    "ldp_from_lip", "ldp_from_lip_as_published", "ldp_from_mbp", "ldp_from_mbp_as_published", "ldp_from_mbp_sides",
    "lip_from_ldp", "lip_from_ldp_as_published", "lip_from_mbp", "mbp_from_ldp", "mbp_from_ldp_as_published",
    "mbp_from_lip", "mbp_plus_from_ldp",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_THIRD = 1.0 / 3.0  # a larger smallest probability leaves two secrets


@documented
@monotone(rising="epsilon", falling="pi_min")
def mbp_from_ldp(epsilon: NumberLike, pi_min: NumberLike = 0.0) -> Estimate:
    """Least xi such that epsilon-LDP gives xi-MBP under every prior whose smallest probability is ``pi_min``.

    xi = ln(pi_min + (1 - pi_min) e^epsilon), below epsilon; attained by a channel with two releases.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mbp_from_ldp(1.0, [0.0, 0.01, 0.5]).value
    array([1.        , 0.99365873, 0.62011451])
    """
    epsilon, pi_min = validated(epsilon=epsilon, pi_min=pi_min)
    return _nats(_formulas.tilted(epsilon, pi_min), "ln(pi_min + (1 - pi_min) e^epsilon)", _ends(epsilon))


@documented
@monotone(rising="epsilon", falling="pi_min")
def mbp_plus_from_ldp(epsilon: NumberLike, pi_min: NumberLike = 0.0) -> Estimate:
    """Least xi_plus that follows from epsilon-LDP: how much likelier a release can make a secret.

    xi_plus = -ln(pi_min + (1 - pi_min) e^-epsilon), at most the xi of ``mbp_from_ldp``; attained.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mbp_plus_from_ldp(1.0, 0.5).value
    0.37988549...
    """
    epsilon, pi_min = validated(epsilon=epsilon, pi_min=pi_min)
    return _nats(_formulas.retained(epsilon, pi_min), "-ln(pi_min + (1 - pi_min) e^-epsilon)", _ends(epsilon, pi_min))


@documented
@monotone(rising="epsilon prior_spread")
def mbp_from_ldp_as_published(epsilon: NumberLike, prior_spread: NumberLike = 0.0) -> Estimate:
    """The published xi, epsilon + prior_spread: true and loose, and the spread need not be there.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mbp_from_ldp_as_published(1.0, 0.5).value
    1.5
    """
    epsilon, prior_spread = validated(epsilon=epsilon, prior_spread=prior_spread)
    return _nats(epsilon + prior_spread, "epsilon + prior_spread", prior_spread == 0.0)


@documented
@monotone(rising="xi")
def ldp_from_mbp(xi: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon such that xi-MBP under a prior with smallest probability ``pi_min`` gives epsilon-LDP.

    epsilon = min(2 xi, ln(1 + (e^xi - 1) / pi_min)); above 1/3, where there are two secrets, also at most
    -ln(1 - (1 - e^-xi) / (1 - pi_min)), where that exists. Attained for every ``pi_min`` by some prior that has it.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ldp_from_mbp(1.0, [0.0, 0.4, 0.5]).value
    array([2.        , 1.66689603, 1.48988013])
    """
    xi, pi_min = validated(xi=xi, pi_min=pi_min)
    two = np.where(pi_min > _THIRD, _kept(xi, 1.0 - pi_min, 0.0), np.inf)
    least = np.minimum(np.minimum(_twice(xi), _grown(xi, pi_min)), two)
    return _nats(least, "min(2 xi, ln(1 + expm1(xi) / pi_min))", _ends(xi))


@documented
@monotone(rising="xi_plus xi_minus")
def ldp_from_mbp_sides(xi_plus: NumberLike, xi_minus: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon from separate bounds on how much likelier and how much less likely a secret becomes.

    epsilon = min(xi_plus + xi_minus, ln(1 + (e^xi_minus - 1) / pi_min), -ln(1 - (1 - e^-xi_plus) / pi_min)), the last
    where 1 - e^-xi_plus < pi_min. Above 1/3, where there are two secrets, the larger of what remains with pi_min in
    one and 1 - pi_min in the other of the last two terms.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ldp_from_mbp_sides(0.2, 1.0).value
    1.2
    >>> conversions.ldp_from_mbp_sides(0.2, 1.0, 0.25).value
    1.2
    >>> conversions.ldp_from_mbp_sides(0.2, 1.0, 0.5).value
    0.45...
    """
    xi_plus, xi_minus, pi_min = validated(xi_plus=xi_plus, xi_minus=xi_minus, pi_min=pi_min)
    low, value, high = (_vertices(xi_plus, xi_minus, pi_min, shift) for shift in (-1e-15, 0.0, 1e-15))
    value = np.where((xi_plus == 0.0) | (xi_minus == 0.0), 0.0, value)  # ratios on one side of their mean, 1, are 1
    with np.errstate(over="ignore"):
        lower, upper = np.minimum(low * (1.0 - 1e-14), value), np.maximum(high * (1.0 + 1e-14) + 5e-322, value)
    upper = np.where(value == 0.0, 0.0, upper)
    return Estimate(value, lower, upper, kind="exact", unit="nats", method="least of the three vertices")


@documented
@monotone(rising="xi prior_spread")
def ldp_from_mbp_as_published(xi: NumberLike, prior_spread: NumberLike = 0.0) -> Estimate:
    """The published epsilon, 2 xi + prior_spread: true, but the spread need not be there.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ldp_from_mbp_as_published(1.0, 0.5).value
    2.5
    """
    xi, prior_spread = validated(xi=xi, prior_spread=prior_spread)
    total = _twice(xi) + prior_spread
    return _nats(total, "2 xi + prior_spread", (prior_spread == 0.0) & (np.isfinite(total) | np.isinf(xi)))


@documented
@monotone(rising="epsilon", falling="pi_min")
def lip_from_ldp(epsilon: NumberLike, pi_min: NumberLike = 0.0) -> Estimate:
    """Least epsilon of pure LIP that follows from pure LDP: ln(pi_min + (1 - pi_min) e^epsilon).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.lip_from_ldp(1.0, 0.5).value
    0.62011450...
    """
    return mbp_from_ldp(epsilon, pi_min)


@documented
@monotone(rising="epsilon")
def lip_from_ldp_as_published(epsilon: NumberLike) -> Estimate:
    """The usual form: epsilon-LDP is epsilon-LIP; the least for all priors together.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.lip_from_ldp_as_published(1.0).value
    1.0
    """
    return _same(epsilon=epsilon)


@documented
@monotone(rising="epsilon")
def ldp_from_lip(epsilon: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least epsilon of pure LDP that follows from pure LIP, as ``ldp_from_mbp`` from MBP.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ldp_from_lip(1.0, 0.5).value
    1.4898801...
    """
    (epsilon,) = validated(epsilon=epsilon)
    return ldp_from_mbp(epsilon, pi_min)


@documented
@monotone(rising="epsilon")
def ldp_from_lip_as_published(epsilon: NumberLike) -> Estimate:
    """The usual form: epsilon-LIP is 2 epsilon-LDP; the least for all priors together.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.ldp_from_lip_as_published(1.0).value
    2.0
    """
    (epsilon,) = validated(epsilon=epsilon)
    total = _twice(epsilon)
    return _nats(total, "2 epsilon", np.isfinite(total) | np.isinf(epsilon))


@documented
@monotone(rising="xi")
def lip_from_mbp(xi: NumberLike) -> Estimate:
    """Pure LIP is the condition of MBP under another name: epsilon = xi.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.lip_from_mbp(0.5).value
    0.5
    """
    return _same(xi=xi)


@documented
@monotone(rising="epsilon")
def mbp_from_lip(epsilon: NumberLike) -> Estimate:
    """MBP is the condition of pure LIP under another name: xi = epsilon.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.mbp_from_lip(0.5).value
    0.5
    """
    return _same(epsilon=epsilon)


def _grown(xi: FloatArray, pi_min: FloatArray) -> FloatArray:
    """ln(1 + expm1(xi) / pi_min), as xi + ln(1 + (1 - pi_min)/pi_min (1 - e^-xi)); inf at pi_min = 0."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        odds = (1.0 - pi_min) / pi_min
        return np.asarray(np.where(xi == 0.0, 0.0, xi + np.log1p(odds * -np.expm1(-xi))))


def _vertices(plus: FloatArray, minus: FloatArray, pi_min: FloatArray, shift: float) -> FloatArray:
    """The optimum: the raised secret has probability pi_min and the lowered one ``other``, or with two the reverse."""
    few = pi_min > _THIRD
    other = np.where(few, 1.0 - pi_min, pi_min)
    raised, lowered = (
        np.minimum(np.minimum(plus + minus, _grown(minus, up)), _kept(plus, down, shift))
        for up, down in ((pi_min, other), (other, pi_min))
    )
    return np.where(few, np.maximum(raised, lowered), raised)


def _kept(xi_plus: FloatArray, pi_min: FloatArray, shift: float) -> FloatArray:
    """-ln(1 - (1 - e^-xi_plus) / pi_min), inf where there is no such number; the ratio moved by a relative shift."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = -np.expm1(-xi_plus) / pi_min * (1.0 + shift)
        inside = (pi_min > 0.0) & (share < 1.0)
        return np.asarray(np.where(inside, -np.log1p(-np.where(inside, share, 0.0)), np.inf))


def _ends(value: FloatArray, share: FloatArray | None = None) -> NDArray[np.bool_]:
    """Where the answer is 0 or inf without rounding."""
    infinite = np.isinf(value) if share is None else np.isinf(value) & (share == 0.0)
    return np.asarray((value == 0.0) | infinite)


def _twice(level: FloatArray) -> FloatArray:
    """Infinite where it leaves the range of doubles."""
    with np.errstate(over="ignore"):
        return np.asarray(2.0 * level)


def _nats(value: FloatArray, method: str, settled: object) -> Estimate:
    return bounded(value, "nats", method, settled=settled)


def _same(**named: ArrayLike) -> Estimate:
    (value,) = validated(**named)
    return bounded(value, "nats", "the same number", settled=True)
