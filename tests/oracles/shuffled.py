"""Shuffled reports by mpmath: all cells of pairs, all data sets of a few users, all outcomes of two rounds."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter

import mpmath
import numpy as np


def positive_part(p: dict, q: dict, epsilon: float):
    """sum (p - e^epsilon q)^+ over outcomes."""
    x = mpmath.exp(mpmath.mpf(epsilon))
    return sum((max(p[key] - x * q.get(key, 0), mpmath.mpf(0)) for key in p), mpmath.mpf(0))


def clone_pair(n: int, local_epsilon: float) -> tuple[dict, dict]:
    """All cells of (A + D, C - A + 1 - D) against (A + 1 - D, C - A + D)."""
    e = mpmath.exp(mpmath.mpf(local_epsilon))
    p, q = Counter(), Counter()
    for clones in range(n):
        weight = math.comb(n - 1, clones) * (1 / e) ** clones * (1 - 1 / e) ** (n - 1 - clones)
        for a in range(clones + 1):
            mass = weight * math.comb(clones, a) / mpmath.mpf(2) ** clones
            p[a + 1, clones - a] += mass * e / (e + 1)
            p[a, clones - a + 1] += mass / (e + 1)
            q[a, clones - a + 1] += mass * e / (e + 1)
            q[a + 1, clones - a] += mass / (e + 1)
    return p, q


def clone_log_delta(n: int, local_epsilon: float, epsilon: float, nats: float = 160.0):
    """log delta of the clone pair for large n: terms of each C from the threshold on by their ratios, in floats of
    50 digits; C until terms are e^-nats of the largest on both sides of it.
    """
    with mpmath.workdps(50):
        e, x = mpmath.exp(mpmath.mpf(local_epsilon)), mpmath.exp(mpmath.mpf(epsilon))
        if x >= e:
            return -mpmath.inf
        g = (x * e - 1) / (e - x)

        def term(c: int):
            x0 = int(mpmath.floor(g * (c + 1) / (1 + g))) + 1
            if x0 > c + 1:
                return mpmath.mpf(0)
            log_b = mpmath.loggamma(c + 1) - mpmath.loggamma(x0) - mpmath.loggamma(c - x0 + 2) - c * mpmath.log(2)
            before, total, at = mpmath.mpf(1), mpmath.mpf(0), x0  # b(x - 1) relative to b(x0 - 1)
            while True:
                here = before * (c + 1 - at) / at
                piece = (e - x) * before + (1 - x * e) * here
                total += piece
                if at > c or (before < 1e-40 and at > x0 + 5):
                    break
                before, at = here, at + 1
            weight = (mpmath.loggamma(n) - mpmath.loggamma(c + 1) - mpmath.loggamma(n - c)
                      - c * mpmath.mpf(local_epsilon) + (n - 1 - c) * mpmath.log1p(-1 / e))
            return mpmath.exp(weight + log_b) * total / (e + 1)

        centre = int((n - 1) / e)
        best = term(centre)
        step = max(1, int(centre**0.5) // 4)
        while centre >= step and term(centre - step) > best:
            centre -= step
            best = term(centre)
        total = mpmath.mpf(0)
        for side in (range(centre, -1, -1), range(centre + 1, n)):
            for c in side:
                value = term(c)
                total += value
                if value < best * mpmath.exp(-nats / 2) and abs(c - centre) > 10:
                    break
        return mpmath.log(total)


def response(k: int, local_epsilon: float) -> list[list]:
    """The rows of k-ary randomised response."""
    e = mpmath.exp(mpmath.mpf(local_epsilon))
    return [[(e if x == y else 1) / (e + k - 1) for y in range(k)] for x in range(k)]


def histogram(rows: list[list], data: tuple[int, ...]) -> dict:
    """Probabilities of the counts of the reports of some data."""
    found = {(0,) * len(rows[0]): mpmath.mpf(1)}
    for value in data:
        after: Counter = Counter()
        for counts, mass in found.items():
            for y, probability in enumerate(rows[value]):
                after[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += mass * probability
        found = after
    return found


def worst_data_set(n: int, k: int, local_epsilon: float, epsilon: float):
    """The largest delta over all neighbouring data of n users."""
    return worst_data_set_of_rows(response(k, local_epsilon), n, epsilon)


def worst_data_set_of_rows(rows: list[list], n: int, epsilon: float):
    """The same of any channel."""
    best = mpmath.mpf(0)
    for others in itertools.combinations_with_replacement(range(len(rows)), n - 1):
        laws = [histogram(rows, (x, *others)) for x in range(len(rows))]
        best = max(best, *(positive_part(p, q, epsilon) for p, q in itertools.permutations(laws, 2)))
    return best


def third_value(n: int, k: int, local_epsilon: float, epsilon: float):
    """Delta where the other users all hold a third value: counts of 1, 2, 3 and all others."""
    return positive_part(*_histograms_of_third_value(n, k, local_epsilon, mpmath.mp.prec), epsilon)


@functools.cache
def _histograms_of_third_value(n: int, k: int, local_epsilon: float, precision: int) -> tuple[dict, dict]:
    """The counts where the first user holds the first value or the second, in this precision."""
    rows = response(k, local_epsilon)
    grouped = [[*row[:3], sum(row[3:], mpmath.mpf(0))] for row in rows[:3]]
    return histogram(grouped, (0, *(2,) * (n - 1))), histogram(grouped, (1, *(2,) * (n - 1)))


def blanket(n: int, k: int, local_epsilon: float, epsilon: float):
    """1 / (gamma n) E (sum of T)^+ over all numbers of reports of the blanket."""
    e, x = mpmath.exp(mpmath.mpf(local_epsilon)), mpmath.exp(mpmath.mpf(epsilon))
    p = 1 / (e + k - 1)
    bases = p, (k - 2) * p, 1 - k * p
    of_two, of_others, of_blanket = ([base**exponent for exponent in range(n + 1)] for base in bases)
    total = mpmath.mpf(0)
    for m in range(1, n + 1):
        for first in range(m + 1):
            for second in range(m - first + 1):
                rest = m - first - second
                if rest and k == 2:
                    continue
                excess = (e - x) * first + (1 - x * e) * second + (1 - x) * rest
                if excess > 0:
                    number = math.comb(n, m) * math.comb(m, first) * math.comb(m - first, second)
                    total += number * of_two[first + second] * of_others[rest] * of_blanket[n - m] * excess
    return total / n


def blanket_of_rows(rows: list[list], n: int, epsilon: float):
    """The largest E (sum of V)^+ / n of all pairs of values, V = (R(y|x) - e^epsilon R(y|x')) / b(y) of mass b(y)."""
    x = mpmath.exp(mpmath.mpf(epsilon))
    blanket = [min(column) for column in zip(*rows, strict=True)]
    best = mpmath.mpf(0)
    for p, q in itertools.permutations(rows, 2):
        sums = {mpmath.mpf(0): mpmath.mpf(1)}
        atoms = [(mpmath.mpf(0), 1 - sum(blanket, mpmath.mpf(0)))]
        atoms += [((a - x * b) / c, mpmath.mpf(c)) for a, b, c in zip(p, q, blanket, strict=True) if c > 0]
        for _ in range(n):
            after: Counter = Counter()
            for (size, mass), (step, weight) in itertools.product(sums.items(), atoms):
                after[mpmath.nstr(size + step, 25)] += mass * weight
            sums = {mpmath.mpf(key): mass for key, mass in after.items()}
        best = max(best, sum((size * mass for size, mass in sums.items() if size > 0), mpmath.mpf(0)) / n)
    return best


def two_reports(first, second, third, epsilon: float) -> float:
    """Delta of two shuffled reports by masses of cells under the values x and x', and that of the other user."""
    excess = np.multiply.outer(first - math.exp(epsilon) * second, third)
    return float(np.maximum(excess + excess.T, 0.0).sum() / 2)


def twice(p: dict, q: dict) -> tuple[dict, dict]:
    """Two releases."""
    pairs = list(itertools.product(p, p))
    return tuple({key: law[key[0]] * law[key[1]] for key in pairs} for law in (p, q))


def largest_sum_above(point: float, shift: float, batches: int):
    """Probability that the largest of several normal sums, one of them shifted, is above a point."""
    phi = mpmath.ncdf
    return 1 - phi(mpmath.mpf(point) - mpmath.mpf(shift)) * phi(mpmath.mpf(point)) ** (batches - 1)
