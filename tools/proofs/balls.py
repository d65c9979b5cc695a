"""Certified largest values of smooth functions by Taylor models in the ball arithmetic of python-flint."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from flint import arb, arb_series, ctx
from programs import ProofError

PRECISION = 256
TERMS = 12


@contextmanager
def _precision() -> Iterator[None]:
    before, cap = ctx.prec, ctx.cap
    ctx.prec = PRECISION
    try:
        yield
    finally:
        ctx.prec, ctx.cap = before, cap


def with_precision(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: a function or generator that computes with ``PRECISION`` bits, whatever its caller uses."""
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            with _precision():
                yield from function(*args, **options)
    else:

        @wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            with _precision():
                return function(*args, **options)

    return wrapped


def upper(x: Any) -> float:
    """A double that is at least |x| for all x in a ball."""
    bound = x.abs_upper()
    value = float(bound)
    if not value < float("inf"):
        raise ProofError("a bound that is not finite")
    while not arb(value) >= bound:
        value = math.nextafter(value, math.inf)
    return value


def horner(coefficients: Sequence[Any], x: Any) -> Any:
    """Sum of c_i x^i."""
    total = 0 * x + arb(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + arb(c)
    return total


@with_precision
def largest(function: Callable[[Any], Any], low: Any, high: Any, pieces: int, terms: int = TERMS,
            splits: int = 400) -> float:
    """Bound of |function| on [low, high], by Taylor models on equal pieces, of which the worst are halved.

    ``function`` takes and returns series with balls as coefficients. On a piece of centre c and half-width h the first
    ``terms`` coefficients are those at c, and the next is one at the whole piece (Lagrange's remainder). Pieces are
    halved until the bound is within 0.3 % of a value in the middle of one, at most ``splits`` times.
    """
    ctx.cap = terms + 1
    least = 0.0

    def bounded(a: Any, b: Any) -> tuple[float, Any, Any]:
        nonlocal least
        half, centre = (b - a) / 2, ((a + b) / 2).mid()
        half = half + abs(centre - (a + b) / 2)
        point = function(arb_series([centre, 1], terms + 1))
        whole = function(arb_series([centre + half * arb(0, 1), 1], terms + 1))
        rest = sum((abs(point[n]) * half**n for n in range(1, terms)), arb(0)) + abs(whole[terms]) * half**terms
        least = max(least, float(abs(point[0]).lower()))
        return upper(abs(point[0]) + rest), a, b

    low, high = arb(low), arb(high)
    ends = [low + (high - low) * i / pieces for i in range(pieces)] + [high]
    parts = [bounded(a, b) for a, b in itertools.pairwise(ends)]
    for _ in range(splits):
        worst = max(parts, key=lambda x: x[0])
        if worst[0] <= 1.003 * least:
            break
        parts.remove(worst)
        middle = ((worst[1] + worst[2]) / 2).mid()
        parts += [bounded(worst[1], middle), bounded(middle, worst[2])]
    return max(part[0] for part in parts)


def real(node: Any, inputs: dict[Any, Any]) -> Any:
    """A tree in real arithmetic: on series of balls, say."""
    done: dict[Any, Any] = dict(inputs)

    def value(one: Any) -> Any:
        if isinstance(one, (int, float)):
            return arb(one)
        if one not in done:
            args = [value(x) for x in one.args]
            if one.op == "neg":
                done[one] = -args[0]
            elif one.op == "+":
                done[one] = args[0] + args[1]
            elif one.op == "-":
                done[one] = args[0] - args[1]
            elif one.op == "*":
                done[one] = args[0] * args[1]
            elif one.op == "/":
                done[one] = args[0] / args[1]
            else:
                raise ProofError(f"{one.op} in real arithmetic")
        return done[one]

    return value(node)
