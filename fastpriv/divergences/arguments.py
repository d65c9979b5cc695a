"""Arguments of the divergences, mixtures, user-defined densities or the ratio of two, and how they are computed."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from .. import _validate
from ..distributions import Density, GaussianMixture, LogRatio, MixtureStack
from ..errors import DomainError, ShapeError
from ..estimate import KINDS, Estimate
from ..sampling.options import Request
from .one_dimension.quadrature import Deadline

__all__ = [
    "Dispatch", "Distribution", "combined_costs", "dispatch_of", "exact_estimate", "is_stack", "refuse_certified",
    "stacked",
]  # fmt: skip

Distribution = GaussianMixture | Density | MixtureStack
Dispatch = Literal["one dimension", "mixtures", "sampled"]
ExactMethod = Callable[..., Estimate | None]


def is_stack(p: Any, q: Any = None) -> bool:
    """Whether one of these is a stack, for which ``rows_of_stacks`` answers."""
    return isinstance(p, MixtureStack) or isinstance(q, MixtureStack)


def dispatch_of(p: Any, q: Any) -> Dispatch:
    """Check a pair of distributions; return whether it is one-dimensional, reduced as mixtures, or sampled."""
    if isinstance(p, LogRatio):
        if q is not None:
            raise DomainError(
                f"q must be left out with a LogRatio, which holds both distributions; got {_validate.shown(q)}. "
                "Pass the ratio alone, and what follows by its name: epsilon=, order=."
            )
        return "sampled"
    for name, distribution in (("p", p), ("q", q)):
        if not isinstance(distribution, (GaussianMixture, Density)):
            raise DomainError(
                f"{name} must be a GaussianMixture or a Density; got {_validate.shown(distribution)}. "
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
    dispatch: Dispatch, request: Request, in_one_dimension: ExactMethod | None, by_reduction: str, *arguments: Any,
    **options: Any,
) -> Estimate | None:  # fmt: skip
    """The exact or certified estimate; None where it has to be sampled, or samples are forced.

    ``by_reduction`` names the method for mixtures in d dimensions, a function of ``reductions.factored_quantities``.
    """
    if dispatch == "sampled" or request.forced:
        return None
    method = in_one_dimension
    if dispatch != "one dimension" or method is None:
        from .reductions import factored_quantities

        method = getattr(factored_quantities, by_reduction)
    return method(*arguments, deadline=Deadline(time.monotonic() + request.time_budget.remaining), **options)


def refuse_certified(certified: bool) -> None:
    """Refuse ``certified=True`` where the answer has to be sampled, since sampling proves nothing."""
    if certified:
        raise DomainError(
            "certified must be False where nothing reduces the pair to one dimension; got True. Drop it: the answer is "
            "a confidence interval, and interval='guaranteed' gives one that holds for every sample size."
        )


def stacked(estimates: Sequence[Estimate], shape: tuple[int, ...]) -> Estimate:
    """Estimates as one, of this shape or, if they have a shape of their own, with leading axes of it."""
    kind = max((estimate.kind for estimate in estimates), key=KINDS.index)
    estimate_shape = np.shape(estimates[0].value)
    numbers = (np.stack([getattr(estimate, name) for estimate in estimates]).reshape(shape + estimate_shape)
               for name in ("value", "lower", "upper"))  # fmt: skip
    cost = combined_costs([estimate.cost for estimate in estimates])
    confidence = next((estimate.confidence for estimate in estimates if estimate.confidence), None)
    methods = dict.fromkeys(estimate.method for estimate in estimates)
    return Estimate(
        *numbers, kind=kind, unit=estimates[0].unit, method="; ".join(methods), cost=cost,
        confidence=confidence if kind == "statistical" else None,
    )  # fmt: skip


def combined_costs(costs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The costs of several estimates as one, entry by entry."""
    names = dict.fromkeys(name for cost in costs for name in cost)
    return {name: functools.reduce(_combined, (cost.get(name) for cost in costs)) for name in names}


def _combined(entry: Any, other: Any) -> Any:
    """Two entries of ``cost`` as one: the sum of counts, the conjunction of flags, both of two different words."""
    if isinstance(entry, tuple) and isinstance(other, tuple):
        return tuple(dict.fromkeys(entry + other))
    if entry is None or other is None:
        return other if entry is None else entry
    if isinstance(entry, bool) and isinstance(other, bool):
        return entry and other
    if isinstance(entry, (int, float)) and isinstance(other, (int, float)):
        return entry + other
    return entry if entry == other else f"{entry}; {other}"
