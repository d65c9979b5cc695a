"""What is tried before a run: that samplers and functions keep their word on a few points, and what a call costs.

Only what can be known is an error: a sampler that gives other draws for the same stream, or the same draws for another
stream, and a function that gives other values at the same points.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._values import distinct_rows
from ..errors import DomainError, warned
from .functions import PointFunction, Sampler, place

__all__ = ["Costs", "tried_function", "tried_sampler", "warned_of_cost"]

FloatArray = NDArray[np.float64]
Words = NDArray[np.uint64]

# bound: none - chance of refusing a right sampler
_BY_CHANCE = 1e-12


class Costs(NamedTuple):
    """Nanoseconds a sample, measured on few samples: good to within a factor, and not the same from run to run."""

    evaluate: float
    draw: float | None


def tried_sampler(sampler: Sampler, words: Words, n: int) -> tuple[FloatArray, float]:
    """n draws of the stream and nanoseconds a draw; an error if the sampler does not follow its generator."""
    first = sampler(words, n)
    again, cost = _timed(lambda: sampler(words, n), n)
    changed = np.flatnonzero((first != again).any(axis=0))
    if changed.size:
        k = int(changed[0])
        raise DomainError(
            f"{sampler.argument} must draw from the rng it is given and from nothing else; got other points for the "
            f"same rng from {sampler.name!r} ({changed.size} of {n} draws, first draw {k}). "
            f"Replace np.random and generators of {sampler.name!r}'s own by rng."
        )
    other, cost_of_other = _timed(lambda: sampler(np.append(words, np.uint64(1)), n), n)
    if np.array_equal(first, other):
        counts = np.bincount(distinct_rows(first.T)[1])
        if (float(counts.max()) / (n + 1)) ** n < _BY_CHANCE:
            raise DomainError(
                f"{sampler.argument} must draw from the rng it is given; got the same {n} points for two different "
                f"rngs from {sampler.name!r}. Use rng for every draw and do not reset it."
            )
    return first, min(cost, cost_of_other)


def tried_function(function: PointFunction, x: FloatArray) -> tuple[FloatArray, float]:
    """Values at x and nanoseconds a point; an error if a second call gives other values."""
    first = function(x, None)
    again, cost = _timed(lambda: function(x, None), x.shape[1])
    changed = np.flatnonzero(~((first == again) | (np.isnan(first) & np.isnan(again))))
    if changed.size:
        k = int(changed[0])
        raise DomainError(
            f"{function.argument} must be a function of the point alone; got {float(first[k])!r} and then "
            f"{float(again[k])!r} from {function.name!r}{place(k, x, None)}. Take randomness and counters out of it."
        )
    return first, cost


def warned_of_cost(function: PointFunction, cost: float) -> bool:
    """Says what plain Python costs, if it is that; whether it said so."""
    if function.form != "plain":
        return False
    warned(
        f"{function.argument} {function.name!r} is plain Python, called once a sample: {_nanoseconds(cost)} a sample, "
        "one thread at a time. Decorate it with numba.njit or pass jit=True, or write it for points (n, d) and pass "
        "vectorized=True."
    )
    return True


def _timed(call: Callable[[], FloatArray], n: int) -> tuple[FloatArray, float]:
    start = time.perf_counter_ns()
    found = call()
    return found, (time.perf_counter_ns() - start) / n


def _nanoseconds(cost: float) -> str:
    return f"{cost:.2g} ns" if cost < 100 else f"{round(cost, -2):.0f} ns"
