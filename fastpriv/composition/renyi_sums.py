"""Renyi divergences of compositions: sums of those of the releases.

Notation: of order a > 1 the divergence of P from Q is log M / (a - 1), M = E_P e^((a - 1) L), and of order 1 it is
E_P L, the Kullback-Leibler divergence. Densities within 1 +- g of those given change log M by at most a g_p + (a - 1)
g_q, to first order, and E_P L by at most (g_p + g_q) (1 + E_P |L|), with E_P |L| <= K + sqrt(2 K), K = E_P L, by
Pinsker's inequality. A pair that dominates another one has at least its divergences.

Source: van Erven and Harremoes 2014, theorem 28; Mironov 2017, propositions 1 and 6; Pinsker 1964.
"""

# bounds: proved - rounding of a sum and of its factors

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.numerics import UNIT_ROUNDOFF
from ..pairs.protocol import BoundingPairs, DominatingPair

__all__ = ["renyi_bounds", "renyi_upper_bound"]

_SECOND_ORDER = 1.01  # bound: proved - times a relative error of at most 1e-9: its logarithm


def renyi_bounds(bounding: BoundingPairs, order: float) -> tuple[float, float, str]:
    """Lower and upper bound of the divergence of a finite order of at least 1, and what they rest on."""
    low, high, method = _of_pairs(bounding.dominating, order)
    if bounding.dominated:
        low = max(_of_pairs(pairs, order)[0] for pairs in bounding.dominated)
        method = f"{method}, between two compositions"
    return min(low, high), high, method


def renyi_upper_bound(pairs: Sequence[DominatingPair], order: float) -> float:
    """An upper bound of the divergence of these pairs."""
    return _of_pairs(pairs, order)[1]


def _of_pairs(pairs: Sequence[DominatingPair], order: float) -> tuple[float, float, str]:
    low = high = 0.0
    method = "sum over all releases"
    for pair in pairs:
        least, most = pair.renyi_divergence(order)
        if pair.is_known_by_curves:
            method = "nothing is known of releases of which only curves are given"
        if most < math.inf:
            change = _change_by_errors(pair, order, most)
            least, most = max(0.0, least - change), most + change
        elif least == math.inf:
            method = "infinite losses, or too large ones for a double"
        low, high = low + pair.count * least, high + pair.count * most
    rounding = 4 * (len(pairs) + 1) * UNIT_ROUNDOFF
    low = low * (1 - rounding) if low < math.inf else low
    return low, high * (1 + rounding), method


def _change_by_errors(pair: DominatingPair, order: float, most: float) -> float:
    """What the relative errors of a pair may change of a finite divergence of it."""
    p_error, q_error = pair.p_relative_error, pair.q_relative_error
    if order > 1.0:
        return _SECOND_ORDER * (order * p_error + (order - 1.0) * q_error) / (order - 1.0)
    return _SECOND_ORDER * (p_error + q_error) * (1.0 + most + math.sqrt(2.0 * most))
