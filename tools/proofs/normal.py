"""erfcx, the Mills ratio, erfc and Phi of csrc/special/fp_erfc.h.

Errors are counted in units of u = 2^-53 relative to the true value; an error of so many units is at most as many ulps.
Where a function decays under 2^-1022, a result is rounded once more, to the ulp of subnormal numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from balls import upper, with_precision
from c_source import Execution, Pointer, Source, tokens
from elementary import Reduction, evaluates, exp_tail_error, log, log1p, rounded, scaling
from flint import arb
from rounding import Value, evaluate
from statements import Proved, U, ball, expect, expect_result, pieces, require, ulp_at, variable
from tables import erfcx, half_line_error, mills_ratio

HEADER = "special/fp_erfc.h"
UP = 1.0 + 2.0**-30
TESTS = "ulps of the true value"


def read(root: Path) -> Source:
    """The header and what it includes."""
    return Source(root, "common/fp_error_free.h", "special/fp_elementary.h", HEADER)


class HalfLine:
    """fp_half_line for one table: errors before its last addition, relative to the true value, in units of u.

    With r = fl(1 / fl(x + 4)) as it is, the polynomial stands for the function F at X = 1/r - 4, and the code adds
    (x - X) F'(X). ``shift`` is x - X up to 2^-74 (x + 4):
    the sum less 4 is exact below 2^54, and so is its difference from x, the rounding of one sum; the products of the
    26 and 27 bits of r and of the sum are exact but for the least, their sums lose 2^-76 together.
    |x - X| is below 2^-52 (1 + 2^-20) (x + 4), each rounding half of it, so that its square times F'' / 2 is nothing.
    """

    @with_precision
    def __init__(self, source: Source, limit: float, slope: float, table: str) -> None:
        self.slope = slope
        evaluates(source, table)
        self.exact = arb(1) if slope == 1.0 else 1 / arb.pi().sqrt()
        function = "fp_half_line"
        names = ("sum", "r", "value", "r_high", "r_low", "sum_high", "sum_low", "residue", "shift")
        run = source.run(function, variable("x"), limit, slope, source.tables[table],
                         replace=tuple(f"{function}.{n}" for n in names))
        scope: dict[str, Any] = {n: variable(f"{function}.{n}") for n in names}
        scope |= {"x": variable("x"), "limit": limit, "slope": slope, "table": source.tables[table]}
        for label, text in (
            ("sum", "x + 4.0"), ("r", "1.0 / sum"), ("r_high", "fp_upper(r)"), ("r_low", "r - r_high"),
            ("sum_high", "fp_upper(sum)"), ("sum_low", "sum - sum_high"),
            ("residue", "((1.0 - r_high * sum_high) - (r_high * sum_low + r_low * sum_high)) - r_low * sum_low"),
            ("shift", "(x - (sum - 4.0)) - sum * residue"),
            ("value", "r * (limit + r * fp_polynomial(1.0 - 8.0 * r, table, 24))"),
        ):
            expect(run, f"{function}.{label}", text, **scope)
        expect_result(run, "value + shift * r * (x < 1e4 ? slope * (x * value - limit) * sum : -limit * r)", **scope)
        require(source.run("fp_upper", 1.0 + 2.0**-25 + 2.0**-26).result == 1.0 + 2.0**-25
                and source.run("fp_upper", 1.0 + 2.0**-25 - 2.0**-52).result == 1.0, "fp_upper must leave 26 bits")
        name, text = ("erfcx", "FP_INV_SQRT_PI, 2.0") if slope == 2.0 else ("mills", "1.0, 1.0")
        half = source.run(f"fp_{name}_half", variable("x"))
        expect_result(half, f"fp_half_line(x, {text}, fp_{name}_table)", x=variable("x"))
        self.value, self.r = run.definitions[f"{function}.value"], f"{function}.r"
        self.function = erfcx if slope == 2.0 else mills_ratio
        self.table_error = half_line_error(source, table) / U

    def _true(self, x: float) -> Any:
        """F(x); beyond 1000 it is limit / x but for a part of 1 / x^2."""
        return self.function(arb(x)) if x < 1e3 else self.exact / arb(x) * (1 - arb(0).union(1 / arb(x) ** 2))

    @with_precision
    def errors(self) -> Iterator[tuple[float, float, Any]]:
        """Pieces of x, as low end, error in units of u before the last addition, and the ball of true values."""
        # by r, from 1/4 at x = 0 down to x = 2^54; beyond, F is limit / x to 2^-53, and r G is below 2^-50
        edges = [4.0 + i / 32 for i in range(257)]
        while edges[-1] < 2.0**60:
            edges.append(edges[-1] * (1.02 if edges[-1] < 1e2 else 1.05))
        for low, high in itertools.pairwise(edges):
            rounding = evaluate(self.value, {self.r: Value(1.0 / high * (1 - U), 1.0 / low * (1 + U))})
            x = (low - 4.0, high - 4.0)
            f = (self._true(x[1]), self._true(x[0]))
            if x[0] < 9.8e3:
                slopes = [self.slope * abs(arb(z) * y - self.exact) / y for z, y in ((x[0], f[1]), (x[1], f[0]))]
                steepest = max(upper(y) for y in slopes) * high * 1.05  # |F'| / F times x + 4
                # x F - limit, as the code forms it, against the derivative that is meant
                loose = 2.0**-48 * (1.0 + x[1] ** 2) + 2.0**-40
            else:
                steepest, loose = 1.01, 1e-3  # F is limit / x to 1e-7, r^2 is 1 / x^2 to 9e-4
            wrong = steepest * (2.0 * U * loose + 2.0**-74)
            if x[1] >= 2.0**54:
                wrong += 2.0 * U  # x - (sum - 4) may then be off by half an ulp of x
            yield low - 4.0, (upper(rounding.error / f[0]) + wrong) / U * UP + self.table_error, f[0].union(f[1])


class ExpTimes:
    """fp_exp_times(x, low, y): units of u before its last operation, for a y without error."""

    @with_precision
    def __init__(self, source: Source) -> None:
        scaling(source)
        reduction = Reduction(source)
        run = source.run("fp_exp_times", variable("x"), variable("low"), variable("y"),
                         replace=("fp_exp_times.r", "fp_exp_reduced.q", "fp_exp_reduced.shifted"))
        scope = {"r": variable("fp_exp_times.r"), "q": variable("fp_exp_reduced.q"), "y": variable("y"),
                 "shifted": variable("fp_exp_reduced.shifted")}
        expect_result(run, "fp_scale(y + y * (r + q), shifted)", **scope)
        approximation = exp_tail_error(source, reduction)
        factor = Execution(source).expression(tokens("r + q"), {"r": reduction.r, "q": reduction.q})
        c = reduction.remainder(1200, 2.0**-10)
        edge = reduction.edge + 2.0**-10
        self.units = 0.0
        for low, high in pieces(-edge, edge, 32):
            part = evaluate(factor, {reduction.r.args[0]: Value(low, high), "c": c})
            error = part.error + c.error + approximation + c.size * upper(ball(low, high).exp() - 1) + c.size**2
            error += part.size * U  # the product with y
            self.units = max(self.units, error / math.exp(low) * UP / U)
        # x^2 / 2 = square + low: the square is exact, low loses three roundings of 2^-24 of it, at most 2^-24 800
        half = source.run("fp_half_square", variable("x"), Pointer({}, "low"))
        high = Execution(source).expression(tokens("fp_upper(x)"), {"x": variable("x")})
        expect_result(half, "0.5 * high * high", high=high)
        expect(half, "fp_half_square.low", "0.5 * ((x - high) * (x + high))", x=variable("x"), high=high)
        self.units += 2.0**-24 * 800 * 3


@with_precision
def normal(source: Source) -> Iterator[Proved]:
    """erfcx, Mills ratio, erfc and Phi in ulps of the true value."""
    root_two_pi = source.constant("FP_SQRT_2PI")
    lines = {"erfcx": HalfLine(source, source.constant("FP_INV_SQRT_PI"), 2.0, "fp_erfcx_table"),
             "mills": HalfLine(source, 1.0, 1.0, "fp_mills_table")}
    units, ulps = {}, {}
    for name, line in lines.items():
        parts = list(line.errors())
        units[name] = max(error for _, error, _ in parts) + 1.0
        ulps[name] = max(rounded(error * U * upper(f) / ulp_at(f)) for _, error, f in parts)
    times = ExpTimes(source).units
    x = variable("x")
    # x < 0: 2 e^(x^2) - erfcx(-x) and sqrt(2 pi) e^(x^2/2) - R(-x)
    for name, text, constant, first in (
        ("erfcx", "2.0 * square, 2.0 * low, 2.0", 0.0, lambda z: 2 * (z * z).exp()),
        ("mills", "square, low, FP_SQRT_2PI", upper(arb(root_two_pi) / (2 * arb.pi()).sqrt() - 1) / U,
         lambda z: (2 * arb.pi()).sqrt() * (z * z / 2).exp()),
    ):
        run = source.run(f"fp_{name}", x, replace=(f"fp_{name}.size", f"fp_{name}.value", f"fp_{name}.square",
                                                   "fp_half_square.low", f"fp_{name}.both"))
        scope = {"x": x} | {n: variable(f"fp_{name}.{n}") for n in ("size", "value", "square", "both")}
        scope["low"] = variable("fp_half_square.low")
        expect(run, f"fp_{name}.value", f"fp_{name}_half(size)", **scope)
        expect(run, f"fp_{name}.both", f"fp_exp_times({text}) - value", **scope)
        last = "-40.0" if name == "mills" else "-28.0"
        expect_result(run, f"x < 0.0 ? (x < {last} ? INFINITY : both) : (x == INFINITY ? 0.0 : value)", **scope)
        worst = times + 1.0 + constant + 1.0 + 2.0**-20  # below -5 the second term is nothing
        for low, high in pieces(0.0, 5.0, 320):
            a, b = first(arb(high)), lines[name].function(arb(low))
            y = first(arb(low)) - b
            require(upper(a / first(arb(low))) < 1.2, "pieces must be short")
            error = (upper(a) * (times + 1.0 + constant) + upper(b) * units[name]) * U
            worst = max(worst, rounded(error / ulp_at(y) * UP))
        yield Proved(HEADER, f"fp_{name}", rf"fp_{name} ([\d.]+)", max(ulps[name], worst), TESTS)

    # erfc and Phi on the left: e^(-x^2/2) times a half line, the error of which, of the exponential and of the last
    # product add up; 2 - erfc and 1 - Phi have at least the ulp of 1/2, and lose half as many.
    run = source.run("fp_erfc", x, replace=("fp_erfc.size", "fp_erfc.square", "fp_half_square.low", "fp_erfc.value"))
    scope = {"x": x} | {n: variable(f"fp_erfc.{n}") for n in ("size", "square", "value")}
    scope["low"] = variable("fp_half_square.low")
    expect(run, "fp_erfc.size", "fabs(x)", **scope)
    expect(run, "fp_erfc.value", "fp_exp_times(-2.0 * square, -2.0 * low, fp_erfcx_half(size))", **scope)
    expect(run, "fp_erfc.tail", "size > 28.0 ? 0.0 : value", **scope)
    expect_result(run, "x < 0.0 ? 2.0 - tail : tail", tail=run.definitions["fp_erfc.tail"], **scope)
    require(bool(arb(28).erfc() < arb(2) ** -1075), "erfc(28) must round to 0")
    require([source.run("fp_erfc", z).result for z in (math.inf, -math.inf, 0.0)] == [0.0, 2.0, 1.0], "ends of erfc")
    yield Proved(HEADER, "fp_erfc", r"fp_erfc ([\d.]+)", units["erfcx"] + times + 1.0, TESTS)
    run = source.run("fp_gauss_times", x, variable("y"), replace=("fp_gauss_times.square", "fp_half_square.low"))
    scope = {"x": x, "y": variable("y"), "square": variable("fp_gauss_times.square"),
             "low": variable("fp_half_square.low")}
    expect_result(run, "x > 40.0 ? 0.0 : fp_exp_times(-square, -low, y)", **scope)
    run = source.run("fp_ndtr", x, replace=("fp_ndtr.size", "fp_ndtr.tail"))
    scope = {"x": x, "size": variable("fp_ndtr.size"), "tail": variable("fp_ndtr.tail")}
    expect(run, "fp_ndtr.size", "fabs(x)", **scope)
    expect(run, "fp_ndtr.tail", "fp_gauss_times(size, fp_mills_half(size) * FP_INV_SQRT_2PI)", **scope)
    expect_result(run, "x > 0.0 ? 1.0 - tail : tail", **scope)
    require(bool((40 / arb(2).sqrt()).erfc() < arb(2) ** -1075), "Phi(-40) must round to 0")
    require([source.run("fp_ndtr", z).result for z in (math.inf, -math.inf, 0.0)] == [1.0, 0.0, 0.5], "ends of Phi")
    constant = upper(arb(source.constant("FP_INV_SQRT_2PI")) * (2 * arb.pi()).sqrt() - 1) / U
    tail = units["mills"] + constant + 1.0 + times + 1.0
    yield Proved(HEADER, "fp_ndtr", r"fp_ndtr ([\d.]+)", tail, TESTS)
    yield Proved(HEADER, "fp_log_ndtr", r"fp_log_ndtr ([\d.]+)",
                 _log_ndtr(source, units["mills"] + constant + 1.0, tail), TESTS)


def _log_ndtr(source: Source, factor: float, tail: float) -> float:
    """Ulps of log Phi, from the units of R / sqrt(2 pi) and of the tail.

    Left of 0 three terms of one sign add up to log 2 at least: the logarithm of the factor, which moves by as many
    units as the factor does, and half the square in two parts. Right of 0 a relative error of the tail T moves
    log(1 - T) by T / ((1 - T) |log(1 - T)|) <= 1 / log 2 of it.
    """
    x, name = variable("x"), "fp_log_ndtr"
    names = ("size", "factor", "square", "tail", "rest", "value", "left")
    run = source.run(name, x, replace=(*(f"{name}.{n}" for n in names), "fp_half_square.low"))
    scope = {n: variable(f"{name}.{n}") for n in names} | {"x": x, "low": variable("fp_half_square.low")}
    for label, text in (
        ("size", "fabs(x)"), ("factor", "fp_mills_half(size) * FP_INV_SQRT_2PI"),
        ("tail", "fp_gauss_times(size, factor)"), ("rest", "1.0 - tail"),
        ("value", "fp_log_two(x > 0.0 ? rest : factor, x > 0.0 ? (1.0 - rest) - tail : 0.0)"),
        ("left", "x < -2e154 ? -INFINITY : (value - low) - square"),
    ):
        expect(run, f"{name}.{label}", text, **scope)
    expect_result(run, "x > 0.0 ? value : left", **scope)
    require([source.run(name, z).result for z in (math.inf, -math.inf)] == [0.0, -math.inf], "the ends of log Phi")
    of_log, of_sum = list(log(source))[-1].bound, list(log1p(source))[-1].bound
    log2 = float(arb.const_log2().lower())
    # the logarithm, its difference from low, low, and the last difference
    left = factor / log2 + 2.0 * of_log + 1.0 + 2.0**-20 + 1.0
    return max(left, tail / log2 + of_sum + 2.0**-20)


PROOFS = (normal,)
