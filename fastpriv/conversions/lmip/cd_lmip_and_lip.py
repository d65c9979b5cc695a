"""From context-dependent local mutual-information privacy (CD-LMIP) to local information privacy (LIP).

Notation: mu bounds I(X; M(X)) for the given prior. P_x is the law of M(x), P_M that of M(X); q = P_M(event) and p =
P_x(event). LIP (epsilon, delta) bounds q - e^epsilon p and e^-epsilon p - q by delta for every x; in the worst case the
first is always the larger (proved in csrc/fp_lmip_lip.h).

Ngo, Oestman and Graell i Amat, On local mutual-information privacy, print as equation (13) the maximum of
q - e^epsilon p under KL(P_x || P_M) <= mu. Mutual information bounds only the average of this divergence over x, so
(13) is FALSE for CD-LMIP: their own figure 3 has mu = 0.1 bit and a divergence of 0.468 bit at the outermost points.
Three functions:

* ``lip_delta_from_cd_lmip``: right and tight, from the probability of the worst value;
* ``lip_delta_from_pointwise_lmip``: equation (13) where it is true, under sup over x of KL(P_x || P_M) <= mu;
* ``lip_delta_from_cd_lmip_as_published``: equation (13) under the published name, to reproduce the paper only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ... import _validate, special
from ..._estimates import monotone
from ...distributions import Pmf
from ...estimate import Estimate, NumberLike
from .extremes import ExtremalPair, FloatArray, Information, budget, exact, grid, pair

__all__ = [
    "lip_delta_for_prior", "lip_delta_from_cd_lmip", "lip_delta_from_cd_lmip_as_published",
    "lip_delta_from_pointwise_lmip", "lip_delta_saturation", "lip_extremal_channel", "pointwise_extremal_channel",
    "pointwise_saturation",
]  # fmt: skip

# bound: tested by kernels/test_lmip_accuracy - relative error of the pointwise curve
_RELATIVE = 4e-15
# bound: tested by kernels/test_lmip_accuracy - relative error of the curve for an atom
_RELATIVE_ATOM = 4e-14
_METHOD = "worst atom under I(X; M(X)) <= mu"
_POINTWISE = "equation (13) under KL(P_x || P_M) <= mu for every x"
_PUBLISHED = "equation (13) as published: FALSE as a guarantee of CD-LMIP"


@monotone(rising="mu", falling="epsilon atom")
def lip_delta_from_cd_lmip(
    mu: NumberLike, epsilon: NumberLike, atom: NumberLike, *, unit: Information = "nats"
) -> Estimate:
    """Least delta such that every mu-CD-LMIP mechanism is (epsilon, delta)-LIP at a value of probability ``atom``.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on I(X; M(X)) under the prior, at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats; inf gives the limit.
    atom : array_like or Estimate
        Prior probability of the value, between 0 and 1. A smaller one is worse, so for a whole law it is the smallest.
        0 stands for a law without atoms, which gets delta = 1 from every mu > 0. The three arguments broadcast.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, kind ``exact``; 1 - atom for every epsilon once mu reaches the entropy of
        the atom.

    Raises
    ------
    DomainError
        For a number outside its range, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    The maximum of q - e^epsilon p over q = atom p + (1 - atom) s with atom d(p || q) + (1 - atom) d(s || q) <= mu.
    Splitting an atom is data processing, which is why the smallest one is the worst.

    **Accuracy**: 4e-14 relative for mu >= 1e-300 and mu (1 - atom) >= 1e-305, atoms from 1e-300 to 1
    (tests/kernels/test_lmip_accuracy.py).

    Source: corrects theorem 2(a), equation (13), of Ngo, Oestman and Graell i Amat, On local mutual-information
    privacy.

    Examples
    --------
    >>> from fastpriv import lip_delta_from_cd_lmip
    >>> lip_delta_from_cd_lmip(0.1, 1.0, [0.5, 0.1, 0.0]).upper
    array([0.13222996, 0.59975872, 1.        ])
    """
    information = budget(mu, unit)
    level = grid(information, epsilon)
    chance = _atom(atom, "mu and epsilon", np.add(information, level))
    value = special.cd_lmip_lip_delta(information, level, chance)
    return _tight(value, information, chance)


@monotone(rising="mu", falling="epsilon")
def lip_delta_for_prior(mu: NumberLike, epsilon: NumberLike, prior: Pmf, *, unit: Information = "nats") -> Estimate:
    """Least delta that mu-CD-LMIP guarantees under a prior: ``lip_delta_from_cd_lmip`` at its least probable value.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on I(X; M(X)), at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats. It broadcasts with ``mu``.
    prior : Pmf
        The law of the secret.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, kind ``exact``.

    Raises
    ------
    DomainError
        For a number outside its range, a prior that is no Pmf, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy** as ``lip_delta_from_cd_lmip``; tests/contracts/test_lmip_conversions.py.

    Source: corrects theorem 2(a) of Ngo, Oestman and Graell i Amat, On local mutual-information privacy.

    Examples
    --------
    >>> from fastpriv import Pmf, lip_delta_for_prior
    >>> lip_delta_for_prior(0.1, 1.0, Pmf([0.0, 1.0, 2.0], [0.5, 0.4, 0.1])).value
    0.59975871...
    """
    _validate.instance("prior", prior, Pmf)
    least, gap = float(prior.probabilities.min()), 2.0 * prior.mass_gap
    found = lip_delta_from_cd_lmip(mu, epsilon, least, unit=unit)
    if gap == 0.0:
        return found
    # delta falls as the atom grows, and the normalised law's is within the gap
    larger, smaller = (
        lip_delta_from_cd_lmip(mu, epsilon, min(least * factor, 1.0), unit=unit) for factor in (1.0 + gap, 1.0 - gap)
    )
    return Estimate(
        found.value, np.minimum(larger.lower, found.lower), np.maximum(smaller.upper, found.upper), kind="exact",
        unit="probability", method=found.method,
    )  # fmt: skip


@monotone(rising="mu", falling="epsilon")
def lip_delta_from_pointwise_lmip(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Least delta of (epsilon, delta)-LIP that follows from KL(P_x || P_M) <= mu for every x.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on the divergence at every x, at least 0, as ``notions.pointwise_lmip`` gives it; mutual information is
        only its average and does not do.
    epsilon : array_like or Estimate
        At least 0, in nats; inf gives the limit. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, kind ``exact``.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: 4e-15 relative for mu >= 1e-300 (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (13), with the premise its
    proof needs.

    Examples
    --------
    >>> from fastpriv import lip_delta_from_pointwise_lmip
    >>> lip_delta_from_pointwise_lmip(0.1, [0.5, 1.0, 700.0]).upper
    array([0.1240016 , 0.10091774, 0.09516258])
    """
    return _equation_13(mu, epsilon, unit, _POINTWISE)


@monotone(rising="mu", falling="epsilon")
def lip_delta_from_cd_lmip_as_published(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> Estimate:
    """Equation (13) as printed. It is FALSE as a guarantee: mu-CD-LMIP mechanisms can leak more.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        The published number, kind ``exact`` as that number; its ``method`` says that it guarantees nothing.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    Use ``lip_delta_from_cd_lmip`` for a guarantee. At mu = 0.1 bit and epsilon = 0.1 the Gaussian mechanism of the
    paper's figure 3 has delta = 0.2918, against 0.1525 here.

    **Accuracy** as ``lip_delta_from_pointwise_lmip``, the same number; tests/kernels/test_lmip_accuracy.py.

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, theorem 2(a), equation (13).

    Examples
    --------
    >>> from fastpriv import lip_delta_from_cd_lmip_as_published
    >>> published = lip_delta_from_cd_lmip_as_published(0.1, 0.1, unit="bits")
    >>> round(published.value, 5), published.method
    (0.15246, 'equation (13) as published: FALSE as a guarantee of CD-LMIP')
    """
    return _equation_13(mu, epsilon, unit, _PUBLISHED)


@monotone(rising="mu", falling="atom")
def lip_delta_saturation(mu: NumberLike, atom: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The limit of ``lip_delta_from_cd_lmip`` for large epsilon: no smaller delta follows from mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, at least 0.
    atom : array_like or Estimate
        Prior probability of the value, between 0 and 1. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the broadcast shape, kind ``exact``.

    Raises
    ------
    DomainError
        For a number outside its range, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    The event excludes the atom: -atom log(1 - q) + (1 - atom) d(q / (1 - atom) || q) = mu.

    **Accuracy** as ``lip_delta_from_cd_lmip``; tests/kernels/test_lmip_accuracy.py.

    Source: corrects theorem 2(a) of Ngo, Oestman and Graell i Amat, On local mutual-information privacy.

    Examples
    --------
    >>> from fastpriv import lip_delta_saturation
    >>> lip_delta_saturation(0.1, [0.5, 0.1, 0.01]).value
    array([0.13016577, 0.59948197, 0.99      ])
    """
    information = budget(mu, unit)
    chance = _atom(atom, "mu", information)
    value = special.cd_lmip_lip_saturation(information, chance)
    return _tight(value, information, chance)


@monotone(rising="mu")
def pointwise_saturation(mu: NumberLike, *, unit: Information = "nats") -> Estimate:
    """The limit of equation (13) for large epsilon, 1 - e^-mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on KL(P_x || P_M) at every x, at least 0.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``mu``, kind ``exact``.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.

    Notes
    -----
    **Accuracy**: 4e-15 relative (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, below equation (14).

    Examples
    --------
    >>> from fastpriv import pointwise_saturation
    >>> pointwise_saturation([0.0, 0.1, 1.0]).value
    array([0.        , 0.09516258, 0.63212056])
    """
    return _equation_13(mu, np.inf, unit, _POINTWISE)


@monotone(at_value="mu epsilon atom")
def lip_extremal_channel(
    mu: NumberLike, epsilon: NumberLike, atom: NumberLike, *, unit: Information = "nats"
) -> ExtremalPair:
    """The mechanism that attains ``lip_delta_from_cd_lmip``: P(event) = q and P(event | the value) = p.

    Parameters
    ----------
    mu : array_like or Estimate
        Mutual information, at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats.
    atom : array_like or Estimate
        Prior probability of the value, between 0 and 1. The three arguments broadcast.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    ExtremalPair
        q as ``high``, log p as ``log_low``; bare numbers. Under every other value the event has probability
        (q - atom p) / (1 - atom).

    Raises
    ------
    DomainError
        For a number outside its range, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: about 1e-6: the objective is flat at its maximum (tests/kernels/test_lmip_accuracy.py).

    Source: corrects theorem 2(a) of Ngo, Oestman and Graell i Amat, On local mutual-information privacy.

    Examples
    --------
    >>> from fastpriv import lip_extremal_channel
    >>> pair = lip_extremal_channel(0.1, 1.0, 0.5)
    >>> round(pair.high, 6), round(pair.high - 2.718281828459045 * pair.low, 6)
    (0.142291, 0.13223)
    """
    information = budget(mu, unit)
    level = grid(information, epsilon)
    chance = _atom(atom, "mu and epsilon", np.add(information, level))
    return pair(
        special.cd_lmip_lip_high(information, level, chance), special.cd_lmip_lip_log_low(information, level, chance)
    )


@monotone(at_value="mu epsilon")
def pointwise_extremal_channel(mu: NumberLike, epsilon: NumberLike, *, unit: Information = "nats") -> ExtremalPair:
    """The pair (q, p) that attains equation (13), with d(p || q) = mu.

    Parameters
    ----------
    mu : array_like or Estimate
        Bound on KL(P_x || P_M), at least 0.
    epsilon : array_like or Estimate
        At least 0, in nats. It broadcasts with ``mu``.
    unit : {"nats", "bits"}
        Unit of ``mu``.

    Returns
    -------
    ExtremalPair
        q as ``high``, log p as ``log_low``; bare numbers.

    Raises
    ------
    DomainError
        For a negative or missing number, or another unit.
    ShapeError
        For shapes that do not broadcast.

    Notes
    -----
    **Accuracy**: about 1e-9: the objective is flat at its maximum (tests/kernels/test_lmip_accuracy.py).

    Source: Ngo, Oestman and Graell i Amat, On local mutual-information privacy, equation (13).

    Examples
    --------
    >>> from fastpriv import pointwise_extremal_channel
    >>> round(pointwise_extremal_channel(0.1, 1.0).high, 6)
    0.121387
    """
    information = budget(mu, unit)
    level = grid(information, epsilon)
    return pair(special.pointwise_lip_high(information, level), special.pointwise_lip_log_low(information, level))


def _equation_13(mu: ArrayLike, epsilon: ArrayLike, unit: Information, method: str) -> Estimate:
    information = budget(mu, unit)
    value = special.pointwise_lip_delta(information, grid(information, epsilon))
    return exact(value, np.broadcast_to(information, np.shape(value)), _RELATIVE, method)


def _tight(value: Any, mu: FloatArray, atom: FloatArray) -> Estimate:
    spread = 1e5 * (np.minimum(mu, 1.0) * (1.0 - atom))  # below 1e-305 the kernel may take a larger mu
    return exact(value, np.broadcast_to(np.minimum(mu, spread), np.shape(value)), _RELATIVE_ATOM, _METHOD)


def _atom(atom: ArrayLike, others: str, shaped: FloatArray) -> FloatArray:
    chance = _validate.real("atom", atom, "between 0 and 1", lambda p: (p >= 0) & (p <= 1))
    _validate.broadcastable("atom", chance, others, shaped)
    return chance
