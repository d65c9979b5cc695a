"""Priors of a channel, and their distinct probabilities.

Notation: an atom is one value a > 0 or a = 0 that prior probabilities take; secrets of one atom are alike to a channel
that treats all secrets alike.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from .._values import FloatArray
from ..errors import ShapeError

__all__ = ["Atoms", "atoms", "checked_prior", "prior_gap"]


class Atoms(NamedTuple):
    """Distinct prior probabilities in increasing order, shape (v,), and what the secrets beside one of each hold."""

    size: int  # number of secrets
    value: FloatArray
    log_value: FloatArray
    counts: list[int]
    log_count: FloatArray
    rest: FloatArray  # mass of all secrets but one with this probability
    log_rest: FloatArray
    rest_largest: FloatArray  # log of the largest among them
    rest_smallest: FloatArray  # log of the smallest positive among them
    gap: float


def checked_prior(prior: ArrayLike | None, inputs: int) -> FloatArray | None:
    """None for the uniform law, else one probability a secret."""
    if prior is None:
        return None
    given = _validate.probabilities("prior", prior)
    if given.size != inputs:
        raise ShapeError(
            f"prior must have one entry for each of the {_validate.shown(inputs)} secrets; got {given.size}. "
            "Pass None for the uniform law."
        )
    return given


def prior_gap(prior: FloatArray | None) -> float:
    """How far the sum is from 1; 0 for None, the uniform law."""
    return 0.0 if prior is None else _validate.sum_gap(prior)


def atoms(prior: FloatArray | None, size: int) -> Atoms:
    """The distinct probabilities of a prior of this many secrets."""
    if prior is None:
        log_size = math.log(size)
        one = math.exp(-log_size) if size > 2**1000 else 1.0 / size
        log_rest = np.array([math.log1p(-one) if size > 1 else -math.inf])
        return Atoms(
            size, _some(one), _some(-log_size), [size], _some(log_size), np.exp(log_rest), log_rest,
            _some(-log_size if size > 1 else -math.inf), _some(-log_size if size > 1 else -math.inf), 0.0,
        )  # fmt: skip
    value, counts = np.unique(prior, return_counts=True)
    wide, many = value.astype(np.longdouble), counts.astype(np.longdouble)
    below = np.concatenate([[0], np.cumsum(wide * many)])
    above = np.concatenate([np.cumsum((wide * many)[::-1])[::-1], [0]])
    rest = below[:-1] + above[1:] + (many - 1) * wide
    with np.errstate(divide="ignore"):
        log_value = np.log(value)
        log_rest = np.log(rest).astype(np.float64)
    alone = counts == 1
    largest = np.full(value.size, log_value[-1])
    if alone[-1]:
        largest[-1] = log_value[-2] if value.size > 1 else -np.inf
    smallest = np.full(value.size, log_value[value > 0][0])
    first = int(np.argmax(value > 0))
    if alone[first]:
        smallest[first] = log_value[first + 1] if first + 1 < value.size else -np.inf
    return Atoms(size, value, log_value, counts.tolist(), np.log(counts), rest.astype(np.float64), log_rest, largest,
                 smallest, prior_gap(prior))  # fmt: skip


def _some(number: Any) -> FloatArray:
    return np.array([number], dtype=np.float64)
