"""Proved integrals of functions of Gaussian mixture densities.

A panel is integrated by ``acb.integral`` (Gauss-Legendre rules with error bounds from balls on Bernstein ellipses). The
density of a mixture on a ball z is held as exp(a(z)) S(z), where a is the exponent of the largest term at the middle
of z: S is near 1 on the real line, log S is analytic wherever the ball S(z) avoids (-inf, 0], and ``acb.log`` is told
to check. What lies outside the panels is bounded in closed form by the caller (``tail``).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from flint import acb, arb, ctx

from oracles.crossings import FIRST_PRECISION, LAST_PRECISION, Precision, exact, square, working_precision

__all__ = ["Density", "gaussian_tail", "proved_integral", "to_accuracy"]

_PROBES = (0.11, 0.39, 0.5, 0.72, 0.93)
_REACHES = (10, 13, 17, 23, 32, 45, 64, 90, 128, 180, 256)


@dataclass
class Density:
    """sum_k w_k N(x; m_k, s_k^2) at the working precision; ``rows`` holds balls (w, m, s, log(w / (s sqrt(2 pi))),
    rate)."""

    rows: list

    @classmethod
    def of(cls, measure):
        """From a map (mean, sigma) -> exact weight."""
        rows = []
        for (mean, sigma), weight in sorted(measure.items()):
            w, m, s = exact(weight), exact(mean), exact(sigma)
            rows.append((w, m, s, (w / s).log() - (2 * arb.pi()).log() / 2, 1 / (2 * s * s)))
        return cls(rows)

    def at(self, x0, h, wide):
        """Exponent a and sum S on the ball x0 + h; x0 is exact and real."""
        parts = [(c - square(x0 - m) * rate, -2 * (x0 - m) * rate, -rate) for _, m, _, c, rate in self.rows]
        e0, l0, q0 = max(parts, key=lambda part: part[0].mid())
        total = acb(0)
        for e, v, q in parts:
            total += _quadratic(e - e0, v - l0, q - q0, h, wide).exp()
        if wide:  # real: the leading term is exactly 1, all others are positive
            total = acb((total.real - 1).nonnegative_part() + 1)
        return _quadratic(e0, l0, q0, h, wide), total

    def top(self):
        """An upper bound of the density."""
        return sum((w / s for w, _, s, _, _ in self.rows), arb(0)) / (2 * arb.pi()).sqrt()

    def widest(self):
        return max(self.rows, key=lambda row: float_of(row[2]))


def _quadratic(e, v, q, h, wide):
    if not wide:
        return e + (v + q * h) * h
    r = abs(h.real).upper()
    spread, bend = abs(v) * r, q * r * r
    low, high = e - spread, e + spread
    if q > 0:
        high = high + bend
    else:
        low = low + bend
        high = (
            e - v * v / (4 * q)
            if q < 0 and abs(v) < -2 * q * r
            else high + (bend if q < 0 and abs(v) >= -2 * q * r else 0)
        )
    return acb(low.union(high))


def split(z):
    """An exact real centre of the ball z, the rest, and whether z is a real interval of some width."""
    x0 = z.real.mid()
    h = z - x0
    wide = bool(z.imag.is_zero()) and h.real.rad() > arb(2) ** -(ctx.prec // 2) * (1 + abs(x0))
    return x0, h, wide


class Reach(ArithmeticError):
    """The panels end too early."""


def proved_integral(f, cuts, bits, tail, outside=0):
    """The ball of the integral of f from the first to the last cut, plus ``outside``, plus or minus ``tail``.

    The radius is about 2^-bits of the value. ``outside`` is a ball computed elsewhere, ``tail`` an upper bound.
    f(z, analytic) must be non-negative on the line. A few points of every panel tell which panels matter, what
    accuracy to ask of them, and whether rounding alone would spoil it; the proof does not rest on these points.
    """
    panels = list(pairwise(cuts))
    sizes, noise = [], arb(0)
    for a, b in panels:
        values = [f(acb((a + (b - a) * where).mid()), False).real for where in _PROBES]
        if not all(value.is_finite() for value in values):
            raise Precision
        sizes.append(max((value.abs_upper() for value in values), key=lambda x: x) * (b - a).upper())
        noise += max((value.rad() for value in values), key=lambda x: x) * (b - a)
    guess, goal = (sum(sizes, arb(0)) + abs(arb(outside))).mid(), arb(2) ** -bits
    if noise + arb(outside).rad() > guess * goal:
        raise Precision
    if not tail < guess * goal:
        raise Reach
    total, tolerance = outside + arb(0, 1) * tail.upper(), (guess * goal / (16 * len(panels))).mid()
    for i in sorted(range(len(panels)), key=lambda i: sizes[i].mid(), reverse=True):
        part = acb.integral(f, *panels[i], rel_tol=goal, abs_tol=tolerance, eval_limit=20_000).real
        if not part.is_finite():
            raise Precision
        total += part
    return total


def cut_points(densities, left, right, marks=(0, 2.5, 7), extra=()):
    """Sorted exact cuts of [left, right] at mean + k sd of every component, none much closer than the parts beside
    it."""
    points = list(extra)
    for density in densities:
        for _, m, s, _, _ in density.rows:
            points += [(m + side * k * s).mid() for k in marks for side in (-1, 1)]
    smallest = min((row[2] for density in densities for row in density.rows), key=float_of)
    inside = sorted((x for x in points if left < x and x < right), key=lambda x: x)
    cuts = [left]
    for x in inside:
        if x - cuts[-1] > smallest and right - x > smallest:
            cuts.append(x)
    return [*cuts, right]


def gaussian_tail(row, edge, side, constant=1, square=0):
    """Integral beyond ``edge`` of w N(x; m, s^2) (constant + square u^2), u = (x - m)/s."""
    w, m, s, _, _ = row
    u = side * (edge - m) / s
    mass = (u / arb(2).sqrt()).erfc() / 2
    return w * (constant * mass + square * (u * (-u * u / 2).exp() / (2 * arb.pi()).sqrt() + mass))


def reach(rows, k):
    """Exact end points of the union of mean +- k sd over (mean, sd)."""
    left = min(((m - k * s).mid() for m, s in rows), key=lambda x: x)
    right = max(((m + k * s).mid() for m, s in rows), key=lambda x: x)
    return left, right


def to_accuracy(compute, relative_bits):
    """compute(bits_asked, k) -> ball, with more of what is missing until it is sharp; k is the reach in deviations."""
    bits, asked, reaches = FIRST_PRECISION + 32, relative_bits + 8, iter(_REACHES)
    k = next(reaches)
    while bits <= LAST_PRECISION:
        with working_precision(bits):
            try:
                ball = compute(asked, k)
                if ball.rel_accuracy_bits() >= relative_bits:
                    return ball
                asked = asked * 3 // 2
            except Reach:
                k = next(reaches, None)
                if k is None:
                    raise Precision("the tails stay too heavy") from None
                continue
            except Precision:
                pass
        bits = bits * 3 // 2
    raise Precision(f"undecided at {LAST_PRECISION} bits")


def float_of(ball):
    return float(ball.mid()) if abs(ball.mid()) < arb(2) ** 1000 else float("inf")
