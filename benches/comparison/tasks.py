"""A task: inputs, fastpriv's call, the calls of peers on the same inputs, and how far their answers may differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastpriv import Estimate

Call = Callable[[], Any]


class Answer(NamedTuple):
    """Values with their lower and upper bounds, arrays of one shape; the bounds are None for bare values."""

    value: np.ndarray
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None

    @property
    def width(self) -> float | None:
        """The width of the widest bracket, relative to its value, of values of at least 1e-250."""
        if self.lower is None or self.upper is None:
            return None
        return _largest_ratio(self.upper - self.lower, self.value)


@dataclass(frozen=True)
class Peer:
    """Another way to the same answer.

    ``make`` imports what it needs, compiles, and returns the call: an ImportError says that the package is not
    installed. An answer agrees if it differs from fastpriv's value by at most ``tolerance`` times the largest value of
    the task, so that lines which lose the digits of tails agree; ``relative_difference`` shows that they do.
    With ``error``, which is relative, the peer is more exact than that, and the bracket has to contain its answer
    but for this error. A ``slow`` peer is left out by ``--quick``.
    """

    make: Callable[[], Call]
    tolerance: float
    error: float | None = None
    slow: bool = False


@dataclass(frozen=True)
class Task:
    """What is compared.

    ``make`` builds the inputs and returns fastpriv's call with the peers by their names. ``limit`` names the limit of
    the machine that bounds the task ("exp", "bytes" or "flops"), and ``work`` how many of these units the task needs at
    least. ``cold`` says that fastpriv keeps results of equal calls, which are dropped before each call. ``truth`` is
    a value of high-precision arithmetic, with a relative error, that the bracket has to contain.
    """

    name: str
    make: Callable[[], tuple[Call, Mapping[str, Peer]]]
    limit: str = ""
    work: float = 0.0
    cold: bool = False
    truth: tuple[float, float] | None = None


def read_answer(result: Any) -> Answer:
    """Values and bounds of an Estimate, a tuple (value, lower, upper), a list of Estimates, or bare numbers."""
    if isinstance(result, Estimate):
        return Answer(*(np.atleast_1d(np.asarray(end, float)) for end in (result.value, result.lower, result.upper)))
    if isinstance(result, list) and isinstance(result[0], Estimate):
        return Answer(*(np.concatenate(ends) for ends in zip(*map(read_answer, result), strict=True)))
    if isinstance(result, tuple):
        return Answer(*(np.atleast_1d(np.asarray(end, float)) for end in result))
    return Answer(np.atleast_1d(np.asarray(result, float)))


def agrees(answer: Answer, other: np.ndarray, tolerance: float) -> bool:
    """Whether two answers differ by at most the tolerance times the largest value."""
    if answer.value.shape != other.shape:
        return False
    return bool(np.max(_distance(answer, other)) <= tolerance * np.max(np.abs(answer.value)))


def relative_difference(answer: Answer, other: np.ndarray) -> float:
    """The largest difference of two answers, relative to the value where they differ."""
    return _largest_ratio(_distance(answer, other), answer.value)


def contains(answer: Answer, other: np.ndarray, error: float) -> bool:
    """Whether the brackets contain an answer that is known up to a relative error."""
    lower, upper = (answer.value if end is None else end for end in (answer.lower, answer.upper))
    slack = error * np.abs(other)
    return bool(np.all((lower <= other + slack) & (upper >= other - slack)))


def _distance(answer: Answer, other: np.ndarray) -> np.ndarray:
    """Absolute differences; infinite where the other answer is NaN, 0 where both are the same infinity."""
    with np.errstate(invalid="ignore"):
        distance = np.where(answer.value == other, 0.0, np.abs(answer.value - other))
    return np.where(np.isnan(distance), np.inf, distance)


def _largest_ratio(error: np.ndarray, value: np.ndarray) -> float:
    """The largest of errors relative to their values; values below 1e-250, which lose digits to underflow, left out."""
    size = np.abs(value)
    return float(np.max(np.where(size >= 1e-250, error / np.maximum(size, 1e-250), 0.0)))
