"""Composition by sums along a contour: delta(epsilon) and the tail of the loss, with proof on both sides.

Notation: S is the sum of all losses under P, M_i(z) = E_P e^(z L_i) of pair i, K = sum count_i log M_i. For t > 0

    delta(epsilon) = (1 / 2 pi i) integral over Re z = t of exp(K(z) - epsilon z) / (z (z + 1)) dz,

which the kernel sums by the trapezoidal rule (``csrc/composition/fp_contour_solver.h``, with the proofs). It needs
one pair at least whose M falls along the contour: a pair of Gaussian mixtures, or many of Laplace noise.
"""

# bounds: none - the default of what the sums leave out, which their bounds contain

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from ..base.numerics import FloatArray
from ..kernels import _contour
from ..pairs.log_bounds import LogBounds
from ..pairs.protocol import DominatingPair

# The numbers of the quantities in the kernel
_QUANTITIES = {"delta": 0, "tail": 1, "lower": 2}


def contour_bounds(
    pairs: Sequence[DominatingPair],
    epsilon: FloatArray,
    quantity: Literal["delta", "tail", "lower"] = "delta",
    *,
    cut: float = 1e-14,
) -> LogBounds | None:
    """Logarithms of delta, of the tail e^epsilon Q(S > epsilon), or of P(S <= epsilon), of a composition.

    None is returned where a pair has no such moments. ``epsilon`` has shape (n,) and entries >= 0, or any for the lower
    tail. The tail is minus the derivative of delta. ``cut`` is what the sums leave out, relative to the value; the
    bounds contain it.

    What is computed for one epsilon serves others near it, also in later calls; the result at an epsilon does not
    depend on the others.

    **Accuracy.** The bounds contain the truth: tests/enclosures/test_contour.py. Their relative width is about 1e-12
    for up to 1e4 pairs and 1e-10 for 1e6; where rare large losses rule delta, as of Poisson samples at small rates,
    1e-11 .. 1e-9 down to log delta of about -100 (tests/enclosures/test_rare_losses.py). Just below the largest loss
    of a bounded pair of one sigma it is below 1e-9 down to log delta of -1000 for 10 to 1e4 pairs.
    """
    composition = _composition(tuple(pairs), cut)
    if composition is None:
        return None
    levels = np.ascontiguousarray(epsilon, dtype=np.float64)
    rows, cost = composition.bounds(_QUANTITIES[quantity], levels)
    value, lower, upper = (np.ascontiguousarray(column) for column in rows.T)
    return LogBounds(value, lower, upper, {"nodes": cost[0], "frequencies": cost[1], "tables": cost[2]}, "contour sum")


def contour_tilts(pairs: Sequence[DominatingPair], epsilon: FloatArray) -> FloatArray | None:
    """The t of the saddle point of delta at each epsilon, roughly; None where a pair has no such moments."""
    composition = _composition(tuple(pairs))
    return None if composition is None else composition.tilts(np.ascontiguousarray(epsilon, dtype=np.float64))


@lru_cache(maxsize=16)
def _composition(pairs: tuple[DominatingPair, ...], cut: float = 1e-14) -> _contour.ContourSums | None:
    """The kernel's object, or None where a pair is of another form."""
    composition = _contour.ContourSums(len(pairs), cut)
    for pair in pairs:
        if pair.count and not pair.add_to_contour(composition):
            return None
    return composition
