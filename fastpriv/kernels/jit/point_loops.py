"""Loops around one jitted function of a point, compiled by numba.

Samples are an array ``x[d, n]``: row j holds coordinate j of n samples. The function sees one sample at a time in
``row``, a contiguous buffer of length d that it may overwrite. The loops release the GIL and start no threads.

One loop is compiled for each dispatcher and cached for the life of the process (about 0.15 s on the first use). No file
is written: numba inlines the function into the loop, and its file cache does not notice when an inlined function
changes in another file. ``cache=True`` of the function itself is honoured, so a function that takes long to compile
does so once.

Floating point is strict: no reassociation, no contraction; a division by zero gives an infinity, as in NumPy.
"""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import PurePath
from types import FunctionType
from typing import Any

import numpy as np

from ...base.errors import BackendMissingError, DomainError

__all__ = ["compiled", "filling_loop", "index_loop", "is_jitted", "value_loop", "vectorized_function"]

Loop = Callable[..., None]

_MAX_CACHED_LOOPS = 256


def is_jitted(function: Any) -> bool:
    """Whether numba compiled the function; False at no cost while numba is not loaded."""
    if "numba" not in sys.modules:
        return False
    from numba.extending import is_jitted as numba_is_jitted

    return bool(numba_is_jitted(function))


def compiled(argument: str, function: Any) -> Any:
    """The function under ``numba.njit``, to be compiled on first use; a jitted one as it is."""
    if is_jitted(function):
        return function
    if not isinstance(function, FunctionType):
        raise DomainError(
            f"{argument} must be a function made by def or lambda for jit=True; got {function!r}. "
            "Wrap a method or an object in a function, with what it needs from its object in global or local names."
        )
    return _compiled(function)


def vectorized_function(argument: str, function: Any) -> Any:
    """The jitted function itself, compiled for C-contiguous points ``(n, d)`` and found to return ``(n,)`` numbers."""
    types = _numba().types
    result = _return_type(argument, function, (types.float64[:, ::1],))
    if not (isinstance(result, types.Array) and result.ndim == 1 and _is_real(result.dtype)):
        raise DomainError(
            f"{argument} must return one real number a point; got {_name_of(function)}, which returns "
            f"{_type_of(result)} for points of shape (n, d). Return a float64 array of shape (n,), or drop "
            "vectorized=True."
        )
    return function


@lru_cache(maxsize=_MAX_CACHED_LOOPS)
def value_loop(argument: str, function: Any) -> Loop:
    """A loop ``(x[d, n], row[d], out[n])`` around a jitted ``function(row) -> number``."""
    types = _numba().types
    hint = "The point is an array of length dimension (x[0] in one dimension): return one float64."
    _check_real_result(argument, function, types.float64[::1], "point", hint)

    def loop(x: Any, row: Any, out: Any) -> None:
        dimension, number = x.shape
        for k in range(number):
            for j in range(dimension):
                row[j] = x[j, k]
            out[k] = function(row)

    samples, vector = types.Array(types.float64, 2, "C", readonly=True), types.float64[::1]
    return _compile(argument, function, types.void(samples, vector, vector), loop)


@lru_cache(maxsize=_MAX_CACHED_LOOPS)
def filling_loop(argument: str, function: Any) -> Loop:
    """A loop ``(rng, row[d], x[d, n])`` around a jitted ``function(rng, row)``; what it does not fill is NaN."""
    numba = _numba()
    types = numba.types
    samples, vector, generator = types.float64[:, ::1], types.float64[::1], numba.typeof(np.random.default_rng(0))
    result = _return_type(argument, function, (generator, vector))
    if result != types.none:
        raise DomainError(
            f"{argument} must fill x and return nothing when it is jitted; got {_name_of(function)}, which returns "
            f"{_type_of(result)}. Write {argument}(rng, x) so that it assigns every x[j] of one draw."
        )

    def loop(rng: Any, row: Any, x: Any) -> None:
        dimension, number = x.shape
        for k in range(number):
            for j in range(dimension):
                row[j] = np.nan
            function(rng, row)
            for j in range(dimension):
                x[j, k] = row[j]

    return _compile(argument, function, types.void(generator, vector, samples), loop)


@lru_cache(maxsize=_MAX_CACHED_LOOPS)
def index_loop(argument: str, function: Any) -> Loop:
    """A loop ``(indices[n], out[n])`` around a jitted ``function(index) -> number``."""
    types = _numba().types
    _check_real_result(argument, function, types.int64, "index", "The index is an integer: return one float64.")

    def loop(indices: Any, out: Any) -> None:
        for k in range(len(indices)):
            out[k] = function(indices[k])

    return _compile(argument, function, types.void(types.int64[::1], types.float64[::1]), loop)


@lru_cache(maxsize=_MAX_CACHED_LOOPS)
def _compiled(function: Any) -> Any:
    return _numba().njit(error_model="numpy")(function)


def _compile(argument: str, function: Any, signature: Any, loop: Loop) -> Loop:
    try:
        compiled_loop: Loop = _numba().njit(signature, nogil=True, error_model="numpy")(loop)
    except Warning:
        raise
    except Exception as fault:
        raise _compilation_error(argument, function, fault) from fault
    return compiled_loop


def _return_type(argument: str, function: Any, arguments: tuple[Any, ...]) -> Any:
    """The type that the jitted function returns for arguments of these types; compiles it."""
    from numba.core.registry import cpu_target

    if getattr(function, "targetoptions", {}).get("parallel"):
        raise DomainError(
            f"{argument} must not be compiled with parallel=True; got {_name_of(function)}, which starts threads of "
            "its own. Drop parallel=True: n_jobs runs blocks of samples side by side."
        )
    try:
        call = _numba().typeof(function).get_call_type(cpu_target.typing_context, arguments, {})
        if call is None:
            raise TypeError(f"it is compiled for other arguments than {', '.join(map(str, arguments))}")
    except Warning:
        raise
    except Exception as fault:
        raise _compilation_error(argument, function, fault) from fault
    return call.return_type


def _compilation_error(argument: str, function: Any, fault: Exception) -> DomainError:
    """The error of numba in one sentence: which function, which line, the first reason."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(fault))
    lines = [line.strip(" -") for line in text.splitlines()]
    skipped = ("Failed in", "During:", "Resolution failure", "File ")
    reasons = [line for line in lines if line and not line.startswith(skipped)] or [type(fault).__name__]
    reason = reasons[0]
    if reason.endswith(":"):
        reason = reason + " " + next((line for line in reasons if line.startswith(">>>")), "")
    location = re.search(r'File "([^"]*)", line (\d+):', text) or re.search(r" at (\S+) \((\d+)\)", text)
    where = ""
    if location:
        file = getattr(getattr(getattr(function, "py_func", None), "__code__", None), "co_filename", "")
        same_file = PurePath(location[1]).name == PurePath(file).name
        source = linecache.getline(file, int(location[2])).strip() if same_file else ""
        where = f" at line {location[2]}" + (f" ({source})" if source else "")
    return DomainError(
        f"{argument} must be a function that numba can compile; got {_name_of(function)}, where numba stops{where}: "
        f"{_shortened(reason.strip(' .'))}. Use only what numba supports there, or give a plain function: a sampler "
        "(rng, n), a function of points (n, d) with vectorized=True."
    )


def _check_real_result(argument: str, function: Any, kind: Any, noun: str, hint: str) -> None:
    """Raise unless the jitted function returns one real number for one argument of this type."""
    result = _return_type(argument, function, (kind,))
    if not _is_real(result):
        raise DomainError(
            f"{argument} must return one real number; got {_name_of(function)}, which returns "
            f"{_type_of(result)} for one {noun}. {hint}"
        )


def _is_real(kind: Any) -> bool:
    types = _numba().types
    return isinstance(kind, (types.Float, types.Integer, types.Boolean))


def _name_of(function: Any) -> str:
    return repr(getattr(function, "__name__", type(function).__name__))


def _type_of(kind: Any) -> str:
    return "nothing" if kind == _numba().types.none else str(kind)


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else text[:297] + "..."


def _numba() -> Any:
    try:
        import numba
    except ImportError:
        raise BackendMissingError(
            "numba is needed to compile a function; it is not installed. Run: pip install 'numba>=0.60'"
        ) from None
    return numba
