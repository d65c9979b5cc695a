"""Arguments of the divergences, mixtures, user-defined densities or the ratio of two, and how they are computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.estimate import Estimate
from ..distributions import Density, GaussianMixture, LogRatio, MixtureStack
from ..sampling.options import Request
from .one_dimension.quadrature import Deadline

__all__ = ["Dispatch", "Distribution", "dispatch_of", "exact_estimate", "is_stack", "refuse_certified"]

Distribution = GaussianMixture | Density | MixtureStack
Dispatch = Literal["one dimension", "mixtures", "sampled"]
ExactMethod = Callable[..., Estimate | None]


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


def exact_estimate(
    dispatch: Dispatch, request: Request, in_one_dimension: ExactMethod | None,
    by_reduction: Callable[[ModuleType], ExactMethod], *arguments: Any, **options: Any,
) -> Estimate | None:
    """The exact or certified estimate; None where it has to be sampled, or samples are forced.

    ``by_reduction`` takes the method for mixtures in d dimensions out of ``reductions.factored_quantities``, which is
    slow to load.
    """
    if dispatch == "sampled" or request.forced:
        return None
    method = in_one_dimension
    if dispatch != "one dimension" or method is None:
        from .reductions import factored_quantities

        method = by_reduction(factored_quantities)
    return method(*arguments, deadline=Deadline(time.monotonic() + request.time_budget.remaining), **options)


def refuse_certified(certified: bool) -> None:
    """Refuse ``certified=True`` where the answer has to be sampled, since sampling proves nothing."""
    if certified:
        raise DomainError(
            "certified must be False where nothing reduces the pair to one dimension; got True. Drop it: the answer is "
            "a confidence interval, and interval='guaranteed' gives one that holds for every sample size."
        )
