"""exp, expm1, log and log1p of csrc/special/fp_elementary.h: range reduction, polynomial, reconstruction, ends.

Lemma of the last rounding: if |P - y| <= e <= ulp(y), then |fl(P) - y| <= ulp(y) / 2 + e, ulp(y) being that of the true
value. (Where P is in the binade above y, fl(P) is the power of two between them, which is within e of y.) For e up to
2 ulp(y) it is ulp(y) + e. So the proofs count what comes before the last operation.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import programs
from balls import horner, largest, real, upper, with_precision
from c_source import Bits, Execution, Node, Pointer, Source, bits_of, double_of, tokens
from flint import arb, arb_series, ctx
from rounding import Value, evaluate, grid_of
from statements import Proved, U, ball, binades, expect, expect_result, pieces, require, ulp_at, variable

HEADER = "special/fp_elementary.h"
LARGEST_K = 2165  # |x| <= 1500
UP = 1.0 + 2.0**-30


def rounded(error: float) -> float:
    """Ulps after the last rounding, from those before it."""
    return error + (0.5 if error <= 1.0 else 1.0)


def read(root: Path) -> Source:
    """The header and what it includes."""
    return Source(root, "common/fp_error_free.h", HEADER)


@cache
def scaling(source: Source) -> None:
    """fp_scale(y, k + FP_SHIFT) multiplies y by two factors of about 2^(k/2), whose product is 2^k; |k| <= 2044.

    So the first product is exact where y is about 1, and the second is rounded once.
    """
    shift = source.constant("FP_SHIFT")
    for k in range(-2044, 2045):
        node = source.run("fp_scale", variable("y"), k + shift).result
        require(node.op == "*" and node.args[0].op == "*" and node.args[0].args[0] == variable("y"),
                "fp_scale must be a product of y and two factors")
        first, second = node.args[0].args[1], node.args[1]
        require(0.0 < first < math.inf and 0.0 < second < math.inf
                and Fraction(first) * Fraction(second) == Fraction(2) ** k
                and abs(math.frexp(first)[1] - k / 2) <= 2, f"fp_scale must multiply by 2^{k}, in two like steps")


# ------------------------------------------------------------------------------------------------ exp and expm1


class Reduction:
    """x + low = k log 2 + r + c: r is the reduced argument, c what its rounding lost, |r| <= ``edge``.

    ``r`` and ``c`` are nodes, ``q`` is that of the header on these.
    """

    @with_precision
    def __init__(self, source: Source) -> None:
        names = ("shifted", "k", "high", "rest", "r")
        run = source.run("fp_exp_reduced", variable("x"), variable("low"), _sink(), _sink(),
                         replace=tuple(f"fp_exp_reduced.{n}" for n in names))
        scope = {"x": variable("x"), "low": variable("low")} | {n: variable(f"fp_exp_reduced.{n}") for n in names}
        expect(run, "fp_exp_reduced.shifted", "x * FP_LOG2E + FP_SHIFT", **scope)
        expect(run, "fp_exp_reduced.k", "shifted - FP_SHIFT", **scope)
        expect(run, "fp_exp_reduced.high", "x - k * FP_LN2_HI", **scope)
        expect(run, "fp_exp_reduced.rest", "k * FP_LN2_LO - low", **scope)
        expect(run, "fp_exp_reduced.r", "high - rest", **scope)
        expect_result(run, "r", **scope)
        q = run.definitions["fp_exp_reduced.q"]
        lost = Execution(source).expression(tokens("(high - r) - rest"), scope)
        require(q.op == "+" and q.args[1] == lost, "q must end with (high - r) - rest")
        self.r, self.c, self.series = scope["r"], variable("c"), q.args[0]
        self.q = type(q)("+", (self.series, self.c))
        high, low, inverse = (source.constant(f"FP_{n}") for n in ("LN2_HI", "LN2_LO", "LOG2E"))
        require(source.constant("FP_SHIFT") == 1.5 * 2.0**52, "FP_SHIFT must be 3/2 2^52: adding it rounds to integers")
        require((Fraction(high) * 2**32).denominator == 1 and Fraction(high) < 1,
                "FP_LN2_HI must have 32 bits: its products with integers below 2^20 are exact")
        log2 = arb.const_log2()
        self.log2_error = upper(arb(high) + arb(low) - log2)
        # k is nearest to fl(x FP_LOG2E), of which the product and the constant lose 1500 / log 2 times their errors.
        lost_k = 1500 * (abs(arb(inverse) - 1 / log2) + arb(inverse) * U)
        self.edge = upper(log2 * (lost_k + 0.5) + LARGEST_K * arb(self.log2_error) + arb(2) ** -50)
        # high is exact: for k = 0 it is x; else |x| > 1/4, so that x and k FP_LN2_HI are multiples of 2^-54, and
        # |high| is below 1/2.
        require(upper(arb(self.edge) + LARGEST_K * abs(log2 - arb(high))) < 0.5, "|x - k FP_LN2_HI| must be below 1/2")
        require(float((log2 - self.edge).lower()) > 0.25, "arguments that are reduced must exceed 1/4")
        self.low = abs(low)

    def remainder(self, k: int, low: float = 0.0) -> Value:
        """Size of c = (high - r) - rest for |k| and |low| up to these, and its distance from x + low - k log 2 - r."""
        if k == 0 and low == 0.0:
            return Value(0.0, 0.0)
        rest = k * self.low + low
        wrong = k * self.log2_error + k * self.low * U + (rest * U if low else 0.0)
        lost = 0.5 * math.ulp(self.edge)  # the rounding of r
        difference = (rest + lost) * UP  # the largest |high - r|
        size = (lost + 0.5 * math.ulp(difference)) * UP
        return Value(-size, size, (wrong + 0.5 * math.ulp(difference) + 0.5 * math.ulp(size)) * UP)


def _sink() -> Any:
    """An address that nothing is read from."""
    return Pointer({}, "sink")


@with_precision
def exp(source: Source) -> Iterator[Proved]:
    """fp_exp in ulps of the true value."""
    reduction = Reduction(source)
    approximation = exp_tail_error(source, reduction)
    yield Proved(HEADER, "fp_exp_tail", r"e\^r less its first terms, to (\S+)", approximation, "absolute error of e^r")
    scaling(source)
    x, value = variable("x"), variable("fp_exp.value")
    run = source.run("fp_exp", x, replace=("fp_exp.r", "fp_exp_reduced.q", "fp_exp_reduced.shifted", "fp_exp.value"))
    scope = {"x": x, "r": variable("fp_exp.r"), "q": variable("fp_exp_reduced.q"),
             "shifted": variable("fp_exp_reduced.shifted"), "value": value}
    expect(run, "fp_exp.value", "fp_scale(1.0 + (r + q), shifted)", **scope)
    expect_result(run, "x > 710.0 ? INFINITY : x < -746.0 ? 0.0 : value", **scope)
    require(arb(710).exp() > arb(2) ** 1024 and arb(-746).exp() < arb(2) ** -1075, "the ends of exp")
    special = [source.run("fp_exp", float(x)).result for x in ("inf", "-inf", "nan", "0")]
    require(special[:2] == [math.inf, 0.0] and special[2] != special[2] and special[3] == 1.0, "exp of inf, nan and 0")
    before = Execution(source).expression(tokens("r + q"), {"r": reduction.r, "q": reduction.q})
    worst, c = 0.0, reduction.remainder(1100)
    names = (reduction.r.args[0], "c")
    for low, high in [(-reduction.edge, -0.25), (-0.25, 0.0), (0.0, 2.0**-8), (2.0**-8, reduction.edge)]:
        gappa = programs.rounding(before, {names[0]: (low, high), names[1]: (c.low, c.high)})
        for a, b in pieces(low, high, 8):
            own = evaluate(before, {names[0]: Value(a, b), names[1]: c}).error
            require(own <= 1.01 * gappa + c.error, "Gappa and the running error analysis must agree")
        r = ball(low, high)
        error = gappa + c.error + approximation + c.size * upper(r.exp() - 1) + c.size**2
        worst = max(worst, rounded(error / ulp_at((r - c.size * 2).exp()) * UP))
    yield Proved(HEADER, "fp_exp", r"fp_exp ([\d.]+) \(subnormal", worst, "ulps of the true value")
    # A subnormal result is rounded once more, and its ulp is twice that of 53 bits at least.
    yield Proved(HEADER, "fp_exp, subnormal results", r"fp_exp [\d.]+ \(subnormal results ([\d.]+)\)", 0.5 + worst / 2,
                 "ulps of the true value")


@cache
@with_precision
def exp_tail_error(source: Source, reduction: Reduction) -> float:
    """|1 + r + r^2 (1/2 + r P(r)) - e^r| on the reduced arguments, by Sollya and by balls."""
    table, edge = source.tables["fp_exp_tail"], reduction.edge
    by_sollya = programs.supnorm(f"1 + x * (1 + x * (0.5 + x * {programs.polynomial(table)}))", "exp(x)", -edge, edge)
    by_balls = largest(lambda r: real(reduction.series, {reduction.r: r}) + r + 1 - r.exp(), -edge, edge, 24)
    require(by_balls <= 2 * by_sollya, "Sollya and the balls must agree on the series of exp")
    return by_sollya


@with_precision
def expm1(source: Source) -> Iterator[Proved]:
    """fp_expm1 in ulps of the true value, for every k that occurs."""
    scaling(source)
    reduction = Reduction(source)
    approximation = exp_tail_error(source, reduction)
    x, value = variable("x"), variable("fp_expm1.value")
    run = source.run("fp_expm1", x, replace=("fp_expm1.r", "fp_exp_reduced.q", "fp_exp_reduced.shifted"))
    scope = {"x": x, "r": variable("fp_expm1.r"), "q": variable("fp_exp_reduced.q"),
             "shifted": variable("fp_exp_reduced.shifted"), "value": value}
    expect_result(run, "x == 0.0 ? x : x > 710.0 ? INFINITY : x < -60.0 ? -1.0 : fp_expm1_reduced(r, q, shifted)",
                  **scope)
    r_name = reduction.r.args[0]
    shift = source.constant("FP_SHIFT")
    # Below 2^-60 both q and e^r - 1 - r are below 2^-60 |r|.
    parts = list(pieces(-reduction.edge, -0.25, 2)) + list(binades(0.25, 2.0**-60, 2))
    parts = [*pieces(0.25, reduction.edge, 2), *parts, *((-b, -a) for a, b in parts if a > 0)]
    series = {part: evaluate(reduction.series, {r_name: Value(*part)}) for part in parts}
    worst = 0.5 + 2.0**-5  # what is smaller
    for k in range(-87, 1026):
        run = source.run("fp_expm1_reduced", variable("r"), variable("q"), k + shift,
                         replace=("fp_expm1_reduced.sum", "fp_expm1_reduced.low", "fp_expm1_reduced.total"))
        scope = {n: variable(f"fp_expm1_reduced.{n}") for n in ("sum", "low", "total")}
        base, inverse = 1.0 - 2.0**-k, 2.0**-k
        scope |= {"r": variable("r"), "q": variable("q"), "base": base, "inverse": inverse, "shifted": k + shift}
        expect(run, "fp_expm1_reduced.sum", "r + q", **scope)
        expect(run, "fp_expm1_reduced.low", "(r - sum) + q", **scope)
        expect(run, "fp_expm1_reduced.total", "base + sum", **scope)
        require(run.definitions["fp_expm1_reduced.inverse"] == inverse, "inverse must be 2^-k")
        expect_result(run, "fp_scale(total + (((base - total) + sum) + (low + ((1.0 - base) - inverse))), shifted)",
                      **scope)
        rest = (1.0 - base) - inverse
        lost = abs(Fraction(1) - Fraction(base) - Fraction(inverse) - Fraction(rest))
        c = reduction.remainder(abs(k))
        count = 12 if abs(k) < 3 else 2
        wide = [*pieces(-reduction.edge, 0.0, count), *pieces(0.0, reduction.edge, count)]
        for part in parts if k == 0 else wide:
            s = series[part] if k == 0 else evaluate(reduction.series, {r_name: Value(*part)})
            q = Value(s.low + c.low, s.high + c.high, s.error + c.error + 0.5 * math.ulp(s.size + c.size))
            total_size = abs(base) + max(map(abs, part)) + q.size
            low_size, carry = 0.5 * math.ulp(max(map(abs, part)) + q.size), 0.5 * math.ulp(total_size) if base else 0.0
            # sum + low and total + its rest are exact where the first term is the larger one; q may exceed r below
            # 2^-20, where everything is small.
            error = q.error + (0.0 if k == 0 or part[0] * part[1] > 0.0 else 2.0**-70)
            error += float(lost) + 0.5 * math.ulp(low_size + abs(rest)) + 0.5 * math.ulp(carry + low_size + abs(rest))
            r = ball(*part)
            error += (c.size * upper(r.exp() - 1) + c.size**2)
            error += approximation if k else min(approximation, _tail_error(source, part))
            y = r.expm1() if k == 0 else r.exp() - arb(2) ** -k
            y = y + ball(-c.size, c.size) * 2
            worst = max(worst, rounded(error / ulp_at(y) * UP))
    yield Proved(HEADER, "fp_expm1", r"fp_expm1 ([\d.]+)", worst, "ulps of the true value")


def _tail_error(source: Source, part: tuple[float, float]) -> float:
    """|r^3 (P(r) - its limit)| on a piece of the small arguments: what is lost is relative to r^3."""
    table = source.tables["fp_exp_tail"]
    size = max(map(abs, part))
    r = arb(0, size)
    differences = [arb(table[n] if n < len(table) else 0.0) - 1 / arb(math.factorial(n + 3)) for n in range(30)]
    return upper(horner(differences, r) + arb(0, 1e-30)) * size**3 * UP


# ------------------------------------------------------------------------------------------------ log and log1p


@cache
def _log_exponents(source: Source) -> None:
    """fp_log_exponent splits normal u > 0 as m 2^k with m in [sqrt(1/2), sqrt(2)), to an ulp, for every k.

    It is monotone in the bits of u, so the two ends of each k are enough, and so is f + 1 = m there.
    """
    cut = 0x3FE6A09E667F3BCD
    require(bool(arb(double_of(cut - 1)) ** 2 < 0.5) and bool(arb(double_of(cut + 1)) ** 2 > 0.5),
            "the cut must be sqrt(1/2), to an ulp")
    for k in range(-1022, 1025):
        ends = [max(cut + (k << 52), bits_of(2.0**-1022)), min(cut + ((k + 1) << 52), bits_of(math.inf)) - 1]
        for bits in ends if ends[0] <= ends[1] else []:
            u = double_of(bits)
            exponent = source.run("fp_log_exponent", u).result
            require(isinstance(exponent, Bits) and exponent == 1024 + k, f"fp_log_exponent of {u.hex()} must be {k}")
            m = double_of(bits_of(u) - ((exponent - 1024) << 52))
            require(Fraction(m) * Fraction(2) ** k == Fraction(u), "the mantissa of a logarithm")


DIFFERENCE = Node("-", (variable("a"), variable("b")))


@with_precision
def evaluates(source: Source, table: str) -> None:
    """fp_polynomial on a table must be, in real arithmetic, the polynomial with the coefficients of this table."""
    coefficients, x = source.tables[table], variable("x")
    terms = len(coefficients)
    ctx.cap = terms + 1
    series = real(source.run("fp_polynomial", x, coefficients, terms).result, {x: arb_series([0, 1], terms + 1)})
    require(all(series[i] == arb(c) for i, c in enumerate(coefficients)) and series[terms] == 0,
            f"fp_polynomial must evaluate {table}")


class Assembly:
    """fp_log_assembled on f and small: T = (half - (s (half + tail) + (k FP_LN2_LO + small))) - f."""

    def __init__(self, source: Source) -> None:
        evaluates(source, "fp_log_tail")
        f, small = variable("f"), variable("small")
        names = ("k", "s", "half")
        self.run = source.run("fp_log_assembled", Bits(1024), variable("less"), f, small,
                              replace=("fp_log_assembled.k",))
        scope = {"f": f, "small": small, "k": variable("fp_log_assembled.k"), "less": variable("less")}
        for n in ("s", "half", "tail", "z"):
            scope[n] = self.run.definitions[f"fp_log_assembled.{n}"]
        del names
        expect(self.run, "fp_log_assembled.s", "f / (2.0 + f)", **scope)
        expect(self.run, "fp_log_assembled.half", "0.5 * f * f", **scope)
        expect(self.run, "fp_log_assembled.tail", "z * fp_polynomial(z, fp_log_tail, 7)", **scope)
        expect_result(self.run,
                      "k * FP_LN2_HI - ((half - (s * (half + tail) + (k * FP_LN2_LO + small))) - f)", **scope)
        self.k = scope["k"]
        self.before = self.run.result.args[1]
        self.lead = self.run.result.args[0]
        self.source = source
        for exponent in (0, 1, 2046, 2047, 1024):  # k is exact: an integer below 2^12 beside 2^52 + 1024
            for less in (0.0, 54.0, 60.0):
                done = source.run("fp_log_assembled", Bits(exponent), less, 0.0, 0.0)
                require(done.definitions["fp_log_assembled.k"] == exponent - 1024 - less, "k of a logarithm")
        self.log2_error = upper(arb(source.constant("FP_LN2_HI")) + arb(source.constant("FP_LN2_LO"))
                                - arb.const_log2())
        require((Fraction(source.constant("FP_LN2_HI")) * 2**32).denominator == 1, "FP_LN2_HI must have 32 bits")
        #: |P - its limit| on equal parts of 0 <= z <= 0.02944
        self.tail_errors = [largest(self._tail, 0.02944 * i / 32, 0.02944 * (i + 1) / 32, 1) for i in range(32)]

    def _tail(self, z: Any) -> Any:
        """P(z) - 2/3 - 2 z / 5 - ...; the series is cut at 2^-260 z^50."""
        exact = horner([arb(2) / (2 * n + 3) for n in range(50)], z)
        return horner(self.source.tables["fp_log_tail"], z) - exact + arb(0, 1e-70)

    def series_error(self, f: tuple[float, float]) -> float:
        """Error of f - half + s (half + z P(z)) as log(1 + f), in real arithmetic."""
        ends = sorted(abs(x / (2.0 + x)) for x in f)
        s = ends[1] * UP
        first = 0 if f[0] <= 0.0 <= f[1] else int(ends[0] ** 2 / 0.02944 * 32 * (1 - 2.0**-20))
        last = min(int(s * s / 0.02944 * 32), 31)
        return max(self.tail_errors[first : last + 1]) * s**3 * UP

    def error(self, k: tuple[float, float], f: tuple[float, float], small: Value) -> tuple[float, Value]:
        """Distance of k FP_LN2_HI - T from k log 2 + log(1 + f) + the ideal of small, and T."""
        inputs = {"f": _mantissa(f), "small": small, self.k.args[0]: Value(*k, 0.0, 0)}
        t = evaluate(self.before, inputs)
        lost = self.series_error(f) + max(map(abs, k)) * self.log2_error
        return (t.error + lost) * UP, t

    def _two_roundings(self, k: tuple[float, float], before: float, t: Value) -> Iterator[tuple[float, bool]]:
        """Errors of T, given that of its first operand, and True unless k FP_LN2_HI - T is exact.

        A T that exceeds 1/4 is rounded to multiples of 2^-54, of which a difference below 1/2 is one; a smaller T loses
        half as much. So the range of T is cut at +-1/4.
        """
        high = Value(*sorted(x * self.source.constant("FP_LN2_HI") for x in k), 0.0, -32)
        inside = math.nextafter(0.25, 0.0)
        for low, top in ((t.low, min(t.high, -0.25)), (max(t.low, -inside), min(t.high, inside)),
                         (max(t.low, 0.25), t.high)):
            if low <= top:
                part = Value(low, top)
                grid = math.frexp(part.least)[1] - 53 if part.least else None
                final = evaluate(DIFFERENCE, {"a": high, "b": Value(low, top, 0.0, grid)})
                yield before + 0.5 * math.ulp(part.size), bool(final.error)

    def gappa(self, k: tuple[float, float], f: tuple[float, float], small: Value) -> float:
        """The rounding error of T by Gappa, k FP_LN2_LO being within a binade of its largest."""
        return programs.rounding(self.before, {"f": f, "small": (small.low, small.high), self.k.args[0]: k})

    def ulps(self, k: tuple[float, float], f: tuple[float, float], small: Value, wrong: float = 0.0,
             scaled: tuple[float, float] = (0.0, 0.0)) -> float:
        """Error of the logarithm in ulps of the true value k log 2 + log(1 + f + scaled), which rises in all three."""
        error, t = self.error(k, f, small)
        ends = [k[i] * arb.const_log2() + (arb(f[i]) + arb(scaled[i])).log1p() for i in (0, 1)]
        require(bool(ends[0] > 0) or bool(ends[1] < 0), "a logarithm that changes its sign")
        ulp = min(ulp_at(y) for y in ends)
        if k == (0.0, 0.0):  # the last rounding is that of T: k FP_LN2_HI = 0
            inputs = {"f": _mantissa(f), "small": small, self.k.args[0]: Value(*k, 0.0, 0)}
            error = evaluate(self.before.args[0], inputs).error + self.series_error(f)
        else:
            d = evaluate(self.before.args[0], {"f": _mantissa(f), "small": small,
                                               self.k.args[0]: Value(*k, 0.0, 0)})
            rest = self.series_error(f) + max(map(abs, k)) * self.log2_error + small.error + wrong
            return max(rounded((error + rest) / ulp * UP) if last else (error + rest) / ulp * UP
                       for error, last in self._two_roundings(k, d.error, t))
        return rounded((error + small.error + wrong) / ulp * UP)


def _mantissa(f: tuple[float, float]) -> Value:
    """Range of f = m - 1, which is exact and a multiple of 2^-53."""
    return Value(*f, 0.0, grid_of(f[0]) if f[0] == f[1] else -53)


def _log_parts() -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    """Ranges of k and of f: k = 0 by binades of f, k = 1 and k = -1, and the others."""
    low, high = math.sqrt(0.5) * (1 - 2 * U) - 1.0, math.sqrt(2.0) * (1 + 2 * U) - 1.0
    for k in ((2.0, 1130.0), (-1200.0, -2.0), (1.0, 1.0), (-1.0, -1.0)):
        yield from ((k, part) for part in pieces(low, 0.0, 24))
        yield from ((k, part) for part in pieces(0.0, high, 24))
    yield from (((0.0, 0.0), part) for part in binades(high, U, 8))
    yield from (((0.0, 0.0), (-b, -a)) for a, b in binades(-low, U, 8))


@with_precision
def log(source: Source) -> Iterator[Proved]:
    """fp_log in ulps of the true value."""
    assembly = Assembly(source)
    by_sollya = programs.supnorm(f"x * (2 + x^2 * {programs.polynomial(source.tables['fp_log_tail'], '(x^2)')})",
                                 "log((1 + x) / (1 - x))", 2.0**-10, 0.171573)
    by_balls = max(assembly.series_error(f) for f in pieces(0.0, 0.41422, 64))
    require(0.8 * by_sollya <= by_balls <= 1.7 * by_sollya, "Sollya and the balls must agree on the series of log")
    yield Proved(HEADER, "fp_log_tail", r"the series of log less its first term, to (\S+)", by_balls,
                 "absolute error of log(1 + f)")
    _log_exponents(source)
    x = variable("x")
    run = source.run("fp_log", x, replace=("fp_log.tiny", "fp_log.u", "fp_log_exponent.result", "fp_log.exponent",
                                           "fp_log.f"))
    scope = {"x": x} | {n: variable(f"fp_log.{n}") for n in ("tiny", "u", "exponent", "f")}
    expect(run, "fp_log.tiny", "x < 0x1p-1022", **scope)
    expect(run, "fp_log.u", "tiny ? x * 0x1p54 : x", **scope)
    expect(run, "fp_log.exponent", "fp_log_exponent(u)", **scope)
    expect(run, "fp_log.f", "fp_double(fp_bits(u) - ((exponent - 1024) << 52)) - 1.0", **scope)
    value = "fp_log_assembled(exponent, tiny ? 54.0 : 0.0, f, 0.0)"
    expect_result(run, f"x < INFINITY ? (x < 0.0 ? NAN : (x == 0.0 ? -INFINITY : {value})) : x", **scope)
    special = [source.run("fp_log", float(x)).result for x in ("inf", "-inf", "nan", "0", "1", "5e-324")]
    require(special[0] == math.inf and special[1] != special[1] and special[2] != special[2]
            and special[3] == -math.inf and special[4] == 0.0 and abs(special[5] + 744.4400719213812) < 1e-12,
            "log of inf, nan, 0, 1 and the least number")
    none = Value(0.0, 0.0, 0.0, 1000)
    worst = max(assembly.ulps(k, f, none) for k, f in _log_parts())
    # Gappa on T, for the largest |k| and for k = 0 on a binade
    for k, f in (((2.0, 1130.0), (-0.2929, 0.0)), ((2.0, 1130.0), (0.0, 0.41422)), ((0.0, 0.0), (0.125, 0.25))):
        require(assembly.gappa(k, f, none) <= evaluate(
            assembly.before, {"f": _mantissa(f), "small": none, assembly.k.args[0]: Value(*k, 0.0, 0)}).error
            * 1.25, "Gappa and the running error analysis must agree")
    yield Proved(HEADER, "fp_log", r"fp_log ([\d.]+)", worst, "ulps of the true value")


def _log1p_parts() -> Iterator[tuple[tuple[float, float], ...]]:
    """Ranges of k, of f and of c 2^-k, which is at most half an ulp of m = 1 + f.

    Near u = 1 the two are of like size: there f is a multiple of 2^-53 (of 2^-52 above 1), and takes single values.
    """
    inside = 1.0 - 2.0**-52  # where u + c would be a tie, it rounds to the even one of its neighbours, 1
    for k, f in _log_parts():
        edge = U / 2 if f[1] <= 0.0 else U
        if k != (0.0, 0.0) or max(map(abs, f)) > 16 * U:
            yield k, f, (-edge, edge)
    for i in range(1, 17):
        for sign in (-1, 1) if i % 2 == 0 else (-1,):
            edge = U / 2 if sign < 0 else U
            yield (0.0, 0.0), (sign * i * U, sign * i * U), (-edge / 64, edge / 64)
            edge *= inside if i == (1 if sign < 0 else 2) else 1.0
            for low, high in binades(edge, edge / 64, 4):
                yield (0.0, 0.0), (sign * i * U, sign * i * U), (low, high)
                yield (0.0, 0.0), (sign * i * U, sign * i * U), (-high, -low)


@with_precision
def log1p(source: Source) -> Iterator[Proved]:
    """fp_log1p, and with it log(u + c) of fp_log_lifted for |c| <= ulp(u) / 2, in ulps of the true value."""
    _log_exponents(source)
    assembly = Assembly(source)
    x = variable("x")
    run = source.run("fp_log1p", x, replace=("fp_log1p.u", "fp_log1p.back", "fp_log_lifted.exponent",
                                             "fp_log_lifted.f", "fp_log_lifted.scaled", "fp_log_two.result"))
    lifted = {n: variable(f"fp_log_lifted.{n}") for n in ("exponent", "f", "scaled")}
    scope = {"x": x, "u": variable("fp_log1p.u"), "back": variable("fp_log1p.back"), "less": 0.0} | lifted
    expect(run, "fp_log1p.u", "1.0 + x", **scope)
    expect(run, "fp_log1p.back", "u - 1.0", **scope)
    scope["c"] = Execution(source).expression(tokens("(1.0 - (u - back)) + (x - back)"), scope)  # exact: Knuth's sum
    expect(run, "fp_log_lifted.exponent", "fp_log_exponent(u)", **scope)
    expect(run, "fp_log_lifted.f", "fp_double(fp_bits(u) - ((exponent - 1024) << 52)) - 1.0", **scope)
    expect(run, "fp_log_lifted.scaled", "u < 0x1p900 ? c * fp_double((2047 - exponent) << 52) : 0.0", **scope)
    value = "fp_log_assembled(exponent, 0.0, f, scaled * (1.0 - f + f * f))"
    expect_result(run, f"x < INFINITY ? (x < -1.0 ? NAN : x == -1.0 ? -INFINITY : x == 0.0 ? x : {value}) : x", **scope)
    for k in range(-1022, 901):
        require(double_of((2047 - (1024 + k)) << 52) == 2.0**-k, "the scale of c")
    special = [source.run("fp_log1p", float(x)).result for x in ("inf", "-inf", "nan", "-1", "0", "-5e-324")]
    require(special[0] == math.inf and special[1] != special[1] and special[2] != special[2]
            and special[3] == -math.inf and special[4] == 0.0 and special[5] == -5e-324, "the ends of log1p")
    small = Execution(source).expression(tokens("scaled * (1.0 - f + f * f)"), lifted)
    worst = 0.5 + 2.0**-9  # u = 1: the result is x, and |x - log1p(x)| <= x^2 / 2 (1 + |x|), |x| <= 2^-53
    for k, f, scaled in _log1p_parts():
        value_of = evaluate(small, {"fp_log_lifted.f": _mantissa(f), "fp_log_lifted.scaled": Value(*scaled)})
        size, edge = max(map(abs, f)), max(map(abs, scaled))
        wrong = edge * size**3 / (1.0 + f[0]) + 0.5 * (edge / (1.0 + f[0])) ** 2
        worst = max(worst, assembly.ulps(k, f, value_of, wrong * UP, scaled))
    yield Proved(HEADER, "fp_log1p", r"fp_log1p ([\d.]+)", worst, "ulps of the true value")


PROOFS = (exp, expm1, log, log1p)
