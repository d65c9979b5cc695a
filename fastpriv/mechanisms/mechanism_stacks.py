"""Stacks of mechanisms: arrays of parameters with leading axes, one mechanism for each position of these axes.

Notation: ``shape`` are the leading axes of a stack.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from ..base import validate
from ..base.errors import DomainError, ShapeError
from ..base.values import Index, Stack, with_position
from ..channels.base import AnyChannel
from ..channels.channel_stacks import ChannelStack

__all__ = ["MechanismStack"]

# Last axes of the parameters that are arrays for one mechanism already; the others are single numbers.
_OWN_AXES = {"scores": 2, "matrix": 2, "default": 1, "indices": 1, "rows": 2}


class MechanismStack(Stack):
    """Mechanisms with leading axes, for one call instead of a loop over their parameters.

    The functions of ``fastpriv.notions`` and ``channel_capacity`` take a stack in the place of a mechanism. Its leading
    axes broadcast with those of a ``PmfStack`` or of priors of shape (..., n), and of ``epsilon`` or ``order``, whose
    last axis belongs to each mechanism.

    Parameters
    ----------
    kind : callable
        A class of mechanisms, such as ``RandomizedResponse``, or a function that returns a channel.
    *parameters, **named : array_like
        Its arguments, each single or an array of them; these are broadcast. An argument that is an array for one
        mechanism, such as ``scores``, has leading axes before its own. A ``GaussianMechanism`` takes arrays itself.
    errors : {"raise", "record"}, default "raise"
        What invalid parameters do: raise an error that names their position, or have NaN as answers while the others
        keep theirs. Attribute ``errors`` then holds the text. A mechanism for which a function has no answer counts as
        invalid there, and ``cost["errors"]`` of its Estimate has the text.

    Attributes
    ----------
    shape : tuple of int
        The leading axes.
    mechanisms : tuple of AnyChannel or None
        All of them in C order, None for invalid ones.
    errors : mapping of tuple of int to str
        The texts of invalid parameters by their position.

    Raises
    ------
    DomainError, ShapeError
        For parameters that ``kind`` refuses, unless ``errors="record"``; for shapes that do not broadcast.

    See Also
    --------
    fastpriv.ChannelStack : matrices with leading axes, of which one call of a kernel takes thousands.

    Notes
    -----
    Each mechanism is taken by its own method, closed forms included, on ``n_jobs`` threads.

    **Accuracy** the answers for a mechanism are those for itself, bit for bit:
    ``tests/contracts/test_mechanism_stacks.py``. Those by ``matrices()`` are of written channels.

    Examples
    --------
    Randomised response on two sizes with three levels:

    >>> from fastpriv import MechanismStack, RandomizedResponse, notions
    >>> stack = MechanismStack(RandomizedResponse, k=[[2], [2**100]], epsilon=[0.5, 1.0, 2.0])
    >>> stack.shape
    (2, 3)
    >>> notions.maximal_leakage(None, stack).value.round(6)
    array([[0.21907 , 0.379885, 0.566219],
           [0.5     , 1.      , 2.      ]])
    >>> notions.ldp_delta(None, stack, [0.25, 0.75]).shape
    (2, 3, 2)
    """

    __slots__ = ("errors", "mechanisms", "records", "shape")
    _fields = ("mechanisms", "shape", "_error_texts")

    mechanisms: tuple[AnyChannel | None, ...]

    def __init__(
        self, kind: Callable[..., AnyChannel], *parameters: Any, errors: Literal["raise", "record"] = "raise",
        **named: Any,
    ) -> None:  # fmt: skip
        records = validate.choice("errors", errors, ("raise", "record")) == "record"
        try:
            signature = inspect.signature(kind)
        except (TypeError, ValueError):  # not callable, or a class of C without one
            raise DomainError(
                f"kind must be a class of mechanisms; got {validate.shown(kind)}. Pass RandomizedResponse or another; "
                "MechanismStack.of takes mechanisms themselves."
            ) from None
        try:
            bound = signature.bind(*parameters, **named)
        except TypeError as error:
            name = getattr(kind, "__name__", "kind")
            raise DomainError(
                f"parameters must be the arguments of {name}{signature}, the kind; got others ({error}). Pass each "
                "single or as an array, or another kind."
            ) from None
        columns = {name: _column(name, passed) for name, passed in bound.arguments.items()}
        shapes = {name: column.shape for name, column in columns.items()}
        try:
            shape = np.broadcast_shapes(*shapes.values())
        except ValueError:
            text = " and ".join(f"{own} of {name}" for name, own in shapes.items() if own)
            raise ShapeError(
                f"parameters must be of shapes that broadcast; got {text}. Add axes of length 1 for a grid."
            ) from None
        validate.grid("parameters", shape)
        spread = {name: np.broadcast_to(column, shape) for name, column in columns.items()}
        made: list[AnyChannel | None] = []
        result: dict[Index, str] = {}
        for index in np.ndindex(shape):
            bound.arguments.update({name: column[index] for name, column in spread.items()})
            try:
                item = kind(*bound.args, **bound.kwargs)
            except (DomainError, ShapeError) as error:
                if not records:
                    raise type(error)(with_position(str(error), "setting", index)) from None
                result[index] = str(error)
                made.append(None)
                continue
            validate.instance("kind(...)", item, AnyChannel)
            made.append(item)
        self._set(mechanisms=tuple(made), shape=shape, errors=MappingProxyType(result), records=records)

    @classmethod
    def of(cls, mechanisms: Sequence[AnyChannel], *, errors: Literal["raise", "record"] = "raise") -> MechanismStack:
        """A stack of one leading axis, of any channels: other families, other sizes, products.

        Examples
        --------
        >>> from fastpriv import GeometricMechanism, MechanismStack, RandomizedResponse, notions
        >>> stack = MechanismStack.of([RandomizedResponse(3, 1.0), GeometricMechanism(9, 0.25)])
        >>> notions.ldp_epsilon(None, stack).value
        array([1., 2.])
        """
        records = validate.choice("errors", errors, ("raise", "record")) == "record"
        items = validate.sequence("mechanisms", mechanisms, "channels")
        for index, item in enumerate(items):
            validate.instance(f"mechanisms[{index}]", item, AnyChannel)
        return cls._of({"mechanisms": tuple(items), "shape": (len(items),), "records": records, "errors": {}})

    def matrices(self) -> ChannelStack:
        """All of them written out, if they have the same secrets and releases: for many small ones a call is faster.

        Bounds are then those of written channels. Invalid mechanisms stay invalid.

        Examples
        --------
        >>> from fastpriv import MechanismStack, RandomizedResponse, notions
        >>> stack = MechanismStack(RandomizedResponse, 2, [0.5, 1.0])
        >>> notions.cd_lmip(None, stack.matrices()).value.round(9)
        array([0.03029986, 0.11094407])
        """
        valid = [mechanism for mechanism in self.mechanisms if mechanism is not None]
        sizes = {(item.inputs, item.outputs): None for item in valid}
        if len(sizes) != 1:
            raise ShapeError(
                f"mechanisms must have one number of secrets and of releases to be written out; got {len(sizes)} "
                "different sizes. Take the stack itself."
            )
        (n, m) = next(iter(sizes))
        validate.memory("matrices", 16 * n * m * self.size, "Take the stack itself.")
        missing = np.full((n, m), np.nan)
        cells = np.array([missing if entry is None else entry.matrix() for entry in self.mechanisms])
        written = ChannelStack(cells.reshape(*self.shape, n, m), errors="record" if self.records else "raise")
        written._set(errors=MappingProxyType({**written.errors, **self.errors}))
        return written

    def __getitem__(self, index: Any) -> Any:
        """The mechanism at one position, or a smaller stack: as indexing an array of shape ``shape``.

        The position of an invalid mechanism raises ``DomainError`` with its text.
        """
        numbers = np.arange(self.size).reshape(self.shape)[index]
        chosen = super().__getitem__(index)
        if isinstance(chosen, MechanismStack):
            chosen._set(mechanisms=tuple(self.mechanisms[number] for number in numbers.ravel().tolist()))
        return chosen

    def _item(self, index: Index) -> AnyChannel | None:
        return self.mechanisms[int(np.ravel_multi_index(index, self.shape)) if index else 0]

    def __repr__(self) -> str:
        invalid = f", {len(self.errors)} of them invalid" if self.errors else ""
        kinds = sorted({type(mechanism).__name__ for mechanism in self.mechanisms if mechanism is not None})
        return f"<MechanismStack of shape {self.shape}{invalid}: {', '.join(kinds) or 'no mechanism'}>"


def _column(name: str, given: Any) -> Any:
    """The values of one parameter as an array of Python's objects, of the leading axes alone."""
    own = _OWN_AXES.get(name, 0)
    if given is None or isinstance(given, (str, bytes, AnyChannel)):
        column = np.empty((), dtype=object)
        column[()] = given
        return column
    array = validate.array(name, given)
    if own == 0:
        return array.astype(object)
    if array.ndim < own:
        raise ShapeError(
            f"{name} must have {own} axes at least, its own for one mechanism; got shape {array.shape}. Leading axes "
            "before them are the stack."
        )
    column = np.empty(array.shape[: array.ndim - own], dtype=object)
    for index in np.ndindex(column.shape):
        column[index] = array[index]
    return column
