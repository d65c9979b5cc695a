"""Integrals of mixtures by Gauss-Legendre panels with proved errors: the method behind KL, JS, Renyi and entropy.

Notation: ``sum`` and its ``scale`` give the integral ``e^scale sum``; ``truncation`` bounds what discretisation and the
omitted tails contribute, ``rounding`` the effect of rounding at every node; both are absolute errors of ``sum``.

One method serves the estimate and the proof. It halves the real line until every panel either holds a negligible mass
or is integrated with a proved error (Chebyshev coefficients on a Bernstein ellipse on which the densities have no
zero). The rounding bound is a running one. If it is too wide, log(p/q) is evaluated again from p - q in double-double
arithmetic.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...distributions import GaussianMixture
from ...estimate import Estimate, Kind
from ...kernels import _quadrature
from ...numerics import LARGEST_DOUBLE, FloatArray, next_above, next_below

__all__ = [
    "NO_DEADLINE", "STOPPED", "TIME_SPENT", "Deadline", "Integral", "all_single_gaussians", "enclosing_estimate",
    "identical", "integrate", "kernel_arrays", "mass_excess", "rescaled",
]  # fmt: skip

Arrays = tuple[FloatArray, ...]
# bound: tested by enclosures/test_integrals - what rounding costs, as a fraction of its bound, where the kind is
#    heuristic; tested on every family of that module
_TYPICAL_ROUNDING_FRACTION = 1 / 8
# bound: none - half the relative width aimed at, 1e-12, with some room; sharper arithmetic is tried beyond it
_TARGET_WIDTH = 4e-13
# bound: none - relative discretisation error at which panels are no longer halved
_TARGET_TRUNCATION = 1e-14
# bound: proved - above all that lies beyond 41 standard deviations of every component, e^-840
_TRUNCATED_TAILS = 1e-300
_MAX_EXPONENTIALS = 1_000_000_000  # some seconds; only thousands of components of as many scales spend this budget
_MAX_UNSCALED_EXPONENT = 16  # standard deviations around 2^16 or 2^-16 cost no accuracy
_SHORT = 64  # components up to which Python's own loops are faster than those of NumPy
_MAX_EXPONENT = 990  # means and standard deviations stay below 2^990 when they are rescaled
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


class Integral(NamedTuple):
    """One integral ``e^scale sum`` with its two error bounds; ``method`` tells whether double-doubles were used."""

    scale: float
    sum: float
    truncation: float
    rounding: float
    kind: Kind
    method: str
    cost: Mapping[str, Any]

    @property
    def error(self) -> float:
        """Absolute error of ``sum``: proved, or estimated where ``kind`` says so."""
        fraction = _TYPICAL_ROUNDING_FRACTION if self.kind == "heuristic" else 1.0
        return 1.0000001 * (self.truncation + fraction * self.rounding) + _TRUNCATED_TAILS


def mass_excess(mixture: GaussianMixture) -> float:
    """The sum of the weights less 1, rounded once."""
    return math.fsum([*mixture.weights.tolist(), -1.0])


def all_single_gaussians(*mixtures: GaussianMixture) -> bool:
    """Whether each is one Gaussian of mass 1, which the closed forms serve."""
    return all(len(p) == 1 and p.weights[0] == 1.0 for p in mixtures)


def identical(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether both hold equal arrays."""
    return p is q or (p.weights.shape == q.weights.shape and p == q)


def rescaled(*mixtures: GaussianMixture) -> tuple[int, tuple[GaussianMixture, ...]]:
    """The exponent k and the mixtures in units of 2^k, exactly, k such that standard deviations lie around 1."""
    ranges = [_range_of(p) for p in mixtures]
    low, high = (math.frexp(s)[1] for s in (min(least for least, _, _ in ranges), max(most for _, most, _ in ranges)))
    farthest = math.frexp(max(far for _, _, far in ranges))[1]
    k = min(max((low + high) // 2, farthest - _MAX_EXPONENT, high - _MAX_EXPONENT), low + _MAX_EXPONENT)
    if abs(k) <= _MAX_UNSCALED_EXPONENT:
        return 0, mixtures
    return k, tuple(GaussianMixture(p.weights, np.ldexp(p.means, -k), np.ldexp(p.sigmas, -k)) for p in mixtures)


def _range_of(p: GaussianMixture) -> tuple[float, float, float]:
    """The least and the largest standard deviation, and the size of the farthest mean."""
    if len(p) <= _SHORT:
        s, m = p.sigmas.tolist(), p.means.tolist()
        return min(s), max(s), max(max(m), -min(m))
    return float(p.sigmas.min()), float(p.sigmas.max()), float(np.abs(p.means).max())


def integrate(
    kind: str, p: GaussianMixture | None, q: GaussianMixture | None, *, certified: bool, b: float = 0.0,
    half_width: float = 0.0, max_panels: int | None = None, deadline: Deadline = NO_DEADLINE,
) -> Integral | None:  # fmt: skip
    """The integral of one integrand of csrc/line/fp_integrand.h; None when p and q turn out to be the same measure.

    ``b`` and ``half_width`` are parameters of the Renyi integrands: the order less 1, and the half-width of the
    interval that holds their mass. At the ``deadline`` the bounds are those that were proved by then.
    """
    if max_panels is None:
        max_panels = 100_000 + 100 * sum(len(mixture) for mixture in (p, q) if mixture is not None)

    def run(ratio: tuple[Arrays, Arrays] | None) -> Integral:
        status, scale, total, truncation, rounding, panels, evaluations = _quadrature.integral(
            _quadrature.KINDS[kind], kernel_arrays(p), kernel_arrays(q), ratio, b, half_width, _TARGET_TRUNCATION,
            max_panels, _MAX_EXPONENTIALS, deadline.expiry,
        )  # fmt: skip
        cost: dict[str, Any] = {"panels": panels, "evaluations": evaluations}
        method = "gauss-legendre panels" + ("" if ratio is None else ", double-double ratio")
        if status == _quadrature.BUDGET_SPENT:
            method += ", budget spent"
        elif status == _quadrature.TIME_SPENT:
            method, cost = method + TIME_SPENT, cost | STOPPED
        if not math.isfinite(total + truncation + rounding):
            total, truncation, rounding = (total if math.isfinite(total) else 0.0), math.inf, 0.0
        return Integral(scale, total, truncation, rounding, "certified", method, cost)

    result = run(None)
    allowed = _TARGET_WIDTH * abs(result.sum)
    if kind == "renyi" and result.sum > 0:  # the logarithm of this integral is the answer
        allowed *= abs(result.scale + math.log(result.sum))
    error = result.truncation + result.rounding
    has_sharper_form = kind in ("kl", "js", "renyi small") and "spent" not in result.method
    typical_error = result.truncation + _TYPICAL_ROUNDING_FRACTION * result.rounding
    if error > allowed and has_sharper_form and result.truncation < math.inf and (certified or typical_error > allowed):
        assert p is not None
        assert q is not None
        difference = _signed_difference(p, q)
        if difference is None:
            return None
        again = run((difference, (q.weights, np.zeros(len(q)), q.means, q.sigmas)))
        result = min(result, again, key=lambda bounds: bounds.truncation + bounds.rounding)
    # Proved bounds are used, and named so, whenever they are narrow enough or were asked for.
    if certified or result.truncation + result.rounding <= allowed:
        return result
    return result._replace(kind="heuristic")


def enclosing_estimate(
    value: float, error: float, integral: Integral, *, floor: float = -math.inf, ceiling: float = math.inf
) -> Estimate:
    """value +- error in nats, moved outward by one double, within the possible range."""
    error += 4 * math.ulp(value)
    lower = max(floor, next_below(value - error))
    upper = min(ceiling, next_above(value + error))
    if not lower < value < upper:  # nothing prefers one end: take the middle
        value = lower + 0.5 * (upper - lower) if upper < math.inf else lower
        value = math.inf if value == LARGEST_DOUBLE else value
    return Estimate(value, lower, upper, kind=integral.kind, unit="nats", method=integral.method, cost=integral.cost)


def kernel_arrays(mixture: GaussianMixture | None) -> Arrays | None:
    """Weights, means and standard deviations, as the kernels take them."""
    return None if mixture is None else (mixture.weights, mixture.means, mixture.sigmas)


def _signed_difference(p: GaussianMixture, q: GaussianMixture) -> Arrays | None:
    """The components of p - q, equal ones merged, weights as hi + lo; None when nothing is left."""
    from fractions import Fraction  # rarely needed, and slow to load

    terms: dict[tuple[float, float], list[float]] = {}
    for mixture, sign in ((p, 1.0), (q, -1.0)):
        for w, m, s in zip(mixture.weights.tolist(), mixture.means.tolist(), mixture.sigmas.tolist(), strict=True):
            terms.setdefault((m, s), []).append(sign * w)
    rows = []
    for (m, s), weights in terms.items():
        high = math.fsum(weights)
        if high:
            rows.append((high, float(sum(map(Fraction, weights)) - Fraction(high)), m, s))
    if not rows:
        return None
    return tuple(np.array(column) for column in zip(*rows, strict=True))
