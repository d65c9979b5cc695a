"""Bayesian privacy: how far beliefs about the secret move, at most (MBP) and on average (ABP).

Notation: X is the secret with prior pi on points x, M the mechanism.
"""

# bounds: proved - docs/proofs/roundings.md, 13.14: rounding of a weighted mean

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..base import parallel
from ..base.errors import DomainError
from ..base.estimate import KINDS, Estimate, Result
from ..base.numerics import FloatArray, IndexArray
from ..base.parallel import Progress
from ..channels import ChannelStack
from ..channels.type_classes import prior_gap
from ..kernels import _channel_blocks
from ..mechanisms import GaussianMechanism
from ..mechanisms.broadcasting import broadcasting
from ..posteriors.gaussian import gaussian_abp
from . import gaussian
from .discrete.abp import PosteriorShifts, is_one_task, posterior_shifts, shifts_of_channels
from .discrete.channel_with_prior import Mechanism, Prior, channel_with_prior, is_channel
from .discrete.stack_quantities import StackWithPriors, quantities, stack_estimate, stack_with_priors


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MaximumBayesianPrivacy(Result):
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
    >>> privacy = notions.mbp(None, RandomizedResponse(3, 1.0))
    >>> privacy.xi.value == privacy.plus.value > privacy.minus.value
    True
    """

    xi: Estimate
    plus: Estimate
    minus: Estimate


@broadcasting(itself=(ChannelStack, GaussianMechanism))
def mbp(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None
) -> MaximumBayesianPrivacy:
    """Maximum Bayesian privacy with both sides: the extremes of ln posterior(d) / prior(d), in nats.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Probability of each secret; None is the uniform prior, a tuple holds one prior for each factor of a product.
        Secrets of prior zero and releases that never occur do not count. With a ``GaussianMechanism``, a Pmf; with a
        stack of mechanisms, also priors of shape (..., n) or a ``PmfStack``.
    mechanism : AnyChannel, ChannelStack, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret. Of stacks, and arrays of sigma, the answers have the broadcast shape.
    n_jobs : int, optional
        Threads; the answer does not depend on it.
    progress : bool or callable, optional
        A bar, or a function of the numbers of blocks done and in all.

    Returns
    -------
    MaximumBayesianPrivacy
        Estimates, ``kind="exact"``: closed forms for structured channels, sums over the factors of products, else one
        pass over the rows. For a Gaussian mechanism 0 for one point and infinity otherwise, since a far release of
        normal noise rules every inner point out.

    Raises
    ------
    DomainError
        For a prior or rows that are no probability distributions, positive prior probabilities below 1e-300, or a
        channel without a closed form that has more than 2**37 cells.

    Notes
    -----
    ``xi`` is pure local information privacy too: ``lip_epsilon``. Cells count as exact. Rows that miss 1 by g widen the
    bounds by 2.1 g: they hold for the rows divided by their sums too.

    **Accuracy** 1e-14 relative and absolute; ``tests/enclosures/test_channel_notions.py``,
    ``tests/enclosures/test_notions.py``. Source: Zhang and Chen, Bridging Privacy and Robustness, definition IV.3.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, RandomizedResponse, notions
    >>> privacy = notions.mbp([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]])
    >>> privacy.plus.value, privacy.minus.value  # log 3/2 and log 2
    (0.405465108..., 0.693147180...)
    >>> notions.mbp(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(3.0)).xi.value
    inf
    >>> notions.mbp(None, RandomizedResponse(2**200, 1.0)).xi.value
    1.0
    """
    parallel.checked(n_jobs, progress)
    if not is_channel(mechanism):
        xi = gaussian.lip_epsilon(prior, mechanism)
        return MaximumBayesianPrivacy(xi, xi, xi)
    plus, minus = quantities(("xi_plus", "xi_minus"), prior, mechanism, n_jobs, progress).values()
    return MaximumBayesianPrivacy(larger_side(plus, minus), plus, minus)


def larger_side(plus: Estimate, minus: Estimate) -> Estimate:
    """xi, the larger of both sides of MBP, of the weaker of their kinds."""
    kind: Any = max(plus.kind, minus.kind, key=KINDS.index)
    if plus.shape:
        numbers = (np.maximum(getattr(plus, end), getattr(minus, end)) for end in ("value", "lower", "upper"))
        return Estimate._of_arrays(*numbers, kind=kind, unit="nats", method=plus.method, cost=plus.cost)
    ends = (max(float(getattr(plus, end)), float(getattr(minus, end))) for end in ("value", "lower", "upper"))
    return Estimate(*ends, kind=kind, unit="nats", method=(plus if plus.value > minus.value else minus).method)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AverageBayesianPrivacy(Result):
    """Average Bayesian privacy for every true value, its maximum over them, and its mean under the prior.

    Parameters
    ----------
    per_value : Estimate
        One entry for each point of the prior, in increasing order of the points; between 0 and sqrt(log 2).
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


@broadcasting(itself=(ChannelStack,))
def abp(
    prior: Prior, mechanism: Mechanism, *, release: ArrayLike | None = None, secret: ArrayLike | None = None,
    belief: ArrayLike | None = None, n_jobs: int | None = None, progress: Progress = None,
) -> AverageBayesianPrivacy:
    """Average Bayesian privacy: root of JS(expected posterior || belief), the release drawn at the true value.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``mbp``.
    release : array_like, shape (m,), optional
        A distribution of the release over which posteriors are averaged, such as that of the releases that were seen.
        The distribution under the prior itself is refused: the mean posterior is then the prior, whatever the channel.
    secret : int or sequence of int, optional
        True secrets, each of which gives a distribution of the release; default all of positive prior probability.
    belief : array_like, shape (n,), optional
        What the attacker believes before the release, if that is not ``prior``.

    Returns
    -------
    AverageBayesianPrivacy
        ``per_value`` with one entry for each true secret: those of ``secret``, or all with positive prior in their
        order (one for all where they are alike, one for each distinct row of a ``DefaultChannel``, one for each type of
        secrets of a product with more than 65,536 of them under a product prior), or one for ``release``; the
        ``maximum`` and the ``mean`` under the prior. Each between 0 and sqrt(log 2) = 0.8326. Of a ``ChannelStack``
        ``per_value`` has shape (..., n), with NaN for secrets without prior.

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
    too: one integral for each type of secrets (how many factors hold which secret), up to 2^200 secrets and beyond, for
    factors of up to 2^20 such multiplications and those whose secrets are alike
    (``tests/enclosures/test_product_notions.py``). Channels whose secrets are alike have a closed form; unary encodings
    take one integral for each pair of distinct prior probabilities, up to 2,048 of these
    (``tests/enclosures/test_sets_notions.py``).

    **Accuracy** bounds include rounding and what rows and prior miss 1 by;
    ``tests/enclosures/test_channel_notions.py``. Of Gaussian mechanisms as ``gaussian_abp``;
    ``tests/enclosures/test_notions.py``. Source: Zhang and Chen, definition IV.1.

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
    parallel.checked(n_jobs, progress)
    if isinstance(mechanism, ChannelStack):
        if release is not None or secret is not None or belief is not None:
            raise DomainError(
                "release, secret and belief must be None for a stack of channels; got one of them. Take its channels "
                "one by one."
            )
        return _abp_of_stack(stack_with_priors(prior, mechanism), n_jobs, progress)
    if is_channel(mechanism):
        model = channel_with_prior(prior, mechanism)
        return abp_of_shifts(posterior_shifts(model, release, secret, belief, n_jobs, progress))
    if release is not None or secret is not None or belief is not None:
        raise DomainError(
            "release, secret and belief must be None for a Gaussian mechanism; got one of them. Pass a channel, "
            "such as the rounded release."
        )
    pmf, sigma = gaussian.validated(prior, mechanism)
    return _with_maximum_and_mean(gaussian_abp(pmf, sigma), pmf.probabilities)


def _abp_of_stack(pairs: StackWithPriors, n_jobs: int | None, progress: Progress) -> AverageBayesianPrivacy:
    _, n, m = pairs.cells.shape
    per_value, others = np.full((3, pairs.size, n), np.nan), np.full((2, 3, pairs.size), np.nan)
    valid = np.ones(pairs.size, dtype=np.bool_)
    valid[pairs.invalid] = False

    def of_pairs(chosen: IndexArray, secrets: IndexArray, shifts: PosteriorShifts) -> None:
        assert shifts.weight is not None
        ends = _outward(shifts).reshape(3, chosen.size, secrets.size)
        per_value[:, chosen[:, None], secrets] = ends
        weight = shifts.weight / _channel_blocks.accurate_sums(shifts.weight)[..., None]
        others[:, :, chosen] = _maximum_and_mean(ends, weight)

    def of_block(part: slice) -> None:
        columns, _, status = pairs.columns(part)
        left = np.arange(part.start, part.stop)[valid[part]]
        for chosen, on_support in pairs.by_support(left[status[left - part.start] == 0]):
            if is_one_task(n, m) and is_one_task(int(np.count_nonzero(on_support)), m):
                priors = pairs.weights(chosen)
                cells, secrets = pairs.cells[pairs.channel[chosen]], np.flatnonzero(on_support)
                numbers = cells[:, secrets], columns[chosen - part.start], priors[:, secrets], gaps[chosen]
                of_pairs(chosen, secrets, shifts_of_channels(*numbers))
                left = np.setdiff1d(left, chosen)
        for index in left:
            model = pairs.pair(int(index))
            shifts = posterior_shifts(model, None, None, None, 1, None)
            of_pairs(np.array([index]), np.flatnonzero(model.weights > 0), shifts)

    of_priors = np.array([prior_gap(prior) for prior in ([None] if pairs.priors is None else pairs.priors)])
    gaps = 2.1 * pairs.gaps[pairs.channel] + 1.1 * of_priors[pairs.prior]
    blocks = pairs.blocks(max(n, 16))
    for _ in parallel.ordered_map(of_block, blocks, n_jobs=n_jobs, progress=progress, shared=True):
        pass
    method = "expected posterior, centred" if valid.any() else "no channel"
    estimates = (stack_estimate(pairs, numbers, "certified", method, "1") for numbers in (per_value, *others))
    return AverageBayesianPrivacy(*estimates)


def abp_of_shifts(shifts: PosteriorShifts) -> AverageBayesianPrivacy:
    """The result of ``abp`` for a channel."""
    value, lower, upper = _outward(shifts)
    per_value = Estimate(value, lower, upper, kind="certified", unit="1", method=shifts.method)
    weight = np.ones(1) if shifts.weight is None else shifts.weight / _channel_blocks.accurate_sum(shifts.weight)
    return _with_maximum_and_mean(per_value, weight, 2.1 * shifts.weight_error)


def _outward(shifts: PosteriorShifts) -> FloatArray:
    """Values, lower and upper bounds (3, ...), in order."""
    return np.stack([shifts.value, np.minimum(shifts.lower, shifts.value), np.maximum(shifts.upper, shifts.value)])


def _maximum_and_mean(ends: FloatArray, weight: FloatArray, weight_error: float = 0.0) -> FloatArray:
    """Of values and bounds (3, ..., n): the same of the maximum and of the mean, (2, 3, ...)."""
    result = np.stack([np.max(ends, axis=-1), _channel_blocks.accurate_sums(weight * ends)])
    value = result[:, 0]
    lower, upper = result[:, 1] * (1 - 1e-15 - weight_error), result[:, 2] * (1 + 1e-15 + weight_error)
    return np.stack([value, np.minimum(lower, value), np.maximum(upper, value)], axis=1)


def _with_maximum_and_mean(
    per_value: Estimate, weight: FloatArray, weight_error: float = 0.0
) -> AverageBayesianPrivacy:
    results = [
        Estimate(*ends, kind=per_value.kind, unit="1", method=per_value.method, cost=per_value.cost)
        for ends in _maximum_and_mean(np.array(per_value.arrays()), weight, weight_error).tolist()
    ]
    return AverageBayesianPrivacy(per_value, *results)
