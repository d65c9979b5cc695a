"""Bounds of divergences of mixtures from their components alone, in closed form.

Notation: P = sum w_i N(m_i, s_i^2), Q = sum v_j N(n_j, t_j^2), h the differential entropy, H(w) = -sum w_i log w_i.
They serve pairs for which quadrature leaves the range of doubles, and are computed in extended precision, whose range
holds every square of a distance in standard deviations. Where extended precision is that of doubles, what overflows is
infinite on the side where that is true.
"""

# bounds: tested by enclosures/test_far_components - rounding of the nearest component's logarithm

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...distributions import GaussianMixture

__all__ = ["kl_bounds", "renyi_lower_bound"]

_ROWS = 256  # components of P at a time, at most
_PAIRS = 2**18  # pairs of components at a time, where there are more than one row of them
# bound: tested by enclosures/test_far_components - rounding in extended precision, of all sizes that enter
_OUTWARD = 1e-12
_LOG_2_PI = 1.8378770664093454836
Extended = NDArray[np.longdouble]


def kl_bounds(p: GaussianMixture, q: GaussianMixture, *, deadline: float = math.inf) -> tuple[float, float]:
    """Bounds of KL(P||Q); 0 and infinity where the ``deadline``, by ``time.monotonic``, comes first.

    Above sum w_i min_j (KL(N_i||M_j) - log v_j), since h(P) >= sum w_i h(N_i) and q >= v_j M_j. Below
    -sum w_i h(N_i) - H(w) - sum w_i E_i log q, with the larger of two bounds of -E_i log q. Of a wide N_i: q is at most
    e^(-d^2 / 2 T^2) / (t sqrt(2 pi)), t and T the least and the largest t_j and d the distance from the means of Q,
    which lie within r of their centre c, and E_i d^2 >= (sqrt(s_i^2 + (m_i - c)^2) - r)^2 where that root exceeds r. Of
    a narrow one: all but 2e-15 of it lies within 8 s_i of m_i, and there q <= l max_j v_j M_j, l the components of Q.
    """
    (w, m, s), (v, n, t) = _columns(p), _columns(q)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        upper, size = np.longdouble(0.0), np.longdouble(0.0)
        near = np.empty_like(w)  # -log q around m_i, at least
        tops = -np.log(v) + np.log(t) + _LOG_2_PI / 2 - np.log(np.longdouble(v.size))
        best_of = np.empty_like(w)
        for rows in _parts(w.size, v.size):
            if time.monotonic() > deadline:
                return 0.0, math.inf
            ratio = s[rows, None] / t
            cost = (ratio**2 - 1 + ((m[rows, None] - n) / t) ** 2) / 2 - np.log(ratio) - np.log(v)
            best_of[rows] = np.min(np.where(np.isnan(cost), np.inf, cost), axis=1)
            gap = np.maximum(np.abs(m[rows, None] - n) * (1 - _OUTWARD) - 8 * s[rows, None], 0) / t
            near[rows] = np.min(tops + gap**2 / 2, axis=1)
        for start in range(0, w.size, _ROWS):
            rows = slice(start, start + _ROWS)
            best = best_of[rows]
            upper += np.sum(w[rows] * best)
            size += np.sum(w[rows] * (np.abs(best) + np.abs(np.log(w[rows])) + np.abs(np.log(s[rows])) + 3))
        centre, radius = (n.max() + n.min()) / 2, (n.max() - n.min()) / 2
        apart = np.maximum(np.hypot(s, m - centre) * (1 - _OUTWARD) - radius * (1 + _OUTWARD), 0)
        wide = np.log(t.min()) + _LOG_2_PI / 2 + (apart / t.max()) ** 2 / 2
        narrow = near - 2e-15 * (np.abs(near) + np.abs(np.log(t.min())) + 2)
        cross = np.sum(w * np.maximum(wide, narrow))
        noise = np.sum(w * (np.log(s) + (1 + _LOG_2_PI) / 2 - np.log(w)))
        size += np.sum(w * (np.abs(wide) + np.abs(near))) + abs(np.log(t.min())) + np.max(np.abs(np.log(v)))
        slack = _OUTWARD * size if np.isfinite(size) else np.longdouble(0.0)
        return _floored(cross - noise - slack), float(upper + slack)


def renyi_lower_bound(
    p: GaussianMixture, q: GaussianMixture, order: float, *, deadline: float = math.inf
) -> float:
    """A lower bound of D_a(P||Q), 0 where the ``deadline`` comes first.

    That of KL(P||Q) for a > 1; for a < 1, with b = 1 - a, by p^a q^b <= sum (w_i N_i)^a (v_j M_j)^b, whose integrals
    have closed forms (Gil, Alajaji and Linder 2013).
    """
    if order > 1.0:
        return kl_bounds(p, q, deadline=deadline)[0]
    (w, m, s), (v, n, t) = _columns(p), _columns(q)
    a, b = np.longdouble(order), np.longdouble(1.0 - order)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        least = np.longdouble(np.inf)
        for rows in _parts(w.size, v.size):
            if time.monotonic() > deadline:
                return 0.0
            log_s, log_t = np.log(s[rows, None]), np.log(t)
            top = np.maximum(s[rows, None], t)  # b s^2 + a t^2 in its units
            spread = b * (s[rows, None] / top) ** 2 + a * (t / top) ** 2
            cost = a * b * ((m[rows, None] - n) / top) ** 2 / (2 * spread) + np.log(spread) / 2
            cost += np.log(top) - b * log_s - a * log_t - a * np.log(w[rows, None]) - b * np.log(v)
            size = np.abs(cost) + np.abs(log_s) + np.abs(log_t) + np.abs(np.log(w[rows, None])) + np.abs(np.log(v))
            cost = np.where(np.isfinite(cost), cost - _OUTWARD * (size + 10), cost)
            least = np.minimum(least, np.min(np.where(np.isnan(cost), -np.inf, cost)))
        return _floored((least - np.log(np.longdouble(w.size) * v.size)) / b)


def _parts(rows: int, columns: int) -> Iterator[slice]:
    """Rows of a table of pairs, so many at a time that a step over them is brief."""
    step = max(1, min(_ROWS, _PAIRS // columns))
    return (slice(start, start + step) for start in range(0, rows, step))


def _columns(law: GaussianMixture) -> tuple[Extended, Extended, Extended]:
    w = law.weights.astype(np.longdouble)
    return w / w.sum(), law.means.astype(np.longdouble), law.sigmas.astype(np.longdouble)


def _floored(bound: np.longdouble) -> float:
    """A lower bound as a double: at least 0 and finite."""
    if np.isnan(bound):
        return 0.0
    return min(max(0.0, float(bound)), sys.float_info.max)
