"""Posteriors of an ``IndexLikelihood``, a function that returns the log likelihood of every secret.

Up to the budget of the likelihood, all secrets are evaluated in ``dense``. Beyond it, ``branch_and_bound``
encloses every quantity if bounds over ranges are given; otherwise ``stratified_sampling`` estimates them. The user's
functions are checked at every call, and an error names the block of secrets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import validate
from ..base.errors import DomainError, interruption
from ..base.estimate import Estimate, Unit
from ..base.numerics import FloatArray
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood
from ..channels.vector_sources import VectorSource
from . import dense
from .branch_and_bound import enclosures
from .index_evaluation import range_evaluator
from .result import Options, Posterior, Top, index_array, write_probabilities
from .stratified_sampling import CONFIDENCE, sample_domain

__all__ = ["IndexSource", "posterior"]

_SIZE_LIMIT = 2**1000  # secrets; the share of one secret in a larger domain is no normal double


class IndexSource(VectorSource):
    """The values of a function over all indices, as a vector that can be read in any order."""

    random_access = True

    def __init__(self, name: str, likelihood: IndexLikelihood) -> None:
        super().__init__(name)
        self.likelihood, self.values, self.length = likelihood, range_evaluator(likelihood), likelihood.size

    def __reduce__(self) -> Any:
        return IndexSource, (self.name, self.likelihood)

    def take(self, start: int, stop: int) -> FloatArray:
        """Entries ``start`` to ``stop - 1``."""
        return self.values(start, stop)


def posterior(likelihood: IndexLikelihood, prior: Any, options: Options) -> Posterior:
    """The posterior by full evaluation, branch and bound or sampling, the first of these within the budget."""
    if 2 * likelihood.size <= likelihood.budget:
        if callable(prior):
            prior = IndexSource("prior", IndexLikelihood(prior, likelihood.size))
        return dense.posterior(DenseLikelihood(IndexSource("likelihood", likelihood)), prior, options)
    if prior is not None or likelihood.size > _SIZE_LIMIT:
        raise DomainError(
            "prior must be None, and size at most 2**1000, for more secrets than half the budget; got "
            f"{validate.shown(likelihood.size)} secrets and a budget of {likelihood.budget}. Raise the budget, or add "
            "the log prior to the function and take the uniform prior."
        )
    return (_by_sampling if likelihood.bound is None else _by_branch_and_bound)(likelihood, options)


def _by_branch_and_bound(likelihood: IndexLikelihood, options: Options) -> Posterior:
    bounds = enclosures(likelihood, options.top, options.progress)
    log_size = math.log(likelihood.size)
    low, high = bounds.log_evidence

    def certified_estimate(ends: tuple[float, float], unit: Unit = "nats") -> Estimate:
        lower, upper = min(ends), max(ends)  # rounding may have exchanged ends that are close
        value = lower if lower == -math.inf or upper == math.inf else 0.5 * (lower + upper)
        return Estimate(value, lower, upper, kind="certified", unit=unit, method="branch and bound")

    most = bounds.most[0] - high, min(bounds.most[1] - low, log_size)
    least = bounds.least[0] - high, min(bounds.least[1] - low, 0.0)
    return _result(
        likelihood, options, bounds.best, bounds.ties, 0.5 * (low + high) if low > -math.inf else high, bounds.cost,
        log_evidence=certified_estimate((low, high)),
        kl=certified_estimate(bounds.kl), js=certified_estimate(bounds.js),
        entropy=certified_estimate((max(0.0, log_size - bounds.kl[1]), log_size - bounds.kl[0])),
        max_log_ratio=certified_estimate(most), min_log_ratio=certified_estimate(least),
        vulnerability=certified_estimate((math.exp(most[0] - log_size), math.exp(most[1] - log_size)), "probability"),
    )  # fmt: skip


def _by_sampling(likelihood: IndexLikelihood, options: Options) -> Posterior:
    sample = sample_domain(likelihood, max(1, options.top), options.rng, options.n_jobs, options.progress)
    log_size = math.log(likelihood.size)

    def interval(value: float, lower: float, upper: float, unit: Unit = "nats") -> Estimate:
        return Estimate(value, min(lower, value), max(upper, value), kind="statistical", unit=unit,
                        method="sampled domain", confidence=CONFIDENCE)  # fmt: skip

    evidence, kl = sample.log_evidence, sample.kl
    possible = evidence.value > -math.inf
    most = max(min(sample.most - evidence.value, log_size), 0.0) if possible else 0.0
    least = min(sample.least - evidence.value, 0.0) if possible else -math.inf
    most_lower = max(0.0, sample.most - evidence.upper) if possible else 0.0
    least_upper = min(0.0, sample.least - evidence.lower) if possible else 0.0
    cost: dict[str, Any] = {"evaluations": sample.draws}
    if sample.interrupted:
        cost["stopped"], options = "interrupted", options._replace(out=None)
    answer = _result(
        likelihood, options, sample.best, 1, evidence.value, cost, log_evidence=interval(*evidence),
        entropy=interval(log_size - kl.value, log_size - kl.upper, log_size - kl.lower), kl=interval(*kl),
        js=interval(*sample.js), max_log_ratio=interval(most, most_lower, log_size),
        min_log_ratio=interval(least, -math.inf, least_upper),
        vulnerability=interval(math.exp(most - log_size), math.exp(most_lower - log_size), 1.0, "probability"),
    )  # fmt: skip
    if sample.interrupted:
        raise interruption(answer, f"the run was interrupted after {sample.draws} draws.")
    return answer


def _result(
    likelihood: IndexLikelihood, options: Options, best: list[tuple[float, int]], ties: int, log_z: float,
    cost: dict[str, Any], **quantities: Estimate,
) -> Posterior:  # fmt: skip
    size, logs = likelihood.size, range_evaluator(likelihood)
    shift = log_z + math.log(size)

    def probabilities(start: int, stop: int) -> FloatArray:
        return np.asarray(np.minimum(np.exp(logs(start, stop) - shift), 1.0))

    write_probabilities(options.out, size, probabilities)
    shown = best[: options.top]
    top = Top(index_array([i for _, i in shown], size), np.minimum(np.exp([log - shift for log, _ in shown]), 1.0))
    return Posterior(
        size, map_index=best[0][1] if best else 0, ties=ties, top=top, cost=cost, _probabilities=probabilities,
        **quantities,
    )  # fmt: skip
