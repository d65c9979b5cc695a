"""Mutual-information privacy: on average over the secret (CD-LMIP) and at its worst point.

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the law of M(x), P_M that of M(X).
"""

# bounds: none - sums farther from 1 are refused

from __future__ import annotations

from typing import Any

from .. import _parallel, _validate
from .._estimates import in_unit
from ..capacity.finite import channel_capacity
from ..estimate import Estimate, Information
from . import gaussian
from .discrete import arguments, leakage

__all__ = ["cd_lmip", "ci_lmip", "pointwise_lmip"]



@in_unit
def cd_lmip(
    prior: Any, mechanism: Any, *, certified: bool = False, n_jobs: int | None = None,
    progress: _parallel.Progress = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """Context-dependent local mutual-information privacy, I(X; M(X)), in nats: mutual information.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``; a Pmf with a Gaussian mechanism.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    certified : bool, default False
        Ask for proved bounds whatever they cost; channels have them anyway.
    n_jobs, progress : optional
        As in ``mbp``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar, in ``unit``.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    Of a channel, the mean of the divergences of its rows from pi Q, all terms of which are positive. Of unary encodings
    and subset selections under priors of many distinct probabilities, an integral of products over bits.

    **Accuracy** as ``mutual_information``, ``tests/enclosures/test_notions.py``; of channels about 1e-14 relative, by
    ``tests/enclosures/test_channel_notions.py``; of products over bits about 1e-12 of the information about a secret
    that is one of two, ``tests/enclosures/test_sets_notions.py``.

    Source: Ngo et al. 2024, definition 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.cd_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.287195...
    >>> notions.cd_lmip([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value
    0.13081203594113...
    """
    _parallel.checked(n_jobs, progress)
    certified = _validate.flag("certified", certified)
    if arguments.discrete(mechanism):
        return _of_channel("information", prior, mechanism, n_jobs, progress)
    return gaussian.cd_lmip(prior, mechanism, certified=certified)


@in_unit
def ci_lmip(mechanism: Any, *, rtol: float = 1e-9, n_jobs: int | None = None, unit: Information = "nats") -> Estimate:
    """Context-independent local mutual-information privacy: the capacity, sup over priors of I(X; M(X)), in nats.

    Parameters
    ----------
    mechanism : AnyChannel or array_like, shape (n, m)
        The channel.
    rtol : float, default 1e-9
        Width of the bracket that is aimed at, as in ``channel_capacity``.
    n_jobs : int, optional
        Threads.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats, certified. Products add up; channels whose secrets are all alike have their capacity at the uniform
        prior, in closed form; others are solved.

    Raises
    ------
    DomainError
        For rows that are no laws.
    MemoryError
        For channels that are written out and do not fit.

    Notes
    -----
    **Accuracy** the bracket counts all rounding (BOUNDS.md); ``tests/enclosures/test_channel_notions.py``.

    Source: Ngo et al. 2024, definition 1.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> round(notions.ci_lmip([[0.75, 0.25], [0.25, 0.75]]).value, 9)
    0.130812036
    >>> notions.ci_lmip(RandomizedResponse(2, 1.0).power(200)).value
    22.1888...
    """
    _parallel.checked(n_jobs)
    return channel_capacity(arguments.setting(None, mechanism).channel, rtol=rtol, n_jobs=n_jobs).capacity


@in_unit
def pointwise_lmip(
    prior: Any, mechanism: Any, *, certified: bool = False, n_jobs: int | None = None,
    progress: _parallel.Progress = None, unit: Information = "nats",
) -> Estimate:  # fmt: skip
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M), in nats.

    Mutual information is the mean of these divergences under the prior; a bound for every x needs their supremum.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``; a Pmf with a Gaussian mechanism.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    certified : bool, default False
        Ask for proved bounds whatever they cost; channels have them anyway.
    n_jobs, progress : optional
        As in ``mbp``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar, in ``unit``. ``kind`` is that of the weakest divergence used.

    Raises
    ------
    DomainError
        As ``ldp_delta``.

    Notes
    -----
    Points of a Gaussian mechanism are taken in the order of min{-log pi(x), sum over x' of
    pi(x') (x - x')^2 / (2 sigma^2)}, which bounds the divergence, until no later one can be larger.

    **Accuracy** as ``kl_divergence``, ``tests/enclosures/test_notions.py``; of channels as ``cd_lmip``.

    Source: the premise that the proof of theorem 2(a) of Ngo et al. 2024 uses in (35) to (37).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.pointwise_lmip(prior, GaussianMechanism(20.0)).to("bits").value
    0.63341...
    >>> notions.pointwise_lmip([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]]).value
    0.33272717777831...
    """
    _parallel.checked(n_jobs, progress)
    certified = _validate.flag("certified", certified)
    if arguments.discrete(mechanism):
        return _of_channel("pointwise", prior, mechanism, n_jobs, progress)
    return gaussian.pointwise_lmip(prior, mechanism, certified=certified)


def _of_channel(name: str, prior: Any, mechanism: Any, n_jobs: int | None, progress: Any) -> Estimate:
    found = leakage.readings(arguments.setting(prior, mechanism), (name,), n_jobs=n_jobs, progress=progress)
    return arguments.estimate(found[name], "nats")
