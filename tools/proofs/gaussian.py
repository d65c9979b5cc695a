"""The privacy curve of the Gaussian mechanism, csrc/gauss/fp_gauss.h, for plain r and epsilon (fp_gauss_is_regular).

Errors are counted in units of u = 2^-53. The pieces are boxes of u1 = 1 / (x1 + 9/2) and u2 = 1 / (x2 + 9/2), where x1
is |a| or a, and x2 is b. docs/proofs/gaussian.md has the theorem and what is counted by hand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from balls import upper, with_precision
from c_source import Execution, Source, tokens
from flint import arb
from rounding import Value, evaluate
from statements import Proved, U, expect, require, variable
from tables import mills_ratio, mills_series_errors

HEADER = "gauss/fp_gauss.h"
PARTS = 64  # of the range of u1 and of u2
EXP, LOG, LOG1P = 2 * 0.97, 2 * 0.98, 2 * 2.51  # of fp_exp, fp_log and fp_log1p, in units: the module elementary
SMALL = 0.06  # units: products of errors, and a^2 by its two parts (2^-90)


def read(root: Path) -> Source:
    """The header and what it includes."""
    return Source(root, "common/fp_error_free.h", "special/fp_elementary.h", "special/fp_erfc.h", HEADER)


class Curve:
    """Trees of F(t1) and of W = F(t1) - 8 u2 F[t1, t2], read from the source, and the true functions on boxes."""

    @with_precision
    def __init__(self, source: Source) -> None:
        function, out = "fp_gauss_evaluate_pairs", "fp_gauss_evaluate_pairs.out"
        names = ("c", "x1", "x2", "u1", "u2", "gap", "drop")
        run = source.run(function, variable("r"), 0.0, variable("epsilon"), 0.0,
                         replace=tuple(f"{function}.{n}" for n in names))
        scope: dict[str, Any] = {n: variable(f"{function}.{n}") for n in names} | {"r": variable("r")}
        for label, text in (("x2", "c + r"), ("u1", "1.0 / (x1 + 4.5)"), ("u2", "1.0 / (x2 + 4.5)"),
                            ("t1", "1.0 - 8.0 * u1"), ("t2", "1.0 - 8.0 * u2")):
            expect(run, f"{function}.{label}", text, **scope)
        self.value = run.definitions[f"{function}.value"]
        scope |= {"value": self.value, "divided": run.definitions[f"{function}.divided"]}
        expect(run, f"{function}.drop", "gap * u2 * u1 * (value - 8.0 * u2 * divided) * FP_INV_SQRT_2PI", **scope)
        expect(run, f"{out}.bulk", "2.0 * FP_INV_SQRT_2PI * u1 * value - drop", **scope)
        expect(run, f"{out}.tail", "drop > 1e-300 ? drop : 1e-300", **scope)
        self.difference = Execution(source).expression(tokens("value - 8.0 * u2 * divided"), scope)
        self.names = [f"{function}.u1", f"{function}.u2"]
        self.constant = upper(arb(source.constant("FP_INV_SQRT_2PI")) * (2 * arb.pi()).sqrt() - 1) / U
        series, slope = mills_series_errors(source)
        self.series, self.slope = series / U, slope / U
        variable_a, low = variable("a"), variable("a_low")
        run = source.run("fp_gauss_density", variable_a, low, replace=("fp_gauss_density.square",
                                                                       "fp_gauss_density.error"))
        expect(run, "fp_gauss_density.square", "a * a", a=variable_a)
        self.density = EXP + 1.0 + 1.0  # the exponential, 1 - error, and their product

    @staticmethod
    @cache
    @with_precision
    def ratio(x: float) -> Any:
        """R(x)."""
        return mills_ratio(arb(x)) if x < 1e6 else arb(0).union(1 / arb(1e6))

    @with_precision
    def least_difference(self, u1: tuple[float, float], u2: tuple[float, float]) -> float:
        """Lower bound of W = (R(x1) - R(x2)) / ((x2 - x1) u1 u2) on a box: the slope of R falls in x1 and in x2, and W
        is a mean of -R' (x + 9/2)^2 > (x + 9/2)^2 / (x^2 + 3), which falls from x = 2/3 on, to 1."""
        (x1, x1_far), (x2, x2_far) = ends(u1), ends(u2)
        least = (x2_far + 4.5) ** 2 / (x2_far**2 + 3.0) * (1.0 - 1e-12) if x1 > 1.0 and x2_far < 1e6 else 1.0
        if x2_far < 1e6:
            if x2_far > x1_far:
                slope = (self.ratio(x1_far) - self.ratio(x2_far)) / (arb(x2_far) - arb(x1_far))
            else:
                slope = 1 - arb(x1_far) * self.ratio(x1_far)
            least = max(least, float((slope / (arb(u1[1]) * arb(u2[1]))).lower()))
        if x1_far < x2:  # W = (R(x1) - R(x2)) / (u1 - u2)
            least = max(least, float(((self.ratio(x1_far) - self.ratio(x2)) / arb(u1[1])).lower()))
        return least

    def errors(self, u1: tuple[float, float], u2: tuple[float, float], gap: float) -> tuple[float, float]:
        """Relative errors of drop and of 2 R(x1) on a box, in units: x1 errs by a unit, x2 and each reciprocal by 2."""
        parts = [2.0 + max(abs(1.0 - 4.5 * u) for u in u1), 2.0 + 2.0 * max(abs(1.0 - 4.5 * u) for u in u2)]
        inputs = {name: Value(u[0], u[1], u[1] * part * U * 1.0001)
                  for name, u, part in zip(self.names, (u1, u2), parts, strict=True)}
        wide = evaluate(self.difference, inputs).error / self.least_difference(u1, u2) / U
        drop = wide + sum(parts) + gap + 4.0 + self.constant + self.slope
        least = float((self.ratio(ends(u1)[1]) / arb(u1[1])).lower()) if u1[0] > 1e-6 else 1.0  # F is at least 1
        value = evaluate(self.value, inputs).error / max(least, 1.0) / U
        return drop, value + parts[0] + 2.0 + self.constant + self.series


def ends(u: tuple[float, float]) -> tuple[float, float]:
    """Smallest and largest x of a piece of 1 / (x + 9/2)."""
    return 1.0 / u[1] - 4.5, 1.0 / u[0] - 4.5 if u[0] > 0.0 else math.inf


@with_precision
def gaussian(source: Source) -> Iterator[Proved]:
    """delta and log delta."""
    curve = Curve(source)
    root = float((2 * arb.pi()).sqrt().lower())
    delta = log_of_tail = bulk = 0.0
    edges = [0.25 * (1.0 - i / PARTS) for i in range(PARTS)] + [0.0]
    boxes = [((b, a), (d, c)) for i, (a, b) in enumerate(pairwise(edges)) for c, d in pairwise(edges[i:])]
    for u1, u2 in boxes:  # a >= -1/2: x1 is a, and b is at least |a|
        if ends(u2)[1] < 0.0:
            continue
        drop, _ = curve.errors(u1, u2, 0.0)
        log_of_tail = max(log_of_tail, drop)
        delta = max(delta, drop + curve.density + 1.0 + SMALL)
    edges = [0.2 * (1.0 - i / (2 * PARTS)) for i in range(2 * PARTS)] + [0.0]
    for i, (a, b) in enumerate(pairwise(edges)):  # a < -1/2: x1 is |a|
        x = ends((b, a))[0]
        if x > 39.0:  # 1 - delta is below the smallest double
            break
        for c, d in pairwise(edges[i:]):
            drop, twice = curve.errors((b, a), (d, c), 1.0)
            y, y_far = curve.ratio(x), curve.ratio(ends((d, c))[1]) if d > 0.0 else arb(0)
            whole = y + y_far  # of 2 R(x1) and R(x1) - R(x2), relative to R(x1) + R(x2)
            one, two = upper(2 * y / whole), upper((y - y_far) / whole)
            missing = min(upper((y + curve.ratio(ends((d, c))[0])) * math.exp(-0.5 * x * x) / root), 0.6171)
            error = (one * twice + two * drop + 1.0 + curve.density + 1.0 + SMALL) / (1.0 - missing)
            delta = max(delta, error * missing + 1.0)
            bulk = max(bulk, error * (missing / -math.log1p(-missing) if missing > 1e-9 else 1.0) + LOG1P)
    require(delta < 40.0, "delta must be good to 40 units")
    yield Proved(HEADER, "delta", r"relative error of delta, at most (\S+)", delta * U, "relative error")
    yield Proved(HEADER, "log delta, a >= -1/2, constant part", r"log delta where a >= -1/2: (\S+) and",
                 (log_of_tail + SMALL) * U, "absolute error")
    # log y, log_scale and a^2 / 2 have one sign, or log_scale is the largest: LOG and 1, 2 and 1 units of each
    yield Proved(HEADER, "log delta, a >= -1/2, part of itself", r"log delta where a >= -1/2: \S+ and (\S+) of it",
                 (LOG + 3.0 + SMALL) * U, "relative error")
    yield Proved(HEADER, "log delta, a < -1/2", r"log delta where a < -1/2, at most (\S+) of it", bulk * U,
                 "relative error")


PROOFS = (gaussian,)
