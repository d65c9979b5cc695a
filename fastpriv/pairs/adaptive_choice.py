"""Releases of which each is chosen from a menu of mechanisms after the earlier ones have been seen.

Notation: x = e^epsilon, w the ratio of P to Q of all that was seen, R that of the next release. Whatever the choices,

    delta <= V_k(1),   V_0(w) = (w - x)^+,   V_j(w) = max over the menu of E_Q V_(j-1)(w R),

and the best choices attain it. V_j is convex in w and 0 at 0, so that a loss that dominates R makes it larger, and one
that is dominated makes it smaller. With losses k h of probabilities p_k under P, and m that of an infinite loss,
U_j(i) = e^(-i h) V_j(e^(i h)) is

    U_0(i) = (1 - e^(epsilon - i h))^+,   U_j(i) = max over the menu of (sum_k p_k U_(j-1)(i + k) + m) <= 1,

and rises in i: beyond the places that are kept, 1 and the value at the end bound it. All terms are positive. U_j
depends on i h - epsilon alone, so that one table serves all epsilons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import UNIT_ROUNDOFF, FloatArray
from .curve_pairs import PairObject
from .discretised_losses import PrivacyLoss
from .protocol import BoundingPairs, DominatingPair, FrozenRecord
from .sampled_curves import LogCurvePair

_MOST_STEPS, _MOST_MENU = 10_000, 1_000
_MOST_PLACES = 2**16  # of the ratio w
# bound: none - products of a table: about a minute
_MOST_WORK = 1e11
# bound: none - delta that may lie beyond the losses of one release
_TAIL = 1e-25
# bound: proved - roundings of one minus an exponential; of a term of a sum, of which there are two more than terms
_START_ERROR, _TERM_ERROR = 8 * UNIT_ROUNDOFF, 2 * UNIT_ROUNDOFF
# bound: proved - of a share of an interval, times the interval and over 1 + epsilon, and of few products
_CHORD_ERROR = 2.0**-48


class AdaptiveChoice(PairObject):
    """Releases of which each is chosen from a finite menu, by whatever the earlier ones have shown.

    Parameters
    ----------
    menu : list
        What may be chosen: what ``compose`` takes as pairs, each as often as wanted.
    steps : int
        Number of releases, from 1 to 10,000.
    interval : float, default 2**-6
        Distance of the losses that are told apart, in nats, from 2**-20 to 1: bounds narrow with its square.

    Raises
    ------
    DomainError
        For an empty menu, what is no pair, numbers out of range, and by ``compose`` where the recursion would take more
        than a minute.

    Notes
    -----
    ``compose`` of a list says what a list costs that was fixed in advance, whatever was chosen within its pairs; which
    pairs are used, and how often, may not depend on releases. Here it may. A choice within a continuum is bounded by a
    menu whose entries dominate its parts.

    **Accuracy** both bounds are certified: above by losses that dominate those of the menu, below by losses that are
    dominated; ``tests/enclosures/test_adaptive_choice.py``.

    Source: Dong, Durfee and Rogers 2020, section 5 (the recursion of one mechanism); Rogers, Roth, Ullman and Vadhan
    2016 (choice of the mechanism).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, RandomizedResponse, compose
    >>> from fastpriv.pairs import AdaptiveChoice
    >>> menu = [GaussianMechanism(2.0, 1.0), RandomizedResponse(2, 0.5)]
    >>> chosen = compose(AdaptiveChoice(menu, 4)).delta(1.0)
    >>> chosen.lower > max(compose(entry, 4).delta(1.0).upper for entry in menu)
    True
    """

    __slots__ = _fields = ("menu", "steps", "interval")

    menu: tuple[Any, ...]
    steps: int
    interval: float

    def __init__(self, menu: Any, steps: int, interval: ArrayLike = 2.0**-6) -> None:
        from .readers import hashable_pair

        if not isinstance(menu, (list, tuple)) or not 0 < len(menu) <= _MOST_MENU:
            raise DomainError(
                f"menu must be a list of 1 to {_MOST_MENU:,} pairs; got {validate.shown(menu)}. List the pairs."
            )
        for index, entry in enumerate(menu):
            _directions(f"menu[{index}]", entry)  # raises
        self._set(
            menu=tuple(map(hashable_pair, menu)), steps=validate.count("steps", steps, 1, _MOST_STEPS),
            interval=validate.scalar("interval", interval, "from 2**-20 to 1", lambda x: (x >= 2**-20) & (x <= 1)),
        )

    def _bounding_pairs(self) -> BoundingPairs:
        forward, backward = (
            _ChoiceCurve(tuple(pairs.dominating for pairs in side),
                         tuple(part for pairs in side for part in pairs.alternatives), self.steps, self.interval)
            for side in zip(*(_directions("menu", entry) for entry in self.menu), strict=True)
        )
        return BoundingPairs((LogCurvePair(forward, backward, 1),))


def _directions(name: str, entry: Any) -> tuple[BoundingPairs, BoundingPairs]:
    """The pairs of a composition, or of one release, in both orders."""
    from .readers import read_pair

    if hasattr(entry, "forward_pairs"):
        return entry.forward_pairs, entry.backward_pairs
    read = read_pair(name, entry)
    return read.forward, read.backward


@dataclass(frozen=True, slots=True, eq=False)
class _ChoiceCurve(FrozenRecord):
    """Bounds of log delta: releases of each entry are all made, in one step."""

    dominating: tuple[tuple[DominatingPair, ...], ...]
    dominated: tuple[tuple[DominatingPair, ...], ...]
    steps: int
    interval: float

    def __call__(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds at epsilon >= 0: chords of upper bounds, and lines beside them, which lie below a convex curve."""
        h, (low, lower), (_, upper) = self.interval, *_tables(self)
        level = np.minimum(epsilon, -low * h)
        index = np.clip(np.floor(level / h).astype(np.int64), 0, -low - 2)
        node = -low - index  # of the multiple of h below
        share = np.clip(np.expm1(level - index * h) / math.expm1(h), 0.0, 1.0)
        error = 3.0 * _CHORD_ERROR / h * (1.0 + level) * (upper[node + 1] - lower[node - 1])
        above = upper[node] * (1.0 - share) + upper[node - 1] * share + error
        ahead = np.maximum(lower[node - 1] - upper[node - 2], 0.0) * math.exp(-h) * (1.0 - share)
        behind = (upper[node + 1] - lower[node]) * math.exp(h) * share
        below = np.maximum(lower[node - 1] + ahead, lower[node] - behind) - error
        below = np.where(epsilon > level, 0.0, np.maximum(below, 0.0)) * (1.0 - _CHORD_ERROR)
        above = np.minimum(above * (1.0 + _CHORD_ERROR), 1.0)
        with np.errstate(divide="ignore"):
            return np.log(np.minimum(below, above)), np.log(above)


@lru_cache(maxsize=16)  # searches ask again
def _tables(curve: _ChoiceCurve) -> tuple[tuple[int, FloatArray], tuple[int, FloatArray]]:
    """The first place, and bounds of U after all releases for epsilon = 0: at the place i that is delta(-i h)."""
    both = []
    for menu, up in ((curve.dominated, False), (curve.dominating, True)):
        losses = [[pair.privacy_loss(curve.interval, _TAIL, up) for pair in entry for _ in range(pair.count)]
                  for entry in menu]
        first = min((sum(loss.first for loss in entry) for entry in losses), default=0)
        last = max((sum(loss.first + len(loss.masses) for loss in entry) for entry in losses), default=0)
        both.append((losses, first, last))
    least = min(min(first, -last) for _, first, last in both)  # epsilons up to the largest loss
    low = max(curve.steps * least - 3, -_MOST_PLACES)
    places = np.arange(low, -low + 1) * curve.interval
    points = sum(len(loss.masses) for losses, _, _ in both for entry in losses for loss in entry)
    work = curve.steps * len(places) * points
    if work > _MOST_WORK:
        raise DomainError(
            f"interval must be larger for so many steps and so wide losses; got {curve.interval!r}, which asks for "
            f"{work:.1e} products. Take fewer steps, or a menu with more noise."
        )
    tables = []
    for (losses, _, _), up in zip(both, (False, True), strict=True):
        u = -np.expm1(np.minimum(-places, 0.0)) * (1.0 + (_START_ERROR if up else -_START_ERROR))
        for _ in range(curve.steps):
            u = np.maximum.reduce([_before_releases(u, entry, up) for entry in losses])
        tables.append((low, u))
    return tables[0], tables[1]


def _before_releases(u: FloatArray, entry: list[PrivacyLoss], up: bool) -> FloatArray:
    """U before the releases of an entry, from U after them."""
    for loss in entry:
        left = np.full(max(-loss.first, 0), u[0] if up else 0.0)
        right = np.full(max(loss.first + len(loss.masses) - 1, 0), 1.0 if up else u[-1])
        padded = np.concatenate([left, u, right])[max(loss.first, 0) :]
        sums = np.correlate(padded, loss.masses, "valid")[: len(u)]
        error = (len(loss.masses) + 4) * _TERM_ERROR
        u = np.minimum((sums + loss.infinity_mass) * (1.0 + (error if up else -error)), 1.0)
    return u
