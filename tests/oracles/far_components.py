"""Divergences of mixtures whose components differ by any number of orders of magnitude, by mpmath.

The line is cut around every mean, at multiples of every standard deviation, and around every point where two components
of one mixture are equal, at multiples of the width over which one takes over from the other; mpmath's Gauss-Legendre
rule of 96 points then has pieces of one scale each. Every value is computed twice, with cuts of two kinds, and must
agree.
"""

from __future__ import annotations

from itertools import combinations, pairwise

from mpmath import mp, mpf
from mpmath.calculus.quadrature import GaussLegendre

__all__ = ["Law", "entropy", "information", "jensen_shannon", "kl_divergence", "renyi"]

_MARKS = (mpf(0), mpf(1) / 2, mpf(1), mpf(2), mpf(3), mpf(5), mpf(8), mpf(13), mpf(20), mpf(32), mpf(48))
_DEGREE = 5
_TAKEOVER = (mpf(0), mpf(1), mpf(3), mpf(9), mpf(27), mpf(90))


class Law:
    """sum w_i N(m_i, s_i^2), weights divided by their sum."""

    def __init__(self, weights, means, sigmas):
        total = sum(map(mpf, weights))
        self.rows = [
            (mpf(w) / total, mpf(m), mpf(s)) for w, m, s in zip(weights, means, sigmas, strict=True) if w > 0
        ]
        self.constants = [(mp.log(w / s) - mp.log(2 * mp.pi) / 2, m, s) for w, m, s in self.rows]

    def log(self, x):
        terms = [c - ((x - m) / s) ** 2 / 2 for c, m, s in self.constants]
        top = max(terms)
        return top + mp.log(sum(mp.exp(t - top) for t in terms if t - top > -2 * mp.prec))


def kl_divergence(p, q):
    return _integral((p, q), lambda a, b: mp.exp(a) * (a - b))


def jensen_shannon(p, q):
    return _integral((p, q), lambda a, b: _half(a, b) + _half(b, a))


def renyi(p, q, order):
    a = mpf(order)
    centres = []
    for _, m, s in p.rows:
        for _, n, t in q.rows:
            rate = a / s**2 + (1 - a) / t**2
            if rate > 0:
                centres.append(((a * m / s**2 + (1 - a) * n / t**2) / rate, 1 / mp.sqrt(rate)))
    top = max(a * p.log(x) + (1 - a) * q.log(x) for x in [c for c, _ in centres] + _cuts((p, q), 1, []))
    total = _integral((p, q), lambda lp, lq: mp.exp(a * lp + (1 - a) * lq - top), centres)
    return (top + mp.log(total)) / (a - 1)


def entropy(p):
    return _integral((p,), lambda a: -mp.exp(a) * a)


def information(p):
    """Of the label of a mixture and its sample."""
    noise = sum(w * (mp.log(2 * mp.pi * mp.e) / 2 + mp.log(s)) for w, _, s in p.rows)
    return entropy(p) - noise


def _half(a, b):
    """p log(p/m) / 2, m = (p + q)/2."""
    return mp.exp(a) * (mp.log(2) - mp.log1p(mp.exp(b - a))) / 2


def _integral(laws, f, centres=()):
    first, second = (_once(laws, f, _cuts(laws, stretch, centres)) for stretch in (mpf(1), mpf("1.37")))
    assert abs(first - second) <= mpf(10) ** -17 * abs(first), (first, second)
    return second


def _once(laws, f, cuts):
    def g(x):
        return f(*(law.log(x) for law in laws))

    nodes = GaussLegendre(mp).get_nodes(-1, 1, _DEGREE, mp.prec)
    pieces = pairwise(cuts)
    return mp.fsum((b - a) / 2 * mp.fsum(w * g((a + b) / 2 + (b - a) / 2 * x) for x, w in nodes) for a, b in pieces)


def _cuts(laws, stretch, centres):
    points = set()
    for law in laws:
        for _, m, s in law.rows:
            points |= {m + side * stretch * k * s for k in _MARKS for side in (-1, 1)}
        for one, other in combinations(law.constants, 2):
            for x, width in _crossings(one, other):
                points |= {x + side * stretch * k * width for k in _TAKEOVER for side in (-1, 1)}
    for c, s in centres:
        points |= {c + side * stretch * k * s for k in _MARKS for side in (-1, 1)}
    ends = [m + side * stretch * _MARKS[-1] * s for law in laws for _, m, s in law.rows for side in (-1, 1)]
    ends += [c + side * stretch * _MARKS[-1] * s for c, s in centres for side in (-1, 1)]
    return sorted(x for x in points if min(ends) <= x <= max(ends))


def _crossings(one, other):
    """Where two components are equal, and the inverse slope of their log ratio there."""
    (c, m, s), (d, n, t) = one, other
    square, linear, constant = 1 / t**2 - 1 / s**2, 2 * (m / s**2 - n / t**2), n**2 / t**2 - m**2 / s**2 + 2 * (c - d)
    if square == 0:
        roots = [-constant / linear] if linear else []
    else:
        root = linear**2 - 4 * square * constant
        roots = [] if root < 0 else [(-linear + sign * mp.sqrt(root)) / (2 * square) for sign in (-1, 1)]
    slopes = [abs(-(x - m) / s**2 + (x - n) / t**2) for x in roots]
    return [(x, 1 / slope) for x, slope in zip(roots, slopes, strict=True) if slope]


def rows():
    """The table of tests/enclosures/test_far_components.py: quantity, order, laws (weights, means, sigmas), truth."""
    near, table = ([0.5, 0.5], [0.0, 1.0], [1.0, 1.0]), []
    for ratio in (1e9, 1e12, 1e20, 1e150, 1e300):
        wide = ([0.25, 0.75], [0.0, ratio], [ratio, ratio / 2])
        table += _pair(near, wide) + ([("kl", 0.0, wide, near)] if ratio < 1e154 else [])
        table += [("entropy", 0.0, ([0.5, 0.25, 0.25], [0.0, 3.0, ratio], [1.0, 0.5, ratio]), None)]
    for distance in (1e8, 1e16, 1e100, 1e150):
        table += _pair(near, ([0.5, 0.5], [-distance, 0.875 * distance], [1.0, 2.0]))
        table += [("entropy", 0.0, ([0.5, 0.5], [0.0, distance], [1.0, 2.0]), None)]
    between = ([0.25, 0.75], [-1e9, 1e9], [1.0, 1.0])  # the mass of order 2 lies where these two are equal
    table += [("renyi", 2.0, ([1.0], [0.0], [1.0]), between), ("kl", 0.0, ([1.0], [0.0], [1e8]), between)]
    table += [("information", 0.0, ([0.25, 0.25, 0.5], [1.0, 2.0, 4.0], [s] * 3), None) for s in (1e-2, 1e-16, 1e-300)]
    return table


def truth(quantity, order, p, q):
    """The value of a row to 30 digits."""
    laws = [law for law in (p, q) if law is not None]
    sizes = [abs(x) for _, means, sigmas in laws for x in (*means, *sigmas)]
    mp.dps = 60 + int(2 * mp.log10(max(sizes) / min(s for law in laws for s in law[2])))
    built = [Law(*law) for law in laws]
    if quantity == "renyi":
        return renyi(*built, order)
    functions = {"kl": kl_divergence, "js": jensen_shannon, "entropy": entropy, "information": information}
    return functions[quantity](*built)


def _pair(p, q):
    return [("kl", 0.0, p, q), ("js", 0.0, p, q), ("renyi", 0.5, p, q), ("renyi", 2.0, p, q)]
