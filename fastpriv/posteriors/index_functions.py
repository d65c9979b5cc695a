"""Posteriors of an ``IndexLikelihood``, a function that returns the log likelihood of every secret.

Up to the budget of the likelihood, all secrets are evaluated in ``dense``. Beyond it, ``branch_and_bound``
encloses every quantity if bounds over ranges are given; otherwise ``stratified_sampling`` estimates them. The user's
functions are checked at every call, and an error names the block of secrets.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError, interruption
from ..base.estimate import Estimate, Unit
from ..base.numerics import FloatArray
from ..channels.likelihoods import DenseLikelihood, IndexLikelihood
from ..channels.vector_sources import BLOCK, VectorSource
from ..kernels.jit import point_loops
from .result import INT64_LIMIT, Options, Posterior, Top, index_array, write_probabilities

__all__ = [
    "IndexSource", "checked_bound", "checked_function", "index_range", "posterior", "range_evaluator",
    "require_enclosed",
]  # fmt: skip

_EVALUATED_AT_ONCE = 2**14  # secrets; their arrays stay in the cache
_SIZE_LIMIT = 2**1000  # secrets; the share of one secret in a larger domain is no normal double
# bound: none - how far a user's bound may miss the function before it is refused, relative to 1 + |value|
_SLACK = 1e-9


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
        from . import dense

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
    from .branch_and_bound import enclosures

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
    from .stratified_sampling import CONFIDENCE, sample_domain

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


def index_range(start: int, stop: int, size: int) -> NDArray[Any]:
    """A range of secrets of a domain of this size as an array."""
    if size <= INT64_LIMIT:
        return np.arange(start, stop, dtype=np.int64)
    return np.array(range(start, stop), dtype=object)


def checked_function(likelihood: IndexLikelihood) -> Callable[[NDArray[Any]], FloatArray]:
    """The user's function of an array of secrets, with checks of what it returns."""
    function = likelihood.function
    loop = None
    if point_loops.is_jitted(function):
        if likelihood.size > INT64_LIMIT:
            raise DomainError(
                f"size must be at most 2**63 for a jitted function; got {validate.shown(likelihood.size)}. Pass a "
                "vectorised function of an array of Python integers."
            )
        loop = point_loops.index_loop("function", function)

    def log_likelihoods(indices: NDArray[Any]) -> FloatArray:
        try:
            if loop is None:
                returned = function(indices)
            else:
                returned = np.empty(len(indices))
                loop(indices, returned)
        except Exception as fault:
            raise DomainError(
                f"function must return a log likelihood for every secret; got {type(fault).__name__}: {fault} in "
                f"{_position(indices)}. Mend it for these secrets."
            ) from fault
        logs = validate.array("function", returned)
        if logs.dtype == object:  # arithmetic with indices beyond 64 bits makes objects
            with suppress(TypeError, ValueError, OverflowError):
                logs = logs.astype(np.float64)
        if logs.shape != indices.shape or logs.dtype.kind not in "fiub":
            raise DomainError(
                f"function must return one real number a secret; got {logs.dtype} of shape {logs.shape} for "
                f"{len(indices)} secrets in {_position(indices)}. Vectorise it, or jit a function of one integer."
            )
        logs = np.ascontiguousarray(logs, dtype=np.float64)
        bad = np.isnan(logs) | (logs == np.inf)
        if bad.any():
            first = int(np.argmax(bad))
            raise DomainError(
                f"function must return log likelihoods below infinity; got {float(logs[first])!r} at index "
                f"{int(indices[first])} ({int(bad.sum())} of {len(indices)} entries) in {_position(indices)}. "
                "An impossible release has -inf."
            )
        return logs

    return log_likelihoods


def range_evaluator(likelihood: IndexLikelihood) -> Callable[[int, int], FloatArray]:
    """Make the function of the log likelihoods of a range, evaluated in pieces that fit in the cache."""
    function = checked_function(likelihood)

    def log_likelihoods(start: int, stop: int) -> FloatArray:
        validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time.")
        logs = np.empty(stop - start)
        for first in range(start, stop, _EVALUATED_AT_ONCE):
            last = min(first + _EVALUATED_AT_ONCE, stop)
            logs[first - start : last - start] = function(index_range(first, last, likelihood.size))
        return logs

    return log_likelihoods


def checked_bound(likelihood: IndexLikelihood) -> Callable[[int, int], tuple[float, float]]:
    """The user's bounds of the log likelihood over a range of secrets, with checks of what is returned."""
    bound = likelihood.bound
    if bound is None:
        raise TypeError("there must be a bound")

    def bounds(start: int, stop: int) -> tuple[float, float]:
        try:
            returned = bound(start, stop)
            pair = returned if isinstance(returned, (tuple, list, np.ndarray)) else (-math.inf, returned)
            lower, upper = (float(x) for x in pair)
        except Exception as fault:
            raise DomainError(
                f"bound must return a lower and an upper bound, or the upper one; got {type(fault).__name__}: {fault} "
                f"for secrets {start} to {stop - 1}. Mend it for this range."
            ) from fault
        if not lower <= upper < math.inf:
            raise DomainError(
                f"bound must return a lower and an upper bound below infinity, in order; got {returned!r} for secrets "
                f"{start} to {stop - 1}. Return (lower, upper)."
            )
        return lower, upper

    return bounds


def require_enclosed(value: float, lower: float, upper: float, index: int, start: int, stop: int) -> None:
    """Refuse bounds over a range that do not enclose a value of the function in it."""
    slack = _SLACK * (1 + abs(value)) if math.isfinite(value) else 0.0
    if not (lower <= value + slack and value <= upper + slack):
        raise DomainError(
            f"bound must enclose the function; got [{lower!r}, {upper!r}] for secrets {start} to {stop - 1}, where "
            f"the function is {value!r} at index {index}. Widen it by its own rounding."
        )


def _position(indices: NDArray[Any]) -> str:
    first, last = int(indices[0]), int(indices[-1])
    if last - first == len(indices) - 1:
        return f"block {first // BLOCK}, secrets {first} to {last}"
    return f"secrets between {int(indices.min())} and {int(indices.max())}"
