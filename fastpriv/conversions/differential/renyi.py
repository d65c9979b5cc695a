"""Renyi differential privacy (RDP): the Renyi divergence of any neighbouring pair, either way round, at an order.

Notation: a the order, r the divergence, in nats; a = 1 is Kullback-Leibler, a = inf pure privacy.

RDP to (epsilon, delta): by Canonne, Kamath and Steinke (2020), proposition 12, and Balle et al. (2020), theorem 21 in
the arXiv version, delta = e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a; and where the divergence is small, so that this
leaves out much, the least delta of ``tangents``, which is total variation at epsilon = 0 and 1 - e^(epsilon - r) where
nearly nothing is left. Every order gives a true bound; over several the least counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ... import _validate
from ..._estimates import monotone
from ...errors import ShapeError
from ...estimate import Estimate, Information, NumberLike, Unit
from .. import _formulas
from .._arguments import validated
from .._bounds import bounded, information
from ..parameters import PARAMETERS
from ..registry import documented
from .tangents import improved, least_delta, least_epsilon

__all__ = [
    "dp_delta_from_rdp", "dp_delta_from_rdp_curve", "dp_epsilon_from_rdp", "dp_epsilon_from_rdp_as_published",
    "dp_epsilon_from_rdp_curve", "kl_from_ldp", "kl_from_ldp_as_published", "kl_from_rdp", "rdp_from_gdp",
    "rdp_from_ldp", "rdp_from_ldp_as_published", "rdp_from_zcdp",
]  # fmt: skip

FloatArray = NDArray[np.float64]
# bound: tested by enclosures/test_renyi_to_dp, enclosures/test_conversions_values - rounding of each term of the
#    exponent
_ULPS = 2e-15
_METHOD = "r + ln(1 - 1/a) - ln(a delta) / (a - 1)"


@documented
@monotone(rising="epsilon order")
def rdp_from_ldp(epsilon: NumberLike, order: NumberLike) -> Estimate:
    """Largest Renyi divergence under pure privacy: that of randomised response.

    epsilon - ln((1 + e^-epsilon) / (1 + e^-((2a-1) epsilon))) / (a - 1); epsilon tanh(epsilon/2) at order 1.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.rdp_from_ldp(1.0, [1.0, 2.0, 10.0, float("inf")]).value
    array([0.46211716, 0.73532..., 0.96519..., 1.        ])
    """
    epsilon, order = validated(epsilon=epsilon, order=order)
    value = _formulas.response_renyi(epsilon, order)
    return bounded(value, "nats", "randomised response", settled=(epsilon == 0.0) | np.isinf(order))


@documented
@monotone(rising="epsilon order")
def rdp_from_ldp_as_published(epsilon: NumberLike, order: NumberLike) -> Estimate:
    """The published divergence, min(epsilon, a epsilon^2 / 2): true, near the least for small a epsilon.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> round(conversions.rdp_from_ldp_as_published(0.1, 2.0).value, 12)
    0.01
    """
    epsilon, order = validated(epsilon=epsilon, order=order)
    with np.errstate(over="ignore", invalid="ignore"):
        value = np.where(epsilon == 0.0, 0.0, np.minimum(epsilon, 0.5 * order * epsilon * epsilon))
    return bounded(value, "nats", "min(epsilon, a epsilon^2 / 2)", settled=epsilon == 0.0)


@documented
@monotone(rising="rho order")
def rdp_from_zcdp(rho: NumberLike, order: NumberLike) -> Estimate:
    """The divergence at an order that rho-zCDP means: rho a.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.rdp_from_zcdp(0.5, 4.0).value
    2.0
    """
    rho, order = validated(rho=rho, order=order)
    return _product(rho, order, "rho a", rho)


@documented
@monotone(rising="separation order")
def rdp_from_gdp(separation: NumberLike, order: NumberLike) -> Estimate:
    """Largest divergence under Gaussian privacy: that of two unit normal laws, a separation^2 / 2.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.rdp_from_gdp(1.0, 4.0).value
    2.0
    """
    separation, order = validated(separation=separation, order=order)
    with np.errstate(over="ignore"):
        return _product(0.5 * separation * separation, order, "a separation^2 / 2", separation)


@documented
@monotone(rising="renyi order")
def kl_from_rdp(renyi: NumberLike, order: NumberLike = 1.0, *, unit: Information = "nats") -> Estimate:
    """Kullback-Leibler, the divergence of order 1, is at most that of any larger order.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.kl_from_rdp(0.25, 2.0).value
    0.25
    """
    renyi, order = validated(renyi=renyi, order=order)
    nats = _validate.choice("unit", unit, ("nats", "bits")) == "nats"
    return information(renyi, unit, "monotonicity in the order", settled=nats)


@documented
@monotone(rising="epsilon")
def kl_from_ldp(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Largest Kullback-Leibler divergence under pure privacy: epsilon tanh(epsilon/2), of randomised response.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.kl_from_ldp(1.0).value
    0.46211715...
    """
    (epsilon,) = validated(epsilon=epsilon)
    return information(_formulas.mean_loss(epsilon), unit, "epsilon tanh(epsilon / 2)", known=epsilon)


@documented
@monotone(rising="epsilon")
def kl_from_ldp_as_published(epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The published mean of concentrated privacy, epsilon (e^epsilon - 1) / 2: true, loose for large epsilon.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.kl_from_ldp_as_published(1.0).value
    0.85914091...
    """
    (epsilon,) = validated(epsilon=epsilon)
    with np.errstate(over="ignore"):
        value = 0.5 * epsilon * np.expm1(epsilon)
    return information(value, unit, "epsilon expm1(epsilon) / 2", known=epsilon)


@documented
@monotone(rising="renyi", falling="delta")
def dp_epsilon_from_rdp(renyi: NumberLike, order: ArrayLike, delta: NumberLike) -> Estimate:
    """Epsilon at ``delta`` from the divergence at one order: r + ln(1 - 1/a) - ln(a delta) / (a - 1), at least 0.

    Less where (a - 1) r is small: the least that follows, 0 from the largest total variation on. At order 1 from the
    divergence of Kullback and Leibler. inf at delta = 0; r at order inf.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_rdp(0.5, 10.0, 1e-6).value
    1.67261...
    """
    renyi, order, delta = validated(renyi=renyi, order=order, delta=delta)
    value, error = _epsilon(renyi, order, delta)
    return bounded(value, "nats", _METHOD, error=error, settled=np.isinf(value))


@documented
@monotone(rising="renyi", falling="order delta")
def dp_epsilon_from_rdp_as_published(renyi: NumberLike, order: NumberLike, delta: NumberLike) -> Estimate:
    """The published epsilon, r + ln(1/delta) / (a - 1): true, above ``dp_epsilon_from_rdp``.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_epsilon_from_rdp_as_published(0.5, 10.0, 1e-6).value
    2.03505...
    """
    renyi, order, delta = validated(renyi=renyi, order=order, delta=delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        spent = np.where(delta == 1.0, 0.0, -np.log(delta) / (order - 1.0))
        value = np.where(np.isinf(order), renyi, np.where((delta == 1.0) & (order == 1.0), renyi, renyi + spent))
    return bounded(value, "nats", "r + ln(1/delta) / (a - 1)", settled=np.isinf(order) | np.isinf(value))


@documented
@monotone(rising="renyi", falling="delta", joint="renyi")
def dp_epsilon_from_rdp_curve(renyi: NumberLike, orders: ArrayLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` over many orders; ``renyi`` has the orders along its last axis.

    ``delta`` broadcasts with the other axes of ``renyi``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import conversions
    >>> orders = np.arange(2, 200)
    >>> conversions.dp_epsilon_from_rdp_curve(0.05 * orders, orders, [1e-9, 1e-6]).value
    array([1.88173479, 1.47165586])
    """
    columns, orders, target = _curve(renyi, orders, "delta", delta)
    return _least(columns, orders, target, _epsilon, "nats", np.inf)


@documented
@monotone(rising="renyi", falling="epsilon")
def dp_delta_from_rdp(renyi: NumberLike, order: ArrayLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from the divergence at one order: e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a, at most 1.

    Less where (a - 1) r is small: the least that follows, at epsilon = 0 the largest total variation.

    Examples
    --------
    >>> from fastpriv import conversions
    >>> conversions.dp_delta_from_rdp(0.5, 10.0, 2.0).value
    5.25237...e-08
    """
    renyi, order, epsilon = validated(renyi=renyi, order=order, epsilon=epsilon)
    value, error = _delta(renyi, order, epsilon)
    return bounded(value, "probability", "e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a", error=error, ceiling=1.0)


@documented
@monotone(rising="renyi", falling="epsilon", joint="renyi")
def dp_delta_from_rdp_curve(renyi: NumberLike, orders: ArrayLike, epsilon: NumberLike) -> Estimate:
    """Least delta at ``epsilon`` over many orders; ``renyi`` has the orders along its last axis.

    ``epsilon`` broadcasts with the other axes of ``renyi``.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpriv import conversions
    >>> orders = np.arange(2, 200)
    >>> conversions.dp_delta_from_rdp_curve(0.05 * orders, orders, 1.5).value
    6.53663801...e-07
    """
    columns, orders, target = _curve(renyi, orders, "epsilon", epsilon)
    return _least(columns, orders, target, _delta, "probability", 1.0)


def _epsilon(renyi: FloatArray, order: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilon, at least 0, and the rounding of the terms of its sum."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = order - 1.0
        spent, gained = -(np.log(delta) + np.log(order)) / step, np.log1p(-1.0 / order)
        value = np.maximum(renyi + gained + spent, 0.0)
        # the divergence may be inf: then nothing but delta = 1 is promised
        value = np.where(delta == 1.0, 0.0, np.where((step == 0.0) | np.isnan(value), np.inf, value))
        value = np.where(np.isinf(order), np.where(delta == 1.0, 0.0, renyi), value)
        error = _ULPS * (renyi + np.abs(gained) + (np.abs(np.log(delta)) + np.log(order)) / step)
    error = np.where(np.isfinite(value) & np.isfinite(error), error, 0.0)
    return improved(least_epsilon, value, error, renyi, order, delta)


def _delta(renyi: FloatArray, order: FloatArray, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Delta, at most 1, and its rounding: that of the exponent, relatively."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = order - 1.0
        kept = np.where(step == 0.0, 0.0, step * np.log1p(-1.0 / order))
        exponent = step * (renyi - epsilon) + kept
        value = np.where(step == 0.0, 1.0, np.minimum(np.exp(exponent) / order, 1.0))
        size = step * (np.abs(renyi) + np.abs(epsilon)) + np.abs(kept) + 4.0
        value = np.where(np.isinf(order) | np.isinf(epsilon), np.where(epsilon >= renyi, 0.0, 1.0), value)
        value = np.where(np.isinf(renyi) | np.isnan(value), 1.0, value)
        error = np.where(np.isfinite(size), _ULPS * size, 1.0) * value
    error = np.where(value == 0.0, 0.0, error)
    return improved(least_delta, value, error, renyi, order, epsilon)


def _curve(
    renyi: ArrayLike, orders: ArrayLike, name: str, target: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    row = _validate.vector("orders", orders, PARAMETERS["orders"].constraint, PARAMETERS["orders"].valid)
    (columns,) = validated(renyi=renyi)
    if columns.ndim == 0 or columns.shape[-1] != row.size:
        raise ShapeError(
            f"renyi must be of a shape that ends with the number of orders, {row.size}; got {columns.shape}. "
            "Give one divergence for each order, along the last axis."
        )
    (goal,) = validated(**{name: target})
    _validate.broadcastable(name, goal, "renyi without its last axis", columns[..., 0])
    _validate.grid(f"{name} with renyi", np.broadcast_shapes((*goal.shape, 1), columns.shape))
    return columns, row, goal


def _least(
    columns: FloatArray, orders: FloatArray, target: FloatArray,
    function: Callable[[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray]], unit: Unit, ceiling: float,
) -> Estimate:  # fmt: skip
    values, errors = function(columns, orders, target[..., None])
    at = np.argmin(values, axis=-1)[..., None]
    best, slack = (np.take_along_axis(array, at, axis=-1)[..., 0] for array in (values, errors))
    method = f"least over {orders.size} orders"
    return bounded(best, unit, method, error=slack, ceiling=ceiling, settled=np.isinf(best))


def _product(rho: FloatArray, order: FloatArray, method: str, known: FloatArray) -> Estimate:
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(rho == 0.0, 0.0, rho * order)
    return bounded(value, "nats", method, settled=known == 0.0)
