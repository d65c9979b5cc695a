"""Integrals of mixtures by Gauss-Legendre panels with proved errors: the method behind KL, JS, Renyi and entropy.

Notation: ``sum`` and its ``scale`` give the integral ``e^scale sum``; ``truncation`` bounds what discretisation and the
cut tails leave out, ``rounding`` the effect of rounding at every node; both are absolute errors of ``sum``.

One engine serves the estimate and the proof. It halves the line until every panel either holds a negligible mass or is
integrated with a proved error (Chebyshev coefficients on a Bernstein ellipse on which the densities have no zero). The
rounding bound is a running one. If it is too wide, log(p/q) is evaluated again from p - q in double-double arithmetic.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture
from ...estimate import Estimate, Kind
from ...kernels import _quadrature

__all__ = [
    "NO_DEADLINE",
    "STOPPED",
    "TIME_SPENT",
    "Deadline",
    "Integral",
    "all_single_gaussians",
    "enclosing_estimate",
    "identical",
    "integrate",
    "kernel_arrays",
    "mass_excess",
    "rescaled",
]  # fmt: skip

Arrays = tuple[NDArray[np.float64], ...]
# what rounding really costs, as a part of its bound; tested on every family of tests/enclosures/test_integrals.py
# bound: tested by enclosures/test_integrals - what rounding costs, as a part of its bound, in answers called heuristic
_TYPICAL_ROUNDING_FRACTION = 1 / 8
# bound: none - the width aimed at
_TARGET_WIDTH = 4e-13  # half the relative width aimed at, with some room
# bound: none - the discretisation error aimed at
_TARGET_TRUNCATION = 1e-14  # relative discretisation error
# bound: proved - above what 41 standard deviations leave out, e^-840
_TRUNCATED_TAILS = 1e-300  # more than all that lies beyond 41 standard deviations of every component
_MAX_EXPONENTIALS = 1_000_000_000  # exponentials, some seconds: a budget that only thousands of components at odds spend
_MAX_UNSCALED_EXPONENT = 16  # powers of two that cost no accuracy
TIME_SPENT = ", time spent"  # what a method says, and the cost, of an answer that max_seconds cut short
STOPPED: dict[str, Any] = {"stopped": "max_seconds", "repeatable": False}


class Deadline(NamedTuple):
    """The moment at which a computation stops and answers with bounds that are true, but wider.

    ``at`` is a time of ``time.monotonic``, in seconds; infinity means that there is no deadline.
    """

    at: float = math.inf

    @property
    def expired(self) -> bool:
        """Whether the time is spent."""
        return time.monotonic() > self.at


NO_DEADLINE = Deadline()


class Integral(NamedTuple):
    """One integral with its two error bounds and whether double-doubles were used."""

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
        usual = _TYPICAL_ROUNDING_FRACTION if self.kind == "heuristic" else 1.0
        return 1.0000001 * (self.truncation + usual * self.rounding) + _TRUNCATED_TAILS


def mass_excess(law: GaussianMixture) -> float:
    """The sum of the weights less 1, rounded once."""
    return math.fsum([*law.weights.tolist(), -1.0])


def all_single_gaussians(*laws: GaussianMixture) -> bool:
    """Whether all are one normal law of mass 1, which the closed forms serve."""
    return all(len(law) == 1 and law.weights[0] == 1.0 for law in laws)


def identical(p: GaussianMixture, q: GaussianMixture) -> bool:
    """Whether both hold the same arrays."""
    return p is q or p == q


def rescaled(*laws: GaussianMixture) -> tuple[int, tuple[GaussianMixture, ...]]:
    """The laws in units of 2^k, exactly, with k such that their standard deviations lie around 1."""
    exponents = [math.frexp(float(s))[1] for law in laws for s in (law.sigmas.min(), law.sigmas.max())]
    farthest = max(math.frexp(float(np.abs(law.means).max()))[1] for law in laws)
    k = (min(exponents) + max(exponents)) // 2
    k = min(max(k, farthest - 990, max(exponents) - 990), min(exponents) + 990)
    if abs(k) <= _MAX_UNSCALED_EXPONENT:
        return 0, laws
    return k, tuple(
        GaussianMixture(law.weights, np.ldexp(law.means, -k), np.ldexp(law.sigmas, -k)) for law in laws
    )  # fmt: skip


def integrate(
    kind: str, p: GaussianMixture | None, q: GaussianMixture | None, *, certified: bool, b: float = 0.0,
    half_width: float = 0.0, max_panels: int | None = None, deadline: Deadline = NO_DEADLINE,
) -> Integral | None:  # fmt: skip
    """The integral of one integrand of csrc/fp_integrand.h; None when p and q turn out to be the same law.

    At the ``deadline``, by ``time.monotonic``, it stops with bounds that are true, and wide.
    """
    laws = [law for law in (p, q) if law is not None]
    if max_panels is None:
        max_panels = 100_000 + 100 * sum(len(law) for law in laws)

    def run(ratio: tuple[Arrays, Arrays] | None) -> Integral:
        status, scale, total, truncation, rounding, panels, evaluations = _quadrature.integral(
            _quadrature.KINDS[kind], kernel_arrays(p), kernel_arrays(q), ratio, b, half_width, _TARGET_TRUNCATION, max_panels, _MAX_EXPONENTIALS, deadline.at
        )
        cost: dict[str, Any] = {"panels": panels, "evaluations": evaluations}
        method = "gauss-legendre panels" + ("" if ratio is None else ", double-double ratio")
        if status == _quadrature.BUDGET_SPENT:
            method += ", budget spent"
        elif status == _quadrature.TIME_SPENT:
            method, cost = method + TIME_SPENT, cost | STOPPED
        if not math.isfinite(total + truncation + rounding):
            total, truncation, rounding = (total if math.isfinite(total) else 0.0), math.inf, 0.0
        return Integral(scale, total, truncation, rounding, "certified", method, cost)

    found = run(None)
    allowed = _TARGET_WIDTH * abs(found.sum)
    if kind == "renyi" and found.sum > 0:
        allowed *= abs(found.scale + math.log(found.sum))
    sharper = kind in ("kl", "js", "renyi small") and "spent" not in found.method and found.truncation < math.inf
    if found.truncation + found.rounding <= allowed or not sharper:
        return _with_kind(found, certified, allowed)
    if not certified and found.truncation + _TYPICAL_ROUNDING_FRACTION * found.rounding <= allowed:
        return _with_kind(found, certified, allowed)
    assert p is not None
    assert q is not None
    difference = _signed_difference(p, q)
    if difference is None:
        return None
    again = run((difference, (q.weights, np.zeros(len(q)), q.means, q.sigmas)))
    better = again if again.truncation + again.rounding < found.truncation + found.rounding else found
    return _with_kind(better, certified, allowed)


def _with_kind(found: Integral, certified: bool, allowed: float) -> Integral:
    """Proved bounds are used, and named so, whenever they are narrow enough or were asked for."""
    if certified or found.truncation + found.rounding <= allowed:
        return found
    return found._replace(kind="heuristic")


def enclosing_estimate(
    value: float, error: float, found: Integral, *, floor: float = -math.inf, ceiling: float = math.inf,
) -> Estimate:  # fmt: skip
    """value +- error in nats, outward by an ulp, cut to the possible range."""
    error += 4 * math.ulp(value)
    lower = max(floor, math.nextafter(value - error, -math.inf))
    upper = min(ceiling, math.nextafter(value + error, math.inf))
    if not lower < value < upper:  # one end is as good as the other
        value = lower + 0.5 * (upper - lower) if upper < math.inf else lower
        value = math.inf if value == sys.float_info.max else value
    return Estimate(
        value, lower, upper, kind=found.kind, unit="nats", method=found.method,
        cost=found.cost,
    )  # fmt: skip


def kernel_arrays(law: GaussianMixture | None) -> Arrays | None:
    """What the kernels take."""
    return None if law is None else (law.weights, law.means, law.sigmas)


def _signed_difference(p: GaussianMixture, q: GaussianMixture) -> Arrays | None:
    """The components of p - q, equal ones merged, weights as hi + lo; None when nothing is left."""
    from fractions import Fraction  # rarely needed, and slow to load

    terms: dict[tuple[float, float], list[float]] = {}
    for law, sign in ((p, 1.0), (q, -1.0)):
        for w, m, s in zip(law.weights.tolist(), law.means.tolist(), law.sigmas.tolist(), strict=True):
            terms.setdefault((m, s), []).append(sign * w)
    rows = []
    for (m, s), weights in terms.items():
        high = math.fsum(weights)
        if high:
            rows.append((high, float(sum(map(Fraction, weights)) - Fraction(high)), m, s))
    if not rows:
        return None
    return tuple(np.array(column) for column in zip(*rows, strict=True))
