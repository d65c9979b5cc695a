"""Local privacy: what one release tells apart, value against value (LDP) and value against all (LIP).

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X). ``epsilon``
is in nats.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..distributions import Pmf
from ..estimate import Estimate
from ..mechanisms.gaussian import GaussianMechanism
from . import gaussian

__all__ = ["ldp_delta", "lip_curves", "lip_delta", "log_lip_delta"]


def ldp_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Optimal LDP curve over the points of the prior: sup over x, x' of H_{e^epsilon}(P_x || P_x').

    Parameters
    ----------
    prior : Pmf
        The secret. Only its points count, not their probabilities.
    mechanism : GaussianMechanism
        Its sigma is used; the sensitivity is the distance of the outermost points.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="exact"``.

    Raises
    ------
    DomainError
        For a negative epsilon, a prior that is no Pmf or a mechanism that is not Gaussian.

    Notes
    -----
    **Accuracy** as ``GaussianMechanism.delta``; ``tests/enclosures/test_notions.py``.

    Source: Ngo, Ostman and Graell i Amat 2024, eqs (4) and (9).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.ldp_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.5991..., 0.3318...])
    """
    return gaussian.ldp_delta(prior, mechanism, epsilon)

def lip_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Optimal LIP curve: sup over x of max{H_{e^epsilon}(P_M || P_x), e^-epsilon H_{e^epsilon}(P_x || P_M)}.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape; all of them share one pass over the points.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="certified"``: the maximum over points is proved.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    The likelihood ratio of the release law and one point is log-convex, so each set has at most two crossings.

    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.lip_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.2801..., 0.0859...])
    """
    return lip_curves(prior, mechanism, epsilon)[0]

def log_lip_delta(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> Estimate:
    """Natural logarithm of the optimal LIP curve, far below 1e-300.

    Parameters
    ----------
    prior : Pmf
        The secret, with its probabilities.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``kind="certified"``.

    Notes
    -----
    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.log_lip_delta(prior, GaussianMechanism(100.0), 50.0).value
    -8180.43...
    """
    return lip_curves(prior, mechanism, epsilon)[1]

def lip_curves(prior: Pmf, mechanism: GaussianMechanism, epsilon: ArrayLike) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points.

    Parameters
    ----------
    prior : Pmf
        The law of the secret.
    mechanism : GaussianMechanism
        Its sigma is used.
    epsilon : array_like
        Non-negative, any shape.

    Returns
    -------
    tuple of Estimate
        The curve and its natural logarithm, both ``kind="certified"``.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    **Accuracy** relative width at most 1e-12; ``tests/enclosures/test_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> delta, log_delta = notions.lip_curves(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.2), 3.0)
    >>> delta.value, log_delta.value
    (0.46869..., -0.75779...)
    """
    return gaussian.lip_curves(prior, mechanism, epsilon)
