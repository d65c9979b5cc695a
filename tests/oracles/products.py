"""Hockey-stick divergences of products, by mpmath: two outcomes, or a mixture, beside normal coordinates."""

import math

from mpmath import mp, mpf


def of_shift(shift, epsilon):
    """delta of N(shift, 1) against N(0, 1), shift > 0, at any real epsilon."""
    below = mp.erfc((epsilon / shift - shift / 2) / mp.sqrt(2)) / 2
    return below - mp.exp(epsilon) * mp.erfc((epsilon / shift + shift / 2) / mp.sqrt(2)) / 2


def at_any_level(curve, reverse, epsilon):
    """A curve at negative levels too, by that of the reversed pair."""
    return curve(epsilon) if epsilon >= 0 else 1 - mp.exp(epsilon) + mp.exp(epsilon) * reverse(-epsilon)


def mixture_beside_shift(p, q, shift, epsilon):
    """One coordinate of mixtures (weights, means, sigmas) beside N(shift, 1) against N(0, 1).

    By the trapezoid rule, whose error falls geometrically where the integrand is analytic and vanishes at the ends: for
    means up to 2 and sigmas about 1, 30 digits with this step and this range, and with half the step the same.
    """

    def density(mixture, x):
        terms = zip(*mixture, strict=True)
        return mp.fsum(mpf(w) * mp.exp(-(((x - mpf(m)) / mpf(s)) ** 2) / 2) / (mpf(s) * mp.sqrt(2 * mp.pi))
                       for w, m, s in terms)

    def term(x):
        a, b = density(p, x), density(q, x)
        return a * of_shift(shift, epsilon - mp.log(a / b))

    return mp.fsum(term(mpf(k) / 8) for k in range(-160, 161)) / 8


def outcomes_beside(p, q, count, epsilon, rest=lambda e: max(mpf(0), 1 - mp.exp(e))):
    """``count`` coordinates of two outcomes, with probabilities p or 1 - p, q or 1 - q, beside a rest with a curve."""
    p, q = mpf(p), mpf(q)
    total = mpf(0)
    for k in range(count + 1):
        weight = math.comb(count, k) * p**k * (1 - p) ** (count - k)
        loss = k * mp.log(p / q) + (count - k) * mp.log((1 - p) / (1 - q))
        total += weight * rest(epsilon - loss)
    return total
