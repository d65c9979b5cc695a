"""Value objects, the base of distributions, channels and stacks: read-only arrays and numbers, compared by value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .errors import DomainError
from .numerics import IndexArray

__all__ = ["Index", "Stack", "ValueObject", "distinct_rows", "is_read_only"]

Index = tuple[int, ...]

_BLOCK_ENTRIES = 2**20  # entries hashed or compared at a time: 8 MiB of doubles


class ValueObject:
    """Frozen after construction; equal, hashable and picklable by the arrays and numbers that ``_fields`` names.

    ``_fields`` are the arguments of the constructor, in its order, unless the class defines ``__reduce__``.
    """

    __slots__: tuple[str, ...] = ("_hash",)  # computed once: caches ask for it at every call
    _fields: ClassVar[tuple[str, ...]] = ()
    _hash: int

    def _set(self, **fields: Any) -> None:
        """Set attributes in the constructor; arrays are kept without a copy and become read-only."""
        for name, field in fields.items():
            if isinstance(field, np.ndarray):
                field.setflags(write=False)
            object.__setattr__(self, name, field)

    def _arrays(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of setting {name}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; build a new one instead of deleting {name}.")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            pass
        import hashlib  # slow to load, and rarely needed

        state = hashlib.blake2b(digest_size=8)
        for field in self._arrays():
            if isinstance(field, np.ndarray):
                state.update(repr(field.shape).encode())
                flat = field.reshape(-1)
                for start in range(0, flat.size, _BLOCK_ENTRIES):
                    state.update((flat[start : start + _BLOCK_ENTRIES] + 0.0).tobytes())  # -0.0 equals 0.0
            elif field is not None:
                state.update(repr(hash(field)).encode())
        object.__setattr__(self, "_hash", hash((type(self).__name__, state.digest())))
        return self._hash

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __reduce__(self) -> Any:
        return type(self), tuple(
            field.copy() if isinstance(field, np.ndarray) else field for field in self._arrays()
        )


class Stack(ValueObject):
    """Objects with leading axes ``shape``; ``errors`` has the texts of the invalid ones by their position."""

    __slots__ = ()

    shape: Index
    errors: Mapping[Index, str]

    @property
    def size(self) -> int:
        """The number of objects, valid or not."""
        return math.prod(self.shape)

    @property
    def _error_texts(self) -> tuple[Any, ...]:
        return tuple(sorted(self.errors.items()))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a {type(self).__name__} without leading axes has no length")
        return self.shape[0]

    def _selected(self, index: Any) -> tuple[IndexArray, dict[Index, str]]:
        """Numbers in C order of what an index takes, and the texts of the invalid ones by their new position.

        A single invalid one raises ``DomainError`` with its text.
        """
        numbers = np.asarray(np.arange(self.size).reshape(self.shape)[index])
        texts = {int(np.ravel_multi_index(at, self.shape)) if at else 0: text for at, text in self.errors.items()}
        if numbers.ndim == 0 and int(numbers) in texts:
            raise DomainError(texts[int(numbers)])
        return numbers, {at: texts[int(number)] for at, number in np.ndenumerate(numbers) if int(number) in texts}


def is_read_only(array: NDArray[Any]) -> bool:
    """Whether nobody can write to this array: it and all arrays that it is a view of are read-only."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return True


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.ndim == 0 or a.size == 0:
        return bool(np.array_equal(a, b))
    step = max(1, _BLOCK_ENTRIES * len(a) // a.size)
    return all(np.array_equal(a[i : i + step], b[i : i + step]) for i in range(0, len(a), step))


def distinct_rows(rows: NDArray[Any]) -> tuple[NDArray[Any], IndexArray]:
    """Different rows in lexicographic order, and the index of each row among them.

    ``numpy.unique`` with an axis turns a Ctrl-C that arrives while it compares into a TypeError.
    """
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    first = np.ones(len(rows), dtype=np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    index = np.empty(len(rows), dtype=np.intp)
    index[order] = np.cumsum(first) - 1
    return ordered[first], index
