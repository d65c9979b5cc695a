"""Local privacy: what one release tells apart, value against value (LDP) and value against all (LIP).

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X). ``epsilon``
is in nats.
"""

from __future__ import annotations

from typing import Any

from .. import _parallel, _validate
from .._estimates import monotone
from ..estimate import Estimate, NumberLike
from . import gaussian
from .bayesian import mbp_xi
from .discrete import arguments, curves, leakage

__all__ = ["ldp_delta", "ldp_epsilon", "lip_curves", "lip_delta", "lip_epsilon", "log_lip_delta"]


def ldp_epsilon(
    prior: Any, mechanism: Any, *, support: bool = False, n_jobs: int | None = None,
    progress: _parallel.Progress = None,
) -> Estimate:  # fmt: skip
    """Pure local differential privacy: the largest log ratio of the probabilities of a release, in nats.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Counts only with ``support``; None will do otherwise. With a ``GaussianMechanism``, a Pmf whose points count.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    support : bool, default False
        Only between secrets that the prior gives mass, instead of all.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        In nats, ``kind="exact"``: from the largest and the smallest cell of each column, never from pairs; 0/0 does not
        count, and x/0 is infinite. Of a Gaussian mechanism infinite, unless there is one point.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** 1e-15 relative for written channels, 1e-14 for structured ones, and 2.1 times what rows miss 1 by;
    ``tests/enclosures/test_channel_notions.py``.

    Source: Kasiviswanathan et al. 2011; Duchi, Jordan and Wainwright 2013.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> notions.ldp_epsilon(None, [[0.75, 0.25], [0.25, 0.75]]).value  # log 3
    1.098612288...
    >>> notions.ldp_epsilon(None, RandomizedResponse(2, 1.0).power(200)).value
    200.0
    """
    _parallel.checked(n_jobs, progress)
    support = _validate.flag("support", support)
    if not arguments.discrete(mechanism):
        xi = gaussian.mbp_xi(prior, mechanism)
        return Estimate(xi.value, xi.lower, xi.upper, kind="exact", unit="nats", method=xi.method)
    name = "support" if support else "ldp"
    found = leakage.readings(arguments.setting(prior, mechanism), (name,), n_jobs=n_jobs, progress=progress)
    return arguments.estimate(found[name], "nats")


def lip_epsilon(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> Estimate:
    """Pure local information privacy: sup over secrets and releases of |log posterior / prior|, in nats.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``mbp``.

    Returns
    -------
    Estimate
        The number of ``mbp_xi``: both notions bound one ratio.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** as ``mbp``; ``tests/enclosures/test_channel_notions.py``.

    Source: Jiang, Seif, Tandon and Li, Context-aware local information privacy (2021), definition 3.

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.lip_epsilon([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value  # log 2
    0.693147180...
    """
    return mbp_xi(prior, mechanism, n_jobs=n_jobs, progress=progress)


@monotone(falling="epsilon")
def ldp_delta(
    prior: Any, mechanism: Any, epsilon: NumberLike, *, support: bool = False, n_jobs: int | None = None,
    progress: _parallel.Progress = None,
) -> Estimate:  # fmt: skip
    """Optimal LDP curve over the secrets: sup over x, x' of H_{e^epsilon}(P_x || P_x').

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        With a Gaussian mechanism a Pmf, of which only the points count. With a channel it counts only with ``support``.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret. Of a Gaussian mechanism, sigma is used; the sensitivity is the distance
        of the outermost points.
    epsilon : array_like or Estimate
        Non-negative, any shape; one pass serves them all.
    support : bool, default False
        Only between secrets of a channel that the prior gives mass, instead of all.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``; ``kind="exact"`` for a Gaussian mechanism, ``"certified"`` for a
        channel, and exactly 0 from its LDP level on.

    Raises
    ------
    DomainError
        For a negative epsilon, a prior that is no Pmf with a mechanism that is no channel, or as ``mbp``.

    Notes
    -----
    Structured channels, and their products, know the worst pair of rows. All ordered pairs of a written channel cost
    n^2 m operations for each epsilon below its LDP level.

    **Accuracy** as ``GaussianMechanism.delta``, ``tests/enclosures/test_notions.py``; of channels about 1e-15 absolute,
    by ``tests/enclosures/test_channel_notions.py``.

    Source: Ngo, Ostman and Graell i Amat 2024, eqs (4) and (9).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.ldp_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.5991..., 0.3318...])
    >>> notions.ldp_delta(None, [[0.75, 0.25], [0.25, 0.75]], [0.0, 0.5, 2.0]).value.round(6)
    array([0.5    , 0.33782, 0.     ])
    """
    _parallel.checked(n_jobs, progress)
    support = _validate.flag("support", support)
    if arguments.discrete(mechanism):
        return curves.ldp_delta(arguments.setting(prior, mechanism), epsilon, support, n_jobs, progress)
    return gaussian.ldp_delta(prior, mechanism, epsilon)


@monotone(falling="epsilon")
def lip_delta(
    prior: Any, mechanism: Any, epsilon: NumberLike, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> Estimate:
    """Optimal LIP curve: sup over x of max{H_{e^epsilon}(P_M || P_x), e^-epsilon H_{e^epsilon}(P_x || P_M)}.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    epsilon : array_like or Estimate
        Non-negative, any shape.
    n_jobs, progress : optional
        As in ``mbp``.

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
    The likelihood ratio of the release law and one point is log-convex, so each set has at most two crossings; and the
    first of the two divergences is never the smaller (proved in ``csrc/fp_lip.h``). Of many points few are looked at:
    runs of others are proved to be no worse. Products of channels under product priors go by types of secrets and of
    releases, up to 2^200 secrets and beyond, where these types are few: secrets of a factor that are never the worst
    ones are left out, and equal ratios count together.

    **Accuracy** relative width at most 1e-12 for up to a thousand points, 1e-9 for more;
    ``tests/enclosures/test_lip.py``, ``tests/enclosures/test_notions.py``. Of channels about 1e-14 absolute,
    ``tests/enclosures/test_channel_notions.py``, and of products 1e-11 relative but for what a prior misses 1 by,
    ``tests/enclosures/test_product_notions.py``.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.lip_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.2801..., 0.0859...])
    >>> from fastpriv import RandomizedResponse
    >>> notions.lip_delta(([0.25, 0.75],), RandomizedResponse(2, 0.1).power(200), [0.5, 2.0]).value
    array([0.26224..., 0.02936...])
    """
    return lip_curves(prior, mechanism, epsilon, n_jobs=n_jobs, progress=progress)[0]


@monotone(falling="epsilon")
def log_lip_delta(
    prior: Any, mechanism: Any, epsilon: NumberLike, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> Estimate:
    """Natural logarithm of the optimal LIP curve, far below 1e-300.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    epsilon : array_like or Estimate
        Non-negative, any shape.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``kind="certified"``.

    Notes
    -----
    **Accuracy** as ``lip_delta``, relative to the larger of 1 and the logarithm's size.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.log_lip_delta(prior, GaussianMechanism(100.0), 50.0).value
    -8180.43...
    """
    return lip_curves(prior, mechanism, epsilon, n_jobs=n_jobs, progress=progress)[1]


@monotone(falling="epsilon")
def lip_curves(
    prior: Any, mechanism: Any, epsilon: NumberLike, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    epsilon : array_like or Estimate
        Non-negative, any shape.
    n_jobs, progress : optional
        As in ``mbp``.

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
    **Accuracy** as ``lip_delta``, relative to the larger of 1 and the logarithm's size.

    Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> delta, log_delta = notions.lip_curves(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.2), 3.0)
    >>> delta.value, log_delta.value
    (0.46869..., -0.75779...)
    """
    _parallel.checked(n_jobs, progress)
    if arguments.discrete(mechanism):
        delta = curves.lip_delta(arguments.setting(prior, mechanism), epsilon, n_jobs, progress)
        return delta, delta.to("log probability")
    return gaussian.lip_curves(prior, mechanism, epsilon)
