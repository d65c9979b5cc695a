"""Log likelihoods and their bounds from functions that people hand over; what is wrong with them is said by block."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import _validate
from ..._values import FloatArray
from ...channels.likelihoods.kinds import IndexLikelihood
from ...channels.likelihoods.sources import BLOCK
from ...errors import DomainError
from ...kernels.jit import point_loops

__all__ = ["bounded", "evaluated", "evaluator", "held", "indices_of"]

_RUN = 2**14
_PLAIN = 2**63  # secrets up to which indices are integers of 64 bits
# bound: none - how far a user's bound may miss the function before it is refused
_SLACK = 1e-9


def indices_of(start: int, stop: int, size: int) -> NDArray[Any]:
    """A range of secrets as an array."""
    if size <= _PLAIN:
        return np.arange(start, stop, dtype=np.int64)
    return np.array(range(start, stop), dtype=object)


def evaluator(likelihood: IndexLikelihood) -> Callable[[NDArray[Any]], FloatArray]:
    """Log likelihoods of an array of secrets, checked."""
    function = likelihood.function
    loop = None
    if point_loops.is_jitted(function):
        if likelihood.size > _PLAIN:
            raise DomainError(
                f"size must be at most 2**63 for a jitted function; got {_validate.shown(likelihood.size)}. Pass a "
                "vectorised function of an array of Python integers."
            )
        loop = point_loops.index_loop("function", function)

    def at(indices: NDArray[Any]) -> FloatArray:
        try:
            if loop is None:
                given = function(indices)
            else:
                given = np.empty(len(indices))
                loop(indices, given)
        except Exception as fault:
            raise DomainError(
                f"function must return a log likelihood for every secret; got {type(fault).__name__}: {fault} in "
                f"{_where(indices)}. Mend it for these secrets."
            ) from fault
        found = _validate.array("function", given)
        if found.dtype == object:  # what arithmetic with indices beyond 64 bits makes
            with suppress(TypeError, ValueError, OverflowError):
                found = found.astype(np.float64)
        if found.shape != indices.shape or found.dtype.kind not in "fiub":
            raise DomainError(
                f"function must return one real number a secret; got {found.dtype} of shape {found.shape} for "
                f"{len(indices)} secrets in {_where(indices)}. Vectorise it, or jit a function of one integer."
            )
        found = np.ascontiguousarray(found, dtype=np.float64)
        bad = np.isnan(found) | (found == np.inf)
        if bad.any():
            first = int(np.argmax(bad))
            raise DomainError(
                f"function must return log likelihoods below infinity; got {float(found[first])!r} at index "
                f"{int(indices[first])} ({int(bad.sum())} of {len(indices)} entries) in {_where(indices)}. "
                "An impossible release has -inf."
            )
        return found

    return at


def evaluated(likelihood: IndexLikelihood) -> Callable[[int, int], FloatArray]:
    """Log likelihoods of a range of secrets, by runs that stay in the cache."""
    at = evaluator(likelihood)

    def found(start: int, stop: int) -> FloatArray:
        _validate.memory("probabilities", 8 * (stop - start), "Ask for fewer at a time.")
        logs = np.empty(stop - start)
        for first in range(start, stop, _RUN):
            last = min(first + _RUN, stop)
            logs[first - start : last - start] = at(indices_of(first, last, likelihood.size))
        return logs

    return found


def bounded(likelihood: IndexLikelihood) -> Callable[[int, int], tuple[float, float]]:
    """Bounds of the log likelihood over a range of secrets, checked."""
    bound = likelihood.bound
    if bound is None:
        raise TypeError("there must be a bound")

    def over(start: int, stop: int) -> tuple[float, float]:
        try:
            given = bound(start, stop)
            pair = (given if isinstance(given, (tuple, list, np.ndarray)) else (-math.inf, given))
            lower, upper = (float(x) for x in pair)
        except Exception as fault:
            raise DomainError(
                f"bound must return a lower and an upper bound, or the upper one; got {type(fault).__name__}: {fault} "
                f"for secrets {start} to {stop - 1}. Mend it for this range."
            ) from fault
        if not lower <= upper < math.inf:
            raise DomainError(
                f"bound must return a lower and an upper bound below infinity, in order; got {given!r} for secrets "
                f"{start} to {stop - 1}. Return (lower, upper)."
            )
        return lower, upper

    return over


def held(value: float, lower: float, upper: float, index: int, start: int, stop: int) -> None:
    """The function keeps the promise of its bounds."""
    slack = _SLACK * (1 + abs(value)) if math.isfinite(value) else 0.0
    if not (lower <= value + slack and value <= upper + slack):
        raise DomainError(
            f"bound must enclose the function; got [{lower!r}, {upper!r}] for secrets {start} to {stop - 1}, where "
            f"the function is {value!r} at index {index}. Widen it by its own rounding."
        )


def _where(indices: NDArray[Any]) -> str:
    first, last = int(indices[0]), int(indices[-1])
    if last - first == len(indices) - 1:
        return f"block {first // BLOCK}, secrets {first} to {last}"
    return f"secrets between {int(indices.min())} and {int(indices.max())}"
