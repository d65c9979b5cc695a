"""Memberships that no release of frequencies can tell apart: a sum over all memberships of at most 20 people.

Notation: b in {0, 1}^K with prior theta and frequencies f(b). Memberships with the same f(b) are a type g of
probability P_g, and the release depends on b by its type alone. Of a person, J_g1 = P(g and b_k = 1) and J_g0 = P(g and
b_k = 0).
"""

# bounds: tested by membership/test_equilibrium - probabilities of types against plain sums

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.errors import DomainError
from ...base.numerics import UNIT_ROUNDOFF, FloatArray
from ...base.values import distinct_rows
from .panels import Panel, member_frequencies
from .priors import MembershipPrior, all_memberships

__all__ = ["MAX_TYPED_PEOPLE", "PRIOR_ROUNDING", "FrequencyTypes", "person_entropies"]

MAX_TYPED_PEOPLE = 20  # 2^20 memberships are grouped by their frequencies in seconds
# bound: tested by membership/test_equilibrium - relative error of the probability of a membership, and of the sums of
#    such over the memberships of a type
PRIOR_ROUNDING = 4096 * UNIT_ROUNDOFF
# bound: proved - relative error of a difference of logarithms, each at most 745, beside a logarithm of at most 2
_LOGARITHM_ROUNDING = 2048 * UNIT_ROUNDOFF


class FrequencyTypes(NamedTuple):
    """Memberships grouped by their frequencies."""

    frequencies: FloatArray  # (types, m)
    probabilities: FloatArray  # (types,)
    members: FloatArray  # (types, K): P(type and b_k = 1)
    others: FloatArray  # (types, K): P(type and b_k = 0)

    @classmethod
    def of(cls, panel: Panel, prior: MembershipPrior) -> FrequencyTypes:
        """The types of a panel under a prior."""
        k = panel.n_people
        if k > MAX_TYPED_PEOPLE:
            raise DomainError(
                f"panel must have at most {MAX_TYPED_PEOPLE} people for an exact equilibrium; got {k}. Select some of "
                "them."
            )
        b, logs = all_memberships(prior, k)
        p = np.exp(logs)
        b, p = b[p > 0], p[p > 0]
        f, index = distinct_rows(member_frequencies(panel, b))
        total, members, others = np.zeros(len(f)), np.zeros((len(f), k)), np.zeros((len(f), k))
        np.add.at(total, index, p)
        np.add.at(members, index, p[:, None] * b)
        np.add.at(others, index, p[:, None] * ~b)
        return cls(f, total, members, others)


def person_entropies(members: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """H(b_k | g) of each person, of J_g1 and J_g0 in rows, and its error for sums of as many terms as there are rows.

    The entropy is a sum of nonnegative terms, and to first order an error of all J relative to themselves moves it by
    as much of itself.
    """
    larger, smaller = np.maximum(members, others), np.minimum(members, others)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = (larger + smaller) * np.log1p(smaller / larger) + smaller * (np.log(larger) - np.log(smaller))
    entropies = np.where(smaller > 0.0, terms, 0.0).sum(axis=0)
    return entropies, 2.0 * (_LOGARITHM_ROUNDING + len(members) * UNIT_ROUNDOFF + PRIOR_ROUNDING) * entropies
