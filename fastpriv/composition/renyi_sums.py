"""Renyi divergences of compositions: sums of those of the releases.

Notation: of order a > 1 the divergence of P from Q is log M / (a - 1), M = E_P e^((a - 1) L), and of order 1 it is
E_P L, the Kullback-Leibler divergence. Densities within 1 +- g of those given change log M by at most a g_p + (a - 1)
g_q, to first order, and E_P L by at most (g_p + g_q) (1 + E_P |L|), with E_P |L| <= K + sqrt(2 K), K = E_P L, by
Pinsker's inequality. A pair that dominates another one has at least its divergences.

Source: van Erven and Harremoes 2014, theorem 28; Mironov 2017, propositions 1 and 6; Pinsker 1964.
"""

# bounds: proved - rounding of a sum, of its factors, and of d = shift / scale as doubles

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.numerics import UNIT_ROUNDOFF
from ..divergences import renyi_divergence
from .steps import AtomStep, BoundingSteps, LaplaceStep, LossStep, MixtureStep, Step

__all__ = ["renyi_bounds"]

# bound: proved - logarithms, exponentials and products in extended precision, for each unit of an exponent
_EXTENDED_ROUNDING = 16 * float(np.finfo(np.longdouble).eps)
_SECOND_ORDER = 1.01  # bound: proved - times a gap of at most 1e-9: its logarithm
_SERIES_TERMS = 24  # bound: proved - of e^x - 1 - x for |x| < 1/2: the next one is below 2^-24 / 26!

Bounds = tuple[float, float]


def renyi_bounds(bounding: BoundingSteps, order: float) -> tuple[float, float, str]:
    """Lower and upper bound of the divergence of a finite order of at least 1, and what they rest on."""
    low, high, method = _of_steps(bounding.above, order)
    if bounding.below:
        low = max(_of_steps(steps, order)[0] for steps in bounding.below)
        method = f"{method}, between two compositions"
    return min(low, high), high, method


def _of_steps(steps: Sequence[Step], order: float) -> tuple[float, float, str]:
    low = high = 0.0
    method = "sum over all releases"
    for step in steps:
        if isinstance(step, MixtureStep):
            found = renyi_divergence(step.p, step.q, order, certified=True)
            least, most = float(found.lower), float(found.upper)
        elif isinstance(step, LaplaceStep):
            least, most = _of_laplace(step.shift / step.scale, order)
        elif isinstance(step, AtomStep):
            least, most = _of_atoms(step, order)
        elif isinstance(step, LossStep):
            least, most = _of_losses(step, order)
        else:
            least, most = 0.0, math.inf
            method = "nothing is known of releases of which only curves are given"
        if most < math.inf:
            gap = _gap(step, order, most)
            least, most = max(0.0, least - gap), most + gap
        elif least == math.inf:
            method = "infinite losses, or too large ones for a double"
        low, high = low + step.count * least, high + step.count * most
    rounding = 4 * (len(steps) + 1) * UNIT_ROUNDOFF
    low = low * (1 - rounding) if low < math.inf else low
    return low, high * (1 + rounding), method


def _gap(step: Step, order: float, most: float) -> float:
    """What the gaps of a step may change of a finite divergence of it."""
    p_gap, q_gap = getattr(step, "p_gap", 0.0), getattr(step, "q_gap", 0.0)
    if order > 1.0:
        return _SECOND_ORDER * (order * p_gap + (order - 1.0) * q_gap) / (order - 1.0)
    return _SECOND_ORDER * (p_gap + q_gap) * (1.0 + most + math.sqrt(2.0 * most))


def _outward(value: Any, error: Any) -> Bounds:
    """A number in extended precision with its absolute error, as doubles."""
    if not math.isfinite(float(value)):
        return (math.inf, math.inf) if value > 0 else (0.0, math.inf)
    low, high = (float(value + sign * error) for sign in (-1, 1))
    return max(0.0, math.nextafter(low, -math.inf)), max(0.0, math.nextafter(high, math.inf))


def _of_laplace(ratio: float, order: float) -> Bounds:
    """With h(x) = e^x - 1 - x: K = h(-d) and M - 1 = (a h((a - 1) d) + (a - 1) h(-a d)) / (2 a - 1), d = shift / scale.

    Both terms are positive: a small divergence keeps its digits.
    """
    d, a = np.longdouble(ratio), np.longdouble(order)
    if order == 1.0:
        value = _second_remainder(-d)
    elif (a - 1) * d < 1:
        value = np.log1p((a * _second_remainder((a - 1) * d) + (a - 1) * _second_remainder(-a * d)) / (2 * a - 1))
        value /= a - 1
    else:
        value = d + (np.log(a / (2 * a - 1)) + np.log1p((a - 1) / a * np.exp(-(2 * a - 1) * d))) / (a - 1)
    relative = 4 * UNIT_ROUNDOFF + 8 * _EXTENDED_ROUNDING  # of d = shift / scale, of which K has at most the square
    return _outward(value, relative * value)


def _second_remainder(x: Any) -> Any:
    """e^x - 1 - x in extended precision, to a few units of rounding."""
    if abs(x) >= 0.5:
        return np.expm1(x) - x
    total = np.longdouble(1)
    for n in range(_SERIES_TERMS + 2, 2, -1):
        total = 1 + total * x / n
    return 0.5 * x * x * total


def _of_atoms(step: AtomStep, order: float) -> Bounds:
    used = step.p > 0.0
    p, q = step.p[used].astype(np.longdouble), step.q[used].astype(np.longdouble)
    if (q == 0.0).any():
        return math.inf, math.inf
    return _of_sum(p, np.log(p) - np.log(q), np.abs(np.log(p)) + np.abs(np.log(q)), order)


def _of_losses(step: LossStep, order: float) -> Bounds:
    loss = step.losses
    if loss.infinity_mass > 0.0:
        return math.inf, math.inf
    losses = (loss.first + np.flatnonzero(loss.masses)) * np.longdouble(loss.interval)
    return _of_sum(loss.masses[loss.masses > 0.0].astype(np.longdouble), losses, np.abs(losses), order)


def _of_sum(p: Any, losses: Any, sizes: Any, order: float) -> Bounds:
    """From probabilities and losses whose rounding is relative to ``sizes``; log M relative to 1."""
    terms = len(p) * float(np.finfo(np.longdouble).eps)
    if order == 1.0:
        return _outward((p * losses).sum(), (_EXTENDED_ROUNDING + terms) * (p * sizes).sum())
    exponents = np.log(p) + (order - 1.0) * losses
    top = exponents.max()
    value = top + np.log(np.exp(exponents - top).sum())
    error = terms + _EXTENDED_ROUNDING * (1 + abs(top) + np.max(np.abs(np.log(p)) + abs(order - 1.0) * sizes))
    return _outward(value / (order - 1.0), error / (order - 1.0))
