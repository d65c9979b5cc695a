"""Guessing: how much likelier a best guess gets, and leakage of Renyi order.

Notation: Q (n, m) a channel, pi the prior of the secret, q = pi Q the law of the release.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _parallel, _validate
from .._estimates import in_unit
from ..estimate import Estimate, Information
from .discrete import arguments, leakage, renyi, table

__all__ = ["bayes_vulnerability", "map_estimates", "maximal_leakage", "min_entropy_leakage", "renyi_leakage"]


def bayes_vulnerability(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> Estimate:
    """Bayes vulnerability: the chance that the best guess of the secret after the release is right.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret; None is uniform, a tuple holds one prior a factor of a product.
    mechanism : AnyChannel or array_like, shape (n, m)
        The channel.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        sum over releases of max pi(d) Q[d, w], a probability.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** 1e-15 relative for written channels, 1e-14 for structured ones, and the gaps of rows and prior;
    ``tests/enclosures/test_channel_notions.py``.

    Source: G. Smith, On the foundations of quantitative information flow (2009).

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.bayes_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value
    0.75
    """
    return _one("vulnerability", "probability", prior, mechanism, n_jobs, progress)


@in_unit
def min_entropy_leakage(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None,
    unit: Information = "nats"
) -> Estimate:
    """Min-entropy leakage: log of how much likelier the best guess gets by the release, in nats.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats, at least 0; formed from the gains of each release, so that small leakages keep their digits.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** 1e-14 relative; ``tests/enclosures/test_channel_notions.py``.

    Source: G. Smith, On the foundations of quantitative information flow (2009).

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.min_entropy_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).to("bits").value
    0.5849625007...
    """
    return _one("gain", "nats", prior, mechanism, n_jobs, progress)


@in_unit
def maximal_leakage(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None,
    unit: Information = "nats"
) -> Estimate:
    """Maximal leakage, log sum_w max_d Q[d, w] over the secrets that the prior gives mass, in nats.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``; of the prior only its support counts.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats. ``fastpriv.maximal_leakage`` takes stacks of written channels.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** 1e-14 relative; ``tests/enclosures/test_channel_notions.py``.

    Source: I. Issa, A. B. Wagner and S. Kamath, An operational approach to information leakage (2020), theorem 1.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> notions.maximal_leakage(None, RandomizedResponse(2**200, 1.0)).value
    1.0
    """
    return _one("maximal_support", "nats", prior, mechanism, n_jobs, progress)


@in_unit
def renyi_leakage(
    prior: Any, mechanism: Any, order: float, *, n_jobs: int | None = None, progress: _parallel.Progress = None,
    unit: Information = "nats"
) -> Estimate:
    """Sibson's mutual information of an order: a/(a-1) log sum_w (sum_d pi(d) Q[d, w]^a)^(1/a), in nats.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``.
    order : float
        a > 0; 1 gives mutual information and infinity maximal leakage.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats; it rises with the order.

    Raises
    ------
    DomainError
        As ``mbp``, and for an order that is not positive.

    Notes
    -----
    Within 0.05 of order 1 rows count as divided by their sums; others have no limit there.

    **Accuracy** about 1e-13 absolute at any order, next to 1 and to 0 too, 1e-5 for float32 next to 1;
    ``tests/enclosures/test_channel_notions_extremes.py``.

    Source: R. Sibson, Information radius (1969); S. Verdu, alpha-mutual information (2015).

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.renyi_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], 2.0).value
    0.22314355131...
    """
    _parallel.checked(n_jobs, progress)
    a = _validate.scalar("order", order, "positive", lambda x: x > 0)
    if a in (1.0, np.inf):
        return _one("information" if a == 1.0 else "maximal_support", "nats", prior, mechanism, n_jobs, progress)
    found = renyi.sibson(arguments.setting(prior, mechanism), a, n_jobs, progress)
    return arguments.estimate(found, "nats")


def map_estimates(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> NDArray[np.intp]:
    """The likeliest secret after each release, the lowest of equals; -1 for releases that never occur.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``; the channel is gone through row by row.

    Returns
    -------
    ndarray of int, shape (m,)
        Secrets, counted from 0; products of prior and cell are compared as they round.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    **Accuracy** exact but for ties within rounding; ``tests/enclosures/test_channel_notions.py``.

    Source: maximum a posteriori decision.

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.map_estimates([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])
    array([1, 1])
    """
    _parallel.checked(n_jobs, progress)
    whole = arguments.setting(prior, mechanism)
    first = table.columns(table.Table(arguments.rows_of(whole)), n_jobs=n_jobs, progress=progress)
    return np.where(first.occurs, first.place, -1)


def _one(name: str, unit: Any, prior: Any, mechanism: Any, n_jobs: int | None, progress: Any) -> Estimate:
    found = leakage.readings(arguments.setting(prior, mechanism), (name,), n_jobs=n_jobs, progress=progress)
    return arguments.estimate(found[name], unit)
