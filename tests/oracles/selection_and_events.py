"""Truth for mechanisms that are known by a guarantee, for discrete Gaussian noise, and for the best of random runs.

Everything is computed from the definitions in arithmetic of many digits: by sums over all outcomes of a composition, by
sums over the number of runs, by trade-off functions, and by the laws of mechanisms with few candidates.
"""

from __future__ import annotations

import functools
import itertools
import math

from mpmath import mp, mpf

DIGITS = 60


def with_digits(function):
    """Run with more digits than any comparison needs."""

    def inner(*args, **kwargs):
        with mp.workdps(DIGITS):
            return function(*args, **kwargs)

    return inner


@with_digits
def delta_of_outcomes(pairs, epsilon):
    """sum (p - e^epsilon q)^+ over all joint outcomes of a list of (p, q), each a list of probabilities."""
    total, x = mpf(0), mp.exp(mpf(epsilon))
    for joint in itertools.product(*(range(len(p)) for p, _ in pairs)):
        p, q = mpf(1), mpf(1)
        for (first, second), index in zip(pairs, joint, strict=True):
            p, q = p * first[index], q * second[index]
        total += max(mpf(0), p - x * q)
    return total


@with_digits
def four_outcomes(epsilon, delta):
    """The pair of all (epsilon, delta)-private mechanisms, of Kairouz, Oh and Viswanath."""
    x, d = mp.exp(mpf(epsilon)), mpf(delta)
    a = x / (1 + x)
    return [d, (1 - d) * a, (1 - d) * (1 - a), mpf(0)], [mpf(0), (1 - d) * (1 - a), (1 - d) * a, d]


def delta_of_guarantees(guarantees, epsilon):
    """With so many digits that 1e-300 is left."""
    with mp.workdps(700):
        return _delta_of_guarantees(guarantees, epsilon)


def _delta_of_guarantees(guarantees, epsilon):
    """The largest delta(epsilon) that all (epsilon_i, delta_i) allow: sup over levels a of 1 - f(a) - e^epsilon a, with
    f the largest of the trade-off functions, which is linear between crossings of their lines.
    """
    lines = [(mpf(0), mpf(0))]
    for e, d in guarantees:
        x, d = mp.exp(mpf(e)), mpf(d)
        lines += [(1 - d, -x), ((1 - d) / x, -1 / x)]
    levels = [mpf(0), mpf(1)]
    for (a, s), (b, t) in itertools.combinations(lines, 2):
        if s != t and 0 <= (b - a) / (s - t) <= 1:
            levels.append((b - a) / (s - t))
    return max(1 - max(a + s * level for a, s in lines) - mp.exp(mpf(epsilon)) * level for level in levels)


@with_digits
def bounded_range(width, count, epsilon, points=100):
    """The largest composition of the pairs with losses t and t - e over t: a grid, then golden sections at its best."""
    e, level = mpf(width), mpf(epsilon)

    def delta(t):
        p = (1 - mp.exp(t - e)) / (1 - mp.exp(-e))
        total = mpf(0)
        for j in range(count + 1):
            rest = count * t - j * e - level
            if rest > 0:
                total += math.comb(count, j) * p ** (count - j) * (1 - p) ** j * (1 - mp.exp(-rest))
        return total

    best = max(range(points + 1), key=lambda i: delta(e * i / points))
    low, high = e * max(best - 1, 0) / points, e * min(best + 1, points) / points
    grid = [low + (high - low) * i / 40 for i in range(41)]
    middle = max(range(41), key=lambda i: delta(grid[i]))
    low, high = grid[max(middle - 1, 0)], grid[min(middle + 1, 40)]
    golden = (mp.sqrt(5) - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = delta(a), delta(b)
    for _ in range(40):  # down to 1e-11 of the range, where the value is off by the square of it
        if at_a > at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = delta(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = delta(b)
    return max(delta(low), delta(high), delta(grid[middle]))


@with_digits
def sum_of_discrete_gaussians(variance, count):
    """The law of a sum of noises on the integers, by convolution."""
    reach = int(mp.sqrt(2 * mpf(variance) * 900)) + 3
    weights = {x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(variance))) for x in range(-reach, reach + 1)}
    norm = mp.fsum(weights.values())
    one = {x: w / norm for x, w in weights.items()}
    law = {0: mpf(1)}
    for _ in range(count):
        following = {}
        for total, p in law.items():
            for x, q in one.items():
                following[total + x] = following.get(total + x, mpf(0)) + p * q
        law = following
    return law


@with_digits
def delta_on_lattice(law, variance, shift, count, epsilon):
    """Delta of ``count`` releases whose noises have a sum of this law, each shifted by the same."""
    total = mpf(0)
    for x, p in law.items():
        rest = mpf(shift) * (2 * x + count * shift) / (2 * mpf(variance)) - mpf(epsilon)
        if rest > 0:
            total += p * -mp.expm1(-rest)
    return total


@with_digits
def permute_and_flip(scores, epsilon):
    """The law of permute-and-flip with sensitivity 1: candidates in random order, each accepted by its distance from
    the best.
    """
    best, n = max(scores), len(scores)
    accepted = [mp.exp(mpf(epsilon) / 2 * (mpf(s) - mpf(best))) for s in scores]
    law = [mpf(0)] * n
    for order in itertools.permutations(range(n)):
        left = mpf(1)
        for candidate in order:
            law[candidate] += left * accepted[candidate] / mp.factorial(n)
            left *= 1 - accepted[candidate]
    return law


@with_digits
def laplace_curve(scale, epsilon):
    """Delta of Laplace noise with the largest loss 1 / scale."""
    return max(mpf(0), 1 - mp.exp((mpf(epsilon) - 1 / mpf(scale)) / 2))


@functools.cache
@with_digits
def run_probabilities(runs, least=1e-50):
    """P(K = k) for k = 0, 1, ... until the rest is below ``least`` of what came; runs is (kind, parameters...)."""
    kind, *parameters = runs
    found, total = [], mpf(0)
    for k in itertools.count():
        if kind == "poisson":
            m = mpf(parameters[0])
            found.append(mp.exp(-m) * m**k / mp.factorial(k))
        else:
            eta, g = map(mpf, parameters)
            if k == 0:
                found.append(mpf(0))
            elif eta == 0:
                found.append((1 - g) ** k / (k * mp.log(1 / g)))
            else:
                found.append((1 - g) ** k * mp.rf(eta, k) / mp.factorial(k) / (g**-eta - 1))
        total += found[-1]
        if k > 3 and total > 0.5 and 1 - total < least and found[-1] < least:
            return found


@with_digits
def selected_law(p, scores, runs):
    """Probabilities of the released outcomes, and of none at the end, by a sum over the numbers of runs."""
    numbers, p = run_probabilities(runs), [mpf(x) for x in p]
    law = [mpf(0)] * (len(p) + 1)
    law[-1] = numbers[0]
    for level in set(scores):
        tied = [i for i, s in enumerate(scores) if s == level]
        below = mp.fsum(p[i] for i, s in enumerate(scores) if s < level)
        here = mp.fsum(p[i] for i in tied)
        released = mp.fsum(w * ((below + here) ** k - below**k) for k, w in enumerate(numbers) if k)
        for i in tied:
            law[i] = released * p[i] / here if here else mpf(0)
    return law


@with_digits
def selected_gaussian(p_mean, q_mean, runs, epsilon, sign=1):
    """Delta of the largest (sign 1) or least (-1) of runs of unit normal noise, by roots of the densities' difference
    and differences of the generating function.
    """
    kind, *parameters = runs
    p_mean, q_mean, x = sign * mpf(p_mean), sign * mpf(q_mean), mp.exp(mpf(epsilon))

    def released(z):  # f
        if kind == "poisson":
            return mp.exp(mpf(parameters[0]) * (z - 1))
        eta, g = map(mpf, parameters)
        if eta == 0:
            return mp.log(1 - (1 - g) * z) / mp.log(g)
        return ((1 - (1 - g) * z) ** -eta - 1) / (g**-eta - 1)

    def slope(above):  # log f' but for a constant, at 1 - above
        if kind == "poisson":
            return -mpf(parameters[0]) * above
        eta, g = map(mpf, parameters)
        return -(eta + 1) * mp.log(g + (1 - g) * above)

    def loss(y):
        above = [mp.erfc((y - mean) / mp.sqrt(2)) / 2 for mean in (p_mean, q_mean)]
        return slope(above[0]) - slope(above[1]) + ((y - q_mean) ** 2 - (y - p_mean) ** 2) / 2 - mpf(epsilon)

    def part(low, high):
        total = mpf(0)
        for mean, weight in ((p_mean, mpf(1)), (q_mean, -x)):
            ends = [released(mp.erfc(-(y - mean) / mp.sqrt(2)) / 2) for y in (low, high)]
            total += weight * (ends[1] - ends[0])
        return total

    points = [min(p_mean, q_mean) - 12 + mpf(i) / 8 for i in range(int((24 + abs(p_mean - q_mean)) * 8))]
    signs, roots = [loss(y) > 0 for y in points], []
    for i in range(len(points) - 1):
        if signs[i] != signs[i + 1]:
            low, high = points[i], points[i + 1]
            for _ in range(110):
                middle = (low + high) / 2
                low, high = (middle, high) if (loss(middle) > 0) == signs[i] else (low, middle)
            roots.append(low)
    ends = [-mp.inf, *roots, mp.inf]
    return mp.fsum(part(a, b) for i, (a, b) in enumerate(itertools.pairwise(ends)) if signs[0] == (i % 2 == 0))
