"""(epsilon, delta) privacy of a pair of laws, either way round; total variation; membership advantage.

Notation: H_a(P||Q) = sup_E P(E) - a Q(E). (epsilon, delta): H at e^epsilon is at most delta, for P, Q and for Q, P.
Under local privacy any two inputs are such a pair, under differential privacy the neighbours are.

One point of the curve bounds the whole of it: every (epsilon, delta) pair is randomised response that reveals the input
with probability delta, processed further (Kairouz, Oh and Viswanath), hence H at e^t is at most
delta + (1 - delta) (e^epsilon - e^t)^+ / (1 + e^epsilon), attained; t = 0 is total variation.
"""

# bounds: tested by enclosures/test_conversions_values - rounding of exponents

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..._estimates import monotone
from ...estimate import Estimate, Information, NumberLike
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded
from ..registry import documented

__all__ = [
    "dp_delta_from_dp", "dp_delta_from_ldp", "dp_delta_from_total_variation", "dp_epsilon_from_ldp",
    "lip_delta_from_dp", "membership_advantage_from_dp", "membership_advantage_from_ldp",
    "membership_advantage_from_total_variation",
    "total_variation_from_dp", "total_variation_from_kl", "total_variation_from_ldp",
]  # fmt: skip

FloatArray = NDArray[np.float64]
_CURVE = "delta + (1 - delta) (e^epsilon - e^t)^+ / (1 + e^epsilon)"


@documented
@monotone(rising="epsilon delta", falling="target_epsilon")
def dp_delta_from_dp(epsilon: NumberLike, delta: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at another epsilon that follows from one (epsilon, delta): the curve of the dominating pair.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_dp(1.0, 1e-6, [0.0, 0.5, 2.0]).value
    array([4.62117695e-01, 2.87649849e-01, 1.00000000e-06])
    """
    epsilon, delta, target = validated(epsilon=epsilon, delta=delta, target_epsilon=target_epsilon)
    return bounded(_formulas.between(epsilon, delta, target), "probability", _CURVE, ceiling=1.0)


@documented
@monotone(rising="epsilon", falling="target_epsilon")
def dp_delta_from_ldp(epsilon: NumberLike, target_epsilon: NumberLike) -> Estimate:
    """Least delta at a smaller epsilon that follows from pure privacy: the curve of randomised response.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_ldp(1.0, [0.0, 0.5, 1.0]).value
    array([0.46211716, 0.28764..., 0.        ])
    """
    epsilon, target = validated(epsilon=epsilon, target_epsilon=target_epsilon)
    nothing = np.isinf(epsilon)  # promised: one law may have what the other has not
    value = np.where(nothing, 1.0, _formulas.between(epsilon, np.zeros_like(epsilon), target))
    return bounded(value, "probability", _CURVE, ceiling=1.0, settled=nothing | (epsilon <= target))


@documented
@monotone(rising="epsilon", falling="delta")
def dp_epsilon_from_ldp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` that follows from pure privacy: epsilon + ln(1 - delta (1 + e^-epsilon)), at least 0.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_ldp(1.0, [0.0, 0.1, 0.5]).value
    array([1.        , 0.85..., 0.        ])
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = delta * (1.0 + np.exp(-epsilon))
        drop = np.where(lost < 1.0, -np.log1p(-np.minimum(lost, 1.0)), np.inf)
        value = np.where(np.isinf(drop), 0.0, np.maximum(epsilon - drop, 0.0))
        steep = np.where(lost < 1.0, lost / (1.0 - np.minimum(lost, 1.0)), 0.0)
        error = np.where(np.isfinite(epsilon), 4e-16 * (epsilon + drop + steep), 0.0)
    return bounded(
        value, "nats", "epsilon + ln(1 - delta (1 + e^-epsilon))", error=np.where(np.isfinite(error), error, 0.0),
        settled=(delta == 0.0) | (epsilon == 0.0) | np.isinf(epsilon),
    )  # fmt: skip


@documented
@monotone(rising="total_variation")
def dp_delta_from_total_variation(total_variation: NumberLike) -> Estimate:
    """Least delta at any epsilon that follows from total variation: that number itself, at epsilon = 0 and beyond.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_total_variation(0.25).value
    0.25
    """
    return _same(total_variation=total_variation)


@documented
@monotone(rising="epsilon delta")
def total_variation_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest total variation under (epsilon, delta): (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.total_variation_from_dp(1.0, [0.0, 0.1]).value
    array([0.46211716, 0.51590544])
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    return _variation(epsilon, delta)


@documented
@monotone(rising="epsilon")
def total_variation_from_ldp(epsilon: NumberLike) -> Estimate:
    """Largest total variation under pure privacy: tanh(epsilon / 2).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.total_variation_from_ldp(1.0).value
    0.46211715...
    """
    (epsilon,) = validated(epsilon=epsilon)
    return _variation(epsilon, np.zeros_like(epsilon))


@documented
@monotone(rising="kl")
def total_variation_from_kl(kl: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Bound of total variation from a divergence: the smaller of Pinsker's and of Bretagnolle and Huber's.

    min(sqrt(kl / 2), sqrt(1 - e^-kl)).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.total_variation_from_kl([0.02, 1.0, 5.0]).value
    array([0.1       , 0.70710678, 0.99662533])
    """
    (kl,) = validated(kl=kl, unit=unit)
    value = np.minimum(np.sqrt(0.5) * np.sqrt(kl), np.sqrt(-np.expm1(-kl)))
    return bounded(value, "probability", "min(sqrt(kl / 2), sqrt(1 - e^-kl))", ceiling=1.0, settled=kl == 0.0)


@documented
@monotone(rising="epsilon delta")
def membership_advantage_from_dp(epsilon: NumberLike, delta: NumberLike = 0.0) -> Estimate:
    """Largest true positive minus false positive rate of any attack: (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.membership_advantage_from_dp(1.0, 1e-5).value
    0.46212253...
    """
    return total_variation_from_dp(epsilon, delta)


@documented
@monotone(rising="epsilon")
def membership_advantage_from_ldp(epsilon: NumberLike) -> Estimate:
    """Largest membership advantage under pure privacy: tanh(epsilon / 2).

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.membership_advantage_from_ldp(1.0).value
    0.46211715...
    """
    return total_variation_from_ldp(epsilon)


@documented
@monotone(rising="total_variation")
def membership_advantage_from_total_variation(total_variation: NumberLike) -> Estimate:
    """The best attack guesses by the likelihood ratio; its advantage is the total variation.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.membership_advantage_from_total_variation(0.25).value
    0.25
    """
    return _same(total_variation=total_variation)


@documented
@monotone(rising="epsilon delta")
def lip_delta_from_dp(epsilon: NumberLike, delta: NumberLike) -> Estimate:
    """The same delta: (epsilon, delta)-LDP is (epsilon, delta)-LIP under every prior, the release being a mean of rows.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.lip_delta_from_dp(1.0, 0.01).value
    0.01
    """
    epsilon, delta = validated(epsilon=epsilon, delta=delta)
    return bounded(delta, "probability", "the same number", settled=True)


def _variation(epsilon: FloatArray, delta: FloatArray) -> Estimate:
    value = delta + (1.0 - delta) * np.tanh(0.5 * epsilon)
    return bounded(
        value, "probability", "(e^epsilon - 1 + 2 delta) / (e^epsilon + 1)", ceiling=1.0,
        settled=(epsilon == 0.0) & (delta == 0.0),
    )  # fmt: skip


def _same(**named: ArrayLike) -> Estimate:
    (value,) = validated(**named)
    return bounded(value, "probability", "the same number", settled=True)
