"""Every check of an argument of the public API. An error is one sentence that names argument, value and remedy.

Sums of probabilities. One rule holds for mixture weights, pmfs, priors, beliefs and rows of channels. Numbers that were
divided by their sum miss the sum 1 by rounding errors: n numbers of unit roundoff u by at most n u, in whatever order
they are added (u = 2^-53 for float64, 2^-24 for float32). A sum that misses 1 by more than 1e-9, or by more than 2e-6
for rows of float32, is an error. A smaller miss is the gap g = |sum - 1|, computed and rounded up by ``sum_gap``. It is
treated as a relative error of the whole vector: bounds hold for the vector as passed and for the vector divided by its
sum. A probability then moves by the factor 1 + g, a log ratio by g, and a hockey-stick divergence by a factor and a
shift of epsilon of that order. Divergences of vectors as passed are those of measures, sum p log(p/q) - p + q, which
move by a factor of that order and by g^2. Weights of mixtures and pmfs that are passed as float32 and miss 1 by more
than 1e-9 and at most 2e-6 are divided by their sum in doubles (``divided_float32``).

The weights of mixtures and pmfs whose sum rounds to 1, such as 1 and 1e-30, have no gap (``rounded_sum_gap``).
"""

# bounds: proved - rounding of a sum in extended precision, and the half unit within which a sum rounds to 1

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import remedies
from .errors import DomainError, EstimateGivenError, ShapeError
from .numerics import FloatArray, next_above
from .public_names import address
from .remedies import shortened, shown

__all__ = [
    "MOST_ENTRIES", "SAFE_SUM_TOLERANCE", "array", "broadcastable", "choice", "copied", "count", "divided_float32",
    "flag", "flat", "grid", "instance", "integers", "memory", "path", "probabilities", "real", "rounded_sum_gap",
    "scalar", "sequence", "short_vector", "shortened", "shown", "sum_gap", "sum_tolerance", "text", "univariate",
    "vector", "whole_file", "with_argument_name",
]

# bound: none - sums farther from 1 are refused; smaller misses widen the bounds by their gap
_SUM_TOLERANCE = 1e-9  # about 9e6 unit roundoffs: more than rounding explains in a vector of 1e6 numbers
# bound: none - half of what is accepted; sums beyond it are formed again in extended precision
SAFE_SUM_TOLERANCE = 0.5e-9  # within it a sum that was rounded in any order is accepted
_SUM_TOLERANCE_SINGLE = 2e-6  # 2^-19: what division by a sum in float32 leaves, whatever adds the numbers up
_SINGLE_TOLERANCE = 1e-5  # a sum this close to 1 was probably normalised in float32, and the remedy says so
_EXACT_SUM_SIZE = 2**12  # numbers that math.fsum adds exactly in a fraction of a millisecond
MOST_ENTRIES = 2**31  # of one axis: draws, rounds, people, of which there is an array
_LARGEST_CONSECUTIVE_INTEGER = 2**53  # doubles beyond it are more than 1 apart
_MASKED_ENTRY = "a masked entry"  # text of errors
_SHORT = 64  # entries of a vector up to which Python's own loops are faster than those of NumPy
_PLAIN_NUMBERS = {float, int, np.float64}  # types that ``float`` converts exactly, or refuses
_CPU_DEVICES = (1, 3, 11, 13)  # DLPack's numbers of memory that the CPU reads: its own, and pinned or managed by others
_COPY_BLOCK = 2**22  # numbers copied between two checks for Ctrl-C: some milliseconds
_LONGEST_PATH = 4096  # characters of the name of a file: no system opens longer ones
_UNCHECKED_BYTES = 2**28  # requests up to this size are made without a look at the free memory
_BYTES_PER_INPUT = 10  # a double and the booleans of its check
_BYTES_PER_ANSWER = 64  # a double, the three of its Estimate, and as many intermediate ones


def array(name: str, value: Any) -> NDArray[Any]:
    """Convert an argument to a plain array. Every array argument of the package passes through here.

    The function refuses what NumPy would silently turn into numbers: masked entries, entries that pandas or Arrow call
    missing, and the part of a memory-mapped file that was cut off. The caller checks the type of the entries.
    """
    if isinstance(value, (float, int)):
        return np.asarray(value)
    if isinstance(value, (list, tuple)) and (masked := _first_masked_index(value)) is not None:
        raise _missing_value_error(name, _MASKED_ENTRY, f" at index {masked[0] if len(masked) == 1 else masked}")
    try:
        foreign = hasattr(value, "__dlpack_device__") and not isinstance(value, np.ndarray)
        converted = _of_another_library(name, value) if foreign else np.asanyarray(value)
    except DomainError:
        raise
    except ValueError:
        raise ShapeError(
            f"{name} must be an array with rows of one length; got {shown(value)}. Make them alike."
        ) from None
    kind, absent = _missing_entries(value, converted)
    if kind:
        raise _missing_value_error(name, kind, remedies.first_false(~absent)[1])
    if isinstance(converted, np.ndarray) and converted.base is not None:
        whole_file(name, converted)
    return np.asarray(converted)


def _of_another_library(name: str, value: Any) -> NDArray[Any]:
    """An array of PyTorch, JAX or another library of the array API as one of NumPy, shared where both can read it."""
    try:
        device = int(value.__dlpack_device__()[0])
    except Exception:  # what cannot be exported, such as entries that are missing, is read or refused below
        device = _CPU_DEVICES[0]
    if device not in _CPU_DEVICES:
        raise DomainError(
            f"{name} must be in the memory of the CPU; got an array on a device of DLPack type {device}. Move it there "
            "first: x.cpu() in PyTorch, jax.device_get(x) in JAX."
        )
    try:
        return np.asanyarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
    except Exception as fault:
        raise DomainError(
            f"{name} must be an array that NumPy can read; got {shown(value)}: {shown(str(fault))}. In PyTorch pass "
            "x.detach().double()."
        ) from None


def integers(
    name: str, value: Any, minimum: int = 0, maximum: int = 2**63 - 1, *, constraint: str | None = None,
    remedy: str | None = None,
) -> NDArray[Any]:
    """An array of integers in a range, of any shape: int64, or Python integers where ``maximum`` is larger.

    Floats are accepted if they are integers of at most 2^53 in size, beyond which doubles are more than 1 apart.
    Booleans are refused.
    """
    constraint = constraint or f"integers from {shown(minimum)} to {shown(maximum)}"
    values = array(name, value)
    kind, converted = values.dtype.kind, values
    if kind not in "iufO":
        raise DomainError(f"{name} must be {constraint}; got {shown(value)}. {remedy or 'Pass whole numbers.'}")
    if kind in "iu" and values.size and minimum <= int(values.min()) and int(values.max()) <= min(maximum, 2**63 - 1):
        return np.asarray(values.astype(np.int64 if maximum < 2**63 else object))
    if kind == "O":
        cells: Any = np.empty(values.size, dtype=object)
        cells[:] = [_integer_or_none(cell) for cell in values.ravel().tolist()]
        whole = np.array([cell is not None for cell in cells], dtype=bool).reshape(values.shape)
        converted = cells.reshape(values.shape)
    elif kind == "f":
        with np.errstate(invalid="ignore"):
            whole = np.asarray((values == np.floor(values)) & (np.abs(values) <= _LARGEST_CONSECUTIVE_INTEGER))
            converted = values.astype(np.int64)
    else:
        whole = np.ones(values.shape, dtype=bool)
    good = whole.copy()
    good[whole] = (converted[whole] >= minimum) & (converted[whole] <= maximum)
    if not good.all():
        index, where = remedies.first_false(good)
        cell = values[index]
        cell = cell.item() if isinstance(cell, np.generic) else cell
        remedy = remedy or (f"Count from {minimum}." if whole[index] else "Pass whole numbers, rounded if need be.")
        raise DomainError(f"{name} must be {constraint}; got {shown(cell)}{where}. {remedy}")
    if maximum < 2**63:
        return np.asarray(converted.astype(np.int64))
    return np.asarray(converted.astype(object))


def whole_file(name: str, values: NDArray[Any]) -> None:
    """Refuse an array that is mapped from a file which has become shorter, since reading it would end the process.

    The file may still be cut between this check and the reading; ``_files`` reads without a map where it can.
    """
    root = map_of(values)
    if root is None:
        return
    try:
        size = root._mmap.size()
    except (AttributeError, ValueError, OSError):  # a map of no file, or one that is closed
        return
    first, start = (x.__array_interface__["data"][0] for x in (values, root))
    last = sum((n - 1) * max(step, 0) for n, step in zip(values.shape, values.strides, strict=True)) + values.itemsize
    needed = root.offset + first - start + (last if values.size else 0)
    if size < needed:
        raise DomainError(
            f"{name} must be a file that stays as it is while it is read; got {str(root.filename)!r}, which was cut to "
            f"{size} bytes of {needed} after it was mapped. Write it anew, and map it again."
        )


def map_of(values: Any) -> Any:
    """The ``numpy.memmap`` that an array is or is a view of, and None for other arrays."""
    root = values
    while isinstance(root.base, np.ndarray):
        root = root.base
    return root if isinstance(root, np.memmap) else None


def real(
    name: str, value: Any, constraint: str = "a real number", valid: Callable[[FloatArray], Any] | None = None,
    *, remedy: str | None = None, answer: bool = True,
) -> FloatArray:
    """An array of float64 of any shape, without NaN, for which ``valid`` is true everywhere.

    ``constraint`` states the condition in words. ``answer`` says that every entry gets an answer, which needs memory.
    """
    if type(value) is float and math.isfinite(value):
        single: Any = np.float64(value)
        if valid is None or valid(single):
            return np.array(single)
    if isinstance(value, (str, bytes)):
        raise DomainError(f"{name} must be {constraint}; got {shown(value)}. {remedies.for_wrong_type(value)}")
    try:
        values = array(name, value)
        if values.dtype.kind not in "fiub" and not (values.dtype.kind == "O" and _all_numbers(values)):
            raise TypeError
        grid(name, values.shape, _BYTES_PER_ANSWER if answer else _BYTES_PER_INPUT)
        converted = copied(values, np.float64)
    except DomainError:  # of entries that are missing
        raise
    except EstimateGivenError:
        raise DomainError(
            f"{name} must be {constraint}; got an Estimate. No bounds are carried through here: pass its value, lower "
            "or upper, whichever is meant."
        ) from None
    except (TypeError, ValueError, OverflowError):
        remedy = remedies.for_wrong_type(value, remedy)
        raise DomainError(f"{name} must be {constraint}; got {shown(value)}. {remedy}") from None
    good = ~np.isnan(converted)
    if valid is not None:
        with np.errstate(invalid="ignore"):
            good &= np.asarray(valid(converted), dtype=bool)
    if not good.all():
        index, where = remedies.first_false(good)
        worst = float(converted[index])
        remedy = remedy or remedies.for_out_of_range(constraint, worst)
        raise DomainError(f"{name} must be {constraint}; got {worst!r}{where}. {remedy}")
    return converted


def short_vector(value: Any) -> list[float] | None:
    """The numbers of a short vector of the plainest kinds as floats: a list or tuple of Python's, an array of doubles.

    None for all else, which the other functions take apart, and for vectors with NaN or infinities. Lists of a few
    numbers are checked many times as fast as arrays.
    """
    kind = type(value)
    if kind is np.ndarray:
        plain = value.dtype == np.float64 and value.ndim == 1 and value.size <= _SHORT
        numbers: Any = value.tolist() if plain and (value.base is None or map_of(value) is None) else None
    elif kind in (list, tuple) and len(value) <= _SHORT and not {*map(type, value)} - _PLAIN_NUMBERS:
        numbers = value
    else:
        return None
    if not numbers:
        return None
    try:
        return numbers if math.isfinite(math.fsum(numbers)) else None
    except OverflowError:
        return None


def copied(values: NDArray[Any], kind: Any, order: Literal["C", "K"] = "K") -> NDArray[Any]:
    """A copy with this dtype, made block by block if the array is large, so that Ctrl-C takes effect between blocks."""
    if values.ndim == 0 or values.size <= _COPY_BLOCK:
        return np.array(values, dtype=kind, order=order, subok=False)
    out = np.empty_like(values, dtype=kind, order=order, subok=False)
    if len(values) == 1:
        out[0] = copied(values[0], kind)
        return out
    step = max(1, _COPY_BLOCK * len(values) // values.size)
    for start in range(0, len(values), step):
        out[start : start + step] = values[start : start + step]
    return out


def scalar(
    name: str, value: Any, constraint: str = "a real number", valid: Callable[[FloatArray], Any] | None = None,
    *, remedy: str | None = None,
) -> float:
    """One real number."""
    number = real(name, value, constraint, valid, remedy=remedy)
    if number.ndim != 0:
        raise ShapeError(f"{name} must be a single number; got an array of shape {number.shape}. Pass one number.")
    return float(number)


def open_probability(name: str, value: Any) -> float:
    """A number strictly between 0 and 1."""
    return scalar(name, value, "between 0 and 1, exclusive", lambda x: (x > 0) & (x < 1))


def positive(name: str, value: Any) -> float:
    """A finite number above 0."""
    return scalar(name, value, "positive and finite", lambda x: (x > 0) & (x < np.inf))


def vector(
    name: str, value: Any, constraint: str = "finite numbers", valid: Callable[[FloatArray], Any] = np.isfinite,
    *, remedy: str | None = None,
) -> FloatArray:
    """A contiguous, one-dimensional, non-empty array of float64; a scalar becomes an array of one element."""
    values = np.atleast_1d(real(name, value, constraint, valid, remedy=remedy, answer=False))
    if values.ndim != 1:
        raise ShapeError(
            f"{name} must be one-dimensional; got shape {values.shape}. Pass a flat sequence, or one column."
        )
    if values.size == 0:
        raise ShapeError(f"{name} must have at least one entry; got an empty sequence. Pass one or more numbers.")
    return np.ascontiguousarray(values)


def flat(
    name: str, value: Any, constraint: str = "finite numbers", valid: Callable[[FloatArray], Any] = np.isfinite
) -> FloatArray:
    """One number, or a vector."""
    numbers = real(name, value, constraint, valid)
    return numbers if numbers.ndim == 0 else vector(name, numbers, constraint, valid)


def sum_tolerance(kind: Any) -> float:
    """How far a sum of probabilities of this dtype may be from 1: 1e-9, or 2e-6 for float32."""
    return _SUM_TOLERANCE_SINGLE if np.dtype(kind) == np.float32 else _SUM_TOLERANCE


def sum_gap(weights: Any) -> float:
    """|sum - 1|, rounded up; 0 for a sum of exactly 1."""
    if len(weights) <= _EXACT_SUM_SIZE:
        gap = abs(math.fsum([*np.asarray(weights, dtype=np.float64).tolist(), -1.0]))
        return next_above(gap) if gap else 0.0
    gap = float(abs(np.sum(weights, dtype=np.longdouble) - 1))  # in blocks of 128, halves of halves of them
    return gap * (1 + 2.0**-50) + 256 * float(np.finfo(np.longdouble).eps)


def rounded_sum_gap(weights: Any) -> float:
    """``sum_gap``, but 0 if the sum rounds to 1 in double precision."""
    gap = sum_gap(weights)
    return gap if gap > 2.0**-54 * (1 + 2.0**-50) else 0.0


def divided_float32(value: Any, numbers: FloatArray) -> FloatArray:
    """Rows of probabilities that came as float32, whose sums miss 1 by its rounding, divided by their sum in doubles.

    ``value`` is what was passed and ``numbers`` the same as doubles; other types are returned as they are.
    """
    if getattr(value, "dtype", None) != np.float32:
        return numbers
    with np.errstate(invalid="ignore", over="ignore"):
        total = np.sum(numbers, axis=-1, keepdims=True, dtype=np.longdouble)
        miss = np.abs(total - 1)
        rounded = (miss > _SUM_TOLERANCE) & (miss <= _SUM_TOLERANCE_SINGLE)
        return np.where(rounded, (numbers / np.where(rounded, total, 1)).astype(np.float64), numbers)


def probabilities(name: str, value: Any) -> FloatArray:
    """A vector of numbers in [0, 1] whose sum is 1 to within 1e-9; float32 may miss by 2e-6 and is divided by it."""
    values = vector(
        name, value, "probabilities between 0 and 1", lambda x: (x >= 0) & (x <= 1 + _SUM_TOLERANCE),
        remedy="Pass one number for each, relative ones divided by their sum.",
    )
    values = divided_float32(value, values)
    total = float(np.sum(values, dtype=np.longdouble))
    if abs(total - 1.0) > _SUM_TOLERANCE:
        remedy = f"Divide {name} by the sum if the numbers are relative."
        if abs(total - 1.0) <= _SINGLE_TOLERANCE:  # rounding of single precision, in which dividing would not help
            remedy = f"Divide in doubles, as in w = np.asarray({name}, dtype=float); w / w.sum()."
        raise DomainError(
            f"{name} must sum to 1 within {_SUM_TOLERANCE:g}; got a sum of {total!r} over {values.size} entries. "
            f"{remedy}"
        )
    return values


def broadcastable(name: str, array: NDArray[Any], other: str, partner: NDArray[Any]) -> None:
    """Check that two arrays broadcast, and that the broadcast array and its answers fit in memory."""
    try:
        shape = _broadcast_shape(array.shape, partner.shape)
    except ValueError:
        raise ShapeError(
            f"{name} must be of a shape that broadcasts with {other}; got {array.shape} and {partner.shape}. "
            "Add axes of length 1 for a grid."
        ) from None
    grid(f"{name} with {other}", shape)


def grid(name: str, shape: tuple[int, ...], each: int = _BYTES_PER_ANSWER) -> None:
    """Check that an array of this shape, with ``each`` bytes an entry, fits in memory."""
    memory(f"{name} of shape {shape}", math.prod(shape) * each, "Ask for fewer entries at a time.")


def count(name: str, value: Any, minimum: int = 1, maximum: int | None = None, *, remedy: str | None = None) -> int:
    """An integer in a range."""
    bounds = f"an integer of at least {minimum}" + ("" if maximum is None else f" and at most {shown(maximum)}")
    if isinstance(value, np.ndarray):
        value = array(name, value)
    try:
        number = operator.index(value)
    except TypeError:
        raise DomainError(f"{name} must be {bounds}; got {shown(value)}. {remedies.for_non_integer(value)}") from None
    if isinstance(value, (bool, np.bool_)):
        raise DomainError(f"{name} must be {bounds}; got {value!r}. Write the number itself: {number}.")
    if number < minimum:
        sign = "Check its sign." if number < 0 <= minimum else f"Pass {minimum} for the smallest case."
        raise DomainError(f"{name} must be {bounds}; got {shown(number)}. {remedy or sign}")
    if maximum is not None and number > maximum:
        largest = f"Pass {shown(maximum)} for the largest case."
        raise DomainError(f"{name} must be {bounds}; got {shown(number)}. {remedy or largest}")
    return number


def flag(name: str, value: Any) -> bool:
    """True or False; other values are refused, also those that Python would convert."""
    if not isinstance(value, (bool, np.bool_)):
        remedy = "Leave it out for the default."
        if isinstance(value, (int, float)) and value in (0, 1):
            remedy = f"Write {bool(value)}."
        elif isinstance(value, str):
            remedy = "Write True or False without quotes."
        raise DomainError(f"{name} must be True or False; got {shown(value)}. {remedy}")
    return bool(value)


def sequence(name: str, value: Any, of: str) -> tuple[Any, ...]:
    """The entries of an iterable as a tuple; text is refused."""
    if isinstance(value, np.ndarray):
        value = array(name, value)
    if not isinstance(value, (str, bytes)):
        try:
            return (*value,)  # as a list first, which has room for all at once or ends at once
        except TypeError:
            pass
    raise DomainError(f"{name} must be a sequence of {of}; got {shown(value)}. Put a single one in a list.")


def with_argument_name(inner: str, outer: str, make: Callable[[], Any]) -> Any:
    """Call ``make``; an error about its argument ``inner`` names the caller's argument ``outer`` instead."""
    try:
        return make()
    except (DomainError, ShapeError) as fault:
        raise type(fault)(str(fault).replace(inner, outer, 1)) from None


def path(name: str, value: Any) -> Path:
    """A name of a file or a directory."""
    try:
        text = os.fspath(value)
        if not isinstance(text, str):
            text = os.fsdecode(text)
        if len(text) > _LONGEST_PATH:
            raise DomainError(
                f"{name} must be a name of at most {_LONGEST_PATH} characters; got {len(text)}. Take a shorter one."
            )
        if text and "\0" not in text:
            return Path(text)
    except TypeError:
        pass
    raise DomainError(
        f"{name} must be the name of a file or a directory; got {shown(value)}. Pass text or a pathlib.Path."
    )


def existing_file(name: str, file: Path, kind: str = "file") -> None:
    """Raise the error of the system for a path at which there is no file."""
    if not file.is_file():
        fault = IsADirectoryError if file.is_dir() else FileNotFoundError
        raise fault(f"{name} must be an existing {kind}; got {str(file)!r}. Check the path.")


def instance(name: str, value: Any, kind: Any, description: str = "", remedy: str = "") -> None:
    """An object of one of fastpriv's own classes, or of several classes that the description names."""
    if not isinstance(value, kind):
        description, remedy = description or f"a {kind.__name__}", remedy or f"Build a {address(kind)}."
        raise DomainError(f"{name} must be {description}; got {shown(value)}. {remedy}")


def univariate(**distributions: Any) -> None:
    """Check that distributions are univariate, for functions that have no method in more dimensions."""
    for name, distribution in distributions.items():
        if distribution.dimension != 1:
            raise ShapeError(
                f"{name} must be a mixture in one dimension; got one in {distribution.dimension} dimensions. "
                "Take a marginal(index), or an affine image in one dimension."
            )


def memory(name: str, needed: int, remedy: str) -> None:
    """Check that the machine has this many bytes free; the system may kill a process that uses more."""
    if needed > _UNCHECKED_BYTES and needed > (free := _free_memory()):
        raise MemoryError(
            f"{name} must fit in memory; got a need of {_gigabytes(needed)} GB with {free / 1e9:.4g} GB free. {remedy}"
        )


def text(name: str, value: Any) -> str:
    """Text of any kind."""
    if not isinstance(value, str):
        raise DomainError(f"{name} must be text; got {shown(value)}. Put it in quotes.")
    return value


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in options:
        import difflib

        near = difflib.get_close_matches(value.lower(), options, n=1) if isinstance(value, str) else []
        remedy = f"Did you mean {near[0]}?" if near else "Choose one of these."
        raise DomainError(f"{name} must be one of {', '.join(options)}; got {shown(value)}. {remedy}")
    return str(value)


def _free_memory() -> float:
    """Bytes that can be allocated without swapping and within the container's limit; infinite if unknown."""
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
    try:  # the rest of the limit of ulimit -v
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            with open("/proc/self/statm") as lines:
                free = min(free, most - float(lines.read().split()[0]) * resource.getpagesize())
    except (ImportError, OSError, ValueError):  # not Unix, or no limit that can be read
        pass
    return free


def _missing_value_error(name: str, kind: str, where: str) -> DomainError:
    masked = kind == _MASKED_ENTRY
    remedy = " with .filled(value), or leave them out with .compressed()" if masked else ", or leave them out"
    return DomainError(f"{name} must have no missing values; got {kind}{where}. Fill them in{remedy}.")


def _missing_entries(value: Any, converted: Any) -> tuple[str, NDArray[np.bool_]]:
    """How entries are missing, and which ones; an empty text if none is."""
    if _is_masked(converted):
        mask: Any = np.ma.getmaskarray(converted)
        if mask.dtype.names:
            mask = np.ascontiguousarray(mask).view(bool).reshape(*mask.shape, -1).any(axis=-1)
        return _MASKED_ENTRY if mask.any() else "", np.asarray(mask)
    if not isinstance(value, (list, tuple, np.ndarray)):
        absent = _missing_mask(value)
        if absent is not None and absent.any():
            return "a missing one", absent
    if converted.dtype.kind == "O" and converted.ndim:
        absent = np.array([_is_missing(cell) for cell in converted.flat], dtype=bool).reshape(converted.shape)
        if absent.any():
            cell = converted.ravel()[int(np.argmax(absent))]
            return _MASKED_ENTRY if _is_masked(cell) else f"{cell!r}", absent
    return "", np.zeros(0, dtype=bool)


def _is_masked(value: Any) -> bool:
    """Whether an array is a masked array; there can be none before ``numpy.ma`` is loaded."""
    masks = sys.modules.get("numpy.ma")
    return masks is not None and isinstance(value, masks.MaskedArray)


def _first_masked_index(value: Any) -> tuple[int, ...] | None:
    """Index of the first masked entry in nested lists, and None if there is none."""
    if _is_masked(value):
        mask = np.ma.getmaskarray(value)
        if not mask.any():
            return None
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
    if not isinstance(value, (list, tuple)) or not any(
        issubclass(kind, (list, tuple, np.ndarray)) for kind in set(map(type, value))
    ):
        return None
    for position, item in enumerate(value):
        inner = _first_masked_index(item)
        if inner is not None:
            return (position, *inner)
    return None


def _missing_mask(value: Any) -> NDArray[np.bool_] | None:
    """Mask of the entries that pandas, polars or Arrow call missing; None for objects of other libraries."""
    if callable(isna := getattr(value, "isna", None)):  # pandas: series, indices, extension arrays, data frames
        return np.atleast_1d(np.asarray(isna(), dtype=bool))
    nulls = getattr(value, "null_count", 0)  # Arrow: a number; polars: a method
    if callable(nulls):
        nulls = nulls()
    if isinstance(nulls, int) and nulls > 0:
        return np.atleast_1d(np.asarray(value.is_null(), dtype=bool))
    return None


def _is_missing(cell: Any) -> bool:
    """Whether an object of an array is None, a missing value of pandas, or masked."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (_is_masked(cell) and bool(np.ma.getmaskarray(cell).any()))
    )


def _all_numbers(values: NDArray[Any]) -> bool:
    """Whether all objects of an array are numbers, not text or dates that Python would convert."""
    for kind in set(map(type, values.ravel().tolist())):
        plain = issubclass(kind, (np.integer, np.floating, np.bool_)) and not issubclass(kind, np.timedelta64)
        if issubclass(kind, np.generic) and not plain:
            return False
        if issubclass(kind, (str, bytes, bytearray)) or not (hasattr(kind, "__float__") or hasattr(kind, "__index__")):
            return False
    return True


def _integer_or_none(cell: Any) -> int | None:
    """The value of a cell as an integer, and None if it is not one."""
    if isinstance(cell, (bool, np.bool_)):
        return None
    if isinstance(cell, (float, np.floating)):
        size: Any = np.abs(cell)
        return int(cell) if size <= _LARGEST_CONSECUTIVE_INTEGER and cell == np.floor(cell) else None
    try:
        return operator.index(cell)
    except TypeError:
        return None


def _gigabytes(needed: int) -> str:
    """Gigabytes as text, also for a number of bytes that exceeds the range of doubles."""
    return f"{needed / 1e9:.4g}" if needed < 10**300 else f"at least 1e{int((needed.bit_length() - 1) * 0.30102) - 9}"


def _broadcast_shape(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Same as ``numpy.broadcast_shapes``, which refuses shapes of more entries than an index can count."""
    if first == second:
        return first
    width = max(len(first), len(second))
    pairs = zip((1,) * (width - len(first)) + first, (1,) * (width - len(second)) + second, strict=True)
    shape = []
    for a, b in pairs:
        if a != b and 1 not in (a, b):
            raise ValueError
        shape.append(b if a == 1 else a)
    return tuple(shape)
