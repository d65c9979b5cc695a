"""Mechanisms on samples in high-precision and exact arithmetic: curves, data sets by enumeration, tails of counts."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import mpmath as mp

__all__ = [
    "all_data_sets", "binomial_tail", "composed_atoms", "geometric_noise", "hockey_stick", "laplace_mixture_delta",
    "laplace_poisson", "mixture_delta", "overflow_rate", "symmetric_two_steps",
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


def symmetric_two_steps(first, second, epsilon, digits=30):
    """Delta of two releases (rate q, distance a over sigma) of symmetric pairs, by the best test of the second release
    after each outcome of the first: no curve is used, only the masses of the outcomes.

    An outcome is (x, +) with the densities (1 - q) phi(x) + q phi(x - a) and phi(x), x > a/2, (x, -) with both swapped,
    or one with what is left of the probability on both sides.
    """
    with mp.workdps(digits):
        (q, a), (r, b) = (tuple(mp.mpf(x) for x in one) for one in (first, second))
        level = mp.exp(mp.mpf(epsilon))

        def crossing(rate, distance, ratio):
            return mp.log(1 + (ratio - 1) / rate) / distance + distance / 2

        def between(low, high, mean):
            return (mp.erfc((low - mean) / mp.sqrt(2)) - mp.erfc((high - mean) / mp.sqrt(2))) / 2

        def gained(c):
            """P(S) - c Q(S) of the second release, S where its likelihood ratio is above c."""
            start, end = crossing(r, b, max(c, 1)), mp.inf
            larger, smaller = ((1 - r) * between(start, end, 0) + r * between(start, end, b), between(start, end, 0))
            total = larger - c * smaller
            if c < 1:
                start, end = b / 2, crossing(r, b, 1 / c)
                smaller = between(start, end, 0)
                larger = (1 - r) * smaller + r * between(start, end, b)
                total += smaller - c * larger + (1 - c) * (1 - r) * between(-b / 2, b / 2, 0)
            return total

        def ratio(x):
            return 1 - q + q * mp.exp(a * x - a * a / 2)

        def density(x):
            return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)

        turn, start = crossing(q, a, level), a / 2
        steps = [side * mp.mpf(2) ** j for j in range(-9, 6, 2) for side in (-1, 1)]
        knots = {x for centre in (start, turn, a) for x in (centre, *(centre + step for step in steps)) if x >= start}
        total = (1 - q) * between(-start, start, 0) * gained(level)
        total += mp.quad(lambda x: density(x) * ratio(x) * gained(level / ratio(x)), sorted(knots))
        knots = sorted(x for x in knots if x <= start + 40)
        return total + mp.quad(lambda x: density(x) * gained(level * ratio(x)), knots)


def laplace_mixture_delta(p, q, alpha, digits=50):
    """Integral of (P - alpha Q)^+ of two mixtures of Laplace distributions of scale 1, {mean: weight}, in closed form
    on every interval between means, where both densities are sums of e^x and e^-x.
    """
    with mp.workdps(digits):
        ends = sorted({*p, *q})
        total = mp.mpf(0)
        for low, high in zip([-mp.inf, *ends], [*ends, mp.inf], strict=True):
            up = down = mp.mpf(0)  # factors of e^x and e^-x
            for side, sign in ((p, 1), (q, -alpha)):
                for mean, weight in side.items():
                    if mean <= low:
                        down += sign * weight * mp.exp(mean) / 2
                    else:
                        up += sign * weight * mp.exp(-mean) / 2
            cuts = [low, high]
            if up * down < 0 and low < mp.log(-down / up) / 2 < high:
                cuts.insert(1, mp.log(-down / up) / 2)
            for start, end in itertools.pairwise(cuts):
                parts = [factor * (mp.exp(b) - mp.exp(a)) for factor, a, b in ((up, start, end), (down, -end, -start))
                         if factor]  # the other one is infinite at an infinite end
                total += max(mp.fsum(parts), 0)
        return total
