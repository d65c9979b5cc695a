"""Local privacy: how well one release distinguishes value from value (LDP) and value from mixture (LIP), and its mutual
information (LMIP).

Notation: X is the secret with prior pi on points x, M the mechanism, P_x the distribution of M(x), P_M that of M(X).
``epsilon`` is in nats.
"""

# bounds: none - sums farther from 1 are refused

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import parallel, validate
from ..base.estimate import Estimate, Information, NumberLike, with_negative_levels
from ..base.monotone import in_unit, monotone
from ..base.numerics import FloatArray
from ..base.parallel import Progress
from ..capacity.finite import channel_capacity
from ..channels import ChannelStack
from ..distributions import PmfStack
from ..divergences.information import information_of_settings
from ..divergences.one_dimension.integrals import mutual_information
from ..mechanisms import GaussianMechanism
from ..mechanisms.broadcasting import broadcasting
from . import gaussian
from .bayesian import mbp
from .discrete import delta_curves
from .discrete.channel_with_prior import Mechanism, Prior, channel_with_prior, is_channel
from .discrete.stack_quantities import quantity


@broadcasting(itself=(ChannelStack, GaussianMechanism))
def ldp_epsilon(
    prior: Prior, mechanism: Mechanism, *, on_support: bool = False, n_jobs: int | None = None,
    progress: Progress = None,
) -> Estimate:
    """Pure local differential privacy: the largest log ratio of the probabilities of a release, in nats.

    Parameters
    ----------
    prior : array_like, shape (n,), Pmf, tuple or None
        Counts only with ``on_support``; None will do otherwise. With a ``GaussianMechanism``, a Pmf whose points count.
    mechanism, n_jobs, progress
        As in ``mbp``.
    on_support : bool, default False
        Compare only the secrets of positive prior probability, instead of all.

    Returns
    -------
    Estimate
        In nats, ``kind="exact"``: from the largest and the smallest cell of each column, never from pairs; 0/0 does not
        count, and x/0 is infinite. Of a Gaussian mechanism infinite, unless there is one point.

    Notes
    -----
    Raises as ``mbp``. **Accuracy** 1e-15 relative for written channels, 1e-14 for structured ones, and 2.1 times what
    rows miss 1 by; ``tests/enclosures/test_channel_notions.py``. Source: Kasiviswanathan et al. 2011; Duchi, Jordan and
    Wainwright 2013.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> notions.ldp_epsilon(None, [[0.75, 0.25], [0.25, 0.75]]).value  # log 3
    1.098612288...
    >>> notions.ldp_epsilon(None, RandomizedResponse(2, 1.0).power(200)).value
    200.0
    """
    parallel.checked(n_jobs, progress)
    on_support = validate.flag("on_support", on_support)
    if not is_channel(mechanism):
        return gaussian.lip_epsilon(prior, mechanism)  # both are 0 or infinite
    return quantity("ldp_on_support" if on_support else "ldp_epsilon", prior, mechanism, n_jobs, progress)


@broadcasting(itself=(ChannelStack, GaussianMechanism))
def lip_epsilon(
    prior: Prior, mechanism: Mechanism, *, n_jobs: int | None = None, progress: Progress = None
) -> Estimate:
    """Pure local information privacy: sup over secrets and releases of |log posterior / prior|, in nats.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``mbp``. Of a Gaussian mechanism nothing but the type counts.

    Returns
    -------
    Estimate
        ``mbp(...).xi``: both notions bound one ratio.

    Notes
    -----
    Raises as ``mbp``. **Accuracy** as ``mbp``; ``tests/enclosures/test_channel_notions.py``. Source: Jiang, Seif,
    Tandon and Li, Context-aware local information privacy (2021), definition 3.

    Examples
    --------
    >>> from fastpriv import notions
    >>> notions.lip_epsilon([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value  # log 2
    0.693147180...
    """
    return mbp(prior, mechanism, n_jobs=n_jobs, progress=progress).xi


@monotone(falling="epsilon")
@broadcasting(levels="epsilon", itself=(ChannelStack, GaussianMechanism))
def ldp_delta(
    prior: Prior, mechanism: Mechanism, epsilon: NumberLike, *, on_support: bool = False, n_jobs: int | None = None,
    progress: Progress = None,
) -> Estimate:
    """Optimal LDP curve over the secrets: sup over x, x' of H_{e^epsilon}(P_x || P_x').

    Parameters
    ----------
    prior, on_support, n_jobs, progress
        As in ``ldp_epsilon``.
    mechanism : AnyChannel, ChannelStack, array_like of shape (n, m), or GaussianMechanism
        How the release depends on the secret. Of a Gaussian mechanism, sigma is used; the sensitivity is the distance
        of the outermost points.
    epsilon : array_like or Estimate
        Any shape; one pass serves them all. With a stack, or an array of sigmas, its last axis belongs to each channel
        or sigma, and the axes before it broadcast with theirs.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``; ``kind="exact"`` for a Gaussian mechanism, ``"certified"`` for a
        channel, and exactly 0 from its LDP level on.

    Raises
    ------
    DomainError
        For a NaN epsilon, a prior that is no Pmf with a mechanism that is no channel, or as ``mbp``.

    Notes
    -----
    Structured channels, and their products, know the worst pair of rows. All ordered pairs of a written channel cost
    n^2 m operations for each epsilon below its LDP level. Of many rows most pairs take part in a screen in single
    precision only, and groups of like rows in one of their envelopes, which prove that they are not the worst: a minute
    of one core for 20,000 rows, 100 releases and 20 levels.

    **Accuracy** as ``GaussianMechanism.delta``, ``tests/enclosures/test_notions.py``; of channels about 1e-15 absolute,
    by ``tests/enclosures/test_channel_notions.py``. Source: Ngo, Ostman and Graell i Amat 2024, eqs (4) and (9).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.ldp_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.5991..., 0.3318...])
    >>> notions.ldp_delta(None, [[0.75, 0.25], [0.25, 0.75]], [0.0, 0.5, 2.0]).value.round(6)
    array([0.5    , 0.33782, 0.     ])
    """
    parallel.checked(n_jobs, progress)
    on_support = validate.flag("on_support", on_support)
    levels = validate.real("epsilon", epsilon, "a number", lambda e: e == e)

    def curve(levels: FloatArray) -> Estimate:
        if isinstance(mechanism, ChannelStack):
            return delta_curves.ldp_delta_of_stack(prior, mechanism, levels, on_support, n_jobs, progress)
        if is_channel(mechanism):
            model = channel_with_prior(prior, mechanism)
            return delta_curves.ldp_delta(model, levels, on_support, n_jobs, progress)
        return gaussian.ldp_delta(prior, mechanism, levels)

    if not (levels < 0.0).any():
        return curve(levels)
    if isinstance(mechanism, ChannelStack):
        gap = float(np.max(mechanism.mass_gaps, initial=0.0))
    else:
        gap = channel_with_prior(prior, mechanism).channel.mass_gap if is_channel(mechanism) else 0.0
    return with_negative_levels(levels, curve, curve, gap=gap)  # the pairs of secrets are ordered in both ways


@monotone(falling="epsilon")
def lip_delta(
    prior: Prior, mechanism: Mechanism, epsilon: NumberLike, *, n_jobs: int | None = None, progress: Progress = None
) -> Estimate:
    """Optimal LIP curve: sup over x of max{H_{e^epsilon}(P_M || P_x), e^-epsilon H_{e^epsilon}(P_x || P_M)}.

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``mbp``.
    epsilon : array_like or Estimate
        Non-negative, any shape. With a stack, or an array of sigmas, as in ``ldp_delta``.

    Returns
    -------
    Estimate
        Probabilities of the shape of ``epsilon``, ``kind="certified"``: the maximum over points is proved.

    Notes
    -----
    The likelihood ratio of P_M and one P_x is log-convex, so each set has at most two crossings; and the first of the
    two divergences is never the smaller (proved in ``csrc/line/fp_lip.h``). Of many points few are evaluated: runs of
    others are proved to be no worse. Products of channels under product priors go by types of secrets and of releases,
    up to 2^200 secrets and beyond, if these types are few: secrets of a factor that are never the worst ones are left
    out, and equal ratios count together.

    Raises as ``ldp_delta``. **Accuracy** relative width at most 1e-12 for up to a thousand points, 1e-9 for more;
    ``tests/enclosures/test_lip.py``, ``tests/enclosures/test_notions.py``. Of channels about 1e-14 absolute,
    ``tests/enclosures/test_channel_notions.py``, and of products 1e-11 relative but for what a prior misses 1 by,
    ``tests/enclosures/test_product_notions.py``. Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, RandomizedResponse, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.lip_delta(prior, GaussianMechanism(20.0), [0.5, 2.0]).upper
    array([0.2801..., 0.0859...])
    >>> notions.lip_delta(([0.25, 0.75],), RandomizedResponse(2, 0.1).power(200), [0.5, 2.0]).value
    array([0.26224..., 0.02936...])
    """
    return lip_curves(prior, mechanism, epsilon, n_jobs=n_jobs, progress=progress)[0]


@monotone(falling="epsilon")
def log_lip_delta(
    prior: Prior, mechanism: Mechanism, epsilon: NumberLike, *, n_jobs: int | None = None, progress: Progress = None
) -> Estimate:
    """Natural logarithm of the optimal LIP curve, far below 1e-300.

    Parameters
    ----------
    prior, mechanism, epsilon, n_jobs, progress
        As in ``lip_delta``.

    Returns
    -------
    Estimate
        Log probabilities of the shape of ``epsilon``, ``kind="certified"``.

    Notes
    -----
    Raises as ``ldp_delta``. **Accuracy** as ``lip_delta``, relative to the larger of 1 and the logarithm's size.
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
@broadcasting(levels="epsilon", itself=(ChannelStack, GaussianMechanism))
def lip_curves(
    prior: Prior, mechanism: Mechanism, epsilon: NumberLike, *, n_jobs: int | None = None, progress: Progress = None
) -> tuple[Estimate, Estimate]:
    """Both ``lip_delta`` and ``log_lip_delta`` from one pass over the points.

    Parameters
    ----------
    prior, mechanism, epsilon, n_jobs, progress
        As in ``lip_delta``.

    Returns
    -------
    tuple of Estimate
        The curve and its natural logarithm, both ``kind="certified"``.

    Notes
    -----
    Raises as ``ldp_delta``. **Accuracy** as ``lip_delta`` and ``log_lip_delta``. Source: Ngo et al. 2024, eq. (6).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> delta, log_delta = notions.lip_curves(Pmf([0.0, 1.0], [0.5, 0.5]), GaussianMechanism(0.2), 3.0)
    >>> delta.value, log_delta.value
    (0.46869..., -0.75779...)
    """
    parallel.checked(n_jobs, progress)
    if isinstance(mechanism, ChannelStack):
        delta = delta_curves.lip_delta_of_stack(prior, mechanism, epsilon, n_jobs, progress)
        return delta, delta.to("log probability")
    if is_channel(mechanism):
        delta = delta_curves.lip_delta(channel_with_prior(prior, mechanism), epsilon, n_jobs, progress)
        return delta, delta.to("log probability")
    return gaussian.lip_curves(prior, mechanism, epsilon, n_jobs, progress)


@in_unit
@broadcasting(itself=(ChannelStack, GaussianMechanism, PmfStack))
def cd_lmip(
    prior: Prior, mechanism: Mechanism, *, certified: bool = False, n_jobs: int | None = None,
    progress: Progress = None, unit: Information = "nats",
) -> Estimate:
    """Context-dependent local mutual-information privacy: the mutual information I(X; M(X)).

    Parameters
    ----------
    prior, mechanism, n_jobs, progress
        As in ``mbp``.
    certified : bool, default False
        Ask for proved bounds whatever they cost; channels have them anyway.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar, in ``unit``.

    Notes
    -----
    Of a channel, the mean of the divergences of its rows from pi Q, all terms of which are positive. Of unary encodings
    and subset selections under priors of many distinct probabilities, an integral of products over bits.

    Raises as ``ldp_delta``. **Accuracy** as ``mutual_information``, ``tests/enclosures/test_notions.py``; of channels
    about 1e-14 relative, by ``tests/enclosures/test_channel_notions.py``; of products over bits about 1e-12 of the
    information about a secret that is one of two, ``tests/enclosures/test_sets_notions.py``. Source: Ngo et al. 2024,
    definition 2.

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.cd_lmip(prior, GaussianMechanism(20.0), unit="bits").value
    0.287195...
    >>> notions.cd_lmip([0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]]).value
    0.13081203594113...
    """
    parallel.checked(n_jobs, progress)
    certified = validate.flag("certified", certified)
    if is_channel(mechanism):
        return quantity("cd_lmip", prior, mechanism, n_jobs, progress)
    if isinstance(prior, PmfStack) or (isinstance(mechanism, GaussianMechanism) and np.ndim(mechanism.sigma)):
        pmfs: Any = prior
        return information_of_settings(pmfs, gaussian.sigmas_of(mechanism), certified, n_jobs, progress)
    return mutual_information(*gaussian.validated(prior, mechanism), certified=certified)


@in_unit
@broadcasting(itself=(ChannelStack,))
def ci_lmip(
    mechanism: Mechanism, *, rtol: float = 1e-9, n_jobs: int | None = None, unit: Information = "nats"
) -> Estimate:
    """Context-independent local mutual-information privacy: the capacity, sup over priors of I(X; M(X)).

    Parameters
    ----------
    mechanism : AnyChannel, ChannelStack or array_like, shape (n, m)
        The channel, or a stack of them.
    rtol : float, default 1e-9
        Width of the bracket at which the solver stops, as in ``channel_capacity``.
    n_jobs : int, optional
        Threads.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In ``unit``, certified. Capacities of products add up; channels whose secrets are all alike have their capacity
        at the uniform prior, in closed form; others are solved.

    Raises
    ------
    DomainError
        For rows that are no probability distributions.
    MemoryError
        For channels that are written out and do not fit.

    Notes
    -----
    **Accuracy** the bracket counts all rounding (BOUNDS.md); ``tests/enclosures/test_channel_notions.py``. Source: Ngo
    et al. 2024, definition 1.

    Examples
    --------
    >>> from fastpriv import RandomizedResponse, notions
    >>> round(notions.ci_lmip([[0.75, 0.25], [0.25, 0.75]]).value, 9)
    0.130812036
    >>> notions.ci_lmip(RandomizedResponse(2, 1.0).power(200)).value
    22.1888...
    """
    parallel.checked(n_jobs)
    channel = mechanism if isinstance(mechanism, ChannelStack) else channel_with_prior(None, mechanism).channel
    return channel_capacity(channel, rtol=rtol, n_jobs=n_jobs).capacity


@in_unit
@broadcasting(itself=(ChannelStack,))
def pointwise_lmip(
    prior: Prior, mechanism: Mechanism, *, certified: bool = False, n_jobs: int | None = None,
    progress: Progress = None, unit: Information = "nats",
) -> Estimate:
    """Pointwise local mutual-information privacy, sup over x of KL(P_x || P_M).

    Mutual information is the mean of these divergences under the prior; a bound for every x needs their supremum.

    Parameters
    ----------
    prior, mechanism, certified, n_jobs, progress, unit
        As in ``cd_lmip``.

    Returns
    -------
    Estimate
        A scalar, in ``unit``. ``kind`` is that of the weakest divergence used.

    Notes
    -----
    Points of a Gaussian mechanism are taken in the order of min{-log pi(x), sum over x' of
    pi(x') (x - x')^2 / (2 sigma^2)}, which bounds the divergence, until no later one can be larger.

    Raises as ``ldp_delta``. **Accuracy** as ``kl_divergence``, ``tests/enclosures/test_notions.py``; of channels as
    ``cd_lmip``. Source: the premise that the proof of theorem 2(a) of Ngo et al. 2024 uses in (35) to (37).

    Examples
    --------
    >>> from fastpriv import GaussianMechanism, Pmf, notions
    >>> prior = Pmf([20.0, 40.0, 60.0], [0.2, 0.5, 0.3])
    >>> notions.pointwise_lmip(prior, GaussianMechanism(20.0), unit="bits").value
    0.63341...
    >>> notions.pointwise_lmip([0.2, 0.8], [[0.75, 0.25], [0.25, 0.75]]).value
    0.33272717777831...
    """
    parallel.checked(n_jobs, progress)
    certified = validate.flag("certified", certified)
    if is_channel(mechanism):
        return quantity("pointwise_lmip", prior, mechanism, n_jobs, progress)
    return gaussian.pointwise_lmip(prior, mechanism, certified=certified)
