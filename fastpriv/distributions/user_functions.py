"""User-defined log densities, log ratios and samplers, called on arrays of samples and checked.

Samples are an array ``x[d, n]``: row j holds coordinate j of n samples. The user's functions see points: one array of
length d, or an array ``(n, d)`` of many. All of them get copies that they may overwrite.

Before a run they are called on a few points. An error is raised for what is certainly wrong: a sampler that returns
other samples for the same stream, or the same samples for another stream, and a function that returns other values at
the same points.
"""

from __future__ import annotations

import math
import numbers
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..base import validate
from ..base.errors import DomainError, ShapeError, warned
from ..base.numerics import BoolArray, FloatArray, WordArray
from ..base.values import distinct_rows
from ..kernels.jit import point_loops

_SHOWN_COORDINATES = 4  # of a point in an error message
# bound: none - chance of refusing a correct sampler of a discrete distribution, whose samples may repeat
_MAX_FALSE_REFUSAL = 1e-12


class PointFunction:
    """Values of one function at many points.

    ``form`` says how it is called: "jitted" (numba, once a sample, in a loop without the GIL), "vectorized" (once for
    all points) or "plain" (Python, once a sample).
    """

    __slots__ = ("argument", "dimension", "form", "function", "name", "_call", "_loop")  # noqa: RUF023

    form: Literal["jitted", "vectorized", "plain"]

    def __init__(self, argument: str, function: Any, dimension: int, *, vectorized: bool, jit: bool, name: str) -> None:
        check_callable(argument, function)
        if jit:
            function = point_loops.compiled(argument, function)
        jitted = point_loops.is_jitted(function)
        self.argument, self.function, self.dimension, self.name = argument, function, dimension, name
        self._call: Callable[[FloatArray], FloatArray]
        if vectorized:
            self.form, self._call = "vectorized", self._call_vectorized
            if jitted:
                point_loops.vectorized_function(argument, function)
        elif jitted:
            self.form, self._call = "jitted", self._call_jitted
            self._loop = point_loops.value_loop(argument, function)
        else:
            self.form, self._call = "plain", self._call_each

    def __call__(self, x: FloatArray, block: int | None) -> FloatArray:
        """Values at the columns of x, shape (n,); ``invalid_values`` checks them for NaN."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        try:
            values = self._call(x)
        except _NotANumberError as fault:
            raise DomainError(
                f"{self.argument} must return one real number for one point; got {fault} from {self.name!r}"
                f"{point_description(fault.index, x, block)}. Return a float; for a function of points (n, d) pass "
                "vectorized=True."
            ) from None
        except MemoryError:
            raise
        except Exception as fault:
            index = self._first_failure(x)
            position = point_description(index, x, block) if index is not None else _block_description(block)
            hint = " If it takes points of shape (n, d), pass vectorized=True."
            if self.form == "vectorized":
                hint = " If it takes one point, drop vectorized=True."
            raise DomainError(
                f"{self.argument} must return a number or -inf at every point; got {type(fault).__name__}: {fault} "
                f"from {self.name!r}{position}. Mend {self.name!r} there; where the density is zero it returns -inf."
                f"{'' if index else hint}"
            ) from fault
        return values if self.form != "vectorized" else self._one_value_a_point(values, x.shape[1])

    def _call_jitted(self, x: FloatArray) -> FloatArray:
        out = np.empty(x.shape[1])
        self._loop(x, np.empty(self.dimension), out)
        return out

    def _call_vectorized(self, x: FloatArray) -> FloatArray:
        return validate.array(self.argument, self.function(np.array(x.T, order="C")))

    def _call_each(self, x: FloatArray) -> FloatArray:
        function, out = self.function, np.empty(x.shape[1])
        for k, row in enumerate(np.array(x.T, order="C")):
            value = function(row)
            if type(value) is not float:
                if isinstance(value, np.ndarray) and value.ndim == 0:
                    value = value[()]
                if not isinstance(value, numbers.Real | np.bool_):
                    raise _NotANumberError(value, k)
            out[k] = value
        return out

    def _one_value_a_point(self, values: NDArray[Any], n: int) -> FloatArray:
        _check_real(self, values, "Return float64.")
        if values.shape != (n,):
            raise ShapeError(
                f"{self.argument} must return one number a point, shape ({n},) for points of shape ({n}, "
                f"{self.dimension}); got shape {values.shape} from {self.name!r}. Sum over the last axis, or drop "
                "vectorized=True if it takes one point."
            )
        return values.astype(np.float64)

    def _first_failure(self, x: FloatArray) -> int | None:
        """The first point at which the function raises when it is called with that point alone."""
        for k, row in enumerate(np.array(x.T, order="C")):
            try:
                self.function(row[np.newaxis] if self.form == "vectorized" else row)
            except Exception:
                return k
        return None


class Sampler:
    """Samples of one sampler, a function of the random stream alone."""

    __slots__ = ("argument", "dimension", "function", "jitted", "name", "_loop")  # noqa: RUF023

    def __init__(self, argument: str, function: Any, dimension: int) -> None:
        check_callable(argument, function)
        self.argument, self.function, self.dimension = argument, function, dimension
        self.name = function_name(function)
        self.jitted = point_loops.is_jitted(function)
        if self.jitted:
            self._loop = point_loops.filling_loop(argument, function)

    def __call__(self, words: WordArray, n: int) -> FloatArray:
        """The n samples of the stream with the seed ``words``, shape (d, n), all finite."""
        rng = np.random.default_rng(words)
        try:
            drawn = self._call_jitted(rng, n) if self.jitted else self.function(rng, n)
        except MemoryError:
            raise
        except Exception as fault:
            raise DomainError(
                f"{self.argument} must draw {n} points; got {type(fault).__name__}: {fault} from {self.name!r}. "
                f"{self._calling_convention()}"
            ) from fault
        x = drawn if self.jitted else self._as_columns(validate.array(self.argument, drawn), n)
        finite = np.isfinite(x)
        if not finite.all():
            j, k = (int(i) for i in np.argwhere(~finite)[0])
            unfilled = " Assign every x[j]: what is left alone is nan." if self.jitted else ""
            raise DomainError(
                f"{self.argument} must draw finite points; got {float(x[j, k])!r} in coordinate {j} of draw {k} "
                f"({int(x.size - finite.sum())} of {x.size} entries) from {self.name!r}. Mend {self.name!r}.{unfilled}"
            )
        return x

    def _calling_convention(self) -> str:
        """How the sampler is called."""
        more = getattr(self.function, "more_arguments", "")
        text = f"It is called as {self.argument}(rng, n{more}) and returns (n, {self.dimension})"
        return text + ("." if more else f"; a jitted one as {self.argument}(rng, x) and fills x.")

    def _call_jitted(self, rng: np.random.Generator, n: int) -> FloatArray:
        x = np.empty((self.dimension, n))
        self._loop(rng, np.empty(self.dimension), x)
        return x

    def _as_columns(self, points: NDArray[Any], n: int) -> FloatArray:
        _check_real(self, points, "Return float64 or integers.")
        if points.shape == (n,) and self.dimension == 1:
            points = points[:, np.newaxis]
        if points.shape != (n, self.dimension):
            raise ShapeError(
                f"{self.argument} must return n points as an array of shape (n, dimension), here ({n}, "
                f"{self.dimension}); got shape {points.shape} from {self.name!r}. "
                "Draw as many points as asked, one a row."
            )
        return np.array(points.T, dtype=np.float64, order="C")


def _check_real(user: PointFunction | Sampler, values: NDArray[Any], remedy: str) -> None:
    if values.dtype.kind not in "fiub":
        raise DomainError(
            f"{user.argument} must return real numbers; got an array of {values.dtype} from {user.name!r}. {remedy}"
        )


class _NotANumberError(Exception):
    """A user's function returned a value that is not a number at the point with this index."""

    def __init__(self, value: Any, index: int) -> None:
        shown = f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
        super().__init__(shown if len(shown) <= 60 else shown[:57] + "...")
        self.index = index


def check_callable(argument: str, function: Any) -> None:
    """Raise unless the argument is a function, and not the result of a call."""
    if not callable(function):
        raise DomainError(
            f"{argument} must be a function; got {function!r}. Pass the function itself, not what it returns."
        )


def function_name(function: Any) -> str:
    """The name of a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def point_description(index: int, x: FloatArray, block: int | None) -> str:
    """Text that identifies a point: its index, its block, its coordinates."""
    point = [float(value) for value in x[:_SHOWN_COORDINATES, index]]
    more = f", ... ({x.shape[0]} coordinates)" if x.shape[0] > _SHOWN_COORDINATES else ""
    return f" at point {index}{_block_description(block)}, x = [{', '.join(map(repr, point))}{more}]"


def _block_description(block: int | None) -> str:
    return "" if block is None else f" of block {block}"


def invalid_values(values: FloatArray, *, zero: bool, infinite: bool) -> BoolArray | None:
    """Mask of invalid logarithms: NaN, +inf unless ``infinite``, -inf unless ``zero``; None if there are none."""
    if values.size == 0:
        return None
    largest, least = float(values.max()), float(values.min())
    if largest == largest and (infinite or largest < math.inf) and (zero or least > -math.inf):  # not NaN
        return None
    bad = np.isnan(values)
    if not infinite:
        bad |= values == math.inf
    if not zero:
        bad |= values == -math.inf
    return bad


def check_sampler(sampler: Sampler, words: WordArray, n: int) -> FloatArray:
    """n samples of the stream; raise if they do not depend on the stream alone."""
    first = sampler(words, n)
    changed = np.flatnonzero((first != sampler(words, n)).any(axis=0))
    if changed.size:
        k = int(changed[0])
        raise DomainError(
            f"{sampler.argument} must draw from the rng it is given and from nothing else; got other points for the "
            f"same rng from {sampler.name!r} ({changed.size} of {n} draws, first draw {k}). "
            f"Replace np.random and generators of {sampler.name!r}'s own by rng."
        )
    if np.array_equal(first, sampler(np.append(words, np.uint64(1)), n)):
        counts = np.bincount(distinct_rows(first.T)[1])
        if (float(counts.max()) / (n + 1)) ** n < _MAX_FALSE_REFUSAL:
            raise DomainError(
                f"{sampler.argument} must draw from the rng it is given; got the same {n} points for two different "
                f"rngs from {sampler.name!r}. Use rng for every draw and do not reset it."
            )
    return first


def check_function(function: PointFunction, x: FloatArray) -> float:
    """Nanoseconds a point of a call at x; raise if a second call returns other values."""
    first = function(x, None)
    start = time.perf_counter_ns()
    again = function(x, None)
    cost: float = (time.perf_counter_ns() - start) / x.shape[1]
    changed = np.flatnonzero(~((first == again) | (np.isnan(first) & np.isnan(again))))
    if changed.size:
        k = int(changed[0])
        raise DomainError(
            f"{function.argument} must be a function of the point alone; got {float(first[k])!r} and then "
            f"{float(again[k])!r} from {function.name!r}{point_description(k, x, None)}. "
            "Take randomness and counters out of it."
        )
    return cost


def warn_of_python_cost(function: PointFunction, cost: float) -> bool:
    """Warn of the cost of a plain Python function; return whether there was a warning."""
    if function.form != "plain":
        return False
    rounded = f"{cost:.2g} ns" if cost < 100 else f"{round(cost, -2):.0f} ns"
    warned(
        f"{function.argument} {function.name!r} is plain Python, called once a sample: {rounded} a "
        "sample, one thread at a time. Decorate it with numba.njit or pass jit=True, or write it for points (n, d) and "
        "pass vectorized=True."
    )
    return True
