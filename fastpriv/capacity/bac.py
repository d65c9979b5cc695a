"""The binary asymmetric channel: binary entropy and capacity.

Notation: ``a`` = P(Y = 1 | X = 0) and ``b`` = P(Y = 0 | X = 1) are the crossover probabilities, h(p) = -p log p -
(1-p) log(1-p). The capacity is equation (11) of the mutual-information privacy paper,

    C = log(e^-g + e^-k),   g = ((1-b) h(a) - a h(b)) / D,   k = ((1-a) h(b) - b h(a)) / D,   D = 1 - a - b,

which is 0/0 on the line a + b = 1, where the value is 0. It is evaluated in a form without cancellation instead: the
information of the uniform input and what the best one gains, formed from D (csrc/channel/fp_binary_channel.h).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .. import special
from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike, exact
from ..base.monotone import Ends, monotone
from ..base.numerics import FloatArray

# bound: proved - docs/proofs/finite_capacity.md, 7.20: relative error of the capacity; tests find 2.5e-15
_CAPACITY_ERROR = 8e-15
# bound: proved - docs/proofs/roundings.md, 13.9: relative error of the binary entropy, also where p and its complement
#    miss 1 by _COMPLEMENT_GAP
_ENTROPY_ERROR = 1.2e-15
# bound: proved - docs/proofs/roundings.md, 13.9, and finite_capacity.md, 7.20: absolute error of subnormal results
_SUBNORMAL_ERROR = 5e-322
# bound: none - complements farther from 1 - a, by two units of roundoff, are refused
_COMPLEMENT_GAP = 4.5e-16


def _entropy_ends(p: tuple[FloatArray, FloatArray]) -> Ends:
    """The p in a bracket at which the entropy, which rises up to p = 1/2 and falls beyond, is least and most."""
    low, high = p
    least = np.where(np.abs(low - 0.5) > np.abs(high - 0.5), low, high)
    return {"p": least}, {"p": np.clip(0.5, low, high)}


def _capacity_ends(a: tuple[FloatArray, FloatArray], b: tuple[FloatArray, FloatArray]) -> Ends:
    """The a and b in two brackets at which the capacity is least and most.

    For a + b < 1 a channel with a larger a, or b, is a degraded version of this one: the capacity falls with both to 0
    at a + b = 1, and rises with both beyond.
    """
    falls, rises = a[1] + b[1] < 1.0 - _COMPLEMENT_GAP, a[0] + b[0] > 1.0 + _COMPLEMENT_GAP
    ends = {"a": a, "b": b}.items()
    least = {name: np.where(falls, high, np.where(rises, low, 0.5)) for name, (low, high) in ends}
    first, second = (np.asarray(special.bac_capacity(a[i], b[i])) for i in (0, 1))
    return least, {name: np.where(first >= second, low, high) for name, (low, high) in ends}


@monotone(between="p", ends=_entropy_ends)
def binary_entropy(p: NumberLike, *, complement: ArrayLike | None = None, unit: Information = "nats") -> Estimate:
    """Entropy of a coin: h(p) = -p log p - (1-p) log(1-p).

    Parameters
    ----------
    p : array_like or Estimate
        Between 0 and 1; numbers are taken as exact.
    complement : array_like, optional
        1 - p, for p closer to 1 than doubles resolve; it must agree with ``p`` to rounding.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        Kind ``exact``, of the broadcast shape.

    Raises
    ------
    DomainError
        For arguments outside [0, 1], NaN, a complement that does not add up to 1, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: 1e-15 relative, 1e-300 and (by its complement) 1 - 1e-300 included
    (tests/kernels/test_binary_channel.py).

    Examples
    --------
    >>> from fastpriv.capacity.bac import binary_entropy
    >>> float(binary_entropy(0.5, unit="bits"))
    1.0
    >>> f"{binary_entropy(1.0, complement=1e-300).value:.9e}"
    '6.917755279e-298'
    """
    validate.choice("unit", unit, ("nats", "bits"))
    probability = _probability("p", p)
    if complement is None:
        value = special.binary_entropy(probability)
    else:
        value = special.binary_entropy_with_complement(*_with_complement("p", probability, "complement", complement))
    return _nonnegative_estimate(value, _ENTROPY_ERROR, "closed form").to(unit)


@monotone(between="a b", ends=_capacity_ends)
def bac_capacity(
    a: NumberLike, b: NumberLike, *, complement_a: ArrayLike | None = None, complement_b: ArrayLike | None = None,
    unit: Information = "nats",
) -> Estimate:
    """Capacity of the binary asymmetric channel.

    Parameters
    ----------
    a, b : array_like or Estimate
        Crossover probabilities P(Y = 1 | X = 0) and P(Y = 0 | X = 1), between 0 and 1; they broadcast. Numbers are
        taken as exact.
    complement_a, complement_b : array_like, optional
        1 - a and 1 - b, for probabilities closer to 1 than doubles resolve; they must agree with a and b to rounding.
    unit : {"nats", "bits"}
        Unit of the answer.

    Returns
    -------
    Estimate
        Kind ``exact``, of the broadcast shape; exactly 0 where a + b = 1.

    Raises
    ------
    DomainError
        For arguments outside [0, 1], NaN, complements that do not add up to 1, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: 8e-15 relative is proved on the whole square, the line a + b = 1 and its neighbourhood, 1e-300 and
    1 - 1e-16 included (theorem 7.20 of docs/proofs); tests/kernels/test_binary_channel.py finds 2.5e-15.

    Examples
    --------
    >>> from fastpriv.capacity.bac import bac_capacity
    >>> bac_capacity([0.0, 0.01, 0.25], [0.0, 0.01, 0.75], unit="bits").value
    array([1.        , 0.91920686, 0.        ])
    """
    validate.choice("unit", unit, ("nats", "bits"))
    first, second = _probability("a", a), _probability("b", b)
    validate.broadcastable("a", first, "b", second)
    pair_a = _with_complement("a", first, "complement_a", complement_a)
    pair_b = _with_complement("b", second, "complement_b", complement_b)
    validate.broadcastable("a and complement_a", np.add(*pair_a), "b and complement_b", np.add(*pair_b))
    value = special.bac_capacity_with_complements(*pair_a, *pair_b)
    equal = (pair_a[0] == pair_b[1]) & (pair_a[1] == pair_b[0])
    return _nonnegative_estimate(value, _CAPACITY_ERROR, "closed form", equal).to(unit)


def _probability(name: str, value: ArrayLike) -> FloatArray:
    return validate.real(name, value, "between 0 and 1", lambda x: (x >= 0) & (x <= 1))


def _with_complement(
    name: str, probability: FloatArray, other: str, complement: ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    if complement is None:
        return probability, 1.0 - probability
    remainder = _probability(other, complement)
    validate.broadcastable(name, probability, other, remainder)
    gap = np.abs((probability - 0.5) + (remainder - 0.5))
    validate.real(
        other, np.broadcast_to(remainder, gap.shape), f"1 - {name} to rounding", lambda x: gap <= _COMPLEMENT_GAP,
        remedy=f"Leave {other} out unless {name} is closer to 1 than doubles resolve.",
    )
    less = probability <= remainder  # the larger of the two becomes the complement of the smaller one
    return np.where(less, probability, 1.0 - remainder), np.where(less, 1.0 - probability, remainder)


def _nonnegative_estimate(value: float | FloatArray, relative: float, method: str, zero: ArrayLike = True) -> Estimate:
    """The estimate of a value of at least 0, which is exact where it is 0 and ``zero`` says so."""
    value = np.asarray(value)
    error = np.where((value == 0) & zero, 0.0, relative * value + _SUBNORMAL_ERROR)
    return exact(value, error, unit="nats", method=method, least=0.0)
