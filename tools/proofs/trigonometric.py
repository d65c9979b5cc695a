"""Sine and cosine modulo pi of csrc/composition/fp_sin_cos.h: reduction by four parts of pi, and two polynomials."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from balls import largest, real, upper, with_precision
from c_source import Pointer, Source
from flint import arb
from rounding import Value, evaluate
from statements import Proved, U, binades, expect, pieces, require, variable

HEADER = "composition/fp_sin_cos.h"
NAME = "fp_sin_cos_mod_pi"
UP = 1.0 + 2.0**-30


def read(root: Path) -> Source:
    """The header."""
    return Source(root, "common/fp_error_free.h", HEADER)


def _reduction(source: Source, parts: list[float]) -> tuple[float, float]:
    """Largest |r|, and |r - (y - turns pi)|, for |y| <= 2^28.

    ``turns`` is fl(y / pi) rounded to an integer. The products with the first three parts are exact. So are the first
    two differences: with y in [2^e, 2^(e + 1)) they are multiples of the last bit of y or of the parts, and small.
    """
    largest_turns = 2**27
    inverse, pi = 0.31830988618379067154, arb.pi()
    most = upper(arb(2) ** 28 / pi + 2)
    require(most < largest_turns, "turns must be below 2^27")
    for part in parts[:3]:
        last_of_26 = Fraction(2) ** (math.frexp(part)[1] - 26)
        require((Fraction(part) / last_of_26).denominator == 1, "parts of pi must have 26 bits")
    lost = arb(2) ** 28 * (abs(arb(inverse) - 1 / pi) + arb(inverse) * U)
    edge = upper(pi * (lost + 0.5))
    unit = [Fraction(part).denominator for part in parts]  # each is a multiple of 1 / unit
    for e in range(0, 28):
        turns = upper(arb(2) ** (e + 1) / pi + 1)
        last_bit = Fraction(2) ** (e - 52)
        left = arb(0)
        for i in range(2):
            left = left + arb(parts[i])
            size = upper(arb(edge) + turns * abs(pi - left))
            step = min(last_bit, Fraction(1, unit[0]), Fraction(1, unit[1]) if i else last_bit)
            require(Fraction(size) <= step * 2**53, "the first two differences must be exact")
    error = turns * upper(pi - sum((arb(part) for part in parts), arb(0)))
    size = edge * UP + turns * parts[3]
    error += 2 * 0.5 * math.ulp(size) + turns * parts[3] * U
    return (edge + error) * UP, error * UP


@with_precision
def sin_cos(source: Source) -> Iterator[Proved]:
    """Absolute errors of both, and the relative error of the sine of angles that are not reduced."""
    sink = {}
    run = source.run(NAME, variable("y"), Pointer(sink, "sine"), Pointer(sink, "cosine"),
                     replace=tuple(f"{NAME}.{n}" for n in ("turns", "near", "r", "x")))
    scope = {n: variable(f"{NAME}.{n}") for n in ("turns", "near", "r", "x")} | {"y": variable("y")}
    for label in ("s", "c"):
        scope[label] = run.definitions[f"{NAME}.{label}"]
    near, r = run.definitions[f"{NAME}.near"], run.definitions[f"{NAME}.r"]
    parts = [near.args[0].args[1].args[1], near.args[1].args[1], r.args[0].args[1].args[1], r.args[1].args[1]]
    scope |= {f"part{i}": part for i, part in enumerate(parts)} | {"shift": 1.5 * 2.0**52}
    expect(run, f"{NAME}.turns", "(y * 0.31830988618379067154 + shift) - shift", **scope)
    expect(run, f"{NAME}.near", "(y - turns * part0) - turns * part1", **scope)
    expect(run, f"{NAME}.r", "(near - turns * part2) - turns * part3", **scope)
    expect(run, f"{NAME}.x", "r * r", **scope)
    sine = expect(run, f"{NAME}.sine", "r - r * x * s", **scope)
    cosine = expect(run, f"{NAME}.cosine", "1.0 - (0.5 * x - x * x * c)", **scope)
    edge, reduced = _reduction(source, parts)
    require(edge < 1.5708, "the reduced angle must be at most pi/2")
    x_name, r_name = f"{NAME}.x", f"{NAME}.r"
    square = upper(arb(edge) ** 2)
    # as functions of x = r^2: sin r / r = sum (-x)^n / (2n + 1)!, cos r = sum (-x)^n / (2n)!; cut at x^30
    relative = largest(lambda x: 1 - x * real(scope["s"], {scope["x"]: x}) - _series(x, 1), 0, square, 16)
    of_cosine = largest(lambda x: real(cosine, {scope["x"]: x}) - _series(x, 0), 0, square, 16)

    def errors(low: float, high: float) -> tuple[float, float]:
        """Roundings of sine and cosine for |r| in [low, high]."""
        x = evaluate(run.definitions[x_name], {r_name: Value(low, high)})
        inputs = {r_name: Value(low, high), x_name: x}
        return evaluate(sine, inputs).error, evaluate(cosine, inputs).error

    worst = [0.0, 0.0, 0.0]
    for low, high in pieces(0.0, edge, 64):
        a, b = errors(low, high)
        worst[0] = max(worst[0], (a + high * relative) * UP)
        worst[1] = max(worst[1], (b + of_cosine) * UP)
    # Below 2^-30 the sine is r (1 - x/6), of which r x / 6 is below 2^-60 r: half an ulp of r and that.
    worst[2] = U + 2.0**-60
    for low, high in binades(edge, 2.0**-30, 4):
        a, _ = errors(low, high)
        worst[2] = max(worst[2], (a + high * relative) / float(arb(low).sin().lower()) * UP)
    yield Proved(HEADER, "sine", r"absolute error of the sine (\S+)", worst[0] + reduced, "absolute error")
    yield Proved(HEADER, "cosine", r"and of the cosine (\S+),", worst[1] + reduced, "absolute error")
    yield Proved(HEADER, "sine, |y| <= 1.57", r"relative error of the sine (\S+)", worst[2], "relative error")


def _series(x: object, odd: int) -> object:
    """Sum of (-x)^n / (2n + odd)!, n < 30: what is left out is below 1e-60."""
    total = 0 * x + 0
    for n in reversed(range(30)):
        total = total * x + (-1) ** n / arb(math.factorial(2 * n + odd))
    return total


PROOFS = (sin_cos,)
