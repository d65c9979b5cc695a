"""Integrals of mixtures with proved errors, by the kernel of rows: the method behind KL, JS, Renyi and entropy.

The kernel takes the trapezoidal rule for one standard deviation (proof at the head of csrc/line/fp_one_sigma_solver.h),
or else halves the real line until every panel either holds a negligible mass or is integrated with a proved error
(csrc/line/fp_quadrature_solver.h). The rounding bound is a running one. If it is too wide, log(p/q) is evaluated again
from p - q in double-double arithmetic. What it does with a row is at the head of
csrc/line/fp_mixture_integrals_solver.h.
"""

from __future__ import annotations

import functools
import math
import time
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ...base.estimate import Estimate, Kind
from ...distributions import GaussianMixture
from ...kernels import _quadrature

# bound: none - exponentials of one integral, some seconds; only thousands of components of as many scales spend them
MAX_EXPONENTIALS = 1_000_000_000
_MAX_UNSCALED_EXPONENT = 16  # standard deviations around 2^16 or 2^-16 cost no accuracy
_MAX_EXPONENT = 990  # means and standard deviations stay below 2^990 when they are rescaled
DISAGREE = ", widened to bounds that disagree"  # of the ``method`` where two enclosures contradict each other
TIME_SPENT = ", time spent"  # end of the ``method`` of an answer that max_seconds cut short
STOPPED: dict[str, Any] = {"stopped": "max_seconds", "repeatable": False}  # its ``cost``


class Deadline(NamedTuple):
    """The moment at which a computation stops and answers with bounds that are true, but wider.

    ``expiry`` is a time of ``time.monotonic``, in seconds; infinity means that there is no deadline.
    """

    expiry: float = math.inf

    @property
    def expired(self) -> bool:
        """Whether the time is spent."""
        return time.monotonic() > self.expiry


NO_DEADLINE = Deadline()  # of computations that may take all the time they need


def all_single_gaussians(*mixtures: GaussianMixture) -> bool:
    """Whether each is one Gaussian of mass 1, which the closed forms serve."""
    return all(len(p) == 1 and p.weights[0] == 1.0 for p in mixtures)


def identical(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether both hold equal arrays, or do once components of one mean and one standard deviation are joined."""
    if p is q or (p.weights.shape == q.weights.shape and p == q):
        return True
    places = [list(zip(side.means.tolist(), side.sigmas.tolist(), strict=True)) for side in (p, q)]
    if set(places[0]) != set(places[1]):
        return False
    joined: list[dict[tuple[float, float], Fraction]] = [{}, {}]
    for weights, side, keys in zip(joined, (p, q), places, strict=True):
        for key, weight in zip(keys, side.weights.tolist(), strict=True):
            weights[key] = weights.get(key, Fraction(0)) + Fraction(weight)
    return joined[0] == joined[1]


def rescaled(*mixtures: GaussianMixture) -> tuple[GaussianMixture, ...]:
    """The mixtures in units of a power of two, exactly, such that standard deviations lie around 1."""
    low = math.frexp(min(float(p.sigmas.min()) for p in mixtures))[1]
    high = math.frexp(max(float(p.sigmas.max()) for p in mixtures))[1]
    farthest = math.frexp(max(float(np.abs(p.means).max()) for p in mixtures))[1]
    k = min(max((low + high) // 2, farthest - _MAX_EXPONENT, high - _MAX_EXPONENT), low + _MAX_EXPONENT)
    if abs(k) <= _MAX_UNSCALED_EXPONENT:
        return mixtures
    return tuple(GaussianMixture(p.weights, np.ldexp(p.means, -k), np.ldexp(p.sigmas, -k)) for p in mixtures)


def quantity_and_status(
    quantity: str, p: GaussianMixture, q: GaussianMixture | None = None, *, deadline: Deadline = NO_DEADLINE,
    **options: Any,
) -> tuple[Estimate, int]:
    """A quantity in nats with its bounds, and the status of the kernel: whether other means may narrow them.

    Options are ``certified``, and of Renyi divergences ``order`` and ``half_width``: half the width of the interval
    that holds the mass of the integral, where it was computed exactly, of mixtures that were rescaled. At the
    ``deadline`` the bounds are those that were proved by then.
    """
    columns = (p.weights, p.means, p.sigmas) + (() if q is None else (q.weights, q.means, q.sigmas))
    return estimate_and_status(quantity, columns, deadline=deadline, **options)


def estimate_and_status(
    quantity: str, columns: tuple[Any, ...], *, deadline: Deadline, **options: Any
) -> tuple[Estimate, int]:
    """`quantity_and_status` from the columns that the kernel takes."""
    value, lower, upper, status, bits, panels, evaluations = _quadrature.row_integral(
        _quadrature.KINDS[quantity], *columns, deadline=deadline.expiry, max_work=MAX_EXPONENTIALS, **options
    )
    kind, method = kind_and_method(bits)
    cost: dict[str, Any] = {"panels": panels, "evaluations": evaluations} if evaluations else {}
    if bits & _quadrature.TIME_SPENT:
        cost |= {"panels": panels, "evaluations": evaluations} | STOPPED
    return Estimate(value, lower, upper, kind=kind, unit="nats", method=method, cost=cost), status


@functools.cache
def kind_and_method(bits: int) -> tuple[Kind, str]:
    """``kind`` and ``method`` of an answer from the bits of the kernel."""
    for bit, text in (
        (_quadrature.CLOSED_FORM, "closed form"), (_quadrature.EQUAL, "equal distributions"),
        (_quadrature.DIVERGES, "tails"), (_quadrature.ONE_INPUT, "one input"),
    ):
        if bits & bit:
            return "exact", text
    names = {
        _quadrature.PANELS: "gauss-legendre panels", _quadrature.TRAPEZOID: "trapezoidal rule",
        _quadrature.BINOMIAL_SUM: "binomial sum", _quadrature.PANEL_BOUNDS: "bounds on panels",
        _quadrature.LOW_SIGNAL: "half the variance over that of the noise",
        _quadrature.RATIO: "double-double ratio", _quadrature.BUDGET_SPENT: "budget spent",
        _quadrature.BOUNDS_DISAGREE: DISAGREE.removeprefix(", "),
    }
    method = ", ".join(text for bit, text in names.items() if bits & bit)
    method += TIME_SPENT if bits & _quadrature.TIME_SPENT else ""
    return ("heuristic" if bits & _quadrature.HEURISTIC else "certified"), method
