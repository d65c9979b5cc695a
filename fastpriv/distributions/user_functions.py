"""What a person hands over, a function of points and a sampler, seen as tiles of samples and checked as such.

A tile is ``x[d, n]``: row j holds coordinate j of n samples. The person's functions see points: one array of length d,
or an array ``(n, d)`` of many. All of them get copies that they may overwrite.

Before a run they are tried on a few points. Only what can be known is an error: a sampler that gives other draws for the same stream, or the same draws for another
stream, and a function that gives other values at the same points.
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from .._values import distinct_rows
from ..errors import DomainError, ShapeError, warned
from ..kernels.jit import point_loops

__all__ = ["Costs", "PointFunction", "Sampler", "tried_function", "tried_sampler", "warned_of_cost"]

FloatArray = NDArray[np.float64]
Words = NDArray[np.uint64]

_SHOWN = 4
# bound: none - chance of refusing a right sampler
_BY_CHANCE = 1e-12


class PointFunction:
    """Values of one function at the points of a tile.

    ``form`` says how it is called: "jitted" (numba, once a sample, in a loop without the GIL), "vectorized" (once a
    tile) or "plain" (Python, once a sample).
    """

    __slots__ = ("argument", "dimension", "form", "function", "name", "_call", "_loop")  # noqa: RUF023

    def __init__(self, argument: str, function: Any, dimension: int, *, vectorized: bool, jit: bool, name: str) -> None:
        callable_or_raise(argument, function)
        if jit:
            function = point_loops.compiled(argument, function)
        jitted = point_loops.is_jitted(function)
        self.argument, self.function, self.dimension, self.name = argument, function, dimension, name
        self._call: Callable[[FloatArray], FloatArray]
        if vectorized:
            self.form, self._call = "vectorized", self._many
            if jitted:
                point_loops.vectorized_function(argument, function)
        elif jitted:
            self.form, self._call = "jitted", self._looped
            self._loop = point_loops.value_loop(argument, function)
        else:
            self.form, self._call = "plain", self._one_by_one

    def __call__(self, x: FloatArray, block: int | None) -> FloatArray:
        """Values at the columns of x, shape (n,); NaN is not looked for here."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        try:
            found = self._call(x)
        except _Wrong as fault:
            raise DomainError(
                f"{self.argument} must return one real number for one point; got {fault} from {self.name!r}"
                f"{place(fault.index, x, block)}. Return a float; for a function of points (n, d) pass vectorized=True."
            ) from None
        except MemoryError:
            raise
        except Exception as fault:
            index = self._first_failure(x)
            at = place(index, x, block) if index is not None else _within(block)
            raise DomainError(
                f"{self.argument} must return a number or -inf at every point; got {type(fault).__name__}: {fault} "
                f"from {self.name!r}{at}. Mend {self.name!r} there; where the density is zero it returns -inf."
                f"{'' if index else self._other_form()}"
            ) from fault
        return found if self.form != "vectorized" else self._one_each(found, x.shape[1])

    def _looped(self, x: FloatArray) -> FloatArray:
        out = np.empty(x.shape[1])
        self._loop(x, np.empty(self.dimension), out)
        return out

    def _many(self, x: FloatArray) -> FloatArray:
        return _validate.array(self.argument, self.function(np.array(x.T, order="C")))

    def _one_by_one(self, x: FloatArray) -> FloatArray:
        function, out = self.function, np.empty(x.shape[1])
        for k, row in enumerate(np.array(x.T, order="C")):
            value = function(row)
            if type(value) is not float:
                if isinstance(value, np.ndarray) and value.ndim == 0:
                    value = value[()]
                if not isinstance(value, numbers.Real | np.bool_):
                    raise _Wrong(value, k)
            out[k] = value
        return out

    def _one_each(self, found: NDArray[Any], n: int) -> FloatArray:
        if found.dtype.kind not in "fiub":
            raise DomainError(
                f"{self.argument} must return real numbers; got an array of {found.dtype} from {self.name!r}. "
                "Return float64."
            )
        if found.shape != (n,):
            raise ShapeError(
                f"{self.argument} must return one number a point, shape ({n},) for points of shape ({n}, "
                f"{self.dimension}); got shape {found.shape} from {self.name!r}. Sum over the last axis, or drop "
                "vectorized=True if it takes one point."
            )
        return found.astype(np.float64)

    def _other_form(self) -> str:
        if self.form == "vectorized":
            return " If it takes one point, drop vectorized=True."
        return " If it takes points of shape (n, d), pass vectorized=True."

    def _first_failure(self, x: FloatArray) -> int | None:
        """The first point at which the function raises when it is called with that point alone."""
        for k, row in enumerate(np.array(x.T, order="C")):
            try:
                self.function(row[np.newaxis] if self.form == "vectorized" else row)
            except Exception:
                return k
        return None


class Sampler:
    """Draws of one sampler as tiles, a function of the words of a stream alone."""

    __slots__ = ("argument", "dimension", "function", "jitted", "name", "_loop")  # noqa: RUF023

    def __init__(self, argument: str, function: Any, dimension: int) -> None:
        callable_or_raise(argument, function)
        self.argument, self.function, self.dimension = argument, function, dimension
        self.name = named(function)
        self.jitted = point_loops.is_jitted(function)
        if self.jitted:
            self._loop = point_loops.filling_loop(argument, function)

    def __call__(self, words: Words, n: int) -> FloatArray:
        """The n draws of the stream that ``words`` name, shape (d, n), finite."""
        rng = np.random.default_rng(words)
        try:
            drawn = self._filled(rng, n) if self.jitted else self.function(rng, n)
        except MemoryError:
            raise
        except Exception as fault:
            raise DomainError(
                f"{self.argument} must draw {n} points; got {type(fault).__name__}: {fault} from {self.name!r}. "
                f"{self._called()}"
            ) from fault
        x = drawn if self.jitted else self._tile(_validate.array(self.argument, drawn), n)
        finite = np.isfinite(x)
        if not finite.all():
            j, k = (int(i) for i in np.argwhere(~finite)[0])
            unfilled = " Assign every x[j]: what is left alone is nan." if self.jitted else ""
            raise DomainError(
                f"{self.argument} must draw finite points; got {float(x[j, k])!r} in coordinate {j} of draw {k} "
                f"({int(x.size - finite.sum())} of {x.size} entries) from {self.name!r}. Mend {self.name!r}.{unfilled}"
            )
        return x

    def _called(self) -> str:
        """How the sampler is called."""
        more = getattr(self.function, "more_arguments", "")
        text = f"It is called as {self.argument}(rng, n{more}) and returns (n, {self.dimension})"
        return text + ("." if more else f"; a jitted one as {self.argument}(rng, x) and fills x.")

    def _filled(self, rng: np.random.Generator, n: int) -> FloatArray:
        x = np.empty((self.dimension, n))
        self._loop(rng, np.empty(self.dimension), x)
        return x

    def _tile(self, found: NDArray[Any], n: int) -> FloatArray:
        if found.dtype.kind not in "fiub":
            raise DomainError(
                f"{self.argument} must return real numbers; got an array of {found.dtype} from {self.name!r}. "
                "Return float64 or integers."
            )
        if found.shape == (n,) and self.dimension == 1:
            found = found[:, np.newaxis]
        if found.shape != (n, self.dimension):
            raise ShapeError(
                f"{self.argument} must return n points as an array of shape (n, dimension), here ({n}, "
                f"{self.dimension}); got shape {found.shape} from {self.name!r}. "
                "Draw as many points as asked, one a row."
            )
        return np.array(found.T, dtype=np.float64, order="C")


class _Wrong(Exception):
    """A value that is no number, at a point."""

    def __init__(self, value: Any, index: int) -> None:
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        super().__init__(shown if len(shown) <= 60 else shown[:57] + "...")
        self.index = index


def callable_or_raise(argument: str, function: Any) -> None:
    """Something that can be called, and is not merely the result of a call."""
    if not callable(function):
        raise DomainError(
            f"{argument} must be a function; got {function!r}. Pass the function itself, not what it returns."
        )


def named(function: Any) -> str:
    """The name that messages use."""
    return str(getattr(function, "__name__", type(function).__name__))


def place(index: int, x: FloatArray, block: int | None) -> str:
    """Which point: its number, its block, its coordinates."""
    point = [float(value) for value in x[:_SHOWN, index]]
    more = f", ... ({x.shape[0]} coordinates)" if x.shape[0] > _SHOWN else ""
    return f" at point {index}{_within(block)}, x = [{', '.join(map(repr, point))}{more}]"


def _within(block: int | None) -> str:
    return "" if block is None else f" of block {block}"


def bad_values(values: FloatArray, *, zero: bool, infinite: bool) -> NDArray[np.bool_] | None:
    """Where log values have what they can't: NaN, +inf unless ``infinite``, -inf unless ``zero``; None for nowhere."""
    if values.size == 0:
        return None
    peak = float(values.max())
    low = float(values.min())
    if peak == peak and (infinite or peak < math.inf) and (zero or low > -math.inf):
        return None
    bad = np.isnan(values)
    if not infinite:
        bad |= values == math.inf
    if not zero:
        bad |= values == -math.inf
    return bad


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
