"""Mechanisms on samples in high-precision and exact arithmetic: curves, data sets by enumeration, tails of counts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import mpmath as mp

__all__ = [
    "all_data_sets", "binomial_tail", "composed_atoms", "geometric_noise", "hockey_stick", "laplace_poisson",
    "mixture_delta", "overflow_rate", "symmetric_two_steps",
]


def _masses(terms, x, sigma):
    return mp.fsum(w * mp.ncdf(-(x - m) / sigma) for w, m in terms)


def mixture_delta(p, q, sigma, epsilon):
    """sup over half-lines x > t of P - e^epsilon Q, for mixtures [(weight, mean)] with rising likelihood ratio."""
    alpha = mp.e ** mp.mpf(epsilon)

    def slope(x):
        return mp.fsum(w * mp.exp((m * x - m * m / 2) / sigma**2) for w, m in p) - alpha * mp.fsum(
            w * mp.exp((m * x - m * m / 2) / sigma**2) for w, m in q
        )

    span = max(abs(m) for _, m in (*p, *q)) + sigma
    low, high = -span, span
    while slope(low) > 0 and low > -1e8:
        low *= 2
    while slope(high) < 0 and high < 1e8:
        high *= 2
    if slope(low) > 0 or slope(high) < 0:
        return max(mp.mpf(0), 1 - alpha if slope(low) > 0 else mp.mpf(0))
    for _ in range(220):  # more bits than 60 digits have
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    t = (low + high) / 2
    return _masses(p, t, sigma) - alpha * _masses(q, t, sigma)


def laplace_poisson(loss, rate, epsilon, removes, kind="add_or_remove"):
    """One step of Laplace noise, by quadrature over the line of both densities."""
    s, q, alpha = mp.mpf(loss), mp.mpf(rate), mp.e ** mp.mpf(epsilon)
    shifts = {
        "add_or_remove": (((1 - q, 0), (q, s)), ((1, 0),)),
        "fixed": (((1 - q, 0), (q, 2 * s)), ((1, 0),)),
        "replace_one": (((1 - q, 0), (q, s)), ((1 - q, 0), (q, -s))),
        "zero_out": (((1 - q, -s), (q, s)), ((1 - q, -s), (q, 0))),
    }[kind]
    sides = shifts if removes else shifts[::-1]

    def gap(x):
        p, r = (mp.fsum(w * mp.exp(-abs(x - m)) / 2 for w, m in side) for side in sides)
        return p - alpha * r

    places = sorted({m for side in sides for _, m in side})
    ends = [places[0] - 200, *places, places[-1] + 200]
    total = mp.mpf(0)
    for a, b in itertools.pairwise(ends):
        cuts = [a, b]
        if gap(a) * gap(b) < 0:
            low, high = a, b
            for _ in range(170):
                middle = (low + high) / 2
                low, high = (middle, high) if gap(middle) * gap(low) > 0 else (low, middle)
            cuts = [a, low, b]
        for u, v in itertools.pairwise(cuts):
            if gap((u + v) / 2) > 0:
                for sign, side in ((1, sides[0]), (-alpha, sides[1])):
                    for w, m in side:  # integral of e^-|x - m| / 2 over a piece on one side of m
                        lower, upper = ((mp.exp(-(u - m)), mp.exp(-(v - m))) if u >= m else
                                        (mp.exp(v - m), mp.exp(u - m)))
                        total += sign * w * (lower - upper) / 2
    return total


def hockey_stick(p, q, alpha):
    """Of two dictionaries of probabilities."""
    return sum((max(p.get(x, Fraction(0)) - alpha * q.get(x, Fraction(0)), 0) for x in {*p, *q}), Fraction(0))


def composed_atoms(p, q, k):
    """Laws of k independent outcomes, by the pairs of probabilities (p, q)."""
    found = {(): (Fraction(1), Fraction(1))}
    for _ in range(k):
        joined = {}
        for key, (a, b) in found.items():
            for x in {*p, *q}:
                place = tuple(sorted((*key, x)))
                old = joined.get(place, (Fraction(0), Fraction(0)))
                joined[place] = old[0] + a * p.get(x, Fraction(0)), old[1] + b * q.get(x, Fraction(0))
        found = joined
    return {x: a for x, (a, _) in found.items()}, {x: b for x, (_, b) in found.items()}


def geometric_noise(ratio, shifts, lowest, highest):
    """Mixture {shift: weight} of two-sided geometric noise; what lies beyond an end counts to it."""
    found = {}
    for x in range(lowest, highest + 1):
        total = Fraction(0)
        for shift, weight in shifts.items():
            size = abs(x - shift)
            inner = (1 - ratio) / (1 + ratio) * ratio**size
            total += weight * (inner if lowest < x < highest else ratio**size / (1 + ratio))
        found[x] = total
    return found


def all_data_sets(size, sample, relation, ratio, alphas, scheme="drawn", rate=Fraction(1, 4)):
    """The largest delta of one step over all data sets of contributions -1, 0, 1, in both orders, at each alpha."""
    values = (-1, 0, 1)

    def law(data):
        shifts = {}
        if scheme == "drawn":
            for chosen in itertools.combinations(data, sample):
                shifts[sum(chosen)] = shifts.get(sum(chosen), 0) + Fraction(1, comb(len(data), sample))
        elif scheme == "replaced":
            for chosen in itertools.product(data, repeat=sample):
                shifts[sum(chosen)] = shifts.get(sum(chosen), 0) + Fraction(1, len(data) ** sample)
        else:  # Poisson samples, with a cap of ``sample``
            for mask in itertools.product((0, 1), repeat=len(data)):
                drawn = [v for v, one in zip(data, mask, strict=True) if one]
                weight = rate ** sum(mask) * (1 - rate) ** (len(data) - sum(mask))
                kept = list(itertools.combinations(drawn, min(sample, len(drawn))))
                for chosen in kept:
                    shifts[sum(chosen)] = shifts.get(sum(chosen), 0) + weight / len(kept)
        return geometric_noise(ratio, shifts, -sample, sample)

    best = [Fraction(0)] * len(alphas)
    for others in itertools.combinations_with_replacement(values, size - 1):
        laws = {v: law((*others, v)) for v in values}
        if relation == "add_or_remove":
            without = law(others)
            pairs = [one for v in values for one in ((laws[v], without), (without, laws[v]))]
        elif relation == "zero_out":
            pairs = [one for v in values for one in ((laws[v], laws[0]), (laws[0], laws[v]))]
        else:
            pairs = list(itertools.permutations(laws.values(), 2))
        for p, q in pairs:
            best = [max(old, hockey_stick(p, q, alpha)) for old, alpha in zip(best, alphas, strict=True)]
    return best


def binomial_tail(n, rate, cap):
    """P(Bin(n, rate) >= cap), by the incomplete beta function."""
    return mp.betainc(cap, n - cap + 1, 0, mp.mpf(rate), regularized=True)


def overflow_rate(size, rate, cap):
    """E[rate cap / (c + 1) | c >= cap] by its sum."""
    q, n = mp.mpf(rate), size - 1
    terms = [comb(n, c) * q**c * (1 - q) ** (n - c) for c in range(cap, n + 1)]
    return mp.fsum(q * cap * t / (c + 1) for c, t in zip(range(cap, n + 1), terms, strict=True)) / mp.fsum(terms)


def symmetric_two_steps(sigma, rate, epsilon):
    """Two steps of the symmetric pair of the curve of (1 - q) N(0) + q N(2) against N(0), by one integral."""
    s, q, e = mp.mpf(sigma), mp.mpf(rate), mp.mpf(epsilon)

    def curve(level):  # at any level
        if level < 0:
            return 1 - mp.e**level + mp.e**level * curve(-level)
        x = mp.log(1 + (mp.e**level - 1) / q)
        return q * (mp.ncdf(1 / s - x * s / 2) - mp.e**x * mp.ncdf(-1 / s - x * s / 2))

    def loss(x):
        return mp.log(1 - q + q * mp.exp((2 * x - 2) / s**2))

    def density(x):
        return mp.npdf(x, 0, s)

    atom = (1 - q) * (1 - 2 * mp.ncdf(-1 / s))
    total = atom * curve(e)
    knots = [mp.mpf(1) + k * s for k in (0, 1, 2, 3, 4, 6, 8, 12, 16)]
    turn = 1 + s**2 / 2 * mp.log((mp.e**e - 1 + q) / q)  # where loss = epsilon
    knots = sorted({*knots, turn})
    total += mp.quad(lambda x: density(x) * mp.exp(loss(x)) * curve(e - loss(x)), knots)
    total += mp.quad(lambda x: density(x) * curve(e + loss(x)), knots)
    return total
