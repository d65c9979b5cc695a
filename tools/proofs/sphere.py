"""The polynomials of csrc/special/fp_sphere.h, by the differential equation of G: no Bessel function is computed.

Notation of the header, and c = a / b, y = 1 / b. t = (log G)' solves t' + t^2 + (d - 1) t / x = 1. The slope that
belongs to the stored Q, T = x / (a + s) + (x / s) (1 - p) p^2 S y with S = 2 Q - (1 - p) Q', leaves p^2 (1 - p) y W
(theorem 6.6 of docs/proofs/awgn.md). Where 2 D L - 2 D' p^2 (1 - p^2) y >= |W|, |T - t| <= 2 D (1 - p) p^2 (x / s) y,
and log G is off by the integral of this. For d >= 16, W is a polynomial of p and r over (1 + c p)^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from balls import horner, upper, with_precision
from c_source import Source
from flint import arb, arb_poly, fmpq, fmpq_poly
from statements import Proved, require

HEADER = "special/fp_sphere.h"
STRIDE = 256  # r^j q^i is X^(i + STRIDE j)
CELLS = 128  # of p
Errors = tuple[float, float]


def read(root: Path) -> Source:
    """The header with the tables."""
    return Source(root, "special/fp_sphere_tables.h")


def residual(p: Any, s: Any, ds: Any, c: Any, y: Any, one: Any) -> Any:
    """W (1 + c p)^2, of numbers or polynomials; ``ds`` is dS/dp."""
    g = one + c * p
    square = g * g
    linear = 2 * (one - p * p) * g + (2 * c * p + (4 * p * p * p + p * p - 2 * p) * y) * square
    rest = (one - p * p) * (one - p) * p * p * s * s * y - (one + p) * p * p * (one - p) * ds * y
    return s * linear + rest * square - one


def damping(p: Any, s: Any, c: Any, y: Any) -> float:
    """Lower bound of L."""
    both = 2 / (1 + c * p) + (1 - p) * p * p * s * y
    return float(((1 - p * p) * both + 2 * c * p + (4 * p * p * p + p * p - 2 * p) * y).lower())


def slopes(values: list[Any], low: Any, high: Any) -> list[Any]:
    """Coefficients of S for those of Q in q, p = low .. high for q = -1 .. 1."""
    ratio = (2 - low - high) / (high - low)
    return [(2 + i) * values[i] - (ratio * (i + 1) * values[i + 1] if i + 1 < len(values) else 0)
            for i in range(len(values))]


def _size(polynomial: arb_poly, middle: Any, half: Any) -> Any:
    """Bound of a polynomial on an interval: the sum of the sizes of its Taylor terms."""
    return sum((abs(x) for x in polynomial(arb_poly([middle, half])).coeffs()), arb(0))


class Barrier:
    """The function D, from p = 1 downwards, and what follows from it."""

    def __init__(self) -> None:
        self.d, self.area, self.slope = 0.0, arb(0), 0.0

    def cross(self, low: Any, high: Any, w: float, least: float, y: Any) -> None:
        """Go from ``high`` down to ``low``, where |W| <= w and L >= least: 2 D L - 2 D' p^2 (1 - p^2) y >= |W|."""
        limit, p = w / (2 * least), low.union(high)
        inertia, step = p * p * (1 - p * p) * y, (high - low) * least
        size = inertia.lower() if self.d < limit else inertia.upper()
        kept = (-step / size).exp() if size > 0 else arb(0)
        end = upper(limit + (self.d - limit) * kept)
        largest = max(self.d, end)
        self.area += largest * ((1 - low) ** 2 - (1 - high) ** 2)
        self.slope = max(self.slope, upper(2 * largest * (1 - p) * p * p * (1 + p) * y))
        self.d = end

    def result(self) -> Errors:
        """Bounds of |log G - A - (1 - p)^2 Q| / (1 - p)^2 and of |T - t| / t, as t >= (x / s) / (1 + p)."""
        return upper(self.area), self.slope


def _cells() -> Iterator[tuple[Any, Any]]:
    """Parts of [-1, 1] from its end to its beginning, fine at both."""
    ends = [(arb.pi() * i / CELLS).cos().mid() for i in range(1, CELLS)]
    return pairwise([arb(1), *ends, arb(-1)])


def _of_dimension(row: list[float], cut: Any, d: int) -> Errors:
    """Errors for one d < 16."""
    y, count, at_cut, barrier, one = arb(2) / (d + 1), len(row) // 2, [], Barrier(), arb_poly([1])
    for values, low, high in ((row[count:], cut, arb(1)), (row[:count], arb(0), cut)):
        half, middle = (high - low) / 2, (low + high) / 2
        value = [arb(v) for v in values]
        s = arb_poly(slopes(value, low, high))
        w = residual(arb_poly([middle, half]), s, s.derivative() * (1 / half), 1 - y, y, one)
        end = arb(1) if at_cut else arb(-1)
        at_cut.append((horner(value, end), s(end)))
        if len(at_cut) == 2:
            jump, bend = (abs(x - z) for x, z in zip(*at_cut, strict=True))
            barrier.d, barrier.area = upper(barrier.d + bend / 2), barrier.area + jump
        for right, left in _cells():
            q = left.union(right)
            least = damping(middle + half * q, s(q), 1 - y, y)
            size = upper(_size(w, (left + right) / 2, (right - left) / 2))
            barrier.cross(middle + half * left, middle + half * right, size, least, y)
    return barrier.result()


def _shares(source: Source) -> tuple[list[arb_poly], list[list[Any]]]:
    """W (1 + c p)^2 as polynomials of q for each Chebyshev polynomial of r; S as rows of powers of r."""
    table = source.tables["fp_sphere_high"]
    flat = [fmpq(0)] * (STRIDE * len(table[0]))
    for i, row in enumerate(table):
        for j, value in enumerate(row):
            exact = Fraction(value)
            flat[i + STRIDE * j] = fmpq(exact.numerator, exact.denominator)

    def derivative(f: fmpq_poly) -> fmpq_poly:
        terms = f.coeffs()
        return fmpq_poly([(k + 1) % STRIDE * v for k, v in enumerate([*terms[1:], 0])])

    one, p = fmpq_poly([1]), fmpq_poly([1, 1]) / 2
    y = (fmpq_poly([0] * STRIDE + [1]) + 1) / (int(source.constant("FP_SPHERE_HIGH_FROM")) + 1)
    q_of = fmpq_poly(flat)
    s = 2 * q_of - (one - p) * 2 * derivative(q_of)
    terms = residual(p, s, 2 * derivative(s), one - y, y, one).coeffs()
    powers = [terms[k : k + STRIDE] for k in range(0, len(terms), STRIDE)]
    columns = [_chebyshev([row[i] if i < len(row) else fmpq(0) for row in powers]) for i in range(STRIDE)]
    width = max(map(len, columns))
    shares = [arb_poly([column[j] if j < len(column) else 0 for column in columns]) for j in range(width)]
    return shares, [s.coeffs()[k : k + len(table)] for k in range(0, STRIDE * len(table[0]), STRIDE)]


def _chebyshev(powers: list[Any]) -> list[Any]:
    """Coefficients by Chebyshev polynomials, from those by powers."""
    result: list[Any] = []
    for a in reversed(powers):
        shifted = [fmpq(0)] * (len(result) + 1)
        for k, v in enumerate(result):
            for place in (k + 1, abs(k - 1)):
                shifted[place] += v / 2
        result = [shifted[0] + a, *shifted[1:]]
    return result


def _of_high_dimensions(source: Source) -> Errors:
    """The same for all d >= 16, with the exact polynomials of r."""
    shares, rows = _shares(source)
    parts, barrier = 8, Barrier()
    first = int(source.constant("FP_SPHERE_HIGH_FROM")) + 1
    for right, left in _cells():
        bound = sum((_size(share, (left + right) / 2, (right - left) / 2) for share in shares), arb(0))
        q, least = left.union(right), float("inf")
        for k in range(parts):
            r = arb(2 * k + 1, 1) / parts - 1
            y = (1 + r) / first
            s = horner([horner(row, q) for row in rows], r)
            least = min(least, damping((1 + q) / 2, s, 1 - y, y))
        barrier.cross((1 + left) / 2, (1 + right) / 2, upper(bound), least, arb(0).union(arb(2) / first))
    return barrier.result()


def _sums(source: Source, cut: Any) -> Iterator[tuple[Any, Any]]:
    """For Q and S of every piece: the sum over i of (5 [i / 4] + 6) |c_i|, and the largest |dQ/dp| and |dS/dp|."""
    tables = source.tables
    for row in (*tables["fp_sphere_low"], *tables["fp_sphere_middle"]):
        half = len(row) // 2
        for values, low, high in ((row[:half], arb(0), cut), (row[half:], cut, arb(1))):
            value = [arb(v) for v in values]
            for terms in (value, slopes(value, low, high)):
                bend = arb_poly(terms).derivative() * (2 / (high - low))
                largest = max(upper(_size(bend, (x + z) / 2, (x - z) / 2)) for x, z in _cells())
                yield sum((5 * (i // 4) + 6) * abs(c) for i, c in enumerate(terms)), largest
    value = [sum((abs(arb(v)) for v in row), arb(0)) for row in tables["fp_sphere_high"]]  # for all r
    for terms in (value, [(2 + i) * c + (i + 1) * after for i, (c, after) in enumerate(pairwise([*value, arb(0)]))]):
        yield (sum((5 * (i // 4) + 6) * abs(c) for i, c in enumerate(terms)),
               2 * upper(sum(i * abs(c) for i, c in enumerate(terms))))


@with_precision
def sphere(source: Source) -> Iterator[Proved]:
    """The polynomials of log G and of its slope."""
    cut, tables = arb(source.constant("FP_SPHERE_CUT")), source.tables
    rows = [*tables["fp_sphere_low"], *tables["fp_sphere_middle"]]
    errors = [_of_dimension(row, cut, d) for d, row in enumerate(rows, 2)]
    for i, (steps, bend) in enumerate(_sums(source, cut)):  # with which theorem 6.6 counts roundings
        require(upper(steps) <= (1.5, 7.7)[i % 2] and bend <= (0.36, 1.2)[i % 2], f"sums of piece {i}: {steps}, {bend}")
    for name, these in (("d < 16", errors), ("d >= 16", [_of_high_dimensions(source)])):
        yield Proved(HEADER, f"log G, {name}", rf"the logarithm, {name}: (\S+) \(1 - p\)\^2", max(e[0] for e in these),
                     "error of the polynomial")
        yield Proved(HEADER, f"slope, {name}", rf"the slope, {name}: (\S+) relative", max(e[1] for e in these),
                     "error of the polynomial")


PROOFS = (sphere,)
