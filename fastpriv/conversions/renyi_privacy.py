"""Renyi (RDP) and zero-concentrated (zCDP) differential privacy, with and from (epsilon, delta), GDP and KL.

Notation: a the order, r the Renyi divergence of any neighbouring pair, either way round, in nats; a = 1 is
Kullback-Leibler, a = inf pure privacy. zCDP: r is at most rho a for every a > 1.

RDP to (epsilon, delta): by Canonne, Kamath and Steinke (2020), proposition 12, and Balle et al. (2020), theorem 21 in
the arXiv version, delta = e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a; and where the divergence is small, so that this
leaves out much, the least delta of ``renyi_to_dp``, which is total variation at epsilon = 0 and 1 - e^(epsilon - r)
where nearly nothing is left. Every order gives a true bound; over several the least counts.

Pure privacy to zCDP: the divergence of randomised response is (L(s) - L(1/4)) / (a - 1) with L(s) = ln cosh(epsilon
sqrt(s)) and s = (a - 1/2)^2, so that divided by a it is the slope of a chord of L from 1/4; L is concave, hence the
largest slope is L'(1/4) = epsilon tanh(epsilon/2), approached as a tends to 1.
zCDP to (epsilon, delta): the conversion of Renyi privacy at the best order; with t = a - 1 that order solves
rho t^2 + ln(1 + t) = ln(1/delta), or (2t + 1) rho + ln(t/(1 + t)) = epsilon. Both sides are monotone in t, and any t
gives a true bound, so that the search cannot make it untrue. For a small rho the least epsilon and delta of some orders
down to 1 (``renyi_to_dp``) promise more: nothing is left at epsilon = 0 from the total variation sqrt(rho / 2) on.

Proofs: docs/proofs/conversions.md, theorem 12.10.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike, Unit
from ..base.inverse import bisect
from ..base.numerics import BoolArray, FloatArray, next_above
from . import _closed_forms as forms
from .declaration import BoundOrPublished, Formula, TightOrPublished, conversion
from .renyi_to_dp import TERM_ERROR, TangentBound, delta_by_tangents, epsilon_by_tangents, smaller_by_tangents
from .vocabulary import BUN_STEINKE, CANONNE, MIRONOV, PROVED, STEINKE

_METHOD = "r + ln(1 - 1/a) - ln(a delta) / (a - 1)"  # ``method``: the formula at Renyi order a
_HALVINGS = 44  # of the logarithm of an order: the interval of 1340 shrinks to 1e-10
# bound: none - range of a search: any order gives a bound
_LEAST_STEP, _MOST_STEP = 1e-290, 1e290  # range of the order less 1 that is searched
# Orders less 1 that are tried beside the best one, as parts of it.
_STEP_FRACTIONS = np.array([0.0, 2.0**-6, 2.0**-4, 0.25, 0.5, 1.0])
# The largest order less 1 that the tangents take.
_MOST_TANGENT_STEP = 1e15


@conversion(
    "ldp", "rdp",
    Formula("tight", f"{STEINKE}, theorem 4; {MIRONOV}, on randomised response", rising="epsilon order"),
    Formula("as_published", f"{BUN_STEINKE}, pure to concentrated privacy; monotonicity in the order",
            rising="epsilon order", note="true; near the least for small order times epsilon"),
)
def rdp_from_ldp(epsilon: NumberLike, order: NumberLike, *, form: TightOrPublished = "tight") -> Estimate:
    """Largest Renyi divergence under pure privacy: that of randomised response.

    epsilon - ln((1 + e^-epsilon) / (1 + e^-((2a-1) epsilon))) / (a - 1); epsilon tanh(epsilon/2) at order 1.
    As published: min(epsilon, a epsilon^2 / 2), which is true and near the least for small a epsilon.

    >>> conversions.rdp_from_ldp(1.0, [1.0, 2.0, 10.0, float("inf")]).value
    array([0.46211716, 0.73532..., 0.96519..., 1.        ])
    >>> round(conversions.rdp_from_ldp(0.1, 2.0, form="as_published").value, 12)
    0.01
    """
    epsilon, order = forms.validated(epsilon=epsilon, order=order)
    if form == "as_published":
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.where(epsilon == 0.0, 0.0, np.minimum(epsilon, 0.5 * order * epsilon * epsilon))
        return forms.bounded(value, "nats", "min(epsilon, a epsilon^2 / 2)", unrounded=epsilon == 0.0)
    value = forms.randomized_response_renyi(epsilon, order)
    return forms.bounded(value, "nats", "randomised response", unrounded=(epsilon == 0.0) | np.isinf(order))


@conversion("zcdp", "rdp", Formula("tight", f"{BUN_STEINKE}, definition 1.1", rising="rho order"))
def rdp_from_zcdp(rho: NumberLike, order: NumberLike) -> Estimate:
    """The divergence at an order that rho-zCDP means: rho a.

    >>> conversions.rdp_from_zcdp(0.5, 4.0).value
    2.0
    """
    rho, order = forms.validated(rho=rho, order=order)
    with np.errstate(invalid="ignore", over="ignore"):
        value = np.where(rho == 0.0, 0.0, rho * order)
    return forms.bounded(value, "nats", "rho a", unrounded=rho == 0.0)


@conversion("rdp", "kl", Formula("bound", "monotonicity in the order", rising="renyi order"))
def kl_from_rdp(renyi: NumberLike, order: NumberLike = 1.0, *, unit: Information = "nats") -> Estimate:
    """Kullback-Leibler, the divergence of order 1, is at most that of any larger order.

    >>> conversions.kl_from_rdp(0.25, 2.0).value
    0.25
    """
    renyi, order = forms.validated(renyi=renyi, order=order)
    nats = validate.choice("unit", unit, ("nats", "bits")) == "nats"
    return forms.information(renyi, unit, "monotonicity in the order", unrounded=nats)


@conversion(
    "ldp", "kl",
    Formula("tight", f"{PROVED}; order 1 of rdp_from_ldp", rising="epsilon"),
    Formula("as_published",
            "Dwork and Rothblum, Concentrated differential privacy (2016), the mean loss of pure privacy",
            rising="epsilon", note="true, loose for large epsilon; the mean of concentrated privacy"),
)
def kl_from_ldp(epsilon: NumberLike, *, form: TightOrPublished = "tight", unit: Information = "nats") -> Estimate:
    """Largest Kullback-Leibler divergence under pure privacy: epsilon tanh(epsilon/2), of randomised response.

    As published: epsilon (e^epsilon - 1) / 2, the mean of concentrated privacy; true, and loose for large epsilon.

    >>> conversions.kl_from_ldp(1.0).value
    0.46211715...
    >>> conversions.kl_from_ldp(1.0, form="as_published").value
    0.85914091...
    """
    (epsilon,) = forms.validated(epsilon=epsilon)
    if form == "as_published":
        with np.errstate(over="ignore"):
            value = 0.5 * epsilon * np.expm1(epsilon)
        return forms.information(value, unit, "epsilon expm1(epsilon) / 2", of=epsilon)
    return forms.information(forms.randomized_response_kl(epsilon), unit, "epsilon tanh(epsilon / 2)", of=epsilon)


@conversion(
    "rdp", "dp",
    Formula("bound", CANONNE, rising="renyi", falling="delta",
            note="the least for one direction of the divergence, to 1e-6"),
    Formula("as_published", f"{MIRONOV}, proposition 3", rising="renyi", falling="order delta", note="true and larger"),
)
def dp_epsilon_from_rdp(
    renyi: NumberLike, order: ArrayLike, delta: NumberLike, *, form: BoundOrPublished = "bound"
) -> Estimate:
    """Epsilon at ``delta`` from the divergence at one order: r + ln(1 - 1/a) - ln(a delta) / (a - 1), at least 0.

    Less where (a - 1) r is small: the least that follows, 0 from the largest total variation on. At order 1 from the
    divergence of Kullback and Leibler. inf at delta = 0; r at order inf.
    As published: r + ln(1/delta) / (a - 1), which is true and larger.

    >>> conversions.dp_epsilon_from_rdp(0.5, 10.0, 1e-6).value
    1.67261...
    >>> conversions.dp_epsilon_from_rdp(0.5, 10.0, 1e-6, form="as_published").value
    2.03505...
    """
    renyi, order, delta = forms.validated(renyi=renyi, order=order, delta=delta)
    if form == "as_published":
        with np.errstate(divide="ignore", invalid="ignore"):
            of_delta = np.where(delta == 1.0, 0.0, -np.log(delta) / (order - 1.0))
            value = np.where(np.isinf(order), renyi, np.where((delta == 1.0) & (order == 1.0), renyi, renyi + of_delta))
        return forms.bounded(value, "nats", "r + ln(1/delta) / (a - 1)", unrounded=np.isinf(order) | np.isinf(value))
    value, error = _epsilon_at_one_order(renyi, order, delta)
    return forms.bounded(value, "nats", _METHOD, error=error, unrounded=np.isinf(value))


@conversion("rdp", "dp", Formula(
    "bound", CANONNE, rising="renyi", falling="delta", joint="renyi", note="least over many orders",
))
def dp_epsilon_from_rdp_curve(renyi: NumberLike, orders: ArrayLike, delta: NumberLike) -> Estimate:
    """Least epsilon at ``delta`` over many orders; ``renyi`` has the orders along its last axis.

    ``delta`` broadcasts with the other axes of ``renyi``.

    >>> import numpy as np
    >>> orders = np.arange(2, 200)
    >>> conversions.dp_epsilon_from_rdp_curve(0.05 * orders, orders, [1e-9, 1e-6]).value
    array([1.88173479, 1.47165586])
    """
    columns, orders, target = _curve(renyi, orders, "delta", delta)
    return _least_over_orders(columns, orders, target, _epsilon_at_one_order, "nats", np.inf)


@conversion("rdp", "dp", Formula("bound", CANONNE, rising="renyi", falling="epsilon"))
def dp_delta_from_rdp(renyi: NumberLike, order: ArrayLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from the divergence at one order: e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a, at most 1.

    Less where (a - 1) r is small: the least that follows, at epsilon = 0 the largest total variation.

    >>> conversions.dp_delta_from_rdp(0.5, 10.0, 2.0).value
    5.25237...e-08
    """
    renyi, order, epsilon = forms.validated(renyi=renyi, order=order, epsilon=epsilon)
    value, error = _delta_at_one_order(renyi, order, epsilon)
    return forms.bounded(value, "probability", "e^((a-1)(r - epsilon)) (1 - 1/a)^(a-1) / a", error=error, ceiling=1.0)


@conversion("rdp", "dp", Formula(
    "bound", CANONNE, rising="renyi", falling="epsilon", joint="renyi", note="least over many orders",
))
def dp_delta_from_rdp_curve(renyi: NumberLike, orders: ArrayLike, epsilon: NumberLike) -> Estimate:
    """Least delta at ``epsilon`` over many orders; ``renyi`` has the orders along its last axis.

    ``epsilon`` broadcasts with the other axes of ``renyi``.

    >>> import numpy as np
    >>> orders = np.arange(2, 200)
    >>> conversions.dp_delta_from_rdp_curve(0.05 * orders, orders, 1.5).value
    6.53663801...e-07
    """
    columns, orders, target = _curve(renyi, orders, "epsilon", epsilon)
    return _least_over_orders(columns, orders, target, _delta_at_one_order, "probability", 1.0)


def _epsilon_at_one_order(renyi: FloatArray, order: FloatArray, delta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Epsilon, at least 0, and the rounding of the terms of its sum."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = order - 1.0
        of_delta = -(np.log(delta) + np.log(order)) / step
        of_order = np.where(order < 2.0, np.log(step / order), np.log1p(-1.0 / order))  # 1 - 1 / a keeps no digits at 1
        value = np.maximum(renyi + of_order + of_delta, 0.0)
        # the divergence may be inf: then nothing but delta = 1 is promised
        value = np.where(delta == 1.0, 0.0, np.where((step == 0.0) | np.isnan(value), np.inf, value))
        value = np.where(np.isinf(order), np.where(delta == 1.0, 0.0, renyi), value)
        error = TERM_ERROR * (renyi + np.abs(of_order) + (np.abs(np.log(delta)) + np.log(order)) / step)
    error = np.where(np.isfinite(value) & np.isfinite(error), error, 0.0)
    return smaller_by_tangents(epsilon_by_tangents, value, error, renyi, order, delta)


def _delta_at_one_order(renyi: FloatArray, order: FloatArray, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Delta, at most 1, and its rounding: that of the exponent, relatively."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        step = order - 1.0
        correction = np.where(step == 0.0, 0.0, step * np.log1p(-1.0 / order))
        exponent = step * (renyi - epsilon) + correction
        value = np.where(step == 0.0, 1.0, np.minimum(np.exp(exponent) / order, 1.0))
        size = step * (np.abs(renyi) + np.abs(epsilon)) + np.abs(correction) + 4.0
        value = np.where(np.isinf(order) | np.isinf(epsilon), np.where(epsilon >= renyi, 0.0, 1.0), value)
        value = np.where(np.isinf(renyi) | np.isnan(value), 1.0, value)
        error = np.where(np.isfinite(size), TERM_ERROR * size, 1.0) * value
    error = np.where(value == 0.0, 0.0, error)
    return smaller_by_tangents(delta_by_tangents, value, error, renyi, order, epsilon)


def _curve(
    renyi: ArrayLike, orders: ArrayLike, name: str, target: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The divergences, their orders, and the target, which broadcasts with the other axes of the divergences."""
    row, columns = forms.points_and_values("orders", orders, "renyi", renyi)
    (checked,) = forms.validated(**{name: target})
    validate.broadcastable(name, checked, "renyi without its last axis", columns[..., 0])
    validate.grid(f"{name} with renyi", np.broadcast_shapes((*checked.shape, 1), columns.shape))
    return columns, row, checked


def _least_over_orders(
    columns: FloatArray, orders: FloatArray, target: FloatArray,
    at_one_order: TangentBound, unit: Unit, ceiling: float, zero: BoolArray | bool = False,
) -> Estimate:
    """The least over the last axis; 0 without rounding where ``zero``."""
    values, errors = at_one_order(columns, orders, target[..., None])
    index = np.argmin(values, axis=-1)[..., None]
    best, slack = (np.take_along_axis(array, index, axis=-1)[..., 0] for array in (values, errors))
    method = f"least over {columns.shape[-1]} orders"
    best = np.where(zero, 0.0, best)
    return forms.bounded(best, unit, method, error=slack, ceiling=ceiling, unrounded=zero | np.isinf(best))


@conversion(
    "ldp", "zcdp",
    Formula("tight", f"{STEINKE}; {PROVED}", rising="epsilon"),
    Formula("as_published", f"{BUN_STEINKE}, pure to concentrated privacy", rising="epsilon",
            note="true, loose for large epsilon"),
)
def zcdp_from_ldp(epsilon: NumberLike, *, form: TightOrPublished = "tight") -> Estimate:
    """Least rho such that pure privacy gives rho-zCDP: epsilon tanh(epsilon/2), below epsilon^2/2.

    As published: epsilon^2/2, which is true and near the least for small epsilon.

    >>> conversions.zcdp_from_ldp([0.1, 1.0, 10.0]).value
    array([4.99583750e-03, 4.62117157e-01, 9.99909204e+00])
    >>> conversions.zcdp_from_ldp(10.0, form="as_published").value
    50.0
    """
    (epsilon,) = forms.validated(epsilon=epsilon)
    if form == "as_published":
        with np.errstate(over="ignore"):
            return forms.bounded(0.5 * epsilon * epsilon, "nats", "epsilon^2 / 2", unrounded=epsilon == 0.0)
    value = forms.randomized_response_kl(epsilon)
    return forms.bounded(value, "nats", "epsilon tanh(epsilon / 2)", unrounded=epsilon == 0.0)


@conversion("gdp", "zcdp", Formula(
    "tight", f"{BUN_STEINKE}, proposition on the Gaussian mechanism", rising="separation",
))
def zcdp_from_gdp(separation: NumberLike) -> Estimate:
    """Least rho such that Gaussian privacy gives rho-zCDP: separation^2/2, that of two unit normal distributions.

    >>> conversions.zcdp_from_gdp(2.0).value
    2.0
    """
    (separation,) = forms.validated(separation=separation)
    with np.errstate(over="ignore"):
        return forms.bounded(0.5 * separation * separation, "nats", "separation^2 / 2", unrounded=separation == 0.0)


@conversion("zcdp", "kl", Formula("tight", f"{BUN_STEINKE}, definition 1.1, order 1", rising="rho"))
def kl_from_zcdp(rho: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Kullback-Leibler is the limit at order 1: at most rho, which normal distributions attain.

    >>> conversions.kl_from_zcdp(0.25).value
    0.25
    """
    (rho,) = forms.validated(rho=rho)
    nats = validate.choice("unit", unit, ("nats", "bits")) == "nats"
    return forms.information(rho, unit, "order 1", unrounded=nats)


@conversion(
    "zcdp", "dp", Formula("bound", f"{CANONNE}, at the best order", rising="rho", falling="delta"),
    Formula("as_published", f"{BUN_STEINKE}, proposition 1.3", rising="rho", falling="delta", note="true and larger"),
)
def dp_epsilon_from_zcdp(rho: NumberLike, delta: NumberLike, *, form: BoundOrPublished = "bound") -> Estimate:
    """Epsilon at ``delta`` from rho-zCDP, at the best order: least of rho a + ln(1 - 1/a) - ln(a delta) / (a - 1).

    Less where rho is small: 0 from the largest total variation on. As published: rho + 2 sqrt(rho ln(1/delta)), which
    is true and larger.

    >>> conversions.dp_epsilon_from_zcdp(0.5, [1e-9, 1e-6]).value
    array([6.47407002, 5.22153434])
    >>> conversions.dp_epsilon_from_zcdp(0.5, 1e-6, form="as_published").value
    5.75652...
    """
    rho, delta = forms.validated(rho=rho, delta=delta)
    if form == "as_published":
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(rho == 0.0, 0.0, 2.0 * np.sqrt(rho) * np.sqrt(-np.log(delta)))
            value = rho + np.where(delta == 1.0, 0.0, spread)
        return forms.bounded(value, "nats", "rho + 2 sqrt(rho ln(1/delta))", unrounded=(rho == 0.0) | np.isinf(value))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        budget = -np.log(delta)
        steps = (np.minimum(np.sqrt(x) / np.sqrt(rho), np.expm1(np.minimum(x, 660.0))) for x in (budget, 0.5 * budget))
        high, low = (np.clip(step, _LEAST_STEP, _MOST_STEP) for step in steps)
        best = _bisect_log(low, high, lambda t: rho * t * t + np.log1p(t) >= budget)
    return _least_under_zcdp(rho, best, delta, _epsilon_at_one_order, "nats", np.inf, (rho == 0.0) | (delta == 1.0))


@conversion("zcdp", "dp", Formula("bound", f"{CANONNE}, at the best order", rising="rho", falling="epsilon"))
def dp_delta_from_zcdp(rho: NumberLike, epsilon: NumberLike) -> Estimate:
    """Delta at ``epsilon`` from rho-zCDP, at the best order: least of e^((a-1)(rho a - epsilon)) (1 - 1/a)^(a-1) / a.

    Less where rho is small: at most the largest total variation.

    >>> conversions.dp_delta_from_zcdp(0.5, [1.0, 5.0]).value
    array([2.15729916e-01, 2.89611824e-06])
    """
    rho, epsilon = forms.validated(rho=rho, epsilon=epsilon)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        low = np.full_like(rho, _LEAST_STEP)
        high = np.clip(np.maximum(1.0, 0.5 * (epsilon + 2.0) / rho), 1.0, _MOST_STEP)
        best = _bisect_log(low, high, lambda t: (2.0 * t + 1.0) * rho - np.log1p(1.0 / t) >= epsilon)
    return _least_under_zcdp(rho, best, epsilon, _delta_at_one_order, "probability", 1.0, rho == 0.0)


def _least_under_zcdp(
    rho: FloatArray, best: FloatArray, target: FloatArray, at_one_order: TangentBound, unit: Unit, ceiling: float,
    zero: BoolArray,
) -> Estimate:
    """The least over the best order, 1 + ``best``, and some between 1 and it; the divergence is rho times the order."""
    smaller = np.minimum(best, _MOST_TANGENT_STEP)[..., None] * _STEP_FRACTIONS
    orders = 1.0 + np.concatenate([best[..., None], smaller], axis=-1)
    with np.errstate(over="ignore", invalid="ignore"):
        renyi = next_above(rho[..., None] * orders)
    return _least_over_orders(renyi, orders, target, at_one_order, unit, ceiling, zero)


def _bisect_log(low: FloatArray, high: FloatArray, beyond: Callable[[FloatArray], BoolArray]) -> FloatArray:
    """Where ``beyond`` turns true between low and high, by bisection of the logarithm."""
    left, right = bisect(lambda log: beyond(np.exp(log)), np.log(low), np.log(high), _HALVINGS)
    return np.asarray(np.exp(0.5 * (left + right)))
