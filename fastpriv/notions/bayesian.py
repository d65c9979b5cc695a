"""Bayesian privacy: how far beliefs about the secret move, at most (MBP) and in the mean (ABP).

Notation: X is the secret with prior pi on points x, M the mechanism.
"""

# bounds: tested by enclosures/test_channel_notions - rounding of a root

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _parallel
from .._values import FloatArray
from ..errors import DomainError
from ..estimate import Estimate
from ..kernels import _table
from . import gaussian
from .discrete import arguments, beliefs, leakage

__all__ = ["AverageBayesianPrivacy", "MaximumBayesianPrivacy", "abp", "averaged", "mbp", "mbp_xi"]


@dataclass(frozen=True, slots=True)
class MaximumBayesianPrivacy:
    """Maximum Bayesian privacy and its two sides, in nats.

    Parameters
    ----------
    xi : Estimate
        The larger of both sides.
    plus : Estimate
        max ln(posterior / prior): how much likelier a secret can get.
    minus : Estimate
        -min ln(posterior / prior): how much less likely; infinite where a release rules a secret out.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> found = notions.mbp(None, RandomizedResponse(3, 1.0))
    >>> found.xi.value == found.plus.value > found.minus.value
    True
    """

    xi: Estimate
    plus: Estimate
    minus: Estimate


def mbp(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> MaximumBayesianPrivacy:
    """Maximum Bayesian privacy with both sides: the extremes of ln posterior(d) / prior(d), in nats.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret; None is the uniform law, a tuple holds one prior for each factor of a product.
        Secrets of prior zero and releases that never occur do not count. With a ``GaussianMechanism``, a Pmf.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    progress : bool or callable, optional
        A bar, or a function of the blocks done and all.

    Returns
    -------
    MaximumBayesianPrivacy
        Estimates, ``kind="exact"``: closed forms for structured channels, sums over the factors of products, else one
        pass over the rows.

    Raises
    ------
    DomainError
        For a prior or rows that are no laws, positive prior probabilities below 1e-300, or a channel without a closed
        form that has more than 2**37 cells.

    Notes
    -----
    Cells count as exact. Rows that miss 1 by g widen the bounds by 2.1 g: they hold for the rows
    divided by their sums too.

    **Accuracy** 1e-14 relative and absolute; ``tests/enclosures/test_channel_notions.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.3.

    Examples
    --------
    >>> from fastpriv import notions
    >>> found = notions.mbp([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> found.plus.value, found.minus.value  # log 3/2 and log 2
    (0.405465108..., 0.693147180...)
    """
    _parallel.checked(n_jobs, progress)
    if not arguments.discrete(mechanism):
        xi = gaussian.mbp_xi(prior, mechanism)
        return MaximumBayesianPrivacy(xi, xi, xi)
    found = leakage.readings(
        arguments.setting(prior, mechanism), ("plus", "minus"), n_jobs=n_jobs, progress=progress
    )
    plus, minus = (arguments.estimate(found[side], "nats") for side in ("plus", "minus"))
    ends = (max(float(getattr(plus, end)), float(getattr(minus, end))) for end in ("value", "lower", "upper"))
    xi = Estimate(*ends, kind="exact", unit="nats", method=(plus if plus.value > minus.value else minus).method)
    return MaximumBayesianPrivacy(xi, plus, minus)


def mbp_xi(
    prior: Any, mechanism: Any, *, n_jobs: int | None = None, progress: _parallel.Progress = None
) -> Estimate:
    """Maximum Bayesian privacy: sup over x and releases of |log posterior(x) / prior(x)|, in nats.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law of the secret, as in ``mbp``.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret. Of a Gaussian mechanism nothing but the type counts.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    Estimate
        ``mbp(...).xi``. For a Gaussian mechanism 0 for one point and infinity otherwise, since a far release of normal
        noise rules every inner point out.

    Raises
    ------
    DomainError
        As ``mbp``.

    Notes
    -----
    It is pure local information privacy too: ``lip_epsilon``.

    **Accuracy** as ``mbp``; ``tests/enclosures/test_notions.py``, ``tests/enclosures/test_channel_notions.py``.

    Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.3.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, RandomizedResponse, notions
    >>> notions.mbp_xi(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(3.0)).value
    inf
    >>> notions.mbp_xi(None, RandomizedResponse(2**200, 1.0)).value
    1.0
    """
    _parallel.checked(n_jobs, progress)
    return mbp(prior, mechanism, n_jobs=n_jobs, progress=progress).xi


@dataclass(frozen=True, slots=True)
class AverageBayesianPrivacy:
    """Average Bayesian privacy for every true value, its maximum over them, and its mean under the prior.

    Parameters
    ----------
    per_value : Estimate
        One entry a point of the prior, in increasing order of the points; between 0 and sqrt(log 2).
    maximum : Estimate
        The largest of them.
    mean : Estimate
        Their mean, weighted by the prior.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.per_value.shape, bool(shift.mean.value <= shift.maximum.value)
    ((2,), True)
    """

    per_value: Estimate
    maximum: Estimate
    mean: Estimate


def abp(
    prior: Any, mechanism: Any, *, release: ArrayLike | None = None, secret: Any = None,
    belief: ArrayLike | None = None, n_jobs: int | None = None, progress: _parallel.Progress = None,
) -> AverageBayesianPrivacy:  # fmt: skip
    """Average Bayesian privacy: root of JS(expected posterior || belief), the release drawn at the true value.

    Parameters
    ----------
    prior : Pmf, array_like of shape (n,), tuple or None
        The law that posteriors are formed with; None is uniform. With a ``GaussianMechanism``, a Pmf.
    mechanism : AnyChannel, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret.
    release : array_like, shape (m,), optional
        One law of the release to take the mean of posteriors over, such as that of the releases that were seen. The
        law under the prior itself is refused: the mean posterior is then the prior, whatever the channel.
    secret : int or sequence of int, optional
        True secrets, each of which gives a law of the release; default all that the prior gives mass.
    belief : array_like, shape (n,), optional
        What the attacker believes before the release, where that is not ``prior``.
    n_jobs, progress : optional
        As in ``mbp``.

    Returns
    -------
    AverageBayesianPrivacy
        ``per_value`` with one entry a true secret: those of ``secret``, or all with positive prior in their order (one
        for all where they are alike, one a distinct row of a ``DefaultChannel``, one a type of secrets of a product
        with more than 65,536 of them under a product prior), or one for ``release``; the ``maximum`` and the ``mean``
        under the prior. Each between 0 and sqrt(log 2) = 0.8326.

    Raises
    ------
    DomainError
        As ``mbp``; for a release drawn from the prior, mass on releases that never occur, or secrets without prior;
        for all secrets of a product where they are of more than 65,536 types.
    ShapeError
        For vectors of another length.

    Notes
    -----
    For all n secrets it takes n^2 m multiplications. Expected posteriors of products under product priors are products
    too: one integral for each type of secrets (how many places of each factor hold which secret), up to 2^200 secrets
    and beyond, for factors of up to 2^20 such multiplications and those whose secrets are alike
    (``tests/enclosures/test_product_notions.py``). Channels whose secrets are alike have a closed form; unary encodings
    take one integral for each pair of distinct prior probabilities, up to 2,048 of these
    (``tests/enclosures/test_sets_notions.py``).

    **Accuracy** bounds include rounding and what rows and prior miss 1 by;
    ``tests/enclosures/test_channel_notions.py``. Of Gaussian mechanisms as
    ``fastpriv.posteriors.gaussian.gaussian_abp``; ``tests/enclosures/test_notions.py``.

    Source: Zhang and Chen, definition IV.1.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, RandomizedResponse, notions
    >>> shift = notions.abp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.5))
    >>> shift.maximum.value
    0.20434...
    >>> notions.abp([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]]).per_value.value.round(6)
    array([0.112469, 0.032214])
    >>> bits = RandomizedResponse(2, 0.1).power(200)
    >>> notions.abp(None, bits).maximum.value, notions.abp(([0.25, 0.75],), bits).maximum.value
    (0.012478..., 0.016203...)
    """
    _parallel.checked(n_jobs, progress)
    if arguments.discrete(mechanism):
        return averaged(beliefs.shifts(arguments.setting(prior, mechanism), release, secret, belief, n_jobs, progress))
    if release is not None or secret is not None or belief is not None:
        raise DomainError(
            "release, secret and belief must be None for a Gaussian mechanism; got one of them. Pass a channel, "
            "such as the law of a rounded release."
        )
    return _summarised(gaussian.abp_per_value(prior, mechanism), prior.probabilities)


def averaged(found: beliefs.Shifts) -> AverageBayesianPrivacy:
    """Of a channel."""
    value = found.value
    ends = np.minimum(found.lower, value), np.maximum(found.upper, value)
    shift = Estimate(value, *ends, kind="certified", unit="1", method=found.method)
    weight = np.ones(1) if found.weight is None else found.weight / found.weight.sum()
    return _summarised(shift, weight, 2.1 * found.blur)


def _summarised(shift: Estimate, weight: FloatArray, blur: float = 0.0) -> AverageBayesianPrivacy:
    parts: list[Estimate] = []
    for summary in (np.max, lambda column: _table.accurate_sum(weight * column)):
        value, lower, upper = (float(summary(column)) for column in (shift.value, shift.lower, shift.upper))
        bounds = min(lower * (1 - 1e-15 - blur), value), max(upper * (1 + 1e-15 + blur), value)
        parts.append(Estimate(value, *bounds, kind=shift.kind, unit="1", method=shift.method, cost=shift.cost))
    return AverageBayesianPrivacy(shift, *parts)
