"""Differential entropy, and mutual information: of a discrete input and its noisy output, of a label and a sample."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike
from ..base.monotone import in_unit, monotone
from ..base.numerics import FloatArray
from ..base.parallel import Progress
from ..distributions import GaussianMixture, MixtureStack, Pmf, PmfStack
from ..distributions.other_libraries import takes_other_libraries
from ..sampling.options import Sampling, SamplingOptions, sampling_request
from .arguments import Dispatch, exact_or_sampled
from .one_dimension import integrals


@takes_other_libraries
@in_unit
def entropy(
    p: GaussianMixture | MixtureStack, *, certified: bool = False, sampling: Sampling | None = None,
    unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:
    """Differential entropy, minus the integral of p log p, in nats.

    Parameters
    ----------
    p : GaussianMixture or MixtureStack
        Any weights, means and covariances.
    certified : bool, default False
        As for ``kl_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``; ``rtol`` is relative to the
        size of the entropy or to 1, whichever is larger.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar in ``unit``, negative for narrow distributions; ``kind`` is ``exact`` for one Gaussian.

    Raises
    ------
    DomainError
        If the argument is not a mixture, or keywords are out of range.

    Notes
    -----
    **Accuracy** in one dimension width at most 1e-12 of the integral of p |log p| (relative to the entropy itself
    unless that is near 0); by ``tests/enclosures/test_integrals.py``. Sampled intervals hold at their level by
    ``tests/intervals/test_divergence_coverage.py``.

    Source: Shannon 1948, section 20.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, entropy
    >>> entropy(GaussianMixture([0.5, 0.5], [-1.0, 1.0], 1.0)).value
    1.75...
    """
    certified = validate.flag("certified", certified)
    if isinstance(p, MixtureStack):
        from . import rows_of_stacks

        request, anything = sampling_request(entropy, sampling, options), (0.0, -math.inf, math.inf)
        return rows_of_stacks.quantity(
            {"p": p}, request, integrals.entropy, entropy, trivial=anything, integral="entropy", certified=certified
        )
    validate.instance("p", p, GaussianMixture)
    request = sampling_request(entropy, sampling, options)
    dispatch: Dispatch = "one dimension" if p.dimension == 1 else "mixtures"
    return exact_or_sampled(
        dispatch, request, integrals.entropy, lambda reductions: reductions.entropy,
        lambda monte_carlo: monte_carlo.entropy(p, request), p, certified=certified,
    )


@takes_other_libraries
@in_unit
def label_information(
    p: GaussianMixture | MixtureStack, *, certified: bool = False, sampling: Sampling | None = None,
    unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:
    """Mutual information I(C; X) of the component C of a mixture and the sample X, in nats.

    With the points of a discrete input as means and the noise as shared covariance this is I(input; input + noise),
    in any dimension.

    Parameters
    ----------
    p : GaussianMixture or MixtureStack
        The prior of C as weights, the distributions of X given C as components.
    certified : bool, default False
        As for ``kl_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar in ``unit``, between 0 and the entropy of the weights.

    Raises
    ------
    DomainError
        If the argument is not a mixture, or keywords are out of range.

    Notes
    -----
    What is averaged is the divergence of the posterior of C from the weights, never negative, which keeps its relative
    accuracy where a sample carries next to no information.

    **Accuracy** sampled intervals hold at their level by ``tests/intervals/test_divergence_coverage.py``; exact and
    certified ones by ``tests/enclosures/test_reductions.py``.

    Source: Shannon 1948, section 12.

    Examples
    --------
    >>> from fastpriv import GaussianMixture
    >>> from fastpriv.divergences import label_information
    >>> corners = GaussianMixture([0.5, 0.25, 0.25], [[-1, -1], [-1, 1], [1, -1]], [[1.0, 0.5]])
    >>> label_information(corners, rng=1).to("bits")
    Estimate(1.0..., unit='bits', kind='statistical', confidence=0.95, method='direct sobol sampling')
    """
    certified = validate.flag("certified", certified)
    if isinstance(p, MixtureStack):
        from . import rows_of_stacks

        request = sampling_request(label_information, sampling, options)
        return rows_of_stacks.quantity({"p": p}, request, None, label_information, certified=certified)
    validate.instance("p", p, GaussianMixture)
    request = sampling_request(label_information, sampling, options)
    return exact_or_sampled(
        "mixtures", request, None, lambda reductions: reductions.mutual_information,
        lambda monte_carlo: monte_carlo.label_information(p, request), p, certified=certified,
    )


@in_unit
@monotone(falling="sigma")
def mutual_information(
    prior: Pmf | PmfStack, sigma: NumberLike, *, certified: bool = False, n_jobs: int | None = None,
    unit: Information = "nats",
) -> Estimate:
    """I(X; X + N(0, sigma^2)) of a discrete input in one dimension with Gaussian noise, in nats.

    For inputs in more dimensions take ``label_information``.

    Parameters
    ----------
    prior : Pmf or PmfStack
        The distribution of the input X.
    sigma : array_like or Estimate
        Standard deviation of the noise, in the unit of the input; arrays broadcast with the leading axes of a stack.
    certified : bool, default False
        As for ``kl_divergence``.
    n_jobs : int, optional
        Threads for stacks and arrays; the answer does not depend on it.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In ``unit``, between 0 and the entropy of the prior.

    Raises
    ------
    DomainError
        If ``prior`` is not a Pmf or a stack, or ``sigma`` is not positive and finite.

    Notes
    -----
    The integrand is q sum pi_i (rho_i log rho_i - rho_i + 1), every term of which is non-negative, with all densities
    taken relative to the likeliest input: nothing cancels, however large or small the noise is.

    **Accuracy** relative width at most 1e-12 by ``tests/enclosures/test_mixture_integrals.py``; for points any number
    of sigmas apart by ``tests/enclosures/test_far_components.py``, never above the entropy of the prior.

    Source: Shannon 1948, section 12.

    Examples
    --------
    >>> from fastpriv import Pmf, mutual_information
    >>> mutual_information(Pmf([0.0, 1.0], [0.5, 0.5]), 0.5).to("bits").value
    0.48...
    """
    certified = validate.flag("certified", certified)
    noise = validate.real("sigma", sigma, "positive and finite", lambda x: (x > 0) & np.isfinite(x))
    if isinstance(prior, Pmf) and noise.ndim == 0:
        return integrals.mutual_information(prior, float(noise), certified=certified)
    return information_of_settings(prior, noise, certified, n_jobs, None)


def information_of_settings(
    prior: Pmf | PmfStack, sigma: FloatArray, certified: bool, n_jobs: int | None, progress: Progress
) -> Estimate:
    """``mutual_information`` in nats of a stack of priors and an array of sigmas, broadcast."""
    from . import rows_of_stacks

    if not isinstance(prior, PmfStack):
        validate.instance("prior", prior, Pmf)
        prior = PmfStack(prior.values, prior.probabilities)
    validate.broadcastable("sigma", sigma, "the leading axes of prior", np.broadcast_to(0.0, prior.shape))
    request = Sampling(n_jobs=n_jobs, progress=progress, max_seconds=math.inf).request()
    integral = "information" if prior.values.shape[-1] <= integrals.MAX_UNGROUPED else ""

    def of_release(release: GaussianMixture, **options: Any) -> Estimate:
        pmf = Pmf(release.means, release.weights)
        return integrals.mutual_information(pmf, float(release.sigmas[0]), **options)

    return rows_of_stacks.quantity(
        {"prior": prior.through_gaussian(sigma)}, request, of_release, of_release, integral=integral,
        certified=certified,
    )
