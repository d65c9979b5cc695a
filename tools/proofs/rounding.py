"""Running error analysis of an expression tree in double precision: each value with its range and its error.

The ideal of a node is the same tree in real arithmetic on the ideals of the inputs. A range needs no outward rounding:
rounding to nearest is monotone, so the operation on the ends, carried out in double precision, gives the ends. Errors
are sums of positive numbers in double precision; ``_UP`` covers the roundings of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from c_source import Node

_UP = 1.0 + 2.0**-48  # more than the relative error of the few operations that form one error
_LEAST = 5e-324


@dataclass(frozen=True)
class Value:
    """Computed values lie in [low, high], within ``error`` of their ideal; multiples of 2^grid where that is known."""

    low: float
    high: float
    error: float = 0.0
    grid: int | None = None

    @property
    def size(self) -> float:
        """The largest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def least(self) -> float:
        """The smallest magnitude."""
        return 0.0 if self.low <= 0.0 <= self.high else min(abs(self.low), abs(self.high))


def constant(x: float) -> Value:
    """A number of the source, without error."""
    return Value(x, x, 0.0, grid_of(x))


def grid_of(x: float) -> int | None:
    """Exponent of the largest power of two of which a number is a multiple."""
    if x == 0.0:
        return 1000
    if not math.isfinite(x):
        return None
    mantissa, exponent = math.frexp(x)
    whole = int(mantissa * 2**53)
    return exponent - 53 + (whole & -whole).bit_length() - 1


def evaluate(node: Any, inputs: dict[str, Value], known: dict[Any, Value] | None = None) -> Value:
    """Range and error of a node; ``known`` holds values of nodes that are taken as they are."""
    done: dict[Any, Value] = dict(known or {})

    def value(one: Any) -> Value:
        if not isinstance(one, Node):
            return constant(float(one))
        result = done.get(one)
        if result is None:
            if one.op == "input":
                result = inputs[one.args[0]]
            elif one.op == "?":
                result = _chosen(value(one.args[1]), value(one.args[2]))
            else:
                result = _operation(one.op, [value(x) for x in one.args], one.args)
            done[one] = result
        return result

    return value(node)


def _chosen(a: Value, b: Value) -> Value:
    grid = None if a.grid is None or b.grid is None else min(a.grid, b.grid)
    return Value(min(a.low, b.low), max(a.high, b.high), max(a.error, b.error), grid)


def half_ulp(x: float) -> float:
    """The rounding error of a result that is at most |x|."""
    return 0.5 * math.ulp(abs(x))


def _operation(op: str, values: list[Value], args: tuple[Any, ...]) -> Value:
    a = values[0]
    if op == "neg":
        return Value(-a.high, -a.low, a.error, a.grid)
    if op == "fabs":
        return Value(a.least, a.size, a.error, a.grid)
    if op == "sqrt":
        low, high = math.sqrt(a.low), math.sqrt(a.high)
        return Value(low, high, (a.error / max(low, _LEAST) if a.error else 0.0) * _UP + half_ulp(high))
    b = values[1]
    if op in "+-":
        if op == "-":
            b = Value(-b.high, -b.low, b.error, b.grid)
        low, high, error = a.low + b.low, a.high + b.high, a.error + b.error
        grid = None if a.grid is None or b.grid is None else min(a.grid, b.grid)
        exact = _close(a, b)
    elif op == "*":
        low, high = _products(a, b) if args[0] is not args[1] and args[0] != args[1] else (a.least**2, a.size**2)
        error = a.size * b.error + b.size * a.error + a.error * b.error
        grid = None if a.grid is None or b.grid is None else a.grid + b.grid
        exact = _power_of_two(a) or _power_of_two(b)
    elif op == "/":
        if b.least <= b.error:
            raise ArithmeticError("division by what may be zero")
        ends = [x / y for x in (a.low, a.high) for y in (b.low, b.high)]
        low, high = min(ends), max(ends)
        error = (max(abs(low), abs(high)) * b.error + a.error) / (b.least - b.error)
        grid, exact = None, _power_of_two(b)
    else:
        raise ArithmeticError(f"{op} must be replaced before errors are counted")
    size = max(abs(low), abs(high))
    if not size < math.inf:
        raise ArithmeticError("a range that overflows")
    exact = exact or (grid is not None and size <= math.ldexp(1.0, min(53 + grid, 1000)))
    least = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    if not exact:
        error = (error + half_ulp(size)) * _UP
        grid = None
    if grid is None and least >= 2.0**-1022:
        grid = math.frexp(least)[1] - 53
    return Value(low, high, error * _UP + (0.0 if op in "+-" or (exact and grid is not None) else _LEAST), grid)


def _close(a: Value, b: Value) -> bool:
    """Sterbenz: a + b is exact where one is 0, or the two have opposite signs and differ by a factor of two at most."""
    if a.low == a.high == 0.0 or b.low == b.high == 0.0:
        return True
    if a.low > 0.0 > b.high:
        return 2.0 * a.low >= -b.low and a.high <= -2.0 * b.high
    if b.low > 0.0 > a.high:
        return _close(b, a)
    return False


def _products(a: Value, b: Value) -> tuple[float, float]:
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(ends), max(ends)


def _power_of_two(a: Value) -> bool:
    return a.low == a.high and abs(math.frexp(a.low)[0]) == 0.5
