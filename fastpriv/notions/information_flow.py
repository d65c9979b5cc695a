"""Quantitative information flow: the gain of the best guess of the secret by a release.

Notation: Q (n, m) a channel, pi the prior of the secret, q = pi Q the distribution of the release.
"""

from __future__ import annotations

import numpy as np

from ..base import parallel
from ..base.estimate import Estimate, Information
from ..base.monotone import in_unit
from ..base.numerics import IndexArray
from ..base.parallel import Progress
from ..channels import ChannelStack
from ..mechanisms.broadcasting import broadcasting
from ..mechanisms.gaussian import GaussianMechanism
from . import gaussian
from .discrete.channel_with_prior import ChannelWithPrior, Mechanism, Prior, channel_with_prior, with_all_rows
from .discrete.dense_quantities import RowBlocks
from .discrete.stack_quantities import quantity, stack_with_priors


@broadcasting(itself=(ChannelStack,))
def bayes_vulnerability(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None
) -> Estimate:
    """Bayes vulnerability: the chance that the best guess of the secret after the release is right.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret; None is uniform, a tuple holds one prior for each factor of a product.
    mechanism : AnyChannel, ChannelStack, array_like, shape (n, m), or GaussianMechanism
        The channel. With a stack, priors may have shape (..., n), and the answers have the broadcast shape. With a
        ``GaussianMechanism`` the prior is a Pmf.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        sum over releases of max pi(d) Q[d, w], a probability; of Gaussian noise the integral, ``certified``.

    Notes
    -----
    Raises as ``mbp``. **Accuracy** 1e-15 relative for written channels, 1e-14 for structured ones, and the gaps of rows
    and prior; ``tests/enclosures/test_channel_notions.py``. Of Gaussian noise some 1e-14, more where sigma is below
    1e-4 of the range; ``tests/enclosures/test_notions.py``. Source: G. Smith, On the foundations of quantitative
    information flow (2009); the head of fastpriv/notions/gaussian.py.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> notions.bayes_vulnerability([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value
    0.75
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> round(notions.bayes_vulnerability(prior, GaussianMechanism(20.0)).value, 12)  # 0.5 without the release
    0.599226538694
    """
    parallel.checked(n_jobs, progress)
    if isinstance(mechanism, GaussianMechanism):
        return gaussian.bayes_vulnerability(prior, mechanism)
    return quantity("bayes_vulnerability", prior, mechanism, n_jobs, progress)


@in_unit
@broadcasting(itself=(ChannelStack,))
def min_entropy_leakage(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None,
    unit: Information = "nats",
) -> Estimate:
    """Min-entropy leakage: log of how much likelier the best guess gets by the release.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In ``unit``, at least 0; formed from the gains of each release, so that small leakages keep their digits.

    Notes
    -----
    Raises as ``mbp``. **Accuracy** 1e-14 relative; ``tests/enclosures/test_channel_notions.py``. Source: G. Smith, On
    the foundations of quantitative information flow (2009).

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.min_entropy_leakage([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], unit="bits").value
    0.5849625007...
    """
    return quantity("min_entropy_leakage", prior, mechanism, n_jobs, progress)


@in_unit
@broadcasting(itself=(ChannelStack,))
def maximal_leakage(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None,
    unit: Information = "nats",
) -> Estimate:
    """Maximal leakage, log sum_w max_d Q[d, w] over the secrets of positive prior probability.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress, unit
        As in ``min_entropy_leakage``; of the prior only its support counts.

    Returns
    -------
    Estimate
        In ``unit``. ``fastpriv.capacity.maximal_leakage`` takes stacks of written channels.

    Notes
    -----
    Raises as ``mbp``. **Accuracy** 1e-14 relative; ``tests/enclosures/test_channel_notions.py``. Source: I. Issa, A. B.
    Wagner and S. Kamath, An operational approach to information leakage (2020), theorem 1.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> notions.maximal_leakage(None, RandomizedResponse(2**200, 1.0)).value
    1.0
    """
    return quantity("maximal_leakage", prior, mechanism, n_jobs, progress)


@broadcasting(itself=(ChannelStack,))
def map_secrets(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None
) -> IndexArray:
    """The maximum a posteriori (likeliest) secret after each release; -1 for releases that never occur.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``bayes_vulnerability``; the channel is gone through row by row.

    Returns
    -------
    ndarray of int, shape (m,)
        Secrets, counted from 0, the lowest of equals; products of prior and cell are compared as they round. Of a stack
        shape (..., m).

    Notes
    -----
    Raises as ``mbp``. **Accuracy** exact but for ties within rounding; ``tests/enclosures/test_channel_notions.py``.
    Source: maximum a posteriori decision.

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.map_secrets([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]])
    array([1, 1])
    """
    parallel.checked(n_jobs, progress)
    if isinstance(mechanism, ChannelStack):
        pairs = stack_with_priors(prior, mechanism)
        secrets = np.full((pairs.size, mechanism.outputs), -1, dtype=np.intp)

        def of_block(part: slice) -> None:
            _, result, status = pairs.columns(part)
            if result.size:
                secrets[part] = result
            for index in (part.start + np.flatnonzero(status)).tolist():
                secrets[index] = _map_secrets(pairs.pair(index), 1, None)

        for _ in parallel.ordered_map(of_block, pairs.blocks(), n_jobs=n_jobs, progress=progress, shared=True):
            pass
        secrets[pairs.invalid] = -1
        return secrets.reshape(*pairs.shape, mechanism.outputs)
    return _map_secrets(channel_with_prior(prior, mechanism), n_jobs, progress)


def _map_secrets(model: ChannelWithPrior, n_jobs: int | None, progress: Progress) -> IndexArray:
    columns = RowBlocks(with_all_rows(model), n_jobs, progress).columns
    return np.where(columns.occurs, columns.map_secret, -1)
