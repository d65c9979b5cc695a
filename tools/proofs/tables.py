"""Tables of csrc: every number against the function that it stands for, in balls of python-flint."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from balls import horner, largest, real, upper, with_precision
from c_source import Execution, Source, tokens
from flint import arb, arb_series, ctx
from rounding import Value, evaluate, half_ulp
from statements import Proved, U, expect, require, variable

SPECIAL = "special/"


def read(root: Path) -> Source:
    """The headers with tables."""
    return Source(root, "common/fp_constants.h", "common/fp_error_free.h", "special/fp_elementary.h",
                  "special/fp_erfc.h", "special/fp_dd_tables.h", "common/fp_vector_tables.h",
                  "special/fp_normal_tail_table.h", "special/fp_normal_tail.h", "gauss/fp_gauss.h",
                  "posterior/fp_posterior.h", "sampling/fp_normal_quantile_tables.h", "line/fp_gauss_legendre_tables.h")


def erfcx(x: Any) -> Any:
    """exp(x^2) erfc(x), of a ball or a series."""
    return (x * x).exp() * x.erfc()


def mills_ratio(x: Any) -> Any:
    """(1 - Phi(x)) / phi(x)."""
    root = arb(2).sqrt()
    return erfcx(x * (1 / root)) * (arb.pi() / 2).sqrt()


def _half_line(shape: Callable[[Any], Any], start: float, shift: float, function: Callable[[Any], Any],
               square: int, power: int = 1) -> float:
    """Relative error of r^power shape(r), r = 1 / (x + shift), as function(x), on x >= start.

    Up to x = 12 by Taylor models: the function is completely monotone, so that its n-th derivative is largest at the
    left end of a piece. Beyond, with y = 1/x, the function is y times its asymptotic series, cut after 40 terms, of
    which the next bounds what is left out (at most 1e-25 of the sum).
    """
    terms = 24

    def value(x: Any) -> Any:
        r = 1 / (x + shift)
        return r**power * shape(r)

    before, ctx.cap = (ctx.prec, ctx.cap), terms + 1
    ctx.prec = 600  # the derivatives of high order are differences

    least = 0.0

    def piece(low: Any, high: Any) -> tuple[float, Any, Any]:
        """Bound of the relative error on [low, high]."""
        half, centre = (high - low) / 2, ((low + high) / 2).mid()
        nonlocal least
        error = value(arb_series([centre, 1], terms + 1)) - function(arb_series([centre, 1], terms + 1))
        least = max(least, float((abs(error[0]) / function(centre)).lower()))
        rest = abs(value(arb_series([low.union(high), 1], terms + 1))[terms])
        rest += abs(function(arb_series([low, 1], terms + 1))[terms])
        size = sum((abs(error[n]) * half**n for n in range(terms)), arb(0)) + rest * half**terms
        return upper(size / function(high)), low, high

    ends = [arb(start)]
    while ends[-1] < 12:
        ends.append((ends[-1] + arb(1) / 16 if ends[-1] < 1 else ends[-1] * arb(17) / 16).mid())
    heap = [piece(low, high) for low, high in itertools.pairwise(ends)]
    while (worst := max(heap, key=lambda x: x[0]))[0] > 1.003 * least and worst[2] - worst[1] > 2.0**-14:
        heap.remove(worst)
        middle = ((worst[1] + worst[2]) / 2).mid()
        heap += [piece(worst[1], middle), piece(middle, worst[2])]
    ctx.prec, ctx.cap = before
    # square is 1 for 1/x sum (-1)^n (2n - 1)!! / x^2n, and 2 for that of 2 x^2 in the place of x^2; the power 2 is for
    # the slope, 1/x^2 sum (-1)^n (2n + 1)!! / x^2n
    coefficients = [arb(1)]
    for n in range(1, 40):
        coefficients.append(-coefficients[-1] * (2 * n + (-1 if power == 1 else 1)) / square)
    exact = arb(1) if square == 1 else 1 / arb.pi().sqrt()

    def far(r: Any) -> Any:
        y = r / (1 - shift * r)
        return shape(r) * (1 - shift * r) ** power / (exact * horner(coefficients, y * y)) - 1

    return max(worst[0], largest(far, 0, 1 / arb(12 + shift), 24, 16) + 1e-25)


@cache
@with_precision
def half_line_error(source: Source, name: str) -> float:
    """Relative error of fp_erfcx_table or fp_mills_table, with their rounded coefficients, on x >= 0."""
    table, erfcx_table = source.tables[name], name == "fp_erfcx_table"
    limit = source.constant("FP_INV_SQRT_PI") if erfcx_table else 1.0

    def shape(r: Any) -> Any:
        return horner(table, 1 - 8 * r) * r + limit

    return _half_line(shape, 0.0, 4.0, erfcx if erfcx_table else mills_ratio, 2 if erfcx_table else 1)


@cache
@with_precision
def mills_series_errors(source: Source) -> tuple[float, float]:
    """Relative errors of fp_mills_series, with rounded coefficients, as R, and of its slope as -R', on x >= -1/2.

    R is the integral of e^(-x t - t^2 / 2) over t > 0, and -R' that of t times this: both are completely monotone, and
    cutting the alternating series of e^(-t^2 / 2) errs by less than its next term.
    """
    series = source.tables["fp_mills_series"]
    slopes = [arb(c) * n for n, c in enumerate(series)][1:]
    value = _half_line(lambda u: horner(series, 1 - 8 * u), -0.5, 4.5, mills_ratio, 1)
    slope = _half_line(lambda u: horner(series, 1 - 8 * u) - 8 * u * horner(slopes, 1 - 8 * u), -0.5, 4.5,
                       lambda x: 1 - x * mills_ratio(x), 1, power=2)
    return value, slope


@with_precision
def half_lines(source: Source) -> Iterator[Proved]:
    """fp_erfcx_table, fp_mills_table and fp_mills_series with their rounded coefficients."""
    for name in ("fp_erfcx_table", "fp_mills_table"):
        yield Proved("special/fp_erfc.h", name,
                     r"erfcx on the half-line, to (\S+) relative" if "erfcx" in name else
                     r"the Mills ratio on the half-line, to (\S+) relative", half_line_error(source, name),
                     "relative error")
    value, slope = mills_series_errors(source)
    yield Proved("gauss/fp_gauss.h", "fp_mills_series", r"\(mills_series\), to (\S+) relative", value, "relative error")
    yield Proved("gauss/fp_gauss.h", "slope of fp_mills_series", r"its slope to (\S+) relative", slope,
                 "relative error")


def _wrong(parts: list[float], exact: Any) -> float:
    """Relative error of an unevaluated sum of doubles."""
    total = sum((arb(part) for part in parts), arb(0))
    return upper(total / exact - 1) if exact != 0 else upper(total)


@with_precision
def double_double(source: Source) -> Iterator[Proved]:
    """The tables of fp_dd_tables.h: every number, and the polynomials of the Mills ratio on their rows."""
    log2 = arb.const_log2()
    ln2, table = source.tables["FP_DD_LN2"], source.tables
    header = "special/fp_dd_tables.h"
    yield Proved(header, "FP_DD_LN2", r"log 2 in three doubles, to (\S+)", _wrong(ln2, log2), "relative error")
    worst = _wrong(table["FP_DD_INV_SQRT_2PI"], 1 / (2 * arb.pi()).sqrt())
    for name, parts in (("FP_DD_EXP_COARSE", 32), ("FP_DD_EXP_FINE", 1024)):
        require(len(table[name]) == 33, f"{name} must have 33 rows")
        for j, row in enumerate(table[name], -16):
            worst = max(worst, _wrong(row, (log2 * j / parts).expm1()))
    for name, first, parts in (("FP_DD_LOG_COARSE", 44, 64), ("FP_DD_LOG_FINE", 2022, 2048)):
        for i, (c, less, high, low) in enumerate(table[name], first):
            require(arb(c) - 1 == arb(less), f"{name} must hold c - 1 beside c")
            require(abs(c - parts / i) < 2.0**-12, f"{name} must hold reciprocals")
            worst = max(worst, _wrong([high, low], -arb(c).log()))
    yield Proved(header, "pairs", r"pairs of doubles, to (\S+) relative", worst, "relative error")
    yield Proved(header, "FP_DD_MILLS", r"the Mills ratio with its rounded coefficients, to (\S+) of itself",
                 max(_mills_row(source, i) for i in range(96)), "relative error")


def _mills_row(source: Source, i: int, terms: int = 40) -> float:
    """Relative error of a row's polynomial on the row; derivatives of R are largest at the left end."""
    pairs, degree = (int(source.macros[f"FP_DD_MILLS_{n}"]) for n in ("PAIRS", "DEGREE"))
    row = source.tables["FP_DD_MILLS"][i]
    octave = arb(2) ** (i // 16 - 1) if i >= 16 else arb(1)
    centre, half = (octave * (1 + arb(2 * (i % 16) + 1) / 32), octave / 32) if i >= 16 else (arb(2 * i + 1) / 32,
                                                                                             arb(1) / 32)
    before, ctx.cap = (ctx.prec, ctx.cap), terms + 1
    ctx.prec = 3000  # derivatives of order 40 at x = 32 are differences of much larger numbers
    exact = mills_ratio(arb_series([centre, 1], terms + 1))
    last = abs(mills_ratio(arb_series([centre - half, 1], terms + 1))[terms])
    differences = [
        exact[n] - (arb(row[2 * n]) + arb(row[2 * n + 1]) if n < pairs else arb(row[pairs + n]) if n <= degree else 0)
        for n in range(terms)
    ]
    error = arb(largest(lambda a: horner(differences, a), -half, half, 12, 24, 0)) + last * half**terms
    relative = upper(error / mills_ratio(centre + half))
    ctx.prec, ctx.cap = before
    return relative


@with_precision
def normal_tail(source: Source) -> Iterator[Proved]:
    """fp_normal_tail_table: Q(k/32) as a pair, phi(k/32) as 26 bits and a double."""
    rows = source.tables["fp_normal_tail_table"]
    require(len(rows) == 385, "the table must end at 12")
    worst = 0.0
    for k, (high, low, leading, rest) in enumerate(rows):
        z = arb(k) / 32
        tail = (z / arb(2).sqrt()).erfc() / 2
        density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
        require(math.ldexp(math.frexp(leading)[0], 26).is_integer(), "the leading part must have 26 bits")
        worst = max(worst, _wrong([high, low], tail), _wrong([leading, rest], density) / 2.0**26)
    yield Proved("special/fp_normal_tail_table.h", "fp_normal_tail_table",
                 r"Q to (\S+) of itself, phi to 2\^26 times that", worst, "relative error")


@with_precision
def normal_tail_sums(source: Source) -> Iterator[Proved]:
    """fp_normal_tail on each row: the tree of ``rest`` against Q in balls, and its roundings.

    ``lead`` is exact, and so is what ``tail.high`` loses, as |lead| is below the tail of the row. z = z0 + h + r, |r|
    <= 2^-53 |z|, where the slope is taken from z0 + h; the square of r counts as 2^-100 of Q(z) (1 + z^2).
    """
    name, worst, parts = "fp_normal_tail", 0.0, 32
    names, body = source.functions[name]
    index = tokens("fp_bits(shifted) & 0x1ff")
    places = [i for i in range(len(body)) if body[i : i + len(index)] == index]
    require(len(places) == 1, "a row is read once, at this index")
    labels = {n: f"{name}.{n}" for n in ("size", "rest_of_size", "point", "h", "h_high", "h_low")}
    variables = {n: variable(label) for n, label in labels.items()}
    scale = 1 / (2 * arb.pi()).sqrt()

    def tail(z: Any) -> Any:
        return (z * (1 / arb(2).sqrt())).erfc() / 2

    for k, row in enumerate(source.tables["fp_normal_tail_table"]):
        run = Execution(source, tuple(labels.values()))
        source.functions[name] = (names, [*body[: places[0]], str(k), *body[places[0] + len(index) :]])
        run.call(name, [variable("high"), variable("low")])
        source.functions[name] = (names, body)
        scope = {**variables, "row": row, "rest": run.definitions[f"{name}.rest"]}
        lead = expect(run, f"{name}.lead", "row[2] * h_high", **scope)
        expect(run, f"{name}.tail.high", "row[0] - lead", **scope, lead=lead)
        scope["tail"] = {"high": run.definitions[f"{name}.tail.high"]}
        expect(run, f"{name}.tail.low", "((row[0] - tail.high) - lead) + (row[1] - rest)", **scope, lead=lead)
        z0, (low, high) = k / 32, (-1 / 64 if k else 0.0, 1 / 64 if k < 384 else 0.0)

        def inputs(h: Any, z0: float = z0) -> dict[Any, Any]:
            zero = {variables[n]: 0 * h for n in ("h_low", "rest_of_size")}
            return {variables["point"]: 0 * h + z0, variables["h"]: h, **zero}

        def ideal(h: Any, row: Any = row, rest: Any = scope["rest"], z0: float = z0, inputs: Any = inputs) -> Any:
            z = z0 + h
            return (arb(row[0]) + arb(row[1]) - arb(row[2]) * h - real(rest, inputs(h)) - tail(z)) / (
                tail(z) * (1 + z * z))

        def slope(h: Any, row: Any = row, tree: Any = run.definitions[f"{name}.slope"], z0: float = z0,
                  inputs: Any = inputs) -> Any:
            z = z0 + h
            density = (-z * z / 2).exp() * scale
            return (real(tree, inputs(h)) * (arb(row[2]) + arb(row[3])) - density) * z / (tail(z) * (1 + z * z))

        rounded = 0.0
        for i in range(parts):
            first, last = low + (high - low) * i / parts, low + (high - low) * (i + 1) / parts
            size, moved = max(-first, last), U * max(abs(z0 + first), z0 + last)
            ranges = {"point": Value(z0, z0), "h": Value(first, last), "h_high": Value(first, last),
                      "h_low": Value(-size * 2.0**-25, size * 2.0**-25), "rest_of_size": Value(-moved, moved)}
            value = evaluate(scope["rest"], {labels[n]: x for n, x in ranges.items()})
            part, least, most = abs(row[1]) + value.size, tail(arb(z0 + last)), upper(tail(arb(z0 + first)))
            error = value.error + half_ulp(part) + half_ulp(half_ulp(1.01 * most) + part)
            near = arb(min(abs(z0 + first), abs(z0 + last)))
            rounded = max(rounded, upper(arb(error) / (least * (1 + near * near))))
        worst = max(worst, rounded + largest(ideal, low, high, 2, 18, 40) + U * largest(slope, low, high, 1, 10, 6))
    error = worst + 2.0**-100
    require(error <= source.constant("FP_NORMAL_TAIL_ERROR"), "FP_NORMAL_TAIL_ERROR must be the error of the tail")
    yield Proved("special/fp_normal_tail.h", name, r"the tail is right to (\S+) of", error, "relative error")


@with_precision
def vector(source: Source) -> Iterator[Proved]:
    """Tables of the vector exponential and logarithm, and of information."""
    header, table, log2 = "common/fp_vector_tables.h", source.tables, arb.const_log2()

    def power(f: Any) -> Any:
        return (f * log2).exp()

    yield Proved(header, "fp_exp2_polynomial", r"2\^f, \|f\| <= 1/2, to (\S+)",
                 largest(lambda f: horner(table["fp_exp2_polynomial"], f) / power(f) - 1, -0.5, 0.5, 48),
                 "relative error")
    yield Proved(header, "fp_exp2_table_polynomial", r"2\^f to (\S+)",
                 largest(lambda f: (1 + f * horner(table["fp_exp2_table_polynomial"], f)) / power(f) - 1,
                         -1 / 32, 1 / 32, 32), "relative error")
    worst = max(_wrong([x], (log2 * j / 16).exp()) for j, x in enumerate(table["fp_exp2_table"]))
    worst = max(worst, *(_wrong([x], -arb(c).log()) for c, x in zip(table["fp_log_reciprocals"], table["fp_log_table"],
                                                                     strict=True)))
    yield Proved(header, "fp_exp2_table, fp_log_table", r"2\^\(j/16\) and of -log c to (\S+) of themselves", worst,
                 "relative error")
    yield Proved(header, "fp_log_table_polynomial", r"log\(1 \+ r\) to (\S+)",
                 largest(lambda r: r + r * r * horner(table["fp_log_table_polynomial"], r) - (1 + r).log(),
                         -1 / 32, 1 / 16, 48), "absolute error")
    c = table["fp_information_series"]
    exact = [1 / arb(math.factorial(n) * (n + 2)) for n in range(40)]
    # (u e^u - e^u + 1) / u^2 = sum over n of u^n / (n! (n + 2)); it is at least 0.26 on |u| <= 1
    yield Proved(header, "fp_information_series", r"to (\S+) of itself",
                 largest(lambda u: (horner(c, u) - horner(exact, u)) / horner(exact, u), -1, 1, 48) + 1e-40,
                 "relative error")


@with_precision
def normal_quantile(source: Source) -> Iterator[Proved]:
    """fp_normal_pieces and fp_normal_tail: relative error of z with P(|Z| > z) = w, from the residual of log w.

    d log P(|Z| > z) / dz = -2 phi / P is at most -h at the smaller of two z, h the hazard rate, which rises.
    """
    header, worst = "sampling/fp_normal_quantile_tables.h", 0.0
    root = arb(2).sqrt()

    def hazard(z: Any) -> Any:
        return 1 / mills_ratio(z)

    def piece(residual: Callable[[Any], Any], z_of: Callable[[Any], Any], low: Any, high: Any, count: int) -> float:
        error = 0.0
        for i in range(count):
            a, b = low + (high - low) * i / count, low + (high - low) * (i + 1) / count
            z = min(float(z_of(a).lower()), float(z_of(b).lower())) * (1 - 1e-9)
            error = max(error, largest(residual, a, b, 1, 14, 0) / float((hazard(arb(z)) * z).lower()))
        return error * (1 + 1e-9)

    for i in range(16):
        column = [row[i] for row in source.tables["fp_normal_pieces"]]
        octave = i // 2 - 7 if i // 2 != 7 else -8  # 1023 + e = octave modulo 8
        scale, low = arb(2) ** octave, 1 + arb(i % 2) / 2
        require((1023 + octave) % 8 == i // 2, "the order of the pieces")

        def z_of(m: Any, column: list[float] = column, scale: Any = scale, low: Any = low) -> Any:
            return (1 - m * scale) * horner(column, m - low - 0.25)

        def residual(m: Any, z_of: Callable[[Any], Any] = z_of, scale: Any = scale) -> Any:
            return (z_of(m) * (1 / root)).erfc().log() - (m * scale).log()

        end = low + 0.5
        if octave == -1 and i % 2 == 1:  # w = 1 at the end: there z is v p, v = 1 - w, and the residual is divided by v
            end = arb(2) - arb(2) ** -6
            series = arb_series([0, 1], 12)
            before, ctx.cap = ctx.cap, 12

            def near(v: Any, column: list[float] = column) -> Any:
                return (v * horner(column, 0.25 - 2 * v) * (1 / root)).erfc().log() - (1 - v).log()

            v, point = arb(2) ** -7, near(series)
            whole = near(arb_series([arb(0).union(v), 1], 12))
            size = sum((abs(point[n]) * v ** (n - 1) for n in range(1, 11)), arb(0)) + abs(whole[11]) * v**10
            slope = horner(column, arb(0.25) - 2 * arb(0).union(v)) * hazard(arb(0))
            worst = max(worst, upper(size / slope))
            ctx.cap = before
        worst = max(worst, piece(residual, z_of, low, end, 200))
    yield Proved(header, "fp_normal_pieces", r"halves of octaves, to (\S+) of it", worst, "relative error")
    tail, middle = source.tables["fp_normal_tail"], source.constant("FP_TAIL_MIDDLE")

    def far(r: Any) -> Any:
        return horner(tail, r - middle) / r

    def far_residual(r: Any) -> Any:
        return (far(r) * (1 / root)).erfc().log() + 1 / (r * r)

    ends = [1 / (bits * arb.const_log2()).sqrt() for bits in (53, 8)]
    yield Proved(header, "fp_normal_tail", r"the tail of w below 2\^-8, to (\S+)",
                 piece(far_residual, far, ends[0].mid(), ends[1].mid(), 600), "relative error")


@with_precision
def posteriors(source: Source) -> Iterator[Proved]:
    """Polynomials of the posterior near y = 0: tanh(y / 2) and the divergence of two coins."""
    header, table = "posterior/fp_posterior.h", source.tables

    def tanh(y: Any) -> Any:
        return (y.exp() - 1) / (y.exp() + 1)

    yield Proved(header, "fp_tanh_tail", r"tanh less its first term, to (\S+)",
                 largest(lambda y: y / 2 + y**3 * horner(table["fp_tanh_tail"], y * y) - tanh(y), -0.5, 0.5, 24),
                 "absolute error")
    q = upper((-arb(0.5)).exp() / (2 + (-arb(0.5)).exp()))
    yield Proved(header, "fp_atanh_tail", r"log\(1 \+ e\^-\|y\|\), to (\S+)",
                 largest(lambda x: 2 * x + x**3 * horner(table["fp_atanh_tail"], x * x) - ((1 + x) / (1 - x)).log(),
                         0, q, 24), "absolute error")
    before, ctx.cap = ctx.cap, 44
    y = arb_series([0, 1], 44)
    divergence = y / 2 * tanh(y) - (((y / 2).exp() + (-y / 2).exp()) / 2).log()
    exact = [divergence[n + 2] for n in range(41)]
    ctx.cap = before
    # On |y| = 2 the divergence is below 4, so that its coefficients are below 4 / 2^n, and those left out below 1e-24.
    yield Proved(header, "fp_divergence_tail", r"the divergence of two coins near 0, to (\S+)",
                 largest(lambda y: (horner(table["fp_divergence_tail"], y * y) - horner(exact, y)) / horner(exact, y),
                         -0.5, 0.5, 24) + 1e-22, "relative error")


@with_precision
def legendre(source: Source) -> Iterator[Proved]:
    """Nodes, with what rounding took from them, and weights of the Gauss-Legendre rules."""
    nodes = weights = 0.0
    for n in (8, 16, 24, 32):
        table = [source.tables[f"fp_legendre_{name}_{n}"] for name in ("nodes", "tails", "weights")]
        require(all(len(part) == n for part in table), "a rule must have as many nodes as its name says")
        for k, (node, tail, weight) in enumerate(zip(*table, strict=True)):
            root, exact = arb.legendre_p_root(n, k, weight=True)
            nodes, weights = max(nodes, _wrong([node, tail], root)), max(weights, _wrong([weight], exact))
    header = "line/fp_gauss_legendre_tables.h"
    yield Proved(header, "fp_legendre_nodes, fp_legendre_tails", r"with its tail to (\S+) of itself", nodes,
                 "relative error")
    yield Proved(header, "fp_legendre_weights", r"a weight to (\S+) of itself", weights, "relative error")


PROOFS = (half_lines, double_double, normal_tail, normal_tail_sums, vector, normal_quantile, posteriors, legendre)
