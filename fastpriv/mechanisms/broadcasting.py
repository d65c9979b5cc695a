"""``broadcasting``: a function of a prior and a mechanism that also takes stacks of priors and arrays of sigma.

Notation: a setting is one position of the broadcast leading axes of all stacks among the arguments. Each setting is one
call of the function itself, in the order of threads of ``ordered_map``, so that its answer has the bits of that call;
the answers are then put together: an Estimate of arrays for estimates, field by field for results of several.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..base import parallel, validate
from ..base.errors import DomainError, NotConvergedError, ShapeError
from ..base.estimate import Estimate, stacked, stacked_arrays
from ..base.values import Index, with_position
from ..channels import ChannelStack
from ..distributions import Pmf, PmfStack
from .gaussian import GaussianMechanism

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_SETTINGS_PER_TASK = 16  # settings of one task of a thread: some milliseconds of closed forms
_STACKS = (PmfStack, GaussianMechanism, ChannelStack)  # arguments that may have leading axes


def broadcasting(
    *, levels: str = "", elements: str = "", without: str = "", itself: tuple[type, ...] = ()
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Decorator: the function takes stacks for its mechanism and its prior, by one call for each setting.

    Parameters
    ----------
    levels : str
        Parameters whose leading axes broadcast with the stacks, and whose last axis belongs to each setting.
    elements : str
        Parameters all of whose axes broadcast with the stacks.
    without : str
        Parameters that must be None with a stack.
    itself : tuple of type
        Stacks that the function takes itself: a ``ChannelStack``, which may come with a ``PmfStack``; a
        ``GaussianMechanism`` with arrays; a ``PmfStack`` with such a mechanism.
    """
    of_levels, of_elements = frozenset(levels.split()), frozenset(elements.split())

    def decorate(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def with_stacks(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            stacks = [argument for argument in (*args, *kwargs.values()) if isinstance(argument, _STACKS)]
            if not stacks or not _needs_settings(stacks, itself):
                return function(*args, **kwargs)
            bound = signature.bind(*args, **kwargs)
            for name in without.split():
                if bound.arguments.get(name) is not None:
                    raise DomainError(
                        f"{name} must be None for a stack; got {validate.shown(bound.arguments[name])}. Take its "
                        "settings one by one."
                    )
            answer: Answer = _each_setting(function, bound, signature, of_levels, of_elements)
            return answer

        return with_stacks

    return decorate


def _needs_settings(stacks: Sequence[Any], itself: tuple[type, ...]) -> bool:
    """Whether the function does not take these stacks itself."""
    kinds = {type(stack) for stack in stacks}
    if ChannelStack in kinds:
        return ChannelStack not in itself
    if PmfStack in kinds:
        return PmfStack not in itself or GaussianMechanism not in kinds
    return GaussianMechanism not in itself and any(np.ndim(stack.sigma) > 0 for stack in stacks)


class _SettingsOf:
    """One argument: its leading axes, its errors and its value at a setting."""

    def __init__(self, shape: Index, value: Callable[[Index], Any], errors: Mapping[Index, str] | None = None) -> None:
        self.shape, self.value, self.errors = shape, value, errors or {}

    def position(self, index: Index) -> Index:
        """Its own position at a setting of the broadcast shape."""
        trailing_index = index[len(index) - len(self.shape) :]
        return tuple(0 if axis == 1 else i for axis, i in zip(self.shape, trailing_index, strict=True))


def _each_setting(
    function: Callable[..., Any], bound: inspect.BoundArguments, signature: inspect.Signature,
    levels: frozenset[str], elements: frozenset[str],
) -> Any:
    n_jobs, progress = bound.arguments.pop("n_jobs", None), bound.arguments.pop("progress", None)
    passed = dict(bound.arguments)
    columns: dict[str, _SettingsOf] = {}
    for name, argument in passed.items():
        column = _column(name, argument, name in levels, name in elements)
        if column is not None:
            columns[name] = column
    try:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
    except ValueError:
        text = " and ".join(f"{column.shape} of {name}" for name, column in columns.items())
        last = "" if not levels else f" The last axis of {', '.join(sorted(levels))} belongs to each setting."
        raise ShapeError(
            f"leading axes must be of shapes that broadcast; got {text}. Add axes of length 1 for a grid.{last}"
        ) from None
    validate.grid(" with ".join(columns), shape)
    records = any(getattr(argument, "records", False) for argument in passed.values())
    alone = {"n_jobs": 1} if "n_jobs" in signature.parameters else {}

    def answer_at(index: Index) -> Any:
        for column in columns.values():
            if (text := column.errors.get(column.position(index))) is not None:
                return text
        column_values = {name: column.value(column.position(index)) for name, column in columns.items()}
        single = inspect.BoundArguments(signature, type(bound.arguments)({**passed, **column_values, **alone}))
        try:
            return function(*single.args, **single.kwargs)
        except (DomainError, ShapeError, NotConvergedError) as error:
            if records:
                return str(error)
            changed = with_position(str(error), "setting", index)
            if isinstance(error, NotConvergedError):
                raise type(error)(changed, error.best) from None
            raise type(error)(changed) from None

    positions = list(np.ndindex(shape))
    results = parallel.ordered_map(
        lambda part: list(map(answer_at, positions[part])), parallel.blocks(len(positions), _SETTINGS_PER_TASK),
        n_jobs=n_jobs, progress=progress, shared=True,
    )
    answers = [answer for part in results for answer in part]
    errors = {index: item for index, item in zip(positions, answers, strict=True) if isinstance(item, str)}
    if len(errors) == len(answers):
        text = f"the first is: {next(iter(errors.values()))}" if errors else "Pass others."
        raise DomainError(
            f"{' with '.join(columns)} must have a valid setting at least; got {len(errors)} invalid ones of shape "
            f"{shape}. {text}"
        )
    return _joined([None if isinstance(entry, str) else entry for entry in answers], shape, errors)


def _column(name: str, argument: Any, is_level: bool, is_element: bool) -> _SettingsOf | None:
    """What one argument is at each setting; None for what is the same at all."""
    if isinstance(argument, PmfStack):
        return _SettingsOf(argument.shape, argument.__getitem__, argument.errors)
    if isinstance(argument, GaussianMechanism):
        sigma, span = np.asarray(argument.sigma), argument.sensitivity
        spread = None if span is None else np.broadcast_to(span, np.broadcast_shapes(sigma.shape, np.shape(span)))
        shape = sigma.shape if spread is None else spread.shape
        noise = np.broadcast_to(sigma, shape)
        return _SettingsOf(shape, lambda at: GaussianMechanism(noise[at], None if spread is None else spread[at]))
    if is_level or is_element:
        numbers = validate.array(name, argument)
        if numbers.ndim == 0 or (is_level and numbers.ndim == 1):
            return None
        return _SettingsOf(numbers.shape[:-1] if is_level else numbers.shape, numbers.__getitem__)
    if name == "prior" and argument is not None and not isinstance(argument, (tuple, Pmf)):
        priors = validate.array(name, argument)
        if priors.ndim > 1:
            return _SettingsOf(priors.shape[:-1], lambda index: np.array(priors[index]))
    return None


def _joined(answers: Sequence[Any], shape: Index, errors: Mapping[Index, str]) -> Any:
    """The answers of all settings as one; None for those that have an error."""
    first = next((entry for entry in answers if entry is not None), None)
    if isinstance(first, Estimate):
        return stacked(answers, shape, errors)
    if isinstance(first, tuple):
        parts = ([None if answer is None else answer[i] for answer in answers] for i in range(len(first)))
        return tuple(_joined(part, shape, errors) for part in parts)
    if dataclasses.is_dataclass(first):
        names = [field.name for field in dataclasses.fields(first)]
        fields = {name: [None if answer is None else getattr(answer, name) for answer in answers] for name in names}
        return dataclasses.replace(
            first,
            **{name: _joined(column, shape, errors) for name, column in fields.items()},  # type: ignore[type-var]
        )
    if isinstance(first, np.ndarray):
        joined = stacked_arrays(answers, shape, -1 if first.dtype.kind in "iu" else np.nan)
        joined.setflags(write=False)
        return joined
    if isinstance(first, (bool, int, float)):
        missing = False if isinstance(first, bool) else -1 if isinstance(first, int) else np.nan
        return np.array([missing if item is None else item for item in answers]).reshape(shape)
    distinct = dict.fromkeys(element for element in answers if element is not None)
    return "; ".join(distinct) if isinstance(first, str) else first
