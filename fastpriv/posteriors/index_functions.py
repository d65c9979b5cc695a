"""Functions of an index, as callers pass them: evaluated on ranges of secrets, and what they return is checked.

An error names the block of secrets in which a function failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError
from ..base.numerics import FloatArray
from ..channels.likelihoods import IndexLikelihood
from ..channels.vector_sources import BLOCK, VectorSource
from ..kernels.jit import point_loops
from .result import INT64_LIMIT

__all__ = [
    "IndexSource", "checked_bound", "checked_function", "index_range", "range_evaluator", "require_enclosed",
]  # fmt: skip

_EVALUATED_AT_ONCE = 2**14  # secrets; their arrays stay in the cache
# bound: none - how far a user's bound may miss the function before it is refused, relative to 1 + |value|
_SLACK = 1e-9


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
