"""Posteriors where a function tells the log likelihood of every secret: looked at in full, searched, or sampled.

Up to the budget of the likelihood, all secrets are looked at in the passes of ``streams``. Beyond it, branch and bound
brackets every quantity where bounds over ranges are given (``implicit/branching.py``); else a sample estimates them
(``implicit/drawing.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _validate
from ..._values import FloatArray
from ...channels.likelihoods.kinds import DenseLikelihood, IndexLikelihood
from ...channels.likelihoods.sources import Source
from ...errors import DomainError, interruption
from ...estimate import Estimate
from ..result import Options, Posterior, Top
from .branching import brackets
from .defaults import as_indices
from .drawing import CONFIDENCE, drawn
from .functions import evaluated
from .output import written

__all__ = ["IndexSource", "posterior"]

_LN2 = math.log(2.0)
_LARGEST = 2**1000  # secrets beyond which one of them has no share in a double


class IndexSource(Source):
    """Values of a function over all indices, as a vector that is read in any order."""

    direct = True

    def __init__(self, name: str, take: Callable[[int, int], FloatArray], size: int) -> None:
        super().__init__(name)
        self.values, self.length = take, size

    def take(self, start: int, stop: int) -> FloatArray:
        """Entries ``start`` to ``stop - 1``."""
        return self.values(start, stop)


def posterior(likelihood: IndexLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior, by the first of the three ways that the budget allows."""
    if 2 * likelihood.size <= likelihood.budget:
        from ..dense import streams

        source = IndexSource("likelihood", evaluated(likelihood), likelihood.size)
        return streams.posterior(DenseLikelihood(source), _prior(prior, likelihood.size), options)
    if prior is not None or likelihood.size > _LARGEST:
        raise DomainError(
            "prior must be None, and size at most 2**1000, for more secrets than half the budget; got "
            f"{_validate.shown(likelihood.size)} secrets and a budget of {likelihood.budget}. Raise the budget, or add "
            "the log prior to the function and take the uniform law."
        )
    return _searched(likelihood, options) if likelihood.bound is not None else _sampled(likelihood, options)


def _prior(prior: Any, size: int) -> Any:
    """A function of indices as a vector; all else as it is."""
    if not callable(prior):
        return prior
    return IndexSource("prior", evaluated(IndexLikelihood(prior, size)), size)


def _searched(likelihood: IndexLikelihood, options: Options) -> Posterior:
    """By branch and bound."""
    found = brackets(likelihood, options.top, options.progress)
    log_size = math.log(likelihood.size)
    low, high = found.log_evidence

    def between(lower: float, upper: float, unit: Any = "nats") -> Estimate:
        value = lower if lower == -math.inf or upper == math.inf else 0.5 * (lower + upper)
        return Estimate(value, lower, upper, kind="certified", unit=unit, method="branch and bound")

    most = found.most[0] - high, min(found.most[1] - low, log_size)
    least = found.least[0] - high, min(found.least[1] - low, 0.0)
    return _assembled(
        likelihood, options, found.best, found.ties, 0.5 * (low + high) if low > -math.inf else high, found.cost,
        log_evidence=between(low, high), entropy=between(max(0.0, log_size - found.kl[1]), log_size - found.kl[0]),
        kl=between(*found.kl), js=between(*found.js), max_log_ratio=between(*_ordered(*most)),
        min_log_ratio=between(*_ordered(*least)),
        vulnerability=between(*(_ordered(*(math.exp(x - log_size) for x in most))), "probability"),
    )  # fmt: skip


def _sampled(likelihood: IndexLikelihood, options: Options) -> Posterior:
    """From a sample."""
    found = drawn(likelihood, max(1, options.top), options.rng, options.n_jobs, options.progress)
    log_size = math.log(likelihood.size)

    def said(value: float, lower: float, upper: float, unit: Any = "nats") -> Estimate:
        return Estimate(value, min(lower, value), max(upper, value), kind="statistical", unit=unit,
                        method="sampled domain", confidence=CONFIDENCE)  # fmt: skip

    level = found.log_evidence
    known = level.value > -math.inf
    most = min(found.most - level.value, log_size) if known else 0.0
    least = min(found.least - level.value, 0.0) if known else -math.inf
    surely = max(0.0, found.most - level.upper) if known else 0.0
    kl = found.kl
    cost: dict[str, Any] = {"evaluations": found.draws}
    if found.interrupted:
        cost["stopped"], options = "interrupted", options._replace(out=None)
    answer = _assembled(
        likelihood, options, found.best, 1, level.value, cost, log_evidence=said(*level),
        entropy=said(log_size - kl.value, log_size - kl.upper, log_size - kl.lower), kl=said(*kl), js=said(*found.js),
        max_log_ratio=said(max(most, 0.0), surely, log_size),
        min_log_ratio=said(least, -math.inf, min(0.0, found.least - level.lower) if known else 0.0),
        vulnerability=said(math.exp(max(most, 0.0) - log_size), math.exp(surely - log_size), 1.0, "probability"),
    )  # fmt: skip
    if found.interrupted:
        raise interruption(answer, f"the run was interrupted after {found.draws} draws.")
    return answer


def _assembled(
    likelihood: IndexLikelihood, options: Options, best: list[tuple[float, int]], ties: int, level: float,
    cost: dict[str, Any], **quantities: Estimate,
) -> Posterior:  # fmt: skip
    size, logs = likelihood.size, evaluated(likelihood)
    shift = level + math.log(size)

    def chance(start: int, stop: int) -> FloatArray:
        return np.asarray(np.minimum(np.exp(logs(start, stop) - shift), 1.0))

    written(options.out, size, chance)
    shown = best[: options.top]
    top = Top(as_indices([i for _, i in shown], size), np.minimum(np.exp([log - shift for log, _ in shown]), 1.0))
    return Posterior(
        size, map_index=best[0][1] if best else 0, ties=ties, top=top, cost=cost, _law=chance, **quantities
    )


def _ordered(lower: float, upper: float) -> tuple[float, float]:
    """Ends that rounding may have exchanged."""
    return min(lower, upper), max(lower, upper)
