"""Mutual-information privacy: on average over the secret (CD-LMIP) and at its worst point.

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X).
"""

from __future__ import annotations

from ..distributions import Pmf
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from . import gaussian

__all__ = ["cd_lmip", "pointwise_lmip"]


def cd_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Context-dependent local mutual-information privacy, I(X; M(X)), in nats.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    certified : bool, default False
        Ask for proved bounds whatever they cost.

    Returns
    -------
    Estimate
        A scalar in nats; ``.to("bits")`` gives the unit of the papers.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** as ``mutual_information``; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, definition 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.cd_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.287195...
    """
    return gaussian.cd_lmip(prior, mechanism, certified=certified)

def pointwise_lmip(prior: Pmf, mechanism: GaussianMechanism, *, certified: bool = False) -> Estimate:
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M), in nats.

    Mutual information is the mean of these divergences under the prior; a bound for every x needs their supremum.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    certified : bool, default False
        Ask for proved bounds whatever they cost.

    Returns
    -------
    Estimate
        A scalar in nats; ``.to("bits")`` gives the unit of the papers. ``kind`` is that of the weakest divergence used.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    Points are taken in the order of min{-log pi(x), sum over x' of pi(x') (x - x')^2 / (2 sigma^2)}, which bounds the
    divergence, until no later one can be larger.

    **Accuracy** as ``kl_divergence``; ``tests/enclosures/test_notions.py``.

    Source: the premise that the proof of theorem 2(a) of Ngo et al. 2024 uses in (35) to (37).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.pointwise_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.63341...
    """
    return gaussian.pointwise_lmip(prior, mechanism, certified=certified)
