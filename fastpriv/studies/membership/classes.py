"""Memberships that no release can tell apart, with their probabilities.

Notation: people of one type have the same row of the panel and the same prior odds; s_t is the number of people of type
t, c_t that of members among them. All b of one vector c have one distribution of the release; vectors c of equal
frequencies f = sum c_t d_t / n and of equal noise have one too, and are merged into a class g of probability w_g.

    H(b | g) = sum over c in g of P(c) (log(w_g / P(c)) + sum_t log binom(s_t, c_t)) / w_g

as the b of one c are equally likely. P(b_k = 1 | g) is the mean of c_t / s_t over g, t the type of k.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from ...base import validate
from ...base.numerics import FloatArray, IntArray
from ...base.values import distinct_rows
from .panels import Panel
from .priors import BernoulliMembership, FixedSizeMembership, MembershipPrior

MAX_CLASSES = 2**20  # vectors c that are listed: 2^20 memberships, or a thousand people of two types


class MembershipClasses(NamedTuple):
    """Classes g of memberships, and what is known of b in each.

    ``weights`` are w_g, ``frequencies`` (G, m), ``sizes`` the numbers of members (of one c of the class, on which the
    noise depends, if it does), ``entropies`` (G,) are H(b | g) w_g, ``type_of`` (K,) the type of a person, ``member``
    and ``other`` (T, G) are P(b_k = 1 | g) and P(b_k = 0 | g), both without cancellation.
    """

    weights: FloatArray
    frequencies: FloatArray
    sizes: IntArray
    entropies: FloatArray
    type_of: IntArray
    member: FloatArray
    other: FloatArray

    def joint(self, side: FloatArray) -> FloatArray:
        """P(g and b_k = 1) of each class and person, shape (G, K), of ``member``; P(g and b_k = 0) of ``other``."""
        return np.asarray((self.weights * side)[self.type_of].T)


def membership_classes(panel: Panel, prior: MembershipPrior, by_size: bool) -> MembershipClasses | None:
    """The classes of a panel under a prior; None if there are too many. ``by_size``: the noise depends on n."""
    rows, odds = panel.to_array().astype(np.float64), np.asarray(prior.log_prior(panel.n_people).log_odds)
    _, type_of = distinct_rows(np.concatenate([rows, odds[:, None]], axis=1))
    _, first, counts = np.unique(type_of, return_index=True, return_counts=True)
    total = math.prod(int(count) + 1 for count in counts)
    if total > MAX_CLASSES:
        return None
    grids = np.meshgrid(*(np.arange(count + 1) for count in counts), indexing="ij")
    members = np.stack([grid.reshape(-1) for grid in grids], axis=1)
    sizes = members.sum(axis=1)
    keep = sizes > 0 if isinstance(prior, BernoulliMembership) else sizes == getattr(prior, "n0", 0)
    members, sizes = members[keep], sizes[keep]
    ways = [np.array([_longdouble(math.comb(int(count), c)) for c in range(int(count) + 1)]) for count in counts]
    p = np.ones(len(members), dtype=np.longdouble)
    for t, way in enumerate(ways):
        p *= way[members[:, t]]
    if isinstance(prior, FixedSizeMembership):
        p /= _longdouble(math.comb(panel.n_people, prior.n0))
    else:
        chances: Any = prior
        q = np.broadcast_to(np.asarray(chances.q, dtype=np.float64), (panel.n_people,))[first].astype(np.longdouble)
        for t, item in enumerate(q):
            p *= (item ** np.arange(counts[t] + 1) * (1 - item) ** np.arange(counts[t], -1, -1))[members[:, t]]
        p /= -np.expm1((counts * np.log1p(-q)).sum())
    log_ways = sum(np.log(way)[members[:, t]] for t, way in enumerate(ways))
    bits = panel.to_array()[first].astype(np.int64)
    sums = members @ bits
    divisor = np.gcd.reduce(np.concatenate([sums, sizes[:, None]], axis=1), axis=1)
    keys = np.concatenate([sums, sizes[:, None]], axis=1) // divisor[:, None]
    if by_size:
        keys = np.concatenate([keys, sizes[:, None]], axis=1)
    _, group = distinct_rows(keys)
    index = np.unique(group, return_index=True)[1]

    def summed(values: Any) -> Any:
        out = np.zeros(len(index), dtype=np.longdouble)
        np.add.at(out, group, values)
        return out

    weights = summed(p)
    with np.errstate(divide="ignore", invalid="ignore"):
        passed = summed(np.where(p > 0, p * (np.log(weights[group] / p) + log_ways), 0))
        member = np.stack([summed(p * members[:, t]) / (weights * count) for t, count in enumerate(counts)])
        other = np.stack([summed(p * (count - members[:, t])) / (weights * count) for t, count in enumerate(counts)])
    positive = weights.astype(np.float64) > 0
    validate.memory("the classes of memberships", 64 * member.size, "Take fewer people.")
    doubles = [np.asarray(x, dtype=np.float64)[..., positive] for x in (weights, passed, member, other)]
    frequencies = (sums / sizes[:, None])[index][positive]
    return MembershipClasses(
        doubles[0], frequencies, sizes[index][positive], doubles[1], type_of, doubles[2], doubles[3]
    )


def _longdouble(number: int) -> Any:
    """An integer in extended precision, from its leading 128 bits."""
    shift = max(number.bit_length() - 128, 0)
    high, low = divmod(number >> shift, 2**64)
    return np.ldexp(np.longdouble(high) * np.longdouble(2) ** 64 + np.longdouble(low), shift)
