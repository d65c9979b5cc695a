"""What the divergences accept: mixtures, densities only their owner knows, or the ratio of two."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np

from .. import _validate
from ..distributions import Density, GaussianMixture, LogRatio
from ..errors import DomainError, ShapeError
from ..estimate import KINDS, Estimate
from ..sampling.options import Request
from .one_dimension.quadrature import Deadline

__all__ = [
    "Dispatch", "Distribution", "both_directions", "dispatch_of", "exact_deadline", "refuse_certified", "tries_exact",
]  # fmt: skip

Distribution = GaussianMixture | Density
Dispatch = Literal["one dimension", "mixtures", "sampled"]


def dispatch_of(p: Any, q: Any) -> Dispatch:
    """Check a pair of distributions; say whether it is computed in one dimension, reduced as mixtures, or sampled."""
    if isinstance(p, LogRatio):
        if q is not None:
            raise DomainError(
                f"q must be left out with a LogRatio, which holds both laws; got {_validate.shown(q)}. "
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
            f"q must have the dimension of p, {p.dimension}; got {q.dimension}. Both must be laws on one space."
        )
    if isinstance(p, Density) or isinstance(q, Density):
        return "sampled"
    return "one dimension" if p.dimension == 1 else "mixtures"


def tries_exact(dispatch: Dispatch, request: Request) -> bool:
    """Whether an exact method is tried: not for densities only their owner knows, nor where samples are forced."""
    return dispatch != "sampled" and not request.forced


def exact_deadline(request: Request) -> Deadline:
    """When an exact method has to end."""
    return Deadline(time.monotonic() + request.time_budget.remaining)


def refuse_certified(certified: bool) -> None:
    """Refuse ``certified=True`` where the answer has to be sampled, since sampling proves nothing."""
    if certified:
        raise DomainError(
            "certified must be False where nothing reduces the pair to the line; got True. Drop it: the answer is a "
            "confidence interval, and interval='guaranteed' gives one that holds for every sample size."
        )


def both_directions(forward: Estimate, backward: Estimate) -> Estimate:
    """Two answers as one, with a leading axis."""
    kind = max(forward.kind, backward.kind, key=KINDS.index)
    numbers = (np.stack([getattr(e, name) for e in (forward, backward)]) for name in ("value", "lower", "upper"))
    method = forward.method if forward.method == backward.method else f"{forward.method}; {backward.method}"
    names = {**forward.cost, **backward.cost}
    cost = {name: _combined(forward.cost.get(name), backward.cost.get(name)) for name in names}
    return Estimate(
        *numbers, kind=kind, unit=forward.unit, method=method, cost=cost,
        confidence=(forward.confidence or backward.confidence) if kind == "statistical" else None,
    )  # fmt: skip


def _combined(one: Any, other: Any) -> Any:
    """Two entries of ``cost`` as one: the sum of counts, the conjunction of flags, both of two different words."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, bool) and isinstance(other, bool):
        return one and other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one + other
    return one if one == other else f"{one}; {other}"
