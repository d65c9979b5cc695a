"""Every argument check of the public API: one sentence a fault, naming argument, value and remedy.

The rule for sums, of weights, pmfs, priors, beliefs and rows of channels alike. Numbers that were divided by their sum
miss 1 by what rounding leaves: n numbers of unit roundoff u by at most n u, whatever order they are added up in
(u = 2^-53 for doubles, 2^-24 for singles). A vector that misses 1 by more than 1e-9, rows of singles by more than 2e-6,
is an error. Less is a gap g = |sum - 1|, computed and rounded up by ``sum_gap``, and is one relative slip of the whole
vector: bounds hold for the vector as it was given and for that vector divided by its sum. So a probability moves by g
of itself, a log ratio by g, a hockey-stick divergence by a factor and a shift of epsilon of that order. Divergences of
vectors as given are those of measures, sum p log(p/q) - p + q, which move by g of themselves and g^2.

Weights of mixtures and of pmfs whose sum is 1 as a double, 1 and 1e-30 among them, are the law itself (``law_gap``).
"""

# bounds: proved - rounding of a sum in extended precision, and the half unit within which a sum rounds to 1

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DomainError, EstimateGivenError, ShapeError

__all__ = [
    "broadcastable", "choice", "count", "flag", "instance", "law_gap", "line", "memory", "probabilities", "real",
    "scalar", "shown", "sum_gap", "sum_tolerance", "vector",
]  # fmt: skip

FloatArray = NDArray[np.float64]
# bound: none - sums farther from 1 are refused; what is within is widened by its gap
_SUM_TOLERANCE = 1e-9
_SUM_TOLERANCE_SINGLE = 2e-6  # 2^-19: what dividing by a sum in single precision leaves, whatever sums it up
_SINGLE_TOLERANCE = 1e-5
_ADDED_EXACTLY = 2**16  # numbers
_SMALL = 2**28  # bytes that are asked for without looking at what is free


def real(
    name: str, value: Any, constraint: str = "a real number", valid: Callable[[FloatArray], Any] | None = None,
    *, remedy: str | None = None,
) -> FloatArray:  # fmt: skip
    """Any shape of float64, no NaN, and ``valid(array)`` true everywhere; ``constraint`` is its wording."""
    remedy = remedy or f"Give {name} a value that is {constraint}."
    if isinstance(value, (str, bytes)):
        raise DomainError(f"{name} must be {constraint}; got {value!r}. {remedy}")
    try:
        given = np.asarray(value)
        if given.dtype.kind not in "fiub":
            if given.dtype.kind != "O":
                raise TypeError
            if any(item is None or isinstance(item, (str, bytes)) for item in given.ravel()):
                raise TypeError
        array = given.astype(np.float64)
    except EstimateGivenError:
        raise DomainError(
            f"{name} must be {constraint}; got an Estimate. No bounds are carried through here: pass its value, lower "
            "or upper, whichever is meant."
        ) from None
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"{name} must be {constraint}; got {shown(value)}. {remedy}") from None
    good = ~np.isnan(array)
    if valid is not None:
        with np.errstate(invalid="ignore"):
            good &= np.asarray(valid(array), dtype=bool)
    if not good.all():
        raise DomainError(f"{name} must be {constraint}; got {_worst(array, good)}. {remedy}")
    return array


def scalar(
    name: str, value: Any, constraint: str = "a real number", valid: Callable[[FloatArray], Any] | None = None,
    *, remedy: str | None = None,
) -> float:  # fmt: skip
    """One real number."""
    array = real(name, value, constraint, valid, remedy=remedy)
    if array.ndim != 0:
        raise ShapeError(f"{name} must be a single number; got an array of shape {array.shape}. Pass one number.")
    return float(array)


def vector(
    name: str, value: Any, constraint: str = "finite numbers", valid: Callable[[FloatArray], Any] = np.isfinite,
    *, remedy: str | None = None,
) -> FloatArray:  # fmt: skip
    """A one-dimensional, non-empty float64 array, contiguous; a scalar counts as one element."""
    array = np.atleast_1d(real(name, value, constraint, valid, remedy=remedy))
    if array.ndim != 1:
        raise ShapeError(f"{name} must be one-dimensional; got shape {array.shape}. Pass a flat sequence.")
    if array.size == 0:
        raise ShapeError(f"{name} must have at least one entry; got an empty sequence. Pass one or more numbers.")
    return np.ascontiguousarray(array)


def sum_tolerance(kind: Any) -> float:
    """How far probabilities of this type may miss the sum 1: 1e-9, for float32 2e-6; less enters bounds."""
    return _SUM_TOLERANCE_SINGLE if np.dtype(kind) == np.float32 else _SUM_TOLERANCE


def sum_gap(weights: Any) -> float:
    """|sum - 1|, rounded up; 0 for a sum of exactly 1."""
    if len(weights) <= _ADDED_EXACTLY:
        gap = abs(math.fsum([*np.asarray(weights, dtype=np.float64).tolist(), -1.0]))
        return math.nextafter(gap, math.inf) if gap else 0.0
    gap = float(abs(np.sum(weights, dtype=np.longdouble) - 1))  # in blocks of 128, halves of halves of them
    return gap * (1 + 2.0**-50) + 256 * float(np.finfo(np.longdouble).eps)


def law_gap(weights: Any) -> float:
    """``sum_gap`` of a law on real numbers; 0 where the sum, rounded to a double, is 1."""
    gap = sum_gap(weights)
    return gap if gap > 2.0**-54 * (1 + 2.0**-50) else 0.0


def probabilities(name: str, value: Any) -> FloatArray:
    """A vector of numbers in [0, 1] whose sum is 1 to within 1e-9; never renormalised."""
    array = vector(
        name, value, "probabilities between 0 and 1", lambda x: (x >= 0) & (x <= 1 + _SUM_TOLERANCE),
        remedy="Pass one number for each, relative ones divided by their sum.",
    )  # fmt: skip
    total = float(np.sum(array, dtype=np.longdouble))
    if abs(total - 1.0) > _SUM_TOLERANCE:
        remedy = f"Divide {name} by the sum if the numbers are relative."
        if abs(total - 1.0) <= _SINGLE_TOLERANCE:  # what single precision leaves; to divide in it would not help
            remedy = f"Divide in doubles, as in w = np.asarray({name}, dtype=float); w / w.sum()."
        raise DomainError(
            f"{name} must sum to 1 within {_SUM_TOLERANCE:g}; got a sum of {total!r} over {array.size} entries. "
            f"{remedy}"
        )
    return array


def broadcastable(name: str, array: FloatArray, other: str, partner: FloatArray) -> None:
    """Two arrays whose shapes broadcast."""
    try:
        np.broadcast_shapes(array.shape, partner.shape)
    except ValueError:
        raise ShapeError(
            f"{name} must be of a shape that broadcasts with {other}; got {array.shape} and {partner.shape}. "
            "Add axes of length 1 for a grid."
        ) from None


def count(name: str, value: Any, minimum: int = 1, maximum: int | None = None) -> int:
    """An integer in a range."""
    bounds = f"an integer of at least {minimum}" + ("" if maximum is None else f" and at most {maximum}")
    try:
        number = operator.index(value)
    except TypeError:
        raise DomainError(f"{name} must be {bounds}; got {shown(value)}. Pass {bounds}.") from None
    if isinstance(value, bool) or number < minimum or (maximum is not None and number > maximum):
        raise DomainError(f"{name} must be {bounds}; got {value!r}. Pass {bounds}.")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False and nothing that merely converts to one."""
    if not isinstance(value, (bool, np.bool_)):
        raise DomainError(f"{name} must be True or False; got {shown(value)}. Pass a bool.")
    return bool(value)


def instance(name: str, value: Any, kind: type) -> None:
    """An object of one of fastpriv's own classes."""
    if not isinstance(value, kind):
        raise DomainError(f"{name} must be a {kind.__name__}; got {shown(value)}. Build a fastpriv.{kind.__name__}.")


def line(**laws: Any) -> None:
    """Mixtures on the line, for the functions that have no way in more dimensions."""
    for name, law in laws.items():
        if law.dimension != 1:
            raise ShapeError(
                f"{name} must be a mixture on the line; got one in {law.dimension} dimensions. "
                "Take a marginal(index), or an affine image in one dimension."
            )


def memory(name: str, needed: int, remedy: str) -> None:
    """A request for bytes that the machine has; checked because touching more would end the process."""
    if needed > _SMALL and needed > (free := _free_memory()):
        raise MemoryError(
            f"{name} must fit in memory; got a need of {needed / 1e9:.4g} GB with {free / 1e9:.4g} GB free. {remedy}"
        )


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        near = difflib.get_close_matches(value.lower(), options, n=1) if isinstance(value, str) else []
        remedy = f"Did you mean {near[0]}?" if near else "Choose one of these."
        raise DomainError(f"{name} must be one of {', '.join(options)}; got {shown(value)}. {remedy}")
    return str(value)


def _free_memory() -> float:
    """Bytes that can be taken without swapping, within the limit of the container; infinite if nobody says."""
    free = float("inf")
    try:
        with open("/proc/meminfo") as lines:
            said = dict(line.split(":", 1) for line in lines)
        free = 1024.0 * int(said["MemAvailable"].split()[0])
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.stat") as lines:
            used = dict(line.split() for line in lines)
            free = min(free, float(limit.read()) - int(used["anon"]))
    except (OSError, KeyError, ValueError):  # not Linux, or no limit of its own
        pass
    if free == float("inf") and hasattr(os, "sysconf"):
        free = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    return free


def _worst(array: FloatArray, good: NDArray[np.bool_]) -> str:
    bad = np.argwhere(~np.atleast_1d(good))
    first = tuple(int(i) for i in bad[0])
    if array.ndim == 0:
        return f"{float(array)!r}"
    index = first[0] if array.ndim == 1 else first
    return f"{float(array[first])!r} at index {index} ({len(bad)} of {array.size} entries)"


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
