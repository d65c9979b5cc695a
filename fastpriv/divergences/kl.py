"""Kullback-Leibler and Jensen-Shannon divergences, in any dimension."""

from __future__ import annotations

from typing import Any, Unpack, cast

from .. import _validate
from .._estimates import in_unit
from ..distributions import LogRatio
from ..estimate import Estimate, Information
from ..sampling.options import Sampling, SamplingOptions, sampling_request
from .arguments import Distribution, both_directions, dispatch_of, exact_deadline, refuse_certified, tries_exact
from .one_dimension import integrals
from .reductions import factored_quantities

__all__ = ["jensen_shannon", "kl_divergence"]


@in_unit
def kl_divergence(
    p: Distribution | LogRatio, q: Distribution | None = None, *, both: bool = False, certified: bool = False,
    sampling: Sampling | None = None, unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:  # fmt: skip
    """Kullback-Leibler divergence KL(P||Q), the mean of log(p/q) under P, in nats.

    It is finite for every pair of Gaussian mixtures.

    Parameters
    ----------
    p, q : GaussianMixture or Density, of one dimension; or p a LogRatio, and no q
        Any weights, means and covariances, thousands of components if need be.
    both : bool, default False
        Also the other direction, from the same samples: the answer is [KL(P||Q), KL(Q||P)], each bounded at the level.
    certified : bool, default False
        Always return the proved enclosure, where there is one: on the line and for what reduces to it. Without it the
        proof is still given where it costs nothing; where its rounding part is wider than 1e-12, an error estimate that
        is tested but not proved may take its place.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats. ``kind`` is ``exact`` for two normal laws (closed form), ``certified`` or ``heuristic`` on the line,
        ``statistical`` where it was sampled. Infinite where Q has no density on samples of P.

    Raises
    ------
    DomainError
        For arguments that are no laws, keywords out of range, or ``certified=True`` where nothing exact applies.
    ShapeError
        For laws of different dimensions.
    SamplingWarning
        For a tail too heavy for an interval, an interruption, a slow function.

    Notes
    -----
    On the line the integrand is p (l + expm1(-l)), l = log(p/q), which is never negative, so a small divergence costs
    no digits. Samples come from P, component by component, or half from each law with 2 s(l) (l + expm1(-l)) as
    integrand, s the logistic function: the zero-mean score (p - q)/m is its control variate, and its relative error
    stays the same however near the laws are.

    **Accuracy** on the line the relative width is at most 1e-12, also for means that differ by 1e-12, log ratios of
    1e4, weights of 1e-300 and variance ratios of 1e6; tested against ball arithmetic by
    ``tests/enclosures/test_integrals.py``, and for standard deviations and distances of any ratio up to 1e300, as
    far as the divergence is a double (else it is infinite, and its lower bound the largest double), by
    ``tests/enclosures/test_far_components.py``. A divergence below 1e-85 has an absolute error of about 1e-65 instead.
    Thousands of components of as many scales can spend the budget of panels: ``method`` says so, and the bounds are
    wide.
    Sampled intervals hold at their level by ``tests/intervals/test_divergence_coverage.py``; log ratios are right to
    1e-13.

    Source: Kullback and Leibler 1951, eq. (2.4); the error bound Trefethen 2013, theorem 19.3.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, kl_divergence
    >>> p = GaussianMixture([0.25, 0.75], [0.0, 1.0], 1.0)
    >>> kl_divergence(p, GaussianMixture.single(0.0, 1.0)).value
    0.28955...
    >>> p = GaussianMixture([0.5, 0.5], [[0, 0], [1, 2]], [[1.0, 2.0], [2.0, 1.0]])
    >>> q = GaussianMixture([0.5, 0.5], [[1, 0], [0, 2]], [[1.0, 1.0], [2.0, 2.0]])
    >>> kl_divergence(p, q, rng=1)
    Estimate(0.36..., kind='statistical', confidence=0.95, method='direct sobol sampling')
    """
    certified, both = _validate.flag("certified", certified), _validate.flag("both", both)
    dispatch = dispatch_of(p, q)
    request = sampling_request(kl_divergence, sampling, options)
    if tries_exact(dispatch, request):
        until = exact_deadline(request)
        exact: Any = integrals.kl_divergence if dispatch == "one dimension" else factored_quantities.renyi_divergence
        found = exact(p, q, certified=certified, deadline=until)
        if found is not None and both:
            back = exact(q, p, certified=certified, deadline=until)
            found = None if back is None else both_directions(found, back)
        if found is not None:
            return cast(Estimate, found)
    refuse_certified(certified)
    from . import monte_carlo

    return monte_carlo.kl(p, q, request, both=both)


@in_unit
def jensen_shannon(
    p: Distribution | LogRatio, q: Distribution | None = None, *, certified: bool = False,
    sampling: Sampling | None = None, unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:  # fmt: skip
    """Jensen-Shannon divergence (KL(P||M) + KL(Q||M)) / 2, M = (P + Q)/2, in nats; at most log 2.

    Parameters
    ----------
    p, q : GaussianMixture or Density, of one dimension; or p a LogRatio, and no q
        Any weights, means and covariances.
    certified : bool, default False
        As for ``kl_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar in ``unit``, ``certified``, ``heuristic`` or ``statistical``; its square root is a metric.

    Raises
    ------
    DomainError, ShapeError
        As for ``kl_divergence``; DomainError also where there are no samples of one of the laws.

    Notes
    -----
    On the line the integrand is m (t atanh(t) + log1p(-t^2)/2), t = tanh(l/2), which loses no digits at either end;
    sampling averages the same under M, where it lies between 0 and log 2.

    **Accuracy** as ``kl_divergence``, by the same tests; log 2 to all digits for laws that hardly overlap.

    Source: Lin 1991, eq. (3.3) with weights 1/2, 1/2.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, jensen_shannon
    >>> jensen_shannon(GaussianMixture.single(-1.0, 1.0), GaussianMixture.single(1.0, 1.0)).value
    0.33...
    """
    certified = _validate.flag("certified", certified)
    dispatch = dispatch_of(p, q)
    request = sampling_request(jensen_shannon, sampling, options)
    if tries_exact(dispatch, request):
        until = exact_deadline(request)
        exact: Any = integrals.jensen_shannon if dispatch == "one dimension" else factored_quantities.jensen_shannon
        found = exact(p, q, certified=certified, deadline=until)
        if found is not None:
            return cast(Estimate, found)
    refuse_certified(certified)
    from . import monte_carlo

    return monte_carlo.jensen_shannon(p, q, request)
