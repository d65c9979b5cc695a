"""Arguments of the divergences, mixtures, user-defined densities or the ratio of two, and how they are computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate, stacked
from ..distributions import Density, GaussianMixture, LogRatio, MixtureStack
from ..sampling.options import Request
from . import outcomes
from .one_dimension.quadrature import Deadline

Distribution = GaussianMixture | Density | MixtureStack
Dispatch = Literal["one dimension", "mixtures", "outcomes", "sampled"]


def is_stack(p: Any, q: Any = None) -> bool:
    """Whether one of these is a stack, for which ``rows_of_stacks`` answers."""
    return isinstance(p, MixtureStack) or isinstance(q, MixtureStack)


def dispatch_of(p: Any, q: Any) -> Dispatch:
    """Check a pair of distributions; return whether it is one-dimensional, reduced as mixtures, or sampled."""
    if type(p) is type(q) is GaussianMixture and p.means.ndim == q.means.ndim == 1:
        return "one dimension"
    if isinstance(p, LogRatio):
        if q is not None:
            raise DomainError(
                f"q must be left out with a LogRatio, which holds both distributions; got {validate.shown(q)}. "
                "Pass the ratio alone, and what follows by its name: epsilon=, order=."
            )
        return "sampled"
    if outcomes.are_outcomes(p, q):
        return "outcomes"
    for name, distribution in (("p", p), ("q", q)):
        if not isinstance(distribution, (GaussianMixture, Density)):
            raise DomainError(
                f"{name} must be a GaussianMixture or a Density; got {validate.shown(distribution)}. "
                "Build one of these, or pass a LogRatio as p alone."
            )
    if p.dimension != q.dimension:
        raise ShapeError(
            f"q must have the dimension of p, {p.dimension}; got {q.dimension}. Both must be on one space."
        )
    if isinstance(p, Density) or isinstance(q, Density):
        return "sampled"
    return "one dimension" if p.dimension == 1 else "mixtures"


def exact_or_sampled(
    dispatch: Dispatch, request: Request, in_one_dimension: Callable[..., Estimate | None] | None,
    by_reduction: Callable[[ModuleType], Any], by_sampling: Callable[[ModuleType], Estimate], *arguments: Any,
    both: bool = False, **options: Any,
) -> Estimate:
    """The exact or certified estimate, of both directions with ``both``; that of samples where there is none.

    ``by_reduction`` takes the method for mixtures in d dimensions out of ``reductions.factored_quantities``, and
    ``by_sampling`` makes the estimate with ``monte_carlo``: both are slow to load.
    """
    if dispatch == "outcomes" and request.forced:
        raise DomainError(
            "method must be 'auto' with probabilities of outcomes, which are summed; got one that samples. Drop it."
        )
    if dispatch != "sampled" and not request.forced:
        method = in_one_dimension
        if dispatch == "outcomes":
            method = by_reduction(outcomes)
        elif dispatch != "one dimension" or method is None:
            from .reductions import factored_quantities

            method = by_reduction(factored_quantities)
        deadline = Deadline(time.monotonic() + request.time_budget.remaining)
        estimate = method(*arguments, deadline=deadline, **options)
        if estimate is not None and both:
            backward = method(arguments[1], arguments[0], *arguments[2:], deadline=deadline, **options)
            estimate = None if backward is None else stacked((estimate, backward), (2,))
        if estimate is not None:
            return estimate
    if options.get("certified"):
        raise DomainError(
            "certified must be False where nothing reduces the pair to one dimension; got True. Drop it: the answer is "
            "a confidence interval, and interval='guaranteed' gives one that holds for every sample size."
        )
    from . import monte_carlo

    return by_sampling(monte_carlo)
