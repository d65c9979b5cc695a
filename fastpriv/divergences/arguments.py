"""What the divergences accept: mixtures, densities only their owner knows, or the ratio of two."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np

from .. import _validate
from ..distributions import Density, GaussianMixture, LogRatio
from ..errors import DomainError, ShapeError
from ..estimate import Estimate
from ..sampling.request import Request, request
from .one_dimension.quadrature import Deadline

__all__ = ["Law", "asked", "both_ways", "deadline", "exactly", "laws", "uncertified"]

Law = GaussianMixture | Density
KINDS = ("exact", "certified", "statistical", "heuristic")  # from the strongest to the weakest
Way = Literal["line", "mixtures", "sampled"]
_SECONDS = 60.0
_DEFAULTS = (0.95, "both", 1e-3, 0.0, 10**8, _SECONDS, "auto", "replicates", None, None, None)


def laws(p: Any, q: Any) -> Way:
    """Check a pair of laws and say which way it goes."""
    if isinstance(p, LogRatio):
        if q is not None:
            raise DomainError(
                f"q must be left out with a LogRatio, which holds both laws; got {_validate.shown(q)}. "
                "Pass the ratio alone, and what follows by its name: epsilon=, order=."
            )
        return "sampled"
    for name, law in (("p", p), ("q", q)):
        if not isinstance(law, (GaussianMixture, Density)):
            raise DomainError(
                f"{name} must be a GaussianMixture or a Density; got {_validate.shown(law)}. "
                "Build one of these, or pass a LogRatio as p alone."
            )
    if p.dimension != q.dimension:
        raise ShapeError(
            f"q must have the dimension of p, {p.dimension}; got {q.dimension}. Both must be laws on one space."
        )
    if isinstance(p, Density) or isinstance(q, Density):
        return "sampled"
    return "line" if p.dimension == 1 else "mixtures"


def asked(way: Way, *keywords: Any) -> Request | None:
    """The validated keywords of sampling, in the order of the public signatures; None on the line when all are
    default.
    """
    if way == "line" and all(map(_is, keywords, _DEFAULTS)):
        return None
    names = (
        "confidence", "side", "rtol", "atol", "max_samples", "max_seconds", "method", "interval", "rng", "n_jobs",
        "progress",
    )  # fmt: skip
    return request(**dict(zip(names, keywords, strict=True)))


def _is(given: Any, default: Any) -> bool:
    """Whether a keyword has its default; equal arrays are none."""
    return given is default or (isinstance(given, (int, float, str)) and bool(given == default))


def exactly(way: Way, request: Request | None) -> bool:
    """Whether an exact way is to be tried: not for densities only their owner knows, nor where samples are forced."""
    return way != "sampled" and (request is None or not request.forced)


def deadline(request: Request | None) -> Deadline:
    """When an exact way has to end."""
    return Deadline(time.monotonic() + (_SECONDS if request is None else request.clock.left))


def uncertified(certified: bool) -> None:
    """Sampling proves nothing."""
    if certified:
        raise DomainError(
            "certified must be False where nothing reduces the pair to the line; got True. Drop it: the answer is a "
            "confidence interval, and interval='guaranteed' gives one that holds for every sample size."
        )


def both_ways(forward: Estimate, backward: Estimate) -> Estimate:
    """Two answers as one, with a leading axis."""
    kind = max(forward.kind, backward.kind, key=KINDS.index)
    numbers = (np.stack([getattr(e, name) for e in (forward, backward)]) for name in ("value", "lower", "upper"))
    method = forward.method if forward.method == backward.method else f"{forward.method}; {backward.method}"
    cost = {name: _both(forward.cost.get(name), backward.cost.get(name)) for name in {**forward.cost, **backward.cost}}
    return Estimate(
        *numbers, kind=kind, unit=forward.unit, method=method, cost=cost,
        confidence=(forward.confidence or backward.confidence) if kind == "statistical" else None,
    )  # fmt: skip


def _both(one: Any, other: Any) -> Any:
    """The sum of two counts; of two words both, where they differ; what is said of one alone."""
    if one is None or other is None:
        return other if one is None else one
    if isinstance(one, bool) and isinstance(other, bool):
        return one and other
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one + other
    return one if one == other else f"{one}; {other}"
