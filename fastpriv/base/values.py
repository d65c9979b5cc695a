"""Value objects, the base of distributions, channels and stacks: read-only arrays and numbers, compared by value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .errors import DomainError, ShapeError
from .numerics import BoolArray, IndexArray

__all__ = [
    "Index", "Stack", "ValueObject", "broadcast_positions", "distinct_rows", "equal", "errors_at", "is_read_only",
    "with_position",
]

Index = tuple[int, ...]

_BLOCK_ENTRIES = 2**20  # entries hashed or compared at a time: 8 MiB of doubles
_FEW_ENTRIES = 4096  # whose bytes are compared first


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
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return all(equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

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
        return type(self), tuple(field.copy() if isinstance(field, np.ndarray) else field for field in self._arrays())


class Stack(ValueObject):
    """Objects with leading axes ``shape``; ``errors`` has the texts of the invalid ones by their position.

    ``records`` says whether an invalid object is noted there instead of raising. ``_columns`` are the arrays that begin
    with the leading axes.
    """

    __slots__ = ()
    _columns: ClassVar[tuple[str, ...]] = ()

    shape: Index
    errors: Mapping[Index, str]
    records: bool

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Self:
        """A stack of fields that were checked before."""
        stack = cls.__new__(cls)
        stack._set(**fields)
        stack._set(errors=MappingProxyType(dict(stack.errors)))
        return stack

    @property
    def size(self) -> int:
        """The number of objects, valid or not."""
        return math.prod(self.shape)

    @property
    def invalid(self) -> BoolArray:
        """Which objects have errors, of shape ``shape``."""
        mask = np.zeros(self.shape, dtype=bool)
        if self.errors:
            mask[tuple(np.array(list(self.errors), dtype=np.intp).T)] = True
        return mask

    @property
    def _error_texts(self) -> tuple[Any, ...]:
        return tuple(sorted(self.errors.items()))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"a {type(self).__name__} without leading axes has no length")
        return self.shape[0]

    def _item(self, index: Index) -> Any:
        """The object at a position, checked."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> Any:
        """The object at one position, or a smaller stack: as indexing an array of shape ``shape``.

        The position of an invalid object raises ``DomainError`` with its text.
        """
        numbers = np.asarray(np.arange(self.size).reshape(self.shape)[index])
        positions = tuple(np.unravel_index(numbers, self.shape)) if self.shape else ()
        if numbers.ndim == 0:
            at = tuple(int(i) for i in positions)
            if at in self.errors:
                raise DomainError(self.errors[at])
            return self._item(at)
        fields = self._public_fields()
        for name in self._columns:
            if (column := fields[name]) is not None:  # without leading axes there is one object, taken again and again
                again = np.broadcast_to(column, numbers.shape + column.shape)
                fields[name] = column[positions] if self.shape else again
        return self._of(fields | {"shape": numbers.shape, "errors": errors_at(self, numbers)})

    def _public_fields(self) -> dict[str, Any]:
        names: tuple[str, ...] = type(self).__slots__
        return {name: getattr(self, name) for name in names if not name.startswith("_")}

    def _note_errors(self, doubtful: BoolArray, item: str, sound: Mapping[str, Any]) -> None:
        """Raise the error of the first invalid object, or note those of all, whose columns become ``sound``.

        ``doubtful`` has the objects that may be invalid, and ``item`` is what an object is called.
        """
        result: dict[Index, str] = {}
        for row in np.argwhere(doubtful):
            index = tuple(int(i) for i in row)
            try:
                self._item(index)
            except (DomainError, ShapeError) as error:
                if not self.records:
                    count = f" ({int(doubtful.sum())} of {self.size} {item}s)"
                    raise type(error)(with_position(str(error), item, index, count)) from None
                result[index] = str(error)
        if not result:
            return
        self._set(errors=MappingProxyType(result))
        columns = {name: np.array(getattr(self, name)) for name in sound if getattr(self, name) is not None}
        for name, column in columns.items():
            column[self.invalid] = sound[name]
        self._set(**columns)

    def __reduce__(self) -> Any:
        return type(self)._of, (self._public_fields() | {"errors": dict(self.errors)},)


def with_position(text: str, item: str, index: Index, count: str = "") -> str:
    """The text of an error with the position of the item that it is about."""
    position = f" at {item} {index[0] if len(index) == 1 else index}{count}" if index else ""
    return text.replace("; got", f"{position}; got", 1)


def broadcast_positions(shape: Index, to: Index) -> IndexArray:
    """The flat position within leading axes ``shape`` at each position of the axes ``to`` that they broadcast to."""
    return np.array(np.broadcast_to(np.arange(math.prod(shape)).reshape(shape), to), order="C")


def errors_at(stack: Stack, numbers: IndexArray) -> dict[Index, str]:
    """Texts at the positions whose flat numbers within a stack are those of invalid objects."""
    if not stack.errors:
        return {}
    texts = {int(np.ravel_multi_index(at, stack.shape)) if at else 0: text for at, text in stack.errors.items()}
    positions = map(tuple, np.argwhere(np.isin(numbers, list(texts))).tolist())
    return {at: texts[int(numbers[at])] for at in positions}


def is_read_only(array: NDArray[Any]) -> bool:
    """Whether nobody can write to this array: it and all arrays that it is a view of are read-only."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return False
        base = base.base
    return True


def equal(a: Any, b: Any) -> bool:
    """Whether two values, or arrays entry by entry, also arrays of arrays, are equal."""
    if a is b:
        return True
    if not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        return not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype == object:
        return all(map(equal, a.flat, b.flat))
    if a.size <= _FEW_ENTRIES and a.tobytes() == b.tobytes():  # a tenth of the time; 0.0 equals -0.0 all the same
        return True
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
