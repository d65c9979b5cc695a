"""Robust accuracy: how likely a release misses its target by more than alpha when the secret is another one.

Notation: beta bounds the probability of the miss for one secret, gamma for each other one; the event, and with it
alpha, is the same. T_x(b) = min(e^x b, 1 - e^-x (1 - b)) is the largest probability of an event under a law whose
log ratios to the first are at most x. LDP relates the rows directly; MBP relates each row to their mean, hence two
steps.
"""

# bounds: tested by enclosures/test_conversions_values - relative error, with that of an exponent up to 1500

from __future__ import annotations

from numpy.typing import ArrayLike

from ... import _validate
from ..._estimates import monotone
from ...estimate import Estimate, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented
from .mbp import ldp_from_mbp

__all__ = ["robustness_from_ldp", "robustness_from_mbp", "robustness_from_mbp_as_published"]


@documented
@monotone(rising="xi beta")
def robustness_from_mbp(xi: NumberLike, beta: NumberLike, pi_min: ArrayLike = 0.0) -> Estimate:
    """Least gamma such that (xi, beta, alpha)-MBP misses by more than alpha with at most gamma, for each other secret.

    T_xi(T_xi(beta)), or T_e(beta) with the epsilon e of ``ldp_from_mbp`` where a known ``pi_min`` makes that smaller.
    For ``pi_min`` = 0 no smaller number holds for all priors.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.robustness_from_mbp(1.0, [0.001, 0.1]).value
    array([0.00738906, 0.73212056])
    """
    xi, beta, pi_min = validated(xi=xi, beta=beta, pi_min=pi_min)
    twice = _formulas.transfer(xi, _formulas.transfer(xi, beta))
    once = _formulas.transfer(ldp_from_mbp(xi, pi_min).value, beta)
    best = twice if not pi_min.any() else twice.clip(max=once)
    error = (1e-14 + 1e-14 * xi.clip(max=1500.0) * (pi_min > 0.0)) * best
    return bounded(best, "probability", "T_xi(T_xi(beta))", error=error, ceiling=1.0)


@documented
@monotone(rising="xi beta")
def robustness_from_mbp_as_published(xi: NumberLike, beta: NumberLike) -> Estimate:
    """The published gamma, (1 + 4 xi) beta: FALSE for xi above 0.62822, where e^(2 xi) exceeds 1 + 4 xi.

    At xi = 1 and beta = 0.001 it says 0.005, and 0.00739 occurs.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.robustness_from_mbp_as_published(1.0, 0.001).value
    0.005
    """
    _validate.real(
        "xi", xi, "between 0 and 1", lambda x: (x >= 0) & (x <= 1), remedy="Use robustness_from_mbp for a larger one.",
    )  # fmt: skip
    xi, beta = validated(xi=xi, beta=beta)
    return bounded((1.0 + 4.0 * xi) * beta, "probability", "(1 + 4 xi) beta", ceiling=1.0)


@documented
@monotone(rising="epsilon beta")
def robustness_from_ldp(epsilon: NumberLike, beta: NumberLike) -> Estimate:
    """Least gamma under epsilon-LDP: T_epsilon(beta) = min(e^epsilon beta, 1 - e^-epsilon (1 - beta)).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.robustness_from_ldp(1.0, [0.001, 0.5]).value
    array([0.00271828, 0.81606028])
    """
    epsilon, beta = validated(epsilon=epsilon, beta=beta)
    return bounded(_formulas.transfer(epsilon, beta), "probability", "T_epsilon(beta)", ceiling=1.0)
