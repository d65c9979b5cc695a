"""Kullback-Leibler, Jensen-Shannon and Renyi divergences, in any dimension."""

from __future__ import annotations

import functools
from typing import Any, Unpack

from ..base import validate
from ..base.estimate import Estimate, Information, NumberLike, stacked
from ..base.monotone import in_unit, monotone
from ..base.numerics import LOG_2_ABOVE, FloatArray
from ..distributions import GaussianMixture, LogRatio
from ..distributions.other_libraries import takes_other_libraries
from ..sampling.options import Sampling, SamplingOptions, sampling_request
from .arguments import Distribution, dispatch_of, exact_or_sampled, is_stack
from .one_dimension import integrals, monotone_pieces


@takes_other_libraries
@in_unit
def kl_divergence(
    p: Distribution | LogRatio, q: Distribution | None = None, *, both: bool = False, certified: bool = False,
    sampling: Sampling | None = None, unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:
    """Kullback-Leibler divergence KL(P||Q), the mean of log(p/q) under P, in nats.

    It is finite for every pair of Gaussian mixtures.

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack or Density, of one dimension; Pmf or vectors; or p a LogRatio, and no q
        Any weights, means and covariances, thousands of components if need be. Two vectors are probabilities of the
        same outcomes, divided by their sums. Frozen distributions of SciPy and mixtures fitted by scikit-learn are
        read as such: normal ones are certified, others sampled. Of stacks, which broadcast, every row
        is answered for, with the options for each row and ``max_seconds`` for all.
    both : bool, default False
        Also the other direction, from the same samples: the answer is [KL(P||Q), KL(Q||P)], each bounded at the level.
    certified : bool, default False
        Always return the proved enclosure, where there is one: in one dimension and for what reduces to it. Without it
        the proof is still given where it costs nothing; where its rounding part is wider than 1e-12, an error estimate
        that is tested but not proved may take its place.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In nats. ``kind`` is ``exact`` for two Gaussians (closed form), ``certified`` or ``heuristic`` in one dimension,
        ``statistical`` where it was sampled. Infinite where Q has no density on samples of P.

    Raises
    ------
    DomainError
        For arguments that are no distributions, keywords out of range, or ``certified=True`` where nothing exact
        applies.
    ShapeError
        For distributions of different dimensions.
    SamplingWarning
        For a tail too heavy for an interval, an interruption, a slow function.

    Notes
    -----
    In one dimension the integrand is p (l + expm1(-l)), l = log(p/q), which is never negative, so a small divergence
    costs no digits. Samples come from P, component by component, or half from each distribution with 2 s(l) (l +
    expm1(-l)) as integrand, s the logistic function: the zero-mean score (p - q)/m is its control variate, and its
    relative error does not depend on how near the distributions are.

    **Accuracy** in one dimension the relative width is at most 1e-12, also for means that differ by 1e-12, log ratios
    of 1e4, weights of 1e-300 and variance ratios of 1e6; tested against ball arithmetic by
    ``tests/enclosures/test_integrals.py``, and for standard deviations and distances of any ratio up to 1e300, as far
    as the divergence is a double (else its upper bound is infinite), by ``tests/enclosures/test_far_components.py``. A
    divergence below 1e-85 has an absolute error of about 1e-65 instead. Thousands of components of as many scales can
    spend the budget of panels: ``method`` says so, and the bounds are wide. Sampled intervals hold at their level by
    ``tests/intervals/test_divergence_coverage.py``; log ratios are right to 1e-13.

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
    certified, both = validate.flag("certified", certified), validate.flag("both", both)
    if is_stack(p, q):
        from . import rows_of_stacks

        request = sampling_request(kl_divergence, sampling, options)
        pairs = ((p, q), (q, p)) if both else ((p, q),)
        of_pair = functools.partial(rows_of_stacks.quantity, integral="kl", certified=certified)
        result = [of_pair({"p": a, "q": b}, request, integrals.kl_divergence, kl_divergence) for a, b in pairs]
        return stacked(result, (2,)) if both else result[0]
    dispatch, request = dispatch_of(p, q), sampling_request(kl_divergence, sampling, options)
    return exact_or_sampled(
        dispatch, request, integrals.kl_divergence, lambda reductions: reductions.renyi_divergence,
        lambda monte_carlo: monte_carlo.kl(p, q, request, both=both), p, q, both=both, certified=certified,
    )


@takes_other_libraries
@in_unit
def jensen_shannon(
    p: Distribution | LogRatio, q: Distribution | None = None, *, certified: bool = False,
    sampling: Sampling | None = None, unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:
    """Jensen-Shannon divergence (KL(P||M) + KL(Q||M)) / 2, M = (P + Q)/2, in nats; at most log 2.

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack or Density, of one dimension; Pmf or vectors; or p a LogRatio, and no q
        Any weights, means and covariances.
    certified : bool, default False
        As for ``kl_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        A scalar in ``unit``, ``certified``, ``heuristic`` or ``statistical``; its square root is a metric.

    Raises
    ------
    DomainError, ShapeError
        As for ``kl_divergence``; DomainError also where there are no samples of one of them.

    Notes
    -----
    In one dimension the integrand is m (t atanh(t) + log1p(-t^2)/2), t = tanh(l/2), which loses no digits at either
    end; sampling averages the same under M, where it lies between 0 and log 2.

    **Accuracy** as ``kl_divergence``, by the same tests; log 2 to all digits for distributions that hardly overlap.

    Source: Lin 1991, eq. (3.3) with weights 1/2, 1/2.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, jensen_shannon
    >>> jensen_shannon(GaussianMixture.single(-1.0, 1.0), GaussianMixture.single(1.0, 1.0)).value
    0.33...
    """
    certified = validate.flag("certified", certified)
    if is_stack(p, q):
        from . import rows_of_stacks

        request = sampling_request(jensen_shannon, sampling, options)
        return rows_of_stacks.quantity(
            {"p": p, "q": q}, request, integrals.jensen_shannon, jensen_shannon, trivial=(0.0, 0.0, LOG_2_ABOVE),
            integral="js", certified=certified,
        )
    dispatch, request = dispatch_of(p, q), sampling_request(jensen_shannon, sampling, options)
    return exact_or_sampled(
        dispatch, request, integrals.jensen_shannon, lambda reductions: reductions.jensen_shannon,
        lambda monte_carlo: monte_carlo.jensen_shannon(p, q, request), p, q, certified=certified,
    )


@takes_other_libraries
@in_unit
@monotone(rising="order")
def renyi_divergence(
    p: Distribution | LogRatio, q: Distribution | None = None, order: NumberLike = 2.0, *, certified: bool = False,
    sampling: Sampling | None = None, unit: Information = "nats", **options: Unpack[SamplingOptions],
) -> Estimate:
    """Renyi divergence of a positive order a, log(integral of p^a q^(1-a)) / (a - 1), in nats.

    Parameters
    ----------
    p, q : GaussianMixture, MixtureStack or Density, of one dimension; Pmf or vectors; or p a LogRatio, and no q
        Any weights, means and covariances.
    order : array_like or Estimate
        Positive, of any shape, 2 by default; order 1 is the Kullback-Leibler divergence, order infinity the
        max-divergence log sup p/q, which cannot be sampled. Sampled bounds hold at their level for each order.
    certified : bool, default False
        As for ``kl_divergence``.
    sampling, **options : Sampling, and its fields by name, which override it
        How to sample where nothing exact applies: see ``help(fastpriv.sampling.Sampling)``.
    unit : {"nats", "bits"}, default "nats"
        Unit of the answer.

    Returns
    -------
    Estimate
        In ``unit``, of the shape of ``order``, ``certified``, ``heuristic`` or ``statistical``. In one dimension
        infinite, with ``kind="exact"``, where the integral diverges: exactly when the order exceeds 1 and a / s^2 < (a
        - 1) / t^2 for the largest standard deviations s of P and t of Q (decided in rational arithmetic), or equal to
        it and the widest components of Q do not reach out farther than those of P on both sides; where they do, the
        upper end is infinite all the same.

    Raises
    ------
    DomainError
        For an order that is not positive, an infinite one where nothing exact applies, arguments that are no
        distributions, or keywords out of range.

    Notes
    -----
    P and Q are scaled to mass 1 (weights may miss it by their rounding). The mass of
    p^a q^(1-a) may lie far outside both distributions; the panels follow the bounds of that product, not the
    components.

    Sampled for orders above 1 from tilted Gaussians whose weighted sum is proved to bound p^a q^(1-a), where there are
    such; else from both distributions.

    A whole order up to 1024 of a Poisson sample, P of two components and Q one of them, is a sum of positive terms
    (Mironov, Talwar and Zhang 2019, section 3.3).

    **Accuracy** in one dimension relative width at most 1e-12 on the families of
    ``tests/enclosures/test_integrals.py``, also at orders next to 1 and down to 1e-300; wider where a log p and (a - 1)
    log q cancel. Where components are so far
    apart that rounding log p leaves no digit of the integral, its logarithm is bounded panel by panel, to about 1e-14
    of itself (``tests/enclosures/test_far_components.py``).

    Source: van Erven and Harremoes 2014, eq. (9), theorem 7.

    Examples
    --------
    >>> from fastpriv import GaussianMixture, renyi_divergence
    >>> p, q = GaussianMixture([0.99, 0.01], [0.0, 1.0], 1.0), GaussianMixture.single(0.0, 1.0)
    >>> renyi_divergence(p, q, 2.0).value
    0.000171...
    """
    certified = validate.flag("certified", certified)
    orders = validate.real("order", order, "positive", lambda x: x > 0)
    many = orders.ndim and orders.size and type(p) is type(q) is GaussianMixture and p.means.ndim == q.means.ndim == 1
    request = sampling_request(renyi_divergence, sampling, options) if many or is_stack(p, q) else None
    if request is not None and not (many and request.forced):
        from . import rows_of_stacks

        def of_row(p: GaussianMixture, q: GaussianMixture, orders: FloatArray, **more: Any) -> Estimate:
            estimates = [monotone_pieces.renyi_divergence(p, q, float(item), **more) for item in orders.ravel()]
            return stacked(estimates, orders.shape)

        return rows_of_stacks.quantity(
            {"p": p, "q": q}, request, of_row, renyi_divergence, parameter=orders, integral="renyi",
            certified=certified,
        )
    if not orders.size:
        return Estimate(orders, orders, orders, kind="exact", unit="nats", method="no orders")
    if orders.ndim:
        estimates = [
            renyi_divergence(p, q, single_order, certified=certified, sampling=sampling, **options)
            for single_order in orders.ravel()
        ]
        return stacked(estimates, orders.shape)
    order = float(orders)
    if order == 1.0:
        return kl_divergence(p, q, certified=certified, sampling=sampling, **options)
    dispatch, request = dispatch_of(p, q), sampling_request(renyi_divergence, sampling, options)
    return exact_or_sampled(
        dispatch, request, monotone_pieces.renyi_divergence, lambda reductions: reductions.renyi_divergence,
        lambda monte_carlo: monte_carlo.renyi(p, q, order, request), p, q, order, certified=certified,
    )
