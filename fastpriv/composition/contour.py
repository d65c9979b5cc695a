"""Composition by sums along a contour: delta(epsilon) and the tail of the loss, with proof on both sides.

Notation: S is the sum of all losses under P, M_i(z) = E_P e^(z L_i) of step i, K = sum count_i log M_i. For t > 0

    delta(epsilon) = (1 / 2 pi i) integral over Re z = t of exp(K(z) - epsilon z) / (z (z + 1)) dz,

which the kernel sums by the trapezoidal rule (``csrc/composition/fp_contour_solver.h``, with the proofs). It needs
one step at least whose M falls along the contour: a step of Gaussian mixtures, or many of Laplace noise.
"""

# bounds: none - the default of what the sums leave out, which their bounds contain

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from ..base.numerics import FloatArray
from ..distributions import GaussianMixture
from ..kernels import _contour
from .log_bounds import LogBounds
from .steps import AtomStep, LaplaceStep, MixtureStep, Step

__all__ = ["contour_bounds", "contour_tilts"]

# The numbers of the quantities in the kernel
_QUANTITIES = {"delta": 0, "tail": 1, "lower": 2}


def contour_bounds(
    steps: Sequence[Step],
    epsilon: FloatArray,
    quantity: Literal["delta", "tail", "lower"] = "delta",
    *,
    cut: float = 1e-14,
    slack: float = 0.0,
) -> LogBounds | None:
    """Logarithms of delta, of the tail e^epsilon Q(S > epsilon), or of P(S <= epsilon), of a composition.

    None is returned where a step has no such moments. ``epsilon`` has shape (n,) and entries >= 0, or any for the lower
    tail. The tail is minus the derivative of delta. With ``slack`` the bounds hold for all epsilons within it; they are
    void where that asks for several contours. ``cut`` is what the sums leave out,
    relative to the value, which the bounds contain.
    What is computed for one epsilon serves others near it, also in later calls; the result at an epsilon does not
    depend on the others.

    **Accuracy.** The bounds contain the truth: tests/enclosures/test_contour.py. Their relative width is about 1e-12
    for up to 1e4 steps and 1e-10 for 1e6; where rare large losses rule delta, as of Poisson samples at small rates,
    1e-11 .. 1e-9 down to log delta of about -100 (tests/enclosures/test_rare_losses.py). Just below the largest loss
    of a bounded pair of one sigma it is below 1e-9 down to log delta of -1000 for 10 to 1e4 steps.
    """
    composition = _composition(tuple(steps), cut)
    if composition is None:
        return None
    levels = np.ascontiguousarray(epsilon, dtype=np.float64)
    rows, cost = composition.bounds(_QUANTITIES[quantity], levels, slack)
    value, lower, upper = (np.ascontiguousarray(column) for column in rows.T)
    return LogBounds(value, lower, upper, {"nodes": cost[0], "frequencies": cost[1], "tables": cost[2]}, "contour sum")


def contour_tilts(steps: Sequence[Step], epsilon: FloatArray) -> FloatArray | None:
    """The t of the saddle point of delta at each epsilon, roughly; None where a step has no such moments."""
    composition = _composition(tuple(steps))
    return None if composition is None else composition.tilts(np.ascontiguousarray(epsilon, dtype=np.float64))


@lru_cache(maxsize=16)
def _composition(steps: tuple[Step, ...], cut: float = 1e-14) -> _contour.ContourSums | None:
    """The kernel's object, or None where a step is of another form."""
    composition = _contour.ContourSums(len(steps), cut)
    for step in steps:
        if step.count == 0 or (isinstance(step, MixtureStep) and step.p == step.q):
            continue
        if not _add(composition, step):
            return None
    return composition


def _add(composition: _contour.ContourSums, step: Step) -> bool:
    if isinstance(step, MixtureStep):
        sides = [_distinct_components(side) for side in (step.p, step.q)]
        excess = (_excess(side[0]) for side in sides)
        return bool(composition.add_mixtures(step.count, *sides[0], *sides[1], *excess))
    if isinstance(step, LaplaceStep):
        return step.shift == 0.0 or bool(composition.add_laplace(step.count, step.scale, step.shift))
    if isinstance(step, AtomStep) and not np.any((step.q == 0.0) & (step.p > 0.0)):
        kept = step.p > 0.0
        p, q = np.ascontiguousarray(step.p[kept]), np.ascontiguousarray(step.q[kept])
        return bool(composition.add_atoms(step.count, p, q, _excess(p)))
    return False


def _excess(weights: FloatArray) -> float:
    return math.fsum([*weights.tolist(), -1.0])


def _distinct_components(side: GaussianMixture) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, means and standard deviations of the components of positive weight, equal ones joined where their sum
    is exact.
    """
    joined: dict[tuple[float, float], list[float]] = {}
    for w, mean, sigma in zip(side.weights.tolist(), side.means.tolist(), side.sigmas.tolist(), strict=True):
        if w > 0.0:
            joined.setdefault((mean + 0.0, sigma), []).append(w)
    rows = []
    for place, parts in joined.items():
        total = math.fsum(parts)
        rows += [(w, *place) for w in ([total] if math.fsum([*parts, -total]) == 0.0 else parts)]
    columns = np.array(rows)
    weights, means, sigmas = (np.ascontiguousarray(column) for column in columns.T)
    return weights, means, sigmas
